"""The covariance of the scores over respondents, from what is released of it. Sees no data."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.errors import SecondMoments
from privrank.bradley_terry.linear import blocks
from privrank.bradley_terry.losses import ScoreFunction
from privrank.bradley_terry.score import ScoreEquations
from privrank.release.names import CEILING, DEPENDENCE, LARGEST, MOMENTS, RESIDUAL
from privrank.release.release import Release
from privrank.util.solvers import spectrum

__all__ = [
    "cluster_moments",
    "degrees_of_freedom",
    "effect_error",
    "floored",
    "floored_moments",
    "independent_scores",
    "released_effect",
    "single_contrasts",
]

FloatArray = NDArray[np.float64]

FARTHEST = 4.0
"""Predictors beyond this, in spreads of worths, count as this when answers' variances are found."""


def independent_scores(
    equations: ScoreEquations,
    release: Release,
    b: FloatArray,
    function: ScoreFunction | None = None,
) -> FloatArray:
    """Return the covariance of the scores if all answers were independent, shape (p, p).

    Of another function of the worths than the fit's, if one is given. Where dependence is measured
    against it, noise in the worths must not make it vanish.
    """
    function, t = function or equations.fitted, equations.linear.predict(b)
    if DEPENDENCE in release.plan.parts:
        far = FARTHEST * function.spread
        t = np.clip(t, -far, far)
    return equations.linear.information(equations.spread(t, function))


def degrees_of_freedom(release: Release) -> float:
    """Return those of the sampling covariance: respondents less one where they show it.

    Infinite where answers are taken as independent, as then the fit gives it; no more than the
    contrasts of the items that tell of their scatter about item covariates.
    """
    estimated = release.parts.keys() & {DEPENDENCE, MOMENTS[0]}
    df = max(release.design.nobs - 1.0, 1.0) if estimated else math.inf
    return min(df, release.design.item_freedom or math.inf)


def released_effect(release: Release) -> float:
    """Return the largest design effect of any contrast, at least 1.

    And at most what any answers can bring about.
    """
    part, unit = release.parts[DEPENDENCE], release.found[LARGEST] / release.design.nobs
    found = unit * part.step * float(part.values[0])
    return max(1.0, min(found, release.found[CEILING]))


def effect_error(release: Release) -> float:
    """Return the standard error of the noise of the released design effect."""
    unit = release.found[LARGEST] / release.design.nobs
    return unit * math.sqrt(release.parts[DEPENDENCE].noise_variance)


def second_moments(equations: ScoreEquations, release: Release, b: FloatArray) -> FloatArray:
    """Return the covariance of the scores as released second moments show it, shape (m, m).

    With q_ij the sums of (net_i - net_j)^2, the sum of net net' is -C q C / 2, C centring. Less
    what the mean explains it estimates the covariance of the net wins without bias, and noise can
    make it indefinite. Of nets less expected ones nothing but noise is left in the mean.
    """
    m, n = equations.items, release.design.nobs
    first, second = np.triu_indices(m, 1)
    squares = np.zeros((m, m))
    squares[first, second] = _unit(release) * release.parts[DEPENDENCE].values
    centring = np.eye(m) - 1.0 / m
    total = -0.125 * centring @ (squares + squares.T) @ centring
    mean = equations.noise_covariance(b)
    if not release.design.varied:
        mean = np.outer(equations.score, equations.score) - mean
    return np.asarray((total - mean / n) * (n / max(n - 1, 1)))


def _unit(release: Release) -> float:
    """Return what one lattice step of the released second moments stands for."""
    return release.parts[DEPENDENCE].step * release.found.get(RESIDUAL, 1.0) ** 2


def floored_moments(
    equations: ScoreEquations, release: Release, b: FloatArray, independent: FloatArray
) -> FloatArray:
    """Return :func:`second_moments`, in no direction less than under independent answers."""
    return floored(second_moments(equations, release, b), independent)


def floored(measured: FloatArray, least: FloatArray) -> FloatArray:
    """Return a covariance as measured, in no direction less than `least`.

    A direction that varies less is set to vary as under `least`, so that noise cannot make a
    variance negative; this can only widen an interval.
    """
    values, vectors = spectrum(least)
    kept = values > 1e-11 * values.max()
    root = vectors[:, kept] * np.sqrt(values[kept])
    unit = vectors[:, kept] / np.sqrt(values[kept])
    values, vectors = spectrum(unit.T @ measured @ unit)
    wider = root @ vectors
    return np.asarray((wider * np.maximum(values, 1.0)) @ wider.T)


def single_contrasts(
    equations: ScoreEquations, release: Release, b: FloatArray
) -> SecondMoments | None:
    """Return what second moments of pairs say of single contrasts, None where none are released.

    A combination a of the scores has the variance -sum over pairs of a_i a_j q_ij / 4.
    """
    if DEPENDENCE not in release.parts or LARGEST in release.found:
        return None
    law = release.parts[DEPENDENCE].law
    assert law is not None
    return SecondMoments(
        second_moments(equations, release, b),
        independent_scores(equations, release, b),
        _unit(release) ** 2 * law.variance / 16.0,
        np.eye(equations.items),
    )


def cluster_moments(
    equations: ScoreEquations, release: Release, b: FloatArray, function: ScoreFunction
) -> FloatArray:
    """Return n / (n - 1) times the sum of score times score over respondents, by pair moments.

    A respondent's score is the sum of half their net wins less expected, times the function's
    weights; the moments come in blocks of edges that one respondent can have answered.
    """
    t = equations.linear.predict(b)
    mean = 2.0 * function.link.excess(t)
    matrix, half = equations.linear.matrix(), 0.5 * function.weight(t)
    total = np.zeros((len(b), len(b)))
    start = 0
    for part in blocks(release.design, equations.pairs):
        size = part.stop - part.start
        yy, yn, nn = (
            release.parts[name].values[start : start + size**2].reshape(size, size).astype(float)
            for name in MOMENTS
        )
        start += size**2
        cross = yn * mean[None, part]
        meat = yy - cross - cross.T + nn * np.outer(mean[part], mean[part])
        here = matrix[part]
        weighted = half[part, None] * (here if isinstance(here, np.ndarray) else here.toarray())
        total += weighted.T @ meat @ weighted
    n = release.design.nobs
    return total * (n / max(n - 1, 1))
