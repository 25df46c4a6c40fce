"""Public reference distributions, by which the parts of an omnibus are made comparable.

Draws of the parts where all groups choose, or rank, uniformly. They depend on the sizes of the
groups and the number of categories or items alone, and come from public sequences of their own:
no data, no noise and no permutation of a fit has to do with them. They decide how the level is
shared by the parts, never whether a test is valid.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.allorders import orders_of
from privrank.hypotheses.nulltables import public_generator, uniform_rankings
from privrank.mechanisms.statistics.departures import (
    cell_parts,
    kernel_departures,
    parts_of_departures,
    share_departures,
)
from privrank.mechanisms.statistics.gram import DIAMETER, RankKernel, gram_blocks
from privrank.plans.closeness import MOST_TABULATED

__all__ = ["choice_parts", "ranking_parts"]

FloatArray = NDArray[np.float64]
TableArray = NDArray[np.int32]

DRAWS = 1_000
"""Draws of a reference distribution, unless re-labellings would have too many cells."""

_WORK = 2**25
"""Cells of tables up to which re-labellings are drawn, though never fewer than a tenth of them."""

_CELLS = 2**24
"""Cells of tables, or inner products of groups, held at a time."""


@lru_cache(maxsize=64)
def choice_parts(sizes: tuple[int, ...], k: int, *, cells: bool) -> FloatArray:
    """Return draws of `cell_parts`, or of the departures, of groups that choose uniformly."""
    rng = public_generator("closeness of choices", k, *sizes)
    found = []
    for number in _blocks(DRAWS, len(sizes) * k):
        tables = _multinomial(rng, sizes, k, number)
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
    total, groups, draws = sum(sizes), len(sizes), DRAWS
    if m <= MOST_TABULATED:
        kinds, ranks = math.factorial(m), orders_of(m)
        drawn = partial(_multinomial, rng, sizes, kinds)
    else:
        kinds, ranks = total, uniform_rankings(rng, total, m)
        draws = min(DRAWS, max(_WORK // (groups * total), DRAWS // 10))
        drawn = partial(_relabelled, rng, sizes)
    blocks, gram = _blocks(draws, groups * max(groups, kinds)), gram_blocks(ranks, kernel)
    held = gram if len(blocks) == 1 else list(gram)
    departures = np.concatenate([kernel_departures(drawn(number), held) for number in blocks])
    return _kept(parts_of_departures(departures, np.array(sizes), DIAMETER[kernel]))


def _blocks(draws: int, cells: int) -> list[int]:
    """Return how many draws of so many cells each are held at a time."""
    step = max(1, _CELLS // cells)
    return [min(step, draws - start) for start in range(0, draws, step)]


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
