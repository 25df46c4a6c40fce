"""Which columns of a comparisons frame mean what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrank.encode import counting
from privrank.encode.frames import (
    COUNT,
    UNSTATED,
    check_name,
    check_stated,
    with_respondent_column,
)
from privrank.encode.shapes import comparisons_call

__all__ = ["ComparisonColumns", "open_comparisons"]

_CONVERTED = {"item1", "item2", "outcome", "respondent"}
"""The columns of a frame that as_comparisons made for respondents."""


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
            f"matrix of wins with {comparisons_call(frame, items)} first."
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
            other = ""
            if role in shaped:
                other = f", or convert data of another form with {comparisons_call(frame, items)}"
            elif role == "respondent" and _CONVERTED <= set(present):
                other = ", which in a frame of privrank.as_comparisons is 'respondent'"
            raise ValueError(
                f"comparisons has no column {name!r}: name the right one with {role}={other}."
            )
    used = (*roles.values(), *covariates)
    check_stated(columns.respondent, frame, used)
    if COUNT in present and COUNT not in used:
        raise ValueError(
            f"comparisons has a column {COUNT!r} that nothing uses: name it with "
            f"counts={COUNT!r} if a row stands for so many comparisons, else leave it out."
        )
    if len(set(roles.values())) < len(roles):
        raise ValueError(f"{'=, '.join(roles)}= must name different columns.")
    return frame, view
