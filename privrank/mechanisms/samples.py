"""Releases of a sample: one statistic, one random bit, or the votes for a consensus of rankings.

**Tests.** Rankings with ties and missing items are completed first, by secret draws from a null
hypothesis.

**Votes** for pair counts or Borda totals. Each unit has one vote on every pair of items, in whole
steps. With L = lcm(1..max_rows) a respondent with k rankings casts, for each of them, L / k steps
for the item it places before the other. So all their rows are used, and all respondents have equal
weight. Where partial rankings are allowed, L is twice as large. A ranking in which two items are
tied, or one of them is left out and nothing else is known, casts half of its steps for each.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from typing import cast

import numpy as np

from privrank.consensus.orders import Rule, by_score, consensus_of, pair_matrix
from privrank.encode.encoded import EncodedChoices, EncodedGroups, EncodedSample, SampleBlock
from privrank.encode.rankingforms import complete_ranks
from privrank.hypotheses.nulls import NullModel, RandomBit, Statistic
from privrank.mechanisms.choices import answer_totals
from privrank.mechanisms.spend import Drawn, draw, spend_and_release
from privrank.plans.samples import Effect
from privrank.privacy.budget import Ledger
from privrank.privacy.draws import (
    draw_bit,
    draw_key,
    draw_orders,
    draw_permutation,
    draw_rows,
    draw_uniforms,
)
from privrank.release.names import (
    BOUNDARY,
    DECISION,
    EFFECT,
    IMPOSSIBLE,
    ORDER,
    PAIRS,
    SCORE,
    STATISTIC,
    TOTALS,
)
from privrank.release.release import Release
from privrank.release.survey import Plan
from privrank.util.arrays import (
    AnyArray,
    FloatArray,
    IntArray,
    Rng,
    Words,
    batches,
    orders_of,
    signs_of_orders,
)

Found = tuple[dict[str, IntArray], dict[str, float]]
"""Values that are released, and facts about how they were found in them."""


def release_sample(
    encoded: EncodedSample | EncodedChoices,
    query: Statistic | RandomBit,
    plan: Plan,
    *,
    null: NullModel,
    effect: Effect | None = None,
    budget: Ledger | None,
    rng: Rng,
) -> Release:
    """Spend the budget and release a noisy statistic, or a random bit.

    Parameters
    ----------
    encoded : EncodedSample or EncodedChoices
        The sensitive rows. Choices from offered sets enter by their item vector.
    query : Statistic or RandomBit
        What to release.
    plan : Plan
        Its noise (:func:`plan_sample`).
    null : NullModel
        The null hypothesis, from which rankings with ties or missing items are completed.
    effect : tuple of Statistic and float, optional
        The distance that the plan releases in addition.
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Raises
    ------
    BudgetExceeded, ValueError
        Before any row is read.
    """
    return spend_and_release(
        plan,
        encoded.sample,
        partial(_test_drawn, encoded, query, plan, null, effect, rng),
        budget=budget,
        rng=rng,
    )


def _test_drawn(
    encoded: EncodedSample | EncodedChoices,
    query: Statistic | RandomBit,
    plan: Plan,
    null: NullModel,
    effect: Effect | None,
    rng: Rng,
) -> Drawn:
    """Draw the noisy statistic or the random bit, and the effect if the plan releases it."""
    values = {}
    if isinstance(encoded, EncodedChoices):
        data = answer_totals(encoded)
    else:
        data = tabulated(one_row_each(encoded, rng))
    if getattr(encoded.sample, "completed", False):
        data = completed(data, null, rng)
    if effect is not None:
        values[EFFECT] = draw(plan.parts[EFFECT], np.array([effect[0].value(data, ())]), rng)
    order = draw_permutation(len(encoded.sample.items), rng)
    if isinstance(query, Statistic):
        if query.impossible is not None and IMPOSSIBLE in plan.parts:
            values[IMPOSSIBLE] = np.array([query.impossible(data)])
        values[STATISTIC] = draw(plan.parts[STATISTIC], np.array([query.value(data, order)]), rng)
        if BOUNDARY in plan.parts:
            lot = draw_uniforms(1, 1, rng)[0, 0] - 0.5
            values[BOUNDARY] = np.array([round(lot / plan.parts[BOUNDARY].step)])
    else:
        if query.dealt:
            data = data[draw_orders(1, len(data), rng)[0]]
        values[DECISION] = np.array([draw_bit(query.probability(data, order), rng)])
    return Drawn(values, order)


def one_row_each(encoded: EncodedSample, rng: Rng, *, apart: bool = False) -> EncodedSample:
    """Return the sample with one row of every unit, drawn secretly and independently per unit.

    Choices are counted, unless `apart` requires the choices of respondents to be kept separate. In
    all other cases the kept rows are ordered by the numbers of their names, whatever part of the
    data they are in.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one respondent with all their rows. Let k be the key
    of this fit. Whatever it is, and whatever its hash does, the row that is drawn of a respondent
    is a function of k, their own rows and their name (:func:`privrank.privacy.draws.draw_rows`). It
    is no function of other respondents, the order of rows, the part that they are in or the number
    of parts. So if one respondent is replaced, even by one with another name or in another part,
    the rows drawn under k are neighbours with one replaced row. A mechanism that is private for one
    row per unit has the same guarantee under k, and hence for the mean over k, which does not
    depend on the data. Another name can move the places of other respondents. The use of the rows
    must therefore not depend on their order, or must treat all orders alike. This is the case
    (:class:`privrank.hypotheses.nulls.Statistic`).
    """
    drawn = encoded._people
    if drawn is None:
        return encoded
    if encoded.sample.unit == "respondent" and encoded.sample.max_rows > 1:
        drawn = drawn.then(partial(_drawn, key=draw_key(rng)))
    if encoded.sample.kind == "choices" and not apart:
        many = len(encoded.sample.items)  # a cluster's workers get this number, never the data
        rows = drawn.total(lambda part: np.bincount(part.cells[:, 0], minlength=many))
    else:
        names, cells = drawn.total(
            lambda part: [part.name, part.cells],
            lambda *both: [np.concatenate(arrays) for arrays in zip(*both, strict=True)],
        )
        rows = cells[np.argsort(names, kind="stable")]
    return replace(encoded, _rows=rows.astype(np.int64), _people=None)


def _drawn(part: SampleBlock, key: Words) -> SampleBlock:
    """Return a part with one row of each respondent."""
    size = np.ones(len(part.person), dtype=np.int64)
    chosen = draw_rows(part.person, size, 1, (part.name[part.person],), key) > 0
    return SampleBlock(part.name, part.person[chosen], part.cells[chosen])


def tabulated(encoded: EncodedSample) -> IntArray:
    """Return the ranks, or the counts by category, of units with one row each; sensitive."""
    if encoded.sample.kind == "rankings" or encoded._rows.ndim == 1:
        return encoded._rows
    return np.bincount(encoded._rows[:, 0], minlength=len(encoded.sample.items)).astype(np.int64)


def completed(codes: IntArray, null: NullModel, rng: Rng) -> IntArray:
    """Return complete rankings, drawn from the null among those that agree with the answers.

    Parameters
    ----------
    codes : ndarray of int64, shape (n, m)
        Twice the ranks, equal for items that share a rank; 0 for an item whose place is not known.
    null : NullModel
        A null model of rankings: a Mallows model, probabilities of all m! rankings, or neither for
        the uniform distribution. A Mallows model is possible if all places are known
        (:meth:`privrank.hypotheses.nulls.NullModel.tabulated`).
    rng : numpy.random.Generator or None
        None for secure random bits.

    Returns
    -------
    ndarray of int64, shape (n, m)
        Ranks 1 to m. The result is as sensitive as the codes.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one ranking. Each ranking is mapped by separate random
    numbers, drawn in secret. For any outcome of these, neighbours become rankings that differ in
    one row. A mechanism that is private for complete rankings is therefore private here. Completed
    rankings are never released.

    **Statistic.** Let an order x have probability P(x) under the null, and let the reported part o
    of it satisfy coarsening at random: P(o | x) is the same for all x that agree with o. Given o,
    the order then has the probabilities P(x), divided by their sum over all orders that agree. The
    draws here use this distribution. The completed rankings therefore have exactly the null
    distribution, and are independent if respondents are.

    Ties are an ordered partition into buckets. The Kendall distance of an order that agrees is the
    distance of the pairs between buckets, which is fixed, plus the distances of the orders within
    buckets. Under a Mallows model the orders within buckets are therefore independent, each with a
    Mallows model of the bucket's items, drawn by repeated insertion. In the order of the centre,
    item j is put before c of the items of its bucket that came earlier, with P(c) proportional to
    phi^c. Together with the items of worse buckets this is the insertion code of the whole ranking.
    There is no such factorisation for items whose place is not known; they are drawn from the
    probabilities of all m! orders. If no order that agrees has a positive probability, all are
    equally likely, because such a ranking has probability 0 for every draw.
    """
    n, m = codes.shape
    p = np.asarray(null.probabilities)
    ranks = np.empty((n, m), dtype=np.int64)
    for rows in batches(n, math.factorial(m) if null.probabilities else m):
        part = codes[rows]
        if null.probabilities:
            ranks[rows] = _chosen(part, p, rng)
        elif null.center:
            ranks[rows] = _inserted(part, null, rng)
        else:
            known = np.where(part > 0, part / 2, np.nan)
            ranks[rows] = complete_ranks(known, draw_orders(len(part), m, rng), anywhere=True)
    return ranks


def completed_groups(encoded: EncodedGroups, rng: Rng) -> EncodedGroups:
    """Return groups whose rankings are completed, if they may be partial, by uniform draws.

    Notes
    -----
    **Statistic.** If the rankings and their missing parts have the same distribution in all groups,
    the completed rankings have the same distribution as well, and units stay exchangeable. They are
    completed once, before any permutation. Uniform orders reduce the differences between groups.
    """
    if not encoded.sample.completed:
        return encoded
    return EncodedGroups(
        encoded.sample,
        [
            EncodedSample(part.sample, completed(part._rows, NullModel(), rng))
            for part in encoded._parts
        ],
        encoded._partners,
    )


def _inserted(codes: IntArray, null: NullModel, rng: Rng) -> IntArray:
    """Return rankings by repeated insertion in the order of the centre; all places are known."""
    from privrank.kernels import rankings as kernels

    n, m = codes.shape
    items = np.argsort(null.center)
    ordered = codes[:, items]
    # item j goes before items of worse buckets, and before c of the `size` - 1 of its own
    before = np.zeros((n, m), dtype=np.int64)
    size = np.ones((n, m), dtype=np.int64)
    for j in range(1, m):
        before[:, j] = (ordered[:, :j] > ordered[:, j : j + 1]).sum(axis=1)
        size[:, j] += (ordered[:, :j] == ordered[:, j : j + 1]).sum(axis=1)
    ranks = np.empty((n, m), dtype=np.int64)
    ranks[:, items] = kernels.insertion_ranks(
        before + kernels.insertion_codes(draw_uniforms(n, m, rng), size, null.theta)
    )
    return ranks


def _chosen(codes: IntArray, p: FloatArray, rng: Rng) -> IntArray:
    """Return for each row one of all m! orders, by their probabilities, among those that agree."""
    m = codes.shape[1]
    # an order agrees if it has every pair that was reported the same way round
    first, second = np.triu_indices(m, 1)
    known = (codes[:, first] > 0) & (codes[:, second] > 0)
    signs = np.sign(codes[:, second] - codes[:, first]) * known
    agree = signs @ signs_of_orders(m).T == np.abs(signs).sum(axis=1)[:, None]
    # P(x) over the orders that agree, or equal weights if all of these have probability 0
    weights = agree * p
    weights[weights.sum(axis=1) == 0] = 1.0
    weights = np.cumsum(agree * weights, axis=1)
    total = weights[:, -1:]
    above = draw_uniforms(len(codes), 1, rng) * total
    # the last order of a positive probability, if a product was rounded up to the total
    place = np.minimum((weights <= above).sum(axis=1), (weights < total).sum(axis=1))
    return np.asarray(orders_of(m)[place])


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
    return spend_and_release(
        plan,
        encoded.sample,
        partial(_consensus_drawn, encoded, plan, find or consensus_in, rng),
        budget=budget,
        rng=rng,
    )


def _consensus_drawn(
    encoded: EncodedSample, plan: Plan, find: Callable[..., Found], rng: Rng
) -> Drawn:
    """Draw the parts of the plan with `find`, given the exact votes."""
    tie_break = draw_permutation(len(encoded.sample.items), rng)
    steps = int(plan.number("steps"))
    values, findings = find(
        plan, _votes(encoded, steps), encoded.sample.nobs * steps, tie_break, rng
    )
    return Drawn(values, tie_break, findings)


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
    steps //= 2 if encoded.partial else 1
    return encoded._people.total(partial(_votes_of, count=count, steps=steps))


def _votes_of(part: SampleBlock, count: Callable[[IntArray], IntArray], steps: int) -> IntArray:
    """Return the votes of a part: a respondent with k rankings casts L / k steps for each."""
    size = np.bincount(part.person)[part.person]
    return reduce(
        np.add, (steps // k * count(part.cells[size == k]) for k in np.unique(size).tolist())
    )


def consensus_in(
    plan: Plan, counts: IntArray, weight: int, tie_break: tuple[int, ...], rng: Rng
) -> Found:
    """Return noisy pair counts or Borda totals, the order found in them, and its score."""
    values = {}
    if PAIRS in plan.parts:
        part = plan.parts[PAIRS]
        assert part.noise is not None
        values[PAIRS] = draw(part, counts[np.triu_indices(len(counts), 1)], rng)
        fractions = pair_matrix(values[PAIRS] / weight)
        variance = part.noise.variance / weight**2
        best = consensus_of(cast(Rule, plan.method), fractions, variance, tie_break)
        values[ORDER] = best.order
        findings = best.findings if plan.method in ("Kemeny", "EB-Kemeny") else {}
    else:
        findings = {}
        # an item's rank is one more than the number of items before it
        values[TOTALS] = draw(plan.parts[TOTALS], counts.sum(axis=0) + weight, rng)
        values[ORDER] = by_score(-values[TOTALS].astype(np.float64), tie_break)
    if SCORE in plan.parts:
        # the votes for every item before those that the order has ahead of it
        against = np.tril(counts[np.ix_(values[ORDER], values[ORDER])], -1)
        values[SCORE] = draw(plan.parts[SCORE], np.array([against.sum()]), rng)
    return values, findings
