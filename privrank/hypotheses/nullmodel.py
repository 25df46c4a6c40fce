"""A public null hypothesis, and exact distributions of test statistics under it.

The hypothesis has probabilities of categories or of rankings, or is a Mallows model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nulls import Null
from privrank.util.arrays import FloatArray, IntArray, immutable, orders_of, readonly_copy

Probabilities = tuple[float, ...]


def uniform(k: int) -> Probabilities:
    """Return k equal probabilities."""
    return (1.0 / k,) * k


def is_uniform(p: Probabilities) -> bool:
    """Return whether all probabilities are equal."""
    return min(p) == max(p)


def multinomial(n: int, p: Probabilities, rng: np.random.Generator) -> IntArray:
    """Return counts of n choices with probabilities p, normalised for numpy's sampler."""
    return rng.multinomial(n, _normalised(p))


@lru_cache(maxsize=16)
def _normalised(p: Probabilities) -> FloatArray:
    return np.asarray(readonly_copy(np.asarray(p, dtype=np.float64) / math.fsum(p), np.float64))


def sorted_multinomial(n: int, p: Probabilities, rng: np.random.Generator) -> IntArray:
    """Return counts of n choices; a permutation of p only permutes the counts."""
    places, ascending = _ascending(p)
    counts = np.empty(len(p), dtype=np.int64)
    counts[places] = multinomial(n, ascending, rng)
    return counts


@lru_cache(maxsize=16)
def _ascending(p: Probabilities) -> tuple[IntArray, Probabilities]:
    return np.argsort(p, kind="stable"), tuple(sorted(p))


@immutable
@dataclass(frozen=True, slots=True)
class NullModel:
    """A public null hypothesis: probabilities of categories or of rankings, or a Mallows model.

    Parameters
    ----------
    probabilities : tuple of float
        Probabilities of the categories, or of all m! rankings in lexicographic order of their
        ranks; empty for a Mallows model, or if all rankings are equally likely.
    theta : float
        Minus the logarithm of phi of a Mallows model.
    center : tuple of int
        Ranks of the items in the centre of a Mallows model; empty if there is none.
    """

    probabilities: Probabilities = ()
    theta: float = 0.0
    center: tuple[int, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> NullModel:
        """Rebuild from :meth:`to_record`."""
        return cls(
            tuple(float(p) for p in record["probabilities"]),
            float(record["theta"]),
            tuple(int(rank) for rank in record["center"]),
        )

    @property
    def model(self) -> Mallows:
        """The Mallows model."""
        return Mallows.from_theta(len(self.center), self.theta, np.array(self.center))

    def tabulated(self) -> NullModel:
        """Return the hypothesis with the probabilities of all m! rankings, for up to 6 items."""
        if not self.center:
            return self
        return NullModel(tuple(self.model.pmf(orders_of(len(self.center))).tolist()))

    @property
    def rules_out(self) -> bool:
        """Whether some categories, or some rankings, have probability 0."""
        return 0.0 in self.probabilities

    @property
    def words(self) -> str:
        """The hypothesis in words."""
        if self.center:
            return (
                f"the rankings follow the Mallows model with phi = {math.exp(-self.theta):.4g} and "
                f"the centre given."
            )
        if not self.probabilities:
            return "all orders of the items are equally likely."
        if len(set(self.probabilities)) == 1:
            return "all categories are equally likely."
        return "the categories have the probabilities given."


def binomial_null(n: int, p: float) -> Null:
    """Return the binomial distribution without its far tails.

    Notes
    -----
    **Null.** Counts beyond 12 standard deviations plus 50 are omitted. By Bernstein's inequality
    their probability is less than 10^-28.
    """
    width = math.ceil(12 * math.sqrt(n * p * (1 - p))) + 50
    mode = min(math.floor((n + 1) * p), n)
    count = np.arange(max(mode - width, 0), min(mode + width, n) + 1)
    return Null(count, binomial_weights(n, p, count))


def binomial_weights(n: int, p: float, count: IntArray) -> FloatArray:
    """Return the binomial probabilities of these counts."""
    from scipy.stats import binom

    return np.asarray(binom.pmf(count, n, p))
