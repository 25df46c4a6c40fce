"""Objective perturbation: worths that minimise a loss with a random linear term."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.fit import Solver, fit_ridge
from privrank.bradley_terry.linear import ItemContrasts
from privrank.bradley_terry.losses import EdgeLoss, ScoreFunction, loss_bounds
from privrank.distributions.links import Link
from privrank.encode.encoded import Encoded
from privrank.mechanisms.spend import draw
from privrank.mechanisms.tallies import met, net_wins, wins_met
from privrank.plans.calibration import NEAREST, OUTPUT_STEP
from privrank.privacy.noise import draw_cells
from privrank.release.plan import Perturbation
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.checks import Rng


def draw_worths(
    encoded: Encoded, noise: Perturbation, link: Link, solver: Solver, rng: Rng
) -> IntArray:
    """Minimise the perturbed loss and publish the minimiser on a grid.

    The loss is the log-loss of the link, or its matching loss where the log-loss has no bounded
    slope (:func:`privrank.bradley_terry.losses.loss_bounds`).

    Notes
    -----
    **Privacy.** Let theta be the exact minimiser of L(theta) + gamma |theta|^2 / 2 + w'theta, w
    Laplace(lambda): it is private at the share of ``"worths"`` by
    :func:`privrank.privacy.sensitivity.objective_loss`. What is computed, theta_app, has gradient
    norm at most beta for every data set and every w. Here beta is the solver's certified tolerance,
    which counts all rounding (:func:`certified_worths`), plus sqrt(m) cell / 2 because w is known
    to within half a cell. The objective is gamma-strongly convex, so
    |theta_app - theta|_2 <= beta / gamma. Given theta, two neighbours' theta_app therefore differ
    by at most 2 beta / gamma in l2, 2 sqrt(m) beta / gamma in l1, and after rounding to the grid by
    one more step per coordinate. Discrete Laplace noise for that sensitivity spends the share of
    ``"output"``. The tolerance is public; the solver iterates until it is certified, however long
    that takes. No w is too large for it: neither w nor the worths are cut off before the noise of
    the output has its sensitivity.

    References
    ----------
    Cai, Chakraborty and Wang (2023), Algorithm 1; the approximate minimiser follows Iyengar et al.
    (2019).
    """
    linear = ItemContrasts(met(encoded), len(encoded.design.items))
    target = np.asarray(0.5 * net_wins(encoded), dtype=np.float64)
    if loss_bounds(link).answers_curve:
        # the answers enter through the loss itself
        won, lost = 0.5 * wins_met(encoded)
        loss, target = EdgeLoss.likelihood(link, won, lost), np.zeros_like(target)
    else:
        loss = EdgeLoss.matching(ScoreFunction(link), linear.pairs.count)
    if noise.scale > 0.0:
        drawn = draw_cells(noise.scale, noise.cell, len(target), rng)
        steps = certified_worths(target, drawn, linear, loss, noise, solver)
    else:
        steps = list(_grid(fit_ridge(target, linear, noise.gamma, loss, solver=solver).point))
    # clipping to what 64 bits hold brings no two worths further apart
    inside = np.array([min(max(int(step), -(2**62)), 2**62) for step in steps], dtype=np.int64)
    return draw(noise.part, inside, rng)


def certified_worths(
    target: FloatArray,
    drawn: NDArray[Any],
    linear: ItemContrasts,
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
    linear : ItemContrasts
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
    (:meth:`privrank.bradley_terry.linear.ItemContrasts.rounding`) is at most
    2 u (m + k) (2 G N + gamma m), with N answers and k the accuracy of a slope of the moved loss
    (:meth:`privrank.bradley_terry.losses.EdgeLoss.moved`): w does not enter. The tolerance is four
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
    gamma, far = noise.gamma, loss.far
    # all numbers that depend on the size of the noise are fractions: no rounding until they are
    # small (gaps gathered first, then the centre c taken off in whole grid steps)
    unit = Fraction(gamma) * Fraction(OUTPUT_STEP)
    scores = float(loss.size.sum() + np.abs(target).max())
    moves = _gathered(drawn, Fraction(4.0 * scores + gamma * (loss.straight + 2.0)), unit)
    sought = [
        Fraction(a) - Fraction(b) + unit * move
        for a, b, move in zip(target, drawn, moves, strict=True)
    ]
    rest, moved = np.array([float(number) for number in sought]), loss
    pairs = linear.pairs
    fit = fit_ridge(rest, linear, gamma, loss, solver=solver)
    centre = np.zeros(len(target), dtype=np.int64)
    # the solution is within `radius` of the centre: recentre there until the radius is below
    # NEAREST, where the tolerance of the last fit is certified
    while True:
        error = linear.rounding(rest, moved, gamma)(fit.point)
        radius = ((fit.gradient_norm + error) / gamma + OUTPUT_STEP) / far
        centre = centre + _grid(fit.point)
        rest = np.array([float(b - unit * int(c)) for b, c in zip(sought, centre, strict=True)])
        offset = (centre[pairs.first] - centre[pairs.second]).astype(np.float64) * OUTPUT_STEP
        moved = loss.moved(offset, radius)
        if radius <= NEAREST:
            break
        fit = fit_ridge(rest, linear, gamma, moved)
    fit = fit_ridge(rest, linear, gamma, moved, tolerance=noise.tolerance)
    return [int(step) - move for step, move in zip(centre + _grid(fit.point), moves, strict=True)]


def _gathered(drawn: NDArray[Any], gap: Fraction, unit: Fraction) -> list[int]:
    """Return how many units each number comes nearer to 0 so that gaps among them narrow.

    In the order of the numbers and 0, a gap wider than `gap` becomes one of at least that, and at
    most one unit more; narrower ones stay.
    """
    moves = [0] * len(drawn)
    for sign in (1, -1):
        last, total = Fraction(0), 0
        for size, i in sorted((sign * Fraction(x), i) for i, x in enumerate(drawn) if sign * x > 0):
            total += max(math.floor((size - last - gap) / unit), 0)
            moves[i], last = sign * total, size
    return moves


def _grid(theta: FloatArray) -> NDArray[Any]:
    """Return the nearest grid steps: int64, or Python integers where 61 binary digits are few."""
    steps = np.rint(theta / OUTPUT_STEP)
    if (np.abs(steps) < 2.0**61).all():
        return steps.astype(np.int64)
    return np.array([int(step) for step in steps], dtype=object)
