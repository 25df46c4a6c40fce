"""KwikSort with noisy answers: the cap is global, its probability exact, its privacy adds up."""

import itertools
import math

import numpy as np
import pytest

from privrank import Mallows
from privrank.consensus.orders import kwiksort
from privrank.mechanisms.aggregation import pair_counts
from privrank.plans.aggregation import hay_cap, query_cap
from privrank.privacy.noise import DiscreteLaplace
from privrank.published.agkm22 import noisy_kwiksort


def exact(values):
    return values


def test_without_noise_it_is_kwiksort():
    rng = np.random.default_rng(1)
    for m in (1, 2, 5, 12):
        counts = pair_counts(1 + np.argsort(rng.random((31, m)), axis=1))
        pivots = rng.permutation(m)
        found = noisy_kwiksort(counts, 31, pivots, m * m, exact)
        assert found[2] and found[0].tolist() == kwiksort(counts, pivots).tolist()


@pytest.mark.parametrize("m", [4, 9, 16])
def test_the_cap_holds_for_the_whole_recursion(m):
    # answers at random, so that both parts of every list go on asking
    rng = np.random.default_rng(m)
    counts = np.full((m, m), 50)
    for cap in range(0, m * (m - 1) // 2 + 1, 3):
        for _ in range(20):
            asked = []

            def noisy(values, asked=asked):
                asked.append(len(values))
                return values + rng.integers(-9, 10, len(values))

            pivots = rng.permutation(m)
            found = noisy_kwiksort(counts, 100, pivots, cap, noisy)
            assert found[1] == sum(asked) <= cap
            assert sorted(found[0].tolist()) == list(range(m))
    # as many queries as pairs are never exceeded
    assert found[2] or cap < m * (m - 1) // 2


def transcript_loss(answers, cap, scale, neighbours, pivots):
    """Log density ratio of one transcript of a run between two samples, and if it finished."""
    distribution = DiscreteLaplace(scale)

    def noisy_on(counts):
        given = iter(answers)
        logs = []

        def noisy(values):
            drawn = np.array([next(given) for _ in values])
            logs.append(np.log(distribution.pmf(drawn - values)).sum())
            return drawn

        found = noisy_kwiksort(counts, 20, pivots, cap, noisy)
        return sum(logs), found

    (first, found), (second, _) = (noisy_on(counts) for counts in neighbours)
    return first - second, found


def test_transcript_and_replacement_have_to_share_epsilon():
    # One ranking reversed: each count asked for moves by 1, and so do all six of the replacement.
    epsilon, m, cap = 1.0, 4, 5
    ranks = np.tile(np.arange(1, 5), (20, 1))
    other = ranks.copy()
    other[0] = other[0, ::-1]
    neighbours = pair_counts(ranks), pair_counts(other)
    pivots = np.arange(m)
    # item 0 first, item 1 second: 3 + 2 queries, all answered "behind", and the last is refused
    answers = [-5, -5, -5, -5, -5]
    queried, found = transcript_loss(answers, cap, cap / epsilon, neighbours, pivots)
    assert not found[2] and found[1] == 5
    assert abs(queried) == pytest.approx(epsilon)
    replacement = DiscreteLaplace(6 / (epsilon / 2))
    far = replacement.pmf(np.array([40])) / replacement.pmf(np.array([41]))
    replaced = 6 * math.log(far[0])
    assert replaced == pytest.approx(epsilon / 2)
    # queries at all of epsilon and the replacement at half of it: 1.5 epsilon together
    assert abs(queried) + replaced == pytest.approx(1.5 * epsilon)
    # with a share s for the replacement the two add up to epsilon
    for share in (0.05, 0.5):
        queried, _ = transcript_loss(answers, cap, cap / (1 - share), neighbours, pivots)
        replaced = 6 * math.log(
            DiscreteLaplace(6 / share).pmf(np.array([40]))[0]
            / DiscreteLaplace(6 / share).pmf(np.array([41]))[0]
        )
        assert abs(queried) + replaced == pytest.approx(1.0)


def test_no_transcript_loses_more_than_epsilon():
    epsilon, cap = 0.8, 3
    rng = np.random.default_rng(2)
    for _ in range(200):
        ranks = 1 + np.argsort(rng.random((20, 4)), axis=1)
        other = ranks.copy()
        other[0] = 1 + np.argsort(rng.random(4))
        neighbours = pair_counts(ranks), pair_counts(other)
        answers = rng.integers(-10, 30, 20).tolist()
        loss, _ = transcript_loss(answers, cap, cap / epsilon, neighbours, rng.permutation(4))
        assert abs(loss) <= epsilon * (1 + 1e-12)


def comparisons(m):
    """Exact distribution of KwikSort's queries on a transitive tournament."""
    distributions = [np.ones(1), np.ones(1)]
    for size in range(2, m + 1):
        distribution = np.zeros(size * (size - 1) // 2 + 1)
        for d in range(size):
            part = np.convolve(distributions[d], distributions[size - 1 - d]) / size
            distribution[size - 1 : size - 1 + len(part)] += part
        distributions.append(distribution)
    return distributions[m]


@pytest.mark.parametrize("m", [15, 30, 45])
def test_query_cap_covers_the_exact_distribution(m):
    failure = float(m) ** -4
    cap = query_cap(m, failure)
    distribution = comparisons(m)
    assert distribution[cap + 1 :].sum() <= failure
    exact_cap = int(np.argmax(np.cumsum(distribution[::-1])[::-1] <= failure)) - 1
    assert exact_cap <= cap <= 1.09 * exact_cap


def test_query_cap_holds_for_every_tournament_of_five_items():
    # every tournament by its distribution of queries under all pivot orders
    m, pairs = 5, list(itertools.combinations(range(5), 2))
    orders = [np.array(order) for order in itertools.permutations(range(m))]
    worst = np.zeros(11)
    rng = np.random.default_rng(3)
    for bits in rng.choice(2 ** len(pairs), 60, replace=False):
        counts = np.zeros((m, m), dtype=np.int64)
        for place, (i, j) in enumerate(pairs):
            counts[(i, j) if bits >> place & 1 else (j, i)] = 1
        asked = [noisy_kwiksort(counts, 1, order, 99, exact)[1] for order in orders]
        tail = np.cumsum(np.bincount(asked, minlength=11)[::-1])[::-1] / len(orders)
        worst = np.maximum(worst, tail)
    for failure in (0.05, 0.3, 0.6):
        cap = query_cap(m, failure)
        assert cap >= 10 or worst[cap + 1] <= failure


def test_caps():
    assert [hay_cap(m) for m in (2, 4, 10)] == [1, 6, 30]
    assert query_cap(10, 1e-4) == 45
    assert [query_cap(m, m**-4.0) for m in (15, 30, 100)] == [94, 272, 1360]


def test_accurate_answers_find_the_centre():
    rng = np.random.default_rng(4)
    counts = pair_counts(Mallows(10, 0.6).rvs(20_000, rng))
    noise = DiscreteLaplace(45 / 2.0)
    found = noisy_kwiksort(
        counts, 20_000, rng.permutation(10), 45, lambda values: noise.draw(values, rng)
    )
    assert found[0].tolist() == list(range(10))
