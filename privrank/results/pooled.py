"""The result of pooling several releases of one or several surveys."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, cast

import numpy as np
import pandas as pd
from scipy.linalg import helmert
from scipy.spatial.distance import squareform

from privrank import __version__
from privrank.consensus.statements import NoisyVotes
from privrank.hypotheses.interval import rank_sets, shared_ranks
from privrank.release.archived import archive
from privrank.release.records import record_of
from privrank.results import guarantee, plots, tables
from privrank.results.aggregation import AggregationResult
from privrank.results.base import Summarised
from privrank.results.btl import BTLResult
from privrank.results.claims import ERRORS, assumed, percent, said, warned
from privrank.results.hypotheses import signed_z
from privrank.results.pooling import (
    Pooled,
    combine,
    forms,
    fraction_source,
    score_source,
    worth_source,
)
from privrank.results.predictions import preference_columns
from privrank.util.arrays import FloatArray, IntArray, immutable

Survey = Literal["same", "different"]
Effects = Literal["common", "random"]


def pooled(
    results: Sequence[BTLResult | AggregationResult],
    survey: Survey,
    alpha: float,
    effects: Effects = "common",
    names: tuple[str, ...] = (),
) -> PooledResult:
    """Return the pooled result of several releases of the same numbers."""
    # worths are one block of contrasts; scores and fractions are blocks of one number each
    m = len(results[0].items)
    pairs = None
    how = {"same": survey == "same", "random": effects == "random"}
    fits = [result for result in results if isinstance(result, BTLResult)]
    orders = [result for result in results if isinstance(result, AggregationResult)]
    if fits:
        inferences = [fit._inference() for fit in fits]
        items = combine(
            [*map(worth_source, inferences)],
            np.zeros((1, m - 1)),
            spread=min(inference.equations.function.spread for inference in inferences),
            **how,
        )
    else:
        stated = [cast("NoisyVotes", result._scores()) for result in orders]
        items = combine([*map(score_source, stated)], np.full((m, 1), 0.5 * (m - 1)), **how)
        if all(votes.fractions is not None for votes in stated):
            pairs = combine(
                [*map(fraction_source, stated)], np.full((m * (m - 1) // 2, 1), 0.5), **how
            )
    return PooledResult(
        results=tuple(fits or orders),
        survey=survey,
        alpha=alpha,
        names=names,
        by_item=items,
        by_pair=pairs,
    )


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class PooledResult(Summarised):
    """Results of pooling several private releases.

    Results of this class are returned by :func:`privrank.pool`. Standard errors combine sampling
    error and privacy noise. If all releases are of one survey, its sampling error is included once.

    Parameters
    ----------
    results : tuple of results
        The results that are pooled.
    survey : {"same", "different"}
        Whether all results are of the same respondents or each of different respondents.
    alpha : float
        Significance level of intervals and rank sets.
    by_item : Pooled
        Pooled contrasts of the worths, or pooled Borda scores.
    by_pair : Pooled or None
        Pooled pair fractions, if all releases have them.
    names : tuple of str
        Names of the results; if empty, they are called release 1, release 2 and so on.

    See Also
    --------
    privrank.pool : Pool several results.

    Notes
    -----
    **Privacy.** Pooling uses releases alone, so it spends no epsilon. For releases of the same
    respondents, the joint guarantee is the sum of their epsilons and the sum of their deltas (basic
    composition). For surveys without a common respondent it is the largest epsilon and the largest
    delta. To see this, replace one respondent of survey k. The releases of all other surveys are
    independent of this respondent and keep their distribution. The distribution of the release of
    survey k changes by its own epsilon and delta, and so does the joint distribution of all
    releases. For a respondent who answered in several surveys, the guarantee is the sum over these
    surveys.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> fits = [model.fit(epsilon, rng=np.random.default_rng(1)) for epsilon in (0.5, 1.0)]
    >>> result = pr.pool(fits, survey="same")
    >>> result.params.round(3).to_dict()
    {'crimRate': 0.65, 'position': -0.277, 'socBurd': 0.226, 'culture': -0.599}
    """

    results: tuple[BTLResult | AggregationResult, ...]
    survey: Survey
    by_item: Pooled = field(repr=False)
    by_pair: Pooled | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show the shape and the guarantee."""
        what = f"{len(self.results)} releases, {self.survey} survey{'' if self._same else 's'}"
        return f"<PooledResult: {what}, {len(self.items)} items, epsilon = {self.epsilon:g}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the pooled results; they are pooled again on reading."""
        return pooled, (self.results, self.survey, self.alpha, self.effects, self.names)

    @property
    def effects(self) -> Effects:
        """Whether surveys have common values or random values about a mean.

        Examples
        --------
        >>> result.effects
        'common'
        """
        return "common" if self.tau is None else "random"

    @property
    def tau(self) -> float | None:
        """Standard deviation between surveys; None if values are common.

        Examples
        --------
        Fits to one survey have common values:

        >>> print(result.tau)
        None
        """
        return self.by_item.tau

    @property
    def _same(self) -> bool:
        return self.survey == "same"

    @property
    def _worths(self) -> bool:
        return isinstance(self.results[0], BTLResult)

    @property
    def items(self) -> tuple[str, ...]:
        """The items, in the declared order.

        Examples
        --------
        >>> result.items
        ('crimRate', 'position', 'socBurd', 'culture')
        """
        return self.results[0].items

    @property
    def family(self) -> str:
        """Title of a table of several such results.

        Examples
        --------
        >>> result.family
        'Bradley-Terry worths'
        """
        return self.results[0].family

    @property
    def nobs(self) -> int:
        """Number of units of the one survey, or of all surveys together.

        Examples
        --------
        >>> result.nobs
        98
        """
        return self.results[0].nobs if self._same else sum(result.nobs for result in self.results)

    @property
    def epsilon(self) -> float:
        """Epsilon of all releases: the sum for one survey, the largest for several.

        Examples
        --------
        >>> result.epsilon
        1.5
        """
        return self._together(result.epsilon for result in self.results)

    @property
    def delta(self) -> float:
        """Delta of all releases: the sum for one survey, the largest for several.

        Examples
        --------
        >>> result.delta
        0.0
        """
        return self._together(result.delta for result in self.results)

    def _together(self, spent: Iterable[float]) -> float:
        return math.fsum(spent) if self._same else max(spent)

    def _combined(self, pairs: bool) -> tuple[Pooled, FloatArray, IntArray, float]:
        """Return combinations for items or pairs, their blocks and null values.

        The first value has the pooled numbers that are combined. Worths are one block of contrasts,
        and a pair is the difference of two worths. Scores and fractions are blocks of one number
        each, between 0 and twice the value of an average item.
        """
        m = len(self.items)
        if self._worths:
            rows = helmert(m).T
            (first, second) = np.triu_indices(m, 1)
            rows = rows[first] - rows[second] if pairs else rows
            return self.by_item, rows, np.zeros(len(rows), dtype=np.int64), 0.0
        of = self.by_pair if pairs else self.by_item
        if of is None:
            raise ValueError(
                "results must all have pair fractions for statements about pairs: fit with "
                "releases='pairs'."
            )
        blocks = np.arange(len(of.point))
        return of, np.ones((len(blocks), 1)), blocks, 0.5 if pairs else 0.5 * (m - 1)

    def _stated(self, pairs: bool, alpha: float | None = None) -> dict[str, FloatArray]:
        """Return values, standard errors, p-values and limits of all items or pairs."""
        of, rows, blocks, null = self._combined(pairs)
        lower, upper = of.limits(rows, blocks, self._level(alpha))
        if not self._worths:
            lower, upper = (np.clip(limit, 0.0, 2.0 * null) for limit in (lower, upper))
        return {
            "value": of.value(rows, blocks),
            "std_err": of.errors(rows, blocks)[0],
            "lower": lower,
            "upper": upper,
            "pvalue": of.pvalues(rows, blocks, null),
        }

    def _part_errors(self, covariances: FloatArray, name: str) -> pd.Series[float]:
        """Return the standard errors of all items from one part of the covariance."""
        _, rows, blocks, _ = self._combined(False)
        return self._series(np.sqrt(forms(rows, covariances[blocks])), name)

    @property
    def params(self) -> pd.Series[float]:
        """Pooled centred worths, or Borda scores.

        Examples
        --------
        >>> result.params.round(3).to_dict()
        {'crimRate': 0.65, 'position': -0.277, 'socBurd': 0.226, 'culture': -0.599}
        """
        of, rows, blocks, _ = self._combined(False)
        return self._series(of.value(rows, blocks), "worth" if self._worths else "Borda")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, sampling and privacy noise together.

        Examples
        --------
        >>> result.bse.round(3).to_dict()
        {'crimRate': 0.201, 'position': 0.192, 'socBurd': 0.19, 'culture': 0.207}
        """
        of, rows, blocks, _ = self._combined(False)
        return self._series(of.errors(rows, blocks)[0], "std err")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Sampling part of the standard errors.

        With random effects this is the whole error except the privacy noise, including the
        variation between surveys.

        Examples
        --------
        >>> result.bse_sampling.round(3).to_dict()
        {'crimRate': 0.174, 'position': 0.167, 'socBurd': 0.166, 'culture': 0.177}
        """
        return self._series(np.sqrt(np.maximum(self.bse**2 - self.bse_privacy**2, 0.0)), "sampling")

    @property
    def bse_privacy(self) -> pd.Series[float]:
        """Privacy part of the standard errors.

        Examples
        --------
        >>> result.bse_privacy.round(3).to_dict()
        {'crimRate': 0.102, 'position': 0.094, 'socBurd': 0.093, 'culture': 0.106}
        """
        return self._part_errors(self.by_item.parts[1], "privacy")

    @property
    def bse_single(self) -> pd.DataFrame:
        """Standard errors of each release alone, one column per release.

        They use the same estimates of sampling error and information as the pooled standard error,
        which is therefore at most the smallest of them (:mod:`privrank.results.pooling`).

        Examples
        --------
        >>> result.bse_single.round(3)
                  release 1  release 2
        item
        crimRate      0.279      0.209
        position      0.262      0.198
        socBurd       0.259      0.196
        culture       0.288      0.214
        """
        return pd.concat(map(self._part_errors, self.by_item.single, self._releases), axis=1)

    @property
    def _releases(self) -> list[str]:
        return list(self.names) or [f"release {k + 1}" for k in range(len(self.results))]

    @property
    def weights(self) -> pd.Series[float]:
        """Mean weights of the releases, which add up to 1.

        Examples
        --------
        >>> result.weights.round(2).to_dict()
        {'release 1': 0.22, 'release 2': 0.78}
        """
        return pd.Series(
            self.by_item.shares, pd.Index(self._releases, name="release"), name="weight"
        )

    @property
    def tvalues(self) -> pd.Series[float]:
        """Normal quantiles of the p-values, with the sign of the difference.

        Examples
        --------
        >>> result.tvalues.round(2).to_dict()
        {'crimRate': 3.29, 'position': -1.46, 'socBurd': 1.2, 'culture': -2.95}
        """
        return self._series(
            signed_z(np.asarray(self.params) - self._combined(False)[3], np.asarray(self.pvalues)),
            "z",
        )

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for an average item: worth 0 or middle Borda score.

        Examples
        --------
        >>> result.pvalues.round(3).to_dict()
        {'crimRate': 0.001, 'position': 0.145, 'socBurd': 0.23, 'culture': 0.003}
        """
        of, rows, blocks, null = self._combined(False)
        return self._series(of.pvalues(rows, blocks, null), "p-value")

    def conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return confidence intervals, columns ``lower`` and ``upper``.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the level of the result, here and in all
            other methods.

        Examples
        --------
        >>> result.conf_int().round(2)
                  lower  upper
        item
        crimRate   0.26   1.06
        position  -0.66   0.10
        socBurd   -0.14   0.61
        culture   -1.02  -0.20
        """
        return pd.DataFrame(self._stated(False, alpha), self.params.index)[["lower", "upper"]]

    def ranks(self) -> pd.Series[Any]:
        """Return ranks, 1 = best; equal estimates share a rank (1, 1, 3).

        Examples
        --------
        >>> result.ranks().to_dict()
        {'crimRate': 1, 'position': 3, 'socBurd': 2, 'culture': 4}
        """
        return self._series(shared_ranks(np.asarray(self.params)), "rank")

    def rank_conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return simultaneous confidence sets of the ranks by worth.

        The columns are ``lower`` and ``upper``. With m items, ``lower`` is 1 plus the number of
        items that are significantly better, and ``upper`` is m minus the number that are
        significantly worse. Significance is decided by step-down tests of all differences
        (:func:`privrank.hypotheses.interval.rank_sets`).

        Examples
        --------
        >>> result.rank_conf_int()
                  lower  upper
        item
        crimRate      1      2
        position      2      4
        socBurd       1      4
        culture       2      4
        """
        if not self._worths:
            raise ValueError("ranks of pooled Borda scores have no intervals: use pairwise().")
        level = self._level(alpha)
        of, rows, blocks, null = self._combined(True)
        pvalues = squareform(of.pvalues(rows, blocks, null))
        return self._limits(
            *rank_sets(
                np.asarray(self.params),
                ~np.eye(len(self.items), dtype=bool),
                lambda left: pvalues <= 2.0 * level / left,
            )
        )

    def pairwise(self, alpha: float | None = None) -> pd.DataFrame:
        """Return all pairs with pointwise intervals.

        Returns
        -------
        DataFrame
            One row per pair, ``item1`` and ``item2``, with ``std_err`` and a ``pvalue`` for equal
            items. For worths, ``difference`` is the difference of the worths and ``probability``
            the probability that item1 is preferred, with the interval ``lower`` to ``upper``. With
            ties the column is ``preferred_plus_half_ties``, to which half the probability of a tie
            is added; with ``ties="davidson"`` it is ``preferred_if_decided``. With random effects
            the probability is taken at the mean of the differences. For rankings, ``fraction`` is
            the fraction of rankings that place item1 before item2.

        Examples
        --------
        >>> result.pairwise()[["item1", "item2", "difference", "pvalue"]].head(3).round(3)
              item1     item2  difference  pvalue
        0  crimRate  position       0.927   0.004
        1  crimRate   socBurd       0.423   0.171
        2  crimRate   culture       1.249   0.000
        """
        stated = self._stated(True, alpha)
        (first, second) = np.triu_indices(len(self.items), 1)
        names = np.array(self.items, dtype=object)
        table = {
            "item1": names[first],
            "item2": names[second],
            "difference" if self._worths else "fraction": stated["value"],
            "std_err": stated["std_err"],
        }
        limits = {name: stated[name] for name in ("lower", "upper")}
        if self._worths:
            limits = preference_columns(
                [result.release for result in self.results], stated["value"], **limits
            )
        return pd.DataFrame({**table, **limits, "pvalue": stated["pvalue"]})

    def test_heterogeneity(self) -> pd.Series[Any]:
        """Test that all releases estimate the same numbers.

        For several surveys, H0 states that worths or pair fractions are the same in all surveys.
        For one survey, H0 states that releases differ by their noise alone, which is true if the
        survey is indeed the same.

        Returns
        -------
        Series
            For worths, Cochran's Q as ``statistic``, its ``df`` and ``pvalue``, and ``I2``, the
            share of Q beyond its degrees of freedom (Higgins and Thompson 2002,
            https://doi.org/10.1002/sim.1186). For rankings, the statistic is the Q of the pair (or
            the item) with the smallest p-value. This p-value is adjusted for the number of pairs or
            items (Bonferroni), because the dependence between them is unknown; ``I2`` is computed
            from the sum of all Q.

        Examples
        --------
        >>> test = result.test_heterogeneity()
        >>> test["df"], round(test["statistic"], 2), round(test["pvalue"], 2)
        (3, 1.07, 0.79)
        """
        of = self.by_item if self.by_pair is None else self.by_pair
        statistics, pvalues = of.heterogeneity()
        total = float(statistics.sum())
        return pd.Series(
            {
                "statistic": float(statistics[np.argmin(pvalues)]),
                "df": of.freedom,
                "pvalue": min(1.0, float(pvalues.min()) * len(pvalues)),
                "I2": max(0.0, 1.0 - of.freedom * len(pvalues) / total) if total > 0 else 0.0,
            },
            name="heterogeneity",
            dtype=object,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the summary as a data frame, best item first.

        The columns are the estimate (``worth`` or ``borda``), ``std_err`` and its parts,
        ``pvalue``, the interval, the rank and, for worths, the confidence set of the rank.

        Examples
        --------
        >>> result.to_frame()[["worth", "std_err", "rank"]].round(3)
                  worth  std_err  rank
        item
        crimRate  0.650    0.201     1
        socBurd   0.226    0.190     2
        position -0.277    0.192     3
        culture  -0.599    0.207     4
        """
        frame = self._fit_frame("worth" if self._worths else "borda").assign(rank=self.ranks())
        if self._worths:
            frame = frame.join(self.rank_conf_int().add_prefix("rank_"))
        return self._cautioned(frame.sort_values("rank", kind="stable"))

    def _cautions(self) -> tuple[str, ...]:
        stated = zip(self._releases, self.results, strict=True)
        return (
            *tables.joined([(name, one._warned()) for name, one in stated]),
            *(() if self._same else twice_notes(self.results, self.names)),
        )

    def _table(self, details: bool) -> tables.Table:
        first = self.results[0]
        frame = self.to_frame()
        name = (
            f"{guarantee.model_name(first.release)} Results"
            if isinstance(first, BTLResult)
            else "Rank Aggregation"
        )
        return tables.laid_out(
            frame.assign(ranks=tables.rank_ranges(frame)),
            tables.fit_columns(
                str(frame.columns[0]),
                self.alpha,
                sampling=tables.Column(
                    guarantee.sampling_head([one.release for one in self.results])
                ),
                pvalue=tables.Column("p-value", tables.pvalue_cell),
            ),
            title=f"Pooled Private {name}",
            header=_header(self),
            notes=_notes(self, details),
            cautions=self._cautions(),
        )

    def plot(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot the pooled intervals and, below each, the intervals of the releases.

        Examples
        --------
        >>> result.plot().axes[0].get_title()
        'Pooled worths (2 releases, epsilon = 1.5)'
        """
        parts = []
        order = self.ranks().sort_values(kind="stable").index
        for name, result in zip(["pooled", *self._releases], [self, *self.results], strict=True):
            frame = (
                result.borda(self.alpha).rename(columns={"score": "worth"})
                if isinstance(result, AggregationResult)
                else result.conf_int(self.alpha).assign(worth=result.params)
            ).loc[order, ["worth", "lower", "upper"]]
            parts.append(frame.rename_axis("item").reset_index().assign(release=name))
        first = self.results[0]
        what = plots.worth_label(first.link.name) if isinstance(first, BTLResult) else "Borda score"
        heading = "worths" if self._worths else "Borda scores"
        spent = "epsilon =" if self._same else "epsilon at most"
        return plots.group_worths(
            pd.concat(parts),
            ["release"],
            f"{what}, {plots.interval_words(self.alpha)}",
            f"Pooled {heading} ({len(self.results)} releases, {spent} {self.epsilon:g})",
            pooled=True,
            reference=self._combined(False)[3],
            seeded=any(result.release.source == "seeded" for result in self.results),
            ax=ax,
        )

    def to_json(self) -> str:
        """Return the result as JSON text, from which :func:`privrank.from_json` rebuilds it.

        Examples
        --------
        >>> pr.from_json(result.to_json()).weights.equals(result.weights)
        True
        """
        return archive(
            {
                "privrank": __version__,
                "result": self.model,
                "settings": {
                    "survey": self.survey,
                    "effects": self.effects,
                    "alpha": self.alpha,
                    "names": list(self.names) or None,
                },
                "estimates": {"params": dict(self.params)},
                "results": [json.loads(result.to_json()) for result in self.results],
            }
        )

    def with_labels(self, labels: Mapping[str, str]) -> Self:
        """Return the same result with labels instead of codes.

        Examples
        --------
        >>> result.with_labels({"crimRate": "Crime rate"}).items
        ('Crime rate', 'position', 'socBurd', 'culture')
        """
        return replace(self, results=tuple(result.with_labels(labels) for result in self.results))

    def _numbers(self) -> tuple[pd.Series[Any], pd.Series[Any], dict[str, Any]]:
        test = self.test_heterogeneity()
        return (
            self.params.rename("worth" if self._worths else "Borda score"),
            self.bse,
            {
                "pooled": f"{len(self.results)} {'releases' if self._same else 'surveys'}",
                "Q": test["statistic"],
                "p-value of Q": test["pvalue"],
            },
        )

    def _public(self) -> dict[str, str]:
        """Return the public facts of all releases together."""
        facts = [guarantee.release_facts(result.release) for result in self.results]
        joined = {name: ", ".join(dict.fromkeys(fact[name] for fact in facts)) for name in facts[0]}
        return joined | {
            "epsilon": f"{self.epsilon:g}",
            "delta": f"{self.delta:g}",
            "N": str(self.nobs),
        }


def twice_notes(results: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Return warnings about groups of surveys with equal public facts.

    `names` are the names of the surveys, if any. Equal facts do not prove that surveys are the
    same, so no error is raised.
    """
    groups: dict[str, list[str]] = {}
    for name, result in zip(names or map(str, range(1, len(results) + 1)), results, strict=True):
        groups.setdefault(json.dumps(record_of(result.release.survey)), []).append(name)
    shown = "" if names else "releases "
    twice = [f"{shown}{', '.join(some)} and {last}" for *some, last in groups.values() if some]
    return [note for listed in twice for note in warned("twice", releases=listed)]


def _header(result: PooledResult) -> tuple[tuple[str, str], ...]:
    """Return the header of a summary: the data, the guarantee and Q."""
    test = result.test_heterogeneity()
    releases = [member.release for member in result.results]
    units = sorted({release.survey.unit for release in releases})
    unit = units[0] if len(units) == 1 else "unit"
    pooled = f"{len(releases)} {'releases, same survey' if result._same else 'surveys'}"
    if result.tau is not None:
        pooled = f"{pooled}, random effects"
    epsilons = " + ".join(f"{member.epsilon:g}" for member in result.results)
    return (
        ("Data:", pooled),
        ("Items:", str(len(result.items))),
        (f"No. {unit.capitalize()}s:", f"{result.nobs:,}"),
        ("Privacy unit:", f"{' or '.join(units)} (replace one)"),
        ("Epsilon:", f"{result.epsilon:g} ({epsilons if result._same else 'the largest'})"),
        ("Delta:", f"{result.delta:g}"),
        (
            "Noise:",
            "; ".join(dict.fromkeys(guarantee.SOURCES[release.source] for release in releases)),
        ),
        ("Q:", f"{test['statistic']:.2f}, {test['df']} df, {tables.format_pvalue(test['pvalue'])}"),
        ("I-squared:", f"{test['I2']:.0%}"),
        *([] if result.tau is None else [("Tau:", f"{result.tau:.3g} between surveys")]),
    )


def _notes(result: PooledResult, details: bool) -> tables.Notes:
    """Return the notes on estimates, tests, assumptions and privacy."""
    first = result.results[0]
    releases = [member.release for member in result.results]
    worths = isinstance(first, BTLResult)
    what = "worths" if worths else "scores"
    estimates = said(
        f"pooled {what}" if result.tau is None else f"mean {what}",
        level=percent(1.0 - result.alpha),
        errors=ERRORS[result.survey],
        freedom=len(releases) - 1,
    )
    model = ""
    counted: list[str] = []
    rests = {key for release in releases for key in guarantee.assumptions(release)}
    if not result._same:
        rests.add("surveys" if result.tau is None else "drawn")
    if isinstance(first, BTLResult):
        rests.add("model")
        model = guarantee.model_name(first.release)
        counted = [note for release in releases for note in guarantee.count_notes(release)]
        coded = [note for release in releases for note in guarantee.outcome_notes(release)]
        estimates += [*dict.fromkeys(coded), *said("tie parameters", releases[0].design.davidson)]
    estimates += guarantee.tie_notes(result.ranks())
    for (name, weight), member in zip(result.weights.items(), result.results, strict=True):
        estimates += said(
            "pooled",
            name=name if result.names else str(name).capitalize(),
            epsilon=member.epsilon,
            nobs=member.nobs,
            unit=member.release.survey.unit,
            weight=weight,
        )
        if details:
            estimates += [f"{key} {value}." for key, value in member.summary(details=True).header]
    return tables.Notes(
        estimates=estimates,
        tests=[
            *said("pooled worth tests", worths),
            *said("score means", not worths, mean=0.5 * (len(result.items) - 1)),
            *said("Q of releases" if result._same else "Q of surveys"),
            *said("Q of items" if result.by_pair is None else "Q of pairs", not worths),
        ],
        assumptions=[*assumed(rests, model), *dict.fromkeys(counted)],
        privacy=[
            *said("several surveys", not result._same),
            *said("units differ", len({release.survey.unit for release in releases}) > 1),
        ],
    )
