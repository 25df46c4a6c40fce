"""Ranks of estimates, sets of ranks by Holm's step-down, and the items that may lead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privrank.util.arrays import FloatArray, IntArray

TIED = 1e-8
"""Estimates whose difference is at most this share of their range are equal."""


def shared_ranks(values: FloatArray) -> IntArray:
    """Return ranks, 1 for the largest estimate; equal ones share the best, as in 1, 1, 3.

    A difference counts if it is above 1e-8 of the range of the estimates, or of 1 if their range is
    smaller: solvers and sums leave less than that open.
    """
    ahead = values > values[:, None] + TIED * max(1.0, float(np.ptp(values)))
    return np.asarray(1 + ahead.sum(axis=1))


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
    better = np.zeros_like(ahead)
    rejected = -1
    # step-down (Holm): what is rejected no longer counts as a hypothesis, so the level of the
    # others rises, until a round rejects nothing more
    while better.sum() > rejected:
        rejected = int(better.sum())
        better |= ahead & certain(max(hypotheses - rejected, 1))
    low = 1 + better.sum(axis=1)
    high = 1 + identified.sum(axis=1) - better.sum(axis=0)
    return low.astype(np.int64), high.astype(np.int64)


def dominant_set(better: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the smallest set of items, not empty, of which each is better than all outside of it.

    Parameters
    ----------
    better : ndarray of bool, shape (m, m)
        Whether row is better than column; never both ways round, and not of every pair.

    Returns
    -------
    ndarray of bool, shape (m,)
        Whether an item is in it.

    Notes
    -----
    **Statistic.** Call a set closed if each of its items is better than each outside. Of two closed
    sets one is part of the other: an item of the first alone would be better than one of the second
    alone, and the other way round. So there is a smallest. Of its s items each is better than m - s
    others or more, and no item outside is better than so many. Hence an item that is better than as
    many as any is in it. Whoever is not worse than some member has to be in, too, and what comes of
    adding these is closed.

    *With confidence.* Let `better` be orders of majorities that are all true, with probability
    1 - alpha. The set is closed for these, and so for the true majorities, to which they belong.
    The Smith set is the smallest closed set of the true ones, and thus within it. No smaller set
    will do: where all other pairs are divided evenly, the two sets are equal.

    References
    ----------
    Smith (1973), https://doi.org/10.2307/1914033.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank.hypotheses.ranksets import dominant_set
    >>> better = np.zeros((3, 3), dtype=bool)
    >>> better[0, 2] = better[1, 2] = True
    >>> dominant_set(better).tolist()
    [True, True, False]
    """
    member: NDArray[np.bool_] = np.zeros(len(better), dtype=bool)
    member[better.sum(axis=1).argmax()] = True
    # no item is better than itself, so that members stay
    while (larger := np.asarray(~better[member].all(axis=0))).sum() > member.sum():
        member = larger
    return member
