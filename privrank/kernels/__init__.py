"""Compiled loops: arrays in, arrays out; no generators, no frames.

Imported only where a loop is about to run. Every function also runs uncompiled
(``NUMBA_DISABLE_JIT=1``) with the same results. Callers validate: ranks are int64, 1..m without
ties in every row.
"""

from privrank.kernels.rankings import (
    differing_bits,
    distance_pmf,
    insertion_ranks,
    inversion_scores,
    inversion_sums,
    kendall_distance,
    kendall_to_center,
    packed_pairs,
    pair_counts,
    shuffled_ranks,
    shuffles,
)
from privrank.kernels.search import (
    insertion_search,
    pivot_sort,
    subset_values,
    weight_against,
)

__all__ = [
    "differing_bits",
    "distance_pmf",
    "insertion_ranks",
    "insertion_search",
    "inversion_scores",
    "inversion_sums",
    "kendall_distance",
    "kendall_to_center",
    "packed_pairs",
    "pair_counts",
    "pivot_sort",
    "shuffled_ranks",
    "shuffles",
    "subset_values",
    "weight_against",
]
