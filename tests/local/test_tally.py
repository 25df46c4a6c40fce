"""Tallies of reports: each counted once or rejected for a reason, from any frame, in any order."""

import json
import re

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privrank as pr
from privrank.encode.reports import FOREIGN, MALFORMED, RANGE, REPEATED
from privrank.local import DuchiBall, RandomPairs, SubRanking
from privrank.local.tally import Tally

ITEMS = list("abcde")
PROTOCOL = SubRanking(ITEMS, 2.0)


def reports(n=300, protocol=PROTOCOL, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(protocol.simulate(pr.Mallows(5, 0.7).rvs(n, rng), rng))


def cells(tally):
    return list(zip(tally.assignment, tally.answer, tally.count, strict=True))


def same(one, two):
    return cells(one) == cells(two) and dict(one.rejected) == dict(two.rejected)


def row(**changes):
    given = {"protocol_id": PROTOCOL.id, "assignment": 3, "answer": 1, "report_id": "new"}
    return {**given, **changes}


def rejected(*rows):
    return {k: v for k, v in PROTOCOL.tally(list(rows)).rejected.items() if v}


CLEAN = reports()
FAULTS = {
    FOREIGN: [
        {"protocol_id": None},
        {"protocol_id": 7},
        {"protocol_id": SubRanking(ITEMS, 2.1).id},
        {"protocol_id": RandomPairs(ITEMS, 2.0).id},
    ],
    MALFORMED: [
        {"assignment": None},
        {"assignment": "three"},
        {"assignment": 2.5},
        {"answer": np.nan},
        {"answer": np.inf},
        {"answer": [1]},
        {"answer": "1; 2"},
        {"report_id": None},
        {"report_id": ""},
    ],
    RANGE: [
        {"assignment": -1},
        {"assignment": 10},
        {"answer": 6},
        {"answer": 10**30},
        {"answer": -(10**30)},
        {"assignment": 2**63},
    ],
}


@pytest.mark.parametrize("reason", FAULTS)
def test_each_fault_has_its_reason(reason):
    for fault in FAULTS[reason]:
        if fault == {"answer": 10**30} or fault == {"answer": -(10**30)}:
            assert sum(rejected(row(**fault)).values()) == 1
        else:
            assert rejected(row(**fault)) == {reason: 1}, fault


def test_numbers_are_read_as_every_file_holds_them():
    for assignment in (3, 3.0, "3", " 3", np.int8(3), True + 2):
        assert cells(PROTOCOL.tally([row(assignment=assignment)])) == [(3, 1, 1)]
    # what a float cannot hold exactly is no number, and its digits are
    seeds = DuchiBall(ITEMS, 1.0)
    big = 2**32 - 1
    good = {"protocol_id": seeds.id, "assignment": big, "answer": 1, "report_id": "x"}
    bad = [{**good, "assignment": "word", "report_id": "y"}, {**good, "report_id": None}]
    assert cells(seeds.tally(pd.DataFrame([good, *bad]).astype(str))) == [(big, 1, 1)]
    assert cells(seeds.tally(pd.DataFrame([good, *bad]))) == [(big, 1, 1)]


def test_exact_numbers_beyond_floats():
    from privrank.encode.reports import read_reports

    odd = 2**62 + 1
    table = {"protocol_id": ["p"] * 3, "assignment": [str(odd), "x", None]}
    table |= {"answer": [0, 0, 0], "report_id": list("abc")}
    found = read_reports(pd.DataFrame(table), "p", 2**63 - 1, 2)
    assert found.assignment.tolist() == [odd] and found.rejected[MALFORMED] == 2
    table["assignment"] = [float(odd), 1.0, 2.0]
    found = read_reports(pd.DataFrame(table), "p", 2**63 - 1, 2)
    assert sorted(found.assignment) == [1, 2] and found.rejected[MALFORMED] == 1


def dirty():
    """A tenth of bad rows, and ten of the good ones once more, all in random order."""
    bad = [row(**fault) for faults in FAULTS.values() for fault in faults]
    bad = [one for one in bad if not isinstance(one["answer"], int) or abs(one["answer"]) < 9]
    for number, one in enumerate(bad):
        one["report_id"] = one["report_id"] and f"bad {number}"
    whole = pd.concat([CLEAN.astype(object), pd.DataFrame(bad), CLEAN.head(10).astype(object)])
    return whole.sample(frac=1.0, random_state=3), len(bad)


def test_a_dirty_run_ends_where_the_clean_one_does():
    frame, bad = dirty()
    clean, found = PROTOCOL.tally(CLEAN), PROTOCOL.tally(frame)
    assert cells(found) == cells(clean) and found.n == 300
    assert sum(found.rejected.values()) == bad + 10 and found.rejected[REPEATED] == 10
    fits = [pr.PrivateRankAggregation.from_reports(t) for t in (clean, found)]
    assert fits[0].borda().equals(fits[1].borda())
    assert "10 repeated id" in str(fits[1].summary())
    for rows in (frame, frame.iloc[::-1], frame.to_dict("records")):
        assert same(PROTOCOL.tally(rows), found)


def test_of_two_reports_with_one_id_the_smaller_counts_in_any_order():
    rows = [row(assignment=a, answer=b) for a, b in ((4, 0), (2, 5), (2, 3), (4, 0))]
    for k in range(4):
        found = PROTOCOL.tally(rows[k:] + rows[:k])
        assert cells(found) == [(2, 3, 1)] and found.rejected[REPEATED] == 3
        parts = PROTOCOL.tally(rows[:k]) + PROTOCOL.tally(rows[k:])
        assert same(parts, found)


ENGINES = {
    "pandas": lambda frame: frame,
    "index": lambda frame: frame.set_index(pd.Index(range(5, 5 + len(frame)))[::-1]),
    "nullable": lambda frame: frame.convert_dtypes(),
    "texts": lambda frame: frame.astype(str),
    "categories": lambda frame: frame.astype({"protocol_id": "category"}),
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame),
    "duckdb": lambda frame: duckdb.from_arrow(pa.Table.from_pandas(frame)),
    "dask": lambda frame: dd.from_pandas(frame, npartitions=2),
    "records": lambda frame: frame.to_dict("records"),
    "columns": lambda frame: {name: frame[name].to_numpy() for name in frame},
}


# narwhals announces that its dask support will move to a package of its own
@pytest.mark.filterwarnings("ignore:.*narwhals-dask")
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same(engine):
    frame = pd.concat([CLEAN, CLEAN.head(3)]).reset_index(drop=True)
    frame.loc[5, "protocol_id"] = "another"
    assert same(PROTOCOL.tally(ENGINES[engine](frame)), PROTOCOL.tally(frame))


def test_folders_of_parquet_and_damaged_files(tmp_path):
    for part in range(3):
        CLEAN.iloc[part::3].to_parquet(tmp_path / f"{part}.parquet")
    everything = PROTOCOL.tally(CLEAN)
    assert same(PROTOCOL.tally(pl.scan_parquet(tmp_path / "*.parquet")), everything)
    assert same(PROTOCOL.tally(duckdb.read_parquet(str(tmp_path / "*.parquet"))), everything)
    whole = (tmp_path / "1.parquet").read_bytes()
    lazy = pl.scan_parquet(tmp_path / "*.parquet")
    (tmp_path / "1.parquet").write_bytes(whole[:-20])
    with pytest.raises(ValueError, match="cannot be read to their end"):
        PROTOCOL.tally(lazy)


def test_tallies_add_up():
    frame, _ = dirty()
    whole = PROTOCOL.tally(frame)
    for cut in (0, 1, 100, len(frame)):
        parts = [PROTOCOL.tally(frame.iloc[:cut]), PROTOCOL.tally(frame.iloc[cut:])]
        assert same(parts[0] + parts[1], whole) and same(parts[1] + parts[0], whole)
    assert same(sum(PROTOCOL.tally(frame.iloc[k::4]) for k in range(4)), whole)
    twice = whole + whole
    assert cells(twice) == cells(whole) and twice.rejected[REPEATED] == 300 + 20
    with pytest.raises(ValueError, match="must be of one protocol"):
        _ = whole + RandomPairs(ITEMS, 2.0).tally([])
    with pytest.raises(TypeError):
        _ = whole + 1


def test_tallies_of_seeds_add_up_too():
    protocol = DuchiBall(ITEMS, 1.0)
    frame = reports(200, protocol)
    whole = protocol.tally(pd.concat([frame, frame.head(7)]))
    assert same(protocol.tally(frame.head(120)) + protocol.tally(frame.iloc[113:]), whole)
    assert (np.diff(whole.assignment) >= 0).all() and whole.n == 200


def test_archives():
    whole = PROTOCOL.tally(dirty()[0])
    text = whole.to_json()
    again = Tally.from_json(text)
    assert same(again, whole) and again.protocol == PROTOCOL
    assert same(again + PROTOCOL.tally(CLEAN), whole + PROTOCOL.tally(CLEAN))
    bare = Tally.from_json(whole.to_json(ids=False))
    assert same(bare, whole) and "holds no ids" in str(bare.summary())
    assert (bare + again).n == 600 and "identity" not in whole.to_json(ids=False)
    assert all(name not in text for name in CLEAN["report_id"].head(5))
    record = json.loads(text)
    changed = ({"schema": "other"}, {"count": record["count"][:-1]}, {"answer": [99] * len(record)})
    changed += ({"count": [-1, *record["count"][1:]]}, {"cell": record["identity"]})
    changed += ({"assignment": [10, *record["assignment"][1:]]}, {"rejected": None})
    broken_texts = [json.dumps({**record, **change}) for change in changed]
    for broken in ("", "[]", text[:-30], *broken_texts):
        with pytest.raises(ValueError, match="JSON written by a tally"):
            Tally.from_json(broken)


def test_summary_counts_everything():
    whole = PROTOCOL.tally(dirty()[0])
    text = str(whole.summary())
    for words in ("accepted", FOREIGN, MALFORMED, RANGE, REPEATED, PROTOCOL.id, "sub-ranking"):
        assert words in text
    assert re.search(r"accepted\s+300 ", text) and "300 reports" in repr(whole)
    assert "<table" in whole.summary().as_html()
    assert PROTOCOL.tally([]).n == 0 and "0" in str(PROTOCOL.tally([]).summary())


def test_what_is_no_frame_of_reports_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="has no 'answer': rename the one meant"):
        PROTOCOL.tally(CLEAN.drop(columns="answer"))
    with pytest.raises(TypeError, match="reports must be a data frame"):
        PROTOCOL.tally("reports.parquet")
    with pytest.raises(TypeError, match="reports must be a data frame"):
        PROTOCOL.tally(3)
    # one report, as a client sends it, is a frame of one row
    assert PROTOCOL.tally(PROTOCOL.randomize(ITEMS)).n == 1
    assert PROTOCOL.tally([3, None, "row"]).rejected[FOREIGN] == 3
