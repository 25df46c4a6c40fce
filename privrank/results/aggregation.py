"""The result of a private rank aggregation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from privrank.consensus.orders import SUBSET_LIMIT, copeland
from privrank.consensus.statements import Statements, Target, score_interval
from privrank.hypotheses.interval import dominant_set, rank_sets
from privrank.hypotheses.tails import half_width
from privrank.plans.aggregation import cautions
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release.names import NET, PAIR_COUNTS, PAIRS, SCORE, SCORES, TOTALS, UNPLACED
from privrank.release.release import Release
from privrank.results import guarantee, plots, tables
from privrank.results.base import RANK_OF, Result
from privrank.results.claims import assumed, percent, said, warned
from privrank.util.arrays import AnyArray, BoolArray, FloatArray, IntArray, immutable, readonly_copy

# The sentence for each setting of the reading of ties and missing items.
_READINGS = {
    "ties": "shared ranks",
    "missing bottom": "left out below",
    "missing half": "left out half",
}

# The noisy statistic by its exact and its shown name, and the unit of its scale.
_STATISTICS = {
    PAIRS: ("pair counts", "pairwise fractions", "fraction"),
    TOTALS: ("Borda totals", "mean ranks", "mean rank"),
    NET: ("net wins", "win rates", "mean rank"),
}

# Descriptions of rules whose names are not in general use.
_RULES = {
    "EB-Kemeny": "Kemeny (shrunken pairwise fractions)",
    "Borda": "Borda (mean ranks)",
    "Borda, sets": "Borda (win rates)",
    "Copeland": "Copeland (majorities)",
}


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class AggregationResult(Result):
    """Results of private rank aggregation.

    Parameters
    ----------
    release : Release
        The output of the private mechanism.
    alpha : float
        One minus the confidence level.
    target : {"population", "sample"}
        Whether intervals cover values of the population or of the units of this survey.
    places : ndarray of int64, shape (m,)
        Positions of the items in the item list, best first.
    stated : NoisyVotes, RandomReports or None
        Estimates of pair fractions and Borda scores, with items in the order of the item list; None
        if only an order was released.

    See Also
    --------
    privrank.PrivateRankAggregation : The model.
    privrank.from_json : Read a result from an archive.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> drinks = ["tea", "coffee", "milk"]
    >>> rankings = pr.Mallows(drinks, phi=0.6).rvs(400, np.random.default_rng(1))
    >>> model = pr.PrivateRankAggregation(rankings, items=drinks)
    >>> result = model.fit(epsilon=1.0, releases="pairs", score_share=0.1,
    ...                    rng=np.random.default_rng(2))
    >>> result.order
    ('tea', 'coffee', 'milk')
    """

    family: ClassVar[str] = "Borda scores and consensus ranks"

    target: Target
    places: IntArray = field(repr=False)
    stated: Statements | None = field(repr=False)

    @property
    def order(self) -> tuple[str, ...]:
        """The consensus, best item first.

        A public random order decides between equal scores.

        See Also
        --------
        privrank.AggregationResult.rank_conf_int : Confidence sets of the ranks.

        Examples
        --------
        >>> result.order
        ('tea', 'coffee', 'milk')
        """
        return tuple(self.items[place] for place in self.places)

    @property
    def consensus(self) -> pd.Series[int]:
        """Consensus ranks, 1 = best, best first; tied items share a rank.

        If the consensus is by Borda scores or numbers of majorities, items with equal values are
        tied. In a Kemeny consensus, neighbouring items are tied if every order of them is equally
        good. Tied items are in the declared order.

        Examples
        --------
        >>> result.consensus.to_dict()
        {'tea': 1, 'coffee': 2, 'milk': 3}
        """
        ranks = pd.Series(0, index=pd.Index(self.items, name="item"), name="rank")
        tied = self._tied()
        first = 0
        # an item shares the rank of the items before it if it is tied with all of them
        for place, item in enumerate(self.places):
            if not tied[item, self.places[first:place]].all():
                first = place
            ranks.iloc[item] = first + 1
        return ranks.sort_values(kind="stable")

    def _tied(self) -> BoolArray:
        """Return which items the consensus rule does not distinguish, shape (m, m)."""
        rule = self.release.plan.method
        if self.stated is None or rule not in ("Borda", "Copeland", "Kemeny"):
            return np.zeros((len(self.items),) * 2, dtype=bool)
        # in steps larger than the rounding errors of fractions and their sums
        pairs = np.rint(np.asarray(self.fractions, dtype=np.float64) * 2.0**40)
        if rule == "Kemeny":
            return np.asarray(pairs == pairs.T)
        scores = copeland(pairs) if rule == "Copeland" else self.stated.scores
        return np.abs(scores[:, None] - scores) <= len(scores) * 2.0**-40

    @property
    def proven(self) -> bool:
        """Whether the order is proved to be optimal for the released numbers.

        Examples
        --------
        >>> result.proven
        True
        """
        return self.release.found.get("gap") == 0.0

    @property
    def fractions(self) -> FloatArray | None:
        """Released fractions of rankings that place the row item before the column.

        Items are in the order of the item list. The matrix is None if pairs were not released. An
        entry is NaN if no respondent was asked about the pair.

        See Also
        --------
        privrank.AggregationResult.fraction_frame : The same matrix with names.

        Examples
        --------
        >>> result.fractions.round(2)
        array([[0.5 , 0.62, 0.7 ],
               [0.38, 0.5 , 0.6 ],
               [0.3 , 0.4 , 0.5 ]])
        """
        fractions = None if self.stated is None else self.stated.fractions
        return None if fractions is None else readonly_copy(fractions, np.float64)

    def _about_pairs(self) -> Statements:
        """Return the estimates, if they include pairs."""
        if self.stated is None or self.stated.fractions is None:
            raise ValueError(
                "this result releases no pair fractions: fit with releases='pairs', or use a "
                "protocol that asks about pairs."
            )
        return self.stated

    def _in_order(self, matrix: AnyArray) -> AnyArray:
        """Return a matrix with its items in the consensus order."""
        shown = pd.Index(self.items).get_indexer(self.consensus.index)
        return matrix[np.ix_(shown, shown)]

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise of a pair fraction; 0 in the local model.

        Examples
        --------
        >>> round(result.noise_sd, 4)
        0.0071
        """
        return self._about_pairs().noise_sd

    def fraction_frame(self) -> pd.DataFrame:
        """Return the noisy pair fractions, row before column, in consensus order.

        Examples
        --------
        >>> result.fraction_frame().round(2)
        over     tea  coffee  milk
        item
        tea     0.50    0.62   0.7
        coffee  0.38    0.50   0.6
        milk    0.30    0.40   0.5
        """
        names = self.consensus.index
        return pd.DataFrame(
            self._in_order(np.asarray(self._about_pairs().fractions)), names, names.rename("over")
        )

    def pairwise(self, alpha: float | None = None) -> pd.DataFrame:
        """Return the pair fractions, one row per pair, in consensus order.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the level of the fit.

        Returns
        -------
        DataFrame
            ``item1``, which the consensus places before ``item2``; the ``fraction`` of rankings
            that agree and its standard error; a pointwise interval (``lower``, ``upper``); an
            interval that is simultaneous over all pairs (``all_lower``, ``all_upper``); and
            ``separated``, whether the simultaneous interval excludes 1/2.

        Examples
        --------
        >>> result.pairwise()[["item1", "item2", "fraction", "lower", "upper"]].round(2)
            item1   item2  fraction  lower  upper
        0     tea  coffee      0.62   0.57   0.67
        1     tea    milk      0.70   0.65   0.75
        2  coffee    milk      0.60   0.55   0.65
        """
        level = self._level(alpha)
        stated = self._about_pairs()
        (first, second) = np.triu_indices(len(self.places), 1)
        low, high = stated.fraction_bounds(level, self.target, False)
        all_low, all_high = stated.fraction_bounds(level, self.target, True)
        columns: dict[str, AnyArray] = {
            "fraction": np.asarray(stated.fractions),
            "std_err": stated.fraction_errors(self.target),
            "lower": low,
            "upper": high,
            "all_lower": all_low,
            "all_upper": all_high,
            "separated": (all_low > 0.5) | (all_high < 0.5),
        }
        names = np.array(self.consensus.index, dtype=object)
        return pd.DataFrame(
            {"item1": names[first], "item2": names[second]}
            | {name: self._in_order(matrix)[first, second] for name, matrix in columns.items()}
        )

    def smith_set(self, alpha: float | None = None) -> tuple[str, ...]:
        """Return a confidence set for the Smith set.

        The Smith set is the smallest set of items such that a majority of the rankings prefers each
        item in the set to each item outside. Majorities are taken in the population or, for
        ``target="sample"``, among the units of this survey; ties count as in :attr:`fractions`.
        There is no additional privacy cost.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the level of the fit.

        Returns
        -------
        tuple of str
            The items of the confidence set, in consensus order. It is the smallest set such that
            each item is before each item outside by an established majority: a pair that is
            ``separated`` in the table of :meth:`pairwise`. All established majorities are correct
            with probability at least 1 - alpha, for any distribution of rankings, because the
            intervals ``all_lower`` to ``all_upper`` are simultaneous. In this case the set contains
            the Smith set (:func:`privrank.hypotheses.interval.dominant_set`).

        Raises
        ------
        ValueError
            If no pair fractions were released.

        Examples
        --------
        >>> result.smith_set(), result.smith_set(alpha=1e-6)
        (('tea',), ('tea', 'coffee', 'milk'))
        """
        low, _ = self._about_pairs().fraction_bounds(self._level(alpha), self.target, True)
        return tuple(self.consensus.index[dominant_set(self._in_order(low > 0.5))])

    def condorcet_winner(self, alpha: float | None = None) -> str | None:
        """Return the established Condorcet winner, if there is one.

        The Condorcet winner is the item that a majority prefers to each other item.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the level of the fit.

        Returns
        -------
        str or None
            The only item of :meth:`smith_set`, or None if there are several. A wrong item is named
            with probability at most alpha. None means that no winner is established; there may
            still be one.

        Examples
        --------
        >>> result.condorcet_winner()
        'tea'
        """
        leading = self.smith_set(alpha)
        return leading[0] if len(leading) == 1 else None

    def rank_conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return simultaneous confidence sets of the ranks by mean rank.

        Items are ranked by Borda score (equivalently by mean rank) in the population or, for
        ``target="sample"``, among the units of this survey. The set of an item begins at 1 plus the
        number of items significantly before it, and ends at m minus the number significantly after
        it. Significance is decided by step-down tests
        (:func:`privrank.hypotheses.interval.rank_sets`). The sets are simultaneous for any
        distribution of rankings (:func:`privrank.consensus.statements.rank_threshold`).

        In the local model the coverage is approximate, by Student's t for sums over local reports
        (:class:`privrank.consensus.statements.RandomReports`). If no respondent was asked about
        some pairs, the sets assume that the fractions of these pairs follow from the others.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the level of the fit.

        Returns
        -------
        DataFrame
            Columns ``lower`` and ``upper``, one row per item, in the declared order.

        Examples
        --------
        >>> result.rank_conf_int()
                lower  upper
        item
        tea         1      1
        coffee      2      2
        milk        3      3
        """
        level = self._level(alpha)
        stated = self._scores()
        m = len(self.items)
        gaps = np.abs(stated.scores[:, None] - stated.scores)

        def certain(left: int) -> BoolArray:
            # equal scores may differ by rounding errors of sums
            return gaps > stated.certain_gaps(level, self.target, left) + m * 2.0**-40

        return self._limits(*rank_sets(stated.scores, ~np.eye(m, dtype=bool), certain))

    def _scores(self) -> Statements:
        """Return the estimates of Borda scores; raise if there are none."""
        if self.stated is None or not self._scored:
            raise ValueError(
                f"{self.release.mechanism} releases no Borda scores, which intervals of ranks "
                f"need: fit with method='auto', or use a protocol that asks everybody for a random "
                f"part."
            )
        return self.stated

    @property
    def _scored(self) -> bool:
        """Whether Borda scores exist (not for an order alone or adaptive protocols)."""
        return self.stated is not None and not np.isnan(self.stated.scores).any()

    def borda(self, alpha: float | None = None) -> pd.DataFrame:
        """Return the Borda scores with standard errors and intervals.

        The Borda score of an item is the mean number of items that are placed after it.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the level of the fit.

        Returns
        -------
        DataFrame
            Score, standard error, interval and mean rank (m minus the score), best first. For the
            population the standard error is an upper bound: its sampling part is the largest
            possible for such a mean, so the intervals are wide. In the local model the standard
            error is estimated from the local reports, and the intervals are approximate (see
            :meth:`rank_conf_int`). A score from local reports is unbiased and may lie outside [0, m
            - 1]; its interval does not.

        Examples
        --------
        >>> result.borda()[["score", "lower", "upper"]].round(2)
                score  lower  upper
        item
        tea      1.32   1.22   1.41
        coffee   0.98   0.88   1.08
        milk     0.70   0.61   0.80
        """
        stated = self._scores()
        low, high = stated.score_bounds(self._level(alpha), self.target)
        return pd.DataFrame(
            {
                "score": stated.scores,
                "std_err": stated.score_errors(self.target),
                "lower": low,
                "upper": high,
                "mean_rank": len(self.items) - stated.scores,
            },
            index=pd.Index(self.items, name="item"),
        ).loc[self.consensus.index]

    @property
    def kemeny_score(self) -> float:
        """Noisy mean number of pairs ordered differently from the consensus.

        See Also
        --------
        privrank.AggregationResult.score_conf_int : Its interval.

        Examples
        --------
        >>> round(result.kemeny_score, 2)
        1.07
        """
        part = self.release.parts.get(SCORE)
        if part is None:
            raise ValueError(
                "the Kemeny score was not released: fit with score_share=0.1, where one is trusted "
                "with the rankings."
            )
        return float(part.values[0]) * part.step / self.nobs

    def score_conf_int(self, alpha: float | None = None) -> tuple[float, float]:
        """Return a confidence interval for the Kemeny score of the consensus.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the level of the fit.

        Returns
        -------
        lower, upper : float

        Examples
        --------
        >>> low, high = result.score_conf_int()
        >>> round(low, 2), round(high, 2)
        (0.81, 1.34)
        """
        level = self._level(alpha)
        score = self.kemeny_score
        part = self.release.parts[SCORE]
        assert isinstance(part.distribution, DiscreteLaplace | DiscreteGaussian)
        noise = half_width(part.distribution, level) * part.step / self.nobs
        low, high = score_interval(
            score, noise, float(math.comb(len(self.items), 2)), self.nobs, level, self.target
        )
        return float(low), float(high)

    def to_frame(self) -> pd.DataFrame:
        """Return the released numbers, one row per item, best first.

        Returns
        -------
        DataFrame
            The rank in the consensus; the Borda score with standard error and interval; the limits
            ``rank_lower`` and ``rank_upper`` of the rank by mean rank. If pairs were released,
            ``over_next`` is the fraction of rankings that place the item before the next one.

        Examples
        --------
        >>> result.to_frame()[["rank", "borda", "rank_lower", "rank_upper"]].round(2)
                rank  borda  rank_lower  rank_upper
        item
        tea        1   1.32           1           1
        coffee     2   0.98           2           2
        milk       3   0.70           3           3
        """
        frame = self.consensus.to_frame()
        if self._scored:
            frame[["borda", "std_err", "lower", "upper"]] = self.borda()[
                ["score", "std_err", "lower", "upper"]
            ]
            frame = frame.join(self.rank_conf_int().add_prefix("rank_"))
        if PAIRS in self.release.parts:
            frame["over_next"] = [*np.diagonal(self.fraction_frame(), 1), np.nan]
        return self._cautioned(frame)

    def _warned(self) -> list[str]:
        unplaced = self.release.plan.settings.get(UNPLACED)
        return [
            *(f"Warning: {caution}" for caution in cautions(self.release)),
            *warned("unfinished sort", unplaced, unplaced=unplaced),
            *guarantee.delta_notes(self.release),
        ]

    def _table(self, details: bool) -> tables.Table:
        release = self.release
        frame = self.to_frame()
        # distance of the order from the optimum of the released numbers; None for other rules
        gap = release.found.get("gap")
        rule = _RULES.get(
            "Borda, sets" if NET in release.parts else release.plan.method, release.plan.method
        )
        if details and gap is not None:
            rule += ", solved exactly" if gap == 0 else ", not proven best"
        share = release.plan.settings.get("score share")
        return tables.laid_out(
            frame.assign(ranks=tables.rank_ranges(frame)) if "rank_lower" in frame else frame,
            {
                "rank": tables.Column("rank", str),
                "borda": tables.Column("Borda"),
                "std_err": tables.Column("std err"),
                **tables.interval_columns(self.alpha),
                "ranks": tables.Column("rank set", str),
                "over_next": tables.Column("P(before next)"),
            },
            title=guarantee.title("Rank Aggregation", release),
            header=guarantee.header(
                release,
                *guarantee.offered_lines(release),
                ("Consensus:", rule),
                noise=_noise(self, details),
                details=details,
            ),
            notes=tables.Notes(
                estimates=_estimate_notes(self, frame, details),
                assumptions=assumed(
                    ["sample"] if self.target == "sample" else guarantee.assumptions(release)
                ),
                privacy=[
                    *guarantee.sample_privacy(release),
                    *said(
                        "idealised",
                        release.plan.method == "exponential mechanism" and release.source != "none",
                    ),
                    *said("Kemeny share", details and share is not None, share=share),
                ],
            ),
            cautions=self._cautions(),
        )

    def plot(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot the consensus (:meth:`plot_consensus`).

        Examples
        --------
        >>> result.plot().axes[0].get_title()
        'Consensus ranking (epsilon = 1 per row)'
        """
        return self.plot_consensus(ax)

    def plot_consensus(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot the consensus with Borda scores and confidence sets of the ranks.

        Examples
        --------
        >>> figure = result.plot_consensus()
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['1  tea', '2  coffee', '3  milk']
        """
        return plots.consensus(
            self.to_frame(),
            self.alpha,
            f"Consensus ranking ({guarantee.caption(self.release)})",
            seeded=self.release.source == "seeded",
            ax=ax,
        )

    def plot_pairwise(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot the pair fractions as a heat map, in consensus order.

        Examples
        --------
        >>> figure = result.plot_pairwise()
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['tea', 'coffee', 'milk']
        """
        return plots.pairwise(
            self.fraction_frame().clip(0.0, 1.0),
            f"Pairwise fractions ({guarantee.caption(self.release)})",
            "fraction ranking row above column",
            seeded=self.release.source == "seeded",
            ax=ax,
        )

    def _settings(self) -> dict[str, Any]:
        return {"target": self.target}

    def _estimates(self) -> dict[str, Any]:
        return {"order": list(self.order)}

    def _numbers(self) -> tuple[pd.Series[Any], pd.Series[Any], dict[str, Any]]:
        items = list(self.items)
        facts: dict[Any, Any] = self.consensus.loc[items].add_prefix(RANK_OF).to_dict()
        if SCORE in self.release.parts:
            facts["Kemeny score"] = self.kemeny_score
        if not self._scored:
            return pd.Series(np.empty(0)), pd.Series(np.empty(0)), facts
        frame = self.borda().loc[items]
        return frame["score"].rename("Borda score"), frame["std_err"], facts


def _noise(result: AggregationResult, details: bool) -> guarantee.NoiseWords:
    """Return the noise, its statistic and its scale in words."""
    release = result.release
    if release.local:
        return guarantee.NoiseWords(
            "", release.mechanism, f"gain {release.plan.number('gain'):.4g}"
        )
    name = next((name for name in _STATISTICS if name in release.parts), None)
    if name is None or result.stated is None:
        return guarantee.NoiseWords(release.plan.method, "", "none (an order is released)")
    exact, shown, unit = _STATISTICS[name]
    return guarantee.NoiseWords(
        guarantee.noise_name(release.parts[name], details),
        exact if details else shown,
        f"sd {result.stated.noise_sd:.4g} per {unit}",
    )


def _estimate_notes(result: AggregationResult, frame: pd.DataFrame, details: bool) -> list[str]:
    """Return notes on scores, rank sets, fractions and the consensus order."""
    release = result.release
    rule = release.plan.method
    m = len(frame)
    pairs = m * (m - 1) // 2
    level = percent(1.0 - result.alpha)
    of_sample = result.target == "sample"
    gap = release.found.get("gap")
    notes = []
    if "borda" in frame:
        key = "Borda, sample" if of_sample else "Borda"
        notes += [
            *said("Borda, sets" if NET in release.parts else key, level=level),
            *said("bounds", not of_sample and not release.local),
            # every separated pair lowers the upper end of one rank set by one rank
            *said(
                "rank sets",
                level=level,
                known=round((m - frame["rank_upper"]).sum()),
                pairs=pairs,
            ),
        ]
    for name, key in _READINGS.items():
        notes += said(key, name in release.plan.settings)
    by_score = rule in ("Borda", "Copeland")
    several = "optima" in release.found
    # the order may contradict a printed majority or Borda scores
    shrunken = rule == "EB-Kemeny"
    minority = (
        (by_score or shrunken)
        and "over_next" in frame
        and bool((frame["over_next"].iloc[:-1] < 0.5).any())
    )
    rising = "borda" in frame and bool(np.any(np.diff(frame["borda"]) > 0)) and not minority
    notes += [
        *said("over next", "over_next" in frame),
        *guarantee.tie_notes(frame["rank"], "equal estimates, order" if by_score else ""),
        *said("not unique", several),
        *said("not checked unique", details and gap == 0 and m > SUBSET_LIMIT and not several),
        *said("minorities, shrunken" if shrunken else "minorities", minority, rule=rule),
        *said("majorities", rising and rule in ("Kemeny", "EB-Kemeny")),
        *(_local_notes(release) if release.local else []),
        *said("pairs unsaid", {TOTALS, NET} & release.parts.keys()),
    ]
    if SCORE in release.parts:
        low, high = result.score_conf_int()
        notes += said(
            "Kemeny score",
            score=result.kemeny_score,
            pairs=pairs,
            level=level,
            low=low,
            high=high,
        )
    return notes + said("better order", gap, gap=gap)


def _local_notes(release: Release) -> list[str]:
    """Return notes on standard errors of reports and on pairs never asked about."""
    notes = said("errors of reports") + said("unbiased reports")
    if PAIR_COUNTS not in release.parts:
        return notes + said("reports of rankings")
    counts = release.parts[PAIR_COUNTS].values
    unasked = int((counts == 0).sum())
    return notes + said(
        "unasked pairs, scored" if SCORES in release.parts else "unasked pairs",
        unasked,
        unasked=unasked,
        pairs=len(counts),
    )
