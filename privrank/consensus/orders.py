"""Consensus orders from a pair matrix: scores, Borda, Copeland, KwikSort and local search.

In a *pair matrix* P, P[i, j] is the weight of the rankings that place item i before item j: counts,
fractions, or any real matrix such as a noisy one. The diagonal is ignored. An *order* lists the
items 0..m-1, best first. Nothing here draws noise: on a released matrix all of it is
post-processing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "borda",
    "by_score",
    "copeland",
    "kemeny_score",
    "kwiksort",
    "local_search",
    "margins_of",
    "order_of",
    "pair_matrix",
    "pair_table",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def _real(pairs: NDArray[Any]) -> FloatArray:
    return np.ascontiguousarray(pairs, dtype=np.float64)


def margins_of(pairs: NDArray[Any]) -> FloatArray:
    """Return P - P': entry (i, j) is the net weight of i before j, the diagonal 0."""
    matrix = _real(pairs)
    return np.asarray(matrix - matrix.T)


def kemeny_score(order: IntArray, pairs: NDArray[Any]) -> float:
    """Return the total weight against an order: sum of P[j, i] over all i placed before j.

    For fractions of rankings this is their mean Kendall distance to the order.
    """
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    return float(np.einsum("ji,ji", _real(pairs), place[:, None] > place))


def borda(pairs: NDArray[Any]) -> FloatArray:
    """Return each item's net weight against all others, the centred Borda score times two."""
    return np.asarray(margins_of(pairs).sum(axis=1))


def copeland(pairs: NDArray[Any]) -> FloatArray:
    """Return each item's majority wins less its losses; a tie counts for neither."""
    return np.asarray(np.sign(margins_of(pairs)).sum(axis=1))


def order_of(scores: FloatArray) -> IntArray:
    """Return the items by falling score; equal scores keep the order of the items."""
    return np.argsort(-np.asarray(scores), kind="stable").astype(np.int64)


def kwiksort(pairs: NDArray[Any], pivots: IntArray) -> IntArray:
    """Return the order that KwikSort makes of a pair matrix.

    Each list of items is divided by its pivot, its member that comes first in the permutation
    `pivots`, into those that a majority places before it and the others, which follow it, ties
    included; both parts are sorted alike.

    Notes
    -----
    **Statistic.** With a uniform permutation this is KwikSort with an independent uniform pivot for
    each list: whichever members a list has, which were determined by pivots outside it, the order
    of the permutation among them is still uniform. On the pair counts of rankings the expected
    score is at most twice the smallest; for a matrix with noise, which may break the triangle
    inequality, the factor is 5 when the two weights of each pair add up to one.

    References
    ----------
    Ailon, Charikar and Newman (2008), https://doi.org/10.1145/1411509.1411513.
    """
    from privrank.kernels.search import pivot_sort

    return pivot_sort(_real(pairs), np.ascontiguousarray(pivots, dtype=np.int64))


def local_search(order: IntArray, pairs: NDArray[Any]) -> IntArray:
    """Return an order that no move of a single item improves, starting from `order`.

    Moves one item at a time to the place where the score is smallest, items in turn, until a
    whole round moves none.

    Notes
    -----
    **Numerics.** A move must gain more than `tolerance`, which is above twice the rounding of a
    sum of m margins. So every move lowers the exact score, no order comes twice, and the search
    ends.
    """
    from privrank.kernels.search import insertion_search

    margins = margins_of(pairs)
    m = len(margins)
    tolerance = 2.0**-50 * m * m * float(np.abs(margins).max(initial=0.0))
    return insertion_search(np.ascontiguousarray(order, dtype=np.int64), margins, tolerance)


def pair_matrix(upper: FloatArray) -> FloatArray:
    """Return the matrix of fractions with these entries i < j, in the order of the rows.

    Entries (j, i) are what is left of one, and the diagonal is 1/2.
    """
    table, rest = pair_table(upper), pair_table(1.0 - upper)
    return np.asarray(table + rest.T + np.diag(np.full(len(table), 0.5)))


def pair_table(upper: FloatArray | IntArray) -> FloatArray:
    """Return the matrix with these entries i < j, in the order of the rows, and 0 elsewhere."""
    m = (1 + round((1 + 8 * len(upper)) ** 0.5)) // 2
    table = np.zeros((m, m))
    table[np.triu_indices(m, 1)] = upper
    return table


def by_score(scores: FloatArray, tie_break: tuple[int, ...]) -> IntArray:
    """Return the items by falling score, equal ones as they stand in `tie_break`."""
    return np.lexsort((np.argsort(tie_break), -np.asarray(scores))).astype(np.int64)
