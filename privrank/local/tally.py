"""The curator's count of reports: what was answered to what, how often, and what was rejected.

A tally is all that a curator needs of the reports. Tallies of several days or sites add up to that
of all reports together, a report that was sent to two of them included.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.encode.counting import distinct_codes
from privrank.encode.reports import REPEATED, Identities, Reports, once, read_reports
from privrank.local.client import protocol_from_json
from privrank.local.protocols import Protocol
from privrank.results.tables import Table
from privrank.util.arrays import own

__all__ = ["Tally"]

IntArray = NDArray[np.int64]

SCHEMA = "privrank-tally/1"

NUMBERED = 2**62
"""Assignment and answer are one whole number of 64 bits while there are fewer of them."""


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
    identity : ndarray of uint64, shape (n,), or None
        64 bits that stand for the id of each report, sorted; None where they were left out.
    cell : ndarray of int64, shape (n,), or None
        The place of each report among the combinations.
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

        Where both hold identities, a report that is in both counts once. Without them the counts
        are added as they are.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        if other.protocol.id != self.protocol.id:
            raise ValueError(
                "tallies must be of one protocol to be added, and these have different ids: "
                "estimate from each by itself."
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
        parts = [(t.identity, t.assignment[t.cell], t.answer[t.cell]) for t in (self, other)]
        found = once(*(np.concatenate(pair) for pair in zip(*parts, strict=True)))
        rejected[REPEATED] += self.n + other.n - len(found[0])
        return _counted(self.protocol, Reports(*found, rejected))

    @property
    def _cells(self) -> tuple[IntArray, IntArray, IntArray]:
        return self.assignment, self.answer, self.count

    def __radd__(self, other: object) -> Tally:
        """Return the tally itself where ``sum`` of several starts."""
        return self if other == 0 else NotImplemented

    @property
    def _consistent(self) -> bool:
        """Whether this can be a tally of its protocol."""
        inside = (0 <= self.assignment) & (self.assignment < self.protocol.assignments)
        inside &= (0 <= self.answer) & (self.answer < self.protocol.answers) & (self.count > 0)
        if self.identity is None or self.cell is None:
            return bool(inside.all())
        cells = np.bincount(self.cell, minlength=len(self.count))
        return bool(inside.all()) and np.array_equal(cells, self.count)

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
            if not ids or self.identity is None or self.cell is None
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
                np.array(record["assignment"], dtype=np.int64),
                np.array(record["answer"], dtype=np.int64),
                np.array(record["count"], dtype=np.int64),
                {str(reason): int(number) for reason, number in record["rejected"].items()},
                _unpacked(record["identity"], "<u8") if kept else None,
                _unpacked(record["cell"], "<i8") if kept else None,
            )
            if not found._consistent:
                raise ValueError
            return found
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
            raise ValueError("text must be JSON written by a tally's to_json().") from None

    def summary(self) -> Table:
        """Return a table of what was accepted, and of what was rejected for which reason.

        Returns
        -------
        Table
        """
        rows = [("accepted", self.n), *self.rejected.items()]
        total = max(sum(number for _, number in rows), 1)
        notes = [
            "Each rejected report is counted under one reason. Of reports with one id one is "
            "accepted, that of the smallest assignment and answer, whatever the order of rows."
        ]
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
    first, place = _cells_of(protocol, reports.assignment, reports.answer)
    return Tally(
        protocol,
        reports.assignment[first],
        reports.answer[first],
        np.bincount(place, minlength=len(first)),
        reports.rejected,
        reports.identity,
        place,
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


def _packed(values: NDArray[Any], form: str) -> str:
    return base64.b64encode(values.astype(form).tobytes()).decode("ascii")


def _unpacked(text: str, form: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype=form)
