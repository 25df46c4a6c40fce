"""What the cells of a ranking may hold: ranks 1 to m, and ties and gaps where they are declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.encode import frames

_INCOMPLETE = (
    "every row of rankings must hold the ranks 1 to {}, and at least one is incomplete: {}."
)
_TIED = (
    "every row of rankings must hold each of the ranks 1 to {} at most once, and at least one has "
    "a tie: {}."
)
_NO_RANKS = (
    "rankings must hold ranks from 1 (best) to {}, the number of items (2.5 for two that share the "
    "places 2 and 3), and at least one cell does not: recode it, or name the item columns with "
    "items=[...]."
)
_EMPTY = (
    "missing='bottom' means that items without a rank come after the others, and at least one "
    "ranking leaves a rank above them empty: {}, or number the ranked ones from 1."
)


def check_ranks(
    cells: NDArray[Any],
    remedies: Mapping[str, str],
    *,
    ties: bool,
    gaps: bool,
    bottom: bool = False,
) -> None:
    """Refuse cells that are no ranks, and what is not declared of them.

    Parameters
    ----------
    cells : ndarray, shape (n, m)
        Numbers by ranking and item, NaN where one is missing.
    remedies : mapping of str to str
        What can be done about ``"ties"``, and about ``"gaps"``, if there are any.
    ties, gaps : bool
        Whether items may share a rank, whole or half, and whether they may have none.
    bottom : bool
        Whether those without one are said to come last, so that no place above them is empty.
    """
    n, m = cells.shape
    frames.check_rows(n, "rankings")
    absent = np.isnan(cells) if cells.dtype.kind == "f" else np.zeros((1, 1), dtype=bool)
    if not gaps and absent.any():
        raise ValueError(_INCOMPLETE.format(m, remedies["gaps"]))
    ranks = np.where(absent, 1, cells) if absent.any() else cells
    halves = cells.dtype.kind == "f" and ranks != np.rint(ranks)
    if ranks.min() < 1 or ranks.max() > m or (2 * ranks[halves] % 1).any():
        raise ValueError(_NO_RANKS.format(m))
    if not ties:
        # mark rank r of row i as seen at i m + r - 1: fewer are seen than given where two share one
        place = ranks.astype(np.int64, copy=False) + np.arange(-1, n * m - 1, m)[:, None]
        seen = np.zeros(n * m + 1, dtype=bool)
        place = np.where(absent, n * m, place) if absent.any() else place
        seen[place.ravel("K")] = True
        given = n * m - np.count_nonzero(absent)
        if np.any(halves) or np.count_nonzero(seen[:-1]) < given:
            raise ValueError(_TIED.format(m, remedies["ties"]))
    # in every usual coding of ties, the last of k ranked items has a rank of at most k
    if bottom and (np.where(absent, 0, cells).max(axis=1) > m - absent.sum(axis=1)).any():
        raise ValueError(_EMPTY.format(remedies["gaps"]))
