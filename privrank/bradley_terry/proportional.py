"""Comparisons per pair from those of each item, if opponents are matched at random. Sees no data.

**Model.** Given how often each item was compared, E n_ij = x_i x_j, one weight for each item. So it
is where pairs are drawn at random, whatever the popularity of items, and where answers to a fixed
questionnaire are missing at random. It is not where like meets like.

Wins W and losses L of each item are released. Their sums a = W + L show the weights as far as they
stand out from their noise: items of which they do not are not identified.
"""

from __future__ import annotations

import numpy as np

from privrank.release.names import SIDES
from privrank.release.plan import equivalent_variance
from privrank.release.release import Release
from privrank.release.survey import PairCounts
from privrank.util.arrays import FloatArray, IntArray, own

MOST_ERROR = 0.1
"""Standard error of the noise of an item's comparisons, over these, up to which it is identified.

With more the worths are stretched, and no longer in proportion to the noise."""

_LARGEST = 0.99
"""Largest number of an item's comparisons, over those of all others, that is fitted."""

_STEPS, _CLOSE = 10_000, 1e-13


def item_weights(counts: FloatArray) -> FloatArray:
    """Return the x with x_i times the sum of all other x equal to `counts`.

    By iterative proportional fitting of a symmetric table. Each of the positive counts has to be
    less than the sum of the others.
    """
    x = counts / np.sqrt(counts.sum())
    for _ in range(_STEPS):
        before, x = x, np.sqrt(x * counts / (x.sum() - x))
        if np.abs(x / before - 1.0).max() < _CLOSE:
            break
    return np.asarray(x)


def _sides(release: Release) -> tuple[FloatArray, FloatArray]:
    """Return released wins of the items, and their losses with a minus sign."""
    part = release.parts[SIDES]
    won, lost = part.step * part.values.astype(np.float64).reshape(2, -1)
    return won, lost


def matched_counts(release: Release) -> tuple[PairCounts, IntArray | None]:
    """Return the comparisons per pair, and the part of each item; None where all are in one.

    Items whose comparisons do not stand out from their noise are in parts of their own. So are all
    where one item is in nearly all comparisons, as then its weight has no end.
    """
    part, (won, lost) = release.parts[SIDES], _sides(release)
    m = len(won)
    assert part.distribution is not None
    error = part.step * np.sqrt(2.0 * equivalent_variance(part.distribution, 2 * m))
    counts = np.maximum(won - lost, 1.0)
    rough, largest = error > MOST_ERROR * counts, int(np.argmax(counts))
    most = _LARGEST * (counts.sum() - counts[largest])
    if counts[largest] > most:
        counts[largest], rough = most, np.ones(m, dtype=bool)
    x, (first, second) = item_weights(counts), np.triu_indices(m, 1)
    pairs = PairCounts(first, second, x[first] * x[second], "proportional")
    if not rough.any():
        return pairs, None
    # each rough item by itself, the others together
    alone = np.where(rough, np.arange(m), int(np.argmin(rough)))
    return pairs, own(np.unique(alone, return_inverse=True)[1], np.int64)


def halves(release: Release) -> IntArray:
    """Return 1 for the items of the better half by released win rates, -1 for those of the other.

    And 0 for the one in the middle of an odd number.
    """
    won, lost = _sides(release)
    order = np.argsort(-(won + lost) / np.maximum(won - lost, 1.0), kind="stable")
    side = np.zeros(len(won), dtype=np.int64)
    side[order[: len(order) // 2]], side[order[(len(order) + 1) // 2 :]] = 1, -1
    return side
