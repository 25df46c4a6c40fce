"""Which columns of a comparisons frame mean what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrank.encode import counting
from privrank.encode.frames import (
    COUNT,
    ORDER_FROM,
    PAIRS_FROM,
    UNSTATED,
    check_name,
    check_stated,
    marks_of,
    with_respondent_column,
)
from privrank.encode.predictor import Predictor
from privrank.encode.shapes import comparisons_call
from privrank.release.survey import DesignKind

__all__ = ["ComparisonColumns", "check_fixed", "open_comparisons"]

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
    used = (*roles.values(), *covariates, ORDER_FROM, PAIRS_FROM)
    check_stated(columns.respondent, frame, used)
    if COUNT in present and COUNT not in used:
        raise ValueError(
            f"comparisons has a column {COUNT!r} that nothing uses: name it with "
            f"counts={COUNT!r} if a row stands for so many comparisons, else leave it out."
        )
    if len(set(roles.values())) < len(roles):
        raise ValueError(f"{'=, '.join(roles)}= must name different columns.")
    return frame, view


def check_fixed(
    frame: object,
    view: counting.Frame,
    kind: DesignKind,
    respondent: str | None,
    predictor: Predictor | None,
) -> None:
    """Refuse to take as public what the form of the data has not fixed before the answers.

    Given the kind of design, the column of respondents, and the covariates if there are any.

    **Privacy.** Which pairs a list tells is decided by what it lists, and so is their number, which
    is public where each comparison is a unit of its own. An order of naming is public with its pair
    counts. Both are read off names of columns and of ``attrs``, which the form alone decides
    (:func:`privrank.as_comparisons`): a refusal says nothing of the answers.
    """
    present = marks_of(frame, counting.column_names(view))
    if PAIRS_FROM in present and (kind == "public" or respondent is None):
        raise ValueError(
            f"comparisons that lists of some items tell (mark {PAIRS_FROM!r}) need "
            f"design='private' and respondent=, because which pairs these are, and how many, is "
            f"part of the answer: leave design= out, and name the column that says whose list it "
            f"is."
        )
    if ORDER_FROM in present and predictor is not None and predictor.covariates.ordered:
        raise ValueError(
            f"formula must not have 'first' for comparisons whose form does not say which item was "
            f"named first (mark {ORDER_FROM!r}): give a frame with item1 and item2 in the order "
            f"of the questionnaire, of form='long' or 'wide'."
        )
