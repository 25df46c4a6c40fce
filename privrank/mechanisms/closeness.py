"""The release of a permutation test: a p-value or a decision, and an effect if asked for.

Beside it, what differs: the totals of every item by group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.encode.encoded import EncodedGroups, EncodedSample
from privrank.hypotheses.statistic import Comparison
from privrank.hypotheses.twosamples import THRESHOLD_LEVEL
from privrank.mechanisms import departures
from privrank.mechanisms.permutation import (
    Gram,
    chi_square,
    gram_blocks,
    kernel_distance,
    permuted_statistics,
    total_variation,
)
from privrank.mechanisms.samples import completed_groups, one_row_each, tabulated
from privrank.mechanisms.smoothing import noise_cell, null_threshold, round_up, smoothed_pvalue
from privrank.mechanisms.spend import Drawn, draw, released
from privrank.plans.closeness import (
    MOST_TABULATED,
    RELEASED_STEPS,
    second_number,
)
from privrank.plans.distances import DIAMETER, RankKernel
from privrank.privacy.budget import Ledger
from privrank.privacy.knorm import PermutohedronNoise
from privrank.privacy.noise import (
    DiscreteLaplace,
    draw_cells,
    draw_permutation,
)
from privrank.release.names import DECISION, DETAILS, PVALUE, STATISTIC
from privrank.release.plan import Plan
from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.util.arrays import orders_of

__all__ = ["draw_details", "permuted", "public_quantiles", "release_comparison", "simulated_groups"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Tables = NDArray[np.int32]
Measure = Callable[[Tables], FloatArray]


@dataclass(frozen=True, slots=True)
class _Data:
    """The data as a permutation test sees them: counts by sample and kind; none is empty.

    Parameters
    ----------
    counts : ndarray of int64, shape (G, k)
        Units by sample and kind.
    gram : list or None
        The kernel matrix of kinds of rankings, by blocks.
    pairs : ndarray of int64, shape (2, n), or None
        The kinds of each respondent's answers in two samples of the same respondents.
    """

    counts: IntArray
    gram: Gram | None = None
    pairs: IntArray | None = None


def release_comparison(
    encoded: EncodedGroups,
    asked: Comparison,
    plan: Plan,
    *,
    public: FloatArray,
    budget: Ledger | None,
    rng: np.random.Generator | None,
) -> Release:
    """Spend the budget and release what was planned.

    Parameters
    ----------
    encoded : EncodedGroups
        The sensitive samples.
    asked : Comparison
        Statistic and form of release.
    plan : Plan
        Its noise (:func:`plan_comparison`).
    public : ndarray of float64
        Quantiles from :func:`public_quantiles`.
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Raises
    ------
    BudgetExceeded, ValueError
        Before any answer is read.
    """
    sample = encoded.sample

    def drawn() -> Drawn:
        parts = [one_row_each(part, rng) for part in encoded._parts]
        data = completed_groups(EncodedGroups(sample, parts, encoded._partners), rng)
        found = permuted(data, asked, plan, public, rng)
        name = PVALUE if asked.decision is None else DECISION
        values = {name: np.array([_outcome(asked, plan, found[:, 0], rng)])}
        if STATISTIC in plan.parts:
            values[STATISTIC] = _effect(asked, plan, found[:, -1], rng)
        values |= draw_details(data, plan, rng)
        return Drawn(values, draw_permutation(len(sample.items), rng))

    return released(plan, sample, drawn, budget=budget, rng=rng)


def simulated_groups(groups: Sequence[IntArray], sample: Sample) -> EncodedGroups:
    """Return groups of simulated data, with one row per unit, of the sizes of a sample."""
    facts = replace(sample, unit="row", max_rows=1)
    parts = [
        EncodedSample(replace(facts, nobs=size, groups=()), rows, None)
        for rows, size in zip(groups, sample.sizes, strict=True)
    ]
    return EncodedGroups(facts, parts)


def permuted(
    encoded: EncodedGroups,
    asked: Comparison,
    plan: Plan,
    public: FloatArray,
    rng: np.random.Generator | None,
) -> FloatArray:
    """Return the statistics of the data and of all re-labellings, which are sensitive.

    In rows, the data's first; the distance of two groups is a second column where it is wanted
    beside another statistic. `public` is from :func:`public_quantiles`.
    """
    data = _data(encoded, asked)
    measures = [_measure(data, asked, encoded.sample, public)]
    if STATISTIC in plan.parts and asked.form != "pairs":
        measures.append(_pairs(data, asked))
    count = int(plan.number("permutations"))
    return permuted_statistics(data.counts, partial(_columns, measures), count, rng, data.pairs)


def _columns(measures: list[Measure], tables: Tables) -> FloatArray:
    return np.stack([measure(tables) for measure in measures], axis=1)


def _outcome(
    asked: Comparison, plan: Plan, statistics: FloatArray, rng: np.random.Generator | None
) -> int:
    """Return the smoothed p-value in its steps, or the decision; `statistics` are sensitive."""
    if asked.decision is not None:
        return asked.decision.decide(statistics, plan, rng)
    scale, noisy = plan.number("scale"), statistics[0]
    if scale > 0:
        noisy = noisy + draw_cells(scale, noise_cell(scale), 1, rng)[0]
    p = round_up(smoothed_pvalue(statistics, float(noisy), scale))
    return round(p * RELEASED_STEPS)


def _effect(
    asked: Comparison, plan: Plan, distances: FloatArray, rng: np.random.Generator | None
) -> IntArray:
    """Return the noisy distance, and what is released beside it; `distances` are sensitive."""
    part, second = plan.parts[STATISTIC], second_number(asked)
    numbers = [float(distances[0])]
    if second == "mean":
        numbers.append(float(distances[1:].mean()))
    if second == "threshold":
        assert isinstance(part.noise, DiscreteLaplace)
        level = plan.number(THRESHOLD_LEVEL) / 2.0
        numbers.append(null_threshold(distances, level, part.noise.scale * part.step))
    return draw(part, np.array([math.floor(number / part.step) for number in numbers]), rng)


def public_quantiles(asked: Comparison, sample: Sample, scale: float) -> FloatArray:
    """Return the quantiles by which an omnibus compares its parts; none for other statistics."""
    if asked.form not in ("groups", "cells"):
        return np.empty(0)
    sizes, items = sample.sizes, len(sample.items)
    if asked.statistic in ("mallows", "kendall"):
        drawn = departures.ranking_parts(sizes, items, asked.statistic)
    else:
        drawn = departures.choice_parts(sizes, items, cells=asked.form == "cells")
    return departures.quantiles(drawn, len(sizes), scale)


def _measure(data: _Data, asked: Comparison, sample: Sample, public: FloatArray) -> Measure:
    """Return the statistic of the test, as a function of tables."""
    if asked.form == "pairs":
        return _pairs(data, asked)
    apart = _departures(data)
    if asked.form == "sum":
        return lambda tables: apart(tables).sum(axis=1)
    if asked.form == "cells":
        return lambda tables: departures.omnibus_values(departures.cell_parts(tables), public)
    ranked = asked.statistic in ("mallows", "kendall")
    diameter = DIAMETER[_kernel(asked)] if ranked else 1.0
    sizes = np.array(sample.sizes)
    parts = partial(departures.parts_of_departures, sizes=sizes, diameter=diameter)
    return lambda tables: departures.omnibus_values(parts(apart(tables)), public)


def _departures(data: _Data) -> Measure:
    if data.gram is not None:
        return partial(departures.kernel_departures, gram=data.gram)
    return departures.share_departures


def _pairs(data: _Data, asked: Comparison) -> Measure:
    """Return the largest distance of two groups, as a function of tables."""
    if data.gram is not None:
        return partial(kernel_distance, gram=data.gram)
    return chi_square if asked.statistic == "chi-square" else total_variation


def _data(encoded: EncodedGroups, asked: Comparison) -> _Data:
    """Return counts by sample and kind of units with one row each; sensitive.

    Groups without units, if any, are left out.
    """
    sample, parts = encoded.sample, [part for part in encoded._parts if part.sample.nobs]
    people = [part.sample.nobs for part in parts]
    if sample.kind == "choices":
        pairs = _pairs_of([part._rows for part in parts], encoded._partners)
        return _Data(np.array([tabulated(part) for part in parts]), pairs=pairs)
    ranks = np.concatenate([part._rows for part in parts])
    m = len(sample.items)
    if m <= MOST_TABULATED:
        from privrank.kernels.rankings import places_of

        orders = orders_of(m)
        blocks = np.split(places_of(ranks), np.cumsum(people)[:-1])
        counts = np.array([np.bincount(block, minlength=len(orders)) for block in blocks])
        pairs = _pairs_of(blocks, encoded._partners)
        return _Data(counts, gram=list(gram_blocks(orders, _kernel(asked))), pairs=pairs)
    gram = list(gram_blocks(ranks, _kernel(asked)))
    own = np.split(np.arange(sum(people)), np.cumsum(people)[:-1])
    pairs = _pairs_of(own, encoded._partners)
    return _Data(_one_kind_each(people), gram=gram, pairs=pairs)


def _kernel(asked: Comparison) -> RankKernel:
    return "kendall" if asked.statistic == "kendall" else "mallows"


def _pairs_of(kinds: list[IntArray], partners: IntArray | None) -> IntArray | None:
    """Return the kinds of each respondent's answers, where two samples are of the same."""
    return None if partners is None else np.stack([kinds[0], kinds[1][partners]])


def _one_kind_each(people: list[int]) -> IntArray:
    """Return a table in which each respondent is a kind of its own."""
    counts = np.zeros((len(people), sum(people)), dtype=np.int64)
    counts[np.repeat(np.arange(len(people)), people), np.arange(sum(people))] = 1
    return counts


def draw_details(
    encoded: EncodedGroups, plan: Plan, rng: np.random.Generator | None
) -> dict[str, IntArray]:
    """Return the totals by group with the noise that was planned for them, if any were.

    Units have one row each (:func:`privrank.mechanisms.samples.one_row_each`).
    """
    if DETAILS not in plan.settings:
        return {}
    items = [int(place) for place in str(plan.settings[DETAILS]).split()]
    found = {}
    for number, part in enumerate(encoded._parts):
        name = f"{DETAILS} {number}"
        rows = tabulated(part)
        totals = rows if part.sample.kind == "choices" else (rows - 1).sum(axis=0)
        chosen = plan.parts[name]
        if not isinstance(chosen.noise, PermutohedronNoise):
            totals = totals[items]
        found[name] = draw(chosen, totals, rng)
    return found
