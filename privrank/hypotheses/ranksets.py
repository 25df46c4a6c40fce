"""Simultaneous confidence sets of ranks, by Holm's step-down."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privrank.util.arrays import FloatArray, IntArray


def rank_sets(
    values: FloatArray,
    identified: NDArray[np.bool_],
    certain: Callable[[int], NDArray[np.bool_]],
) -> tuple[IntArray, IntArray]:
    """Return the lowest and highest rank of each item, for all items at once.

    Parameters
    ----------
    values : ndarray, shape (m,)
        Estimates, the largest that of the best item.
    identified : ndarray of bool, shape (m, m)
        Which differences are identified; ranks are those among an item and all that it has one
        with.
    certain : callable
        Which differences, shape (m, m), are certain if so many hypotheses may be true: those of
        two-sided p-values of at most 2 alpha over that number.

    Notes
    -----
    **Statistic.** For each ordered pair of items i and j whose difference is identified the
    hypothesis is theta_i <= theta_j, M in all. Holm's step-down rejects, with R rejected so far,
    those of one-sided p-values of at most alpha / (M - R), until there are no more. The tests are
    symmetric: in the direction of the estimate a one-sided p-value is half the two-sided one, in
    the other it is 1/2 or more. The set of an item is 1 plus the number of items surely better, to
    the number of all less those surely worse.

    *No false direction.* Of M_0 true hypotheses none has a p-value of at most alpha / M_0, with a
    probability of 1 - alpha or more (Bonferroni), whatever the dependence. Then none is rejected.
    Those rejected before the first such one would be false, so R <= M - M_0, and its p-value would
    be at most alpha / (M - R) <= alpha / M_0.

    *Then all sets hold.* Who is surely better is better, so that the lower end is at most 1 plus
    the number of better items, and likewise the upper end. Of tied items both hypotheses are true,
    and counted: neither is surely better, and their sets contain all ranks that they share.

    *Without p-values* a threshold will do at which no true hypothesis is certain with a probability
    of 1 - alpha if one order of so many pairs is false, and which falls with that number.

    The first step is Bonferroni's, of two-sided tests of all differences at alpha over their
    number. Later ones only reject more, so that sets are subsets of its sets.

    References
    ----------
    Holm (1979), https://www.jstor.org/stable/4615733. For ranks Mogstad, Romano, Shaikh and Wilhelm
    (2024), https://doi.org/10.1093/restud/rdad006.
    """
    hypotheses = int(identified.sum())
    ahead = identified & (values > values[:, None])
    better, rejected = np.zeros_like(ahead), -1
    # step-down (Holm): what is rejected no longer counts as a hypothesis, so the level of the
    # others rises, until a round rejects nothing more
    while better.sum() > rejected:
        rejected = int(better.sum())
        better |= ahead & certain(max(hypotheses - rejected, 1))
    low = 1 + better.sum(axis=1)
    high = 1 + identified.sum(axis=1) - better.sum(axis=0)
    return low.astype(np.int64), high.astype(np.int64)
