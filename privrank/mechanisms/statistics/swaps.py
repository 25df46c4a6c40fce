"""Samples of the same respondents: re-labellings that swap what a respondent said in the two.

**Null.** If the two answers of a respondent are exchangeable, so are the observed tables and those
in which the answers of each respondent are swapped or not, by independent fair coins. Every
statistic of two samples is a statistic of such tables.

**Privacy.** The unit is a respondent with both answers, one in each sample. Replacing a respondent
replaces one unit of sample 1 and one of sample 2, at every pattern of swaps: whichever way the coin
fell, one of the new answers is in each. So a statistic that one replaced unit moves by at most
Delta, whatever table it is of, moves by at most 2 Delta; the total variation distance of n pairs by
2 / n, a kernel distance by 2 diam / n. Both are attained: all others differ as much as can be in
one direction, and the respondent turns round. The coins are drawn without looking at the data, so
the smoothed p-value is as private as that of other permutation tests
(:mod:`privrank.mechanisms.smoothing`), and like those they stay secret.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privrank.privacy.noise import draw_one_each

__all__ = ["PAIR_FACTOR", "swapped"]

IntArray = NDArray[np.int64]
TableArray = NDArray[np.int32]

PAIR_FACTOR = 2
"""Sensitivity of a statistic of pairs, over that of the same statistic of separate units."""

_CELLS = 2**22
"""Coins that are tossed at a time."""


def swapped(
    pairs: IntArray, kinds: int, patterns: int, rng: np.random.Generator | None
) -> TableArray:
    """Return tables of counts after random swaps within the pairs.

    Parameters
    ----------
    pairs : ndarray of int64, shape (2, n)
        The kind of each respondent's answer in the first and in the second sample.
    kinds : int
        Number of kinds.
    patterns : int
        Number of tables.
    rng : numpy.random.Generator or None
        None takes the coins from the operating system.

    Returns
    -------
    ndarray of int32, shape (patterns, 2, kinds)
        Independent tables.
    """
    n = pairs.shape[1]
    batch = max(1, _CELLS // n)
    found = np.empty((patterns, 2, kinds), dtype=np.int32)
    for start in range(0, patterns, batch):
        number = min(batch, patterns - start)
        coins = draw_one_each(np.full(number * n, 2), rng).reshape(number, n)
        offset = 2 * kinds * np.arange(number)[:, None]
        cells = [pairs[side] + offset + kinds * (coins ^ side) for side in (0, 1)]
        counted = np.bincount(np.concatenate(cells).ravel(), minlength=2 * kinds * number)
        found[start : start + number] = counted.reshape(number, 2, kinds)
    return found
