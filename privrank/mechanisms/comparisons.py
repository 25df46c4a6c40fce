"""From sensitive counts to a release: spend, then draw.

Every mechanism follows the same three steps: fix all noise distributions from public numbers,
reserve the budget, and only then read the counts and draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.dependence import contrast_directions, expected_answers
from privrank.bradley_terry.estimate import estimate, response
from privrank.bradley_terry.fit import Solver
from privrank.bradley_terry.linear import check_identified
from privrank.bradley_terry.score import score_equations
from privrank.distributions.links import Link
from privrank.encode.encoded import Encoded
from privrank.mechanisms.bounding import bounded
from privrank.mechanisms.dependence import (
    FINE,
    STEPS,
    pair_moments,
    round_directions,
    round_expected,
    strongest,
)
from privrank.mechanisms.objective import Perturbation, draw_worths, perturbation
from privrank.mechanisms.spend import draw, spend
from privrank.mechanisms.tallies import met, second_moments, statistic, units, wins_met
from privrank.plans.choice import OUTPUT, Choice
from privrank.privacy.budget import Ledger, pure_epsilon, split
from privrank.privacy.netnoise import CountNoise, NetNoise, cell_noise, count_noise, net_noise
from privrank.privacy.noise import DiscreteLaplace, draw_permutation, source_of
from privrank.release.connected import check_connected
from privrank.release.names import (
    CEILING,
    DEPENDENCE,
    GROUP_ANSWERS,
    LARGEST,
    MOMENTS,
    NET,
    ORDER_EFFECT,
    PAIR_COUNTS,
    RESIDUAL,
    WINS,
    WORTHS,
)
from privrank.release.plan import QUIET, PartPlan, Plan, Setting
from privrank.release.release import Release
from privrank.release.survey import Design

__all__ = ["plan_comparisons", "release_comparisons"]

IntArray = NDArray[np.int64]

_LARGEST = 2**61
"""Statistics stay below this, which leaves room for noise in 64 bits."""


def plan_comparisons(design: Design, choice: Choice, epsilon: float, delta: float, by: str) -> Plan:
    """Calibrate the noise of all that a fit is going to release, from public numbers.

    Parameters
    ----------
    design : Design
        Public facts of the comparisons.
    choice : Choice
        What to release.
    epsilon, delta : float
        The guarantee of the whole release.
    by : str
        Who spends, for the ledger.

    Raises
    ------
    ValueError
        If the noise cannot be had at these numbers.

    Notes
    -----
    **Privacy.** Unit and neighbours as in `design`: replace one unit. The parts are pure
    differentially private, each at its share of xi = epsilon - log(1 - delta), and compose to xi,
    hence to (epsilon, delta) (:func:`privrank.privacy.budget.pure_epsilon`). With Gaussian noise
    the main part is (its share of epsilon, delta)-private and the others are pure at their shares
    of epsilon, which composes to (epsilon, delta) as well. Pair counts have the noise of
    :func:`privrank.privacy.netnoise.count_noise`, other side parts discrete Laplace noise of scale
    l1 sensitivity / share (:class:`privrank.privacy.sensitivity.Reach`,
    :meth:`privrank.privacy.noise.DiscreteLaplace.calibrate`); the distributions of net wins and of
    the win matrix are those of :func:`privrank.privacy.netnoise.net_noise` and
    :func:`privrank.privacy.netnoise.cell_noise`; the worths of objective perturbation are covered
    by :func:`privrank.mechanisms.objective.draw_worths`. The ledger is told the zero-concentrated
    privacy of all parts too: a^2 / 2 of each pure one at a.
    """
    if math.isinf(epsilon) and design.kind == "private":
        design = replace(design, pairs=None)  # this run takes the counts that were met
    main = WORTHS if choice.mechanism == "objective perturbation" else choice.mechanism
    whole = epsilon if choice.noise == "gaussian" else pure_epsilon(epsilon, delta)
    epsilons = split(whole, dict(choice.shares), main)
    rho = sum(0.5 * share**2 for name, share in epsilons.items() if name != main)
    parts: dict[str, PartPlan] = {}
    settings: dict[str, Setting] = {}
    spent = 0.5 * epsilons[main] ** 2
    for name in sorted(epsilons.keys() - {WORTHS, OUTPUT}):
        noise = _noise(design, name, choice, epsilons[name], delta)
        step = _step(design, name, exact=math.isinf(epsilon)) / noise.fineness
        parts[name] = PartPlan(noise.law, noise.sensitivity, epsilons[name], step, noise.fineness)
        if name == main and noise.rho is not None:
            spent = noise.rho
    _check_range(design, parts)
    if main == WORTHS:
        objective = perturbation(design, choice.gamma, epsilons, choice.link)
        parts[WORTHS], settings = objective.part, objective.settings
    if choice.form == "cluster" and math.isinf(epsilon):
        parts |= {name: PartPlan(QUIET, 0, math.inf) for name in MOMENTS}
    if DEPENDENCE in parts:
        settings[DEPENDENCE] = choice.form
        if choice.form == "worst":
            parts[DEPENDENCE] = replace(parts[DEPENDENCE], step=1.0 / STEPS)
        elif design.varied:
            parts[DEPENDENCE] = replace(parts[DEPENDENCE], step=1.0 / FINE)
    name = choice.mechanism
    return Plan(by, name, name, epsilon, delta, parts, settings, rho + spent)


def release_comparisons(
    encoded: Encoded,
    plan: Plan,
    *,
    link: Link,
    solver: Solver,
    budget: Ledger | None,
    rng: np.random.Generator | None,
) -> Release:
    """Spend the budget and release what `plan` asks for.

    Parameters
    ----------
    encoded : Encoded
        The sensitive counts.
    plan : Plan
        What to release, with its noise.
    link : Link
        Link of the model. What is released depends on it under objective perturbation, and in the
        non-private run, which keeps the wins of every pair met where the link is not the logit.
    solver : {"newton", "lbfgs", "cvxpy"}
        Solver of objective perturbation.
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Raises
    ------
    BudgetExceeded, ValueError
        Before anything is spent; only a non-private run has looked at the counts by then.

    Notes
    -----
    **Privacy.** What is released, and by which noise, is the plan's
    (:func:`plan_comparisons`); it is spent before a count is read. Rows beyond the bounds are left
    out by a secret draw then (:func:`privrank.mechanisms.bounding.bounded`). Groups of respondents
    have independent noise each (:mod:`privrank.privacy.netnoise`).
    """
    design, exact = encoded.design, math.isinf(plan.epsilon)
    moments = MOMENTS[0] in plan.parts
    if exact and (budget is None or math.isinf(budget.epsilon)):
        # a graph that falls apart is refused before it is paid for; a finite budget refuses it all
        encoded = bounded(encoded, rng)
        design = _observed(encoded, always=moments or plan.mechanism == WINS)
    spend(budget, plan, design, rng)
    encoded = bounded(encoded, rng)

    values: dict[str, IntArray] = {}
    if WORTHS in plan.parts:
        values[WORTHS] = draw_worths(encoded, Perturbation.of(plan), link, solver, rng)
    for name in sorted(plan.parts.keys() - {WORTHS, DEPENDENCE, *MOMENTS}):
        if name == WINS and exact:
            values[name] = wins_met(encoded).ravel()
            continue
        counts = statistic(encoded, name)
        # every group of respondents has noise of its own
        groups = counts.reshape(-1, len(design.items)) if name == NET else [counts]
        values[name] = np.concatenate([draw(plan.parts[name], group, rng) for group in groups])
    if moments:
        values |= second_moments(encoded)
    tie_break = draw_permutation(len(design.items), rng)
    release = Release(plan, design, source_of(rng, plan.epsilon), values, tie_break, link=link)
    return _with_dependence(encoded, release, rng) if DEPENDENCE in plan.parts else release


def _with_dependence(
    encoded: Encoded, release: Release, rng: np.random.Generator | None
) -> Release:
    """Add what is released of the dependence of respondents' answers.

    Notes
    -----
    **Privacy.** Contrasts and expected answers are computed from what is released already and from
    public facts, and the statistics have their sensitivity whatever these are
    (:func:`privrank.mechanisms.dependence.strongest`,
    :func:`privrank.mechanisms.dependence.pair_moments`); their noise and share of epsilon were
    planned, so that both stages compose.
    """
    part, found = release.plan.parts[DEPENDENCE], dict(release.found)
    pairs, varied = release.plan.settings[DEPENDENCE] == "pairs", release.design.varied
    if pairs and not varied:
        exact = pair_moments(encoded)
    else:
        equations = score_equations(release)
        fitted = estimate(equations, release)
        b = fitted.coefficients
        answers = expected_answers(release, b) if varied else None
        expected = round_expected(release.design, answers)
    if pairs and varied:
        exact = pair_moments(encoded, expected)
        found[RESIDUAL] = expected.farthest / expected.steps
    elif not pairs:
        directions = contrast_directions(equations, release, b, response(equations, fitted))
        contrasts = round_directions(release.design, directions, expected)
        exact = np.array([strongest(encoded, contrasts, expected)])
        found[LARGEST] = float(directions.others * contrasts.most)
        found[CEILING] = float(directions.others * contrasts.ceiling)
    values = {**release.values, DEPENDENCE: draw(part, exact, rng)}
    return replace(release, values=values, found=found)


def _noise(
    design: Design, name: str, choice: Choice, epsilon: float, delta: float
) -> NetNoise | CountNoise:
    """Return the noise of a part; side releases but pair counts have discrete Laplace noise."""
    reach, law = design.reach, choice.noise
    if name == NET and design.covariates is not None and design.covariates.bounds:
        # who has which numbers is public then, and with it the largest sum of weights
        steps = reach.net_l1 * int(np.abs(design.covariates.basis).sum(axis=1).max())
        return NetNoise("laplace", DiscreteLaplace.calibrate(steps, epsilon), 1, steps)
    if name == NET:
        return net_noise(reach, law, epsilon, delta)
    if name == WINS:
        return cell_noise(reach, law, epsilon, delta, ties=design.ties)
    if name == PAIR_COUNTS:
        return count_noise(reach, epsilon)
    moments = reach.second_moments_l1
    if design.varied:
        moments = FINE * reach.convex_moments_l1 + reach.pairs
    sensitivity = {
        DEPENDENCE: STEPS if choice.form == "worst" else moments,
        GROUP_ANSWERS: reach.group_answers_l1,
        ORDER_EFFECT: reach.named_first_l1,
    }[name]
    return NetNoise("laplace", DiscreteLaplace.calibrate(sensitivity, epsilon), 1, sensitivity)


def _check_range(design: Design, parts: Mapping[str, PartPlan]) -> None:
    """Refuse, by public numbers, statistics that could pass 64 bits in their lattice steps."""
    facts, weight = design.covariates, 2
    if facts is not None and facts.bounds:
        weight *= int(np.abs(facts.basis).sum(axis=1).max())
    finest = max((part.fineness for part in parts.values()), default=1)
    if design.nobs * design.reach.effective_rows * weight * finest >= _LARGEST:
        raise ValueError(
            "counts= add up to more comparisons than exact whole numbers allow under this noise: "
            "use a smaller epsilon, noise='laplace' or fewer comparisons."
        )


def _step(design: Design, name: str, *, exact: bool) -> float:
    """Return the lattice step of a part; the non-private run counts wins in halves."""
    if name == NET and design.covariates is not None:
        return design.covariates.step
    return 0.5 if name == WINS and (design.ties or exact) else 1.0


def _observed(encoded: Encoded, *, always: bool) -> Design:
    """Return the design of a non-private run: who met whom is observed, unless it was declared.

    Statistics by pair met need it observed `always`.
    """
    design = encoded.design
    if design.pairs is not None and design.pairs.origin == "declared" and not always:
        return design
    pairs = met(encoded)
    check_connected(pairs, design.items)
    if design.covariates is None:
        return replace(design, pairs=pairs)
    described = replace(design.covariates, units=units(encoded))
    design = replace(design, pairs=pairs, covariates=described)
    check_identified(design)
    return design
