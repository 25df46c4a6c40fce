"""Rankings and choices from a user's frame: validated, and held until a mechanism reads them.

Conventions: in a rankings frame every row is a ranking, every item a column, and a cell the rank of
that item, 1 = best. A choices column holds one of the declared categories in each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank import counting
from privrank.budget import Unit
from privrank.checks import check_count, check_items
from privrank.design import Sample
from privrank.encode.completing import Purpose, remedy
from privrank.encode.frames import (
    check_respondents,
    numbers,
    refuse_copy,
    with_respondent_column,
)
from privrank.formula import parse

__all__ = [
    "EncodedSample",
    "encode_choices",
    "encode_counts",
    "encode_data",
    "encode_rankings",
    "sample_of_formula",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


LARGEST_TOTAL = 10**12
"""Most counted choices: statistics of them, times the categories, stay whole numbers of 64 bits."""


FEWEST_UNITS = 2
"""Units below which nothing can be tested or estimated."""


class EncodedSample:
    """Sensitive rankings or choices, and the public facts about them.

    The frame itself is gone. It prints only its shape and refuses to be pickled or copied.

    Parameters
    ----------
    sample : Sample
        Public facts.
    rows : ndarray of int64
        Ranks, shape (rows, m); or the code of each row's category, shape (rows,), when choices
        have respondents; or the counts by category, shape (k,), when a row is the unit.
    sizes : ndarray of int64 or None
        Where the unit is a respondent, the numbers of rows of each; the rows are in that order.
    partial : bool
        Whether rankings may have ties and missing items, as the user has declared: rows then hold
        twice the ranks, and 0 where an item has none.
    """

    __slots__ = ("_rows", "_sizes", "partial", "sample")

    def __init__(
        self, sample: Sample, rows: IntArray, sizes: IntArray | None, partial: bool = False
    ) -> None:
        self.sample = sample
        self.partial = partial
        self._rows = rows
        self._sizes = sizes

    def __repr__(self) -> str:
        """Show the shape only."""
        sample = self.sample
        return f"<Encoded {sample.kind}: {len(sample.items)} items, {sample.nobs} units>"

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = refuse_copy


def encode_rankings(
    frame: object,
    *,
    items: object = None,
    respondent: str | None = None,
    max_rows: object = 1,
    partial: bool = False,
    purpose: Purpose = "uniformity",
) -> EncodedSample:
    """Validate a rankings frame.

    Parameters
    ----------
    frame : data frame or ndarray of shape (n, m)
        One row per ranking; any frame narwhals supports, or plain ranks as simulations make them.
    items : sequence of str or None
        The item columns, or the names of an array's columns; None takes every column but the one
        of the respondent.
    respondent : str or None
        The column, or pandas index level, that names the respondent of each row.
    max_rows : int
        Public bound on a respondent's rows.
    partial : bool, default False
        Whether rankings may have ties and missing items.
    purpose : str
        What the rankings are for, which decides what a message says about ties and missing items.

    Returns
    -------
    EncodedSample

    Raises
    ------
    ValueError, TypeError
        One sentence, for every way a frame can break the rules.
    """
    bound = check_count("max_rows", max_rows)
    if not isinstance(partial, bool):
        raise TypeError(f"partial must be True or False, got {type(partial).__name__}.")
    declared = None if items is None else tuple(str(label) for label in check_items(items))
    if isinstance(frame, np.ndarray) and frame.ndim == 2:
        frame = _frame_of_array(frame, declared)
    view = _open(frame, respondent, "rankings")
    names = counting.column_names(view)
    if declared is None:
        labels = tuple(name for name in names if name != respondent)
        if len(labels) < 2:
            raise ValueError(
                "rankings must have a column for each of at least two items, got "
                f"{len(labels)}: for one column of choices use from_formula('choice ~ 1', data)."
            )
    else:
        labels = declared
        for label in labels:
            if label not in names:
                raise ValueError(f"rankings has no column {label!r}: items= names the columns.")
        if respondent in labels:
            raise ValueError("items= and respondent= must name different columns.")
    numeric = counting.numeric_columns(view, labels)
    for label in labels:
        if label not in numeric:
            raise TypeError(
                f"column {label!r} must hold ranks, whole numbers from 1 (best) to {len(labels)}: "
                f"leave it out with items=[...], or convert the frame with privrank.as_rankings."
            )
    table = counting.collect(view, [*labels, *_named(respondent)])
    cells = numbers(table[list(labels)])
    ranks = _check_partial(cells) if partial else _check_ranks(cells, purpose)
    nobs, sizes, order = _units(table, respondent, bound)
    unit: Unit = "row" if respondent is None else "respondent"
    sample = Sample("rankings", labels, nobs, unit, bound)
    return EncodedSample(sample, ranks if order is None else ranks[order], sizes, partial)


def encode_choices(
    frame: object,
    column: object,
    *,
    categories: object = None,
    respondent: str | None = None,
    max_rows: object = 1,
    least: int = FEWEST_UNITS,
) -> EncodedSample:
    """Validate a column of choices.

    Parameters
    ----------
    frame : data frame
        One row per choice; any frame narwhals supports.
    column : str
        The column that holds the chosen category.
    categories : sequence of str or None
        The declared categories; None takes those the column's type declares.
    respondent, max_rows
        As for :func:`encode_rankings`.
    least : int
        Fewest units; 0 where the number of units is not public, and a declared bound stands in.

    Returns
    -------
    EncodedSample

    Raises
    ------
    ValueError, TypeError
        One sentence, for every way a frame can break the rules.
    """
    bound = check_count("max_rows", max_rows)
    view = _open(frame, respondent, "data")
    if not isinstance(column, str):
        raise TypeError(f"the column of choices must be a name, got {type(column).__name__}.")
    if column not in counting.column_names(view):
        raise ValueError(f"data has no column {column!r}: name the column of choices.")
    declared = counting.declared_categories(frame, column) if categories is None else categories
    if declared is None:
        raise ValueError(
            f"categories must be declared: pass categories=[...] or make column {column!r} "
            f"categorical, because a list read off the answers would reveal them."
        )
    labels = check_items(declared, "categories")
    table = counting.collect(view, [column, *_named(respondent)])
    found, values = counting.factorize(table[column], column)
    place = pd.Index(labels).get_indexer(pd.Index(values))
    codes = np.append(place, -1)[found].astype(np.int64)
    if least and not len(codes):
        raise ValueError("data must have at least one row.")
    if (codes < 0).any():
        raise ValueError(
            f"column {column!r} must hold declared categories only: at least one entry is missing "
            f"or not in categories=; declare a category for no answer, or impute."
        )
    nobs, sizes, order = _units(table, respondent, bound, least)
    rows = np.bincount(codes, minlength=len(labels)) if order is None else codes[order]
    unit: Unit = "row" if respondent is None else "respondent"
    sample = Sample("choices", tuple(str(label) for label in labels), nobs, unit, bound)
    return EncodedSample(sample, rows.astype(np.int64), sizes)


def encode_data(
    data: object,
    *,
    items: object = None,
    categories: object = None,
    respondent: str | None = None,
    max_rows: object = 1,
    purpose: Purpose = "uniformity",
) -> EncodedSample:
    """Validate a rankings frame, or a categorical Series of choices, whichever is given.

    `items` are the item columns of rankings; `categories`, or else `items`, those of choices.
    """
    if not isinstance(data, pd.Series):
        if categories is not None:
            raise ValueError(
                "categories= is for choices: give rankings their items=, or choices as a Series or "
                "with from_formula('choice ~ 1', data)."
            )
        return encode_rankings(
            data, items=items, respondent=respondent, max_rows=max_rows, purpose=purpose
        )
    if respondent is not None or max_rows != 1:
        raise ValueError(
            "respondent= and max_rows= need a frame: use from_formula('choice ~ 1', data, "
            "respondent=...)."
        )
    declared = items if categories is None else categories
    return encode_choices(data.to_frame("choice"), "choice", categories=declared)


def encode_counts(counts: object, categories: object = None) -> EncodedSample:
    """Validate counts by category; one counted choice is the unit.

    Parameters
    ----------
    counts : mapping, pandas Series or sequence of int
        How often each category was chosen.
    categories : sequence of str or None
        The categories; None takes the keys of a mapping or the index of a Series.

    Returns
    -------
    EncodedSample

    Raises
    ------
    ValueError, TypeError
        One sentence, if these are not counts of distinct categories.
    """
    values: Sequence[Any]
    if isinstance(counts, Mapping | pd.Series):
        # of declared categories a count may be of one alone: that is up to those who chose
        named = list(counts.keys())
        labels = check_items(named if categories is None else categories, "categories")
        if len(set(named)) < len(named) or not set(named) <= set(labels):
            raise ValueError(
                "counts must be of declared categories, each once: at least one is not listed, or "
                "is there twice."
            )
        given = dict(counts.items())
        values = [given.get(label, 0) for label in labels]
    else:
        if isinstance(counts, str) or not isinstance(counts, Iterable):
            raise TypeError(
                f"counts must be a mapping, a Series or a sequence, got {type(counts).__name__}."
            )
        if categories is None:
            raise TypeError("categories must name what a sequence of counts counts.")
        values, labels = list(counts), check_items(categories, "categories")
    if len(values) != len(labels):
        raise ValueError(
            f"counts must give one number per category: {len(values)} counts for {len(labels)} "
            f"categories."
        )
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("counts must be whole numbers: at least one is not a number.") from None
    if table.shape != (len(labels),) or not (
        np.isfinite(table).all() and (table >= 0).all() and (table % 1 == 0).all()
    ):
        raise ValueError("counts must be whole numbers of at least 0: at least one is not.")
    if table.sum() > LARGEST_TOTAL:
        raise ValueError(
            f"counts must add up to at most {LARGEST_TOTAL:,}, which is what whole-number "
            f"statistics hold: count in larger units."
        )
    nobs = int(table.sum())
    sample = Sample("choices", tuple(str(label) for label in labels), _enough(nobs), "row", 1)
    return EncodedSample(sample, table.astype(np.int64), None)


def sample_of_formula(
    formula: object,
    data: object,
    arguments: Mapping[str, Any],
    partial: bool = False,
    purpose: Purpose = "uniformity",
) -> EncodedSample:
    """Encode what a formula names: rankings ``"a + b + c ~ 1"``, or choices ``"choice ~ 1"``."""
    parsed = parse(formula)
    if parsed.right or not parsed.intercept:
        raise ValueError(
            f"formula must have '~ 1' on its right, got {formula!r}: to compare groups use "
            f"ClosenessTest."
        )
    rankings = len(parsed.left) > 1
    known = {"respondent", "max_rows"} | (set() if rankings else {"categories"})
    if not arguments.keys() <= known:
        raise TypeError(
            f"from_formula takes the arguments {', '.join(sorted(known))} beside formula and data."
        )
    if rankings:
        return encode_rankings(
            data, items=parsed.left, partial=partial, purpose=purpose, **arguments
        )
    return encode_choices(data, parsed.left[0], **arguments)


def _open(frame: object, respondent: object, name: str) -> counting.Frame:
    if respondent is not None and not isinstance(respondent, str):
        raise TypeError(f"respondent must be a column name, got {type(respondent).__name__}.")
    frame = with_respondent_column(frame, respondent)
    if isinstance(frame, pd.DataFrame) and not all(isinstance(c, str) for c in frame.columns):
        frame = frame.set_axis([str(label) for label in frame.columns], axis=1)
    view = counting.open_frame(frame, name)
    if respondent is not None and respondent not in counting.column_names(view):
        raise ValueError(
            f"{name} has no column {respondent!r}: name the right one with respondent=."
        )
    return view


def _frame_of_array(ranks: NDArray[Any], items: tuple[str, ...] | None) -> pd.DataFrame:
    names = items or tuple(str(k) for k in range(ranks.shape[1]))
    if len(names) != ranks.shape[1]:
        raise ValueError(
            f"items must name the {ranks.shape[1]} columns of the array, got {len(names)} names."
        )
    return pd.DataFrame(ranks, columns=list(names))


def _enough(nobs: int, least: int = FEWEST_UNITS) -> int:
    if nobs < least:
        raise ValueError(f"at least two units are needed, got {nobs}: collect more answers.")
    return nobs


def _named(respondent: str | None) -> list[str]:
    return [] if respondent is None else [respondent]


def _units(
    table: pd.DataFrame, respondent: str | None, max_rows: int, least: int = FEWEST_UNITS
) -> tuple[int, IntArray | None, IntArray | None]:
    """Return the number of units and, for respondents, their numbers of rows and an order."""
    if respondent is None:
        return _enough(len(table), least), None, None
    person, _ = counting.factorize(table[respondent], respondent)
    check_respondents(person, None, respondent, max_rows)
    sizes = np.bincount(person)
    return _enough(len(sizes), least), sizes, np.argsort(person, kind="stable")


def _check_ranks(cells: FloatArray, purpose: Purpose) -> IntArray:
    """Return the ranks as integers; refuse rows that are no permutation of 1..m."""
    n, m = cells.shape
    if n == 0:
        raise ValueError("rankings must have at least one row.")
    if np.isnan(cells).any():
        raise ValueError(
            f"every row of rankings must hold the ranks 1 to {m}, and at least one is incomplete: "
            f"{remedy(purpose, 'gaps')}."
        )
    inside = (cells >= 1) & (cells <= m)
    if not inside.all():
        raise ValueError(
            f"every row of rankings must hold the ranks 1 to {m}, and at least one cell is not "
            f"among them: rank the {m} items anew, or name the item columns with items=[...]."
        )
    ranks = cells.astype(np.int64)
    seen = np.zeros(n * m, dtype=bool)
    seen[(np.arange(n)[:, None] * m + ranks - 1).ravel()] = True
    if not (seen.all() and (ranks == cells).all()):
        raise ValueError(
            f"every row of rankings must hold each of the ranks 1 to {m} once, and at least one "
            f"has a tie: {remedy(purpose, 'ties')}."
        )
    return ranks


def _check_partial(cells: FloatArray) -> IntArray:
    """Return twice the ranks, 0 where one is missing; refuse numbers that are no ranks."""
    m = cells.shape[1]
    if len(cells) == 0:
        raise ValueError("rankings must have at least one row.")
    codes = np.nan_to_num(2 * cells, nan=0.0, posinf=-1.0, neginf=-1.0)
    inside = np.isnan(cells) | ((codes >= 2) & (codes <= 2 * m) & (codes % 1 == 0))
    if not inside.all():
        raise ValueError(
            f"rankings must hold ranks from 1 to {m} (2.5 for two items that share the places 2 "
            f"and 3) or missing values, and at least one cell is neither: name the item columns "
            f"with items=[...]."
        )
    return codes.astype(np.int64)
