"""The smoothed p-value: exactly uniform, private by exact computation; what other p-values lose."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import kstest, laplace

import privrank as pr
from privrank.encode.samples import read_samples, rules_of_choices
from privrank.mechanisms import samples
from privrank.mechanisms.closeness import (
    noise_cell,
    null_threshold,
    round_up,
    smoothed_pvalue,
)
from privrank.mechanisms.permutation import (
    gram_blocks,
    kernel_distance,
    largest_distance,
    permuted_statistics,
)
from privrank.plans.samples import RELEASED_STEPS, smoothing_scale
from privrank.privacy.noise import draw_cells
from privrank.published import asz18

S3 = np.array(list(itertools.permutations((1, 2, 3))), dtype=np.int64)


# --- the p-value ----------------------------------------------------------------------------------


def test_smoothed_pvalue_is_a_mean_of_laplace_tails():
    rng = np.random.default_rng(0)
    statistics, scale = rng.random(50), 0.13
    for noisy in (-3.0, 0.0, 0.4, statistics[7], 2.0, 40.0):
        expected = laplace.sf((noisy - statistics) / scale).mean()
        assert smoothed_pvalue(statistics, noisy, scale) == pytest.approx(expected, rel=1e-12)


def test_without_noise_it_is_the_permutation_pvalue():
    assert smoothing_scale(0.1, math.inf) == 0
    statistics = np.array([0.3, 0.1, 0.3 + 1e-16, 0.5, 0.2])
    assert smoothed_pvalue(statistics, 0.3, 0.0) == 3 / 5  # (1 + #{T_i >= T_0}) / (B + 1)
    assert smoothed_pvalue(statistics, 0.3 + 1e-15, 0.0) == 3 / 5  # equal but for rounding


def test_rounding_goes_up_on_a_grid():
    steps = np.arange(1, RELEASED_STEPS + 1)
    assert [round_up(k / RELEASED_STEPS - 1e-9) for k in steps] == (steps / RELEASED_STEPS).tolist()
    assert (round_up(0.0), round_up(1e-300), round_up(1.0), round_up(0.04999)) == (
        1e-4,
        1e-4,
        1,
        0.05,
    )


def test_noise_cells_are_fine_powers_of_two():
    for scale in (1e-6, 0.5, 0.7, 1.0, 3e4):
        cell = noise_cell(scale)
        assert math.frexp(cell)[0] == 0.5
        assert scale * 2.0**-46 < cell <= scale * 2.0**-45
    draws = draw_cells(0.01, noise_cell(0.01), 4000, None)
    assert kstest(draws, laplace(scale=0.01).cdf).pvalue > 1e-7


GRAM = list(gram_blocks(S3, "mallows"))
UNIFORM = {
    "TV, sizes 5 and 8": ((5, 8), largest_distance, 19),
    "TV, three samples": ((2, 3, 6), largest_distance, 99),
    "MMD, sizes 3 and 7": ((3, 7), lambda tables: kernel_distance(tables, GRAM), 19),
}


@pytest.mark.parametrize("case", UNIFORM)
@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_pvalue_is_exactly_uniform_under_the_null(case, epsilon):
    sizes, statistic, permutations = UNIFORM[case]
    rng = np.random.default_rng(len(case))
    kinds = 3 if statistic is largest_distance else 6
    distribution = rng.dirichlet(np.ones(kinds))
    scale = smoothing_scale(1 / min(sizes), epsilon)
    pvalues = []
    for _ in range(10_000):
        counts = np.array([rng.multinomial(n, distribution) for n in sizes])
        statistics = permuted_statistics(counts, statistic, permutations, rng)
        pvalues.append(smoothed_pvalue(statistics, statistics[0] + rng.laplace(0, scale), scale))
    assert kstest(pvalues, "uniform").pvalue > 1e-3
    assert len(np.unique(statistics)) <= 20  # with many ties


# --- its privacy, by exact computation ------------------------------------------------------------


def survival(statistics, m, scale):
    """H(m) for every row of statistics (d, B + 1) and every m (d, u)."""
    return laplace.sf((m[:, :, None] - statistics[:, None, :]) / scale).mean(axis=2)


def log_densities(statistics, levels, scale):
    """Log densities of p at the levels: log f(m - T_0) - log mean f(m - T_i) where H(m) = u."""
    low = np.full((len(statistics), len(levels)), statistics.min() - 60 * scale)
    high = np.full_like(low, statistics.max() + 60 * scale)
    for _ in range(64):
        middle = (low + high) / 2
        above = survival(statistics, middle, scale) > levels
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    density = np.exp(-np.abs((low[:, :, None] - statistics[:, None, :]) / scale))
    return np.log(density[:, :, 0]) - np.log(density.mean(axis=2))


def all_labellings(sizes):
    """Every assignment of positions to two samples, the observed one first."""
    total = sum(sizes)
    return [
        (*chosen, *(i for i in range(total) if i not in chosen))
        for chosen in itertools.combinations(range(total), sizes[0])
    ]


def pvalue_loss(sizes, kinds, epsilon, labellings=None, scale=None, lots=None):
    """Largest log ratio of the densities of p over all data, all neighbours and a grid of u.

    With `lots`, what a respondent may give: the probabilities of the kinds of the row drawn.
    """
    total = sum(sizes)
    data = np.array(list(itertools.product(range(kinds), repeat=total)))
    orders = np.array([range(total), *(labellings or all_labellings(sizes))])
    sample = np.repeat([0, 1], sizes)
    tables = np.zeros((len(data) * len(orders), 2, kinds), dtype=np.int32)
    permuted = data[:, orders].reshape(-1, total)
    for place in range(total):
        tables[np.arange(len(tables)), sample[place], permuted[:, place]] += 1
    statistics = largest_distance(tables).reshape(len(data), len(orders))
    levels = np.linspace(0.005, 0.995, 67)
    logs = log_densities(statistics, levels, scale or smoothing_scale(1 / min(sizes), epsilon))
    cube = logs.reshape((kinds,) * total + (len(levels),))
    if lots is not None:
        for axis in range(total):
            mixed = np.tensordot(lots, np.exp(cube), axes=(1, axis))
            cube = np.log(np.moveaxis(mixed, 0, axis))
    return max(float(np.ptp(cube, axis=axis).max()) for axis in range(total))


SMALL = [((1, 1), 3), ((1, 2), 3), ((2, 2), 3), ((1, 4), 3), ((2, 3), 3), ((3, 3), 2), ((2, 4), 2)]


@pytest.mark.parametrize(("epsilon", "loss"), [(0.5, 0.31), (2.0, 1.42)])
def test_pvalue_is_private_on_all_small_data_sets(epsilon, loss):
    losses = [pvalue_loss(sizes, kinds, epsilon) for sizes, kinds in SMALL]
    assert max(losses) == pytest.approx(loss, abs=0.005)
    # with few re-labellings it comes closer to epsilon
    rng = np.random.default_rng(1)
    for sizes, kinds in (((2, 2), 3), ((2, 3), 2), ((3, 3), 2)):
        few = [all_labellings(sizes)[i] for i in rng.integers(0, 6, 3)]
        losses.append(pvalue_loss(sizes, kinds, epsilon, few))
    assert loss + 0.03 < max(losses) <= epsilon
    # half the noise passes epsilon: the enumeration sees the fault
    half = smoothing_scale(1 / 3, epsilon) / 2
    assert pvalue_loss((3, 3), 2, epsilon, scale=half) > epsilon


def test_pvalue_of_one_row_each_is_private_whatever_the_others_are():
    # up to two rows: every distribution of the row that is drawn, by the mechanism's own lot
    frames = [rows for n in (1, 2) for rows in itertools.product(range(3), repeat=n)]
    lots = np.zeros((len(frames), 3))
    for place, rows in enumerate(frames):
        frame = pd.DataFrame({"who": [0] * len(rows), "choice": rows})
        options = {"categories": [0, 1, 2], "respondent": "who", "max_rows": 2}
        encoded = read_samples(*rules_of_choices(frame, "choice", **options))[0][0]
        for drawn in range(len(rows)):
            kept = np.arange(len(rows)) == drawn
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(samples, "draw_rows", lambda *_, kept=kept: kept.astype(int))
                lots[place] += samples.tabulated(samples.one_row_each(encoded, None)) / len(rows)
    assert (lots.sum(axis=1) == 1).all() and (np.unique(lots, axis=0).shape == (6, 3))
    for sizes in ((1, 2), (2, 2)):
        loss = pvalue_loss(sizes, 3, 1.0, lots=lots)
        assert 0.1 < loss <= 1.0 and loss == pytest.approx(pvalue_loss(sizes, 3, 1.0))


def two_clusters(eta, span=3.0, above=1500, below=500):
    """T and T' of the proof's worst case: T_0 and three quarters above m, one quarter below."""
    start = np.concatenate(([span], np.full(above, span), np.full(below, -span)))
    move = np.concatenate(([-1.0], np.ones(above), -np.ones(below))) * eta / 2
    return start - move, start + move


def exact_supremum(eta):
    """max over d of eta + d + log((2 - A - B) / (A + B - 2 A B)), A, B = exp(-(eta -+ d))."""
    d = np.linspace(0, eta, 100_001)
    a, b = np.exp(-(eta - d)), np.exp(-(eta + d))
    return float((eta + d + np.log((2 - a - b) / (a + b - 2 * a * b))).max())


@pytest.mark.parametrize("eta", [0.02, 0.05, 0.2])
def test_the_constant_of_the_noise_is_needed(eta):
    first, second = two_clusters(eta)
    levels = np.linspace(0.70, 0.80, 41)
    logs = log_densities(np.array([first, second]), levels, 1.0)
    loss = float(np.abs(logs[1] - logs[0]).max())
    assert (2.248 if eta < 0.1 else 2.245) * eta < loss < 2.25 * eta
    assert loss <= exact_supremum(eta) + 1e-9
    # so noise of scale 2 Delta / epsilon would not do
    assert loss > 2.0 * eta


def test_no_random_statistics_lose_more_than_the_proof_allows():
    rng = np.random.default_rng(4)
    levels = np.linspace(0.01, 0.99, 99)
    for _ in range(100):
        eta, size = rng.uniform(0.01, 3), rng.integers(2, 12)
        start = rng.normal(0, rng.uniform(0.1, 5), size)
        pair = np.array([start, start + eta * rng.choice([-1.0, 1.0], size)])
        logs = log_densities(pair, levels, 1.0)
        assert np.abs(logs[1] - logs[0]).max() <= 2.25 * eta


# --- Kim and Schrab's test: the decision is private, its rank p-value is not ----------------------


def rank_distribution(statistics, scale):
    """P(rank = r), r = #{i >= 1: M_i >= M_0}, by Gauss-Legendre quadrature between the kinks."""
    nodes, weights = np.polynomial.legendre.leggauss(30)
    values, numbers = np.unique(statistics[1:], return_counts=True)
    kinks = np.unique(statistics)
    distribution = np.zeros(len(statistics))
    edges = np.unique(np.concatenate([kinks + k * scale for k in np.arange(-45, 46, 0.5)]))
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    m, weight = (middle + half * nodes).ravel(), (half * weights).ravel()
    mass = laplace.pdf(m, statistics[0], scale) * weight
    behind = np.zeros((len(statistics), len(m)))
    behind[0] = 1.0
    for value, number in zip(values, numbers, strict=True):
        tail = laplace.sf(m, value, scale)
        for _ in range(number):
            behind[1:] = behind[1:] * (1 - tail) + behind[:-1] * tail
            behind[0] *= 1 - tail
    distribution = behind @ mass
    assert distribution.sum() == pytest.approx(1, abs=1e-9)
    return distribution


def seventeen_statistics(scale, moves=(0.0, 0.0, 0.0)):
    """Twelve at 0, four at 3.5 noise scales, that of the data far below; each group may move."""
    return np.concatenate(
        ([-30 * scale + moves[0]], np.full(12, moves[1]), np.full(4, 3.5 * scale + moves[2]))
    )


@pytest.mark.parametrize(("epsilon", "share"), [(0.1, 1.138), (1.0, 1.133)])
def test_the_rank_pvalue_of_noisy_statistics_loses_more_than_epsilon(epsilon, share):
    scale = 2.0 / epsilon
    distribution = rank_distribution(seventeen_statistics(scale), scale)
    moved = rank_distribution(seventeen_statistics(scale, (1.0, -1.0, 1.0)), scale)
    assert np.abs(np.log(moved / distribution)).max() / epsilon == pytest.approx(share, abs=5e-4)


# --- the bit of Acharya, Sun and Zhang ------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_the_bit_is_private(epsilon):
    # a replacement moves the statistic by at most 4 entries, 1 in units of its sensitivity
    values = np.arange(-400, 400, 0.8) / 3.2
    said = np.array([asz18._sigmoid(epsilon * z) for z in values])
    kept = np.array([asz18._sigmoid(-epsilon * z) for z in values])
    np.testing.assert_allclose(said + kept, 1.0, atol=1e-15)
    for p in (said, kept):
        p = p[p > 1e-290]
        assert np.abs(np.diff(np.log(p))).max() <= epsilon / 4 * (1 + 1e-9)
    bit = asz18.closeness_bit(50, 4, 3.2)
    groups = {"x": {"a": 9, "b": 1}, "y": {"a": 2, "b": 8}}
    test = pr.ClosenessTest.from_counts(groups, ["a", "b"])
    plan = test.fit(epsilon, method="sigmoid").release.plan
    assert plan.parts.keys() == {"decision"}
    assert [bit(np.array([v, 0.0]), plan, None) for v in (1e9, -1e9)] == [1, 0]


def test_smoothed_pvalue_solves_its_own_equation():
    statistics = np.array([0.2, 0.1, 0.4])
    m = brentq(lambda m: smoothed_pvalue(statistics, m, 0.3) - 0.05, -9, 9)
    assert survival(statistics[None], np.array([[m]]), 0.3)[0, 0] == pytest.approx(0.05)


# --- the threshold that is released beside a kernel distance --------------------------------------


@pytest.mark.parametrize("b", [0.0, 0.2, 3.0])
def test_a_threshold_moves_no_further_than_what_it_is_of(b):
    rng = np.random.default_rng(2)
    for _ in range(100):
        statistics = rng.exponential(rng.uniform(0.1, 3), rng.integers(2, 60))
        moved = statistics + rng.choice([-0.3, 0.0, 0.1, 0.3], len(statistics))
        level = rng.uniform(0.005, 0.2)
        first, second = (null_threshold(values, level, b) for values in (statistics, moved))
        assert abs(first - second) <= 0.3 + 1e-9
        assert null_threshold(statistics + 0.3, level, b) == pytest.approx(first + 0.3)
        assert abs(statistics.mean() - moved.mean()) <= 0.3 + 1e-9


def test_a_threshold_excludes_equality_with_half_of_alpha():
    # under equality the data's statistic is any one of them: P(T_0 + b L > c + b L')
    statistics, b = np.array([0.1, 0.15, 0.2, 0.5, 0.9]), 0.1
    c = null_threshold(statistics, 0.025, b)
    rng = np.random.default_rng(3)
    noise = b * (rng.laplace(size=(5, 200_000)) - rng.laplace(size=(5, 200_000)))
    above = np.mean(statistics[:, None] + noise > c)
    assert above == pytest.approx(0.025, abs=4 * math.sqrt(0.025 / 10**6))
    assert np.mean(np.arange(40.0) > null_threshold(np.arange(40.0), 0.025, 0.0)) == 0.025
