"""The result of a private Bradley-Terry fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, log
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from privrank.bradley_terry import contrasts, scoretests
from privrank.bradley_terry.equations import ScoreEquations, score_equations
from privrank.bradley_terry.estimate import WorthEstimate
from privrank.bradley_terry.fit import Solver, answer_probabilities
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.linear import display, groups_at, names_shown, worth_map
from privrank.distributions.links import LOGIT, Link
from privrank.distributions.simulate import PlackettLuce, generator
from privrank.hypotheses.interval import shared_ranks
from privrank.release.release import Release
from privrank.results import guarantee, plots, tables
from privrank.results.base import Result, cached_result
from privrank.results.hypotheses import (
    ContrastTests,
    HypothesisTest,
    equation_names,
    fitted_rows,
    likelihood_ratio,
    log_likelihood,
    signed_z,
    t_test,
)
from privrank.results.pairs import (
    answer_columns,
    pair_table,
    predictors_of,
    probability_name,
    probability_table,
    quasi_table,
    shares_of,
    tie_series,
    worth_columns,
)
from privrank.results.worthtable import TIE_ROW, fit_table, limit_notes
from privrank.util.arrays import FloatArray, IntArray, immutable, readonly_copy
from privrank.util.checks import check_choice, check_count, check_flag, check_number
from privrank.util.formula import constraint
from privrank.util.solvers import matvec, propagate

# Points of the Elo scale in one unit of the logit: 400 of them are odds of 10.
_ELO = 400.0 / log(10.0)

Form = Literal["comparisons", "rankings"]
At = Mapping[str, Any] | None


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class BTLResult(Result):
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

    family: ClassVar[str] = "Bradley-Terry worths"

    requested: float | Literal["auto"]
    solver: Solver
    estimate: WorthEstimate = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def _plain(self) -> bool:
        return self.release.design.covariates is None

    @property
    def _names(self) -> tuple[str, ...]:
        return names_shown(self.release.design)

    @cached_result
    def _inference(self) -> Inference:
        return Inference.of(self.release, self.estimate)

    @cached_result
    def _equations(self) -> ScoreEquations:
        return score_equations(self.release)

    @cached_result
    def _display(self) -> FloatArray:
        return readonly_copy(
            self._equations().components.within(display(self.release.design)), np.float64
        )

    def _named(self, values: Any, name: str) -> pd.Series[Any]:
        """Return a series by shown coefficient, missing if not identified."""
        index = pd.Index(self._names, name="item" if self._plain else "term")
        series = pd.Series(np.array(values), index=index, name=name)
        if self._equations().components.projection is not None:
            # a row of zeros shows a coefficient that the released comparisons do not identify
            series = series.where(np.asarray(self._display().any(axis=1)), np.nan)
        return series

    def _errors(self, half: FloatArray, name: str) -> pd.Series[float]:
        """Return the standard errors from one source, given half its covariance."""
        variances = self._inference().errors.variances(half, self._display())
        return self._named(np.sqrt(np.maximum(variances, 0.0)), name)

    def _estimated(self) -> FloatArray:
        return matvec(self._display(), self.estimate.coefficients)

    @property
    def link(self) -> Link:
        """Link of the model.

        Examples
        --------
        >>> result.link.name
        'logit'
        """
        return self.release.link

    @property
    def estimator(self) -> str:
        """The loss that the estimates minimise, without its ridge.

        Examples
        --------
        >>> result.estimator
        'maximum likelihood'
        """
        return self._equations().fitted.estimator

    @property
    def penalty(self) -> float | Literal["auto"]:
        """Ridge gamma of the worths.

        With covariates the ridge is a matrix, and this is the value that was requested.

        Examples
        --------
        >>> round(result.penalty, 3)
        2.434
        """
        ridge = self.estimate.worths_ridge(self.release.design)
        return self.requested if isinstance(ridge, np.ndarray) else ridge

    @property
    def corrected(self) -> bool:
        """Whether the bias of the ridge is corrected.

        Examples
        --------
        >>> result.corrected
        True
        """
        return self.estimate.corrected

    @property
    def params(self) -> pd.Series[float]:
        """Centred worths on the scale of the link, or the terms with covariates.

        Items with larger worths are preferred. With covariates, the worths of the reference group
        come first. They are followed by the change of each worth per column; these changes add up
        to zero over the items. ``first`` is the advantage of the item named first.

        See Also
        --------
        privrank.BTLResult.worths : Worths of each group, with covariates.

        Examples
        --------
        >>> result.params.round(3).to_dict()
        {'crimRate': 0.607, 'position': -0.287, 'socBurd': 0.263, 'culture': -0.582}
        """
        return self._named(self._estimated(), "worth" if self._plain else "coef")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, sampling and privacy noise together.

        Examples
        --------
        >>> result.bse.round(3).to_dict()
        {'crimRate': 0.184, 'position': 0.177, 'socBurd': 0.176, 'culture': 0.191}
        """
        return self._named(
            contrasts.standard_errors(self._display(), self._inference().errors.total), "std err"
        )

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Sampling part of the standard errors.

        Examples
        --------
        >>> result.bse_sampling.round(3).to_dict()
        {'crimRate': 0.146, 'position': 0.141, 'socBurd': 0.141, 'culture': 0.149}
        """
        return self._errors(self._inference().errors.sampled, "sampling")

    @property
    def bse_privacy(self) -> pd.Series[float]:
        """Privacy part of the standard errors.

        Examples
        --------
        The parts add up in squares:

        >>> result.bse_privacy.round(3).to_dict()
        {'crimRate': 0.113, 'position': 0.106, 'socBurd': 0.105, 'culture': 0.119}
        >>> np.allclose(result.bse**2, result.bse_sampling**2 + result.bse_privacy**2)
        True
        """
        return self._errors(self._inference().errors.noisy, "privacy")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Normal quantiles of the p-values, with the signs of the estimates.

        The p-values come from score tests, so the quantiles differ slightly from the ratios of the
        estimates to `bse`.

        Examples
        --------
        >>> result.tvalues.round(2).to_dict()
        {'crimRate': 3.06, 'position': -1.61, 'socBurd': 1.48, 'culture': -2.88}
        """
        return pd.Series(signed_z(self._estimated(), self._pvalues()), self.params.index, name="z")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for a worth equal to the average, or a coefficient of zero.

        See Also
        --------
        privrank.BTLResult.test_homogeneity : Whether all worths are equal.

        Examples
        --------
        >>> result.pvalues.round(3).to_dict()
        {'crimRate': 0.002, 'position': 0.108, 'socBurd': 0.138, 'culture': 0.004}
        """
        return pd.Series(self._pvalues().copy(), self.params.index, name="P>|z|")

    @cached_result
    def _pvalues(self) -> FloatArray:
        return readonly_copy(scoretests.pvalues(self._inference(), self._display()), np.float64)

    @property
    def tie_parameter(self) -> pd.Series[float]:
        """Tie parameter lambda of ``ties="davidson"``, with its interval.

        A series of ``estimate, std_err, sampling, privacy, lower`` and ``upper``. Two items of
        equal worth tie with probability e^lambda / (2 + e^lambda).

        Examples
        --------
        >>> ties = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
        ...                      max_rows=6, ties="davidson", design="public")
        >>> parameter = ties.fit(epsilon=np.inf).tie_parameter
        >>> parameter[["estimate", "lower", "upper"]].round(2).to_dict()
        {'estimate': -0.32, 'lower': -0.62, 'upper': -0.04}
        """
        return tie_series(self._inference(), self.alpha)

    @property
    def llf(self) -> float:
        """Log-likelihood of all answers at the estimates, without privacy.

        A tie without a parameter counts as half an answer for each item.

        Examples
        --------
        >>> round(model.fit(epsilon=np.inf, penalty=0).llf, 2)
        -320.81
        """
        return log_likelihood(self.release, self._equations(), self.estimate.coefficients)

    def compare_lr_test(self, restricted: BTLResult) -> pd.Series[Any]:
        """Test a nested model by the likelihood ratio, without privacy.

        The result is a series of ``statistic``, ``df`` and ``pvalue``. The test treats answers as
        independent. If respondents gave several answers, :meth:`wald_test_terms` keeps its level
        and this test does not.

        Parameters
        ----------
        restricted : BTLResult
            Fit of the smaller model to the same frame, with ``penalty=0``; its formula leaves out
            terms. With ``ties="davidson"`` both models have one tie parameter common to all groups.

        Raises
        ------
        TypeError, ValueError
            If a fit is private or not a maximum-likelihood fit, or the models are not nested.

        Examples
        --------
        >>> by_sex = pr.PrivateBTL.from_formula(
        ...     "item1 + item2 + outcome ~ sex", fears.comparisons.merge(
        ...         fears.students.reset_index(), on="respondent"), respondent="respondent",
        ...     items=fears.items, max_rows=6, ties=True, design="public")
        >>> larger, smaller = (one.fit(epsilon=np.inf, penalty=0) for one in (by_sex, model))
        >>> test = larger.compare_lr_test(smaller)
        >>> test.astype(float).round(3).to_dict()
        {'statistic': 2.181, 'df': 3.0, 'pvalue': 0.536}
        """
        if not isinstance(restricted, BTLResult):
            raise TypeError("restricted must be a fit of PrivateBTL, of the same answers.")
        fits = ((fit.release, fit._equations(), fit.estimate) for fit in (self, restricted))
        return likelihood_ratio(*fits)

    @property
    def design_effect(self) -> float:
        """Largest design effect of a shown estimate or a difference of two.

        A design effect is a variance divided by the variance for independent answers; it is 1 if
        answers are taken as independent. If the summary says "at most", the number is an upper
        bound and not an estimate: the noise of the release then covers every value that answers can
        have.

        Examples
        --------
        >>> round(result.design_effect, 2)
        2.03
        """
        return contrasts.largest_effect(self._inference().errors, self._display())

    @cached_result
    def _own_limits(self) -> tuple[FloatArray, FloatArray]:
        lower, upper = scoretests.intervals(self._inference(), self._display(), self.alpha)
        return readonly_copy(lower, np.float64), readonly_copy(upper, np.float64)

    def _unlimited(self) -> dict[str, str]:
        infinite = self.conf_int()[self.params.notna()].isin([-np.inf, np.inf])
        words = {(True, True): "no limit", (True, False): "no lower limit"}
        rows = zip(infinite.index, infinite["lower"], infinite["upper"], strict=True)
        return {
            str(term): words.get((low, high), "no upper limit")
            for term, low, high in rows
            if low or high
        }

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance matrix of the estimates.

        Examples
        --------
        >>> result.cov_params().loc["crimRate"].round(4).to_dict()
        {'crimRate': 0.034, 'position': -0.0112, 'socBurd': -0.0085, 'culture': -0.0143}
        """
        names = list(self._names)
        known = self._named(np.ones(len(names)), "").to_numpy()
        covariance = propagate(self._display(), self._inference().errors.total)
        return pd.DataFrame(covariance * np.outer(known, known), names, names)

    def conf_int(self, alpha: float | None = None, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return confidence intervals of the estimates, columns ``lower`` and ``upper``.

        An interval contains all values that the score test of :meth:`test` does not reject. It is
        infinite where the scores set no limit.

        Parameters
        ----------
        alpha : float or None
            Significance level; None uses the level of the result, here and in all other methods.
        simultaneous : bool, default False
            Whether the intervals are simultaneous over all estimates (Bonferroni) instead of
            pointwise.

        See Also
        --------
        privrank.BTLResult.rank_conf_int : Confidence sets of ranks.
        privrank.BTLResult.pairwise : Intervals of all pairs.

        Examples
        --------
        >>> result.conf_int().round(2)
                  lower  upper
        item
        crimRate   0.24   1.00
        position  -0.66   0.07
        socBurd   -0.09   0.63
        culture   -0.99  -0.21
        """
        shown = self._display()
        # Bonferroni: each of p intervals at level alpha / p
        level = self._level(alpha) / (len(shown) ** check_flag("simultaneous", simultaneous))
        limits = (
            self._own_limits()
            if level == self.alpha
            else scoretests.intervals(self._inference(), shown, level)
        )
        return pd.DataFrame(dict(zip(("lower", "upper"), limits, strict=True)), self.params.index)

    def wald_test_terms(self) -> pd.DataFrame:
        """Test every term of the formula, each given all the others.

        The table has one row per term and columns ``statistic``, ``df`` and ``pvalue``. The row of
        the intercept tests equal worths in the reference group. Each test is the joint score test
        of :meth:`test`.

        Examples
        --------
        >>> answers = fears.comparisons.merge(fears.students, on="respondent")
        >>> by_sex = pr.PrivateBTL.from_formula(
        ...     "item1 + item2 + outcome ~ sex", answers, respondent="respondent", max_rows=6,
        ...     ties=True, design="public", levels=fears.levels)
        >>> by_sex.fit(epsilon=np.inf).wald_test_terms().round(3)
                   statistic  df  pvalue
        term
        Intercept     26.109   3   0.002
        sex            2.908   3   0.600
        """
        tests = contrasts.term_tests(self._inference())
        frame = pd.DataFrame(list(tests.values()), index=pd.Index(list(tests), name="term"))
        return frame.drop(columns="draws")

    def test_lack_of_fit(self) -> pd.Series[Any]:
        """Test that the item covariates explain the worths of all items.

        The unrestricted model is fitted to the same release, at no additional privacy cost. H0
        states that its worths are linear combinations of the item covariates. The result is a
        series of ``statistic``, ``df`` and ``pvalue``.

        Raises
        ------
        ValueError
            If the model has no item covariates, or as many of them as identified worths.

        Examples
        --------
        >>> import pandas as pd
        >>> topics = pd.DataFrame({"money": [0.0, 1.0, 1.0, 0.0]}, index=fears.items)
        >>> by_topic = pr.PrivateBTL.from_formula(
        ...     "item1 + item2 + outcome ~ 1", fears.comparisons, item_formula="money",
        ...     item_data=topics, respondent="respondent", max_rows=6, ties=True, design="public")
        >>> test = by_topic.fit(epsilon=np.inf).test_lack_of_fit()
        >>> int(test["df"]), bool(test["pvalue"] < 0.01)
        (2, True)
        """
        test = contrasts.lack_of_fit(self._inference())
        return pd.Series(
            (test.statistic, test.df, test.pvalue),
            index=["statistic", "df", "pvalue"],
            name="lack of fit",
        )

    def test(self, hypothesis: Any, values: Any = None) -> HypothesisTest:
        """Test jointly that linear equations of the coefficients hold.

        Parameters
        ----------
        hypothesis : str, or array of shape (rows, coefficients)
            Equations such as ``"a = b, c = 0.5"``, or the weights of their coefficients.
        values : array of shape (rows,), optional
            Right-hand sides of equations given as weights; by default 0.

        Returns
        -------
        HypothesisTest
            Statistic, degrees of freedom, p-value and intervals, and a check whether other values
            are in the confidence region.

        Raises
        ------
        ValueError
            If `hypothesis` is not a linear hypothesis, or its equations contradict each other.

        Notes
        -----
        Every p-value and interval of a fit comes from this test (:meth:`pairwise`,
        :meth:`conf_int`, :meth:`t_test`, ...). Equations that the release does not identify are not
        tested. If none is identified, the p-value is 1.

        Examples
        --------
        >>> result.test("crimRate = socBurd, position = culture").df
        2
        """
        given = hypothesis if values is None else (hypothesis, values)
        weights, constants = constraint(given, self._names)
        rows = fitted_rows(self._equations(), display(self.release.design), weights)
        described = equation_names((weights, constants), self._names)
        return HypothesisTest.of(self._inference(), described, rows, constants.ravel())

    def t_test(self, hypothesis: Any) -> ContrastTests:
        """Test linear hypotheses one by one, each by :meth:`test`.

        Examples
        --------
        >>> result.t_test("crimRate = culture")
                                   Tests of Contrasts
        ========================================================================
                               coef  std err        z    P>|z|   [0.025   0.975]
        ------------------------------------------------------------------------
        crimRate - culture   1.1894    0.315    3.386   <0.001    0.573    1.865
        ========================================================================
        Notes:
        [1] P-values and intervals are by score tests; standard errors describe
        the estimates.
        """
        shown = display(self.release.design)
        equations = constraint(hypothesis, self._names)
        return t_test(self._inference(), shown, self._names, equations)

    def wald_test(self, hypothesis: Any) -> HypothesisTest:
        """Test linear hypotheses jointly (:meth:`test` by its statsmodels name).

        Examples
        --------
        >>> test = result.wald_test("crimRate = socBurd, position = culture")
        >>> bool(0.2 < test.pvalue < 0.4)
        True
        """
        return self.test(hypothesis)

    def _settings(self) -> dict[str, Any]:
        return {"penalty": self.requested, "solver": self.solver}

    def _estimates(self) -> dict[str, Any]:
        tied = {"tie parameter": self.estimate.coefficients[-1]}
        estimates = {"params": dict(self.params.dropna()), "penalty": self.penalty}
        return estimates | (tied if self.release.design.davidson else {})

    def _shape(self) -> tuple[str, ...]:
        what = "items" if self._plain else "coefficients"
        return f"{len(self._names)} {what}", f"{self.nobs} {self.release.design.unit}s"

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
            tuple(self.items[k] for k in part) for part in self._equations().components.groups
        )

    def _map(self, at: At, *, every: bool = False) -> FloatArray:
        design = self.release.design
        return worth_map(design, groups_at(design.covariates, at, every=every))

    def _at(self, at: At) -> contrasts.Worths:
        return contrasts.Worths(self._inference(), self._map(at))

    def _values(self, at: At) -> FloatArray:
        """Return the worths without their covariance."""
        return matvec(
            self._equations().components.projected(self._map(at)), self.estimate.coefficients
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
        groups = groups_at(self.release.design.covariates, at, every=True)
        rows = [group | {"item": item} for group in groups for item in self.items]
        numbers = worth_columns(self._inference(), self._map(at, every=True), self.alpha)
        return pd.DataFrame(rows).assign(**numbers)

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
        worths = self._values(at)
        return self._series(shares_of(worths, self._several(worths)), "worth")

    def ranks(self, at: At = None) -> pd.Series[Any]:
        """Return ranks, 1 = most preferred; equal worths share a rank (1, 1, 3).

        If comparisons do not connect all items, items are ranked within their components
        (:attr:`components`).

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

    def _several(self, worths: FloatArray) -> list[IntArray]:
        """Return the parts of more than one item, or the part of the only item."""
        return [
            part
            for part in self._equations().components.groups
            if len(part) > 1 or len(worths) == 1
        ]

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
            Values of the covariates. No order effect is included: neither item counts as named
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
            all answers: ``win``, ``tie`` and ``loss`` of item1.

        Examples
        --------
        >>> table = result.pairwise().set_index(["item1", "item2"])
        >>> table.loc[("crimRate", "culture"), ["difference", "pvalue"]].round(4).to_dict()
        {'difference': 1.1894, 'pvalue': 0.0007}
        """
        return pair_table(self._at(at), self._level(alpha), simultaneous=simultaneous)

    def predict(self, frame: pd.DataFrame, alpha: float | None = None) -> pd.DataFrame:
        """Predict the preferred item of each pair.

        Parameters
        ----------
        frame : DataFrame
            Columns ``item1``, ``item2`` and the covariates of the model; with an order effect item1
            is the item named first.

        Returns
        -------
        DataFrame
            ``probability`` that item1 is preferred, ``lower`` and ``upper``, with the index of
            `frame`. With ties the columns are ``preferred_plus_half_ties``, or ``win``, ``tie``,
            ``loss`` and ``preferred_if_decided`` (see :meth:`pairwise`).

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
        shown = predictors_of(frame, self.release.design)
        inference = self._inference()
        t = shown @ self.estimate.coefficients
        t = np.where(inference.equations.components.identifies(shown), t, np.nan)
        lower, upper = scoretests.intervals(inference, shown, self._level(alpha))
        sides = {probability_name([self.release]): t, "lower": lower, "upper": upper}
        probabilities = {name: self.link.probability(side) for name, side in sides.items()}
        return pd.DataFrame(answer_columns(t, inference) | probabilities, index=frame.index)

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
        return probability_table(self._values(at), self.release, self._equations())

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
        return quasi_table(self._at(at))

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
        inside = self._equations().components.within(self._map(at))
        return HypothesisTest.of(self._inference(), self.items, inside, np.zeros(len(inside)))

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
            ``item1, item2, outcome`` without an order effect, and with ties only if these have a
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
        worths = self._values(at)
        if form == "rankings":
            frame = pd.DataFrame(PlackettLuce(worths).rvs(size, source), columns=list(self.items))
        else:
            tie = float(self.estimate.coefficients[-1])
            frame = _comparisons(release, worths, tie, size, source)
        seeded = ", seeded noise" if release.source == "seeded" else ""
        words = f"drawn from a fitted model, {guarantee.caption(release)}{seeded}"
        frame.attrs["synthetic"] = words
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
        frame = self._fit_frame("worth" if self._plain else "coef", z=self.tvalues)
        if not self._plain:
            return self._cautioned(frame)
        frame = frame.assign(rank=self.ranks()).join(self.rank_conf_int().add_prefix("rank_"))
        # ranks are within a component: sort by the size of the component, then by rank
        parts = sorted(self._equations().components.groups, key=len, reverse=True)
        sorted_parts = [frame.iloc[part].sort_values("rank", kind="stable") for part in parts]
        return self._cautioned(pd.concat(sorted_parts))

    def _warned(self) -> list[str]:
        return [*self.warnings, *guarantee.effect_notes(self.release)]

    @cached_result
    def _cautions(self) -> tuple[str, ...]:
        return (*self._warned(), *limit_notes(self))

    def _table(self, details: bool) -> tables.Table:
        return fit_table(self, details)

    def plot_worth(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot worths with sampling-only and full intervals.

        With covariates the worths of every group are plotted.

        Examples
        --------
        >>> result.plot_worth().axes[0].get_xlabel()
        'worth (log-odds, mean 0)'
        """
        facts = self.release.design.covariates
        name = self.link.name
        seeded = self.release.source == "seeded"
        heading = f"{self.link.model} worths ({guarantee.caption(self.release)})"
        if facts is None:
            return plots.worth(self.to_frame(), self.alpha, heading, name, seeded=seeded, ax=ax)
        return plots.group_worths(
            self.worths(),
            [factor for factor, _ in facts.factors],
            f"{plots.worth_label(name)}, {plots.interval_words(self.alpha)}",
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
        order = [name for name in self.to_frame().index if self._plain] or list(
            self.ranks(at).sort_values(kind="stable").index
        )
        table = self.probabilities(at).loc[order, order]
        label = {
            False: "P(row preferred)",
            True: "P(row preferred) + P(tie)/2",
            "davidson": "P(row preferred | no tie)",
        }[self.release.design.ties]
        caption = f"Preference probabilities ({guarantee.caption(self.release)})"
        seeded = self.release.source == "seeded"
        return plots.pairwise(table, caption, label, seeded=seeded, ax=ax)

    def plot(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot the worths (:meth:`plot_worth`).

        Examples
        --------
        >>> result.plot().axes[0].get_xlabel()
        'worth (log-odds, mean 0)'
        """
        return self.plot_worth(ax=ax)

    def _lines(self) -> dict[str, Any]:
        tied = {TIE_ROW: float(self.estimate.coefficients[-1])}
        return tied if self.release.design.davidson else {}


def _comparisons(
    release: Release, worths: FloatArray, tie: float, size: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Return `size` comparisons of every pair, in the order of the items."""
    names = np.array(release.survey.items, dtype=object)
    first, second = (np.repeat(side, size) for side in np.triu_indices(len(names), 1))
    difference = worths[first] - worths[second]
    if release.design.davidson:
        won, tied, _ = answer_probabilities(difference, tie)
    else:
        won = release.link.probability(difference)
        tied = np.zeros(len(difference))
    uniform = rng.random(len(difference))
    outcome = np.where(uniform < won, 1, np.where(uniform < won + tied, 0, -1))
    return pd.DataFrame({"item1": names[first], "item2": names[second], "outcome": outcome})
