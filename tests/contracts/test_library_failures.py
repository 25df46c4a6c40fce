"""A library that fails says so: its failure is not reported as a fault of the data."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privrank as pr

ITEMS = ["a", "b", "c"]
ROWS = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1), ("a", "b", -1)]
GOOD = pd.DataFrame(ROWS * 5, columns=["item1", "item2", "outcome"])
GOOD["group"] = np.repeat(["no", "yes"], 10)
RANKS = pd.DataFrame([[1, 2, 3], [2, 1, 3], [3, 1, 2], [1, 3, 2]], columns=ITEMS)
ARGUMENTS = {"items": ITEMS, "respondent": None, "ties": False, "design": "public"}


def comparisons():
    return pr.PrivateBTL(GOOD, **ARGUMENTS)


def covariates():
    formula = "item1 + item2 + outcome ~ C(group, Sum)"
    return pr.PrivateBTL.from_formula(formula, GOOD, levels={"group": ["no", "yes"]}, **ARGUMENTS)


def groups():
    data = RANKS.assign(group=["x", "x", "y", "y"])
    return pr.ClosenessTest.from_formula("a + b + c ~ group", data, levels=["x", "y"])


def hypothesis():
    return comparisons().fit(epsilon=np.inf).wald_test("a = b")


FAILING = {
    "data frames": (comparisons, "narwhals.from_native"),
    "data frames of rankings": (lambda: pr.UniformityTest(RANKS), "narwhals.from_native"),
    "distinct values": (comparisons, "pandas.factorize"),
    "distinct groups": (groups, "pandas.factorize"),
    "formulas": (covariates, "patsy.ModelDesc.from_formula"),
    "model matrices": (covariates, "patsy.dmatrix"),
    "hypotheses": (hypothesis, "patsy.DesignInfo.linear_constraint"),
    "graphs": (comparisons, "privrank.bradley_terry.paircounts.connected_components"),
}
KINDS = (TypeError, ValueError, KeyError, AttributeError, NotImplementedError, RuntimeError)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("call", "broken"), FAILING.values(), ids=FAILING)
def test_the_failure_of_a_library_is_seen(monkeypatch, call, broken, kind):
    call()
    failure = kind("the library failed")

    def fail(*_, **__):
        raise failure

    monkeypatch.setattr(broken, fail)
    with pytest.raises(Exception) as raised:
        call()
    # a library's own message may quote a cell, so that of the columns names its type alone
    hidden = f"could not be computed ({kind.__name__}, " in str(raised.value)
    assert failure in (raised.value, raised.value.__cause__) or hidden


def test_parts_of_a_graph_are_checked_before_they_are_named(monkeypatch):
    monkeypatch.setattr(
        "privrank.bradley_terry.paircounts.connected_components", lambda *_, **__: (3, np.arange(3))
    )
    with pytest.raises(RuntimeError, match="scipy's connected_components"):
        comparisons()
    monkeypatch.undo()
    apart = pd.DataFrame([("a", "b", 1), ("c", "d", 1)], columns=["item1", "item2", "outcome"])
    with pytest.raises(ValueError, match="c, d are never compared with the others"):
        pr.PrivateBTL(apart, **ARGUMENTS | {"items": [*ITEMS, "d"]})


CONTAINERS = {
    "lists": GOOD.assign(item1=[["a"]] * 20),
    "arrays": GOOD.assign(item1=[np.array(["a"])] * 20),
    "arrow lists": GOOD.assign(
        item1=pd.Series([["a"]] * 20, dtype=pd.ArrowDtype(pa.list_(pa.string())))
    ),
    "polars lists": pl.from_pandas(GOOD).with_columns(item1=pl.Series([["a"]] * 20)),
    "polars arrays": pl.from_pandas(GOOD).with_columns(
        item1=pl.Series([["a", "b"]] * 20, dtype=pl.Array(pl.String, 2))
    ),
}


@pytest.mark.parametrize("frame", CONTAINERS.values(), ids=CONTAINERS)
def test_columns_of_containers_are_refused(frame):
    with pytest.raises(TypeError, match="column 'item1' must hold names or numbers, not lists"):
        pr.PrivateBTL(frame, **ARGUMENTS)


@pytest.mark.parametrize("thing", [None, 3, "rows", [1, 2], {"item1": ["a"]}, np.eye(3)])
def test_what_is_no_data_frame_is_refused(thing):
    with pytest.raises(TypeError, match="comparisons must be a data frame .* got"):
        pr.PrivateBTL(thing, **ARGUMENTS)


@pytest.mark.parametrize(
    ("contrast", "said"),
    [
        *((given, "cannot be evaluated on its") for given in ("3", "[]", "'x'", "Treatment('z')")),
        *((given, "must use contrasts of patsy") for given in ("abs", "Nope", "open('x').read()")),
    ],
)
def test_a_contrast_that_is_none_is_refused(contrast, said):
    formula = f"item1 + item2 + outcome ~ C(group, {contrast})"
    with pytest.raises(ValueError, match=f"formula {said}"):
        pr.PrivateBTL.from_formula(formula, GOOD, levels={"group": ["no", "yes"]}, **ARGUMENTS)
