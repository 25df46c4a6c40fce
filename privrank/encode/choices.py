"""Validate, bound and count choices from publicly offered sets.

A choices frame (:func:`privrank.as_choices`) has one row per task. Column ``offered`` contains the
number of items of the set, and ``offered 1``, ``offered 2``, ... contain the items. The answers are
in ``best`` and ``worst``, or in ``place 1``, ``place 2``, ... for orders of the set. Which sets
were offered is public, the answers are private. A row with 0 in ``offered`` is no task, but it
preserves a respondent who answered none.

The number in ``offered`` marks how many columns a set takes: a frame that has lost one of them is
refused. Messages name columns and rules, never a cell's value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from privrank.bradley_terry.modelmatrix import Predictor, declare
from privrank.bradley_terry.paircounts import groups_of
from privrank.bradley_terry.predictor import check_identified
from privrank.encode import coding, frames
from privrank.encode.comparisons import (
    COVARIATES,
    check_numeric_columns,
    read_patterns,
    schema_of,
    units_by_pattern,
)
from privrank.encode.encoded import (
    EncodedChoices,
    open_rows,
    refuse_unused,
    sum_by,
    units_of,
)
from privrank.encode.rankingforms import item_codes
from privrank.privacy.offered import Answer, Offered
from privrank.release.survey import Covariates, Design
from privrank.util.arrays import BoolArray, IntArray
from privrank.util.checks import UNSTATED, check_count, first_absent
from privrank.util.formula import parse

OFFERED = "offered"
PLACE = "place"
BEST = "best"
WORST = "worst"
"""Names of the columns of a choices frame; the first two are also followed by a number."""


@dataclass(frozen=True, slots=True)
class ChoiceColumns:
    """The columns of a choices frame: items of a set, and answers in order of their scores."""

    sets: tuple[str, ...]
    answers: tuple[str, ...]

    @property
    def answer(self) -> Answer:
        """How tasks are answered."""
        named = {BEST, WORST}.issuperset(self.answers)
        return cast(Answer, "-".join(self.answers) if named else "order")

    def scores(self, size: IntArray) -> IntArray:
        """Return the position score of each answer, shape (rows, answers), for sets of `size`."""
        if self.answer == "order":
            return np.asarray(size[:, None] - 1 - 2 * np.arange(len(self.answers)))
        signs = [1 if name == BEST else -1 for name in self.answers]
        return np.tile(signs, (len(size), 1))


def numbered_columns(word: str, number: int) -> list[str]:
    """Return the names of the columns 1 to `number`."""
    return [f"{word} {k}" for k in range(1, number + 1)]


def is_reserved(column: object) -> bool:
    """Return whether a name belongs to a column of choices frames."""
    return bool(re.fullmatch(rf"({OFFERED}|{PLACE}) \d+|{OFFERED}|{BEST}|{WORST}", str(column)))


def is_choices(frame: object) -> bool:
    """Return whether a frame has columns of offered items, by their names alone."""
    try:
        names = frames.column_names(frames.open_frame(frame, "comparisons"))
    except (TypeError, ValueError):  # the reader of comparisons has its own message
        return False
    return any(is_reserved(name) and name.startswith(OFFERED) for name in map(str, names))


def check_only_choices(usual: Mapping[str, bool], design: object) -> None:
    """Refuse arguments that are for comparisons only, and a private design.

    `usual` states by argument whether it has its default.
    """
    changed = [f"{name}=" for name, unchanged in usual.items() if not unchanged]
    if changed:
        raise ValueError(
            f"choices from offered sets must be fitted without {', '.join(changed)}. Leave it out, "
            f"because it applies to paired comparisons only."
        )
    if design != "public":
        raise ValueError(
            "design must be 'public' for choices from offered sets, because which sets were "
            "offered is public and was fixed before any answer. State design='public'."
        )


def choice_columns(present: Sequence[str]) -> ChoiceColumns:
    """Return the columns of a choices frame by their names; refuse a frame that has lost any."""
    own = [name for name in present if is_reserved(name)]
    sets = numbered_columns(OFFERED, sum(name.startswith(f"{OFFERED} ") for name in own))
    places = numbered_columns(PLACE, sum(name.startswith(PLACE) for name in own))
    named = [name for name in (BEST, WORST) if name in own]
    if first_absent((OFFERED, *sets, *places), own) is not None or bool(places) == bool(named):
        raise ValueError(
            f"choices must have the columns {OFFERED!r}, '{OFFERED} 1', '{OFFERED} 2', ... and "
            f"either {BEST!r} and {WORST!r} (or one of them) or '{PLACE} 1', '{PLACE} 2', ... Make "
            f"them with privrank.as_choices(frame, offered=...), and keep all of them."
        )
    return ChoiceColumns(tuple(sets), tuple(named or places))


def check_sets(shown: IntArray, columns: ChoiceColumns) -> None:
    """Refuse sets that cannot be answered; `shown` contains items, -1 after the last of a set."""
    size = (shown >= 0).sum(axis=1)
    if ((shown[:, :-1] < 0) & (shown[:, 1:] >= 0)).any():
        raise ValueError(
            "offered= must give the items of each set without a gap, and at least one set has a "
            "missing item before its last item. Fill in the item, or move the missing entries to "
            "the end of the set."
        )
    if _repeats(shown):
        raise ValueError(
            "offered= must give different items in each set, and at least one set repeats an item. "
            "Correct such sets."
        )
    if (size == 1).any():
        raise ValueError(
            "offered= must give at least two items in each set, and at least one set has a single "
            "item. If each row shows one item of a task, name the column of tasks with task=. "
            "Leave out tasks without a choice."
        )
    if columns.answer == "best-worst" and (size == 2).any():
        raise ValueError(
            "best= and worst= need sets of at least three items, and at least one set has two, "
            "where the worst is known from the best. Name best= alone (plan answer='best') if all "
            "sets have two items, or leave out the sets of two."
        )
    if columns.answer == "order" and size.max(initial=0) > len(columns.answers):
        raise ValueError(
            "places= must order all items of each set, and at least one set has more items than "
            "there are places. Name a place for every item, or state only best= or worst=."
        )


def check_answers(shown: IntArray, chosen: IntArray, columns: ChoiceColumns) -> None:
    """Refuse answers that are not in their set or name an item twice; -1 is a missing answer."""
    if _repeats(chosen):
        raise ValueError(
            f"{', '.join(columns.answers)} must name different items, and in at least one task two "
            f"of these answers are the same item. Correct such answers."
        )
    for column, item in zip(columns.answers, chosen.T, strict=True):
        if (item >= 0)[(shown != item[:, None]).all(axis=1)].any():
            raise ValueError(
                f"{column} must be an item of the set that was offered in its task, and at least "
                f"one answer is not. Check that sets and answers are from the same task."
            )


def unanswered_tasks(shown: IntArray, chosen: IntArray, columns: ChoiceColumns) -> BoolArray:
    """Return which tasks lack any of their answers."""
    size = (shown >= 0).sum(axis=1)
    most = size if columns.answer == "order" else np.where(size, len(columns.answers), 0)
    return np.asarray(((chosen >= 0).sum(axis=1) < most) | (size == 0))


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
    present = frames.column_names(view)
    columns = choice_columns(present)
    public = coding.distinct_names(respondent, *(() if predictor is None else predictor.columns))
    _check_public(public, predictor)
    refuse_unused(present, public, "choices")
    check_numeric_columns(view, None, predictor)
    labels = frames.declared_items(frame, columns.sets, items, public=True)
    names = [*public, OFFERED, *columns.sets, *columns.answers]
    table = frames.collect(view, names)
    table, shown, chosen = read_tasks(table, columns, labels, by_row=respondent is None)
    size = (shown >= 0).sum(axis=1)
    keys = {name: coding.key_of(table[name]) for name in public}
    owner = None if respondent is None else keys[respondent]
    nobs = units_of(owner, respondent, np.sign(size), bound)
    person = np.arange(nobs) if owner is None else owner.codes
    whose = None if owner is None else person
    pattern, described = _patterns(predictor, keys, whose, len(size))
    offered, version = questionnaires(person, pattern, shown, columns.answer)
    # if rows are units, a total is kept for each version and not for each row
    unit = version[person] if owner is None else person
    version = np.arange(len(offered.versions)) if owner is None else version
    given = chosen >= 0
    cell = unit[:, None] * len(labels) + chosen
    totals = sum_by(cell[given], columns.scores(size)[given], len(version) * len(labels))
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
    _check_identified(design)
    return EncodedChoices(design, totals.reshape(len(version), len(labels)), version)


_ARGUMENTS = {"items", "respondent", "max_rows", "design"} | COVARIATES
"""Arguments of a formula for choices."""


def formula_choices(formula: str, data: object, arguments: dict[str, Any]) -> EncodedChoices:
    """Encode the choices that a formula names, such as ``"best + worst ~ region"``.

    The left side names the answers, ``order`` for places. `arguments` are the other arguments as
    passed by the user.
    """
    parsed = parse(formula)
    if not arguments.keys() <= _ARGUMENTS:
        raise TypeError(
            f"from_formula takes only formula, data and the arguments "
            f"{', '.join(sorted(_ARGUMENTS))} for choices from offered sets."
        )
    check_only_choices({}, arguments.get("design"))
    _, view = open_rows(data, arguments.get("respondent"), "choices")
    columns = choice_columns(frames.column_names(view))
    if "-".join(parsed.left) != columns.answer:
        raise ValueError(
            f"formula must name the answers of the choices on its left, here "
            f"'{columns.answer.replace('-', ' + ')} ~ ...', got {formula!r}."
        )
    predictor = None
    given = {name: arguments.get(name) for name in sorted(COVARIATES)}
    if parsed.right or not parsed.intercept or any(v is not None for v in given.values()):
        labels = frames.declared_items(data, columns.sets, arguments.get("items"), public=True)
        schema = schema_of(data, parsed.right_text, public=True)
        predictor = declare(parsed.right_text, schema, labels, **given)
    return encode_tasks(
        data,
        items=arguments.get("items"),
        respondent=arguments.get("respondent", UNSTATED),
        max_rows=arguments.get("max_rows", 1),
        predictor=predictor,
    )


def read_tasks(
    table: pd.DataFrame, columns: ChoiceColumns, labels: tuple[Any, ...], *, by_row: bool
) -> tuple[pd.DataFrame, IntArray, IntArray]:
    """Return the rows of units, and their items of sets and of answers, -1 where missing.

    If rows are units, `by_row`, rows without a task are left out.
    """
    shown, chosen = (
        np.column_stack([item_codes(table[name], labels) for name in group])
        for group in (columns.sets, columns.answers)
    )
    size = (shown >= 0).sum(axis=1)
    if (coding.real_numbers(table[OFFERED]) != size).any():
        raise ValueError(
            f"column {OFFERED!r} must give the number of items in '{OFFERED} 1', '{OFFERED} 2', "
            f"..., and at least one row has another number. Keep all columns of "
            f"privrank.as_choices(frame, offered=...)."
        )
    check_sets(shown, columns)
    check_answers(shown, chosen, columns)
    if (unanswered_tasks(shown, chosen, columns) & (size > 0)).any():
        raise ValueError(
            "choices must have all answers of each task, and at least one task lacks an answer. "
            "Convert the data with privrank.as_choices(frame, unanswered='public', ...) if it was "
            "fixed beforehand which tasks stay unanswered."
        )
    frames.check_rows(int(np.count_nonzero(size)), "choices")
    rows = np.flatnonzero(size) if by_row else np.arange(len(size))
    return table.iloc[rows], shown[rows], chosen[rows]


def _check_public(public: Sequence[str], predictor: Predictor | None) -> None:
    """Refuse respondents and covariates that are not public facts of a respondent."""
    if (own := next(filter(is_reserved, public), None)) is not None:
        raise ValueError(
            f"respondent= and covariates must not name column {own!r}, which contains offered "
            f"items or answers of choices. Name columns that describe respondents."
        )
    if predictor is not None and predictor.covariates.ordered:
        raise ValueError(
            "formula must not use 'first' for choices from sets, in which no item is named first. "
            "Leave 'first' out."
        )


def _check_identified(design: Design) -> None:
    """Refuse public sets that do not identify the worths or the coefficients of covariates."""
    assert design.pairs is not None
    groups, _ = groups_of(design.pairs, len(design.items))
    if groups > 1:
        raise ValueError(
            f"offered sets must connect all items, and no set contains items of more than one of "
            f"{groups} groups. Differences between the groups are not identified. Leave items that "
            f"were never offered out of items=, or analyse each group by itself."
        )
    if design.covariates is not None:
        check_identified(design)


def _patterns(
    predictor: Predictor | None,
    keys: Mapping[str, coding.Key],
    person: IntArray | None,
    rows: int,
) -> tuple[IntArray, Covariates | None]:
    """Return the pattern of covariates of each row, and all patterns with their units."""
    if predictor is None:
        return np.zeros(rows, dtype=np.int64), None
    ones = np.ones(rows, dtype=np.int64)
    pattern, described = read_patterns(predictor, keys, ones.astype(np.int8), person, "public")
    units = units_by_pattern(pattern, ones, person, described)
    return pattern, replace(described, units=units)


def questionnaires(
    person: IntArray, pattern: IntArray, shown: IntArray, answer: Answer
) -> tuple[Offered, IntArray]:
    """Return the offered sets by questionnaire, and the questionnaire of each unit.

    `person` is the unit of each row, `pattern` its pattern of covariates, and `shown` its set: the
    positions of the items, -1 after the last.
    """
    size = (shown >= 0).sum(axis=1)
    tasks = np.flatnonzero(size)
    # missing items, -1, come after the others
    items = np.sort(np.where(shown < 0, np.iinfo(np.int64).max, shown), axis=1)
    sets, _, number = _distinct(np.column_stack((size, items))[tasks])
    order = np.lexsort((number, person[tasks]))
    owner = person[tasks][order]
    # one row per unit: its pattern, then its sets in ascending order, then -1
    within = np.arange(len(owner)) - np.searchsorted(owner, owner)
    table = np.full((person.max() + 1, 2 + within.max(initial=0)), -1)
    table[person, 0] = pattern
    table[owner, 1 + within] = number[order]
    versions, units, version = _distinct(table)
    offered = Offered(
        answer=answer,
        sets=tuple(tuple(own[:length]) for length, *own in sets),
        versions=tuple(tuple(one for one in own if one >= 0) for _, *own in versions),
        units=units,
        patterns=tuple(first for first, *_ in versions),
    )
    return offered, version


def _distinct(rows: IntArray) -> tuple[list[tuple[int, ...]], tuple[int, ...], IntArray]:
    """Return the distinct rows in order, how often each occurs, and the position of each row.

    Rows have at least two columns. This takes a fifth of the time of :func:`numpy.unique`.
    """
    groups = pd.DataFrame(rows).groupby(list(range(rows.shape[1])))
    size = groups.size()
    number = np.asarray(groups.ngroup(), dtype=np.int64)
    return list(size.index), tuple(size.tolist()), number
