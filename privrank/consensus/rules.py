"""The rules that make an order of a pair matrix, by name, and the one for noise: empirical Bayes.

A pair matrix of fractions has entries (i, j) and (j, i) that add up to 1. On a noisy one Kemeny's
order follows the noise and Borda's averages over it, but Borda's is wrong where the majorities are
not those of any scores. Shrinking as far as the noise explains the misfit, towards a logit surface,
has the better of both. All of it is post-processing of the released matrix and the public variance
of its noise.
"""

from __future__ import annotations

import math
from functools import partial
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
"""Seconds of integer programming for a fit; after them the best order is taken, with its gap."""

LARGEST_SPREAD = 10.0
MIN_SPREAD = 0.3
"""Standard deviation of each score under the ridge: the larger only keeps a saturated fit finite,
with the smaller the surface is next to linear."""

_ERRORS = 2.0
"""Standard errors that a misfit has to exceed 0 by to be one."""

_ROUNDS = 200
"""Newton steps at most; ten are common."""

_REFITS = 3
"""Fits of the surface where pairs differ in variance, each with the misfit of the one before."""


def fit_scores(
    pairs: FloatArray,
    variance: FloatArray | float,
    start: FloatArray | None = None,
    spread: float = LARGEST_SPREAD,
) -> FloatArray:
    """Return the scores whose logistic differences fit a pair matrix best.

    Given fractions P, which may lie outside [0, 1], and the positive variance V of the noise in
    each, a number or a symmetric matrix, infinite where nothing is known of a pair. Minimises the
    sum over i < j of (P[i, j] - F(t_i - t_j))^2 / (2 V[i, j]), F logistic, plus
    |t|^2 / (2 spread^2). Returns a stationary point of mean 0.

    Notes
    -----
    **Statistic.** The criterion is not convex, so the start is part of the method: `start`, or else
    t_i is twice the logit of the mean of P[i, j] over j other than i, weighted by 1 / V[i, j], kept
    within [1 / (2 m), 1 - 1 / (2 m)] (small scores t have mean fractions
    1/2 + t_i m / (4 (m - 1))). Newton steps within a region of trust lower it from there.

    **Numerics.** The mean of a gradient is that of the ridge alone, so t stays at mean 0.
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
        """Return half the criterion, in which each pair is there twice, and its gradient."""
        rest, slope = surface(t)
        value = float(0.25 * (weights * rest**2).sum() + 0.5 * ridge * (t @ t))
        return value, np.asarray((weights * slope * rest).sum(axis=1) + ridge * t)

    def hessian(t: FloatArray) -> FloatArray:
        # F'^2 is the curvature of Gauss and Newton; F'' = -F' tanh(difference / 2) adds the rest
        rest, slope = surface(t)
        weight = weights * slope * (slope + rest * np.tanh(0.5 * (t - t[:, None])))
        return np.asarray(np.diag(weight.sum(axis=1) + ridge) - weight)

    # it goes on to the limits of double precision, where the method gives up or is stopped
    newton = partial(
        minimize,
        criterion,
        start,
        method="trust-exact",
        jac=True,
        hess=hessian,
        options={"gtol": 1e-10, "maxiter": _ROUNDS},
    )
    scores = with_fallback(lambda: newton().x, lambda: start)
    scores = scores if np.isfinite(scores).all() else start
    return np.asarray(scores - scores.mean())


def _weights(items: int, variance: FloatArray | float) -> tuple[FloatArray, float]:
    """Return weights of pairs that fall with their variance, and the variance of weight one.

    The weights are 0 on the diagonal and have a mean of 1 beside it.
    """
    precision = np.zeros((items, items)) + 1.0 / np.asarray(variance)
    unit = items * (items - 1) / (precision.sum() - np.trace(precision))
    weights = np.ones((items, items)) if np.ndim(variance) == 0 else precision * unit
    np.fill_diagonal(weights, 0.0)
    return weights, float(unit)


def prior_of(pairs: FloatArray, variance: FloatArray | float) -> tuple[FloatArray, float]:
    """Return scores to search from, and the standard deviation that scores have about 0.

    Notes
    -----
    **Statistic.** The lead of an item is the mean of its fractions less 1/2, weighted by 1 / V,
    with noise of variance 1 / sum(1 / V). All leads are shrunk by one factor, so that their mean
    square is what it would be without that noise, or 0, and 2 logit(1/2 + lead) is the score of an
    item (:func:`fit_scores`). Their root mean square is the standard deviation, at least .3. Where
    noise hides all leads, scores are then next to linear in the fractions, as Borda's are; where
    the fractions are all but exact, it makes no difference.
    """
    m = len(pairs)
    precision = np.zeros((m, m)) + 1.0 / np.asarray(variance)
    np.fill_diagonal(precision, 0.0)
    total = precision.sum(axis=1)
    deviation = np.where(precision > 0, pairs - 0.5, 0.0)
    leads = (precision * deviation).sum(axis=1) / total
    # the share of the leads' mean square that noise of variance 1 / total leaves to them
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
    """Shrink a noisy pair matrix towards the logit surface that fits it, searched from `start`.

    Returns the fractions, the scores of the surface, of mean 0, and the weight in [0, 1] of the
    noisy fractions, a number or one for each pair; the surface has the rest. `variance` is that of
    the noise in each fraction, a number or a symmetric matrix. 0, as a number, leaves the fractions
    as they are, and a pair of infinite variance is taken from the surface. `spread` is the standard
    deviation of the scores under the ridge of their fit.

    Notes
    -----
    **Statistic.** The D pairs of finite variance V have residuals from the surface, which m - 1
    scores are fitted to. With weights w their weighted squares have the expected sum
    (1 - (m - 1) / D) (sum of w V) + (sum of w) misfit, to first order. So the misfit is estimated
    by moments, less two standard errors of the estimate if there is none and noise is normal, at
    least 0: noise is no misfit. Each fraction is then its posterior mean, when fractions lie about
    the surface with that variance: trust = misfit / (misfit + V). Where variances differ, w is 1
    first and then 1 / (V + misfit), by which the surface is fitted again. With 1 / V alone a few
    pairs that are well known would draw the surface to themselves and hide the misfit.
    """
    matrix = np.array(pairs, dtype=np.float64)
    np.fill_diagonal(matrix, 0.5)
    m = len(matrix)
    if np.ndim(variance) == 0 and variance == 0:
        # the scores are only for the reader: any small variance names the same fit
        return matrix, fit_scores(matrix, 1e-6, start), 1.0
    table = np.zeros((m, m)) + variance
    known = np.isfinite(table) & ~np.eye(m, dtype=np.bool_)
    # of D pairs, each of which is there twice, m - 1 scores leave the share 1 - (m - 1) / D
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
        # each pair is there twice, and a square of normal noise has twice the square of its mean
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
    """Return the order a rule makes of a matrix of fractions.

    Given fractions, the variance of the noise in each, and a uniform permutation of the items: the
    pivots of KwikSort, the order of equal scores, and where local search starts. The scores of
    EB-Kemeny may be searched from a `start`. A rule that searches for no optimum has the trivial
    bound: each pair at its smaller weight.

    **Statistic.** "EB-Kemeny" is Kemeny's order of the shrunken fractions, by scores that have the
    spread of :func:`prior_of`, unless they are searched from a start. If integer programming runs
    out of time, a local search from the order of the scores competes with what it found.
    """
    if rule == "EB-Kemeny":
        spread = LARGEST_SPREAD
        if start is None and np.any(variance):
            start, spread = prior_of(pairs, variance)
        shrunk, scores, _ = shrink(pairs, variance, start, spread)
        best = kemeny(shrunk, time_limit=TIME_LIMIT)
        if best.proven:
            return best
        # programming ran out of time: the better of what it found and of a local search
        return best.improved(local_search(order_of(scores), shrunk), shrunk)
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
