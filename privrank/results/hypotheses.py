"""Tests of linear hypotheses, as statsmodels has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank import tables
from privrank.formula import constraint
from privrank.solvers import pseudo_inverse, rank

__all__ = ["t_test", "wald_test"]

FloatArray = NDArray[np.float64]


def t_test(params: pd.Series[float], covariance: FloatArray, hypothesis: Any) -> Any:
    """Test linear hypotheses one by one; see :func:`privrank.formula.constraint`."""
    rows = constraint(hypothesis, [str(name) for name in params.index])
    return tables.wald_results(params, covariance).t_test(rows)


def wald_test(params: pd.Series[float], covariance: FloatArray, hypothesis: Any) -> Any:
    """Test linear hypotheses jointly; see :func:`privrank.formula.constraint`."""
    weights, constants = constraint(hypothesis, [str(name) for name in params.index])
    value = weights @ params.to_numpy() - np.ravel(constants)
    middle = weights @ covariance @ weights.T
    return tables.chi_squared(float(value @ pseudo_inverse(middle) @ value), rank(middle))
