"""Estimates and intervals of pairwise fractions and Borda scores, from a release of rankings.

Two kinds of release give the same estimates: votes with privacy noise, and local reports, which are
randomised themselves. This module reads both, so results use one interface for fractions, scores,
standard errors and intervals. Matrices and vectors follow the order of the items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from privrank.consensus.intervals import (
    Target,
    binomial_lower,
    fraction_interval,
    rank_threshold,
    score_half_width,
    score_interval,
    within,
)
from privrank.consensus.orders import pair_matrix, upper_to_matrix
from privrank.hypotheses.tails import BordaDistribution
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release import names
from privrank.release.release import Release
from privrank.util.arrays import FloatArray, immutable


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class NoisyVotes:
    """Votes to which noise of a known distribution was added: pair counts, or Borda totals.

    Parameters
    ----------
    noise : distribution
        Distribution of the noise, in lattice steps.
    step : float
        Size of a lattice step, in votes or ranks.
    units : int
        Number of units.
    scores : ndarray, shape (m,)
        Borda scores.
    fractions : ndarray, shape (m, m), or None
        Noisy fractions of units that place row before column; None if totals were released.
    """

    noise: BordaDistribution
    step: float
    units: int
    scores: FloatArray
    fractions: FloatArray | None

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise in a released fraction or mean rank."""
        return self.step * math.sqrt(self.noise.variance) / self.units

    def fraction_errors(self, target: Target) -> FloatArray:
        """Return the standard errors of the fractions."""
        assert self.fractions is not None
        inside = np.clip(self.fractions, 0.0, 1.0)
        sampling = inside * (1.0 - inside) / self.units * (target == "population")
        return np.asarray(np.sqrt(self.noise_sd**2 + sampling))

    def fraction_bounds(
        self, alpha: float, target: Target, together: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return pointwise or simultaneous intervals of the fractions."""
        assert self.fractions is not None
        assert isinstance(self.noise, DiscreteLaplace | DiscreteGaussian | CubeNoise)
        pairs = math.comb(len(self.scores), 2) if together else 1
        n = self.units
        return fraction_interval(
            self.fractions, self.noise, self.step / n, n, alpha, target, coordinates=pairs
        )

    @property
    def _score_noise(self) -> float:
        summed = 1 if self.fractions is None else len(self.scores) - 1
        return math.sqrt(summed) * self.noise_sd

    def score_errors(self, target: Target) -> FloatArray:
        """Return upper bounds of the standard errors of the scores."""
        largest = len(self.scores) - 1.0
        centre = np.clip(self.scores, 0.0, largest)
        sampling = centre * (largest - centre) / self.units * (target == "population")
        return np.asarray(np.sqrt(self._score_noise**2 + sampling))

    def score_bounds(self, alpha: float, target: Target) -> tuple[FloatArray, FloatArray]:
        """Return pointwise intervals of the scores."""
        m = len(self.scores)
        n = self.units
        pairs = self.fractions is not None
        half = self.step * score_half_width(self.noise, m, alpha, pairs) / n
        return score_interval(self.scores, half, m - 1.0, n, alpha, target)

    def certain_gaps(self, alpha: float, target: Target, left: int) -> FloatArray:
        """Return the smallest significant score differences if `left` orders may be wrong."""
        m = len(self.scores)
        pairs = self.fractions is not None
        stated = m * (m - 1) - left
        gap = rank_threshold(self.noise, self.step, m, self.units, alpha, target, pairs, stated)
        return np.full((m, m), gap)


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
    def of(
        cls, net: NDArray[Any], counts: NDArray[Any], gain: float, square: float = 1.0
    ) -> PairVotes:
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
        intervals of Clopper and Pearson (:func:`privrank.consensus.intervals.binomial_lower`), at
        Bonferroni's level if they are simultaneous. Their coverage is at least nominal for any
        numbers of reports.

        For other votes, let z be the normal quantile, x the mean of n votes and s the mean square
        of a vote. As in Wilson's interval, the admissible means are all t with
        (x - t)^2 <= z^2 (s - t^2) / n. A mean t gives the fraction 1/2 + t / (2 gain); values
        outside [0, 1] are clipped.
        """
        m = len(self.counts)
        answered = self.counts > 0
        level = alpha / (m * (m - 1) // 2) if together else alpha
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

    @property
    def noise_sd(self) -> float:
        """Zero, because the curator adds no noise to local reports."""
        return 0.0

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
        low, high = (np.clip(self.scores + side * half, 0.0, largest) for side in (-1.0, 1.0))
        return low, high

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


def statements_of(release: Release) -> Statements | None:
    """Return the estimates of a release about pairs and scores; None if it has only an order."""
    parts = release.parts
    n = release.sample.nobs
    m = len(release.sample.items)
    if release.local and names.ORDER in parts:
        return _reports_of(release)
    if names.PAIRS not in parts and names.TOTALS not in parts:
        return None
    # convert released counts to fractions of rankings: a lattice step is step / n
    part = parts[names.PAIRS] if names.PAIRS in parts else parts[names.TOTALS]
    noise = part.distribution
    values = np.asarray(part.values * (part.step / n), dtype=np.float64)
    assert isinstance(noise, DiscreteLaplace | DiscreteGaussian | CubeNoise | PermutohedronNoise)
    if names.PAIRS not in parts:
        return NoisyVotes(noise, part.step, n, m - values, None)
    # a row sums to the mean number of items behind, plus the 1/2 on the diagonal
    fractions = pair_matrix(values)
    return NoisyVotes(noise, part.step, n, fractions.sum(axis=1) - 0.5, fractions)


def _reports_of(release: Release) -> RandomReports:
    """Return the estimates of local reports about scores and, if available, about pairs."""
    parts = release.parts
    m = len(release.sample.items)
    pairs = None
    if names.PAIRS in parts:
        net, counts = (
            parts[name].values * parts[name].step for name in (names.PAIRS, names.PAIR_COUNTS)
        )
        gain, square = (release.plan.number(name) for name in ("gain", "square"))
        pairs = PairVotes.of(net, counts, gain, square)
    if names.SCORES not in parts:  # an adaptive protocol, which does not ask most pairs
        return RandomReports(np.full(m, np.nan), np.full((m, m), np.nan), np.zeros((m, m)), pairs)
    scores, covariance, concerned = (
        np.asarray(parts[name].values * parts[name].step, dtype=np.float64)
        for name in (names.SCORES, names.COVARIANCE, names.CONCERNED)
    )
    return RandomReports(scores, covariance.reshape(m, m), concerned.reshape(m, m), pairs)
