"""How orders of items are looked for: by moves, by pivots, over the subsets that may come first."""

from __future__ import annotations

import numpy as np

from privrank.kernels import compiled
from privrank.util.arrays import FloatArray, IntArray


@compiled
def pivot_sort(pairs: FloatArray, pivots: IntArray) -> IntArray:
    """Return KwikSort's order for a pair matrix; `pivots` says which item of a list divides it.

    Given an (m, m) matrix and a permutation of 0..m-1, sorts without recursion: each list keeps
    the order of `pivots`, so that its first item is its pivot; the items that pairs[i, pivot] >
    pairs[pivot, i] puts before it go to the front, and the others, ties included, behind it.
    """
    m = len(pivots)
    order, behind = pivots.copy(), np.empty(m, np.int64)
    starts, ends = np.empty(m + 1, np.int64), np.empty(m + 1, np.int64)
    starts[0], ends[0], waiting = 0, m, 1
    while waiting > 0:
        waiting -= 1
        start, end = starts[waiting], ends[waiting]
        if end - start < 2:
            continue
        pivot, place, rest = order[start], start, 0
        for k in range(start + 1, end):
            i = order[k]
            if pairs[i, pivot] > pairs[pivot, i]:
                order[place] = i
                place += 1
            else:
                behind[rest] = i
                rest += 1
        order[place] = pivot
        for k in range(rest):
            order[place + 1 + k] = behind[k]
        starts[waiting], ends[waiting] = start, place
        starts[waiting + 1], ends[waiting + 1] = place + 1, end
        waiting += 2
    return order


@compiled
def insertion_search(order: IntArray, margins: FloatArray, tolerance: float) -> IntArray:
    """Return an order that no move of one item improves by more than `tolerance`.

    Given a permutation of 0..m-1 and the antisymmetric margins, where margins[i, j] > 0 speaks for
    i before j. Every item in turn goes where the sum of the margins it agrees with is largest;
    ends after a round without a move. O(m^2) per round.
    """
    m = len(order)
    order = order.copy()
    moved = True
    while moved:
        moved = False
        for item in range(m):
            place = 0
            while order[place] != item:
                place += 1
            target, best = place, tolerance
            gain = 0.0
            for k in range(place - 1, -1, -1):
                gain += margins[item, order[k]]
                if gain > best:
                    target, best = k, gain
            gain = 0.0
            for k in range(place + 1, m):
                gain -= margins[item, order[k]]
                if gain > best:
                    target, best = k, gain
            if target != place:
                moved = True
                step = 1 if target > place else -1
                for k in range(place, target, step):
                    order[k] = order[k + step]
                order[target] = item
    return order


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
    sets, items = np.arange(1 << m, dtype=np.int32), np.arange(m, dtype=np.int32)
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
