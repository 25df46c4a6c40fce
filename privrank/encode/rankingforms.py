"""Convert the usual forms of ranking data to a rankings frame.

A rankings frame has one row per ranking, with ranks 1 to m. A conversion takes a frame and returns
a frame; it releases and protects nothing. Each ranking is made from its own row (or rows) and its
own random numbers, and no ranking is dropped. So frames that differ in one ranking become rankings
frames that, with the same random numbers, differ in one row. A fit's guarantee for the rows of the
result therefore holds for the rankings of the frame. Messages name arguments, columns and rules,
never a cell's value.
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
"""Ranks by ranking and item (NaN if missing), the items, and the respondents or index."""

_NO_RANKS = (
    "rankings must hold ranks from 1 (best) to {}, the number of items (2.5 for a tie of ranks 2 "
    "and 3), and at least one cell does not. Recode such cells, or name the item columns with "
    "items=[...]."
)
MESSAGES = {
    "ties": "rankings must have each of the ranks 1 to {} at most once in every row, and at least "
    "one row has a tie. Use ties='random' if items may share a rank.",
    "gaps": "rankings must have the ranks 1 to {} in every row, and at least one row is "
    "incomplete. Use missing='bottom' if missing items rank after the others, or "
    "missing='random' if their ranks are unknown.",
    "unknown": "random",
}
"""Messages of `as_rankings` about ties and missing ranks, and its word for unknown ranks."""

_EMPTY = (
    "missing='bottom' declares that items without a rank come after the others, and at least one "
    "ranking leaves out a rank above them. Number the ranked items from 1. If the ranks of the "
    "other items are unknown, use missing={!r}."
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
    """Convert ranking data to a rankings frame, optionally completing it.

    Parameters
    ----------
    frame : data frame
        Ranking data in any of three forms; any frame narwhals supports.
    form : {"ranks", "rankings", "orders", "long"}
        - ``"ranks"`` or ``"rankings"``: one row per ranking, one column per item with its rank.
        - ``"orders"``: one row per ranking and one column per rank, best first; a cell contains the
          name of the item with that rank.
        - ``"long"``: one row per ranking and item, with the item's name and its rank.
    items : sequence of str or int, optional
        The items, in the order of the result's columns. By default, for ``"ranks"``, all columns
        except the respondent's. The other forms need `items`, unless polars Enum columns declare
        them.
    respondent : str, optional
        Column, or level of a pandas index, that identifies the respondent.
    ranking : str, optional
        Form ``"long"``: column, or level of a pandas index, that identifies the ranking of a row
        (within the respondent, if both are named). By default each respondent has one ranking.
    item, rank : str
        Form ``"long"``: columns with the item's name and its rank.
    places : sequence of column names, optional
        Form ``"orders"``: the columns, best rank first; by default all except the respondent's, in
        the frame's order. There may be fewer columns than items (top-k lists).
    ties : {"refuse", "random"}
        How items that share a rank are treated. ``"refuse"``: the frame is refused. ``"random"``:
        tied items are put in an order drawn uniformly at random. Only the order of a row's ranks
        then matters, so all usual codings (1, 2, 2; 1, 3, 3; 1, 2.5, 2.5) are equivalent.
    missing : {"refuse", "bottom", "random"}
        How items without a rank are treated. ``"refuse"``: the frame is refused. ``"bottom"``: they
        are put after the ranked items, in an order drawn uniformly at random. ``"random"``: they
        are put in uniformly random positions among the ranked items. The order of the ranked items
        is kept; their ranks may have gaps, because only the order matters.
    rng : numpy.random.Generator, optional
        Source of the random orders in studies; by default the random bits of the operating system.

    Returns
    -------
    pandas.DataFrame
        One row per ranking and one int64 column per item with the ranks 1 (best) to m. The index is
        the respondent if there is one (for ``"long"``: the columns that identify a ranking, in
        order of first appearance). In all other cases it is the index of a pandas frame, or
        0, 1, ... The rows of a lazy frame (duckdb, dask, polars' LazyFrame) have no order, and
        neither have the rows of its result.

    Raises
    ------
    ValueError, TypeError
        If the frame breaks any rule above.

    See Also
    --------
    privrank.as_comparisons : Convert data to a comparisons frame.
    privrank.read_preflib : Read files in PrefLib's format.
    privrank.PrivateRankAggregation : Consensus ranking under differential privacy.

    Notes
    -----
    **When random completion is exact.** A row reports part of a ranking: the order of some pairs of
    items. Given this part, the completion is uniform over all rankings that agree with it. With
    ``missing="bottom"`` the reported part includes that the other items rank after these. (For
    ``"random"``, take one uniform ranking of all items and put the ranked items, in their reported
    order, into the positions that it gives to them as a set. With k items ranked, each agreeing
    ranking arises from k! uniform rankings.) Under either of two conditions the completions of
    uniform rankings are therefore uniform:

    1. The reported part depends on the respondent's ranking through this part only: any two
       rankings that agree with the part would have led to it with the same probability. Given the
       part, a uniform ranking is then uniform over the rankings that agree, which is the
       distribution from which the completion is drawn. How many items are ranked may depend on
       which items lead, but not on the order of the others.
    2. The items are exchangeable: the distribution of the rows, including ties and missing items,
       does not change if the items are relabelled. The distribution of the completions then does
       not change either, and only the uniform distribution has this property. This covers ties of
       respondents without a preference.

    A test of uniformity then keeps its size, with some loss of power. It does not keep its size if
    items differ in how often they are missing and the argument is wrong. An item that many
    respondents do not know and therefore leave out is not a uniform draw under ``"bottom"``. An
    item left out because it is disliked is not a uniform draw under ``"random"``. A row without
    ranked items becomes a uniformly random ranking, which preserves the number of rankings. In the
    form ``"long"`` such a ranking needs a row with a missing rank; a ranking without any row does
    not exist.

    The orders are drawn once, in this call, and are then part of the data: all fits of the result
    share them.

    **When it is not exact.** Random orders shrink every estimate (mean ranks, pair fractions)
    towards indifference, and ``"bottom"`` lowers items that are missing for other reasons. For a
    consensus, use the rankings without completion, with ``ties=True`` and ``missing=``. A test of
    identity with a distribution that is not uniform loses its size and may even always reject. Each
    row must instead be drawn from that distribution given its reported part, which `IdentityTest`
    does with ``ties="complete"`` and ``missing=``, and condition 1 must hold. A comparison of
    groups keeps its size if, given the rankings, ties and missing items occur with the same
    probabilities in all groups. Complete the rankings once, before any permutation.

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

    Top-2 lists of four items; the other items come after them in random order:

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
        # every row consumes its draws, needed or not, so no draw depends on the other rows' reports
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
    """Refuse cells that are not ranks, and undeclared ties or missing ranks.

    Parameters
    ----------
    cells : ndarray, shape (n, m)
        Numbers by ranking and item, NaN if missing.
    messages : mapping of str to str
        Messages about ``"ties"`` and ``"gaps"``, with a placeholder for the number of items, and
        the word for missing items whose ranks are ``"unknown"``.
    ties, gaps : bool
        Whether items may share a rank (whole or half), and whether they may have no rank.
    bottom : bool
        Whether items without a rank are declared to come last, which leaves no rank above them
        empty.
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
        # mark rank r of row i as seen at i m + r - 1; with a tie, fewer are seen than given
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
    """Return complete rankings that agree with partial rankings.

    `ranks` are half-integers, NaN if missing, and `order` is a uniform permutation of 0..m-1 per
    row, which breaks ties. Without `anywhere`, missing items follow the ranked items in the order
    of the permutation. With `anywhere`, missing items take the positions that the permutation gives
    them, and the ranked items share the positions that it gives to them as a set. The order in
    which the permutation puts the ranked items is independent of that set.
    """
    m = ranks.shape[1]
    ranked = ~np.isnan(ranks)
    last = 2 * m + 1  # twice a rank is a whole number, at most 2m
    # sorting by (twice the rank, position in the permutation) breaks ties by the permutation
    key = np.where(ranked, 2 * ranks, last).astype(np.int64) * m + order
    best_first = np.argsort(key, axis=1)
    places = np.broadcast_to(np.arange(1, m + 1), ranks.shape)
    if anywhere:
        # the set of positions that the permutation gives to the ranked items, in ascending order
        places = np.sort(np.where(ranked, order, m), axis=1) + 1
    complete = np.empty(ranks.shape, dtype=np.int64)
    np.put_along_axis(complete, best_first, places, axis=1)
    return np.where(ranked, complete, order + 1) if anywhere else complete


def read_columns(columns: OpenedFrame) -> Ranked:
    """Read data with one column of ranks per item."""
    declared = columns.items is not None
    labels = check_items(columns.items if declared else columns.others)
    table, index = columns.collect_wide("items", labels, declared=declared)
    check_ranks_are_numbers(columns.view, table, labels, "items")
    return coding.numbers(table[list(labels)]), labels, index


def read_long_ranks(columns: OpenedFrame, item: str, rank: str) -> Ranked:
    """Read data with one row per ranking and item."""
    if not columns.owners:
        raise ValueError(
            "form='long' needs a column that identifies the ranking of each row. Name it with "
            "ranking=, or with respondent= if each respondent has one ranking."
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
            f"column {item!r} must name each item at most once in a ranking, and at least one "
            f"ranking repeats an item. Check that {' and '.join(map(repr, identity))} identify a "
            f"ranking."
        )
    index = pd.MultiIndex.from_frame(table[identity].iloc[first])
    return ranks, labels, index if len(identity) > 1 else index.get_level_values(0)


def read_orders(columns: OpenedFrame, places: object) -> Ranked:
    """Read data with one column per rank that contains the item's name."""
    listed = columns.others if places is None else as_list(places)
    if listed is None or not all(isinstance(name, Hashable) for name in listed):
        raise TypeError(
            f"places must be a sequence of column names, best rank first, "
            f"got {type(places).__name__}."
        )
    columns.require({"places": listed})
    labels = frames.declared_items(columns.frame, listed, columns.items)
    if not 1 <= len(listed) <= len(labels):
        raise ValueError(
            f"form='orders' needs at least one place column and at most one for each of the "
            f"{len(labels)} items, got {len(listed)}. List the place columns, best rank first, "
            f"with places=[...]."
        )
    table, index = columns.collect_wide("places", listed, declared=places is not None)
    codes = np.array([item_codes(table[name], labels) for name in listed])
    # one row for each ranking and place with an item
    place, row = np.nonzero(codes >= 0)
    rank = (place + 1).astype(np.float64)
    ranks = _pivoted(row, codes[place, row], rank, (len(table), len(labels)))
    if ranks is None:
        raise ValueError(
            f"places must name each item at most once in a ranking, and at least one ranking "
            f"repeats an item in columns {', '.join(map(repr, listed))}. Correct such rankings."
        )
    return ranks, labels, index


def _pivoted(
    row: IntArray, item: IntArray, rank: FloatArray, shape: tuple[int, int]
) -> FloatArray | None:
    """Return ranks by ranking and item; None if a ranking repeats an item.

    `row`, `item` and `rank` have one entry per ranking and item.
    """
    named = np.zeros(shape, dtype=bool)
    named[row, item] = True
    if np.count_nonzero(named) < len(row):
        return None
    ranks = np.full(shape, np.nan)
    ranks[row, item] = rank
    return ranks
