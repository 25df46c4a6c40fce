"""Differences between groups: simultaneous intervals for items and comparisons, from noisy totals.

The total of an item in a group is the sum of a score between 0 and 1 for each unit: 1 for units
that chose a category and 0 for all others, or (rank - 1) / (m - 1) for a ranked item.
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
        Positions of the groups; the mean of several groups is the mean over all their units.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]

    def weights(self, sizes: FloatArray) -> FloatArray:
        """Return the weight of each group's total."""
        weights = np.zeros(len(sizes))
        for groups, sign in ((self.first, 1.0), (self.second, -1.0)):
            weights[list(groups)] = sign / sizes[list(groups)].sum()
        return weights


def contrasts(groups: int) -> tuple[Contrast, ...]:
    """Return each group against the rest, for at least three groups, and all pairs."""
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
    """Return half widths of simultaneous intervals for the differences of mean scores.

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
        Probability that at least one interval fails to cover; all intervals share it evenly.

    Returns
    -------
    ndarray of float64, shape (C, k)
        By comparison, in the order of `contrasts`, and item.

    Notes
    -----
    **Statistic.** There are J = C k differences, and each interval may fail with probability
    alpha / J. By Bonferroni's inequality all cover simultaneously with probability 1 - alpha, for
    any distributions of the groups, any dependence between items, and any decision of a test. The
    error of an estimate is the sampling error, assumed normal, plus the noise of the groups'
    totals. The noise is independent of the sampling error and between groups;
    :func:`noisy_quantiles` returns the quantile of the sum.

    A score between 0 and 1 with mean p has variance at most p (1 - p), which choices attain (Bhatia
    and Davis). The mean is unknown: p (1 - p) is replaced by its maximum between the ends
    (c +- 2 s + z^2 / 2) / (n + z^2), where c is the noisy total clipped to 0..n, s the standard
    deviation of its noise, z the normal quantile at 1 - alpha / (2 J) and n the size of the group.
    These are the centres of Wilson's intervals, which add z^2 answers, half of them 0 and half 1.
    Without these answers a group of ten in which no one chose a category would have an error of 0.

    Given the sizes, the mean over several groups has the variance
    sum n_g^2 (v_g / n_g) / (sum n_g)^2.
    """
    weights = [contrast.weights(sizes) for contrast in contrasts(len(sizes))]
    level = alpha / (len(weights) * totals.shape[1])
    z = -float(ndtri(0.5 * level))
    # the share is known up to twice the deviation of the noise; p (1 - p) is largest at the value
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
