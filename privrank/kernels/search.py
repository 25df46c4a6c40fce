"""Loops over pair matrices that look for an order, and sums over sparse rows."""

from __future__ import annotations

import numpy as np

from privrank.kernels import compiled
from privrank.util.arrays import FloatArray, IntArray


@compiled
def pivot_sort(pairs: FloatArray, pivots: IntArray) -> IntArray:
    """Return KwikSort's order for a pair matrix; `pivots` says which item of a list divides it.

    Given an (m, m) matrix and a permutation of 0..m-1, sorts without recursion: each list keeps the
    order of `pivots`, so that its first item is its pivot. The items that pairs[i,
    pivot] > pairs[pivot, i] puts before it go to the front, and the others, ties included, behind
    it.
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
        # one partition: items preferred to the pivot before it, all others behind, both in the
        # order they came in; either side then waits on the stack for its own partition
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
        order[place + 1 : end] = behind[:rest]
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
            # passing the item before it gains their margin, so a move gains a running sum
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
            # those between the old place and the new one close the gap
            if target != place:
                moved = True
                step = 1 if target > place else -1
                for k in range(place, target, step):
                    order[k] = order[k + step]
                order[target] = item
    return order


@compiled
def sum_of_products(ends: IntArray, column: IntArray, a: IntArray, b: IntArray, m: int) -> IntArray:
    """Return the sum over rows of the products of the entries of two, shape (m, m).

    Given where the first row begins and each ends, the columns of the entries, and these.
    """
    out = np.zeros((m, m), dtype=np.int64)
    for row in range(len(ends) - 1):
        for i in range(ends[row], ends[row + 1]):
            for j in range(ends[row], ends[row + 1]):
                out[column[i], column[j]] += a[i] * b[j]
    return out
