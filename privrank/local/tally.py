"""Tally: the curator's counts of local reports by assignment and answer.

A tally contains all information that a curator needs from the reports. The tallies of several days
or sites add up to the tally of all reports; a report sent to two sites counts once. Releases
computed from a tally have the same form as releases of any mechanism, and spend nothing at the
curator.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.hypotheses.nulls import public_generator
from privrank.local.client import protocol_from_json
from privrank.local.protocols import Protocol, check_kind
from privrank.local.protocols_orders import AdaptiveKwikSort
from privrank.local.reports import (
    FOREIGN,
    MALFORMED,
    RANGE,
    REPEATED,
    STRUCK,
    Identities,
    one_per_identity,
    read_reports,
)
from privrank.release.archived import NOT_JSON, archive, read_archive
from privrank.release.names import GAIN, ORDER, REJECTED, STATISTIC
from privrank.release.release import Release
from privrank.release.survey import QUIET, Design, PartPlan, Plan, Sample, Setting
from privrank.util.arrays import FloatArray, IntArray, immutable, readonly_copy
from privrank.util.checks import LARGEST_COUNT, as_array, check_flag

Values = Mapping[str, tuple[IntArray, float]]
"""Released numbers by name: integers, and the size of their step."""

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
        read = read_reports(reports, protocol.id, protocol.assignments, protocol.answers)
        return _counted(protocol, *read)

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
        rejected = ", ".join(reasons) or "none"
        return f"<Tally: {self.protocol.kind}, {self.n} reports accepted, rejected: {rejected}>"

    def __add__(self, other: object) -> Tally:
        """Return the tally of the reports of both.

        If both contain ids, a report that is in both counts once. If neither does, the counts are
        added. The order in which tallies are added makes no difference.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        if other.protocol.id != self.protocol.id:
            raise ValueError(
                "tallies must be of one protocol to be added, and these have different protocol "
                "ids. Estimate from each tally separately."
            )
        if (self.identity is None) != (other.identity is None):
            raise ValueError(
                "tallies must both hold ids to be added, or neither, because common reports are "
                "found by their ids. Leave the ids out of both with to_json(ids=False)."
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
        assignment = np.append(self.assignment, STRUCK)
        answer = np.append(self.answer, STRUCK)
        return self.identity, assignment[self.cell], answer[self.cell]

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
            bits = np.array([self.identity.astype("<i8"), self.cell], dtype="<i8")
            record["ids"] = base64.b64encode(bits.tobytes()).decode("ascii")
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
            cells: list[Any] = [_whole_numbers(record[name]) for name in _CELLS]
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
        return bool(
            within.shape == (len(self.count),)
            and within.all()
            and ordered.all()
            and self.count.sum(dtype=np.float64) < LARGEST_COUNT
            and self.rejected.keys() == {FOREIGN, MALFORMED, RANGE, REPEATED}
            and all(type(number) is int and number >= 0 for number in self.rejected.values())
            and (
                self.identity is None
                or self.cell is None
                or self._ids_match(self.identity, self.cell)
            )
        )

    def _ids_match(self, identity: Identities, cell: IntArray) -> bool:
        """Return whether ids are sorted and distinct, and match the counts."""
        cells = len(self.count)
        if not ((cell >= STRUCK) & (cell < cells)).all():
            return False
        counted = np.bincount(cell[cell != STRUCK], minlength=cells)
        return bool((identity[1:] > identity[:-1]).all() and np.array_equal(counted, self.count))


def _whole_numbers(listed: object) -> NDArray[Any]:
    """Return a list of integers as an array, without a cast that could round."""
    numbers = as_array(listed)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise TypeError("the numbers of a tally must be whole.")
    return numbers


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
    plan = Plan(
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
    )
    return Release(
        plan=plan,
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
    rejected = [value for name, value in settings.items() if name.startswith(REJECTED)]
    steps = {p.step for name, p in release.parts.items() if name.startswith(STATISTIC)}
    if not (
        (protocol.epsilon, protocol.items) == (release.epsilon, release.survey.items)
        and len(gains) == len({protocol.gain, protocol.response.gain})
        and all(type(number) is int and number >= 0 for number in rejected)
        and settings.get("df", 1.0) in range(1, len(protocol.items))
        and len(steps) < 2
    ):
        raise ValueError("release must be of its protocol.")


def check_tally(tally: object, least: int = 1) -> None:
    """Refuse other objects, small tallies, and tallies of adaptive protocols."""
    if not isinstance(tally, Tally):
        raise TypeError(
            f"tally must be a protocol's tally of reports, got {type(tally).__name__}. Count "
            f"reports with protocol.tally(reports)."
        )
    if isinstance(tally.protocol, AdaptiveKwikSort):
        raise ValueError(
            "tally must have assignments that do not depend on answers, and the questions of an "
            "adaptive protocol depend on earlier answers. For such a protocol take the result() of "
            "its Curator."
        )
    if tally.n < least:
        raise ValueError(
            f"tally must hold at least {least} accepted reports, got {tally.n}. Collect more "
            f"reports. The attribute rejected gives the numbers of rejected reports by reason."
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
