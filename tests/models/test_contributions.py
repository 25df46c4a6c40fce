"""What bounds cost: a table of simulated fits, from a declared activity."""

import math

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.plans.choice import plan_comparisons, probably_unidentified
from privrank.plans.comparisons import Request, plan_fit
from privrank.power.comparisons import simulated_counts
from privrank.release.survey import Design

ITEMS = list("abc")
DECLARED = {"items": ITEMS, "for_epsilon": 1.0, "replicates": 4}


def test_parts_of_the_error_add_up_and_move_with_the_bound():
    found = pr.contribution_tradeoff(
        {1: 1000, 40: 1000}, items=list("abcdefgh"), for_epsilon=1.0,
        distinct_pairs=False, bounds=[1, 5, 40], replicates=6,
    )  # fmt: skip
    assert np.allclose(found["sampling"] ** 2 + found["privacy"] ** 2, found["std_err"] ** 2)
    assert found["sampling"].is_monotonic_decreasing and found["privacy"].is_monotonic_increasing
    assert found["rows"].tolist() == [2000, 6000, 41000]
    assert found["beyond"].tolist() == [1000, 1000, 0]
    assert (found["error"] < 0.5 * found["std_err"]).all()


def test_the_error_is_that_of_fits_of_frames():
    """Fits of data frames that are simulated here, not by the planner."""
    worths = np.array([0.8, 0.0, -0.2, -0.6])
    found = pr.contribution_tradeoff(
        {6: 400}, items=list("abcd"), for_epsilon=2.0, worths=worths, bounds=[6], replicates=40
    ).loc[6]
    rng, squares = np.random.default_rng(5), []
    first, second = np.triu_indices(4, 1)
    for _ in range(40):
        felt = worths + rng.gumbel(size=(400, 4))
        frame = pd.DataFrame(
            {
                "item1": np.tile(np.array(list("abcd"))[first], 400),
                "item2": np.tile(np.array(list("abcd"))[second], 400),
                "outcome": np.where(felt[:, first] > felt[:, second], 1, -1).ravel(),
                "respondent": np.repeat(np.arange(400), 6),
            }
        )
        model = pr.PrivateBTL(frame, items=list("abcd"), respondent="respondent", max_rows=6)
        apart = model.fit(2.0, rng=rng).params.to_numpy() - worths
        squares.append(np.mean((apart[first] - apart[second]) ** 2))
    error = np.std(squares, ddof=1) / math.sqrt(40) / (2 * math.sqrt(np.mean(squares)))
    apart = found["std_err"] - math.sqrt(np.mean(squares))
    assert abs(apart) < 3.5 * math.hypot(error, found["error"])
    assert found["identified"] == 1.0


def test_worths_spread_wider_have_larger_errors():
    given = {"items": list("abcdef"), "for_epsilon": 2.0, "bounds": [5], "replicates": 10}
    near, far = (pr.contribution_tradeoff({5: 300}, **given, worths=w) for w in (0.0, 4.0))
    assert far["std_err"].item() > 1.3 * near["std_err"].item()


def test_a_bound_at_which_a_fit_is_refused_has_no_error():
    frame = pd.DataFrame(
        {"item1": ["a"] * 30, "item2": ["b"] * 30, "outcome": 1, "respondent": range(30)}
    )
    given = {"items": list("abcdefgh"), "for_epsilon": 0.5}
    table = pr.contribution_tradeoff({1: 30}, **given, bounds=[1, 28], replicates=2)
    assert table["std_err"].isna().all() and table["identified"].isna().all()
    for bound in table.index:
        design = Design(
            tuple("abcdefgh"), 30, "respondent", bound, True, False, "private", None,
            excess="sample",
        )  # fmt: skip
        plan = plan_comparisons(design, plan_fit(Request(design, 0.5)), 0.5, 0.0, by="a test")
        assert probably_unidentified(design, plan) > 0.5
        model = pr.PrivateBTL(
            frame, items=given["items"], respondent="respondent", max_rows=bound, excess="sample"
        )
        budget = pr.Budget(epsilon=1.0, unit="respondent")
        with pytest.raises(ValueError, match="identified"):
            model.fit(0.5, budget=budget)
        assert budget.spent[0] == 0.0


def test_each_respondent_answers_as_often_as_declared():
    design = Design(tuple("abcde"), 4, "respondent", 7, False, False, "private", None)
    encoded = simulated_counts(design, np.zeros(5), np.array([0, 3, 7, 1]), 1, None)
    (part,) = encoded._parts.held
    assert np.bincount(part.person, minlength=4).tolist() == [0, 3, 7, 1]
    assert encoded._pairs[2].sum() == 11


def test_bounds_beyond_the_number_of_pairs_are_that_number():
    given = {"items": list("abcdef"), "for_epsilon": 1.0, "bounds": [5, 10, 20, 50]}
    distinct = pr.contribution_tradeoff({13: 100, 400: 100}, **given, replicates=2)
    assert distinct.index.tolist() == [5, 10, 15] and distinct.index.name == "max_rows"
    assert distinct["rows"].tolist() == [1000, 2000, 2800]
    assert distinct["beyond"].tolist() == [200, 200, 0]
    repeated = pr.contribution_tradeoff({13: 100}, distinct_pairs=False, **given, replicates=2)
    assert repeated.index.tolist() == [5, 10, 20, 50]


def test_respondents_without_answers_count_as_units_alone():
    given = {"items": list("abcdef"), "for_epsilon": 1.0, "bounds": [1, 5], "replicates": 2}
    some, all_of_them = (pr.contribution_tradeoff(a, **given) for a in ({5: 90, 0: 9}, {5: 90}))
    assert (some["rows"] == all_of_them["rows"]).all()
    assert (some["beyond"] == all_of_them["beyond"]).all()


REFUSED = {
    "for epsilon inf": ({1: 10}, {"for_epsilon": np.inf}, "for_epsilon must be finite"),
    "a word for epsilon": ({1: 10}, {"for_epsilon": "1"}, "for_epsilon must be a positive"),
    "bounds that fall": ({1: 10}, {"bounds": [5, 2]}, "bounds must ascend"),
    "bounds twice": ({1: 10}, {"bounds": [2, 2]}, "bounds must ascend"),
    "no bounds": ({1: 10}, {"bounds": []}, "bounds must be a sequence"),
    "a bound of zero": ({1: 10}, {"bounds": [0, 2]}, "bounds must be between 1 and"),
    "a bound beyond all rows": ({1: 10}, {"bounds": [10**20]}, "bounds must be between"),
    "a bound too large to simulate": (
        {1: 10}, {"bounds": [10**9], "distinct_pairs": False}, "at most 0 respondents",
    ),
    "too many respondents": ({1: 10**8}, {}, "activity must have at most"),
    "no items": ({1: 10}, {"items": None}, "items must be"),
    "worths of other items": ({1: 10}, {"worths": [1.0, 2.0]}, "worths must be one number"),
    "worths that are text": ({1: 10}, {"worths": "far"}, "worths must be one number"),
    "processes in words": ({1: 10}, {"n_jobs": "two"}, "n_jobs must be"),
    "one replicate": ({1: 10}, {"replicates": 1}, "replicates must be"),
    **{
        f"activity {activity}": (activity, {}, "activity must be")
        for activity in (
            {}, {1: 0}, {1: -1, 2: 5}, {1: "x"}, {1: math.nan}, {-1: 5}, [1, 2], None, {"x": 3},
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_is_refused_briefly(name):
    activity, changes, words = REFUSED[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        pr.contribution_tradeoff(activity, **DECLARED | changes)
    said = str(caught.value)
    assert words in said and said.endswith(".") and "\n" not in said
    assert caught.value.__cause__ is None
