"""The radius of K-norm noise on a lattice: whole-number weights whose privacy is exact.

Bodies B_0, B_1, ... of lattice points grow so that one unit can move a point of B_k no further than
into B_(k+s). A radius R is drawn with P(R = k) proportional to |B_k| exp(-rate k), then a uniform
point of B_R. So a point x has probability proportional to the sum of exp(-rate k) over the k with
x in B_k.

**Privacy.** Let v_k = P(R = k) / |B_k|, so that P(x) is the sum of v_k over the k with x in B_k.
If x in B_k implies x + d in B_(k+1), and v_k <= e^r v_(k+1) for all k of the support, then
P(x) <= e^r times the sum of v_(k+1) over those k, which is at most e^r P(x + d). Over s steps the
loss is r s. The support may start anywhere, and v may fall more slowly than exp(-rate k): the
radius is drawn from whole-number weights for which this chain of inequalities holds exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privrank.privacy.noise import DiscreteLaplace, draw_below

__all__ = ["SLACK", "Radius", "step_rate"]

IntArray = NDArray[np.int64]

SLACK = 2.0**-26
"""Privacy loss per step set aside for rounding the weights of the radius."""

_MASS_BITS, _TAIL_BITS = 41, 13
"""The largest weight of a radius is 2^41; those below 2^28 are left to the tail."""

_LARGEST_TABLE, _LARGEST_RADIUS = 2**21, 2**29
"""So that the weights add up to at most 2^62, and coordinates keep to 32 bits."""


def step_rate(sensitivity: int, epsilon: float) -> float:
    """Return the nominal rate per step: rate + SLACK is at most epsilon / sensitivity."""
    rate = math.nextafter(epsilon, 0.0) / sensitivity * (1.0 - 2.0**-50) - SLACK
    if rate <= 10 * SLACK:
        raise ValueError(
            f"epsilon is too small for this statistic: the noise would not fit integers with a "
            f"margin (got epsilon {epsilon}); use a larger epsilon."
        )
    return rate


@dataclass(frozen=True, slots=True, eq=False)
class Radius:
    """Whole numbers k >= start with P(k) nearly proportional to (k + offset)^dimension e^(-rate k).

    `weights` are whole numbers for the radii low, low + 1, ...; above, a geometric tail of total
    weight `tail` and the given ratio.

    Notes
    -----
    **Privacy.** The bodies have |B_k| = c (k + offset)^dimension points. Rounding to a whole number
    moves no weight of the table by more than 2^-29 of it, as none is below 2^28, and logarithms
    are computed to 2^-36: v_k / v_(k+1) is at most e^(rate + SLACK). At its upper end K the ratio
    of the tail is at least e^-rate (1 + 1 / (K + offset))^dimension, which is e^-rate
    |B_(K+1)| / |B_K| and at least e^-rate |B_(k+1)| / |B_k| for all k >= K; and its total is
    rounded up to a whole number. So v_k <= e^rate v_(k+1) from K on.
    """

    low: int
    weights: IntArray
    tail: int
    scale: float

    @classmethod
    def build(cls, offset: float, dimension: int, rate: float) -> Radius:
        """Return the distribution for bodies of (k + offset)^dimension points, up to a factor."""
        start = 0 if offset > 0 else 1
        mode = max(dimension / rate - offset, float(start))
        spread = (math.sqrt(dimension) + 1.0) / rate
        low, high = max(start, math.floor(mode - 8 * spread)), math.ceil(mode + 16 * spread) + 1
        if high - low > _LARGEST_TABLE or high > _LARGEST_RADIUS:
            raise ValueError(
                f"epsilon is too small for this many items: the noise would have a radius of "
                f"{mode:.0f} lattice steps, at {rate:.3g} of privacy loss each; use a larger "
                f"epsilon, or fewer rows per respondent."
            )
        k = np.arange(low, high + 1)
        # relative to the mode, so that no large logarithm is rounded
        log = dimension * np.log1p((k - mode) / (mode + offset)) - rate * (k - mode)
        log -= log.max()
        # log-concave: a run of radii around the mode, and beyond its end the weights fall
        kept = log > -_TAIL_BITS * math.log(2.0)
        k, weights = k[kept], np.rint(np.exp(log[kept]) * 2.0**_MASS_BITS).astype(np.int64)
        weights.setflags(write=False)
        # a slower decay than needed is on the private side
        decay = (rate - dimension * math.log1p(1.0 / (float(k[-1]) + offset))) * (1.0 - 1e-9)
        decay = min(decay, 500.0)
        tail = math.ceil(float(weights[-1]) * (1.0 + 1e-9) / math.expm1(decay))
        return cls(int(k[0]), weights, tail, 1.0 / decay)

    def draw(self, rng: np.random.Generator | None) -> int:
        """Return a radius: exact and secure, or seeded when `rng` is given."""
        cumulated = np.cumsum(self.weights)
        total = int(cumulated[-1])
        place = draw_below(total + self.tail, rng)
        if place < total:
            return self.low + int(np.searchsorted(cumulated, place, side="right"))
        # given that it is not negative, a discrete Laplace variable is geometric: 0, 1, ...
        law, step = DiscreteLaplace(self.scale), -1
        while step < 0:
            step = int(law.noise(1, rng)[0])
        return self.low + len(self.weights) + step

    def law(self, reach: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the radii up to `reach` with their probabilities; the rest is not listed."""
        beyond = np.arange(1, max(math.ceil(reach) - self.low - len(self.weights) + 1, 0) + 1)
        q = math.exp(-1.0 / self.scale)
        mass = np.concatenate((self.weights, self.tail * (1.0 - q) * q ** (beyond - 1.0)))
        total = float(self.weights.sum(dtype=np.float64)) + self.tail
        return self.low + np.arange(len(mass), dtype=np.float64), mass / total

    def mean_of(self, power: int) -> float:
        """Return E R^power for power 1 or 2; the tail enters by moments of a geometric variable."""
        k = self.low + np.arange(len(self.weights), dtype=np.float64)
        q = math.exp(-1.0 / self.scale)
        step, square = 1.0 / (1.0 - q), (1.0 + q) / (1.0 - q) ** 2
        end = float(k[-1])
        beyond = end + step if power == 1 else end**2 + 2 * end * step + square
        total = float(self.weights.sum(dtype=np.float64)) + self.tail
        return float((self.weights @ k**power + self.tail * beyond) / total)
