"""Acharya, Sun and Zhang (2018), Private testing of identity and closeness of distributions.

Their tests of n choices among k categories in forms that are private, all weaker than the default:
reached by ``method=`` alone. ``"paninski"`` is the statistic of Algorithm 4 with noise,
``"sigmoid"`` the random bits of Algorithms 1 (identity), 2 (closeness) and 3 (two categories).
Algorithm 1 is for a uniform null. The paper reaches other nulls through Goldreich's reduction to
uniformity, for which there is no parameter: it is drawn before the test, as docs/papers/asz18.md
shows. The default tests given probabilities directly. Notation: M_x counts, S total variation
distance of the shares, sigma(x) = 1 / (1 + e^-x); their alpha is the `tolerance` here, a distance.

What is wrong in the paper, and corrected here, is listed in docs/papers/asz18.md.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from privrank.hypotheses.nullmodel import multinomial, uniform
from privrank.hypotheses.nulls import Order, null_of
from privrank.hypotheses.statistic import Decision, RandomBit, Statistic
from privrank.mechanisms.categories import excess
from privrank.privacy.draws import draw_bit
from privrank.release.names import DECISION
from privrank.release.plan import Plan
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.checks import Rng


def paninski(n: int, k: int) -> Statistic:
    """Return how many choices are of a category that was chosen again.

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
    Paninski (2008), https://doi.org/10.1109/TIT.2008.928987.
    """
    name = "repeated choices"
    return Statistic(
        name,
        step=1.0,
        sensitivity=1 if k == 2 and n > 2 else 2,
        value=_repeated,
        null=partial(null_of, name, (n, k), _repeated, partial(multinomial, n, uniform(k))),
        blind_to=("dense choices",),
        consistent=None,
    )


def _repeated(counts: IntArray, order: Order) -> int:
    return int(counts.sum() - np.count_nonzero(counts == 1))


def least_mean(n: int, k: int, tau: float) -> tuple[int, float]:
    """Return the size at which the mean statistic under two-level distributions is least, and it.

    The mean is that of n S, which at tau = 0 is that under uniformity.

    E (M - c)+ = n p P(M' >= j - 1) - c P(M >= j), M binomial(n, p), M' binomial(n - 1, p),
    j = floor(c) + 1, c = n / k; a binomial tail is an incomplete beta function.
    """
    from scipy.special import betainc

    sizes = np.arange(1, min(max(1, math.floor(k * (1 - tau))), k - 1) + 1)
    least = n // k + 1

    def mean(p: FloatArray) -> FloatArray:
        p = np.clip(p, 0.0, 1.0)
        longer = betainc(least, n - least + 1, p)
        shorter = betainc(least - 1, n - least + 1, p) if least > 1 else 1.0
        return np.asarray(n * p * shorter - n / k * longer)

    means = sizes * mean(1 / k + tau / sizes) + (k - sizes) * mean(1 / k - tau / (k - sizes))
    least_at = int(means.argmin())
    return int(sizes[least_at]), float(means[least_at])


def sigmoid_bit(n: int, k: int, epsilon: float, tolerance: float) -> RandomBit:
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

    Notes
    -----
    **Privacy.** Z = (S - E S - gap / 2) max(n, k) with S the total variation distance of the shares
    from 1 / k, whose sensitivity is min(1 / n, 1 / k): Z moves by at most 1. With
    sigma(x) = 1 / (1 + e^-x), log sigma has the derivative 1 - sigma(x), which lies in (0, 1), so
    log sigma(epsilon Z) moves by at most epsilon. So does log(1 - sigma(epsilon Z)), because
    1 - sigma(x) = sigma(-x).

    The gap is that of the least favourable alternative, in place of the published
    c alpha^2 min(n^2 / k^2, sqrt(n / k), 1 / alpha). The three statistics of Algorithm 1, for
    n <= k, for n <= k / tolerance^2 and beyond, are this one.
    """
    mean = least_mean(n, k, 0.0)[1] / n
    gap = least_mean(n, k, tolerance)[1] / n - mean
    centre = (mean + gap / 2) * max(n, k)
    return RandomBit(
        "sigmoid of the distance",
        partial(_distance, n, epsilon, centre),
        ("single category",) if k > 2 else (),
        level=None,
        dealt=False,
    )


def _distance(n: int, epsilon: float, centre: float, counts: IntArray, order: Order) -> float:
    return _sigmoid(epsilon * (int(excess(counts, n)) / min(n, len(counts)) - centre))


def binary_bit(n: int, p: float, epsilon: float, tolerance: float) -> RandomBit:
    """Return the decision against a probability of two categories as one random bit.

    Not a test of a level, as `sigmoid_bit` is not: the noisy count with an exact null,
    :func:`privrank.mechanisms.categories.binomial`, is one, and has more power.

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

    Notes
    -----
    **Privacy.** Z = |M - n p| - n tolerance / 2 moves by at most 1 with the count M of the first
    category, so the bit of probability sigma(epsilon Z) is private as in `sigmoid_bit`.
    """
    return RandomBit(
        "sigmoid of the count",
        partial(_count, n * p, epsilon, tolerance * n / 2),
        blind_to=(),
        level=None,
        dealt=False,
    )


def _count(mean: float, epsilon: float, room: float, counts: IntArray, order: Order) -> float:
    return _sigmoid(epsilon * (abs(int(counts[0]) - mean) - room))


def closeness_bit(n: int, k: int, sensitivity: float) -> Decision:
    """Return how two samples of n choices each are said to differ in one random bit.

    Their statistic is sum ((mu - nu)^2 - mu - nu) / (mu + nu) over the counts of the two samples:
    chi-square less the number of categories that occur. Here it is chi-square itself, compared with
    a bound on its mean under equality and two standard deviations.

    Parameters
    ----------
    n, k : int
        Size of each sample and number of categories.
    sensitivity : float
        Of the chi-square statistic.

    Notes
    -----
    **Privacy.** Z = (chi-square - offset) / sensitivity moves by at most 1, so the bit of
    probability sigma(epsilon Z) is private as in `sigmoid_bit`.

    **Null.** Not a test of level alpha: how often the bit errs depends on n, the categories and
    epsilon, up to two in five at common sizes. It carries no p-value.
    """
    most = min(k, 2 * n)  # the mean of the statistic under equality is below it
    return partial(_closeness, most + 2.0 * math.sqrt(2.0 * most), sensitivity)


def _closeness(
    offset: float, sensitivity: float, statistics: FloatArray, plan: Plan, rng: Rng
) -> int:
    z = (float(statistics[0]) - offset) / sensitivity
    return draw_bit(_sigmoid(plan.parts[DECISION].epsilon * z), rng)


def _sigmoid(x: float) -> float:
    # 1 / (1 + e^-x), whose powers of e do not overflow
    small = math.exp(-abs(x))
    return (1.0 if x >= 0 else small) / (1.0 + small)
