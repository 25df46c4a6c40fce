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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import helmert

from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.scoretests import Point, ScoreTests
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.solvers import quadratic


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, eq=False)
class _Point(Point):
    """A combination of all scores at each of several null points.

    Parameters
    ----------
    sampling : ndarray, shape (results, rows)
        Sampling variance that each result has in it; of one survey that of all together.
    """

    sampling: FloatArray


@dataclass(frozen=True, eq=False)
class PooledTests(ScoreTests):
    """Score tests of combinations of pooled contrasts of worths, shape (rows, m - 1).

    Parameters
    ----------
    inference, errors, contrasts
        Those of one of the results, the noise of the scores of all, and the combinations.
    point : ndarray, shape (m - 1,)
        The pooled contrasts of worths, as of Helmert's matrix.
    covariance : ndarray, shape (m - 1, m - 1)
        Their covariance.
    shares : sequence of Share
        What the results have in them.
    same : bool
        Whether all are of one survey, whose sampling errors they share.
    """

    point: FloatArray
    covariance: FloatArray
    shares: tuple[Share, ...]
    same: bool

    @property
    def known_answers(self) -> bool:
        """No answers are known."""
        return False

    @property
    def value(self) -> FloatArray:
        """The pooled combinations."""
        return np.asarray(self.contrasts @ self.point)

    @property
    def _directions(self) -> tuple[FloatArray, FloatArray]:
        moved = self.contrasts @ self.covariance
        variance = np.einsum("rp,rp->r", moved, self.contrasts)
        return moved / variance[:, None], np.sqrt(variance)

    def _at(self, t: FloatArray, rows: IntArray) -> _Point:
        """Return the statistics at values t."""
        moved = self._directions[0][rows] * (t - self.value[rows])[:, None]
        moved = moved @ helmert(moved.shape[1] + 1)
        statistic, noise, weights, sampling = np.zeros(len(t)), np.zeros(len(t)), [], []
        for share in self.shares:
            facts, own = share.inference.equations, self.contrasts[rows] @ share.weights
            scores, more = own @ share.scores, ((0, 0), (0, len(share.b) - facts.items))
            along, pooled = facts.linear.predict(scores), facts.linear.predict(share.b)
            edges = facts.linear.predict(share.b + np.pad(moved, more))
            expected = (along * facts.function.mean(edges)) @ facts.released_count
            statistic += scores @ facts.score - expected
            # errors in pair counts do more, or less, to them than at the pooled worths
            noise += quadratic(own, share.noise) + facts.count_noise(along, edges)
            noise -= facts.count_noise(along, pooled)
            varied = (along**2 * facts.spread(edges)).sum(axis=1)
            varied = varied / np.maximum(along**2 @ facts.spread(pooled), 1e-300)
            sampling.append(varied * quadratic(own, share.sampling))
            weights.append(scores)
        if self.same:  # one sampling error
            together = self.contrasts[rows] @ sum(share.weights for share in self.shares)
            alone = [quadratic(self.contrasts[rows] @ s.weights, s.sampling) for s in self.shares]
            ratio = np.mean(np.array(sampling) / np.maximum(alone, 1e-300), axis=0)
            sampling = [ratio * quadratic(together, self.shares[0].sampling)]
        none = np.zeros(0)
        return _Point(
            statistic=statistic,
            weights=np.column_stack(weights),
            along=none,
            t=none,
            variance=np.ones(len(t)),
            third=np.zeros(len(t)),
            noise=np.maximum(noise, 0.0),
            sampling=np.array(sampling),
        )

    def _variances(self, at: Point) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Return the sampling variance, and the variance of its error."""
        assert isinstance(at, _Point)
        freedom = np.array([share.freedom for share in self.shares])
        if self.same:  # known as well as by the release that shows it least
            freedom = freedom.min(keepdims=True)
        yield at.sampling.sum(axis=0), (2.0 * at.sampling**2 / freedom[:, None]).sum(axis=0)
