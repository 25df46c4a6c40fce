"""A fit of worths as estimating equations of their contrasts, for pooling. Sees no data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from privrank.bradley_terry.errors import SecondMoments
from privrank.bradley_terry.estimate import score_covariance
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.inversion import informations
from privrank.bradley_terry.linear import ItemContrasts, times
from privrank.bradley_terry.moments import degrees_of_freedom, single_contrasts
from privrank.bradley_terry.sources import Expected, Source
from privrank.release.names import DEPENDENCE

__all__ = ["contrast_basis", "worth_source"]

FloatArray = NDArray[np.float64]


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
