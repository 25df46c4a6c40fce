"""The coefficients of a private Bradley-Terry fit: estimates, errors, intervals and tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from privrank.bradley_terry import contrasts, scoretests
from privrank.bradley_terry.contrasts import standard_errors
from privrank.bradley_terry.estimate import Covariance, Estimate
from privrank.bradley_terry.fit import Solver
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.linear import display, names_shown
from privrank.bradley_terry.score import ScoreEquations, score_equations
from privrank.distributions.links import Link
from privrank.results.base import Result, once
from privrank.results.hypotheses import (
    ContrastTests,
    HypothesisTest,
    equation_names,
    fitted_rows,
    signed_z,
    t_test,
)
from privrank.results.likelihood import likelihood_ratio, log_likelihood
from privrank.results.pairs import tie_series
from privrank.util.arrays import FloatArray, immutable, own
from privrank.util.checks import check_flag
from privrank.util.formula import constraint
from privrank.util.solvers import applied, carried


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Coefficients(Result):
    """The coefficients of a fit, worths or those of covariates; a base of its result.

    Parameters
    ----------
    requested : float or "auto"
        Ridge that was asked for.
    solver : {"newton", "lbfgs", "cvxpy"}
        Solver of the fit.
    estimate : Estimate
        Fitted coefficients: the centred worths, or with covariates those on contrasts of items.
    warnings : tuple of str
        What to read with care.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> result = model.fit(epsilon=1.0, rng=np.random.default_rng(1))
    >>> isinstance(result, pr.BTLResult)
    True
    """

    requested: float | Literal["auto"]
    solver: Solver
    estimate: Estimate = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def _plain(self) -> bool:
        return self.release.design.covariates is None

    @property
    def _names(self) -> tuple[str, ...]:
        return names_shown(self.release.design)

    @once
    def _inference(self) -> Inference:
        return Inference.of(self.release, self.estimate)

    def _covariance(self) -> Covariance:
        return self._inference().errors

    @once
    def _equations(self) -> ScoreEquations:
        return score_equations(self.release)

    @once
    def _display(self) -> FloatArray:
        return own(self._equations().within(display(self.release.design)), np.float64)

    def _named(self, values: Any, name: str) -> pd.Series[Any]:
        """Return numbers by shown coefficient, missing where these are not identified."""
        index = pd.Index(self._names, name="item" if self._plain else "term")
        series = pd.Series(np.array(values), index=index, name=name)
        if self._equations().member is not None:
            # a row of zeros shows a coefficient that the released comparisons do not identify
            series = series.where(np.asarray(self._display().any(axis=1)), np.nan)
        return series

    def _errors(self, half: FloatArray, name: str) -> pd.Series[float]:
        """Return the standard errors by one source of error, of which a half is given."""
        variances = self._covariance().variances(half, self._display())
        return self._named(np.sqrt(np.maximum(variances, 0.0)), name)

    def _estimated(self) -> FloatArray:
        return applied(self._display(), self.estimate.coefficients)

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
        """The loss whose minimum the estimates are, before its ridge.

        Examples
        --------
        >>> result.estimator
        'maximum likelihood'
        """
        return self._equations().estimator

    @property
    def penalty(self) -> float | Literal["auto"]:
        """Ridge gamma of the worths; with covariates, where it is a matrix, as it was asked for.

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
        """Centred worths on the scale of the link, larger is preferred; with covariates, terms.

        These are the worths of the reference group, then how each column changes them, which adds
        up to zero over the items; ``first`` is the advantage of the item named first.

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
        return self._named(standard_errors(self._display(), self._covariance().total), "std err")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Sampling part of the standard errors.

        Examples
        --------
        >>> result.bse_sampling.round(3).to_dict()
        {'crimRate': 0.146, 'position': 0.141, 'socBurd': 0.141, 'culture': 0.149}
        """
        return self._errors(self._covariance().sampled, "sampling")

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
        return self._errors(self._covariance().noisy, "privacy")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Normal quantiles that are as probable as the p-values, with the signs of the estimates.

        The p-values are of score tests, so that these are not quite estimates over `bse`.

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

    @once
    def _pvalues(self) -> FloatArray:
        return own(scoretests.pvalues(self._inference(), self._display()), np.float64)

    @property
    def tie_parameter(self) -> pd.Series[float]:
        """The tie parameter lambda of ``ties="davidson"``, with its errors and interval.

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
        """Log-likelihood of all answers at the estimates, of a run without privacy.

        A tie without a parameter counts as half an answer for each item.

        Examples
        --------
        >>> round(model.fit(epsilon=np.inf, penalty=0).llf, 2)
        -320.81
        """
        return log_likelihood(self.release, self._equations(), self.estimate.coefficients)

    def compare_lr_test(self, restricted: Coefficients) -> pd.Series[Any]:
        """Test a model within this one by the likelihood ratio, both without privacy.

        A series of ``statistic``, ``df`` and ``pvalue``, as if answers were independent. Where
        respondents gave several, :meth:`wald_test_terms` keeps its level and this test does not.

        Parameters
        ----------
        restricted : BTLResult
            Of the smaller model for the same frame, with ``penalty=0``; its formula leaves out
            terms. With ``ties="davidson"`` the tie parameter is common to all groups in both.

        Raises
        ------
        TypeError, ValueError
            If a fit is private or not of maximum likelihood, or the models are not nested.

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
        if not isinstance(restricted, Coefficients):
            raise TypeError("restricted must be a fit of PrivateBTL, of the same answers.")
        fits = ((fit.release, fit._equations(), fit.estimate) for fit in (self, restricted))
        return likelihood_ratio(*fits)

    @property
    def design_effect(self) -> float:
        """Largest variance over that of independent answers, of a shown estimate or a difference.

        1 where answers are taken as independent. It is an upper bound, and no estimate, where the
        summary says "at most": the noise of the release then covers every value that answers can
        have.

        Examples
        --------
        >>> round(result.design_effect, 2)
        2.03
        """
        return contrasts.largest_effect(self._covariance(), self._display())

    @once
    def _own_limits(self) -> tuple[FloatArray, FloatArray]:
        lower, upper = scoretests.intervals(self._inference(), self._display(), self.alpha)
        return own(lower, np.float64), own(upper, np.float64)

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
        covariance = carried(self._display(), self._covariance().total)
        return pd.DataFrame(covariance * np.outer(known, known), names, names)

    def conf_int(self, alpha: float | None = None, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return confidence intervals of the estimates, columns ``lower`` and ``upper``.

        They hold all values that the score test of :meth:`test` does not reject, and are infinite
        where the scores set no limit.

        Parameters
        ----------
        alpha : float or None
            Significance level; None takes the result's own, here and in all other methods.
        simultaneous : bool, default False
            Cover all estimates at once (Bonferroni).

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

        One row per term, the intercept being equal worths in the reference group; columns
        ``statistic``, ``df`` and ``pvalue``. Each is the joint score test of :meth:`test`.

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

        The unrestricted model is fitted to the same release, at no cost; H0 says that its worths
        are linear combinations of the item covariates. A series of ``statistic``, ``df`` and
        ``pvalue``.

        Raises
        ------
        ValueError
            If the model has no item covariates, or as many as identified worths.

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
        """Test that linear equations of the coefficients hold, all at once.

        Parameters
        ----------
        hypothesis : str, or array of shape (rows, coefficients)
            Equations such as ``"a = b, c = 0.5"``, or their weights.
        values : array of shape (rows,), optional
            Right sides of the equations given as weights; by default 0.

        Returns
        -------
        HypothesisTest
            Statistic, degrees of freedom, p-value, interval, and whether other values are in the
            confidence region.

        Raises
        ------
        ValueError
            If it is no such hypothesis, or its equations contradict each other.

        Notes
        -----
        Every p-value and interval of a fit is of this test (:meth:`pairwise`, :meth:`conf_int`,
        :meth:`t_test`, ...). What the release does not identify is not tested: where that is the
        whole hypothesis, the p-value is 1.

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
        """Test linear hypotheses one by one, each as :meth:`test` does.

        Examples
        --------
        >>> result.t_test("crimRate = culture")
                                   Tests of Contrasts
        ========================================================================
                               coef  std err        z    P>|z|   [0.025   0.975]
        ------------------------------------------------------------------------
        crimRate - culture   1.1894    0.315    3.386   <0.001    0.573    1.865
        ========================================================================
        P-values and intervals are by scores; standard errors describe the
        estimates.
        """
        shown, equations = display(self.release.design), constraint(hypothesis, self._names)
        return t_test(self._inference(), shown, self._names, equations)

    def wald_test(self, hypothesis: Any) -> HypothesisTest:
        """Test linear hypotheses jointly: :meth:`test` by the name it has in statsmodels.

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
