"""Loops over pair matrices that look for an order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privrank.kernels.compiling import compiled

__all__ = [
    "insertion_search",
    "pivot_sort",
    "subset_values",
    "weight_against",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@compiled
def weight_against(order: IntArray, pairs: FloatArray) -> float:
    """Return the sum of pairs[j, i] over the pairs that `order` puts i before j in."""
    total = 0.0
    for behind in range(len(order)):
        for ahead in range(behind):
            total += pairs[order[behind], order[ahead]]
    return total


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


@compiled
def subset_values(low: FloatArray, high: FloatArray, soft: bool) -> FloatArray:
    """Return for each set of items the least total cost of ordering it, or its soft minimum.

    Placing item i behind the set A of items costs low[i, A mod 2^h] + high[i, A div 2^h], sets
    written as bits; low has 2^h columns and high 2^(m-h). Returns the 2^m values V of the sets,
    V(A) = min or -log sum exp(-.) over i in A of V(A - i) + cost(i, A - i), V(empty) = 0: the
    last item of A is i. With ``soft``, exp(-V(A)) is the sum of exp(-cost) over all orders of A.
    """
    m, width = low.shape
    half = 0
    while (1 << half) < width:
        half += 1
    values, terms = np.zeros(1 << m), np.empty(m)
    for subset in range(1, 1 << m):
        least, count = np.inf, 0
        for item in range(m):
            if (subset >> item) & 1:
                rest = subset ^ (1 << item)
                terms[count] = (
                    values[rest] + low[item, rest & (width - 1)] + high[item, rest >> half]
                )
                least = min(least, terms[count])
                count += 1
        if soft:
            total = 0.0
            for k in range(count):
                total += np.exp(least - terms[k])
            least -= np.log(total)
        values[subset] = least
    return values
