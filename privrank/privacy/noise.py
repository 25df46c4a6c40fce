"""Distributions of noise: scales from a budget, moments; the only place that draws privacy noise.

Secure noise is made of random bits of the operating system by `samplers`, whose distributions are
exact. Scales are chosen in exact fractions. Seeded noise, from a caller's
``numpy.random.Generator``, follows the same distribution but may not be published: whoever holds
the seed subtracts the noise.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privrank.privacy import samplers
from privrank.util.arrays import FloatArray, IntArray

NoiseSource = Literal["secure", "seeded", "none", "respondents"]

LARGEST_SHUFFLE = 2**16
"""Elements of the permutations that `draw_shuffles` can draw."""

_LARGEST_SCALE = 2.0**52
"""Beyond this the noise no longer fits 64-bit integers with a margin."""


def source_of(rng: np.random.Generator | None, epsilon: float) -> NoiseSource:
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


def clipped_sum(values: IntArray, noise: samplers.Integers) -> IntArray:
    """Return the exact sum, moved to the end of 64 bits where it passes it: post-processing."""
    ends = np.iinfo(np.int64)
    noise = noise.reshape(values.shape)
    room = ends.max - samplers.LARGEST
    if noise.dtype != object and ((-room <= values) & (values <= room)).all():
        return values + noise
    total = (int(value) + int(step) for value, step in zip(values.flat, noise.flat, strict=True))
    inside = [min(max(number, ends.min), ends.max) for number in total]
    return np.array(inside, dtype=np.int64).reshape(values.shape)


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

    def pmf(self, k: IntArray) -> NDArray[np.float64]:
        """Return P(k)."""
        magnitude = np.abs(np.asarray(k))
        if self.scale == 0:
            return np.asarray(magnitude == 0, dtype=np.float64)
        return np.asarray(math.tanh(0.5 / self.scale) * np.exp(-magnitude / self.scale))

    def tail(self, k: IntArray) -> NDArray[np.float64]:
        """Return P(noise >= k): q^k / (1 + q) for k > 0, by symmetry 1 - q^(1 - k) / (1 + q) else.

        Given integers, with q = exp(-1 / scale); scale 0 gives the indicator of k <= 0.
        """
        steps = np.asarray(k, dtype=np.int64)
        if self.scale == 0:
            return np.asarray(steps <= 0, dtype=np.float64)
        outer = np.exp(-np.maximum(steps, 1 - steps) / self.scale) / (1 + math.exp(-1 / self.scale))
        return np.asarray(np.where(steps > 0, outer, 1.0 - outer))

    def draw(self, values: IntArray, rng: np.random.Generator | None) -> IntArray:
        """Return `values` plus independent noise: exact and secure, or seeded when `rng` is given.

        Given an int64 vector, returns a new int64 vector; nothing of the noise is kept.
        """
        values = np.asarray(values, dtype=np.int64)
        if self.scale == 0:
            return values.copy()
        return clipped_sum(values, self.noise(values.size, rng))

    def noise(self, size: int, rng: np.random.Generator | None) -> samplers.Integers:
        """Return noise alone, whole numbers of any size; scale 0 has none to draw."""
        if rng is not None:
            return self.simulate(size, rng)
        return samplers.laplace(self.scale, size, os.urandom)

    def simulate(self, size: int | tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Return noise alone from a Generator, for seeded fits and for calibration.

        The difference of two geometric variables with success probability 1 - exp(-1 / scale).
        """
        if self.scale == 0:
            return np.zeros(size, dtype=np.int64)
        success = -math.expm1(-1 / self.scale)
        return rng.geometric(success, size) - rng.geometric(success, size)


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

    def draw(self, values: IntArray, rng: np.random.Generator | None) -> IntArray:
        """Return `values` plus independent noise: exact and secure, or seeded when `rng` is given.

        Given an int64 vector, returns a new int64 vector; nothing of the noise is kept.
        """
        values = np.asarray(values, dtype=np.int64)
        if self.scale == 0:
            return values.copy()
        if rng is not None:
            return clipped_sum(values, self.simulate(values.shape, rng))
        return clipped_sum(values, samplers.gaussian(self.scale, values.size, os.urandom))

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
            kept = rng.random(todo.size) < np.exp(-0.5 * deviation**2)
            flat[todo[kept]] = k[kept]
            todo = todo[~kept]
        return out


def conditioned(
    distribution: DiscreteLaplace,
    wanted: Callable[[samplers.Integers], NDArray[np.bool_]],
    size: int,
    rng: np.random.Generator | None,
) -> samplers.Integers:
    """Return variables given that they are `wanted`: others are drawn again before any is used."""
    drawn = distribution.noise(size, rng)
    while (again := np.flatnonzero(~wanted(drawn))).size:
        fresh = distribution.noise(again.size, rng)
        drawn = drawn.astype(np.promote_types(drawn.dtype, fresh.dtype))
        drawn[again] = fresh
    return drawn


def geometric(scale: float, size: int, rng: np.random.Generator | None) -> samplers.Integers:
    """Return variables that are k or more with probability exp(-k / scale), k = 0, 1, 2, ...

    Discrete Laplace variables given that they are not negative, as more than half of them are at
    every scale.
    """
    return conditioned(DiscreteLaplace(scale), lambda drawn: drawn >= 0, size, rng)


def draw_nonzero(scale: float, size: int, rng: np.random.Generator | None) -> samplers.Integers:
    """Return discrete Laplace variables given that they are not 0: zeros are drawn again.

    The sign is a fair coin, independent of |k| - 1, which is geometric with ratio exp(-1 / scale).
    """
    return conditioned(DiscreteLaplace(scale), lambda drawn: drawn != 0, size, rng)


def draw_cells(
    scale: float, cell: float, size: int, rng: np.random.Generator | None
) -> NDArray[Any]:
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


def draw_bit(probability: float, rng: np.random.Generator | None) -> int:
    """Return 1 with the given probability, else 0, to within 2^-53."""
    uniform = random.SystemRandom().random() if rng is None else rng.random()
    return int(uniform < probability)


def draw_uniforms(rows: int, columns: int, rng: np.random.Generator | None) -> FloatArray:
    """Return independent uniform numbers in [0, 1), multiples of 2^-53, shape (rows, columns)."""
    if rng is not None:
        return np.asarray(rng.random((rows, columns)))
    words = np.frombuffer(os.urandom(8 * rows * columns), dtype=np.uint64).reshape(rows, columns)
    return np.asarray((words >> np.uint64(11)) * 2.0**-53)


def draw_one_each(sizes: IntArray, rng: np.random.Generator | None) -> IntArray:
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


def draw_rows(
    group: IntArray, size: IntArray, most: int, rng: np.random.Generator | None
) -> IntArray:
    """Return how many of each kind of rows are kept where `most` rows of every group are drawn.

    Given the group of each kind of rows, not negative, groups in one piece; and how many rows of a
    kind there are. Of a group with no more than `most` rows all are kept.

    Notes
    -----
    **Statistic.** Rows are numbered, kind after kind. Uniform numbers of a group are drawn until
    the wanted number of them differ. Nothing but how many differ decides when that ends, so every
    permutation of a group's rows leaves the distribution of the drawn set as it is: all sets of
    that size are equally likely, and so are their complements. What is drawn is whichever is
    smaller, the rows that are kept or those that are left out; memory is needed for no others.
    Groups are independent.
    """
    # `ends` number the rows of all kinds; `total` are the rows of each group
    last = np.flatnonzero(np.diff(group, append=-1))
    place = np.repeat(np.arange(len(last)), np.diff(last, prepend=-1))
    ends = np.cumsum(size)
    total = np.diff(ends[last], prepend=0)
    kept = np.minimum(total, min(most, 2**62))
    few = np.minimum(kept, total - kept)
    drawn, missing = np.zeros(0, dtype=np.int64), few
    while missing.any():
        # so many more numbers for each group as are missing; repeated ones are dropped
        who = np.repeat(np.arange(len(last)), missing)
        fresh = (ends[last] - total)[who] + draw_one_each(total[who], rng)
        drawn = np.sort(np.concatenate((drawn, fresh)))
        drawn = drawn[np.diff(drawn, prepend=-1) > 0]
        found = np.searchsorted(ends[last], drawn, side="right")
        missing = few - np.bincount(found, minlength=len(last))
    taken = np.bincount(np.searchsorted(ends, drawn, side="right"), minlength=len(size))
    return np.where((few == kept)[place], taken, size - taken)


def draw_orders(rows: int, columns: int, rng: np.random.Generator | None) -> IntArray:
    """Return independent uniform permutations of 0..columns - 1, one per row of a matrix.

    Each row orders independent 64-bit keys. Given that the keys of a row differ, all orders are
    equally likely; a row with equal keys is drawn again.
    """
    orders = np.empty((rows, columns), dtype=np.int64)
    todo = np.arange(rows)
    while todo.size:
        shape = (todo.size, columns)
        if rng is None:
            keys = np.frombuffer(os.urandom(8 * todo.size * columns), dtype=np.uint64)
        else:
            keys = rng.integers(2**64, size=shape, dtype=np.uint64)
        keys = keys.reshape(shape)
        order = np.argsort(keys, axis=1)
        orders[todo] = order
        sorted_keys = np.take_along_axis(keys, order, axis=1)
        todo = todo[(sorted_keys[:, 1:] == sorted_keys[:, :-1]).any(axis=1)]
    return orders


def draw_below(total: int, rng: np.random.Generator | None) -> int:
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


def draw_permutation(size: int, rng: np.random.Generator | None) -> tuple[int, ...]:
    """Return a uniform permutation of range(size), to break ties between noisy counts."""
    if rng is not None:
        return tuple(int(k) for k in rng.permutation(size))
    order = list(range(size))
    random.SystemRandom().shuffle(order)
    return tuple(order)


def draw_shuffles(rows: int, columns: int, rng: np.random.Generator | None) -> NDArray[np.int32]:
    """Return independent uniform permutations of range(columns), shape (rows, columns).

    Secure draws take 32 bits of the operating system per element. A row whose words would favour
    some places is drawn again as a whole, so permutations are exactly uniform. With at most
    `LARGEST_SHUFFLE` columns that happens to fewer than half of the rows, mostly to very few.
    """
    if columns > LARGEST_SHUFFLE:
        raise ValueError(f"a shuffle has at most {LARGEST_SHUFFLE:,} elements, not {columns:,}.")
    from privrank.kernels import rankings as kernels

    out = np.empty((rows, columns), dtype=np.int32)
    todo = np.arange(rows)
    while todo.size:
        if rng is None:
            words = np.frombuffer(os.urandom(4 * todo.size * columns), dtype=np.uint32)
        else:
            words = rng.integers(0, 2**32, todo.size * columns, dtype=np.uint32)
        out[todo], fair = kernels.shuffles(words.reshape(todo.size, columns))
        todo = todo[~fair]
    return out


def secret_generator() -> np.random.Generator:
    """Return a generator for secret randomness other than noise, to be used once and forgotten.

    Philox, which enciphers a counter, with its key and the counter's start, 384 bits in all, from
    the operating system. It serves distributions that take more than a shuffle of few elements;
    whoever uses it assumes that by what is released, one rounded p-value, its numbers cannot be
    distinguished from independent uniform ones.
    """
    # 128 bits are the key, the other 256 where the counter starts
    bits = int.from_bytes(os.urandom(48), "little")
    philox = np.random.Philox(key=bits & (2**128 - 1), counter=bits >> 128)
    return np.random.Generator(philox)
