"""Planning a survey: power, sample size, epsilon and effect size, from public numbers.

The interface follows ``statsmodels.stats.power``. An object defines the fixed part of a design. Its
method `power` computes the power, `solve_power` finds the argument that is omitted, and
`plot_power` plots either.
"""

from privrank.power.base import Estimate
from privrank.power.comparisons import BTLPower, TopKPower
from privrank.power.consensus import AggregationPower
from privrank.power.questionnaires import balanced_plan
from privrank.power.testing import ClosenessPower, IdentityPower, UniformityPower

__all__ = [
    "AggregationPower",
    "BTLPower",
    "ClosenessPower",
    "Estimate",
    "IdentityPower",
    "TopKPower",
    "UniformityPower",
    "balanced_plan",
]
