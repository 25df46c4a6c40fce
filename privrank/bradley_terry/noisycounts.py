"""Comparisons per pair, and per group of respondents, as a release tells them. Sees no data.

Items that the release does not connect (:func:`privrank.release.connected.parts_of`) are not
compared in any statement, but their counts are part of the fit: too few to tell how two items
compare, they still move the scores of both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.release.connected import parts_of
from privrank.release.covariates import Covariates
from privrank.release.names import GROUP_ANSWERS, PAIR_COUNTS
from privrank.release.release import Release
from privrank.release.survey import Design, PairCounts

__all__ = ["Counts", "groups", "pair_counts", "unbiased"]

FloatArray = NDArray[np.float64]

LEAST_GROUP = 1.0
"""Answers that every group is taken to have at least."""


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Comparisons per pair, as :class:`privrank.bradley_terry.score.ScoreEquations` has them.

    Parameters
    ----------
    pairs : PairCounts
        What a fit takes them to be.
    surplus : ndarray
        By how much these are too large; empty if they are not.
    variance : float
        Error variance of each.
    member : ndarray of int64, or None
        The part of each item, between which they do not exceed their noise; None if all are in one.
    """

    pairs: PairCounts
    surplus: FloatArray = field(default_factory=lambda: np.zeros(0))
    variance: float = 0.0
    member: NDArray[np.int64] | None = None


def unbiased(design: Design, noisy: FloatArray, variance: float) -> Counts:
    """Return counts per pair that were released with noise of this variance.

    A fit needs counts that are not negative: where noise has carried one below 0 it is 0, and what
    that adds is taken off again once the worths are known
    (:meth:`privrank.bradley_terry.score.ScoreEquations.surplus_score`).
    So the errors of the equations have mean 0 and the variance of the noise whatever the counts
    are; counts shrunk towards their mean would be wrong in the same direction for all pairs of an
    item that is compared more often than others.
    """
    items, count = len(design.items), np.maximum(noisy, 0.0)
    pairs = PairCounts(*np.triu_indices(items, 1), count, "released")
    return Counts(pairs, count - noisy, variance, parts_of(noisy, variance, items))


@lru_cache(maxsize=8)
def pair_counts(release: Release) -> Counts:
    """Return the comparisons per pair."""
    if PAIR_COUNTS in release.parts:
        part = release.parts[PAIR_COUNTS]
        return unbiased(release.design, part.values.astype(np.float64), part.noise_variance)
    if release.design.pairs is None:
        raise ValueError("release must hold pair counts, or its design must.")
    return Counts(release.design.pairs)


def groups(release: Release, covariates: Covariates) -> dict[str, Any]:
    """Return comparisons per pattern and pair, and per cell, with their errors.

    Under a private design the comparisons per cell are released, and so are those per pair unless
    they are declared. Every cell is taken to compare the pairs in the same proportions.
    """
    counts = pair_counts(release)
    pairs, cells, m = counts.pairs, covariates.cells, len(release.design.items)
    if pairs.origin == "observed":
        return {"pairs": pairs}
    answers, variance = np.ones(cells), 0.0
    if cells > 1:
        part = release.parts[GROUP_ANSWERS]
        answers = np.maximum(part.step * part.values, LEAST_GROUP)
        variance = part.noise_variance
    shift, share = np.repeat(np.arange(cells) * m, len(pairs.first)), answers / answers.sum()
    by_cell = PairCounts(
        np.tile(pairs.first, cells) + shift,
        np.tile(pairs.second, cells) + shift,
        np.asarray(np.kron(share, pairs.count), dtype=np.float64),
        pairs.origin,
    )
    return {
        "pairs": by_cell,
        "surplus": np.kron(share, counts.surplus),
        "count_variance": counts.variance,
        "group_answers": answers,
        "group_variance": variance,
        "member": counts.member,
    }
