"""Contrasts of worths and coefficients: standard errors, tests, rank sets and quasi variances.

A joint test of several contrasts of the coefficients, C b = c, is computed as follows.

**Null point.** b_0 is the fit, moved to C b_0 = c along the covariance that the tests of single
contrasts use (:mod:`privrank.bradley_terry.scoretests`).

**Statistic.** Q = U' (A (S + N) A')^-1 U with A = C H^-1, where H is the information at b_0, and
U = A (score - expected score at b_0). S is the covariance of the sampling errors of the scores at
b_0, and N is the covariance of the noise. Q does not change if C is multiplied from the left by a
regular matrix.

**Null distribution.** The distribution of Q is simulated with normal sampling errors and the exact
noise. Both are drawn in the space of all scores from a public counter seed. The sampling errors
depend on the available information about the dependence of a respondent's answers:

- Known answers: S is the covariance of independent answers. The draws are scaled to the covariance
  of the answers at b_0 and at the fit. The eigenvalues of this covariance relative to S are raised
  by one factor if their sum is less than the number of contrasts. The larger p-value is used.
- A released largest design effect D: its direction is unknown. Sampling errors are therefore placed
  in k of the q directions, with (q + 1) / (k + 1) times the variance under D in each. With
  covariates they are placed in all q directions, or in one with q times that variance. The largest
  p-value is used. The noise of D and the number of respondents change the scale of all errors, by
  Satterthwaite's rule for the share of sampling in them.
- Released second moments: these are used, in no direction less than under independent answers,
  with the degrees of freedom of Hotelling's statistic.

The scatter of items about their covariates is part of N. All errors, noise included, then have the
estimated scale of this scatter, with the degrees of freedom of the items that determine it.

A test of one contrast is a score test of :mod:`privrank.bradley_terry.scoretests`. Contrasts that
the release does not identify are not tested. If no contrast is identified, the p-value is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import helmert
from scipy.optimize import least_squares
from scipy.spatial.distance import squareform
from scipy.special import ndtri

from privrank.bradley_terry.equations import pair_noise
from privrank.bradley_terry.estimate import Covariance, objective, score_covariance
from privrank.bradley_terry.inference import FEW_DRAWS, KNOWN, MAX_DRAWN_ITEMS, Inference
from privrank.bradley_terry.predictor import beside_worths, item_basis
from privrank.bradley_terry.scoretests import WaldTests, intervals, pvalues, shares
from privrank.hypotheses.interval import rank_sets
from privrank.hypotheses.nulls import monte_carlo_pvalue, public_generator
from privrank.release.names import LARGEST
from privrank.release.survey import INTERCEPT
from privrank.util.arrays import BoolArray, FloatArray, IntArray
from privrank.util.checks import warn
from privrank.util.solvers import (
    matvec,
    normal_draws,
    product,
    propagate,
    pseudo_inverse,
    quadratic,
    spectrum,
    whitener,
    with_fallback,
)

_MAX_COUNTS = 12
"""Largest number of values of k, the number of directions, that are tried."""

_TIE_BREAK = 1e-6
"""Weight of public draws that break ties between directions."""

_MIN_SCALE = 1e-200
"""Least draw of chi-squared with few degrees of freedom; squares divided by it are finite."""

_CLOSE = 1e-9
"""Relative size below which numbers are treated as zero."""

_IMPOSSIBLE = "hypothesis contradicts itself: no coefficients fulfil all of its equations."


def quasi_variances(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return quasi variances and the relative errors of the standard errors that they imply.

    Parameters
    ----------
    covariance : ndarray, shape (m, m)
        Covariance of centred worths, m at least 3.

    Returns
    -------
    ndarray, shape (m,)
        The q_i for which the sums q_i + q_j are closest to the variances of the differences of two
        worths, by the sum of squared differences of logarithms; NaN if the search fails.
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
        # a sum that is not positive cannot be a variance and gets a large residual
        return np.asarray(np.log(np.maximum(q[first] + q[second], 1e-300)) - wanted)

    # if any q satisfies v_ij = q_i + q_j exactly, it is this one
    m = len(covariance)
    sums = variance.sum(axis=1)
    start = np.maximum(
        (sums - sums.sum() / (2.0 * (m - 1))) / (m - 2), 0.05 * variance[first, second].min()
    )
    q = with_fallback(
        lambda: (
            least_squares(
                residuals, start, "3-point", x_scale=start, xtol=1e-15, ftol=1e-15, gtol=1e-15
            ).x
        ),
        lambda: np.full(m, np.nan),
    )
    ratio = np.ones_like(covariance)
    ratio[first, second] = ratio[second, first] = np.exp(0.5 * residuals(q))
    return q, np.asarray(ratio - 1.0)


def _between(covariance: FloatArray) -> FloatArray:
    """Return the variances of all differences of two numbers."""
    own = np.diag(covariance)
    return np.asarray(own[:, None] - 2.0 * covariance + own)


def own_and_between(covariance: FloatArray) -> FloatArray:
    """Return the variances of all differences of two numbers; the diagonal has their variances."""
    variance = _between(covariance)
    np.fill_diagonal(variance, np.diag(covariance))
    return variance


def largest_effect(errors: Covariance, shown: FloatArray) -> float:
    """Return the largest design effect of shown coefficients and differences of two of them."""
    if not isinstance(errors.alone, np.ndarray):
        return errors.alone
    sampling, independent = (
        own_and_between(propagate(shown, part)) for part in (errors.sampling, errors.independent)
    )
    # variances of worths that noise drives far apart can be too small for their ratio
    known = independent > np.finfo(np.float64).tiny
    ratio = np.divide(sampling, independent, np.ones_like(sampling), where=known)
    return float(np.fmax.reduce(ratio, axis=None))


def term_tests(inference: Inference) -> dict[str, JointTest]:
    """Test each term of the formula, given all the others."""
    facts = inference.equations
    p = len(inference.fitted.coefficients)
    terms = (facts.covariates or INTERCEPT).terms
    size = item_basis(facts.covariates, facts.items).shape[1]
    parts = [(name, start * size, stop * size) for name, start, stop in terms]
    for place, name in enumerate((facts.covariates or INTERCEPT).contest, p - facts.contests):
        parts.append((name, place, place + 1))
    return {
        name: joint_test(inference, facts.linear.identity[start:stop])
        for name, start, stop in parts
    }


def lack_of_fit(inference: Inference) -> JointTest:
    """Test that worths are linear combinations of the item covariates.

    The unrestricted model is fitted to the same release, at no additional privacy cost. The part of
    its worths that the item covariates do not span is tested.
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
    facts = without.equations.covariates or INTERCEPT
    return joint_test(
        without,
        np.pad(
            np.kron(np.eye(len(facts.columns)), free.left),
            ((0, 0), (0, beside_worths(without.release.design))),
        ),
    )


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

    @cached_property
    def values(self) -> FloatArray:
        """The worths, shape (m,), about the mean of their part."""
        return matvec(self._inside, self.inference.fitted.coefficients)

    @cached_property
    def _inside(self) -> FloatArray:
        return self.inference.equations.components.projected(self.table)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the worths, shape (m, m)."""
        return propagate(self._inside, self.inference.errors.total)

    @property
    def contrast_errors(self) -> FloatArray:
        """Standard errors of all differences of two worths, shape (m, m)."""
        return np.asarray(np.sqrt(np.maximum(_between(self.covariance), 0.0)))

    @property
    def _places(self) -> tuple[IntArray, IntArray]:
        return np.triu_indices(len(self.table), 1)

    @cached_property
    def together(self) -> BoolArray:
        """Whether the differences are identified, shape (pairs,)."""
        return self.inference.equations.components.together[self._places]

    def intervals(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper limits of all differences, shape (pairs,)."""
        if self.inference.many:
            return self._wald.limits(alpha)
        return intervals(self.inference, self._differences, alpha, self.pvalues)

    @cached_property
    def pvalues(self) -> FloatArray:
        """P-values of all differences, shape (pairs,)."""
        if self.inference.many:
            return self._wald.pvalues(0.0)
        return pvalues(self.inference, self._differences)

    @property
    def _differences(self) -> FloatArray:
        first, second = self._places
        return self.table[first] - self.table[second]

    @property
    def _wald(self) -> WaldTests:
        """Tests of all differences, without storing a row of weights for each difference."""
        first, second = self._places
        return WaldTests(
            self.values[first] - self.values[second],
            np.where(self.together, self.contrast_errors[first, second], np.inf),
            self.inference.freedom,
        )

    def rank_sets(self, alpha: float) -> tuple[IntArray, IntArray]:
        """Return simultaneous rank confidence sets: the least and largest rank of each item.

        They are computed by step-down tests of all identified differences. These tests need only
        the variance of each contrast, not the dependence between contrasts. Ranks are ranks within
        the item's part.
        """
        pvalues = squareform(self.pvalues)
        return rank_sets(
            self.values,
            self.inference.equations.components.together,
            lambda left: pvalues <= 2.0 * alpha / left,
        )


@dataclass(frozen=True, slots=True)
class JointTest:
    """A test of a linear hypothesis.

    Parameters
    ----------
    statistic : float
        Quadratic form of the scores. For one contrast it is the square of the normal quantile that
        has the same p-value. NaN if nothing is identified.
    df : int
        Number of identified contrasts.
    pvalue : float
        For one contrast the p-value of its score test, in all other cases a Monte Carlo p-value.
    draws : int
        Number of draws from the null distribution; the p-value is a multiple of 1 / (draws + 1). 0
        for one contrast.
    """

    statistic: float
    df: int
    pvalue: float
    draws: int


def joint_test(
    inference: Inference, contrasts: FloatArray, values: FloatArray | float = 0.0
) -> JointTest:
    """Test that contrasts of the coefficients, shape (rows, p), have these values.

    Raises
    ------
    ValueError
        If no coefficients fulfil the hypothesis.
    """
    rows, right = _independent(inference, contrasts, np.broadcast_to(values, len(contrasts)))
    if len(rows) == 0:
        return JointTest(math.nan, 0, 1.0, 0)
    if len(rows) == 1:
        pvalue = float(pvalues(inference, rows, right)[0])
        return JointTest(float(ndtri(max(0.5 * pvalue, 1e-300)) ** 2), 1, pvalue, 0)
    return _simulated(inference, rows, right)


def _independent(
    inference: Inference, contrasts: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal contrasts of the identified part of the hypothesis, and their values."""
    facts = inference.equations
    m = inference.equations.items
    whole = facts.components.projection is None
    if m > 2 and whole and np.array_equal(contrasts, np.eye(m)) and not values.any():
        return np.asarray(helmert(m)), np.zeros(m - 1)  # all worths are equal
    rows = product(contrasts, facts.linear.identity)
    size = np.abs(rows).max(axis=1, initial=0.0)
    if ((size <= _CLOSE) & (np.abs(values) > _CLOSE)).any():
        raise ValueError(_IMPOSSIBLE)
    rows = rows[size > 0] / size[size > 0, None]
    values = values[size > 0] / size[size > 0]
    amounts, axes = spectrum(rows @ rows.T)
    some = amounts > _CLOSE * amounts.max(initial=0.0)
    moved = axes[:, some].T @ values
    if not np.allclose(axes[:, some] @ moved, values, rtol=0.0, atol=1e-6):
        raise ValueError(_IMPOSSIBLE)
    length = np.sqrt(amounts[some])
    basis = (axes[:, some] / length).T @ rows
    values = moved / length
    if whole:
        return basis, values
    # combinations of these that lie within the identified coefficients
    outside = basis - facts.components.projected(basis)
    amounts, axes = spectrum(outside @ outside.T)
    inside = axes[:, amounts <= _CLOSE].T
    return inside @ basis, inside @ values


def _null_point(inference: Inference, rows: FloatArray, values: FloatArray) -> FloatArray:
    """Return the fit, moved to coefficients at which the contrasts have the given values."""
    b = inference.fitted.coefficients
    moved = inference.moves(rows)
    inner = moved @ rows.T
    off = propagate(inner, np.eye(len(rows)))
    return b + moved.T @ (pseudo_inverse(off) @ inner @ (values - rows @ b))


def _simulated(inference: Inference, rows: FloatArray, values: FloatArray) -> JointTest:
    """Test two or more orthonormal contrasts."""
    facts = inference.equations
    every = facts.components.projection is None and (
        len(rows) == np.rint(np.trace(facts.linear.identity))
    )
    # a complete set of contrasts leaves a single null point, so no direction is needed
    b = rows.T @ values if every else _null_point(inference, rows, values)
    t = facts.linear.predict(b)
    weights = rows if every else inference.weights(t, rows)
    if inference.clusters is not None:
        scores = facts.linear.spread(inference.spread(t))
    else:
        scores = score_covariance(facts, inference.release, b, facts.fitted)
    additional = inference.additional
    white = whitener(propagate(weights, scores + facts.noise_covariance(b) + additional))
    if inference.many and facts.covariates is None:  # the noise of pairs is not simulated here
        additional = additional + pair_noise(facts, b)
    # unchanged scores, even if no answers can have them, because only one point is tested
    scores_left = objective(facts)[0] + facts.linear.scores(inference.left(t))
    draws = FEW_DRAWS if facts.items > MAX_DRAWN_ITEMS else inference.draws
    null = _Null(
        float(_squares(white((weights @ scores_left)[None]))[0]),
        white(product(_drawn(inference, scores, "sampling", draws), weights.T)),
        white(product(_drawn(inference, additional, "other errors", draws), weights.T)),
        white(product(inference.draw_noise(b, draws), weights.T)),
    )
    alone = white(white(propagate(weights, scores)).T)
    if inference.clusters is not None:
        pvalue = _by_answers(inference, null, weights, t, alone, white)
    elif LARGEST in inference.release.found:
        pvalue = null.of_largest(alone, inference)
    elif inference.freedom < inference.whole_freedom:
        pvalue = null.estimated(inference.freedom)
    else:
        pvalue = null.pvalue(null.sampled, null.scale_by(inference.whole_freedom))
    return JointTest(
        null.statistic, len(rows), min(pvalue / float(shares(facts, rows).min()), 1.0), draws
    )


def _by_answers(
    inference: Inference,
    null: _Null,
    weights: FloatArray,
    t: FloatArray,
    alone: FloatArray,
    white: Callable[[FloatArray], FloatArray],
) -> float:
    """Return the larger p-value by the design effects of answers at the null point and at the fit.

    `weights` are those of the scores, `t` the predictors, and `alone` is the whitened covariance
    under independent answers. The draws are multiplied by a matrix that gives them the design
    effects of the answers. These are the eigenvalues of 1 + I^-1/2 X I^-1/2, where I is the
    covariance under independent answers and X the excess at a point. Negative eigenvalues are set
    to 0. All are raised by one factor if their sum is less than their number.
    """
    facts = inference.equations
    values = []
    along = facts.linear.along(weights)
    scale = null.scale_by(inference.whole_freedom)
    assert inference.clusters is not None
    for point, factor in inference.answer_points(t):
        there = propagate(weights, facts.linear.spread(inference.spread(point)))
        excess = factor * inference.clusters.excess(along, point)
        root = _power(white(white(there).T), -0.5)
        effects, axes = spectrum(np.eye(len(alone)) + root @ white(white(excess).T) @ root)
        effects = np.maximum(effects, 0.0)
        effects *= max(len(effects) / max(float(effects.sum()), 1e-300), 1.0)
        stretch = _power(alone, 0.5) @ ((axes * np.sqrt(effects)) @ axes.T) @ _power(alone, -0.5)
        values.append(null.pvalue(null.sampled @ stretch.T, scale))
    return float(np.max(values))


def _drawn(inference: Inference, covariance: FloatArray, label: str, draws: int) -> FloatArray:
    """Draw normal errors of the scores, the same whatever the order in which items are listed."""
    facts = inference.equations
    b = inference.fitted.coefficients
    order = np.arange(len(b))
    if facts.covariates is None:
        order[: facts.items] = np.argsort(b[: facts.items], kind="stable")
    drawn = np.empty((draws, len(b)))
    drawn[:, order] = normal_draws(
        covariance[np.ix_(order, order)], draws, public_generator(label, len(b), draws)
    )
    return drawn


def _power(matrix: FloatArray, exponent: float) -> FloatArray:
    """Return a power of a covariance, without eigenvalues that are rounding errors."""
    values, axes = spectrum(matrix)
    regular = values > 1e-13 * values.max(initial=0.0)
    return np.asarray((axes[:, regular] * values[regular] ** exponent) @ axes[:, regular].T)


def _squares(rows: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


@dataclass(frozen=True, slots=True, eq=False)
class _Null:
    """A test statistic, and draws of the parts of the errors whose squared length it is.

    Parameters
    ----------
    statistic : float
        The statistic.
    sampled, additional, noise : ndarray, shape (draws, q)
        Sampling errors, other normal errors, and noise.
    """

    statistic: float
    sampled: FloatArray
    additional: FloatArray
    noise: FloatArray

    def scale_by(self, df: float, left: float | None = None) -> FloatArray | float:
        """Return draws of the factor of a scale estimated with df, of which `left` remain."""
        if df >= KNOWN:
            return 1.0
        draws = len(self.sampled)
        drawn = public_generator("scales", draws).chisquare(left or df, (draws, 1))
        return np.sqrt(df / np.maximum(drawn, _MIN_SCALE))

    def pvalue(self, sampled: FloatArray, scale: FloatArray | float) -> float:
        """Return the Monte Carlo p-value under these sampling errors.

        `scale` is a common factor of all errors, noise included.
        """
        errors = scale * (sampled + self.additional + self.noise)
        return monte_carlo_pvalue(self.statistic, _squares(errors))

    def estimated(self, df: float) -> float:
        """Return the p-value where the covariance of normal errors is estimated (Hotelling)."""
        scale = self.scale_by(df, max(df + 1.0 - self.sampled.shape[1], 1.0))
        errors = scale * (self.sampled + self.additional) + self.noise
        return monte_carlo_pvalue(self.statistic, _squares(errors))

    def of_largest(self, alone: FloatArray, inference: Inference) -> float:
        """Return the largest p-value over numbers of directions with the largest design effect.

        `alone` is the covariance of sampling errors with this effect in all directions.
        """
        q = len(alone)
        (error, most) = inference.effect
        within = [(1, float(q)), (q, 1.0)]
        if inference.equations.covariates is None:
            counts = np.unique(np.rint(np.geomspace(1.0, q, _MAX_COUNTS)).astype(int))
            within = [(k, (q + 1.0) / (k + 1.0)) for k in counts]
        # directions in order of their share of the errors; public draws break ties
        apart = propagate(self.sampled[:q].T * np.sqrt(np.arange(1.0, q + 1.0)), np.eye(q))
        axes = spectrum(alone / np.trace(alone) + _TIE_BREAK * apart / np.trace(apart))[1][:, ::-1]
        share = float(np.trace(alone)) / q  # of sampling in the variance of all errors
        whole = inference.whole_freedom
        lost = share**2 * (0.5 * error**2 + 1.0 / inference.freedom)
        df = 1.0 / max(lost, 1.0 / whole, 1.0 / KNOWN)
        scale = self.scale_by(df)
        largest_scale = self.scale_by(whole)
        values = []
        for k, times in within:
            part = math.sqrt(times) * (self.sampled @ axes[:, :k]) @ axes[:, :k].T
            pvalue = self.pvalue(part, scale)
            if most > 1.0:  # at most the p-value with the design effect at its ceiling
                pvalue = min(pvalue, self.pvalue(math.sqrt(most) * part, largest_scale))
            values.append(pvalue)
        return float(np.max(values))
