"""Power of a test by simulation, and the smallest effect it detects; public numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrank.hypotheses.nulls import Order
from privrank.hypotheses.nulltables import public_generator
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.privacy.noise import DiscreteLaplace
from privrank.util.progress import Progress
from privrank.util.workers import Workers

__all__ = ["Chance", "Curve", "Sampler", "chance", "mean_of"]

IntArray = NDArray[np.int64]

_LEAST = 2.0**-20
"""Share of the first effect tried below which none is looked for."""

BLOCK = 10
"""Replicates that are simulated together."""

Chance = Callable[[Any, Order], float]
Sampler = Callable[[float, np.random.Generator], Any]


def chance(asked: Statistic | RandomBit, law: DiscreteLaplace, threshold: int | None) -> Chance:
    """Return the map from data to their probability of rejection, over noise or the bit's coin.

    Given the threshold in lattice steps; None when no value is rejected.
    """
    if isinstance(asked, RandomBit):
        return asked.probability
    value = asked.simulated or asked.value

    def reject(data: IntArray, order: Order) -> float:
        if threshold is None:
            return 0.0
        return float(law.tail(np.array(threshold - value(data, order))))

    return reject


def mean_of(
    one: Callable[[int], float], replicates: int, workers: Workers, label: str
) -> tuple[float, float]:
    """Return the mean of one(r) over replicates r = 0, 1, ... and its standard error.

    What a replicate is must depend on r alone, so that the mean is the same for any number of
    workers and replicates r are alike from one mean to the next.
    """
    blocks = range(-(-replicates // BLOCK))
    found = workers.map(partial(_block, one, replicates), blocks, label)
    values = np.concatenate(found)
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(replicates))


def _block(one: Callable[[int], float], replicates: int, number: int) -> NDArray[np.float64]:
    last = min(BLOCK * (number + 1), replicates)
    return np.array([one(replicate) for replicate in range(BLOCK * number, last)])


@dataclass(frozen=True, slots=True)
class Curve:
    """Power as a function of the effect, by the same random numbers at every effect.

    Parameters
    ----------
    reject : callable
        From :func:`chance`.
    sampler : callable
        Maps an effect and a generator to data.
    items : int
        Number of items or categories.
    label : str
        Name of the statistic, for the progress bar.
    """

    reject: Chance
    sampler: Sampler
    items: int
    label: str

    def at(self, effect: float, replicates: int) -> tuple[float, float]:
        """Return the power at an effect and its standard error, from so many simulated samples."""
        bar = Progress(f"power of the {self.label}", replicates)
        hits = np.empty(replicates)
        for number in range(replicates):
            rng = public_generator("power", number)
            order = tuple(int(k) for k in rng.permutation(self.items))
            hits[number] = self.reject(self.sampler(effect, rng), order)
            bar.show(number + 1)
        return float(hits.mean()), float(hits.std(ddof=1) / math.sqrt(replicates))

    def detectable(
        self, target: float, replicates: int, *, start: float, most: float
    ) -> tuple[float, float] | None:
        """Return the smallest effect at which the power is `target`, and its Monte Carlo error.

        None if none to `most` has that power.

        Notes
        -----
        A quarter of the replicates brackets the effect within a factor of two; the probit of the
        power is close to a straight line in the effect there, and is followed by secants until the
        power is within one standard error of the target. The error of the effect is that of the
        power over the slope between the two points that are nearest.
        """
        few = max(20, replicates // 4)
        high = start
        while self.at(high, few)[0] < target:
            if high >= most:
                return None
            high = min(2.0 * high, most)
        low = high / 2.0
        while self.at(low, few)[0] >= target and low > _LEAST * start:
            low, high = low / 2.0, low
        points = [(effect, *self.at(effect, replicates)) for effect in (low, high)]
        for _ in range(4):
            (x0, p0, _), (x1, p1, _) = sorted(points, key=lambda point: abs(point[1] - target))[:2]
            z0, z1, z = (float(ndtri(min(max(p, 1e-4), 1 - 1e-4))) for p in (p0, p1, target))
            step = x0 if z1 == z0 else x0 + (z - z0) * (x1 - x0) / (z1 - z0)
            points.append((x := min(max(step, low), high), *self.at(x, replicates)))
            if abs(points[-1][1] - target) <= points[-1][2]:
                break
        (x0, p0, error), *others = sorted(points, key=lambda point: abs(point[1] - target))
        apart = [(x, p) for x, p, _ in others if x != x0 and p != p0]
        if not apart:
            return x0, high - low
        x1, p1 = apart[0]
        return x0, error * abs((x1 - x0) / (p1 - p0))
