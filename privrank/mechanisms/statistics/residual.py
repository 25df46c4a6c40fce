"""What the mean ranks of n >= 2 rankings of m >= 3 items leave over.

The residual norm is the distance, in the space of a kernel, of the rankings from uniformity. Its
kernel sees which items are placed first or last, cycles of preferences and, in its third part, all
else, while mean ranks enter with little weight: these are what the Borda norm is for.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.allorders import signs_of_orders
from privrank.encode.ranks import count_orders
from privrank.hypotheses.nulls import Order, null_of
from privrank.hypotheses.nulltables import uniform_rankings
from privrank.hypotheses.statistic import Statistic
from privrank.mechanisms.statistics.categories import MOST_ITEMS
from privrank.mechanisms.statistics.omnibus import ALLOWANCE, GRID

__all__ = ["most_rankings", "residual_norm", "sees_everything"]

IntArray = NDArray[np.int64]

_WORK = 2**23
"""Operations on words of 64 pairs of items up to which all pairs of rankings are compared."""

_RIDGE = 0.01
"""What is added under the root, in units of n: it bounds the slope, and so rounding errors."""


def sees_everything(n: int, m: int) -> bool:
    """Tell whether the third part of the residual kernel is taken, by n and m alone.

    It is for at most 6 items, whose m! orders can be counted, and where n^2 W is at most 2^23, W
    the words that the m (m - 1) / 2 pairs of items of a ranking fill, 64 to a word.
    """
    return m <= MOST_ITEMS or n <= most_rankings(m)


def most_rankings(m: int) -> int:
    """Return the most rankings of m > 6 items of which the third part is taken."""
    return math.isqrt(_WORK // -(-m * (m - 1) // 128))


def residual_norm(n: int, m: int) -> Statistic:
    """Return the distance of the rankings from uniformity in the space of the residual kernel.

    Returns
    -------
    Statistic
        Its value is floor(1024 sqrt(R^2 + n / 100) / Delta). With tau Kendall's correlation of two
        rankings x and y, C = m (m - 1) / 2, u_a = 2 x_a - (m + 1), q_r the numbers
        (2 r - m - 1)^2, centred and scaled to a sum of squares of 1, and c = (m - 2) / (3 m),

            K(x, y) = sum_a q(x_a) q(y_a) + (tau - <u_x, u_y> / (m C)) / c
                      + 2 (e^tau - 1 - tau) / (e - 2),

        R^2 is the sum of K over all n^2 pairs of rankings, less n^2 times its mean under
        uniformity. Where :func:`sees_everything` says no, K is without its third term.

    Notes
    -----
    **Kernel.** Each term is positive definite. The first is an inner product. In the second, tau is
    that of the sign vectors of the C pairs, scaled to length 1. Their projection on the differences
    phi_a - phi_b has phi = -u / m and the squared length |u|^2 / (m C), so that the term is the
    inner product of what is orthogonal to it. The third is a power series in tau without negative
    coefficients. Under uniformity the first two have mean 0, and E e^tau - 1 =
    e prod_j (1 - z^j) / (j (1 - z)) - 1 with z = exp(-2 / C), as tau = 1 - 2 d / C and the Kendall
    distance d from any ranking is a sum of independent uniform variables on 0, ..., j - 1. As
    relabelling the items maps uniform rankings to uniform ones, the mean over y does not depend on
    x: R is n times the distance of the mean embedding from that of uniform rankings.

    **Privacy.** A replaced ranking moves n times the mean embedding by phi(x) - phi(x'), whose
    squared length is the sum over the terms. First: 2 - 2 sum_a q(x_a) q(x'_a), at most
    2 - 2 sum_j q_(j) q_(m + 1 - j) by the rearrangement inequality. Second: the term is 1 at x = y,
    since |u|^2 / (m C) = 1 - c, and so at least -1: at most 4. Third: it is 2 at x = y and never
    negative, since e^t >= 1 + t: at most 4. So R moves by at most Delta, the root of the sum of the
    three bounds, and so does sqrt(R^2 + n / 100), the length of a vector with one more, fixed,
    coordinate. For m = 3 to 6 and
    n = m! some replacement moves R by .984 Delta or more.

    All but the third term is exact in whole numbers, up to a last division. The third sums whole
    multiples of numbers at most e - 2, off by less than 10^-15 n^2; where the root's slope is at
    most 5 / sqrt(n), that is less than 0.9 steps for n below 10^7. So the floors differ by at most
    1026.

    **Null.** Monte Carlo over uniform rankings.

    **Power.** If R is 0 for a population whose mean ranks are equal, its mean embedding under the
    second term, tau, and with the third under e^tau are those of uniform rankings. That kernel is
    characteristic: the population is uniform. So together with the plain Borda norm the statistic
    with all three terms is consistent against every departure.
    """
    value = partial(_residual, n=n, m=m)
    return Statistic(
        name="residual norm",
        step=_constants(m, sees_everything(n, m))[2] / GRID,
        sensitivity=GRID + ALLOWANCE,
        value=value,
        null=partial(null_of, "residual norm", (n, m), value, _rankings(n, m)),
    )


def _rankings(n: int, m: int) -> partial[IntArray]:
    return partial(uniform_rankings, n=n, m=m)


@lru_cache(maxsize=64)
def _constants(m: int, third: bool) -> tuple[int, float, float]:
    """Return 9 times the squared length of the centred q, E e^tau - 1, and Delta."""
    pairs = m * (m - 1) // 2
    centred = np.sort(3 * (2 * np.arange(1, m + 1) - m - 1) ** 2 - (m * m - 1)).tolist()
    square = sum(one * one for one in centred)
    opposite = sum(one * other for one, other in zip(centred, reversed(centred), strict=True))
    bounds = 2 - 2 * opposite / square + 4 + 4 * third
    logs = (
        math.log(math.expm1(-2 * j / pairs) / (j * math.expm1(-2 / pairs))) for j in range(1, m + 1)
    )
    return square, math.expm1(1 + math.fsum(logs)), math.sqrt(bounds)


def _residual(ranks: IntArray, order: Order, n: int, m: int) -> int:
    pairs, third = m * (m - 1) // 2, sees_everything(n, m)
    square, mean, delta = _constants(m, third)
    away = 2 * ranks - (m + 1)
    ends = 3 * (away * away).sum(axis=0) - n * (m * m - 1)
    total = _square(away.sum(axis=0))
    apart, times, discordant = _discordances(ranks, third)
    # n^2 mean tau = n^2 - 2 D / C, D the sum of the distances of all ordered pairs
    cyclic = (n * n * pairs - 2 * discordant) * m - total
    found = _square(ends) / square
    found += cyclic / (m * pairs) * (3 * m / (m - 2))
    if third:
        tau = 1 - 2 * apart / pairs
        rest = math.fsum((times * (np.expm1(tau) - tau)).tolist()) - n * n * mean
        found += 2 * rest / (math.e - 2)
    return math.floor(GRID * math.sqrt(max(found, 0.0) + _RIDGE * n) / delta)


def _square(whole: IntArray) -> int:
    """Return the sum of squares of whole numbers, of any size."""
    if len(whole) * int(np.abs(whole).max()) ** 2 < 2**63:
        return int(whole @ whole)
    return sum(one * one for one in whole.tolist())


def _discordances(ranks: IntArray, third: bool) -> tuple[IntArray, IntArray, int]:
    """Return the distances met, how many ordered pairs of rankings have each, and their sum.

    By whichever way is the shortest; where the third term is left out, perhaps the sum alone.
    """
    from privrank.kernels import rankings as kernels

    n, m = ranks.shape
    most = m * (m - 1) // 2
    if m <= MOST_ITEMS:
        counted = count_orders(ranks)
        met = np.flatnonzero(counted)
        found = kernels.discordance_counts(_words(m)[:, met], counted[met], most)
        found[0] += int(counted @ (counted - 1)) // 2
    elif 8 * n * math.log2(m) < m or (third and 4 * n < m):
        apart, times = np.unique(_each_distance(ranks), return_counts=True)
        return np.append(apart, 0), np.append(2 * times, n), 2 * int(apart @ times)
    elif third:
        words = np.ascontiguousarray(kernels.packed_pairs(ranks).T)
        found = kernels.discordance_counts(words, np.ones(n, dtype=np.int64), most)
    else:
        ahead = kernels.pair_counts(ranks)
        none = np.empty(0, dtype=np.int64)
        return none, none, sum((ahead * ahead.T).sum(axis=1).tolist())
    apart = np.flatnonzero(found)
    times = 2 * found[apart]
    return np.append(apart, 0), np.append(times, n), int(apart @ times)


def _each_distance(ranks: IntArray) -> IntArray:
    """Return the distances of all pairs of rankings, where these are few."""
    from privrank.kernels import rankings as kernels

    n, m = ranks.shape
    if 8 * n * math.log2(m) < m:
        return kernels.pairwise_distances(ranks)
    return kernels.differing_pairs(kernels.packed_pairs(ranks))


@lru_cache(maxsize=MOST_ITEMS)
def _words(m: int) -> NDArray[np.uint64]:
    """Return one column for each of the m! orders: its pairs, as bits."""
    signs = signs_of_orders(m)
    return np.asarray(((signs < 0) @ (1 << np.arange(signs.shape[1])))[None], dtype=np.uint64)
