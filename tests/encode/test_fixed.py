"""What no questionnaire has fixed is never public: the order of naming, the pairs of lists."""

from io import StringIO
from itertools import product

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from planting import planted
from searching import check_refusal

import privrank as pr
from privrank.encode import comparisonforms
from privrank.results.claims import CLAIMS

ITEMS = ["tea", "milk", "juice"]
PEOPLE = pd.DataFrame({"respondent": range(4), "g": ["x", "y", "x", "y"]})
DECIDED = pd.DataFrame(
    [(0, "tea", "milk"), (0, "juice", "tea"), (1, "juice", "milk"), (2, "milk", "juice")],
    columns=["respondent", "winner", "loser"],
)
DECIDED = pd.concat([DECIDED, DECIDED.assign(respondent=3).iloc[:2]], ignore_index=True)
WINS = pd.DataFrame([[0, 3, 1], [2, 0, 4], [5, 1, 0]], index=ITEMS, columns=ITEMS)
COUNTS = pd.DataFrame(
    [("milk", "tea", 3, 1), ("juice", "tea", 2, 2), ("milk", "juice", 0, 4)],
    columns=["item1", "item2", "win1", "win2"],
)
RANKS = pd.DataFrame([[1, 2, 3], [3, 1, 2], [2, 3, 1], [1, 3, 2]], columns=ITEMS, dtype=float)
PLACES = pd.DataFrame({"best": ["tea", "milk"] * 2, "next": ["juice", "tea"] * 2})

UNORDERED = {
    "winner-loser": (DECIDED, {"respondent": "respondent"}),
    "matrix": (WINS, {}),
    "counts": (COUNTS, {}),
    "rankings": (RANKS, {}),
    "orders": (PLACES.assign(last=["milk", "juice"] * 2), {}),
}
LISTS = {
    "rankings": (RANKS.where(RANKS < 3), {}),
    "rankings, all ranked": (RANKS, {}),
    "orders": (PLACES, {}),
}
# What users do to a frame between its form and a model.
ON_THE_WAY = {
    "as it is": lambda frame: frame,
    "merged": lambda frame: frame.merge(PEOPLE, on="respondent"),
    "merged into": lambda frame: PEOPLE.merge(frame, how="right", on="respondent"),
    "concatenated": lambda frame: pd.concat([frame, frame.drop(columns=frame.columns[-1])]),
    "shuffled": lambda frame: frame.sample(frac=1.0, random_state=1).reset_index(drop=True),
    "columns chosen": lambda frame: frame[[name for name in frame if not name.endswith("_from")]],
    "rebuilt": lambda frame: pd.DataFrame(frame.to_dict("list")),
    "converted again": lambda frame: pr.as_comparisons(
        frame,
        "long",
        items=ITEMS,
        respondent="respondent",
        outcome="list_outcome" if "list_outcome" in frame else "outcome",
    ),
    "polars": lambda frame: pl.from_pandas(frame).lazy(),
    "duckdb": lambda frame: duckdb.from_df(frame),
}


def each(forms, one):
    """Every form as it is, and one of them on every way."""
    return [(form, "as it is") for form in forms] + [(one, way) for way in list(ON_THE_WAY)[1:]]


def made(form, frame, **options):
    return pr.as_comparisons(frame, form.partition(",")[0], items=ITEMS, **options)


def of_formula(frame, right, **arguments):
    given = {"items": ITEMS, "respondent": None, "design": "public", **arguments}
    return pr.PrivateBTL.from_formula(f"item1 + item2 + outcome ~ {right}", frame, **given)


@pytest.mark.parametrize("answers", list(product([1, -1], repeat=3)))
def test_winners_come_in_the_order_of_the_items(answers):
    pairs = [("tea", "milk"), ("juice", "tea"), ("milk", "juice")]
    turned = [pair[::answer] for pair, answer in zip(pairs, answers, strict=True)]
    frame = made("winner-loser", pd.DataFrame(turned, columns=["winner", "loser"]))
    assert frame["item1"].tolist() == ["tea", "tea", "milk"]
    assert frame["item2"].tolist() == ["milk", "juice", "juice"]
    assert frame["outcome"].tolist() == [answers[0], -answers[1], answers[2]]


@pytest.mark.parametrize(("form", "way"), each(UNORDERED, "winner-loser"))
def test_an_order_effect_needs_a_form_that_knows_the_order(form, way):
    frame, options = UNORDERED[form]
    data = ON_THE_WAY[way](made(form, frame, **options))
    counts = {"counts": "count"} if form in ("matrix", "counts") else {}
    words = ["contest", "'order_from'", "form='long' or 'wide'"]
    check_refusal(lambda: of_formula(data, "1", contest="first", **counts), ValueError, words)
    of_formula(data, "1", **counts)


@pytest.mark.parametrize("right", ["1", "g"])
@pytest.mark.parametrize("column", [{}, {"first": True}])
def test_an_order_effect_of_winners_and_losers_is_refused(right, column):
    data = DECIDED.merge(PEOPLE).assign(**column)
    arguments = {"items": ITEMS, "respondent": None, "design": "public", "contest": "first"}
    if "g" in right:
        arguments["levels"] = {"g": ["x", "y"]}
    check_refusal(
        lambda: pr.PrivateBTL.from_formula(f"winner + loser ~ {right}", data, **arguments),
        ValueError,
        ["no column may have"] if column else ["item1, item2 and outcome", "contest covariates"],
    )


def test_values_that_are_not_public_are_refused_with_what_can_be_done():
    named = pd.DataFrame({"respondent": [0, 1], "item1": ["tea"] * 2, "item2": ["milk"] * 2})
    named = named.assign(outcome=1, age=[20.0, 30.0])
    person = {"items": ITEMS, "respondent": "respondent"}
    words = ["contest= and numeric covariates need design='public'", "leave contest= out and cut"]
    for right, options in (("1", {"contest": "first"}), ("age", {"bounds": {"age": (0, 99)}})):
        formula = f"item1 + item2 + outcome ~ {right}"
        check_refusal(
            lambda: pr.PrivateBTL.from_formula(formula, named, **person, **options),  # noqa: B023
            ValueError,
            words,
        )


def test_forms_that_know_the_order_take_its_effect():
    named = pd.DataFrame(
        [("tea", "milk", 1), ("milk", "tea", 1), ("juice", "tea", -1), ("juice", "milk", 1)] * 3,
        columns=["item1", "item2", "outcome"],
    )
    for frame in (named, pr.as_comparisons(named, "long", items=ITEMS)):
        fit = of_formula(frame, "1", contest="first").fit(1.0, rng=np.random.default_rng(1))
        assert fit.release.design.covariates.contest == ("first",)


@pytest.mark.parametrize("missing", ["bottom", "unknown"])
@pytest.mark.parametrize(("form", "way"), each(LISTS, "orders"))
def test_pairs_that_lists_tell_are_not_public(form, way, missing):
    # the refusal is for what was declared: whether a list leaves an item out is part of an answer
    frame, options = LISTS[form]
    data = ON_THE_WAY[way](made(form, frame, missing=missing, **options))
    words = ["'list_outcome'", "design='private'", "respondent="]
    person = {"respondent": "respondent", "max_rows": 6, "distinct_pairs": False}
    listed = {"outcome": "list_outcome"}
    for given in (
        {**person, "design": "public"},
        {"respondent": None, "design": "public"},
        {"respondent": None, "design": "private"},
    ):
        for model in (pr.PrivateBTL, lambda *a, **k: pr.PrivateTopK(*a, k=1, **k)):
            check_refusal(lambda: model(data, items=ITEMS, **listed, **given), ValueError, words)  # noqa: B023
            # the name is not taken unless it is said
            unsaid = ["no column 'outcome'", "outcome='list_outcome'"]
            check_refusal(lambda: model(data, items=ITEMS, **given), ValueError, unsaid)  # noqa: B023
        formula = "item1 + item2 + list_outcome ~ 1"
        check_refusal(
            lambda: pr.PrivateBTL.from_formula(formula, data, items=ITEMS, **given),  # noqa: B023
            ValueError,
            words,
        )
    pr.PrivateBTL(data, items=ITEMS, **listed, **person)
    pr.PrivateTopK(data, k=1, items=ITEMS, **listed, **person)


def read_again(frame, **options):
    return pd.read_csv(StringIO(frame.to_csv(index=False)), **options)


COLUMNS = ["respondent", "item1", "item2", "list_outcome"]
# Ordinary operations on a frame of lists. In an earlier form, with the mark in a column of its own,
# the first six lost it, and a public design then showed which items were listed.
OPERATIONS = {
    "four columns, merged": lambda frame: frame[COLUMNS].merge(PEOPLE, on="respondent"),
    "columns of a file": lambda frame: read_again(frame, usecols=COLUMNS),
    "polars, selected": lambda frame: pl.from_pandas(frame).select(COLUMNS),
    "DuckDB, selected": lambda frame: duckdb.from_df(frame).project(", ".join(COLUMNS)),
    "rebuilt of columns": lambda frame: pd.DataFrame({name: frame[name] for name in COLUMNS}),
    "rows of tuples": lambda frame: pd.DataFrame(
        frame[COLUMNS].itertuples(index=False), columns=COLUMNS
    ),
    "copied": lambda frame: frame.copy(),
    "filtered": lambda frame: frame[frame["list_outcome"].notna()],
    "queried": lambda frame: frame.query("list_outcome != 0"),
    "sorted": lambda frame: frame.sort_values("item1"),
    "reindexed": lambda frame: frame.set_index("respondent"),
    "a column more": lambda frame: frame.assign(weight=1.0),
    "texts": lambda frame: frame.astype({"item1": str, "item2": str}),
    "sample": lambda frame: frame.sample(frac=1.0, random_state=1),
    "a file": read_again,
    "JSON": lambda frame: pd.read_json(StringIO(frame.to_json(orient="records"))),
    "records": lambda frame: pd.DataFrame(frame.to_dict("records")),
    "arrow": lambda frame: pa.Table.from_pandas(frame[COLUMNS], preserve_index=False),
    "joined": lambda frame: PEOPLE.set_index("respondent").join(frame.set_index("respondent")),
    "without duplicates": lambda frame: frame.drop_duplicates(),
}
# Operations that give the outcome another name, under which it is then taken.
RENAMING = {
    "list_outcome_x": lambda frame: frame.merge(frame, on=["respondent", "item1", "item2"]),
    "LIST_OUTCOME": lambda frame: frame.rename(columns={"list_outcome": "LIST_OUTCOME"}),
    "outcome": lambda frame: frame.assign(outcome=frame["list_outcome"]),
}


@pytest.mark.parametrize("outcome", RENAMING)
def test_the_mark_is_seen_under_names_that_were_made_of_it(outcome):
    data = RENAMING[outcome](made("orders", PLACES, missing="bottom"))
    given = {"items": ITEMS, "respondent": "respondent", "max_rows": 6, "distinct_pairs": False}
    check_refusal(
        lambda: pr.PrivateBTL(data, outcome=outcome, design="public", **given),
        ValueError,
        ["'list_outcome'", "design='private'"],
    )
    again = pr.as_comparisons(data, outcome=outcome, items=ITEMS, respondent="respondent")
    assert "list_outcome" in again


def test_winners_of_lists_are_lists():
    lists = made("orders", PLACES, missing="bottom")
    won = lists[lists["list_outcome"] == 1].rename(columns={"item1": "winner", "item2": "loser"})
    given = {"items": ITEMS, "respondent": "respondent", "max_rows": 6, "design": "public"}
    for call in (
        lambda: pr.PrivateBTL.from_formula("winner + loser ~ 1", won, **given),
        lambda: pr.PrivateBTL(
            pr.as_comparisons(won, "winner-loser", items=ITEMS, respondent="respondent"),
            outcome="list_outcome",
            **given,
        ),
    ):
        check_refusal(call, ValueError, ["'list_outcome'", "design='private'"])


def taken_as_public(frame):
    """Whether a model takes the pairs of lists as public, with or without the outcome's name."""
    given = {"items": ITEMS, "respondent": "respondent", "max_rows": 6, "design": "public"}
    for outcome in ({}, {"outcome": "list_outcome"}):
        try:
            pr.PrivateBTL(frame, **given, **outcome, distinct_pairs=False)
        except ValueError:
            continue
        return True
    return False


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_operation_loses_the_mark_of_lists(name):
    frame = made("orders", PLACES, missing="bottom")
    data = OPERATIONS[name](frame)
    assert not taken_as_public(data)
    private = {"respondent": "respondent", "max_rows": 6, "distinct_pairs": False}
    pr.PrivateBTL(data, items=ITEMS, outcome="list_outcome", **private)


def test_a_mark_in_a_column_of_its_own_would_be_lost(monkeypatch):
    old = 'return read.rename(columns={"outcome": frames.LIST_OUTCOME})'
    new = 'return read.assign(pairs_from="lists")'
    planted(monkeypatch, comparisonforms, "as_comparisons", old, new)
    frame = comparisonforms.as_comparisons(PLACES, "orders", items=ITEMS, missing="bottom")
    assert taken_as_public(frame[["respondent", "item1", "item2", "outcome"]])


def test_the_summary_says_that_the_order_of_naming_is_public():
    named = pd.DataFrame(
        [("tea", "milk", 1), ("milk", "tea", 1), ("juice", "tea", -1), ("juice", "milk", 1)] * 30,
        columns=["item1", "item2", "outcome"],
    )
    rng = np.random.default_rng(1)
    fit = of_formula(named, "1", contest="first").fit(1.0, rng=rng)
    assert CLAIMS["contests public"] in " ".join(str(fit.summary()).split())
    assert "contest" not in str(of_formula(named, "1").fit(1.0, rng=rng).summary())
