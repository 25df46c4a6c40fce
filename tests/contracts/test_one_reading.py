"""A user's frame is read once for each object that is built from it.

A lazy frame is a query, and a query may give other rows each time: `unique` keeps any row of a
person, `random()` draws again, a file has grown. What is decided of one reading must not be applied
to the rows of another.
"""

import ast
import warnings

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from planting import planted
from test_architecture import MODULES, TREES

import privrank as pr
from privrank import closeness
from privrank.encode import clusters, frames, groups

PEOPLE = 100
ITEMS = ["a", "b", "c"]


def table(seed=1):
    """One row of each of many people, and one more row of some: answers, ranks and groups."""
    rng = np.random.default_rng(seed)
    who = np.r_[np.arange(PEOPLE), np.arange(0, PEOPLE, 2)]
    ranks = 1 + np.argsort(rng.random((len(who), 3)), axis=1)
    frame = pd.DataFrame(ranks, columns=ITEMS)
    frame["who"] = who
    frame["wave"] = np.where((np.arange(len(who)) < PEOPLE) ^ (who % 3 == 0), "x", "y")
    frame["choice"] = rng.choice(ITEMS, len(who))
    pair = np.array([("a", "b"), ("b", "c"), ("a", "c")], dtype=object)[
        rng.integers(3, size=len(who))
    ]
    frame["item1"], frame["item2"] = pair.T
    frame["outcome"] = rng.choice([-1, 1], len(who))
    return frame


OTHERS = table(2).drop_duplicates("who").assign(who=lambda rows: rows["who"] + 1000)
PERSON = {"respondent": "who"}
PAIRS = {"items": ITEMS, **PERSON}
LEVELS = {"levels": ["x", "y"], **PERSON}
MODELS = {
    "uniformity": lambda frame: pr.UniformityTest(frame, items=ITEMS, **PERSON),
    "uniformity of choices": lambda frame: pr.UniformityTest.from_formula(
        "choice ~ 1", frame, categories=ITEMS, **PERSON
    ),
    "identity": lambda frame: pr.IdentityTest(frame, "uniform", items=ITEMS, **PERSON),
    "closeness": lambda frame: pr.ClosenessTest.from_formula("a + b + c ~ wave", frame, **LEVELS),
    "closeness of choices": lambda frame: pr.ClosenessTest.from_formula(
        "choice ~ wave", frame, categories=ITEMS, **LEVELS
    ),
    "closeness, labels private": lambda frame: pr.ClosenessTest.from_formula(
        "choice ~ wave", frame, categories=ITEMS, labels="private", **LEVELS
    ),
    "two frames": lambda frame: pr.ClosenessTest(frame, OTHERS, items=ITEMS, **PERSON),
    "consensus": lambda frame: pr.PrivateRankAggregation(frame, items=ITEMS, **PERSON),
    "worths": lambda frame: pr.PrivateBTL(frame, **PAIRS),
    "worths, drawn rows": lambda frame: pr.PrivateBTL(frame, excess="sample", **PAIRS),
    "worths, public": lambda frame: pr.PrivateBTL(frame, design="public", **PAIRS),
    "worths of groups": lambda frame: pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ wave", frame, items=ITEMS, levels={"wave": ["x", "y"]}, **PERSON
    ),
    "leading items": lambda frame: pr.PrivateTopK(frame, 1, **PAIRS),
}  # fmt: skip


def one_row_each(frame):
    """A random row of each person, of a random part of the people: another one at each call."""
    some = frame.sample(frac=1.0, random_state=np.random.default_rng()).drop_duplicates("who")
    return some[: np.random.default_rng().integers(60, 95)]


def polars_unique():
    return pl.from_pandas(table()).lazy().unique("who")


def polars_shuffled():
    drawn = pl.from_pandas(table()).lazy()
    return drawn.map_batches(
        lambda rows: pl.from_pandas(one_row_each(rows.to_pandas())),
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )


def duckdb_distinct():
    rows = duckdb.from_df(table())
    return rows.query("rows", "select distinct on (who) * from rows")


def duckdb_random():
    rows = duckdb.from_df(table())
    return rows.query(
        "rows",
        "select distinct on (who) * replace (case when random() < .5 then 'x' else 'y' end as "
        "wave) from rows where random() < .8",
    )


def dask_random(*, changing):
    """A frame of Dask that gives other rows in each pass, or the same, and a list of its passes."""
    rows, passes = table().drop_duplicates("who"), []

    def some_rows(part):
        if 0 in part["who"].values:  # one partition counts for all
            passes.append("changing" if changing else "the same")
        rng = np.random.default_rng(len(passes) if changing else 1)
        return part.assign(
            wave=rng.choice(["x", "y"], len(part)),
            outcome=rng.choice([-1, 1], len(part)),
            choice=rng.choice(ITEMS, len(part)),
            **dict(zip(ITEMS, 1 + np.argsort(rng.random((3, len(part))), axis=0), strict=True)),
        )

    frame = dask.dataframe.from_pandas(rows, npartitions=3)
    return frame.map_partitions(some_rows, meta=frame._meta), passes


LOCAL = {
    "pandas": lambda: one_row_each(table()),
    "polars, unique": polars_unique,
    "polars, shuffled": polars_shuffled,
    "DuckDB, distinct on": duckdb_distinct,
    "DuckDB, random": duckdb_random,
}


@pytest.fixture
def readings(monkeypatch):
    """The people of every evaluation of a frame."""
    seen, honest = [], frames.evaluate

    def recorded(view, columns, **how):
        if "who" not in columns:  # rows that were read, again
            yield from honest(view, columns, **how)
            return
        people = set()
        seen.append(people)
        for piece in honest(view, columns, **how):
            people |= set(piece.get_column("who").to_list())
            yield piece

    monkeypatch.setattr(frames, "evaluate", recorded)
    return seen


def released(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(1.0, rng=np.random.default_rng(2))


def sizes(model):
    """The numbers of units of a model's samples, where these are public or held."""
    encoded = model._encoded
    parts = getattr(encoded, "_parts", None)
    if isinstance(parts, list | tuple):
        return [part.sample.nobs for part in parts]
    return [encoded.design.nobs if hasattr(encoded, "design") else encoded.sample.nobs]


@pytest.mark.parametrize("engine", LOCAL)
@pytest.mark.parametrize("name", MODELS)
def test_everybody_is_in_one_reading_once(name, engine, readings):
    for _ in range(3):
        readings.clear()
        model = MODELS[name](LOCAL[engine]())
        expected = 2 if name == "two frames" else 1
        assert len(readings) == expected, "a frame was evaluated again"
        assert sum(sizes(model)) == sum(map(len, readings)) <= PEOPLE * expected
        released(model)
        assert len(readings) == expected


@pytest.mark.parametrize("engine", ["polars, unique", "DuckDB, distinct on"])
def test_groups_of_another_reading_are_seen(engine, readings, monkeypatch):
    # planted: who is in which group is decided on one reading, and the rows are those of another
    planted(
        monkeypatch,
        groups,
        "groups_of_formula",
        "encoded = read_samples(view, rules, Groups(group, labels, paired))[0]",
        "encoded = read_samples(view, rules, Groups(group, labels, paired))[0]\n"
        "    again = read_samples(view, rules, Groups(group, labels, paired))[0]\n"
        "    encoded = [replace(one, _people=other._people) "
        "for one, other in zip(encoded, again, strict=True)]",
    )
    monkeypatch.setattr(closeness, "groups_of_formula", groups.groups_of_formula)
    MODELS["closeness"](LOCAL[engine]())
    assert len(readings) == 2


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
def test_a_pass_that_is_not_compared_with_the_first_is_seen(monkeypatch):
    planted(monkeypatch, clusters, "_again", "met[0] != first", "False")
    frame, _ = dask_random(changing=True)
    # nothing is refused: the guard below is what the fingerprint is for
    assert released(MODELS["closeness of choices"](frame)).nobs == PEOPLE


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
@pytest.mark.parametrize("name", MODELS)
def test_another_pass_of_a_cluster_gives_the_same_rows_or_a_fit_error(name):
    for frame, passes in (dask_random(changing=True), dask_random(changing=False)):
        model = MODELS[name](frame)
        budget = pr.Budget(epsilon=1.0, unit="respondent")
        others = PEOPLE if name == "two frames" else 0
        assert sum(sizes(model)) == PEOPLE + others and len(passes) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = model.fit(1.0, budget=budget, rng=np.random.default_rng(2))
            except pr.FitError as error:
                assert len(passes) > 1 and "frame.persist()" in str(error)
                assert "changing" in passes[0]
            else:
                # a fit that has used a second pass has found the rows of the first in it
                assert len(passes) == 1 or "changing" not in passes[0]
                assert result.nobs in (PEOPLE, PEOPLE + others)
        assert budget.left[0] == 0.0


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
def test_the_error_of_another_pass_holds_what_was_released():
    # net wins were counted when the model was made, the design effect is measured in another pass
    frame, _ = dask_random(changing=True)
    model = MODELS["worths, public"](frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = model.fit(np.inf, dependence="none", rng=np.random.default_rng(1))
        assert fit.nobs == PEOPLE
        with pytest.raises(pr.FitError, match="A later pass over the frame") as caught:
            pr.PrivateBTL(frame, max_rows=2, **PAIRS).fit(
                4.0, dependence="worst", rng=np.random.default_rng(1)
            )
        assert caught.value.release is not None and caught.value.__context__ is None
        again = pr.PrivateBTL.from_release(caught.value.release)
    assert again.nobs == PEOPLE


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["closeness of choices", "consensus", "worths of groups"])
def test_spark_counts_nobody_twice(name, spark):
    from pyspark.sql import functions as F

    rows = spark.createDataFrame(table().drop_duplicates("who"))
    rows = rows.withColumn("wave", F.when(F.rand() < 0.5, "x").otherwise("y"))
    for _ in range(2):
        model = MODELS[name](rows)
        assert sum(sizes(model)) == PEOPLE
        try:
            assert released(model).nobs == PEOPLE
        except pr.FitError as error:
            assert "frame.cache()" in str(error)
        rows = rows.cache()
        rows.count()


# Methods that evaluate a query or select of its rows, and who may call them on a user's frame.
EVALUATING = {"collect", "collect_batches", "compute", "fetch_record_batch", "filter"}
EVALUATING |= {"group_by", "persist", "project", "select", "to_arrow_reader", "to_arrow"}
EVALUATING |= {"to_native", "to_pandas", "to_polars", "toPandas", "to_delayed", "mapInArrow"}
ALLOWED = {
    # one function evaluates a frame; the others describe a query, or look at rows it has given
    "encode.frames": {
        "evaluate": {"collect", "select"},
        "_pieces": {
            *("collect", "collect_batches", "fetch_record_batch", "to_arrow_reader", "to_native")
        },
        "check_respondents": {"to_native"},
        "collect": {"to_native"},
        "column_of": {"to_native"},
        "series_of": {"to_native"},
        "grouped": {"group_by", "select"},
        "_replaced": {"project", "to_native"},
    },
    # cells of rows that were read
    "encode.coding": {"_key": {"to_native"}, "_texts": {"to_arrow", "to_native"}},
    # workers read their own partitions
    "encode.clusters": {
        "on_workers": {"select", "to_native"},
        "_on_dask": {"compute", "to_delayed"},
        "added": {"collect", "mapInArrow"},
    },
}


def is_own(node):
    """Whether an attribute is a function of `encode` itself, such as frames.collect."""
    return isinstance(node.value, ast.Name) and node.value.id in {"frames", "self", "columns"}


def evaluations(tree):
    """Names of evaluating methods that are reached, by the innermost function around them."""
    found = {}

    def walk(node, function):
        if isinstance(node, ast.FunctionDef):
            function = node.name
        if isinstance(node, ast.Attribute) and node.attr in EVALUATING and not is_own(node):
            found.setdefault(function, set()).add(node.attr)
        if isinstance(node, ast.Constant) and node.value in EVALUATING - {"filter", "compute"}:
            found.setdefault(function, set()).add(node.value)
        for child in ast.iter_child_nodes(node):
            walk(child, function)

    walk(tree, "")
    return found


def test_one_function_evaluates_a_frame():
    found = {module: evaluations(TREES[module]) for module in MODULES}
    assert {module: by for module, by in found.items() if by} == ALLOWED


def test_an_evaluation_elsewhere_is_seen():
    tree = ast.parse("def blocks(view):\n    return view.filter(x), getattr(view, 'collect')()")
    assert evaluations(tree) == {"blocks": {"filter", "collect"}}
