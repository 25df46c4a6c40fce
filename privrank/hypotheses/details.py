"""What differs between groups: intervals for all items and comparisons at once, from noisy totals.

An item's total in a group is a sum of scores between 0 and 1, one for each unit: 1 for those who
chose a category and 0 for all others, or (rank - 1) / (m - 1) for a ranked item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrank.hypotheses.nulltables import public_generator
from privrank.hypotheses.publicnoise import body_points, body_scale
from privrank.privacy.knorm import PermutohedronNoise
from privrank.privacy.netnoise import ZeroSumLaplace
from privrank.privacy.noise import DiscreteLaplace
from privrank.util.solvers import bracket

__all__ = ["Contrast", "DetailLaw", "contrasts", "half_widths", "noisy_quantiles"]

FloatArray = NDArray[np.float64]
DetailLaw = DiscreteLaplace | ZeroSumLaplace | PermutohedronNoise

_POINTS, _GROUPS = 2**16, 128
"""Entries of points of the body of a noise, and groups of similar size they are averaged in."""

_PERIOD, _FARTHEST = 30.0, 8.5
"""Standard deviations of the whole error after which its distribution is wrapped around, and those
of its normal part up to which a characteristic function is summed."""

_LEAST = 1.0 / 30.0
"""Least share of the whole error's standard deviation that the normal part is given."""

_DEVIATIONS = 33
"""Standard deviations of the normal part at which quantiles are computed; between them a straight
line."""


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
        found = np.zeros(len(sizes))
        for groups, sign in ((self.first, 1.0), (self.second, -1.0)):
            found[list(groups)] = sign / sizes[list(groups)].sum()
        return found


def contrasts(groups: int) -> tuple[Contrast, ...]:
    """Return each group against the rest, where there are three or more, and all pairs."""
    every = range(groups)
    pairs = [Contrast((g,), (h,)) for g, h in combinations(every, 2)]
    if groups == 2:
        return tuple(pairs)
    return (*[Contrast((g,), tuple(h for h in every if h != g)) for g in every], *pairs)


def half_widths(
    totals: FloatArray, sizes: FloatArray, law: DetailLaw, step: float, alpha: float
) -> FloatArray:
    """Return half widths of intervals around the noisy differences of mean scores, all at once.

    Parameters
    ----------
    totals : ndarray of float64, shape (G, k)
        Noisy sums of scores between 0 and 1, by group and item.
    sizes : ndarray of float64, shape (G,)
        Numbers of units.
    law : DetailLaw
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
    **Statistic.** There are J = C k differences, and each may be missed with probability alpha / J,
    so that by Bonferroni's inequality all hold at once with probability 1 - alpha, whatever the
    groups' distributions are, how the items depend on each other, and what a test has said. An
    error is that of sampling, taken as normal, plus the noise of the groups' totals, independent of
    it and of each other, whose quantile is :func:`noisy_quantiles`'.

    A score between 0 and 1 with mean p varies by at most p (1 - p), which choices attain (Bhatia
    and Davis). The mean is not known: p (1 - p) is taken at its largest between the ends
    (c +- 2 s + z^2 / 2) / (n + z^2), where c is the noisy total brought within 0..n, s the standard
    deviation of its noise, z the normal quantile at 1 - alpha / (2 J) and n the group's size. These
    are the centres of Wilson's intervals: z^2 further answers, half of them 0 and half 1, without
    which a group of ten in which nobody chose a category would have no error at all. Given the
    sizes, the mean over several groups has the variance sum n_g^2 (v_g / n_g) / (sum n_g)^2.
    """
    asked = contrasts(len(sizes))
    level = alpha / (len(asked) * totals.shape[1])
    z = -float(ndtri(0.5 * level))
    unsure = 2.0 * step * math.sqrt(law.variance)
    ends = [
        (np.clip(totals + shift, 0.0, sizes[:, None]) + 0.5 * z * z) / (sizes[:, None] + z * z)
        for shift in (-unsure, unsure)
    ]
    middle = np.clip(0.5, ends[0], ends[1])
    variances = sizes[:, None] * middle * (1.0 - middle)
    found = []
    for contrast in asked:
        weights = contrast.weights(sizes)
        sds = np.sqrt(weights**2 @ variances)
        found.append(noisy_quantiles(sds, step * np.abs(weights[weights != 0]), law, level))
    return np.array(found)


def noisy_quantiles(
    sds: FloatArray, weights: FloatArray, law: DetailLaw, level: float
) -> FloatArray:
    """Return the x with P(|Z + sum_j w_j N_j| > x) = level, for each standard deviation of Z.

    Given the deviations of a normal Z, positive, and what each of several independent draws of the
    noise, in lattice steps, counts for: N_j is one entry of a draw.

    Notes
    -----
    **Statistic.** By the Fourier series of the distribution wrapped around a period of 30 standard
    deviations of the sum, which moves a tail by less than 1e-12: with phi its characteristic
    function and h = 2 pi / period, P(|X| <= x) = h x / pi + (2 / pi) sum_k sin(k h x) phi(k h) / k.
    Noise is taken at its continuous limit. A normal part below a thirtieth of the whole deviation
    is raised to that, which widens by less than a thousandth. As a function of the deviation of Z
    the quantile is convex and computed at a few values; lines between them lie less than 1e-3
    above.
    """
    noise = float((weights**2).sum()) * law.variance
    sds = np.maximum(sds, _LEAST * np.sqrt(sds**2 + noise))
    known = np.unique(sds)
    if len(known) > _DEVIATIONS:
        known = np.linspace(known[0], known[-1], _DEVIATIONS)
    whole = np.sqrt(known**2 + noise)
    step = 2.0 * math.pi / (_PERIOD * whole.max())
    k = np.arange(1, math.ceil(_FARTHEST / (known.min() * step)) + 1)
    phi = np.exp(-0.5 * np.square(known[:, None] * (k * step)))
    for weight in np.unique(weights):
        phi *= _transform(law, weight * step * k) ** int((weights == weight).sum())

    def exceeded(size: FloatArray) -> NDArray[np.bool_]:
        waves = np.sin(np.outer(size * step, k)) / k
        outside = 1.0 - size * step / math.pi - 2.0 / math.pi * (waves * phi).sum(axis=1)
        return np.asarray(outside > level)

    _, high = bracket(exceeded, np.zeros(len(known)), 0.5 * _PERIOD * whole, 32)
    return np.asarray(np.interp(sds, known, high))


def _transform(law: DetailLaw, t: FloatArray) -> FloatArray:
    """Return the characteristic function of one entry of the noise, in lattice steps.

    Noise on a body is a Gamma(m) radius of scale s times an entry u of a uniform point, from a
    public sample: the mean over u of the real part of (1 - i t s u)^-m.
    """
    if law.variance == 0:
        return np.ones_like(t)
    if isinstance(law, DiscreteLaplace):
        return np.asarray(1.0 / (1.0 + np.square(law.scale * t)))
    angle = np.multiply.outer(t, body_scale(law) * _entries(law))
    size = np.exp(-0.5 * law.items * np.log1p(np.square(angle)))
    return np.asarray((size * np.cos(law.items * np.arctan(angle))).mean(axis=1))


@lru_cache(maxsize=8)
def _entries(law: ZeroSumLaplace | PermutohedronNoise) -> FloatArray:
    """Return sizes of entries of points of a distribution's body, root mean squares of groups."""
    rng = public_generator("bodies of details", law.items)
    entries = np.sort(np.abs(body_points(law, math.ceil(_POINTS / law.items), rng)).ravel())
    even = entries[: len(entries) // _GROUPS * _GROUPS].reshape(_GROUPS, -1)
    return np.asarray(np.sqrt(np.square(even).mean(axis=1)))
