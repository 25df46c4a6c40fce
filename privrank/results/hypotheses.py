"""Tests of linear hypotheses, as statsmodels has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.bradley_terry.errors import NoisyErrors
from privrank.encode.formula import constraint
from privrank.results import tables
from privrank.util.solvers import pseudo_inverse, rank

__all__ = ["t_test", "wald_test"]

FloatArray = NDArray[np.float64]


def t_test(
    params: pd.Series[float], covariance: pd.DataFrame, errors: NoisyErrors, hypothesis: Any
) -> Any:
    """Test linear hypotheses one by one; see :func:`privrank.encode.formula.constraint`.

    Statistics are those of statsmodels; p-values and intervals are by the distribution of the
    errors.
    """
    weights, constants = constraint(hypothesis, [str(name) for name in params.index])
    result = tables.wald_results(params, covariance.to_numpy()).t_test((weights, constants))
    if not errors.normal_alone:
        away = weights @ params.to_numpy() - constants.ravel()
        result.pvalue = np.squeeze(errors.pvalues(weights, away))
        result.dist = _Quantiles(weights, errors, np.ravel(result.sd))
    return result


def wald_test(
    params: pd.Series[float], covariance: pd.DataFrame, errors: NoisyErrors, hypothesis: Any
) -> Any:
    """Test linear hypotheses jointly; see :func:`privrank.encode.formula.constraint`.

    The statistic is that of statsmodels; its p-value is Monte Carlo, by the distribution of the
    errors.
    """
    weights, constants = constraint(hypothesis, [str(name) for name in params.index])
    value = weights @ params.to_numpy() - np.ravel(constants)
    middle = weights @ covariance.to_numpy() @ weights.T
    inverse = pseudo_inverse(middle)
    statistic = float(value @ inverse @ value)
    result = tables.chi_squared(statistic, rank(middle))
    if not errors.normal_alone:
        pvalue = errors.wald_pvalue(weights, inverse, statistic, rank(middle))
        result.pvalue = np.asarray(pvalue)
        result.distribution = "Monte Carlo"
    return result


@dataclass(frozen=True, slots=True)
class _Quantiles:
    """Quantiles of t statistics, as ``conf_int`` of statsmodels asks for them."""

    weights: FloatArray
    errors: NoisyErrors
    sd: FloatArray

    def ppf(self, probability: float) -> FloatArray:
        """Return the quantile of each statistic for a probability above one half."""
        return self.errors.half_widths(self.weights, 2.0 * (1.0 - probability)) / self.sd
