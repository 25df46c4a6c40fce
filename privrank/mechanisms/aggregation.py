"""Releases of a sample of rankings for its consensus: pair counts, Borda totals, or an order.

Each unit has one vote on every pair of items, in whole steps. With L = lcm(1..max_rows) a
respondent with k rankings casts, for each of them, L / k steps for the item it places before the
other; so all their rows are used, and nobody has more weight than another. Where partial rankings
are allowed, L is twice as large, and a ranking in which two items are tied, or one of them is left
out and nothing else is known, casts half of its steps for each.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from privrank.consensus.kemeny import KemenyOrder, gibbs_order
from privrank.consensus.orders import (
    by_score,
    half_votes,
    kemeny_score,
    kwiksort,
    pair_counts,
    pair_matrix,
)
from privrank.consensus.pivoting import noisy_kwiksort
from privrank.consensus.rules import Rule, consensus_of
from privrank.encode.samples import EncodedSample
from privrank.mechanisms.spend import draw, spend
from privrank.planning.aggregation import FALLBACK, QUERIES
from privrank.privacy.budget import Ledger
from privrank.privacy.noise import draw_below, draw_permutation, source_of
from privrank.release.plan import Plan
from privrank.release.release import ORDER, PAIRS, SCORE, TOTALS, Release

__all__ = ["release_aggregation"]

IntArray = NDArray[np.int64]


def release_aggregation(
    encoded: EncodedSample,
    plan: Plan,
    *,
    budget: Ledger | None,
    rng: np.random.Generator | None,
) -> Release:
    """Spend the budget and release what `plan` asks for.

    Parameters
    ----------
    encoded : EncodedSample
        The sensitive rankings.
    plan : Plan
        What to release, with its noise (:func:`privrank.planning.aggregation.plan_aggregation`).
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Returns
    -------
    Release

    Raises
    ------
    BudgetExceeded, ValueError
        Before any row is read.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows. A unit
    adds to the count of each pair some number of steps between 0 and L, so every count moves by at
    most L, the l1 distance of the counts is at most L D, D = m (m - 1) / 2, and the score of any
    one order moves by at most L D. To the Borda totals, the sums of ranks, a unit adds L times a
    mean of rankings, a point of the permutohedron: they move by L times a point of K, twice the
    centred one (:class:`privrank.privacy.knorm.PermutohedronNoise`). These are the sensitivities of
    one ranking (:class:`privrank.privacy.sensitivity.RankingReach`) times L, attained by a
    respondent whose rankings are all reversed; the plan's laws are calibrated to them.

    Partial rankings change nothing of this. The steps of a unit for all pairs are L times a point
    of the cube [0, 1]^D; a complete ranking is one of its vertices. So counts move by at most L
    each and scores by at most L D, whoever ranks or leaves out what. The map from votes to totals
    takes the cube to the permutohedron, the sum of the segments between e_i and e_j over all pairs,
    so totals move by L times a point of K. And the votes of a pair add up to L in any case, so that
    nobody learns who has ranked what from the number of votes.

    - The order of noisy counts or totals is a function of them and of a public permutation.
    - A score is that of an order already released, at its own share of epsilon: counts and score
      together spend epsilon, by adaptive composition.
    - Gaussian totals are private at the l2 distance of opposite rankings
      (:func:`privrank.planning.excess.totals_scale`), their coordinates each moving by at most
      L (m - 1).
    - Of a sort and of the exponential mechanism the order alone is released; a fallback is drawn
      at its own share, and is spent on whether it is used or not.
    """
    sample = encoded.sample
    spend(budget, plan, sample)
    tie_break = draw_permutation(len(sample.items), rng)
    steps = int(plan.number("steps"))
    counts, weight = _votes(encoded, steps), sample.nobs * steps
    values, found = {}, {}
    if PAIRS in plan.parts:
        values[PAIRS] = draw(plan.parts[PAIRS], counts[np.triu_indices(len(counts), 1)], rng)
        best = _order_of_pairs(plan, values[PAIRS], weight, tie_break)
        order = best.order
        if plan.method in ("Kemeny", "EB-Kemeny"):
            found["gap"] = best.gap
    elif TOTALS in plan.parts:
        # an item's rank is one more than the number of items before it
        values[TOTALS] = draw(plan.parts[TOTALS], counts.sum(axis=0) + weight, rng)
        order = by_score(-values[TOTALS].astype(np.float64), tie_break)
    else:
        order = _draw_order(plan, counts, weight, tie_break, rng)
    values[ORDER] = order
    if SCORE in plan.parts:
        exact = np.array([round(kemeny_score(order, counts))], dtype=np.int64)
        values[SCORE] = draw(plan.parts[SCORE], exact, rng)
    return Release(
        plan=plan,
        survey=sample,
        source=source_of(rng, plan.epsilon),
        values=values,
        tie_break=tie_break,
        found=found,
    )


def _votes(encoded: EncodedSample, steps: int) -> IntArray:
    """Return the steps for item i before item j; (i, j) and (j, i) add up to nobs times `steps`."""
    rows, sizes = encoded._rows, encoded._sizes
    count = half_votes if encoded.partial else pair_counts
    if sizes is None:
        return count(rows)
    size, whole = np.repeat(sizes, sizes), steps // 2 if encoded.partial else steps
    votes = [whole // k * count(rows[size == k]) for k in np.unique(sizes).tolist()]
    return np.asarray(np.sum(votes, axis=0), dtype=np.int64)


def _order_of_pairs(
    plan: Plan, noisy: IntArray, weight: int, tie_break: tuple[int, ...]
) -> KemenyOrder:
    """Return the order that the rule of a plan makes of noisy pair counts."""
    noise = plan.parts[PAIRS].noise
    assert noise is not None
    rule = cast(Rule, plan.method)
    return consensus_of(rule, pair_matrix(noisy / weight), noise.variance / weight**2, tie_break)


def _draw_order(
    plan: Plan,
    counts: IntArray,
    weight: int,
    tie_break: tuple[int, ...],
    rng: np.random.Generator | None,
) -> IntArray:
    """Return an order by a mechanism that releases nothing else."""
    if plan.method == "exponential mechanism":
        uniforms = np.array([draw_below(2**53, rng) * 2.0**-53 for _ in tie_break])
        return gibbs_order(counts, plan.number("rate"), uniforms)
    pivots, cap = np.array(tie_break, dtype=np.int64), int(plan.number("cap"))
    queries, fallback = plan.parts[QUERIES], plan.parts.get(FALLBACK)
    sort = noisy_kwiksort(counts, weight, pivots, cap, lambda values: draw(queries, values, rng))
    if sort.finished or fallback is None:
        return sort.order
    # all pairs at the share set aside for this, and KwikSort on them
    noisy = draw(fallback, counts[np.triu_indices(len(counts), 1)], rng)
    return kwiksort(pair_matrix(noisy / weight), pivots)
