"""The test that all items are equally preferred."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["HomogeneityResult"]


@dataclass(frozen=True, slots=True)
class HomogeneityResult:
    """Test that all items are equally preferred.

    Parameters
    ----------
    statistic : float
        Quadratic form of the noisy scores in their covariance under the null hypothesis.
    pvalue : float
        Monte Carlo p-value under normal sampling error plus the exact noise law.
    df : int
        Degrees of freedom of the chi-square law that holds without noise.
    draws : int
        Size of the null table; the p-value is a multiple of 1 / (draws + 1).
    """

    statistic: float
    pvalue: float
    df: int
    draws: int

    @property
    def pvalue_error(self) -> float:
        """Monte Carlo standard error of the p-value."""
        return math.sqrt(self.pvalue * (1.0 - self.pvalue) / (self.draws + 1))
