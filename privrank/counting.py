"""Group-bys on any data frame or engine: the only data-sized step, and the only use of narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Key", "column_names", "declared_categories", "is_numeric", "open_frame", "tally"]

_COUNT = "privrank_rows"


def open_frame(frame: object, name: str) -> nw.LazyFrame[Any]:
    """Return a lazy view of any supported frame; one sentence when it is not one."""
    if isinstance(frame, pd.DataFrame) and not frame.columns.is_unique:
        raise ValueError(f"{name} must have unique column names: rename the repeated ones.")
    try:
        opened = nw.from_native(frame)  # type: ignore[call-overload]
    except TypeError:
        raise TypeError(
            f"{name} must be a data frame (pandas, polars, pyarrow, duckdb, dask or any other that "
            f"narwhals supports), got {type(frame).__name__}."
        ) from None
    view: nw.LazyFrame[Any] = opened.lazy()
    return view


def column_names(view: nw.LazyFrame[Any]) -> list[str]:
    """Return the column names."""
    return list(view.collect_schema().names())


def is_numeric(view: nw.LazyFrame[Any], column: str) -> bool:
    """Return whether a column holds numbers by its declared type."""
    return bool(view.collect_schema()[column].is_numeric())


def declared_categories(frame: object, column: str) -> tuple[Any, ...] | None:
    """Return the categories a column's type declares, or None.

    Only a pandas ``CategoricalDtype`` and an ``Enum`` declare theirs; a polars ``Categorical``
    collects the values it meets, which would be learned from the data.
    """
    if isinstance(frame, pd.DataFrame):
        dtype = frame[column].dtype
        return tuple(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else None
    declared = open_frame(frame, "data").collect_schema()[column]
    return tuple(declared.categories) if isinstance(declared, nw.Enum) else None


@dataclass(frozen=True, slots=True)
class Key:
    """One column of the groups of :func:`tally`.

    Parameters
    ----------
    codes : ndarray of int64, shape (groups,)
        Position of each group's value in `values`; -1 where it is missing.
    values : ndarray
        The distinct values.
    """

    codes: NDArray[np.int64]
    values: NDArray[Any]


def tally(
    view: nw.LazyFrame[Any], by: Sequence[str], numeric: str | None
) -> tuple[dict[str, Key], NDArray[np.int64]]:
    """Return the distinct combinations of the columns `by` and how often each occurs.

    Given a lazy frame, groups by all columns at once (null and NaN kept as missing) and returns
    the group's value of each column, and the group sizes. The column `numeric` is compared as
    float64, whatever the engine calls it.
    """
    view = view.select(*dict.fromkeys(by))
    if numeric is not None:
        view = view.with_columns(nw.col(numeric).cast(nw.Float64))
    groups = view.group_by(*by).agg(nw.len().alias(_COUNT)).collect()
    keys: dict[str, Key] = {}
    for column in by:
        series = groups.get_column(column).to_pandas()
        if column == numeric:
            series = pd.Series(series.to_numpy(dtype=np.float64, na_value=np.nan))
        codes, values = pd.factorize(series)
        keys[column] = Key(codes.astype(np.int64), np.asarray(values))
    return keys, groups.get_column(_COUNT).to_pandas().to_numpy(dtype=np.int64)
