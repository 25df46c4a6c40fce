"""What an order of rankings loses in the local model: predicted from public numbers.

For n rankings from a Mallows model in which neighbours of the centre are placed alike by a share q
of all rankings: dispersion phi = (1 - q) / q. The excess of an order is how much more the rankings
disagree with it than with the best one, as a share of all pairs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privrank.distributions.kendall import pair_probability
from privrank.local.rounds import mean_comparisons

__all__ = ["break_even", "kwiksort_excess", "pairs_excess"]

FloatArray = NDArray[np.float64]

AGREEMENTS = np.linspace(0.55, 0.95, 41)
"""Shares of neighbours placed alike at which the two are compared."""

TIE = 1e-4
"""Predicted excesses that differ by less are equal."""


def _majorities(m: int, agreement: float) -> FloatArray:
    """Return by how much the majority of items 1, 2, ... places apart exceeds one half."""
    theta = math.log(agreement / (1.0 - agreement))
    return np.array([pair_probability(gap, theta) - 0.5 for gap in range(1, m)])


def pairs_excess(precision: FloatArray, agreement: float) -> float:
    """Return the excess predicted for an order that fits noisy fractions of pairs.

    Given one over the variance of the noise in each pair's fraction, a matrix; 0 on the diagonal.

    Notes
    -----
    **Statistic.** Exchanging two items of the centre changes the fraction of their own pair by 2 d
    and those of each with any third item k by p_ik - p_jk. The exchanged order fits normal noise
    better than the centre with probability Phi(-|change| / 2), the norm in standard deviations of
    the noise, at a loss of 2 d. Where fractions follow small differences of scores this is the
    error of an order by Borda scores, which average over m - 1 pairs; where neighbours differ much,
    that of their own pair.
    """
    m = len(precision)
    d = np.concatenate([[0.0], _majorities(m, agreement)])
    gap = np.arange(m) - np.arange(m)[:, None]
    p = np.sign(gap) * d[np.abs(gap)]
    # the sum over k of precision_ik (p_ik - p_jk)^2
    one = (precision * p**2).sum(axis=1)[:, None] - 2.0 * (precision * p) @ p.T + precision @ p.T**2
    change = np.sqrt(np.maximum(one + one.T + 2.0 * precision * p**2, 0.0))
    first, second = np.triu_indices(m, 1)
    terms = 2.0 * p[first, second] * ndtr(-0.5 * change[first, second])
    return float(terms.sum()) / (m * (m - 1) / 2)


def kwiksort_excess(m: int, n: float, gain: float, agreement: float) -> float:
    """Return the excess predicted for KwikSort, each of n people asked for one of its comparisons.

    Notes
    -----
    **Statistic.** Items g places apart, with majority 1/2 + d_g, are compared with probability
    2 / (g + 1): if one of the two is the first pivot of the g + 1 items from the one to the other.
    There are c = n / :func:`privrank.local.rounds.mean_comparisons` answers for each comparison,
    each with mean 2 gain d_g on the scale of -1 and 1 and variance at most 1, so that it fails with
    probability about Phi(-2 gain d_g c^(1/2)). The item is then sorted among the others on the
    wrong side of its pivot, next to which it ends: a loss of 2 (d_1 + ... + d_g). Failures are
    taken one at a time.
    """
    d, gap = _majorities(m, agreement), np.arange(1, m)
    failing = ndtr(-2.0 * gain * d * math.sqrt(n / mean_comparisons(m)))
    terms = (m - gap) * 2.0 / (gap + 1) * failing * np.cumsum(2.0 * d)
    return float(terms.sum()) / (m * (m - 1) / 2)


def break_even(m: int, n: float, gain: float, variance: float) -> float | None:
    """Return the agreement of neighbours from which on KwikSort is predicted to lose less.

    Given the gain of its answers and the variance of the rival's fractions. Losses that differ by
    less than .01 % of all pairs count as equal; None where no agreement up to .95 has KwikSort lose
    less than the rival. An order of all answers loses less than the sort, half as much where that
    is little and nearly as much where it is a lot: so this is on the rival's side.
    `docs/validation/local_adaptive.md` has what simulated runs lose.
    """
    rival = (1.0 - np.eye(m)) / variance
    lead = np.array(
        [pairs_excess(rival, float(q)) - kwiksort_excess(m, n, gain, float(q)) for q in AGREEMENTS]
    )
    behind = np.flatnonzero(lead < -TIE)
    ahead = np.flatnonzero(lead > TIE)
    ahead = ahead[ahead > behind.max(initial=-1)]
    return float(AGREEMENTS[ahead[0]]) if len(ahead) else None
