"""The Mallows model against all of S_m, exact dynamic programming, and its own draws."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare, norm

from privrank import Mallows, tolerance_to_phi
from privrank.distributions import kendall
from privrank.distributions.mallows import tolerance_to_theta

PHIS = [0.0, 1e-6, 0.3, 0.9, 0.999999, 1.0]
SIZES = [2, 3, 4, 5, 6]


def all_rankings(m):
    return np.array(list(itertools.permutations(range(1, m + 1))))


def plain_distances(rankings, center):
    i, j = np.triu_indices(rankings.shape[1], 1)
    return ((rankings[:, i] < rankings[:, j]) != (center[i] < center[j])).sum(axis=1)


def enumerated(m, phi, center=None):
    """Distances and probabilities of all rankings, from the definition."""
    rankings = all_rankings(m)
    center = np.arange(1, m + 1) if center is None else np.asarray(center)
    d = plain_distances(rankings, center)
    weights = np.power(phi, d)
    return rankings, d, weights / weights.sum()


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("m", SIZES)
def test_all_rankings(m, phi):
    center = np.random.default_rng(m).permutation(m) + 1
    rankings, d, p = enumerated(m, phi, center)
    model = Mallows(m, phi, center)
    assert model.pmf(rankings).sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(model.pmf(rankings), p, rtol=1e-12, atol=1e-300)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.logpmf(rankings), np.log(p), rtol=1e-12, atol=1e-12)
    assert model.mean_distance == pytest.approx(p @ d, abs=1e-12)
    assert model.var_distance == pytest.approx(p @ (d - p @ d) ** 2, abs=1e-12)
    distribution = np.bincount(d, p)
    at = np.arange(-1, len(distribution) + 1)
    expected = np.concatenate(([0.0], distribution.cumsum(), [1.0]))
    np.testing.assert_allclose(model.distance_cdf(at), expected, atol=1e-12)
    for i, j in itertools.permutations(range(m), 2):
        ahead = p[rankings[:, i] < rankings[:, j]].sum()
        assert model.pair_probability(i, j) == pytest.approx(ahead, abs=1e-12)


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("m", SIZES)
def test_total_variation_of_all_rankings(m, phi):
    _, _, p = enumerated(m, phi)
    model = Mallows(m, phi)
    uniform = 0.5 * np.abs(p - 1 / len(p)).sum()
    assert model.total_variation("uniform") == pytest.approx(uniform, abs=1e-12)
    for other in PHIS:
        _, _, q = enumerated(m, other)
        distance = model.total_variation(Mallows(m, other))
        assert distance == pytest.approx(0.5 * np.abs(p - q).sum(), abs=1e-12)


@pytest.fixture(scope="module")
def counts():
    """Permutations of 40 items by Kendall distance, as Python integers."""
    distribution = [1]
    for j in range(2, 41):
        distribution = [
            sum(distribution[max(0, k - j + 1) : k + 1])  # the first slice is at most j long
            for k in range(len(distribution) + j - 1)
        ]
    assert sum(distribution) == math.factorial(40)
    return distribution


def exact_weights(counts, phi):
    """Weights of the distances over one denominator, exact for the given float phi."""
    top, ratio = len(counts) - 1, Fraction(phi)
    return [n * ratio.numerator**d * ratio.denominator ** (top - d) for d, n in enumerate(counts)]


def exact_total_variation(first, second):
    a, b = sum(first), sum(second)
    gap = sum(abs(x * b - y * a) for x, y in zip(first, second, strict=True))
    return float(Fraction(gap, 2 * a * b))


@pytest.mark.parametrize("phi", [0.05, 0.5, 0.9, 0.999, 0.99999])
def test_total_variation_against_exact_integers(counts, phi):
    weights = exact_weights(counts, phi)
    model = Mallows(40, phi)
    exact = exact_total_variation(weights, counts)
    assert model.total_variation("uniform") == pytest.approx(exact, abs=1e-12)
    nearby = exact_total_variation(weights, exact_weights(counts, 0.8))
    assert model.total_variation(Mallows(40, 0.8)) == pytest.approx(nearby, abs=1e-12)
    total = sum(weights)
    distribution = [float(Fraction(w, total)) for w in weights]
    at = np.arange(len(distribution))
    np.testing.assert_allclose(model.distance_cdf(at), np.cumsum(distribution), atol=1e-12)
    assert model.mean_distance == pytest.approx(at @ distribution, rel=1e-12)


@pytest.mark.parametrize("m", [2, 3, 10, 100, 700, 1000, 100_000])
@pytest.mark.parametrize("tolerance", [0.01, 0.1, 0.45])
def test_tolerance_is_inverted(m, tolerance):
    theta = tolerance_to_theta(m, tolerance)
    model = Mallows.from_theta(m, theta)
    assert model.total_variation("uniform") == pytest.approx(tolerance, abs=1e-12)
    if m <= 1000:  # further up the rounding of phi itself is larger
        model = Mallows(m, tolerance_to_phi(m, tolerance))
        assert model.total_variation("uniform") == pytest.approx(tolerance, abs=1e-12)


def test_tolerance_ends():
    assert tolerance_to_phi(5, 0.0) == 1.0
    assert tolerance_to_phi(3, 1 - 1 / 6) == 0.0
    assert tolerance_to_phi(5, 0.9) < tolerance_to_phi(5, 0.1) < 1.0


def test_many_items_approach_the_normal_limit():
    m = 10**6
    theta = tolerance_to_theta(m, 0.5)
    assert theta * m**1.5 == pytest.approx(12 * norm.ppf(0.75), rel=1e-5)
    model = Mallows.from_theta(m, theta)
    assert model.distance_cdf(model.mean_distance) == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize("m", [501, 900, 4000])
def test_the_two_ways_to_the_characteristic_function_agree(m, monkeypatch):
    thetas = [0.0, m**-1.5, 30 * m**-1.5, 1 / m, 10 / m, 44 / m, 46 / m, 0.02, 0.05, 0.3]

    def numbers():
        out = []
        for theta in thetas:
            centre, sd = kendall.mean(m, theta), math.sqrt(kendall.variance(m, theta))
            at = np.floor(kendall.mean(m, theta) + sd * np.array([-6.0, -2.0, 0.0, 1.0, 3.0]))
            out += [*kendall.distribution(m, theta, at), centre / m**2]
            out.append(kendall.total_variation(m, theta, 1.1 * theta + m**-1.5))
        return out

    fast = numbers()
    monkeypatch.setattr(kendall, "_DIRECT", 10**9)
    np.testing.assert_allclose(fast, numbers(), atol=5e-12)


def test_distribution_function_of_hundreds_of_items():
    for phi in (0.2, 0.97, 0.9999, 1.0):
        model = Mallows(200, phi)
        distribution = np.ones(1)
        for j in range(2, 201):  # repeated insertion: item j adds 0 to j - 1
            steps = phi ** np.arange(j)
            distribution = np.convolve(distribution, steps / steps.sum())
        at = np.arange(0, len(distribution), 37)
        np.testing.assert_allclose(model.distance_cdf(at), distribution.cumsum()[at], atol=1e-11)
        assert model.distance_cdf(0.5) == pytest.approx(distribution[0], abs=1e-12)
        assert distribution @ np.arange(len(distribution)) == pytest.approx(
            model.mean_distance, rel=1e-11
        )


@pytest.mark.parametrize("phi", [0.0, 0.6, 1.0])
def test_draws_follow_the_distribution(phi):
    center = np.array([2, 4, 1, 3])
    draws = Mallows(4, phi, center).rvs(200_000, np.random.default_rng(8))
    rankings, _, p = enumerated(4, phi, center)
    key = np.array([1000, 100, 10, 1])
    observed = np.array([(draws @ key == ranking @ key).sum() for ranking in rankings])
    assert observed.sum() == 200_000
    if phi == 0:
        assert (draws == center).all()
    else:
        assert chisquare(observed, 200_000 * p).pvalue > 0.001


def test_draws_of_many_items_follow_the_moments():
    for theta in (0.0, 1e-7, 1e-4, 0.1, 3.0):
        model = Mallows.from_theta(3000, theta)
        draws = model.rvs(400, np.random.default_rng(3))
        d = plain_from_scores(draws)
        error = math.sqrt(model.var_distance / len(d))
        assert abs(d.mean() - model.mean_distance) < 4 * error
        assert d.var() / model.var_distance == pytest.approx(1, abs=0.3)


def plain_from_scores(rankings):
    from privrank.kernels import rankings as kernels

    return kernels.kendall_to_center(rankings, np.arange(1, rankings.shape[1] + 1))


def test_draws_are_batched_without_a_seam(monkeypatch):
    whole = Mallows(5, 0.5).rvs(50, np.random.default_rng(1))
    monkeypatch.setattr("privrank.util.arrays.CELLS", 15)
    np.testing.assert_array_equal(Mallows(5, 0.5).rvs(50, np.random.default_rng(1)), whole)


def test_relabelling_items_permutes_everything():
    rng = np.random.default_rng(2)
    base, center = Mallows(7, 0.7), rng.permutation(7) + 1
    moved = Mallows(7, 0.7, center)
    draws = base.rvs(100, np.random.default_rng(5))
    # item i of the moved model plays the part of the item that has its centre rank in the base
    np.testing.assert_array_equal(moved.rvs(100, np.random.default_rng(5)), draws[:, center - 1])
    np.testing.assert_allclose(moved.logpmf(draws[:, center - 1]), base.logpmf(draws))
    for i, j in itertools.permutations(range(7), 2):
        role = base.pair_probability(int(center[i]) - 1, int(center[j]) - 1)
        assert moved.pair_probability(i, j) == role
    assert moved.total_variation("uniform") == base.total_variation("uniform")


def test_pair_probabilities_near_uniform():
    for gap in (1, 10, 999):
        model = Mallows.from_theta(1000, 1e-12)
        expected = 0.5 + gap_slope(gap) * 1e-12
        assert model.pair_probability(0, gap) == pytest.approx(expected, abs=1e-16)
    chances = [Mallows(1000, 0.99).pair_probability(0, gap) for gap in range(1, 1000)]
    assert (np.diff(chances) > 0).all() and 0.5 < chances[0] and chances[-1] < 1


def gap_slope(gap):
    """d/dtheta of P(i before j) at 0: ((g + 1)^2 - g^2) / 12."""
    return (2 * gap + 1) / 12


def test_frames_are_read_by_name():
    model = Mallows(["x", "y", "z"], 0.4)
    frame = pd.DataFrame(all_rankings(3), columns=["x", "y", "z"])
    np.testing.assert_array_equal(model.pmf(frame[["z", "x", "y"]]), model.pmf(frame.to_numpy()))
    assert model.pmf([1, 2, 3]).shape == (1,)


def test_models_are_frozen():
    model = Mallows(3, 0.5)
    with pytest.raises(AttributeError):
        model.phi = 0.1
    with pytest.raises(ValueError, match="read-only"):
        model.center[0] = 3
    assert repr(model) == "Mallows(3 items, phi=0.5)"


def test_a_center_of_ones_own_stays_writable():
    center = np.array([2, 1, 3])
    model = Mallows(3, 0.5, center)
    center[0] = 9
    assert model.center.tolist() == [2, 1, 3]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("m", [2, 7, 600, 5000])
def test_every_theta_gives_numbers(m):
    last = -1.0
    thetas = (0.0, 1e-200, 1e-99, 1e-16, 1e-5, 0.05, 3.0, 40.0, 699.0, 744.0, 1e300, math.inf)
    for theta in thetas:
        model = Mallows.from_theta(m, theta)
        middle, spread = model.mean_distance, math.sqrt(model.var_distance)
        distribution = model.distance_cdf([-1, 0, middle, middle + 2 * spread, m * m])
        assert (np.diff(distribution) >= 0).all() and distribution[0] == 0 and distribution[-1] == 1
        near = model.total_variation(Mallows.from_theta(m, theta * 1.001))
        assert 0 <= near <= 0.1
        distance = model.total_variation("uniform")
        assert last <= distance <= 1
        last = distance
        assert 0.5 <= model.pair_probability(0, m - 1) <= 1
        draws = model.rvs(3, np.random.default_rng(1))
        assert (model.pmf(draws) >= 0).all()
    assert last == pytest.approx(1 - 1 / math.factorial(min(m, 20)), abs=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Mallows(1, 0.5), "items must be at least 2, got 1."),
        (lambda: Mallows(2.0, 0.5), "items must be a sequence of names, got float"),
        (lambda: Mallows(["a", "a"], 0.5), "items must be distinct"),
        (lambda: Mallows(3, 1.5), r"phi must be a number in \[0, 1\], got 1.5."),
        (lambda: Mallows(3, math.nan), "phi must be a number in"),
        (lambda: Mallows(3, "1"), "phi must be a number in .* got '1'."),
        (lambda: Mallows.from_theta(3, -1.0), r"theta must be a number in \[0, inf\]"),
        (lambda: Mallows(3, 0.5, [1, 2]), "center must hold each of the ranks 1 to 3 once"),
        (lambda: Mallows(3, 0.5, [1, 2, 2]), "center must hold each of the ranks 1 to 3 once"),
        (lambda: Mallows(3, 0.5, [0, 1, 2]), "center must hold each of the ranks 1 to 3 once"),
        (lambda: Mallows(3, 0.5).rvs(0), "size must be at least 1, got 0."),
        (lambda: Mallows(3, 0.5).rvs(2.0), "size must be an integer"),
        (lambda: Mallows(3, 0.5).rvs(2, 1), "rng must be None .* or a numpy.random.Generator"),
        (lambda: Mallows(3, 0.5).pmf([[1, 2, 2]]), "rankings must hold each of the ranks 1 to 3"),
        (lambda: Mallows(3, 0.5).pmf([[1.0, 2.0, np.nan]]), "Complete missing ranks"),
        (lambda: Mallows(3, 0.5).pmf([[1, 2]]), "one column per item, 3, got 2."),
        (lambda: Mallows(3, 0.5).pmf([["a", "b", "c"]]), "rankings must be a matrix of ranks"),
        (
            lambda: Mallows(3, 0.5).pmf(pd.DataFrame([[1, 2, 3]], columns=list("abc"))),
            "rankings must have the items of the model as columns",
        ),
        (lambda: Mallows(3, 0.5).pair_probability(0, 3), "i and j must be items of the model"),
        (lambda: Mallows(3, 0.5).pair_probability(1, 1), "i and j must be two different items"),
        (lambda: Mallows(3, 0.5).distance_cdf([np.nan]), "d must be distances"),
        (lambda: Mallows(3, 0.5).total_variation("normal"), "other must be 'uniform' or a Mallows"),
        (lambda: Mallows(3, 0.5).total_variation(Mallows(4, 0.5)), "the same number of items"),
        (
            lambda: Mallows(3, 0.5).total_variation(Mallows(3, 0.5, [2, 1, 3])),
            "and the same centre",
        ),
        (lambda: tolerance_to_phi(1, 0.5), "m must be at least 2"),
        (lambda: tolerance_to_phi(3, 0.9), r"tolerance must be a number in \[0, 0.833333\]"),
        (lambda: tolerance_to_phi(3, 1e-12), "tolerance must be 0 or at least 1e-09"),
        (lambda: tolerance_to_phi(3, math.nan), "tolerance must be a number in"),
        (lambda: tolerance_to_phi(3, "0.1"), "tolerance must be a number in .* got '0.1'."),
    ],
)
def test_bad_input_is_said_in_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    said = str(caught.value)
    assert said.endswith(".") and "\n" not in said
