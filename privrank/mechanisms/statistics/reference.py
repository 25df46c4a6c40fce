"""Public reference distributions, by which the parts of an omnibus are made comparable.

Draws of the parts where all groups choose, or rank, uniformly. They depend on the sizes of the
groups and the number of categories or items alone, and come from public sequences of their own:
no data, no noise and no permutation of a fit has to do with them. They decide how the level is
shared by the parts, never whether a test is valid.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nulltables import public_generator, uniform_rankings
from privrank.mechanisms.statistics.departures import (
    cell_parts,
    kernel_departures,
    parts_of_departures,
    share_departures,
)
from privrank.mechanisms.statistics.gram import (
    DIAMETER,
    MOST_TABULATED,
    RankKernel,
    all_orders,
    gram_blocks,
)

__all__ = ["choice_parts", "ranking_parts"]

FloatArray = NDArray[np.float64]
TableArray = NDArray[np.int32]

DRAWS = 1_000
"""Draws of a reference distribution, unless they would hold too many cells."""

_CELLS = 2**25
"""Cells of tables held at a time."""


@lru_cache(maxsize=64)
def choice_parts(sizes: tuple[int, ...], k: int, *, cells: bool) -> FloatArray:
    """Return draws of `cell_parts`, or of the departures, of groups that choose uniformly."""
    rng = public_generator("closeness of choices", k, *sizes)
    step = max(1, _CELLS // (len(sizes) * k))
    found = []
    for start in range(0, DRAWS, step):
        tables = _multinomial(rng, sizes, k, min(step, DRAWS - start))
        if cells:
            found.append(cell_parts(tables))
        else:
            found.append(parts_of_departures(share_departures(tables), np.array(sizes), 1.0))
    return _kept(np.concatenate(found))


@lru_cache(maxsize=64)
def ranking_parts(sizes: tuple[int, ...], m: int, kernel: RankKernel) -> FloatArray:
    """Return draws of the departures of groups that rank m items uniformly.

    With more than six items, re-labellings of one public sample: its kernel matrix is found once.
    """
    rng = public_generator("closeness of rankings", m, *sizes)
    total = sum(sizes)
    if m <= MOST_TABULATED:
        tables, ranks = _multinomial(rng, sizes, math.factorial(m), DRAWS), all_orders(m)
    else:
        ranks = uniform_rankings(rng, total, m)
        draws = max(_CELLS // (len(sizes) * total), DRAWS // 10)
        tables = _relabelled(rng, sizes, min(DRAWS, draws))
    departures = kernel_departures(tables, gram_blocks(ranks, kernel))
    return _kept(parts_of_departures(departures, np.array(sizes), DIAMETER[kernel]))


def _multinomial(
    rng: np.random.Generator, sizes: tuple[int, ...], k: int, draws: int
) -> TableArray:
    cells = np.full(k, 1.0 / k)
    tables = np.empty((draws, len(sizes), k), dtype=np.int32)
    for g, size in enumerate(sizes):
        tables[:, g] = rng.multinomial(size, cells, draws)
    return tables


def _relabelled(rng: np.random.Generator, sizes: tuple[int, ...], draws: int) -> TableArray:
    """Return tables in which each unit is a kind of its own, dealt to the groups at random."""
    label = np.repeat(np.arange(len(sizes)), sizes)
    labels = rng.permuted(np.tile(label, (draws, 1)), axis=1)
    return np.stack([labels == g for g in range(len(sizes))], axis=1).astype(np.int32)


def _kept(parts: FloatArray) -> FloatArray:
    parts.setflags(write=False)
    return parts
