"""What a consensus states of pairs or Borda scores as equations, for pooling. Sees no data."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.sources import Source
from privrank.consensus.intervals import Target
from privrank.consensus.statements import RandomReports, Statements
from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.tails import BordaDistribution, simulated
from privrank.privacy.knorm import PermutohedronNoise
from privrank.util.arrays import own

__all__ = ["fraction_source", "score_source"]

FloatArray = NDArray[np.float64]

_DRAWS = 5_000

_UNKNOWN = 1e12
"""The variance of a fraction that nobody was asked about."""


def _means(
    values: FloatArray,
    largest: float,
    units: FloatArray | float,
    sampled: bool,
    noise: FloatArray,
    draws: FloatArray | None,
    freedom: FloatArray,
) -> Source:
    """Return means of values between 0 and `largest`, each a block of its own.

    **Statistic.** Such a mean s of n units has at most the variance s (b - s) / n, b the largest
    (Bhatia and Davis); a fraction, which has b = 1, has just that.
    """
    blocks, ones = len(values), np.ones((len(values), 1, 1))

    def equations(point: FloatArray) -> tuple[FloatArray, FloatArray]:
        return values[:, None] - point, ones

    def covariances(point: FloatArray) -> tuple[FloatArray, FloatArray]:
        inside = np.clip(point[:, 0], 0.0, largest)
        sampling = inside * (largest - inside) / units * sampled
        return np.reshape(sampling, (blocks, 1, 1)), np.reshape(noise, (blocks, 1, 1))

    return Source(equations, covariances, draws, freedom)


def fraction_source(stated: Statements, target: Target) -> Source:
    """Return the pair fractions, the first of two items of the list before the second.

    Votes of the local model have the variance p (1 - p) / n of n exact answers, and what responses
    add to it: (s - g^2) / (4 g^2 n), with g the gain and s the mean square of a vote
    (:attr:`privrank.consensus.statements.PairVotes.largest_variance` less that of exact answers).
    """
    assert stated.fractions is not None
    pairs = np.triu_indices(len(stated.fractions), 1)
    values, infinite = stated.fractions[pairs], np.full(len(pairs[0]), np.inf)
    if isinstance(stated, RandomReports):
        votes = stated.pairs
        assert votes is not None
        counts = votes.counts[pairs]
        units = np.where(counts > 0, counts, 1.0)
        noise = (votes.square - votes.gain**2) / (4.0 * votes.gain**2 * units)
        noise = np.where(counts > 0, noise, _UNKNOWN)
        return _means(np.nan_to_num(values, nan=0.5), 1.0, units, True, noise, None, infinite)
    noise = np.full(len(values), stated.noise_sd**2)
    return _means(
        values, 1.0, stated.units, target == "population", noise, _draws(stated.noise, 1), infinite
    )


def score_source(stated: Statements, target: Target) -> Source:
    """Return the Borda scores.

    Those of reports have the variance that these show, by sampling and response together, with the
    degrees of freedom of the reports.
    """
    m = len(stated.scores)
    if isinstance(stated, RandomReports):
        ones, none = np.ones((m, 1, 1)), np.zeros((m, 1, 1))
        shown = np.reshape(np.diag(stated.covariance), (m, 1, 1))
        freedom = np.maximum(np.diag(stated.concerned) - 1.0, 1.0)
        return Source(
            lambda point: (stated.scores[:, None] - point, ones),
            lambda point: (shown, none),
            None,
            freedom,
        )
    summed = 1 if stated.fractions is None else m - 1
    return _means(
        stated.scores,
        m - 1.0,
        stated.units,
        target == "population",
        stated.score_errors("sample") ** 2,
        _draws(_shape(stated.noise), summed),
        np.full(m, np.inf),
    )


def _shape(noise: BordaDistribution) -> BordaDistribution:
    """Return a distribution of this shape, the same for K-norm noise of Borda totals of any size.

    Draws of it take seconds where items are many, and all sites can share them.
    """
    if isinstance(noise, PermutohedronNoise):
        return PermutohedronNoise(noise.items, 2.0**-10, 1)
    return noise


@lru_cache(maxsize=16)
def _draws(noise: BordaDistribution, summed: int) -> FloatArray:
    """Return public draws of the noise of one number, the sum of so many, whatever their scale."""
    generator = public_generator("pooled votes", summed)
    if isinstance(noise, PermutohedronNoise):
        return own(simulated(noise, (_DRAWS, noise.items), generator)[:, :1], np.float64)
    drawn = simulated(noise, (_DRAWS, summed), generator)
    return own(drawn.sum(axis=1, keepdims=True), np.float64)
