"""From the usual forms of ranking data to a rankings frame: one row per ranking, ranks 1..m.

A conversion releases nothing and protects nothing: frame in, frame out. Each ranking is made from
its own row (or rows) and random numbers of its own, and none is dropped. So frames that differ in
one ranking become rankings frames that, with the same random numbers, differ in one row: what a fit
guarantees for the result's rows it guarantees for the frame's rankings. Messages name arguments,
columns and rules, never a cell's value.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.distributions.simulate import blocks
from privrank.encode import counting
from privrank.encode.frames import (
    declared_items,
    item_codes,
    numbers,
    with_respondent_column,
)
from privrank.privacy.noise import draw_orders
from privrank.util.checks import check_choice, check_items, check_rng

__all__ = ["Form", "Missing", "Ties", "as_rankings"]

Form = Literal["ranks", "orders", "long"]
Ties = Literal["refuse", "random"]
Missing = Literal["refuse", "bottom", "random"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def as_rankings(
    frame: object,
    form: Form = "ranks",
    *,
    items: Sequence[Any] | None = None,
    respondent: str | None = None,
    ranking: str | None = None,
    item: str = "item",
    rank: str = "rank",
    places: Sequence[Any] | None = None,
    ties: Ties = "refuse",
    missing: Missing = "refuse",
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Convert ranking data to a rankings frame, and complete it if asked to.

    Parameters
    ----------
    frame : data frame
        Ranking data in one of three forms; any frame narwhals supports.
    form : {"ranks", "orders", "long"}
        - ``"ranks"``: one row per ranking and one column per item, holding the item's rank.
        - ``"orders"``: one row per ranking and one column per place, best first, holding the name
          of the item in that place.
        - ``"long"``: one row per ranking and item, holding the item's name and its rank.
    items : sequence of str or int, optional
        The items, in the order of the result's columns. By default, for ``"ranks"`` all columns but
        the respondent's, for the other forms the declared categories of the columns with names.
    respondent : str, optional
        Column, or level of a pandas index, that says who gave the ranking.
    ranking : str, optional
        Form ``"long"``: column, or level of a pandas index, that says to which ranking a row
        belongs; within the respondent, if both are named. By default each respondent has one.
    item, rank : str
        Form ``"long"``: columns with the item's name and its rank.
    places : sequence of column names, optional
        Form ``"orders"``: the columns, best place first; by default all but the respondent's, in
        the frame's order. There may be fewer places than items (lists of the leading k).
    ties : {"refuse", "random"}
        What to do with items that share a rank: refuse the frame, or put them in an order drawn
        uniformly at random. Then only the order of a row's ranks counts, so that all usual codings
        (1, 2, 2; 1, 3, 3; 1, 2.5, 2.5) come to the same.
    missing : {"refuse", "bottom", "random"}
        What to do with items that have no rank: refuse the frame; put them after the ranked ones,
        in an order drawn uniformly at random; or put them in uniformly random places among the
        ranked ones, whose order is kept (their ranks may leave gaps; only the order counts).
    rng : numpy.random.Generator, optional
        Source of the random orders in studies; by default, random bits of the operating system.

    Returns
    -------
    pandas.DataFrame
        One row per ranking and one int64 column per item, holding the ranks 1 (best) to m. The
        index holds the respondent if there is one (for ``"long"`` the columns that identify a
        ranking, in order of first appearance); otherwise it is that of a pandas frame, or 0, 1, ...
        A lazy frame (duckdb, dask, polars' LazyFrame) has no order of rows, nor has the result.

    Raises
    ------
    ValueError, TypeError
        One sentence, for a frame that breaks a rule above.

    Notes
    -----
    **When random completion is exact.** A row reports part of a ranking: some orders between items.
    Given this part, the completion is uniform over all rankings that agree with it; with
    ``missing="bottom"`` "the others come after these" is part of what is reported. (For
    ``"random"``, take one uniform ranking of all items and put the ranked items, in their reported
    order, into the places it gives to them as a set. With k items ranked, each agreeing ranking
    comes from k! uniform ones.) So under either of two conditions the completions of uniform
    rankings are uniform:

    1. What a row reports depends on the respondent's ranking through the reported part only: any
       two rankings that agree with the part would have led to it with the same probability. Given
       the part, a uniform ranking is then uniform over those that agree, which is the distribution
       the completion is drawn from. How many items are ranked may depend on which lead, not on the
       order among the others.
    2. No item differs from another: the distribution of the rows, ties and missing items included,
    stays the
       same when the items are relabelled. Then so does the distribution of the completions, and
       only the uniform distribution does that. This covers ties of respondents who have no
       preference.

    So a test of uniformity keeps its level, though not all its power. It does not when items differ
    in how often they are missing and the argument is the wrong one: an item that many do not know,
    and leave out for that reason, is no uniform draw under ``"bottom"``; one that is left out where
    it is disliked is none under ``"random"``. A row with nothing ranked becomes a uniformly random
    ranking, so that the number of rankings stays what it was. In the form ``"long"`` it needs a row
    with a missing rank; a ranking without any row is not there.

    **Elsewhere it is not exact.** Random orders pull every estimate (mean ranks, pair fractions)
    towards indifference, and ``"bottom"`` pulls items down that are missing for other reasons: a
    consensus takes rankings as they are, with ``ties=True`` and ``missing=``. A test of identity
    with a distribution that is not uniform loses its level, up to rejecting always: each row would
    have to be drawn from that distribution, given its reported part, and condition 1 to hold. A
    comparison of groups keeps its level if, given the rankings, ties and missing items come about
    alike in all groups; complete once, before any permutation.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import privrank as pr
    >>> orders = pd.DataFrame(
    ...     {"best": ["tea", "juice"], "second": ["juice", "tea"], "third": ["coffee", "coffee"]}
    ... )
    >>> pr.as_rankings(orders, "orders", items=["coffee", "tea", "juice"])
       coffee  tea  juice
    0       3    1      2
    1       3    2      1

    Lists of the leading two of four items; the others come after them in random order:

    >>> pr.as_rankings(
    ...     orders,
    ...     "orders",
    ...     items=["coffee", "tea", "juice", "water"],
    ...     places=["best", "second"],
    ...     missing="bottom",
    ...     rng=np.random.default_rng(1),
    ... )
       coffee  tea  juice  water
    0       4    1      2      3
    1       3    2      1      4

    Shared ranks, here coded 1, 1, 3, are separated at random:

    >>> ranks = pd.DataFrame({"coffee": [3, 1], "tea": [1, 2], "juice": [1, 3]})
    >>> pr.as_rankings(ranks, ties="random", rng=np.random.default_rng(0))
       coffee  tea  juice
    0       3    2      1
    1       1    2      3
    """
    form = check_choice("form", form, Form)
    ties = check_choice("ties", ties, Ties)
    missing = check_choice("missing", missing, Missing)
    rng = check_rng(rng)
    for name, value, home in (("ranking", ranking, "long"), ("places", places, "orders")):
        if value is not None and form != home:
            raise ValueError(f"{name}= belongs to form={home!r}: leave it out, or name that form.")
    if form == "ranks":
        ranks, labels, index = _read_ranks(frame, items, respondent, ties)
    elif form == "orders":
        ranks, labels, index = _read_orders(frame, items, respondent, places)
    else:
        ranks, labels, index = _read_long(frame, items, respondent, ranking, item, rank, ties)
    _check_agreement(ranks, ties, missing)
    draws = ties == "random" or missing != "refuse"
    complete = np.empty(ranks.shape, dtype=np.int64)
    m = len(labels)
    for rows in blocks(len(ranks), m):
        part = ranks[rows]
        # every row takes its draws, needed or not, so that none depends on what the others report
        order = draw_orders(len(part), m, rng) if draws else np.zeros(part.shape, dtype=np.int64)
        complete[rows] = _complete(part, order, anywhere=missing == "random")
    return pd.DataFrame(complete, index=index, columns=list(labels))


def _complete(ranks: FloatArray, order: IntArray, *, anywhere: bool) -> IntArray:
    """Return complete rankings that agree with partial ones.

    Given ranks on the half-integers, NaN where missing, and a uniform permutation of 0..m-1 per
    row, breaks ties by the permutation. Unless `anywhere`, missing items follow the ranked ones in
    its order. With `anywhere` they take the places it gives them, and the ranked ones share those
    it gives to them as a set; the order it puts them in is independent of that set.
    """
    m = ranks.shape[1]
    ranked = ~np.isnan(ranks)
    last = 2 * m + 1  # twice a rank is a whole number, at most 2m
    key = np.where(ranked, 2 * ranks, last).astype(np.int64) * m + order
    best_first = np.argsort(key, axis=1)
    places = np.broadcast_to(np.arange(1, m + 1), ranks.shape)
    if anywhere:
        places = np.sort(np.where(ranked, order, m), axis=1) + 1
    complete = np.empty(ranks.shape, dtype=np.int64)
    np.put_along_axis(complete, best_first, places, axis=1)
    return np.where(ranked, complete, order + 1) if anywhere else complete


def _read_ranks(
    frame: object, items: object, respondent: str | None, ties: Ties
) -> tuple[FloatArray, tuple[Any, ...], pd.Index]:
    """Return the ranks, NaN where missing, of wide data with a column per item."""
    view, others = _open_wide(frame, respondent)
    labels = check_items(others if items is None else items)
    _check_present(labels, [*others, respondent], "items")
    _check_numeric(view, labels, "items=")
    table, index = _collect_wide(view, labels, respondent)
    ranks = numbers(table[list(labels)])
    for k, name in enumerate(labels):
        _check_ranks(ranks[:, k], name, len(labels), ties)
    return ranks, labels, index


def _read_orders(
    frame: object, items: object, respondent: str | None, places: object
) -> tuple[FloatArray, tuple[Any, ...], pd.Index]:
    """Return the ranks, NaN where missing, of wide data with a column per place."""
    view, others = _open_wide(frame, respondent)
    columns = others if places is None else _check_places(places, others, respondent)
    labels = declared_items(frame, columns, items)
    if not 1 <= len(columns) <= len(labels):
        raise ValueError(
            f"form='orders' needs between one place column and one for each of the {len(labels)} "
            f"items, got {len(columns)}: list the place columns, best first, with places=[...]."
        )
    table, index = _collect_wide(view, columns, respondent)
    ranks = np.full((len(table), len(labels)), np.nan)
    for place, name in enumerate(columns, start=1):
        codes = item_codes(table[name], labels, name)
        row = np.flatnonzero(codes >= 0)
        if not np.isnan(ranks[row, codes[row]]).all():
            raise ValueError(
                f"place columns must name each item at most once in a ranking: at least one "
                f"ranking names an item in column {name!r} that it has named before."
            )
        ranks[row, codes[row]] = place
    return ranks, labels, index


def _read_long(
    frame: object,
    items: object,
    respondent: str | None,
    ranking: str | None,
    item: str,
    rank: str,
    ties: Ties,
) -> tuple[FloatArray, tuple[Any, ...], pd.Index]:
    """Return the ranks, NaN where missing, of data with a row per ranking and item."""
    if respondent is None and ranking is None:
        raise ValueError(
            "form='long' must be told which rows make one ranking: name the column that "
            "identifies it with ranking=, or with respondent= if each respondent has one."
        )
    roles = {"respondent": respondent, "ranking": ranking, "item": item, "rank": rank}
    named = {role: name for role, name in roles.items() if name is not None or role in _REQUIRED}
    for role, name in named.items():
        _check_name(name, role)
    for name in (respondent, ranking):
        frame = with_respondent_column(frame, name)
    view = counting.open_frame(frame, "frame")
    present = counting.column_names(view)
    for role, name in named.items():
        _check_present([name], present, role)
    if len(set(named.values())) < len(named):
        raise ValueError("respondent=, ranking=, item= and rank= must name different columns.")
    _check_numeric(view, [rank], "rank=")
    labels = declared_items(frame, [item], items)
    table = counting.collect(view, list(named.values()))
    _check_rows(len(table))

    identity = [name for name in (respondent, ranking) if name is not None]
    code = np.zeros(len(table), dtype=np.int64)
    for name in identity:
        _check_filled(table[name], name)
        own, values = counting.factorize(table[name], name)
        code, _ = pd.factorize(code * len(values) + own)
    codes = item_codes(table[item], labels, item)
    if (codes < 0).any():
        raise ValueError(
            f"column {item!r} must name an item in every row: leave out rows without an item, or "
            f"fill in its name."
        )
    values = numbers(table[rank])
    _check_ranks(values, rank, len(labels), ties)
    cell = code * len(labels) + codes
    size = int(code.max()) + 1
    if np.bincount(cell, minlength=size * len(labels)).max() > 1:
        raise ValueError(
            f"column {item!r} must name each item at most once in a ranking, and at least one "
            f"ranking repeats an item: check that {' and '.join(map(repr, identity))} together "
            f"identify a ranking."
        )
    ranks = np.full((size, len(labels)), np.nan)
    ranks[code, codes] = values
    # codes number the rankings by first appearance
    first = np.unique(code, return_index=True)[1]
    index = pd.MultiIndex.from_frame(table[identity].iloc[first])
    return ranks, labels, index if len(identity) > 1 else index.get_level_values(0)


_REQUIRED = ("item", "rank")


def _open_wide(frame: object, respondent: str | None) -> tuple[counting.Frame, list[Any]]:
    """Return a view of a wide frame and its columns other than the respondent's."""
    view = counting.open_frame(frame, "frame")
    columns = counting.column_names(view)
    if respondent is not None:
        _check_name(respondent, "respondent")
        if not (isinstance(frame, pd.DataFrame) and respondent in frame.index.names):
            _check_present([respondent], columns, "respondent")
    return view, [name for name in columns if name != respondent]


def _collect_wide(
    view: counting.Frame, columns: Sequence[Any], respondent: str | None
) -> tuple[pd.DataFrame, pd.Index]:
    """Return the columns, and an index with the respondent if there is one."""
    if respondent in columns:
        raise ValueError(
            f"respondent={respondent!r} must name a column of its own: it is listed among the "
            f"columns of the ranking too."
        )
    own = respondent is not None and respondent in counting.column_names(view)
    table = counting.collect(view, [*columns, respondent] if own else columns)
    _check_rows(len(table))
    index = table.index
    if own:
        # takes the respondent's hash, without which no later step could tell respondents apart
        counting.factorize(table[respondent], respondent)
        index = pd.Index(table[respondent], name=respondent)
    if respondent is not None:
        _check_filled(index.get_level_values(respondent).to_series(), respondent)
    return table, index


def _check_name(name: object, role: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{role} must be a column name, got {type(name).__name__}.")


def _check_present(names: Sequence[Any], present: Sequence[Any], role: str) -> None:
    for name in names:
        if name not in present:
            raise ValueError(f"frame has no column {name!r}: name the right one with {role}=.")


def _check_places(places: object, present: Sequence[Any], respondent: str | None) -> list[Any]:
    if isinstance(places, str | bytes) or not isinstance(places, Sequence | pd.Index | np.ndarray):
        raise TypeError(
            f"places must be a sequence of column names, best place first, "
            f"got {type(places).__name__}."
        )
    names = list(places)
    if not all(isinstance(name, Hashable) for name in names):
        raise TypeError("places must be column names: at least one cannot be a name.")
    _check_present(names, [*present, respondent], "places")
    if len(set(names)) < len(names):
        raise ValueError("places must be distinct: the same column is listed twice.")
    return names


def _check_rows(rows: int) -> None:
    if not rows:
        raise ValueError("frame must have at least one row.")


def _check_filled(values: pd.Series[Any], name: str) -> None:
    if values.isna().any():
        raise ValueError(
            f"column {name!r} must say in every row whose it is: fill in the missing entries."
        )


def _check_numeric(view: counting.Frame, columns: Sequence[Any], remedy: str) -> None:
    numeric = counting.numeric_columns(view, columns)
    for name in columns:
        if name not in numeric:
            raise TypeError(
                f"column {name!r} must hold numbers, the ranks: name the columns meant with "
                f"{remedy}, or convert numbers held as objects with pandas.to_numeric."
            )


def _check_ranks(ranks: FloatArray, name: Any, m: int, ties: Ties) -> None:
    given = ranks[~np.isnan(ranks)]
    if not ((given >= 1) & (given <= m)).all():
        raise ValueError(
            f"column {name!r} must hold ranks from 1 (best) to {m}, the number of items, or be "
            f"missing: recode other numbers as ranks, and check the items in items=."
        )
    if ties == "refuse" and (given % 1 != 0).any():
        raise ValueError(
            f"column {name!r} must hold whole numbers under ties='refuse': use ties='random' if "
            f"the others are ranks that items share."
        )
    if (2 * given % 1 != 0).any():
        raise ValueError(
            f"column {name!r} must hold ranks, whole or, where items share one, a half more: "
            f"recode other numbers as ranks."
        )


def _check_agreement(ranks: FloatArray, ties: Ties, missing: Missing) -> None:
    """Refuse what the caller has not declared: ties, missing items, and what they stand for."""
    ordered = np.sort(ranks, axis=1)  # NaN comes last, and equals nothing
    if ties == "refuse" and (ordered[:, 1:] == ordered[:, :-1]).any():
        raise ValueError(
            "ties='refuse' means that no two items share a rank, and in at least one ranking some "
            "do: use ties='random' to put them in random order."
        )
    absent = np.isnan(ranks)
    if missing == "refuse" and absent.any():
        raise ValueError(
            "missing='refuse' means that every ranking is complete, and at least one is not: use "
            "missing='bottom' if the items without a rank come after the others, missing='random' "
            "if their places are unknown."
        )
    if missing == "bottom":
        number = ranks.shape[1] - absent.sum(axis=1)
        # in every usual coding of ties, the last of k ranked items has a rank of at most k
        if (np.where(absent, 0.0, ranks).max(axis=1) > number).any():
            raise ValueError(
                "missing='bottom' means that items without a rank come after the others, and at "
                "least one ranking leaves a rank above them empty: use missing='random' if the "
                "places of the missing items are unknown, or number the ranked ones from 1."
            )
