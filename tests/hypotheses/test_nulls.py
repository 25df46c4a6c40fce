"""Null distributions: tails against direct convolution, valid p-values, public seeds."""

import math
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare, kstest, laplace, norm

from privrank.hypotheses import nulls
from privrank.hypotheses.nulls import Null, null_draws, public_generator, uniform_rankings
from privrank.hypotheses.tails import normal_laplace_tail
from privrank.privacy.noise import DiscreteLaplace
from privrank.util import workers


def convolved(x, sd, scale):
    """P(|Z + L| > x), integrating the Laplace tail over the normal part piece by piece."""
    corners = {0.0, x, *(x + sign * k * scale for k in (1, 5, 30) for sign in (-1, 1))}
    edges = sorted({-12 * sd, 12 * sd, *(c for c in corners if abs(c) < 12 * sd)})
    return 2 * sum(
        quad(
            lambda z: norm.pdf(z, scale=sd) * laplace.sf(x - z, scale=scale),
            low,
            high,
            epsabs=1e-13,
            limit=400,
        )[0]
        for low, high in pairwise(edges)
    )


def inverted(x, sd, scales):
    """P(|Z + L_1 + ...| > x) from the characteristic function, by Gauss-Legendre on 60 octaves."""
    edges = np.concatenate(([0.0], np.geomspace(1e-9 / max(sd, *scales), 14 / sd, 60)))
    nodes, weights = np.polynomial.legendre.leggauss(200)
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    t = half * nodes + middle
    values = np.exp(-0.5 * (sd * t) ** 2) * np.sin(t * x) / t
    for scale in scales:
        values /= 1 + (scale * t) ** 2
    return 1 - 2 / np.pi * float((values * half * weights).sum())


X = (0.0, 0.3, 1.0, 4.0)


@pytest.mark.parametrize("x", [*X, 30.0])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 0.05, 1.0, 20.0, 1e4])
def test_one_laplace_term(x, scale):
    expected = convolved(x, 1.0, scale)
    assert float(normal_laplace_tail(x, 1.0, (scale,))) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("scale", [1e-3, 0.7, 30.0])
def test_the_two_references_agree(scale):
    for x in X:
        assert inverted(x, 1.0, [scale]) == pytest.approx(convolved(x, 1.0, scale), abs=1e-10)


# equal scales need care: the mixture of two Laplace terms is then a difference of large numbers
@pytest.mark.parametrize("x", [*X, 30.0])
@pytest.mark.parametrize(
    "scales",
    [
        (0.5, 0.5),
        (8.0, 8.0),
        (1e-3, 1e-3),
        (0.5, 0.50001),
        (1.0, 1.0001),
        (1.0, 1.01),
        (3.0, 0.2),
        (1e-5, 2.0),
        (1e3, 1e3),
    ],
)
def test_two_laplace_terms(x, scales):
    expected = inverted(x, 1.0, scales)
    for order in (scales, scales[::-1]):
        assert float(normal_laplace_tail(x, 1.0, order)) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("sd", [1e-4, 1e-2, 5.0, 300.0])
def test_other_normal_scales(sd):
    for x in (0.2, 1.5):
        expected = convolved(x, sd, 0.7)
        assert float(normal_laplace_tail(x, sd, (0.7,))) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("sd", [1e-6, 1e-4])
def test_nearly_all_laplace(sd):
    # with hardly any normal part the distribution is that of the Laplace terms: (1 + x / 2b)
    # e^{-x/b} for two of one scale
    x, b = 1.3, 0.4
    assert float(normal_laplace_tail(x, sd, (b,))) == pytest.approx(np.exp(-x / b), abs=1e-7)
    two = (1 + x / (2 * b)) * np.exp(-x / b)
    assert float(normal_laplace_tail(x, sd, (b, b))) == pytest.approx(two, abs=1e-7)


@pytest.mark.parametrize("scales", [(), (0.0,), (0.0, 0.0)])
def test_no_laplace_term(scales):
    for x in X:
        assert float(normal_laplace_tail(x, 2.0, scales)) == pytest.approx(2 * norm.sf(x / 2.0))


@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_an_absent_second_term(scale):
    for x in X:
        one = float(normal_laplace_tail(x, 1.0, (scale,)))
        assert float(normal_laplace_tail(x, 1.0, (scale, 0.0))) == pytest.approx(one, abs=1e-9)
        assert float(normal_laplace_tail(x, 1.0, (0.0, scale))) == pytest.approx(one, abs=1e-9)


def test_arrays_are_taken_element_by_element():
    x = np.array([[0.1, 2.0], [3.0, 0.0]])
    sd = np.array([1.0, 2.0])
    scale = np.array([[0.0, 1.0], [2.0, 0.5]])
    table = normal_laplace_tail(x, sd, (scale, scale.T))
    assert table.shape == (2, 2)
    for i in range(2):
        for j in range(2):
            one = normal_laplace_tail(x[i, j], sd[j], (scale[i, j], scale[j, i]))
            assert table[i, j] == pytest.approx(float(one), abs=1e-12)


def test_a_tail_is_a_probability_and_falls():
    x = np.concatenate(([0.0], np.geomspace(1e-6, 1e6, 400)))
    for sd in (1e-3, 1.0, 1e3):
        for scales in ((), (1e-4,), (1.0,), (1e4,), (1.0, 1.0), (1e-4, 1e4), (3.0, 2.9)):
            with np.errstate(over="raise", invalid="raise"):
                tail = normal_laplace_tail(x, sd, scales)
            assert tail[0] == pytest.approx(1.0, abs=1e-7)
            assert ((tail >= 0) & (tail <= 1 + 1e-12)).all()
            assert (np.diff(tail) <= 1e-9).all()


def test_simulated_noise_follows_the_tail():
    # the distribution that fits are judged by is the distribution of the noise they are given
    rng = np.random.default_rng(4)
    distribution = DiscreteLaplace(400.0)
    noise = (
        rng.normal(0, 500.0, 20_000)
        + distribution.simulate(20_000, rng)
        - distribution.simulate(20_000, rng)
    )
    pvalues = normal_laplace_tail(np.abs(noise), 500.0, (400.0, 400.0))
    assert kstest(pvalues, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("statistic", "table", "expected"),
    [(2, [1, 2, 3], 3 / 4), (5, [1, 2, 3], 1 / 4), (0, [1], 1.0), (2, [3, 2, 2, 1], 4 / 5)],
)
def test_pvalue_without_noise_counts_itself_and_ties(statistic, table, expected):
    null = Null.of_draws(np.array(table))
    assert null.pvalue(statistic, DiscreteLaplace(0.0)) == expected


def test_pvalue_without_noise_is_not_rounded():
    """So that a p-value of .05 is no larger than .05, whatever adds up the draws."""
    table = np.repeat(np.arange(141), np.arange(141))  # the value k is drawn k times
    null, noise = Null.of_draws(table), DiscreteLaplace(0.0)
    for value in range(1, 141):
        beyond = np.count_nonzero(table >= value)
        assert null.pvalue(value, noise) == (1 + beyond) / (1 + len(table))


@pytest.mark.parametrize("draws", [None, 10])
def test_pvalue_is_the_tail_of_statistic_plus_noise(draws):
    distribution = DiscreteLaplace(2.5)
    values, weights = np.array([-3, 0, 7]), np.array([0.2, 0.5, 0.3])
    span = np.arange(-400, 401)
    for x in (-9, -3, 0, 1, 6, 20):
        tail = sum(
            w * distribution.pmf(span)[span >= x - v].sum()
            for v, w in zip(values, weights, strict=True)
        )
        expected = tail if draws is None else (1 + draws * tail) / (1 + draws)
        assert Null(values, weights, draws).pvalue(x, distribution) == pytest.approx(
            expected, abs=1e-12
        )


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.25])
@pytest.mark.parametrize("size", [19, 99])
@pytest.mark.parametrize("scale", [0.0, 1.5])
def test_monte_carlo_pvalue_is_valid_at_every_table_size(alpha, size, scale):
    # discrete statistics with many ties; the level holds exactly, for small tables too
    rng = np.random.default_rng(9)
    distribution = DiscreteLaplace(scale)
    draws = rng.integers(0, 6, (4000, size + 1))
    observed = draws[:, 0] + distribution.simulate(4000, rng)
    pvalues = np.array(
        [
            Null.of_draws(row).pvalue(int(x), distribution)
            for x, row in zip(observed, draws[:, 1:], strict=True)
        ]
    )
    assert np.mean(pvalues <= alpha) <= alpha + 2 * np.sqrt(alpha * (1 - alpha) / 4000)


def test_threshold_is_the_least_rejected_statistic():
    for null in (
        Null(np.array([0, 3, 4]), np.array([0.5, 0.3, 0.2])),
        Null.of_draws(np.arange(99)),
    ):
        for scale in (0.0, 0.7, 30.0):
            distribution = DiscreteLaplace(scale)
            for alpha in (0.01, 0.05, 0.3):
                threshold = null.threshold(alpha, distribution)
                assert (
                    null.pvalue(threshold, distribution)
                    <= alpha
                    < null.pvalue(threshold - 1, distribution)
                )
    assert Null.of_draws(np.arange(9)).threshold(0.05, DiscreteLaplace(1.0)) is None


def test_public_generator_is_a_function_of_its_name_and_sizes():
    def start(*key):
        return public_generator(*key).bit_generator.random_raw(3).tolist()

    assert start("homogeneity", 6, 303) == start("homogeneity", 6, 303)
    others = [("homogeneity", 6, 304), ("homogeneity", 7, 303), ("contrast quantile", 6, 303)]
    starts = [start("homogeneity", 6, 303), *(start(*key) for key in others)]
    assert len({tuple(words) for words in starts}) == 4
    np.random.seed(1)  # noqa: NPY002 - the global state must not matter
    assert start("homogeneity", 6, 303) == starts[0]


def test_public_generator_is_pinned():
    # Philox and SeedSequence promise the same words for ever: a p-value can be recomputed later.
    # If this fails on purpose, raise TABLE_VERSION.
    assert public_generator("pinned", 2, 3).bit_generator.random_raw() == 4660665881385307672


def a_draw(rng):
    return int(rng.integers(1000))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVRANK_CACHE", str(tmp_path / "tables"))
    monkeypatch.setattr(nulls, "_MEMORY", {})
    return tmp_path / "tables"


def test_null_draws_are_one_sequence_however_they_are_asked_for(cache, monkeypatch):
    many = null_draws("test", (3, 4), a_draw, 300)
    monkeypatch.setattr(nulls, "_MEMORY", {})
    for stored in cache.iterdir():
        stored.unlink()
    few = null_draws("test", (3, 4), a_draw, 70)
    np.testing.assert_array_equal(few, many[:70])
    np.testing.assert_array_equal(null_draws("test", (3, 4), a_draw, 300), many)
    monkeypatch.setattr(nulls, "_MEMORY", {})  # now from the file
    monkeypatch.setattr(nulls, "_block", None)
    np.testing.assert_array_equal(null_draws("test", (3, 4), a_draw, 300), many)


def test_null_draws_show_progress_and_use_all_cores(cache, monkeypatch, capsys):
    alone = null_draws("test", (5,), a_draw, 400)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    monkeypatch.setattr(workers, "PATIENCE", -1.0)
    monkeypatch.setattr(nulls, "_MEMORY", {})
    monkeypatch.setenv("PRIVRANK_CACHE", str(cache / "other"))
    np.testing.assert_array_equal(null_draws("test", (5,), a_draw, 400), alone)
    assert capsys.readouterr().err == ""  # no terminal
    monkeypatch.setattr(nulls, "_MEMORY", {})
    monkeypatch.setenv("PRIVRANK_CACHE", str(cache / "third"))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    np.testing.assert_array_equal(null_draws("test", (5,), a_draw, 400), alone)
    assert "null table of the test:" in capsys.readouterr().err


def test_a_damaged_or_forbidden_cache_changes_nothing(cache, monkeypatch):
    fresh = null_draws("test", (1,), a_draw, 64)
    [stored] = cache.iterdir()
    stored.write_bytes(b"not a table")
    monkeypatch.setattr(nulls, "_MEMORY", {})
    np.testing.assert_array_equal(null_draws("test", (1,), a_draw, 64), fresh)
    (cache / "file").write_text("")
    monkeypatch.setenv("PRIVRANK_CACHE", str(cache / "file"))
    monkeypatch.setattr(nulls, "_MEMORY", {})
    np.testing.assert_array_equal(null_draws("test", (1,), a_draw, 64), fresh)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_uniform_rankings_are_uniform(m):
    ranks = uniform_rankings(np.random.default_rng(3), 60_000, m)
    assert (np.sort(ranks, axis=1) == np.arange(1, m + 1)).all()
    _, counts = np.unique(ranks, axis=0, return_counts=True)
    assert len(counts) == math.factorial(m)
    assert chisquare(counts).pvalue > 1e-3
