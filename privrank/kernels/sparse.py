"""Sums over sparse rows."""

from __future__ import annotations

import numpy as np

from privrank.kernels import compiled
from privrank.util.arrays import IntArray


@compiled
def sum_of_products(ends: IntArray, column: IntArray, a: IntArray, b: IntArray, m: int) -> IntArray:
    """Return the sum over rows of the products of the entries of two, shape (m, m).

    Given where the first row begins and each ends, the columns of the entries, and these.
    """
    out = np.zeros((m, m), dtype=np.int64)
    for row in range(len(ends) - 1):
        for i in range(ends[row], ends[row + 1]):
            for j in range(ends[row], ends[row + 1]):
                out[column[i], column[j]] += a[i] * b[j]
    return out
