"""Tests of several contrasts of the coefficients at once: C b = c.

**Null point.** b_0 is the fit moved along the covariance that the tests of one contrast use until
C b_0 = c (:mod:`privrank.bradley_terry.scoretests`).

**Statistic.** With A = C H^-1, H the information at b_0, and U = A (score - expected score at b_0):
Q = U' (A (S + N) A')^-1 U. Here S is the covariance of the sampling errors of the scores at b_0,
and N that of the noise. What C is multiplied by from the left does not matter.

**Null.** The distribution of Q by simulation, with normal sampling errors and the exact noise, both
drawn in the space of all scores from a public counter seed. The known
dependence of a respondent's answers decides it:

- known answers: S is that of independent ones, and draws are stretched to the covariance of the
  answers, at b_0 and at the fit, whose eigenvalues relative to S are raised by one factor to a sum
  of at least as many as there are contrasts; the larger p-value counts;
- a released largest design effect D: where it lies is not known, so sampling errors lie in k of the
  q directions, the variance in each (q + 1) / (k + 1) times that of D. With covariates in all q, or
  in one with q times that variance. The largest p-value counts. Its own noise, and the number of
  respondents, scale all errors, by Satterthwaite's rule for the share of sampling in them;
- released second moments: these, in no direction less than under independent answers, with the
  degrees of freedom of Hotelling's statistic.

A test of one contrast is that of :mod:`privrank.bradley_terry.scoretests`. Contrasts that the
release does not identify are not tested; where that is all, the p-value is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import helmert
from scipy.special import ndtri

from privrank.bradley_terry.estimate import score_covariance
from privrank.bradley_terry.inference import FEW_DRAWS, MOST_DRAWN_ITEMS, Inference
from privrank.bradley_terry.scoretests import pvalues, shares
from privrank.hypotheses.nulls import monte_carlo_pvalue, public_generator
from privrank.release.names import LARGEST
from privrank.util.arrays import FloatArray
from privrank.util.solvers import carried, normal_draws, product, pseudo_inverse, spectrum, whitener

_MOST_COUNTS = 12
"""Numbers of directions that are tried at most."""

_TIE_BREAK = 1e-6
"""Weight of public draws among shares of directions."""

_MOST_FREEDOM = 1e9
"""Degrees of freedom from which a scale counts as known."""

_CLOSE = 1e-9
"""Size of numbers that count as zero beside 1."""

_IMPOSSIBLE = "hypothesis contradicts itself: no coefficients fulfil all of its equations."


@dataclass(frozen=True, slots=True)
class JointTest:
    """A test of a linear hypothesis.

    Parameters
    ----------
    statistic : float
        Quadratic form of the scores; of one contrast the square of the normal quantile that is as
        probable as the p-value. Missing where nothing is identified.
    df : int
        Number of identified contrasts.
    pvalue : float
        Of one contrast as its table has it; else Monte Carlo.
    draws : int
        Size of the null table, of which the p-value is a multiple of 1 / (draws + 1); 0 of one
        contrast.
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
    test = _simulated(inference, rows, right)
    share = float(shares(inference.equations, rows).min())
    return replace(test, pvalue=min(test.pvalue / share, 1.0))


def _independent(
    inference: Inference, contrasts: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return as many orthonormal contrasts as the hypothesis has identified ones, and values."""
    facts, m = inference.equations, inference.equations.items
    if m > 2 and facts.known is None and np.array_equal(contrasts, np.eye(m)) and not values.any():
        return np.asarray(helmert(m)), np.zeros(m - 1)  # all worths are equal
    rows = product(contrasts, facts.linear.identity)
    size = np.abs(rows).max(axis=1, initial=0.0)
    if ((size <= _CLOSE) & (np.abs(values) > _CLOSE)).any():
        raise ValueError(_IMPOSSIBLE)
    rows, values = rows[size > 0] / size[size > 0, None], values[size > 0] / size[size > 0]
    amounts, axes = spectrum(rows @ rows.T)
    some = amounts > _CLOSE * amounts.max(initial=0.0)
    moved = axes[:, some].T @ values
    if not np.allclose(axes[:, some] @ moved, values, rtol=0.0, atol=1e-6):
        raise ValueError(_IMPOSSIBLE)
    length = np.sqrt(amounts[some])
    basis, values = (axes[:, some] / length).T @ rows, moved / length
    if facts.known is None:
        return basis, values
    # combinations of these of which nothing lies in what is not identified
    outside = basis - facts.projected(basis)
    amounts, axes = spectrum(outside @ outside.T)
    inside = axes[:, amounts <= _CLOSE].T
    return inside @ basis, inside @ values


def _null_point(inference: Inference, rows: FloatArray, values: FloatArray) -> FloatArray:
    """Return the fit moved to where the contrasts have their values."""
    b, moved = inference.fitted.coefficients, inference.moves(rows)
    inner = moved @ rows.T
    off = carried(inner, np.eye(len(rows)))
    return b + moved.T @ (pseudo_inverse(off)[0] @ inner @ (values - rows @ b))


def _simulated(inference: Inference, rows: FloatArray, values: FloatArray) -> JointTest:
    """Test orthonormal contrasts, more than one."""
    facts, release = inference.equations, inference.release
    every = len(rows) == np.rint(np.trace(facts.linear.identity)) and facts.known is None
    # contrasts that are all there are leave one point, and need no direction
    b = rows.T @ values if every else _null_point(inference, rows, values)
    t = facts.linear.predict(b)
    weights = rows if every else inference.weights(t, rows)
    if inference.clusters is not None:
        scores = facts.linear.information(inference.spread(t))
    else:
        scores = score_covariance(facts, release, b, facts.fitted)
    beside = inference.beside
    white = whitener(carried(weights, scores + facts.noise_covariance(b) + beside))
    if inference.many and facts.covariates is None:  # of these no noise of pairs is drawn
        beside = beside + facts.pair_noise(b)
    # scores as they are, also where no answers can give them: the hypothesis is about one point
    scored = weights @ inference.scores_left(t)
    draws = FEW_DRAWS if facts.items > MOST_DRAWN_ITEMS else inference.draws
    null = _Null(
        float(_squares(white(scored[None]))[0]),
        white(product(_drawn(inference, scores, "sampling", draws), weights.T)),
        white(product(_drawn(inference, beside, "other errors", draws), weights.T)),
        white(product(inference.draw_noise(b, draws), weights.T)),
    )
    alone = white(white(carried(weights, scores)).T)
    if inference.clusters is not None:
        pvalue = _by_answers(inference, null, (weights, t), alone, white)
    elif LARGEST in release.found:
        pvalue = null.of_largest(alone, inference)
    else:
        pvalue = null.estimated(inference.freedom, null.sampled)
    return JointTest(null.statistic, len(rows), pvalue, draws)


def _by_answers(
    inference: Inference,
    null: _Null,
    at: tuple[FloatArray, FloatArray],
    alone: FloatArray,
    white: Callable[[FloatArray], FloatArray],
) -> float:
    """Return the larger p-value by the design effects of answers at the null point, and at the fit.

    Given weights of the scores, and predictors, and the covariance of independent answers.
    """
    facts, n = inference.equations, inference.release.design.nobs
    weights, t = at
    along = facts.linear.predict(weights)
    fit = facts.linear.predict(inference.fitted.coefficients)
    values = []
    assert inference.clusters is not None
    for point, factor in ((t, 1.0), (fit, n / max(n - 1.0, 1.0))):
        there = carried(weights, facts.linear.information(inference.spread(point)))
        excess = factor * inference.clusters.excess(along, point)
        stretch = _stretch(alone, white(white(there).T), white(white(excess).T))
        values.append(null.pvalue(null.sampled @ stretch.T))
    return float(np.max(values))


def _drawn(inference: Inference, covariance: FloatArray, label: str, draws: int) -> FloatArray:
    """Draw normal errors of the scores, the same whatever the order in which items are listed."""
    facts, b = inference.equations, inference.fitted.coefficients
    generator, order = public_generator(label, len(b), draws), np.arange(len(b))
    if facts.covariates is None:
        order[: facts.items] = np.argsort(b[: facts.items], kind="stable")
    drawn = np.empty((draws, len(b)))
    drawn[:, order] = normal_draws(covariance[np.ix_(order, order)], draws, generator)
    return drawn


def _stretch(alone: FloatArray, there: FloatArray, excess: FloatArray) -> FloatArray:
    """Return what gives independent errors of covariance `alone` the design effects of answers.

    These are 1 + I^-1/2 X I^-1/2, of the covariance I of independent answers and the excess X at a
    point, not negative and raised by one factor to a sum of at least their number.
    """
    own, point = _power(alone, 0.5), _power(there, -0.5)
    values, axes = spectrum(np.eye(len(alone)) + point @ excess @ point)
    values = np.maximum(values, 0.0)
    values *= max(len(values) / max(float(values.sum()), 1e-300), 1.0)
    effect = (axes * np.sqrt(values)) @ axes.T
    return np.asarray(own @ effect @ _power(alone, -0.5))


def _power(matrix: FloatArray, exponent: float) -> FloatArray:
    """Return a power of a covariance, of what is more than rounding."""
    values, axes = spectrum(matrix)
    regular = values > 1e-13 * values.max(initial=0.0)
    return np.asarray((axes[:, regular] * values[regular] ** exponent) @ axes[:, regular].T)


def _squares(rows: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


@dataclass(frozen=True, slots=True, eq=False)
class _Null:
    """A statistic, and draws of the parts of the errors of which it is the squared length.

    Parameters
    ----------
    statistic : float
        The statistic.
    sampled, beside, noise : ndarray, shape (draws, q)
        Sampling errors, other normal errors, and noise.
    """

    statistic: float
    sampled: FloatArray
    beside: FloatArray
    noise: FloatArray

    def pvalue(self, sampled: FloatArray) -> float:
        """Return the Monte Carlo p-value under these sampling errors."""
        return monte_carlo_pvalue(self.statistic, _squares(sampled + self.beside + self.noise))

    def _scale(self, df: float, left: float) -> FloatArray | float:
        """Return draws of the factor of a scale estimated with df, of which some are left."""
        if df >= _MOST_FREEDOM:
            return 1.0
        draws = len(self.sampled)
        return np.sqrt(df / public_generator("scales", draws).chisquare(left, (draws, 1)))

    def estimated(self, df: float, sampled: FloatArray) -> float:
        """Return the p-value where the covariance of normal errors is estimated (Hotelling)."""
        scale = self._scale(df, max(df + 1.0 - sampled.shape[1], 1.0))
        errors = scale * (sampled + self.beside) + self.noise
        return monte_carlo_pvalue(self.statistic, _squares(errors))

    def of_largest(self, alone: FloatArray, inference: Inference) -> float:
        """Return the largest p-value by how many directions a largest design effect may be in.

        Given the covariance of sampling errors with this effect in all of them.
        """
        q, (error, most) = len(alone), inference.effect
        counts = np.unique(np.rint(np.geomspace(1.0, q, _MOST_COUNTS)).astype(int))
        within = (
            [(k, (q + 1.0) / (k + 1.0)) for k in counts]
            if inference.equations.covariates is None
            else [(1, float(q)), (q, 1.0)]
        )
        # directions by their share of the errors; where shares are equal, by public draws
        public = self.sampled[:q].T * np.sqrt(np.arange(1.0, q + 1.0))
        apart = carried(public, np.eye(q))
        axes = spectrum(alone / np.trace(alone) + _TIE_BREAK * apart / np.trace(apart))[1][:, ::-1]
        share = float(np.trace(alone)) / q  # of sampling in the variance of all errors
        lost = share**2 * (0.5 * error**2 + 1.0 / inference.freedom)
        values, rest = [], inference.release.design.item_freedom or math.inf
        df = 1.0 / max(lost, 1.0 / rest, 1.0 / _MOST_FREEDOM)
        scale = self._scale(df, df)
        for k, times in within:
            part = math.sqrt(times) * (self.sampled @ axes[:, :k]) @ axes[:, :k].T
            errors = scale * (part + self.beside + self.noise)
            pvalue = monte_carlo_pvalue(self.statistic, _squares(errors))
            if most > 1.0:  # no more than at its ceiling, where the scatter of items is not known
                pvalue = min(pvalue, self.estimated(rest, math.sqrt(most) * part))
            values.append(pvalue)
        return float(np.max(values))
