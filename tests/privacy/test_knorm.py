"""Cube and permutohedron noise: bodies enumerated, exact ratios, draws."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from privrank.hypotheses.tails import cube_half_width, half_width
from privrank.privacy.knorm import (
    SLACK,
    CubeNoise,
    PermutohedronNoise,
    Radius,
    spanning_tree,
    tree_point,
)

FALSE_ALARM = {"seeded": 1e-4, "secure": 1e-7}


def source(kind, seed=0):
    return np.random.default_rng(seed) if kind == "seeded" else None


def radius_distribution(radius, reach):
    """P(R = k) for k = 0..reach - 1, from the whole-number weights and the geometric tail."""
    distribution = np.zeros(reach)
    end = radius.low + len(radius.weights)
    distribution[radius.low : end] = radius.weights[: max(reach - radius.low, 0)]
    q = math.exp(-1 / radius.scale)
    distribution[end:] = radius.tail * (1 - q) * q ** np.arange(reach - end)
    return distribution / (float(radius.weights.sum()) + radius.tail)


def fits(seen, distribution, level):
    total = seen.sum()
    common = distribution * total >= 8
    seen = np.append(seen[common], seen[~common].sum())
    means = np.append(distribution[common], 1 - distribution[common].sum()) * total
    if means[-1] < 8:
        assert seen[-1] <= 50
        seen, means = seen[:-1], means[:-1] * seen[:-1].sum() / means[:-1].sum()
    return len(seen) < 2 or chisquare(seen, means).pvalue > level


def needed(x):
    """Smallest k with x in B_k: x + t g in k K for small t > 0, by the facets of K.

    The facet of K for a set A of items is sum over A <= |A| (m - |A|). g has a positive sum over A
    exactly when A lacks the last item, and then x must be strictly inside.
    """
    m, least = len(x), 1
    for bits in range(1, 2**m - 1):
        chosen = [i for i in range(m) if bits >> i & 1]
        size, total = len(chosen) * (m - len(chosen)), int(sum(x[i] for i in chosen))
        least = max(least, -(-total // size) if m - 1 in chosen else total // size + 1)
    return least


GRID = [(0.5, d, r) for d in (1, 3, 45, 4950) for r in (0.02, 0.3, 1.0, 7.0, 20.0, 900.0)]
GRID += [(0.0, d, r) for d in (1, 2, 9, 99) for r in (0.001, 0.03, 1 / 16, 0.5, 9.0)]


@pytest.mark.parametrize(("offset", "dimension", "rate"), GRID)
def test_the_chain_of_weights_holds(offset, dimension, rate):
    radius = Radius.build(offset, dimension, rate)
    assert radius.weights.min() >= 2**28 - 1 and int(radius.weights.sum()) < 2**62
    k = np.arange(radius.low, radius.low + len(radius.weights) + 1)
    q = math.exp(-1 / radius.scale)
    weights = np.append(radius.weights, radius.tail * (1 - q))
    log_v = np.log(weights) - dimension * np.log(k + offset)
    # only rounding of the logarithms here is let through, far below the slack
    fall = log_v[:-1] - log_v[1:]
    assert fall.max() <= rate + SLACK + 1e-14 * np.abs(log_v).max()
    # in the tail the ratio of the sizes falls, so its first step is the steepest
    assert 1 / radius.scale <= rate - dimension * math.log1p(1 / (k[-2] + offset))
    assert fall[:-1].min(initial=rate) >= rate - SLACK - 1e-12 * np.abs(log_v).max()


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 0.2), (1, 2.0), (3, 1.0), (1, 12.0)])
def test_cube_loss_is_epsilon_exactly(sensitivity, epsilon):
    for dimension in (1, 2, 6):
        noise = CubeNoise.calibrate(dimension, sensitivity, epsilon)
        end = noise.radius.low + len(noise.radius.weights)
        reach = end + 20 + math.ceil(80 * noise.radius.scale)  # all but e^-80 of the tail
        share = radius_distribution(noise.radius, reach) / (2.0 * np.arange(reach) + 1) ** dimension
        # P(x) as a function of the maximum norm; |x + d| differs from |x| by at most s
        log = np.log(np.cumsum(share[::-1])[::-1][: end + 10])
        losses = log[:-sensitivity] - log[sensitivity:]
        assert losses.max() <= epsilon * (1 + 1e-14)
        assert losses.max() == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize("kind", ["seeded", "secure"])
@pytest.mark.parametrize("rate", [0.4, 3.0])
def test_cube_draws_have_probability_exp_of_the_norm(kind, rate):
    noise, rng = CubeNoise(2, rate), source(kind)
    draws = np.array([noise.draw(np.array([5, -3]), rng) for _ in range(6000)]) - (5, -3)
    norm = np.abs(draws).max(axis=1)
    width = math.ceil(60 / rate)
    k = np.arange(width)
    distribution = np.maximum(8 * k, 1) * np.exp(-rate * k)
    seen = np.bincount(np.minimum(norm, width - 1), minlength=width)
    assert fits(seen, distribution / distribution.sum(), FALSE_ALARM[kind])
    # uniform among the points of one norm
    ring = draws[norm == (3 if rate < 1 else 1)]
    points = np.unique(ring, axis=0, return_counts=True)[1]
    assert chisquare(points).pvalue > FALSE_ALARM[kind]


@pytest.mark.parametrize("power", [1, 2])
def test_moments_of_a_radius_hold_those_of_its_tail(power):
    radius, beyond = Radius(3, np.array([2, 1]), 4, 2.0), np.arange(1, 500)
    share = (1.0 - math.exp(-0.5)) * np.exp(-0.5 * (beyond - 1.0))
    moment = 2 * 3**power + 4**power + 4 * (share @ (4.0 + beyond) ** power)
    assert radius.mean_of(power) == pytest.approx(moment / 7, rel=1e-12)


@pytest.mark.parametrize("kind", ["seeded", "secure"])
@pytest.mark.parametrize("scale", [0.002, 0.5, 3.0])
def test_radii_of_the_tail_are_geometric(kind, scale):
    # nearly all of the weight in the tail, which a real distribution reaches too seldom
    radius = Radius(5, np.array([1, 1]), 2**60, scale)
    rng, size = source(kind, 6), 2000
    steps = np.array([radius.draw(rng) for _ in range(size)]) - 7
    assert steps.min() >= 0
    q = math.exp(-1 / scale)
    distribution = (1 - q) * q ** np.arange(200)
    assert fits(np.bincount(np.minimum(steps, 199), minlength=200), distribution, FALSE_ALARM[kind])


def test_cube_variance():
    for dimension, rate in ((2, 0.4), (2, 3.0), (45, 1.0)):
        noise = CubeNoise(dimension, rate)
        k = np.arange(int(80 * (dimension + 1) / rate))
        log = dimension * np.log(2.0 * k + 1) - rate * k
        distribution = np.exp(log - log.max())
        exact = float((distribution * k * (k + 1)).sum() / distribution.sum() / 3)
        assert noise.variance == pytest.approx(exact, rel=2e-3)
    # continuous limit, and the advantage over independent Laplace noise
    wide = CubeNoise(45, 1e-3).variance * 1e-6
    assert wide == pytest.approx(46 * 47 / 3, rel=1e-3)
    assert 0.41 < math.sqrt(wide / (2 * 45**2)) < 0.43


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_pruefer_words_give_every_tree_once(m):
    trees = set()
    for word in itertools.product(range(m), repeat=m - 2):
        parent, order = spanning_tree(np.array(word, dtype=np.int64), m)
        place = np.append(np.argsort(order), -1)
        assert (place[:-1] > place[parent]).all()
        for item in range(m - 1):
            steps = 0
            while item != m - 1:
                item, steps = int(parent[item]), steps + 1
                assert steps < m
        trees.add(frozenset(frozenset((i, int(p))) for i, p in enumerate(parent)))
    assert len(trees) == m ** (m - 2)


def body(m, k):
    """All points of B_k, tile by tile, as often as they come."""
    for word in itertools.product(range(m), repeat=m - 2):
        tree = spanning_tree(np.array(word, dtype=np.int64), m)
        for steps in itertools.product(range(-k, k), repeat=m - 1):
            yield tuple(tree_point(*tree, np.array(steps), k).tolist())


@pytest.mark.parametrize(("m", "k"), [(2, 3), (3, 1), (3, 2), (3, 4), (4, 1), (4, 2)])
def test_tiles_cover_the_body_once(m, k):
    points = list(body(m, k))
    assert len(points) == len(set(points)) == m ** (m - 2) * (2 * k) ** (m - 1)
    box = itertools.product(range(-k * (m - 1), k * (m - 1) + 1), repeat=m - 1)
    inside = {(*x, -sum(x)) for x in box if needed((*x, -sum(x))) <= k}
    assert set(points) == inside


def test_tiles_of_five_items_cover_the_body_once():
    points = list(body(5, 1))
    assert len(set(points)) == 125 * 16 and max(map(needed, points)) == 1


def differences(m):
    ranks = list(itertools.permutations(range(m)))
    return sorted({tuple(np.subtract(a, b).tolist()) for a in ranks for b in ranks})


@pytest.mark.parametrize("m", [3, 4])
def test_one_ranking_moves_a_point_into_the_next_body(m):
    box = range(-4, 5) if m == 3 else range(-2, 4)
    for x in itertools.product(box, repeat=m - 1):
        x = (*x, -sum(x))
        present = needed(x)
        assert all(needed(np.add(x, d)) <= present + 1 for d in differences(m))
    # a reversal lies on the boundary of K: half of K would spend twice the epsilon
    reversal = np.arange(m - 1, -m, -2)
    assert max(reversal[:j].sum() / (j * (m - j)) for j in range(1, m)) == 1


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_permutohedron_loss_is_epsilon_exactly(epsilon):
    noise = PermutohedronNoise.calibrate(3, epsilon)
    assert noise.fineness * (noise.rate + SLACK) <= epsilon
    reach = noise.radius.low + len(noise.radius.weights) + 200
    k = np.arange(reach)
    share = np.zeros(reach)
    share[1:] = radius_distribution(noise.radius, reach)[1:] / (3 * (2.0 * k[1:]) ** 2)
    mass = np.cumsum(share[::-1])[::-1]

    def probability(x):
        # the coin that turns the noise round
        return 0.5 * (mass[needed(x)] + mass[needed([-v for v in x])])

    worst = 0.0
    for x in itertools.product(range(-60, 61, 5), repeat=2):
        x = np.array((*x, -sum(x)))
        for d in differences(3):
            moved = x + noise.fineness * np.array(d)
            worst = max(worst, math.log(probability(x) / probability(moved)))
    assert 0.9 * epsilon < worst <= epsilon


@pytest.mark.parametrize("kind", ["seeded", "secure"])
def test_permutohedron_draws_follow_their_distribution(kind):
    noise, rng = PermutohedronNoise(3, 0.5, 1), source(kind, 1)
    draws = np.array([noise.draw(np.zeros(3), rng) for _ in range(5000)])
    assert (draws.sum(axis=1) == 0).all()
    reach = 120
    share = np.zeros(reach)
    share[1:] = radius_distribution(noise.radius, reach)[1:] / (
        3 * (2.0 * np.arange(1, reach)) ** 2
    )
    mass = np.cumsum(share[::-1])[::-1]
    box = itertools.product(range(-12, 13), repeat=2)
    points = [(a, b, -a - b) for a, b in box]
    distribution = np.array(
        [0.5 * (mass[needed(x)] + mass[needed([-v for v in x])]) for x in points]
    )
    place = {x: i for i, x in enumerate(points)}
    seen = np.zeros(len(points) + 1)
    for x in map(tuple, draws.tolist()):
        seen[place.get(x, len(points))] += 1
    assert fits(seen, np.append(distribution, 1 - distribution.sum()), FALSE_ALARM[kind])


def test_fine_permutohedron_noise_is_gamma_times_uniform():
    # second moments against a rejection sample of the continuous distribution
    rng = np.random.default_rng(2)
    noise = PermutohedronNoise(4, 1 / 64, 64)
    draws = np.array([noise.draw(np.zeros(4), rng) for _ in range(4000)]) / 64
    box = rng.uniform(-3, 3, (200_000, 3))
    box = np.column_stack((box, -box.sum(axis=1)))
    top = np.cumsum(-np.sort(-box, axis=1), axis=1)[:, :3]
    uniform = box[(top <= (3, 4, 3)).all(axis=1)]
    expected = rng.gamma(4, 1, len(uniform))[:, None] * uniform
    norms = (draws**2).sum(axis=1)
    error = math.sqrt(norms.var() / len(norms) + (expected**2).sum(axis=1).var() / len(uniform))
    assert abs(norms.mean() - (expected**2).sum(axis=1).mean()) < 4 * error
    assert np.abs(draws.mean(axis=0)).max() < 4 * draws.std() / math.sqrt(4000)
    variances = draws.var(axis=0)
    assert variances.max() / variances.min() < 1.25


def test_permutohedron_noise_is_less_than_laplace_noise():
    rng = np.random.default_rng(3)
    for m, ratio in ((10, 0.72), (45, 0.76)):
        noise = PermutohedronNoise.calibrate(m, 1.0)
        draws = np.array([noise.draw(np.zeros(m), rng) for _ in range(300)]) / noise.fineness
        assert draws.std() / (math.sqrt(2) * (m * m // 2)) == pytest.approx(ratio, rel=0.12)


@pytest.mark.parametrize("m", [2, 3, 4, 10, 45])
def test_permutohedron_variance(m):
    noise, rng = PermutohedronNoise.calibrate(m, 1.0), np.random.default_rng(4)
    draws = np.array([noise.draw(np.zeros(m), rng) for _ in range(2500)], dtype=float)
    squares = (draws**2).mean(axis=1)
    assert abs(squares.mean() - noise.variance) < 4 * squares.std() / 50
    assert PermutohedronNoise.calibrate(m, math.inf).variance == 0


@pytest.mark.parametrize("steps", [2, 6, 60])
def test_permutohedron_noise_on_a_lattice_of_its_own(steps):
    for epsilon in (0.3, 20.0):
        noise = PermutohedronNoise.calibrate(5, epsilon, steps)
        assert 0.99 * epsilon < steps * noise.fineness * (noise.rate + SLACK) <= epsilon
        plain = PermutohedronNoise.calibrate(5, epsilon)
        sizes = [
            distribution.variance / distribution.fineness**2 for distribution in (noise, plain)
        ]
        assert sizes[0] / steps**2 == pytest.approx(sizes[1], rel=0.05)


@pytest.mark.parametrize(("dimension", "rate"), [(1, 0.3), (3, 0.5), (45, 0.2), (105, 0.004)])
def test_cube_half_widths_are_quantiles(dimension, rate):
    noise, rng = CubeNoise(dimension, rate), np.random.default_rng(5)
    draws = np.array([noise.draw(np.zeros(dimension), rng) for _ in range(6000)])
    blur = math.sqrt(noise.variance)
    blurred = draws + blur * rng.normal(size=draws.shape)
    for alpha in (0.05, 0.3):
        error = 4 * math.sqrt(alpha / 6000)
        for coordinates in {1, dimension}:
            for errors, found in ((0.0, draws), (blur, blurred)):
                h = cube_half_width(noise, alpha, coordinates, errors)
                outside = (np.abs(found[:, :coordinates]) > h).any(axis=1).mean()
                below = (np.abs(found[:, :coordinates]) > h - 1).any(axis=1).mean()
                assert outside < alpha + error and below > alpha - error
    assert half_width(CubeNoise(3, math.inf), 0.05) == 0
    assert cube_half_width(CubeNoise(3, math.inf), 0.05, 1, 2.0) == pytest.approx(3.92, abs=0.01)


def test_no_noise_and_too_much():
    values = np.array([1, 2, 3])
    for noise in (CubeNoise.calibrate(3, 1, math.inf), CubeNoise.calibrate(3, 0, 1.0)):
        out = noise.draw(values, None)
        assert (out == values).all() and not np.shares_memory(out, values)
        assert noise.variance == 0
    assert PermutohedronNoise.calibrate(3, math.inf).draw(values, None).tolist() == [1, 2, 3]
    for epsilon in (0.0, -1.0, 1e-9, 1e-7):
        with pytest.raises(ValueError, match="epsilon is too small"):
            CubeNoise.calibrate(45, 1, epsilon)
        with pytest.raises(ValueError, match="epsilon is too small"):
            PermutohedronNoise.calibrate(45, epsilon)
    with pytest.raises(ValueError, match="expected 3 values"):
        CubeNoise(3, 1.0).draw(np.zeros(4), None)
    with pytest.raises(ValueError, match="expected 4 totals"):
        PermutohedronNoise(4, 1.0, 1).draw(values, None)
