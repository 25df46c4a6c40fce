"""Run an adaptive protocol: issue queries, count answers, return an order.

A simulated population answers the queries in studies, examples and tests.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.consensus.orders import consensus_of
from privrank.consensus.released import statements_of
from privrank.consensus.statements import PairVotes
from privrank.local.kinds import AdaptiveKwikSort, protocol_from_json
from privrank.local.protocols import check_generator, check_kind, check_rankings, pair_place
from privrank.local.tally import REPEATED, STRUCK, Tally, hashed, read_reports, release_of
from privrank.release.archived import NOT_JSON, archive, read_archive
from privrank.release.names import ORDER, PAIR_COUNTS, PAIRS, UNPLACED
from privrank.results.aggregation import AggregationResult
from privrank.util.arrays import IntArray, readonly_copy
from privrank.util.checks import as_list, check_alpha, check_count, check_number

UNASKED = "not asked for"
"""Further reason for rejection of a report: no open query has this id and pair."""

NOBODY = -2
"""The pair of an id that belongs to no open query."""


@cache
def mean_comparisons(m: int) -> float:
    """Return the mean number of pairs KwikSort compares, 2 (m + 1) H_m - 4 m.

    This holds for uniformly drawn pivots and majorities that agree with a single order; H_m is
    1 + ... + 1 / m.
    """
    return 2 * (m + 1) * sum(1.0 / k for k in range(1, m + 1)) - 4 * m


Groups = tuple[tuple[int, ...], ...]
"""KwikSort in rounds: the items in their present order, in groups whose order is known.

Within a group, items are in the order of the pivots, so the first item is the group's pivot. A
group of one item has its final position. All groups of a round are divided at once, by one pivot
each, so the pairs of a round can be asked in any order and of many people in parallel.
"""


def divided(groups: Groups, ahead: Iterable[bool]) -> Groups:
    """Return the next round; `ahead` is whether each item precedes its pivot."""
    answers = iter(ahead)
    parts = []
    for pivot, *others in groups:
        precedes = dict(zip(others, answers, strict=False))
        parts += [
            tuple(item for item in others if precedes[item]),
            (pivot,),
            tuple(item for item in others if not precedes[item]),
        ]
    return tuple(part for part in parts if part)


class Curator:
    """Curator of an adaptive protocol: issues queries and counts the answers.

    The sort proceeds in rounds. In each round every group of items is divided by one pivot. The
    pairs (item, pivot) of a round are its queries, and all queries get the same number of answers.
    This number is chosen such that an average sort uses all respondents, so if many do not answer
    in a round, the following rounds ask for fewer answers.

    Parameters
    ----------
    protocol : AdaptiveKwikSort
        The public protocol.
    respondents : int
        Number of people who can be asked; at least the mean number of comparisons of the sort.

    See Also
    --------
    privrank.local.AdaptiveKwikSort : The protocol.
    privrank.local.Population : Simulated respondents for studies.

    Notes
    -----
    **Statistic.** KwikSort compares no pair twice, and the number of answers of a pair is fixed
    before its first answer arrives. Given that the pair is asked, its answers are therefore
    independent of the others. They are binomial if neither the time of arrival nor the decision to
    answer depends on opinions. The probability, including sampling and response, is
    1/2 + gain (p - 1/2), where p is the fraction of the population that ranks the first item before
    the second.

    Every query has a random id, drawn from the operating system's bits, which its report must
    contain and which counts once. So respondents cannot send more answers than the queries they
    received. Only the curator knows who receives a query and must ensure that each respondent
    receives one.

    An answer that arrives after its round no longer affects the sort, but it is used for the final
    order (:meth:`result`).

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
        self._items = len(protocol.items)
        least = math.ceil(mean_comparisons(self._items))
        if self.respondents < least:
            raise ValueError(
                f"respondents must be at least {least}, one for each comparison of an average sort "
                f"of {self._items} items, got {respondents}. Ask more respondents or rank fewer "
                f"items."
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
        """Return a string that shows the progress of the run."""
        return (
            f"<Curator: {self._items} items, {self.answered} answers from "
            f"{self.handed} of {self.respondents} respondents, {self.wanted} wanted>"
        )

    def _begin(self, groups: Groups) -> None:
        """Open the queries of a round, and fix the number of answers of each."""
        # the pairs (item, pivot) that divide the groups
        rows = [(item, pivot) for pivot, *others in groups for item in others]
        items, pivots = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        self._groups = groups
        self._forward = items < pivots
        self._open = pair_place(np.minimum(items, pivots), np.maximum(items, pivots), self._items)
        # the response rate so far is used for the respondents who have not been asked yet
        coming = self.answered / self.handed if self.handed else 1.0
        answers = coming * (self.respondents - self.handed)
        expected = sum(mean_comparisons(len(group)) for group in groups)
        self._quota = 0 if self.finished else max(1, int(answers / expected))

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
        """Whether every item has its final position.

        Examples
        --------
        >>> curator.finished
        False
        """
        return len(self._groups) == self._items

    @property
    def _lacking(self) -> IntArray:
        """Number of missing answers of each query of this round."""
        return np.asarray(np.maximum(self._quota - self._given[self._open], 0))

    @property
    def wanted(self) -> int:
        """Number of missing answers of this round, at most the respondents left.

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
            Number of respondents to ask now; by default `wanted`.

        Returns
        -------
        list of dict
            ``protocol_id``, ``assignment`` and ``report_id``, which
            :meth:`AdaptiveKwikSort.randomize` needs, and ``items``, the two items to order. The
            list has at most `wanted` queries, because the next round depends on the answers of this
            round, and is empty if `wanted` is 0. To replace a respondent who does not answer, call
            this method again.

        Examples
        --------
        >>> run = Curator(protocol, respondents=30)
        >>> query, *others = run.next_queries(3)
        >>> list(query), len(others)
        (['protocol_id', 'assignment', 'report_id', 'items'], 2)
        """
        size = self.wanted if k is None else min(check_count("k", k), self.wanted)
        # a pair is issued as often as it lacks answers; the pairs issued least come first
        lacking = self._lacking
        copies = np.repeat(np.arange(len(self._open)), lacking)
        again = np.arange(len(copies)) - np.repeat(np.cumsum(lacking) - lacking, lacking)
        turn = self._asked[self._open][copies] + again
        pairs = self._open[copies[np.lexsort((copies, turn))[:size]]]
        pairs = pairs[self.protocol.handing(self.handed, size)]
        np.add.at(self._asked, pairs, 1)
        self.handed += size
        ids = [self.protocol.draw_id() for _ in range(size)]
        self._waiting.update(
            zip(hashed(np.array(ids, dtype=object)).tolist(), pairs.tolist(), strict=True)
        )
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
        """Count reports, and start the next round when a round is complete.

        Parameters
        ----------
        reports : list of dict, data frame, or one report
            The reports of devices, in any order and number, in any form that
            :meth:`AdaptiveKwikSort.tally` reads. No element of a list can stop the count, so put a
            single message into a list.

        Returns
        -------
        dict
            The number of ``"accepted"`` reports, and the number of rejected reports by reason. If
            several reports have the same id, the first counts. If reports with the same id in one
            call differ, none counts, and the query remains open.

        Examples
        --------
        >>> run = Curator(protocol, respondents=30)
        >>> query, *_ = run.next_queries(1)
        >>> report = protocol.randomize(query["items"], query["assignment"], query["report_id"])
        >>> run.receive([report]), run.receive([report])
        ({'accepted': 1}, {'accepted': 0, 'repeated id': 1})
        """
        ids, pairs, answers, rejected = read_reports(
            reports, self.protocol.id, self.protocol.assignments, self.protocol.answers
        )
        # accepted reports have the id of an open query and the pair of that query
        clear = pairs != STRUCK
        repeated = clear & np.isin(ids, self._used)
        accepted = pairs == np.array(
            [self._waiting.get(token, NOBODY) for token in ids.tolist()], dtype=np.int64
        )
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
        """Return the groups divided by the answers of this round.

        A tie puts the pivot first. Groups with missing answers are divided by the answers received.
        """
        net = (2 * self._first - self._given)[self._open]
        return divided(self._groups, np.where(self._forward, net, -net) > 0)

    def sorted_places(self) -> list[int]:
        """Return the positions of the items in the current order of the sort.

        Items are numbered as in the protocol, and the best item comes first.

        Examples
        --------
        >>> Curator(protocol, respondents=30).sorted_places()  # before anybody has answered
        [2, 0, 1]
        """
        return [item for group in self._divided() for item in group]

    def result(self, alpha: float = 0.05) -> AggregationResult:
        """Return the current consensus order, with fractions of the pairs asked.

        Parameters
        ----------
        alpha : float, default 0.05
            Level of the intervals.

        Returns
        -------
        AggregationResult
            It has no Borda scores and no rank sets, because most pairs were not asked.

        See Also
        --------
        privrank.AggregationResult : Results of private rank aggregation.

        Notes
        -----
        **Statistic.** The sort uses each majority separately, and an item that a majority puts on
        the wrong side stays there. This method instead uses all answers together. The fractions of
        the pairs that were asked, with variance 1 / (4 gain^2 answers), are shrunken towards
        scores, which are searched starting from the order of the sort. Kemeny's order of the result
        is returned (:func:`privrank.consensus.orders.consensus_of`). The scores determine the
        fractions of pairs that were not asked. The loss is smaller than for the sort, about half if
        the loss of the sort is small.

        Which pairs are asked depends on answers about other pairs. Simultaneous intervals are
        therefore exact intervals at alpha divided by the number of all pairs. For each pair, the
        probability that it is asked and its interval does not cover is at most this level. So the
        intervals have simultaneous coverage at least 1 - alpha, including pairs that are adjacent
        in the order.

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
        order = np.array(self.sorted_places())
        if self.answered:  # if not, the order of the sort
            # pairs that were not asked have no weight; the scores determine their fractions
            votes = PairVotes.of(2 * self._first - self._given, self._given, self.protocol.gain)
            # the search for scores starts from the sort, with adjacent items 1/2 apart
            start = -0.5 * np.argsort(order).astype(np.float64)
            order = consensus_of(
                "EB-Kemeny", votes.fractions, votes.largest_variance, tuple(order.tolist()), start
            ).order
        # build a tally of (pair, answer) cells, so the code for other protocols can be used
        counts = np.column_stack((self._first, self._given - self._first))
        pairs, answers = cells = np.nonzero(counts)
        release = release_of(
            Tally(self.protocol, pairs, answers, counts[cells], self.rejected, None, None),
            {
                PAIRS: (2 * self._first - self._given, 1.0),
                PAIR_COUNTS: (self._given, 1.0),
                ORDER: (order, 1.0),
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

    def to_json(self) -> str:
        """Return the state of the run as JSON text for :meth:`from_json`.

        The text contains counts by pair, never an answer together with the id of its report. It
        also contains 64 bits of each id: with the pair for open queries, and without it for used
        ids. Keep the text confidential, because ids with the same 64 bits can be constructed and
        would answer open queries.

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
        """Rebuild the curator that :meth:`to_json` wrote, and continue the run.

        Examples
        --------
        >>> Curator.from_json(curator.to_json()).handed
        2
        """
        record = read_archive(text)
        try:
            # read_archive has checked that the record was not changed
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
    """Simulated respondents who are asked in random order, once each.

    Parameters
    ----------
    protocol : AdaptiveKwikSort
        The public protocol.
    ranks : array of int, (people, items), or data frame
        Complete rankings; rank 1 is the best. Columns of an array are in the order of the
        protocol's items; columns of a data frame are found by name.
    rng : numpy.random.Generator
        Draws the order of arrival and the answers. Do not publish the run.
    dropout : float in [0, 1), default 0.0
        Probability that a respondent who is asked never answers.
    late : float in [0, 1), default 0.0
        Probability that an answer arrives only with the next call of `answer`.

    See Also
    --------
    privrank.local.Curator : Issues queries and counts the answers.

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
        self._held: Reports = {}
        self._held = self.answer([])  # columns without late reports

    def answer(self, queries: Sequence[Mapping[str, Any]]) -> Reports:
        """Ask the next people these queries, and return the reports in columns.

        Late reports of earlier queries come first.

        Examples
        --------
        >>> queries = Curator(protocol, respondents=30).next_queries(5)
        >>> people.answer(queries)["report_id"].shape
        (5,)
        """
        known = as_list(queries)
        if known is None or not all(isinstance(query, Mapping) for query in known):
            raise TypeError("queries must be a list of queries, as returned by next_queries().")
        number = len(known)
        if self._asked + number > len(self._ranks):
            raise ValueError(
                f"queries must be for people who were not asked before, and the population has "
                f"only {len(self._ranks)} people. Set the curator's respondents to that number."
            )
        reports = self.protocol.simulate(
            self._ranks[self._asked : self._asked + number],
            self.rng,
            np.array([query["assignment"] for query in known], dtype=np.int64),
        )
        reports["report_id"] = np.array([query["report_id"] for query in known], dtype="U32")
        self._asked += number
        # dropouts never answer; late answers are kept until the next call, where they come first
        coming = self.rng.random(number) >= self.dropout
        later = self.rng.random(number) < self.late
        answered = {
            k: np.concatenate([self._held.get(k, v[:0]), v[coming & ~later]])
            for k, v in reports.items()
        }
        self._held = {k: v[coming & later] for k, v in reports.items()}
        return answered

    def run(self, curator: Curator) -> None:
        """Answer a curator's queries until no more answers are wanted.

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
