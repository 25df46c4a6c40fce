"""Releases of one statistic, or one random bit, of a sample of rankings or choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from privrank.encode.samples import EncodedSample
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.mechanisms.spend import draw, spend
from privrank.privacy.budget import Ledger, pure_epsilon
from privrank.privacy.noise import (
    DiscreteLaplace,
    draw_bit,
    draw_one_each,
    draw_orders,
    draw_permutation,
    source_of,
)
from privrank.release.plan import QUIET, PartPlan, Plan, Setting
from privrank.release.release import DECISION, IMPOSSIBLE, STATISTIC, Release
from privrank.release.survey import Sample

__all__ = ["one_row_per_unit", "plan_sample", "release_sample"]

IntArray = NDArray[np.int64]
Reduction = Callable[[IntArray, np.random.Generator | None], IntArray]


def plan_sample(
    sample: Sample,
    asked: Statistic | RandomBit,
    epsilon: float,
    delta: float,
    *,
    by: str,
    method: str,
    settings: Mapping[str, Setting] | None = None,
) -> Plan:
    """Calibrate the noise of a statistic, from public numbers.

    Parameters
    ----------
    sample : Sample
        Public facts of the rows.
    asked : Statistic or RandomBit
        What to release.
    epsilon, delta : float
        The guarantee.
    by : str
        Who spends, for the ledger.
    method : str
        The method that asks for this statistic.
    settings : mapping of str to float, str or bool, optional
        Public constants that rebuild it.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows. Of a
    respondent's rows one is drawn by an independent secret coin. Couple the coins of neighbours
    unit by unit: units are numbered by their first rows, and a replaced respondent can move the
    numbers of all others, but not the distribution of their coins. For every outcome the two
    samples of one row per unit then differ in the replaced unit's row only, and in the order of the
    units, on which nothing depends: statistics do not, and a bit that would gets the rows in an
    order that is drawn uniformly and kept secret. So a guarantee for one row, mixed over the coins,
    holds for the respondent. The order of the items is drawn without looking at the data. A
    statistic is a whole number that one replaced row moves by at most its `sensitivity`, and
    discrete Laplace noise of scale sensitivity / xi, xi = epsilon - log(1 - delta), makes it
    (epsilon, delta)-private (:meth:`privrank.privacy.noise.DiscreteLaplace.calibrate`,
    :func:`privrank.privacy.budget.pure_epsilon`). A random bit carries its own proof. Observations
    that the null rules out are counted apart where nothing is protected, at infinite epsilon, and
    only there.
    """
    xi = pure_epsilon(epsilon, delta)
    parts = {DECISION: PartPlan(QUIET, 1, xi)}
    if isinstance(asked, Statistic):
        noise = DiscreteLaplace.calibrate(asked.sensitivity, xi)
        parts = {STATISTIC: PartPlan(noise, asked.sensitivity, xi, asked.step)}
        if asked.impossible is not None and math.isinf(xi):
            parts[IMPOSSIBLE] = PartPlan(QUIET, 1, xi)
    return Plan(by, asked.name, method, epsilon, delta, parts, settings or {})


def release_sample(
    encoded: EncodedSample,
    asked: Statistic | RandomBit,
    plan: Plan,
    *,
    reduction: Reduction | None = None,
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
    reduction : callable, optional
        Maps the counts and a generator to those of a random map of every choice by itself, of
        which the statistic is then computed.
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Raises
    ------
    BudgetExceeded, ValueError
        Before any row is read.
    """
    sample = encoded.sample
    spend(budget, plan, sample)
    data, values = one_row_per_unit(encoded, rng), {}
    if isinstance(asked, Statistic) and asked.impossible is not None and IMPOSSIBLE in plan.parts:
        values[IMPOSSIBLE] = np.array([asked.impossible(data)])
    if reduction is not None:
        data = reduction(data, rng)
    order = draw_permutation(len(sample.items), rng)
    if isinstance(asked, Statistic):
        values[STATISTIC] = draw(plan.parts[STATISTIC], np.array([asked.value(data, order)]), rng)
    else:
        if asked.dealt:
            data = data[draw_orders(1, len(data), rng)[0]]
        values[DECISION] = np.array([draw_bit(asked.probability(data, order), rng)])
    return Release(
        plan=plan,
        survey=sample,
        source=source_of(rng, plan.epsilon),
        values=values,
        tie_break=order,
    )


def one_row_per_unit(encoded: EncodedSample, rng: np.random.Generator | None) -> IntArray:
    """Return the ranks, or the counts by category, of one row per unit; sensitive."""
    rows, sizes = encoded._rows, encoded._sizes
    if sizes is None:
        return rows
    first = np.cumsum(sizes) - sizes
    kept = rows[first + draw_one_each(sizes, rng)]
    if encoded.sample.kind == "rankings":
        return np.asarray(kept)
    return np.bincount(kept, minlength=len(encoded.sample.items)).astype(np.int64)
