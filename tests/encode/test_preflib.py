"""PrefLib files: orders of every kind become ranks, and a bad file gets one sentence."""

import numpy as np
import pandas as pd
import pytest

import privrank as pr

HEADER = """# FILE NAME: 00001-00000001.{ending}
# TITLE: Teas, and others: a trial
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: {voters}
# NUMBER UNIQUE ORDERS: 2
# ALTERNATIVE NAME 1: tea: green
# ALTERNATIVE NAME 2: coffee, black
# ALTERNATIVE NAME 3: milk
"""


def written(folder, orders, ending="soc", voters=5, header=HEADER):
    path = folder / f"teas.{ending}"
    path.write_text(header.format(ending=ending, voters=voters) + orders, encoding="utf-8")
    return path


def test_complete_strict_orders(tmp_path):
    frame = pr.read_preflib(str(written(tmp_path, "3: 2,1,3\n2: 3, 2, 1\n")))
    assert list(frame) == ["tea: green", "coffee, black", "milk"]
    assert (frame.dtypes == np.int64).all()
    assert frame.to_numpy().tolist() == [[2, 1, 3]] * 3 + [[3, 2, 1]] * 2
    fitted = pr.PrivateRankAggregation(frame).fit(np.inf)
    assert fitted.nobs == 5 and fitted.order == ("coffee, black", "tea: green", "milk")


def test_one_alternative_is_a_column(tmp_path):
    header = "# NUMBER ALTERNATIVES: 1\n# ALTERNATIVE NAME 1: tea\n"
    frame = pr.read_preflib(str(written(tmp_path, "3: 1\n", header=header)))
    assert frame.to_dict("list") == {"tea": [1, 1, 1]}


def test_a_head_may_begin_right_behind_its_sign(tmp_path):
    close = HEADER.replace("# ", "#")
    frame = pr.read_preflib(str(written(tmp_path, "3: 2,1,3\n2: 3, 2, 1\n", header=close)))
    assert list(frame) == ["tea: green", "coffee, black", "milk"]


@pytest.mark.parametrize(
    ("ending", "orders", "expected"),
    [
        ("toc", "4: {1,3},2\n1: 2,{1, 3}", [[1, 3, 1]] * 4 + [[2, 1, 2]]),
        ("toc", "4: {1,2,3}\n1: 3,{2},1", [[1, 1, 1]] * 4 + [[3, 2, 1]]),
        ("soi", "4: 2\n1: 3,1", [[np.nan, 1, np.nan]] * 4 + [[2, np.nan, 1]]),
        ("toi", "4: {2,3}\n1:", [[np.nan, 1, 1]] * 4 + [[np.nan] * 3]),
    ],
)
def test_ties_and_missing_alternatives(tmp_path, ending, orders, expected):
    frame = pr.read_preflib(written(tmp_path, orders, ending))
    pd.testing.assert_frame_equal(
        frame, pd.DataFrame(np.array(expected, dtype=float), columns=frame.columns)
    )
    fitted = pr.PrivateRankAggregation(frame, ties=True, missing="half").fit(np.inf)
    assert fitted.nobs == 5
    complete = pr.as_rankings(frame, ties="random", missing="random", rng=np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(complete.to_numpy()), np.tile([1, 2, 3], (5, 1)))


def refused(path, message):
    with pytest.raises(ValueError, match=message) as caught:
        pr.read_preflib(path)
    said = str(caught.value)
    assert repr(path.name) in said and "path" not in said
    assert "\n" not in said and said.endswith(".") and said.count(". ") < 3


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        ("3: 2,1,3\n2: 3;2;1\n", "line 10 .*an order of numbers"),
        ("3: 2,1,3\n2: 3,,1\n", "line 10 .*an order of numbers"),
        ("3: 2,1,3\n2: 3,2,\n", "line 10 .*an order of numbers"),
        ("3: 2,1,3\n2: {3,2\n", "line 10 .*an order of numbers"),
        ("3: 2,1,3\n2: {},3\n", "line 10 .*an order of numbers"),
        ("3: 2,1,3\n2: 3,2,4\n", "line 10 .*from 1 to 3, each at most once"),
        ("3: 2,0,1\n2: 3,2,1\n", "line 9 .*from 1 to 3, each at most once"),
        ("3: 2,1,3\n2: 3,2,2\n", "line 10 .*from 1 to 3, each at most once"),
        ("3: 2,1,3\n2: {1,1},2\n", "line 10 .*from 1 to 3, each at most once"),
        ("3,2,1,3\n2,3,2,1\n", "line 9 .*before 2022"),
        ("0: 2,1,3\n5: 3,2,1\n", "line 9 .*number of voters"),
        ("3: 2,1,3\n", "may be truncated"),
        ("", "at least one order"),
        ("3: 2,1\n2: 3,2,1\n", "line 9 .*complete order"),
        ("3: {2,1},3\n2: 3,2,1\n", "line 9 .*strict order"),
        ("3: 2,1,3\n2: 3,2,1" + "0" * 5000, "line 10 .*from 1 to 3"),
        ("1" + "0" * 5000 + ": 2,1,3", "line 9 .*number of voters"),
        ("3: 2,1,3\n2: 3,2," + " " * 50_000 + "x", "line 10 .*an order of numbers"),
    ],
)
def test_a_file_that_breaks_a_rule_gets_one_sentence(tmp_path, orders, message):
    refused(written(tmp_path, orders), message)


def test_headers_and_endings_are_checked(tmp_path):
    refused(tmp_path / "graph.wmd", r"with the ending \.soc")
    for nothing in (None, 5, ["a.soc"]):
        with pytest.raises(TypeError, match=r"path must be a str or a pathlib\.Path"):
            pr.read_preflib(nothing)
    with pytest.raises(FileNotFoundError):
        pr.read_preflib(tmp_path / "nothing.soc")
    one_name = HEADER.replace("3: milk", "4: milk")
    refused(written(tmp_path, "5: 1,2,3", header=one_name), "for i from 1 to m")
    refused(written(tmp_path, "3\n1,tea\n2,coffee\n3,milk\n", header=""), "for i from 1 to m")
    twice = HEADER.replace("coffee, black", "milk")
    refused(written(tmp_path, "5: 1,2,3", header=twice), "distinct name for every alternative")
    many = HEADER.replace("NUMBER ALTERNATIVES: 3", "NUMBER ALTERNATIVES: 300000000")
    refused(written(tmp_path, "5: 1,2,3", header=many), "for i from 1 to m")
    refused(written(tmp_path, "5: 1,2,3", voters="2,000"), "as many orders as the number of voters")
    refused(written(tmp_path, "900000000: 1,2,3", voters=900000000), "at most 100,000,000 orders")
    slow = HEADER + "# A" + " " * 50_000 + "x\n"
    assert len(pr.read_preflib(written(tmp_path, "5: 1,2,3", header=slow))) == 5
    refused(tmp_path / "odd\0.soc", "UTF-8")
    (tmp_path / "latin.SOC").write_bytes("# TITLE: Thé\n".encode("latin-1"))
    refused(tmp_path / "latin.SOC", "UTF-8")


CATEGORIES = HEADER.replace("ORDERS: 2", "PREFERENCES: 2") + "# NUMBER CATEGORIES: 3\n"


def test_categories_are_ranks_with_ties(tmp_path):
    header = CATEGORIES + "# CATEGORY NAME 1: yes\n# CATEGORY NAME 2: so so\n"
    orders = "2: {1, 3}, {}, 2\n1: {}, {1,2,3}, {}\n1: 2,3,1\n1: { }, 3, {}"
    frame = pr.read_preflib(written(tmp_path, orders, "cat", header=header))
    expected = [[1, 3, 1], [1, 3, 1], [1, 1, 1], [3, 1, 2], [np.nan, np.nan, 1]]
    pd.testing.assert_frame_equal(
        frame, pd.DataFrame(np.array(expected, dtype=float), columns=frame.columns)
    )
    assert list(frame) == ["tea: green", "coffee, black", "milk"]
    fitted = pr.PrivateRankAggregation(frame, ties=True, missing="half").fit(np.inf)
    assert fitted.nobs == 5 and fitted.order[0] == "milk"


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        ("5: {1,3}, 2", "line 10 .*3 categories"),
        ("5: {1,3}, {}, 2, {}", "line 10 .*3 categories"),
        ("5: {1,3}, {}, 4", "line 10 .*from 1 to 3"),
        ("5: {1,3}, {}, 1", "line 10 .*each at most once"),
        ("5: {1,3}, , 2", "line 10 .*braces"),
        ("5: {1,,3}, {}, 2", "line 10 .*braces"),
        ("5:", "line 10 .*3 categories"),
        ("x: {1,3}, {}, 2", "line 10 .*number of voters"),
        ("4: {1,3}, {}, 2", "may be truncated"),
    ],
)
def test_a_line_without_its_categories_is_refused(tmp_path, orders, message):
    refused(written(tmp_path, orders, "cat", header=CATEGORIES), message)


def test_the_number_of_categories_is_needed(tmp_path):
    refused(written(tmp_path, "5: {1,3}, {}, 2", "cat"), "'# NUMBER CATEGORIES: k'")
    refused(written(tmp_path, "5: {}, {1,3}, 2", "toc"), "line 9 .*an order of numbers")
