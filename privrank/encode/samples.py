"""Rankings and choices from a user's frame: validated, and held until a mechanism reads them.

Conventions: in a rankings frame every row is a ranking, every item a column, and a cell the rank of
that item, 1 = best. A choices column holds one of the declared categories in each row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import frames
from privrank.encode.clusters import count_parts
from privrank.encode.encoded import (
    EncodedSample,
    Parts,
    Rows,
    declared_codes,
    narrow,
    open_rows,
    sum_by,
    units_of,
)
from privrank.encode.ranks import check_ranks
from privrank.plans.nullmodel import (
    RANK_REMEDIES,
    Missing,
    Purpose,
    as_declared,
    check_several,
    formula_options,
    refuse_categories,
    refuse_partial,
)
from privrank.privacy.accounting import Unit
from privrank.release.survey import FEWEST_UNITS, Sample, SampleKind
from privrank.util.arrays import IntArray
from privrank.util.checks import (
    as_array,
    as_numbers,
    check_choice,
    check_count,
    check_flag,
    check_items,
    check_name,
    check_names,
    check_present,
    undeclared,
)
from privrank.util.formula import parse

_NO_COLUMN = "rankings has no column {!r}: {}."
_NO_RANKS = "column {!r} must hold ranks, whole numbers from 1 (best) to {}: {}."
_NUMBERS = "leave it out with items=[...], name it in respondent=, or convert categories to numbers"

LARGEST_TOTAL = 10**12
"""Most counted choices: statistics of them, times the categories, stay whole numbers of 64 bits."""


def encode_rankings(
    frame: object,
    *,
    items: object = None,
    respondent: str | None = None,
    max_rows: object = 1,
    ties: bool = False,
    missing: Missing | None = None,
    purpose: Purpose = "test",
    least: int = FEWEST_UNITS,
) -> EncodedSample:
    """Validate a rankings frame, or an array of plain ranks, shape (n, m), as simulations make it.

    Given the arguments of :class:`privrank.PrivateRankAggregation`, and what the rankings are for,
    which decides what a message says about ties and missing items. `least` are the fewest units: 0
    for a group of several, where that is looked at later, if it is public. Every way a frame can
    break the rules raises one sentence, of a ValueError or a TypeError.
    """
    bound = check_count("max_rows", max_rows)
    ties = check_flag("ties", ties)
    if missing is not None:
        check_choice("missing", missing, Missing)
    declared = None if items is None else tuple(str(label) for label in check_items(items))
    gaps, people = missing is not None, None
    halves = ties or gaps

    def codes(part: Any) -> IntArray:
        cells = part if isinstance(part, np.ndarray) else _rank_cells(part, labels)
        if least or len(cells):
            check_ranks(cells, RANK_REMEDIES[purpose], ties=ties, gaps=gaps)
        return half_codes(cells, missing) if halves else np.array(cells, dtype=np.int64, order="C")

    array = frame if isinstance(frame, np.ndarray) and frame.ndim == 2 else None
    if array is not None and array.dtype.kind in "iuf" and respondent is None:
        # plain numbers need no table
        labels = _labels_of_array(array, declared, purpose)
        nobs, ranks = len(array), codes(array)
    else:
        if array is not None:
            frame = pd.DataFrame(array, columns=list(_labels_of_array(array, declared, purpose)))
        view, labels = _rank_columns(frame, declared, respondent, purpose)
        nobs, people = _in_parts(view, labels, respondent, bound, codes)
        none = np.empty((0, len(labels)), dtype=np.int64)
        ranks = none if nobs else codes(none)
    sample = _facts("rankings", labels, enough(nobs, least), respondent, bound)
    sample = replace(sample, completed=halves and purpose != "consensus")
    return EncodedSample(sample, ranks, people, ties, missing)


def enough(nobs: int, least: int = FEWEST_UNITS) -> int:
    """Return the number of units; refuse fewer than `least`."""
    if nobs < least:
        raise ValueError(f"at least two units are needed, got {nobs}: collect more answers.")
    return nobs


def _facts(
    kind: SampleKind, labels: Sequence[Any], nobs: int, respondent: str | None, max_rows: int
) -> Sample:
    """Return the public facts of a sample."""
    unit: Unit = "row" if respondent is None else "respondent"
    return Sample(kind, tuple(map(str, labels)), nobs, unit, max_rows)


def _in_parts(
    view: frames.Frame,
    columns: Sequence[str],
    respondent: str | None,
    max_rows: int,
    codes: Callable[[Any], IntArray],
) -> tuple[int, Parts | None]:
    """Return how many units there are, and if any, their rows in parts.

    `codes` returns those of the rows of a part, which has these columns.
    """

    def count(part: Any) -> tuple[int, Rows]:
        cells = narrow(codes(part))
        if respondent is None:
            name = np.zeros(len(cells), dtype=np.uint64)
            return len(cells), Rows(name, np.arange(len(cells)), cells)
        owner = frames.keys_of(part, [respondent], None)[0][respondent]
        nobs = units_of(owner, respondent, np.ones(len(cells), dtype=np.int64), max_rows)
        # the rows of each in one order, whatever that of the frame
        person = narrow(owner.codes)
        order = np.lexsort((*cells.T, person))
        return nobs, Rows(frames.numbers_of_names(owner.values), person[order], cells[order])

    names = list(dict.fromkeys([*columns] if respondent is None else [*columns, respondent]))
    nobs, people = count_parts(view, names, respondent, count, lambda *counts: sum(counts))
    return nobs or 0, people if nobs else None


def _labels_of_array(
    ranks: NDArray[Any], items: tuple[str, ...] | None, purpose: Purpose
) -> tuple[str, ...]:
    names = items or tuple(str(k) for k in range(ranks.shape[1]))
    check_several(names, purpose)
    if len(names) != ranks.shape[1]:
        raise ValueError(
            f"items must name the {ranks.shape[1]} columns of the array, got {len(names)} names."
        )
    return names


def _rank_columns(
    frame: object, declared: tuple[str, ...] | None, respondent: str | None, purpose: Purpose
) -> tuple[frames.Frame, tuple[str, ...]]:
    """Return a view of a rankings frame, and the names of the items."""
    if respondent is not None:
        check_name(respondent, "respondent")
    if declared is None and isinstance(frame, pd.DataFrame):
        check_names("columns", [name for name in frame.columns if name != respondent])
    frame, view = open_rows(frame, respondent, "rankings")
    names = frames.column_names(view)
    labels = declared or tuple(name for name in names if name != respondent)
    check_several([name for name in names if name != respondent], purpose)
    if absent := [label for label in labels if label not in names]:
        raise ValueError(_NO_COLUMN.format(absent[0], _remedy(names, "items= names the columns")))
    if respondent in labels:
        raise ValueError("items= and respondent= must name different columns.")
    check_several(labels, purpose)
    numeric = frames.numeric_columns(view, labels)
    if texts := [label for label in labels if label not in numeric]:
        raise TypeError(_NO_RANKS.format(texts[0], len(labels), _remedy(names, _NUMBERS)))
    return view, labels


def _remedy(names: Sequence[str], first: str) -> str:
    """Return what to do with a frame that holds no ranks: `first` this, unless it holds pairs."""
    if {"item1", "item2"} <= set(names) or {"winner", "loser"} <= set(names):
        return (
            "pairs are for PrivateBTL, whose summary tests equal worths and whose formula "
            "'item1 + item2 + outcome ~ group' compares groups"
        )
    other = f"for data of another form use {frames.AS_RANKINGS}, 'orders' where cells name items"
    return f"{first}; {other}"


def encode_choices(
    frame: object,
    column: str,
    *,
    categories: object = None,
    known: object = None,
    respondent: str | None = None,
    max_rows: object = 1,
    least: int = FEWEST_UNITS,
    word: str = "categories",
) -> EncodedSample:
    """Validate a column of choices.

    The categories are those of the call, by its argument `word`; else those of a polars Enum, or
    False and True; else those `known` from a null hypothesis. All else as for
    :func:`encode_rankings`.
    """
    bound = check_count("max_rows", max_rows)
    frame, view = open_rows(frame, respondent, "data")
    own = frames.declared_values(frame, column)
    declared = next((given for given in (categories, own, known) if given is not None), None)
    if declared is None:
        raise undeclared(word, f"{word}=[...]")
    labels = check_items(declared, word)
    place = f"{word}=" if declared is not known else "the names of null"
    remedy = f"{place}; declare one for no answer, or impute; counts are for from_counts"

    def places(keys: Mapping[str, frames.Key]) -> IntArray:
        return declared_codes(keys[column], labels, column, word, remedy)

    def codes(part: Any) -> IntArray:
        return places(frames.keys_of(part, [column], None)[0])[:, None]

    if respondent is None:
        # the counts by category say all there is
        keys, size = frames.tally(frames.grouped(view, [column]), [column], None)
        nobs, people, counts = int(size.sum()), None, sum_by(places(keys), size, len(labels))
    else:
        counts = np.zeros(len(labels), dtype=np.int64)
        nobs, people = _in_parts(view, [column], respondent, bound, codes)
    if least:
        frames.check_rows(nobs, "data")
    sample = _facts("choices", labels, enough(nobs, least), respondent, bound)
    return EncodedSample(sample, counts, people)


def encode_data(
    data: object,
    *,
    items: object = None,
    categories: object = None,
    respondent: str | None = None,
    max_rows: object = 1,
    ties: object = "refuse",
    missing: object = "refuse",
    known: object = None,
) -> EncodedSample:
    """Validate a rankings frame, or a Series of choices, whichever is given.

    `items` are the item columns of rankings; `categories`, or else `items`, those of choices,
    `known` as for :func:`encode_choices`; `ties` and `missing` the words of a test
    (:data:`privrank.plans.nullmodel.Ties`).
    """
    shared, gaps = as_declared(ties, missing)
    declared = items if categories is None else categories
    data = _of_lists(data, known if declared is None else declared)
    column = frames.column_of(data, "choice")
    if column is None:
        refuse_categories(categories)
        return encode_rankings(
            data, items=items, respondent=respondent, max_rows=max_rows, ties=shared, missing=gaps
        )
    refuse_partial(shared, gaps)
    if respondent is not None or max_rows != 1:
        raise ValueError(
            "respondent= and max_rows= need a frame: use from_formula('choice ~ 1', data, "
            "respondent=...)."
        )
    word = "categories" if items is None else "items"
    return encode_choices(column, "choice", categories=declared, known=known, word=word)


def _of_lists(data: object, declared: object) -> object:
    """Return lists of ranks as an array, and a list of choices, if declared, as a Series.

    All else as it is.
    """
    if isinstance(data, list | tuple | np.ndarray) and (array := as_array(data)).size:
        if array.ndim == 2:
            return array
        if array.ndim == 1 and declared is not None:
            return pd.Series(list(data))
    return data


def encode_counts(
    counts: object, categories: object, *, least: int = FEWEST_UNITS
) -> EncodedSample:
    """Validate how often each declared category was chosen; one counted choice is the unit.

    What was counted may list just the categories that were chosen. `least` as for
    :func:`encode_rankings`.
    """
    if categories is None:
        raise undeclared("categories", "categories=[...]")
    labels = check_items(categories, "categories")
    if isinstance(counts, Mapping | pd.Series):
        # a count may be of one category alone: that is up to those who chose
        named = list(counts.keys())
        if len(set(named)) < len(named) or not set(named) <= set(labels):
            raise ValueError(
                "counts must be of declared categories, each once: at least one is not listed, or "
                "is there twice."
            )
        given = dict(counts.items())
        counts = [given.get(label, 0) for label in labels]
    table = as_numbers(counts)
    if table is None or len(table) != len(labels):
        raise TypeError(
            f"counts must be a mapping, a Series or a sequence with one number for each of the "
            f"{len(labels)} categories."
        )
    if not (np.isfinite(table).all() and (table >= 0).all() and (table % 1 == 0).all()):
        raise ValueError("counts must be whole numbers of at least 0: at least one is not.")
    if table.sum() > LARGEST_TOTAL:
        raise ValueError(
            f"counts must add up to at most {LARGEST_TOTAL:,}, which is what whole-number "
            f"statistics hold: count in larger units."
        )
    sample = _facts("choices", labels, enough(int(table.sum()), least), None, 1)
    return EncodedSample(sample, table.astype(np.int64))


def sample_of_formula(
    formula: object,
    data: object,
    arguments: Mapping[str, Any],
    purpose: Purpose = "test",
    known: object = None,
) -> EncodedSample:
    """Encode what a formula names: rankings ``"a + b + c ~ 1"``, or choices ``"choice ~ 1"``.

    `known` as for :func:`encode_choices`.
    """
    parsed = parse(formula)
    if parsed.right or not parsed.intercept:
        raise ValueError(
            f"formula must have '~ 1' on its right, got {formula!r}: to compare groups use "
            f"ClosenessTest."
        )
    options = formula_options(parsed.left, arguments, set(), purpose)
    if len(parsed.left) == 1:
        options["known"] = known
    if not isinstance(data, np.ndarray):
        frames.check_named(data, parsed.left)
    return encode_columns(data, parsed.left, **options)


def encode_columns(frame: object, left: Sequence[str], **options: Any) -> EncodedSample:
    """Validate what the left side of a formula names: rankings, or one column of choices."""
    if len(left) > 1:
        return encode_rankings(frame, items=left, **options)
    return encode_choices(frame, left[0], **options)


def _rank_cells(view: frames.Frame, labels: Sequence[str]) -> NDArray[Any]:
    """Return numeric columns as whole numbers if all are, else as floats with NaN where missing."""
    table = frames.collect(view, labels)
    whole = all(isinstance(kind, np.dtype) and kind.kind in "iu" for kind in table.dtypes)
    return table.to_numpy() if whole else frames.numbers(table)


def ranks_by_name(frame: object, items: Sequence[str]) -> NDArray[Any]:
    """Return the ranks in a frame's columns of these names, for simulations."""
    _, view = open_rows(frame, None, "ranks")
    remedy = "give its columns the names of the items, or use an array with columns in their order"
    check_present(items, frames.column_names(view), "ranks", remedy)
    if len(frames.numeric_columns(view, items)) < len(items):
        raise TypeError("ranks must hold numbers in the column of every item: convert them before.")
    cells = _rank_cells(view, items)
    return cells.astype(np.int64) if (cells % 1 == 0).all() else cells


def half_codes(cells: NDArray[Any], missing: Missing | None) -> IntArray:
    """Return twice the ranks, which are whole numbers, and a code where one is missing."""
    code = 2 * cells.shape[1] + 2 if missing == "bottom" else 0
    return np.nan_to_num(2.0 * cells, nan=code).astype(np.int64)


def count_orders(ranks: IntArray) -> IntArray:
    """Return how often each of the m! rankings occurs, given ranks (n, m)."""
    from privrank.kernels.rankings import places_of

    return np.bincount(places_of(ranks), minlength=math.factorial(ranks.shape[1]))
