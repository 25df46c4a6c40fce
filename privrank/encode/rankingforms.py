"""From the usual forms of ranking data to a rankings frame: one row per ranking, ranks 1..m.

A conversion releases nothing and protects nothing: frame in, frame out. Each ranking is made from
its own row (or rows) and random numbers of its own, and none is dropped. So frames that differ in
one ranking become rankings frames that, with the same random numbers, differ in one row: what a fit
guarantees for the result's rows it guarantees for the frame's rankings. Messages name arguments,
columns and rules, never a cell's value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from privrank.encode import coding, frames
from privrank.encode.roles import Names, OpenedFrame, check_ranks_are_numbers, item_codes, only_for
from privrank.privacy.draws import draw_orders
from privrank.util.arrays import AnyArray, FloatArray, IntArray, batches
from privrank.util.checks import as_list, check_choice, check_items, check_rng

Form = Literal["ranks", "rankings", "orders", "long"]
Ties = Literal["refuse", "random"]
Missing = Literal["refuse", "bottom", "random"]

Ranked = tuple[FloatArray, Names, pd.Index]
"""Ranks by ranking and item, NaN where one is missing, the items, and whose rankings these are."""

_NO_RANKS = (
    "rankings must hold ranks from 1 (best) to {}, the number of items (2.5 for two that share the "
    "places 2 and 3), and at least one cell does not: recode it, or name the item columns with "
    "items=[...]."
)
MESSAGES = {
    "ties": "every row of rankings must hold each of the ranks 1 to {} at most once, and at least "
    "one has a tie: use ties='random' if they are tied.",
    "gaps": "every row of rankings must hold the ranks 1 to {}, and at least one is incomplete: "
    "use missing='random' if the places of the missing items are unknown, missing='bottom' if they "
    "come after the others.",
    "unknown": "random",
}
"""Refusals of ties and of gaps by `as_rankings`, and its word for places that are not known."""

_EMPTY = (
    "missing='bottom' says that items without a rank come after the others, and at least one "
    "ranking leaves out a rank above them. Number the ranked items from 1, or use missing={!r} if "
    "the places of the others are not known."
)


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
    form : {"ranks", "rankings", "orders", "long"}
        - ``"ranks"`` or ``"rankings"``: one row per ranking, one column per item with its rank.
        - ``"orders"``: one row per ranking and one column per place, best first, holding the name
          of the item in that place.
        - ``"long"``: one row per ranking and item, holding the item's name and its rank.
    items : sequence of str or int, optional
        The items, in the order of the result's columns. By default, for ``"ranks"`` all columns but
        the respondent's; the other forms need them, unless columns of polars Enums name them.
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
        ranked ones. The order of these is kept (their ranks may leave gaps; only the order counts).
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
        For a frame that breaks a rule above.

    See Also
    --------
    privrank.as_comparisons : The same for paired comparisons.
    privrank.read_preflib : Reads files of preferences.
    privrank.PrivateRankAggregation : A consensus of rankings.

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
       stays the same when the items are relabelled. Then so does the distribution of the
       completions, and only the uniform distribution does that. This covers ties of respondents
       who have no preference.

    So a test of uniformity keeps its level, though not all its power. It does not when items differ
    in how often they are missing and the argument is the wrong one. An item that many do not know,
    and leave out for that reason, is no uniform draw under ``"bottom"``. One that is left out where
    it is disliked is none under ``"random"``. A row with nothing ranked becomes a uniformly random
    ranking, so that the number of rankings stays what it was. In the form ``"long"`` it needs a row
    with a missing rank; a ranking without any row is not there.

    The orders are drawn once, here, and are part of the data from then on: all fits of the result
    share them.

    **Elsewhere it is not exact.** Random orders pull every estimate (mean ranks, pair fractions)
    towards indifference, and ``"bottom"`` pulls items down that are missing for other reasons: a
    consensus takes rankings as they are, with ``ties=True`` and ``missing=``. A test of identity
    with a distribution that is not uniform loses its level, up to rejecting always. Each row has to
    be drawn from that distribution, given its reported part, as `IdentityTest` does with
    ``ties="complete"`` and ``missing=``, and condition 1 has to hold. A comparison of groups keeps
    its level if, given the rankings, ties and missing items come about alike in all groups;
    complete once, before any permutation.

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
    only_for(form, {"ranking": (ranking, ["long"]), "places": (places, ["orders"])})
    columns = OpenedFrame(frame, items, respondent=respondent, ranking=ranking)
    if form in ("ranks", "rankings"):
        ranks, labels, index = read_columns(columns)
    elif form == "long":
        ranks, labels, index = read_long_ranks(columns, item, rank)
    else:
        ranks, labels, index = read_orders(columns, places)
    check_ranks(
        ranks,
        MESSAGES,
        ties=ties == "random",
        gaps=missing != "refuse",
        bottom=missing == "bottom",
    )
    draws = ties == "random" or missing != "refuse"
    complete = np.empty(ranks.shape, dtype=np.int64)
    m = len(labels)
    for rows in batches(len(ranks), m):
        part = ranks[rows]
        # every row takes its draws, needed or not, so that none depends on what the others report
        drawn = draw_orders(len(part), m, rng) if draws else np.zeros(part.shape, dtype=np.int64)
        complete[rows] = complete_ranks(part, drawn, anywhere=missing == "random")
    return pd.DataFrame(complete, index=index, columns=list(labels))


def check_ranks(
    cells: AnyArray,
    messages: Mapping[str, str],
    *,
    ties: bool,
    gaps: bool,
    bottom: bool = False,
) -> None:
    """Refuse cells that are no ranks, and what is not declared of them.

    Parameters
    ----------
    cells : ndarray, shape (n, m)
        Numbers by ranking and item, NaN where one is missing.
    messages : mapping of str to str
        What to say of ``"ties"`` and of ``"gaps"``, given the number of items, and the word for
        missing items whose places are ``"unknown"``.
    ties, gaps : bool
        Whether items may share a rank, whole or half, and whether they may have none.
    bottom : bool
        Whether those without one are said to come last, so that no place above them is empty.
    """
    n, m = cells.shape
    frames.check_rows(n, "rankings")
    absent = np.isnan(cells) if cells.dtype.kind == "f" else np.zeros((1, 1), dtype=bool)
    if not gaps and absent.any():
        raise ValueError(messages["gaps"].format(m))
    ranks = np.where(absent, 1, cells) if absent.any() else cells
    halves = cells.dtype.kind == "f" and ranks != np.rint(ranks)
    if ranks.min() < 1 or ranks.max() > m or (2 * ranks[halves] % 1).any():
        raise ValueError(_NO_RANKS.format(m))
    if not ties:
        # mark rank r of row i as seen at i m + r - 1: fewer are seen than given where two share one
        place = ranks.astype(np.int64, copy=False) + np.arange(-1, n * m - 1, m)[:, None]
        seen = np.zeros(n * m + 1, dtype=bool)
        place = np.where(absent, n * m, place) if absent.any() else place
        seen[place.ravel("K")] = True
        given = n * m - np.count_nonzero(absent)
        if np.any(halves) or np.count_nonzero(seen[:-1]) < given:
            raise ValueError(messages["ties"].format(m))
    # in every usual coding of ties, the last of k ranked items has a rank of at most k
    if bottom and (np.where(absent, 0, cells).max(axis=1) > m - absent.sum(axis=1)).any():
        raise ValueError(_EMPTY.format(messages["unknown"]))


def complete_ranks(ranks: FloatArray, order: IntArray, *, anywhere: bool) -> IntArray:
    """Return complete rankings that agree with partial ones.

    Given ranks on the half-integers, NaN where missing, and a uniform permutation of 0..m-1 per
    row, breaks ties by the permutation. Unless `anywhere`, missing items follow the ranked ones in
    its order. With `anywhere` they take the places it gives them, and the ranked ones share those
    it gives to them as a set; the order it puts them in is independent of that set.
    """
    m = ranks.shape[1]
    ranked = ~np.isnan(ranks)
    last = 2 * m + 1  # twice a rank is a whole number, at most 2m
    # sorting by (twice the rank, place in the permutation) breaks ties by the permutation
    key = np.where(ranked, 2 * ranks, last).astype(np.int64) * m + order
    best_first = np.argsort(key, axis=1)
    places = np.broadcast_to(np.arange(1, m + 1), ranks.shape)
    if anywhere:
        # the set of places that the permutation gives to the ranked items, in rising order
        places = np.sort(np.where(ranked, order, m), axis=1) + 1
    complete = np.empty(ranks.shape, dtype=np.int64)
    np.put_along_axis(complete, best_first, places, axis=1)
    return np.where(ranked, complete, order + 1) if anywhere else complete


def read_columns(columns: OpenedFrame) -> Ranked:
    """Read data with a column per item that holds its rank."""
    declared = columns.items is not None
    labels = check_items(columns.items if declared else columns.others)
    table, index = columns.collect_wide("items", labels, declared=declared)
    check_ranks_are_numbers(columns.view, table, labels, "items")
    return coding.numbers(table[list(labels)]), labels, index


def read_long_ranks(columns: OpenedFrame, item: str, rank: str) -> Ranked:
    """Read data with a row per ranking and item."""
    if not columns.owners:
        raise ValueError(
            "form='long' needs to know which rows make one ranking: name the column that "
            "identifies it with ranking=, or with respondent= if each respondent has one."
        )
    table, labels, (code,) = columns.collect_rows({"item": item}, {"rank": rank})
    check_ranks_are_numbers(columns.view, table, [rank], "rank")
    values = coding.numbers(table[rank])
    identity = list(columns.owners.values())
    # rankings are numbered by first appearance
    number = np.asarray(table.groupby(identity, sort=False, observed=True).ngroup(), dtype=np.int64)
    first = np.unique(number, return_index=True)[1]
    ranks = _pivoted(number, code, values, (len(first), len(labels)))
    if ranks is None:
        raise ValueError(
            f"each item must be named at most once in a ranking, and at least one ranking repeats "
            f"an item in column {item!r}: check that {' and '.join(map(repr, identity))} identify "
            f"a ranking."
        )
    index = pd.MultiIndex.from_frame(table[identity].iloc[first])
    return ranks, labels, index if len(identity) > 1 else index.get_level_values(0)


def read_orders(columns: OpenedFrame, places: object) -> Ranked:
    """Read data with a column per place that names the item there."""
    listed = columns.others if places is None else as_list(places)
    if listed is None or not all(isinstance(name, Hashable) for name in listed):
        raise TypeError(
            f"places must be a sequence of column names, best place first, "
            f"got {type(places).__name__}."
        )
    columns.require({"places": listed})
    labels = frames.declared_items(columns.frame, listed, columns.items)
    if not 1 <= len(listed) <= len(labels):
        raise ValueError(
            f"form='orders' needs between one place column and one for each of the {len(labels)} "
            f"items, got {len(listed)}: list the place columns, best first, with places=[...]."
        )
    table, index = columns.collect_wide("places", listed, declared=places is not None)
    codes = np.array([item_codes(table[name], labels) for name in listed])
    # one row per ranking and place, where an item stands
    place, row = np.nonzero(codes >= 0)
    rank = (place + 1).astype(np.float64)
    ranks = _pivoted(row, codes[place, row], rank, (len(table), len(labels)))
    if ranks is None:
        raise ValueError(
            f"each item must be named at most once in a ranking, and at least one ranking repeats "
            f"an item in place columns {', '.join(map(repr, listed))}."
        )
    return ranks, labels, index


def _pivoted(
    row: IntArray, item: IntArray, rank: FloatArray, shape: tuple[int, int]
) -> FloatArray | None:
    """Return ranks by ranking and item, given a row for each; None if an item is there twice."""
    named = np.zeros(shape, dtype=bool)
    named[row, item] = True
    if np.count_nonzero(named) < len(row):
        return None
    ranks = np.full(shape, np.nan)
    ranks[row, item] = rank
    return ranks
