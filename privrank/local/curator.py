"""The curator of an adaptive protocol hands out queries, takes answers and ends with an order.

A simulated population answers its queries, for studies, examples and tests.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.consensus.rules import consensus_of
from privrank.consensus.statements import PairVotes, statements_of
from privrank.local.client import protocol_from_json
from privrank.local.protocols import check_generator, check_kind, check_rankings, pair_place
from privrank.local.protocols_orders import AdaptiveKwikSort
from privrank.local.reports import REPEATED, STRUCK, hashed, read_reports
from privrank.local.tally import Tally, release_of
from privrank.release.archived import NOT_JSON, archive, read_archive
from privrank.release.names import ORDER, PAIR_COUNTS, PAIRS, UNPLACED
from privrank.results.aggregation import AggregationResult
from privrank.util.arrays import IntArray, readonly_copy
from privrank.util.checks import as_list, check_alpha, check_count, check_number

UNASKED = "not asked for"
"""Why a report is rejected beside those of a tally: no open query has its id and its pair."""

NOBODY = -2
"""The pair of an id that no open query has."""


@cache
def mean_comparisons(m: int) -> float:
    """Return how many pairs KwikSort compares on average, 2 (m + 1) H_m - 4 m.

    For pivots drawn uniformly and majorities that are those of one order; H_m is 1 + ... + 1 / m.
    """
    return 2 * (m + 1) * sum(1.0 / k for k in range(1, m + 1)) - 4 * m


Groups = tuple[tuple[int, ...], ...]
"""KwikSort in rounds: the items in their present order, in groups of which the order is known.

Within a group items are in the order of the pivots, so that the first is the group's pivot; an item
by itself has its final place. All groups of a round are divided at once, by one pivot each, so that
its pairs can be asked in any order and of many people at a time.
"""


def comparisons_of(groups: Groups) -> IntArray:
    """Return pairs (item, pivot) that divide the groups of a round, one row each."""
    rows = [(item, pivot) for pivot, *others in groups for item in others]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def divided(groups: Groups, ahead: Iterable[bool]) -> Groups:
    """Return the next round, given which items of the comparisons precede their pivots."""
    answers = iter(ahead)
    parts = []
    for pivot, *others in groups:
        precedes = dict(zip(others, answers, strict=False))
        before = tuple(item for item in others if precedes[item])
        after = tuple(item for item in others if not precedes[item])
        parts += [before, (pivot,), after]
    return tuple(part for part in parts if part)


class Curator:
    """Runs an adaptive protocol: who arrives gets a query, what comes back is counted.

    The sort goes in rounds. In each, all lists of items are divided by one pivot each; the pairs
    (item, pivot) of a round are its queries, and every one gets equally many answers. Their number
    is such that all respondents are used by the end of an average sort, so a round in which many do
    not answer has those after it ask for less.

    Parameters
    ----------
    protocol : AdaptiveKwikSort
        The public protocol.
    respondents : int
        How many people can be asked, at least the mean number of comparisons of the sort.

    See Also
    --------
    privrank.local.AdaptiveKwikSort : The protocol.
    privrank.local.Population : Answers a curator in studies.

    Notes
    -----
    **Statistic.** KwikSort compares no pair twice, and how many answers a pair is to get is fixed
    before the first of them comes. So given that it is asked, its answers are independent of the
    others and, where neither when people arrive nor whether they answer has to do with their
    opinions, binomial. The probability is 1/2 + gain (p - 1/2), p the share of the population with
    the first item before the second: sampling and response together.

    Every query has a random id, drawn from the operating system's bits, that its report has to
    bear, once. So nobody sends more answers than they were handed queries, and the curator, who
    alone knows whom it hands a query, has to see to it that each respondent gets one.

    An answer that arrives after its round no longer moves the sort; like all others it counts for
    the order that the run ends with (:meth:`result`).

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
        check_kind(protocol, AdaptiveKwikSort)
        self.protocol = protocol
        self.respondents = check_count("respondents", respondents)
        least = math.ceil(mean_comparisons(self._items))
        if self.respondents < least:
            raise ValueError(
                f"respondents must be at least {least}, one for each comparison of an average sort "
                f"of {self._items} items, got {respondents}."
            )
        # by pair: how often it was handed out, answered, and answered with its first item
        self._asked, self._given, self._first = np.zeros((3, protocol.assignments), dtype=np.int64)
        self.handed = 0
        self._rejected: Counter[str] = Counter()
        # ids of open queries with their pairs, and ids of accepted answers, as 64 bits each
        self._waiting: dict[int, int] = {}
        self._used = np.zeros(0, dtype=np.uint64)
        self._begin((tuple(protocol.pivots.tolist()),))

    def __repr__(self) -> str:
        """Show how far the run is."""
        return (
            f"<Curator: {self._items} items, {self.answered} answers from "
            f"{self.handed} of {self.respondents} respondents, {self.wanted} wanted>"
        )

    def _begin(self, groups: Groups) -> None:
        """Open the queries of a round, and fix how many answers each is to get."""
        items, pivots = comparisons_of(groups).T
        self._groups = groups
        self._forward = items < pivots
        ends = np.minimum(items, pivots), np.maximum(items, pivots)
        self._open = pair_place(*ends, self._items)
        # of those who are not asked yet as many are expected to answer as did so far
        coming = self.answered / self.handed if self.handed else 1.0
        left = coming * (self.respondents - self.handed)
        expected = sum(mean_comparisons(len(group)) for group in groups)
        self._quota = 0 if self.finished else max(1, int(left / expected))

    @property
    def _items(self) -> int:
        return len(self.protocol.items)

    @property
    def answered(self) -> int:
        """Accepted answers so far.

        Examples
        --------
        >>> curator.answered
        1
        """
        return int(self._given.sum())

    @property
    def rejected(self) -> dict[str, int]:
        """Rejected reports by reason.

        Examples
        --------
        A second report to one query:

        >>> curator.receive([report])
        {'accepted': 0, 'repeated id': 1}
        >>> curator.rejected
        {'repeated id': 1}
        """
        return {reason: number for reason, number in self._rejected.items() if number}

    @property
    def finished(self) -> bool:
        """Whether every item has its final place.

        Examples
        --------
        >>> curator.finished
        False
        """
        return len(self._groups) == self._items

    @property
    def _lacking(self) -> IntArray:
        """Answers that each query of this round still lacks."""
        return np.asarray(np.maximum(self._quota - self._given[self._open], 0))

    @property
    def wanted(self) -> int:
        """Answers that this round still lacks, as far as there are respondents left for them.

        Examples
        --------
        >>> curator.wanted > 0
        True
        """
        return int(min(self._lacking.sum(), self.respondents - self.handed))

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
            :meth:`AdaptiveKwikSort.randomize` needs, and ``items``, the two to be ordered. There
            are at most `wanted` of them, as the next round depends on the answers of this one, and
            none when nobody is wanted. Somebody who does not answer is replaced by asking for
            queries again.

        Examples
        --------
        >>> run = Curator(protocol, respondents=30)
        >>> query, *others = run.next_queries(3)
        >>> list(query), len(others)
        (['protocol_id', 'assignment', 'report_id', 'items'], 2)
        """
        size = self.wanted if k is None else min(check_count("k", k), self.wanted)
        # a pair is handed out as often as it lacks answers; those asked least come first
        lacking = self._lacking
        copies = np.repeat(np.arange(len(self._open)), lacking)
        again = np.arange(len(copies)) - np.repeat(np.cumsum(lacking) - lacking, lacking)
        turn = self._asked[self._open][copies] + again
        pairs = self._open[copies[np.lexsort((copies, turn))[:size]]]
        pairs = pairs[self.protocol.handing(self.handed, size)]
        np.add.at(self._asked, pairs, 1)
        self.handed += size
        ids = [self.protocol.draw_id() for _ in range(size)]
        tokens = hashed(np.array(ids, dtype=object)).tolist()
        self._waiting.update(zip(tokens, pairs.tolist(), strict=True))
        return [
            {
                "protocol_id": self.protocol.id,
                "assignment": pair,
                "report_id": name,
                "items": list(self.protocol.question(pair)[0]),
            }
            for pair, name in zip(pairs.tolist(), ids, strict=True)
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
            How many of these were ``"accepted"``, and how many rejected for which reason. Of
            several reports with one id the first counts, and of several in one hand-over none if
            they differ; the query is open then as before.

        Examples
        --------
        >>> run = Curator(protocol, respondents=30)
        >>> query, *_ = run.next_queries(1)
        >>> report = protocol.randomize(query["items"], query["assignment"], query["report_id"])
        >>> run.receive([report]), run.receive([report])
        ({'accepted': 1}, {'accepted': 0, 'repeated id': 1})
        """
        protocol = self.protocol
        ids, pairs, answers, rejected = read_reports(
            reports, protocol.id, protocol.assignments, protocol.answers
        )
        # accepted are those whose id is that of an open query for the pair that they are about
        clear = pairs != STRUCK
        repeated = clear & np.isin(ids, self._used)
        queried = [self._waiting.get(token, NOBODY) for token in ids.tolist()]
        accepted = pairs == np.array(queried, dtype=np.int64)
        outcome = Counter(rejected)
        outcome[REPEATED] += int(repeated.sum())
        outcome[UNASKED] = int((clear & ~repeated & ~accepted).sum())
        self._rejected += outcome
        for token in ids[accepted].tolist():
            del self._waiting[token]
        self._used = np.union1d(self._used, ids[accepted])
        np.add.at(self._given, pairs[accepted], 1)
        np.add.at(self._first, pairs[accepted], answers[accepted] == 0)
        while not self.finished and not self._lacking.any():
            self._begin(self._divided())
        counted = {"accepted": int(accepted.sum()), **outcome}
        return {name: number for name, number in counted.items() if number or name == "accepted"}

    def _divided(self) -> Groups:
        """Return the groups as the answers of this round divide them; a tie puts the pivot first.

        Those that are not complete are divided by the answers that are there.
        """
        net = (2 * self._first - self._given)[self._open]
        return divided(self._groups, np.where(self._forward, net, -net) > 0)

    def sorted_places(self) -> list[int]:
        """Return places of the items as the sort has left them, best first.

        Examples
        --------
        >>> Curator(protocol, respondents=30).sorted_places()  # before anybody has answered
        [2, 0, 1]
        """
        return [item for group in self._divided() for item in group]

    def result(self, alpha: float = 0.05) -> AggregationResult:
        """Return the order that the answers make, at any time, with fractions of the pairs asked.

        Parameters
        ----------
        alpha : float, default 0.05
            Level of the intervals.

        Returns
        -------
        AggregationResult
            It has no Borda scores and no intervals of ranks, as most pairs are asked of nobody.

        See Also
        --------
        privrank.AggregationResult : What is returned.

        Notes
        -----
        **Statistic.** The sort uses each majority by itself, and an item that one of them puts on
        the wrong side stays there. The order is that of all answers together: fractions of the
        pairs that were asked, with variance 1 / (4 gain^2 answers), are shrunken towards scores,
        searched from the order of the sort. Then Kemeny's order is taken
        (:func:`privrank.consensus.rules.consensus_of`). Pairs that were not asked are those of the
        scores. It loses less than the sort, about half where that is little.

        Which pairs are asked depends on answers about others. Intervals that hold at once are exact
        at alpha divided by the number of all pairs. The probability that a pair is asked and its
        interval misses is at most that for each. So they hold at once with probability at least
        1 - alpha, also for pairs that the order makes neighbours.

        Examples
        --------
        >>> import numpy as np
        >>> from privrank import Mallows
        >>> from privrank.local import Population
        >>> rng = np.random.default_rng(1)
        >>> run = Curator(protocol, respondents=600)
        >>> Population(protocol, Mallows(3, phi=0.3).rvs(600, rng), rng).run(run)
        >>> run.result().order
        ('tea', 'coffee', 'water')
        """
        # a tally of (pair, answer) cells, as other protocols have one: all that follows is theirs
        counts = np.column_stack((self._first, self._given - self._first))
        pairs, answers = cells = np.nonzero(counts)
        tally = Tally(self.protocol, pairs, answers, counts[cells], self.rejected, None, None)
        release = release_of(
            tally,
            {
                PAIRS: (2 * self._first - self._given, 1.0),
                PAIR_COUNTS: (self._given, 1.0),
                ORDER: (self._order(), 1.0),
            },
            by="PrivateRankAggregation",
            method="EB-Kemeny",
            settings={
                "gain": self.protocol.gain,
                "square": 1.0,
                UNPLACED: sum(len(group) for group in self._groups if len(group) > 1),
            },
        )
        return AggregationResult(
            release=release,
            alpha=check_alpha(alpha),
            target="population",
            places=readonly_copy(release.parts[ORDER].values, np.int64),
            stated=statements_of(release),
        )

    def _order(self) -> IntArray:
        """Return the order of all answers together, that of the sort where there are none."""
        sort = self.sorted_places()
        if not self.answered:
            return np.array(sort)
        # pairs that were not asked have no weight, and get their fraction from the scores
        votes = PairVotes.of(2 * self._first - self._given, self._given, self.protocol.gain)
        # the search for scores starts from the sort, neighbours 1/2 apart
        start = -0.5 * np.argsort(sort).astype(np.float64)
        return consensus_of(
            "EB-Kemeny", votes.fractions, votes.largest_variance, tuple(sort), start
        ).order

    def to_json(self) -> str:
        """Return the state of the run as JSON text, from which :meth:`from_json` goes on.

        It holds counts by pair, never an answer beside the id of its report. Of ids 64 bits are
        kept: those of open queries beside their pairs, and those that are used. Keep it from others
        all the same, as ids with the same 64 bits can be made up, and would answer open queries.

        Examples
        --------
        >>> Curator.from_json(curator.to_json())
        <Curator: 3 items, 1 answers from 2 of 30 respondents, 21 wanted>
        """
        return archive(
            {
                "protocol": self.protocol.to_json(),
                "respondents": self.respondents,
                "handed": self.handed,
                "quota": self._quota,
                "groups": self._groups,
                "counts": [kind.tolist() for kind in (self._asked, self._given, self._first)],
                "rejected": self.rejected,
                "waiting": {f"{token:016x}": pair for token, pair in sorted(self._waiting.items())},
                "used": [f"{token:016x}" for token in self._used.tolist()],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Curator:
        """Rebuild the curator that :meth:`to_json` wrote; it goes on as if never interrupted.

        Examples
        --------
        >>> Curator.from_json(curator.to_json()).handed
        2
        """
        record = read_archive(text)
        try:
            # its check has shown the record to be as it was written
            curator = cls(protocol_from_json(record["protocol"]), record["respondents"])  # type: ignore[arg-type]
            curator._begin(tuple(tuple(group) for group in record["groups"]))
            curator._quota = record["quota"]
            curator.handed = record["handed"]
            curator._asked, curator._given, curator._first = np.array(
                record["counts"], dtype=np.int64
            )
            curator._rejected = Counter(record["rejected"])
            curator._waiting = {int(token, 16): pair for token, pair in record["waiting"].items()}
            curator._used = np.array([int(token, 16) for token in record["used"]], dtype=np.uint64)
            return curator
        except (LookupError, TypeError, ValueError, AttributeError):
            raise ValueError(NOT_JSON) from None


Reports = dict[str, NDArray[Any]]


class Population:
    """People with rankings who are asked in random order, once each.

    Parameters
    ----------
    protocol : AdaptiveKwikSort
        The public protocol.
    ranks : array of int, (people, items), or data frame
        Complete rankings; rank 1 is the best. Columns of an array are in the order of the
        protocol's items; those of a data frame are taken by their names.
    rng : numpy.random.Generator
        Draws who comes when, and what is answered: the run is not for publication.
    dropout : float in [0, 1), default 0.0
        Probability that somebody who is asked never answers.
    late : float in [0, 1), default 0.0
        Probability that an answer arrives only when others are asked the next time.

    See Also
    --------
    privrank.local.Curator : Whom these people answer.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank import Mallows
    >>> from privrank.local import AdaptiveKwikSort, Curator, Population
    >>> protocol = AdaptiveKwikSort(["tea", "coffee", "water"], epsilon=2.0)
    >>> rng = np.random.default_rng(1)
    >>> people = Population(protocol, Mallows(3, phi=0.3).rvs(600, rng), rng)
    >>> curator = Curator(protocol, respondents=400)
    >>> people.run(curator)
    >>> curator.finished
    True
    """

    def __init__(
        self,
        protocol: AdaptiveKwikSort,
        ranks: object,
        rng: np.random.Generator,
        *,
        dropout: float = 0.0,
        late: float = 0.0,
    ) -> None:
        check_kind(protocol, AdaptiveKwikSort)
        check_generator(rng)
        for name, share in (("dropout", dropout), ("late", late)):
            check_number(name, share, 0, 1, "[)")
        self.protocol = protocol
        self.rng = rng
        self.dropout = dropout
        self.late = late
        self._ranks = rng.permutation(check_rankings(ranks, protocol.items))
        self._asked = 0
        self._held = self._reports(0, [])

    def _reports(self, start: int, queries: Sequence[Mapping[str, Any]]) -> Reports:
        people = self._ranks[start : start + len(queries)]
        assignments = np.array([query["assignment"] for query in queries], dtype=np.int64)
        ids = np.array([query["report_id"] for query in queries], dtype="U32")
        return {**self.protocol.simulate(people, self.rng, assignments), "report_id": ids}

    def answer(self, queries: Sequence[Mapping[str, Any]]) -> Reports:
        """Return the reports that arrive when the next people are asked these queries, in columns.

        Those of people who are late with an earlier query come first.

        Examples
        --------
        >>> queries = Curator(protocol, respondents=30).next_queries(5)
        >>> people.answer(queries)["report_id"].shape
        (5,)
        """
        known = as_list(queries)
        if known is None or not all(isinstance(query, Mapping) for query in known):
            raise TypeError("queries must be a list of queries, as a curator's next_queries() is.")
        number = len(known)
        if self._asked + number > len(self._ranks):
            raise ValueError(
                f"queries must be for people who were not asked before, and {len(self._ranks)} is "
                f"all there are: set the curator's respondents to that."
            )
        reports = self._reports(self._asked, queries)
        self._asked += number
        # who drops out never answers; who is late is held until the next call, and comes first then
        coming = self.rng.random(number) >= self.dropout
        later = self.rng.random(number) < self.late
        held = self._held
        self._held = {k: v[coming & later] for k, v in reports.items()}
        return {k: np.concatenate([held[k], v[coming & ~later]]) for k, v in reports.items()}

    def run(self, curator: Curator) -> None:
        """Answer a curator until nobody is wanted.

        Examples
        --------
        >>> run = Curator(protocol, respondents=100)
        >>> people.run(run)
        >>> run.finished
        True
        """
        while queries := curator.next_queries():
            curator.receive(self.answer(queries))
        curator.receive(self.answer([]))
