"""Scores whose spacing is learnt: the chain against integration, and whether it is calibrated."""

import numpy as np
import pytest
from scipy.special import chdtrc, expit, ndtr

from privrank.consensus import statements
from privrank.consensus.bayes import fit_scores
from privrank.consensus.spacing import SHAPES, WIDEST, score_draws
from privrank.consensus.statements import chances, reliability, reliable_from


def with_noise(surface, sd, rng):
    upper = np.triu(rng.normal(scale=sd, size=surface.shape), 1)
    return surface + upper - upper.T


def surface(scores):
    return expit(scores[:, None] - scores)


def by_integration(fractions, variance, draws):
    """Return P(i before j) and the scores' median variance, by weighting draws of the prior."""
    rng, m = np.random.default_rng(4), len(fractions)
    share = rng.random(draws)
    mean, shape = WIDEST * share**2, np.array(SHAPES)[rng.integers(len(SHAPES), size=draws)]
    gaps = rng.gamma(shape[:, None], (mean / shape)[:, None], (draws, m - 1))
    scores = rng.permuted(np.cumsum(np.insert(gaps, 0, 0.0, axis=1), axis=1), axis=1)
    # the density of the mean is drawn as 1 / sqrt(mean), and is in proportion to it
    log = 1.5 * np.log(mean)
    for i in range(m):
        for j in range(i):
            log -= (fractions[i, j] - expit(scores[:, i] - scores[:, j])) ** 2 / (2 * variance)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    ahead = np.array(
        [[weight[scores[:, i] > scores[:, j]].sum() for j in range(m)] for i in range(m)]
    )
    spread = scores.var(axis=1)
    rising = np.argsort(spread)
    return ahead, float(spread[rising][np.searchsorted(np.cumsum(weight[rising]), 0.5)])


@pytest.mark.parametrize(("m", "variance", "seed"), [(4, 0.02, 1), (4, 0.1, 2), (5, 0.02, 3)])
def test_the_chain_has_the_law_of_its_model(m, variance, seed):
    rng = np.random.default_rng(seed)
    true = rng.normal(scale=0.5, size=m)
    fractions = with_noise(surface(true), np.sqrt(variance), rng)
    ahead, spread = by_integration(fractions, variance, 1_500_000)
    draws = score_draws(fractions, fit_scores(fractions, variance), variance)
    found = (draws[:, :, None] > draws[:, None, :]).mean(axis=0)
    np.testing.assert_allclose(found, ahead, atol=0.03)
    assert (draws.var(axis=1) < spread).mean() == pytest.approx(0.5, abs=0.04)


def test_draws_follow_the_items_and_nothing_else():
    rng = np.random.default_rng(5)
    true = rng.normal(scale=0.4, size=7)
    fractions = with_noise(surface(true), 0.05, rng)
    scores = fit_scores(fractions, 0.05**2)
    draws = score_draws(fractions, scores, 0.05**2)
    np.testing.assert_array_equal(draws, score_draws(fractions, scores, 0.05**2))
    order = rng.permutation(7)
    moved = score_draws(fractions[np.ix_(order, order)], scores[order], 0.05**2)
    np.testing.assert_allclose(moved, draws[:, order], atol=1e-9)


@pytest.mark.parametrize("target", ["population", "sample"])
def test_ends(target):
    """Unanimous rankings are ordered rightly, and items alike are not ordered at all."""
    unanimous, alike = np.triu(np.ones((6, 6)), 1) + 0.5 * np.eye(6), np.full((6, 6), 0.5)
    sure = chances(unanimous, 0.05**2, 500, target)
    assert sure[np.triu_indices(6, 1)].min() > 0.99
    assert np.abs(chances(alike, 0.05**2, 500, target) - 0.5).max() < 0.05


@pytest.mark.parametrize("m", [10, 45, 100])
def test_turned_round_fractions_have_turned_round_chances(m):
    """Up to the chain's Monte Carlo error, which is stated."""
    rng = np.random.default_rng(m)
    fractions = with_noise(surface(rng.normal(scale=0.2, size=m)), 0.1, rng)
    found = chances(fractions, 0.01, 1000, "sample")
    change = found - chances(fractions.T, 0.01, 1000, "sample").T
    assert np.sqrt((change**2).mean()) < 0.03 and np.abs(change).max() < 0.2
    unanimous = np.triu(np.ones((m, m)), 1) + 0.5 * np.eye(m)
    sure = chances(with_noise(unanimous, 0.05, rng), 0.05**2, 1000, "population")
    assert sure[np.triu_indices(m, 1)].min() > 0.95


@pytest.mark.parametrize("target", ["population", "sample"])
def test_what_deviations_say_is_that_of_integration(target, monkeypatch):
    """With the scores held where they are, over a fine grid of the deviations' size."""
    rng, m, n, v = np.random.default_rng(9), 6, 400, 0.04**2
    fractions = with_noise(surface(rng.normal(scale=0.2, size=m)), 0.07, rng)
    fitted = fit_scores(fractions, v)
    monkeypatch.setattr(statements, "score_draws", lambda f, scores, t: np.tile(scores, (4000, 1)))
    found = chances(fractions, v, n, target)
    first, second = np.triu_indices(m, 1)
    fit = surface(fitted)[first, second]
    rest = fractions[first, second] - fit
    t = v + (target == "population") * (fit * (1 - fit)).mean() / n / 3
    s = np.arange(0.0005, 0.5, 0.0005)
    weight = (s**2 + t) ** (-(m - 1) * (m - 2) / 4) * np.exp(-(rest @ rest) / 2 / (s**2 + t))
    weight /= 1 + (s / 0.02) ** 2
    kept = (s**2 / (s**2 + t))[:, None]
    expected = ndtr((fit - 0.5 + kept * rest) / np.sqrt(kept * t * (1 - 2 / m)))
    expected = weight @ expected / weight.sum()
    np.testing.assert_allclose(found[first, second], expected, atol=0.01)


def calibration(draw, sd, target="sample"):
    """Return by how much chances, where shown, are above the share that is right, in three bins."""
    rng, stated, right = np.random.default_rng(6), [], []
    for _ in range(250):
        true = draw(rng)
        noisy = with_noise(true, sd, rng)
        if reliability(noisy, sd**2, 1000, target) < reliable_from(len(noisy)):
            continue
        found = chances(noisy, sd**2, 1000, target)
        ahead = found > 0.5
        stated.append(found[ahead])
        right.append(true[ahead] > 0.5)
    said, so = np.concatenate(stated), np.concatenate(right)
    gaps = []
    for low, high in ((0.55, 0.8), (0.8, 0.95), (0.95, 0.995)):
        inside = (said >= low) & (said < high)
        assert inside.sum() >= 100
        gaps.append(float(said[inside].mean() - so[inside].mean()))
    return gaps


def test_chances_are_calibrated_at_equal_distances():
    """Where they are not stated they are cautious, as items might lie in clumps."""
    gaps = calibration(lambda rng: surface(rng.permutation(np.arange(8) * 0.25)), 0.06)
    assert -0.12 < min(gaps) and max(gaps) < 0.02 and abs(gaps[-1]) < 0.03


def test_chances_are_calibrated_at_random_distances():
    gaps = calibration(lambda rng: surface(rng.normal(scale=0.4, size=8)), 0.06)
    assert -0.07 < min(gaps) and max(gaps) < 0.02 and abs(gaps[-1]) < 0.03


def test_items_alike_behind_one_far_ahead_are_seldom_ordered():
    """Had scores a flat prior, a tenth of their pairs would have a chance of .95 or more."""
    rng, sure = np.random.default_rng(6), []
    for _ in range(100):
        true = np.array([1.5, *rng.normal(scale=0.01, size=7)])
        found = chances(with_noise(surface(true), 0.05, rng), 0.05**2, 1000, "sample")
        assert found[0, 1:].min() > 0.99
        sure.append((np.abs(found[1:, 1:] - 0.5) > 0.45).mean())
    assert np.mean(sure) < 0.03


def test_chances_are_calibrated_for_pairs_that_no_scores_explain():
    def draw(rng):
        return with_noise(surface(rng.normal(scale=0.3, size=8)), 0.08, rng)

    assert np.abs(calibration(draw, 0.04)).max() < 0.05


def test_chances_are_calibrated_at_small_distances():
    gaps = calibration(lambda rng: surface(rng.permutation(np.arange(8) * 0.04)), 0.06)
    assert np.abs(gaps).max() < 0.06


@pytest.mark.parametrize(("target", "sd"), [("sample", 0.06), ("population", 0.04)])
def test_draws_that_would_seldom_be_shown_count_for_more(target, sd, monkeypatch):
    m, n, v = 8, 350, sd**2
    steps = np.linspace(1.5, -1.5, m)
    weak, strong = -0.12 * steps, 0.4 * steps
    # uniform rankings have scores of this error, and so have independent pairs
    apart = np.sqrt(v + (target == "population") * (m + 1) / (12 * n))
    noisy = (with_noise(surface(weak), apart, np.random.default_rng(k)) for k in range(3000))
    shown = np.mean([reliability(one, v, n, target) >= reliable_from(m) for one in noisy])
    assert 0.1 < shown < 0.5
    both = np.repeat([weak, strong], 3000, axis=0)
    monkeypatch.setattr(statements, "score_draws", lambda f, scores, t: both)
    found = chances(surface(strong), v, n, target)
    assert found[0, m - 1] == pytest.approx(shown / (1.0 + shown), abs=0.02)


@pytest.mark.parametrize(("m", "target"), [(6, "population"), (10, "population"), (10, "sample")])
def test_equal_scores_have_a_chi_squared_statistic(m, target):
    """Of uniform rankings with noise; it is (m - 1) / (1 - reliability)."""
    rng, n, sd, found = np.random.default_rng(2), 200, 0.03, []
    for _ in range(3000):
        fractions = np.full((m, m), 0.5)
        if target == "population":
            ranks = rng.permuted(np.tile(np.arange(m), (n, 1)), axis=1)
            fractions = (ranks[:, :, None] < ranks[:, None, :]).mean(axis=0) + 0.5 * np.eye(m)
        found.append(reliability(with_noise(fractions, sd, rng), sd**2, n, target))
    shares = np.array(found)
    for level in (0.2, 0.4):
        said = chdtrc(m - 1, (m - 1) / (1 - level))
        assert (shares >= level).mean() == pytest.approx(said, abs=0.02)
    assert (shares == 0.0).mean() == pytest.approx(1 - chdtrc(m - 1, m - 1), abs=0.03)


def test_items_all_alike_seldom_have_reliable_scores():
    assert [reliable_from(m) for m in (4, 5, 6, 7, 8, 45)] == [0.77, 0.74, 0.71, 0.7, 0.7, 0.7]
    rng = np.random.default_rng(7)
    for m in (4, 6):
        alike = (with_noise(np.full((m, m), 0.5), 0.03, rng) for _ in range(4000))
        shares = np.array([reliability(one, 0.03**2, 500, "sample") for one in alike])
        assert 0 < (shares >= reliable_from(m)).mean() < 0.009


@pytest.mark.parametrize("m", [4, 8])
def test_the_chance_of_being_shown_is_that_of_simulation(m):
    rng, sd = np.random.default_rng(3), 0.06
    spreads = np.array([0.0, 0.1, 0.15, 0.3])
    draws = spreads[:, None] * np.linspace(-1.5, 1.5, m) * np.sqrt(8 / m)
    said = statements._shown(draws, sd**2)
    for scores, chance in zip(draws, said, strict=True):
        noisy = (with_noise(surface(scores), sd, rng) for _ in range(2000))
        shown = np.mean(
            [reliability(one, sd**2, 500, "sample") >= reliable_from(m) for one in noisy]
        )
        assert shown == pytest.approx(chance, abs=0.03)
    assert said[0] < 0.01 and 0.1 < said[1] < said[2] < said[3] and said[3] > 0.99
