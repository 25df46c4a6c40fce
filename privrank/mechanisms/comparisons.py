"""From sensitive counts to a release: spend, then draw.

All noise was fixed from public numbers before (:mod:`privrank.plans.calibration`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from privrank.bradley_terry.dependence import contrast_directions, expected_answers
from privrank.bradley_terry.estimate import estimate, response
from privrank.bradley_terry.fit import Solver
from privrank.bradley_terry.linear import check_identified
from privrank.bradley_terry.paircounts import check_connected, halves
from privrank.bradley_terry.score import score_equations
from privrank.distributions.links import Link
from privrank.encode.encoded import Encoded
from privrank.mechanisms.objective import draw_worths
from privrank.mechanisms.spend import Drawn, draw, released
from privrank.mechanisms.tallies import (
    bounded,
    largest_design_effect,
    met,
    pair_moments,
    round_directions,
    round_expected,
    same_half,
    second_moments,
    statistic,
    units,
    wins_met,
)
from privrank.privacy.budget import Ledger
from privrank.privacy.draws import draw_permutation
from privrank.release import names
from privrank.release.plan import Perturbation, Plan
from privrank.release.release import Release, fit_error_guard
from privrank.release.survey import Design
from privrank.util.arrays import IntArray
from privrank.util.checks import Rng

_SECOND_STAGE = {names.DEPENDENCE, names.OPPONENTS}
"""Parts that are measured by the help of the others."""


def release_comparisons(
    encoded: Encoded,
    plan: Plan,
    *,
    link: Link,
    solver: Solver,
    reader: str,
    budget: Ledger | None,
    rng: Rng,
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
    reader : str
        The call that reads a release, for the message of a second stage that failed.
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Raises
    ------
    BudgetExceeded, ValueError
        Before anything is spent; only a non-private run has looked at the counts by then.
    FitError
        If the second stage fails: holds the first, a release of its own (:func:`first_stage`).

    Notes
    -----
    **Privacy.** What is released, and by which noise, is the plan's
    (:func:`plan_comparisons`); it is spent before a count is read. Rows beyond the bounds are left
    out by a secret draw then (:func:`privrank.mechanisms.tallies.bounded`). Groups of respondents
    have independent noise each (:mod:`privrank.privacy.netnoise`).
    """
    design, exact = encoded.design, math.isinf(plan.epsilon)
    if exact and (budget is None or math.isinf(budget.epsilon)):
        # a graph that falls apart is refused before it is paid for; a finite budget refuses it all
        encoded = bounded(encoded, rng)
        design = _observed(
            encoded, always=names.MOMENTS[0] in plan.parts or plan.mechanism == names.WINS
        )

    def drawn() -> Drawn:
        return _drawn(bounded(encoded, rng), plan, link, solver, reader, rng)

    return released(plan, design, drawn, budget=budget, rng=rng, link=link)


def _drawn(
    encoded: Encoded, plan: Plan, link: Link, solver: Solver, reader: str, rng: Rng
) -> Drawn:
    """Draw every part of a plan but those of the second stage, measured by the help of these."""
    items, exact = len(encoded.design.items), math.isinf(plan.epsilon)
    values: dict[str, IntArray] = {}
    if names.WORTHS in plan.parts:
        values[names.WORTHS] = draw_worths(encoded, Perturbation.of(plan), link, solver, rng)
    later = _SECOND_STAGE & plan.parts.keys()
    moments = {*names.MOMENTS, *names.TIE_MOMENTS, names.BY_PAIR}
    for name in sorted(plan.parts.keys() - {names.WORTHS, *later, *moments}):
        if name == names.WINS and exact:
            values[name] = wins_met(encoded).ravel()
            continue
        counts = statistic(encoded, name)
        # every group of respondents has noise of its own
        groups = counts.reshape(-1, items) if name == names.NET else [counts]
        values[name] = np.concatenate([draw(plan.parts[name], group, rng) for group in groups])
    if names.MOMENTS[0] in plan.parts:
        values |= second_moments(encoded)

    def second_stage(first: Release) -> Release:
        if names.OPPONENTS in later:
            first = _with_opponents(encoded, first, rng)
        return _with_dependence(encoded, first, rng) if names.DEPENDENCE in later else first

    def then(first: Release) -> Release:
        return fit_error_guard(partial(second_stage, first), first_stage(first), reader)

    return Drawn(values, draw_permutation(items, rng), then=then if later else None)


def first_stage(release: Release) -> Release:
    """Return a release without its second stage, at the epsilon of the parts that it holds.

    Its fit takes the answers of a respondent as independent, as with ``dependence="none"``.

    Notes
    -----
    **Privacy.** The parts are private at their own shares of epsilon, whose sum is the plan's less
    that of the second stage; of zero-concentrated privacy that one had a^2 / 2 at its share a.
    """
    plan = release.plan
    parts = {name: part for name, part in plan.parts.items() if name not in _SECOND_STAGE}
    settings = {name: value for name, value in plan.settings.items() if name != names.DEPENDENCE}
    first = replace(plan, parts=parts, settings=settings)
    spent = [plan.parts[name].epsilon for name in _SECOND_STAGE & plan.parts.keys()]
    if math.isfinite(sum(spent)):
        rho = None if plan.rho is None else plan.rho - sum(0.5 * part**2 for part in spent)
        first = replace(first, epsilon=plan.epsilon - sum(spent), rho=rho)
    return replace(release, plan=first)


def _with_opponents(encoded: Encoded, release: Release, rng: Rng) -> Release:
    """Add how often items of one half of the released order met, rather than items of both halves.

    Notes
    -----
    **Privacy.** The halves are computed from what is released already, and the statistic has its
    sensitivity whatever these are (:func:`privrank.mechanisms.tallies.same_half`).
    """
    exact = np.array([same_half(encoded, halves(release))])
    drawn = draw(release.plan.parts[names.OPPONENTS], exact, rng)
    return replace(release, values={**release.values, names.OPPONENTS: drawn})


def _with_dependence(encoded: Encoded, release: Release, rng: Rng) -> Release:
    """Add what is released of the dependence of respondents' answers.

    Notes
    -----
    **Privacy.** Contrasts and expected answers are computed from what is released already and from
    public facts, and the statistics have their sensitivity whatever these are
    (:func:`privrank.mechanisms.tallies.largest_design_effect`,
    :func:`privrank.mechanisms.tallies.pair_moments`). Their noise and share of epsilon were
    planned, so that both stages compose.
    """
    part, findings = release.plan.parts[names.DEPENDENCE], dict(release.found)
    pairs, varied = release.plan.settings[names.DEPENDENCE] == "pairs", release.design.varied
    if pairs and not varied:
        exact = pair_moments(encoded)
    else:
        equations = score_equations(release)
        fitted = estimate(equations, release)
        b = fitted.coefficients
        answers, ties = expected_answers(release, b) if varied else (None, None)
        expected = round_expected(release.design, answers, ties)
    if pairs and varied:
        exact = pair_moments(encoded, expected)
        findings[names.RESIDUAL] = expected.farthest / expected.steps
    elif not pairs:
        directions = contrast_directions(equations, release, b, response(equations, fitted))
        contrasts = round_directions(release.design, directions, expected)
        exact = np.array([largest_design_effect(encoded, contrasts, expected)])
        findings[names.LARGEST] = float(directions.others * contrasts.most)
        findings[names.CEILING] = float(directions.others * contrasts.ceiling)
        if release.design.davidson:
            findings[names.TIE_FLOOR] = float(contrasts.tie_floor)
    values = {**release.values, names.DEPENDENCE: draw(part, exact, rng)}
    return replace(release, values=values, found=findings)


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
