"""Bad input is refused in one sentence before anything is spent; good input always counts alike."""

import inspect
import warnings
from itertools import combinations

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from searching import check_refusal

import privrank as pr

ITEMS = ("a", "b", "c")
# The respondents carry a canary, so that every message below is searched for a cell of the data.
CANARY = "CANARY"
ANSWERS = (("a", "b", 1.0), ("b", "c", 0.0), ("a", "c", -1.0))
GOOD = pd.DataFrame(
    [(f"{CANARY}-{person}", *answer) for person in range(4) for answer in ANSWERS],
    columns=["respondent", "item1", "item2", "outcome"],
)
WORDS = pd.DataFrame({"winner": ["a", "b"], "loser": ["b", "c"]})


def changed(column, value, row=0):
    """The good frame with one cell changed."""
    frame = GOOD.astype({column: object})
    frame.loc[row, column] = value
    return frame.infer_objects() if column == "outcome" else frame


def btl(frame=GOOD, **arguments):
    return pr.PrivateBTL(frame, **{"items": ITEMS, "respondent": None, "ties": True} | arguments)


def people(frame=GOOD, **arguments):
    return btl(frame, **{"respondent": "respondent", "max_rows": 3} | arguments)


def top(k, frame=GOOD):
    return pr.PrivateTopK(frame, k, items=ITEMS, respondent=None, ties=True)


def formula(text, frame=GOOD, **arguments):
    return pr.PrivateBTL.from_formula(
        text, frame, **{"items": ITEMS, "respondent": None, "ties": True} | arguments
    )


def twice(name):
    """The good frame with one column name used for two columns."""
    frame = GOOD.copy()
    frame.columns = ["respondent", name, name, "outcome"]
    return frame


BAD_FRAMES = {
    "missing column": (lambda: btl(item1="first"), ValueError, ["'first'", "item1="]),
    "missing outcome column": (lambda: btl(outcome="y"), ValueError, ["'y'", "outcome="]),
    "missing respondent": (
        lambda: btl(GOOD.rename(columns={"respondent": "voter"}), respondent="who"),
        ValueError,
        ["'who'", "with respondent="],
    ),
    "the name before a conversion": (
        lambda: btl(respondent="who"),
        ValueError,
        ["'who'", "respondent="],
    ),
    "same column twice": (lambda: btl(item2="item1"), ValueError, ["item1=", "different columns"]),
    "respondent is an item": (lambda: btl(respondent="item2"), ValueError, ["different columns"]),
    "duplicate column names": (lambda: btl(twice("item1")), ValueError, ["unique column names"]),
    "not a frame": (lambda: btl([CANARY]), TypeError, ["comparisons", "data frame", "list"]),
    "a path": (lambda: btl("answers.csv"), TypeError, ["comparisons", "data frame", "str"]),
    "an array": (lambda: btl(np.zeros((3, 3))), TypeError, ["data frame", "ndarray"]),
    "empty": (lambda: btl(GOOD.head(0)), ValueError, ["comparisons", "at least one row", "Check"]),
    "unknown item": (
        lambda: btl(changed("item1", f"{CANARY}-item")),
        ValueError,
        ["'item1'", "not listed in items"],
    ),
    "missing item": (lambda: btl(changed("item2", None)), ValueError, ["'item2'", "missing"]),
    "itself": (lambda: btl(changed("item2", "a")), ValueError, ["'item1'", "itself"]),
    "outcome code": (lambda: btl(changed("outcome", 7731.0)), ValueError, ["'outcome'", "Recode"]),
    "half win": (lambda: btl(changed("outcome", 0.5)), ValueError, ["'outcome'", "Recode"]),
    "infinite outcome": (lambda: btl(changed("outcome", np.inf)), ValueError, ["'outcome'"]),
    "words for outcomes": (
        lambda: btl(GOOD.assign(outcome=CANARY)),
        TypeError,
        ["'outcome'", "numeric", "Recode"],
    ),
    "outcomes true or false": (
        lambda: btl(GOOD.assign(outcome=True)),
        TypeError,
        ["'outcome'", "numeric", "'long', codes={'first': True, 'second': False}"],
    ),
    "ties=False with a tie": (
        lambda: btl(ties=False),
        ValueError,
        ["'outcome'", "ties=False", "ties=True", "2 * x - 1"],
    ),
    "null respondent": (
        lambda: people(changed("respondent", None)),
        ValueError,
        ["'respondent'", "every row"],
    ),
    "too many rows": (lambda: people(max_rows=2), ValueError, ["max_rows=2", "at least one"]),
    "unanswered rows count too": (
        lambda: people(GOOD.assign(outcome=np.nan), max_rows=2),
        ValueError,
        ["max_rows=2"],
    ),
    "pair twice": (
        lambda: people(pd.concat([GOOD, GOOD.head(1)]), max_rows=4),
        ValueError,
        ["distinct_pairs=True", "distinct_pairs=False"],
    ),
    "pair twice, reversed": (
        lambda: people(
            pd.concat([GOOD, GOOD.head(1).rename(columns={"item1": "item2", "item2": "item1"})]),
            max_rows=4,
        ),
        ValueError,
        ["distinct_pairs=True"],
    ),
    "pair twice, other answer": (
        lambda: people(pd.concat([GOOD, GOOD.head(1).assign(outcome=np.nan)]), max_rows=4),
        ValueError,
        ["distinct_pairs=True"],
    ),
    "too many rows, with a remedy": (
        lambda: people(max_rows=2),
        ValueError,
        ["excess='sample'", "questionnaire allows"],
    ),
    "too many rows where no draw can be secret": (
        lambda: people(max_rows=2, design="public"),
        ValueError,
        ["the questionnaire allows."],
    ),
    "pair twice, with a remedy": (
        lambda: people(pd.concat([GOOD, GOOD.head(1)]), max_rows=4),
        ValueError,
        ["aggregate first, or let excess='sample'"],
    ),
    "rows drawn of nobody": (
        lambda: btl(excess="sample"),
        ValueError,
        ["excess='sample'", "respondent="],
    ),
    "rows drawn in public": (
        lambda: people(excess="sample", design="public"),
        ValueError,
        ["excess='sample'", "design='private'", "secret"],
    ),
    "a word for excess": (lambda: people(excess="drop"), ValueError, ["excess", "'drop'"]),
    "rows drawn, one of nobody's": (
        lambda: people(changed("respondent", None), excess="sample"),
        ValueError,
        ["'respondent'", "every row"],
    ),
    "disconnected": (
        lambda: btl(items=("a", "b", "c", "d"), design="public"),
        ValueError,
        ["d is never compared with the others", "not identified"],
    ),
    "connected by unanswered rows only": (
        lambda: btl(
            GOOD.assign(outcome=GOOD["outcome"].where(GOOD["item1"].eq("a"))[:2]).head(2),
            design="public",
        ),
        ValueError,
        ["not identified"],
    ),
    "declared counts disconnected": (
        lambda: btl(pair_counts={("a", "b"): 4}),
        ValueError,
        ["c is never compared with the others", "not identified"],
    ),
}

BAD_ARGUMENTS = {
    "no items": (lambda: btl(items=None), ValueError, ["items must be declared"]),
    "categories met": (
        lambda: btl(
            GOOD.assign(item1=pd.Categorical(GOOD["item1"]), item2=pd.Categorical(GOOD["item2"])),
            items=None,
        ),
        ValueError,
        ["items must be declared", "pandas categorical"],
    ),
    "duplicate items": (lambda: btl(items=["a", "b", "c", "a"]), ValueError, ["items", "distinct"]),
    "same names as text": (lambda: btl(items=[1, "1"]), ValueError, ["items", "distinct"]),
    "one item": (lambda: btl(items=["a"]), ValueError, ["items", "at least two"]),
    "items as one word": (lambda: btl(items="abc"), TypeError, ["items", "sequence", "str"]),
    "items a number": (lambda: btl(items=3), TypeError, ["items", "sequence", "int"]),
    "design": (lambda: btl(design="open"), ValueError, ["design", "'public'", "'open'"]),
    "link": (lambda: btl(link="cauchit"), ValueError, ["link", "'logit'", "'cauchit'"]),
    "max_rows zero": (lambda: btl(max_rows=0), ValueError, ["max_rows", "at least 1"]),
    "max_rows fraction": (lambda: btl(max_rows=1.5), TypeError, ["max_rows", "integer", "float"]),
    "max_rows true": (lambda: btl(max_rows=True), TypeError, ["max_rows", "integer", "bool"]),
    "k zero": (lambda: top(0), ValueError, ["k must be between 1 and 2", "0"]),
    "k all": (lambda: top(3), ValueError, ["k must be between 1 and 2", "3"]),
    "k fraction": (lambda: top(1.5), TypeError, ["k must be an integer", "float"]),
    "k true": (lambda: top(True), TypeError, ["k must be an integer", "bool"]),
    "pair_counts under public design": (
        lambda: btl(design="public", pair_counts="equal"),
        ValueError,
        ["pair_counts must be left out", "design='public'"],
    ),
    "pair_counts word": (lambda: btl(pair_counts="same"), ValueError, ["pair_counts", "'equal'"]),
    "formula minus": (lambda: formula("item1 + item2 - outcome ~ 1"), ValueError, ["'+' only"]),
    "formula colon": (lambda: formula("item1:item2 ~ 1"), ValueError, ["'+' only"]),
    "formula star": (lambda: formula("item1 * item2 ~ 1"), ValueError, ["'+' only"]),
    "formula bar, left": (lambda: formula("item1 | item2 ~ 1"), ValueError, ["'+' only"]),
    "formula bar, right": (
        lambda: formula("item1 + item2 + outcome ~ 1 | g"),
        ValueError,
        ["'|'"],
    ),
    "formula without left side": (lambda: formula("~ 1"), ValueError, ["on the left of '~'"]),
    "formula without tilde": (lambda: formula("item1 + item2"), ValueError, ["left of '~'"]),
    "formula covariate": (
        lambda: formula("item1 + item2 + outcome ~ gender"),
        ValueError,
        ["data has no column 'gender'"],
    ),
    "formula, no intercept": (
        lambda: formula("item1 + item2 + outcome ~ 0"),
        ValueError,
        ["keep an intercept or a covariate"],
    ),
    "formula, one name": (lambda: formula("item1 ~ 1"), ValueError, ["two columns", "three"]),
    "formula, four names": (
        lambda: formula("respondent + item1 + item2 + outcome ~ 1"),
        ValueError,
        ["two columns", "three"],
    ),
    "formula, call": (
        lambda: formula("lower(item1) + item2 + outcome ~ 1"),
        ValueError,
        ["plain columns"],
    ),
    "formula not closed": (lambda: formula("(item1 + item2 ~ 1"), ValueError, ["cannot be parsed"]),
    "formula a number": (lambda: formula(1), TypeError, ["formula must be text", "int"]),
    "formula, unknown column": (
        lambda: formula("winner + loser ~ 1"),
        ValueError,
        ["'winner'"],
    ),
    "formula argument": (
        lambda: formula("item1 + item2 + outcome ~ 1", colour="red"),
        TypeError,
        ["and the arguments"],
    ),
}

PAIR_COUNT_TABLES = {
    "empty": {},
    "negative": {("a", "b"): 1, ("b", "c"): -1},
    "zero": {("a", "b"): 1, ("b", "c"): 0},
    "missing": {("a", "b"): 1, ("b", "c"): np.nan},
    "infinite": {("a", "b"): 1, ("b", "c"): np.inf},
    "text": {("a", "b"): 1, ("b", "c"): "many"},
    "pair twice": {("a", "b"): 1, ("b", "a"): 1, ("b", "c"): 1},
    "itself": {("a", "a"): 1, ("a", "b"): 1, ("b", "c"): 1},
    "unknown item": {("a", "z"): 1, ("a", "b"): 1, ("b", "c"): 1},
    "three in a key": {("a", "b", "c"): 1},
    "a number for a key": {1: 1},
    "a word for a key": {"ab": 1, "bc": 1},
    "frame without count": pd.DataFrame({"item1": ["a", "b"], "item2": ["b", "c"]}),
    "an array": np.ones((3, 3)),
    "a number": 4,
    "enormous": {("a", "b"): 1e300, ("b", "c"): 1e300},
    "next to nothing": {("a", "b"): 1e-300, ("b", "c"): 1e-300},
    "complex": {("a", "b"): 60 + 2j, ("b", "c"): 60 + 2j},
    "two columns of counts": pd.DataFrame(
        [("a", "b", 1, 2), ("b", "c", 1, 2)], columns=["item1", "item2", "count", "count"]
    ),
}

BAD_FITS = {
    "epsilon zero": (btl, {"epsilon": 0}, ValueError, ["epsilon", "positive"]),
    "epsilon negative": (btl, {"epsilon": -1.0}, ValueError, ["epsilon", "positive"]),
    "epsilon NaN": (btl, {"epsilon": np.nan}, ValueError, ["epsilon", "positive"]),
    "epsilon true": (btl, {"epsilon": True}, TypeError, ["epsilon", "bool"]),
    "epsilon text": (btl, {"epsilon": "1"}, TypeError, ["epsilon", "str"]),
    "epsilon none": (btl, {"epsilon": None}, TypeError, ["epsilon", "NoneType"]),
    "epsilon tiny": (
        lambda: btl(design="public"),
        {"epsilon": 1e-20},
        ValueError,
        ["epsilon must be positive, from 1e-09"],
    ),
    "epsilon tiny, objective": (
        btl,
        {"epsilon": 1e-300, "method": "objective"},
        ValueError,
        ["epsilon"],
    ),
    "delta one": (btl, {"delta": 1.0}, ValueError, ["delta", "[0, 1)"]),
    "delta negative": (btl, {"delta": -1e-9}, ValueError, ["delta", "[0, 1)"]),
    "delta NaN": (btl, {"delta": np.nan}, ValueError, ["delta", "[0, 1)"]),
    "delta text": (btl, {"delta": "0"}, ValueError, ["delta", "'0'"]),
    "delta true": (btl, {"delta": True}, ValueError, ["delta", "True"]),
    "alpha zero": (btl, {"alpha": 0}, ValueError, ["alpha", "in (0, 1)"]),
    "alpha one": (btl, {"alpha": 1.0}, ValueError, ["alpha", "in (0, 1)"]),
    "alpha percent": (btl, {"alpha": 5}, ValueError, ["alpha", "in (0, 1)"]),
    "alpha text": (btl, {"alpha": "5%"}, ValueError, ["alpha", "in (0, 1)"]),
    "integer rng": (btl, {"rng": 1}, TypeError, ["rng", "Generator", "int"]),
    "old rng": (btl, {"rng": np.random.RandomState(1)}, TypeError, ["rng", "RandomState"]),
    "method": (btl, {"method": "mle"}, ValueError, ["method", "'counts'", "'mle'"]),
    "noise": (btl, {"noise": "cauchy"}, ValueError, ["noise", "'laplace'", "'cauchy'"]),
    "noise without delta": (btl, {"noise": "gaussian"}, ValueError, ["noise='gaussian'", "delta"]),
    "solver": (btl, {"solver": "adam"}, ValueError, ["solver", "'newton'", "'adam'"]),
    "dependence": (btl, {"dependence": True}, ValueError, ["dependence", "'worst'"]),
    "penalty negative": (btl, {"penalty": -1}, ValueError, ["penalty", "at least 0"]),
    "penalty NaN": (btl, {"penalty": np.nan}, ValueError, ["penalty", "at least 0"]),
    "penalty infinite": (btl, {"penalty": np.inf}, ValueError, ["penalty", "at least 0"]),
    "penalty text": (btl, {"penalty": "none"}, ValueError, ["penalty", "'auto'"]),
    "penalty true": (btl, {"penalty": True}, ValueError, ["penalty", "at least 0"]),
    "no ridge for objective": (
        btl,
        {"penalty": 0, "method": "objective"},
        ValueError,
        ["penalty must be positive", "objective"],
    ),
    "ridge too small for objective": (
        btl,
        {"penalty": 1e-9, "method": "objective"},
        ValueError,
        ["penalty", "too small"],
    ),
    "shares unknown": (people, {"shares": {"noise": 0.1}}, ValueError, ["shares", "'output'"]),
    "shares negative": (
        people,
        {"shares": {"dependence": -0.1}},
        ValueError,
        ["shares", "positive"],
    ),
    "shares all": (
        people,
        {"shares": {"dependence": 1.0}},
        ValueError,
        ["shares", "below 1"],
    ),
    "shares too much together": (
        people,
        {"shares": {"dependence": 0.6, "output": 0.4}, "method": "objective"},
        ValueError,
        ["shares", "less than 1"],
    ),
    "shares NaN": (people, {"shares": {"dependence": np.nan}}, ValueError, ["shares"]),
    "cluster at finite epsilon": (
        people,
        {"dependence": "cluster"},
        ValueError,
        ["dependence='cluster'", "'auto'"],
    ),
    "pairs with objective perturbation": (
        people,
        {"dependence": "pairs", "method": "objective"},
        ValueError,
        ["dependence='pairs'", "'worst'"],
    ),
    "a share of nothing": (
        people,
        {"dependence": "none", "shares": {"dependence": 0.2}},
        ValueError,
        ["shares", "'dependence'"],
    ),
    "no share left for dependence": (
        people,
        {"shares": {"pair_counts": 0.96}},
        ValueError,
        ["shares", "less than 1"],
    ),
    "a share of dependence too small": (
        lambda: people(design="public"),
        {"dependence": "worst", "shares": {"dependence": 1e-300}},
        ValueError,
        ["epsilon is too small"],
    ),
    "max_rows beyond all questionnaires": (
        lambda: people(max_rows=2**53, distinct_pairs=False),
        {"dependence": "worst"},
        ValueError,
        ["max_rows", "too large"],
    ),
    "worst for rows": (btl, {"dependence": "worst"}, ValueError, ["'worst'", "respondent="]),
    "cluster for rows": (
        btl,
        {"epsilon": np.inf, "dependence": "cluster"},
        ValueError,
        ["'cluster'", "respondent="],
    ),
}

# What nobody listed but somebody will try: silently accepted or refused with a library's own words
# when this was written.
UNLISTED = {
    "no column for item1": (lambda: btl(item1=None), (TypeError, ValueError), ["item1"]),
    "a set of items has no order": (lambda: btl(items=set(ITEMS)), TypeError, ["items"]),
    "a missing value declared as an item": (
        lambda: btl(items=[*ITEMS, np.nan]),
        (TypeError, ValueError),
        ["items"],
    ),
    "items that cannot be looked up": (
        lambda: btl(items=[["a"], ["b"], ["c"]]),
        (TypeError, ValueError),
        ["items"],
    ),
    "a word for ties": (lambda: btl(ties="no"), ValueError, ["ties", "davidson"]),
    "a word for distinct_pairs": (
        lambda: people(distinct_pairs="no"),
        TypeError,
        ["distinct_pairs", "str"],
    ),
    # patsy drops a 0 and a repeated name, which would turn three columns into winner and loser
    "formula with a zero": (
        lambda: formula("item1 + item2 + 0 ~ 1"),
        ValueError,
        ["formula", "nothing else"],
    ),
    "formula naming a column twice": (
        lambda: formula("winner + loser + winner ~ 1", WORDS),
        ValueError,
        ["formula"],
    ),
    "summary_col of one result": (
        lambda: pr.summary_col(btl(design="public").fit(np.inf)),
        TypeError,
        ["results", "list"],
    ),
    "release that is none": (
        lambda: pr.PrivateBTL.from_release(GOOD),
        TypeError,
        ["release", "DataFrame"],
    ),
    "release that is none, top k": (
        lambda: pr.PrivateTopK.from_release("release.json", 1),
        TypeError,
        ["release", "str"],
    ),
    "archive of something else": (lambda: pr.from_json("[]"), ValueError, ["text", "to_json()"]),
    "release archive of nothing": (
        lambda: pr.Release.from_json(""),
        ValueError,
        ["text", "to_json()"],
    ),
    "release archive of something else": (
        lambda: pr.Release.from_json("[]"),
        ValueError,
        ["text", "to_json()"],
    ),
}

UNLISTED_FITS = {
    "a number for a budget": (btl, {"budget": 5.0}, TypeError, ["budget", "Budget", "float"]),
    "a share that is a word": (
        people,
        {"shares": {"dependence": "all"}},
        (TypeError, ValueError),
        ["shares"],
    ),
    "one share for all": (people, {"shares": 0.1}, TypeError, ["shares", "float"]),
    "a negative share of something unused": (
        people,
        {"shares": {"pair_counts": -1.0}},
        ValueError,
        ["shares", "positive"],
    ),
    "epsilon beyond floating point": (
        btl,
        {"epsilon": 1e300, "method": "objective", "budget": pr.Budget(epsilon=np.inf)},
        ValueError,
        ["epsilon"],
    ),
}


@pytest.mark.parametrize(("call", "error", "words"), BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_bad_frame(call, error, words):
    check_refusal(call, error, words)


@pytest.mark.parametrize(("call", "error", "words"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_bad_argument(call, error, words):
    check_refusal(call, error, words)


@pytest.mark.parametrize("table", PAIR_COUNT_TABLES.values(), ids=PAIR_COUNT_TABLES)
def test_bad_table_of_pair_counts(table):
    check_refusal(lambda: btl(pair_counts=table), ValueError, ["pair_counts", "each pair once"])


def refuse_fit(model, options, error, words):
    model = model()
    unit = "respondent" if "respondents" in repr(model) else "row"
    budget = pr.Budget(epsilon=np.inf, delta=0.5, unit=unit)
    arguments = {"epsilon": 1.0, "budget": budget} | options
    check_refusal(lambda: model.fit(**arguments), error, words)
    assert budget.spendings == ()


@pytest.mark.parametrize(("model", "options", "error", "words"), BAD_FITS.values(), ids=BAD_FITS)
def test_bad_fit_spends_nothing(model, options, error, words):
    refuse_fit(model, options, error, words)


@pytest.mark.parametrize(("call", "error", "words"), UNLISTED.values(), ids=UNLISTED)
def test_unlisted_input(call, error, words):
    check_refusal(call, error, words)


@pytest.mark.parametrize(
    ("model", "options", "error", "words"), UNLISTED_FITS.values(), ids=UNLISTED_FITS
)
def test_unlisted_fit_spends_nothing(model, options, error, words):
    refuse_fit(model, options, error, words)


@pytest.mark.parametrize("columns", [["a", "b", "x", "x"], ["x", "x", "a", "b"]])
def test_duplicate_column_names_in_another_engine(columns):
    # only such engines as allow them: a polars frame cannot hold two columns of one name
    table = pyarrow.table([pyarrow.array(["a"])] * 4, names=columns)
    check_refusal(
        lambda: btl(table, item1="a", item2="b", outcome="x"), ValueError, ["unique column names"]
    )


@pytest.mark.parametrize("model", [btl, people], ids=["row", "respondent"])
@pytest.mark.parametrize("fit", [{"epsilon": 2.0}, {"epsilon": 0.5, "delta": 1e-5}])
def test_budget_exceeded_reads_and_draws_nothing(monkeypatch, model, fit):
    def no_noise(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("privrank.privacy.noise.DiscreteLaplace.draw", no_noise)
    monkeypatch.setattr("privrank.mechanisms.comparisons.draw_cells", no_noise)
    monkeypatch.setattr("privrank.mechanisms.comparisons.net_wins", no_noise)
    unit = "row" if model is btl else "respondent"
    budget = pr.Budget(epsilon=1.0, unit=unit)
    check_refusal(
        lambda: model().fit(**fit, budget=budget),
        pr.BudgetExceeded,
        ["budget", "No data were read"],
    )
    assert budget.spendings == () and budget.left == (1.0, 0.0)


@pytest.mark.parametrize(
    ("model", "unit"), [(btl, "respondent"), (people, "row")], ids=["row", "respondent"]
)
def test_budget_of_another_unit(model, unit):
    budget = pr.Budget(epsilon=9.0, unit=unit)
    check_refusal(
        lambda: model().fit(1.0, budget=budget), ValueError, ["budget", "row", "respondent"]
    )
    assert budget.spendings == ()


@pytest.mark.parametrize("alpha", [0, 1, np.nan, "x"])
def test_bad_alpha_of_an_interval(alpha):
    result = btl().fit(np.inf)
    selection = top(1).fit(np.inf)
    for call in (
        result.conf_int,
        result.rank_conf_int,
        result.pairwise,
        selection.conf_int,
        selection.rank_conf_int,
    ):
        check_refusal(lambda call=call: call(alpha), ValueError, ["alpha"])


def assert_said_or_finite(result):
    """What noise alone decides is not a number and said so; the rest is finite."""
    missing = result.params.isna()
    assert (result.bse.isna() == missing).all() and not np.isinf([result.params, result.bse]).any()
    assert missing.any() == ("not identified" in str(result.summary()))


@pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")
@pytest.mark.parametrize("method", ["counts", "objective"])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0])
def test_nobody_answered(method, epsilon):
    # Unanswered rows are legal, and under a private design how many there are is private. A run
    # must not crash on them after it has spent.
    silent = GOOD.assign(outcome=np.nan)
    for seed in range(5):
        result = people(silent).fit(epsilon, method=method, rng=np.random.default_rng(seed))
        assert_said_or_finite(result)


@pytest.mark.parametrize(
    "frame", [GOOD.assign(outcome=np.nan), GOOD.head(1)], ids=["no answer", "one pair of three"]
)
def test_a_non_private_run_says_what_is_not_identified(frame):
    # Under a private design the observed graph is not looked at before the fit, but a non-private
    # run does use it: an item that was never compared must not come out with standard error 0.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            people(frame).fit(np.inf)
            said = [str(warning.message) for warning in caught]
        except ValueError as error:
            said = [str(error)]
    assert any("not identified" in text for text in said)


@pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")
@pytest.mark.parametrize("method", ["counts", "objective"])
@pytest.mark.parametrize("items", [ITEMS[:2], ITEMS, tuple("abcdefghi")])
def test_released_pair_counts_may_all_fall_to_zero(method, items):
    # At a small epsilon every noisy count can be negative. That depends on the release alone, but
    # a crash after the budget is spent takes the release with it.
    frame = GOOD[GOOD["item1"].isin(items) & GOOD["item2"].isin(items)]
    model = people(frame, items=items, pair_counts="release")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        result = model.fit(0.01, method=method, rng=rng)
        assert_said_or_finite(result)
        selection = pr.PrivateTopK(
            frame,
            1,
            items=items,
            respondent="respondent",
            max_rows=3,
            ties=True,
        )
        if len(items) > 2:  # two items have no released win rates
            assert_said_or_finite(selection.fit(0.01, target="win rate", rng=rng))


def counts_of(model):
    """The exact counts of a model, as the archive of a non-private run."""
    fit = {"dependence": "cluster"} if "respondents" in repr(model) else {}
    return model.fit(np.inf, rng=np.random.default_rng(0), **fit).release.to_json()


@st.composite
def surveys(draw):
    """Comparisons of two to five items by a few respondents, missing answers and ties included."""
    items = "abcde"[: draw(st.integers(2, 5))]
    pairs = list(combinations(items, 2))
    rows = []
    for person in range(draw(st.integers(1, 4))):
        for pair in draw(st.lists(st.sampled_from(pairs), unique=True, min_size=len(pairs) // 2)):
            first, second = pair if draw(st.booleans()) else pair[::-1]
            rows.append((person, first, second, draw(st.sampled_from([1.0, 0.0, -1.0, np.nan]))))
    frame = pd.DataFrame(rows, columns=["respondent", "item1", "item2", "outcome"])
    # the worths of items that nothing connects are not identified
    met = pd.crosstab(*(frame.loc[frame["outcome"].notna(), k] for k in ("item1", "item2")))
    graph = met.reindex(index=list(items), columns=list(items), fill_value=0)
    assume(connected_components(graph.to_numpy(), directed=False)[0] == 1)
    return frame, tuple(items)


def survey_model(frame, items, unit):
    arguments = (
        {"respondent": "respondent", "max_rows": 10}
        if unit == "respondent"
        else {"respondent": None}
    )
    return pr.PrivateBTL(frame, items=items, ties=True, **arguments)


properties = settings(max_examples=40, deadline=None, derandomize=True, database=None)
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")
by_unit = pytest.mark.parametrize("unit", ["row", "respondent"])


@quiet
@by_unit
@properties
@given(survey=surveys(), data=st.data())
def test_row_order_does_not_matter(unit, survey, data):
    frame, items = survey
    order = data.draw(st.permutations(range(len(frame))))
    shuffled = frame.iloc[order]
    assert counts_of(survey_model(frame, items, unit)) == counts_of(
        survey_model(shuffled, items, unit)
    )


@quiet
@by_unit
@properties
@given(survey=surveys(), data=st.data())
def test_turning_a_row_round_changes_nothing(unit, survey, data):
    frame, items = survey
    turn = np.array(data.draw(st.lists(st.booleans(), min_size=len(frame), max_size=len(frame))))
    turned = frame.assign(
        item1=frame["item1"].where(~turn, frame["item2"]),
        item2=frame["item2"].where(~turn, frame["item1"]),
        outcome=frame["outcome"].where(~turn, -frame["outcome"]),
    )
    assert counts_of(survey_model(frame, items, unit)) == counts_of(
        survey_model(turned, items, unit)
    )


@quiet
@by_unit
@properties
@given(survey=surveys(), data=st.data())
def test_relabelling_items_permutes_the_result(unit, survey, data):
    frame, items = survey
    names = dict(zip(items, data.draw(st.permutations(["v", "w", "x", "y", "z"])), strict=False))
    order = data.draw(st.permutations([names[item] for item in items]))
    renamed = frame.replace({"item1": names, "item2": names})
    before = survey_model(frame, items, unit).fit(np.inf)
    after = survey_model(renamed, order, unit).fit(np.inf)
    assert list(after.items) == list(order)
    for one, other in ((before.params, after.params), (before.bse, after.bse)):
        np.testing.assert_allclose(other[[names[item] for item in items]], one, atol=1e-9)


@quiet
@properties
@given(survey=surveys())
def test_names_of_respondents_do_not_matter(survey):
    frame, items = survey
    renamed = frame.assign(respondent=[f"person {9 - k}" for k in frame["respondent"]])
    assert counts_of(survey_model(frame, items, "respondent")) == counts_of(
        survey_model(renamed, items, "respondent")
    )


@quiet
@properties
@given(survey=surveys())
def test_unanswered_rows_add_units_and_nothing_else(survey):
    frame, items = survey
    answered = frame[frame["outcome"].notna()]
    whole, part = (survey_model(rows, items, "row").fit(np.inf) for rows in (frame, answered))
    assert whole.nobs == len(frame) and part.nobs == len(answered)
    np.testing.assert_array_equal(whole.params, part.params)


CHOSEN = pr.datasets.load_immigration()
PLAIN = CHOSEN.comparisons.astype({"item1": object, "item2": object})


def from_pandas(**dtypes):
    return lambda: PLAIN.astype(dtypes)


def polars_frame(**casts):
    return pl.DataFrame(PLAIN.to_dict("list"), strict=False).with_columns(
        **{name: pl.col(name).cast(kind) for name, kind in casts.items()}
    )


def polars_enum():
    kind = pl.Enum(list(CHOSEN.items))
    return polars_frame(item1=kind, item2=kind)


def polars_nulls():
    return polars_frame().with_columns(pl.col("outcome").fill_nan(None).cast(pl.Int8))


def polars_nan_and_null():
    # a polars column can hold both, and NaN is no missing value to polars
    odd = pl.int_range(pl.len()) % 2 == 1
    nothing = pl.col("outcome").is_nan() & odd
    return polars_frame().with_columns(
        outcome=pl.when(nothing).then(None).otherwise(pl.col("outcome"))
    )


def arrow_table():
    return pyarrow.Table.from_pandas(PLAIN, preserve_index=False)


def arrow_dictionary():
    table = arrow_table()
    for name in ("item1", "item2"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].dictionary_encode())
    return table


def duckdb_relation():
    return duckdb.from_arrow(arrow_table())


def dask_frame():
    return dask.dataframe.from_pandas(PLAIN, npartitions=3)


FRAMES = {
    "pandas object": from_pandas(),
    "pandas string": from_pandas(item1="string", item2="string"),
    "pandas category": lambda: CHOSEN.comparisons,
    "pandas Int64": from_pandas(outcome="Int64", respondent="Int64"),
    "pandas Float64": from_pandas(outcome="Float64"),
    "pandas float32": from_pandas(outcome="float32"),
    "pandas text respondent": from_pandas(respondent="string"),
    "pandas index level": lambda: PLAIN.set_index("respondent"),
    "pandas level of several": lambda: PLAIN.set_index(["respondent"], append=True),
    "pandas odd index": lambda: PLAIN.set_axis(["same"] * len(PLAIN)),
    "pandas pyarrow": lambda: PLAIN.convert_dtypes(dtype_backend="pyarrow"),
    "polars": polars_frame,
    "polars lazy": lambda: polars_frame().lazy(),
    "polars Enum": polars_enum,
    "polars null": polars_nulls,
    "polars NaN and null": polars_nan_and_null,
    "pyarrow": arrow_table,
    "pyarrow dictionary": arrow_dictionary,
    "duckdb": duckdb_relation,
    "dask": dask_frame,
}


# narwhals announces that its dask support will move to a package of its own
@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
@pytest.mark.parametrize("design", ["public", "private"])
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_every_engine_counts_alike(frame, design):
    def counts(data, respondent):
        rows = {"respondent": "respondent", "max_rows": 6} if respondent else {"respondent": None}
        facts = {"items": CHOSEN.items, "ties": True, "design": design}
        return counts_of(pr.PrivateBTL(data, **facts, **rows))

    data = frame()
    for respondent in (True, False):
        assert counts(data, respondent) == counts(CHOSEN.comparisons, respondent)


@pytest.mark.parametrize("frame", [lambda: CHOSEN.comparisons, polars_enum], ids=["pandas", "Enum"])
def test_declared_categories_are_the_items(frame):
    model = pr.PrivateBTL(frame(), ties=True, design="public", respondent=None)
    assert model.fit(np.inf).items == CHOSEN.items


def test_categories_that_polars_learned_are_not_declared():
    # a polars Categorical collects the values it meets
    frame = polars_frame(item1=pl.Categorical, item2=pl.Categorical)
    check_refusal(
        lambda: pr.PrivateBTL(frame, respondent=None), ValueError, ["items must be declared"]
    )
    model = pr.PrivateBTL(frame, items=CHOSEN.items, respondent=None, ties=True)
    assert model.fit(np.inf).items == CHOSEN.items


def test_items_that_nobody_compared_are_items_too():
    kind = pl.Enum(["d", "c", "b", "a"])
    frame = pl.from_pandas(GOOD).cast({"item1": kind, "item2": kind})
    fit = pr.PrivateBTL(frame, ties=True, respondent=None).fit(1.0, rng=np.random.default_rng(0))
    assert fit.items == ("d", "c", "b", "a")


def test_numbers_as_items():
    numbers = {"a": 3, "b": 1, "c": 2}
    frame = GOOD.assign(item1=GOOD["item1"].map(numbers), item2=GOOD["item2"].map(numbers))
    result = pr.PrivateBTL(frame, items=[3, 1, 2], respondent=None, ties=True).fit(
        np.inf, penalty=1
    )
    assert result.items == ("3", "1", "2")
    np.testing.assert_array_equal(result.params, btl().fit(np.inf, penalty=1).params)


def test_declared_pair_counts_as_mapping_and_as_frame():
    table = {("b", "a"): 4, ("b", "c"): 4.0, ("c", "a"): np.int64(4)}
    frame = pd.DataFrame(
        [(*pair, count) for pair, count in table.items()], columns=["item1", "item2", "count"]
    )
    designs = [btl(pair_counts=choice).fit(np.inf).release.design for choice in (table, frame)]
    for design in designs:
        assert design.pairs.origin == "declared"
        assert list(zip(design.pairs.first, design.pairs.second, strict=True)) == [
            (0, 1),
            (0, 2),
            (1, 2),
        ]
        assert design.pairs.count.tolist() == [4.0, 4.0, 4.0]


def test_equal_pair_counts_come_from_public_numbers():
    # three rows per respondent over three pairs, whatever was answered
    silent = GOOD.assign(outcome=GOOD["outcome"].where(GOOD["item1"] == "a"))
    for frame in (GOOD, silent):
        survey = people(frame, pair_counts="equal")
        result = survey.fit(1.0, method="counts", rng=np.random.default_rng(0))
        assert result.release.design.pairs.origin == "equal"
        assert result.release.design.pairs.count.tolist() == [4.0, 4.0, 4.0]


def coded(outcome):
    """Twenty-four answers to one questionnaire, which names the items of a pair in one order."""
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    frame = pd.DataFrame([pairs[k % 3] for k in range(24)], columns=["item1", "item2"])
    return frame.assign(outcome=np.resize(outcome, 24))


@pytest.mark.parametrize("outcome", [[1, 0, 1, 1, 0], [1, 0, -1, 1, 0]], ids=["coding", "ties"])
@pytest.mark.parametrize("made", ["class", "formula", "selection", "selection by formula"])
def test_a_zero_needs_ties_declared(made, outcome):
    # as a tie it would halve the worths of a 0/1 coding without a word
    frame, formula = coded(outcome), "item1 + item2 + outcome ~ 1"
    call = {
        "class": lambda: pr.PrivateBTL(frame, items=ITEMS, respondent=None),
        "formula": lambda: pr.PrivateBTL.from_formula(formula, frame, items=ITEMS, respondent=None),
        "selection": lambda: pr.PrivateTopK(frame, 1, items=ITEMS, respondent=None),
        "selection by formula": lambda: pr.PrivateTopK.from_formula(
            formula, frame, 1, items=ITEMS, respondent=None
        ),
    }[made]
    check_refusal(call, ValueError, ["'outcome'", "ties=True", "2 * x - 1"])


@pytest.mark.parametrize("answer", [1, 0, -1, np.nan])
def test_no_answer_of_one_person_decides_whether_a_frame_with_ties_is_taken(answer):
    frame = coded([1, 0, 1, 1, 0]).astype({"outcome": float})
    frame.loc[0, "outcome"] = answer
    assert btl(frame).fit(1.0, penalty=1, rng=np.random.default_rng(0)).nobs == 24


@pytest.mark.parametrize("name", [["respondent"], 3, b"respondent"])
def test_a_respondent_that_is_no_column_name(name):
    check_refusal(lambda: btl(respondent=name), TypeError, ["respondent", "column name"])


# --- the unit of privacy ---

FRAMES_UNSTATED = {
    "pandas": lambda frame: frame,
    "index level": lambda frame: frame.set_index("respondent"),
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pyarrow.Table.from_pandas(frame, preserve_index=False),
}
UNSTATED_CALLS = {
    "class": lambda frame: pr.PrivateBTL(frame, items=ITEMS, ties=True),
    "selection": lambda frame: pr.PrivateTopK(frame, 1, items=ITEMS, ties=True),
    "formula": lambda frame: pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ 1", frame, items=ITEMS
    ),
    "covariates": lambda frame: pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ C(age)",
        frame,
        items=ITEMS,
        levels={"age": [1, 2]},
        contest="first",
    ),
    "selection by formula": lambda frame: pr.PrivateTopK.from_formula(
        "item1 + item2 + outcome ~ 1", frame, 1, items=ITEMS
    ),
}


@pytest.mark.parametrize("engine", FRAMES_UNSTATED)
@pytest.mark.parametrize("made", UNSTATED_CALLS)
def test_the_unit_has_to_be_stated(made, engine):
    # cells that nothing may be said of: they break every other rule
    broken = GOOD.assign(age=9, item1=CANARY, outcome=7.0)
    frame = FRAMES_UNSTATED[engine](broken)
    words = ["respondent= must be stated", "the column", "or None if each comparison"]
    check_refusal(lambda: UNSTATED_CALLS[made](frame), TypeError, words)


@pytest.mark.parametrize("made", UNSTATED_CALLS)
def test_no_cell_is_read_and_nothing_spent_before_the_unit_is_stated(made, monkeypatch):
    def read(*_):
        raise AssertionError("a cell was read")

    for reader in ("coding.tally", "coding.key_of", "frames.numeric_columns", "frames.evaluate"):
        monkeypatch.setattr(f"privrank.encode.{reader}", read)
    budget = pr.Budget(epsilon=1.0)
    words = ["respondent= must be stated"]
    frame = GOOD.assign(age=1)
    call = UNSTATED_CALLS[made]
    check_refusal(lambda: call(frame).fit(1.0, budget=budget), TypeError, words)
    assert budget.spent == (0.0, 0.0)


def test_winners_and_losers_need_a_unit_too():
    call = lambda **unit: pr.PrivateBTL.from_formula(  # noqa: E731
        "winner + loser ~ 1", WORDS.assign(who=[1, 2]), items=ITEMS, **unit
    )
    check_refusal(call, TypeError, ["respondent= must be stated"])
    assert repr(call(respondent=None)) == "<PrivateBTL: 3 items, 2 rows>"
    assert repr(call(respondent="who")) == "<PrivateBTL: 3 items, 2 respondents>"


def test_the_signature_says_that_the_unit_is_to_be_stated():
    for model in (pr.PrivateBTL, pr.PrivateTopK):
        assert "respondent: 'str | None' = <to be stated>" in str(inspect.signature(model))
