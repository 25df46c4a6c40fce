"""From sensitive counts to a release: spend, then draw.

Every mechanism follows the same three steps: fix all noise laws from public numbers, reserve the
budget, and only then read the counts and draw.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from privrank.bradley_terry.linear import check_identified
from privrank.bradley_terry.optim import Solver
from privrank.encode.comparisons import Encoded
from privrank.mechanisms.objective import draw_worths, perturbation
from privrank.mechanisms.tallies import met, moments, statistic, units, wins_met
from privrank.privacy.budget import Ledger, check_budget, pure_epsilon, split
from privrank.privacy.netnoise import NetNoise, NoiseName, cell_noise, net_noise
from privrank.privacy.noise import DiscreteLaplace, draw_permutation, source_of
from privrank.release.paircounts import check_connected
from privrank.release.plan import OUTPUT, Plan
from privrank.release.release import (
    DESIGN_EFFECT,
    GROUP_SIZES,
    NET,
    ORDER_EFFECT,
    PAIR_COUNTS,
    WINS,
    WORTHS,
    Part,
    Release,
)
from privrank.release.survey import Design

__all__ = ["release_comparisons"]

_WORTHS_SHARES = {WORTHS, OUTPUT}


def release_comparisons(
    encoded: Encoded,
    plan: Plan,
    *,
    epsilon: float,
    delta: float,
    by: str,
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
        What to release.
    epsilon, delta : float
        The guarantee of the whole release.
    by : str
        Who spends, for the ledger.
    solver : {"newton", "lbfgs", "cvxpy"}
        Solver of objective perturbation.
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Returns
    -------
    Release

    Raises
    ------
    BudgetExceeded, ValueError
        Before anything is spent; only a non-private run has looked at the counts by then.

    Notes
    -----
    **Privacy.** Unit and neighbours as in ``encoded.design``: replace one unit. The parts are pure
    differentially private, each at its share of xi = epsilon - log(1 - delta), and compose to xi,
    hence to (epsilon, delta) (:func:`privrank.privacy.budget.pure_epsilon`). With Gaussian noise
    the main part is (its share of epsilon, delta)-private and the others are pure at their shares
    of epsilon, which composes to (epsilon, delta) as well. Side parts have discrete Laplace noise
    of scale l1 sensitivity / share (:class:`privrank.privacy.sensitivity.Reach`,
    :meth:`privrank.privacy.noise.DiscreteLaplace.calibrate`); the laws of net wins and of the win
    matrix are those of :func:`privrank.privacy.netnoise.net_noise` and
    :func:`privrank.privacy.netnoise.cell_noise`; the worths of objective perturbation are covered
    by :func:`privrank.mechanisms.objective.draw_worths`. The ledger is told the zero-concentrated
    privacy of all parts too: a^2 / 2 of each pure one at a.
    """
    design = encoded.design
    main = WORTHS if plan.mechanism == "objective perturbation" else plan.mechanism
    whole = epsilon if plan.noise == "gaussian" else pure_epsilon(epsilon, delta)
    epsilons = split(whole, dict(plan.shares), main)
    noise = perturbation(design, plan.gamma, epsilons, plan.link) if main == WORTHS else None
    laws = {
        name: _noise(design, name, plan.noise, epsilons[name], delta)
        for name in epsilons.keys() - _WORTHS_SHARES
    }
    check_budget(budget)
    if math.isinf(epsilon) and (budget is None or math.isinf(budget.epsilon)):
        # a graph that falls apart is refused before it is paid for; a finite budget refuses it all
        design = _observed(encoded, always=plan.cluster or plan.mechanism == WINS)
    if budget is not None:
        rho = sum(0.5 * share**2 for name, share in epsilons.items() if name != main)
        gaussian = laws[main].rho if main in laws else None
        budget.reserve(
            f"{by}: {plan.mechanism}",
            epsilon,
            delta,
            unit=design.unit,
            max_rows=design.max_rows,
            rho=rho + (0.5 * epsilons[main] ** 2 if gaussian is None else gaussian),
        )

    parts: dict[str, Part] = {}
    constants: dict[str, float] = {}
    if noise is not None:
        parts[WORTHS] = draw_worths(encoded, noise, plan.link, solver, rng)
        constants = {"lambda": noise.scale, "gamma": noise.gamma}
    for name in sorted(laws):
        lattice = laws[name]
        if name == WINS and math.isinf(epsilon):
            exact = wins_met(encoded).ravel()
            parts[name] = Part(exact, 0.5, lattice.law, lattice.sensitivity, math.inf)
            continue
        exact = lattice.fineness * statistic(encoded, name)
        # every group of respondents has noise of its own
        groups = exact.reshape(-1, len(design.items)) if name == NET else [exact]
        noisy = np.concatenate([lattice.law.draw(group, rng) for group in groups])
        step = _step(design, name) / lattice.fineness
        parts[name] = Part(noisy, step, lattice.law, lattice.sensitivity, epsilons[name])
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


def _noise(design: Design, name: str, law: NoiseName, epsilon: float, delta: float) -> NetNoise:
    """Return the noise of a part; side releases have discrete Laplace noise."""
    reach = design.reach
    if name == NET and design.covariates is not None and design.covariates.bounds:
        # who has which numbers is public then, and with it the largest sum of weights
        steps = reach.net_l1 * int(np.abs(design.covariates.basis).sum(axis=1).max())
        return NetNoise("laplace", DiscreteLaplace.calibrate(steps, epsilon), 1, steps)
    if name == NET:
        return net_noise(reach, law, epsilon, delta)
    if name == WINS:
        return cell_noise(reach, law, epsilon, delta, ties=design.ties)
    sensitivity = {
        DESIGN_EFFECT: reach.spread,
        PAIR_COUNTS: reach.pair_counts_l1,
        GROUP_SIZES: reach.group_sizes_l1,
        ORDER_EFFECT: reach.named_first_l1,
    }[name]
    return NetNoise("laplace", DiscreteLaplace.calibrate(sensitivity, epsilon), 1, sensitivity)


def _step(design: Design, name: str) -> float:
    if name == NET and design.covariates is not None:
        return design.covariates.step
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
    if design.covariates is None:
        return replace(design, pairs=pairs)
    described = replace(design.covariates, units=units(encoded))
    design = replace(design, pairs=pairs, covariates=described)
    check_identified(design)
    return design
