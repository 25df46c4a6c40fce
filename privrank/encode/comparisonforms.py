"""Convert the usual forms of comparison data to a comparisons frame.

A comparisons frame has the columns item1, item2 and outcome. A conversion takes a frame and returns
a frame; it releases and protects nothing. The rows of a respondent are made from that respondent's
own rows alone, and every respondent keeps at least one. So frames that differ in one respondent
become comparisons frames that differ in the same respondent. Two facts of a frame may become
public: which pairs were compared, and which item was named first. Either the questionnaire fixed
them, or a column of the result marks that it did not.

Each form is read as one row per comparison, with two items, the outcome, the respondent and a
count. Wide frames are melted and matrices are stacked to this form. Messages name arguments,
columns and rules, never a cell's value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd

from privrank.encode import coding, frames
from privrank.encode.choices import answer_of, choice_columns, is_choices, read_tasks
from privrank.encode.encoded import check_apart, in_order, refuse_unused
from privrank.encode.rankingforms import (
    Names,
    OpenedFrame,
    check_ranks,
    only_for,
    read_columns,
    read_orders,
)
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.checks import check_choice, check_flag, check_items, check_name

Form = Literal["long", "winner-loser", "counts", "wide", "matrix", "rankings", "ranks", "orders"]
Missing = Literal["refuse", "bottom", "unknown"]

_RANKED = ("rankings", "orders")
_MESSAGES = {
    "ties": "rankings must have each of the ranks 1 to {} at most once in every row, and at least "
    "one row has a tie. Use ties=True if items may share a rank.",
    "gaps": "rankings must have the ranks 1 to {} in every row, and at least one row is "
    "incomplete. Use missing='bottom' if missing items rank after the others, or "
    "missing='unknown' if their ranks are unknown. If only the ranked items were offered, use "
    "privrank.as_choices.",
    "unknown": "unknown",
}
Pair = tuple[int, int]

CONVENTION = {"first": 1, "second": -1, "tie": 0}
_UNORDERED = ("winner-loser", "matrix", *_RANKED)


def as_comparisons(
    frame: object,
    form: Form = "long",
    *,
    items: Sequence[Any] | None = None,
    respondent: str | None = None,
    item1: str = "item1",
    item2: str = "item2",
    outcome: str = "outcome",
    winner: str = "winner",
    loser: str = "loser",
    win1: str = "win1",
    win2: str = "win2",
    counts: str | None = None,
    pairs: Mapping[Any, tuple[Any, Any]] | None = None,
    sep: str | None = None,
    codes: Mapping[str, Any] | None = None,
    places: Sequence[Any] | None = None,
    ties: object = False,
    missing: Missing = "refuse",
    distinct_pairs: bool = True,
) -> pd.DataFrame:
    """Convert comparison or ranking data to a comparisons frame.

    Parameters
    ----------
    frame : data frame
        Data in any of seven forms: any frame narwhals supports, or an array for ``"matrix"``. Or
        choices from :func:`privrank.as_choices`, if these are orders of offered sets or from sets
        of two; models may then take a public design.
    form : str
        - ``"long"``: one row per comparison, with the two items and an answer in any codes.
        - ``"winner-loser"``: one row per comparison, with the preferred item and the other item.
        - ``"counts"``: one row per pair, with how often each of its items was preferred.
        - ``"wide"``: one row per respondent and one column per pair; a cell contains an answer.
        - ``"matrix"``: one row and one column per item; the cell in row i and column j contains how
          often i was preferred to j. The rows are named by a pandas index or by the only text
          column; without either, they are in the order of the columns.
        - ``"rankings"`` or ``"ranks"``: one row per respondent, one column per item with its rank.
        - ``"orders"``: one row per respondent and one column per rank, best first; a cell contains
          the name of the item with that rank.
    items : sequence of str or int, optional
        The items, in the order of the report. By default they are taken from the column names
        (``"wide"``, ``"matrix"``, ``"rankings"``) or from polars Enum columns; in all other cases
        they must be given. Column names are treated as public. A cross table of answers has columns
        only for items that occur, so `items` should be given for it.
    respondent : str, optional
        Column, or level of a pandas index, that identifies the respondent. Without it, forms with
        one row per respondent number the rows 0, 1, ...; ``"matrix"`` has no respondents.
    item1, item2 : str
        Forms ``"long"`` and ``"counts"``: columns with the names of the two items.
    outcome : str
        Form ``"long"``: column with the answers.
    winner, loser : str
        Form ``"winner-loser"``: columns with the preferred item and the other item.
    win1, win2 : str
        Form ``"counts"``: columns with how often item1 and item2 were preferred.
    counts : str, optional
        Forms ``"long"`` and ``"winner-loser"``: column with the number of comparisons that a row
        represents. An unused column named ``count`` is refused. In forms with one row per
        respondent, repeat a row that represents several respondents.
    pairs : mapping of column to (item, item), optional
        Form ``"wide"``: the pair of items of each column; the item that `codes` call first comes
        first.
    sep : str, optional
        Form ``"wide"``, instead of `pairs`: the text between the two item names in a column name,
        such as ``sep="_vs_"`` for ``"tea_vs_milk"``. It must occur exactly once in each column that
        asks about a pair. Columns without it are ignored.
    codes : mapping, optional
        Forms ``"long"`` and ``"wide"``: the answer, or list of answers, that means ``"first"``,
        ``"second"`` and, if the questionnaire allows ties, ``"tie"``; by default 1, -1 and 0. If
        ``"first"`` and ``"second"`` are left out, for example ``codes={"tie": "undecided"}`` or
        ``codes={}``, an answer is the name of the preferred item. Missing values are unanswered
        questions; all other answers are refused.
    places : sequence of column names, optional
        Form ``"orders"``: the columns, best rank first; by default all but the respondent's.
    ties : bool, str, or matrix
        How ties are marked. For ranks and orders: True if items may share a rank. For
        ``"winner-loser"``: the column that is True (or 1) if the two items tied. For ``"counts"``:
        the column with the number of ties. For ``"matrix"``: the symmetric matrix of the numbers
        of ties.
    missing : {"refuse", "bottom", "unknown"}
        How an item left out of a ranking is treated. ``"refuse"``: the frame is refused.
        ``"bottom"``: every listed item is preferred to it, and two such items are not compared.
        ``"unknown"``: it is not compared at all. With the last two, which pairs are compared is
        part of the answer and needs ``design="private"``.
    distinct_pairs : bool, default True
        Forms ``"wide"`` and ``"counts"``: whether each pair has a single column, or a single row
        (per respondent). With False, repeated columns or rows of a pair, in the same or in both
        orders, are separate comparisons, such as home and away games.

    Returns
    -------
    pandas.DataFrame
        One row per comparison with ``item1`` and ``item2`` (categoricals of the items),
        ``outcome`` (1: item1 preferred, 0: tie, -1: item2 preferred, missing: not answered),
        ``respondent`` if there are respondents, and ``count`` if a row represents several
        comparisons; rows are never repeated.

        With `missing` other than ``"refuse"`` the outcome is named ``list_outcome``, and models
        take it as ``outcome="list_outcome"``. Which pairs a list compares is part of the answer,
        so models then require ``design="private"`` and respondents. A column ``order_from`` marks
        that items are in the order of `items`, because the form does not record which item was
        named first; models then refuse `contest=`. Models take the items from the ``attrs`` of
        the frame. pandas keeps these when rows are selected; after a merge, pass ``items=`` to the
        model.

        In forms with one row per respondent, unanswered questions have no row. A respondent who
        compares nothing keeps one row with a missing outcome, which preserves the number of
        respondents. The ``max_rows=`` of a model is the number of comparisons a respondent can
        have: m (m - 1) / 2 for rankings and orders of m items, k (k - 1) / 2 + k (m - k) for top-k
        lists with ``missing="bottom"``.

    Raises
    ------
    ValueError, TypeError
        If the frame breaks any rule above.

    See Also
    --------
    privrank.as_rankings : Convert ranking data to a rankings frame.
    privrank.PrivateBTL : Bradley-Terry model for paired comparisons.

    Notes
    -----
    **Rankings as comparisons.** A complete ranking of m items becomes m (m - 1) / 2 comparisons,
    which are correlated. Pass ``respondent="respondent"`` to the model, which then computes
    standard errors that account for the correlation.

    Examples
    --------
    A survey export with one column per pair and its own answer codes:

    >>> import pandas as pd
    >>> import privrank as pr
    >>> export = pd.DataFrame({"tea:milk": [1, 2, None], "tea:juice": [2, 3, None]})
    >>> pr.as_comparisons(export, "wide", sep=":", codes={"first": 1, "second": 2, "tie": 3})
       respondent item1  item2  outcome
    0           0   tea   milk      1.0
    1           0   tea  juice     -1.0
    2           1   tea   milk     -1.0
    3           1   tea  juice      0.0
    4           2   tea   milk      NaN

    Counts of wins are not expanded:

    >>> wins = pd.DataFrame([[0, 30], [12, 0]], index=["tea", "milk"], columns=["tea", "milk"])
    >>> pr.as_comparisons(wins, "matrix")
      item1 item2  outcome  count order_from
    0   tea  milk      1.0     30      items
    1   tea  milk     -1.0     12      items

    Top-2 lists of three items; the item left out ranks after the listed items:

    >>> lists = pd.DataFrame({"best": ["tea", "juice"], "next": ["milk", "tea"]})
    >>> drinks = ["tea", "milk", "juice"]
    >>> pr.as_comparisons(lists, "orders", items=drinks, missing="bottom")
       respondent item1  item2  list_outcome
    0           0   tea   milk           1.0
    1           0   tea  juice           1.0
    2           0  milk  juice           1.0
    3           1   tea   milk           1.0
    4           1   tea  juice          -1.0
    5           1  milk  juice          -1.0
    """
    form = check_choice("form", form, Form)
    form = "rankings" if form == "ranks" else form  # the name in as_rankings
    missing = check_choice("missing", missing, Missing)
    distinct = check_flag("distinct_pairs", distinct_pairs)
    if counts is not None:
        check_name(counts, "counts")
    only_for(
        form,
        {
            "counts": (counts, ("long", "winner-loser")),
            "pairs": (pairs, ("wide",)),
            "sep": (sep, ("wide",)),
            "codes": (codes, ("long", "wide")),
            "places": (places, ("orders",)),
            "missing": (None if missing == "refuse" else missing, _RANKED),
            "distinct_pairs": (None if distinct else distinct, ("wide", "counts")),
        },
    )
    if ties is not False and form in ("long", "wide"):
        raise ValueError(
            f"ties= must be left out with form={form!r}. Declare the answer that means a tie with "
            f"codes={{'first': ..., 'second': ..., 'tie': ...}}."
        )
    if form == "matrix":
        read = read_matrix(frame, items, ties, respondent)
        present: Sequence[str] = ()
    elif form == "long" and is_choices(frame):
        read = read_choices(OpenedFrame(frame, items, respondent=respondent))
        present = (frames.ORDER_FROM,)
    else:
        columns = OpenedFrame(frame, items, respondent=respondent)
        present = columns.names
        named = {"item1": item1, "item2": item2}
        ranked = partial(_ranked, columns, form, places, ties, missing)
        readers = {
            "rankings": ranked,
            "orders": ranked,
            "wide": partial(read_wide, columns, pairs, sep, codes, distinct),
            "counts": partial(
                read_counts, columns, named, {"win1": win1, "win2": win2}, ties, distinct
            ),
            "winner-loser": partial(
                read_decided, columns, {"winner": winner, "loser": loser}, ties, counts
            ),
            "long": partial(read_long_pairs, columns, named, outcome, counts, codes),
        }
        read = readers[form]()
    # whether the questionnaire fixed the pairs and their order (check_fixed) is decided from
    # arguments and column names alone
    if missing != "refuse" or frames.has_lists(present):
        return read.rename(columns={"outcome": frames.LIST_OUTCOME})
    if form in _UNORDERED or (form == "counts" and distinct) or frames.is_unordered(frame, present):
        # mark that items are in list order, because it is not known which was named first
        read[frames.ORDER_FROM] = pd.Categorical(["items"]).repeat(len(read))
        read.attrs[frames.ORDER_FROM] = "items"
    return read


def _ranked(
    columns: OpenedFrame, form: Form, places: object, ties: object, missing: Missing
) -> pd.DataFrame:
    """Return all pairs of every ranking; within a pair, items are in list order."""
    declared = check_flag("ties", ties)
    ranks, labels, index = (
        read_orders(columns, places) if form == "orders" else read_columns(columns)
    )
    check_ranks(
        ranks, _MESSAGES, ties=declared, gaps=missing != "refuse", bottom=missing == "bottom"
    )
    if missing == "bottom":
        ranks = np.nan_to_num(ranks, nan=np.inf)
    # the smaller rank is better, so item1 won if the difference is positive
    first, second = np.triu_indices(len(labels), k=1)
    with np.errstate(invalid="ignore"):  # two items at the bottom are not compared: inf - inf
        outcome = np.sign(ranks[:, second] - ranks[:, first])
    return answered(columns, outcome, first, second, labels, index)


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
    frame = pd.DataFrame(
        {
            **({} if person is None else {"respondent": person.array}),
            "item1": pd.Categorical.from_codes(first, dtype=kind),
            "item2": pd.Categorical.from_codes(second, dtype=kind),
            "outcome": outcome.astype(np.float64),
            **({} if counts is None else {frames.COUNT: counts}),
        }
    )
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


def read_choices(columns: OpenedFrame) -> pd.DataFrame:
    """Read choices from offered sets: all pairs of each order, or the pair of each set of two.

    Which pairs a task compares is then public, like its set. Within a pair, items are in list
    order. A respondent without tasks keeps a pair without an answer.
    """
    number, sets, answers = choice_columns(columns.names)
    answer = answer_of(answers)
    if answer != "order" and len(sets) > 2:
        raise ValueError(
            "choices must be orders of all items of their sets, or come from sets of two, to be "
            "compared in pairs, because other answers decide which pairs they compare. Pass the "
            "choices to privrank.PrivateBTL instead."
        )
    labels = frames.declared_items(columns.frame, sets, columns.items, public=True)
    table = frames.collect(columns.view, columns.names)
    table, shown, order = read_tasks(table, number, sets, answers, labels, by_row=False)
    if answer != "order":  # the other item of a set of two
        other = shown.sum(axis=1, keepdims=True) - order
        order = np.hstack((order, other) if answer == "best" else (other, order))
    first, second = np.triu_indices(order.shape[1], 1)
    given = order[:, second] >= 0
    given[shown[:, 0] < 0, 0] = True
    task, pair = np.nonzero(given)
    silent = shown[task, 0] < 0
    low, high, sign = in_order(
        np.where(silent, 0, order[task, first[pair]]),
        np.where(silent, 1, order[task, second[pair]]),
    )
    outcome = np.where(silent, np.nan, sign)
    person = columns.person(table)
    return _compared(labels, low, high, outcome, None if person is None else person.iloc[task])


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
    return _compared(
        labels,
        first,
        second,
        _outcomes(table[outcome], meaning, first, second, labels),
        columns.person(table),
        _whole(table, counts),
    )


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
    return _counted(labels, first, second, kinds, numbers, person)


def read_matrix(frame: object, items: object, ties: object, respondent: object) -> pd.DataFrame:
    """Read a square matrix: how often a row's item beat a column's item."""
    if respondent is not None:
        raise ValueError(
            "respondent= cannot be used with form='matrix', which has no respondents. Leave "
            "respondent= out."
        )
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
    outcomes = [np.full(len(low), outcome) for outcome in counts]
    return _counted(labels, low, high, outcomes, list(counts.values()), None)


def _counted(
    labels: Names,
    first: IntArray,
    second: IntArray,
    outcomes: Sequence[FloatArray],
    numbers: Sequence[IntArray],
    person: pd.Series[Any] | None,
) -> pd.DataFrame:
    """Return one row for each pair and outcome, with the number of such comparisons."""
    row = np.repeat(np.arange(len(first)), len(numbers))
    return _compared(
        labels,
        first[row],
        second[row],
        np.column_stack(outcomes).ravel(),
        None if person is None else person.take(row),
        np.column_stack(numbers).ravel(),
    )


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
    counts = np.column_stack([coding.real_numbers(table.loc[wanted, label]) for label in wanted])
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
    two = all(
        isinstance(pair, tuple | list)
        and len(pair) == 2
        and all(isinstance(item, Hashable) for item in pair)
        for pair in named
    )
    if not named or not two or any(first == second for first, second in named):
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
