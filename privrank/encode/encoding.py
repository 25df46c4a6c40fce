"""The steps from a frame to what mechanisms are handed, which all encoders take in this order.

1. Columns are opened by their names, without a look at a cell (:func:`open_rows`).
2. Items, categories, groups and levels are declared: by the call, or by the types of columns
   (:func:`privrank.encode.frames.declared_items`, :func:`privrank.encode.counting.declared_values`,
   :func:`privrank.bradley_terry.modelmatrix.declare`).
3. Cells become places among what is declared (:func:`declared_codes`).
4. Rows are counted by unit, and bounded (:func:`units_of`).

:mod:`~privrank.encode.comparisons`, :mod:`~privrank.encode.samples` and
:mod:`~privrank.encode.groups` say which columns these are, and refuse what is particular to them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.encode.frames import check_name, check_present, with_respondent_column
from privrank.privacy.budget import Unit

__all__ = ["Units", "check_owned", "declared_codes", "open_rows", "units_of"]

IntArray = NDArray[np.int64]


def open_rows(frame: object, respondent: object, name: str) -> tuple[object, counting.Frame]:
    """Return a frame with the respondent, if there is one, as a column, and its view.

    Given what messages call the frame.
    """
    if respondent is not None:
        check_name(respondent, "respondent")
    frame = with_respondent_column(frame, respondent)
    if isinstance(frame, pd.DataFrame) and not all(isinstance(c, str) for c in frame.columns):
        frame = frame.set_axis([str(label) for label in frame.columns], axis=1)
    view = counting.open_frame(frame, name)
    if respondent is not None:
        names = counting.column_names(view)
        check_present([respondent], names, name, "name the right one with respondent=")
    return frame, view


def declared_codes(
    key: counting.Key, labels: tuple[object, ...], column: str, what: str, remedy: str
) -> IntArray:
    """Return the place of each entry among the declared labels; refuse any that has none.

    Given what the labels are, and where they are declared, with what can be done about others.
    """
    codes = key.among(labels)
    if (codes < 0).any():
        raise ValueError(
            f"column {column!r} must hold declared {what} only: at least one entry is missing or "
            f"not in {remedy}."
        )
    return codes


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Whose the rows are: each a unit of its own, or those of one respondent.

    Parameters
    ----------
    nobs : int
        Number of units.
    max_rows : int
        The declared bound on a respondent's rows.
    person : ndarray of int64 or None
        The respondent of each row, or group of rows; None where each row is a unit.
    """

    nobs: int
    max_rows: int
    person: IntArray | None = None

    @property
    def unit(self) -> Unit:
        """What one unit is."""
        return "row" if self.person is None else "respondent"


def units_of(
    respondent: counting.Key | None,
    column: str | None,
    size: IntArray,
    max_rows: int,
    *,
    bounded: bool = True,
    remedy: str = "",
) -> Units:
    """Return whose rows these are; refuse rows of nobody, and more than `max_rows` of somebody.

    Given the respondents, their column, and how many rows each entry stands for; whether their
    number is to be `bounded` here, and what else can be done about more.
    """
    if respondent is None:
        return Units(int(size.sum()), max_rows)
    check_owned(respondent, column)
    most = max_rows if bounded else math.inf
    if np.bincount(respondent.codes, size).max(initial=0) > most:
        raise ValueError(
            f"max_rows={max_rows} must bound the rows of every respondent, and at least one has "
            f"more: state the largest number of rows the questionnaire allows{remedy}."
        )
    return Units(len(respondent.values), max_rows, respondent.codes)


def check_owned(owner: counting.Key, column: str | None, what: str = "respondent") -> None:
    """Refuse rows whose respondent, or other owner, is missing."""
    if (owner.codes < 0).any():
        raise ValueError(
            f"column {column!r} must name the {what} of every row: fill in the missing entries."
        )
