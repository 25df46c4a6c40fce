"""Messages name what is wrong, and a remedy that works."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sentences import refused_briefly

import privrank as pr

ITEMS = list("abcde")
PAIRS = [(a, b) for k, a in enumerate(ITEMS) for b in ITEMS[k + 1 :]]
FRAME = pd.DataFrame(PAIRS * 8, columns=["item1", "item2"]).assign(
    outcome=[1, -1] * 40, age=[20, 50] * 40, job=["x", "y"] * 40
)
RANKS = pd.DataFrame([[1, 2, 3], [2, 1, 3]] * 20, columns=["tea", "milk", "water"])
LONG = "item1 + item2 + outcome"


def worths(**more):
    arguments = {"items": ITEMS, "respondent": None, "design": "public"} | more
    return pr.PrivateBTL(FRAME, **arguments)


def formula(text, **more):
    return pr.PrivateBTL.from_formula(text, FRAME, items=ITEMS, respondent=None, **more)


def tally(protocol, answers):
    return protocol.tally(
        pd.DataFrame([protocol.randomize(list(protocol.items), asked) for asked in answers])
    )


def seeded():
    return np.random.default_rng(1)


RANKED = RANKS.astype({"tea": object}).replace({"tea": {2: "not ranked"}})
NAMED = RANKS.assign(name=[f"p{k}" for k in range(40)])
TEXTS = FRAME.assign(outcome=["A", "B"] * 40)
DECIDED = pd.DataFrame({"winner": ["tea", "milk"], "loser": ["milk", "tea"]})
LISTS = pd.DataFrame({"best": ["tea", "milk"], "next": ["milk", "tea"]})
FEW = pr.local.SubRanking(ITEMS, 1.0, 2)
ONE = RANKS[["tea"]]
CHOSEN = pd.Series(pd.Categorical(list("aabc") * 5))
CASES = {
    "covariates that a form has left out": (
        lambda: formula(LONG + " ~ sex", levels={"sex": ["f", "m"]}),
        "to which those that as_comparisons left out are merged back by respondent.$",
    ),
    "frames of choices of two years": (
        lambda: pr.ClosenessTest(
            *[NAMED[["name"]].assign(pick=["tea", "milk"] * 20)] * 2,
            items=["tea", "milk"],
            respondent="name",
            paired=True,
        ),
        r"choices stack the samples .* use from_formula\('choice ~ group', data\)",
    ),
    "ties among names of items": (
        lambda: pr.as_comparisons(
            pd.DataFrame({"tea_milk": ["tea", "tie"]}), "wide", sep="_", codes={}
        ),
        r"names of the pair's items, answers that .*codes={'tie': \.\.\.}. Recode other",
    ),
    "a category that H0 does not name": (
        lambda: pr.IdentityTest(CHOSEN, {"a": 0.5, "b": 0.5}),
        "not among the names of null",
    ),
    "counts as choices": (
        lambda: pr.UniformityTest(CHOSEN.value_counts(), categories=list("abc")),
        r"For a table of counts use from_counts\(\).$",
    ),
    "sites that took tests": (
        lambda: pr.pool([pr.UniformityTest(RANKS).fit(1.0)] * 2, survey="different"),
        r"tests cannot be pooled. To read a JSON text, call privrank.from_json\(text\) first.$",
    ),
    "a distance of three groups": (
        lambda: pr.ClosenessTest.from_formula(
            "tea + milk + water ~ name", RANKS.assign(name=list("xyzz") * 10), levels=list("xyz")
        ).fit(1.0, effect_epsilon=1.0),
        "use details_epsilon= for more groups.$",
    ),
    "a name of a file": (lambda: pr.from_json("result.json"), "not the name of its file.$"),
    "undeclared samples of choices": (
        lambda: pr.ClosenessTest(CHOSEN, CHOSEN),
        r"^categories must be declared: pass categories=\[...\]",
    ),
    "samples of other Enums": (
        lambda: pr.ClosenessTest(
            *(pl.Series(list("abc") * 5, dtype=pl.Enum(list(names))) for names in ("abc", "acb"))
        ),
        "Declare them with items=.$",
    ),
    "a sample with a choice that is none of the items": (
        lambda: pr.ClosenessTest(CHOSEN, CHOSEN, items=["a", "b"]),
        "a value that is not listed in items",
    ),
    "a choice that is none of the items": (
        lambda: pr.UniformityTest(CHOSEN, items=["a", "b"]),
        "a value that is not listed in items",
    ),
    "undeclared choices": (
        lambda: pr.UniformityTest(CHOSEN),
        r"^categories must be declared: pass categories=\[...\]",
    ),
    "undeclared choices and shares": (
        lambda: pr.IdentityTest(CHOSEN, [0.3, 0.3, 0.4]),
        r"must be declared: pass categories=\[...\]",
    ),
    "undeclared choices and uniform shares": (
        lambda: pr.IdentityTest(CHOSEN, "uniform"),
        r"^categories must be declared: pass categories=\[...\]",
    ),
    "a choice that is none of the categories": (
        lambda: pr.IdentityTest(CHOSEN, [0.3, 0.7], categories=["a", "b"]),
        "a value that is not listed in categories",
    ),
    "an item without comparisons, last": (
        lambda: worths(items=[*ITEMS, "z"]),
        "but z is never compared with the others.* leave items without any out of items=",
    ),
    "an item without comparisons, first": (
        lambda: worths(items=["z", *ITEMS]),
        "but z is never compared with the others",
    ),
    "JSON for results": (
        lambda: pr.pool(["{}", "{}"], survey="different"),
        r"read a JSON text, call privrank.from_json\(text\)",
    ),
    "one JSON text": (
        lambda: pr.pool("{}", survey="different"),
        r"read a JSON text, call privrank.from_json\(text\)",
    ),
    "a covariate with a space in its name": (
        lambda: formula(LONG + " ~ age group", levels={"age group": ["young", "old"]}),
        r"Quote a name that is not a Python name, such as Q\('age group'\)",
    ),
    "items that print alike": (
        lambda: pr.PrivateBTL(FRAME, items=[1, "1"], respondent=None),
        r"two names differ only in spaces or type \(here int and str\)",
    ),
    "ranks with a word for none": (
        lambda: pr.UniformityTest(RANKED, items=["tea", "milk", "water"]),
        r"column 'tea' must hold ranks, .* a missing value \(NaN\), never text, for an item that",
    ),
    "ranks to convert with a word for none": (
        lambda: pr.as_rankings(RANKED),
        r"missing values \(empty cells, NaN\), never text, for items that are not ranked",
    ),
    "a typo on the left": (
        lambda: formula("item1 + item2 + outcom ~ 1"),
        "data has no column 'outcom'. Correct the name in the formula.$",
    ),
    **{
        f"a typo on the left, {name}": (
            call,
            "data has no column 'watr'. Correct the name in the formula.$",
        )
        for name, call in {
            "uniformity": lambda: pr.UniformityTest.from_formula("tea + watr ~ 1", RANKS),
            "choices": lambda: pr.UniformityTest.from_formula("watr ~ 1", RANKS),
            "identity": lambda: pr.IdentityTest.from_formula("tea + watr ~ 1", RANKS, "uniform"),
            "consensus": lambda: pr.PrivateRankAggregation.from_formula("tea + watr ~ 1", RANKS),
        }.items()
    },
    **{
        f"outcomes left out, {name}": (
            call,
            "formula must name item1, item2 and the outcome on its left, because data has a",
        )
        for name, call in {
            "worths": lambda: formula("item1 + item2 ~ 1"),
            "the other way round": lambda: formula("item2 + item1 ~ job"),
            "top": lambda: pr.PrivateTopK.from_formula("item1 + item2 ~ 1", FRAME, 1),
        }.items()
    },
    "a numeric covariate": (
        lambda: formula(f"{LONG} ~ age"),
        r"bounds=\{'age': \(low, high\)\}.*design='public'.*Give both, or cut",
    ),
    "a misspelt item around sep": (
        lambda: pr.as_comparisons(
            pd.DataFrame({"tea>milk": [1], "tea>water": [1]}),
            "wide",
            items=["tea", "milk", "watr"],
            sep=">",
        ),
        "around sep= in column names, must be declared items.* check their names",
    ),
    "an undeclared group": (
        lambda: pr.ClosenessTest.from_formula(
            "tea + milk + water ~ g", RANKS.assign(g=["u", "v"] * 20), levels=["u", "w"]
        ),
        "not listed in levels.* List all groups of the questionnaire",
    ),
    "an undeclared level": (
        lambda: formula(f"{LONG} ~ job", levels={"job": ["x", "z"]}),
        "not listed in levels.* List all levels of the questionnaire",
    ),
    "answers as texts": (
        lambda: pr.PrivateBTL(TEXTS, items=ITEMS, respondent=None),
        r"\(frame, 'long', codes=.*\), texts with codes={'first': 'A', \.\.\.} and names of "
        r"preferred items with codes={}\. Convert objects",
    ),
    "names beside ranks": (
        lambda: pr.as_comparisons(NAMED, "rankings"),
        "'name' must hold ranks.* with items=, and the respondent column with respondent=",
    ),
    "a respondent of before the conversion": (
        lambda: pr.PrivateBTL(
            pr.as_comparisons(NAMED, "rankings", respondent="name"), respondent="name", max_rows=3
        ),
        "no column 'name'. Use respondent='respondent', the name of that column after pri",
    ),
    "a respondent that nothing has named": (
        lambda: pr.PrivateBTL(FRAME, items=ITEMS, respondent="name", max_rows=3),
        "no column 'name'. Name the right column with respondent=. Convert",
    ),
    **{
        f"pairs for {model.__name__}, {name}": (
            call,
            "Use PrivateBTL for comparisons: its summary tests",
        )
        for model in (pr.UniformityTest, pr.PrivateRankAggregation)
        for name, call in {
            "long": lambda model=model: model(FRAME),
            "long, items": lambda model=model: model(FRAME, items=ITEMS),
            "winners": lambda model=model: model(DECIDED),
        }.items()
    },
    "orders for a test": (
        lambda: pr.UniformityTest(LISTS),
        r"form=...\), using 'orders' if cells name items.$",
    ),
    "rankings as a null": (
        lambda: pr.IdentityTest(RANKS, RANKS).fit(1.0),
        r"got DataFrame: answers of an earlier survey are compared by ClosenessTest\(now, last\).$",
    ),
    "choices as a null": (
        lambda: pr.IdentityTest(CHOSEN, CHOSEN, categories=list("abc")).fit(1.0),
        r"^null must give a probability for each category: .* by ClosenessTest\(now, last\).$",
    ),
    "the same people twice": (
        lambda: pr.ClosenessTest(NAMED, NAMED, respondent="name"),
        "If the same respondents answered twice, use paired=True. If ids of different people "
        "are equal, make them distinct.$",
    ),
    **{
        f"a column of choices for {name}": (call, f"one column of choices .*{said}', data")
        for name, call, said in (
            (
                "closeness",
                lambda: pr.ClosenessTest(ONE, ONE),
                r"column of groups .*\('choice ~ group",
            ),
            ("uniformity", lambda: pr.UniformityTest(ONE), r"use from_formula\('choice ~ 1"),
            ("a consensus", lambda: pr.PrivateRankAggregation(ONE), r"use UniformityTest.*ice ~ 1"),
        )
    },
    "a tie without a code": (
        lambda: pr.as_comparisons(TEXTS, items=ITEMS, codes={"first": "A", "second": "C"}),
        r"only answers that codes= declares or missing values",
    ),
    "items of sites in another order": (
        lambda: pr.pool(
            [
                pr.PrivateRankAggregation(RANKS[names]).fit(1.0, rng=seeded())
                for names in (["tea", "milk", "water"], ["milk", "tea", "water"])
            ],
            survey="different",
        ),
        "same items, in the same order. Fit all with the same items=.$",
    ),
    "a Smith set of Borda scores": (
        lambda: pr.PrivateRankAggregation(RANKS).fit(1.0, method="borda", rng=seeded()).smith_set(),
        "this result releases no pair fractions: fit with releases='pairs'",
    ),
    "a distance beside a phi": (
        lambda: pr.power.ClosenessPower(4).power(100, 1.0, phi=0.9, total_variation=0.1),
        "takes no total_variation= with another effect. State phi= or total_variation= once",
    ),
    "a distance beside what is unknown": (
        lambda: pr.power.ClosenessPower(4).power(100, 1.0, gap=0.9, total_variation=0.1),
        "takes no gap=. State phi= or total_variation= once, or omit it.$",
    ),
    "phi of choices": (
        lambda: pr.power.UniformityPower(4, kind="choices").power(100, 1.0, phi=0.9),
        "takes no phi=. State total_variation= once, or plan with kind='rankings'.$",
    ),
    "another word": (
        lambda: pr.power.ClosenessPower(4).power(100, 1.0, size=0.1),
        "takes no size=. State phi= or total_variation= once, or omit it.$",
    ),
    "too few reports for worths": (
        lambda: pr.PrivateBTL.from_reports(tally(FEW, [0])),
        "tally must hold reports that connect all items, .*: collect more reports.$",
    ),
    "too few reports for a consensus": (
        lambda: pr.PrivateRankAggregation.from_reports(tally(FEW, [0, 1])),
        "tally must hold reports that connect all items, .*: collect more reports.$",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_message_names_the_fault_and_a_remedy(case):
    call, said = CASES[case]
    with pytest.raises((ValueError, TypeError), match=said) as caught:
        call()
    text = str(caught.value)
    assert "drop" not in text and "outcome=" not in text


@pytest.mark.filterwarnings("ignore::privrank.util.checks.PrivrankWarning")
def test_intervals_without_an_end_are_explained():
    few = pd.DataFrame({"item1": list("aab") * 6, "item2": list("bcc") * 6, "outcome": 1})
    lost = few.assign(outcome=[1, 1, -1, -1, 1, 1] * 3)
    rng = np.random.default_rng(1)
    for frame, epsilon, endless in ((few, 0.5, True), (few, np.inf, True), (lost, np.inf, False)):
        model = pr.PrivateBTL(frame, items=["a", "b", "c"], respondent=None, design="public")
        summary = " ".join(str(model.fit(epsilon, penalty=1.0, rng=rng).summary()).split())
        assert ("Some intervals are unbounded (inf)" in summary) == endless


@pytest.mark.filterwarnings("ignore::privrank.util.checks.PrivrankWarning")
def test_pairs_have_the_same_index_everywhere():
    rng = np.random.default_rng(1)
    fits = [worths().fit(e, rng=rng) for e in (1.0, 2.0)]
    consensus = pr.PrivateRankAggregation(RANKS).fit(1.0, method="kemeny", rng=rng)
    for found in (*fits, pr.pool(fits, survey="different"), consensus):
        table = found.pairwise()
        assert list(table.columns[:2]) == ["item1", "item2"]
        assert table.index.equals(pd.RangeIndex(len(table)))


def test_an_estimate_near_one_has_an_error():
    """That of a share of 1 is no 0: no draw happened to be below, which proves nothing."""
    estimate = pr.power.BTLPower(items=3, replicates=20).power(300, 4.0, 2.0)
    assert estimate == 1.0 and estimate.error >= 1 / 21 and not estimate.exact
    assert "Monte Carlo standard error 0.048" in str(estimate)


def test_quoted_names_with_spaces_are_columns():
    frame = FRAME.assign(**{"age group": ["young", "old"] * 40})
    model = pr.PrivateBTL.from_formula(
        LONG + " ~ Q('age group')",
        frame,
        items=ITEMS,
        respondent=None,
        levels={"age group": ["young", "old"]},
    )
    assert "age group" in repr(model._encoded.design.covariates.factors)


MODELS = {
    "PrivateBTL": lambda **more: worths(**more),
    "a formula of PrivateBTL": lambda **more: formula(LONG + " ~ 1", **more),
    "PrivateTopK": lambda **more: pr.PrivateTopK(FRAME, 2, items=ITEMS, respondent=None, **more),
    "PrivateRankAggregation": lambda **more: pr.PrivateRankAggregation(RANKS, **more),
    "UniformityTest": lambda **more: pr.UniformityTest(RANKS, **more),
    "IdentityTest": lambda **more: pr.IdentityTest(RANKS, pr.Mallows(list(RANKS), 1.0), **more),
    "ClosenessTest": lambda **more: pr.ClosenessTest(RANKS, RANKS, **more),
    "a formula of ClosenessTest": lambda **more: pr.ClosenessTest.from_formula(
        "tea + milk + water ~ year", RANKS.assign(year=[1, 2] * 20), levels=[1, 2], **more
    ),
}


@pytest.mark.parametrize("name", [name for name in MODELS if "BTL" not in name and "K" not in name])
def test_weights_are_refused_where_nothing_is_proved(name):
    MODELS[name]()
    words = ["PrivateBTL", "within strata", "from_counts", "docs/weights.md"]
    refused_briefly(lambda: MODELS[name](weights="w"), TypeError, words)


def engines(**columns):
    import duckdb

    frame = pd.DataFrame(columns)
    yield from (frame, pl.from_pandas(frame), pl.from_pandas(frame).lazy())
    yield duckdb.from_df(frame)


def test_values_that_a_declaration_leaves_out_become_no_missing_ones():
    """No reader turns an answer that codes, levels or items leave out into a missing one."""
    long = {"item1": ["a", "b"] * 4, "item2": ["b", "a"] * 4, "outcome": ["x", "y", "z", "x"] * 2}
    codes = {"first": "x", "second": "y"}
    for frame in engines(**long):
        with pytest.raises(ValueError, match="answers that codes= declares or missing"):
            pr.as_comparisons(frame, "long", items=["a", "b"], codes=codes)
    for frame in engines(**{"a:b": long["outcome"]}):
        with pytest.raises(ValueError, match="answers that codes= declares or missing"):
            pr.as_comparisons(frame, "wide", sep=":", codes=codes)
    coded = long | {"outcome": [1, -1] * 4, "sex": ["f", "m", "d", "f"] * 2}
    for frame, design in product(engines(**coded), ("private", "public")):
        options = {"items": ["a", "b"], "respondent": None, "design": design}
        with pytest.raises(
            ValueError,
            match="'sex' contains .* not listed in levels",
        ):
            pr.PrivateBTL.from_formula(
                LONG + " ~ sex", frame, levels={"sex": ["f", "m"]}, **options
            )
        options["items"] = ["a", "c"]
        with pytest.raises(ValueError, match="not listed in items"):
            pr.PrivateBTL(frame, **options)
    for frame in engines(best=["a", "b"] * 4, next=["b", "c"] * 4):
        with pytest.raises(ValueError, match="not listed in items"):
            pr.as_rankings(frame, "orders", items=["a", "b"])
