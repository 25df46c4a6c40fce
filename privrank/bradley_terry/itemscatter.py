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

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.estimate import Covariance, Estimate, covariance, estimate
from privrank.bradley_terry.linear import identified, item_basis
from privrank.bradley_terry.score import ScoreEquations, pair_counts, score_equations
from privrank.release.release import Release
from privrank.util.arrays import own
from privrank.util.solvers import spectrum, zero

__all__ = ["FreeFit", "with_scatter"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FreeFit:
    """The fit of a model with item covariates, read without them.

    Parameters
    ----------
    release : Release
        The release, of a model without item covariates.
    equations : ScoreEquations
        Its score equations.
    fitted : Estimate
        Its fit.
    errors : Covariance
        Errors of that.
    left : ndarray, shape (m - 1, m - 1)
        The projection of worths, on contrasts of the items, that item covariates leave: of worths
        that the release identifies.
    """

    release: Release
    equations: ScoreEquations
    fitted: Estimate
    errors: Covariance
    left: FloatArray

    @classmethod
    def of(cls, release: Release, *, corrected: bool) -> FreeFit | None:
        """Fit the release of a model with item covariates; None where these leave nothing."""
        design, m = release.design, len(release.design.items)
        if design.covariates is None or not design.item_freedom:
            return None
        without = replace(design.covariates, item_columns=(), item_matrix=np.zeros((m, 0)))
        free = replace(release, survey=replace(design, covariates=without))
        known = identified(free.design, pair_counts(release).member)
        within = np.eye(m - 1) if known is None else known[: m - 1, : m - 1]
        spanned = within @ item_basis(without, m).T @ item_basis(design.covariates, m)
        values, vectors = spectrum(spanned @ spanned.T)
        others = vectors[:, values <= 1e-9]
        left = within @ others @ others.T @ within
        if np.trace(left) < 0.5:
            return None
        equations = score_equations(free)
        fitted = estimate(equations, free, None if corrected else 0.0)
        errors = covariance(equations, free, fitted)
        return cls(free, equations, fitted, errors, own(left, np.float64))

    @cached_property
    def scatter(self) -> FloatArray:
        """tau^2 of each column of the model matrix."""
        total, size = self.errors.total, len(self.left)
        values, vectors = spectrum(self.left)
        basis, found = vectors[:, values > 0.5], []
        for start in range(0, size * len(self.equations.weights.T), size):
            here = slice(start, start + size)
            spread, axes = spectrum(basis.T @ total[here, here] @ basis)
            apart = axes.T @ basis.T @ self.fitted.coefficients[here]
            found.append(_paule_mandel(apart**2, spread))
        return own(found, np.float64)


def _paule_mandel(squares: FloatArray, variances: FloatArray) -> float:
    """Return the tau^2 at which squares are, weighted, what they are in expectation, or 0."""

    def beyond(tau2: float) -> float:
        return float((squares / (variances + tau2)).sum()) - len(squares)

    if not (np.isfinite(squares).all() and (variances > 0).all() and beyond(0.0) > 0):
        return 0.0
    return zero(beyond, 0.0, float(squares.mean()))


def with_scatter(
    errors: Covariance, equations: ScoreEquations, fitted: Estimate, free: FreeFit
) -> Covariance:
    """Return errors that hold the scatter of the items about their covariates.

    A worth that is off by u_i brings its scores along, by the information of the fit.
    """
    curvature = equations.fitted.curvature(equations.linear.predict(fitted.coefficients))
    weighted = (equations.pairs.count * curvature)[:, None] * free.equations.linear.matrix()
    moved = np.asarray(equations.linear.matrix().T @ weighted)
    each = np.repeat(free.scatter, equations.items - 1)
    scores = (moved[:, : len(each)] * each) @ moved[:, : len(each)].T
    scattered = errors.response @ scores @ errors.response.T
    return replace(errors, scatter=scattered, scores=errors.scores + scores)
