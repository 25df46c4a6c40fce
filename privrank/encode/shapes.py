"""What form a frame without the columns of comparisons may have, from names and shape alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privrank.encode import counting
from privrank.util.checks import check_items

__all__ = ["conversion"]

_CALL = "privrank.as_comparisons(frame, {})"


def conversion(frame: object, items: object) -> str:
    """Return the call that converts a frame of another form to comparisons.

    Looks at what is public: the names of columns, the items, and whether rows are named as columns.
    """
    if isinstance(frame, np.ndarray):
        square = frame.ndim == 2 and frame.shape[0] == frame.shape[1]
        return _CALL.format("'matrix', items=[...]" if square else "form=...")
    columns = counting.column_names(counting.open_frame(frame, "comparisons"))
    spelled = {str(name).lower(): name for name in columns}
    if isinstance(frame, pd.DataFrame) and set(frame.index) == set(columns):
        return _CALL.format("'matrix'")
    for form, roles in (("winner-loser", ("winner", "loser")), ("counts", ("win1", "win2"))):
        if spelled.keys() >= set(roles):
            named = [f"{role}={spelled[role]!r}" for role in roles if spelled[role] != role]
            return _CALL.format(", ".join([repr(form), *named]))
    if items is None:
        return _CALL.format("form=...")
    labels = [str(label) for label in check_items(items)]
    if set(labels) <= {str(name) for name in columns}:
        return _CALL.format("'rankings', items=[...]") + " (or 'ratings' if higher is better)"
    if any(sum(label in str(name) for label in labels) == 2 for name in columns):
        return _CALL.format("'wide', items=[...], sep=...)")
    return _CALL.format("form=...")
