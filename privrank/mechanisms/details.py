"""What differs: the totals of every item by group, released beside a comparison of samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privrank.encode.groups import EncodedGroups
from privrank.mechanisms.samples import tabulated
from privrank.mechanisms.spend import draw
from privrank.privacy.knorm import PermutohedronNoise
from privrank.release.names import DETAILS
from privrank.release.plan import Plan

__all__ = ["draw_details"]

IntArray = NDArray[np.int64]


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
