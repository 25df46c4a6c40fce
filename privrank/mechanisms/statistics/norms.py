"""Norms of sums over n >= 2 rankings of m >= 2 items: of rank vectors, and of signs of pairs.

The rank vector of a ranking is 2 r - (m + 1), r its ranks; scaled by sqrt(3 / (m (m + 1))) its
norm is sqrt(m - 1). Friedman's statistic is the squared norm of their sum.

Pairs: the first d = floor(m / 2) pairs of a public uniform permutation of the items are compared.
S_p is the sum over the n rankings of +1 where the first item of pair p is ranked ahead and -1 else.
Under uniformity the S_p are independent, each the sum of n fair signs, whatever the permutation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses import exact
from privrank.hypotheses.nulls import Null, Order, null_of
from privrank.hypotheses.nulltables import uniform_rankings
from privrank.hypotheses.statistic import Statistic
from privrank.mechanisms.capped import capped_norm
from privrank.mechanisms.statistics.omnibus import ALLOWANCE, GRID

__all__ = ["borda_norm", "pair_norm", "pair_squares_null", "pair_sums", "plain_norm"]

IntArray = NDArray[np.int64]

CERTIFIED = 200
"""Up to this many rankings or items, null draws carry their certificate as data do."""

_CELLS = 2**22
"""Comparisons held in memory at a time."""


def borda_norm(n: int, m: int) -> Statistic:
    """Return the capped norm, or the plain one where that is better, as n and m alone decide.

    Notes
    -----
    **Privacy.** Of the capped norm, on an integer grid. The value computed lies in [f - g, f] for
    every data set, f being the capped norm with sensitivity A + B and g = (A + B) / 1000
    (:mod:`privrank.mechanisms.capped`), so it moves by at most A + B + g, 1025.1 steps of
    (A + B) / 1024. Its floor moves by at most 1026 when the error of floating-point arithmetic
    stays below 0.9 steps, some 10^10 times what it is.

    **Null.** Monte Carlo over uniform rankings. Where the certificate takes most of the time, the
    draws do without it: at such sizes it holds on uniform rankings but for a share below 10^-3, and
    where it holds the value is the same bit for bit.
    """
    norm = capped_norm(n, m)
    if norm is None:
        return plain_norm(n, m)
    step = norm.sensitivity / GRID
    value, drawn = partial(_capped, norm.value, step), partial(_capped, norm.fast, step)
    if min(n, m) <= CERTIFIED:
        drawn = value
    return Statistic(
        name="capped Borda norm",
        step=step,
        sensitivity=GRID + ALLOWANCE,
        value=value,
        null=partial(null_of, "capped borda norm", (n, m), drawn, _rankings(n, m)),
        simulated=drawn,
    )


def _capped(norm: Callable[[IntArray], float], step: float, ranks: IntArray, order: Order) -> int:
    return math.floor(norm(ranks) / step)


def _rankings(n: int, m: int) -> Callable[[np.random.Generator], IntArray]:
    return partial(uniform_rankings, n=n, m=m)


def plain_norm(n: int, m: int) -> Statistic:
    """Return the norm of the sum of the rank vectors on an integer grid.

    Notes
    -----
    **Privacy.** The norm of a sum moves by at most the distance of two rank vectors, which is
    largest for opposite rankings: twice the norm, whose square is m (m^2 - 1) / 3. With Q the
    squared norm of the sum, an integer, and s = 4 m (m^2 - 1) / 3 the square of that distance, the
    statistic is floor(1024 sqrt(Q / s)), taken exactly as the integer square root of
    floor(1024^2 Q / s). Numbers at most 1024 apart have floors at most 1024 apart. Tight: one
    ranking of two replaced by its reverse moves sqrt(Q / s) from 1 to 0.

    **Null.** Monte Carlo over uniform rankings.
    """
    value = partial(_plain, 4 * m * (m * m - 1) // 3)
    return Statistic(
        name="Borda norm",
        step=2.0 * math.sqrt(m - 1) / GRID,
        sensitivity=GRID,
        value=value,
        null=partial(null_of, "borda norm", (n, m), value, _rankings(n, m)),
    )


def _plain(square: int, ranks: IntArray, order: Order) -> int:
    n, m = ranks.shape
    total = 2 * ranks.sum(axis=0) - n * (m + 1)
    norm = sum(int(entry) ** 2 for entry in total)
    return math.isqrt(GRID * GRID * norm // square)


def pair_sums(ranks: IntArray, order: Order) -> IntArray:
    """Return S_1, ..., S_d from ranks of shape (n, m) and a permutation of range(m)."""
    n, m = ranks.shape
    first, second = np.array(order)[: 2 * (m // 2)].reshape(-1, 2).T
    ahead = np.zeros(m // 2, dtype=np.int64)
    rows = max(1, _CELLS // m)
    for start in range(0, n, rows):
        block = ranks[start : start + rows]
        ahead += np.count_nonzero(block[:, first] < block[:, second], axis=0)
    return np.asarray(2 * ahead - n)


def pair_norm(n: int, m: int) -> Statistic:
    """Return the norm |S| of the pair counts, floored on a grid of 1024 steps per sensitivity.

    Returns
    -------
    Statistic
        Its value is floor(1024 |S| / (2 sqrt(d))), by an exact integer square root.

    Notes
    -----
    **Privacy.** A replaced ranking moves every S_p by at most 2, so |S| by at most 2 sqrt(d) and
    x = 1024 |S| / (2 sqrt(d)) by at most 1024. Since floor(x + 1024) = floor(x) + 1024, the floor
    moves by at most 1024. No rounding enters: for x^2 = S'S 1024^2 / (4 d) and whole j,
    j <= x iff j^2 <= floor(x^2), so floor(x) is the integer square root of floor(x^2). Attained:
    n equal rankings, one of which is reversed.

    **Null.** The image of the null distribution of the sum of squares.
    """
    d = m // 2
    return Statistic(
        name="pair norm",
        step=2 * math.sqrt(d) / GRID,
        sensitivity=GRID,
        value=_pair_norm,
        null=partial(_pair_norm_null, n, d),
    )


def _pair_norm(ranks: IntArray, order: Order) -> int:
    return _root(_square(pair_sums(ranks, order), order), len(order) // 2)


def _root(square: int, d: int) -> int:
    return math.isqrt(square * GRID**2 // (4 * d))


def _pair_norm_null(n: int, d: int, draws: int) -> Null:
    def roots(squares: IntArray) -> IntArray:
        return np.array([_root(square, d) for square in squares.tolist()], dtype=np.int64)

    return pair_squares_null(n, d, draws).mapped(roots)


def pair_squares_null(n: int, d: int, draws: int) -> Null:
    """Return the null distribution of sum_p S_p^2, exact up to 2^22 lattice points within reach."""
    known = partial(exact.pair_squares, n, d)
    return null_of("pair squares", (n, d), _square, partial(_signs, n, d), draws, exact=known)


def _square(sums: IntArray, order: Order) -> int:
    return int(sums @ sums)


def _signs(n: int, d: int, rng: np.random.Generator) -> IntArray:
    return 2 * rng.binomial(n, 0.5, d) - n
