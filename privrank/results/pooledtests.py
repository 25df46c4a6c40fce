"""Score tests of pooled worths.

**Statistic.** The tests extend the score tests of one fit
(:mod:`privrank.bradley_terry.scoretests`). The worths are moved from the pooled worths, along their
covariance, to the point at which the contrast has the tested value. The statistic U at this point
is the combination of all residuals with the weights of the pooled value, c J^-1 sum of G_k D_k^-1
residual_k in the notation of :mod:`privrank.results.pooling`. To first order U is the estimate
minus the tested value.

**Null.** Sampling errors are taken as normal. Their variances are the variances at the pooled
worths, times the ratio of the variances of independent answers at the tested and at the pooled
worths. The part of the noise from pair counts is also taken as normal. The noise of each release is
drawn separately from its exact distribution. Estimated variances have degrees of freedom by
Satterthwaite's rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import helmert

from privrank.bradley_terry.inference import Inference, ScoreErrors
from privrank.bradley_terry.scoretests import ScoreTests, TestPoint
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.solvers import quadratic


@dataclass(frozen=True, eq=False)
class Share:
    """The contribution of one result to pooled worths.

    Parameters
    ----------
    inference : Inference
        The fit of the result.
    b : ndarray, shape (p,)
        Coefficients of the fit at the pooled worths.
    scores : ndarray, shape (m - 1, p)
        Contrasts of the scores of the fit.
    weights : ndarray, shape (m - 1, m - 1)
        Weights of these contrasts in the pooled contrasts of worths.
    sampling, noise : ndarray, shape (m - 1, m - 1)
        Covariances of the sampling errors and of the noise of the contrasts, at the pooled worths.
    freedom : float
        Degrees of freedom of the sampling covariance.
    """

    inference: Inference
    b: FloatArray
    scores: FloatArray
    weights: FloatArray
    sampling: FloatArray
    noise: FloatArray
    freedom: float


def pooled_tests(
    contrasts: FloatArray,
    point: FloatArray,
    covariance: FloatArray,
    shares: tuple[Share, ...],
    errors: ScoreErrors,
    *,
    same: bool,
) -> ScoreTests:
    """Return score tests of combinations of pooled contrasts of worths.

    Parameters
    ----------
    contrasts : ndarray, shape (rows, m - 1)
        The combinations.
    point, covariance : ndarray, shapes (m - 1,) and (m - 1, m - 1)
        The pooled Helmert contrasts and their covariance.
    shares : tuple of Share
        The contributions of the results.
    errors : ScoreErrors
        The noise of the scores of all results, side by side.
    same : bool
        Whether all results are of one survey and share its sampling error.
    """
    value = contrasts @ point
    variance = quadratic(contrasts, covariance)
    basis = helmert(len(point) + 1)
    units = contrasts @ covariance / variance[:, None]

    def at(t: FloatArray, rows: IntArray) -> TestPoint:
        moved = units[rows] * (t - value[rows])[:, None] @ basis
        parts = [_part(share, contrasts[rows] @ share.weights, moved) for share in shares]
        statistics, noises, ratios, weights = zip(*parts, strict=True)
        sampling = _sampling(contrasts[rows], np.array(ratios), shares, same=same)
        one = np.ones(len(t))
        none = np.zeros(len(t))
        noise = np.maximum(np.sum(noises, axis=0), 0.0)
        scores = np.column_stack(weights)
        statistic = np.sum(statistics, axis=0)
        return TestPoint(statistic, scores, one, none, noise, (sampling,))

    far = np.abs(value) + shares[0].inference.equations.function.link.exact.far
    return ScoreTests(value, np.sqrt(variance), far, at, errors)


def _part(share: Share, own: FloatArray, moved: FloatArray) -> tuple[FloatArray, ...]:
    """Return the contributions of one result to statistics and variances.

    The arguments include the weights of its contrasts of scores and the change of the worths. The
    returned values are the statistics, the variances of the noise, the ratios of sampling variances
    to those at the pooled worths, and the weights of the scores.
    """
    facts = share.inference.equations
    scores = own @ share.scores
    along = facts.linear.predict(scores)
    pooled = facts.linear.predict(share.b)
    more = ((0, 0), (0, len(share.b) - facts.items))
    edges = facts.linear.predict(share.b + np.pad(moved, more))
    expected = (along * facts.function.mean(edges)) @ facts.by_edge(facts.released)
    # the effect of errors in pair counts differs from the effect at the pooled worths
    noise = (
        quadratic(own, share.noise)
        + facts.count_noise(along, edges)
        - facts.count_noise(along, pooled)
    )
    varied = (along**2 * facts.spread(edges)).sum(axis=1)
    ratio = varied / np.maximum(along**2 @ facts.spread(pooled), 1e-300)
    return scores @ facts.score - expected, noise, ratio, scores


def _sampling(
    contrasts: FloatArray, ratios: FloatArray, shares: tuple[Share, ...], *, same: bool
) -> tuple[FloatArray, FloatArray]:
    """Return sampling variances and the variances of their errors.

    `ratios` are the ratios of sampling variances to those at the pooled worths, shape (results,
    rows).
    """
    freedom = np.array([share.freedom for share in shares])
    if same:  # one sampling error, with the smallest degrees of freedom
        together = contrasts @ sum(share.weights for share in shares)
        variance = ratios.mean(axis=0) * quadratic(together, shares[0].sampling)
        return variance, 2.0 * variance**2 / freedom.min()
    own = [quadratic(contrasts @ share.weights, share.sampling) for share in shares]
    parts = ratios * np.array(own)
    return parts.sum(axis=0), (2.0 * parts**2 / freedom[:, None]).sum(axis=0)
