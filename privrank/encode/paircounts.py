"""What the public may know of the comparisons per pair: observed, declared, equal or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_complex_dtype, is_numeric_dtype

from privrank.encode import counting
from privrank.release.survey import Design, PairCounts
from privrank.util.checks import check_choice

__all__ = ["PairCountChoice", "public_pairs"]

IntArray = NDArray[np.int64]

PairCountChoice = Literal["release", "equal"]

MOST_ITEMS_COMPLETE = 3000
"""Beyond this a table of all pairs is too large to assume or to release."""


LEAST_COUNT, MOST_COUNT = 1e-6, 1e15
"""Declared comparisons of a pair, which may be expected ones."""


def public_pairs(
    facts: Design,
    pairs: tuple[IntArray, IntArray, IntArray, IntArray],
    pair_counts: object,
    labels: tuple[Any, ...],
) -> PairCounts | None:
    """Return what the public may know of the comparisons per pair; None: to be released.

    The observed `pairs` are read under a public design only; under a private one every number
    comes from the caller's declarations.
    """
    if facts.kind == "public":
        if pair_counts is not None:
            raise ValueError(
                "pair_counts must be left out when design='public': the observed counts are "
                "public then."
            )
        met = pairs[2] > 0
        return PairCounts(pairs[0][met], pairs[1][met], pairs[2][met], "observed")
    m = len(labels)
    if pair_counts is None or isinstance(pair_counts, str):
        choice = "release" if pair_counts is None else pair_counts
        check_choice("pair_counts", choice, PairCountChoice)
        if m > MOST_ITEMS_COMPLETE:
            raise ValueError(
                f"pair_counts must be declared as a table for more than {MOST_ITEMS_COMPLETE} "
                f"items under a private design: a complete table of pairs would be too large."
            )
        if choice == "release":
            return None
        return PairCounts.equal(m, facts.nobs * facts.reach.effective_rows / facts.reach.pairs)
    return _declared_pairs(pair_counts, labels)


def _declared_pairs(table: object, labels: tuple[Any, ...]) -> PairCounts:
    """Read a declared table of comparisons per pair: a mapping or a frame item1, item2, count."""
    rule = (
        "pair_counts must be 'release', 'equal', a mapping {(item, item): count} or a data frame "
        "with columns item1, item2, count over the declared items, each pair once, counts positive"
    )
    if isinstance(table, Mapping):
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in table):
            raise ValueError(f"{rule}.")
        table = pd.DataFrame(
            [(*pair, count) for pair, count in table.items()], columns=["item1", "item2", "count"]
        )
    if not isinstance(table, pd.DataFrame) or not {"item1", "item2", "count"} <= set(table.columns):
        raise ValueError(f"{rule}.")
    names = list(table.columns)
    if any(names.count(name) > 1 for name in ("item1", "item2", "count")):
        raise ValueError(f"{rule}.")
    index = pd.Index(labels)
    first, second = (index.get_indexer(pd.Index(table[name])) for name in ("item1", "item2"))
    numbers = counting.to_numbers(table["count"])
    if not is_numeric_dtype(numbers) or is_complex_dtype(numbers):
        raise ValueError(f"{rule}.")
    count = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    low, high = np.minimum(first, second), np.maximum(first, second)
    cells = low * len(labels) + high
    if not (
        len(count)
        and (low >= 0).all()
        and (low < high).all()
        and (count >= LEAST_COUNT).all()
        and (count <= MOST_COUNT).all()
        and len(np.unique(cells)) == len(cells)
    ):
        raise ValueError(f"{rule}.")
    order = np.argsort(cells)
    return PairCounts(low[order], high[order], count[order], "declared")
