"""Power of a test by simulation, and the smallest effect it detects; public numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from privrank.hypotheses.nulls import Null, Order, public_generator
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.planning.solving import Search, solve
from privrank.privacy.noise import DiscreteLaplace
from privrank.util.workers import Workers

__all__ = [
    "Chance",
    "Curve",
    "Enumerated",
    "Outcome",
    "Sampler",
    "all_of",
    "chance",
    "chance_of_level",
    "detectable",
    "mean_of",
    "share_of",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
T = TypeVar("T")

_LEAST = 2.0**-20
"""Share of the first effect tried below which none is looked for."""

_EVERY, _INTERVALS, _CURVED = 2**14, 2**10, 1e-7
"""Counts of which each is asked, intervals of more, and how far lines may miss their middles."""

BLOCK = 10
"""Replicates that are simulated together."""

Chance = Callable[[Any, Order], float]
Sampler = Callable[[float, np.random.Generator], Any]


def chance(
    asked: Statistic | RandomBit,
    distribution: DiscreteLaplace,
    threshold: int | None,
    boundary: float = 0.0,
) -> Chance:
    """Return the map from data to their probability of rejection, over noise or the bit's coin.

    Given the threshold in lattice steps, None when no value is rejected, and the probability with
    which the value one step below it is rejected as well.
    """
    if isinstance(asked, RandomBit):
        return asked.probability
    value = asked.simulated or asked.value

    def reject(data: IntArray, order: Order) -> float:
        if threshold is None:
            return 0.0
        away = threshold - value(data, order)
        tail, wider = distribution.tail(np.array([away, away - 1])).tolist()
        return float(tail + boundary * (wider - tail))

    return reject


def chance_of_level(
    asked: Statistic | RandomBit, distribution: DiscreteLaplace, null: Null | None, alpha: float
) -> Chance:
    """Return the same for a test at level `alpha`, given the null distribution of its statistic.

    Where a public random number decides at the boundary it is averaged over, too.
    """
    if null is None or isinstance(asked, RandomBit):
        return chance(asked, distribution, None)
    threshold, boundary = null.threshold(alpha, distribution), 0.0
    if asked.randomised and distribution.scale > 0 and threshold is not None:
        at, below = null.pvalue(threshold, distribution), null.pvalue(threshold - 1, distribution)
        boundary = (alpha - at) / (below - at)
    return chance(asked, distribution, threshold, boundary)


def all_of(one: Callable[[int], T], replicates: int, workers: Workers, label: str) -> list[T]:
    """Return one(r) of all replicates r = 0, 1, ..., simulated block by block.

    What a replicate is must depend on r alone, so that it is the same for any number of workers and
    replicates r are alike from one call to the next.
    """
    blocks = range(-(-replicates // BLOCK))
    found = workers.map(partial(_block, one, replicates), blocks, label)
    return [each for block in found for each in block]


def mean_of(
    one: Callable[[int], float],
    replicates: int,
    workers: Workers,
    label: str,
    *,
    step: float = 1.0,
) -> tuple[float, float]:
    """Return the mean of one(r) over replicates (:func:`all_of`) and its standard error.

    Where all agree, the error is as if one more were apart from them by this step, as probabilities
    are by 1: it is never 0, which says that a value is exact.
    """
    values = np.array(all_of(one, replicates, workers, label))
    error = float(values.std(ddof=1) / math.sqrt(replicates))
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        error = step / (replicates + 1)
    return float(values.mean()), error


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a replicate finds.

    Parameters
    ----------
    hit : bool
        Whether it finds what is asked for.
    margin : float
        A number that goes with that.
    margins : ndarray
        Independent draws of that number, given what it is not about.
    """

    hit: bool
    margin: float
    margins: FloatArray


def share_of(
    one: Callable[[int], Outcome], replicates: int, workers: Workers, label: str
) -> tuple[float, float]:
    """Return the share of hits among replicates (:func:`all_of`) and its standard error.

    The control variate is whether the margin is one of the largest, as many as there are hits, less
    the probability of that, which is taken from the draws. It is 0 on average whatever hits depend
    on, so that the share is without bias but for what the choice of that bound adds: half of what
    lies between two margins, as the error says. The more hits go with margins, the smaller it is.
    """
    found = all_of(one, replicates, workers, label)
    hits = np.array([float(each.hit) for each in found])
    margin = np.array([each.margin for each in found])
    margins = np.array([each.margins for each in found])
    control = (margin > (bound := _bound(margin, hits))) - (margins > bound).mean(axis=1)
    slope = control @ (hits - hits.mean()) / max(control @ control, 1e-12)
    rest = hits - slope * control
    error = math.hypot(rest.std(ddof=2) / math.sqrt(replicates), 1.0 / (replicates + 1))
    return float(np.clip(rest.mean(), 0.0, 1.0)), error


def _bound(margin: FloatArray, hits: FloatArray) -> float:
    """Return a bound, between margins, above which there are about as many as there are hits.

    Margins of few answers are often equal; what differs by rounding alone counts as equal, too.
    """
    ranked = np.sort(margin)
    middles = 0.5 * (ranked[1:] + ranked[:-1])
    below = np.arange(1, len(ranked))
    apart = np.diff(ranked) > 1e-9 * max(np.abs(ranked).max(), 1e-300)
    bounds = np.concatenate(([-np.inf], middles[apart], [np.inf]))
    left = np.concatenate(([0], below[apart], [len(ranked)]))
    return float(bounds[np.argmin(np.abs(left - (len(hits) - hits.sum())))])


def _block(one: Callable[[int], T], replicates: int, number: int) -> list[T]:
    last = min(BLOCK * (number + 1), replicates)
    return [one(replicate) for replicate in range(BLOCK * number, last)]


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

    def at(
        self, effect: float, replicates: int, workers: Workers | None = None
    ) -> tuple[float, float]:
        """Return the power at an effect and its standard error, from so many simulated samples."""
        one = partial(self._rejected, effect)
        label = f"power of the {self.label}"
        return mean_of(one, replicates, Workers(1) if workers is None else workers, label)

    def _rejected(self, effect: float, number: int) -> float:
        rng = public_generator("power", number)
        order = tuple(int(k) for k in rng.permutation(self.items))
        return self.reject(self.sampler(effect, rng), order)


@dataclass(frozen=True, slots=True)
class Enumerated:
    """The same of two categories, summed over their counts: no simulation.

    Parameters
    ----------
    reject : callable
        From :func:`chance`, of a statistic that depends on the counts alone.
    first : callable
        Maps an effect to the probabilities of the first category whose powers are averaged.
    data : callable
        Maps the numbers of both categories to data.
    nobs : int
        Number of units.
    """

    reject: Chance
    first: Callable[[float], tuple[float, ...]]
    data: Callable[[int, int], Any]
    nobs: int

    def at(
        self, effect: float, replicates: int = 0, workers: Workers | None = None
    ) -> tuple[float, float]:
        """Return the power at an effect, and 0, its error; the rest is as for a `Curve`.

        Counts beyond nine standard deviations have a probability below 1e-15 and are left out.
        """
        return float(np.mean([self._power(p) for p in self.first(effect)])), 0.0

    def _power(self, p: float) -> float:
        n = self.nobs
        spread = 9.0 * math.sqrt(n * p * (1.0 - p)) + 20.0
        counts = np.arange(
            max(math.floor(n * p - spread), 0), min(math.ceil(n * p + spread), n) + 1
        )
        logs = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
        weights = np.exp(logs + xlogy(counts, p) + xlog1py(n - counts, -p))
        return float(weights @ self._rejected(counts) / weights.sum())

    def _rejected(self, counts: IntArray) -> NDArray[np.float64]:
        """Return the probability of rejection at each of so many consecutive counts.

        Of many counts it is asked at the ends of intervals, which are halved until the line between
        them meets the middle: regions of acceptance are no narrower than sampling errors, so that
        none lies between the ends of the first intervals.
        """
        known: dict[int, float] = {}

        def at(count: int) -> float:
            if count not in known:
                known[count] = self.reject(self.data(count, self.nobs - count), (0, 1))
            return known[count]

        if len(counts) <= _EVERY:
            return np.array([at(count) for count in counts.tolist()])
        ends = np.linspace(counts[0], counts[-1], _INTERVALS + 1).astype(np.int64).tolist()
        left = list(zip(ends[:-1], ends[1:], strict=True))
        while left:
            low, high = left.pop()
            middle = (low + high) // 2
            share = (middle - low) / (high - low)
            if abs(at(middle) - at(low) - share * (at(high) - at(low))) > _CURVED:
                left += [(low, middle), (middle, high)]
        found = sorted(known.items())
        return np.interp(counts, *np.array(found, dtype=np.float64).T)


def detectable(
    curve: Curve | Enumerated, target: float, replicates: int, *, start: float, most: float
) -> tuple[float, float] | None:
    """Return the smallest effect at which the power is `target`, and its Monte Carlo error.

    None if none to `most` has that power.
    """
    found = solve(Search(curve.at, target, _LEAST * start, most, replicates), start)
    return None if found is None else (found.at, found.error)
