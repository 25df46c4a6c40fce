"""Distributions of noise: scales from a budget, moments; the only place that draws privacy noise.

Secure noise is made of random bits of the operating system. Scales are chosen in exact fractions.
Seeded noise, from a caller's ``numpy.random.Generator``, follows the same distribution but may not
be published: whoever holds the seed subtracts the noise.

**Exactness.** Every random decision of secure noise is a coin: heads where U < p, with U uniform on
[0, 1] and p known to any number of binary digits. The digits of U are random bits. They are taken
until they differ from those of p, which settles the coin. There are 16 or 32 of them at first, in
vectors, and 64 more at a time for the few coins that these leave open. All probabilities are
1 / (e^x + c) with a rational x >= 0 and c = 0 or 1. Their digits come from `digits`, whole numbers
with a proved error, so each coin has the probability p exactly. What is drawn has no largest value:
numbers beyond 2^62 are Python integers, in arrays of objects. Given random bits that are
independent and fair, the distributions hold exactly.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from privrank.util.arrays import AnyArray, BoolArray, FloatArray, IntArray, immutable
from privrank.util.checks import Rng

Bits = Callable[[int], bytes]
"""Returns so many random bytes."""

Integers = AnyArray
"""int64, or Python integers where one does not fit."""

LARGEST = 2**62
"""Numbers below it are int64, so that the sum of two still is."""

_SLACK = 2.0**-24
"""Distance from the float of a probability beyond which it decides; its error is below 2^-45."""

NoiseSource = Literal["secure", "seeded", "none", "respondents"]

_LARGEST_SCALE = 2.0**52
"""Beyond this the noise no longer fits 64-bit integers with a margin."""


def source_of(rng: Rng, epsilon: float) -> NoiseSource:
    """Name where the noise of a fit comes from."""
    if math.isinf(epsilon):
        return "none"
    return "secure" if rng is None else "seeded"


@lru_cache(maxsize=1024)
def _private_scale(sensitivity: int, target: float) -> float:
    """Return sensitivity / target, raised until the quotient itself is at most `target`."""
    scale = sensitivity / target
    while Fraction(sensitivity) / Fraction(scale) > Fraction(target):
        scale = math.nextafter(scale, math.inf)
    return scale


def clipped_sum(values: IntArray, noise: Integers) -> IntArray:
    """Return the exact sum, moved to the end of 64 bits where it passes it: post-processing."""
    ends = np.iinfo(np.int64)
    noise = noise.reshape(values.shape)
    room = ends.max - LARGEST
    if noise.dtype != object and ((-room <= values) & (values <= room)).all():
        return values + noise
    total = (int(value) + int(step) for value, step in zip(values.flat, noise.flat, strict=True))
    inside = [min(max(number, ends.min), ends.max) for number in total]
    return np.array(inside, dtype=np.int64).reshape(values.shape)


@lru_cache(maxsize=4096)
def digits(x: Fraction, bits: int, one: int) -> int:
    """Return floor(2^bits / (e^x + one)) for a rational x >= 0 and one = 0 or 1.

    Notes
    -----
    **Privacy.** No probability is rounded, so the losses that are proved of a distribution are
    those of what is drawn. Let y = e^-x, so that p = y / (1 + one y). The quotient x, its
    exponential, the sum and the last quotient are each rounded correctly to P decimal digits, by a
    relative 10^(1-P) / 2 at most. As x e^-x < 1/2 the first two move y by less than 10^(1-P), and p
    changes by no more than y does; the others move p by less than 10^(1-P). Cutting p after P
    decimals adds 10^-P. So the whole number n below is off by less than 50 of 10^P p. Where both
    ends of that interval have the same floor it is the one wanted. e^x is irrational but at x = 0,
    so a larger P always ends the search. From x = bits on the floor is 0, as e > 2.
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
        high = ((n + 50) << bits) // whole
        if low == high:
            return low
        places *= 2


def _settle(word: int, known: int, x: Fraction, one: int, bits: Bits) -> bool:
    """Return whether U < 1 / (e^x + one), given the first `known` binary digits of U."""
    while word == (level := digits(x, known, one)):
        word = word << 64 | int.from_bytes(bits(8), "little")
        known += 64
    return bool(word < level)


def _heads(x: Fraction, one: int, size: int, bits: Bits) -> BoolArray:
    """Return independent coins that fall heads with probability 1 / (e^x + one), x > 0."""
    level = digits(x, 16, one)
    words = np.frombuffer(bits(2 * size), dtype="<u2")
    heads = words < level
    for place in np.flatnonzero(words == level):
        heads[place] = _settle(level, 16, x, one, bits)
    return heads


def exact_geometric(scale: float, size: int, bits: Bits) -> Integers:
    """Return independent whole numbers k >= 0 with P(k) proportional to exp(-k / scale).

    The positive scale is taken as the rational number it is. Python integers where one of them is
    2^62 or more.

    Notes
    -----
    **Statistic.** With k = b_0 + 2 b_1 + ... + 2^J h the probability is a product: the binary
    digits b_j below 2^J and h are independent. b_j is 1 with probability q / (1 + q) for
    q = exp(-2^j / scale), that is 1 / (e^(2^j / scale) + 1), and h is geometric with ratio
    exp(-2^J / scale). It counts heads before the first tails. J is the least with 2^J > scale.
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

    The difference of two independent geometric variables: at k it is the sum over j of
    (1 - q)^2 q^(2 j + |k|), which is (1 - q) / (1 + q) q^|k|.
    """
    both = exact_geometric(scale, 2 * size, bits)
    return np.asarray(both[:size] - both[size:])


def exact_gaussian(scale: float, size: int, bits: Bits) -> Integers:
    """Return independent integers k with P(k) proportional to exp(-k^2 / (2 scale^2)).

    Notes
    -----
    **Statistic.** A discrete Laplace variable k of scale t = floor(scale) + 1 is kept with
    probability exp(-g), g = (|k| - scale^2 / t)^2 / (2 scale^2): the product of the two is
    proportional to exp(-k^2 / (2 scale^2)). The coin looks at 32 binary digits of U and at exp(-g)
    in double precision. That is off by less than 2^-45: as scale^2 / t < scale, rounding moves
    z = (|k| - scale^2 / t) / scale by a few units of 2^-53 (|z| + 1), hence exp(-z^2 / 2) by a few
    of them as well, and the exponential function adds few more. Where U is within 2^-24 of it the
    exact coin decides.

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
    """The distribution P(k) proportional to exp(-|k| / scale) on the integers; scale 0 is no noise.

    The scale is in lattice steps.

    Notes
    -----
    **Privacy.** Added independently to each coordinate of an integer vector with l1 sensitivity
    s, the ratio of output probabilities of neighbours is at most exp(s / scale): each coordinate
    contributes exp((|x - a'| - |x - a|) / scale). It is attained, so s / scale is tight.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012), https://doi.org/10.1137/09076828X; sampler: Canonne,
    Kamath and Steinke (2020), https://doi.org/10.29012/jpc.784.
    """

    scale: float

    @classmethod
    def calibrate(cls, sensitivity: int, epsilon: float) -> DiscreteLaplace:
        """Return the distribution whose privacy loss at `sensitivity` is at most `epsilon`.

        The scale is rounded up until the loss, an exact fraction, is at most the float just below
        `epsilon`; the decimal that was typed lies above that.
        """
        if math.isinf(epsilon) or sensitivity == 0:
            return cls(0.0)
        target = math.nextafter(epsilon, 0.0)
        scale = sensitivity / target if target > 0 else math.inf
        if scale > _LARGEST_SCALE:
            raise ValueError(
                f"epsilon is too small for this statistic: the noise scale would exceed 2^52 "
                f"lattice steps (got epsilon {epsilon}); use a larger epsilon."
            )
        return cls(_private_scale(sensitivity, target))

    @property
    def variance(self) -> float:
        """Variance in squared lattice steps: 2 q / (1 - q)^2 for q = exp(-1 / scale)."""
        if self.scale == 0:
            return 0.0
        return 2 * math.exp(-1 / self.scale) / math.expm1(-1 / self.scale) ** 2

    def pmf(self, k: IntArray) -> FloatArray:
        """Return P(k)."""
        magnitude = np.abs(np.asarray(k))
        if self.scale == 0:
            return np.asarray(magnitude == 0, dtype=np.float64)
        return np.asarray(math.tanh(0.5 / self.scale) * np.exp(-magnitude / self.scale))

    def tail(self, k: IntArray) -> FloatArray:
        """Return P(noise >= k): q^k / (1 + q) for k > 0, by symmetry 1 - q^(1 - k) / (1 + q) else.

        Given integers, with q = exp(-1 / scale); scale 0 gives the indicator of k <= 0.
        """
        steps = np.asarray(k, dtype=np.int64)
        if self.scale == 0:
            return np.asarray(steps <= 0, dtype=np.float64)
        outer = np.exp(-np.maximum(steps, 1 - steps) / self.scale) / (1 + math.exp(-1 / self.scale))
        return np.asarray(np.where(steps > 0, outer, 1.0 - outer))

    def draw(self, values: IntArray, rng: Rng) -> IntArray:
        """Return `values` plus independent noise: exact and secure, or seeded when `rng` is given.

        Given an int64 vector, returns a new int64 vector; nothing of the noise is kept.
        """
        if self.scale == 0:
            return values.copy()
        return clipped_sum(values, self.noise(values.size, rng))

    def noise(self, size: int, rng: Rng) -> Integers:
        """Return noise alone, whole numbers of any size; scale 0 has none to draw."""
        if rng is not None:
            return self.simulate(size, rng)
        return exact_laplace(self.scale, size, os.urandom)

    def simulate(self, size: int | tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Return noise alone from a Generator, for seeded fits and for calibration.

        The difference of two geometric variables with success probability 1 - exp(-1 / scale).
        """
        if self.scale == 0:
            return np.zeros(size, dtype=np.int64)
        success = -math.expm1(-1 / self.scale)
        return rng.geometric(success, size) - rng.geometric(success, size)


@immutable
@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """P(k) proportional to exp(-k^2 / (2 scale^2)) on the integers; scale 0 is no noise.

    The scale, in lattice steps, is the standard deviation to within 1e-15 when it is at least 2.

    Notes
    -----
    **Privacy.** Added independently to each coordinate of an integer vector with l2 sensitivity s,
    it satisfies s^2 / (2 scale^2) zero-concentrated privacy. For counts that one unit moves by at
    most 1 each, `gaussian.lattice_delta` has the exact curve of epsilon and delta.

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
        """Return `values` plus independent noise: exact and secure, or seeded when `rng` is given.

        Given an int64 vector, returns a new int64 vector; nothing of the noise is kept.
        """
        if self.scale == 0:
            return values.copy()
        if rng is not None:
            return clipped_sum(values, self.simulate(values.shape, rng))
        return clipped_sum(values, exact_gaussian(self.scale, values.size, os.urandom))

    def simulate(self, size: int | tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Return noise alone from a Generator, for seeded fits and for calibration.

        Rejection from the discrete Laplace distribution of about the same scale: with t =
        floor(scale) + 1 a proposal k is kept with probability exp(-(|k| - scale^2 / t)^2 / (2
        scale^2)).
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
    """Return variables given that they are `wanted`: others are drawn again before any is used."""
    drawn = distribution.noise(size, rng)
    while (again := np.flatnonzero(~wanted(drawn))).size:
        fresh = distribution.noise(again.size, rng)
        drawn = drawn.astype(np.promote_types(drawn.dtype, fresh.dtype))
        drawn[again] = fresh
    return drawn


def geometric(scale: float, size: int, rng: Rng) -> Integers:
    """Return variables that are k or more with probability exp(-k / scale), k = 0, 1, 2, ...

    Discrete Laplace variables given that they are not negative, as more than half of them are at
    every scale.
    """
    return conditioned(DiscreteLaplace(scale), lambda drawn: drawn >= 0, size, rng)


def draw_nonzero(scale: float, size: int, rng: Rng) -> Integers:
    """Return discrete Laplace variables given that they are not 0: zeros are drawn again.

    The sign is a fair coin, independent of |k| - 1, which is geometric with ratio exp(-1 / scale).
    """
    return conditioned(DiscreteLaplace(scale), lambda drawn: drawn != 0, size, rng)


def draw_cells(scale: float, cell: float, size: int, rng: Rng) -> AnyArray:
    """Return continuous Laplace(scale) draws, each known as the middle of its cell.

    Given a cell width, cuts the line at the multiples of `cell`. For a Laplace variable the sign is
    a fair coin independent of floor(|w| / cell), which is geometric with ratio exp(-cell / scale).
    The discrete Laplace distribution conditioned on a non-zero value, its magnitude lowered by one,
    has exactly that joint distribution. So the returned middles are within cell / 2 of a continuous
    Laplace vector, exactly in distribution; zeros are drawn again before anything depends on them.
    `cell` is a power of two, so the middles are exact floats; where one has more than 53 binary
    digits they are fractions, in an array of objects.
    """
    steps = draw_nonzero(scale / cell, size, rng)
    halves = np.sign(steps) * (2 * np.abs(steps) - 1)
    if halves.dtype != object and (np.abs(halves) < 2**53).all():
        return np.asarray(halves * (0.5 * cell))
    return np.array([int(half) * Fraction(cell) / 2 for half in halves], dtype=object)


def draw_one_each(sizes: IntArray, rng: Rng) -> IntArray:
    """Return for each group a uniform position in 0..size - 1, independently.

    Given the group sizes, at least 1 and below 2^62. Secure draws take 64 bits of the operating
    system each and reject what would favour small positions, so they are exactly uniform.
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
        # a run of positions that would pass 2^63 is incomplete, and drawn again
        todo = todo[bits - position > np.uint64(2**63) - size]
    return out


def draw_below(total: int, rng: Rng) -> int:
    """Return a uniform integer in 0..total - 1, exactly, for any positive Python integer."""
    if rng is None:
        return random.SystemRandom().randrange(total)
    words = (total.bit_length() + 31) // 32
    limit = (1 << 32 * words) // total * total
    while True:
        bits = int.from_bytes(rng.bytes(4 * words), "little")
        # a run of values that would pass 2^(32 words) is incomplete, and drawn again
        if bits < limit:
            return bits % total
