"""The sensitive counts of paired comparisons, read from an encoded data set.

Exact integers, or their whole-number multiples; nothing here may leave the mechanisms that add
noise to it.

Of rows that were not bounded by the encoder a secret, uniformly random choice of at most `max_rows`
of each respondent counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.linear import blocks
from privrank.encode.encoded import Encoded, Rows, answers_by_person, sum_by
from privrank.mechanisms.spend import Drawn, draw, released
from privrank.privacy.budget import Ledger
from privrank.privacy.noise import draw_permutation, draw_rows
from privrank.release.names import ACTIVITY, GROUP_ANSWERS, MOMENTS, NET, ORDER_EFFECT, PAIR_COUNTS
from privrank.release.plan import Plan
from privrank.release.release import Release
from privrank.release.survey import Covariates, PairCounts

__all__ = [
    "activity",
    "bounded",
    "met",
    "net_wins",
    "release_activity",
    "second_moments",
    "statistic",
    "units",
    "wins_met",
]

IntArray = NDArray[np.int64]

_DENSE = 0.02
"""Share of pairs that respondents answer from which products of dense matrices are faster."""


def met(encoded: Encoded) -> PairCounts:
    """Return the comparisons per pair; sensitive under a private design."""
    first, second, count, _ = encoded._pairs
    seen = count > 0
    return PairCounts(first[seen], second[seen], count[seen], "observed")


def units(encoded: Encoded) -> IntArray:
    """Return the units per pattern of covariates; sensitive under a private design."""
    if encoded._units is None:
        raise ValueError("units per pattern need covariates: name them in the formula.")
    return encoded._units


def net_wins(encoded: Encoded) -> IntArray:
    """Return wins minus losses per item, or per row of covariates and item; sensitive."""
    first, second, _, net = encoded._pairs
    design = encoded.design
    m = len(design.items) * (1 if design.covariates is None else design.covariates.patterns)
    total = np.bincount(first, net, minlength=m) - np.bincount(second, net, minlength=m)
    whole = total.astype(np.int64)
    if design.covariates is None:
        return whole
    return (design.covariates.basis.T @ whole.reshape(-1, len(design.items))).ravel()


def _won_by_first(encoded: Encoded) -> IntArray:
    """Return wins minus losses of the item that is named first."""
    first, _, _, net = encoded._pairs
    design = encoded.design
    if design.covariates is None:
        raise ValueError("an order effect must be named in the formula.")
    return np.array([design.covariates.first[first // len(design.items)] @ net])


def _by_cell(facts: Covariates | None, pattern: IntArray, count: IntArray) -> IntArray:
    """Return the comparisons of each group, given those of patterns of covariates."""
    if facts is None:
        raise ValueError("answers of groups need covariates: name them in the formula.")
    return np.bincount(facts.cell[pattern], count, minlength=facts.cells).astype(np.int64)


def wins_met(encoded: Encoded) -> IntArray:
    """Return wins plus ties' halves, doubled, of the first and the second item of each pair met.

    Shape (2, edges), pairs as in :func:`met`; sensitive.
    """
    _, _, count, net = encoded._pairs
    seen = count > 0
    return np.stack((count[seen] + net[seen], count[seen] - net[seen]))


def statistic(encoded: Encoded, name: str) -> IntArray:
    """Return the exact integer statistic of a part; sensitive."""
    design = encoded.design
    m = len(design.items)
    if name == NET:
        return net_wins(encoded)
    if name == ORDER_EFFECT:
        return _won_by_first(encoded)
    first, second, count, net = encoded._pairs
    if name == GROUP_ANSWERS:
        return _by_cell(design.covariates, first // m, count)
    first, second = first % m, second % m  # whatever the covariates are
    # position of pair (i, j), i < j, among all pairs in lexicographic order
    place = first * (2 * m - first - 1) // 2 + second - first - 1
    pairs = m * (m - 1) // 2
    if name == PAIR_COUNTS:
        return np.bincount(place, count, minlength=pairs).astype(np.int64)
    cells = np.zeros((2, pairs), dtype=np.int64)
    cells[0, place], cells[1, place] = count + net, count - net
    return (cells if design.ties else cells // 2).ravel()


def second_moments(encoded: Encoded) -> dict[str, IntArray]:
    """Return the non-private second moments over respondents of answers and counts by pair.

    With covariates, one block of pairs for each combination of their values, one after the other.
    """
    from scipy.sparse import csr_array

    if encoded._answers is None:
        raise ValueError("cluster-robust errors need respondents: name them with respondent=.")
    person, pair, count, net = encoded._answers
    seen = encoded._pairs[2] > 0
    shape = (int(person.max()) + 1, len(seen))
    answers = csr_array((net, (person, pair)), shape=shape)[:, seen]
    counts = csr_array((count, (person, pair)), shape=shape)[:, seen]

    def product(a: Any, b: Any) -> IntArray:
        if a.nnz < _DENSE * a.shape[0] * a.shape[1]:
            return np.asarray((a.T @ b).toarray().ravel())
        # exact: whole numbers far below 2^53
        dense = a.toarray().T.astype(float) @ b.toarray()
        return np.asarray(np.rint(dense).astype(np.int64).ravel())

    parts = blocks(encoded.design, met(encoded))
    return {
        name: np.concatenate([product(a[:, part], b[:, part]) for part in parts])
        for name, a, b in zip(
            MOMENTS, (answers, answers, counts), (answers, counts, counts), strict=True
        )
    }


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
