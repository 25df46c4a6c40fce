"""Loops over rankings: distances, inverted pairs, pair tables, random orders."""

import math

import numpy as np
from numpy.typing import NDArray

from privrank.kernels import compiled
from privrank.util.arrays import BoolArray, FloatArray, IntArray, Words


@compiled
def kendall_to_center(ranks: IntArray, center: IntArray) -> IntArray:
    """Return the Kendall distances of rankings to a centre, in O(n m log m).

    `ranks` is an (n, m) matrix whose rows are permutations of 1..m, and `center` is one
    permutation. The distance is the number of pairs of items that two rankings order differently;
    it is exact for m up to 2^31. The n distances are in the order of the rows. Memory beyond the
    result is O(m).
    """
    n, m = ranks.shape
    order = np.empty(m, np.int64)
    tree = np.empty(m + 1, np.int64)
    out = np.zeros(n, np.int64)
    for row in range(n):
        # the items are visited from last to first in the centre; the counting tree has the ranks
        # of the visited items, and each one that is below the current rank is a discordant pair
        for i in range(m):
            order[center[i] - 1] = ranks[row, i]
        tree[:] = 0
        for place in range(m - 1, -1, -1):
            # two walks of at most log2(m) + 1 steps
            i = order[place] - 1
            while i > 0:
                out[row] += tree[i]
                i &= i - 1
            i = order[place]
            while i <= m:
                tree[i] += 1
                i += i & -i
    return out


def places_of(ranks: IntArray) -> IntArray:
    """Return the position of each ranking, shape (n, m), among all m! rankings.

    Rankings are in lexicographic order of their ranks, like the result of
    :func:`privrank.util.arrays.orders_of`.
    """
    n, m = ranks.shape
    places = np.zeros(n, dtype=np.int64)
    for i in range(m - 1):
        places += (ranks[:, i + 1 :] < ranks[:, [i]]).sum(axis=1) * math.factorial(m - 1 - i)
    return places


def insertion_codes(uniform: FloatArray, size: IntArray, theta: float) -> IntArray:
    """Return truncated geometric variables, P(c) proportional to exp(-theta c).

    The support is {0..size-1}. The variables are computed by inversion from uniform numbers.
    """
    if math.isinf(theta):
        return np.zeros(uniform.shape, dtype=np.int64)
    steps = uniform * size if theta == 0 else -np.log1p(uniform * np.expm1(-size * theta)) / theta
    return np.asarray(np.minimum(steps.astype(np.int64), size - 1))


@compiled
def insertion_ranks(codes: IntArray) -> IntArray:
    """Return the rankings with given insertion codes, in O(n m log m).

    `codes` is an (n, m) matrix with 0 <= codes[r, j] <= j. In the (n, m) matrix of ranks, item j
    precedes exactly codes[r, j] of the items 0..j-1. So the map is a bijection onto the
    permutations, and the Kendall distance of a row to the identity is the sum of its codes.
    """
    n, m = codes.shape
    top = 2 ** int(np.log2(m))
    tree = np.empty(m + 1, np.int64)
    ranks = np.empty((n, m), np.int64)
    for row in range(n):
        for i in range(m + 1):
            tree[i] = i & -i  # every place is free
        for j in range(m - 1, -1, -1):
            # j + 1 positions are free, and codes[j] of them must remain after item j
            wanted = j + 1 - codes[row, j]
            place = 0
            step = top
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


@compiled
def shuffles(words: NDArray[np.uint32]) -> tuple[NDArray[np.int32], BoolArray]:
    """Return permutations from random 32-bit words, and whether each row is fair.

    In each row of the (rows, n) matrix of words, element j takes the position
    floor(word (j + 1) / 2^32) among 0..j, and the element at this position moves to position j. A
    row is fair if each of its products leaves a remainder of at least 2^32 mod (j + 1). Every
    position then corresponds to equally many words (Lemire, 2019), and a fair row of uniform words
    is exactly a uniform permutation of 0..n - 1. All other rows, a fraction below n^2 / 2^33, must
    be drawn again. n is at most 2^31.
    """
    rows, n = words.shape
    out = np.empty((rows, n), np.int32)
    fair = np.ones(rows, np.bool_)
    for row in range(rows):
        for j in range(n):
            product = np.int64(words[row, j]) * (j + 1)
            if (product & 0xFFFFFFFF) < j + 1 and (product & 0xFFFFFFFF) < 2**32 % (j + 1):
                fair[row] = False
            place = product >> 32
            out[row, j] = out[row, place]
            out[row, place] = j
    return out, fair


@compiled
def packed_pairs(ranks: IntArray) -> Words:
    """Return one bit per ranking and pair: whether the first item ranks after.

    `ranks` has shape (n, m), and the result is an (n, ceil(m (m - 1) / 128)) matrix of 64-bit
    words. The number of bits in which two rows differ is their Kendall distance.
    """
    n, m = ranks.shape
    out = np.zeros((n, (m * (m - 1) // 2 + 63) // 64), np.uint64)
    for row in range(n):
        pair = 0
        for i in range(m):
            for j in range(i + 1, m):
                behind = np.uint64(ranks[row, i] > ranks[row, j])
                out[row, pair // 64] |= behind << np.uint64(pair % 64)
                pair += 1
    return out


@compiled
def _bits(x: np.uint64) -> np.int64:
    """Return the number of bits of a word that are 1.

    Bits are counted in parallel in groups of two, four and eight, then summed by one multiplication
    modulo 2^64. Compilers recognise this code and replace it by a processor instruction if there
    is one.
    """
    fours = np.uint64(0x3333333333333333)
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & fours) + ((x >> np.uint64(2)) & fours)
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def differing_bits(first: Words, second: Words) -> IntArray:
    """Return the number of differing bits of all rows of `first` and `second`."""
    out = np.zeros((len(first), len(second)), np.int64)
    for a in range(len(first)):
        for b in range(len(second)):
            for word in range(first.shape[1]):
                out[a, b] += _bits(first[a, word] ^ second[b, word])
    return out


@compiled
def discordance_counts(words: Words, weights: IntArray, most: int) -> IntArray:
    """Return the weight of pairs of rankings at each Kendall distance 0..most.

    `words` are the packed pairs of n rankings, one column each, shape (words, n), with n `weights`.
    The weight of a pair of columns is the product of their weights, and each pair counts once. The
    bits of many columns are counted at a time.
    """
    count, n = words.shape
    apart = np.empty(n, np.int64)
    totals = np.zeros(most + 1, np.int64)
    for a in range(n):
        later = n - a - 1
        apart[:later] = 0
        for word in range(count):
            own = words[word, a]
            others = words[word, a + 1 :]
            for b in range(later):
                apart[b] += _bits(own ^ others[b])
        for b in range(later):
            totals[apart[b]] += weights[a] * weights[a + 1 + b]
    return totals


_BATCH = 512
"""Number of rankings in a batch of `count_pairs`, whose ranks fit into the fast cache."""


@compiled
def count_pairs(ranks: IntArray) -> IntArray:
    """Return how many rankings place item i before item j, for all i and j.

    `ranks` is an (n, m) matrix whose rows are permutations of 1..m; the (m, m) result has a zero
    diagonal. The inner loop runs over the rankings of a batch, many comparisons at a time; the
    pairs (j, i) follow by subtraction. Time is O(n m^2), memory O(m^2).
    """
    n, m = ranks.shape
    counts = np.zeros((m, m), np.int64)
    batch = np.empty((m, _BATCH), np.int32)  # a row per item; its ranks are adjacent
    for start in range(0, n, _BATCH):
        size = min(_BATCH, n - start)
        batch[:, :size] = ranks[start : start + size].T
        # pairs (i, j) with j < i: one comparison per ranking, summed in 32 bits
        for i in range(m):
            for j in range(i):
                ahead = np.int32(0)
                for row in range(size):
                    ahead += np.int32(batch[i, row] < batch[j, row])
                counts[i, j] += ahead
    return np.asarray(counts + np.triu(n - counts.T, 1))


@compiled
def inversion_scores(ranks: IntArray, scores: IntArray) -> IntArray:
    """Return for each ranking the sum of scores[b - a] over inverted pairs a < b.

    `ranks` has shape (n, m), and `scores` has m entries, the first of which is not used. A pair of
    columns is inverted if the later column has the smaller rank. Time is O(n m^2).
    """
    n, m = ranks.shape
    out = np.zeros(n, np.int64)
    ahead = scores[1:]
    for row in range(n):
        total = 0
        for a in range(m - 1):
            rank = ranks[row, a]
            later = ranks[row, a + 1 :]
            for i in range(len(later)):
                total += ahead[i] if later[i] < rank else 0
        out[row] = total
    return out


@compiled
def inversion_sums(ranks: IntArray, weights: IntArray) -> IntArray:
    """Return for each pair a < b the weight of the rankings that invert it.

    `ranks` has shape (n, m), and there are n weights. The (m, m) result is zero on and below its
    diagonal. Time is O(n m^2).
    """
    n, m = ranks.shape
    out = np.zeros((m, m), np.int64)
    for row in range(n):
        weight = weights[row]
        for a in range(m - 1):
            rank = ranks[row, a]
            later = ranks[row, a + 1 :]
            sums = out[a, a + 1 :]
            for i in range(len(later)):
                sums[i] += weight if later[i] < rank else 0
    return out
