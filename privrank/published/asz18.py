"""Tests of Acharya, Sun and Zhang (2018), corrected.

Differentially private testing of identity and closeness of distributions: tests of n choices among
k categories in private forms. All have less power than the default and are available only by
``method=``. ``"paninski"`` is the statistic of Algorithm 4 with noise; ``"sigmoid"`` are the random
bits of Algorithms 1 (identity), 2 (closeness) and 3 (two categories). Algorithm 1 is for a uniform
null. The paper treats other nulls by Goldreich's reduction to uniformity, for which there is no
parameter: it is drawn before the test (docs/papers/asz18.md). The default tests the given
probabilities directly. Notation: M_x counts, S total variation distance of the fractions,
sigma(x) = 1 / (1 + e^-x). The alpha of the paper is called `tolerance` here; it is a distance.

Errors in the paper, corrected here, are listed in docs/papers/asz18.md.
"""

import math
from functools import partial

import numpy as np

from privrank.hypotheses.nulls import Order, RandomBit, Statistic, multinomial, null_of, uniform
from privrank.mechanisms.categories import excess
from privrank.plans.samples import Decision
from privrank.privacy.draws import draw_bit
from privrank.release.names import DECISION
from privrank.release.survey import Plan
from privrank.util.arrays import FloatArray, IntArray, Rng


def paninski(n: int, k: int) -> Statistic:
    """Return the number of choices in categories chosen more than once.

    Returns
    -------
    Statistic
        Its value is n - Phi_1, where Phi_1 is the number of categories that were chosen once.

    Notes
    -----
    **Privacy.** A replaced choice leaves one category, whose contribution to Phi_1 changes by at
    most 1, and joins another, so the sensitivity is 2. It is attained for n = 2, if two different
    choices become equal, and for k >= 3 and n >= 3, if the only choice of a category joins the only
    choice of another. For k = 2 and n >= 3 two categories cannot both have one choice, and no move
    from 1 and n - 1 or 2 and n - 2 changes Phi_1 by more than 1, so the sensitivity is 1.

    **Null.** Monte Carlo over multinomial counts. The test has power only in sparse samples, with n
    well below k.

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
    """Return the two-level distribution with smallest mean of n S, and the mean.

    The distribution is given by the size of its first level. At tau = 0 the mean is the mean under
    uniformity.

    E (M - c)+ = n p P(M' >= j - 1) - c P(M >= j), M binomial(n, p), M' binomial(n - 1, p),
    j = floor(c) + 1, c = n / k; a binomial tail is an incomplete beta function.
    """
    from scipy.special import betainc

    sizes = np.arange(1, min(max(1, math.floor(k * (1 - tau))), k - 1) + 1)
    counts = np.array([sizes, k - sizes])
    p = np.clip(1 / k + np.array([[tau], [-tau]]) / counts, 0.0, 1.0)
    least = n // k + 1
    longer = betainc(least, n - least + 1, p)
    shorter = betainc(least - 1, n - least + 1, p) if least > 1 else 1.0
    means = (counts * (n * p * shorter - n / k * longer)).sum(axis=0)
    least_at = int(means.argmin())
    return int(sizes[least_at]), float(means[least_at])


def sigmoid_bit(n: int, k: int, epsilon: float, tolerance: float) -> RandomBit:
    """Return the decision against uniformity; P(reject) = sigma(epsilon Z).

    This test has no controlled size: if noise matters, its type I error is far above any usual
    level, and only the bit is released. The noisy statistic with the same threshold has smaller
    errors of both types.

    Parameters
    ----------
    n, k : int
        Numbers of choices and of categories, both at least 2.
    epsilon : float
        Pure privacy budget, finite.
    tolerance : float
        Total variation distance from uniformity to detect.

    Notes
    -----
    **Privacy.** Z = (S - E S - gap / 2) max(n, k), where S is the total variation distance of the
    fractions from 1 / k. Its sensitivity is min(1 / n, 1 / k), so Z moves by at most 1. With
    sigma(x) = 1 / (1 + e^-x), log sigma has the derivative 1 - sigma(x), which lies in (0, 1), so
    log sigma(epsilon Z) moves by at most epsilon. So does log(1 - sigma(epsilon Z)), because
    1 - sigma(x) = sigma(-x).

    The gap is computed for the least favourable alternative; it replaces the published
    c alpha^2 min(n^2 / k^2, sqrt(n / k), 1 / alpha). The three statistics of Algorithm 1, for
    n <= k, for n <= k / tolerance^2 and for larger n, are equal to this statistic.
    """
    mean = least_mean(n, k, 0.0)[1] / n
    gap = least_mean(n, k, tolerance)[1] / n - mean
    return RandomBit(
        "sigmoid of the distance",
        partial(_distance, n, epsilon, (mean + gap / 2) * max(n, k)),
        ("single category",) if k > 2 else (),
        level=None,
        dealt=False,
    )


def _distance(n: int, epsilon: float, centre: float, counts: IntArray, order: Order) -> float:
    return _sigmoid(epsilon * (int(excess(counts, n)) / min(n, len(counts)) - centre))


def binary_bit(n: int, p: float, epsilon: float, tolerance: float) -> RandomBit:
    """Return the decision about a probability of two categories as a random bit.

    Like `sigmoid_bit`, this test has no controlled size. The noisy count with an exact null,
    :func:`privrank.mechanisms.categories.binomial`, has, and it has more power.

    Parameters
    ----------
    n : int
        Number of choices, at least 2.
    p : float
        Null probability of the first category.
    epsilon : float
        Pure privacy budget, finite.
    tolerance : float
        Distance from p to detect.

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
    """Return the decision whether two samples differ, as a random bit.

    Both samples have n choices. The statistic of the paper is
    sum ((mu - nu)^2 - mu - nu) / (mu + nu) over their counts:
    chi-square minus the number of categories that occur. Here it is chi-square itself, compared
    with a bound on its mean under equality plus two standard deviations.

    Parameters
    ----------
    n, k : int
        Size of each sample and number of categories.
    sensitivity : float
        Sensitivity of the chi-square statistic.

    Notes
    -----
    **Privacy.** Z = (chi-square - offset) / sensitivity moves by at most 1, so the bit of
    probability sigma(epsilon Z) is private as in `sigmoid_bit`.

    **Null.** This is not a test of level alpha: the type I error of the bit depends on n, the
    categories and epsilon, and is up to 40% at common sizes. It has no p-value.
    """
    most = min(k, 2 * n)  # the mean of the statistic under equality is below it
    return partial(_closeness, most + 2.0 * math.sqrt(2.0 * most), sensitivity)


def _closeness(
    offset: float, sensitivity: float, statistics: FloatArray, plan: Plan, rng: Rng
) -> int:
    z = (float(statistics[0]) - offset) / sensitivity
    return draw_bit(_sigmoid(plan.parts[DECISION].epsilon * z), rng)


def _sigmoid(x: float) -> float:
    # 1 / (1 + e^-x), written such that the exponential does not overflow
    small = math.exp(-abs(x))
    return (1.0 if x >= 0 else small) / (1.0 + small)
