"""A Mallows null: clipped statistics by definition, over all neighbours, and their power."""

import math
import pickle
from itertools import combinations, permutations, product

import numpy as np
import pytest

from privrank import Mallows
from privrank.distributions import kendall
from privrank.hypotheses.nulls import FULL, null_draws, public_generator
from privrank.mechanisms import ranknorms as mallowsnull
from privrank.mechanisms.categories import _quantiles
from privrank.mechanisms.permutation import noisy_quantile
from privrank.mechanisms.ranknorms import clipped_distance, clipped_kernel
from privrank.mechanisms.ranknorms import omnibus_mallows as omnibus_at
from privrank.privacy.noise import DiscreteLaplace


def centred(m, seed):
    return public_generator("a centre", m, seed).permutation(m) + 1


def signs(ranks):
    pairs = list(combinations(range(ranks.shape[1]), 2))
    return np.array([[np.sign(r[j] - r[i]) for i, j in pairs] for r in ranks]) / math.sqrt(
        len(pairs)
    )


def discordant(ranks, center):
    return ((signs(ranks) * signs(center[None, :])) < 0).sum(axis=1)


def sign_mean(model):
    m = len(model.items)
    ahead = [model.pair_probability(i, j) for i, j in combinations(range(m), 2)]
    return (2 * np.array(ahead) - 1) / math.sqrt(len(ahead))


@pytest.mark.parametrize(("m", "phi"), [(3, 0.6), (4, 0.2), (5, 0.9), (12, 0.7), (30, 0.3)])
def test_statistics_are_what_they_are_defined_to_be(m, phi):
    n = 25
    model = Mallows(m, phi, centred(m, 1))
    other = Mallows(m, min(1.0, phi + 0.2), centred(m, 2))
    ranks = other.rvs(n, public_generator("a test of definitions", m))
    # the norm of the mean clipped sign vector
    away = signs(ranks) - sign_mean(model)
    lengths = np.linalg.norm(away, axis=1)
    radius = mallowsnull._radius(m, model.theta)
    variance = 1 - sign_mean(model) @ sign_mean(model)
    reach = min(2.0, 2 * radius, math.sqrt(2 * (radius**2 + variance)))
    clipped = away * np.minimum(1, radius / lengths)[:, None] if reach < 2 else away
    kernel = clipped_kernel(n, model)
    norm = np.linalg.norm(clipped.mean(axis=0))
    assert kernel.step == pytest.approx(reach / n / 1024)
    assert kernel.value(ranks, ()) * kernel.step == pytest.approx(norm, abs=2 * kernel.step)
    # the mean clipped distance
    low, high, mean = mallowsnull._window(m, model.theta)
    pmf = np.diff(model.distance_cdf(np.arange(m * (m - 1) // 2 + 1)), prepend=0.0)
    assert mean == pytest.approx(np.clip(np.arange(len(pmf)), low, high) @ pmf, rel=1e-9)
    statistic = clipped_distance(n, model)
    gap = abs(np.clip(discordant(ranks, model.center), low, high).mean() - mean)
    assert statistic.step == pytest.approx((high - low) / n / 1024)
    assert statistic.value(ranks, ()) * statistic.step == pytest.approx(gap, abs=2 * statistic.step)


@pytest.mark.parametrize(("m", "phi"), [(10, 0.8), (50, 0.5), (200, 0.99), (1000, 1.0), (9, 1.0)])
def test_window_holds_the_quantiles(m, phi):
    model = Mallows(m, phi)
    low, high, mean = mallowsnull._window(m, model.theta)
    at = np.array([low - 1, low, high - 1, high], dtype=float)
    below = kendall.distribution(m, model.theta, at)
    assert below[0] < 0.001 <= below[1] and below[2] < 0.999 <= below[3]
    assert mean == pytest.approx(model.mean_distance, rel=1e-3)


@pytest.mark.parametrize(("m", "phi"), [(4, 0.3), (10, 0.5)])
def test_radius_is_a_quantile_of_the_null(m, phi):
    model = Mallows(m, phi)
    rng = public_generator("a test of radii", m)
    ranks = model.rvs(30_000, rng)
    away = np.linalg.norm(signs(ranks[:500]) - sign_mean(model), axis=1)
    squares = mallowsnull._squares(ranks, model.theta)
    assert np.sqrt(squares[:500]) == pytest.approx(away, abs=1e-8)
    radius = mallowsnull._radius(m, model.theta)
    assert np.mean(squares > radius**2 + 1e-8) < 0.0022
    assert np.mean(squares > radius**2 - 1e-8) > 0.0003
    assert mallowsnull._radius(m, 0.0) == pytest.approx(1.0)
    assert mallowsnull._radius(m, math.inf) == pytest.approx(2 / math.sqrt(m * (m - 1) / 2))


def omnibus_mallows(n, model, xi=1.0):
    return omnibus_at(n, model, xi)


def largest_move(statistic, n, m):
    orders = [np.array(order) for order in permutations(range(1, m + 1))]
    largest = 0
    for rows in product(orders, repeat=n - 1):
        values = [statistic.value(np.array([row, *rows]), ()) for row in orders]
        largest = max(largest, max(values) - min(values))
    return largest


@pytest.mark.parametrize("phi", [0.0, 0.05, 0.3, 0.8, 1.0])
@pytest.mark.parametrize(("n", "m"), [(2, 2), (4, 2), (2, 3), (3, 3), (2, 4)])
def test_statistics_move_by_no_more_than_their_sensitivities(n, m, phi):
    model = Mallows(m, phi, centred(m, 3))
    kernel, distance = clipped_kernel(n, model), clipped_distance(n, model)
    assert kernel.sensitivity == 1026 and distance.sensitivity == 1024
    assert largest_move(kernel, n, m) <= 1025
    assert largest_move(distance, n, m) <= 1024
    assert largest_move(omnibus_mallows(n, model), n, m) <= 1025


def test_sensitivities_are_attained():
    # clipping is active in both: a single ranking may lie outside the ball and the window
    m, n = 20, 6
    model = Mallows(m, 0.2)
    low, high, _ = mallowsnull._window(m, model.theta)
    assert high - low < 20 and mallowsnull._radius(m, model.theta) < 0.7
    reverse, centre = np.arange(m, 0, -1), np.arange(1, m + 1)
    far = np.tile(reverse, (n, 1))
    near = far.copy()
    near[0] = centre
    distance = clipped_distance(n, model)
    assert distance.value(far, ()) - distance.value(near, ()) == 1024
    uniform = Mallows(m, 1.0)
    kernel = clipped_kernel(n, uniform)
    assert 1023 <= kernel.value(far, ()) - kernel.value(near, ()) <= 1024
    kernel = clipped_kernel(n, model)
    # the centre is closer to the null mean than the clipping radius, so not quite
    assert 500 < kernel.value(far, ()) - kernel.value(near, ()) <= 1025


@pytest.mark.parametrize("phi", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_clipped_sign_vectors_are_no_further_apart_than_claimed(m, phi):
    model = Mallows(m, phi)
    away = signs(np.array(list(permutations(range(1, m + 1))))) - sign_mean(model)
    claimed = mallowsnull._reach(m, model.theta)
    if claimed < 2:
        lengths = np.linalg.norm(away, axis=1, keepdims=True)
        away = away * np.minimum(1, mallowsnull._radius(m, model.theta) / lengths)
    apart = np.linalg.norm(away[:, None] - away[None, :], axis=2).max()
    assert apart <= claimed * (1 + 1e-9)
    assert apart > 0.7 * claimed


def test_neighbours_of_long_rankings_are_within_the_sensitivities():
    rng = public_generator("a test of neighbours")
    for m, phi in ((20, 0.5), (20, 0.95), (60, 0.2)):
        n, model = 5, Mallows(m, phi, centred(m, 5))
        statistics = [clipped_kernel(n, model), clipped_distance(n, model)]
        rows = [model.rvs(1, rng)[0] for _ in range(3)]
        rows += [model.center, m + 1 - model.center, *(rng.permutation(m) + 1 for _ in range(3))]
        for _ in range(60):
            data = np.array([rows[i] for i in rng.integers(len(rows), size=n)])
            other = data.copy()
            other[0] = rows[rng.integers(len(rows))]
            for statistic in statistics:
                moved = abs(statistic.value(data, ()) - statistic.value(other, ()))
                assert moved <= statistic.sensitivity


def test_a_far_ranking_counts_no_more_than_one_at_the_radius():
    m, n = 50, 300
    model = Mallows(m, 0.5)
    ranks = model.rvs(n, public_generator("a test of clipping"))
    far = ranks.copy()
    far[0] = np.arange(m, 0, -1)
    statistic = clipped_kernel(n, model)
    # .81 of the 2 that it could move unclipped; 2 c is .91
    assert statistic.step * n * 1024 == pytest.approx(0.81, abs=0.02)
    assert abs(statistic.value(far, ()) - statistic.value(ranks, ())) <= 1025


@pytest.mark.parametrize("make", [clipped_kernel, clipped_distance, omnibus_mallows])
def test_pvalues_keep_their_level_at_any_centre(make):
    n, m = 20, 6
    model = Mallows(m, 0.5, centred(m, 6))
    statistic = make(n, model)
    distribution = DiscreteLaplace(statistic.sensitivity / 1.0)
    null = statistic.null(FULL)
    assert null.draws == FULL
    rng = public_generator("a test of p-values under a Mallows model")
    values = np.array([statistic.value(model.rvs(n, rng), ()) for _ in range(3000)])
    for alpha in (0.01, 0.05, 0.2):
        level = distribution.tail(null.threshold(alpha, distribution) - values).mean()
        assert level == pytest.approx(alpha, abs=4 * math.sqrt(alpha / 3000) + 0.004)


def test_null_does_not_depend_on_the_centre():
    first, second = (omnibus_mallows(9, Mallows(5, 0.7, centred(5, s))) for s in (7, 8))
    assert np.array_equal(first.null(640).values, second.null(640).values)
    ranks = Mallows(5, 0.9).rvs(9, public_generator("a test of relabelling"))
    names = np.argsort(centred(5, 7))[centred(5, 8) - 1]  # item i of one is names[i] of the other
    assert first.value(ranks, ()) == second.value(ranks[:, names], ())


def test_quantiles_and_radius_come_from_sequences_of_their_own():
    model = Mallows(7, 0.6)
    statistic = omnibus_mallows(30, model)
    whole, names = statistic.value.__self__, []
    with pytest.MonkeyPatch.context() as patch:

        def noted(name, *arguments):
            names.append(name)
            return null_draws(name, *arguments)

        patch.setattr("privrank.mechanisms.categories.null_draws", noted)
        patch.setattr("privrank.mechanisms.ranknorms.null_draws", noted)
        mallowsnull._radius.cache_clear()
        mallowsnull._reach.cache_clear()
        statistic.null(640)
    assert sorted(set(names)) == [
        "omnibus of a Mallows model",
        "quantiles of the omnibus of a Mallows model",
        "radius of a ranking",
    ]
    label, sizes = whole.sample.label, whole.sample.sizes
    draw, scale = whole.drawn, whole.scale
    levels, draws = tuple(part.level for part in whole.parts), whole.draws
    table = null_draws(label, sizes, draw, draws)
    own = [noisy_quantile(column, 0.025, scale) for column in table.T]
    assert levels == (0.025, 0.025) and not np.array_equal(np.ceil(own), _quantiles(whole))
    assert own == pytest.approx(_quantiles(whole), rel=0.15)


def test_many_items_have_the_distance_alone():
    model = Mallows(300, 0.9)
    statistic = omnibus_mallows(4, model)
    assert statistic.name == clipped_distance(4, model).name
    with pytest.raises(ValueError, match="at most 200 items"):
        clipped_kernel(4, model)
    ranks = model.rvs(4, public_generator("a test of many items"))
    assert statistic.value(ranks, ()) >= 0
    assert Mallows(1000, 0.99).mean_distance == pytest.approx(
        mallowsnull._window(1000, Mallows(1000, 0.99).theta)[2], rel=1e-3
    )


def test_statistics_can_be_pickled():
    for make in (clipped_kernel, clipped_distance, omnibus_mallows):
        statistic = make(5, Mallows(4, 0.5))
        ranks = Mallows(4, 0.9).rvs(5, public_generator("a test of pickles"))
        again = pickle.loads(pickle.dumps(statistic))
        assert again.value(ranks, ()) == statistic.value(ranks, ())


def swapped(model, n, rng):
    """Rankings with the two best items of the centre exchanged."""
    ranks = model.rvs(n, rng)
    ranks[:, [0, 1]] = ranks[:, [1, 0]]
    return ranks


@pytest.mark.parametrize(
    ("m", "phi", "n", "other", "epsilon", "expected"),
    [
        (10, 0.8, 300, 0.76, 0.5, (0.40, 0.91, 0.85)),
        (20, 0.8, 100, 0.84, 0.5, (0.13, 0.90, 0.84)),
        (50, 0.5, 300, 0.6, 0.1, (0.22, 1.00, 1.00)),
        (10, 0.8, 300, None, 1.0, (0.43, 0.05, 0.37)),
    ],
)
def test_power(m, phi, n, other, epsilon, expected):
    model, rng = Mallows(m, phi), public_generator("a test of power", m, n)
    if other is None:
        data = [swapped(model, n, rng) for _ in range(200)]
    else:
        data = [Mallows(m, other).rvs(n, rng) for _ in range(200)]
    for make, power in zip(
        (clipped_kernel, clipped_distance, omnibus_mallows), expected, strict=True
    ):
        statistic = make(n, model, epsilon) if make is omnibus_mallows else make(n, model)
        distribution = DiscreteLaplace(statistic.sensitivity / epsilon)
        threshold = statistic.null(1_984).threshold(0.05, distribution)
        values = np.array([statistic.value(ranks, ()) for ranks in data])
        assert distribution.tail(threshold - values).mean() == pytest.approx(power, abs=0.065)
