"""From the coefficients that are fitted to what a result shows, tests and predicts. Sees no data.

Fits of covariates work on a basis of contrasts between items; tables show centred worths, and
differences of centred worths, one per item and column of the model matrix.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry import regression
from privrank.bradley_terry.errors import NoisyErrors
from privrank.bradley_terry.linear import item_basis
from privrank.bradley_terry.regression import (
    Equations,
    Estimate,
    draw_errors,
    equations,
    estimate,
    wald,
)
from privrank.hypotheses.nulls import monte_carlo_pvalue
from privrank.release.covariates import Covariates
from privrank.release.release import Release
from privrank.util.checks import PrivrankWarning
from privrank.util.solvers import projection

__all__ = [
    "column_names",
    "display",
    "lack_of_fit",
    "noisy_errors",
    "standard_errors",
    "term_tests",
    "worth_map",
]

FloatArray = NDArray[np.float64]
Test = tuple[float, int, float]

_MOST_DRAWS, _LEAST_DRAWS, _NUMBERS = 9_999, 999, 20_000_000
"""Simulated errors behind the tests of terms, fewer where each takes many random numbers."""


def _with_order(table: FloatArray, covariates: Covariates, last: float) -> FloatArray:
    """Return a map of coefficients with a column for the order effect, if the model has one."""
    if not covariates.ordered:
        return table
    return np.column_stack((table, np.full(len(table), last)))


def display(covariates: Covariates, items: int) -> FloatArray:
    """Return the map from fitted to shown coefficients, shape (shown, p)."""
    size = len(covariates.item_columns)
    each = np.diag(1.0 / covariates.item_lengths) if size else item_basis(covariates, items)
    table = np.asarray(np.kron(np.eye(len(covariates.columns)), each))
    if not covariates.ordered:
        return table
    wider = np.zeros((len(table) + 1, table.shape[1] + 1))
    wider[:-1, :-1], wider[-1, -1] = table, 1.0
    return wider


def column_names(covariates: Covariates, items: tuple[str, ...]) -> list[str]:
    """Return the names of the shown coefficients."""
    names = [
        item if column == "Intercept" else f"{column}:{item}"
        for column in covariates.columns
        for item in covariates.item_columns or items
    ]
    return [*names, "first"] if covariates.ordered else names


def standard_errors(table: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the standard errors of linear combinations of coefficients, one per row."""
    variance = np.einsum("ij,jk,ik->i", table, covariance, table)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def worth_map(covariates: Covariates, items: int, rows: FloatArray) -> FloatArray:
    """Return the map from fitted coefficients to worths, shape (groups m, p).

    Given model matrix rows, shape (groups, K); the items of one group follow each other.
    """
    return _with_order(np.asarray(np.kron(rows, item_basis(covariates, items))), covariates, 0.0)


def _draws(covariates: Covariates, items: int) -> int:
    return max(_LEAST_DRAWS, min(_MOST_DRAWS, _NUMBERS // (covariates.rows * items) - 1))


def noisy_errors(fitted: Estimate, release: Release) -> NoisyErrors:
    """Return the errors of the fitted coefficients, noise by its exact law."""
    facts = equations(release)
    draws = _draws(facts.covariates, len(release.design.items))
    return regression.noisy_errors(facts, fitted, release, draws)


def term_tests(facts: Equations, fitted: Estimate, release: Release) -> dict[str, Test]:
    """Return statistic, degrees of freedom and Monte Carlo p-value by term."""
    covariates = facts.covariates
    size = len(covariates.item_columns) or len(release.design.items) - 1
    total = fitted.sampling + fitted.privacy
    draws = _draws(covariates, len(release.design.items))
    errors = draw_errors(facts, fitted, release, draws, "tests of terms")
    parts = [(name, start * size, stop * size) for name, start, stop in covariates.terms]
    if covariates.ordered:
        parts.append(("first", len(total) - 1, len(total)))
    tests = {}
    for name, start, stop in parts:
        contrast = np.eye(len(total))[start:stop]
        statistic, df, table = wald(contrast, fitted.coefficients, total, errors)
        tests[name] = (statistic, df, monte_carlo_pvalue(statistic, table))
    return tests


def lack_of_fit(release: Release, *, corrected: bool) -> Test:
    """Test that worths are linear combinations of the item covariates.

    The unrestricted model is fitted to the same release, which costs nothing, and the part of its
    worths that the item covariates do not span is tested.
    """
    design = release.design
    restricted, m = design.covariates, len(design.items)
    if restricted is None or not 0 < len(restricted.item_columns) < m - 1:
        raise ValueError(
            "the lack of fit of item covariates needs item_formula=, with fewer columns than there "
            "are items less one."
        )
    free = replace(restricted, item_columns=(), item_matrix=np.zeros((m, 0)))
    unrestricted = replace(release, survey=replace(design, covariates=free))
    facts = equations(unrestricted)
    ridge = facts.ridge if corrected else 0.0 * facts.ridge
    fitted = estimate(facts, unrestricted, ridge, corrected=corrected)
    if fitted is None:
        warnings.warn(
            "without a penalty the worths that the item covariates are tested against are not "
            "finite at this release; penalty='auto' was used for them.",
            PrivrankWarning,
            stacklevel=3,
        )
        fitted = estimate(facts, unrestricted, facts.ridge, corrected=True)
    assert fitted is not None  # a positive definite ridge has a finite fit
    spanned = item_basis(free, m).T @ item_basis(restricted, m)
    rest = np.eye(m - 1) - projection(spanned)
    contrast = np.asarray(np.kron(np.eye(len(free.columns)), rest))
    total = fitted.sampling + fitted.privacy
    errors = draw_errors(facts, fitted, unrestricted, _draws(free, m), "lack of fit")
    statistic, df, table = wald(
        _with_order(contrast, free, 0.0), fitted.coefficients, total, errors
    )
    return statistic, df, monte_carlo_pvalue(statistic, table)
