"""What to read with care in a Bradley-Terry fit, said from the release and public facts."""

from __future__ import annotations

import math

import numpy as np

from privrank.bradley_terry.estimate import Estimate
from privrank.bradley_terry.ridge import nominal_information
from privrank.bradley_terry.score import ScoreEquations, attainable
from privrank.release.release import Release
from privrank.results.guarantee import UNFINISHED, delta_notes
from privrank.util.solvers import largest_ratio

__all__ = ["fit_warnings"]


def fit_warnings(release: Release, equations: ScoreEquations, fitted: Estimate) -> tuple[str, ...]:
    """Return the warnings that go with a fit."""
    plain, messages = equations.covariates is None, []
    if fitted.infinite:
        messages.append(
            f"Warning: without a penalty the {'worths' if plain else 'coefficients'} are not "
            f"finite at this release (an item or group won or lost all its comparisons); "
            f"penalty='auto' was used."
        )
    noisy = plain and release.source != "none"
    if noisy and not attainable(equations.score, equations.pairs, equations.function):
        messages.append(
            "Warning: noise has carried the counts beyond what any answers can give, so the most "
            "extreme worths and their errors are driven by noise: use a larger epsilon or more "
            "comparisons."
        )
    if not fitted.converged:
        messages.append(UNFINISHED)
    messages += delta_notes(release)
    ridge = fitted.ridge
    if isinstance(ridge, np.ndarray):
        curvature = equations.fitted.mean_curvature * equations.pairs.count
        information = equations.linear.information(np.asarray(curvature))
        if ridge.any() and (most := largest_ratio(ridge, information)) > 1.0:
            amount = "exceeds" if math.isinf(most) else f"is {most:.2g} times"
            messages.append(
                f"Warning: the ridge {amount} the information in at least one direction, so "
                f"shrinkage dominates there and intervals are known to cover less than stated: use "
                f"a larger epsilon, fewer covariates or more respondents."
            )
        return tuple(messages)
    nominal = nominal_information(equations.items, equations.pairs.total, equations.fitted)
    if ridge > nominal:
        messages.append(
            f"Warning: the ridge ({ridge:.3g}) exceeds the information per contrast "
            f"({nominal:.3g}), so shrinkage dominates and the intervals are known to cover "
            f"less than stated: use a larger epsilon or more comparisons."
        )
    return tuple(messages)
