"""Noise distributions: calibration, moments and draws.

Secure noise uses the random bits of the operating system. Scales are chosen in exact fractions.
Seeded noise, from a caller's ``numpy.random.Generator``, has the same distribution but must not be
published, because anyone who knows the seed can subtract the noise.

**Exactness.** Every random decision of secure noise is a coin: heads if U < p, where U is uniform
on [0, 1] and p is known to any number of binary digits. The digits of U are random bits. Bits are
drawn until they differ from the digits of p, which decides the coin. The first 16 or 32 bits are
drawn in vectors; the few undecided coins get 64 more bits at a time. All probabilities are
1 / (e^x + c) with a rational x >= 0 and c = 0 or 1. `digits` computes their digits as integers with
a proved error bound, so each coin has probability p exactly. Draws have no largest value: numbers
beyond 2^62 are Python integers, in arrays of objects. If the random bits are independent and fair,
the distributions are exact.
"""

import math
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Self

import numpy as np

from privrank.util.arrays import AnyArray, BoolArray, FloatArray, IntArray, Rng, immutable

Bits = Callable[[int], bytes]
"""Returns the given number of random bytes."""

Integers = AnyArray
"""int64, or Python integers if one of them does not fit."""

LARGEST = 2**62
"""Numbers below it are int64; the sum of two of them still fits."""

_SLACK = 2.0**-24
"""Distance at which the float of a probability decides a coin; its error is below 2^-45."""

NoiseSource = Literal["secure", "seeded", "none", "respondents"]

_LARGEST_SCALE = 2.0**52
"""Largest scale at which the noise fits 64-bit integers with a margin."""


def clipped_sum(values: IntArray, noise: Integers) -> IntArray:
    """Return the exact sum, clipped to 64 bits (post-processing)."""
    ends = np.iinfo(np.int64)
    noise = noise.reshape(values.shape)
    room = ends.max - LARGEST
    if noise.dtype != object and ((-room <= values) & (values <= room)).all():
        return values + noise
    inside = [
        min(max(int(value) + int(step), ends.min), ends.max)
        for value, step in zip(values.flat, noise.flat, strict=True)
    ]
    return np.array(inside, dtype=np.int64).reshape(values.shape)


@lru_cache(maxsize=4096)
def digits(x: Fraction, bits: int, one: int) -> int:
    """Return floor(2^bits / (e^x + one)) for a rational x >= 0 and one = 0 or 1.

    Notes
    -----
    **Privacy.** No probability is rounded, so the losses proved for a distribution hold for the
    draws. Let y = e^-x; then p = y / (1 + one y). The quotient x, its exponential, the sum and the
    last quotient are each rounded correctly to P decimal digits, with a relative error of at most
    10^(1-P) / 2. Because x e^-x < 1/2, the first two change y by less than 10^(1-P), and p changes
    by no more than y does; the others change p by less than 10^(1-P). Truncating p after P decimals
    adds 10^-P. So the integer n below differs from 10^P p by less than 50. If both ends of this
    interval have the same floor, it is the result. e^x is irrational except at x = 0, so a larger P
    always ends the search. For x >= bits the floor is 0, because e > 2.
    """
    if x == 0:
        return (1 << bits) // (1 + one)
    if x >= bits:
        return 0
    places = 12 + bits // 3
    while True:
        context = Context(prec=places, Emax=MAX_EMAX, Emin=MIN_EMIN)
        y = context.exp(-context.divide(Decimal(x.numerator), Decimal(x.denominator)))
        p = context.divide(y, context.add(y, 1)) if one else y
        n = int(p.scaleb(places, context))
        whole = int(10**places)
        low = ((n - 50) << bits) // whole
        if low == ((n + 50) << bits) // whole:
            return low
        places *= 2


def _settle(word: int, known: int, x: Fraction, one: int, bits: Bits) -> bool:
    """Return whether U < 1 / (e^x + one), given `known` binary digits of U."""
    while word == (level := digits(x, known, one)):
        word = word << 64 | int.from_bytes(bits(8), "little")
        known += 64
    return bool(word < level)


def _heads(x: Fraction, one: int, size: int, bits: Bits) -> BoolArray:
    """Return independent coins with P(heads) = 1 / (e^x + one), x > 0."""
    level = digits(x, 16, one)
    words = np.frombuffer(bits(2 * size), dtype="<u2")
    heads = words < level
    for place in np.flatnonzero(words == level):
        heads[place] = _settle(level, 16, x, one, bits)
    return heads


def exact_geometric(scale: float, size: int, bits: Bits) -> Integers:
    """Return independent k >= 0 with P(k) proportional to exp(-k / scale).

    The positive scale is used as an exact rational number. The array contains Python integers if
    one of them is 2^62 or more.

    Notes
    -----
    **Statistic.** With k = b_0 + 2 b_1 + ... + 2^J h the probability is a product, so the binary
    digits b_j below 2^J and h are independent. b_j is 1 with probability q / (1 + q) for
    q = exp(-2^j / scale), which is 1 / (e^(2^j / scale) + 1). h is geometric with ratio
    exp(-2^J / scale): the number of heads before the first tails. J is the smallest integer with
    2^J > scale.
    """
    rate = 1 / Fraction(scale)
    low = max(0, math.frexp(scale)[1])
    number = np.zeros(size, dtype=np.int64)
    for place in range(low):
        number |= np.left_shift(_heads(rate * 2**place, 1, size, bits), place, dtype=np.int64)
    above = np.zeros(size, dtype=np.int64)
    todo = np.arange(size)
    while todo.size:
        todo = todo[_heads(rate * 2**low, 0, todo.size, bits)]
        above[todo] += 1
    if size and int(above.max()) + 1 >= LARGEST >> low:
        return np.asarray(number.astype(object) + above.astype(object) * 2**low)
    return number + (above << low)


def exact_laplace(scale: float, size: int, bits: Bits) -> Integers:
    """Return independent integers k with P(k) proportional to exp(-|k| / scale).

    Each is the difference of two independent geometric variables, whose probability at k is the
    sum over j of (1 - q)^2 q^(2 j + |k|), which is (1 - q) / (1 + q) q^|k|.
    """
    both = exact_geometric(scale, 2 * size, bits)
    return np.asarray(both[:size] - both[size:])


def exact_gaussian(scale: float, size: int, bits: Bits) -> Integers:
    """Return independent k with P(k) proportional to exp(-k^2 / (2 scale^2)).

    Notes
    -----
    **Statistic.** A discrete Laplace variable k of scale t = floor(scale) + 1 is kept with
    probability exp(-g), g = (|k| - scale^2 / t)^2 / (2 scale^2): the product of the two is
    proportional to exp(-k^2 / (2 scale^2)). The coin first compares 32 binary digits of U with
    exp(-g) in double precision. The latter has an error below 2^-45: because scale^2 / t < scale,
    rounding changes z = (|k| - scale^2 / t) / scale by a few units of 2^-53 (|z| + 1), hence
    exp(-z^2 / 2) by a few units as well, and the exponential function adds a few more. If U is
    within 2^-24 of this value, the exact coin decides.

    References
    ----------
    Canonne, Kamath and Steinke (2020), Algorithm 3, https://doi.org/10.29012/jpc.784.
    """
    square = Fraction(scale) ** 2
    wide = math.floor(scale) + 1
    out: Integers = np.zeros(size, dtype=np.int64)
    todo = np.arange(size)
    while todo.size:
        k = exact_laplace(float(wide), todo.size, bits)
        words = np.frombuffer(bits(4 * todo.size), dtype="<u4")
        deviation = (np.abs(k).astype(np.float64) - scale * (scale / wide)) / scale
        gap = words * 2.0**-32 - np.exp(-0.5 * deviation**2)
        success = gap < 0
        for place in np.flatnonzero(np.abs(gap) <= _SLACK):
            g = (abs(int(k[place])) - square / wide) ** 2 / (2 * square)
            success[place] = _settle(int(words[place]), 32, g, 0, bits)
        if k.dtype == object:
            out = out.astype(object)
        out[todo[success]] = k[success]
        todo = todo[~success]
    return out


@immutable
@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Distribution with P(k) proportional to exp(-|k| / scale) on the integers.

    The scale is in lattice steps; scale 0 means no noise.

    Notes
    -----
    **Privacy.** If the noise is added independently to each coordinate of an integer vector with l1
    sensitivity s, the ratio of output probabilities of neighbours is at most exp(s / scale): each
    coordinate contributes exp((|x - a'| - |x - a|) / scale). The bound is attained, so s / scale is
    tight.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012), https://doi.org/10.1137/09076828X; sampler: Canonne,
    Kamath and Steinke (2020), https://doi.org/10.29012/jpc.784.
    """

    scale: float

    @classmethod
    def calibrate(cls, sensitivity: int, epsilon: float) -> Self:
        """Return the distribution with loss at most `epsilon` at this sensitivity.

        The scale is rounded up until the loss, an exact fraction, is at most the float just below
        `epsilon`, which is below the decimal number typed by the user.
        """
        if math.isinf(epsilon) or sensitivity == 0:
            return cls(0.0)
        target = math.nextafter(epsilon, 0.0)
        scale = sensitivity / target if target > 0 else math.inf
        if scale > _LARGEST_SCALE:
            raise ValueError(
                f"epsilon is too small for this statistic, got {epsilon}: the noise scale would "
                f"exceed 2^52 lattice steps. Use a larger epsilon."
            )
        while Fraction(sensitivity) / Fraction(scale) > Fraction(target):
            scale = math.nextafter(scale, math.inf)
        return cls(scale)

    @property
    def variance(self) -> float:
        """Variance in squared lattice steps: 2 q / (1 - q)^2 for q = exp(-1 / scale)."""
        if self.scale == 0:
            return 0.0
        return 2 * math.exp(-1 / self.scale) / math.expm1(-1 / self.scale) ** 2

    def pmf(self, k: IntArray) -> FloatArray:
        """Return P(k)."""
        magnitude = np.abs(np.asarray(k))
        return np.asarray(
            magnitude == 0
            if self.scale == 0
            else math.tanh(0.5 / self.scale) * np.exp(-magnitude / self.scale),
            dtype=np.float64,
        )

    def tail(self, k: IntArray) -> FloatArray:
        """Return P(noise >= k) for integers k.

        With q = exp(-1 / scale) this is q^k / (1 + q) for k > 0, and by symmetry
        1 - q^(1 - k) / (1 + q) for k <= 0. Scale 0 gives the indicator of k <= 0.
        """
        steps = np.asarray(k, dtype=np.int64)
        if self.scale == 0:
            return np.asarray(steps <= 0, dtype=np.float64)
        outer = np.exp(-np.maximum(steps, 1 - steps) / self.scale) / (1 + math.exp(-1 / self.scale))
        return np.asarray(np.where(steps > 0, outer, 1.0 - outer))

    def draw(self, values: IntArray, rng: Rng) -> IntArray:
        """Return `values` plus independent noise, exact and secure or seeded.

        Takes an int64 vector and returns a new int64 vector; the noise is not stored.
        """
        if self.scale == 0:
            return values.copy()
        return clipped_sum(values, self.noise(values.size, rng))

    def noise(self, size: int, rng: Rng) -> Integers:
        """Return noise alone, integers of any size; the scale must be positive."""
        if rng is not None:
            return self.simulate(size, rng)
        return exact_laplace(self.scale, size, os.urandom)

    def simulate(self, size: int | tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Return noise alone from a Generator, for seeded fits and for calibration.

        Each is the difference of two geometric variables with success probability
        1 - exp(-1 / scale).
        """
        if self.scale == 0:
            return np.zeros(size, dtype=np.int64)
        success = -math.expm1(-1 / self.scale)
        return rng.geometric(success, size) - rng.geometric(success, size)


@immutable
@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Distribution on integers with P(k) proportional to exp(-k^2 / (2 scale^2)).

    The scale is in lattice steps; scale 0 means no noise. If the scale is at least 2, it equals the
    standard deviation to within 1e-15.

    Notes
    -----
    **Privacy.** If the noise is added independently to each coordinate of an integer vector with l2
    sensitivity s, the release is s^2 / (2 scale^2) zero-concentrated private. For counts that one
    unit moves by at most 1 each, `gaussian.lattice_delta` computes the exact curve of epsilon and
    delta.

    References
    ----------
    Canonne, Kamath and Steinke (2020), https://doi.org/10.29012/jpc.784.
    """

    scale: float

    @property
    def variance(self) -> float:
        """Variance in squared lattice steps, summed over the distribution."""
        if self.scale > 100:
            return self.scale**2
        if self.scale == 0:
            return 0.0
        k = np.arange(1, math.ceil(40 * self.scale) + 1)
        mass = 2 * np.exp(-0.5 * (k / self.scale) ** 2)
        return float(mass @ k.astype(float) ** 2 / (1 + mass.sum()))

    def draw(self, values: IntArray, rng: Rng) -> IntArray:
        """Return `values` plus independent noise, exact and secure or seeded.

        Takes an int64 vector and returns a new int64 vector; the noise is not stored.
        """
        if self.scale == 0:
            return values.copy()
        if rng is not None:
            return clipped_sum(values, self.simulate(values.shape, rng))
        return clipped_sum(values, exact_gaussian(self.scale, values.size, os.urandom))

    def simulate(self, size: int | tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Return noise alone from a Generator, for seeded fits and for calibration.

        This is rejection sampling from a discrete Laplace distribution of about the same scale:
        with t = floor(scale) + 1 a proposal k is kept with probability
        exp(-(|k| - scale^2 / t)^2 / (2 scale^2)).
        """
        out = np.zeros(size, dtype=np.int64)
        if self.scale == 0:
            return out
        flat = out.reshape(-1)
        wide = DiscreteLaplace(math.floor(self.scale) + 1.0)
        todo = np.arange(flat.size)
        while todo.size:
            k = wide.simulate(todo.size, rng)
            deviation = (np.abs(k) - self.scale**2 / wide.scale) / self.scale
            success = rng.random(todo.size) < np.exp(-0.5 * deviation**2)
            flat[todo[success]] = k[success]
            todo = todo[~success]
        return out


def conditioned(
    distribution: DiscreteLaplace,
    wanted: Callable[[Integers], BoolArray],
    size: int,
    rng: Rng,
) -> Integers:
    """Return variables conditional on `wanted`; others are drawn again."""
    drawn = distribution.noise(size, rng)
    while (again := np.flatnonzero(~wanted(drawn))).size:
        fresh = distribution.noise(again.size, rng)
        drawn = drawn.astype(np.promote_types(drawn.dtype, fresh.dtype))
        drawn[again] = fresh
    return drawn


def geometric(scale: float, size: int, rng: Rng) -> Integers:
    """Return variables with P(X >= k) = exp(-k / scale), k = 0, 1, 2, ...

    Seeded ones are discrete Laplace variables conditional on being nonnegative, which has a
    probability above one half at every scale.
    """
    if rng is None:
        return exact_geometric(scale, size, os.urandom)
    return conditioned(DiscreteLaplace(scale), lambda drawn: drawn >= 0, size, rng)


def draw_nonzero(scale: float, size: int, rng: Rng) -> Integers:
    """Return discrete Laplace variables conditional on being nonzero.

    The sign is a fair coin, independent of |k| - 1, which is geometric with ratio exp(-1 / scale).
    """
    return conditioned(DiscreteLaplace(scale), lambda drawn: drawn != 0, size, rng)


def draw_cells(scale: float, cell: float, size: int, rng: Rng) -> AnyArray:
    """Return continuous Laplace(scale) draws, rounded to the midpoints of cells.

    The line is divided at the multiples of `cell`. For a Laplace variable w the sign is a fair coin
    independent of floor(|w| / cell), which is geometric with ratio exp(-cell / scale). The discrete
    Laplace distribution conditional on a nonzero value, with its magnitude reduced by one, has
    exactly this joint distribution. So the returned midpoints are within cell / 2 of a continuous
    Laplace vector, exactly in distribution; zeros are drawn again before any use. `cell` is a power
    of two, so the midpoints are exact floats. If one has more than 53 binary digits, they are
    fractions in an array of objects.
    """
    steps = draw_nonzero(scale / cell, size, rng)
    halves = np.sign(steps) * (2 * np.abs(steps) - 1)
    if halves.dtype != object and (np.abs(halves) < 2**53).all():
        return np.asarray(halves * (0.5 * cell))
    return np.array([int(half) * Fraction(cell) / 2 for half in halves], dtype=object)


def draw_one_each(sizes: IntArray, rng: Rng) -> IntArray:
    """Return for each group an independent uniform position in 0..size - 1.

    `sizes` are the group sizes, at least 1 and below 2^62. Secure draws use 64 bits of the
    operating system each and reject values that would favour small positions, so they are exactly
    uniform.
    """
    sizes = np.asarray(sizes, dtype=np.int64)
    if rng is not None:
        return np.asarray(rng.integers(0, sizes), dtype=np.int64)
    out = np.zeros(len(sizes), dtype=np.int64)
    todo = np.flatnonzero(sizes > 1)
    while todo.size:
        bits = np.frombuffer(os.urandom(8 * todo.size), dtype=np.uint64) >> np.uint64(1)
        size = sizes[todo].astype(np.uint64)
        position = bits % size
        out[todo] = position
        # values in the incomplete last cycle below 2^63 are drawn again
        todo = todo[bits - position > np.uint64(2**63) - size]
    return out


def draw_below(total: int, rng: Rng) -> int:
    """Return an exactly uniform integer in 0..total - 1 for any positive integer."""
    if rng is None:
        return random.SystemRandom().randrange(total)
    words = (total.bit_length() + 31) // 32
    limit = (1 << 32 * words) // total * total
    while True:
        bits = int.from_bytes(rng.bytes(4 * words), "little")
        # values in the incomplete last cycle below 2^(32 words) are drawn again
        if bits < limit:
            return bits % total
