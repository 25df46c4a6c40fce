"""Concordance: null distributions by enumeration and by convolution, all neighbours."""

import math
import pickle
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from privrank.distributions import kendall
from privrank.hypotheses.nulls import FULL, public_generator, uniform_rankings
from privrank.plans.samples import two_rankings_tolerance
from privrank.published.bfz21 import central_distance, two_rankings


def orders(m):
    return [np.array(order, dtype=np.int64) for order in permutations(range(1, m + 1))]


def data_sets(n, m):
    return (np.array(rows) for rows in product(orders(m), repeat=n))


CASES = [(two_rankings(m), 2, m) for m in (2, 3, 4)] + [
    (central_distance(n, m), n, m) for n, m in ((2, 2), (3, 2), (2, 3), (3, 3), (4, 3), (2, 4))
]


@pytest.mark.parametrize(("statistic", "n", "m"), CASES)
def test_null_is_the_distribution_over_all_data_sets(statistic, n, m):
    found = Counter(statistic.value(ranks, tuple(range(m))) for ranks in data_sets(n, m))
    null = statistic.null(FULL)
    drawn = dict(zip(null.values.tolist(), null.weights, strict=True))
    assert drawn.keys() <= found.keys()
    for value, count in found.items():
        p = count / math.factorial(m) ** n
        assert drawn.get(value, 0.0) == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / FULL))


@pytest.mark.parametrize(("statistic", "n", "m"), CASES)
def test_sensitivity_is_attained_and_never_exceeded(statistic, n, m):
    order, largest = tuple(range(m)), 0
    for ranks in data_sets(n, m):
        here = statistic.value(ranks, order)
        for row in orders(m):
            other = ranks.copy()
            other[0] = row
            largest = max(largest, abs(statistic.value(other, order) - here))
    assert largest == statistic.sensitivity


@pytest.mark.parametrize("m", [1000, 10_000])
def test_sensitivity_is_attained_on_coarse_lattices(m):
    equal = np.tile(np.arange(1, m + 1), (2, 1))
    other = equal.copy()
    other[0] = other[0, ::-1]
    for statistic in (two_rankings(m), central_distance(2, m)):
        gap = statistic.value(equal, tuple(range(m))) - statistic.value(other, tuple(range(m)))
        assert statistic.sensitivity - 1 <= gap <= statistic.sensitivity


def test_a_floor_moves_by_at_most_the_quotient_rounded_up():
    for cell, a, change in product(range(1, 6), range(12), range(12)):
        assert abs((a + change) // cell - a // cell) <= -(-change // cell)


@pytest.mark.parametrize("m", [400, 10_000])
def test_distribution_agrees_with_the_distribution_function(m):
    statistic = two_rankings(m)
    null, cell = statistic.null(1_999), int(statistic.step)
    cumulated = np.cumsum(null.weights)
    picked = np.linspace(0, len(cumulated) - 1, 40).astype(int)
    ends = (null.values[picked] + 1) * cell - 1
    expected = kendall.distribution(m, 0.0, ends.astype(float))
    assert cumulated[picked] == pytest.approx(expected, abs=1.95 / math.sqrt(1_999))  # Kolmogorov


@pytest.mark.parametrize(("n", "m"), [(2, 7), (50, 10), (31, 30)])
def test_null_agrees_with_simulation(n, m):
    rng = public_generator("a test of concordance", n, m)
    statistic, order = central_distance(n, m), tuple(range(m))
    drawn = [statistic.value(uniform_rankings(rng, n, m), order) for _ in range(2000)]
    null = statistic.null(FULL)
    mean = null.values @ null.weights
    deviation = math.sqrt((null.values - mean) ** 2 @ null.weights)
    assert np.mean(drawn) == pytest.approx(mean, abs=5 * deviation / math.sqrt(2000))
    tail = null.weights[null.values >= mean + 1.5 * deviation].sum()
    share = np.mean(np.array(drawn) >= mean + 1.5 * deviation)
    assert share == pytest.approx(tail, abs=5 * math.sqrt(tail / 2000))


@pytest.mark.parametrize(("n", "m"), [(1000, 300), (2, 10_000), (10**6, 10), (3, 10_000)])
def test_large_nulls_have_the_known_variance(n, m):
    statistic = central_distance(n, m)
    null, cell = statistic.null(640), statistic.step / 2
    middle = (null.values + 0.5) * cell
    assert middle**2 @ null.weights == pytest.approx(n * kendall.variance(m, 0.0), rel=0.25)


def test_tolerance_at_which_two_rankings_are_proved_enough():
    assert two_rankings_tolerance(46, 0.05) is None
    assert 0.99 < two_rankings_tolerance(47, 0.05) <= 1
    assert two_rankings_tolerance(10_000, 0.05) > 1 - 1e-12
    # the condition is met at that model and not closer to uniform
    m, alpha = 60, 0.05
    phi = 1 - 8 / (m + 7 - math.sqrt(12 * m * math.log(2 / alpha)))
    expected = kendall.total_variation(m, -math.log(phi), 0.0)
    assert two_rankings_tolerance(m, alpha) == pytest.approx(expected, abs=1e-13)


def test_statistics_can_be_pickled():
    for statistic in (two_rankings(5), central_distance(3, 5)):
        assert pickle.loads(pickle.dumps(statistic)).sensitivity == statistic.sensitivity
