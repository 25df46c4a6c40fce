"""A public fact never holds an answer (DESIGN 3): every form of data, every design and formula.

A small questionnaire is answered in all the ways in which one respondent can answer it, beside
another one's answers. Each is written down in every form that data come in, as users would. What a
public design makes public of the frame, which rows it has and which item each names first, has to
be the same for all of them, or else refused. So has what an archive holds beside noisy values, for
every design and formula: the whole archive, with noise held still (:mod:`constantnoise`), of
answers that are far apart.
"""

import typing
import warnings
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import pytest
from constantnoise import hold_still

import privrank as pr
from privrank.encode import comparisonforms, comparisons, rankingforms
from privrank.release.records import record_of
from privrank.release.survey import DesignKind

ITEMS = ("a", "b", "c")
# Who was asked, which item was named first, which second: all pairs, in orders of their own.
ASKED = [(0, "b", "a"), (0, "a", "c"), (0, "c", "b"), (1, "a", "b"), (1, "a", "c"), (1, "b", "c")]
OTHER = (1, 0, -1)  # what the second respondent said
ANSWERS = [(*own, *OTHER) for own in product((1, -1, 0), repeat=3)]
PEOPLE = pd.DataFrame({"respondent": [0, 1], "g": ["x", "y"], "age": [20.0, 50.0]})


@dataclass(frozen=True)
class Form:
    """How answers are written down, and what the form knows of the questionnaire."""

    write: typing.Callable
    answers: list
    ordered: bool = False  # it knows which item was named first
    listed: bool = False  # which pairs there are is told by the answers
    people: bool = True
    left: str = "item1 + item2 + outcome"


def long(answers, code=lambda answer, first, second: answer):
    rows = [
        (who, first, second, code(answer, first, second))
        for (who, first, second), answer in zip(ASKED, answers, strict=True)
    ]
    return pd.DataFrame(rows, columns=["respondent", "item1", "item2", "outcome"])


def decided(answers):
    rows = [
        (who, *((first, second) if answer >= 0 else (second, first)), answer == 0)
        for (who, first, second), answer in zip(ASKED, answers, strict=True)
    ]
    return pd.DataFrame(rows, columns=["respondent", "winner", "loser", "tied"])


def counted(answers):
    frame = long(answers)
    wins = {f"win{k}": (frame["outcome"] == sign).astype(int) for k, sign in ((1, 1), (2, -1))}
    return frame.assign(**wins, n=(frame["outcome"] == 0).astype(int)).drop(columns="outcome")


def results(answers):
    """Counts per pair as a table of results has them, who won more often in front."""
    wins, ties, rows = matrix(answers), matrix(answers, tied=True), []
    for pair in combinations(ITEMS, 2):
        one, other = sorted(pair, key=lambda item: -wins.loc[item, list(pair)].sum())
        rows.append((one, other, wins.loc[one, other], wins.loc[other, one], ties.loc[one, other]))
    return pd.DataFrame(rows, columns=["item1", "item2", "win1", "win2", "n"])


def tallied(answers):
    """Winners and losers as they are counted where nobody asks who answered: pairs that occur."""
    return decided(answers).groupby(["winner", "loser", "tied"]).size().rename("n").reset_index()


def wide(answers, code=lambda answer, first, second: answer):
    """A column per pair that the first respondent was asked; the other's answers are turned."""
    columns = {f"{first}:{second}": {} for who, first, second in ASKED if who == 0}
    for (who, first, second), answer in zip(ASKED, answers, strict=True):
        name = f"{first}:{second}"
        own = name if name in columns else f"{second}:{first}"
        columns[own][who] = code(answer if own == name else -answer, *own.split(":"))
    return pd.DataFrame(columns).rename_axis("respondent").reset_index()


def matrix(answers, tied=False):
    table = pd.DataFrame(0, index=list(ITEMS), columns=list(ITEMS))
    for (_, first, second), answer in zip(ASKED, answers, strict=True):
        if tied == (answer == 0):
            for one, other in ((first, second), (second, first)):
                table.loc[one, other] += int(tied or answer == (1 if one == first else -1))
    return table


def by_name(answer, first, second):
    return {1: first, -1: second, 0: "same"}[answer]


def ranked(answers):
    return pd.DataFrame(np.array(answers, dtype=float), columns=list(ITEMS))


def places(answers):
    """The items by place, best first, None beyond what is listed."""
    lists = [sorted((r, item) for r, item in zip(row, ITEMS, strict=True) if r) for row in answers]
    table = [[item for _, item in one] + [None] * (3 - len(one)) for one in lists]
    return pd.DataFrame(table, columns=["best", "next", "last"])


STRICT = [(own, (2, 1, 3)) for own in permutations((1, 2, 3))]
WEAK = [(own, (2, 1, 1)) for own in product((1, 2, 3), repeat=3) if 1 in own and set(own) != {1, 3}]
# an item without a rank is not listed
PARTIAL = [((1, 2, 0), (2, 1, 3)), *STRICT]
PARTIAL += [((0, 0, 0), STRICT[0][1]), ((2, 0, 1), STRICT[0][1]), ((0, 1, 0), STRICT[0][1])]


def form(name, write, answers, **options):
    """A form of `as_comparisons`: the frame written down, and the call that converts it."""
    kept = ("ordered", "listed", "people", "left")
    knows = {key: options.pop(key) for key in kept if key in options}

    def convert(answer):
        more = {key: value(answer) if callable(value) else value for key, value in options.items()}
        return pr.as_comparisons(write(answer), name, items=ITEMS, **more)

    return Form(convert, answers, **knows)


OWN = {"respondent": "respondent"}
SAME = {"tie": "same"}
FORMS = {
    "a frame": Form(long, ANSWERS, ordered=True),
    "winners by formula": Form(
        lambda answers: decided([answer or 1 for answer in answers]).drop(columns="tied"),
        ANSWERS,
        left="winner + loser",
    ),
    "long": form("long", long, ANSWERS, ordered=True, **OWN),
    "long, names": form(
        "long", lambda a: long(a, by_name), ANSWERS, ordered=True, codes=SAME, **OWN
    ),
    "winner-loser": form("winner-loser", decided, ANSWERS, ties="tied", **OWN),
    "winner-loser, counts": form(
        "winner-loser", tallied, ANSWERS, ties="tied", counts="n", people=False
    ),
    "counts": form("counts", counted, ANSWERS, ties="n", **OWN),
    "counts, winners first": form("counts", results, ANSWERS, ties="n", people=False),
    "counts, both orders": form(
        "counts", counted, ANSWERS, ties="n", ordered=True, distinct_pairs=False, **OWN
    ),
    "wide": form("wide", wide, ANSWERS, sep=":", ordered=True, **OWN),
    "wide, names": form(
        "wide", lambda a: wide(a, by_name), ANSWERS, sep=":", codes=SAME, ordered=True, **OWN
    ),
    "matrix": form(
        "matrix", matrix, ANSWERS, ties=lambda answers: matrix(answers, tied=True), people=False
    ),
    "rankings": form("rankings", ranked, STRICT),
    "ranks": form("ranks", ranked, STRICT),
    "rankings, tied": form("rankings", ranked, WEAK, ties=True),
    "orders": form("orders", places, STRICT),
    **{
        f"{name} of some, {missing}": form(
            name,
            write,
            PARTIAL,
            missing=missing,
            listed=True,
            left="item1 + item2 + list_outcome",
            **own,
        )
        for missing in ("bottom", "unknown")
        for name, write, own in (
            ("rankings", lambda answers: ranked(answers).replace(0.0, np.nan), {}),
            ("orders", places, {}),
        )
    },
}
UNITS = {"respondents": {"respondent": "respondent", "max_rows": 3}, "rows": {"respondent": None}}
PRIVATE = {"1": {}, "g": {"levels": {"g": ["x", "y"]}}}
PUBLIC = {"1": {}, "age": {"bounds": {"age": (18, 65)}}, "1, first": {"contest": "first"}}
PUBLIC |= {"g, first + age": PRIVATE["g"] | {"contest": "first + age"}}
DESIGNS = {"public": PUBLIC, "private": PRIVATE}
CASES = [
    (name, unit, design)
    for name, own in FORMS.items()
    for unit in list(UNITS)[0 if own.people else 1 :]
    for design in DESIGNS
]


def allowed(own, unit, design, right):
    """Whether a model has to take such data, by what the form knows alone."""
    if own.listed and (design == "public" or unit == "rows"):
        return False
    return own.ordered or "first" not in right


@cache
def written(name, answers):
    frame = FORMS[name].write(answers)
    return frame.merge(PEOPLE, on="respondent") if "respondent" in frame else frame


def public_rows(frame):
    """Who compared what, in which order named and how often, as a public design publishes it."""
    names = [name for name in ("respondent", "item1", "item2") if name in frame]
    named = frame.astype(dict.fromkeys(("item1", "item2"), str))
    sizes = named.assign(rows=frame.get("count", 1)).groupby(names)["rows"].sum()
    return sizes[sizes > 0].to_dict()


@pytest.mark.parametrize("name", [name for name, own in FORMS.items() if own.left.startswith("i")])
def test_the_rows_of_a_form_say_nothing_of_the_answers(name):
    own = FORMS[name]
    frames = [written(name, answers) for answers in own.answers]
    assert len({(*frame.columns, *frame.dtypes) for frame in frames}) == 1
    seen = [public_rows(frame) for frame in frames]
    assert all(rows == seen[0] for rows in seen) or own.listed
    assert all(("list_outcome" in frame) == own.listed for frame in frames)
    assert all(("order_from" in frame) == (not own.listed and not own.ordered) for frame in frames)


def shown(name, answers, unit, design, right, **top):
    """The archive of a fit, or what is said in its place."""
    own, frame = FORMS[name], written(name, answers)
    arguments = {"items": ITEMS, "design": design, **UNITS[unit], **DESIGNS[design][right], **top}
    arguments["ties"] = not own.left.startswith("winner")
    if "count" in frame:
        arguments["counts"] = "count"
    model = pr.PrivateTopK if top else pr.PrivateBTL
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        try:
            return (
                model.from_formula(f"{own.left} ~ {right.split(',')[0]}", frame, **arguments)
                .fit(1.0)
                .to_json()
            )
        except ValueError as error:
            return f"refused: {error}"


def rights(name, design):
    """Right sides that a form has the columns for."""
    return [right for right in DESIGNS[design] if FORMS[name].people or right in ("1", "1, first")]


def wrong(name, unit, design):
    """Formulas under which archives of different answers differ, or are not to be had."""
    own, found = FORMS[name], {}
    apart = [own.answers[0], own.answers[len(own.answers) // 2], own.answers[-1]]
    for right in rights(name, design):
        for top in ({}, {"k": 1})[: 1 + (right == "1")]:
            texts = {shown(name, answers, unit, design, right, **top) for answers in apart}
            taken = not any(text.startswith("refused") for text in texts)
            if len(texts) > 1 or taken != allowed(own, unit, design, right):
                found[right] = sorted(texts)
    return found


@pytest.mark.parametrize(("name", "unit", "design"), CASES)
def test_archives_of_different_answers_differ_by_noisy_values_alone(
    name, unit, design, monkeypatch
):
    hold_still(monkeypatch)
    assert not wrong(name, unit, design)


def winner_first(patch):
    """The winner in item1, as the form once wrote it."""
    read = comparisonforms.read_decided

    def leaky(*arguments):
        rows = read(*arguments)
        lost = rows["outcome"] < 0
        turned = rows.rename(columns={"item1": "item2", "item2": "item1"})[rows.columns]
        rows.loc[lost, ["item1", "item2"]] = turned.loc[lost, ["item1", "item2"]]
        return rows.assign(outcome=rows["outcome"].abs())

    patch.setattr(comparisonforms, "read_decided", leaky)


def ties_dropped(patch):
    read = comparisonforms.read_decided

    def leaky(*arguments):
        rows = read(*arguments)
        return rows[rows["outcome"] != 0].reset_index(drop=True)

    patch.setattr(comparisonforms, "read_decided", leaky)


PLANTED = {
    "the winner first": (winner_first, "winner-loser", "1, first"),
    "ties dropped": (ties_dropped, "winner-loser", "1"),
    "lists taken as public": (lambda patch: None, "orders of some, bottom", "1"),
    "mentions taken as public": (lambda patch: None, "rankings of some, unknown", "1"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_answer_is_seen(name, monkeypatch):
    plant, form_name, right = PLANTED[name]
    hold_still(monkeypatch)
    assert not wrong(form_name, "rows", "public")
    written.cache_clear()
    plant(monkeypatch)
    monkeypatch.setattr(comparisons, "check_fixed", lambda *arguments: None)
    try:
        assert len(wrong(form_name, "rows", "public")[right]) > 1
    finally:
        written.cache_clear()


# ---- rankings, for tests and consensus

GROUPS = pd.DataFrame({"g": ["x", "y", "x", "y"]})
REST = [(2, 1, 3), (1, 3, 2), (3, 2, 1)]  # what the three others said
LISTED = [own for own, _ in PARTIAL]
SHARED = [own for own, _ in WEAK]
RANDOM = {"ties": "random", "missing": "bottom"}
DRAWN = {"ties": "complete", "missing": "complete"}
NULL = {"null": pr.Mallows(list(ITEMS), 0.6)}


def long_ranks(rows):
    table = [(k, item, row[i]) for k, row in enumerate(rows) for i, item in enumerate(ITEMS)]
    frame = pd.DataFrame(table, columns=["who", "item", "rank"])
    return frame.assign(rank=frame["rank"].astype(float).replace(0.0, np.nan))


def columns(rows):
    return ranked(rows).replace(0.0, np.nan)


# By form: the frame that a test or a consensus is given, and the ways in which one can answer.
RANKINGS = {
    "a frame": (columns, [own for own, _ in STRICT]),
    "ranks": (
        lambda rows: pr.as_rankings(columns(rows), ties="random", missing="random"),
        [*LISTED, *SHARED],
    ),
    "rankings": (
        lambda rows: pr.as_rankings(columns(rows), "rankings", ties="random", missing="random"),
        [*LISTED, *SHARED],
    ),
    "orders": (
        lambda rows: pr.as_rankings(places(rows), "orders", items=ITEMS, **RANDOM),
        LISTED,
    ),
    "long": (
        lambda rows: pr.as_rankings(
            long_ranks(rows), "long", items=ITEMS, respondent="who", **RANDOM
        ),
        [*LISTED, *SHARED],
    ),
}
BY_GROUP = ("a + b + c ~ g", {"levels": ["x", "y"]})
RANKERS = {
    "uniformity": (pr.UniformityTest, "a + b + c ~ 1", {}),
    "identity": (pr.IdentityTest, "a + b + c ~ 1", NULL),
    "consensus": (pr.PrivateRankAggregation, "a + b + c ~ 1", {}),
    "groups": (pr.ClosenessTest, *BY_GROUP),
    "secret groups": (pr.ClosenessTest, BY_GROUP[0], BY_GROUP[1] | {"labels": "private"}),
}
# Frames as they are, whose ties and missing items the model reads itself.
READ = {
    **{
        (name, missing): {"ties": "complete", "missing": missing}
        for name in ("uniformity", "identity", "groups", "secret groups")
        for missing in ("bottom", "complete")
    },
    **{
        ("consensus", missing): {"ties": True, "missing": missing} for missing in ("bottom", "half")
    },
}
SAMPLES = [(form_name, name, {}) for form_name in RANKINGS for name in RANKERS]
SAMPLES += [("a frame", name, options) for (name, _), options in READ.items()]


@pytest.mark.parametrize(("form_name", "name", "options"), SAMPLES)
def test_samples_of_different_rankings_have_equal_public_facts(form_name, name, options):
    write, answers = RANKINGS[form_name]
    model, formula, more = RANKERS[name]
    facts = set()
    for own in [*LISTED, *SHARED] if options else answers:
        frame = write([own, *REST]).reset_index(drop=True).join(GROUPS)
        encoded = model.from_formula(formula, frame, **more, **options)._encoded
        facts.add(repr(record_of(encoded.sample)))
    assert len(facts) == 1


# ---- choices, and declarations that are left out

CATEGORIES = ("red", "green", "blue")
CHOICES = {
    "uniformity": (pr.UniformityTest, "choice ~ 1", {"categories": CATEGORIES}),
    "identity": (pr.IdentityTest, "choice ~ 1", {"null": dict.fromkeys(CATEGORIES, 1 / 3)}),
    "groups": (pr.ClosenessTest, "choice ~ g", {"categories": CATEGORIES, **BY_GROUP[1]}),
}
CHOICES["secret groups"] = (*CHOICES["groups"][:2], {**CHOICES["groups"][2], "labels": "private"})


# counts of groups tell who is in which, so that secret groups are never given as counts
COUNTED = [name for name in CHOICES if "secret" not in name]


@pytest.mark.parametrize(
    ("name", "counted"), [*product(CHOICES, [False]), *product(COUNTED, [True])]
)
def test_samples_of_different_choices_have_equal_public_facts(name, counted):
    model, formula, more = CHOICES[name]
    facts = set()
    for own in product(CATEGORIES, repeat=2):
        frame = GROUPS.assign(choice=[*own, "red", "red"])
        if counted:
            by = "g" if "group" in name else np.zeros(4)
            counts = {g: part["choice"].value_counts() for g, part in frame.groupby(by)}
            given = counts if "group" in name else next(iter(counts.values()))
            options = {key: value for key, value in more.items() if key != "levels"}
            built = model.from_counts(given, **{"categories": CATEGORIES, **options})
        else:
            built = model.from_formula(formula, frame, **more)
        facts.add(repr(record_of(built._encoded.sample)))
    assert len(facts) == 1


# ---- choices from offered sets

SHOWN = (("b", "a", "c"), ("a", "c", "b"))
SHOWS = ["show1", "show2", "show3"]


def tasks_of(orders):
    """One task per respondent: the set as it was shown, and its items from first to last."""
    sets = pd.DataFrame(SHOWN[: len(orders)], columns=SHOWS)
    order = pd.DataFrame(orders, columns=["best", "next", "last"])
    return sets.join(order).assign(respondent=range(len(orders)))


def marked(orders):
    """One row per item of a set, with marks of the best and the worst."""
    rows = [
        (who, 1, item, int(item == order[0]), int(item == order[-1]))
        for who, (shown, order) in enumerate(zip(SHOWN, orders, strict=True))
        for item in shown
    ]
    return pd.DataFrame(rows, columns=["respondent", "task", "item", "best", "last"])


def versions(orders):
    table = tasks_of(orders)
    return table.assign(version=table.index).drop(columns=SHOWS)


TWO = {"best": "best", "worst": "last", "items": ITEMS, "respondent": "respondent"}
THREE = {"places": ["best", "next", "last"], "items": ITEMS, "respondent": "respondent"}
SETS = {
    "columns": (tasks_of, {"offered": SHOWS, **TWO}),
    "columns, orders": (tasks_of, {"offered": SHOWS, **THREE}),
    "rows of items": (
        marked,
        {"offered": "item", "task": "task", **TWO},
    ),
    "a plan": (
        versions,
        {"offered": {k: [shown] for k, shown in enumerate(SHOWN)}, "version": "version", **TWO},
    ),
    "the sets of answers": (
        lambda orders: tasks_of(orders).drop(columns=SHOWS),
        {"offered": "own", **THREE},
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_choices_with_different_answers_have_equal_public_facts(name):
    write, options = SETS[name]
    facts = set()
    for own in permutations(ITEMS):
        tasks = pr.as_choices(write([own, SHOWN[1]]), **options)
        model = pr.PrivateBTL(tasks, respondent="respondent", design="public")
        facts.add(repr(record_of(model._encoded.design)))
        facts.add(repr(model._encoded._version))
    assert len(facts) == 2


def test_items_that_occur_among_places_decide_nothing():
    # the categories of a column of places are the items that were placed there: an answer
    said = set()
    for own in permutations(ITEMS):
        frame = tasks_of([own, SHOWN[1]]).drop(columns=SHOWS)
        placed = frame.astype(dict.fromkeys(THREE["places"], "category"))
        every = pd.CategoricalDtype([*own])
        for kind in (placed, frame.astype(dict.fromkeys(THREE["places"], every))):
            with pytest.raises(ValueError, match="items must be declared") as caught:
                pr.as_choices(kind, offered="own", **{**THREE, "items": None})
            said.add(str(caught.value))
    assert len(said) == 1


@pytest.mark.parametrize("design", DESIGNS)
def test_items_that_occur_among_winners_decide_nothing(design):
    # the categories of a column of winners are those who won: an answer, under a public design too
    seen = set()
    for answers in FORMS["winners by formula"].answers:
        frame = FORMS["winners by formula"].write(answers).astype("category")
        with pytest.raises(ValueError, match="items") as caught:
            pr.PrivateBTL.from_formula(
                "winner + loser ~ 1", frame, respondent="respondent", max_rows=3, design=design
            )
        seen.add(str(caught.value))
    assert len(seen) == 1


def test_every_form_and_design_is_among_them():
    named = {name.partition(",")[0].partition(" of some")[0] for name in FORMS}
    assert set(typing.get_args(comparisonforms.Form)) <= named
    lists = {name.rpartition(" ")[2] for name, own in FORMS.items() if own.listed}
    assert set(typing.get_args(comparisonforms.Missing)) == {*lists, "refuse"}
    assert set(typing.get_args(rankingforms.Form)) <= {name.partition(",")[0] for name in RANKINGS}
    assert set(typing.get_args(DesignKind)) == set(DESIGNS)
