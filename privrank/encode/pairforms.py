"""Read each form of comparison data as one row per comparison.

A row contains two items, the outcome, the respondent and a count. Wide frames are melted and
matrices are stacked to this form. Messages name arguments, columns and rules, never a cell's value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from privrank.encode import coding, frames
from privrank.encode.encoded import check_apart, in_order, refuse_unused
from privrank.encode.roles import Names, OpenedFrame
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.checks import check_items, check_name

Pair = tuple[int, int]

CONVENTION = {"first": 1, "second": -1, "tie": 0}


def _compared(
    labels: Names,
    first: IntArray,
    second: IntArray,
    outcome: Any,
    person: pd.Series[Any] | pd.Index | None,
    counts: IntArray | None = None,
) -> pd.DataFrame:
    """Return a comparisons frame from items, outcome, respondent and count."""
    kind = pd.CategoricalDtype(list(labels))
    columns: dict[str, Any] = {} if person is None else {"respondent": person.array}
    columns |= {
        "item1": pd.Categorical.from_codes(first, dtype=kind),
        "item2": pd.Categorical.from_codes(second, dtype=kind),
        "outcome": outcome.astype(np.float64),
    }
    if counts is not None:
        columns[frames.COUNT] = counts
    frame = pd.DataFrame(columns)
    frame.attrs[frames.DECLARED] = pd.Index(labels).tolist()
    return frame


def answered(
    columns: OpenedFrame,
    outcome: FloatArray,
    first: IntArray,
    second: IntArray,
    labels: Names,
    index: pd.Index,
) -> pd.DataFrame:
    """Return the answers of a table with rows per respondent, columns per pair.

    Unanswered questions have no row, except that a respondent without answers keeps the first.
    """
    person = index if columns.owners else pd.RangeIndex(len(outcome))
    given = ~np.isnan(outcome)
    # a respondent without answers keeps the first question to preserve the number of respondents
    codes, _ = pd.factorize(person)
    some = np.bincount(codes, given.any(axis=1)) > 0
    given[np.unique(codes, return_index=True)[1][~some], 0] = True
    row, pair = np.nonzero(given)
    return _compared(labels, first[pair], second[pair], outcome[row, pair], person.take(row))


def read_wide(
    columns: OpenedFrame, pairs: object, sep: object, codes: object, distinct: bool
) -> pd.DataFrame:
    """Read one row per respondent and one column per pair."""
    questions, labels = pairs_of_columns(columns, pairs, sep)
    table, index = columns.collect_wide("pairs", list(questions))
    if distinct and len({frozenset(pair) for pair in questions.values()}) < len(questions):
        raise ValueError(
            "form='wide' must have one column per pair, and at least one pair has two, in the same "
            "or in both orders. Leave one out of pairs=. If they are separate questions, use "
            "distinct_pairs=False."
        )
    first, second = np.array(list(questions.values())).T
    meaning = check_codes(codes)
    outcome = [
        _outcomes(table[name], meaning, np.full(len(table), a), np.full(len(table), b), labels)
        for name, a, b in zip(questions, first, second, strict=True)
    ]
    return answered(columns, np.column_stack(outcome), first, second, labels, index)


def read_long_pairs(
    columns: OpenedFrame, named: dict[str, str], outcome: str, counts: str | None, codes: object
) -> pd.DataFrame:
    """Read one row per comparison, with an answer in declared codes."""
    meaning = check_codes(codes)
    table, labels, (first, second) = _read_pairs(
        columns, named, {"outcome": outcome, "counts": counts}
    )
    answer = _outcomes(table[outcome], meaning, first, second, labels)
    return _compared(labels, first, second, answer, columns.person(table), _whole(table, counts))


def read_decided(
    columns: OpenedFrame, named: dict[str, str], ties: object, counts: str | None
) -> pd.DataFrame:
    """Read one row per comparison, with the preferred item and the other item.

    Within a row, items are in the order of `labels`. Under a public design it is public which item
    a row names first, so naming the winner first would publish the answer.
    """
    tied = _column_of_ties(ties)
    table, labels, codes = _read_pairs(columns, named, {"ties": tied, "counts": counts})
    low, high, outcome = in_order(*codes)
    if tied is not None:
        key = coding.key_of(table[tied])
        # True and 1 are the same key, and so are False and 0
        flags = [{0: 1.0, 1: 0.0}.get(value, np.nan) for value in key.values.tolist()]
        decided = np.array([*flags, np.nan])[key.codes]
        if np.isnan(decided).any():
            raise ValueError(
                f"column {tied!r} must state for every row whether it is a tie, as True or False, "
                f"or 1 or 0. Recode it. Use form='long' if rows may have no answer."
            )
        outcome = np.where(decided == 0.0, 0.0, outcome)
    return _compared(labels, low, high, outcome, columns.person(table), _whole(table, counts))


def read_counts(
    columns: OpenedFrame, named: dict[str, str], won: dict[str, str], ties: object, distinct: bool
) -> pd.DataFrame:
    """Read one row per pair with the numbers of wins of each item and of ties."""
    others = {**won, "ties": _column_of_ties(ties)}
    table, labels, (first, second) = _read_pairs(columns, named, others)
    person = columns.person(table)
    sign: Any = np.ones(len(first))
    if distinct:  # a pair has one row, and its first item may be the winner
        first, second, sign = in_order(first, second)
        who = 0 if person is None else pd.factorize(person)[0]
        if pd.DataFrame({"first": first, "second": second, "who": who}).duplicated().any():
            raise ValueError(
                "form='counts' must have one row per pair, and at least one pair has two, in the "
                "same or in both orders. Add up the repeated rows. If they are separate "
                "comparisons, such as home and away games, use distinct_pairs=False."
            )
    numbers = [coding.whole_counts(table[n], n) for n in others.values() if n is not None]
    kinds = [sign, -sign, np.zeros(len(first))][: len(numbers)]
    row = np.repeat(np.arange(len(first)), len(kinds))
    outcome = np.column_stack(kinds).ravel()
    number = np.column_stack(numbers).ravel()
    person = None if person is None else person.take(row)
    return _compared(labels, first[row], second[row], outcome, person, number)


def read_matrix(frame: object, items: object, ties: object) -> pd.DataFrame:
    """Read a square matrix: how often a row's item beat a column's item."""
    wins, labels = _square(frame, items, "frame")
    low, high = np.triu_indices(len(labels), k=1)
    counts = {1.0: wins[low, high], -1.0: wins[high, low]}
    if ties is not False:
        shared, _ = _square(ties, labels, "ties")
        if (shared != shared.T).any():
            raise ValueError(
                "ties must be a symmetric matrix, with the number of ties of two items in both of "
                "their cells. Use (t + t.T) for a triangular matrix t."
            )
        counts[0.0] = shared[low, high]
    every = np.repeat(np.arange(len(low)), len(counts))
    outcome = np.tile(list(counts), len(low))
    number = np.column_stack(list(counts.values())).ravel()
    return _compared(labels, low[every], high[every], outcome, None, number)


def _whole(table: pd.DataFrame, column: str | None) -> IntArray | None:
    return None if column is None else coding.whole_counts(table[column], column)


def _column_of_ties(ties: object) -> Any:
    if ties is not False:
        check_name(ties, "ties")
    return ties or None


def _read_pairs(
    columns: OpenedFrame, named: dict[str, str], others: dict[str, str | None]
) -> tuple[pd.DataFrame, Names, list[IntArray]]:
    """Return rows that name two items; refuse unused columns of counts and ties."""
    table, labels, codes = columns.collect_rows(named, others)
    refuse_unused(columns.names, list(table.columns))
    if "ties" in others and others["ties"] is None and "ties" in columns.names:
        raise ValueError(
            "frame has a column 'ties' that is not used. If it marks ties, use ties='ties'; if "
            "not, drop the column."
        )
    check_apart(codes[0], codes[1], named.values())
    return table, labels, codes


def _square(matrix: object, items: object, name: str) -> tuple[IntArray, Names]:
    """Return a square matrix of counts and its items, in the order of `items`.

    Rows are named by a column of text or by a pandas index; without either, rows are in the order
    of the columns.
    """
    if isinstance(matrix, np.ndarray):
        if items is None:
            raise ValueError(
                "items must be declared for an array. Pass items=[...] in the order of its rows."
            )
        matrix = pd.DataFrame(matrix if matrix.ndim == 2 else [])
        if len(matrix.columns) == len(check_items(items)):
            matrix.columns = pd.Index(check_items(items))
    view = frames.open_frame(matrix, name)
    names = frames.column_names(view)
    table = frames.collect(view, names)
    numeric = frames.numeric_columns(view, names) | frames.numeric_columns(
        frames.open_frame(table, name), names
    )
    text = [column for column in names if column not in numeric]
    # rows are named by a column of text or by the index; without either, like the columns
    if len(text) == 1 and len(names) == len(table) + 1:
        table = table.set_index(text[0])
    elif len(names) == len(table) and table.index.equals(pd.RangeIndex(len(table))):
        table = table.set_axis(names)
    labels = check_items(tuple(table.columns) if items is None else items)
    wanted = [str(label) for label in labels]
    # use objects, because a text may contain half a surrogate pair
    table.index, table.columns = (
        pd.Index(list(map(str, names)), dtype=object) for names in (table.index, table.columns)
    )
    if not sorted(table.index) == sorted(table.columns) == sorted(wanted):
        raise ValueError(
            f"{name} must be a square matrix with one row and one column for each of the "
            f"{len(labels)} items. List the items with items=[...]. Give the rows the same names "
            f"as the columns, in the index of a pandas frame or in a column of text."
        )
    cells = table.loc[wanted, wanted]
    counts = np.column_stack([coding.real_numbers(cells[label]) for label in wanted])
    if np.nan_to_num(np.diagonal(counts)).any():
        raise ValueError(
            f"{name} must have zeros on the diagonal, because items are not compared with "
            f"themselves. Set the diagonal to 0."
        )
    np.fill_diagonal(counts, 0.0)
    if not coding.are_counts(counts):
        raise ValueError(
            f"{name} must hold whole numbers of at least 0, and 0 for items never compared. If "
            f"ties were counted as half wins, pass the wins alone, and the numbers of ties as a "
            f"second matrix with ties=."
        )
    return counts.astype(np.int64), labels


def check_codes(codes: object) -> dict[Any, float]:
    """Return the outcome of each answer in `codes`; by default 1, -1 and 0."""
    given: Any = CONVENTION if codes is None else codes
    known = isinstance(given, Mapping) and given.keys() <= CONVENTION.keys()
    if not known or ("first" in given) != ("second" in given):
        raise ValueError(
            "codes must be a mapping {'first': answer, 'second': answer, 'tie': answer}. Leave out "
            "'tie' if there are no ties. Leave out 'first' and 'second' if an answer is the name "
            "of the preferred item."
        )
    answers = [
        (answer, float(CONVENTION[word]))
        for word, value in given.items()
        for answer in (value if isinstance(value, list | tuple | set) else [value])
    ]
    # x != x is true only for NaN
    fit = all(isinstance(answer, str | bool | np.bool_ | Real) for answer, _ in answers)
    if not fit or len(dict(answers)) < len(answers) or any(x != x for x, _ in answers):
        raise ValueError(
            "codes must be distinct texts or numbers. Leave out missing values, which always mean "
            "that a question was not answered."
        )
    return dict(answers)


def _outcomes(
    values: pd.Series[Any],
    meaning: Mapping[Any, float],
    first: IntArray,
    second: IntArray,
    labels: Names,
) -> FloatArray:
    """Return the outcomes of a column's answers, NaN for missing answers.

    If the codes leave out ``"first"`` and ``"second"``, an answer may be the name of an item.
    """
    # each distinct answer is looked up once; a missing one, code -1, reads the NaN at the end
    key = coding.key_of(values)
    outcomes = [meaning.get(answer, np.inf) for answer in key.values.tolist()]
    outcome = np.array([*outcomes, np.nan])[key.codes]
    by_name = 1.0 not in meaning.values()  # codes say both or neither
    if by_name:
        item = key.among(labels)
        outcome = np.where(item == first, 1.0, np.where(item == second, -1.0, outcome))
    if np.isinf(outcome).any():
        if by_name:
            raise ValueError(
                f"column {values.name!r} must hold only names of the pair's items, answers that "
                f"codes= declares, or missing values. Declare ties with codes={{'tie': ...}}. "
                f"Recode other answers, for example with frame.replace('^I prefer ', '', "
                f"regex=True)."
            )
        raise ValueError(
            f"column {values.name!r} must hold only answers that codes= declares or missing "
            f"values. Declare all answers with codes={{'first': ..., 'second': ..., 'tie': ...}}, "
            f"or recode the others with frame.replace(...). Without codes= the answers are 1, -1 "
            f"and 0."
        )
    return outcome


def pairs_of_columns(
    columns: OpenedFrame, pairs: Any, sep: object
) -> tuple[dict[Any, Pair], Names]:
    """Return the pair of each column, as positions among items, and the items."""
    if (pairs is None) == (sep is None):
        raise ValueError(
            "form='wide' needs the pair of each column from exactly one argument. Use "
            "pairs={'column': (item, item), ...}, or sep= if a column name consists of two items "
            "with a separator between them."
        )
    if sep is not None:
        if not isinstance(sep, str) or not sep:
            raise ValueError("sep must be the text between the two item names in a column name.")
        pairs = {name: tuple(name.split(sep)) for name in columns.others if sep in str(name)}
    named = list(pairs.values()) if isinstance(pairs, Mapping) else []
    two = all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in named)
    hashed = two and all(isinstance(item, Hashable) for pair in named for item in pair)
    if not named or not hashed or any(first == second for first, second in named):
        raise ValueError(
            "pairs must be a mapping {'column': (item, item), ...} with two different items for "
            "each column. Use sep= instead if a separator occurs once in the name of each column "
            "that asks about a pair, and in no other."
            if sep is None
            else "sep must occur once in the name of each column that asks about a pair, between "
            "two different items, and in no other. Write it as in the column names, or pass pairs=."
        )
    met = tuple(dict.fromkeys(item for pair in named for item in pair))
    labels = check_items(met if columns.items is None else columns.items)
    # column names are texts, even if items are numbers
    place = {str(label): k for k, label in enumerate(labels)}
    if not set(map(str, met)) <= place.keys():
        raise ValueError(
            "pairs, or the names around sep= in column names, must be declared items. List all "
            "items in items=[...], and check their names."
        )
    return {name: (place[str(a)], place[str(b)]) for name, (a, b) in pairs.items()}, labels
