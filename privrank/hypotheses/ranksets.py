"""Ranks of estimates, rank confidence sets by Holm's step-down method, and dominant sets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privrank.util.arrays import FloatArray, IntArray

TIED = 1e-8
"""Estimates whose difference is at most this share of their range are equal."""


def shared_ranks(values: FloatArray) -> IntArray:
    """Return ranks, 1 for the largest estimate; ties share the best rank (1, 1, 3).

    Two estimates differ if their difference exceeds 1e-8 times their range, or times 1 if the range
    is smaller. The numerical error of solvers and sums is below this tolerance.
    """
    ahead = values > values[:, None] + TIED * max(1.0, float(np.ptp(values)))
    return np.asarray(1 + ahead.sum(axis=1))


def rank_sets(
    values: FloatArray,
    identified: NDArray[np.bool_],
    certain: Callable[[int], NDArray[np.bool_]],
) -> tuple[IntArray, IntArray]:
    """Return the lowest and highest rank of each item, with simultaneous coverage.

    Parameters
    ----------
    values : ndarray, shape (m,)
        Estimates; the best item has the largest.
    identified : ndarray of bool, shape (m, m)
        Which differences are identified. Ranks are relative to the items whose difference from an
        item is identified.
    certain : callable
        Maps a number of hypotheses that may be true to the significant differences, shape (m, m):
        those with a two-sided p-value of at most 2 alpha over that number.

    Notes
    -----
    **Statistic.** For each ordered pair of items i and j with an identified difference, the
    hypothesis is theta_i <= theta_j. There are M hypotheses. After R rejections, Holm's step-down
    rejects those with a one-sided p-value of at most alpha / (M - R), until it rejects no more. The
    tests are symmetric: in the direction of the estimate the one-sided p-value is half the
    two-sided one, and in the other direction it is at least 1/2. The set of an item ranges from 1
    plus the number of items significantly better than it to the number of all items minus the
    number significantly worse.

    *No false direction.* Let M_0 hypotheses be true. With probability at least 1 - alpha, none of
    them has a p-value of at most alpha / M_0 (Bonferroni), under any dependence. In that case none
    is rejected. Suppose that one were rejected: the hypotheses rejected before the first one would
    all be false, so R <= M - M_0, and the p-value of the first one would be at most
    alpha / (M - R) <= alpha / M_0.

    *Simultaneous coverage.* Without a false direction, every item that is significantly better is
    better. The lower end is therefore at most 1 plus the number of better items, and similarly for
    the upper end. For tied items both hypotheses are true and are counted in M_0: neither item is
    significantly better, and both sets contain all ranks that the items share.

    *Without p-values* a threshold that depends on a number of pairs suffices, on two conditions. If
    one order of each of that many pairs is false, no true hypothesis is significant, with
    probability at least 1 - alpha. The threshold does not decrease as that number increases.

    The first step is Bonferroni's method for two-sided tests of all differences, at alpha over
    their number. Later steps only reject more, so the sets are subsets of Bonferroni's sets.

    References
    ----------
    Holm (1979), https://www.jstor.org/stable/4615733. For ranks Mogstad, Romano, Shaikh and Wilhelm
    (2024), https://doi.org/10.1093/restud/rdad006.
    """
    hypotheses = int(identified.sum())
    ahead = identified & (values > values[:, None])
    better = np.zeros_like(ahead)
    rejected = -1
    # Holm's step-down: rejected hypotheses no longer count, so the level of the others rises, until
    # a round rejects no more
    while better.sum() > rejected:
        rejected = int(better.sum())
        better |= ahead & certain(max(hypotheses - rejected, 1))
    low = 1 + better.sum(axis=1)
    high = 1 + identified.sum(axis=1) - better.sum(axis=0)
    return low.astype(np.int64), high.astype(np.int64)


def dominant_set(better: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the smallest non-empty set whose items are all better than all items outside.

    Parameters
    ----------
    better : ndarray of bool, shape (m, m)
        Whether the row is better than the column; never both ways, and not for every pair.

    Returns
    -------
    ndarray of bool, shape (m,)
        Whether an item is in the set.

    Notes
    -----
    **Statistic.** A set is closed if each of its items is better than each item outside. One of two
    closed sets contains the other: if not, an item of the first alone would be better than an item
    of the second alone, and vice versa. So there is a smallest closed set. Let it have s items.
    Each of them is better than at least m - s items, and no item outside is better than so many.
    Hence an item that is better than the most items is in the set. Every item to which some member
    is not superior must be in the set as well, and adding all these items gives a closed set.

    *Confidence set.* Let `better` contain orders of majorities that are all true, with probability
    1 - alpha. The set is closed under these orders, and therefore under all true majorities, which
    include them. The Smith set is the smallest closed set of the true majorities, so it is a subset
    of this set. No smaller set is sufficient: if all other pairs are tied, the two sets are equal.

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
    # no item is better than itself, so members stay in the set
    while (larger := np.asarray(~better[member].all(axis=0))).sum() > member.sum():
        member = larger
    return member
