"""Loops that search for orders or directions."""

import math

import numpy as np
from numpy.typing import NDArray

from privrank.kernels import compiled
from privrank.util.arrays import FloatArray, IntArray


@compiled
def pivot_sort(pairs: FloatArray, pivots: IntArray) -> IntArray:
    """Return KwikSort's order for a pair matrix.

    `pairs` is an (m, m) matrix and `pivots` a permutation of 0..m-1. The first item of a list, in
    the order of `pivots`, is its pivot. Items i with pairs[i, pivot] > pairs[pivot, i] move before
    the pivot, and all others, including ties, move after it.
    """
    m = len(pivots)
    # Pivots are the nodes of a binary tree. Each item passes all pivots of its lists, in their
    # order, and follows the last one that it moves after.
    lists = np.full((m, 2), -1)
    following = np.full(m + 1, -1)  # the last entry gives the first item
    following[m] = pivots[0]
    for item in pivots[1:]:
        node = pivots[0]
        previous = m
        while node >= 0:
            pivot = node
            side = 0 if pairs[item, pivot] > pairs[pivot, item] else 1
            if side == 1:
                previous = pivot
            node = lists[pivot, side]
        lists[pivot, side] = item
        following[item] = following[previous]
        following[previous] = item
    order = np.full(m, following[m])
    for place in range(1, m):
        order[place] = following[order[place - 1]]
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
    moved = m > 1
    while moved:
        moved = False
        for item in range(m):
            place = np.flatnonzero(order == item)[0]
            # passing an item gains its margin, so a move gains a running sum; first the moves to
            # the front, the shortest first, then the moves to the back
            passed = margins[item][order]
            gains = np.append(passed[:place][::-1].cumsum(), -passed[place + 1 :].cumsum())
            best = np.argmax(gains)
            if gains[best] > tolerance:
                moved = True
                target = best + 1 if best >= place else place - 1 - best
                # shift the items between the old and the new position
                low = min(place, target)
                high = max(place, target) + 1
                order[low:high] = np.roll(order[low:high], -1 if target > place else 1)
    return order


@compiled
def _mixture(apart: FloatArray, change: FloatArray) -> FloatArray:
    """Return the least squares solution w of w @ apart = change, zeros if none.

    The normal equations are solved by elimination, with 10^-10 of their trace added to the
    diagonal.
    """
    count = len(apart)
    system = np.empty((count, count + 1))  # the normal equations, the right side as last column
    for a in range(count):
        for b in range(count):
            system[a, b] = np.sum(apart[a] * apart[b])
        system[a, count] = np.sum(apart[a] * change)
    # a small ridge stabilises nearly collinear steps
    ridge = 1e-10 * np.trace(system) + 1e-100
    # Gaussian elimination, then back substitution, because LAPACK's rounding differs between
    # machines; zeros (a step without extrapolation) are returned if there is no solution
    for a in range(count):
        system[a, a] += ridge
    for a in range(count):
        if not system[a, a] > 0:
            return np.zeros(count)
        for b in range(a + 1, count):
            system[b] -= system[b, a] / system[a, a] * system[a]
    right = system[:, count].copy()
    for a in range(count - 1, -1, -1):
        for b in range(a + 1, count):
            right[a] -= system[a, b] * right[b]
        right[a] /= system[a, a]
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
    # the last steps, the newest at the end
    images = np.empty((depth, m))
    changes = np.empty((depth, m))
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
        weights = _mixture(change - changes[depth - count :], change)
        guess = image.copy()
        for k in range(count):
            guess -= weights[k] * (image - images[depth - count + k])
        images[:-1] = images[1:].copy()
        changes[:-1] = changes[1:].copy()
        images[-1] = image
        changes[-1] = change
        count = min(count + 1, depth)
        u = guess / max(1e-100, math.sqrt(np.sum(guess * guess)))
    return u
