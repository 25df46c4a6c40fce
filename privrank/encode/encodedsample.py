"""Encoded rankings or choices: what they hold, and how rows become units."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.encode.frames import check_respondents, refuse_copy, with_respondent_column
from privrank.encode.ranks import Missing
from privrank.release.survey import Sample

__all__ = ["FEWEST_UNITS", "EncodedSample", "enough", "named", "open_rows", "units_of"]

IntArray = NDArray[np.int64]

FEWEST_UNITS = 2
"""Units below which nothing can be tested or estimated."""


class EncodedSample:
    """Sensitive rankings or choices, and the public facts about them.

    The frame itself is gone. It prints only its shape and refuses to be pickled or copied.

    Parameters
    ----------
    sample : Sample
        Public facts.
    rows : ndarray of int64
        Ranks, shape (rows, m); or the code of each row's category, shape (rows,), when choices
        have respondents; or the counts by category, shape (k,), when a row is the unit.
    sizes : ndarray of int64 or None
        Where the unit is a respondent, the numbers of rows of each; the rows are in that order.
    ties : bool
        Whether items may share a rank, as the user has declared.
    missing : {"bottom", "half"} or None
        How items without a rank are read, as the user has declared; None if there may be none.
        If this or `ties` is given rows hold twice the ranks. An item without one has 2 m + 2 where
        it is read as below the others, and else 0.
    """

    __slots__ = ("_rows", "_sizes", "missing", "sample", "ties")

    def __init__(
        self,
        sample: Sample,
        rows: IntArray,
        sizes: IntArray | None,
        ties: bool = False,
        missing: Missing | None = None,
    ) -> None:
        self.sample = sample
        self.ties = ties
        self.missing = missing
        self._rows = rows
        self._sizes = sizes

    @property
    def partial(self) -> bool:
        """Whether rankings may have ties or missing items, so that votes may be halves."""
        return self.ties or self.missing is not None

    def __repr__(self) -> str:
        """Show the shape only."""
        sample = self.sample
        return f"<Encoded {sample.kind}: {len(sample.items)} items, {sample.nobs} units>"

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = refuse_copy


def open_rows(frame: object, respondent: object, name: str) -> counting.Frame:
    """Return a view of a frame that has the column of the respondent, if there is one."""
    if respondent is not None and not isinstance(respondent, str):
        raise TypeError(f"respondent must be a column name, got {type(respondent).__name__}.")
    frame = with_respondent_column(frame, respondent)
    if isinstance(frame, pd.DataFrame) and not all(isinstance(c, str) for c in frame.columns):
        frame = frame.set_axis([str(label) for label in frame.columns], axis=1)
    view = counting.open_frame(frame, name)
    if respondent is not None and respondent not in counting.column_names(view):
        raise ValueError(
            f"{name} has no column {respondent!r}: name the right one with respondent=."
        )
    return view


def enough(nobs: int, least: int = FEWEST_UNITS) -> int:
    """Return the number of units; refuse fewer than `least`."""
    if nobs < least:
        raise ValueError(f"at least two units are needed, got {nobs}: collect more answers.")
    return nobs


def named(respondent: str | None) -> list[str]:
    """Return the column of the respondent as a list, empty if there is none."""
    return [] if respondent is None else [respondent]


def units_of(
    table: pd.DataFrame, respondent: str | None, max_rows: int, least: int = FEWEST_UNITS
) -> tuple[int, IntArray | None, IntArray | None]:
    """Return the number of units and, for respondents, their numbers of rows and an order."""
    if respondent is None:
        return enough(len(table), least), None, None
    person, _ = counting.factorize(table[respondent], respondent)
    check_respondents(person, None, respondent, max_rows)
    sizes = np.bincount(person)
    return enough(len(sizes), least), sizes, np.argsort(person, kind="stable")
