"""Tests of linear hypotheses in statsmodels style, and likelihood ratios."""

from __future__ import annotations

import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtri

from privrank.bradley_terry.contrasts import joint_test, standard_errors
from privrank.bradley_terry.equations import ScoreEquations
from privrank.bradley_terry.estimate import objective
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.scoretests import intervals, pvalues
from privrank.release.names import TIES
from privrank.release.survey import INTERCEPT, Covariates
from privrank.results import tables
from privrank.results.claims import said
from privrank.util.arrays import FloatArray, immutable
from privrank.util.checks import check_alpha

# Number of letters of the name of a contrast that are shown.
_LONGEST = 60


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class LinearHypotheses(ABC):
    """Base class of tests of linear hypotheses about the coefficients of a fit.

    Parameters
    ----------
    names : tuple of str
        Printed names of the hypotheses.
    weights, constants : ndarray, shapes (rows, p) and (rows,)
        Weights of the fitted coefficients, and the hypothetical values of the combinations.
    _inference : Inference
        The fit.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> test = model.fit(epsilon=1.0, rng=np.random.default_rng(1)).t_test("crimRate = culture")
    """

    names: tuple[str, ...]
    weights: FloatArray = field(repr=False)
    constants: FloatArray = field(repr=False)
    _inference: Inference = field(repr=False)

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Return pointwise confidence intervals, shape (rows, 2).

        Limits are infinite where the scores set no limit.

        Examples
        --------
        >>> test.conf_int().round(2)
        array([[0.57, 1.87]])
        """
        return np.column_stack(intervals(self._inference, self.weights, check_alpha(alpha)))

    @abstractmethod
    def summary(self) -> tables.Table:
        """Return the tests as a table."""

    def __repr__(self) -> str:
        """Show the table."""
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class ContrastTests(LinearHypotheses):
    """Separate tests of linear hypotheses, with the attributes of statsmodels.

    Parameters
    ----------
    names : tuple of str
        Printed names of the contrasts.
    effect : ndarray, shape (rows,)
        Estimates of the contrasts.
    sd : ndarray, shape (rows,)
        Standard errors of the estimates.
    pvalue : ndarray, shape (rows,), or a number where there is one row
        P-values of score tests (:mod:`privrank.bradley_terry.scoretests`), the same tests that all
        tables report.
    constants : ndarray, shape (rows,)
        Hypothetical values of the contrasts.
    weights : ndarray, shape (rows, p)
        The contrasts as weights of the fitted coefficients.
    _inference : Inference
        The fit.

    See Also
    --------
    privrank.BTLResult.t_test : The method that computes these tests.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> tests = model.fit(epsilon=1.0, rng=np.random.default_rng(1)).t_test("crimRate = culture")
    >>> tests.effect.round(3), tests.sd.round(3), float(tests.pvalue.round(4))
    (array([1.189]), array([0.315]), 0.0007)
    """

    effect: FloatArray
    sd: FloatArray
    pvalue: FloatArray

    @property
    def tvalue(self) -> FloatArray:
        """Normal quantiles of the p-values, with the signs of the effects.

        Examples
        --------
        >>> tests.tvalue.round(2)
        array([3.39])
        """
        return signed_z(self.effect - self.constants, np.atleast_1d(self.pvalue))

    @property
    def statistic(self) -> FloatArray:
        """The same numbers as `tvalue`, by another statsmodels name.

        Examples
        --------
        >>> tests.statistic.round(2)
        array([3.39])
        """
        return self.tvalue

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return the table of the summary as a data frame.

        Examples
        --------
        >>> tests.summary_frame()[["coef", "std_err", "pvalue"]].round(4)
                              coef  std_err  pvalue
        contrast
        crimRate - culture  1.1894   0.3148  0.0007
        """
        lower, upper = self.conf_int(alpha).T
        return pd.DataFrame(
            {
                "coef": self.effect,
                "std_err": self.sd,
                "z": self.tvalue,
                "pvalue": np.atleast_1d(self.pvalue),
                "lower": lower,
                "upper": upper,
            },
            index=pd.Index(self.names, name="contrast"),
        )

    def summary(self, alpha: float = 0.05) -> tables.Table:
        """Return the tests as a table with intervals at level 1 - `alpha`.

        Examples
        --------
        >>> for line in str(tests.summary(alpha=0.1)).splitlines()[2:5]:
        ...     print(line)
                               coef  std err        z    P>|z|    [0.05    0.95]
        ------------------------------------------------------------------------
        crimRate - culture   1.1894    0.315    3.386   <0.001    0.678    1.740
        """
        return tables.laid_out(
            self.summary_frame(alpha),
            tables.fit_columns("coef", alpha, coef=tables.Column("coef", "{:z.4f}".format)),
            title="Tests of Contrasts",
            notes=tables.Notes(tests=said("score tests", not self._inference.many)),
        )


def _contrast_name(weights: FloatArray, constant: float, names: Sequence[str]) -> str:
    """Return a contrast as text, such as "a - b" or "0.5 a + 0.5 b - c = 1"."""
    text = ""
    for weight, name in zip(weights, names, strict=True):
        if weight != 0:
            sign = "-" if weight < 0 else "+"
            text += f" {sign} " if text else sign.removeprefix("+")
            text += name if abs(weight) == 1 else f"{abs(weight):g} {name}"
    if constant:
        text += f" = {constant:g}"
    return textwrap.shorten(text, _LONGEST, placeholder=" ...")


def fitted_rows(equations: ScoreEquations, display: FloatArray, weights: FloatArray) -> FloatArray:
    """Return weights of fitted coefficients from shown ones, shape (rows, p).

    The argument is the map from fitted to shown coefficients. A hypothesis about a single worth is
    relative to the mean of its component. A comparison of items from two components remains
    unidentified.
    """
    rows = weights @ display
    inside = weights @ equations.components.within(display)
    alone = np.count_nonzero(weights, axis=1) == 1
    known = equations.components.identifies(rows) | (alone & inside.any(axis=1))
    return np.where(known[:, None], inside, rows)


def t_test(
    inference: Inference, names: tuple[str, ...], rows: FloatArray, constants: FloatArray
) -> ContrastTests:
    """Test one by one that combinations of the fitted coefficients have given values."""
    known = inference.equations.components.identifies(rows)
    return ContrastTests(
        names=names,
        effect=np.where(known, rows @ inference.fitted.coefficients, np.nan),
        sd=np.where(known, standard_errors(rows, inference.errors.total), np.nan),
        pvalue=np.squeeze(pvalues(inference, rows, constants)),
        weights=rows,
        constants=constants,
        _inference=inference,
    )


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class HypothesisTest(LinearHypotheses):
    """A joint test of linear equations of the coefficients.

    Parameters
    ----------
    names : tuple of str
        Printed equations.
    statistic : float
        Quadratic form of the scores; for one equation the square of `zvalue`. Missing if the
        release identifies no part of the hypothesis.
    df : int
        Number of equations that the release identifies, without repetitions.
    pvalue : float
        For one equation, the p-value of all tables. For several equations, a Monte Carlo p-value
        under sampling error plus the exact noise.
    draws : int
        Number of Monte Carlo draws; the p-value is a multiple of 1 / (draws + 1). It is 0 for one
        equation.
    weights, constants : ndarray, shapes (rows, p) and (rows,)
        The hypothesis: weights of the fitted coefficients, and the right-hand sides.
    _inference : Inference
        The fit.

    See Also
    --------
    privrank.BTLResult.test : The method that computes this test.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> test = model.fit(epsilon=1.0, rng=np.random.default_rng(1)).test_homogeneity()
    >>> round(test.statistic, 1), test.df, round(test.pvalue, 3)
    (20.1, 3, 0.003)
    """

    statistic: float
    df: int
    pvalue: float
    draws: int

    @classmethod
    def of(
        cls, inference: Inference, names: Sequence[str], rows: FloatArray, constants: FloatArray
    ) -> HypothesisTest:
        """Test that combinations of the fitted coefficients have given values.

        Examples
        --------
        >>> given = test.names[:2], test.weights[:2], test.constants[:2]
        >>> pr.results.hypotheses.HypothesisTest.of(test._inference, *given).df
        2
        """
        test = joint_test(inference, rows, constants)
        return cls(
            names=tuple(names),
            statistic=test.statistic,
            df=test.df,
            pvalue=test.pvalue,
            draws=test.draws,
            weights=rows,
            constants=constants,
            _inference=inference,
        )

    @property
    def pvalue_error(self) -> float:
        """Monte Carlo standard error of the p-value.

        Examples
        --------
        >>> round(test.pvalue_error, 4)
        0.0004
        """
        variance = self.pvalue * (1.0 - self.pvalue) / (self.draws + 1)
        return math.sqrt(variance) if self.draws else 0.0

    @property
    def zvalue(self) -> float:
        """Normal quantile of the p-value; for one equation with its sign.

        Examples
        --------
        >>> round(test.zvalue, 1)
        3.0
        """
        effect = self.weights @ self._inference.fitted.coefficients - self.constants
        return float(signed_z(effect if len(effect) == 1 else np.ones(1), np.array(self.pvalue))[0])

    def contains(self, constants: Any, alpha: float = 0.05) -> bool:
        """Return whether right-hand sides are in the joint confidence region.

        Examples
        --------
        >>> test.contains([0.0, 0.0, 0.0, 0.0])
        False
        """
        values = np.broadcast_to(np.asarray(constants, dtype=np.float64), len(self.weights))
        return bool(joint_test(self._inference, self.weights, values).pvalue >= check_alpha(alpha))

    def summary(self) -> tables.Table:
        """Return the test as a table.

        Examples
        --------
        >>> print(str(test.summary()).splitlines()[4])
        4 equations      20.13        3    0.003
        """
        return tables.laid_out(
            pd.DataFrame(
                {"statistic": self.statistic, "df": self.df, "pvalue": self.pvalue},
                [self.names[0] if len(self.names) == 1 else f"{len(self.names)} equations"],
            ),
            {
                "statistic": tables.Column("statistic", "{:z.2f}".format),
                "df": tables.Column("df", str),
                "pvalue": tables.Column("p-value", tables.pvalue_cell),
            },
            title="Test of a Hypothesis",
            notes=tables.Notes(tests=said("score tests", not self._inference.many)),
        )


def signed_z(effect: FloatArray, pvalue: FloatArray) -> FloatArray:
    """Return normal quantiles of p-values with the signs of effects.

    The quantile is 0, and never -0, if nothing is identified.
    """
    quantiles = -ndtri(np.maximum(0.5 * pvalue, 1e-300))
    return np.asarray(np.sign(np.nan_to_num(effect)) * quantiles + 0.0)


def equation_names(
    weights: FloatArray, constants: FloatArray, names: Sequence[str]
) -> tuple[str, ...]:
    """Return the equations of a hypothesis as text."""
    rows = zip(weights, constants, strict=True)
    return tuple(_contrast_name(row, constant, names) for row, constant in rows)


def log_likelihood(fit: Inference) -> float:
    """Return the log-likelihood of all answers at the coefficients of a fit, without privacy.

    **Statistic.** For the logit it is score'b minus the sum over comparisons of log(2 cosh(d / 2)),
    or of log(2 cosh(d / 2) + nu) if ties have a parameter. For other links it is minus the log-loss
    of wins and losses. For choices from sets it is minus their loss and the logarithms of the
    numbers of possible answers.

    Raises
    ------
    ValueError
        If the release is private; it does not determine the likelihood.
    """
    if fit.release.source != "none":
        raise ValueError(
            "llf is of runs without privacy, as noisy counts have no likelihood of their own: fit "
            "with epsilon=numpy.inf, or test with wald_test_terms()."
        )
    equations = fit.equations
    b = fit.fitted.coefficients
    t = equations.linear.predict(b)
    (score, loss) = objective(equations)
    if equations.tied:  # with the observed number of ties, even if there is no finite fit
        score = np.append(score[:-1], fit.release.parts[TIES].values[0])
        return float(score @ b - loss.value(t))
    even = float((equations.count * equations.function.even).sum())
    return float(score @ b - loss.value(t) + loss.value(np.zeros_like(t)) - even)


def likelihood_ratio(larger: Inference, smaller: Inference) -> pd.Series[Any]:
    """Return the likelihood-ratio test of a nested model, without privacy.

    If answers are independent, twice the difference of log-likelihoods is asymptotically
    chi-squared under the smaller model. The degrees of freedom are the difference in the numbers of
    coefficients.

    Raises
    ------
    ValueError
        If the fits are not maximum-likelihood fits of nested models to the same answers.
    """
    gain = log_likelihood(larger) - log_likelihood(smaller)
    if any(
        np.any(fit.fitted.ridge) or fit.equations.fitted.estimator != "maximum likelihood"
        for fit in (larger, smaller)
    ):
        raise ValueError(
            "restricted and the larger model must be fits of maximum likelihood: fit both with "
            "penalty=0, from answers in which no item won or lost all its comparisons."
        )
    if _answers(larger) != _answers(smaller):
        raise ValueError(
            "restricted must be a fit to the same answers, with the same items, unit, ties and "
            "link: fit both models to one frame."
        )
    free, left = (
        int(np.rint(np.trace(fit.equations.linear.identity))) for fit in (larger, smaller)
    )
    nested = _within(smaller.release.design.covariates, larger.release.design.covariates)
    if not nested or free == left:
        raise ValueError(
            "restricted must leave out terms of the larger model's formula, and have no others: "
            "call compare_lr_test of the larger model with the smaller one."
        )
    statistic = max(2.0 * gain, 0.0)
    df = free - left
    return pd.Series(
        (statistic, df, float(chdtrc(df, statistic))),
        index=["statistic", "df", "pvalue"],
        name="likelihood ratio",
    )


def _answers(fit: Inference) -> tuple[Any, ...]:
    """Return the facts of a fit that do not depend on its covariates."""
    design = fit.release.design
    pairs = fit.equations.pairs
    m = fit.equations.items
    met = np.bincount(pairs.first % m * m + pairs.second % m, pairs.count, minlength=m * m)
    return design.items, design.nobs, design.unit, design.ties, fit.release.link, tuple(met)


def _within(smaller: Covariates | None, larger: Covariates | None) -> bool:
    """Return whether a model's columns and item covariates are in a larger model."""
    fewer = smaller or INTERCEPT
    more = larger or INTERCEPT
    of_items = {*more.item_columns}
    spanned = not of_items or (bool(fewer.item_columns) and {*fewer.item_columns} <= of_items)
    within = {*fewer.columns, *fewer.contest} <= {*more.columns, *more.contest}
    return within and spanned
