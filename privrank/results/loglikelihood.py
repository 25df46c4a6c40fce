"""The likelihood of a non-private fit in the words of statsmodels: properties of a result.

With w_ij wins of item i over item j, ties half a win to each, it is the sum of w_ij log F(t_ij)
over ordered pairs. Where ties occur that is a quasi-likelihood: a tie counts as half an answer for
each item. For the logit it needs the net wins alone: score'b - sum n_ij log(2 cosh(t_ij / 2)).

All of it raises ValueError where the result is private: the likelihood is a function of the exact
answers, which the release does not hold. Answers count as independent.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from privrank.bradley_terry.linear import ItemContrasts
from privrank.bradley_terry.score import ScoreEquations, score_equations
from privrank.distributions.links import LOGIT
from privrank.release.names import WINS
from privrank.release.release import Release

if TYPE_CHECKING:
    from privrank.results.btl import BTLResult


def _why_none(release: Release) -> str:
    """Return why a release has no likelihood, in one sentence; empty if it has one."""
    if release.source != "none":
        return (
            "a private fit has no likelihood, which is a function of the exact answers that the "
            "release does not hold: use test_homogeneity(), wald_test() or wald_test_terms(), or "
            "fit with epsilon=numpy.inf."
        )
    if WINS not in release.parts and release.link != LOGIT:
        return (
            f"the likelihood of link={release.link.name!r} needs the wins of every pair, and this "
            f"release holds net wins alone: fit the data again with link={release.link.name!r}."
        )
    return ""


def _equations(result: BTLResult) -> ScoreEquations:
    """Return the score equations of a fit that has a likelihood."""
    if reason := _why_none(result.release):
        raise ValueError(reason)
    return score_equations(result.release)


def llf(result: BTLResult) -> float:
    """Log-likelihood at the estimates; non-private fits only."""
    facts, b = _equations(result), result.estimate.coefficients
    # the matching loss of the logit is counted from equal worths
    start = llnull(result) if facts.answers is None else 0.0
    return start + float(facts.target @ b) - facts.loss.value(facts.linear.predict(b))


def llnull(result: BTLResult) -> float:
    """Log-likelihood where either answer has probability 1/2; non-private fits only."""
    return -math.log(2.0) * _equations(result).pairs.total


def deviance(result: BTLResult) -> float:
    """Deviance of the single answers, -2 `llf`; non-private fits only."""
    return -2.0 * llf(result)


def df_model(result: BTLResult) -> int:
    """Degrees of freedom of the model, its free coefficients; non-private fits only."""
    linear = _equations(result).linear
    return linear.size - isinstance(linear, ItemContrasts)


def df_resid(result: BTLResult) -> float:
    """Residual degrees of freedom, comparisons less `df_model`; non-private fits only."""
    return _equations(result).pairs.total - df_model(result)


def _at_maximum(result: BTLResult) -> bool:
    """Return whether the estimates have no penalty, and were found."""
    return not np.any(result.estimate.ridge) and result.estimate.converged


def _criterion(result: BTLResult, name: str, price: float) -> float:
    """Return an information criterion with this price of a coefficient."""
    value = price * df_model(result) - 2.0 * llf(result)
    if not _at_maximum(result):
        raise ValueError(f"{name} needs estimates that maximise the likelihood: use penalty=0.")
    return value


def aic(result: BTLResult) -> float:
    """Akaike's criterion, -2 `llf` + 2 `df_model`; non-private fits with ``penalty=0`` only."""
    return _criterion(result, "aic", 2.0)


def bic(result: BTLResult) -> float:
    """Criterion of Schwarz: `aic` with the log of the number of comparisons in the place of 2."""
    return _criterion(result, "bic", math.log(_equations(result).pairs.total))


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
    return not _why_none(result.release) and _at_maximum(result)
