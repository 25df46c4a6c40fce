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
    "UNSTATED",
    "check_respondents",
    "check_stated",
    "declared_items",
    "item_codes",
    "numbers",
    "refuse_copy",
    "with_respondent_column",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


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
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def item_codes(names: pd.Series[Any], labels: tuple[Any, ...], column: Any) -> IntArray:
    """Return the position of each name in `labels`, -1 where it is missing."""
    codes, values = counting.factorize(names, column)
    place = pd.Index(labels).get_indexer(pd.Index(values))
    if (place < 0).any():
        raise ValueError(
            f"column {column!r} must hold declared items only: at least one name is not in "
            f"items=, as the column's own distinct values compared with items= will show."
        )
    return np.asarray(np.append(place, -1)[codes], dtype=np.int64)


def declared_items(frame: object, columns: Sequence[Any], items: object) -> tuple[Any, ...]:
    """Return the item labels from `items` or from the declared categories of the columns."""
    if items is not None:
        return check_items(items)
    declared = {counting.declared_categories(frame, name) for name in columns}
    categories = declared.pop() if len(declared) == 1 else None
    if categories is None:
        raise ValueError(
            "items must be declared: pass items=[...] or make the columns with items' names "
            "categorical with the same categories, because a list read off the answers would "
            "reveal them."
        )
    return check_items(categories)
