"""The result of a private top-k selection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from privrank.bradley_terry.contrasts import own_and_between
from privrank.bradley_terry.dependence import degrees_of_freedom
from privrank.bradley_terry.equations import (
    ScoreEquations,
    degree_error,
    pair_noise,
    score_equations,
)
from privrank.bradley_terry.paircounts import uncounted
from privrank.bradley_terry.scoretests import to_normal
from privrank.bradley_terry.winrates import equal_variances, most_met, rate_variance
from privrank.hypotheses.interval import rank_sets, shared_ranks
from privrank.hypotheses.tails import noisy_tail
from privrank.release.names import SIDES
from privrank.release.survey import weight_unit
from privrank.results import guarantee, plots, tables
from privrank.results.base import Result, cached_result
from privrank.results.claims import assumed, percent, said, warned
from privrank.results.coefficients import part_notes
from privrank.util.arrays import BoolArray, FloatArray, IntArray, immutable, readonly_copy
from privrank.util.checks import check_count
from privrank.util.solvers import bisect

# Assumed spread of an item's probabilities to win against strong and weak opponents
TYPICAL_SPREAD = 0.5


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class TopKResult(Result):
    """Results of a private top-k selection.

    `params` are win rates tau: the expected share of its comparisons that an item wins against the
    opponents it met. If items met different opponents, the order of win rates need not be the order
    of worths. If items are ranked by net wins (wins minus losses), `params` are net wins.

    Parameters
    ----------
    release : Release
        The output of the private mechanism.
    k : int
        Size of the set, fixed in advance.
    alpha : float
        Significance level of intervals and rank sets.
    target : {"win rate", "net wins"}
        The quantity by which items are ranked.
    estimate : ndarray, shape (m,)
        Estimated win rates, which can lie outside [0, 1] because of the noise. For net wins, the
        win rates that would follow if all items had been compared equally often.
    degrees : ndarray, shape (m,)
        Comparisons per item: public, assumed or released. Released numbers are at least four
        standard deviations of their noise.
    scale : ndarray, shape (m,)
        Divisor of half the net wins.
    effects : ndarray, shape (m, m)
        Variances of estimates (on the diagonal) and of their differences, divided by the variances
        for independent answers; infinite where nothing is identified.

    See Also
    --------
    privrank.PrivateTopK : The model.
    privrank.BTLResult : Worths, for items that met different opponents.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateTopK(fears.comparisons, k=2, items=fears.items, respondent="respondent",
    ...                        max_rows=6, ties=True, design="public")
    >>> result = model.fit(epsilon=1.0, rng=np.random.default_rng(1))
    >>> result.selected
    ('crimRate', 'socBurd')
    """

    family: ClassVar[str] = "Win rates"

    k: int
    target: str
    estimate: FloatArray = field(repr=False)
    degrees: FloatArray = field(repr=False)
    scale: FloatArray = field(repr=False)
    effects: FloatArray = field(repr=False)

    def _shape(self) -> tuple[str, ...]:
        return f"k = {self.k}", *super(TopKResult, self)._shape()

    @cached_result
    def _places(self) -> IntArray:
        """Return item positions, best first, with ties in the release's random order."""
        return readonly_copy(
            np.lexsort((np.argsort(self.release.tie_break), -self.estimate)), np.int64
        )

    @cached_result
    def _facts(self) -> ScoreEquations:
        return score_equations(self.release)

    @property
    def _known(self) -> BoolArray:
        """Which items have more comparisons than the noise explains."""
        return np.isfinite(np.diag(self.effects))

    @property
    def _by_net(self) -> bool:
        return self.target == "net wins"

    def _shown(self, estimate: FloatArray) -> FloatArray:
        """Return estimates as they are printed: win rates, or net wins."""
        return _net_per_rate(self) * (estimate - 0.5) if self._by_net else estimate

    def _noise_weights(self, estimate: float | FloatArray) -> FloatArray:
        """Return the weights of one noisy number in the estimates, in lattice steps.

        Consider an item with W wins, L losses and a = W + L comparisons. Its win rate is r if W - r
        a is 0 up to errors. The noise of W - r a is 1 - r times the noise of W minus r times the
        noise of L. It is replaced by a multiple of one noise variable with the same variance, which
        has longer tails. If net wins and a were released separately, the noise of a is included in
        the errors of counts.
        """
        facts = self._facts()
        step = 0.5 * facts.by_item.step
        if SIDES not in facts.terms:
            return np.asarray(step / self.scale)
        rate = 0.5 if self._by_net else estimate
        return np.asarray(2.0 * np.hypot(rate, 1.0 - rate) * step / self.scale)

    @cached_result
    def _cells(self) -> FloatArray:
        """Return the variances from noise on cells of a win matrix, shape (m, m).

        The diagonal has the variances added to estimates, the other entries those added to
        differences of estimates.
        """
        facts = self._facts()
        noise = pair_noise(facts, np.zeros(facts.items))
        return readonly_copy(own_and_between(noise / np.outer(self.scale, self.scale)), np.float64)

    @cached_result
    def _noise(self) -> FloatArray:
        """Return the variances that noise adds to the estimates."""
        noise = self._facts().by_item
        weights = self._noise_weights(np.clip(self.estimate, 0.0, 1.0))
        others = np.diag(self._cells()) + self._count_errors(self.estimate)
        return readonly_copy(weights**2 * (noise.variance / noise.step**2) + others, np.float64)

    def _count_errors(self, estimate: float | FloatArray) -> FloatArray:
        """Return the variances that errors of released counts add to these win rates.

        These errors are taken as normal. For counts of pairs they are sums of m - 1 terms. For
        counts of items they are a part of the noise that was planned to be small compared with the
        rest.
        """
        facts = self._facts()
        if self._by_net or SIDES in facts.terms:
            return np.zeros(facts.items)
        # rate = 1/2 + net / (2 degree)
        return np.asarray((degree_error(facts) * (estimate - 0.5) / self.degrees) ** 2)

    @property
    def design_effect(self) -> float:
        """Largest design effect of a win rate or a difference of two.

        If the summary says "at most", the number is an upper bound and not an estimate: the noise
        of the release then covers every value that answers can have.

        Examples
        --------
        >>> round(result.design_effect, 2)
        2.03
        """
        return float(self.effects[np.isfinite(self.effects)].max(initial=1.0))

    def _variance_at(self, estimate: float | FloatArray) -> FloatArray:
        """Return the sampling variances of estimates with these true values."""
        facts = self._facts()
        share = self.degrees / self.scale
        rate = 0.5 + (estimate - 0.5) / share
        if facts.random_pairs:
            rate = np.full(facts.items, 0.5)
        single = share**2 * rate_variance(facts, np.clip(rate, 0.0, 1.0), self.degrees)
        # if nothing is identified, any finite number will do
        return np.asarray(np.where(self._known, np.diag(self.effects), 1.0) * single)

    def _tail(
        self, x: FloatArray, sd: FloatArray, first: FloatArray, second: FloatArray | None = None
    ) -> FloatArray:
        """Return two-sided p-values of errors of estimates or of their differences."""
        noise = self._facts().by_item
        weights = first**2 + (0.0 if second is None else second**2)
        total = np.sqrt(sd**2 + noise.variance / noise.step**2 * weights)
        # Student's t for the normal part, by the normal deviation of equal probability
        size = total * to_normal(x / total, degrees_of_freedom(self.release))
        return noisy_tail(noise.distribution, size, sd, first, second)

    def _tail_at(self, estimate: float | FloatArray) -> FloatArray:
        """Return the p-values of the estimates for these true values."""
        noise = self._count_errors(estimate) + np.diag(self._cells())
        sd = np.sqrt(np.maximum(self._variance_at(estimate) + noise, 1e-18))
        off = np.abs(self.estimate - estimate)
        return np.where(self._known, self._tail(off, sd, self._noise_weights(estimate)), 1.0)

    @property
    def net_wins(self) -> pd.Series[float]:
        """Noisy net wins of all items, as released.

        Examples
        --------
        >>> result.net_wins.round(1).to_dict()
        {'crimRate': 95.8, 'position': -47.8, 'socBurd': 39.9, 'culture': -87.9}
        """
        return self._series(_net_per_rate(self) * (self.estimate - 0.5), "net wins")

    @property
    def params(self) -> pd.Series[float]:
        """Win rates tau, clipped to [0, 1], or net wins; NaN if not identified.

        Examples
        --------
        >>> result.params.round(3).to_dict()
        {'crimRate': 0.686, 'position': 0.405, 'socBurd': 0.579, 'culture': 0.319}
        """
        rates = np.where(self._known, np.clip(self.estimate, 0.0, 1.0), np.nan)
        shown = self._shown(self.estimate) if self._by_net else rates
        return self._series(shown, self.target)

    def _errors(self, variance: FloatArray) -> pd.Series[float]:
        """Return printed standard errors, given variances of estimates."""
        sizes = (_net_per_rate(self) if self._by_net else 1.0) * np.sqrt(variance)
        return self._series(np.where(self._known, sizes, np.nan), "std err")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Sampling standard errors.

        Examples
        --------
        >>> result.bse_sampling.round(3).to_dict()
        {'crimRate': 0.041, 'position': 0.044, 'socBurd': 0.044, 'culture': 0.043}
        """
        return self._errors(self._variance_at(self.estimate))

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, sampling and privacy noise together.

        Examples
        --------
        >>> result.bse.round(3).to_dict()
        {'crimRate': 0.055, 'position': 0.058, 'socBurd': 0.058, 'culture': 0.057}
        """
        return self._errors(self._variance_at(self.estimate) + self._noise())

    @property
    def tvalues(self) -> pd.Series[float]:
        """Differences of the win rates from one half, over standard errors.

        The p-values come from another test (:attr:`pvalues`), not from these ratios.

        Examples
        --------
        >>> result.tvalues.round(2).to_dict()
        {'crimRate': 3.38, 'position': -1.64, 'socBurd': 1.37, 'culture': -3.15}
        """
        errors = np.sqrt(self._variance_at(self.estimate) + self._noise())
        return self._series((self.estimate - 0.5) / errors, "z").where(self._known)

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for a win rate of one half, or for no net wins.

        Examples
        --------
        >>> result.pvalues.round(3).to_dict()
        {'crimRate': 0.001, 'position': 0.089, 'socBurd': 0.153, 'culture': 0.003}
        """
        return self._series(self._tail_at(0.5), "p-value")

    @property
    def selected(self) -> tuple[str, ...]:
        """The top k items, best first.

        If items are tied at the k-th rank, the public random order of the release decides between
        them.

        See Also
        --------
        privrank.TopKResult.pvalue : Whether the set is separated from the rest.

        Examples
        --------
        >>> result.selected
        ('crimRate', 'socBurd')
        """
        places = self._places()[: self.k]
        # tied items are shown in the declared order
        shown = np.argsort(shared_ranks(self.estimate), kind="stable")
        return tuple(self.items[place] for place in shown if place in places)

    @cached_result
    def _all_gap_pvalues(self) -> FloatArray:
        """Return two-sided p-values for equal estimands of two items, shape (m, m)."""
        facts = self._facts()
        known = np.isfinite(self.effects)
        if not known.any():
            return readonly_copy(np.ones(known.shape), np.float64)
        gap = np.abs(self.estimate[:, None] - self.estimate)
        alone = equal_variances(
            facts, self.degrees, self.scale, most_met(facts, self.release.design, self.degrees)
        )
        counts = self._count_errors(self.estimate)
        noise = self._cells() + counts[:, None] + counts
        sd = np.sqrt(np.maximum(np.where(known, self.effects, 1.0) * alone + noise, 1e-18))
        weights = self._noise_weights(np.clip(self.estimate, 0.0, 1.0))
        # each two items once, the noise that weighs more first
        pair = np.triu_indices(len(gap), 1)
        ends = np.sort(weights[np.array(pair)], axis=0)
        pvalues = np.ones_like(gap)
        pvalues[pair] = self._tail(gap[pair], sd[pair], ends[1], ends[0])
        return readonly_copy(np.where(known, np.minimum(pvalues, pvalues.T), 1.0), np.float64)

    def _separation(self, k: int) -> float:
        """Return the largest p-value between the first k items and the others."""
        return float(self._all_gap_pvalues()[np.ix_(*np.split(self._places(), [k]))].max())

    @property
    def statistic(self) -> float:
        """Gap in win rate or net wins between the k-th and the next item.

        Examples
        --------
        >>> round(result.statistic, 3)
        0.174
        """
        first, other = self._shown(self.estimate)[self._places()[self.k - 1 : self.k + 1]]
        return float(first - other)

    @property
    def pvalue(self) -> float:
        """Separation p-value of the set.

        **Null.** At least one selected item is no better than one left out. For each pair of a
        selected item and an item left out, the gap of the noisy counts is compared with the
        two-sided distribution of the difference of two noisy counts of equally good items, and the
        largest p-value is returned. If opinions about two items are divided among respondents,
        their gap varies more, so the largest p-value need not belong to the k-th item and the next.
        The p-value is 1 if one of these gaps is not identified. k must have been fixed in advance.

        Examples
        --------
        >>> round(result.pvalue, 3)
        0.058
        """
        return self._separation(self.k)

    def largest_gap(self) -> pd.DataFrame:
        """Return the gap after the first k items and its p-value, for every k.

        The p-values are adjusted for all k (Bonferroni), so k may be chosen by these p-values.

        Returns
        -------
        DataFrame
            Columns ``gap`` and ``pvalue``, one row per k; the k with the clearest separation is
            first.

        Examples
        --------
        >>> result.largest_gap().round(3)
             gap  pvalue
        k
        2  0.174   0.173
        1  0.107   0.696
        3  0.086   1.000
        """
        k = pd.RangeIndex(1, len(self.items), name="k")
        return pd.DataFrame(
            {
                "gap": -np.diff(self._shown(self.estimate)[self._places()]),
                "pvalue": [min(1.0, len(k) * self._separation(size)) for size in k],
            },
            k,
        ).sort_values(["pvalue", "gap"], ascending=[True, False], kind="stable")

    def membership(self, tolerance: int = 0) -> pd.Series[Any]:
        """Return which items are in the top k, out of it, or undecided.

        The decisions follow from the simultaneous rank sets, so they are simultaneous as well.

        Parameters
        ----------
        tolerance : int, default 0
            Number of ranks by which an item may miss rank k. An item is "in" if its whole rank set
            is at most k + `tolerance`, and "out" if its whole rank set is above k - `tolerance`.

        Returns
        -------
        Series
            ``"in"``, ``"out"`` or ``"open"``, one per item.

        References
        ----------
        Cai, Chakraborty and Wang (2023), Theorems 3.1 and 3.2, on the top k within a tolerance.

        Examples
        --------
        >>> result.membership().to_dict()
        {'crimRate': 'in', 'position': 'open', 'socBurd': 'open', 'culture': 'out'}
        """
        slack = check_count("tolerance", tolerance, low=0)
        ranks = self.rank_conf_int()
        words = np.where(ranks["lower"] > self.k - slack, "out", "open")
        return self._series(np.where(ranks["upper"] <= self.k + slack, "in", words), "top k")

    def conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return confidence intervals of the win rates, or of expected net wins.

        An interval contains all rates at which the estimate would not be rejected. The test uses
        the binomial variance at that rate (inflated by the design effect) and the exact noise
        distribution: the result is a Wilson interval with noise.

        Returns
        -------
        DataFrame
            Columns ``lower`` and ``upper``, one row per item.

        Examples
        --------
        >>> result.conf_int().round(3)
                  lower  upper
        item
        crimRate  0.578  0.782
        position  0.301  0.515
        socBurd   0.469  0.684
        culture   0.219  0.431
        """
        level = self._level(alpha)
        share = self.degrees / self.scale
        if uncounted(self.release):
            return self._limits(np.nan, np.nan)
        ends = []
        for side in (-0.5, 0.5):
            outside = 0.5 + side * share
            centre = np.clip(self.estimate, 0.5 - 0.5 * share, 0.5 + 0.5 * share)
            # bisect between the estimate, which is not rejected, and the bound, which is
            inside, _ = bisect(lambda rate: self._tail_at(rate) >= level, centre, outside, 60)
            ends.append(self._shown(np.where(self._tail_at(outside) >= level, outside, inside)))
        return self._limits(*ends)

    def ranks(self) -> pd.Series[Any]:
        """Return ranks, 1 = highest win rate; tied items share a rank.

        Examples
        --------
        >>> result.ranks().to_dict()
        {'crimRate': 1, 'position': 3, 'socBurd': 2, 'culture': 4}
        """
        return self._series(shared_ranks(self.estimate), "rank")

    def rank_conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return simultaneous confidence sets of the ranks.

        They invert step-down tests of all differences
        (:func:`privrank.hypotheses.interval.rank_sets`).

        Returns
        -------
        DataFrame
            Columns ``lower`` and ``upper``, one row per item.

        Examples
        --------
        >>> result.rank_conf_int()
                  lower  upper
        item
        crimRate      1      2
        position      2      4
        socBurd       1      3
        culture       3      4
        """
        level = self._level(alpha)
        pvalues = self._all_gap_pvalues()
        return self._limits(
            *rank_sets(
                self.estimate,
                ~np.eye(len(self.items), dtype=bool),
                lambda left: pvalues <= 2.0 * level / left,
            )
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the win rates or net wins, one row per item, best first.

        Examples
        --------
        >>> result.to_frame()[["win_rate", "std_err", "rank", "selected"]].round(3)
                  win_rate  std_err  rank  selected
        item
        crimRate     0.686    0.055     1      True
        socBurd      0.579    0.058     2      True
        position     0.405    0.058     3     False
        culture      0.319    0.057     4     False
        """
        name = "net_wins" if self._by_net else "win_rate"
        frame = pd.DataFrame({name: self.params, "std_err": self.bse, "pvalue": self.pvalues}).join(
            self.conf_int()
        )
        frame = frame.assign(net_wins=self.net_wins, rank=self.ranks()).join(
            self.rank_conf_int().add_prefix("rank_")
        )
        frame["selected"] = frame.index.isin(self.selected)
        return self._cautioned(frame.sort_values("rank", kind="stable"))

    @cached_result
    def _cautions(self) -> tuple[str, ...]:
        return (*identified_notes(self), *_opponent_words(self), *self._warned())

    def _table(self, details: bool) -> tables.Table:
        frame = self.to_frame()
        number, error = ("{:z.0f}", "{:z.1f}") if self._by_net else ("{:z.3f}", "{:z.4f}")
        columns = {
            "chosen": tables.Column("selected", str),
            "win_rate": tables.Column("win rate", "{:z.4f}".format, tables.UNIDENTIFIED),
            "std_err": tables.Column("std err", error.format),
            **tables.interval_columns(self.alpha, number.format),
            "net_wins": tables.Column("net wins", "{:z.0f}".format),
            "ranks": tables.RANKS,
        }
        order = list(columns)
        if self._by_net:
            order = ["chosen", "net_wins", "std_err", "lower", "upper", "ranks"]
        if uncounted(self.release):  # only the order is stated
            frame = frame.drop(columns=["rank_lower", "rank_upper"])
            order = ["chosen", "net_wins", "ranks"]
        return tables.laid_out(
            frame.assign(
                chosen=np.where(frame["selected"], "*", ""), ranks=tables.rank_ranges(frame)
            ),
            {name: columns[name] for name in order},
            title=guarantee.title(f"Top-{self.k} Results", self.release),
            header=guarantee.comparison_header(self.release, self.design_effect, details),
            notes=tables.Notes(
                estimates=_estimate_notes(self),
                tests=[] if uncounted(self.release) else _separated(self, details),
                assumptions=[
                    *assumed(guarantee.assumptions(self.release)),
                    *guarantee.count_notes(self.release, "equal counts, win rates"),
                ],
                privacy=guarantee.comparison_privacy(self.release, details),
            ),
            cautions=self._cautions(),
        )

    def plot(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot the win rates with intervals, with the selected items marked.

        Examples
        --------
        >>> result.plot().axes[0].get_title()
        'Top 2 by win rate (epsilon = 1 per respondent)'
        """
        return plots.win_rates(
            self.to_frame(),
            self.target,
            self.alpha,
            f"Top {self.k} by {self.target} ({guarantee.caption(self.release)})",
            seeded=self.release.source == "seeded",
            ax=ax,
        )

    def _settings(self) -> dict[str, Any]:
        return {"k": self.k, "target": self.target}

    def _estimates(self) -> dict[str, Any]:
        return {
            "selected": list(self.selected),
            "net_wins" if self._by_net else "win_rates": [
                shown if known else None
                for shown, known in zip(self._shown(self.estimate), self._known, strict=True)
            ],
            "pvalue": self.pvalue,
        }

    def _lines(self) -> dict[str, Any]:
        return {"p-value of separation": self.pvalue}


def identified_notes(result: TopKResult) -> list[str]:
    """Return notes on items or differences that are not identified."""
    if uncounted(result.release):
        return said("net wins alone")
    names = [item for item, known in zip(result.items, result._known, strict=True) if not known]
    return [
        *part_notes(
            result.release.design,
            [part for part in result._facts().components.groups if len(part) > 1],
        ),
        *warned("uncounted items", names, names=", ".join(names)),
    ]


def _estimate_notes(result: TopKResult) -> list[str]:
    """Return notes on the target, the intervals and the coding of answers."""
    release = result.release
    noisy = np.mean(2.0 * np.sqrt(result._noise()) >= np.sqrt(result._variance_at(result.estimate)))
    # more than k items have a rank up to k if items at the k-th rank are tied
    ranks = result.ranks()
    divided = (ranks <= result.k).sum() > result.k
    if uncounted(result.release):  # net wins are whole numbers, and often tied
        ranks = ranks[ranks == ranks[ranks <= result.k].max()]
        intervals = guarantee.outcome_notes(release)
    else:
        counted = "by wins and losses" if SIDES in result._facts().terms else "by nets and counts"
        target = "by net wins" if result._by_net else counted
        intervals = [
            *said(target, result._by_net or release.design.unknown),
            *guarantee.interval_notes(
                "net wins" if result._by_net else "win rates", release, percent(1.0 - result.alpha)
            ),
        ]
    return [
        *intervals,
        *guarantee.tie_notes(ranks, "equal estimates, selection" if divided else ""),
        *guarantee.bound_notes(release.design),
        *guarantee.cost_notes(release, result.design_effect, bool(noisy > 0.5)),
    ]


def _separated(result: TopKResult, details: bool) -> list[str]:
    """Return whether the set is separated."""
    separated = result.pvalue <= result.alpha
    # explain that a separated set and wider rank sets are no contradiction
    frame = result.to_frame()
    beyond = frame.query("selected")["rank_upper"] > result.k
    gap = f"{result.statistic:,.0f}" if result._by_net else f"{result.statistic:.4f}"
    if frame.iloc[result.k - 1 : result.k + 1, 0].isna().any():
        gap = tables.UNIDENTIFIED
    return [
        *said(
            "separated" if separated else "not separated",
            level=percent(result.alpha),
            gap=gap,
            rank=result.k + 1,
            pvalue=tables.format_pvalue(result.pvalue),
        ),
        *said("separation", details, k=result.k),
        *said("wider ranks", separated and beyond.any(), k=result.k),
        *said("met unknown", details and result.release.design.unknown and not result._by_net),
    ]


def _opponent_words(result: TopKResult) -> list[str]:
    """Return a warning if unequal opponents could move a win rate by its error.

    An item may have met some opponents more often than others, by a share s of its comparisons.
    The error of its win rate is then s times the spread of its probabilities to win against
    them.
    """
    facts = result._facts()
    known = result._known
    # items of two components are not compared, and net wins alone do not show the opponents
    counted = np.isfinite(result.effects[known]).any() and facts.matching is None
    if result._by_net or not counted or sum(len(part) > 1 for part in facts.components.groups) > 1:
        return []
    met = facts.pairs.table(len(result.items))[np.ix_(known, known)]
    m = len(met)
    share = met / np.maximum(met.sum(axis=1, keepdims=True), 1e-300)
    even = (1.0 - np.eye(m)) / max(m - 1, 1)
    # noise on the counts makes them uneven by itself: an error of each, of mean size 0.8 sd
    error = 0.8 * np.sqrt(facts.count_variance) * (m - 1) / result.degrees[known]
    uneven = 0.5 * (np.abs(share - even).sum(axis=1) - error)
    errors = np.sqrt(result._variance_at(0.5) + result._noise())[known]
    return warned("opponents uneven", not (TYPICAL_SPREAD * uneven <= errors).all())


def _net_per_rate(result: TopKResult) -> FloatArray:
    """Return the net wins, times the weights as given, that an estimate of one stands for."""
    design = result.release.design
    step = 1.0 if design.weights is None else design.weights.step / weight_unit(design)
    return 2.0 * result.scale * step
