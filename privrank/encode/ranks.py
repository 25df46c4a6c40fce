"""Cells of rankings: checked by what was declared of ties and missing items, and coded.

A message about ties or gaps ends in advice that depends on what the rankings are for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode.frames import check_rows, numbers
from privrank.plans.nullmodel import Missing, Purpose, rank_remedy

__all__ = ["check_partial", "check_ranks", "count_orders", "rank_cells"]

IntArray = NDArray[np.int64]


def rank_cells(table: pd.DataFrame) -> NDArray[Any]:
    """Return numeric columns as whole numbers if all are, else as floats with NaN where missing."""
    whole = all(isinstance(kind, np.dtype) and kind.kind in "iu" for kind in table.dtypes)
    return table.to_numpy() if whole else numbers(table)


def check_ranks(cells: NDArray[Any], purpose: Purpose) -> IntArray:
    """Return a copy of the ranks as integers; refuse rows that are no permutation of 1..m."""
    n, m = cells.shape
    check_rows(n, "rankings")
    if cells.dtype.kind == "f" and np.isnan(cells).any():
        raise ValueError(
            f"every row of rankings must hold the ranks 1 to {m}, and at least one is incomplete: "
            f"{rank_remedy(purpose, 'gaps')}."
        )
    if cells.min() < 1 or cells.max() > m:
        raise ValueError(
            f"every row of rankings must hold the ranks 1 to {m}, and at least one cell is not "
            f"among them: rank the {m} items anew, or name the item columns with items=[...]."
        )
    ranks = np.array(cells, dtype=np.int64, order="C")
    place = ranks + np.arange(-1, n * m - 1, m)[:, None]
    seen = np.zeros(n * m, dtype=bool)
    seen[place.ravel()] = True
    whole = cells.dtype.kind != "f" or bool((ranks == cells).all())
    if not (whole and seen.all()):
        raise ValueError(
            f"every row of rankings must hold each of the ranks 1 to {m} once, and at least one "
            f"has a tie: {rank_remedy(purpose, 'ties')}."
        )
    return ranks


def check_partial(
    cells: NDArray[Any], ties: bool, missing: Missing | None, purpose: Purpose
) -> IntArray:
    """Return twice the ranks, and a code where one is missing; refuse numbers that are no ranks."""
    m = cells.shape[1]
    check_rows(len(cells), "rankings")
    cells = cells.astype(np.float64, copy=False)
    gaps = np.isnan(cells)
    if missing is None and gaps.any():
        raise ValueError(
            f"rankings must have no missing cell unless missing= says what one means: "
            f"{rank_remedy(purpose, 'gaps')}."
        )
    codes = np.nan_to_num(2 * cells, nan=2.0, posinf=-1.0, neginf=-1.0)
    if not ((codes >= 2) & (codes <= 2 * m) & (codes % 1 == 0)).all():
        raise ValueError(
            f"rankings must hold ranks from 1 to {m} (2.5 for two items that share the places 2 "
            f"and 3) or missing values, and at least one cell is neither: name the item columns "
            f"with items=[...]."
        )
    codes[gaps] = 2 * m + 2 if missing == "bottom" else 0
    if not ties:
        listed = np.sort(codes, axis=1)
        shared = (np.diff(listed, axis=1) == 0) & (listed[:, 1:] > 0) & (listed[:, 1:] <= 2 * m)
        if shared.any() or (codes % 2 != 0).any():
            raise ValueError(
                f"rankings must have no shared ranks, and at least one does: "
                f"{rank_remedy(purpose, 'ties')}."
            )
    return np.asarray(codes, dtype=np.int64)


def count_orders(ranks: IntArray) -> IntArray:
    """Return how often each of the m! rankings occurs, given ranks (n, m)."""
    from privrank.kernels.rankings import places_of

    return np.bincount(places_of(ranks), minlength=math.factorial(ranks.shape[1]))
