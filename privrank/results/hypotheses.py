"""Tests of linear hypotheses, as statsmodels has them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from privrank.bradley_terry.contrasts import standard_errors
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.jointtests import joint_test
from privrank.bradley_terry.score import ScoreEquations
from privrank.bradley_terry.scoretests import intervals, pvalues
from privrank.results.tables import Forms, Table, interval_heads, printed, pvalue_cell
from privrank.util.arrays import FloatArray, immutable
from privrank.util.checks import check_alpha

# Weights of the coefficients by row, and the constants that they are compared with.
Linear = tuple[FloatArray, FloatArray]


def score_notes(inference: Inference) -> tuple[str, ...]:
    """Return what a table of contrasts says of its tests; of many items they are Wald's."""
    said = "P-values and intervals are by scores; standard errors describe the estimates."
    return () if inference.many else (said,)


# Letters of the name of a contrast that are shown.
_LONGEST = 60


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ContrastTests:
    """Tests of linear hypotheses one by one, with the words of statsmodels.

    Parameters
    ----------
    names : tuple of str
        The contrasts, as they are printed.
    effect : ndarray, shape (rows,)
        Their estimates.
    sd : ndarray, shape (rows,)
        Standard errors of these.
    pvalue : ndarray, shape (rows,), or a number where there is one row
        P-values of score tests (:mod:`privrank.bradley_terry.scoretests`), as in all tables.
    constants : ndarray, shape (rows,)
        What the contrasts are compared with.
    weights : ndarray, shape (rows, p)
        The contrasts as weights of the fitted coefficients.
    _inference : Inference
        The fit.

    See Also
    --------
    privrank.BTLResult.t_test : Makes them.

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

    names: tuple[str, ...]
    effect: FloatArray
    sd: FloatArray
    pvalue: FloatArray
    constants: FloatArray
    weights: FloatArray
    _inference: Inference = field(repr=False)

    @property
    def tvalue(self) -> FloatArray:
        """Normal quantiles that are as probable as the p-values, with the sign of the effects.

        Examples
        --------
        >>> tests.tvalue.round(2)
        array([3.39])
        """
        return signed_z(self.effect - self.constants, np.atleast_1d(self.pvalue))

    @property
    def statistic(self) -> FloatArray:
        """Another name of `tvalue`.

        Examples
        --------
        >>> tests.statistic.round(2)
        array([3.39])
        """
        return self.tvalue

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Return confidence intervals of the contrasts, shape (rows, 2).

        Infinite where scores set no limit.

        Examples
        --------
        >>> tests.conf_int().round(2)
        array([[0.57, 1.87]])
        """
        return np.column_stack(intervals(self._inference, self.weights, check_alpha(alpha)))

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
        numbers = {
            "coef": self.effect,
            "std_err": self.sd,
            "z": self.tvalue,
            "pvalue": np.atleast_1d(self.pvalue),
            "lower": lower,
            "upper": upper,
        }
        return pd.DataFrame(numbers, index=pd.Index(self.names, name="contrast"))

    def summary(self, alpha: float = 0.05) -> Table:
        """Return the tests as a table; `alpha` is one minus the level of its intervals.

        Examples
        --------
        >>> for line in str(tests.summary(alpha=0.1)).splitlines()[2:5]:
        ...     print(line)
                               coef  std err        z    P>|z|    [0.05    0.95]
        ------------------------------------------------------------------------
        crimRate - culture   1.1894    0.315    3.386   <0.001    0.678    1.740
        """
        forms: Forms = {
            "coef": "{:.4f}",
            "std_err": "{:.3f}",
            "z": "{:.3f}",
            "pvalue": pvalue_cell,
            "lower": "{:.3f}",
            "upper": "{:.3f}",
        }
        return Table(
            title="Tests of Contrasts",
            header=(),
            columns=("", "coef", "std err", "z", "P>|z|", *interval_heads(alpha)),
            rows=printed(self.summary_frame(alpha), forms),
            notes=score_notes(self._inference),
        )

    def __repr__(self: Any) -> str:
        """Show the table."""
        return str(self.summary().as_text())

    def _repr_html_(self: Any) -> str:
        return str(self.summary().as_html())


def _contrast_name(weights: FloatArray, constant: float, names: Sequence[str]) -> str:
    """Return a contrast as a reader writes it, such as "a - b" or "0.5 a + 0.5 b - c = 1"."""
    text = ""
    for weight, name in zip(weights, names, strict=True):
        if weight != 0:
            sign = (" - " if weight < 0 else " + ") if text else "-" * bool(weight < 0)
            text += sign + (name if abs(weight) == 1 else f"{abs(weight):g} {name}")
    text += f" = {constant:g}" * bool(constant)
    return textwrap.shorten(text, _LONGEST, placeholder=" ...")


def fitted_rows(equations: ScoreEquations, display: FloatArray, weights: FloatArray) -> FloatArray:
    """Return hypotheses about shown coefficients as ones about fitted ones, shape (rows, p).

    Given the map from fitted to shown coefficients. A worth alone is about the mean of its part; a
    comparison of items of two parts stays one that the release does not identify.
    """
    rows, inside = weights @ display, weights @ equations.within(display)
    alone = np.count_nonzero(weights, axis=1) == 1
    known = equations.identifies(rows) | (alone & inside.any(axis=1))
    return np.where(known[:, None], inside, rows)


def t_test(
    inference: Inference, display: FloatArray, names: Sequence[str], hypothesis: Linear
) -> ContrastTests:
    """Test linear hypotheses one by one; see :func:`privrank.util.formula.constraint`.

    Given the map from fitted to shown coefficients, and their names.
    """
    weights, constants = hypothesis
    rows = fitted_rows(inference.equations, display, weights)
    constants = constants.ravel()
    known = inference.equations.identifies(rows)
    effect = np.where(known, rows @ inference.fitted.coefficients, np.nan)
    sd = np.where(known, standard_errors(rows, inference.errors.total), np.nan)
    return ContrastTests(
        equation_names(hypothesis, names),
        effect,
        sd,
        np.squeeze(pvalues(inference, rows, constants)),
        constants,
        rows,
        inference,
    )


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HypothesisTest:
    """A test of a linear hypothesis about the coefficients: that all its equations hold.

    Parameters
    ----------
    names : tuple of str
        The equations, as they are printed.
    statistic : float
        Quadratic form of the scores; of one equation the square of `zvalue`. Missing where the
        release identifies nothing of the hypothesis.
    df : int
        Number of equations that the release identifies, without repetitions.
    pvalue : float
        Of one equation as in all tables; of several Monte Carlo, under sampling error plus the
        exact noise.
    draws : int
        Size of the null table, of which the p-value is a multiple of 1 / (draws + 1); 0 for one
        equation.
    weights, constants : ndarray, shapes (rows, p) and (rows,)
        The hypothesis: weights of the fitted coefficients, and what they are compared with.
    _inference : Inference
        The fit.

    See Also
    --------
    privrank.BTLResult.test : Makes them.

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

    names: tuple[str, ...]
    statistic: float
    df: int
    pvalue: float
    draws: int
    weights: FloatArray = field(repr=False)
    constants: FloatArray = field(repr=False)
    _inference: Inference = field(repr=False)

    @classmethod
    def of(
        cls, inference: Inference, names: Sequence[str], rows: FloatArray, constants: FloatArray
    ) -> HypothesisTest:
        """Test that combinations of the fitted coefficients have these values.

        Examples
        --------
        >>> given = test.names[:2], test.weights[:2], test.constants[:2]
        >>> pr.results.hypotheses.HypothesisTest.of(test._inference, *given).df
        2
        """
        test = joint_test(inference, rows, constants)
        numbers = test.statistic, test.df, test.pvalue, test.draws
        return cls(tuple(names), *numbers, rows, constants, inference)

    @property
    def pvalue_error(self) -> float:
        """Monte Carlo standard error of the p-value.

        Examples
        --------
        >>> round(test.pvalue_error, 4)
        0.0004
        """
        if self.draws == 0:
            return 0.0
        return math.sqrt(self.pvalue * (1.0 - self.pvalue) / (self.draws + 1))

    @property
    def zvalue(self) -> float:
        """Normal quantile that is as probable as the p-value; of one equation with its sign.

        Examples
        --------
        >>> round(test.zvalue, 1)
        3.0
        """
        if len(self.weights) > 1:
            return float(z_of(np.array(self.pvalue)))
        effect = float(self.weights[0] @ self._inference.fitted.coefficients)
        return float(signed_z(np.array(effect - self.constants[0]), np.array(self.pvalue)))

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Return the confidence intervals of the left sides of the equations, shape (rows, 2).

        Each by itself; of several :meth:`contains` says what holds for all at once.

        Examples
        --------
        >>> test.conf_int().shape
        (4, 2)
        """
        return np.column_stack(intervals(self._inference, self.weights, check_alpha(alpha)))

    def contains(self, constants: Any, alpha: float = 0.05) -> bool:
        """Whether right sides of the equations are in their joint confidence region.

        Examples
        --------
        >>> test.contains([0.0, 0.0, 0.0, 0.0])
        False
        """
        values = np.broadcast_to(np.asarray(constants, dtype=np.float64), len(self.weights))
        return bool(joint_test(self._inference, self.weights, values).pvalue >= check_alpha(alpha))

    def summary(self) -> Table:
        """Return the test as a table.

        Examples
        --------
        >>> print(str(test.summary()).splitlines()[4])
        4 equations      20.13        3    0.003
        """
        frame = pd.DataFrame(
            {"statistic": [self.statistic], "df": [self.df], "pvalue": [self.pvalue]},
            index=[self.names[0] if len(self.names) == 1 else f"{len(self.names)} equations"],
        )
        return Table(
            title="Test of a Hypothesis",
            header=(),
            columns=("", "statistic", "df", "p-value"),
            rows=printed(frame, {"statistic": "{:.2f}", "df": "{:.0f}", "pvalue": pvalue_cell}),
            notes=score_notes(self._inference),
        )

    __repr__ = ContrastTests.__repr__
    _repr_html_ = ContrastTests._repr_html_


def z_of(pvalue: FloatArray) -> FloatArray:
    """Return the normal quantiles of two-sided p-values."""
    return np.asarray(-ndtri(np.maximum(0.5 * pvalue, 1e-300)) + 0.0)


def signed_z(effect: FloatArray, pvalue: FloatArray) -> FloatArray:
    """Return the same with the signs of effects; 0, and never -0, where nothing is identified."""
    return np.asarray(np.sign(np.nan_to_num(effect)) * z_of(pvalue) + 0.0)


def equation_names(hypothesis: Linear, names: Sequence[str]) -> tuple[str, ...]:
    """Return the equations of a hypothesis as a reader writes them."""
    weights, constants = hypothesis
    return tuple(
        _contrast_name(*row, names) for row in zip(weights, constants.ravel(), strict=True)
    )
