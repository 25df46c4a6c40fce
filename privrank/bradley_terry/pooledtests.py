"""Intervals and p-values of pooled worths by their noisy scores, as of one release.

The score tests of :mod:`privrank.bradley_terry.inversion`, whose words say why, for the equations
of all releases together.

**Statistic.** At a value t of the combination c'x: x_t, the pooled value moved along Sigma c, Sigma
its covariance, until c'x_t = t; and the one-step estimate of c'x - t there, c' sum_k W_k r_k, with
W_k = J^-1 G_k D_k^-1 from the slopes G_k at x_t and the D_k at the pooled value. As the W_k G_k add
up to the identity, it does not depend on the other contrasts to first order. Residuals r_k are what
is expected at the pooled value less what is at x_t, so that the pooled value itself is never
rejected.

**Null.** The errors of :class:`privrank.bradley_terry.pooling.Pooled` for these weights, the
variance of sampling times what it is at x_t over what it is at the pooled value, if answers are
independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrank.bradley_terry.inversion import beside_zero
from privrank.bradley_terry.pooling import Along, Pooled
from privrank.bradley_terry.sources import Expected
from privrank.util.solvers import bracket, solve_each

__all__ = ["intervals", "pvalues"]

FloatArray = NDArray[np.float64]

_HALVINGS = 20
"""Steps of the search for a limit, each halving what is left of it."""

_LEAST = 1e-9
"""Share of the information that stands for it where there is none left."""


def intervals(pooled: Pooled, rows: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return limits of combinations, shape (rows, p), of a pooled value of one block.

    They are infinite where the scores set none, and hold zero exactly where :func:`pvalues` is
    above `alpha`. Wald's where some release has no score tests.
    """
    value = rows @ pooled.point[0]
    if not pooled.scored:
        half = pooled.half_widths(pooled.along(rows, _block(rows)), alpha)
        return value - half, value + half
    tests = _ScoreTests(pooled, rows)
    lower, upper = (value + side * tests.distance(side, alpha) for side in (-1.0, 1.0))
    return beside_zero(lower, upper, tests.zero > alpha, value > 0)


def pvalues(pooled: Pooled, rows: FloatArray) -> FloatArray:
    """Return two-sided p-values of the hypotheses that combinations are zero, shape (rows,)."""
    if not pooled.scored:
        return pooled.pvalues(pooled.along(rows, _block(rows)), rows @ pooled.point[0])
    return _ScoreTests(pooled, rows).zero


def _block(rows: FloatArray) -> NDArray[np.int64]:
    return np.zeros(len(rows), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _ScoreTests:
    """Score tests of combinations, shape (rows, p), at any distances from the pooled value."""

    pooled: Pooled
    rows: FloatArray

    @cached_property
    def value(self) -> FloatArray:
        """The pooled values of the combinations."""
        return np.asarray(self.rows @ self.pooled.point[0])

    @cached_property
    def _direction(self) -> tuple[FloatArray, FloatArray]:
        """Return where a combination takes the pooled value, by its unit, and standard errors."""
        moved = self.rows @ self.pooled.covariance[0]
        variance = np.maximum(np.einsum("rp,rp->r", moved, self.rows), 1e-300)
        return moved / variance[:, None], np.sqrt(variance)

    def _scores(self, away: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the statistics, the weights of the residuals, and the ratios of the variances."""
        pooled, here = self.pooled, self.pooled.point
        points = here + self._direction[0] * away[:, None]
        there, known = (Expected.of(pooled.sources, x, pooled.same) for x in (points, here))
        slopes = there.information @ pooled.precision
        total = (slopes @ there.information).sum(axis=0)
        whole = known.information @ pooled.precision @ known.information
        least = _LEAST * np.trace(whole.sum(axis=(0, 1))) * np.eye(here.shape[1])
        moved = solve_each(total + least, self.rows)
        # a direction is meant, whatever its length
        moved = moved / np.maximum(np.abs(moved).max(axis=1, keepdims=True), 1e-300)
        weights = np.einsum("rp,krpq->krq", moved, slopes)
        statistic = np.einsum("krq,krq->r", weights, known.mean - there.mean)
        given = np.broadcast_to(weights.sum(axis=0), weights.shape) if pooled.same else weights
        both = [
            np.einsum("krp,krpq,krq->r", given, np.broadcast_to(each, slopes.shape), given)
            for each in (there.independent, known.independent)
        ]
        return statistic, weights, both[0] / np.maximum(both[1], 1e-300)

    def _shown(self, weights: FloatArray, shape: Along | None = None) -> Along:
        return self.pooled.through(weights, _block(self.rows), shape)

    def _pvalues(self, away: FloatArray, shape: Along | None = None) -> FloatArray:
        """Return p-values of values so far from the pooled ones, given the shape of the noise."""
        statistic, weights, ratio = self._scores(away)
        return self.pooled.pvalues(self._shown(weights, shape), statistic, ratio=ratio)

    @cached_property
    def zero(self) -> FloatArray:
        """P-values of zero."""
        return self._pvalues(-self.value)

    def distance(self, side: float, alpha: float) -> FloatArray:
        """Return the distances on one side, below (-1) or above (1), of values that are rejected.

        Infinite where none is rejected out to where the links are flat.
        """
        most = np.abs(self.value) + self.pooled.far
        near, far = np.zeros(len(most)), -ndtri(0.5 * alpha) * self._direction[1]
        far = np.minimum(far, most)
        # the shape of the noise changes slowly: that at Wald's limit
        shape = self._shown(self._scores(side * far)[1])
        inside = np.ones(len(most), dtype=np.bool_)
        while inside.any():
            inside = inside & (self._pvalues(side * far, shape) > alpha)
            near = np.where(inside, far, near)
            inside = inside & (far < most)
            far = np.where(inside, np.minimum(2.0 * far, most), far)
        endless = near >= most
        _, far = bracket(lambda t: self._pvalues(side * t, shape) > alpha, near, far, _HALVINGS)
        return np.where(endless, np.inf, far)
