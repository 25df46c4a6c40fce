"""Which rows of a respondent count, and a release of how many rows respondents have.

A secret, uniformly random choice of at most `max_rows` of them counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privrank.encode.encoded import Encoded, Rows, answers_by_person, sum_by
from privrank.mechanisms.spend import Drawn, draw, released
from privrank.privacy.budget import Ledger
from privrank.privacy.noise import draw_permutation, draw_rows
from privrank.release.names import ACTIVITY
from privrank.release.plan import Plan
from privrank.release.release import Release

__all__ = ["activity", "bounded", "release_activity"]

IntArray = NDArray[np.int64]


def bounded(encoded: Encoded, rng: np.random.Generator | None) -> Encoded:
    """Return the counts of the rows that are kept; data without rows to draw from as they are.

    Of every respondent with more than `max_rows` answers that many are drawn, all sets of them
    equally likely; where pairs are declared distinct, one answer of each pair first. Respondents
    are independent of each other, nobody is lost, and nothing of the draw is kept but its counts.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one respondent with all their rows, however many. Let
    M be a mechanism with a guarantee for respondents who keep both bounds, at most `max_rows` rows
    and, where declared, distinct pairs; that is what every plan is calibrated to. Which rows of a
    respondent are kept depends on their own rows and on random bits of their own. So for any draws
    r of all other respondents, and s, s' of the one that is replaced, the kept rows (r, s) and
    (r, s') are neighbours that keep the bounds, and P(M(r, s) in S) <= exp(epsilon) P(M(r, s') in
    S) + delta. The mean of both sides over r, s and s', independent of each other, is the same for
    the data themselves: the guarantee is unchanged. So is zero-concentrated privacy, because the
    Renyi divergence of two mixtures with equal weights is at most the largest of their parts'. A
    second stage that measures the same kept rows is part of M. The draw is secret: were it known
    which rows are kept, that would be an output of its own. The number of respondents does not
    change.

    **Statistic.** Nobody weighs more than `max_rows` answers; those of a respondent are weighed
    alike, or, where pairs are distinct, their pairs are.
    """
    rows = encoded._rows
    if rows is None:
        return encoded
    design, pairs, size = encoded.design, len(rows.first), rows.size
    if design.distinct_pairs:
        size = draw_rows(rows.person * pairs + rows.pair, size, 1, rng)
    kept = draw_rows(rows.person, size, design.max_rows, rng)
    some = np.flatnonzero(kept)
    person, pair, count = rows.person[some], rows.pair[some], kept[some]
    net = count * rows.sign[some]
    counts = sum_by(pair, count, pairs), sum_by(pair, net, pairs)
    answers = answers_by_person(person, pair, count, net, pairs)
    return Encoded(design, (rows.first, rows.second, *counts), answers, encoded._units)


def activity(rows: Rows, nobs: int, bounds: Sequence[int], *, distinct: bool) -> IntArray:
    """Return the respondents without answers, up to each bound, and beyond the last; sensitive.

    Bounds ascend. Of pairs that are declared distinct each counts once, as in :func:`bounded`.
    """
    size = rows.size
    if distinct:
        size = np.diff(rows.person * len(rows.first) + rows.pair, prepend=-1) != 0
    answers = sum_by(rows.person, size, nobs)
    return np.bincount(np.searchsorted([0, *bounds], answers), minlength=len(bounds) + 2)


def release_activity(
    encoded: Encoded,
    bounds: Sequence[int],
    plan: Plan,
    *,
    budget: Ledger | None,
    rng: np.random.Generator | None,
) -> Release:
    """Spend the budget and release how many respondents have how many answers.

    With the noise of :func:`privrank.plans.contributions.plan_activity`, which says why it is
    private.
    """
    rows = encoded._rows
    if rows is None:
        raise ValueError("activity needs rows that no bound was applied to: use excess='sample'.")
    design = encoded.design

    def drawn() -> Drawn:
        counts = activity(rows, design.nobs, bounds, distinct=design.distinct_pairs)
        tie_break = draw_permutation(len(design.items), rng)
        return Drawn({ACTIVITY: draw(plan.parts[ACTIVITY], counts, rng)}, tie_break)

    return released(plan, design, drawn, budget=budget, rng=rng)
