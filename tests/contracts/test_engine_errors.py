"""What an engine says of its own failure stays out of sight: it quotes the cell it failed at."""

import traceback

import dask.dataframe as dd
import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import privrank as pr
from privrank.encode import clusters, frames

SENTINEL = "ZQX7SENTINEL"
ITEMS = ["a", "b"]
LONG = ["item1", "item2", "outcome"]
ROWS = {
    "item1": ["a", "b", "a"],
    "item2": ["b", "a", "b"],
    "outcome": ["1", SENTINEL, "-1"],
    "a": ["1", "2", SENTINEL],
    "b": ["2", "1", "1"],
    "ranking": ["1", SENTINEL, "2"],
    "rank": ["1", SENTINEL, "2"],
    "item": ["a", "b", "a"],
    "count": ["1", SENTINEL, "2"],
    "who": ["x", "y", "z"],
}
NUMBERS = ("outcome", "a", "b", "ranking", "rank", "count")
PROTOCOL = pr.local.SubRanking(ITEMS, epsilon=1.0)


def polars_lazy(columns):
    casts = [pl.col(name).cast(pl.Int64) if name in NUMBERS else pl.col(name) for name in columns]
    return pl.LazyFrame(ROWS).select(casts)


def polars_said(columns):
    """A function of the user's own that fails, in every engine that calls one."""

    def fail(frame):
        raise ValueError(f"no number: {SENTINEL}")

    return polars_lazy(columns).map_batches(fail, schema={name: pl.String for name in columns})


def duckdb_relation(columns):
    table = pd.DataFrame(ROWS)
    casts = [f'cast("{c}" as integer) as "{c}"' if c in NUMBERS else f'"{c}"' for c in columns]
    return duckdb.connect().from_df(table).project(", ".join(casts))


def dask_frame(columns):
    frame = dd.from_pandas(pd.DataFrame(ROWS)[list(columns)], npartitions=2)
    kinds = {name: "int64" for name in columns if name in NUMBERS}
    types = {"who": "string"} | kinds  # as respondents, objects would be refused before
    meta = pd.DataFrame({name: pd.Series(dtype=types.get(name, "object")) for name in columns})
    return frame.map_partitions(lambda part: part.astype(kinds), meta=meta)


pytestmark = pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")

ENGINES = [polars_lazy, polars_said, duckdb_relation, dask_frame]
BTL = {"items": ITEMS, "respondent": None}
ENTRY_POINTS = {
    "worths": (LONG, lambda f: pr.PrivateBTL(f, **BTL)),
    "worths of people": (
        [*LONG, "who"],
        lambda f: pr.PrivateBTL(f, items=ITEMS, respondent="who", max_rows=3),
    ),
    "formula": (
        LONG,
        lambda f: pr.PrivateBTL.from_formula("item1 + item2 + outcome ~ 1", f, **BTL),
    ),
    "top": (LONG, lambda f: pr.PrivateTopK(f, 1, **BTL)),
    "uniform rankings": (ITEMS, lambda f: pr.UniformityTest(f, items=ITEMS)),
    "identity": (ITEMS, lambda f: pr.IdentityTest(f, {("a", "b"): 0.5, ("b", "a"): 0.5})),
    "closeness": (ITEMS, lambda f: pr.ClosenessTest(f, f, items=ITEMS)),
    "closeness by formula": (
        [*ITEMS, "who"],
        lambda f: pr.ClosenessTest.from_formula("a + b ~ who", f, levels=["x", "y", "z"]),
    ),
    "consensus": (ITEMS, lambda f: pr.PrivateRankAggregation(f, items=ITEMS)),
    "distances": (ITEMS, lambda f: pr.kendall_distance(ITEMS, f)),
    "comparisons": (LONG, lambda f: pr.as_comparisons(f, "long", items=ITEMS)),
    "rankings": (
        ["ranking", "item", "rank"],
        lambda f: pr.as_rankings(
            f, "long", ranking="ranking", item="item", rank="rank", items=ITEMS
        ),
    ),
}


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__name__)
@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_no_entry_point_shows_what_an_engine_quotes(entry, engine):
    columns, enter = ENTRY_POINTS[entry]
    with pytest.raises((ValueError, TypeError)) as caught:
        enter(engine(columns))
    said = str(caught.value)
    assert "could not be computed (" in said and said.endswith("pass the result.")
    shown = "".join(traceback.format_exception(caught.value))
    assert SENTINEL not in shown and caught.value.__context__ is None


BIG = 10**400


@pytest.mark.parametrize(
    "call",
    [
        lambda: pr.as_comparisons(
            pd.DataFrame([[0, BIG], [1, 0]], index=ITEMS, columns=ITEMS, dtype=object), "matrix"
        ),
        lambda: pr.as_comparisons(
            pd.DataFrame({"item1": ["a"], "item2": ["b"], "win1": [1], "win2": [BIG]}), "counts"
        ),
        lambda: pr.PrivateBTL(
            pd.DataFrame({"item1": ["a"], "item2": ["b"], "outcome": [1]}),
            **BTL,
            pair_counts={("a", "b"): BIG},
        ),
    ],
    ids=["matrix", "counts", "pair counts"],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_whole_numbers_beyond_floats_are_refused_like_others(call, sign, monkeypatch):
    monkeypatch.setitem(globals(), "BIG", sign * 10**400)
    with pytest.raises(ValueError) as caught:
        call()
    assert "000000" not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.parametrize("step", ["cut", "on workers"])
def test_columns_that_an_engine_cannot_name_end_in_the_same_sentence(step, monkeypatch):
    """As those of Spark with a point in their name do, before a cell of them is read."""

    def fail(*_, **__):
        raise RuntimeError(SENTINEL)

    if step == "on workers":
        monkeypatch.setattr(clusters, "on_workers", fail)
    else:
        monkeypatch.setattr(nw.LazyFrame, "select", fail)
    good = pl.LazyFrame({"item1": ["a"], "item2": ["b"], "outcome": [1.0]})
    with pytest.raises(ValueError, match="could not be computed") as caught:
        pr.PrivateBTL(good, items=ITEMS, respondent=None)
    assert SENTINEL not in "".join(traceback.format_exception(caught.value))


def made_by_text():
    """A function whose module nobody knows, as notebooks and servers make them."""
    place = {}
    exec("def boom(s): raise RuntimeError('SECRET')", {"__builtins__": __builtins__}, place)
    return place["boom"]


def test_an_error_of_a_function_without_a_module_is_not_shown():
    frame = pl.DataFrame({name: ROWS[name] for name in LONG}).lazy()
    column = pl.col("outcome").map_batches(made_by_text(), return_dtype=pl.Float64)
    with pytest.raises(ValueError, match="could not be computed") as caught:
        pr.PrivateBTL(frame.with_columns(column), **BTL)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


def test_an_error_that_numpy_raises_in_a_line_of_the_package_is_not_shown():
    line = "def cast(*_):\n    return np.array(['SECRET']).astype(float)"
    place = {"np": np, "__name__": "privrank.encode.frames"}
    exec(line, place)
    with pytest.raises(ValueError, match="could not be computed") as caught:
        frames.computed(place["cast"])
    assert "SECRET" not in str(caught.value)
