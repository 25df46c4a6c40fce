"""What a release of rankings says about pairs and Borda scores, with how surely it says it.

Two kinds of release tell the same things: votes with privacy noise, and reports of the local
model, whose answers are random themselves. Both are read here, so that a result asks either one for
fractions, scores, errors and intervals. Matrices and vectors have the items in the order of their
list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from privrank.consensus.intervals import (
    BordaLaw,
    Target,
    fraction_interval,
    rank_threshold,
    score_interval,
)
from privrank.consensus.orders import pair_matrix, pair_table
from privrank.hypotheses.nulltables import public_generator
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release.release import (
    COVARIANCE,
    PAIR_COUNTS,
    PAIRS,
    SCORES,
    SQUARES,
    TOTALS,
    Release,
)
from privrank.util.solvers import square_root

__all__ = [
    "NoisyVotes",
    "PairVotes",
    "RandomReports",
    "Statements",
    "largest_difference",
    "statements_of",
]

FloatArray = NDArray[np.float64]

_DRAWS, _CELLS = 20_000, 2**25
"""Draws of the largest difference, and the cells of all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyVotes:
    """Votes to which noise of a known distribution was added: pair counts, or Borda totals.

    Parameters
    ----------
    noise : distribution
        That of the noise, in lattice steps.
    step : float
        Size of a lattice step, in votes or ranks.
    units : int
        Number of units.
    scores : ndarray, shape (m,)
        Borda scores.
    fractions : ndarray, shape (m, m), or None
        Noisy fractions of units that place row before column; None where totals were released.
    """

    noise: BordaLaw
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
        """Return intervals of the fractions, one at a time or all together."""
        assert self.fractions is not None
        assert isinstance(self.noise, DiscreteLaplace | DiscreteGaussian | CubeNoise)
        m = len(self.scores)
        coordinates = m * (m - 1) // 2 if together else 1
        return fraction_interval(
            self.fractions,
            self.noise,
            self.step / self.units,
            self.units,
            alpha,
            target,
            coordinates,
        )

    @property
    def _score_noise(self) -> float:
        summed = 1 if self.fractions is None else len(self.scores) - 1
        return math.sqrt(summed) * self.noise_sd

    def score_errors(self, target: Target) -> FloatArray:
        """Return the standard errors of the scores, by the largest variance of such means."""
        largest = len(self.scores) - 1.0
        centre = np.clip(self.scores, 0.0, largest)
        sampling = centre * (largest - centre) / self.units * (target == "population")
        return np.asarray(np.sqrt(self._score_noise**2 + sampling))

    def score_bounds(self, alpha: float, target: Target) -> tuple[FloatArray, FloatArray]:
        """Return intervals of the scores, one at a time."""
        half = -float(ndtri(0.5 * alpha)) * self._score_noise
        largest, n = len(self.scores) - 1.0, self.units
        ends = [score_interval(s, half, largest, n, alpha, target) for s in self.scores.tolist()]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    def certain_gaps(self, alpha: float, target: Target) -> FloatArray:
        """Return the differences of scores from which on an order is certain, for all pairs."""
        m, pairs = len(self.scores), self.fractions is not None
        gap = rank_threshold(self.noise, self.step, m, self.units, alpha, target, pairs)
        return np.full((m, m), gap)


@dataclass(frozen=True, slots=True, eq=False)
class PairVotes:
    """Votes of randomised reports on pairs of items, in which sampling and response are one error.

    Parameters
    ----------
    counts : ndarray, shape (m, m)
        Reports about each pair; 0 on the diagonal.
    means : ndarray, shape (m, m)
        Mean votes: in expectation (2 p - 1) times the gain, p being the fraction of rankings that
        place row before column; 0 where nobody was asked.
    squares : ndarray, shape (m, m)
        Mean squares of votes.
    gain : float
        How much of a vote is left in a report.
    """

    counts: FloatArray
    means: FloatArray
    squares: FloatArray
    gain: float

    @classmethod
    def of(
        cls, net: NDArray[Any], squares: NDArray[Any], counts: NDArray[Any], gain: float
    ) -> PairVotes:
        """Return the votes with these sums and numbers of reports by pair, row by row."""
        asked = np.maximum(counts, 1)
        number, mean, square = (pair_table(each) for each in (counts, net / asked, squares / asked))
        return cls(number + number.T, mean - mean.T, square + square.T, gain)

    @property
    def fractions(self) -> FloatArray:
        """Unbiased fractions that place row before column; NaN where nobody was asked."""
        fractions = np.where(self.counts > 0, 0.5 + self.means / (2.0 * self.gain), np.nan)
        np.fill_diagonal(fractions, 0.5)
        return fractions

    @property
    def largest_variance(self) -> FloatArray:
        """The variance of each fraction if it is 1/2, its largest; infinite if nobody was asked.

        Notes
        -----
        **Statistic.** A vote has the mean gain (2 p - 1), and a mean of n votes of mean square s
        the variance (s - gain^2 (2 p - 1)^2) / n. The fraction is 1/2 plus it over 2 gain.
        """
        scale = 4.0 * self.gain**2 * self.counts
        return np.divide(self.squares, scale, np.full_like(scale, np.inf), where=scale > 0)

    @property
    def errors(self) -> FloatArray:
        """Standard errors of the fractions; infinite where nobody was asked."""
        rest = np.maximum(self.squares - self.means**2, 0.0)
        share = np.divide(rest, self.squares, np.ones_like(rest), where=self.squares > 0)
        return np.asarray(np.sqrt(self.largest_variance * share))

    def bounds(self, alpha: float, together: bool) -> tuple[FloatArray, FloatArray]:
        """Return intervals of the fractions, one at a time or all together.

        Notes
        -----
        **Statistic.** With z the normal quantile (Bonferroni's for all together), x the mean of n
        votes and s their mean square: all t with (x - t)^2 <= z^2 (s - t^2) / n are the means it
        allows, which is Wilson's interval of a proportion where votes are 1 or -1. Its errors are
        on either side of the nominal level; of all together, where they would add up, votes of 1
        and -1 have the exact interval of Clopper and Pearson. A mean t is the fraction
        1/2 + t / (2 gain); what is outside of [0, 1] is cut off.
        """
        m, asked = len(self.counts), self.counts > 0
        each = alpha / (m * (m - 1) // 2) if together else alpha
        if together and (self.squares[asked] == 1.0).all():
            ahead = np.rint(0.5 * self.counts * (1.0 + self.means))
            behind = self.counts - ahead
            lower = np.where(ahead > 0, betaincinv(np.maximum(ahead, 1), behind + 1, 0.5 * each), 0)
            upper = 1.0 - lower.T  # the other way round it is the other item that is ahead
            means = [2.0 * lower - 1.0, 2.0 * upper - 1.0]
        else:
            spread = float(ndtri(0.5 * each)) ** 2 / np.maximum(self.counts, 1.0)
            middle = self.means / (1.0 + spread)
            square = (self.means**2 - spread * self.squares) / (1.0 + spread)
            half = np.sqrt(np.maximum(middle**2 - square, 0.0))
            means = [middle - half, middle + half]
        low, high = (np.clip(0.5 + mean / (2.0 * self.gain), 0.0, 1.0) for mean in means)
        return np.where(asked, low, 0.0), np.where(asked, high, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class RandomReports:
    """Reports of the local model, whose answers are random themselves.

    Parameters
    ----------
    scores : ndarray, shape (m,)
        Borda scores.
    covariance : ndarray, shape (m, m)
        Their covariance.
    pairs : PairVotes or None
        Votes on pairs; None where reports are about whole rankings.

    Notes
    -----
    A report is independent of the others, with its assignment, its ranking and its response, so the
    variance between reports has all of it in it, and nothing is added. Intervals are for the
    population; the fractions and scores among these respondents lie in them at least as often, as
    the respondents are part of what varies.
    """

    scores: FloatArray
    covariance: FloatArray
    pairs: PairVotes | None

    @property
    def noise_sd(self) -> float:
        """Zero: nothing is added to what was reported."""
        return 0.0

    @property
    def fractions(self) -> FloatArray | None:
        """Fractions that place row before column; NaN where nobody was asked."""
        return None if self.pairs is None else self.pairs.fractions

    def fraction_errors(self, target: Target) -> FloatArray:
        """Return the standard errors of the fractions; infinite where nobody was asked."""
        assert self.pairs is not None
        return self.pairs.errors

    def fraction_bounds(
        self, alpha: float, target: Target, together: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return intervals of the fractions, one at a time or all together."""
        assert self.pairs is not None
        return self.pairs.bounds(alpha, together)

    def score_errors(self, target: Target) -> FloatArray:
        """Return the standard errors of the scores."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def score_bounds(self, alpha: float, target: Target) -> tuple[FloatArray, FloatArray]:
        """Return intervals of the scores, one at a time."""
        half = -float(ndtri(0.5 * alpha)) * self.score_errors(target)
        largest = len(self.scores) - 1.0
        return np.maximum(self.scores - half, 0.0), np.minimum(self.scores + half, largest)

    def certain_gaps(self, alpha: float, target: Target) -> FloatArray:
        """Return the differences of scores from which on an order is certain, for all pairs."""
        return largest_difference(self.covariance, alpha) * _difference_errors(self.covariance)


def _difference_errors(covariance: FloatArray) -> FloatArray:
    """Return the standard deviations of all differences of two numbers."""
    own = np.diag(covariance)
    return np.asarray(np.sqrt(np.maximum(own[:, None] + own - 2.0 * covariance, 0.0)))


Statements = NoisyVotes | RandomReports


def largest_difference(covariance: FloatArray, alpha: float) -> float:
    """Return the 1 - alpha quantile of the largest studentised difference of normal numbers.

    Given their covariance: the largest of |x_i - x_j| over its standard deviation, of all pairs,
    from public draws.
    """
    m = len(covariance)
    draws = min(_DRAWS, _CELLS // m**2)
    rng = public_generator("largest of studentised differences", m)
    numbers = rng.standard_normal((draws, m)) @ square_root(covariance).T
    scale = _difference_errors(covariance)
    largest = np.zeros(draws)
    for i in range(m - 1):
        apart = np.abs(numbers[:, i + 1 :] - numbers[:, i, None])
        over = np.divide(
            apart, scale[i, i + 1 :], np.zeros_like(apart), where=scale[i, i + 1 :] > 0
        )
        np.maximum(largest, over.max(axis=1), out=largest)
    return float(np.quantile(largest, 1.0 - alpha, method="higher"))


def statements_of(release: Release) -> Statements | None:
    """Return what a release says about pairs and scores; None if it holds an order alone."""
    parts, n, m = release.parts, release.sample.nobs, len(release.sample.items)
    if SCORES in parts:
        return _reports_of(release)
    if PAIRS not in parts and TOTALS not in parts:
        return None
    part = parts[PAIRS] if PAIRS in parts else parts[TOTALS]
    noise, values = part.law, np.asarray(part.values * (part.step / n), dtype=np.float64)
    assert isinstance(noise, DiscreteLaplace | DiscreteGaussian | CubeNoise | PermutohedronNoise)
    if PAIRS not in parts:
        return NoisyVotes(noise, part.step, n, m - values, None)
    fractions = pair_matrix(values)
    return NoisyVotes(noise, part.step, n, fractions.sum(axis=1) - 0.5, fractions)


def _reports_of(release: Release) -> RandomReports:
    """Return what reports say of scores and, where they are about pairs, of these."""
    parts, m = release.parts, len(release.sample.items)
    pairs = None
    if PAIRS in parts:
        net, squares, counts = (
            parts[name].values * parts[name].step for name in (PAIRS, SQUARES, PAIR_COUNTS)
        )
        pairs = PairVotes.of(net, squares, counts, release.plan.number("gain"))
    scores, covariance = (
        np.asarray(parts[name].values * parts[name].step, dtype=np.float64)
        for name in (SCORES, COVARIANCE)
    )
    return RandomReports(scores, covariance.reshape(m, m), pairs)
