"""Reports of a local protocol, from any frame: each is accepted once, or rejected for a reason.

A report is a row of four columns, as a respondent's device wrote it: the id of the protocol, what
was asked (a whole number, the assignment), the randomised answer (a whole number), and a random id
of its own. Nothing a row may hold stops the count: what is not a report of this protocol is
rejected, and the rejects are counted by reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import frames

__all__ = [
    "COLUMNS",
    "FOREIGN",
    "MALFORMED",
    "RANGE",
    "REASONS",
    "REPEATED",
    "STRUCK",
    "Reports",
    "hashed",
    "once",
    "read_reports",
]

IntArray = NDArray[np.int64]
Identities = NDArray[np.uint64]
BoolArray = NDArray[np.bool_]

COLUMNS = ("protocol_id", "assignment", "answer", "report_id")

FOREIGN, MALFORMED = "another protocol", "malformed"
RANGE, REPEATED = "out of range", "repeated id"
REASONS = (FOREIGN, MALFORMED, RANGE, REPEATED)
"""Why a report is rejected; a row that has several reasons counts under the first of this order."""

STRUCK = -1
"""Assignment and answer of an id whose reports contradict each other: none of them counts."""

EXACT = 2.0**53
"""Whole numbers that are held as floats are exact below this."""


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """Readable reports by id, sorted by identity, and the numbers of rejected rows by reason.

    Parameters
    ----------
    identity : ndarray of uint64, shape (ids,)
        64 bits that stand for each id.
    assignment, answer : ndarray of int64, shape (ids,)
        What was asked, and the randomised answer; :data:`STRUCK` where reports of one id differ.
    rejected : mapping of str to int
        Rejected rows by reason.
    """

    identity: Identities
    assignment: IntArray
    answer: IntArray
    rejected: Mapping[str, int]


def read_reports(reports: object, protocol_id: str, assignments: int, answers: int) -> Reports:
    """Return the reports of one protocol in a frame.

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
    Reports

    Raises
    ------
    TypeError, ValueError
        In one sentence, if this is no frame, lacks a column, or cannot be read to its end.

    Notes
    -----
    **Identity.** Of equal reports with one id one counts. Of reports with one id that differ none
    does, so that whoever learns the id of a report cannot put another in its place
    (:func:`once`). So a report that was sent twice counts once, and the outcome does not depend on
    the order of rows. Ids are compared by a hash of 64 bits: n reports with different ids lose
    about n^2 / 2^64 of their number by accident, less than one at a thousand million.
    """
    table = _table(reports, protocol_id)
    own = _texts(table["protocol_id"]) == protocol_id
    asked, asked_fault = _whole_numbers(table["assignment"], assignments)
    answer, answer_fault = _whole_numbers(table["answer"], answers)
    identity, nameless = _identities(table["report_id"])
    faults = np.maximum(asked_fault, answer_fault)  # of two cells the worse decides
    faults = np.where(nameless, _NO_NUMBER, faults)
    kept = own & (faults == _FINE)
    found = once(identity[kept], asked[kept], answer[kept])
    rejected = {
        FOREIGN: int((~own).sum()),
        MALFORMED: int((own & (faults == _NO_NUMBER)).sum()),
        RANGE: int((own & (faults == _BEYOND)).sum()),
        REPEATED: int(kept.sum()) - int((found[1] != STRUCK).sum()),
    }
    return Reports(*found, rejected)


def once(
    identity: Identities, assignment: IntArray, answer: IntArray
) -> tuple[Identities, IntArray, IntArray]:
    """Return what the reports of each identity say, :data:`STRUCK` where they differ, sorted.

    What is struck in a part of the reports is struck in the whole, and parts that agree make a
    whole that agrees: so parts may be counted one by one and added up, in any order.
    """
    order = np.argsort(identity)
    identity, assignment, answer = identity[order], assignment[order], answer[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = identity[1:] != identity[:-1]
    first = np.flatnonzero(new)
    if len(first) < len(order):
        place = np.cumsum(new) - 1
        other = assignment != assignment[first][place]
        other |= answer != answer[first][place]
        struck = place[other]
        assignment, answer = assignment[first], answer[first]
        assignment[struck] = answer[struck] = STRUCK
    return identity[first], assignment, answer


def _table(reports: object, protocol_id: str) -> Mapping[str, pd.Series[Any]]:
    """Return the four columns of a frame of reports."""
    if isinstance(reports, Mapping):
        columns = not reports or any(_is_column(value) for value in reports.values())
        reports = _framed(reports) if columns else [reports]
    if isinstance(reports, list | tuple):
        # a row that has no columns is malformed
        spoilt = {"protocol_id": protocol_id}
        rows = [row if isinstance(row, Mapping) else spoilt for row in reports]
        return {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in COLUMNS}
    try:
        view = frames.open_frame(reports, "reports")
        missing = [name for name in COLUMNS if name not in frames.column_names(view)]
        own = {"protocol_id": protocol_id}
        table = None if missing else frames.series_of(view, COLUMNS, own)
    except (TypeError, MemoryError, Warning):
        raise
    except Exception as error:  # whatever an engine raises on a file that is cut off
        if type(error) is ValueError:
            raise
        raise ValueError(
            f"reports cannot be read to their end ({type(error).__name__}): read again the files "
            f"that are damaged or cut off, or leave them out."
        ) from None
    if table is None:
        raise ValueError(
            f"reports must have the columns {', '.join(COLUMNS)}, as randomize() names them, and "
            f"has no {missing[0]!r}: rename the one meant."
        )
    return table


def _is_column(value: object) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _framed(columns: Mapping[Any, Any]) -> pd.DataFrame:
    """Return a mapping of columns as a frame."""
    try:
        return pd.DataFrame(dict(columns))
    except (ValueError, TypeError):
        raise ValueError(
            "reports must be columns of equal length with an entry for each report, and these are "
            "not: give a list with a mapping for each report."
        ) from None


def _texts(values: pd.Series[Any]) -> NDArray[Any]:
    """Return the entries that are texts, None for all others."""
    entries = values.astype(object).to_numpy()
    if pd.api.types.infer_dtype(entries, skipna=False) != "string":
        entries = np.array([e if isinstance(e, str) else None for e in entries], dtype=object)
    return entries


_FINE, _BEYOND, _NO_NUMBER = 0, 1, 2


def _whole_numbers(values: pd.Series[Any], below: int) -> tuple[IntArray, NDArray[np.int8]]:
    """Return whole numbers of at least 0 and less than `below`, and what is wrong with the others.

    Digits are numbers, as one row of words makes texts of a whole column of some files. A float
    counts where it is exact.
    """
    fault = np.full(len(values), _NO_NUMBER, dtype=np.int8)
    found = np.zeros(len(values), dtype=np.int64)
    numbers = values
    if not pd.api.types.is_numeric_dtype(values.dtype):
        plain = values.astype(object)
        if pd.api.types.infer_dtype(plain, skipna=False) != "string":
            plain = plain.map(_plain)
        values, numbers = plain, pd.to_numeric(plain, errors="coerce")
    if numbers.dtype.kind in "iu" and isinstance(numbers.dtype, np.dtype):
        whole = numbers.to_numpy()
        inside = (whole >= 0) & (whole < below)
        found[inside] = whole[inside]
        fault[:] = np.where(inside, _FINE, _BEYOND)
        return found, fault
    gaps = numbers.isna().to_numpy(dtype=np.bool_)
    if numbers.dtype.kind in "iu":  # one that may be missing
        whole, present = _whole_numbers(numbers[~gaps].astype(str).astype(object), below)
        found[~gaps], fault[~gaps] = whole, present
        return found, fault
    real = frames.real_numbers(numbers)
    with np.errstate(invalid="ignore"):
        exact = (real % 1 == 0) & (np.abs(real) < EXACT)
        inside = exact & (real >= 0) & (real < below)
    found[inside] = real[inside].astype(np.int64)
    fault[exact] = _BEYOND
    fault[inside] = _FINE
    large = np.flatnonzero(np.abs(real) >= EXACT)
    if len(large) and values.dtype.kind != "f":
        digits = values.iloc[large].astype(str).to_numpy(dtype="U20")
        short = np.char.isdecimal(digits) & (np.char.str_len(digits) <= 19)
        large, digits = large[short], digits[short].astype(np.uint64)
        inside = digits < below
        found[large[inside]] = digits[inside].astype(np.int64)
        fault[large] = np.where(inside, _FINE, _BEYOND)
    return found, fault


def _plain(entry: Any) -> str | float | None:
    """Return a number as one that pandas reads, -1 where 64 bits cannot hold it."""
    if isinstance(entry, str | float):
        return entry
    if not isinstance(entry, Real | Decimal | np.bool_):
        return None
    number: Any = int(entry) if isinstance(entry, np.bool_) else entry
    try:
        if not 0 <= number < 2**63:
            return -1
        whole = int(number)
        return whole if whole == number else None
    except (ArithmeticError, ValueError):  # such as a decimal that is none
        return None


def _identities(values: pd.Series[Any]) -> tuple[Identities, BoolArray]:
    """Return 64 bits for each id, and whether it is missing; a number is its digits."""
    entries = values.astype(object).to_numpy()
    texts = pd.api.types.infer_dtype(entries, skipna=False) == "string"
    try:
        found = hashed(entries) if texts else None
    except UnicodeEncodeError:
        found = None
    if found is None:
        entries = np.array([_name(entry) for entry in entries], dtype=object)
        found = hashed(entries)
    return found, np.asarray(entries == "", dtype=np.bool_)


def hashed(names: NDArray[Any]) -> Identities:
    """Return 64 bits for each of an array of texts."""
    return pd.util.hash_array(names, categorize=False)


def _name(entry: object) -> str:
    """Return an id as text, "" where it is missing or no text could hold it."""
    if isinstance(entry, float) and entry.is_integer():
        entry = int(entry)
    if not isinstance(entry, str | bytes | int | np.integer | np.bool_ | UUID):
        return ""
    try:
        text = str(entry)
        text.encode()
    except ValueError:  # half a character, or too many digits
        return ""
    return text
