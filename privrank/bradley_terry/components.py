"""Connected components of the items, and the coefficients that they identify.

No statement compares items that the release does not connect
(:func:`privrank.bradley_terry.paircounts.parts_of`). Their released counts are part of the fit
nevertheless, because a count that is too small to compare two items still moves both scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrank.bradley_terry.linear import item_basis
from privrank.release.survey import Design
from privrank.util.arrays import BoolArray, FloatArray, IntArray, own_arrays, readonly_copy
from privrank.util.solvers import product, spectrum


@dataclass(frozen=True, eq=False)
class Components:
    """The components of the items, between which the release shows no comparisons.

    Parameters
    ----------
    label : ndarray of int64, shape (m,)
        The component of each item, numbered from 0; all 0 if all coefficients are identified.
    projection : ndarray, shape (p, p), or None
        Projection onto the coefficients that are identified; None if all are.
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
        projection = None if label is None else _identified(design, label)
        if label is None or projection is None:
            label = np.zeros(len(design.items), dtype=np.int64)
        return cls(label, projection, not (design.covariates and design.covariates.item_columns))

    @property
    def groups(self) -> list[IntArray]:
        """The positions of the items of each component."""
        sizes = np.bincount(self.label)
        return np.split(np.argsort(self.label, kind="stable"), sizes.cumsum()[:-1])

    @property
    def together(self) -> BoolArray:
        """Whether the difference of two items is identified, shape (m, m), False for i = j."""
        same = self.label[:, None] == self.label
        return np.asarray(same & ~np.eye(len(self.label), dtype=bool))

    def within(self, rows: FloatArray) -> FloatArray:
        """Return the identified part of rows of worths or coefficients, shape (rows, p).

        Worths are then centred within their component. Rows without an identified part are 0.
        """
        if self.projection is None:
            return rows
        inside = self.project(rows).copy()
        if not self.centred:
            inside[~self.identifies(rows)] = 0.0
        inside[np.abs(inside).max(axis=1, initial=0.0) <= 1e-9] = 0.0
        return inside

    def project(self, rows: FloatArray) -> FloatArray:
        """Return rows of coefficients, shape (rows, p), projected onto the identified space."""
        return rows if self.projection is None else product(rows, self.projection)

    def identifies(self, rows: FloatArray) -> BoolArray:
        """Return which linear combinations, shape (rows, p), the release identifies."""
        if self.projection is None:
            return np.ones(len(rows), dtype=bool)
        size = np.abs(rows).max(axis=1, initial=0.0)
        off = np.abs(rows - self.project(rows)).max(axis=1, initial=0.0)
        return np.asarray((off <= 1e-9 * size) & (size > 0))


def _identified(design: Design, label: IntArray) -> FloatArray | None:
    """Return the projection onto coefficients that are identified, shape (p, p); None if all are.

    Without covariates these are the worths that sum to zero within each component.
    """
    covariates = design.covariates
    m = len(design.items)
    same = label[:, None] == label
    # centring within each component
    inside = np.asarray(np.eye(m) - same / same.sum(axis=1))
    others = int(design.davidson)
    if covariates is not None:
        basis = item_basis(covariates, m)
        values, vectors = spectrum(basis.T @ inside @ basis)
        # contrasts of the basis that compare items of one component
        span = vectors[:, values > 1e-9]
        within = span @ span.T
        if np.allclose(within, np.eye(len(within)), atol=1e-9):
            return None
        inside = np.kron(np.eye(len(covariates.columns)), within)
        others = others + covariates.ordered
    known = np.eye(len(inside) + others)
    known[: len(inside), : len(inside)] = inside
    return readonly_copy(known, np.float64)
