"""Given probabilities: sensitivities over all neighbours, nulls, the interval, published tests."""

import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from omnibusparts import cellwise_excess, kendall_norm, standardised_deviation

from privrank.hypotheses import nulls
from privrank.hypotheses.interval import interval_from
from privrank.hypotheses.nulls import Null, public_generator, table_key, uniform
from privrank.mechanisms import categories
from privrank.mechanisms.categories import (
    _quantiles,
    distance_from_null,
    of_ranks,
)
from privrank.privacy.noise import DiscreteLaplace
from privrank.published.asz18 import paninski, sigmoid_bit

CASES = [
    (2, (0.7, 0.3)),
    (5, (0.9, 0.1)),
    (4, (0.5, 0.25, 0.25)),
    (4, (0.6, 0.4, 0.0)),
    (7, (0.1, 0.2, 0.7)),
    (3, (0.28, 0.24, 0.24, 0.24)),
    (2, (0.3, 0.2, 0.2, 0.15, 0.15)),
    (4, (1.0, 0.0, 0.0)),
    (5, (0.4, 0.3, 0.2, 0.1)),
]
SKEWED = tuple(float(w) for w in np.arange(1, 7) / 21)


def released_interval(noisy, n, p, distribution, alpha):
    found = distance_from_null(n, p)
    return interval_from(
        noisy, n, p, distribution, alpha, step=found.step, sensitivity=found.sensitivity
    )


def omnibus_rankings(n, p):
    return of_ranks(categories.omnibus_of(n, p, 0.5, rankings=True))


def omnibus_of(n, p, xi=0.5):
    return categories.omnibus_of(n, p, xi)


def compositions(n, k):
    if k == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, k - 1):
            yield (first, *rest)


def chance(counts, p):
    ways = math.factorial(sum(counts))
    for count in counts:
        ways //= math.factorial(count)
    return ways * math.prod(q**count for q, count in zip(p, counts, strict=True))


def largest_move(values):
    """Largest change of a value when one choice moves, over all counts."""
    largest = 0
    for counts, value in values.items():
        for a, b in permutations(range(len(counts)), 2):
            if counts[a]:
                other = list(counts)
                other[a] -= 1
                other[b] += 1
                largest = max(largest, abs(values[tuple(other)] - value))
    return largest


def values_of(statistic, n, k):
    return {c: statistic.value(np.array(c), ()) for c in compositions(n, k)}


@pytest.mark.parametrize(("n", "p"), CASES)
def test_total_variation_is_exact_and_its_sensitivity_is_attained(n, p):
    statistic = distance_from_null(n, p)
    values = values_of(statistic, n, len(p))
    unit = min(Fraction(1, n), max(map(Fraction, p)))
    assert statistic.step == pytest.approx(float(unit) / 1024, rel=1e-12)
    for counts, value in values.items():
        distance = sum(max(Fraction(c, n) - Fraction(q), 0) for c, q in zip(counts, p, strict=True))
        exact = 1024 * distance / unit
        assert exact - 1 - Fraction(1, 10**6) <= value <= exact + Fraction(1, 10**6)
    largest = largest_move(values)
    assert largest <= statistic.sensitivity == 1024
    if n * max(p) >= 1:
        assert largest == 1024


@pytest.mark.parametrize("seed", range(30))
def test_total_variation_moves_by_no_more_than_claimed(seed):
    rng = public_generator("a test of sensitivities", seed)
    n, k = int(rng.integers(2, 7)), int(rng.integers(2, 6))
    p = rng.dirichlet(np.full(k, [0.3, 1.0, 30.0][seed % 3]))
    statistic = distance_from_null(n, tuple(p.tolist()))
    assert largest_move(values_of(statistic, n, k)) <= statistic.sensitivity == 1024


def test_the_bound_by_the_largest_probability_is_needed_and_near():
    # sparse: n max p < 1, so that 1 / n would be twice the noise that is needed
    n, p = 2, (0.26, 0.25, 0.25, 0.24)
    unit = distance_from_null(n, p).step * 1024
    assert unit == pytest.approx(0.26)
    assert 1000 <= largest_move(values_of(distance_from_null(n, p), n, 4)) <= 1024


def test_nearly_equal_probabilities_have_nearly_the_exact_distribution_of_uniformity():
    equal, nearly = distance_from_null(40, uniform(5)), (0.2, 0.2, 0.2, 0.2 - 1e-12, 0.2 + 1e-12)
    null, drawn = equal.null(nulls.FULL), distance_from_null(40, nearly).null(nulls.FULL)
    mean = null.values @ null.weights * equal.step
    step = distance_from_null(40, nearly).step
    assert drawn.values @ drawn.weights * step == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize(("n", "p"), [(2, (0.7, 0.3)), (30, (0.9, 0.1)), (9, (1.0, 0.0))])
def test_null_of_two_categories_is_exact(n, p):
    statistic, found = distance_from_null(n, p), Counter()
    for counts in compositions(n, 2):
        found[statistic.value(np.array(counts), ())] += chance(counts, p)
    null = statistic.null(99)
    assert null.draws is None
    assert dict(zip(null.values.tolist(), null.weights, strict=True)) == pytest.approx(
        found, abs=1e-13
    )


@pytest.mark.parametrize("make", [distance_from_null, omnibus_of])
def test_drawn_nulls_are_the_distribution_over_all_counts(make):
    n, p, found = 6, (0.5, 0.3, 0.2, 0.0), Counter()
    statistic = make(n, p)
    for counts in compositions(n, 4):
        found[statistic.value(np.array(counts), ())] += chance(counts, p)
    null = statistic.null(nulls.FULL)
    distribution = dict(zip(null.values.tolist(), null.weights, strict=True))
    assert distribution.keys() <= {value for value, mass in found.items() if mass > 0}
    values = np.array(sorted(found))
    exact = np.cumsum([found[v] for v in values])
    drawn = np.cumsum([distribution.get(v, 0.0) for v in values])
    assert np.abs(exact - drawn).max() < 2.2 / math.sqrt(nulls.FULL)


def test_the_public_sequence_is_named_by_the_probabilities():
    p = (0.5, 0.3, 0.2)
    first, again = (distance_from_null(50, p).null(640) for _ in range(2))
    assert np.array_equal(first.values, again.values)
    # another p of as many categories has draws, and a distribution, of its own
    other = (0.98, 0.01, 0.01)
    null = distance_from_null(50, other).null(640)
    rows = public_generator("a test of fingerprints").multinomial(50, other, 2000)
    exact = np.array([distance_from_null(50, other).value(row, ()) for row in rows])
    assert null.values @ null.weights == pytest.approx(exact.mean(), rel=0.15)
    assert first.values @ first.weights > 2 * exact.mean()
    assert table_key(p) == table_key([0.5, 0.3, 0.2]) != table_key((0.3, 0.5, 0.2))
    assert table_key(p) != table_key((0.5, 0.3, math.nextafter(0.2, 1)))
    assert table_key([-0.0]) == table_key([0.0])


@pytest.mark.parametrize("make", [distance_from_null, omnibus_of])
def test_pvalues_keep_their_level(make):
    n, p = 80, SKEWED
    statistic = make(n, p)
    distribution = DiscreteLaplace(statistic.sensitivity / 0.5)
    null = statistic.null(nulls.FULL)
    rng = public_generator("a test of p-values under given probabilities", 1)
    values = [statistic.value(row, ()) for row in rng.multinomial(n, np.array(p), 3000)]
    for alpha in (0.01, 0.05, 0.2):
        level = distribution.tail(null.threshold(alpha, distribution) - np.array(values)).mean()
        assert level == pytest.approx(alpha, abs=4 * math.sqrt(alpha / 3000) + 0.004)


# Rankings


def random_table(m, seed):
    rng = public_generator("a test of tables", m, seed)
    return tuple(rng.dirichlet(np.ones(math.factorial(m))).tolist())


@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 2), (2, 3), (4, 3)])
def test_kendall_norm_moves_by_no_more_than_its_sensitivity(n, m):
    for seed in range(3):
        statistic = kendall_norm(n, random_table(m, seed))
        largest = largest_move(values_of(statistic, n, math.factorial(m)))
        assert 850 < largest <= 1025 < statistic.sensitivity == 1026
    point = (1.0, *[0.0] * (math.factorial(m) - 1))
    values = values_of(kendall_norm(n, point), n, math.factorial(m))
    assert largest_move(values) >= 1023  # one ranking reversed, the others at the centre


def test_kendall_norm_in_its_own_unit():
    n, m = 30, 3
    p = random_table(m, 4)
    orders = list(permutations(range(1, m + 1)))
    signs = np.array(
        [[np.sign(r[j] - r[i]) for i in range(m) for j in range(i + 1, m)] for r in orders]
    )
    rng = public_generator("a test of the Kendall norm")
    counts = rng.multinomial(n, np.full(6, 1 / 6))
    norm = np.linalg.norm((counts / n - np.array(p)) @ signs) / math.sqrt(3)
    statistic = kendall_norm(n, p)
    assert statistic.value(counts, ()) * statistic.step == pytest.approx(norm, abs=statistic.step)


@pytest.mark.parametrize(("n", "m"), [(2, 2), (2, 3), (3, 3)])
def test_omnibus_of_rankings_moves_by_no_more_than_its_sensitivity(n, m):
    statistic = omnibus_rankings(n, random_table(m, 7))
    orders, largest = list(permutations(range(1, m + 1))), 0
    for rows in product(orders, repeat=n):
        here = statistic.value(np.array(rows), ())
        for row in orders:
            moved = statistic.value(np.array([row, *rows[1:]]), ())
            largest = max(largest, abs(moved - here))
    assert 700 < largest <= 1025 < statistic.sensitivity == 1026


def test_omnibus_takes_quantiles_from_a_sequence_of_their_own():
    n, p = 60, SKEWED
    statistic = omnibus_of(n, p)
    whole = statistic.value.__self__
    label, sizes = whole.sample.label, whole.sample.sizes
    draw, draws = whole.drawn, whole.draws
    own = nulls.null_draws(f"quantiles of the {label}", sizes, draw, draws)
    assert not np.array_equal(own[:640], nulls.null_draws(label, sizes, draw, 640))
    names = []
    with pytest.MonkeyPatch.context() as patch:
        original = nulls.null_draws

        def noted(name, *arguments):
            names.append(name)
            return original(name, *arguments)

        patch.setattr("privrank.mechanisms.categories.null_draws", noted)
        null = statistic.null(640)
    assert len(names) == len(set(names)) == 2
    assert isinstance(null, Null) and null.draws == 640


def test_omnibus_is_the_largest_of_its_parts():
    n, m = 40, 3
    p = random_table(m, 9)
    statistic = omnibus_rankings(n, p)
    ranks = nulls.uniform_rankings(public_generator("a test of parts"), n, m)
    orders = list(permutations(range(1, m + 1)))
    counts = np.array([sum(tuple(row) == order for row in ranks.tolist()) for order in orders])
    whole = statistic.value.args[0].__self__
    measures = (distance_from_null, cellwise_excess, standardised_deviation, kendall_norm)
    parts = [measure(n, p) for measure in measures]
    values = [part.value(counts, ()) for part in parts]
    assert [part.value(counts, ()) for part in whole.parts] == values
    assert statistic.value(ranks, ()) == max(np.array(values) - _quantiles(whole))


def test_statistics_can_be_pickled():
    for statistic in (
        distance_from_null(9, (0.5, 0.3, 0.2)),
        distance_from_null(9, (0.7, 0.3)),
        kendall_norm(9, (0.5, 0.5)),
        omnibus_of(9, (0.5, 0.3, 0.2)),
        omnibus_rankings(9, (0.5, 0.5)),
        paninski(9, 30),
        sigmoid_bit(9, 4, 1.0, 0.2),
    ):
        assert pickle.loads(pickle.dumps(statistic)).name == statistic.name


def test_power_is_that_of_the_total_variation_distance():
    # Paninski's alternative of uniformity, seen as one of nearly equal probabilities
    n, k, epsilon = 100, 6, 0.5
    p = tuple((np.full(k, 1 / k) + np.array([1, -1, 0, 0, 0, 0]) * 1e-4).tolist())
    statistic = distance_from_null(n, p)
    distribution = DiscreteLaplace(statistic.sensitivity / epsilon)
    threshold = statistic.null(nulls.FULL).threshold(0.05, distribution)
    cells = np.full(k, 1 / k) + 0.4 / k * np.array([1, -1, 1, -1, 1, -1])
    rows = public_generator("a test of power").multinomial(n, cells, 2000)
    values = np.array([statistic.value(row, ()) for row in rows])
    assert distribution.tail(threshold - values).mean() == pytest.approx(0.81, abs=0.035)


# The interval


@pytest.mark.parametrize("cells", [(1, 2, 3, 4, 5, 6), (6, 5, 4, 3, 2, 1), (1, 1, 1, 1, 1, 16)])
def test_interval_covers(cells):
    n, truth = 300, np.array(cells) / 21
    tau = np.abs(truth - np.array(SKEWED)).sum() / 2
    statistic, distribution = distance_from_null(n, SKEWED), DiscreteLaplace(1024 / 0.5)
    rng = public_generator("a test of intervals from given probabilities", *cells)
    hits = 0
    for row in rng.multinomial(n, truth, 60):
        noisy = statistic.value(row, ()) + int(distribution.simulate((), rng))
        low, high = released_interval(noisy, n, SKEWED, distribution, 0.05)
        hits += low <= tau <= high
        assert high - low < 0.33
    assert hits >= 59


def test_interval_deviation_is_a_bound_and_sharper_than_two():
    n, distribution, alpha = 300, DiscreteLaplace(1024 / 0.5), 0.05
    statistic = distance_from_null(n, SKEWED)
    noisy = 120_000
    low, high = released_interval(noisy, n, SKEWED, distribution, alpha)
    deviation = high / statistic.step - noisy - 1
    assert noisy - low / statistic.step == pytest.approx(
        deviation + math.sqrt(5 / n) / 2 / statistic.step, abs=1
    )
    b = alpha / 4
    apart = 1024 * math.sqrt(n * math.log(1 / b) / 2) + distribution.scale * math.log(1 / (2 * b))
    assert deviation < 0.85 * apart
    # the deviation of an extreme sub-Gaussian variable plus the noise is within it
    rng = public_generator("a test of deviations")
    values = rng.normal(0, 1024 * math.sqrt(n) / 2, 100_000) + distribution.simulate(100_000, rng)
    assert np.mean(values >= deviation) < alpha / 2


def test_interval_ends_stay_within_what_can_be():
    distribution = DiscreteLaplace(2048.0)
    ends = [
        released_interval(noisy, 100, (0.5, 0.3, 0.2), distribution, 0.1)
        for noisy in (-(10**6), 0, 10**6)
    ]
    assert ends[0] == (0.0, 0.0) and ends[2] == (0.8, 0.8)
    assert ends[1][0] == 0.0 < ends[1][1] < 0.8


# Published tests


@pytest.mark.parametrize(
    ("n", "k"), [(2, 2), (3, 2), (4, 2), (5, 2), (2, 3), (3, 3), (4, 3), (6, 4), (5, 5)]
)
def test_paninski(n, k):
    statistic = paninski(n, k)
    values = values_of(statistic, n, k)
    assert largest_move(values) == statistic.sensitivity
    found = Counter()
    for counts, value in values.items():
        assert value == n - counts.count(1)
        found[value] += chance(counts, [1 / k] * k)
    null = statistic.null(nulls.FULL)
    distribution = dict(zip(null.values.tolist(), null.weights, strict=True))
    assert {v: distribution.get(v, 0.0) for v in found} == pytest.approx(found, abs=0.025)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(("n", "k"), [(2, 2), (6, 3), (3, 5), (5, 4), (4, 6)])
def test_sigmoid_bit_is_private(n, k, epsilon):
    bit = sigmoid_bit(n, k, epsilon, 0.3)
    chances = {c: bit.probability(np.array(c), ()) for c in compositions(n, k)}
    loss = 0.0
    for answer in (lambda q: q, lambda q: 1 - q):
        logs = {c: math.log(answer(q)) for c, q in chances.items()}
        loss = max(loss, largest_move(logs))
    assert 0.4 * epsilon < loss <= epsilon * (1 + 1e-12)


def test_sigmoid_bit_is_no_test_of_a_level():
    n, k, tolerance = 100, 6, 0.2
    rng = public_generator("a test of the sigmoid bit")
    null = rng.multinomial(n, np.full(k, 1 / k), 2000)
    bit = sigmoid_bit(n, k, 0.1, tolerance)
    assert np.mean([bit.probability(row, ()) for row in null]) == pytest.approx(0.37, abs=0.02)


def test_the_order_of_tables_is_that_of_the_ranks():
    ranks = np.array([[1, 3, 2], [3, 2, 1], [1, 3, 2]])
    p = tuple(np.eye(6)[1].tolist())  # of 123, 132, 213, 231, 312, 321 the second
    point = omnibus_rankings(3, p)
    assert point.value(ranks[[0, 0, 0]], ()) < point.value(ranks, ())
