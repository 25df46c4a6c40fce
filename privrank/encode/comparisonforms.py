"""From the usual forms of comparison data to a comparisons frame: item1, item2, outcome.

A conversion releases nothing and protects nothing: frame in, frame out. The rows of a respondent
are made from that respondent's own rows alone, and every respondent keeps at least one. So frames
that differ in one respondent become comparisons frames that differ in the same one. What may become
public of a frame, which pairs were compared and which item was named first, is what the
questionnaire fixed, or a column says that it is not. Messages name arguments, columns and rules,
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
    "ties": "every row of rankings must hold each of the ranks 1 to {} at most once, and at least "
    "one has a tie: use ties=True if they are tied.",
    "gaps": "every row of rankings must hold the ranks 1 to {}, and at least one is incomplete: "
    "use missing='unknown' if the places of the missing items are unknown, missing='bottom' if "
    "they come after the others.",
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
    """Convert comparison or ranking data to a comparisons frame, which every model takes.

    Parameters
    ----------
    frame : data frame
        Data in one of seven forms; any frame narwhals supports, or an array for ``"matrix"``.
    form : str
        - ``"long"``: one row per comparison, with the two items and an answer in codes of its own.
        - ``"winner-loser"``: one row per comparison, with the item preferred and the other.
        - ``"counts"``: one row per pair, with how often each of its items was preferred.
        - ``"wide"``: one row per respondent and one column per pair, holding an answer.
        - ``"matrix"``: one row and one column per item; the cell in row i and column j holds how
          often i was preferred to j. A pandas index, or the one column of text, names the rows;
          without either they are in the order of the columns.
        - ``"rankings"`` or ``"ranks"``: one row per respondent, one column per item with its rank.
        - ``"orders"``: one row per respondent and one column per place, best first, holding the
          name of the item there.
    items : sequence of str or int, optional
        The items, in the order of the report. By default those that names of columns give
        (``"wide"``, ``"matrix"``, ``"rankings"``), or those of columns of polars Enums; else they
        must be given. Names of columns are public: give `items` for a cross table of answers, which
        has columns for those that occur.
    respondent : str, optional
        Column, or level of a pandas index, that says whose answers these are. Forms with one row
        per respondent number the rows 0, 1, ... without it; ``"matrix"`` has none.
    item1, item2 : str
        Forms ``"long"`` and ``"counts"``: columns with the names of the two items.
    outcome : str
        Form ``"long"``: column with the answers.
    winner, loser : str
        Form ``"winner-loser"``: columns with the item preferred and the other one.
    win1, win2 : str
        Form ``"counts"``: columns with how often item1 and item2 were preferred.
    counts : str, optional
        Forms ``"long"`` and ``"winner-loser"``: column with how many comparisons a row stands for.
        A column ``count`` that nothing uses is refused. Where a row is one respondent's, repeat
        rows that stand for several.
    pairs : mapping of column to (item, item), optional
        Form ``"wide"``: which column asks for which pair, the item that codes call first in front.
    sep : str, optional
        Form ``"wide"``, in the place of `pairs`: what stands between the two names in the name of
        a column, as ``sep="_vs_"`` for ``"tea_vs_milk"``. Columns without it are left alone; in all
        others it stands once.
    codes : mapping, optional
        Forms ``"long"`` and ``"wide"``: the answer, or list of answers, that means ``"first"``,
        ``"second"`` and, if the questionnaire allows it, ``"tie"``; by default 1, -1 and 0. Without
        ``"first"`` and ``"second"``, as in ``codes={"tie": "undecided"}`` and ``codes={}``, an
        answer is the name of the item preferred. All other answers are refused, missing ones are
        questions not answered.
    places : sequence of column names, optional
        Form ``"orders"``: the columns, best place first; by default all but the respondent's.
    ties : bool, str, or matrix
        Where ties are. For ranks and orders, True if items may share a place. For
        ``"winner-loser"`` the column that is True (or 1) where the two items tied. For ``"counts"``
        the column with how often they did; for ``"matrix"`` the symmetric matrix of these counts.
    missing : {"refuse", "bottom", "unknown"}
        What an item means that a ranking leaves out: the frame is refused; every item listed is
        preferred to it, and two such items are not compared; or it is not compared at all. Which
        pairs are compared is then part of the answer, and needs ``design="private"``.
    distinct_pairs : bool, default True
        Forms ``"wide"`` and ``"counts"``: whether each pair has one column, or one row (of each
        respondent). False takes what is said of it more than once, or in both orders, as
        comparisons of their own, such as home and guest games.

    Returns
    -------
    pandas.DataFrame
        One row per comparison with ``item1`` and ``item2`` (categoricals of the items),
        ``outcome`` (1: item1 preferred, 0: tie, -1: item2 preferred, missing: not answered),
        ``respondent`` where there are respondents, and ``count`` where a row stands for several
        comparisons; rows are never repeated. With `missing` other than ``"refuse"`` the outcome is
        called ``list_outcome``, and models take it as ``outcome="list_outcome"``: which pairs a
        list compares is part of the answer, so models ask for ``design="private"`` and for
        respondents. A column ``order_from`` says that items come in the order of `items`, because
        the form does not say which was named first; models then refuse an order effect. Models take
        the items from its ``attrs``, which pandas keeps where rows are
        selected; after a merge give them ``items=``. In the forms with one row per respondent
        questions not answered have no row. But who has nothing to compare keeps one with a missing
        outcome, so that the number of respondents stays what it was. The ``max_rows=`` of a model
        is the number of comparisons a respondent can have: m (m - 1) / 2 for rankings and
        orders of m items, k (k - 1) / 2 + k (m - k) for lists of the leading k with
        ``missing="bottom"``.

    Raises
    ------
    ValueError, TypeError
        For a frame that breaks a rule above.

    See Also
    --------
    privrank.as_rankings : The same for whole rankings.
    privrank.PrivateBTL : Fits worths to comparisons.

    Notes
    -----
    **Rankings as comparisons.** A complete ranking of m items becomes m (m - 1) / 2 comparisons,
    which are not independent of each other: name ``respondent="respondent"`` in the model, so that
    errors allow for it.

    Examples
    --------
    A survey as its tool exports it, a column per pair, with answers of a code of its own:

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

    Counts of wins are never expanded:

    >>> wins = pd.DataFrame([[0, 30], [12, 0]], index=["tea", "milk"], columns=["tea", "milk"])
    >>> pr.as_comparisons(wins, "matrix")
      item1 item2  outcome  count order_from
    0   tea  milk      1.0     30      items
    1   tea  milk     -1.0     12      items

    The leading two of three items; what is left out comes after them:

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
    form = "rankings" if form == "ranks" else form  # as as_rankings calls it
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
            f"ties= must be left out with form={form!r}: declare the answer that is a tie with "
            f"codes={{'first': ..., 'second': ..., 'tie': ...}}."
        )
    if form == "matrix":
        if respondent is not None:
            raise ValueError("form='matrix' has no respondents: leave respondent= out.")
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
    # what no questionnaire has fixed (check_fixed) is decided by arguments and names alone
    if missing != "refuse" or frames.has_lists(present):
        return read.rename(columns={"outcome": frames.LIST_OUTCOME})
    if frames.is_unordered(frame, present) or form in _UNORDERED or (form == "counts" and distinct):
        read[frames.ORDER_FROM] = pd.Categorical(["items"]).repeat(len(read))
        read.attrs[frames.ORDER_FROM] = "items"
    return read


def _ranked(
    columns: OpenedFrame, form: Form, places: object, ties: object, missing: Missing
) -> pd.DataFrame:
    """Return all pairs of every ranking, the items in the order of the list within each pair."""
    declared = check_flag("ties", ties)
    ranks, labels, index = (
        read_orders(columns, places) if form == "orders" else read_columns(columns)
    )
    check_ranks(
        ranks, _MESSAGES, ties=declared, gaps=missing != "refuse", bottom=missing == "bottom"
    )
    if missing == "bottom":
        ranks = np.nan_to_num(ranks, nan=np.inf)
    # the smaller rank is the better one, so that item1 won where the difference is positive
    first, second = np.triu_indices(len(labels), k=1)
    with np.errstate(invalid="ignore"):  # of two items at the bottom none is preferred: inf - inf
        outcome = np.sign(ranks[:, second] - ranks[:, first])
    return pairforms.answered(columns, outcome, first, second, labels, index)
