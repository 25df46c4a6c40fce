"""Tally: the curator's counts of local reports by assignment and answer.

A report is a row of four columns, written by a respondent's device: the id of the protocol, the
assignment (an integer), the randomised answer (an integer), and a random id of the report. Reports
are read from any frame. No content of a row can stop the count: each row is either accepted once or
rejected for one reason, and rejected rows are counted by reason.

A tally contains all information that a curator needs from the reports. The tallies of several days
or sites add up to the tally of all reports; a report sent to two sites counts once. Releases
computed from a tally have the same form as releases of any mechanism, and spend nothing at the
curator.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import frames
from privrank.hypotheses.nulls import public_generator
from privrank.local.kinds import AdaptiveKwikSort, protocol_from_json
from privrank.local.protocols import Protocol, check_kind
from privrank.release.archived import NOT_JSON, archive, read_archive
from privrank.release.names import GAIN, ORDER, REJECTED, STATISTIC
from privrank.release.release import Release
from privrank.release.survey import QUIET, Design, PartPlan, Plan, Sample, Setting
from privrank.util.arrays import FloatArray, IntArray, immutable, readonly_copy
from privrank.util.checks import LARGEST_COUNT, as_array, check_flag, refuse_if

Values = Mapping[str, tuple[IntArray, float]]
"""Released numbers by name: integers, and the size of their step."""

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

# faults of a cell; the worse of two cells decides
_FINE = 0
_BEYOND = 1
_NO_NUMBER = 2

_BITS = 50
"""Precision in bits of released numbers that are not counts."""

_CELLS = ("assignment", "answer", "count")
_ARRAYS = (*_CELLS, "identity", "cell")


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tally:
    """Counts of the accepted local reports of one protocol.

    A tally is created by a protocol's ``tally(reports)``. Sites that count their own reports send
    tallies as text (:meth:`to_json`), which :func:`privrank.from_json` reads. The sum of the
    tallies of one protocol is the tally of all reports: ``tally1 + tally2``, or ``sum(tallies)``.

    Parameters
    ----------
    protocol : Protocol
        The public protocol.
    assignment, answer : ndarray of int64, shape (cells,)
        The combinations (cells) of assignment and answer that occur, sorted.
    count : ndarray of int64, shape (cells,)
        Number of accepted reports in each cell.
    rejected : mapping of str to int
        Rejected reports by reason.
    identity : ndarray of uint64, shape (ids,), or None
        A 64-bit hash of each id, sorted; None if ids were left out.
    cell : ndarray of int64, shape (ids,), or None
        The cell of each report, -1 for an id whose reports differ.

    See Also
    --------
    privrank.PrivateBTL.from_reports : Bradley-Terry worths from a tally of comparisons.
    privrank.PrivateRankAggregation.from_reports : Consensus ranking from a tally.
    privrank.from_json : Read the text of a tally.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> from privrank.local import Comparisons, Tally
    >>> protocol = Comparisons(["tea", "milk"], epsilon=1.0)
    >>> reports = protocol.simulate(np.array(3 * [[1, 2]]), np.random.default_rng(1))
    >>> tally = protocol.tally(reports)
    >>> tally
    <Tally: comparisons, 3 reports accepted, rejected: none>
    >>> tally + tally  # every report counts once
    <Tally: comparisons, 3 reports accepted, rejected: 3 repeated id>

    Another site counts two reports and sends its tally as text:

    >>> others = protocol.simulate(np.array(2 * [[2, 1]]), np.random.default_rng(2))
    >>> text = protocol.tally(others).to_json()
    >>> tally + pr.from_json(text)
    <Tally: comparisons, 5 reports accepted, rejected: none>
    """

    protocol: Protocol
    assignment: IntArray
    answer: IntArray
    count: IntArray
    rejected: Mapping[str, int]
    identity: Identities | None
    cell: IntArray | None

    def __post_init__(self) -> None:
        """Make read-only copies of the arrays."""
        for name in _ARRAYS:
            kind = np.uint64 if name == "identity" else np.int64
            values = getattr(self, name)
            object.__setattr__(self, name, None if values is None else readonly_copy(values, kind))
        object.__setattr__(self, "rejected", dict(self.rejected))

    @classmethod
    def of(cls, protocol: Protocol, reports: object) -> Tally:
        """Count the reports of a protocol.

        Parameters
        ----------
        protocol : Protocol
            The public protocol.
        reports : data frame, list of mappings, or mapping of columns
            Any frame narwhals supports, eager or lazy, such as a scan of a folder of Parquet files,
            with the columns ``protocol_id``, ``assignment``, ``answer`` and ``report_id``.

        Returns
        -------
        Tally

        Examples
        --------
        >>> Tally.of(protocol, reports).count.tolist()
        [2, 1]
        """
        check_kind(protocol, Protocol)
        return _counted(
            protocol,
            *read_reports(reports, protocol.id, protocol.assignments, protocol.answers),
        )

    @property
    def n(self) -> int:
        """Number of accepted reports.

        Examples
        --------
        >>> tally.n
        3
        """
        return int(self.count.sum())

    def __repr__(self) -> str:
        """Return a string that shows the protocol and the counts."""
        reasons = [f"{number} {reason}" for reason, number in self.rejected.items() if number]
        return (
            f"<Tally: {self.protocol.kind}, {self.n} reports accepted, rejected: "
            f"{', '.join(reasons) or 'none'}>"
        )

    def __add__(self, other: object) -> Tally:
        """Return the tally of the reports of both.

        If both contain ids, a report that is in both counts once. If neither does, the counts are
        added. The order in which tallies are added makes no difference.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        refuse_if(
            (
                other.protocol.id != self.protocol.id,
                "tallies must be of one protocol to be added, and these have different protocol "
                "ids. Estimate from each tally separately.",
            ),
            (
                (self.identity is None) != (other.identity is None),
                "tallies must both hold ids to be added, or neither, because common reports are "
                "found by their ids. Leave the ids out of both with to_json(ids=False).",
            ),
        )
        rejected = {
            reason: self.rejected.get(reason, 0) + other.rejected.get(reason, 0)
            for reason in {**self.rejected, **other.rejected}
        }
        if self.identity is None:
            both = [np.append(getattr(self, name), getattr(other, name)) for name in _CELLS]
            return Tally(self.protocol, *_cells_of(*both)[:3], rejected, None, None)
        # with ids: add report by report, so a report that is in both counts once
        single = one_per_identity(
            *(np.concatenate(pair) for pair in zip(self._reports, other._reports, strict=True))
        )
        # duplicates, and reports that contradict each other, are counted as rejected
        rejected[REPEATED] += self.n + other.n - int((single[1] != STRUCK).sum())
        return _counted(self.protocol, *single, rejected)

    @property
    def _reports(self) -> tuple[Identities, IntArray, IntArray]:
        """The assignment and answer of each id."""
        assert self.identity is not None and self.cell is not None
        # the last entry is that of struck ids, whose cell is -1
        assignment, answer = (
            np.append(v, STRUCK)[self.cell] for v in (self.assignment, self.answer)
        )
        return self.identity, assignment, answer

    def __radd__(self, other: object) -> Tally:
        """Return the tally itself, if it is the first term of ``sum``."""
        return self if other == 0 else NotImplemented

    def to_json(self, *, ids: bool = True) -> str:
        """Return the tally as JSON text, from which :meth:`from_json` rebuilds it.

        Parameters
        ----------
        ids : bool, default True
            Whether to keep a 64-bit hash of the random id of each report. The hashes reveal nothing
            about an answer by themselves, but anyone who knows the id of a report can look up its
            answer. Without ids, a report that is in two tallies counts twice when these are added.

        Returns
        -------
        str

        Examples
        --------
        >>> Tally.from_json(tally.to_json()).n == tally.n
        True
        """
        record = {
            "protocol": self.protocol.to_json(),
            "rejected": self.rejected,
            **{name: getattr(self, name).tolist() for name in _CELLS},
        }
        if check_flag("ids", ids) and self.identity is not None and self.cell is not None:
            # use a text, because lists of millions of numbers would take ten times as long
            bits = np.array([self.identity.astype("<i8"), self.cell], dtype="<i8").tobytes()
            record["ids"] = base64.b64encode(bits).decode("ascii")
        return archive(record)

    @classmethod
    def from_json(cls, text: str) -> Tally:
        """Rebuild the tally that :meth:`to_json` wrote.

        Examples
        --------
        >>> Tally.from_json(tally.to_json(ids=False))
        <Tally: comparisons, 3 reports accepted, rejected: none>
        """
        record = read_archive(text)
        with suppress(LookupError, TypeError, ValueError, OverflowError):
            protocol = protocol_from_json(record["protocol"])
            cells: list[Any] = [as_array(record[name]) for name in _CELLS]
            if any(cell.size and cell.dtype.kind not in "iu" for cell in cells):
                raise TypeError("the numbers of a tally must be whole.")
            bits = np.frombuffer(base64.b64decode(record.get("ids", "")), "<i8").reshape(2, -1)
            identity, cell = bits if "ids" in record else (None, None)
            tally = cls(protocol, *cells, record["rejected"], identity, cell)  # type: ignore[call-arg]
            if tally._is_sound():
                return tally
        raise ValueError(NOT_JSON)

    def _is_sound(self) -> bool:
        """Return whether reports of the protocol could have these counts."""
        step = np.diff(self.assignment)
        ordered = (step > 0) | ((step == 0) & (np.diff(self.answer) > 0))
        within = (self.assignment >= 0) & (self.assignment < self.protocol.assignments)
        within &= (self.answer >= 0) & (self.answer < self.protocol.answers) & (self.count > 0)
        cells = len(self.count)
        return bool(
            within.shape == (cells,)
            and within.all()
            and ordered.all()
            and self.count.sum(dtype=np.float64) < LARGEST_COUNT
            and self.rejected.keys() == {FOREIGN, MALFORMED, RANGE, REPEATED}
            and all(type(number) is int and number >= 0 for number in self.rejected.values())
            and (
                self.identity is None
                or self.cell is None
                # ids are sorted and distinct, and each cell has as many as it has reports
                or (
                    (self.identity[1:] > self.identity[:-1]).all()
                    and self.cell.max(initial=STRUCK) < cells
                    and np.array_equal(
                        np.bincount(self.cell[self.cell != STRUCK], minlength=cells), self.count
                    )
                )
            )
        )


def _counted(
    protocol: Protocol,
    identity: Identities,
    assignment: IntArray,
    answer: IntArray,
    rejected: Mapping[str, int],
) -> Tally:
    """Return the tally of the reports of all ids; struck ids do not count."""
    clear = assignment != STRUCK
    cell_assignment, answered, count, place = _cells_of(
        assignment[clear], answer[clear], np.ones(int(clear.sum()), dtype=np.int64)
    )
    cell = np.full(len(clear), STRUCK, dtype=np.int64)
    cell[clear] = place
    return Tally(protocol, cell_assignment, answered, count, rejected, identity, cell)


def _cells_of(
    assignment: IntArray, answer: IntArray, count: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the sorted combinations, their counts, and the cell of each report."""
    # groups are sorted by assignment, then by answer, whatever the order of the reports
    cells = pd.DataFrame({"assignment": assignment, "answer": answer, "count": count}).groupby(
        ["assignment", "answer"]
    )
    whole = cells["count"].sum().reset_index()
    return *(whole[name].to_numpy() for name in _CELLS), cells.ngroup().to_numpy()  # type: ignore[return-value]


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
    return *single, {
        FOREIGN: int((~own).sum()),
        MALFORMED: int((own & (faults == _NO_NUMBER)).sum()),
        RANGE: int((own & (faults == _BEYOND)).sum()),
        REPEATED: int(sound.sum()) - int((single[1] != STRUCK).sum()),
    }


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
    struck = np.bincount(place, differs, len(identity)) > 0
    return (
        identity,
        np.where(struck, STRUCK, assignment[first]),
        np.where(struck, STRUCK, answer[first]),
    )


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
    try:
        if isinstance(entry, str):
            if not _DIGITS.fullmatch(entry):
                return None
            entry = float(entry) if "." in entry else int(entry)
        if isinstance(entry, float | np.floating) and not entry < EXACT:
            return None
        whole = int(entry) if 0 <= entry < 2**63 else -1
    except (ArithmeticError, ValueError):  # such as a word, or a decimal NaN
        return None
    return whole if whole in (-1, entry) else None


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


def release_of(
    tally: Tally,
    values: Values,
    *,
    by: str,
    method: str,
    settings: Mapping[str, Setting],
    survey: Design | None = None,
    findings: Mapping[str, float] | None = None,
    tie_break: tuple[int, ...] | None = None,
) -> Release:
    """Return the release of numbers computed from a tally.

    Parameters
    ----------
    tally : Tally
        Accepted reports, and the numbers of rejected reports.
    values : mapping of str to (ndarray of int64, float)
        The parts: integers, and the size of their step.
    by, method : str
        The class that makes the inference, and the method by which it reads the release.
    settings : mapping
        Public constants other than the protocol and the numbers of rejected reports.
    survey : Design, optional
        Public facts of comparisons; by default rankings of the items, one per respondent.
    findings : mapping of str to float, optional
        Further numbers computed from the values.
    tie_break : tuple of int, optional
        The order of tied items; by default the public order.

    Returns
    -------
    Release
    """
    # parts have no noise of their own, because respondents drew it; the plan only names the values
    protocol = tally.protocol
    return Release(
        plan=Plan(
            by=by,
            mechanism=protocol.kind,
            method=method,
            epsilon=protocol.epsilon,
            delta=0.0,
            parts={
                name: PartPlan(None if name == ORDER else QUIET, 0, 0.0, step)
                for name, (_, step) in values.items()
            },
            settings={
                "protocol": protocol.to_json(),
                **{REJECTED + reason: number for reason, number in tally.rejected.items()},
                **settings,
            },
        ),
        survey=survey or Sample("rankings", protocol.items, tally.n, "respondent", 1),
        source="respondents",
        values={name: numbers for name, (numbers, _) in values.items()},
        tie_break=tie_break or public_order(len(protocol.items)),
        found=findings or {},
    )


def check_protocol(release: Release) -> None:
    """Refuse an archived release that does not match the protocol it names."""
    settings = release.plan.settings
    protocol = protocol_from_json(str(settings["protocol"]))
    gains = {protocol.gain, protocol.response.gain, settings.get(GAIN, protocol.gain)}
    if not (
        (protocol.epsilon, protocol.items) == (release.epsilon, release.survey.items)
        and len(gains) == len({protocol.gain, protocol.response.gain})
        and all(
            type(number) is int and number >= 0
            for name, number in settings.items()
            if name.startswith(REJECTED)
        )
        and settings.get("df", 1.0) in range(1, len(protocol.items))
        and len({p.step for name, p in release.parts.items() if name.startswith(STATISTIC)}) < 2
    ):
        raise ValueError("release must be of its protocol.")


def check_tally(tally: object, least: int = 1) -> None:
    """Refuse other objects, small tallies, and tallies of adaptive protocols."""
    if not isinstance(tally, Tally):
        raise TypeError(
            f"tally must be a protocol's tally of reports, got {type(tally).__name__}. Count "
            f"reports with protocol.tally(reports)."
        )
    refuse_if(
        (
            isinstance(tally.protocol, AdaptiveKwikSort),
            "tally must have assignments that do not depend on answers, and the questions of an "
            "adaptive protocol depend on earlier answers. For such a protocol take the result() of "
            "its Curator.",
        ),
        (
            tally.n < least,
            f"tally must hold at least {least} accepted reports, got {tally.n}. Collect more "
            f"reports. The attribute rejected gives the numbers of rejected reports by reason.",
        ),
    )


def public_order(items: int, rng: np.random.Generator | None = None) -> tuple[int, ...]:
    """Return the random order of tied items: public, or drawn by `rng`."""
    source = public_generator("order of equal items", items) if rng is None else rng
    return tuple(source.permutation(items).tolist())


def fixed_point(numbers: FloatArray) -> tuple[IntArray, float]:
    """Return real numbers as integers and a step (a power of two), to 50 bits."""
    largest = float(np.abs(numbers).max(initial=0.0))
    step = 2.0 ** (math.frexp(largest)[1] - _BITS) if largest else 1.0
    return np.rint(numbers.ravel() / step).astype(np.int64), step
