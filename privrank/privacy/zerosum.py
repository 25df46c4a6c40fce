"""Noise for net wins: Laplace on the integer vectors that sum to zero, as what it protects does.

Every comparison adds 1 to the net wins of one item and takes 1 from another's, so the nets of two
neighbours differ by a vector that sums to zero. Noise need not hide what cannot change: it has
P(x) proportional to exp(-|x|_1 / scale) on the integer vectors with sum 0.

**Privacy.** |x + d|_1 <= |x|_1 + |d|_1 for every x and every difference d of neighbours (and for
-d, since neighbours may be exchanged), so P(x) <= exp(|d|_1 / scale) P(x + d): both sides have the
same normaliser. The scale is calibrated as that of discrete Laplace noise is. The noise is pure,
and exact: whole numbers all the way, nothing idealised.

**Drawing.** Of m - 1 independent discrete Laplace variables y let x be y followed by minus their
sum. Keep x with probability exp(-|sum y| / scale): then x has probability proportional to
exp(-|y|_1 / scale) exp(-|sum y| / scale). The coin is exact: a geometric variable of ratio
exp(-1 / scale) is at least |sum y| with that probability. How many proposals it takes depends on
the scale and m alone; one is kept in about 1.8 sqrt(m).

**Limit.** On a fine lattice this is a K-norm mechanism: scale times a Gamma(m) variable times a
uniform point of its unit body {|x|_1 <= 1}, as n = m - 1 dimensions and the factor exp(-h) of the
density give the shell at h the weight h^n exp(-h) when points of the body below it are uniform.
Simulated noise has that distribution; it is off by some 1 / scale^2 of its variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from privrank.privacy.noise import DiscreteLaplace, clipped_sum
from privrank.privacy.samplers import LARGEST, Integers

__all__ = ["ZeroSumLaplace"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_MOST_PROPOSED = 2**16
"""Numbers proposed at a time."""

_LARGEST_SCALE = 2.0**44
"""Beyond this the noise would fill most of the 64-bit integers to which sums are clipped."""


def _geometric(law: DiscreteLaplace, size: int, rng: np.random.Generator | None) -> Integers:
    """Return variables that are k or more with probability exp(-k / scale), k = 0, 1, 2, ...

    Discrete Laplace variables given that they are not negative, as more than half of them are at
    every scale: negative ones are drawn again before anything depends on them.
    """
    drawn = law.noise(size, rng)
    while (below := drawn < 0).any():
        fresh = law.noise(int(below.sum()), rng)
        drawn = drawn.astype(np.promote_types(drawn.dtype, fresh.dtype))
        drawn[below] = fresh
    return drawn


@dataclass(frozen=True, slots=True)
class ZeroSumLaplace:
    """The distribution P(x) proportional to exp(-|x|_1 / scale) on integer vectors with sum 0.

    Parameters
    ----------
    items : int
        Number of coordinates m, at least 2.
    scale : float
        Scale in lattice steps; 0 is no noise.

    Notes
    -----
    **Privacy.** Pure: the loss is at most |d|_1 / scale for neighbours whose statistics differ by
    d, with sum 0; it is attained far out in a direction in which all of d points outwards.

    **Statistic.** Independent discrete Laplace variables given that their sum is 0. Their
    characteristic function is phi(t) = (1 - q)^2 / (1 - 2 q cos t + q^2), q = exp(-1 / scale), so
    the variance of one is the integral of -phi'' phi^(m-1) over that of phi^m; by parts, of
    (m - 1) (phi' / phi)^2 phi^m. Put tan(t / 2) = c tan(s / 2) with c = tanh(1 / (2 scale)). Then
    phi = cos^2(s / 2) + c^2 sin^2(s / 2), dt = c ds / phi and
    (phi' / phi)^2 = sin^2 s / sinh^2(1 / scale), so the variance is (m - 1) / sinh^2(1 / scale)
    times the mean of sin^2 s weighted by phi^(m-1). Both are trigonometric polynomials of degree at
    most m + 1, whose means over more than m + 1 equally spaced points are exact. For large scales
    it is (m - 1) (2 m - 1) / (m (m + 1)) scale^2, against 2 scale^2 of independent noise, of which
    1 - 1 / m is left when that is made to sum to 0.
    """

    items: int
    scale: float

    @classmethod
    def calibrate(cls, items: int, sensitivity: int, epsilon: float) -> ZeroSumLaplace:
        """Return the distribution whose loss is at most `epsilon` at this l1 sensitivity."""
        scale = DiscreteLaplace.calibrate(sensitivity, epsilon).scale
        if scale > _LARGEST_SCALE:
            raise ValueError(
                f"epsilon is too small for this statistic: the noise scale would exceed 2^44 "
                f"lattice steps (got epsilon {epsilon}); use a larger epsilon."
            )
        return cls(items, scale)

    @property
    def variance(self) -> float:
        """Variance of one coordinate, in squared lattice steps."""
        if self.scale == 0:
            return 0.0
        angle = 2.0 * math.pi * np.arange(self.items + 2) / (self.items + 2)
        sine = np.sin(0.5 * angle) ** 2
        phi = 1.0 - sine + math.tanh(0.5 / self.scale) ** 2 * sine
        weight = phi ** (self.items - 1)
        mean = float(np.sin(angle) ** 2 @ weight / weight.sum())
        return (self.items - 1) / math.sinh(min(1.0 / self.scale, 300.0)) ** 2 * mean

    def draw(self, values: IntArray, rng: np.random.Generator | None) -> IntArray:
        """Return `values` plus one draw of noise: exact and secure, or seeded with `rng`."""
        values, m = np.asarray(values, dtype=np.int64), self.items
        if values.shape != (m,):
            raise ValueError(f"expected {m} values, got shape {values.shape}.")
        if self.scale == 0:
            return values.copy()
        law = DiscreteLaplace(self.scale)
        # about what it takes to keep one, whose probability is .55 / sqrt(m)
        size = max(1, min(math.ceil(1.5 / (0.55 / math.sqrt(m))), _MOST_PROPOSED // m))
        while True:
            first = law.noise(size * (m - 1), rng).reshape(size, m - 1)
            if first.dtype != object and np.abs(first).max() >= LARGEST // m:
                first = first.astype(object)  # Python integers, whose sum has room
            last = -first.sum(axis=1)
            coin = _geometric(law, size, rng)
            kept = np.flatnonzero(coin >= np.abs(last))
            if len(kept):
                return clipped_sum(values, np.append(first[kept[0]], last[kept[0]]))

    def bodies(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Return uniform points of {|x|_1 <= 1, sum 0}, shape (draws, m).

        p items are positive with probability proportional to C(m, p) C(m - 2, p - 1): the sets of p
        items times the volume of a pair of simplices of dimensions p - 1 and m - p - 1. On each the
        point is uniform.
        """
        m = self.items
        p = np.arange(1, m)
        log = gammaln(m + 1) - gammaln(p + 1) - gammaln(m - p + 1)
        log += gammaln(m - 1) - gammaln(p) - gammaln(m - p)
        share = np.cumsum(np.exp(log - log.max()))
        positives = 1 + np.searchsorted(share, rng.random(draws) * share[-1])
        rank = np.argsort(rng.random((draws, m)), axis=1)
        positive = rank < positives[:, None]
        size = rng.standard_exponential((draws, m))
        up, down = np.where(positive, size, 0.0), np.where(positive, 0.0, size)
        point = up / up.sum(axis=1, keepdims=True) - down / down.sum(axis=1, keepdims=True)
        return np.asarray(0.5 * point * rng.random((draws, 1)) ** (1.0 / (m - 1)))

    @property
    def body_scale(self) -> float:
        """Scale of the Gamma(m) variable that stretches a point of the body."""
        return self.scale

    def simulate(self, size: tuple[int, int], rng: np.random.Generator) -> FloatArray:
        """Return noise alone, shape (draws, m), by its limit on a fine lattice."""
        stretch = self.body_scale * rng.gamma(self.items, size=(size[0], 1))
        return np.asarray(stretch * self.bodies(size[0], rng))
