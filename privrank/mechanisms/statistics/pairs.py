"""Statistics of disjoint random pairs of items.

The first d = floor(m / 2) pairs of a public uniform permutation of the items are compared: S_p is
the sum over the n rankings of +1 where the first item of pair p is ranked ahead and -1 else.
Under uniformity the S_p are independent, each the sum of n fair signs, whatever the permutation.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nulls import Null
from privrank.hypotheses.nulltables import null_draws
from privrank.hypotheses.statistic import Statistic

__all__ = ["pair_norm", "pair_squares", "pair_sums"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Order = tuple[int, ...]

GRID = 1024
"""Lattice steps in the sensitivity of the pair norm."""

_CUT = 36.0
"""exp(-36) < 2.4e-16: the probability that a bound may leave out."""

_LARGEST = 2**22
"""Lattice points beyond which the null law is drawn instead of convolved."""

_CELLS = 2**22
"""Comparisons held in memory at a time."""


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


def _squared_norm(ranks: IntArray, order: Order) -> int:
    sums = pair_sums(ranks, order)
    return int(sums @ sums)


def _unit(n: int) -> int:
    """Return the step of S_p^2: (2 j)^2 = 4 j^2, but (2 j + 1)^2 = 8 (j (j + 1) / 2) + 1."""
    return 8 if n % 2 else 4


def pair_squares(n: int, m: int) -> Statistic:
    """Return the sum of the squared pair counts, in steps of 4, or of 8 when n is odd.

    Parameters
    ----------
    n : int
        Number of rankings, at least 2.
    m : int
        Number of items, at least 2.

    Returns
    -------
    Statistic
        Its value is (sum_p S_p^2 - d (n mod 2)) / u with u = 4 for even n, 8 for odd n.

    Notes
    -----
    **Privacy.** A replaced ranking moves each S_p by -2, 0 or 2, and then S_p^2 by
    |4 S_p - 4| or |4 S_p + 4|, where the new value is again in [-n, n]: S_p -> S_p - 2 requires
    2 - n <= S_p <= n, so the change is at most 4 (n - 1). Over the pairs that is 4 d (n - 1), a
    multiple of u. Attained: n equal rankings, one of which is reversed.

    **Null.** Exact where the lattice has at most 2^22 points within reach, else Monte Carlo.

    References
    ----------
    Busa-Fekete, Fotakis and Zampetakis (2021), Private and non-private uniformity testing for
    ranking data: the statistic of their non-private test and of their Laplace mechanism.
    """
    unit = _unit(n)
    return Statistic(
        name="sum of squared pair counts",
        step=float(unit),
        sensitivity=4 * (m // 2) * (n - 1) // unit,
        value=partial(_lattice_value, n=n),
        null=partial(_squares_null, n, m // 2),
    )


def _lattice_value(ranks: IntArray, order: Order, n: int) -> int:
    return (_squared_norm(ranks, order) - len(order) // 2 * (n % 2)) // _unit(n)


def pair_norm(n: int, m: int) -> Statistic:
    """Return the norm |S| of the pair counts, floored on a grid of 1024 steps per sensitivity.

    Parameters
    ----------
    n : int
        Number of rankings, at least 2.
    m : int
        Number of items, at least 2.

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

    **Null.** The image of the law of the sum of squares.
    """
    d = m // 2
    return Statistic(
        name="pair norm",
        step=2 * math.sqrt(d) / GRID,
        sensitivity=GRID,
        value=_norm_value,
        null=partial(_norm_null, n, d),
    )


def _norm_value(ranks: IntArray, order: Order) -> int:
    return math.isqrt(_squared_norm(ranks, order) * GRID**2 // (4 * (len(order) // 2)))


def _one_pair(n: int, d: int) -> tuple[IntArray, FloatArray]:
    """Return the values of S_p^2 and their probabilities, but for less than exp(-36) / d.

    Hoeffding: P(|S_p| > t) <= 2 exp(-t^2 / 2 n). The probabilities are products of ratios of
    neighbouring binomial ones, from the middle outwards, and so keep their digits.
    """
    reach = math.sqrt(2 * n * (_CUT + math.log(2 * d)))
    ahead = np.arange((n + 1) // 2, min(n, int((n + reach) // 2)) + 1)
    ratios = (n - ahead[:-1]) / (ahead[:-1] + 1)
    weights = np.concatenate(([1.0], np.cumprod(ratios)))
    if n % 2 == 0:
        weights[1:] *= 2  # all but S_p = 0 have two signs
    return (2 * ahead - n) ** 2, weights / weights.sum()


def _squares_law(n: int, d: int) -> tuple[IntArray, FloatArray] | None:
    """Return the values of sum_p S_p^2 and their probabilities; None on too large a lattice.

    Notes
    -----
    **Null.** The d-fold convolution of the law of one pair on a circle of N lattice points: it
    errs by no more than the probability outside any window of N points. E exp(s S_p) <=
    exp(n s^2 / 2) gives E exp(l S_p^2 / n) <= (1 - 2 l)^(-1/2), as if S_p^2 / n were chi-square,
    so that sum_p S_p^2 / n > d + 2 sqrt(d t) + 2 t has probability at most exp(-t) (Laurent and
    Massart 2000, lemma 1). A sum of non-negative variables lies below its mean by x with
    probability at most exp(-x^2 / (2 sum of second moments)), and E (S_p^2 / n)^2 = 3 - 2 / n, so
    sum_p S_p^2 / n < d - sqrt(6 d t) has probability at most exp(-t).
    """
    squares, weights = _one_pair(n, d)
    if d == 1:
        return squares, weights
    odd, unit = n % 2, _unit(n)
    low = max(0, math.floor(n * (d - math.sqrt(6 * d * _CUT)) / unit) - 1)
    high = math.ceil(n * (d + 2 * math.sqrt(d * _CUT) + 2 * _CUT) / unit)
    high = min(high, d * (n * n - odd) // unit)
    if high - low >= _LARGEST:
        return None
    from scipy.fft import irfft, next_fast_len, rfft

    points = next_fast_len(high - low + 1, real=True)
    lattice = np.bincount((squares - odd) // unit % points, weights, minlength=points)
    law = np.roll(irfft(rfft(lattice) ** d, points), -(low % points))[: high - low + 1]
    kept = np.flatnonzero(law > 2**-52 * law.max())  # the rest is nothing, or roundoff
    return (low + kept) * unit + d * odd, law[kept] / law[kept].sum()


def _draw_squares(rng: np.random.Generator, n: int, d: int) -> int:
    sums = 2 * rng.binomial(n, 0.5, d) - n
    return int(sums @ sums)


def _law_or_draws(n: int, d: int, draws: int) -> tuple[IntArray, FloatArray | None]:
    """Return the values of sum_p S_p^2 and their probabilities, or Monte Carlo draws and None."""
    law = _squares_law(n, d)
    if law is not None:
        return law
    return null_draws("pair squares", (n, d), partial(_draw_squares, n=n, d=d), draws), None


def _squares_null(n: int, d: int, draws: int) -> Null:
    squares, weights = _law_or_draws(n, d, draws)
    lattice = (squares - d * (n % 2)) // _unit(n)
    return Null.of_draws(lattice) if weights is None else Null(lattice, weights)


def _norm_null(n: int, d: int, draws: int) -> Null:
    squares, weights = _law_or_draws(n, d, draws)
    roots = np.array([math.isqrt(v * GRID**2 // (4 * d)) for v in squares.tolist()], dtype=np.int64)
    if weights is None:
        return Null.of_draws(roots)
    values, place = np.unique(roots, return_inverse=True)
    return Null(values, np.bincount(place, weights).astype(np.float64))
