"""The sensitive counts of paired comparisons, read from an encoded data set.

Exact integers, or their whole-number multiples; nothing here may leave the mechanisms that add
noise to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.linear import blocks
from privrank.encode.encoded import Encoded
from privrank.release.covariates import Covariates
from privrank.release.names import GROUP_ANSWERS, MOMENTS, NET, ORDER_EFFECT, PAIR_COUNTS
from privrank.release.survey import PairCounts

__all__ = ["met", "net_wins", "second_moments", "statistic", "units", "wins_met"]

IntArray = NDArray[np.int64]

_DENSE = 0.02
"""Share of pairs that respondents answer from which products of dense matrices are faster."""


def met(encoded: Encoded) -> PairCounts:
    """Return the comparisons per pair; sensitive under a private design."""
    first, second, count, _ = encoded._pairs
    seen = count > 0
    return PairCounts(first[seen], second[seen], count[seen], "observed")


def units(encoded: Encoded) -> IntArray:
    """Return the units per pattern of covariates; sensitive under a private design."""
    if encoded._units is None:
        raise ValueError("units per pattern need covariates: name them in the formula.")
    return encoded._units


def net_wins(encoded: Encoded) -> IntArray:
    """Return wins minus losses per item, or per row of covariates and item; sensitive."""
    first, second, _, net = encoded._pairs
    design = encoded.design
    m = len(design.items) * (1 if design.covariates is None else design.covariates.patterns)
    total = np.bincount(first, net, minlength=m) - np.bincount(second, net, minlength=m)
    whole = total.astype(np.int64)
    if design.covariates is None:
        return whole
    return (design.covariates.basis.T @ whole.reshape(-1, len(design.items))).ravel()


def _won_by_first(encoded: Encoded) -> IntArray:
    """Return wins minus losses of the item that is named first."""
    first, _, _, net = encoded._pairs
    design = encoded.design
    if design.covariates is None:
        raise ValueError("an order effect must be named in the formula.")
    return np.array([design.covariates.first[first // len(design.items)] @ net])


def _by_cell(facts: Covariates | None, pattern: IntArray, count: IntArray) -> IntArray:
    """Return the comparisons of each group, given those of patterns of covariates."""
    if facts is None:
        raise ValueError("answers of groups need covariates: name them in the formula.")
    return np.bincount(facts.cell[pattern], count, minlength=facts.cells).astype(np.int64)


def wins_met(encoded: Encoded) -> IntArray:
    """Return wins plus ties' halves, doubled, of the first and the second item of each pair met.

    Shape (2, edges), pairs as in :func:`met`; sensitive.
    """
    _, _, count, net = encoded._pairs
    seen = count > 0
    return np.stack((count[seen] + net[seen], count[seen] - net[seen]))


def statistic(encoded: Encoded, name: str) -> IntArray:
    """Return the exact integer statistic of a part; sensitive."""
    design = encoded.design
    m = len(design.items)
    if name == NET:
        return net_wins(encoded)
    if name == ORDER_EFFECT:
        return _won_by_first(encoded)
    first, second, count, net = encoded._pairs
    if name == GROUP_ANSWERS:
        return _by_cell(design.covariates, first // m, count)
    first, second = first % m, second % m  # whatever the covariates are
    # position of pair (i, j), i < j, among all pairs in lexicographic order
    place = first * (2 * m - first - 1) // 2 + second - first - 1
    pairs = m * (m - 1) // 2
    if name == PAIR_COUNTS:
        return np.bincount(place, count, minlength=pairs).astype(np.int64)
    cells = np.zeros((2, pairs), dtype=np.int64)
    cells[0, place], cells[1, place] = count + net, count - net
    return (cells if design.ties else cells // 2).ravel()


def second_moments(encoded: Encoded) -> dict[str, IntArray]:
    """Return the non-private second moments over respondents of answers and counts by pair.

    With covariates, one block of pairs for each combination of their values, one after the other.
    """
    from scipy.sparse import csr_array

    if encoded._answers is None:
        raise ValueError("cluster-robust errors need respondents: name them with respondent=.")
    person, pair, count, net = encoded._answers
    seen = encoded._pairs[2] > 0
    shape = (int(person.max()) + 1, len(seen))
    answers = csr_array((net, (person, pair)), shape=shape)[:, seen]
    counts = csr_array((count, (person, pair)), shape=shape)[:, seen]

    def product(a: Any, b: Any) -> IntArray:
        if a.nnz < _DENSE * a.shape[0] * a.shape[1]:
            return np.asarray((a.T @ b).toarray().ravel())
        # exact: whole numbers far below 2^53
        dense = a.toarray().T.astype(float) @ b.toarray()
        return np.asarray(np.rint(dense).astype(np.int64).ravel())

    parts = blocks(encoded.design, met(encoded))
    return {
        name: np.concatenate([product(a[:, part], b[:, part]) for part in parts])
        for name, a, b in zip(
            MOMENTS, (answers, answers, counts), (answers, counts, counts), strict=True
        )
    }
