"""Which form data have that are not as asked for, and the call that converts them.

Looks at what is public alone: the names and types of columns, the items, and whether rows are named
as columns are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from privrank.encode import counting
from privrank.util.checks import check_items

__all__ = ["comparisons_call", "rankings_call"]


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
