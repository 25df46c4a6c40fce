"""What differs: the totals of every item by group, released beside a comparison of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privrank.encode.encoded import EncodedGroups
from privrank.mechanisms.samples import tabulated
from privrank.mechanisms.spend import draw
from privrank.privacy.knorm import PermutohedronNoise
from privrank.privacy.netnoise import ZeroSumLaplace
from privrank.privacy.noise import DiscreteLaplace
from privrank.privacy.sensitivity import RankingReach
from privrank.release.names import DETAILS
from privrank.release.plan import PartPlan, Plan
from privrank.release.survey import Sample

__all__ = ["draw_details", "plan_details"]

IntArray = NDArray[np.int64]

_LARGEST_ZERO_SUM = 100
"""Items up to which noise that sums to zero is tried; beyond, it saves less than 2 % of the
standard deviation. It is drawn by rejection, which takes ever longer for scales below 1."""


def plan_details(sample: Sample, epsilon: float, items: Sequence[int]) -> dict[str, PartPlan]:
    """Calibrate the noise of the totals by group, from public numbers.

    Given what may be spent, and the places of the items that are wanted. Of the distributions that
    apply it takes the one with the least variance.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows, in
    their group; who is in which group is public. Of a respondent's rows one is taken by a secret
    draw of their own, so that a guarantee for one row holds for the respondent
    (:func:`privrank.mechanisms.samples.plan_sample`). The totals of a group are the counts of its
    categories, or the sums of its items' ranks less one. A replaced unit moves the totals of its
    own group only, so noise that is epsilon-private for each group's totals is epsilon-private for
    all of them together, and epsilon is spent once for all groups (parallel composition).

    Within the group: a choice that is replaced lowers one count and raises another, by 1 each, l1
    norm 2 (1 where a single category is wanted); a replaced ranking adds the difference of two
    permutations (:class:`privrank.privacy.sensitivity.RankingReach`), one step of K-norm noise.
    Where all items are released the totals sum to a public number, n_g, or n_g m (m - 1) / 2, and
    differences of neighbours to 0, so that noise that sums to zero applies. Totals of rankings with
    K-norm noise need all items; those that were not asked for are left out of what is inferred.
    """
    m, some = len(sample.items), len(items) < len(sample.items)
    moved = _l1(sample, len(items))
    parts = [PartPlan(DiscreteLaplace.calibrate(moved, epsilon), moved, epsilon)]
    if m <= _LARGEST_ZERO_SUM and epsilon < np.inf:
        if not some and epsilon <= moved:
            parts.append(PartPlan(ZeroSumLaplace.calibrate(m, moved, epsilon), moved, epsilon))
        if sample.kind == "rankings":
            body = PermutohedronNoise.calibrate(m, epsilon)
            fine = body.fineness  # which this noise multiplies by itself
            parts.append(PartPlan(body, fine, epsilon, 1.0 / fine))
    least = min(parts, key=_variance)
    return {f"{DETAILS} {number}": least for number in range(len(sample.groups))}


def _l1(sample: Sample, items: int) -> int:
    """Return how far one unit moves the totals of so many items of its group."""
    if sample.kind == "rankings":
        return RankingReach(len(sample.items)).some_borda_l1(items)
    return min(items, 2)


def _variance(part: PartPlan) -> float:
    assert part.noise is not None
    return part.noise.variance * part.step**2


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
