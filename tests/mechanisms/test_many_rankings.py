"""Many rankings: features in the place of a kernel matrix, norms at their limit."""

import math

import numpy as np
import pytest
from scipy.stats import kstest

from privrank.hypotheses.nulls import are_many, uniform_rankings
from privrank.mechanisms import permutation
from privrank.mechanisms.capped import capped_norm
from privrank.mechanisms.permutation import (
    Features,
    deal,
    gram_blocks,
    gram_of,
    kernel_distance,
    kernel_products,
)
from privrank.mechanisms.ranknorms import Limit, plain_norm, residual_norm, sees_everything
from privrank.plans.samples import (
    DIAMETER,
    LARGEST_GRAM,
    MAX_FEATURED,
    comparison_of,
    mean_sensitivity,
    plan_comparison,
)
from privrank.release.survey import Sample
from privrank.util.arrays import orders_of


def one_kind_each(sizes):
    """Each respondent as a kind of its own."""
    counts = np.zeros((len(sizes), sum(sizes)), dtype=np.int64)
    counts[np.repeat(np.arange(len(sizes)), sizes), np.arange(sum(sizes))] = 1
    return counts


def squared_lengths(ranks, kernel):
    """The squared distance of the features of the first ranking from those of each other one."""
    found = []
    for other in ranks[1:]:
        pair = np.stack([ranks[0], other])
        table = np.eye(2, dtype=np.int32)[None]
        found.append(kernel_products(table, Features(pair, kernel))[0, 0, 0])
    return np.array(found)


@pytest.mark.parametrize("m", [3, 7, 10])
@pytest.mark.parametrize("kernel", ["kendall", "mallows"])
def test_features_lengthen_no_difference(m, kernel):
    rng = np.random.default_rng(m)
    first = uniform_rankings(rng, 1, m)[0]
    # the reverse is the farthest there is, and an equal ranking the nearest
    ranks = np.concatenate([[first, m + 1 - first, first], uniform_rankings(rng, 60, m)])
    squares = squared_lengths(ranks, kernel)
    exact = np.concatenate([block for _, block in gram_blocks(ranks[:1], kernel)])
    assert exact[0, 0] == 1.0
    tau = 1.0 - 4.0 * discordant(ranks[0], ranks[1:]) / (m * (m - 1))
    expected = 2.0 - 2.0 * (tau if kernel == "kendall" else np.exp(tau - 1.0))
    assert (squares <= expected + 1e-12).all()
    assert squares.max() <= DIAMETER[kernel] ** 2 + 1e-12 and abs(squares[1]) < 1e-12
    if kernel == "kendall":
        assert squares == pytest.approx(expected, abs=1e-12)
    if m == 3:  # all orders are landmarks, and nothing is left out
        assert squares == pytest.approx(expected, abs=1e-7)


def discordant(first, others):
    """Kendall distances, pair by pair."""
    a, b = np.triu_indices(len(first), 1)
    ahead = first[a] < first[b]
    return ((others[:, a] < others[:, b]) != ahead).sum(axis=1)


def test_a_replaced_ranking_moves_the_distance_by_at_most_the_sensitivity():
    rng, sizes, m = np.random.default_rng(2), (5, 8), 8
    delta = mean_sensitivity(sizes, DIAMETER["mallows"])
    tables = deal(one_kind_each(sizes), 40, rng)
    largest = 0.0
    for draw in range(60):
        ranks = uniform_rankings(rng, 13, m)
        if draw == 0:  # the worst case there is: all at one end, and one goes to the other
            ranks[:5], ranks[5:] = 1 + np.arange(m), m - np.arange(m)
        other = ranks.copy()
        other[draw % 13] = m + 1 - ranks[draw % 13]
        both = [kernel_distance(tables, Features(some, "mallows")) for some in (ranks, other)]
        largest = max(largest, float(np.abs(both[0] - both[1]).max()))
    assert 0.3 * delta < largest <= delta


def test_a_kernel_matrix_of_few_and_features_of_many(monkeypatch):
    ranks = uniform_rankings(np.random.default_rng(3), 40, 7)
    assert isinstance(gram_of(ranks, "mallows"), list)
    monkeypatch.setattr(permutation, "MAX_MATRIX", 39)
    assert isinstance(gram_of(ranks, "mallows"), Features)
    # one feature for each pair of items: of many items the matrix is the smaller one
    many = uniform_rankings(np.random.default_rng(3), 40, MAX_FEATURED + 1)
    assert isinstance(gram_of(many, "mallows"), list)


def test_too_many_rankings_for_a_matrix_are_refused():
    def plan(n, m):
        groups = (("a", n // 2), ("b", n - n // 2))
        sample = Sample("rankings", tuple(map(str, range(m))), n, "row", 1, groups=groups)
        test = {"method": "auto", "alpha": 0.05, "permutations": 99}
        return plan_comparison(sample, comparison_of("auto", sample), 1.0, 0.0, **test)

    plan(LARGEST_GRAM, MAX_FEATURED + 1)
    plan(10**6, MAX_FEATURED)
    with pytest.raises(ValueError, match="at most 20,000 in all, and these are 20,001"):
        plan(LARGEST_GRAM + 1, MAX_FEATURED + 1)


def test_features_tell_what_the_matrix_tells():
    rng, sizes, m = np.random.default_rng(4), (150, 100, 150), 8
    ranks = uniform_rankings(rng, sum(sizes), m)
    tables = np.concatenate([one_kind_each(sizes)[None], deal(one_kind_each(sizes), 99, rng)])
    exact = kernel_products(tables, list(gram_blocks(ranks, "mallows")))
    found = kernel_products(tables, Features(ranks, "mallows"))
    diagonal = np.arange(2)
    assert (found[:, diagonal, diagonal] <= exact[:, diagonal, diagonal] + 1e-12).all()
    ours, theirs = found[:, 0, 0], exact[:, 0, 0]
    assert np.corrcoef(ours, theirs)[0, 1] > 0.99


def test_labels_of_very_many_are_dealt_with_the_sizes_kept(monkeypatch):
    monkeypatch.setattr(permutation, "LARGEST_SHUFFLE", 20)
    counts = one_kind_each((10, 15))
    for rng in (np.random.default_rng(5), None):
        tables = deal(counts, 400, rng)
        assert (tables.sum(axis=1) == 1).all() and (tables.sum(axis=2) == [10, 15]).all()
        # each is in the first sample in .4 of them: five standard errors
        assert np.abs(tables[:, 0].mean(axis=0) - 0.4).max() < 5 * math.sqrt(0.24 / 400)


@pytest.mark.parametrize("m", [3, 4])
def test_counts_give_the_norms_of_the_rankings_that_they_count(m):
    limit, rng = Limit(500, m), np.random.default_rng(m)
    counts = limit.sample(rng)
    ranks = np.repeat(orders_of(m), counts, axis=0)
    assert limit.borda(counts, ()) == plain_norm(500, m).value(ranks, ())
    assert limit.residual(counts, ()) == residual_norm(500, m).value(ranks, ())


@pytest.mark.parametrize("m", [7, 12])
def test_norms_of_many_rankings_have_their_limit(m):
    n, rng = 3_000, np.random.default_rng(m)
    assert not sees_everything(n, m)
    limit = Limit(n, m)
    draws = [limit.sample(rng) for _ in range(4_000)]
    samples = [uniform_rankings(rng, n, m) for _ in range(400)]
    for statistic, at_limit in ((plain_norm, limit.borda), (residual_norm, limit.residual)):
        value = statistic(n, m).value
        found = [value(ranks, ()) for ranks in samples]
        assert kstest(found, [at_limit(one, ()) for one in draws]).pvalue > 1e-3


def test_where_the_limit_is_taken_the_norms_are_those_it_is_of():
    for m in (3, 7, 10, 20, 50, 200, 1_000):
        n = next(n for n in range(1_000 * m, 10**8, 1_000) if are_many(n, m))
        assert capped_norm(n, m) is None
        assert sees_everything(n, m) == (m <= 6)
        assert not are_many(999 * m, m)
