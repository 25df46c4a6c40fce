"""Comparisons per pair, and units per group, as a release tells them. Sees no data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.release.covariates import Covariates
from privrank.release.release import GROUP_SIZES, PAIR_COUNTS, Release
from privrank.release.survey import Design, PairCounts

__all__ = ["groups", "pair_counts", "unbiased"]

FloatArray = NDArray[np.float64]

LEAST_TOTAL = 0.01
"""Share of the nominal total below which released counts say nothing, if it is within a standard
deviation of noise."""

LEAST_GROUP = 1.0
"""Units that every group is taken to have at least."""


def unbiased(
    design: Design, noisy: FloatArray, variance: float
) -> tuple[PairCounts, FloatArray, float]:
    """Return released counts per pair, by how much too large they are, and their error variance.

    A fit needs counts that are not negative: where noise has carried one below 0 it is 0, and what
    that adds is taken off again once the worths are known
    (:meth:`privrank.bradley_terry.score.ScoreEquations.surplus_score`).
    So the errors of the equations have mean 0 and the variance of the noise whatever the counts
    are; counts shrunk towards their mean would be wrong in the same direction for all pairs of an
    item that is compared more often than others.
    """
    first, second = np.triu_indices(len(design.items), 1)
    count = np.maximum(noisy, 0.0)
    surplus = count - noisy
    # respondents may have far fewer rows than they are allowed: few is not none
    if noisy.sum() <= min(LEAST_TOTAL * design.nominal_total, math.sqrt(len(noisy) * variance)):
        # noise has left no comparisons at all: fall back on the nominal number
        count = np.full(len(noisy), design.nominal_total / len(noisy))
        surplus = np.zeros(len(noisy))
    return PairCounts(first, second, count, "released"), surplus, variance


def pair_counts(release: Release) -> tuple[PairCounts, FloatArray, float]:
    """Return the comparisons per pair, by how much too large they are, and their error variance."""
    if PAIR_COUNTS in release.parts:
        part = release.parts[PAIR_COUNTS]
        return unbiased(release.design, part.values.astype(np.float64), part.noise_variance)
    if release.design.pairs is None:
        raise ValueError("release must hold pair counts, or its design must.")
    return release.design.pairs, np.zeros(0), 0.0


def groups(release: Release, covariates: Covariates) -> dict[str, Any]:
    """Return the covariates with their units, and comparisons per pattern and pair with errors.

    Under a private design the units per cell are released; their sum is public. Every cell is taken
    to compare the pairs in the same proportions.
    """
    pairs, surplus, count_variance = pair_counts(release)
    design, cells, m = release.design, covariates.cells, len(release.design.items)
    if pairs.origin == "observed":
        return {"covariates": covariates, "pairs": pairs}
    size, size_variance = np.full(cells, design.nobs / cells), 0.0
    if cells > 1:
        part = release.parts[GROUP_SIZES]
        noisy = part.step * part.values
        size = np.maximum(size + noisy - noisy.mean(), LEAST_GROUP)
        size, size_variance = size * (design.nobs / size.sum()), part.noise_variance
    shift, share = np.repeat(np.arange(cells) * m, len(pairs.first)), size / design.nobs
    by_cell = PairCounts(
        np.tile(pairs.first, cells) + shift,
        np.tile(pairs.second, cells) + shift,
        np.asarray(np.kron(share, pairs.count), dtype=np.float64),
        pairs.origin,
    )
    return {
        "covariates": replace(covariates, units=size),
        "pairs": by_cell,
        "surplus": np.kron(share, surplus),
        "count_variance": count_variance,
        "size_variance": size_variance,
    }
