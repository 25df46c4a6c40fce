"""What differs, as a reader meets it: words, table, figure, archive, refusals."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection

import privrank as pr
from privrank.results.claims import CLAIMS

matplotlib.use("Agg")

ITEMS = ["a", "b", "c"]


def ranked(n, first, rng):
    """Rankings of three items of which one is always first."""
    ranks = rng.permuted(np.tile([2, 3], (n, 1)), axis=1)
    return np.insert(ranks, first, 1, axis=1)


@pytest.fixture(scope="module")
def rankings():
    rng = np.random.default_rng(1)
    groups = ranked(300, 0, rng), ranked(200, 1, rng)
    test = pr.ClosenessTest(*groups, items=ITEMS)
    return test.fit(1.0, details_epsilon=1.0, permutations=19, rng=np.random.default_rng(2))


@pytest.fixture(scope="module")
def choices():
    table = pd.DataFrame(
        {"north": [150, 100, 50], "south": [50, 100, 150], "west": [50, 30, 20]},
        index=["tea", "coffee", "water"],
    )
    test = pr.ClosenessTest.from_counts(table, list(table.index))
    options = {"method": "permutation", "details_epsilon": 2.0, "permutations": 19}
    return test.fit(1.0, **options, rng=np.random.default_rng(2))


def test_rankings_in_words(rankings):
    frame = rankings.details().set_index("item")
    # item a is first in sample 1, in the middle of the other two in sample 2
    assert frame.loc["a", "difference"] == pytest.approx(-1.5, abs=0.2)
    assert frame["clear"].to_dict() == {"a": True, "b": True, "c": False}
    text = " ".join(rankings.summary().as_text().split())
    assert "Group sample 1 ranks a higher than group sample 2, by 1." in text
    assert "ranks b lower than group sample 2, by 1." in text
    assert "3 statements with simultaneous 95% coverage" in text
    assert rankings.to_frame()["clear"].item() == 2


def test_choices_in_words(choices):
    frame = choices.details()
    assert len(frame) == 3 * 6
    assert set(frame["other"]) == {"the others", "south", "west"}
    pair = frame[(frame["group"] == "north") & (frame["other"] == "south")].set_index("item")
    assert pair["clear"].to_dict() == {"tea": True, "coffee": False, "water": True}
    text = " ".join(choices.summary().as_text().split())
    assert "Group north chooses tea more often than group south, by 3" in text
    assert "more are clear: see details()." in text
    left = frame["clear"].sum() - 4
    assert f"{left} more are clear" in text


def test_a_column_of_groups_is_named():
    rng = np.random.default_rng(1)
    ranks = np.concatenate([ranked(300, 0, rng), ranked(200, 1, rng)])
    frame = pd.DataFrame(ranks, columns=ITEMS).assign(
        french=np.repeat(["good", "poor"], [300, 200])
    )
    test = pr.ClosenessTest.from_formula("a + b + c ~ french", frame, levels=["good", "poor"])
    result = test.fit(1.0, details_epsilon=1.0, permutations=19, rng=np.random.default_rng(2))
    text = " ".join(result.summary().as_text().split())
    assert "Groups by french: good (n = 300), poor (n = 200)." in text
    assert "French good ranks a higher than french poor, by 1." in text
    assert pr.from_json(result.to_json()).release.sample.group_column == "french"


def test_levels(rankings):
    wide, narrow = rankings.details(0.01), rankings.details(0.2)
    width = wide["upper"] - wide["lower"]
    assert (width > narrow["upper"] - narrow["lower"]).all()
    assert (width > rankings.details()["upper"] - rankings.details()["lower"]).all()
    with pytest.raises(ValueError, match="alpha"):
        rankings.details(2.0)


def test_an_archive_keeps_them(rankings, choices):
    for result in (rankings, choices):
        again = pr.from_json(result.to_json())
        pd.testing.assert_frame_equal(again.details(), result.details())
        assert again.summary().as_text() == result.summary().as_text()


def test_figures(rankings, choices):
    for result, dots in ((rankings, 3), (choices, 18)):
        figure = result.plot_details()
        (axes,) = figure.axes
        found = [part for part in axes.collections if isinstance(part, PathCollection)]
        assert sum(len(part.get_offsets()) for part in found) == dots
        legend = [text.get_text() for text in axes.get_legend().get_texts()]
        assert legend[0] == "simultaneous 95% interval"
        assert set(legend[1:]) <= {"interval excludes 0", "interval includes 0"}
        matplotlib.pyplot.close(figure)


def test_nothing_clear_is_said():
    counts = {"x": {"p": 20, "q": 20}, "y": {"p": 20, "q": 20}}
    result = pr.ClosenessTest.from_counts(counts, ["p", "q"]).fit(np.inf, permutations=19)
    assert CLAIMS["no clear difference"] in " ".join(result.summary().as_text().split())
    assert result.to_frame()["clear"].item() == 0


REFUSED = [
    ({"details_epsilon": 0.0}, ValueError, "details_epsilon must be positive"),
    ({"details_epsilon": "all"}, TypeError, "details_epsilon must be a positive number"),
    ({"epsilon": np.inf, "details_epsilon": 1.0}, ValueError, "leave it out"),
]


@pytest.mark.parametrize(("options", "error", "words"), REFUSED)
def test_refusals(options, error, words):
    rng, budget = np.random.default_rng(1), pr.Budget(epsilon=9.0)
    test = pr.ClosenessTest(ranked(10, 0, rng), ranked(10, 1, rng), items=ITEMS)
    with pytest.raises(error, match=words):
        test.fit(**{"epsilon": 1.0, "budget": budget, **options})
    assert budget.left == (9.0, 0.0)


def test_private_labels_release_no_totals():
    frame = pd.DataFrame({"choice": ["x", "y"] * 10, "group": ["p"] * 9 + ["q"] * 11})
    test = pr.ClosenessTest.from_formula(
        "choice ~ group", frame, labels="private", levels=["p", "q"], categories=["x", "y"]
    )
    with pytest.raises(ValueError, match="details_epsilon= is for groups of different"):
        test.fit(1.0, details_epsilon=1.0)
    assert not any("details" in name for name in test.fit(np.inf).release.parts)
