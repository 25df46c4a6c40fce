"""Data of another shape than a test of rankings takes: one sentence that names the call to make."""

import pandas as pd
import pytest

import privrank as pr

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


@pytest.mark.parametrize("door", CLASSES)
@pytest.mark.parametrize(
    ("frame", "call"),
    [
        (COMPARISONS, "PrivateBTL, whose summary tests equal worths and whose formula"),
        *((frame, "privrank.as_rankings(frame, form=...)") for frame in (LONG, TEXT, PLACES)),
    ],
)
def test_data_of_another_shape_are_told_the_call_to_make(door, frame, call):
    for items in ({}, {"items": ["A", "B", "C"]}):
        with pytest.raises((TypeError, ValueError)) as refused:
            CLASSES[door](frame, **items)
        assert call in str(refused.value)
        assert str(refused.value).count("\n") == 0


def test_columns_of_other_items_name_the_call_to_make():
    with pytest.raises(ValueError, match=r"privrank\.as_rankings\(frame, form=\.\.\.\)"):
        pr.UniformityTest(SCORES, items=["A", "B"])


@pytest.mark.parametrize("columns", [["item1", "item2"], ["winner", "loser"]])
def test_a_frame_of_nothing_but_pairs_is_told_who_takes_pairs(columns):
    frame = pd.DataFrame([["a", "b"], ["b", "a"]], columns=columns)
    with pytest.raises(TypeError, match="pairs are for PrivateBTL"):
        pr.UniformityTest(frame)


def test_what_is_no_data_is_none():
    with pytest.raises(TypeError, match=r"^rankings must be a data frame \(pandas,"):
        pr.UniformityTest(object())
