"""Linear maps from coefficients to the predictors of edges, and to their scores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from privrank.release.survey import PairCounts
from privrank.util.arrays import FloatArray, IntArray, readonly_copy
from privrank.util.solvers import general_inverse, inverse, solve


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """The linear map from coefficients b to the predictors of edges, E b.

    Parameters
    ----------
    stored : ndarray or csr_array, shape (edges, p), or None
        E; None if it is the incidence matrix of the pairs, which a fit does not need.
    items : int
        Number of worths, which are the first coefficients. They sum to zero, because a constant has
        no meaning. 0 with covariates, whose item basis is centred.
    pairs : PairCounts or None
        The edges, if each edge is the difference of the worths of two items. Several edges may have
        the same pair.
    worths : LinearPredictor or None
        The linear predictor without ties, if ties have a parameter.
    """

    stored: FloatArray | csr_array | None
    items: int = 0
    pairs: PairCounts | None = None
    worths: LinearPredictor | None = None

    @property
    def matrix(self) -> FloatArray | csr_array:
        """E, shape (edges, p); for worths without covariates it is computed anew, not stored."""
        if self.pairs is None:
            return self.stored
        edges = len(self.pairs.first)
        rows = (
            np.tile((1.0, -1.0), edges),
            np.column_stack((self.pairs.first, self.pairs.second)).ravel(),
            np.arange(0, 2 * edges + 1, 2),
        )
        return csr_array(rows, (edges, self.items))

    @property
    def size(self) -> int:
        """Number of coefficients p."""
        return self.items if self.pairs is not None else int(self.matrix.shape[1])

    def predict(self, b: FloatArray) -> FloatArray:
        """Return the predictor of each edge, E b, for each row of coefficients."""
        if self.pairs is None:
            return np.asarray((self.matrix @ b.T).T)
        return np.asarray(b.take(self.pairs.first, -1) - b.take(self.pairs.second, -1))

    def scores(self, edges: FloatArray) -> FloatArray:
        """Return E' edges."""
        if self.pairs is None:
            return np.asarray(self.matrix.T @ edges)
        return self._summed(edges, self.pairs, -1.0)

    def along(self, weights: FloatArray) -> FloatArray:
        """Return the weight of each edge in combinations of scores, for each row of weights."""
        return self.predict(weights)

    def apart(self, b: FloatArray) -> FloatArray:
        """Return the predictors by which a fit is judged as finite or not."""
        return self.predict(b)

    def sizes(self, edges: FloatArray) -> FloatArray:
        """Return |E|' edges."""
        if self.pairs is None:
            return absolute(self).scores(edges)
        return self._summed(edges, self.pairs, 1.0)

    @cached_property
    def _runs(self) -> tuple[IntArray, IntArray]:
        """Return the first items of pairs, which are sorted by them, and where each begins."""
        assert self.pairs is not None
        items, starts = np.unique(self.pairs.first, return_index=True)
        return readonly_copy(items, np.int64), readonly_copy(starts, np.int64)

    @cached_property
    def _repeated(self) -> tuple[IntArray, IntArray, IntArray] | None:
        """Return the distinct pairs, the edges ordered by pair, and where each pair begins.

        Pairs are numbers: the first item times the number of items, plus the second item. None if
        no two edges have the same pair.
        """
        assert self.pairs is not None
        cells = self.pairs.first * self.items + self.pairs.second
        # ascending pairs, the usual case, need no sorting
        if (cells[1:] > cells[:-1]).all():
            return None
        order = readonly_copy(np.argsort(cells, kind="stable"), np.int64)
        distinct, starts = np.unique(cells[order], return_index=True)
        if len(distinct) == len(cells):
            return None
        return readonly_copy(distinct, np.int64), order, readonly_copy(starts, np.int64)

    def _summed(self, edges: FloatArray, pairs: PairCounts, sign: float) -> FloatArray:
        """Return sums of the edges' numbers by first item, and `sign` times by second item."""
        up = np.zeros(self.items)
        items, starts = self._runs
        up[items] = np.add.reduceat(edges, starts)
        return np.asarray(up + sign * np.bincount(pairs.second, edges, self.items))

    def scores_by(self, label: IntArray, edges: FloatArray) -> FloatArray | csr_array:
        """Return E' edges by label, given the labels 0, 1, ... of the edges: shape (labels, p).

        The result is sparse if E is sparse.
        """
        return csr_array((edges, label, np.arange(len(edges) + 1))).T @ self.matrix

    def information(self, weights: FloatArray) -> FloatArray:
        """Return E' diag(weights) E, for each row of weights."""
        if self.worths is not None:
            decided, won, lost = np.split(weights, 3, axis=-1)
            matrix = np.empty((*weights.shape[:-1], self.size, self.size))
            matrix[..., :-1, :-1] = self.worths.information(decided + 0.25 * (won + lost))
            matrix[..., -1, :-1] = matrix[..., :-1, -1] = (0.5 * (lost - won)) @ self.worths.matrix
            matrix[..., -1, -1] = (won + lost).sum(axis=-1)
            return matrix
        if self.pairs is None:
            return np.asarray(self.matrix.T @ (weights[..., None] * self.matrix))
        # without covariates this is the Laplacian of the graph of comparisons
        first = self.pairs.first
        second = self.pairs.second
        if self._repeated is not None:
            distinct, order, starts = self._repeated
            weights = np.add.reduceat(weights.take(order, -1), starts, axis=-1)
            first, second = np.divmod(distinct, self.items)
        items = np.arange(self.items)
        laplacian = np.zeros((*weights.shape[:-1], self.items, self.items))
        laplacian[..., first, second] = laplacian[..., second, first] = -weights
        laplacian[..., items, items] = -laplacian.sum(axis=-1)
        return laplacian

    def spread(self, weights: FloatArray) -> FloatArray:
        """Return the covariance of the scores of edges with these variances, shape (p, p)."""
        return self.information(weights)

    def centred(self, b: FloatArray) -> FloatArray:
        """Return coefficients whose worths sum to zero, for each row."""
        if not self.items:
            return b
        centred = b.copy()
        worths = centred[..., : self.items]
        worths -= worths.sum(axis=-1, keepdims=True) / self.items
        return centred

    @property
    def identity(self) -> FloatArray:
        """The identity on coefficients whose worths sum to zero."""
        return self.centred(np.eye(self.size))

    def filled(self, matrix: FloatArray) -> FloatArray:
        """Return a matrix with the mean of its diagonal as eigenvalue of constant worths."""
        if not self.items:
            return matrix
        whole = matrix.copy()
        whole[: self.items, : self.items] += matrix.trace() / self.size / self.items
        return whole

    def inverse(self, matrix: FloatArray) -> FloatArray:
        """Return the pseudo-inverse of a matrix whose null space, if any, is constant worths."""
        return self.centred(self.centred(inverse(self.filled(matrix))).T)

    @property
    def symmetric(self) -> bool:
        """Whether scores and predictors have the same matrix. A fit then minimises a loss."""
        return True

    def solve(self, matrix: FloatArray, right: FloatArray) -> FloatArray:
        """Return x with matrix x = right; NaN if the matrix is singular."""
        return solve(matrix, right)


@dataclass(frozen=True, eq=False)
class ContestPredictor(LinearPredictor):
    """The linear map of comparisons with contest covariates, and that of their scores.

    The scores V' edges have the instruments v as columns where the predictors E b have the
    covariates u, so the information V' diag(weights) E need not be symmetric.

    Parameters
    ----------
    place : ndarray of int64, shape (edges,)
        Row of each edge in the linear predictor `cells` of the worths.
    contests : ndarray, shape (edges, q)
        Contest covariates u.
    instruments : ndarray, shape (edges, q)
        Their instruments v.
    """

    cells: LinearPredictor = field(kw_only=True)
    place: IntArray = field(kw_only=True)
    contests: FloatArray = field(kw_only=True)
    instruments: FloatArray = field(kw_only=True)

    @property
    def matrix(self) -> FloatArray:
        """E, shape (edges, p), computed anew."""
        return np.column_stack((self.cells.matrix[self.place], self.contests))

    @property
    def size(self) -> int:
        """Number of coefficients p."""
        return self.cells.size + len(self.contests.T)

    def predict(self, b: FloatArray) -> FloatArray:
        """Return E b for each row of coefficients."""
        return self._weighed(b, self.contests)

    def apart(self, b: FloatArray) -> FloatArray:
        """Return the predictors of the worths, and coefficients times usual sizes of covariates."""
        usual = np.sqrt(np.mean(capped(self.contests) ** 2, axis=0))
        k = self.cells.size
        return np.append(self.cells.predict(b[:k]), usual * b[k:])

    def along(self, weights: FloatArray) -> FloatArray:
        """Return V weights for each row of weights."""
        return self._weighed(weights, self.instruments)

    def _weighed(self, b: FloatArray, beside: FloatArray) -> FloatArray:
        worths = self.cells.predict(b[..., : self.cells.size])
        return np.asarray(worths.take(self.place, -1) + b[..., self.cells.size :] @ beside.T)

    def scores(self, edges: FloatArray) -> FloatArray:
        """Return V' edges."""
        by_cell = np.asarray(np.bincount(self.place, edges, self.cells.matrix.shape[0]), float)
        return np.append(self.cells.scores(by_cell), edges @ self.instruments)

    def scores_by(self, label: IntArray, edges: FloatArray) -> FloatArray:
        """Return V' edges by label."""
        rows = np.column_stack((self.cells.matrix[self.place], self.instruments))
        return LinearPredictor(rows).scores_by(label, edges)

    def information(self, weights: FloatArray) -> FloatArray:
        """Return V' diag(weights) E, for each row of weights."""
        return self._squared(weights, self.contests)

    def spread(self, weights: FloatArray) -> FloatArray:
        """Return V' diag(weights) V."""
        return self._squared(weights, self.instruments)

    def _squared(self, weights: FloatArray, beside: FloatArray) -> FloatArray:
        """Return V' diag(weights) times the matrix with the given last columns."""
        if weights.ndim > 1:
            return np.stack([self._squared(row, beside) for row in weights])
        cells = self.cells.matrix.shape[0]
        sums = [
            np.asarray(np.bincount(self.place, weights * column, cells), dtype=np.float64)
            for column in (np.ones(len(weights)), *self.instruments.T, *beside.T)
        ]
        q = beside.shape[1]
        across = self.cells.matrix.T @ np.transpose(sums[1:])
        return np.block(
            [
                [self.cells.information(sums[0]), across[:, q:]],
                [across[:, :q].T, self.instruments.T @ (weights[:, None] * beside)],
            ]
        )

    @cached_property
    def symmetric(self) -> bool:
        """Whether the contest covariates are their own instruments."""
        return np.array_equal(self.instruments, self.contests)

    def inverse(self, matrix: FloatArray) -> FloatArray:
        """Return the inverse of a matrix, which need not be symmetric; NaN if there is none."""
        if self.symmetric:
            return super().inverse(matrix)
        size = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300))
        scale = np.outer(size, size)
        return np.asarray(general_inverse(matrix / scale) / scale)

    def solve(self, matrix: FloatArray, right: FloatArray) -> FloatArray:
        """Return x with matrix x = right; NaN if the matrix is singular."""
        return solve(matrix, right) if self.symmetric else self.inverse(matrix) @ right


def capped(contests: FloatArray) -> FloatArray:
    """Return covariates with sizes of at most ten times their 99% quantile, if that is not 0."""
    size = np.abs(contests)
    most = 10.0 * np.quantile(size, 0.99, axis=0)
    most = np.where(most > 0.0, most, size.max(axis=0))
    return np.clip(contests, -most, most)


def absolute(linear: LinearPredictor) -> LinearPredictor:
    """Return a linear predictor with the absolute values of stored matrices."""
    if isinstance(linear, ContestPredictor):
        return replace(
            linear,
            cells=absolute(linear.cells),
            contests=np.abs(linear.contests),
            instruments=np.abs(linear.instruments),
        )
    return LinearPredictor(abs(linear.matrix))


def item_contrasts(pairs: PairCounts, items: int) -> LinearPredictor:
    """Return the linear predictor of one worth per item: E is the incidence matrix of the pairs."""
    return LinearPredictor(None, items, pairs)


def with_ties(worths: LinearPredictor) -> LinearPredictor:
    """Return the linear predictor of worths and a tie parameter: three edges for each pair.

    The edges are t, t / 2 - lambda and t / 2 + lambda for the difference t of worths
    (:mod:`privrank.bradley_terry.fit`). The first edges of all pairs come first, then all second
    and all third edges. With covariates ties have one parameter for all patterns.
    """
    pairs = worths.matrix
    half = 0.5 * worths.matrix
    tie = np.repeat((0.0, -1.0, 1.0), pairs.shape[0])[:, None]
    if isinstance(pairs, np.ndarray):
        matrix = np.hstack((np.vstack((pairs, half, half)), tie))
    else:
        matrix = hstack((vstack((pairs, half, half)), csr_array(tie)), format="csr")
    return LinearPredictor(matrix, worths.items, worths=worths)
