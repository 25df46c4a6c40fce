"""Reports of a local protocol, from any frame: each is accepted once, or rejected for a reason.

A report is a row of four columns, as a respondent's device wrote it. They are the id of the
protocol, what was asked (a whole number, the assignment), the randomised answer (a whole number),
and a random id of its own. Nothing a row may hold stops the count: what is not a report of this
protocol is rejected, and the rejects are counted by reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import frames
from privrank.util.arrays import IntArray

Identities = NDArray[np.uint64]

COLUMNS = ("protocol_id", "assignment", "answer", "report_id")

FOREIGN = "another protocol"
MALFORMED = "malformed"
RANGE = "out of range"
REPEATED = "repeated id"
"""Why a report is rejected; a row that has several reasons counts under the first of this order."""

STRUCK = -1
"""Assignment and answer of an id whose reports contradict each other: none of them counts."""

EXACT = 2.0**53
"""Whole numbers that are held as floats are exact below this."""

_DIGITS = re.compile(r"[0-9]+(\.0+)?")
"""A whole number as text, with the zeros that tables of floats write."""


def read_reports(
    reports: object, protocol_id: str, assignments: int, answers: int
) -> tuple[Identities, IntArray, IntArray, dict[str, int]]:
    """Return the readable reports of one protocol in a frame, one for each id.

    Parameters
    ----------
    reports : data frame, list of mappings, or mapping of columns
        Any frame narwhals supports, eager or lazy, with the columns :data:`COLUMNS`; others are
        left alone.
    protocol_id : str
        The id of the protocol.
    assignments, answers : int
        How many there are of each; valid ones are 0 up to below these.

    Returns
    -------
    identity : ndarray of uint64, shape (ids,)
        64 bits that stand for each id, sorted.
    assignment, answer : ndarray of int64, shape (ids,)
        What was asked, and the randomised answer; :data:`STRUCK` where reports of one id differ.
    rejected : dict of str to int
        Rejected rows by reason.

    Raises
    ------
    TypeError, ValueError
        If this is no frame, lacks a column, or cannot be read to its end.

    Notes
    -----
    **Identity.** Of equal reports with one id one counts. Of reports with one id that differ none
    does, so that whoever learns the id of a report cannot put another in its place
    (:func:`one_per_identity`). So a report that was sent twice counts once, and the outcome does
    not depend on the order of rows. Ids are compared by a hash of 64 bits: n reports with different ids lose
    about n^2 / 2^64 of their number by accident, less than one at a thousand million.
    """
    table = _table(reports, protocol_id)
    own = np.array(
        [isinstance(e, str) and e == protocol_id for e in table["protocol_id"].astype(object)],
        dtype=np.bool_,
    )
    assignment, asked_fault = _whole_numbers(table["assignment"], assignments)
    answer, answer_fault = _whole_numbers(table["answer"], answers)
    # a number is its digits
    names = np.array([_name(entry) for entry in table["report_id"].astype(object)], dtype=object)
    # of two cells the worse decides
    faults = np.where(names == "", _NO_NUMBER, np.maximum(asked_fault, answer_fault))
    sound = own & (faults == _FINE)
    single = one_per_identity(hashed(names)[sound], assignment[sound], answer[sound])
    rejected = {
        FOREIGN: int((~own).sum()),
        MALFORMED: int((own & (faults == _NO_NUMBER)).sum()),
        RANGE: int((own & (faults == _BEYOND)).sum()),
        REPEATED: int(sound.sum()) - int((single[1] != STRUCK).sum()),
    }
    return *single, rejected


def one_per_identity(
    identity: Identities, assignment: IntArray, answer: IntArray
) -> tuple[Identities, IntArray, IntArray]:
    """Return what the reports of each identity say, :data:`STRUCK` where they differ, sorted.

    What is struck in a part of the reports is struck in the whole, and parts that agree make a
    whole that agrees. So parts may be counted one by one and added up, in any order.
    """
    identity, first, place = np.unique(identity, return_index=True, return_inverse=True)
    # each report against the first of its id
    differs = (assignment != assignment[first][place]) | (answer != answer[first][place])
    assignment = assignment[first]
    answer = answer[first]
    assignment[place[differs]] = answer[place[differs]] = STRUCK
    return identity, assignment, answer


def _table(reports: object, protocol_id: str) -> Mapping[str, pd.Series[Any]]:
    """Return the four columns of a frame of reports."""
    if isinstance(reports, Mapping):
        columns = not reports or any(
            hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)
            for value in reports.values()
        )
        reports = _framed(reports) if columns else [reports]
    if isinstance(reports, list | tuple):
        # a row that has no columns is malformed, not of another protocol
        rows = [
            row if isinstance(row, Mapping) else {"protocol_id": protocol_id} for row in reports
        ]
        return {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in COLUMNS}
    view = frames.open_frame(reports, "reports")
    missing = [name for name in COLUMNS if name not in frames.column_names(view)]
    if missing:
        raise ValueError(
            f"reports must have the columns {', '.join(COLUMNS)}, as randomize() names them, and "
            f"has no {missing[0]!r}: rename the one meant."
        )
    return frames.series_of(view, COLUMNS, {"protocol_id": protocol_id})


def _framed(columns: Mapping[Any, Any]) -> pd.DataFrame:
    """Return a mapping of columns as a frame."""
    try:
        return pd.DataFrame(dict(columns))
    except (ValueError, TypeError):
        raise ValueError(
            "reports must be columns of equal length with an entry for each report, and these are "
            "not: give a list with a mapping for each report."
        ) from None


_FINE = 0
_BEYOND = 1
_NO_NUMBER = 2


def _whole_numbers(values: pd.Series[Any], below: int) -> tuple[IntArray, NDArray[np.int8]]:
    """Return whole numbers of at least 0 and less than `below`, and what is wrong with the others.

    A column of whole numbers is read at once, any other entry by entry.
    """
    # the range is checked before the cast to int64, which would wrap unsigned numbers round
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu":
        numbers = values.to_numpy()
        fault = np.zeros(len(values), dtype=np.int8)
    else:
        entries = [_whole_number(entry) for entry in values.astype(object)]
        fault = np.array([_NO_NUMBER if e is None else _FINE for e in entries], dtype=np.int8)
        numbers = np.array([e or 0 for e in entries], dtype=np.int64)
    fault[(fault == _FINE) & ((numbers < 0) | (numbers >= below))] = _BEYOND
    return np.where(fault == _FINE, numbers, 0).astype(np.int64), fault


def _whole_number(entry: Any) -> int | None:
    """Return the whole number that an entry stands for, -1 beyond 64 bits, None if it is none.

    Digits are numbers, as one row of words makes texts of a whole column of some files: those that
    other languages read as the same number, so without sign, spaces or underscores. A float counts
    where it is exact. True and False are no numbers.
    """
    if isinstance(entry, bool) or not isinstance(entry, str | Real | Decimal):
        return None
    number: Any = entry
    try:
        if isinstance(entry, str):
            if not _DIGITS.fullmatch(entry):
                return None
            number = float(entry) if "." in entry else int(entry)
        if isinstance(number, float | np.floating) and not number < EXACT:
            return None
        whole = int(number) if 0 <= number < 2**63 else -1
    except (ArithmeticError, ValueError):  # such as a word, or a decimal that is none
        return None
    return whole if whole in (-1, number) else None


def hashed(names: NDArray[Any]) -> Identities:
    """Return 64 bits for each of an array of texts."""
    return pd.util.hash_array(names, categorize=False)


def _name(entry: object) -> str:
    """Return an id as text, "" where it is missing or no text could hold it."""
    if isinstance(entry, float) and entry.is_integer():
        entry = int(entry)
    if isinstance(entry, bool) or not isinstance(entry, str | bytes | int | np.integer | UUID):
        return ""
    try:
        text = str(entry)
        text.encode()
    except ValueError:  # half a character, or too many digits
        return ""
    return text
