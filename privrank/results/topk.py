"""The result of a private top-k selection."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.bradley_terry.dependence import degrees_of_freedom
from privrank.bradley_terry.errors import to_normal
from privrank.bradley_terry.score import ScoreEquations, score_equations
from privrank.hypotheses.ranksets import rank_sets, shared_ranks
from privrank.hypotheses.tails import noisy_tail
from privrank.release.names import NET
from privrank.results import guarantee, plots, tables
from privrank.results.base import Result, once
from privrank.results.worthtable import part_notes
from privrank.util.arrays import FloatArray, IntArray, own
from privrank.util.checks import check_flag
from privrank.util.frozen import immutable
from privrank.util.solvers import bracket


def rate_variance(facts: ScoreEquations, rate: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return the variances of win rates of independent answers, shape (m,), at these rates."""
    deviation = np.abs(rate - 0.5)
    single = rate * (1.0 - rate) + _responses(facts).sum(axis=1) / degrees
    return np.asarray(np.maximum(single, deviation * (0.5 - deviation)) / degrees)


def equal_variances(facts: ScoreEquations, degrees: FloatArray) -> FloatArray:
    """Return the variances of differences of win rates of independent answers, shape (m, m).

    With all items equal, the net wins of i and j have variances d_i, d_j and covariance -n_ij. The
    head-to-head term makes the difference of two equal degrees d vary by 2 d + 2 n_ij, not 2 d.
    """
    inverse, added = 1.0 / degrees, _responses(facts)
    shared = (facts.pairs.table(facts.items) + 4.0 * added) * np.outer(inverse, inverse)
    own = inverse + 4.0 * added.sum(axis=1) * inverse**2
    return np.asarray(0.25 * (own[:, None] + own + 2.0 * shared))


def _responses(facts: ScoreEquations) -> FloatArray:
    """Return what randomised responses add to the variances of pairs' scores, shape (m, m)."""
    if not len(facts.response):
        return np.zeros((facts.items, facts.items))
    return replace(facts.pairs, count=facts.response).table(facts.items)


# How far an item's chances against strong and weak opponents are supposed to lie apart
TYPICAL_SPREAD = 0.5


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class TopKResult(Result):
    """The private top k: the set, win rates with intervals, ranks and a separation p-value.

    `params` are win rates tau: the share of its comparisons that an item is expected to win against
    the opponents it met. Where opponents were unequal that is no order of worths.

    Parameters
    ----------
    release : Release
        What the mechanism let out.
    k : int
        Size of the set, fixed in advance.
    alpha : float
        Significance level of intervals and rank sets.
    win_rate : ndarray, shape (m,)
        Estimated win rates, which noise can carry beyond 0 and 1.
    sampling_sd : ndarray, shape (m,)
        Sampling standard errors of the win rates.
    degrees : ndarray, shape (m,)
        Public (or assumed) comparisons per item.
    effects : ndarray, shape (m, m)
        Variances of win rates, on the diagonal, and of their differences, over those of independent
        answers.

    See Also
    --------
    privrank.PrivateTopK : The model.
    privrank.BTLResult : Worths, where opponents were unequal.

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
    win_rate: FloatArray = field(repr=False)
    sampling_sd: FloatArray = field(repr=False)
    degrees: FloatArray = field(repr=False)
    effects: FloatArray = field(repr=False)

    def _shape(self) -> tuple[str, ...]:
        return f"k = {self.k}", *super(TopKResult, self)._shape()

    @once
    def _places(self) -> IntArray:
        """Return item positions, best first; equal counts are ordered by the release's coin."""
        return own(np.lexsort((np.argsort(self.release.tie_break), -self.win_rate)), np.int64)

    @once
    def _facts(self) -> ScoreEquations:
        facts = score_equations(self.release)
        return replace(facts, score=own(facts.score, np.float64))

    @once
    def _known(self) -> NDArray[np.bool_]:
        """Return which items have comparisons beyond the noise on their number."""
        return own(~np.isnan(self.win_rate), np.bool_)

    @once
    def _noise(self) -> FloatArray:
        """Return the variances that noise on net wins, or on win-matrix cells, adds."""
        facts = self._facts()
        cells = facts.edge_variance(np.zeros(facts.items))
        # noise on a cell of the win matrix enters the net wins of both items of its pair
        both = np.bincount(facts.pairs.first, cells, minlength=facts.items)
        both += np.bincount(facts.pairs.second, cells, minlength=facts.items)
        errors = self._count_errors(self.win_rate)
        return own((facts.item_variance + both) / self.degrees**2 + errors, np.float64)

    def _count_errors(self, rate: float | FloatArray) -> FloatArray:
        """Return the variances that errors of released pair counts add to these win rates."""
        # a degree is a sum of m - 1 noisy counts; rate = 1/2 + net / (2 degree)
        variance = (len(self.items) - 1) * self._facts().count_variance
        return np.asarray(variance * (rate - 0.5) ** 2 / self.degrees**2)

    @once
    def _edge_inflation(self) -> float:
        """Return 1 plus the relative variance that noise on win-matrix cells adds."""
        facts = self._facts()
        if facts.edge_distribution.scale == 0:
            return 1.0
        noise = float(facts.edge_variance(np.zeros(facts.items)).sum())
        return 1.0 + 4.0 * noise / facts.pairs.total

    @property
    def design_effect(self) -> float:
        """Largest design effect of a win rate or of a difference of two.

        It is an upper bound, and no estimate, where the summary says "at most": the noise of the
        release then covers every value that answers can have.

        Examples
        --------
        >>> round(result.design_effect, 2)
        2.03
        """
        return float(self.effects.max())

    def _variance_at(self, rate: float | FloatArray) -> FloatArray:
        """Return the sampling variances of win rates whose true values are `rate`."""
        single = rate_variance(self._facts(), np.asarray(rate, dtype=np.float64), self.degrees)
        return np.asarray(np.diag(self.effects) * self._edge_inflation() * single)

    def _tail(
        self, x: FloatArray, sd: FloatArray, first: FloatArray, second: FloatArray | None = None
    ) -> FloatArray:
        """Return two-sided p-values of errors of win rates or of their differences."""
        facts, step = self._facts(), self._facts().item_step
        # Student's t for the normal part, by the normal deviation of equal probability
        weights = first**2 + (0.0 if second is None else second**2)
        total = np.sqrt(sd**2 + facts.item_variance * weights)
        size = total * to_normal(x / total, degrees_of_freedom(self.release))
        other = None if second is None else step * second
        return noisy_tail(facts.item_distribution, size, sd, step * first, other)

    def _tail_at(self, rate: float | FloatArray) -> FloatArray:
        """Return the p-values of the win rates when their true values are `rate`."""
        variance = self._variance_at(0.5 if self._facts().random_pairs else rate)
        sd = np.sqrt(np.maximum(variance + self._count_errors(rate), 1e-18))
        return self._tail(np.abs(self.win_rate - rate), sd, 1.0 / self.degrees)

    @property
    def net_wins(self) -> pd.Series[float]:
        """The noisy net wins themselves: the whole vector is part of the release.

        Examples
        --------
        >>> result.net_wins.round(1).to_dict()
        {'crimRate': 95.8, 'position': -47.8, 'socBurd': 39.9, 'culture': -87.9}
        """
        part = self.release.parts.get(NET)
        net = 2.0 * self._facts().score if part is None else part.step * part.values
        return self._series(net, "net wins")

    @property
    def params(self) -> pd.Series[float]:
        """Win rates tau, brought into [0, 1].

        Examples
        --------
        >>> result.params.round(3).to_dict()
        {'crimRate': 0.686, 'position': 0.405, 'socBurd': 0.579, 'culture': 0.319}
        """
        return self._series(np.clip(self.win_rate, 0.0, 1.0), "win rate")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors of the win rates, sampling and privacy noise together.

        Examples
        --------
        >>> result.bse.round(3).to_dict()
        {'crimRate': 0.055, 'position': 0.058, 'socBurd': 0.058, 'culture': 0.057}
        """
        return self._series(np.sqrt(self.sampling_sd**2 + self._noise()), "std err")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Distance of the win rates from one half over their errors; p-values are not of these.

        Examples
        --------
        >>> result.tvalues.round(2).to_dict()
        {'crimRate': 3.38, 'position': -1.64, 'socBurd': 1.37, 'culture': -3.15}
        """
        return self._series((self.win_rate - 0.5) / self.bse.to_numpy(), "z")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for a win rate of one half.

        Examples
        --------
        >>> result.pvalues.round(3).to_dict()
        {'crimRate': 0.001, 'position': 0.089, 'socBurd': 0.153, 'culture': 0.003}
        """
        return self._series(self._tail_at(0.5), "p-value")

    @property
    def selected(self) -> tuple[str, ...]:
        """The top k items, best first, of those whose comparisons exceed their noise.

        The release's public random order decides between items that are tied at the k-th rank.

        See Also
        --------
        privrank.TopKResult.pvalue : Whether the set is separated from the rest.

        Examples
        --------
        >>> result.selected
        ('crimRate', 'socBurd')
        """
        places = self._places()[: min(self.k, int(self._known().sum()))]
        # among themselves tied items are in the order in which they were declared
        shown = np.argsort(shared_ranks(self.win_rate), kind="stable")
        return tuple(self.items[place] for place in shown if place in places)

    def _gap_pvalues(self, inside: IntArray, outside: IntArray) -> FloatArray:
        """Return two-sided p-values that each item inside has the win rate of each outside."""
        gap = np.abs(self.win_rate[inside, None] - self.win_rate[outside])
        inverse, both = 1.0 / self.degrees, np.ix_(inside, outside)
        variance = (self.effects * equal_variances(self._facts(), self.degrees))[both]
        counts = self._count_errors(self.win_rate)
        variance = self._edge_inflation() * variance + counts[inside, None] + counts[outside]
        sd = np.sqrt(np.maximum(variance, 1e-18))
        pvalues = self._tail(gap, sd, inverse[inside, None], inverse[outside])
        if (member := self._facts().member) is None:
            return pvalues
        # nothing is known of items that the released comparisons do not connect
        apart = (member[inside, None] != member[outside]) & ~np.isnan(gap)
        return np.where(apart, 1.0, pvalues)

    @once
    def _all_gap_pvalues(self) -> FloatArray:
        every = np.arange(len(self.items))
        return own(self._gap_pvalues(every, every), np.float64)

    @property
    def statistic(self) -> float:
        """Gap in win rate between the k-th and the next item.

        Examples
        --------
        >>> round(result.statistic, 3)
        0.174
        """
        inside, outside = self._places()[self.k - 1 : self.k + 1]
        return float(self.win_rate[inside] - self.win_rate[outside])

    @property
    @once
    def pvalue(self) -> float:
        """Separation p-value of the set.

        **Null.** At least one selected item is no better than one left out. The gaps between their
        noisy counts are compared with the two-sided distributions of differences of two noisy
        counts of equally good items, and the largest p-value counts. Gaps of items that divide the
        respondents vary more, so that it need not be that of the k-th item and the next. k must
        have been fixed in advance.

        Examples
        --------
        >>> round(result.pvalue, 3)
        0.058
        """
        inside, outside = np.split(self._places()[: self._known().sum()], [self.k])
        return float(self._gap_pvalues(inside, outside).max()) if len(outside) else math.nan

    def conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return confidence intervals of the win rates.

        All rates at which the estimate would not be rejected, with the binomial variance at that
        rate (inflated by the design effect) and the exact noise distribution: a Wilson interval
        with noise.

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
        centre = np.clip(self.win_rate, 0.0, 1.0)
        ends = []
        for bound in (0.0, 1.0):
            outside = np.full(len(centre), bound)
            whole = self._tail_at(outside) >= level
            # by bisection between the estimate, which is not rejected, and the bound, which is
            inside, _ = bracket(lambda rate: self._tail_at(rate) >= level, centre, outside, 60)
            ends.append(np.where(whole, bound, inside))
        return self._limits(*ends)

    def ranks(self) -> pd.Series[Any]:
        """Return ranks, 1 = highest win rate, among the items that are identified; ties share one.

        Examples
        --------
        >>> result.ranks().to_dict()
        {'crimRate': 1, 'position': 3, 'socBurd': 2, 'culture': 4}
        """
        return self._series(shared_ranks(self.win_rate), "rank").where(self._known())

    def rank_conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return simultaneous confidence sets of the ranks, by step-down tests of all differences.

        See :func:`privrank.hypotheses.ranksets.rank_sets`.

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
        level, known, pvalues = self._level(alpha), self._known(), self._all_gap_pvalues()
        pairs = np.outer(known, known) & ~np.eye(len(known), dtype=bool)
        ends = rank_sets(self.win_rate, pairs, lambda left: pvalues <= 2.0 * level / left)
        frame = self._limits(*ends)
        return frame if known.all() else frame.where(pd.Series(known, frame.index))

    def to_frame(self) -> pd.DataFrame:
        """Return the table of win rates as a data frame, one row per item, best first.

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
        numbers = {"win_rate": self.params, "std_err": self.bse, "pvalue": self.pvalues}
        frame = pd.DataFrame(numbers).join(self.conf_int())
        frame = frame.assign(net_wins=self.net_wins, rank=self.ranks())
        frame = frame.join(self.rank_conf_int().add_prefix("rank_"))
        frame["selected"] = frame.index.isin(self.selected)
        return self._cautioned(frame.sort_values("rank", kind="stable"))

    @once
    def _cautions(self) -> tuple[str, ...]:
        return (
            *part_notes(self.release.design, self._facts().components),
            *self._opponent_words(),
            *self._warned(),
        )

    def summary(self, details: bool = False) -> tables.Table:
        """Return the selection as a table in the style of statsmodels.

        Parameters
        ----------
        details : bool, default False
            Whether to say what an expert asks: the scale of the noise and what it is calibrated
            to, the next best noise, shares of epsilon, and the hypotheses in full.

        Returns
        -------
        Table

        Examples
        --------
        >>> table = result.summary()
        >>> for line in str(table).splitlines()[8:12]:
        ...     print(line)
                                    top 2  win rate  std err   [0.025   0.975]  net wins     rank
        -----------------------------------------------------------------------------------------
        crimRate                        *    0.6856   0.0549    0.578    0.782        96      1-2
        socBurd                         *    0.5788   0.0577    0.469    0.684        40      1-3
        """
        check_flag("details", details)
        frame = self.to_frame()
        known = frame["win_rate"].notna()
        # what is tables.printed of an item that is not identified is its net wins alone
        shown = frame.where(known, axis=0).assign(
            selected=np.where(frame["selected"], "*", ""),
            net_wins=frame["net_wins"],
            ranks=tables.rank_cells(frame, [int(known.sum())] * len(frame)),
        )
        formats: dict[str, Any] = {
            "selected": "{}",
            "win_rate": tables.estimate_cell,
            "std_err": "{:.4f}",
            "lower": "{:.3f}",
            "upper": "{:.3f}",
            "net_wins": "{:.0f}",
            "ranks": "{}",
        }
        return tables.Table(
            title=guarantee.title(f"Top-{self.k} Results", self.release),
            header=guarantee.comparison_header(self.release, self.design_effect, details),
            columns=(
                "",
                f"top {self.k}",
                "win rate",
                "std err",
                *tables.interval_heads(self.alpha),
                "net wins",
                "rank",
            ),
            rows=tables.printed(shown, formats),
            notes=(*self._notes(details), *self._cautions()),
            cautions=self._cautions(),
        )

    def _notes(self, details: bool) -> list[str]:
        verdict = "is" if self.pvalue <= self.alpha else "is not"
        other = " H1: the selected items have the k highest." if details else ""
        separated = (
            f"The set {verdict} separated at level {self.alpha:g}: gap {self.statistic:.4f} to "
            f"rank {self.k + 1}, {tables.format_pvalue(self.pvalue)} under H0, that one left "
            f"out has at least the win rate of one selected.{other}"
        )
        # a separated set and wider rank sets are no contradiction, which a reader has to be shown
        beyond = self.to_frame().query("selected")["rank_upper"] > self.k
        if self.pvalue <= self.alpha and beyond.any():
            separated += (
                f" That is one test; ranks are of all pairs at once, and so may reach beyond "
                f"{self.k}."
            )
        if math.isnan(self.pvalue):
            separated = f"Nothing is left out: the release identifies at most {self.k} items."
        holds = guarantee.holds_if(guarantee.assumptions(self.release))
        noisy = np.mean(2.0 * np.sqrt(self._noise()) >= self.sampling_sd)
        # more items than k have a rank up to k if those at the k-th are tied
        divided = (self.ranks() <= self.k).sum() > self.k
        decided = " A public random order decided which of them are selected."
        return [
            separated,
            *tables.tie_notes(self.ranks(), decided if divided else ""),
            f"{guarantee.reading(self.release)}Each {100 * (1 - self.alpha):g}% interval by itself "
            f"covers the win rate against the opponents met, {guarantee.allowance(self.release)}; "
            f"rank sets hold jointly. {holds}",
            *guarantee.count_notes(self.release, "win rates towards one half"),
            *guarantee.privacy_notes(self.release, details),
            *guarantee.cost_notes(self.release, self.design_effect, bool(noisy > 0.5)),
        ]

    def _opponent_words(self) -> list[str]:
        """Return a warning where other opponents could move a win rate by its standard error.

        An item may have met some opponents more often than others, by a share s of its comparisons.
        Its win rate is off by s times the spread of its probabilities to win against them.
        """
        if sum(len(part) > 1 for part in self._facts().components) > 1:
            return []  # of items that are not compared with each other nothing is said at all
        known = self._known()
        met = self._facts().pairs.table(len(self.items))[np.ix_(known, known)]
        m = len(met)
        share = met / np.maximum(met.sum(axis=1, keepdims=True), 1e-300)
        even = (1.0 - np.eye(m)) / max(m - 1, 1)
        # noise on the counts makes them uneven by itself: an error of each, of mean size .8 sd
        error = 0.8 * np.sqrt(self._facts().count_variance) * (m - 1) / self.degrees[known]
        uneven = 0.5 * (np.abs(share - even).sum(axis=1) - error)
        errors = np.sqrt(self._variance_at(0.5) + self._noise())[known]
        if (TYPICAL_SPREAD * uneven <= errors).all():
            return []
        return [
            "Warning: items did not meet all opponents equally often, so a higher win rate may be "
            "one against weaker opponents, and equally good items can be separated: order them by "
            "the worths of PrivateBTL.from_release(result.release)."
        ]

    def plot(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Draw the win rates with intervals, the selected items marked.

        Examples
        --------
        >>> result.plot().axes[0].get_title()
        'Top 2, epsilon = 1 per respondent, seeded noise'
        """
        return plots.win_rates(self.to_frame(), self.alpha, guarantee.caption(self.release), ax=ax)

    def _settings(self) -> dict[str, Any]:
        return {"k": self.k}

    def _estimates(self) -> dict[str, Any]:
        return {
            "selected": list(self.selected),
            "win_rates": [None if math.isnan(rate) else rate for rate in self.win_rate.tolist()],
            "pvalue": None if math.isnan(self.pvalue) else self.pvalue,
        }

    def _lines(self) -> dict[str, Any]:
        return {"p-value of separation": self.pvalue}
