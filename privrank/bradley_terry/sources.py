"""Results as estimating equations, all of them at one point, and the weights they have there.

What is computed of them, and why, is said in :mod:`privrank.bradley_terry.pooling`. Numbers come in
blocks between which nothing is known of covariances; arrays have results first, blocks second.
A fit of worths is one of its contrasts (:func:`worth_source`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from privrank.bradley_terry.dependence import degrees_of_freedom, floored, single_contrasts
from privrank.bradley_terry.errors import SecondMoments
from privrank.bradley_terry.estimate import score_covariance
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.inversion import informations
from privrank.bradley_terry.linear import ItemContrasts, times
from privrank.release.names import DEPENDENCE
from privrank.util.solvers import inverse

__all__ = [
    "Expected",
    "Source",
    "Stacked",
    "contrast_basis",
    "equations_at",
    "inverses",
    "measured_shares",
    "worth_source",
]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """What results expect at points of their one block: arrays by result and point.

    Parameters
    ----------
    mean : ndarray, shape (..., p)
        What is expected of what they observe.
    information : ndarray, shape (..., p, p)
        Its slope.
    independent : ndarray, shape (..., p, p)
        Sampling covariance of the residual if answers are independent.
    """

    mean: FloatArray
    information: FloatArray
    independent: FloatArray

    @classmethod
    def of(cls, sources: Sequence[Source], points: FloatArray, same: bool) -> Expected:
        """Return what all results expect; of one survey they share information and covariance."""
        found = [source.expected(points) for source in sources if source.expected is not None]
        mean, *slopes = (
            np.array([getattr(each, name) for each in found])
            for name in ("mean", "information", "independent")
        )
        if same:
            slopes = [_shared(each, sources) for each in slopes]
        return cls(mean, *slopes)


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One result as estimating equations.

    Parameters
    ----------
    equations : callable
        From a point, shape (blocks, p), to the residual there, observed less expected, of this
        shape, and the slope of what is expected, shape (blocks, p, p).
    covariances : callable
        From a point to the covariances of the residual by sampling and by privacy noise.
    draws : ndarray, shape (draws, p), or None
        Public draws of the noise of the residual of any block; None where noise is taken as normal.
    freedom : ndarray, shape (blocks,)
        Degrees of freedom with which the sampling covariance is known, infinite if it is given.
    moments : callable or None
        From a point to the second moments of the residual of the one block, where they are
        released; the sampling covariance is what they are, in no direction less than their least.
    counts, measured : float
        Weights of the information and of the sampling covariance in the averages of one survey;
        where any result has second moments, these are averaged alone.
    expected : callable or None
        From points, shape (points, p), to what is expected there; None where there are no score
        tests.
    far : float
        Distance at which a combination counts as infinite in a score test.
    """

    equations: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    covariances: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    draws: FloatArray | None
    freedom: FloatArray
    moments: Callable[[FloatArray], SecondMoments] | None = None
    counts: float = 1.0
    measured: float = 1.0
    expected: Callable[[FloatArray], Expected] | None = None
    far: float = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Stacked:
    """All results at one point, and how they are weighted there; arrays by result and block."""

    residual: FloatArray
    information: FloatArray
    sampling: FloatArray
    noise: FloatArray
    moments: tuple[SecondMoments | None, ...]
    same: bool

    @classmethod
    def of(cls, sources: Sequence[Source], point: FloatArray, same: bool) -> Stacked:
        """Return all results at this point; of one survey they share what is averaged."""
        residual, information = equations_at(sources, point, same)
        found = [source.covariances(point) for source in sources]
        sampling, noise = (np.array(each) for each in zip(*found, strict=True))
        moments = tuple(None if (of := each.moments) is None else of(point) for each in sources)
        if same:
            shared = tuple(zip(measured_shares(sources), moments, strict=True))
            if any(moments):
                both = [share * each.matrices for share, each in shared if each is not None]
                one = floored(*np.sum(both, axis=0))[None]
            else:
                one = np.tensordot(measured_shares(sources), sampling, 1)
            sampling = np.broadcast_to(one, sampling.shape)
        return cls(residual, information, sampling, noise, moments, same)

    @property
    def apart(self) -> FloatArray:
        """Covariances of what differs between results."""
        return self.noise if self.same else self.sampling + self.noise

    def weights(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return D_k^-1, J^-1, and W_k = J^-1 G_k D_k^-1, which takes a residual to the pooled."""
        precision = inverses(self.apart)
        slopes = self.information @ precision
        covariance = inverses((slopes @ self.information).sum(axis=0))
        return precision, covariance, covariance @ slopes

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sampling and the noise part of the covariance of the pooled value."""
        noise = _through(weights, self.noise).sum(axis=0)
        if self.same:
            return _through(weights.sum(axis=0), self.sampling[0]), noise
        return _through(weights, self.sampling).sum(axis=0), noise


def equations_at(
    sources: Sequence[Source], point: FloatArray, same: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the residuals and the slopes of all results at one point."""
    found = [source.equations(point) for source in sources]
    residual, information = (np.array(each) for each in zip(*found, strict=True))
    if same:
        information = _shared(information, sources)
    return residual, information


def _shared(matrices: FloatArray, sources: Sequence[Source]) -> FloatArray:
    """Return the average over results, by the precision of their counts, for each of them."""
    one = np.tensordot(_shares([source.counts for source in sources]), matrices, 1)
    return np.broadcast_to(one, matrices.shape)


def measured_shares(sources: Sequence[Source]) -> FloatArray:
    """Return the weights of the results in what is averaged of one survey's sampling covariance.

    Second moments estimate it; the largest design effect is a bound, and counts where all have it.
    """
    better = any(source.moments is not None for source in sources)
    return _shares([each.measured * (each.moments is not None or not better) for each in sources])


def _shares(weights: Sequence[float]) -> FloatArray:
    """Return weights that add up to 1: these, or equal ones where all are 0."""
    found = np.asarray(weights, dtype=np.float64)
    found = found if found.sum() > 0 else np.ones(len(found))
    return np.asarray(found / found.sum())


def _through(weights: FloatArray, covariance: FloatArray) -> FloatArray:
    return np.asarray(weights @ covariance @ weights.swapaxes(-1, -2))


def inverses(matrices: FloatArray) -> FloatArray:
    """Return the inverses of positive definite matrices, NaN where there is none."""
    p = matrices.shape[-1]
    if p == 1:
        return np.divide(1.0, matrices, np.full_like(matrices, np.nan), where=matrices > 0)
    each = [inverse(matrix) for matrix in matrices.reshape(-1, p, p)]
    return np.array(each).reshape(matrices.shape)


def contrast_basis(items: int) -> FloatArray:
    """Return orthonormal contrasts of the worths, shape (items - 1, items)."""
    return np.asarray(helmert(items))


def worth_source(inference: Inference) -> Source:
    """Return a fit's noisy scores as equations of the worths' contrasts.

    Of the fit itself nothing is used but the release; with pair counts as they were released, also
    where noise has put them below 0, the scores are unbiased at the true worths. What respondents'
    responses add, and what noise there is on the worths of objective perturbation, counts as noise.
    """
    facts, release = inference.equations, inference.release
    assert isinstance(facts.linear, ItemContrasts)
    linear, basis = facts.linear, contrast_basis(facts.items)
    added = facts.response_covariance

    def reduced(matrix: FloatArray) -> FloatArray:
        return np.asarray((basis @ matrix @ basis.T)[None])

    def equations(point: FloatArray) -> tuple[FloatArray, FloatArray]:
        b = basis.T @ point[0]
        mean = facts.function.mean(linear.predict(b))
        residual = facts.score - linear.scores(facts.released_count * mean)
        return (basis @ residual)[None], reduced(facts.information(b))

    def covariances(point: FloatArray) -> tuple[FloatArray, FloatArray]:
        b = basis.T @ point[0]
        noise = facts.noise_covariance(b) + added
        if facts.output_variance > 0:
            hessian = facts.information(b) + times(inference.fitted.ridge, linear.identity)
            noise = noise + facts.output_variance * (hessian @ hessian)
        return reduced(score_covariance(facts, release, b) - added), reduced(noise)

    def moments(point: FloatArray) -> SecondMoments:
        found = single_contrasts(facts, release, basis.T @ point[0])
        assert found is not None
        return replace(found, scores=basis)

    def expected(points: FloatArray) -> Expected:
        worths = points @ basis
        edges = worths[:, facts.pairs.first] - worths[:, facts.pairs.second]
        mean = (facts.released_count * facts.function.mean(edges)) @ linear.matrix()
        curvature = facts.pairs.count * facts.fitted.curvature(edges)
        slopes = [informations(linear, w) for w in (curvature, facts.spread(edges))]
        return Expected(mean @ basis.T, *(basis @ slope @ basis.T for slope in slopes))

    second = single_contrasts(facts, release, inference.fitted.coefficients) is not None
    errors, draws = inference.score_errors(), None
    if errors is not None and errors.noise is not None:
        draws = errors.noise @ basis.T
    spent = release.parts[DEPENDENCE].epsilon if DEPENDENCE in release.parts else 0.0
    return Source(
        equations,
        covariances,
        draws,
        np.array([degrees_of_freedom(release)]),
        moments if second else None,
        counts=1.0 / facts.count_variance if facts.count_variance > 0 else 1.0,
        # noise on what measures dependence has a variance that falls with the square of epsilon
        measured=spent**2,
        expected=expected if inference.scored and release.source != "none" else None,
        far=facts.function.link.exact.far,
    )
