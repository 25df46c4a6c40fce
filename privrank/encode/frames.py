"""What every encoder shares: columns as codes and numbers, respondents, the refusal to copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.util.checks import check_items, undeclared

__all__ = [
    "COUNT",
    "DECLARED",
    "ORDER_FROM",
    "PAIRS_FROM",
    "UNSTATED",
    "check_counted",
    "check_filled",
    "check_name",
    "check_named",
    "check_numeric",
    "check_present",
    "check_rows",
    "check_stated",
    "collect_wide",
    "declared_items",
    "item_codes",
    "marks_of",
    "numbers",
    "only_for",
    "open_wide",
    "repeated",
    "with_respondent_column",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


COUNT = "count"
"""The column that says how many comparisons a row stands for."""

ORDER_FROM, PAIRS_FROM = "order_from", "pairs_from"
"""Columns of a comparisons frame that say what of it no questionnaire has fixed.

They are columns because these survive merges, exports and other engines, as ``attrs`` do not; and
``attrs`` of the same names, as these survive a choice of columns.
"""

DECLARED = "privrank_items"
"""Where the ``attrs`` of a frame that a form has made list the items that its call declared.

A frame that has lost them is refused, whereas one that had lost what is above would be taken.
"""


def marks_of(frame: object, columns: Sequence[str]) -> set[str]:
    """Return which of `ORDER_FROM` and `PAIRS_FROM` a frame with these columns has, either way."""
    attrs = frame.attrs if isinstance(frame, pd.DataFrame) else {}
    return {name for name in (ORDER_FROM, PAIRS_FROM) if name in columns or name in attrs}


class _Unstated:
    """The default of an argument that has to be stated."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Say so in the signature."""
        return "<to be stated>"


UNSTATED: Any = _Unstated()


def with_respondent_column(frame: object, respondent: object) -> object:
    """Turn a pandas index level named `respondent` into a column."""
    if (
        isinstance(frame, pd.DataFrame)
        and isinstance(respondent, str)
        and respondent not in frame.columns
        and respondent in frame.index.names
    ):
        return frame.reset_index(respondent)
    return frame


def check_stated(respondent: object, frame: object, used: Sequence[str | None]) -> None:
    """Refuse a unit of privacy that was left open, and name the columns that nothing else uses."""
    if respondent is not UNSTATED:
        return
    names = counting.column_names(counting.open_frame(frame, "comparisons"))
    levels = frame.index.names if isinstance(frame, pd.DataFrame) else []
    left = [repr(name) for name in (*names, *levels) if name is not None and name not in used]
    shown = ", ".join(left[:8]) + ", ..." * (len(left) > 8)
    raise TypeError(
        f"respondent= must be stated, because it says whom epsilon protects: the column that says "
        f"who answered{f' (not used so far: {shown})' * bool(left)}, or None if each comparison is "
        f"a unit of its own."
    )


def numbers(values: pd.DataFrame | pd.Series[Any]) -> FloatArray:
    """Return numeric columns as floats, null and NaN both as NaN."""
    if isinstance(values, pd.DataFrame):
        return np.column_stack([numbers(values.iloc[:, k]) for k in range(values.shape[1])])
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def item_codes(
    names: pd.Series[Any], labels: tuple[Any, ...], column: Any, remedy: str = ""
) -> IntArray:
    """Return the position of each name in `labels`, -1 where it is missing.

    Given also what else can be done about other names.
    """
    key = counting.Key(*counting.factorize(names, column))
    places = key.among(labels)
    if ((places < 0) & (key.codes >= 0)).any():
        raise ValueError(
            f"column {column!r} must hold declared items only: at least one name is not in "
            f"items=, as the column's own distinct values compared with items= will show{remedy}."
        )
    return places


def check_named(data: object, columns: Sequence[Any]) -> list[str]:
    """Return the columns of data; refuse a formula that names others."""
    present = counting.column_names(counting.open_frame(data, "data"))
    for name in columns:
        if name not in present:
            raise ValueError(f"data has no column {name!r}: the formula names columns of data.")
    return present


def declared_items(
    frame: object, columns: Sequence[Any], items: object, *, public: bool = False
) -> tuple[Any, ...]:
    """Return the items: those in `items`, else those that a form or the columns declare.

    Where it is `public` who compared what, the categories of the columns will do.

    **Privacy.** A form passes on the items of its own call, not those it met, and a frame that has
    lost them is refused.
    """
    if items is None and isinstance(frame, pd.DataFrame):
        items = frame.attrs.get(DECLARED)
    if items is not None:
        return check_items(items)
    declared = {counting.declared_categories(frame, name, public=public) for name in columns}
    categories = declared.pop() if len(declared) == 1 else None
    if categories is None:
        raise undeclared("items", "items=[...]")
    return check_items(categories)


def open_wide(frame: object, respondent: str | None) -> tuple[counting.Frame, list[Any]]:
    """Return a view of a wide frame and its columns other than the respondent's."""
    view = counting.open_frame(frame, "frame")
    columns = counting.column_names(view)
    if respondent is not None:
        check_name(respondent, "respondent")
        if not (isinstance(frame, pd.DataFrame) and respondent in frame.index.names):
            check_present([respondent], columns, "respondent")
    return view, [name for name in columns if respondent is None or name != respondent]


def collect_wide(
    view: counting.Frame, columns: Sequence[Any], respondent: str | None
) -> tuple[pd.DataFrame, pd.Index]:
    """Return the columns, and an index with the respondent if there is one."""
    if respondent in columns:
        raise ValueError(
            f"respondent={respondent!r} must name a column of its own: it is listed among the "
            f"other columns too."
        )
    own = respondent is not None and respondent in counting.column_names(view)
    table = counting.collect(view, [*columns, respondent] if own else columns)
    check_rows(len(table))
    index = table.index
    if own:
        # takes the respondent's hash, without which no later step could tell respondents apart
        counting.factorize(table[respondent], respondent)
        index = pd.Index(table[respondent], name=respondent)
    if respondent is not None:
        check_filled(index.get_level_values(respondent).to_series(), respondent)
    return table, index


def check_name(name: object, role: str) -> None:
    """Refuse what cannot name a column."""
    if not isinstance(name, str):
        raise TypeError(f"{role} must be a column name, got {type(name).__name__}.")


def check_present(names: Sequence[Any], present: Sequence[Any], role: str) -> None:
    """Refuse names that no column of the frame has; `role` is the argument that gave them."""
    for name in names:
        if name not in present:
            raise ValueError(f"frame has no column {name!r}: name the right one with {role}=.")


def repeated(column: object) -> str:
    """Return the call that repeats a row as often as a column says."""
    return f"frame.loc[frame.index.repeat(frame[{column!r}])].drop(columns={column!r})"


def check_counted(present: Sequence[Any], used: Sequence[Any]) -> None:
    """Refuse counts of equal rows that nothing uses, where a row is one respondent's."""
    if COUNT in present and COUNT not in used:
        raise ValueError(
            f"frame has a column {COUNT!r} that nothing uses: if a row stands for so many "
            f"respondents, repeat it with {repeated(COUNT)}, else drop the column."
        )


def check_rows(rows: int, name: str = "frame", more: str = "") -> None:
    """Refuse an argument without rows; `more` is what else its rows have to be."""
    if not rows:
        raise ValueError(
            f"{name} must have at least one row{more}: check the file that was read, and what was "
            f"left out since."
        )


def check_filled(values: pd.Series[Any], name: str) -> None:
    """Refuse a column of respondents, or of other owners of rows, with missing entries."""
    if values.isna().any():
        raise ValueError(
            f"column {name!r} must say in every row whose it is: fill in the missing entries."
        )


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
