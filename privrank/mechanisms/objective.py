"""Objective perturbation: worths that minimise a likelihood with a random linear term."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privrank.design import Design
from privrank.encode.comparisons import Encoded
from privrank.mechanisms.tallies import met, net_wins
from privrank.noise import DiscreteLaplace, draw_cells
from privrank.optim import UNIT_ROUNDOFF, Solver, fit_ridge
from privrank.release import WORTHS, Part
from privrank.sensitivity import objective_scale

__all__ = ["LEAST_RIDGE", "OUTPUT", "Perturbation", "draw_worths", "perturbation"]

FloatArray = NDArray[np.float64]

OUTPUT = "output"

LEAST_RIDGE = 1 / 200
"""Least ridge of objective perturbation, over its noise scale."""

OUTPUT_STEP = 2.0**-30
"""Grid on which objective perturbation publishes its worths."""


@dataclass(frozen=True, slots=True)
class Perturbation:
    """Public numbers of one objective perturbation."""

    gamma: float
    scale: float
    cell: float
    tolerance: float
    sensitivity: int
    law: DiscreteLaplace
    epsilon: float


def perturbation(design: Design, gamma: float, epsilons: Mapping[str, float]) -> Perturbation:
    """Fix the noise of objective perturbation from public numbers.

    The tolerance of the minimiser is a few times the largest rounding error of a gradient that any
    data set of this size can show: that of its sums, and that of a worth of size lambda / gamma
    stored in double precision. A ridge so small that the latter would matter is refused.
    """
    spent = epsilons[WORTHS] + epsilons[OUTPUT]
    if math.isinf(spent):
        return Perturbation(gamma, 0.0, 0.0, 0.0, 0, DiscreteLaplace(0.0), spent)
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
    return Perturbation(gamma, scale, cell, tolerance, sensitivity, law, spent)


def draw_worths(
    encoded: Encoded, noise: Perturbation, solver: Solver, rng: np.random.Generator | None
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
    pairs = met(encoded)
    net = np.asarray(0.5 * net_wins(encoded), dtype=np.float64)
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
