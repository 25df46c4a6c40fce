"""Kemeny's order against all permutations, by each of its routes, and Gibbs draws."""

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from privrank import Mallows
from privrank.consensus import orders
from privrank.consensus.orders import borda, local_search, order_of, weight_against
from privrank.mechanisms.samples import pair_count_values
from privrank.published.agkm22 import exponential_order

ORDERS = {m: np.array(list(itertools.permutations(range(m)))) for m in range(1, 9)}


def all_scores(pairs):
    orders = ORDERS[len(pairs)]
    ahead = itertools.combinations(range(len(pairs)), 2)
    return sum((pairs[orders[:, b], orders[:, a]] for a, b in ahead), np.zeros(len(orders)))


def profile(rng, m, kind):
    if kind == "noise":
        return rng.normal(size=(m, m))
    if kind == "ties":
        return rng.integers(0, 3, (m, m)).astype(float)
    n = int(rng.integers(1, 12))
    return pair_count_values(1 + np.argsort(rng.random((n, m)), axis=1))


@pytest.mark.parametrize("kind", ["rankings", "noise", "ties"])
def test_exact_order_equals_brute_force(kind):
    rng = np.random.default_rng(1)
    for trial in range(340):
        pairs = profile(rng, 1 + trial % 7, kind)
        found = orders.kemeny(pairs)
        assert found.proven and found.bound == found.score
        assert found.score == weight_against(found.order, pairs)
        scores = all_scores(pairs)
        assert found.score == pytest.approx(scores.min(), abs=1e-12)
        assert found.several == (np.count_nonzero(scores < scores.min() + 1e-9) > 1)
    for _ in range(3):
        pairs = profile(rng, 8, kind)
        assert orders.kemeny(pairs).score == pytest.approx(all_scores(pairs).min(), abs=1e-12)


@pytest.mark.parametrize("kind", ["rankings", "noise", "ties"])
def test_integer_programme_equals_brute_force(kind, monkeypatch):
    monkeypatch.setattr(orders, "SUBSET_LIMIT", 2)
    rng = np.random.default_rng(2)
    for trial in range(60):
        pairs = profile(rng, 3 + trial % 5, kind)
        found = orders.kemeny(pairs)
        assert found.proven
        assert found.score == pytest.approx(all_scores(pairs).min(), abs=1e-5)


def test_a_programme_knows_only_that_neighbours_may_change_places(monkeypatch):
    monkeypatch.setattr(orders, "SUBSET_LIMIT", 2)
    rng, told = np.random.default_rng(4), 0
    for trial in range(60):
        pairs = profile(rng, 3 + trial % 5, "ties")
        scores = all_scores(pairs)
        known = orders.kemeny(pairs).several
        assert not known or np.count_nonzero(scores < scores.min() + 1e-9) > 1
        told += known
    assert told > 20


def test_routes_agree_where_neither_can_be_enumerated(monkeypatch):
    rng = np.random.default_rng(3)
    for _ in range(3):
        pairs = rng.normal(size=(15, 15))
        by_subsets = orders.kemeny(pairs)
        with monkeypatch.context() as patch:
            patch.setattr(orders, "SUBSET_LIMIT", 2)
            by_programme = orders.kemeny(pairs)
        assert by_subsets.proven and by_programme.proven
        assert by_programme.score == pytest.approx(by_subsets.score, abs=1e-5)
        best = min(
            weight_against(local_search(rng.permutation(15), pairs), pairs) for _ in range(20)
        )
        assert by_subsets.score <= best + 1e-12


def test_components_are_lined_up_by_strict_majorities():
    rng = np.random.default_rng(4)
    for _ in range(100):
        margins = rng.integers(-2, 5, (9, 9)).astype(float)
        margins = np.triu(margins, 1) - np.triu(margins, 1).T
        hidden = rng.permutation(9)
        margins = margins[np.ix_(hidden, hidden)]
        parts = orders._components(margins)
        assert sorted(np.concatenate(parts).tolist()) == list(range(9))
        for ahead, behind in itertools.combinations(parts, 2):
            assert (margins[np.ix_(ahead, behind)] > 0).all()


def test_many_items_that_nearly_agree_are_proven_fast():
    rng = np.random.default_rng(5)
    pairs = pair_count_values(Mallows(100, 0.95).rvs(2000, rng))
    found = orders.kemeny(pairs, time_limit=20)
    assert found.proven
    assert found.score <= weight_against(np.arange(100), pairs)


def test_out_of_time_says_how_far_it_may_be():
    pairs = np.random.default_rng(6).normal(size=(40, 40))
    found = orders.kemeny(pairs, time_limit=0.0)
    assert not found.proven and found.gap > 0
    assert sorted(found.order.tolist()) == list(range(40))
    # the bound without any triangle: each pair at its smaller weight
    least = np.triu(np.minimum(pairs, pairs.T), 1).sum()
    assert found.bound == pytest.approx(least)
    better = orders.kemeny(pairs, time_limit=0.5)
    assert better.bound >= found.bound and better.score <= found.score
    assert better.bound <= found.score
    worse = found.improved(found.order[::-1].copy(), pairs)
    assert worse is found
    assert found.improved(better.order, pairs).score == better.score


def test_diagonal_and_scale_do_not_matter():
    rng = np.random.default_rng(7)
    pairs = rng.normal(size=(7, 7))
    order = orders.kemeny(pairs).order
    for other in (pairs + 9 * np.eye(7), 1e-12 * pairs, 1e12 * pairs, pairs + pairs.T + pairs):
        assert orders.kemeny(other).order.tolist() == order.tolist()
    assert orders.kemeny(np.zeros((25, 25))).score == 0


@pytest.mark.parametrize("rate", [0.0, 0.3, 5.0])
def test_gibbs_draws_follow_their_distribution(rate):
    rng = np.random.default_rng(8)
    pairs = rng.normal(size=(4, 4))
    weight = np.exp(-rate * all_scores(pairs))
    draws = [exponential_order(pairs, rate, rng.random(4)) for _ in range(6000)]
    orders = [tuple(order) for order in ORDERS[4].tolist()]
    seen = np.zeros(24)
    for order in draws:
        seen[orders.index(tuple(order.tolist()))] += 1
    expected = 6000 * weight / weight.sum()
    rare = expected < 5
    if rare.any():
        seen = np.append(seen[~rare], seen[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    assert chisquare(seen, expected).pvalue > 1e-3


def test_gibbs_loss_on_unanimous_rankings_is_nearly_epsilon():
    # the factor 2 in rate = epsilon / (2 D) is needed: replacing one of many equal rankings by
    # its reversal costs nearly all of epsilon already at four items
    m, n, epsilon = 4, 500, 1.0
    ranks = np.tile(np.arange(1, m + 1), (n, 1))
    other = ranks.copy()
    other[0] = other[0, ::-1]
    rate = epsilon / (m * (m - 1))
    logs = [-rate * all_scores(pair_count_values(r)) for r in (ranks, other)]
    logs = [log - np.logaddexp.reduce(log) for log in logs]
    loss = np.abs(logs[0] - logs[1]).max()
    assert 0.99 * epsilon < loss <= epsilon


def test_gibbs_draws_of_many_rankings_are_the_best_order():
    pairs = pair_count_values(Mallows(12, 0.7).rvs(3000, np.random.default_rng(9)))
    order = exponential_order(pairs, 1.0, np.full(12, 0.5))
    assert order.tolist() == order_of(-np.arange(12.0)).tolist()


def test_large_components_are_left_to_local_search(monkeypatch):
    noise = np.random.default_rng(8).normal(size=(102, 102))
    found = []
    monkeypatch.setattr(orders, "milp", lambda *a, **k: found.append(1))
    best = orders.kemeny(noise)
    assert not found and not best.proven
    assert best.score < weight_against(order_of(borda(noise)), noise)
    assert best.bound == pytest.approx(np.triu(np.minimum(noise, noise.T), 1).sum())
