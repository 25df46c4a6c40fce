"""Several statistics in one release: the largest of them, each less a public number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nullmodel import Probabilities
from privrank.hypotheses.nulls import Draw, Null, Order, Sampler, Value, noisy_quantile, null_draws
from privrank.hypotheses.statistic import Statistic
from privrank.util.arrays import own

__all__ = ["ALLOWANCE", "GRID", "Part", "QUANTILE_DRAWS", "impossible", "omnibus"]

IntArray = NDArray[np.int64]

GRID = 1024
"""Lattice steps of a statistic within its sensitivity."""

ALLOWANCE = 2
"""Lattice steps on top where a value comes from floating-point arithmetic."""

QUANTILE_DRAWS = 1_999
"""Draws behind the quantiles q_j; they decide how the power is shared, never the level."""


@dataclass(frozen=True, slots=True)
class Part:
    """One statistic of an omnibus.

    Parameters
    ----------
    value : callable
        Maps the data and an order to a whole number of 1 / 1024 of its sensitivity.
    level : float
        Its share of the level .05.
    simulated : callable or None
        The same without what only privacy needs, for draws under the null; None for the same.
    """

    value: Value
    level: float
    simulated: Value | None = None


@dataclass(frozen=True, slots=True)
class _Largest:
    """max_j (T_j - q_j) of statistics T_j in lattice steps and public whole numbers q_j."""

    parts: tuple[Part, ...]
    public: Callable[[], IntArray]

    def largest(self, table: IntArray) -> IntArray:
        """Return the statistic from those of the parts, along the last axis."""
        return np.asarray((table - self.public()).max(axis=-1))

    def value(self, data: IntArray, order: Order) -> int:
        found = [part.value(data, order) for part in self.parts]
        return int(self.largest(np.array(found, dtype=np.int64)))

    def simulated(self, data: IntArray, order: Order) -> int:
        return int(self.largest(_values(self.parts, data, order)))


def _values(parts: tuple[Part, ...], data: IntArray, order: Order) -> IntArray:
    found = [(part.simulated or part.value)(data, order) for part in parts]
    return np.array(found, dtype=np.int64)


def _drawn(rng: np.random.Generator, parts: tuple[Part, ...], sample: Sampler) -> IntArray:
    return _values(parts, sample(rng), ())


def omnibus(
    name: str,
    label: str,
    sizes: tuple[int, ...],
    parts: tuple[Part, ...],
    sample: Sampler,
    sensitivity: int,
    xi: float,
    draws: int = QUANTILE_DRAWS,
) -> Statistic:
    """Return the largest of several statistics in units of their sensitivities, less quantiles.

    Parameters
    ----------
    name : str
        As a summary prints it.
    label : str
        Name of the public sequence of vectors (T_1, ..., T_J).
    sizes : tuple of int
        What else their null distribution depends on.
    parts : tuple of Part
        The statistics.
    sample : callable
        Maps a generator to data under the null hypothesis; can be pickled.
    sensitivity : int
        By how much any T_j moves at most: 1024, and more for rounding errors.
    xi : float
        Pure privacy budget, infinite for none.
    draws : int, optional
        Draws behind the q_j.

    Returns
    -------
    Statistic
        Its value is max_j (T_j - q_j). With L the noise that will be added, q_j is the number with
        P(T_j + L >= q_j) = alpha_j under the null, alpha_j the level of part j, rounded up; without
        noise the least that T_j exceeds with probability at most alpha_j.

    Notes
    -----
    **Privacy.** No T_j less a public number moves by more than the sensitivity when an observation
    is replaced. q_j is a function of the sizes and of epsilon, so public: the maximum moves by no
    more.

    **Null.** Monte Carlo. The vectors are drawn once, and serve at every epsilon. Those behind the
    q_j are a public sequence of their own, so that the q_j are constants to the sequence behind the
    p-values, and these are valid for every q_j.

    **Power.** Under the null some T_j + L reaches its q_j with probability at most the sum of the
    levels, so at that level a noisy value of 0 or more is rejected, and each part rejects whatever
    it would by itself at its own level. Where the noise dominates, the q_j are the null means of
    the T_j and one common number: then the part in which the data stand out most decides,
    whatever the spread of the others.
    """
    draw = partial(_drawn, parts=parts, sample=sample)
    levels = tuple(part.level for part in parts)
    scale = 0.0 if math.isinf(xi) else sensitivity / xi
    whole = _Largest(parts, partial(_quantiles, label, sizes, draw, levels, scale, draws))
    null = partial(_null, label, sizes, draw, whole)
    again = partial(omnibus, name, label, sizes, parts, sample, sensitivity, xi)
    coarse = partial(_by_draws, again)
    return Statistic(
        name, 1.0 / GRID, sensitivity, whole.value, null, whole.simulated, coarse=coarse
    )


def _by_draws(again: Callable[[int], Statistic], draws: int) -> Statistic:
    return again(draws)


@lru_cache(maxsize=256)
def _quantiles(
    label: str,
    sizes: tuple[int, ...],
    draw: Draw,
    levels: tuple[float, ...],
    scale: float,
    draws: int,
) -> IntArray:
    """Return q_j, from a public sequence of its own, apart from that of the p-values."""
    table = null_draws(f"quantiles of the {label}", sizes, draw, draws)
    found = [
        math.ceil(noisy_quantile(column, level, scale))
        for column, level in zip(table.T, levels, strict=True)
    ]
    return own(found, np.int64)


def _null(label: str, sizes: tuple[int, ...], draw: Draw, whole: _Largest, draws: int) -> Null:
    drawn = null_draws(label, sizes, draw, draws)
    return Null.of_draws(whole.largest(drawn) if draws else drawn)


def impossible(counts: IntArray, p: Probabilities) -> int:
    """Return Z, the number of observations of probability 0, from counts by category.

    Under the null it is 0, whatever their number. It moves by at most 1 when one is replaced,
    attained where an observation of a category that can occur becomes one that cannot. Without
    noise Z > 0 rejects by itself; with noise Z is one part of an omnibus.
    """
    return int(counts[np.asarray(p) == 0.0].sum())
