"""All m! rankings of few items, and the signs of their pairs."""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

__all__ = ["orders_of", "signs_of_orders"]

IntArray = NDArray[np.int64]


@cache
def orders_of(m: int) -> IntArray:
    """Return all m! rankings in lexicographic order of their ranks, (m!, m)."""
    ranks = np.array(list(permutations(range(1, m + 1))), dtype=np.int64)
    ranks.setflags(write=False)
    return ranks


@cache
def signs_of_orders(m: int) -> IntArray:
    """Return for all m! rankings, in that order, the signs of their pairs, 1 where i is ahead of j.

    Shape (m!, m (m - 1) / 2); the pairs i < j are in lexicographic order.
    """
    ranks, pairs = orders_of(m), np.array(list(combinations(range(m), 2)))
    return np.asarray(np.sign(ranks[:, pairs[:, 1]] - ranks[:, pairs[:, 0]]))
