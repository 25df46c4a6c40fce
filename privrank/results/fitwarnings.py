"""What to read with care in a Bradley-Terry fit, said from the release and public facts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from privrank.bradley_terry.estimate import Estimate, nominal_information
from privrank.bradley_terry.inversion import attainable
from privrank.bradley_terry.score import ScoreEquations, pair_counts
from privrank.release.release import Release
from privrank.results.guarantee import UNFINISHED, delta_notes
from privrank.util.arrays import IntArray
from privrank.util.checks import PrivrankWarning
from privrank.util.solvers import largest_ratio

# In the local model unanimous answers to a pair are at the limit at every epsilon.
BEYOND = (
    "Warning: noise, or unanimous reports, have carried the counts as far as any answers can, or "
    "beyond, so the most extreme worths and their errors rest on the penalty: use more "
    "comparisons, and a larger epsilon if it is small."
)

BY_COVARIATES = (
    "Warning: the released comparisons do not connect all items, so that some worths and ranks "
    "rest on the item covariates alone."
)

# Standard error of a group's released answers, over these, beyond which they are too rough.
ROUGH = 1 / 4


def fit_warnings(release: Release, equations: ScoreEquations, fitted: Estimate) -> tuple[str, ...]:
    """Return the warnings that go with a fit."""
    plain = equations.covariates is None
    messages = part_notes(release.design.items, equations.components)
    facts = equations.covariates
    by_items = facts is not None and bool(facts.item_columns)
    whole = len(equations.components) == 1
    if whole and by_items and pair_counts(release).get("member") is not None:
        messages.append(BY_COVARIATES)
    if len(equations.components) == equations.items:  # nothing is shown that could be wrong
        return (*messages, *delta_notes(release))
    if fitted.infinite:
        messages.append(
            f"Warning: without a penalty the {'worths' if plain else 'coefficients'} are not "
            f"finite at this release (an item or group won or lost all its comparisons); "
            f"penalty='auto' was used."
        )
    noisy = plain and release.source != "none" and len(equations.pairs.first) > 0
    if noisy and not attainable(equations.score, equations.pairs, equations.function):
        messages.append(BEYOND)
    if not fitted.converged:
        messages.append(UNFINISHED)
    messages += delta_notes(release) + _group_notes(equations)
    ridge = fitted.ridge
    # of worths the ridge is one number, and so is the information at equal worths and counts
    if not isinstance(ridge, np.ndarray):
        nominal = nominal_information(equations.items, equations.total, equations.fitted)
        most = ridge / nominal if nominal > 0 else math.inf
    else:
        curvature = equations.fitted.mean_curvature * equations.pairs.count
        information = equations.linear.information(np.asarray(curvature))
        # what is not identified is not shown
        known = equations.linear.identity if equations.known is None else equations.known
        rest = np.trace(information + ridge) * (np.eye(len(known)) - known)
        # the largest eigenvalue of the ridge relative to the information, over all directions
        most = largest_ratio(ridge, information + rest) if ridge.any() else 0.0
    if most > 1.0:
        messages.append(
            f"Warning: the ridge is {most:.3g} times the information in at least one direction, so "
            f"shrinkage dominates there and intervals are known to cover less than stated: use a "
            f"larger epsilon, fewer covariates or more comparisons."
        )
    return tuple(messages)


def warn_of(messages: Sequence[str]) -> None:
    """Emit the warnings of a result, as from the line that called the method that calls this."""
    for message in messages:
        warnings.warn(message.removeprefix("Warning: "), PrivrankWarning, stacklevel=4)


def part_notes(items: Sequence[str], parts: Sequence[IntArray]) -> list[str]:
    """Return which items the released comparisons do not connect; nothing where all are."""
    alone = [items[part[0]] for part in parts if len(part) == 1 < len(items)]
    several = [part for part in parts if len(part) > 1]
    if len(alone) == len(items):
        return [
            "Warning: nothing is identified, as the released comparisons do not exceed their "
            "noise: use a larger epsilon or more comparisons."
        ]
    notes = []
    if alone:
        notes.append(
            f"Warning: not identified: {', '.join(alone)}, whose released comparisons with the "
            f"other items do not exceed their noise. Worths, win rates and ranks are those among "
            f"the others."
        )
    if len(several) > 1:
        names = " and ".join("{" + ", ".join(items[k] for k in part) + "}" for part in several)
        notes.append(
            f"Warning: the released comparisons fall into components, {names}, as those between "
            f"them do not exceed their noise: worths, win rates and ranks hold in each, and how "
            f"items of two of them compare is not identified."
        )
    return notes


def _group_notes(equations: ScoreEquations) -> list[str]:
    """Return the warning that goes with groups of too few answers for the noise of these."""
    facts, error = equations.covariates, math.sqrt(equations.group_variance)
    if facts is None or error == 0.0:
        return []
    rough = [
        f"{', '.join(f'{name} {level}' for name, level in cell.items())} ({answers:.0f})"
        for cell, answers in zip(facts.cell_labels, equations.group_answers, strict=True)
        if error > ROUGH * answers
    ]
    if not rough:
        return []
    return [
        f"Warning: the noise of the answers of each group (standard error {error:.3g}) is large "
        f"beside the released answers of {'; '.join(rough)}, so that statements about these levels "
        f"are known to cover less than stated: use a larger epsilon, or merge rare levels."
    ]
