"""From sensitive counts to a release: spend, then draw.

All noise was fixed from public numbers before (:mod:`privrank.plans.choice`). The worths of
objective perturbation, which minimise a loss with a random linear term, are at the end.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from privrank.bradley_terry.dependence import contrast_directions, expected_answers
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.estimate import estimate, response
from privrank.bradley_terry.fit import (
    EdgeLoss,
    Objective,
    ScoreFunction,
    Solver,
    fit_ridge,
    loss_bounds,
)
from privrank.bradley_terry.linear import item_contrasts
from privrank.bradley_terry.paircounts import halves
from privrank.distributions.links import Link
from privrank.encode.encoded import Encoded, EncodedChoices
from privrank.mechanisms.choices import CHOICES, largest_choice_effect
from privrank.mechanisms.spend import Drawn, draw, spend_and_release
from privrank.mechanisms.tallies import (
    STATISTICS,
    largest_design_effect,
    net_wins,
    observed_design,
    observed_moments,
    observed_pairs,
    observed_wins,
    pair_moments,
    round_directions,
    round_expected,
    same_half,
    sample_rows,
)
from privrank.plans.choice import NEAREST, OUTPUT_STEP
from privrank.privacy.budget import Ledger
from privrank.privacy.draws import draw_permutation
from privrank.privacy.noise import draw_cells
from privrank.release import names
from privrank.release.release import Release, fit_error_guard
from privrank.release.survey import PairCounts, Perturbation, Plan
from privrank.util.arrays import AnyArray, FloatArray, IntArray, Rng


def release_comparisons(
    encoded: Encoded | EncodedChoices,
    plan: Plan,
    *,
    link: Link,
    solver: Solver,
    reader: str,
    budget: Ledger | None,
    rng: Rng,
) -> Release:
    """Spend the budget and release the parts of a plan.

    Parameters
    ----------
    encoded : Encoded
        The sensitive counts.
    plan : Plan
        The parts to release, with their noise.
    link : Link
        Link of the model. The release depends on it under objective perturbation, and in the
        non-private run, which keeps the wins of every observed pair if the link is not the logit.
    solver : {"newton", "lbfgs", "cvxpy"}
        Solver of objective perturbation.
    reader : str
        The call that reads a release, for the error message if the second stage fails.
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Raises
    ------
    BudgetExceeded, ValueError
        Before anything is spent; only a non-private run has looked at the counts by then.
    FitError
        If the second stage fails. The error contains the release of the first stage
        (:func:`first_stage`).

    Notes
    -----
    **Privacy.** The plan fixes the released parts and their noise (:func:`plan_comparisons`). Its
    epsilon is spent before a count is read. Then a secret draw omits rows beyond the bounds
    (:func:`privrank.mechanisms.tallies.sample_rows`). Groups of respondents have independent noise
    each (:mod:`privrank.privacy.sensitivity`).
    """
    design = encoded.design
    if (
        isinstance(encoded, Encoded)
        and math.isinf(plan.epsilon)
        and (budget is None or math.isinf(budget.epsilon))
    ):
        # a disconnected graph is refused before epsilon is spent; a finite budget refuses every
        # such run
        encoded = sample_rows(encoded, rng)
        design = observed_design(
            encoded, always=names.MOMENTS[0] in plan.parts or plan.mechanism == names.WINS
        )
    return spend_and_release(
        plan,
        design,
        partial(_drawn, encoded, plan, link, solver, reader, rng),
        budget=budget,
        rng=rng,
        link=link,
    )


def _drawn(
    data: Encoded | EncodedChoices, plan: Plan, link: Link, solver: Solver, reader: str, rng: Rng
) -> Drawn:
    """Draw the parts of the first stage of a plan, and prepare the second stage."""
    of_sets = isinstance(data, EncodedChoices)
    encoded: Any = sample_rows(data, rng) if isinstance(data, Encoded) else data
    statistics: Mapping[str, Callable[[Any], IntArray]] = CHOICES if of_sets else STATISTICS
    items = len(data.design.items)
    values: dict[str, IntArray] = {}
    if names.WORTHS in plan.parts:
        values[names.WORTHS] = draw_worths(encoded, Perturbation.of(plan), link, solver, rng)
    for name in sorted(plan.parts.keys() & statistics.keys()):
        if name == names.WINS and math.isinf(plan.epsilon):
            values[name] = observed_wins(encoded).ravel()
        else:
            counts = statistics[name](encoded)
            # every group of respondents has independent noise
            groups = counts.reshape(-1, items) if name == names.NET else [counts]
            values[name] = np.concatenate([draw(plan.parts[name], group, rng) for group in groups])
    if names.MOMENTS[0] in plan.parts:
        values |= observed_moments(encoded)
    later = [name for name in SECOND_STAGE if name in plan.parts]

    def second_stage(release: Release) -> Release:
        for name in later:
            exact, findings = SECOND_STAGE[name](encoded, release)
            drawn = {name: draw(plan.parts[name], exact, rng)}
            release = replace(
                release, values={**release.values, **drawn}, found={**release.found, **findings}
            )
        return release

    def then(first: Release) -> Release:
        return fit_error_guard(partial(second_stage, first), first_stage(first), reader)

    return Drawn(values, draw_permutation(items, rng), then=then if later else None)


def first_stage(release: Release) -> Release:
    """Return a release without its second stage, at the epsilon of its remaining parts.

    Its fit treats the answers of a respondent as independent (``dependence="none"``).

    Notes
    -----
    **Privacy.** The parts are private at their own shares of epsilon. Their sum is the epsilon of
    the plan minus the shares of the second stage. A second-stage part with the share a has a^2 / 2
    of the zero-concentrated privacy.
    """
    plan = release.plan
    parts = {name: part for name, part in plan.parts.items() if name not in SECOND_STAGE}
    settings = {name: value for name, value in plan.settings.items() if name != names.DEPENDENCE}
    first = replace(plan, parts=parts, settings=settings)
    spent = [plan.parts[name].epsilon for name in SECOND_STAGE.keys() & plan.parts.keys()]
    if math.isfinite(sum(spent)):
        rho = None if plan.rho is None else plan.rho - sum(0.5 * part**2 for part in spent)
        first = replace(first, epsilon=plan.epsilon - sum(spent), rho=rho)
    return replace(release, plan=first)


def _dependence(
    encoded: Encoded | EncodedChoices, release: Release
) -> tuple[IntArray, dict[str, float]]:
    """Return the statistic of the dependence of respondents' answers, and public facts about it.

    Notes
    -----
    **Privacy.** Contrasts and expected answers are computed from what is released already and from
    public facts, and the statistics have their sensitivity whatever these are
    (:func:`privrank.mechanisms.tallies.largest_design_effect`,
    :func:`privrank.mechanisms.tallies.pair_moments`,
    :func:`privrank.mechanisms.choices.largest_choice_effect`). Their noise and share of epsilon
    were planned, so both stages compose.
    """
    if isinstance(encoded, EncodedChoices):
        return largest_choice_effect(encoded, release)
    pairs = release.plan.settings[names.DEPENDENCE] == "pairs"
    varied = release.design.varied
    if pairs and not varied:
        return pair_moments(encoded), {}
    equations = score_equations(release)
    fitted = estimate(equations, release)
    b = fitted.coefficients
    answers, ties = expected_answers(release, b) if varied else (None, None)
    expected = round_expected(release.design, answers, ties)
    if pairs:
        findings = {names.RESIDUAL: expected.farthest / expected.steps}
        return pair_moments(encoded, expected), findings
    directions = contrast_directions(equations, release, b, response(equations, fitted))
    contrasts = round_directions(release.design, directions, expected)
    findings = {
        names.LARGEST: float(directions.others * contrasts.most),
        names.CEILING: float(directions.others * contrasts.ceiling),
    }
    if release.design.davidson:
        findings[names.TIE_FLOOR] = float(contrasts.tie_floor)
    return np.array([largest_design_effect(encoded, contrasts, expected)]), findings


SECOND_STAGE: dict[str, Callable[[Any, Release], tuple[IntArray, dict[str, float]]]] = {
    # the halves of the released order are computed from what is released already
    names.OPPONENTS: lambda encoded, release: (same_half(encoded, halves(release)), {}),
    names.DEPENDENCE: _dependence,
}
"""Functions that measure a part given the parts of the first stage, by name and in order."""


def draw_worths(
    encoded: Encoded, noise: Perturbation, link: Link, solver: Solver, rng: Rng
) -> IntArray:
    """Minimise the perturbed loss and release the minimiser on a grid.

    The loss is the log-loss of the link, or its matching loss where the log-loss has no bounded
    slope (:func:`privrank.bradley_terry.fit.loss_bounds`).

    Notes
    -----
    **Privacy.** Let theta be the exact minimiser of L(theta) + gamma |theta|^2 / 2 + w'theta, w
    Laplace(lambda): it is private at the share of ``"worths"`` by
    :func:`privrank.privacy.sensitivity.objective_loss`. The computed approximation theta_app has
    gradient norm at most beta for every data set and every w. Here beta is the solver's certified
    tolerance, which counts all rounding (:func:`certified_worths`), plus sqrt(m) cell / 2 because w
    is known to within half a cell. The objective is gamma-strongly convex, so |theta_app - theta|_2
    <= beta / gamma. Given theta, two neighbours' theta_app therefore differ by at most 2 beta /
    gamma in l2, 2 sqrt(m) beta / gamma in l1, and after rounding to the grid by one more step per
    coordinate. Discrete Laplace noise for that sensitivity spends the share of ``"output"``. The
    tolerance is public; the solver iterates until it is certified, however long that takes. No w is
    too large for it: neither w nor the worths are cut off before the noise of the output has its
    sensitivity.

    References
    ----------
    Cai, Chakraborty and Wang (2023), Algorithm 1; the approximate minimiser follows Iyengar et al.
    (2019).
    """
    pairs = observed_pairs(encoded)
    target = np.asarray(0.5 * net_wins(encoded), dtype=np.float64)
    if loss_bounds(link).answers_curve:
        # the answers enter through the loss itself
        won, lost = 0.5 * observed_wins(encoded)
        loss = EdgeLoss.likelihood(link, won, lost)
        target = np.zeros_like(target)
    else:
        loss = EdgeLoss.matching(ScoreFunction(link), pairs.count)
    if noise.scale > 0.0:
        drawn = draw_cells(noise.scale, noise.cell, len(target), rng)
        steps = certified_worths(target, drawn, pairs, loss, noise, solver)
    else:
        linear = item_contrasts(pairs, len(target))
        steps = list(_grid(fit_ridge(target, linear, noise.gamma, loss, solver=solver).point))
    # clipping to 64 bits moves no two worths further apart
    inside = np.array([min(max(int(step), -(2**62)), 2**62) for step in steps], dtype=np.int64)
    return draw(noise.part, inside, rng)


def certified_worths(
    target: FloatArray,
    drawn: AnyArray,
    pairs: PairCounts,
    loss: EdgeLoss,
    noise: Perturbation,
    solver: Solver,
) -> list[int]:
    """Return a minimiser of the perturbed loss in grid steps, certified for noise of any size.

    Parameters
    ----------
    target : ndarray, shape (m,)
        Right-hand side of the score equations, without noise.
    drawn : ndarray, shape (m,)
        The noise w: floats or fractions, each exact.
    pairs : PairCounts
        The pairs compared.
    loss : EdgeLoss
        The loss by pair.
    noise : Perturbation
        The ridge, and the tolerance to certify.
    solver : {"newton", "lbfgs", "cvxpy"}
        What finds the first approximation.

    Notes
    -----
    **Privacy.** A gradient computed at theta itself would round gamma theta and w, each by a
    multiple of its size. These sizes have no bound: some |w_i| exceeds 50 lambda with a probability
    of up to m e^-50, which is not 0. So theta is split into c + phi, with c the whole grid steps
    next to it. The right-hand side that is left for phi, target - w - gamma c, is computed without
    rounding and rounded once. At the minimiser it equals slopes plus gamma phi. With |phi_i| at
    most `radius` < 1 every term of item i's score is at most its degree, the bound of its slopes,
    plus gamma, up to the tolerance. So the rounding error
    (:meth:`privrank.bradley_terry.fit.Objective.rounding`) is at most
    2 u (m + k) (2 G N + gamma m), with N answers and k the accuracy of a slope of the moved loss
    (:meth:`privrank.bradley_terry.fit.EdgeLoss.moved`): w does not enter. The tolerance is four
    times that, so a solver can meet it. Worths are rounded to the grid exactly, as c lies on it.

    **Gaps.** Before that w is gathered: gaps in w wider than `gap` are narrowed to about that by
    whole multiples k_i of gamma times a grid step, which the worths are moved by afterwards. At a
    minimiser gamma (theta_j - theta_i) is w_i - w_j plus scores of at most half of what `gap` adds
    to gamma times ``straight``. So the slopes of pairs across such a gap are their limits, before
    and after the move; other differences do not change; and gamma k_i grid steps make up for
    what w_i was moved by. The score equations at the moved worths are the same, term by term.

    **Convergence.** The loss is gamma-strongly convex, so what is left after a fit is at most its
    gradient, as computed and with its rounding error, over gamma. Each centre is closer by 2^-53
    times degrees over gamma, which a refused ridge keeps far below 1. Ordinary noise needs one.
    """
    gamma = noise.gamma
    # all numbers that depend on the size of the noise are fractions: no rounding until they are
    # small (first the gaps are narrowed, then the centre c is subtracted in whole grid steps)
    unit = Fraction(gamma) * Fraction(OUTPUT_STEP)
    scores = float(loss.size.sum() + np.abs(target).max())
    moves = _gathered(drawn, Fraction(4.0 * scores + gamma * (loss.straight + 2.0)), unit)
    sought = [
        Fraction(a) - Fraction(b) + unit * move
        for a, b, move in zip(target, drawn, moves, strict=True)
    ]
    rest = np.array([float(number) for number in sought])
    moved = loss
    linear = item_contrasts(pairs, len(target))
    fit = fit_ridge(rest, linear, gamma, loss, solver=solver)
    centre = np.zeros(len(target), dtype=np.int64)
    # the solution is within `radius` of the centre: recentre there until the radius is below
    # NEAREST, where the tolerance of the last fit is certified
    while True:
        error = Objective(rest, linear, gamma, moved).rounding(fit.point)
        radius = ((fit.gradient_norm + error) / gamma + OUTPUT_STEP) / loss.far
        centre = centre + _grid(fit.point)
        rest = np.array([float(b - unit * int(c)) for b, c in zip(sought, centre, strict=True)])
        offset = (centre[pairs.first] - centre[pairs.second]).astype(np.float64) * OUTPUT_STEP
        moved = loss.moved(offset, radius)
        if radius <= NEAREST:
            break
        fit = fit_ridge(rest, linear, gamma, moved)
    fit = fit_ridge(rest, linear, gamma, moved, tolerance=noise.tolerance)
    return [int(step) - move for step, move in zip(centre + _grid(fit.point), moves, strict=True)]


def _gathered(drawn: AnyArray, gap: Fraction, unit: Fraction) -> list[int]:
    """Return the number of units by which each number moves towards 0 to narrow wide gaps.

    In the order of the numbers and 0, a gap wider than `gap` becomes at least `gap` and
    at most one unit more; narrower gaps stay.
    """
    moves = [0] * len(drawn)
    for sign in (1, -1):
        last = Fraction(0)
        total = 0
        for size, i in sorted((sign * Fraction(x), i) for i, x in enumerate(drawn) if sign * x > 0):
            total += max(math.floor((size - last - gap) / unit), 0)
            moves[i] = sign * total
            last = size
    return moves


def _grid(theta: FloatArray) -> AnyArray:
    """Return the nearest grid steps: int64, or Python integers where 61 binary digits are few."""
    steps = np.rint(theta / OUTPUT_STEP)
    if (np.abs(steps) < 2.0**61).all():
        return steps.astype(np.int64)
    return np.array([int(step) for step in steps], dtype=object)
