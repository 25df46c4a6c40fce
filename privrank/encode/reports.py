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

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting

__all__ = [
    "COLUMNS",
    "FOREIGN",
    "MALFORMED",
    "RANGE",
    "REPEATED",
    "Reports",
    "once",
    "read_reports",
]

IntArray = NDArray[np.int64]
Identities = NDArray[np.uint64]
BoolArray = NDArray[np.bool_]

COLUMNS = ("protocol_id", "assignment", "answer", "report_id")

FOREIGN, MALFORMED = "another protocol", "malformed"
RANGE, REPEATED = "out of range", "repeated id"
"""Why a report is rejected; a row that has several reasons counts under the first of this order."""

EXACT = 2.0**53
"""Whole numbers that are held as floats are exact below this."""


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """Accepted reports, sorted by identity, and the numbers of rejected ones by reason.

    Parameters
    ----------
    identity : ndarray of uint64, shape (n,)
        64 bits that stand for the id of each report.
    assignment, answer : ndarray of int64, shape (n,)
        What was asked, and the randomised answer.
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
    **Identity.** Of reports with one id one counts, that of the smallest (assignment, answer)
    (:func:`once`); the others are rejected, whatever they hold. So a report that was sent twice
    counts once, and the outcome does not depend on the order of rows. Ids are compared by a hash of
    64 bits: n reports with different ids lose about n^2 / 2^65 of their number by accident, less
    than one at a thousand million.
    """
    table = _table(reports)
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
        REPEATED: int(kept.sum()) - len(found[0]),
    }
    return Reports(*found, rejected)


def once(
    identity: Identities, assignment: IntArray, answer: IntArray
) -> tuple[Identities, IntArray, IntArray]:
    """Return one report of each identity, that of the smallest (assignment, answer), sorted.

    The smallest of some reports is the smallest of the smallest of their parts, so that parts may
    be counted one by one and added up.
    """
    order = np.argsort(identity, kind="stable")
    ranked = identity[order]
    if (ranked[1:] == ranked[:-1]).any():
        order = np.lexsort((answer, assignment, identity))
        ranked = identity[order]
    first = np.ones(len(ranked), dtype=np.bool_)
    first[1:] = ranked[1:] != ranked[:-1]
    chosen = order[first]
    return identity[chosen], assignment[chosen], answer[chosen]


def _table(reports: object) -> Mapping[str, pd.Series[Any]]:
    """Return the four columns of a frame of reports."""
    if isinstance(reports, Mapping):
        single = all(np.ndim(value) == 0 for value in reports.values())
        reports = [reports] if single else pd.DataFrame(dict(reports))
    if isinstance(reports, list | tuple):
        rows = [row if isinstance(row, Mapping) else {} for row in reports]
        return {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in COLUMNS}
    try:
        view = counting.open_frame(reports, "reports")
        missing = [name for name in COLUMNS if name not in counting.column_names(view)]
        table = None if missing else counting.series_of(view, COLUMNS)
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
        if pd.api.types.infer_dtype(plain, skipna=False) not in ("string", "integer"):
            plain = plain.map(lambda e: e if isinstance(e, Real | Decimal | str) else None)
        numbers = pd.to_numeric(plain, errors="coerce")
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
    real = counting.real_numbers(numbers)
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


def _identities(values: pd.Series[Any]) -> tuple[Identities, BoolArray]:
    """Return 64 bits for each id, and whether it is missing; a number is its digits."""
    entries = values.astype(object).to_numpy()
    if values.dtype.kind == "f":
        entries = np.array([int(e) if e % 1 == 0 else None for e in entries], dtype=object)
    if pd.api.types.infer_dtype(entries, skipna=False) != "string":
        gaps = np.asarray(pd.isna(entries))
        entries = np.array(
            ["" if gap else str(e) for e, gap in zip(entries, gaps, strict=True)], dtype=object
        )
    nameless = np.asarray(entries == "", dtype=np.bool_)
    return pd.util.hash_array(entries, categorize=False), nameless
