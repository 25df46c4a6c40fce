"""By which statistic groups are compared: its form, its name and its sensitivity.

All of it follows from public facts: what is chosen or ranked, among how many, by how many groups of
which sizes, and whether these are protected.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.interval import Distance
from privrank.hypotheses.statistic import Comparison
from privrank.release.survey import Sample

__all__ = [
    "DIAMETER",
    "DISTANCES",
    "FEW_CATEGORIES",
    "PAIR_FACTOR",
    "RankKernel",
    "chi_square_of",
    "chi_square_sensitivity",
    "distance_of",
    "mean_sensitivity",
    "of_pairs",
    "private_label_sensitivity",
    "sum_sensitivity",
]

IntArray = NDArray[np.int64]

RankKernel = Literal["kendall", "mallows"]

DIAMETER: dict[RankKernel, float] = {
    "kendall": 2.0,
    "mallows": math.sqrt(-2.0 * math.expm1(-2.0)),
}
"""Largest distance of the features of two rankings."""

PAIR_FACTOR = 2
"""Sensitivity of a statistic of pairs, over that of the same statistic of separate units."""

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


def mean_sensitivity(sizes: IntArray, diameter: float) -> float:
    """Return the sensitivity of the largest distance of two feature means, diam / min(sizes)."""
    return diameter / int(np.min(sizes))


def chi_square_sensitivity(sizes: IntArray) -> float:
    """Return the sensitivity of `chi_square`: the largest over pairs of samples.

    Notes
    -----
    **Privacy.** (n1 + n2)^2 / (n1 n2) N / (N + 1), N = max(n1, n2). With a = rho, b = 1 / rho,
    s = mu + nu and a mu - b nu = r s, where -b <= r <= a, one more respondent of sample 1 in a kind
    changes the statistic by (s (2 a r - r^2) + a^2) / (s + 1), increasing in r: at most a^2, at
    r = a, and at least a^2 - s (a + b)^2 / (s + 1), at r = -b, where all s are of sample 2. For
    s = 0 it is a^2. A replacement is a removal from one kind and an addition to another, so changes
    the statistic by at most (a + b)^2 s / (s + 1), s <= n2, and from sample 2 by the same with
    s <= n1. It is attained: all of the other sample in the kind that is left, and the respondent
    joins the rest of the own sample, or moves to a new kind.
    """
    largest = 0.0
    for n, other in combinations(np.asarray(sizes, dtype=np.int64).tolist(), 2):
        most = max(n, other)
        largest = max(largest, (n + other) ** 2 / (n * other) * most / (most + 1))
    return largest


def sum_sensitivity(sizes: IntArray, diameter: float) -> float:
    """Return 2 (1 - w) diam / N, the sensitivity of the sum of departures; no size is 0."""
    total = int(np.sum(sizes))
    return 2.0 * (1.0 - int(np.min(sizes)) / total) * diameter / total


def private_label_sensitivity(total: int, diameter: float) -> float:
    """Return 4 diam / N, the sensitivity of the sum of departures if labels are private."""
    return 4.0 * diameter / total


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
    **Privacy.** The sensitivities are proved in `privrank.mechanisms.permutation` (of
    two groups, and of the largest pair) and `privrank.mechanisms.departures` (all else;
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

    **Privacy.** Proof: `privrank.mechanisms.permutation`. Of pairs no effect is released.
    """
    if not sample.paired:
        return found
    reach = PAIR_FACTOR * found.sensitivity
    return replace(found, sensitivity=reach, effect=None, distance=None)
