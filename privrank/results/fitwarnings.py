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

BEYOND = (
    "Warning: noise has carried the counts beyond what any answers can give, so the most extreme "
    "worths and their errors are driven by noise: use a larger epsilon or more comparisons."
)
UNANIMOUS = (
    "Warning: the answers, or the noise of the responses, have carried the counts as far as any "
    "answers can, so the most extreme worths and their errors rest on the penalty: use more "
    "comparisons, and a larger epsilon if it is small."
)
"""In the local model unanimous answers to a pair are at the limit at every epsilon."""

ROUGH_SIZE = 1 / 4
"""Standard error of a released group size, over the size, beyond which it is too rough."""


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
        messages.append(UNANIMOUS if release.local else BEYOND)
    if not fitted.converged:
        messages.append(UNFINISHED)
    messages += delta_notes(release) + _size_notes(equations)
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
    nominal = nominal_information(equations.items, equations.total, equations.fitted)
    if ridge > nominal:
        messages.append(
            f"Warning: the ridge ({ridge:.3g}) exceeds the information per contrast "
            f"({nominal:.3g}), so shrinkage dominates the worths and their standard errors: use a "
            f"larger epsilon or more comparisons."
        )
    return tuple(messages)


def _size_notes(equations: ScoreEquations) -> list[str]:
    """Return the warning that goes with groups too small for the noise of their sizes."""
    facts, error = equations.covariates, math.sqrt(equations.size_variance)
    if facts is None or error == 0.0:
        return []
    rough = [
        f"{', '.join(f'{name} {level}' for name, level in cell.items())} ({size:.0f})"
        for cell, size in zip(facts.cell_labels, facts.units, strict=True)
        if error > ROUGH_SIZE * size
    ]
    if not rough:
        return []
    return [
        f"Warning: the noise of the group sizes (standard error {error:.3g}) is large beside the "
        f"released size of {'; '.join(rough)}, so that statements about these levels are known to "
        f"cover less than stated: use a larger epsilon, or merge rare levels."
    ]
