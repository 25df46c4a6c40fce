"""The capped norm against semidefinite programs, enumeration, adversarial data and its theory."""

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest

from privrank import Mallows
from privrank.mechanisms.capped import GAP, CappedNorm, _theory, capped_norm

SMALL = [CappedNorm(0.7, 0.8, 1.5), CappedNorm(0.6, 0.4, 1.5), CappedNorm(1.0, 0.0, 1.5)]
"""For three items, whose records have length sqrt(2): the plain norm moves by 2.83."""


def uniform(n, m, rng):
    return rng.permuted(np.tile(np.arange(1, m + 1), (n, 1)), axis=1)


def records(ranks):
    m = ranks.shape[1]
    return math.sqrt(3 / (m * (m + 1))) * (2.0 * ranks - (m + 1))


def psi(z, norm):
    """The definition, piece by piece."""
    z0, z1 = norm.lower, norm.upper
    middle = z - (z - z0) ** 2 / (2 * (z1 - z0))
    return np.where(z <= z0, z, np.where(z >= z1, (z0 + z1) / 2, middle))


def slope(z, norm):
    return np.interp(z, [norm.lower, norm.upper], [1.0, 0.0])


def total(ranks, norm, u, matrix):
    x = records(ranks)
    return psi(x @ u + ((x @ matrix) * x).sum(axis=1) / (4 * norm.bias), norm).sum()


def maximum(ranks, norm):
    """The maximum over K as a semidefinite program, to about six digits."""
    x = records(ranks)
    n, m = x.shape
    lifted = cp.Variable((m + 1, m + 1), PSD=True)  # [[U, u], [u', 1]]
    linear, bent = cp.Variable(n), cp.Variable(n)
    width = norm.upper - norm.lower
    z = x @ lifted[:m, m]
    z += cp.hstack([cp.trace(np.outer(r, r) @ lifted[:m, :m]) for r in x]) / (4 * norm.bias)
    constraints = [lifted[m, m] == 1, cp.trace(lifted) <= 2, linear <= norm.lower]
    constraints += [bent >= 0, bent <= width, linear + bent <= z]
    goal = cp.sum(linear) + cp.sum(bent) - cp.sum_squares(bent) / (2 * width)
    return cp.Problem(cp.Maximize(goal), constraints).solve(solver=cp.CLARABEL)


def certified_gap(ranks, norm, w):
    """The bound on the maximum minus F at W, from the definitions and the best mu on a grid."""
    x = records(ranks)
    u, matrix = w[:, 0], w @ w.T
    z = x @ u + ((x @ matrix) * x).sum(axis=1) / (4 * norm.bias)
    weights = slope(z, norm)
    g, big = x.T @ weights, (x.T * weights) @ x / (4 * norm.bias)
    eigenvalues, vectors = np.linalg.eigh(big)
    c = (vectors.T @ g) ** 2 / 4
    # beyond |g| the bound only rises
    reach = np.geomspace(1e-12, 1, 4000)[:, None] * (np.linalg.norm(g) + eigenvalues[-1] + 1e-300)
    mu = eigenvalues[-1] + reach
    bound = (mu[:, 0] + (c / (mu - eigenvalues)).sum(axis=1)).min()
    return bound - g @ u - (big * matrix).sum()


def adversarial(n, m):
    rng = np.random.default_rng(n + m)
    order = np.arange(1, m + 1)
    half = uniform(n // 2, m, rng)
    return {
        "all equal": np.tile(order, (n, 1)),
        "two opposite blocks": np.repeat([order, m + 1 - order], n // 2, axis=0),
        "three blocks": np.repeat(uniform(3, m, rng), n // 3 + 1, axis=0)[:n],
        "ten blocks": np.repeat(uniform(10, m, rng), n // 10, axis=0),
        "half one ranking": np.vstack((half, np.tile(order, (n - n // 2, 1)))),
        "a tenth one ranking": np.vstack(
            (uniform(n - n // 10, m, rng), np.tile(order, (n // 10, 1)))
        ),
        "mirrored": np.vstack((half, m + 1 - half)),
        "cyclic shifts": np.array([np.roll(order, k) for k in range(n)]),
        "opposite and uniform": np.vstack(
            (np.repeat([order, m + 1 - order], n // 4, axis=0), uniform(n // 2, m, rng))
        ),
    }


def test_psi():
    z = np.linspace(-3, 3, 6001)
    for norm in (*SMALL, capped_norm(300, 50)):
        height, weights = norm._psi(z)
        np.testing.assert_allclose(height, psi(z, norm), atol=1e-14)
        np.testing.assert_allclose(weights, slope(z, norm), atol=1e-14)
        np.testing.assert_allclose(np.gradient(height, z)[1:-1], weights[1:-1], atol=0.003)
        assert (np.diff(height) >= -1e-15).all() and (np.diff(weights) <= 1e-15).all()
        assert (height <= z + 1e-15).all() and norm._psi(np.zeros(1))[0][0] == 0
        assert norm._psi(np.array([99.0]))[0][0] == pytest.approx(norm.cap, abs=1e-14)
        assert norm.sensitivity == norm.cap + norm.bias
        # over K the argument is at least t + t^2 / (4 B), which is at least -B
        t = np.linspace(-9, 9, 6001)
        terms = psi(t + t * t / (4 * norm.bias), norm)
        assert terms.min() >= -norm.bias - 1e-12 and terms.max() <= norm.cap + 1e-12


@pytest.mark.parametrize("numbers", [(0, 1, 2), (1, 2, 2), (1, 2, 1), (1, -1, 2), (math.nan, 1, 2)])
def test_a_norm_without_a_proof_is_refused(numbers):
    with pytest.raises(ValueError, match="needs bias > 0"):
        CappedNorm(*numbers)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("norm", SMALL)
def test_against_a_semidefinite_program(norm):
    a, b, c, d = [1, 2, 3], [3, 2, 1], [2, 3, 1], [3, 1, 2]
    cases = [[a, a, a], [a, b], [a, b, a, b], [a, c, d], [a, a, b], [b, c, d, d]]
    cases += [[a, [2, 1, 3], [1, 3, 2], b], [a, c, d, b, [1, 3, 2], [2, 1, 3]]]
    beyond = []
    for case in cases:
        ranks = np.array(case)
        best = maximum(ranks, norm)
        value = norm.value(ranks)
        # on one side of the maximum only, up to the accuracy of the program
        assert best - GAP * norm.sensitivity - 1e-6 <= value <= best + 1e-6
        beyond.append(value - norm.fast(ranks))
    assert min(beyond) >= -1e-12
    assert max(beyond) > 0.1 * norm.sensitivity  # where the fixed point is no answer


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_more_items_against_a_semidefinite_program():
    norm = capped_norm(30, 12)
    rng = np.random.default_rng(2)
    for ranks in (*list(adversarial(20, 12).values())[1:6], uniform(30, 12, rng)):
        best = maximum(ranks, norm)
        assert best - GAP * norm.sensitivity - 1e-5 <= norm.value(ranks) <= best + 1e-5


@pytest.mark.parametrize("norm", SMALL)
def test_all_neighbours_of_three_items(norm):
    rankings = np.array(list(itertools.permutations((1, 2, 3))))
    values = {
        rows: norm.value(rankings[list(rows)])
        for rows in itertools.combinations_with_replacement(range(6), 4)
    }
    most = 0.0
    for rows, value in values.items():
        for place, other in itertools.product(range(4), range(6)):
            moved = values[tuple(sorted((*rows[:place], *rows[place + 1 :], other)))]
            most = max(most, abs(value - moved))
    assert 0.8 * norm.sensitivity < most <= (1 + GAP) * norm.sensitivity
    assert most > max(norm.cap, norm.bias)


def worst_records(norm, u, rng):
    """Rankings whose records u puts at both ends of the range of a term, A and -B."""
    m = len(u)
    best = np.argsort(np.argsort(u)) + 1
    yield best
    target = -2 * norm.bias
    low = m + 1 - best
    closest = low
    for _ in range(3 * m):
        i, j = rng.integers(m, size=2)
        trial = low.copy()
        trial[[i, j]] = trial[[j, i]]
        t = records(np.array([low, trial, closest])) @ u
        if abs(t[1] - target) < abs(t[0] - target):
            low = trial
        closest = low if abs(t[0] - target) < abs(t[2] - target) else closest
    yield closest


@pytest.mark.parametrize("phi", [1.0, 0.99])
@pytest.mark.parametrize(("n", "m"), [(200, 20), (100, 60), (300, 40)])
def test_hostile_replacements(n, m, phi):
    norm = capped_norm(n, m)
    rng = np.random.default_rng(n)
    ranks = Mallows(m, phi).rvs(n, rng)
    found = []
    for _ in range(3):  # the direction itself answers to the replacement
        u = norm._certified(ranks)[1][:, 0]
        rows = [*worst_records(norm, u, rng), m + 1 - ranks[0]]
        values = []
        for row in rows:
            ranks[0] = row
            values.append(norm.value(ranks))
        found.append(max(values) - min(values))
        ranks[0] = rows[int(np.argmin(values))]
    assert max(found) <= (1 + GAP) * norm.sensitivity
    assert max(found) > 0.8 * norm.sensitivity > max(norm.cap, norm.bias)


@pytest.mark.parametrize("m", [20, 60])
def test_replacements_in_hostile_data(m):
    n = 60
    norm = capped_norm(n, m)
    rng = np.random.default_rng(m)
    for ranks in adversarial(n, m).values():
        before = norm.value(ranks)
        for row in (m + 1 - ranks[0], uniform(1, m, rng)[0], ranks[-1]):
            moved = ranks.copy()
            moved[0] = row
            assert abs(norm.value(moved) - before) <= (1 + GAP) * norm.sensitivity


@pytest.mark.parametrize(("n", "m"), [(60, 20), (300, 20), (60, 100), (300, 100)])
def test_certificate_on_hostile_data(n, m):
    norm = capped_norm(n, m)
    beyond = {}
    for name, ranks in adversarial(n, m).items():
        value, w, gap = norm._certified(ranks)
        assert value == norm.value(ranks)
        assert np.linalg.norm(w) <= 1 + 1e-12  # so (u, W W') is in K
        assert value == pytest.approx(total(ranks, norm, w[:, 0], w @ w.T), rel=1e-10, abs=1e-10)
        assert gap <= GAP * norm.sensitivity
        assert certified_gap(ranks, norm, w) <= GAP * norm.sensitivity
        beyond[name] = value - norm.fast(ranks)
    # without the certificate and the maximisation these would be far too low
    assert beyond["two opposite blocks"] > norm.sensitivity
    assert beyond["mirrored"] > 0.5 * norm.sensitivity
    assert beyond["all equal"] == 0


@pytest.mark.parametrize(("n", "m"), [(60, 20), (300, 50), (30, 60)])
def test_bound_beside_the_maximum(n, m):
    assert GAP == 1e-3
    norm = capped_norm(n, m)
    rng = np.random.default_rng(8)
    ranks = uniform(n, m, rng)
    u = norm._certified(ranks)[1][:, 0]
    gaps = []
    for size in (1e-5, 1e-3, 1e-2, 0.1):
        beside = u + size * rng.normal(size=m) / math.sqrt(m)
        beside /= np.linalg.norm(beside)
        x = records(ranks)
        gap = norm._vector_gap(x, beside, norm._evaluate(x, beside[:, None])[1])
        loss = norm.value(ranks) - total(ranks, norm, beside, np.outer(beside, beside))
        # the independent bound is on a grid of mu
        assert gap >= max(loss, certified_gap(ranks, norm, beside[:, None]) - 1e-3) - 1e-9
        gaps.append(gap)
    assert gaps[0] < GAP * norm.sensitivity < gaps[-1]


def test_saturated_and_smallest():
    for n, m in ((2, 2), (1, 2), (5, 2), (2, 9), (7, 30)):
        norm = CappedNorm(0.25, 0.1, 0.3)
        ranks = np.tile(np.arange(1, m + 1), (n, 1))
        assert norm.value(ranks) == pytest.approx(n * norm.cap, abs=1e-12)
        ranks[::2] = m + 1 - ranks[::2]
        assert -1e-12 <= norm.value(ranks) <= n * norm.cap + 1e-12
    # two opposite records of two items: by hand, U = 1 and u = 0, both arguments 1 / (4 B)
    pair = np.array([[1, 2], [2, 1]])
    norm = CappedNorm(2.0, 0.5, 3.0)
    assert norm.value(pair) == pytest.approx(2 * (1 / 8), abs=GAP * norm.sensitivity)
    assert norm.value(pair) <= 2 / 8 + 1e-12


@pytest.mark.parametrize(("n", "m"), [(20, 20), (200, 20), (300, 50), (100, 300), (1000, 100)])
def test_uniform_rankings_need_only_the_fixed_point(n, m):
    norm = capped_norm(n, m)
    rng = np.random.default_rng(1)
    for _ in range(20):
        ranks = uniform(n, m, rng)
        value, w, gap = norm._certified(ranks)
        assert value == norm.fast(ranks)
        assert w.shape == (m, 1) and gap <= 1e-6 * norm.sensitivity


@pytest.mark.parametrize(("n", "m"), [(50, 20), (200, 30), (40, 70)])
def test_names_and_order_do_not_matter(n, m):
    norm = capped_norm(n, m)
    rng = np.random.default_rng(n)
    allowed = GAP * norm.sensitivity + 1e-9
    for ranks in (uniform(n, m, rng), *adversarial(n, m).values()):
        value = norm.value(ranks)
        assert norm.value(ranks[:, rng.permutation(m)]) == pytest.approx(value, abs=allowed)
        assert norm.value(rng.permutation(ranks)) == pytest.approx(value, abs=allowed)
    ranks = uniform(n, m, rng)
    assert norm.value(ranks[:, ::-1]) == pytest.approx(norm.value(ranks), rel=1e-8)


def test_mallows_rankings_stand_out():
    norm = capped_norm(300, 50)
    rng = np.random.default_rng(0)
    null = [norm.value(uniform(300, 50, rng)) for _ in range(30)]
    shifted = [norm.value(Mallows(50, 0.99).rvs(300, rng)) for _ in range(30)]
    assert np.mean(shifted) - np.mean(null) > 5 * np.std(null)


SIZES = [2, 3, 7, 20, 100, 1000, 20_000, 10**6]
ITEMS = [2, 3, 10, 25, 100, 1000, 100_000]


def test_design():
    for n, m in itertools.product(SIZES, ITEMS):
        norm = capped_norm(n, m)
        if norm is not None:
            assert norm.sensitivity < 2 * math.sqrt(m - 1)
            margin = _theory((m - 1) / n, norm.bias, norm.upper)[0]
            assert margin > 1.03 + 2 / math.sqrt(2 * (m - 1))
            # one step less and the margin would be missed
            below = _theory((m - 1) / n, norm.bias - 1 / 64, norm.upper)[0]
            assert below <= 1.03 + 2 / math.sqrt(2 * (m - 1))
    capped = {n: min(m for m in range(2, 200) if capped_norm(n, m)) for n in (100, 1000, 10_000)}
    assert capped == {100: 11, 1000: 16, 10_000: 31}
    assert capped_norm(10**6, 100) is None  # where the plain norm is nearly free
    # where the noise at epsilon .5 decides: that of epsilon 2 would not be worth a cap
    assert capped_norm(50, 10) and capped_norm(3000, 50)
    # no distribution has E(t - s)^2 = r
    assert _theory(3.0, 0.5, 4.90625) == _theory(8.0, 0.75, 7.40625) == (0.0, 0.0, math.inf)
    # where the two cost the same, noise at the nominal epsilon included
    assert capped_norm(29_000, 50) and capped_norm(30_000, 50) is None
    for n, m in [(200, 20), (300, 50), (1000, 30), (1000, 100), (1000, 1000), (100, 1000)]:
        assert 4.4 < capped_norm(n, m).sensitivity < 8.1
    first = capped_norm(1000, 100)
    capped_norm.cache_clear()
    assert capped_norm(1000, 100) == first


@pytest.mark.parametrize(("n", "m"), [(300, 50), (1000, 100), (600, 300), (100, 300)])
def test_design_theory(n, m):
    norm = capped_norm(n, m)
    margin, _, variance = _theory((m - 1) / n, norm.bias, norm.upper)
    rng = np.random.default_rng(m)
    margins, values = [], []
    for _ in range(40):
        ranks = uniform(n, m, rng)
        value, w, _ = norm._certified(ranks)
        values.append(value)
        if len(margins) < 4:
            x, u = records(ranks), w[:, 0]
            t = x @ u
            weights = slope(t + t * t / (4 * norm.bias), norm)
            mu = weights * (1 + t / (2 * norm.bias)) @ t / 2
            margins.append(mu / np.linalg.eigvalsh((x.T * weights) @ x / (4 * norm.bias))[-1])
    assert np.mean(margins) == pytest.approx(margin, rel=0.1)
    assert np.std(values) == pytest.approx(math.sqrt(n * variance), rel=0.35)
