"""The table at the head of the studies says the worst cell that each study's own table has."""

import re
import sys
from pathlib import Path

import pandas as pd
import pytest

PAGES = Path(__file__).parents[2] / "docs" / "validation"
README = (PAGES / "README.md").read_text(encoding="utf-8")
# the first table of the page, before any list of studies
HEAD = README.partition("\n- ")[0]
ROWS = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| \[(\w+)\]\((\w+)\.md\) \|$", HEAD, flags=re.M)
# errors that take the pairs of a respondent as independent, or counts as equal, are there to fail
NAIVE = ["none", "equal counts"]


def studied(name):
    return pd.read_csv(PAGES / f"{name}.csv", keep_default_na=False, na_values=[""])


def safe(table):
    return table[~table["fit"].isin(NAIVE)]


def shares(column):
    return column.astype(str).str.partition("/")[0].pipe(pd.to_numeric, errors="coerce")


def both(column):
    """The two numbers of each cell, one below the other."""
    return column.astype(str).str.split("/").explode().astype(float)


def largest_size(table, test):
    """The largest share of rejections of a test without a difference, at any epsilon."""
    without = table[table["difference"] == "none"][test]
    return without.astype(str).str.split("/").explode().astype(float).max()


def lost(table, verdict):
    rows = table[table["verdict"] == verdict]
    return rows["found"] / rows["claimed epsilon"]


def asserted(table):
    """The cell of proportional counts furthest below its floor, of those that are claimed."""
    others = table["opponents"].str.contains("categories|parity")
    few = (table["items"] < 12) & (table["opponents"] != "random")
    claimed = table[~others & ~few]
    return claimed.loc[(claimed["least"] - claimed["floor"]).idxmin()]


def worst_pair(table):
    """The least coverage of a pair and its floor, which stand in one cell."""
    parts = table["worst pair (floor)"].str.extract(r"(?P<least>[\d.]+) \((?P<floor>[\d.]+)\)")
    parts = parts.astype(float)
    return parts.loc[parts["least"].idxmin()]


def meant(table):
    """The rows of a table whose covariates are as the model assumes."""
    return table[table["covariate"].isin(["normal", "t3", "home", "mixed"])]


def nearest(table):
    """The cell of a claim whose worst difference is lowest relative to its floor."""
    # tasks in one order and break-offs violate an assumption
    claimed = table[(table["plan"] != "B") | (table["silence"] != "after a break-off")]
    return claimed.loc[(claimed["worst"] - claimed["floor"]).idxmin()]


def null(table):
    return table[table["phi"] == 1]["rejected at .05"]


def outdone(table):
    """The test with the largest loss of power against its rival; not the errors of models."""
    models = ["worths", "top k", "consensus", "local consensus"]
    tests = table[~table["method"].isin(models)]
    return tests.loc[tests["difference"].idxmin()]


# What the worst cells of a study are, in the order in which the row says them.
WORST = {
    "coverage": [lambda t: t[t["warned"] == 0]["coverage"].min()],
    "links": [lambda t: t["coverage"].min()],
    "dependence": [lambda t: safe(t)["average"].min(), lambda t: safe(t)["worst pair"].min()],
    "covariates": [lambda t: t["coverage"].min(), lambda t: t["level of the null term"].max()],
    "topk_targets": [lambda t: t["coverage"].min()],
    "item_scatter": [lambda t: t["coverage of x"].min(), lambda t: t["z found"].max()],
    "ranking_worths": [lambda t: safe(t)["average"].min()],
    "sets": [lambda t: nearest(t)["worst"], lambda t: nearest(t)["floor"]],
    "first_choices": [lambda t: t["worst"].min()],
    "set_orders": [
        lambda t: t["worst pair"].min(),
        lambda t: both(t["worst score"]).min(),
        lambda t: both(t["rank sets"]).min(),
    ],
    "design_weights": [
        lambda t: t[t["fit"] == "weighted"]["worst"].min(),
        lambda t: t[t["fit"] == "weighted"]["worst rate"].min(),
    ],
    "contests": [
        lambda t: meant(t)["worst"].min(),
        lambda t: meant(t)["covered gamma"].min(),
    ],
    "rare_outcomes": [lambda t: t["least"].min(), lambda t: t["floor"].min()],
    "davidson": [
        lambda t: t["contrasts"].min(),
        lambda t: t["worst"].min(),
        lambda t: t["floor"][t["worst"].idxmin()],
        lambda t: t["lambda"].min(),
    ],
    "proportional": [
        lambda t: asserted(t)["least"],
        lambda t: asserted(t)["floor"],
    ],
    "activity": [lambda t: t["coverage"].min()],
    "unequal_answers": [lambda t: t["level of g"].max()],
    "identified": [lambda t: t["worst pair"].max()],
    "rank_sets": [lambda t: t["hold"].min()],
    "hypotheses": [lambda t: t[["worst", "all pairs"]].max().max()],
    "core_tables": [lambda t: t[t["measure"].str.startswith("size")]["found"].max()],
    "selection": [lambda t: t["separation, type I at .05"].max()],
    "pooling": [lambda t: t["pairs"].min(), lambda t: t[t["shift"] == 0]["Q rejects"].max()],
    "uniformity_level": [lambda t: t["level"].max()],
    "identity_null": [
        lambda t: t["level, null_nobs"].max(),
        lambda t: t["level, taken as exact"].max(),
    ],
    "closeness_activity": [lambda t: t["level"].max()],
    "closeness_pvalues": [lambda t: t["share below 0.05"].max()],
    "closeness_sets": [lambda t: largest_size(t, "test"), lambda t: largest_size(t, "summed")],
    "closeness_tables": [lambda t: t["level"].max()],
    "closeness_tables_intervals": [
        lambda t: (1 - t["above"] - t["below"]).min(),
        lambda t: t["details"].min(),
        lambda t: t["shares"].min(),
    ],
    "effects": [lambda t: t["coverage"].min()],
    "closeness_intervals": [lambda t: t["coverage"].min()],
    "closeness_details": [lambda t: t["all hold"].min()],
    "rivals": [lambda t: outdone(t)["default"], lambda t: outdone(t)["rival"]],
    "aggregation_statements": [lambda t: t.iloc[:, 8:].min().min()],
    "aggregation_ranks": [lambda t: t.iloc[:, 4:].apply(shares).min().min()],
    "smith_sets": [lambda t: t["wrong"].max()],
    "local_intervals": [lambda t: t["pairs"].min(), lambda t: t["ranks"].min()],
    "localtests_rankings": [lambda t: null(t).max()],
    "localtests_worths": [lambda t: t["worths"].min()],
    "localtests_subrankings": [
        lambda t: t["covered"].min(),
        lambda t: worst_pair(t)["least"],
        lambda t: worst_pair(t)["floor"],
    ],
    "power_models": [lambda t: t["sd"].abs().max()],
    "audit": [lambda t: lost(t, "holds").max()],
    "fuzz": [lambda t: t["parts with a fault"].sum()],
    "ledger_kills": [lambda t: t["overspent"].sum()],
}


def test_pages_have_the_columns_of_their_files_in_words():
    sys.path.insert(0, str(PAGES.parents[1] / "validation"))
    from headings import COMMON, TABLES, headings

    files = [path for path in PAGES.glob("*.csv") if path.with_suffix(".md").exists()]
    tables = {path.stem: [*pd.read_csv(path, nrows=0).columns] for path in files}
    assert TABLES.keys() <= tables.keys() and len(tables) > 60
    del tables["mutants"]  # its page counts the rows of its file
    for name, columns in tables.items():
        page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
        words = headings(name, columns)
        assert f"\n| {' | '.join(words)} |\n" in page and len(words) == len({*words}), name
        assert TABLES.get(name, {}).keys() <= {*columns}, name
    assert COMMON.keys() <= {column for columns in tables.values() for column in columns}


def test_every_row_has_a_study_and_a_rule():
    assert {row[3] for row in ROWS} == set(WORST)
    assert all(row[3] == row[4] for row in ROWS)
    assert len(ROWS) == len(WORST)


@pytest.mark.parametrize("row", ROWS, ids=[row[3] for row in ROWS])
def test_the_worst_cell_is_that_of_the_study(row):
    numbers = re.findall(r"(?<![\w.])(?:\d+|\d*\.\d+)(?![\w.])", row[2])
    for number, worst in zip(numbers, WORST[row[3]], strict=False):
        places = len(number.partition(".")[2])
        # half a digit is rounded either way
        assert abs(float(number) - worst(studied(row[3]))) <= 0.5001 * 10.0**-places
    assert len(numbers) >= len(WORST[row[3]])


def test_every_release_is_audited_and_every_planted_fault_is_caught():
    table = studied("audit")
    assert set(table["verdict"]) == {"holds", "caught"}
    planted = table["release"].str.startswith("fault: ")
    assert (planted == (table["verdict"] == "caught")).all()
    row = next(row for row in ROWS if row[3] == "audit")
    assert [int(n) for n in re.findall(r"\d+", row[1])] == [(~planted).sum(), planted.sum()]
    assert lost(table, "caught").agg(["min", "max"]).round(1).tolist() == [1.2, 3.0]


def test_the_front_page_says_what_naive_intervals_do():
    page = (PAGES.parents[1] / "README.md").read_text(encoding="utf-8")
    stated = re.search(r"^Naive intervals .+?\n\n", page, flags=re.M | re.S)[0]
    table = studied("dependence")
    people = (table["people"] == "University") & (table["design"] == "public")
    rows = table[people & (table["epsilon"] == 1)].set_index("fit")[["average", "worst pair"]]
    found = [*rows.loc["none"], *rows[rows.index.isna()].iloc[0]]
    assert re.findall(r"(?<![\w.])0\.\d+", stated) == [f"{one:.3f}" for one in found]


def test_the_page_begins_with_the_table():
    assert README.index("| claim |") < README.index("\n- `")
