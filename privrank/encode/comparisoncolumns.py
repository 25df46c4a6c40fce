"""Which columns of a comparisons frame mean what, and which form a frame without them may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from privrank.encode import counting
from privrank.encode.frames import UNSTATED, check_name, check_stated, with_respondent_column
from privrank.util.checks import check_items

__all__ = ["ComparisonColumns", "conversion", "open_comparisons"]

_COUNT = "count"


@dataclass(frozen=True, slots=True)
class ComparisonColumns:
    """Which columns of a comparisons frame mean what; when `decided`, item1 always wins."""

    item1: str
    item2: str
    outcome: str | None
    respondent: str | None
    counts: str | None = None
    decided: bool = False


def open_comparisons(
    frame: object, columns: ComparisonColumns, items: object, covariates: Sequence[str] = ()
) -> tuple[object, counting.Frame]:
    """Return a frame with the respondent as a column, and its view; refuse one without the columns.

    Given the columns, the items if they are declared, and the names of covariates.
    """
    if isinstance(frame, np.ndarray):
        raise TypeError(
            f"comparisons must be a data frame with a row per comparison, got ndarray: convert a "
            f"matrix of wins with {conversion(frame, items)} first."
        )
    frame = with_respondent_column(frame, columns.respondent)
    view = counting.open_frame(frame, "comparisons")
    present = counting.column_names(view)
    roles: dict[str, str | None] = {"item1": columns.item1, "item2": columns.item2}
    if not columns.decided:
        roles["outcome"] = columns.outcome
    shaped = set(roles)
    if columns.respondent is not None and columns.respondent is not UNSTATED:
        roles["respondent"] = columns.respondent
    if columns.counts is not None:
        roles["counts"] = columns.counts
    for role, name in roles.items():
        check_name(name, role)
        if name not in present:
            other = f", or convert data of another form with {conversion(frame, items)}"
            raise ValueError(
                f"comparisons has no column {name!r}: name the right one with {role}="
                f"{other * (role in shaped)}."
            )
    used = (*roles.values(), *covariates)
    check_stated(columns.respondent, frame, used)
    if _COUNT in present and _COUNT not in used:
        raise ValueError(
            f"comparisons has a column {_COUNT!r} that nothing uses: name it with "
            f"counts={_COUNT!r} if a row stands for so many comparisons, else leave it out."
        )
    if len(set(roles.values())) < len(roles):
        raise ValueError(f"{'=, '.join(roles)}= must name different columns.")
    return frame, view


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
