"""Statistics of choices, and of rankings of at most six items, under given probabilities.

Rankings of m items are choices among m! categories, in lexicographic order of their ranks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.counts import count_orders, signs_of_orders
from privrank.hypotheses.nullmodel import Probabilities, is_uniform
from privrank.hypotheses.nulls import Null
from privrank.hypotheses.nulltables import fingerprint
from privrank.hypotheses.statistic import Statistic
from privrank.mechanisms.statistics.categories import total_variation
from privrank.mechanisms.statistics.omnibus import GRID, Value, drawn_null, omnibus

__all__ = [
    "kendall_norm_from",
    "largest_excess",
    "of_ranks",
    "omnibus_choices_from",
    "omnibus_of_orders",
    "omnibus_rankings_from",
    "total_variation_from",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Order = tuple[int, ...]

ALLOWANCE = 2
"""Lattice steps on top where a value comes from floating-point arithmetic."""

_BITS = 62
"""Counts, times 1024 and the units of the thresholds, stay below 2 to this power."""

_LARGEST = 2**22
"""Choices of two categories up to which the null law is summed exactly."""


@dataclass(frozen=True, slots=True)
class _Thresholds:
    """The expected counts n p_x as whole numbers of 2^-bits, as fine as int64 holds them.

    For n below 2^40 that is 2^-10 or finer.
    """

    n: int
    p: Probabilities

    @property
    def bits(self) -> int:
        return _BITS - GRID.bit_length() - self.n.bit_length()

    def expected(self) -> IntArray:
        expected = np.asarray(self.p, dtype=np.float64) * self.n
        return np.rint(np.ldexp(expected, self.bits)).astype(np.int64)

    def unit(self) -> int:
        """Return the sensitivity of the excess: one choice, or the largest expected count."""
        return min(1 << self.bits, int(self.expected().max()))

    def excess(self, counts: IntArray) -> IntArray:
        """Return floor(1024 sum_x (M_x - t_x)+ / unit) over the last axis of counts."""
        above = np.maximum((counts << self.bits) - self.expected(), 0).sum(axis=-1)
        return np.asarray(GRID * above // self.unit())

    def excess_value(self, counts: IntArray, order: Order) -> int:
        return int(self.excess(counts))

    def largest_value(self, counts: IntArray, order: Order) -> int:
        largest = int(((counts << self.bits) - self.expected()).max())
        return GRID * largest >> self.bits

    def sample(self, rng: np.random.Generator) -> IntArray:
        return rng.multinomial(self.n, _normal(self.p))

    def sizes(self) -> tuple[int, ...]:
        return self.n, len(self.p), fingerprint(self.p)


def _normal(p: Probabilities) -> FloatArray:
    """Return probabilities whose sum is 1 to the rounding that numpy's multinomial allows."""
    cells = np.asarray(p, dtype=np.float64)
    return np.asarray(cells / math.fsum(p))


def total_variation_from(n: int, p: Probabilities) -> Statistic:
    """Return the total variation distance S of the shares from the probabilities p.

    Parameters
    ----------
    n : int
        Number of choices, at least 2.
    p : tuple of float
        Null probabilities of at least two categories, which sum to 1; some may be 0.

    Returns
    -------
    Statistic
        For equal p that of :func:`privrank.mechanisms.statistics.categories.total_variation`, else
        floor(1024 S / Delta) with Delta = min(1 / n, max p).

    Notes
    -----
    **Privacy.** With n S = sum_x (M_x - t_x)+, let a choice move from category a to b. The term
    of b rises by at most 1. That of a, where M_a >= 1, falls by min(1, (M_a - t_a)+), which is at
    least (1 - t_a)+. So the sum rises by at most 1 - (1 - t_a)+ = min(1, t_a), and by symmetry
    falls by at most min(1, t_b): it moves by at most D = min(1, max t), whatever the t_x. Here
    they are n p_x rounded to a multiple of 2^-b, so that n S and D are whole numbers of 2^-b and
    the statistic is exact in integers: numbers at most D apart have floors of 1024 / D times them
    at most 1024 apart. Attained, for instance, where n p_a >= 1: a choice leaves M_a <= t_a for a
    category at or above its expected count.

    **Null.** Exact for two categories and for equal p as far as that is computed, else Monte
    Carlo over multinomial counts. The public sequence is named by n, the number of categories and
    a fingerprint of p, so that the same p has the same draws wherever it comes from.
    """
    name = "total variation distance from the null"
    if is_uniform(p):
        return replace(total_variation(n, len(p)), name=name)
    cells = _Thresholds(n, p)
    null = partial(_null, name, cells, cells.excess_value)
    if len(p) == 2 and n <= _LARGEST:
        null = partial(_two_null, cells)
    return Statistic(
        name=name,
        step=cells.unit() / (1 << cells.bits) / n / GRID,
        sensitivity=GRID,
        value=cells.excess_value,
        null=null,
    )


def _null(name: str, cells: _Thresholds, value: Value, draws: int) -> Null:
    return drawn_null(name, cells.sizes(), value, cells.sample, draws)


def binomial_law(n: int, p: float) -> FloatArray:
    """Return the binomial probabilities of 0..n, by their ratios away from the mode."""
    mode, count = min(math.floor((n + 1) * p), n), np.arange(n + 1)
    if p in (0.0, 1.0):
        return np.asarray(count == mode, dtype=np.float64)
    up, down = count[mode + 1 :], count[mode:0:-1]
    above = np.cumprod((n - up + 1) / up * (p / (1 - p)))
    below = np.cumprod(down / (n - down + 1) * ((1 - p) / p))[::-1]
    law = np.concatenate((below, [1.0], above))
    return np.asarray(law / law.sum())


def _two_null(cells: _Thresholds, draws: int) -> Null:
    count = np.arange(cells.n + 1)
    law = binomial_law(cells.n, float(_normal(cells.p)[0]))
    found = cells.excess(np.stack((count, cells.n - count), axis=1))
    values, place = np.unique(found, return_inverse=True)
    return Null(values, np.asarray(np.bincount(place, law), dtype=np.float64))


def largest_excess(n: int, p: Probabilities) -> Statistic:
    """Return the largest excess of a count over its expectation, max_x (M_x - n p_x).

    Parameters
    ----------
    n : int
        Number of choices, at least 2.
    p : tuple of float
        Null probabilities.

    Returns
    -------
    Statistic
        Its value is the floor of 1024 times that, n p_x rounded to a multiple of 2^-b.

    Notes
    -----
    **Privacy.** Replacing a choice moves every count by at most one, and so the maximum; 1024
    times it moves by at most 1024, and so does its floor, taken in integers. Attained where the
    category of the maximum gains a choice.

    **Null.** Monte Carlo.
    """
    name, cells = "largest excess count", _Thresholds(n, p)
    null = partial(_null, name, cells, cells.largest_value)
    return Statistic(name, 1.0 / GRID, GRID, cells.largest_value, null)


@dataclass(frozen=True, slots=True)
class _Kendall:
    """n / 2 times the Kendall norm of counts by ranking, in steps of 1 / 1024."""

    n: int
    m: int
    p: Probabilities

    def value(self, counts: IntArray, order: Order) -> int:
        signs = signs_of_orders(self.m)
        away = counts @ signs - self.n * (_normal(self.p) @ signs)
        norm = math.sqrt(float(away @ away) / signs.shape[1])
        return math.floor(GRID / 2 * norm)


def kendall_norm_from(n: int, p: Probabilities) -> Statistic:
    """Return how far the mean sign vector is from its null mean, of counts by ranking.

    Parameters
    ----------
    n : int
        Number of rankings, at least 2.
    p : tuple of float
        Null probabilities of all m! rankings of m <= 6 items, in lexicographic order.

    Returns
    -------
    Statistic
        Its value is floor(512 n |mean f - E f|), f the vector of the signs of all C(m, 2) pairs of
        items, divided by sqrt(C(m, 2)). It takes the counts by ranking.

    Notes
    -----
    **Privacy.** |f| = 1, so the mean of f moves by at most 2 / n, and 512 n times its distance
    from any fixed vector by at most 1024. In floating point it is off by less than 0.5 for all n
    below 10^11 (the value is at most 1024 n, with a relative error of 1024 n below 10^-15), so the
    floors differ by at most 1025; 1026 leaves one more.

    **Null.** Monte Carlo.
    """
    name, cells = "Kendall norm from the null", _Thresholds(n, p)
    value = _Kendall(n, items_of(p), p).value
    null = partial(_null, name, cells, value)
    return Statistic(name, 2.0 / n / GRID, GRID + ALLOWANCE, value, null)


def items_of(p: Probabilities) -> int:
    """Return the m of which these are probabilities of all m! rankings."""
    for m in range(2, 7):
        if math.factorial(m) == len(p):
            return m
    raise ValueError(
        f"p must hold a probability for each of the m! rankings of 2 to 6 items, got {len(p)}."
    )


def omnibus_choices_from(n: int, p: Probabilities) -> Statistic:
    """Return the largest of total variation and excess count, on a common scale.

    Parameters
    ----------
    n : int
        Number of choices, at least 2.
    p : tuple of float
        Null probabilities.

    Notes
    -----
    **Privacy.** **Null.** As :func:`privrank.mechanisms.statistics.omnibus.omnibus` of its parts.
    """
    cells = _Thresholds(n, p)
    parts = (_gridded(cells), largest_excess(n, p))
    return omnibus("omnibus of choices from the null", cells.sizes(), parts, cells.sample)


def omnibus_rankings_from(n: int, p: Probabilities) -> Statistic:
    """Return the largest of total variation, Kendall norm and excess count of rankings.

    Parameters
    ----------
    n : int
        Number of rankings, at least 2.
    p : tuple of float
        Null probabilities of all m! rankings of m <= 6 items, in lexicographic order.

    Returns
    -------
    Statistic
        It takes the ranks, shape (n, m).

    Notes
    -----
    **Privacy.** **Null.** As :func:`privrank.mechanisms.statistics.omnibus.omnibus` of its parts:
    replacing a ranking moves one count to another.
    """
    return of_ranks(omnibus_of_orders(n, p))


def omnibus_of_orders(n: int, p: Probabilities) -> Statistic:
    """Return `omnibus_rankings_from` as a statistic of counts by order, in lexicographic order."""
    cells = _Thresholds(n, p)
    parts = (_gridded(cells), largest_excess(n, p), kendall_norm_from(n, p))
    return omnibus("omnibus of rankings from the null", cells.sizes(), parts, cells.sample)


def of_ranks(counted: Statistic) -> Statistic:
    """Return a statistic of counts by order as one of ranks, shape (n, m)."""
    return replace(counted, value=partial(_of_ranks, value=counted.value))


def _gridded(cells: _Thresholds) -> Statistic:
    """Return the total variation distance in 1024 steps per sensitivity, for equal p as well."""
    null = partial(_null, "total variation distance in steps", cells, cells.excess_value)
    return Statistic("total variation distance", 1.0 / GRID, GRID, cells.excess_value, null)


def _of_ranks(ranks: IntArray, order: Order, value: Value) -> int:
    return value(count_orders(ranks), order)
