"""Every engine and type of text releases the same of the same rows, or refuses them alike."""

import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privrank as pr

ITEMS = ["a", "b", "c"]
TEXTS = ("who", "item1", "item2", "group", "choice")


def texts_as(frame, kind):
    return frame.cast({name: kind for name in frame.columns if name in TEXTS})


def numbered(frame):
    columns = [arrow(frame)[name] for name in frame]
    return pa.table({
        name: column.dictionary_encode() if name in TEXTS else column
        for name, column in zip(frame, columns, strict=True)
    })  # fmt: skip


def arrow(frame):
    kinds = {name: pa.string() if name in TEXTS else pa.float64() for name in frame}
    return pa.table({
        name: pa.array([None if pd.isna(value) else value for value in frame[name]], kinds[name])
        for name in frame
    })  # fmt: skip


def every_value(frame):
    met = {value for name in frame if name in TEXTS for value in frame[name].dropna()}
    return pl.Enum(["first", *sorted(met), "last"])


DRESSES = {
    "category": lambda frame: frame.astype({n: "category" for n in frame if n in TEXTS}),
    "text": lambda frame: frame.astype({name: "string" for name in frame if name in TEXTS}),
    "reordered": lambda frame: frame.iloc[::-1].set_axis(range(5, 5 + len(frame))),
    "polars": lambda frame: pl.from_arrow(arrow(frame)),
    "lazy": lambda frame: pl.from_arrow(arrow(frame)).lazy(),
    "Enum": lambda frame: texts_as(pl.from_arrow(arrow(frame)), every_value(frame)),
    "lazy Enum": lambda frame: texts_as(pl.from_arrow(arrow(frame)), every_value(frame)).lazy(),
    "Categorical": lambda frame: texts_as(pl.from_arrow(arrow(frame)), pl.Categorical),
    "arrow": arrow,
    "dictionary": numbered,
    "duckdb": lambda frame: duckdb.from_arrow(arrow(frame)),
    "duckdb ENUM": lambda frame: duckdb.from_arrow(numbered(frame)),
}


def outcome(make, frame):
    """The release of a seeded fit, or the refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return make(frame).fit(1.0, rng=np.random.default_rng(1)).release.to_json()
        except (TypeError, ValueError) as refusal:
            return type(refusal), str(refusal)


MODELS = {
    "rows": lambda frame: pr.PrivateBTL(frame, items=ITEMS, respondent=None, ties=True),
    "respondents": lambda frame: pr.PrivateBTL(
        frame, items=ITEMS, respondent="who", max_rows=3, distinct_pairs=False, ties=True
    ),
    "drawn rows": lambda frame: pr.PrivateBTL(
        frame, items=ITEMS, respondent="who", max_rows=1, excess="sample", ties=True
    ),
    "groups": lambda frame: pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ group", frame, items=ITEMS, respondent=None, ties=True,
        levels={"group": ["x", "y"]},
    ),
    "choices": lambda frame: pr.UniformityTest.from_formula(
        "choice ~ 1", frame, categories=ITEMS, respondent=None
    ),
    "choices of groups": lambda frame: pr.ClosenessTest.from_formula(
        "choice ~ group", frame, categories=ITEMS, levels=["x", "y"], respondent=None
    ),
}  # fmt: skip


WRONG = {
    "who": [None], "outcome": [2.0], "group": [None, "z"], "choice": [None, "d"],
    "item1": [None, "d"], "item2": [None, "d"],
}  # fmt: skip


@st.composite
def tables(draw):
    """Rows, and in half of the tables one cell that does not belong there."""
    pair = st.sampled_from([("a", "b"), ("c", "a"), ("b", "c"), ("b", "a")])
    answer = st.sampled_from([1.0, -1.0, 0.0, None])
    row = st.tuples(st.sampled_from("pqrs"), pair, answer, st.sampled_from("xy"),
                    st.sampled_from(ITEMS))  # fmt: skip
    rows = draw(st.lists(row, min_size=2, max_size=12))
    frame = pd.DataFrame(
        [(who, *pair, outcome, group, choice) for who, pair, outcome, group, choice in rows],
        columns=["who", "item1", "item2", "outcome", "group", "choice"],
    )
    frame["outcome"] = pd.to_numeric(frame["outcome"])
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(WRONG)))
        frame = frame.astype({name: object})
        frame.loc[draw(st.integers(0, len(frame) - 1)), name] = draw(st.sampled_from(WRONG[name]))
    return frame.assign(outcome=pd.to_numeric(frame["outcome"]))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@given(frame=tables())
@settings(max_examples=40, deadline=None)
def test_the_same_rows_have_the_same_outcome(model, frame):
    expected = outcome(MODELS[model], frame)
    for name, dress in DRESSES.items():
        assert outcome(MODELS[model], dress(frame)) == expected, name
