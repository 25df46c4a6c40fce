"""The private Bradley-Terry model with covariates: from a release to a result."""

from __future__ import annotations

import math
import warnings
from typing import Literal

import numpy as np

from privrank.bradley_terry import regression
from privrank.release.release import Release
from privrank.results import BTLRegressionResult
from privrank.results.guarantee import UNCERTAIN, UNFINISHED, delta_notes
from privrank.util.arrays import own
from privrank.util.checks import PrivrankWarning, check_penalty
from privrank.util.solvers import largest_ratio

__all__ = ["infer"]


def infer(
    release: Release,
    *,
    penalty: float | Literal["auto"] = "auto",
    alpha: float = 0.05,
    warn: bool = False,
) -> BTLRegressionResult:
    """Fit a model with covariates to a release: post-processing, nothing is spent.

    Parameters
    ----------
    release : Release
        From a fit with covariates.
    penalty : float or "auto"
        Ridge.
    alpha : float
        Significance level.
    warn : bool
        Whether to emit the result's warnings.

    Returns
    -------
    BTLRegressionResult
    """
    facts = regression.equations(release)
    requested = check_penalty(penalty)
    corrected = requested is None
    ridge = facts.ridge if requested is None else requested * facts.prior
    messages: list[str] = []
    fitted = regression.estimate(facts, release, ridge, corrected=corrected)
    if fitted is None:
        messages.append(
            "Warning: without a penalty the coefficients are not finite at this release (an item "
            "or group won or lost all its comparisons); penalty='auto' was used."
        )
        corrected, ridge = True, facts.ridge
        fitted = regression.estimate(facts, release, ridge, corrected=True)
    assert fitted is not None  # a positive definite ridge has a finite fit
    messages += delta_notes(release)
    if ridge.any() and (most := largest_ratio(ridge, facts.information)) > 1.0:
        amount = "exceeds" if math.isinf(most) else f"is {most:.2g} times"
        messages.append(
            f"Warning: the ridge {amount} the information in at least one direction, so shrinkage "
            f"dominates there and intervals are known to cover less than stated: use a larger "
            f"epsilon, fewer covariates or more respondents."
        )
    if not fitted.converged:
        messages.append(UNFINISHED)
    if not np.isfinite(fitted.sampling + fitted.privacy).all():
        messages.append(UNCERTAIN)
    if warn:
        for message in messages:
            warnings.warn(message.removeprefix("Warning: "), PrivrankWarning, stacklevel=3)
    return BTLRegressionResult(
        release=release,
        alpha=alpha,
        requested="auto" if requested is None else requested,
        corrected=corrected,
        ridge=own(ridge, np.float64),
        estimate=fitted,
        warnings=tuple(messages),
    )
