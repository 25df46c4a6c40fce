"""The release of a permutation test: a p-value or a decision, and an effect if asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import permutations as all_orders

import numpy as np
from numpy.typing import NDArray

from privrank.encode.encodedsample import EncodedSample
from privrank.encode.groups import EncodedGroups
from privrank.hypotheses.smoothing import (
    RELEASED_STEPS,
    noise_cell,
    round_up,
    smoothed_pvalue,
    smoothing_scale,
)
from privrank.hypotheses.statistic import Comparison
from privrank.mechanisms.completion import completed_groups
from privrank.mechanisms.spend import draw, spend
from privrank.mechanisms.statistics.gram import check_gram, gram_blocks
from privrank.mechanisms.statistics.permutation import (
    check_deal,
    chi_square,
    kernel_distance,
    permuted_statistics,
    total_variation,
)
from privrank.privacy.budget import Ledger, pure_epsilon, split
from privrank.privacy.noise import (
    DiscreteLaplace,
    draw_cells,
    draw_permutation,
    source_of,
)
from privrank.release.plan import QUIET, PartPlan, Plan, Setting
from privrank.release.release import DECISION, PVALUE, STATISTIC, Release
from privrank.release.survey import Sample

__all__ = ["plan_comparison", "release_comparison"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

EFFECT_GRID = 1024
"""Lattice steps of a released effect within its sensitivity; two more allow for rounding."""

_TABULATED = 6
"""Rankings of up to this many items are counted one by one."""


@dataclass(frozen=True, slots=True)
class _Tables:
    """The data as a permutation test sees them: counts by sample and kind, and a statistic."""

    counts: IntArray
    statistic: Callable[[NDArray[np.int32]], FloatArray]


def plan_comparison(
    sample: Sample,
    asked: Comparison,
    epsilon: float,
    delta: float,
    *,
    method: str,
    effect_epsilon: float | None,
    alpha: float,
    permutations: int,
) -> Plan:
    """Calibrate the noise of a comparison of samples, from public numbers.

    Parameters
    ----------
    sample : Sample
        Public facts of the samples.
    asked : Comparison
        Statistic and form of release.
    epsilon, delta : float
        The guarantee of the test.
    method : str
        The method that asks for this statistic.
    effect_epsilon : float or None
        What an effect size may spend on top.
    alpha : float
        Level of a decision.
    permutations : int
        Number of re-labellings.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows, in
    their sample; who is in which sample is public, unless the sensitivity of `asked` is that of
    secret labels. The statistic moves by at most its sensitivity at every re-labelling
    (:mod:`privrank.mechanisms.statistics.permutation`), the re-labellings are secret and drawn
    without looking at the data, and the smoothed p-value is private at its share
    (:mod:`privrank.hypotheses.smoothing`); a decision in its place has a proof of its own. The
    effect is the statistic itself on a grid of sensitivity / 1024, floor, with independent discrete
    Laplace noise for 1026 steps: two floors differ by at most 1025, and one step allows for
    floating-point arithmetic. The two compose to xi = epsilon + effect_epsilon - log(1 - delta).
    """
    total = epsilon + (effect_epsilon or 0.0)
    if math.isinf(total):
        shares = {"test": math.inf, STATISTIC: math.inf}
    else:
        extra = {} if effect_epsilon is None else {STATISTIC: effect_epsilon / total}
        shares = split(pure_epsilon(total, delta), extra, "test")
    if asked.decision is None:
        scale = smoothing_scale(asked.sensitivity, shares["test"])
        parts = {PVALUE: PartPlan(QUIET, 1, shares["test"], 1.0 / RELEASED_STEPS)}
    else:
        scale = asked.decision.scale(shares["test"])
        parts = {DECISION: PartPlan(QUIET, 1, shares["test"])}
    settings: dict[str, Setting] = {"permutations": float(permutations), "scale": scale}
    if asked.decision is not None:
        settings["level"] = alpha
    if STATISTIC in shares:
        sensitivity = EFFECT_GRID + 2
        noise = DiscreteLaplace.calibrate(sensitivity, shares[STATISTIC])
        step = asked.sensitivity / EFFECT_GRID
        parts[STATISTIC] = PartPlan(noise, sensitivity, shares[STATISTIC], step)
    if sample.kind == "rankings" and not _tabulated(sample):
        check_gram(sample.nobs * sample.max_rows)
    check_deal(sample.nobs)
    return Plan("ClosenessTest", asked.name, method, total, delta, parts, settings)


def release_comparison(
    encoded: EncodedGroups,
    asked: Comparison,
    plan: Plan,
    *,
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
    budget : Ledger or None
        Ledger to reserve from.
    rng : numpy.random.Generator or None
        None for secure noise.

    Raises
    ------
    BudgetExceeded, ValueError
        Before any answer is read.
    """
    spend(budget, plan, encoded.sample)
    tables = _tables(completed_groups(encoded, rng), asked)
    permutations = int(plan.number("permutations"))
    statistics = permuted_statistics(tables.counts, tables.statistic, permutations, rng)
    name = PVALUE if asked.decision is None else DECISION
    values = {name: np.array([_drawn(asked, plan, statistics, rng)])}
    if STATISTIC in plan.parts:
        effect = plan.parts[STATISTIC]
        value = np.array([math.floor(float(statistics[0]) / effect.step)])
        values[STATISTIC] = draw(effect, value, rng)
    return Release(
        plan=plan,
        survey=encoded.sample,
        source=source_of(rng, plan.epsilon),
        values=values,
        tie_break=draw_permutation(len(encoded.sample.items), rng),
    )


def _drawn(
    asked: Comparison, plan: Plan, statistics: FloatArray, rng: np.random.Generator | None
) -> int:
    """Return the smoothed p-value in its steps, or the decision; `statistics` are sensitive."""
    if asked.decision is not None:
        return asked.decision.decide(statistics, plan.parts[DECISION].epsilon, rng)
    scale, noisy = plan.number("scale"), statistics[0]
    if scale > 0:
        noisy = noisy + draw_cells(scale, noise_cell(scale), 1, rng)[0]
    p = round_up(smoothed_pvalue(statistics, float(noisy), scale))
    return round(p * RELEASED_STEPS)


def _tabulated(sample: Sample) -> bool:
    return len(sample.items) <= _TABULATED and sample.max_rows == 1


def _tables(encoded: EncodedGroups, asked: Comparison) -> _Tables:
    """Return counts by sample and kind, and the statistic of such tables; sensitive."""
    sample = encoded.sample
    if asked.statistic == "tv" or asked.statistic == "chi-square":
        return _choice_tables(encoded, asked)
    ranks = np.concatenate([part._rows for part in encoded._parts])
    people = [part.sample.nobs for part in encoded._parts]
    if _tabulated(sample):
        m = len(sample.items)
        orders = np.array(list(all_orders(range(1, m + 1))), dtype=np.int64)
        base = (m + 1) ** np.arange(m - 1, -1, -1)
        kinds = np.searchsorted(orders @ base, ranks @ base)
        blocks = np.split(kinds, np.cumsum(people)[:-1])
        counts = np.array([np.bincount(block, minlength=len(orders)) for block in blocks])
        gram = list(gram_blocks(orders, asked.statistic))
        return _Tables(counts, partial(kernel_distance, gram=gram))
    starts = None
    if sample.unit == "respondent":
        sizes = np.concatenate([_rows_each(part) for part in encoded._parts])
        starts = np.cumsum(sizes) - sizes
    gram = list(gram_blocks(ranks, asked.statistic, starts))
    return _Tables(_one_kind_each(people), partial(kernel_distance, gram=gram))


def _choice_tables(encoded: EncodedGroups, asked: Comparison) -> _Tables:
    sample, k = encoded.sample, len(encoded.sample.items)
    statistic = chi_square if asked.statistic == "chi-square" else total_variation
    if sample.unit == "row" or sample.max_rows == 1:
        counts = [
            part._rows if part._sizes is None else np.bincount(part._rows, minlength=k)
            for part in encoded._parts
        ]
        return _Tables(np.array(counts, dtype=np.int64), statistic)
    # the shares of each respondent's rows by category
    features = []
    for part in encoded._parts:
        sizes = _rows_each(part)
        person = np.repeat(np.arange(len(sizes)), sizes)
        table = np.bincount(person * k + part._rows, minlength=len(sizes) * k).reshape(-1, k)
        features.append(table / sizes[:, None])
    people = [len(block) for block in features]
    return _Tables(
        _one_kind_each(people), partial(total_variation, features=np.concatenate(features))
    )


def _rows_each(part: EncodedSample) -> IntArray:
    """Return how many rows each respondent of a sample has."""
    assert part._sizes is not None
    return part._sizes


def _one_kind_each(people: list[int]) -> IntArray:
    """Return a table in which each respondent is a kind of its own."""
    counts = np.zeros((len(people), sum(people)), dtype=np.int64)
    counts[np.repeat(np.arange(len(people)), people), np.arange(sum(people))] = 1
    return counts
