"""A comparison of samples run on simulated data, for planning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.encode.encodedsample import EncodedSample
from privrank.encode.groups import EncodedGroups
from privrank.hypotheses.nulls import Order
from privrank.hypotheses.statistic import Comparison
from privrank.mechanisms.closeness import release_comparison
from privrank.planning.simulation import Chance
from privrank.release.plan import Plan
from privrank.release.release import DECISION, DETAILS, PVALUE
from privrank.release.survey import Sample

__all__ = ["comparison_rejects"]

IntArray = NDArray[np.int64]


def comparison_rejects(asked: Comparison, plan: Plan, sample: Sample, alpha: float) -> Chance:
    """Return the map from simulated data of all groups to whether the comparison rejects.

    Given what the comparison releases, its plan and the public facts. The data, counts by category
    or ranks with one row per unit, come with the generator of all that is random in it.
    """
    test = {name: part for name, part in plan.parts.items() if name in (DECISION, PVALUE)}
    settings = {name: value for name, value in plan.settings.items() if name != DETAILS}
    alone = replace(plan, parts=test, settings=settings)
    return partial(_rejects, asked=asked, plan=alone, sample=sample, alpha=alpha)


def _rejects(
    drawn: tuple[Sequence[IntArray], np.random.Generator],
    order: Order,
    asked: Comparison,
    plan: Plan,
    sample: Sample,
    alpha: float,
) -> float:
    groups, rng = drawn
    facts = replace(sample, unit="row", max_rows=1)
    parts = [
        EncodedSample(replace(facts, nobs=size, groups=()), rows, None)
        for rows, size in zip(groups, sample.sizes, strict=True)
    ]
    release = release_comparison(EncodedGroups(facts, parts), asked, plan, budget=None, rng=rng)
    if DECISION in release.parts:
        return float(release.parts[DECISION].values[0])
    part = release.parts[PVALUE]
    return float(part.values[0] * part.step <= alpha)
