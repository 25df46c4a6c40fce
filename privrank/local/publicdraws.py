"""Public randomness that anyone can compute again from a seed.

Words are hashed counters in 64-bit integer arithmetic. Directions are computed from them by integer
arithmetic, one square root and one division, which all machines round in the same way. So they are
the same on every machine and with every version of NumPy. Privacy does not depend on them: they
determine the questions, never the answers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCALE = 2**20
"""Length of a direction, whose coordinates are rounded to integers."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def _mixed(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    for shift, factor in _ROUNDS:
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return word ^ (word >> np.uint64(31))


def words(seeds: NDArray[Any], start: NDArray[Any] | int, size: int) -> NDArray[np.uint64]:
    """Return `size` words of each seed's sequence from `start`, one row per seed.

    The sequence of a seed is SplitMix64 with a hashed initial state, so the sequences of adjacent
    seeds do not overlap.
    """
    state = _mixed((np.asarray(seeds, dtype=np.uint64) + np.uint64(1)) * _STEP)
    steps = np.asarray(start, dtype=np.uint64)[..., None] + np.arange(1, size + 1, dtype=np.uint64)
    return _mixed(np.asarray(state[:, None] + steps * _STEP, dtype=np.uint64))


def permutation(seed: int, size: int, start: int = 0) -> NDArray[np.int64]:
    """Return a public permutation of 0 to `size` - 1 from `size` words of a seed."""
    return np.argsort(words(np.array([seed]), start, size)[0], kind="stable")


@cache
def _quantiles() -> NDArray[np.int16]:
    """Return 2^16 nonzero standard normal quantiles in odd multiples of 2^-12."""
    from statistics import NormalDist

    quantile = NormalDist().inv_cdf
    upper = [quantile(0.5 + (2 * place + 1) / 2**17) for place in range(2**15)]
    odd = 2 * np.floor(np.array(upper) * 2**11).astype(np.int16) + 1
    return np.concatenate([-odd[::-1], odd])


def directions(
    seeds: NDArray[Any], which: NDArray[Any] | int, dimension: int, *, centred: bool = False
) -> NDArray[np.int64]:
    """Return a uniform integer direction of length `SCALE` for each seed.

    Parameters
    ----------
    seeds : array of int
        One for each direction.
    which : array of int, or int
        The number of the direction among the directions of its seed.
    dimension : int
        Number of coordinates of a direction.
    centred : bool
        Whether coordinates sum to zero up to rounding; directions are uniform in that subspace.

    Notes
    -----
    **Statistic.** Independent standard normal coordinates have a uniform direction. Here they are
    quantiles at 2^16 equidistant probabilities, rounded to 2^-12; moments of the directions equal
    the moments of uniform directions within 0.001. Coordinates are exactly exchangeable and have
    exactly symmetric signs.
    """
    # four coordinates of 16 bits from each word
    length = -(-dimension // 4)
    start = np.asarray(which, dtype=np.uint64) * np.uint64(length)
    pieces = words(seeds, start, length).astype("<u8", copy=False).view("<u2")[:, :dimension]
    normal = _quantiles()[pieces].astype(np.int64)
    if centred:
        normal -= (normal.sum(axis=1) // dimension)[:, None]
    # all machines round the square root of an integer in the same way, and also the division
    norm = np.sqrt(np.maximum(1, (normal * normal).sum(axis=1)).astype(np.float64))
    return np.asarray(np.floor(normal * SCALE / norm[:, None] + 0.5), dtype=np.int64)
