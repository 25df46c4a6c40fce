"""Fractions of pairs, Borda scores, ranks and their intervals, from a release of rankings.

Three kinds of release give the same estimates: votes of rankings with privacy noise, votes of
orders of offered sets with privacy noise, and local reports, which are randomised themselves. This
module reads all of them, so results use one interface for fractions, scores, standard errors and
intervals. Matrices and vectors follow the order of the items.

All intervals are post-processing of the released numbers and the public distribution of their
noise. The rank of an item is the rank of its mean rank (its Borda score), in the population from
which the units were drawn or among these units. Rank sets are simultaneous for all items and valid
for any distribution of rankings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from privrank.consensus.orders import upper_to_matrix
from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.tails import (
    BordaDistribution,
    PairDistribution,
    cube_half_width,
    difference_tail,
    half_width,
    noisy_tail,
    permutohedra,
    simulated,
)
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.util.arrays import AnyArray, FloatArray, immutable
from privrank.util.solvers import first_beyond

Target = Literal["population", "sample"]

_NORMAL = 20
_SUMS = 100_000
"""Largest number of items for which the noise in one total is simulated, and number of draws."""

_DISTANCES = 64
"""Number of distinct distances of two items in a ranking."""


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class NoisyVotes:
    """Votes to which noise of a known distribution was added: on pairs, or their sums by item.

    Parameters
    ----------
    noise : distribution
        Distribution of the noise, in lattice steps.
    scale : float or ndarray, shape (m, m)
        Size of a lattice step in the fraction of each pair, or in a mean rank.
    units : int or ndarray, shape (m, m)
        Number of units that contribute to a fraction.
    score_scale : float or ndarray, shape (m,)
        Standard deviation of a score for noise of variance 1.
    score_units : int or ndarray, shape (m,)
        Number of units that contribute to a score.
    scores : ndarray, shape (m,)
        Borda scores.
    fractions : ndarray, shape (m, m), or None
        Noisy fractions of units that place row before column; None if sums by item were released.
    differences : tuple of two ndarrays, shape (m, m), or None
        Variances of the differences of two scores: for noise of variance 1, and the largest one of
        their sampling errors. None if units rank all items.
    unequal, score_unequal : float or ndarray, shapes (m, m) and (m,)
        Sampling variance that is added to a fraction, or to a score, because units contribute
        unequally.
    alike : int
        Number of items of a design with equal weights whose noise in scores and their differences
        has tails that are at least as heavy.
    """

    noise: BordaDistribution
    scale: FloatArray | float
    units: FloatArray | int
    score_scale: FloatArray | float
    score_units: FloatArray | int
    scores: FloatArray
    fractions: FloatArray | None
    alike: int
    differences: tuple[FloatArray, FloatArray] | None = None
    unequal: FloatArray | float = 0.0
    score_unequal: FloatArray | float = 0.0

    @property
    def noise_sd(self) -> float:
        """Root mean square of the noise in released fractions or mean ranks."""
        scale = np.broadcast_to(self.scale, (len(self.scores),) * 2)
        scale = scale[np.triu_indices(len(scale), 1)]
        return math.sqrt(self.noise.variance * float(np.square(scale).mean()))

    def fraction_errors(self, target: Target) -> FloatArray:
        """Return the standard errors of the fractions."""
        return self._errors(
            np.asarray(self.fractions, dtype=np.float64),
            1.0,
            self.scale,
            self.units,
            self.unequal,
            target,
        )

    def fraction_bounds(
        self, alpha: float, target: Target, together: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return pointwise or simultaneous intervals of the fractions."""
        assert isinstance(self.noise, DiscreteLaplace | DiscreteGaussian | CubeNoise)
        return fraction_interval(
            np.asarray(self.fractions, dtype=np.float64),
            self.noise,
            self.scale,
            self.units,
            alpha,
            target,
            coordinates=math.comb(len(self.scores), 2) if together else 1,
            unequal=self.unequal,
        )

    def score_errors(self, target: Target) -> FloatArray:
        """Return upper bounds of the standard errors of the scores."""
        return self._errors(
            self.scores,
            len(self.scores) - 1.0,
            self.score_scale,
            self.score_units,
            self.score_unequal,
            target,
        )

    def _errors(
        self,
        values: FloatArray,
        largest: float,
        scale: FloatArray | float,
        units: FloatArray | int,
        unequal: FloatArray | float,
        target: Target,
    ) -> FloatArray:
        """Return the standard errors of values from 0 to `largest`, of this scale and variances."""
        centre = np.clip(values, 0.0, largest)
        sampling = (centre * (largest - centre) / units + unequal) * (target == "population")
        return np.asarray(np.sqrt(self.noise.variance * np.square(scale) + sampling))

    def score_bounds(self, alpha: float, target: Target) -> tuple[FloatArray, FloatArray]:
        """Return pointwise intervals of the scores."""
        by_pair = self.fractions is not None
        items = self.alike if by_pair else len(self.scores)
        half = score_half_width(self.noise, items, alpha, by_pair)
        # the half width is that of a sum of several numbers, if these are the votes on pairs
        noise = half / math.sqrt(items - 1 if by_pair else 1) * np.asarray(self.score_scale)
        if target == "population":
            noise = np.hypot(noise, float(ndtri(0.5 * alpha)) * np.sqrt(self.score_unequal))
        return score_interval(
            self.scores, noise, len(self.scores) - 1.0, self.score_units, alpha, target
        )

    def certain_gaps(self, alpha: float, target: Target, left: int) -> FloatArray:
        """Return the smallest significant score differences if `left` orders may be wrong.

        Notes
        -----
        **Statistic.** If units rank all items, see :func:`rank_threshold`. In all other cases a
        difference of two scores is significant if it exceeds z of its standard deviations. Their
        sampling part is the largest possible one. z is such that noise plus normal sampling errors
        exceed it with probability at most 2 alpha / left for every pair (Bonferroni). For votes on
        pairs this is evaluated at the largest share of noise in the variance and for `alike` items,
        where the tails are heaviest. For the sample, a normal error of half a step accounts for the
        steps of the noise.
        """
        m = len(self.scores)
        by_pair = self.fractions is not None
        if self.differences is None:
            step = float(np.asarray(self.scale * self.units))
            return np.full(
                (m, m),
                rank_threshold(
                    self.noise,
                    step,
                    m,
                    int(self.score_units),
                    alpha,
                    target,
                    by_pair,
                    stated=m * (m - 1) - left,
                ),
            )
        mixed, sampling = self.differences
        noise = self.noise.variance * mixed
        total = noise + (sampling if target == "population" else 0.25 * mixed * (noise > 0))
        if not total.any():
            return total
        pairs = np.triu_indices(m, 1)
        share = (noise / total)[pairs].max()
        step = math.sqrt(share / max(2.0 * self.alike * self.noise.variance, 1e-300))
        error, deviation = (np.sqrt(part[pairs]) for part in (total - noise, total))

        def uncertain(z: float) -> bool:
            if isinstance(self.noise, CubeNoise) or by_pair or share == 0:
                tails = difference_tail(
                    self.noise,
                    step,
                    self.alike,
                    True,
                    np.array([z]),
                    np.array([math.sqrt(1.0 - share)]),
                )
            else:
                tails = noisy_tail(
                    self.noise,
                    z * deviation,
                    error,
                    *(np.asarray(self.score_scale)[items] for items in pairs),
                )
            return float(tails.max()) > 2.0 * alpha / left

        return np.asarray(first_beyond(uncertain, 4.0, 60, relative=1e-4) * np.sqrt(total))


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class PairVotes:
    """Votes of local reports on pairs, with one error for sampling and randomised response.

    Parameters
    ----------
    counts : ndarray, shape (m, m)
        Number of reports about each pair; 0 on the diagonal.
    means : ndarray, shape (m, m)
        Mean votes. Their expectation is (2 p - 1) times the gain, with p the fraction of rankings
        that place row before column; 0 for pairs that were not asked.
    gain : float
        Ratio of the expected reported vote to the true vote.
    square : float
        Mean square of a vote, by the protocol: 1 if votes are 1 and -1.
    """

    counts: FloatArray
    means: FloatArray
    gain: float
    square: float

    @classmethod
    def of(cls, net: AnyArray, counts: AnyArray, gain: float, square: float = 1.0) -> PairVotes:
        """Return the votes from their sums and numbers of reports by pair, row by row."""
        number = upper_to_matrix(counts)
        mean = upper_to_matrix(net / np.maximum(counts, 1))
        # a vote for one order of a pair is a vote against the other
        return cls(number + number.T, mean - mean.T, gain, square)

    @property
    def fractions(self) -> FloatArray:
        """Unbiased fractions that place row before column; NaN for pairs that were not asked."""
        fractions = np.where(self.counts > 0, 0.5 + self.means / (2.0 * self.gain), np.nan)
        np.fill_diagonal(fractions, 0.5)
        return fractions

    @property
    def largest_variance(self) -> FloatArray:
        """The variance of each fraction at its maximum, at 1/2; infinite for pairs not asked.

        Notes
        -----
        **Statistic.** A vote has mean gain (2 p - 1), and a mean of n votes with mean square s has
        variance (s - gain^2 (2 p - 1)^2) / n. The fraction is 1/2 plus this mean over 2 gain.
        """
        scale = 4.0 * self.gain**2 * self.counts
        return np.divide(self.square, scale, np.full_like(scale, np.inf), where=scale > 0)

    @property
    def errors(self) -> FloatArray:
        """Standard errors of the fractions; infinite for pairs that were not asked.

        Notes
        -----
        **Statistic.** The mean of n votes has the variance (s - t^2) / n, with t their expectation.
        t is estimated by the mean of n + 4 votes, two more for either order (Agresti and Coull
        1998), and is at most the gain. Unanimous votes, or a single vote, have a positive error.
        """
        # t from n + 4 votes, within the range of an expected vote
        centre = np.clip(self.means * self.counts / (self.counts + 4.0), -self.gain, self.gain)
        return np.asarray(np.sqrt(self.largest_variance * (1.0 - centre**2 / self.square)))

    def bounds(self, alpha: float, together: bool) -> tuple[FloatArray, FloatArray]:
        """Return pointwise or simultaneous intervals of the fractions.

        Notes
        -----
        **Statistic.** Given the questions asked, the votes of 1 and -1 on a pair are independent,
        one per report, so the number for its first item is binomial. Intervals are the exact
        intervals of Clopper and Pearson (:func:`binomial_lower`), at
        Bonferroni's level if they are simultaneous. Their coverage is at least nominal for any
        numbers of reports.

        For other votes, let z be the normal quantile, x the mean of n votes and s the mean square
        of a vote. As in Wilson's interval, the admissible means are all t with
        (x - t)^2 <= z^2 (s - t^2) / n. A mean t gives the fraction 1/2 + t / (2 gain); values
        outside [0, 1] are clipped.
        """
        answered = self.counts > 0
        level = alpha / math.comb(len(self.counts), 2) if together else alpha
        if self.square == 1.0:
            ahead = np.rint(0.5 * self.counts * (1.0 + self.means))
            lower = binomial_lower(ahead, self.counts - ahead, 0.5 * level)
            upper = 1.0 - lower.T  # exchanging the items exchanges hits and misses
        else:
            spread = float(ndtri(0.5 * level)) ** 2 / np.maximum(self.counts, 1.0)
            # with p = (1 + t) / 2 the last term z^2 (s - t^2) / n is that for p, minus a correction
            lacking = 0.25 * spread * (self.square - 1.0)
            lower, upper = within(0.5 * (1.0 + self.means), lacking, spread)
        low, high = (np.clip(0.5 + (share - 0.5) / self.gain, 0.0, 1.0) for share in (lower, upper))
        return np.where(answered, low, 0.0), np.where(answered, high, 1.0)


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class RandomReports:
    """Local reports, which are randomised themselves.

    Parameters
    ----------
    scores : ndarray, shape (m,)
        Borda scores; NaN if an adaptive protocol asked about some pairs only.
    covariance : ndarray, shape (m, m)
        Their covariance.
    concerned : ndarray, shape (m, m)
        Number of reports that concern either of two items; on the diagonal, a single item.
    pairs : PairVotes or None
        Votes on pairs; None if reports are about complete rankings.

    Notes
    -----
    A report is independent of the others, including its assignment, ranking and response. The
    variance between reports therefore contains all errors, and no other term is added. Intervals
    are for the population. They cover the fractions and scores among these respondents at least as
    often, because the respondents contribute to the variation.

    **Statistic.** Scores and differences of two scores have Student's t intervals. The degrees of
    freedom are the number of reports that concern the items, minus one. For ranks the intervals are
    at the level of the step-down (:func:`privrank.hypotheses.interval.rank_sets`). The t
    distribution is exact for normal sums with a sample variance. Scores are sums over reports, so
    these intervals are approximate for few reports; `validation/local_intervals.py` measures their
    coverage. A variance can be estimated from any number of reports; the complete covariance would
    need more reports than items.
    """

    scores: FloatArray
    covariance: FloatArray
    concerned: FloatArray
    pairs: PairVotes | None
    # the curator adds no noise to local reports
    noise_sd: ClassVar[float] = 0.0

    @property
    def fractions(self) -> FloatArray | None:
        """Fractions that place row before column; NaN for pairs that were not asked."""
        return None if self.pairs is None else self.pairs.fractions

    def fraction_errors(self, target: Target) -> FloatArray:
        """Return the standard errors of the fractions; infinite for pairs not asked."""
        assert self.pairs is not None
        return self.pairs.errors

    def fraction_bounds(
        self, alpha: float, target: Target, together: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return pointwise or simultaneous intervals of the fractions."""
        assert self.pairs is not None
        return self.pairs.bounds(alpha, together)

    def score_errors(self, target: Target) -> FloatArray:
        """Return the standard errors of the scores."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def score_bounds(self, alpha: float, target: Target) -> tuple[FloatArray, FloatArray]:
        """Return pointwise intervals of the scores."""
        half = np.diag(self._quantiles(alpha)) * self.score_errors(target)
        largest = len(self.scores) - 1.0
        return np.clip(self.scores - half, 0.0, largest), np.clip(self.scores + half, 0.0, largest)

    def certain_gaps(self, alpha: float, target: Target, left: int) -> FloatArray:
        """Return the smallest significant score differences if `left` orders may be wrong."""
        own = np.diag(self.covariance)
        variance = np.maximum(own[:, None] + own - 2.0 * self.covariance, 0.0)
        quantiles = self._quantiles(2.0 * alpha / left)
        np.fill_diagonal(quantiles, 0.0)
        return np.asarray(quantiles * np.sqrt(variance))

    def _quantiles(self, alpha: float) -> FloatArray:
        """Return half widths of intervals in standard errors, by pair of items."""
        # degrees of freedom: the number of reports that concern the items, minus one
        quantiles = -stdtrit(np.maximum(self.concerned - 1.0, 1.0), 0.5 * alpha)
        return np.where(self.concerned > 1, quantiles, np.inf)


Statements = NoisyVotes | RandomReports


def binomial_lower(hits: AnyArray, misses: AnyArray, tail: float) -> FloatArray:
    """Return the lower ends of Clopper and Pearson's intervals for probabilities.

    The lower end is the probability at which at least that many hits occur with probability `tail`.
    The intervals cover at least at the nominal level, and more for few trials. The upper end is 1
    minus the lower end with hits and misses exchanged.
    """
    return np.where(
        np.asarray(hits) > 0, betaincinv(np.maximum(hits, 1.0), np.asarray(misses) + 1.0, tail), 0.0
    )


def fraction_interval(
    fractions: FloatArray,
    distribution: PairDistribution,
    step: FloatArray | float,
    units: FloatArray | int,
    alpha: float,
    target: Target,
    coordinates: int = 1,
    unequal: FloatArray | float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Return intervals for the fractions of rankings that place one item before another.

    Arguments are noisy fractions of `units`, the distribution of the noise in the counts and the
    size of its step in fractions. Steps and units may differ between fractions, and `unequal` is
    added to their sampling variance. `coordinates` is 1
    for pointwise intervals, and the number of pairs for simultaneous intervals.

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
    p = 1/2, with the largest sampling error in steps. Its coordinates share a radius, so the
    quantile of the largest of their sums with sampling errors exceeds the hypotenuse of the two
    largest, and q exceeds the quantile without sampling errors. The mean of a unit with several
    rankings varies less than p (1 - p), which makes intervals conservative.
    """
    noise = step * half_width(distribution, alpha, coordinates)
    if target == "sample":
        # rounding must not exclude a fraction that differs by exactly the quantile
        noise += 0.5 * step
        return np.clip(fractions - noise, 0.0, 1.0), np.clip(fractions + noise, 0.0, 1.0)
    # Sidak: 1 - (1 - alpha)^(1/k), without the cancellation of direct powers at small alpha
    z = float(ndtri(-0.5 * math.expm1(math.log1p(-alpha) / coordinates)))
    # choose q such that q^2 + z^2 / (4 n) is the squared joint quantile at p = 1/2
    if isinstance(distribution, CubeNoise):
        blur = float(np.max(np.sqrt(0.25 / np.asarray(units) + unequal) / step))
        both = cube_half_width(distribution, alpha, coordinates, blur)
        noise = step * math.sqrt(max(both**2 - (z * blur) ** 2, 0.0))
    return within(np.clip(fractions, 0.0, 1.0), noise**2 + z**2 * unequal, z**2 / units)


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
    noise: FloatArray | float,
    largest: float,
    units: FloatArray | int,
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
        drawn = simulated(distribution, (_SUMS, summed), rng)
        noise = drawn.ravel() if isinstance(distribution, ZeroSumLaplace) else drawn.sum(axis=1)
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
            tails = difference_tail(distribution, step / units, items, pairs, np.array([t]), error)
            return float(count.sum() * tails[0]) > alpha
        tails = difference_tail(
            distribution,
            step / units,
            items,
            pairs,
            np.maximum(t - apart / units, 0.0),  # such means have steps of 2 d / n
            apart / math.sqrt(units),
        )
        # h at the values d^2, made convex: no slope is smaller than the one before
        slopes = np.maximum.accumulate(np.diff(tails) / np.diff(squares))
        convex = tails[0] + np.append(0.0, np.cumsum(slopes * np.diff(squares)))
        return float(count @ convex) > alpha

    return first_beyond(uncertain, (items - 1) / math.sqrt(units), 60, relative=1e-4)
