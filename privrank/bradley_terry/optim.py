"""Convex fits: a loss of paired comparisons with a ridge, on aggregated counts.

In every fit `target` is the right-hand side of the score equations ``sum_j slope_ij(theta_i -
theta_j) + gamma theta_i = target_i``, where the slopes are those of an
:class:`privrank.bradley_terry.losses.EdgeLoss`. For a matching loss ``slope = n (F - 1/2)`` and the
target is half the net wins; a log-loss holds the answers itself, and its target is 0. Objective
perturbation subtracts its noise from the target.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import LinearOperator, cg

from privrank.bradley_terry.losses import LOGISTIC_READING, EdgeLoss, Reading
from privrank.distributions.links import LOGIT, UNIT_ROUNDOFF
from privrank.release.survey import PairCounts
from privrank.util.newton import Objective, minimise
from privrank.util.solvers import attempt, solve

__all__ = [
    "RidgeFit",
    "Solver",
    "differences",
    "fit_ridge",
    "laplacian",
    "logistic_loss",
    "pull",
    "rounding_bound",
]

FloatArray = NDArray[np.float64]

Solver = Literal["newton", "lbfgs", "cvxpy"]

DENSE_LIMIT = 500
"""Items up to which a dense Cholesky factor beats preconditioned conjugate gradients."""


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
    converged : bool
        Whether the fit ended by the rule of :func:`privrank.util.newton.minimise`.
    """

    theta: FloatArray
    gradient_norm: float
    finite: bool
    converged: bool


def differences(theta: FloatArray, pairs: PairCounts) -> FloatArray:
    """Return theta_i - theta_j for each pair."""
    return np.asarray(theta[pairs.first] - theta[pairs.second])


def pull(theta: FloatArray, pairs: PairCounts, reading: Reading = LOGISTIC_READING) -> FloatArray:
    """Return the mean scores, sum_j n_ij (F(theta_i - theta_j) - 1/2) for each item."""
    return _by_item(pairs.count * reading.pull(differences(theta, pairs)), pairs, len(theta))


def logistic_loss(pairs: PairCounts) -> EdgeLoss:
    """Return the logistic loss of these comparisons, less its linear part."""
    return EdgeLoss.matching(LOGISTIC_READING, pairs.count)


def _by_item(edges: FloatArray, pairs: PairCounts, items: int) -> FloatArray:
    """Add each pair's number to its first item and subtract it from its second."""
    up = np.bincount(pairs.first, edges, minlength=items)
    return np.asarray(up - np.bincount(pairs.second, edges, minlength=items))


def laplacian(weights: FloatArray, pairs: PairCounts, items: int) -> FloatArray:
    """Return the dense graph Laplacian with these edge weights."""
    matrix = np.zeros((items, items))
    np.subtract.at(matrix, (pairs.first, pairs.second), weights)
    matrix += matrix.T
    matrix[np.diag_indices(items)] -= matrix.sum(axis=1)
    return matrix


def _objective(loss: EdgeLoss, target: FloatArray, pairs: PairCounts, gamma: float) -> Objective:
    """Return the objective of a fit with its derivatives."""

    def value(theta: FloatArray) -> float:
        summed = loss.value(differences(theta, pairs))
        return float(summed - target @ theta + 0.5 * gamma * theta @ theta)

    def gradient(theta: FloatArray) -> FloatArray:
        edges = loss.slope(differences(theta, pairs))
        return _by_item(edges, pairs, len(theta)) + gamma * theta - target

    def step(theta: FloatArray, slope: FloatArray, accuracy: float) -> FloatArray | None:
        weights = loss.curvature(differences(theta, pairs))
        found = _newton_step(slope, weights, pairs, gamma, accuracy)
        if np.isfinite(found).all():
            return found
        if gamma == 0:
            return None
        # any positive definite matrix gives a direction of descent; a certificate must go on
        return _newton_step(slope, weights, pairs, gamma + float(weights.max()), accuracy)

    return Objective(
        value=value,
        gradient=gradient,
        rounding=lambda theta: rounding_bound(theta, target, pairs, gamma, loss),
        step=step,
        moved=lambda theta: float(np.abs(differences(theta, pairs)).max()),
        far=loss.far,
        penalised=gamma > 0,
    )


def _newton_step(
    gradient: FloatArray,
    weights: FloatArray,
    pairs: PairCounts,
    gamma: float,
    accuracy: float,
) -> FloatArray:
    """Solve (Laplacian + gamma I) step = gradient, in the zero-sum space when gamma is 0.

    NaN where that matrix is singular to double precision.
    """
    m = len(gradient)

    def dense() -> FloatArray:
        hessian = laplacian(weights, pairs, m)
        hessian[np.diag_indices(m)] += gamma
        # the constant direction apart: it has the ridge alone, however small beside the curvature
        hessian += weights.sum() / m**2
        level = gradient.mean()
        step = solve(hessian, gradient - level)
        step = step - step.mean()
        return np.asarray(step + level / gamma if gamma > 0 else step)

    if m <= DENSE_LIMIT:
        return dense()
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
    step, failed = attempt(
        lambda: cg(system, gradient, rtol=accuracy, maxiter=10 * m, M=preconditioner),
        lambda: (gradient, 1),
    )
    if failed or not np.isfinite(step).all():
        return dense()
    return np.asarray(step if gamma > 0 else step - step.mean())


def rounding_bound(
    theta: FloatArray,
    target: FloatArray,
    pairs: PairCounts,
    gamma: float,
    loss: EdgeLoss | None = None,
) -> float:
    """Bound the l2 error made in computing the gradient in double precision.

    The slope of a pair is off by at most k u times its bound, with k the loss's ``accuracy`` (5 for
    the logistic one, proved with each link), and a sum of r terms adds r u times the sum of
    magnitudes; hence u (neighbours + k + 3) times the sum of the bounds and the magnitudes of the
    other two terms, per item. The 3 leaves room for the rounding of the target and of the norm.
    """
    loss = logistic_loss(pairs) if loss is None else loss
    m = len(theta)
    neighbours = np.bincount(pairs.first, minlength=m) + np.bincount(pairs.second, minlength=m)
    degrees = np.bincount(pairs.first, loss.size, minlength=m)
    degrees = degrees + np.bincount(pairs.second, loss.size, minlength=m)
    size = degrees + gamma * np.abs(theta) + np.abs(target)
    return float(UNIT_ROUNDOFF * np.linalg.norm((neighbours + loss.accuracy + 3.0) * size))


def fit_ridge(
    target: FloatArray,
    pairs: PairCounts,
    gamma: float,
    *,
    loss: EdgeLoss | None = None,
    solver: Solver = "newton",
    tolerance: float | None = None,
    start: FloatArray | None = None,
) -> RidgeFit:
    """Minimise a loss of paired comparisons with a ridge.

    Parameters
    ----------
    target : ndarray, shape (m,)
        Right-hand side of the score equations; must sum to 0 when `gamma` is 0.
    pairs : PairCounts
        Comparisons per pair.
    gamma : float
        Ridge, at least 0.
    loss : EdgeLoss, optional
        The loss by pair; that of the logit by default.
    solver : {"newton", "lbfgs", "cvxpy"}
        Newton's method (dense Cholesky, conjugate gradients for many items), or another solver
        whose answer Newton's method then polishes; cvxpy knows the logistic loss only.
    tolerance : float or None
        If given, a certificate: iterate until the computed gradient norm plus its rounding bound
        is at most `tolerance`. If None, to the accuracy of double precision.
    start : ndarray, shape (m,), optional
        Where Newton's method starts; 0 by default.

    Returns
    -------
    RidgeFit
    """
    loss = logistic_loss(pairs) if loss is None else loss
    problem = _objective(loss, target, pairs, gamma)
    start = np.zeros(len(target)) if start is None else start
    if solver == "lbfgs":
        start = _fit_lbfgs(problem, len(target))
    elif solver == "cvxpy":
        if not loss.logistic:
            raise ValueError(
                "solver='cvxpy' minimises the logistic loss only: use solver='newton' or 'lbfgs'."
            )
        start = _fit_cvxpy(target, pairs, gamma)
    # where another solver failed, Newton's method finishes the fit from anywhere
    start = start if np.isfinite(start).all() else np.zeros(len(target))
    found = minimise(problem, start, tolerance)
    return RidgeFit(found.point, found.gradient_norm, found.finite, found.converged)


def _fit_lbfgs(problem: Objective, m: int) -> FloatArray:
    far = problem.far

    def solved() -> FloatArray:
        result = minimize(
            lambda x: (problem.value(x), problem.gradient(x)),
            np.zeros(m),
            jac=True,
            method="L-BFGS-B",
            bounds=None if problem.penalised else [(-far, far)] * m,
        )
        return np.asarray(result.x if problem.penalised else result.x - result.x.mean())

    return attempt(solved, lambda: np.zeros(m))


def _fit_cvxpy(target: FloatArray, pairs: PairCounts, gamma: float) -> FloatArray:
    import cvxpy as cp

    m, edges = len(target), len(pairs.first)

    def solved() -> Any:
        # stating the problem may fail, too: some versions know no matrix without rows
        rows = np.tile(np.arange(edges), 2)
        columns = np.concatenate((pairs.first, pairs.second))
        signs = np.repeat((1.0, -1.0), edges)
        contrast = coo_array((signs, (rows, columns)), (edges, m)).tocsr()
        theta = cp.Variable(m)
        t = contrast @ theta
        loss = pairs.count @ (cp.logistic(t) - 0.5 * t) - target @ theta
        problem: Any = cp.Problem(
            cp.Minimize(loss + 0.5 * gamma * cp.sum_squares(theta)),
            [cp.norm_inf(theta) <= LOGIT.exact.far] if gamma == 0 else [],
        )
        problem.solve(solver=cp.CLARABEL)
        return theta.value

    with warnings.catch_warnings():
        # a complaint would depend on the data
        warnings.simplefilter("ignore")
        found = attempt(solved, lambda: None)
    solution = np.zeros(m) if found is None else np.asarray(found)
    return solution if gamma > 0 else solution - solution.mean()
