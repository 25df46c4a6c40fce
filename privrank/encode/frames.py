"""What every encoder shares: columns as codes and numbers, respondents, the refusal to copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.util.checks import check_items

__all__ = [
    "COUNT",
    "DECLARED",
    "ORDER_FROM",
    "PAIRS_FROM",
    "UNSTATED",
    "check_name",
    "check_named",
    "check_respondents",
    "check_rows",
    "check_stated",
    "declared_items",
    "marks_of",
    "numbers",
    "refuse_copy",
    "undeclared",
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


def refuse_copy(*_: object) -> NoReturn:
    """Raise: encoded data are sensitive and stay where they are."""
    raise TypeError(
        "encoded data are sensitive and cannot be copied or pickled: store the release of a "
        "fit with to_json() instead."
    )


def with_respondent_column(frame: object, respondent: str | None) -> object:
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


def check_respondents(
    person: IntArray, size: IntArray | None, column: str, max_rows: float, remedy: str = ""
) -> None:
    """Refuse rows without a respondent, and respondents with more than `max_rows` rows.

    Given a respondent's code per group of rows, -1 where missing, the groups' sizes, and what else
    can be done about more rows.
    """
    if (person < 0).any():
        raise ValueError(
            f"column {column!r} must name the respondent of every row: fill in the missing entries."
        )
    if np.bincount(person, size).max(initial=0) > max_rows:
        raise ValueError(
            f"max_rows={max_rows} must bound the rows of every respondent, and at least one has "
            f"more: state the largest number of rows the questionnaire allows{remedy}."
        )


def numbers(values: pd.DataFrame | pd.Series[Any]) -> FloatArray:
    """Return numeric columns as floats, null and NaN both as NaN."""
    if isinstance(values, pd.DataFrame):
        return np.column_stack([numbers(values.iloc[:, k]) for k in range(values.shape[1])])
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def check_named(data: object, columns: Sequence[Any]) -> list[str]:
    """Return the columns of data; refuse a formula that names others."""
    present = counting.column_names(counting.open_frame(data, "data"))
    for name in columns:
        if name not in present:
            raise ValueError(f"data has no column {name!r}: the formula names columns of data.")
    return present


def undeclared(what: str, remedy: str) -> ValueError:
    """Return the refusal of items, categories or levels that the call does not declare."""
    return ValueError(
        f"{what} must be declared: pass {remedy} with all that the questionnaire offers, because a "
        f"list read off the answers, as that of a pandas categorical may be, would reveal them."
    )


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
