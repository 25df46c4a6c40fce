"""Power of a test, by simulation or by summation over counts, from public numbers only."""

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
    """Return the map from data to their probability of rejection.

    The probability is over the noise, or over the coin of a random bit. `threshold` is in lattice
    steps, None if no value is rejected. `boundary` is the probability with which the value one step
    below the threshold is rejected.
    """
    if isinstance(query, RandomBit):
        return query.probability
    value = query.simulated or query.value

    # P(value + noise >= threshold), exact given the data, so its mean over samples varies less than
    # a count of rejections
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
    """Return the map for a test at level `alpha`, given the null distribution of its statistic.

    If a public random number decides at the boundary, the probability is averaged over it as well.
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

    Replicates are simulated in blocks. A replicate must depend on r alone; it is then the same for
    any number of processes, and in every call. If all replicates are equal, the standard error is
    computed as if one additional replicate differed by `step`, which is 1 for probabilities. The
    standard error is therefore never 0, which denotes an exact value.
    """
    blocks = range(-(-replicates // BLOCK))
    values = np.concatenate(in_processes(partial(_block, one, replicates), blocks, label, n_jobs))
    alike = np.ptp(values) <= 1e-12 * np.abs(values).max()
    error = step / (replicates + 1) if alike else float(values.std(ddof=1) / math.sqrt(replicates))
    return float(values.mean()), error


@dataclass(frozen=True, slots=True)
class Curve:
    """Power as a function of the effect, with the same random numbers at every effect.

    Parameters
    ----------
    reject : callable
        The map of :func:`rejection_of`.
    sampler : callable
        Maps an effect and a generator to data.
    items : int
        Number of items or categories.
    label : str
        Name of the statistic, for the progress bar.
    n_jobs : int
        Number of processes.
    """

    reject: RejectionProbability
    sampler: Sampler
    items: int
    label: str
    n_jobs: int = 1

    def at(self, effect: float, replicates: int) -> tuple[float, float]:
        """Return the power at an effect and its standard error, by simulation."""
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
    """Power as a function of the effect, summed over the counts of two categories.

    Parameters
    ----------
    reject : callable
        The map of :func:`rejection_of`, for a statistic or bit that depends on the counts alone.
    first : callable
        Maps an effect to probabilities of the first category; the power is averaged over these.
    nobs : int
        Number of units.
    """

    reject: RejectionProbability
    first: Callable[[float], tuple[float, ...]]
    nobs: int

    def at(self, effect: float, replicates: int = 0) -> tuple[float, float]:
        """Return the power at an effect, and 0, its standard error; `replicates` is ignored."""
        return float(np.mean([self._power(p) for p in self.first(effect)])), 0.0

    def _power(self, p: float) -> float:
        """Return the binomial mean of the probability of rejection.

        Counts beyond nine standard deviations have a probability below 1e-15 and are omitted.
        """
        n = self.nobs
        spread = 9.0 * math.sqrt(n * p * (1.0 - p)) + 20.0
        least = max(math.floor(n * p - spread), 0)
        most = min(math.ceil(n * p + spread), n)
        counts = np.arange(least, most + 1)
        rejected = [self.reject(np.array([count, n - count]), (0, 1)) for count in counts.tolist()]
        return float(binomial_weights(n, p, counts) @ np.array(rejected))
