"""What encoders hand to mechanisms: sensitive counts, rankings or choices, and their public facts.

The frame itself is gone. They print only their shape and refuse to be pickled or copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from privrank.plans.nullmodel import Missing
from privrank.release.survey import Design, Sample

__all__ = ["Encoded", "EncodedGroups", "EncodedSample", "Rows", "answers_by_person", "sum_by"]

IntArray = NDArray[np.int64]

NONE = np.zeros(0, dtype=np.int64)


def refuse_copy(*_: object) -> NoReturn:
    """Raise: encoded data are sensitive and stay where they are."""
    raise TypeError(
        "encoded data are sensitive and cannot be copied or pickled: store the release of a "
        "fit with to_json() instead."
    )


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
    answers by respondent and pair.

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


class EncodedSample:
    """Sensitive rankings or choices, and the public facts about them.

    Parameters
    ----------
    sample : Sample
        Public facts.
    rows : ndarray of int64
        Ranks, shape (rows, m); or the code of each row's category, shape (rows,), when choices
        have respondents; or the counts by category, shape (k,), when a row is the unit.
    sizes : ndarray of int64 or None
        Where the unit is a respondent, the numbers of rows of each; the rows are in that order.
    ties : bool
        Whether items may share a rank, as the user has declared.
    missing : {"bottom", "half"} or None
        How items without a rank are read, as the user has declared; None if there may be none.
        If this or `ties` is given rows hold twice the ranks. An item without one has 2 m + 2 where
        it is read as below the others, and else 0.
    """

    __slots__ = ("_rows", "_sizes", "missing", "sample", "ties")

    def __init__(
        self,
        sample: Sample,
        rows: IntArray,
        sizes: IntArray | None,
        ties: bool = False,
        missing: Missing | None = None,
    ) -> None:
        self.sample = sample
        self.ties = ties
        self.missing = missing
        self._rows = rows
        self._sizes = sizes

    @property
    def partial(self) -> bool:
        """Whether rankings may have ties or missing items, so that votes may be halves."""
        return self.ties or self.missing is not None

    def __repr__(self) -> str:
        """Show the shape only."""
        sample = self.sample
        return f"<Encoded {sample.kind}: {len(sample.items)} items, {sample.nobs} units>"

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = refuse_copy


class EncodedGroups:
    """Sensitive samples to be compared, and the public facts about them.

    Parameters
    ----------
    sample : Sample
        Public facts; `groups` names the samples.
    parts : sequence of EncodedSample
        The samples, in that order; some may be empty where their sizes are not public.
    partners : ndarray of int64 or None
        Of samples of the same respondents, the place in the second of each one of the first.
    """

    __slots__ = ("_partners", "_parts", "sample")

    def __init__(
        self, sample: Sample, parts: Sequence[EncodedSample], partners: IntArray | None = None
    ) -> None:
        self.sample = sample
        self._parts = tuple(parts)
        self._partners = partners

    def __repr__(self) -> str:
        """Show the shape only."""
        sample = self.sample
        return f"<Encoded {sample.kind}: {len(sample.items)} items, {len(sample.groups)} groups>"

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
