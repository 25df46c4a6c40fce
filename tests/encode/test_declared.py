"""Items, categories and levels are declared, never learned, at each entry point.

A pandas categorical holds the values met. So two data sets that differ in one answer, which in one
of them occurs nowhere else, have to be refused in the same words, or show the same public facts.
"""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privrank as pr
from privrank.encode.frames import DECLARED

ITEMS = ["tea", "milk", "juice", "mead"]
JOBS, GROUPS = ["cook", "smith", "monk"], ["north", "south", "isle"]
RARE = {"choice": "mead", "job": "monk", "group": "isle", "winner": "mead", "best": "mead"}
N = 60


def survey(rare=None):
    """Answers of which one, in the column `rare`, may be a value that occurs nowhere else."""
    k = np.arange(N)
    frame = pd.DataFrame(
        {
            "who": k,
            "choice": np.array(ITEMS)[k % 3],
            "job": np.array(JOBS)[k % 2],
            "group": np.array(GROUPS)[k % 2],
            "winner": np.array(ITEMS)[k % 3],
            "loser": np.array(ITEMS)[(k + 1) % 3],
            "best": np.array(ITEMS)[k % 3],
            "last": np.array(ITEMS)[(k + 1) % 3],
        }
    )
    if rare is not None:
        frame.loc[7, rare] = RARE[rare]
    frame["outcome"] = 1.0
    return frame


def learned(frame):
    """Every column of words as a categorical of the values that it holds."""
    words = [name for name in frame if frame[name].dtype == frame["choice"].dtype]
    return frame.astype(dict.fromkeys(words, "category"))


def alike(frame):
    """The same, with the categories of all columns of items."""
    frame = learned(frame)
    names = ["winner", "loser", "best", "last"]
    kind = pd.CategoricalDtype(sorted(set().union(*(frame[name].cat.categories for name in names))))
    return frame.astype(dict.fromkeys(names, kind))


def enums(frame):
    """The columns as polars Enums of the questionnaire."""
    kinds = {"job": pl.Enum(JOBS), "group": pl.Enum(GROUPS), "choice": pl.Enum(ITEMS)}
    kinds |= dict.fromkeys(["winner", "loser", "best", "last"], pl.Enum(ITEMS))
    return pl.from_pandas(frame.astype(dict.fromkeys(kinds, object))).cast(kinds)


def worths(formula, frame, **arguments):
    given = {"items": ITEMS, "respondent": "who"} | arguments
    return pr.PrivateBTL.from_formula(formula, frame, **given)


def converted(frame, *arguments, **more):
    return pr.as_comparisons(frame, *arguments, **more)


# the column with the rare answer, the call without a declaration, and the same with all declared
ENTRY_POINTS = {
    "uniformity of a Series": (
        "choice",
        lambda frame: pr.UniformityTest(frame["choice"]),
        lambda frame: pr.UniformityTest(frame["choice"], items=ITEMS),
    ),
    "identity of a Series": (
        "choice",
        lambda frame: pr.IdentityTest(frame["choice"], "uniform"),
        lambda frame: pr.IdentityTest(frame["choice"], dict.fromkeys(ITEMS, 0.25)),
    ),
    "closeness of Series": (
        "choice",
        lambda frame: pr.ClosenessTest(frame["choice"][:30], frame["choice"][30:]),
        lambda frame: pr.ClosenessTest(frame["choice"][:30], frame["choice"][30:], items=ITEMS),
    ),
    "uniformity by formula": (
        "choice",
        lambda frame: pr.UniformityTest.from_formula("choice ~ 1", frame, respondent="who"),
        lambda frame: pr.UniformityTest.from_formula("choice ~ 1", frame, categories=ITEMS),
    ),
    "identity by formula": (
        "choice",
        lambda frame: pr.IdentityTest.from_formula("choice ~ 1", frame, [0.25] * 4),
        lambda frame: pr.IdentityTest.from_formula(
            "choice ~ 1", frame, pd.Series(0.25, index=ITEMS)
        ),
    ),
    "closeness by formula": (
        "choice",
        lambda frame: pr.ClosenessTest.from_formula("choice ~ group", frame),
        lambda frame: pr.ClosenessTest.from_formula("choice ~ group", frame, categories=ITEMS),
    ),
    "private groups": (
        "group",
        lambda frame: pr.ClosenessTest.from_formula(
            "choice ~ group", frame, categories=ITEMS, labels="private"
        ),
        lambda frame: pr.ClosenessTest.from_formula(
            "choice ~ group", frame, categories=ITEMS, levels=GROUPS, labels="private"
        ),
    ),
    "winners": (
        "winner",
        lambda frame: converted(frame, "winner-loser", respondent="who"),
        lambda frame: pr.PrivateBTL(
            converted(frame, "winner-loser", respondent="who", items=ITEMS),
            respondent="respondent",
        ),
    ),
    "winners by formula": (
        "winner",
        lambda frame: worths("winner + loser ~ 1", frame, items=None),
        lambda frame: worths("winner + loser ~ 1", frame),
    ),
    "comparisons": (
        "winner",
        lambda frame: pr.PrivateBTL(frame, item1="winner", item2="loser", respondent="who"),
        lambda frame: pr.PrivateBTL(
            frame, item1="winner", item2="loser", respondent="who", items=ITEMS
        ),
    ),
    "comparisons in rows": (
        "winner",
        lambda frame: converted(frame, item1="winner", item2="loser"),
        lambda frame: pr.PrivateTopK(
            converted(frame, item1="winner", item2="loser", items=ITEMS), k=1, respondent=None
        ),
    ),
    "orders": (
        "best",
        lambda frame: pr.as_rankings(frame, "orders", places=["best", "last"], missing="bottom"),
        lambda frame: pr.PrivateRankAggregation(
            pr.as_rankings(frame, "orders", places=["best", "last"], items=ITEMS, missing="bottom")
        ),
    ),
    "levels": (
        "job",
        lambda frame: worths("winner + loser ~ job", frame),
        lambda frame: worths("winner + loser ~ job", frame, levels={"job": JOBS}),
    ),
    "levels in the formula": (
        "job",
        lambda frame: worths("winner + loser ~ C(job)", frame),
        lambda frame: worths("winner + loser ~ C(job, levels=['cook', 'smith', 'monk'])", frame),
    ),
}


def told(call):
    """The words of a refusal."""
    with pytest.raises(ValueError) as caught:
        call()
    return str(caught.value)


def facts(model):
    encoded = model._encoded
    return repr(getattr(encoded, "design", None) or encoded.sample)


@pytest.mark.parametrize("kind", [learned, alike])
@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_values_met_are_no_declaration(entry, kind):
    column, careless, _ = ENTRY_POINTS[entry]
    texts = {told(partial(careless, kind(survey(rare)))) for rare in (None, column)}
    (text,) = texts
    assert "must be declared" in text and " pandas " in text
    assert text.count(". ") < 3 and text.endswith(".")
    assert not any(value in text for value in (*ITEMS, *JOBS, *GROUPS))


@pytest.mark.parametrize("kind", [learned, alike, enums])
@pytest.mark.parametrize(
    "entry", [name for name in ENTRY_POINTS if ENTRY_POINTS[name][2] is not None]
)
def test_declared_values_are_public_whichever_occur(entry, kind):
    column, _, careful = ENTRY_POINTS[entry]
    known = {facts(careful(kind(survey(rare)))) for rare in (None, column)}
    (text,) = known
    listed = {"levels": JOBS, "levels in the formula": JOBS, "private groups": GROUPS}
    assert all(repr(value) in text for value in listed.get(entry, ITEMS))


@pytest.mark.parametrize(
    "entry", [name for name in ENTRY_POINTS if ENTRY_POINTS[name][2] is not None]
)
def test_an_enum_declares(entry):
    column, plain, _ = ENTRY_POINTS[entry]
    models = [plain(enums(survey(rare))) for rare in (None, column)]
    if hasattr(models[0], "fit"):
        assert len({facts(model) for model in models}) == 1
    else:
        assert all(list(frame.attrs.get(DECLARED, frame)) == ITEMS for frame in models)


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
@pytest.mark.parametrize("make", ["dask", "duckdb", "polars", "arrow"])
def test_other_engines_do_not_declare_what_they_met(make):
    dd, duckdb = pytest.importorskip("dask.dataframe"), pytest.importorskip("duckdb")
    frame = survey()[["choice"]]
    frame["choice"] = pd.Categorical(frame["choice"], ordered=True)
    made = {
        "dask": lambda: dd.from_pandas(frame, npartitions=2),
        "duckdb": lambda: duckdb.from_df(frame),
        "polars": lambda: pl.from_pandas(frame),
        "arrow": lambda: pl.from_pandas(frame).to_arrow(),
    }[make]()
    assert "must be declared" in told(lambda: pr.UniformityTest.from_formula("choice ~ 1", made))


def test_a_column_says_what_is_public():
    # levels of public groups, covariates and items of a public design
    frame = learned(survey("group"))
    frame.loc[:1, "group"] = "isle"
    by_group = pr.ClosenessTest.from_formula("choice ~ group", frame, categories=ITEMS)
    assert [name for name, _ in facts_of(by_group).groups] == sorted(GROUPS)
    public = alike(survey())
    asked = {"item1": "winner", "item2": "loser", "respondent": "who", "design": "public"}
    release = pr.PrivateBTL(public, **asked).fit(np.inf).release
    assert release.design.items == ("juice", "milk", "tea")
    formula = "winner + loser + outcome ~ job"
    found = worths(formula, public, items=None, design="public").fit(np.inf).release.design
    assert found.covariates.factors == (("job", ("cook", "smith")),)
    # which of two compared items has won is never public
    text = told(lambda: worths("winner + loser ~ 1", public, items=None, design="public"))
    assert "must be declared" in text


def facts_of(test):
    return test._encoded.sample


def test_a_form_hands_on_what_its_call_declared():
    frame = survey()
    votes = converted(frame, "winner-loser", respondent="who", items=ITEMS)
    some = votes.loc[votes["item1"] != "tea"].assign(remark=1).sample(frac=1.0, random_state=1)
    for kept in (votes, some, pd.concat([some, votes.loc[votes["item1"] == "tea"]])):
        model = pr.PrivateBTL(kept, respondent="respondent")
        assert model._encoded.design.items == tuple(ITEMS)
    # categories that others made of such a frame are not looked at
    again = votes.assign(item1=votes["item1"].cat.remove_unused_categories())
    assert pr.PrivateBTL(again, respondent="respondent")._encoded.design.items == tuple(ITEMS)
    lost = votes.merge(frame[["who", "job"]], left_on="respondent", right_on="who")
    assert "items must be declared" in told(lambda: pr.PrivateBTL(lost, respondent="respondent"))


def test_surveys_hand_on_their_codebooks():
    cems = pr.datasets.load_university()
    data = cems.comparisons.merge(cems.students.reset_index(), on="respondent")
    model = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ french",
        data,
        items=cems.items,
        levels=cems.levels,
        respondent="respondent",
        max_rows=15,
        ties=True,
    )
    assert model.fit(np.inf).release.design.covariates.factors == (("french", ("good", "poor")),)
    assert set(cems.levels) == set(cems.students.columns)
    with pytest.raises(ValueError, match="levels must name columns of data"):
        worths("winner + loser ~ 1", survey(), levels={"jobs": JOBS})
