"""The linear predictor of paired comparisons: differences of worths as a linear map, t = E b.

Without covariates the coefficients b are the worths, and the edge e of the pair (i, j) has
t_e = b_i - b_j. E is the incidence matrix of the graph of comparisons
(:func:`privrank.bradley_terry.linear.item_contrasts`).

With covariates the edge e of the pair (i, j) with pattern s has
t_e = z_s' B (x_i - x_j) + u_e' gamma. Here z_s is the row of the model matrix and x_i the row of
item i in the item basis. u_e are the contest covariates, with the sign for item i. The coefficients
b are the rows of B, one after the other, followed by gamma.

If ties have a parameter lambda, it is the last coefficient, and each edge becomes three
(:func:`privrank.bradley_terry.linear.with_ties`).

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
from functools import lru_cache
from itertools import pairwise
from numbers import Real
from typing import Any, cast

import numpy as np
from scipy.linalg import block_diag, helmert

from privrank.bradley_terry.linear import (
    ContestPredictor,
    LinearPredictor,
    capped,
    item_contrasts,
    with_ties,
)
from privrank.bradley_terry.modelmatrix import FIRST, rows_at
from privrank.privacy.sensitivity import INSTRUMENT_STEPS
from privrank.release.survey import INTERCEPT, Covariates, Design, PairCounts
from privrank.util.arrays import BoolArray, FloatArray, IntArray, own_arrays
from privrank.util.solvers import product, spectrum

Ridge = float | FloatArray
"""The matrix of a ridge b' ridge b / 2; a number is a multiple of the identity."""


def ridge_product(ridge: Ridge, b: FloatArray) -> FloatArray:
    """Return the product of a ridge and coefficients."""
    return np.asarray(ridge @ b if isinstance(ridge, np.ndarray) else ridge * b)


def linear_predictor(design: Design, pairs: PairCounts) -> LinearPredictor:
    """Return the linear predictor of a design; with covariates by pattern and pair."""
    covariates = design.covariates
    m = len(design.items)
    worths = item_contrasts(pairs, m)
    if covariates is not None:
        pattern, first = np.divmod(pairs.first, m)
        second = pairs.second % m
        if covariates.contest:
            return _with_contests(design, covariates, pattern, first * m + second)
        worths = LinearPredictor(
            predictor_matrix(design, covariates.matrix[pattern], first, second)
        )
    return with_ties(worths) if design.davidson else worths


def _with_contests(
    design: Design, facts: Covariates, pattern: IntArray, ends: IntArray
) -> ContestPredictor:
    """Return the linear predictor of edges whose contest covariates are their own instruments."""
    m = len(design.items)
    examples = np.unique(facts.kinds, return_index=True)[1]
    codes, place = np.unique(facts.kinds[pattern] * m**2 + ends, return_inverse=True)
    kind, ends = np.divmod(codes, m**2)
    cells = predictor_matrix(design, facts.matrix[examples[kind]], *np.divmod(ends, m))
    contests = facts.contests[pattern]
    return ContestPredictor(
        None,
        cells=LinearPredictor(cells),
        place=place.ravel(),
        contests=contests,
        instruments=contests,
    )


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
    design: Design, rows: FloatArray, first: IntArray, second: IntArray
) -> FloatArray:
    """Return the map from coefficients of worths to the predictors of pairs, shape (pairs, p).

    `rows` are model matrix rows, shape (pairs, K), and `first` and `second` the positions of the
    two items.
    """
    basis = item_basis(design.covariates, len(design.items))
    # z x (x_i - x_j) for each pair: coefficients are the rows of B one after the other
    matrix = rows[:, :, None] * (basis[first] - basis[second])[:, None, :]
    return np.asarray(matrix.reshape(len(rows), rows.shape[1] * basis.shape[1]))


def edge_runs(design: Design, pairs: PairCounts) -> list[slice]:
    """Return the runs of edges that can contain the answers of one unit.

    Without covariates all edges are one run. With covariates there is one run for each combination
    of covariate values, whatever the contests.
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
    edges = len(pairs.first)
    known = _independent(linear.worths or linear, edges)
    if known and covariates.contest:
        known = _independent(with_instruments(design, pairs)[0], edges)
    if not known:
        raise ValueError(
            f"the coefficients of '~ {covariates.described}' cannot be estimated separately from "
            "the public comparisons. Leave out covariates that repeat each other and levels that "
            "no respondent has, and count numbers from about their middle."
        )


def _independent(linear: LinearPredictor, edges: int) -> bool:
    """Return whether the columns of the scores of edges are linearly independent."""
    gram = linear.spread(np.ones(edges))
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    return bool(spectrum(gram / np.outer(scale, scale))[0][0] >= 1e-9)


@dataclass(frozen=True, slots=True, eq=False)
class Instruments:
    """The instruments of contest covariates, which a release of their sums contains.

    Parameters
    ----------
    steps : ndarray of int64, shape (edges, q)
        Instrument of each edge, at most `INSTRUMENT_STEPS` in size.
    unit : ndarray, shape (q,)
        Size of a step, for which the sum of v u is about the sum of squares of u.
    square : ndarray, shape (q,)
        Mean square of the part of each covariate that differences of items do not explain.
    """

    steps: IntArray
    unit: FloatArray
    square: FloatArray


@lru_cache(maxsize=4)
def instruments_of(design: Design) -> Instruments:
    """Return the instruments of the contest covariates of a public design.

    The instrument of u is u minus its least-squares projection on the differences of worths,
    clipped at 1.5 standard deviations and rounded to steps. The estimating equations are unbiased
    for any public instrument, so clipping and rounding cost efficiency alone: a normal covariate
    loses 4% of it. A covariate of -1, 0 and 1 is its own instrument. A few outliers have little
    influence on the standard deviation (:func:`privrank.bradley_terry.linear.capped`).
    """
    pairs = cast(PairCounts, design.pairs)
    linear = cast(ContestPredictor, linear_predictor(design, pairs))
    k = linear.cells.size
    inner = linear.information(np.asarray(pairs.count, dtype=np.float64))
    explained = linear.cells.inverse(inner[:k, :k]) @ inner[:k, k:]
    left = capped(linear.contests - linear.cells.predict(explained.T)[:, linear.place].T)
    deviation = np.sqrt(np.maximum(pairs.count @ left**2 / pairs.total, 1e-300))
    own = np.isin(linear.contests, (-1, 0, 1)).all(axis=0)
    left = np.where(own, linear.contests, left)
    bound = np.where(own, 1.0, np.minimum(1.5 * deviation, np.abs(left).max(axis=0)))
    steps = np.rint(INSTRUMENT_STEPS * np.clip(left / bound, -1.0, 1.0))
    square = pairs.count @ left**2 / pairs.total
    unit = square * pairs.total / np.maximum(pairs.count @ (steps * left), 1e-300)
    return Instruments(steps.astype(np.int64), np.where(own, 1.0 / INSTRUMENT_STEPS, unit), square)


def with_instruments(design: Design, pairs: PairCounts) -> tuple[LinearPredictor, FloatArray]:
    """Return the linear predictor with instruments, and the map from their sums to scores."""
    used = instruments_of(design)
    linear = cast(ContestPredictor, linear_predictor(design, pairs))
    moved = np.vstack((np.zeros((linear.cells.size, len(used.unit))), 0.5 * np.diag(used.unit)))
    return replace(linear, instruments=used.steps * used.unit), moved


def display(design: Design) -> FloatArray:
    """Return the map from fitted to shown coefficients, shape (shown, p)."""
    facts = design.covariates or INTERCEPT
    lengths = np.linalg.norm(facts.item_matrix, axis=0)
    block = (
        np.diag(1.0 / lengths) if len(lengths) else item_basis(design.covariates, len(design.items))
    )
    table = block_diag(np.kron(np.eye(len(facts.columns)), block), np.eye(len(facts.contest)))
    return np.pad(table, ((0, 0), (0, int(design.davidson))))


def names_shown(design: Design) -> tuple[str, ...]:
    """Return the names of the shown coefficients."""
    covariates = design.covariates or INTERCEPT
    names = tuple(
        item if column == "Intercept" else f"{column}:{item}"
        for column in covariates.columns
        for item in covariates.item_columns or design.items
    )
    return (*names, *covariates.contest)


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
    """Return the number of coefficients that are not worths: of contests, or a tie parameter."""
    return int(design.davidson) + len((design.covariates or INTERCEPT).contest)


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

    `columns` are the values of the covariates for each pair, of contest covariates with the sign
    for its first item. Contest covariates that are left out are 0, but the first item is the item
    named first.
    """
    facts = design.covariates or INTERCEPT
    table = predictor_matrix(design, rows_at(facts, columns, len(first)), first, second)
    contests = np.empty((len(first), len(facts.contest)))
    for column, name in zip(contests.T, facts.contest, strict=True):
        given = columns.get(name, [float(name == FIRST)] * len(first))
        column[:] = [value if isinstance(value, Real) else np.nan for value in given]
    if not np.isfinite(contests).all():
        raise ValueError(f"{', '.join(facts.contest)} must be finite numbers in each row.")
    return np.pad(np.hstack((table, contests)), ((0, 0), (0, int(design.davidson))))


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
