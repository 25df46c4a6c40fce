"""Releases of one statistic, or one random bit, of a sample of rankings or choices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privrank.encode.encodedsample import EncodedSample
from privrank.hypotheses.nullmodel import NullModel
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.mechanisms.completion import completed
from privrank.mechanisms.spend import Drawn, draw, released
from privrank.plans.samples import Effect
from privrank.privacy.budget import Ledger
from privrank.privacy.noise import (
    draw_bit,
    draw_one_each,
    draw_orders,
    draw_permutation,
    draw_uniforms,
)
from privrank.release.names import BOUNDARY, DECISION, EFFECT, IMPOSSIBLE, STATISTIC
from privrank.release.plan import Plan
from privrank.release.release import Release

__all__ = ["one_row_each", "release_sample", "tabulated"]

IntArray = NDArray[np.int64]

Reduction = Callable[[IntArray, np.random.Generator | None], IntArray]


def release_sample(
    encoded: EncodedSample,
    asked: Statistic | RandomBit,
    plan: Plan,
    *,
    null: NullModel,
    reduction: Reduction | None = None,
    effect: Effect | None = None,
    budget: Ledger | None,
    rng: np.random.Generator | None,
) -> Release:
    """Spend the budget and release a noisy statistic, or a random bit.

    Parameters
    ----------
    encoded : EncodedSample
        The sensitive rows.
    asked : Statistic or RandomBit
        What to release.
    plan : Plan
        Its noise (:func:`plan_sample`).
    null : NullModel
        What is tested, from which rankings with ties or missing items are completed.
    reduction : callable, optional
        Maps the counts and a generator to those of a random map of every choice by itself, of
        which the statistic is then computed.
    effect : tuple of Statistic and float, optional
        The distance that the plan has beside it.
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
        return _drawn(encoded, asked, plan, null, reduction, effect, rng)

    return released(plan, encoded.sample, drawn, budget=budget, rng=rng)


def _drawn(
    encoded: EncodedSample,
    asked: Statistic | RandomBit,
    plan: Plan,
    null: NullModel,
    reduction: Reduction | None,
    effect: Effect | None,
    rng: np.random.Generator | None,
) -> Drawn:
    """Draw the noisy statistic, or the bit, and what is released beside it."""
    sample, data, values = encoded.sample, tabulated(one_row_each(encoded, rng)), {}
    if sample.completed:
        data = completed(data, null, rng, anywhere=encoded.missing == "half")
    if isinstance(asked, Statistic) and asked.impossible is not None and IMPOSSIBLE in plan.parts:
        values[IMPOSSIBLE] = np.array([asked.impossible(data)])
    if effect is not None:
        values[EFFECT] = draw(plan.parts[EFFECT], np.array([effect[0].value(data, ())]), rng)
    if reduction is not None:
        data = reduction(data, rng)
    order = draw_permutation(len(sample.items), rng)
    if isinstance(asked, Statistic):
        values[STATISTIC] = draw(plan.parts[STATISTIC], np.array([asked.value(data, order)]), rng)
        if BOUNDARY in plan.parts:
            lot = draw_uniforms(1, 1, rng)[0, 0] - 0.5
            values[BOUNDARY] = np.array([round(lot / plan.parts[BOUNDARY].step)])
    else:
        if asked.dealt:
            data = data[draw_orders(1, len(data), rng)[0]]
        values[DECISION] = np.array([draw_bit(asked.probability(data, order), rng)])
    return Drawn(values, order)


def one_row_each(encoded: EncodedSample, rng: np.random.Generator | None) -> EncodedSample:
    """Return the sample with one row of every unit, drawn by a secret lot of its own."""
    rows, sizes = encoded._rows, encoded._sizes
    if sizes is None:
        return encoded
    kept = rows[np.cumsum(sizes) - sizes + draw_one_each(sizes, rng)]
    return EncodedSample(encoded.sample, kept, np.ones_like(sizes), encoded.ties, encoded.missing)


def tabulated(encoded: EncodedSample) -> IntArray:
    """Return the ranks, or the counts by category, of all rows; sensitive."""
    if encoded.sample.kind == "rankings" or encoded._sizes is None:
        return encoded._rows
    return np.bincount(encoded._rows, minlength=len(encoded.sample.items)).astype(np.int64)
