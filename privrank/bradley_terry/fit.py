"""Convex fits of a loss of paired comparisons with a ridge, by Newton's method.

Every fit minimises loss(E b) - target'b + b' ridge b / 2. E is the map of a
:class:`privrank.bradley_terry.linear.LinearPredictor`, and the loss is a sum over pairs of
aggregated counts (:class:`privrank.bradley_terry.losses.EdgeLoss`). The score equations are
``E' slope(E b) + ridge b = target``. For a matching loss ``slope = n (F - 1/2)`` and, without
covariates, the target is half the net wins. A log-loss contains the answers itself, and its target
is 0. Objective perturbation subtracts its noise from the target.

All fits use one rule of descent and one stopping rule (:func:`minimise`). Fits are also part of
releases, so the failure of a library routine must not raise an exception here.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg

from privrank.bradley_terry.linear import LinearPredictor, Ridge, ridge_product
from privrank.bradley_terry.losses import EdgeLoss, worths_and_ties
from privrank.distributions.links import LOGIT, UNIT_ROUNDOFF
from privrank.release.survey import PairCounts
from privrank.util.arrays import FloatArray
from privrank.util.solvers import find_root, solve, square_root, with_fallback

Solver = Literal["newton", "lbfgs", "cvxpy"]


DENSE_LIMIT = 500
"""Number of items up to which dense Cholesky is faster than preconditioned conjugate gradients."""

_STEPS = 500
"""Largest number of steps without a certificate; the hardest known fits take about 100."""

_UNRESOLVED = 1e-12
"""Squared length of a step, in standard errors, below which the objective shows no progress."""

_AT_REST = 1e-3
"""Largest change of a predictor with which a fit without a ridge is treated as converged."""


@dataclass(frozen=True, slots=True)
class Objective:
    """The convex objective of a fit and its derivatives; parameters as in :func:`fit_ridge`."""

    target: FloatArray
    linear: LinearPredictor
    ridge: Ridge
    loss: EdgeLoss

    @property
    def penalised(self) -> bool:
        """Whether there is a ridge, without which the minimum may lie at infinity."""
        return bool(np.any(self.ridge))

    def value(self, b: FloatArray) -> float:
        """Return the objective."""
        summed = self.loss.value(self.linear.predict(b))
        return float(summed - self.target @ b + 0.5 * b @ ridge_product(self.ridge, b))

    def gradient(self, b: FloatArray) -> FloatArray:
        """Return its gradient."""
        slopes = self.linear.scores(self.loss.slope(self.linear.predict(b)))
        return slopes + ridge_product(self.ridge, b) - self.target

    def step(self, b: FloatArray, slope: FloatArray, accuracy: float) -> FloatArray | None:
        """Return the step that Newton's method subtracts; None if a direction has no curvature."""
        linear = self.linear
        newton = None
        weights = self.loss.curvature(linear.predict(b))
        right = linear.centred(slope)
        if linear.pairs is not None and linear.items > DENSE_LIMIT:
            newton = self._iterated(linear.pairs, weights, right, accuracy)
        if newton is None or not np.isfinite(newton).all():
            ridge = ridge_product(self.ridge, np.eye(len(b)))
            hessian = linear.filled(linear.information(weights) + ridge)
            newton = solve(hessian, right)
            if not np.isfinite(newton).all():
                if not self.penalised:
                    return None
                # a certificate must continue: any positive definite matrix gives a descent
                diagonal = np.diag(hessian)
                more = np.maximum(diagonal, UNIT_ROUNDOFF * diagonal.max())
                newton = solve(hessian + np.diag(more), right)
        newton = linear.centred(newton)
        if linear.pairs is None or not self.penalised:
            return newton
        # the curvature along constant worths is the ridge alone, however small it is
        return np.asarray(newton + slope.mean() / self.ridge)

    def _iterated(
        self, pairs: PairCounts, weights: FloatArray, right: FloatArray, accuracy: float
    ) -> FloatArray:
        """Solve for a step of worths by conjugate gradients; NaN if they fail."""
        m = len(right)
        diagonal = self.linear.sizes(weights) + self.ridge
        # pairs are sorted by their first item, so the upper triangle needs no sorting
        starts = np.searchsorted(pairs.first, np.arange(m + 1))
        upper = csr_array((weights, pairs.second, starts), (m, m))
        lower = upper.T
        # the matrix is the Laplacian and the ridge, and is never formed
        system = LinearOperator(
            (m, m), matvec=lambda x: diagonal * x - upper @ x - lower @ x, dtype=np.float64
        )
        scale = diags_array(1.0 / np.maximum(diagonal, np.finfo(float).tiny))
        step, failed = with_fallback(
            lambda: cg(system, right, rtol=accuracy, maxiter=10 * m, M=scale),
            lambda: (right, 1),
        )
        return np.full(m, np.nan) if failed else np.asarray(step)

    def with_best_tie(self, b: FloatArray) -> FloatArray:
        """Return coefficients with the best tie parameter for their worths.

        The derivative of the objective by this parameter is N P - T. Here N is the number of
        comparisons, P the mean probability of a tie and T the target in (0, N). The derivative
        changes sign between min |d| / 2 + log(T / N), where P is at most T / N, and
        max |d| / 2 + log(2 N / (N - T)), where 1 - P is at most 1 - T / N.
        """
        total = float(self.loss.size[: len(self.loss.size) // 3].sum())
        target = self.target[-1]
        if not 0.0 < target < total:
            return b
        half = 0.5 * np.abs(worths_and_ties(self.linear.predict(b))[0])
        low = float(half.min()) + math.log(target / total) - 1.0
        high = float(half.max()) + math.log(2.0 * total / (total - target)) + 1.0

        def derivative(tie: float) -> float:
            return float(self.gradient(np.append(b[:-1], tie))[-1])

        return np.append(b[:-1], find_root(derivative, low, high))

    def moved(self, b: FloatArray) -> float:
        """Return the largest predictor, in absolute value."""
        return float(np.abs(self.linear.predict(b)).max())


@dataclass(frozen=True, slots=True)
class Minimum:
    """The last point of a fit, and the l2 norm of the computed gradient at this point.

    `finite` is False if there is no ridge and the minimum lies at infinity. `converged` is True if
    the fit met its stopping rule.
    """

    point: FloatArray
    gradient_norm: float
    finite: bool = True
    converged: bool = True


def minimise(
    problem: Objective,
    start: FloatArray,
    tolerance: float | None = None,
    settle: Callable[[FloatArray], FloatArray] | None = None,
) -> Minimum:
    """Minimise by damped Newton steps, which converge for every convex objective.

    A `tolerance` requires a certificate: steps continue without limit until the computed gradient
    norm plus its rounding bound is at most `tolerance`. Without it, steps continue to the accuracy
    of double precision. If `settle` is given, every point is replaced by ``settle(point)``, at
    which the objective must not be larger.

    Notes
    -----
    **Descent.** The length of a step is halved until the objective falls by a fraction of the
    decrease that the slope predicts, or the gradient norm falls by 10%. The length of a step in
    standard errors is the square root of gradient'step. The objective shows no progress if a step
    is shorter than a millionth of a standard error; the gradient alone then decides. Curvatures can
    underflow if a distribution has light tails. A ridge keeps the step finite.

    **End.** Without a certificate the fit ends if the gradient is within its rounding bound. It
    also ends if no length of a step is a descent and the step is shorter than a millionth of a
    standard error. Without a ridge the gradient also vanishes on the way to infinity. The minimum
    is then finite if the last step would no longer move any predictor.
    """
    x = start if settle is None else settle(start)
    gradient = problem.gradient(x)
    bound = problem.linear.rounding(problem.target, problem.loss, problem.ridge)
    norm = float(np.linalg.norm(gradient))
    start_norm = max(norm, 1e-300)
    certified = tolerance is not None
    taken = 0
    while certified or taken < _STEPS:
        error = bound(x)
        done = norm <= error if tolerance is None else norm + error <= tolerance
        if done and problem.penalised:
            return Minimum(x, norm)
        step = problem.step(x, gradient, min(1e-3, max(norm / start_norm, 1e-10)))
        if step is None:
            return Minimum(x, norm, finite=False)
        # without a ridge the gradient also vanishes on the way to infinity
        at_rest = problem.penalised or problem.moved(step) <= _AT_REST
        if done and at_rest:
            return Minimum(x, norm)
        # halve the step until the gradient becomes shorter, or the objective falls
        slope = float(gradient @ step)
        length = 1.0
        resolved = certified or slope > _UNRESOLVED
        while True:
            trial = x - length * step
            trial = trial if settle is None else settle(trial)
            trial_gradient = problem.gradient(trial)
            trial_norm = float(np.linalg.norm(trial_gradient))
            if trial_norm <= 0.9 * norm:
                break
            if resolved and problem.value(trial) <= problem.value(x) - 1e-4 * length * slope:
                break
            length *= 0.5
            if length < 1e-10:
                break
        if length < 1e-10 and not certified:
            return Minimum(x, norm, finite=at_rest, converged=slope <= _UNRESOLVED)
        x = trial
        gradient = trial_gradient
        norm = trial_norm
        taken += 1
        if not problem.penalised and problem.moved(x) > problem.loss.far:
            return Minimum(x, norm, finite=False)
    return Minimum(x, norm, converged=False)


def fit_ridge(
    target: FloatArray,
    linear: LinearPredictor,
    ridge: Ridge,
    loss: EdgeLoss,
    *,
    solver: Solver = "newton",
    tolerance: float | None = None,
    start: FloatArray | None = None,
) -> Minimum:
    """Minimise a loss of paired comparisons with a ridge.

    Parameters
    ----------
    target : ndarray, shape (p,)
        Right-hand side of the score equations. Without a ridge the entries of worths must sum to 0.
    linear : LinearPredictor
        The map from coefficients to the predictor of each edge.
    ridge : float, or ndarray of shape (p, p)
        Positive semi-definite.
    loss : EdgeLoss
        The loss by edge.
    solver : {"newton", "lbfgs", "cvxpy"}
        Newton's method (dense Cholesky, conjugate gradients for many items), or another solver
        whose solution Newton's method then refines. With cvxpy the logistic loss replaces every
        loss.
    tolerance : float or None
        If given, a certificate is required: steps continue until the computed gradient norm plus
        its rounding bound is at most `tolerance`. If None, to the accuracy of double precision.
    start : ndarray, shape (p,), optional
        Starting point of Newton's method; 0 by default.

    Returns
    -------
    Minimum
        Worths sum to sum(target) / ridge, or to 0 without a ridge.
    """
    problem = Objective(target, linear, ridge, loss)
    start = np.zeros(linear.size) if start is None else start
    if solver == "lbfgs":
        start = _fit_lbfgs(problem)
    elif solver == "cvxpy":
        start = _fit_cvxpy(problem)
    # if another solver failed, Newton's method starts from 0
    start = start if np.isfinite(start).all() else np.zeros(linear.size)
    start = start if problem.penalised else linear.centred(start)
    minimum = minimise(problem, start, tolerance)
    if minimum.converged or linear.worths is None:
        return minimum
    # if noise makes worths very different, ties have almost no curvature and Newton's steps in
    # their parameter have no scale: compute this parameter from the worths at every step
    return minimise(problem, start, tolerance, problem.with_best_tie)


def _fit_lbfgs(problem: Objective) -> FloatArray:
    start = np.zeros(problem.linear.size)

    def solved() -> FloatArray:
        far = np.full_like(start, problem.loss.far)
        result = minimize(
            lambda x: (problem.value(x), problem.gradient(x)),
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=None if problem.penalised else np.column_stack((-far, far)),
        )
        return np.asarray(result.x)

    return with_fallback(solved, lambda: start)


def _fit_cvxpy(fit: Objective) -> FloatArray:
    import cvxpy as cp

    linear = fit.linear

    def solved() -> FloatArray:
        # defining the problem can fail as well: some versions refuse a matrix without rows
        b = cp.Variable(linear.size)
        t = linear.matrix @ b
        value = fit.loss.size @ (cp.logistic(t) - 0.5 * t) - fit.target @ b
        shrunk = cp.sum_squares(square_root(ridge_product(fit.ridge, np.eye(linear.size))) @ b)
        problem: Any = cp.Problem(
            cp.Minimize(value + 0.5 * shrunk),
            [] if fit.penalised else [cp.norm_inf(b) <= LOGIT.exact.far],
        )
        problem.solve(solver=cp.CLARABEL)
        return np.asarray(b.value, dtype=np.float64)  # NaN where there is none

    with warnings.catch_warnings():
        # a warning would depend on the data
        warnings.simplefilter("ignore")
        return with_fallback(solved, lambda: np.zeros(linear.size))
