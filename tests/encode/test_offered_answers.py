"""Choices from offered sets: all forms give one encoding; refusals are short and quote no cell."""

import copy
import pickle
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from searching import check_refusal

import privrank as pr
from privrank.bradley_terry.modelmatrix import declare
from privrank.encode.choices import encode_tasks
from privrank.encode.comparisons import schema_of

CANARY = "CANARY"
ITEMS = ("Price", "Quality", "Colour", "Weight", "Brand")
SHOWS = ["show1", "show2", "show3", "show4"]
CODES = {k: item for k, item in enumerate(ITEMS, start=1)}
RNG = np.random.default_rng(0)
PLAN = pd.DataFrame(
    [
        (version, task, *RNG.permutation(list(ITEMS))[:4])
        for version in ("x", "y")
        for task in (1, 2, 3)
    ],
    columns=["version", "task", *SHOWS],
)
# a smaller set in one of the versions
PLAN.loc[PLAN.eval("version == 'y' and task == 3"), "show4"] = None


def survey(people=12, seed=1):
    """One row per task, with answers at random; names of respondents carry a canary."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        version = "xy"[rng.integers(2)]
        for task in PLAN[PLAN["version"] == version].to_dict("records"):
            shown = [task[name] for name in SHOWS if isinstance(task[name], str)]
            best, worst = rng.permutation(shown)[:2]
            rows.append(
                {"id": f"{CANARY}-{person}", "v": version, **task} | {"sex": "fm"[person % 2]}
            )
            rows[-1] |= {"most": best, "least": worst}
    return pd.DataFrame(rows).drop(columns="version")


TASKS = survey()
COLUMNS = {"offered": SHOWS, "best": "most", "worst": "least", "items": ITEMS, "respondent": "id"}


def shown_of(row):
    return [row[name] for name in SHOWS if isinstance(row[name], str)]


def long_of(tasks):
    """One row per shown item; 1 marks the best and -1 the worst."""
    rows = []
    for task in tasks.to_dict("records"):
        facts = {name: task[name] for name in ("id", "v", "task", "sex")}
        for item in shown_of(task):
            choice = 1 if item == task["most"] else -1 if item == task["least"] else 0
            rows.append(facts | {"item": item, "choice": choice})
    return pd.DataFrame(rows)


def wide_of(tasks):
    """One row per respondent, with the version of the questionnaire."""
    answers = tasks.pivot(index=["id", "v", "sex"], columns="task", values=["most", "least"])
    answers.columns = [
        f"{'best' if a == 'most' else 'worst'}_{task}" for a, task in answers.columns
    ]
    order = list(dict.fromkeys(tasks["id"]))
    return answers.reset_index().set_index("id").loc[order].reset_index()


LONG = long_of(TASKS)
WIDE = wide_of(TASKS)
SETS = TASKS.drop(columns=SHOWS)
LISTS = SETS.assign(shown=TASKS.apply(shown_of, axis=1))
TEXTS = SETS.assign(shown=TASKS.apply(lambda row: "; ".join(shown_of(row)), axis=1))
NUMBERS = {item: code for code, item in CODES.items()}
CODED = TASKS.assign(**{name: TASKS[name].map(NUMBERS) for name in (*SHOWS, "most", "least")})
PLACED = TASKS.assign(
    **{
        name: TASKS.apply(lambda row, name=name: shown_of(row).index(row[name]) + 1, axis=1)
        for name in ("most", "least")
    }
)
VERSIONS = {
    version: [shown_of(task) for task in own.to_dict("records")]
    for version, own in PLAN.groupby("version")
}
STACKED = [f"show{{task}}_{k}" for k in range(1, 5)]


def whole_of(tasks):
    """One row per respondent, with the sets and the answers of all tasks."""
    columns = {f"show{k}": f"show{{task}}_{k}" for k in range(1, 5)}
    columns |= {"most": "most_{task}", "least": "least_{task}"}
    own = tasks.rename(columns=columns).pivot(
        index=["id", "sex"], columns="task", values=list(columns.values())
    )
    own.columns = [name.replace("{task}", str(task)) for name, task in own.columns]
    order = list(dict.fromkeys(tasks["id"]))
    return own.reset_index().set_index("id").loc[order].reset_index()


WHOLE = whole_of(TASKS)
BY_VERSION = {"version": "v", "best": "best_{task}", "worst": "worst_{task}"}
BOTH = {"best": 1, "worst": -1}
FORMS = {
    "columns": (TASKS, {}),
    "polars": (pl.from_pandas(TASKS), {}),
    "lazy": (pl.from_pandas(TASKS).lazy(), {}),
    "index": (TASKS.set_index("id"), {}),
    "long": (LONG, {"offered": "item", "task": "task", "best": "choice", "codes": BOTH}),
    "long, polars": (
        pl.from_pandas(LONG),
        {"offered": "item", "task": "task", "best": "choice", "codes": BOTH},
    ),
    "long, flags": (
        LONG.assign(most=LONG["choice"] == 1, least=LONG["choice"] == -1).drop(columns="choice"),
        {"offered": "item", "task": "task"},
    ),
    "columns, numbered tasks": (
        TASKS,
        {"task": "task", "offered": SHOWS, "best": "most", "worst": "least"},
    ),
    "wide": (WHOLE, {"offered": STACKED, "best": "most_{task}", "worst": "least_{task}"}),
    "wide, polars": (
        pl.from_pandas(WHOLE),
        {"offered": STACKED, "best": "most_{task}", "worst": "least_{task}"},
    ),
    "plan": (WIDE, {"offered": PLAN, **BY_VERSION}),
    "plan, polars": (pl.from_pandas(WIDE), {"offered": pl.from_pandas(PLAN), **BY_VERSION}),
    "plan, mapping": (WIDE, {"offered": VERSIONS, **BY_VERSION}),
    "lists": (LISTS, {"offered": "shown"}),
    "lists, polars": (pl.from_pandas(LISTS), {"offered": "shown"}),
    "texts": (TEXTS, {"offered": "shown", "sep": ";"}),
    "codes": (CODED, {"items": CODES}),
    "positions": (PLACED, {"codes": "position"}),
}


def convert(frame=TASKS, **options):
    given = {**COLUMNS, **options}
    if given.get("task") and given["offered"] is not SHOWS:
        given = {
            name: value for name, value in given.items() if (name, value) != ("worst", "least")
        }
        if "codes" not in given:
            given["worst"] = "least"
    return pr.as_choices(frame, **given)


def encode(frame, *, respondent="id", max_rows=3, **options):
    return encode_tasks(frame, respondent=respondent, max_rows=max_rows, **options)


def facts(encoded):
    """Everything that is held, for comparisons."""
    design = encoded.design
    return (
        (design.items, design.nobs, design.unit, design.offered),
        encoded._totals.tolist(),
        encoded._version.tolist(),
    )


EXPECTED = convert()
NAMES = ["offered", *(f"offered {k}" for k in range(1, 5)), "best", "worst"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_choices(form):
    frame, options = FORMS[form]
    found = convert(frame, **options)
    pd.testing.assert_frame_equal(
        found[["id", *NAMES]], EXPECTED[["id", *NAMES]], check_dtype=False
    )
    assert list(found["best"].cat.categories) == list(ITEMS)
    assert found["sex"].tolist() == TASKS["sex"].tolist()  # covariates are kept
    assert not {"most", "least", "choice", "show1", "item"} & set(found.columns)
    assert facts(encode(found)) == facts(encode(EXPECTED))


def totals_by_hand(tasks, best=1, worst=-1):
    """Totals by respondent, one answer at a time."""
    totals = {}
    for task in tasks.to_dict("records"):
        own = totals.setdefault(task["id"], dict.fromkeys(ITEMS, 0))
        own[task["most"]] += best
        own[task["least"]] += worst
    return [list(own.values()) for own in totals.values()]


def test_totals_and_versions_are_those_of_the_definition():
    encoded = encode(EXPECTED)
    offered = encoded.design.offered
    assert encoded._totals.tolist() == totals_by_hand(TASKS)
    place = {item: k for k, item in enumerate(ITEMS)}
    sets = {
        version: sorted((len(one), *sorted(place[item] for item in one)) for one in own)
        for version, own in VERSIONS.items()
    }
    assert list(offered.sets) == sorted(
        {one[1:] for own in sets.values() for one in own}, key=lambda one: (len(one), one)
    )
    versions = {
        version: tuple(sorted(offered.sets.index(one[1:]) for one in own))
        for version, own in sets.items()
    }
    assert offered.versions == tuple(sorted(versions.values()))
    people = TASKS.drop_duplicates("id")["v"]
    assert [offered.versions[k] for k in encoded._version] == [versions[v] for v in people]
    assert offered.units == tuple(
        int((people.map(versions) == version).sum()) for version in offered.versions
    )
    assert offered.answer == "best-worst" and offered.patterns == (0, 0)
    design = encoded.design
    assert (design.kind, design.max_rows) == ("public", 3)
    # a set of s items is shown as its s (s - 1) / 2 pairs
    pairs = [len(shown) * (len(shown) - 1) // 2 for shown in offered.sets]
    assert design.pairs.total == sum(
        units * sum(pairs[k] for k in version)
        for version, units in zip(offered.versions, offered.units, strict=True)
    )
    assert (design.nobs, design.unit, design.items) == (12, "respondent", ITEMS)


@pytest.mark.parametrize(
    ("options", "answer", "scores"),
    [({"worst": None}, "best", (1, 0)), ({"best": None}, "worst", (0, -1))],
)
def test_one_answer_alone(options, answer, scores):
    found = convert(**options)
    assert [name for name in ("best", "worst") if name in found] == [answer]
    encoded = encode(found)
    assert encoded.design.offered.answer == answer
    assert encoded._totals.tolist() == totals_by_hand(TASKS, *scores)


def test_an_answer_that_is_not_named_is_left_out():
    # a column of the frame has the name of an answer of choices frames
    found = convert(TASKS.rename(columns={"least": "worst"}), worst=None)
    assert "worst" not in found and encode(found).design.offered.answer == "best"


ORDERS = pd.DataFrame(
    {
        "id": [f"{CANARY}1", f"{CANARY}1", f"{CANARY}2"],
        "a": ["Price", "Colour", "Brand"],
        "b": ["Brand", "Quality", "Weight"],
        "c": ["Colour", None, "Price"],
        "1st": ["Brand", "Quality", "Price"],
        "2nd": ["Price", "Colour", "Weight"],
        "3rd": ["Colour", None, "Brand"],
    }
)
PLACES = ["1st", "2nd", "3rd"]


def orders(frame=ORDERS, **options):
    given = {"offered": ["a", "b", "c"], "places": PLACES, "items": ITEMS, "respondent": "id"}
    return pr.as_choices(frame, **{**given, **options})


def test_orders_score_net_wins():
    encoded = encode(orders())
    # Price, Quality, Colour, Weight, Brand
    assert encoded._totals.tolist() == [[0, 1, -2 - 1, 0, 2], [2, 0, 0, 0, -2]]
    offered = encoded.design.offered
    assert offered.answer == "order"
    assert offered.sets == ((1, 2), (0, 2, 4), (0, 3, 4))
    assert offered.versions == ((0, 1), (2,))


def test_orders_of_an_own_set():
    own = orders(offered="own")
    assert facts(encode(own)) == facts(encode(orders()))


def test_rows_as_units_are_added_up_by_set():
    encoded = encode(convert(respondent=None), respondent=None, max_rows=1)
    offered = encoded.design.offered
    assert encoded.design.nobs == len(TASKS) and encoded.design.unit == "row"
    assert offered.versions == tuple((k,) for k in range(len(offered.sets)))
    assert encoded._version.tolist() == list(range(len(offered.versions)))
    place = {item: k for k, item in enumerate(ITEMS)}
    totals = np.zeros((len(offered.sets), len(ITEMS)), dtype=int)
    count = np.zeros(len(offered.sets), dtype=int)
    for task in TASKS.to_dict("records"):
        number = offered.sets.index(tuple(sorted(place[item] for item in shown_of(task))))
        totals[number, place[task["most"]]] += 1
        totals[number, place[task["least"]]] -= 1
        count[number] += 1
    assert encoded._totals.tolist() == totals.tolist() and offered.units == tuple(count)


def predictor_of(frame, right="sex", **declared):
    given = dict.fromkeys(("levels", "bounds", "item_formula", "item_data", "contest"))
    return declare(right, schema_of(frame, right, public=True), ITEMS, **{**given, **declared})


@pytest.mark.parametrize("unit", ["id", None])
def test_covariates_divide_the_versions(unit):
    levels = {"sex": ["f", "m"]}
    encoded = encode(
        EXPECTED, respondent=unit, predictor=predictor_of(EXPECTED, levels=levels), max_rows=3
    )
    offered, covariates = encoded.design.offered, encoded.design.covariates
    owner = TASKS if unit is None else TASKS.drop_duplicates("id")
    assert covariates.cell.tolist() == [0, 1]
    assert covariates.units.tolist() == [(owner["sex"] == sex).sum() for sex in "fm"]
    for pattern, count in enumerate(covariates.units):
        own = np.array(offered.patterns) == pattern
        assert np.array(offered.units)[own].sum() == count
    assert list(zip(offered.patterns, offered.versions, strict=True)) == sorted(
        zip(offered.patterns, offered.versions, strict=True)
    )
    whole = encode(EXPECTED, respondent=unit)
    assert encoded._totals.sum(axis=0).tolist() == whole._totals.sum(axis=0).tolist()
    if unit is not None:
        sexes = [offered.patterns[k] for k in encoded._version]
        assert sexes == [int(sex == "m") for sex in owner["sex"]]


def test_a_numeric_covariate():
    frame = convert(TASKS.assign(age=TASKS["sex"].map({"f": 20.0, "m": 60.0})))
    encoded = encode(frame, predictor=predictor_of(frame, "age", bounds={"age": (20, 60)}))
    assert encoded.design.covariates.position.ravel().tolist() == [-(2**20), 2**20]


def test_the_names_of_respondents_may_be_of_any_engine():
    whole = pl.from_pandas(EXPECTED)
    assert facts(encode(whole, items=ITEMS)) == facts(encode(EXPECTED))
    assert facts(encode(whole.lazy(), items=ITEMS)) == facts(encode(EXPECTED))


def test_the_order_of_rows_does_not_change_the_public_facts():
    mixed = EXPECTED.sample(frac=1, random_state=2)
    assert encode(mixed).design.offered == encode(EXPECTED).design.offered


def test_items_are_kept_or_declared_by_categories():
    lost = EXPECTED.copy()
    lost.attrs = {}
    assert facts(encode(lost)) == facts(encode(EXPECTED))
    plain = lost.astype({name: object for name in NAMES[1:]})
    with pytest.raises(ValueError, match="items must be declared"):
        encode(plain)
    assert facts(encode(plain, items=ITEMS)) == facts(encode(EXPECTED))
    enums = pd.CategoricalDtype(list(ITEMS))
    typed = TASKS.astype(dict.fromkeys(SHOWS, enums))
    assert facts(encode(convert(typed, items=None))) == facts(encode(EXPECTED))


# Unanswered tasks


SILENT = TASKS.assign(
    most=TASKS["most"].where(TASKS["id"] != TASKS["id"].iloc[0]),
    least=TASKS["least"].where(TASKS.index != 4),
)


def test_respondents_without_answers_remain_units():
    found = convert(SILENT, unanswered="public")
    assert len(found) == len(TASKS) - 3 + 1 - 1
    first = found.iloc[0]
    assert first["offered"] == 0 and first[NAMES[1:]].isna().all()
    assert first["sex"] == TASKS["sex"].iloc[0]
    encoded = encode(found)
    assert encoded.design.nobs == 12
    offered = encoded.design.offered
    assert offered.versions[encoded._version[0]] == ()
    assert len(offered.versions[encoded._version[1]]) == 2
    assert not encoded._totals[0].any()
    answered = SILENT.dropna(subset=["most", "least"])
    assert encoded._totals[1:].tolist() == totals_by_hand(answered)
    # without respondents such a row is no unit
    assert encode(found, respondent=None).design.nobs == len(answered)
    assert len(convert(SILENT, respondent=None, unanswered="public")) == len(answered)


@pytest.mark.parametrize("unanswered", ["public", "private"])
@pytest.mark.parametrize("form", ["plan", "long"])
def test_other_forms_leave_out_the_same_tasks(form, unanswered):
    frame = wide_of(SILENT) if form == "plan" else long_of(SILENT)
    found = convert(frame, **FORMS[form][1], unanswered=unanswered)
    expected = convert(SILENT, unanswered=unanswered)
    assert facts(encode(found)) == facts(encode(expected))


def test_under_private_silence_every_task_stays():
    found = convert(SILENT, unanswered="private")
    assert len(found) == len(TASKS)
    encoded = encode(found)
    assert encoded.design.offered == replace(encode(EXPECTED).design.offered, unanswered="private")
    answered = SILENT.dropna(subset=["most", "least"])
    assert encoded._totals[1:, :-1].tolist() == totals_by_hand(answered)
    assert encoded._totals[:, -1].sum() == len(answered)


def test_rows_of_a_plan_are_respondents():
    found = convert(WIDE.drop(columns="id"), **FORMS["plan"][1], respondent=None)
    assert found["respondent"].tolist() == np.repeat(range(12), 3).tolist()
    assert facts(encode(found, respondent="respondent")) == facts(encode(EXPECTED))


def test_rows_with_the_sets_of_all_tasks_are_respondents():
    found = convert(WHOLE.drop(columns="id"), **FORMS["wide"][1], respondent=None)
    assert found["respondent"].tolist() == np.repeat(range(12), 3).tolist()
    assert facts(encode(found, respondent="respondent")) == facts(encode(EXPECTED))


def test_a_frame_may_have_a_further_column_of_respondents():
    found = convert(WIDE.assign(respondent=1), **FORMS["plan"][1])
    assert facts(encode(found)) == facts(encode(EXPECTED))


# Refusals


def changed(row, column, value, frame=TASKS):
    found = frame.astype({column: object})
    found.loc[found.index[row], column] = value
    return found


SECRET = f"{CANARY} secret"
OUTSIDE = next(item for item in ITEMS if item not in shown_of(TASKS.iloc[0]))
LONG_FORM = FORMS["long"][1]
PLAN_FORM = FORMS["plan"][1]
WIDE_FORM = FORMS["wide"][1]
TWO = TASKS.assign(show3=None, show4=None, most=TASKS["show1"], least=TASKS["show2"])
REFUSED = {
    "answer as offered": (TASKS, {"offered": [*SHOWS, "most"]}, ["'most'", "public"]),
    "answer as respondent": (TASKS, {"respondent": "most"}, ["'most'", "public"]),
    "answer as version": (WIDE, {**PLAN_FORM, "version": "best_1"}, ["'best_1'", "public"]),
    "answer as task": (LONG, {**LONG_FORM, "task": "choice"}, ["'choice'", "public"]),
    "outside": (changed(0, "most", OUTSIDE), {}, ["best must be an item of the set"]),
    "worst outside": (changed(0, "least", OUTSIDE), {}, ["worst must be an item of the set"]),
    "same": (TASKS.assign(least=TASKS["most"]), {}, ["best, worst must name different items"]),
    "one column": (TASKS, {"worst": "most"}, ["a column of its own"]),
    "one mark": (LONG, {**LONG_FORM, "codes": {"best": 1, "worst": 1}}, ["different entries"]),
    "no mark": (
        LONG.assign(choice="most"),
        {**LONG_FORM, "codes": {"best": "best"}},
        ["'choice'", "Declare the entries"],
    ),
    "plan without version": (WIDE, {**PLAN_FORM, "version": None}, ["needs version="]),
    "sets without version": (
        WIDE,
        {**PLAN_FORM, "offered": VERSIONS, "version": None},
        ["needs version="],
    ),
    "tasks without plan": (TASKS, {"best": "best_{task}"}, ["no column 'best_{task}'"]),
    "rows of items": (
        LONG,
        {**LONG_FORM, "task": None, "worst": None, "codes": None},
        ["name the column of tasks"],
    ),
    "own without places": (TASKS, {"offered": "own"}, ["needs places="]),
    "numbers": (PLACED, {}, ["'most'", "codes='position'", "items={code: item}"]),
    "no such codes": (PLACED, {"codes": "positions"}, ["codes must be 'position'"]),
    "names of positions": (PLACED, {"codes": list("ABCD")}, ["codes must be 'position'"]),
    "codes of marks": (TASKS, {"codes": BOTH}, ["rows with task="]),
    "column twice": (TASKS, {"offered": ["show1", "show1"]}, ["a column of its own"]),
    "repeated": (
        changed(0, "show2", TASKS["show1"].iloc[0]),
        {"best": None},
        ["different items in each set"],
    ),
    "single": (TASKS, {"offered": ["show1"]}, ["at least two items"]),
    "one item": (
        TASKS.assign(show2=None, show3=None, show4=None),
        {"best": None},
        ["at least two items"],
    ),
    "pairs": (TWO, {}, ["sets of at least three items", "Name best= alone"]),
    "undeclared": (changed(0, "show1", SECRET), {}, ["'show1'", "not listed in items"]),
    "undeclared answer": (changed(0, "most", SECRET), {}, ["'most'", "not listed in items"]),
    "no items": (TASKS, {"items": None}, ["items must be declared"]),
    "codes of items": (CODED, {"items": {1: "Price", "1": "Brand"}}, ["the codes in items"]),
    "gap": (changed(0, "show2", None), {}, ["without a gap"]),
    "unanswered": (SILENT, {}, ["'refuse'", "'public'", "'private'"]),
    "no such word": (TASKS, {"unanswered": "drop"}, ["'refuse', 'public', 'private'"]),
    "no answers": (TASKS, {"best": None, "worst": None}, ["best=, worst= or both"]),
    "both kinds": (TASKS, {"places": ["most"]}, ["best=, worst= or both"]),
    "absent": (TASKS, {"best": "none"}, ["no column 'none'"]),
    "absent task": (WIDE.drop(columns="best_2"), PLAN_FORM, ["no column 'best_2'"]),
    "one column for tasks": (WIDE, {**PLAN_FORM, "best": "best_1"}, ["{task}"]),
    "version": (changed(0, "v", SECRET, WIDE), PLAN_FORM, ["'v'", "version of the plan"]),
    "plan twice": (WIDE, {**PLAN_FORM, "offered": pd.concat([PLAN, PLAN])}, ["one row for each"]),
    "plan without tasks": (WIDE, {**PLAN_FORM, "offered": PLAN.drop(columns="task")}, ["'task'"]),
    "plan of texts": (
        WIDE,
        {**PLAN_FORM, "offered": {"x": 1}},
        ["offered must have at least one row"],
    ),
    "unused respondents": (
        WIDE.rename(columns={"id": "respondent"}),
        {**PLAN_FORM, "respondent": None},
        ["respondent='respondent'"],
    ),
    "task and version": (
        WIDE,
        {**PLAN_FORM, "task": "v"},
        ["task= must be left out with version="],
    ),
    "a task twice": (
        pd.concat([TASKS, TASKS.iloc[[0]]]),
        FORMS["columns, numbered tasks"][1],
        ["one row for each task"],
    ),
    "tasks without numbers": (WHOLE, {**WIDE_FORM, "offered": ["show{task}"]}, ["no column"]),
    "one answer of all tasks": (WHOLE, {**WIDE_FORM, "best": "most_1"}, ["for every task"]),
    "wide, set that is absent": (WHOLE.drop(columns="show2_3"), WIDE_FORM, ["'show2_3'"]),
    "wide, answer without a set": (WHOLE.assign(most_9="Price"), WIDE_FORM, ["'most_9'"]),
    "wide, further respondents": (
        WHOLE.rename(columns={"id": "respondent"}),
        {**WIDE_FORM, "respondent": None},
        ["respondent='respondent'"],
    ),
    "two best": (LONG.assign(choice=1), LONG_FORM, ["'choice'", "several"]),
    "no task": (LONG.drop(columns="task").assign(task=1), LONG_FORM, ["task= and respondent="]),
    "missing task": (changed(0, "task", None, LONG), LONG_FORM, ["'task'", "missing"]),
    "missing item": (changed(0, "item", None, LONG), LONG_FORM, ["'item'", "missing"]),
    "codes in long": (LONG, {**LONG_FORM, "codes": "position"}, ["codes must be a mapping"]),
    "position": (changed(0, "most", 5, PLACED), {"codes": "position"}, ["positions"]),
    "position of nothing": (
        changed(int(TASKS["show4"].isna().idxmax()), "most", 4, PLACED),
        {"codes": "position"},
        ["positions"],
    ),
    "no list": (LISTS.assign(shown=SECRET), {"offered": "shown"}, ["not listed in items"]),
    "list in list": (LISTS.assign(shown=[[[SECRET]]] * len(TASKS)), {"offered": "shown"}, ["list"]),
    "sep": (TASKS, {"sep": ";"}, ["sep must be"]),
    "missing respondent": (changed(0, "id", None), {}, ["'id'", "missing"]),
    "count": (TASKS.assign(count=2), {}, ["'count'"]),
    "empty": (TASKS.head(0), {}, ["at least one row"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_rule_and_no_cell(name):
    frame, options, words = REFUSED[name]
    check_refusal(lambda: convert(frame, **options), (ValueError, TypeError), words, (CANARY,))


ORDERS_REFUSED = {
    "private": (ORDERS, {"unanswered": "private"}, ["best or the worst item"]),
    "repeated": (changed(0, "2nd", "Brand", ORDERS), {}, ["different items"]),
    "outside": (changed(0, "2nd", "Weight", ORDERS), {}, ["place 2 must be an item"]),
    "incomplete": (changed(0, "3rd", None, ORDERS), {}, ["lacks one"]),
    "too long": (changed(1, "3rd", "Brand", ORDERS), {}, ["place 3 must be an item"]),
    "by row": (ORDERS, {"offered": "a", "task": "b"}, ["task=", "places="]),
    "too few places": (ORDERS, {"places": PLACES[:2]}, ["all items of each set"]),
    "a gap": (
        changed(1, "2nd", None, changed(1, "3rd", "Colour", ORDERS)),
        {},
        ["without a gap", "Move its items"],
    ),
    "own of one": (ORDERS.assign(**{"2nd": None, "3rd": None}), {"offered": "own"}, ["two items"]),
}


@pytest.mark.parametrize("name", ORDERS_REFUSED)
def test_refusals_of_orders(name):
    frame, options, words = ORDERS_REFUSED[name]
    check_refusal(lambda: orders(frame, **options), (ValueError, TypeError), words, (CANARY,))


def lost(**changes):
    frame = EXPECTED.copy()
    for name, value in changes.items():
        frame[name] = value
    return frame


ENCODED_REFUSED = {
    **{f"without {n}": (EXPECTED.drop(columns=n), {}, ["offered"]) for n in NAMES[:5]},
    **{
        f"{name} renamed": (EXPECTED.rename(columns={name: "other"}), {}, ["offered"])
        for name in NAMES[:5]
    },
    "no answers": (EXPECTED.drop(columns=["best", "worst"]), {}, ["'best' and 'worst'"]),
    "both kinds": (lost(**{"place 1": EXPECTED["best"]}), {}, ["either 'best'"]),
    "lost place": (orders().drop(columns="place 3"), {}, ["all items of each set"]),
    "unanswered": (lost(best=None), {}, ["unanswered='public'"]),
    "same": (lost(worst=EXPECTED["best"]), {}, ["different items"]),
    "text": (lost(offered=SECRET), {}, ["'offered'"]),
    "undeclared": (EXPECTED, {"items": ITEMS[:2]}, ["not listed in items"]),
    "too many": (EXPECTED, {"max_rows": 2}, ["max_rows=2"]),
    "answer as respondent": (EXPECTED, {"respondent": "best"}, ["'best'"]),
    "set as respondent": (EXPECTED, {"respondent": "offered 1"}, ["'offered 1'"]),
    "no respondent": (EXPECTED, {"respondent": "who"}, ["'who'"]),
    "count": (lost(count=1), {}, ["'count'"]),
    "empty": (EXPECTED.head(0), {}, ["at least one row"]),
    "respondents of several groups": (
        lost(sex=["f", "m"] * (len(EXPECTED) // 2)),
        {"predictor": predictor_of(EXPECTED, levels={"sex": ["f", "m"]})},
        ["one value of each covariate"],
    ),
    "answer as covariate": (
        EXPECTED,
        {"predictor": predictor_of(EXPECTED, "best")},
        ["'best'", "covariates"],
    ),
    "text with bounds": (
        EXPECTED,
        {"predictor": predictor_of(lost(sex=1.0), "sex", bounds={"sex": (0, 1)})},
        ["'sex'", "numbers"],
    ),
    "order effect": (
        EXPECTED,
        {"predictor": predictor_of(EXPECTED, "sex", levels={"sex": ["f", "m"]}, contest="first")},
        ["contest="],
    ),
}


@pytest.mark.parametrize("name", ENCODED_REFUSED)
def test_a_frame_that_has_lost_its_marks_is_refused(name):
    frame, options, words = ENCODED_REFUSED[name]
    check_refusal(lambda: encode(frame, **options), (ValueError, TypeError), words, (CANARY,))


def test_encoded_choices_show_only_their_shape():
    encoded = encode(EXPECTED)
    assert repr(encoded) == "<Encoded choices: 5 items, 12 units>"
    for use in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="sensitive"):
            use(encoded)


def test_a_hundred_thousand_tasks_are_read_and_encoded_at_once():
    rng = np.random.default_rng(3)
    shown = rng.permuted(np.tile(np.arange(8), (100_000, 1)), axis=1)[:, :4]
    names = np.array([f"item {k}" for k in range(8)], dtype=object)
    frame = pd.DataFrame(names[shown], columns=SHOWS)
    frame = frame.assign(most=frame["show1"], least=frame["show2"], id=np.arange(100_000) // 10)
    start = time.perf_counter()
    encoded = encode(convert(frame, items=list(names)), max_rows=10)
    took = time.perf_counter() - start
    assert encoded.design.nobs == 10_000 and not encoded._totals.sum(axis=1).any()
    assert took < 10  # a second on a free machine


def test_sets_that_do_not_connect_all_items_are_refused():
    unseen = convert(items=(*ITEMS, "Smell"))
    with pytest.raises(ValueError, match="must connect all items"):
        encode(unseen)
    # two halves of the items, each offered alone
    frame = pd.DataFrame({"id": [1, 2], "x": ["a", "c"], "y": ["b", "d"], "best": ["a", "d"]})
    halves = pr.as_choices(
        frame, offered=["x", "y"], best="best", items=list("abcd"), respondent="id"
    )
    with pytest.raises(ValueError, match="2 groups"):
        encode(halves)


def test_levels_that_no_respondent_has_are_refused():
    tasks = convert()
    levels = {"sex": ["f", "m", "x"]}
    common = {"respondent": "id", "max_rows": 3, "design": "public"}
    with pytest.raises(ValueError, match="levels that no respondent has"):
        pr.PrivateBTL.from_formula("best + worst ~ sex", tasks, levels=levels, **common)


MARKED = pd.DataFrame(
    {
        "id": [1, 1, 1, 2, 2, 2],
        "task": [1] * 6,
        "item": ["tea", "milk", "juice"] * 2,
        "answer": [1, 0, -1, 0, -1, 1],
    }
)
ROWS = {"offered": "item", "respondent": "id", "task": "task", "items": ["tea", "milk", "juice"]}
MARKS = {"best": 1, "worst": -1}


def test_items_without_a_mark_have_one_entry_or_none():
    expected = pr.as_choices(MARKED, best="answer", codes=MARKS, **ROWS)
    missing = MARKED.assign(answer=MARKED["answer"].astype(float).replace(0.0, np.nan))
    words = MARKED.assign(answer=MARKED["answer"].map({1: "most", 0: "", -1: "least"}))
    named = {"best": "most", "worst": "least"}
    for frame, codes in ((missing, MARKS), (words, named)):
        found = pr.as_choices(frame, best="answer", codes=codes, **ROWS)
        pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize(
    ("answers", "codes"),
    [
        ([1, 0, -1, 0, -2, 2], MARKS),  # other codes for some respondents
        ([1, 0, -1, 2, -1, 1], MARKS),
        ([1, 0, -1, 0, -1, 1], {"best": 1}),  # the worst items are not declared
    ],
)
def test_other_marks_are_refused(answers, codes):
    frame = MARKED.assign(answer=answers)
    for unanswered in ("refuse", "public"):
        with pytest.raises(ValueError, match="'answer' must have one entry, such as 0") as error:
            pr.as_choices(frame, best="answer", codes=codes, unanswered=unanswered, **ROWS)
        assert "2" not in str(error.value)


def test_answers_beyond_the_plan_are_refused():
    plan = pd.DataFrame({"version": [1], "task": [1], "a": ["tea"], "b": ["milk"], "c": ["juice"]})
    frame = pd.DataFrame({"v": [1], "best_1": ["tea"], "best_2": ["milk"], "best_of": ["x"]})
    how = {"offered": plan, "version": "v", "best": "best_{task}", "items": ROWS["items"]}
    with pytest.raises(ValueError, match="'best_2' must belong to a task of the plan"):
        pr.as_choices(frame, **how)
    assert list(pr.as_choices(frame.drop(columns="best_2"), **how)["best_of"]) == ["x"]
