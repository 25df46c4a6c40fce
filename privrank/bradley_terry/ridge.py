"""How far estimates are shrunk: the prior on worths, and the ridge that balances it with the noise.

From public numbers alone, so that planning uses the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.linear import Ridge
from privrank.bradley_terry.losses import LOGISTIC_SCORE, ScoreFunction
from privrank.bradley_terry.score import ScoreEquations, bordered
from privrank.util.solvers import pseudo_inverse

__all__ = ["automatic_ridge", "default_ridge", "nominal_information", "prior_ridge"]

FloatArray = NDArray[np.float64]


def nominal_information(
    items: int, total: float, function: ScoreFunction = LOGISTIC_SCORE
) -> float:
    """Return the information per contrast of `total` comparisons spread over all pairs.

    A connected design with equal counts has all non-zero Laplacian eigenvalues equal to
    2 total / (m - 1), here times the mean curvature for worths of the function's spread.
    """
    return function.mean_curvature * 2.0 * total / (items - 1)


def default_ridge(
    information: float, score_noise_variance: float, function: ScoreFunction = LOGISTIC_SCORE
) -> float:
    """Return the ridge that balances noise and shrinkage for worths of the function's spread s.

    For a contrast with curvature I, sampling variance r I and score noise v, the mean squared error
    (r I + v + gamma^2 s^2) / (I + gamma)^2 is smallest at gamma = (r + v / I) / s^2; r = 1 for the
    logit, where s = 1, and for log-losses.
    """
    variance = function.mean_variance / function.mean_curvature
    return (variance + score_noise_variance / information) / function.spread**2


def prior_ridge(equations: ScoreEquations) -> Ridge:
    """Return the ridge of penalty 1: without covariates each worth by itself.

    With them, worths of standard deviation 1 in every cell.
    """
    if equations.covariates is None:
        return 1.0
    return _by_column(equations, _cell_prior(equations), 1.0 / equations.function.spread**2)


def automatic_ridge(equations: ScoreEquations) -> Ridge:
    """Return the ridge that balances noise and shrinkage (:func:`default_ridge`).

    With covariates, for the prior P, noise V and information J of the columns it is P + V J^-1 P.
    """
    m, total, fitted = equations.items, equations.total, equations.fitted
    if equations.covariates is None:
        noise = equations.item_variance + m * equations.mean_edge_variance
        # spread over all pairs, as the information is
        noise += max(2.0 * float(equations.response.sum()) / (m - 1), 0.0)
        return default_ridge(nominal_information(m, total, fitted), noise, fitted)
    z, gram = equations.covariates.matrix, equations.weights.T @ equations.weights
    size = np.bincount(equations.pairs.first // m, equations.pairs.count, minlength=len(z))
    information = np.asarray(nominal_information(m, 1.0, fitted) * (z.T @ (size[:, None] * z)))
    prior = _cell_prior(equations)
    ridge = prior + equations.item_variance * gram @ pseudo_inverse(information) @ prior
    alone = 1.0 + equations.order_variance / (fitted.mean_curvature * total)
    return _by_column(equations, 0.5 * (ridge + ridge.T), alone / fitted.spread**2)


def _cell_prior(equations: ScoreEquations) -> FloatArray:
    weights = equations.weights
    gram = weights.T @ weights
    return np.asarray(len(gram) / len(weights) / equations.function.spread**2 * gram)


def _by_column(equations: ScoreEquations, columns: FloatArray, order: float) -> FloatArray:
    """Return the ridge of all coefficients, given those of the columns and the order effect."""
    basis = equations.basis
    matrix = np.asarray(np.kron(columns, basis.T @ basis))
    return bordered(matrix, order) if equations.ordered else matrix
