"""Convert the usual forms of ranking data, and PrefLib's files, to a rankings frame.

A rankings frame has one row per ranking, with ranks 1 to m. A conversion takes a frame and returns
a frame; it releases and protects nothing. Each ranking is made from its own row (or rows) and its
own random numbers, and no ranking is dropped. So frames that differ in one ranking become rankings
frames that, with the same random numbers, differ in one row. A fit's guarantee for the rows of the
result therefore holds for the rankings of the frame.

Conversions find the columns of a frame by the arguments that name them. A role is an argument and
the columns that it names: one for ``item1=``, several for ``places=``. Messages name arguments,
columns and rules, never a cell's value. The data in PrefLib's files are public.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from privrank.encode import coding, frames
from privrank.encode.encoded import check_owned, refuse_unused
from privrank.privacy.draws import draw_orders
from privrank.util.arrays import AnyArray, FloatArray, IntArray, batches
from privrank.util.checks import (
    as_list,
    check_choice,
    check_items,
    check_name,
    check_rng,
    first_absent,
    refuse_if,
)

Form = Literal["ranks", "rankings", "orders", "long"]
Ties = Literal["refuse", "random"]
Missing = Literal["refuse", "bottom", "random"]

Names = tuple[Any, ...]

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
    "missing='random' if their ranks are unknown. If only the ranked items were offered, use "
    "privrank.as_choices.",
    "unknown": "random",
}
"""Messages of `as_rankings` about ties and missing ranks, and its word for unknown ranks."""

_EMPTY = (
    "missing='bottom' declares that items without a rank come after the others, and at least one "
    "ranking leaves out a rank above them. Number the ranked items from 1. If the ranks of the "
    "other items are unknown, use missing={!r}."
)

ENDINGS = (".soc", ".soi", ".toc", ".toi", ".cat")

MAX_VOTERS = 10**8
"""Largest number of rankings in a file; more would not fit into memory."""

_GROUP = re.compile(r"\{([\d,\s]*)\}|(\d+)")
_ORDER = re.compile(r"(?:(?:\{\s*(?:\d+(?:\s*,\s*\d+)*\s*)?\}|\d+)(?:\s*,\s*(?!$)|$))*")


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
    privrank.as_choices : Orders of some of the items, in sets that were publicly offered.
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
    readers = {
        "ranks": partial(read_columns, columns),
        "rankings": partial(read_columns, columns),
        "long": partial(read_long_ranks, columns, item, rank),
        "orders": partial(read_orders, columns, places),
    }
    ranks, labels, index = readers[form]()
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
        if np.any(halves) or np.count_nonzero(seen[:-1]) < n * m - np.count_nonzero(absent):
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
    # sorting by (twice the rank, position in the permutation) breaks ties by the permutation; twice
    # a rank is a whole number, at most 2m
    key = np.where(ranked, 2 * ranks, 2 * m + 1).astype(np.int64) * m + order
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
    ranks = _pivoted(
        row, codes[place, row], (place + 1).astype(np.float64), (len(table), len(labels))
    )
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


class OpenedFrame:
    """A frame opened by the names of its columns, before any cell is read.

    Parameters
    ----------
    frame : data frame
        Any frame narwhals supports.
    items : sequence or None
        The items declared in the call.
    owners : str or None
        Columns, or levels of a pandas index, that identify the owner of a row, by their roles
        ``respondent`` and ``ranking``.
    """

    def __init__(self, frame: object, items: object, **owners: str | None) -> None:
        self.items = items
        self.owners = {role: name for role, name in owners.items() if name is not None}
        for role, name in self.owners.items():
            check_name(name, role)
            frame = frames.with_respondent_column(frame, name)
        self.frame = frame
        self.view = frames.open_frame(frame, "frame")
        self.names = frames.column_names(self.view)
        for name in self.owners.values():
            if name in self.names:
                frames.check_respondents(self.view, name)

    @property
    def others(self) -> list[Any]:
        """The columns that do not identify respondents or rankings."""
        return [name for name in self.names if name not in self.owners.values()]

    def require(self, roles: Mapping[str, Sequence[Any]]) -> None:
        """Refuse columns that do not exist or are named twice."""
        for role, names in roles.items():
            if (absent := first_absent(names, self.names)) is not None:
                raise ValueError(
                    f"frame has no column {absent!r}. Name the right column with {role}=, or the "
                    f"form of the data with form=."
                )
        used = [name for names in roles.values() for name in names]
        twice = [name for name, times in Counter(used).items() if times > 1]
        if twice:
            raise ValueError(
                f"{'=, '.join(roles)}= must name different columns, and {twice[0]!r} is named "
                f"twice. Leave one of them out, or name another column."
            )

    def person(self, table: pd.DataFrame) -> pd.Series[Any] | None:
        """Return the respondent of each row of a table, None if not declared."""
        return table[self.owners["respondent"]] if self.owners else None

    def collect(self, roles: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
        """Return the columns that arguments name, including the owners."""
        roles = {**roles, **{role: [name] for role, name in self.owners.items()}}
        self.require(roles)
        table = frames.collect(self.view, [name for names in roles.values() for name in names])
        frames.check_rows(len(table))
        for role, name in self.owners.items():
            check_owned(coding.key_of(table[name]), name, role)
        return table

    def collect_wide(
        self, role: str, columns: Sequence[Any], *, declared: bool = True
    ) -> tuple[pd.DataFrame, pd.Index]:
        """Return columns of a frame with a row per respondent, and the respondents.

        `role` is the argument that names the columns, and `declared` is whether the call gave it. A
        column of row counts is refused unless it is a declared column, because each row belongs to
        one respondent.
        """
        refuse_unused(self.names, [*self.owners.values(), *(columns if declared else ())])
        table = self.collect({role: columns})
        person = self.person(table)
        return table, table.index if person is None else pd.Index(person)

    def collect_rows(
        self,
        named: Mapping[str, str],
        others: Mapping[str, str | None],
    ) -> tuple[pd.DataFrame, Names, list[IntArray]]:
        """Return rows that name items, all items, and the codes of the rows' items.

        `named` are the columns of items and `others` are further columns, by the arguments that
        name them; None is an argument that was left out.
        """
        given = {**named, **{role: name for role, name in others.items() if name is not None}}
        for role, name in given.items():
            check_name(name, role)
        roles = {role: [name] for role, name in given.items()}
        self.require(roles)
        # items are declared before any cell is read
        labels = frames.declared_items(self.frame, list(named.values()), self.items)
        table = self.collect(roles).reset_index(drop=True)
        codes = [item_codes(table[name], labels) for name in named.values()]
        for name, code in zip(named.values(), codes, strict=True):
            if (code < 0).any():
                raise ValueError(
                    f"column {name!r} must name an item in every row, and at least one name is "
                    f"missing. Fill in the missing names. In form='long' an unanswered question "
                    f"has a missing outcome or rank, not a missing item."
                )
        return table, labels, codes


def item_codes(names: pd.Series[Any], labels: Names) -> IntArray:
    """Return the position of each name in `labels`, -1 where it is missing."""
    key = coding.key_of(names)
    places = key.among(labels)
    if (places[key.codes >= 0] < 0).any():
        raise ValueError(
            f"column {names.name!r} contains a name that is not listed in items, or an entry with "
            f"several names. Compare its distinct values and their type with items, make missing "
            f"answers missing values, and give codes as items={{code: item}}. Split entries with "
            f"several names."
        )
    return places


def check_ranks_are_numbers(
    view: frames.Frame, table: pd.DataFrame, columns: Sequence[Any], argument: str
) -> None:
    """Refuse non-numeric columns of ranks, by their type and by the rows read.

    `argument` is the argument that names the columns.
    """
    typed = frames.numeric_columns(view, columns)
    others = [name for name in columns if name not in typed]
    text = frames.check_numeric(frames.open_frame(table[others], "frame"), others)
    if text is not None:
        raise TypeError(
            f"column {text!r} must hold ranks as numbers, and missing values (empty cells, NaN), "
            f"never text, for items that are not ranked. Name the columns of ranks with "
            f"{argument}=, and the respondent column with respondent=. Convert numbers stored as "
            f"objects with pandas.to_numeric."
        )


def only_for(form: str, arguments: Mapping[str, tuple[object, Sequence[str]]]) -> None:
    """Refuse arguments that belong to other forms.

    `arguments` gives by name the value (None if not given) and the forms to which it belongs.
    """
    for name, (value, homes) in arguments.items():
        if value is not None and form not in homes:
            raise ValueError(
                f"{name}= belongs to form={' or '.join(map(repr, homes))}. Leave it out, or use "
                f"that form."
            )


def read_preflib(path: str | Path) -> pd.DataFrame:
    r"""Read a file of rankings or categories in PrefLib's text format.

    Parameters
    ----------
    path : str or Path
        A file with the ending ``.soc`` or ``.toc`` (complete orders, strict or with ties),
        ``.soi`` or ``.toi`` (incomplete orders) or ``.cat`` (alternatives by category, such as
        *yes* and *no*), in the format whose header lines begin with ``#``.

    Returns
    -------
    pandas.DataFrame
        One row per voter and one column per alternative with its rank. Columns are named as in the
        file, and voters with the same order are adjacent as in the file. Tied alternatives have the
        same rank (1, 2, 2, 4), and so do alternatives in the same category. An alternative that a
        voter leaves out has NaN. The ranks of ``.soc`` files are int64, all others float64.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    TypeError, ValueError
        If `path` is not a path, or the file has another format or contradicts itself. The message
        names the file and the line.

    See Also
    --------
    privrank.as_rankings : Convert rankings of other forms.

    Notes
    -----
    Categories are ranked in the order of their numbers in the header, the first one best, as
    PrefLib lists them. Their names are not part of the frame.

    Pass rankings with ties or missing items to `PrivateRankAggregation` with ``ties=True`` and
    ``missing=``. Alternatively, `as_rankings` completes them at random; its notes list the tests
    for which this is valid.

    References
    ----------
    Mattei and Walsh (2013), PrefLib: a library for preferences.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import privrank as pr
    >>> lines = ["# NUMBER ALTERNATIVES: 3", "# NUMBER VOTERS: 3", "# ALTERNATIVE NAME 1: tea"]
    >>> lines += ["# ALTERNATIVE NAME 2: coffee", "# ALTERNATIVE NAME 3: milk"]
    >>> lines += ["2: 2,{1,3}", "1: 3"]
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "drinks.toi")
    ...     _ = file.write_text("\n".join(lines))
    ...     print(pr.read_preflib(file))
       tea  coffee  milk
    0  2.0     1.0   2.0
    1  2.0     1.0   2.0
    2  NaN     NaN   1.0
    """
    if not isinstance(path, str | Path):
        raise TypeError("path must be a str or a pathlib.Path.")
    file = Path(path)
    ending = file.suffix.lower()
    name = repr(file.name)
    if ending not in ENDINGS:
        raise ValueError(
            f"{name} must be a PrefLib file of orders or categories, with the ending "
            f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}."
        )
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").split("\n")]
    except ValueError:
        raise ValueError(f"{name} must be a text file in UTF-8, like all PrefLib files.") from None
    header = [line[1:].partition(":") for line in lines if line.startswith("#")]
    facts = {" ".join(head.split()): value.strip() for head, _, value in header}
    items = _items(facts, name)
    categories = _categories(facts, name) if ending == ".cat" else None
    counts = []
    orders = []
    for number, line in enumerate(lines, start=1):
        if line and not line.startswith("#"):
            count, _, order = line.partition(":")
            ranks = _ranks(order.strip(), len(items), categories)
            if _number(count) < 1 or ranks is None:
                raise _malformed(number, name, len(items), categories)
            tied = ending in (".soc", ".soi") and "{" in order
            if tied or (ending in (".soc", ".toc") and np.isnan(ranks).any()):
                raise ValueError(
                    f"line {number} of {name} must be a strict order in .soc and .soi files, and a "
                    f"complete order in .soc and .toc files."
                )
            counts.append(_number(count))
            orders.append(ranks)
    refuse_if(
        (
            not 0 < sum(counts) <= MAX_VOTERS,
            f"{name} must hold at least one order and at most {MAX_VOTERS:,} orders.",
        ),
        (
            sum(counts) != _number(facts.get("NUMBER VOTERS", str(sum(counts)))),
            f"{name} must hold as many orders as the number of voters in its header. The file may "
            f"be truncated; download it again.",
        ),
    )
    ranks = np.repeat(np.array(orders), counts, axis=0)
    # only files of complete strict orders never contain NaN
    return pd.DataFrame(
        ranks.astype(np.int64) if ending == ".soc" else ranks, columns=pd.Index(items)
    )


def _malformed(number: int, name: str, m: int, categories: int | None) -> ValueError:
    """Return the error for a line that is not an order or list of categories."""
    if categories is not None:
        return ValueError(
            f"line {number} of {name} must be a number of voters, a colon and {categories} "
            f"categories of numbers from 1 to {m}, each at most once. Put categories in braces, "
            f"for example '12: {{1,3}},{{}}'."
        )
    return ValueError(
        f"line {number} of {name} must be a number of voters, a colon and an order of numbers "
        f"from 1 to {m}, each at most once. Put tied numbers in braces, for example "
        f"'12: 2,{{1,3}}'. Files from before 2022 have another format; download them again."
    )


def _number(text: str) -> int:
    """Return a whole number of at most nine digits, or -1 for anything else."""
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else -1


def _categories(facts: dict[str, str], name: str) -> int:
    """Return the number of categories."""
    if (number := _number(facts.get("NUMBER CATEGORIES", ""))) < 1:
        raise ValueError(f"{name} must have a line '# NUMBER CATEGORIES: k' in its header.")
    return number


def _items(facts: dict[str, str], name: str) -> list[str]:
    """Return the names of the alternatives, in the order of their numbers."""
    m = _number(facts.get("NUMBER ALTERNATIVES", ""))
    start = "ALTERNATIVE NAME "
    names = {_number(fact[len(start) :]): facts[fact] for fact in facts if fact.startswith(start)}
    if m < 1 or len(names) != m or min(names) != 1 or max(names) != m:
        raise ValueError(
            f"{name} must begin with lines '# NUMBER ALTERNATIVES: m' and '# ALTERNATIVE NAME i: "
            f"name' for i from 1 to m. Download files from before 2022 again in the new format."
        )
    items = [names[i] for i in range(1, m + 1)]
    if "" in items or len(set(items)) < m:
        raise ValueError(
            f"{name} must have a distinct name for every alternative, because the names become "
            f"columns."
        )
    return items


def _ranks(order: str, m: int, categories: int | None) -> FloatArray | None:
    """Return the rank of each alternative in an order such as '2,{1,3}'.

    Returns None if the text is not an order. With `categories`, the order must have that many
    groups, some of which may be empty.
    """
    if not _ORDER.fullmatch(order):
        return None
    groups = [(braces or item).split(",") for braces, item in _GROUP.findall(order)]
    if categories not in (None, len(groups)):
        return None
    ranks = np.full(m, np.nan)
    rank = 1
    for words in groups:
        group = [] if categories and not words[0].strip() else [_number(word) for word in words]
        for item in group:
            if not 1 <= item <= m or not np.isnan(ranks[item - 1]):
                return None
            ranks[item - 1] = rank
        # tied alternatives share the smallest rank, and the next group continues after them
        rank += len(group)
    return ranks
