"""Contest covariates: instruments, sensitivity, fit, errors, second stage, refusals."""

import re
from dataclasses import replace
from itertools import product

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from searching import check_refusal

import privrank as pr
from privrank.bradley_terry.dependence import contrast_directions, expected_answers
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.estimate import estimate, response
from privrank.bradley_terry.predictor import instruments_of
from privrank.encode.comparisons import formula_columns
from privrank.mechanisms import tallies
from privrank.privacy.sensitivity import INSTRUMENT_STEPS, contest_noise
from privrank.release.names import CONTEST
from privrank.release.survey import STEPS

ITEMS = ("a", "b", "c", "d")
WORTHS = np.array([0.8, 0.3, -0.3, -0.8])
FORMULA = "item1 + item2 + outcome ~ 1"
ROWS = {"items": ITEMS, "respondent": None, "design": "public", "contest": "z"}
PERSON = ROWS | {"respondent": "id", "max_rows": 3, "distinct_pairs": False}
SURE = {"allow_unidentified": True}


def survey(n=600, seed=0, gamma=0.5, heavy=False):
    """Rows whose answers depend on z, which goes with the items, and on who is named first."""
    rng = np.random.default_rng(seed)
    i = rng.integers(0, 4, n)
    j = (i + rng.integers(1, 4, n)) % 4
    z = 0.7 * (WORTHS[i] - WORTHS[j])
    z = z + (rng.standard_t(3, n) if heavy else rng.normal(size=n))
    p = 1.0 / (1.0 + np.exp(WORTHS[j] - WORTHS[i] - gamma * z - 0.2))
    names = np.array(ITEMS)
    return pd.DataFrame(
        {
            "id": np.arange(n) // 3,
            "item1": names[i],
            "item2": names[j],
            "outcome": np.where(rng.random(n) < p, 1.0, -1.0),
            "z": z,
            "g": np.where(np.arange(n) // 3 % 2, "x", "y"),
        }
    )


def model(data, formula=FORMULA, **arguments):
    return pr.PrivateBTL.from_formula(formula, data, **ROWS | arguments)


def matrix(data, first=False):
    """Rows of differences of worths, and of the covariates."""
    d = np.zeros((len(data), 4))
    place = np.arange(len(data))
    d[place, data["item1"].map(ITEMS.index)] = 1.0
    d[place, data["item2"].map(ITEMS.index)] = -1.0
    columns = [data["z"].to_numpy()] + [np.ones(len(data))] * first
    return d, np.column_stack(columns)


@pytest.mark.parametrize(("contest", "first"), [("z", False), ("z + first", True)])
def test_without_privacy_it_is_a_binomial_regression(contest, first):
    data = survey()
    result = model(data, contest=contest).fit(np.inf, penalty=0)
    d, z = matrix(data, first)
    wins = (data["outcome"] + 1) / 2
    wanted = sm.GLM(wins, np.hstack((d[:, 1:], z)), family=sm.families.Binomial())
    wanted = wanted.fit(tol=1e-14)
    worths = np.append(0.0, wanted.params[:3])
    np.testing.assert_allclose(result.params[:4], worths - worths.mean(), atol=1e-9)
    np.testing.assert_allclose(result.params[4:], wanted.params[3:], atol=1e-9)
    np.testing.assert_allclose(result.bse[4:], wanted.bse[3:], atol=1e-9)
    # the model without them, from the same answers
    plain = pr.PrivateBTL(
        data[["item1", "item2", "outcome"]], items=ITEMS, respondent=None, design="public"
    ).fit(np.inf, penalty=0)
    np.testing.assert_allclose(result.without_contests, plain.params, atol=1e-9)


def test_respondents_without_privacy_have_the_sandwich_of_a_regression():
    data = survey()
    result = model(data, **PERSON).fit(np.inf, penalty=0)
    d, z = matrix(data)
    wins = (data["outcome"] + 1) / 2
    fit = sm.GLM(wins, np.hstack((d[:, 1:], z)), family=sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": data["id"], "use_correction": False}, tol=1e-14
    )
    n = data["id"].nunique()
    assert result.bse["z"] == pytest.approx(fit.bse.iloc[-1] * np.sqrt(n / (n - 1)), rel=1e-8)


def encoded(data, **arguments):
    return formula_columns(FORMULA, data, {**ROWS, **arguments})


def test_instruments_are_bounded_and_follow_their_definition():
    data = survey(heavy=True)
    design = encoded(data).design
    used = instruments_of(design)
    assert np.abs(used.steps).max() == INSTRUMENT_STEPS
    d, z = matrix(data)
    left = z - d @ np.linalg.lstsq(d, z, rcond=None)[0]
    wanted = np.rint(INSTRUMENT_STEPS * np.clip(left / (1.5 * left.std()), -1, 1)).ravel()
    # edges are in another order and have the sign of the earlier item
    assert sorted(np.abs(used.steps).ravel()) == sorted(np.abs(wanted))
    total = (used.unit * used.steps).ravel() @ design.covariates.contests[
        design.pairs.first // 4
    ].ravel()
    assert total == pytest.approx(left.ravel() @ left.ravel(), rel=2e-3)
    # what is -1, 0 or 1 is its own instrument
    named = instruments_of(encoded(data.drop(columns="z"), contest="first").design)
    assert set(np.abs(named.steps).ravel()) == {INSTRUMENT_STEPS}
    np.testing.assert_allclose(named.unit, 1.0 / INSTRUMENT_STEPS)


def test_the_items_of_a_row_may_be_exchanged():
    data = survey()
    turned = np.random.default_rng(3).random(len(data)) < 0.5
    other = data.copy()
    other.loc[turned, ["item1", "item2"]] = data.loc[turned, ["item2", "item1"]].to_numpy()
    other.loc[turned, ["outcome", "z"]] *= -1
    both = [encoded(frame) for frame in (data, other)]
    sums = [tallies.contest_sums(one) for one in both]
    assert sums[0] == sums[1] != 0
    fits = [model(frame).fit(1.0, rng=np.random.default_rng(1)) for frame in (data, other)]
    pd.testing.assert_series_equal(fits[0].params, fits[1].params)
    # if the sign does not turn with the items, the result is another
    other.loc[turned, "z"] *= -1
    assert tallies.contest_sums(encoded(other)) != sums[0]


@pytest.mark.parametrize("contest", ["first", "z", "z + first"])
def test_answers_move_the_sums_by_their_sensitivity_at_most(contest):
    rest = survey(60)
    own = survey(3, seed=9).assign(id=999)
    own["z"] = 50.0  # the instrument is at its bound
    surveys = []
    for answers in product((1.0, 0.0, -1.0), repeat=3):
        data = pd.concat((rest, own.assign(outcome=answers)))
        surveys.append(encoded(data, **PERSON | {"contest": contest, "ties": True}))
    noise = contest_noise(surveys[0].design.sensitivity, contest.count("+") + 1, 1.0)
    sums = np.array([tallies.contest_sums(one) for one in surveys])
    moved = np.abs(sums[:, None] - sums[None])
    l1, linf = moved.sum(axis=2).max(), moved.max()
    number = contest.count("+") + 1
    assert linf <= 2 * 3 * INSTRUMENT_STEPS
    assert l1 <= 2 * 3 * INSTRUMENT_STEPS * number
    assert noise.sensitivity in (2 * 3 * INSTRUMENT_STEPS * number, 2 * 3 * INSTRUMENT_STEPS)
    if contest == "first":  # attained
        assert l1 == noise.sensitivity
    # the bound of a row does not hold for a respondent, nor that of one covariate for two
    assert linf > 2 * INSTRUMENT_STEPS
    if number == 2:
        assert l1 > 2 * 3 * INSTRUMENT_STEPS


def test_the_noise_of_two_sums_protects_both():
    unit = encoded(survey(), **PERSON).design.sensitivity
    one, two = (contest_noise(unit, number, 1.0) for number in (1, 2))
    assert one.sensitivity == 6 * INSTRUMENT_STEPS
    # noise in the maximum norm varies less than Laplace noise for twice the l1 sensitivity
    assert two.distribution.variance < 4 * one.distribution.variance
    assert type(two.distribution).__name__ == "CubeNoise" and two.sensitivity == one.sensitivity


def solved(d, z, v, target):
    """Solve the estimating equations with minimum-norm steps, from 0."""
    e, s = np.hstack((d, z)), np.hstack((d, v))
    b = np.zeros(e.shape[1])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-e @ b))
        slope = s.T @ ((p * (1 - p))[:, None] * e)
        b = b - np.linalg.pinv(slope) @ (s.T @ (p - 0.5) - target)
    return b, np.linalg.pinv(slope), s, p * (1 - p)


def test_covariates_are_in_the_model_as_they_are():
    # with almost no noise the release solves the equations of the instruments, whose solution is
    # near the truth, whereas a model of the clipped covariate has another coefficient
    data = survey(6000, heavy=True)
    result = model(data).fit(1e5, penalty=0, rng=np.random.default_rng(0))
    d, z = matrix(data)
    left = z - d @ np.linalg.lstsq(d, z, rcond=None)[0]
    bound = 1.5 * left.std()
    v = np.rint(INSTRUMENT_STEPS * np.clip(left / bound, -1, 1)) / INSTRUMENT_STEPS
    answers = 0.5 * data["outcome"].to_numpy()
    b, inverse, scores, spread = solved(d, z, v, np.append(d.T @ answers, v.T @ answers))
    np.testing.assert_allclose(result.params, np.append(b[:4] - b[:4].mean(), b[4]), atol=1e-3)
    # the sandwich has the instruments on both sides
    covariance = inverse @ (scores.T @ (spread[:, None] * scores)) @ inverse.T
    assert result.bse_sampling["z"] == pytest.approx(np.sqrt(covariance[4, 4]), rel=1e-3)
    clipped = data.assign(z=v)
    biased = model(clipped).fit(np.inf, penalty=0).params["z"] / bound
    assert abs(result.params["z"] - 0.5) < 0.05 < abs(biased - 0.5)


def test_standard_errors_cover_the_noise_that_is_drawn():
    built = model(survey(), contest="z + first")
    fits = [built.fit(1.0, rng=np.random.default_rng(k)) for k in range(200)]
    spread = np.std([fit.params for fit in fits], axis=0)
    stated = np.mean([fit.bse_privacy for fit in fits], axis=0)
    np.testing.assert_allclose(spread / stated, 1.0, atol=0.25)


def test_the_largest_design_effect_moves_by_its_sensitivity_at_most():
    rest, own = survey(12), survey(3, seed=5).assign(id=999)
    data = pd.concat((rest, own))
    built = model(data, **PERSON)
    release = built.fit(1.0, **SURE, rng=np.random.default_rng(2)).release
    equations = score_equations(release)
    fitted = estimate(equations, release)
    b = fitted.coefficients
    directions = contrast_directions(equations, release, b, response(equations, fitted))
    expected = tallies.round_expected(release.design, None)
    contrasts = tallies.round_directions(release.design, directions, expected)
    assert contrasts.weights.shape[-1] == len(ITEMS) + 1

    def moved(bounds):
        values = []
        for answers in product((1.0, -1.0), repeat=3):
            frame = pd.concat((rest, own.assign(outcome=answers)))
            encoding = encoded(frame, **PERSON)
            values.append(tallies.largest_design_effect(encoding, bounds, expected))
        return max(values) - min(values)

    assert 0 < moved(contrasts) <= STEPS
    # a bound without the instruments is not enough
    alone = replace(release.design, covariates=None)
    widest = tallies._max_deviation(alone, contrasts.weights[:, :, : len(ITEMS)], expected)
    least = [max(1, int(most) ** 2) for most in widest.max(axis=1)]
    assert any(small < large for small, large in zip(least, contrasts.scale, strict=True))
    assert expected_answers(release, b)[1] is None


def test_dependence_of_respondents_is_seen():
    # respondents whose coefficients are 2 or -1
    rng = np.random.default_rng(0)
    parts = [survey(3, seed=k, gamma=rng.choice([2.0, -1.0])).assign(id=k) for k in range(400)]
    result = model(pd.concat(parts), **PERSON).fit(20.0, rng=rng)
    independent = model(pd.concat(parts)).fit(20.0, rng=rng)
    assert result.design_effect > 1.3
    assert result.bse_sampling["z"] > 1.15 * independent.bse_sampling["z"]


def test_sums_of_squares_stay_within_64_bits():
    # instruments multiply answers, so fewer answers of a respondent are allowed
    counted = PERSON | {"counts": "c", "max_rows": 2**20, "ties": True, "contest": "z + first"}
    data = survey(30).assign(c=2**20, id=np.arange(30))
    with pytest.raises(ValueError, match="too large to measure dependence"):
        model(data, **counted).fit(1.0)
    model(data, **counted).fit(1.0, dependence="none", **SURE)


def test_large_values_of_a_covariate_are_finite_fits():
    rng = np.random.default_rng(0)
    data = survey(2000, heavy=True, gamma=4.0)
    result = model(data).fit(np.inf, penalty=0)
    assert not result.warnings and result.params["z"] == pytest.approx(4.0, abs=0.6)
    separated = data.assign(outcome=np.sign(data["z"]))
    with pytest.warns(pr.PrivrankWarning, match="finite"):
        model(separated).fit(np.inf, penalty=0, rng=rng)


def test_a_few_outliers_do_not_shrink_the_coefficient():
    found = []
    for seed in range(10):
        data = survey(1000, seed)
        data.loc[:3, "z"] = 2000.0
        data.loc[:3, "outcome"] = 1.0
        found.append(model(data).fit(2.0, rng=np.random.default_rng(seed)).params["z"])
    assert 0.3 < np.median(found) < 0.8


def test_many_comparisons_without_privacy_have_the_largest_design_effect():
    data = survey(3000)
    few = model(data[:1500], **PERSON).fit(np.inf, penalty=0)
    many = model(data, **PERSON).fit(np.inf, penalty=0)
    assert "answers by answers" in few.release.parts
    assert "answers by answers" not in many.release.parts and many.design_effect >= 1.0
    with pytest.raises(ValueError, match="2000 different comparisons"):
        model(data, **PERSON).fit(np.inf, dependence="cluster")


def test_archives_keep_the_covariates():
    result = model(survey(), contest="z + first").fit(1.0, rng=np.random.default_rng(1))
    text = result.release.to_json()
    again = pr.PrivateBTL.from_release(pr.Release.from_json(text))
    pd.testing.assert_series_equal(again.params, result.params)
    pd.testing.assert_series_equal(again.bse, result.bse)
    assert str(again.summary()) == str(result.summary())
    assert result.release.plan.parts[CONTEST].noise is not None


def test_any_frame_gives_the_same_release():
    data = survey()
    frames = (data, pl.from_pandas(data), pl.from_pandas(data).lazy(), duckdb.from_df(data))
    texts = [model(frame).fit(1.0, rng=np.random.default_rng(2)).to_json() for frame in frames]
    assert len(set(texts)) == 1


def test_groups_and_contests_together():
    data = survey()
    fit = model(data, FORMULA[:-1] + "g", levels={"g": ["x", "y"]}, contest="z + first")
    exact = fit.fit(np.inf, penalty=0)
    noisy = fit.fit(200.0, penalty=0, rng=np.random.default_rng(1))
    assert list(exact.params.index[-2:]) == ["z", "first"]
    np.testing.assert_allclose(noisy.params, exact.params, atol=0.25)
    assert list(exact.wald_test_terms().index) == ["Intercept", "g", "z", "first"]


def test_predictions_need_the_covariates():
    result = model(survey(), contest="z + first").fit(1.0, rng=np.random.default_rng(1))
    asked = pd.DataFrame({"item1": ["a", "a"], "item2": ["b", "b"], "z": [0.0, 2.0]})
    found = result.predict(asked)["probability"]
    apart = result.params["a"] - result.params["b"] + result.params["first"]
    wanted = 1.0 / (1.0 + np.exp(-apart - np.array([0.0, 2.0]) * result.params["z"]))
    np.testing.assert_allclose(found, wanted)
    even = result.predict(asked.assign(first=0.0, z=0.0))["probability"]
    np.testing.assert_allclose(even, 1.0 / (1.0 + np.exp(result.params["first"] - apart)))
    with pytest.raises(TypeError, match="z"):
        result.predict(asked.drop(columns="z"))
    for wrong in ("1", np.nan):
        with pytest.raises(ValueError, match="finite numbers"):
            result.predict(asked.assign(z=wrong))


def test_the_summary_shows_both_worths():
    result = model(survey()).fit(1.0, rng=np.random.default_rng(1))
    text = re.sub(r"\s+", " ", str(result.summary(details=True)))
    for words in ("~ 1, contest: z", "without", "sums of contest covariates", "for equal z"):
        assert words in text
    assert list(result.without_contests.index) == list(ITEMS)


REFUSED = {
    "private design": ({"design": "private"}, survey(), ["contest=", "design='public'"]),
    "missing": ({}, survey().assign(z=np.nan), ["finite numbers"]),
    "infinite": ({}, survey().assign(z=np.inf), ["finite numbers"]),
    "no column": ({"contest": "length"}, survey(), ["contest must be", "'length'"]),
    "twice": ({"contest": "z + z"}, survey(), ["different"]),
    "a column first": ({"contest": "first"}, survey().assign(first=1.0), ["no column may have"]),
    "product": ({"contest": "z * first"}, survey(), ["joined by plus signs"]),
    "of the items": (
        {},
        survey().assign(z=lambda d: d["item1"].map(ord) - d["item2"].map(ord)),
        ["cannot be estimated separately", "contest: z"],
    ),
    "constant nought": ({}, survey().assign(z=0.0), ["cannot be estimated separately"]),
    "ties": ({"ties": "davidson"}, survey(), ["ties='davidson'", "contest="]),
    "answers": ({"contest": "outcome"}, survey(), ["make the answers public"]),
    "respondents": ({**PERSON, "contest": "id"}, survey(), ["make the answers public"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_to_do(name):
    arguments, data, words = REFUSED[name]
    check_refusal(lambda: model(data, **arguments), ValueError, words)


def test_texts_are_refused():
    check_refusal(lambda: model(survey().assign(z="long")), TypeError, ["'z'", "contest="])


def test_objective_perturbation_and_weights_are_refused():
    with pytest.raises(ValueError, match="covariates"):
        model(survey()).fit(1.0, method="objective")
    with pytest.raises(ValueError, match="weights"):
        model(survey().assign(w=1.0), weights="w")
