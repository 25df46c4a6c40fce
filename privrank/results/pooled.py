"""The result of pooling several releases, of one survey or of several, and its tables."""

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
from privrank.hypotheses.ranksets import rank_sets, shared_ranks
from privrank.release.archived import archive
from privrank.release.survey import record_of
from privrank.results import guarantee, plots, tables
from privrank.results.aggregation import AggregationResult
from privrank.results.base import Summarised
from privrank.results.btl import BTLResult
from privrank.results.cautions import warned
from privrank.results.claims import ERRORS, assumed, percent, said
from privrank.results.hypotheses import signed_z
from privrank.results.pairs import probability_name
from privrank.results.pooling import Pooled, combine, fraction_source, score_source, worth_source
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
    """Return results as pooled: the same numbers of several releases, checked to be the same."""
    # worths are one block of contrasts; scores and fractions are blocks of one number each
    m = len(results[0].items)
    pairs = None
    how = {"same": survey == "same", "random": effects == "random"}
    fits = [result for result in results if isinstance(result, BTLResult)]
    orders = [result for result in results if isinstance(result, AggregationResult)]
    if fits:
        inferences = [fit._inference() for fit in fits]
        spread = min(inference.equations.function.spread for inference in inferences)
        sources = [worth_source(inference) for inference in inferences]
        items = combine(sources, np.zeros((1, m - 1)), spread=spread, **how)
    else:
        stated = [cast("NoisyVotes", result._scores()) for result in orders]
        scores = [score_source(votes) for votes in stated]
        items = combine(scores, np.full((m, 1), 0.5 * (m - 1)), **how)
        if all(votes.fractions is not None for votes in stated):
            fractions = [fraction_source(votes) for votes in stated]
            pairs = combine(fractions, np.full((m * (m - 1) // 2, 1), 0.5), **how)
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

    Made by :func:`privrank.pool`. Standard errors are those of sampling and privacy noise; the
    sampling error of one survey is counted once.

    Parameters
    ----------
    results : tuple of results
        What was pooled.
    survey : {"same", "different"}
        Whether all results are of the same respondents, or each of others.
    alpha : float
        Significance level of what it states.
    by_item : Pooled
        Contrasts of the worths, or Borda scores.
    by_pair : Pooled or None
        Pair fractions, where all releases have them.
    names : tuple of str
        What the results are called; empty for release 1, release 2 and so on.

    See Also
    --------
    privrank.pool : Makes it of several results.

    Notes
    -----
    **Privacy.** Pooling reads releases alone, so it spends nothing. What they have spent together
    is, of the same respondents, the sum of their epsilons, and of their deltas (basic composition).
    Of surveys without a common respondent it is the largest of each. Replace one respondent of
    survey k: the releases of all others, independent of it, have the same distribution, and that of
    survey k changes by its own epsilon and delta. So does the distribution of all together.
    Whoever answered in several surveys is protected by the sum over these.

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
        """Pickle what was pooled; it is pooled again when it is read."""
        return pooled, (self.results, self.survey, self.alpha, self.effects, self.names)

    @property
    def effects(self) -> Effects:
        """Whether all surveys are taken to have common values, or random ones about a mean.

        Examples
        --------
        >>> result.effects
        'common'
        """
        return "common" if self.tau is None else "random"

    @property
    def tau(self) -> float | None:
        """Standard deviation between surveys of each worth or Borda score; None if common.

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
        """Number of units: of the one survey, or of all surveys.

        Examples
        --------
        >>> result.nobs
        98
        """
        units = [result.nobs for result in self.results]
        return units[0] if self._same else sum(units)

    @property
    def epsilon(self) -> float:
        """Epsilon of all releases together: of one survey the sum, of several the largest.

        Examples
        --------
        >>> result.epsilon
        1.5
        """
        return self._together(result.epsilon for result in self.results)

    @property
    def delta(self) -> float:
        """Delta of all releases together, as of :attr:`epsilon`.

        Examples
        --------
        >>> result.delta
        0.0
        """
        return self._together(result.delta for result in self.results)

    def _together(self, spent: Iterable[float]) -> float:
        return math.fsum(spent) if self._same else max(spent)

    def _combined(self, pairs: bool) -> tuple[Pooled, FloatArray, IntArray, float]:
        """Return of what items, or pairs, are combinations, which, of which block, and their null.

        Worths are one block of contrasts, and a pair is the difference of two; scores and fractions
        are blocks of one number each, and lie between 0 and twice that of an average item.
        """
        m = len(self.items)
        of = self.by_pair if pairs and not self._worths else self.by_item
        if of is None:
            raise ValueError(
                "results must all have pair fractions for statements about pairs: fit with "
                "releases='pairs'."
            )
        if not self._worths:
            count = len(of.point)
            null = 0.5 if pairs else 0.5 * (m - 1)
            return of, np.ones((count, 1)), np.arange(count), null
        rows = helmert(m).T
        (first, second) = np.triu_indices(m, 1)
        rows = rows[first] - rows[second] if pairs else rows
        return of, rows, np.zeros(len(rows), dtype=np.int64), 0.0

    def _stated(self, pairs: bool, alpha: float | None = None) -> dict[str, FloatArray]:
        """Return values, errors, p-values and limits of all items, or pairs."""
        of, rows, blocks, null = self._combined(pairs)
        lower, upper = of.limits(rows, blocks, self._level(alpha))
        if not self._worths:
            lower, upper = (np.clip(limit, 0.0, 2.0 * null) for limit in (lower, upper))
        return {
            "value": of.value(rows, blocks),
            "std_err": of.errors(rows, blocks)[0],
            "lower": lower,
            "upper": upper,
            "pvalue": self._pvalues(pairs),
        }

    def _pvalues(self, pairs: bool) -> FloatArray:
        of, rows, blocks, null = self._combined(pairs)
        return of.pvalues(rows, blocks, null)

    def _part_errors(self, covariances: FloatArray, name: str) -> pd.Series[float]:
        """Return the standard errors of all items that one part of the covariance gives."""
        _, rows, blocks, _ = self._combined(False)
        variance = np.einsum("rp,rpq,rq->r", rows, covariances[blocks], rows)
        return self._series(np.sqrt(np.maximum(variance, 0.0)), name)

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

        With random effects all that is not privacy noise: which surveys were drawn, too.

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
        """Standard errors that each release would have by itself, one column each.

        With the same estimates of sampling error and information, so that the pooled one is at most
        the least of them (:mod:`privrank.results.pooling`).

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
        singles = zip(self._releases, self.by_item.single, strict=True)
        return pd.DataFrame({name: self._part_errors(part, name) for name, part in singles})

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
        index = pd.Index(self._releases, name="release")
        return pd.Series(self.by_item.shares, index=index, name="weight")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Normal quantiles that are as probable as the p-values, with the sign of the difference.

        Examples
        --------
        >>> result.tvalues.round(2).to_dict()
        {'crimRate': 3.29, 'position': -1.46, 'socBurd': 1.2, 'culture': -2.95}
        """
        effect = np.asarray(self.params) - self._combined(False)[3]
        return self._series(signed_z(effect, self._pvalues(False)), "z")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for an average item: a worth of 0, or the middle Borda score.

        Examples
        --------
        >>> result.pvalues.round(3).to_dict()
        {'crimRate': 0.001, 'position': 0.145, 'socBurd': 0.23, 'culture': 0.003}
        """
        return self._series(self._pvalues(False), "p-value")

    def conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return confidence intervals, columns ``lower`` and ``upper``.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the result's own, as in all methods.

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
        """Return ranks, 1 = best; equal estimates share one, as in 1, 1, 3.

        Examples
        --------
        >>> result.ranks().to_dict()
        {'crimRate': 1, 'position': 3, 'socBurd': 2, 'culture': 4}
        """
        return self._series(shared_ranks(np.asarray(self.params)), "rank")

    def rank_conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return simultaneous confidence sets of the ranks by worth, ``lower`` and ``upper``.

        1 plus the number of items surely better, to m minus the number surely worse, by step-down
        tests of all differences (:func:`privrank.hypotheses.ranksets.rank_sets`).

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
        every = ~np.eye(len(self.items), dtype=bool)
        pvalues = squareform(self._pvalues(True))
        params = np.asarray(self.params)
        return self._limits(*rank_sets(params, every, lambda left: pvalues <= 2.0 * level / left))

    def pairwise(self, alpha: float | None = None) -> pd.DataFrame:
        """Return every pair, with intervals for one pair at a time.

        Returns
        -------
        DataFrame
            One row per pair, ``item1`` and ``item2``. Of worths their ``difference`` and the
            ``probability`` that item1 is preferred, of which ``lower`` and ``upper`` are the
            interval (with ties ``preferred_plus_half_ties``, to which half that of a tie is added;
            with ``ties="davidson"`` ``preferred_if_decided``).
            With random effects it is the probability at the mean of the differences.
            Of rankings the ``fraction`` that places item1 before item2. ``std_err``, and ``pvalue``
            for equal items.

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
        if isinstance(self.results[0], BTLResult):
            # limits of a difference become those of a probability, which rises with it
            shown = probability_name([result.release for result in self.results])
            for name, of in {shown: "value", "lower": "lower", "upper": "upper"}.items():
                stated[name] = self.results[0].link.probability(stated[of])
            table[shown] = stated[shown]
        return pd.DataFrame(table | {name: stated[name] for name in ("lower", "upper", "pvalue")})

    def test_heterogeneity(self) -> pd.Series[Any]:
        """Test that all releases are about the same numbers.

        Of several surveys: that worths, or pair fractions, are the same in all of them. Of one
        survey: that releases differ by their noise alone, which they do if it is one survey.

        Returns
        -------
        Series
            Of worths Cochran's Q as ``statistic``, its ``df``, ``pvalue``, and ``I2``, the share of
            Q beyond its degrees of freedom (Higgins and Thompson 2002,
            https://doi.org/10.1002/sim.1186). Of rankings the statistic is that of the pair, or of
            the item, in which surveys differ most surely. Its p-value is adjusted for their number
            (Bonferroni), as nothing is known of how pairs go together; I2 is that of the sum.

        Examples
        --------
        >>> test = result.test_heterogeneity()
        >>> test["df"], round(test["statistic"], 2), round(test["pvalue"], 2)
        (3, 1.07, 0.79)
        """
        of = self.by_item if self.by_pair is None else self.by_pair
        statistics, pvalues = of.heterogeneity()
        worst = int(np.argmin(pvalues))
        df = of.freedom
        total = float(statistics.sum())
        numbers = {
            "statistic": float(statistics[worst]),
            "df": df,
            "pvalue": min(1.0, float(pvalues[worst]) * len(pvalues)),
            "I2": max(0.0, 1.0 - df * len(pvalues) / total) if total > 0 else 0.0,
        }
        return pd.Series(numbers, name="heterogeneity", dtype=object)

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the summary as a data frame, best item first.

        Columns: the estimate (``worth`` or ``borda``), ``std_err`` and its parts, ``pvalue``, the
        interval, the rank and, of worths, its confidence set.

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
        warned = [
            (name, one._warned()) for name, one in zip(self._releases, self.results, strict=True)
        ]
        twice = [] if self._same else twice_notes(self.results, self.names)
        return (*tables.joined(warned), *twice)

    def _table(self, details: bool) -> tables.Table:
        first = self.results[0]
        frame = self.to_frame()
        name = f"{first.link.model} Results" if isinstance(first, BTLResult) else "Rank Aggregation"
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
        """Draw the pooled intervals, and below each of them those of every release.

        Examples
        --------
        >>> result.plot().axes[0].get_title()
        'Pooled worths (2 releases, epsilon = 1.5)'
        """
        parts = []
        order = self.ranks().sort_values(kind="stable").index
        for name, result in zip(["pooled", *self._releases], [self, *self.results], strict=True):
            if isinstance(result, AggregationResult):
                frame = result.borda(self.alpha).rename(columns={"score": "worth"})
            else:
                frame = result.conf_int(self.alpha).assign(worth=result.params)
            frame = frame.loc[order, ["worth", "lower", "upper"]]
            parts.append(frame.rename_axis("item").reset_index().assign(release=name))
        first = self.results[0]
        heading = "Borda scores"
        what = "Borda score"
        reference = 0.5 * (len(self.items) - 1)
        if isinstance(first, BTLResult):
            heading = "worths"
            what = plots.worth_label(first.link.name)
            reference = 0.0
        spent = "epsilon =" if self._same else "epsilon at most"
        return plots.group_worths(
            pd.concat(parts),
            ["release"],
            f"{what}, {plots.interval_words(self.alpha)}",
            f"Pooled {heading} ({len(self.results)} releases, {spent} {self.epsilon:g})",
            pooled=True,
            reference=reference,
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
        """Return the same result with labels in the place of codes, as other results do.

        Examples
        --------
        >>> result.with_labels({"crimRate": "Crime rate"}).items
        ('Crime rate', 'position', 'socBurd', 'culture')
        """
        return replace(self, results=tuple(result.with_labels(labels) for result in self.results))

    def _numbers(self) -> tuple[pd.Series[Any], pd.Series[Any], dict[str, Any]]:
        test = self.test_heterogeneity()
        facts = {
            "pooled": f"{len(self.results)} {'releases' if self._same else 'surveys'}",
            "Q": test["statistic"],
            "p-value of Q": test["pvalue"],
        }
        params = self.params if self._worths else self.params.rename("Borda score")
        return params, self.bse, facts

    def _public(self) -> dict[str, str]:
        """Return what is public of all releases together, in the words of one."""
        facts = [guarantee.release_facts(result.release) for result in self.results]
        joined = {name: ", ".join(dict.fromkeys(fact[name] for fact in facts)) for name in facts[0]}
        return joined | {
            "epsilon": f"{self.epsilon:g}",
            "delta": f"{self.delta:g}",
            "N": str(self.nobs),
        }


def twice_notes(results: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Return a warning of surveys whose public facts are equal, once for all that have the same.

    Given their names, if any. Equal facts are no proof of one survey, so that it is no error.
    """
    groups: dict[str, list[str]] = {}
    for name, result in zip(names or map(str, range(1, len(results) + 1)), results, strict=True):
        groups.setdefault(json.dumps(record_of(result.release.survey)), []).append(name)
    twice = [f"{', '.join(some)} and {last}" for *some, last in groups.values() if some]
    named = [listed if names else f"releases {listed}" for listed in twice]
    return [note for listed in named for note in warned("twice", releases=listed)]


def _header(result: PooledResult) -> tuple[tuple[str, str], ...]:
    """Return the header of a summary: what was pooled, the guarantee, and Q."""
    test = result.test_heterogeneity()
    same = result.survey == "same"
    count = len(result.results)
    units = sorted({member.release.survey.unit for member in result.results})
    unit = units[0] if len(units) == 1 else "unit"
    pooled = f"{count} releases, same survey" if same else f"{count} surveys"
    if result.tau is not None:
        pooled = f"{pooled}, random effects"
    epsilons = " + ".join(f"{member.epsilon:g}" for member in result.results)
    sources = dict.fromkeys(guarantee.noise_source(member.release) for member in result.results)
    return (
        ("Data:", pooled),
        ("Items:", str(len(result.items))),
        (f"No. {unit.capitalize()}s:", f"{result.nobs:,}"),
        ("Privacy unit:", f"{' or '.join(units)} (replace one)"),
        ("Epsilon:", f"{result.epsilon:g} ({epsilons if same else 'the largest'})"),
        ("Delta:", f"{result.delta:g}"),
        ("Noise:", "; ".join(sources)),
        ("Q:", f"{test['statistic']:.2f}, {test['df']} df, {tables.format_pvalue(test['pvalue'])}"),
        ("I-squared:", f"{test['I2']:.0%}"),
        *([] if result.tau is None else [("Tau:", f"{result.tau:.3g} between surveys")]),
    )


def _notes(result: PooledResult, details: bool) -> tables.Notes:
    """Return what the numbers cover, what Q tests, and whom epsilon protects."""
    releases = [member.release for member in result.results]
    different = result.survey == "different"
    rests = {key for release in releases for key in guarantee.assumptions(release)}
    counted: list[str] = []
    model = ""
    if isinstance(result.results[0], BTLResult):
        rests.add("model")
        model = result.results[0].link.model
        counted = [note for release in releases for note in guarantee.count_notes(release)]
    if different:
        rests.add("surveys" if result.tau is None else "drawn")
    return tables.Notes(
        estimates=[
            *_interval_notes(result),
            *guarantee.tie_notes(result.ranks()),
            *_release_notes(result, details),
        ],
        tests=_test_notes(result),
        assumptions=[*assumed(rests, model), *dict.fromkeys(counted)],
        privacy=[
            *said("several surveys", different),
            *said("units differ", len({release.survey.unit for release in releases}) > 1),
        ],
    )


def _interval_notes(result: PooledResult) -> list[str]:
    """Return what intervals cover, and how outcomes are coded."""
    worths = isinstance(result.results[0], BTLResult)
    what = "worths" if worths else "scores"
    notes = said(
        f"pooled {what}" if result.tau is None else f"mean {what}",
        level=percent(1.0 - result.alpha),
        errors=ERRORS[result.survey],
        freedom=len(result.results) - 1,
    )
    if not worths:
        return notes
    releases = [member.release for member in result.results]
    coded = (note for release in releases for note in guarantee.outcome_notes(release))
    tied = releases[0].design.davidson
    return [*notes, *dict.fromkeys(coded), *said("tie parameters", tied)]


def _test_notes(result: PooledResult) -> list[str]:
    """Return what p-values and Q test."""
    worths = isinstance(result.results[0], BTLResult)
    single = "Q of items" if result.by_pair is None else "Q of pairs"
    return [
        *said("pooled worth tests", worths),
        *said("score means", not worths, mean=0.5 * (len(result.items) - 1)),
        *said("Q of releases" if result.survey == "same" else "Q of surveys"),
        *said(single, not worths),
    ]


def _release_notes(result: PooledResult, details: bool) -> list[str]:
    """Return what was pooled, one sentence each."""
    notes = []
    for (name, weight), member in zip(result.weights.items(), result.results, strict=True):
        notes += said(
            "pooled",
            name=name if result.names else str(name).capitalize(),
            epsilon=member.epsilon,
            nobs=member.nobs,
            unit=member.release.survey.unit,
            weight=weight,
        )
        header = member.summary(details=True).header if details else ()
        notes += [f"{key} {value}." for key, value in header]
    return notes
