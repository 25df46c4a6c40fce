"""Whether the comparisons of a survey hang together: public ones, and released ones.

Of released counts it is asked whether they exceed their noise. Items on two sides of a cut whose
released comparisons, added up, do not exceed `FEW` standard deviations of their noise count as not
compared with each other; by such cuts items fall into *parts*. A difference of worths is identified
within a part. Nothing but the release and the distribution of its noise decides.

Where nobody compared the two sides of a cut it is found unless the noise of the sum exceeds `FEW`
standard deviations, which has a probability of at most .002 for one pair, .0015 for two and .001
for more (``tests/release/test_connected.py``). As the noise is symmetric, a cut with at least twice
as many comparisons is taken for one without any as rarely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from privrank.release.survey import PairCounts
from privrank.util.arrays import own
from privrank.util.solvers import spectrum

__all__ = ["check_connected", "groups_of", "parts_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FEW = 4.0
"""Standard deviations of their noise that released comparisons have to exceed to count as any."""

_MOST_EVERY, _MOST_ORDERED, _MOST_SPECTRAL = 10, 100, 500
"""Items up to which every cut is tried; up to which the weakest of single items and of cuts along
eigenvectors comes first; and up to which such cuts are tried once no single item is left alone."""

_VECTORS = 8
"""Eigenvectors along which cuts are tried."""


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
    table = np.zeros((items, items))
    table[np.triu_indices(items, 1)] = noisy
    table += table.T
    queue, parts = [np.arange(items)], list[IntArray]()
    while queue:
        inside = queue.pop()
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


def _weakest(table: FloatArray, variance: float) -> NDArray[np.bool_] | None:
    """Return one side of the cut whose counts exceed their noise least; None if all exceed it."""
    sides = _sides(table)
    crossing = np.einsum("ci,ci->c", sides @ table, ~sides)
    size = sides.sum(axis=1)
    noise = np.sqrt(variance * size * (len(table) - size))
    least = int(np.argmin(crossing / np.maximum(noise, 1e-150)))
    side: NDArray[np.bool_] = sides[least]
    return None if crossing[least] > FEW * noise[least] else side


def _sides(table: FloatArray) -> NDArray[np.bool_]:
    """Return the sides of the cuts that are tried, one by row."""
    m = len(table)
    if m <= _MOST_EVERY:
        return np.asarray((np.arange(1, 2 ** (m - 1))[:, None] >> np.arange(m)) % 2 == 1)
    # a part that is hardly compared with the rest is nearly constant along a low eigenvector
    _, vectors = spectrum(np.diag(table.sum(axis=1)) - table)
    order = np.argsort(vectors[:, : min(_VECTORS, m)], axis=0)
    place = np.argsort(order, axis=0)
    sweeps = place.T[:, None, :] < np.arange(1, m)[None, :, None]
    return np.concatenate((np.eye(m, dtype=bool), sweeps.reshape(-1, m)))
