"""Score tests of pooled worths, as :mod:`privrank.bradley_terry.scoretests` has of one fit.

**Statistic.** The worths are moved from the pooled ones, along their covariance, to where the
contrast has the value that is tested. There U is the combination of all residuals with the weights
of the pooled value, c J^-1 sum of G_k D_k^-1 residual_k in the words of
:mod:`privrank.results.pooling`: to first order the estimate less that value.

**Null.** Sampling errors are normal, of the variances at the pooled worths times what independent
answers vary more or less at those that are tested; so is the part of noise that comes with pair
counts. The noise of all releases is drawn by its exact distribution, each by itself. Variances that
are estimated take degrees of freedom by Satterthwaite's rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import helmert

from privrank.bradley_terry.errors import ScoreErrors
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.scoretests import ScoreTests, TestPoint
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.solvers import quadratic


@dataclass(frozen=True, eq=False)
class Share:
    """What one result has in pooled worths.

    Parameters
    ----------
    inference : Inference
        The fit of the result.
    b : ndarray, shape (p,)
        Its coefficients at the pooled worths.
    scores : ndarray, shape (m - 1, p)
        Contrasts of its scores.
    weights : ndarray, shape (m - 1, m - 1)
        How these move the pooled contrasts of worths.
    sampling, noise : ndarray, shape (m - 1, m - 1)
        Covariances of the sampling errors and of the noise of these, at the pooled worths.
    freedom : float
        Degrees of freedom with which the first is known.
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
    """Return score tests of combinations, shape (rows, m - 1), of pooled contrasts of worths.

    Parameters
    ----------
    contrasts : ndarray, shape (rows, m - 1)
        The combinations.
    point, covariance : ndarray, shapes (m - 1,) and (m - 1, m - 1)
        The pooled contrasts, as of Helmert's matrix, and their covariance.
    shares : tuple of Share
        What the results have in them.
    errors : ScoreErrors
        Holds the noise of the scores of all results, side by side.
    same : bool
        Whether all are of one survey, whose sampling errors they share.
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
    """Return what one result has in statistics, in the variance of noise and in that of sampling.

    Given weights of its contrasts of scores, and how far the worths are moved. For sampling it
    is by how much answers vary more than at the pooled worths; the last are the weights of its
    scores.
    """
    facts = share.inference.equations
    scores = own @ share.scores
    along = facts.linear.predict(scores)
    pooled = facts.linear.predict(share.b)
    more = ((0, 0), (0, len(share.b) - facts.items))
    edges = facts.linear.predict(share.b + np.pad(moved, more))
    expected = (along * facts.function.mean(edges)) @ facts.by_edge(facts.released)
    # errors in pair counts do more, or less, to them than at the pooled worths
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
    """Return sampling variances, and the variances of their errors.

    Given by how much answers vary more than at the pooled worths, shape (results, rows).
    """
    freedom = np.array([share.freedom for share in shares])
    if same:  # one sampling error, known as well as by the release that shows it least
        together = contrasts @ sum(share.weights for share in shares)
        variance = ratios.mean(axis=0) * quadratic(together, shares[0].sampling)
        return variance, 2.0 * variance**2 / freedom.min()
    own = [quadratic(contrasts @ share.weights, share.sampling) for share in shares]
    parts = ratios * np.array(own)
    return parts.sum(axis=0), (2.0 * parts**2 / freedom[:, None]).sum(axis=0)
