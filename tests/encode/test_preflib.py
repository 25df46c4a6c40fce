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
        ("3: 2,1,3\n", "cut off"),
        ("", "at least one order"),
        ("3: 2,1\n2: 3,2,1\n", "line 9 .*complete order"),
        ("3: {2,1},3\n2: 3,2,1\n", "line 9 .*strict order"),
        ("3: 2,1,3\n2: 3,2,1" + "0" * 5000, "line 10 .*from 1 to 3"),
        ("1" + "0" * 5000 + ": 2,1,3", "line 9 .*number of voters"),
        ("3: 2,1,3\n2: 3,2," + " " * 50_000 + "x", "line 10 .*an order of numbers"),
    ],
)
def test_a_file_that_breaks_a_rule_gets_one_sentence(tmp_path, orders, message):
    with pytest.raises(ValueError, match=message) as caught:
        pr.read_preflib(written(tmp_path, orders))
    assert "\n" not in str(caught.value)


def test_headers_and_endings_are_checked(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.soc"):
        pr.read_preflib(tmp_path / "graph.wmd")
    for nothing in (None, 5, ["a.soc"]):
        with pytest.raises(TypeError, match=r"path must be a str or a pathlib\.Path"):
            pr.read_preflib(nothing)
    with pytest.raises(FileNotFoundError):
        pr.read_preflib(tmp_path / "nothing.soc")
    one_name = HEADER.replace("3: milk", "4: milk")
    with pytest.raises(ValueError, match="for i from 1 to m"):
        pr.read_preflib(written(tmp_path, "5: 1,2,3", header=one_name))
    with pytest.raises(ValueError, match="for i from 1 to m"):
        pr.read_preflib(written(tmp_path, "3\n1,tea\n2,coffee\n3,milk\n", header=""))
    twice = HEADER.replace("coffee, black", "milk")
    with pytest.raises(ValueError, match="each differently"):
        pr.read_preflib(written(tmp_path, "5: 1,2,3", header=twice))
    many = HEADER.replace("NUMBER ALTERNATIVES: 3", "NUMBER ALTERNATIVES: 300000000")
    with pytest.raises(ValueError, match="for i from 1 to m"):
        pr.read_preflib(written(tmp_path, "5: 1,2,3", header=many))
    with pytest.raises(ValueError, match="as many orders as its header says"):
        pr.read_preflib(written(tmp_path, "5: 1,2,3", voters="2,000"))
    with pytest.raises(ValueError, match="at most 100,000,000 orders"):
        pr.read_preflib(written(tmp_path, "900000000: 1,2,3", voters=900000000))
    slow = HEADER + "# A" + " " * 50_000 + "x\n"
    assert len(pr.read_preflib(written(tmp_path, "5: 1,2,3", header=slow))) == 5
    (tmp_path / "latin.SOC").write_bytes("# TITLE: Thé\n".encode("latin-1"))
    with pytest.raises(ValueError, match="UTF-8"):
        pr.read_preflib(tmp_path / "latin.SOC")
