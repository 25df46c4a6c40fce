"""Convex fits of a linear predictor: worths that depend on covariates.

For edge e, pair (i, j) with pattern s, the predictor is t_e = z_s' B (x_i - x_j) + d_e delta: z_s
is the row of the model matrix, x_i the row of item i in the item basis, d_e = 1 or -1 by which item
was named first. In vector form t = E b, with b the rows of B one after the other and then delta.
Every fit minimises loss(E b) - target'b + b' ridge b / 2 with a loss summed over edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from privrank.bradley_terry.losses import EdgeLoss
from privrank.distributions.links import UNIT_ROUNDOFF
from privrank.release.covariates import Covariates
from privrank.release.survey import Design, PairCounts
from privrank.util.newton import Minimum, Objective, minimise
from privrank.util.solvers import solve, spectrum

__all__ = [
    "blocks",
    "check_identified",
    "edge_matrix",
    "fit_linear",
    "item_basis",
    "predictor_matrix",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def item_basis(covariates: Covariates, items: int) -> FloatArray:
    """Return the item basis, shape (m, q): orthonormal contrasts, or covariates of length 1."""
    if covariates.item_columns:
        return np.asarray(covariates.item_matrix / covariates.item_lengths)
    return np.asarray(helmert(items).T)


def edge_matrix(covariates: Covariates, pairs: PairCounts, items: int) -> FloatArray:
    """Return the matrix E of the predictor, shape (edges, p)."""
    pattern = pairs.first // items
    return predictor_matrix(
        covariates,
        covariates.matrix[pattern],
        pairs.first % items,
        pairs.second % items,
        items,
        covariates.first[pattern],
    )


def predictor_matrix(
    covariates: Covariates,
    rows: FloatArray,
    first: IntArray,
    second: IntArray,
    items: int,
    order: IntArray,
) -> FloatArray:
    """Return the map from coefficients to the predictors of pairs, shape (pairs, p).

    Given model matrix rows, shape (pairs, K), the positions of the two items, and 1 or -1 by which
    of them was named first.
    """
    basis = item_basis(covariates, items)
    step = basis[first] - basis[second]
    matrix = (rows[:, :, None] * step[:, None, :]).reshape(
        len(rows), rows.shape[1] * basis.shape[1]
    )
    if covariates.ordered:
        matrix = np.column_stack((matrix, order))
    return np.asarray(matrix)


def blocks(design: Design, pairs: PairCounts) -> list[slice]:
    """Return the runs of edges that one unit's answers can fall in.

    All edges are one run without covariates; with them, the edges of each combination of covariate
    values, in either order of naming.
    """
    facts = design.covariates
    if facts is None:
        return [slice(0, len(pairs.first))]
    kind = facts.kinds[pairs.first // len(design.items)]
    starts = np.flatnonzero(np.diff(kind, prepend=-1))
    stops = np.append(starts[1:], len(kind))
    return [slice(int(start), int(stop)) for start, stop in zip(starts, stops, strict=True)]


def check_identified(design: Design) -> None:
    """Refuse covariates whose coefficients the public comparisons cannot tell apart."""
    covariates, pairs = design.covariates, design.pairs
    if covariates is None or pairs is None:
        raise ValueError("design must have covariates and pair counts.")
    matrix = edge_matrix(covariates, pairs, len(design.items))
    gram = matrix.T @ matrix
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    if spectrum(gram / np.outer(scale, scale))[0][0] < 1e-9:
        raise ValueError(
            f"the coefficients of '~ {covariates.formula}' cannot be told apart from who compared "
            f"which pairs: leave out covariates that repeat each other or levels that nobody has, "
            f"and count numbers from near their middle."
        )


def _objective(
    target: FloatArray, matrix: FloatArray, loss: EdgeLoss, ridge: FloatArray
) -> Objective:
    """Return the objective of a fit with its derivatives."""
    (edges, p), size, penalised = matrix.shape, np.abs(matrix), bool(ridge.any())

    def value(b: FloatArray) -> float:
        return float(loss.value(matrix @ b) - target @ b + 0.5 * b @ ridge @ b)

    def gradient(b: FloatArray) -> FloatArray:
        return np.asarray(matrix.T @ loss.slope(matrix @ b) + ridge @ b - target)

    def rounding(b: FloatArray) -> float:
        # as in optim.rounding_bound; a predictor is off by at most p u times the sum of magnitudes
        # behind it, which moves its slope by the curvature times that
        slope = (edges + loss.accuracy + 3.0) * loss.size
        off = size.T @ (slope + p * loss.curvature(matrix @ b) * (size @ np.abs(b)))
        off += (p + 3.0) * (np.abs(ridge) @ np.abs(b) + np.abs(target))
        return float(UNIT_ROUNDOFF * np.linalg.norm(off))

    def step(b: FloatArray, slope: FloatArray, accuracy: float) -> FloatArray | None:
        hessian = matrix.T @ (loss.curvature(matrix @ b)[:, None] * matrix) + ridge
        found = solve(hessian, slope)
        if np.isfinite(found).all():
            return found
        # any positive definite matrix gives a direction of descent
        return solve(hessian + np.diag(np.diag(hessian)), slope) if penalised else None

    return Objective(
        value=value,
        gradient=gradient,
        rounding=rounding,
        step=step,
        moved=lambda b: float(np.abs(matrix @ b).max()),
        far=loss.far,
        penalised=penalised,
    )


def fit_linear(
    target: FloatArray,
    matrix: FloatArray,
    loss: EdgeLoss,
    ridge: FloatArray,
    start: FloatArray | None = None,
) -> Minimum:
    """Minimise the objective by :func:`privrank.util.newton.minimise`.

    Parameters
    ----------
    target : ndarray, shape (p,)
        Right-hand side of the score equations.
    matrix : ndarray, shape (edges, p)
        The matrix E.
    loss : EdgeLoss
        The loss, by edge.
    ridge : ndarray, shape (p, p)
        Positive semi-definite.
    start : ndarray, shape (p,), optional
        Where to start; 0 by default.

    Returns
    -------
    Minimum
    """
    problem = _objective(target, matrix, loss, ridge)
    return minimise(problem, np.zeros(len(target)) if start is None else start)
