"""Convert the usual forms of choices from publicly offered sets to a choices frame.

A choices frame (:mod:`privrank.encode.choices`) has one row per task. A conversion takes a frame
and returns a frame; it releases and protects nothing. Which sets were offered is public and must
not depend on any answer. Each row is made from the rows of its own respondent, and no respondent is
dropped. So frames that differ in the answers of one respondent become choices frames that differ in
the answers of the same respondent.

Each form is read as the items of every task, and the row of the frame that the task is from. The
answers are then read as items. Messages name arguments, columns and rules, never a cell's value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd

from privrank.encode import coding, frames
from privrank.encode.choices import (
    BEST,
    OFFERED,
    PLACE,
    WORST,
    ChoiceColumns,
    check_answers,
    check_sets,
    is_reserved,
    numbered_columns,
    unanswered_tasks,
)
from privrank.encode.encoded import check_owned, refuse_unused
from privrank.encode.rankingforms import Names, OpenedFrame, item_codes
from privrank.util.arrays import IntArray
from privrank.util.checks import as_list, check_choice, check_items, check_name, first_absent

Unanswered = Literal["refuse", "public", "private"]

_TASK = "{task}"
"""Stands for the name of a task in the names of answer columns."""


def as_choices(
    frame: object,
    *,
    offered: object,
    best: str | None = None,
    worst: str | None = None,
    places: Sequence[str] | str | None = None,
    items: Sequence[Any] | Mapping[Any, Any] | None = None,
    respondent: str | None = None,
    task: str | None = None,
    version: str | None = None,
    codes: Any = None,
    sep: str | None = None,
    unanswered: Unanswered = "refuse",
) -> pd.DataFrame:
    """Convert choices from offered sets to a choices frame.

    A task shows a set of items, and the answer names the best, the worst, both, or the order of
    all items in the set. Which sets were offered is public and must be fixed before any answer.

    Parameters
    ----------
    frame : data frame
        Data in any of the forms of `offered`; any frame narwhals supports.
    offered : list of str, str, data frame or mapping
        The sets, in one of five forms:

        - a list of columns: one row per task, and each column contains one item of the set. In
          smaller sets the last columns are missing.
        - a column, with `task`: one row per task and item of its set.
        - a column: one row per task, and a cell contains the list of items, as a list or as a text
          with separators (`sep`).
        - a plan of the questionnaires, with `version`: one row per respondent, or per
          questionnaire. A plan is a data frame with a column ``version``, a column ``task`` and one
          further column for each item of a set, or a mapping of each version to its list of sets,
          whose tasks are 1, 2, ...
        - ``"own"``, with `places`: the items that `places` name are the set, for example those that
          a member of a jury was assigned.
    best, worst : str, optional
        Columns with the best and the worst item. With `version` one column per task:
        ``best="best_{task}"``.
    places : sequence of str, optional
        Columns with the items in order, best first, instead of `best` and `worst`. Each item of the
        set occurs once. With `task` the column of ranks, 1 for the best item.
    items : sequence of str or int, or mapping, optional
        The items, in the order of the report, or a mapping of the codes in the frame (and plan) to
        items. By default they are the categories of categorical columns of `offered`.
    respondent : str, optional
        Column, or level of a pandas index, that identifies the respondent. With `version` rows are
        numbered 0, 1, ... if it is left out. In all other forms tasks then have no respondents.
    task : str, optional
        Column that identifies the task of a row, within its respondent.
    version : str, optional
        Column with the respondent's version of the questionnaire.
    codes : "position", sequence or mapping, optional
        By default answers are items. ``"position"``: answers are positions in the set, from 1. A
        sequence: the names of these positions, such as ``["A", "B", "C"]``. With `task`: the
        entries that mark the best and the worst item, such as ``{"best": 1, "worst": -1}``; a
        single column may contain both. The default is 1 (or True) for each.
    sep : str, optional
        The text between the items of a set, if `offered` is a column of texts.
    unanswered : {"refuse", "public", "private"}
        How a task that lacks any of its answers is treated. ``"refuse"``: the frame is refused.
        ``"public"``: it was fixed beforehand which tasks stay unanswered, and such tasks are left
        out. ``"private"``: it is part of the answer, which is not supported yet.

    Returns
    -------
    pandas.DataFrame
        One row per task, with all columns of the frame that are not named above, the respondent,
        the task and the version. With `task` they are from the first row of the task. Columns with
        one of the following names are left out. ``offered`` is the number of items of the set, and
        ``offered 1``, ``offered 2``, ... are its items (categoricals of the items, missing after
        the last). The answers are ``best`` and ``worst``, or ``place 1``, ``place 2``, ...

        A respondent without any answered task keeps one row, with 0 in ``offered``, which preserves
        the number of respondents. Models take the items from the ``attrs`` or the categories of the
        frame, and refuse a frame that has lost a column of its sets.

    Raises
    ------
    ValueError, TypeError
        If the frame breaks any rule above, a set repeats an item or has fewer than two items, an
        answer is not in its set, or best and worst are the same item. Also if the
        answers to sets of two are best and worst, because one is known from the other.

    See Also
    --------
    privrank.as_comparisons : Convert paired comparisons.
    privrank.as_rankings : Convert rankings of all items.

    Notes
    -----
    **Public sets.** The guarantee of a fit protects the answers, not the sets. Sets are public if
    the questionnaire was assigned, at random or by a plan. They are not if earlier answers
    determine later sets (adaptive questionnaires), or if respondents choose what to judge. No check
    can detect this.

    Examples
    --------
    Best and worst of three, one row per task:

    >>> import pandas as pd
    >>> import privrank as pr
    >>> drinks = ["tea", "milk", "juice", "water"]
    >>> survey = pd.DataFrame(
    ...     {
    ...         "id": [1, 1, 2],
    ...         "show1": ["tea", "milk", "tea"],
    ...         "show2": ["milk", "juice", "milk"],
    ...         "show3": ["juice", "water", "juice"],
    ...         "most": ["tea", "juice", "milk"],
    ...         "least": ["juice", "water", "tea"],
    ...     }
    ... )
    >>> shows = ["show1", "show2", "show3"]
    >>> pr.as_choices(
    ...     survey, offered=shows, best="most", worst="least", items=drinks, respondent="id"
    ... )
       id  offered offered 1 offered 2 offered 3   best  worst
    0   1        3       tea      milk     juice    tea  juice
    1   1        3      milk     juice     water  juice  water
    2   2        3       tea      milk     juice   milk    tea

    First choices, one row per respondent, in two versions of a questionnaire:

    >>> plan = {"x": [["tea", "milk", "juice"], ["milk", "water"]], "y": [["tea", "water"]]}
    >>> wide = pd.DataFrame({"v": ["x", "y"], "best_1": ["tea", "water"], "best_2": ["milk", None]})
    >>> pr.as_choices(wide, offered=plan, version="v", best="best_{task}", items=drinks)
       respondent  v  offered offered 1 offered 2 offered 3   best
    0           0  x        3       tea      milk     juice    tea
    1           0  x        2      milk     water       NaN   milk
    2           1  y        2       tea     water       NaN  water

    Orders of three of the drinks each, which were assigned to the members of a jury:

    >>> jury = pd.DataFrame(
    ...     {"first": ["tea", "milk"], "second": ["juice", "water"], "third": ["milk", "tea"]}
    ... )
    >>> pr.as_choices(jury, offered="own", places=["first", "second", "third"], items=drinks)
       offered offered 1 offered 2 offered 3 place 1 place 2 place 3
    0        3       tea     juice      milk     tea   juice    milk
    1        3      milk     water       tea    milk   water     tea
    """
    if check_choice("unanswered", unanswered, Unanswered) == "private":
        raise ValueError(
            "unanswered='private' is not supported yet. Use unanswered='refuse' if all tasks are "
            "answered, or unanswered='public' if it was fixed beforehand which tasks stay "
            "unanswered."
        )
    alone = task is None and version is None
    own = alone and places is not None and isinstance(offered, str) and offered == "own"
    roles = _answer_columns(best, worst, places)
    sets = list(roles.values()) if own else _set_columns(offered, task, version)
    whole = task is None and len(sets) == 1
    if sep is not None and not (whole and isinstance(sep, str) and sep):
        raise ValueError(
            "sep must be the text between the items of a set, where one column contains whole "
            "sets. Leave it out in all other forms."
        )
    columns = OpenedFrame(frame, items, respondent=respondent, task=task)
    plan = None if version is None else _plan(offered)
    names = [_TASK] if plan is None else [str(name) for name in plan.task.values.tolist()]
    answer_columns = [column.replace(_TASK, name) for column in roles.values() for name in names]
    _check_columns(columns, [] if own else sets, answer_columns)
    labels, cells = _declared(columns, sets, plan, public=not own)
    table = _collected(columns, numbered_rows=plan is not None)
    read = partial(_items, cells=cells, codes=codes)
    if task is not None:
        tasks = _read_rows(table, columns, sets[0], cells, _marks(roles, codes))
    elif plan is not None:
        shown = _read_sets(plan.sets, cells, sep)
        tasks = _read_versions(table, sets[0], plan, shown, read, roles)
    else:
        shown = _read_sets(table[sets], cells, sep)
        answers = {name: read(table[column], shown) for name, column in roles.items()}
        tasks = Tasks(np.arange(len(table)), shown, answers)
    owner = respondent if plan is None else respondent or "respondent"
    tasks = _answered(tasks, None if owner is None else table[owner], unanswered)
    private = {*answer_columns, *(sets if plan is None else ())}
    others = [name for name in table.columns if name not in private and not is_reserved(name)]
    return _choices_frame(table[others], tasks, labels)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tasks:
    """Tasks, with items as positions in the declared list.

    Parameters
    ----------
    row : ndarray of int
        The row of the frame that each task is from.
    shown : ndarray of int, shape (tasks, items of a set)
        The items of each set, -1 after the last.
    answers : dict of str to ndarray of int
        The item of each answer, by its name in choices frames; -1 if it is missing.
    """

    row: IntArray
    shown: IntArray
    answers: dict[str, IntArray]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Questionnaires:
    """The public sets of all versions of a questionnaire: one row and one entry for each task."""

    sets: pd.DataFrame
    version: coding.Key
    task: coding.Key


def _answer_columns(best: object, worst: object, places: object) -> dict[str, str]:
    """Return the columns of answers, by the names that they have in choices frames."""
    roles: dict[str, Any] = {BEST: best, WORST: worst}
    roles = {role: name for role, name in roles.items() if name is not None}
    listed = [places] if isinstance(places, str) or places is None else as_list(places)
    if not listed or (places is None) == (not roles):
        raise ValueError(
            "the columns of answers must be named with best=, worst= or both, or with places=[...] "
            "for orders, best first."
        )
    if places is not None:
        roles = {f"{PLACE} {k}": name for k, name in enumerate(listed, start=1)}
    for role, name in roles.items():
        check_name(name, role)
    return roles


def _set_columns(offered: object, task: object, version: object) -> list[Any]:
    """Return the columns that contain the sets, or the version of the questionnaire."""
    sets = [offered] if isinstance(offered, str) else as_list(offered)
    if version is None and (isinstance(offered, Mapping) or hasattr(offered, "columns")):
        raise TypeError(
            "offered is a plan of questionnaires, which needs version=. Name the column with the "
            "version of each row."
        )
    if version is not None and task is None:
        sets = [version]
    if not sets or (task is not None and (version is not None or not isinstance(offered, str))):
        raise TypeError(
            "offered must be a list of columns, a column, or 'own' with places=. With task= it "
            "must be the column of items. With version=, and without task=, it must be a plan."
        )
    for name in sets:
        check_name(name, "offered" if version is None else "version")
    return sets


def _check_columns(columns: OpenedFrame, sets: list[Any], answer_columns: list[str]) -> None:
    """Refuse columns that do not exist or are named twice, and answers in public columns.

    `sets` are the columns of sets, without those that also contain the answers.
    """
    public = [*sets, *columns.owners.values()]
    if (absent := first_absent((*public, *answer_columns), columns.names)) is not None:
        if absent == "own":
            raise ValueError(
                "offered='own' needs places=[...], the columns with the items in order. For best= "
                "and worst= name the columns of the offered items."
            )
        raise ValueError(
            f"frame has no column {absent!r}. Name the right column. {_TASK} in the name of a "
            f"column stands for the tasks of a plan, if version= is given."
        )
    if (both := next(filter(public.__contains__, answer_columns), None)) is not None:
        raise ValueError(
            f"column {both!r} must not contain both answers and public facts. Sets, tasks, "
            f"versions and respondents are public and must be fixed before any answer."
        )
    if len({*public, *answer_columns}) < len(public) + len(answer_columns):
        raise ValueError(
            f"each item of a set and each answer must have a column of its own, for every task of "
            f"a version (best='best_{_TASK}'). Name a column once, including a single column in "
            f"which codes= marks the best and the worst item."
        )
    refuse_unused(columns.names, [*public, *answer_columns])


def _declared(
    columns: OpenedFrame, sets: Sequence[Any], plan: Questionnaires | None, *, public: bool
) -> tuple[Names, Names]:
    """Return the items, and the entry of each item in the cells of the frame.

    Categories of the columns of sets are used if these are `public`, and do not contain answers.
    """
    if isinstance(columns.items, Mapping):
        codes = check_items(list(columns.items), "the codes in items")
        return check_items(list(columns.items.values())), codes
    source = columns.frame if plan is None else plan.sets
    named = sets if plan is None else list(plan.sets.columns)
    labels = frames.declared_items(source, named, columns.items, public=public)
    return labels, labels


def _collected(columns: OpenedFrame, *, numbered_rows: bool) -> pd.DataFrame:
    """Return all columns; number the rows if each is from a respondent without a name."""
    table = frames.collect(columns.view, columns.names).reset_index(drop=True)
    frames.check_rows(len(table))
    for role, name in columns.owners.items():
        check_owned(coding.key_of(table[name]), name, role)
    if numbered_rows and not columns.owners:
        if "respondent" in columns.names:
            raise ValueError(
                "frame has a column 'respondent' that is not used. Use respondent='respondent', or "
                "rename it if each row is from a different respondent."
            )
        table.insert(0, "respondent", np.arange(len(table)))
    return table


def _read_sets(table: pd.DataFrame, cells: Names, sep: str | None) -> IntArray:
    """Return the items of each set, -1 after the last.

    One column contains whole sets, as lists or as texts with separators; several columns contain
    one item each.
    """
    if len(table.columns) > 1:
        return np.column_stack([item_codes(table[name], cells) for name in table])
    sets = table.iloc[:, 0].reset_index(drop=True)
    if sep is not None:
        cells = tuple(str(cell) for cell in cells)
        sets = sets.map(
            lambda text: [item.strip() for item in str(text).split(sep)], na_action="ignore"
        )
    items = sets.explode()  # an empty list becomes a missing item
    return _by_set(np.asarray(items.index), item_codes(items, cells), len(cells))


def _by_set(number: IntArray, item: IntArray, items: int) -> IntArray:
    """Return the items of each set, -1 after the last, given one entry per set and item.

    `number` is the set of each entry, and `items` is how many are declared.
    """
    place = pd.Series(number).groupby(number).cumcount().to_numpy()
    if place.max() >= items:
        raise ValueError(
            "offered= must give different items in each set, and at least one set has more entries "
            "than there are items. Check that task= and respondent= identify a task."
        )
    shown = np.full((number.max() + 1, max(2, place.max() + 1)), -1)
    shown[number, place] = item
    return shown


def _items(answers: pd.Series[Any], shown: IntArray, cells: Names, codes: object) -> IntArray:
    """Return the item of each answer, -1 if missing; with `codes` answers are positions."""
    if codes is None:
        _check_names(answers, cells)
        return item_codes(answers, cells)
    if isinstance(codes, Mapping) or (isinstance(codes, str) and codes != "position"):
        raise TypeError(
            "codes must be 'position' or a list of the names of the positions, such as ['A', 'B', "
            "'C']. A mapping is for the entries of rows with task=. For codes of items use "
            "items={code: item}."
        )
    key = coding.key_of(answers)
    most = shown.shape[1]
    by_number = isinstance(codes, str) and codes == "position"
    names = range(1, most + 1) if by_number else check_items(codes, "codes")
    place = key.among(names[:most])
    item = np.where(place < 0, -1, shown[np.arange(len(shown)), place])
    if (item < 0)[key.codes >= 0].any():
        raise ValueError(
            f"column {answers.name!r} must give positions in the offered set, as numbers from 1 "
            f"or as the names in codes=, and at least one answer is no position. Leave codes= out "
            f"if answers are items."
        )
    return item


def _check_names(answers: pd.Series[Any], cells: Names) -> None:
    """Refuse numbers as answers if no item is a number."""
    numeric = pd.api.types.is_numeric_dtype(answers) and answers.notna().any()
    if numeric and not any(isinstance(cell, Real) for cell in cells):
        raise ValueError(
            f"column {answers.name!r} must name items, and it contains numbers. Use "
            f"codes='position' for positions in the offered set, and items={{code: item}} for "
            f"codes. If numbers mark items, one row each, name the column of tasks with task=."
        )


def _plan(offered: object) -> Questionnaires:
    """Read the plan of a questionnaire, which is public."""
    if isinstance(offered, Mapping):
        tasks = [
            (version, number, items)
            for version, sets in offered.items()
            for number, items in enumerate(as_list(sets) or (), start=1)
        ]
        offered = pd.DataFrame(tasks, columns=["version", "task", "items"])
    view = frames.open_frame(offered, "offered")
    names = frames.column_names(view)
    sets = [name for name in names if name not in ("version", "task")]
    if len(sets) != len(names) - 2 or not sets:
        raise ValueError(
            "offered must have a column 'version', a column 'task' and one column for each item of "
            "a set."
        )
    table = frames.collect(view, names)
    frames.check_rows(len(table), "offered")
    version, task = (coding.key_of(table[name]) for name in ("version", "task"))
    check_owned(version, "version", "version")
    check_owned(task, "task", "task")
    if len(np.unique(version.codes * len(task.values) + task.codes)) < len(table):
        raise ValueError(
            "offered must have one row for each version and task, and at least one has several. "
            "Number the tasks of each version."
        )
    return Questionnaires(table[sets], version, task)


def planned_sets(offered: object, items: Names, answer: str) -> tuple[IntArray, IntArray]:
    """Return the tasks of a plan of questionnaires, without any answers.

    Parameters
    ----------
    offered : data frame or mapping
        The plan, see :func:`as_choices`.
    items : tuple
        All items, in the entries of the plan.
    answer : {"best", "worst", "best-worst", "order"}
        How each task will be answered.

    Returns
    -------
    version : ndarray of int, shape (tasks,)
        The version of each task, numbered from 0 in the order of the plan.
    shown : ndarray of int, shape (tasks, items of a set)
        The positions of the items in each set, -1 after the last.

    Raises
    ------
    ValueError, TypeError
        If `offered` is not a plan, or contains a set that cannot be answered in this way.
    """
    plan = _plan(offered)
    shown = _read_sets(plan.sets, items, None)
    size = shown.shape[1]
    answers = numbered_columns(PLACE, size) if answer == "order" else answer.split("-")
    check_sets(shown, ChoiceColumns(tuple(numbered_columns(OFFERED, size)), tuple(answers)))
    return plan.version.codes, shown


def _read_versions(
    table: pd.DataFrame,
    version: str,
    plan: Questionnaires,
    sets: IntArray,
    read: Callable[[pd.Series[Any], IntArray], IntArray],
    roles: dict[str, str],
) -> Tasks:
    """Read one row per respondent, with the version of the questionnaire.

    `sets` are the items of each task of the plan. `read` returns the items of answers, given the
    sets of their tasks.
    """
    assigned = coding.key_of(table[version]).among(plan.version.values.tolist())
    if (assigned < 0).any():
        raise ValueError(
            f"column {version!r} must name a version of the plan in every row. Compare its values "
            f"and their type with the plan."
        )
    every = np.argsort(plan.version.codes, kind="stable")  # the tasks of the plan by version
    count = np.bincount(plan.version.codes)
    size = count[assigned]
    row = np.repeat(np.arange(len(table)), size)
    within = np.arange(len(row)) - (np.cumsum(size) - size)[row]
    task = every[(np.cumsum(count) - count)[assigned][row] + within]
    shown = sets[task]
    answers = {role: np.full(len(row), -1) for role in roles}
    for number, name in enumerate(plan.task.values.tolist()):
        here = np.flatnonzero(plan.task.codes[task] == number)
        for role, column in roles.items():
            entries = table[column.replace(_TASK, str(name))]
            if entries.drop(row[here]).notna().any():
                raise ValueError(
                    f"column {entries.name!r} must be empty for respondents whose version does not "
                    f"have this task. Check the versions."
                )
            answers[role][here] = read(entries.take(row[here]), shown[here])
    return Tasks(row, shown, answers)


def _marks(roles: dict[str, str], codes: object) -> dict[str, tuple[str, Any]]:
    """Return the column of each answer, and the entry that marks its item."""
    given: Any = {} if codes is None else codes
    known = isinstance(given, Mapping) and given.keys() <= {BEST, WORST}
    ranks = not {BEST, WORST}.issuperset(roles)
    if not known or (given and ranks) or not all(isinstance(g, str | Real) for g in given.values()):
        raise ValueError(
            "codes must be a mapping {'best': entry, 'worst': entry} of the entries that mark the "
            "best and the worst item. Leave it out with places=, the column of ranks."
        )
    only = next(iter(roles.values()))
    named = roles if ranks else [name for name in (BEST, WORST) if name in {*roles, *given}]
    marks = {name: (roles.get(name, only), given.get(name, 1)) for name in named}
    if len(set(marks.values())) < len(marks):
        raise ValueError(
            "codes must give different entries for the best and the worst item if one column marks "
            "both, such as codes={'best': 1, 'worst': -1}."
        )
    return marks


def _read_rows(
    table: pd.DataFrame,
    columns: OpenedFrame,
    item: str,
    cells: Names,
    marks: dict[str, tuple[str, Any]],
) -> Tasks:
    """Read one row per task and item."""
    owners = list(columns.owners.values())
    groups = table.groupby(owners, sort=False, observed=True)
    check_owned(coding.key_of(table[item]), item, "item")
    code = item_codes(table[item], cells)
    number = np.asarray(groups.ngroup(), dtype=np.int64)
    shown = _by_set(number, code, len(cells))
    row = np.unique(number, return_index=True)[1]
    if not {BEST, WORST}.issuperset(marks):
        column = next(iter(marks.values()))[0]
        marks = {f"{PLACE} {rank}": (column, rank) for rank in range(1, shown.shape[1] + 1)}
    answers = {}
    for name, (column, mark) in marks.items():
        key = coding.key_of(table[column])
        marked = np.array([*(value == mark for value in key.values.tolist()), False])[key.codes]
        if name in (BEST, WORST, f"{PLACE} 1") and not marked.any():
            raise ValueError(
                f"column {column!r} must mark the item that is {name!r} in a task, and no row has "
                f"this mark. Declare the entries with codes=, such as codes={{'best': 'most'}}. "
                f"Ranks with places= are numbers from 1."
            )
        if np.bincount(number[marked]).max(initial=0) > 1:
            raise ValueError(
                f"column {column!r} must mark at most one item of a task as {name!r}, and at least "
                f"one task has several. Declare the entries with codes=."
            )
        answers[name] = np.full(len(row), -1)
        answers[name][number[marked]] = code[marked]
    return Tasks(row, shown, answers)


def _answered(tasks: Tasks, owner: pd.Series[Any] | None, unanswered: Unanswered) -> Tasks:
    """Check tasks and leave out those without all answers.

    `owner` is the respondent of each row of the frame. A respondent without any answered task keeps
    a task without items.
    """
    shown = tasks.shown
    chosen = np.column_stack(list(tasks.answers.values()))
    columns = ChoiceColumns(tuple(numbered_columns(OFFERED, shown.shape[1])), tuple(tasks.answers))
    check_sets(shown, columns)
    check_answers(shown, chosen, columns)
    silent = unanswered_tasks(shown, chosen, columns)
    if silent.any() and unanswered == "refuse":
        raise ValueError(
            "unanswered='refuse' requires all answers of each task, and at least one task lacks "
            "one. Use unanswered='public' if it was fixed beforehand which tasks stay unanswered. "
            "If respondents decided it, it is part of the answer (unanswered='private'), which is "
            "not supported yet."
        )
    rows = ~silent
    if owner is not None:
        person = pd.factorize(owner)[0][tasks.row]
        _, first = np.unique(person, return_index=True)
        rows[first[np.bincount(person, ~silent) == 0]] = True
    frames.check_rows(int(rows.sum()))
    return Tasks(
        tasks.row[rows],
        np.where(silent[:, None], -1, shown)[rows],
        {name: np.where(silent, -1, item)[rows] for name, item in tasks.answers.items()},
    )


def _choices_frame(table: pd.DataFrame, tasks: Tasks, labels: Names) -> pd.DataFrame:
    """Return the choices frame of tasks, with the columns of their rows."""
    result = table.take(tasks.row).reset_index(drop=True)
    result[OFFERED] = (tasks.shown >= 0).sum(axis=1)
    kind = pd.CategoricalDtype(list(labels))
    shows = zip(numbered_columns(OFFERED, tasks.shown.shape[1]), tasks.shown.T, strict=True)
    for name, item in (*shows, *tasks.answers.items()):
        result[name] = pd.Categorical.from_codes(item, dtype=kind)
    result.attrs = {frames.DECLARED: pd.Index(labels).tolist()}
    return result
