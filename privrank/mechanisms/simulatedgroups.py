"""A comparison of samples run on simulated data, for planning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.encode.encoded import EncodedGroups, EncodedSample
from privrank.hypotheses.nulls import Order
from privrank.hypotheses.statistic import Comparison
from privrank.mechanisms.closeness import permuted, public_quantiles
from privrank.mechanisms.smoothing import rejection_probability
from privrank.planning.simulation import Chance
from privrank.release.names import DECISION, DETAILS, PVALUE
from privrank.release.plan import Plan
from privrank.release.survey import Sample

__all__ = ["comparison_rejects"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def comparison_rejects(asked: Comparison, plan: Plan, sample: Sample, alpha: float) -> Chance:
    """Return the map from simulated data of all groups to their probability of rejection.

    Given what the comparison releases, its plan and the public facts. The data, counts by category
    or ranks with one row per unit, come with the generator of all that is random in it.
    """
    test = {name: part for name, part in plan.parts.items() if name in (DECISION, PVALUE)}
    settings = {name: value for name, value in plan.settings.items() if name != DETAILS}
    alone = replace(plan, parts=test, settings=settings)
    public = public_quantiles(asked, sample, plan.number("scale"))
    return partial(_rejects, asked=asked, plan=alone, sample=sample, alpha=alpha, public=public)


def _rejects(
    drawn: tuple[Sequence[IntArray], np.random.Generator],
    order: Order,
    asked: Comparison,
    plan: Plan,
    sample: Sample,
    alpha: float,
    public: FloatArray,
) -> float:
    groups, rng = drawn
    facts = replace(sample, unit="row", max_rows=1)
    parts = [
        EncodedSample(replace(facts, nobs=size, groups=()), rows, None)
        for rows, size in zip(groups, sample.sizes, strict=True)
    ]
    statistics = permuted(EncodedGroups(facts, parts), asked, plan, public, rng)[:, 0]
    if asked.decision is not None:
        return float(asked.decision.decide(statistics, plan, rng))
    return rejection_probability(statistics, plan.number("scale"), alpha)
