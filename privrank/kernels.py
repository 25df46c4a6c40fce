"""Compiled loops over rankings: arrays in, arrays out; no generators, no frames.

The only module that imports numba, and itself imported only where a loop is about to run. Every
function also runs uncompiled (``NUMBA_DISABLE_JIT=1``) with the same results. Callers validate:
ranks are int64, 1..m without ties in every row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "distance_pmf",
    "insertion_ranks",
    "inversion_scores",
    "inversion_sums",
    "kendall_distance",
    "kendall_rows",
    "kendall_to_center",
    "shuffled_ranks",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_Loop = TypeVar("_Loop", bound=Callable[..., object])


def _compiled(function: _Loop) -> _Loop:
    # numba's decorator has no types of its own; the compiled loop keeps those of the source
    try:
        return cast(_Loop, njit(cache=True)(function))
    except RuntimeError:  # no directory to write to: compile again in every process
        return cast(_Loop, njit(function))


@_compiled
def _discordant(a: IntArray, b: IntArray, order: IntArray, tree: IntArray) -> int:
    """Return the discordant pairs of `a` and `b`; `order` and `tree` (m + 1) are work space.

    Visits the items from last to first in `a`. The counting tree holds the ranks in `b` of those
    visited, all of which `a` places behind the present item: each that `b` places before it is
    one discordant pair. Two walks of at most log2(m) + 1 steps per item.
    """
    m = len(a)
    for i in range(m):
        order[a[i] - 1] = b[i]
    for i in range(m + 1):
        tree[i] = 0
    total = 0
    for place in range(m - 1, -1, -1):
        rank = order[place]
        i = rank - 1
        while i > 0:
            total += tree[i]
            i &= i - 1
        i = rank
        while i <= m:
            tree[i] += 1
            i += i & -i
    return total


@_compiled
def kendall_distance(a: IntArray, b: IntArray) -> int:
    """Return the Kendall distance of two rank vectors, in O(m log m).

    Given two vectors of the ranks 1..m, each a permutation, returns the number of pairs of items
    that they order differently, between 0 and m (m - 1) / 2; exact for m up to 2^31.
    """
    m = len(a)
    return _discordant(a, b, np.empty(m, np.int64), np.empty(m + 1, np.int64))


@_compiled
def kendall_to_center(ranks: IntArray, center: IntArray) -> IntArray:
    """Return the Kendall distances of all rankings to one centre, in O(n m log m).

    Given an (n, m) matrix whose rows are permutations of 1..m and one such vector, returns the n
    distances in the order of the rows. Memory beyond the result is O(m).
    """
    n, m = ranks.shape
    order, tree = np.empty(m, np.int64), np.empty(m + 1, np.int64)
    out = np.empty(n, np.int64)
    for row in range(n):
        # the distance is symmetric: the centre decides the order of the visits
        out[row] = _discordant(center, ranks[row], order, tree)
    return out


@_compiled
def kendall_rows(first: IntArray, second: IntArray) -> IntArray:
    """Return the Kendall distances of the rows of two matrices, pair by pair.

    Given two (n, m) matrices whose rows are permutations of 1..m, returns for each row index the
    distance of the two rankings there, in O(n m log m) time and O(m) work space.
    """
    n, m = first.shape
    order, tree = np.empty(m, np.int64), np.empty(m + 1, np.int64)
    out = np.empty(n, np.int64)
    for row in range(n):
        out[row] = _discordant(first[row], second[row], order, tree)
    return out


@_compiled
def insertion_ranks(codes: IntArray) -> IntArray:
    """Return the rankings that insertion codes describe, in O(n m log m).

    Given an (n, m) matrix with 0 <= codes[r, j] <= j, returns the (n, m) matrix of ranks in which
    item j stands before exactly codes[r, j] of the items 0..j-1. So the map is a bijection onto
    the permutations, and the Kendall distance of a row to the identity is the sum of its codes.
    """
    n, m = codes.shape
    top = 1
    while 2 * top <= m:
        top *= 2
    tree = np.empty(m + 1, np.int64)
    ranks = np.empty((n, m), np.int64)
    for row in range(n):
        for i in range(m + 1):
            tree[i] = i & -i  # every place is free
        for j in range(m - 1, -1, -1):
            # j + 1 places are free, and codes[j] of them must be left behind item j
            wanted = j + 1 - codes[row, j]
            place, step = 0, top
            while step > 0:
                ahead = place + step
                if ahead <= m and tree[ahead] < wanted:
                    place = ahead
                    wanted -= tree[ahead]
                step //= 2
            ranks[row, j] = place + 1
            i = place + 1
            while i <= m:
                tree[i] -= 1
                i += i & -i
    return ranks


@_compiled
def distance_pmf(ratio: float, powers: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the law of a sum of truncated geometric variables, by convolving one at a time.

    Given q, the powers q^j and the weights 1 / (1 + q + ... + q^(j-1)) for j = 1..m, returns the
    probabilities of 0..m (m - 1) / 2 under the sum of independent V_j with P(V_j = k) proportional
    to q^k on {0..j-1}. Each convolution is one running sum, so the whole costs O(m^3 / 6); the
    absolute error is a small multiple of the machine precision.
    """
    m = len(powers)
    law = np.zeros(m * (m - 1) // 2 + 1)
    before = np.zeros(len(law))
    law[0] = 1.0
    for j in range(2, m + 1):
        top = j * (j - 1) // 2
        before[: top + 1] = law[: top + 1]
        running = 0.0
        for k in range(top + 1):
            running = running * ratio + before[k]
            if k >= j:
                running = max(running - powers[j - 1] * before[k - j], 0.0)
            law[k] = running * weights[j - 1]
    return law


@_compiled
def shuffled_ranks(bits: IntArray) -> IntArray:
    """Return the rankings that a matrix of random 32-bit words describes, by inserting items.

    Given an (n, m) matrix of words, row by row item j takes the place floor(word (j + 1) / 2^32)
    among 0..j and the item that stood there moves to place j. Returns the ranks 1..m; with m at
    most 2^31 no product passes 2^63.
    """
    n, m = bits.shape
    ranks = np.empty((n, m), np.int64)
    for row in range(n):
        for j in range(m):
            place = (np.int64(bits[row, j]) * (j + 1)) >> 32
            ranks[row, j] = ranks[row, place]
            ranks[row, place] = j + 1
    return ranks


@_compiled
def inversion_scores(ranks: IntArray, scores: IntArray) -> IntArray:
    """Return for each ranking the sum of scores[b - a] over its inverted pairs of columns a < b.

    Given an (n, m) matrix of ranks and m scores, of which the first is not used. A pair is
    inverted where the later column has the smaller rank. O(n m^2).
    """
    n, m = ranks.shape
    out, ahead = np.zeros(n, np.int64), scores[1:]
    for row in range(n):
        total = 0
        for a in range(m - 1):
            rank, later = ranks[row, a], ranks[row, a + 1 :]
            for i in range(len(later)):
                total += ahead[i] if later[i] < rank else 0
        out[row] = total
    return out


@_compiled
def inversion_sums(ranks: IntArray, weights: IntArray) -> IntArray:
    """Return for each pair of columns a < b the summed weights of the rankings that invert it.

    Given an (n, m) matrix of ranks and n weights; the (m, m) result is zero on and below its
    diagonal. O(n m^2).
    """
    n, m = ranks.shape
    out = np.zeros((m, m), np.int64)
    for row in range(n):
        weight = weights[row]
        for a in range(m - 1):
            rank, later, sums = ranks[row, a], ranks[row, a + 1 :], out[a, a + 1 :]
            for i in range(len(later)):
                sums[i] += weight if later[i] < rank else 0
    return out
