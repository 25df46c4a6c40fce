"""Data of another shape than a test of rankings takes: one sentence that names the call to make."""

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.encode import coding
from privrank.encode.comparisons import CountedRows
from privrank.encode.encoded import (
    Encoded,
    EncodedGroups,
    EncodedSample,
    RespondentBlock,
    SampleBlock,
)
from privrank.encode.samples import ranks_by_name

CLASSES = {
    "uniformity": pr.UniformityTest,
    "identity": lambda frame, **items: pr.IdentityTest(frame, "uniform", **items),
    "closeness": lambda frame, **items: pr.ClosenessTest(frame, frame, **items),
    "aggregation": pr.PrivateRankAggregation,
}
COMPARISONS = pd.DataFrame({"item1": ["A", "B"], "item2": ["B", "C"], "outcome": [1, -1]})
LONG = pd.DataFrame({"ballot": [1, 1], "item": ["A", "B"], "rank": [2, 1]})
TEXT = pd.DataFrame({"vote": ["A > B > C", "B > A > C"]})
PLACES = pd.DataFrame({"best": ["A", "B"], "second": ["B", "A"]})
SCORES = pd.DataFrame({"x": [0.5, 0.25], "y": [1.0, 2.0]})


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(
    ("frame", "call"),
    [
        (COMPARISONS, "PrivateBTL for comparisons: its summary tests equal worths"),
        *((frame, "privrank.as_rankings(frame, form=...)") for frame in (LONG, TEXT, PLACES)),
    ],
)
def test_data_of_another_shape_are_told_the_call_to_make(name, frame, call):
    for items in ({}, {"items": ["A", "B", "C"]}):
        with pytest.raises((TypeError, ValueError)) as refused:
            CLASSES[name](frame, **items)
        assert call in str(refused.value)
        assert str(refused.value).count("\n") == 0


def test_columns_of_other_items_name_the_call_to_make():
    with pytest.raises(ValueError, match=r"privrank\.as_rankings\(frame, form=\.\.\.\)"):
        pr.UniformityTest(SCORES, items=["A", "B"])


@pytest.mark.parametrize("columns", [["item1", "item2"], ["winner", "loser"]])
def test_a_frame_of_nothing_but_pairs_is_told_who_takes_pairs(columns):
    frame = pd.DataFrame([["a", "b"], ["b", "a"]], columns=columns)
    with pytest.raises(TypeError, match="Use PrivateBTL for comparisons"):
        pr.UniformityTest(frame)


def test_what_is_no_data_is_none():
    with pytest.raises(TypeError, match=r"^rankings must be a data frame \(pandas,"):
        pr.UniformityTest(object())


@pytest.mark.parametrize("person", [{"respondent": "who"}, {"max_rows": 2}])
def test_respondents_of_choices_need_a_frame(person):
    choices = pd.Series(["a", "b", "a"])
    with pytest.raises(ValueError, match=r"^respondent= and max_rows= need a frame"):
        pr.UniformityTest(choices, items=["a", "b"], **person)


def test_all_arguments_of_a_formula_at_once_are_no_others():
    frame = pd.DataFrame({"item1": ["a"], "item2": ["b"], "outcome": [1], "count": [5]})
    model = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ 1", frame, respondent=None, counts="count", items=["a", "b"],
        max_rows=1, distinct_pairs=True, ties=False, design="private", pair_counts=None,
        excess="refuse", levels=None, bounds=None, item_formula=None, item_data=None,
    )  # fmt: skip
    assert model.fit(np.inf).nobs == 5


@pytest.mark.parametrize("right", ["group + other", "0 + group", "1", "group + 1 + other"])
def test_groups_are_one_column(right):
    frame = pd.DataFrame({"choice": list("abab"), "group": list("xyxy"), "other": list("uvuv")})
    with pytest.raises(ValueError, match="formula must"):
        pr.ClosenessTest.from_formula(
            f"choice ~ {right}", frame, categories=["a", "b"], levels=["x", "y"], respondent=None
        )


@pytest.mark.parametrize("units", [0, 1])
def test_counts_of_a_small_group_name_it(units):
    counts = {"many": {"a": 5, "b": 4}, "few": {"a": units, "b": 0}}
    with pytest.raises(ValueError, match=rf"^every group .* and group 'few' has {units}\."):
        pr.ClosenessTest.from_counts(counts, categories=["a", "b"])


def test_true_and_false_are_the_categories_of_groups_that_choose():
    frame = pd.DataFrame({"choice": [True, False] * 4, "group": list("xxyy") * 2})
    test = pr.ClosenessTest.from_formula(
        "choice ~ group", frame, levels=["x", "y"], respondent=None
    )
    assert test.fit(np.inf).release.sample.items == ("False", "True")


@pytest.mark.parametrize(
    "kind", [CountedRows, RespondentBlock, SampleBlock, Encoded, EncodedSample, EncodedGroups]
)
def test_what_holds_answers_neither_shows_nor_compares_them(kind):
    assert kind.__eq__ is object.__eq__
    shown = getattr(kind.__repr__, "__code__", None)
    assert shown is None or "encode" in shown.co_filename


def test_rows_of_a_matrix_are_named_by_its_column_of_text():
    wins = pd.DataFrame({"item": ["tea", "milk"], "milk": [3, 0], "tea": [0, 5]})
    made = pr.as_comparisons(wins, "matrix")
    named = pr.as_comparisons(wins.set_index("item"), "matrix")
    pd.testing.assert_frame_equal(made, named)
    assert made["count"].sum() == 8 and set(made["item1"]) | set(made["item2"]) == {"tea", "milk"}


def test_ranks_for_a_simulation_are_found_by_name():
    frame = pd.DataFrame({"b": [1.0, 3.0], "other": ["x", "y"], "a": [3, 1], "c": [5, 5]})
    ranks = ranks_by_name(frame, ["a", "b", "c"])
    assert ranks.dtype == np.int64 and ranks.tolist() == [[3, 1, 5], [1, 3, 5]]
    halves = ranks_by_name(frame.assign(a=[1.5, 1.0]), ["a", "b", "c"])
    assert halves.dtype == np.float64 and halves[0].tolist() == [1.5, 1.0, 5.0]
    with pytest.raises(TypeError, match="ranks must hold numbers in the column of every item"):
        ranks_by_name(frame, ["a", "b", "other"])


def test_a_name_of_half_a_character_has_a_number():
    names = np.array(["\ud800", "a"], dtype=object)
    assert len(set(coding.numbers_of_names(names).tolist())) == 2
