"""Statistics of the Kendall distance: between two rankings, and to the order of the items.

Counts of up to C(m, 2) per ranking are divided by a public lattice step h, so that 17 standard
deviations of the null law take at most about 2^20 steps and its law stays quick to compute. With
x = a / h and y = b / h >= x, floor(y) <= floor(x + ceil(y - x)) = floor(x) + ceil(y - x): a
statistic that moves by at most D moves by at most ceil(D / h) once floored.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.distributions import kendall
from privrank.hypotheses.nulls import Null
from privrank.hypotheses.statistic import Statistic

__all__ = ["central_distance", "two_rankings", "two_rankings_tolerance"]

IntArray = NDArray[np.int64]
Order = tuple[int, ...]

_LATTICE = 2**20
"""Lattice steps over which the null law is spread, about."""


def _cell(n: int, m: int) -> int:
    return max(1, math.ceil(17 * math.sqrt(n * kendall.variance(m, 0.0)) / _LATTICE))


def two_rankings(m: int) -> Statistic:
    """Return the number of concordant pairs of two rankings, in lattice steps.

    Parameters
    ----------
    m : int
        Number of items, at least 2.

    Returns
    -------
    Statistic
        Its value is floor(C / h) with C the number of pairs of items in the same order.

    Notes
    -----
    **Privacy.** C lies in [0, m (m - 1) / 2] and takes both ends when one of two equal rankings
    is reversed, so its sensitivity is m (m - 1) / 2; floored, that over h, rounded up.

    **Null.** Relative to the first ranking the second is uniform, and reversing it maps C to the
    Kendall distance. So C has the law of the distance of a uniform ranking, which is exact here.

    References
    ----------
    Busa-Fekete, Fotakis and Zampetakis (2021), Private and non-private uniformity testing for
    ranking data: the test from two samples.
    """
    cell = _cell(1, m)
    return Statistic(
        name="concordant pairs of two rankings",
        step=float(cell),
        sensitivity=-(-(m * (m - 1) // 2) // cell),
        value=partial(_concordant, cell=cell),
        null=partial(_concordant_null, m, cell),
    )


def _concordant(ranks: IntArray, order: Order, cell: int) -> int:
    from privrank.kernels import rankings as kernels

    m = len(order)
    return (m * (m - 1) // 2 - int(kernels.kendall_distance(ranks[0], ranks[1]))) // cell


def _concordant_null(m: int, cell: int, draws: int) -> Null:
    return Null(*kendall.uniform_sum(m, 1, 0, cell))


def two_rankings_tolerance(m: int, alpha: float) -> float | None:
    """Return the least distance from uniformity at which two rankings are proved to be enough.

    Parameters
    ----------
    m : int
        Number of items, at least 2.
    alpha : float
        Level, and bound on the probability of a miss; in (0, 1).

    Returns
    -------
    float or None
        Total variation distance of the Mallows model with
        phi = 1 - 8 / (m + 7 - sqrt(12 m log(2 / alpha))), 1.0 where only double precision keeps
        it from 1; None where no phi > 0 meets the condition, such as for m <= 46 at level 0.05.

    Notes
    -----
    The condition of Busa-Fekete, Fotakis and Zampetakis (2021) is phi at most that number: the
    distance to which it corresponds tends to 1 exponentially fast in m.
    """
    room = m + 7 - math.sqrt(12 * m * math.log(2 / alpha))
    if room <= 8:
        return None
    return kendall.total_variation(m, -math.log1p(-8 / room), 0.0)


def central_distance(n: int, m: int) -> Statistic:
    """Return how far the mean Kendall distance to the items' own order is from its null mean.

    Parameters
    ----------
    n : int
        Number of rankings, at least 2.
    m : int
        Number of items, at least 2.

    Returns
    -------
    Statistic
        Its value is floor(|2 sum_l d(ranking l, order of the items) - n m (m - 1) / 2| / (2 h)).

    Notes
    -----
    **Privacy.** A distance lies in [0, m (m - 1) / 2], so the absolute value moves by at most
    m (m - 1) when a ranking is replaced, and by m (m - 1) / (2 h), rounded up, once floored.
    Attained for h = 1: all n rankings in the order of the items, one of which is reversed.

    **Null.** X = sum_l d has a law symmetric about c = n m (m - 1) / 4. The value is v > 0 where
    X - ceil(c) or floor(c) - X is in [v h, (v + 1) h): two equal probabilities, both exact.

    References
    ----------
    Busa-Fekete, Fotakis and Zampetakis (2021), the "MA" of their experiments, made two-sided. It
    presumes that the order of the items is the centre, or its reversal.
    """
    cell = _cell(n, m)
    return Statistic(
        name="distance to the order of the items",
        step=2.0 * cell,
        sensitivity=-(-(m * (m - 1) // 2) // cell),
        value=partial(_off_centre, cell=cell),
        null=partial(_off_centre_null, n, m, cell),
    )


def _off_centre(ranks: IntArray, order: Order, cell: int) -> int:
    from privrank.kernels import rankings as kernels

    n, m = ranks.shape
    total = int(kernels.kendall_to_center(ranks, np.arange(1, m + 1)).sum())
    return int(abs(2 * total - n * (m * (m - 1) // 2)) // (2 * cell))


def _off_centre_null(n: int, m: int, cell: int, draws: int) -> Null:
    top = n * (m * (m - 1) // 2)
    cells, weights = kendall.uniform_sum(m, n, -(-top // 2), cell)
    above = 2 * weights[cells >= 0]
    above[0] = max(0.0, 1.0 - float(above[1:].sum()))  # c itself, if whole, counts once
    return Null(cells[cells >= 0], above)
