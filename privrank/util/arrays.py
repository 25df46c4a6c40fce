"""Read-only arrays, immutable objects, all rankings of a few items, and batches of rows."""

import math
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from functools import cache
from itertools import combinations, permutations
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Words = NDArray[np.uint64]
AnyArray = NDArray[Any]
Rng = np.random.Generator | None
Class = TypeVar("Class", bound=type)

CELLS = 2**22
"""Numbers in memory at a time: large samples are processed in batches of rows."""

_WORK = 2**23
"""Operations on words of 64 pairs of items up to which all pairs of rankings are compared."""


def readonly_copy(values: Any, dtype: Any = np.float64) -> NDArray[Any]:
    """Return a read-only array that owns its memory, so no `base` refers to data."""
    array = np.array(values, dtype=dtype, copy=True)
    array.setflags(write=False)
    return array


def own_arrays(record: Any) -> None:
    """Make the array fields of a frozen record read-only copies that own their memory."""
    for name in record.__dataclass_fields__:
        object.__setattr__(record, name, _owned(getattr(record, name)))


def _owned(value: Any) -> Any:
    """Return a read-only copy of an array, of the parts of a sparse one, or of each in a tuple."""
    if isinstance(value, np.ndarray):
        return readonly_copy(value, value.dtype)
    if isinstance(value, tuple):
        return tuple(map(_owned, value))
    for part in ("data", "indices", "indptr") if hasattr(value, "indptr") else ():
        array = getattr(value, part)
        setattr(value, part, readonly_copy(array, array.dtype))
    return value


def immutable(frozen: Class) -> Class:
    """Make a frozen dataclass refuse changes with a clear message.

    The methods written by ``dataclass(frozen=True, slots=True)`` refer to the class before it had
    slots, so for a name that is not a field they fail with a message about ``super``.
    """
    for method in ("__setattr__", "__delattr__"):
        setattr(frozen, method, _refuse)
    return frozen


def _refuse(thing: object, name: str, value: object = None) -> NoReturn:
    raise FrozenInstanceError(
        f"{type(thing).__name__} objects are immutable, so {name!r} can be neither set nor "
        f"deleted. Create a new object instead: for a result, by a new fit or by from_release."
    )


@cache
def orders_of(m: int) -> IntArray:
    """Return all m! rankings in lexicographic order of their ranks, (m!, m)."""
    return readonly_copy(list(permutations(range(1, m + 1))), np.int64)


@cache
def signs_of_orders(m: int) -> IntArray:
    """Return the signs of the pairs of all m! rankings, 1 if i is ahead of j.

    Shape (m!, m (m - 1) / 2), in the order of `orders_of`; the pairs i < j are in lexicographic
    order.
    """
    ranks = orders_of(m)
    pairs = np.array(list(combinations(range(m), 2)))
    return np.asarray(np.sign(ranks[:, pairs[:, 1]] - ranks[:, pairs[:, 0]]))


def batches(rows: int, columns: int, cells: int = CELLS) -> Iterator[slice]:
    """Yield slices that divide `rows` into batches of at most `cells` numbers, at least one row."""
    step = max(1, cells // columns)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def most_rankings(m: int) -> int:
    """Return the most rankings of m > 6 items that are searched for all other departures."""
    return math.isqrt(_WORK // -(-m * (m - 1) // 128))
