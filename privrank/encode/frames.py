"""What a frame says by the names and types of its columns, and what all readers of one share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.util.checks import UNSTATED, check_items, undeclared

__all__ = [
    "COUNT",
    "DECLARED",
    "ORDER_FROM",
    "PAIRS_FROM",
    "check_name",
    "check_named",
    "check_present",
    "check_rows",
    "check_stated",
    "comparisons_call",
    "declared_items",
    "marks_of",
    "numbers",
    "rankings_call",
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


def check_named(data: object, columns: Sequence[Any]) -> list[str]:
    """Return the columns of data; refuse a formula that names others."""
    present = counting.column_names(counting.open_frame(data, "data"))
    check_present(columns, present, "data", "the formula names columns of data")
    return present


def check_present(names: Sequence[Any], present: Sequence[Any], frame: str, remedy: str) -> None:
    """Refuse names that no column has; given what messages call the frame, and what to do."""
    for name in names:
        if name not in present:
            raise ValueError(f"{frame} has no column {name!r}: {remedy}.")


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


def check_name(name: object, role: str) -> None:
    """Refuse what cannot name a column."""
    if not isinstance(name, str):
        raise TypeError(f"{role} must be a column name, got {type(name).__name__}.")


def check_rows(rows: int, name: str = "frame", more: str = "") -> None:
    """Refuse an argument without rows; `more` is what else its rows have to be."""
    if not rows:
        raise ValueError(
            f"{name} must have at least one row{more}: check the file that was read, and what was "
            f"left out since."
        )


def comparisons_call(frame: object, items: object) -> str:
    """Return the call that converts data of another form to comparisons, as far as can be told."""
    return f"privrank.as_comparisons(frame, {_form(frame, items)})"


def rankings_call(view: counting.Frame) -> str:
    """Return the call for data that are no rankings frame, as far as can be told."""
    names = counting.column_names(view)
    spelled = {str(name).lower() for name in names}
    if spelled >= {"item1", "item2"} or spelled >= {"winner", "loser"}:
        return "privrank.PrivateBTL if they are paired comparisons"
    if spelled >= {"item", "rank"}:
        form = "'long', ranking=..., items=[...]"
    elif len(names) == 1:
        form = f"'orders', order={names[0]!r}, items=[...]"
    elif not counting.numeric_columns(view, names):
        form = "'orders', items=[...]"
    else:
        form = "form=..."
    return f"privrank.as_rankings(frame, {form})"


def _form(frame: object, items: object) -> str:
    labels = [] if items is None else [str(label) for label in check_items(items)]
    if isinstance(frame, np.ndarray):
        return "'matrix', items=[...]"
    names = [str(name) for name in counting.column_names(counting.open_frame(frame, "frame"))]
    rows = list(frame.index[: len(names) + 1]) if isinstance(frame, pd.DataFrame) else []
    if len(rows) == len(names) and {str(row) for row in rows} == set(names):
        return "'matrix'"
    spelled = {name.lower(): name for name in names}
    for form, roles in (("winner-loser", ("winner", "loser")), ("counts", ("win1", "win2"))):
        if spelled.keys() >= set(roles):
            named = [f"{role}={spelled[role]!r}" for role in roles if spelled[role] != role]
            return ", ".join([repr(form), "items=[...]", *named])
    if labels and set(labels) <= set(names):
        return "'rankings', items=[...]"
    between = _between(names, labels)
    return "form=..." if between is None else f"'wide', items=[...], sep={between!r}"


def _between(names: Sequence[str], labels: Sequence[str]) -> str | None:
    """Return what stands between two items in the name of a column, None if no name has two."""
    for name in names:
        firsts = [label for label in labels if name.startswith(label)]
        seconds = [label for label in labels if name.endswith(label)]
        for first, second in product(firsts, seconds):
            if len(first) + len(second) <= len(name):
                return name[len(first) : len(name) - len(second)]
    return None
