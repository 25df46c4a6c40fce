"""Power of a test as a function of the effect, and the number at which a curve reaches its target.

Power is computed by simulation or by summation over counts, from public numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from privrank.hypotheses.nulls import (
    Null,
    Order,
    RandomBit,
    Statistic,
    binomial_weights,
    public_generator,
)
from privrank.privacy.noise import DiscreteLaplace
from privrank.util.arrays import IntArray
from privrank.util.solvers import bisect
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
        boundary = (alpha - at) / (null.pvalue(threshold - 1, noise) - at)
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
        counts = np.arange(least, min(math.ceil(n * p + spread), n) + 1)
        rejected = [self.reject(np.array([count, n - count]), (0, 1)) for count in counts.tolist()]
        return float(binomial_weights(n, p, counts) @ np.array(rejected))


Measure = Callable[[float, int], tuple[float, float]]
"""Maps a number and a number of replicates to the value and its standard error, 0 if exact."""

FEWEST = 20
LOOK = 4
"""Fewest replicates of a first look, and the ratio of final to first replicates."""

SHORT = 1.5
LONG = 4.0
"""Smallest and largest factor between the points of a search for a bracket."""

MIN_EFFECT = 2.0**-20
"""Smallest effect that is searched, relative to the starting value."""

_MAX_STEPS = 4
"""Largest number of steps from the crossing of the line to a point that reaches the target."""

EDGE = 1e-4
"""Probabilities closer to 0 or 1 are replaced by this, where probits would be lost in noise."""


@dataclass(frozen=True, slots=True)
class Solved:
    """The point at which a curve reaches its target.

    Parameters
    ----------
    at : float
        The number.
    error : float
        Its Monte Carlo standard error, 0 if the curve is exact.
    """

    at: float
    error: float


@dataclass(frozen=True, slots=True)
class _Look:
    """The logarithm of a number, the score of its value, and the score's standard error."""

    log: float
    score: float
    error: float


@dataclass(frozen=True, slots=True)
class Search:
    """A curve on scales on which it is approximately linear.

    The abscissa is the logarithm of the number. The ordinate is the score: the probit of a
    probability, or the logarithm of a positive value, minus the score of the target. The curve
    increases through 0.

    Parameters
    ----------
    measure : Measure
        The curve. It uses the same random numbers everywhere, so differences of its values are
        differences of the curve.
    target : float
        The value that the curve must reach.
    least, most : float
        The range of the number; positive.
    replicates : int
        Replicates of the final answer.
    whole : bool
        Whether the number is whole; it is then rounded up to reach the target.
    rising : bool
        Whether the curve increases to the target; if not, it decreases to the target.
    probability : bool
        Whether values are probabilities.
    """

    measure: Measure
    target: float
    least: float
    most: float
    replicates: int
    whole: bool = False
    rising: bool = True
    probability: bool = True

    def _scaled(self, value: float) -> tuple[float, float]:
        """Return a value on the linear scale, and the derivative of this scale."""
        if self.probability:
            probit = float(ndtri(min(max(value, EDGE), 1.0 - EDGE)))
            return probit, math.sqrt(2.0 * math.pi) * math.exp(0.5 * probit * probit)
        return math.log(max(value, 1e-300)), 1.0 / max(value, 1e-300)

    def look(self, log: float, replicates: int) -> _Look:
        """Return the point of the curve at the number with this logarithm, within the range."""
        number = min(max(math.exp(log), self.least), self.most)
        number = float(round(number)) if self.whole else number
        value, error = self.measure(number, replicates)
        # delta method: the standard error of the score is the value's times the slope
        scaled, slope = self._scaled(value)
        score = (scaled - self._scaled(self.target)[0]) * (1.0 if self.rising else -1.0)
        return _Look(math.log(number), score, error * slope)


def least_number(search: Search, start: float) -> Solved | None:
    """Return the least number at which the curve reaches its target; None if there is none.

    Notes
    -----
    A quarter of the replicates brackets the number, by factors between 1.5 and 4 that increase with
    the distance from the target. The search then starts from the crossing of the line through the
    bracket with the target: all replicates bracket the number again and evaluate the curve at the
    crossing of the new line. The answer is one step along this line, within the bracket, and
    further if the value there is below the target. Its standard error is the score's divided by the
    slope. For an exact curve the bracket is halved until two neighbours, whole numbers or within
    1e-6, enclose the target.
    """
    few = min(max(FEWEST, search.replicates // LOOK), search.replicates)
    ends = _bracket(search, math.log(min(max(start, search.least), search.most)), few)
    if ends is None:
        return None
    low, high = ends
    if high.error > 0:
        return _refined(search, low, high)
    return Solved(search.least if low is None else _closed(search, low, high), 0.0)


def _bracket(search: Search, log: float, few: int) -> tuple[_Look | None, _Look] | None:
    """Return a point below the target (None at the smallest number) and one that reaches it."""
    look = search.look(log, few)
    upward = look.score < 0
    while True:
        if upward and look.log >= math.log(search.most) - 1e-12:
            return None
        if not upward and look.log <= math.log(search.least) + 1e-12:
            return None, look
        step = math.log(min(max(math.exp(abs(look.score)), SHORT), LONG))
        if search.whole:  # at least the next whole number
            step = max(step, math.log1p(math.exp(-look.log)))
        last = look
        look = search.look(look.log + (step if upward else -step), few)
        if (look.score < 0) != upward:
            return (last, look) if upward else (look, last)


def _closed(search: Search, low: _Look, high: _Look) -> float:
    """Return the least number at which an exact curve reaches the target, by halving."""

    def short(number: float) -> bool:
        return search.look(math.log(number), search.replicates).score < 0

    # an exact curve is monotone on the bracket, so bisection is valid; of two neighbouring whole
    # numbers the larger one reaches the target
    if not search.whole:
        return bisect(short, math.exp(low.log), math.exp(high.log), 60, relative=1e-6)[1]
    least = round(math.exp(low.log))
    most = round(math.exp(high.log))
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if short(middle) else (least, middle)
    return float(most)


def _refined(search: Search, low: _Look | None, high: _Look) -> Solved | None:
    """Return the crossing of a simulated curve with its error; None if there is no crossing.

    The bracket from few replicates is replaced by one from all replicates.
    """
    ends = _bracket(search, high.log if low is None else _crossing(low, high), search.replicates)
    if ends is None:
        return None
    low, high = ends
    if low is None:  # the slope is not known here: assume that n and (1 + s) n differ by s
        return Solved(search.least, search.least * high.error)
    slope = (high.score - low.score) / (high.log - low.log)
    middle = search.look(_crossing(low, high), search.replicates)
    low, high = (middle, high) if middle.score < 0 else (low, middle)
    at = min(max(middle.log - middle.score / slope, low.log), high.log)
    answer = high
    for _ in range(_MAX_STEPS):
        # the answer must reach the target: if it does not, go twice as far
        whole = math.log(math.ceil(math.exp(at) - 1e-9))
        nearer = search.look(whole if search.whole else at, search.replicates)
        if nearer.score >= 0:
            answer = nearer
            break
        at = min(nearer.log - 2.0 * nearer.score / slope, high.log)
    number = math.exp(answer.log)
    return Solved(float(round(number)) if search.whole else number, number * middle.error / slope)


def _crossing(low: _Look, high: _Look) -> float:
    """Return the crossing of the line through two points with the target, well inside of them."""
    share = -low.score / (high.score - low.score)
    return low.log + min(max(share, 0.1), 0.9) * (high.log - low.log)
