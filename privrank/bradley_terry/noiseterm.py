"""The noise of one part of a release, and its effect on the scores.

A released number enters the scores in two ways only: directly, or through the numbers of
comparisons on which expected scores depend. To first order its noise z moves the scores at b by
M(b) z, with

    M(b) = scores - mean_scores(b)' counts,

where row c of mean_scores(b), shape (cells, p), is the expected score of one answer in cell c. The
covariance is v M M' for noise of variance v, and simulated errors are M z. This module has no
access to the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import matmul
from typing import Any

import numpy as np

from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.tails import simulated
from privrank.release.survey import Noise, equivalent_variance
from privrank.util.arrays import FloatArray, IntArray, own_arrays, readonly_copy
from privrank.util.solvers import dense, product

Map = Any
"""A linear map for which ``rows @ map`` is defined: an array, or a sparse array."""


@dataclass(frozen=True, eq=False)
class NoiseTerm:
    """The noise of one part of a release, as independent vectors of k numbers.

    Parameters
    ----------
    distribution : Noise or None
        Distribution of a vector, in steps; None for standard normal numbers.
    step : float
        The step of the lattice.
    size : int
        The number k of entries of a vector.
    scores : Map, shape (p, k), or None
        The map from the numbers to the scores that they enter directly; None if there is none.
    counts : sequence of Map, or None
        The map from the numbers to the comparisons of the cells, shape (cells, k), as factors of a
        product. The empty sequence is the identity. None if the numbers do not enter comparisons.
    items : ndarray of int64, shape (1 or 2, l), or None
        The item of each number, the winner and loser of each cell, or the two items of each pair.
        The k numbers are k / l such blocks. Public draws are assigned to the items in the order of
        their worths.
    vectors : ndarray, shape (K, vectors)
        Weights of the vectors in each column of a model matrix; scores are ordered by column.
    beside : bool
        Whether the noise is one of the normal errors of the scores that are not simulated.
    """

    distribution: Any
    step: float
    size: int
    scores: Map = None
    counts: Sequence[Map] | None = None
    items: IntArray | None = None
    vectors: FloatArray = field(default_factory=lambda: np.ones((1, 1)))
    beside: bool = False

    def __post_init__(self) -> None:
        """Take private, read-only copies of the arrays, because results keep them."""
        own_arrays(self)

    @property
    def by_pair(self) -> bool:
        """Whether the numbers belong to pairs of items."""
        return self.items is not None and len(self.items) == 2

    @property
    def variance(self) -> float:
        """Variance of independent numbers whose differences have the variance of this noise."""
        if self.distribution is None:
            return self.step**2
        return self.step**2 * equivalent_variance(self.distribution, self.size)

    @property
    def score_variance(self) -> float:
        """Variance of the noise of each score, if the numbers enter all scores alike."""
        return self.variance * float((self.scores**2).sum() / self.scores.shape[0])

    def through_counts(self, rows: FloatArray) -> FloatArray:
        """Return the effects of the numbers, through the counts, on rows of scores, (rows, k)."""
        return dense(reduce(matmul, self.counts or (), rows))

    def at(self, mean: Callable[[], Map]) -> Map:
        """Return M, shape (p, k), given the expected scores of the cells."""
        if self.counts is None:
            return self.scores
        moved = reduce(matmul, self.counts, mean().T)
        # the noise is symmetric, so its overall sign does not matter
        return moved if self.scores is None else self.scores - moved

    def covariance(self, mean: Callable[[], Map]) -> FloatArray:
        """Return the covariance of the scores by this noise, given expected scores of the cells."""
        moved = self.at(mean)
        gram = product(moved, moved.T) if isinstance(moved, np.ndarray) else dense(moved @ moved.T)
        return np.asarray(self.variance * np.kron(self.vectors @ self.vectors.T, gram))

    def simulate(
        self,
        mean: Callable[[], Map],
        draws: int,
        place: IntArray,
        generator: np.random.Generator | None,
    ) -> FloatArray:
        """Draw errors of the scores, shape (draws, p), given the expected scores of the cells.

        Without a generator the draws are public and belong to the items at these places.
        """
        moved = self.step * self.at(mean).T
        errors = np.zeros((draws, len(self.vectors) * moved.shape[1]))
        for row in self.vectors.T:
            # one vector at a time keeps memory independent of their number
            drawn = (
                self._public(draws, place)
                if generator is None
                else simulated(self.distribution, (draws, self.size), generator)
            )
            errors += np.kron(row, drawn @ moved)
        return errors

    def _public(self, draws: int, place: IntArray) -> FloatArray:
        """Return public draws that do not depend on the order in which items are listed."""
        drawn = public_noise(self.distribution, self.size, draws, len(place) * self.by_pair)
        if self.items is None:
            return drawn
        ends = place[self.items]
        # numbers that enter scores have a sign, which depends on the order of the two items
        turned = (ends[0] > ends[-1]) & (self.scores is not None)
        rank = np.argsort(np.lexsort((ends.max(axis=0), ends.min(axis=0), turned)))
        blocks = np.arange(0, self.size, len(rank))
        return drawn.take(np.add.outer(blocks, rank).ravel(), axis=1)


@lru_cache(maxsize=3)
def public_noise(distribution: Noise | None, size: int, draws: int, pairs: int = 0) -> FloatArray:
    """Return cached public draws, shape (draws, size), for pairs of items if `pairs` is not 0."""
    generator = public_generator("errors of pairs" if pairs else "errors of worths", pairs or size)
    if distribution is None:
        return readonly_copy(generator.standard_normal((draws, size)), np.float64)
    return readonly_copy(np.asarray(simulated(distribution, (draws, size), generator)), np.float64)
