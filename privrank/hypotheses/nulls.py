"""Null distributions of noisy statistics, from public numbers only."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nulltables import null_draws
from privrank.privacy.noise import DiscreteLaplace
from privrank.util.arrays import own

__all__ = ["Null", "monte_carlo_pvalue", "null_of"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

Order = tuple[int, ...]
Value = Callable[[IntArray, Order], int]
Sample = Callable[[np.random.Generator], IntArray]


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """The distribution of a whole-number statistic under the null hypothesis, before noise.

    Parameters
    ----------
    values : ndarray of int64, shape (v,)
        Distinct values, ascending.
    weights : ndarray of float64, shape (v,)
        Their probabilities, or their shares of the Monte Carlo draws.
    draws : int or None
        Number of Monte Carlo draws; None where the distribution is exact.
    """

    values: IntArray
    weights: FloatArray
    draws: int | None = None

    def __post_init__(self) -> None:
        """Take private, read-only copies."""
        object.__setattr__(self, "values", own(self.values, np.int64))
        object.__setattr__(self, "weights", own(self.weights, np.float64))

    @classmethod
    def of_draws(cls, draws: IntArray) -> Null:
        """Return the distribution that Monte Carlo draws of the statistic stand for."""
        values, counts = np.unique(draws, return_counts=True)
        return cls(values, counts / len(draws), len(draws))

    def mapped(self, function: Callable[[IntArray], IntArray]) -> Null:
        """Return the distribution of a function of the statistic, given on arrays of values."""
        values, place = np.unique(function(self.values), return_inverse=True)
        return Null(values, np.bincount(place, self.weights).astype(np.float64), self.draws)

    def pvalue(self, observed: int, distribution: DiscreteLaplace, lot: float = -0.5) -> float:
        """Return the p-value of a statistic that was released with noise of this distribution.

        Notes
        -----
        **Boundary.** With `lot` U uniform on [-1/2, 1/2), drawn apart from all else, the p-value of
        an exact distribution is P(T + noise > observed) + (1/2 - U) P(T + noise = observed). That
        is uniform under the null: given the released value it spreads evenly over the step of the
        distribution function there. U = -1/2 gives the upper end, the p-value without a lot.

        **Null.** Exact distribution: P(T + noise >= observed). Monte Carlo: with T_1, ..., T_N
        drawn under the null, (1 + sum_b P(T_b + noise >= observed | T_b)) / (N + 1). This is the
        mean, over the noise, of (1 + #{T_b + noise_b >= observed}) / (N + 1), which is uniform on
        its grid or larger because the N + 1 noisy statistics are exchangeable; so tests by it keep
        their level on average over tables, and it varies less.
        """
        tail = min(float(self.weights @ distribution.tail(observed - self.values)), 1.0)
        if self.draws is None:
            beyond = float(self.weights @ distribution.tail(observed + 1 - self.values))
            return tail - (0.5 + lot) * max(tail - beyond, 0.0)
        return (1.0 + self.draws * tail) / (1.0 + self.draws)

    def bins(self, distribution: DiscreteLaplace, most: int = 60) -> tuple[IntArray, FloatArray]:
        """Return edges and probabilities of at most `most` bins of the noisy statistic.

        The bins hold all but a probability of about 10^-4; every edge is a whole number, and a bin
        holds the values from its left edge up to, but not, its right one.
        """
        # a threshold of level a is the least value with a tail of at most a
        exact = Null(self.values, self.weights)
        low, high = (exact.threshold(a, distribution) for a in (1.0 - 5e-5, 5e-5))
        low = int(self.values[0]) if low is None else low
        high = int(self.values[-1]) + 1 if high is None else max(high, low + 1)
        step = -(-(high - low) // most)
        edges = np.arange(low, high + step, step, dtype=np.int64)
        tails = np.array([self.weights @ distribution.tail(edge - self.values) for edge in edges])
        return edges, -np.diff(tails)

    def threshold(
        self, alpha: float, distribution: DiscreteLaplace, lot: float = -0.5
    ) -> int | None:
        """Return the least noisy statistic that is rejected at level alpha, None if none is.

        The `lot` is that of the p-value.
        """
        reach = math.ceil(distribution.scale * (math.log(1.0 / alpha) + 40.0)) + 1
        low, high = int(self.values[0]) - reach, int(self.values[-1]) + reach
        if self.pvalue(high, distribution, lot) > alpha:
            return None
        values = range(low + 1, high + 1)
        rejected = bisect_left(
            values, True, key=lambda value: self.pvalue(value, distribution, lot) <= alpha
        )
        return values[rejected]


def null_of(
    name: str,
    sizes: tuple[int, ...],
    value: Value,
    sample: Sample,
    draws: int,
    *,
    exact: Callable[[], Null | None] = lambda: None,
) -> Null:
    """Return the distribution of a statistic: the exact one if there is one, else Monte Carlo.

    Parameters
    ----------
    name, sizes
        Of the public sequence, as :func:`privrank.hypotheses.nulltables.null_draws` takes them.
    value : callable
        As that of a `Statistic`.
    sample : callable
        Maps a generator to data under the null hypothesis; can be pickled.
    draws : int
        How many Monte Carlo draws.
    exact : callable, optional
        Returns the exact distribution, or None where it would take too long.
    """
    found = exact()
    if found is not None:
        return found
    return Null.of_draws(
        null_draws(name, sizes, partial(_drawn, value=value, sample=sample), draws)
    )


def _drawn(rng: np.random.Generator, value: Value, sample: Sample) -> int:
    return value(sample(rng), ())


def monte_carlo_pvalue(statistic: float, table: FloatArray) -> float:
    """Return (1 + #{table >= statistic}) / (1 + len(table)), valid for every table size.

    NaN if there is no statistic.
    """
    if math.isnan(statistic):
        return math.nan
    return float((1 + np.count_nonzero(table >= statistic)) / (1 + len(table)))
