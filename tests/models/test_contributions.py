"""What bounds cost: a table from a declared activity."""

import math

import numpy as np
import pytest

import privrank as pr

ITEMS = list("abc")
DECLARED = {"items": ITEMS, "for_epsilon": 1.0}


def test_parts_of_the_error_add_up_and_move_with_the_bound():
    found = pr.contribution_tradeoff(
        {1: 2000, 100: 2000}, items=list("abcdefghij"), for_epsilon=1.0,
        distinct_pairs=False, bounds=[1, 3, 10, 100],
    )  # fmt: skip
    assert np.allclose(found["sampling"] ** 2 + found["privacy"] ** 2, found["std_err"] ** 2)
    assert found["sampling"].is_monotonic_decreasing and found["privacy"].is_monotonic_increasing
    assert found["rows"].tolist() == [4000, 8000, 22000, 202000]
    assert found["beyond"].tolist() == [2000, 2000, 2000, 0]


def test_bounds_beyond_the_number_of_pairs_are_that_number():
    given = {"items": list("abcdef"), "for_epsilon": 1.0, "bounds": [5, 10, 20, 50]}
    distinct = pr.contribution_tradeoff({13: 100, 400: 100}, **given)
    assert distinct.index.tolist() == [5, 10, 15] and distinct.index.name == "max_rows"
    assert distinct["rows"].tolist() == [1000, 2000, 2800]
    assert distinct["beyond"].tolist() == [200, 200, 0]
    repeated = pr.contribution_tradeoff({13: 100}, distinct_pairs=False, **given)
    assert repeated.index.tolist() == [5, 10, 20, 50]


def test_respondents_without_answers_count_as_units_alone():
    given = {"items": list("abcdef"), "for_epsilon": 1.0, "bounds": [1, 5]}
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
    "a bound of no fit": ({1: 10}, {"bounds": [10**9], "distinct_pairs": False}, "too large"),
    "no items": ({1: 10}, {"items": None}, "items must be"),
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
