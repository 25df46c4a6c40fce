"""What encoders hand to mechanisms, sensitive data with their public facts, and the way there.

All encoders take these steps, in this order:

1. Columns are opened by their names, without a look at a cell (:func:`open_rows`).
2. Items, categories, groups and levels are declared: by the call, or by the types of columns
   (:func:`privrank.encode.frames.declared_items`, :func:`privrank.encode.frames.declared_values`,
   :func:`privrank.bradley_terry.modelmatrix.declare`).
3. Cells become places among what is declared (:func:`declared_codes`).
4. Rows are counted by unit, and bounded (:func:`units_of`).

:mod:`~privrank.encode.comparisons`, :mod:`~privrank.encode.samples` and
:mod:`~privrank.encode.groups` say which columns these are, and refuse what is particular to them.
Then the frame itself is gone. What is encoded prints its shape alone and refuses to be pickled or
copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal, NoReturn, TypeVar, cast

import numpy as np
import pandas as pd

from privrank.encode import coding, frames
from privrank.plans.nullmodel import Missing
from privrank.release.survey import Design, Sample
from privrank.util.arrays import IntArray, Words
from privrank.util.checks import check_name
from privrank.util.workers import in_threads

T = TypeVar("T")

NONE = np.zeros(0, dtype=np.int64)


def refuse_copy(*_: object) -> NoReturn:
    """Raise: encoded data are sensitive and stay where they are."""
    raise TypeError(
        "encoded data are sensitive and cannot be copied or pickled: store the release of a "
        "fit with to_json() instead."
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RespondentBlock:
    """Answers of some whole respondents, none of whom is in another part.

    Parameters
    ----------
    name : ndarray of uint64
        A number for each respondent, by what the frame calls them; two may have the same.
    person : ndarray of int
        The place among these of whom each entry belongs to. An entry is some answers that are
        alike; entries are in the order of their persons, pairs and signs.
    pair : ndarray of int
        Their pair: items i < j and pattern s have the number (s m + i) m + j.
    sign : ndarray of int
        The answer: 1 if item i is preferred, -1 if j is, 0 for a tie.
    size : ndarray of int
        How many answers these are.
    """

    name: Words
    person: IntArray
    pair: IntArray
    sign: IntArray
    size: IntArray

    @property
    def count(self) -> IntArray:
        """Answers of each entry."""
        return self.size.astype(np.int64)

    @property
    def tied(self) -> IntArray:
        """Ties of each entry."""
        return np.asarray(self.count * (self.sign == 0))

    @property
    def net(self) -> IntArray:
        """Wins minus losses of the item that comes first, of each entry."""
        return self.count * self.sign

    @property
    def fingerprint(self) -> int:
        """A number of respondents, pairs and answers, whatever the order and the parts."""
        return fingerprint(self.name, self.person, self.pair, self.sign, self.size)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SampleBlock:
    """Rankings or choices of some whole respondents, none of whom is in another part.

    Parameters
    ----------
    name : ndarray of uint64
        A number for each respondent, by what the frame calls them; two may have the same.
    person : ndarray of int
        The place among these of whom each row belongs to. Rows are in the order of their persons,
        and those of one in an order that they alone decide.
    cells : ndarray of int, shape (rows, columns)
        Ranks; or the code of the category, in one column.
    """

    name: Words
    person: IntArray
    cells: IntArray

    @property
    def fingerprint(self) -> int:
        """A number of respondents and rows, whatever the order and the parts."""
        return fingerprint(self.name, self.person, *self.cells.T)


def fingerprint(name: Words, person: IntArray, *columns: IntArray) -> int:
    """Return a number of the respondents and of all rows; those of separate parts add up.

    A sum of mixed words, in which data that differ by accident have different numbers with a
    probability of about 1 - 2^-64 (a little less where equal rows change together); it is no
    protection against somebody who looks for a collision. It stays with the data, which it is a
    function of.
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
    """Whole respondents, part by part; what a mechanism computes of the parts adds up.

    Parameters
    ----------
    held : tuple of Part, or of Rows by group
        Those in memory.
    made : callable, optional
        Adds up what a function returns of parts that are not: they are made again for it, by a
        cluster. Given the function and what adds two of these.
    """

    held: tuple[Any, ...] = ()
    made: Callable[[Callable[[Any], Any], Callable[[Any, Any], Any]], Any] | None = None

    def total(self, function: Callable[[Any], T], add: Callable[[Any, Any], Any] = np.add) -> T:
        """Return the sum of what a function returns of each part, arrays unless `add` is given."""
        made = self.made or (lambda of_part, plus: reduce(plus, in_threads(of_part, self.held)))
        return cast(T, made(function, add))

    def then(self, change: Callable[[Any], Any]) -> RespondentBlocks:
        """Return the parts that a function makes of these."""
        if self.made is None:
            return RespondentBlocks(tuple(in_threads(change, self.held)))
        return RespondentBlocks(
            made=lambda function, add: self.total(lambda p: function(change(p)), add)
        )

    def group(self, number: int) -> RespondentBlocks:
        """Return the rows of one group, of parts that hold those of several."""
        if self.made is None:
            return RespondentBlocks(
                tuple(part[number] for part in self.held if len(part[number].name))
            )

        def total(function: Callable[[Any], Any], add: Callable[[Any, Any], Any]) -> Any:
            # a part that has nobody of the group adds nothing
            return self.total(lambda p: function(p[number]) if len(p[number].name) else None, add)

        return RespondentBlocks(made=total)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Encoded:
    """Sensitive counts of a comparisons frame, and the public facts about them.

    Holds the comparisons per pair, the net wins per item and, where the unit is a respondent, the
    answers by respondent and pair.

    Parameters
    ----------
    design : Design
        Public facts.
    _pairs : tuple of ndarray of int64
        First item, second item, comparisons, and wins minus losses of the first, per pair met.
    _parts : Parts, optional
        The answers of respondents, where these are the units.
    _units : ndarray of int64 or None
        Units per pattern of covariates; None without covariates. With them item i with pattern s
        has the number s m + i in `_pairs`.
    _loose : bool
        Whether respondents may have any number of rows still, from which a fit draws
        (:func:`privrank.mechanisms.tallies.sample_rows`); until then there are no counts.
    _ties : ndarray of int64, shape (1,)
        Ties in all.
    """

    design: Design
    _pairs: tuple[IntArray, IntArray, IntArray, IntArray]
    _parts: RespondentBlocks | None = None
    _units: IntArray | None = None
    _loose: bool = False
    _ties: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    def __repr__(self) -> str:
        """Show the shape only."""
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
        Ranks, shape (rows, m), or the counts by category, shape (k,), where each row is a unit, or
        one of each unit is left. Of the choices of the same respondents in two samples the code of
        the category of each, shape (rows, 1).
    _people : Parts, optional
        The rows of respondents, where these are the units and may have several.
    ties : bool
        Whether items may share a rank, as the user has declared.
    missing : {"bottom", "half"} or None
        How items without a rank are read, as the user has declared; None if there may be none.
        If this or `ties` is given rows hold twice the ranks. An item without one has 2 m + 2 where
        it is read as below the others, and else 0.
    """

    sample: Sample
    _rows: IntArray
    _people: RespondentBlocks | None = None
    ties: bool = False
    missing: Missing | None = None

    @property
    def partial(self) -> bool:
        """Whether rankings may have ties or missing items, so that votes may be halves."""
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
    """Sensitive samples to be compared, and the public facts about them.

    Parameters
    ----------
    sample : Sample
        Public facts; `groups` names the samples.
    _parts : sequence of EncodedSample
        The samples, in that order; some may be empty where their sizes are not public.
    _partners : ndarray of int64 or None
        Of samples of the same respondents, the place in the second of each one of the first.
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


def narrow(values: IntArray) -> IntArray:
    """Return whole numbers in as few bytes as hold them and the next lower negative."""
    return values.astype(np.min_scalar_type(-1 - int(np.abs(values).max(initial=0))))


def sum_by(index: IntArray, values: IntArray, size: int) -> IntArray:
    """Return integer sums by group; float64 sums of integers below 2^53 are exact."""
    return np.bincount(index, values, minlength=size).astype(np.int64)


def open_rows(frame: object, respondent: object, name: str) -> tuple[object, frames.Frame]:
    """Return a frame with the respondent, if there is one, as a column, and its view.

    Given what messages call the frame.
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
                f"{name} has no column {respondent!r}: name the right one with respondent=."
            )
        frames.check_respondents(view, str(respondent))
    return frame, view


Declared = Literal["items", "categories", "names of null", "groups", "levels"]
"""The declarations that entries of a column are compared with."""

_UNDECLARED: dict[Declared, str] = {
    "items": "column {!r} must hold declared items only: at least one entry is missing or not in "
    "items=, as the column's own distinct values compared with items= will show.",
    "categories": "column {!r} must hold declared categories only: at least one entry is missing "
    "or not in categories=. Declare one for no answer, or impute; counts are for from_counts.",
    "names of null": "column {!r} must hold declared categories only: at least one entry is "
    "missing or not in the names of null. Declare one for no answer, or impute; counts are for "
    "from_counts.",
    "groups": "column {!r} must hold declared groups only: at least one entry is missing or not in "
    "levels=. List there all groups that the questionnaire offers, with one for people who did "
    "not say.",
    "levels": "column {!r} must hold declared levels only: at least one entry is missing or not in "
    "levels=. Declare all that the questionnaire offers, with one for people who did not say.",
}


def declared_codes(
    key: coding.Key, labels: tuple[object, ...], column: str, what: Declared
) -> IntArray:
    """Return the place of each entry among the declared labels; refuse any that has none."""
    codes = key.among(labels)
    if (codes < 0).any():
        raise ValueError(_UNDECLARED[what].format(column))
    return codes


# What a survey may do whose fits can draw from too many rows.
_DRAW = "excess='sample' keep a secret random choice of each respondent's rows."


def units_of(
    respondent: coding.Key | None,
    column: str | None,
    size: IntArray,
    max_rows: float,
    *,
    sampling: bool = False,
) -> int:
    """Return how many units there are: respondents, or if there are none, rows.

    Refuses rows of nobody, and more than `max_rows` of somebody. Given the respondents, their
    column, how many rows each entry stands for, and whether a fit could draw from too many.
    """
    if respondent is None:
        return int(size.sum())
    check_owned(respondent, column)
    # rows by respondent: the message does not say whose are too many, nor how many
    if np.bincount(respondent.codes, size).max(initial=0) > max_rows:
        remedy = f", or let {_DRAW}" if sampling else "."
        raise ValueError(
            f"max_rows={max_rows} must bound the rows of every respondent, and at least one has "
            f"more: state the largest number of rows the questionnaire allows{remedy}"
        )
    return len(respondent.values)


def check_owned(owner: coding.Key, column: str | None, what: str = "respondent") -> None:
    """Refuse rows whose respondent, or other owner, is missing."""
    if (owner.codes < 0).any():
        raise ValueError(
            f"column {column!r} must name the {what} of every row: fill in the missing entries."
        )


def refuse_unused(present: Sequence[Any], used: Sequence[Any], name: str = "frame") -> None:
    """Refuse a column of counts that nothing uses; given the columns and what messages call all."""
    if frames.COUNT in present and frames.COUNT not in used:
        raise ValueError(
            f"{name} has a column {frames.COUNT!r} that nothing uses: name it with "
            f"counts={frames.COUNT!r} if a row stands for so many comparisons, repeat rows that "
            f"stand for so many respondents with "
            f"frame.loc[frame.index.repeat(frame[{frames.COUNT!r}])]"
            f".drop(columns={frames.COUNT!r}), else "
            f"leave it out."
        )


def check_apart(first: IntArray, second: IntArray, columns: Iterable[str]) -> None:
    """Refuse rows that compare an item with itself; given the names of the two columns."""
    if (first == second).any():
        raise ValueError(
            f"columns {' and '.join(map(repr, columns))} must name two different items: at least "
            f"one row compares an item with itself."
        )


def in_order(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray, coding.Signs]:
    """Return each pair in the order of the items, and by which sign its outcome is turned."""
    sign = 1 - 2 * (first > second).astype(np.int8)
    return np.minimum(first, second), np.maximum(first, second), sign


def check_distinct(person: IntArray, pair: IntArray, size: IntArray, *, sampling: bool) -> None:
    """Refuse a pair that a respondent compares twice; given rows by person, pair and number."""
    _, place = np.unique(person * (int(pair.max()) + 1) + pair, return_inverse=True)
    if np.bincount(place, size).max() > 1:
        remedy = f"aggregate first, or let {_DRAW}" if sampling else "or aggregate first."
        raise ValueError(
            f"distinct_pairs=True promises that a respondent compares each pair at most once, and "
            f"at least one repeats a pair: use distinct_pairs=False, {remedy}"
        )
