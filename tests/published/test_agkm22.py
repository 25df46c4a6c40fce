"""KwikSort with noisy answers: the cap is global, its probability exact, its privacy adds up."""

import math

import numpy as np
import pytest

from privrank import Budget, Mallows, PrivateRankAggregation, from_json
from privrank.consensus.orders import kwiksort
from privrank.mechanisms.samples import pair_count_values
from privrank.plans.aggregation import plan_aggregation, sort_cap
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.published.agkm22 import noisy_kwiksort
from privrank.release.names import FALLBACK, QUERIES
from privrank.release.survey import Sample


def exact(values):
    return values


def test_without_noise_it_is_kwiksort():
    rng = np.random.default_rng(1)
    for m in (1, 2, 5, 12):
        counts = pair_count_values(1 + np.argsort(rng.random((31, m)), axis=1))
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
    neighbours = pair_count_values(ranks), pair_count_values(other)
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
        neighbours = pair_count_values(ranks), pair_count_values(other)
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


@pytest.mark.parametrize("m", [8, 15, 30, 45])
def test_hardly_any_sort_exceeds_its_cap(m):
    assert comparisons(m)[sort_cap(m) + 1 :].sum() <= 1 / 900_000


def test_caps():
    hay = [
        plan_aggregation(
            Sample("rankings", tuple(map(str, range(m))), 9, "row", 1), 1.0, 0.0, "kwiksort-hay"
        )
        for m in (2, 4, 10)
    ]
    assert [plan.number("cap") for plan in hay] == [1, 6, 30]
    assert [sort_cap(m) for m in (2, 10, 15, 30, 100)] == [1, 45, 102, 256, 1152]


def test_accurate_answers_find_the_centre():
    rng = np.random.default_rng(4)
    counts = pair_count_values(Mallows(10, 0.6).rvs(20_000, rng))
    noise = DiscreteLaplace(45 / 2.0)
    found = noisy_kwiksort(
        counts, 20_000, rng.permutation(10), 45, lambda values: noise.draw(values, rng)
    )
    assert found[0].tolist() == list(range(10))


def renyi(one, other, order):
    """Renyi divergence of two distributions on the same points."""
    return np.log((one**order * other ** (1.0 - order)).sum()) / (order - 1.0)


@pytest.mark.parametrize("method", ["kwiksort", "kwiksort-hay"])
def test_a_sort_with_gaussian_noise_states_what_its_answers_lose_together(method):
    ranks = Mallows(20, 0.8).rvs(40, np.random.default_rng(3))
    fit = PrivateRankAggregation(ranks).fit(0.5, 1e-7, method=method)
    plan = fit.release.plan
    assert from_json(fit.to_json()).release.plan.rho == plan.rho
    scale, asked = plan.parts[QUERIES].noise.scale, plan.settings["cap"]
    assert isinstance(plan.parts[QUERIES].noise, DiscreteGaussian)
    points = np.arange(-12 * int(scale), 12 * int(scale) + 1)
    gauss = [np.exp(-((points - moved) ** 2) / (2.0 * scale**2)) for moved in (0, 1)]
    answer = [weights / weights.sum() for weights in gauss]
    for order in (1.5, 2.0, 8.0):
        loss = asked * renyi(*answer, order)
        if FALLBACK in plan.parts:  # the worst of all pure losses of this epsilon: one bit
            likely = 1.0 / (1.0 + math.exp(-plan.parts[FALLBACK].epsilon))
            bit = np.array([likely, 1.0 - likely])
            loss += renyi(bit, bit[::-1], order)
        assert loss <= plan.rho * order * (1.0 + 1e-9)
        assert loss > 0.9 * plan.rho * order or FALLBACK in plan.parts
    budget = Budget(
        epsilon=2.0, delta=1e-6, unit="row", pure=0.5
    )  # which takes no other fit with a delta
    PrivateRankAggregation(ranks).fit(0.5, 1e-7, method=method, budget=budget)
    assert budget.spendings[0].rho == plan.rho
