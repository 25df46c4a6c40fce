"""Planning a survey: power, the number of respondents, epsilon and effects, from public numbers.

In the idiom of ``statsmodels.stats.power``: an object holds what is fixed in a design, its `power`
predicts, its `solve_power` finds the one number that is left out, and its `plot_power` draws.
"""

from privrank.power.base import Estimate
from privrank.power.comparisons import BTLPower, TopKPower
from privrank.power.consensus import AggregationPower
from privrank.power.testing import ClosenessPower, IdentityPower, UniformityPower

__all__ = [
    "AggregationPower",
    "BTLPower",
    "ClosenessPower",
    "Estimate",
    "IdentityPower",
    "TopKPower",
    "UniformityPower",
]
