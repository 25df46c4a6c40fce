"""What form data without the columns of comparisons may have, from names and shape alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from privrank.encode import counting
from privrank.util.checks import check_items

__all__ = ["conversion"]


def conversion(frame: object, items: object) -> str:
    """Return the call that converts data of another form to comparisons, as far as can be told.

    Looks at what is public: the names of columns, the items, and whether rows are named as columns.
    """
    return f"privrank.as_comparisons(frame, {_form(frame, items)})"


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
