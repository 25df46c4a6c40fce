"""Releases of a sample of rankings for its consensus: pair counts or Borda totals.

Each unit has one vote on every pair of items, in whole steps. With L = lcm(1..max_rows) a
respondent with k rankings casts, for each of them, L / k steps for the item it places before the
other. So all their rows are used, and all respondents have equal weight. Where partial rankings are
allowed, L is twice as large. A ranking in which two items are tied, or one of them is left out and
nothing else is known, casts half of its steps for each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import cast

import numpy as np

from privrank.consensus.orders import by_score, pair_matrix
from privrank.consensus.rules import Rule, consensus_of
from privrank.encode.encoded import EncodedSample, SampleBlock
from privrank.mechanisms.spend import Drawn, draw, spend_and_release
from privrank.privacy.budget import Ledger
from privrank.privacy.draws import draw_permutation
from privrank.release.names import ORDER, PAIRS, SCORE, TOTALS
from privrank.release.plan import Plan
from privrank.release.release import Release
from privrank.util.arrays import AnyArray, IntArray
from privrank.util.checks import Rng

Found = tuple[dict[str, IntArray], dict[str, float]]
"""Values that are released, and facts about how they were found in them."""


def release_aggregation(
    encoded: EncodedSample,
    plan: Plan,
    *,
    budget: Ledger | None,
    rng: Rng,
    find: Callable[..., Found] | None = None,
) -> Release:
    """Spend the budget, before any row is read, and release what `plan` asks for.

    Or what `find` draws from the votes: given the plan, the sensitive counts of votes for each
    pair, the votes of a pair, a public permutation of the items, and the source of noise.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows. A unit
    adds to the count of each pair some number of steps between 0 and L. So every count moves by at
    most L, and the l1 distance of the counts is at most L D, D = m (m - 1) / 2. The score of any
    one order moves by at most L D. To the Borda totals, the sums of ranks, a unit adds L times a
    mean of rankings, a point of the permutohedron. They move by L times a point of K, twice the
    centred one (:class:`privrank.privacy.knorm.PermutohedronNoise`). These are the sensitivities of
    one ranking (:class:`privrank.privacy.sensitivity.RankingSensitivity`) times L, attained by a
    respondent whose rankings are all reversed; the plan's distributions are calibrated to them.

    Partial rankings change nothing of this. The steps of a unit for all pairs are L times a point
    of the cube [0, 1]^D; a complete ranking is one of its vertices. So counts move by at most L
    each and scores by at most L D, whatever items a respondent ranks or omits. The map from votes
    to totals takes the cube to the permutohedron, the sum of the segments between e_i and e_j over
    all pairs, so totals move by L times a point of K. The votes of a pair always add up to L, so
    the number of votes does not reveal which items a respondent has ranked.

    - The order of noisy counts or totals is a function of them and of a public permutation.
    - A score is the score of a released order, at its own share of epsilon: counts and score
      together spend epsilon, by adaptive composition.
    - Gaussian totals are private at the l2 distance of opposite rankings
      (:func:`privrank.plans.aggregation.totals_scale`), their coordinates each moving by at most
      L (m - 1).
    """
    sample = encoded.sample

    def drawn() -> Drawn:
        tie_break = draw_permutation(len(sample.items), rng)
        steps = int(plan.number("steps"))
        votes = _votes(encoded, steps)
        draws = find or consensus_in
        values, findings = draws(plan, votes, sample.nobs * steps, tie_break, rng)
        return Drawn(values, tie_break, findings)

    return spend_and_release(plan, sample, drawn, budget=budget, rng=rng)


def pair_count_values(ranks: AnyArray) -> IntArray:
    """Return how many of the rankings, ranks 1..m in the rows, place item i before item j."""
    from privrank.kernels.rankings import count_pairs as count

    return count(np.ascontiguousarray(ranks, dtype=np.int64))


def half_votes(ranks: IntArray) -> IntArray:
    """Return the half votes of partial rankings for item i before item j.

    Given positive ranks on any scale, with ties, and 0 for items that a ranking leaves out. Two for
    each ranking that places i before j, one where they are tied or one of them is left out.
    """
    n, m = ranks.shape
    votes = np.empty((m, m), dtype=np.int64)
    for i in range(m):
        own = ranks[:, i, None]
        ranked = (own > 0) & (ranks > 0)
        votes[i] = n + (ranked & (own < ranks)).sum(axis=0) - (ranked & (own > ranks)).sum(axis=0)
    np.fill_diagonal(votes, 0)
    return votes


def _votes(encoded: EncodedSample, steps: int) -> IntArray:
    """Return the steps for item i before item j; (i, j) and (j, i) add up to nobs times `steps`."""
    count = half_votes if encoded.partial else pair_count_values
    if encoded._people is None:
        return count(encoded._rows)
    whole = steps // 2 if encoded.partial else steps
    return encoded._people.total(partial(_votes_of, count=count, steps=whole))


def _votes_of(part: SampleBlock, count: Callable[[IntArray], IntArray], steps: int) -> IntArray:
    """Return the votes of a part: a respondent with k rankings casts L / k steps for each."""
    size = np.bincount(part.person)[part.person]
    votes = (steps // k * count(part.cells[size == k]) for k in np.unique(size).tolist())
    return reduce(np.add, votes)


def consensus_in(
    plan: Plan, counts: IntArray, weight: int, tie_break: tuple[int, ...], rng: Rng
) -> Found:
    """Return noisy pair counts or Borda totals, the order found in them, and its score."""
    values = {}
    findings = {}
    if PAIRS in plan.parts:
        part = plan.parts[PAIRS]
        assert part.noise is not None
        values[PAIRS] = draw(part, counts[np.triu_indices(len(counts), 1)], rng)
        fractions = pair_matrix(values[PAIRS] / weight)
        variance = part.noise.variance / weight**2
        best = consensus_of(cast(Rule, plan.method), fractions, variance, tie_break)
        values[ORDER] = best.order
        if plan.method in ("Kemeny", "EB-Kemeny"):
            findings = best.findings
    else:
        # an item's rank is one more than the number of items before it
        values[TOTALS] = draw(plan.parts[TOTALS], counts.sum(axis=0) + weight, rng)
        values[ORDER] = by_score(-values[TOTALS].astype(np.float64), tie_break)
    if SCORE in plan.parts:
        # the votes for every item before those that the order has ahead of it
        against = np.tril(counts[np.ix_(values[ORDER], values[ORDER])], -1)
        values[SCORE] = draw(plan.parts[SCORE], np.array([against.sum()]), rng)
    return values, findings
