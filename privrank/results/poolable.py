"""What results must have to be pooled: weights that are no noise of their own. From releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.inference import Inference
from privrank.consensus.statements import RandomReports, Statements
from privrank.release.release import PAIR_COUNTS, PAIRS, WINS, Release

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
        noise, pairs = math.sqrt(each.equations.count_variance), design.reach.pairs
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


def counted_twice(releases: Sequence[Release]) -> list[str]:
    """Return what is to be warned of in releases of different surveys that may not be different.

    Of exact answers, surveys with equal public facts, those of their design included. Of reports
    under one protocol, two of which nothing shows that neither is part of the other: one has no
    more votes for any item of any pair, and no more reports, than the other.
    """
    found = []
    for one, other in combinations(range(len(releases)), 2):
        pair, names = (releases[one], releases[other]), f"releases {one + 1} and {other + 1}"
        if all(release.local for release in pair):
            parts = [
                (each.plan.settings["protocol"], each.survey.nobs, _votes(each)) for each in pair
            ]
            (protocol, n, votes), (same, more, others) = sorted(parts, key=lambda each: each[1])
            if protocol == same and n <= more and (votes <= others).all():
                found.append(
                    f"Reports may count twice: {names} are of one protocol, and nothing shows that "
                    f"the one's reports are not among the other's. Add their tallies, tally1 + "
                    f"tally2, which finds reports that are in both."
                )
        elif pair[0].survey.to_record() == pair[1].survey.to_record():
            found.append(
                f"Respondents may count twice: {names} have the same public facts "
                f"({pair[0].survey.nobs} {pair[0].survey.unit}s and all else). If they are of one "
                f"survey, use survey='same'."
            )
    return found


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
