"""Effects of tests: alternatives by their size, how often they are detected, and the least ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nullmodel import (
    NullModel,
    Probabilities,
    binomial_weights,
    is_uniform,
    uniform,
)
from privrank.hypotheses.simulation import Curve, Enumerated, RejectionProbability, rejection_of
from privrank.hypotheses.solving import Solved, detectable
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.names import STATISTIC
from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.util.arrays import IntArray, immutable
from privrank.util.checks import is_number, quoted
from privrank.util.solvers import find_root

MAX_THETA = 50.0
"""A Mallows model with this theta gives one ranking but for a probability below 1e-20."""

MAX_ENUMERATED = 1_000_000
"""Choices of two categories up to which all counts are gone through."""


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
        What the distance is between.

    See Also
    --------
    privrank.RankTestResult.detectable_effect : Makes it, of one sample.
    privrank.ClosenessResult.detectable_effect : Makes it, of groups.

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
        """Say it in a sentence."""
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
    """Return the power of a test at level `alpha`, and refuse what is none."""
    if not is_number(power) or not alpha < power < 1:
        raise ValueError(
            f"power must be a probability between the level {alpha:g} and 1, such as 0.9, "
            f"got {quoted(power)}."
        )
    return float(power)


def least_errors(
    odds: float | NDArray[np.float64],
    units: int,
    distance: float,
    epsilon: float,
    delta: float,
) -> NDArray[np.float64]:
    """Return what the errors of a private test are at least: odds * level + 1 - power.

    So power <= odds * level + 1 - what is returned, whatever the odds.

    Parameters
    ----------
    odds : float, or ndarray of shape (k, 1)
        How much an error under H0 weighs beside one under the alternative; positive.
    units : int
        How many units have another distribution under the alternative. All are independent.
    distance : float
        Total variation distance of a unit's distribution there from that under H0.
    epsilon, delta : float
        The guarantee for each unit.

    Returns
    -------
    ndarray, shape () or (k,)

    Notes
    -----
    **Bound.** Units of the two distributions can be drawn together so that they differ with
    probability t = `distance` (a maximal coupling). So there are two samples, one of each
    hypothesis, that differ in D units, D binomial of size n = `units` and probability t. Let a and
    b be the probabilities with which a test rejects the one of H0 and the other: the level is the
    mean of a, and the power that of b. So the mean of a lower bound of odds * a + 1 - b is one of
    the errors.

    Let delta be 0. If one unit is replaced, b <= exp(epsilon) a and 1 - a <= exp(epsilon) (1 - b):
    b <= g(a) with g(a) = min(exp(epsilon) a, 1 - exp(-epsilon) (1 - a)), which rises. If D are
    replaced one by one, b <= g(g(... a)), D times, which is concave and has its corners, beside
    (0, 0) and (1, 1), where for some p = 1, ..., D

        a = exp(-p epsilon) / (1 + exp(-epsilon)),
        1 - b = exp(-(D + 1 - p) epsilon) / (1 + exp(-epsilon)):

    p steps raise a to 1 / (1 + exp(-epsilon)), and with each of the other D - p what is missing to
    1 shrinks by exp(-epsilon). The least of odds * a + 1 - b is at a corner: it is 1, odds, or that
    of the p closest to (D + 1 + log(odds) / epsilon) / 2, as a sum of two such exponentials is
    symmetric about its least value.

    With a delta, and s = delta / (exp(epsilon) - 1), the same holds of (a + s) / (1 + 2 s) and
    (b + s) / (1 + 2 s), as b <= exp(epsilon) a + delta is b + s <= exp(epsilon) (a + s), and so on.
    If e is the least of the errors of these, that of a and b is e - s (1 + odds - 2 e), or 0.

    Nothing is asked of the test but its guarantee, and no constant is left open. Of D what lies
    beyond nine standard deviations has a probability below 1e-15 and is left out.

    Examples
    --------
    At epsilon .1, and 100 units at a distance of .1, a test of level .05 has a power of at most:

    >>> import numpy as np
    >>> from privrank.hypotheses.effects import least_errors
    >>> odds = np.geomspace(0.05, 20, 401)
    >>> errors = least_errors(odds[:, None], 100, 0.1, epsilon=0.1, delta=0.0)
    >>> round(float(np.min(odds * 0.05 + 1 - errors)), 2)
    0.19
    """
    # at an epsilon of 600 nothing is left to bound
    epsilon = min(epsilon, 600.0)
    spread = 9.0 * math.sqrt(units * distance * (1.0 - distance)) + 20.0
    count = np.arange(
        max(int(units * distance - spread), 0), min(int(units * distance + spread), units) + 1
    )
    p = np.clip(np.rint((count + 1 + np.log(odds) / epsilon) / 2), 1, count)
    # at the corners (0, 0) and (1, 1), and at that of p
    least = np.minimum(
        np.minimum(odds, 1.0),
        (np.exp(-epsilon * (count + 1 - p)) + odds * np.exp(-epsilon * p))
        / (1.0 + math.exp(-epsilon)),
    )
    least -= delta / math.expm1(epsilon) * (1.0 + odds - 2.0 * least)
    return np.asarray(np.maximum(least, 0.0) @ binomial_weights(units, distance, count))


@dataclass(frozen=True, slots=True)
class Alternatives:
    """What a sample may follow in place of the null hypothesis, by the size of one effect.

    Parameters
    ----------
    sample : Sample
        Public facts.
    null : NullModel
        What holds without an effect.
    side : {"two-sided", "larger", "smaller"}
        What the first of two categories is under H1.

    Notes
    -----
    Effects are on a scale from 0, none, to `most`. Rankings follow a Mallows model: beside
    uniformity the effect is its theta = -log phi; beside a model with a centre it is the share by
    which theta is smaller. Of choices the effect is the total variation distance: half of the
    null's mass grows at the cost of the other. Which categories make up that half is drawn, so that
    the power does not depend on their order. With one side it is the first category that grows, or
    falls, and of equal categories any half is as good as another.
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
        """An effect to start a search from, about as large as sampling errors."""
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
        if self.null.probabilities:
            return np.asarray(rng.multinomial(n, self._tilted(effect, rng)))
        return Mallows.from_theta(m, self._theta(effect), self.null.center or None).rvs(n, rng)

    def _theta(self, effect: float) -> float:
        return self.null.theta * (1.0 - effect) if self.null.center else effect

    def _tilted(self, distance: float, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return shares of the categories at this distance from those under H0."""
        p = self.null.probabilities
        cells = np.array(p)
        order = np.arange(len(p))
        if self.side == "two-sided" and not is_uniform(p):
            order = rng.permutation(len(p))
        raised = _raised(p, order) != (self.side == "smaller")
        # the mass `distance` moves from one half to the other, so that it is the total variation
        # distance; shares within a half keep their proportions
        share = cells[raised].sum()
        cells[raised] *= 1 + distance / share
        cells[~raised] *= max(1 - distance / (1 - share), 0.0)
        return np.asarray(cells / cells.sum())

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
        """Return the effect whose total variation distance from H0, which rises, is this one."""
        if self.null.probabilities:
            return distance
        # a theta of many items is small: its digits count, not its size
        return find_root(
            lambda effect: self.distance(effect) - distance, 0.0, self.most, xtol=1e-18
        )

    def stated(self, solved: Solved | None, power: float, alpha: float) -> DetectableEffect:
        """Return an effect with its Monte Carlo error in terms that a reader knows."""
        if solved is None:
            return DetectableEffect(power, alpha, None, None, None)
        effect = solved.at
        error = solved.error
        if self.null.probabilities:
            return DetectableEffect(power, alpha, None, None, effect, error)
        model = self.model(effect)
        distance = self.distance(effect)
        # with a centre there is none beyond the uniform model
        back = self.null.center and effect + error > 1.0
        error = abs(self.distance(effect - error if back else effect + error) - distance)
        ahead = float(model.pair_probability(0, len(self.sample.items) - 1))
        return DetectableEffect(power, alpha, model.phi, ahead, distance, error)


def _raised(p: Probabilities, order: IntArray) -> NDArray[np.bool_]:
    """Return which categories, the first ones of an order, make up half of the mass, or one."""
    raised = np.zeros(len(p), dtype=np.bool_)
    raised[order] = (np.cumsum(np.array(p)[order]) <= 0.5 + 1e-12) | (np.arange(len(p)) == 0)
    return raised


def curve_of(
    query: Statistic | RandomBit,
    reject: RejectionProbability,
    against: Alternatives,
    n_jobs: int = 1,
) -> Curve | Enumerated:
    """Return the power of a test of one sample by effect.

    Of two categories it is exact, by a statistic and by a bit.
    """
    sample = against.sample
    items = len(against.sample.items)
    # reports of the local model are simulated as statistics; two categories have so few samples
    # that rejection is summed over the binomial counts in place of drawing them
    if isinstance(query, Statistic) and query.sampler is not None:
        return Curve(reject, query.sampler, items, query.name, n_jobs)
    two = sample.kind == "choices" and items == 2 and sample.nobs <= MAX_ENUMERATED
    if two:
        return Enumerated(reject, partial(_first, against), sample.nobs)
    return Curve(reject, against.simulate, items, query.name, n_jobs)


def _first(against: Alternatives, distance: float) -> tuple[float, ...]:
    """Return the probabilities of the first of two categories that an effect may have."""
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
    """Return the smallest effect at which a test of one sample has a power.

    Parameters
    ----------
    release : Release
        Of the test: its public facts and the scale of its noise.
    query : Statistic or RandomBit
        What it releases.
    threshold : int or None
        Least value that is rejected, in lattice steps; None where none is.
    null : NullModel
        What is tested.
    alpha, power : float
        Level of the test, and the probability of rejection that is wanted.
    replicates : int
        Simulated samples per effect.
    """
    part = release.parts.get(STATISTIC)
    noise = DiscreteLaplace(0.0) if part is None else part.laplace
    against = Alternatives(
        release.sample, null, str(release.plan.settings.get("alternative", "two-sided"))
    )
    curve = curve_of(query, rejection_of(query, noise, threshold), against)
    solved = detectable(curve.at, power, replicates, start=against.start, most=against.most)
    return against.stated(solved, power, alpha)


def detectable_between(
    reject: RejectionProbability, sample: Sample, alpha: float, power: float, replicates: int
) -> DetectableEffect:
    """Return the smallest difference of one group that a comparison of groups detects.

    Parameters
    ----------
    reject : callable
        Maps the data of all groups with a generator, and an order of the items, to the probability
        of rejection.
    sample : Sample
        Public facts, with the sizes of the groups.
    alpha, power : float
        Level of the test, and the probability of rejection that is wanted.
    replicates : int
        Simulated data sets per effect.

    Returns
    -------
    DetectableEffect
        How far the smallest group is from the others, in which everything is equally likely.
    """
    curve, against = curve_between(reject, sample)
    solved = detectable(curve.at, power, replicates, start=against.start, most=against.most)
    return replace(
        against.stated(solved, power, alpha), apart="of the smallest group from the others"
    )


def curve_between(
    reject: RejectionProbability, sample: Sample, n_jobs: int = 1
) -> tuple[Curve, Alternatives]:
    """Return the power of a comparison by the effect in the smallest group, and its alternatives.

    In all other groups everything is equally likely.
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
    """Return the data of all groups, and the generator of what else is random in a comparison."""
    return [group.simulate(effect * (k == small), rng) for k, group in enumerate(groups)], rng
