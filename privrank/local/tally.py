"""The curator's count of reports: what was answered to what, how often, and what was rejected.

A tally is all that a curator needs of the reports. Tallies of several days or sites add up to that
of all reports together, a report that was sent to two of them included. What leaves it is a release
like that of any mechanism, which spent nothing at the curator.
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
from privrank.release.plan import QUIET, PartPlan, Plan, Setting
from privrank.release.release import Release
from privrank.release.survey import Design, Sample
from privrank.util.arrays import FloatArray, IntArray, immutable, readonly_copy
from privrank.util.checks import LARGEST_COUNT, as_array, check_flag

Values = Mapping[str, tuple[IntArray, float]]
"""Released numbers by name: whole numbers, and the size of their step."""

_BITS = 50
"""Of numbers that are no counts, as they are released."""

_CELLS = ("assignment", "answer", "count")
_ARRAYS = (*_CELLS, "identity", "cell")


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tally:
    """Accepted reports of one protocol, counted.

    Made by a protocol's ``tally(reports)``. Sites that count their own reports send tallies as text
    (:meth:`to_json`). :func:`privrank.from_json` reads such a text, and the sum of tallies of one
    protocol is the tally of all reports: ``tally1 + tally2``, or ``sum(tallies)``.

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

    See Also
    --------
    privrank.PrivateBTL.from_reports : Reads the tally of comparisons.
    privrank.PrivateRankAggregation.from_reports : Reads that of other protocols.
    privrank.from_json : Reads the text of a tally.

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
        """Take private, read-only copies."""
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
        """Show the protocol and the counts, of rejected reports by reason."""
        reasons = [f"{number} {reason}" for reason, number in self.rejected.items() if number]
        rejected = ", ".join(reasons) or "none"
        return f"<Tally: {self.protocol.kind}, {self.n} reports accepted, rejected: {rejected}>"

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
        if self.identity is None:
            both = [np.append(getattr(self, name), getattr(other, name)) for name in _CELLS]
            return Tally(self.protocol, *_cells_of(*both)[:3], rejected, None, None)
        # with ids: report by report, so that one that is in both counts once
        single = one_per_identity(
            *(np.concatenate(pair) for pair in zip(self._reports, other._reports, strict=True))
        )
        # what both hold once, or one holds and the other contradicts, is lost
        rejected[REPEATED] += self.n + other.n - int((single[1] != STRUCK).sum())
        return _counted(self.protocol, *single, rejected)

    @property
    def _reports(self) -> tuple[Identities, IntArray, IntArray]:
        """What each id was asked and answered."""
        assert self.identity is not None and self.cell is not None
        assignment = np.append(self.assignment, STRUCK)
        answer = np.append(self.answer, STRUCK)
        return self.identity, assignment[self.cell], answer[self.cell]

    def __radd__(self, other: object) -> Tally:
        """Return the tally itself where ``sum`` of several starts."""
        return self if other == 0 else NotImplemented

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
            # a text, as lists of millions of numbers would take ten times as long
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
        """Whether there are reports of the protocol that give these numbers."""
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
        """Whether ids are in order, each once, and as many as there are counted reports."""
        cells = len(self.count)
        if not ((cell >= STRUCK) & (cell < cells)).all():
            return False
        counted = np.bincount(cell[cell != STRUCK], minlength=cells)
        return bool((identity[1:] > identity[:-1]).all() and np.array_equal(counted, self.count))


def _whole_numbers(listed: object) -> NDArray[Any]:
    """Return a list of whole numbers as an array, which no cast has to round."""
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
    """Return the tally of what each id says, of which struck ones do not count."""
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
    """Return each combination once, in order, its count, and the place of each report in these."""
    # groups are sorted by assignment, then by answer, in whatever order the reports came
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
    """Return the release that holds these numbers, computed from a tally.

    Parameters
    ----------
    tally : Tally
        Accepted reports, and how many were rejected.
    values : mapping of str to (ndarray of int64, float)
        The parts: whole numbers, and the size of their step.
    by, method : str
        The class that infers, and the key by which it finds how to read the release.
    settings : mapping
        Public constants beside the protocol and the numbers of rejected reports.
    survey : Design, optional
        Public facts of comparisons; by default rankings of the items, one of each respondent.
    findings : mapping of str to float, optional
        Numbers found in the values.
    tie_break : tuple of int, optional
        The order of equal items, if it is not the public one.

    Returns
    -------
    Release
    """
    # parts have no noise of their own: respondents drew it, so the release only names the values
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
    """Refuse an archived release that is not of the protocol that it names."""
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
    """Refuse what is no tally, one of fewer reports, and one of which answers decided on others."""
    if not isinstance(tally, Tally):
        raise TypeError(
            f"tally must be a protocol's tally of reports, got {type(tally).__name__}: count them "
            f"with protocol.tally(reports)."
        )
    if isinstance(tally.protocol, AdaptiveKwikSort):
        raise ValueError(
            "tally must be of assignments that no answer has influenced, and what an adaptive "
            "protocol asks depends on the answers before: take the result() of its Curator."
        )
    if tally.n < least:
        raise ValueError(
            f"tally must hold at least {least} accepted reports, got {tally.n}: collect more, or "
            f"see its rejected for the reasons why others were not."
        )


def public_order(items: int, rng: np.random.Generator | None = None) -> tuple[int, ...]:
    """Return the random order in which equal items stand, a public one unless `rng` draws it."""
    source = public_generator("order of equal items", items) if rng is None else rng
    return tuple(source.permutation(items).tolist())


def fixed_point(numbers: FloatArray) -> tuple[IntArray, float]:
    """Return real numbers as whole numbers of a step that is a power of two, to 50 bits."""
    largest = float(np.abs(numbers).max(initial=0.0))
    step = 2.0 ** (math.frexp(largest)[1] - _BITS) if largest else 1.0
    return np.rint(numbers.ravel() / step).astype(np.int64), step
