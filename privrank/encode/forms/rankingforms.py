"""The forms that rankings come in, each read as a matrix of ranks with NaN where one is missing.

Messages name arguments, columns and rules, never a cell's value.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.encode.frames import (
    check_counted,
    check_filled,
    check_name,
    check_numeric,
    check_present,
    check_rows,
    collect_wide,
    declared_items,
    item_codes,
    numbers,
    open_wide,
    with_respondent_column,
)
from privrank.util.checks import as_list, check_items

__all__ = [
    "Ranked",
    "Rules",
    "check_agreement",
    "check_bottom",
    "read_long",
    "read_orders",
    "read_ranks",
    "read_ratings",
]

FloatArray = NDArray[np.float64]

Ranked = tuple[FloatArray, tuple[Any, ...], pd.Index]
"""Ranks by ranking and item, the items, and an index with the respondent if there is one."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is declared of ties and missing items, and in which words it is declared.

    Parameters
    ----------
    ties : bool
        Whether items may share a rank.
    missing : str
        ``"refuse"``, ``"bottom"``, or another word for "nothing is known of their places".
    untied, tied, unknown : str
        The arguments that refuse ties, that allow them, and that declare missing items unknown.
    """

    ties: bool
    missing: str
    untied: str
    tied: str
    unknown: str


def read_ranks(frame: object, items: object, respondent: str | None, rules: Rules) -> Ranked:
    """Read wide data with a column per item that holds its rank."""
    ranks, labels, index = _read_columns(frame, items, respondent, "the ranks")
    for k, name in enumerate(labels):
        _check_ranks(ranks[:, k], name, len(labels), rules)
    return ranks, labels, index


def read_ratings(frame: object, items: object, respondent: str | None) -> Ranked:
    """Read wide data with a column per item that holds its rating, as negative ratings."""
    if items is None:
        raise ValueError(
            "items must be declared for ratings: pass items=[...] with the columns that hold them, "
            "because any other column of numbers, such as an age, would be an item too."
        )
    ratings, labels, index = _read_columns(frame, items, respondent, "the ratings")
    if np.isinf(ratings).any():
        raise ValueError(
            "ratings must be finite numbers: write a missing value where an item has none."
        )
    return -ratings, labels, index


def _read_columns(frame: object, items: object, respondent: str | None, what: str) -> Ranked:
    view, others = open_wide(frame, respondent)
    labels = check_items(others if items is None else items)
    check_present(labels, [*others, respondent], "items")
    check_counted(others, () if items is None else labels)
    check_numeric(view, labels, what, "items=")
    table, index = collect_wide(view, labels, respondent)
    return numbers(table[list(labels)]), labels, index


def read_orders(
    frame: object, items: object, respondent: str | None, places: object, order: str | None
) -> Ranked:
    """Read wide data with a column per place that names the item there, or a column of texts."""
    if order is not None:
        if places is not None:
            raise ValueError(
                "places= and order= name the same answers twice: leave one of them out."
            )
        return _read_texts(frame, items, respondent, order)
    view, others = open_wide(frame, respondent)
    columns = others if places is None else _check_places(places, others, respondent)
    check_counted(others, () if places is None else columns)
    labels = declared_items(frame, columns, items)
    if not 1 <= len(columns) <= len(labels):
        raise ValueError(
            f"form='orders' needs between one place column and one for each of the {len(labels)} "
            f"items, got {len(columns)}: list the place columns, best first, with places=[...]."
        )
    table, index = collect_wide(view, columns, respondent)
    ranks = np.full((len(table), len(labels)), np.nan)
    text = f", or name it with order={columns[0]!r} if it holds texts such as 'a > b = c'"
    for place, name in enumerate(columns, start=1):
        codes = item_codes(table[name], labels, name, text * (len(columns) == 1))
        row = np.flatnonzero(codes >= 0)
        if not np.isnan(ranks[row, codes[row]]).all():
            raise ValueError(
                f"place columns must name each item at most once in a ranking: at least one "
                f"ranking names an item in column {name!r} that it has named before."
            )
        ranks[row, codes[row]] = place
    return ranks, labels, index


def _read_texts(frame: object, items: object, respondent: str | None, order: str) -> Ranked:
    """Read orders written as texts, such as ``"tea > milk = juice"``, in one column."""
    check_name(order, "order")
    view, others = open_wide(frame, respondent)
    check_present([order], others, "order")
    check_counted(others, [order])
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
    table, index = collect_wide(view, [order], respondent)
    codes, texts = counting.factorize(table[order], order)
    known = [_ranks_of(text, names, order) for text in texts]
    missing = np.full(len(labels), np.nan)
    return np.array([*known, missing])[codes], labels, index


def _ranks_of(text: object, names: dict[str, int], order: str) -> FloatArray:
    """Return the ranks that a text gives, 1 plus the number of items before."""
    ranks, place = np.full(len(names), np.nan), 1
    if not isinstance(text, str):
        raise TypeError(
            f"column {order!r} must hold texts such as 'a > b = c', best first: use places= for "
            f"columns that name one item each."
        )
    for group in text.split(">") if text.strip() else ():
        tied = [names.get(name.strip(), -1) for name in group.split("=")]
        if min(tied) < 0 or len(set(tied)) < len(tied) or not np.isnan(ranks[tied]).all():
            raise ValueError(
                f"column {order!r} must hold orders such as 'a > b = c' in which every name is one "
                f"of items= and comes once: in at least one order a name is empty, repeated or "
                f"not among them."
            )
        ranks[tied] = place
        place += len(tied)
    return ranks


def read_long(
    frame: object,
    items: object,
    respondent: str | None,
    ranking: str | None,
    item: str,
    rank: str,
    rules: Rules,
) -> Ranked:
    """Read data with a row per ranking and item."""
    if respondent is None and ranking is None:
        raise ValueError(
            "form='long' must be told which rows make one ranking: name the column that "
            "identifies it with ranking=, or with respondent= if each respondent has one."
        )
    roles = {"respondent": respondent, "ranking": ranking, "item": item, "rank": rank}
    given = {"item", "rank"}.union(role for role, name in roles.items() if name is not None)
    named = {role: name for role, name in roles.items() if role in given}
    for role, name in named.items():
        check_name(name, role)
    for name in (respondent, ranking):
        frame = with_respondent_column(frame, name)
    view = counting.open_frame(frame, "frame")
    present = counting.column_names(view)
    for role, name in named.items():
        check_present([name], present, role)
    if len(set(named.values())) < len(named):
        raise ValueError("respondent=, ranking=, item= and rank= must name different columns.")
    check_numeric(view, [rank], "the ranks", "rank=")
    labels = declared_items(frame, [item], items)
    table = counting.collect(view, list(named.values()))
    check_rows(len(table))

    identity = [name for name in (respondent, ranking) if name is not None]
    code = np.zeros(len(table), dtype=np.int64)
    for name in identity:
        check_filled(table[name], name)
        own, values = counting.factorize(table[name], name)
        code, _ = pd.factorize(code * len(values) + own)
    codes = item_codes(table[item], labels, item)
    if (codes < 0).any():
        raise ValueError(
            f"column {item!r} must name an item in every row: leave out rows without an item, or "
            f"fill in its name."
        )
    values = numbers(table[rank])
    _check_ranks(values, rank, len(labels), rules)
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


def _check_places(places: object, present: Sequence[Any], respondent: str | None) -> list[Any]:
    names = as_list(places)
    if names is None:
        raise TypeError(
            f"places must be a sequence of column names, best place first, "
            f"got {type(places).__name__}."
        )
    if not all(isinstance(name, Hashable) for name in names):
        raise TypeError("places must be column names: at least one cannot be a name.")
    check_present(names, [*present, respondent], "places")
    if len(set(names)) < len(names):
        raise ValueError("places must be distinct: the same column is listed twice.")
    return names


def _check_ranks(ranks: FloatArray, name: Any, m: int, rules: Rules) -> None:
    given = ranks[~np.isnan(ranks)]
    if not ((given >= 1) & (given <= m)).all():
        raise ValueError(
            f"column {name!r} must hold ranks from 1 (best) to {m}, the number of items, or be "
            f"missing: recode other numbers as ranks, and check the items in items=."
        )
    if not rules.ties and (given % 1 != 0).any():
        raise ValueError(
            f"column {name!r} must hold whole numbers under {rules.untied}: use {rules.tied} if "
            f"the others are ranks that items share."
        )
    if (2 * given % 1 != 0).any():
        raise ValueError(
            f"column {name!r} must hold ranks, whole or, where items share one, a half more: "
            f"recode other numbers as ranks."
        )


def check_agreement(ranks: FloatArray, rules: Rules) -> None:
    """Refuse ties and missing items that the caller has not declared."""
    ordered = np.sort(ranks, axis=1)  # NaN comes last, and equals nothing
    if not rules.ties and (ordered[:, 1:] == ordered[:, :-1]).any():
        raise ValueError(
            f"{rules.untied} means that no two items share a rank, and in at least one ranking "
            f"some do: use {rules.tied} if they are tied."
        )
    absent = np.isnan(ranks)
    if rules.missing == "refuse" and absent.any():
        raise ValueError(
            f"missing='refuse' means that every ranking is complete, and at least one is not: use "
            f"missing='bottom' if the items without a rank come after the others, {rules.unknown} "
            f"if their places are unknown."
        )


def check_bottom(ranks: FloatArray, rules: Rules) -> None:
    """Refuse ranks that leave places empty above items that are said to come last."""
    if rules.missing == "bottom":
        absent = np.isnan(ranks)
        number = ranks.shape[1] - absent.sum(axis=1)
        # in every usual coding of ties, the last of k ranked items has a rank of at most k
        if (np.where(absent, 0.0, ranks).max(axis=1) > number).any():
            raise ValueError(
                f"missing='bottom' means that items without a rank come after the others, and at "
                f"least one ranking leaves a rank above them empty: use {rules.unknown} if the "
                f"places of the missing items are unknown, or number the ranked ones from 1."
            )
