"""The probability that a comparison of samples is rejected, from simulated data, for planning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privrank.hypotheses.nulls import Order
from privrank.hypotheses.simulation import RejectionProbability
from privrank.hypotheses.statistic import Comparison
from privrank.mechanisms.closeness import (
    permuted,
    public_quantiles,
    round_up,
    simulated_groups,
    smoothed_pvalue,
)
from privrank.plans.closeness import RELEASED_STEPS
from privrank.release.names import DECISION, PVALUE
from privrank.release.plan import Plan
from privrank.release.survey import Sample
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.solvers import find_root


def rejection_probability(statistics: FloatArray, scale: float, alpha: float) -> float:
    """Return the probability over the noise that the released p-value is at most `alpha`.

    For planning, from the statistics of simulated data.

    Notes
    -----
    **Statistic.** H falls strictly, so that the p-value, rounded up to a multiple of 1e-4, is at
    most alpha where M_0 is at least the m at which H(m) is alpha rounded down to one.
    """
    level = math.floor(RELEASED_STEPS * alpha * (1 + 1e-12)) / RELEASED_STEPS
    if scale == 0:
        return float(round_up(smoothed_pvalue(statistics, float(statistics[0]), 0.0)) <= alpha)
    if level == 0.0:
        return 0.0
    margin = scale * (math.log(1.0 / level) + 1.0)
    least = find_root(
        lambda m: smoothed_pvalue(statistics, m, scale) - level,
        float(statistics.min()) - margin,
        float(statistics.max()) + margin,
        xtol=1e-9 * scale,
        rtol=1e-9,
    )
    step = (least - float(statistics[0])) / scale
    tail = 0.5 * math.exp(-abs(step))
    return tail if step > 0 else 1.0 - tail


def comparison_rejects(
    comparison: Comparison, plan: Plan, sample: Sample, alpha: float
) -> RejectionProbability:
    """Return the map from simulated data of all groups to their probability of rejection.

    Given what the comparison releases, its plan and the public facts. The data, counts by category
    or ranks with one row per unit, come with the generator of all that is random in it.
    """
    alone = replace(
        plan, parts={name: plan.parts[name] for name in plan.parts.keys() & {DECISION, PVALUE}}
    )
    scale = plan.number("scale")
    public = public_quantiles(comparison, sample, scale)

    def rejects(drawn: tuple[Sequence[IntArray], np.random.Generator], order: Order) -> float:
        groups, rng = drawn
        tables = simulated_groups(groups, sample)
        statistics = permuted(tables, comparison, alone, public, rng)[:, 0]
        if comparison.decision is not None:
            return float(comparison.decision(statistics, alone, rng))
        return rejection_probability(statistics, scale, alpha)

    return rejects
