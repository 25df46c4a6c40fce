"""Sensitive counts of comparisons, and the rows of respondents from which a fit draws some."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privrank.encode.frames import refuse_copy
from privrank.release.survey import Design

__all__ = ["Encoded", "Rows", "answers_by_person", "sum_by"]

IntArray = NDArray[np.int64]

NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Answers of respondents before any is left out: rows that are alike, and their number.

    Parameters
    ----------
    first, second : ndarray of int64
        The items of each pair met.
    person, pair, sign : ndarray of int64
        Respondent, pair, and answer of rows that are alike, in this order.
    size : ndarray of int64
        How many rows these are.
    """

    first: IntArray
    second: IntArray
    person: IntArray
    pair: IntArray
    sign: IntArray
    size: IntArray


class Encoded:
    """Sensitive counts of a comparisons frame, and the public facts about them.

    Holds the comparisons per pair, the net wins per item and, where the unit is a respondent, the
    answers by respondent and pair; the frame itself is gone. It prints only its shape and refuses
    to be pickled or copied.

    Parameters
    ----------
    design : Design
        Public facts.
    pairs : tuple of ndarray of int64
        First item, second item, comparisons, and wins minus losses of the first, per pair met.
    answers : tuple of ndarray of int64 or None
        Respondent, pair, comparisons, and wins minus losses, per respondent and pair.
    units : ndarray of int64 or None
        Units per pattern of covariates; None without covariates. With them item i with pattern s
        has the number s m + i in `pairs`.
    rows : Rows or None
        What a fit draws from where respondents may have any number of rows
        (:func:`privrank.mechanisms.tallies.bounded`); until then there are no counts.
    """

    __slots__ = ("_answers", "_pairs", "_rows", "_units", "design")

    def __init__(
        self,
        design: Design,
        pairs: tuple[IntArray, IntArray, IntArray, IntArray],
        answers: tuple[IntArray, IntArray, IntArray, IntArray] | None,
        units: IntArray | None = None,
        rows: Rows | None = None,
    ) -> None:
        self.design = design
        self._pairs = pairs
        self._answers = answers
        self._units = units
        self._rows = rows

    @classmethod
    def unbounded(cls, design: Design, rows: Rows, units: IntArray | None) -> Encoded:
        """Return data whose rows are still to be drawn: they count nothing before that."""
        return cls(design, (NONE, NONE, NONE, NONE), None, units, rows)

    def __repr__(self) -> str:
        """Show the shape only."""
        return f"<Encoded comparisons: {len(self.design.items)} items, {self.design.nobs} units>"

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = refuse_copy


def answers_by_person(
    person: IntArray, pair: IntArray, comparisons: IntArray, net: IntArray, pairs: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return respondent, pair, comparisons and net wins, one entry per respondent and pair."""
    cells, cell = np.unique(person * pairs + pair, return_inverse=True)
    counts = sum_by(cell, comparisons, len(cells)), sum_by(cell, net, len(cells))
    return (cells // pairs, cells % pairs, *counts)


def sum_by(index: IntArray, values: IntArray, size: int) -> IntArray:
    """Return integer sums by group; float64 sums of integers below 2^53 are exact."""
    return np.bincount(index, values, minlength=size).astype(np.int64)
