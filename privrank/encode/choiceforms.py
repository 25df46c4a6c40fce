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

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from privrank.encode import coding, frames
from privrank.encode.choices import (
    BEST,
    OFFERED,
    OPTIONAL,
    PLACE,
    WORST,
    check_tasks,
    is_reserved,
    numbered_columns,
    refuse,
)
from privrank.encode.encoded import check_owned, refuse_unused
from privrank.encode.rankingforms import Names, OpenedFrame, item_codes
from privrank.util.arrays import BoolArray, IntArray
from privrank.util.checks import (
    as_list,
    check_choice,
    check_items,
    check_name,
    first_absent,
    is_number,
)

Unanswered = Literal["refuse", "public", "private"]

_TASK = "{task}"
"""Stands for the name of a task in the names of answer columns."""

_PLAN = ["version", "task"]
"""The columns of a plan that are not items."""

_MESSAGES = {
    "private": "unanswered='private' needs the best or the worst item of each task, or both. Name "
    "the columns with best= and worst=, or use unanswered='public' if it was fixed beforehand "
    "which tasks stay unanswered.",
    "unanswered": "unanswered='refuse' requires all answers of each task, and at least one task "
    "lacks one. Use unanswered='private' if respondents decided which tasks to answer. Use "
    "unanswered='public' if it was fixed beforehand.",
    "answers": "the columns of answers must be named with best=, worst= or both, or with "
    "places=[...] for orders, best first.",
    "form": "offered must be a list of columns, a column, or 'own' with places=. A plan of "
    "questionnaires needs version=, the column with the version of each row.",
    "by row": "task= must be left out with version=, and with places= unless offered= lists "
    "columns. If rows are tasks of a version, merge the plan's items to them and list these "
    "columns.",
    "repeated": "a respondent must have one row for each task, and at least one has two. Leave out "
    "repeated rows, or correct the column that task= names.",
    "sep": "sep must be the text between the items of a set, where one column contains whole sets. "
    "Leave it out in all other forms.",
    "own": "offered='own' needs places=[...], the columns with the items in order. For best= and "
    "worst= name the columns of the offered items.",
    "absent": "frame has no column {!r}. Name the right column. {{task}} in the name of a column "
    "stands for the tasks of a plan with version=, and for numbers without.",
    "no task": "column {!r} must belong to a task of the plan, as its name says. Add the task to "
    "offered=, or leave out the column.",
    "both": "column {!r} must not contain both answers and public facts. Sets, tasks, versions and "
    "respondents are public and must be fixed before any answer.",
    "twice": "each item of a set and each answer must have a column of its own, for every task of "
    "a version (best='best_{{task}}'). Name a column once, including a single column in which "
    "codes= marks the best and the worst item.",
    "respondent": "frame has a column 'respondent' that is not used. Use respondent='respondent', "
    "or rename it if each row is from a different respondent.",
    "long set": "offered= must give different items in each set, and at least one set has more "
    "entries than there are items. Check that task= and respondent= identify a task.",
    "codes": "codes must be 'position', or be left out if answers are items. A mapping is for the "
    "entries of rows with task=. For codes of items use items={{code: item}}.",
    "position": "column {!r} must give positions in the offered set, as numbers from 1, and at "
    "least one answer is no position. Recode letters as numbers, or leave codes= out if answers "
    "are items.",
    "numbers": "column {!r} must name items, and it contains other numbers. Use codes='position' "
    "for positions in the offered set, and items={{code: item}} for codes. If numbers mark items, "
    "one row each, name the column of tasks with task=.",
    "plan columns": "offered must have a column 'version', a column 'task' and one column for each "
    "item of a set.",
    "plan rows": "offered must have one row for each version and task, without missing entries in "
    "both columns. Number the tasks of each version.",
    "version": "column {!r} must name a version of the plan in every row. Compare its values and "
    "their type with the plan.",
    "marks": "codes must be a mapping {{'best': entry, 'worst': entry}} of the entries that mark "
    "the best and the worst item.",
    "one mark": "codes must give different entries for the best and the worst item if one column "
    "marks both, such as codes={{'best': 1, 'worst': -1}}.",
    "no mark": "column {!r} must mark the item that is {!r} in a task, and no row has this mark. "
    "Declare the entries with codes=, such as codes={{'best': 'most'}}.",
    "other marks": "column {!r} must have one entry, such as 0, for all items that are not {!r}, "
    "and it has several. Correct the entries, or declare the marks with codes=.",
    "several marks": "column {!r} must mark at most one item of a task as {!r}, and at least one "
    "task has several. Declare the entries with codes=.",
}
"""Messages of `as_choices`, with placeholders for the column and the answer."""


def as_choices(
    frame: object,
    *,
    offered: object,
    best: str | None = None,
    worst: str | None = None,
    places: Sequence[str] | None = None,
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
          smaller sets the last columns are missing. With ``{task}`` in their names, such as
          ``["task{task}_item1", "task{task}_item2"]``, there is one row per respondent, with
          columns for every task.
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
        Columns with the best and the worst item. In forms with one row per respondent there is a
        column for each task: ``best="best_{task}"``.
    places : sequence of str, optional
        Columns with the items in order, best first, instead of `best` and `worst`. Each item of the
        set occurs once. Not with `task`.
    items : sequence of str or int, or mapping, optional
        The items, in the order of the report, or a mapping of the codes in the frame (and plan) to
        items. By default they are the categories of categorical columns of `offered`.
    respondent : str, optional
        Column, or level of a pandas index, that identifies the respondent. In forms with one row
        per respondent rows are numbered 0, 1, ... if it is left out. In all other forms tasks then
        have no respondents.
    task : str, optional
        Column that identifies the task of a row, within its respondent. With one row per task it
        serves as a check that no task occurs twice.
    version : str, optional
        Column with the respondent's version of the questionnaire. Cells of tasks that this
        version does not have are ignored.
    codes : "position" or mapping, optional
        By default answers are items. ``"position"``: answers are positions in the set, from 1. With
        `task`: the entries that mark the best and the worst item, such as
        ``{"best": 1, "worst": -1}``; a single column may contain both. The default is 1 (or True)
        for each. All other items must have the same entry, or none.
    sep : str, optional
        The text between the items of a set, if `offered` is a column of texts.
    unanswered : {"refuse", "public", "private"}
        How a task that lacks any of its answers is treated. ``"refuse"``: the frame is refused.
        ``"public"``: it was fixed beforehand which tasks stay unanswered, and such tasks are left
        out. ``"private"``: respondents decided it, so it is part of their answers. The task stays
        in the frame without answers. Not for `places`, and only for
        :class:`privrank.PrivateBTL` without covariates; tests refuse such tasks.

    Returns
    -------
    pandas.DataFrame
        One row per task, with all columns of the frame that are not named above, the respondent,
        the task and the version. With `task` they are from the first row of the task. Columns with
        one of the following names are left out. ``offered`` is the number of items of the set, and
        ``offered 1``, ``offered 2``, ... are its items (categoricals of the items, missing after
        the last). The answers are ``best`` and ``worst``, or ``place 1``, ``place 2``, ... With
        ``unanswered="private"`` the column ``offered`` is named ``offered, may be unanswered``.

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
    privrank.UniformityTest : Test whether all answers to a set are equally likely.

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
    check_choice("unanswered", unanswered, Unanswered)
    roles = _answer_roles(best, worst, places)
    sets = _set_columns(offered, roles, task, version, sep)
    if version is None and any(_TASK in name for name in sets):
        frame = _stacked(frame, [*sets, *roles.values()], respondent)
        respondent = respondent or "respondent"
    own = isinstance(offered, str) and offered == "own" and places is not None
    columns = OpenedFrame(frame, items, respondent=respondent, task=task)
    plan = None if version is None else _read_plan(offered)
    answers = _answer_columns(columns, [] if own else sets, roles, plan)
    sets = list(roles.values()) if own else sets
    shows: Any = columns.frame if plan is None else plan.drop(columns=_PLAN)
    labels, cells = _declared(items, shows, sets if plan is None else list(shows), public=not own)
    table = columns.collect({"frame": columns.others})[columns.names].reset_index(drop=True)
    if version is not None and respondent is None:
        respondent = "respondent"
        table.insert(0, respondent, np.arange(len(table)))
    if task is not None and isinstance(offered, str):
        table, shown, chosen = _read_rows(table, columns, sets[0], cells, roles, codes)
    else:
        repeated = task is not None and table.duplicated([*columns.owners.values()]).any()
        refuse(_MESSAGES, {"repeated": repeated})
        shown = _read_sets(table[sets] if plan is None else shows, cells, sep)
        if plan is not None:
            table, shown = _by_task(table, sets[0], plan, shown, roles, answers)
        chosen = pd.DataFrame(
            {role: _read_answers(table[name], shown, cells, codes) for role, name in roles.items()}
        )
    rows = _kept_rows(shown, chosen, None if respondent is None else table[respondent], unanswered)
    named = set().union(*answers.values(), roles.values(), sets if version is None else ())
    others = [name for name in table if name not in named and not is_reserved(name)]
    number = OPTIONAL if unanswered == "private" else OFFERED
    return _choices_frame(table.loc[rows, others], number, shown[rows], chosen[rows], labels)


def _stacked(frame: object, columns: Sequence[str], respondent: str | None) -> pd.DataFrame:
    """Return one row per respondent and task of a frame with columns for every task.

    `columns` are the names of the columns of sets and answers, in which ``{task}`` stands for the
    task. They are the names in the result as well.
    """
    view = frames.open_frame(frames.with_respondent_column(frame, respondent), "frame")
    names = frames.column_names(view)
    pattern = re.escape(columns[0]).replace(re.escape(_TASK), r"(\d+)")
    named = (re.fullmatch(pattern, str(name)) for name in names)
    tasks = [task[1] for task in named if task]
    by_task = [{name.replace(_TASK, task): name for name in columns} for task in tasks]
    used = {name for renamed in by_task for name in renamed}
    absent = columns[0] if not tasks else first_absent(used, names)
    refuse(
        _MESSAGES,
        {
            "absent": absent is not None,
            "twice": not all(_TASK in name for name in columns),
            "respondent": respondent is None and "respondent" in names,
        },
        absent,
    )
    table = frames.collect(view, names).reset_index(drop=True)
    if respondent is None:
        table.insert(0, "respondent", np.arange(len(table)))
    others = [name for name in table if name not in used]
    parts = [table[[*others, *renamed]].rename(columns=renamed) for renamed in by_task]
    return pd.concat(parts).sort_index(kind="stable", ignore_index=True)


def _answer_roles(best: object, worst: object, places: object) -> dict[str, Any]:
    """Return the columns of answers, by the names that they have in choices frames."""
    named = {role: name for role, name in ((BEST, best), (WORST, worst)) if name is not None}
    listed = as_list(places) or []
    refuse(_MESSAGES, {"answers": places is not None if named else not listed})
    return named or dict(zip(numbered_columns(PLACE, len(listed)), listed, strict=True))


def _set_columns(
    offered: object, roles: Mapping[str, Any], task: object, version: object, sep: object
) -> list[Any]:
    """Return the columns that contain the sets, or the version of the questionnaire."""
    listed = [offered] if isinstance(offered, str) else as_list(offered) or []
    sets = listed if version is None else [version]
    refuse(
        _MESSAGES,
        {
            "form": not sets,
            "by row": task is not None
            and (version is not None or (isinstance(offered, str) and f"{PLACE} 1" in roles)),
            "sep": sep is not None
            and (not isinstance(sep, str) or not sep or task is not None or len(sets) > 1),
        },
    )
    for name in sets:
        check_name(name, "offered" if version is None else "version")
    for role, name in roles.items():
        check_name(name, role)
    return sets


def _answer_columns(
    opened: OpenedFrame, sets: list[Any], roles: Mapping[str, str], plan: pd.DataFrame | None
) -> dict[str, list[str]]:
    """Return the columns of each answer, one for every task of a plan.

    Refuses columns that do not exist or are named twice, and answers in public columns. `sets` are
    the columns of sets, without those that also contain the answers.
    """
    tasks = [_TASK] if plan is None else coding.key_of(plan["task"]).values.tolist()
    columns = {
        role: [name.replace(_TASK, str(task)) for task in tasks] for role, name in roles.items()
    }
    public = [*sets, *opened.owners.values()]
    answers = [name for names in columns.values() for name in names]
    used = [*public, *answers]
    absent = first_absent(used, opened.names)
    both = next(filter(public.__contains__, answers), None)
    numbered = "|".join(
        re.escape(name).replace(re.escape(_TASK), r"\d+") for name in roles.values()
    )
    beyond = [name for name in opened.names if re.fullmatch(numbered, name) and name not in used]
    refuse(
        _MESSAGES,
        {
            "own": absent == "own",
            "absent": absent is not None,
            "no task": absent is None and bool(beyond),
            "both": both is not None,
            "twice": len(set(used)) < len(used),
            "respondent": plan is not None and not opened.owners and "respondent" in opened.names,
        },
        next(iter(beyond), both) if absent is None else absent,
    )
    refuse_unused(opened.names, used)
    return columns


def _declared(
    items: object, shows: object, columns: Sequence[Any], *, public: bool
) -> tuple[Names, Names]:
    """Return the items, and the entry of each item in the cells of the frame.

    `shows` is the frame of the sets, and `columns` are its columns that contain items. Their
    categories are used if these are `public`, and do not contain answers.
    """
    if isinstance(items, Mapping):
        return check_items(list(items.values())), check_items(list(items), "the codes in items")
    labels = frames.declared_items(shows, columns, items, public=public)
    return labels, labels


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
    refuse(_MESSAGES, {"long set": place.max() >= items})
    shown = np.full((number.max() + 1, max(2, place.max() + 1)), -1)
    shown[number, place] = item
    return shown


def _read_answers(
    answers: pd.Series[Any], shown: IntArray, cells: Names, codes: object
) -> IntArray:
    """Return the item of each answer, -1 if missing; with `codes` answers are positions."""
    key = coding.key_of(answers)
    if codes is None:
        numbers = {value for value in key.values.tolist() if is_number(value)}
        refuse(_MESSAGES, {"numbers": not numbers.issubset(cells)}, answers.name)
        return item_codes(answers, cells)
    place = key.among(range(1, shown.shape[1] + 1))
    item = np.where(place < 0, -1, shown[np.arange(len(shown)), place])
    refuse(
        _MESSAGES,
        {
            "codes": not isinstance(codes, str) or codes != "position",
            "position": (item < 0)[key.codes >= 0].any(),
        },
        answers.name,
    )
    return item


def _read_plan(offered: object) -> pd.DataFrame:
    """Return the plan of a questionnaire, which is public: one row per version and task."""
    if isinstance(offered, Mapping):
        offered = pd.DataFrame(
            [
                (version, number, items)
                for version, sets in offered.items()
                for number, items in enumerate(as_list(sets) or (), start=1)
            ],
            columns=[*_PLAN, "items"],
        )
    view = frames.open_frame(offered, "offered")
    plan = frames.collect(view, frames.column_names(view))
    refuse(_MESSAGES, {"plan columns": not set(_PLAN) < set(plan.columns)})
    frames.check_rows(len(plan), "offered")
    keys = pd.DataFrame({name: coding.key_of(plan[name]).codes for name in _PLAN})
    refuse(_MESSAGES, {"plan rows": keys.duplicated().any() or (keys < 0).any(axis=None)})
    return plan


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
    plan = _read_plan(offered)
    shown = _read_sets(plan.drop(columns=_PLAN), items, None)
    answers = numbered_columns(PLACE, shown.shape[1]) if answer == "order" else answer.split("-")
    check_tasks(shown, np.full((len(shown), len(answers)), -1), answers)
    return coding.key_of(plan["version"]).codes, shown


def _by_task(
    table: pd.DataFrame,
    version: str,
    plan: pd.DataFrame,
    planned: IntArray,
    roles: Mapping[str, str],
    columns: Mapping[str, list[str]],
) -> tuple[pd.DataFrame, IntArray]:
    """Return one row per task, and the items of its set, given one row per respondent.

    `planned` contains the items of the sets of the plan. `columns` are the columns of each answer,
    one for every task; in the result the answer is in the column that stands for them.
    """
    versions = coding.key_of(plan["version"])
    assigned = coding.key_of(table[version]).among(versions.values.tolist())
    refuse(_MESSAGES, {"version": (assigned < 0).any()}, version)
    people = pd.DataFrame({"version": assigned, "row": np.arange(len(assigned))})
    tasks = people.merge(pd.DataFrame({"version": versions.codes, "place": np.arange(len(plan))}))
    row, place = tasks[["row", "place"]].to_numpy().T
    number = coding.key_of(plan["task"]).codes[place]
    answers = {
        roles[role]: table[names].to_numpy(dtype=object)[row, number]
        for role, names in columns.items()
    }
    return table.take(row).reset_index(drop=True).assign(**answers), planned[place]


def _read_rows(
    table: pd.DataFrame,
    opened: OpenedFrame,
    item: str,
    cells: Names,
    roles: Mapping[str, str],
    codes: object,
) -> tuple[pd.DataFrame, IntArray, pd.DataFrame]:
    """Return the first row of each task, and its items of sets and of answers.

    Each row of the frame is an item of a task, and `codes` are the entries that mark the answers.
    """
    given: Any = {} if codes is None else codes
    known = (
        isinstance(given, Mapping)
        and given.keys() <= {BEST, WORST}
        and all(np.isscalar(mark) for mark in given.values())
    )
    refuse(_MESSAGES, {"marks": not known})
    marks = {
        name: (roles.get(name, next(iter(roles.values()))), given.get(name, 1))
        for name in (BEST, WORST)
        if name in {*roles, *given}
    }
    refuse(_MESSAGES, {"one mark": len(set(marks.values())) < len(marks)})
    check_owned(coding.key_of(table[item]), item, "item")
    code = item_codes(table[item], cells)
    tasks = table.groupby(list(opened.owners.values()), sort=False, observed=True)
    number = np.asarray(tasks.ngroup(), dtype=np.int64)
    shown = _by_set(number, code, len(cells))
    chosen = pd.DataFrame(-1, index=range(len(shown)), columns=list(marks))
    for name, (column, mark) in marks.items():
        key = coding.key_of(table[column])
        marked = np.array([*(value == mark for value in key.values.tolist()), False])[key.codes]
        others = set(key.values.tolist()).difference(
            other for own, other in marks.values() if own == column
        )
        refuse(
            _MESSAGES,
            {
                "no mark": not marked.any(),
                "other marks": len(others) > 1,
                "several marks": np.bincount(number[marked]).max(initial=0) > 1,
            },
            column,
            name,
        )
        chosen.loc[number[marked], name] = code[marked]
    return tasks.head(1).reset_index(drop=True), shown, chosen


def _kept_rows(
    shown: IntArray, chosen: pd.DataFrame, owner: pd.Series[Any] | None, unanswered: Unanswered
) -> BoolArray:
    """Return which tasks to keep: those with all answers, and one of each silent respondent.

    Removes the answers of all other tasks from `chosen`. If silence is public, such tasks are not
    kept, and their items are removed from `shown`. `owner` is the respondent of each task.
    """
    silent = check_tasks(shown, chosen.to_numpy(), [str(name) for name in chosen])
    refuse(
        _MESSAGES,
        {
            "private": unanswered == "private" and not {BEST, WORST}.issuperset(chosen),
            "unanswered": unanswered == "refuse" and silent.any(),
        },
    )
    chosen[silent] = -1
    if unanswered == "private":
        silent = np.asarray((shown < 0).all(axis=1))
    shown[silent] = -1
    if owner is None:
        return ~silent
    # the first task of each respondent, where answered tasks come first
    first = ~owner.iloc[np.argsort(silent, kind="stable")].duplicated()
    return ~silent | first.sort_index().to_numpy()


def _choices_frame(
    table: pd.DataFrame, number: str, shown: IntArray, chosen: pd.DataFrame, labels: Names
) -> pd.DataFrame:
    """Return the choices frame of tasks, with the columns of `table`.

    `number` is the name of the column with the number of items.
    """
    result = table.reset_index(drop=True)
    result[number] = (shown >= 0).sum(axis=1)
    kind = pd.CategoricalDtype(list(labels))
    names = [*numbered_columns(OFFERED, shown.shape[1]), *chosen]
    for name, item in zip(names, np.column_stack((shown, chosen)).T, strict=True):
        result[name] = pd.Categorical.from_codes(item, dtype=kind)
    result.attrs = {frames.DECLARED: pd.Index(labels).tolist()}
    return result
