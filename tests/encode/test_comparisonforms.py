"""Every form comes to the same comparisons and the same release; bad input gets one sentence."""

from functools import partial
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from searching import check_refusal

import privrank as pr

ROOT = Path(__file__).parents[2]
ITEMS = ("tea", "coffee", "juice", "water")
PAIRS = tuple(combinations(ITEMS, 2))
# Respondents and wrong names carry a canary, so that messages are searched for a cell of the data.
CANARY = "CANARY"
MARKS = ("order_from",)


def survey(respondents=40, *, ties=True, seed=0):
    """Rankings that share places where `ties`, one row per respondent."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=(respondents, 4)) + [1.0, 0.5, 0.0, -0.5]
    if ties:
        score = np.round(score)
    ranks = pd.DataFrame(score, columns=list(ITEMS)).rank(axis=1, ascending=False, method="min")
    return ranks.assign(respondent=[f"{CANARY}-{k}" for k in range(respondents)])


RANKS = survey()
SCORES = -RANKS[list(ITEMS)]


def long_of(ranks, pairs=PAIRS):
    """Comparisons by the definition, one at a time."""
    rows = []
    for row in ranks.to_dict("records"):
        for a, b in pairs:
            rows.append((row["respondent"], a, b, np.sign(row[b] - row[a])))
    return pd.DataFrame(rows, columns=["respondent", "item1", "item2", "outcome"])


LONG = long_of(RANKS)


def wide_of(long, codes):
    """One column per pair."""
    answers = long.assign(
        pair=long["item1"] + "_vs_" + long["item2"],
        outcome=long["outcome"].astype(object).map(codes),
    )
    return answers.pivot(index="respondent", columns="pair", values="outcome").reset_index()


def wins_of(long):
    """How often the item of a row was preferred to that of a column, and how often they tied."""
    wins, ties = (pd.DataFrame(0, index=list(ITEMS), columns=list(ITEMS)) for _ in range(2))
    for _, a, b, outcome in long.itertuples(index=False):
        if outcome > 0:
            wins.loc[a, b] += 1
        if outcome < 0:
            wins.loc[b, a] += 1
        if outcome == 0:
            ties.loc[a, b] += 1
            ties.loc[b, a] += 1
    return wins, ties


WINS, TIES = wins_of(LONG)
COUNTS = pd.DataFrame(
    [(a, b, WINS.loc[a, b], WINS.loc[b, a], TIES.loc[a, b]) for a, b in PAIRS],
    columns=["item1", "item2", "win1", "win2", "ties"],
)
WINS_ALONE = COUNTS.drop(columns="ties")
NAMED = wide_of(
    LONG.assign(outcome=np.where(LONG["outcome"] > 0, LONG["item1"], LONG["item2"])).assign(
        outcome=lambda frame: frame["outcome"].where(LONG["outcome"] != 0, "same")
    ),
    lambda answer: answer,
)
DECIDED = pd.DataFrame(
    {
        "respondent": LONG["respondent"],
        "winner": np.where(LONG["outcome"] < 0, LONG["item2"], LONG["item1"]),
        "loser": np.where(LONG["outcome"] < 0, LONG["item1"], LONG["item2"]),
        "tied": LONG["outcome"] == 0,
    }
)
KINDS = {"first": 1, "second": 2, "tie": 3}
CODES = {1: 1, -1: 2, 0: 3}
GRADED = {1: "much", -1: "less", 0: "same"}


def convert(frame, form, **options):
    return pr.as_comparisons(frame, form, **({"items": ITEMS} | options))


def by(frame, form, **options):
    return convert(frame, form, respondent="respondent", **options)


PERSONAL = {
    "long": lambda: by(LONG, "long"),
    "long, codes": lambda: by(LONG.assign(outcome=LONG["outcome"].map(CODES)), "long", codes=KINDS),
    "long, names": lambda: by(
        LONG.assign(
            outcome=np.select(
                [LONG["outcome"] > 0, LONG["outcome"] < 0], [LONG["item1"], LONG["item2"]], "same"
            )
        ),
        "long",
        codes={"tie": "same"},
    ),
    "winner-loser": lambda: by(DECIDED, "winner-loser", ties="tied"),
    "wide": lambda: by(wide_of(LONG, CODES), "wide", sep="_vs_", codes=KINDS),
    "wide, pairs": lambda: by(
        wide_of(LONG, CODES), "wide", pairs={f"{a}_vs_{b}": (a, b) for a, b in PAIRS}, codes=KINDS
    ),
    "wide, texts": lambda: by(
        wide_of(LONG, GRADED),
        "wide",
        sep="_vs_",
        codes={"first": ["much", "more"], "second": ["less"], "tie": "same"},
    ),
    "wide, names": lambda: by(NAMED, "wide", sep="_vs_", codes={"tie": "same"}),
    "rankings": lambda: by(RANKS, "rankings", ties=True),
    "rankings, index": lambda: by(RANKS.set_index("respondent"), "rankings", ties=True),
    "rankings, numbered": lambda: convert(RANKS[list(ITEMS)], "rankings", ties=True),
    "polars": lambda: by(pl.from_pandas(wide_of(LONG, CODES)), "wide", sep="_vs_", codes=KINDS),
    "duckdb": lambda: by(duckdb.from_arrow(pyarrow.Table.from_pandas(LONG)), "long"),
}


def release(frame, **options):
    fit = pr.PrivateBTL(frame, ties=True, **options).fit(1.0, rng=np.random.default_rng(0))
    return fit.release.to_record()


@pytest.mark.parametrize("design", ["public", "private"])
def test_respondents_give_the_same_release_in_every_form(design):
    options = {"respondent": "respondent", "max_rows": 6, "design": design}
    expected = release(LONG, items=ITEMS, **options)
    for name, form in PERSONAL.items():
        assert release(form(), **options) == expected, name


LOOSE = LONG.drop(columns="respondent")
COUNTED = {
    "long": lambda: convert(LOOSE, "long").assign(count=1),
    "long, counts": lambda: convert(
        LOOSE.groupby(["item1", "item2", "outcome"]).size().rename("n").reset_index(),
        "long",
        counts="n",
    ),
    "winner-loser": lambda: convert(DECIDED, "winner-loser", ties="tied").assign(count=1),
    "winner-loser, counts": lambda: convert(
        DECIDED.groupby(["winner", "loser", "tied"]).size().rename("n").reset_index(),
        "winner-loser",
        ties="tied",
        counts="n",
    ),
    "wide": lambda: PERSONAL["wide"]().assign(count=1),
    "counts": lambda: convert(COUNTS, "counts", ties="ties"),
    "counts, duckdb": lambda: convert(duckdb.from_df(COUNTS), "counts", ties="ties"),
    "matrix": lambda: convert(WINS, "matrix", ties=TIES),
    "array": lambda: convert(WINS.to_numpy(), "matrix", ties=TIES.to_numpy()),
}


@pytest.mark.parametrize("design", ["public", "private"])
def test_single_comparisons_give_the_same_release_in_every_form(design):
    options = {"respondent": None, "design": design}
    expected = release(LONG, items=ITEMS, **options)
    for name, form in COUNTED.items():
        assert release(form(), counts="count", **options) == expected, name


def test_counts_of_each_respondent():
    counts = (
        LONG.assign(win1=LONG["outcome"] > 0, win2=LONG["outcome"] < 0, ties=LONG["outcome"] == 0)
        .drop(columns="outcome")
        .astype({"win1": int, "win2": int, "ties": int})
    )
    options = {"respondent": "respondent", "max_rows": 6}
    result = by(counts, "counts", ties="ties")
    assert release(result, counts="count", **options) == release(LONG, items=ITEMS, **options)


def plain(frame):
    """Rows as tuples, a missing outcome as None, without what is said of the whole frame."""
    frame = frame.drop(columns=[name for name in MARKS if name in frame])
    frame = frame.rename(columns={"list_outcome": "outcome"})
    rows = frame.astype({"item1": object, "item2": object, "outcome": object})
    return list(rows.where(rows.notna(), None).itertuples(index=False, name=None))


def test_the_frame_declares_what_models_ask_for():
    result = PERSONAL["wide"]()
    assert list(result.columns) == ["respondent", "item1", "item2", "outcome"]
    for name in ("item1", "item2"):
        assert tuple(result[name].cat.categories) == ITEMS
    assert result["outcome"].dtype == np.float64
    counted = convert(COUNTS, "counts", ties="ties")
    assert list(counted.columns) == ["item1", "item2", "outcome", "count", "order_from"]
    assert counted["count"].dtype == np.int64


def test_the_bundled_survey_from_its_wide_file():
    answers = pd.read_csv(ROOT / "data/immigration_answers.csv", na_values=".")
    answers = answers.loc[answers.index.repeat(answers["count"])].drop(columns="count")
    survey = pr.datasets.load_immigration()
    result = pr.as_comparisons(
        answers, "wide", items=survey.items, sep=":", codes={"first": 1, "second": 2, "tie": 0}
    )
    options = {"items": survey.items, "respondent": "respondent", "max_rows": 6}
    assert release(result, **options) == release(survey.comparisons, **options)


def test_an_export_of_a_survey_tool(tmp_path):
    # two more header rows, answers by name, and a code for questions that were seen but skipped
    file = tmp_path / "export.csv"
    file.write_text(
        "ResponseId,Duration,Q1,Q2\nResponse ID,Seconds,Which?,Which?\n{id},{time},{1},{2}\n"
        "R_1,60,I prefer tea,No preference\nR_2,50,I prefer coffee,I prefer juice\nR_3,7,-99,-99\n"
    )
    answers = pd.read_csv(file, skiprows=[1, 2], na_values="-99")
    answers = answers.replace("^I prefer ", "", regex=True)
    pairs = {"Q1": ("tea", "coffee"), "Q2": ("tea", "juice")}
    result = pr.as_comparisons(
        answers, "wide", pairs=pairs, codes={"tie": "No preference"}, respondent="ResponseId"
    )
    assert plain(result) == [
        ("R_1", "tea", "coffee", 1.0),
        ("R_1", "tea", "juice", 0.0),
        ("R_2", "tea", "coffee", -1.0),
        ("R_2", "tea", "juice", -1.0),
        ("R_3", "tea", "coffee", None),
    ]


FRAMES = {
    "long": (LONG, {}),
    "winner-loser": (DECIDED, {"ties": "tied"}),
    "counts": (COUNTS.assign(respondent="ann"), {"ties": "ties"}),
    "wide": (
        wide_of(LONG, GRADED),
        {"sep": "_vs_", "codes": {"first": "much", "second": "less", "tie": "same"}},
    ),
    "rankings": (RANKS, {"ties": True}),
    "orders": (
        RANKS[["respondent"]].assign(best=RANKS[list(ITEMS)].idxmin(axis=1)),
        {"missing": "bottom"},
    ),
}


@pytest.mark.parametrize("form", FRAMES)
def test_engines_agree(form):
    frame, options = FRAMES[form]
    frame = frame.convert_dtypes()
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    expected = sorted(plain(by(frame, form, **options)))
    assert len(expected) >= len(PAIRS)
    for other in (
        table,
        table.to_pandas(types_mapper=pd.ArrowDtype),
        pl.from_pandas(frame),
        pl.from_pandas(frame).lazy(),
        duckdb.from_arrow(table),
        frame.set_index("respondent"),
    ):
        assert sorted(plain(by(other, form, **options))) == expected


# ---- rankings


def listed(row, missing):
    """Comparisons of a partial ranking, one pair at a time."""
    for a, b in combinations(sorted(row, key=list(row).index), 2):
        if row[a] is not None and row[b] is not None:
            yield a, b, float((row[a] < row[b]) - (row[a] > row[b]))
        elif missing == "bottom" and (row[a] is None) != (row[b] is None):
            yield a, b, 1.0 if row[b] is None else -1.0


@pytest.mark.parametrize("missing", ["bottom", "unknown"])
def test_partial_rankings_pair_by_pair(missing):
    # every ranking with ties of every set of four items
    rows = [
        {name: None if rank == 0 else float(rank) for name, rank in zip(ITEMS, ranks, strict=True)}
        for ranks in np.ndindex(3, 3, 3, 3)
        if 2 not in ranks or ranks.count(1) > 0
    ]
    frame = pd.DataFrame(rows, dtype=float)
    result = convert(frame, "rankings", missing=missing, ties=True)
    expected = []
    for number, row in enumerate(rows):
        pairs = list(listed(row, missing)) or [(*ITEMS[:2], None)]
        expected += [(number, *pair) for pair in pairs]
    assert plain(result) == expected


def test_lists_of_the_leading_two():
    places = pd.DataFrame({"best": ["tea", "water"], "next": ["juice", None]})
    result = convert(places, "orders", missing="bottom")
    assert (result.groupby("respondent").size() == [5, 3]).all()
    unknown = convert(places, "orders", missing="unknown")
    assert plain(unknown) == [(0, "tea", "juice", 1.0), (1, "tea", "coffee", None)]


def test_preflib_rankings(tmp_path):
    file = tmp_path / "drinks.toi"
    header = ["# NUMBER ALTERNATIVES: 3", "# NUMBER VOTERS: 3"]
    header += [f"# ALTERNATIVE NAME {k}: {name}" for k, name in enumerate("abc", start=1)]
    file.write_text("\n".join([*header, "2: 2,{1,3}", "1: 3"]))
    result = pr.as_comparisons(pr.read_preflib(file), "rankings", ties=True, missing="bottom")
    assert plain(result)[:3] == [(0, "a", "b", -1.0), (0, "a", "c", 0.0), (0, "b", "c", 1.0)]
    assert plain(result)[6:] == [(2, "a", "c", -1.0), (2, "b", "c", -1.0)]


def test_who_compares_nothing_is_still_counted():
    empty = RANKS.copy()
    empty.loc[[3, 7], list(ITEMS)] = np.nan
    answers = wide_of(LONG, CODES)
    answers.loc[[3, 7], list(answers.columns[1:])] = None
    for result in (
        by(empty, "rankings", ties=True, missing="bottom"),
        by(empty, "rankings", ties=True, missing="unknown"),
        by(answers, "wide", sep="_vs_", codes=KINDS),
    ):
        assert result["respondent"].nunique() == len(RANKS)
        outcome = "list_outcome" if "list_outcome" in result else "outcome"
        lone = result[result[outcome].isna()]
        assert len(lone) == 2 and lone["respondent"].nunique() == 2
        unit = {"respondent": "respondent", "max_rows": 6}
        model = pr.PrivateBTL(result, outcome=outcome, ties=True, **unit)
        assert "40 respondents" in repr(model)


def test_several_rankings_of_a_respondent_keep_no_row_for_an_empty_one():
    frame = pd.DataFrame({"who": ["x", "x", "y"], "a": [1, None, None], "b": [2, None, None]})
    result = pr.as_comparisons(frame, "rankings", respondent="who", missing="unknown")
    assert plain(result) == [("x", "a", "b", 1.0), ("y", "a", "b", None)]


# ---- matrices and counts


def test_a_matrix_is_read_by_the_names_of_its_rows():
    expected = convert(WINS, "matrix", ties=TIES)
    shuffled = WINS.loc[list(ITEMS[::-1]), ["juice", "tea", "water", "coffee"]]
    tidy = WINS.rename_axis("item").reset_index()
    unnamed = WINS.reset_index(drop=True)
    for other in (
        shuffled,
        tidy,
        unnamed,
        WINS.to_numpy(),
        pl.from_pandas(tidy),
        pl.from_pandas(unnamed),
    ):
        pd.testing.assert_frame_equal(convert(other, "matrix", ties=TIES), expected)
    assert list(pr.as_comparisons(shuffled, "matrix")["item1"].cat.categories) == list(
        shuffled.columns
    )


def test_a_matrix_may_have_nothing_on_its_diagonal():
    bare = WINS.replace(0, 0.0).mask(np.eye(4, dtype=bool))
    expected = convert(WINS, "matrix", ties=TIES)
    pd.testing.assert_frame_equal(convert(bare, "matrix", ties=TIES), expected)


def test_a_matrix_written_to_a_file_and_read_again(tmp_path):
    file = tmp_path / "wins.csv"
    WINS.to_csv(file)
    numbers = WINS.set_axis([10, 20, 30, 40]).set_axis([10, 20, 30, 40], axis=1)
    for table in (pd.read_csv(file), pd.read_csv(file, index_col=0), pl.read_csv(file)):
        pd.testing.assert_frame_equal(convert(table, "matrix"), convert(WINS, "matrix"))
    numbers.to_csv(file)
    result = pr.as_comparisons(pd.read_csv(file, index_col=0), "matrix", items=[10, 20, 30, 40])
    assert list(result["item1"].cat.categories) == [10, 20, 30, 40]
    assert (result["count"] == convert(WINS, "matrix")["count"]).all()


def test_a_column_of_counts_that_is_used_is_taken():
    wide = WIDE.rename(columns={"tea_vs_juice": "count"})
    pairs = {"count": ("tea", "juice")}
    assert len(by(wide, "wide", pairs=pairs, codes=KINDS)) == len(RANKS)
    ranks = RANKS.rename(columns={"tea": "count"})
    result = by(ranks, "rankings", ties=True, items=["count", *ITEMS[1:]])
    assert len(result) == len(LONG)


def test_home_and_away_games_count_apart():
    games = pd.DataFrame(
        {"home": ["a", "b"], "away": ["b", "a"], "home.wins": [4, 3], "away.wins": [1, 2]}
    )
    result = pr.as_comparisons(
        games,
        "counts",
        items=["a", "b"],
        item1="home",
        item2="away",
        win1="home.wins",
        win2="away.wins",
        distinct_pairs=False,
    )
    assert plain(result) == [
        ("a", "b", 1.0, 4),
        ("a", "b", -1.0, 1),
        ("b", "a", 1.0, 3),
        ("b", "a", -1.0, 2),
    ]


# ---- data of another form, given to a model

SHAPES = {
    "a matrix": WINS,
    "an array": WINS.to_numpy(),
    "winners": DECIDED,
    "counts": COUNTS,
    "rankings": RANKS,
    "rankings, polars": pl.from_pandas(RANKS),
    "wide": wide_of(LONG, CODES),
    "something else": pd.DataFrame({"a": [1], "b": [2]}),
}


@pytest.mark.parametrize("data", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("model", [pr.PrivateBTL, partial(pr.PrivateTopK, k=2)])
def test_a_model_names_the_call_for_other_data(model, data):
    with pytest.raises((ValueError, TypeError)) as caught:
        model(data, items=ITEMS, respondent=None)
    message = str(caught.value)
    assert message.endswith(".") and CANARY not in message
    assert "privrank.as_comparisons(frame, form=" in message


# ---- refusals

REPEAT = "frame.loc[frame.index.repeat(frame['count'])].drop(columns='count')"
PLACES = pd.DataFrame({"best": ["tea", "milk"], "respondent": ["x", "y"]})
WIDE = wide_of(LONG, CODES)
RENAMED = WIDE.rename(columns={"tea_vs_water": "coffee_vs_tea"})


def altered(frame, column, value, row=0):
    frame = frame.astype({column: object})
    frame.loc[row, column] = value
    return frame


def matrix(change, **options):
    cells = WINS.astype(object)
    change(cells)
    return lambda: convert(cells, "matrix", **options)


BAD = {
    "form": (lambda: convert(LONG, "tall"), ValueError, ["form", "'wide'", "'tall'"]),
    "not a frame": (lambda: convert([CANARY], "long"), TypeError, ["frame", "list"]),
    "no rows": (lambda: convert(LONG.head(0), "long"), ValueError, ["at least one row"]),
    "no rows, wide": (
        lambda: by(WIDE.head(0), "wide", sep="_vs_", codes=KINDS),
        ValueError,
        ["at least one row"],
    ),
    "column not there": (
        lambda: convert(LONG, "winner-loser"),
        ValueError,
        ["'winner'", "winner="],
    ),
    "another form": (
        lambda: convert(RANKS, "long"),
        ValueError,
        ["'item1'", "form="],
    ),
    "no items": (lambda: convert(LONG, "long", items=None), ValueError, ["items must be declared"]),
    "unknown item": (
        lambda: convert(altered(LONG, "item1", f"{CANARY}-item"), "long"),
        ValueError,
        ["'item1'", "not listed in items"],
    ),
    "missing item": (
        lambda: convert(altered(LONG, "item1", None), "long"),
        ValueError,
        ["'item1'", "every row", "missing outcome"],
    ),
    "item with itself": (
        lambda: convert(altered(LONG, "item2", "tea"), "long"),
        ValueError,
        ["two different items"],
    ),
    "respondent missing": (
        lambda: by(altered(LONG, "respondent", None), "long"),
        ValueError,
        ["'respondent'", "Fill in"],
    ),
    "respondent missing, wide": (
        lambda: by(altered(WIDE, "respondent", None), "wide", sep="_vs_", codes=KINDS),
        ValueError,
        ["'respondent'", "Fill in"],
    ),
    "no such respondent": (
        lambda: convert(RANKS, "rankings", respondent="id"),
        ValueError,
        ["'id'", "respondent="],
    ),
    "same column twice": (
        lambda: convert(LONG, "long", item1="item2"),
        ValueError,
        ["item1=", "different columns"],
    ),
    "undeclared code": (
        lambda: convert(altered(LONG, "outcome", 7731), "long"),
        ValueError,
        ["'outcome'", "codes="],
    ),
    "undeclared code, wide": (
        lambda: by(WIDE, "wide", sep="_vs_", codes={"first": 1, "second": 2}),
        ValueError,
        ["codes=", "missing"],
    ),
    "other answers than the usual": (
        lambda: by(WIDE, "wide", sep="_vs_"),
        ValueError,
        ["Without codes= the answers are 1, -1 and 0", "codes={'first'"],
    ),
    "texts for numbers": (
        lambda: by(WIDE, "wide", sep="_vs_", codes={"first": "1", "second": "2", "tie": "3"}),
        ValueError,
        ["codes="],
    ),
    "another pair's item": (
        lambda: by(
            altered(NAMED, "tea_vs_juice", "water"), "wide", sep="_vs_", codes={"tie": "same"}
        ),
        ValueError,
        ["names of the pair's items", "frame.replace('^I prefer ', ''"],
    ),
    "another item, long": (
        lambda: convert(LONG.assign(outcome=f"I prefer {CANARY}"), "long", codes={}),
        ValueError,
        [
            "names of the pair's items, ",
            "frame.replace('^I prefer ', '', regex=True)",
        ],
    ),
    "codes a list": (lambda: convert(LONG, "long", codes=[1, 2]), ValueError, ["codes", "'first'"]),
    "codes without second": (
        lambda: convert(LONG, "long", codes={"first": 1}),
        ValueError,
        ["codes", "'second'"],
    ),
    "one code for two": (
        lambda: convert(LONG, "long", codes={"first": 1, "second": 1}),
        ValueError,
        ["codes", "distinct"],
    ),
    "a code for missing": (
        lambda: convert(LONG, "long", codes={"first": 1, "second": 2, "tie": np.nan}),
        ValueError,
        ["codes", "missing value"],
    ),
    "ties beside codes": (
        lambda: by(WIDE, "wide", sep="_vs_", codes=KINDS, ties=True),
        ValueError,
        ["ties=", "codes="],
    ),
    "argument of another form": (
        lambda: convert(LONG, "long", sep=":"),
        ValueError,
        ["sep=", "'wide'"],
    ),
    "missing of another form": (
        lambda: by(WIDE, "wide", sep="_vs_", codes=KINDS, missing="bottom"),
        ValueError,
        ["missing=", "'rankings'"],
    ),
    "counts of a wide frame": (
        lambda: by(WIDE, "wide", sep="_vs_", codes=KINDS, counts="n"),
        ValueError,
        ["counts=", "'long'", "Leave it out"],
    ),
    "counts of rankings": (
        lambda: by(RANKS, "rankings", counts="n"),
        ValueError,
        ["counts=", "Leave it out"],
    ),
    "counts of wins counted": (
        lambda: convert(COUNTS, "counts", counts="n"),
        ValueError,
        ["counts=", "Leave it out"],
    ),
    **{
        f"count that nothing uses, {name}": (
            lambda frame=frame, form=form, options=options: by(
                frame.assign(count=7731), form, **options
            ),
            ValueError,
            ["'count' that is not used", remedy],
        )
        for name, frame, form, options, remedy in (
            ("long", LONG, "long", {}, "counts='count'"),
            ("winner-loser", DECIDED, "winner-loser", {"ties": "tied"}, "counts='count'"),
            (
                "counts",
                COUNTS.assign(respondent="ann"),
                "counts",
                {"ties": "ties"},
                "In all other cases drop",
            ),
            ("wide", WIDE, "wide", {"sep": "_vs_", "codes": KINDS}, REPEAT),
            ("rankings", RANKS, "rankings", {"ties": True}, REPEAT),
            ("all columns are items", RANKS, "rankings", {"ties": True, "items": None}, REPEAT),
            ("places", PLACES, "orders", {}, REPEAT),
        )
    },
    "ties that nothing uses": (
        lambda: convert(COUNTS, "counts"),
        ValueError,
        ["'ties' that is not used", "ties='ties'"],
    ),
    "ties that nothing uses, winners": (
        lambda: convert(DECIDED.rename(columns={"tied": "ties"}), "winner-loser"),
        ValueError,
        ["'ties' that is not used", "ties='ties'"],
    ),
    "which columns": (lambda: by(WIDE, "wide", codes=KINDS), ValueError, ["pairs=", "sep="]),
    "pairs a list": (lambda: by(WIDE, "wide", pairs=["a"]), ValueError, ["pairs", "mapping"]),
    "pair of one": (
        lambda: by(WIDE, "wide", pairs={"tea_vs_juice": ("tea", "tea")}),
        ValueError,
        ["pairs", "two different items"],
    ),
    "pair of nobody": (
        lambda: by(WIDE, "wide", pairs={"tea_vs_juice": ("tea", "beer")}),
        ValueError,
        ["pairs", "items=[...]"],
    ),
    "pair no column": (
        lambda: by(WIDE, "wide", pairs={"tea:juice": ("tea", "juice")}),
        ValueError,
        ["'tea:juice'", "pairs="],
    ),
    "pair in both orders": (
        lambda: by(RENAMED, "wide", sep="_vs_", codes=KINDS),
        ValueError,
        ["one column per pair", "both orders", "distinct_pairs=False"],
    ),
    "sep a number": (lambda: by(WIDE, "wide", sep=3), ValueError, ["sep must be"]),
    "sep empty": (lambda: by(WIDE, "wide", sep=""), ValueError, ["sep must be"]),
    "sep never there": (
        lambda: by(WIDE, "wide", sep=":"),
        ValueError,
        ["sep must occur", "pairs="],
    ),
    "sep around another name": (
        lambda: by(WIDE.rename(columns={"tea_vs_juice": "Q1_tea_vs_juice"}), "wide", sep="_vs_"),
        ValueError,
        ["sep=", "declared items"],
    ),
    "sep twice": (
        lambda: pr.as_comparisons(pd.DataFrame({"a_b_c": [1]}), "wide", sep="_"),
        ValueError,
        ["sep must occur once", "two different items"],
    ),
    "counts twice": (
        lambda: convert(pd.concat([WINS_ALONE, WINS_ALONE.head(1)]), "counts"),
        ValueError,
        ["one row per pair", "distinct_pairs=False"],
    ),
    "counts in both orders": (
        lambda: convert(
            altered(WINS_ALONE, "item2", "tea", row=3).assign(item1=WINS_ALONE.item1), "counts"
        ),
        ValueError,
        ["both orders"],
    ),
    "negative count": (
        lambda: convert(altered(WINS_ALONE, "win1", -7731), "counts"),
        ValueError,
        ["'win1'", "whole numbers"],
    ),
    "fractional count": (
        lambda: convert(altered(WINS_ALONE, "win2", 0.5), "counts"),
        ValueError,
        ["'win2'", "whole numbers"],
    ),
    "missing count": (
        lambda: convert(altered(WINS_ALONE, "win2", None), "counts"),
        ValueError,
        ["'win2'", "Enter 0"],
    ),
    "word for a count": (
        lambda: convert(altered(WINS_ALONE, "win2", CANARY), "counts"),
        ValueError,
        ["'win2'", "whole numbers"],
    ),
    "too many": (
        lambda: convert(altered(WINS_ALONE, "win2", 2**53), "counts"),
        ValueError,
        ["'win2'", "2^53"],
    ),
    "ties a flag": (lambda: convert(COUNTS, "counts", ties=True), TypeError, ["ties", "column"]),
    "ties with words": (
        lambda: convert(DECIDED.assign(tied=CANARY), "winner-loser", ties="tied"),
        ValueError,
        ["'tied'", "True or False"],
    ),
    "ties a column, rankings": (
        lambda: by(RANKS, "rankings", ties="tea"),
        TypeError,
        ["ties", "True or False"],
    ),
    "matrix not square": (
        lambda: convert(WINS[["tea", "juice"]], "matrix"),
        ValueError,
        ["square matrix"],
    ),
    "array not square": (
        lambda: convert(np.ones((4, 3)), "matrix"),
        ValueError,
        ["square matrix", "items=[...]"],
    ),
    "array of three dimensions": (
        lambda: convert(np.ones((4, 4, 1)), "matrix"),
        ValueError,
        ["square matrix"],
    ),
    "array without items": (
        lambda: convert(WINS.to_numpy(), "matrix", items=None),
        ValueError,
        ["items must be declared", "rows"],
    ),
    "rows of other names": (
        lambda: convert(WINS.set_axis(list("abcd")), "matrix"),
        ValueError,
        ["square matrix", "Give the rows"],
    ),
    "diagonal": (matrix(lambda w: w.iloc.__setitem__((1, 1), 7731)), ValueError, ["diagonal"]),
    "negative wins": (
        matrix(lambda w: w.iloc.__setitem__((0, 1), -7731)),
        ValueError,
        ["whole numbers"],
    ),
    "half wins": (
        matrix(lambda w: w.iloc.__setitem__((0, 1), 7731.5)),
        ValueError,
        ["half wins", "ties="],
    ),
    "missing wins": (
        matrix(lambda w: w.iloc.__setitem__((0, 1), None)),
        ValueError,
        ["0 for items never compared"],
    ),
    "a word for wins": (
        matrix(lambda w: w.iloc.__setitem__((0, 1), CANARY)),
        ValueError,
        ["whole numbers"],
    ),
    "ties not symmetric": (
        lambda: convert(WINS, "matrix", ties=TIES.where(np.tri(4) > 0, 7731)),
        ValueError,
        ["ties", "symmetric"],
    ),
    "matrix of respondents": (
        lambda: by(WINS, "matrix"),
        ValueError,
        ["'matrix'", "respondent="],
    ),
    "ranking with a gap": (
        lambda: by(altered(RANKS, "tea", np.nan).astype({"tea": float}), "rankings", ties=True),
        ValueError,
        ["is incomplete", "missing='bottom'", "missing='unknown'"],
    ),
    "a gap above the bottom": (
        lambda: convert(
            pd.DataFrame([[1, 3, np.nan, np.nan]], columns=list(ITEMS)),
            "rankings",
            missing="bottom",
        ),
        ValueError,
        ["missing='unknown'", "Number the ranked items from 1"],
    ),
    "ranks tied": (lambda: by(RANKS, "rankings"), ValueError, ["has a tie", "ties=True"]),
    "ratings for ranks": (
        lambda: convert(SCORES, "rankings"),
        ValueError,
        ["ranks from 1 (best) to 4"],
    ),
}


@pytest.mark.parametrize(("call", "error", "words"), BAD.values(), ids=BAD)
def test_refusal(call, error, words):
    check_refusal(call, error, words)
