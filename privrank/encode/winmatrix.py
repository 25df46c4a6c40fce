"""A square matrix of how often one item was preferred to another, read as counted comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.encode.pairforms import Compared
from privrank.util.checks import check_items

__all__ = ["read_matrix"]

IntArray = NDArray[np.int64]
Names = tuple[Any, ...]


def read_matrix(frame: object, items: object, ties: object) -> Compared:
    """Read a square matrix of how often the item of a row was preferred to that of a column."""
    wins, labels = _square(frame, items, "frame")
    low, high = np.triu_indices(len(labels), k=1)
    counts, outcome = [wins[low, high], wins[high, low]], [1.0, -1.0]
    if ties is not False:
        shared, _ = _square(ties, labels, "ties")
        if (shared != shared.T).any():
            raise ValueError(
                "ties must be a symmetric matrix, with how often two items tied in both of their "
                "cells: use (t + t.T) for a triangle t."
            )
        counts.append(shared[low, high])
        outcome.append(0.0)
    size = len(outcome)
    return Compared(
        labels,
        np.repeat(low, size),
        np.repeat(high, size),
        np.tile(outcome, len(low)),
        None,
        np.column_stack(counts).ravel(),
    )


def _square(matrix: object, items: object, name: str) -> tuple[IntArray, Names]:
    """Return a square matrix of counts with its items, in the order of `items` if given."""
    if isinstance(matrix, np.ndarray):
        if items is None:
            raise ValueError(
                "items must be declared for an array: pass items=[...] in the order of its rows."
            )
        labels, table = check_items(items), pd.DataFrame(matrix if matrix.ndim == 2 else [])
        rows = columns = labels
    else:
        table, rows, columns = _named_matrix(matrix, name)
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
    counts = np.column_stack([counting.real_numbers(cells[name]) for name in wanted])
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


def _named_matrix(matrix: object, name: str) -> tuple[pd.DataFrame, Names, Names]:
    """Return the cells of a frame, and the names of its rows and columns.

    Rows are named by a column of text or by a pandas index; else they are in the columns' order.
    """
    view = counting.open_frame(matrix, name)
    columns = counting.column_names(view)
    numeric = counting.numeric_columns(view, columns)
    text = [column for column in columns if column not in numeric]
    table = counting.collect(view, columns)
    if len(text) == 1 and len(columns) == len(table) + 1:
        return table.drop(columns=text), tuple(table[text[0]]), tuple(table.columns.drop(text))
    numbered = table.index.equals(pd.RangeIndex(len(table)))
    rows = tuple(columns if numbered and len(table) == len(columns) else table.index)
    return table, rows, tuple(columns)
