"""The worths that a result shows, at given covariates, with their errors, tests and ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from privrank.bradley_terry.contrasts import contrast_errors, rank_sets
from privrank.bradley_terry.errors import NoisyErrors, from_normal, to_normal
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.inversion import intervals, pvalues

__all__ = [
    "Worths",
    "standard_errors",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def standard_errors(table: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the standard errors of linear combinations of coefficients, one per row."""
    variance = np.einsum("ij,jk,ik->i", table, covariance, table, optimize=True)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


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
    def distribution(self) -> NoisyErrors:
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
        quantile = from_normal(-ndtri(np.array(alpha / 2)), self.distribution.df)
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
        found = 2.0 * ndtr(-to_normal(size, self.distribution.df))
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
