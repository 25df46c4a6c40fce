"""Results that are pooled, as estimating equations; see :mod:`privrank.results.pooling`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import helmert

from privrank.bradley_terry.dependence import degrees_of_freedom, single_contrasts
from privrank.bradley_terry.equations import ScoreEquations
from privrank.bradley_terry.estimate import response_covariance, score_covariance
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.linear import ridge_product
from privrank.consensus.statements import NoisyVotes
from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.tails import BordaDistribution, simulated
from privrank.privacy.knorm import PermutohedronNoise
from privrank.release.names import WORTHS
from privrank.util.arrays import FloatArray, immutable, readonly_copy
from privrank.util.solvers import find_root, quadratic

MovedScores = Callable[[FloatArray, FloatArray], tuple[FloatArray, ...]]
"""The contributions of one result to tests, from the weights of its scores and changed worths."""

DRAWS = 5_000
"""Number of public draws of noise."""

_LARGEST_TIE = 60.0
"""Size of a tie parameter at which the probability of a tie is 0 or 1 to all digits."""


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One result as estimating equations.

    Parameters
    ----------
    at : callable
        Function of a point, shape (blocks, p). It returns the residual at this point (observed
        minus expected, of the same shape) and four matrices by block: the slope of the expected
        values, the sampling covariance of the residual as measured, a lower bound of this
        covariance, and the covariance of the residual from privacy noise.
    freedom : ndarray, shape (blocks,)
        Degrees of freedom of the estimated sampling covariance, infinite if it is known.
    draws : ndarray, shape (draws, p), or None
        Public draws of the noise in any block, for its kurtosis; None if the noise is taken as
        normal.
    weight : float
        Weight of slope and sampling covariance in the averages of one survey.
    fit : Inference or None
        The fit of the equations, if they are scores of worths.
    """

    at: Callable[[FloatArray], tuple[FloatArray, ...]]
    freedom: FloatArray
    draws: FloatArray | None = None
    weight: float = 1.0
    fit: Inference | None = None

    def kurtosis(self, rows: FloatArray) -> FloatArray:
        """Return the excess kurtosis, at least 0, of noise in combinations."""
        if self.draws is None:
            return np.zeros(len(rows))
        squares = (self.draws @ rows.T) ** 2
        second = np.maximum(squares.mean(axis=0), 1e-300)
        return np.asarray(np.maximum((squares**2).mean(axis=0) / second**2 - 3.0, 0.0))


def worth_source(inference: Inference) -> Source:
    """Return noisy scores as equations for orthonormal contrasts of the worths.

    The equations use the release and not the fitted values. With the pair counts as released, even
    if noise made them negative, the scores are unbiased at the true worths. Randomised response of
    respondents and the noise on worths from objective perturbation are included in the noise.
    """
    facts = inference.equations
    release = inference.release
    added = response_covariance(facts)

    def at(point: FloatArray) -> tuple[FloatArray, ...]:
        b = at_contrasts(facts, point[0])
        slope = facts.information(b)
        noise = facts.noise_covariance(b) + added
        if WORTHS in release.parts:
            hessian = slope + ridge_product(inference.fitted.ridge, facts.linear.identity)
            noise = noise + release.parts[WORTHS].noise_variance * (hessian @ hessian)
        measured = least = score_covariance(facts, release, b) - added
        # the covariance of ties with net wins is not measured but bounded
        moments = None if facts.tied else single_contrasts(facts, release, b)
        if moments is not None:
            measured = moments.measured
            least = moments.least
        rows = _beside_ties(facts, slope)
        covariances = (rows @ matrix @ rows.T for matrix in (slope, measured, least, noise))
        return tuple(part[None] for part in (rows @ _residual(facts, b), *covariances))

    errors = inference.score_errors()
    draws = None
    if errors is not None and errors.noise is not None:
        b = inference.fitted.coefficients
        draws = errors.noise @ _beside_ties(facts, facts.information(b)).T
    return Source(at, np.array([degrees_of_freedom(release)]), draws, release.epsilon**2, inference)


def at_contrasts(facts: ScoreEquations, contrasts: FloatArray) -> FloatArray:
    """Return the coefficients of a fit at worths with these orthonormal contrasts.

    A tie parameter is the value that matches the released ties.
    """
    worths = np.asarray(helmert(facts.items)).T @ contrasts
    if not facts.tied:
        return np.asarray(worths)
    tie = find_root(
        lambda tie: -float(_residual(facts, np.append(worths, tie))[-1]),
        -_LARGEST_TIE,
        _LARGEST_TIE,
    )
    return np.append(worths, tie)


def _residual(facts: ScoreEquations, b: FloatArray) -> FloatArray:
    """Return the observed scores minus those expected at b, by the released counts."""
    mean = facts.function.mean(facts.linear.predict(b))
    return np.asarray(facts.score - facts.linear.scores(facts.by_edge(facts.released) * mean))


def _beside_ties(facts: ScoreEquations, slope: FloatArray) -> FloatArray:
    """Return contrasts of scores that do not depend on a tie parameter, if any."""
    basis = np.asarray(helmert(facts.items))
    if not facts.tied:
        return basis
    alone = slope[:-1, -1:] / max(float(slope[-1, -1]), 1e-300)
    return np.asarray(basis @ np.column_stack((np.eye(facts.items), -alone)))


def moved_scores(facts: ScoreEquations, b: FloatArray, covariance: FloatArray) -> MovedScores:
    """Return the contributions of one result to score tests of pooled worths, as a function.

    `b` has the coefficients at the pooled worths, and `covariance` is the covariance of the noise
    of the contrasts of scores there. The arguments of the function are the weights of the contrasts
    of scores, and the change of the worths. The returned values are the statistics, the variances
    of the noise, the ratios of sampling variances to those at the pooled worths, and the weights of
    the scores.
    """
    contrasts = _beside_ties(facts, facts.information(b))
    pooled = facts.linear.predict(b)
    more = ((0, 0), (0, len(b) - facts.items))

    def parts(own: FloatArray, moved: FloatArray) -> tuple[FloatArray, ...]:
        scores = own @ contrasts
        along = facts.linear.predict(scores)
        edges = facts.linear.predict(b + np.pad(moved, more))
        expected = (along * facts.function.mean(edges)) @ facts.by_edge(facts.released)
        # the effect of errors in pair counts differs from the effect at the pooled worths
        noise = (
            quadratic(own, covariance)
            + facts.count_noise(along, edges)
            - facts.count_noise(along, pooled)
        )
        varied = (along**2 * facts.spread(edges)).sum(axis=1)
        ratio = varied / np.maximum(along**2 @ facts.spread(pooled), 1e-300)
        return scores @ facts.score - expected, noise, ratio, scores

    return parts


def _means(
    values: FloatArray,
    largest: float,
    units: FloatArray | float,
    noise: FloatArray | float,
    draws: FloatArray | None,
) -> Source:
    """Return the source for means of values between 0 and `largest`.

    Each mean is a block.

    **Statistic.** The variance of a mean s of n values between 0 and b is at most s (b - s) / n
    (Bhatia and Davis). For a fraction, b = 1 and the variance equals this bound. The bound is
    evaluated at the mean of n + 4 values, with two values added at each end (Agresti and Coull
    1998), because Wald intervals need this correction close to 0 and b.
    """
    shape = (len(values), 1, 1)
    noises = np.broadcast_to(noise, len(values)).reshape(shape)

    def at(point: FloatArray) -> tuple[FloatArray, ...]:
        centre = np.clip(point[:, 0], 0.0, largest)
        centre = centre + 2.0 * (largest - 2.0 * centre) / (units + 4.0)
        sampling = np.broadcast_to(centre * (largest - centre) / units, len(values)).reshape(shape)
        return values[:, None] - point, np.ones(shape), sampling, sampling, noises

    return Source(at, np.full(len(values), np.inf), draws)


def fraction_source(stated: NoisyVotes) -> Source:
    """Return the source for fractions that rank the first item before the second."""
    assert stated.fractions is not None
    values = stated.fractions[np.triu_indices(len(stated.fractions), 1)]
    return _means(values, 1.0, stated.units, stated.noise_sd**2, _draws(stated.noise, 1))


def score_source(stated: NoisyVotes) -> Source:
    """Return the source for Borda scores."""
    m = len(stated.scores)
    noise = stated.noise
    summed = 1 if stated.fractions is None else m - 1
    if isinstance(noise, PermutohedronNoise):
        # the shape is the same at every scale: draws take seconds for many items, and are shared
        noise = PermutohedronNoise(noise.items, 2.0**-10, 1)
    variance = stated.score_errors("sample") ** 2
    return _means(stated.scores, m - 1.0, stated.units, variance, _draws(noise, summed))


@lru_cache(maxsize=16)
def _draws(noise: BordaDistribution, summed: int) -> FloatArray:
    """Return public draws of the noise of one number, a sum of `summed` terms.

    The scale of the noise does not matter for the kurtosis.
    """
    size = (DRAWS, noise.items if isinstance(noise, PermutohedronNoise) else summed)
    drawn = simulated(noise, size, public_generator("pooled votes", summed)).astype(np.float64)
    return readonly_copy(drawn[:, :summed].sum(axis=1, keepdims=True), np.float64)
