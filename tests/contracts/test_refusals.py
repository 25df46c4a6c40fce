"""A frame that breaks a promise is refused in words that do not depend on how it breaks it.

For each promise: frames that break it in one row or in all, in the first or the last, with this
value or that, are refused by one text, and no cell is in it.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import surveys
from searching import CANARY, ODD

import privrank as pr

ITEMS, LEVELS = surveys.ITEMS, surveys.LEVELS
ROW = {"items": ITEMS, "respondent": None, "ties": False}
PERSON = {"items": ITEMS, "respondent": "respondent", "max_rows": 6, "ties": False}
GROUPS = ROW | {"levels": LEVELS}
FORMULA = "item1 + item2 + outcome ~ gender + study"
RANKED = " + ".join(ITEMS)


def spoiled(frame, column, *values):
    """The frame with the values in its last rows, or in all of them when there is one value."""
    whole = frame.astype({column: object}) if isinstance(values[0], str) else frame.copy()
    place = whole.columns.get_loc(column)
    for value, rows in ((values[0], slice(None)), (values[-1], slice(-1, None)), (values[0], 0)):
        broken = whole.copy()
        broken.iloc[rows, place] = value
        yield broken


def engines(frames):
    for frame in frames:
        yield frame
        yield pl.from_pandas(frame)


def btl(frame, **options):
    return pr.PrivateBTL(frame, **{**ROW, **options})


def person(frame, **options):
    return pr.PrivateBTL(frame, **{**PERSON, **options})


def described(frame, **options):
    return pr.PrivateBTL.from_formula(FORMULA, frame, **{**GROUPS, **options})


def aged(frame):
    formula, bounds = "item1 + item2 + outcome ~ age", {"age": (18, 65)}
    more = {"design": "public", "bounds": bounds}
    return pr.PrivateBTL.from_formula(formula, frame, **{**ROW, **more})


def consensus(frame, **options):
    return pr.PrivateRankAggregation(frame, items=ITEMS, **options)


def crowd(frame, **options):
    return consensus(frame, respondent="respondent", max_rows=3, **options)


def chosen(frame):
    return pr.UniformityTest.from_formula("choice ~ 1", frame, categories=surveys.CATEGORIES)


def grouped(frame, **options):
    levels = {"levels": ["group 0", "group 1"], **options}
    return pr.ClosenessTest.from_formula(f"{RANKED} ~ group", frame, **levels)


def hidden(frame):
    return grouped(frame, labels="private")


def comparisons():
    rows, people = surveys.private_rows()["mixed"], surveys.private_respondents()["full"]
    named = people.assign(respondent=surveys.NAMES[people["respondent"]])
    same = rows.copy()
    same.iloc[-1, 1] = same.iloc[-1, 0]
    more = pd.concat([named] + [named.assign(outcome=1.0)] * 3)
    one = pd.concat([named, named[named["respondent"] == "person 7"]])
    twice = named.copy()
    twice.iloc[:2, :2] = ["north", "east"]
    again = named.assign(item1="north", item2="east")
    return {
        "an outcome that is none": (btl, engines(spoiled(rows, "outcome", float(ODD), 0.5, 2.0))),
        "an outcome, infinite": (btl, engines(spoiled(rows, "outcome", float(ODD), np.inf))),
        "an undeclared tie": (btl, engines(spoiled(rows, "outcome", 0.0))),
        "an undeclared item": (btl, engines(spoiled(rows, "item1", f"{CANARY} 1", "nowhere"))),
        "an item that is missing": (btl, [rows.assign(item2=None), rows.assign(item2=np.nan)]),
        "an item compared with itself": (btl, [same, rows.assign(item2=rows["item1"])]),
        "a respondent that is missing": (person, spoiled(named, "respondent", None, None)),
        "too many rows": (person, [more, one]),
        "a pair twice": (person, [twice, again]),
    }


def covariates():
    rows = surveys.grouped()["mixed"]
    people = surveys.grouped(people=True)["mixed"]
    fixed = surveys.described()["mixed"]
    turned = people.assign(study=np.resize(LEVELS["study"], len(people)))
    one = people.copy()
    one.iloc[-1, one.columns.get_loc("gender")] = "F" if one["gender"].iloc[-1] != "F" else "M"

    def constant(frame):
        return described(frame, respondent="respondent", max_rows=6)

    return {
        "an undeclared level": (described, engines(spoiled(rows, "gender", CANARY, "Q"))),
        "a level that is missing": (described, spoiled(rows, "gender", None, None)),
        "an age out of bounds": (aged, engines(spoiled(fixed, "age", float(ODD), 17.9, 65.1))),
        "an age that is missing": (aged, engines(spoiled(fixed, "age", np.nan, np.inf))),
        "a respondent in two groups": (constant, [turned, one]),
    }


def samples():
    ranks = surveys.rankings()["mixed"].astype(float)
    people = surveys.ranking_respondents()["three each"]
    choice = surveys.choices()["mixed"]
    label = ranks.assign(group=np.repeat(["group 0", "group 1"], 15))
    shared = people.assign(group=np.resize(["group 0", "group 1"], len(people)))
    one = people.assign(group=np.repeat(["group 0", "group 1"], len(people) // 2))
    one.iloc[0, -1] = "group 1"
    more = pd.concat([people] * 2)
    single = pd.concat([people, people.head(1)])

    def torn(frame):
        return grouped(frame, respondent="respondent", max_rows=3)

    return {
        "a rank that is missing": (consensus, engines(spoiled(ranks, "east", np.nan, np.nan))),
        "a rank that is none": (consensus, engines(spoiled(ranks, "east", float(ODD), 0.0, 5.0))),
        "a tie": (consensus, [ranks.assign(east=ranks["west"]), ranks.replace(4.0, 3.5)]),
        "a partial rank": (
            lambda frame: consensus(frame, ties=True, missing="half"),
            engines(spoiled(ranks, "east", float(ODD), 1.25, -1.0)),
        ),
        "too many rankings": (crowd, [more, single]),
        "a ranker that is missing": (
            crowd,
            [people.assign(respondent=np.nan), people.replace({"respondent": {3: np.nan}})],
        ),
        "an undeclared choice": (chosen, engines(spoiled(choice, "choice", CANARY, "pink"))),
        "a choice that is missing": (chosen, spoiled(choice, "choice", None, None)),
        "an undeclared group": (grouped, engines(spoiled(label, "group", CANARY, "group 2"))),
        "a ranker in two groups": (torn, [shared, one]),
        "an undeclared group of private ones": (
            hidden,
            engines(spoiled(label, "group", CANARY, "group 2")),
        ),
    }


BROKEN = {**comparisons(), **covariates(), **samples()}


@pytest.mark.parametrize("promise", BROKEN)
def test_a_refusal_does_not_say_how_a_promise_is_broken(promise):
    model, frames = BROKEN[promise]
    texts = set()
    for frame in frames:
        with pytest.raises(ValueError) as caught:
            model(frame)
        error = caught.value
        texts.add(str(error))
        while error is not None:
            assert CANARY not in f"{error!r}" and str(ODD) not in f"{error!r}"
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert len(texts) == 1, texts


def without_values(column, engine):
    frame = {"item1": ["a", "b", "a"], "item2": ["b", "c", "c"], column: [None] * 3}
    return engine(frame)


@pytest.mark.parametrize("engine", [pd.DataFrame, pl.DataFrame, pl.LazyFrame], ids=str)
def test_a_column_without_values_is_as_good_as_one_with_a_single_answer(engine):
    # its type is made up by the engine, and one answer more would change it
    frame = without_values("outcome", engine)
    model = pr.PrivateBTL(frame, items=["a", "b", "c"], respondent=None, ties=False)
    assert "3 items, 3 rows" in repr(model)
    frame = engine({"a": [None] * 3, "b": [1, 2, 1], "c": [2, 1, 2]})
    model = pr.PrivateRankAggregation(frame, items=["a", "b", "c"], missing="half")
    assert "3 items, 3 rows" in repr(model)
