"""Public randomness: what everybody can compute again from a seed and a counter.

Words are hashed counters in 64-bit integer arithmetic, so they are the same on every machine and
with every version of NumPy. No privacy rests on them: they decide what is asked, never what is
answered.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["permutation", "words"]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def _mixed(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the words after the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    for shift, factor in _ROUNDS:
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return word ^ (word >> np.uint64(31))


def words(seeds: NDArray[Any], start: NDArray[Any] | int, size: int) -> NDArray[np.uint64]:
    """Return words `start` to `start + size` of each seed's sequence, in a row per seed.

    The sequence of a seed is SplitMix64 begun at a state that is itself hashed, so that those of
    neighbouring seeds do not overlap.
    """
    state = _mixed((np.asarray(seeds, dtype=np.uint64) + np.uint64(1)) * _STEP)
    first = np.asarray(start, dtype=np.uint64)[..., None]
    steps = first + np.arange(1, size + 1, dtype=np.uint64)
    return _mixed(np.asarray(state[:, None] + steps * _STEP, dtype=np.uint64))


def permutation(seed: int, size: int) -> NDArray[np.int64]:
    """Return a public order of the numbers below `size`, that of so many words of the seed."""
    return np.argsort(words(np.array([seed]), 0, size)[0], kind="stable")
