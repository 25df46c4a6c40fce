"""The coefficients of a fit of paired comparisons: estimates, errors, tests and warnings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import ndtri

from privrank.bradley_terry import contrasts, scoretests
from privrank.bradley_terry.equations import ScoreEquations, released_total
from privrank.bradley_terry.estimate import WorthEstimate, nominal_information
from privrank.bradley_terry.fit import Solver
from privrank.bradley_terry.inference import Inference, attainable
from privrank.bradley_terry.paircounts import MAX_ERROR, Matching, pair_counts
from privrank.bradley_terry.predictor import display, names_shown
from privrank.distributions.links import Link
from privrank.release.names import GROUP_ANSWERS, MOMENTS
from privrank.release.release import Release
from privrank.release.survey import Design, effective_units
from privrank.results import guarantee, tables
from privrank.results.base import Result, cached_result
from privrank.results.claims import said, warned
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
from privrank.util.arrays import FloatArray, IntArray, immutable, readonly_copy
from privrank.util.checks import check_flag
from privrank.util.formula import constraint
from privrank.util.solvers import largest_ratio, matvec, propagate

TIE_ROW = "tie (log nu)"

# Number of respondents from which tests with known answers keep their level.
MIN_CLUSTERS = 8
MIN_REPEATING = 100

# Significance level of the check of proportional pair counts.
MATCHING_LEVEL = 0.05

# Largest relative standard error of the released number of answers of a group.
ROUGH = 1 / 4


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class CoefficientResult(Result):
    """The coefficients of a private Bradley-Terry fit, with their errors and tests.

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

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> result = model.fit(epsilon=1.0, rng=np.random.default_rng(1))
    """

    requested: float | Literal["auto"]
    solver: Solver
    estimate: WorthEstimate = field(repr=False)
    warnings: tuple[str, ...] = ()

    @cached_result
    def _inference(self) -> Inference:
        return Inference.of(self.release, self.estimate)

    @cached_result
    def _display(self) -> FloatArray:
        components = self._inference().equations.components
        return readonly_copy(components.within(display(self.release.design)), np.float64)

    def _named(self, values: Any, name: str) -> pd.Series[Any]:
        """Return a series by shown coefficient, missing if not identified."""
        design = self.release.design
        index = pd.Index(names_shown(design), name="item" if design.covariates is None else "term")
        # a row of zeros shows a coefficient that the released comparisons do not identify
        known = self._display().any(axis=1)
        return pd.Series(np.where(known, values, np.nan), index=index, name=name)

    def _errors(self, half: FloatArray, name: str) -> pd.Series[float]:
        """Return the standard errors from one source, given half its covariance."""
        variances = self._inference().errors.variances(half, self._display())
        return self._named(np.sqrt(np.maximum(variances, 0.0)), name)

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
        return self._inference().equations.fitted.estimator

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
        to zero over the items. Contest covariates come last.

        See Also
        --------
        privrank.BTLResult.worths : Worths of each group, with covariates.

        Examples
        --------
        >>> result.params.round(3).to_dict()
        {'crimRate': 0.607, 'position': -0.287, 'socBurd': 0.263, 'culture': -0.582}
        """
        return self._named(
            matvec(self._display(), self.estimate.coefficients),
            "worth" if self.release.design.covariates is None else "coef",
        )

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
        zvalues = signed_z(np.asarray(self.params), self._pvalues())
        return pd.Series(zvalues, self.params.index, name="z")

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
        inference = self._inference()
        if not inference.equations.tied:
            raise ValueError("tie_parameter is of fits with ties='davidson', and this is another.")
        errors = inference.errors
        b = self.estimate.coefficients
        row = np.eye(1, len(b), len(b) - 1)
        parts = {"std_err": errors.total, "sampling": errors.sampling, "privacy": errors.privacy}
        values = {
            name: float(contrasts.standard_errors(row, part)[0]) for name, part in parts.items()
        }
        lower, upper = scoretests.intervals(inference, row, self.alpha)
        return pd.Series(
            {
                "estimate": float(b[-1]),
                **values,
                "lower": float(lower[0]),
                "upper": float(upper[0]),
            },
            name="tie parameter",
        )

    @property
    def llf(self) -> float:
        """Log-likelihood of all answers at the estimates, without privacy.

        A tie without a parameter counts as half an answer for each item.

        Examples
        --------
        >>> round(model.fit(epsilon=np.inf, penalty=0).llf, 2)
        -320.81
        """
        return log_likelihood(self._inference())

    def compare_lr_test(self, restricted: CoefficientResult) -> pd.Series[Any]:
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
        if not isinstance(restricted, CoefficientResult):
            raise TypeError("restricted must be a fit of PrivateBTL, of the same answers.")
        return likelihood_ratio(self._inference(), restricted._inference())

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
    def _intervals(self, level: float) -> tuple[FloatArray, FloatArray]:
        lower, upper = scoretests.intervals(
            self._inference(), self._display(), level, self._pvalues()
        )
        return readonly_copy(lower, np.float64), readonly_copy(upper, np.float64)

    def _unlimited(self) -> dict[str, str]:
        infinite = self.conf_int()[self.params.notna()].isin([-np.inf, np.inf])
        words = {(True, True): "no limit", (True, False): "no lower limit"}
        return {
            str(term): words.get((low, high), "no upper limit")
            for term, low, high in infinite.itertuples()
            if low or high
        }

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance matrix of the estimates.

        Examples
        --------
        >>> result.cov_params().loc["crimRate"].round(4).to_dict()
        {'crimRate': 0.034, 'position': -0.0112, 'socBurd': -0.0085, 'culture': -0.0143}
        """
        known = self._named(np.ones(len(self._display())), "")
        covariance = propagate(self._display(), self._inference().errors.total)
        return pd.DataFrame(covariance * np.outer(known, known), [*known.index], [*known.index])

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
        # Bonferroni: each of p intervals at level alpha / p
        count = len(self._display()) if check_flag("simultaneous", simultaneous) else 1
        lower, upper = self._intervals(self._level(alpha) / count)
        return pd.DataFrame({"lower": lower, "upper": upper}, self.params.index)

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
        return pd.DataFrame(list(tests.values()), index=pd.Index(list(tests), name="term")).drop(
            columns="draws"
        )

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
        stated = hypothesis if values is None else (hypothesis, values)
        return HypothesisTest.of(self._inference(), *self._equations(stated))

    def _equations(self, hypothesis: Any) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
        """Return a hypothesis as names, weights of fitted coefficients and right-hand sides."""
        design = self.release.design
        names = names_shown(design)
        weights, constants = constraint(hypothesis, names)
        rows = fitted_rows(self._inference().equations, display(design), weights)
        return equation_names(weights, constants.ravel(), names), rows, constants.ravel()

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
        return t_test(self._inference(), *self._equations(hypothesis))

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
        design = self.release.design
        what = "items" if design.covariates is None else "coefficients"
        return f"{len(names_shown(design))} {what}", f"{self.nobs} {design.unit}s"

    def _warned(self) -> list[str]:
        return [*self.warnings, *guarantee.effect_notes(self.release)]

    @cached_result
    def _cautions(self) -> tuple[str, ...]:
        # an item that is not identified has NaN everywhere, and the covariance did not fail
        shown = self.params.notna()
        errors = self.bse[shown].to_numpy(dtype=np.float64)
        limits = said("no limit", self._unlimited())
        if self.release.design.davidson:
            ties = self.tie_parameter
            errors = np.append(errors, ties["std_err"])
            limits += [
                *said("nobody ties", math.isinf(ties["lower"])),
                *said("everybody ties", math.isinf(ties["upper"])),
            ]
        known = np.isfinite(errors).all() and self.conf_int()[shown].notna().all(axis=None)
        return (*self._warned(), *warned("uncertain", not known), *limits)

    def _lines(self) -> dict[str, Any]:
        tie = float(self.estimate.coefficients[-1])
        return {TIE_ROW: tie} if self.release.design.davidson else {}


def fit_warnings(
    release: Release, equations: ScoreEquations, fitted: WorthEstimate
) -> tuple[str, ...]:
    """Return the warnings about a fit."""
    facts = equations.covariates
    matching = equations.matching
    parts = equations.components.groups
    by_items = facts is not None and facts.item_columns and len(parts) == 1
    measured = MOMENTS[0] in release.parts
    units = effective_units(release.design)
    few = units < MIN_CLUSTERS
    repeated = measured and not few and not release.design.distinct_pairs
    messages = [
        *part_notes(release.design, parts, rough=matching is not None),
        *warned(
            "item covariates alone",
            by_items and pair_counts(release).get("member") is not None,
        ),
        *_weak_notes(release.design, equations),
        *warned("few respondents", measured and few, fewest=MIN_CLUSTERS),
        *warned(
            "repeated questions",
            repeated and units < MIN_REPEATING,
            fewest=MIN_REPEATING,
        ),
    ]
    if len(parts) == equations.items:  # no number is shown that needs a warning
        return (*messages, *guarantee.delta_notes(release))
    noisy = facts is None and release.source != "none" and len(equations.pairs.first) > 0
    # in the local model unanimous answers to a pair are on the boundary at every epsilon
    beyond = noisy and not attainable(
        equations.score[: equations.items], equations.pairs, equations.function
    )
    return (
        *messages,
        *warned(
            "infinite", fitted.infinite, estimates="worths" if facts is None else "coefficients"
        ),
        *warned("beyond", beyond),
        *warned("unfinished", not fitted.converged),
        *(_unlike_notes(matching) if matching is not None else []),
        *guarantee.delta_notes(release),
        *_rough_notes(equations),
        *_ridge_notes(release, equations, fitted),
    )


def part_notes(design: Design, parts: Sequence[IntArray], *, rough: bool = False) -> list[str]:
    """Return warnings about items that the released comparisons do not connect.

    If `rough`, the reason is that the counts of items are too noisy.
    """
    items = design.items
    alone = [items[part[0]] for part in parts if len(part) == 1 < len(items)]
    several = [part for part in parts if len(part) > 1]
    times = 1.0 / MAX_ERROR
    if len(alone) == len(items):
        key = "rough counts" if rough else "no item identified"
        return warned(f"{key}, rows" if design.max_rows > 1 else key, times=times)
    names = " and ".join("{" + ", ".join(items[k] for k in part) + "}" for part in several)
    key = "items too rough" if rough else "items not identified"
    return [
        *warned(key, alone, names=", ".join(alone), times=times),
        *warned("components", len(several) > 1, names=names),
    ]


def _unlike_notes(matching: Matching) -> list[str]:
    """Return a warning if the matching of opponents contradicts the model."""
    if not math.isfinite(matching.error):
        return warned(
            "matching rejected",
            matching.pvalue < MATCHING_LEVEL,
            pvalue=tables.format_pvalue(matching.pvalue),
        )
    margin = -float(ndtri(MATCHING_LEVEL)) * matching.error
    within = abs(matching.beta) - matching.most <= margin
    return warned("matching by worth", not within, beta=matching.beta, most=matching.most)


def _weak_notes(design: Design, equations: ScoreEquations) -> list[str]:
    """Return a warning about weakly identified items.

    For every weak cut these are the items on the smaller side.
    """
    weak = np.zeros(equations.items, dtype=bool)
    for side, _ in scoretests.hardly_identified(equations):
        inside = side > 0
        others = equations.components.together[np.argmax(inside)] & ~inside
        weak |= inside if inside.sum() <= others.sum() else others
    names = ", ".join(design.items[k] for k in np.flatnonzero(weak))
    return warned("weakly identified", names, names=names)


def _rough_notes(equations: ScoreEquations) -> list[str]:
    """Return a warning about groups with few answers relative to the noise."""
    facts = equations.covariates
    error = math.sqrt(equations.variance(GROUP_ANSWERS))
    if facts is None or error == 0.0:
        return []
    rough = [
        f"{', '.join(f'{name} {level}' for name, level in cell.items())} ({answers:.0f})"
        for cell, answers in zip(facts.cell_labels, equations.group_answers, strict=True)
        if error > ROUGH * answers
    ]
    return warned("rough groups", rough, error=error, groups="; ".join(rough))


def _ridge_notes(release: Release, equations: ScoreEquations, fitted: WorthEstimate) -> list[str]:
    """Return a warning if the ridge is large relative to the information."""
    ridge = fitted.worths_ridge(release.design)
    # without covariates the ridge and the information at equal worths and counts are numbers
    if not isinstance(ridge, np.ndarray):
        nominal = nominal_information(equations.items, released_total(equations), equations.fitted)
        most = ridge / nominal if nominal > 0 else math.inf
    else:
        curvature = equations.fitted.mean_curvature * equations.pairs.count
        linear = equations.linear
        if linear.worths is not None:  # no ridge for a tie parameter
            linear = linear.worths
            ridge = ridge[:-1, :-1]
        information = linear.information(np.asarray(curvature))
        p = len(ridge)
        # unidentified directions are not shown
        known = (
            linear.identity
            if equations.components.projection is None
            else equations.components.projection[:p, :p]
        )
        rest = np.trace(information + ridge) * (np.eye(len(known)) - known)
        # the largest eigenvalue of the ridge relative to the information, over all directions
        most = largest_ratio(ridge, information + rest) if ridge.any() else 0.0
    shown = f"{most:.3g}" if most < 100.0 else f"{most:,.0f}"
    return warned("large ridge", most > 1.0, most=shown)
