"""Parts of the omnibus of categories by themselves, as statistics."""

from privrank.hypotheses.nulls import Statistic
from privrank.mechanisms.categories import ALLOWANCE, GRID, ExpectedCounts


def kendall_norm(n, p):
    """Return how far the mean sign vector is from its null mean."""
    cells = ExpectedCounts(n, p)
    name, value = "Kendall norm from the null", cells.kendall_value
    null = cells.null(name, value)
    return Statistic(name, 2.0 / n / GRID, GRID + ALLOWANCE, value, null, (), None)


def cellwise_excess(n, p):
    """Return by how much the count of some category lies outside the range expected of it."""
    cells = ExpectedCounts(n, p)
    name, value = "largest deviation of a category", cells.cellwise_value
    return Statistic(name, 1.0 / GRID, GRID, value, cells.null(name, value), (), None)


def standardised_deviation(n, p):
    """Return the largest deviation of a category in units of its standard deviation."""
    cells = ExpectedCounts(n, p)
    name, value = "largest standardised deviation", cells.standardised_value
    return Statistic(name, 1.0 / GRID, GRID, value, cells.null(name, value), (), None)
