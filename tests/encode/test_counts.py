"""Rows that stand for many comparisons count like as many rows, and are never repeated."""

import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import privrank as pr

pytestmark = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")

ITEMS = ("tea", "coffee", "juice")
ROWS = pd.DataFrame(
    [
        ("ann", "tea", "coffee", 1, "f", 2),
        ("ann", "tea", "juice", 0, "f", 1),
        ("ann", "juice", "coffee", -1, "f", 0),
        ("bob", "coffee", "tea", 1, "m", 3),
        ("bob", "tea", "juice", -1, "m", 0),
        ("bob", "coffee", "juice", 1, "m", 1),
        ("cyd", "juice", "coffee", None, "f", 2),
        ("cyd", "coffee", "juice", 1, "f", 1),
        ("dan", "tea", "coffee", 1, "m", 0),
    ],
    columns=["who", "item1", "item2", "outcome", "sex", "n"],
)
COMMON = {"items": ITEMS, "ties": True, "distinct_pairs": False}
PERSON = COMMON | {"respondent": "who", "max_rows": 5}
ROW = COMMON | {"respondent": None}


def repeated(frame):
    """Each row as often as it counts; who has none left keeps one without an answer."""
    rows = frame.loc[frame.index.repeat(frame["n"])]
    lost = frame[~frame["who"].isin(rows["who"])].drop_duplicates("who").assign(outcome=None)
    return rows, pd.concat([rows, lost]).astype({"outcome": float})


def record(model, epsilon=1.0):
    return model.fit(epsilon, rng=np.random.default_rng(0)).release.to_record()


def engines(frame):
    return {
        "pandas": frame,
        "objects": frame.astype({"n": object}),
        "floats": frame.astype({"n": float}),
        "polars": pl.from_pandas(frame),
        "lazy": pl.from_pandas(frame).with_columns(pl.col("n").cast(pl.Int8)).lazy(),
        "duckdb": duckdb.from_df(frame),
    }


@pytest.mark.parametrize("design", ["public", "private"])
@pytest.mark.parametrize("unit", ["row", "respondent"])
def test_counts_are_as_good_as_rows(unit, design):
    arguments = (ROW if unit == "row" else PERSON) | {"design": design}
    rows = repeated(ROWS)[unit == "respondent"]
    twice = pd.concat([ROWS, ROWS])  # the same rows again, and more of them
    for counted, plain, more in (
        (ROWS, rows, {}),
        (twice, pd.concat([rows, rows]), {"max_rows": 10} if unit == "respondent" else {}),
    ):
        expected = record(pr.PrivateBTL(plain, **arguments | more))
        for name, frame in engines(counted).items():
            model = pr.PrivateBTL(frame, counts="n", **arguments | more)
            assert record(model) == expected, name
    top = {"k": 1, **arguments}
    assert record(pr.PrivateTopK(ROWS, counts="n", **top)) == record(pr.PrivateTopK(rows, **top))


@pytest.mark.parametrize("design", ["public", "private"])
@pytest.mark.parametrize("unit", ["row", "respondent"])
def test_counts_with_covariates(unit, design):
    arguments = (ROW if unit == "row" else PERSON) | {"design": design}
    arguments["levels"] = {"sex": ["f", "m"]}
    rows = repeated(ROWS)[unit == "respondent"]
    formula = "item1 + item2 + outcome ~ sex"
    counted = pr.PrivateBTL.from_formula(formula, ROWS, counts="n", **arguments)
    plain = pr.PrivateBTL.from_formula(formula, rows, **arguments)
    assert repr(counted) == repr(plain)
    assert record(counted) == record(plain)


def test_counted_winners():
    frame = pd.DataFrame({"winner": ["tea", "juice"], "loser": ["juice", "tea"], "n": [5, 2]})
    arguments = {"items": ["tea", "juice"], "respondent": None}
    counted = pr.PrivateBTL.from_formula("winner + loser ~ 1", frame, counts="n", **arguments)
    rows = frame.loc[frame.index.repeat(frame["n"])]
    plain = pr.PrivateBTL.from_formula("winner + loser ~ 1", rows, **arguments)
    assert record(counted) == record(plain)


def test_counts_count_towards_the_bound_of_a_respondent():
    with pytest.raises(ValueError, match="max_rows=2 must bound"):
        pr.PrivateBTL(ROWS, counts="n", **PERSON | {"max_rows": 2})
    with pytest.raises(ValueError, match="distinct_pairs=True promises"):
        pr.PrivateBTL(ROWS, counts="n", **PERSON | {"distinct_pairs": True})


def test_a_sample_is_drawn_among_the_comparisons_that_rows_stand_for():
    arguments = PERSON | {"max_rows": 2, "excess": "sample"}
    rows = repeated(ROWS)[1]
    counted, plain = (
        record(pr.PrivateBTL(ROWS, counts="n", **arguments)),
        record(pr.PrivateBTL(rows, **arguments)),
    )
    assert counted == plain


def test_a_thousand_million_comparisons_are_counted():
    rng = np.random.default_rng(0)
    names = [f"item {k:02d}" for k in range(30)]
    wins = pd.DataFrame(rng.integers(0, 2_300_000, (30, 30)), index=names, columns=names)
    wins = wins.mask(np.eye(30, dtype=bool), 0)
    frame = pr.as_comparisons(wins, "matrix")
    assert frame["count"].sum() > 9e8
    model = pr.PrivateBTL(frame, counts="count", respondent=None, design="public")
    assert f"{frame['count'].sum()} rows" in repr(model)
    result = model.fit(np.inf, penalty=0)
    assert np.isfinite(result.params).all()


def test_large_counts_are_exact():
    # net wins of one, where floats below 2^53 see it and those above do not
    large = 2**51 + 1
    frame = pd.DataFrame(
        {"item1": ["a", "a"], "item2": ["b", "b"], "outcome": [1, -1], "n": [large, large - 1]}
    )
    model = pr.PrivateBTL(frame, items=["a", "b"], counts="n", respondent=None, design="public")
    assert f"{2 * large - 1} rows" in repr(model)
    (net,) = model.fit(np.inf, penalty=0).release.values.values()
    assert sorted(np.ravel(net)) == [-1, 1]


def test_a_column_of_counts_is_not_overlooked():
    frame = pr.as_comparisons(np.array([[0, 7], [5, 0]]), "matrix", items=["a", "b"])
    with pytest.raises(ValueError, match="counts='count'"):
        pr.PrivateBTL(frame, respondent=None)
    formula, levels = "item1 + item2 + outcome ~ count", {"count": [7, 5]}
    pr.PrivateBTL.from_formula(formula, frame, respondent=None, levels=levels)


BAD = {
    "no such column": ({"counts": "many"}, {}, ["'many'", "counts="]),
    "no name": ({"counts": 3}, {}, ["counts", "int"]),
    "the outcome": ({"counts": "outcome"}, {}, ["different columns"]),
    "negative": ({}, {"n": -7731}, ["'n'", "whole numbers of at least 0"]),
    "a fraction": ({}, {"n": 0.5}, ["'n'", "whole numbers"]),
    "missing": ({}, {"n": None}, ["'n'", "Enter 0"]),
    "infinite": ({}, {"n": np.inf}, ["'n'", "whole numbers"]),
    "a word": ({}, {"n": "CANARY"}, ["'n'", "whole numbers"]),
    "complex": ({}, {"n": 1 + 1j}, ["'n'", "whole numbers"]),
    "too many": ({}, {"n": 2**53}, ["'n'", "2^53"]),
    "too many together": ({}, {"n": 2**50}, ["'n'", "2^53"]),
    "none at all": ({}, {"n": 0}, ["at least one"]),
}


@pytest.mark.parametrize(("arguments", "columns", "words"), BAD.values(), ids=BAD)
def test_refusal(arguments, columns, words):
    frame = ROWS.assign(**columns)
    with pytest.raises((ValueError, TypeError)) as caught:
        pr.PrivateBTL(frame, **ROW | {"counts": "n"} | arguments)
    message = str(caught.value)
    assert message.endswith(".") and len(re.findall(r"[.!?] +[A-Z]", message)) < 3
    assert [word for word in words if word not in message] == [], message
    assert "7731" not in message and "CANARY" not in message


def test_more_counted_rows_than_can_be_drawn_are_refused_by_public_numbers():
    for number in (1, 4_000_000_000):
        frame = pd.DataFrame({"item1": ["a"], "item2": ["b"], "outcome": [1], "who": [7]})
        arguments = {"items": ["a", "b"], "respondent": "who", "distinct_pairs": False}
        with pytest.raises(ValueError, match="max_rows=2000000000 must be at most"):
            pr.PrivateBTL(
                frame.assign(n=number), counts="n", max_rows=2 * 10**9, excess="sample", **arguments
            )
