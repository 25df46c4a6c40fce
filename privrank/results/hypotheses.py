"""Tests of linear hypotheses, as statsmodels has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank import tables
from privrank.formula import constraint

__all__ = ["t_test", "wald_test"]

FloatArray = NDArray[np.float64]


def t_test(params: pd.Series[float], covariance: FloatArray, hypothesis: Any) -> Any:
    """Test linear hypotheses one by one; see :func:`privrank.formula.constraint`."""
    rows = constraint(hypothesis, [str(name) for name in params.index])
    return tables.wald_results(params, covariance).t_test(rows)


def wald_test(params: pd.Series[float], covariance: FloatArray, hypothesis: Any) -> Any:
    """Test linear hypotheses jointly; see :func:`privrank.formula.constraint`."""
    rows = constraint(hypothesis, [str(name) for name in params.index])
    return tables.wald_results(params, covariance).wald_test(rows, use_f=False, scalar=True)
