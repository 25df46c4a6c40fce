"""Convert the usual forms of comparison data to a comparisons frame.

A comparisons frame has the columns item1, item2 and outcome. A conversion takes a frame and returns
a frame; it releases and protects nothing. The rows of a respondent are made from that respondent's
own rows alone, and every respondent keeps at least one. So frames that differ in one respondent
become comparisons frames that differ in the same respondent. Two facts of a frame may become
public: which pairs were compared, and which item was named first. Either the questionnaire fixed
them, or a column of the result marks that it did not. Messages name arguments, columns and rules,
never a cell's value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from privrank.encode import frames, pairforms
from privrank.encode.rankingforms import check_ranks, read_columns, read_orders
from privrank.encode.roles import OpenedFrame, only_for
from privrank.util.checks import check_choice, check_flag, check_name

Form = Literal["long", "winner-loser", "counts", "wide", "matrix", "rankings", "ranks", "orders"]
Missing = Literal["refuse", "bottom", "unknown"]

_RANKED = ("rankings", "orders")
_MESSAGES = {
    "ties": "rankings must have each of the ranks 1 to {} at most once in every row, and at least "
    "one row has a tie. Use ties=True if items may share a rank.",
    "gaps": "rankings must have the ranks 1 to {} in every row, and at least one row is "
    "incomplete. Use missing='bottom' if missing items rank after the others, or "
    "missing='unknown' if their ranks are unknown.",
    "unknown": "unknown",
}
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
        Data in any of seven forms: any frame narwhals supports, or an array for ``"matrix"``.
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
        named first; models then refuse an order effect. Models take the items from the ``attrs`` of
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
        if respondent is not None:
            raise ValueError(
                "respondent= cannot be used with form='matrix', which has no respondents. Leave "
                "respondent= out."
            )
        read = pairforms.read_matrix(frame, items, ties)
        present: Sequence[str] = ()
    else:
        columns = OpenedFrame(frame, items, respondent=respondent)
        present = columns.names
        if form in _RANKED:
            read = _ranked(columns, form, places, ties, missing)
        elif form == "wide":
            read = pairforms.read_wide(columns, pairs, sep, codes, distinct)
        elif form == "counts":
            named = {"item1": item1, "item2": item2}
            won = {"win1": win1, "win2": win2}
            read = pairforms.read_counts(columns, named, won, ties, distinct)
        elif form == "winner-loser":
            named = {"winner": winner, "loser": loser}
            read = pairforms.read_decided(columns, named, ties, counts)
        else:
            named = {"item1": item1, "item2": item2}
            read = pairforms.read_long_pairs(columns, named, outcome, counts, codes)
    # whether the questionnaire fixed the pairs and their order (check_fixed) is decided from
    # arguments and column names alone
    if missing != "refuse" or frames.has_lists(present):
        return read.rename(columns={"outcome": frames.LIST_OUTCOME})
    if frames.is_unordered(frame, present) or form in _UNORDERED or (form == "counts" and distinct):
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
    return pairforms.answered(columns, outcome, first, second, labels, index)
