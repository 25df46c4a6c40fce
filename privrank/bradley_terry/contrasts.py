"""Contrasts of worths and of coefficients: errors, tests, rank sets and quasi variances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.distance import squareform
from scipy.special import ndtr, ndtri

from privrank.bradley_terry.errors import from_normal, to_normal
from privrank.bradley_terry.estimate import Covariance
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.jointtests import JointTest, joint_test
from privrank.bradley_terry.scoretests import intervals, pvalues
from privrank.hypotheses.ranksets import rank_sets
from privrank.util.arrays import BoolArray, FloatArray, IntArray
from privrank.util.checks import warn
from privrank.util.solvers import applied, attempt, carried, quadratic


def quasi_variances(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return quasi variances, and how far off the errors of differences are that they give.

    Parameters
    ----------
    covariance : ndarray, shape (m, m)
        Covariance of centred worths, m at least 3.

    Returns
    -------
    ndarray, shape (m,)
        The q_i for which q_i + q_j comes closest to the variance of each difference of two worths,
        in the sum of squared differences of logarithms; NaN where none are found.
    ndarray, shape (m, m)
        Relative error of sqrt(q_i + q_j) as the standard error of the difference, 0 on the
        diagonal.

    References
    ----------
    Firth and de Menezes (2004), https://doi.org/10.1093/biomet/91.1.65.
    """
    variance = _between(covariance)
    first, second = np.triu_indices(len(covariance), 1)
    wanted = np.log(variance[first, second])

    def residuals(q: FloatArray) -> FloatArray:
        # a sum that is not positive is no variance: far off, and steeply so
        return np.asarray(np.log(np.maximum(q[first] + q[second], 1e-300)) - wanted)

    # v_ij = q_i + q_j holds exactly for these if it holds for any q
    m = len(covariance)
    sums = variance.sum(axis=1)
    start = np.maximum(
        (sums - sums.sum() / (2.0 * (m - 1))) / (m - 2), 0.05 * variance[first, second].min()
    )
    ends = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    q = attempt(
        lambda: np.asarray(least_squares(residuals, start, "3-point", x_scale=start, **ends).x),
        lambda: np.full(m, np.nan),
    )
    ratio = np.ones_like(covariance)
    ratio[first, second] = ratio[second, first] = np.exp(0.5 * residuals(q))
    return q, np.asarray(ratio - 1.0)


def _between(covariance: FloatArray) -> FloatArray:
    """Return the variances of all differences of two numbers."""
    own, variance = np.diag(covariance), -2.0 * covariance
    variance += own[:, None]
    variance += own
    return np.asarray(variance)


def own_and_between(covariance: FloatArray) -> FloatArray:
    """Return the variances of all differences of two numbers; on the diagonal those of each."""
    variance = _between(covariance)
    np.fill_diagonal(variance, np.diag(covariance))
    return variance


def largest_effect(errors: Covariance, shown: FloatArray) -> float:
    """Return the largest design effect of shown coefficients and of differences of two of them."""
    if not isinstance(errors.alone, np.ndarray):
        return errors.alone
    sampling, independent = (
        own_and_between(carried(shown, part)) for part in (errors.sampling, errors.independent)
    )
    ratio = np.divide(sampling, independent, np.ones_like(sampling), where=independent > 0)
    return float(np.fmax.reduce(ratio, axis=None))


def term_tests(inference: Inference) -> dict[str, JointTest]:
    """Test each term of the formula, given all the others."""
    facts, p = inference.equations, len(inference.fitted.coefficients)
    parts = [("Intercept", 0, facts.items)]
    if (covariates := facts.covariates) is not None:
        size = facts.basis.shape[1]
        parts = [(name, start * size, stop * size) for name, start, stop in covariates.terms]
    if facts.ordered:
        parts.append(("first", p - 1, p))
    rows = facts.linear.identity
    return {name: joint_test(inference, rows[start:stop]) for name, start, stop in parts}


def lack_of_fit(inference: Inference) -> JointTest:
    """Test that worths are linear combinations of the item covariates.

    The unrestricted model is fitted to the same release, which costs nothing, and the part of its
    worths that the item covariates do not span is tested.
    """
    free = inference.free
    if free is None:
        raise ValueError(
            "the lack of fit of item covariates needs item_formula=, with fewer columns than there "
            "are items less one, and a release that identifies as many worths."
        )
    without = free.inference
    if without.fitted.infinite:
        warn(
            "without a penalty the worths that the item covariates are tested against are not "
            "finite at this release; penalty='auto' was used for them.",
        )
    contrast = np.kron(np.eye(without.equations.weights.shape[1]), free.left)
    if without.equations.ordered:
        contrast = np.column_stack((contrast, np.zeros(len(contrast))))
    return joint_test(without, np.asarray(contrast))


def standard_errors(table: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the standard errors of linear combinations of coefficients, one per row."""
    return np.asarray(np.sqrt(np.maximum(quadratic(table, covariance), 0.0)))


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
        return applied(self._inside, self.inference.fitted.coefficients)

    @property
    def _inside(self) -> FloatArray:
        return self.inference.equations.projected(self.table)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the worths, shape (m, m)."""
        return carried(self._inside, self.inference.errors.total)

    @property
    def contrast_errors(self) -> FloatArray:
        """Standard errors of all differences of two worths, shape (m, m)."""
        errors = _between(self.covariance)
        np.maximum(errors, 0.0, out=errors)
        return np.asarray(np.sqrt(errors, out=errors))

    @property
    def _places(self) -> tuple[IntArray, IntArray]:
        return np.triu_indices(len(self.values), 1)

    @cached_property
    def together(self) -> BoolArray:
        """Whether the differences are identified, shape (pairs,)."""
        return self.inference.equations.together[self._places]

    def intervals(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper limits of all differences, shape (pairs,)."""
        first, second = self._places
        if not self.inference.many:
            return intervals(self.inference, self.table[first] - self.table[second], alpha)
        # without a row of weights for every pair, of which many items have too many
        difference = self.values[first] - self.values[second]
        quantile = from_normal(-ndtri(np.array(alpha / 2)), self.inference.freedom)
        half = quantile * np.where(self.together, self.contrast_errors[first, second], np.inf)
        return difference - half, difference + half

    @cached_property
    def pvalues(self) -> FloatArray:
        """P-values of all differences, shape (pairs,)."""
        first, second = self._places
        if not self.inference.many:
            return pvalues(self.inference, self.table[first] - self.table[second])
        difference = np.abs(self.values[first] - self.values[second])
        size = difference / np.maximum(self.contrast_errors[first, second], 1e-150)
        tails = 2.0 * ndtr(-to_normal(size, self.inference.freedom))
        return np.asarray(np.where(self.together, tails, 1.0))

    def rank_sets(self, alpha: float) -> tuple[IntArray, IntArray]:
        """Return the lowest and highest rank of each item, for all at once.

        By step-down tests of all differences that are identified, which need no more of the
        dependence between contrasts than each one's variance. Ranks are those in the item's part.
        """
        together, values = self.inference.equations.together, self.values
        if not self.inference.many:
            pvalues = squareform(self.pvalues)
            return rank_sets(values, together, lambda left: pvalues <= 2.0 * alpha / left)
        # of many items by the one quantile in the place of all p-values
        df = self.inference.freedom
        sizes, errors = values[:, None] - values, self.contrast_errors
        sizes /= np.maximum(errors, 1e-150, out=errors)
        np.abs(sizes, out=sizes)
        return rank_sets(
            values, together, lambda left: sizes >= from_normal(-ndtri(np.array(alpha / left)), df)
        )
