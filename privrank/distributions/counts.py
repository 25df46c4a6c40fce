"""Counts by category: their excess, and rankings of few items as choices among all m! of them."""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_orders", "excess", "orders_of", "signs_of_orders"]

IntArray = NDArray[np.int64]


@cache
def orders_of(m: int) -> IntArray:
    """Return all m! rankings in lexicographic order of their ranks, (m!, m)."""
    ranks = np.array(list(permutations(range(1, m + 1))), dtype=np.int64)
    ranks.setflags(write=False)
    return ranks


@cache
def _orders(m: int) -> tuple[IntArray, IntArray]:
    """Return the codes of all m! rankings, ascending, and their signs, (m!, m (m - 1) / 2)."""
    ranks = orders_of(m)
    pairs = np.array(list(combinations(range(m), 2)))
    return _codes(ranks), np.sign(ranks[:, pairs[:, 1]] - ranks[:, pairs[:, 0]])


def _codes(ranks: IntArray) -> IntArray:
    m = ranks.shape[1]
    return np.asarray(ranks @ (m + 1) ** np.arange(m - 1, -1, -1))


def count_orders(ranks: IntArray) -> IntArray:
    """Return how often each of the m! rankings occurs, given ranks (n, m).

    They are in lexicographic order of their ranks, that of
    ``itertools.permutations(range(1, m + 1))``.
    """
    codes = _orders(ranks.shape[1])[0]
    return np.bincount(np.searchsorted(codes, _codes(ranks)), minlength=len(codes))


def signs_of_orders(m: int) -> IntArray:
    """Return for all m! rankings, in that order, the signs of their pairs, 1 where i is ahead of j.

    Shape (m!, m (m - 1) / 2); the pairs i < j are in lexicographic order.
    """
    return _orders(m)[1]


def excess(counts: IntArray, n: int) -> IntArray:
    """Return sum_x (k M_x - n)+ over the last axis of counts by k categories."""
    return np.asarray(np.maximum(counts.shape[-1] * counts - n, 0).sum(axis=-1))
