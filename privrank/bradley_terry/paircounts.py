"""Comparisons per pair: met, declared, released with noise, or from those of each item. No data.

**Whether comparisons connect the items.** Of public comparisons the graph decides. Of released
counts it is asked whether they exceed their noise. Items on two sides of a cut whose released
comparisons, added up, do not exceed `FEW` standard deviations of their noise count as not compared
with each other; by such cuts items fall into *parts*. A difference of worths is identified within a
part. Nothing but the release and the distribution of its noise decides.

Where nobody compared the two sides of a cut it is detected unless the noise of the sum exceeds
`FEW` standard deviations. The probability of that is at most .002 for one pair, .0015 for two and
.001 for more (``tests/release/test_connected.py``). As the noise is symmetric, a cut with at least
twice as many comparisons is taken for one without any as rarely.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from scipy.special import ndtr, ndtri

from privrank.bradley_terry.opponents import matched_counts
from privrank.release import names
from privrank.release.release import Release
from privrank.release.survey import Design, PairCounts
from privrank.util.arrays import FloatArray, IntArray, own
from privrank.util.solvers import spectrum

LEAST_GROUP = 1.0
"""Answers that every group is taken to have at least."""

FEW = 4.0
"""Standard deviations of their noise that released comparisons have to exceed to count as any."""

_LIMIT = 0.05
"""Level of the lower limit of the comparisons across a cut."""

_MOST_EVERY, _MOST_ORDERED, _MOST_SPECTRAL = 10, 100, 500
"""Items up to which every cut is tried; up to which the weakest of single items and of cuts along
eigenvectors comes first; and up to which such cuts are tried once no single item is left alone."""

_VECTORS = 8
"""Eigenvectors along which cuts are tried."""


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

    Its `pairs`, where they are released `surplus`, `count_variance` and `member`, and `matching`
    where they follow from those of items.
    """
    if names.PAIR_COUNTS in release.parts:
        part = release.parts[names.PAIR_COUNTS]
        return released_counts(release.design, part.values.astype(np.float64), part.noise_variance)
    if names.SIDES in release.parts:
        matching, member = matched_counts(release)
        return {"pairs": matching.pairs, "member": member, "matching": matching}
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


def groups_of(pairs: PairCounts, items: int) -> tuple[int, NDArray[np.int32]]:
    """Return how many groups of items are not compared with each other, and the group of each."""
    # with covariates item i with pattern s has the number s m + i
    edges = (pairs.first % items, pairs.second % items)
    graph = coo_array((np.ones(len(pairs.first)), edges), shape=(items, items))
    groups, member = connected_components(graph, directed=False)
    if (member[edges[0]] != member[edges[1]]).any():
        raise RuntimeError(
            "scipy's connected_components put two items that are compared into two groups: "
            "install another version of scipy."
        )
    return int(groups), member


def check_connected(pairs: PairCounts, items: tuple[str, ...], *, reports: bool = False) -> None:
    """Refuse a public comparison graph that falls apart: worths across groups mean nothing.

    Named is what lies outside the largest group; `reports` are what is counted, where they are.
    """
    groups, member = groups_of(pairs, len(items))
    if groups == 1:
        return
    outside = [items[k] for k in np.flatnonzero(member != np.bincount(member).argmax())]
    shown = ", ".join(outside[:5]) + (", ..." if len(outside) > 5 else "")
    isolated = f"{shown} {'is' if len(outside) == 1 else 'are'} never compared with the others"
    if reports:
        raise ValueError(
            f"tally must hold reports that connect all items, and in its few {isolated}: collect "
            f"more reports."
        )
    raise ValueError(
        f"comparisons must connect all items, but {isolated}, so differences between the {groups} "
        f"groups are not identified: add comparisons, leave items without any out of items=, or "
        f"analyse each group by itself."
    )


def parts_of(noisy: FloatArray, variance: float, items: int) -> IntArray | None:
    """Return the part of each item, numbered from 0; None where all items are in one.

    Given released counts of all pairs, in the order of ``numpy.triu_indices(items, 1)``, and the
    variance of their noise, which is uncorrelated.
    """
    table = squareform(noisy, checks=False)
    queue, parts = [np.arange(items)], list[IntArray]()
    while queue:
        inside = queue.pop()
        # split by the weakest cut until all cuts of what is left exceed their noise
        within = table[np.ix_(inside, inside)]
        if len(inside) > _MOST_ORDERED:
            alone = within.sum(axis=1) <= FEW * np.sqrt(variance * (len(inside) - 1))
            if alone.any():  # all at once: where nothing is identified, that is all of them
                parts += np.split(inside[alone], alone.sum())
                if not alone.all():
                    queue.append(inside[~alone])
                continue
        cut = _weakest(within, variance) if 1 < len(inside) <= _MOST_SPECTRAL else None
        if cut is None:
            parts.append(inside)
        else:
            queue += [inside[cut], inside[~cut]]
    if len(parts) == 1:
        return None
    member = np.empty(items, dtype=np.int64)
    for number, part in enumerate(sorted(parts, key=lambda part: int(part[0]))):
        member[part] = number
    return own(member, np.int64)


def weak_cuts(
    noisy: FloatArray, variance: float, components: Sequence[IntArray]
) -> list[tuple[FloatArray, float]]:
    """Return the cuts that hardly exceed their noise, and how probable it was that they do.

    Parameters
    ----------
    noisy, variance : ndarray, float
        As of :func:`parts_of`.
    components : sequence of ndarray of int
        The items of each part.

    Returns
    -------
    list of ndarray and float
        1 for the items on one side, shape (m,), of the cuts whose comparisons have a lower limit,
        to one side at level .05, below the `FEW` standard deviations that they have to exceed. And
        how probable it is that they do if there are as many comparisons as that limit says.
    """
    table, weak = squareform(noisy, checks=False), []
    for part in (part for part in components if 1 < len(part) <= _MOST_SPECTRAL):
        sides, crossing, noise = _crossings(table[np.ix_(part, part)], variance)
        least = crossing / np.maximum(noise, 1e-150) + float(ndtri(_LIMIT))
        for cut in np.flatnonzero(least < FEW):
            side = np.zeros(len(table))
            side[part] = sides[cut]
            weak.append((side, float(ndtr(least[cut] - FEW))))
    return weak


def _weakest(table: FloatArray, variance: float) -> NDArray[np.bool_] | None:
    """Return one side of the cut whose counts exceed their noise least; None if all exceed it."""
    sides, crossing, noise = _crossings(table, variance)
    least = int(np.argmin(crossing / np.maximum(noise, 1e-150)))
    side: NDArray[np.bool_] = sides[least]
    return None if crossing[least] > FEW * noise[least] else side


def _crossings(
    table: FloatArray, variance: float
) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
    """Return sides of cuts, the released comparisons across each, and the noise of their sum."""
    sides = _cuts(table)
    crossing = np.einsum("ci,ci->c", sides @ table, ~sides)
    size = sides.sum(axis=1)  # of k items there are k (m - k) pairs across
    return sides, crossing, np.sqrt(variance * size * (len(table) - size))


def _cuts(table: FloatArray) -> NDArray[np.bool_]:
    """Return the sides of the cuts that are tried, one by row."""
    m = len(table)
    if m <= _MOST_EVERY:  # the bits of 1 to 2^(m-1) - 1: the last item is never on the side
        return np.asarray((np.arange(1, 2 ** (m - 1))[:, None] >> np.arange(m)) % 2 == 1)
    # a part that is hardly compared with the rest is nearly constant along a low eigenvector
    _, vectors = spectrum(np.diag(table.sum(axis=1)) - table)
    order = np.argsort(vectors[:, : min(_VECTORS, m)], axis=0)
    place = np.argsort(order, axis=0)
    sweeps = place.T[:, None, :] < np.arange(1, m)[None, :, None]
    return np.concatenate((np.eye(m, dtype=bool), sweeps.reshape(-1, m)))
