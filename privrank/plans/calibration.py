"""Calibration of the noise of a fit of comparisons, from public numbers.

A :class:`privrank.plans.choice.Choice` states what a fit releases. This module assigns each part
the distribution of its noise, before any sensitive data are read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from privrank.bradley_terry.losses import loss_bounds
from privrank.distributions.links import UNIT_ROUNDOFF, Link
from privrank.plans.choice import MIN_RIDGE, OUTPUT, Choice
from privrank.privacy.accounting import pure_epsilon, split
from privrank.privacy.noise import DiscreteLaplace
from privrank.privacy.sensitivity import LOGISTIC, LossBounds, UnitSensitivity, objective_loss
from privrank.release import names
from privrank.release.parts import NoiseRequest, plan_parts
from privrank.release.plan import QUIET, PartPlan, Perturbation, Plan, Setting
from privrank.release.release import Release
from privrank.release.survey import Design
from privrank.util.solvers import bisect

OUTPUT_STEP = 2.0**-30
"""Grid on which objective perturbation publishes its worths."""

NEAREST = 2.0**-7
"""Distance of worths from grid steps, relative to ``far`` of the loss, when they are certified."""

_LARGEST = 2**61
"""Statistics stay below this bound, which leaves a margin for noise in 64 bits."""


def objective_scale(
    sensitivity: UnitSensitivity, gamma: float, epsilon: float, bounds: LossBounds = LOGISTIC
) -> float:
    """Return the smallest noise scale lam at which `gamma` is `epsilon`-private, inf if none.

    Bisection on the decreasing map lam -> loss keeps the private end. Therefore the returned scale
    satisfies ``objective_loss(sensitivity, lam, gamma, bounds) <= epsilon`` as computed.
    """
    if sensitivity.adjacency == "outcome" and not bounds.answers_curve:
        return sensitivity.slope_l1(bounds.slope, bounds.reversal) / epsilon * (1 + 1e-12)
    high = 4.0 * sensitivity.rows * max(1.0, bounds.slope) / epsilon
    for _ in range(200):
        if objective_loss(sensitivity, high, gamma, bounds) <= epsilon:
            break
        high *= 2.0
    else:
        return math.inf

    def short(scale: float) -> bool:
        return not (scale > 0 and objective_loss(sensitivity, scale, gamma, bounds) <= epsilon)

    _, high = bisect(short, 0.0, high, 5000, relative=1e-12)
    return high * (1 + 1e-12)


def perturbation(
    design: Design, gamma: float, epsilons: Mapping[str, float], link: Link
) -> Perturbation:
    """Fix the noise of objective perturbation from public numbers.

    The tolerance of the minimiser is a few times the largest rounding error of a gradient that any
    data set of this size can show, whatever the noise: see :func:`certified_worths`. A ridge is
    refused if it is small relative to the noise, or so small that rounding errors move worths far.
    """
    bounds = loss_bounds(link)
    spent = epsilons[names.WORTHS] + epsilons[OUTPUT]
    if math.isinf(spent):
        return Perturbation(gamma, 0.0, 0.0, 0.0, PartPlan(QUIET, 0, spent, OUTPUT_STEP))
    m = len(design.items)
    scale = objective_scale(design.sensitivity, gamma, epsilons[names.WORTHS], bounds)
    if math.isinf(scale):
        raise ValueError(
            f"penalty {gamma:g} is too small for objective perturbation at this epsilon: use "
            f"penalty='auto', a larger penalty or method='counts'."
        )
    answers = design.nobs * design.sensitivity.effective_rows
    # the logistic loss and the matching losses have slopes up to 1
    slope = max(1.0, bounds.slope)
    errors = m + link.exact.accuracy + (9.0 if bounds.answers_curve else 7.0)
    worst = UNIT_ROUNDOFF * errors * (2.0 * slope * answers + m * gamma)
    if gamma < max(MIN_RIDGE * scale, 8.0 * worst / (NEAREST * link.exact.far)):
        raise ValueError(
            f"penalty {gamma:g} is too small for objective perturbation with noise of scale "
            f"{scale:.3g}: use penalty='auto', a larger penalty or method='counts'."
        )
    tolerance = max(1e-8, 8.0 * worst)
    cell = 2.0 ** (math.floor(math.log2(scale)) - 34)
    beta = tolerance + 0.5 * math.sqrt(m) * cell
    sensitivity = math.ceil(2.0 * math.sqrt(m) * beta / (gamma * OUTPUT_STEP)) + m
    part = PartPlan(
        DiscreteLaplace.calibrate(sensitivity, epsilons[OUTPUT]), sensitivity, spent, OUTPUT_STEP
    )
    return Perturbation(gamma, scale, cell, tolerance, part)


def check_perturbation(release: Release) -> None:
    """Refuse an archived release whose numbers do not match its objective."""
    objective = Perturbation.of(release.plan)
    part = objective.part
    if math.isinf(part.epsilon):
        return
    assert isinstance(part.noise, DiscreteLaplace)
    output = part.sensitivity / part.noise.scale
    shares = {names.WORTHS: part.epsilon - output, OUTPUT: output}
    reference = perturbation(release.design, objective.gamma, shares, release.link)
    numbers, again = (
        (solution.scale, solution.cell, solution.tolerance, solution.part.sensitivity)
        for solution in (objective, reference)
    )
    if part.step != OUTPUT_STEP or not np.allclose(numbers, again, rtol=1e-6, atol=0.0):
        raise ValueError("release must have the noise of its objective.")


def plan_comparisons(design: Design, choice: Choice, epsilon: float, delta: float, by: str) -> Plan:
    """Calibrate the noise of all parts of a fit, from public numbers.

    Parameters
    ----------
    design : Design
        Public facts of the comparisons.
    choice : Choice
        The release that was chosen.
    epsilon, delta : float
        The guarantee of the whole release.
    by : str
        The model that spends, for the ledger.

    Raises
    ------
    ValueError
        If no such noise exists at these numbers.

    Notes
    -----
    **Privacy.** Unit and neighbours as in `design`: replace one unit. The parts are pure
    differentially private, each at its share of xi = epsilon - log(1 - delta), and compose to xi,
    hence to (epsilon, delta) (:func:`privrank.privacy.accounting.pure_epsilon`). With Gaussian
    noise the main part is (its share of epsilon, delta)-private and the others are pure at their
    shares of epsilon, which composes to (epsilon, delta) as well. The noise of each
    part is from :func:`privrank.release.parts.plan_parts`. The worths of objective perturbation
    are covered by :func:`privrank.mechanisms.comparisons.draw_worths`. The ledger gets the
    zero-concentrated privacy of all parts too: a^2 / 2 of each pure one at a. A number of ties
    shares its noise with the net wins (:func:`privrank.privacy.netnoise.tie_noise`): both are one
    pure part.
    """
    if math.isinf(epsilon) and design.kind == "private":
        design = replace(design, pairs=None)  # this run uses the observed counts
    main = main_part(choice)
    request = noise_request(design, choice, epsilon, delta)
    epsilons = request.epsilons
    parts = plan_parts(design, request)
    settings: dict[str, Setting] = {}
    _check_range(design, parts)
    if main == names.WORTHS:
        objective = perturbation(design, choice.gamma, epsilons, choice.link)
        parts[main] = objective.part
        settings = objective.settings
    if names.DEPENDENCE in parts:
        settings[names.DEPENDENCE] = choice.form
    spent = parts[main].rho
    if spent is None:
        spent = 0.5 * (epsilons[main] + epsilons.get(names.TIES, 0.0)) ** 2
    rho = sum(0.5 * share**2 for name, share in epsilons.items() if name not in (main, names.TIES))
    if choice.form == "cluster" and math.isinf(epsilon):
        moments = names.MOMENTS + names.TIE_MOMENTS * design.davidson
        parts |= {name: PartPlan(QUIET, 0, math.inf) for name in (*moments, names.BY_PAIR)}
    return Plan(
        by, choice.mechanism, choice.mechanism, epsilon, delta, parts, settings, rho + spent
    )


def main_part(choice: Choice) -> str:
    """Return the name of the main part of a release."""
    return names.WORTHS if choice.mechanism == "objective perturbation" else choice.mechanism


def noise_request(design: Design, choice: Choice, epsilon: float, delta: float) -> NoiseRequest:
    """Divide epsilon among the parts of a choice, whose noise can then be calibrated.

    Side releases have pure noise. With Gaussian noise delta is spent on the main release.
    """
    whole = epsilon if choice.noise == "gaussian" else pure_epsilon(epsilon, delta)
    main = main_part(choice)
    epsilons = split(whole, dict(choice.shares), main)
    if main == names.NET and design.davidson:
        # the noise of the net wins may also protect the ties
        epsilons.setdefault(names.TIES, 0.0 if math.isfinite(epsilon) else math.inf)
    return NoiseRequest(epsilons, delta, choice.noise, choice.form)


def _check_range(design: Design, parts: Mapping[str, PartPlan]) -> None:
    """Refuse, by public numbers, statistics that could exceed 64 bits in lattice steps."""
    facts = design.covariates
    weight = 2 * facts.weight if facts is not None and facts.bounds else 2
    finest = max((part.fineness for part in parts.values()), default=1)
    if design.nobs * design.sensitivity.effective_rows * weight * finest >= _LARGEST:
        raise ValueError(
            "counts= add up to more comparisons than exact whole numbers allow under this noise: "
            "use a smaller epsilon, noise='laplace' or fewer comparisons."
        )
