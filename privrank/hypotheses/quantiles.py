"""Public numbers by which the statistics of an omnibus are made comparable.

Comparisons of groups have a reference distribution for that: their statistics where all groups
choose, or rank, uniformly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nulltables import public_generator, uniform_rankings
from privrank.util.arrays import orders_of
from privrank.util.solvers import bracket

__all__ = ["choice_tables", "levels", "noisy_quantile", "quantiles", "ranking_tables"]

IntArray = NDArray[np.int64]
TableArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]

_HALVINGS = 60

_WHOLE, _EACH = 0.035, 0.05
"""Levels of the sum, and of all departures together; valid whatever they add up to."""

_DRAWS = 1_000
"""Draws of a reference distribution, unless re-labellings would have too many cells."""

_WORK = 2**25
"""Cells of tables up to which re-labellings are drawn, though never fewer than a tenth of them."""

_HELD = 2**24
"""Cells of tables, or inner products of groups, held at a time."""


def noisy_quantile(draws: FloatArray, level: float, scale: float) -> float:
    """Return the number that a statistic exceeds with a given probability, noise included.

    Parameters
    ----------
    draws : ndarray of float64, shape (b,)
        Draws of the statistic under a public reference distribution, before noise.
    level : float
        The probability, in (0, 1).
    scale : float
        Scale of the Laplace noise that will be added; 0 for none.

    Returns
    -------
    float
        The q with mean_b P(T_b + L >= q) = level; without noise the least draw that a share of at
        most `level` of the draws exceeds.

    Notes
    -----
    Where noise dominates, q is the mean of the draws plus what depends on the noise alone, so that
    statistics with different spreads enter an omnibus on equal terms; where it does not, q is a
    quantile of the draws.
    """
    draws = np.asarray(draws, dtype=np.float64)
    if scale == 0:
        return float(np.quantile(draws, 1.0 - level, method="inverted_cdf"))
    reach = scale * (1.0 - math.log(min(level, 1.0 - level)))
    low, high = float(draws.min()) - reach, float(draws.max()) + reach

    def exceeded(q: float) -> bool:
        steps = (q - draws) / scale
        tail = 0.5 * np.exp(-np.abs(steps))
        return bool(np.where(steps > 0, tail, 1.0 - tail).mean() > level)

    return bracket(exceeded, low, high, _HALVINGS)[1]


def levels(groups: int, parts: int) -> tuple[float, ...]:
    """Return the levels at which parts enter an omnibus: of `cell_parts`, else of departures."""
    if parts == 2:
        return 0.025, 0.025
    if parts == 1 + groups:
        return _WHOLE, *[_EACH / groups] * groups
    return 0.02, *[0.015 / groups] * (2 * groups)


def quantiles(reference: FloatArray, groups: int, scale: float) -> FloatArray:
    """Return the public q_j of an omnibus from draws of its parts, for noise of this scale.

    q_j is what part j with its noise exceeds with the probability that `levels` has for it, under
    a reference distribution.
    """
    each = levels(groups, reference.shape[1])
    pairs = zip(reference.T, each, strict=True)
    return np.array([noisy_quantile(draws, level, scale) for draws, level in pairs])


def choice_tables(sizes: tuple[int, ...], k: int) -> Iterator[TableArray]:
    """Yield public tables (draws, groups, k) of groups of these sizes that choose uniformly."""
    rng = public_generator("closeness of choices", k, *sizes)
    for number in _blocks(_DRAWS, len(sizes) * k):
        yield _multinomial(rng, sizes, k, number)


def ranking_tables(
    sizes: tuple[int, ...], m: int, tabulated: bool
) -> tuple[IntArray, list[Callable[[], TableArray]]]:
    """Return rankings of m items, and functions that draw tables of how often groups have them.

    These are all m! rankings if they are `tabulated`, of which each group has a multinomial number,
    or one public sample, whose re-labellings are drawn.
    """
    rng = public_generator("closeness of rankings", m, *sizes)
    total, groups, draws = sum(sizes), len(sizes), _DRAWS
    if tabulated:
        kinds, ranks = math.factorial(m), orders_of(m)
        drawn = partial(_multinomial, rng, sizes, kinds)
    else:
        kinds, ranks = total, uniform_rankings(rng, total, m)
        draws = min(_DRAWS, max(_WORK // (groups * total), _DRAWS // 10))
        drawn = partial(_relabelled, rng, sizes)
    return ranks, [partial(drawn, number) for number in _blocks(draws, groups * max(groups, kinds))]


def _blocks(draws: int, cells: int) -> list[int]:
    """Return how many draws of so many cells each are held at a time."""
    step = max(1, _HELD // cells)
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
