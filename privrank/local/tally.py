"""The curator's count of reports: what was answered to what, how often, and what was rejected.

A tally is all that a curator needs of the reports. Tallies of several days or sites add up to that
of all reports together, a report that was sent to two of them included.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from privrank.encode.frames import distinct_codes
from privrank.local.client import protocol_from_json
from privrank.local.protocols import Protocol
from privrank.local.protocols_orders import AdaptiveKwikSort
from privrank.local.reports import (
    REASONS,
    REPEATED,
    STRUCK,
    Identities,
    Reports,
    once,
    read_reports,
)
from privrank.results.tables import Table
from privrank.util.arrays import own
from privrank.util.checks import check_flag

__all__ = ["Tally", "archived_numbers", "archived_reasons"]

IntArray = NDArray[np.int64]

SCHEMA = "privrank-tally/1"

NUMBERED = 2**62
"""Assignment and answer are one whole number of 64 bits while there are fewer of them."""


LARGEST_COUNT = 2**53
"""Numbers of reports are below it, so that floats hold them exactly."""

UNLIKELY = 1e-3
"""Probability below which a tally warns that assignments are not uniform."""

UNEVEN = (
    " That is as it should be where a survey hands out assignments unevenly; where devices draw "
    "them, look for one sender with many ids."
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tally:
    """Accepted reports of one protocol, counted.

    Made by a protocol's ``tally(reports)``; ``tally1 + tally2`` counts the reports of both.

    Parameters
    ----------
    protocol : Protocol
        The public protocol.
    assignment, answer : ndarray of int64, shape (cells,)
        What was asked and answered, each combination that occurs once, sorted.
    count : ndarray of int64, shape (cells,)
        How many accepted reports have it.
    rejected : mapping of str to int
        Rejected reports by reason.
    identity : ndarray of uint64, shape (ids,), or None
        64 bits that stand for each id, sorted; None where they were left out.
    cell : ndarray of int64, shape (ids,), or None
        The place of each report among the combinations, -1 for an id whose reports differ.
    """

    protocol: Protocol
    assignment: IntArray
    answer: IntArray
    count: IntArray
    rejected: Mapping[str, int]
    identity: Identities | None
    cell: IntArray | None

    def __post_init__(self) -> None:
        """Take private, read-only copies."""
        for name in ("assignment", "answer", "count", "cell"):
            values = getattr(self, name)
            object.__setattr__(self, name, None if values is None else own(values, np.int64))
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
        """
        if not isinstance(protocol, Protocol):
            raise TypeError(
                f"protocol must be one of privrank.local, got {type(protocol).__name__}."
            )
        return _counted(
            protocol, read_reports(reports, protocol.id, protocol.assignments, protocol.answers)
        )

    @property
    def n(self) -> int:
        """Number of accepted reports."""
        return int(self.count.sum())

    def __repr__(self) -> str:
        """Show the protocol and the counts."""
        rejected = sum(self.rejected.values())
        return f"<Tally: {self.protocol.kind}, {self.n} reports, {rejected} rejected>"

    def __add__(self, other: object) -> Tally:
        """Return the tally of the reports of both.

        Where both hold ids, a report that is in both counts once. Where neither does, the counts
        are added as they are. In which order tallies are added makes no difference.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        if other.protocol.id != self.protocol.id:
            raise ValueError(
                "tallies must be of one protocol to be added, and these have different ids: "
                "estimate from each by itself."
            )
        if (self.identity is None) != (other.identity is None):
            raise ValueError(
                "tallies must both hold ids to be added, or neither, as what two have in common is "
                "found by them alone: leave them out of both with to_json(ids=False)."
            )
        rejected = {
            reason: self.rejected.get(reason, 0) + other.rejected.get(reason, 0)
            for reason in {**self.rejected, **other.rejected}
        }
        if self.identity is None or other.identity is None:
            cells = [np.concatenate(pair) for pair in zip(self._cells, other._cells, strict=True)]
            first, place = _cells_of(self.protocol, cells[0], cells[1])
            count = np.zeros(len(first), dtype=np.int64)
            np.add.at(count, place, cells[2])
            return Tally(
                self.protocol, cells[0][first], cells[1][first], count, rejected, None, None
            )
        parts = zip(self._reports, other._reports, strict=True)
        found = Reports(*once(*(np.concatenate(pair) for pair in parts)), rejected)
        both = _counted(self.protocol, found)
        rejected[REPEATED] += self.n + other.n - both.n
        return replace(both, rejected=rejected)

    @property
    def _reports(self) -> tuple[Identities, IntArray, IntArray]:
        """What each id was asked and answered."""
        assert self.identity is not None and self.cell is not None
        both = (np.append(values, STRUCK)[self.cell] for values in (self.assignment, self.answer))
        return self.identity, *both  # type: ignore[return-value]

    @property
    def _cells(self) -> tuple[IntArray, IntArray, IntArray]:
        return self.assignment, self.answer, self.count

    def __radd__(self, other: object) -> Tally:
        """Return the tally itself where ``sum`` of several starts."""
        return self if other == 0 else NotImplemented

    @property
    def _consistent(self) -> bool:
        """Whether this can be a tally of its protocol."""
        cells = list(zip(self.assignment.tolist(), self.answer.tolist(), strict=True))
        inside = (0 <= self.assignment) & (self.assignment < self.protocol.assignments)
        inside &= (0 <= self.answer) & (self.answer < self.protocol.answers) & (self.count > 0)
        inside &= self.count < LARGEST_COUNT
        if len(self.count) != len(cells) or not inside.all() or cells != sorted(set(cells)):
            return False
        if self.identity is None or self.cell is None:
            return True
        identity, cell = self.identity, self.cell
        if len(identity) != len(cell) or not ((cell >= STRUCK) & (cell < len(cells))).all():
            return False
        return bool((identity[1:] > identity[:-1]).all()) and np.array_equal(
            np.bincount(cell[cell >= 0], minlength=len(cells)), self.count
        )

    def to_json(self, *, ids: bool = True) -> str:
        """Return the tally as JSON text, from which :meth:`from_json` rebuilds it.

        Parameters
        ----------
        ids : bool, default True
            Whether to keep 64 bits for the random id of each report. They tell nothing of an
            answer, but whoever knows the id of a report finds in them what it reported. Without
            them a report that is in two tallies counts twice when these are added.

        Returns
        -------
        str
        """
        kept = (
            {}
            if not check_flag("ids", ids) or self.identity is None or self.cell is None
            else {"identity": _packed(self.identity, "<u8"), "cell": _packed(self.cell, "<i8")}
        )
        return json.dumps(
            {
                "schema": SCHEMA,
                "protocol": json.loads(self.protocol.to_json()),
                "assignment": self.assignment.tolist(),
                "answer": self.answer.tolist(),
                "count": self.count.tolist(),
                "rejected": dict(self.rejected),
                **kept,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Tally:
        """Rebuild the tally that :meth:`to_json` wrote."""
        try:
            record = json.loads(text)
            if record["schema"] != SCHEMA:
                raise ValueError
            protocol = protocol_from_json(json.dumps(record["protocol"]))
            kept = "identity" in record
            found = cls(
                protocol,
                archived_numbers(record["assignment"]),
                archived_numbers(record["answer"]),
                archived_numbers(record["count"]),
                archived_reasons(record["rejected"], REASONS),
                _unpacked(record["identity"], "<u8") if kept else None,
                _unpacked(record["cell"], "<i8") if kept else None,
            )
            if not found._consistent:
                raise ValueError
            return found
        except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError, RecursionError):
            raise ValueError("text must be JSON written by a tally's to_json().") from None

    @property
    def commonest(self) -> tuple[int, int, float]:
        """The assignment that most reports have, how many do, and the probability of that.

        Notes
        -----
        **Statistic.** Were each of n reports to draw one of A assignments uniformly, any given one
        would have a binomial number of reports. The probability is A times its upper tail at the
        largest number, and at most 1: a bound for that of any number as large (Bonferroni). It
        rests on public numbers alone. Where there are far more assignments than reports, it is a
        seed that comes again which makes it small. An adaptive protocol's assignments are its
        curator's: of them, as of no reports, nothing is said, (0, 0, 1).
        """
        if not self.n or isinstance(self.protocol, AdaptiveKwikSort):
            return 0, 0, 1.0
        first = np.flatnonzero(np.diff(self.assignment, prepend=-1))
        reports = np.add.reduceat(self.count, first)
        most, assignments = int(reports.max()), self.protocol.assignments
        tail = float(betainc(most, self.n - most + 1, 1.0 / assignments))
        return int(self.assignment[first[reports.argmax()]]), most, min(1.0, assignments * tail)

    def summary(self) -> Table:
        """Return a table of what was accepted, and of what was rejected for which reason.

        Below it stands how many reports the commonest assignment has (:attr:`commonest`).

        Returns
        -------
        Table
        """
        rows = [("accepted", self.n), *self.rejected.items()]
        total = max(sum(number for _, number in rows), 1)
        notes = [
            "Each rejected report is counted under one reason. Of equal reports with one id one is "
            "accepted, of different ones none, whatever the order of rows."
        ]
        place, most, probability = self.commonest
        if most:
            notes.append(
                f"The commonest of {self.protocol.assignments} assignments, number {place}, has "
                f"{most} reports. Were assignments drawn uniformly, the probability of so many "
                f"would be {'at most ' * (probability < 1)}{probability:.2g}."
                + UNEVEN
                * (probability < UNLIKELY)
            )
        if self.identity is None:
            notes.append(
                "This tally holds no ids: what it has in common with another is not found when "
                "they are added."
            )
        return Table(
            title="Tally of Reports",
            header=(
                ("Protocol:", self.protocol.kind),
                ("Items:", str(len(self.protocol.items))),
                ("Epsilon:", f"{self.protocol.epsilon:g} per report"),
                ("Protocol id:", self.protocol.id),
            ),
            columns=("", "reports", "share"),
            rows=tuple((name, str(number), f"{number / total:.3f}") for name, number in rows),
            notes=tuple(notes),
        )


def _counted(protocol: Protocol, reports: Reports) -> Tally:
    """Return the tally of accepted reports."""
    clear = reports.assignment != STRUCK
    assignment, answer = reports.assignment[clear], reports.answer[clear]
    first, place = _cells_of(protocol, assignment, answer)
    count = np.bincount(place, minlength=len(first))
    cell = np.full(len(clear), STRUCK, dtype=np.int64)
    cell[clear] = place
    return Tally(
        protocol, assignment[first], answer[first], count, reports.rejected, reports.identity, cell
    )


def _cells_of(
    protocol: Protocol, assignment: IntArray, answer: IntArray
) -> tuple[IntArray, IntArray]:
    """Return where each combination occurs first, in order, and the place of each report in it."""
    span = protocol.assignments * protocol.answers
    if span <= NUMBERED:
        _, place = distinct_codes(assignment * protocol.answers + answer, span)
        first = np.empty(place.max(initial=-1) + 1, dtype=np.int64)
        first[place[::-1]] = np.arange(len(place))[::-1]
        return first, place
    order = np.lexsort((answer, assignment))
    ranked = assignment[order], answer[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (ranked[0][1:] != ranked[0][:-1]) | (ranked[1][1:] != ranked[1][:-1])
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return order[new], place


def archived_numbers(values: object) -> IntArray:
    """Return a list of whole numbers from an archive, or raise ValueError."""
    numbers = np.array(values)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind != "i"):
        raise ValueError
    return numbers.astype(np.int64)


def archived_reasons(rejected: object, reasons: Collection[str]) -> dict[str, int]:
    """Return the numbers of rejected reports by reason from an archive, or raise ValueError."""
    if not isinstance(rejected, dict) or set(rejected) != set(reasons):
        raise ValueError
    if not all(type(number) is int and 0 <= number < LARGEST_COUNT for number in rejected.values()):
        raise ValueError
    return rejected


def _packed(values: NDArray[Any], form: str) -> str:
    return base64.b64encode(values.astype(form).tobytes()).decode("ascii")


def _unpacked(text: str, form: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype=form)
