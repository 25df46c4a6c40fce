"""Kernel matrices of rankings, for the distance of two samples' mean features (MMD).

With tau Kendall's correlation of two rankings of m items, that is 1 - 4 d / (m (m - 1)) for d pairs
that they order differently:

- ``"kendall"``, the kernel tau itself, sees differences of the pairwise fractions and no others;
- ``"mallows"``, exp(tau - 1), sees every difference of two distributions: it is characteristic.

**Privacy.** The features of two rankings lie sqrt(k(x, x) + k(y, y) - 2 k(x, y)) apart. Both
kernels are 1 on the diagonal and least at reversed rankings, tau = -1: the diameter is 2 for
``"kendall"`` and sqrt(2 (1 - e^-2)) = 1.31504 for ``"mallows"``.

References
----------
Jiao and Vert (2018), https://doi.org/10.1109/TPAMI.2017.2719680; Mania, Ramdas, Wainwright,
Jordan and Recht (2018), https://arxiv.org/abs/1603.08035.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["DIAMETER", "RankKernel", "gram_blocks"]

IntArray = NDArray[np.int64]

FloatArray = NDArray[np.float64]

RankKernel = Literal["kendall", "mallows"]

DIAMETER: dict[RankKernel, float] = {
    "kendall": 2.0,
    "mallows": math.sqrt(-2.0 * math.expm1(-2.0)),
}
"""Largest distance of the features of two rankings."""

_ROWS = 256
"""Rows of a kernel matrix held at a time."""

_WORDS = 128
"""Words of pair orders compared at a time: those of some thousand rankings stay in the cache."""

_BITS = 2**33
"""Bits of pair orders held at a time; with more, distances are counted ranking by ranking."""


def gram_blocks(ranks: IntArray, kernel: RankKernel) -> Iterator[tuple[int, FloatArray]]:
    """Yield the upper part of a kernel matrix of rankings, some rows at a time.

    Parameters
    ----------
    ranks : ndarray of int64, shape (r, m)
        Rankings of at least two items, as ranks 1..m without ties.
    kernel : {"kendall", "mallows"}
        tau or exp(tau - 1), tau Kendall's correlation of two rankings.

    Yields
    ------
    (int, ndarray of float64)
        First row f of the block, and the entries of its rows in the columns f, ..., r - 1.
    """
    from privrank.kernels import rankings as kernels

    rows, m = ranks.shape
    pairs = m * (m - 1) // 2
    parts = []
    if rows * pairs <= _BITS:
        bits = kernels.packed_pairs(ranks)
        parts = [
            np.ascontiguousarray(part)
            for part in np.split(bits, range(_WORDS, bits.shape[1], _WORDS), axis=1)
        ]
    for first in range(0, rows, _ROWS):
        own = slice(first, first + _ROWS)
        if parts:
            discordant = kernels.differing_bits(parts[0][own], parts[0][first:])
            for part in parts[1:]:
                discordant += kernels.differing_bits(part[own], part[first:])
        else:
            discordant = np.array(
                [kernels.kendall_to_center(ranks[first:], row) for row in ranks[own]]
            )
        block = discordant * (-2.0 / pairs)  # tau - 1
        block = np.exp(block) if kernel == "mallows" else block + 1.0
        yield first, block
