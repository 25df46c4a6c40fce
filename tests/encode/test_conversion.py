"""Every form comes to the same rankings; completions are uniform; bad input gets one sentence."""

import math
from collections import Counter
from itertools import combinations, permutations, product

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from scipy.stats import chisquare
from searching import check_refusal

import privrank as pr
from privrank.privacy.draws import draw_orders

ITEMS = ("tea", "coffee", "juice")
# Respondents and wrong names carry a canary, so that messages are searched for a cell of the data.
CANARY = "CANARY"
RANKS = pd.DataFrame(
    {
        "who": [f"{CANARY}-{k}" for k in range(4)],
        "tea": [1, 3, 2, 3],
        "coffee": [2, 1, 1, 2],
        "juice": [3, 2, 3, 1],
    }
)
ORDERS = pd.DataFrame(
    {
        "who": RANKS["who"],
        "p1": ["tea", "coffee", "coffee", "juice"],
        "p2": ["coffee", "juice", "tea", "coffee"],
        "p3": ["juice", "tea", "juice", "tea"],
    }
)
LONG = RANKS.melt("who", var_name="item", value_name="rank")
EXPECTED = RANKS.set_index("who")
# Seeded tests give the same answer every time; secure ones fail by chance this often.
FALSE_ALARM = {"seeded": 1e-4, "secure": 1e-7}


def source(kind, seed=0):
    return np.random.default_rng(seed) if kind == "seeded" else None


def ranks(frame=RANKS, **arguments):
    return pr.as_rankings(frame, **{"respondent": "who"} | arguments)


def orders(frame=ORDERS, **arguments):
    return pr.as_rankings(frame, "orders", **{"items": ITEMS, "respondent": "who"} | arguments)


def long(frame=LONG, **arguments):
    return pr.as_rankings(frame, "long", **{"items": ITEMS, "respondent": "who"} | arguments)


def wide(*rows, items="abcdefgh"):
    """A frame of ranks, None where missing."""
    return pd.DataFrame(rows, columns=list(items[: len(rows[0])]), dtype=float)


def same(result, expected=EXPECTED):
    pd.testing.assert_frame_equal(result, expected.astype(np.int64), check_index_type=False)


# ---- forms


def test_complete_ranks_come_back_validated():
    same(ranks())
    same(ranks(RANKS.astype({"tea": float, "coffee": "Int64", "juice": "uint8"})))
    bare = RANKS.drop(columns="who").set_axis([10, 20, 30, 40])
    same(pr.as_rankings(bare), bare)
    assert pr.as_rankings(bare) is not bare


def test_forms_agree():
    same(orders())
    same(long())
    shuffled = LONG.sample(frac=1, random_state=1)
    same(long(shuffled).loc[list(EXPECTED.index)])


@pytest.mark.parametrize("form", [ranks, orders, long])
def test_items_give_the_order_of_the_columns(form):
    same(form(items=["juice", "tea", "coffee"]), EXPECTED[["juice", "tea", "coffee"]])


def test_other_columns_are_left_out():
    same(ranks(RANKS.assign(age=7731), items=ITEMS))
    same(orders(ORDERS.assign(age=7731), places=["p1", "p2", "p3"]))
    same(long(LONG.assign(age=7731)))


def test_places_in_the_order_given():
    backwards = orders(places=["p3", "p2", "p1"])
    same(backwards, 4 - EXPECTED)


@pytest.mark.parametrize("level", [["who"], ["wave", "who"]])
def test_respondents_as_an_index_level(level):
    # other levels of a frame's index are left out
    indexed = RANKS.assign(wave=[1, 1, 2, 2]).set_index(level)[list(ITEMS)]
    result = ranks(indexed)
    same(result, RANKS.set_index("who")[list(ITEMS)])
    same(long(LONG.set_index("who")))


def test_several_rankings_of_a_respondent():
    twice = RANKS.assign(who=["x", "y", "x", "y"])
    same(ranks(twice), twice.set_index("who"))
    waves = twice.assign(wave=[1, 1, 2, 2])
    tall = waves.melt(["who", "wave"], var_name="item", value_name="rank")
    same(long(tall, ranking="wave"), waves.set_index(["who", "wave"]))
    numbered = tall.assign(id=tall["who"] + tall["wave"].astype(str)).drop(columns=["who", "wave"])
    result = long(numbered, respondent=None, ranking="id")
    same(result, EXPECTED.set_axis(pd.Index(["x1", "y1", "x2", "y2"], name="id")))


def test_other_names_of_the_long_columns():
    renamed = LONG.rename(columns={"item": "drink", "rank": "place"})
    same(long(renamed, item="drink", rank="place"))


def test_numbers_as_items():
    numbers = {"tea": 30, "coffee": 10, "juice": 20}
    numbered = EXPECTED.rename(columns=numbers)
    same(pr.as_rankings(numbered), numbered)
    places = ["p1", "p2", "p3"]
    recoded = ORDERS[places].apply(lambda column: column.map(numbers)).assign(who=ORDERS["who"])
    same(orders(recoded, items=[30, 10, 20], places=places), numbered)
    top = recoded.astype({"p3": float}).assign(p3=np.nan)  # pandas makes floats of them
    result = orders(top, items=[30, 10, 20], places=places, missing="bottom")
    same(result, numbered)


def test_declared_categories_are_the_items():
    names = ["juice", "tea", "coffee", "water"]
    enum = pl.from_pandas(ORDERS).with_columns(pl.col("^p.$").cast(pl.Enum(names)))
    result = orders(enum, items=None, missing="bottom")
    assert list(result.columns) == names
    same(result[list(ITEMS)])
    assert (result["water"] == 4).all()
    tall = pl.from_pandas(LONG).with_columns(pl.col("item").cast(pl.Enum(names)))
    same(long(tall, items=None, missing="bottom"), result)


def engines(frame):
    """The frame in every engine: eager ones, and lazy ones, which have no order of rows."""
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    eager = {"polars": pl.from_pandas(frame), "pyarrow": table}
    eager["pandas pyarrow"] = table.to_pandas(types_mapper=pd.ArrowDtype)
    lazy = {
        "polars lazy": pl.from_pandas(frame).lazy(),
        "duckdb": duckdb.from_arrow(table),
        "dask": dask.dataframe.from_pandas(frame, npartitions=2),
    }
    return eager, lazy


# narwhals announces that its dask support will move to a package of its own
any_engine = pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
PARTIAL = RANKS.assign(tea=[1.0, None, 2.0, None], coffee=[1.5, 1.0, None, None])


@any_engine
@pytest.mark.parametrize("random", [{}, {"ties": "random", "missing": "random"}])
@pytest.mark.parametrize(("form", "frame"), [(ranks, RANKS), (orders, ORDERS), (long, LONG)])
def test_engines_agree(form, frame, random):
    if random and form is ranks:
        frame = PARTIAL
    if random and form is orders:
        frame = ORDERS.assign(p2=["coffee", None, None, None], p3=None).astype({"p3": object})
    if random and form is long:
        frame = LONG.assign(rank=[1.0, None, 2.0, 2.0, 1.0, None, 2.0, 2.0] + [3.0] * 4)
    arguments = {"rng": np.random.default_rng(5)} if random else {}
    expected = form(frame, **random, **arguments)
    eager, lazy = engines(frame)
    for name, other in (eager | lazy).items():
        arguments = {"rng": np.random.default_rng(5)} if random else {}
        result = form(other, **random, **arguments)
        if name in eager or not random:
            result = result.loc[list(expected.index)]
            pd.testing.assert_frame_equal(
                result, expected, check_index_type=False, check_column_type=False
            )
        assert set(result.index) == set(expected.index) and result.index.name == "who"
        assert (np.sort(result, axis=1) == [1, 2, 3]).all()


def test_decimals_of_a_database():
    rows = duckdb.sql("select 1::decimal(4,1) a, 2.5::decimal(4,1) b, 2.5::decimal(4,1) c, null d")
    rows = rows.project("a, b, c, d::decimal(4,1) as d")
    result = pr.as_rankings(rows, ties="random", missing="bottom")
    assert result.loc[0, "a"] == 1 and result.loc[0, "d"] == 4


# ---- completions


def agreeing(row, missing):
    """All complete rankings that agree with a partial one, by brute force."""
    m = len(row)
    ranked = [k for k in range(m) if row[k] is not None]
    absent = [k for k in range(m) if row[k] is None]
    for ranking in permutations(range(1, m + 1)):
        kept = all(ranking[i] < ranking[j] for i, j in permutations(ranked, 2) if row[i] < row[j])
        below = all(ranking[i] < ranking[j] for i, j in product(ranked, absent))
        if kept and (below or missing == "random"):
            yield ranking


def weak_orders(m):
    """Every partial ranking with ties of m items, its ranks dense, None where missing."""
    for size in range(m + 1):
        for ranked in combinations(range(m), size):
            for values in product(range(1, size + 1), repeat=size):
                if set(values) == set(range(1, len(set(values)) + 1)):
                    row = [None] * m
                    for k, value in zip(ranked, values, strict=True):
                        row[k] = value
                    yield tuple(row)


def check_uniform(row, missing, rows, kind, level):
    result = pr.as_rankings(
        wide(*[row] * rows), ties="random", missing=missing, rng=source(kind, len(repr(row)))
    )
    counts = Counter(map(tuple, result.to_numpy().tolist()))
    cells = list(agreeing(row, missing))
    assert counts.keys() <= set(cells)
    if len(cells) > 1:
        assert chisquare([counts[cell] for cell in cells]).pvalue > level, (row, missing)


@pytest.mark.parametrize("missing", ["bottom", "random"])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_completions_are_uniform_over_the_rankings_that_agree(m, missing):
    # every weak order of every set of ranked items
    cases = list(weak_orders(m))
    assert len(cases) == {2: 6, 3: 26, 4: 150}[m]
    for row in cases:
        rows = 40 * len(list(agreeing(row, missing)))
        check_uniform(row, missing, rows, "seeded", FALSE_ALARM["seeded"])


@pytest.mark.parametrize("missing", ["bottom", "random"])
@pytest.mark.parametrize("row", [(None,) * 4, (None, 2, 1, None), (1, 1, None, 2), (1, 1, 1, 1)])
def test_secure_completions_are_uniform(row, missing):
    check_uniform(row, missing, 4000, "secure", FALSE_ALARM["secure"])


def reported(ranking, rng):
    """What a respondent reports, by rules that look at the reported part only."""
    ranking = list(ranking)
    best = ranking.index(1)
    depth = 1 + best % 2 if rng.random() < 0.8 else 0
    return [rank if rank <= depth else None for rank in ranking]


@pytest.mark.parametrize("m", [3, 4])
def test_lists_whose_length_depends_on_the_leader_stay_uniform(m):
    # how many are listed depends on which item leads, so it is not independent of the ranking
    rng = np.random.default_rng(m)
    everyone = [tuple(rng.permutation(m) + 1) for _ in range(300 * math.factorial(m))]
    lists = wide(*(reported(ranking, rng) for ranking in everyone))
    result = pr.as_rankings(lists, missing="bottom", rng=rng)
    counts = Counter(map(tuple, result.to_numpy().tolist()))
    assert chisquare([counts[cell] for cell in permutations(range(1, m + 1))]).pvalue > 1e-4


def test_the_wrong_kind_of_missing_is_not_uniform():
    # an item that half of the people do not know, left out: the documented limit of "bottom"
    rng = np.random.default_rng(0)
    full = np.argsort(rng.random((6000, 3)), axis=1) + 1.0
    full[:3000, 0] = np.nan
    frame = pd.DataFrame(full, columns=list("abc")).rank(axis=1)
    share = {
        missing: (pr.as_rankings(frame, missing=missing, rng=rng)["a"] == 3).mean()
        for missing in ("bottom", "random")
    }
    assert share["bottom"] == pytest.approx(2 / 3, abs=0.03)
    assert share["random"] == pytest.approx(1 / 3, abs=0.03)


CODINGS = {
    "dense": ((1, 1, 2, 2), (1, 2, 2, 3), (1, 1, 1, 1)),
    "competition": ((1, 1, 3, 3), (1, 2, 2, 4), (1, 1, 1, 1)),
    "fractional": ((1.5, 1.5, 3.5, 3.5), (1, 2.5, 2.5, 4), (2.5, 2.5, 2.5, 2.5)),
    "last": ((2, 2, 4, 4), (1, 3, 3, 4), (4, 4, 4, 4)),
}


@pytest.mark.parametrize("missing", ["bottom", "random"])
def test_all_codings_of_ties_come_to_the_same(missing):
    results = []
    for rows in CODINGS.values():
        five = wide(*(row + (None,) for row in rows))
        rng = np.random.default_rng(3)
        results.append(pr.as_rankings(five, ties="random", missing=missing, rng=rng))
    for other in results[1:]:
        pd.testing.assert_frame_equal(other, results[0])


def test_ranks_with_gaps_keep_their_order():
    result = pr.as_rankings(wide(*[(4, None, 2, None)] * 500), missing="random")
    assert (result["c"] < result["a"]).all()
    assert set(result["a"]) == {2, 3, 4}


def test_no_row_is_dropped():
    empty = wide(*[(None, None, None)] * 7).set_axis(list("tuvwxyz"))
    for missing in ("bottom", "random"):
        assert list(pr.as_rankings(empty, missing=missing).index) == list("tuvwxyz")
    silent = LONG.assign(rank=LONG["rank"].where(LONG["who"] != RANKS["who"][1]))
    assert len(long(silent, missing="random")) == 4
    # rows that are not there count as missing too
    assert len(long(LONG.iloc[[0, 1, 2, 3, 5]], missing="random")) == 4


def test_a_ranking_is_made_from_its_own_row_alone():
    # with the same draws, changing one row of the frame changes one row of the result
    rng = np.random.default_rng(0)
    frame = wide(*[(1, None, 1, 2)] * 20)
    changed = frame.copy()
    changed.iloc[7] = [1, 2, 3, 4]
    options = {"ties": "random", "missing": "random"}
    before, after = (
        pr.as_rankings(each, **options, rng=np.random.default_rng(8)) for each in (frame, changed)
    )
    assert set(np.flatnonzero((before != after).any(axis=1))) <= {7}
    assert list(after.iloc[7]) == [1, 2, 3, 4]
    # and rows that report the same are completed apart
    assert len(pr.as_rankings(frame, **options, rng=rng).drop_duplicates()) > 3


def test_complete_rows_keep_their_ranks_whatever_is_allowed():
    for missing in ("refuse", "bottom", "random"):
        same(ranks(ties="random", missing=missing))


def test_seeded_runs_repeat_and_secure_ones_do_not():
    frame = wide(*[(None,) * 8] * 50)
    seeded = [
        pr.as_rankings(frame, missing="random", rng=np.random.default_rng(1)) for _ in range(2)
    ]
    pd.testing.assert_frame_equal(*seeded)
    secure = [pr.as_rankings(frame, missing="random") for _ in range(2)]
    assert not secure[0].equals(secure[1])


def test_batches_do_not_repeat_draws(monkeypatch):
    monkeypatch.setattr("privrank.util.arrays.CELLS", 40)
    result = pr.as_rankings(
        wide(*[(None,) * 8] * 50), missing="random", rng=np.random.default_rng(1)
    )
    assert len(result.drop_duplicates()) == 50
    assert (np.sort(result, axis=1) == np.arange(1, 9)).all()


@pytest.mark.parametrize("kind", ["seeded", "secure"])
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_orders_are_uniform(m, kind):
    drawn = draw_orders(400 * math.factorial(m), m, source(kind))
    counts = Counter(map(tuple, drawn.tolist()))
    cells = list(permutations(range(m)))
    assert counts.keys() == set(cells)
    if m > 1:
        assert chisquare([counts[cell] for cell in cells]).pvalue > FALSE_ALARM[kind]


def test_equal_keys_are_drawn_again(monkeypatch):
    # two rows of two keys; the first row's are equal, which would leave the columns' order
    keys = [np.array([5, 5, 9, 3], dtype=np.uint64), np.array([8, 1], dtype=np.uint64)]
    asked = []

    def urandom(size):
        asked.append(size)
        return keys[len(asked) - 1].tobytes()

    monkeypatch.setattr("os.urandom", urandom)
    assert draw_orders(2, 2, None).tolist() == [[1, 0], [1, 0]]
    assert asked == [32, 16]


# ---- refusals


def changed(frame, column, value, row=0):
    frame = frame.astype({column: object})
    frame.loc[row, column] = value
    return frame.infer_objects() if column not in ("who", "p1", "p2", "p3", "item") else frame


def twice(frame):
    return frame.set_axis([*frame.columns[:-1], frame.columns[-2]], axis=1)


BAD = {
    "a column of counts": (
        lambda: pr.as_rankings(pd.DataFrame({"a": [1, 2], "b": [2, 1], "count": [7731, 3]})),
        ValueError,
        ["'count' that is not used", "frame.index.repeat(frame['count'])"],
    ),
    "form": (lambda: ranks(form="wide"), ValueError, ["form", "'orders'", "'wide'"]),
    "form a list": (lambda: ranks(form=["ranks"]), ValueError, ["form"]),
    "ties": (lambda: ranks(ties="average"), ValueError, ["ties", "'random'", "'average'"]),
    "missing": (lambda: ranks(missing="drop"), ValueError, ["missing", "'bottom'", "'drop'"]),
    "integer rng": (lambda: ranks(rng=1), TypeError, ["rng", "Generator", "int"]),
    "not a frame": (lambda: ranks([CANARY]), TypeError, ["frame", "data frame", "list"]),
    "an array": (lambda: ranks(np.eye(3)), TypeError, ["frame", "ndarray"]),
    "no rows": (lambda: ranks(RANKS.head(0)), ValueError, ["frame", "at least one row"]),
    "no rows, orders": (lambda: orders(ORDERS.head(0)), ValueError, ["at least one row"]),
    "no rows, long": (lambda: long(LONG.head(0)), ValueError, ["at least one row"]),
    "duplicate columns": (lambda: ranks(twice(RANKS)), ValueError, ["unique column names"]),
    "one item": (lambda: ranks(RANKS[["who", "tea"]]), ValueError, ["items", "at least two"]),
    "item no column": (lambda: ranks(items=["tea", "x"]), ValueError, ["'x'", "items="]),
    "items a word": (lambda: ranks(items="tea"), TypeError, ["items", "sequence"]),
    "items twice": (
        lambda: orders(items=["tea", "tea"]),
        ValueError,
        ["items", "distinct"],
    ),
    "column labels in levels": (
        lambda: ranks(pd.DataFrame([[1, 2]], columns=[("a", 1), ("a", 2)]), respondent=None),
        TypeError,
        ["items", "names"],
    ),
    "respondent an item": (
        lambda: ranks(items=["who", "tea"]),
        (TypeError, ValueError),
        ["'who'"],
    ),
    "numeric respondent an item": (
        lambda: ranks(respondent="tea", items=["coffee", "tea"]),
        ValueError,
        ["'tea'", "respondent=", "different columns"],
    ),
    "no such respondent": (lambda: ranks(respondent="id"), ValueError, ["'id'", "respondent="]),
    "respondent a list": (lambda: ranks(respondent=["who"]), TypeError, ["respondent", "list"]),
    "respondent a number": (lambda: ranks(respondent=3), TypeError, ["respondent", "int"]),
    "respondent missing": (
        lambda: ranks(changed(RANKS, "who", None)),
        ValueError,
        ["'who'", "every row"],
    ),
    "respondent missing, index": (
        lambda: ranks(changed(RANKS, "who", None).set_index("who")),
        ValueError,
        ["'who'", "every row"],
    ),
    "respondent missing, long": (
        lambda: long(changed(LONG, "who", None)),
        ValueError,
        ["'who'", "every row"],
    ),
    "respondents unhashable": (
        lambda: ranks(RANKS.assign(who=[[CANARY]] * 4)),
        TypeError,
        ["'who'", "lists"],
    ),
    "respondents unhashable, long": (
        lambda: long(LONG.assign(who=[[CANARY]] * 12)),
        TypeError,
        ["'who'", "lists"],
    ),
    "ranks as words": (
        lambda: ranks(RANKS.assign(tea=CANARY)),
        TypeError,
        ["'tea'", "numbers", "items="],
    ),
    "ranks as objects": (
        lambda: ranks(RANKS.astype({"tea": object})),
        TypeError,
        ["'tea'", "to_numeric"],
    ),
    "true or false": (lambda: ranks(RANKS.assign(tea=True)), TypeError, ["'tea'", "numbers"]),
    "respondent not named": (lambda: ranks(respondent=None), TypeError, ["'who'", "items="]),
    "rank zero": (lambda: ranks(RANKS.assign(tea=0)), ValueError, ["1 (best) to 3"]),
    "rank too large": (lambda: ranks(changed(RANKS, "tea", 7731)), ValueError, ["1 (best) to 3"]),
    "rank infinite": (
        lambda: ranks(changed(RANKS, "tea", np.inf), missing="random"),
        ValueError,
        ["1 (best) to 3"],
    ),
    "rank minus infinite": (
        lambda: ranks(changed(RANKS, "tea", -np.inf)),
        ValueError,
        ["ranks from"],
    ),
    "half a rank": (
        lambda: ranks(changed(RANKS, "tea", 1.5)),
        ValueError,
        ["has a tie", "ties='random'"],
    ),
    "a score": (
        lambda: ranks(changed(RANKS, "tea", 1.7731), ties="random"),
        ValueError,
        ["2.5 for a tie", "Recode"],
    ),
    "a tie": (
        lambda: ranks(changed(RANKS, "tea", 2)),
        ValueError,
        ["has a tie", "ties='random'"],
    ),
    "a tie, missing allowed": (
        lambda: ranks(changed(changed(RANKS, "tea", 2), "juice", None), missing="bottom"),
        ValueError,
        ["ties='random'"],
    ),
    "a missing rank": (
        lambda: ranks(changed(RANKS, "tea", None)),
        ValueError,
        ["is incomplete", "missing='bottom'", "missing='random'"],
    ),
    "a gap above the bottom": (
        lambda: ranks(changed(RANKS, "tea", None), missing="bottom"),
        ValueError,
        ["missing='bottom'", "missing='random'"],
    ),
    "a gap above the bottom, ties": (
        lambda: ranks(changed(RANKS, "tea", None), missing="bottom", ties="random"),
        ValueError,
        ["missing='bottom'", "missing='random'"],
    ),
    "places for ranks": (lambda: ranks(places=["tea"]), ValueError, ["places=", "'orders'"]),
    "ranking for orders": (lambda: orders(ranking="p1"), ValueError, ["ranking=", "'long'"]),
    "no items": (lambda: orders(items=None), ValueError, ["items must be declared"]),
    "no items, long": (lambda: long(items=None), ValueError, ["items must be declared"]),
    "categories met": (
        lambda: orders(ORDERS.astype({n: "category" for n in ("p1", "p2", "p3")}), items=None),
        ValueError,
        ["items must be declared", "pandas categorical"],
    ),
    "polars learns categories": (
        lambda: long(
            pl.from_pandas(LONG).with_columns(pl.col("item").cast(pl.Categorical)), items=None
        ),
        ValueError,
        ["items must be declared"],
    ),
    "unknown name": (
        lambda: orders(changed(ORDERS, "p2", f"{CANARY}-item")),
        ValueError,
        ["'p2'", "not listed in items"],
    ),
    "unknown name, long": (
        lambda: long(changed(LONG, "item", f"{CANARY}-item")),
        ValueError,
        ["'item'", "not listed in items"],
    ),
    "lists for names": (
        lambda: orders(ORDERS.assign(p1=[[CANARY]] * 4)),
        TypeError,
        ["'p1'", "lists"],
    ),
    "item twice": (
        lambda: orders(changed(ORDERS, "p2", "tea")),
        ValueError,
        ["'p2'", "at most once"],
    ),
    "item twice, long": (
        lambda: long(pd.concat([LONG, LONG.head(1)])),
        ValueError,
        ["'item'", "at most once", "'who'"],
    ),
    "item twice, once without a rank": (
        lambda: long(pd.concat([LONG, LONG.head(1).assign(rank=None)]).astype({"rank": float})),
        ValueError,
        ["'item'", "at most once"],
    ),
    "missing name, long": (
        lambda: long(changed(LONG, "item", None)),
        ValueError,
        ["'item'", "every row"],
    ),
    "missing place": (
        lambda: orders(changed(ORDERS, "p3", None)),
        ValueError,
        ["missing='bottom'"],
    ),
    "empty place": (
        lambda: orders(changed(ORDERS, "p1", None), missing="bottom"),
        ValueError,
        ["missing='bottom'", "missing='random'"],
    ),
    "fewer places": (lambda: orders(places=["p1"]), ValueError, ["missing='bottom'"]),
    "more places": (lambda: orders(items=["tea", "juice"]), ValueError, ["place", "places="]),
    "no places": (lambda: orders(places=[]), ValueError, ["places="]),
    "places a word": (lambda: orders(places="p1"), TypeError, ["places", "str"]),
    "places a number": (lambda: orders(places=3), TypeError, ["places", "int"]),
    "places unhashable": (lambda: orders(places=[["p1"]]), TypeError, ["places"]),
    "place twice": (
        lambda: orders(places=["p1", "p1"]),
        ValueError,
        ["places", "named twice"],
    ),
    "place no column": (lambda: orders(places=["p1", "x"]), ValueError, ["'x'", "places="]),
    "respondent a place": (
        lambda: orders(places=["who", "p1"]),
        ValueError,
        ["'who'", "respondent="],
    ),
    "nothing says which ranking": (
        lambda: long(respondent=None),
        ValueError,
        ["ranking=", "respondent="],
    ),
    "no rank column": (lambda: long(rank="place"), ValueError, ["'place'", "rank="]),
    "no item column": (lambda: long(item="drink"), ValueError, ["'drink'", "item="]),
    "item None": (lambda: long(item=None), TypeError, ["item", "NoneType"]),
    "ranking a list": (lambda: long(ranking=["who"]), TypeError, ["ranking", "list"]),
    "one column for two": (lambda: long(ranking="who"), ValueError, ["different columns"]),
    "rank words, long": (lambda: long(LONG.assign(rank=CANARY)), TypeError, ["'rank'", "numbers"]),
    "rank too large, long": (
        lambda: long(changed(LONG, "rank", 7731)),
        ValueError,
        ["1 (best) to 3"],
    ),
    "tie, long": (lambda: long(changed(LONG, "rank", 2)), ValueError, ["ties='random'"]),
}


@pytest.mark.parametrize(("call", "error", "words"), BAD.values(), ids=BAD)
def test_refusal(call, error, words):
    check_refusal(call, error, words)


@pytest.mark.parametrize("name", ["who", "tea"])
def test_duplicate_column_names_in_another_engine(name):
    table = pyarrow.table([pyarrow.array([1, 2])] * 3, names=["who", "tea", name])
    with pytest.raises(ValueError, match="unique column names"):
        ranks(table)


@any_engine
@pytest.mark.parametrize("engine", ["polars", "pyarrow", "polars lazy", "duckdb", "dask"])
def test_refusals_are_the_same_in_every_engine(engine):
    eager, lazy = engines(PARTIAL)
    frame = (eager | lazy)[engine]
    with pytest.raises(ValueError, match="is incomplete"):
        ranks(frame)
    with pytest.raises(ValueError, match="has a tie"):
        ranks(frame, missing="random")
    with pytest.raises(ValueError, match="is incomplete"):
        ranks(frame, ties="random")


def test_the_frame_is_left_as_it_was():
    before = PARTIAL.copy(deep=True)
    result = ranks(PARTIAL, ties="random", missing="random")
    result.loc[:, "tea"] = 0
    pd.testing.assert_frame_equal(PARTIAL, before)
