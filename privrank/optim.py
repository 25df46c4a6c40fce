"""Convex fits: the ridge Bradley-Terry likelihood on aggregated counts.

In every fit `target` is the right-hand side of the score equations
``sum_j n_ij (F(theta_i - theta_j) - 1/2) + gamma theta_i = target_i`` with F logistic; for counts
it is half the net wins, and objective perturbation subtracts its noise from that.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import LinearOperator, cg

from privrank.design import PairCounts

__all__ = [
    "RidgeFit",
    "Solver",
    "curvature",
    "fit_ridge",
    "laplacian",
    "pull",
    "rounding_bound",
    "win_probability",
]

FloatArray = NDArray[np.float64]

Solver = Literal["newton", "lbfgs", "cvxpy"]

DENSE_LIMIT = 500
"""Items up to which a dense Cholesky factor beats preconditioned conjugate gradients."""

UNIT_ROUNDOFF = 2.0**-53

INFINITE_CONTRAST = 28.0
"""Without a ridge, a contrast this large on a compared pair means a fit running to infinity.

A finite fit has expected losses of at least half a win on each side of any cut; n exp(-28) falls
short of that for every n below 10^11.
"""


@dataclass(frozen=True, slots=True)
class RidgeFit:
    """A minimiser, the l2 norm of its gradient, and whether it exists.

    Parameters
    ----------
    theta : ndarray, shape (m,)
        Worths; they sum to sum(target) / gamma, and to 0 when gamma is 0.
    gradient_norm : float
        Norm of the computed gradient at `theta`.
    finite : bool
        False when gamma is 0 and the maximum lies at infinity.
    """

    theta: FloatArray
    gradient_norm: float
    finite: bool


def pull(theta: FloatArray, pairs: PairCounts) -> FloatArray:
    """Return sum_j n_ij (F(theta_i - theta_j) - 1/2) for each item."""
    half = 0.5 * pairs.count * np.tanh(0.5 * (theta[pairs.first] - theta[pairs.second]))
    m = len(theta)
    up = np.bincount(pairs.first, half, minlength=m)
    return np.asarray(up - np.bincount(pairs.second, half, minlength=m))


def win_probability(theta: FloatArray, pairs: PairCounts) -> FloatArray:
    """Return F(theta_i - theta_j) for each pair."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * (theta[pairs.first] - theta[pairs.second])))


def curvature(theta: FloatArray, pairs: PairCounts) -> FloatArray:
    """Return n F'(theta_i - theta_j) for each pair."""
    odds = np.exp(-np.abs(theta[pairs.first] - theta[pairs.second]))
    return np.asarray(pairs.count * odds / (1.0 + odds) ** 2)


def laplacian(weights: FloatArray, pairs: PairCounts, items: int) -> FloatArray:
    """Return the dense graph Laplacian with these edge weights."""
    matrix = np.zeros((items, items))
    np.subtract.at(matrix, (pairs.first, pairs.second), weights)
    matrix += matrix.T
    matrix[np.diag_indices(items)] -= matrix.sum(axis=1)
    return matrix


def _objective(theta: FloatArray, target: FloatArray, pairs: PairCounts, gamma: float) -> float:
    half = 0.5 * np.abs(theta[pairs.first] - theta[pairs.second])
    # log(2 cosh(t / 2)), written so that no large exponential is formed
    loss = pairs.count @ (half + np.log1p(np.exp(-2.0 * half)))
    return float(loss - target @ theta + 0.5 * gamma * theta @ theta)


def _newton_step(
    gradient: FloatArray,
    weights: FloatArray,
    pairs: PairCounts,
    gamma: float,
    accuracy: float,
) -> FloatArray:
    """Solve (Laplacian + gamma I) step = gradient, in the zero-sum space when gamma is 0."""
    m = len(gradient)
    if m <= DENSE_LIMIT:
        hessian = laplacian(weights, pairs, m)
        hessian[np.diag_indices(m)] += gamma
        if gamma == 0:
            # adds the constant direction, in which the gradient has no part
            hessian += weights.sum() / m**2
        return np.asarray(cho_solve(cho_factor(hessian, check_finite=False), gradient))
    # pairs are sorted by their first item, so the upper triangle needs no sorting
    starts = np.searchsorted(pairs.first, np.arange(m + 1))
    upper = csr_array((weights, pairs.second, starts), (m, m))
    lower = upper.T
    diagonal = np.asarray(upper.sum(axis=0)).ravel() + np.asarray(upper.sum(axis=1)).ravel() + gamma
    scale = 1.0 / np.maximum(diagonal, np.finfo(float).tiny)
    system = LinearOperator(
        (m, m), matvec=lambda x: diagonal * x - upper @ x - lower @ x, dtype=np.float64
    )
    preconditioner = LinearOperator((m, m), matvec=lambda x: scale * x, dtype=np.float64)
    step, _ = cg(system, gradient, rtol=accuracy, maxiter=10 * m, M=preconditioner)
    return np.asarray(step if gamma > 0 else step - step.mean())


def rounding_bound(theta: FloatArray, target: FloatArray, pairs: PairCounts, gamma: float) -> float:
    """Bound the l2 error made in computing the gradient in double precision.

    Each term n (F - 1/2) is off by at most 5 u n (argument, tanh and product; x F'(x) < 1/4), a
    sum of k terms adds k u times the sum of magnitudes; hence u (neighbours + 8) times the
    degree and the magnitudes of the other two terms, per item. The 8 leaves room for the rounding
    of the target and of the norm.
    """
    m = len(theta)
    neighbours = np.bincount(pairs.first, minlength=m) + np.bincount(pairs.second, minlength=m)
    size = pairs.degrees(m) + gamma * np.abs(theta) + np.abs(target)
    return float(UNIT_ROUNDOFF * np.linalg.norm((neighbours + 8) * size))


def fit_ridge(
    target: FloatArray,
    pairs: PairCounts,
    gamma: float,
    *,
    solver: Solver = "newton",
    tolerance: float | None = None,
    start: FloatArray | None = None,
) -> RidgeFit:
    """Minimise the ridge Bradley-Terry objective.

    Parameters
    ----------
    target : ndarray, shape (m,)
        Right-hand side of the score equations; must sum to 0 when `gamma` is 0.
    pairs : PairCounts
        Comparisons per pair.
    gamma : float
        Ridge, at least 0.
    solver : {"newton", "lbfgs", "cvxpy"}
        Newton's method (dense Cholesky, conjugate gradients for many items), or another solver
        whose answer Newton's method then polishes.
    tolerance : float or None
        If given, a certificate: iterate until the computed gradient norm plus its rounding bound
        is at most `tolerance`. If None, to the accuracy of double precision.
    start : ndarray, shape (m,), optional
        Where Newton's method starts; 0 by default.

    Returns
    -------
    RidgeFit
    """
    start = np.zeros(len(target)) if start is None else start
    if solver == "lbfgs":
        start = _fit_lbfgs(target, pairs, gamma)
    elif solver == "cvxpy":
        start = _fit_cvxpy(target, pairs, gamma)
    return _newton(start, target, pairs, gamma, tolerance)


def _newton(
    theta: FloatArray,
    target: FloatArray,
    pairs: PairCounts,
    gamma: float,
    tolerance: float | None,
) -> RidgeFit:
    gradient = pull(theta, pairs) + gamma * theta - target
    norm = float(np.linalg.norm(gradient))
    start_norm = max(norm, 1e-300)
    value = _objective(theta, target, pairs, gamma)
    while True:
        error = rounding_bound(theta, target, pairs, gamma)
        if norm <= error if tolerance is None else norm + error <= tolerance:
            return RidgeFit(theta, norm, True)
        weights = curvature(theta, pairs)
        accuracy = min(0.1, max(norm / start_norm, 1e-10))
        try:
            step = _newton_step(gradient, weights, pairs, gamma, accuracy)
        except LinAlgError:
            if gamma == 0:
                return RidgeFit(theta, norm, False)
            # any positive definite matrix gives a direction of descent; a certificate must go on
            step = _newton_step(gradient, weights, pairs, gamma + float(weights.max()), accuracy)
        slope = float(gradient @ step)
        length = 1.0
        while True:
            trial = theta - length * step
            trial_gradient = pull(trial, pairs) + gamma * trial - target
            trial_norm = float(np.linalg.norm(trial_gradient))
            trial_value = _objective(trial, target, pairs, gamma)
            # close to the minimum the value no longer resolves progress, the gradient does
            if trial_value <= value - 1e-4 * length * slope or trial_norm <= 0.9 * norm:
                break
            length *= 0.5
            if length < 1e-10:
                break
        if length < 1e-10 and tolerance is None:
            return RidgeFit(theta, norm, True)
        theta, gradient, norm, value = trial, trial_gradient, trial_norm, trial_value
        if gamma == 0 and _runs_away(theta, pairs):
            return RidgeFit(theta, norm, False)


def _runs_away(theta: FloatArray, pairs: PairCounts) -> bool:
    return bool(np.abs(theta[pairs.first] - theta[pairs.second]).max() > INFINITE_CONTRAST)


def _fit_lbfgs(target: FloatArray, pairs: PairCounts, gamma: float) -> FloatArray:
    result = minimize(
        lambda x: (
            _objective(x, target, pairs, gamma),
            pull(x, pairs) + gamma * x - target,
        ),
        np.zeros(len(target)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-INFINITE_CONTRAST, INFINITE_CONTRAST)] * len(target) if gamma == 0 else None,
    )
    return np.asarray(result.x if gamma > 0 else result.x - result.x.mean())


def _fit_cvxpy(target: FloatArray, pairs: PairCounts, gamma: float) -> FloatArray:
    import cvxpy as cp

    m, edges = len(target), len(pairs.first)
    rows = np.tile(np.arange(edges), 2)
    columns = np.concatenate((pairs.first, pairs.second))
    signs = np.repeat((1.0, -1.0), edges)
    contrast = coo_array((signs, (rows, columns)), (edges, m)).tocsr()
    theta = cp.Variable(m)
    t = contrast @ theta
    loss = pairs.count @ (cp.logistic(t) - 0.5 * t) - target @ theta
    problem: Any = cp.Problem(
        cp.Minimize(loss + 0.5 * gamma * cp.sum_squares(theta)),
        [cp.norm_inf(theta) <= INFINITE_CONTRAST] if gamma == 0 else [],
    )
    with warnings.catch_warnings(), suppress(cp.SolverError):
        # a complaint would depend on the data; Newton's method finishes the fit from anywhere
        warnings.simplefilter("ignore")
        problem.solve(solver=cp.CLARABEL)
    solution = np.zeros(m) if theta.value is None else np.asarray(theta.value)
    return solution if gamma > 0 else solution - solution.mean()
