"""Power of a test by simulation, or summed over counts: from public numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privrank.hypotheses.nullmodel import binomial_weights
from privrank.hypotheses.nulls import Null, Order, public_generator
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.privacy.noise import DiscreteLaplace
from privrank.util.arrays import IntArray
from privrank.util.workers import in_processes

BLOCK = 10
"""Replicates that are simulated together."""

RejectionProbability = Callable[[Any, Order], float]
Sampler = Callable[[float, np.random.Generator], Any]


def rejection_of(
    query: Statistic | RandomBit,
    noise: DiscreteLaplace,
    threshold: int | None,
    boundary: float = 0.0,
) -> RejectionProbability:
    """Return the map from data to their probability of rejection, over noise or the bit's coin.

    Given the threshold in lattice steps, None when no value is rejected, and the probability with
    which the value one step below it is rejected as well.
    """
    if isinstance(query, RandomBit):
        return query.probability
    value = query.simulated or query.value

    # P(value + noise >= threshold), exact given the data: its mean over samples varies less than
    # a count of rejections; `boundary` is how often the value next below is rejected, too
    def reject(data: IntArray, order: Order) -> float:
        if threshold is None:
            return 0.0
        needed = threshold - value(data, order)
        tail, wider = noise.tail(np.array([needed, needed - 1])).tolist()
        return float(tail + boundary * (wider - tail))

    return reject


def rejection_at_level(
    query: Statistic | RandomBit, noise: DiscreteLaplace, null: Null | None, alpha: float
) -> RejectionProbability:
    """Return the same for a test at level `alpha`, given the null distribution of its statistic.

    Where a public random number decides at the boundary it is averaged over, too.
    """
    if null is None or isinstance(query, RandomBit):
        return rejection_of(query, noise, None)
    threshold = null.threshold(alpha, noise)
    boundary = 0.0
    if query.randomised and noise.scale > 0 and threshold is not None:
        at = null.pvalue(threshold, noise)
        below = null.pvalue(threshold - 1, noise)
        boundary = (alpha - at) / (below - at)
    return rejection_of(query, noise, threshold, boundary)


def _block(one: Callable[[int], float], replicates: int, number: int) -> list[float]:
    return [one(replicate) for replicate in range(replicates)[BLOCK * number :][:BLOCK]]


def mean_of(
    one: Callable[[int], float], replicates: int, n_jobs: int, label: str, *, step: float = 1.0
) -> tuple[float, float]:
    """Return the mean of one(r) over replicates r = 0, 1, ..., and its standard error.

    They are simulated block by block. What a replicate is must depend on r alone, so that it is the
    same for any number of processes and replicates r are alike from one call to the next.
    Where all agree, the error is as if one more were apart from them by this step, as probabilities
    are by 1: it is never 0, which says that a value is exact.
    """
    blocks = range(-(-replicates // BLOCK))
    values = np.concatenate(in_processes(partial(_block, one, replicates), blocks, label, n_jobs))
    alike = np.ptp(values) <= 1e-12 * np.abs(values).max()
    error = step / (replicates + 1) if alike else float(values.std(ddof=1) / math.sqrt(replicates))
    return float(values.mean()), error


@dataclass(frozen=True, slots=True)
class Curve:
    """Power as a function of the effect, by the same random numbers at every effect.

    Parameters
    ----------
    reject : callable
        From :func:`rejection_of`.
    sampler : callable
        Maps an effect and a generator to data.
    items : int
        Number of items or categories.
    label : str
        Name of the statistic, for the progress bar.
    n_jobs : int
        Processes that simulate.
    """

    reject: RejectionProbability
    sampler: Sampler
    items: int
    label: str
    n_jobs: int = 1

    def at(self, effect: float, replicates: int) -> tuple[float, float]:
        """Return the power at an effect and its standard error, from so many simulated samples."""
        return mean_of(
            partial(self._rejected, effect),
            replicates,
            self.n_jobs,
            f"power of the {self.label}",
        )

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
        From :func:`rejection_of`, of a statistic or a bit that depends on the counts alone.
    first : callable
        Maps an effect to the probabilities of the first category whose powers are averaged.
    nobs : int
        Number of units.
    """

    reject: RejectionProbability
    first: Callable[[float], tuple[float, ...]]
    nobs: int

    def at(self, effect: float, replicates: int = 0) -> tuple[float, float]:
        """Return the power at an effect, and 0, its error; replicates are not needed."""
        return float(np.mean([self._power(p) for p in self.first(effect)])), 0.0

    def _power(self, p: float) -> float:
        """Return the binomial mean of the probability of rejection.

        Counts beyond nine standard deviations have a probability below 1e-15 and are left out.
        """
        n = self.nobs
        spread = 9.0 * math.sqrt(n * p * (1.0 - p)) + 20.0
        least = max(math.floor(n * p - spread), 0)
        most = min(math.ceil(n * p + spread), n)
        counts = np.arange(least, most + 1)
        rejected = [self.reject(np.array([count, n - count]), (0, 1)) for count in counts.tolist()]
        return float(binomial_weights(n, p, counts) @ np.array(rejected))
