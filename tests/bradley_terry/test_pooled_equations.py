"""The mathematics of pooling: generalised least squares, its errors, and the test."""

from itertools import product

import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.special import expit
from scipy.stats import chi2, norm
from statsmodels.stats.proportion import proportion_confint

from privrank.bradley_terry.dependence import floored
from privrank.bradley_terry.errors import SecondMoments
from privrank.bradley_terry.pooledtests import intervals, pvalues
from privrank.bradley_terry.pooling import _beyond, pool
from privrank.bradley_terry.sources import Expected, Source
from privrank.hypotheses.tails import simulated
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise


def covariance(rng, p):
    root = rng.normal(size=(p, p))
    return root @ root.T + 0.2 * np.eye(p)


def linear(values, information, sampling, noise, **more):
    """A result with linear equations: residual G (value - x), constant covariances."""
    values, slope = np.atleast_2d(values), np.asarray(information)[None]
    return Source(
        lambda x: (np.einsum("bpq,bq->bp", slope, values - x), slope),
        lambda x: (sampling[None], noise[None]),
        more.pop("draws", None),
        np.full(len(values), np.inf),
        **more,
    )


def settings(seed, results=3, p=4):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(results, p))
    parts = [[covariance(rng, p) for _ in range(3)] for _ in range(results)]
    return rng, values, parts


def test_several_surveys_are_generalised_least_squares():
    _, values, parts = settings(1)
    sources = [linear(x, *each) for x, each in zip(values, parts, strict=True)]
    found = pool(sources, np.zeros((1, 4)), same=False)
    each = [np.linalg.inv(g) @ (c + v) @ np.linalg.inv(g) for g, c, v in parts]
    precisions = [np.linalg.inv(matrix) for matrix in each]
    whole = np.linalg.inv(sum(precisions))
    weighted = sum(matrix @ x for matrix, x in zip(precisions, values, strict=True))
    assert np.allclose(found.point[0], whole @ weighted)
    assert np.allclose(found.covariance[0], whole)
    assert np.allclose(found.single[:, 0], each)
    assert found.shares.sum() == pytest.approx(1.0)


def test_one_survey_counts_its_sampling_error_once():
    rng, values, parts = settings(2)
    g, c = covariance(rng, 4), covariance(rng, 4)
    noises = [noise for *_, noise in parts]
    sources = [linear(x, g, c, noise) for x, noise in zip(values, noises, strict=True)]
    found = pool(sources, np.zeros((1, 4)), same=True)
    back = np.linalg.inv(g)
    precisions = [g @ np.linalg.inv(noise) @ g for noise in noises]
    noise = np.linalg.inv(sum(precisions))
    weighted = sum(matrix @ x for matrix, x in zip(precisions, values, strict=True))
    assert np.allclose(found.point[0], noise @ weighted)
    assert np.allclose(found.parts[0][0], back @ c @ back)
    assert np.allclose(found.parts[1][0], noise)
    # what all releases share is no part of what they differ by
    moved = [linear(x + 3.0, g, c, noise) for x, noise in zip(values, noises, strict=True)]
    shifted = pool(moved, np.zeros((1, 4)), same=True)
    assert np.allclose(shifted.heterogeneity()[0], found.heterogeneity()[0])


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_no_contrast_is_wider_than_by_one_release(same, seed):
    rng, values, parts = settings(seed, results=2 + seed % 3)
    sources = [linear(x, *each) for x, each in zip(values, parts, strict=True)]
    found = pool(sources, np.zeros((1, 4)), same=same)
    contrasts = rng.normal(size=(200, 4))
    pooled = np.einsum("rp,pq,rq->r", contrasts, found.covariance[0], contrasts)
    alone = np.einsum("rp,kpq,rq->kr", contrasts, found.single[:, 0], contrasts)
    assert (pooled <= alone.min(axis=0) * (1 + 1e-9)).all()


def test_averages_of_one_survey_have_public_weights():
    one = np.eye(1)
    sources = [
        linear([0.0], 2.0 * one, 1.0 * one, one, counts=3.0, measured=0.0),
        linear([0.0], 6.0 * one, 9.0 * one, one, counts=1.0, measured=2.0),
    ]
    found = pool(sources, np.zeros((1, 1)), same=True)
    assert found.parts[0][0, 0, 0] == pytest.approx(9.0 / 3.0**2)
    nobody = [linear([0.0], one, c * one, one, measured=0.0) for c in (1.0, 2.0)]
    assert pool(nobody, np.zeros((1, 1)), same=True).parts[0][0, 0, 0] == pytest.approx(1.5)


@pytest.mark.parametrize("same", [True, False])
def test_errors_are_normal_where_noise_is(same):
    _, values, parts = settings(3)
    sources = [linear(x, *each) for x, each in zip(values, parts, strict=True)]
    found = pool(sources, np.zeros((1, 4)), same=same)
    rows = np.eye(4)
    shown = found.along(rows, np.zeros(4, dtype=int))
    sd = np.sqrt(np.diag(found.covariance[0]))
    assert np.allclose(found.half_widths(shown, 0.05), norm.isf(0.025) * sd, rtol=1e-6)
    assert np.allclose(found.pvalues(shown, 2.0 * sd), 2.0 * norm.sf(2.0))


def test_noise_of_equal_plans_is_drawn_apart():
    # two Laplace draws with equal weights; the same draws twice would have heavier tails
    draws = np.random.default_rng(0).laplace(size=(5_000, 1))
    one = np.eye(1)
    sources = [linear([0.0], one, 1e-9 * one, 2.0 * one, draws=draws) for _ in range(2)]
    found = pool(sources, np.zeros((1, 1)), same=False)
    half = found.half_widths(found.along(one, np.zeros(1, dtype=int)), 0.01)[0]
    mean = np.random.default_rng(1).laplace(size=(400_000, 2)).mean(axis=1)
    assert half == pytest.approx(np.quantile(np.abs(mean), 0.99), rel=0.06)


def test_freedom_is_that_of_the_sampling_variance():
    one = np.eye(1)
    sources = [
        Source(lambda x: (-x, one[None]), lambda x: (one[None], one[None]), None, np.array([df]))
        for df in (5.0, 10.0)
    ]
    found = pool(sources, np.zeros((1, 1)), same=False)
    parts, freedom = found.errors(found.along(one, np.zeros(1, dtype=int)))
    # each sampling part is a quarter of the whole variance
    assert freedom[0] == pytest.approx(1.0 / (0.25**2 / 5.0 + 0.25**2 / 10.0))
    assert parts.total[0] == pytest.approx(1.0)


def test_heterogeneity_is_chi_squared_where_noise_is_normal():
    rng, values, parts = settings(4)
    sources = [linear(x, *each) for x, each in zip(values, parts, strict=True)]
    statistics, pvalues = pool(sources, np.zeros((1, 4)), same=False).heterogeneity()
    each = [np.linalg.inv(g) @ (c + v) @ np.linalg.inv(g) for g, c, v in parts]
    whole = pool(sources, np.zeros((1, 4)), same=False).point[0]
    away = [x - whole for x in values]
    q = sum(d @ np.linalg.inv(v) @ d for d, v in zip(away, each, strict=True))
    assert statistics[0] == pytest.approx(q)
    assert pvalues[0] == pytest.approx(chi2.sf(q, 8), abs=0.02)
    far = [linear(9.0 * x, *part) for x, part in zip(values, parts, strict=True)]
    assert pool(far, np.zeros((1, 4)), same=False).heterogeneity()[1][0] < 1e-4


def test_equations_without_a_solution_have_a_finite_pooled_value():
    # a score that no value explains: expected at most 1, observed 2
    def source():
        return Source(
            lambda x: (2.0 - np.tanh(x), 1.0 / np.cosh(x)[..., None] ** 2),
            lambda x: (np.eye(1)[None], np.eye(1)[None]),
            None,
            np.array([np.inf]),
        )

    found = pool([source(), source()], np.zeros((1, 1)), same=False, spread=1.0)
    assert np.isfinite(found.point).all() and found.point[0, 0] > 0.5


@pytest.mark.parametrize(("same", "expected"), [(True, 5 / 9), (False, 0.64)])
def test_the_ridge_counts_against_the_whole_error(same, expected):
    # the variance v of the pooled value is 1 + 1 of one survey, else (1 + 2) / 2: the solution is
    # 1 / (1 + v), and with its bias taken off (1 + v / (1 + v)) / (1 + v)
    one = np.eye(1)
    sources = [linear([1.0], one, one, 2.0 * one) for _ in range(2)]
    found = pool(sources, np.zeros((1, 1)), same=same, spread=1.0)
    assert found.point[0, 0] == pytest.approx(expected)


def test_intervals_take_the_sampling_error_at_each_value():
    n, one = 40, np.ones((1, 1, 1))
    source = Source(
        lambda x: (0.1 - x, one),
        lambda x: (x[..., None] * (1.0 - x[..., None]) / n, 1e-9 * one),
        None,
        np.array([np.inf]),
    )
    found = pool([source, source], np.full((1, 1), 0.5), same=True)
    ends = np.ravel(found.inverted(0.05, 1.0))
    assert ends == pytest.approx(proportion_confint(0.1 * n, n, method="wilson"), abs=1e-5)


def test_heterogeneity_of_one_survey_is_that_of_its_noise():
    rng, values, parts = settings(5)
    g, c = covariance(rng, 4), 100.0 * covariance(rng, 4)
    sources = [linear(x, g, c, noise) for x, (*_, noise) in zip(values, parts, strict=True)]
    found = pool(sources, np.zeros((1, 4)), same=True)
    statistics, pvalues = found.heterogeneity()
    away = [g @ (x - found.point[0]) for x in values]
    q = sum(d @ np.linalg.inv(v) @ d for d, (*_, v) in zip(away, parts, strict=True))
    assert statistics[0] == pytest.approx(q)
    assert pvalues[0] == pytest.approx(chi2.sf(q, 8), abs=0.02)


def test_heterogeneity_allows_for_estimated_sampling_errors():
    one, size = np.ones((1, 1, 1)), 5.0
    sources = [
        Source(lambda x, v=v: (v - x, one), lambda x: (one, 1e-9 * one), None, np.array([size]))
        for v in (0.0, 3.0)
    ]
    (statistic,), (found,) = pool(sources, np.zeros((1, 1)), same=False).heterogeneity()
    assert statistic == pytest.approx(4.5)
    errors = np.random.default_rng(1).standard_t(size, (400_000, 2))
    # far from .034 of errors that are known, and from .013 of lighter tails
    assert found == pytest.approx(np.mean(np.ptp(errors, axis=1) >= 3.0), abs=0.01)


def test_far_values_are_as_improbable_as_a_tail_of_the_draws():
    draws = np.random.default_rng(2).exponential(size=9_999)
    assert _beyond(12.0, draws) == pytest.approx(np.exp(-12.0), rel=1.0)
    assert _beyond(8.0, np.arange(9.0)) == 2 / 10


def measured(scores, matrix, noise=0.0, weight=1.0, p=4):
    """A result whose sampling covariance is known by second moments, at least that of `scores`."""
    moments = SecondMoments(matrix, np.eye(p + 1), noise, scores)
    one, floor = np.eye(p), floored(*moments.matrices)
    more = {"moments": lambda x: moments, "measured": weight}
    return linear(np.zeros((1, p)), one, floor, 0.1 * one, **more)


def test_second_moments_of_one_survey_are_averaged_before_they_are_cut_off():
    rng, scores = np.random.default_rng(5), helmert(5)
    true, away = 2.0 * np.eye(5), rng.normal(size=(5, 5))
    away = 3.0 * (away + away.T)  # noise of the two estimates that cancels
    rows, blocks = rng.normal(size=(100, 4)), np.zeros(100, dtype=int)
    pair = [measured(scores, true + away, 0.3), measured(scores, true - away, 0.3)]
    found = pool(pair, np.zeros((1, 4)), same=True)
    parts, freedom = found.errors(found.along(rows, blocks))
    length = (rows**2).sum(axis=1)
    assert np.allclose(parts.variance, (2.0 + 0.1 / 2) * length)
    assert np.allclose(found.parts[0][0], 2.0 * np.eye(4))
    # the noise of their mean has half the variance
    alone = pool(pair[:1], np.zeros((1, 4)), same=True)
    one = alone.errors(alone.along(rows, blocks))[0]
    assert np.allclose(parts.side, one.side / 2.0)
    assert (one.variance >= (1.0 + 0.1) * length * (1 - 1e-9)).all()
    assert np.isfinite(freedom).all()
    # an upper bound of the dependence is no estimate, and does not count beside one
    bound = linear(np.zeros((1, 4)), np.eye(4), 9.0 * np.eye(4), 0.1 * np.eye(4), measured=5.0)
    mixed = pool([*pair, bound], np.zeros((1, 4)), same=True)
    assert np.allclose(mixed.parts[0][0], 2.0 * np.eye(4))


def test_second_moments_of_several_surveys_are_cut_off_in_every_direction():
    scores, away = helmert(5), 3.0 * np.diag([1.0, -1.0, 0.0, 0.0, 0.0])
    pair = [measured(scores, 2.0 * np.eye(5) + sign * away, 0.3) for sign in (1.0, -1.0)]
    found = pool(pair, np.zeros((1, 4)), same=False)
    rows = np.random.default_rng(6).normal(size=(100, 4))
    shown = found.along(rows, np.zeros(100, dtype=int))
    parts = found.errors(shown)[0]
    # as the weights are taken from them
    assert np.allclose(parts.variance, np.einsum("rp,pq,rq->r", rows, found.covariance[0], rows))
    each = [source.moments(None).forms(a) for source, a in zip(pair, shown.residuals, strict=True)]
    assert np.allclose(parts.side, each[0][2] + each[1][2])


@pytest.mark.parametrize("ratio", [1.0, 1.5, 3.0, 10.0])
@pytest.mark.parametrize("sampling", [1e-9, 1.0])
def test_an_interval_of_one_survey_is_no_wider_than_by_one_release_alike(ratio, sampling):
    rng, one = np.random.default_rng(7), np.eye(1)
    shapes = [
        rng.laplace(size=(5_000, 1)),
        rng.normal(size=(5_000, 1)),
        simulated(CubeNoise.calibrate(3, 1, 0.1), (5_000, 1), rng),
        simulated(PermutohedronNoise.calibrate(4, 0.1), (5_000, 4), rng)[:, :1],
    ]
    for both in product(shapes, repeat=2):
        sources = [
            linear([0.0], one, sampling * one, size * one, draws=draws)
            for draws, size in zip(both, (1.0, ratio**2), strict=True)
        ]
        found = [pool(each, np.zeros((1, 1)), same=True) for each in (sources, *zip(sources))]
        shown = [each.along(one, np.zeros(1, dtype=int)) for each in found]
        # a shape with heavier tails than the best release's can add a little at some levels
        alike = both[0] is both[1]
        for alpha in (0.1, 0.05, 0.001) if alike else (0.05,):
            half = [each.half_widths(x, alpha)[0] for each, x in zip(found, shown, strict=True)]
            assert half[0] <= min(half[1:]) * (1.005 if alike else 1.02)


def test_pooled_score_tests_are_those_of_one_release_with_all_comparisons():
    rng = np.random.default_rng(8)
    first, second = np.triu_indices(4, 1)
    worth, count = np.array([2.0, 0.5, -0.5, -2.0]), 80
    net = 2 * rng.binomial(count, expit(worth[first] - worth[second])) - count
    contrasts = (np.eye(4)[first] - np.eye(4)[second]) @ helmert(4).T

    def source(share):
        """A part of the comparisons, and of the noise of their scores."""

        def expected(points):
            edges = points @ contrasts.T
            slope = share * count * expit(edges) * expit(-edges)
            information = np.einsum("be,ep,eq->bpq", slope, contrasts, contrasts)
            mean = share * count * (expit(edges) - 0.5) @ contrasts
            return Expected(mean, information, information)

        def equations(point):
            found = expected(point)
            return (0.5 * share * net @ contrasts)[None] - found.mean, found.information

        return Source(
            equations,
            lambda x: (expected(x).information, share * 9.0 * np.eye(3)[None]),
            None,
            np.array([np.inf]),
            expected=expected,
            far=40.0,
        )

    whole = pool([source(1.0)], np.zeros((1, 3)), same=False)
    parts = pool([source(0.3), source(0.7)], np.zeros((1, 3)), same=False)
    assert np.allclose(whole.point, parts.point)
    for one, other in zip(*(intervals(x, contrasts, 0.05) for x in (whole, parts)), strict=True):
        assert np.allclose(one, other, atol=1e-4)
    low, high = intervals(whole, contrasts, 0.05)
    value = contrasts @ whole.point[0]
    # limits are the values that are just rejected: by hand, on the path of the least change
    c = contrasts[2]
    moved = whole.covariance[0] @ c / (c @ whole.covariance[0] @ c)
    for end in (low[2], high[2]):
        there = source(1.0).expected(whole.point + moved * (end - value[2]))
        variance = there.information[0] + 9.0 * np.eye(3)
        j = there.information[0] @ np.linalg.solve(whole._here.apart[0, 0], there.information[0])
        a = np.linalg.solve(j, c) @ there.information[0] @ np.linalg.inv(whole._here.apart[0, 0])
        away = a @ (source(1.0).expected(whole.point).mean - there.mean)[0]
        assert abs(away) / np.sqrt(a @ variance @ a) == pytest.approx(norm.isf(0.025), rel=0.01)
    # farther out than in, where an item wins nearly always
    assert high[2] - value[2] > 1.05 * (value[2] - low[2])
    kept = pvalues(whole, contrasts) > 0.05
    assert ((low < 0) & (high > 0) == kept).all()
