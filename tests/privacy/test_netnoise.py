"""Noise on net wins: exact losses over all neighbours of small surveys."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from pairfits import release_counts
from scipy.stats import chisquare, norm

import privrank as pr
from privrank.hypotheses.tails import cube_radii, noisy_tail, simulated
from privrank.plans.choice import Choice, deviation, noise_choices
from privrank.privacy.accounting import gaussian_delta, integer_delta, integer_scale, zcdp_epsilon
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.privacy.sensitivity import (
    UnitSensitivity,
    cell_noise,
    count_noise,
    item_noise,
    net_noise,
)

CEMS = pr.datasets.load_university()
LAW_NAMES = {
    "laplace": "discrete Laplace",
    "gaussian": "discrete Gaussian",
    "zero-sum-laplace": "zero-sum Laplace",
    "permutohedron": "permutohedron",
}
FALSE_ALARM = {"seeded": 1e-4, "secure": 1e-7}
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def source(kind, seed=0):
    return np.random.default_rng(seed) if kind == "seeded" else None


def steps_of(distribution, x):
    """H: the whole number with P(x) proportional to exp(-H / scale); rows of x sum to 0."""
    assert isinstance(distribution, ZeroSumLaplace)
    return np.abs(np.asarray(x, dtype=np.int64)).sum(axis=-1)


def zero_sums(m, reach):
    grid = np.array(list(itertools.product(range(-reach, reach + 1), repeat=m - 1)))
    return np.column_stack((grid, -grid.sum(axis=1)))


def units(reach):
    """Net wins of every possible unit: answers -1, 0, 1 to at most `rows` pairs."""
    edges = list(itertools.combinations(range(reach.items), 2))
    if not reach.distinct:
        edges *= reach.rows
    nets = set()
    for answers in itertools.product((-1, 0, 1), repeat=len(edges)):
        if sum(map(abs, answers)) <= reach.rows:
            net = [0] * reach.items
            for (i, j), answer in zip(edges, answers, strict=True):
                net[i] += answer
                net[j] -= answer
            nets.add(tuple(net))
    return np.array(sorted(nets))


REACHES = [
    UnitSensitivity(2, 1, True, "outcome"),
    UnitSensitivity(3, 1, True, "replace"),
    UnitSensitivity(3, 3, True, "outcome"),
    UnitSensitivity(3, 2, False, "replace"),
    UnitSensitivity(4, 3, True, "replace"),
    UnitSensitivity(4, 6, True, "outcome"),
]


@pytest.mark.parametrize("kind", ["seeded", "secure"])
@pytest.mark.parametrize("distribution", [ZeroSumLaplace])
@pytest.mark.parametrize(("m", "scale"), [(2, 1.5), (3, 0.8), (3, 2.5), (4, 1.2)])
def test_draws_have_the_exact_distribution(kind, distribution, m, scale):
    noise, rng = distribution(m, scale), source(kind, 3)
    size = 3000 if kind == "seeded" else 1200
    shift = np.arange(m) * 7
    draws = np.array([noise.draw(shift, rng) for _ in range(size)]) - shift
    assert (draws.sum(axis=1) == 0).all()
    points = zero_sums(m, {2: 60, 3: 60, 4: 22}[m])
    distribution_of = np.exp(-steps_of(noise, points) / scale)
    distribution_of /= distribution_of.sum()
    place = {tuple(point): k for k, point in enumerate(points.tolist())}
    seen = np.bincount([place[tuple(d)] for d in draws.tolist()], minlength=len(points))
    common = distribution_of * size >= 8
    seen = np.append(seen[common], seen[~common].sum())
    mean = np.append(distribution_of[common], distribution_of[~common].sum()) * size
    assert chisquare(seen, mean).pvalue > FALSE_ALARM[kind]


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_zero_sum_variance_is_exact(m, scale):
    points = zero_sums(m, {2: 150, 3: 150, 4: 40}[m])
    weight = np.exp(-np.abs(points).sum(axis=1) / scale)
    exact = float((points[:, -1] ** 2) @ weight / weight.sum())
    assert ZeroSumLaplace(m, scale).variance == pytest.approx(exact, rel=2e-6)


@pytest.mark.parametrize("m", [2, 5, 40, 10_000])
def test_zero_sum_variance_has_its_limit(m):
    limit = (m - 1) * (2 * m - 1) / (m * (m + 1))
    assert ZeroSumLaplace(m, 1e5).variance == pytest.approx(1e10 * limit, rel=1e-8)
    assert ZeroSumLaplace(m, 16.0).variance == pytest.approx(256 * limit, rel=2e-3)


LAWS = [
    ZeroSumLaplace(2, 20.0),
    ZeroSumLaplace(7, 20.0),
    PermutohedronNoise(2, 1 / 20, 1),
    PermutohedronNoise(5, 1 / 20, 1),
]


@pytest.mark.parametrize("distribution", LAWS, ids=str)
def test_simulated_noise_is_the_drawn_noise(distribution):
    rng = np.random.default_rng(11)
    size = 1500 if isinstance(distribution, PermutohedronNoise) else 4000
    zero = np.zeros(distribution.items, dtype=np.int64)
    drawn = np.array([distribution.draw(zero, rng) for _ in range(size)])
    alone = simulated(distribution, (40_000, distribution.items), rng)
    assert np.abs(alone.sum(axis=1)).max() < 1e-9
    # a statistic of scale and shape: quantiles of the length, and of one difference
    for name in ("length", "difference"):
        one, other = (
            np.linalg.norm(x, axis=1) if name == "length" else np.abs(x[:, 0] - x[:, -1])
            for x in (drawn, alone)
        )
        for level in (0.25, 0.5, 0.9):
            share = (one <= np.quantile(other, level)).mean()
            error = math.sqrt(level * (1 - level) * (1 / size + 1 / 40_000))
            # one lattice step of some twenty of the scale
            assert abs(share - level) < 4.5 * error + 0.02
    variance = alone.var(axis=0).mean()
    assert variance == pytest.approx(distribution.variance, rel=0.04)


@pytest.mark.parametrize("name", ["laplace", "zero-sum-laplace"])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_loss_over_all_neighbours_is_epsilon(name, epsilon, reach):
    noise = net_noise(reach, name, epsilon)
    nets = units(reach)
    moved = np.unique((nets[:, None] - nets[None]).reshape(-1, reach.items), axis=0)
    moved = moved * noise.fineness
    measure = (
        noise.distribution
        if name != "laplace"
        else ZeroSumLaplace(reach.items, noise.distribution.scale)
    )
    # the norm is subadditive, so that the loss is at most that of d at any x; checked on a box
    x = zero_sums(reach.items, {2: 12, 3: 6, 4: 2}[reach.items])
    at = steps_of(measure, x)
    for d in moved[:: max(1, len(moved) // 60)]:
        assert (steps_of(measure, x + d) - at).max() <= steps_of(measure, d)
    loss = steps_of(measure, moved).max() / noise.distribution.scale
    assert loss <= epsilon
    assert loss >= 0.985 * epsilon
    # half the noise would spend more
    assert 2 * loss > 1.9 * epsilon
    # a unit that moves from one group to another spends in both
    apart = 2 * steps_of(measure, noise.fineness * nets).max()
    assert apart <= noise.sensitivity and apart / noise.distribution.scale <= epsilon


@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_changes_of_net_lie_in_so_many_permutohedra(reach):
    m, nets = reach.items, units(reach)
    sets = [s for k in range(1, m) for s in itertools.combinations(range(m), k)]
    gauge = max(max(nets[:, s].sum(axis=1).max() / (len(s) * (m - len(s))) for s in sets), 0)
    assert float(reach.net_permutohedra) == pytest.approx(2 * gauge)
    for epsilon in (0.3, 2.0, 9.0):
        noise = net_noise(reach, "permutohedron", epsilon)
        assert noise.sensitivity == noise.fineness * reach.net_permutohedra
        assert noise.sensitivity * (noise.distribution.rate + 2.0**-26) <= epsilon
        assert noise.sensitivity * noise.distribution.rate >= 0.999 * epsilon


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_win_matrix_l2_is_attained(reach, ties):
    edges = list(itertools.combinations(range(reach.items), 2))
    copies = edges if reach.distinct else edges * reach.rows
    cells = set()
    for answers in itertools.product(
        (None, -1, 0, 1) if ties else (None, -1, 1), repeat=len(copies)
    ):
        if sum(answer is not None for answer in answers) <= reach.rows:
            cell = [0] * (2 * len(edges))
            for pair, answer in zip(copies, answers, strict=True):
                if answer is not None:
                    cell[2 * edges.index(pair)] += 1 + answer
                    cell[2 * edges.index(pair) + 1] += 1 - answer
            cells.add(tuple(cell))
    every = np.array(sorted(cells)) // (1 if ties else 2)
    inner = every @ every.T
    square = np.diag(inner)
    assert (square[:, None] + square - 2 * inner).max() == pytest.approx(
        reach.win_matrix_l2(ties=ties) ** 2
    )


def exact_delta(scale, epsilon, d):
    """Sum of max(0, P(x) - e^epsilon P(x - d)) over a box that holds nearly all of P."""
    reach = math.ceil(9 * scale)
    k = np.arange(-reach, reach + 1)
    mass = np.exp(-0.5 * (k / scale) ** 2)
    mass /= mass.sum()
    moved = [np.exp(-0.5 * ((k - step) / scale) ** 2) for step in d]
    moved = [part / np.exp(-0.5 * (k / scale) ** 2).sum() for part in moved]
    p = np.einsum("i,j,k->ijk", mass, mass, mass)
    q = np.einsum("i,j,k->ijk", *moved)
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("fineness", [1, 2])
def test_integer_delta_bounds_the_sum_in_every_direction(epsilon, fineness):
    sensitivity, scale = 3.0, 5.6 * fineness
    bound = integer_delta(scale, epsilon, sensitivity, 3, fineness)
    worst = 0.0
    for d in itertools.product(range(4), repeat=3):
        if list(d) == sorted(d) and 0 < sum(x * x for x in d) <= sensitivity**2:
            worst = max(worst, exact_delta(scale, epsilon, fineness * np.array(d)))
    zero_sum = exact_delta(scale, epsilon, fineness * np.array([2, -1, -1]))
    assert zero_sum <= worst <= bound
    # what the lattice may add is one point of it
    assert bound - worst <= 1.01 / (scale * math.sqrt(2 * math.pi))
    assert exact_delta(scale / 2, epsilon, fineness * np.array([0, 0, 3])) > bound


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (6.0, 1e-3)])
@pytest.mark.parametrize("coordinates", [2, 30, 4000])
def test_integer_scale_costs_next_to_nothing(epsilon, delta, coordinates):
    sensitivity = 2 * math.sqrt(70)
    scale, fineness = integer_scale(epsilon, delta, sensitivity, coordinates)
    assert integer_delta(scale, epsilon, sensitivity, coordinates, fineness) <= delta
    # analytic calibration: the continuous distribution with the same scale is only just private
    own = gaussian_delta(scale / fineness, epsilon, sensitivity)
    assert 0.95 * delta <= own <= delta
    with pytest.raises(ValueError, match="larger"):
        integer_delta(1.0, epsilon, sensitivity, coordinates)


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_zcdp_epsilon_holds_for_gaussian_noise(rho, delta):
    epsilon = zcdp_epsilon(rho, delta)
    assert gaussian_delta(1 / math.sqrt(2 * rho), epsilon) <= delta
    # below the classic conversion, rho + 2 sqrt(rho log(1 / delta))
    assert epsilon < rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert zcdp_epsilon(0.0, delta) == 0.0 and zcdp_epsilon(math.inf, delta) == math.inf


@pytest.mark.parametrize(
    "distribution", [distribution for distribution in LAWS if distribution.items > 2], ids=str
)
@pytest.mark.parametrize("blur", [0.1, 1.0])
def test_tails_are_those_of_the_distribution(distribution, blur):
    rng = np.random.default_rng(5)
    x = simulated(distribution, (150_000, distribution.items), rng)
    sd = blur * x.std()
    z = sd * rng.standard_normal(len(x))
    for factor in (0.5, 1.5, 3.0):
        gap = factor * x.std()
        one = np.mean([(np.abs(z + x[:, k]) > gap).mean() for k in range(distribution.items)])
        two = (np.abs(z + x[:, 0] - 0.7 * x[:, 1]) > gap).mean()
        own = noisy_tail(distribution, np.array([gap]), np.array([sd]), np.ones(1))[0]
        both = noisy_tail(
            distribution, np.array([gap]), np.array([sd]), np.ones(1), 0.7 * np.ones(1)
        )[0]
        assert own == pytest.approx(one, rel=0.05, abs=0.001)
        assert both == pytest.approx(two, rel=0.05, abs=0.002)


def test_gaussian_tails_are_normal():
    tail = noisy_tail(DiscreteGaussian(4.0), np.array([6.0]), np.array([3.0]), np.ones(1))
    assert tail[0] == pytest.approx(2 * norm.sf(6 / 5))
    tail = noisy_tail(
        DiscreteGaussian(4.0), np.array([6.0]), np.array([0.1]), np.ones(1), np.ones(1)
    )
    assert tail[0] == pytest.approx(2 * norm.sf(6 / math.sqrt(32.01)))


@pytest.mark.parametrize("reach", [REACHES[0], REACHES[3], REACHES[5]], ids=str)
@pytest.mark.parametrize("name", LAW_NAMES)
def test_deviation_is_that_of_differences(name, reach):
    noise = net_noise(reach, name, 1.0, 1e-6)
    x = (
        simulated(noise.distribution, (60_000, reach.items), np.random.default_rng(4))
        / noise.fineness
    )
    both = (x[:, 0] - x[:, 1]).std() / math.sqrt(2)
    assert deviation(noise, reach.items) == pytest.approx(both, rel=0.03)


# --- fits ---


def survey(kind=pr.PrivateBTL, *position, **arguments):
    options = {"respondent": "respondent", "max_rows": 15, "ties": True, "design": "public"}
    return kind(CEMS.comparisons, *position, items=CEMS.items, **options | arguments)


def words(result):
    return " ".join(str(result.summary(details=True)).split())


@quiet
@pytest.mark.parametrize("name", LAW_NAMES)
@pytest.mark.parametrize("epsilon", [0.4, 30.0])
def test_every_distribution_goes_through_fit_and_back(name, epsilon):
    delta = 1e-6 if name == "gaussian" else 0.0
    rng = np.random.default_rng(2)
    result = survey().fit(epsilon, delta, noise=name, rng=rng)
    part = result.release.parts["net wins"]
    noise = net_noise(result.release.design.sensitivity, name, part.epsilon, delta)
    assert part.distribution == noise.distribution and part.step == 1 / noise.fineness
    again = pr.Release.from_json(result.release.to_json())
    assert again.to_json() == result.release.to_json()
    assert again.parts["net wins"].distribution == part.distribution
    assert words(pr.from_json(result.to_json())) == words(result)
    assert f"{LAW_NAMES[name]} noise, net wins" in words(result)
    assert f"Noise: {LAW_NAMES[name]}. Differences between items" in words(result)
    top = pr.PrivateTopK.from_release(result.release, 2)
    assert 0 < top.pvalue <= 1 and top.conf_int().notna().all(axis=None)
    assert words(pr.from_json(top.to_json())) == words(top)
    own = survey(pr.PrivateTopK, 2).fit(epsilon, delta, noise=name, rng=np.random.default_rng(2))
    assert own.release.parts["net wins"].distribution == part.distribution
    np.testing.assert_allclose(own.net_wins, top.net_wins)
    if name not in ("laplace", "gaussian"):
        assert part.values.sum() == 0
    # the noise is on the scale of net wins: one standard error of the truth
    truth = survey().fit(np.inf).release.parts["net wins"].values
    away = part.step * part.values - truth
    assert np.abs(away - away.mean()).max() < 6 * deviation(noise, 6) + 1
    assert 0 < result.test_homogeneity().pvalue <= 1


@quiet
def test_auto_takes_the_least_and_says_so():
    result = survey().fit(1.0, rng=np.random.default_rng(1))
    reach = result.release.design.sensitivity
    first, second = noise_choices(reach, 1.0, 0.0, 0.9)[:2]
    assert first.name == "permutohedron" and second.name == "zero-sum-laplace"
    assert isinstance(result.release.parts["net wins"].distribution, PermutohedronNoise)
    text = " ".join(str(result.summary(details=True)).split())
    for noise in (first, second):
        assert f"{deviation(noise, 6):.4g}" in text
    # a line may end at a hyphen
    said = text.replace("- ", "-")
    assert "with zero-sum Laplace, the best of the others" in said
    other = survey().fit(1.0, noise="laplace", rng=np.random.default_rng(1))
    laplace = " ".join(str(other.summary(details=True)).split())
    assert "with permutohedron, the best of the others" in laplace
    # an answer that is a unit by itself: the l1 norm is the shape of what it can change
    rows = pr.PrivateBTL(
        CEMS.comparisons, items=CEMS.items, respondent=None, ties=True, design="public"
    )
    distribution = (
        rows.fit(1.0, rng=np.random.default_rng(1)).release.parts["net wins"].distribution
    )
    assert isinstance(distribution, ZeroSumLaplace)
    # many items and a delta: the l2 norm grows slowest
    names = [
        noise.name for noise in noise_choices(UnitSensitivity(60, 1770, True, "outcome"), 0.1, 1e-6)
    ]
    assert names[0] == "gaussian"
    assert {noise.name for noise in noise_choices(reach, 1e-4, 0.0)} >= {"laplace"}


@quiet
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_the_win_matrix_takes_two_distributions(name):
    model = survey(design="private", pair_counts="release")
    plan = Choice("win matrix", {"dependence": 0.1}, noise=name, form="pairs")

    def released(epsilon, delta):
        rng = np.random.default_rng(1)
        return release_counts(model._encoded, plan, epsilon, delta, rng=rng)

    result = pr.PrivateBTL.from_release(released(1.0, 1e-6))
    part = result.release.parts["win matrix"]
    reach = result.release.design.sensitivity
    noise = cell_noise(reach, name, part.epsilon, 1e-6, ties=True)
    assert part.distribution == noise.distribution and part.step == 0.5 / noise.fineness
    assert words(pr.from_json(result.to_json())) == words(result)
    assert f"{LAW_NAMES[name]} noise, wins of each pair" in words(result)
    whole = sum(each.epsilon for each in result.release.parts.values())
    assert whole <= (1.0 if name == "gaussian" else 1.0 - math.log1p(-1e-6))
    top = pr.PrivateTopK.from_release(result.release, 2)
    assert 0 < top.pvalue <= 1
    truth = released(1e6, 1e-6)
    true = truth.parts["win matrix"]
    away = part.step * part.values - true.step * true.values
    assert away.std() == pytest.approx(math.sqrt(part.noise_variance), rel=0.5)


def counted(reach):
    """Comparisons per pair of every possible unit."""
    most = 1 if reach.distinct else reach.rows
    table = np.array(list(itertools.product(range(most + 1), repeat=reach.pairs)))
    return table[table.sum(axis=1) <= reach.rows]


def log_probability(noise, x):
    """Log P(x), up to a constant, of discrete Laplace or of cube noise; rows of x."""
    if isinstance(noise, DiscreteLaplace):
        return -np.abs(x).sum(axis=1) / noise.scale
    radii, mass = cube_radii(noise)
    tail = np.cumsum((mass / (2 * radii + 1) ** x.shape[1])[::-1])[::-1]
    place = np.maximum(np.abs(x).max(axis=1) - noise.radius.low, 0).astype(int)
    return np.log(tail[place])


@pytest.mark.parametrize(
    ("reach", "kind"),
    [
        (UnitSensitivity(3, 1, True, "replace"), CubeNoise),
        (UnitSensitivity(3, 3, True, "replace"), CubeNoise),
        (UnitSensitivity(3, 2, False, "replace"), CubeNoise),
        (UnitSensitivity(4, 6, True, "replace"), CubeNoise),
        (UnitSensitivity(4, 1, True, "replace"), DiscreteLaplace),
        (UnitSensitivity(4, 2, False, "replace"), DiscreteLaplace),
    ],
)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_pair_counts_lose_no_more_than_epsilon_between_any_two_units(reach, kind, epsilon):
    noise = count_noise(reach, epsilon)
    assert isinstance(noise.distribution, kind)
    units_counts = counted(reach)
    moves = np.unique((units_counts[:, None] - units_counts[None]).reshape(-1, reach.pairs), axis=0)
    rng = np.random.default_rng(3)
    corners = np.array(list(itertools.product((-1, 0, 1), repeat=reach.pairs)))
    seen = np.vstack((4 * corners, rng.integers(-25, 26, (200, reach.pairs))))
    losses = [
        (
            log_probability(noise.distribution, seen)
            - log_probability(noise.distribution, seen + move)
        ).max()
        for move in moves
    ]
    assert max(losses) <= epsilon * (1 + 1e-9)
    assert max(losses) > 0.95 * epsilon


@pytest.mark.parametrize(
    ("reach", "kind"),
    [
        (UnitSensitivity(3, 1, True, "replace"), CubeNoise),
        (UnitSensitivity(3, 3, True, "replace"), CubeNoise),
        (UnitSensitivity(3, 2, False, "replace"), CubeNoise),
        (UnitSensitivity(4, 2, True, "replace"), DiscreteLaplace),
        (UnitSensitivity(4, 6, True, "replace"), CubeNoise),
    ],
)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_item_counts_lose_no_more_than_epsilon_between_any_two_units(reach, kind, epsilon):
    noise = item_noise(reach, epsilon)
    assert isinstance(noise.distribution, kind)
    ends = np.zeros((reach.pairs, reach.items), dtype=int)
    for place, pair in enumerate(itertools.combinations(range(reach.items), 2)):
        ends[place, list(pair)] = 1
    of_units = np.unique(counted(reach) @ ends, axis=0)
    moves = np.unique((of_units[:, None] - of_units[None]).reshape(-1, reach.items), axis=0)
    corners = np.array(list(itertools.product((-1, 0, 1), repeat=reach.items)))
    seen = np.vstack((30 * corners, np.random.default_rng(3).integers(-25, 26, (200, reach.items))))
    losses = [
        (
            log_probability(noise.distribution, seen)
            - log_probability(noise.distribution, seen + move)
        ).max()
        for move in moves
    ]
    assert max(losses) <= epsilon * (1 + 1e-9)
    assert max(losses) > 0.95 * epsilon


@pytest.mark.parametrize("rows", [1, 3, 6, 10, 15])
def test_pair_counts_take_the_noise_of_the_least_variance(rows):
    reach = UnitSensitivity(6, rows, True, "replace")
    choices = (
        DiscreteLaplace.calibrate(reach.pair_counts_l1, 0.5),
        CubeNoise.calibrate(reach.pairs, reach.pair_counts_linf, 0.5),
    )
    assert count_noise(reach, 0.5).distribution == min(
        choices, key=lambda distribution: distribution.variance
    )
    # no more noise than that would be left in memory
    assert isinstance(
        count_noise(UnitSensitivity(2000, 5, True, "replace"), 1.0).distribution, DiscreteLaplace
    )


@quiet
def test_distributions_of_zero_sum_release_net_wins_and_pair_counts():
    model = survey(design="private", pair_counts="release")
    fit = model.fit(2.0, method="counts", noise="zero-sum-laplace", rng=np.random.default_rng(1))
    assert {"net wins", "pair_counts"} <= set(fit.release.parts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": "gaussian"}, "needs a delta above 0"),
        ({"noise": "gaussian", "delta": 1e-6, "method": "objective"}, "method='counts'"),
        ({"noise": "permutohedron", "method": "objective"}, "method='counts'"),
        ({"noise": "cauchy"}, "noise must be"),
    ],
)
def test_what_does_not_apply_is_refused_before_spending(arguments, message):
    budget = pr.Budget(epsilon=2.0, delta=1e-5, unit="respondent")
    with pytest.raises(ValueError, match=message) as caught:
        survey().fit(1.0, budget=budget, **arguments)
    assert str(caught.value).count(".") <= 2 and budget.spendings == ()


@pytest.mark.parametrize(("name", "items"), [("permutohedron", 51), ("zero-sum-laplace", 201)])
def test_more_items_than_can_be_drawn_are_refused(name, items):
    rows = [(f"i{k}", f"i{k + 1}", 1.0) for k in range(items - 1)]
    frame = pd.DataFrame(rows, columns=["item1", "item2", "outcome"])
    model = pr.PrivateBTL(
        frame, items=[f"i{k}" for k in range(items)], respondent=None, design="public"
    )
    with pytest.raises(ValueError, match=f"at most {items - 1} items, got {items}. Use"):
        model.fit(1.0, noise=name)


@quiet
def test_non_private_runs_have_no_noise_whatever_the_distribution():
    plain = survey().fit(np.inf)
    for name in LAW_NAMES:
        assert survey().fit(np.inf, noise=name).release.parts[
            "net wins"
        ].distribution == DiscreteLaplace(0.0)
    assert dict(plain.summary().header)["Noise:"] == "none"
    assert "had independent noise" not in words(plain)


@quiet
def test_gaussian_fits_compose_more_tightly():
    budget = pr.Budget(epsilon=8.0, delta=1e-5, unit="respondent")
    for _ in range(6):
        fit = survey().fit(1.0, 1e-6, noise="gaussian", budget=budget, rng=np.random.default_rng(0))
    assert budget.spent == (6.0, 6e-6) and budget.left == (2.0, 4e-6)
    epsilon, delta = budget.composed
    rho = sum(line.rho for line in budget.spendings)
    reach = fit.release.design.sensitivity
    part = net_noise(reach, "gaussian", 0.9, 1e-6)
    square = (part.fineness * reach.net_l2 / part.distribution.scale) ** 2
    assert rho == pytest.approx(6 * (0.5 * square + 0.5 * 0.1**2))
    assert (epsilon, delta) == (zcdp_epsilon(rho, 1e-5), 1e-5) and epsilon < 4
    assert f"epsilon {epsilon:.4g}" in " ".join(str(budget.summary()).split())


@pytest.mark.parametrize("scale", [0.02, 0.3])
def test_zero_sum_noise_far_below_a_step_is_drawn_at_once(scale):
    # almost always 0, and then in the proportion that the distribution has
    distribution, rng = ZeroSumLaplace(4, scale), np.random.default_rng(3)
    drawn = np.array([distribution.draw(np.zeros(4, dtype=np.int64), rng) for _ in range(4000)])
    assert (drawn.sum(axis=1) == 0).all()
    # 12 vectors have one 1 and one -1; all others are rarer
    points = zero_sums(4, 8)
    weight = np.exp(-np.abs(points).sum(axis=1) / scale)
    none = 1.0 / weight.sum()
    share = (drawn == 0).all(axis=1).mean()
    assert abs(share - none) < 5 * np.sqrt(none * (1 - none) / 4000) + 1e-12
