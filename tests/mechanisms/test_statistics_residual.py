"""The residual norm: its value, its sensitivity by enumeration, what it sees, and its omnibus."""

import math
from itertools import combinations, combinations_with_replacement, permutations

import numpy as np
import pytest

from privrank.hypotheses import nulls
from privrank.hypotheses.nulls import Null, public_generator, uniform_rankings, usual_draws
from privrank.mechanisms import ranknorms
from privrank.mechanisms.categories import _quantiles
from privrank.mechanisms.ranknorms import borda_norm, residual_norm, sees_everything
from privrank.privacy.noise import DiscreteLaplace
from privrank.util.arrays import most_rankings


def kernel(x, y, third=True):
    """The kernel of two rankings as its formula has it."""
    m = len(x)
    q = (2.0 * np.arange(1, m + 1) - m - 1) ** 2
    q -= q.mean()
    q /= math.sqrt(q @ q)
    pairs = list(combinations(range(m), 2))
    tau = float(np.mean([np.sign((x[i] - x[j]) * (y[i] - y[j])) for i, j in pairs]))
    u, v = 2.0 * x - (m + 1), 2.0 * y - (m + 1)
    found = q[x - 1] @ q[y - 1] + (tau - u @ v / (m * len(pairs))) / ((m - 2) / (3 * m))
    return found + third * 2 * (math.exp(tau) - 1 - tau) / (math.e - 2)


def everything(m):
    return np.array(list(permutations(range(1, m + 1))))


def exact(ranks, third=True):
    """R, with the mean of the kernel under uniformity by enumeration of all orders."""
    n, m = ranks.shape
    mean = np.mean([kernel(ranks[0], y, third) for y in everything(m)])
    total = sum(kernel(x, y, third) for x in ranks for y in ranks) - n * n * mean
    return math.sqrt(max(total, 0.0) + n / 100)


@pytest.mark.parametrize(("n", "m"), [(2, 3), (9, 3), (7, 4), (5, 5), (3, 6)])
@pytest.mark.parametrize("third", [True, False])
def test_value_is_the_distance_of_mean_embeddings(n, m, third, monkeypatch):
    monkeypatch.setattr(ranknorms, "sees_everything", lambda n, m: third)
    statistic = residual_norm(n, m)
    for seed in range(3):
        ranks = uniform_rankings(public_generator("a test of the residual", n, m, seed), n, m)
        expected = exact(ranks, third)
        assert abs(statistic.value(ranks, ()) * statistic.step - expected) < 1.01 * statistic.step


@pytest.mark.parametrize(("n", "m"), [(2, 7), (30, 7), (7, 40), (12, 40), (2, 300)])
def test_every_way_to_count_distances_finds_the_same(n, m):
    ranks = uniform_rankings(public_generator("a test of distances", n, m), n, m)
    apart, times, total = ranknorms._discordances(ranks, True)
    found = np.bincount(apart, times)
    distances = [
        sum((x[i] - x[j]) * (y[i] - y[j]) < 0 for i, j in combinations(range(m), 2))
        for x, y in combinations(ranks, 2)
    ]
    expected = 2 * np.bincount(distances, minlength=len(found))
    expected[0] += n
    np.testing.assert_array_equal(found, expected)
    assert total == 2 * sum(distances)


def test_squares_of_any_size():
    assert ranknorms._sum_of_squares(np.array([3, -4])) == 25
    assert ranknorms._sum_of_squares(np.array([3 * 10**9, 1])) == 9 * 10**18 + 1
    assert ranknorms._sum_of_squares(np.array([10**12, -(10**12)])) == 2 * 10**24


@pytest.mark.parametrize("m", [3, 4, 5, 6, 7, 8])
def test_the_uniform_mean_is_that_of_all_orders(m):
    orders, first = everything(m), np.arange(1, m + 1)
    inverted = sum((orders[:, i] > orders[:, j]).astype(int) for i, j in combinations(range(m), 2))
    mean = np.mean(np.exp(1 - 4 * inverted / (m * (m - 1)))) - 1
    assert ranknorms._constants(m, True)[1] == pytest.approx(mean, rel=1e-12)
    assert kernel(first, first) - (first - first).sum() == pytest.approx(1 + 1 + 2)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("m", [3, 4, 5])
def test_uniform_rankings_are_at_distance_zero(n, m):
    ranks = np.repeat(everything(m), n, axis=0)
    statistic = residual_norm(len(ranks), m)
    assert statistic.value(ranks, ()) * statistic.step <= math.sqrt(len(ranks) / 100) + 1e-6


def largest_move(statistic, n, m):
    """The largest change over all data sets and replacements of a ranking."""
    orders, values = everything(m), {}
    for rows in combinations_with_replacement(range(len(orders)), n):
        values[rows] = statistic.value(orders[list(rows)], ())
    largest = 0
    for rows in combinations_with_replacement(range(len(orders)), n - 1):
        near = [values[tuple(sorted((*rows, row)))] for row in range(len(orders))]
        largest = max(largest, max(near) - min(near))
    return largest


@pytest.mark.parametrize(("n", "m"), [(2, 3), (3, 3), (6, 3), (8, 3), (2, 4), (3, 4)])
@pytest.mark.parametrize("third", [True, False])
def test_it_moves_by_no_more_than_its_sensitivity(n, m, third, monkeypatch):
    monkeypatch.setattr(ranknorms, "sees_everything", lambda n, m: third)
    statistic = residual_norm(n, m)
    largest = largest_move(statistic, n, m)
    assert 600 < largest <= 1025 < statistic.sensitivity == 1026


def test_half_the_sensitivity_is_found_to_be_too_small(monkeypatch):
    honest = ranknorms._constants

    def halved(m, third):
        square, mean, delta = honest(m, third)
        return square, mean, delta / 2

    monkeypatch.setattr(ranknorms, "_constants", halved)
    assert largest_move(residual_norm(6, 3), 6, 3) > 1026


@pytest.mark.parametrize("m", [3, 4, 5, 6, 9])
def test_the_sensitivity_bounds_the_distance_of_any_two_embeddings(m):
    # nearly attained, where m! - 1 rankings and one more are uniform
    for third in (True, False):
        delta, first = ranknorms._constants(m, third)[2], np.arange(1, m + 1)
        own, widest = kernel(first, first, third), 0.0
        orders = everything(m) if m < 7 else [first[::-1], np.roll(first, 4), np.roll(first, 3)]
        for y in orders:
            widest = max(widest, 2 * own - 2 * kernel(first, y, third))
        assert math.sqrt(widest) <= delta + 1e-9
        assert m > 6 or math.sqrt(widest) > 0.984 * delta


@pytest.mark.parametrize(("n", "m"), [(40, 4), (30, 7), (25, 12), (3, 40), (50, 30)])
def test_neither_labels_nor_the_order_of_rows_matter(n, m):
    rng = public_generator("a test of labels", n, m)
    ranks = uniform_rankings(rng, n, m)
    value = residual_norm(n, m).value
    for _ in range(3):
        moved = ranks[rng.permutation(n)][:, rng.permutation(m)]
        assert value(moved, ()) == value(ranks, ())


@pytest.mark.parametrize(("n", "m"), [(2, 7), (12, 7), (3, 60), (40, 9), (400, 5)])
def test_all_ways_to_compare_rankings_agree(n, m, monkeypatch):
    ranks = uniform_rankings(public_generator("a test of ways", n, m), n, m)
    found = []
    for most, times in ((m - 1, 0), (m - 1, 10**9), (m, 0)):
        if most > 6:  # more orders than can be listed
            most = 6
        monkeypatch.setattr(ranknorms, "MAX_ITEMS", most)
        monkeypatch.setattr(ranknorms.math, "log2", lambda m, times=times: times)
        found.append(ranknorms._discordances(ranks, True))
    sums = {discordant for _, _, discordant in found}
    monkeypatch.setattr(ranknorms, "MAX_ITEMS", 2)
    sums.add(ranknorms._discordances(ranks, False)[2])
    assert len(sums) == 1
    tables = [dict.fromkeys(apart.tolist(), 0) for apart, _, _ in found]
    for table, (apart, times, _) in zip(tables, found, strict=True):
        for distance, count in zip(apart.tolist(), times.tolist(), strict=True):
            table[distance] += count
        assert sum(table.values()) == n * n
    assert tables[0] == tables[1] == tables[2]


def test_what_is_looked_for_follows_from_public_numbers():
    assert sees_everything(10**6, 6) and sees_everything(2896, 7) and not sees_everything(2897, 7)
    assert most_rankings(11) == 2896 and most_rankings(100) == 327
    assert not sees_everything(1000, 100)
    assert residual_norm(1000, 100).step < residual_norm(300, 100).step
    assert usual_draws("rankings", 1000, 100) == usual_draws("rankings", 2000, 6) == 9999
    assert usual_draws("rankings", 3000, 100) == 1999 and usual_draws("rankings", 10**4, 500) == 999
    assert usual_draws("choices", 10**9, 1000) == 9999


# What mean ranks do not see


def opposite(n, m, rng):
    """Half of the respondents rank the other way round."""
    ranks = np.argsort(np.argsort(np.arange(m) + 3 * rng.random((n, m)), axis=1), axis=1) + 1
    ranks[::2] = m + 1 - ranks[::2]
    return ranks


def cycles(n, m, rng):
    """Half of the rankings are rotations of one."""
    ranks = uniform_rankings(rng, n, m)
    turns = (np.arange(m) + rng.integers(0, m, (n // 2, 1))) % m + 1
    ranks[: n // 2] = turns
    return ranks


def ends(n, m, rng):
    """Half of the rankings place one item first or last."""
    ranks = uniform_rankings(rng, n, m)
    for row in range(n // 2):
        wanted = 1 if rng.random() < 0.5 else m
        other = np.flatnonzero(ranks[row] == wanted)[0]
        ranks[row, [0, other]] = ranks[row, [other, 0]]
    return ranks


@pytest.mark.parametrize("draw", [opposite, cycles, ends])
@pytest.mark.parametrize("third", [True, False])
def test_it_sees_what_leaves_mean_ranks_alone(draw, third, monkeypatch):
    monkeypatch.setattr(ranknorms, "sees_everything", lambda n, m: third)
    n, m, rng = 300, 7, public_generator("a test of blind spots")
    value = residual_norm(n, m).value
    null = np.array([value(uniform_rankings(rng, n, m), ()) for _ in range(60)])
    borda = borda_norm(n, m)
    assert value(draw(n, m, rng), ()) > null.max() + 1024  # clear of noise at epsilon 1
    found = [borda.value(draw(n, m, rng), ()) for _ in range(20)]
    plain = [borda.value(uniform_rankings(rng, n, m), ()) for _ in range(20)]
    assert np.mean(found) < np.mean(plain) + 2048


# The omnibus


@pytest.mark.parametrize(("n", "m", "xi"), [(3, 3, 0.5), (4, 3, math.inf), (2, 4, 1.0)])
def test_the_omnibus_moves_by_no_more_than_its_sensitivity(n, m, xi):
    asked = ranknorms.of_rankings(n, m, xi)
    assert 500 < largest_move(asked, n, m) <= asked.sensitivity == 1026


@pytest.mark.parametrize("xi", [1.0, math.inf])
def test_pvalues_are_valid_over_tables(xi):
    # on average over tables that are drawn with the data, whatever the quantiles
    n, m, rng = 8, 3, public_generator("a test of the omnibus of rankings", 2)
    asked = ranknorms.of_rankings(n, m, xi)
    whole = asked.value.__self__
    noise = DiscreteLaplace(0.0 if math.isinf(xi) else asked.sensitivity / xi)
    drawn = np.array([asked.value(uniform_rankings(rng, n, m), ()) for _ in range(6000)])
    pvalues = []
    for place in range(0, 6000, 40):
        null = Null.of_draws(drawn[place : place + 39])
        pvalues += [null.pvalue(int(drawn[place + 39] + noise.simulate((), rng)), noise)]
    pvalues = np.array(pvalues)
    for alpha in (0.05, 0.2, 0.5):
        assert np.mean(pvalues <= alpha) <= alpha + 3 * math.sqrt(alpha / len(pvalues))
    assert _quantiles(whole).shape == (2,)


def test_the_level_is_kept_with_noise_and_without():
    n, m, rng = 20, 5, public_generator("a test of levels")
    data = [uniform_rankings(rng, n, m) for _ in range(1500)]
    for xi in (0.3, 2.0, math.inf):
        asked = ranknorms.of_rankings(n, m, xi)
        noise = DiscreteLaplace(0.0 if math.isinf(xi) else asked.sensitivity / xi)
        threshold = asked.null(2000).threshold(0.05, noise)
        level = noise.tail(threshold - np.array([asked.value(one, ()) for one in data])).mean()
        # the errors of the study and of the table
        assert level <= 0.05 + 3 * math.sqrt(0.05 * 0.95 * (1 / 1500 + 1 / 2000))


def test_quantiles_without_the_noise_share_the_level_otherwise(monkeypatch):
    # the part with the larger spread would be set back by several of its standard deviations
    n, m, xi = 40, 5, 0.25
    noisy = _quantiles(ranknorms.of_rankings(n, m, xi).value.__self__)
    monkeypatch.setattr(
        "privrank.mechanisms.categories.noisy_quantile",
        lambda draws, level, scale: np.quantile(draws, 1 - level),
    )
    plain = _quantiles(ranknorms.of_rankings(n, m, xi).value.__self__)
    table = nulls.null_draws(
        "quantiles of the omnibus of rankings against uniformity", (n, m), None, 1_999
    )
    scale = 1026 / xi
    for q, expected in ((noisy, True), (plain, False)):
        z = (q - table) / scale
        tail = np.where(z > 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z)))
        right = np.abs(tail.mean(axis=0) / [0.045, 0.005] - 1) < 0.01
        assert right.all() == expected


def test_two_items_have_an_exact_null():
    asked = ranknorms.of_rankings(30, 2, 1.0)
    assert asked.null(99).draws is None and not asked.distance
    ranks = np.array([[1, 2]] * 22 + [[2, 1]] * 8)
    assert asked.value(ranks, ()) == asked.value(3 - ranks, ()) > 0
