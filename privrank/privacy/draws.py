"""Secret random decisions that are no noise: rows, orders, permutations, uniform numbers.

As in `noise`, secure draws take the random bits of the operating system, and seeded ones those of a
caller's ``numpy.random.Generator``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import numpy as np

from privrank.util.arrays import AnyArray, FloatArray, IntArray, Words
from privrank.util.checks import Rng

LARGEST_SHUFFLE = 2**16
"""Elements of the permutations that `draw_shuffles` can draw."""


def draw_bit(probability: float, rng: Rng) -> int:
    """Return 1 with the given probability, else 0, to within 2^-53."""
    uniform = random.SystemRandom().random() if rng is None else rng.random()
    return int(uniform < probability)


def draw_uniforms(rows: int, columns: int, rng: Rng) -> FloatArray:
    """Return independent uniform numbers in [0, 1), multiples of 2^-53, shape (rows, columns)."""
    if rng is not None:
        return np.asarray(rng.random((rows, columns)))
    words = np.frombuffer(os.urandom(8 * rows * columns), dtype=np.uint64).reshape(rows, columns)
    return np.asarray((words >> np.uint64(11)) * 2.0**-53)


def draw_key(rng: Rng) -> Words:
    """Return a fresh key of 128 bits, by which a fit draws rows (:func:`draw_rows`)."""
    return _words(np.uint64, 2, rng)


def _words(kind: type[np.uint32 | np.uint64], size: int, rng: Rng) -> AnyArray:
    """Return independent uniform words, the operating system's or those of a study."""
    bits = np.iinfo(kind).bits
    if rng is None:
        return np.frombuffer(os.urandom(bits // 8 * size), dtype=kind)
    return rng.integers(2**bits, size=size, dtype=kind)


def draw_rows(
    group: IntArray, size: IntArray, most: int, names: Sequence[AnyArray], key: Words
) -> IntArray:
    """Return how many of each kind of rows are kept where `most` rows of every group are drawn.

    Parameters
    ----------
    group : ndarray of int64
        The group of each kind of rows, not negative, groups in one piece.
    size : ndarray of int64
        How many rows of each kind there are.
    most : int
        Of a group with no more rows than this all are kept.
    names : sequence of ndarray of uint64 or int64
        Numbers that name the group of each kind of rows, and say what is drawn.
    key : ndarray of uint64, shape (2,)
        What :func:`draw_key` has drawn.

    Notes
    -----
    **Privacy.** Number t of a group is the hash of its names and t under the key, and nothing else
    is random. So for any key, and whatever the hash is, what is kept of a group is a function of
    its own names and rows, in the order of their kinds. No other group, no place in a frame, no
    part of one has a say. Groups whose names are equal draw alike and still apart.

    **Statistic.** Rows are numbered, kind after kind. Numbers of a group are drawn until the wanted
    number of them differ. Nothing but how many differ decides when that ends. So if they are
    uniform every permutation of a group's rows leaves the distribution of the drawn set as it is:
    all sets of that size are equally likely, and so are their complements. What is drawn is
    whichever is smaller, the rows that are kept or those that are left out; memory is needed for no
    others. SipHash-2-4 under 128 secret bits is taken for a random function: numbers are then
    uniform to within one part in 2^64 / total, and groups with different names independent.
    """
    from privrank.kernels.hashing import distinct_numbers

    # `ends` number the rows of all kinds; `total` are the rows of each group
    last = np.flatnonzero(np.diff(group, append=-1))
    ends = np.cumsum(size)
    total = np.diff(ends[last], prepend=0)
    number = np.minimum(total, min(most, 2**62))
    few = np.minimum(number, total - number)
    # the groups of which some rows and not all are kept, and what names them
    busy = np.flatnonzero(few)
    words = np.column_stack([name[last[busy]].astype(np.uint64) for name in names])
    drawn = distinct_numbers(words, total[busy], few[busy], key)
    drawn += np.repeat((ends[last] - total)[busy], few[busy])
    taken = np.bincount(np.searchsorted(ends, drawn, side="right"), minlength=len(size))
    place = np.repeat(np.arange(len(last)), np.diff(last, prepend=-1))
    return np.where((few == number)[place], taken, size - taken)


def draw_orders(rows: int, columns: int, rng: Rng) -> IntArray:
    """Return independent uniform permutations of 0..columns - 1, one per row of a matrix.

    Each row orders independent 64-bit keys. Given that the keys of a row differ, all orders are
    equally likely; a row with equal keys is drawn again.
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
    """Return a uniform permutation of range(size), to break ties between noisy counts."""
    if rng is not None:
        return tuple(int(k) for k in rng.permutation(size))
    order = list(range(size))
    random.SystemRandom().shuffle(order)
    return tuple(order)


def draw_shuffles(rows: int, columns: int, rng: Rng) -> AnyArray:
    """Return independent uniform permutations of range(columns), shape (rows, columns).

    Secure draws take 32 bits of the operating system per element. A row whose words would favour
    some places is drawn again as a whole, so permutations are exactly uniform. With at most
    `LARGEST_SHUFFLE` columns that happens to fewer than half of the rows, mostly to very few.
    """
    if columns > LARGEST_SHUFFLE:
        raise ValueError(f"a shuffle has at most {LARGEST_SHUFFLE:,} elements, not {columns:,}.")
    from privrank.kernels import rankings as kernels

    out = np.empty((rows, columns), dtype=np.int32)
    todo = np.arange(rows)
    while todo.size:
        words = _words(np.uint32, todo.size * columns, rng).reshape(todo.size, columns)
        out[todo], fair = kernels.shuffles(words)
        todo = todo[~fair]
    return out


def secret_generator(rng: Rng = None) -> np.random.Generator:
    """Return a generator for secret randomness other than noise, to be used once and forgotten.

    Philox, which enciphers a counter, with its key and the counter's start, 384 bits in all, from
    the operating system, or in studies from `rng`, which is moved on by no more than that. It
    serves distributions that take more than a shuffle of few elements;
    whoever uses it assumes that by what is released, one rounded p-value, its numbers cannot be
    distinguished from independent uniform ones.
    """
    # 128 bits are the key, the other 256 where the counter starts
    bits = int.from_bytes(os.urandom(48) if rng is None else rng.bytes(48), "little")
    return np.random.Generator(np.random.Philox(key=bits & (2**128 - 1), counter=bits >> 128))
