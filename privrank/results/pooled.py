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
from privrank.bradley_terry.randomeffects import RandomEffects, random_effects
from privrank.bradley_terry.sources import contrast_basis, worth_source
from privrank.consensus.votesource import fraction_source, score_source
from privrank.release.archived import archive
from privrank.results import broom
from privrank.results.aggregation import AggregationResult
from privrank.results.base import Result
from privrank.results.btl import BTLResult
from privrank.results.pairs import chance_name
from privrank.results.poolable import Effects, Survey, check_reports, check_scores
from privrank.results.tables import Column, Table
from privrank.util.checks import check_alpha

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PooledResult", "pooled"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def pooled(
    results: Sequence[BTLResult | AggregationResult],
    survey: Survey,
    alpha: float,
    effects: Effects = "common",
    names: tuple[str, ...] = (),
) -> PooledResult:
    """Return results as pooled: the same numbers of several releases, checked to be the same."""
    same, m = survey == "same", len(results[0].items)
    fits = [each for each in results if isinstance(each, BTLResult)]
    votes = [each for each in results if isinstance(each, AggregationResult)]
    by_pair = None
    if fits:
        inferences = [fit._inference() for fit in fits]
        check_scores(inferences, same)
        spread = min(each.equations.function.spread for each in inferences)
        sources = [worth_source(each) for each in inferences]
        by_item = pool(sources, np.zeros((1, m - 1)), same=same, spread=spread)
    else:
        stated = [(check_reports(each._scores()), each.target) for each in votes]
        scores = [score_source(*each) for each in stated]
        by_item = pool(scores, np.full((m, 1), 0.5 * (m - 1)), same=same)
        if all(each.fractions is not None for each, _ in stated):
            fractions = [fraction_source(*each) for each in stated]
            by_pair = pool(fractions, np.full((m * (m - 1) // 2, 1), 0.5), same=same)
    random = effects == "random"
    return PooledResult(
        results=tuple(fits or votes),
        survey=survey,
        alpha=alpha,
        names=names,
        by_item=random_effects(by_item) if random else by_item,
        by_pair=random_effects(by_pair) if random and by_pair is not None else by_pair,
    )


def _deviations(covariances: FloatArray, rows: FloatArray, blocks: IntArray) -> FloatArray:
    """Return standard deviations of combinations, of one block each."""
    variance = np.einsum("rp,rpq,rq->r", rows, covariances[blocks], rows)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


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
    by_item : Pooled or RandomEffects
        Contrasts of the worths, or Borda scores.
    by_pair : Pooled, RandomEffects or None
        Pair fractions, where all releases have them.
    names : tuple of str
        What the results are called; empty for release 1, release 2 and so on.

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
    by_item: Pooled | RandomEffects = field(repr=False)
    by_pair: Pooled | RandomEffects | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()

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
        return pooled, (self.results, self.survey, self.alpha, self.effects, self.names)

    @property
    def effects(self) -> Effects:
        """Whether all surveys are taken to have common values, or random ones about a mean."""
        return "random" if isinstance(self.by_item, RandomEffects) else "common"

    @property
    def tau(self) -> float | None:
        """Standard deviation between surveys of each worth or Borda score; None if common."""
        return self.by_item.tau if isinstance(self.by_item, RandomEffects) else None

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
        return _deviations(covariances, *self._shown)

    def _limits(
        self, found: Pooled | RandomEffects, rows: FloatArray, blocks: IntArray, alpha: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return limits of combinations; those of fractions and Borda scores have a range."""
        largest = 1.0 if found is self.by_pair else len(self.items) - 1.0
        if isinstance(found, RandomEffects):
            low, high = found.limits(rows, blocks, alpha)
            ends = (-np.inf, np.inf) if self._worths else (0.0, largest)
            return np.clip(low, *ends), np.clip(high, *ends)
        return intervals(found, rows, alpha) if self._worths else found.inverted(alpha, largest)

    def _tests(
        self, found: Pooled | RandomEffects, rows: FloatArray, blocks: IntArray, null: float
    ) -> FloatArray:
        """Return p-values of the hypotheses that combinations are `null`."""
        if isinstance(found, RandomEffects):
            return found.pvalues(rows, blocks, null)
        if self._worths:
            return pvalues(found, rows)
        away = np.asarray(found.point[:, 0] - null)
        return found.pvalues(found.along(rows, blocks), away, np.full_like(found.point, null))

    @property
    def params(self) -> pd.Series[float]:
        """Pooled centred worths, or Borda scores."""
        rows, blocks = self._shown
        values = np.einsum("rp,rp->r", rows, self.by_item.point[blocks])
        return self._named(values, "worth" if self._worths else "Borda")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, sampling and privacy noise together."""
        if isinstance(self.by_item, RandomEffects):
            return self._named(self.by_item.errors(*self._shown), "std err")
        return self._named(self._errors(self.by_item.covariance), "std err")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Sampling part of the standard errors; of reports of rankings all of it.

        With random effects all that is not privacy noise: which surveys were drawn, too.
        """
        if self.effects == "random":
            rest = np.sqrt(np.maximum(self.bse**2 - self.bse_privacy**2, 0.0))
            return self._named(rest, "sampling")
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
        each = [self._errors(covariance) for covariance in self._common(self.by_item).single]
        return pd.DataFrame(dict(zip(self._releases, each, strict=True)), index=self.params.index)

    @staticmethod
    def _common(found: Pooled | RandomEffects) -> Pooled:
        return found.common if isinstance(found, RandomEffects) else found

    @property
    def _releases(self) -> list[str]:
        return list(self.names) or [f"release {k + 1}" for k in range(len(self.results))]

    @property
    def weights(self) -> pd.Series[float]:
        """Mean weights of the releases, which add up to 1."""
        index = pd.Index(self._releases, name="release")
        return pd.Series(self.by_item.shares, index=index, name="weight")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Distances from an average item over their errors; p-values are not of these."""
        return ((self.params - self._middle) / self.bse).rename("z")

    @property
    def _middle(self) -> float:
        return 0.0 if self._worths else 0.5 * (len(self.items) - 1)

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for an average item: a worth of 0, or the middle Borda score."""
        return self._named(self._tests(self.by_item, *self._shown, self._middle), "p-value")

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance matrix of the worths."""
        if not self._worths:
            raise ValueError("the covariances between Borda scores are not known: use bse.")
        if isinstance(self.by_item, RandomEffects):
            raise ValueError("random effects give each worth an error of its own: use bse.")
        rows, names = self._shown[0], list(self.items)
        return pd.DataFrame(rows @ self.by_item.covariance[0] @ rows.T, names, names)

    def conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return confidence intervals, columns ``lower`` and ``upper``.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default the result's own, as in all methods.
        """
        limits = self._limits(self.by_item, *self._shown, self._level(alpha))
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

    def _about_pairs(self) -> Pooled | RandomEffects:
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
            interval (with ties ``preferred_plus_half_ties``, to which half that of a tie is added);
            of rankings the ``fraction`` that places item1 before item2. ``std_err``, and
            ``pvalue`` for equal items.
        """
        level, (first, second) = self._level(alpha), np.triu_indices(len(self.items), 1)
        names = np.array(self.items, dtype=object)
        pair = {"item1": names[first], "item2": names[second]}
        found, blocks = self.by_item, np.zeros(len(first), dtype=np.int64)
        rows = self._pair_rows if self._worths else np.ones((len(first), 1))
        if not self._worths:
            found, blocks = self._about_pairs(), np.arange(len(first))
        value = np.einsum("rp,rp->r", rows, found.point[blocks])
        lower, upper = self._limits(found, rows, blocks, level)
        if isinstance(found, RandomEffects):
            errors = found.errors(rows, blocks)
        else:
            errors = _deviations(found.covariance, rows, blocks)
        about = {"fraction": value, "std_err": errors, "lower": lower, "upper": upper}
        if isinstance(self.results[0], BTLResult):
            chance = self.results[0].link.probability
            name = chance_name([each.release for each in self.results])
            about = {"difference": value, "std_err": errors, name: chance(value)}
            about |= {"lower": chance(lower), "upper": chance(upper)}
        even = 0.0 if self._worths else 0.5
        return pd.DataFrame(pair | about | {"pvalue": self._tests(found, rows, blocks, even)})

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
        found = self._common(self.by_item if self.by_pair is None else self.by_pair)
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
        the least standard error of one release by itself, ``pvalue``, the interval, the rank and,
        of worths, its confidence set.
        """
        named = {
            "worth" if self._worths else "borda": self.params,
            "std_err": self.bse,
            "sampling": self.bse_sampling,
            "privacy": self.bse_privacy,
            "best_single": self.bse_single.min(axis=1),
            "pvalue": self.pvalues,
        }
        if self.effects == "random":  # one survey says nothing of how much they differ
            del named["best_single"]
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
        what = "Borda score"
        if isinstance(self.results[0], BTLResult):
            what = f"worth ({self.results[0].link.name} scale, centred)"
        return plots.group_worths(pd.concat(parts), ["release"], self.alpha, caption, what, ax=ax)

    def to_json(self) -> str:
        """Return the result as JSON text, from which :func:`privrank.from_json` rebuilds it."""
        settings: dict[str, object] = {"survey": self.survey, "effects": self.effects}
        settings |= {"alpha": self.alpha, "names": list(self.names) or None}
        return archive(
            {
                "privrank": __version__,
                "result": self.model,
                "settings": settings,
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
