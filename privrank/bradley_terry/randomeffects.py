"""Random effects: the mean over surveys whose values differ, and by how much they do.

The surveys are taken as drawn from many, each with values of its own: the true ones of survey k are
x + u_k, with u_k of mean zero and covariance tau^2 I, the same tau for all numbers. So a survey's
residual at x, of slope -G_k, has the covariance D_k + tau^2 G_k G_k', and all else is as it is for
common values (:mod:`privrank.bradley_terry.pooling`), by one step from the pooled value.

**Tau** is that of Paule and Mandel (1982, https://doi.org/10.6028/jres.087.022): Cochran's Q with
these covariances is what it is in expectation, its degrees of freedom, or tau is 0.

**Intervals** are those of Hartung and Knapp (2001, https://doi.org/10.1002/sim.1009), for each
combination by itself. What survey k adds to the estimate, c' W_k r_k with r_k its residual at the
estimate, has the variance a_k before and h_k after the estimate was taken off. The variance of the
estimate is multiplied by

    q = sum_k (c' W_k r_k)^2 / a_k  /  sum_k h_k / a_k,

which for one number with weights w is sum w (y - x)^2 / (K - 1), and is at least what it is for
common values; Student's t has K - 1 degrees of freedom. So a tau that is estimated from few
surveys, or that is not the same for all numbers, changes the weights but not whether intervals
cover.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from privrank.bradley_terry.pooling import Pooled
from privrank.bradley_terry.sources import Stacked, inverses
from privrank.util.solvers import zero

__all__ = ["RandomEffects", "random_effects"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_STEPS = 2
"""Times that the equations are taken at the mean, which then moves little more."""


@dataclass(frozen=True, eq=False)
class RandomEffects:
    """The mean of values that differ between surveys.

    Parameters
    ----------
    common : Pooled
        The same surveys, pooled as if they had common values.
    start : ndarray, shape (blocks, p)
        A value near the mean, at which the equations are taken.
    tau : float
        Standard deviation of each number between surveys.
    """

    common: Pooled
    start: FloatArray
    tau: float

    @cached_property
    def _here(self) -> Stacked:
        return Stacked.of(self.common.sources, self.start, False)

    @cached_property
    def _found(self) -> _Combined:
        return _Combined.of(self._here, self.tau**2)

    @property
    def point(self) -> FloatArray:
        """The mean, shape (blocks, p)."""
        return np.asarray(self.start + self._found.step)

    @property
    def parts(self) -> tuple[FloatArray, FloatArray]:
        """Covariances of sampling and of noise, shape (blocks, p, p), without tau."""
        return self._here.split(self._found.weights)

    @property
    def shares(self) -> FloatArray:
        """Mean weights of the surveys, which add up to 1."""
        shares = self._found.weights @ self._here.information
        return np.asarray(np.trace(shares, axis1=-2, axis2=-1).mean(axis=1) / self.start.shape[1])

    @property
    def freedom(self) -> int:
        """Degrees of freedom of intervals."""
        return len(self.common.sources) - 1

    def errors(self, rows: FloatArray, blocks: IntArray) -> FloatArray:
        """Return standard errors of combinations, shape (rows, p), of one block each."""
        found, spread = self._found, "rp,krpq,rq->kr"
        moved = found.weights @ found.differing @ found.weights.swapaxes(-1, -2)
        slopes = found.weights @ self._here.information
        taken = slopes @ found.covariance @ slopes.swapaxes(-1, -2)
        before = np.einsum(spread, rows, moved[:, blocks], rows)
        after = before - np.einsum(spread, rows, taken[:, blocks], rows)
        added = np.einsum("rp,krpq,krq->kr", rows, found.weights[:, blocks], found.left[:, blocks])
        before = np.maximum(before, 1e-300)
        ratio = (added**2 / before).sum(axis=0) / np.maximum((after / before).sum(axis=0), 1e-300)
        variance, least = (
            np.einsum("rp,rpq,rq->r", rows, each[blocks], rows)
            for each in (found.covariance, self.common.covariance)
        )
        return np.asarray(np.sqrt(np.maximum(variance * ratio, least)))

    def limits(
        self, rows: FloatArray, blocks: IntArray, alpha: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return limits of combinations."""
        value = np.einsum("rp,rp->r", rows, self.point[blocks])
        half = -stdtrit(self.freedom, 0.5 * alpha) * self.errors(rows, blocks)
        return value - half, value + half

    def pvalues(self, rows: FloatArray, blocks: IntArray, null: float) -> FloatArray:
        """Return two-sided p-values of the hypotheses that combinations are `null`."""
        away = np.einsum("rp,rp->r", rows, self.point[blocks]) - null
        return np.asarray(2.0 * stdtr(self.freedom, -np.abs(away) / self.errors(rows, blocks)))


@dataclass(frozen=True, slots=True, eq=False)
class _Combined:
    """One step to the mean, by what surveys differ by, D_k + tau^2 G_k G_k', and what is left."""

    weights: FloatArray
    covariance: FloatArray
    differing: FloatArray
    step: FloatArray
    left: FloatArray
    statistic: float

    @classmethod
    def of(cls, here: Stacked, square: float) -> _Combined:
        """Combine surveys at one value of tau^2."""
        slopes = here.information
        differing = here.apart + square * (slopes @ slopes.swapaxes(-1, -2))
        precision = inverses(differing)
        weighted = slopes.swapaxes(-1, -2) @ precision
        covariance = inverses((weighted @ slopes).sum(axis=0))
        weights = covariance @ weighted
        step = np.einsum("kbpq,kbq->bp", weights, here.residual)
        left = here.residual - np.einsum("kbpq,bq->kbp", slopes, step)
        statistic = float(np.einsum("kbp,kbpq,kbq->", left, precision, left))
        return cls(weights, covariance, differing, step, left, statistic)


def random_effects(common: Pooled) -> RandomEffects:
    """Return the mean of surveys that differ."""
    start, tau = common.point, 0.0
    for _ in range(_STEPS):
        here = Stacked.of(common.sources, start, False)
        tau = _tau(here)
        found = RandomEffects(common, start, tau)
        start = found.point
    return found


def _tau(here: Stacked) -> float:
    """Return the standard deviation between surveys at which Q is its degrees of freedom."""
    freedom = (len(here.residual) - 1) * here.residual[0].size

    def beyond(tau: float) -> float:
        return float(_Combined.of(here, tau**2).statistic - freedom)

    if not beyond(0.0) > 0:
        return 0.0
    high = 1.0
    while beyond(high) > 0:
        high *= 2.0
    return zero(beyond, 0.0, high, xtol=1e-9)
