"""Which items the release connects, and which combinations of coefficients that identifies.

Items that the release does not connect (:func:`privrank.bradley_terry.paircounts.parts_of`) are not
compared in any statement, but their counts are part of the fit. Too few to show how two items
compare, they still move the scores of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrank.bradley_terry.linear import item_basis
from privrank.release.survey import Design
from privrank.util.arrays import BoolArray, FloatArray, IntArray, readonly_copy
from privrank.util.solvers import product, spectrum


@dataclass(frozen=True, eq=False)
class Components:
    """The components of the items, between which no comparisons are known of.

    Parameters
    ----------
    label : ndarray of int64, shape (m,)
        The component of each item, numbered from 0; all 0 if all coefficients are identified.
    projection : ndarray, shape (p, p), or None
        Projection onto the coefficients that are identified; None if all are.
    centred : bool
        Whether worths are those about the mean of their component, as they are unless items have
        covariates.
    """

    label: IntArray
    projection: FloatArray | None = None
    centred: bool = True

    @classmethod
    def of(cls, design: Design, label: IntArray | None) -> Components:
        """Return the components of a design, given those of its comparisons; None if all are one.

        Covariates of items can identify all coefficients although comparisons do not connect them.
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
        """Whether the difference of two items is identified, shape (m, m); no item's of itself."""
        same = self.label[:, None] == self.label
        return np.asarray(same & ~np.eye(len(self.label), dtype=bool))

    def within(self, rows: FloatArray) -> FloatArray:
        """Return rows of worths or coefficients, shape (rows, p), as far as they are identified.

        Worths are then those about the mean of their component; what is not identified at all is 0.
        """
        if self.projection is None:
            return rows
        inside = self.project(rows).copy()
        if not self.centred:
            inside[~self.identifies(rows)] = 0.0
        inside[np.abs(inside).max(axis=1, initial=0.0) <= 1e-9] = 0.0
        return inside

    def project(self, rows: FloatArray) -> FloatArray:
        """Return rows of coefficients, shape (rows, p), on what is identified."""
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

    Of worths those that sum to zero in each component.
    """
    covariates = design.covariates
    m = len(design.items)
    same = label[:, None] == label
    # the centring of each component by itself
    inside = np.asarray(np.eye(m) - same / same.sum(axis=1))
    others = int(design.davidson)
    if covariates is not None:
        basis = item_basis(covariates, m)
        values, vectors = spectrum(basis.T @ inside @ basis)
        # contrasts that compare items of one component, among those that the basis has
        span = vectors[:, values > 1e-9]
        within = span @ span.T
        if np.allclose(within, np.eye(len(within)), atol=1e-9):
            return None
        inside = np.kron(np.eye(len(covariates.columns)), within)
        others = others + covariates.ordered
    known = np.eye(len(inside) + others)
    known[: len(inside), : len(inside)] = inside
    return readonly_copy(known, np.float64)
