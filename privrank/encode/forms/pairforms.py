"""The forms that comparisons come in, each read as a comparisons frame.

Messages name arguments, columns and rules, never a cell's value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.encode.forms.opening import ItemRows, Names, collect_wide, open_wide, read_rows
from privrank.encode.frames import COUNT, DECLARED, comparisons_call
from privrank.util.checks import Codes, check_codes, check_items
from privrank.util.formula import pairs_of_columns

__all__ = [
    "answered",
    "read_counts",
    "read_decided",
    "read_long",
    "read_matrix",
    "read_wide",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def _compared(
    labels: Names,
    first: IntArray,
    second: IntArray,
    outcome: FloatArray,
    person: pd.Series[Any] | pd.Index | None,
    counts: IntArray | None = None,
) -> pd.DataFrame:
    """Return a comparisons frame, given by row two items, the outcome, who answered, how often."""
    kind = pd.CategoricalDtype(list(labels))
    columns: dict[str, Any] = {} if person is None else {"respondent": person.array}
    columns["item1"] = pd.Categorical.from_codes(first, dtype=kind)
    columns["item2"] = pd.Categorical.from_codes(second, dtype=kind)
    columns["outcome"] = outcome
    if counts is not None:
        columns[COUNT] = counts
    frame = pd.DataFrame(columns)
    frame.attrs[DECLARED] = pd.Index(labels).tolist()
    return frame


def answered(
    outcome: FloatArray,
    first: IntArray,
    second: IntArray,
    labels: Names,
    index: pd.Index,
    respondent: str | None,
) -> pd.DataFrame:
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
    return _compared(labels, first[pair], second[pair], outcome[row, pair], person.take(row))


def read_wide(
    frame: object,
    items: object,
    respondent: str | None,
    pairs: object,
    sep: object,
    codes: object,
    distinct: bool,
) -> pd.DataFrame:
    """Read one row per respondent and one column per pair."""
    view, others = open_wide(frame, respondent)
    asked, labels = pairs_of_columns(others, items, pairs, sep)
    table, index = collect_wide(view, list(asked), respondent, "pairs")
    place = {label: k for k, label in enumerate(labels)}
    first, second = np.array([[place[a], place[b]] for a, b in asked.values()]).T
    if distinct and len({frozenset(pair) for pair in asked.values()}) < len(asked):
        raise ValueError(
            "form='wide' must have one column per pair, and at least one pair has two, in the same "
            "or in both orders: leave one out of pairs=, or use distinct_pairs=False if they are "
            "questions of their own."
        )
    meaning = check_codes(codes)
    outcome = [
        _outcomes(table[name], meaning, int(a), int(b), labels)
        for name, a, b in zip(asked, first, second, strict=True)
    ]
    return answered(np.column_stack(outcome), first, second, labels, index, respondent)


def read_long(
    frame: object, items: object, named: dict[str, str], roles: dict[str, Any], codes: object
) -> pd.DataFrame:
    """Read one row per comparison, with an answer in codes that are declared."""
    meaning = check_codes(codes)
    rows = _read_pairs(frame, items, named, roles)
    first, second = rows.codes
    answer = _outcomes(rows.columns["outcome"], meaning, first, second, rows.labels)
    person, counts = rows.columns.get("respondent"), rows.whole("counts")
    return _compared(rows.labels, first, second, answer, person, counts)


def read_decided(
    frame: object, items: object, named: dict[str, str], roles: dict[str, Any]
) -> pd.DataFrame:
    """Read one row per comparison, with the item preferred and the other one.

    The items come in the order of `labels`: with the winner in front, which item a row names first,
    a public fact under a public design, would be the answer.
    """
    rows = _read_pairs(frame, items, named, roles)
    low, high, outcome = _in_order(*rows.codes)
    if (tied := rows.columns.get("ties")) is not None:
        key = counting.key_of(tied)
        flags = [{0: 1.0, 1: 0.0}.get(value, np.nan) for value in key.values.tolist()]
        decided = np.array([*flags, np.nan])[key.codes]
        if np.isnan(decided).any():
            raise ValueError(
                f"column {tied.name!r} must say of every row whether it is a tie, with True or "
                f"False, or 1 and 0: recode it, and give rows without an answer as form='long'."
            )
        outcome = np.where(decided == 0.0, 0.0, outcome)
    person, counts = rows.columns.get("respondent"), rows.whole("counts")
    return _compared(rows.labels, low, high, outcome, person, counts)


def read_counts(
    frame: object, items: object, named: dict[str, str], roles: dict[str, Any], distinct: bool
) -> pd.DataFrame:
    """Read one row per pair, with how often each item was preferred and how often they tied."""
    rows = _read_pairs(frame, items, named, roles)
    person = rows.columns.get("respondent")
    first, second = rows.codes
    sign = np.ones(len(first))
    if distinct:  # a pair has one row, whose first item may be the one that won
        first, second, sign = _in_order(first, second)
        who = 0 if person is None else pd.factorize(person)[0]
        if pd.DataFrame({"first": first, "second": second, "who": who}).duplicated().any():
            raise ValueError(
                "form='counts' must have one row per pair, and at least one pair has two, in the "
                "same or in both orders: add up what is there twice, or use distinct_pairs=False "
                "if all rows count, as home and away games do."
            )
    won, lost, tied = (rows.whole(role) for role in ("win1", "win2", "ties"))
    kinds = [(sign, won), (-sign, lost), (np.zeros(len(first)), tied)]
    given = [(outcome, number) for outcome, number in kinds if number is not None]
    outcome, counts = (np.column_stack(columns).ravel() for columns in zip(*given, strict=True))
    every = np.repeat(np.arange(len(first)), len(given))
    person = None if person is None else person.take(every)
    return _compared(rows.labels, first[every], second[every], outcome, person, counts)


def read_matrix(frame: object, items: object, ties: object) -> pd.DataFrame:
    """Read a square matrix of how often the item of a row was preferred to that of a column."""
    wins, labels = _square(frame, items, "frame")
    low, high = np.triu_indices(len(labels), k=1)
    counts = {1.0: wins[low, high], -1.0: wins[high, low]}
    if ties is not False:
        shared, _ = _square(ties, labels, "ties")
        if (shared != shared.T).any():
            raise ValueError(
                "ties must be a symmetric matrix, with how often two items tied in both of their "
                "cells: use (t + t.T) for a triangle t."
            )
        counts[0.0] = shared[low, high]
    every = np.repeat(np.arange(len(low)), len(counts))
    outcome = np.tile(list(counts), len(low))
    number = np.column_stack(list(counts.values())).ravel()
    return _compared(labels, low[every], high[every], outcome, None, number)


def _in_order(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return each pair in the order of the items, and by which sign its outcome is turned."""
    sign = np.where(first < second, 1.0, -1.0)
    return np.minimum(first, second), np.maximum(first, second), sign


def _read_pairs(
    frame: object, items: object, named: dict[str, str], roles: dict[str, Any]
) -> ItemRows:
    """Return rows that name two items each; refuse counts and ties that nothing uses."""
    if roles.get("ties", False) is False:
        roles = {role: None if role == "ties" else name for role, name in roles.items()}
    elif not isinstance(roles["ties"], str):
        raise TypeError(
            f"ties must be the name of the column that says where ties are, or False if there are "
            f"none, got {type(roles['ties']).__name__}."
        )
    other = f", or the form of the data, as in {comparisons_call(frame, items)}"
    rows = read_rows(frame, items, named, roles, other)
    unused = set(rows.present) - {column.name for column in rows.columns.values()}
    for role, name, what in (
        ("counts", COUNT, "a row stands for so many comparisons"),
        ("ties", "ties", "it says where ties are"),
    ):
        if name in unused and (role in roles or name == COUNT):
            remedy = f"name it with {role}={name!r} if {what}, else drop it"
            raise ValueError(
                f"frame has a column {name!r} that nothing uses: "
                f"{remedy if role in roles else 'drop it, because the wins are counts already'}."
            )
    if (rows.codes[0] == rows.codes[1]).any():
        raise ValueError(
            f"columns {' and '.join(map(repr, named.values()))} must name two different items: at "
            f"least one row compares an item with itself."
        )
    return rows


def _square(matrix: object, items: object, name: str) -> tuple[IntArray, Names]:
    """Return a square matrix of counts with its items, in the order of `items` if given.

    Rows are named by a column of text or by a pandas index; else they are in the columns' order.
    """
    if isinstance(matrix, np.ndarray):
        if items is None:
            raise ValueError(
                "items must be declared for an array: pass items=[...] in the order of its rows."
            )
        labels, table = check_items(items), pd.DataFrame(matrix if matrix.ndim == 2 else [])
        rows = columns = labels
    else:
        view = counting.open_frame(matrix, name)
        names = counting.column_names(view)
        table = counting.collect(view, names)
        numeric = counting.numeric_columns(view, names)
        text = [column for column in names if column not in numeric]
        if len(text) == 1 and len(names) == len(table) + 1:
            table = table.set_index(text[0])
        elif len(names) == len(table) and table.index.equals(pd.RangeIndex(len(table))):
            table = table.set_axis(names)
        rows, columns = tuple(table.index), tuple(table.columns)
        labels = check_items(columns if items is None else items)
    wanted = [str(label) for label in labels]
    if not sorted(map(str, rows)) == sorted(map(str, columns)) == sorted(wanted) or (
        table.shape != (len(rows), len(columns))
    ):
        raise ValueError(
            f"{name} must be a square matrix with one row and one column for each of the "
            f"{len(labels)} items: list them with items=[...], and name the rows as the columns, "
            f"in the index of a pandas frame or in a column of text."
        )
    table = table.set_axis([str(row) for row in rows]).set_axis([str(c) for c in columns], axis=1)
    cells = table.loc[wanted, wanted]
    counts = np.column_stack([counting.real_numbers(cells[label]) for label in wanted])
    if np.nan_to_num(np.diagonal(counts)).any():
        raise ValueError(
            f"{name} must hold 0 on the diagonal, where an item would meet itself: write 0 there."
        )
    np.fill_diagonal(counts, 0.0)
    if not counting.is_whole(counts):
        raise ValueError(
            f"{name} must hold whole numbers of at least 0, and 0 where two items never met: for "
            f"ties that count half a win to each, give the wins alone and the numbers of ties as "
            f"another matrix with ties=."
        )
    return counts.astype(np.int64), labels


def _outcomes(
    values: pd.Series[Any],
    codes: Codes,
    first: IntArray | int,
    second: IntArray | int,
    labels: Names,
) -> FloatArray:
    """Return the outcomes that a column's answers mean, NaN where one is missing."""
    key = counting.key_of(values)
    answers, place = key.values.tolist(), key.codes
    outcome = np.array([*(codes.meaning.get(answer, np.inf) for answer in answers), np.nan])[place]
    if codes.by_name:
        position = {label: k for k, label in enumerate(labels)}
        item = np.array([*(position.get(answer, -1) for answer in answers), -1])[place]
        outcome = np.where(item == first, 1.0, np.where(item == second, -1.0, outcome))
    if np.isinf(outcome).any():
        rule = codes.rule
        if isinstance(first, int) and isinstance(second, int):
            own = f"the pair's items {labels[first]!r} and {labels[second]!r}"
            rule = rule.replace("the pair's items", own)
        raise ValueError(
            f"column {values.name!r} must hold {rule} or missing values only, and at least one "
            f"entry is neither: {codes.remedy}, and make those that mean no answer missing with "
            f"frame.replace(...)."
        )
    return outcome
