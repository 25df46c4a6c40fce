"""Encoded data: the sensitive input of mechanisms, with its public facts.

All encoders take the following steps in this order:

1. Columns are opened by name, before any cell is read (:func:`open_rows`).
2. Items, categories, groups and levels are declared, by the call or by column types
   (:func:`privrank.encode.frames.declared_items`, :func:`privrank.encode.frames.declared_values`,
   :func:`privrank.bradley_terry.modelmatrix.declare`).
3. Cells are replaced by their positions among the declared values (:func:`declared_codes`).
4. Rows are counted by unit, and bounded (:func:`units_of`).

:mod:`~privrank.encode.comparisons`, :mod:`~privrank.encode.choices`,
:mod:`~privrank.encode.samples` and :mod:`~privrank.encode.groups` define the columns and make the
checks specific to their data. The frame itself is not kept. Encoded data print only their shape and
cannot be pickled or copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal, NoReturn, TypeVar, cast

import numpy as np
import pandas as pd

from privrank.encode import coding, frames
from privrank.plans.declarations import Missing
from privrank.release.survey import Design, Sample
from privrank.util.arrays import IntArray, Words
from privrank.util.checks import check_name
from privrank.util.workers import in_threads

T = TypeVar("T")

NONE = np.zeros(0, dtype=np.int64)


def refuse_copy(*_: object) -> NoReturn:
    """Raise a TypeError, because encoded data are sensitive."""
    raise TypeError(
        "encoded data are sensitive and cannot be copied or pickled. Store the release of a "
        "fit with to_json() instead."
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RespondentBlock:
    """All answers of some respondents, who are in no other part.

    Parameters
    ----------
    name : ndarray of uint64
        A hash of each respondent's name; two respondents may have the same hash.
    person : ndarray of int
        The respondent of each entry, as a position in `name`. An entry is a group of identical
        answers. Entries are sorted by person, pair and sign.
    pair : ndarray of int
        The pair of each entry: items i < j and pattern s have the number (s m + i) m + j.
    sign : ndarray of int
        The answer: 1 if item i is preferred, -1 if j is, 0 for a tie.
    size : ndarray of int
        The number of answers of each entry, times the design weight of its respondent.
    weight : ndarray of int
        The design weight of each respondent, 1 without weights.
    """

    name: Words
    person: IntArray
    pair: IntArray
    sign: IntArray
    size: IntArray
    weight: IntArray

    @property
    def count(self) -> IntArray:
        """Number of answers of each entry."""
        return self.size.astype(np.int64)

    @property
    def tied(self) -> IntArray:
        """Number of ties of each entry."""
        return np.asarray(self.count * (self.sign == 0))

    @property
    def net(self) -> IntArray:
        """Wins minus losses of the first item, for each entry."""
        return self.count * self.sign

    @property
    def fingerprint(self) -> int:
        """Fingerprint of respondents, pairs and answers, independent of their order."""
        return fingerprint(self.name, self.person, self.pair, self.sign, self.size)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SampleBlock:
    """All rankings or choices of some respondents, who are in no other part.

    Parameters
    ----------
    name : ndarray of uint64
        A hash of each respondent's name; two respondents may have the same hash.
    person : ndarray of int
        The respondent of each row, as a position in `name`. Rows are sorted by person; the rows of
        one person are in an order that depends on these rows alone.
    cells : ndarray of int, shape (rows, columns)
        Ranks, or one column with the code of the category.
    """

    name: Words
    person: IntArray
    cells: IntArray

    @property
    def fingerprint(self) -> int:
        """Fingerprint of respondents and rows, independent of their order."""
        return fingerprint(self.name, self.person, *self.cells.T)


def fingerprint(name: Words, person: IntArray, *columns: IntArray) -> int:
    """Return a hash of respondents and rows; hashes of separate parts add up.

    The fingerprint is a sum of mixed words. Data that differ by accident have different
    fingerprints with probability about 1 - 2^-64 (slightly less if equal rows change together). It
    does not protect against a deliberate search for collisions. It is a function of the data and is
    stored only with them.
    """
    word = name[person]
    for column in columns:
        word = _mixed(word ^ _mixed(column.astype(np.uint64)))
    return (int(word.sum()) + int(_mixed(name).sum())) % 2**64


def _mixed(word: Words) -> Words:
    """Return the finaliser of SplitMix64 of each word."""
    word = word + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RespondentBlocks:
    """Respondents in parts; the results of a mechanism for the parts add up.

    Parameters
    ----------
    held : tuple of RespondentBlock, or of tuples of SampleBlock by group
        The parts in memory.
    made : callable, optional
        For parts that are not in memory: a callable of (function, add) that computes the parts
        again on a cluster, applies the function to each and adds up the results.
    """

    held: tuple[Any, ...] = ()
    made: Callable[[Callable[[Any], Any], Callable[[Any, Any], Any]], Any] | None = None

    def total(self, function: Callable[[Any], T], add: Callable[[Any, Any], Any] = np.add) -> T:
        """Apply a function to each part and return the sum, computed with `add`."""
        made = self.made or (lambda of_part, plus: reduce(plus, in_threads(of_part, self.held)))
        return cast(T, made(function, add))

    def then(self, change: Callable[[Any], Any]) -> RespondentBlocks:
        """Return the parts after applying a function to each."""
        if self.made is None:
            return RespondentBlocks(tuple(in_threads(change, self.held)))
        return RespondentBlocks(
            made=lambda function, add: self.total(lambda p: function(change(p)), add)
        )


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Encoded:
    """Sensitive counts of a comparisons frame, and the public facts about them.

    Contains the comparisons and net wins per pair and, if the unit is a respondent, the answers by
    respondent and pair.

    Parameters
    ----------
    design : Design
        Public facts.
    _pairs : tuple of ndarray of int64
        First item, second item, comparisons, and wins minus losses of the first item, for each pair
        that occurs.
    _parts : RespondentBlocks, optional
        The answers of respondents, if these are the units; empty if rows are.
    _units : ndarray of int64 or None
        Number of units per covariate pattern; None without covariates. With covariates, item i with
        pattern s has the number s m + i in `_pairs`.
    _loose : bool
        Whether the rows per respondent are not bounded yet. A fit then draws from them
        (:func:`privrank.mechanisms.tallies.sample_rows`), and there are no counts before the draw.
    _ties : ndarray of int64, shape (1,)
        Total number of ties.
    """

    design: Design
    _pairs: tuple[IntArray, IntArray, IntArray, IntArray]
    _parts: RespondentBlocks = RespondentBlocks()
    _units: IntArray | None = None
    _loose: bool = False
    _ties: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    def __repr__(self) -> str:
        """Return a string that shows only the shape."""
        return f"<Encoded comparisons: {len(self.design.items)} items, {self.design.nobs} units>"

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = refuse_copy


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class EncodedSample:
    """Sensitive rankings or choices, and the public facts about them.

    Parameters
    ----------
    sample : Sample
        Public facts.
    _rows : ndarray of int64
        If each row is a unit, or one row per unit remains: ranks, shape (rows, m), or counts by
        category, shape (k,). For choices of the same respondents in two samples: the code of each
        choice's category, shape (rows, 1).
    _people : RespondentBlocks, optional
        The rows of respondents, if these are the units and may have several rows.
    ties : bool
        Whether items may share a rank (declared by the user).
    missing : {"bottom", "half"} or None
        How items without a rank are treated (declared by the user); None if they are not allowed.
        If this or `ties` is given, rows contain twice the ranks. An item without a rank then has
        2 m + 2 if it is treated as below the others, and 0 if not.
    """

    sample: Sample
    _rows: IntArray
    _people: RespondentBlocks | None = None
    ties: bool = False
    missing: Missing | None = None

    @property
    def partial(self) -> bool:
        """Whether rankings may have ties or missing items, and hence half votes."""
        return self.ties or self.missing is not None

    def __repr__(self) -> str:
        """Show the shape only."""
        return (
            f"<Encoded {self.sample.kind}: {len(self.sample.items)} items, "
            f"{self.sample.nobs} units>"
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = refuse_copy


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class EncodedGroups:
    """Sensitive samples for a comparison, and the public facts about them.

    Parameters
    ----------
    sample : Sample
        Public facts; `groups` names the samples.
    _parts : sequence of EncodedSample
        The samples in that order. Some may be empty if their sizes are not public.
    _partners : ndarray of int64 or None
        If two samples have the same respondents: the position in the second sample of each
        respondent of the first.
    """

    sample: Sample
    _parts: Sequence[EncodedSample]
    _partners: IntArray | None = None

    def __repr__(self) -> str:
        """Show the shape only."""
        return (
            f"<Encoded {self.sample.kind}: {len(self.sample.items)} items, "
            f"{len(self.sample.groups)} groups>"
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = refuse_copy


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class EncodedChoices:
    """Sensitive totals of choices from offered sets, and the public facts about them.

    Parameters
    ----------
    design : Design
        Public facts, with the offered sets.
    _totals : ndarray of int64, shape (units, m)
        Item vector of each respondent: the position scores of all answers, added up by item. If
        each row is a unit, shape (versions, m): sums over the rows of each questionnaire. If tasks
        may be unanswered, one more column contains the number of answered tasks.
    _version : ndarray of int64
        The questionnaire of each row of `_totals`, as a position in ``design.offered.versions``.
    _ahead : ndarray of int64 or None
        Number of orders that place item i before item j, by pair i < j; None for other answers.
    """

    design: Design
    _totals: IntArray
    _version: IntArray
    _ahead: IntArray | None = None

    @property
    def sample(self) -> Design:
        """Public facts, by their name in other data of tests."""
        return self.design

    def __repr__(self) -> str:
        """Return a string that shows only the shape."""
        return f"<Encoded choices: {len(self.design.items)} items, {self.design.nobs} units>"

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = refuse_copy


def narrow(values: IntArray) -> IntArray:
    """Return integers in the smallest signed type that also holds -max - 1."""
    return values.astype(np.min_scalar_type(-1 - int(np.abs(values).max(initial=0))))


def sum_by(index: IntArray, values: IntArray, size: int) -> IntArray:
    """Return integer sums by group.

    Sums of integers below 2^53 are exact in float64.
    """
    return np.bincount(index, values, minlength=size).astype(np.int64)


def open_rows(frame: object, respondent: object, name: str) -> tuple[object, frames.Frame]:
    """Return a frame with the respondent (if any) as a column, and its view.

    `name` is the name of the frame in messages.
    """
    if respondent is not None:
        check_name(respondent, "respondent")
    frame = frames.with_respondent_column(frame, respondent)
    if isinstance(frame, pd.DataFrame) and not all(isinstance(c, str) for c in frame.columns):
        frame = frame.set_axis([str(label) for label in frame.columns], axis=1)
    view = frames.open_frame(frame, name)
    if respondent is not None:
        if respondent not in frames.column_names(view):
            raise ValueError(
                f"{name} has no column {respondent!r}. Name the right column with respondent=."
            )
        frames.check_respondents(view, str(respondent))
    return frame, view


Declared = Literal["items", "categories", "names of null", "groups", "levels"]
"""The declarations with which the entries of a column are compared."""

_UNDECLARED: dict[Declared, str] = {
    "items": "column {!r} contains a missing value or a value that is not listed in items. Compare "
    "the distinct values of the column with items, and add or correct names.",
    "categories": "column {!r} contains a missing value or a value that is not listed in "
    "categories. List all answers of the questionnaire in categories, including one for "
    "nonresponse, or impute missing answers beforehand. For a table of counts use from_counts().",
    "names of null": "column {!r} contains a missing value or a value that is not among the names "
    "of null. Add all answers of the questionnaire to null, including one for nonresponse, or "
    "impute missing answers beforehand. For a table of counts use from_counts().",
    "groups": "column {!r} contains a missing value or a value that is not listed in levels. List "
    "all groups of the questionnaire in levels, including one for nonresponse.",
    "levels": "column {!r} contains a missing value or a value that is not listed in levels. List "
    "all levels of the questionnaire in levels, including one for nonresponse.",
}


def declared_codes(
    key: coding.Key, labels: tuple[object, ...], column: str, what: Declared
) -> IntArray:
    """Return the position of each entry among the declared labels; refuse others."""
    codes = key.among(labels)
    if (codes < 0).any():
        raise ValueError(_UNDECLARED[what].format(column))
    return codes


_DRAW = "excess='sample' keep a secret random selection of each respondent's rows."
"""The end of a remedy, for fits that can draw from too many rows."""


def units_of(
    respondent: coding.Key | None,
    column: str | None,
    size: IntArray,
    max_rows: float,
    *,
    sampling: bool = False,
) -> int:
    """Return the number of units: respondents, or rows without respondents.

    `column` is the name of the respondent column, `size` is the number of rows of each entry, and
    `sampling` is whether a fit could draw from too many rows. Refuses rows without a respondent and
    respondents with more than `max_rows` rows.
    """
    if respondent is None:
        return int(size.sum())
    check_owned(respondent, column)
    # the message reveals neither which respondent has too many rows nor how many
    if np.bincount(respondent.codes, size).max(initial=0) > max_rows:
        remedy = f", or let {_DRAW}" if sampling else "."
        raise ValueError(
            f"max_rows={max_rows} must bound the rows of every respondent, and at least one "
            f"respondent has more. State the largest number of rows the questionnaire "
            f"allows{remedy}"
        )
    return len(respondent.values)


def check_owned(owner: coding.Key, column: str | None, what: str = "respondent") -> None:
    """Refuse rows whose respondent, or other owner, is missing."""
    if (owner.codes < 0).any():
        raise ValueError(
            f"column {column!r} must name the {what} of every row, and at least one entry is "
            f"missing. Fill in the missing entries."
        )


def refuse_unused(present: Sequence[Any], used: Sequence[Any], name: str = "frame") -> None:
    """Refuse an unused column of counts.

    `present` are the columns of the frame and `name` is its name in messages.
    """
    if frames.COUNT in present and frames.COUNT not in used:
        raise ValueError(
            f"{name} has a column {frames.COUNT!r} that is not used. If it counts comparisons, use "
            f"counts={frames.COUNT!r}; if it counts respondents, repeat the rows with "
            f"frame.loc[frame.index.repeat(frame[{frames.COUNT!r}])]"
            f".drop(columns={frames.COUNT!r}). In all other cases drop the column."
        )


def check_apart(first: IntArray, second: IntArray, columns: Iterable[str]) -> None:
    """Refuse rows that compare an item with itself; `columns` are the two names."""
    if (first == second).any():
        raise ValueError(
            f"columns {' and '.join(map(repr, columns))} must name two different items, and at "
            f"least one row compares an item with itself. Correct the names in such rows."
        )


def in_order(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray, coding.Signs]:
    """Return each pair in the order of the items, and the sign for its outcome."""
    return (
        np.minimum(first, second),
        np.maximum(first, second),
        1 - 2 * (first > second).astype(np.int8),
    )


def check_distinct(person: IntArray, pair: IntArray, size: IntArray, *, sampling: bool) -> None:
    """Refuse respondents who compare a pair twice.

    `person`, `pair` and `size` are the respondent, the pair and the number of rows of each entry.
    """
    _, place = np.unique(person * (int(pair.max()) + 1) + pair, return_inverse=True)
    if np.bincount(place, size).max() > 1:
        remedy = f"aggregate first, or let {_DRAW}" if sampling else "or aggregate first."
        raise ValueError(
            f"distinct_pairs=True promises that a respondent compares each pair at most once, and "
            f"at least one respondent repeats a pair. Use distinct_pairs=False, {remedy}"
        )
