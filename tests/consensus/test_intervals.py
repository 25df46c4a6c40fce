"""Intervals of ranks: they hold for any distribution of rankings, and say much where they can."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import privrank as pr
from privrank.consensus.statements import (
    fraction_interval,
    rank_threshold,
    score_half_width,
    score_interval,
)
from privrank.hypotheses import tails
from privrank.hypotheses.tails import difference_variance, half_width, simulated
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace

NOTHING = DiscreteLaplace(0.0)


def distributions(m, epsilon):
    """Every distribution of a release of scores: its step, and whether it is in pair counts."""
    pairs = m * (m - 1) // 2
    body = PermutohedronNoise.calibrate(m, epsilon)
    return {
        "none": (NOTHING, 1.0, True),
        "cube": (CubeNoise.calibrate(pairs, 1, epsilon), 1.0, True),
        "Laplace": (DiscreteLaplace.calibrate(pairs, epsilon), 1.0, True),
        "Gaussian pairs": (DiscreteGaussian(4.0 * math.sqrt(pairs) / epsilon), 1.0, True),
        "K-norm": (body, 1.0 / body.fineness, False),
        "Gaussian totals": (DiscreteGaussian(4.0 * math.sqrt(m**3 / 3) / epsilon), 1.0, False),
    }


def score_noise(distribution, m, pairs, draws, rng):
    """Noise of Borda totals: row sums of independent noise, or the noise of the totals."""
    if not pairs:
        return simulated(distribution, (draws, m), rng)
    table = np.zeros((draws, m, m))
    first, second = np.triu_indices(m, 1)
    table[:, first, second] = simulated(distribution, (draws, len(first)), rng)
    return table.sum(axis=2) - table.sum(axis=1)


def surveys(m):
    """Distributions in which items tie: who may be wrong, and how often."""
    up = np.arange(1, m + 1)

    def coin(n, rng):  # a ranking or its reverse
        return np.where(rng.random((n, 1)) < 0.5, up, up[::-1])

    def ends(n, rng):  # two items at the two ends, the others anywhere between
        inner = rng.permuted(np.tile(np.arange(2, m), (n, 1)), axis=1)
        first = np.where(rng.random((n, 1)) < 0.5, 1, m)
        return np.hstack((first, m + 1 - first, inner))

    def turned(n, rng):  # a circle: every item at every place as often
        return (up - 1 + rng.integers(0, m, (n, 1))) % m + 1

    def uniform(n, rng):
        return rng.permuted(np.tile(up, (n, 1)), axis=1)

    return {"coin": coin, "ends": ends, "turned": turned, "uniform": uniform}


@pytest.mark.parametrize("target", ["population", "sample"])
@pytest.mark.parametrize("name", distributions(3, 1.0))
@pytest.mark.parametrize("m", [2, 5, 12])
def test_no_pair_is_stated_wrongly_more_often_than_allowed(m, name, target):
    rng, n, runs = np.random.default_rng(m), 50, 400
    distribution, step, pairs = distributions(m, 0.5)[name]
    gap = rank_threshold(distribution, step, m, n, 0.05, target, pairs)
    for survey, draw in surveys(m).items():
        ranks = np.array([draw(n, rng).mean(axis=0) for _ in range(runs)])
        off = ranks if target == "population" else 0.0
        off = off + score_noise(distribution, m, pairs, runs, rng) * (step / n)
        wrong = np.ptp(off, axis=1) > gap + 1e-9 if np.ndim(off) else np.zeros(runs)
        # all items have one mean rank; in the sample, the range of the noise alone decides
        assert np.mean(wrong) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs), survey


@pytest.mark.parametrize("name", distributions(3, 1.0))
def test_intervals_of_the_sample_hold_and_are_not_much_wider_than_they_have_to_be(name):
    distribution, step, pairs = distributions(6, 0.5)[name]
    gap = rank_threshold(distribution, step, 6, 100, 0.1, "sample", pairs)
    noise = score_noise(distribution, 6, pairs, 20_000, np.random.default_rng(3)) * (step / 100)
    if name == "none":
        assert gap == 0.0
    else:
        assert 0.05 < np.mean(np.ptp(noise, axis=1) > gap) < 0.105


def test_a_fair_coin_between_a_ranking_and_its_reverse_is_the_worst_survey():
    """The sum over pairs of the normal tails is largest there, and there it is alpha."""
    m, n = 9, 400
    gap = rank_threshold(NOTHING, 1.0, m, n, 0.05, "population", True)

    def total(ranks):
        """The tails of all pairs for a uniform draw of these rankings and their reverses."""
        apart = np.square(ranks[:, :, None] - ranks[:, None, :]).mean(axis=0)
        spread = np.sqrt(apart[np.triu_indices(m, 1)] / n)
        lowered = gap - spread / math.sqrt(n)
        return float(2.0 * ndtr(-lowered / np.maximum(spread, 1e-12)).sum())

    up = np.arange(1, m + 1)[None]
    assert total(up) == pytest.approx(0.05, rel=2e-3)
    rng = np.random.default_rng(2)
    for count in (1, 2, 3, 10, 100):
        ranks = rng.permuted(np.tile(up, (count, 1)), axis=1)
        assert total(ranks) <= 0.05 * 1.002
        # and for means of rankings, and lists with shared ranks
        means = 0.5 * (ranks + rng.permuted(ranks, axis=1))
        assert total(means) < 0.05


@pytest.mark.parametrize("m", [3, 6, 15])
@pytest.mark.parametrize("name", distributions(3, 1.0))
def test_variances_of_differences_are_those_of_the_noise(m, name):
    distribution, _, pairs = distributions(m, 0.7)[name]
    noise = score_noise(distribution, m, pairs, 8000, np.random.default_rng(1))
    found = np.mean([(noise[:, i] - noise[:, j]).var() for i in range(m) for j in range(i)])
    assert found == pytest.approx(difference_variance(distribution, m, pairs), rel=0.05)


def test_thresholds_fall_with_alpha_and_units_and_grow_with_noise():
    distribution = CubeNoise.calibrate(45, 1, 1.0)
    gaps = [
        rank_threshold(distribution, 1.0, 10, 500, a, "population", True) for a in (0.01, 0.1, 0.5)
    ]
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] > 0
    units = [
        rank_threshold(distribution, 1.0, 10, n, 0.05, "population", True) for n in (100, 1000)
    ]
    assert units[1] < 0.5 * units[0]
    plain = rank_threshold(NOTHING, 1.0, 10, 500, 0.05, "population", True)
    assert plain < rank_threshold(distribution, 1.0, 10, 500, 0.05, "population", True)


@pytest.mark.parametrize("options", [{}, {"delta": 1e-6}, {"delta": 1e-6, "releases": "pairs"}])
def test_most_pairs_of_forty_items_are_in_an_order(options):
    ranks = pr.Mallows(40, 0.95).rvs(3000, np.random.default_rng(4))
    fit = pr.PrivateRankAggregation(ranks).fit(1.0, rng=np.random.default_rng(5), **options)
    bounds = fit.rank_conf_int()
    assert (40 - bounds["upper"]).sum() > 0.6 * 780
    assert (bounds["lower"] - 1).sum() == (40 - bounds["upper"]).sum()
    k = np.arange(1, 41)
    assert (bounds["lower"] <= k).all() and (k <= bounds["upper"]).all()
    assert list(bounds.index) == list(fit.items) and list(bounds) == ["lower", "upper"]
    wider = fit.rank_conf_int(0.001)
    assert (wider["lower"] <= bounds["lower"]).all() and (wider["upper"] >= bounds["upper"]).all()


def test_equal_scores_are_in_no_order_even_without_noise():
    ranks = np.array([[1, 2, 3], [3, 2, 1]] * 7)
    fit = pr.PrivateRankAggregation(ranks).fit(np.inf, target="sample")
    assert fit.rank_conf_int().to_numpy().tolist() == [[1, 3]] * 3


def test_half_the_noise_is_noticed(monkeypatch):
    distribution, step, pairs = distributions(6, 0.5)["K-norm"]
    honest = score_noise(distribution, 6, pairs, 4000, np.random.default_rng(3)) * (step / 100)
    monkeypatch.setattr(tails, "permutohedra", lambda m, f=tails.permutohedra: f(m) / 2)
    tails._body_differences.cache_clear()
    rank_threshold.cache_clear()
    gap = rank_threshold(distribution, step, 6, 100, 0.05, "sample", pairs)
    tails._body_differences.cache_clear()
    rank_threshold.cache_clear()
    assert np.mean(np.ptp(honest, axis=1) > gap) > 0.2


def test_scores_of_two_values_are_covered_without_noise():
    """All values are 0 or the largest: the variance is its bound, and enumeration exact."""
    n, hits, largest = 40, np.arange(41), 6.0
    low, high = score_interval(largest * hits / n, 0.0, largest, n, 0.05, "population")
    for share in np.arange(2, 39) / n:
        inside = (low <= largest * share) & (largest * share <= high)
        assert binom.pmf(hits, n, share)[inside].sum() >= 0.925
    same = score_interval(3.0, 0.5, largest, n, 0.05, "sample")
    assert same == pytest.approx((2.5, 3.5))


@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_noise_of_a_score_is_within_its_half_width_as_often_as_said(m, epsilon):
    # the normal quantile is exceeded in up to .10 here: few steps, or heavy tails
    rng, most = np.random.default_rng(7), 0.05 + 4 * math.sqrt(0.05 * 0.95 * 3.5e-5)
    for distribution, _, pairs in distributions(m, epsilon).values():
        size = np.abs(score_noise(distribution, m, pairs, 40_000, rng)[:, 0])
        half = score_half_width(distribution, m, 0.05, pairs)
        assert np.mean(size > half) <= most
        assert (
            half == 0.0 if distribution.variance == 0 else np.mean(size > 0.9 * half - 1.5) > 0.05
        )


@pytest.mark.parametrize("coordinates", [1, 3])
@pytest.mark.parametrize("n", [7, 40, 300])
def test_fractions_at_the_ends_of_their_interval_are_inside(n, coordinates):
    distribution = CubeNoise.calibrate(3, 1, 4.0)
    reach = int(half_width(distribution, 0.05, coordinates))
    counts = np.repeat(np.arange(n + 1), 2 * reach + 1)
    noise = np.tile(np.arange(-reach, reach + 1), n + 1)
    low, high = fraction_interval(
        (counts + noise) / n, distribution, 1 / n, n, 0.05, "sample", coordinates
    )
    assert ((low <= counts / n) & (counts / n <= high)).all()
