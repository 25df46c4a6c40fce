"""Whether the comparisons of a survey hang together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from privrank.release.survey import PairCounts

__all__ = ["check_connected", "groups_of"]


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


def check_connected(pairs: PairCounts, items: tuple[str, ...]) -> None:
    """Refuse a public comparison graph that falls apart: worths across groups mean nothing."""
    groups, member = groups_of(pairs, len(items))
    if groups == 1:
        return
    inside = [items[k] for k in np.flatnonzero(member == member[0])]
    shown = ", ".join(inside[:5]) + (", ..." if len(inside) > 5 else "")
    raise ValueError(
        f"comparisons must connect all items, but {shown} are never compared with the other "
        f"items, so differences between the {groups} groups are not identified: add comparisons "
        f"or analyse each group by itself."
    )
