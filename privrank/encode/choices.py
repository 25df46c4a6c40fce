"""Validate, bound and count choices from publicly offered sets.

A choices frame (:func:`privrank.as_choices`) has one row per task. Column ``offered`` contains the
number of items of the set, and ``offered 1``, ``offered 2``, ... contain the items. The answers are
in ``best`` and ``worst``, or in ``place 1``, ``place 2``, ... for orders of the set. Which sets
were offered is public, the answers are private. A row with 0 in ``offered`` is no task, but it
preserves a respondent who answered none.

If respondents decide which tasks they answer, the column ``offered`` is named ``offered, may be
unanswered``. Then tasks can lack all their answers, which are private like the answers themselves.

The number in ``offered`` marks how many columns a set takes: a frame that has lost one of them is
refused. Messages name columns and rules, never a cell's value.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from privrank.bradley_terry.modelmatrix import Predictor
from privrank.bradley_terry.paircounts import check_connected
from privrank.bradley_terry.predictor import check_identified
from privrank.encode import coding, frames
from privrank.encode.comparisons import (
    COVARIATES,
    check_numeric_columns,
    declared_predictor,
    read_patterns,
)
from privrank.encode.encoded import (
    EncodedChoices,
    EncodedSample,
    open_rows,
    refuse_unused,
    sum_by,
    units_of,
)
from privrank.encode.rankingforms import Names, item_codes
from privrank.encode.samples import encode_data, sample_of_formula
from privrank.privacy.offered import Answer, Offered, position_scores
from privrank.release.survey import INTERCEPT, Design, PairCounts, Sample
from privrank.util.arrays import BoolArray, IntArray
from privrank.util.checks import UNSTATED, check_count
from privrank.util.formula import parse

OFFERED = "offered"
OPTIONAL = "offered, may be unanswered"
PLACE = "place"
BEST = "best"
WORST = "worst"
"""Names of the columns of a choices frame. "offered" and "place" are also followed by a number."""

_ARGUMENTS = {"items", "respondent", "max_rows", "design"} | COVARIATES
"""Arguments of a formula for choices."""

_MESSAGES = {
    "gap": "offered= must give the items of each set without a gap, and at least one set has a "
    "missing item before its last item. Fill in the item, or move the missing entries to the end "
    "of the set.",
    "repeated": "offered= must give different items in each set, and at least one set repeats an "
    "item. Correct such sets.",
    "single": "offered= must give at least two items in each set, and at least one set has a "
    "single item. If each row shows one item of a task, name the column of tasks with task=. Leave "
    "out tasks without a choice.",
    "two": "best= and worst= need sets of at least three items, and at least one set has two, "
    "where the worst is known from the best. Name best= alone (plan answer='best') if all sets "
    "have two items, or leave out the sets of two.",
    "few places": "places= must order all items of each set, and at least one set has more items "
    "than there are places. Name a place for every item, or state only best= or worst=.",
    "places apart": "{} must contain the items of each order without a gap, and at least one order "
    "has a missing place before its last item. Move its items to the first places.",
    "same": "{} must name different items, and in at least one task two of these answers are the "
    "same item. Correct such answers.",
    "outside": "{} must be an item of the set that was offered in its task, and at least one "
    "answer is not. Check that sets and answers are from the same task.",
    "lost": f"choices must have the columns {OFFERED!r}, '{OFFERED} 1', '{OFFERED} 2', ... and "
    f"either {BEST!r} and {WORST!r} (or one of them) or '{PLACE} 1', '{PLACE} 2', ... Make them "
    f"with privrank.as_choices(frame, offered=...), and keep all of them.",
    "number": f"column {{!r}} must give the number of items in '{OFFERED} 1', '{OFFERED} 2', ..., "
    "and at least one row has another number. Keep all columns of "
    "privrank.as_choices(frame, offered=...).",
    "halves": "choices must have both answers of a task or none, and at least one task has one. "
    "Keep the answers of privrank.as_choices(frame, unanswered='private', ...) as they are.",
    "tested": "choices with tasks that may be unanswered must be given to PrivateBTL, each group "
    "by itself, whose result has a test that all worths are equal. Other tests need all tasks "
    "answered.",
    "silent": "choices with tasks that may be unanswered must name the best or the worst item, "
    "and the model must not have covariates. Fit each group by itself, or use "
    "unanswered='public' if it was fixed beforehand which tasks stay unanswered.",
    "unanswered": "choices must have all answers of each task, and at least one task lacks an "
    "answer. Convert the data with privrank.as_choices(frame, unanswered='public', ...) if it was "
    "fixed beforehand which tasks stay unanswered.",
    "not public": "respondent= and covariates must not name column {!r}, which contains offered "
    "items or answers of choices. Name columns that describe respondents.",
    "contest": "contest must be left out for choices from sets, which are no comparisons of two "
    "items. Leave contest= out.",
    "other data": "{} must be left out for choices from offered sets. Use such arguments for other "
    "data only.",
    "private": "design must be 'public' for choices from offered sets, because which sets were "
    "offered is public and was fixed before any answer. State design='public'.",
    "arguments": f"from_formula takes only formula, data and the arguments "
    f"{', '.join(sorted(_ARGUMENTS))} for choices from offered sets.",
    "right side": "formula must have '~ 1' on its right for a single sample. To compare groups, "
    "use ClosenessTest.from_formula or PrivateBTL.from_formula.",
    "groups": "formula must have one column of groups on its right, whose levels are declared. An "
    "example is 'best + worst ~ region' with levels=['north', 'south'].",
    "row groups": "respondent= must name the column of respondents if choices from offered sets "
    "are compared by group. Add such a column to the frame.",
    "left side": "formula must name the answers of the choices on its left, here '{} ~ ...', got "
    "{!r}.",
}
"""Messages about broken rules of choices, with placeholders for names of columns."""


def refuse(messages: Mapping[str, str], broken: Mapping[str, object], *names: object) -> None:
    """Raise the message of the first rule that is broken, with names in its placeholders."""
    for rule, is_broken in broken.items():
        if is_broken:
            raise ValueError(messages[rule].format(*names))


def answer_of(answers: Sequence[str]) -> Answer:
    """Return how tasks are answered, by the columns of answers."""
    return cast(Answer, "-".join(answers) if {BEST, WORST}.issuperset(answers) else "order")


def numbered_columns(word: str, number: int) -> list[str]:
    """Return the names of the columns 1 to `number`."""
    return [f"{word} {k}" for k in range(1, number + 1)]


def is_reserved(column: object) -> bool:
    """Return whether a name belongs to a column of choices frames."""
    own = rf"({OFFERED}|{PLACE}) \d+|{OFFERED}|{OPTIONAL}|{BEST}|{WORST}"
    return bool(re.fullmatch(own, str(column)))


def is_choices(frame: object) -> bool:
    """Return whether a frame has columns of offered items, by their names alone."""
    try:
        names = map(str, frames.column_names(frames.open_frame(frame, "comparisons")))
        return any(is_reserved(name) and name.startswith(OFFERED) for name in names)
    except (TypeError, ValueError):  # the reader of comparisons has its own message
        return False


def check_only_choices(usual: Mapping[str, bool], design: object) -> None:
    """Refuse arguments that are for other data only, and a private design.

    `usual` states by argument whether it has its default.
    """
    changed = ", ".join(f"{name}=" for name, unchanged in usual.items() if not unchanged)
    refuse(_MESSAGES, {"other data": changed, "private": design != "public"}, changed)


def choice_columns(present: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """Return the columns of the numbers of items, of sets and of answers.

    Refuses a frame that has lost any of them.
    """
    own = [name for name in present if is_reserved(name)]
    number = OPTIONAL if OPTIONAL in own else OFFERED
    sets = numbered_columns(OFFERED, sum(name.startswith(f"{OFFERED} ") for name in own))
    places = numbered_columns(PLACE, sum(name.startswith(PLACE) for name in own))
    named = [name for name in (BEST, WORST) if name in own]
    refuse(
        _MESSAGES,
        {"lost": not {number, *sets, *places}.issubset(own) or bool(places) == bool(named)},
    )
    return number, sets, named or places


def check_orders(survey: Design | Sample, model: str) -> None:
    """Refuse choices from offered sets that are not orders, which have no wins and losses."""
    if isinstance(survey, Design) and survey.offered and survey.offered.answer != "order":
        raise ValueError(
            f"{model} needs orders of all items of each offered set, not the best or the worst "
            "item. For other choices use PrivateBTL, whose result ranks the items."
        )


def check_tasks(shown: IntArray, chosen: IntArray, answers: Sequence[str]) -> BoolArray:
    """Return which tasks lack any of their answers; refuse sets and answers that break a rule.

    `shown` contains the items of each set, -1 after the last, and `chosen` the items of the
    answers, -1 where missing.
    """
    size = (shown >= 0).sum(axis=1)
    refuse(
        _MESSAGES,
        {
            "gap": ((shown[:, :-1] < 0) & (shown[:, 1:] >= 0)).any(),
            "repeated": _repeats(shown),
            "single": (size == 1).any(),
            "two": {BEST, WORST}.issubset(answers) and (size == 2).any(),
            "few places": f"{PLACE} 1" in answers and size.max(initial=0) > len(answers),
            "places apart": f"{PLACE} 1" in answers
            and ((chosen[:, :-1] < 0) & (chosen[:, 1:] >= 0)).any(),
            "same": _repeats(chosen),
        },
        ", ".join(answers),
    )
    for column, item in zip(answers, chosen.T, strict=True):
        outside = (item >= 0) & (shown != item[:, None]).all(axis=1)
        refuse(_MESSAGES, {"outside": outside.any()}, column)
    return np.asarray((size == 0) | ((chosen >= 0).sum(axis=1) < np.minimum(size, len(answers))))


def _repeats(items: IntArray) -> bool:
    """Return whether any row contains an item twice."""
    ordered = np.sort(items, axis=1)
    return bool(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any())


def encode_tasks(
    frame: object,
    *,
    items: object = None,
    respondent: str | None,
    max_rows: object,
    predictor: Predictor | None = None,
    tested: bool = False,
) -> EncodedChoices:
    """Validate and count a choices frame.

    Parameters
    ----------
    frame : data frame
        Result of :func:`privrank.as_choices`.
    items : sequence of str or int, optional
        The items; by default those of the conversion.
    respondent : str or None
        Column that identifies the respondent; None if each task is a unit.
    max_rows : int
        Largest number of tasks of a respondent.
    predictor : Predictor, optional
        Covariates of respondents, which are public.
    tested : bool
        Whether the data are for a test, for which all tasks must be answered. A test of groups does
        not need sets that connect the items, or coefficients that are identified.

    Returns
    -------
    EncodedChoices
        Totals by unit, and the public facts.

    Raises
    ------
    ValueError, TypeError
        If the frame breaks a rule of :func:`privrank.as_choices`, has lost a column, or has more
        tasks of a respondent than `max_rows`. Also if the sets do not connect all items, or do not
        identify the coefficients of covariates.
    """
    bound = check_count("max_rows", max_rows)
    frames.check_stated(respondent)
    frame, view = open_rows(frame, respondent, "choices")
    number, sets, answers = choice_columns(frames.column_names(view))
    silent = number == OPTIONAL
    public = coding.distinct_names(respondent, *(() if predictor is None else predictor.columns))
    own = next(filter(is_reserved, public), None)
    refuse(
        _MESSAGES,
        {
            "not public": own is not None,
            "contest": predictor is not None and bool(predictor.covariates.contest),
            "tested": silent and tested,
            "silent": silent and (predictor is not None or answer_of(answers) == "order"),
        },
        own,
    )
    refuse_unused(frames.column_names(view), public, "choices")
    check_numeric_columns(view, None, predictor)
    labels = frames.declared_items(frame, sets, items, public=True)
    table = frames.collect(view, [*public, number, *sets, *answers])
    by_row = respondent is None
    table, shown, chosen = read_tasks(table, number, sets, answers, labels, by_row=by_row)
    size = (shown >= 0).sum(axis=1)
    keys = {name: coding.key_of(table[name]) for name in public}
    owner = None if respondent is None else keys[respondent]
    nobs = units_of(owner, respondent, np.sign(size), bound)
    person = np.arange(nobs) if owner is None else owner.codes
    once = np.ones(len(person), dtype=np.int64)
    pattern, described, _ = read_patterns(predictor, keys, once, once, person, "public")
    offered, version = questionnaires(
        person, pattern, shown, answer_of(answers), "private" if silent else None
    )
    # if rows are units, a total is kept for each version and not for each row
    unit = version if owner is None else person
    version = np.arange(len(offered.versions)) if owner is None else version
    totals = _totals(chosen, size, offered, unit, (len(version), len(labels)))
    design = Design(
        items=tuple(str(label) for label in labels),
        nobs=nobs,
        unit="row" if owner is None else "respondent",
        max_rows=bound,
        distinct_pairs=False,
        ties=False,
        kind="public",
        pairs=None,
        covariates=described,
        offered=offered,
    )
    if predictor is None or not tested:  # groups of a test need no worths
        check_connected(cast(PairCounts, design.pairs), design.items)
        check_identified(design)
    return EncodedChoices(
        design,
        totals,
        version,
        _pair_votes(chosen, len(labels)) if offered.answer == "order" else None,
    )


def _totals(
    chosen: IntArray, size: IntArray, offered: Offered, unit: IntArray, shape: tuple[int, int]
) -> IntArray:
    """Return the sums of the position scores by unit and item, an array of this shape.

    One more column contains the number of answered tasks, if tasks may be unanswered. `chosen` are
    the items of the answers, -1 if missing, and `size` is the size of each set.
    """
    score = np.broadcast_to(position_scores(offered.answer, chosen.shape[1]), chosen.shape)
    if offered.answer == "order":  # of sets that are smaller than the number of places
        score = score + (size - chosen.shape[1])[:, None]
    given = chosen >= 0
    cell = unit[:, None] * shape[1] + chosen
    totals = sum_by(cell[given], score[given], shape[0] * shape[1]).reshape(shape)
    if offered.unanswered is None:
        return totals
    return np.column_stack((totals, sum_by(unit, given[:, 0].astype(np.int64), shape[0])))


def _pair_votes(chosen: IntArray, items: int) -> IntArray:
    """Return how many orders place item i before item j, by pair i < j."""
    votes = np.zeros((items, items), dtype=np.int64)
    for before, after in combinations(chosen.T, 2):
        given = after >= 0
        np.add.at(votes, (before[given], after[given]), 1)
    return votes[np.triu_indices(items, 1)]


def formula_choices(
    formula: str,
    data: object,
    arguments: Mapping[str, Any],
    *,
    tested: bool = False,
    grouped: bool = False,
) -> EncodedChoices:
    """Encode the choices that a formula names, such as ``"best + worst ~ region"``.

    The left side names the answers, ``order`` for places. `arguments` are the other arguments as
    passed by the user. Data that are `tested` have no covariates, but for one column of groups if
    they are `grouped`.
    """
    parsed = parse(formula)
    _, view = open_rows(data, arguments.get("respondent"), "choices")
    _, sets, answers = choice_columns(frames.column_names(view))
    left = answer_of(answers).replace("-", " + ")
    refuse(
        _MESSAGES,
        {
            "private": arguments.get("design") != "public",
            "arguments": not arguments.keys() <= _ARGUMENTS,
            "left side": " + ".join(parsed.left) != left,
            "groups": grouped and (len(parsed.right) != 1 or not parsed.intercept),
            "right side": tested and not grouped and (parsed.right or not parsed.intercept),
        },
        left,
        formula,
    )
    return encode_tasks(
        data,
        items=arguments.get("items"),
        respondent=arguments.get("respondent", UNSTATED),
        max_rows=arguments.get("max_rows", 1),
        predictor=declared_predictor(parsed, data, sets, arguments, public=True),
        tested=tested,
    )


def encode_tested(
    data: object,
    *,
    respondent: str | None,
    max_rows: object,
    items: object,
    categories: object,
    ties: object,
    missing: object,
    known: object = None,
) -> EncodedSample | EncodedChoices:
    """Validate the data of a test: a choices frame, or the data of :func:`encode_data`.

    Data that are encoded already are returned as they are. The unit of privacy must be stated for
    choices from offered sets.
    """
    if isinstance(data, EncodedSample | EncodedChoices):
        return data
    if is_choices(data):
        check_only_choices(
            {
                "categories": not categories,
                "ties": ties == "refuse",
                "missing": missing == "refuse",
            },
            "public",
        )
        return encode_tasks(
            data, items=items, respondent=respondent, max_rows=max_rows, tested=True
        )
    return encode_data(
        data,
        items=items,
        categories=categories,
        respondent=None if respondent is UNSTATED else respondent,
        max_rows=max_rows,
        ties=ties,
        missing=missing,
        known=known,
    )


def formula_tested(
    formula: str, data: object, arguments: dict[str, Any], known: object = None
) -> EncodedSample | EncodedChoices:
    """Encode the data of a test that a formula names, such as ``"best + worst ~ 1"``."""
    if not is_choices(data):
        return sample_of_formula(formula, data, arguments, known=known)
    return formula_choices(formula, data, {"design": "public", **arguments}, tested=True)


def formula_compared(formula: str, data: object, arguments: Mapping[str, Any]) -> EncodedChoices:
    """Encode the choices of groups that a formula names, such as ``"best + worst ~ region"``.

    Levels may be a sequence, as for other data of groups.
    """
    levels = arguments.get("levels")
    if levels is not None and not isinstance(levels, Mapping):
        levels = {name: levels for name in parse(formula).right}
    encoded = formula_choices(
        formula,
        data,
        {"design": "public", **arguments, "levels": levels},
        tested=True,
        grouped=True,
    )
    facts = encoded.design.covariates or INTERCEPT
    shape = (len(facts.factors), len(facts.bounds), len(facts.item_columns))
    refuse(
        _MESSAGES,
        {"groups": shape != (1, 0, 0), "row groups": encoded.design.unit == "row"},
    )
    return encoded


def read_tasks(
    table: pd.DataFrame,
    number: str,
    sets: Sequence[str],
    answers: Sequence[str],
    labels: Names,
    *,
    by_row: bool,
) -> tuple[pd.DataFrame, IntArray, IntArray]:
    """Return the rows of units, and their items of sets and of answers, -1 where missing.

    The columns are those of :func:`choice_columns`. If rows are units, `by_row`, rows without a
    task are left out.
    """
    shown, chosen = (
        np.column_stack([item_codes(table[name], labels) for name in group])
        for group in (sets, answers)
    )
    size = (shown >= 0).sum(axis=1)
    # a column of a set that was lost also makes answers lie outside their sets
    refuse(_MESSAGES, {"number": (coding.real_numbers(table[number]) != size).any()}, number)
    silent = check_tasks(shown, chosen, answers)
    refuse(
        _MESSAGES,
        {
            "unanswered": number == OFFERED and size[silent].any(),
            "halves": (chosen[silent] >= 0).any(),
        },
    )
    frames.check_rows(int(np.count_nonzero(size)), "choices")
    rows = np.flatnonzero(size) if by_row else np.arange(len(size))
    return table.iloc[rows], shown[rows], chosen[rows]


def questionnaires(
    person: IntArray,
    pattern: IntArray,
    shown: IntArray,
    answer: Answer,
    unanswered: Literal["private"] | None = None,
) -> tuple[Offered, IntArray]:
    """Return the offered sets by questionnaire, and the questionnaire of each unit.

    `person` is the unit of each row, `pattern` its pattern of covariates, and `shown` its set: the
    positions of the items, -1 after the last. `unanswered` is ``"private"`` if tasks may be
    unanswered.
    """
    size = (shown >= 0).sum(axis=1)
    tasks = np.flatnonzero(size)
    # missing items, -1, come after the others
    items = np.sort(np.where(shown < 0, np.iinfo(np.int64).max, shown), axis=1)
    sets, number = _distinct(np.column_stack((size, items))[tasks])
    order = np.lexsort((number, person[tasks]))
    owner = person[tasks][order]
    # one row per unit: its pattern, then its sets in ascending order, then -1
    within = np.arange(len(owner)) - np.searchsorted(owner, owner)
    table = np.full((person.max() + 1, 2 + within.max(initial=0)), -1)
    table[person, 0] = pattern
    table[owner, 1 + within] = number[order]
    versions, version = _distinct(table)
    offered = Offered(
        answer=answer,
        sets=tuple(tuple(own[:length]) for length, *own in sets),
        versions=tuple(tuple(one for one in own if one >= 0) for _, *own in versions),
        units=tuple(np.bincount(version).tolist()),
        patterns=tuple(first for first, *_ in versions),
        unanswered=unanswered,
    )
    return offered, version


def _distinct(rows: IntArray) -> tuple[list[tuple[int, ...]], IntArray]:
    """Return the distinct rows in order, and the position of each row among them.

    Rows have at least two columns. This takes a fifth of the time of :func:`numpy.unique`.
    """
    groups = pd.DataFrame(rows).groupby(list(range(rows.shape[1])))
    return list(groups.size().index), np.asarray(groups.ngroup(), dtype=np.int64)
