"""What an adaptive run ends with: an order, the majorities of its neighbours, what was asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.consensus.intervals import binomial_lower
from privrank.consensus.orders import pair_matrix
from privrank.consensus.rules import consensus_of
from privrank.local.adaptive import AdaptiveKwikSort
from privrank.local.predicted import break_even
from privrank.local.protocols_orders import SubRanking, pair_factor
from privrank.results.tables import Table

__all__ = ["AdaptiveOrder", "rival_variance"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

STEP = 0.5
"""Distance of neighbours in the scores that a search starts from."""


def rival_variance(rival: SubRanking, n: float) -> float:
    """Return the variance of a pair's fraction from n sub-rankings of items of equal merit.

    That of separate pairs with as much noise in sums over the pairs of an item.
    """
    pairs = len(rival.items) * (len(rival.items) - 1) / 2
    return pair_factor(rival.epsilon, rival.width) * (rival.width + 1) / 3 * pairs / (4 * n)


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveOrder:
    """What a :class:`privrank.local.curator.Curator` was told, and the order that this makes.

    Parameters
    ----------
    protocol : AdaptiveKwikSort
        The public protocol.
    sort : tuple of int
        Places of the items in the order in which the sort has left them, best first.
    asked, answers, first : ndarray of int64, shape (pairs,)
        For each pair how often it was handed out, answered, and answered with its first item.
    rejected : mapping of str to int
        Rejected reports by reason.
    respondents, late, rounds, unplaced : int
        How many could be asked, how many answered after their round, how many rounds there were,
        and how many items the sort has not come to the end with.
    alpha : float
        Level of the intervals.

    Notes
    -----
    **Statistic.** The sort uses each majority by itself, and an item that one of them puts on the
    wrong side stays there. The order is that of all answers together: fractions of the pairs that
    were asked, with variance 1 / (4 gain^2 answers), are shrunken towards scores, searched from the
    order of the sort, and Kemeny's order is taken
    (:func:`privrank.consensus.rules.consensus_of`). Pairs that were not asked are those of the
    scores. It loses less than the sort, about half where that is little.
    """

    protocol: AdaptiveKwikSort
    sort: tuple[int, ...]
    asked: IntArray
    answers: IntArray
    first: IntArray
    rejected: Mapping[str, int]
    respondents: int
    late: int
    rounds: int
    unplaced: int
    alpha: float

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The items, best first."""
        return tuple(self.protocol.items[place] for place in self._places())

    def _places(self) -> IntArray:
        used = self.answers > 0
        if not used.any():
            return np.array(self.sort)
        m, gain = len(self.sort), self.protocol.gain
        variance = np.where(used, 0.25 / (gain**2 * np.maximum(self.answers, 1)), math.inf)
        fraction = 0.5 + (self.first / np.maximum(self.answers, 1) - 0.5) / gain
        spread = np.ones((m, m))
        spread[np.triu_indices(m, 1)] = variance
        start = np.empty(m)
        start[list(self.sort)] = STEP * np.arange(m)[::-1]
        pairs = pair_matrix(np.where(used, fraction, 0.5))
        return consensus_of("EB-Kemeny", pairs, spread * spread.T, self.sort, start).order

    def __repr__(self) -> str:
        """Show the shape and the guarantee."""
        return (
            f"<AdaptiveOrder: {len(self.sort)} items, {self.nobs} answers, "
            f"epsilon = {self.protocol.epsilon:g} per respondent>"
        )

    @property
    def nobs(self) -> int:
        """Number of accepted answers."""
        return int(self.answers.sum())

    def pairwise(self) -> pd.DataFrame:
        """Return the pairs that were asked, with the share that places `item1` before `item2`.

        Returns
        -------
        DataFrame
            `item1`, `item2`, `asked`, `answers`, `fraction`, `lower`, `upper`; ordered like the
            items.

        Notes
        -----
        **Statistic.** Given that a pair is asked its answers are binomial with the probability
        1/2 + gain (p - 1/2) (:class:`privrank.local.curator.Curator`), so that an unbiased fraction
        is 1/2 + (share of answers - 1/2) / gain, not confined to [0, 1]. Which pairs are asked
        depends on answers about others. Intervals are exact at alpha divided by the number of all
        pairs, and then confined to [0, 1]: the probability that a pair is asked and its interval
        misses is at most that for each, so all intervals of the table hold at once with
        probability at least 1 - alpha, also for pairs that the order makes neighbours.
        """
        used = np.flatnonzero(self.answers)
        hits, trials, gain = self.first[used], self.answers[used], self.protocol.gain
        tail = 0.5 * self.alpha / self.protocol.assignments
        low = binomial_lower(hits, trials - hits, tail, exact=True)
        high = 1.0 - binomial_lower(trials - hits, hits, tail, exact=True)
        fraction, lower, upper = (
            0.5 + (share - 0.5) / gain for share in (hits / trials, low, high)
        )
        names = np.array(self.protocol.items, dtype=object)[self.protocol.all_pairs[used]]
        return pd.DataFrame(
            {
                "item1": names[:, 0],
                "item2": names[:, 1],
                "asked": self.asked[used],
                "answers": trials,
                "fraction": fraction,
                "lower": np.clip(lower, 0.0, 1.0),
                "upper": np.clip(upper, 0.0, 1.0),
            }
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the items in their order, each with the majority over the next one.

        Returns
        -------
        DataFrame
            Over the items, best first: `place`; `over_next`, the fraction that places the item
            before the next one, with `lower`, `upper` and the number of `answers`, missing for the
            last item and for neighbours that were not compared.
        """
        order = self.order
        pairs = self.pairwise()
        turned = pairs.rename(columns={"item1": "item2", "item2": "item1"})
        turned["fraction"] = 1.0 - pairs["fraction"]
        turned["lower"], turned["upper"] = 1.0 - pairs["upper"], 1.0 - pairs["lower"]
        known = pd.concat([pairs, turned]).set_index(["item1", "item2"])
        neighbours = pd.MultiIndex.from_tuples(
            [*zip(order, order[1:], strict=False), (order[-1], None)]
        )
        rows = known.reindex(neighbours)
        frame = pd.DataFrame({"place": np.arange(1, len(order) + 1)})
        frame.index = pd.Index(order, name="item")
        for name, source in (("over_next", "fraction"), ("lower", "lower"), ("upper", "upper")):
            frame[name] = rows[source].to_numpy()
        frame["answers"] = rows["answers"].to_numpy()
        return frame

    def advice(self) -> str:
        """Return for which populations sub-rankings would have done better, as a sentence.

        From public numbers: those of items and answers, and epsilon.
        """
        m, n, epsilon = len(self.sort), self.nobs, self.protocol.epsilon
        rival = SubRanking(self.protocol.items, epsilon)
        least = break_even(m, n, self.protocol.gain, rival_variance(rival, n)) if n else None
        asks = f"SubRanking, which asks everybody for the order of {rival.width} items at once"
        if least is None:
            return (
                f"Advice: with so many items and answers at this epsilon {asks}, is predicted to "
                f"find an order as good or better, however much the population agrees."
            )
        return (
            f"Advice: with so many items and answers at this epsilon {asks}, is predicted to find "
            f"a better order unless neighbours in the order are placed alike by at least "
            f"{least:.0%} of the population."
        )

    def summary(self) -> Table:
        """Return a table in the style of statsmodels (text, HTML, LaTeX, Markdown, CSV)."""
        frame, protocol = self.to_frame(), self.protocol
        rows = []
        for item, row in zip(frame.index, frame.to_dict("records"), strict=True):
            cells = [f"{row[name]:.3f}" for name in ("over_next", "lower", "upper")]
            known = not math.isnan(row["over_next"])
            cells = [*cells, f"{row['answers']:.0f}"] if known else [""] * 4
            rows.append((str(item), str(row["place"]), *cells))
        return Table(
            title="Locally Private KwikSort",
            header=(
                ("Items:", str(len(frame))),
                ("No. Answers:", str(self.nobs)),
                ("Asked:", f"{self.asked.sum()} of {self.respondents}"),
                ("Pairs compared:", f"{(self.answers > 0).sum()} of {protocol.assignments}"),
                ("Rounds:", str(self.rounds)),
                ("Neighbours:", "replace one respondent"),
                ("Consensus:", "EB-Kemeny"),
                ("Noise source:", "respondents' devices"),
                ("Epsilon:", f"{protocol.epsilon:g} per respondent"),
                ("Protocol id:", protocol.id),
            ),
            columns=("", "place", "over next", "lower", "upper", "answers"),
            rows=tuple(rows),
            notes=tuple(self._notes()),
        )

    def _notes(self) -> list[str]:
        level = f"{100 * (1 - self.alpha):g} %"
        notes = [
            f"Over next: fraction of the population that places an item before the next one, where "
            f"the two were compared, with {level} intervals that hold at once; sampling and "
            f"randomised response are both in them."
        ]
        if self.unplaced:
            notes.append(
                f"Warning: the sort is not finished. It has not come to the end with "
                f"{self.unplaced} items, whose places rest on few comparisons."
            )
        if self.late:
            notes.append(
                f"{self.late} answers came after their round: they count in the order and its "
                f"fractions, and did not move the sort."
            )
        if self.rejected:
            reasons = ", ".join(f"{name} {number}" for name, number in self.rejected.items())
            notes.append(f"Rejected reports: {reasons}.")
        promise = (
            f"Privacy: each respondent's device sends one answer, which any two opinions of theirs "
            f"make equally probable up to a factor of exp({self.protocol.epsilon:g}), whatever the "
            f"curator asks. Nobody else need be trusted. Who answers is not protected."
        )
        return [*notes, self.advice(), promise]
