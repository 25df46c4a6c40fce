"""The forms that rankings come in, each read as a matrix of ranks with NaN where one is missing.

Messages name arguments, columns and rules, never a cell's value.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.encode.forms.opening import (
    Names,
    check_numeric,
    collect_wide,
    item_codes,
    open_wide,
    read_rows,
)
from privrank.encode.frames import check_name, check_present, declared_items, numbers
from privrank.util.checks import as_list, check_items

__all__ = ["Ranked", "Rules", "ranks_of", "read_columns", "read_long", "read_orders"]

FloatArray = NDArray[np.float64]

Ranked = tuple[FloatArray, Names, pd.Index]
"""Ranks by ranking and item, the items, and an index with the respondent if there is one."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is declared of ties and missing items, and in which words it is declared.

    `missing` is "refuse", "bottom", or another word for "nothing is known of their places". The
    last three are the arguments that refuse ties, that allow them, and that declare missing items
    unknown.
    """

    ties: bool
    missing: str
    untied: str
    tied: str
    unknown: str

    def check_ranks(self, ranks: FloatArray, name: Any, m: int) -> None:
        """Refuse numbers of a column that cannot be ranks among m items."""
        given = ranks[~np.isnan(ranks)]
        if not ((given >= 1) & (given <= m)).all():
            rule = (
                f"ranks from 1 (best) to {m}, the number of items, or be missing: recode other "
                f"numbers as ranks, and check the items in items="
            )
        elif not self.ties and (given % 1 != 0).any():
            rule = (
                f"whole numbers under {self.untied}: use {self.tied} if the others are ranks that "
                f"items share"
            )
        elif (2 * given % 1 != 0).any():
            rule = (
                "ranks, whole or, where items share one, a half more: recode other numbers as ranks"
            )
        else:
            return
        raise ValueError(f"column {name!r} must hold {rule}.")

    def check_rankings(self, ranks: FloatArray) -> None:
        """Refuse ties and missing items that the caller has not declared.

        And ranks that leave places empty above items that are said to come last.
        """
        ordered = np.sort(ranks, axis=1)  # NaN comes last, and equals nothing
        if not self.ties and (ordered[:, 1:] == ordered[:, :-1]).any():
            raise ValueError(
                f"{self.untied} means that no two items share a rank, and in at least one ranking "
                f"some do: use {self.tied} if they are tied."
            )
        absent = np.isnan(ranks)
        if self.missing == "refuse" and absent.any():
            raise ValueError(
                f"missing='refuse' means that every ranking is complete, and at least one is not: "
                f"use missing='bottom' if the items without a rank come after the others, "
                f"{self.unknown} if their places are unknown."
            )
        number = ranks.shape[1] - absent.sum(axis=1)
        # in every usual coding of ties, the last of k ranked items has a rank of at most k
        if self.missing == "bottom" and (np.where(absent, 0.0, ranks).max(axis=1) > number).any():
            raise ValueError(
                f"missing='bottom' means that items without a rank come after the others, and at "
                f"least one ranking leaves a rank above them empty: use {self.unknown} if the "
                f"places of the missing items are unknown, or number the ranked ones from 1."
            )


def read_columns(
    frame: object, items: object, respondent: str | None, rules: Rules, *, ratings: bool = False
) -> Ranked:
    """Read data with a column per item that holds its rank or, as negative ranks, its rating."""
    if ratings and items is None:
        raise ValueError(
            "items must be declared for ratings: pass items=[...] with the columns that hold them, "
            "because any other column of numbers, such as an age, would be an item too."
        )
    view, others = open_wide(frame, respondent)
    labels = check_items(others if items is None else items)
    what, declared = "the ratings" if ratings else "the ranks", items is not None
    table, index = collect_wide(view, labels, respondent, "items", declared=declared, numbers=what)
    ranks = numbers(table[list(labels)])
    if ratings:
        if np.isinf(ranks).any():
            raise ValueError(
                "ratings must be finite numbers: write a missing value where an item has none."
            )
        # only the order of ratings counts, of which the highest is the best
        ranks = pd.DataFrame(-ranks).rank(axis=1, method="min").to_numpy(dtype=np.float64)
    else:
        for k, name in enumerate(labels):
            rules.check_ranks(ranks[:, k], name, len(labels))
    rules.check_rankings(ranks)
    return ranks, labels, index


def read_orders(
    frame: object,
    items: object,
    respondent: str | None,
    rules: Rules,
    places: object,
    order: str | None,
) -> Ranked:
    """Read data with a column per place that names the item there, or with a column of texts."""
    if order is not None and places is not None:
        raise ValueError("places= and order= name the same answers twice: leave one of them out.")
    if order is None:
        ranks, labels, index = _read_places(frame, items, respondent, places)
    else:
        ranks, labels, index = _read_texts(frame, items, respondent, order)
    rules.check_rankings(ranks)
    return ranks, labels, index


def read_long(
    frame: object,
    items: object,
    respondent: str | None,
    rules: Rules,
    ranking: str | None,
    item: str,
    rank: str,
) -> Ranked:
    """Read data with a row per ranking and item."""
    if respondent is None and ranking is None:
        raise ValueError(
            "form='long' must be told which rows make one ranking: name the column that "
            "identifies it with ranking=, or with respondent= if each respondent has one."
        )
    roles = {"rank": rank, "respondent": respondent, "ranking": ranking}
    rows = read_rows(frame, items, {"item": item}, roles)
    check_numeric(counting.open_frame(frame, "frame"), [rank], "the ranks", "rank=")
    labels, (place,) = rows.labels, rows.codes
    identity = [rows.columns[role] for role in ("respondent", "ranking") if role in rows.columns]
    code = np.zeros(len(place), dtype=np.int64)
    for column in identity:  # codes number the rankings by first appearance
        own = counting.key_of(column)
        code, _ = pd.factorize(code * len(own.values) + own.codes)
    values = numbers(rows.columns["rank"])
    rules.check_ranks(values, rank, len(labels))
    if pd.DataFrame({"ranking": code, "item": place}).duplicated().any():
        raise ValueError(
            f"column {item!r} must name each item at most once in a ranking, and at least one "
            f"ranking repeats an item: check that {' and '.join(repr(c.name) for c in identity)} "
            f"together identify a ranking."
        )
    first = np.unique(code, return_index=True)[1]
    ranks = np.full((len(first), len(labels)), np.nan)
    ranks[code, place] = values
    rules.check_rankings(ranks)
    index = pd.MultiIndex.from_frame(pd.concat(identity, axis=1).iloc[first])
    return ranks, labels, index if len(identity) > 1 else index.get_level_values(0)


def ranks_of(groups: Iterable[Sequence[int]], m: int) -> FloatArray | None:
    """Return the ranks of m items, 1 plus the number of items before and NaN where one is left out.

    Given the places of the items in their list, best first, in groups of those that share a rank.
    None if one is not in the list or comes twice.
    """
    ranks, rank = np.full(m, np.nan), 1
    for group in groups:
        for place in group:
            if not 0 <= place < m or not np.isnan(ranks[place]):
                return None
            ranks[place] = rank
        rank += len(group)
    return ranks


def _read_places(frame: object, items: object, respondent: str | None, places: object) -> Ranked:
    view, others = open_wide(frame, respondent)
    columns = others if places is None else _check_places(places, others, respondent)
    labels = declared_items(frame, columns, items)
    if not 1 <= len(columns) <= len(labels):
        raise ValueError(
            f"form='orders' needs between one place column and one for each of the {len(labels)} "
            f"items, got {len(columns)}: list the place columns, best first, with places=[...]."
        )
    declared = places is not None
    table, index = collect_wide(view, columns, respondent, "places", declared=declared)
    ranks = np.full((len(table), len(labels)), np.nan)
    text = f", or name it with order={columns[0]!r} if it holds texts such as 'a > b = c'"
    for place, name in enumerate(columns, start=1):
        codes = item_codes(table[name], labels, text * (len(columns) == 1))
        row = np.flatnonzero(codes >= 0)
        if not np.isnan(ranks[row, codes[row]]).all():
            raise ValueError(
                f"place columns must name each item at most once in a ranking: at least one "
                f"ranking names an item in column {name!r} that it has named before."
            )
        ranks[row, codes[row]] = place
    return ranks, labels, index


def _check_places(places: object, present: Sequence[Any], respondent: str | None) -> list[Any]:
    names = as_list(places)
    if names is None:
        raise TypeError(
            f"places must be a sequence of column names, best place first, "
            f"got {type(places).__name__}."
        )
    if not all(isinstance(name, Hashable) for name in names):
        raise TypeError("places must be column names: at least one cannot be a name.")
    check_present(names, [*present, respondent], "frame", "name the right one with places=")
    if len(set(names)) < len(names):
        raise ValueError("places must be distinct: the same column is listed twice.")
    return names


def _read_texts(frame: object, items: object, respondent: str | None, order: str) -> Ranked:
    """Read orders written as texts, such as ``"tea > milk = juice"``, in one column."""
    check_name(order, "order")
    view, _ = open_wide(frame, respondent)
    table, index = collect_wide(view, [order], respondent, "order")
    if items is None:
        raise ValueError(
            "items must be declared for orders in texts: pass items=[...] with all names, because "
            "a list read off the answers would reveal them."
        )
    labels = check_items(items)
    names = {str(label).strip(): k for k, label in enumerate(labels)}
    if any(mark in name for name in names for mark in ">="):
        raise ValueError(
            "items must have names without > and =, which separate items in a text order: rename "
            "such an item, and in the orders too."
        )
    key = counting.key_of(table[order])
    missing = np.full(len(labels), np.nan)
    known = []
    for text in key.values:
        if not isinstance(text, str):
            raise TypeError(
                f"column {order!r} must hold texts such as 'a > b = c', best first: use places= "
                f"for columns that name one item each."
            )
        groups = text.split(">") if text.strip() else ()
        known.append(
            ranks_of(
                ([names.get(name.strip(), -1) for name in group.split("=")] for group in groups),
                len(labels),
            )
        )
    if any(ranks is None for ranks in known):
        raise ValueError(
            f"column {order!r} must hold orders such as 'a > b = c' in which every name is one of "
            f"items= and comes once: in at least one order a name is empty, repeated or not among "
            f"them."
        )
    return np.array([*known, missing])[key.codes], labels, index
