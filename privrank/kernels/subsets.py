"""Costs of all orders of few items, by recursion over subsets of items.

This module is not compiled, and therefore separate, because the tests that trace data without noise
must see its operations.
"""

import numpy as np

from privrank.util.arrays import FloatArray


def split_costs(block: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the costs of placing each item after each subset of either half."""
    m = len(block)
    halves = [np.zeros((m, 1)), np.zeros((m, 1))]
    for place, column in enumerate(block.T):
        half = int(place >= m // 2)
        halves[half] = np.hstack((halves[half], halves[half] + column[:, None]))
    return halves[0], halves[1]


def subset_values(halves: tuple[FloatArray, FloatArray], *, soft: bool = False) -> FloatArray:
    """Return for each set the minimum (or soft minimum) cost of ordering it.

    `halves` are the costs of :func:`split_costs`. The result has the values V of all 2^m sets,
    numbered by their bits: V(empty) = 0, and V(A) is the min or -log sum exp(-.) over the last item
    i in A of V(A - i) + cost(i, A - i). With ``soft``, exp(-V(A)) is the sum of exp(-cost) over all
    orders of A.
    """
    low, high = halves
    m, width = low.shape
    inside = (np.arange(1 << m, dtype=np.int32)[:, None] >> np.arange(m, dtype=np.int32)) & 1 > 0
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
    """Return for each member of `subset` the value if this member is placed last."""
    low, high = halves
    rests = subset ^ (1 << np.array(members))
    width = low.shape[1]
    return np.asarray(values[rests] + low[members, rests % width] + high[members, rests // width])
