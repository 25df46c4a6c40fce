"""Tests of linear hypotheses, as statsmodels has them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from privrank.bradley_terry.errors import NoisyErrors
from privrank.bradley_terry.score import ScoreEquations
from privrank.results.tables import Table, interval_heads, printed, pvalue_cell
from privrank.util.arrays import FloatArray
from privrank.util.checks import check_alpha
from privrank.util.frozen import immutable
from privrank.util.solvers import carried, pseudo_inverse

# Weights of the coefficients by row, and the constants that they are compared with.
Linear = tuple[FloatArray, FloatArray]

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
    tvalue : ndarray, shape (rows,)
        Distances of the estimates from the hypotheses, over their standard errors.
    pvalue : ndarray, shape (rows,), or a number where there is one row
        How probable so large a distance is, by the distribution of the errors. Under noise this is
        not the p-value of a normal `tvalue`, which is then not printed.
    weights : ndarray, shape (rows, p)
        The contrasts as weights of the coefficients.
    errors : NoisyErrors
        Errors of the coefficients.

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
    (array([1.189]), array([0.315]), 0.0009)
    """

    names: tuple[str, ...]
    effect: FloatArray
    sd: FloatArray
    tvalue: FloatArray
    pvalue: FloatArray
    weights: FloatArray
    errors: NoisyErrors

    @property
    def statistic(self) -> FloatArray:
        """Another name of `tvalue`.

        Examples
        --------
        >>> tests.statistic.round(2)
        array([3.78])
        """
        return self.tvalue

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Return confidence intervals of the contrasts, shape (rows, 2).

        Examples
        --------
        >>> tests.conf_int().round(2)
        array([[0.56, 1.82]])
        """
        half = self.errors.half_widths(self.weights, check_alpha(alpha))
        return np.column_stack((self.effect - half, self.effect + half))

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return the table of the summary as a data frame.

        Examples
        --------
        >>> tests.summary_frame()[["coef", "std_err", "pvalue"]].round(4)
                              coef  std_err  pvalue
        contrast
        crimRate - culture  1.1894   0.3148  0.0009
        """
        lower, upper = self.conf_int(alpha).T
        named = {"coef": self.effect, "std_err": self.sd}
        named |= {name: self.tvalue for name in self._statistic}
        frame = pd.DataFrame(named, index=pd.Index(self.names, name="contrast"))
        return frame.assign(pvalue=np.atleast_1d(self.pvalue), lower=lower, upper=upper)

    @property
    def _statistic(self) -> tuple[str, ...]:
        """The name of the statistic, where the p-value is of its normal or t distribution."""
        if self.errors.noise is not None:
            return ()
        return ("z",) if math.isinf(self.errors.df) else ("t",)

    def summary(self, alpha: float = 0.05) -> Table:
        """Return the tests as a table; `alpha` is one minus the level of its intervals.

        Examples
        --------
        >>> for line in str(tests.summary(alpha=0.1)).splitlines()[2:5]:
        ...     print(line)
                               coef  std err  p-value    [0.05    0.95]
        ---------------------------------------------------------------
        crimRate - culture   1.1894    0.315   <0.001    0.669    1.710
        """
        frame, named = self.summary_frame(alpha), self._statistic
        numbers = dict.fromkeys(("std_err", *named), "{:.3f}")
        limits = dict.fromkeys(("lower", "upper"), "{:.3f}")
        heads = (*named, *(f"P>|{name}|" for name in named)) or ("p-value",)
        note = "P-values and intervals are by the distribution of sampling error plus noise."
        return Table(
            title="Tests of Contrasts",
            header=(),
            columns=("", "coef", "std err", *heads, *interval_heads(alpha)),
            rows=printed(frame, {"coef": "{:.4f}", **numbers, "pvalue": pvalue_cell, **limits}),
            notes=() if named else (note,),
        )

    def __repr__(self) -> str:
        """Show the table."""
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def _contrast_name(weights: FloatArray, constant: float, names: Sequence[str]) -> str:
    """Return a contrast as a reader writes it, such as "a - b" or "0.5 a + 0.5 b - c = 1"."""
    text = ""
    for weight, name in zip(weights, names, strict=True):
        if weight != 0:
            sign = (" - " if weight < 0 else " + ") if text else "-" * bool(weight < 0)
            text += sign + (name if abs(weight) == 1 else f"{abs(weight):g} {name}")
    text += f" = {constant:g}" * bool(constant)
    return textwrap.shorten(text, _LONGEST, placeholder=" ...")


def check_compared(equations: ScoreEquations, display: FloatArray, weights: FloatArray) -> None:
    """Refuse hypotheses about items that the released comparisons do not connect.

    Given the map from fitted to shown coefficients, and the weights of these.
    """
    if equations.member is None:
        return
    inside, shown = equations.identifies(weights @ display), equations.within(display)
    # or it is about one number that is printed
    alone = [np.count_nonzero(row) == 1 and shown[row != 0].any() for row in weights]
    if not (inside | np.array(alone)).all():
        raise ValueError(
            "hypothesis must compare items within one component of those that the released "
            "comparisons connect: see components."
        )


def t_test(
    params: pd.Series[float], covariance: pd.DataFrame, errors: NoisyErrors, hypothesis: Linear
) -> ContrastTests:
    """Test linear hypotheses one by one; see :func:`privrank.util.formula.constraint`.

    P-values and intervals are by the distribution of the errors.
    """
    known = [str(name) for name in params.index]
    weights, constants = hypothesis
    constants, effect = constants.ravel(), weights @ params.to_numpy()
    # w'Cw for every row w: the variance of the contrast
    variance = np.einsum("rp,pq,rq->r", weights, covariance.to_numpy(), weights, optimize=True)
    sd = np.sqrt(np.maximum(variance, 0.0))
    deviation = effect - constants
    return ContrastTests(
        tuple(_contrast_name(*row, known) for row in zip(weights, constants, strict=True)),
        effect,
        sd,
        np.divide(deviation, sd, np.full_like(deviation, np.nan), where=sd > 0),
        np.squeeze(errors.pvalues(weights, deviation)),
        weights,
        errors,
    )


def wald_test(
    params: pd.Series[float], covariance: pd.DataFrame, errors: NoisyErrors, hypothesis: Linear
) -> Any:
    """Test linear hypotheses jointly; see :func:`privrank.util.formula.constraint`.

    The statistic is that of statsmodels; its p-value is Monte Carlo, by the distribution of the
    errors.
    """
    weights, constants = hypothesis
    value = weights @ params.to_numpy() - np.ravel(constants)
    middle = carried(weights, covariance.to_numpy())
    # hypotheses that repeat each other make the covariance singular: its rank is the df
    inverse, df = pseudo_inverse(middle)
    statistic = float(value @ inverse @ value)
    # imported here, as it takes a while
    from statsmodels.stats.contrast import ContrastResults

    result = ContrastResults(
        chi2=statistic, statistic=statistic, df_denom=df, distribution="chi2", distargs=(df,)
    )
    # errors that are normal with a known covariance make the statistic chi-square
    if errors.noise is not None or math.isfinite(errors.df):
        pvalue = errors.wald_pvalue(weights, inverse, statistic, df)
        result.pvalue = np.asarray(pvalue)
        result.distribution = "Monte Carlo"
    return result
