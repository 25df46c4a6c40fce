"""The result of a private Bradley-Terry fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import softmax

from privrank.bradley_terry import contrasts, scoretests
from privrank.bradley_terry.equations import pair_noise
from privrank.bradley_terry.estimate import without_contests
from privrank.bradley_terry.fit import answer_probabilities
from privrank.bradley_terry.modelmatrix import FIRST
from privrank.bradley_terry.paircounts import released_tasks
from privrank.bradley_terry.predictor import (
    display,
    groups_at,
    pair_predictors,
    worth_map,
)
from privrank.distributions.links import LOGIT
from privrank.distributions.simulate import PlackettLuce, generator
from privrank.hypotheses.interval import shared_ranks
from privrank.plans.declarations import MIN_ITEMS_MATCHED
from privrank.release.names import PAIR_COUNTS, WORTHS
from privrank.release.release import Release
from privrank.release.survey import ASSERTED, INTERCEPT, Covariates, Design
from privrank.results import guarantee, plots, predictions, tables
from privrank.results.claims import assumed, percent, said
from privrank.results.coefficients import TIE_ROW, CoefficientResult
from privrank.results.hypotheses import HypothesisTest
from privrank.util.arrays import AnyArray, FloatArray, immutable
from privrank.util.checks import check_choice, check_count, check_flag, check_number
from privrank.util.solvers import propagate

# Points of the Elo scale in one unit of the logit: 400 of them are odds of 10.
_ELO = 400.0 / math.log(10.0)

# Number of items whose differences are compared to find the largest source of error.
_SOME_ITEMS = 64

Form = Literal["comparisons", "rankings"]
At = Mapping[str, Any] | None


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class BTLResult(CoefficientResult):
    """Results of a private Bradley-Terry fit.

    With covariates, methods about items (:meth:`ranks`, :meth:`pairwise`, ...) take ``at=``, levels
    and values of the covariates. Without ``at=`` they describe the reference profile: the first
    level of each factor, with numeric covariates at the midpoint of their bounds.

    Parameters
    ----------
    release : Release
        The output of the private mechanism.
    alpha : float
        Significance level of intervals and rank sets.
    requested : float or "auto"
        Requested ridge penalty.
    solver : {"newton", "lbfgs", "cvxpy"}
        Solver of the fit.
    estimate : Estimate
        Fitted coefficients: the centred worths or, with covariates, the coefficients on contrasts
        of items.
    warnings : tuple of str
        Warnings about the fit.

    See Also
    --------
    privrank.PrivateBTL : The model.
    privrank.from_json : Read a result from an archive.
    privrank.pool : Pool several fits.

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

    @property
    def family(self) -> str:  # type: ignore[override]
        """Title of a table of several such results.

        Examples
        --------
        >>> result.family
        'Bradley-Terry worths'
        """
        return f"{guarantee.model_name(self.release)} worths"

    @property
    def components(self) -> tuple[tuple[str, ...], ...]:
        """Components of items that the released comparisons connect.

        Usually there is one component. Worths and ranks are relative to the items of the same
        component; the worth and rank of an item that is alone in its component are missing.

        Examples
        --------
        One component: every item is compared, directly or by others, with every other one.

        >>> result.components
        (('crimRate', 'position', 'socBurd', 'culture'),)
        """
        return tuple(
            tuple(self.items[k] for k in part)
            for part in self._inference().equations.components.groups
        )

    def _at(self, at: At) -> contrasts.Worths:
        design = self.release.design
        return contrasts.Worths(
            self._inference(), worth_map(design, groups_at(design.covariates, at))
        )

    def worths(self, at: At = None) -> pd.DataFrame:
        """Return the worths of each group.

        The table has one row per group and item: the levels, ``item``, ``worth``, ``std_err``,
        ``lower`` and ``upper``.

        Parameters
        ----------
        at : mapping of str to value, optional
            Levels and values of the covariates, for one group. By default the table has every
            combination of levels, with numeric covariates at the midpoint of their bounds.

        Raises
        ------
        TypeError, ValueError
            If `at` has a name that is not a covariate, or a value is not declared or out of bounds.

        Examples
        --------
        >>> result.worths()[["item", "worth", "std_err"]].round(3)
               item  worth  std_err
        0  crimRate  0.607    0.184
        1  position -0.287    0.177
        2   socBurd  0.263    0.176
        3   culture -0.582    0.191
        """
        design = self.release.design
        groups = groups_at(design.covariates, at, every=True)
        rows = [group | {"item": item} for group in groups for item in self.items]
        inference = self._inference()
        table = inference.equations.components.within(worth_map(design, groups))
        lower, upper = scoretests.intervals(inference, table, self.alpha)
        # a worth that no released comparison identifies has a row of zeros
        known = np.where(table.any(axis=1), 1.0, np.nan)
        return pd.DataFrame(rows).assign(
            worth=known * (table @ self.estimate.coefficients),
            std_err=known * contrasts.standard_errors(table, inference.errors.total),
            lower=lower,
            upper=upper,
        )

    def worth(self, at: At = None) -> pd.Series[float]:
        """Return multiplicative worths, which add up to 1 in each component.

        Each worth is the exponential of a worth on the logit scale, divided by the sum over its
        component.

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
        predictions.check_comparable(self.release)
        return self._series(self._by_component(softmax, at), "worth")

    def _by_component(self, function: Callable[[FloatArray], AnyArray], at: At) -> FloatArray:
        """Return a function of the worths of each component; missing for single items."""
        worths = self._at(at).values
        values = np.full(len(worths), np.nan)
        for part in self._inference().equations.components.groups:
            if len(part) > 1:
                values[part] = function(worths[part])
        return values

    def ranks(self, at: At = None) -> pd.Series[Any]:
        """Return ranks, 1 = most preferred; equal worths share a rank (1, 1, 3).

        If comparisons do not connect all items, items are ranked within their components
        (:attr:`components`).

        Examples
        --------
        >>> result.ranks().to_dict()
        {'crimRate': 1, 'position': 3, 'socBurd': 2, 'culture': 4}
        """
        ranks = self._by_component(shared_ranks, at)
        return self._series(ranks if np.isnan(ranks).any() else ranks.astype(np.int64), "rank")

    def rank_conf_int(self, alpha: float | None = None, *, at: At = None) -> pd.DataFrame:
        """Return simultaneous confidence sets of the ranks.

        The columns are ``lower`` and ``upper``. With m items, ``lower`` is 1 plus the number of
        items that are significantly better, and ``upper`` is m minus the number that are
        significantly worse. Significance is decided by step-down tests of all differences of two
        worths (:func:`privrank.hypotheses.interval.rank_sets`).

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
        known = self.ranks(at).notna()
        return frame if known.all() else frame.where(known)

    def pairwise(
        self, alpha: float | None = None, *, simultaneous: bool = False, at: At = None
    ) -> pd.DataFrame:
        """Return differences, preference probabilities and p-values of all pairs.

        Parameters
        ----------
        simultaneous : bool, default False
            Whether intervals and p-values are simultaneous over all pairs (Bonferroni), under any
            dependence between pairs.
        at : mapping of str to value, optional
            Values of the covariates. Contest covariates are 0: neither item counts as named
            first.

        Returns
        -------
        DataFrame
            One row per pair with columns ``item1, item2, difference, std_err, probability, lower,
            upper, pvalue``; ``probability`` is the probability that item1 is preferred, with the
            interval ``lower`` to ``upper``; ``pvalue`` tests equal worths. With ``ties=True`` the
            column is ``preferred_plus_half_ties`` instead: the probability that item1 is preferred
            plus half the probability of a tie, which is larger. The model does not estimate the
            share of ties. With ``ties="davidson"`` the column is ``preferred_if_decided``, the
            probability among answers that are not ties. It is shown with the probabilities among
            all answers: ``win``, ``tie`` and ``loss`` of item1. With best-worst answers, whose
            worths have the scale of their sets, there is no such column, and ``lower`` and
            ``upper`` are limits of the difference.

        Examples
        --------
        >>> table = result.pairwise().set_index(["item1", "item2"])
        >>> table.loc[("crimRate", "culture"), ["difference", "pvalue"]].round(4).to_dict()
        {'difference': 1.1894, 'pvalue': 0.0007}
        """
        worths = self._at(at)
        names = np.array(self.items, dtype=object)
        first, second = np.triu_indices(len(names), 1)
        together = worths.together
        difference = np.where(together, worths.values[first] - worths.values[second], np.nan)
        count = max(int(together.sum()), 1) if check_flag("simultaneous", simultaneous) else 1
        lower, upper = worths.intervals(self._level(alpha) / count)
        limits = {"lower": lower, "upper": upper}
        if not self.release.design.scaled_by_sets:
            limits = predictions.preference_columns([self.release], difference, **limits)
        return pd.DataFrame(
            {
                "item1": names[first],
                "item2": names[second],
                "difference": difference,
                "std_err": np.where(together, worths.contrast_errors[first, second], np.nan),
                **predictions.answer_columns(difference, worths.inference),
                **limits,
                "pvalue": np.minimum(count * worths.pvalues, 1.0),
            }
        )

    def predict(self, frame: pd.DataFrame, alpha: float | None = None) -> pd.DataFrame:
        """Predict the preferred item of each pair.

        Parameters
        ----------
        frame : DataFrame
            Columns ``item1``, ``item2`` and the covariates of the model, contest covariates with
            the sign for item1. Item1 is the item named first, unless there is a column ``first``.
            Or, for choices from sets, columns ``offered 1``,
            ``offered 2``, ... with the items of a set in each row, missing after the last.

        Returns
        -------
        DataFrame
            ``probability`` that item1 is preferred, ``lower`` and ``upper``, with the index of
            `frame`. With ties the columns are ``preferred_plus_half_ties``, or ``win``, ``tie``,
            ``loss`` and ``preferred_if_decided`` (see :meth:`pairwise`). For offered sets there is
            one row for each row of `frame` (column ``row``) and ``item``, with the probability that
            the item is the ``best`` or the ``worst`` of its set, in the reference profile.

        Raises
        ------
        TypeError, ValueError
            If a column is missing, or an entry is not an item or not a declared level.

        Examples
        --------
        >>> import pandas as pd
        >>> pairs = pd.DataFrame({"item1": ["crimRate"], "item2": ["socBurd"]})
        >>> result.predict(pairs).round(3)
           preferred_plus_half_ties  lower  upper
        0                     0.585  0.442   0.72
        """
        design = self.release.design
        if isinstance(frame, pd.DataFrame) and "offered 1" in frame.columns:
            return predictions.set_probabilities(self.release, self._at(None).values, frame)
        predictions.check_comparable(self.release)
        if not isinstance(frame, pd.DataFrame) or not {"item1", "item2"} <= set(frame.columns):
            raise TypeError("frame must be a pandas frame with columns item1 and item2.")
        index = pd.Index(design.items)
        first, second = (
            np.asarray(index.get_indexer(pd.Index(frame[name].astype(str))), dtype=np.int64)
            for name in ("item1", "item2")
        )
        if (first < 0).any() or (second < 0).any() or (first == second).any():
            raise ValueError(
                "item1 and item2 must name two different items of the model in each row."
            )
        facts = design.covariates or INTERCEPT
        known = sorted({*facts.names, *facts.contest} - ({FIRST} - {*frame.columns}))
        if not set(known) <= set(frame.columns):
            raise TypeError(f"frame must have the covariates as columns: {', '.join(known)}.")
        shown = pair_predictors(design, first, second, {name: list(frame[name]) for name in known})
        inference = self._inference()
        t = np.where(
            inference.equations.components.identifies(shown),
            shown @ self.estimate.coefficients,
            np.nan,
        )
        lower, upper = scoretests.intervals(inference, shown, self._level(alpha))
        columns = predictions.answer_columns(t, inference)
        columns |= predictions.preference_columns([self.release], t, lower, upper)
        return pd.DataFrame(columns, index=frame.index)

    def probabilities(self, at: At = None) -> pd.DataFrame:
        """Return the matrix of probabilities that the row item is preferred.

        With ties each entry is the probability of being preferred plus half the probability of a
        tie. If ties have a parameter, it is the probability of being preferred among answers that
        are not ties.

        Examples
        --------
        >>> result.probabilities().loc["crimRate"].round(3).to_dict()
        {'crimRate': 0.5, 'position': 0.71, 'socBurd': 0.585, 'culture': 0.767}
        """
        predictions.check_comparable(self.release)
        worths = self._at(at).values
        difference = worths[:, None] - worths
        label = self._inference().equations.components.label
        difference[label[:, None] != label] = np.nan
        names = list(self.items)
        return pd.DataFrame(self.link.probability(difference), names, names)

    def quasi_se(self, at: At = None) -> pd.DataFrame:
        """Return quasi standard errors, which give the error of any difference.

        The standard error of a difference of two worths is close to sqrt(q_1^2 + q_2^2), with q_1
        and q_2 their quasi standard errors. The table has one row per item: ``worth``, ``std_err``,
        ``quasi_se`` (missing where there is none) and ``largest_error``, the largest relative error
        of this approximation over the differences of the item.

        References
        ----------
        Firth and de Menezes (2004), https://doi.org/10.1093/biomet/91.1.65.

        Examples
        --------
        >>> result.quasi_se()["quasi_se"].round(3).to_dict()
        {'crimRate': 0.213, 'position': 0.202, 'socBurd': 0.199, 'culture': 0.225}
        """
        if len(self.items) < 3:
            raise ValueError("quasi standard errors need at least three items.")
        worths = self._at(at)
        table = np.full((len(self.items), 4), np.nan)
        for part in worths.inference.equations.components.groups:
            inside = worths.covariance[np.ix_(part, part)]
            if len(part) > 1:
                table[part, 0] = worths.values[part]
                table[part, 1] = np.sqrt(np.maximum(np.diag(inside), 0.0))
            if len(part) > 2:
                # q_i + q_j approximates the variance of every difference; a negative q has no root
                q, off = contrasts.quasi_variances(inside)
                table[part, 2] = np.sqrt(np.where(q > 0, q, np.nan))
                table[part, 3] = np.abs(off).max(axis=1)
        return pd.DataFrame(
            table,
            index=pd.Index(self.items, name="item"),
            columns=["worth", "std_err", "quasi_se", "largest_error"],
        )

    def test_homogeneity(self, at: At = None) -> HypothesisTest:
        """Test that all worths are equal, at given values of the covariates.

        See Also
        --------
        privrank.BTLResult.test : Test of any linear hypothesis.

        Examples
        --------
        >>> test = result.test_homogeneity()
        >>> round(test.statistic, 1), test.df, test.pvalue < 0.01
        (20.1, 3, True)
        """
        inference = self._inference()
        inside = inference.equations.components.within(self._at(at).table)
        return HypothesisTest.of(inference, self.items, inside, np.zeros(len(inside)))

    def elo(self, base: float = 1500.0, at: At = None) -> pd.DataFrame:
        """Return the worths on the Elo scale, `base` + 400 / ln 10 times worth.

        An item that is 400 points ahead is preferred with odds of 10. A tie is half a win on this
        scale, which matches ``ties=True``.

        Parameters
        ----------
        base : float, default 1500
            The mean rating.
        at : mapping of str to value, optional
            Levels and values of the covariates (see :meth:`worths`).

        Returns
        -------
        DataFrame
            Rows and columns of :meth:`worths`, with ``rating`` instead of ``worth``.

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
        predictions.check_comparable(self.release)
        middle = check_number("base", base, -math.inf, math.inf, "()")
        worths: pd.DataFrame = self.worths(at)
        points = _ELO * worths[["worth", "std_err", "lower", "upper"]]
        points += middle * np.array([1.0, 0.0, 1.0, 1.0])
        return worths.assign(**points).rename(columns={"worth": "rating"})

    def simulate(
        self,
        n: int,
        rng: np.random.Generator | None = None,
        *,
        form: Form = "comparisons",
        at: At = None,
    ) -> pd.DataFrame:
        """Simulate data from the fitted model, at no additional privacy cost.

        The synthetic data are as private as the result. They reproduce the fitted model and nothing
        else of the data: neither the dependence between the answers of one respondent, nor which
        respondent compared which items.

        Parameters
        ----------
        n : int
            Number of comparisons of every pair, or number of rankings.
        rng : numpy.random.Generator, optional
            Random generator; by default one with fresh entropy.
        form : {"comparisons", "rankings"}, default "comparisons"
            ``item1, item2, outcome`` without contest covariates, and with ties only if these have a
            parameter; or ranks from the Plackett-Luce model, one row per ranking.
        at : mapping of str to value, optional
            Values of the covariates.

        Returns
        -------
        DataFrame
            The synthetic data; ``attrs["synthetic"]`` describes their source.

        Notes
        -----
        The fitted worths and the tie parameter are functions of the release. The draws are a
        function of these and of a generator that is independent of the data. They are
        post-processing and use no epsilon.

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
        predictions.check_comparable(self.release)
        size = check_count("n", n)
        source = generator(rng)
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
        worths = self._at(at).values
        if form == "rankings":
            frame = pd.DataFrame(PlackettLuce(worths).rvs(size, source), columns=list(self.items))
        else:
            tie = float(self.estimate.coefficients[-1])
            frame = predictions.simulated_comparisons(release, worths, tie, size, source)
        seeded = ", seeded noise" if release.source == "seeded" else ""
        frame.attrs["synthetic"] = (
            f"drawn from a fitted model, {guarantee.caption(release)}{seeded}"
        )
        return frame

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the summary as a data frame.

        The table has one row per item, best first, with ranks; items of equal worth are in the
        declared order. With covariates it has one row per coefficient.

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
        frame = self._fit_frame(str(self.params.name), z=self.tvalues)
        if self.release.design.covariates is not None:
            return self._cautioned(frame)
        frame = frame.assign(rank=self.ranks()).join(self.rank_conf_int().add_prefix("rank_"))
        # ranks are within a component: sort by the size of the component, then by rank
        ranked = (
            frame.iloc[part].sort_values("rank", kind="stable")
            for part in sorted(self._inference().equations.components.groups, key=len, reverse=True)
        )
        return self._cautioned(pd.concat(ranked))

    @property
    def without_contests(self) -> pd.Series[Any]:
        """Coefficients of the model without contest covariates, from the same released net wins.

        Worths at equal contest covariates compare items under the same conditions; these compare
        the items as they are. Empty if the model has no contest covariates.

        Examples
        --------
        >>> result.without_contests.empty
        True
        """
        facts = self.release.design.covariates or INTERCEPT
        terms = self.params.index[: len(self.params) - len(facts.contest)]
        if not facts.contest:
            return pd.Series(dtype=np.float64, name="without")
        plain = without_contests(self._inference().equations, self.estimate)
        shown = display(self.release.design)[: len(terms), : len(plain)]
        return pd.Series(shown @ plain, index=terms, name="without")

    def _table(self, details: bool) -> tables.Table:
        release = self.release
        design = release.design
        facts = design.covariates
        frame = self.to_frame()
        estimate = str(frame.columns[0])
        # terms that are not identified have no numbers
        shown = frame.where(frame[estimate].notna(), axis=0)
        if facts is None:
            sizes = {item: len(part) for part in self.components for item in part}
            among = [
                f" of {sizes[item]}" if sizes[item] < len(frame) else "" for item in frame.index
            ]
            shown = shown.assign(ranks=tables.rank_ranges(frame) + among)
        elif facts.contest:
            shown = shown.assign(without=self.without_contests)
        if design.davidson:
            tie = self.tie_parameter.rename({"estimate": estimate}).to_frame(TIE_ROW)
            shown = pd.concat([shown, tie.T.assign(ranks="")])[list(shown)]
        model = guarantee.model_name(release)
        counted = ("No. Comparisons:", _comparisons(design))
        if design.offered is not None:
            answered = f" (about {released_tasks(release):,} answered)" if design.silent else ""
            counted = ("No. Tasks:", f"{design.tasks:,}{answered}")
        kind = "Results" if facts is None else "Regression Results"
        ties = ", Davidson" if design.davidson else ""
        size = self.penalty if isinstance(self.penalty, str) else f"{self.penalty:.4g}"
        # the size of a bias-corrected ridge is a detail
        estimator = f"ridge, penalty {size}" if self.penalty != 0 else "unpenalised"
        linear = ["linear"] if facts is not None and facts.item_columns else []
        privacy = guarantee.comparison_privacy(release, details)
        if facts is not None and release.source != "none" and design.kind == "public":
            privacy += [
                *said("covariates public", facts.names),
                *said("contests public", facts.contest),
            ]
        return tables.laid_out(
            shown,
            tables.fit_columns(
                estimate,
                self.alpha,
                sampling=tables.Column(guarantee.sampling_head([release])),
                without=tables.Column("without"),
            ),
            title=guarantee.title(f"{model} {kind}", release),
            header=(
                ("Model:", f"{model}{ties} ({self.link.name})"),
                counted if facts is None else ("Formula:", f"~ {facts.described}"),
                *guarantee.comparison_header(release, self.design_effect, details),
                ("Estimator:", "ridge, bias-corrected" if self.corrected else estimator),
                *([("Ridge penalty:", size)] if details else []),
            ),
            notes=tables.Notes(
                estimates=_estimate_notes(self, frame),
                tests=_test_notes(self),
                assumptions=[
                    *assumed(guarantee.assumptions(release, "model", *linear), model),
                    *guarantee.count_notes(release),
                    *_matching_notes(self),
                ],
                privacy=privacy,
            ),
            cautions=self._cautions(),
        )

    def plot_worth(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot worths with sampling-only and full intervals.

        With covariates the worths of every group are plotted.

        Examples
        --------
        >>> result.plot_worth().axes[0].get_xlabel()
        'worth (log-odds, mean 0)'
        """
        facts = self.release.design.covariates
        seeded = self.release.source == "seeded"
        heading = f"{guarantee.model_name(self.release)} worths ({guarantee.caption(self.release)})"
        if facts is None:
            return plots.worth(
                self.to_frame(), self.alpha, heading, self.link.name, seeded=seeded, ax=ax
            )
        return plots.group_worths(
            self.worths(),
            [factor for factor, _ in facts.factors],
            f"{plots.worth_label(self.link.name)}, {plots.interval_words(self.alpha)}",
            heading,
            seeded=seeded,
            ax=ax,
        )

    def plot_pairwise(self, ax: plots.Axes | None = None, *, at: At = None) -> plots.Figure:
        """Plot :meth:`probabilities` as a heat map, best item first.

        Examples
        --------
        >>> figure = result.plot_pairwise()
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['crimRate', 'socBurd', 'position', 'culture']
        """
        plain = self.release.design.covariates is None
        frame = self.to_frame() if plain else self.ranks(at).sort_values(kind="stable")
        table = self.probabilities(at).loc[frame.index, frame.index]
        label = {
            False: "P(row preferred)",
            True: "P(row preferred) + P(tie)/2",
            "davidson": "P(row preferred | no tie)",
        }[self.release.design.ties]
        return plots.pairwise(
            table,
            f"Preference probabilities ({guarantee.caption(self.release)})",
            label,
            seeded=self.release.source == "seeded",
            ax=ax,
        )

    plot = plot_worth


def _comparisons(design: Design) -> str:
    """Return the number of comparisons, if it is public."""
    if design.weights is not None:
        return f"{design.weights.answers:,}"
    known = design.pairs is not None and design.pairs.origin not in ASSERTED
    return f"{design.pairs.total:,.15g}" if known and design.pairs is not None else "private"


def _estimate_notes(result: BTLResult, frame: pd.DataFrame) -> list[str]:
    """Return notes on estimates, intervals and the coding of answers."""
    release = result.release
    design = release.design
    facts = design.covariates
    level = percent(1.0 - result.alpha)
    noisy = bool((2.0 * frame["privacy"] >= frame["sampling"]).mean() > 0.5)
    # with covariates the rows are terms, not items
    if facts is None:
        shared = (frame["rank"].loc[list(part)] for part in result.components)
        connected = sum(len(part) > 1 for part in result.components)
        key = "worths of components" if connected > 1 else "worths"
        notes = [
            *(guarantee.interval_notes(key, release, level) if connected else []),
            *chain.from_iterable(map(guarantee.tie_notes, shared)),
            *_cost_notes(result),
        ]
    else:
        any_shown = design.davidson or frame["coef"].notna().any()
        # coefficients without a prefix are worths at these values
        names = " and ".join(name for name, _, _ in facts.bounds)
        notes = [
            *(guarantee.interval_notes("coefficients", release, level) if any_shown else []),
            *said("centred" if facts.item_columns else "sum to zero"),
            *said("contests", facts.contest, names=" and ".join(facts.contest)),
            *said(
                "zero of covariates",
                names and "Intercept" in facts.columns,
                names=names,
                group=" in the reference group" if facts.factors else "",
            ),
            *_covariate_notes(result, facts),
        ]
    perturbed = release.source != "none" and WORTHS in release.parts
    notes += said("scale of sets", design.scaled_by_sets)
    if design.davidson:
        answers = answer_probabilities(np.zeros(1), float(result.estimate.coefficients[-1]))
        notes += said("tie parameter", probability=float(answers[1][0]))
    return [
        *notes,
        # for the logit the matching loss is the log-loss
        *said(
            "perturbed estimator" if perturbed else "estimator",
            release.link != LOGIT,
            estimator=result.estimator,
        ),
        *guarantee.bound_notes(design),
        *guarantee.cost_notes(release, result.design_effect, noisy),
    ]


def _cost_notes(result: BTLResult) -> list[str]:
    """Return advice to avoid released pair counts, if they dominate the error."""
    release = result.release
    facts = result._inference().equations
    other = release.link != LOGIT or release.design.davidson or facts.items < MIN_ITEMS_MATCHED
    if other or PAIR_COUNTS not in release.parts or facts.count_variance == 0.0:
        return []
    # with many items, use differences among a few that are evenly spread in the list
    some = np.unique(np.linspace(0, facts.items - 1, _SOME_ITEMS).astype(int))
    errors = result._inference().errors
    first, second = np.triu_indices(len(some), 1)
    counts = propagate(errors.response[some], pair_noise(facts, result.estimate.coefficients))
    total = errors.total[np.ix_(some, some)]
    parts = [contrasts.own_and_between(part)[first, second] for part in (counts, total)]
    return said("costly counts", np.median(parts[0] / np.maximum(parts[1], 1e-300)) > 0.5)


def _covariate_notes(result: BTLResult, facts: Covariates) -> list[str]:
    """Return notes on the deviation of items from the model, and on released group sizes."""
    release = result.release
    notes = []
    if (free := result._inference().free) is not None:
        scatter = zip(facts.columns, np.sqrt(free.scatter), strict=True)
        notes += said(
            "lack of fit",
            pvalue=tables.format_pvalue(result.test_lack_of_fit()["pvalue"]),
            listed=", ".join(f"{name} {sd:.2f}" for name, sd in scatter),
            freedom=release.design.item_freedom,
        )
    # a single cell has all answers: its share is public, and nothing was released about it
    if release.source == "none" or release.design.kind == "public" or facts.cells == 1:
        return notes
    cells = zip(facts.cell_labels, result._inference().equations.group_answers, strict=True)
    listed = [f"{', '.join(label.values())} {answers:,.0f}" for label, answers in cells]
    return notes + said("groups", groups="; ".join(listed))


def _test_notes(result: BTLResult) -> list[str]:
    """Return notes on the tests of single estimates, and of terms or of equal worths."""
    if result.release.design.covariates is not None:
        terms = result.wald_test_terms()
        tests = [
            f"{name}: statistic = {row['statistic']:.2f}, df = {row['df']:.0f}, "
            f"{tables.format_pvalue(row['pvalue'])}"
            if row["df"]
            else f"{name}: {tables.UNIDENTIFIED}"
            for name, row in terms.to_dict("index").items()
        ]
        return [
            *said("coefficient tests", terms["df"].any()),
            *said("tests of terms", tests="; ".join(tests)),
        ]
    test = result.test_homogeneity()
    if test.df == 0:
        return said("equal worths, unknown")
    several = [part for part in result.components if len(part) > 1]
    key = "equal worths"
    if len(result.components) > 1:
        key += ", components" if len(several) > 1 else ", identified"
    pvalue = tables.format_pvalue(test.pvalue)
    return [
        *said("worth tests, Wald" if result._inference().many else "worth tests"),
        *said(
            key,
            count=len(several[0]),
            statistic=test.statistic,
            df=test.df,
            pvalue=f"Monte Carlo {pvalue}" if test.draws else pvalue,
        ),
    ]


def _matching_notes(result: BTLResult) -> list[str]:
    """Return notes on the check of the matching of opponents."""
    matching = result._inference().equations.matching
    if matching is None:
        return []
    if math.isnan(matching.off):
        return said("matching unchecked")
    return [
        *said(
            "matching allowed for",
            math.isfinite(matching.error),
            beta=matching.beta,
            error=matching.error,
        ),
        *said("matching checked", pvalue=tables.format_pvalue(matching.pvalue)),
    ]
