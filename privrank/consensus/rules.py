"""The rules that make an order of a pair matrix, by name."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privrank.consensus.bayes import eb_kemeny
from privrank.consensus.kemeny import KemenyOrder, kemeny
from privrank.consensus.orders import (
    borda,
    copeland,
    kemeny_score,
    kwiksort,
    local_search,
)

__all__ = ["Rule", "by_score", "consensus_of", "pair_matrix"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Rule = Literal["EB-Kemeny", "Kemeny", "Borda", "Copeland", "local search", "KwikSort"]

TIME_LIMIT = 10.0
"""Seconds of integer programming for a fit; after them the best order is taken, with its gap."""


def pair_matrix(upper: FloatArray) -> FloatArray:
    """Return the matrix of fractions with these entries i < j, in the order of the rows.

    Entries (j, i) are what is left of one, and the diagonal is 1/2.
    """
    m = (1 + round((1 + 8 * len(upper)) ** 0.5)) // 2
    matrix = np.full((m, m), 0.5)
    first, second = np.triu_indices(m, 1)
    matrix[first, second] = upper
    matrix[second, first] = 1.0 - upper
    return matrix


def by_score(scores: FloatArray, tie_break: tuple[int, ...]) -> IntArray:
    """Return the items by falling score, equal ones as they stand in `tie_break`."""
    return np.lexsort((np.argsort(tie_break), -np.asarray(scores))).astype(np.int64)


def consensus_of(
    rule: Rule, pairs: FloatArray, variance: float, tie_break: tuple[int, ...]
) -> KemenyOrder:
    """Return the order a rule makes of a matrix of fractions.

    Parameters
    ----------
    rule : str
        Name of the rule.
    pairs : ndarray, shape (m, m)
        Fractions, with noise or without.
    variance : float
        Of the noise in each fraction.
    tie_break : tuple of int
        A uniform permutation of the items: the pivots of KwikSort, the order of equal scores, and
        where local search starts.

    Returns
    -------
    KemenyOrder
        Of a rule that searches for no optimum, with the trivial bound: each pair at its smaller
        weight.
    """
    if rule == "EB-Kemeny":
        return eb_kemeny(pairs, variance, time_limit=TIME_LIMIT)[0]
    if rule == "Kemeny":
        return kemeny(pairs, time_limit=TIME_LIMIT)
    pivots = np.array(tie_break, dtype=np.int64)
    if rule == "KwikSort":
        order = kwiksort(pairs, pivots)
    elif rule == "local search":
        order = local_search(by_score(borda(pairs), tie_break), pairs)
    else:
        order = by_score(borda(pairs) if rule == "Borda" else copeland(pairs), tie_break)
    least = float(np.triu(np.minimum(pairs, pairs.T), 1).sum())
    return KemenyOrder(order, kemeny_score(order, pairs), least)
