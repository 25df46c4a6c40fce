"""The result of pooling several releases: of one survey, or of several."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank import __version__
from privrank.bradley_terry.contrasts import rank_sets
from privrank.bradley_terry.pooledtests import intervals, pvalues
from privrank.bradley_terry.pooling import Pooled, pool
from privrank.bradley_terry.worths import standard_errors
from privrank.bradley_terry.worthsource import contrast_basis, worth_source
from privrank.consensus.votesource import fraction_source, score_source
from privrank.release.archived import archive
from privrank.results import broom
from privrank.results.aggregation import AggregationResult
from privrank.results.base import Result
from privrank.results.btl import BTLResult
from privrank.results.poolable import Survey, check_reports, check_scores
from privrank.results.tables import Column, Table
from privrank.util.checks import check_alpha

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PooledResult", "pooled"]

FloatArray = NDArray[np.float64]


def pooled(
    results: Sequence[BTLResult | AggregationResult], survey: Survey, alpha: float
) -> PooledResult:
    """Return results as pooled: the same numbers of several releases, checked to be the same."""
    same, m = survey == "same", len(results[0].items)
    fits = [each for each in results if isinstance(each, BTLResult)]
    votes = [each for each in results if isinstance(each, AggregationResult)]
    if fits:
        inferences = [fit._inference() for fit in fits]
        check_scores(inferences, same)
        spread = min(each.equations.function.spread for each in inferences)
        sources = [worth_source(each) for each in inferences]
        by_item = pool(sources, np.zeros((1, m - 1)), same=same, spread=spread)
        return PooledResult(results=tuple(fits), survey=survey, alpha=alpha, by_item=by_item)
    stated = [(check_reports(each._scores()), each.target) for each in votes]
    scores = [score_source(*each) for each in stated]
    by_pair = None
    if all(each.fractions is not None for each, _ in stated):
        fractions = [fraction_source(*each) for each in stated]
        by_pair = pool(fractions, np.full((m * (m - 1) // 2, 1), 0.5), same=same)
    return PooledResult(
        results=tuple(votes),
        survey=survey,
        alpha=alpha,
        by_item=pool(scores, np.full((m, 1), 0.5 * (m - 1)), same=same),
        by_pair=by_pair,
    )


@Result.register
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class PooledResult:
    """Several releases pooled: worths, or Borda scores and pair fractions, errors and tables.

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

    Notes
    -----
    **Privacy.** Pooling reads releases alone, so it spends nothing. What they have spent together
    is, of the same respondents, the sum of their epsilons, and of their deltas (basic composition).
    Of surveys without a common respondent it is the largest of each: replace one respondent of
    survey k, and the releases of all others, independent of it, have the same distribution; that of
    survey k changes by its own epsilon and delta, and so does the distribution of all together.
    Whoever answered in several surveys is protected by the sum over these.
    """

    results: tuple[BTLResult | AggregationResult, ...]
    survey: Survey
    alpha: float
    by_item: Pooled = field(repr=False)
    by_pair: Pooled | None = field(default=None, repr=False)

    model: ClassVar[str] = "PooledResult"
    noisy_errors: ClassVar[bool] = True
    tidy = broom.tidy
    glance = broom.glance

    def __repr__(self) -> str:
        """Show the shape and the guarantee."""
        what = f"{len(self.results)} releases, {self.survey} survey{'s' * (not self._same)}"
        return f"<PooledResult: {what}, {len(self.items)} items, epsilon = {self.epsilon:g}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what was pooled; it is pooled again when it is read."""
        return pooled, (self.results, self.survey, self.alpha)

    @property
    def _same(self) -> bool:
        return self.survey == "same"

    @property
    def _worths(self) -> bool:
        return isinstance(self.results[0], BTLResult)

    @property
    def items(self) -> tuple[str, ...]:
        """The items, in the declared order."""
        return self.results[0].items

    @property
    def family(self) -> str:
        """Title of a table of several such results."""
        return self.results[0].family

    @property
    def nobs(self) -> int:
        """Number of units: of the one survey, or of all surveys."""
        return self.results[0].nobs if self._same else sum(each.nobs for each in self.results)

    @property
    def epsilon(self) -> float:
        """Epsilon of all releases together: of one survey the sum, of several the largest."""
        return self._together([each.epsilon for each in self.results])

    @property
    def delta(self) -> float:
        """Delta of all releases together, as of :attr:`epsilon`."""
        return self._together([each.delta for each in self.results])

    def _together(self, each: list[float]) -> float:
        return math.fsum(each) if self._same else max(each)

    def _named(self, values: Any, name: str) -> pd.Series[Any]:
        return pd.Series(np.array(values), index=pd.Index(self.items, name="item"), name=name)

    def _level(self, alpha: float | None) -> float:
        return self.alpha if alpha is None else check_alpha(alpha)

    @property
    def _shown(self) -> tuple[FloatArray, NDArray[np.int64]]:
        """What is shown of each item as a combination of the pooled numbers, and of which block."""
        m = len(self.items)
        if self._worths:
            return contrast_basis(m).T, np.zeros(m, dtype=np.int64)
        return np.ones((m, 1)), np.arange(m)

    @property
    def _pair_rows(self) -> FloatArray:
        """All differences of two worths as combinations of their contrasts."""
        first, second = np.triu_indices(len(self.items), 1)
        rows = contrast_basis(len(self.items)).T
        return np.asarray(rows[first] - rows[second])

    def _errors(self, covariances: FloatArray) -> FloatArray:
        rows, blocks = self._shown
        variance = np.einsum("rp,rpq,rq->r", rows, covariances[blocks], rows)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    @property
    def params(self) -> pd.Series[float]:
        """Pooled centred worths, or Borda scores."""
        rows, blocks = self._shown
        values = np.einsum("rp,rp->r", rows, self.by_item.point[blocks])
        return self._named(values, "worth" if self._worths else "Borda")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, sampling and privacy noise together."""
        return self._named(self._errors(self.by_item.covariance), "std err")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Sampling part of the standard errors; of reports of rankings all of it."""
        return self._named(self._errors(self.by_item.parts[0]), "sampling")

    @property
    def bse_privacy(self) -> pd.Series[float]:
        """Privacy part of the standard errors."""
        return self._named(self._errors(self.by_item.parts[1]), "privacy")

    @property
    def bse_single(self) -> pd.DataFrame:
        """Standard errors that each release would have by itself, one column each.

        With the same estimates of sampling error and information, so that the pooled one is at most
        the least of them (:mod:`privrank.bradley_terry.pooling`).
        """
        each = [self._errors(covariance) for covariance in self.by_item.single]
        return pd.DataFrame(dict(zip(self._releases, each, strict=True)), index=self.params.index)

    @property
    def _releases(self) -> list[str]:
        return [f"release {k + 1}" for k in range(len(self.results))]

    @property
    def weights(self) -> pd.Series[float]:
        """Mean weights of the releases, which add up to 1."""
        index = pd.Index(self._releases, name="release")
        return pd.Series(self.by_item.shares, index=index, name="weight")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Distances from an average item over their standard errors."""
        return ((self.params - self._middle) / self.bse).rename("z")

    @property
    def _middle(self) -> float:
        return 0.0 if self._worths else 0.5 * (len(self.items) - 1)

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for an average item: a worth of 0, or the middle Borda score."""
        rows, blocks = self._shown
        if self._worths:
            name = "score p" if self.by_item.scored else "P>|z|"
            return self._named(pvalues(self.by_item, rows), name)
        null, away = np.full_like(self.by_item.point, self._middle), self.params - self._middle
        found = self.by_item.pvalues(self.by_item.along(rows, blocks), np.asarray(away), null)
        return self._named(found, "P>|z|")

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance matrix of the worths."""
        if not self._worths:
            raise ValueError("the covariances between Borda scores are not known: use bse.")
        rows, names = self._shown[0], list(self.items)
        return pd.DataFrame(rows @ self.by_item.covariance[0] @ rows.T, names, names)

    def conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return confidence intervals, columns ``lower`` and ``upper``.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the result's own, as in all methods.
        """
        if self._worths:
            limits = intervals(self.by_item, self._shown[0], self._level(alpha))
        else:
            limits = self.by_item.inverted(self._level(alpha), len(self.items) - 1.0)
        return pd.DataFrame(dict(zip(("lower", "upper"), limits, strict=True)), self.params.index)

    def ranks(self) -> pd.Series[Any]:
        """Return ranks, 1 = best; equal estimates are ordered by the first release's coin."""
        tie = np.argsort(self.results[0].release.tie_break)
        place = np.lexsort((tie, -np.asarray(self.params)))
        return self._named(np.argsort(place) + 1, "rank")

    def rank_conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return simultaneous confidence sets of the ranks by worth, ``lower`` and ``upper``.

        1 plus the number of items surely better, to m minus the number surely worse, by tests of
        all differences at Bonferroni's level.
        """
        if not self._worths:
            raise ValueError("ranks of pooled Borda scores have no intervals: use pairwise().")
        first, second = np.triu_indices(len(self.items), 1)
        apart = self.pairwise()["pvalue"].to_numpy() <= self._level(alpha) / len(first)
        beyond = np.full((len(self.items),) * 2, np.inf)
        beyond[first, second] = beyond[second, first] = np.where(apart, 0.0, np.inf)
        low, high = rank_sets(np.asarray(self.params), beyond)
        return pd.DataFrame({"lower": low, "upper": high}, index=self.params.index)

    def _about_pairs(self) -> Pooled:
        if self.by_pair is None:
            raise ValueError(
                "results must all have pair fractions for statements about pairs: fit with "
                "releases='pairs'."
            )
        return self.by_pair

    def pairwise(self, alpha: float | None = None) -> pd.DataFrame:
        """Return every pair, with intervals for one pair at a time.

        Returns
        -------
        DataFrame
            One row per pair, ``item1`` and ``item2``. Of worths their ``difference`` and the
            ``probability`` that item1 is preferred, of which ``lower`` and ``upper`` are the
            interval; of rankings the ``fraction`` that places item1 before item2. ``std_err``, and
            ``pvalue`` for equal items.
        """
        level, (first, second) = self._level(alpha), np.triu_indices(len(self.items), 1)
        names = np.array(self.items, dtype=object)
        pair = {"item1": names[first], "item2": names[second]}
        if isinstance(self.results[0], BTLResult):
            link, rows = self.results[0].link, self._pair_rows
            away, (lower, upper) = (
                rows @ self.by_item.point[0],
                intervals(self.by_item, rows, level),
            )
            return pd.DataFrame(
                pair
                | {
                    "difference": away,
                    "std_err": standard_errors(rows, self.by_item.covariance[0]),
                    "probability": link.probability(away),
                    "lower": link.probability(lower),
                    "upper": link.probability(upper),
                    "pvalue": pvalues(self.by_item, rows),
                }
            )
        found = self._about_pairs()
        lower, upper = found.inverted(level, 1.0)
        even = np.full_like(found.point, 0.5)
        shown = found.along(np.ones((len(first), 1)), np.arange(len(first)))
        return pd.DataFrame(
            pair
            | {
                "fraction": found.point[:, 0],
                "std_err": np.sqrt(found.covariance[:, 0, 0]),
                "lower": lower,
                "upper": upper,
                "pvalue": found.pvalues(shown, found.point[:, 0] - 0.5, even),
            }
        )

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
            the item, in which surveys differ most surely, the p-value is adjusted for their number
            (Bonferroni), as nothing is known of how pairs go together, and I2 is that of the sum.
        """
        found = self.by_item if self.by_pair is None else self.by_pair
        statistics, pvalues = found.heterogeneity()
        worst = int(np.argmin(pvalues))
        value, df, total = float(statistics[worst]), found.freedom, float(statistics.sum())
        numbers = {
            "statistic": value,
            "df": df,
            "pvalue": min(1.0, float(pvalues[worst]) * len(pvalues)),
            "I2": max(0.0, 1.0 - df * len(pvalues) / total) if total > 0 else 0.0,
        }
        return pd.Series(numbers, name="heterogeneity", dtype=object)

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the summary as a data frame, best item first.

        Columns: the estimate (``worth`` or ``borda``), ``std_err`` and its parts, ``best_single``,
        the least standard error of one release by itself, ``z`` and ``pvalue``, the interval, the
        rank and, of worths, its confidence set.
        """
        named = {
            "worth" if self._worths else "borda": self.params,
            "std_err": self.bse,
            "sampling": self.bse_sampling,
            "privacy": self.bse_privacy,
            "best_single": self.bse_single.min(axis=1),
            "z": self.tvalues,
            "pvalue": self.pvalues,
        }
        frame = pd.DataFrame(named).join(self.conf_int()).assign(rank=self.ranks())
        if self._worths:
            frame = frame.join(self.rank_conf_int().add_prefix("rank_"))
        return frame.sort_values("rank")

    def summary(self, details: bool = False) -> Table:
        """Return the pooled numbers as a table; `details` add the header of every release."""
        from privrank.results.pooledtable import pooled_table

        return pooled_table(self, details)

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the pooled intervals, and below each of them those of every release."""
        from privrank.results import plots

        parts, order = [], self.ranks().sort_values().index
        for name, each in zip(["pooled", *self._releases], [self, *self.results], strict=True):
            if isinstance(each, AggregationResult):
                frame = each.borda(self.alpha).rename(columns={"score": "worth"})
            else:
                frame = each.conf_int(self.alpha).assign(worth=each.params)
            frame = frame.loc[order, ["worth", "lower", "upper"]]
            parts.append(frame.rename_axis("item").reset_index().assign(release=name))
        spent = "in all" if self.survey == "same" else "at most"
        seeded = any(each.release.source == "seeded" for each in self.results)
        caption = f"{len(self.results)} releases pooled, epsilon = {self.epsilon:g} {spent}"
        caption += ", seeded noise" if seeded else ""
        link = self.results[0].link.name if isinstance(self.results[0], BTLResult) else "Borda"
        figure = plots.group_worths(pd.concat(parts), ["release"], self.alpha, caption, link, ax=ax)
        if not self._worths:
            level = f"{100 * (1 - self.alpha):g} % intervals, privacy noise included"
            (ax or figure.axes[0]).set_xlabel(f"Borda score; {level}")
        return figure

    def to_json(self) -> str:
        """Return the result as JSON text, from which :func:`privrank.from_json` rebuilds it."""
        return archive(
            {
                "privrank": __version__,
                "result": self.model,
                "settings": {"survey": self.survey, "alpha": self.alpha},
                "estimates": {"params": dict(self.params)},
                "results": [json.loads(each.to_json()) for each in self.results],
            }
        )

    def with_labels(self, labels: Mapping[str, str]) -> Self:
        """Return the same result with labels in the place of codes, as other results do."""
        return replace(self, results=tuple(each.with_labels(labels) for each in self.results))

    def _codes(self) -> tuple[str, ...]:
        return self.results[0]._codes()

    def _glance(self) -> dict[str, Any]:
        return {str(name).replace("pv", "p_v"): v for name, v in self.test_heterogeneity().items()}

    def _column(self) -> Column:
        from privrank.results.pooledtable import pooled_column

        return pooled_column(self)

    def _public(self) -> tuple[tuple[str, str], ...]:
        from privrank.results.pooledtable import pooled_facts

        return pooled_facts(self)

    def _repr_html_(self) -> str:
        return self.summary().as_html()
