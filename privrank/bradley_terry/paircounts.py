"""Comparisons per pair, as they were met, declared, released with noise, or follow from items'."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from privrank.bradley_terry.proportional import matched_counts
from privrank.release import names
from privrank.release.release import Release
from privrank.release.survey import Design, PairCounts, parts_of
from privrank.util.arrays import FloatArray

LEAST_GROUP = 1.0
"""Answers that every group is taken to have at least."""


def released_counts(design: Design, noisy: FloatArray, variance: float) -> dict[str, Any]:
    """Return counts per pair that were released with noise of this variance.

    A fit needs counts that are not negative: where noise has carried one below 0 it is 0, and what
    that adds is taken off again once the worths are known
    (:meth:`privrank.bradley_terry.score.ScoreEquations.surplus_score`). So the errors of the
    equations have mean 0 and the variance of the noise, whatever the counts are. Counts shrunk
    towards their mean would be wrong in the same direction for all pairs of an item that is
    compared more often than others.
    """
    items, count = len(design.items), np.maximum(noisy, 0.0)
    return {
        "pairs": PairCounts(*np.triu_indices(items, 1), count, "released"),
        "surplus": count - noisy,
        "count_variance": variance,
        "member": parts_of(noisy, variance, items),
    }


@lru_cache(maxsize=8)
def pair_counts(release: Release) -> dict[str, Any]:
    """Return the comparisons per pair, as score equations have them.

    Its `pairs`, and where they are released `surplus`, `count_variance` and `member`.
    """
    if names.PAIR_COUNTS in release.parts:
        part = release.parts[names.PAIR_COUNTS]
        return released_counts(release.design, part.values.astype(np.float64), part.noise_variance)
    if names.SIDES in release.parts:
        return dict(zip(("pairs", "member"), matched_counts(release), strict=True))
    if release.design.pairs is None:
        raise ValueError("release must hold pair counts, or its design must.")
    return {"pairs": release.design.pairs}


def counts_by_cell(release: Release) -> dict[str, Any]:
    """Return comparisons per pattern and pair, and per cell, with their errors.

    Under a private design the comparisons per cell are released, and so are those per pair unless
    they are declared. Every cell is taken to compare the pairs in the same proportions.
    """
    counts, covariates = dict(pair_counts(release)), release.design.covariates
    pairs, m = counts["pairs"], len(release.design.items)
    if covariates is None or pairs.origin == "observed":
        return counts
    cells = covariates.cells
    answers, counts["group_variance"] = np.ones(cells), 0.0
    if cells > 1:
        part = release.parts[names.GROUP_ANSWERS]
        answers = np.maximum(part.step * part.values, LEAST_GROUP)
        counts["group_variance"] = part.noise_variance
    # edges cell by cell, with the share of the cell in the comparisons of each pair
    shift, share = np.repeat(np.arange(cells) * m, len(pairs.first)), answers / answers.sum()
    counts["pairs"] = PairCounts(
        np.tile(pairs.first, cells) + shift,
        np.tile(pairs.second, cells) + shift,
        np.asarray(np.kron(share, pairs.count), dtype=np.float64),
        pairs.origin,
    )
    if "surplus" in counts:
        counts["surplus"] = np.kron(share, counts["surplus"])
    return counts | {"group_answers": answers}
