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

from dataclasses import dataclass
from typing import Literal

from privrank.util.arrays import immutable

Answer = Literal["best", "worst", "best-worst", "order"]


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
