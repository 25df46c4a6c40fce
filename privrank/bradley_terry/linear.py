"""The linear predictor of paired comparisons: differences of worths as a linear map, t = E b.

Without covariates b are the worths and edge e, pair (i, j), has t_e = b_i - b_j: E is the incidence
matrix of the graph of comparisons, which is never formed (:class:`ItemContrasts`).

With covariates, for edge e, pair (i, j) with pattern s, t_e = z_s' B (x_i - x_j) + d_e delta.
Here z_s is the row of the model matrix, x_i the row of item i in the item basis, and d_e = 1 or -1
by which item was named first. Then b are the rows of B one after the other and delta
(:class:`Columns`).

Where ties have a parameter lambda it is the last coefficient, and each edge becomes three
(:class:`WithTies`).

Fits of covariates work on a basis of contrasts between items. Tables show centred worths, and
differences of centred worths, one per item and column of the model matrix (:func:`display`), or
worths at given covariates (:func:`worth_map`). Without covariates the coefficients are the worths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import helmert
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg
from scipy.spatial.distance import squareform

from privrank.bradley_terry.losses import EdgeLoss, edges_of
from privrank.bradley_terry.modelmatrix import rows_at
from privrank.distributions.links import UNIT_ROUNDOFF
from privrank.release.survey import Covariates, Design, PairCounts
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.solvers import attempt, inverse, solve, spectrum

Ridge = float | FloatArray
"""A ridge b' ridge b / 2, a number standing for its multiple of the identity."""

Bound = Callable[[FloatArray], float]
"""A bound that depends on the coefficients."""

DENSE_LIMIT = 500
"""Items up to which a dense Cholesky factor beats preconditioned conjugate gradients."""


def times(ridge: Ridge, b: FloatArray) -> FloatArray:
    """Return the product of a ridge and coefficients."""
    return np.asarray(ridge @ b if isinstance(ridge, np.ndarray) else ridge * b)


@lru_cache(maxsize=2)
def _all_pairs(items: int) -> tuple[IntArray, IntArray]:
    """Return all pairs of items, sorted."""
    return np.triu_indices(items, 1)


@dataclass(frozen=True, slots=True, eq=False)
class ItemContrasts:
    """The linear predictor of one worth per item, by edges; worths sum to zero.

    Parameters
    ----------
    pairs : PairCounts
        The edges.
    size : int
        Number of items.
    """

    pairs: PairCounts
    size: int

    def predict(self, b: FloatArray) -> FloatArray:
        """Return the difference of worths of each edge, E b, for each row of worths."""
        return np.asarray(b.take(self.pairs.first, -1) - b.take(self.pairs.second, -1))

    def scores(self, edges: FloatArray) -> FloatArray:
        """Add each edge's number to its first item and subtract it from its second: E' edges."""
        up, down = self._by_end(edges)
        return np.asarray(up - down)

    def _by_end(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of the edges' numbers by first item, which sorts them, and by second."""
        up, starts = np.zeros(self.size), np.searchsorted(self.pairs.first, np.arange(self.size))
        some = np.flatnonzero(np.diff(starts, append=len(edges)))
        up[some] = np.add.reduceat(edges, starts[some])
        return up, np.asarray(np.bincount(self.pairs.second, edges, minlength=self.size))

    def scores_by_pattern(self, edges: FloatArray) -> FloatArray:
        """Return the scores of the one pattern that there is, shape (1, m)."""
        return self.scores(edges)[None, :]

    def both_ends(self, edges: FloatArray) -> FloatArray:
        """Return E' diag(edges) |E|: scores by item, and by item compared, shape (m, m)."""
        matrix = np.zeros((self.size, self.size))
        matrix[self.pairs.first, self.pairs.second] = edges
        matrix[self.pairs.second, self.pairs.first] = -edges
        matrix.flat[:: self.size + 1] = matrix.sum(axis=1)
        return matrix

    def by_pattern(self, edges: FloatArray) -> FloatArray:
        """Return the sum of the edges' numbers, shape (1,)."""
        return np.asarray(edges.sum(keepdims=True))

    def information(self, weights: FloatArray) -> FloatArray:
        """Return E' diag(weights) E, the graph's Laplacian, for each row of weights."""
        first, second, items = self.pairs.first, self.pairs.second, np.arange(self.size)
        if weights.ndim == 1 and all(map(np.array_equal, (first, second), _all_pairs(self.size))):
            matrix: FloatArray = squareform(-weights, checks=False)
        else:
            matrix = np.zeros((*weights.shape[:-1], self.size, self.size))
            matrix[..., first, second] = matrix[..., second, first] = -weights
        matrix[..., items, items] = -matrix.sum(axis=-1)
        return matrix

    @property
    def identity(self) -> FloatArray:
        """The identity on worths that sum to zero."""
        return self.centred(np.eye(self.size))

    def inverse(self, matrix: FloatArray) -> FloatArray:
        """Return the pseudo-inverse of a matrix whose null space is what is constant."""
        full = inverse(self.filled(matrix))
        level = full.mean(axis=0)
        full -= level + (level - level.mean())[:, None]
        return full

    def filled(self, matrix: FloatArray) -> FloatArray:
        """Return a matrix with the mean of its diagonal put in where worths are constant."""
        return np.asarray(matrix + np.trace(matrix) / self.size**2)

    def centred(self, b: FloatArray) -> FloatArray:
        """Return the worths with sum zero, for each row of worths."""
        return np.asarray(b - b.mean(axis=-1, keepdims=True))

    def matrix(self) -> csr_array:
        """Return E as a sparse matrix, shape (edges, m)."""
        edges = len(self.pairs.first)
        columns = np.column_stack((self.pairs.first, self.pairs.second)).ravel()
        signs, starts = np.tile((1.0, -1.0), edges), np.arange(0, 2 * edges + 1, 2)
        return csr_array((signs, columns, starts), (edges, self.size))

    def rounding(self, target: FloatArray, loss: EdgeLoss, ridge: Ridge) -> Bound:
        """Bound the l2 error made in computing the gradient of a fit in double precision.

        The slope of a pair is off by at most k u times its bound, with k the loss's ``accuracy`` (5
        for the logistic one, proved with each link). A sum of r terms adds r u times the sum of
        magnitudes. Hence u (neighbours + k + 3) times the sum of the bounds and the magnitudes of
        the other two terms, per item. The 3 leaves room for the rounding of the target and of the
        norm.
        """
        terms = np.add(*self._by_end(np.ones_like(loss.size))) + loss.accuracy + 3.0
        degrees = np.add(*self._by_end(loss.size))

        def bound(b: FloatArray) -> float:
            size = degrees + times(ridge, np.abs(b)) + np.abs(target)
            return float(UNIT_ROUNDOFF * np.linalg.norm(terms * size))

        return bound

    def newton_step(
        self, gradient: FloatArray, weights: FloatArray, ridge: Ridge, accuracy: float
    ) -> FloatArray:
        """Solve (Laplacian + ridge) step = gradient, in the zero-sum space when there is no ridge.

        NaN where that matrix is singular to double precision.
        """
        assert not isinstance(ridge, np.ndarray)  # worths have one ridge for all
        m, gamma = self.size, ridge

        def dense() -> FloatArray:
            hessian = self.information(weights)
            hessian[np.diag_indices(m)] += gamma
            # the constant directions apart: they have the ridge alone, however small it is
            hessian += weights.sum() / m**2
            level = gradient.mean()
            step = self.centred(solve(hessian, gradient - level))
            return np.asarray(step + level / gamma if gamma > 0 else step)

        if m <= DENSE_LIMIT:
            return dense()
        # pairs are sorted by their first item, so the upper triangle needs no sorting
        starts = np.searchsorted(self.pairs.first, np.arange(m + 1))
        upper = csr_array((weights, self.pairs.second, starts), (m, m))
        lower = upper.T
        diagonal = np.add(*self._by_end(weights)) + gamma
        scale = 1.0 / np.maximum(diagonal, np.finfo(float).tiny)
        # the matrix is the Laplacian and the ridge, and is never formed
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
        return np.asarray(step if gamma > 0 else self.centred(step))

    def steeper(self, ridge: Ridge, weights: FloatArray) -> Ridge:
        """Return a ridge under which a step that had no answer has one."""
        return ridge + float(weights.max())


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The linear predictor of covariates, as a dense matrix.

    Parameters
    ----------
    columns : ndarray, shape (edges, p)
        The matrix E.
    pattern : ndarray of int64, shape (edges,)
        Pattern of covariates of each edge.
    patterns : int
        Number of patterns.
    """

    columns: FloatArray
    pattern: IntArray
    patterns: int

    @property
    def size(self) -> int:
        """Number of coefficients p."""
        return int(self.columns.shape[1])

    def predict(self, b: FloatArray) -> FloatArray:
        """Return the predictor of each edge, E b, for each row of coefficients."""
        return np.asarray((self.columns @ b.T).T)

    def scores(self, edges: FloatArray) -> FloatArray:
        """Return E' edges."""
        return np.asarray(self.columns.T @ edges)

    def scores_by_pattern(self, edges: FloatArray) -> FloatArray:
        """Return E' edges by pattern, shape (patterns, p)."""
        table = np.zeros((self.patterns, self.size))
        np.add.at(table, self.pattern, edges[:, None] * self.columns)
        return table

    def by_pattern(self, edges: FloatArray) -> FloatArray:
        """Return the sums of the edges' numbers by pattern, shape (patterns,)."""
        return np.bincount(self.pattern, edges, minlength=self.patterns).astype(np.float64)

    def information(self, weights: FloatArray) -> FloatArray:
        """Return E' diag(weights) E, for each row of weights."""
        return np.asarray(self.columns.T @ (weights[..., None] * self.columns))

    @property
    def identity(self) -> FloatArray:
        """The identity on the coefficients."""
        return np.eye(self.size)

    def inverse(self, matrix: FloatArray) -> FloatArray:
        """Return the inverse of a matrix of this size."""
        return inverse(matrix)

    def centred(self, b: FloatArray) -> FloatArray:
        """Return the coefficients, which the item basis keeps centred."""
        return b

    def matrix(self) -> FloatArray:
        """Return E."""
        return self.columns

    def rounding(self, target: FloatArray, loss: EdgeLoss, ridge: Ridge) -> Bound:
        """Bound the l2 error of a gradient, as :meth:`ItemContrasts.rounding` does.

        A predictor is off by at most p u times the sum of magnitudes behind it, which moves its
        slope by the curvature times that.
        """
        (edges, p), size = self.columns.shape, np.abs(self.columns)
        slope = (edges + loss.accuracy + 3.0) * loss.size

        def bound(b: FloatArray) -> float:
            off = size.T @ (slope + p * loss.curvature(self.predict(b)) * (size @ np.abs(b)))
            off += (p + 3.0) * (times(np.abs(ridge), np.abs(b)) + np.abs(target))
            return float(UNIT_ROUNDOFF * np.linalg.norm(off))

        return bound

    def newton_step(
        self, gradient: FloatArray, weights: FloatArray, ridge: Ridge, accuracy: float
    ) -> FloatArray:
        """Solve (E' diag(weights) E + ridge) step = gradient; NaN where it is singular."""
        return solve(self.information(weights) + times(ridge, np.eye(self.size)), gradient)

    def steeper(self, ridge: Ridge, weights: FloatArray) -> Ridge:
        """Return a ridge under which a step that had no answer has one."""
        whole = times(ridge, np.eye(self.size))
        return np.asarray(whole + np.diag(np.diag(self.information(weights) + whole)))


@dataclass(frozen=True, slots=True, eq=False)
class WithTies:
    """The linear predictor of worths and a tie parameter: three edges for each pair.

    These are t, t / 2 - lambda and t / 2 + lambda for the difference t of worths, all first ones
    before all second ones (:mod:`privrank.bradley_terry.losses`).

    Parameters
    ----------
    worths : ItemContrasts or Columns
        The linear predictor of worths; with covariates ties have one parameter for all patterns.
    """

    worths: ItemContrasts | Columns

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self.worths.size + 1

    def predict(self, b: FloatArray) -> FloatArray:
        """Return the predictor of each edge, E b, for each row of coefficients."""
        return edges_of(self.worths.predict(b[..., :-1]), b[..., -1:])

    def scores(self, edges: FloatArray) -> FloatArray:
        """Return E' edges."""
        decided, won, lost = np.split(edges, 3)
        return np.append(self.worths.scores(decided + 0.5 * (won + lost)), (lost - won).sum())

    def scores_by_pattern(self, edges: FloatArray) -> FloatArray:
        """Return E' edges by pattern, shape (patterns, p)."""
        decided, won, lost = np.split(edges, 3)
        table = self.worths.scores_by_pattern(decided + 0.5 * (won + lost))
        return np.column_stack((table, self.worths.by_pattern(lost - won)))

    def information(self, weights: FloatArray) -> FloatArray:
        """Return E' diag(weights) E, for each row of weights."""
        decided, won, lost = np.split(weights, 3, axis=-1)
        out = np.empty((*weights.shape[:-1], self.size, self.size))
        out[..., :-1, :-1] = self.worths.information(decided + 0.25 * (won + lost))
        out[..., -1, :-1] = out[..., :-1, -1] = (0.5 * (lost - won)) @ self.worths.matrix()
        out[..., -1, -1] = (won + lost).sum(axis=-1)
        return out

    @property
    def identity(self) -> FloatArray:
        """The identity on worths that sum to zero, or on coefficients, and on lambda."""
        return bordered(self.worths.identity, 1.0)

    def inverse(self, matrix: FloatArray) -> FloatArray:
        """Return the pseudo-inverse of a matrix whose null space are constant worths, if any."""
        return self.identity @ inverse(self._filled(matrix)) @ self.identity

    def _filled(self, matrix: FloatArray) -> FloatArray:
        """Return a matrix with the mean of its diagonal put in where worths are constant."""
        rest = np.eye(self.size) - self.identity
        return np.asarray(matrix + np.trace(matrix) / self.size * rest)

    def centred(self, b: FloatArray) -> FloatArray:
        """Return the coefficients with worths of sum zero, for each row."""
        return np.concatenate((self.worths.centred(b[..., :-1]), b[..., -1:]), axis=-1)

    def matrix(self) -> FloatArray:
        """Return E."""
        return self.predict(np.eye(self.size)).T

    def rounding(self, target: FloatArray, loss: EdgeLoss, ridge: Ridge) -> Bound:
        """Bound the l2 error of a gradient, as :meth:`Columns.rounding` does."""
        every = Columns(self.matrix(), np.zeros(len(loss.size), dtype=np.int64), 1)
        return every.rounding(target, loss, ridge)

    def newton_step(
        self, gradient: FloatArray, weights: FloatArray, ridge: Ridge, accuracy: float
    ) -> FloatArray:
        """Solve (E' diag(weights) E + ridge) step = gradient for worths that sum to zero."""
        hessian = self.information(weights) + times(ridge, np.eye(self.size))
        return self.centred(solve(self._filled(hessian), gradient))

    def steeper(self, ridge: Ridge, weights: FloatArray) -> Ridge:
        """Return a ridge under which a step that had no answer has one."""
        return np.asarray(times(ridge, np.eye(self.size)) + float(weights.max()) * self.identity)


LinearPredictor = ItemContrasts | Columns | WithTies


def linear_predictor(design: Design, pairs: PairCounts) -> LinearPredictor:
    """Return the linear predictor of a design; with covariates by pattern and pair."""
    covariates, m = design.covariates, len(design.items)
    worths: ItemContrasts | Columns = ItemContrasts(pairs, m)
    if covariates is not None:
        pattern = pairs.first // m
        columns = predictor_matrix(
            covariates,
            covariates.matrix[pattern],
            pairs.first % m,
            pairs.second % m,
            m,
            covariates.first[pattern],
        )
        worths = Columns(columns, pattern, covariates.patterns)
    return WithTies(worths) if design.davidson else worths


def identified(design: Design, member: IntArray | None) -> FloatArray | None:
    """Return the projection onto coefficients that are identified, shape (p, p); None if all are.

    Given the part of each item, None where all are in one: of worths those that sum to zero in
    each. Covariates of items may identify all coefficients all the same.
    """
    if member is None:
        return None
    covariates, m = design.covariates, len(design.items)
    same = member[:, None] == member
    # the centring of each part by itself
    inside = np.asarray(np.eye(m) - same / same.sum(axis=1))
    if covariates is None:
        return bordered(inside, 1.0) if design.davidson else inside
    basis = item_basis(covariates, m)
    values, vectors = spectrum(basis.T @ inside @ basis)
    # contrasts that compare items of one part, among those that the basis has
    span = vectors[:, values > 1e-9]
    within = span @ span.T
    if np.allclose(within, np.eye(len(within)), atol=1e-9):
        return None
    whole = np.kron(np.eye(len(covariates.columns)), within)
    known = np.eye(len(whole) + covariates.ordered + design.davidson)
    known[: len(whole), : len(whole)] = whole
    return known


def item_basis(covariates: Covariates, items: int) -> FloatArray:
    """Return the item basis, shape (m, q): orthonormal contrasts, or covariates of length 1."""
    if covariates.item_columns:
        return np.asarray(covariates.item_matrix / np.linalg.norm(covariates.item_matrix, axis=0))
    return np.asarray(helmert(items).T)


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
    # z x (x_i - x_j) for each pair: coefficients are the rows of B one after the other
    step = basis[first] - basis[second]
    matrix = (rows[:, :, None] * step[:, None, :]).reshape(
        len(rows), rows.shape[1] * basis.shape[1]
    )
    return np.column_stack((matrix, order)) if covariates.ordered else np.asarray(matrix)


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
    # collinear columns: a least eigenvalue of 0 where all have length 1
    linear = linear_predictor(design, pairs)
    worths = linear.worths if isinstance(linear, WithTies) else linear
    gram = worths.information(np.ones(len(pairs.first)))
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    if spectrum(gram / np.outer(scale, scale))[0][0] < 1e-9:
        raise ValueError(
            f"the coefficients of '~ {covariates.formula}' cannot be told apart from who compared "
            f"which pairs: leave out covariates that repeat each other or levels that nobody has, "
            f"and count numbers from about their middle."
        )


def bordered(block: FloatArray, corner: float) -> FloatArray:
    """Return a matrix with one row and column more, zero but for their corner."""
    wider = np.zeros((block.shape[0] + 1, block.shape[1] + 1))
    wider[:-1, :-1] = block
    wider[-1, -1] = corner
    return wider


def of_worths(design: Design) -> FloatArray:
    """Return the map from coefficients without covariates to the worths, shape (m, p)."""
    m = len(design.items)
    return np.eye(m, m + design.davidson)


def display(design: Design) -> FloatArray:
    """Return the map from fitted to shown coefficients, shape (shown, p)."""
    covariates, m = design.covariates, len(design.items)
    if covariates is None:
        return of_worths(design)
    lengths = np.linalg.norm(covariates.item_matrix, axis=0)
    block = np.diag(1.0 / lengths) if len(lengths) else item_basis(covariates, m)
    table = np.asarray(np.kron(np.eye(len(covariates.columns)), block))
    table = bordered(table, 1.0) if covariates.ordered else table
    return _beside_ties(table, design)


def names_shown(design: Design) -> tuple[str, ...]:
    """Return the names of the shown coefficients."""
    covariates = design.covariates
    if covariates is None:
        return design.items
    names = tuple(
        item if column == "Intercept" else f"{column}:{item}"
        for column in covariates.columns
        for item in covariates.item_columns or design.items
    )
    return (*names, "first") if covariates.ordered else names


def groups_at(
    covariates: Covariates | None, at: Mapping[str, Any] | None, *, every: bool = False
) -> list[dict[str, Any]]:
    """Return values of the covariates, one mapping per group.

    Parameters
    ----------
    covariates : Covariates or None
        The covariates of the model.
    at : mapping of str to value, or None
        The values of one group, numeric covariates that are left out in the middle of their bounds.
        None is the reference profile: first levels, and the middle of all bounds.
    every : bool
        Whether None is every combination of levels instead.

    Raises
    ------
    TypeError, ValueError
        If `at` names no covariate of the model.
    """
    if at is not None and not isinstance(at, Mapping):
        raise TypeError("at must map covariates to their values, as {'gender': 'female'} does.")
    known = () if covariates is None else covariates.names
    if at is not None and (unknown := at.keys() - set(known)):
        raise ValueError(f"at must name covariates of the model, not {sorted(unknown)}.")
    if covariates is None:
        return [{}]
    # numeric covariates that are left out are in the middle of their bounds
    levels = covariates.cell_labels if every else covariates.cell_labels[:1]
    middle = {name: 0.5 * (low + high) for name, low, high in covariates.bounds}
    return [middle | dict(group) for group in (levels if at is None else (at,))]


def worth_map(design: Design, groups: list[dict[str, Any]]) -> FloatArray:
    """Return the map from coefficients to worths, shape (groups m, p).

    The items of one group follow each other.
    """
    covariates, m = design.covariates, len(design.items)
    if covariates is None:
        return of_worths(design)
    columns = {name: [group.get(name) for group in groups] for name in covariates.names}
    rows = rows_at(covariates, columns, len(groups))
    table = np.asarray(np.kron(rows, item_basis(covariates, m)))
    return _beside_ties(np.pad(table, ((0, 0), (0, int(covariates.ordered)))), design)


def pair_predictors(
    design: Design, first: IntArray, second: IntArray, columns: Mapping[str, list[Any]]
) -> FloatArray:
    """Return the map from coefficients to differences of pairs of items, shape (pairs, p).

    Given the values of the covariates for each; with an order effect `first` is named first.
    """
    covariates, m, n = design.covariates, len(design.items), len(first)
    if covariates is None:
        items = of_worths(design)  # pair counts sort their pairs, and rows stay as they are
        return items[first] - items[second]
    rows = rows_at(covariates, columns, n)
    named = np.ones(n, dtype=np.int64)
    return _beside_ties(predictor_matrix(covariates, rows, first, second, m, named), design)


def _beside_ties(table: FloatArray, design: Design) -> FloatArray:
    """Return a map from coefficients, of which a tie parameter, if there is one, is the last."""
    return np.pad(table, ((0, 0), (0, int(design.davidson))))
