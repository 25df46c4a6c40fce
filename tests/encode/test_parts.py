"""Whole respondents are the unit of work: neither parts nor engines change what is released."""

import warnings

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privrank as pr
from privrank.encode import clusters, coding, comparisons, frames
from privrank.encode.comparisons import ComparisonColumns, ComparisonSpec, count_all
from privrank.encode.samples import encode_choices, encode_rankings
from privrank.kernels.hashing import siphash
from privrank.mechanisms import samples, tallies
from privrank.release.survey import Design

ITEMS = list("abcde")


def survey(people=400, seed=1, ties=False, groups=False):
    """Rows of respondents who answer from 1 to 8 pairs, some of them twice; names are texts."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), rng.integers(1, 9, people))
    pairs = np.array([rng.choice(5, 2, replace=False) for _ in who])
    items = np.array(ITEMS, dtype=object)[pairs]
    outcome = rng.choice([-1, 0, 1] if ties else [-1, 1], len(who)).astype(float)
    outcome[rng.random(len(who)) < 0.05] = np.nan
    names = np.array([f"n°{each:05d}" for each in who], dtype=object)
    frame = pd.DataFrame(
        {"who": names, "item1": items[:, 0], "item2": items[:, 1], "outcome": outcome}
    )
    return frame.assign(sex=np.where(who % 3, "f", "m")) if groups else frame


def duck(frame):
    return duckdb.from_arrow(pa.Table.from_pandas(frame, preserve_index=False))


def dask(frame):
    import dask.dataframe as dd

    return dd.from_pandas(frame, npartitions=3)


ENGINES = {
    "pandas": lambda frame: frame.sample(frac=1.0, random_state=3),
    "polars": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame[::-1], preserve_index=False),
    "duckdb": duck,
    "dask": dask,
}
SAMPLED = {"max_rows": 3, "excess": "sample"}
REFUSED = {"max_rows": 8, "distinct_pairs": False}
FITS = {
    "sampled": ({}, SAMPLED, 1.0),
    "sampled with repeated pairs": ({}, SAMPLED | {"distinct_pairs": False}, 1.0),
    "refused": ({}, REFUSED, 1.0),
    "ties": ({"ties": True}, SAMPLED, 1.0),
    "groups": ({"groups": True}, SAMPLED, 5.0),
    "groups refused": ({"groups": True}, REFUSED, 5.0),
    "public": ({}, REFUSED | {"design": "public"}, 1.0),
    "non-private": ({}, SAMPLED, np.inf),
}


def fitted(frame, made, options, epsilon, dependence="worst"):
    shared = {"items": ITEMS, "respondent": "who", "ties": made.get("ties", False)} | options
    if made.get("groups"):
        formula = "item1 + item2 + outcome ~ sex"
        model = pr.PrivateBTL.from_formula(formula, frame, levels={"sex": ["f", "m"]}, **shared)
    else:
        model = pr.PrivateBTL(frame, **shared)
    given = {} if epsilon == np.inf or dependence is None else {"dependence": dependence}
    result = model.fit(epsilon, rng=np.random.default_rng(1), **given)
    return result.release.to_json()


def cut_into(patch, parts):
    """Cut frames into so many parts, in batches of few rows; one part is none at all."""
    patch.setattr(frames, "PARTS", parts)
    patch.setattr(frames, "BATCH", 100 if parts > 1 else 10**9)


# pair moments are for models without covariates
SECOND_STAGES = [
    (name, dependence)
    for name, (made, _, _) in FITS.items()
    for dependence in ("worst", "pairs")
    if dependence == "worst" or not made.get("groups")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "dependence"), SECOND_STAGES)
def test_parts_and_engines_release_the_same(name, dependence, monkeypatch):
    made, options, epsilon = FITS[name]
    frame = survey(**made)
    found = set()
    for engine, parts in [("pandas", 1), *((each, 7) for each in ENGINES), ("duckdb", 64)]:
        cut_into(monkeypatch, parts)
        found.add(fitted(ENGINES[engine](frame), made, options, epsilon, dependence))
    assert len(found) == 1


ROWS = {
    "private": ({}, {}),
    "ties": ({"ties": True}, {}),
    "groups": ({"groups": True}, {}),
    "public": ({}, {"design": "public"}),
    "public groups": ({"groups": True}, {"design": "public"}),
    "counted": ({}, {"counts": "times"}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROWS)
def test_rows_in_batches_release_the_same(name, monkeypatch):
    made, options = ROWS[name]
    frame = survey(**made).drop(columns="who")
    if "counts" in options:
        # of the first rows, which a batch is made of, none counts
        frame["times"] = np.where(np.arange(len(frame)) < 300, 0, np.arange(len(frame)) % 3)
    found = {}
    for engine in ENGINES:
        for batch in (7, 10**9):
            monkeypatch.setattr(frames, "BATCH", batch)
            given = {"respondent": None} | options
            found[engine, batch] = fitted(ENGINES[engine](frame), made, given, 1.0, None)
    assert len(set(found.values())) == 1


def declared(unit="row", max_rows=1, excess="refuse"):
    """The declared facts of a private design, without units."""
    return Design(tuple(ITEMS), 0, unit, max_rows, True, False, "private", None, excess=excess)


def test_rows_of_a_lazy_frame_come_in_batches(monkeypatch):
    monkeypatch.setattr(frames, "BATCH", 7)
    columns = ComparisonColumns("item1", "item2", "outcome", None)
    rules, seen = ComparisonSpec(columns, tuple(ITEMS), declared(), None), []
    view = frames.open_frame(ENGINES["duckdb"](survey()), "frame")
    with monkeypatch.context() as patch:
        added = comparisons._added
        patch.setattr(comparisons, "_added", lambda *some: seen.append(len(some)) or added(*some))
        counted, parts = count_all(view, rules)
    # 60 groups: 20 pairs in both orders, three answers
    assert sum(seen) >= 8 and parts.held == () and counted.nobs == len(survey())


@pytest.mark.parametrize("odd", ["o'ne", 'o"ne', "", "o\0ne", "\udc80", "one;--", "o\ne"])
def test_items_of_any_name_are_numbered_or_left_as_they_are(odd):
    names = {item: odd if item == "a" else item for item in ITEMS}
    frame = survey().drop(columns="who")
    for column in ("item1", "item2"):
        frame[column] = pd.Series([names[item] for item in frame[column]], dtype=object)
    if odd == "\udc80":  # half a character, which DuckDB cannot hold
        frame = frame[(frame[["item1", "item2"]] != odd).all(axis=1)]
    frame = frame.rename(columns={"item1": 'the "1st"'})
    options = {"items": list(names.values()), "respondent": None, "item1": 'the "1st"'}
    plain, lazy = (
        pr.PrivateBTL(data, **options).fit(1.0, rng=np.random.default_rng(1)).release.to_json()
        for data in (frame, ENGINES["duckdb"](frame))
    )
    assert lazy == plain


@pytest.mark.parametrize("most", [0, 4096])
@pytest.mark.parametrize("cell", ["f", None])
def test_an_item_that_is_not_declared_is_refused_numbered_or_not(most, cell, monkeypatch):
    monkeypatch.setattr(frames, "_MAX_NUMBERED", most)
    frame = survey().drop(columns="who").replace({"item2": {"a": cell}})
    lazy = ENGINES["duckdb"](frame)
    counted = frames.numbered(frames.open_frame(lazy, "frame"), ["item2"], ITEMS)
    assert (counted.collect_schema()["item2"] == nw.String) is (most == 0)
    with pytest.raises(ValueError, match="^column 'item2' contains a missing value"):
        pr.PrivateBTL(lazy, items=ITEMS, respondent=None)


def parts_of(frame):
    columns = ComparisonColumns("item1", "item2", "outcome", "who")
    declared_rows = declared(unit="respondent", max_rows=3, excess="sample")
    rules = ComparisonSpec(columns, tuple(ITEMS), declared_rows, None)
    return count_all(frames.open_frame(frame, "frame"), rules)


@pytest.mark.parametrize("engine", ENGINES)
def test_nobody_is_in_two_parts_or_lost(engine, monkeypatch):
    cut_into(monkeypatch, 7)
    frame = survey()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counted, parts = parts_of(ENGINES[engine](frame))
    expected = coding.numbers_of_names(frame["who"].unique())
    if engine != "dask":  # which makes them again each time
        names = np.concatenate([part.name for part in parts.held])
        assert len(parts.held) == 7 and sorted(names.tolist()) == sorted(expected.tolist())
    # what names add up to and the number of them say who is in the parts, wherever these are
    assert parts.total(lambda part: part.name.sum()) == expected.sum()
    assert counted.nobs == parts.total(lambda part: len(part.name)) == len(expected)
    assert parts.total(len_of) == frame["outcome"].notna().sum()


def rankings(people=300, seed=2, ties=False, gaps=False, paired=False):
    """Rankings of four items, and choices, of respondents who give from one to three of each."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), 2 if paired else rng.integers(1, 4, people))
    ranks = 1.0 + np.argsort(rng.random((len(who), 4)), axis=1)
    if ties:
        ranks = np.where(rng.random(len(who))[:, None] < 0.3, np.ceil(ranks / 2), ranks)
    if gaps:
        ranks[rng.random(ranks.shape) < 0.1] = np.nan
    frame = pd.DataFrame(ranks, columns=ITEMS[:4])
    frame["who"] = np.array([f"n°{each:05d}" for each in who], dtype=object)
    frame["pick"] = np.array(list("xyz"), dtype=object)[rng.choice(3, len(who), p=[0.5, 0.3, 0.2])]
    one = np.arange(len(who)) % 2 if paired else who % 3
    frame["sex"] = np.where(one, "f", "m")
    return frame


WHO = {"respondent": "who", "max_rows": 3}
RANKED = {"items": ITEMS[:4]} | WHO
PICKED = {"categories": list("xyz")} | WHO
PARTIAL, COMPLETED = {"ties": True, "gaps": True}, {"ties": "complete", "missing": "complete"}


def choice_test(frame, options):
    return pr.UniformityTest.from_formula("pick ~ 1", frame, **options)


def choice_identity(frame, options):
    null = {"x": 0.5, "y": 0.3, "z": 0.2}
    return pr.IdentityTest.from_formula("pick ~ 1", frame, null=null, **options)


def identity(frame, options):
    return pr.IdentityTest(frame, pr.Mallows(ITEMS[:4], 0.9), **options)


def groups(frame, options):
    left = "pick" if "categories" in options else "a + b + c + d"
    options = {name: value for name, value in options.items() if name != "items"}
    return pr.ClosenessTest.from_formula(f"{left} ~ sex", frame, levels=["f", "m"], **options)


def consensus(frame, options):
    return pr.PrivateRankAggregation(frame, **options)


def uniformity(frame, options):
    return pr.UniformityTest(frame, **options)


def twice(frame, options):
    """The same respondents in two groups, once in each."""
    options = options | {"max_rows": 1, "paired": True}
    return groups(frame, options)


SAMPLES = {
    "consensus": (consensus, {}, RANKED, {}),
    "consensus of rows": (consensus, {}, {"items": ITEMS[:4]}, {}),
    "consensus with ties and gaps": (
        consensus, PARTIAL, RANKED | {"ties": True, "missing": "half"}, {},
    ),
    "Borda totals": (consensus, {}, RANKED, {"method": "borda"}),
    "published": (consensus, {}, RANKED, {"method": "kwiksort"}),
    "uniformity": (uniformity, {}, RANKED, {}),
    "uniformity of rows": (uniformity, {}, {"items": ITEMS[:4]}, {}),
    "uniformity, completed": (uniformity, PARTIAL, RANKED | COMPLETED, {}),
    "uniformity, dealt": (uniformity, {}, RANKED, {"method": "bucket"}),
    "identity": (identity, {}, RANKED, {}),
    "identity, completed": (
        identity, {"ties": True}, RANKED | {"ties": "complete"}, {},
    ),
    "choices": (choice_test, {}, PICKED, {}),
    "choices of rows": (choice_test, {}, {"categories": list("xyz")}, {}),
    "identity of choices": (choice_identity, {}, PICKED, {}),
    "closeness": (groups, {}, RANKED, {}),
    "closeness, completed": (groups, PARTIAL, RANKED | COMPLETED, {}),
    "closeness of choices": (groups, {}, PICKED, {}),
    "paired": (twice, {"paired": True}, RANKED, {}),
    "paired choices": (twice, {"paired": True}, PICKED, {}),
}  # fmt: skip


def released(name, engine, frame):
    model, _, options, how = SAMPLES[name]
    result = model(engine(frame), options).fit(1.0, **how, rng=np.random.default_rng(1))
    return result.release.to_json()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAMPLES)
def test_parts_and_engines_release_the_same_of_rankings_and_choices(name, monkeypatch):
    frame = rankings(**SAMPLES[name][1])
    found = set()
    for engine, parts in [("pandas", 1), *((each, 7) for each in ENGINES), ("duckdb", 64)]:
        cut_into(monkeypatch, parts)
        found.add(released(name, ENGINES[engine], frame))
    assert len(found) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
def test_rankings_and_choices_are_refused_in_every_part(engine, monkeypatch):
    cut_into(monkeypatch, 7)
    frame, other = rankings(100), pd.Series(np.arange(len(rankings(100))) == 30)
    wrong = {
        "max_rows=2 must bound": (frame, 2),
        "must hold ranks from 1": (frame.assign(a=frame["a"].where(~other, 9.0)), 3),
        "at least one has a tie": (frame.assign(a=frame["b"].where(other, frame["a"])), 3),
        "at least one is incomplete": (frame.assign(a=frame["a"].where(~other)), 3),
        "must name the respondent": (frame.assign(who=frame["who"].where(~other, None)), 99),
        "not listed in categories": (frame.assign(pick=frame["pick"].replace("z", "q")), 3),
    }  # fmt: skip
    for message, (each, most) in wrong.items():
        with pytest.raises(ValueError, match=message) as caught:
            if "categories" in message:
                encode_choices(
                    ENGINES[engine](each), "pick", **PICKED | {"max_rows": most},
                )  # fmt: skip
            else:
                encode_rankings(ENGINES[engine](each), **RANKED | {"max_rows": most})
        assert "n°" not in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
def test_respondents_in_two_groups_are_refused_in_every_part(engine, monkeypatch):
    cut_into(monkeypatch, 7)
    frame = rankings(100)
    frame.loc[frame.index[-1], ["who", "sex"]] = [frame["who"].iloc[0], "f"]
    assert frame["sex"].iloc[0] == "m"
    with pytest.raises(ValueError, match="must be in one group only") as caught:
        groups(ENGINES[engine](frame), PICKED | {"max_rows": 6})
    assert "n°" not in str(caught.value)


def rows_drawn(frame, key, monkeypatch):
    """The row that is drawn of each respondent under a key, ranks and choice, by their numbers."""
    monkeypatch.setattr(samples, "draw_key", lambda rng: np.array([key, 5], dtype=np.uint64))
    ranked = encode_rankings(frame, **RANKED | {"max_rows": 99})
    chosen = encode_choices(frame, "pick", **PICKED | {"max_rows": 99})
    names = np.sort(
        ranked._people.total(lambda part: part.name, lambda *both: np.concatenate(both))
    )
    rows = [samples.one_row_each(each, None, apart=True)._rows for each in (ranked, chosen)]
    counts = samples.one_row_each(chosen, None)._rows
    assert counts.tolist() == np.bincount(rows[1][:, 0], minlength=3).tolist()
    return dict(zip(names.tolist(), np.column_stack(rows).tolist(), strict=True))


@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize("key", [1, 2])
def test_the_row_that_is_drawn_of_one_does_not_depend_on_any_other(key, parts, monkeypatch):
    cut_into(monkeypatch, parts)
    frame = rankings(60)
    one = frame["who"] == "n°00031"
    rows, rest = frame[one], frame[~one]
    (name,) = coding.numbers_of_names(np.array(["n°00031"], dtype=object)).tolist()
    before = rows_drawn(frame, key, monkeypatch)
    del before[name]
    # replaced by one who is called otherwise, and so in another part; who has one row, or many
    # more; who comes first; whose rows are among those of others
    others = [
        rows.assign(who="somebody"),
        rows[:1],
        pd.concat([rows, frame[:20].assign(who="n°00031")]),
        frame[5:25].assign(who=""),
    ]
    for other in others:
        (new,) = coding.numbers_of_names(other["who"].unique()).tolist()
        drawn = set()
        for whole in (
            pd.concat([other, rest]),
            pd.concat([rest, other]),
            pd.concat([rest, other]).sample(frac=1.0, random_state=1),
        ):
            after = rows_drawn(whole, key, monkeypatch)
            drawn.add(tuple(after.pop(new)))
            assert after == before
        # nor on the order of its own rows
        assert len(drawn) == 1
        own = other[ITEMS[:4]].astype(int).to_numpy().tolist()
        assert list(drawn.pop()[:4]) in own


def len_of(part):
    return int(part.count.sum())


def kept(frame, key, monkeypatch):
    """The rows that are kept under a key, by respondent: pairs and answers."""
    monkeypatch.setattr(tallies, "draw_key", lambda rng: np.array([key, 5], dtype=np.uint64))
    model = pr.PrivateBTL(frame, items=ITEMS, respondent="who", **SAMPLED)
    rows = []
    for part in tallies.sample_rows(model._encoded, None)._parts.held:
        columns = part.name[part.person], part.pair, part.sign, part.size
        rows += zip(*(each.tolist() for each in columns), strict=True)
    found = {}
    for who, *row in sorted(rows):
        found.setdefault(who, []).append(row)
    return found


@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize("key", [1, 2])
def test_what_is_kept_of_one_does_not_depend_on_any_other(key, parts, monkeypatch):
    cut_into(monkeypatch, parts)
    frame = survey(60)
    one = frame["who"] == "n°00031"
    rows, rest = frame[one], frame[~one]
    (name,) = coding.numbers_of_names(np.array(["n°00031"], dtype=object)).tolist()
    before = kept(frame, key, monkeypatch)
    del before[name]
    # replaced by one who is called otherwise, and so in another part; who has one row, or many
    # more; who comes first; whose rows are among those of others
    others = [
        rows.assign(who="somebody"),
        rows[1:2],
        pd.concat([rows, frame[:20].assign(who="n°00031")]),
        frame[5:25].assign(who=""),
    ]
    for other in others:
        (new,) = coding.numbers_of_names(other["who"].unique()).tolist()
        for whole in (
            pd.concat([other, rest]),
            pd.concat([rest, other]),
            pd.concat([rest, other]).sample(frac=1.0, random_state=1),
        ):
            after = kept(whole, key, monkeypatch)
            own = after.pop(new)
            assert after == before
            assert sum(size for *_, size in own) <= 3


def test_two_whose_numbers_are_equal_are_two(monkeypatch):
    frame = survey(60)
    cut_into(monkeypatch, 7)
    original = coding.numbers_of_names
    apart = pr.PrivateBTL(frame, items=ITEMS, respondent="who", **SAMPLED)._encoded
    monkeypatch.setattr(coding, "numbers_of_names", lambda names: original(names) % 2)
    monkeypatch.setattr(coding, "numbers_by_row", lambda names: np.zeros(len(names), np.uint64))
    same = pr.PrivateBTL(frame, items=ITEMS, respondent="who", **SAMPLED)._encoded
    assert same.design.nobs == apart.design.nobs == 60
    counts = [tallies.sample_rows(each, None)._pairs[2].sum() for each in (apart, same)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
def test_what_is_refused_is_refused_in_every_part(engine, monkeypatch):
    cut_into(monkeypatch, 7)
    frame = survey(100)
    wrong = {
        "max_rows=3 must bound": (frame, 3),
        "not listed in items": (frame.assign(item1=frame["item1"].replace("a", "z")), 8),
        "must name the respondent of every row": (
            frame.assign(who=frame["who"].where(frame.index != 30, None)), 99,
        ),
    }  # fmt: skip
    for message, (each, most) in wrong.items():
        with pytest.raises(ValueError, match=message) as caught:
            pr.PrivateBTL(
                ENGINES[engine](each), items=ITEMS, respondent="who", max_rows=most,
                distinct_pairs=False,
            )  # fmt: skip
        assert "n°" not in str(caught.value)


def test_parts_of_many_rows_come_one_by_one(monkeypatch):
    cut_into(monkeypatch, 7)
    view = frames.open_frame(survey(300), "frame")
    parts = [part for part in frames.whole_respondents(view, ["who", "item1"], "who") if len(part)]
    assert len(parts) == 7 and sum(map(len, parts)) == len(survey(300))


def test_names_have_the_same_number_in_every_engine():
    whole = np.array([3, -1, 2**60])
    for kind in (np.int64, np.float64, object):
        found = coding.numbers_of_names(whole[:2].astype(kind))
        assert found.tolist() == coding.numbers_of_names(whole)[:2].tolist()
    broken = np.array([1.5, 1.0, 2.0**60, 1e300, np.inf])
    assert len(set(coding.numbers_of_names(broken).tolist())) == len(broken)
    texts = np.array(["", "a", "n°00031", "x" * 100], dtype=object)
    column = frames.open_frame(pl.DataFrame({"who": texts.tolist()}), "frame")["who"]
    assert coding.numbers_by_row(column).tolist() == coding.numbers_of_names(texts).tolist()
    arrow = frames.open_frame(pa.table({"who": ["no", *texts, None]}), "frame")["who"][1:5]
    assert coding.numbers_by_row(arrow).tolist() == coding.numbers_of_names(texts).tolist()


def test_the_hash_is_siphash():
    # the authors' test vectors: the key is 0, 1, ..., 15, and so begins each text
    key = np.arange(16, dtype=np.uint8).view(np.uint64)
    expected = {0: 0x726FDB47DD0E0E31, 8: 0x93F5F5799A932462, 15: 0xA129CA6149BE45E5}
    for size, value in expected.items():
        assert siphash(np.arange(size, dtype=np.uint8), np.array([0, size]), key)[0] == value


class Executors:
    """Rows in some partitions, on which Spark's methods do what they do to a frame of Spark's."""

    def __init__(self, partitions):
        self.partitions = partitions

    def mapInArrow(self, function, schema):
        assert schema == "total binary"
        return Executors([list(function(iter(part))) for part in self.partitions])

    def repartition(self, number):
        assert number == 1
        return Executors([[batch for part in self.partitions for batch in part]])

    def collect(self):
        tables = [pa.Table.from_batches(part).to_pandas() for part in self.partitions]
        return list(pd.concat(tables).itertuples(index=False))


def test_what_sparks_workers_return_is_added_up():
    batches = [pa.RecordBatch.from_pydict({"x": [k, 2 * k]}) for k in range(5)]
    frame = Executors([batches[:2], [], batches[2:]])

    def total(rows):
        return sum(rows.get_column("x").to_list())

    assert clusters._on_spark(frame, total, lambda one, other: one + other) == 30
    assert clusters._on_spark(Executors([[]]), total, None) is None

    with pytest.raises(ValueError, match="^rankings must have at least one row"):
        clusters._on_spark(frame, lambda rows: frames.check_rows(0, "rankings"), None)

    def quoting(rows):  # what the package has not raised itself may quote a cell
        raise ValueError("could not convert string to float: 'Milano'")

    with pytest.raises(ValueError, match="is not shown") as caught:
        clusters._on_spark(frame, quoting, None)
    assert "Milano" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_releases_the_same(spark, tmp_path):
    for name in ("sampled", "refused", "groups", "public"):
        made, options, epsilon = FITS[name]
        frame = survey(100, **made)
        frame.to_parquet(tmp_path / "rows.parquet")
        on_spark = spark.read.parquet(str(tmp_path / "rows.parquet"))
        for dependence in ("worst",) if made.get("groups") else ("worst", "pairs"):
            found = fitted(on_spark, made, options, epsilon, dependence)
            assert found == fitted(frame, made, options, epsilon, dependence)
    with pytest.raises(ValueError, match="must bound the rows of every respondent"):
        pr.PrivateBTL(on_spark, items=ITEMS, respondent="who", max_rows=1)
    some = ("consensus", "consensus of rows", "uniformity, completed", "choices")
    for name in (*some, "closeness of choices"):
        frame = rankings(100, **SAMPLES[name][1])
        frame.to_parquet(tmp_path / "rankings.parquet")
        on_spark = spark.read.parquet(str(tmp_path / "rankings.parquet"))
        found = released(name, lambda _, rows=on_spark: rows, frame)
        assert found == released(name, lambda rows: rows, frame)
