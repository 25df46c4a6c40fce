"""Odd values in the place of every argument: accepted, or refused in one sentence of the package.

A refusal is raised by a ``raise`` of the package itself, not by what it is built on.
"""

import warnings
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from inspect import signature

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sentences import fault

import privrank as pr

matplotlib.use("Agg")
ITEMS = list("abcd")


def seeded():
    return np.random.default_rng(0)


def odd() -> Iterator[object]:
    """Values of all kinds; a fresh generator each time, as it can be read once."""
    yield from (None, True, np.True_, 0, -1, 1.5, np.nan, np.inf, -np.inf, 10**400, 1j)
    yield from (np.int64(3), np.float32(0.5), Fraction(1, 2), Decimal("1.5"), pd.NA, pd.NaT)
    yield from ("", "6", "ab", b"ab", "a\0b", (), [], {}, {"a", "b"}, {None: None}, range(3))
    yield (letter for letter in "ab")
    yield from (["a", None], ["a", "a"], ["a", np.nan], [1, True], [1.5, 2], [".5", ".5"])
    yield from ([[1, 2], [3]], [[1, 2], [3, 4]], [True, False], np.array(3), np.eye(2))
    yield from (np.array([None, "a"], dtype=object), np.array([]), pd.Series([1.0, 2.0]))
    yield from (pd.DataFrame({"a": [1, 2]}), pd.DataFrame(), int, len, object(), seeded())


def check(call, base, names):
    """Put every odd value in the place of each of these arguments."""
    wrong = []
    for name in names or signature(call).parameters:
        for value in odd():
            given = {k: v() if callable(v) else v for k, v in base.items()}
            try:
                call(**{**given, name: value})
            except Exception as error:
                if (how := fault(error)) is not None:
                    wrong.append(f"{name}={value!r}: {how}")
    plt.close("all")
    assert not wrong, "\n".join(wrong)


def ranks():
    return pd.DataFrame(pr.Mallows(4, 0.6).rvs(40, seeded()), columns=ITEMS)


def comparisons():
    asked = ranks().assign(who=[f"person {k}" for k in range(40)])
    return pr.as_comparisons(asked, "rankings", items=ITEMS, respondent="who")


MODEL = {"items": ITEMS, "respondent": "respondent", "max_rows": 6}
FIT = {"epsilon": 1.0, "rng": seeded}
POINT = {"nobs": 100, "epsilon": 1.0}
BTL = pr.power.BTLPower(items=4, max_rows=6, design="public", replicates=20)
CHOICES = pr.power.UniformityPower(2, kind="choices")
TOP = pr.power.TopKPower(4, k=2, max_rows=6, replicates=20)


def population(**given):
    protocol = pr.local.AdaptiveKwikSort(tuple(ITEMS), 1.0)
    return pr.local.Population(**{"protocol": protocol, "ranks": ranks().to_numpy(), **given})


def answered(queries):
    return population(rng=seeded()).answer(queries)


CALLS = {
    "UniformityPower": (pr.power.UniformityPower, {"items": 4, "kind": "choices"}),
    "IdentityPower": (pr.power.IdentityPower, {"null": [0.5, 0.5]}),
    "ClosenessPower": (pr.power.ClosenessPower, {"items": 3, "kind": "choices"}),
    "groups of a plan": (pr.power.ClosenessPower(2, kind="choices").sizes, {"nobs": 100}),
    "BTLPower": (pr.power.BTLPower, {"items": 4}),
    "BTLPower of sets": (
        pr.power.BTLPower,
        {"items": 4, "offered": {"x": [["0", "1", "2"], ["1", "2", "3"]]}, "design": "public"},
    ),
    "TopKPower": (pr.power.TopKPower, {"items": 4, "k": 2}),
    "balanced_plan": (pr.power.balanced_plan, {"items": 4, "size": 3, "tasks": 4}),
    "AggregationPower": (pr.power.AggregationPower, {"items": 4}),
    "Estimate": (pr.power.Estimate, {"value": 3.0}),
    "power of a test": (CHOICES.power, {**POINT, "total_variation": 0.1}),
    "line of power": (
        CHOICES.plot_power,
        {**POINT, "nobs": [50, 100], "total_variation": 0.1},
        ["nobs", "ax"],
    ),
    "gap": (TOP.solve_power, {**POINT, "power": 0.5}, ["nobs", "power"]),
    "PrivateBTL": (pr.PrivateBTL, {"comparisons": comparisons(), **MODEL}),
    "fit of worths": (
        pr.PrivateBTL(comparisons(), **MODEL).fit,
        FIT,
        ["epsilon", "method", "penalty", "dependence", "shares", "budget", "rng"],
    ),
    "PrivateTopK": (pr.PrivateTopK, {"comparisons": comparisons(), "k": 2, **MODEL}),
    "PrivateRankAggregation": (pr.PrivateRankAggregation, {"rankings": ranks()}),
    "fit of a consensus": (pr.PrivateRankAggregation(ranks()).fit, FIT),
    "UniformityTest": (pr.UniformityTest, {"rankings": ranks()}),
    "fit of a test": (
        pr.UniformityTest.from_counts([30, 40], ["a", "b"]).fit,
        FIT,
        ["epsilon", "delta", "method", "alpha", "tolerance", "effect_epsilon", "budget", "rng"],
    ),
    "counts": (pr.UniformityTest.from_counts, {"counts": [3, 4], "categories": ["a", "b"]}),
    "null": (
        pr.IdentityTest.from_counts,
        {"counts": {"a": 3, "b": 4}, "null": {"a": 0.5, "b": 0.5}},
    ),
    "ClosenessTest": (pr.ClosenessTest, {"sample1": ranks(), "sample2": ranks()}),
    "groups": (
        pr.ClosenessTest.from_formula,
        {"formula": "a + b + c + d ~ who", "data": ranks().assign(who="x"), "levels": ["x", "y"]},
        ["formula", "data", "levels", "labels", "paired", "respondent"],
    ),
    "as_rankings": (pr.as_rankings, {"frame": ranks()}),
    "kendall_distance": (pr.kendall_distance, {"order": ITEMS, "rankings": ranks()}),
    "as_comparisons": (
        pr.as_comparisons,
        {"frame": ranks(), "form": "rankings"},
        ["frame", "form", "items", "respondent", "places", "ties", "missing"],
    ),
    "as_choices": (
        pr.as_choices,
        {
            "frame": ranks().assign(best="a").replace({1: "a", 2: "b", 3: "c", 4: "d"}),
            "offered": ITEMS,
            "best": "best",
            "items": ITEMS,
        },
    ),
    "as_choices by version": (
        pr.as_choices,
        {
            "frame": pd.DataFrame({"v": [1], "best": ["a"]}),
            "offered": {1: [["a", "b"]]},
            "version": "v",
            "best": "best",
            "items": ITEMS,
        },
    ),
    "as_choices by item": (
        pr.as_choices,
        {
            "frame": pd.DataFrame({"t": [1, 1], "item": ["a", "b"], "best": [1, 0]}),
            "offered": "item",
            "task": "t",
            "best": "best",
            "items": ITEMS,
        },
    ),
    "Budget": (pr.Budget, {"epsilon": 1.0}, ["epsilon", "delta", "unit", "label"]),
    "from_json": (pr.from_json, {"text": "{}"}),
    "a record": (pr.Release.from_record, {"record": {}}),
    "Mallows": (pr.Mallows, {"items": 4, "phi": 0.5}),
    "Mallows.from_theta": (pr.Mallows.from_theta, {"items": 4, "theta": 0.5}),
    "distances": (pr.Mallows(4, 0.5).distance_cdf, {"d": [1, 2]}),
    "pair": (pr.Mallows(4, 0.5).pair_probability, {"i": 0, "j": 1}),
    "PlackettLuce": (pr.PlackettLuce, {"worths": [0.0, 1.0]}),
    "bradley_terry": (pr.simulate.bradley_terry, {"worths": [0.0, 1.0]}),
    "protocol": (pr.local.SubRanking, {"items": ITEMS, "epsilon": 1.0}),
    "question": (pr.local.SubRanking(ITEMS, 1.0).question, {"assignment": 0}),
    "assignments": (pr.local.SubRanking(ITEMS, 1.0).assign, {"n": 3, "rng": seeded}),
    "answers": (pr.local.SubRanking(ITEMS, 1.0).simulate, {"ranks": [[1, 2, 3, 4]], "rng": seeded}),
    "Population": (population, {"rng": seeded}, ["protocol", "ranks", "rng", "dropout", "late"]),
    "queries": (answered, {"queries": []}),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_any_kind_is_accepted_or_refused_briefly(name):
    call, base, *names = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(call, base, names[0] if names else None)


@pytest.fixture(scope="module")
def results():
    model = pr.PrivateBTL(comparisons(), **MODEL, design="public")
    worths, again = (model.fit(1.0, rng=np.random.default_rng(seed)) for seed in range(2))
    pairs = pr.PrivateRankAggregation(ranks()).fit(1.0, releases="pairs", rng=seeded())
    test = pr.UniformityTest.from_counts([30, 40], ["a", "b"]).fit(1.0, rng=seeded())
    return [worths, pairs, test, pr.pool([worths, again], survey="different")]


def test_methods_of_results_are_as_careful(results):
    for result in results:
        check(result.summary, {}, None)
        check(result.with_labels, {}, None)
    for method in (results[0].conf_int, results[0].worth, results[1].rank_conf_int):
        check(method, {}, None)
    check(pr.summary_col, {"results": results[:1]}, None)
    check(pr.pool, {"results": results[:1], "survey": "same"}, None)
    check(results[2].detectable_effect, {"replicates": 20}, ["power"])


NUMBERS = {
    "worths of a plan": lambda values: pr.power.BTLPower(items=4, worths=values),
    "worths of a selection": lambda values: pr.power.TopKPower(2, k=1, worths=values),
    "shares": lambda values: pr.power.ClosenessPower(3, kind="choices", shares=values),
    "null of a plan": pr.power.IdentityPower,
    "worths": pr.PlackettLuce,
    "null of rankings": lambda values: pr.IdentityTest(
        [[1, 2], [2, 1]],
        pd.DataFrame({0: [1, 2], 1: [2, 1]}).assign(probability=list(values)).rename(columns=str),
    ),
    "counts": lambda values: pr.UniformityTest.from_counts(values, ["a", "b"]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_texts_and_truth_values_are_no_numbers(name):
    for values in (["1", "0"], [True, False], [1, None], b"ab"):
        with pytest.raises((TypeError, ValueError)):
            NUMBERS[name](values)
    assert NUMBERS[name](np.array([0.75, 0.25] if "counts" != name else [5, 4])) is not None


def test_one_number_is_no_text():
    for wrong in ("6", True, np.nan, Decimal(6)):
        with pytest.raises(ValueError, match="worths must be one number"):
            pr.power.BTLPower(items=4, worths=wrong)
    assert pr.power.BTLPower(items=4, worths=6) == pr.power.BTLPower(4, worths=6)


def test_what_is_left_out_is_named_before_it_is_computed_with():
    for left in ("nobs", "epsilon", "contrast"):
        with pytest.raises(ValueError, match=f"{left} must be given"):
            BTL.power(**{**POINT, "contrast": 0.1, left: None})


def test_items_can_be_read_twice():
    for make in (pr.power.BTLPower, pr.power.UniformityPower, pr.power.AggregationPower):
        with pytest.raises(TypeError, match="items must be a sequence of names, got generator"):
            make(name for name in ITEMS)


@pytest.mark.parametrize("name", [None, np.nan, 1.5, ("a", "b")])
def test_what_is_no_name_is_not_printed_as_one(name, results):
    columns = ranks().set_axis([name, *ITEMS[1:]], axis=1)
    worths = pd.Series([0.0, 1.0], index=pd.Index([name, "b"], dtype=object, tupleize_cols=False))
    counts = {name: {"x": 3, "y": 4}, "b": {"x": 4, "y": 5}}
    labels = {"a": "A", name: "B"}
    for call in (
        lambda: pr.PrivateRankAggregation(columns),
        lambda: pr.UniformityTest(columns),
        lambda: pr.ClosenessTest(columns, columns),
        lambda: pr.as_rankings(columns),
        lambda: pr.ClosenessTest.from_counts(counts, ["x", "y"]),
        lambda: pr.simulate.bradley_terry(worths),
        lambda: pr.summary_col(results[:2], names=["first", name]),
        lambda: pr.summary_col(results[:1], rows=["a", name]),
        lambda: results[0].with_labels(labels),
        lambda: pr.report({name: results[0]}, "page.html"),
    ):
        with pytest.raises(TypeError, match="must be names or whole numbers"):
            call()


@pytest.mark.parametrize("level", [None, np.nan, pd.NA])
def test_what_is_missing_is_no_level(level):
    asked = comparisons().assign(old="no")
    with pytest.raises(ValueError, match="the levels of 'old' must be a sequence of at least two"):
        pr.PrivateBTL.from_formula(
            "item1 + item2 + outcome ~ old", asked, levels={"old": ["no", level]}, **MODEL
        )


def test_whole_numbers_are_names(results):
    assert pr.summary_col(results[:2], names=[2024, 2025]).columns == ("", "2024", "2025")


def test_a_figure_names_the_effect_that_a_plan_takes():
    with pytest.raises(TypeError, match=r"takes no phi=. State contrast= once, or omit it\.$"):
        BTL.plot_power("epsilon", epsilon=[1.0], nobs=100, phi=0.9)
    with pytest.raises(TypeError, match=r"UniformityPower takes no gap=. State total_"):
        CHOICES.plot_power("epsilon", epsilon=[1.0], power=0.8, gap=0.4)
