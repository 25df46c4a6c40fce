"""Planning a survey: power, the number of respondents, epsilon and effects, from public numbers.

In the idiom of ``statsmodels.stats.power``: an object holds what is fixed in a design, its `power`
predicts, its `solve_power` finds the one number that is left out, and its `plot_power` draws. Names
are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privrank.power.base import Estimate as Estimate
    from privrank.power.comparisons import BTLPower as BTLPower
    from privrank.power.comparisons import TopKPower as TopKPower
    from privrank.power.consensus import AggregationPower as AggregationPower
    from privrank.power.testing import ClosenessPower as ClosenessPower
    from privrank.power.testing import IdentityPower as IdentityPower
    from privrank.power.testing import UniformityPower as UniformityPower

_HOME = {
    "AggregationPower": "privrank.power.consensus",
    "BTLPower": "privrank.power.comparisons",
    "ClosenessPower": "privrank.power.testing",
    "Estimate": "privrank.power.base",
    "IdentityPower": "privrank.power.testing",
    "TopKPower": "privrank.power.comparisons",
    "UniformityPower": "privrank.power.testing",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'privrank.power' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
