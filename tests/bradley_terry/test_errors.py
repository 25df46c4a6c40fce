"""Tests and intervals of a fit take the errors of its estimates from one place."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.stats import chi2, f, laplace, norm
from scipy.stats import t as student

import privrank as pr
from privrank.bradley_terry.errors import NoisyErrors, SecondMoments

CEMS = pr.datasets.load_university()
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def university(formula="1", **arguments):
    arguments = {
        "items": CEMS.items,
        "respondent": "respondent",
        "max_rows": 15,
        "design": "public",
        "ties": True,
    } | arguments
    if formula == "1":
        return pr.PrivateBTL(CEMS.comparisons, **arguments)
    frame = CEMS.comparisons.merge(CEMS.students, on="respondent")
    return pr.PrivateBTL.from_formula(f"item1 + item2 + outcome ~ {formula}", frame, **arguments)


def normal_laplace_tail(x, sd, scale):
    """P(|Z + L| > x) by numerical integration over the noise."""
    t = np.linspace(-60 * scale, 60 * scale, 200_001)
    weight = laplace.pdf(t, scale=scale)
    tails = norm.sf((x - t) / sd) + norm.cdf((-x - t) / sd)
    return float(trapezoid(weight * tails, t))


@pytest.mark.parametrize("sd", [0.05, 1.0, 20.0])
def test_tails_are_those_of_normal_plus_noise(sd):
    rng = np.random.default_rng(1)
    distribution = NoisyErrors(np.array([[sd**2]]), rng.laplace(scale=1.0, size=(20_000, 1)))
    one, total = np.eye(1), np.sqrt(sd**2 + 2.0)
    for t in (0.5, 1.0, 2.0, 3.0):
        exact = normal_laplace_tail(t * total, sd, 1.0)
        found = distribution.pvalues(one, np.array([t * total]))[0]
        # five standard errors of a share of 20,000 draws, and the grouping
        assert found == pytest.approx(exact, abs=5 * np.sqrt(exact / 20_000) + 1e-4)
    for alpha in (0.3, 0.05, 0.01):
        half = distribution.half_widths(one, alpha)
        assert distribution.pvalues(one, half)[0] == pytest.approx(alpha, rel=1e-6)


def test_second_moments_give_each_contrast_its_own_variance_and_degrees_of_freedom():
    rng, m, noise = np.random.default_rng(3), 4, 0.3
    root = rng.standard_normal((m, m))
    centring = np.eye(m) - 1.0 / m
    measured, least = centring @ root @ root.T @ centring, 1.5 * centring
    moments = SecondMoments(measured, least, noise, np.eye(m))
    rows = rng.standard_normal((5, m))
    rows -= rows.mean(axis=1, keepdims=True)
    wanted = [max(a @ measured @ a, a @ least @ a) for a in rows]
    variance, side = moments.variances(rows)
    np.testing.assert_allclose(variance, wanted)
    # q_ij enter the variance of a'score by -a_i a_j / 4: with noise of variance 16 noise on each
    first, second = np.triu_indices(m, 1)
    drawn = 4.0 * np.sqrt(noise) * rng.standard_normal((200_000, len(first)))
    for a, expected in zip(rows, side, strict=True):
        moved = -0.25 * drawn @ (a[first] * a[second])
        assert moved.var() == pytest.approx(expected, rel=0.02)
    # a constant added to the weights, and a linear map on the way, change nothing
    errors = NoisyErrors(np.eye(m), df=99.0, moments=moments)
    for row, one, along in zip(rows, variance, side, strict=True):
        df = 1.0 / (0.5 * along / one**2 + 1.0 / 99.0)
        half = student.ppf(0.975, df) * np.sqrt(one)
        assert errors.half_widths(row[None] + 7.0, 0.05)[0] == pytest.approx(half)
        through = errors.through(row[None]).half_widths(np.eye(1), 0.05)[0]
        assert through == pytest.approx(half)
        assert errors.pvalues(row[None], np.array([half]))[0] == pytest.approx(0.05)


@quiet
def test_intervals_by_second_moments_are_within_those_of_the_joint_covariance():
    fit = university().fit(2.0, dependence="pairs", rng=np.random.default_rng(4))
    scores = fit._inference().score_errors()
    first, second = np.triu_indices(6, 1)
    rows = np.eye(6)[first] - np.eye(6)[second]
    alone, joint = scores.variances(rows)[0], NoisyErrors(scores.normal).variances(rows)[0]
    assert (alone <= joint * (1 + 1e-9)).all()
    assert alone.sum() < 0.99 * joint.sum()


def test_without_noise_tests_are_those_of_statsmodels():
    distribution = NoisyErrors(np.diag([1.0, 4.0]))
    rows = np.array([[1.0, -1.0], [0.0, 1.0]])
    sd = np.sqrt([5.0, 4.0])
    np.testing.assert_allclose(distribution.pvalues(rows, sd), 2 * norm.sf([1.0, 1.0]))
    np.testing.assert_allclose(distribution.half_widths(rows, 0.05), norm.isf(0.025) * sd)
    fit = university().fit(np.inf, dependence="none")
    np.testing.assert_allclose(fit.pvalues, 2 * norm.sf(abs(fit.tvalues)))
    test = fit.wald_test("London = Paris, Milano = StGallen")
    assert test.pvalue == pytest.approx(chi2.sf(test.statistic, 2))


def test_without_noise_a_covariance_of_respondents_makes_them_t_and_hotelling_tests():
    few = pr.datasets.load_university()
    people = few.comparisons["respondent"].unique()[100:130]
    rows = few.comparisons[few.comparisons["respondent"].isin(people)]
    fit = pr.PrivateBTL(
        rows, items=few.items, respondent="respondent", max_rows=15, ties=True, design="public"
    ).fit(np.inf)
    # those of single worths are by scores, near the tests at the fit
    np.testing.assert_allclose(fit.pvalues, 2 * student(29).sf(abs(fit.tvalues)), atol=0.01)
    half = (fit.conf_int()["upper"] - fit.conf_int()["lower"]) / 2
    np.testing.assert_allclose(half, student(29).isf(0.025) * fit.bse, rtol=0.1)
    for pair in ("London = Paris", "Milano = StGallen"):
        one = fit.t_test(pair)
        assert one.pvalue == pytest.approx(2 * student(29).sf(abs(np.squeeze(one.tvalue))))
    both = fit.wald_test("Paris = Milano, Barcelona = StGallen")
    hotelling = f(2, 28).sf(both.statistic * 28 / (2 * 29))
    assert both.pvalue == pytest.approx(hotelling, abs=4 * np.sqrt(hotelling / 9999))
    equal = fit.test_homogeneity()
    assert equal.df == 5 and 0 < equal.pvalue < 0.05


def reject_or_cover(test, interval, alpha):
    """An interval holds 0 exactly where its test does not reject."""
    low, high = np.asarray(interval, dtype=float).T
    outside = (low > 0) | (high < 0)
    np.testing.assert_array_equal(outside, np.asarray(test) <= alpha)


@quiet
@pytest.mark.parametrize("formula", ["1", "gender"])
@pytest.mark.parametrize("noise", ["laplace", "permutohedron"])
def test_every_interval_is_at_the_level_of_its_test(formula, noise):
    for seed in range(3):
        fit = university(formula).fit(0.15, noise=noise, rng=np.random.default_rng(seed))
        for alpha in (0.4, 0.2, 0.05):
            reject_or_cover(fit.pvalues, fit.conf_int(alpha), alpha)
            test = fit.t_test(np.eye(len(fit.params)))
            reject_or_cover(np.atleast_1d(test.pvalue), test.conf_int(alpha), alpha)
            if formula == "1":
                pairs = fit.pairwise(alpha)
                reject_or_cover(pairs["pvalue"], pairs[["lower", "upper"]] - 0.5, alpha)


@quiet
def test_heavy_noise_has_heavier_tails_than_normal():
    rows = [(k, "ab"[k % 2], "ba"[k % 2], 1.0 if k % 4 < 2 else -1.0) for k in range(400)]
    frame = pd.DataFrame(rows, columns=["respondent", "item1", "item2", "outcome"])
    fit = pr.PrivateBTL(frame, items=["a", "b"], respondent=None, design="public", ties=False).fit(
        0.02, noise="laplace", rng=np.random.default_rng(3)
    )
    half = np.diff(fit.conf_int(0.01).to_numpy())[:, 0] / 2
    # two Laplace numbers hardly blurred, at the .01 level: 3.0 standard deviations and not 2.58
    assert (half / fit.bse > 2.8).all()
    test = fit.t_test("a = b")
    assert str(test.summary()) and float(np.squeeze(test.pvalue)) > 0


@quiet
@pytest.mark.parametrize("formula", ["1", "gender"])
def test_joint_tests_agree_with_the_other_tests_of_a_fit(formula):
    fit = university(formula).fit(0.3, rng=np.random.default_rng(4))
    if formula == "1":
        # on one degree of freedom the joint test is the single one
        for hypothesis in ("London = Paris", "Milano = Stockholm"):
            single, joint = fit.t_test(hypothesis), fit.wald_test(hypothesis)
            assert joint.statistic == pytest.approx(float(np.squeeze(single.tvalue)) ** 2)
            assert joint.pvalue == pytest.approx(float(np.squeeze(single.pvalue)), abs=0.02)
        return
    named = [name for name in fit.params.index if name.startswith("gender")]
    joint = fit.wald_test([f"{name} = 0" for name in named[:-1]])
    terms = fit.wald_test_terms().loc["gender"]
    assert joint.statistic == pytest.approx(terms["statistic"])
    assert joint.pvalue == pytest.approx(terms["pvalue"], abs=0.02)
    assert joint.df_denom == terms["df"] and "Wald" in str(joint)


@quiet
def test_the_same_release_gives_the_same_pvalues():
    fit = university().fit(0.2, rng=np.random.default_rng(5))
    again = pr.from_json(fit.to_json())
    hypothesis = "London = Paris, Paris = Milano"
    assert again.wald_test(hypothesis).pvalue == fit.wald_test(hypothesis).pvalue
    np.testing.assert_array_equal(again.pvalues, fit.pvalues)


@quiet
def test_pairs_of_many_items_take_little_memory():
    items = 300
    first = np.arange(items)
    frame = pd.DataFrame({"item1": first, "item2": (first + 1) % items, "outcome": 1.0})
    fit = pr.PrivateBTL(frame, items=range(items), design="public", respondent=None, ties=False)
    result = fit.fit(1.0, rng=np.random.default_rng(1))
    tracemalloc.start()
    pairs = result.pairwise()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # a row of weights for every pair would be 108 million bytes
    assert len(pairs) == items * (items - 1) // 2 and most < 40e6
