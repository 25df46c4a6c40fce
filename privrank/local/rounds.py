"""KwikSort in rounds: which pairs are compared next, and what their majorities make of the lists.

All lists of a round are divided at once, by one pivot each, so that the pairs of a round can be
asked in any order and by many people at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["RoundSort", "mean_comparisons"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@cache
def mean_comparisons(m: int) -> float:
    """Return how many pairs KwikSort compares on average, 2 (m + 1) H_m - 4 m.

    For pivots drawn uniformly and majorities that are those of one order; H_m is 1 + ... + 1 / m.
    """
    return 2 * (m + 1) * sum(1.0 / k for k in range(1, m + 1)) - 4 * m


@dataclass(frozen=True, slots=True)
class RoundSort:
    """The state of a sort: items in their present order, and the lists that are not divided yet.

    Parameters
    ----------
    order : tuple of int
        Items, best first. The members of a list are in the order of the pivots, so that the first
        is the list's pivot.
    lists : tuple of (start, end)
        Places of the lists of two items or more; all others have their final place.
    """

    order: tuple[int, ...]
    lists: tuple[tuple[int, int], ...]

    @classmethod
    def start(cls, pivots: IntArray) -> RoundSort:
        """Return the sort of all items as one list, given the order in which they are pivots."""
        return cls(tuple(int(item) for item in pivots), ((0, len(pivots)),))

    def sound(self, items: int) -> bool:
        """Whether this can be the state of a sort of so many items."""
        ends = np.array([*self.lists], dtype=np.int64).reshape(-1, 2)
        bounds = np.concatenate(([0], ends.ravel(), [items]))
        apart = bool((np.diff(bounds)[::2] >= 0).all())
        return apart and bool((np.diff(ends) > 1).all()) and sorted(self.order) == [*range(items)]

    @property
    def comparisons(self) -> IntArray:
        """Pairs (item, pivot) that divide the lists of this round, one row each."""
        rows = [
            (item, self.order[start])
            for start, end in self.lists
            for item in self.order[start + 1 : end]
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, 2)

    @property
    def expected(self) -> float:
        """Mean number of comparisons from here to the end, those of this round included."""
        return sum(mean_comparisons(end - start) for start, end in self.lists)

    def divided(self, ahead: BoolArray) -> RoundSort:
        """Return the next round, given which items of :attr:`comparisons` precede their pivots."""
        order, lists, first = list(self.order), [], 0
        for start, end in self.lists:
            others = np.array(order[start + 1 : end])
            before = ahead[first : first + len(others)]
            place = start + int(before.sum())
            order[start:end] = [*others[before].tolist(), order[start], *others[~before].tolist()]
            lists += [(start, place), (place + 1, end)]
            first += len(others)
        return RoundSort(tuple(order), tuple(part for part in lists if part[1] - part[0] > 1))
