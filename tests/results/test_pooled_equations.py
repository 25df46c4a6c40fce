"""The mathematics of pooling: generalised least squares, its errors, the test, and the sources."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import helmert
from scipy.stats import chi2, f, norm, t
from scipy.stats import kurtosis as excess_kurtosis

import privrank as pr
from privrank.bradley_terry.estimate import response_covariance, score_covariance
from privrank.bradley_terry.fit import answer_probabilities
from privrank.results.claims import CLAIMS
from privrank.results.pooling import Source, combine, fraction_source, score_source, worth_source

ITEMS = ["a", "b", "c", "d"]
FIRST, SECOND = np.triu_indices(4, 1)
N = 150


def covariance(rng, p):
    root = rng.normal(size=(p, p))
    return root @ root.T + 0.2 * np.eye(p)


def linear(values, slope, sampling, noise, least=None, df=np.inf, **more):
    """A result with linear equations: residual G (value - x), constant covariances."""
    values, slope = np.atleast_2d(values), np.asarray(slope)[None]
    least = sampling if least is None else least
    matrices = (slope, sampling[None], least[None], noise[None])
    return Source(
        lambda x: (np.einsum("bpq,bq->bp", slope, values - x), *matrices),
        np.full(len(values), df),
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
    found = combine(sources, np.zeros((1, 4)), same=False)
    each = [np.linalg.inv(g) @ (c + v) @ np.linalg.inv(g) for g, c, v in parts]
    precisions = [np.linalg.inv(matrix) for matrix in each]
    whole = np.linalg.inv(sum(precisions))
    weighted = sum(matrix @ x for matrix, x in zip(precisions, values, strict=True))
    assert np.allclose(found.point[0], whole @ weighted)
    assert np.allclose(sum(found.parts)[0], whole)
    assert np.allclose(found.single[:, 0], each)
    assert found.shares.sum() == pytest.approx(1.0)


def test_one_survey_counts_its_sampling_error_once():
    rng, values, parts = settings(2)
    g, c = covariance(rng, 4), covariance(rng, 4)
    noises = [noise for *_, noise in parts]
    sources = [linear(x, g, c, noise) for x, noise in zip(values, noises, strict=True)]
    found = combine(sources, np.zeros((1, 4)), same=True)
    back = np.linalg.inv(g)
    precisions = [g @ np.linalg.inv(noise) @ g for noise in noises]
    noise = np.linalg.inv(sum(precisions))
    weighted = sum(matrix @ x for matrix, x in zip(precisions, values, strict=True))
    assert np.allclose(found.point[0], noise @ weighted)
    assert np.allclose(found.parts[0][0], back @ c @ back)
    assert np.allclose(found.parts[1][0], noise)
    # what all releases share is no part of what they differ by
    moved = [linear(x + 3.0, g, c, noise) for x, noise in zip(values, noises, strict=True)]
    shifted = combine(moved, np.zeros((1, 4)), same=True)
    assert np.allclose(shifted.heterogeneity()[0], found.heterogeneity()[0])


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_no_contrast_is_wider_than_by_one_release(same, seed):
    rng, values, parts = settings(seed, results=2 + seed % 3)
    sources = [linear(x, *each) for x, each in zip(values, parts, strict=True)]
    found = combine(sources, np.zeros((1, 4)), same=same)
    contrasts = rng.normal(size=(200, 4))
    pooled = np.einsum("rp,pq,rq->r", contrasts, sum(found.parts)[0], contrasts)
    alone = np.einsum("rp,kpq,rq->kr", contrasts, found.single[:, 0], contrasts)
    assert (pooled <= alone.min(axis=0) * (1 + 1e-9)).all()


def test_averages_of_one_survey_have_public_weights():
    one = np.eye(1)
    sources = [
        linear([0.0], 2.0 * one, 1.0 * one, one, weight=3.0),
        linear([0.0], 6.0 * one, 9.0 * one, one, weight=1.0),
    ]
    found = combine(sources, np.zeros((1, 1)), same=True)
    assert found.parts[0][0, 0, 0] == pytest.approx(3.0 / 3.0**2)


@pytest.mark.parametrize("same", [True, False])
def test_errors_are_normal_where_noise_is(same):
    _, values, parts = settings(3)
    sources = [linear(x, *each) for x, each in zip(values, parts, strict=True)]
    found = combine(sources, np.zeros((1, 4)), same=same)
    shown = np.eye(4), np.zeros(4, dtype=int)
    sd = np.sqrt(np.diag(sum(found.parts)[0]))
    lower, upper = found.limits(*shown, 0.05)
    assert np.allclose(found.value(*shown), found.point[0])
    width = upper - lower
    assert np.allclose(width, 2.0 * norm.isf(0.025) * sd, rtol=1e-6)
    assert np.allclose(found.pvalues(*shown, 0.5), 2.0 * norm.sf(abs(found.point[0] - 0.5) / sd))


def test_degrees_of_freedom_are_those_of_sampling_variances_and_of_kurtosis():
    one, shown = np.eye(1), (np.eye(1), np.zeros(1, dtype=int))
    sources = [linear([0.0], one, one, one, df=df) for df in (5.0, 10.0)]
    errors, freedom = combine(sources, np.zeros((1, 1)), same=False).errors(*shown)
    # each sampling part is a quarter of the whole variance
    assert freedom[0] == pytest.approx(1.0 / (0.25**2 / 5.0 + 0.25**2 / 10.0))
    assert errors[0] == pytest.approx(1.0)
    draws = np.random.default_rng(0).laplace(size=(5_000, 1))
    sources = [linear([0.0], one, 1e-9 * one, 2.0 * one, draws=draws) for _ in range(2)]
    _, freedom = combine(sources, np.zeros((1, 1)), same=False).errors(*shown)
    # the mean of two has half the excess kurtosis
    assert freedom[0] == pytest.approx(4.0 + 6.0 / (excess_kurtosis(draws[:, 0]) / 2.0), rel=1e-3)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("sampling", [0.0, 0.3])
@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.01, 0.001])
def test_intervals_hold_the_exact_distribution_of_laplace_noise(count, sampling, alpha):
    """The two-sided tail beyond the limit, by simulation of the whole error."""
    rng, one = np.random.default_rng(1), np.eye(1)
    draws = rng.laplace(size=(20_000, 1))
    sources = [
        linear([0.0], one, max(sampling, 1e-9) * one, 2.0 * one, draws=draws) for _ in range(count)
    ]
    found = combine(sources, np.zeros((1, 1)), same=False)
    half = found.limits(one, np.zeros(1, dtype=int), alpha)[1][0]
    error = rng.laplace(size=(400_000, count)) + rng.normal(0, sampling**0.5, (400_000, count))
    share = np.mean(np.abs(error.mean(axis=1)) > half)
    assert share <= alpha + 2.0 * np.sqrt(alpha / 400_000)


def test_heterogeneity_is_chi_squared_where_noise_is_normal():
    rng, values, parts = settings(4)
    sources = [linear(x, *each) for x, each in zip(values, parts, strict=True)]
    found = combine(sources, np.zeros((1, 4)), same=False)
    each = [np.linalg.inv(g) @ (c + v) @ np.linalg.inv(g) for g, c, v in parts]
    away = [x - found.point[0] for x in values]
    q = sum(d @ np.linalg.inv(v) @ d for d, v in zip(away, each, strict=True))
    statistics, pvalues = found.heterogeneity()
    assert statistics[0] == pytest.approx(q)
    assert pvalues[0] == pytest.approx(chi2.sf(q, 8), rel=1e-5)
    far = [linear(9.0 * x, *part) for x, part in zip(values, parts, strict=True)]
    assert combine(far, np.zeros((1, 4)), same=False).heterogeneity()[1][0] < 1e-4


def test_heterogeneity_of_one_survey_is_that_of_its_noise():
    rng, values, parts = settings(5)
    g, c = covariance(rng, 4), 100.0 * covariance(rng, 4)
    sources = [linear(x, g, c, noise) for x, (*_, noise) in zip(values, parts, strict=True)]
    found = combine(sources, np.zeros((1, 4)), same=True)
    statistics, pvalues = found.heterogeneity()
    away = [g @ (x - found.point[0]) for x in values]
    q = sum(d @ np.linalg.inv(v) @ d for d, (*_, v) in zip(away, parts, strict=True))
    assert statistics[0] == pytest.approx(q)
    assert pvalues[0] == pytest.approx(chi2.sf(q, 8), rel=1e-5)


def test_heterogeneity_allows_for_estimated_sampling_errors():
    one = np.eye(1)
    sources = [linear([v], one, one, 1e-9 * one, df=5.0) for v in (0.0, 3.0)]
    (statistic,), (found,) = combine(sources, np.zeros((1, 1)), same=False).heterogeneity()
    assert statistic == pytest.approx(4.5)
    # Welch's test of two means, whose variances are known with 5 degrees of freedom each
    assert found == pytest.approx(2.0 * t.sf(4.5**0.5, 10.0), rel=1e-6)


@pytest.mark.parametrize(("results", "p"), [(2, 1), (2, 5), (5, 5)])
@pytest.mark.parametrize("alpha", [0.05, 0.002])
def test_heterogeneity_holds_its_level_under_laplace_noise(results, p, alpha):
    rng, one = np.random.default_rng(2), np.eye(p)
    draws = rng.laplace(size=(20_000, p))
    sources = [linear(np.zeros(p), one, 1e-9 * one, 2.0 * one, draws=draws)] * results
    found = combine(sources, np.zeros((1, p)), same=False)
    values = rng.laplace(size=(200_000, results, p))
    q = ((values - values.mean(axis=1, keepdims=True)) ** 2 / 2.0).sum(axis=(1, 2))
    # the p-value of every Q: that of F with the degrees of freedom that are used here
    moved = [linear(np.full(p, v), one, 1e-9 * one, 2.0 * one, draws=draws) for v in (-2.0, 2.0)]
    df = found.freedom
    other = combine([*moved, *sources[2:]], np.zeros((1, p)), same=False)
    (statistic,), (pvalue,) = other.heterogeneity()
    grid = np.geomspace(4.0, 1e9, 2_000)
    second = grid[np.argmin(np.abs(f.sf(statistic / df, df, grid) - pvalue))]
    assert np.mean(f.sf(q / df, df, second) <= alpha) <= alpha + 2.0 * np.sqrt(alpha / 200_000)


def test_equations_without_a_solution_have_a_finite_pooled_value():
    # a score that no value explains: expected at most 1, observed 2
    one = np.eye(1)[None]

    def at(x):
        return 2.0 - np.tanh(x), 1.0 / np.cosh(x)[..., None] ** 2, one, one, one

    source = Source(at, np.array([np.inf]))
    found = combine([source, source], np.zeros((1, 1)), same=False, spread=1.0)
    assert np.isfinite(found.point).all() and found.point[0, 0] > 0.5


@pytest.mark.parametrize(("same", "expected"), [(True, 5 / 9), (False, 0.64)])
def test_the_ridge_counts_against_the_whole_error(same, expected):
    # the variance v of the pooled value is 1 + 1 of one survey, else (1 + 2) / 2: the solution is
    # 1 / (1 + v), and with its bias taken off (1 + v / (1 + v)) / (1 + v)
    one = np.eye(1)
    sources = [linear([1.0], one, one, 2.0 * one) for _ in range(2)]
    found = combine(sources, np.zeros((1, 1)), same=same, spread=1.0)
    assert found.point[0, 0] == pytest.approx(expected)


def test_second_moments_of_one_survey_are_averaged_before_they_are_cut_off():
    true, noise = 2.0 * np.eye(4), np.random.default_rng(5).normal(size=(4, 4))
    noise = 3.0 * (noise + noise.T)  # noise of the two estimates that cancels
    zero, one = np.zeros((1, 4)), np.eye(4)
    pair = [linear(zero, one, true + sign * noise, 0.1 * one, least=one) for sign in (1.0, -1.0)]
    found = combine(pair, zero, same=True)
    assert np.allclose(found.parts[0][0], true)
    # several surveys have each its own, in no direction less than independent answers
    apart = combine(pair, zero, same=False)
    assert np.linalg.eigvalsh(apart._here.sampling[:, 0]).min() >= 1.0 - 1e-9
    assert np.trace(apart._here.sampling[0, 0] - true) > np.trace(noise)


def comparisons(**more):
    rng = np.random.default_rng(0)
    ahead = rng.random((200, 6)) < 1.0 / (1.0 + np.exp(0.6 * (FIRST - SECOND)))
    frame = pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(200), 6),
            "item1": np.tile(np.array(ITEMS)[FIRST], 200),
            "item2": np.tile(np.array(ITEMS)[SECOND], 200),
            "outcome": np.where(ahead, 1, -1).ravel(),
        }
    )
    return pr.PrivateBTL(frame, items=ITEMS, respondent="respondent", max_rows=6, **more)


@pytest.mark.parametrize(
    "given", [{"design": "public"}, {"method": "counts"}, {"method": "objective"}]
)
def test_errors_are_those_of_the_fit_by_itself(given):
    asked = comparisons(design=given.pop("design", "private"))
    both = [asked.fit(e, rng=np.random.default_rng(k), **given) for k, e in enumerate((2.0, 4.0))]
    # declared of several surveys, each keeps its own estimate of the sampling error
    pooled = pr.pool(both, survey="different")
    for k, result in enumerate(both):
        assert pooled.bse_single.iloc[:, k].to_numpy() == pytest.approx(result.bse, rel=0.1)
        assert worth_source(result._inference()).weight == (2.0, 4.0)[k] ** 2


def test_what_responses_add_counts_as_noise_once():
    protocol = pr.local.Comparisons(ITEMS, 1.0)
    ranked = pr.Mallows(ITEMS, 0.6).rvs(600, np.random.default_rng(1))
    tally = protocol.tally(protocol.simulate(np.asarray(ranked), np.random.default_rng(2)))
    inference = pr.PrivateBTL.from_reports(tally)._inference()
    facts = inference.equations
    basis = np.linalg.qr(np.eye(4) - 0.25)[0][:, :3].T
    _, _, sampling, _, noise = worth_source(inference).at(np.zeros((1, 3)))
    added = basis @ response_covariance(facts) @ basis.T
    whole = basis @ score_covariance(facts, inference.release, np.zeros(4)) @ basis.T
    assert np.trace(added) > np.trace(sampling[0]) > 0
    assert np.trace(noise[0]) == pytest.approx(np.trace(added))
    assert np.trace(sampling[0] + noise[0]) == pytest.approx(np.trace(whole))


def tied(seed, people=250, worth=0.8, tie=-0.5):
    """A survey in which ties are as probable as a tie parameter says."""
    rng = np.random.default_rng(seed)
    worths = np.linspace(worth, -worth, 4)
    won, even, _ = answer_probabilities((worths[FIRST] - worths[SECOND])[None, :], tie)
    draw = rng.random((people, 6))
    outcome = np.where(draw < won, 1, np.where(draw < won + even, 0, -1))
    return pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(people), 6),
            "item1": np.tile(np.array(ITEMS)[FIRST], people),
            "item2": np.tile(np.array(ITEMS)[SECOND], people),
            "outcome": outcome.ravel(),
        }
    )


def tied_fit(seed, epsilon=2.0, *, design="public", ties="davidson", **survey):
    data = {"items": ITEMS, "respondent": "respondent", "max_rows": 6, "ties": ties}
    model = pr.PrivateBTL(tied(seed, **survey), design=design, **data)
    return model.fit(epsilon, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("design", ["public", "private"])
def test_a_source_with_ties_is_its_own_fit(design):
    result = tied_fit(1, 4.0, design=design)
    source, basis = worth_source(result._inference()), helmert(4)
    found = combine([source], np.zeros((1, 3)), same=False)
    alone = pr.PrivateBTL.from_release(result.release, penalty=0)
    assert basis.T @ found.point[0] == pytest.approx(alone.params.to_numpy(), abs=1e-6)
    for part, name in zip(found.parts, ("sampling", "privacy"), strict=True):
        errors = np.sqrt(np.diag(basis.T @ part[0] @ basis))
        assert errors == pytest.approx(getattr(alone, f"bse_{name}").to_numpy(), rel=1e-5)
    # the noise of worths, net of what the tie parameter takes of it
    noise = source.at(found.point)[4][0]
    assert np.cov(source.draws.T) == pytest.approx(noise, rel=0.1, abs=0.1 * np.trace(noise))


def test_the_slope_with_ties_is_that_of_the_residual():
    source, point = worth_source(tied_fit(2)._inference()), np.array([[0.3, -0.2, 0.5]])
    slope = source.at(point)[1][0]
    for k, step in enumerate(1e-5 * np.eye(3)):
        moved = source.at(point + step)[0] - source.at(point - step)[0]
        assert -moved[0] / 2e-5 == pytest.approx(slope[:, k], rel=1e-4, abs=1e-4)


def test_sources_with_other_tie_parameters_have_common_worths():
    # the surveys tie in other shares, and their worths are the same
    results = [tied_fit(k, 4.0, people=1500, tie=tie) for k, tie in enumerate((-2.0, 0.0, 1.0))]
    together = pr.pool(results, survey="different")
    truth = np.linspace(0.8, -0.8, 4)
    assert (np.abs(together.params - truth) < 4 * together.bse).all()
    assert together.test_heterogeneity()["pvalue"] > 0.01
    estimates = [result.tie_parameter["estimate"] for result in results]
    assert estimates == pytest.approx([-2.0, 0.0, 1.0], abs=0.3)
    assert "preferred_if_decided" in together.pairwise()
    assert any(CLAIMS["tie parameters"] in note for note in together.summary().notes)
    again = pr.from_json(together.to_json())
    assert again.params.equals(together.params)


def test_worths_of_other_readings_of_ties_are_not_pooled():
    with pytest.raises(ValueError, match="ties='davidson', or none"):
        pr.pool([tied_fit(1), tied_fit(2, ties=True)], survey="different")


def rankings(people):
    ranks = pr.Mallows(ITEMS, 0.6).rvs(people, np.random.default_rng(0))
    return pd.DataFrame(np.asarray(ranks), columns=ITEMS)


@pytest.fixture(scope="module")
def pairs():
    model = pr.PrivateRankAggregation(rankings(N))
    return model.fit(1.0, releases="pairs", rng=np.random.default_rng(1))


@pytest.fixture(scope="module")
def scores():
    return pr.PrivateRankAggregation(rankings(N)).fit(
        1.0, method="borda", rng=np.random.default_rng(1)
    )


def covariances(source, point):
    _, _, sampling, _, noise = source.at(point)
    return sampling[:, 0, 0], noise[:, 0, 0]


def noise_of(result, name):
    """The variance of the noise in the mean of what was released, by its distribution."""
    part = result.release.parts[name]
    return part.distribution.variance * (part.step / N) ** 2


def centred(p, n, largest=1.0):
    """The mean of four values more, two at either end."""
    return (n * p + 2.0 * largest) / (n + 4.0)


def test_fractions(pairs):
    point = np.linspace(0.0, 1.0, 6)[:, None]
    source = fraction_source(pairs._scores())
    sampling, noise = covariances(source, point)
    p = centred(point[:, 0], N)
    assert sampling == pytest.approx(p * (1 - p) / N)
    assert noise == pytest.approx(noise_of(pairs, "pairs"))
    residual, slope = source.at(point)[:2]
    fractions = pairs.fractions[np.triu_indices(4, 1)]
    assert residual[:, 0] == pytest.approx(fractions - point[:, 0]) and (slope == 1.0).all()
    assert np.isinf(source.freedom).all()


def test_scores(pairs, scores):
    point = np.array([[0.0], [1.0], [1.5], [3.0]])
    x = centred(point[:, 0], N, 3.0)
    sampling, noise = covariances(score_source(scores._scores()), point)
    assert sampling == pytest.approx(x * (3.0 - x) / N)
    assert noise == pytest.approx(scores._scores().score_errors("sample") ** 2)
    # a score of released pairs is a sum of three fractions, and its noise that of three
    source = score_source(pairs._scores())
    spread = [np.std(one.draws) for one in (fraction_source(pairs._scores()), source)]
    assert spread[1] / spread[0] == pytest.approx(np.sqrt(3.0), rel=0.05)
    assert covariances(source, point)[1] == pytest.approx(3 * noise_of(pairs, "pairs"))
