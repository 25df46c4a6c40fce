"""Results as estimating equations, all of them at one point, and the weights they have there.

What is computed of them, and why, is said in :mod:`privrank.bradley_terry.pooling`. Numbers come in
blocks between which nothing is known of covariances; arrays have results first, blocks second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.errors import SecondMoments
from privrank.bradley_terry.moments import floored
from privrank.util.solvers import inverse

__all__ = ["Expected", "Source", "Stacked", "equations_at", "inverses", "measured_shares"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """What results expect at points of their one block: arrays by result and point.

    Parameters
    ----------
    mean : ndarray, shape (..., p)
        What is expected of what they observe.
    information : ndarray, shape (..., p, p)
        Its slope.
    independent : ndarray, shape (..., p, p)
        Sampling covariance of the residual if answers are independent.
    """

    mean: FloatArray
    information: FloatArray
    independent: FloatArray

    @classmethod
    def of(cls, sources: Sequence[Source], points: FloatArray, same: bool) -> Expected:
        """Return what all results expect; of one survey they share information and covariance."""
        found = [source.expected(points) for source in sources if source.expected is not None]
        mean, *slopes = (
            np.array([getattr(each, name) for each in found])
            for name in ("mean", "information", "independent")
        )
        if same:
            slopes = [_shared(each, sources) for each in slopes]
        return cls(mean, *slopes)


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One result as estimating equations.

    Parameters
    ----------
    equations : callable
        From a point, shape (blocks, p), to the residual there, observed less expected, of this
        shape, and the slope of what is expected, shape (blocks, p, p).
    covariances : callable
        From a point to the covariances of the residual by sampling and by privacy noise.
    draws : ndarray, shape (draws, p), or None
        Public draws of the noise of the residual of any block; None where noise is taken as normal.
    freedom : ndarray, shape (blocks,)
        Degrees of freedom with which the sampling covariance is known, infinite if it is given.
    moments : callable or None
        From a point to the second moments of the residual of the one block, where they are
        released; the sampling covariance is what they are, in no direction less than their least.
    counts, measured : float
        Weights of the information and of the sampling covariance in the averages of one survey;
        where any result has second moments, these are averaged alone.
    expected : callable or None
        From points, shape (points, p), to what is expected there; None where there are no score
        tests.
    far : float
        Distance at which a combination counts as infinite in a score test.
    """

    equations: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    covariances: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    draws: FloatArray | None
    freedom: FloatArray
    moments: Callable[[FloatArray], SecondMoments] | None = None
    counts: float = 1.0
    measured: float = 1.0
    expected: Callable[[FloatArray], Expected] | None = None
    far: float = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Stacked:
    """All results at one point, and how they are weighted there; arrays by result and block."""

    residual: FloatArray
    information: FloatArray
    sampling: FloatArray
    noise: FloatArray
    moments: tuple[SecondMoments | None, ...]
    same: bool

    @classmethod
    def of(cls, sources: Sequence[Source], point: FloatArray, same: bool) -> Stacked:
        """Return all results at this point; of one survey they share what is averaged."""
        residual, information = equations_at(sources, point, same)
        found = [source.covariances(point) for source in sources]
        sampling, noise = (np.array(each) for each in zip(*found, strict=True))
        moments = tuple(None if (of := each.moments) is None else of(point) for each in sources)
        if same:
            shared = tuple(zip(measured_shares(sources), moments, strict=True))
            if any(moments):
                both = [share * each.matrices for share, each in shared if each is not None]
                one = floored(*np.sum(both, axis=0))[None]
            else:
                one = np.tensordot(measured_shares(sources), sampling, 1)
            sampling = np.broadcast_to(one, sampling.shape)
        return cls(residual, information, sampling, noise, moments, same)

    @property
    def apart(self) -> FloatArray:
        """Covariances of what differs between results."""
        return self.noise if self.same else self.sampling + self.noise

    def weights(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return D_k^-1, J^-1, and W_k = J^-1 G_k D_k^-1, which takes a residual to the pooled."""
        precision = inverses(self.apart)
        slopes = self.information @ precision
        covariance = inverses((slopes @ self.information).sum(axis=0))
        return precision, covariance, covariance @ slopes

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sampling and the noise part of the covariance of the pooled value."""
        noise = _through(weights, self.noise).sum(axis=0)
        if self.same:
            return _through(weights.sum(axis=0), self.sampling[0]), noise
        return _through(weights, self.sampling).sum(axis=0), noise


def equations_at(
    sources: Sequence[Source], point: FloatArray, same: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the residuals and the slopes of all results at one point."""
    found = [source.equations(point) for source in sources]
    residual, information = (np.array(each) for each in zip(*found, strict=True))
    if same:
        information = _shared(information, sources)
    return residual, information


def _shared(matrices: FloatArray, sources: Sequence[Source]) -> FloatArray:
    """Return the average over results, by the precision of their counts, for each of them."""
    one = np.tensordot(_shares([source.counts for source in sources]), matrices, 1)
    return np.broadcast_to(one, matrices.shape)


def measured_shares(sources: Sequence[Source]) -> FloatArray:
    """Return the weights of the results in what is averaged of one survey's sampling covariance.

    Second moments estimate it; the largest design effect is a bound, and counts where all have it.
    """
    better = any(source.moments is not None for source in sources)
    return _shares([each.measured * (each.moments is not None or not better) for each in sources])


def _shares(weights: Sequence[float]) -> FloatArray:
    """Return weights that add up to 1: these, or equal ones where all are 0."""
    found = np.asarray(weights, dtype=np.float64)
    found = found if found.sum() > 0 else np.ones(len(found))
    return np.asarray(found / found.sum())


def _through(weights: FloatArray, covariance: FloatArray) -> FloatArray:
    return np.asarray(weights @ covariance @ weights.swapaxes(-1, -2))


def inverses(matrices: FloatArray) -> FloatArray:
    """Return the inverses of positive definite matrices, NaN where there is none."""
    p = matrices.shape[-1]
    if p == 1:
        return np.divide(1.0, matrices, np.full_like(matrices, np.nan), where=matrices > 0)
    each = [inverse(matrix) for matrix in matrices.reshape(-1, p, p)]
    return np.array(each).reshape(matrices.shape)
