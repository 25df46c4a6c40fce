"""By which statistic groups are compared: its form, its name and its sensitivity.

All of it follows from public facts: what is chosen or ranked, among how many, by how many groups of
which sizes, and whether these are protected.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from privrank.hypotheses.statistic import Comparison
from privrank.hypotheses.twosamples import Distance
from privrank.mechanisms.statistics.departures import (
    private_label_sensitivity,
    sum_sensitivity,
)
from privrank.mechanisms.statistics.gram import DIAMETER
from privrank.mechanisms.statistics.permutation import chi_square_sensitivity, mean_sensitivity
from privrank.mechanisms.statistics.swaps import PAIR_FACTOR
from privrank.release.survey import Sample

__all__ = ["DISTANCES", "FEW_CATEGORIES", "chi_square_of", "distance_of", "of_pairs"]

FEW_CATEGORIES = 6
"""Categories up to which a difference in one of them is seen by total variation."""

Method = Literal["auto", "tv", "mmd", "kendall", "pairs"]

_NAMES = {
    ("tv", "sum"): "total variation from independence",
    ("tv", "groups"): "omnibus of total variations",
    ("tv", "cells"): "omnibus of total variation and cells",
    ("mallows", "sum"): "kernel distance from independence",
    ("mallows", "groups"): "omnibus of kernel distances",
    ("kendall", "sum"): "Kendall distance from independence",
    ("kendall", "groups"): "omnibus of Kendall distances",
}
DISTANCES = {
    "tv": "total variation distance",
    "mallows": "kernel distance (MMD)",
    "kendall": "Kendall kernel distance",
}


def distance_of(method: Method, sample: Sample) -> Comparison:
    """Return the distance by which a method compares the groups of a sample.

    Parameters
    ----------
    method : {"auto", "tv", "mmd", "kendall", "pairs"}
        ``"tv"`` for choices, ``"mmd"`` and ``"kendall"`` for rankings.
    sample : Sample
        Public facts.

    Notes
    -----
    **Privacy.** The sensitivities are proved in `privrank.mechanisms.statistics.permutation` (of
    two groups, and of the largest pair) and `privrank.mechanisms.statistics.departures` (all else;
    an omnibus has sensitivity 1).

    Of two groups the default is their distance; with more than six categories the omnibus that
    sees a difference in one category as well. Of more groups it is the omnibus of
    the departures of all and of each, whose noise goes with the number of units; the largest pair's
    goes with the smallest group. Private labels leave the sum of departures alone.
    """
    statistic: Literal["tv", "mallows", "kendall"] = "tv" if sample.kind == "choices" else "mallows"
    if method == "kendall":
        statistic = "kendall"
    diameter = 1.0 if statistic == "tv" else DIAMETER[statistic]
    if sample.private_labels:
        reach = private_label_sensitivity(sample.nobs, diameter)
        return Comparison(_NAMES[statistic, "sum"], statistic, "sum", reach)
    sizes, two = np.array(sample.sizes), len(sample.sizes) == 2
    many = len(sample.items) > FEW_CATEGORIES
    distance = _of_two(sample, statistic, diameter) if two else None
    effect = mean_sensitivity(sizes, diameter) if two else None
    if method == "pairs" or (two and not (method == "auto" and statistic == "tv" and many)):
        name = DISTANCES[statistic] if two else f"largest {DISTANCES[statistic]}"
        reach = mean_sensitivity(sizes, diameter)
        return Comparison(name, statistic, "pairs", reach, effect, distance)
    if method == "tv":
        reach = sum_sensitivity(sizes, diameter)
        return Comparison(_NAMES["tv", "sum"], "tv", "sum", reach)
    if statistic == "tv" and many:
        return Comparison(_NAMES["tv", "cells"], "tv", "cells", 1.0, effect, distance)
    return Comparison(_NAMES[statistic, "groups"], statistic, "groups", 1.0)


def _of_two(
    sample: Sample, statistic: Literal["tv", "mallows", "kendall"], diameter: float
) -> Distance:
    return Distance(
        (sample.sizes[0], sample.sizes[1]),
        diameter,
        len(sample.items) if statistic == "tv" else None,
        exact=statistic != "kendall",
    )


def chi_square_of(sample: Sample) -> Comparison:
    """Return the largest chi-square statistic of two groups."""
    reach = chi_square_sensitivity(np.array(sample.sizes))
    effect = reach if len(sample.sizes) == 2 else None
    return Comparison("chi-square", "chi-square", "pairs", reach, effect)


def of_pairs(found: Comparison, sample: Sample) -> Comparison:
    """Return a comparison as it is for these samples: of pairs, it moves twice as far.

    **Privacy.** Proof: `privrank.mechanisms.statistics.swaps`. Of pairs no effect is released.
    """
    if not sample.paired:
        return found
    reach = PAIR_FACTOR * found.sensitivity
    return replace(found, sensitivity=reach, effect=None, distance=None)
