"""Choices from publicly offered sets: which items each task showed, and how it was answered.

A *task* shows a set S of items to a unit, which answers it in one way:

- ``"best"``: names the best item of S, position score (1, 0, ..., 0);
- ``"worst"``: names the worst, (0, ..., 0, -1);
- ``"best-worst"``: names both, (1, 0, ..., 0, -1);
- ``"order"``: orders S, (s - 1, s - 3, ..., 1 - s) for s items.

Released is the item vector T, the sum over all tasks of the position scores that the items have in
the answer. Which set was shown in which task is public and fixed before any answer. Neighbours
replace all answers of one unit, and their sets stay.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from privrank.privacy.sensitivity import UnitSensitivity
from privrank.util.arrays import IntArray, immutable

Answer = Literal["best", "worst", "best-worst", "order"]


def position_scores(answer: Answer, size: int) -> IntArray:
    """Return the position scores of an answer to a set of `size` items, descending."""
    if answer == "order":
        return np.arange(size - 1, -size, -2)
    scores = np.zeros(size, dtype=np.int64)
    scores[0] = answer != "worst"
    scores[-1] -= answer in ("worst", "best-worst")
    return scores


@immutable
@dataclass(frozen=True, slots=True)
class Offered:
    """The sets that were offered, by questionnaire.

    Parameters
    ----------
    answer : {"best", "worst", "best-worst", "order"}
        How each task is answered.
    sets : tuple of tuple of int
        The distinct sets, each as ascending positions of items; sorted by size, then by items.
    versions : tuple of tuple of int
        The distinct questionnaires, each as ascending positions in `sets`; a set that was shown
        twice occurs twice. If a row is a unit, each questionnaire is a single set.
    units : tuple of int
        Number of units with each questionnaire.
    patterns : tuple of int
        Pattern of covariates of these units; 0 without covariates.
    """

    answer: Answer
    sets: tuple[tuple[int, ...], ...]
    versions: tuple[tuple[int, ...], ...]
    units: tuple[int, ...]
    patterns: tuple[int, ...]

    @property
    def tasks(self) -> int:
        """Number of tasks of all units."""
        pairs = zip(self.versions, self.units, strict=True)
        return sum(len(version) * units for version, units in pairs)


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """The pairs of items in each offered set, sorted by their first items.

    With covariates, item i with pattern s has the number s m + i.

    Parameters
    ----------
    first, second : ndarray of int64, shape (edges,)
        The two items.
    count : ndarray of int64, shape (edges,)
        Tasks that offered the set.
    groups : tuple of ndarray of int64
        Positions of the edges of each set, one array for each size s of sets, shape
        (sets, s (s - 1) / 2), in the order of ``np.triu_indices``.
    """

    first: IntArray
    second: IntArray
    count: IntArray
    groups: tuple[IntArray, ...]


@lru_cache(maxsize=8)
def offered_edges(offered: Offered, items: int) -> Edges:
    """Return the pairs of items in each offered set."""
    shown: Counter[tuple[int, int, int]] = Counter()
    for version, units, pattern in zip(
        offered.versions, offered.units, offered.patterns, strict=True
    ):
        for k in version:
            shown[len(offered.sets[k]), pattern, k] += units
    sizes, patterns, numbers = np.array(sorted(shown), dtype=np.int64).reshape(-1, 3).T
    tasks = np.array([shown[key] for key in sorted(shown)])
    ends = []
    counts = []
    for size in np.unique(sizes):
        here = sizes == size
        members = np.array([offered.sets[k] for k in numbers[here]]) + items * patterns[here, None]
        ends.append(members[:, np.array(np.triu_indices(size, 1))])
        counts.append(np.repeat(tasks[here, None], size * (size - 1) // 2, axis=1))
    first, second = (np.concatenate([pair[:, k].ravel() for pair in ends]) for k in (0, 1))
    order = np.argsort(first, kind="stable")
    place = np.argsort(order, kind="stable")
    cuts = np.cumsum([count.size for count in counts])[:-1]
    groups = tuple(
        part.reshape(count.shape) for part, count in zip(np.split(place, cuts), counts, strict=True)
    )
    count = np.concatenate([count.ravel() for count in counts])
    return Edges(first[order], second[order], count[order], groups)


def offered_sensitivity(items: int, offered: Offered) -> UnitSensitivity:
    raise NotImplementedError
