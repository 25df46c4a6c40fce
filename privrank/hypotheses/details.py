"""What differs between groups: intervals for all items and comparisons at once, from noisy totals.

An item's total in a group is a sum of scores between 0 and 1, one for each unit: 1 for those who
chose a category and 0 for all others, or (rank - 1) / (m - 1) for a ranked item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from privrank.hypotheses.tails import DetailDistribution, noisy_quantiles
from privrank.util.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Contrast:
    """A difference of the mean scores of two sets of groups.

    Parameters
    ----------
    first, second : tuple of int
        Places of the groups; the mean of several is that over all their units.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]

    def weights(self, sizes: FloatArray) -> FloatArray:
        """Return what each group's total counts for."""
        weights = np.zeros(len(sizes))
        for groups, sign in ((self.first, 1.0), (self.second, -1.0)):
            weights[list(groups)] = sign / sizes[list(groups)].sum()
        return weights


def contrasts(groups: int) -> tuple[Contrast, ...]:
    """Return each group against the rest, where there are three or more, and all pairs."""
    every = range(groups)
    pairs = [Contrast((g,), (h,)) for g, h in combinations(every, 2)]
    if groups == 2:
        return tuple(pairs)
    return (*[Contrast((g,), tuple(h for h in every if h != g)) for g in every], *pairs)


def half_widths(
    totals: FloatArray,
    sizes: FloatArray,
    distribution: DetailDistribution,
    step: float,
    alpha: float,
) -> FloatArray:
    """Return half widths of intervals around the noisy differences of mean scores, all at once.

    Parameters
    ----------
    totals : ndarray of float64, shape (G, k)
        Noisy sums of scores between 0 and 1, by group and item.
    sizes : ndarray of float64, shape (G,)
        Numbers of units.
    distribution : DetailDistribution
        Distribution of the noise in each group's totals.
    step : float
        Size of a lattice step of the noise in scores.
    alpha : float
        Probability that any interval may miss, shared evenly by all.

    Returns
    -------
    ndarray of float64, shape (C, k)
        By comparison, in the order of `contrasts`, and item.

    Notes
    -----
    **Statistic.** There are J = C k differences, and each may be missed with probability alpha / J.
    So by Bonferroni's inequality all hold at once with probability 1 - alpha, whatever the groups'
    distributions are, how the items depend on each other, and what a test has said. An error is
    that of sampling, taken as normal, plus the noise of the groups' totals, independent of it and
    of each other, whose quantile is :func:`noisy_quantiles`'.

    A score between 0 and 1 with mean p varies by at most p (1 - p), which choices attain (Bhatia
    and Davis). The mean is not known: p (1 - p) is taken at its largest between the ends
    (c +- 2 s + z^2 / 2) / (n + z^2). There c is the noisy total brought within 0..n and s the
    standard deviation of its noise. z is the normal quantile at 1 - alpha / (2 J), n the
    group's size. These are the centres of Wilson's intervals: z^2 further answers, half of them
    0 and half 1, without which a group of ten in which nobody chose a category would have no
    error at all.

    Given the sizes, the mean over several groups has the variance
    sum n_g^2 (v_g / n_g) / (sum n_g)^2.
    """
    weights = [contrast.weights(sizes) for contrast in contrasts(len(sizes))]
    level = alpha / (len(weights) * totals.shape[1])
    z = -float(ndtri(0.5 * level))
    # the share is known up to twice the deviation of the noise: p (1 - p) is largest at the value
    # between these ends that is closest to 1/2
    unsure = 2.0 * step * math.sqrt(distribution.variance)
    ends = [
        (np.clip(totals + shift, 0.0, sizes[:, None]) + 0.5 * z * z) / (sizes[:, None] + z * z)
        for shift in (-unsure, unsure)
    ]
    middle = np.clip(0.5, ends[0], ends[1])
    variances = sizes[:, None] * middle * (1.0 - middle)
    # Var of a difference of means: sum_g w_g^2 n_g p_g (1 - p_g); groups are independent
    widths = [
        noisy_quantiles(np.sqrt(w**2 @ variances), step * np.abs(w[w != 0]), distribution, level)
        for w in weights
    ]
    return np.array(widths)
