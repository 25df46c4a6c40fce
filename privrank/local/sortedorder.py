"""What an adaptive run ends with: an order, the majorities of its neighbours, what was asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.consensus.intervals import binomial_lower
from privrank.consensus.orders import pair_matrix
from privrank.consensus.rules import consensus_of
from privrank.local.adaptive import AdaptiveKwikSort
from privrank.local.client import protocol_from_json
from privrank.local.predicted import break_even
from privrank.local.protocols_orders import SubRanking, pair_factor
from privrank.local.releases import Values, release_of
from privrank.local.tally import Tally
from privrank.release.names import FIRST, PAIR_COUNTS, QUERIES, SETTLED, SORTED
from privrank.release.plan import Setting
from privrank.release.release import Release
from privrank.results.assumptions import assumptions, holds_if
from privrank.results.base import Result
from privrank.results.guarantee import caption, noise_source, spent, title, units
from privrank.results.tables import Table
from privrank.util.arrays import own
from privrank.util.checks import check_flag

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["AdaptiveOrder", "infer", "release_order", "rival_variance"]

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


def release_order(
    tally: Tally, asked: IntArray, sort: tuple[int, ...], settings: Mapping[str, Setting]
) -> Release:
    """Return the release of a run: the answers by pair, the sort, and the order of all answers.

    Parameters
    ----------
    tally : Tally
        Accepted reports, and how many were rejected.
    asked : ndarray of int64, shape (pairs,)
        How often each pair was handed out.
    sort : tuple of int
        Places of the items in the order in which the sort has left them, best first.
    settings : mapping
        Public numbers of the run: respondents, late answers, rounds, and unplaced items.

    Notes
    -----
    **Statistic.** The sort uses each majority by itself, and an item that one of them puts on the
    wrong side stays there. The order is that of all answers together: fractions of the pairs that
    were asked, with variance 1 / (4 gain^2 answers), are shrunken towards scores, searched from the
    order of the sort, and Kemeny's order is taken
    (:func:`privrank.consensus.rules.consensus_of`). Pairs that were not asked are those of the
    scores. It loses less than the sort, about half where that is little.
    """
    answers, first = np.zeros((2, len(asked)), dtype=np.int64)
    np.add.at(answers, tally.assignment, tally.count)
    np.add.at(first, tally.assignment, tally.count * (tally.answer == 0))
    values: Values = {
        QUERIES: (asked, 1.0),
        PAIR_COUNTS: (answers, 1.0),
        FIRST: (first, 1.0),
        SORTED: (np.array(sort), 1.0),
        SETTLED: (_settled(answers, first, sort, tally.protocol.gain), 1.0),
    }
    return release_of(tally, values, by="Curator", method="EB-Kemeny", settings=settings)


def _settled(answers: IntArray, first: IntArray, sort: tuple[int, ...], gain: float) -> IntArray:
    """Return the order of all answers together, that of the sort where there are none."""
    used, m = answers > 0, len(sort)
    if not used.any():
        return np.array(sort)
    variance = np.where(used, 0.25 / (gain**2 * np.maximum(answers, 1)), math.inf)
    fraction = 0.5 + (first / np.maximum(answers, 1) - 0.5) / gain
    spread = np.ones((m, m))
    spread[np.triu_indices(m, 1)] = variance
    start = np.empty(m)
    start[list(sort)] = STEP * np.arange(m)[::-1]
    pairs = pair_matrix(np.where(used, fraction, 0.5))
    return consensus_of("EB-Kemeny", pairs, spread * spread.T, sort, start).order


def infer(release: Release, *, alpha: float = 0.05) -> AdaptiveOrder:
    """Read an order from the release of an adaptive run: post-processing, nothing is spent."""
    if SETTLED not in release.parts:
        raise ValueError(
            f"release must be of an adaptive protocol, as a Curator makes it, and this one is of "
            f"{release.mechanism}."
        )
    protocol = protocol_from_json(str(release.plan.settings["protocol"]))
    assert isinstance(protocol, AdaptiveKwikSort)
    return AdaptiveOrder(release=release, alpha=alpha, protocol=protocol)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class AdaptiveOrder(Result):
    """What a :class:`privrank.local.curator.Curator` was told, and the order that this makes.

    Parameters
    ----------
    release : Release
        Answers by pair, the order of the sort, and that of all answers (``release_order``).
    alpha : float
        One minus the confidence level.
    protocol : AdaptiveKwikSort
        The public protocol.
    """

    family: ClassVar[str] = "Places by adaptive sorts"

    protocol: AdaptiveKwikSort = field(repr=False)

    def _part(self, name: str) -> IntArray:
        return own(self.release.parts[name].values, np.int64)

    @property
    def asked(self) -> IntArray:
        """How often each pair was handed out, pairs in lexicographic order."""
        return self._part(QUERIES)

    @property
    def answers(self) -> IntArray:
        """How often each pair was answered."""
        return self._part(PAIR_COUNTS)

    @property
    def first(self) -> IntArray:
        """How often each pair was answered with its first item."""
        return self._part(FIRST)

    @property
    def sort(self) -> tuple[int, ...]:
        """Places of the items in the order in which the sort has left them, best first."""
        return tuple(self._part(SORTED).tolist())

    @property
    def order(self) -> tuple[str, ...]:
        """The items, best first, by all answers together."""
        return tuple(self.items[place] for place in self._part(SETTLED))

    @property
    def unplaced(self) -> int:
        """Number of items that the sort has not come to the end with."""
        return self._number("unplaced")

    def _number(self, name: str) -> int:
        return int(self.release.plan.number(name))

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
        answers, gain = self.answers, self.protocol.gain
        used = np.flatnonzero(answers)
        hits, trials = self.first[used], answers[used]
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
        m, n = len(self.items), self.nobs
        rival = SubRanking(self.items, self.epsilon)
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

    def summary(self, details: bool = False) -> Table:
        """Return a table in the style of statsmodels (text, HTML, LaTeX, Markdown, CSV).

        Parameters
        ----------
        details : bool, default False
            Whether to say how much of an answer is left in a report, too, and the sort's own order.

        Returns
        -------
        Table
        """
        check_flag("details", details)
        frame, protocol, release = self.to_frame(), self.protocol, self.release
        rows = []
        for item, row in zip(frame.index, frame.to_dict("records"), strict=True):
            cells = [f"{row[name]:.3f}" for name in ("over_next", "lower", "upper")]
            known = not math.isnan(row["over_next"])
            cells = [*cells, f"{row['answers']:.0f}"] if known else [""] * 4
            rows.append((str(item), str(row["place"]), *cells))
        return Table(
            title=title("KwikSort", release),
            header=(
                ("Items:", str(len(frame))),
                *units(release),
                ("Asked:", f"{self.asked.sum()} of {self._number('respondents')}"),
                ("Pairs compared:", f"{(self.answers > 0).sum()} of {protocol.assignments}"),
                ("Rounds:", str(self._number("rounds"))),
                ("Consensus:", release.plan.method),
                *([("Response:", f"gain {protocol.gain:.4g}")] if details else []),
                ("Noise source:", noise_source(release)),
                *spent(release),
                ("Protocol id:", protocol.id),
            ),
            columns=("", "place", "over next", "lower", "upper", "answers"),
            rows=tuple(rows),
            notes=tuple(self._notes(details)),
        )

    def _notes(self, details: bool) -> list[str]:
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
        if late := self._number("late"):
            notes.append(
                f"{late} answers came after their round: they count in the order and its "
                f"fractions, and did not move the sort."
            )
        if details:
            names = ", ".join(self.items[place] for place in self.sort)
            notes.append(f"The sort alone, before all answers were taken together: {names}.")
        promise = (
            f"Privacy: each respondent's device sends one answer, which any two opinions of theirs "
            f"make equally probable up to a factor of exp({self.epsilon:g}), whatever the "
            f"curator asks. Nobody else need be trusted. Who answers is not protected."
        )
        rests = holds_if(assumptions(self.release))
        return [*notes, self.advice(), rests, promise]

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the order, with the fraction that places each item before the next one."""
        from privrank.results import plots

        return plots.neighbours(self.to_frame(), self.alpha, caption(self.release), ax=ax)

    def _settings(self) -> dict[str, Any]:
        return {}

    def _estimates(self) -> dict[str, Any]:
        return {"order": list(self.order)}

    def _numbers(self) -> tuple[pd.Series[Any], pd.Series[Any], tuple[tuple[str, str], ...]]:
        empty, places = pd.Series(np.empty(0)), self.to_frame()["place"].loc[list(self.items)]
        return empty, empty, tuple((f"place of {item}", str(k)) for item, k in places.items())
