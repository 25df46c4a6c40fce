"""Read the reports of a local protocol from any frame.

A report is a row of four columns, written by a respondent's device: the id of the protocol, the
assignment (an integer), the randomised answer (an integer), and a random id of the report. No
content of a row can stop the count: each row is either accepted once or rejected for one reason,
and rejected rows are counted by reason.
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
"""Reasons for rejection; a row with several reasons counts under the first in this order."""

STRUCK = -1
"""Assignment and answer of an id whose reports contradict each other; none of them counts."""

EXACT = 2.0**53
"""Integers stored as floats are exact below this."""

_DIGITS = re.compile(r"[0-9]+(\.0+)?")
"""An integer as text, optionally with decimal zeros (written by tables of floats)."""


def read_reports(
    reports: object, protocol_id: str, assignments: int, answers: int
) -> tuple[Identities, IntArray, IntArray, dict[str, int]]:
    """Return the readable reports of one protocol in a frame, one for each id.

    Parameters
    ----------
    reports : data frame, list of mappings, or mapping of columns
        Any frame narwhals supports, eager or lazy, with the columns :data:`COLUMNS`; other columns
        are ignored.
    protocol_id : str
        The id of the protocol.
    assignments, answers : int
        The numbers of assignments and of answers; valid values are nonnegative and smaller.

    Returns
    -------
    identity : ndarray of uint64, shape (ids,)
        A 64-bit hash of each id, sorted.
    assignment, answer : ndarray of int64, shape (ids,)
        The assignment and the randomised answer; :data:`STRUCK` if reports with one id differ.
    rejected : dict of str to int
        Rejected rows by reason.

    Raises
    ------
    TypeError, ValueError
        If `reports` is not a frame, lacks a column, or cannot be read completely.

    Notes
    -----
    **Identity.** Identical reports with the same id count once. Different reports with the same id
    are all rejected, so a person who learns the id of a report cannot replace the report
    (:func:`one_per_identity`). A report that was sent twice therefore counts once, and the result
    does not depend on the order of rows. Ids are compared by a 64-bit hash: n reports with
    different ids lose about n^2 / 2^64 reports by accident, less than one report for n = 10^9.
    """
    table = _table(reports, protocol_id)
    own = np.array(
        [isinstance(e, str) and e == protocol_id for e in table["protocol_id"].astype(object)],
        dtype=np.bool_,
    )
    assignment, asked_fault = _whole_numbers(table["assignment"], assignments)
    answer, answer_fault = _whole_numbers(table["answer"], answers)
    # a number is compared by its digits
    names = np.array([_name(entry) for entry in table["report_id"].astype(object)], dtype=object)
    # the worse of two cells decides
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
    """Return the assignment and answer of each identity, sorted by identity.

    Both are :data:`STRUCK` if the reports of an identity differ. An identity that is struck in a
    part of the reports is struck in the whole, and parts that agree form a whole that agrees. So
    parts may be counted one by one and added up in any order.
    """
    identity, first, place = np.unique(identity, return_index=True, return_inverse=True)
    # compare each report with the first report of its id
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
        # a row without columns is malformed, not of another protocol
        rows = [
            row if isinstance(row, Mapping) else {"protocol_id": protocol_id} for row in reports
        ]
        return {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in COLUMNS}
    view = frames.open_frame(reports, "reports")
    missing = [name for name in COLUMNS if name not in frames.column_names(view)]
    if missing:
        raise ValueError(
            f"reports must have the columns {', '.join(COLUMNS)}, as returned by randomize(), and "
            f"has no {missing[0]!r}. Rename the corresponding column."
        )
    return frames.series_of(view, COLUMNS, {"protocol_id": protocol_id})


def _framed(columns: Mapping[Any, Any]) -> pd.DataFrame:
    """Return a mapping of columns as a frame."""
    try:
        return pd.DataFrame(dict(columns))
    except (ValueError, TypeError):
        raise ValueError(
            "reports must be columns of equal length with an entry for each report, and they are "
            "not. Pass a list with a mapping for each report."
        ) from None


_FINE = 0
_BEYOND = 1
_NO_NUMBER = 2


def _whole_numbers(values: pd.Series[Any], below: int) -> tuple[IntArray, NDArray[np.int8]]:
    """Return integers from 0 to `below` - 1, and a fault code for each entry.

    An integer column is read at once, any other column entry by entry.
    """
    # the range is checked before the cast to int64, which would wrap unsigned numbers
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
    """Return the integer value of an entry, -1 beyond 64 bits, None if none.

    Texts of digits are accepted, because in some file formats one row of words turns a whole column
    into texts. They must be read as the same number by other languages, so signs, spaces and
    underscores are not allowed. Floats are accepted if they are exact. True and False are not
    numbers.
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
    except (ArithmeticError, ValueError):  # such as a word, or a decimal NaN
        return None
    return whole if whole in (-1, number) else None


def hashed(names: NDArray[Any]) -> Identities:
    """Return a 64-bit hash of each text in an array."""
    return pd.util.hash_array(names, categorize=False)


def _name(entry: object) -> str:
    """Return an id as text, "" if it is missing or cannot be converted to text."""
    if isinstance(entry, float) and entry.is_integer():
        entry = int(entry)
    if isinstance(entry, bool) or not isinstance(entry, str | bytes | int | np.integer | UUID):
        return ""
    try:
        text = str(entry)
        text.encode()
    except ValueError:  # half a surrogate pair, or too many digits
        return ""
    return text
