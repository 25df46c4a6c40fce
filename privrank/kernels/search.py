"""Loops that search for orders or directions, and sums over sparse rows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privrank.kernels import compiled
from privrank.util.arrays import FloatArray, IntArray


@compiled
def pivot_sort(pairs: FloatArray, pivots: IntArray) -> IntArray:
    """Return KwikSort's order for a pair matrix.

    `pairs` is an (m, m) matrix and `pivots` a permutation of 0..m-1. The sort is not recursive.
    Each list keeps the order of `pivots`, so its first item is its pivot. Items i with
    pairs[i, pivot] > pairs[pivot, i] move before the pivot, and all others, including ties, move
    after it.
    """
    m = len(pivots)
    order = pivots.copy()
    behind = np.empty(m, np.int64)
    starts = np.empty(m + 1, np.int64)
    ends = np.empty(m + 1, np.int64)
    starts[0] = 0
    ends[0] = m
    waiting = 1
    while waiting > 0:
        waiting -= 1
        start = starts[waiting]
        end = ends[waiting]
        if end - start < 2:
            continue
        # one partition: items preferred to the pivot before it, all others after it, both in their
        # previous order; both sides are then put on the stack for their own partition
        pivot = order[start]
        place = start
        rest = 0
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
        starts[waiting] = start
        ends[waiting] = place
        starts[waiting + 1] = place + 1
        ends[waiting + 1] = end
        waiting += 2
    return order


@compiled
def insertion_search(order: IntArray, margins: FloatArray, tolerance: float) -> IntArray:
    """Return an order that no move of one item improves by more than `tolerance`.

    `order` is a permutation of 0..m-1, and `margins` is antisymmetric; margins[i, j] > 0 favours i
    before j. Every item in turn moves to the position with the largest sum of margins that agree
    with it. The search ends after a round without a move. A round takes O(m^2).
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
            target = place
            best = tolerance
            # passing the item before it gains their margin, so a move gains a running sum
            gain = 0.0
            for k in range(place - 1, -1, -1):
                gain += margins[item, order[k]]
                if gain > best:
                    target = k
                    best = gain
            gain = 0.0
            for k in range(place + 1, m):
                gain -= margins[item, order[k]]
                if gain > best:
                    target = k
                    best = gain
            # shift the items between the old and the new position
            if target != place:
                moved = True
                step = 1 if target > place else -1
                for k in range(place, target, step):
                    order[k] = order[k + step]
                order[target] = item
    return order


@compiled
def sum_of_products(ends: IntArray, column: IntArray, a: IntArray, b: IntArray, m: int) -> IntArray:
    """Return the sum over sparse rows of outer products of `a` and `b`, (m, m).

    `ends` is the start of the first row followed by the end of each row, `column` gives the columns
    of the entries, and `a` and `b` are the entries.
    """
    out = np.zeros((m, m), dtype=np.int64)
    for row in range(len(ends) - 1):
        for i in range(ends[row], ends[row + 1]):
            for j in range(ends[row], ends[row + 1]):
                out[column[i], column[j]] += a[i] * b[j]
    return out


@compiled
def _mixture(apart: FloatArray, change: FloatArray) -> FloatArray:
    """Return the least squares solution w of w @ apart = change, zeros if none.

    The normal equations are solved by elimination, with 10^-10 of their trace added to the
    diagonal.
    """
    count = len(apart)
    normal = np.empty((count, count))
    right = np.empty(count)
    trace = 0.0
    for a in range(count):
        for b in range(a + 1):
            normal[a, b] = np.sum(apart[a] * apart[b])
            normal[b, a] = normal[a, b]
        right[a] = np.sum(apart[a] * change)
        trace += normal[a, a]
    # a small ridge stabilises nearly collinear steps
    for a in range(count):
        normal[a, a] += 1e-10 * trace + 1e-100
    # Gaussian elimination, then back substitution, because LAPACK's rounding differs between
    # machines; zeros (a step without extrapolation) are returned if there is no solution
    for a in range(count):
        if not normal[a, a] > 0:
            return np.zeros(count)
        for b in range(a + 1, count):
            factor = normal[b, a] / normal[a, a]
            for c in range(a, count):
                normal[b, c] -= factor * normal[a, c]
            right[b] -= factor * right[a]
    for a in range(count - 1, -1, -1):
        for b in range(a + 1, count):
            right[a] -= normal[a, b] * right[b]
        right[a] /= normal[a, a]
        if not abs(right[a]) < 1e100:
            return np.zeros(count)
    return right


@compiled
def stationary_direction(
    records: NDArray[np.float32],
    start: FloatArray,
    shape: FloatArray,
    steps: int,
    depth: int,
    tolerance: float,
) -> FloatArray:
    """Return a stationary unit vector u of sum_l psi(t + t^2 / (4 B)), t = u'x_l.

    `records` are the x_l in single precision, shape (n, m); `start` is a unit vector; `shape` is B,
    z0 and z1. At most `steps` steps u <- grad / |grad| are made, until u changes by no more than
    the tolerance. Anderson extrapolation combines the last `depth` steps into the next vector such
    that their changes would cancel best if the map were linear. There is no division by zero for
    any records.
    """
    n, m = records.shape
    bias = shape[0]
    lower = shape[1]
    width = shape[2] - shape[1]
    slopes = np.empty(n, np.float32)
    u = start.copy()
    count = 0
    images = np.empty((depth + 1, m))
    changes = np.empty((depth + 1, m))
    for _ in range(steps):
        along = np.dot(records, u.astype(np.float32))
        # the gradient is a sum of the records, each times the slope of psi along it
        for row in range(n):
            t = np.float64(along[row])
            lift = t / (2 * bias)
            over = min(max(t * (1 + lift / 2) - lower, 0.0), width)
            slopes[row] = (1 - over / width) * (1 + lift)
        image: FloatArray = np.dot(slopes, records).astype(np.float64)
        norm = math.sqrt(np.sum(image * image))
        if norm == 0:  # every record is saturated, or all cancel
            break
        image /= norm
        change = image - u
        if np.sum(change * change) <= tolerance**2:
            return image
        if count > depth:  # drop the oldest step
            for k in range(depth):
                images[k] = images[k + 1]
                changes[k] = changes[k + 1]
            count = depth
        images[count] = image
        changes[count] = change
        weights = _mixture(change - changes[:count], change)
        guess = image.copy()
        for k in range(count):
            guess -= weights[k] * (image - images[k])
        count += 1
        u = guess / max(1e-100, math.sqrt(np.sum(guess * guess)))
    return u
