"""The linear predictor of paired comparisons: differences of worths as a linear map, t = E b.

Without covariates the coefficients b are the worths, and the edge e of the pair (i, j) has
t_e = b_i - b_j. E is the incidence matrix of the graph of comparisons (:func:`item_contrasts`).

With covariates the edge e of the pair (i, j) with pattern s has
t_e = z_s' B (x_i - x_j) + d_e delta. Here z_s is the row of the model matrix and x_i the row of
item i in the item basis. d_e is 1 or -1, depending on which item was named first. The coefficients
b are the rows of B, one after the other, followed by delta.

If ties have a parameter lambda, it is the last coefficient, and each edge becomes three
(:func:`with_ties`).

Fits with covariates use a basis of contrasts between items. Tables show centred worths, and
differences of centred worths, one per item and column of the model matrix (:func:`display`), or
worths at given covariates (:func:`worth_map`).

No statement compares items that the release does not connect (:class:`Components`,
:func:`privrank.bradley_terry.paircounts.parts_of`). Their released counts are part of the fit
nevertheless, because a count that is too small to compare two items still moves both scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import block_diag, helmert
from scipy.sparse import csr_array, hstack, vstack

from privrank.bradley_terry.modelmatrix import rows_at
from privrank.release.survey import INTERCEPT, Covariates, Design, PairCounts
from privrank.util.arrays import BoolArray, FloatArray, IntArray, own_arrays, readonly_copy
from privrank.util.solvers import inverse, product, spectrum

Ridge = float | FloatArray
"""The matrix of a ridge b' ridge b / 2; a number is a multiple of the identity."""


def ridge_product(ridge: Ridge, b: FloatArray) -> FloatArray:
    """Return the product of a ridge and coefficients."""
    return np.asarray(ridge @ b if isinstance(ridge, np.ndarray) else ridge * b)


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

    def sizes(self, edges: FloatArray) -> FloatArray:
        """Return |E|' edges."""
        if self.pairs is None:
            return np.asarray(abs(self.matrix).T @ edges)
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


def linear_predictor(design: Design, pairs: PairCounts) -> LinearPredictor:
    """Return the linear predictor of a design; with covariates by pattern and pair."""
    covariates = design.covariates
    m = len(design.items)
    worths = item_contrasts(pairs, m)
    if covariates is not None:
        pattern = pairs.first // m
        worths = LinearPredictor(
            predictor_matrix(
                design,
                covariates.matrix[pattern],
                pairs.first % m,
                pairs.second % m,
                covariates.first[pattern],
            )
        )
    return with_ties(worths) if design.davidson else worths


def item_basis(covariates: Covariates | None, items: int) -> FloatArray:
    """Return the item basis, shape (m, q): orthonormal contrasts, or covariates of length 1.

    Without covariates it is the identity.
    """
    if covariates is None:
        return np.eye(items)
    if covariates.item_columns:
        return np.asarray(covariates.item_matrix / np.linalg.norm(covariates.item_matrix, axis=0))
    return np.asarray(helmert(items).T)


def predictor_matrix(
    design: Design, rows: FloatArray, first: IntArray, second: IntArray, order: IntArray
) -> FloatArray:
    """Return the map from coefficients to the predictors of pairs, shape (pairs, p).

    `rows` are model matrix rows, shape (pairs, K), and `first` and `second` the positions of the
    two items. `order` is 1 or -1, depending on which of them was named first.
    """
    basis = item_basis(design.covariates, len(design.items))
    # z x (x_i - x_j) for each pair: coefficients are the rows of B one after the other
    matrix = rows[:, :, None] * (basis[first] - basis[second])[:, None, :]
    matrix = matrix.reshape(len(rows), rows.shape[1] * basis.shape[1])
    return np.column_stack((matrix, order)) if (design.covariates or INTERCEPT).ordered else matrix


def edge_runs(design: Design, pairs: PairCounts) -> list[slice]:
    """Return the runs of edges that can contain the answers of one unit.

    Without covariates all edges are one run. With covariates there is one run for each combination
    of covariate values, with both orders of naming.
    """
    facts = design.covariates or INTERCEPT
    kind = facts.kinds[pairs.first // len(design.items)]
    ends = np.flatnonzero(np.diff(kind, prepend=-1, append=-1))
    return [slice(*run) for run in pairwise(ends.tolist())]


def check_identified(design: Design) -> None:
    """Raise an error if the public comparisons do not identify the coefficients of covariates."""
    covariates = design.covariates
    pairs = design.pairs
    if covariates is None or pairs is None:
        return
    # collinear columns: a least eigenvalue of 0 where all have length 1
    linear = linear_predictor(design, pairs)
    gram = (linear.worths or linear).information(np.ones(len(pairs.first)))
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    if spectrum(gram / np.outer(scale, scale))[0][0] < 1e-9:
        raise ValueError(
            f"the coefficients of '~ {covariates.formula}' cannot be estimated separately from the "
            f"public comparisons. Leave out covariates that repeat each other and levels that no "
            f"respondent has, and count numbers from about their middle."
        )


def display(design: Design) -> FloatArray:
    """Return the map from fitted to shown coefficients, shape (shown, p)."""
    facts = design.covariates or INTERCEPT
    lengths = np.linalg.norm(facts.item_matrix, axis=0)
    block = (
        np.diag(1.0 / lengths) if len(lengths) else item_basis(design.covariates, len(design.items))
    )
    table = block_diag(np.kron(np.eye(len(facts.columns)), block), np.eye(int(facts.ordered)))
    return np.pad(table, ((0, 0), (0, int(design.davidson))))


def names_shown(design: Design) -> tuple[str, ...]:
    """Return the names of the shown coefficients."""
    covariates = design.covariates or INTERCEPT
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
        The values of one group. Numeric covariates that are left out have the middle of their
        bounds. None is the reference profile: first levels, and the middle of all bounds.
    every : bool
        Whether None means every combination of levels instead.

    Raises
    ------
    TypeError, ValueError
        If `at` names no covariate of the model.
    """
    if at is not None and not isinstance(at, Mapping):
        raise TypeError("at must map covariates to their values, as {'gender': 'female'} does.")
    facts = covariates or INTERCEPT
    if at is not None and (unknown := at.keys() - {*facts.names}):
        raise ValueError(f"at must name covariates of the model, not {sorted(unknown)}.")
    groups = facts.cell_labels if every else facts.cell_labels[:1]
    # numeric covariates that are left out are in the middle of their bounds
    middle = {name: 0.5 * (low + high) for name, low, high in facts.bounds}
    return [middle | dict(group) for group in (groups if at is None else (at,))]


def beside_worths(design: Design) -> int:
    """Return the number of coefficients that are not worths: an order effect or a tie parameter."""
    return int(design.davidson or (design.covariates or INTERCEPT).ordered)


def worth_map(design: Design, groups: list[dict[str, Any]]) -> FloatArray:
    """Return the map from coefficients to worths, shape (groups m, p).

    Rows are ordered by group, then by item.
    """
    facts = design.covariates or INTERCEPT
    columns = {name: [group.get(name) for group in groups] for name in facts.names}
    rows = rows_at(facts, columns, len(groups))
    worths = np.kron(rows, item_basis(design.covariates, len(design.items)))
    return np.pad(worths, ((0, 0), (0, beside_worths(design))))


def pair_predictors(
    design: Design, first: IntArray, second: IntArray, columns: Mapping[str, list[Any]]
) -> FloatArray:
    """Return the map from coefficients to differences of pairs of items, shape (pairs, p).

    `columns` are the values of the covariates for each pair. With an order effect `first` is the
    item named first.
    """
    rows = rows_at(design.covariates or INTERCEPT, columns, len(first))
    table = predictor_matrix(design, rows, first, second, np.ones(len(first), dtype=np.int64))
    return np.pad(table, ((0, 0), (0, int(design.davidson))))


@dataclass(frozen=True, eq=False)
class Components:
    """The components of the items, between which the release shows no comparisons.

    Parameters
    ----------
    label : ndarray of int64, shape (m,)
        The component of each item, numbered from 0; all 0 if all coefficients are identified.
    projection : ndarray, shape (p, p), or None
        Projection onto the coefficients that are identified; None if all are. Without covariates
        these are the worths that sum to zero within each component.
    centred : bool
        Whether worths are centred within their component. They are unless items have covariates.
    """

    label: IntArray
    projection: FloatArray | None = None
    centred: bool = True

    def __post_init__(self) -> None:
        """Take private, read-only copies of the arrays, because results keep them."""
        own_arrays(self)

    @classmethod
    def of(cls, design: Design, label: IntArray | None) -> Components:
        """Return the components of a design, given the components of its comparisons.

        `label` is None if the comparisons connect all items. Item covariates can identify all
        coefficients even if the comparisons do not connect the items.
        """
        covariates = design.covariates
        m = len(design.items)
        everything = cls(
            np.zeros(m, dtype=np.int64), None, not (covariates and covariates.item_columns)
        )
        if label is None:
            return everything
        same = label[:, None] == label
        # centring within each component
        inside = np.eye(m) - same / same.sum(axis=1)
        if covariates is not None:
            basis = item_basis(covariates, m)
            values, vectors = spectrum(basis.T @ inside @ basis)
            # contrasts of the basis that compare items of one component
            span = vectors[:, values > 1e-9]
            within = span @ span.T
            if np.allclose(within, np.eye(len(within)), atol=1e-9):
                return everything
            inside = np.kron(np.eye(len(covariates.columns)), within)
        projection = block_diag(inside, np.eye(beside_worths(design)))
        return replace(everything, label=label, projection=projection)

    @property
    def groups(self) -> list[IntArray]:
        """The positions of the items of each component."""
        return np.split(
            np.argsort(self.label, kind="stable"), np.bincount(self.label).cumsum()[:-1]
        )

    @property
    def together(self) -> BoolArray:
        """Whether the difference of two items is identified, shape (m, m), False for i = j."""
        return np.asarray(
            (self.label[:, None] == self.label) & ~np.eye(len(self.label), dtype=bool)
        )

    def within(self, rows: FloatArray) -> FloatArray:
        """Return the identified part of rows of worths or coefficients, shape (rows, p).

        Worths are then centred within their component. Rows without an identified part are 0.
        """
        if self.projection is None:
            return rows
        inside = self.projected(rows).copy()
        if not self.centred:
            inside[~self.identifies(rows)] = 0.0
        inside[np.abs(inside).max(axis=1, initial=0.0) <= 1e-9] = 0.0
        return inside

    def projected(self, rows: FloatArray) -> FloatArray:
        """Return rows of coefficients, shape (rows, p), projected onto the identified space."""
        return rows if self.projection is None else product(rows, self.projection)

    def identifies(self, rows: FloatArray) -> BoolArray:
        """Return which linear combinations, shape (rows, p), the release identifies."""
        if self.projection is None:
            return np.ones(len(rows), dtype=bool)
        size = np.abs(rows).max(axis=1, initial=0.0)
        off = np.abs(rows - self.projected(rows)).max(axis=1, initial=0.0)
        return np.asarray((off <= 1e-9 * size) & (size > 0))
