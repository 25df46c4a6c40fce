"""Effect sizes for planning: what a test of given public numbers detects, and how often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nullmodel import NullModel, Probabilities, is_uniform, uniform
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.planning import simulation
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.names import STATISTIC
from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.util.checks import check_number
from privrank.util.solvers import zero

__all__ = [
    "STANDARD",
    "DetectableEffect",
    "PowerStudy",
    "alternative",
    "check_power",
    "curve_between",
    "curve_of",
    "detectable_between",
    "effect_at",
    "family",
]

IntArray = NDArray[np.int64]

MOST_THETA = 50.0
"""A Mallows model with this theta gives one ranking but for a probability below 1e-20."""

STANDARD = 0.1
"""Total variation distance from H0 at which summaries state the power."""

_QUICK, _REPLICATES = 1_500_000, 200
"""Cells that a summary simulates at most, and replicates, of which 20 are the fewest."""

_LISTED = 10_000
"""Rankings of two items of which all samples are listed."""

_PER_CATEGORY = 20
"""Cells of rankings that take about as long to simulate as all choices of one category."""


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
        model = ""
        if self.phi is not None and self.first_over_last is not None:
            model = (
                f"a Mallows model with phi = {self.phi:.4g} (its first item is ranked before its "
                f"last with probability {self.first_over_last:.3f}), "
            )
        how = f"Monte Carlo standard error {self.error:.1g}" if self.error else "exact"
        return (
            f"Detected with power {self.power:g} at level {self.alpha:g}: {model}a total variation "
            f"distance of {self.total_variation:.3g} {self.apart} ({how})."
        )


def check_power(power: object, alpha: float) -> float:
    """Return the power of a test at level `alpha`, and refuse what is none."""
    rule = f"a probability between the level {alpha:g} and 1, such as 0.9"
    return check_number("power", power, rule, lambda p: alpha < p < 1)


def _mallows(sample: Sample, theta: float, rng: np.random.Generator) -> IntArray:
    return np.asarray(Mallows.from_theta(len(sample.items), theta).rvs(sample.nobs, rng))


def _raised(p: Probabilities, order: IntArray) -> NDArray[np.bool_]:
    """Return which categories, the first ones of an order, make up half of the mass, or one."""
    raised = np.zeros(len(p), dtype=np.bool_)
    half = np.cumsum(np.array(p)[order]) <= 0.5 + 1e-12
    raised[order] = half | (np.arange(len(p)) == 0)
    return raised


def _tilted(
    sample: Sample, p: Probabilities, side: str, distance: float, rng: np.random.Generator
) -> IntArray:
    """Return counts where half of the null's mass, by category, has grown: which half is drawn.

    With one side it is the first category that has grown, or fallen; of equal categories any half
    is as good as another.
    """
    cells, order = np.array(p), np.arange(len(p))
    if side == "two-sided" and not is_uniform(p):
        order = rng.permutation(len(p))
    raised = _raised(p, order) != (side == "smaller")
    share = cells[raised].sum()
    cells[raised] *= 1 + distance / share
    cells[~raised] *= max(1 - distance / (1 - share), 0.0)
    return np.asarray(rng.multinomial(sample.nobs, cells / cells.sum()))


def _dispersed(
    sample: Sample, null: NullModel, effect: float, rng: np.random.Generator
) -> IntArray:
    """Return rankings around the same centre, theta smaller by the share `effect`."""
    theta = null.theta * (1.0 - effect)
    model = Mallows.from_theta(len(sample.items), theta, np.array(null.center))
    return np.asarray(model.rvs(sample.nobs, rng))


def family(
    sample: Sample, null: NullModel, side: str = "two-sided"
) -> tuple[simulation.Sampler, float, float]:
    """Return the sampler, an effect to start from and the largest effect.

    Of choices half of the categories become more likely; of two and a test of one side the first
    becomes ``"larger"`` or ``"smaller"``. The power does not depend on their order: samples raise
    one half or another.
    """
    m, n = len(sample.items), sample.nobs
    if null.center:
        return partial(_dispersed, sample, null), min(1.0 / n**0.5, 1.0), 1.0
    if not null.probabilities:
        return partial(_mallows, sample), min(2.0 / (m**1.5 * n**0.5), 1.0), MOST_THETA
    if sample.kind == "rankings":
        raise ValueError(
            "the smallest detectable effect is defined for a Mallows null, for uniformity and "
            "for choices, not for a table of rankings."
        )
    p = null.probabilities
    most = 1.0 - max(0.5, *p)
    if side != "two-sided" or is_uniform(p):
        most = 1.0 - float(np.array(p)[_raised(p, np.arange(m)) != (side == "smaller")].sum())
    return partial(_tilted, sample, p, side), min(0.5 * (m / n) ** 0.5, most), most


def curve_of(
    asked: Statistic | RandomBit,
    reject: simulation.Chance,
    sample: Sample,
    null: NullModel,
    side: str = "two-sided",
) -> tuple[simulation.Curve | simulation.Enumerated, float, float]:
    """Return the power of a test of one sample by effect, where to start and the largest effect.

    Of two categories it is exact, and of two items if rankings are not too many to be listed.
    """
    sampler, start, most = family(sample, null, side)
    if isinstance(asked, Statistic) and asked.sampler is not None:
        return simulation.Curve(reject, asked.sampler, len(sample.items), asked.name), start, most
    choices = sample.kind == "choices"
    few = len(sample.items) == 2 and (choices or sample.nobs <= _LISTED)
    if few and isinstance(asked, Statistic):
        first = partial(_first, null, side) if choices else partial(_first_order, null)
        data = _counted if choices else _listed
        return simulation.Enumerated(reject, first, data, sample.nobs), start, most
    return simulation.Curve(reject, sampler, len(sample.items), asked.name), start, most


def _first(null: NullModel, side: str, distance: float) -> tuple[float, ...]:
    share = null.probabilities[0]
    ends = {"larger": min(share + distance, 1.0), "smaller": max(share - distance, 0.0)}
    return tuple(ends.values()) if side == "two-sided" else (ends[side],)


def _first_order(null: NullModel, effect: float) -> tuple[float, ...]:
    ahead = float(alternative(2, effect, null)[0].pair_probability(0, 1))
    return (ahead if null.center in ((), (1, 2)) else 1.0 - ahead,)


def _counted(first: int, second: int) -> IntArray:
    return np.array([first, second])


def _listed(first: int, second: int) -> IntArray:
    return np.repeat(np.array([[1, 2], [2, 1]]), [first, second], axis=0)


@dataclass(frozen=True, slots=True)
class PowerStudy:
    """The power of a test of given public numbers, by simulation.

    Parameters
    ----------
    release : Release
        Of the test: its public facts and the scale of its noise.
    asked : Statistic or RandomBit
        What it releases.
    threshold : int or None
        Least value that is rejected, in lattice steps; None where none is.
    null : NullModel
        What is tested.
    alpha : float
        Its level.
    """

    release: Release
    asked: Statistic | RandomBit
    threshold: int | None
    null: NullModel
    alpha: float

    def _curve(self) -> tuple[simulation.Curve | simulation.Enumerated, float, float]:
        part, sample = self.release.parts.get(STATISTIC), self.release.sample
        noise = DiscreteLaplace(0.0) if part is None else part.laplace
        reject = simulation.chance(self.asked, noise, self.threshold)
        side = str(self.release.plan.settings.get("alternative", "two-sided"))
        return curve_of(self.asked, reject, sample, self.null, side)

    def detectable_effect(self, power: float, replicates: int) -> DetectableEffect:
        """Return the smallest effect at which the test has this power."""
        sample = self.release.sample
        curve, start, most = self._curve()
        found = simulation.detectable(curve, power, replicates, start=start, most=most)
        return _stated(sample, self.null, found, power, self.alpha)

    def standard(self) -> tuple[float, float, float | None] | None:
        """Return the power at the distance `STANDARD`, its Monte Carlo error, and phi for rankings.

        None where that would take long, where no alternative has that distance, and where rankings
        are completed, as power depends on how much of them is left open.
        """
        sample, null = self.release.sample, self.null
        choices = sample.kind == "choices"
        cells = len(sample.items) * (_PER_CATEGORY if choices else sample.nobs)
        if isinstance(self.asked, Statistic) and self.asked.sampler is not None:
            cells = 1 if self.asked.quick else _QUICK
        replicates = min(_QUICK // cells, _REPLICATES)
        if replicates < 20 or sample.completed or (null.probabilities and not choices):
            return None
        curve, _, most = self._curve()
        if choices:
            return (*curve.at(STANDARD, replicates), None) if STANDARD <= most else None
        m = len(sample.items)
        effect = effect_at(m, STANDARD, null, most)
        if effect is None:
            return None
        return (*curve.at(effect, replicates), alternative(m, effect, null)[0].phi)


def detectable_between(
    reject: simulation.Chance, sample: Sample, alpha: float, power: float, replicates: int
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
    curve, alone, null, start, most = curve_between(reject, sample)
    found = simulation.detectable(curve, power, replicates, start=start, most=most)
    stated = _stated(alone, null, found, power, alpha)
    return replace(stated, apart="of the smallest group from the others")


def curve_between(
    reject: simulation.Chance, sample: Sample
) -> tuple[simulation.Curve, Sample, NullModel, float, float]:
    """Return the power of a comparison by the effect in the smallest group.

    Beside it that group alone, what all others follow, where to start and the largest effect.
    """
    choices = sample.kind == "choices"
    null = NullModel(uniform(len(sample.items)) if choices else ())
    sizes = sample.sizes
    small = sizes.index(min(sizes))
    alone = replace(sample, nobs=sizes[small], groups=())
    _, start, most = family(alone, null)
    drawn = partial(_drawn_groups, sample=sample, null=null, small=small)
    label = "comparison of groups"
    return simulation.Curve(reject, drawn, len(sample.items), label), alone, null, start, most


def _drawn_groups(
    effect: float, rng: np.random.Generator, sample: Sample, null: NullModel, small: int
) -> tuple[list[IntArray], np.random.Generator]:
    groups = []
    for number, size in enumerate(sample.sizes):
        one, away = replace(sample, nobs=size, groups=()), effect * (number == small)
        groups.append(family(one, null)[0](away, rng))
    return groups, rng


def _stated(
    sample: Sample,
    null: NullModel,
    found: tuple[float, float] | None,
    power: float,
    alpha: float,
) -> DetectableEffect:
    """Return an effect with its Monte Carlo error in terms that a reader knows."""
    if found is None:
        return DetectableEffect(power, alpha, None, None, None)
    effect, error = found
    if sample.kind == "choices":
        return DetectableEffect(power, alpha, None, None, effect, error)
    m = len(sample.items)
    model, distance = alternative(m, effect, null)
    # with a centre there is none beyond the uniform model
    beside = effect - error if null.center and effect + error > 1.0 else effect + error
    away = abs(alternative(m, beside, null)[1] - distance)
    ahead = float(model.pair_probability(0, m - 1))
    return DetectableEffect(power, alpha, model.phi, ahead, distance, away)


def alternative(m: int, effect: float, null: NullModel) -> tuple[Mallows, float]:
    """Return the Mallows model of an effect, its centre in order, and its distance from H0."""
    if not null.center:
        model = Mallows.from_theta(m, effect)
        return model, model.total_variation("uniform")
    model = Mallows.from_theta(m, null.theta * (1.0 - effect))
    return model, model.total_variation(Mallows.from_theta(m, null.theta))


def effect_at(m: int, distance: float, null: NullModel, most: float) -> float | None:
    """Return the effect of the Mallows model at a total variation distance from H0, None if none.

    Given the largest effect there is.
    """

    def beyond(effect: float) -> float:
        return alternative(m, effect, null)[1] - distance

    return None if beyond(most) < 0 else zero(beyond, 0.0, most, xtol=1e-9, rtol=1e-6)
