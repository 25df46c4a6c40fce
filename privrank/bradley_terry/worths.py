"""From the coefficients that are fitted to what a result shows: worths, at given covariates.

Fits of covariates work on a basis of contrasts between items; tables show centred worths, and
differences of centred worths, one per item and column of the model matrix. Without covariates the
coefficients are the worths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from privrank.bradley_terry.contrasts import contrast_errors, rank_sets
from privrank.bradley_terry.errors import NoisyErrors, from_normal, to_normal
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.inversion import intervals, pvalues
from privrank.bradley_terry.linear import ItemContrasts, item_basis, predictor_matrix
from privrank.bradley_terry.score import bordered
from privrank.release.covariates import Covariates
from privrank.release.survey import Design, PairCounts

__all__ = [
    "Worths",
    "display",
    "groups_at",
    "names_shown",
    "pair_predictors",
    "standard_errors",
    "worth_map",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def display(design: Design) -> FloatArray:
    """Return the map from fitted to shown coefficients, shape (shown, p)."""
    covariates, m = design.covariates, len(design.items)
    if covariates is None:
        return np.eye(m)
    lengths = covariates.item_lengths
    each = np.diag(1.0 / lengths) if len(lengths) else item_basis(covariates, m)
    table = np.asarray(np.kron(np.eye(len(covariates.columns)), each))
    return bordered(table, 1.0) if covariates.ordered else table


def names_shown(design: Design) -> tuple[str, ...]:
    """Return the names of the shown coefficients."""
    covariates = design.covariates
    if covariates is None:
        return design.items
    names = tuple(
        item if column == "Intercept" else f"{column}:{item}"
        for column in covariates.columns
        for item in covariates.item_columns or design.items
    )
    return (*names, "first") if covariates.ordered else names


def standard_errors(table: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the standard errors of linear combinations of coefficients, one per row."""
    variance = np.einsum("ij,jk,ik->i", table, covariance, table, optimize=True)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def groups_at(
    covariates: Covariates | None, at: Mapping[str, Any] | None, *, every: bool = False
) -> list[dict[str, Any]]:
    """Return values of the covariates, one mapping per group.

    Parameters
    ----------
    covariates : Covariates or None
        The covariates of the model.
    at : mapping of str to value, or None
        The values of one group, numeric covariates that are left out in the middle of their bounds.
        None is the reference profile: first levels, and the middle of all bounds.
    every : bool
        Whether None is every combination of levels instead.

    Raises
    ------
    TypeError, ValueError
        If `at` names no covariate of the model.
    """
    if at is not None and not isinstance(at, Mapping):
        raise TypeError("at must map covariates to their values, as {'gender': 'female'} does.")
    known = () if covariates is None else covariates.names
    if at is not None and (unknown := at.keys() - set(known)):
        raise ValueError(f"at must name covariates of the model, not {sorted(unknown)}.")
    if covariates is None:
        return [{}]
    levels = covariates.cell_labels if every else covariates.cell_labels[:1]
    middle = {name: 0.5 * (low + high) for name, low, high in covariates.bounds}
    return [middle | dict(group) for group in (levels if at is None else (at,))]


def _rows_at(covariates: Covariates, groups: list[dict[str, Any]]) -> FloatArray:
    columns = {name: [group.get(name) for group in groups] for name in covariates.names}
    return covariates.rows_at(columns, len(groups))


def worth_map(design: Design, groups: list[dict[str, Any]]) -> FloatArray:
    """Return the map from coefficients to worths, shape (groups m, p).

    The items of one group follow each other.
    """
    covariates, m = design.covariates, len(design.items)
    if covariates is None:
        return np.eye(m)
    table = np.asarray(np.kron(_rows_at(covariates, groups), item_basis(covariates, m)))
    return np.column_stack((table, np.zeros(len(table)))) if covariates.ordered else table


def pair_predictors(
    design: Design, first: IntArray, second: IntArray, columns: Mapping[str, list[Any]]
) -> FloatArray:
    """Return the map from coefficients to differences of pairs of items, shape (pairs, p).

    Given the values of the covariates for each; with an order effect `first` is named first.
    """
    covariates, m, n = design.covariates, len(design.items), len(first)
    if covariates is None:
        pairs = PairCounts(first, second, np.ones(n), "declared")
        return np.asarray(ItemContrasts(pairs, m).matrix().toarray())
    rows = covariates.rows_at(columns, n)
    return predictor_matrix(covariates, rows, first, second, m, np.ones(n, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Worths:
    """The worths of all items at one combination of covariate values, with their errors.

    Parameters
    ----------
    inference : Inference
        The fit and its covariance.
    table : ndarray, shape (m, p)
        The map from coefficients to worths.
    """

    inference: Inference
    table: FloatArray

    @property
    def values(self) -> FloatArray:
        """The worths, shape (m,), about the mean of their part."""
        return np.asarray(self._inside @ self.inference.fitted.coefficients)

    @property
    def _inside(self) -> FloatArray:
        return self.inference.equations.projected(self.table)

    @cached_property
    def law(self) -> NoisyErrors:
        """Errors of the coefficients."""
        return self.inference.noisy_errors()

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the worths, shape (m, m)."""
        return np.asarray(self._inside @ self.inference.errors.total @ self._inside.T)

    @property
    def contrast_errors(self) -> FloatArray:
        """Standard errors of all differences of two worths, shape (m, m)."""
        return contrast_errors(self.covariance)

    @property
    def _places(self) -> tuple[IntArray, IntArray]:
        return np.triu_indices(len(self.values), 1)

    @cached_property
    def together(self) -> NDArray[np.bool_]:
        """Whether the differences are identified, shape (pairs,)."""
        return self.inference.equations.together[self._places]

    def intervals(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper limits of all differences, shape (pairs,)."""
        first, second = self._places
        if self.inference.scored:
            return intervals(self.inference, self.table[first] - self.table[second], alpha)
        # without a row of weights for every pair, of which many items have too many
        away = self.values[first] - self.values[second]
        quantile = from_normal(-ndtri(np.array(alpha / 2)), self.law.df)
        half = quantile * np.where(self.together, self.contrast_errors[first, second], np.nan)
        return away - half, away + half

    @cached_property
    def pvalues(self) -> FloatArray:
        """P-values of all differences, shape (pairs,)."""
        first, second = self._places
        if self.inference.scored:
            return pvalues(self.inference, self.table[first] - self.table[second])
        away = np.abs(self.values[first] - self.values[second])
        size = away / np.maximum(self.contrast_errors[first, second], 1e-150)
        found = 2.0 * ndtr(-to_normal(size, self.law.df))
        return np.asarray(np.where(self.together, found, np.nan))

    def rank_sets(self, alpha: float) -> tuple[IntArray, IntArray]:
        """Return the lowest and highest rank of each item, for all at once.

        By tests of all differences that are identified, which hold together by Bonferroni's bound:
        it needs no more of the dependence between contrasts than each one's variance. Ranks are
        those in the item's part.
        """
        first, second = self._places
        beyond = np.full((len(self.values),) * 2, np.inf)
        apart = self.pvalues <= alpha / max(int(self.together.sum()), 1)
        beyond[first, second] = beyond[second, first] = np.where(apart, 0.0, np.inf)
        low, high = rank_sets(self.values, beyond)
        return low, high - (len(self.values) - 1 - self.inference.equations.together.sum(axis=1))
