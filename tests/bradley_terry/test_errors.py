"""Tests and intervals of a fit take the errors of its estimates from one place."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.stats import chi2, laplace, norm, pearson3
from scipy.stats import t as student

import privrank as pr
from privrank.bradley_terry.contrasts import _Null, _simulated
from privrank.bradley_terry.inference import ScoreErrors, SecondMoments
from privrank.bradley_terry.scoretests import error_pvalues, pvalues, to_normal

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
    none = np.zeros((1, 1))
    errors = ScoreErrors(np.array([[sd**2]]), none, rng.laplace(scale=1.0, size=(20_000, 1)))
    sizes, share = errors.sizes(np.eye(1))
    parts = np.array([sd**2]), sizes, share, np.zeros(1)
    for t in (0.5, 1.0, 2.0, 3.0):
        exact = normal_laplace_tail(t * np.sqrt(sd**2 + 2.0), sd, 1.0)
        found = error_pvalues(np.array([-t * np.sqrt(sd**2 + 2.0)]), *parts)[0]
        # five standard errors of a share of 20,000 draws, and the grouping
        assert found == pytest.approx(exact, abs=5 * np.sqrt(exact / 20_000) + 1e-4)


@pytest.mark.parametrize("skewness", [0.05, 0.3, 2.0, 30.0])
def test_skewed_errors_have_the_larger_of_two_tails(skewness):
    size, one = np.array([-3.0, -1.0, 0.5, 2.0, 4.0]), np.ones(5)
    parts = 4.0 * one, np.zeros((5, 1)), np.ones(1), skewness * one
    skewed = pearson3(skewness)
    tail = np.where(size > 0, skewed.sf(size / 2), skewed.cdf(size / 2))
    wanted = np.minimum(2 * np.maximum(tail, norm.sf(abs(size) / 2)), 1)
    np.testing.assert_allclose(error_pvalues(size, *parts), wanted, rtol=1e-4)


def test_noise_blurs_skewed_errors():
    rng, share = np.random.default_rng(2), np.array([0.25, 0.75])
    parts = np.ones(1), np.array([[0.5, 2.0]]), share, np.array([1.2])
    noise = rng.choice([0.5, 2.0], 400_000, p=share) * rng.choice([-1, 1], 400_000)
    drawn = pearson3(1.2).rvs(400_000, random_state=rng) + noise
    for x in (3.0, 5.0):  # nearer the normal tail is larger
        assert error_pvalues(np.array([x]), *parts)[0] == pytest.approx(
            2 * np.mean(drawn > x), rel=0.05
        )


def test_t_quantiles_are_as_probable_as_normal_ones():
    size, df = np.array([0.1, 2.0, 30.0, 1e4]), np.array([5.0, 40.0, 1e12, 300.0])
    normal = to_normal(size, df)
    np.testing.assert_allclose(norm.sf(normal[:2]), student.sf(size[:2], df[:2]), rtol=1e-10)
    assert normal[2] == 30.0  # a known variance, however far the tail
    assert 37.0 < normal[3] < 1e4  # beyond what a number can hold, and still rising
    assert normal[3] < to_normal(np.array([1e5]), np.array([300.0]))[0]


def test_second_moments_give_each_contrast_its_own_variance_and_degrees_of_freedom():
    rng, m, noise = np.random.default_rng(3), 4, 0.3
    root = rng.standard_normal((m, m))
    centring = np.eye(m) - 1.0 / m
    measured, least = centring @ root @ root.T @ centring, 1.5 * centring
    moments = SecondMoments(measured, least, noise)
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
    # a constant added to the weights changes nothing
    np.testing.assert_allclose(moments.variances(rows + 7.0), (variance, side))
    errors = ScoreErrors(np.eye(m), np.zeros((m, m)), df=99.0, moments=moments)
    wanted = 1.0 / (0.5 * side / variance**2 + 1.0 / 99.0)
    np.testing.assert_allclose(errors.freedom(variance, side, variance, errors.df), wanted)


def test_a_released_design_effect_is_known_as_well_as_its_noise_allows():
    rows = np.array([[1.0, -1.0], [0.5, 2.0]])
    errors = ScoreErrors(np.diag([1.0, 4.0]), np.zeros((2, 2)), df=50.0, effect=(0.3, 1.0))
    variance, side = errors.variances(rows)
    np.testing.assert_allclose(variance, [5.0, 16.25])
    np.testing.assert_allclose(
        errors.freedom(variance, side, variance, errors.df), 1 / (0.045 + 0.02)
    )
    # noise beside that is known takes its share
    known = errors.freedom(variance, side, 2 * variance, errors.df)
    np.testing.assert_allclose(known, 4 / (0.045 + 0.02))


@quiet
def test_intervals_by_second_moments_are_within_those_of_the_joint_covariance():
    fit = university().fit(2.0, dependence="pairs", rng=np.random.default_rng(4))
    scores = fit._inference().score_errors
    first, second = np.triu_indices(6, 1)
    rows = np.eye(6)[first] - np.eye(6)[second]
    joint = replace(scores, moments=None).variances(rows)[0]
    alone = scores.variances(rows)[0]
    assert (alone <= joint * (1 + 1e-9)).all()
    assert alone.sum() < 0.99 * joint.sum()


def test_without_noise_and_dependence_tests_are_those_of_scores():
    fit = university().fit(np.inf, dependence="none")
    np.testing.assert_allclose(fit.pvalues, 2 * norm.sf(abs(fit.tvalues)))
    test = fit.wald_test("London = Paris, Milano = StGallen")
    exact = chi2.sf(test.statistic, 2)
    assert test.pvalue == pytest.approx(exact, abs=4 * np.sqrt(exact / test.draws) + 1 / test.draws)
    # of many answers the statistic is that of Wald
    half = (fit.conf_int()["upper"] - fit.conf_int()["lower"]) / 2
    np.testing.assert_allclose(half, norm.isf(0.025) * fit.bse, rtol=0.03)


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
            assert joint.pvalue == pytest.approx(float(single.pvalue), rel=1e-9)
            assert joint.draws == 0
        return
    named = [name for name in fit.params.index if name.startswith("gender")]
    joint = fit.wald_test([f"{name} = 0" for name in named[:-1]])
    terms = fit.wald_test_terms().loc["gender"]
    assert joint.statistic == pytest.approx(terms["statistic"])
    assert joint.pvalue == terms["pvalue"]
    assert joint.df == terms["df"] and "Test of a Hypothesis" in str(joint)


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


def described(epsilon, respondent, seed):
    """A fit of items that are alike, with covariates that leave three degrees of freedom."""
    rng = np.random.default_rng(2)
    items = list("abcdef")
    pairs = np.array([rng.choice(6, 2, replace=False) for _ in range(960)])
    frame = pd.DataFrame(
        {
            "respondent": np.arange(960) // 4,
            "item1": np.take(items, pairs[:, 0]),
            "item2": np.take(items, pairs[:, 1]),
            "outcome": rng.choice([-1.0, 1.0], 960),
        }
    )
    table = {"x": [1.0, -1.0, 0.5, 0.2, -0.3, 0.4], "z": [0.1, 0.4, -0.3, -0.6, 0.9, 0.2]}
    model = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ 1",
        frame,
        items=items,
        respondent=respondent,
        ties=False,
        design="public",
        item_formula="x + z",
        item_data=pd.DataFrame(table, index=items),
        **({} if respondent is None else {"max_rows": 4, "distinct_pairs": False}),
    )
    return model.fit(epsilon, rng=np.random.default_rng(seed))._inference()


@quiet
@pytest.mark.parametrize(
    ("epsilon", "respondent", "seed"),
    [(0.2, None, 3), (0.6, "respondent", 6), (np.inf, "respondent", 1)],
)
def test_one_row_of_item_covariates_is_tested_alike_as_one_of_several(epsilon, respondent, seed):
    inference = described(epsilon, respondent, seed)
    row = np.eye(len(inference.fitted.coefficients))[:1]
    # the scatter of the items is in all errors, noise included, with its degrees of freedom
    joint = _simulated(inference, row, np.array([1.0])).pvalue
    assert joint == pytest.approx(pvalues(inference, row, 1.0)[0], abs=0.005)


def test_a_scale_of_hardly_any_freedom_is_a_number():
    draws = np.random.default_rng(1).normal(size=(9_999, 2))
    null = _Null(4.0, draws, np.zeros_like(draws), np.zeros_like(draws))
    assert 0.9 < null.pvalue(draws, null.scale_by(0.02)) < 1.0
