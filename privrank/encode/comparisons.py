"""From a user's data frame to sensitive counts: validate, bound, count.

The only place that sees a user's frame. Conventions: in a comparisons frame `outcome` is 1 when
item1 is preferred, 0 for a tie, -1 when item2 is preferred, missing when not answered; `net` is
wins minus losses, an integer per item. Messages name columns and rules, never a cell's value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.bradley_terry.linear import check_identified
from privrank.encode import counting
from privrank.encode.comparisoncolumns import ComparisonColumns, check_fixed, open_comparisons
from privrank.encode.encoded import Encoded, Rows, answers_by_person, sum_by
from privrank.encode.formula import factors_of, parse
from privrank.encode.frames import (
    UNSTATED,
    check_named,
    check_respondents,
    check_rows,
    declared_items,
)
from privrank.encode.paircounts import public_pairs
from privrank.encode.predictor import (
    FIRST,
    Predictor,
    check_constant,
    patterns_of,
    read_predictor,
)
from privrank.privacy.budget import Unit
from privrank.release.connected import check_connected
from privrank.release.covariates import Covariates
from privrank.release.survey import Design, DesignKind, Excess
from privrank.util.checks import check_choice, check_count, check_flag

__all__ = [
    "encode_comparisons",
    "formula_columns",
]

IntArray = NDArray[np.int64]

_MOST_DRAWN = 2**28
"""Rows of all respondents together that a draw has memory for."""

_DRAW = "let excess='sample' keep a secret random choice of each respondent's rows"


def encode_comparisons(
    frame: object,
    columns: ComparisonColumns,
    *,
    items: object,
    max_rows: object,
    distinct_pairs: object,
    ties: object,
    design: object,
    pair_counts: object,
    excess: object = "refuse",
    predictor: Predictor | None = None,
) -> Encoded:
    """Validate and count a comparisons frame.

    Parameters
    ----------
    frame : data frame
        Long comparisons; any frame narwhals supports.
    columns : ComparisonColumns
        The columns' names.
    items : sequence of str or None
        The declared items; None takes those that the frame declares.
    max_rows : int
        Public bound on a respondent's rows.
    distinct_pairs, ties : bool
        Public declarations: no pair twice within a respondent; ties allowed.
    design : {"public", "private"}
        Whether who compared which pairs is public.
    pair_counts : None, "release", "equal", mapping or data frame
        Under a private design, what the public may know of the comparisons per pair; None is
        ``"release"``.
    excess : {"refuse", "sample"}
        What to do about rows beyond the bounds: refuse the frame, or let every fit draw rows.
    predictor : Predictor or None
        The covariates, if the model has any.

    Raises
    ------
    ValueError, TypeError
        One sentence, for every way a frame can break the rules above.
    """
    kind: DesignKind = check_choice("design", design, DesignKind)
    sampled = _check_excess(excess, columns.respondent, kind) == "sample"
    rows = check_count("max_rows", max_rows)
    distinct = check_flag("distinct_pairs", distinct_pairs)
    tied = check_flag("ties", ties)
    unit: Unit = "row" if columns.respondent is None else "respondent"
    covariates = () if predictor is None else predictor.columns
    frame, view = open_comparisons(frame, columns, items, covariates)
    check_fixed(frame, view, kind, columns.respondent, predictor)
    _check_numeric(view, columns.outcome)
    labels = declared_items(
        frame, (columns.item1, columns.item2), items, public=_known(kind, columns)
    )
    read = _read(view, columns, labels, covariates, ties=tied)
    described, pattern = None, np.zeros(len(read.size), dtype=np.int64)
    if predictor is not None:
        pattern, described = _patterns(
            predictor, read.keys, read.first_named, columns.respondent, kind
        )
    pairs, edge, place = _by_pair(read, pattern, len(labels))
    answers, person, drawn, nobs = None, None, None, int(read.size.sum())
    if columns.respondent is not None:
        key = read.keys[columns.respondent]
        person, nobs = key.codes, len(key.values)
        most = math.inf if sampled else rows
        remedy = f", or {_DRAW}" if kind == "private" else ""
        check_respondents(person, read.size, columns.respondent, most, remedy)
        if sampled:
            if columns.counts is not None and not distinct:
                _check_room(nobs, rows)
            drawn = _drawn(read, _by_name(key), edge, pairs)
        else:
            if distinct:
                _check_distinct(person, place, read.size, remedy)
            answers = answers_by_person(person, edge, read.comparisons, read.net, len(pairs[0]))
    facts = Design(
        items=tuple(str(label) for label in labels),
        nobs=nobs,
        unit=unit,
        max_rows=rows,
        distinct_pairs=distinct,
        ties=tied,
        kind=kind,
        pairs=None,
        excess="sample" if sampled else "refuse",
    )
    public = public_pairs(facts, pairs, pair_counts, labels)
    if public is not None:
        check_connected(public, facts.items)
    facts = replace(facts, pairs=public)
    units = None
    if described is not None:
        units = _units(described.kinds[pattern], read.size, person, described)
        known = replace(described, units=units) if kind == "public" else described
        facts = replace(facts, covariates=known)
        if kind == "public":
            check_identified(facts)
    if drawn is not None:
        return Encoded.unbounded(facts, drawn, units)
    return Encoded(facts, pairs, answers, units)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows that are alike, counted: their keys, number, pair of items, and answers."""

    keys: Mapping[str, counting.Key]
    size: IntArray
    low: IntArray
    high: IntArray
    first_named: IntArray
    comparisons: IntArray
    net: IntArray


def _read(
    view: Any,
    columns: ComparisonColumns,
    labels: tuple[Any, ...],
    covariates: tuple[str, ...],
    *,
    ties: bool,
) -> _Rows:
    """Count the rows that are alike, items in the order of `labels` within each pair."""
    named = (columns.respondent, columns.item1, columns.item2, columns.outcome, *covariates)
    by = list(dict.fromkeys(name for name in named if name is not None))
    keys, size = counting.tally(view, by, columns.outcome, columns.counts)
    if columns.respondent is None:
        # what counts 0 is no unit, whereas a respondent without comparisons is one
        keys = {name: counting.Key(key.codes[size > 0], key.values) for name, key in keys.items()}
        size = size[size > 0]
    check_rows(len(size), "comparisons", ", and one that counts")
    first = _item_codes(keys[columns.item1], labels, columns.item1)
    second = _item_codes(keys[columns.item2], labels, columns.item2)
    if (first == second).any():
        raise ValueError(
            f"columns {columns.item1!r} and {columns.item2!r} must name two different items: at "
            f"least one row compares an item with itself."
        )
    answered, sign = _outcomes(keys, columns.outcome, len(size), ties)
    order = np.where(first > second, -1, 1)
    low, high = np.minimum(first, second), np.maximum(first, second)
    return _Rows(keys, size, low, high, order, size * answered, size * sign * order)


def _by_pair(
    read: _Rows, pattern: IntArray, items: int
) -> tuple[tuple[IntArray, IntArray, IntArray, IntArray], IntArray, IntArray]:
    """Return the counts per pattern and pair, and the edge and the pair of each group of rows."""
    # pairs are numbered first, so that no code below exceeds the square of the number of rows
    seen, place = counting.distinct_codes(read.low * items + read.high, items**2)
    edges, edge = np.arange(len(seen)), place
    if pattern.any():
        span = (int(pattern.max()) + 1) * len(seen)
        edges, edge = counting.distinct_codes(pattern * len(seen) + place, span)
    start, pair = edges // len(seen) * items, seen[edges % len(seen)]
    counts = sum_by(edge, read.comparisons, len(edges)), sum_by(edge, read.net, len(edges))
    return (start + pair // items, start + pair % items, *counts), edge, place


def _by_name(key: counting.Key) -> IntArray:
    """Return respondents by the order of their names, or as they appear if these have no order."""
    try:
        order = np.argsort(key.values, kind="stable")
    except TypeError:
        return key.codes
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[key.codes]


def _check_room(nobs: int, rows: int) -> None:
    """Refuse, by public numbers, more rows than can be drawn where rows stand for many."""
    if nobs * rows > _MOST_DRAWN:
        raise ValueError(
            f"max_rows={rows} must be at most {_MOST_DRAWN // nobs} for counted rows of {nobs} "
            f"respondents, because excess='sample' draws so many for each: state a smaller bound."
        )


def _drawn(read: _Rows, person: IntArray, edge: IntArray, pairs: tuple[IntArray, ...]) -> Rows:
    """Return the answers from which fits draw, in an order that is not that of the frame's rows."""
    answered = np.flatnonzero(read.comparisons)
    code = 3 * (person * len(pairs[0]) + edge) + np.sign(read.net) + 1
    cells, place = np.unique(code[answered], return_inverse=True)
    cell, size = cells // 3, sum_by(place, read.comparisons[answered], len(cells))
    whose, pair = cell // len(pairs[0]), cell % len(pairs[0])
    return Rows(pairs[0], pairs[1], whose, pair, cells % 3 - 1, size)


def _patterns(
    predictor: Predictor,
    keys: Mapping[str, counting.Key],
    first_named: IntArray,
    respondent: str | None,
    kind: DesignKind,
) -> tuple[IntArray, Covariates]:
    """Return the pattern of each group of rows, and the covariates with their patterns.

    Under a public design the patterns are those that occur; under a private one all cells.
    """
    facts = predictor.covariates
    if kind == "private" and (facts.bounds or facts.ordered):
        what = "numeric covariates need" if facts.bounds else "an order effect needs"
        raise ValueError(
            f"{what} design='public', because the fit has to know who has which value: use it if "
            f"that is public, or cut numbers into declared levels."
        )
    cell, position, order = patterns_of(predictor, keys, first_named)
    if respondent is not None:
        person = keys[respondent].codes
        check_constant(person, np.column_stack((cell, position)), predictor.columns)
    if kind == "private":
        cells = np.arange(facts.cells)
        none = np.zeros((facts.cells, 0), dtype=np.int64)
        return cell, replace(facts, cell=cells, position=none, first=np.zeros_like(cells))
    table = np.column_stack((cell, position, order))
    distinct, pattern = np.unique(table, axis=0, return_inverse=True)
    described = replace(
        facts, cell=distinct[:, 0], position=distinct[:, 1:-1], first=distinct[:, -1]
    )
    return pattern.ravel(), described


def _units(
    kind: IntArray, size: IntArray, person: IntArray | None, covariates: Covariates
) -> IntArray:
    """Return, by pattern, the units with its covariates, in whichever order items were named."""
    by_pattern = covariates.kinds
    kinds = int(by_pattern.max()) + 1
    if person is None:
        return sum_by(kind, size, kinds)[by_pattern]
    each = np.unique(person * kinds + kind) % kinds
    return np.bincount(each, minlength=kinds).astype(np.int64)[by_pattern]


def _known(design: object, columns: ComparisonColumns) -> bool:
    """Return whether it is public which items each of the two columns names.

    Of decided comparisons it never is: which items have won is up to the answers.
    """
    return design == "public" and not columns.decided


def _check_numeric(view: counting.Frame, outcome: str | None) -> None:
    if outcome is None or counting.numeric_columns(view, [outcome]):
        return
    if counting.boolean_column(view, outcome):
        raise TypeError(
            f"column {outcome!r} must be numeric, and its type is that of True and False: convert "
            f"the frame with privrank.as_comparisons(frame, 'long', codes={{'first': True, "
            f"'second': False}}, ...) if True means that the first item was preferred."
        )
    raise TypeError(
        f"column {outcome!r} must be numeric with 1 = first item preferred, 0 = tie, -1 = "
        f"second item preferred, missing = not answered: recode it, or convert numbers held as "
        f"objects with pandas.to_numeric."
    )


def _item_codes(key: counting.Key, labels: tuple[Any, ...], column: str) -> IntArray:
    # objects are looked up as they are, without guessing a type for them
    kind = key.values.dtype if key.values.dtype == object else None
    place = pd.Index(labels, dtype=kind).get_indexer(pd.Index(key.values, dtype=kind))
    # a missing entry, code -1, reads the sentinel put last
    codes = np.append(place, -1)[key.codes]
    if (codes < 0).any():
        raise ValueError(
            f"column {column!r} must hold declared items only: at least one entry is missing or "
            f"not in items=, as the column's own distinct values compared with items= will show."
        )
    return np.asarray(codes, dtype=np.int64)


def _outcomes(
    keys: Mapping[str, counting.Key], outcome: str | None, size: int, ties: bool
) -> tuple[IntArray, IntArray]:
    """Return, per group of rows, whether it was answered and the sign of the answer."""
    if outcome is None:
        return np.ones(size, dtype=np.int64), np.ones(size, dtype=np.int64)
    codes = np.append(keys[outcome].values.astype(np.float64), np.nan)[keys[outcome].codes]
    missing = np.isnan(codes)
    if not (missing | np.isin(codes, (-1.0, 0.0, 1.0))).all():
        raise ValueError(
            f"column {outcome!r} must hold 1 (first item preferred), 0 (tie), -1 (second item "
            f"preferred) or missing: recode the other values."
        )
    if not ties and (codes == 0).any():
        raise ValueError(
            f"column {outcome!r} must hold no 0, because ties=False declares that there are no "
            f"ties: use ties=True if the questionnaire allows them, or recode a 0/1 column x as "
            f"2 * x - 1 if 0 means that the second item was preferred."
        )
    return (~missing).astype(np.int64), np.where(missing, 0.0, codes).astype(np.int64)


def _check_excess(excess: object, respondent: str | None, kind: DesignKind) -> Excess:
    chosen: Excess = check_choice("excess", excess, Excess)
    if chosen == "sample" and respondent is None:
        raise ValueError(
            "excess='sample' draws among the rows of a respondent: name the column that says whose "
            "they are with respondent=, or leave excess= out."
        )
    if chosen == "sample" and kind == "public":
        raise ValueError(
            "excess='sample' needs design='private', because which rows are kept has to stay "
            "secret: use that, or choose each respondent's rows by a rule that was fixed before "
            "the answers were known."
        )
    return chosen


def _check_distinct(person: IntArray, pair: IntArray, size: IntArray, remedy: str) -> None:
    _, place = np.unique(person * (int(pair.max()) + 1) + pair, return_inverse=True)
    if np.bincount(place, size).max() > 1:
        raise ValueError(
            f"distinct_pairs=True promises that a respondent compares each pair at most once, and "
            f"at least one repeats a pair: use distinct_pairs=False, aggregate first{remedy}."
        )


def formula_columns(formula: str, data: object, arguments: dict[str, Any]) -> Encoded:
    """Encode the comparisons that a formula names.

    Given ``"item1 + item2 + outcome ~ 1"`` or ``"winner + loser ~ 1"``, covariates in the place of
    1, and the other arguments of :func:`encode_comparisons` and
    :func:`privrank.encode.predictor.read_predictor` as users write them.
    """
    parsed = parse(formula)
    if len(parsed.left) not in (2, 3):
        raise ValueError(
            f"formula must name two columns (winner + loser) or three (item1 + item2 + outcome) on "
            f"its left, got {formula!r}."
        )
    known = {"items", "respondent", "max_rows", "distinct_pairs", "ties", "design", "pair_counts"}
    known |= {"counts", "excess"}
    extra = {"levels", "bounds", "item_formula", "item_data"}
    if not arguments.keys() <= known | extra:
        raise TypeError(
            f"from_formula takes the arguments {', '.join(sorted(known | extra))} beside formula "
            f"and data."
        )
    present = check_named(data, parsed.left)
    if set(parsed.left) == {"item1", "item2"} and "outcome" in present:
        raise ValueError(
            f"formula must name item1 + item2 + outcome on its left where data has a column "
            f"'outcome', got {formula!r}: name all three, or rename that column, or leave it "
            f"out, if the first item always won."
        )
    decided = len(parsed.left) == 2
    respondent = arguments.get("respondent", UNSTATED)
    item1, item2 = parsed.left[:2]
    outcome = None if decided else parsed.left[2]
    counts = arguments.get("counts")
    columns = ComparisonColumns(item1, item2, outcome, respondent, counts, decided)
    predictor = None
    given = {name: arguments.get(name) for name in sorted(extra)}
    if parsed.right or not parsed.intercept or any(v is not None for v in given.values()):
        covariates = tuple(factor.column for factor in factors_of(parsed.right_text))
        frame, _ = open_comparisons(data, columns, arguments.get("items"), covariates)
        design = arguments.get("design")
        labels = declared_items(
            frame, (item1, item2), arguments.get("items"), public=_known(design, columns)
        )
        public = design == "public"
        predictor = read_predictor(parsed.right_text, frame, labels, **given, public=public)
        if {*parsed.left, respondent, counts} & set(predictor.columns):
            raise ValueError(
                f"formula must not use columns of its left side, nor those of respondents and "
                f"counts, as covariates, got {formula!r}: they would make the answers public."
            )
        if decided and FIRST in covariates:
            raise ValueError(
                f"formula must name item1, item2 and outcome on its left for an order effect, got "
                f"{formula!r}: a frame of winners and losers does not say which was named first."
            )
    return encode_comparisons(
        data,
        columns,
        items=arguments.get("items"),
        max_rows=arguments.get("max_rows", 1),
        distinct_pairs=arguments.get("distinct_pairs", True),
        ties=arguments.get("ties", False),
        design=arguments.get("design", "private"),
        pair_counts=arguments.get("pair_counts"),
        excess=arguments.get("excess", "refuse"),
        predictor=predictor,
    )
