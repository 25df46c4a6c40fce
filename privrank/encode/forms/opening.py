"""A frame is opened by its schema: rows with a column per role, or a column per item or pair.

Messages name arguments, columns and rules, never a cell's value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.encode.encoding import check_owned
from privrank.encode.frames import (
    COUNT,
    check_name,
    check_present,
    check_rows,
    declared_items,
    with_respondent_column,
)

__all__ = [
    "ItemRows",
    "Names",
    "check_numeric",
    "collect_wide",
    "item_codes",
    "only_for",
    "open_wide",
    "read_rows",
    "repeated",
]

IntArray = NDArray[np.int64]
Names = tuple[Any, ...]

_OPTIONAL = ("respondent", "ranking", "ties", "counts")
"""Roles that no column has to have."""


@dataclass(frozen=True, slots=True, eq=False)
class ItemRows:
    """Rows that name items: columns by role, the items, their codes, and all columns' names."""

    columns: Mapping[str, pd.Series[Any]]
    labels: Names
    codes: tuple[IntArray, ...]
    present: list[str]

    def whole(self, role: str) -> IntArray | None:
        """Return a column of counts, None where none was named."""
        column = self.columns.get(role)
        return None if column is None else counting.whole_counts(column, str(column.name))


def read_rows(
    frame: object,
    items: object,
    named: Mapping[str, str],
    roles: Mapping[str, str | None],
    otherwise: str = "",
) -> ItemRows:
    """Return rows that name items in the columns `named`, and have other `roles`.

    Given both kinds of columns by the arguments that name them, and what else can be done where one
    is not there.
    """
    columns: dict[str, Any] = {
        role: name
        for role, name in {**named, **roles}.items()
        if name is not None or role not in _OPTIONAL
    }
    for role, name in columns.items():
        check_name(name, role)
    owners = {role: columns[role] for role in ("respondent", "ranking") if role in columns}
    for name in owners.values():
        frame = with_respondent_column(frame, name)
    view = counting.open_frame(frame, "frame")
    present = counting.column_names(view)
    for role, name in columns.items():
        check_present([name], present, "frame", f"name the right one with {role}={otherwise}")
    if len(set(columns.values())) < len(columns):
        raise ValueError(f"{'=, '.join(columns)}= must name different columns.")
    labels = declared_items(frame, list(named.values()), items)
    table = counting.collect(view, list(columns.values())).reset_index(drop=True)
    check_rows(len(table))
    codes = tuple(item_codes(table[name], labels) for name in named.values())
    for name, code in zip(named.values(), codes, strict=True):
        if (code < 0).any():
            raise ValueError(
                f"column {name!r} must name an item in every row: fill in the missing names, or "
                f"leave such rows out; a question without an answer has a missing outcome or rank "
                f"in form='long'."
            )
    for role, name in owners.items():
        check_owned(counting.key_of(table[name]), name, role)
    by_role = {role: table[name] for role, name in columns.items()}
    return ItemRows(by_role, labels, codes, present)


def open_wide(frame: object, respondent: str | None) -> tuple[counting.Frame, list[Any]]:
    """Return a view of a frame with a row per respondent, and its columns but the respondent's."""
    view = counting.open_frame(frame, "frame")
    columns = counting.column_names(view)
    if respondent is not None:
        check_name(respondent, "respondent")
        if not (isinstance(frame, pd.DataFrame) and respondent in frame.index.names):
            check_present([respondent], columns, "frame", "name the right one with respondent=")
    return view, [name for name in columns if respondent is None or name != respondent]


def collect_wide(
    view: counting.Frame,
    columns: Sequence[Any],
    respondent: str | None,
    role: str,
    *,
    declared: bool = True,
    numbers: str | None = None,
) -> tuple[pd.DataFrame, pd.Index]:
    """Return the columns that an argument names, and an index with the respondent if there is one.

    Given also whether the argument was `declared`, and what columns of numbers hold. Counts of
    equal rows that nothing uses are refused, as a row is one respondent's.
    """
    present = counting.column_names(view)
    check_present(columns, [*present, respondent], "frame", f"name the right one with {role}=")
    if COUNT in present and COUNT not in [*(columns if declared else ()), respondent]:
        raise ValueError(
            f"frame has a column {COUNT!r} that nothing uses: if a row stands for so many "
            f"respondents, repeat it with {repeated(COUNT)}, else drop the column."
        )
    if numbers is not None:
        check_numeric(view, columns, numbers, f"{role}=")
    if respondent in columns:
        raise ValueError(
            f"respondent={respondent!r} must name a column of its own: it is listed among the "
            f"other columns too."
        )
    own = respondent is not None and respondent in present
    table = counting.collect(view, [*columns, respondent] if own else columns)
    check_rows(len(table))
    index = pd.Index(table[respondent], name=respondent) if own else table.index
    if respondent is not None:
        owner = index.get_level_values(respondent).to_series()
        check_owned(counting.key_of(owner), respondent)
    return table, index


def item_codes(names: pd.Series[Any], labels: Names, remedy: str = "") -> IntArray:
    """Return the position of each name in `labels`, -1 where it is missing.

    Given also what else can be done about other names.
    """
    key = counting.key_of(names)
    places = key.among(labels)
    if (places[key.codes >= 0] < 0).any():
        raise ValueError(
            f"column {names.name!r} must hold declared items only: at least one name is not in "
            f"items=, as the column's own distinct values compared with items= will show{remedy}."
        )
    return places


def repeated(column: object) -> str:
    """Return the call that repeats a row as often as a column says."""
    return f"frame.loc[frame.index.repeat(frame[{column!r}])].drop(columns={column!r})"


def check_numeric(view: counting.Frame, columns: Sequence[Any], what: str, remedy: str) -> None:
    """Refuse columns that do not hold numbers by their declared type."""
    numeric = counting.numeric_columns(view, columns)
    for name in columns:
        if name not in numeric:
            raise TypeError(
                f"column {name!r} must hold numbers, {what}: name the columns meant with "
                f"{remedy}, or convert numbers held as objects with pandas.to_numeric."
            )


def only_for(form: str, arguments: Mapping[str, tuple[object, Sequence[str]]]) -> None:
    """Refuse arguments that belong to other forms: by name, the value (None: not given), forms."""
    for name, (value, homes) in arguments.items():
        if value is not None and form not in homes:
            raise ValueError(
                f"{name}= belongs to form={' or '.join(map(repr, homes))}: leave it out, or name "
                f"that form."
            )
