"""Norms of the summed rank vectors: the statistics of a test of uniformity that rankings need.

The rank vector of a ranking is 2 r - (m + 1), r its ranks; scaled by sqrt(3 / (m (m + 1))) its
norm is sqrt(m - 1). Friedman's statistic is the squared norm of their sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nulls import Null
from privrank.hypotheses.nulltables import null_draws, uniform_rankings
from privrank.hypotheses.statistic import Statistic
from privrank.mechanisms.capped import CappedNorm, capped_norm

__all__ = ["borda_norm", "plain_norm"]

IntArray = NDArray[np.int64]
Order = tuple[int, ...]

GRID = 1024
"""Lattice steps within the sensitivity of a norm."""

CERTIFIED = 200
"""Up to this many rankings or items, null draws carry their certificate as data do."""

ALLOWANCE = 2
"""Lattice steps on top, for the gap of a certified value and for floating-point arithmetic."""


def borda_norm(n: int, m: int) -> Statistic:
    """Return the capped norm, or the plain one where that is better, as n and m alone decide."""
    norm = capped_norm(n, m)
    return plain_norm(n, m) if norm is None else _capped(n, m, norm)


def plain_norm(n: int, m: int) -> Statistic:
    """Return the norm of the sum of the rank vectors on an integer grid.

    Notes
    -----
    **Privacy.** The norm of a sum moves by at most the distance of two rank vectors, which is
    largest for opposite rankings: twice the norm, whose square is m (m^2 - 1) / 3. With Q the
    squared norm of the sum, an integer, and s = 4 m (m^2 - 1) / 3 the square of that distance, the
    statistic is floor(1024 sqrt(Q / s)), taken exactly as the integer square root of
    floor(1024^2 Q / s). Numbers at most 1024 apart have floors at most 1024 apart. Tight: one
    ranking of two replaced by its reverse moves sqrt(Q / s) from 1 to 0.

    **Null.** Monte Carlo over uniform rankings.
    """
    square = 4 * m * (m * m - 1) // 3
    value = partial(_plain_value, square)
    return Statistic(
        name="Borda norm",
        step=2.0 * math.sqrt(m - 1) / GRID,
        sensitivity=GRID,
        value=value,
        null=partial(_null, "borda norm", n, m, partial(_draw, n, m, value)),
    )


def _plain_value(square: int, ranks: IntArray, order: Order) -> int:
    n, m = ranks.shape
    total = 2 * ranks.sum(axis=0) - n * (m + 1)
    norm = sum(int(entry) ** 2 for entry in total)
    return math.isqrt(GRID * GRID * norm // square)


def _draw(n: int, m: int, value: Callable[[IntArray, Order], int], rng: np.random.Generator) -> int:
    return value(uniform_rankings(rng, n, m), ())


def _capped(n: int, m: int, norm: CappedNorm) -> Statistic:
    """Return the capped norm on an integer grid.

    Notes
    -----
    **Privacy.** The value computed lies in [f - g, f] for every data set, f being the capped norm
    with sensitivity A + B and g = (A + B) / 1000 (:mod:`privrank.mechanisms.capped`), so it moves
    by at most A + B + g, 1025.1 steps of (A + B) / 1024. Its floor moves by at most 1026 when the
    error of floating-point arithmetic stays below 0.9 steps, some 10^10 times what it is.

    **Null.** Monte Carlo over uniform rankings. Where the certificate takes most of the time, the
    draws do without it: at such sizes it holds on uniform rankings but for a share below 10^-3, and
    where it holds the value is the same bit for bit.
    """
    step = norm.sensitivity / GRID
    exact, drawn = partial(_capped_value, norm, step), partial(_capped_fast, norm, step)
    if min(n, m) <= CERTIFIED:
        drawn = exact
    return Statistic(
        name="capped Borda norm",
        step=step,
        sensitivity=GRID + ALLOWANCE,
        value=exact,
        null=partial(_null, "capped borda norm", n, m, partial(_draw, n, m, drawn)),
        simulated=drawn,
    )


def _capped_value(norm: CappedNorm, step: float, ranks: IntArray, order: Order) -> int:
    return math.floor(norm.value(ranks) / step)


def _capped_fast(norm: CappedNorm, step: float, ranks: IntArray, order: Order) -> int:
    return math.floor(norm.fast(ranks) / step)


def _null(name: str, n: int, m: int, draw: partial[int], draws: int) -> Null:
    return Null.of_draws(null_draws(name, (n, m), draw, draws))
