"""Pair counts, scores and orders against direct definitions on small and random matrices."""

import itertools

import numpy as np
import pytest

from privrank import Mallows
from privrank.consensus.orders import (
    borda,
    copeland,
    kwiksort,
    local_search,
    margins_of,
    order_of,
    weight_against,
)
from privrank.mechanisms.samples import pair_count_values


def random_ranks(rng, n, m):
    return 1 + np.argsort(rng.random((n, m)), axis=1)


def sorted_by_pivots(pairs, pivots):
    """KwikSort as it is usually written, the first pivot in the list dividing it."""
    if len(pivots) < 2:
        return list(pivots)
    pivot, *others = pivots
    ahead = [i for i in others if pairs[i, pivot] > pairs[pivot, i]]
    behind = [i for i in others if not pairs[i, pivot] > pairs[pivot, i]]
    return [*sorted_by_pivots(pairs, ahead), pivot, *sorted_by_pivots(pairs, behind)]


@pytest.mark.parametrize(("n", "m"), [(0, 3), (1, 1), (1, 5), (511, 4), (512, 4), (1300, 17)])
def test_pair_counts_are_those_of_a_broadcast_comparison(n, m):
    ranks = random_ranks(np.random.default_rng(n + m), n, m)
    expected = (ranks[:, :, None] < ranks[:, None, :]).sum(axis=0)
    np.testing.assert_array_equal(pair_count_values(ranks), expected)
    np.testing.assert_array_equal(pair_count_values(np.asfortranarray(ranks)), expected)


def test_score_is_the_mean_kendall_distance():
    rng = np.random.default_rng(1)
    ranks = random_ranks(rng, 40, 6)
    pairs = pair_count_values(ranks) / 40
    for order in itertools.permutations(range(6)):
        place = np.empty(6, dtype=int)
        place[list(order)] = np.arange(6)
        discordant = ((ranks[:, :, None] < ranks[:, None, :]) & (place[:, None] > place)).sum()
        assert weight_against(np.array(order), pairs) == pytest.approx(discordant / 40)


def test_borda_orders_by_mean_rank_and_copeland_by_majorities():
    ranks = random_ranks(np.random.default_rng(2), 101, 7)
    pairs = pair_count_values(ranks)
    # the net weight of an item is n (m + 1) less twice its total rank
    np.testing.assert_array_equal(borda(pairs), 101 * 8 - 2 * ranks.sum(axis=0))
    np.testing.assert_array_equal(borda(pairs + 5 * np.eye(7)), borda(pairs))
    wins = (pairs > pairs.T).sum(axis=1)
    np.testing.assert_array_equal(copeland(pairs), 2 * wins - 6)
    assert order_of(np.array([1.0, 3.0, 1.0, 3.0])).tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("m", [1, 2, 3, 8, 40])
def test_kwiksort_is_the_recursion(m):
    rng = np.random.default_rng(m)
    for _ in range(30):
        # small integers: many ties, and a diagonal that must not matter
        pairs = rng.integers(-2, 3, (m, m)).astype(float)
        pivots = rng.permutation(m)
        assert kwiksort(pairs, pivots).tolist() == sorted_by_pivots(pairs, pivots.tolist())


def test_kwiksort_is_exact_where_the_majorities_are_an_order():
    rng = np.random.default_rng(3)
    truth = rng.permutation(30)
    pairs = np.zeros((30, 30))
    pairs[np.ix_(truth, truth)] = np.triu(rng.random((30, 30)), 1)
    for _ in range(5):
        assert kwiksort(pairs, rng.permutation(30)).tolist() == truth.tolist()


def test_kwiksort_is_within_twice_the_optimum_of_a_profile_on_average():
    rng = np.random.default_rng(4)
    orders = np.array(list(itertools.permutations(range(5))))
    for _ in range(20):
        pairs = pair_count_values(random_ranks(rng, 5, 5))
        best = min(weight_against(order, pairs) for order in orders)
        mean = np.mean([weight_against(kwiksort(pairs, pivots), pairs) for pivots in orders])
        assert best <= mean <= 2 * best


@pytest.mark.parametrize("kind", ["ties", "real"])
def test_local_search_ends_where_no_insertion_helps(kind):
    rng = np.random.default_rng(5)
    for m in (1, 2, 6, 15):
        pairs = rng.normal(size=(m, m)) if kind == "real" else rng.integers(0, 3, (m, m))
        start = rng.permutation(m)
        order = local_search(start, pairs)
        assert sorted(order.tolist()) == list(range(m))
        score = weight_against(order, pairs)
        assert score <= weight_against(start, pairs) + 1e-12
        for place, target in itertools.product(range(m), repeat=2):
            moved = np.insert(np.delete(order, place), target, order[place])
            assert weight_against(moved, pairs) >= score - 1e-10


def test_local_search_ends_on_margins_that_rounding_spoils():
    # sums of these margins depend on the order of summation; a search without a tolerance cycles
    rng = np.random.default_rng(6)
    for _ in range(20):
        pairs = rng.integers(0, 3, (40, 40)) * 0.1 + 1e9 * rng.integers(0, 2, (40, 40))
        order = local_search(rng.permutation(40), pairs)
        assert sorted(order.tolist()) == list(range(40))


def test_orders_find_the_centre_of_many_rankings():
    rng = np.random.default_rng(7)
    center = rng.permutation(20) + 1
    pairs = pair_count_values(Mallows(20, 0.8, center=center).rvs(4000, rng))
    truth = np.argsort(center).tolist()
    assert order_of(borda(pairs)).tolist() == order_of(copeland(pairs)).tolist() == truth
    assert kwiksort(pairs, rng.permutation(20)).tolist() == truth
    assert local_search(rng.permutation(20), pairs).tolist() == truth


def test_margins_are_antisymmetric():
    pairs = np.random.default_rng(8).normal(size=(5, 5))
    np.testing.assert_array_equal(margins_of(pairs), -margins_of(pairs).T)
