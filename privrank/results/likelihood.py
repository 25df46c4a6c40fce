"""The log-likelihood of fits without privacy, and the likelihood-ratio test of nested models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from privrank.bradley_terry.estimate import Estimate
from privrank.bradley_terry.score import ScoreEquations
from privrank.release.names import TIES
from privrank.release.release import Release
from privrank.release.survey import Covariates
from privrank.util.arrays import FloatArray

Fit = tuple[Release, ScoreEquations, Estimate]
"""A release, its equations, and their fit."""


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


def likelihood_ratio(larger: Fit, smaller: Fit) -> pd.Series[Any]:
    """Return the likelihood-ratio test of a model within a larger one, both without privacy.

    Twice the difference of log-likelihoods is chi-squared under the smaller one, with as many
    degrees of freedom as it has coefficients less, where answers are independent.

    Raises
    ------
    ValueError
        If they are no fits of maximum likelihood to the same answers, or not of nested models.
    """
    values = [
        log_likelihood(release, equations, fitted.coefficients)
        for release, equations, fitted in (larger, smaller)
    ]
    for _, equations, fitted in (larger, smaller):
        if np.any(fitted.ridge) or equations.estimator != "maximum likelihood":
            raise ValueError(
                "restricted and the larger model must be fits of maximum likelihood: fit both with "
                "penalty=0, from answers in which no item won or lost all its comparisons."
            )
    if _answers(larger) != _answers(smaller):
        raise ValueError(
            "restricted must be a fit to the same answers, with the same items, unit, ties and "
            "link: fit both models to one frame."
        )
    columns, fewer = (release.design.covariates for release, *_ in (larger, smaller))
    free, left = (
        int(np.rint(np.trace(equations.linear.identity))) for _, equations, _ in (larger, smaller)
    )
    if not _within(fewer, columns) or free == left:
        raise ValueError(
            "restricted must leave out terms of the larger model's formula, and have no others: "
            "call compare_lr_test of the larger model with the smaller one."
        )
    statistic, df = max(2.0 * (values[0] - values[1]), 0.0), free - left
    return pd.Series(
        (statistic, df, float(chdtrc(df, statistic))),
        index=["statistic", "df", "pvalue"],
        name="likelihood ratio",
    )


def _answers(fit: Fit) -> tuple[Any, ...]:
    """Return what two fits to the same answers have in common, whatever their covariates are."""
    release, equations, _ = fit
    design, pairs, m = release.design, equations.pairs, equations.items
    met = np.bincount(pairs.first % m * m + pairs.second % m, pairs.count, minlength=m * m)
    return design.items, design.nobs, design.unit, design.ties, release.link, tuple(met)


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
