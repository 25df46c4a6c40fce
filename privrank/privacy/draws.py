"""Secret random decisions other than noise: rows, orders and permutations.

As in `noise`, secure draws use the random bits of the operating system, and seeded draws use a
caller's ``numpy.random.Generator``.
"""

import os
import random
from collections.abc import Sequence

import numpy as np

from privrank.util.arrays import AnyArray, FloatArray, IntArray, Rng, Words

LARGEST_SHUFFLE = 2**16
"""Largest size of the permutations that `draw_shuffles` can draw."""


def draw_bit(probability: float, rng: Rng) -> int:
    """Return 1 with the given probability (to within 2^-53), and 0 if not."""
    uniform = random.SystemRandom().random() if rng is None else rng.random()
    return int(uniform < probability)


def draw_uniforms(rows: int, columns: int, rng: Rng) -> FloatArray:
    """Return independent uniform multiples of 2^-53 in [0, 1), (rows, columns)."""
    if rng is not None:
        return np.asarray(rng.random((rows, columns)))
    words = np.frombuffer(os.urandom(8 * rows * columns), dtype=np.uint64).reshape(rows, columns)
    return np.asarray((words >> np.uint64(11)) * 2.0**-53)


def draw_key(rng: Rng) -> Words:
    """Return a fresh key of 128 bits for drawing rows (:func:`draw_rows`)."""
    return _words(np.uint64, 2, rng)


def _words(kind: type[np.uint32 | np.uint64], size: int, rng: Rng) -> AnyArray:
    """Return independent uniform words from the operating system or from `rng`."""
    bits = np.iinfo(kind).bits
    if rng is None:
        return np.frombuffer(os.urandom(bits // 8 * size), dtype=kind)
    return rng.integers(2**bits, size=size, dtype=kind)


def draw_rows(
    group: IntArray, size: IntArray, most: int, names: Sequence[AnyArray], key: Words
) -> IntArray:
    """Return how many rows of each kind are kept, at most `most` per group.

    Parameters
    ----------
    group : ndarray of int64
        The group of each kind of rows, nonnegative; the kinds of a group are consecutive.
    size : ndarray of int64
        The number of rows of each kind.
    most : int
        The number of rows to keep per group; smaller groups are kept completely.
    names : sequence of ndarray of uint64 or int64
        Numbers that identify the group of each kind of rows, and determine the draw.
    key : ndarray of uint64, shape (2,)
        A key drawn by :func:`draw_key`.

    Notes
    -----
    **Privacy.** Number t of a group is the hash of its names and t under the key, and nothing else
    is random. So for any key, and for any hash function, the rows kept of a group are a function of
    its own names and rows, in the order of their kinds. They do not depend on other groups, on
    positions in a frame, or on partitions. Groups with equal names use the same draws, but each for
    its own rows.

    **Statistic.** Rows are numbered consecutively, kind after kind. Numbers of a group are drawn
    until the required number of them are distinct, and this number alone decides when to stop. So
    if the numbers are uniform, the distribution of the drawn set is invariant under permutations of
    a group's rows: all sets of that size are equally likely, and so are their complements. The
    smaller of the two sets is drawn, the rows kept or the rows left out, which limits memory.
    SipHash-2-4 under 128 secret bits is assumed to be a random function. Numbers are then uniform
    to within one part in 2^64 / total, and groups with different names are independent.
    """
    from privrank.kernels.hashing import distinct_numbers

    # `ends` number the rows of all kinds; `total` are the rows of each group
    last = np.flatnonzero(np.diff(group, append=-1))
    ends = np.cumsum(size)
    total = np.diff(ends[last], prepend=0)
    number = np.minimum(total, min(most, 2**62))
    few = np.minimum(number, total - number)
    # the groups with some but not all rows kept, and their names
    busy = np.flatnonzero(few)
    words = np.column_stack([name[last[busy]].astype(np.uint64) for name in names])
    drawn = distinct_numbers(words, total[busy], few[busy], key)
    drawn += np.repeat((ends[last] - total)[busy], few[busy])
    taken = np.bincount(np.searchsorted(ends, drawn, side="right"), minlength=len(size))
    place = np.repeat(np.arange(len(last)), np.diff(last, prepend=-1))
    return np.where((few == number)[place], taken, size - taken)


def draw_orders(rows: int, columns: int, rng: Rng) -> IntArray:
    """Return independent uniform permutations of 0..columns - 1, one per row.

    Each row sorts independent 64-bit keys. Given that the keys of a row are distinct, all orders
    are equally likely; a row with equal keys is drawn again.
    """
    orders = np.empty((rows, columns), dtype=np.int64)
    todo = np.arange(rows)
    while todo.size:
        keys = _words(np.uint64, todo.size * columns, rng).reshape(todo.size, columns)
        order = np.argsort(keys, axis=1)
        orders[todo] = order
        sorted_keys = np.take_along_axis(keys, order, axis=1)
        todo = todo[(sorted_keys[:, 1:] == sorted_keys[:, :-1]).any(axis=1)]
    return orders


def draw_permutation(size: int, rng: Rng) -> tuple[int, ...]:
    """Return a uniform permutation of range(size), for ties between noisy counts."""
    if rng is not None:
        return tuple(int(k) for k in rng.permutation(size))
    return tuple(draw_orders(1, size, None)[0].tolist())


def draw_shuffles(rows: int, columns: int, rng: Rng) -> AnyArray:
    """Return independent uniform permutations of range(columns), one per row.

    Secure draws use 32 bits of the operating system per element. A row whose words would favour
    some positions is drawn again as a whole, so permutations are exactly uniform. With at most
    `LARGEST_SHUFFLE` columns this concerns fewer than half of the rows, usually very few.
    """
    if columns > LARGEST_SHUFFLE:
        raise ValueError(f"a shuffle has at most {LARGEST_SHUFFLE:,} elements, not {columns:,}.")
    from privrank.kernels import rankings as kernels

    out = np.empty((rows, columns), dtype=np.int32)
    todo = np.arange(rows)
    while todo.size:
        out[todo], fair = kernels.shuffles(
            _words(np.uint32, todo.size * columns, rng).reshape(todo.size, columns)
        )
        todo = todo[~fair]
    return out


def secret_generator(rng: Rng = None) -> np.random.Generator:
    """Return a generator for secret randomness other than noise (single use).

    The generator is Philox, which encrypts a counter. Its key and the start of the counter, 384
    bits in total, are drawn from the operating system, or in studies from `rng`, which is advanced
    by exactly these bits. It is used for distributions that need more than a shuffle of few
    elements. Its use assumes that the release, one rounded p-value, does not distinguish its
    numbers from independent uniform numbers.
    """
    # 128 bits are the key, and the other 256 bits are the start of the counter
    bits = int.from_bytes(os.urandom(48) if rng is None else rng.bytes(48), "little")
    return np.random.Generator(np.random.Philox(key=bits & (2**128 - 1), counter=bits >> 128))
