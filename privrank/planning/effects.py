"""Effect sizes for planning: what a test of given public numbers detects, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Real

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nullmodel import NullModel
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.planning import simulation
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.release import STATISTIC, Release
from privrank.release.survey import Sample

__all__ = ["DetectableEffect", "check_power", "detectable_effect", "power_curve"]

IntArray = NDArray[np.int64]

MOST_THETA = 50.0
"""A Mallows model with this theta gives one ranking but for a probability below 1e-20."""


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
    """

    power: float
    alpha: float
    phi: float | None
    first_over_last: float | None
    total_variation: float | None

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
        return (
            f"Detected with power {self.power:g} at level {self.alpha:g}: {model}a total variation "
            f"distance of {self.total_variation:.3g} from H0."
        )


def check_power(power: object, alpha: float) -> None:
    """Refuse what is no power of a test at level `alpha`."""
    real = isinstance(power, Real) and not isinstance(power, bool)
    if not real or not alpha < float(power) < 1:  # type: ignore[arg-type]
        raise ValueError(
            f"power must be a probability between the level {alpha:g} and 1, such as 0.9, "
            f"got {power!r}."
        )


def _mallows(sample: Sample, theta: float, rng: np.random.Generator) -> IntArray:
    return np.asarray(Mallows.from_theta(len(sample.items), theta).rvs(sample.nobs, rng))


def _two_levels(sample: Sample, distance: float, rng: np.random.Generator) -> IntArray:
    k = len(sample.items)
    raised = k // 2
    p = np.full(k, 1.0 / k)
    p[:raised] += distance / raised
    p[raised:] -= distance / (k - raised)
    return np.asarray(rng.multinomial(sample.nobs, np.maximum(p, 0.0)))


def _tilted(
    sample: Sample, p: tuple[float, ...], distance: float, rng: np.random.Generator
) -> IntArray:
    """Return counts where the first half of the null's mass, by category, has grown."""
    cells, raised = np.array(p), np.cumsum(p) <= 0.5 + 1e-12
    if not raised.any():
        raised[0] = True
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


def _family(sample: Sample, null: NullModel | None) -> tuple[simulation.Sampler, float, float]:
    """Return the sampler, an effect to start from and the largest effect."""
    m, n = len(sample.items), sample.nobs
    if null is not None and null.center:
        return partial(_dispersed, sample, null), min(1.0 / n**0.5, 1.0), 1.0
    if null is not None and null.probabilities:
        if sample.kind == "rankings":
            raise ValueError(
                "the smallest detectable effect is defined for a Mallows null, for uniformity and "
                "for choices, not for a table of rankings."
            )
        share = float(
            np.cumsum(null.probabilities)[np.cumsum(null.probabilities) <= 0.5 + 1e-12].max(
                initial=null.probabilities[0]
            )
        )
        most = 1.0 - share
        return partial(_tilted, sample, null.probabilities), min(0.5 * (m / n) ** 0.5, most), most
    if sample.kind == "rankings":
        return partial(_mallows, sample), min(2.0 / (m**1.5 * n**0.5), 1.0), MOST_THETA
    most = 1.0 - (m // 2) / m
    return partial(_two_levels, sample), min(0.5 * (m / n) ** 0.5, most), most


def _law(release: Release) -> DiscreteLaplace:
    part = release.parts.get(STATISTIC)
    return DiscreteLaplace(0.0) if part is None else part.laplace


def detectable_effect(
    release: Release,
    asked: Statistic | RandomBit,
    threshold: int | None,
    alpha: float,
    target: float,
    replicates: int,
    null: NullModel | None = None,
) -> DetectableEffect:
    """Return the smallest effect at which the test of this release has power `target`."""
    sample = release.sample
    sampler, start, most = _family(sample, null)
    effect = simulation.detectable(
        simulation.chance(asked, _law(release), threshold),
        sampler,
        target,
        start=start,
        most=most,
        items=len(sample.items),
        label=asked.name,
        replicates=replicates,
    )
    if effect is None:
        return DetectableEffect(target, alpha, None, None, None)
    if sample.kind == "choices":
        return DetectableEffect(target, alpha, None, None, effect)
    model, distance = _alternative(len(sample.items), effect, null)
    ahead = float(model.pair_probability(0, len(sample.items) - 1))
    return DetectableEffect(target, alpha, model.phi, ahead, distance)


def _alternative(m: int, effect: float, null: NullModel | None) -> tuple[Mallows, float]:
    """Return the Mallows model of an effect, its centre in order, and its distance from H0."""
    if null is None or not null.center:
        model = Mallows.from_theta(m, effect)
        return model, model.total_variation("uniform")
    model = Mallows.from_theta(m, null.theta * (1.0 - effect))
    return model, model.total_variation(Mallows.from_theta(m, null.theta))


def power_curve(
    release: Release,
    asked: Statistic | RandomBit,
    threshold: int | None,
    alpha: float,
    points: int,
    replicates: int,
    null: NullModel | None = None,
) -> pd.DataFrame:
    """Return the power over a range of effects, from none to what is detected 99 times in 100."""
    sample = release.sample
    sampler, start, most = _family(sample, null)
    reject = simulation.chance(asked, _law(release), threshold)
    m, label = len(sample.items), asked.name
    widest = simulation.detectable(
        reject, sampler, 0.99, start=start, most=most, items=m, label=label, replicates=40
    )
    effects = np.linspace(0.0, most if widest is None else widest, points)
    rows = [
        simulation.power(
            reject, sampler, float(effect), items=m, label=label, replicates=replicates
        )
        for effect in effects
    ]
    frame = pd.DataFrame(rows, columns=["power", "std err"])
    if sample.kind == "rankings":
        models = [_alternative(m, float(effect), null) for effect in effects]
        frame.insert(0, "phi", [model.phi for model, _ in models])
        frame.insert(1, "total_variation", [distance for _, distance in models])
    else:
        frame.insert(0, "total_variation", effects)
    return frame
