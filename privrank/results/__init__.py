"""Frozen result classes: the release, numbers computed from it, tables and plots on demand."""

from privrank.bradley_terry.contrasts import HomogeneityResult
from privrank.results.aggregation import AggregationResult
from privrank.results.btl import BTLResult
from privrank.results.closeness import ClosenessResult
from privrank.results.columns import summary_col
from privrank.results.pooled import PooledResult
from privrank.results.ranktest import RankTestResult
from privrank.results.topk import TopKResult

__all__ = [
    "AggregationResult",
    "BTLResult",
    "ClosenessResult",
    "HomogeneityResult",
    "PooledResult",
    "RankTestResult",
    "TopKResult",
    "summary_col",
]
