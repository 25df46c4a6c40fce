"""Whether the comparisons of a survey hang together."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from privrank.release.survey import PairCounts

__all__ = ["check_connected"]


def check_connected(pairs: PairCounts, items: tuple[str, ...]) -> None:
    """Refuse a public comparison graph that falls apart: worths across parts mean nothing."""
    m = len(items)
    # with covariates item i with pattern s has the number s m + i
    edges = (pairs.first % m, pairs.second % m)
    graph = coo_array((np.ones(len(pairs.first)), edges), shape=(m, m))
    parts, member = connected_components(graph, directed=False)
    if parts == 1:
        return
    if (member[edges[0]] != member[edges[1]]).any():
        raise RuntimeError(
            "scipy's connected_components put two items that are compared into two groups: "
            "install another version of scipy."
        )
    inside = [items[k] for k in np.flatnonzero(member == member[0])]
    shown = ", ".join(inside[:5]) + (", ..." if len(inside) > 5 else "")
    raise ValueError(
        f"comparisons must connect all items, but {shown} are never compared with the other "
        f"items, so differences between the {parts} groups are not identified: add comparisons "
        f"or analyse each group by itself."
    )
