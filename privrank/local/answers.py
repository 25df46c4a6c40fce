"""A respondent's own ranking, read on their device: checked, and completed by a public rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privrank.local.responses import shuffled

__all__ = ["Partial", "read_ranking"]

Partial = Literal["refuse", "complete"]


def read_ranking(
    ranking: object,
    items: Sequence[str],
    needed: Sequence[int],
    *,
    ties: bool,
    partial: Partial,
) -> NDArray[np.int64]:
    """Return the rank of every item, of which the `needed` ones count.

    A ranking is a sequence of names, best first, or a mapping from names to ranks 1, 2, ... With
    ``partial="complete"`` items that share a rank are put in random order, unless `ties` are
    answers of their own, and needed items that are left out come below all others, in random order.
    """
    named = _named(ranking)
    places = {name: place for place, name in enumerate(items)}
    levels: dict[int, int] = {}
    for name, level in named:
        if name not in places:
            raise ValueError(
                "ranking names something that is not among the protocol's items: write the items "
                "as the protocol does."
            )
        if places[name] in levels:
            raise ValueError("ranking names an item twice: give each item one place.")
        levels[places[name]] = level
    if partial == "refuse":
        if not levels.keys() >= set(needed):
            raise ValueError(
                f"ranking leaves out items that are asked about ({len(needed)} are): place each of "
                f"them, or use a protocol with partial='complete'."
            )
        if not ties:
            _check_levels(sorted(levels.values()), len(levels) == len(items))
    return _ranks(levels, len(items), keep=ties, random=partial == "complete")


def _named(ranking: object) -> list[tuple[str, int]]:
    """Return names and ranks of what is a mapping or a sequence."""
    if isinstance(ranking, Mapping):
        for level in ranking.values():
            if isinstance(level, bool) or not isinstance(level, Integral) or level < 1:
                raise ValueError(
                    "ranking must map items to whole numbers from 1, the rank of the best: leave "
                    "out items without a rank."
                )
        return [(str(name), int(level)) for name, level in ranking.items()]
    listed = isinstance(ranking, Sequence) and not isinstance(ranking, str | bytes)
    if not listed and not (isinstance(ranking, np.ndarray) and ranking.ndim == 1):
        raise TypeError(
            f"ranking must be a sequence of items, best first, or a mapping from items to ranks, "
            f"got {type(ranking).__name__}."
        )
    return [(str(name), place) for place, name in enumerate(ranking, 1)]  # type: ignore[arg-type, var-annotated]


def _check_levels(levels: Sequence[int], complete: bool) -> None:
    if len(set(levels)) < len(levels):
        raise ValueError(
            "ranking gives two items the same rank: order them, or use a protocol with "
            "partial='complete'."
        )
    if complete and levels[-1] != len(levels):
        raise ValueError(
            f"ranking has a gap: {len(levels)} items have the ranks 1 to {len(levels)}."
        )


def _ranks(levels: Mapping[int, int], size: int, *, keep: bool, random: bool) -> NDArray[np.int64]:
    """Return ranks from levels; what has none comes last."""
    last = max(levels.values(), default=0) + 1
    lots = shuffled(size) if random else list(range(size))
    keys = [
        (levels.get(place, last), 0 if keep and place in levels else lots[place])
        for place in range(size)
    ]
    rank = {key: number for number, key in enumerate(sorted(set(keys)), 1)}
    return np.array([rank[key] for key in keys], dtype=np.int64)
