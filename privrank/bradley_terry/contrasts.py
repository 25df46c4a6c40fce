"""Contrasts of worths and of coefficients: their tests, adjusted p-values and quasi variances."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import ndtri

from privrank.bradley_terry.estimate import cluster_moments, design_effect, estimate
from privrank.bradley_terry.inference import Inference, edge_noise, public_noise
from privrank.bradley_terry.linear import item_basis
from privrank.bradley_terry.score import score_equations
from privrank.hypotheses.nulls import monte_carlo_pvalue
from privrank.hypotheses.nulltables import public_generator
from privrank.release.release import MOMENTS, Release
from privrank.util.checks import PrivrankWarning
from privrank.util.solvers import attempt, projection, pseudo_inverse, rank, square_root

__all__ = [
    "HomogeneityResult",
    "adjusted_pvalues",
    "contrast_errors",
    "contrast_maxima",
    "homogeneity",
    "lack_of_fit",
    "quasi_variances",
    "rank_sets",
    "term_tests",
    "wald",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_BAND_ITEMS = 200
"""Beyond this, bands use the Bonferroni bound instead of simulation, and tests fewer draws."""

_BOUND_STEPS = 20_000
"""Quantiles of the Bonferroni bound that stand in for draws."""


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
    """

    statistic: float
    df: int
    pvalue: float
    draws: int

    @property
    def pvalue_error(self) -> float:
        """Monte Carlo standard error of the p-value."""
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
    diagonal = np.diag(covariance)
    variance = diagonal[:, None] + diagonal[None, :] - 2.0 * covariance
    first, second = np.triu_indices(len(covariance), 1)
    wanted = np.log(variance[first, second])
    edges = np.arange(len(first))

    def residuals(q: FloatArray) -> FloatArray:
        # a sum that is not positive is no variance: far off, and steeply so
        return np.asarray(np.log(np.maximum(q[first] + q[second], 1e-300)) - wanted)

    def slope(q: FloatArray) -> FloatArray:
        table = np.zeros((len(edges), len(q)))
        inverse = 1.0 / np.maximum(q[first] + q[second], 1e-300)
        table[edges, first] = table[edges, second] = inverse
        return table

    # v_ij = q_i + q_j holds exactly for these if it holds for any q
    m = len(covariance)
    sums = variance.sum(axis=1)
    start = (sums - sums.sum() / (2.0 * (m - 1))) / (m - 2)
    start = np.maximum(start, 0.05 * variance[first, second].min())
    ends = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    q = attempt(
        lambda: np.asarray(least_squares(residuals, start, slope, x_scale=start, **ends).x),
        lambda: np.full(m, np.nan),
    )
    ratio = np.ones_like(covariance)
    ratio[first, second] = ratio[second, first] = np.exp(0.5 * residuals(q))
    return q, np.asarray(ratio - 1.0)


def adjusted_pvalues(t: FloatArray, maxima: FloatArray) -> FloatArray:
    """Return p-values that hold for all differences at once.

    Given the |t| of the differences, and draws of the largest |t| of all when worths are equal to
    what they are: the share of draws at least as large, the observed value counted as one of them.
    NaN where there is no |t|.
    """
    ordered = np.sort(maxima)
    beyond = len(ordered) - np.searchsorted(ordered, np.abs(t), side="left")
    return np.where(np.isnan(t), np.nan, (1.0 + beyond) / (1.0 + len(ordered)))


def contrast_errors(covariance: FloatArray) -> FloatArray:
    """Return the standard errors of all differences of two worths with this covariance."""
    variance = np.diag(covariance)
    return np.asarray(
        np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2.0 * covariance, 0.0))
    )


def contrast_maxima(inference: Inference, worths: FloatArray) -> FloatArray:
    """Return draws of the largest |t| over all differences of two worths.

    Given the map from coefficients to worths, shape (m, p). Simulated from the normal sampling
    distribution plus the noise distribution with a public counter seed. For many items quantiles of
    Bonferroni's normal bound stand in for draws.
    """
    m = len(worths)
    if m > MOST_BAND_ITEMS:
        levels = (np.arange(_BOUND_STEPS) + 0.5) / _BOUND_STEPS
        return np.asarray(-ndtri(levels / (m * (m - 1))))
    first, second = np.triu_indices(m, 1)
    scale = contrast_errors(worths @ inference.errors.total @ worths.T)[first, second]
    drawn = inference.draw_errors("contrast quantile") @ worths.T
    largest = np.empty(len(drawn))
    block = max(1, 4_000_000 // len(first))
    for start in range(0, len(drawn), block):
        here = drawn[start : start + block]
        apart = np.abs(here[:, first] - here[:, second])
        largest[start : start + block] = (apart / scale).max(axis=1)
    return largest


def rank_sets(worths: FloatArray, half_widths: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the lowest and highest rank of each item when wider gaps than these are certain.

    Given worths, shape (m,), and half widths of all differences, shape (m, m): 1 plus the number of
    items surely better, and m minus the number surely worse.
    """
    better = (worths[None, :] - worths[:, None]) > half_widths
    low = 1 + better.sum(axis=1)
    high = len(worths) - better.sum(axis=0)
    return low.astype(np.int64), high.astype(np.int64)


def homogeneity(inference: Inference, table: FloatArray) -> HomogeneityResult:
    """Test that all worths are equal, given the map from coefficients to worths, shape (m, p).

    With covariates by the Wald test at the fit. Without them:

    **Statistic.** score' V^+ score with V the covariance of the noisy scores when all worths are
    equal: the score form of the Wald test. The dependence of a respondent's answers is that seen at
    the fit. **Null.** Normal sampling error plus the noise distribution, from a public counter
    seed.
    """
    equations, release = inference.equations, inference.release
    if equations.covariates is not None:
        return wald(inference, table, inference.draw_errors("homogeneity"))
    worths = inference.fitted.coefficients
    m, zero = equations.items, np.zeros(equations.items)
    draws = 9_999 if m <= MOST_BAND_ITEMS else 1_999
    linear, function = equations.linear, equations.function
    if MOMENTS[0] in release.parts:
        scores = cluster_moments(equations, release, worths, function)
    else:
        effect = design_effect(equations, release, worths)
        scores = effect * linear.information(equations.pairs.count * function.variance(zero[:1]))
    noise = equations.item_variance * linear.identity
    noise = noise + linear.information(equations.edge_variance(zero))
    weights = linear.inverse(scores + noise)
    generator = public_generator("homogeneity", m, release.design.nobs)
    draw = generator.standard_normal((draws, m)) @ square_root(scores).T
    noise = equations.item_step * public_noise(equations.item_law, m, draws)
    noise = noise + edge_noise(equations, zero, draws, generator)
    draw += noise - noise.mean(axis=1, keepdims=True)
    return _quadratic(equations.score, weights, draw, m - 1)


def wald(inference: Inference, contrast: FloatArray, errors: FloatArray) -> HomogeneityResult:
    """Test that contrasts of the coefficients, shape (rows, p), are zero, given drawn errors."""
    middle = contrast @ inference.errors.total @ contrast.T
    value = contrast @ inference.fitted.coefficients
    return _quadratic(value, pseudo_inverse(middle), errors @ contrast.T, rank(middle))


def _quadratic(
    value: FloatArray, weights: FloatArray, null: FloatArray, df: int
) -> HomogeneityResult:
    table = np.einsum("dr,rs,ds->d", null, weights, null, optimize=True)
    statistic = float(value @ weights @ value)
    return HomogeneityResult(statistic, df, monte_carlo_pvalue(statistic, table), len(table))


def term_tests(inference: Inference) -> dict[str, HomogeneityResult]:
    """Test each term of the formula, given all the others."""
    facts, p = inference.equations, len(inference.fitted.coefficients)
    errors = inference.draw_errors("tests of terms")
    parts = [("Intercept", 0, p)]
    if (covariates := facts.covariates) is not None:
        size = facts.basis.shape[1]
        parts = [(name, start * size, stop * size) for name, start, stop in covariates.terms]
    if facts.ordered:
        parts.append(("first", p - 1, p))
    return {name: wald(inference, np.eye(p)[start:stop], errors) for name, start, stop in parts}


def lack_of_fit(release: Release, *, corrected: bool) -> HomogeneityResult:
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
    penalty = None if corrected else 0.0
    fitted = estimate(score_equations(unrestricted), unrestricted, penalty)
    if fitted.infinite:
        warnings.warn(
            "without a penalty the worths that the item covariates are tested against are not "
            "finite at this release; penalty='auto' was used for them.",
            PrivrankWarning,
            stacklevel=3,
        )
    inference = Inference.of(unrestricted, fitted)
    spanned = item_basis(free, m).T @ item_basis(restricted, m)
    rest = np.eye(m - 1) - projection(spanned)
    contrast = np.asarray(np.kron(np.eye(len(free.columns)), rest))
    if free.ordered:
        contrast = np.column_stack((contrast, np.zeros(len(contrast))))
    return wald(inference, contrast, inference.draw_errors("lack of fit"))
