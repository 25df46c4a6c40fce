"""Published tests of identity in forms that are private, all weaker than `fit`: for comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.counts import excess
from privrank.hypotheses.interval import least_mean
from privrank.hypotheses.nulls import Null
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.mechanisms.statistics.omnibus import drawn_null
from privrank.privacy.noise import draw_uniforms

__all__ = [
    "COINS",
    "CELLS",
    "binary_bit",
    "paninski",
    "random_reduction",
    "reduce_to_uniform",
    "sigmoid_bit",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Order = tuple[int, ...]

COINS = 4
"""Random numbers per choice in the reduction to uniformity."""

CELLS = 6
"""Categories after the reduction to uniformity, per category before it."""


def paninski(n: int, k: int) -> Statistic:
    """Return how many choices are of a category that was chosen again.

    Parameters
    ----------
    n, k : int
        Numbers of choices and of equally likely categories, both at least 2.

    Returns
    -------
    Statistic
        Its value is n - Phi_1, Phi_1 the number of categories that were chosen once.

    Notes
    -----
    **Privacy.** A replaced choice leaves one category, whose share in Phi_1 moves by at most 1,
    and joins another: the sensitivity is 2. Attained for n = 2, where two choices that differ come
    to agree, and for k >= 3 and n >= 3 by a choice alone that joins another one alone. For k = 2
    and n >= 3 two categories cannot both be of one choice, and no move from 1 and n - 1 or 2 and
    n - 2 changes Phi_1 by more than 1: the sensitivity is 1.

    **Null.** Monte Carlo over multinomial counts. It has power in sparse samples only, n well
    below k.

    References
    ----------
    Paninski (2008), https://doi.org/10.1109/TIT.2008.928987; Acharya, Sun and Zhang (2018),
    Differentially Private Testing of Identity and Closeness of Discrete Distributions, Algorithm 4.
    """
    sensitivity = 1 if k == 2 and n > 2 else 2
    return Statistic("repeated choices", 1.0, sensitivity, _repeated, partial(_repeated_null, n, k))


def _repeated(counts: IntArray, order: Order) -> int:
    return int(counts.sum() - np.count_nonzero(counts == 1))


def _even(rng: np.random.Generator, n: int, k: int) -> IntArray:
    return rng.multinomial(n, np.full(k, 1 / k))


def _repeated_null(n: int, k: int, draws: int) -> Null:
    return drawn_null("repeated choices", (n, k), _repeated, partial(_even, n=n, k=k), draws)


def reduce_to_uniform(counts: IntArray, p: tuple[float, ...], uniforms: FloatArray) -> IntArray:
    """Return counts by 6 k categories that are equally likely if those by k had probabilities p.

    A test of uniformity of the result, such as `total_variation(n, 6 * k)`, tests identity with p.
    It loses most of the power of `total_variation_from(n, p)`.

    Parameters
    ----------
    counts : ndarray of int64, shape (k,)
        Choices by category, n in all.
    p : tuple of float
        Null probabilities of the k categories.
    uniforms : ndarray of float64, shape (n, 4)
        Secret random numbers in [0, 1), fresh for every choice: drawn like noise. Used twice, or
        shared by choices, they undo both the privacy and the uniformity.

    Returns
    -------
    ndarray of int64, shape (6 k,)

    Notes
    -----
    **Null.** With probability 1/2 a choice is replaced by a uniform one. It then has probability
    q_i = p_i / 2 + 1 / (2 k) under the null. With x_i = 6 k q_i = 3 k p_i + 3 it is kept with
    probability floor(x_i) / x_i and moved to one of floor(x_i) cells of its own, each of which so
    has probability q_i / x_i = 1 / (6 k). What is not kept is spread over the 6 k - sum floor(x_i)
    cells that are left, evenly: all 6 k cells have the same probability. (If none is left, all x_i
    are whole and everything is kept.) Exact but for the rounding of p and of the random numbers,
    to within 2^-50.

    Distances shrink to between 3/8 and 1/2 of what they were: the replacement halves them, and
    x_i >= 3 gives floor(x_i) / x_i >= 3/4.

    **Privacy.** Every choice is mapped by random numbers of its own. Couple those of neighbours:
    for every outcome the two results differ in the cell of one choice, so what is private for
    choices among 6 k categories stays so, mixed over the outcomes.

    References
    ----------
    Goldreich (2016), The uniform distribution is complete with respect to testing identity to a
    fixed distribution; Acharya, Sun and Zhang (2018).
    """
    k = len(p)
    codes = np.repeat(np.arange(k), counts)
    mixed, other, kept, spread = np.asarray(uniforms, dtype=np.float64).T
    codes = np.where(mixed < 0.5, codes, _cell(other, k))
    share = 3 * k * np.asarray(p, dtype=np.float64) + 3
    whole = np.floor(share + 1e-12).astype(np.int64)  # a whole number may be rounded down
    start = np.cumsum(whole) - whole
    used = int(whole.sum())
    own = start[codes] + _cell(spread, whole[codes])
    rest = used + _cell(spread, CELLS * k - used)
    stays = (kept * share[codes] < whole[codes]) | (used == CELLS * k)
    return np.bincount(np.where(stays, own, rest), minlength=CELLS * k)


def random_reduction(
    p: tuple[float, ...], counts: IntArray, rng: np.random.Generator | None
) -> IntArray:
    """Return :func:`reduce_to_uniform` of the counts, with secret random numbers."""
    return reduce_to_uniform(counts, p, draw_uniforms(int(counts.sum()), COINS, rng))


def _cell(uniforms: FloatArray, size: IntArray | int) -> IntArray:
    last = np.maximum(np.asarray(size) - 1, 0)
    return np.asarray(np.minimum((uniforms * size).astype(np.int64), last))


@dataclass(frozen=True, slots=True)
class _Sigmoid:
    n: int
    k: int
    epsilon: float
    centre: float

    def probability(self, counts: IntArray, order: Order) -> float:
        z = int(excess(counts, self.n)) / min(self.n, self.k) - self.centre
        return _sigmoid(self.epsilon * z)


def sigmoid_bit(
    n: int, k: int, epsilon: float, tolerance: float, c: float | None = None
) -> RandomBit:
    """Return the decision against uniformity as one random bit, of probability sigma(epsilon Z).

    Not a test of a level: where noise matters its type I error is far above any usual one, and
    nothing but the bit is released. The noisy statistic with the same threshold errs less often on
    both sides.

    Parameters
    ----------
    n, k : int
        Numbers of choices and of categories, both at least 2.
    epsilon : float
        Pure privacy budget, finite.
    tolerance : float
        Total variation distance from uniformity that is to be detected.
    c : float, optional
        Constant of the published gap c alpha^2 min(n^2 / k^2, sqrt(n / k), 1 / alpha) in the mean
        of the statistic; by default the gap itself, at the least favourable alternative.

    Returns
    -------
    RandomBit

    Notes
    -----
    **Privacy.** Z = (S - E S - gap / 2) max(n, k) with S the total variation distance of the shares
    from 1 / k, whose sensitivity is min(1 / n, 1 / k): Z moves by at most 1. With
    sigma(x) = 1 / (1 + e^-x), log sigma has the derivative 1 - sigma(x), which lies in (0, 1), so
    log sigma(epsilon Z) moves by at most epsilon; and so does log(1 - sigma(epsilon Z)), because
    1 - sigma(x) = sigma(-x).

    References
    ----------
    Acharya, Sun and Zhang (2018), Algorithm 1; its three statistics, for n <= k, for
    n <= k / tolerance^2 and beyond, are this one.
    """
    mean = least_mean(n, k, 0.0)[1] / n
    if c is None:
        gap = least_mean(n, k, tolerance)[1] / n - mean
    elif n <= k:
        gap = c * (tolerance * n / k) ** 2
    else:
        gap = c * min(tolerance**2 * math.sqrt(n / k), tolerance)
    centre = (mean + gap / 2) * max(n, k)
    return RandomBit("sigmoid of the distance", _Sigmoid(n, k, epsilon, centre).probability)


@dataclass(frozen=True, slots=True)
class _BinaryBit:
    n: int
    p: float
    epsilon: float
    tolerance: float

    def probability(self, counts: IntArray, order: Order) -> float:
        z = abs(int(counts[0]) - self.n * self.p) - self.tolerance * self.n / 2
        return _sigmoid(self.epsilon * z)


def binary_bit(n: int, p: float, epsilon: float, tolerance: float) -> RandomBit:
    """Return the decision against a probability of two categories as one random bit.

    Not a test of a level, as `sigmoid_bit` is not: the noisy count with an exact null law,
    :func:`privrank.mechanisms.statistics.binary.binomial`, is one, and has more power.

    Parameters
    ----------
    n : int
        Number of choices, at least 2.
    p : float
        Null probability of the first category.
    epsilon : float
        Pure privacy budget, finite.
    tolerance : float
        Distance from p that is to be detected.

    Returns
    -------
    RandomBit

    Notes
    -----
    **Privacy.** Z = |M - n p| - n tolerance / 2 moves by at most 1 with the count M of the first
    category, so the bit of probability sigma(epsilon Z) is private as in `sigmoid_bit`.

    References
    ----------
    Acharya, Sun and Zhang (2018), Algorithm 3.
    """
    return RandomBit("sigmoid of the count", _BinaryBit(n, p, epsilon, tolerance).probability)


def _sigmoid(x: float) -> float:
    # 1 / (1 + e^-x), whose powers of e do not overflow
    small = math.exp(-abs(x))
    return (1.0 if x >= 0 else small) / (1.0 + small)
