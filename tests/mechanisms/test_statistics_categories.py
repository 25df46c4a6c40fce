"""Counts by category: distributions and sensitivities by enumeration, the omnibus, the interval."""

import math
import pickle
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from omnibusparts import cellwise_excess, standardised_deviation
from scipy.stats import binom

from privrank.hypotheses import nulls
from privrank.hypotheses.interval import interval_from
from privrank.hypotheses.nulls import FULL, null_draws, public_generator, uniform
from privrank.mechanisms import categories
from privrank.mechanisms.categories import QUANTILE_DRAWS, _quantiles
from privrank.mechanisms.ranknorms import of_orders
from privrank.privacy.noise import DiscreteLaplace

SMALL = [(2, 2), (3, 2), (2, 3), (4, 3), (6, 3), (3, 5), (5, 4), (7, 4), (2, 6), (4, 6)]


def total_variation(n, k):
    return categories.distance_from_null(n, uniform(k))


def omnibus_choices(n, k, xi=0.5):
    return categories.omnibus_of(n, uniform(k), xi)


def omnibus_rankings(n, m, xi=0.5):
    return of_orders(n, m, xi)


def compositions(n, k):
    if k == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, k - 1):
            yield (first, *rest)


def multinomial(counts):
    """Probability of counts under uniformity."""
    n, k = sum(counts), len(counts)
    ways = math.factorial(n)
    for count in counts:
        ways //= math.factorial(count)
    return ways / k**n


def neighbours(counts):
    for a, b in permutations(range(len(counts)), 2):
        if counts[a]:
            other = list(counts)
            other[a] -= 1
            other[b] += 1
            yield tuple(other)


@pytest.mark.parametrize(("n", "k"), [*SMALL, (12, 4), (25, 3), (40, 2), (9, 6)])
def test_null_is_the_distribution_over_all_counts(n, k):
    statistic, found = total_variation(n, k), Counter()
    for counts in compositions(n, k):
        found[statistic.value(np.array(counts), ())] += multinomial(counts)
    null = statistic.null(FULL)
    assert null.draws == (None if k == 2 else FULL)
    distribution = dict(zip(null.values.tolist(), null.weights, strict=True))
    assert distribution.keys() <= found.keys()
    for value, expected in found.items():
        close = 1e-14 if k == 2 else 5 * math.sqrt(expected * (1 - expected) / FULL)
        assert distribution.get(value, 0.0) == pytest.approx(expected, abs=close)


@pytest.mark.parametrize(("n", "k"), SMALL)
def test_sensitivity_is_attained_and_never_exceeded(n, k):
    statistic = total_variation(n, k)
    value = {c: statistic.value(np.array(c), ()) for c in compositions(n, k)}
    largest = max(abs(value[c] - value[other]) for c in value for other in neighbours(c))
    assert largest == statistic.sensitivity


@pytest.mark.parametrize(("n", "k"), [(100, 6), (1000, 24), (300, 120), (1000, 720)])
def test_statistic_in_its_own_unit_and_null_against_simulation(n, k):
    rng = public_generator("a test of categories", n, k)
    counts = rng.multinomial(n, np.full(k, 1 / k), 2000)
    statistic = total_variation(n, k)
    drawn, null = np.array([statistic.value(row, ()) for row in counts]), statistic.null(FULL)
    mean = null.values @ null.weights
    deviation = math.sqrt((null.values - mean) ** 2 @ null.weights)
    assert drawn.mean() == pytest.approx(mean, abs=5 * deviation / math.sqrt(2000))
    assert drawn.std() == pytest.approx(deviation, rel=0.08)
    distance = np.abs(counts[0] / n - 1 / k).sum() / 2
    assert statistic.value(counts[0], ()) * statistic.step == pytest.approx(distance)
    # the mean is known: n k E (M - n / k)+ with M binomial, by De Moivre
    at = n // k + 1
    expected = k * k * at * binom.pmf(at, n, 1 / k) * (1 - 1 / k)
    assert mean == pytest.approx(expected, abs=5 * deviation / math.sqrt(FULL))


def test_very_many_choices_take_no_memory():
    assert total_variation(10**12, 3).null(64).draws == 64
    assert total_variation(10**8, 2).null(64).draws == 64


def test_nulls_too_large_to_compute_are_drawn():
    null = total_variation(10**6, 24).null(640)
    assert null.draws == 640
    cell = 24 * math.sqrt(10**6 / 24 * (1 - 1 / 24) / (2 * math.pi))  # k E (M - n / k)+
    assert null.values @ null.weights == pytest.approx(24 * cell, rel=0.03)


# The omnibus


SKEWED = [(5, (0.9, 0.1)), (4, (0.6, 0.4, 0.0)), (7, (0.1, 0.2, 0.7)), (3, (0.97, 0.02, 0.01))]


@pytest.mark.parametrize(("n", "p"), [*((n, uniform(k)) for n, k in SMALL), *SKEWED])
def test_cellwise_excess_moves_by_one_choice(n, p):
    statistic = cellwise_excess(n, p)
    value = {c: statistic.value(np.array(c), ()) for c in compositions(n, len(p))}
    largest = max(abs(value[c] - value[other]) for c in value for other in neighbours(c))
    assert largest <= statistic.sensitivity == 1024
    assert largest == 1024 or n * max(p) < 1 or 0 in p


@pytest.mark.parametrize(("n", "p"), [*((n, uniform(k)) for n, k in SMALL), *SKEWED])
def test_standardised_deviation_moves_by_one_choice(n, p):
    statistic = standardised_deviation(n, p)
    value = {c: statistic.value(np.array(c), ()) for c in compositions(n, len(p))}
    largest = max(abs(value[c] - value[other]) for c in value for other in neighbours(c))
    assert largest <= statistic.sensitivity == 1024
    assert largest == 1024 or n * max(p) < 1


@pytest.mark.parametrize(("n", "p"), [(30, (0.5, 0.3, 0.15, 0.05)), (9, (0.7, 0.3, 0.0)), *SKEWED])
def test_standardised_deviation_is_the_largest_of_its_terms(n, p):
    statistic = standardised_deviation(n, p)
    spread = {share: math.sqrt(n * share * (1 - share) + 0.25) for share in p if share > 0}
    for counts in list(compositions(n, len(p)))[::7]:
        terms = [
            abs(count - n * share) * min(spread.values()) / spread[share]
            for count, share in zip(counts, p, strict=True)
            if share > 0
        ]
        assert abs(statistic.value(np.array(counts), ()) - 1024 * max(terms)) <= 2


@pytest.mark.parametrize(("n", "p"), [(30, (0.5, 0.3, 0.15, 0.05)), (9, (0.7, 0.3, 0.0)), *SKEWED])
def test_cellwise_excess_is_what_lies_beyond_binomial_ranges(n, p):
    statistic, level = cellwise_excess(n, p), 1 / (4 * len(p))
    terms = []
    for counts in list(compositions(n, len(p)))[::7]:
        for count, share in zip(counts, p, strict=True):
            if share > 0:
                mass = [math.comb(n, j) * share**j * (1 - share) ** (n - j) for j in range(n + 1)]
                high = min(u for u in range(n + 1) if sum(mass[u + 1 :]) <= level)
                low = max(u for u in range(n + 1) if sum(mass[:u]) <= level)
                a, b = max(high - n * share, 0), max(n * share - low, 0)
                terms.append(max(count - n * share - a, n * share - count - b))
        assert statistic.value(np.array(counts), ()) == math.floor(1024 * max(terms) + 1e-6)
        terms.clear()


@pytest.mark.parametrize("xi", [0.3, math.inf])
@pytest.mark.parametrize(("n", "k"), [(2, 2), (4, 3), (6, 3), (3, 5), (5, 4), (4, 6)])
def test_omnibus_of_choices_moves_by_no_more_than_its_sensitivity(n, k, xi):
    statistic = omnibus_choices(n, k, xi)
    value = {c: statistic.value(np.array(c), ()) for c in compositions(n, k)}
    largest = max(abs(value[c] - value[other]) for c in value for other in neighbours(c))
    assert 1000 < largest <= statistic.sensitivity == 1024


@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 2), (2, 3), (4, 3)])
def test_omnibus_of_rankings_moves_by_no_more_than_its_sensitivity(n, m):
    statistic, orders = omnibus_rankings(n, m), list(permutations(range(1, m + 1)))
    largest = 0
    for rows in product(orders, repeat=n):
        here = statistic.value(np.array(rows), ())
        for row in orders:
            moved = statistic.value(np.array([row, *rows[1:]]), ())
            largest = max(largest, abs(moved - here))
    assert 900 < largest <= 1025


@pytest.mark.parametrize("xi", [0.2, 2.0, math.inf])
def test_quantiles_are_those_of_the_noisy_parts_in_a_sequence_of_their_own(xi):
    omnibus = omnibus_choices(30, 5, xi)
    whole = omnibus.value.__self__
    label, sizes = whole.sample.label, whole.sample.sizes
    draw, scale = whole.drawn, whole.scale
    levels, draws = tuple(part.level for part in whole.parts), whole.draws
    own, other = (
        null_draws(f"{who}{label}", sizes, draw, draws) for who in ("quantiles of the ", "")
    )
    assert draws == QUANTILE_DRAWS and levels == (0.025, 0.025)
    assert not np.array_equal(own, other)
    assert scale == (0 if math.isinf(xi) else omnibus.sensitivity / xi)
    for column, level, q in zip(own.T, levels, _quantiles(whole), strict=True):
        if scale:
            z = (q - column) / scale
            tail = np.where(z > 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z))).mean()
            assert tail == pytest.approx(level, abs=1e-2 * level + 1 / scale)
        else:
            assert np.mean(column > q) <= level < np.mean(column > q - 1)


def test_the_tables_are_the_same_at_every_epsilon():
    names = []
    with pytest.MonkeyPatch.context() as patch:

        def noted(name, sizes, *arguments):
            names.append((name, sizes))
            return null_draws(name, sizes, *arguments)

        patch.setattr("privrank.mechanisms.categories.null_draws", noted)
        for xi in (0.5, 2.0, math.inf):
            omnibus_choices(30, 5, xi).null(640)
    assert len(names) == 6 and len(set(names)) == 2


def test_a_permutation_of_categories_and_their_probabilities_changes_nothing():
    p, counts = (0.5, 0.3, 0.15, 0.05), np.array([11, 2, 0, 7])
    for xi in (0.7, math.inf):
        first = categories.omnibus_of(20, p, xi)
        null = first.null(640)
        for order in map(list, permutations(range(4))):
            again = categories.omnibus_of(20, tuple(np.array(p)[order].tolist()), xi)
            assert again.value(counts[order], ()) == first.value(counts, ())
            assert np.array_equal(again.null(640).values, null.values)


def test_omnibus_pvalues_are_valid():
    n, k = 60, 6
    statistic, distribution = omnibus_choices(n, k), DiscreteLaplace(1024 / 0.5)
    null = statistic.null(nulls.FULL)
    rng = public_generator("a test of omnibus p-values")
    rows = rng.multinomial(n, np.full(k, 1 / k), 3000)
    noise = distribution.simulate(3000, rng)
    p = [
        null.pvalue(statistic.value(r, ()) + int(w), distribution)
        for r, w in zip(rows, noise, strict=True)
    ]
    for alpha in (0.01, 0.05, 0.2):
        assert np.mean(np.array(p) <= alpha) == pytest.approx(
            alpha, abs=4 * math.sqrt(alpha / 3000) + 0.004
        )


def test_statistics_can_be_pickled():
    for statistic in (
        total_variation(9, 4),
        omnibus_choices(9, 4),
        omnibus_rankings(9, 3),
    ):
        assert pickle.loads(pickle.dumps(statistic)).sensitivity == statistic.sensitivity


# The interval


def ends_of(noisy, n, k, alpha, distribution):
    found = total_variation(n, k)
    scale = {"step": found.step, "sensitivity": found.sensitivity}
    return interval_from(noisy, n, uniform(k), distribution, alpha, **scale)


def released(rng, n, cells, distribution):
    counts = rng.multinomial(n, cells)
    return total_variation(n, len(cells)).value(counts, ()) + int(distribution.simulate((), rng))


def two_level(k, tau, size):
    cells = np.full(k, 1 / k - tau / (k - size))
    cells[:size] = 1 / k + tau / size
    return cells


@pytest.mark.parametrize(("tau", "size"), [(0.0, 3), (0.2, 3), (0.2, 1), (0.4, 2)])
def test_interval_covers(tau, size):
    n, k, distribution = 300, 6, DiscreteLaplace(6 / 0.5)
    rng = public_generator("a test of intervals", size, round(100 * tau))
    cells = two_level(k, tau, size)
    ends = np.array(
        [
            ends_of(released(rng, n, cells, distribution), n, k, 0.05, distribution)
            for _ in range(20)
        ]
    )
    covered = np.mean((ends[:, 0] <= tau) & (tau <= ends[:, 1]))
    assert covered >= 0.95  # conservative
    assert np.mean(ends[:, 1] - ends[:, 0]) < 0.27


def test_interval_is_deterministic_and_rises():
    n, k, distribution = 100, 4, DiscreteLaplace(8.0)
    ends = [ends_of(noisy, n, k, 0.1, distribution) for noisy in range(-60, 420, 40)]
    assert ends == sorted(ends) and [high for _, high in ends] == sorted(high for _, high in ends)
    assert ends[0] == (0.0, 0.0)  # far below anything that can be
    assert all(0 <= low <= high <= 0.75 for low, high in ends)
    assert ends_of(100, n, k, 0.1, distribution) == ends[4]
    assert ends_of(300, n, k, 0.1, DiscreteLaplace(0.0))[0] > 0.5
