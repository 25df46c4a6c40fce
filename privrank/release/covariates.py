"""The linear predictor of a Bradley-Terry model with covariates: public facts, and their algebra.

A *pattern* is one combination of covariate values. Categorical covariates cut the units into
*cells*; numeric ones, scaled to [-1, 1] by their bounds, enter as *monomials* u_1^e_1 u_2^e_2 ...
with exponents 0 or 1. The *rows* of the released statistic are the cells times the monomials: row
(c, e) is the sum over the units of cell c of the monomial times the unit's net wins. Every column
of the model matrix is a linear combination of rows, so that all models with these covariates can be
fitted to the same statistic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from math import prod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.util.arrays import own

__all__ = ["FINENESS", "Covariates", "scaled_position"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

FINENESS = 2**20
"""Lattice steps per unit of a scaled numeric covariate."""


@dataclass(frozen=True, slots=True, eq=False)
class Covariates:
    """What is public about the covariates of a model.

    Parameters
    ----------
    formula : str
        Right side of the formula.
    factors : tuple of (str, tuple of str)
        Names and declared levels of the categorical covariates.
    bounds : tuple of (str, float, float)
        Names and bounds of the numeric covariates.
    monomials : tuple of tuple of int
        Exponents, 0 or 1, of the numeric covariates in each monomial; all 0 in the first.
    columns : tuple of str
        Names of the K columns of the model matrix.
    terms : tuple of (str, int, int)
        Name of each term, its first column, and one past its last.
    weights : ndarray, shape (R, K)
        Rows of the statistic to columns of the model matrix.
    ordered : bool
        Whether the item that is named first has an advantage of its own.
    item_columns : tuple of str
        Names of the item covariates; empty where every item has a worth of its own.
    item_matrix : ndarray, shape (m, q)
        Item covariates; worths are their linear combinations.
    cell : ndarray of int64, shape (S,)
        Cell of each pattern.
    position : ndarray of int64, shape (S, numerics)
        Numeric covariates of each pattern, scaled to [-1, 1], in steps of 1 / FINENESS.
    first : ndarray of int64, shape (S,)
        1 where the earlier item of a pair was named first, -1 where the later, 0 without an order
        effect.
    units : ndarray, shape (S,)
        Units with the covariates of each pattern, in whichever order items were named, where that
        is public or released; else empty.
    """

    formula: str
    factors: tuple[tuple[str, tuple[str, ...]], ...]
    bounds: tuple[tuple[str, float, float], ...]
    monomials: tuple[tuple[int, ...], ...]
    columns: tuple[str, ...]
    terms: tuple[tuple[str, int, int], ...]
    weights: FloatArray
    ordered: bool
    item_columns: tuple[str, ...]
    item_matrix: FloatArray
    cell: IntArray
    position: IntArray
    first: IntArray
    units: FloatArray | IntArray

    def __post_init__(self) -> None:
        """Take private, read-only copies."""
        for name in ("weights", "item_matrix", "units"):
            object.__setattr__(self, name, own(getattr(self, name), np.float64))
        for name in ("cell", "first"):
            object.__setattr__(self, name, own(getattr(self, name), np.int64))
        shape = (len(self.cell), len(self.bounds))
        object.__setattr__(self, "position", own(np.reshape(self.position, shape), np.int64))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates, the categorical ones first."""
        return (*(name for name, _ in self.factors), *(name for name, _, _ in self.bounds))

    @property
    def patterns(self) -> int:
        """Number of patterns S."""
        return len(self.cell)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return prod(len(levels) for _, levels in self.factors)

    @property
    def rows(self) -> int:
        """Rows R of the statistic."""
        return self.cells * len(self.monomials)

    @property
    def step(self) -> float:
        """Size of a lattice step of the statistic: 1 without numeric covariates."""
        return 1.0 / FINENESS if self.bounds else 1.0

    @property
    def basis(self) -> IntArray:
        """Weight of each pattern in each row of the statistic, in lattice steps, shape (S, R)."""
        table = np.zeros((self.patterns, self.cells, len(self.monomials)), dtype=np.int64)
        here = np.arange(self.patterns)
        table[here, self.cell] = _powers(self.position, self.monomials)
        return table.reshape(self.patterns, self.rows)

    @property
    def kinds(self) -> IntArray:
        """Number the combinations of covariate values, by pattern: orders of naming are one kind.

        All answers of a unit are of one kind.
        """
        values = np.column_stack((self.cell, self.position))
        return np.unique(values, axis=0, return_inverse=True)[1].ravel().astype(np.int64)

    @property
    def matrix(self) -> FloatArray:
        """The model matrix by pattern, shape (S, K)."""
        return np.asarray((self.step * self.basis) @ self.weights)

    @property
    def item_lengths(self) -> FloatArray:
        """Length of each column of the item matrix."""
        return np.asarray(np.linalg.norm(self.item_matrix, axis=0))

    @property
    def cell_labels(self) -> tuple[dict[str, str], ...]:
        """The levels that each cell stands for, the last factor running fastest."""
        names = [name for name, _ in self.factors]
        levels = [levels for _, levels in self.factors]
        return tuple(dict(zip(names, each, strict=True)) for each in product(*levels))

    def rows_at(self, table: Mapping[str, Sequence[Any]], size: int) -> FloatArray:
        """Return model matrix rows at given levels and numbers, shape (size, K).

        Parameters
        ----------
        table : mapping of str to sequence
            Values of the covariates; a numeric one that is left out is in the middle of its bounds.
        size : int
            Length of the sequences.

        Raises
        ------
        ValueError
            If a level is not declared, or a number is out of its bounds.
        """
        cell = np.zeros(size, dtype=np.int64)
        for name, declared in self.factors:
            number = {level: place for place, level in enumerate(declared)}
            place = np.array([number.get(str(v), -1) for v in table.get(name, [None] * size)])
            if size and (place < 0).any():
                raise ValueError(
                    f"covariate {name!r} must be given as one of {', '.join(map(repr, declared))}."
                )
            cell = cell * len(declared) + place
        position = np.zeros((size, len(self.bounds)), dtype=np.int64)
        for column, (name, low, high) in enumerate(self.bounds):
            middle = [0.5 * (low + high)] * size
            given = list(table.get(name, middle))
            numbers = np.array([v if isinstance(v, Real) else np.nan for v in given], dtype=float)
            if not ((numbers >= low) & (numbers <= high)).all():
                raise ValueError(
                    f"covariate {name!r} must be a number in its bounds, {low:g} to {high:g}."
                )
            position[:, column] = scaled_position(numbers, low, high)
        powers = self.step * _powers(position, self.monomials)
        weights = self.weights.reshape(self.cells, len(self.monomials), -1)
        return np.asarray(np.einsum("sp,spk->sk", powers, weights[cell]))

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        record = asdict(self)
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in record.items()
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Covariates:
        """Rebuild from :meth:`to_record`."""
        facts = dict(record)
        facts["factors"] = tuple((name, tuple(levels)) for name, levels in record["factors"])
        for name in ("bounds", "monomials", "terms"):
            facts[name] = tuple(tuple(entry) for entry in record[name])
        for name in ("columns", "item_columns"):
            facts[name] = tuple(record[name])
        rows = len(facts["columns"])
        facts["weights"] = np.reshape(record["weights"], (-1, rows))
        return cls(**{part.name: facts[part.name] for part in fields(cls)})


def scaled_position(values: FloatArray, low: float, high: float) -> IntArray:
    """Return numbers within bounds, scaled to [-1, 1], in lattice steps."""
    scaled = ((values - low) - (high - values)) / (high - low)
    return np.rint(FINENESS * np.clip(scaled, -1.0, 1.0)).astype(np.int64)


def _powers(position: IntArray, monomials: Sequence[tuple[int, ...]]) -> IntArray:
    """Return the monomials of scaled values, in lattice steps, shape (patterns, monomials).

    A product is rounded to the lattice after each factor, so that it never leaves [-1, 1].
    """
    unit = FINENESS if position.shape[1] else 1
    table = np.full((len(position), len(monomials)), unit, dtype=np.int64)
    for column, exponents in enumerate(monomials):
        for name, exponent in enumerate(exponents):
            if exponent:
                exact = table[:, column] * position[:, name]
                table[:, column] = np.rint(exact / FINENESS)
    return table
