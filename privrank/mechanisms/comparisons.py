"""From sensitive counts to a release: spend, then draw.

Every mechanism follows the same three steps: fix all noise laws from public numbers, reserve the
budget, and only then read the counts and draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from privrank.budget import Budget, check_budget, pure_epsilon, split
from privrank.design import Design
from privrank.encode.comparisons import Encoded
from privrank.links import LOGIT, Link
from privrank.mechanisms.objective import OUTPUT, draw_worths, perturbation
from privrank.mechanisms.tallies import met, moments, statistic, wins_met
from privrank.noise import DiscreteLaplace, draw_permutation, source_of
from privrank.optim import Solver
from privrank.paircounts import check_connected
from privrank.release import (
    DESIGN_EFFECT,
    NET,
    PAIR_COUNTS,
    WINS,
    WORTHS,
    Mechanism,
    Part,
    Release,
)

__all__ = ["DEFAULT_SHARES", "Plan", "release_comparisons"]

DEFAULT_SHARES = {DESIGN_EFFECT: 0.10, PAIR_COUNTS: 0.30, OUTPUT: 0.01}
"""Default shares of epsilon for the side releases of a fit."""

_WORTHS_SHARES = {WORTHS, OUTPUT}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a fit is going to release, fixed from public numbers.

    Parameters
    ----------
    mechanism : {"net wins", "win matrix", "objective perturbation"}
        The main release.
    shares : mapping of str to float
        Shares of epsilon of the side releases that are wanted: ``"design_effect"``,
        ``"pair_counts"``, ``"output"``.
    gamma : float
        Ridge of objective perturbation.
    cluster : bool
        Whether the non-private run keeps the moments for cluster-robust errors.
    link : Link
        Link of the model. What is released depends on it under objective perturbation, and in the
        non-private run, which keeps the wins of every pair met where the link is not the logit.
    """

    mechanism: Mechanism
    shares: Mapping[str, float] = field(default_factory=dict)
    gamma: float = 0.0
    cluster: bool = False
    link: Link = LOGIT


def release_comparisons(
    encoded: Encoded,
    plan: Plan,
    *,
    epsilon: float,
    delta: float,
    by: str,
    solver: Solver,
    budget: Budget | None,
    rng: np.random.Generator | None,
) -> Release:
    """Spend the budget and release what `plan` asks for.

    Parameters
    ----------
    encoded : Encoded
        The sensitive counts.
    plan : Plan
        What to release.
    epsilon, delta : float
        The guarantee of the whole release.
    by : str
        Who spends, for the ledger.
    solver : {"newton", "lbfgs", "cvxpy"}
        Solver of objective perturbation.
    budget : Budget or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Returns
    -------
    Release

    Raises
    ------
    BudgetExceeded, ValueError
        Before any count is read.

    Notes
    -----
    **Privacy.** Unit and neighbours as in ``encoded.design``: replace one unit. The parts are
    pure differentially private, each at its share of xi = epsilon - log(1 - delta), and compose to
    xi, hence to (epsilon, delta) (:func:`privrank.budget.pure_epsilon`). Each discrete Laplace part
    has scale l1 sensitivity / share (:class:`privrank.sensitivity.Reach`,
    :meth:`privrank.noise.DiscreteLaplace.calibrate`); the worths of objective perturbation are
    covered by :func:`privrank.mechanisms.objective.draw_worths`.
    """
    design = encoded.design
    main = WORTHS if plan.mechanism == "objective perturbation" else plan.mechanism
    epsilons = split(pure_epsilon(epsilon, delta), dict(plan.shares), main)
    noise = perturbation(design, plan.gamma, epsilons, plan.link) if main == WORTHS else None
    laws = {name: _law(design, name, epsilons[name]) for name in epsilons.keys() - _WORTHS_SHARES}
    check_budget(budget)
    if budget is not None:
        budget.reserve(
            f"{by}: {plan.mechanism}", epsilon, delta, unit=design.unit, max_rows=design.max_rows
        )

    if math.isinf(epsilon):
        design = _observed(encoded, always=plan.cluster or plan.mechanism == WINS)
    parts: dict[str, Part] = {}
    constants: dict[str, float] = {}
    if noise is not None:
        parts[WORTHS] = draw_worths(encoded, noise, plan.link, solver, rng)
        constants = {"lambda": noise.scale, "gamma": noise.gamma}
    for name in sorted(laws):
        sensitivity, law = laws[name]
        if name == WINS and math.isinf(epsilon):
            exact = wins_met(encoded).ravel()
            parts[name] = Part(exact, 0.5, law, sensitivity, math.inf)
            continue
        noisy = law.draw(statistic(encoded, name), rng)
        parts[name] = Part(noisy, _step(design, name), law, sensitivity, epsilons[name])
    if plan.cluster and math.isinf(epsilon):
        parts |= moments(encoded)
    return Release(
        mechanism=plan.mechanism,
        survey=design,
        epsilon=epsilon,
        delta=delta,
        source=source_of(rng, epsilon),
        parts=parts,
        tie_break=draw_permutation(len(design.items), rng),
        constants=constants,
        link=plan.link,
    )


def _law(design: Design, name: str, epsilon: float) -> tuple[int, DiscreteLaplace]:
    """Return the l1 sensitivity of a part, in lattice steps, and its noise law."""
    reach = design.reach
    sensitivity = {
        NET: reach.net_l1,
        WINS: reach.win_matrix_l1(ties=design.ties),
        DESIGN_EFFECT: reach.spread,
        PAIR_COUNTS: reach.pair_counts_l1,
    }[name]
    return sensitivity, DiscreteLaplace.calibrate(sensitivity, epsilon)


def _step(design: Design, name: str) -> float:
    return 0.5 if name == WINS and design.ties else 1.0


def _observed(encoded: Encoded, *, always: bool) -> Design:
    """Return the design of a non-private run: who met whom is observed, unless it was declared.

    Statistics by pair met need it observed `always`.
    """
    design = encoded.design
    if design.pairs is not None and design.pairs.origin == "declared" and not always:
        return design
    pairs = met(encoded)
    check_connected(pairs, design.items)
    return replace(design, pairs=pairs)
