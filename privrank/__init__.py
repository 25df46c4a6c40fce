"""Rankings and paired comparisons under differential privacy, in the statsmodels idiom.

Names are loaded on first use, which keeps ``import privrank`` fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from privrank import datasets as datasets
    from privrank import local as local
    from privrank import power as power
    from privrank.aggregation import PrivateRankAggregation as PrivateRankAggregation
    from privrank.aggregation import kemeny_score as kemeny_score
    from privrank.aggregation import kendall_distance as kendall_distance
    from privrank.archive import from_json as from_json
    from privrank.btl import PrivateBTL as PrivateBTL
    from privrank.closeness import ClosenessTest as ClosenessTest
    from privrank.distributions import simulate as simulate
    from privrank.distributions.links import Link as Link
    from privrank.distributions.mallows import Mallows as Mallows
    from privrank.distributions.mallows import tolerance_to_phi as tolerance_to_phi
    from privrank.distributions.simulate import PlackettLuce as PlackettLuce
    from privrank.encode.choiceforms import as_choices as as_choices
    from privrank.encode.comparisonforms import as_comparisons as as_comparisons
    from privrank.encode.rankingforms import as_rankings as as_rankings
    from privrank.encode.rankingforms import read_preflib as read_preflib
    from privrank.identity import IdentityTest as IdentityTest
    from privrank.pooling import pool as pool
    from privrank.power.contributions import contribution_tradeoff as contribution_tradeoff
    from privrank.privacy.budget import BudgetExceeded as BudgetExceeded
    from privrank.release.release import FitError as FitError
    from privrank.release.release import Release as Release
    from privrank.reporting.document import report as report
    from privrank.results.aggregation import AggregationResult as AggregationResult
    from privrank.results.base import summary_col as summary_col
    from privrank.results.btl import BTLResult as BTLResult
    from privrank.results.closeness import ClosenessResult as ClosenessResult
    from privrank.results.ledger import Budget as Budget
    from privrank.results.pooled import PooledResult as PooledResult
    from privrank.results.ranktest import RankTestResult as RankTestResult
    from privrank.results.topk import TopKResult as TopKResult
    from privrank.topk import PrivateTopK as PrivateTopK
    from privrank.uniformity import UniformityTest as UniformityTest
    from privrank.util.checks import PrivrankWarning as PrivrankWarning

_HOME = {
    "AggregationResult": "privrank.results.aggregation",
    "BTLResult": "privrank.results.btl",
    "Budget": "privrank.results.ledger",
    "BudgetExceeded": "privrank.privacy.budget",
    "ClosenessResult": "privrank.results.closeness",
    "ClosenessTest": "privrank.closeness",
    "FitError": "privrank.release.release",
    "IdentityTest": "privrank.identity",
    "Link": "privrank.distributions.links",
    "Mallows": "privrank.distributions.mallows",
    "PlackettLuce": "privrank.distributions.simulate",
    "PooledResult": "privrank.results.pooled",
    "PrivateBTL": "privrank.btl",
    "PrivateRankAggregation": "privrank.aggregation",
    "PrivateTopK": "privrank.topk",
    "PrivrankWarning": "privrank.util.checks",
    "RankTestResult": "privrank.results.ranktest",
    "Release": "privrank.release.release",
    "TopKResult": "privrank.results.topk",
    "UniformityTest": "privrank.uniformity",
    "as_choices": "privrank.encode.choiceforms",
    "as_comparisons": "privrank.encode.comparisonforms",
    "contribution_tradeoff": "privrank.power.contributions",
    "as_rankings": "privrank.encode.rankingforms",
    "from_json": "privrank.archive",
    "kemeny_score": "privrank.aggregation",
    "kendall_distance": "privrank.aggregation",
    "pool": "privrank.pooling",
    "read_preflib": "privrank.encode.rankingforms",
    "report": "privrank.reporting.document",
    "summary_col": "privrank.results.base",
    "tolerance_to_phi": "privrank.distributions.mallows",
}

_MODULES = {
    "datasets": "privrank.datasets",
    "local": "privrank.local",
    "power": "privrank.power",
    "simulate": "privrank.distributions.simulate",
}

__all__ = [*sorted(_HOME), *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'privrank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
