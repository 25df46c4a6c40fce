"""Covariates at their edges: what must not become public, units of measurement, odd values."""

import warnings

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.release.names import GROUP_ANSWERS

ITEMS = ("a", "b", "c")
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))


def survey(people=60, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        group, age = rng.choice(["x", "y"]), rng.integers(20, 41)
        for pair in PAIRS:
            a, b = pair if rng.random() < 0.5 else pair[::-1]
            rows.append((person, a, b, rng.choice([1.0, -1.0]), group, age))
    return pd.DataFrame(rows, columns="respondent item1 item2 outcome group age".split())


def model(formula, frame=None, left="item1 + item2 + outcome", **arguments):
    options = {"items": ITEMS, "respondent": "respondent", "max_rows": 3} | arguments
    if options["respondent"] is None:
        del options["max_rows"]
    frame = survey() if frame is None else frame
    return pr.PrivateBTL.from_formula(f"{left} ~ {formula}", frame, **options)


def fitted(built, epsilon=1.0, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return built.fit(epsilon, rng=np.random.default_rng(1), **arguments)


def decided():
    frame = survey()
    second = frame["outcome"] < 0
    frame["winner"] = np.where(second, frame["item2"], frame["item1"])
    frame["loser"] = np.where(second, frame["item1"], frame["item2"])
    return frame


def test_an_order_effect_of_winners_and_losers_is_refused():
    # the item named first is the winner: public patterns would be the answers themselves
    with pytest.raises(ValueError, match="first"):
        model("1", decided(), left="winner + loser", design="public", contest="first")


@pytest.mark.parametrize(
    ("formula", "left", "arguments"),
    [
        ("outcome", "item1 + item2 + outcome", {"bounds": {"outcome": (-1, 1)}}),
        ("winner", "winner + loser", {"levels": {"winner": ITEMS}}),
    ],
)
def test_a_column_of_the_left_side_is_no_covariate(formula, left, arguments):
    with pytest.raises(ValueError, match="left"):
        model(formula, decided(), left=left, respondent=None, design="public", **arguments)


def test_the_respondent_is_no_covariate():
    with pytest.raises(ValueError, match="respondent"):
        model("respondent", design="public", bounds={"respondent": (0, 100)})


def test_columns_that_repeat_each_other_cost_nothing_under_a_private_design():
    budget = pr.Budget(epsilon=3.0, unit="respondent")
    with pytest.raises(ValueError, match="cannot be estimated separately"):
        fitted(model("C(group) + group", levels={"group": ["x", "y"]}), budget=budget)
    assert budget.spent == (0.0, 0.0)


@pytest.mark.parametrize("bounds", [(2.0**53 - 3, 2.0**53 + 2)])
def test_scaled_covariates_stay_within_one(bounds):
    frame = survey()
    frame["big"] = np.where(frame["respondent"] % 2 == 0, bounds[1], 2.0**53)
    fit = fitted(model("0 + big", frame, design="public", bounds={"big": bounds}))
    covariates = fit.release.design.covariates
    assert np.abs(covariates.position).max() <= 2**20


def test_bounds_whose_difference_overflows_are_refused():
    frame = survey().assign(big=lambda f: np.where(f["respondent"] % 2 == 0, 1.7e308, 1e308))
    with pytest.raises(ValueError, match="bounds="):
        model("0 + big", frame, design="public", bounds={"big": (-1e308, 1.7e308)})


def test_one_group_spends_nothing_on_its_size():
    table = pd.DataFrame({"x": [1.0, 2.0, 4.0]}, index=list(ITEMS))
    fit = fitted(model("1", item_formula="x", item_data=table))
    assert GROUP_ANSWERS not in fit.release.parts


def test_tests_of_terms_do_not_depend_on_the_unit_of_an_item_covariate():
    cems = pr.datasets.load_university()
    frame = cems.comparisons.merge(cems.students.reset_index(), on="respondent")
    tests = []
    for unit in (1.0, 1e6, 1e8):
        people = np.array([8.8, 2.1, 1.35, 0.08, 1.6, 0.97]) * unit
        table = pd.DataFrame(
            {"population": people, "capital": [1, 1, 0, 0, 0, 1]}, index=list(cems.items)
        )
        tests.append(
            pr.PrivateBTL.from_formula(
                "item1 + item2 + outcome ~ gender",
                frame,
                items=cems.items,
                respondent="respondent",
                max_rows=15,
                ties=True,
                design="public",
                item_formula="population + capital",
                item_data=table,
            )
            .fit(2.0, rng=np.random.default_rng(0))
            .wald_test_terms()
        )
    for other in tests[1:]:
        assert list(other["df"]) == list(tests[0]["df"])
        np.testing.assert_allclose(other["statistic"], tests[0]["statistic"], rtol=1e-4)


def test_shifting_a_numeric_covariate_changes_no_worth():
    frame = survey().assign(day=lambda f: 19_000 + f["age"])
    at = {"group": "y"}
    near = fitted(
        model(
            "group * age",
            frame,
            design="public",
            bounds={"age": (20, 40)},
            levels={"group": ["x", "y"]},
        )
    ).worths(at | {"age": 30})
    far = fitted(
        model(
            "group * day",
            frame,
            design="public",
            bounds={"day": (19_020, 19_040)},
            levels={"group": ["x", "y"]},
        )
    ).worths(at | {"day": 19_030})
    np.testing.assert_allclose(far["worth"], near["worth"], atol=1e-3)
    np.testing.assert_allclose(far["std_err"], near["std_err"], rtol=1e-3)


def test_who_was_named_first_makes_the_design_effect_larger_but_not_much():
    # the expected answers of respondents differ by the order they were asked in, which counts as
    # dependence: one and a half for independent answers
    rng = np.random.default_rng(0)
    worth = dict(zip(ITEMS, (1.0, 0.0, -1.0), strict=True))
    rows = []
    for person in range(400):
        for pair in PAIRS:
            a, b = pair if rng.random() < 0.5 else pair[::-1]
            p = 1 / (1 + np.exp(-(worth[a] - worth[b] + 0.3)))
            rows.append((person, a, b, 1.0 if rng.random() < p else -1.0))
    frame = pd.DataFrame(rows, columns="respondent item1 item2 outcome".split())
    fit = model("1", frame, design="public", contest="first").fit(np.inf, dependence="worst")
    assert 1.0 <= fit.design_effect < 1.7


@pytest.mark.parametrize("penalty", [np.int64(1), np.float32(1)])
def test_any_number_of_a_penalty_is_stored(penalty):
    fit = fitted(model("group", levels={"group": ["x", "y"]}), penalty=penalty)
    assert pr.from_json(fit.to_json()).params.equals(fit.params)


@pytest.mark.parametrize("fault", ["repeated", "infinite"])
def test_item_data_are_refused_in_a_sentence(fault):
    table = pd.DataFrame({"x": [1.0, 2.0, 4.0]}, index=list(ITEMS))
    table = pd.concat((table, table)) if fault == "repeated" else table.replace(4.0, np.inf)
    with pytest.raises(ValueError, match="item_data"):
        model("1", item_formula="x", item_data=table)


def test_asked_values_are_refused_in_a_sentence():
    fit = fitted(model("age", design="public", bounds={"age": (20, 40)}))
    with pytest.raises((ValueError, TypeError), match="covariate 'age'"):
        fit.worths({"age": "abc"})
    asked = pd.DataFrame({"item1": ["a"], "item2": ["b"], "age": ["SECRET"]})
    with pytest.raises((ValueError, TypeError), match="'age'") as refused:
        fit.predict(asked)
    assert "SECRET" not in str(refused.value)
    assert len(fit.predict(asked.iloc[:0].astype({"age": float}))) == 0


def test_cells_that_are_lists_are_refused_in_a_sentence():
    frame = survey().astype({"group": object})
    frame.at[0, "group"] = ["z"]
    with pytest.raises(TypeError, match="'group'"):
        model("group", frame, levels={"group": ["x", "y"]})
