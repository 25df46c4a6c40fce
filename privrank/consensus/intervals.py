"""Intervals for pairwise fractions, Borda and Kemeny scores and ranks of a noisy consensus.

All intervals are post-processing of the released numbers and the public distribution of their
noise. The rank of an item is the rank of its mean rank (its Borda score), in the population from
which the units were drawn or among these units. Rank sets are simultaneous for all items and valid
for any distribution of rankings.
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
"""Largest number of items for which the noise in one total is simulated, and number of draws."""

_DISTANCES = 64
"""Number of distinct distances of two items in a ranking."""


def binomial_lower(hits: NDArray[Any], misses: NDArray[Any], tail: float) -> FloatArray:
    """Return the lower ends of Clopper and Pearson's intervals for probabilities.

    The lower end is the probability at which at least that many hits occur with probability `tail`.
    The intervals cover at least at the nominal level, and more for few trials. The upper end is 1
    minus the lower end with hits and misses exchanged.
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
    """Return intervals for the fractions of rankings that place one item before another.

    Arguments are noisy fractions of `units`, the distribution of the noise in the counts and the
    size of its step in fractions. `coordinates` is 1 for pointwise intervals, and the number of
    pairs for simultaneous intervals.

    Notes
    -----
    **Statistic.** For the sample, the interval is the fraction plus and minus q and half a step.
    Here q is the exact quantile of the noise, or of its largest coordinate for simultaneous
    intervals. The sample's fraction differs by a whole number of steps, often exactly q, and
    rounding must not exclude this value (without the half step, 95% intervals for all pairs of 3
    items had coverage 0.88).

    For the population, the interval contains all p with (w - p)^2 <= q^2 + z^2 p (1 - p) / n. This
    is Wilson's interval with noise; w is the fraction, clipped to [0, 1], and z the normal quantile
    (Sidak's for simultaneous intervals). For cube noise q is such that the interval is exact at
    p = 1/2. Its coordinates share a radius, so the quantile of the largest of their sums with
    sampling errors exceeds the hypotenuse of the two largest. The mean of a unit with several
    rankings varies less than p (1 - p), which makes intervals conservative.
    """
    noise = step * half_width(distribution, alpha, coordinates)
    if target == "sample":
        # rounding must not exclude a fraction that differs by exactly the quantile
        noise += 0.5 * step
        return np.clip(fractions - noise, 0.0, 1.0), np.clip(fractions + noise, 0.0, 1.0)
    # Sidak: 1 - (1 - alpha)^(1/k), without the cancellation of direct powers at small alpha
    level = -math.expm1(math.log1p(-alpha) / coordinates)
    spread = float(ndtri(0.5 * level)) ** 2 / units
    # choose q such that q^2 + z^2 / (4 n) is the squared joint quantile at p = 1/2
    if isinstance(distribution, CubeNoise):
        both = step * cube_half_width(
            distribution, alpha, coordinates, 0.5 / math.sqrt(units) / step
        )
        noise = math.sqrt(max(both**2 - 0.25 * spread, 0.0))
    return within(np.clip(fractions, 0.0, 1.0), noise**2, spread)


def within(
    w: FloatArray, noise: FloatArray | float, spread: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest p in [0, 1] with (w - p)^2 <= noise + spread p (1 - p)."""
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

    Arguments are the noisy means of `units` values and the half width for their noise alone.

    Notes
    -----
    **Statistic.** Values in [0, b] with mean s have variance at most s (b - s) (Bhatia and Davis).
    The interval for the population uses this bound, so it is conservative unless all values are 0
    or b. As in Wilson's interval, the bound is evaluated at every s and not at the estimate: at an
    estimate close to 0 or b, 40 such values would seem to have little error (95% intervals had
    coverage 0.87 at s = b / 20).
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

    The noise is in the pair counts, m - 1 of which a total sums, or (not `pairs`) in the totals.

    Notes
    -----
    **Statistic.** For up to 20 items the quantile is computed from a public sample of this noise.
    For more items the sums are treated as normal, and so are the totals. With the normal quantile
    the interval of a total would have coverage 0.90 to 0.94 for two or three items, whose noise has
    few steps or heavy tails. Half a step is added, which includes no further value of the noise, so
    rounding leaves its ends inside.
    """
    # a Borda total sums the noise of the item's pairs, or has noise of its own
    summed = items - 1 if pairs else 1
    if distribution.variance == 0:
        return 0.0
    if items > _NORMAL:
        return -float(ndtri(0.5 * alpha)) * math.sqrt(summed * distribution.variance)
    rng = public_generator("noise in Borda totals", items)
    if isinstance(distribution, PermutohedronNoise):
        # K-norm noise is a Gamma(m) radius times a uniform point with exchangeable coordinates
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
    """Return the smallest difference of two mean ranks whose order is significant.

    Arguments are the distribution of the noise in the pair counts, or (not `pairs`) in the Borda
    totals, and the size of its step. `stated` is the number of pairs whose order is stated already;
    only the other order of these pairs may be wrong.

    Notes
    -----
    **Statistic, sample.** The noise in the difference of any two Borda scores exceeds the threshold
    with probability at most alpha divided by the number of orders of two items that may be wrong
    (Bonferroni). A normal error of half a step accounts for the steps of the noise.

    **Statistic, population.** Let X be the difference of the ranks of two items in the (mean)
    ranking of one unit, and v its variance. With a normal sampling error the pair is stated wrongly
    with probability at most h(v) = P(|N(0, v / n) + noise| > t), counting both signs. A correct
    order causes no error, and a wrong order becomes less probable the farther the mean of X is from
    0. The threshold t is such that the h(v) of all pairs sum to at most alpha for every
    distribution of rankings.

    v is at most E X^2. The ranks of a unit are a point of the permutohedron, a mean of rankings s,
    so X^2 is at most the mean of their (s_i - s_j)^2. The vector of E X^2 over all pairs is at most
    one in the convex hull of the vectors of (s_i - s_j)^2. h does not decrease with v, because the
    noise is symmetric and unimodal. If h is convex, the sum over pairs is largest at a vertex,
    which is one ranking s. There it is the sum over d of (m - d) h(d^2), because m - d pairs have a
    distance of d. A fair coin between a ranking and its reverse attains this sum. h is convex if
    t^2 is at least three times the variance of a normal error, which is true at usual alpha. If its
    slopes between the d^2 decrease, they are replaced by the largest slope before, which gives a
    larger function that is convex.

    **Stated pairs.** A pair whose order is stated has half an h, for the other sign alone. The
    argument applies with these weights. The positions of the stated pairs in s are unknown, so half
    an h is subtracted at the smallest distances, where it is smallest. For the population the
    result is not proportional to the number of remaining orders (for the sample it is): the
    remaining pairs may be those with the largest v.

    The threshold is valid for ties, divided opinions and lists of a few items alike. Its only
    approximation is that the mean over n units is normal. In the worst case this is a mean of fair
    coins, whose tails are lighter than normal tails except for their steps, so t is lowered by half
    a step in h.

    **Noise.** See :func:`privrank.hypotheses.tails.difference_tail` for its tails.
    """
    if target == "sample" and distribution.variance == 0:
        return 0.0
    # if there are many distances, each is rounded up to the next point of a grid
    apart = np.unique(np.ceil(np.linspace(1, items - 1, _DISTANCES)))
    every = np.arange(1, items)
    count = np.bincount(np.searchsorted(apart, every), items - every)
    squares = apart**2
    # both orders of a pair count half each; a stated pair counts for the other order alone
    count = count - 0.5 * np.clip(stated - (np.cumsum(count) - count), 0, count)

    def uncertain(t: float) -> bool:
        if target == "sample":
            error = np.array([0.5 * step / units])
            at = np.array([t])
            tails = difference_tail(distribution, step / units, items, pairs, at, error)
            return float(count.sum() * tails[0]) > alpha
        # means of n units with values d or -d have steps of 2 d / n
        inner = np.maximum(t - apart / units, 0.0)
        tails = difference_tail(
            distribution, step / units, items, pairs, inner, apart / math.sqrt(units)
        )
        # h at the values d^2, made convex: no slope is smaller than the one before
        slopes = np.maximum.accumulate(np.diff(tails) / np.diff(squares))
        convex = tails[0] + np.append(0.0, np.cumsum(slopes * np.diff(squares)))
        return float(count @ convex) > alpha

    return first_beyond(uncertain, (items - 1) / math.sqrt(units), 60, relative=1e-4)
