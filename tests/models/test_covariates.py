"""Bradley-Terry models with covariates: statistics, privacy, fits, tables, refusals."""

import json
import math
import re
import warnings
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from searching import CANARY, check_refusal, has_canary, reachable

import privrank as pr
from privrank.bradley_terry.dependence import released_effect
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.modelmatrix import rows_at
from privrank.encode.comparisons import formula_columns
from privrank.mechanisms.tallies import STATISTICS
from privrank.privacy.sensitivity import contest_noise
from privrank.release.names import CONTEST, GROUP_ANSWERS, NET, PAIR_COUNTS
from privrank.release.survey import FINENESS, Covariates

ITEMS = ("a", "b", "c")
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))
LEVELS = {"group": ["x", "y"]}


def rows(person, answers, **covariates):
    """Rows of one respondent; an answer of None is a pair that was not put, NaN one not given."""
    return [
        {"respondent": person, "item1": a, "item2": b, "outcome": answer, **covariates}
        for (a, b), answer in zip(PAIRS, answers, strict=True)
        if answer is not None
    ]


def encode(frame, formula="group", **arguments):
    options = {
        "items": ITEMS,
        "respondent": "respondent",
        "max_rows": 3,
        "levels": LEVELS,
        "ties": True,
    } | arguments
    return formula_columns(f"item1 + item2 + outcome ~ {formula}", pd.DataFrame(frame), options)


REST = rows("r", (1.0, 1.0, -1.0), group="x", age=20.0) + rows(
    "s", (-1.0, 1.0, 1.0), group="y", age=30.0
)


FOUR = REST + rows("t", (1.0, -1.0, 1.0), group="x", age=40.0)
FOUR += rows("u", (-1.0, 0.0, 1.0), group="y", age=22.0)


def largest_move(tables):
    """Largest l1 distance between two of the tables."""
    table = np.array(tables, dtype=np.int64).reshape(len(tables), -1)
    return max(int(np.abs(table - row).sum(axis=1).max()) for row in table)


def test_replacing_a_respondent_moves_grouped_net_wins_by_the_sensitivity():
    # every respondent there is, in either group, with answers, ties and missing ones
    units = list(product((1.0, 0.0, -1.0, np.nan), repeat=3))
    surveys = [
        encode(REST + rows("p", answers, group=group), design="private")
        for group in ("x", "y")
        for answers in units
    ]
    reach = surveys[0].design.sensitivity
    assert largest_move([STATISTICS[NET](survey) for survey in surveys]) == reach.net_l1
    answers = [STATISTICS[GROUP_ANSWERS](survey) for survey in surveys]
    assert largest_move(answers) == reach.group_answers_l1 == 6
    counts = np.array([STATISTICS[PAIR_COUNTS](survey) for survey in surveys])
    assert largest_move(counts) == reach.pair_counts_l1 == 3
    assert np.abs(counts[:, None] - counts[None]).max() == reach.pair_counts_linf == 1


@pytest.mark.parametrize("age", [20.0, 25.0, 40.0])
def test_answers_move_a_numeric_covariate_by_no_more_than_its_bound(age):
    surveys = [
        encode(
            REST + rows("p", answers, group="y", age=age),
            "group + age",
            design="public",
            bounds={"age": (20, 40)},
        )
        for answers in product((1.0, 0.0, -1.0), repeat=3)
    ]
    design = surveys[0].design
    bound = design.sensitivity.net_l1 * len(design.covariates.monomials) * FINENESS
    moved = largest_move([STATISTICS[NET](survey) for survey in surveys])
    # attained at both ends of the range, where the covariate is -1 or 1; half way it is 0
    assert moved == (bound if age != 25.0 else bound * 3 // 4)


def test_answers_move_the_order_effect_by_the_sensitivity():
    named = [("a", "b"), ("c", "a"), ("b", "c")]
    surveys = []
    for answers in product((1.0, 0.0, -1.0), repeat=3):
        frame = pd.DataFrame(named, columns=["item1", "item2"]).assign(
            respondent="p", outcome=answers, group="x"
        )
        surveys.append(
            encode(
                pd.concat((pd.DataFrame(REST), frame)),
                "1",
                levels=None,
                design="public",
                contest="first",
            )
        )
    moved = largest_move([STATISTICS[CONTEST](survey) for survey in surveys])
    assert moved == contest_noise(surveys[0].design.sensitivity, 1, 1.0).sensitivity == 6 * 32
    # the net wins do not depend on who was named first
    assert largest_move([STATISTICS[NET](survey) for survey in surveys]) <= 12


@pytest.mark.parametrize(
    ("formula", "arguments", "sensitivity"),
    [
        ("group", {"design": "public"}, 8),
        ("group", {"design": "private"}, 8),
        ("group + age", {"design": "public", "bounds": {"age": (20, 40)}}, 2 * 8 * FINENESS),
        ("group * age", {"design": "public", "bounds": {"age": (20, 40)}}, 2 * 8 * FINENESS),
    ],
)
def test_noise_has_the_scale_of_the_sensitivity_over_its_share(formula, arguments, sensitivity):
    model = pr.PrivateBTL.from_formula(
        f"item1 + item2 + outcome ~ {formula}",
        pd.DataFrame(FOUR),
        ties=True,
        **{"items": ITEMS, "respondent": "respondent", "max_rows": 3, "levels": LEVELS} | arguments,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        release = model.fit(1.0, noise="laplace", rng=np.random.default_rng(0)).release
    shares = sum(part.epsilon for part in release.parts.values())
    assert shares <= 1.0 and shares > 1.0 - 1e-12
    part = release.parts[NET]
    assert part.sensitivity == sensitivity
    assert part.laplace.scale * part.epsilon == pytest.approx(sensitivity, rel=1e-9)
    for name in release.parts.keys() - {NET, PAIR_COUNTS}:
        side = release.parts[name]
        assert side.laplace.scale * side.epsilon == pytest.approx(side.sensitivity, rel=1e-9)


def university(formula, **arguments):
    cems = pr.datasets.load_university()
    frame = cems.comparisons.merge(cems.students.reset_index(), on="respondent")
    frame["age"] = 18 + (7 * frame["respondent"]) % 23
    options = {
        "items": cems.items,
        "respondent": "respondent",
        "max_rows": 15,
        "ties": True,
        "levels": cems.levels,
        "design": "public",
    } | arguments
    return pr.PrivateBTL.from_formula(f"item1 + item2 + outcome ~ {formula}", frame, **options)


def test_groups_alone_are_fits_of_their_own():
    fit = university("gender").fit(np.inf, penalty=0)
    cems = pr.datasets.load_university()
    worths = fit.worths().set_index(["gender", "item"])["worth"]
    for gender, people in cems.students.groupby("gender", observed=True).groups.items():
        part = cems.comparisons[cems.comparisons["respondent"].isin(people)]
        alone = pr.PrivateBTL(
            part,
            items=cems.items,
            respondent="respondent",
            max_rows=15,
            ties=True,
            design="public",
        ).fit(np.inf, penalty=0)
        np.testing.assert_allclose(worths[gender], alone.params, atol=1e-9)


def test_a_model_without_covariates_is_the_plain_one():
    # the intercept alone, by way of an item matrix that spans all worths
    cems = pr.datasets.load_university()
    table = pd.DataFrame({f"d{k}": np.eye(6)[k] for k in range(5)}, index=cems.items)
    fit = university("1", item_formula=" + ".join(table.columns), item_data=table)
    plain = pr.PrivateBTL(
        cems.comparisons,
        items=cems.items,
        respondent="respondent",
        max_rows=15,
        ties=True,
        design="public",
    )
    worths = fit.fit(np.inf, penalty=0).worths()["worth"]
    np.testing.assert_allclose(worths, plain.fit(np.inf, penalty=0).params, atol=1e-9)


def test_any_coding_of_the_same_groups_gives_the_same_worths():
    seeds = [
        university(formula).fit(1.0, rng=np.random.default_rng(3)).worths()["worth"]
        for formula in ("gender", "0 + gender", "C(gender, Sum)", "C(gender, Treatment('male'))")
    ]
    for other in seeds[1:]:
        np.testing.assert_allclose(other, seeds[0], atol=1e-7)


def test_scaling_a_numeric_covariate_changes_nothing_but_its_unit():
    cems = pr.datasets.load_university()
    frame = cems.comparisons.merge(cems.students.reset_index(), on="respondent")
    frame["age"] = 18 + (7 * frame["respondent"]) % 23
    frame["decades"] = frame["age"] / 10
    fits = [
        pr.PrivateBTL.from_formula(
            f"item1 + item2 + outcome ~ gender + {name}",
            frame,
            items=cems.items,
            respondent="respondent",
            max_rows=15,
            ties=True,
            design="public",
            bounds={name: bounds},
        ).fit(2.0, rng=np.random.default_rng(8))
        for name, bounds in (("age", (18, 40)), ("decades", (1.8, 4.0)))
    ]
    ages, decades = (fit.params.to_numpy() for fit in fits)
    np.testing.assert_allclose(decades[-6:], 10 * ages[-6:], rtol=1e-5)
    np.testing.assert_allclose(decades[:-6], ages[:-6], rtol=1e-4, atol=1e-6)


def test_standard_errors_cover_the_noise_that_is_drawn():
    # noise alone: one survey, many releases; the spread of the coefficients is their privacy error
    model = university("gender", contest="first")
    exact = model.fit(np.inf, penalty=0).params
    fits = [model.fit(4.0, noise="laplace", rng=np.random.default_rng(k)) for k in range(150)]
    spread = np.sqrt(np.mean([(fit.params - exact) ** 2 for fit in fits], axis=0))
    stated = np.mean([fit.bse_privacy for fit in fits], axis=0)
    np.testing.assert_allclose(spread / stated, 1.0, atol=0.25)
    assert np.abs(spread / stated - 1.0).mean() < 0.1


def test_standard_errors_cover_the_noise_of_the_answers_of_each_group():
    # next to no epsilon for these, so that their noise is what moves the coefficients
    model = university("english", design="private")
    shares = {"group_answers": 0.004, "dependence": 0.05}
    fits = [model.fit(20.0, shares=shares, rng=np.random.default_rng(k)) for k in range(120)]
    centre = np.mean([fit.params for fit in fits], axis=0)
    spread = np.sqrt(np.mean([(fit.params - centre) ** 2 for fit in fits], axis=0))
    stated = np.sqrt(np.mean([fit.bse_privacy**2 for fit in fits], axis=0))
    # the larger group; the smaller is left without any answers now and then
    assert (spread / stated)[:6].mean() == pytest.approx(1.0, abs=0.25)


def test_missing_answers_do_not_pull_the_coefficients_of_a_private_design():
    # half of the answers about one item are missing; noise is as good as none
    rng = np.random.default_rng(4)
    cems = pr.datasets.load_university()
    frame = cems.comparisons.merge(cems.students.reset_index(), on="respondent")
    about = (frame["item1"] == "Paris") | (frame["item2"] == "Paris")
    frame["outcome"] = frame["outcome"].mask(about & (rng.random(len(frame)) < 0.5))
    options = {"items": cems.items, "respondent": "respondent", "max_rows": 15, "ties": True}
    options["levels"] = cems.levels
    formula = "item1 + item2 + outcome ~ gender"
    public, private, equal = (
        pr.PrivateBTL.from_formula(formula, frame, **options, **more).fit(1e6, rng=rng).params
        for more in ({"design": "public"}, {}, {"pair_counts": "equal"})
    )
    np.testing.assert_allclose(private, public, atol=0.08)
    assert np.abs(equal - public).max() > 0.1


@pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")
def test_standard_errors_cover_the_noise_of_pair_counts_that_groups_share():
    model = university("gender", design="private")
    shares = {"pair_counts": 0.006, "group_answers": 0.4, "dependence": 0.05}
    fits = [model.fit(30.0, shares=shares, rng=np.random.default_rng(k)) for k in range(100)]
    centre = np.mean([fit.params for fit in fits], axis=0)
    spread = np.sqrt(np.mean([(fit.params - centre) ** 2 for fit in fits], axis=0))
    stated = np.sqrt(np.mean([fit.bse_privacy**2 for fit in fits], axis=0))
    assert score_equations(fits[0].release).count_variance > 30**2
    assert (spread / stated)[:6].mean() == pytest.approx(1.0, abs=0.25)


def test_levels_too_rare_for_the_noise_of_their_answers_are_named():
    rng = np.random.default_rng(1)
    frame = pd.concat(
        [
            pd.DataFrame(rows(str(k), rng.choice((-1.0, 1.0), 3), group="y" if k < 12 else "x"))
            for k in range(300)
        ]
    )

    def warned(epsilon):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit_of("group", frame, levels=LEVELS).fit(epsilon, rng=np.random.default_rng(1))
        return [text for each in caught if "answers by group" in (text := str(each.message))]

    (text,) = warned(0.5)
    assert "group y" in text and "group x" not in text and "merge rare levels" in text
    assert not warned(30.0)


def test_answers_of_each_group_are_in_the_errors_of_a_private_design():
    fit = university("gender", design="private").fit(2.0, rng=np.random.default_rng(1))
    facts = score_equations(fit.release)
    assert facts.variance("group_answers") > 0
    silent = score_equations(university("gender").fit(2.0, rng=np.random.default_rng(1)).release)
    assert silent.variance("group_answers") == 0.0


@pytest.mark.parametrize("unit", ["respondent", "row"])
def test_groups_may_answer_different_numbers_of_pairs_under_a_private_design(unit):
    # women leave out half of the questionnaire, whatever their answers; noise is as good as none
    rng = np.random.default_rng(4)
    cems = pr.datasets.load_university()
    frame = cems.comparisons.merge(cems.students.reset_index(), on="respondent")
    left_out = (frame["gender"] == "female") & (rng.random(len(frame)) < 0.5)
    frame["outcome"] = frame["outcome"].mask(left_out)
    options = {"items": cems.items, "ties": True}
    options |= (
        {"respondent": "respondent", "max_rows": 15}
        if unit == "respondent"
        else {"respondent": None}
    )
    public, private = (
        pr.PrivateBTL.from_formula(
            "item1 + item2 + outcome ~ gender",
            frame.dropna(),
            levels={"gender": ["female", "male"]},
            design=design,
            **options,
        ).fit(1e6, rng=rng)
        for design in ("public", "private")
    )
    np.testing.assert_allclose(private.params, public.params, atol=0.06)
    answers = score_equations(private.release).group_answers
    counted = frame.dropna().groupby("gender", observed=True).size()
    assert list(answers) == [counted["female"], counted["male"]]
    assert f"female {counted['female']:,}; male {counted['male']:,}." in str(private.summary())


def test_errors_of_rows_allow_for_which_pairs_each_group_compared():
    # pairs are drawn by lot, and worths far apart: what is known is one number for both groups
    rng = np.random.default_rng(11)
    worths = np.linspace(-3.0, 3.0, 6)
    first, second = np.array(list(combinations(range(6), 2))).T
    found = []
    for _ in range(60):
        pair = rng.integers(0, 15, 2000)
        apart = worths[first[pair]] - worths[second[pair]]
        frame = pd.DataFrame({"item1": first[pair], "item2": second[pair]})
        frame["outcome"] = np.where(rng.random(2000) < 1 / (1 + np.exp(-apart)), 1, -1)
        frame["group"] = np.where(rng.random(2000) < 0.5, "x", "y")
        model = pr.PrivateBTL.from_formula(
            "item1 + item2 + outcome ~ group",
            frame,
            items=range(6),
            respondent=None,
            ties=False,
            levels=LEVELS,
        )
        lower, upper = model.fit(4.0, rng=rng).conf_int().iloc[6:].to_numpy().T
        found.append((lower <= 0) & (upper >= 0))
    assert np.mean(found) > 0.93


@pytest.mark.parametrize(
    ("formula", "arguments"),
    [
        ("group", {"design": "private"}),
        ("group + age", {"design": "public", "bounds": {"age": (20, 40)}}),
    ],
)
def test_result_comes_back_from_json_and_holds_no_data(formula, arguments):
    frame = pd.DataFrame(FOUR)
    frame["respondent"] = f"{CANARY}-" + frame["respondent"]
    model = pr.PrivateBTL.from_formula(
        f"item1 + item2 + outcome ~ {formula}",
        frame,
        ties=True,
        **{"items": ITEMS, "respondent": "respondent", "max_rows": 3, "levels": LEVELS} | arguments,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        fit = model.fit(1.0, rng=np.random.default_rng(4))
        again = pr.from_json(fit.to_json())
    assert not [item for item in reachable(fit) if has_canary(item)]
    assert CANARY not in fit.to_json() + str(fit.summary()) + repr(fit)
    assert str(again.summary()) == str(fit.summary())
    assert again.to_json() == fit.to_json()


def test_covariates_come_back_from_their_record():
    model = university("gender * age", contest="first", bounds={"age": (18, 40)})
    release = model.fit(2.0, rng=np.random.default_rng(1)).release
    back = pr.Release.from_json(release.to_json())
    again, facts = back.design.covariates, release.design.covariates
    np.testing.assert_array_equal(again.basis, facts.basis)
    np.testing.assert_array_equal(again.matrix, facts.matrix)
    assert back.to_json() == release.to_json()


def test_model_matrix_is_what_the_formula_says():
    model = university("gender * age", bounds={"age": (18, 40)})
    facts = model.fit(2.0, rng=np.random.default_rng(1)).release.design.covariates
    age = 29 + 11 * facts.position[:, 0] / FINENESS
    male = facts.cell.astype(float)
    wanted = np.column_stack((np.ones(len(age)), male, age, male * age))
    np.testing.assert_allclose(facts.matrix, wanted, atol=1e-5)
    rows = rows_at(facts, {"gender": ["male", "female"], "age": [25.0, 40.0]}, 2)
    np.testing.assert_allclose(rows, [(1, 1, 25, 25), (1, 0, 40, 0)], atol=1e-4)


def test_any_frame_gives_the_same_release():
    cems = pr.datasets.load_university()
    frame = cems.comparisons.merge(cems.students.reset_index(), on="respondent")
    plain = frame.astype({name: str for name in ("item1", "item2", "gender")})
    options = {
        "items": cems.items,
        "respondent": "respondent",
        "max_rows": 15,
        "ties": True,
        "levels": {"gender": ["female", "male"]},
    }
    texts = [
        pr.PrivateBTL.from_formula("item1 + item2 + outcome ~ gender", each, **options)
        .fit(1.0, rng=np.random.default_rng(2))
        .to_json()
        for each in (frame, pl.from_pandas(plain), pl.from_pandas(plain).lazy())
    ]
    assert texts[0] == texts[1] == texts[2]


def test_tables_and_predictions_agree():
    fit = university("gender", contest="first").fit(2.0, rng=np.random.default_rng(5))
    asked = pd.DataFrame({"item1": ["London"], "item2": ["Paris"], "gender": ["male"]})
    worths = fit.worths({"gender": "male"}).set_index("item")["worth"]
    t = worths["London"] - worths["Paris"] + fit.params["first"]
    predicted = fit.predict(asked).iloc[0]
    assert predicted["preferred_plus_half_ties"] == pytest.approx(1 / (1 + np.exp(-t)))
    assert predicted["lower"] < predicted["preferred_plus_half_ties"] < predicted["upper"]
    tests = fit.wald_test_terms()
    assert list(tests.index) == ["Intercept", "gender", "first"]
    assert list(tests["df"]) == [5, 5, 1]
    # on one degree of freedom the statistic is the square of z
    assert tests.loc["first", "statistic"] == pytest.approx(fit.tvalues["first"] ** 2)
    joint = fit.wald_test(
        [f"gender[T.male]:{item} = 0" for item in ("London", "Paris", "Milano", "StGallen")]
        + ["gender[T.male]:Barcelona = 0"]
    )
    assert joint.statistic == pytest.approx(tests.loc["gender", "statistic"])
    text = str(fit.summary(details=True))
    for word in (
        "~ gender, contest: first",
        "gender[T.male]:London",
        "sums of contest",
        "seeded (do not",
    ):
        assert word in text
    assert fit.summary().as_html() and fit.summary().as_latex()
    figure = fit.plot()
    assert len(figure.axes[0].get_legend().get_texts()) == 2
    both = pr.summary_col([fit, fit])
    assert "first" in str(both)


def test_lack_of_fit_sees_worths_that_the_item_covariates_do_not_explain():
    cems = pr.datasets.load_university()
    worth = university(
        "1",
        levels={},
        item_formula="x",
        item_data=pd.DataFrame({"x": np.arange(6.0)}, index=cems.items),
    ).fit(np.inf, penalty=0)
    assert worth.test_lack_of_fit()["pvalue"] < 0.01
    assert worth.test_lack_of_fit()["df"] == 4
    plain = pr.PrivateBTL(
        cems.comparisons,
        items=cems.items,
        respondent="respondent",
        max_rows=15,
        ties=True,
        design="public",
    ).fit(np.inf, penalty=0)
    true = university(
        "1",
        item_formula="x",
        item_data=pd.DataFrame({"x": plain.params.to_numpy()}, index=cems.items),
    ).fit(np.inf, penalty=0)
    assert true.params["x"] == pytest.approx(1.0, abs=1e-8)
    assert true.test_lack_of_fit()["pvalue"] > 0.99


GOOD = pd.DataFrame(REST).replace({"respondent": {"r": f"{CANARY}-1", "s": f"{CANARY}-2"}})


def fit_of(formula, frame=GOOD, **arguments):
    options = {"items": ITEMS, "respondent": "respondent", "max_rows": 3} | arguments
    return pr.PrivateBTL.from_formula(f"item1 + item2 + outcome ~ {formula}", frame, **options)


def changed(column, value):
    frame = GOOD.astype({column: object})
    frame.loc[0, column] = value
    return frame


TABLE = pd.DataFrame({"x": [1.0, 2.0, 4.0]}, index=list(ITEMS))
NUMERIC = {"design": "public", "bounds": {"age": (20, 40)}}

REFUSALS = {
    "undeclared levels": (lambda: fit_of("group"), ["levels must be declared for 'group'"]),
    "unknown level": (
        lambda: fit_of("group", changed("group", f"{CANARY}-z"), levels=LEVELS),
        ["'group'", "not listed in levels"],
    ),
    "missing level": (
        lambda: fit_of("group", changed("group", None), levels=LEVELS),
        ["'group'", "missing"],
    ),
    "two levels of one respondent": (
        lambda: fit_of("group", changed("group", "y"), levels=LEVELS),
        ["one value of each covariate", "group"],
    ),
    "no bounds": (lambda: fit_of("age", design="public"), ["'age' needs bounds="]),
    "infinite bound": (
        lambda: fit_of("age", design="public", bounds={"age": (0, np.inf)}),
        ["'age' needs bounds=", "finite"],
    ),
    "out of bounds": (
        lambda: fit_of("age", design="public", bounds={"age": (25, 40)}),
        ["'age'", "within its bounds"],
    ),
    "bounds of nothing": (
        lambda: fit_of("group", levels=LEVELS, bounds={"age": (20, 40)}),
        ["bounds must name columns of the formula"],
    ),
    "bounds of levels": (
        lambda: fit_of("group", levels=LEVELS, bounds={"group": (0, 1)}),
        ["bounds are for numeric columns"],
    ),
    "private numeric": (
        lambda: fit_of("age", bounds={"age": (20, 40)}),
        ["design='public'", "cut numbers"],
    ),
    "private order": (lambda: fit_of("1", contest="first"), ["design='public'"]),
    "learnt transform": (
        lambda: fit_of("center(age)", **NUMERIC),
        ["plain columns", "beforehand"],
    ),
    "mixed rows": (
        lambda: fit_of("I(age - age.mean())", **NUMERIC),
        ["plain columns", "beforehand"],
    ),
    "unknown column": (lambda: fit_of("party"), ["no column 'party'"]),
    "levels as text": (lambda: fit_of("group", levels={"group": "xy"}), ["levels", "sequence"]),
    "one level": (lambda: fit_of("group", levels={"group": ["x"]}), ["'group'", "at least two"]),
    "many groups": (
        lambda: fit_of("group", levels={"group": list("xy") + list(range(2000))}),
        ["at most 1024 groups"],
    ),
    "levels not a mapping": (
        lambda: fit_of("group", levels=["x", "y"]),
        ["levels must map names of columns"],
    ),
    "order as a covariate of units": (
        lambda: fit_of("group * first", levels=LEVELS, design="public"),
        ["contest='first'"],
    ),
    "empty level": (
        lambda: fit_of("group", levels={"group": ["x", "y", "z"]}, design="public"),
        ["cannot be estimated separately", "levels that no respondent has"],
    ),
    "objective": (
        lambda: fit_of("group", levels=LEVELS).fit(1.0, method="objective"),
        ["method='objective'", "without covariates"],
    ),
    "items alone": (
        lambda: fit_of("1", item_formula="x"),
        ["item_formula", "item_data", "both"],
    ),
    "item without a row": (
        lambda: fit_of("1", item_formula="x", item_data=TABLE.iloc[:2]),
        ["one row per item"],
    ),
    "item column": (
        lambda: fit_of("1", item_formula="y", item_data=TABLE),
        ["item_data has no column 'y'"],
    ),
    "constant item column": (
        lambda: fit_of("1", item_formula="x", item_data=TABLE * 0),
        ["differ between items"],
    ),
    "top-k": (
        lambda: pr.PrivateTopK.from_formula(
            "item1 + item2 + outcome ~ group",
            GOOD,
            1,
            items=ITEMS,
            respondent="respondent",
            max_rows=3,
            levels=LEVELS,
        ),
        ["'~ 1' on its right"],
    ),
}


@pytest.mark.parametrize(("call", "words"), REFUSALS.values(), ids=REFUSALS)
def test_refusal(call, words):
    check_refusal(call, (ValueError, TypeError), words, leave_out=(CANARY,))


def test_a_release_with_covariates_is_read_by_its_own_model_only():
    fit = university("gender").fit(1.0, rng=np.random.default_rng(0))
    again = pr.PrivateBTL.from_release(fit.release)
    np.testing.assert_array_equal(again.params, fit.params)
    check_refusal(lambda: pr.PrivateTopK.from_release(fit.release, 2), ValueError, ["covariates"])


def test_questions_to_a_result_are_refused_in_a_sentence():
    fit = university("gender").fit(1.0, rng=np.random.default_rng(0))
    asked = pd.DataFrame({"item1": ["London"], "item2": ["Paris"], "gender": ["none"]})
    check_refusal(lambda: fit.predict(asked), ValueError, ["'gender'", "one of"])
    check_refusal(lambda: fit.predict(asked.drop(columns="gender")), TypeError, ["columns"])
    check_refusal(lambda: fit.worths({"party": "x"}), ValueError, ["covariates of the model"])
    check_refusal(lambda: fit.test_lack_of_fit(), ValueError, ["item_formula"])


def test_the_design_effect_of_groups_is_at_least_that_of_their_contrasts():
    # without noise: of all shown coefficients and differences, and of worths in every group
    for design in ("public", "private"):
        model = university("gender", design=design)
        robust, worst = model.fit(np.inf), model.fit(np.inf, dependence="worst")
        assert worst.design_effect >= 0.99 * robust.design_effect
        assert worst.design_effect <= 2.0 * robust.design_effect


REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "covariates.json").read_text(encoding="utf-8")
)
SURVEYS = {
    "university": lambda: pr.datasets.load_university(),
    "university_1998": lambda: pr.datasets.load_university(version="1998"),
    "immigration": lambda: pr.datasets.load_immigration(),
}
FITS = {name: REFERENCE[name].get("fits", REFERENCE[name]) for name in SURVEYS}
FITTED = [(name, formula) for name in SURVEYS for formula in FITS[name] if formula != "~1"]


def of_survey(name, formula, **arguments):
    survey = SURVEYS[name]()
    frame = survey.comparisons.merge(survey.students.reset_index(), on="respondent")
    frame["age"] = 18 + (7 * frame["respondent"]) % 23
    options = {"items": survey.items, "respondent": "respondent", "max_rows": 15, "ties": True}
    if "age" in formula:
        options["bounds"] = {"age": (18, 40)}
    return pr.PrivateBTL.from_formula(
        f"item1 + item2 + outcome {formula}", frame, design="public", **options | arguments
    )


@pytest.mark.parametrize(("name", "formula"), FITTED, ids=map("".join, FITTED))
def test_non_private_fit_is_that_of_r(name, formula):
    wanted = FITS[name][formula]
    model = of_survey(name, formula)
    for kind, effect in (("naive", "none"), ("cluster", "cluster")):
        fit = model.fit(np.inf, penalty=0, dependence=effect)
        columns = wanted["coefficients"]
        np.testing.assert_allclose(fit.params, np.concatenate(list(columns.values())), atol=1e-5)
        # the reference has no small-sample factor
        factor = fit.nobs / (fit.nobs - 1) if kind == "cluster" else 1.0
        errors = np.concatenate([wanted["bse"][kind][column] for column in columns])
        np.testing.assert_allclose(fit.bse, np.sqrt(factor) * errors, atol=1e-5)
        tests, whole = fit.wald_test_terms(), fit.cov_params().to_numpy()
        size = len(fit.items)
        terms = {term: slice(*ends) for term, *ends in fit.release.design.covariates.terms}
        for term, value in wanted["wald"].items():
            # R's test is of the estimates: its covariance is ours, but our tests are by scores
            here = slice(terms[term].start * size, terms[term].stop * size)
            gaps = fit.params.to_numpy()[here]
            wald = gaps @ np.linalg.pinv(whole[here, here], rcond=1e-9) @ gaps
            assert wald == pytest.approx(value[kind] / factor, rel=1e-4)
            if kind == "naive":
                assert tests.loc[term, "statistic"] == pytest.approx(wald, rel=0.25)
            assert tests.loc[term, "df"] == value["df"]
        for pattern in wanted["patterns"]:
            worths = fit.worths(pattern["at"])
            np.testing.assert_allclose(worths["worth"], pattern["worth"], atol=1e-5)
            error = np.sqrt(factor) * np.array(pattern[kind])
            np.testing.assert_allclose(worths["std_err"], error, atol=1e-5)


@pytest.mark.parametrize("formula", REFERENCE["university_order"])
def test_order_effect_is_that_of_r(formula):
    wanted = REFERENCE["university_order"][formula]
    model = of_survey("university", formula, contest="first")
    for kind, effect in (("naive", "none"), ("cluster", "cluster")):
        fit = model.fit(np.inf, penalty=0, dependence=effect)
        assert fit.params["first"] == pytest.approx(wanted["delta"]["value"], abs=1e-6)
        factor = fit.nobs / (fit.nobs - 1) if kind == "cluster" else 1.0
        error = math.sqrt(factor) * wanted["delta"][kind]
        assert fit.bse["first"] == pytest.approx(error, abs=1e-6)
        columns = wanted["coefficients"]
        np.testing.assert_allclose(
            fit.params[:-1], np.concatenate(list(columns.values())), atol=1e-6
        )


def test_item_covariates_are_those_of_r():
    wanted = REFERENCE["university_items"]
    table = pd.DataFrame(wanted["item_data"], index=pr.datasets.load_university().items)
    model = of_survey("university", "~ 1", item_formula="prestige + city", item_data=table)
    for kind, effect in (("naive", "none"), ("cluster", "cluster")):
        fit = model.fit(np.inf, penalty=0, dependence=effect)
        factor = fit.nobs / (fit.nobs - 1) if kind == "cluster" else 1.0
        for name, value in wanted["coefficients"].items():
            assert fit.params[name] == pytest.approx(value, abs=1e-6)
            error = math.sqrt(factor) * wanted["bse"][kind][name]
            assert fit.bse_sampling[name] == pytest.approx(error, abs=1e-6)
        np.testing.assert_allclose(fit.worths()["worth"], wanted["worth"], atol=1e-6)
        rest = fit.test_lack_of_fit()
        lack = wanted["lack_of_fit"][f"wald_{kind}"] / factor
        if kind == "naive":  # R's test is of the estimates, and this one of the scores
            assert rest["statistic"] == pytest.approx(lack, rel=0.05)
        assert rest["df"] == wanted["lack_of_fit"]["df"]


# --- the methods about items, at given covariates ---


@pytest.mark.parametrize("epsilon", [np.inf, 2.0])
def test_methods_about_items_agree_at_every_profile(epsilon):
    fit = university("gender", contest="first").fit(epsilon, rng=np.random.default_rng(4))
    frame = fit.pairwise(at={"gender": "male"})
    worths = fit.worths({"gender": "male"}).set_index("item")
    away = worths["worth"].loc[frame["item1"]].to_numpy() - worths["worth"].loc[frame["item2"]]
    np.testing.assert_allclose(frame["difference"], away.to_numpy(), atol=1e-12)
    ranks = worths["worth"].rank(ascending=False)
    np.testing.assert_array_equal(fit.ranks({"gender": "male"}).loc[ranks.index], ranks)
    quasi = fit.quasi_se({"gender": "male"})
    np.testing.assert_allclose(quasi["std_err"], worths["std_err"], atol=1e-12)
    table = fit.probabilities({"gender": "male"})
    cells = [table.loc[one, two] for one, two in zip(frame["item1"], frame["item2"], strict=True)]
    np.testing.assert_allclose(cells, frame["preferred_plus_half_ties"], atol=1e-12)
    sets = fit.rank_conf_int(at={"gender": "male"})
    assert ((sets["lower"] <= ranks) & (ranks <= sets["upper"])).all()
    wider = fit.pairwise(at={"gender": "male"}, simultaneous=True)
    assert (wider["lower"] < frame["lower"]).all() and (wider["pvalue"] >= frame["pvalue"]).all()
    assert fit.worth({"gender": "male"}).sum() == pytest.approx(1.0)


def test_the_reference_profile_is_that_of_the_first_levels():
    fit = university("gender").fit(2.0, rng=np.random.default_rng(4))
    first = {"gender": fit.release.design.covariates.factors[0][1][0]}
    pd.testing.assert_frame_equal(fit.pairwise(), fit.pairwise(at=first))
    # of the reference group worths are coefficients, which a hypothesis names by their items
    pair = fit.pairwise().set_index(["item1", "item2"]).loc["London", "Paris"]
    test = fit.t_test("London = Paris")
    assert float(test.effect[0]) == pytest.approx(pair["difference"])
    # the scores' p-value and Wald's
    assert float(test.pvalue) == pytest.approx(pair["pvalue"], rel=0.1)
    whole, term = fit.test_homogeneity(), fit.wald_test_terms().loc["Intercept"]
    assert whole.statistic == pytest.approx(term["statistic"]) and whole.df == term["df"] == 5
    assert whole.pvalue == pytest.approx(term["pvalue"], abs=0.03)


def test_a_model_without_covariates_has_one_profile():
    fit = university("1").fit(2.0, rng=np.random.default_rng(4))
    assert list(fit.worths().columns) == ["item", "worth", "std_err", "lower", "upper"]
    np.testing.assert_allclose(fit.worths()["worth"], fit.params)
    np.testing.assert_allclose(fit.worths()[["lower", "upper"]], fit.conf_int())
    assert fit.wald_test_terms().loc["Intercept", "df"] == 5
    check_refusal(lambda: fit.pairwise(at={"gender": "male"}), ValueError, ["covariates"])
    check_refusal(lambda: fit.ranks({"gender": "male"}), ValueError, ["covariates"])


@pytest.mark.parametrize("epsilon", [np.inf, 1.0])
def test_a_plain_fit_is_the_model_of_an_intercept_only(epsilon):
    plain = university("1").fit(epsilon, rng=np.random.default_rng(4))
    design = plain.release.design
    intercept = Covariates(
        formula="1",
        factors=(),
        bounds=(),
        monomials=((),),
        columns=("Intercept",),
        terms=(("Intercept", 0, 1),),
        weights=np.ones((1, 1)),
        contest=(),
        item_columns=(),
        item_matrix=np.zeros((len(design.items), 0)),
        cell=np.zeros(1),
        position=np.zeros((1, 0)),
        contests=np.zeros((1, 0)),
        units=np.full(1, design.nobs),
    )
    survey = replace(design, covariates=intercept)
    fit = pr.PrivateBTL.from_release(replace(plain.release, survey=survey))
    np.testing.assert_allclose(fit.params, plain.params, atol=1e-9)
    np.testing.assert_allclose(fit.cov_params(), plain.cov_params(), atol=1e-9)
    np.testing.assert_allclose(fit.bse_privacy, plain.bse_privacy, atol=1e-9)
    assert fit.design_effect == pytest.approx(plain.design_effect)
    np.testing.assert_allclose(fit.conf_int(), plain.conf_int(), atol=0.01)


@pytest.mark.parametrize("design", ["public", "private"])
def test_the_released_design_effect_is_at_most_what_answers_can_bring_about(design):
    # of a rare combination of levels the noise alone can look like any dependence
    rng = np.random.default_rng(3)
    first, second = np.array(list(combinations(range(4), 2))).T
    people, found, raw = 300, [], []
    frame = pd.DataFrame({"item1": np.tile(first, people), "item2": np.tile(second, people)})
    frame["respondent"] = np.repeat(range(people), 6)
    for name in ("g", "h"):
        frame[name] = np.repeat(rng.choice(["x", "y"], people, p=[0.8, 0.2]), 6)
    frame["outcome"] = rng.choice([1, -1], len(frame))
    levels = {name: ["x", "y"] for name in "gh"}
    options = {"items": range(4), "max_rows": 6, "design": design}
    model = fit_of("g * h", frame, levels=levels, **options)
    for seed in range(10):
        fit = model.fit(0.5, rng=np.random.default_rng(seed))
        release, part = fit.release, fit.release.parts["dependence"]
        raw.append(release.found["largest design effect"] * part.values[0] * part.step / people)
        found.append(released_effect(release))
        stated = release.found["largest design effect of any answers"]
        assert 1.0 <= found[-1] <= stated
        note = f"at most {stated:.2f}, the largest possible value, is assumed"
        assert note in " ".join(str(fit.summary(details=True)).split())
    # twice the square of 3 over 4 for a difference of two equal worths, six answers for any other
    assert max(raw) > 15.0 and 4.5 <= max(found) <= 6.0


def test_errors_of_item_covariates_hold_the_scatter_of_the_items_about_them():
    # z has no effect; taking items to be exactly on the line finds it in .6 of surveys
    rng = np.random.default_rng(8)
    first, second = np.array(list(combinations(range(6), 2))).T
    frame = pd.DataFrame({"item1": np.tile(first, 60), "item2": np.tile(second, 60)})
    frame["respondent"] = np.repeat(range(60), 15)
    found = []
    for _ in range(30):
        table = pd.DataFrame(rng.standard_normal((6, 2)), columns=["x", "z"])
        worths = 0.5 * table["x"].to_numpy() + 0.7 * rng.standard_normal(6)
        chance = 1.0 / (1.0 + np.exp(worths[second] - worths[first]))
        frame["outcome"] = np.where(rng.random(900) < np.tile(chance, 60), 1, -1)
        options = {"items": range(6), "max_rows": 15, "design": "public"}
        model = fit_of("1", frame, item_formula="x + z", item_data=table, **options)
        fit = model.fit(np.inf)
        found.append(fit.pvalues["z"] <= 0.05)
        assert (fit.bse >= (1 - 1e-12) * fit.bse_sampling).all()
    assert np.mean(found) <= 0.2
    # three contrasts of items show it, also where noise takes a design effect to its ceiling
    for epsilon in (2.0, 8.0):
        private = model.fit(epsilon, rng=rng)
        half = 0.5 * np.subtract(*private.conf_int()[["upper", "lower"]].to_numpy().T)
        assert (half > 2.8 * private.bse).all()
    text = " ".join(str(fit.summary()).split())
    assert "Lack of fit of the item covariates: Monte Carlo p" in text
    scatter = re.search(r"items about the covariate model: Intercept (\d\.\d+)\.", text)
    assert 0.3 < float(scatter[1]) < 1.5
    # as many covariates as contrasts leave no item beside the line
    table = pd.DataFrame({f"d{k}": np.eye(6)[k] for k in range(5)})
    every = " + ".join(table.columns)
    whole = fit_of("1", frame, item_formula=every, item_data=table, **options).fit(np.inf)
    assert "about the covariate model" not in " ".join(str(whole.summary()).split())
    np.testing.assert_allclose(whole.bse, whole.bse_sampling, rtol=1e-9)
