"""The forms that comparisons come in, each read as two items, an outcome and who answered.

Messages name arguments, columns and rules, never a cell's value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.encode.frames import (
    COUNT,
    check_counted,
    check_filled,
    check_name,
    check_present,
    check_rows,
    collect_wide,
    declared_items,
    item_codes,
    open_wide,
    with_respondent_column,
)
from privrank.encode.shapes import comparisons_call
from privrank.util.checks import check_items

__all__ = [
    "Compared",
    "answered",
    "read_counts",
    "read_decided",
    "read_long",
    "read_wide",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Names = tuple[Any, ...]

_CONVENTION = {"first": 1, "second": -1, "tie": 0}


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Comparisons by row: positions of two items, the outcome, and who answered how often."""

    labels: Names
    first: IntArray
    second: IntArray
    outcome: FloatArray
    person: pd.Series[Any] | pd.Index | None
    counts: IntArray | None = None


def answered(
    outcome: FloatArray,
    first: IntArray,
    second: IntArray,
    labels: Names,
    index: pd.Index,
    respondent: str | None,
) -> Compared:
    """Return the answers of a table with a row per respondent and a column per pair.

    Questions not answered have no row, but whoever answered none keeps the first.
    """
    number = pd.RangeIndex(len(outcome))
    person = number if respondent is None else index.get_level_values(respondent)
    given = ~np.isnan(outcome)
    codes, _ = pd.factorize(person)
    some = np.bincount(codes, given.any(axis=1)) > 0
    given[np.unique(codes, return_index=True)[1][~some], 0] = True
    row, pair = np.nonzero(given)
    return Compared(labels, first[pair], second[pair], outcome[row, pair], person.take(row))


def read_wide(
    frame: object,
    items: object,
    respondent: str | None,
    pairs: object,
    sep: object,
    codes: object,
    distinct: bool,
) -> Compared:
    """Read one row per respondent and one column per pair."""
    view, others = open_wide(frame, respondent)
    asked, labels = _pair_columns(others, items, pairs, sep)
    check_counted(others, list(asked))
    place = {label: k for k, label in enumerate(labels)}
    first, second = np.array([[place[a], place[b]] for a, b in asked.values()]).T
    cells = np.minimum(first, second) * len(labels) + np.maximum(first, second)
    if distinct and len(np.unique(cells)) < len(cells):
        raise ValueError(
            "form='wide' must have one column per pair, and at least one pair has two, in the same "
            "or in both orders: leave one out of pairs=, or use distinct_pairs=False if they are "
            "questions of their own."
        )
    table, index = collect_wide(view, list(asked), respondent)
    meaning = _check_codes(codes)
    outcome = [
        _outcomes(table[name], meaning, int(a), int(b), labels)
        for name, a, b in zip(asked, first, second, strict=True)
    ]
    return answered(np.column_stack(outcome), first, second, labels, index, respondent)


def read_long(
    frame: object,
    items: object,
    respondent: str | None,
    names: tuple[str, str],
    outcome: str,
    codes: object,
    counts: str | None,
) -> Compared:
    """Read one row per comparison, with an answer in codes that are declared."""
    meaning = _check_codes(codes)
    roles = {"item1": names[0], "item2": names[1], "outcome": outcome, "counts": counts}
    rows = _read_rows(frame, items, respondent, roles)
    answer = _outcomes(rows.table[outcome], meaning, rows.first, rows.second, rows.labels)
    number = None if counts is None else rows.whole(counts)
    return Compared(rows.labels, rows.first, rows.second, answer, rows.person, number)


def read_decided(
    frame: object,
    items: object,
    respondent: str | None,
    names: tuple[str, str],
    ties: object,
    counts: str | None,
) -> Compared:
    """Read one row per comparison, with the item preferred and the other one.

    The items come in the order of `labels`: with the winner in front, which item a row names first,
    a public fact under a public design, would be the answer.
    """
    tied = _tie_column(ties)
    roles = {"winner": names[0], "loser": names[1], "ties": tied, "counts": counts}
    rows = _read_rows(frame, items, respondent, roles)
    outcome = np.ones(len(rows.table))
    if tied is not None:
        codes, values = counting.factorize(rows.table[tied], tied)
        flags = [{0: 1.0, 1: 0.0}.get(value, np.nan) for value in values.tolist()]
        outcome = np.array([*flags, np.nan])[codes]
        if np.isnan(outcome).any():
            raise ValueError(
                f"column {tied!r} must say of every row whether it is a tie, with True or False, "
                f"or 1 and 0: recode it, and give rows without an answer as form='long'."
            )
    number = None if counts is None else rows.whole(counts)
    low, high = np.minimum(rows.first, rows.second), np.maximum(rows.first, rows.second)
    outcome = np.where(rows.first == low, outcome, 0.0 - outcome)
    return Compared(rows.labels, low, high, outcome, rows.person, number)


def read_counts(
    frame: object,
    items: object,
    respondent: str | None,
    names: tuple[str, str],
    wins: tuple[str, str],
    ties: object,
    distinct: bool,
) -> Compared:
    """Read one row per pair, with how often each item was preferred and how often they tied."""
    tied = _tie_column(ties)
    roles = {"item1": names[0], "item2": names[1], "win1": wins[0], "win2": wins[1], "ties": tied}
    rows = _read_rows(frame, items, respondent, roles)
    low, high = np.minimum(rows.first, rows.second), np.maximum(rows.first, rows.second)
    person = np.zeros_like(low) if rows.person is None else pd.factorize(rows.person)[0]
    if distinct and pd.DataFrame({"low": low, "high": high, "who": person}).duplicated().any():
        raise ValueError(
            "form='counts' must have one row per pair, and at least one pair has two, in the same "
            "or in both orders: add up what is there twice, or use distinct_pairs=False if all "
            "rows count, as home and away games do."
        )
    outcomes = {1.0: wins[0], -1.0: wins[1]} | ({} if tied is None else {0.0: tied})
    every = np.repeat(np.arange(len(low)), len(outcomes))
    # where a pair has one row, its first item may be the one that won
    turned = distinct & (rows.first > low)[every]
    outcome = np.tile(list(outcomes), len(low))
    return Compared(
        rows.labels,
        np.where(turned, rows.second[every], rows.first[every]),
        np.where(turned, rows.first[every], rows.second[every]),
        np.where(turned, 0.0 - outcome, outcome),
        None if rows.person is None else rows.person.take(every),
        np.column_stack([rows.whole(name) for name in outcomes.values()]).ravel(),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows that name two items each."""

    table: pd.DataFrame
    labels: Names
    first: IntArray
    second: IntArray
    person: pd.Series[Any] | None

    def whole(self, column: str) -> IntArray:
        return counting.whole_counts(self.table[column], column)


def _read_rows(
    frame: object, items: object, respondent: str | None, roles: dict[str, str | None]
) -> _Rows:
    """Return the rows; the first two of the columns, given by role, name the items."""
    optional = ("ties", "counts", "respondent")
    roles = roles | {"respondent": respondent}
    given = {role: name for role, name in roles.items() if role not in optional or name is not None}
    for role, name in given.items():
        check_name(name, role)
    frame = with_respondent_column(frame, respondent)
    view = counting.open_frame(frame, "frame")
    present = counting.column_names(view)
    for role, name in given.items():
        if name not in present:
            raise ValueError(
                f"frame has no column {name!r}: name the right one with {role}=, or the form of "
                f"the data, as in {comparisons_call(frame, items)}."
            )
    if len(set(given.values())) < len(given):
        raise ValueError(f"{'=, '.join(given)}= must name different columns.")
    _check_used(present, roles, list(given.values()))
    named = list(given.values())[:2]
    labels = declared_items(frame, named, items)
    table = counting.collect(view, list(given.values()))
    check_rows(len(table))
    first, second = (item_codes(table[name], labels, name) for name in named)
    if min(first.min(), second.min()) < 0:
        raise ValueError(
            f"columns {named[0]!r} and {named[1]!r} must name an item in every row: fill in the "
            f"missing entries, and give a row without an answer a missing outcome in form='long'."
        )
    if (first == second).any():
        raise ValueError(
            f"columns {named[0]!r} and {named[1]!r} must name two different items: at least one "
            f"row compares an item with itself."
        )
    if respondent is None:
        return _Rows(table, labels, first, second, None)
    check_filled(table[respondent], respondent)
    counting.factorize(table[respondent], respondent)  # refuses what has no hash
    return _Rows(table, labels, first, second, table[respondent])


def _check_used(
    present: Sequence[Any], roles: Mapping[str, str | None], used: Sequence[str | None]
) -> None:
    """Refuse counts and ties that nothing uses, in a column with the usual name."""
    for role, name, what in (
        ("counts", COUNT, "a row stands for so many comparisons"),
        ("ties", "ties", "it says where ties are"),
    ):
        if name in present and name not in used and (role in roles or name == COUNT):
            remedy = f"name it with {role}={name!r} if {what}, else drop it"
            raise ValueError(
                f"frame has a column {name!r} that nothing uses: "
                f"{remedy if role in roles else 'drop it, because the wins are counts already'}."
            )


def _tie_column(ties: object) -> str | None:
    if ties is False:
        return None
    if not isinstance(ties, str):
        raise TypeError(
            f"ties must be the name of the column that says where ties are, or False if there are "
            f"none, got {type(ties).__name__}."
        )
    return ties


def _pair_columns(
    others: Sequence[Any], items: object, pairs: object, sep: object
) -> tuple[dict[Any, tuple[Any, Any]], Names]:
    """Return which column asks for which pair, and the items."""
    if (pairs is None) == (sep is None):
        raise ValueError(
            "form='wide' must be told which column asks for which pair, in one way: with "
            "pairs={'column': (item, item), ...}, or with sep= if the columns are named by two "
            "items and what stands between them."
        )
    declared = None if items is None else check_items(items)
    asked = _mapped(pairs) if sep is None else _separated(others, declared, sep)
    check_present(list(asked), others, "pairs")
    met = tuple(dict.fromkeys(item for pair in asked.values() for item in pair))
    labels = check_items(met) if declared is None else declared
    if not set(met) <= set(labels):
        raise ValueError("pairs must name declared items only: list all of them in items=[...].")
    return asked, labels


def _mapped(pairs: object) -> dict[Any, tuple[Any, Any]]:
    if (
        not isinstance(pairs, Mapping)
        or not pairs
        or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs.values())
        or not all(isinstance(item, Hashable) for pair in pairs.values() for item in pair)
        or any(first == second for first, second in pairs.values())
    ):
        raise ValueError(
            "pairs must be a mapping {'column': (item, item), ...} with two different items for "
            "each column."
        )
    return {name: (first, second) for name, (first, second) in pairs.items()}


def _separated(
    others: Sequence[Any], declared: Names | None, sep: object
) -> dict[Any, tuple[Any, Any]]:
    """Return the pairs that names of columns spell."""
    if not isinstance(sep, str) or not (sep or declared):
        raise ValueError(
            "sep must be the text between two names of items in the name of a column; it may be "
            "empty only if items=[...] says what the names are."
        )
    known = None if declared is None else {str(label): label for label in declared}
    found: dict[Any, tuple[Any, Any]] = {}
    for column in others:
        if not isinstance(column, str):
            continue
        cuts = range(1, len(column) - len(sep))
        splits = [(column[:k], column[k + len(sep) :]) for k in cuts if column[k:].startswith(sep)]
        if known is not None:
            splits = [(a, b) for a, b in splits if a in known and b in known]
        if len(splits) > 1 or any(a == b for a, b in splits):
            raise ValueError(
                f"column {column!r} must name two different items around sep= in one way only: say "
                f"what it asks for with pairs=, or list the items in items=[...]."
            )
        for a, b in splits:
            found[column] = (a, b) if known is None else (known[a], known[b])
        if known is not None and sep and sep in column and not splits:
            raise ValueError(
                f"column {column!r} must name two of items= around sep={sep!r}, or not contain it: "
                f"check the names in items=, and rename a column that asks for no pair."
            )
    if not found:
        raise ValueError(
            f"form='wide' found no column whose name is two items with {sep!r} between them: check "
            f"sep= and items=, or say which column asks for which pair with pairs=."
        )
    return found


@dataclass(frozen=True, slots=True)
class _Codes:
    """What each answer means, whether others are names of items, and whether that was declared."""

    meaning: Mapping[Any, float]
    by_name: bool
    declared: bool


def _check_codes(codes: object) -> _Codes:
    given = _CONVENTION if codes is None else codes
    if (
        not isinstance(given, Mapping)
        or not given.keys() <= _CONVENTION.keys()
        or (("first" in given) != ("second" in given))
    ):
        raise ValueError(
            "codes must be a mapping {'first': answer, 'second': answer, 'tie': answer}, without "
            "'tie' if there are none, and without 'first' and 'second' if an answer is the name "
            "of the item preferred."
        )
    answers = [
        (answer, float(_CONVENTION[word]))
        for word, value in given.items()
        for answer in (value if isinstance(value, list | tuple | set) else [value])
    ]
    fit = all(isinstance(answer, str | bool | np.bool_ | Real) for answer, _ in answers)
    if not fit or len(dict(answers)) < len(answers) or any(x != x for x, _ in answers):
        raise ValueError(
            "codes must be distinct texts or numbers: a missing value always means that there is "
            "no answer, and needs no code."
        )
    return _Codes(dict(answers), "first" not in given, codes is not None)


def _outcomes(
    values: pd.Series[Any],
    codes: _Codes,
    first: IntArray | int,
    second: IntArray | int,
    labels: Names,
) -> FloatArray:
    """Return the outcomes that a column's answers mean, NaN where one is missing."""
    place, distinct = counting.factorize(values, values.name)
    answers = distinct.tolist()
    outcome = np.array([*(codes.meaning.get(answer, np.inf) for answer in answers), np.nan])[place]
    if codes.by_name:
        position = {label: k for k, label in enumerate(labels)}
        item = np.array([*(position.get(answer, -1) for answer in answers), -1])[place]
        outcome = np.where(item == first, 1.0, np.where(item == second, -1.0, outcome))
    if np.isinf(outcome).any():
        rule, remedy = "answers that codes= declares", "list all answers in codes=, texts as texts"
        if codes.by_name:
            own = isinstance(first, int) and isinstance(second, int)
            pair = f" {labels[first]!r} and {labels[second]!r}" if own else ""
            rule = (
                f"the names of the pair's items{pair} (codes= has no 'first' and 'second'), "
                f"answers that codes= declares"
            )
            remedy = (
                "strip other words from the cells, as with frame.replace('^I prefer ', '', "
                "regex=True), list other answers in codes="
            )
        elif not codes.declared:
            rule = "1 (first item preferred), -1 (second item preferred), 0 (tie)"
            remedy = "declare other answers with codes={'first': ..., 'second': ..., 'tie': ...}"
        raise ValueError(
            f"column {values.name!r} must hold {rule} or missing values only, and at least one "
            f"entry is neither: {remedy}, and make those that mean no answer missing with "
            f"frame.replace(...)."
        )
    return outcome
