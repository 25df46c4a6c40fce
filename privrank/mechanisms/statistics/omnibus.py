"""Several statistics in one release: the largest of them, each less a public quantile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nulls import Null
from privrank.hypotheses.nulltables import null_draws
from privrank.hypotheses.statistic import Statistic

__all__ = ["GRID", "drawn_null", "omnibus"]

IntArray = NDArray[np.int64]
Order = tuple[int, ...]
Value = Callable[[IntArray, Order], int]
Sample = Callable[[np.random.Generator], IntArray]

GRID = 1024
"""Lattice steps of a statistic within its sensitivity."""

QUANTILE_DRAWS = 1_999
"""Draws behind the quantiles q_j; they decide how the power is shared, never the level."""


def _drawn(rng: np.random.Generator, value: Value, sample: Sample) -> int:
    return value(sample(rng), ())


def drawn_null(name: str, sizes: tuple[int, ...], value: Value, sample: Sample, draws: int) -> Null:
    """Return the Monte Carlo law of a statistic from its public sequence.

    Parameters
    ----------
    name, sizes
        Of the public sequence, as :func:`privrank.hypotheses.nulltables.null_draws` takes them.
    value : callable
        As that of a `Statistic`.
    sample : callable
        Maps a generator to data under the null hypothesis.
    draws : int
        How many.
    """
    return Null.of_draws(
        null_draws(name, sizes, partial(_drawn, value=value, sample=sample), draws)
    )


@dataclass(frozen=True, slots=True)
class _Omnibus:
    name: str
    sizes: tuple[int, ...]
    parts: tuple[Statistic, ...]
    sample: Sample

    def values(self, data: IntArray, order: Order) -> IntArray:
        return np.array([part.value(data, order) for part in self.parts], dtype=np.int64)

    def simulated(self, rng: np.random.Generator) -> IntArray:
        return self.values(self.sample(rng), ())

    def quantiles(self) -> IntArray:
        """Return q_j, from a public sequence of its own, apart from that of the p-values."""
        label = f"quantiles of the {self.name}"
        table = null_draws(label, self.sizes, self.simulated, QUANTILE_DRAWS)
        level = 1 - 0.05 / len(self.parts)
        return np.asarray(np.quantile(table, level, axis=0, method="inverted_cdf"))

    def value(self, data: IntArray, order: Order) -> int:
        return int((self.values(data, order) - self.quantiles()).max())

    def null(self, draws: int) -> Null:
        table = null_draws(self.name, self.sizes, self.simulated, draws)
        return Null.of_draws((table - self.quantiles()).max(axis=1))


def omnibus(
    name: str, sizes: tuple[int, ...], parts: tuple[Statistic, ...], sample: Sample
) -> Statistic:
    """Return the largest of several statistics in units of their sensitivities, less quantiles.

    Parameters
    ----------
    name : str
        As a summary prints it, and the name of the public sequence.
    sizes : tuple of int
        What else the null law depends on.
    parts : tuple of Statistic
        Each with `GRID` lattice steps, or hardly more, in its sensitivity.
    sample : callable
        Maps a generator to data under the null hypothesis; can be pickled.

    Returns
    -------
    Statistic
        Its value is max_j (T_j - q_j), T_j the parts in lattice steps and q_j the 1 - 0.05 / J
        quantile of T_j under the null, J the number of parts.

    Notes
    -----
    **Privacy.** No T_j moves by more than its sensitivity when a unit is replaced, and q_j is
    public, so the maximum moves by at most the largest of the sensitivities.

    **Null.** Monte Carlo. The q_j come from a public sequence of draws of their own, so that they
    are constants to the sequence behind the p-values, and these are valid for every q_j.
    """
    whole = _Omnibus(name, sizes, parts, sample)
    sensitivity = max(part.sensitivity for part in parts)
    return Statistic(name, 1.0 / GRID, sensitivity, whole.value, whole.null)
