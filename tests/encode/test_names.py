"""Which names of respondents are equal is decided by the package, whatever engine holds them.

Each kind of value gives the same respondents by every engine that can hold it, or one refusal. A
person whose name an engine splits in two would have the rows of two people.
"""

import datetime
import decimal
import uuid
import warnings

import dask
import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from planting import planted

import privrank as pr
from privrank.encode import clusters, frames

ITEMS = ["a", "b"]
DAY = datetime.date(2020, 1, 1)
NOON = datetime.datetime(2020, 1, 1, 12)
REFUSED = "refused"

# Kinds of names: three entries of a column, and how many respondents these are.
SAME_TYPE = {
    "texts": (["x", "y", "x"], 2),
    "texts in two cases": (["x", "X", "x"], 2),
    "texts with spaces": (["x", "x ", "x"], 2),
    "texts of digits": (["1", "1.0", "1"], 2),
    "texts in two normal forms": (["\u00e9", "e\u0301", "\u00e9"], 2),
    "empty text": (["", "x", ""], 2),
    "text with a null character": (["x\0y", "x", "x\0y"], 2),
    "whole numbers": ([1, 2, 1], 2),
    "negative numbers": ([-1, 1, -1], 2),
    "large whole numbers": ([2**60, 2**60 + 1, 2**60], 2),
    "floats": ([1.5, 1.0, 1.5], 2),
    "signed zeros": ([0.0, -0.0, 0.0], 1),
    "infinite floats": ([np.inf, -np.inf, np.inf], 2),
    "truth values": ([True, False, True], 2),
    "dates": (pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01"]), 2),
    "times": (pd.to_datetime([NOON, NOON + datetime.timedelta(seconds=1), NOON]), 2),
    "times of a zone": (pd.to_datetime([NOON, DAY, NOON]).tz_localize("UTC"), 2),
}
# Kinds that pandas holds as objects: how many respondents these are there, and whether Dask, which
# makes texts of them, has the same ones or refuses them.
OBJECTS = {
    "texts as objects": (["x", "y", "x"], 2, True),
    "whole numbers as objects": ([1, 2, 1], 2, True),
    "truth values as objects": ([True, False, True], 2, True),
    "whole numbers and floats": ([1, 1.0, 2], 2, False),
    "whole numbers and truth values": ([1, True, 2], 2, False),
    "whole numbers and texts": ([1, "1", 2], 3, False),
    "texts and bytes": (["x", b"x", "x"], 2, False),
    "timestamps of two libraries": (
        [pd.Timestamp(DAY), np.datetime64(DAY, "ns"), pd.Timestamp(NOON)], 2, False,
    ),
    "dates and times": ([DAY, NOON, DAY], 2, False),
    "decimals": ([decimal.Decimal("1"), decimal.Decimal("1.0"), decimal.Decimal(2)], 2, False),
    "universal identifiers": ([uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=1)], 2, False),
    "tuples": ([(1,), (1.0,), (2,)], 2, False),
    "intervals of time": ([datetime.timedelta(1), datetime.timedelta(2)] * 2, 2, False),
    "texts and a missing name": (["x", None, "x"], "missing", True),
}  # fmt: skip
# Types of single engines, none of which says which names are equal.
OWN_TYPES = {
    "polars Int128": lambda: pl.DataFrame({"who": [1, 2, 1]}, schema={"who": pl.Int128}),
    "polars Decimal": lambda: pl.DataFrame({"who": [1, 2, 1]}).cast(pl.Decimal(10, 2)),
    "polars Duration": lambda: pl.DataFrame({"who": [datetime.timedelta(1)] * 3}),
    "polars Binary": lambda: pl.DataFrame({"who": [b"x", b"y", b"x"]}),
    "polars List": lambda: pl.DataFrame({"who": [[1], [2], [1]]}),
    "DuckDB HUGEINT": lambda: duckdb.sql("select range::hugeint as who from range(3)"),
    "DuckDB INTERVAL": lambda: duckdb.sql(
        "select to_days(range::integer) as who from range(600000)"
    ),
    "DuckDB UUID": lambda: duckdb.sql("select uuid() as who from range(3)"),
    "Arrow decimal": lambda: pa.table(
        {"who": pa.array([decimal.Decimal(1)] * 3, pa.decimal128(5, 2))}
    ),
}


def rows(names, kind=None):
    """A comparison for each name."""
    frame = pd.DataFrame({"who": pd.Series(list(names), dtype=kind)})
    return frame.assign(item1="a", item2="b", outcome=1)


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


def on_dask(frame):
    return dask.dataframe.from_pandas(frame, npartitions=2)


ENGINES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_arrow(arrow(frame)),
    "polars, lazy": lambda frame: pl.from_arrow(arrow(frame)).lazy(),
    "pyarrow": arrow,
    "DuckDB": lambda frame: duckdb.from_arrow(arrow(frame)),
    "Dask": on_dask,
}


def respondents(frame):
    """How many respondents there are, "missing" if one has no name, or "refused"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = pr.PrivateBTL(frame, items=ITEMS, respondent="who", max_rows=40,
                                  distinct_pairs=False)  # fmt: skip
        except (TypeError, ValueError) as refusal:
            if "must name the respondent of every row" in str(refusal):
                return "missing"
            spelt, typed = (
                "Each respondent must have one name",
                "all engines compare in the same way",
            )
            assert spelt in str(refusal) or typed in str(refusal)
            return REFUSED
    return model._encoded.design.nobs


def test_the_table_has_all_kinds():
    assert len({**SAME_TYPE, **OBJECTS}) >= 29


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", SAME_TYPE)
def test_names_of_one_type_are_the_same_respondents_everywhere(kind, engine):
    names, expected = SAME_TYPE[kind]
    assert respondents(ENGINES[engine](rows(names))) == expected


@pytest.mark.parametrize("convert", [True, False])
@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_are_the_same_respondents_or_refused(kind, convert):
    names, expected, same = OBJECTS[kind]
    frame = rows(names, object)
    assert respondents(frame) == expected
    with dask.config.set({"dataframe.convert-string": convert}):
        # what Dask holds as objects has no equality that its workers share
        assert respondents(on_dask(frame)) == (expected if convert and same else REFUSED)


@pytest.mark.parametrize("kind", OWN_TYPES)
def test_types_without_an_equality_of_names_are_refused(kind):
    frame = OWN_TYPES[kind]()
    ranked = pr.PrivateRankAggregation
    with pytest.raises(TypeError, match="Cast the column to text where it is read"):
        ranked(frame, items=["who", "a"], respondent="who")


@pytest.mark.parametrize(
    "kind", ["category", pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))]
)
def test_codes_of_dask_are_refused(kind):
    # every partition has codes of its own, by which Dask would shuffle
    assert respondents(on_dask(rows(["x", "y", "x"]).astype({"who": kind}))) == REFUSED


SPLIT = [float(k) if k < 16 and again else k for k in range(40) for again in (False, True)]
"""Names of 40 people, of whom some have 1 in one row and 1.0 in another."""

WAYS = {
    "as it is": on_dask,
    "persisted": lambda frame: on_dask(frame).persist(),
    "renamed": lambda frame: on_dask(frame.rename(columns={"who": "w"})).rename(
        columns={"w": "who"}
    ),
    "of the index": lambda frame: dask.dataframe.from_pandas(
        frame.set_index("who"), npartitions=2, sort=False
    ).reset_index(),
    "delayed": lambda frame: dask.dataframe.from_delayed(on_dask(frame).to_delayed()),
    "mapped": lambda frame: dask.dataframe.from_map(lambda k: frame[k::2], range(2)),
}


@pytest.mark.parametrize("kind", ["str", pd.ArrowDtype(pa.string())])
@pytest.mark.parametrize("way", WAYS)
def test_names_that_dask_would_split_are_refused(way, kind, monkeypatch):
    frame = rows(SPLIT, object)
    if way in ("as it is", "renamed"):
        assert respondents(WAYS[way](frame).astype({"who": kind})) == REFUSED
    assert respondents(WAYS[way](frame)) == REFUSED
    planted(monkeypatch, frames, "check_respondents", "and _typed_at_source(native, column)", "")
    monkeypatch.setattr(clusters, "_check_spelling", lambda view, owner: None)
    assert respondents(WAYS[way](frame)) == 56


@pytest.mark.parametrize(("names", "people"), [([0.0, -0.0] * 20, 1), ([*range(40)] * 2, 40)])
def test_names_that_are_equal_come_to_one_partition(names, people):
    frame = dask.dataframe.from_pandas(rows(names), npartitions=7)
    assert respondents(frame) == people


COLLATED = "create table answers (who varchar collate nocase, pick varchar collate nocase)"


@pytest.mark.parametrize("respondent", [None, "who"])
def test_a_collation_merges_no_answers(respondent):
    with duckdb.connect() as connection:
        connection.execute(COLLATED)
        values = [f"('{name}', '{pick}')" for name, pick in zip("abcAB", "yyyYz", strict=True)]
        connection.execute(f"insert into answers values {', '.join(values)}")
        test = pr.UniformityTest.from_formula(
            "pick ~ 1", connection.table("answers"), categories=["y", "Y", "z"],
            respondent=respondent,
        )  # fmt: skip
        assert test.fit(1.0, draws=19).nobs == 5
        rows_of = frames.open_frame(connection.table("answers"), "data")
        counted = frames.grouped(rows_of, ["pick"]).collect().to_native().to_pandas()
        assert dict(zip(counted["pick"], counted["privrank_rows"], strict=True)) == {
            "y": 3, "Y": 1, "z": 1
        }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", [k for k in SAME_TYPE if "null" not in k and "zone" not in k])
def test_spark_has_the_same_respondents(kind, spark):
    names, expected = SAME_TYPE[kind]
    assert respondents(spark.createDataFrame(rows(names))) == expected


def test_one_person_in_two_frames_is_seen_whatever_holds_the_name():
    days = pd.date_range("2020-01-01", periods=5)
    ranks = pd.DataFrame({"a": [1, 2] * 2 + [1], "b": [2, 1] * 2 + [2]})
    held = {
        "ns": ranks.assign(who=days.astype("datetime64[ns]")),
        "us": ranks.assign(who=days.astype("datetime64[us]")),
        "zone": ranks.assign(who=days.tz_localize("UTC")),
        "polars": pl.from_pandas(ranks.assign(who=days.tz_localize("UTC"))),
        "dates": pl.from_pandas(ranks.assign(who=days)).with_columns(pl.col("who").cast(pl.Date)),
        "objects": ranks.assign(who=pd.Series(days.date, dtype=object)),
    }
    for first in held.values():
        for second in held.values():
            with pytest.raises(ValueError, match="a respondent must be in one group only"):
                pr.ClosenessTest(first, second, items=ITEMS, respondent="who")
            pr.ClosenessTest(first, second, items=ITEMS, respondent="who", paired=True)


def test_names_of_two_types_are_not_taken_for_other_people():
    ranks = pd.DataFrame({"a": [1, 2, 1], "b": [2, 1, 2]})
    numbers = ranks.assign(who=[1, 2, 3])
    texts = ranks.assign(who=["1", "2", "3"])
    with pytest.raises(TypeError, match="of both samples by the same type"):
        pr.ClosenessTest(numbers, texts, items=ITEMS, respondent="who")
    with pytest.raises(ValueError, match="a respondent must be in one group only"):
        pr.ClosenessTest(numbers, ranks.assign(who=[1.0, 2.0, 4.0]), items=ITEMS, respondent="who")


PAIRS_OF_NAMES = {
    "zeros": [0, -0.0],
    "large": [10**16, 1e16],
    "decimals": [decimal.Decimal("1.50"), 1.5],
    "zones": [
        pd.Timestamp("2020-01-01 12:00", tz="UTC"),
        pd.Timestamp("2020-01-01 13:00", tz="CET"),
    ],
    "tuples": [(1, 2), (1.0, 2)],
}


@pytest.mark.parametrize("kind", PAIRS_OF_NAMES)
@pytest.mark.parametrize("way", ["as it is", "renamed", "of the index", "mapped"])
def test_one_name_in_two_forms_is_refused_wherever_the_column_comes_from(kind, way):
    frame = rows([*PAIRS_OF_NAMES[kind], "x"], object)
    assert respondents(frame) == 2
    assert respondents(WAYS[way](frame)) == REFUSED


def test_texts_that_only_look_alike_are_names_of_dask(tmp_path):
    # the source says that these are texts: house numbers, days and times of day
    names = ["1", "1.0", "True", "2020-01-01", "2020-01-01 00:00:00"]
    frame = rows(names)
    assert respondents(on_dask(frame)) == 5
    frame.to_parquet(tmp_path / "rows.parquet")
    assert respondents(dask.dataframe.read_parquet(tmp_path)) == 5
    frame.to_csv(tmp_path / "rows.csv")
    text = dask.dataframe.read_csv(str(tmp_path / "rows.csv"), dtype={"who": "string"})
    assert respondents(text) == 5
    # of a frame that was computed nobody knows
    assert respondents(on_dask(frame).persist()) == REFUSED


@pytest.mark.parametrize("kind", ["uint8", "uint64", "UInt32", "int64", "float64"])
def test_numbers_of_two_frames_are_compared_exactly(kind):
    ranks = pd.DataFrame({"a": [1, 2, 1], "b": [2, 1, 2]})
    first = ranks.assign(who=pd.Series([1, 2, 3], dtype=kind))
    pr.ClosenessTest(first, first, items=ITEMS, respondent="who", paired=True)
    other = ranks.assign(who=[4, 5, 6])
    pr.ClosenessTest(first, other, items=ITEMS, respondent="who")
    with pytest.raises(ValueError, match="a respondent must be in one group only"):
        pr.ClosenessTest(first, other.assign(who=[3, 4, 5]), items=ITEMS, respondent="who")


def test_times_of_two_frames_are_compared_to_the_nanosecond():
    ranks = pd.DataFrame({"a": [1, 2] * 5, "b": [2, 1] * 5})
    first = ranks.assign(who=pd.to_datetime(np.arange(10)))
    pr.ClosenessTest(first, first, items=ITEMS, respondent="who", paired=True)
    second = ranks.assign(who=pd.to_datetime(400 + np.arange(10)))
    pr.ClosenessTest(first, second, items=ITEMS, respondent="who")


def test_spans_of_time_name_people_in_pandas():
    assert respondents(rows(pd.to_timedelta([0, 1, 0], unit="D"))) == 2
