"""The result of a private Bradley-Terry fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, log
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.bradley_terry import scoretests
from privrank.bradley_terry.contrasts import Worths
from privrank.bradley_terry.linear import groups_at, worth_map
from privrank.bradley_terry.losses import answer_probabilities
from privrank.distributions.links import LOGIT
from privrank.distributions.simulate import PlackettLuce, generator
from privrank.hypotheses.ranksets import shared_ranks
from privrank.release.release import Release
from privrank.results import plots
from privrank.results.base import once
from privrank.results.coefficients import Coefficients
from privrank.results.guarantee import caption, effect_notes
from privrank.results.hypotheses import HypothesisTest
from privrank.results.pairs import (
    answer_columns,
    pair_table,
    predictors_of,
    probability_name,
    probability_table,
    quasi_table,
    shares_of,
    worth_columns,
)
from privrank.results.tables import Table
from privrank.results.worthtable import TIE_ROW, fit_table, limit_notes
from privrank.util.arrays import FloatArray, immutable
from privrank.util.checks import check_choice, check_count, check_number
from privrank.util.solvers import applied

# Points of the Elo scale in one unit of the logit: 400 of them are odds of 10.
_ELO = 400.0 / log(10.0)

Form = Literal["comparisons", "rankings"]
At = Mapping[str, Any] | None


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class BTLResult(Coefficients):
    """A private Bradley-Terry fit: worths or coefficients, errors, ranks, tables and plots.

    With covariates, methods about items (:meth:`ranks`, :meth:`pairwise`, ...) take ``at=``, levels
    and values of the covariates. Without it they are about the reference profile: the first
    level of each factor, numeric covariates in the middle of their bounds.

    Parameters
    ----------
    release : Release
        What the mechanism let out.
    alpha : float
        Significance level of intervals and rank sets.
    requested : float or "auto"
        Ridge that was asked for.
    solver : {"newton", "lbfgs", "cvxpy"}
        Solver of the fit.
    estimate : Estimate
        Fitted coefficients: the centred worths, or with covariates those on contrasts of items.
    warnings : tuple of str
        What to read with care.

    See Also
    --------
    privrank.PrivateBTL : The model.
    privrank.from_json : Reads a result from an archive.
    privrank.pool : Pools several fits.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> result = model.fit(epsilon=1.0, rng=np.random.default_rng(1))
    >>> result.params.round(3)
    item
    crimRate    0.607
    position   -0.287
    socBurd     0.263
    culture    -0.582
    Name: worth, dtype: float64
    """

    family: ClassVar[str] = "Bradley-Terry worths"

    def _shape(self) -> tuple[str, ...]:
        what = "items" if self._plain else "coefficients"
        return f"{len(self._names)} {what}", f"{self.nobs} {self.release.design.unit}s"

    @property
    def components(self) -> tuple[tuple[str, ...], ...]:
        """The items, in the components that released comparisons connect; mostly one.

        Worths and ranks hold within a component; those of an item alone in it are missing.

        Examples
        --------
        One component: every item is compared, directly or by others, with every other one.

        >>> result.components
        (('crimRate', 'position', 'socBurd', 'culture'),)
        """
        return tuple(tuple(self.items[k] for k in part) for part in self._equations().components)

    def _map(self, at: At, *, every: bool = False) -> FloatArray:
        design = self.release.design
        return worth_map(design, groups_at(design.covariates, at, every=every))

    def _at(self, at: At) -> Worths:
        return Worths(self._inference(), self._map(at))

    def _values(self, at: At) -> FloatArray:
        """Return the worths alone, which need no covariance."""
        return applied(self._equations().projected(self._map(at)), self.estimate.coefficients)

    def worths(self, at: At = None) -> pd.DataFrame:
        """Return the worths of each group.

        One row per group and item: the levels, ``item``, ``worth``, ``std_err``, ``lower`` and
        ``upper``.

        Parameters
        ----------
        at : mapping of str to value, optional
            Levels and values of the covariates, for one group. Without it every combination of
            levels, numeric covariates in the middle of their bounds.

        Raises
        ------
        TypeError, ValueError
            If `at` names no covariate, or a value is not declared or out of bounds.

        Examples
        --------
        >>> result.worths()[["item", "worth", "std_err"]].round(3)
               item  worth  std_err
        0  crimRate  0.607    0.184
        1  position -0.287    0.177
        2   socBurd  0.263    0.176
        3   culture -0.582    0.191
        """
        groups = groups_at(self.release.design.covariates, at, every=True)
        rows = [group | {"item": item} for group in groups for item in self.items]
        numbers = worth_columns(self._inference(), self._map(at, every=True), self.alpha)
        return pd.DataFrame(rows).assign(**numbers)

    def worth(self, at: At = None) -> pd.Series[float]:
        """Return worths on the multiplicative scale of the logit, adding up to 1 by component.

        Examples
        --------
        >>> result.worth().round(3).to_dict()
        {'crimRate': 0.413, 'position': 0.169, 'socBurd': 0.293, 'culture': 0.126}
        """
        if self.link != LOGIT:
            raise ValueError(
                f"worth() is the multiplicative scale of the logit, and this fit has "
                f"link={self.link.name!r}: use params, or probabilities() for chances."
            )
        worths = self._values(at)
        return self._series(shares_of(worths, self._several(worths)), "worth")

    def ranks(self, at: At = None) -> pd.Series[Any]:
        """Return ranks, 1 = most preferred; equal worths share one, as in 1, 1, 3.

        Where comparisons do not connect all items, ranks are those in one of :attr:`components`.

        Examples
        --------
        >>> result.ranks().to_dict()
        {'crimRate': 1, 'position': 3, 'socBurd': 2, 'culture': 4}
        """
        worths = self._values(at)
        ranks = np.full(len(worths), np.nan)
        for part in self._several(worths):
            ranks[part] = shared_ranks(worths[part])
        return self._series(ranks if np.isnan(ranks).any() else ranks.astype(np.int64), "rank")

    def _several(self, worths: FloatArray) -> list[NDArray[np.int64]]:
        """Return the parts of more than one item, unless one is all there is."""
        return [part for part in self._equations().components if len(part) > 1 or len(worths) == 1]

    def rank_conf_int(self, alpha: float | None = None, *, at: At = None) -> pd.DataFrame:
        """Return simultaneous confidence sets of the ranks, columns ``lower`` and ``upper``.

        1 plus the number of items surely better, to m minus the number surely worse, by step-down
        tests of all differences of two worths (:func:`privrank.hypotheses.ranksets.rank_sets`).

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
        frame = self._limits(*self._at(at).rank_sets(self._level(alpha)))
        return frame if (known := self.ranks(at).notna()).all() else frame.where(known)

    def pairwise(
        self, alpha: float | None = None, *, simultaneous: bool = False, at: At = None
    ) -> pd.DataFrame:
        """Return every pair's difference, probability of being preferred, interval and p-value.

        Parameters
        ----------
        simultaneous : bool, default False
            Make intervals cover, and p-values hold, for all pairs at once (Bonferroni), whatever
            the dependence between pairs.
        at : mapping of str to value, optional
            Values of the covariates. Neither item counts as named first.

        Returns
        -------
        DataFrame
            One row per pair with columns ``item1, item2, difference, std_err, probability, lower,
            upper, pvalue``; ``probability`` is that of item1 being preferred, ``lower`` and
            ``upper`` its interval, ``pvalue`` tests equal worths. With ``ties=True`` the column is
            ``preferred_plus_half_ties`` instead: that probability plus half that of a tie, which is
            larger; what share of a pair's answers are ties the model does not say. With
            ``ties="davidson"`` it is ``preferred_if_decided``, the probability among answers that
            are no ties, beside those of all answers: ``win``, ``tie`` and ``loss`` of item1.

        Examples
        --------
        >>> table = result.pairwise().set_index(["item1", "item2"])
        >>> table.loc[("crimRate", "culture"), ["difference", "pvalue"]].round(4).to_dict()
        {'difference': 1.1894, 'pvalue': 0.0007}
        """
        return pair_table(self._at(at), self._level(alpha), simultaneous=simultaneous)

    def predict(self, frame: pd.DataFrame, alpha: float | None = None) -> pd.DataFrame:
        """Predict who is preferred.

        Parameters
        ----------
        frame : DataFrame
            Columns ``item1``, ``item2`` and the covariates of the model; with an order effect item1
            is the one named first.

        Returns
        -------
        DataFrame
            ``probability`` that item1 is preferred; with ties ``preferred_plus_half_ties``, or
            ``win``, ``tie``, ``loss`` and ``preferred_if_decided``, as in :meth:`pairwise`;
            ``lower`` and ``upper``; indexed as `frame`.

        Raises
        ------
        TypeError, ValueError
            If a column is missing, or an entry is no item or no declared level.

        Examples
        --------
        >>> import pandas as pd
        >>> pairs = pd.DataFrame({"item1": ["crimRate"], "item2": ["socBurd"]})
        >>> result.predict(pairs).round(3)
           preferred_plus_half_ties  lower  upper
        0                     0.585  0.442   0.72
        """
        shown, inference = predictors_of(frame, self.release.design), self._inference()
        t = shown @ self.estimate.coefficients
        t = np.where(inference.equations.identifies(shown), t, np.nan)
        lower, upper = scoretests.intervals(inference, shown, self._level(alpha))
        sides = {probability_name([self.release]): t, "lower": lower, "upper": upper}
        probabilities = {name: self.link.probability(side) for name, side in sides.items()}
        return pd.DataFrame(answer_columns(t, inference) | probabilities, index=frame.index)

    def probabilities(self, at: At = None) -> pd.DataFrame:
        """Return the matrix of win probabilities, row item over column item.

        With ties each is the probability of being preferred plus half that of a tie; where ties
        have a parameter, that among answers that are no ties.

        Examples
        --------
        >>> result.probabilities().loc["crimRate"].round(3).to_dict()
        {'crimRate': 0.5, 'position': 0.71, 'socBurd': 0.585, 'culture': 0.767}
        """
        return probability_table(self._values(at), self.release, self._equations())

    def quasi_se(self, at: At = None) -> pd.DataFrame:
        """Return quasi standard errors, from which readers compute the error of any difference.

        That of two worths is close to sqrt(q_1^2 + q_2^2). One row per item: ``worth``,
        ``std_err``, ``quasi_se`` (missing where there is none) and ``largest_error``, how far off
        relatively the worst of the item's differences is.

        References
        ----------
        Firth and de Menezes (2004), https://doi.org/10.1093/biomet/91.1.65.

        Examples
        --------
        >>> result.quasi_se()["quasi_se"].round(3).to_dict()
        {'crimRate': 0.213, 'position': 0.202, 'socBurd': 0.199, 'culture': 0.225}
        """
        return quasi_table(self._at(at))

    def test_homogeneity(self, at: At = None) -> HypothesisTest:
        """Test that all worths are equal, with covariates at given values of these.

        See Also
        --------
        privrank.BTLResult.test : Any linear hypotheses; this is one of them.

        Examples
        --------
        >>> test = result.test_homogeneity()
        >>> round(test.statistic, 1), test.df, test.pvalue < 0.01
        (20.1, 3, True)
        """
        inside = self._equations().within(self._map(at))
        return HypothesisTest.of(self._inference(), self.items, inside, np.zeros(len(inside)))

    def elo(self, base: float = 1500.0, at: At = None) -> pd.DataFrame:
        """Return the worths on the Elo scale: `base` plus 400 / ln 10 times each.

        An item that is 400 points ahead is preferred with odds of 10; a tie is half a win there, as
        with ``ties=True``.

        Parameters
        ----------
        base : float, default 1500
            The mean rating.
        at : mapping of str to value, optional
            As of :meth:`worths`.

        Returns
        -------
        DataFrame
            Rows and columns of :meth:`worths`, with ``rating`` in the place of ``worth``.

        References
        ----------
        Elo (1978), The Rating of Chessplayers, Past and Present.

        Examples
        --------
        >>> import numpy as np
        >>> import privrank as pr
        >>> frame = pr.simulate.bradley_terry([1.0, 0.0], repeats=500, rng=np.random.default_rng(1))
        >>> model = pr.PrivateBTL(frame, items=[0, 1], respondent=None, design="public")
        >>> result = model.fit(1.0, rng=np.random.default_rng(2))
        >>> float(result.elo()["rating"].mean().round(6))
        1500.0
        """
        if self.link != LOGIT:
            raise ValueError(
                f"elo() is a scale of the logit, and this fit has link={self.link.name!r}: use "
                f"worths()."
            )
        middle = check_number("base", base, -inf, inf, "()")
        worths: pd.DataFrame = self.worths(at)
        numbers = ["worth", "std_err", "lower", "upper"]
        points = _ELO * worths[numbers] + middle * np.array([1.0, 0.0, 1.0, 1.0])
        return worths.assign(**points).rename(columns={"worth": "rating"})

    def simulate(
        self,
        n: int,
        rng: np.random.Generator | None = None,
        *,
        form: Form = "comparisons",
        at: At = None,
    ) -> pd.DataFrame:
        """Draw synthetic data from the fitted model; they are as private as the result.

        They hold what the model says, and nothing else of the data: neither how the answers of a
        respondent depend on each other, nor who compared what.

        Parameters
        ----------
        n : int
            Comparisons of every pair, or rankings.
        rng : numpy.random.Generator, optional
            By default one with fresh entropy.
        form : {"comparisons", "rankings"}, default "comparisons"
            ``item1, item2, outcome`` with no item counted as named first, and with ties only where
            these have a parameter; or ranks by the Plackett-Luce model, a row per ranking.
        at : mapping of str to value, optional
            Values of the covariates.

        Returns
        -------
        DataFrame
            ``attrs["synthetic"]`` says what it was drawn from.

        Notes
        -----
        The fitted worths and the tie parameter are functions of the release, and the draws are one
        of these and of a generator that knows nothing of the data: post-processing, at no epsilon.

        Examples
        --------
        >>> import numpy as np
        >>> import privrank as pr
        >>> frame = pr.simulate.bradley_terry([1.0, 0.0], repeats=500, rng=np.random.default_rng(1))
        >>> model = pr.PrivateBTL(frame, items=[0, 1], respondent=None, design="public")
        >>> result = model.fit(1.0, rng=np.random.default_rng(2))
        >>> drawn = result.simulate(3, np.random.default_rng(3))
        >>> len(drawn), drawn.attrs["synthetic"]
        (3, 'drawn from a fitted model, epsilon = 1 per row, seeded noise')
        """
        size, source = check_count("n", n), generator(rng)
        release: Release = self.release
        check_choice("form", form, Form)
        if len(self.components) > 1:
            raise ValueError(
                "simulate needs the worths of all items, and the released comparisons do not "
                "connect them: see components, and use a larger epsilon or items= without those "
                "named there."
            )
        if form == "rankings" and release.link != LOGIT:
            raise ValueError(
                f"form='rankings' draws from the Plackett-Luce model, which has the logit, and "
                f"this fit has link={release.link.name!r}: use form='comparisons'."
            )
        worths = self._values(at)
        if form == "rankings":
            frame = pd.DataFrame(PlackettLuce(worths).rvs(size, source), columns=list(self.items))
        else:
            tie = float(self.estimate.coefficients[-1])
            frame = _comparisons(release, worths, tie, size, source)
        frame.attrs["synthetic"] = f"drawn from a fitted model, {caption(release)}"
        return frame

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the summary as a data frame.

        One row per item, best first, with ranks, equal worths in the order in which items were
        declared; with covariates one row per coefficient.

        Examples
        --------
        >>> result.to_frame()[["worth", "std_err", "rank", "rank_lower", "rank_upper"]].round(3)
                  worth  std_err  rank  rank_lower  rank_upper
        item
        crimRate  0.607    0.184     1           1           2
        socBurd   0.263    0.176     2           1           3
        position -0.287    0.177     3           2           4
        culture  -0.582    0.191     4           3           4
        """
        frame = self._fit_frame("worth" if self._plain else "coef", z=self.tvalues)
        if not self._plain:
            return self._cautioned(frame)
        frame = frame.assign(rank=self.ranks()).join(self.rank_conf_int().add_prefix("rank_"))
        # ranks hold within a component: the largest comes first, each in the order of its ranks
        parts = sorted(self._equations().components, key=len, reverse=True)
        sorted_parts = [frame.iloc[part].sort_values("rank", kind="stable") for part in parts]
        return self._cautioned(pd.concat(sorted_parts))

    def _warned(self) -> list[str]:
        return [*self.warnings, *effect_notes(self.release)]

    @once
    def _cautions(self) -> tuple[str, ...]:
        return (*self._warned(), *limit_notes(self))

    def summary(self, details: bool = False) -> Table:
        """Return the fit as a table; `details` add the choice of noise and shares of epsilon.

        Examples
        --------
        >>> table = result.summary()
        >>> for line in str(table).splitlines()[9:13]:
        ...     print(line)
                     coef  std err  sampling  privacy        z    P>|z|   [0.025   0.975]     rank
        ------------------------------------------------------------------------------------------
        crimRate   0.6070    0.184     0.146    0.113    3.064    0.002    0.243    1.002      1-2
        socBurd    0.2625    0.176     0.141    0.105    1.485    0.138   -0.091    0.629      1-3
        """
        return fit_table(self, details)

    def plot_worth(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Draw worths with sampling-only and full intervals; with covariates, of every group.

        Examples
        --------
        >>> result.plot_worth().axes[0].get_xlabel().split(";")[0]
        'worth (logit scale, centred)'
        """
        facts, name = self.release.design.covariates, self.link.name
        heading = f"{self.link.model} worths, {caption(self.release)}"
        if facts is None:
            return plots.worth(self.to_frame(), self.alpha, heading, name, ax=ax)
        return plots.group_worths(
            self.worths(),
            [factor for factor, _ in facts.factors],
            self.alpha,
            heading,
            f"worth ({name} scale, centred)",
            ax=ax,
        )

    def plot_pairwise(self, ax: plots.Axes | None = None, *, at: At = None) -> plots.Figure:
        """Draw :meth:`probabilities` as a heat map, best item first.

        Examples
        --------
        >>> figure = result.plot_pairwise()
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['crimRate', 'socBurd', 'position', 'culture']
        """
        order = [name for name in self.to_frame().index if self._plain] or list(
            self.ranks(at).sort_values(kind="stable").index
        )
        table = self.probabilities(at).loc[order, order]
        ties = self.release.design.ties
        label = "P(row if decided)" if ties == "davidson" else "P(row) + P(tie) / 2"
        named = {"label": label} if ties else {}
        return plots.pairwise(table, caption(self.release), **named, ax=ax)

    def plot(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Draw the worths (:meth:`plot_worth`).

        Examples
        --------
        >>> result.plot().axes[0].get_xlabel().split(";")[0]
        'worth (logit scale, centred)'
        """
        return self.plot_worth(ax=ax)

    def _lines(self) -> dict[str, Any]:
        tied = {TIE_ROW: float(self.estimate.coefficients[-1])}
        return tied if self.release.design.davidson else {}


def _comparisons(
    release: Release, worths: FloatArray, tie: float, size: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Return so many comparisons of every pair, pair by pair in the order of the items."""
    names = np.array(release.survey.items, dtype=object)
    first, second = (np.repeat(side, size) for side in np.triu_indices(len(names), 1))
    difference = worths[first] - worths[second]
    if release.design.davidson:
        won, tied, _ = answer_probabilities(difference, tie)
    else:
        won, tied = release.link.probability(difference), np.zeros(len(difference))
    uniform = rng.random(len(difference))
    outcome = np.where(uniform < won, 1, np.where(uniform < won + tied, 0, -1))
    return pd.DataFrame({"item1": names[first], "item2": names[second], "outcome": outcome})
