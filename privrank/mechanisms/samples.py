"""Releases of one statistic, or one random bit, of a sample of rankings or choices.

Rankings with ties and missing items are completed first, by secret draws from a null hypothesis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from privrank.encode.encoded import EncodedGroups, EncodedSample, SampleBlock
from privrank.encode.rankingforms import complete_ranks
from privrank.hypotheses.nullmodel import NullModel
from privrank.hypotheses.statistic import RandomBit, Statistic
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
from privrank.release.names import BOUNDARY, DECISION, EFFECT, IMPOSSIBLE, STATISTIC
from privrank.release.plan import Plan
from privrank.release.release import Release
from privrank.util.arrays import FloatArray, IntArray, Words, batches, orders_of, signs_of_orders
from privrank.util.checks import Rng

Draw = Callable[[IntArray], IntArray]


def release_sample(
    encoded: EncodedSample,
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
    encoded : EncodedSample
        The sensitive rows.
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

    def drawn() -> Drawn:
        sample = encoded.sample
        data = tabulated(one_row_each(encoded, rng))
        values = {}
        if sample.completed:
            data = completed(data, null, rng)
        if effect is not None:
            values[EFFECT] = draw(plan.parts[EFFECT], np.array([effect[0].value(data, ())]), rng)
        order = draw_permutation(len(sample.items), rng)
        if isinstance(query, Statistic):
            if query.impossible is not None and IMPOSSIBLE in plan.parts:
                values[IMPOSSIBLE] = np.array([query.impossible(data)])
            value = np.array([query.value(data, order)])
            values[STATISTIC] = draw(plan.parts[STATISTIC], value, rng)
            if BOUNDARY in plan.parts:
                lot = draw_uniforms(1, 1, rng)[0, 0] - 0.5
                values[BOUNDARY] = np.array([round(lot / plan.parts[BOUNDARY].step)])
        else:
            if query.dealt:
                data = data[draw_orders(1, len(data), rng)[0]]
            values[DECISION] = np.array([draw_bit(query.probability(data, order), rng)])
        return Drawn(values, order)

    return spend_and_release(plan, encoded.sample, drawn, budget=budget, rng=rng)


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
    (:class:`privrank.hypotheses.statistic.Statistic`).
    """
    drawn = encoded._people
    many = len(encoded.sample.items)
    if drawn is None:
        return encoded
    if encoded.sample.unit == "respondent" and encoded.sample.max_rows > 1:
        drawn = drawn.then(partial(_drawn, key=draw_key(rng)))
    if encoded.sample.kind == "choices" and not apart:
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
    names = part.name[part.person]
    size = np.ones(len(part.person), dtype=np.int64)
    chosen = draw_rows(part.person, size, 1, (names,), key) > 0
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
        (:meth:`privrank.hypotheses.nullmodel.NullModel.tabulated`).
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
    m = codes.shape[1]
    if null.probabilities:
        p = np.asarray(null.probabilities)
        return _in_blocks(codes, math.factorial(m), lambda part: _chosen(part, p, rng))
    if null.center:
        return _in_blocks(codes, m, lambda part: _inserted(part, null, rng))
    return _in_blocks(codes, m, lambda part: _of_uniform(part, rng))


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
    parts = [
        EncodedSample(part.sample, completed(part._rows, NullModel(), rng))
        for part in encoded._parts
    ]
    return EncodedGroups(encoded.sample, parts, encoded._partners)


def _in_blocks(codes: IntArray, width: int, draw: Draw) -> IntArray:
    ranks = np.empty(codes.shape, dtype=np.int64)
    for rows in batches(len(codes), width):
        ranks[rows] = draw(codes[rows])
    return ranks


def _of_uniform(codes: IntArray, rng: Rng) -> IntArray:
    order = draw_orders(len(codes), codes.shape[1], rng)
    return complete_ranks(np.where(codes > 0, codes / 2, np.nan), order, anywhere=True)


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
    steps = kernels.insertion_codes(draw_uniforms(n, m, rng), size, null.theta)
    ranks = np.empty((n, m), dtype=np.int64)
    ranks[:, items] = kernels.insertion_ranks(before + steps)
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
