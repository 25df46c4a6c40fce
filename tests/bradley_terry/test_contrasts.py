"""Quasi variances, and statements about all pairs at once."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t

import privrank as pr
from privrank.bradley_terry.contrasts import Worths, quasi_variances
from privrank.hypotheses.interval import rank_sets

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "covariates.json").read_text(encoding="utf-8")
)["all_pairs"]


@pytest.mark.parametrize("survey", ["university", "immigration"])
@pytest.mark.parametrize("kind", ["naive", "cluster"])
def test_quasi_variances_are_those_of_r(survey, kind):
    wanted = REFERENCE[survey][kind]
    covariance = np.array(wanted["covariance"])
    q, error = quasi_variances(covariance)
    np.testing.assert_allclose(q, wanted["quasi_variance"], rtol=1e-6)
    upper = np.triu_indices(len(q), 1)
    np.testing.assert_allclose(np.abs(error[upper]), np.abs(wanted["relative_error"]), atol=1e-6)


def test_quasi_variances_of_independent_estimates_are_their_variances():
    variance = np.array([1.0, 2.0, 0.5, 4.0])
    q, error = quasi_variances(np.diag(variance))
    np.testing.assert_allclose(q, variance, rtol=1e-10)
    assert np.abs(error).max() < 1e-10


def fit(epsilon, survey="university", **options):
    data = getattr(pr.datasets, f"load_{survey}")()
    model = pr.PrivateBTL(
        data.comparisons,
        items=data.items,
        respondent="respondent",
        max_rows=15,
        ties=True,
        design="public",
    )
    return model.fit(epsilon, rng=np.random.default_rng(6), **options)


@pytest.mark.parametrize("survey", ["university", "immigration"])
@pytest.mark.parametrize(("kind", "effect"), [("naive", "none"), ("cluster", "cluster")])
def test_simultaneous_inference_without_privacy_is_that_of_r(survey, kind, effect):
    wanted = REFERENCE[survey][kind]
    result = fit(np.inf, survey, penalty=0, dependence=effect)
    table = result.pairwise(simultaneous=True)
    np.testing.assert_allclose(table["difference"], wanted["difference"], atol=1e-6)
    # the reference has no small-sample factor
    n = result.nobs
    factor = n / (n - 1) if effect == "cluster" else 1.0
    se = np.sqrt(factor) * np.array(wanted["se"])
    np.testing.assert_allclose(table["std_err"], se, atol=1e-6)
    logit = np.log(table["upper"] / (1 - table["upper"])) - table["difference"]
    # Bonferroni's quantile of t or of the normal, a little above that of the largest |t|
    distribution = t(n - 1) if effect == "cluster" else norm
    critical = distribution.isf(0.05 / (2 * len(table)))
    # tests are by scores, those of R by the estimate over its error
    np.testing.assert_allclose(logit / table["std_err"], critical, rtol=0.1)
    assert wanted["critical"] < critical < 1.06 * wanted["critical"]
    once = len(table) * result.pairwise()["pvalue"]
    np.testing.assert_allclose(table["pvalue"], np.minimum(once, 1))
    assert (table["pvalue"] >= np.array(wanted["p_adjusted"]) - 0.003).all()
    quasi = result.quasi_se()
    wanted_quasi = factor * np.array(wanted["quasi_variance"])
    np.testing.assert_allclose(quasi["quasi_se"] ** 2, wanted_quasi, rtol=1e-4)


def test_simultaneous_statements_are_wider_than_pointwise_ones():
    result = fit(1.0)
    alone, together = result.pairwise(), result.pairwise(simultaneous=True)
    assert (together["lower"] < alone["lower"]).all()
    assert (together["upper"] > alone["upper"]).all()
    assert (together["pvalue"] >= alone["pvalue"] - 0.01).all()
    # a pair is called different exactly where its simultaneous interval says so
    apart = (together["lower"] > 0.5) | (together["upper"] < 0.5)
    np.testing.assert_array_equal(apart, together["pvalue"] <= 0.05)


def test_simultaneous_bands_cover_noise_of_any_distribution():
    exact = fit(np.inf, penalty=0).params.to_numpy()
    first, second = np.triu_indices(6, 1)
    model_noise = [
        np.abs(errors[first] - errors[second]).max()
        for errors in (
            pr_fit.params.to_numpy() - exact
            for pr_fit in (
                pr.PrivateBTL(
                    pr.datasets.load_university().comparisons,
                    items=pr.datasets.load_university().items,
                    respondent="respondent",
                    max_rows=15,
                    ties=True,
                    design="public",
                ).fit(1.0, rng=np.random.default_rng(k))
                for k in range(60)
            )
        )
    ]
    result = fit(1.0)
    table = result.pairwise(simultaneous=True)
    half = np.log(table["upper"] / (1 - table["upper"])) - table["difference"]
    assert np.mean(np.array(model_noise) <= half.max()) > 0.9


def test_predictions_are_those_of_the_pairs():
    result = fit(1.0)
    table = result.pairwise()
    predicted = result.predict(table[["item1", "item2"]])
    for name in ("preferred_plus_half_ties", "lower", "upper"):
        np.testing.assert_array_equal(predicted[name], table[name])
    for frame, error in (
        ([("London", "Paris")], TypeError),
        (table[["item1"]], TypeError),
        (table[["item1", "item2"]].replace("Paris", "Rome"), ValueError),
        (table[["item1", "item2"]].assign(item2=table["item1"]), ValueError),
    ):
        with pytest.raises(error, match="item1 and item2"):
            result.predict(frame)


def many(items, rows, epsilon=1.0, spread=3.0, **options):
    """A fit of more items than have the errors of each of their contrasts simulated."""
    rng = np.random.default_rng(items)
    first = rng.integers(0, items, rows)
    second = (first + rng.integers(1, items, rows)) % items
    won = rng.random(rows) < 1.0 / (1.0 + np.exp(spread * (second - first) / items))
    frame = pd.DataFrame({"item1": first, "item2": second, "outcome": np.where(won, 1, -1)})
    frame["who"] = np.arange(rows) // 10
    options = {"respondent": "who", "max_rows": 10, "distinct_pairs": False} | options
    return pr.PrivateBTL(frame, items=range(items), **options).fit(epsilon, rng=rng)


@pytest.mark.parametrize("alpha", [0.3, 0.01])
def test_rank_sets_of_many_items_are_those_of_one_normal_quantile(alpha):
    inference = many(60, 9000, 4.0, 8.0, design="public")._inference()
    worths = Worths(inference, np.eye(60))
    errors = worths.contrast_errors + np.eye(60)
    sizes = np.abs(worths.values[:, None] - worths.values) / errors
    together = inference.equations.components.together
    wanted = rank_sets(worths.values, together, lambda left: sizes >= norm.isf(alpha / left))
    assert np.isinf(inference.freedom)
    found = worths.rank_sets(alpha)
    assert (np.array(found) == np.array(wanted)).all()
    assert (found[0] > 1).any()


def test_the_largest_design_effect_is_the_released_one():
    result = many(60, 3000, 4.0, design="public")
    effect = result.design_effect
    errors = result._inference().errors
    assert effect > 1.0
    np.testing.assert_allclose(effect * errors.independent, errors.sampling, atol=1e-12)


@pytest.mark.parametrize("design", ["public", "private"])
def test_pairs_of_many_items_have_one_answer(design):
    options = {"design": design, "respondent": None, "max_rows": 1, "distinct_pairs": True}
    if design == "private":
        options |= {"pair_counts": "release"}
    result = many(60, 60_000, 8.0, **options)
    table = result.pairwise().iloc[:40]
    rows = np.zeros((len(table), 60))
    for row, pair in enumerate(table.itertuples()):
        rows[row, int(pair.item1)], rows[row, int(pair.item2)] = 1.0, -1.0
    single = result.t_test(rows)
    np.testing.assert_allclose(single.pvalue, table["pvalue"], rtol=1e-6)
    limits = 1 / (1 + np.exp(-single.conf_int()))
    np.testing.assert_allclose(limits, table[["lower", "upper"]], rtol=1e-6)
