"""Counts by category: laws and sensitivities by enumeration, the omnibus, the interval."""

import math
import pickle
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import binom

from privrank.hypotheses import nulltables
from privrank.hypotheses.interval import tv_interval
from privrank.hypotheses.nullmodel import uniform
from privrank.hypotheses.nulltables import null_draws, public_generator
from privrank.mechanisms.statistics import categories
from privrank.mechanisms.statistics.categories import max_count
from privrank.mechanisms.statistics.categories import omnibus_uniform as omnibus_choices
from privrank.privacy.noise import DiscreteLaplace

SMALL = [(2, 2), (3, 2), (2, 3), (4, 3), (6, 3), (3, 5), (5, 4), (7, 4), (2, 6), (4, 6)]


def total_variation(n, k):
    return categories.total_variation(n, uniform(k))


def omnibus_rankings(n, m):
    return categories.omnibus_uniform(n, math.factorial(m), m=m)


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


@pytest.mark.parametrize("make", [total_variation, max_count])
@pytest.mark.parametrize(("n", "k"), [*SMALL, (12, 4), (25, 3), (40, 2), (9, 6)])
def test_null_is_the_law_over_all_counts(make, n, k):
    statistic, found = make(n, k), Counter()
    for counts in compositions(n, k):
        found[statistic.value(np.array(counts), ())] += multinomial(counts)
    null = statistic.null(99)
    assert null.draws is None
    law = dict(zip(null.values.tolist(), null.weights, strict=True))
    assert law.keys() <= found.keys()
    assert {v: law.get(v, 0.0) for v in found} == pytest.approx(found, abs=1e-14)


@pytest.mark.parametrize("make", [total_variation, max_count])
@pytest.mark.parametrize(("n", "k"), SMALL)
def test_sensitivity_is_attained_and_never_exceeded(make, n, k):
    statistic = make(n, k)
    value = {c: statistic.value(np.array(c), ()) for c in compositions(n, k)}
    largest = max(abs(value[c] - value[other]) for c in value for other in neighbours(c))
    assert largest == statistic.sensitivity


@pytest.mark.parametrize(("n", "k"), [(100, 6), (1000, 24), (300, 120), (1000, 720)])
def test_statistic_in_its_own_unit_and_null_against_simulation(n, k):
    rng = public_generator("a test of categories", n, k)
    counts = rng.multinomial(n, np.full(k, 1 / k), 2000)
    for statistic in (total_variation(n, k), max_count(n, k)):
        drawn = np.array([statistic.value(row, ()) for row in counts])
        null = statistic.null(99)
        assert null.draws is None
        mean = null.values @ null.weights
        deviation = math.sqrt((null.values - mean) ** 2 @ null.weights)
        assert drawn.mean() == pytest.approx(mean, abs=4 * deviation / math.sqrt(2000))
        assert drawn.std() == pytest.approx(deviation, rel=0.08)
    distance = np.abs(counts[0] / n - 1 / k).sum() / 2
    statistic = total_variation(n, k)
    assert statistic.value(counts[0], ()) * statistic.step == pytest.approx(distance)
    # the mean is exact: n k E (M - n / k)+ with M binomial, by De Moivre
    at = n // k + 1
    expected = k * k * at * binom.pmf(at, n, 1 / k) * (1 - 1 / k)
    null = statistic.null(99)
    assert null.values @ null.weights == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("make", [total_variation, max_count])
def test_very_many_choices_take_no_memory(make):
    assert make(10**12, 3).null(64).draws == 64


def test_nulls_too_large_to_compute_are_drawn():
    null = total_variation(10**6, 24).null(640)
    assert null.draws == 640
    cell = 24 * math.sqrt(10**6 / 24 * (1 - 1 / 24) / (2 * math.pi))  # k E (M - n / k)+
    assert null.values @ null.weights == pytest.approx(24 * cell, rel=0.03)
    assert max_count(10**6, 2).null(64).draws == 64


# The omnibus


@pytest.mark.parametrize(("n", "k"), [(2, 2), (4, 3), (6, 3), (3, 5), (5, 4), (4, 6)])
def test_omnibus_of_choices_moves_by_no_more_than_its_sensitivity(n, k):
    statistic = omnibus_choices(n, k)
    value = {c: statistic.value(np.array(c), ()) for c in compositions(n, k)}
    largest = max(abs(value[c] - value[other]) for c in value for other in neighbours(c))
    assert 1000 < largest <= 1025 < statistic.sensitivity == 1026


@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 2), (2, 3), (4, 3)])
def test_omnibus_of_rankings_moves_by_no_more_than_its_sensitivity(n, m):
    statistic, orders = omnibus_rankings(n, m), list(permutations(range(1, m + 1)))
    largest = 0
    for rows in product(orders, repeat=n):
        here = statistic.value(np.array(rows), ())
        for row in orders:
            moved = statistic.value(np.array([row, *rows[1:]]), ())
            largest = max(largest, abs(moved - here))
    assert 1000 < largest <= 1025


def test_omnibus_is_the_largest_of_its_statistics():
    n, m = 50, 4
    omnibus = omnibus_rankings(n, m)
    holder = omnibus.value.keywords["value"].__self__
    rng = public_generator("a test of the omnibus")
    ranks = nulltables.uniform_rankings(rng, n, m)
    signs = np.array(
        [[1 if row[j] > row[i] else -1 for i in range(m) for j in range(i + 1, m)] for row in ranks]
    )
    counts = Counter(map(tuple, ranks.tolist()))
    scaled = [
        sum(max(count / n - 1 / 24, 0) for count in counts.values()) * 24,  # over 1 / max(n, k)
        max(counts.values()),
        np.linalg.norm(signs.mean(axis=0)) / math.sqrt(6) / (2 / n),
    ]
    scaled[0] *= n / 24  # Delta = min(1 / n, 1 / k) = 1 / 50
    largest = max(1024 * a - q for a, q in zip(scaled, holder.public(), strict=True))
    assert omnibus.value(ranks, ()) == math.floor(largest)


def test_quantiles_come_from_a_sequence_of_their_own():
    omnibus = omnibus_choices(30, 5)
    label, sizes, draw, steps, draws = omnibus.value.__self__.public.args
    own = steps(null_draws(f"quantiles of the {label}", sizes, draw, draws))
    assert draws == nulltables.FULL
    assert not np.array_equal(own[:640], steps(null_draws(label, sizes, draw, 640)))
    assert np.mean(own > omnibus.value.__self__.public()) < 0.025
    names = []
    with pytest.MonkeyPatch.context() as patch:
        original = nulltables.null_draws

        def noted(name, *arguments):
            names.append(name)
            return original(name, *arguments)

        patch.setattr("privrank.mechanisms.statistics.omnibus.null_draws", noted)
        omnibus.null(640)
    assert len(names) == len(set(names)) == 2


def test_omnibus_pvalues_are_valid():
    n, k = 60, 6
    statistic, law = omnibus_choices(n, k), DiscreteLaplace(1026 / 0.5)
    null = statistic.null(nulltables.FULL)
    rng = public_generator("a test of omnibus p-values")
    rows = rng.multinomial(n, np.full(k, 1 / k), 3000)
    noise = law.simulate(3000, rng)
    p = [
        null.pvalue(statistic.value(r, ()) + int(w), law) for r, w in zip(rows, noise, strict=True)
    ]
    for alpha in (0.01, 0.05, 0.2):
        assert np.mean(np.array(p) <= alpha) == pytest.approx(
            alpha, abs=4 * math.sqrt(alpha / 3000) + 0.004
        )


def test_statistics_can_be_pickled():
    for statistic in (
        total_variation(9, 4),
        max_count(9, 4),
        omnibus_choices(9, 4),
        omnibus_rankings(9, 3),
    ):
        assert pickle.loads(pickle.dumps(statistic)).sensitivity == statistic.sensitivity


# The interval


def released(rng, n, cells, law):
    counts = rng.multinomial(n, cells)
    return total_variation(n, len(cells)).value(counts, ()) + int(law.simulate((), rng))


def two_level(k, tau, size):
    cells = np.full(k, 1 / k - tau / (k - size))
    cells[:size] = 1 / k + tau / size
    return cells


@pytest.mark.parametrize(("tau", "size"), [(0.0, 3), (0.2, 3), (0.2, 1), (0.4, 2)])
def test_interval_covers(tau, size):
    n, k, law = 300, 6, DiscreteLaplace(6 / 0.5)
    rng = public_generator("a test of intervals", size, round(100 * tau))
    ends = np.array(
        [
            tv_interval(released(rng, n, two_level(k, tau, size), law), n, k, law, 0.05)
            for _ in range(25)
        ]
    )
    covered = np.mean((ends[:, 0] <= tau) & (tau <= ends[:, 1]))
    assert (
        covered >= 0.84
    )  # of 25: three misses have probability 0.13 at most, four 0.034, five 0.007
    assert np.mean(ends[:, 1] - ends[:, 0]) < 0.16


def test_interval_agrees_with_plain_simulation():
    n, k, noisy, law = 300, 6, 400, DiscreteLaplace(12.0)
    low, high = tv_interval(noisy, n, k, law, 0.05)
    rng = public_generator("a test of interval ends")

    def tail(cells, side):
        values = np.maximum(k * rng.multinomial(n, cells, 100_000) - n, 0).sum(axis=1)
        noisy_values = values + law.simulate(100_000, rng)
        return np.mean(noisy_values >= noisy if side > 0 else noisy_values <= noisy)

    extreme = np.array([1 / 6 + low, 0, 0, 0, 0, 0])
    for cell in range(1, k):
        extreme[cell] = min(1 / 6, max(1 - extreme.sum(), 0))
    assert 0.017 < tail(extreme, 1) < 0.026  # of 0.025, two standard errors are given away
    lower = [tail(two_level(k, high, size), -1) for size in range(1, k) if high <= 1 - size / k]
    assert 0.015 < max(lower) < 0.026


def test_interval_is_deterministic_and_rises():
    n, k, law = 100, 4, DiscreteLaplace(8.0)
    ends = [tv_interval(noisy, n, k, law, 0.1) for noisy in range(-60, 420, 40)]
    assert ends == sorted(ends) and [high for _, high in ends] == sorted(high for _, high in ends)
    assert ends[0] == (0.0, 0.0)  # far below anything that can be
    assert all(0 <= low <= high <= 0.75 for low, high in ends)
    assert tv_interval(100, n, k, law, 0.1) == ends[4]
    assert tv_interval(300, n, k, DiscreteLaplace(0.0), 0.1)[0] > 0.6
