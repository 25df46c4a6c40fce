"""The likelihood of a non-private fit in the words of statsmodels: properties of a result.

All of it raises ValueError where the result is private: the likelihood is a function of the exact
answers, which the release does not hold. Answers count as independent, and a tie as half a win to
each item, which where ties occur makes it a quasi-likelihood.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from privrank.bradley_terry.likelihood import Likelihood, why_none

if TYPE_CHECKING:
    from privrank.results.btl import BTLResult

__all__ = [
    "aic",
    "bic",
    "compare_lr_test",
    "deviance",
    "df_model",
    "df_resid",
    "glance",
    "llf",
    "llnull",
    "maximised",
]


def _of(result: BTLResult) -> Likelihood:
    return Likelihood.of(result.release, result.estimate)


def llf(result: BTLResult) -> float:
    """Log-likelihood at the estimates; non-private fits only."""
    return _of(result).llf


def llnull(result: BTLResult) -> float:
    """Log-likelihood where either answer has probability 1/2; non-private fits only."""
    return _of(result).llnull


def deviance(result: BTLResult) -> float:
    """Deviance of the single answers, -2 `llf`; non-private fits only."""
    return -2.0 * _of(result).llf


def df_model(result: BTLResult) -> int:
    """Degrees of freedom of the model, its free coefficients; non-private fits only."""
    return _of(result).df_model


def df_resid(result: BTLResult) -> float:
    """Residual degrees of freedom, comparisons less `df_model`; non-private fits only."""
    likelihood = _of(result)
    return likelihood.comparisons - likelihood.df_model


def aic(result: BTLResult) -> float:
    """Akaike's criterion, -2 `llf` + 2 `df_model`; non-private fits with ``penalty=0`` only."""
    return _of(result).criterion("aic", 2.0)


def bic(result: BTLResult) -> float:
    """Criterion of Schwarz: `aic` with the log of the number of comparisons in the place of 2."""
    likelihood = _of(result)
    return likelihood.criterion("bic", math.log(likelihood.comparisons))


def compare_lr_test(self: BTLResult, restricted: BTLResult) -> tuple[float, float, int]:
    """Test a nested fit of the same answers by the likelihood ratio; non-private fits only.

    Answers must be independent, so that fits of respondents with several rows are refused unless
    their independence was asserted when they were fitted; use :meth:`wald_test`,
    :meth:`wald_test_terms` or :meth:`test_lack_of_fit` there, whose errors allow for dependence.

    Parameters
    ----------
    restricted : BTLResult
        Fit with fewer coefficients, whose worths are a special case of this one's. Like this one
        without noise and with ``penalty=0``.

    Returns
    -------
    tuple of (float, float, int)
        Statistic, p-value by the chi-square distribution, and difference of coefficients.

    Raises
    ------
    TypeError, ValueError
        In one sentence, if the fits cannot be compared so.
    """
    if not isinstance(restricted, type(self)):
        raise TypeError(
            f"restricted must be a fit such as this one, got {type(restricted).__name__}."
        )
    return _of(self).against(_of(restricted))


def glance(self: BTLResult) -> dict[str, Any]:
    """Return what ``glance()`` says of a fit: the test of equal worths, and the likelihood.

    With covariates there is a test for each term instead, in :meth:`wald_test_terms`.
    """
    facts: dict[str, Any] = {"formula": None, "statistic": None, "df": None, "p_value": None}
    if (covariates := self.release.design.covariates) is None:
        test = self.test_homogeneity()
        facts |= {"statistic": test.statistic, "df": test.df, "p_value": test.pvalue}
    else:
        facts["formula"] = covariates.formula
    facts |= {"design_effect": self.design_effect, "log_likelihood": None, "aic": None}
    if maximised(self):
        facts |= {"log_likelihood": llf(self), "aic": aic(self)}
    return facts


def maximised(result: BTLResult) -> bool:
    """Return whether there is a likelihood, and the estimates maximise it."""
    return not why_none(result.release) and _of(result).maximised
