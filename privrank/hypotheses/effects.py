"""Power of tests: curves by simulation or summation, alternatives, and the smallest effects."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nulls import (
    Null,
    NullModel,
    Order,
    Probabilities,
    RandomBit,
    Statistic,
    binomial_weights,
    is_uniform,
    public_generator,
    uniform,
)
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.names import STATISTIC
from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.util.arrays import BoolArray, FloatArray, IntArray, immutable
from privrank.util.checks import is_number, quoted
from privrank.util.solvers import bisect, find_root
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
        counts = np.arange(
            max(math.floor(n * p - spread), 0), min(math.ceil(n * p + spread), n) + 1
        )
        rejected = [self.reject(np.array([count, n - count]), (0, 1)) for count in counts.tolist()]
        return float(binomial_weights(n, p, counts) @ np.array(rejected))


Measure = Callable[[float, int], tuple[float, float]]
"""Maps a number and a number of replicates to the value and its standard error, 0 if exact."""


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
    few = min(max(20, search.replicates // 4), search.replicates)
    ends = _bracket(search, math.log(min(max(start, search.least), search.most)), few)
    if ends is None:
        return None
    low, high = ends
    if high.error > 0:
        return _refined(search, low, high)
    if low is None:
        return Solved(search.least, 0.0)

    def short(number: float) -> bool:
        return search.look(math.log(number), search.replicates).score < 0

    # an exact curve is monotone on the bracket, so bisection is valid; of two neighbouring whole
    # numbers the larger one reaches the target
    if not search.whole:
        end = bisect(short, math.exp(low.log), math.exp(high.log), 60, relative=1e-6)[1]
        return Solved(end, 0.0)
    least = round(math.exp(low.log))
    most = round(math.exp(high.log))
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if short(middle) else (least, middle)
    return Solved(float(most), 0.0)


def _bracket(search: Search, log: float, few: int) -> tuple[_Look | None, _Look] | None:
    """Return a point below the target (None at the smallest number) and one that reaches it."""
    look = search.look(log, few)
    upward = look.score < 0
    while True:
        if upward and look.log >= math.log(search.most) - 1e-12:
            return None
        if not upward and look.log <= math.log(search.least) + 1e-12:
            return None, look
        step = math.log(min(max(math.exp(abs(look.score)), 1.5), 4.0))
        if search.whole:  # at least the next whole number
            step = max(step, math.log1p(math.exp(-look.log)))
        last = look
        look = search.look(look.log + (step if upward else -step), few)
        if (look.score < 0) != upward:
            return (last, look) if upward else (look, last)


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
    for _ in range(4):
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


MAX_THETA = 50.0
"""Up to a probability below 1e-20 a Mallows model with this theta gives a single ranking."""


@immutable
@dataclass(frozen=True, slots=True)
class DetectableEffect:
    """The smallest effect that a test detects with a given power.

    Parameters
    ----------
    power, alpha : float
        Probability of rejection, and the level.
    phi : float or None
        Dispersion of the Mallows model that has this power, for rankings; None for choices, or if
        no effect has it.
    first_over_last : float or None
        Probability under that model that its first item is ranked before its last.
    total_variation : float or None
        Total variation distance of the alternative from H0; None if no effect has the power.
    error : float or None
        Monte Carlo standard error of that distance.
    apart : str
        The distributions between which the distance is measured.

    See Also
    --------
    privrank.RankTestResult.detectable_effect : Computes it for tests of one sample.
    privrank.ClosenessResult.detectable_effect : Computes it for tests of groups.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> test = pr.UniformityTest.from_counts({"yes": 61, "no": 37}, categories=["yes", "no"])
    >>> effect = test.fit(epsilon=np.inf).detectable_effect(power=0.8)
    >>> print(effect)
    Detected with power 0.8 at level 0.05: a total variation distance of 0.148 from H0 (exact).
    """

    power: float
    alpha: float
    phi: float | None
    first_over_last: float | None
    total_variation: float | None
    error: float | None = None
    apart: str = "from H0"

    def __str__(self) -> str:
        """Return a one-sentence description."""
        if self.total_variation is None:
            return f"No effect is detected with power {self.power:g} at level {self.alpha:g}."
        model = (
            f"a Mallows model with phi = {self.phi:.4g} (its first item is ranked before its last "
            f"with probability {self.first_over_last:.3f}), "
            if self.phi is not None and self.first_over_last is not None
            else ""
        )
        how = f"Monte Carlo standard error {self.error:.1g}" if self.error else "exact"
        return (
            f"Detected with power {self.power:g} at level {self.alpha:g}: {model}a total variation "
            f"distance of {self.total_variation:.3g} {self.apart} ({how})."
        )


def check_power(power: object, alpha: float) -> float:
    """Return the power of a test at level `alpha`, or raise an error if it is not valid."""
    if not is_number(power) or not alpha < power < 1:
        raise ValueError(
            f"power must be a probability between the level {alpha:g} and 1, such as 0.9, "
            f"got {quoted(power)}."
        )
    return float(power)


def least_errors(
    odds: float | FloatArray,
    units: int,
    distance: float,
    epsilon: float,
    delta: float,
) -> FloatArray:
    """Return a lower bound on the errors of a private test: odds * level + 1 - power.

    Hence power <= odds * level + 1 - bound for all odds.

    Parameters
    ----------
    odds : float, or ndarray of shape (k, 1)
        Weight of an error under H0, relative to an error under the alternative; positive.
    units : int
        Number of units with another distribution under the alternative. All are independent.
    distance : float
        Total variation distance between the distributions of a unit under H0 and the alternative.
    epsilon, delta : float
        The privacy guarantee for each unit.

    Returns
    -------
    ndarray, shape () or (k,)

    Notes
    -----
    **Bound.** Units of the two distributions can be coupled to differ with probability
    t = `distance` (a maximal coupling). This gives two samples, one under each hypothesis, that
    differ in D units, where D is binomial with size n = `units` and probability t. Let a and b be
    the probabilities with which the test rejects the sample under H0 and the other sample. The
    level is the mean of a, and the power is the mean of b. So the mean of a lower bound of
    odds * a + 1 - b is a lower bound of the errors.

    Let delta be 0. If one unit is replaced, b <= exp(epsilon) a and 1 - a <= exp(epsilon) (1 - b):
    b <= g(a) with g(a) = min(exp(epsilon) a, 1 - exp(-epsilon) (1 - a)), which is increasing. If D
    units are replaced one by one, b <= g(g(... a)), D times. This function is concave. Its corners,
    apart from (0, 0) and (1, 1), are for p = 1, ..., D

        a = exp(-p epsilon) / (1 + exp(-epsilon)),
        1 - b = exp(-(D + 1 - p) epsilon) / (1 + exp(-epsilon)):

    p steps raise a to 1 / (1 + exp(-epsilon)), and each of the other D - p steps multiplies the
    difference to 1 by exp(-epsilon). The minimum of odds * a + 1 - b is at a corner: it is 1, odds,
    or the value for the p closest to (D + 1 + log(odds) / epsilon) / 2, because a sum of two such
    exponentials is symmetric about its minimum.

    With a positive delta, let s = delta / (exp(epsilon) - 1). The same argument applies to
    (a + s) / (1 + 2 s) and (b + s) / (1 + 2 s), because b <= exp(epsilon) a + delta is equivalent
    to b + s <= exp(epsilon) (a + s), and so on. If e is the minimum of the errors for these, the
    minimum for a and b is e - s (1 + odds - 2 e), or 0.

    The bound requires only the privacy guarantee of the test and leaves no constant open. Values of
    D beyond nine standard deviations have a probability below 1e-15 and are omitted.

    Examples
    --------
    At epsilon 0.1, with 100 units at a distance of 0.1, a test of level 0.05 has power at most:

    >>> import numpy as np
    >>> from privrank.hypotheses.effects import least_errors
    >>> odds = np.geomspace(0.05, 20, 401)
    >>> errors = least_errors(odds[:, None], 100, 0.1, epsilon=0.1, delta=0.0)
    >>> round(float(np.min(odds * 0.05 + 1 - errors)), 2)
    0.19
    """
    # for an epsilon of 600 or more the bound is trivial
    epsilon = min(epsilon, 600.0)
    spread = 9.0 * math.sqrt(units * distance * (1.0 - distance)) + 20.0
    count = np.arange(
        max(int(units * distance - spread), 0), min(int(units * distance + spread), units) + 1
    )
    p = np.clip(np.rint((count + 1 + np.log(odds) / epsilon) / 2), 1, count)
    # minimum over the corners (0, 0) and (1, 1) and the corner p
    least = np.minimum(
        np.minimum(odds, 1.0),
        (np.exp(-epsilon * (count + 1 - p)) + odds * np.exp(-epsilon * p))
        / (1.0 + math.exp(-epsilon)),
    )
    least -= delta / math.expm1(epsilon) * (1.0 + odds - 2.0 * least)
    return np.asarray(np.maximum(least, 0.0) @ binomial_weights(units, distance, count))


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Alternatives to a null hypothesis, by the size of one effect.

    Parameters
    ----------
    sample : Sample
        Public facts about the sample.
    null : NullModel
        The null hypothesis, at effect 0.
    side : {"two-sided", "larger", "smaller"}
        Direction of the alternative for the first of two categories.

    Notes
    -----
    Effects range from 0 (none) to `most`. Rankings follow a Mallows model. If the null is
    uniformity, the effect is theta = -log phi; if the null is a model with a centre, it is the
    relative reduction of theta. For choices the effect is the total variation distance: half of the
    null's mass increases at the expense of the other half. The categories in that half are drawn at
    random, so the power does not depend on their order. For a one-sided alternative the first
    category increases or decreases. If all categories are equal, any half gives the same power.
    """

    sample: Sample
    null: NullModel
    side: str = "two-sided"

    def __post_init__(self) -> None:
        """Refuse a null hypothesis without alternatives of one size."""
        if self.null.probabilities and self.sample.kind == "rankings":
            raise ValueError(
                "the smallest detectable effect is defined for a Mallows null, for uniformity and "
                "for choices, not for a table of rankings."
            )

    @property
    def start(self) -> float:
        """Starting value for a search, about as large as the sampling error."""
        m = len(self.sample.items)
        n = self.sample.nobs
        if self.null.probabilities:
            return min(0.5 * math.sqrt(m / n), self.most)
        return min(1.0 / math.sqrt(n) if self.null.center else 2.0 / math.sqrt(m**3 * n), 1.0)

    @property
    def most(self) -> float:
        """The largest effect."""
        p = self.null.probabilities
        if not p:
            return 1.0 if self.null.center else MAX_THETA
        if self.side != "two-sided" or is_uniform(p):
            raised = _raised(p, np.arange(len(p))) != (self.side == "smaller")
            return 1.0 - float(np.array(p)[raised].sum())
        return 1.0 - max(0.5, *p)

    def simulate(self, effect: float, rng: np.random.Generator) -> IntArray:
        """Return a simulated sample: ranks, or counts by category."""
        n = self.sample.nobs
        m = len(self.sample.items)
        p = self.null.probabilities
        if not p:
            return Mallows.from_theta(m, self._theta(effect), self.null.center or None).rvs(n, rng)
        cells = np.array(p)
        order = np.arange(m)
        if self.side == "two-sided" and not is_uniform(p):
            order = rng.permutation(m)
        raised = _raised(p, order) != (self.side == "smaller")
        # move the mass `effect` from one half to the other, which makes it the total variation
        # distance; probabilities within a half keep their proportions
        share = cells[raised].sum()
        cells[raised] *= 1 + effect / share
        cells[~raised] *= max(1 - effect / (1 - share), 0.0)
        return np.asarray(rng.multinomial(n, np.asarray(cells / cells.sum())))

    def _theta(self, effect: float) -> float:
        return self.null.theta * (1.0 - effect) if self.null.center else effect

    def model(self, effect: float) -> Mallows:
        """Return the Mallows model of an effect on rankings, its centre in order."""
        return Mallows.from_theta(len(self.sample.items), self._theta(effect))

    def distance(self, effect: float) -> float:
        """Return the total variation distance of an effect from H0."""
        if self.null.probabilities:
            return effect
        return self.model(effect).total_variation(
            self.model(0.0) if self.null.center else "uniform"
        )

    def effect(self, distance: float) -> float:
        """Return the effect with this total variation distance from H0."""
        if self.null.probabilities:
            return distance
        # theta is small for many items, so the search needs a relative precision
        return find_root(
            lambda effect: self.distance(effect) - distance, 0.0, self.most, xtol=1e-18
        )

    def detectable(
        self, curve: Curve | Enumerated, power: float, alpha: float, replicates: int
    ) -> DetectableEffect:
        """Return the smallest effect at which a curve reaches this power, and its error."""
        solved = least_number(
            Search(curve.at, power, 2.0**-20 * self.start, self.most, replicates), self.start
        )
        if solved is None:
            return DetectableEffect(power, alpha, None, None, None)
        effect = solved.at
        error = solved.error
        if self.null.probabilities:
            return DetectableEffect(power, alpha, None, None, effect, error)
        model = self.model(effect)
        distance = self.distance(effect)
        # with a centre there is no effect beyond the uniform model
        back = self.null.center and effect + error > 1.0
        error = abs(self.distance(effect - error if back else effect + error) - distance)
        ahead = float(model.pair_probability(0, len(self.sample.items) - 1))
        return DetectableEffect(power, alpha, model.phi, ahead, distance, error)


def _raised(p: Probabilities, order: IntArray) -> BoolArray:
    """Return which categories make up half of the mass: the first in an order, at least one."""
    raised = np.zeros(len(p), dtype=np.bool_)
    raised[order] = (np.cumsum(np.array(p)[order]) <= 0.5 + 1e-12) | (np.arange(len(p)) == 0)
    return raised


def curve_of(
    query: Statistic | RandomBit,
    reject: RejectionProbability,
    against: Alternatives,
    n_jobs: int = 1,
) -> Curve | Enumerated:
    """Return the power of a test of one sample as a function of the effect.

    For two categories the power is exact, for statistics and for random bits.
    """
    sample = against.sample
    items = len(against.sample.items)
    # local reports are simulated by the sampler of their statistic; for two categories the
    # probability of rejection is summed over the binomial counts
    if isinstance(query, Statistic) and query.sampler is not None:
        return Curve(reject, query.sampler, items, query.name, n_jobs)
    if sample.kind == "choices" and items == 2 and sample.nobs <= 1_000_000:
        return Enumerated(reject, partial(_first, against), sample.nobs)
    return Curve(reject, against.simulate, items, query.name, n_jobs)


def _first(against: Alternatives, distance: float) -> tuple[float, ...]:
    """Return the possible probabilities of the first of two categories at a distance."""
    share = against.null.probabilities[0]
    ends = {"larger": min(share + distance, 1.0), "smaller": max(share - distance, 0.0)}
    return tuple(ends.values()) if against.side == "two-sided" else (ends[against.side],)


def detectable_from(
    release: Release,
    query: Statistic | RandomBit,
    threshold: int | None,
    null: NullModel,
    alpha: float,
    power: float,
    replicates: int,
) -> DetectableEffect:
    """Return the smallest effect that a test of one sample detects with a given power.

    Parameters
    ----------
    release : Release
        The release of the test: its public facts and the scale of its noise.
    query : Statistic or RandomBit
        The statistic or bit that the test releases.
    threshold : int or None
        Smallest value that is rejected, in lattice steps; None if no value is rejected.
    null : NullModel
        The null hypothesis.
    alpha, power : float
        Level of the test, and required probability of rejection.
    replicates : int
        Simulated samples per effect.
    """
    part = release.parts.get(STATISTIC)
    noise = DiscreteLaplace(0.0) if part is None else part.laplace
    against = Alternatives(
        release.sample, null, str(release.plan.settings.get("alternative", "two-sided"))
    )
    return against.detectable(
        curve_of(query, rejection_of(query, noise, threshold), against), power, alpha, replicates
    )


def detectable_between(
    reject: RejectionProbability, sample: Sample, alpha: float, power: float, replicates: int
) -> DetectableEffect:
    """Return the smallest difference of one group that a test of closeness detects.

    Parameters
    ----------
    reject : callable
        Maps the data of all groups with a generator, and an order of the items, to the probability
        of rejection.
    sample : Sample
        Public facts, with the sizes of the groups.
    alpha, power : float
        Level of the test, and required probability of rejection.
    replicates : int
        Simulated data sets per effect.

    Returns
    -------
    DetectableEffect
        Distance of the smallest group from the others, in which all outcomes are equally likely.
    """
    curve, against = curve_between(reject, sample)
    return replace(
        against.detectable(curve, power, alpha, replicates),
        apart="of the smallest group from the others",
    )


def curve_between(
    reject: RejectionProbability, sample: Sample, n_jobs: int = 1
) -> tuple[Curve, Alternatives]:
    """Return the power as a function of the effect in the smallest group, and its alternatives.

    In all other groups all outcomes are equally likely.
    """
    null = NullModel(uniform(len(sample.items)) if sample.kind == "choices" else ())
    groups = [Alternatives(replace(sample, nobs=n, groups=()), null) for n in sample.sizes]
    small = sample.sizes.index(min(sample.sizes))
    curve = Curve(
        reject,
        partial(_drawn_groups, groups=groups, small=small),
        len(sample.items),
        "comparison of groups",
        n_jobs,
    )
    return curve, groups[small]


def _drawn_groups(
    effect: float, rng: np.random.Generator, groups: list[Alternatives], small: int
) -> tuple[list[IntArray], np.random.Generator]:
    """Return the data of all groups, and the generator for the random parts of a comparison."""
    return [group.simulate(effect * (k == small), rng) for k, group in enumerate(groups)], rng
