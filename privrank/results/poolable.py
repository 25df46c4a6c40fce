"""What results must have to be pooled: weights that are no noise of their own. From releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.inference import Inference
from privrank.consensus.statements import RandomReports, Statements
from privrank.release.names import PAIR_COUNTS, PAIRS, WINS
from privrank.release.release import Release

__all__ = ["Effects", "Survey", "check_reports", "check_scores", "counted_twice"]

Survey = Literal["same", "different"]
Effects = Literal["common", "random"]

_LEAST_REPORTS = 200
"""Reports that show their variance well enough for a weight: with 100, 95 % intervals cover .94."""


def check_scores(inferences: Sequence[Inference], same: bool) -> None:
    """Refuse fits whose scores are others, or weights that the noise of pair counts would choose.

    Both are known from public facts; and fits whose releases do not connect all items.
    """
    facts = [each.equations for each in inferences]
    if same and any(each.function != facts[0].function for each in facts):
        raise ValueError(
            "results of one survey must have the same score equations, and with this link those of "
            "method='objective' are others: fit all with one method=."
        )
    for each in inferences:
        design = each.release.design
        noise, pairs = math.sqrt(each.equations.count_variance), design.sensitivity.pairs
        if not same and noise > (expected := design.nominal_total / pairs):
            raise ValueError(
                f"results of different surveys must have pair counts that are no smaller than "
                f"their noise, and one has {expected:.3g} comparisons for each pair beside noise "
                f"of {noise:.3g}: leave it out, or fit it with a larger epsilon or a public design."
            )
        if each.equations.member is not None:
            raise ValueError(
                "results must identify all differences of worths, and the released comparisons of "
                "one do not connect all items: leave it out, or fit it with a larger epsilon."
            )


def check_reports(stated: Statements) -> Statements:
    """Return what a consensus states; refuse few reports, whose variance is no sure weight."""
    if isinstance(stated, RandomReports) and np.diag(stated.concerned).min() < _LEAST_REPORTS:
        raise ValueError(
            f"results of reports must have at least {_LEAST_REPORTS} about each item to be pooled, "
            f"as the variance that they show is their weight: leave smaller ones out."
        )
    return stated


def counted_twice(releases: Sequence[Release], names: Sequence[str] = ()) -> list[str]:
    """Return what is to be warned of in releases of different surveys that may not be different.

    Of exact answers, surveys with equal public facts, those of their design included. Of reports
    under one protocol, those of which nothing shows that none is part of another: one has no more
    votes for any item of any pair, and no more reports, than the other. One message for all that
    hang together, by their names.
    """
    found = []
    for group in _groups(releases):
        if names:
            which = _listed([names[k] for k in group])
        else:
            which = f"releases {_listed([str(k + 1) for k in group])}"
        survey = releases[group[0]].survey
        if all(releases[k].local for k in group):
            found.append(
                f"Reports may count twice: {which} are of one protocol, and nothing shows that "
                f"reports of one are not among another's. Add their tallies, tally1 + tally2, "
                f"which finds reports that are in both."
            )
        else:
            found.append(
                f"Respondents may count twice: {which} have the same public facts ({survey.nobs} "
                f"{survey.unit}s and all else). If they are of one survey, use survey='same'."
            )
    return found


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _groups(releases: Sequence[Release]) -> list[list[int]]:
    """Return the places of releases that may count the same twice, those that hang together."""
    groups: list[list[int]] = []
    for k, release in enumerate(releases):
        near = [g for g in groups if any(_alike(release, releases[other]) for other in g)]
        groups = [g for g in groups if g not in near] + [[*chain(*near), k]]
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _alike(one: Release, other: Release) -> bool:
    """Return whether two releases may count the same respondents, by what they show."""
    if not (one.local and other.local):
        return one.survey.to_record() == other.survey.to_record()
    few, many = sorted((one, other), key=lambda each: each.survey.nobs)
    same = few.plan.settings["protocol"] == many.plan.settings["protocol"]
    return same and bool((_votes(few) <= _votes(many)).all())


def _votes(release: Release) -> NDArray[np.int64]:
    """Return the votes for the row's item against the column's that reports show; 0 elsewhere."""
    m, parts = len(release.survey.items), release.parts
    votes = np.zeros((m, m), dtype=np.int64)
    if WINS in parts:
        pairs = release.design.pairs
        assert pairs is not None
        first, second = pairs.first, pairs.second
        votes[first, second], votes[second, first] = np.split(parts[WINS].values, 2)
    elif PAIRS in parts and release.plan.number("square") == 1.0:
        first, second = np.triu_indices(m, 1)
        net, count = parts[PAIRS].values, parts[PAIR_COUNTS].values
        votes[first, second], votes[second, first] = (count + net) // 2, (count - net) // 2
    return votes
