"""Rules that compute an order from a pair matrix, and the empirical Bayes rule for noisy matrices.

The entries (i, j) and (j, i) of a pair matrix of fractions sum to 1. On a noisy matrix Kemeny's
order fits the noise, and Borda's order averages over it; but Borda's order is wrong if the
majorities cannot be represented by scores. Shrinkage towards a logit surface, to the degree that
noise explains the misfit, combines the advantages of both. All computations are post-processing of
the released matrix and the public variance of its noise.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from privrank.consensus.orders import (
    KemenyOrder,
    borda,
    by_score,
    copeland,
    kemeny,
    kwiksort,
    local_search,
    order_of,
    weight_against,
)
from privrank.util.arrays import FloatArray
from privrank.util.solvers import with_fallback

Rule = Literal["EB-Kemeny", "Kemeny", "Borda", "Copeland", "local search", "KwikSort"]

TIME_LIMIT = 10.0
"""Seconds of integer programming for a fit; the best order found is then used, with its gap."""

LARGEST_SPREAD = 10.0
MIN_SPREAD = 0.3
"""Bounds on the standard deviation of the scores under the ridge. The upper bound keeps a saturated
fit finite; at the lower bound the surface is nearly linear."""

_ERRORS = 2.0
"""Number of standard errors by which a misfit must exceed 0."""

_ROUNDS = 200
"""Largest number of Newton steps; ten are typical."""

_REFITS = 3
"""Number of fits of the surface if variances differ between pairs; each uses the last misfit."""


def fit_scores(
    pairs: FloatArray,
    variance: FloatArray | float,
    start: FloatArray | None = None,
    spread: float = LARGEST_SPREAD,
) -> FloatArray:
    """Return the scores whose logistic differences fit a pair matrix best.

    Arguments are fractions P, which may lie outside [0, 1], and the positive variance V of the
    noise in each: a number or a symmetric matrix, infinite for pairs without information. Minimises
    the sum over i < j of (P[i, j] - F(t_i - t_j))^2 / (2 V[i, j]), with F logistic, plus
    |t|^2 / (2 spread^2). Returns a stationary point with mean 0.

    Notes
    -----
    **Statistic.** The criterion is not convex, so the start is part of the method. By default t_i
    starts at twice the logit of the mean of P[i, j] over j other than i, weighted by 1 / V[i, j]
    and clipped to [1 / (2 m), 1 - 1 / (2 m)] (small scores t have mean fractions
    1/2 + t_i m / (4 (m - 1))). Newton steps in a trust region decrease the criterion from there.

    **Numerics.** The mean of the gradient is the mean for the ridge alone, so t keeps mean 0.
    """
    m = len(pairs)
    weights, unit = _weights(m, variance)
    ridge = unit / spread**2
    pairs = np.where(weights > 0, pairs, 0.5)
    if start is None:
        share = (weights * pairs).sum(axis=1) / weights.sum(axis=1)
        start = 2.0 * logit(np.clip(share, 0.5 / m, 1.0 - 0.5 / m))
    start = start - start.mean()

    def surface(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return residuals from the surface, and its slopes F' = F (1 - F)."""
        fitted = expit(t[:, None] - t)
        return fitted - pairs, fitted * (1.0 - fitted)

    def criterion(t: FloatArray) -> tuple[float, FloatArray]:
        """Return half the criterion, which includes each pair twice, and its gradient."""
        rest, slope = surface(t)
        value = float(0.25 * (weights * rest**2).sum() + 0.5 * ridge * (t @ t))
        return value, np.asarray((weights * slope * rest).sum(axis=1) + ridge * t)

    def hessian(t: FloatArray) -> FloatArray:
        # F'^2 is the Gauss-Newton curvature; F'' = -F' tanh(difference / 2) gives the other term
        rest, slope = surface(t)
        weight = weights * slope * (slope + rest * np.tanh(0.5 * (t - t[:, None])))
        return np.asarray(np.diag(weight.sum(axis=1) + ridge) - weight)

    # iterate to the limits of double precision, where the method fails or is stopped
    options = {"gtol": 1e-10, "maxiter": _ROUNDS}
    scores = with_fallback(
        lambda: (
            minimize(
                criterion, start, method="trust-exact", jac=True, hess=hessian, options=options
            ).x
        ),
        lambda: start,
    )
    scores = scores if np.isfinite(scores).all() else start
    return np.asarray(scores - scores.mean())


def _weights(items: int, variance: FloatArray | float) -> tuple[FloatArray, float]:
    """Return weights of pairs that decrease with their variance, and the variance of weight one.

    The weights are 0 on the diagonal and have mean 1 off the diagonal.
    """
    precision = np.zeros((items, items)) + 1.0 / np.asarray(variance)
    unit = items * (items - 1) / (precision.sum() - np.trace(precision))
    weights = np.ones((items, items)) if np.ndim(variance) == 0 else precision * unit
    np.fill_diagonal(weights, 0.0)
    return weights, float(unit)


def prior_of(pairs: FloatArray, variance: FloatArray | float) -> tuple[FloatArray, float]:
    """Return starting values of the scores, and the standard deviation of scores about 0.

    Notes
    -----
    **Statistic.** The lead of an item is the mean of its fractions minus 1/2, weighted by 1 / V,
    with noise of variance 1 / sum(1 / V). All leads are multiplied by one shrinkage factor, which
    makes their mean square equal to its value without that noise, or 0. The score of an item is
    then 2 logit(1/2 + lead) (:func:`fit_scores`). The standard deviation is the root mean square of
    the scores, at least 0.3. If noise dominates all leads, the scores are nearly linear in the
    fractions, as Borda scores are. If the fractions are nearly exact, it makes no difference.
    """
    m = len(pairs)
    precision = np.zeros((m, m)) + 1.0 / np.asarray(variance)
    np.fill_diagonal(precision, 0.0)
    total = precision.sum(axis=1)
    deviation = np.where(precision > 0, pairs - 0.5, 0.0)
    leads = (precision * deviation).sum(axis=1) / total
    # the fraction of the leads' mean square that remains after noise of variance 1 / total
    square = float((leads**2).mean())
    left = max(0.0, 1.0 - float((1.0 / total).mean()) / square) if square > 0 else 0.0
    scores = 2.0 * logit(np.clip(0.5 + math.sqrt(left) * leads, 0.5 / m, 1.0 - 0.5 / m))
    return scores, min(max(math.sqrt(float((scores**2).mean())), MIN_SPREAD), LARGEST_SPREAD)


def shrink(
    pairs: NDArray[Any],
    variance: FloatArray | float,
    start: FloatArray | None = None,
    spread: float = LARGEST_SPREAD,
) -> tuple[FloatArray, FloatArray, FloatArray | float]:
    """Shrink a noisy pair matrix towards the logit surface that fits it, from a start.

    Returns the fractions, the scores of the surface (mean 0), and the weight in [0, 1] of the noisy
    fractions, a number or one for each pair; the surface has the remaining weight. `variance` is
    the variance of the noise in each fraction, a number or a symmetric matrix. The number 0 leaves
    the fractions unchanged; a pair with infinite variance is replaced by the surface. `spread` is
    the standard deviation of the scores under the ridge of their fit.

    Notes
    -----
    **Statistic.** D pairs have finite variance V, and m - 1 scores are fitted to them. With weights
    w the weighted squares of their residuals from the surface have the expected sum
    (1 - (m - 1) / D) (sum of w V) + (sum of w) misfit, to first order. The misfit is estimated by
    the method of moments, minus two standard errors of this estimate under no misfit and normal
    noise, and at least 0: noise is not misfit. Each fraction is then its posterior mean, assuming
    that fractions vary about the surface with this variance: trust = misfit / (misfit + V). If
    variances differ, w is first 1 and then 1 / (V + misfit), and the surface is fitted again. With
    weights 1 / V a few precisely known pairs would determine the surface and hide the misfit.
    """
    matrix = np.array(pairs, dtype=np.float64)
    np.fill_diagonal(matrix, 0.5)
    m = len(matrix)
    if np.ndim(variance) == 0 and variance == 0:
        # the scores are only reported: every small variance gives the same fit
        return matrix, fit_scores(matrix, 1e-6, start), 1.0
    table = np.zeros((m, m)) + variance
    known = np.isfinite(table) & ~np.eye(m, dtype=np.bool_)
    # D pairs, each included twice: m - 1 scores leave the fraction 1 - (m - 1) / D
    free = 1.0 - 2.0 * (m - 1) / float(known.sum())
    alike = np.where(known, table[known].mean(), np.inf)
    about, rounds = (variance, 1) if np.ndim(variance) == 0 else (alike, _REFITS)
    for _ in range(rounds):
        scores = fit_scores(matrix, about, start, spread)
        surface = expit(scores[:, None] - scores)
        rest = np.where(known, matrix - surface, 0.0)
        weights, _ = _weights(m, about)
        noise = weights[known] * table[known]
        excess = float(weights[known] @ rest[known] ** 2) - free * float(noise.sum())
        # each pair is included twice; a square of normal noise has variance twice its mean squared
        excess -= _ERRORS * math.sqrt(max(free, 0.0) * 4.0 * float(noise @ noise))
        misfit = max(0.0, excess / float(weights.sum()))
        about = table + misfit
    trust = misfit / (misfit + variance)
    return surface + trust * rest, scores, trust


def consensus_of(
    rule: Rule,
    pairs: FloatArray,
    variance: FloatArray | float,
    tie_break: tuple[int, ...],
    start: FloatArray | None = None,
) -> KemenyOrder:
    """Return the order that a rule computes from a matrix of fractions.

    Arguments are fractions, the variance of the noise in each, and a uniform permutation of the
    items. The permutation gives the pivots of KwikSort, the order of equal scores and the start of
    local search. `start` gives starting values for the scores of EB-Kemeny. A rule without
    optimisation has the trivial bound: each pair at its smaller weight.

    **Statistic.** "EB-Kemeny" is Kemeny's order of the shrunken fractions. Without a start, the
    scores have the standard deviation of :func:`prior_of`. If integer programming runs out of time,
    the result is the better of its order and a local search from the order of the scores.
    """
    if rule == "EB-Kemeny":
        spread = LARGEST_SPREAD
        if start is None and np.any(variance):
            start, spread = prior_of(pairs, variance)
        shrunk, scores, _ = shrink(pairs, variance, start, spread)
        best = kemeny(shrunk, time_limit=TIME_LIMIT)
        if best.proven:
            return best
        # integer programming ran out of time: use the better of its order and a local search
        order = local_search(order_of(scores), shrunk)
        score = weight_against(order, shrunk)
        return best if score >= best.score else KemenyOrder(order, score, min(best.bound, score))
    if rule == "Kemeny":
        return kemeny(pairs, time_limit=TIME_LIMIT)
    if rule == "KwikSort":
        order = kwiksort(pairs, np.array(tie_break, dtype=np.int64))
    elif rule == "local search":
        order = local_search(by_score(borda(pairs), tie_break), pairs)
    else:
        order = by_score(borda(pairs) if rule == "Borda" else copeland(pairs), tie_break)
    least = float(np.triu(np.minimum(pairs, pairs.T), 1).sum())
    return KemenyOrder(order, weight_against(order, pairs), least)
