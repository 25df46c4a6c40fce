"""Contrasts of worths and of coefficients: errors, tests, rank sets and quasi variances."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.spatial.distance import squareform
from scipy.special import ndtr, ndtri

from privrank.bradley_terry.dependence import degrees_of_freedom
from privrank.bradley_terry.errors import from_normal, to_normal
from privrank.bradley_terry.estimate import Covariance, score_covariance
from privrank.bradley_terry.inference import (
    FEW_DRAWS,
    MOST_DRAWN_ITEMS,
    MOST_SIMULATED_ITEMS,
    Inference,
    by_scores,
    noise_by_place,
)
from privrank.bradley_terry.inversion import intervals, pvalues
from privrank.bradley_terry.linear import ItemContrasts
from privrank.hypotheses.nulls import monte_carlo_pvalue
from privrank.hypotheses.ranksets import rank_sets
from privrank.release.names import LARGEST, MOMENTS
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.checks import PrivrankWarning
from privrank.util.frozen import immutable
from privrank.util.solvers import applied, attempt, carried, pseudo_inverse, quadratic, whitener


@immutable
@dataclass(frozen=True, slots=True)
class HomogeneityResult:
    """Test that all items are equally preferred, or that other contrasts are zero.

    Parameters
    ----------
    statistic : float
        Quadratic form of the noisy scores in their covariance under the null hypothesis, or of the
        contrasts in theirs at the fit.
    df : int
        Degrees of freedom of the chi-square distribution that holds without noise.
    pvalue : float
        Monte Carlo p-value under normal sampling error plus the exact noise.
    draws : int
        Size of the null table; the p-value is a multiple of 1 / (draws + 1).

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> test = model.fit(epsilon=1.0, rng=np.random.default_rng(1)).test_homogeneity()
    >>> round(test.statistic, 1), test.df, round(test.pvalue, 3)
    (20.1, 3, 0.001)
    """

    statistic: float
    df: int
    pvalue: float
    draws: int

    @property
    def pvalue_error(self) -> float:
        """Monte Carlo standard error of the p-value.

        Examples
        --------
        >>> round(test.pvalue_error, 4)
        0.0004
        """
        return math.sqrt(self.pvalue * (1.0 - self.pvalue) / (self.draws + 1))


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
    start = (sums - sums.sum() / (2.0 * (m - 1))) / (m - 2)
    start = np.maximum(start, 0.05 * variance[first, second].min())
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


def homogeneity(inference: Inference, table: FloatArray) -> HomogeneityResult:
    """Test that all worths are equal, given the map from coefficients to worths, shape (m, p).

    With covariates or a tie parameter by the Wald test at the fit, and so where the release does
    not identify all differences: it tests those that it does. Else:

    **Statistic.** score' V^+ score with V the covariance of the noisy scores when all worths are
    equal: the score form of the Wald test. The dependence of a respondent's answers is that seen at
    the fit. **Null.** Normal sampling error plus the noise distribution, from a public counter
    seed. Of dependence released as the largest design effect D it is not known where it lies, so
    the larger of two p-values counts. One is that of scores that vary D times as much as
    independent ones in every direction. The other is that of scores that vary in one direction
    only, in which two halves of the items are apart, by as much as D allows for a pair of them.
    """
    equations, release = inference.equations, inference.release
    if equations.covariates is not None or equations.known is not None or equations.tied:
        return wald(inference, equations.within(table), "homogeneity")
    m, zero = equations.items, np.zeros(equations.items)
    df = m - 1
    draws = 9_999 if m <= MOST_DRAWN_ITEMS else FEW_DRAWS
    linear = equations.linear
    # moments over respondents are about what the fit expects
    at = inference.fitted.coefficients if MOMENTS[0] in release.parts else zero
    scores = score_covariance(equations, release, at, equations.function)
    # of equal worths errors of pair counts move no score
    of_cells = equations.edge_distribution.scale > 0
    pairs = equations.pair_noise(zero) if of_cells else np.zeros_like(scores)
    assert isinstance(linear, ItemContrasts)
    both = scores + pairs
    total = linear.filled(both)
    total[np.diag_indices(m)] += equations.item_variance
    noise = noise_by_place(equations, zero, draws)
    many = m > MOST_SIMULATED_ITEMS  # of so many items the noise of pairs is taken as normal
    errors = inference.errors_of(both if many else scores)
    nulls = [errors.draws(draws, df, "homogeneity")]
    if LARGEST in release.found:
        # the scores of worths by which two halves of the items are apart, as long as D allows for a
        # pair across them
        halves = np.where(np.arange(m) < m // 2, 1.0 / (m // 2), -1.0 / (m - m // 2))
        apart = applied(scores, halves)
        part = m / 2.0 if m % 2 == 0 else (m * m - 1.0) / (2.0 * m)
        along = math.sqrt(part / (halves @ apart)) * apart
        normal = pairs if many else np.zeros_like(pairs)
        nulls.append(replace(errors, normal=normal).draws(draws, df, "homogeneity", along))
    white = whitener(total)  # for the statistic of the release and those of the null

    def forms(rows: FloatArray) -> FloatArray:
        rows -= rows.mean(axis=1, keepdims=True)
        rows = white(rows)  # in their memory
        return np.asarray(np.einsum("ij,ij->i", rows, rows))

    statistic = float(forms(equations.score[None].copy())[0])
    tests = [_test(statistic, forms(np.add(draw, noise, out=draw)), df) for draw in nulls]
    return max(tests, key=lambda test: test.pvalue)


def wald(inference: Inference, contrast: FloatArray, label: str) -> HomogeneityResult:
    """Test that contrasts of the coefficients, shape (rows, p), are zero, by simulated errors."""
    contrast = contrast[contrast.any(axis=1)]
    middle = carried(contrast, inference.errors.total)
    value, (weights, df) = contrast @ inference.fitted.coefficients, pseudo_inverse(middle)
    errors = inference.draw_errors(label, df, contrast)
    return _quadratic(value, weights, errors, df)


def _quadratic(
    value: FloatArray, weights: FloatArray, null: FloatArray, df: int
) -> HomogeneityResult:
    if df == 0:  # nothing to test
        return HomogeneityResult(math.nan, 0, math.nan, len(null))
    return _test(float(value @ weights @ value), quadratic(null, weights), df)


def _test(statistic: float, table: FloatArray, df: int) -> HomogeneityResult:
    pvalue = monte_carlo_pvalue(statistic, table)
    return HomogeneityResult(float(statistic), df, pvalue, len(table))


def term_tests(inference: Inference) -> dict[str, HomogeneityResult]:
    """Test each term of the formula, given all the others."""
    facts, p = inference.equations, len(inference.fitted.coefficients)
    parts = [("Intercept", 0, facts.items)]
    if (covariates := facts.covariates) is not None:
        size = facts.basis.shape[1]
        parts = [(name, start * size, stop * size) for name, start, stop in covariates.terms]
    if facts.ordered:
        parts.append(("first", p - 1, p))
    rows = facts.within(facts.linear.identity)
    return {name: wald(inference, rows[start:stop], name) for name, start, stop in parts}


def lack_of_fit(inference: Inference) -> HomogeneityResult:
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
        warnings.warn(
            "without a penalty the worths that the item covariates are tested against are not "
            "finite at this release; penalty='auto' was used for them.",
            PrivrankWarning,
            stacklevel=3,
        )
    contrast = np.kron(np.eye(without.equations.weights.shape[1]), free.left)
    if without.equations.ordered:
        contrast = np.column_stack((contrast, np.zeros(len(contrast))))
    return wald(without, np.asarray(contrast), "lack of fit")


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
    def together(self) -> NDArray[np.bool_]:
        """Whether the differences are identified, shape (pairs,)."""
        return self.inference.equations.together[self._places]

    def intervals(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper limits of all differences, shape (pairs,)."""
        first, second = self._places
        if by_scores(self.inference.release):
            return intervals(self.inference, self.table[first] - self.table[second], alpha)
        # without a row of weights for every pair, of which many items have too many
        difference = self.values[first] - self.values[second]
        df = degrees_of_freedom(self.inference.release)
        quantile = from_normal(-ndtri(np.array(alpha / 2)), df)
        half = quantile * np.where(self.together, self.contrast_errors[first, second], np.nan)
        return difference - half, difference + half

    @cached_property
    def pvalues(self) -> FloatArray:
        """P-values of all differences, shape (pairs,)."""
        first, second = self._places
        if by_scores(self.inference.release):
            return pvalues(self.inference, self.table[first] - self.table[second])
        difference = np.abs(self.values[first] - self.values[second])
        size = difference / np.maximum(self.contrast_errors[first, second], 1e-150)
        tails = 2.0 * ndtr(-to_normal(size, degrees_of_freedom(self.inference.release)))
        return np.asarray(np.where(self.together, tails, np.nan))

    def rank_sets(self, alpha: float) -> tuple[IntArray, IntArray]:
        """Return the lowest and highest rank of each item, for all at once.

        By step-down tests of all differences that are identified, which need no more of the
        dependence between contrasts than each one's variance. Ranks are those in the item's part.
        """
        together, values = self.inference.equations.together, self.values
        if by_scores(self.inference.release):
            pvalues = squareform(self.pvalues)
            return rank_sets(values, together, lambda left: pvalues <= 2.0 * alpha / left)
        # of many items by the one quantile in the place of all p-values
        df = degrees_of_freedom(self.inference.release)
        sizes, errors = values[:, None] - values, self.contrast_errors
        sizes /= np.maximum(errors, 1e-150, out=errors)
        np.abs(sizes, out=sizes)
        return rank_sets(
            values, together, lambda left: sizes >= from_normal(-ndtri(np.array(alpha / left)), df)
        )
