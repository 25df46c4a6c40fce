"""Objective perturbation: worths that minimise a loss with a random linear term."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privrank.design import Design
from privrank.encode.comparisons import Encoded
from privrank.links import UNIT_ROUNDOFF, Link
from privrank.losses import EdgeLoss, Reading, loss_bounds
from privrank.mechanisms.tallies import met, net_wins, wins_met
from privrank.noise import DiscreteLaplace, draw_cells
from privrank.optim import Solver, fit_ridge
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


def perturbation(
    design: Design, gamma: float, epsilons: Mapping[str, float], link: Link
) -> Perturbation:
    """Fix the noise of objective perturbation from public numbers.

    The tolerance of the minimiser is a few times the largest rounding error of a gradient that any
    data set of this size can show: that of its sums, and that of a worth of size lambda / gamma
    stored in double precision. A ridge so small that the latter would matter is refused.
    """
    bounds = loss_bounds(link)
    spent = epsilons[WORTHS] + epsilons[OUTPUT]
    if math.isinf(spent):
        return Perturbation(gamma, 0.0, 0.0, 0.0, 0, DiscreteLaplace(0.0), spent)
    m = len(design.items)
    scale = objective_scale(design.reach, gamma, epsilons[WORTHS], bounds)
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
    # both are written for slopes up to 1 and curvatures up to 1/4, those of the logistic loss
    slope, bend = max(1.0, bounds.slope), max(1.0, 4.0 * bounds.curvature)
    errors = m + link.exact.accuracy + (5.0 if bounds.answers_curve else 3.0)
    sums = errors * (2.0 * slope * answers + 50.0 * m * scale)
    spacing = 50.0 * math.sqrt(m) * bend * answers * (slope + scale / gamma)
    worst = UNIT_ROUNDOFF * (sums + spacing)
    tolerance = max(1e-8, 8.0 * worst)
    cell = 2.0 ** (math.floor(math.log2(scale)) - 34)
    beta = tolerance + 0.5 * math.sqrt(m) * cell
    sensitivity = math.ceil(2.0 * math.sqrt(m) * beta / (gamma * OUTPUT_STEP)) + m
    law = DiscreteLaplace.calibrate(sensitivity, epsilons[OUTPUT])
    return Perturbation(gamma, scale, cell, tolerance, sensitivity, law, spent)


def draw_worths(
    encoded: Encoded,
    noise: Perturbation,
    link: Link,
    solver: Solver,
    rng: np.random.Generator | None,
) -> Part:
    """Minimise the perturbed loss and publish the minimiser on a grid.

    The loss is the log-loss of the link, or its matching loss where the log-loss has no bounded
    slope (:func:`privrank.losses.loss_bounds`).

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
    target = np.asarray(0.5 * net_wins(encoded), dtype=np.float64)
    if loss_bounds(link).answers_curve:
        # the answers enter through the loss itself
        won, lost = 0.5 * wins_met(encoded)
        loss, target = EdgeLoss.likelihood(link, won, lost), np.zeros_like(target)
    else:
        loss = EdgeLoss.matching(Reading(link), pairs.count)
    tolerance = None
    if noise.scale > 0.0:
        target = target - draw_cells(noise.scale, noise.cell, len(target), rng)
        tolerance = noise.tolerance
    theta = fit_ridge(
        target, pairs, noise.gamma, loss=loss, solver=solver, tolerance=tolerance
    ).theta
    # clipping to what 64 bits hold brings no two worths further apart
    steps = np.clip(np.rint(theta / OUTPUT_STEP), -(2.0**62), 2.0**62).astype(np.int64)
    return Part(
        noise.law.draw(steps, rng), OUTPUT_STEP, noise.law, noise.sensitivity, noise.epsilon
    )
