"""Frames of all kinds: odd cells, types, names and shapes, handed to every class that takes one."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from exploring import arguments, explore, mostly, of, settled
from hypothesis import strategies as st
from searching import CANARY, ODD

import privrank as pr

ITEMS = ["a", "b", "c", "d"]
OTHER = [None, np.nan, pd.NA, pd.NaT, "", " ", "a ", CANARY, f"{CANARY} é", "\ud800", "a\0b"]
OTHER += [True, 0, -0.0, 2, 1.5, -1, ODD, 10**400, 2**63, 1e300, np.inf, -np.inf, 1j]
OTHER += [b"a", Decimal("1"), Fraction(1, 2), np.int64(1), np.float32(0.1), np.datetime64("2020")]
OTHER += [pd.Timestamp("2020"), pd.Interval(0, ODD), ("a", CANARY), ["a"], {"a": CANARY}, object()]
KINDS = ["category", "string", "Int64", "float64", "bool", "complex128", "datetime64[ns]"]
NAMES = ["a", "é", "", " ", "count", "order_from", "privrank_items", "row", 0, 1.5, None, np.nan]
NAMES += [("item1", "x"), pd.Timestamp("2020"), "x" * 1000, "\ud800", "privrank_rows", "index"]

seeded = st.integers(0, 3).map(lambda seed: {"seed": seed})
odd = of(*OTHER)


def columns_of(**usual):
    """Columns by name: usual cells, a few odd ones or only such; one may be dropped or doubled."""

    @st.composite
    def drawn(draw):
        rows, made = draw(mostly(st.integers(1, 9), st.just(0))), []
        for name, cells in usual.items():
            cell = draw(mostly(st.just(cells), of(mostly(cells, odd, 4), odd)))
            entries = draw(st.lists(cell, min_size=rows, max_size=rows))
            made.append((name, entries, draw(mostly(st.none(), of(*KINDS)))))
        change = draw(mostly(st.none(), of("drop", "double", "rename", "add")))
        if change is not None:
            place = draw(st.integers(0, len(made) - 1))
            name = draw(of(*NAMES))
            other = {
                "drop": [],
                "double": [made[place]] * 2,
                "rename": [(name, *made[place][1:])],
                "add": [made[place], (name, *made[place][1:])],
            }
            made[place : place + 1] = other[change]
        index = draw(mostly(st.none(), of("who", "equal", "levels", "names")))
        engine = draw(mostly(st.just("pandas"), of("polars", "lazy", "array", "records")))
        return {"columns": made, "index": index, "engine": engine}

    return drawn()


def framed(columns, index, engine):
    """The frame that a case describes."""
    made = []
    for _, entries, kind in columns:
        column = pd.Series(entries, dtype=object)
        try:
            made.append(column.infer_objects() if kind is None else column.astype(kind))
        except (TypeError, ValueError, OverflowError, ArithmeticError):
            made.append(column)
    frame = pd.concat(made, axis=1) if made else pd.DataFrame()
    frame.columns = pd.Index([name for name, _, _ in columns], dtype=object, tupleize_cols=False)
    if index == "who":
        frame.index = pd.Index(range(len(frame)), name="who")
    if index == "equal":
        frame.index = pd.Index([0] * len(frame))
    if index == "levels":
        frame.index = pd.MultiIndex.from_product([["x"], range(len(frame))], names=["who", "who"])
    if index == "names" and not frame.empty:
        frame.columns = pd.MultiIndex.from_product([["x"], frame.columns])
    if engine == "array":
        return frame.to_numpy()
    if engine == "records":
        return frame.to_dict("list") if frame.columns.is_unique else []
    # pyarrow, which makes columns of polars, crashes where dates of numpy stand beside numbers
    dated = any(isinstance(value, np.datetime64) for _, entries, _ in columns for value in entries)
    if engine in ("polars", "lazy") and not dated:
        try:
            other = pl.from_pandas(frame)
        except Exception:  # not every frame of pandas is one of polars
            return frame
        return other.lazy() if engine == "lazy" else other
    return frame


def fitted(build, columns, options, more):
    """What becomes of a case: a model is built, fitted with a budget, and its result printed."""
    unit = "respondent" if more.get("respondent") else "row"
    budget = pr.Budget(epsilon=9.0, delta=0.5, unit=unit)

    def call():
        model = build(framed(**columns), **more)
        result = model.fit(1.0, budget=budget, rng=np.random.default_rng(1), **options)
        (spending,) = budget.spendings
        assert spending.epsilon >= 1.0
        result.to_json()
        if options.get("alpha"):  # a summary takes as long as ten fits
            str(result.summary())

    return settled(call, budget)


LISTED = mostly(st.just(ITEMS), of(None, ["a", "b"], ["b", "a", "c", "d", "e"], ["a"], [], "abcd"))
ROWS = {"max_rows": of(9, 9, 9, ..., 1), "excess": mostly(st.just(...), st.just("sample"), 9)}
PERSON = {"respondent": of("who", "who", "who", ..., None), **ROWS}
LEVEL = of(..., ..., ..., ..., 0.05)


def cases(columns, options, **more):
    return st.tuples(columns, arguments(alpha=LEVEL, **options), arguments(**more))


LONG = columns_of(
    item1=of("a", "b"), item2=of("c", "d"), outcome=of(1, -1, 1.0, None), who=st.integers(0, 4)
)
COMPARED = {
    "items": LISTED,
    **PERSON,
    "ties": of(..., True),
    "distinct_pairs": of(..., False, False, False),
    "design": of(..., ..., "public"),
    "pair_counts": mostly(st.just(...), of("release", "equal", {("a", "b"): 3}), 9),
    "counts": mostly(st.just(...), of("outcome", "who", "count")),
}
METHOD = of(..., "counts", "objective")
NOISE = of(..., ..., "laplace", "zero-sum-laplace", "permutohedron")


def test_comparisons():
    explore(
        cases(LONG, {"method": METHOD, "noise": NOISE}, **COMPARED),
        lambda case: fitted(pr.PrivateBTL, *case),
    )


def test_largest_worths():
    def build(frame, **more):
        return pr.PrivateTopK(frame, 1, **more)

    explore(cases(LONG, {}, **COMPARED), lambda case: fitted(build, *case))


WIDE = columns_of(
    a=of(1, 1.0), b=of(2), c=of(3), d=of(4, 4, 4, 4, 4, None, 3), who=st.integers(0, 4)
)
RANKED = {
    "items": LISTED,
    "respondent": PERSON["respondent"],
    "max_rows": ROWS["max_rows"],
}
COMPLETED = {"ties": of("complete", "complete", ...), "missing": of("complete", "bottom", ...)}
HALVED = {"ties": of(True, True, ...), "missing": of("half", "half", "bottom", ...)}


@pytest.mark.parametrize("model", [pr.PrivateRankAggregation, pr.UniformityTest])
def test_rankings(model):
    voted = model is pr.PrivateRankAggregation
    few, shared = ({}, HALVED) if voted else ({"draws": of(99)}, COMPLETED)
    # two levels of the index have the name of respondents, once
    levels = {"columns": [(name, [k, k], None) for k, name in enumerate("abcd", 1)]}
    levels |= {"index": "levels", "engine": "pandas"}
    once = [(levels, few and {"draws": 99}, {"items": ITEMS, "respondent": "who"})]
    explore(cases(WIDE, few, **RANKED, **shared), lambda case: fitted(model, *case), once)


CHOSEN = columns_of(choice=of(*ITEMS), group=of("u", "v"), who=st.integers(0, 4))
CATEGORIES = {"categories": LISTED, "respondent": of(..., ..., "who"), "max_rows": of(..., 9)}


def test_choices():
    def build(frame, **more):
        return pr.UniformityTest.from_formula("choice ~ 1", frame, **more)

    explore(cases(CHOSEN, {"draws": of(99)}, **CATEGORIES), lambda case: fitted(build, *case))


# named by half a character, once: nothing that Arrow can hold
HALF = {"columns": [("choice", ["a", "b"], None), ("group", ["u", "v"], None)], "index": None}
HALF["columns"].append(("who", ["\ud800", 0], None))
HALF["engine"] = "pandas"
SQUARE = [("\ud800", ["a", "a"], None), ("b", [0, 1], None), ("c", [1, 0], None)]


def test_groups():
    def build(frame, **more):
        return pr.ClosenessTest.from_formula("choice ~ group", frame, **more)

    more = {"levels": mostly(st.just(["u", "v"]), of(None, ["u"], ["v", "w"], "uv"))}
    more |= {"labels": of(..., "private"), "paired": mostly(st.just(...), of(True), 9)}
    more |= CATEGORIES
    few = {"permutations": of(19)}
    named = {"levels": ["u", "v"], "categories": ITEMS, "respondent": "who"}
    once = [(HALF, {"permutations": 19}, named)]
    explore(cases(CHOSEN, few, **more), lambda case: fitted(build, *case), once)


def test_conversions():
    forms = {"items": LISTED, "respondent": of(..., None, "who")}
    named = ["long", "winner-loser", "counts", "wide", "matrix", "rankings"]
    pairs = st.tuples(st.just("comparisons"), of(*named), of(LONG, WIDE).flatmap(lambda x: x))
    orders = st.tuples(st.just("rankings"), of("ranks", "orders", "long"), WIDE)
    converts = {"comparisons": pr.as_comparisons, "rankings": pr.as_rankings}

    def convert(case):
        (target, form, columns), more = case
        return settled(lambda: converts[target](framed(**columns), form, **more))

    unnamed = [(name, [k, k], None) for k, name in enumerate([None, "b", "c"])]
    halves = [(name, [None, "\ud800"] if name == "c" else [1, 1], None) for name in "abc"]
    once = [
        (("comparisons", "matrix", HALF | {"columns": columns}), {"items": ITEMS})
        for columns in (SQUARE, unnamed, halves)
    ]
    explore(st.tuples(st.one_of(pairs, orders), arguments(**forms)), convert, once)
