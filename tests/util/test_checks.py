"""Arguments of any kind: what is refused quotes words and numbers, and nothing that may be data."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.util.checks import quoted

matplotlib.use("Agg")
ITEMS = ["a", "b", "c"]
CELLS = pd.Series(["secret-1", "secret-2"], name="answers")
FRAME = pd.DataFrame(
    {"respondent": range(40), "item1": "a", "item2": ["b", "c"] * 20, "outcome": [1, -1] * 20}
)
RANKS = pd.DataFrame([[1, 2, 3], [3, 2, 1]] * 20, columns=ITEMS)


def comparisons(model=pr.PrivateBTL, **more):
    return model(FRAME, **{"items": ITEMS, "respondent": "respondent", **more})


@pytest.fixture(scope="module")
def worths():
    return comparisons().fit(np.inf)


CALLS = {
    "design": lambda value, worths: comparisons(design=value),
    "excess": lambda value, worths: comparisons(excess=value),
    "link": lambda value, worths: comparisons(link=value),
    "respondent": lambda value, worths: comparisons(respondent=value),
    "noise": lambda value, worths: comparisons(pr.PrivateTopK, k=1).fit(1.0, noise=value),
    "penalty": lambda value, worths: comparisons().fit(1.0, penalty=value),
    "method": lambda value, worths: pr.UniformityTest(RANKS).fit(1.0, method=value),
    "tolerance": lambda value, worths: pr.UniformityTest(RANKS).fit(1.0, tolerance=value),
    "score_share": lambda value, worths: pr.PrivateRankAggregation(RANKS).fit(
        1.0, score_share=value
    ),
    "respondent of groups": lambda value, worths: pr.ClosenessTest(RANKS, RANKS, respondent=value),
    "labels": lambda value, worths: pr.ClosenessTest(RANKS, RANKS, labels=value),
    "form": lambda value, worths: pr.as_comparisons(FRAME, value, items=ITEMS),
    "counts": lambda value, worths: pr.as_comparisons(
        FRAME, "wide", items=ITEMS, sep="-", codes={"first": 1}, counts=value
    ),
    "unit": lambda value, worths: pr.Budget(epsilon=1.0, unit=value),
    "survey": lambda value, worths: pr.pool([worths, worths], survey=value),
    "title": lambda value, worths: pr.summary_col([worths], title=value),
    "alpha": lambda value, worths: worths.conf_int(value),
    "simultaneous": lambda value, worths: worths.conf_int(simultaneous=value),
    "simultaneous pairs": lambda value, worths: worths.pairwise(simultaneous=value),
    "ax": lambda value, worths: worths.plot(value),
    "ties": lambda value, worths: pr.datasets.load_university().rankings(ties=value),
    "power": lambda value, worths: pr.power.BTLPower(items=3).solve_power(
        nobs=9, epsilon=1.0, power=value
    ),
    "contrast": lambda value, worths: pr.power.BTLPower(items=3).power(
        nobs=9, epsilon=1.0, contrast=value
    ),
    "n_jobs": lambda value, worths: pr.power.UniformityPower(3, n_jobs=value),
    "shares": lambda value, worths: pr.power.ClosenessPower(3, kind="choices", shares=value),
}


@pytest.mark.parametrize("value", [CELLS, CELLS.to_frame(), CELLS.to_list()], ids=type)
@pytest.mark.parametrize("name", CALLS)
def test_data_in_the_place_of_an_argument_are_not_quoted(name, value, worths):
    with pytest.raises((TypeError, ValueError)) as caught:
        CALLS[name](value, worths)
    text = str(caught.value)
    assert "secret" not in text and "\n" not in text and text.endswith(".")
    assert text.startswith(name.split()[0])


def test_words_and_numbers_are_quoted():
    assert [quoted(each) for each in ("a", 2, None, True)] == ["'a'", "2", "None", "True"]
    assert quoted(np.float64(0.5)) == repr(np.float64(0.5)) and quoted((1, 2)) == "tuple"


@pytest.mark.parametrize("items", [np.array(6), pd.DataFrame(), 6.0])
def test_items_are_a_list(items):
    for call in (pr.power.UniformityPower, lambda items: comparisons(items=items)):
        with pytest.raises(TypeError, match="items must be a sequence of names"):
            call(items)


def test_what_is_no_list_of_numbers_or_texts_is_refused(worths):
    design = pr.power.BTLPower(items=3)
    with pytest.raises(ValueError, match="nobs must be a number, or a list of at least one"):
        design.plot_power(nobs=[], epsilon=1.0, contrast=0.4)
    with pytest.raises(TypeError, match="null must be"):
        pr.power.IdentityPower(np.array(0.5))
    with pytest.raises(ValueError, match="items must be between 2 and 1000000"):
        pr.power.UniformityPower(10**9)
    for name in ("names", "rows"):
        for wrong in ("a", 5):
            with pytest.raises(TypeError, match=f"{name} must be a list of texts"):
                pr.summary_col([worths], **{name: wrong})
