"""Costs of all orders of few items, by recursion over the subsets that may come first.

Not compiled, and so apart from compiled loops: what follows un-noised data looks into it.
"""

from __future__ import annotations

import numpy as np

from privrank.util.arrays import FloatArray


def split_costs(block: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the costs of placing each item behind a set, over the sets of two halves of items."""
    m = len(block)
    tables = []
    for columns in (block[:, : m // 2], block[:, m // 2 :]):
        sums = np.zeros((m, 1))
        for column in columns.T:
            sums = np.hstack((sums, sums + column[:, None]))
        tables.append(np.ascontiguousarray(sums))
    return tables[0], tables[1]


def subset_values(halves: tuple[FloatArray, FloatArray], *, soft: bool = False) -> FloatArray:
    """Return for each set of items the least total cost of ordering it, or its soft minimum.

    Given the costs of :func:`split_costs`, returns the 2^m values V of the sets, written as bits:
    V(A) = min or -log sum exp(-.) over i in A of V(A - i) + cost(i, A - i), V(empty) = 0: the last
    item of A is i. With ``soft``, exp(-V(A)) is the sum of exp(-cost) over all orders of A.
    """
    low, high = halves
    m, width = low.shape
    sets = np.arange(1 << m, dtype=np.int32)
    items = np.arange(m, dtype=np.int32)
    inside = (sets[:, None] >> items) & 1 > 0
    size = inside.sum(axis=1)
    values = np.zeros(1 << m)
    for several in range(1, m + 1):
        layer = np.flatnonzero(size == several)
        last = np.nonzero(inside[layer])[1].reshape(-1, several)
        rests = layer[:, None] ^ (1 << last)
        costs = values[rests] + low[last, rests % width] + high[last, rests // width]
        least = costs.min(axis=1)
        values[layer] = (
            least - np.log(np.exp(least[:, None] - costs).sum(axis=1)) if soft else least
        )
    return values


def last_terms(
    values: FloatArray, halves: tuple[FloatArray, FloatArray], subset: int, members: list[int]
) -> FloatArray:
    """Return for each member of `subset` the value of the rest and of placing it last."""
    low, high = halves
    rests = subset ^ (1 << np.array(members))
    width = low.shape[1]
    return np.asarray(values[rests] + low[members, rests % width] + high[members, rests // width])
