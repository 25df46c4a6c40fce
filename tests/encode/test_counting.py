"""Groups of rows: exact for any number of columns and of distinct values in them."""

from collections import Counter

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privrank as pr
from privrank.encode import coding, frames

ITEMS = ["a", "b", "c", "d"]


def groups(frame):
    """How often each combination of values occurs, missing as None, as `tally` decodes it."""
    view = frames.open_frame(frame, "frame")
    names = frames.column_names(view)
    keys, size = coding.tally(next(frames.evaluate(view, names, whole=True)), names, None)
    columns = [
        np.append(keys[name].values.astype(object), None)[keys[name].codes] for name in names
    ]
    found = dict(zip(zip(*columns, strict=True), size.tolist(), strict=True))
    assert len(found) == len(size), "a combination is there twice"
    return found


def counted(frame):
    """The same, row by row."""
    rows = frame.astype(object).where(frame.notna(), None)
    return dict(Counter(rows.itertuples(index=False, name=None)))


def continuous(rows, columns, seed=0):
    """Continuous columns with some rows twice and some missing, and a column of names."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows, columns))
    table[rng.random(table.shape) < 0.01] = np.nan
    frame = pd.DataFrame(table, columns=[f"x{k}" for k in range(columns)])
    frame.insert(columns // 2, "item", rng.choice(ITEMS, rows))
    return pd.concat([frame, frame.sample(rows // 4, random_state=seed)], ignore_index=True)


@pytest.mark.parametrize("columns", [6, 7, 8, 20])
@pytest.mark.parametrize("rows", [1000, 5000])
def test_many_continuous_columns_are_grouped_exactly(rows, columns):
    frame = continuous(rows, columns)
    assert (rows + 1) ** columns > 2**59
    assert groups(frame) == counted(frame)
    sizes = frame.groupby(list(frame.columns), dropna=False, sort=False).size()
    assert sorted(groups(frame).values()) == sorted(sizes)


def test_a_column_whose_place_is_beyond_64_bits_counts():
    # eight columns of 1,023 values: a step of the first would be 2^70, which is 0 in 64 bits
    frame = pd.DataFrame({f"x{k}": np.arange(1023) for k in range(8)})
    other = frame.iloc[[5]].assign(x0=6)
    assert len(groups(pd.concat([frame, other], ignore_index=True))) == 1024


def test_a_lazy_frame_is_grouped_exactly():
    frame = continuous(1000, 8)
    assert groups(pl.from_pandas(frame).lazy()) == counted(frame)


CODED = {
    "Enum": lambda texts: pl.DataFrame({"x": texts}, schema={"x": pl.Enum(["c", "a", "b", "d"])}),
    "lazy Enum": lambda texts: CODED["Enum"](texts).lazy(),
    "Categorical": lambda texts: pl.DataFrame({"x": texts}, schema={"x": pl.Categorical}),
    "dictionary": lambda texts: pa.table({"x": pa.array(texts, pa.string()).dictionary_encode()}),
    "pieces": lambda texts: pa.table({"x": pa.chunked_array(
        [pa.array(part, pa.string()).dictionary_encode() for part in (texts[:2], texts[2:])])}),
    "null is a value": lambda texts: pa.table({"x": pa.DictionaryArray.from_arrays(
        [{"a": 0, "b": 1, None: 2}[text] for text in texts], ["a", "b", None])}),
    "category": lambda texts: pd.DataFrame({"x": texts}).astype("category"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CODED)
def test_what_is_missing_among_numbered_texts_is_none_of_them(kind):
    assert groups(CODED[kind](["a", None, "b", None, "a"])) == {
        ("a",): 2, ("b",): 1, (None,): 2
    }  # fmt: skip
    assert groups(CODED[kind]([None, "b"])) == {("b",): 1, (None,): 1}


@pytest.mark.parametrize("kind", CODED)
def test_a_missing_item_or_choice_is_refused_in_numbered_texts(kind):
    frame = CODED[kind](["a", None, "b", "a"])
    arguments = {"items": ["a", "b"], "respondent": None}
    with pytest.raises(ValueError, match="contains a missing value"):
        pr.UniformityTest.from_formula("x ~ 1", frame, categories=["a", "b"], respondent=None)
    other = pd.DataFrame({"item2": ["b", "b", "a", "b"], "outcome": 1.0})
    pairs = nw.from_native(frame).lazy().collect("pyarrow").rename({"x": "item1"})
    pairs = pairs.with_columns(
        *(nw.new_series(name, other[name].tolist(), backend="pyarrow") for name in other)
    )
    with pytest.raises(ValueError, match="contains a missing value"):
        pr.PrivateBTL(pairs.to_native(), **arguments)


values = st.none() | st.integers(-2, 2).map(float)


@given(
    st.integers(1, 6).flatmap(lambda k: st.lists(st.tuples(*[values] * k), min_size=1)),
    st.integers(4, 40),
)
@settings(deadline=None)
def test_groups_are_exact_wherever_the_codes_are_numbered_anew(rows, largest):
    frame = pd.DataFrame(rows, columns=[f"x{k}" for k in range(len(rows[0]))], dtype=object)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coding, "LARGEST_CODE", largest)
        assert groups(frame) == counted(frame)


@pytest.mark.parametrize("columns", [5, 6])
def test_a_fit_with_many_continuous_covariates_counts_each_answer(columns):
    rng = np.random.default_rng(3)
    pairs = np.array([rng.permutation(ITEMS)[:2] for _ in range(1500)])
    frame = pd.DataFrame(pairs, columns=["item1", "item2"]).assign(
        outcome=rng.choice([-1, 1], 1500)
    )
    names = [f"x{k}" for k in range(columns)]
    frame[names] = rng.uniform(-1, 1, size=(len(frame), columns))
    model = pr.PrivateBTL.from_formula(
        f"item1 + item2 + outcome ~ {' + '.join(names)}",
        frame,
        items=ITEMS,
        respondent=None,
        ties=False,
        design="public",
        bounds={name: (-1.0, 1.0) for name in names},
    )
    first, second, count, net = model._encoded._pairs
    assert count.sum() == 1500
    net_wins = np.bincount(first % 4, net, 4) - np.bincount(second % 4, net, 4)
    named_first = [frame.outcome[frame.item1 == item].sum() for item in ITEMS]
    named_second = [frame.outcome[frame.item2 == item].sum() for item in ITEMS]
    np.testing.assert_array_equal(net_wins, np.subtract(named_first, named_second))


def test_counts_of_equal_rows_are_below_2_to_53_together():
    # an engine has put both rows together, and each count is still exact as a float
    frame = pl.DataFrame({"item1": ["a", "a"], "item2": ["b", "b"], "outcome": 1, "n": 2.0**52})
    for dressed in (frame, frame.lazy(), frame.to_pandas(), duckdb.from_arrow(frame.to_arrow())):
        with pytest.raises(ValueError, match=r"below 2\^53 in total"):
            pr.PrivateBTL(dressed, items=["a", "b"], respondent=None, counts="n")
