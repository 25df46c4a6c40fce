"""Intervals of what a noisy consensus states: pair fractions, Borda and Kemeny scores, ranks.

All of it is post-processing of the released numbers and the public distribution of their noise. The
rank of an item is that of its mean rank (its Borda score), in the population the units were drawn
from or among these units. All items are judged at once, for any distribution of rankings.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from privrank.hypotheses.interval import first_beyond
from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.tails import (
    BordaDistribution,
    PairDistribution,
    cube_half_width,
    difference_tail,
    half_width,
    permutohedra,
    simulated,
)
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.util.arrays import FloatArray

Target = Literal["population", "sample"]

_NORMAL = 20
_SUMS = 100_000
"""Items up to which the noise in one total is drawn, and how often."""

_DISTANCES = 64
"""Distances of two items in a ranking that are distinguished."""


def binomial_lower(hits: NDArray[Any], misses: NDArray[Any], tail: float) -> FloatArray:
    """Return the lower ends of Clopper and Pearson's intervals for probabilities.

    The probability at which so many hits, or more, have the probability `tail`: such intervals
    cover at least as often as they say, and more often for few trials. The upper end is 1 less the
    lower end with hits and misses exchanged.
    """
    end = betaincinv(np.maximum(hits, 1.0), np.asarray(misses) + 1.0, tail)
    return np.where(np.asarray(hits) > 0, end, 0.0)


def fraction_interval(
    fractions: FloatArray,
    distribution: PairDistribution,
    step: float,
    units: int,
    alpha: float,
    target: Target,
    coordinates: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals for fractions of rankings that place one item before another.

    Given noisy fractions of `units`, the distribution of the noise in the counts and the size of
    its step in fractions. `coordinates` is 1 for one interval at a time, the number of pairs for
    all at once.

    Notes
    -----
    **Statistic.** For the sample, the fraction plus and minus the exact quantile q of the noise (of
    the largest coordinate, when all intervals shall hold at once) and half a step. The sample's
    fraction differs by a whole number of steps, often q itself, which rounding must not leave
    outside (95 % intervals for all pairs of 3 items covered .88). For the population, all p
    with (w - p)^2 <= q^2 + z^2 p (1 - p) / n: Wilson's interval with noise, where w is the
    fraction, brought into [0, 1], and z the normal quantile (Sidak's for all at once). For cube
    noise q is such that this is exact at p = 1/2. Its coordinates share a radius, so that the
    largest of their sums with sampling errors is above the hypotenuse of the two largest. A unit
    with several rankings has a mean that varies less than p (1 - p), which errs on the wide side.
    """
    noise = step * half_width(distribution, alpha, coordinates)
    if target == "sample":
        # rounding must not leave out a fraction that is exactly the quantile off
        noise += 0.5 * step
        return np.clip(fractions - noise, 0.0, 1.0), np.clip(fractions + noise, 0.0, 1.0)
    # Sidak: 1 - (1 - alpha)^(1/k), without the cancellation that direct powers have at small alpha
    level = -math.expm1(math.log1p(-alpha) / coordinates)
    spread = float(ndtri(0.5 * level)) ** 2 / units
    # choose q so that q^2 + z^2 / (4 n) is the squared joint quantile at p = 1/2
    if isinstance(distribution, CubeNoise):
        both = step * cube_half_width(
            distribution, alpha, coordinates, 0.5 / math.sqrt(units) / step
        )
        noise = math.sqrt(max(both**2 - 0.25 * spread, 0.0))
    return within(np.clip(fractions, 0.0, 1.0), noise**2, spread)


def within(
    w: FloatArray, noise: FloatArray | float, spread: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest p in [0, 1] with (w - p)^2 <= noise + spread p (1 - p)."""
    # the roots of (1 + s) p^2 - (2 w + s) p + w^2 - noise = 0, s the spread
    middle = (w + 0.5 * spread) / (1.0 + spread)
    half = np.sqrt(np.maximum(middle**2 - (w**2 - noise) / (1.0 + spread), 0.0))
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def score_interval(
    scores: FloatArray | float,
    noise: float,
    largest: float,
    units: int,
    alpha: float,
    target: Target,
) -> tuple[FloatArray, FloatArray]:
    """Return intervals for means of values between 0 and `largest`, such as a Kemeny score.

    Given the noisy means of `units` values and the half width that their noise alone needs.

    Notes
    -----
    **Statistic.** Values in [0, b] with mean s have variance at most s (b - s) (Bhatia and Davis).
    That is taken for the population: a bound, so that the interval errs on the wide side unless
    all values are 0 or b. As in Wilson's interval it is that at every s, and not at the estimate,
    close to whose ends 40 such values would seem sure (95 % intervals covered .87 at s = b / 20).
    """
    w = np.clip(np.asarray(scores, dtype=np.float64) / largest, 0.0, 1.0)
    spread = float(ndtri(0.5 * alpha)) ** 2 / units if target == "population" else 0.0
    low, high = within(w, (noise / largest) ** 2, spread)
    return largest * low, largest * high


@lru_cache(maxsize=64)
def score_half_width(
    distribution: BordaDistribution, items: int, alpha: float, pairs: bool
) -> float:
    """Return the h, in lattice steps, that the noise in one Borda total exceeds with `alpha`.

    The noise is in the pair counts, of which a total sums m - 1, or (not `pairs`) in the totals.

    Notes
    -----
    **Statistic.** The quantile is that of a public sample of such noise, up to 20 items. Beyond,
    sums of so many numbers are taken as normal, and so are the totals. By the normal quantile the
    interval of a total would cover .90 to .94 for two or three items, whose noise has few steps
    or heavy tails. Half a step is added, which is no further value of the noise, so that rounding
    leaves its ends inside.
    """
    # a Borda total adds up the noise of the item's pairs, or has noise of its own
    summed = items - 1 if pairs else 1
    if distribution.variance == 0:
        return 0.0
    if items > _NORMAL:
        return -float(ndtri(0.5 * alpha)) * math.sqrt(summed * distribution.variance)
    rng = public_generator("noise in Borda totals", items)
    if isinstance(distribution, PermutohedronNoise):
        # K-norm noise is a Gamma(m) radius times a uniform point; all coordinates are alike
        points = permutohedra(items)
        noise = (rng.gamma(items, size=points.shape) * points / distribution.rate).ravel()
    else:
        noise = simulated(distribution, (_SUMS, summed), rng).sum(axis=1)
    return float(np.quantile(np.abs(noise), 1.0 - alpha, method="higher")) + 0.5


@lru_cache(maxsize=64)
def rank_threshold(
    distribution: BordaDistribution,
    step: float,
    items: int,
    units: int,
    alpha: float,
    target: Target,
    pairs: bool,
    stated: int = 0,
) -> float:
    """Return the difference of two estimated mean ranks from which on their order is certain.

    Given the distribution of the noise in the pair counts, or (not `pairs`) in the Borda totals,
    and the size of its step. Of so many pairs the order is `stated`: only the other may be wrong.

    Notes
    -----
    **Statistic, sample.** The noise in the difference of any two Borda scores is above the
    threshold with a probability of at most alpha divided by the number of orders of two items that
    may be wrong (Bonferroni). A normal error of half a step stands for the steps of the noise.

    **Statistic, population.** Let X be the difference of the ranks of two items in the (mean)
    ranking of one unit, and v its variance. With a normal sampling error the pair is stated wrongly
    with a probability of at most h(v) = P(|N(0, v / n) + noise| > t), both signs counted. An order
    that is right needs no error, and a wrong one the more the farther the mean of X is from 0. The
    threshold t is such that the h(v) of all pairs add up to at most alpha whatever the distribution
    of rankings. v is at most E X^2. The ranks of a unit are a point of the permutohedron, a mean of
    rankings s, so X^2 is at most the mean of their (s_i - s_j)^2. And the vector of E X^2 over all
    pairs is at most one in the convex hull of the vectors of (s_i - s_j)^2. h does not fall with v,
    as noise is symmetric and unimodal. Where it is convex the sum over pairs is largest at a
    vertex, that is one ranking s. It is the sum over d of (m - d) h(d^2), as m - d pairs are d
    places apart. A fair coin between a ranking and its reverse attains that. h is convex where t^2
    is three times the variance of a normal error at least, as it is at usual alpha. Where its
    slopes between the d^2 fall, they are replaced by the largest before, which gives a larger
    function that is convex.

    **Stated pairs.** A pair whose order is stated has half an h, for the other sign alone. All
    above holds with these weights. Which places in s the stated pairs have is not known, so half an
    h is taken off at the smallest distances, where it is least. This is no multiple of the sum, as
    it is for the sample: the pairs that are left may be those of the largest v.

    It holds for ties, split opinions and lists of a few items alike. That the mean over n units is
    normal is its only approximation. In the worst case it is a mean of fair coins, whose tails are
    lighter than normal ones but for their steps, so t is lowered by half of one in h.

    **Noise.** Its tails are :func:`privrank.hypotheses.tails.difference_tail`'s.
    """
    if target == "sample" and distribution.variance == 0:
        return 0.0
    # where there are many distances, each counts as the next of some
    apart = np.unique(np.ceil(np.linspace(1, items - 1, _DISTANCES)))
    every = np.arange(1, items)
    count = np.bincount(np.searchsorted(apart, every), items - every)
    squares = apart**2
    # both orders of a pair count half each, of a stated one the other alone
    count = count - 0.5 * np.clip(stated - (np.cumsum(count) - count), 0, count)

    def uncertain(t: float) -> bool:
        if target == "sample":
            error = np.array([0.5 * step / units])
            at = np.array([t])
            tails = difference_tail(distribution, step / units, items, pairs, at, error)
            return float(count.sum() * tails[0]) > alpha
        # means of n units that are d or -d come in steps of 2 d / n
        inner = np.maximum(t - apart / units, 0.0)
        tails = difference_tail(
            distribution, step / units, items, pairs, inner, apart / math.sqrt(units)
        )
        # h by its values at d^2, made convex: no slope smaller than one before
        slopes = np.maximum.accumulate(np.diff(tails) / np.diff(squares))
        convex = tails[0] + np.append(0.0, np.cumsum(slopes * np.diff(squares)))
        return float(count @ convex) > alpha

    return first_beyond(uncertain, (items - 1) / math.sqrt(units), 60, relative=1e-4)
