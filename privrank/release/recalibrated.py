"""The noise of an archived release, calibrated once more from its public facts.

An archive that was changed and given a new check has other numbers than these.
"""

from __future__ import annotations

import math
from typing import Any

from privrank.privacy.accounting import integer_scale, lattice_scale
from privrank.privacy.knorm import SLACK, CubeNoise, PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.privacy.sensitivity import NoiseName, RankingSensitivity
from privrank.release import names
from privrank.release.parts import MAIN, NoiseRequest, plan_parts
from privrank.release.plan import Noise, PartPlan, Plan
from privrank.release.survey import Design, Sample

ROOM = 1e-6
"""Relative room for other versions of the numerics that calibrated the noise."""


_WHOLE_PARTS = (names.ORDER, names.PAIR_COUNTS, names.CONCERNED, names.QUERIES, names.FALLBACK)


_DISTRIBUTIONS: dict[type, NoiseName] = {
    DiscreteLaplace: "laplace",
    DiscreteGaussian: "gaussian",
    ZeroSumLaplace: "zero-sum-laplace",
    PermutohedronNoise: "permutohedron",
}


def close(value: float, other: float) -> bool:
    """Return whether two numbers are equal but for other versions of the numerics."""
    return math.isclose(value, other, rel_tol=ROOM)


def parts_again(plan: Plan, survey: Design | Sample, source: str) -> dict[str, PartPlan]:
    """Return the parts of comparisons as calibration gives them; none of other releases.

    Sensitivities are computed from the public facts, not taken from the archive.
    """
    if isinstance(survey, Sample) or source == "respondents":
        return {}
    epsilons = {name: part.epsilon for name, part in plan.parts.items()}
    main = next((part.noise for name, part in plan.parts.items() if name in MAIN), None)
    distribution = _DISTRIBUTIONS.get(type(main), "laplace")
    form: Any = plan.settings.get(names.DEPENDENCE, "none")
    return plan_parts(survey, NoiseRequest(epsilons, plan.delta, distribution, form))


def step_of(name: str, part: PartPlan, sample: Sample, plan: Plan, source: str) -> float:
    """Return the step that a part of a sample must have; its own where only its maker knows it."""
    if name in (names.PAIRS, names.SCORE) and source != "respondents":
        return 1.0 / plan.number("steps")
    if name == names.TOTALS:
        gaussian = isinstance(part.noise, DiscreteGaussian)
        return (len(sample.items) - 1 if gaussian else 1) / part.sensitivity
    return 1.0 if name in _WHOLE_PARTS else part.step


def rho_of(name: str, part: PartPlan, scale: float, m: int) -> float:
    """Return the zero-concentrated privacy of Gaussian noise on pair counts or Borda totals."""
    ranking = RankingSensitivity(m)
    distance = ranking.pairs_l2 if name == names.PAIRS else ranking.borda_l2
    return 0.5 * (distance / part.step / scale) ** 2


def alike(part: PartPlan, again: PartPlan) -> bool:
    """Return whether a part has the noise and the sensitivity that calibration gives it."""
    return (
        type(again.noise) is type(part.noise)
        and again.sensitivity == part.sensitivity
        and getattr(again.noise, "items", 0) == getattr(part.noise, "items", 0)
        and close(loss_per_step(again.noise), loss_per_step(part.noise))
    )


def loss_per_step(noise: Noise | None) -> float:
    """Return the privacy loss of one lattice step; infinity where there is no noise."""
    if noise is None:
        return math.inf
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
