"""The log-likelihood of fits without privacy, and the likelihood-ratio test of nested models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from privrank.bradley_terry.score import ScoreEquations
from privrank.release.names import TIES
from privrank.release.release import Release
from privrank.release.survey import Covariates
from privrank.util.arrays import FloatArray

if TYPE_CHECKING:
    from privrank.results.btl import BTLResult


def log_likelihood(release: Release, equations: ScoreEquations, b: FloatArray) -> float:
    """Return the log-likelihood of all answers at coefficients b, of a run without privacy.

    **Statistic.** Of the logit it is score'b less the sum over comparisons of log(2 cosh(d / 2)),
    or log(2 cosh(d / 2) + nu) where ties have a parameter; of other links the log-loss of wins and
    losses, with a minus sign.

    Raises
    ------
    ValueError
        If the release is private, which does not hold the likelihood.
    """
    if release.source != "none":
        raise ValueError(
            "llf is of runs without privacy, as noisy counts have no likelihood of their own: fit "
            "with epsilon=numpy.inf, or test with wald_test_terms()."
        )
    t, loss, score = equations.linear.predict(b), equations.loss, equations.target
    if equations.tied:  # with as many ties as there were, also where there is no finite fit
        score = np.append(score[:-1], release.parts[TIES].values[0])
        return float(score @ b - loss.value(t))
    even = math.log(2.0) * float(equations.count.sum())
    return float(score @ b - loss.value(t) + loss.value(np.zeros_like(t)) - even)


def likelihood_ratio(full: BTLResult, restricted: object) -> pd.Series[Any]:
    """Return the likelihood-ratio test of :meth:`privrank.results.btl.BTLResult.compare_lr_test`.

    Raises
    ------
    TypeError, ValueError
        If it is no fit of maximum likelihood to the same answers, of a model within the larger one.
    """
    if not isinstance(restricted, type(full)):
        raise TypeError("restricted must be a fit of PrivateBTL, of the same answers.")
    statistic = 2.0 * (full.llf - restricted.llf)
    for result in (full, restricted):
        if np.any(result.estimate.ridge) or result.estimator != "maximum likelihood":
            raise ValueError(
                "restricted and the larger model must be fits of maximum likelihood: fit both with "
                "penalty=0, from answers in which no item won or lost all its comparisons."
            )
    if _answers(full) != _answers(restricted):
        raise ValueError(
            "restricted must be a fit to the same answers, with the same items, unit, ties and "
            "link: fit both models to one frame."
        )
    df = _size(full) - _size(restricted)
    if not (_within(restricted.release.design.covariates, full.release.design.covariates) and df):
        raise ValueError(
            "restricted must leave out terms of the larger model's formula, and have no others: "
            "call compare_lr_test of the larger model with the smaller one."
        )
    values = (max(statistic, 0.0), df, float(chdtrc(df, max(statistic, 0.0))))
    return pd.Series(values, index=["statistic", "df", "pvalue"], name="likelihood ratio")


def _size(result: BTLResult) -> int:
    """Return the number of free coefficients."""
    return int(np.rint(np.trace(result._equations().linear.identity)))


def _answers(result: BTLResult) -> tuple[Any, ...]:
    """Return what two fits to the same answers have in common, whatever their covariates are."""
    design, pairs = result.release.design, result._equations().pairs
    m = len(design.items)
    met = np.bincount(pairs.first % m * m + pairs.second % m, pairs.count, minlength=m * m)
    return design.items, design.nobs, design.unit, design.ties, result.link, tuple(met)


def _within(smaller: Covariates | None, larger: Covariates | None) -> bool:
    """Return whether the columns of a model, and its item covariates, are among another's."""
    (fewer, few_of_items, first), (columns, of_items, order) = (
        ({"Intercept"}, set(), False)
        if facts is None
        else (set(facts.columns), set(facts.item_columns), facts.ordered)
        for facts in (smaller, larger)
    )
    spanned = not of_items or (bool(few_of_items) and few_of_items <= of_items)
    return fewer <= columns and spanned and first <= order
