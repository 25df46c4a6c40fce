"""From sensitive counts to a release: spend, then draw.

Every mechanism follows the same three steps: fix all noise laws from public numbers, reserve the
budget, and only then read the counts and draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from privrank.budget import Budget, check_budget, pure_epsilon, split
from privrank.design import Design, PairCounts
from privrank.encode.comparisons import Encoded
from privrank.noise import DiscreteLaplace, draw_cells, draw_permutation, source_of
from privrank.optim import UNIT_ROUNDOFF, Solver, fit_ridge
from privrank.paircounts import check_connected
from privrank.release import (
    DESIGN_EFFECT,
    MOMENTS,
    NET,
    PAIR_COUNTS,
    WINS,
    WORTHS,
    Mechanism,
    Part,
    Release,
)
from privrank.sensitivity import objective_scale

__all__ = ["DEFAULT_SHARES", "OUTPUT", "Plan", "release_comparisons"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

OUTPUT = "output"

DEFAULT_SHARES = {DESIGN_EFFECT: 0.10, PAIR_COUNTS: 0.30, OUTPUT: 0.01}
"""Default shares of epsilon for the side releases of a fit."""

_WORTHS_SHARES = {WORTHS, OUTPUT}

LEAST_RIDGE = 1 / 200
"""Least ridge of objective perturbation, over its noise scale."""

OUTPUT_STEP = 2.0**-30
"""Grid on which objective perturbation publishes its worths."""


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
    """

    mechanism: Mechanism
    shares: Mapping[str, float] = field(default_factory=dict)
    gamma: float = 0.0
    cluster: bool = False


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
    covered by :func:`_draw_worths`.
    """
    design = encoded.design
    main = WORTHS if plan.mechanism == "objective perturbation" else plan.mechanism
    epsilons = split(pure_epsilon(epsilon, delta), dict(plan.shares), main)
    perturbation = _perturbation(design, plan.gamma, epsilons) if main == WORTHS else None
    laws = {name: _law(design, name, epsilons[name]) for name in epsilons.keys() - _WORTHS_SHARES}
    check_budget(budget)
    if budget is not None:
        budget.reserve(
            f"{by}: {plan.mechanism}", epsilon, delta, unit=design.unit, max_rows=design.max_rows
        )

    if math.isinf(epsilon):
        design = _observed(encoded, cluster=plan.cluster)
    parts: dict[str, Part] = {}
    constants: dict[str, float] = {}
    if perturbation is not None:
        parts[WORTHS] = _draw_worths(encoded, perturbation, solver, rng)
        constants = {"lambda": perturbation.scale, "gamma": perturbation.gamma}
    for name in sorted(laws):
        sensitivity, law = laws[name]
        noisy = law.draw(_statistic(encoded, name), rng)
        parts[name] = Part(noisy, _step(design, name), law, sensitivity, epsilons[name])
    if plan.cluster and math.isinf(epsilon):
        parts |= _moments(encoded)
    return Release(
        mechanism=plan.mechanism,
        survey=design,
        epsilon=epsilon,
        delta=delta,
        source=source_of(rng, epsilon),
        parts=parts,
        tie_break=draw_permutation(len(design.items), rng),
        constants=constants,
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


def _observed(encoded: Encoded, *, cluster: bool) -> Design:
    """Return the design of a non-private run: who met whom is observed, unless it was declared."""
    design = encoded.design
    if design.pairs is not None and design.pairs.origin == "declared" and not cluster:
        return design
    pairs = _met(encoded)
    check_connected(pairs, design.items)
    return replace(design, pairs=pairs)


def _met(encoded: Encoded) -> PairCounts:
    first, second, count, _ = encoded._pairs
    met = count > 0
    return PairCounts(first[met], second[met], count[met], "observed")


def _net(encoded: Encoded) -> IntArray:
    first, second, _, net = encoded._pairs
    m = len(encoded.design.items)
    total = np.bincount(first, net, minlength=m) - np.bincount(second, net, minlength=m)
    return total.astype(np.int64)


def _statistic(encoded: Encoded, name: str) -> IntArray:
    """Return the exact integer statistic of a part; sensitive."""
    design = encoded.design
    m = len(design.items)
    if name == NET:
        return _net(encoded)
    if name == DESIGN_EFFECT:
        return _spread(encoded)
    first, second, count, net = encoded._pairs
    # position of pair (i, j), i < j, among all pairs in lexicographic order
    place = first * (2 * m - first - 1) // 2 + second - first - 1
    pairs = m * (m - 1) // 2
    if name == PAIR_COUNTS:
        table = np.zeros(pairs, dtype=np.int64)
        table[place] = count
        return table
    cells = np.zeros((2, pairs), dtype=np.int64)
    cells[0, place], cells[1, place] = count + net, count - net
    return (cells if design.ties else cells // 2).ravel()


def _spread(encoded: Encoded) -> IntArray:
    """Return the sum over respondents and items of the squared net wins."""
    if encoded._answers is None:
        raise ValueError("the design effect needs respondents: name them with respondent=.")
    first, second, _, _ = encoded._pairs
    person, pair, _, net = encoded._answers
    m = len(encoded.design.items)
    cell = np.concatenate((person * m + first[pair], person * m + second[pair]))
    _, place = np.unique(cell, return_inverse=True)
    by_cell = np.bincount(place, np.concatenate((net, -net)))
    return np.array([by_cell @ by_cell], dtype=np.float64).astype(np.int64)


def _moments(encoded: Encoded) -> dict[str, Part]:
    """Return the non-private second moments over respondents of answers and counts by pair."""
    from scipy.sparse import csr_array

    if encoded._answers is None:
        raise ValueError("cluster-robust errors need respondents: name them with respondent=.")
    person, pair, count, net = encoded._answers
    met = encoded._pairs[2] > 0
    shape = (int(person.max()) + 1, len(met))
    answers = csr_array((net, (person, pair)), shape=shape)[:, met]
    counts = csr_array((count, (person, pair)), shape=shape)[:, met]
    products = (answers.T @ answers, answers.T @ counts, counts.T @ counts)
    return {
        name: Part(product.toarray().ravel(), 1.0, DiscreteLaplace(0.0), 0, math.inf)
        for name, product in zip(MOMENTS, products, strict=True)
    }


@dataclass(frozen=True, slots=True)
class _Perturbation:
    """Public numbers of one objective perturbation."""

    gamma: float
    scale: float
    cell: float
    tolerance: float
    sensitivity: int
    law: DiscreteLaplace
    epsilon: float


def _perturbation(design: Design, gamma: float, epsilons: Mapping[str, float]) -> _Perturbation:
    """Fix the noise of objective perturbation from public numbers.

    The tolerance of the minimiser is a few times the largest rounding error of a gradient that any
    data set of this size can show: that of its sums, and that of a worth of size lambda / gamma
    stored in double precision. A ridge so small that the latter would matter is refused.
    """
    spent = epsilons[WORTHS] + epsilons[OUTPUT]
    if math.isinf(spent):
        return _Perturbation(gamma, 0.0, 0.0, 0.0, 0, DiscreteLaplace(0.0), spent)
    m = len(design.items)
    scale = objective_scale(design.reach, gamma, epsilons[WORTHS])
    if math.isinf(scale):
        raise ValueError(
            f"penalty {gamma:g} is too small for objective perturbation at this epsilon: use "
            f"penalty='auto', a larger penalty or method='counts'."
        )
    if gamma < LEAST_RIDGE * scale:
        raise ValueError(
            f"penalty {gamma:g} is too small for objective perturbation with noise of scale "
            f"{scale:.3g}: use penalty='auto', a larger penalty or method='counts'."
        )
    answers = design.nobs * design.reach.effective_rows
    sums = (m + 8) * (2.0 * answers + 50.0 * m * scale)
    spacing = 50.0 * math.sqrt(m) * answers * (1.0 + scale / gamma)
    worst = UNIT_ROUNDOFF * (sums + spacing)
    tolerance = max(1e-8, 8.0 * worst)
    cell = 2.0 ** (math.floor(math.log2(scale)) - 34)
    beta = tolerance + 0.5 * math.sqrt(m) * cell
    sensitivity = math.ceil(2.0 * math.sqrt(m) * beta / (gamma * OUTPUT_STEP)) + m
    law = DiscreteLaplace.calibrate(sensitivity, epsilons[OUTPUT])
    return _Perturbation(gamma, scale, cell, tolerance, sensitivity, law, spent)


def _draw_worths(
    encoded: Encoded, noise: _Perturbation, solver: Solver, rng: np.random.Generator | None
) -> Part:
    """Minimise the perturbed likelihood and publish the minimiser on a grid.

    Notes
    -----
    **Privacy.** Let theta be the exact minimiser of
    L(theta) + gamma |theta|^2 / 2 + w'theta, w Laplace(lambda): it is private at the share of
    ``"worths"`` by :func:`privrank.sensitivity.objective_loss`. What is computed, theta_app, has
    gradient norm at most beta for every data set: the solver's certified tolerance, which counts
    the rounding of the gradient and of its target, plus sqrt(m) cell / 2 because w is known to
    within half a cell. The objective is gamma-strongly
    convex, so |theta_app - theta|_2 <= beta / gamma. Given theta, two neighbours' theta_app
    therefore differ by at most 2 beta / gamma in l2, 2 sqrt(m) beta / gamma in l1, and after
    rounding to the grid by one more step per coordinate. Discrete Laplace noise for that
    sensitivity spends the share of ``"output"``. The tolerance is public; the solver iterates
    until it is certified, however long that takes.

    References
    ----------
    Cai, Chakraborty and Wang (2023), Algorithm 1; the approximate minimiser follows Iyengar et al.
    (2019).
    """
    pairs = _met(encoded)
    net = np.asarray(0.5 * _net(encoded), dtype=np.float64)
    if noise.scale == 0.0:
        theta = fit_ridge(net, pairs, noise.gamma, solver=solver).theta
    else:
        target: FloatArray = net - draw_cells(noise.scale, noise.cell, len(net), rng)
        theta = fit_ridge(
            target, pairs, noise.gamma, solver=solver, tolerance=noise.tolerance
        ).theta
    # clipping to what 64 bits hold brings no two worths further apart
    steps = np.clip(np.rint(theta / OUTPUT_STEP), -(2.0**62), 2.0**62).astype(np.int64)
    return Part(
        noise.law.draw(steps, rng), OUTPUT_STEP, noise.law, noise.sensitivity, noise.epsilon
    )
