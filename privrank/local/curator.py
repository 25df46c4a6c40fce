"""The curator of an adaptive protocol: hands out queries, takes answers, ends with an order."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.local.adaptive import AdaptiveKwikSort
from privrank.local.client import protocol_from_json
from privrank.local.reports import REASONS, REPEATED, STRUCK, hashed, read_reports
from privrank.local.rounds import RoundSort
from privrank.local.sortedorder import AdaptiveOrder, infer, release_order
from privrank.local.tally import Tally, archived_numbers, archived_reasons
from privrank.util.checks import check_alpha, check_count

__all__ = ["Curator"]

IntArray = NDArray[np.int64]

SCHEMA = "privrank-curator/1"

UNASKED = "not asked for"
"""Why a report is rejected beside those of a tally: no open query has its id and its pair."""

NOBODY = -2
"""The pair of an id that no open query has."""


class Curator:
    """Runs an adaptive protocol: who arrives gets a query, what comes back is counted.

    The sort goes in rounds. In each, all lists of items are divided by one pivot each; the pairs
    (item, pivot) of a round are its queries, and every one gets equally many answers, such that all
    respondents are used by the end of an average sort. So a round in which many do not answer has
    those after it ask for less.

    Parameters
    ----------
    protocol : AdaptiveKwikSort
        The public protocol.
    respondents : int
        How many people can be asked, at least the mean number of comparisons of the sort.

    Notes
    -----
    **Statistic.** KwikSort compares no pair twice, and how many answers a pair is to get is fixed
    before the first of them comes. So given that it is asked, its answers are independent of the
    others and, where neither when people arrive nor whether they answer has to do with their
    opinions, binomial with the probability 1/2 + gain (p - 1/2), p the share of the population with
    the first item before the second: sampling and response together.

    Every query has a random id, drawn from the operating system's bits, that its report has to
    bear, once. So nobody sends more answers than they were handed queries, and the curator, who
    alone knows whom it hands a query, has to see to it that each respondent gets one.

    An answer that arrives after its round no longer moves the sort; like all others it counts for
    the order that the run ends with (:class:`privrank.local.sortedorder.AdaptiveOrder`).

    Examples
    --------
    >>> from privrank.local import AdaptiveKwikSort, Curator
    >>> protocol = AdaptiveKwikSort(["tea", "coffee", "water"], epsilon=2.0)
    >>> curator = Curator(protocol, respondents=30)
    >>> query, *_ = curator.next_queries(2)
    >>> asked = query["assignment"], query["report_id"]
    >>> report = protocol.randomize(query["items"], *asked)  # the first is preferred
    >>> curator.receive([report])
    {'accepted': 1}
    """

    def __init__(self, protocol: AdaptiveKwikSort, respondents: int) -> None:
        if not isinstance(protocol, AdaptiveKwikSort):
            raise TypeError(
                f"protocol must be an AdaptiveKwikSort, got {type(protocol).__name__}: the reports "
                f"of other protocols are counted by their tally()."
            )
        self.protocol = protocol
        self._sort = RoundSort.start(protocol.pivots)
        self.respondents = check_count("respondents", respondents)
        least = math.ceil(self._sort.expected)
        if self.respondents < least:
            raise ValueError(
                f"respondents must be at least {least}, one for each comparison of an average sort "
                f"of {len(protocol.items)} items, got {respondents}."
            )
        pairs = protocol.assignments
        self.handed, self.late, self.rounds = 0, 0, 0
        self._asked, self._given, self._first = (np.zeros(pairs, dtype=np.int64) for _ in "123")
        self._rejected: Counter[str] = Counter()
        self._used = np.zeros(0, dtype=np.uint64)
        self._waiting: dict[int, int] = {}
        self._begin()

    def __repr__(self) -> str:
        """Show how far the run is."""
        return (
            f"<Curator: {len(self.protocol.items)} items, {self.answered} answers from "
            f"{self.handed} of {self.respondents} respondents, {self.wanted} wanted>"
        )

    def _begin(self) -> None:
        """Open the queries of a round, and fix how many answers each is to get."""
        items, pivots = self._sort.comparisons.T
        low, high, m = np.minimum(items, pivots), np.maximum(items, pivots), self.protocol.items
        self._open = low * (2 * len(m) - low - 1) // 2 + high - low - 1
        self._forward = items < pivots
        self.rounds += bool(self._sort.lists)
        coming = self.answered / self.handed if self.handed else 1.0
        left = coming * (self.respondents - self.handed)
        self._quota = max(1, int(left / self._sort.expected)) if self._sort.lists else 0

    @property
    def answered(self) -> int:
        """Accepted answers so far."""
        return int(self._given.sum())

    @property
    def rejected(self) -> dict[str, int]:
        """Rejected reports by reason."""
        return {reason: number for reason, number in self._rejected.items() if number}

    @property
    def finished(self) -> bool:
        """Whether every item has its final place."""
        return not self._sort.lists

    @property
    def wanted(self) -> int:
        """Answers that this round still lacks, as far as there are respondents left for them."""
        lacking = np.maximum(self._quota - self._given[self._open], 0).sum()
        return int(min(lacking, self.respondents - self.handed))

    def next_queries(self, k: int | None = None) -> list[dict[str, Any]]:
        """Return queries for up to `k` further respondents, one for each.

        Parameters
        ----------
        k : int, optional
            How many respondents there are to be asked now; as many as are wanted if left out.

        Returns
        -------
        list of dict
            ``protocol_id``, ``assignment`` and ``report_id``, which
            :meth:`AdaptiveKwikSort.randomize` needs, and ``items``, the two to be ordered. Fewer
            than `k`, at most `wanted`, of them, as the next round depends on the answers of this
            one; none when nobody is wanted. Somebody who does not answer is replaced by asking for
            queries again.
        """
        most = self.wanted
        size = most if k is None else min(check_count("k", k), most)
        # pairs that were asked least come first, each as often as it lacks answers
        lacking = np.maximum(self._quota - self._given[self._open], 0)
        copies = np.repeat(np.arange(len(self._open)), lacking)
        again = np.arange(len(copies)) - np.repeat(np.cumsum(lacking) - lacking, lacking)
        turn = self._asked[self._open][copies] + again
        pairs = self._open[copies[np.lexsort((copies, turn))[:size]]]
        pairs = pairs[self.protocol.handing(self.handed, size)]
        np.add.at(self._asked, pairs, 1)
        self.handed += size
        names, ids = self.protocol.items, [self.protocol.query_id() for _ in range(size)]
        tokens = hashed(np.array(ids, dtype=object)).tolist()
        self._waiting.update(zip(tokens, pairs.tolist(), strict=True))
        return [
            {
                "protocol_id": self.protocol.id,
                "assignment": int(pair),
                "report_id": name,
                "items": [names[place] for place in self.protocol.all_pairs[pair]],
            }
            for pair, name in zip(pairs, ids, strict=True)
        ]

    def receive(self, reports: object) -> dict[str, int]:
        """Count reports, in any order and number, and go on to the next round when one is complete.

        Parameters
        ----------
        reports : list of dict, data frame, or one report
            What devices returned; anything :meth:`AdaptiveKwikSort.tally` reads. Nothing that a
            row of a list may be stops the count, so put a single message into a list.

        Returns
        -------
        dict
            How many of these were ``"accepted"``, ``"late"`` among them, and how many rejected for
            which reason. Of several reports with one id the first counts, and of several in one
            hand-over none if they differ; the query is open then as before.
        """
        protocol = self.protocol
        found = read_reports(reports, protocol.id, protocol.assignments, protocol.answers)
        outcome = Counter({name: int(number) for name, number in found.rejected.items()})
        pairs, answers, ids = found.assignment, found.answer, found.identity
        clear = pairs != STRUCK
        again = clear & np.isin(ids, self._used)
        queried = [self._waiting.get(token, NOBODY) for token in ids.tolist()]
        kept = pairs == np.array(queried, dtype=np.int64)
        outcome[REPEATED] += int(again.sum())
        outcome[UNASKED] = int((clear & ~again & ~kept).sum())
        self._rejected += outcome
        for token in ids[kept].tolist():
            del self._waiting[token]
        self._used = np.union1d(self._used, ids[kept])
        pairs, answers = pairs[kept], answers[kept]
        np.add.at(self._given, pairs, 1)
        np.add.at(self._first, pairs, answers == 0)
        late = int(np.isin(pairs, self._open, invert=True).sum())
        self.late += late
        self._advance()
        counted = {"accepted": int(kept.sum()), "late": late, **outcome}
        return {name: number for name, number in counted.items() if number or name == "accepted"}

    def _ahead(self) -> NDArray[np.bool_]:
        """Return which items of this round's queries a majority of answers puts before the pivot.

        A tie puts the pivot first.
        """
        net = (2 * self._first - self._given)[self._open]
        return np.asarray(np.where(self._forward, net, -net) > 0)

    def _advance(self) -> None:
        while self._sort.lists and bool((self._given[self._open] >= self._quota).all()):
            self._sort = self._sort.divided(self._ahead())
            self._begin()

    def result(self, alpha: float = 0.05) -> AdaptiveOrder:
        """Return the order that the answers make, at any time.

        Parameters
        ----------
        alpha : float, default 0.05
            Level of the intervals.
        """
        alpha = check_alpha(alpha)
        # lists that this round is dividing are divided by the answers that are there
        standing = self._sort.divided(self._ahead()) if self._sort.lists else self._sort
        counts = np.column_stack((self._first, self._given - self._first))
        pair, answer = np.nonzero(counts)
        count = counts[pair, answer]
        tally = Tally(self.protocol, pair, answer, count, self.rejected, None, None)
        settings = {
            "respondents": self.respondents,
            "late": self.late,
            "rounds": self.rounds,
            "unplaced": sum(end - start for start, end in self._sort.lists),
        }
        return infer(release_order(tally, self._asked, standing.order, settings), alpha=alpha)

    def to_json(self) -> str:
        """Return the state of the run as JSON text, from which :meth:`from_json` goes on.

        It holds counts by pair, never an answer beside the id of its report. Of ids 64 bits are
        kept: those of open queries beside their pairs, and those that are used. Keep it from others
        all the same, as ids with the same 64 bits can be made up, and would answer open queries.
        """
        used = np.flatnonzero(self._asked)
        counts = np.column_stack([used, self._asked[used], self._given[used], self._first[used]])
        return json.dumps(
            {
                "schema": SCHEMA,
                "protocol": json.loads(self.protocol.to_json()),
                "respondents": self.respondents,
                "handed": self.handed,
                "late": self.late,
                "rounds": self.rounds,
                "quota": self._quota,
                "order": self._sort.order,
                "lists": self._sort.lists,
                "counts": counts.tolist(),
                "rejected": {reason: self._rejected[reason] for reason in (*REASONS, UNASKED)},
                "waiting": {f"{token:016x}": pair for token, pair in sorted(self._waiting.items())},
                "used": [f"{token:016x}" for token in self._used.tolist()],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Curator:
        """Rebuild the curator that :meth:`to_json` wrote; it goes on as if never interrupted."""
        try:
            record = json.loads(text)
            if record["schema"] != SCHEMA:
                raise ValueError
            return cls._restored(record)
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ):
            raise ValueError("text must be JSON written by a curator's to_json().") from None

    @classmethod
    def _restored(cls, record: Mapping[str, Any]) -> Curator:
        protocol = protocol_from_json(json.dumps(record["protocol"]))
        curator = cls(protocol, record["respondents"])  # type: ignore[arg-type]
        numbers = [number for row in record["counts"] for number in row]
        pairs, *counts = archived_numbers(numbers).reshape(-1, 4).T
        kept = curator._asked, curator._given, curator._first
        for cells, values in zip(kept, counts, strict=True):
            cells[pairs] = values
        curator._rejected = Counter(archived_reasons(record["rejected"], (*REASONS, UNASKED)))
        curator._used = np.array([_token(text) for text in record["used"]], dtype=np.uint64)
        curator._waiting = {_token(text): pair for text, pair in record["waiting"].items()}
        curator._sort = RoundSort(
            tuple(archived_numbers(record["order"]).tolist()),
            tuple((start, end) for start, end in record["lists"]),
        )
        if not curator._sort.sound(len(protocol.items)):
            raise ValueError
        names = ("handed", "late", "rounds", "quota")
        handed, late, rounds, quota = archived_numbers([record[name] for name in names]).tolist()
        curator.handed = handed
        curator._begin()
        curator.late, curator.rounds, curator._quota = late, rounds, quota
        if not (pairs[:1] >= 0).all() or not (np.diff(pairs) > 0).all() or not curator._consistent:
            raise ValueError
        return curator

    @property
    def _consistent(self) -> bool:
        """Whether counts, queries and numbers fit each other."""
        low, high = int(bool(self._sort.lists)), self.respondents * bool(self._sort.lists)
        bounded = 0 <= self.late <= self.answered and self.rounds >= 0
        bounded &= self.handed <= self.respondents and low <= self._quota <= max(low, high)
        waiting = archived_numbers(list(self._waiting.values()))
        inside = (waiting >= 0) & (waiting < len(self._asked))
        ordered = (self._first >= 0) & (self._first <= self._given) & (self._given <= self._asked)
        return bool(
            bounded
            and inside.all()
            and ordered.all()
            and self._asked.sum() == self.handed
            and len(self._used) == self.answered
            and (self._used[1:] > self._used[:-1]).all()
            and not np.isin(np.array(list(self._waiting), dtype=np.uint64), self._used).any()
            and np.array_equal(
                np.bincount(waiting, minlength=len(self._asked)), self._asked - self._given
            )
        )


def _token(text: str) -> int:
    """Return the 64 bits that an archive holds of an id, or raise ValueError."""
    if f"{(token := int(text, 16)):016x}" != text:
        raise ValueError
    return token
