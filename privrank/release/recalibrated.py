"""The noise of an archived release, calibrated once more from its public facts.

An archive that was changed and given a new check has other numbers than these.
"""

from __future__ import annotations

import math
from typing import Any

from privrank.privacy.gaussian import integer_scale, lattice_scale
from privrank.privacy.knorm import SLACK, CubeNoise, PermutohedronNoise
from privrank.privacy.netnoise import (
    NoiseName,
    PartNoise,
    ZeroSumLaplace,
    cell_noise,
    count_noise,
    item_noise,
    net_noise,
    side_noise,
    tie_noise,
    weighted_noise,
)
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.privacy.sensitivity import RankingSensitivity
from privrank.release import names
from privrank.release.plan import Noise, PartPlan, Plan
from privrank.release.survey import Design, Sample

ROOM = 1e-6
"""Relative room for other versions of the numerics that calibrated the noise."""


FALLBACK = "fallback"


_WHOLE_PARTS = (names.ORDER, names.PAIR_COUNTS, names.CONCERNED, names.QUERIES, FALLBACK)


_DISTRIBUTIONS: dict[type, Any] = {
    DiscreteLaplace: "laplace",
    DiscreteGaussian: "gaussian",
    ZeroSumLaplace: "zero-sum-laplace",
    PermutohedronNoise: "permutohedron",
}


def close(value: float, other: float) -> bool:
    """Return whether two numbers are equal but for other versions of the numerics."""
    return math.isclose(value, other, rel_tol=ROOM)


def step_of(name: str, part: PartPlan, survey: Design | Sample, plan: Plan, source: str) -> float:
    """Return the step that a part has to have; its own where only its maker knows it."""
    if isinstance(survey, Sample):
        if name in (names.PAIRS, names.SCORE) and source != "respondents":
            return 1.0 / plan.number("steps")
        if name == names.TOTALS:
            gaussian = isinstance(part.noise, DiscreteGaussian)
            return (len(survey.items) - 1 if gaussian else 1) / part.sensitivity
        return 1.0 if name in _WHOLE_PARTS else part.step
    if name == names.WORTHS:
        return part.step
    if name == names.DEPENDENCE and plan.settings[name] == "worst":
        return 1.0 / part.sensitivity
    if name == names.DEPENDENCE and survey.varied:
        # sums of squares of answers less expected ones, rounded by pair
        unit = survey.sensitivity
        ties = survey.davidson
        return unit.moments_l1(ties=ties, expected=True) / (part.sensitivity - unit.pairs - ties)
    if source == "respondents":
        return 1.0
    again = None if source == "none" else noise_again(name, part, survey, plan)
    return survey.step(name, exact=source == "none") / (again.fineness if again else 1)


def distance_of(name: str, part: PartPlan, survey: Design | Sample) -> float:
    """Return how far one unit moves a part with Gaussian noise, in l2 and in lattice steps."""
    if isinstance(survey, Sample):
        ranking = RankingSensitivity(len(survey.items))
        return (ranking.pairs_l2 if name == names.PAIRS else ranking.borda_l2) / part.step
    unit = survey.sensitivity
    ties = bool(survey.ties)
    moved = unit.net_l2 if name == names.NET else unit.win_matrix_l2(ties=ties)
    return moved * survey.step(name, exact=False) / part.step


def fits_nets(part: PartPlan, noise: Noise, plan: Plan, design: Design) -> bool:
    """Whether a number of ties has the noise that goes with that of its net wins."""
    unit = design.sensitivity
    nets = plan.parts[names.NET]
    of_nets = _noise_of_nets(design, _DISTRIBUTIONS[type(nets.noise)], nets.epsilon, ties=True)
    return alike(part, noise, tie_noise(unit, of_nets, nets.epsilon, part.epsilon))


def _noise_of_nets(
    design: Design, distribution: NoiseName, epsilon: float, delta: float = 0.0, *, ties: bool
) -> PartNoise:
    """Return the noise of net wins, with a number of ties or not, from the public facts."""
    facts = design.covariates
    unit = design.sensitivity
    if facts is not None and facts.bounds:
        return weighted_noise(unit, facts.weight, epsilon)
    return net_noise(unit, distribution, epsilon, delta, ties=ties)


def noise_again(name: str, part: PartPlan, design: Design, plan: Plan) -> PartNoise | None:
    """Return the noise that calibration gives a part of comparisons; None for other parts.

    The sensitivity is worked out from the public facts here, not taken from the archive.
    """
    unit = design.sensitivity
    distribution = _DISTRIBUTIONS.get(type(part.noise), "")
    if name == names.NET:
        return _noise_of_nets(
            design, distribution, part.epsilon, plan.delta, ties=names.TIES in plan.parts
        )
    if name == names.WINS:
        return cell_noise(unit, distribution, part.epsilon, plan.delta, ties=bool(design.ties))
    if name == names.SIDES:
        return side_noise(unit, distribution, part.epsilon, ties=bool(design.ties))
    if name == names.ITEM_COUNTS:
        return item_noise(unit, part.epsilon)
    return count_noise(unit, part.epsilon) if name == names.PAIR_COUNTS else None


def alike(part: PartPlan, noise: Noise, again: PartNoise) -> bool:
    """Whether a part has the noise and the sensitivity that calibration gives it."""
    return (
        type(again.distribution) is type(noise)
        and again.sensitivity == part.sensitivity
        and close(loss_per_step(again.distribution), loss_per_step(noise))
    )


def loss_per_step(noise: Noise) -> float:
    """Return the privacy loss of one lattice step; infinity where there is no noise."""
    if isinstance(noise, CubeNoise | PermutohedronNoise):
        return noise.rate + SLACK
    return 1.0 / noise.scale if noise.scale else math.inf


def fits_gaussian(name: str, part: PartPlan, noise: DiscreteGaussian, plan: Plan, m: int) -> bool:
    """Whether pair counts or Borda totals of rankings have the scale that calibration gives."""
    ranking = RankingSensitivity(m)
    steps = plan.number("steps")
    if name == names.PAIRS:
        scale = lattice_scale(part.epsilon, plan.delta, ranking.pairs_l1, part.sensitivity)
        return part.sensitivity == steps and close(noise.scale, scale)
    scale, _ = integer_scale(part.epsilon, plan.delta, steps * ranking.borda_l2, m)
    return close(noise.scale, scale)
