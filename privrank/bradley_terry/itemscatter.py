"""How far worths scatter about a linear combination of item covariates, from a release.

**Model.** Of each column of the model matrix the worths of the m items are x_i'beta + u_i, the u_i
independent of each other with mean 0 and one variance tau^2 for all items. Items that are compared
more often do not make u_i any smaller, so errors of beta must hold it.

**Estimate.** By moments, as Paule and Mandel (1982, https://doi.org/10.6028/jres.087.022) have it
for laboratories: with r the m - 1 - q numbers that q item covariates leave of the worths of a fit
without them, and V their covariance, tau^2 is where r'(V + tau^2 I)^-1 r is what it is in
expectation, m - 1 - q, or 0. As so many numbers alone tell of tau^2, errors that hold it take t
quantiles of so many degrees of freedom.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.estimate import Covariance, Estimate, covariance, estimate
from privrank.bradley_terry.linear import item_basis
from privrank.bradley_terry.score import ScoreEquations, score_equations
from privrank.release.release import Release
from privrank.util.solvers import projection, spectrum, zero

__all__ = ["item_scatter", "left_by_items", "unrestricted", "with_scatter"]

FloatArray = NDArray[np.float64]


def unrestricted(release: Release) -> Release:
    """Return the release of a model with item covariates, read without them."""
    design = release.design
    facts, m = design.covariates, len(design.items)
    if facts is None or not design.item_freedom:
        raise ValueError(
            "the lack of fit of item covariates needs item_formula=, with fewer columns than there "
            "are items less one."
        )
    free = replace(facts, item_columns=(), item_matrix=np.zeros((m, 0)))
    return replace(release, survey=replace(design, covariates=free))


def left_by_items(release: Release) -> FloatArray:
    """Return the projection of worths, on contrasts of the items, that item covariates leave.

    Of worths that the release identifies.
    """
    free, m = unrestricted(release), len(release.design.items)
    assert free.design.covariates is not None and release.design.covariates is not None
    known = score_equations(free).known
    within = np.eye(m - 1) if known is None else known[: m - 1, : m - 1]
    spanned = within @ item_basis(free.design.covariates, m).T
    spanned = spanned @ item_basis(release.design.covariates, m)
    return np.asarray(within @ (np.eye(m - 1) - projection(spanned)) @ within)


def item_scatter(release: Release, corrected: bool) -> FloatArray:
    """Return tau^2 of each column of the model matrix."""
    free, rest = unrestricted(release), left_by_items(release)
    equations = score_equations(free)
    fitted = estimate(equations, free, None if corrected else 0.0)
    total = covariance(equations, free, fitted).total
    values, vectors = spectrum(rest)
    basis, found = vectors[:, values > 0.5], []
    for start in range(0, len(rest) * len(equations.weights.T), len(rest)):
        here = slice(start, start + len(rest))
        spread, axes = spectrum(basis.T @ total[here, here] @ basis)
        found.append(_paule_mandel((axes.T @ basis.T @ fitted.coefficients[here]) ** 2, spread))
    return np.array(found)


def _paule_mandel(squares: FloatArray, variances: FloatArray) -> float:
    """Return the tau^2 at which squares are, weighted, what they are in expectation, or 0."""

    def beyond(tau2: float) -> float:
        return float((squares / (variances + tau2)).sum()) - len(squares)

    if not (np.isfinite(squares).all() and (variances > 0).all() and beyond(0.0) > 0):
        return 0.0
    return zero(beyond, 0.0, float(squares.mean()))


def with_scatter(
    errors: Covariance, equations: ScoreEquations, release: Release, fitted: Estimate
) -> Covariance:
    """Return errors that hold the scatter of the items, where there are item covariates.

    A worth that is off by u_i brings its scores along, by the information of the fit.
    """
    if not release.design.item_freedom:
        return errors
    free = score_equations(unrestricted(release))
    curvature = equations.fitted.curvature(equations.linear.predict(fitted.coefficients))
    weighted = (equations.pairs.count * curvature)[:, None] * free.linear.matrix()
    moved = np.asarray(equations.linear.matrix().T @ weighted)
    each = np.repeat(item_scatter(release, fitted.corrected), equations.items - 1)
    scores = (moved[:, : len(each)] * each) @ moved[:, : len(each)].T
    scattered = errors.response @ scores @ errors.response.T
    return replace(errors, scatter=scattered, scores=errors.scores + scores)
