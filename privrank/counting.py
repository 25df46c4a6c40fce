"""Group-bys on any data frame or engine: the only data-sized step, and the only use of narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["column_names", "declared_categories", "is_numeric", "open_frame", "tally"]

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


def tally(
    view: nw.LazyFrame[Any], by: Sequence[str], numeric: str | None
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    """Return the distinct combinations of the columns `by` and how often each occurs.

    Given a lazy frame, groups by all columns at once (null and NaN keys kept) and returns a
    mapping from column to the group's key, and the group sizes. The column `numeric` comes back as
    float64 with NaN for missing, whatever the engine calls it.
    """
    view = view.select(*dict.fromkeys(by))
    if numeric is not None:
        view = view.with_columns(nw.col(numeric).cast(nw.Float64))
    groups = view.group_by(*by).agg(nw.len().alias(_COUNT)).collect()
    keys: dict[str, NDArray[Any]] = {}
    for column in by:
        series = groups.get_column(column).to_pandas()
        if column == numeric:
            keys[column] = series.to_numpy(dtype=np.float64, na_value=np.nan)
        elif isinstance(series.dtype, pd.CategoricalDtype):
            keys[column] = series.astype(series.dtype.categories.dtype).to_numpy()
        else:
            keys[column] = series.to_numpy()
    return keys, groups.get_column(_COUNT).to_pandas().to_numpy(dtype=np.int64)
