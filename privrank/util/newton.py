"""Newton's method for every convex fit: one rule of descent, and one of when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Minimum", "Objective", "minimise"]

FloatArray = NDArray[np.float64]

_STEPS = 500
"""Steps at most of a fit without a certificate; the hardest known take about a hundred."""

_UNRESOLVED = 1e-12
"""Squared length of a step, in standard errors, below which the value resolves no progress."""

_AT_REST = 1e-3
"""Change of a predictor up to which a fit without a ridge is taken to have arrived."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A convex objective of a vector of parameters.

    `rounding` bounds the l2 norm of the error made in computing the gradient. `step` is what
    Newton's method subtracts, given the parameters, the gradient and a relative accuracy; None if a
    direction has no curvature left. `moved` is the largest predictor, in absolute value, at given
    parameters; beyond `far` the minimum of an objective that is not `penalised`, by a ridge, lies
    at infinity.
    """

    value: Callable[[FloatArray], float]
    gradient: Callable[[FloatArray], FloatArray]
    rounding: Callable[[FloatArray], float]
    step: Callable[[FloatArray, FloatArray, float], FloatArray | None]
    moved: Callable[[FloatArray], float]
    far: float
    penalised: bool


@dataclass(frozen=True, slots=True)
class Minimum:
    """Where a fit ended, and the l2 norm of the computed gradient there.

    `finite` is False when there is no ridge and the minimum lies at infinity; `converged` says
    whether the fit ended by its rule.
    """

    point: FloatArray
    gradient_norm: float
    finite: bool = True
    converged: bool = True


def minimise(problem: Objective, start: FloatArray, tolerance: float | None = None) -> Minimum:
    """Minimise by damped Newton steps, which converge for every convex objective.

    A `tolerance` asks for a certificate: iterate until the computed gradient norm plus its rounding
    bound is at most that, however long it takes. Without one, to the accuracy of double precision.

    Notes
    -----
    **Descent.** The length of a step is halved until the objective falls by a part of what the
    slope promises, or the gradient becomes shorter by a tenth. The objective itself no longer
    resolves progress once a step is shorter than a millionth of a standard error, which is the
    square root of gradient'step; from there on the gradient alone decides. Curvatures may
    underflow where a distribution has light tails: a ridge keeps the step finite.

    **End.** Without a certificate, when the gradient is within its rounding bound, or when no
    length of step is a descent and the step is that short. Without a ridge the gradient also
    vanishes on the way to infinity: the minimum is finite if the last step would move no predictor
    any more.
    """
    x, gradient, value = start, problem.gradient(start), problem.value(start)
    norm = float(np.linalg.norm(gradient))
    start_norm = max(norm, 1e-300)
    certified, taken = tolerance is not None, 0
    while certified or taken < _STEPS:
        error = problem.rounding(x)
        done = norm <= error if tolerance is None else norm + error <= tolerance
        if done and problem.penalised:
            return Minimum(x, norm)
        step = problem.step(x, gradient, min(0.1, max(norm / start_norm, 1e-10)))
        if step is None:
            return Minimum(x, norm, finite=False)
        at_rest = problem.penalised or problem.moved(step) <= _AT_REST
        if done and at_rest:
            return Minimum(x, norm)
        slope = float(gradient @ step)
        length = 1.0
        while True:
            trial = x - length * step
            trial_gradient = problem.gradient(trial)
            trial_norm = float(np.linalg.norm(trial_gradient))
            trial_value = problem.value(trial)
            falls = trial_value <= value - 1e-4 * length * slope
            if trial_norm <= 0.9 * norm or (falls and (certified or slope > _UNRESOLVED)):
                break
            length *= 0.5
            if length < 1e-10:
                break
        if length < 1e-10 and not certified:
            return Minimum(x, norm, finite=at_rest, converged=slope <= _UNRESOLVED)
        x, gradient, norm, value = trial, trial_gradient, trial_norm, trial_value
        taken += 1
        if not problem.penalised and problem.moved(x) > problem.far:
            return Minimum(x, norm, finite=False)
    return Minimum(x, norm, converged=False)
