"""Tallies of reports: each counted once or rejected for a reason, from any frame, in any order."""

import base64
import json
from decimal import Decimal
from itertools import permutations

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from mutating import with_check

import privrank as pr
from privrank.local import (
    AdaptiveKwikSort,
    Curator,
    DuchiBall,
    Population,
    RandomPairs,
    SubRanking,
)
from privrank.local.tally import FOREIGN, MALFORMED, RANGE, REPEATED, Tally

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
        {"answer": True},
        {"answer": np.True_},
        {"assignment": False},
        {"report_id": True},
        {"report_id": np.True_},
        *({"answer": text} for text in ("\u0661", "\uff11", "\u00b9", "1_0", " 1", "1 ", "1\n")),
        *({"answer": text} for text in ("+1", "-1", "-0", "", "1.", ".0", "1.5", "1e0", "1.0e0")),
        *({"answer": text} for text in ("0x1", "1,0", "1\u00a0", "\ufeff1", "True", "inf", "nan")),
        {"report_id": None},
        {"report_id": ""},
        {"report_id": "\ud800"},
        {"report_id": 10**5000},
        {"report_id": [1]},
        {"report_id": Decimal("sNaN")},
        {"answer": Decimal("sNaN")},
        {"answer": Decimal("0.5")},
        {"answer": np.datetime64("2020-01-01")},
    ],
    RANGE: [
        {"assignment": -1},
        {"assignment": 10},
        {"answer": 6},
        {"answer": 10**30},
        {"answer": -(10**30)},
        {"answer": 10**5000},
        {"assignment": 10**400},
        {"assignment": -(10**400)},
        {"assignment": Decimal("1e999999999")},
        {"assignment": 2**63},
    ],
}


@pytest.mark.parametrize("reason", FAULTS)
def test_each_fault_has_its_reason(reason):
    for fault in FAULTS[reason]:
        assert rejected(row(**fault)) == {reason: 1}, reason
        assert rejected(row(**fault), row()) == {reason: 1}, reason


def test_numbers_are_read_as_every_file_holds_them():
    for assignment in (3, 3.0, "3", "03", "3.0", "3.000", np.int8(3), Decimal(3), True + 2):
        assert cells(PROTOCOL.tally([row(assignment=assignment)])) == [(3, 1, 1)]
    # what a float cannot hold exactly is no number, and its digits are
    seeds = DuchiBall(ITEMS, 1.0)
    big = 2**32 - 1
    good = {"protocol_id": seeds.id, "assignment": big, "answer": 1, "report_id": "x"}
    bad = [{**good, "assignment": "word", "report_id": "y"}, {**good, "report_id": None}]
    words = pd.DataFrame([good, *bad]).map(lambda cell: None if pd.isna(cell) else str(cell))
    assert cells(seeds.tally(words)) == [(big, 1, 1)]
    assert cells(seeds.tally(pd.DataFrame([good, *bad]))) == [(big, 1, 1)]


def test_exact_numbers_beyond_floats():
    from privrank.local.tally import read_reports

    odd = 2**62 + 1
    table = {"protocol_id": ["p"] * 3, "assignment": [str(odd), "x", None]}
    table |= {"answer": [0, 0, 0], "report_id": list("abc")}
    _, assignment, _, rejected = read_reports(pd.DataFrame(table), "p", 2**63 - 1, 2)
    assert assignment.tolist() == [odd] and rejected[MALFORMED] == 2
    table["assignment"] = [float(odd), 1.0, 2.0]
    _, assignment, _, rejected = read_reports(pd.DataFrame(table), "p", 2**63 - 1, 2)
    assert sorted(assignment) == [1, 2] and rejected[MALFORMED] == 1


def dirty():
    """A tenth of bad rows, and ten of the good ones once more, all in random order."""
    bad = [row(**fault) for faults in FAULTS.values() for fault in faults]
    bad = [one for one in bad if not isinstance(one["answer"], int) or abs(one["answer"]) < 9]
    for number, one in enumerate(bad):
        one["report_id"] = f"bad {number}" if one["report_id"] == "new" else one["report_id"]
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


def test_of_different_reports_with_one_id_none_counts_in_any_order():
    rows = [row(assignment=a, answer=b) for a, b in ((4, 0), (2, 5), (2, 3), (4, 0))]
    rows += [row(assignment=1, answer=b, report_id="twice the same") for b in (2, 2)]
    whole = PROTOCOL.tally(rows)
    assert cells(whole) == [(1, 2, 1)] and whole.rejected[REPEATED] == 5
    for order in permutations(range(6), 6):
        turned = [rows[k] for k in order]
        assert PROTOCOL.tally(turned).to_json() == whole.to_json() if order[0] < 2 else True
    singles = [PROTOCOL.tally([one]) for one in rows]
    for order in list(permutations(range(6), 6))[::9]:
        one, two, three, *rest = [singles[k] for k in order]
        assert (one + two + three + sum(rest)).to_json() == whole.to_json()
        archived = Tally.from_json((two + (three + one)).to_json())
        assert (sum(rest) + archived).to_json() == whole.to_json()


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


@pytest.mark.filterwarnings("ignore:.*narwhals-dask")
@pytest.mark.parametrize("engine", ENGINES)
def test_the_protocol_is_its_exact_text_in_every_engine(engine):
    frame = reports(6).astype({"protocol_id": object})
    frame["protocol_id"] = [PROTOCOL.id, None, "", PROTOCOL.id.upper() + " ", "0", PROTOCOL.id]
    tally = PROTOCOL.tally(ENGINES[engine](frame))
    assert (tally.n, tally.rejected[FOREIGN]) == (2, 4)
    for other in (np.ones(6, dtype=bool), np.arange(6)):  # a type that is none of texts
        assert PROTOCOL.tally(ENGINES[engine](frame.assign(protocol_id=other))).n == 0


def test_folders_of_parquet_and_damaged_files(tmp_path):
    for part in range(3):
        CLEAN.iloc[part::3].to_parquet(tmp_path / f"{part}.parquet")
    everything = PROTOCOL.tally(CLEAN)
    assert same(PROTOCOL.tally(pl.scan_parquet(tmp_path / "*.parquet")), everything)
    assert same(PROTOCOL.tally(duckdb.read_parquet(str(tmp_path / "*.parquet"))), everything)
    whole = (tmp_path / "1.parquet").read_bytes()
    lazy = pl.scan_parquet(tmp_path / "*.parquet")
    (tmp_path / "1.parquet").write_bytes(whole[:-20])
    with pytest.raises(ValueError, match="could not be computed"):
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
    struck = PROTOCOL.tally([row(), row(answer=2), row(report_id="other")])
    assert Tally.from_json(struck.to_json()).to_json() == struck.to_json()
    empty = Tally.from_json(PROTOCOL.tally([]).to_json())
    assert same(empty + whole, whole)
    bare = Tally.from_json(whole.to_json(ids=False))
    assert same(bare, whole)
    assert (bare + bare).n == 600 and "ids" not in json.loads(whole.to_json(ids=False))
    for mixed in ((bare, again), (again, bare)):
        with pytest.raises(ValueError, match="both hold ids to be added, or neither"):
            sum(mixed)
    assert all(name not in text for name in CLEAN["report_id"].head(5))
    record = json.loads(text)
    changed = ({"schema": "other"}, {"count": record["count"][:-1]}, {"answer": [99] * len(record)})
    changed += ({"count": [-1, *record["count"][1:]]}, {"ids": record["ids"][::-1]})
    changed += ({"assignment": [10, *record["assignment"][1:]]}, {"rejected": None})
    changed += ({"assignment": record["assignment"][::-1]}, {"count": [record["count"]]})
    changed += tuple({"rejected": value} for value in ({}, [], {**record["rejected"], "other": 1}))
    changed += tuple({"rejected": {**record["rejected"], RANGE: v}} for v in (-1, 1.5, True, "1"))
    changed += ({"ids": ""}, {"ids": 5}, {"ids": record["ids"][:-8]}, {"ids": "%"})
    changed += ({"count": [2**62, *record["count"][1:]]}, {"count": [1.5, *record["count"][1:]]})
    changed += ({"protocol": record["protocol"].replace("2.0", "3.0")}, {"protocol": []})
    broken_texts = [json.dumps({**record, **change}) for change in changed]
    for broken in ("", "[]", text[:-30], "[" * 100_000, *broken_texts):
        with pytest.raises(ValueError, match=r"JSON (that|as) to_json\(\) wrote"):
            Tally.from_json(broken)


def test_sites_send_tallies_as_text():
    sites = [PROTOCOL.tally(CLEAN.iloc[:120]), PROTOCOL.tally(CLEAN.iloc[110:])]
    for ids in (True, False):
        read = [pr.from_json(site.to_json(ids=ids)) for site in sites]
        assert all(type(tally) is pr.local.Tally is Tally for tally in read)
        assert sum(read).n == (300 if ids else 310)
    assert same(sum(pr.from_json(site.to_json()) for site in sites), sites[0] + sites[1])
    results = [
        pr.PrivateRankAggregation.from_reports(tally).to_json() for tally in (*sites, sites[0])
    ]
    assert all("protocol" not in json.loads(text) for text in results)
    with pytest.raises(ValueError, match="changed"):
        pr.from_json(sites[0].to_json()[:-9] + '0000000"}')


def swapped(record, row, change):
    """The ids of a record, or the places of their reports, changed."""
    bits = np.frombuffer(base64.b64decode(record["ids"]), "<i8").reshape(2, -1).copy()
    bits[row] = change(bits[row])
    return {"ids": base64.b64encode(bits.tobytes()).decode()}


def test_numbers_that_no_reports_give_are_refused_with_a_new_check_too():
    whole = PROTOCOL.tally(dirty()[0])
    record = json.loads(whole.to_json())
    del record["check"]
    assert same(pr.from_json(with_check(record)), whole)
    changes = [
        {name: [number, *record[name][1:]]}
        for name, numbers in {
            "assignment": (-1, 10, 2**63, 0.5, None),
            "answer": (-1, 6, 0.5, "1"),
            "count": (0, -1, 2**62, 2**53, 1.5, "1", True, [1]),
        }.items()
        for number in numbers
    ]
    changes += [{name: value} for name in record for value in (None, 5, [], {}, "", "word")]
    changes += [{name: record[name][::-1]} for name in ("assignment", "answer", "count")]
    changes += [{"count": record["count"][:-1]}, {"count": [record["count"]]}]
    changes += [
        {"rejected": {**record["rejected"], RANGE: value}} for value in (-1, 1.5, True, "1")
    ]
    changes += [{"rejected": {RANGE: 0}}, {"rejected": {**record["rejected"], "other": 1}}]
    changes += [swapped(record, 0, lambda ids: ids[::-1]), swapped(record, 0, lambda ids: 0 * ids)]
    for number in (1, 99, -99, 2**60):
        changes.append(swapped(record, 1, lambda cell, number=number: cell + number))
    changes.append(swapped(record, 1, lambda cell: 0 * cell))
    changes.append({"protocol": record["protocol"].replace("2.0", '2.0, "epsilon": 2.0')})
    for change in changes:
        with pytest.raises(ValueError, match="must be JSON that to_json"):
            pr.from_json(with_check({**record, **change}))


def test_a_tally_shows_what_it_counts():
    text = repr(PROTOCOL.tally(dirty()[0]))
    for words in ("sub-ranking, 300 reports accepted", FOREIGN, MALFORMED, RANGE, REPEATED):
        assert words in text
    assert repr(PROTOCOL.tally([])) == "<Tally: sub-ranking, 0 reports accepted, rejected: none>"


def test_what_is_no_frame_of_reports_is_refused_briefly():
    with pytest.raises(ValueError, match="has no 'answer'. Rename the corresponding"):
        PROTOCOL.tally(CLEAN.drop(columns="answer"))
    with pytest.raises(TypeError, match="reports must be a data frame"):
        PROTOCOL.tally("reports.parquet")
    with pytest.raises(TypeError, match="reports must be a data frame"):
        PROTOCOL.tally(3)
    # one report, as a client sends it, is a frame of one row
    assert PROTOCOL.tally(PROTOCOL.randomize(ITEMS)).n == 1
    assert PROTOCOL.tally([3, None, "row", [row()]]).rejected[MALFORMED] == 4
    with pytest.raises(ValueError, match="has no 'protocol_id'"):
        PROTOCOL.tally({})
    for columns in ({**row(), "answer": [1, 2]}, {**row(), "answer": [1], "assignment": [1, 2]}):
        columns = {**{name: [value] * 3 for name, value in row().items()}, **columns}
        with pytest.raises(ValueError, match="columns of equal length"):
            PROTOCOL.tally({**columns, "report_id": ["a", "b", "c"]})


def test_columns_that_hold_no_numbers_are_malformed():
    frame = pl.from_pandas(CLEAN.head(6))
    answer = pl.col("answer")
    for column in (pl.struct("answer"), answer.reshape((-1, 1)), pl.concat_list("answer")):
        odd = frame.with_columns(column.alias("answer"))
        assert PROTOCOL.tally(odd).rejected[MALFORMED] == 6
    view = duckdb.from_arrow(frame.to_arrow())
    dated = view.project("protocol_id, assignment, date '2020-01-01' as answer, report_id")
    assert PROTOCOL.tally(dated).rejected[MALFORMED] == 6


@pytest.mark.filterwarnings("ignore:.*narwhals-dask")
@pytest.mark.parametrize("engine", sorted(ENGINES.keys() - {"texts"}))
def test_truth_values_are_no_numbers_in_any_engine(engine):
    frame = pd.concat([CLEAN.head(6)] * 2).reset_index(drop=True)
    for column in ("assignment", "answer", "report_id"):
        odd = frame.assign(**{column: frame["answer"] > 2})
        tally = PROTOCOL.tally(ENGINES[engine](odd))
        assert (tally.n, tally.rejected[MALFORMED]) == (0, 12), column


def test_adaptive_reports_are_no_sample_of_assignments():
    protocol = AdaptiveKwikSort(ITEMS, 2.0)
    curator, taken = Curator(protocol, 200), []
    people = Population(protocol, np.tile([1, 2, 3, 4, 5], (200, 1)), np.random.default_rng(1))
    while queries := curator.next_queries():
        taken.append(pd.DataFrame(people.answer(queries)))
        curator.receive(taken[-1])
    tally = protocol.tally(pd.concat(taken))
    assert tally.n == curator.answered
    for model in (pr.UniformityTest, pr.PrivateBTL, pr.PrivateRankAggregation):
        with pytest.raises(ValueError, match=r"take the result\(\) of its Curator"):
            model.from_reports(tally)
    with pytest.raises(ValueError, match=r"take the result\(\) of its Curator"):
        pr.PrivateTopK.from_reports(tally, 2)
