"""Releases of a sample of rankings for its consensus: pair counts, Borda totals, or an order.

Each unit has one vote on every pair of items, in whole steps. With L = lcm(1..max_rows) a
respondent with k rankings casts, for each of them, L / k steps for the item it places before the
other; so all their rows are used, and nobody has more weight than another. Where partial rankings
are allowed, L is twice as large, and a ranking in which two items are tied, or one of them is left
out and nothing else is known, casts half of its steps for each.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import NDArray

from privrank.consensus.kemeny import KemenyOrder, gibbs_order
from privrank.consensus.orders import half_votes, kemeny_score, kwiksort, pair_counts
from privrank.consensus.pivoting import noisy_kwiksort
from privrank.consensus.rules import Rule, by_score, consensus_of, pair_matrix
from privrank.encode.samples import EncodedSample
from privrank.planning.aggregation import RankPlan
from privrank.privacy.budget import Ledger, check_budget
from privrank.privacy.knorm import PermutohedronNoise
from privrank.privacy.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    draw_below,
    draw_permutation,
    source_of,
)
from privrank.privacy.sensitivity import RankingReach
from privrank.release.release import ORDER, PAIRS, SCORE, TOTALS, Part, Release

__all__ = ["release_aggregation"]

IntArray = NDArray[np.int64]


def release_aggregation(
    encoded: EncodedSample,
    plan: RankPlan,
    *,
    epsilon: float,
    delta: float,
    budget: Ledger | None,
    rng: np.random.Generator | None,
) -> Release:
    """Spend the budget and release what `plan` asks for.

    Parameters
    ----------
    encoded : EncodedSample
        The sensitive rankings.
    plan : RankPlan
        What to release, by which laws.
    epsilon, delta : float
        The guarantee.
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
    check_budget(budget)
    if budget is not None:
        budget.reserve(
            f"PrivateRankAggregation: {plan.mechanism}",
            epsilon,
            delta,
            unit=sample.unit,
            max_rows=sample.max_rows,
            rho=_concentrated(plan, len(sample.items)),
        )

    m = len(sample.items)
    tie_break = draw_permutation(m, rng)
    counts = _votes(encoded, plan.steps)
    weight = sample.nobs * plan.steps
    constants: dict[str, float] = {}
    if plan.releases == "order":
        parts = {
            ORDER: _order_part(_draw_order(plan, counts, weight, tie_break, rng), plan.epsilon)
        }
    elif plan.releases == "pairs":
        parts, found = _draw_pairs(plan, counts, sample.nobs, tie_break, rng)
        constants = {"gap": found.gap} if plan.rule in ("Kemeny", "EB-Kemeny") else {}
    else:
        parts = _draw_totals(plan, counts, weight, tie_break, rng)
    if encoded.ties:
        constants["ties"] = 1.0
    if encoded.missing is not None:
        constants[f"missing {encoded.missing}"] = 1.0
    if plan.share and not math.isinf(epsilon):
        constants["score share"] = plan.share
    return Release(
        mechanism=plan.mechanism,
        survey=sample,
        epsilon=epsilon,
        delta=delta,
        source=source_of(rng, epsilon),
        parts=parts,
        tie_break=tie_break,
        constants=constants,
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


def _order_part(order: IntArray, epsilon: float = 0.0) -> Part:
    return Part(order, 1.0, None, 0, epsilon)


def _draw_pairs(
    plan: RankPlan,
    counts: IntArray,
    nobs: int,
    tie_break: tuple[int, ...],
    rng: np.random.Generator | None,
) -> tuple[dict[str, Part], KemenyOrder]:
    """Return noisy pair counts, their order and its score."""
    noisy = plan.law.draw(counts[np.triu_indices(len(counts), 1)], rng)
    step = 1.0 / plan.steps
    main = Part(noisy, step, plan.law, plan.steps, plan.epsilon)
    fractions = pair_matrix(np.asarray(noisy * (step / nobs)))
    found = consensus_of(cast(Rule, plan.rule), fractions, main.noise_variance / nobs**2, tie_break)
    parts = {PAIRS: main, ORDER: _order_part(found.order)}
    if plan.score is not None:
        parts[SCORE] = _draw_score(plan, counts, found.order, rng)
    return parts, found


def _concentrated(plan: RankPlan, items: int) -> float | None:
    """Return the zero-concentrated privacy of Gaussian counts or totals, with a score's own."""
    if not isinstance(plan.law, DiscreteGaussian):
        return None
    reach = RankingReach(items)
    moved = reach.pairs_l2 if plan.releases == "pairs" else plan.fineness * reach.borda_l2
    rho = 0.5 * (moved * plan.steps / plan.law.scale) ** 2
    return rho + 0.5 * plan.score_epsilon**2


def _draw_score(
    plan: RankPlan, counts: IntArray, order: IntArray, rng: np.random.Generator | None
) -> Part:
    """Return the score of a released order, with noise of its own."""
    assert plan.score is not None
    exact = np.array([round(kemeny_score(order, counts))], dtype=np.int64)
    sensitivity = RankingReach(len(order)).pairs_l1 * plan.steps
    noisy = plan.score.draw(exact, rng)
    return Part(noisy, 1.0 / plan.steps, plan.score, sensitivity, plan.score_epsilon)


def _draw_totals(
    plan: RankPlan,
    counts: IntArray,
    weight: int,
    tie_break: tuple[int, ...],
    rng: np.random.Generator | None,
) -> dict[str, Part]:
    """Return noisy Borda totals, their order and, if asked for, its score."""
    # an item's rank is one more than the number of items before it
    exact, fineness = counts.sum(axis=0) + weight, plan.fineness
    if isinstance(plan.law, PermutohedronNoise):
        totals, sensitivity = plan.law.draw(exact, rng), fineness * plan.steps
    else:
        totals = plan.law.draw(fineness * exact, rng)
        sensitivity = fineness * plan.steps * RankingReach(len(exact)).borda_linf
    step = 1.0 / (fineness * plan.steps)
    order = by_score(-totals.astype(np.float64), tie_break)
    parts = {
        TOTALS: Part(totals, step, plan.law, sensitivity, plan.epsilon),
        ORDER: _order_part(order),
    }
    if plan.score is not None:
        parts[SCORE] = _draw_score(plan, counts, order, rng)
    return parts


def _draw_order(
    plan: RankPlan,
    counts: IntArray,
    weight: int,
    tie_break: tuple[int, ...],
    rng: np.random.Generator | None,
) -> IntArray:
    """Return an order by a mechanism that releases nothing else."""
    if plan.rule == "exponential mechanism":
        uniforms = np.array([draw_below(2**53, rng) * 2.0**-53 for _ in tie_break])
        return gibbs_order(counts, plan.rate, uniforms)
    assert isinstance(plan.law, DiscreteLaplace)
    law, pivots = plan.law, np.array(tie_break, dtype=np.int64)
    sort = noisy_kwiksort(counts, weight, pivots, plan.cap, lambda values: law.draw(values, rng))
    if sort.finished or plan.fallback is None:
        return sort.order
    # all pairs at the share set aside for this, and KwikSort on them
    noisy = plan.fallback.draw(counts[np.triu_indices(len(counts), 1)], rng)
    return kwiksort(pair_matrix(noisy / weight), pivots)
