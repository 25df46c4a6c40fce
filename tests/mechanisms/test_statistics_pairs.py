"""Random pairs of items: distributions and sensitivities enumerated, one-bit tests exactly."""

import math
import pickle
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import binom

from privrank.hypotheses.nulls import FULL
from privrank.mechanisms.ranknorms import pair_sums
from privrank.plans.samples import least_bias
from privrank.privacy.noise import DiscreteLaplace
from privrank.published.bfz21 import (
    bucket_bit,
    bucket_threshold,
    pair_squares,
    private_buckets,
    ramp_bit,
)

SMALL = [(2, 2), (2, 3), (3, 2), (3, 3), (4, 3), (2, 4)]


def orders(m):
    return [np.array(order, dtype=np.int64) for order in permutations(range(1, m + 1))]


def data_sets(n, m):
    return (np.array(rows) for rows in product(orders(m), repeat=n))


def ranks_with(sums, n):
    """Rankings of the pairs (0, 1), (2, 3), ... that have these pair counts."""
    rows = np.arange(n)[:, None] < (n + np.array(sums)) // 2
    ranks = np.empty((n, 2 * len(sums)), dtype=np.int64)
    places = 2 * np.arange(len(sums)) + 1
    ranks[:, 0::2] = np.where(rows, places, places + 1)
    ranks[:, 1::2] = np.where(rows, places + 1, places)
    return ranks


def ramp(n, m, epsilon, alpha, tolerance=None):
    """The test and its bias."""
    mu = least_bias(n, m, epsilon, alpha, tolerance)
    return ramp_bit(n, m, alpha, mu), mu


def loss(p, q):
    return max(abs(math.log(p / q)), abs(math.log((1 - p) / (1 - q))))


def exact(n, m):
    """The values of `pair_squares` and their probabilities, by plain convolution."""
    one = np.zeros(n * n + 1)
    np.add.at(one, (2 * np.arange(n + 1) - n) ** 2, binom.pmf(np.arange(n + 1), n, 0.5))
    distribution = np.ones(1)
    for _ in range(m // 2):
        distribution = np.convolve(distribution, one)
    squares = np.flatnonzero(distribution)
    return (squares - m // 2 * (n % 2)) // (8 if n % 2 else 4), distribution[squares]


@pytest.mark.parametrize(("n", "m"), SMALL)
def test_null_is_the_distribution_over_all_data_sets(n, m):
    statistic, order = pair_squares(n, m), tuple(reversed(range(m)))
    found = Counter(statistic.value(ranks, order) for ranks in data_sets(n, m))
    all_sets = {value: count / math.factorial(m) ** n for value, count in found.items()}
    assert dict(zip(*map(np.ndarray.tolist, exact(n, m)), strict=True)) == pytest.approx(all_sets)
    null = statistic.null(FULL)
    drawn = dict(zip(null.values.tolist(), null.weights, strict=True))
    assert drawn.keys() <= found.keys()
    for value, p in all_sets.items():
        assert drawn.get(value, 0.0) == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / FULL))


@pytest.mark.parametrize(("n", "m"), SMALL)
def test_sensitivity_is_attained_and_never_exceeded(n, m):
    statistic, order = pair_squares(n, m), tuple(range(m))
    value = {ranks.tobytes(): statistic.value(ranks, order) for ranks in data_sets(n, m)}
    largest = 0
    for ranks in data_sets(n, m):
        here = value[ranks.tobytes()]
        for row in orders(m):  # exchangeable: replacing the first ranking is enough
            other = ranks.copy()
            other[0] = row
            largest = max(largest, abs(value[other.tobytes()] - here))
    assert largest == statistic.sensitivity


@pytest.mark.parametrize(("n", "m"), [(2, 100), (7, 11), (100, 3), (1000, 1000)])
def test_sensitivity_is_attained_at_any_size(n, m):
    equal = np.tile(np.arange(1, m + 1), (n, 1))
    other = equal.copy()
    other[0] = other[0, ::-1]
    order = tuple(int(j) for j in np.random.default_rng(n).permutation(m))
    statistic = pair_squares(n, m)
    gap = statistic.value(equal, order) - statistic.value(other, order)
    assert gap == statistic.sensitivity


@pytest.mark.parametrize(("n", "m"), [(2, 1000), (1000, 3), (1000, 10), (999, 100), (1000, 1000)])
def test_null_has_the_known_moments(n, m):
    d, statistic = m // 2, pair_squares(n, m)
    null = statistic.null(FULL)
    squares = null.values * statistic.step + d * (n % 2)
    mean, variance = squares @ null.weights, 2 * d * n * (n - 1)
    assert mean == pytest.approx(n * d, abs=5 * math.sqrt(variance / FULL))
    assert (squares - mean) ** 2 @ null.weights == pytest.approx(variance, rel=0.2)


def test_a_million_rankings():
    drawn = pair_squares(10**6, 10).null(999)
    assert drawn.draws == 999
    assert drawn.values @ drawn.weights * 4 / 10**6 == pytest.approx(5, abs=0.5)


def test_pair_sums_are_counted_exactly():
    for sums in product(range(-9, 10, 2), repeat=2):
        assert pair_sums(ranks_with(sums, 9), (0, 1, 2, 3)).tolist() == list(sums)


def test_statistics_can_be_pickled():
    statistic = pair_squares(3, 3)
    assert pickle.loads(pickle.dumps(statistic)).sensitivity == statistic.sensitivity


# One-bit tests: all that they depend on is enumerated.


def reject_probabilities(test, n, m):
    """Reject probability of every vector of pair counts (up to order and sign)."""
    d, odd = divmod(m, 2)
    sums = range(-n, n + 1, 2)
    order = tuple(range(m))
    found = {}
    for state in product(sums, repeat=d):
        key = tuple(sorted(map(abs, state)))
        if key not in found:
            ranks = ranks_with(key, n)
            if odd:
                ranks = np.column_stack((ranks, np.full(n, m)))
            found[key] = test.probability(ranks, order)
    return {state: found[tuple(sorted(map(abs, state)))] for state in product(sums, repeat=d)}


def worst_loss(p, d):
    steps = list(product((-2, 0, 2), repeat=d))
    moved = (
        (p[s], p.get(tuple(a + b for a, b in zip(s, e, strict=True)))) for s in p for e in steps
    )
    return max(loss(a, b) for a, b in moved if b is not None)


def level(p, n, d):
    chance = {s: binom.pmf((n + s) // 2, n, 0.5) for s in range(-n, n + 1, 2)}
    return sum(math.prod(chance[s] for s in state) * q for state, q in p.items())


# what binds: privacy in the first, the level in the others
PRIVATE = [(60, 2, 0.7, 0.3), (40, 4, 0.9, 0.3), (31, 4, 0.9, 0.4)]
PRIVATE += [(400, 2, 0.8, 0.05), (400, 3, 0.5, 0.1), (1500, 2, 0.4, 0.05)]
LEVELLED = [(40, 2, 2.5, 0.3), (40, 3, 2.5, 0.3), (31, 4, 3.0, 0.4), (400, 2, 3.0, 0.05)]


@pytest.mark.parametrize(("n", "m", "epsilon", "alpha"), PRIVATE + LEVELLED)
def test_ramp_is_private_and_keeps_its_level(n, m, epsilon, alpha):
    (test, mu), d = ramp(n, m, epsilon, alpha), m // 2
    p = reject_probabilities(test, n, m)
    assert worst_loss(p, d) <= epsilon
    assert level(p, n, d) <= alpha
    if (n, m, epsilon, alpha) in PRIVATE:  # which leaves no factor of two in the slope
        steep = reject_probabilities(ramp_bit(n, m, alpha, mu / math.sqrt(2)), n, m)
        assert worst_loss(steep, d) > epsilon


def test_ramp_rises_as_stated():
    test = ramp_bit(40, 4, 0.1, 0.9)
    for sums in [(0, 0), (8, 6), (10, -10), (14, 4), (40, 40)]:
        y = (sums[0] ** 2 + sums[1] ** 2) / 40
        p = min(max(16 * (y - 2) / (4 * 0.81 * 39), 0), 1)
        found = test.probability(ranks_with(sums, 40), (0, 1, 2, 3))
        assert found == pytest.approx(0.05 + 0.9 * p, abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize("mu", [0.2, 0.5, 0.9])
def test_sufficient_number_of_rankings_for_the_ramp(epsilon, mu):
    g = 0.95 / (0.05 * math.expm1(epsilon))
    n = math.ceil(1 + max((128 * g / mu**2) ** (2 / 3), 46 * g / mu))
    s = mu**2 * (n - 1) / 16
    change = 2 * (math.sqrt((1 + 2 * s) / n) - 1 / n) / s
    assert math.log1p(2 * 0.95 / 0.05 * change) <= epsilon


def test_ramp_of_a_tolerance():
    _, mu = ramp(500_000, 10, 1.0, 0.05, tolerance=0.5)
    assert mu > ramp(500_000, 10, 1.0, 0.05)[1]
    for arguments in ((100, 10, 1.0, 0.05), (5000, 10, 1.0, 0.05, 0.01)):
        with pytest.raises(ValueError, match="truncated test .* use method='auto' or more rank"):
            ramp(*arguments)


@pytest.mark.parametrize(("epsilon", "alpha"), [(1.0, 0.05), (1 / 3, 0.05), (2.0, 0.2)])
def test_buckets_are_private_and_keep_their_level(epsilon, alpha):
    expected = {(1.0, 0.05): 23, (1 / 3, 0.05): 97, (2.0, 0.2): 2}
    count = private_buckets(10_000, 4, epsilon, alpha)
    assert count == expected[epsilon, alpha]
    n = 20 * count
    assert private_buckets(n, 4, epsilon, alpha) == count
    test = bucket_bit(4, alpha, count)
    threshold = bucket_threshold(20, 4, alpha)
    values, weights = exact(20, 4)
    wanted = alpha / (2 * (1 - alpha))
    error = 4 * math.sqrt(wanted / FULL)  # of a table of draws
    rejecting = weights[values >= threshold].sum()
    assert alpha / 2 + (1 - alpha) * rejecting <= alpha + error
    assert weights[values >= threshold - 1].sum() > wanted - error or threshold - 1 not in values
    # bucket 0 at the threshold's edge: one ranking decides it, and it alone
    ranks = ranks_with((0, 0), n)
    mixed = ranks.copy()
    for bucket in range(count):
        mixed[bucket::count] = ranks_with((0, 0), 20)
    probabilities = []
    for lead in range(0, 22, 2):
        mixed[0::count] = ranks_with((lead, lead), 20)
        probabilities.append(test.probability(mixed, (0, 1, 2, 3)))
    assert probabilities[0] == alpha / 2
    assert probabilities[-1] == pytest.approx(alpha / 2 + (1 - alpha) / count)
    worst = max(loss(a, b) for a, b in zip(probabilities[1:], probabilities, strict=False))
    assert 0.5 * epsilon < worst <= epsilon
    fewer = alpha / 2 + (1 - alpha) / (count - 1)
    assert count == 2 or loss(fewer, alpha / 2) > epsilon


def test_buckets_of_one_ranking_are_refused():
    with pytest.raises(ValueError, match="needs 23 buckets .* Use method='auto'"):
        private_buckets(45, 4, 1.0, 0.05)
    assert private_buckets(46, 4, 1.0, 0.05) == 23


# What the published algorithms do.


def test_published_truncated_test_is_not_private():
    # The check on the signed sum of the counts, noisy or not, is blind to these neighbours: their
    # signed sums are both 0, but the probability to answer 1 (whichever answer that is) goes from
    # one coin's to the other's.
    published = ramp_bit(10, 4, 0.05, 0.5)
    p = [published.probability(ranks_with(sums, 10), (0, 1, 2, 3)) for sums in ((4, -4), (2, -2))]
    assert p == pytest.approx([0.975, 0.025])
    assert loss(*p) == pytest.approx(3.66, abs=0.005)


def test_published_truncated_test_rejects_under_uniformity():
    # as printed, a large p accepts
    _, mu = ramp(3000, 10, 1.0, 0.05)
    null = pair_squares(3000, 10).null(FULL)
    excess = null.values * 4 / 3000 - 5
    p = np.clip(16 * excess / (10 * mu**2 * 2999), 0, 1) @ null.weights
    assert 0.025 + 0.95 * p <= 0.05
    assert 0.025 + 0.95 * (1 - p) > 0.95


def test_published_buckets_have_no_privacy():
    # without a coin the probabilities are the shares themselves: 0 against 1 / count
    test = bucket_bit(4, 0.05, 3)
    ranks = ranks_with((0, 0), 60)
    for bucket in range(3):
        ranks[bucket::3] = ranks_with((0, 0), 20)
    share = [(test.probability(ranks, (0, 1, 2, 3)) - 0.025) / 0.95]
    ranks[0::3] = ranks_with((20, 20), 20)
    share.append((test.probability(ranks, (0, 1, 2, 3)) - 0.025) / 0.95)
    assert share == pytest.approx([0, 1 / 3])
    assert math.log1p(2 * 0.95 / (0.05 * 3)) > 1  # nor do three buckets with a coin


@pytest.mark.parametrize(("m", "size"), [(2, 0.015), (10, 0.007), (100, 0.0016), (1000, 0.0006)])
def test_published_threshold_is_conservative(m, size):
    null = pair_squares(1000, m).null(FULL)
    y = null.values * 4 / 1000
    threshold = m / 2 + 2 * math.sqrt(m * math.log(1 / 0.05))
    error = 4 * math.sqrt(size / FULL)
    assert null.weights[y > threshold].sum() == pytest.approx(size, rel=0.15, abs=error)
    least = null.threshold(0.05, DiscreteLaplace(0.0))
    assert 0.04 < null.weights[null.values >= least].sum() <= 0.05
