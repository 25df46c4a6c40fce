"""From a user's frame of comparisons to sensitive counts: validate, bound, count.

Conventions: in a comparisons frame `outcome` is 1 when item1 is preferred, 0 for a tie, -1 when
item2 is preferred, missing when not answered; `net` is wins minus losses, an integer per item.
Messages name columns and rules, never a cell's value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from privrank.bradley_terry.linear import check_identified
from privrank.bradley_terry.modelmatrix import FIRST, Predictor, Schema, declare
from privrank.bradley_terry.paircounts import check_connected
from privrank.encode import clusters, coding, frames
from privrank.encode.encoded import (
    NONE,
    Encoded,
    RespondentBlock,
    RespondentBlocks,
    check_apart,
    check_distinct,
    declared_codes,
    in_order,
    narrow,
    refuse_unused,
    sum_by,
    units_of,
)
from privrank.plans.choice import check_excess, check_ties, declared_pairs
from privrank.release.survey import (
    Covariates,
    Design,
    DesignKind,
    PairCounts,
    Ties,
    scaled_position,
)
from privrank.util.arrays import IntArray
from privrank.util.checks import (
    UNSTATED,
    check_choice,
    check_count,
    check_flag,
    check_name,
)
from privrank.util.formula import factors_of, parse

_MAX_DRAWN = 2**28
"""Rows of all respondents together that a draw has memory for."""

_OPTIONS = {"items", "max_rows", "distinct_pairs", "ties", "design", "pair_counts", "excess"}
_OF_COVARIATES = {"levels", "bounds", "item_formula", "item_data"}
"""What a formula takes beside the columns: options of :func:`encode_comparisons`, declarations."""


@dataclass(frozen=True, slots=True)
class ComparisonColumns:
    """Which columns of a comparisons frame mean what; when `decided`, item1 always wins."""

    item1: str
    item2: str
    outcome: str | None
    respondent: str | None
    counts: str | None = None
    decided: bool = False


def open_comparisons(
    frame: object, columns: ComparisonColumns, covariates: Sequence[str] = ()
) -> tuple[object, frames.Frame]:
    """Return a frame with the respondent as a column, and its view; refuse one without the columns.

    Given the columns, and the names of covariates.
    """
    if isinstance(frame, np.ndarray):
        raise TypeError(
            f"comparisons must be a data frame with a row per comparison, got ndarray: convert a "
            f"matrix of wins with {frames.AS_COMPARISONS} first."
        )
    respondent = None if columns.respondent is UNSTATED else columns.respondent
    frame = frames.with_respondent_column(frame, respondent)
    view = frames.open_frame(frame, "comparisons")
    present = frames.column_names(view)
    roles = {
        "item1": columns.item1,
        "item2": columns.item2,
        "outcome": columns.outcome,
        "respondent": respondent,
        "counts": columns.counts,
    }
    left_out = {"respondent", "counts"} | ({"outcome"} if columns.decided else set())
    # a role that may be missing is left out where it has no name; all others are checked below
    given = {role: name for role, name in roles.items() if name is not None or role not in left_out}
    after = {"respondent": "respondent", "outcome": frames.LIST_OUTCOME}
    for role, name in given.items():
        check_name(name, role)
        if name in present:
            continue
        if after.get(role) in present:
            raise ValueError(
                f"comparisons has no column {name!r}: use {role}={after[role]!r}, the name of that "
                f"column after {frames.AS_COMPARISONS}."
            )
        raise ValueError(
            f"comparisons has no column {name!r}: name the right one with {role}=, or convert data "
            f"of another form with {frames.AS_COMPARISONS}."
        )
    frames.check_stated(columns.respondent)
    if respondent is not None:
        frames.check_respondents(view, respondent)
    refuse_unused(present, (*given.values(), *covariates), "comparisons")
    if len(set(given.values())) < len(given):
        raise ValueError(f"{'=, '.join(given)}= must name different columns.")
    return frame, view


def check_fixed(
    frame: object,
    view: frames.Frame,
    kind: DesignKind,
    columns: ComparisonColumns,
    predictor: Predictor | None,
) -> None:
    """Refuse to take as public what the form of the data has not fixed before the answers.

    Given the kind of design, the columns, and the covariates if there are any.

    **Privacy.** Which pairs a list compares is decided by what it lists, and so is their number,
    which is public where each comparison is a unit of its own. The outcome column of such frames
    has a name of its own, which the call has to state, and which merges extend only. A frame
    that has it never gets a public design, whatever is taken as the outcome
    (:func:`privrank.as_comparisons`). A refusal says nothing of the answers.
    """
    present = frames.column_names(view)
    if frames.has_lists(present) and (kind == "public" or columns.respondent is None):
        raise ValueError(
            f"Comparisons read from lists of some items (column {frames.LIST_OUTCOME!r}) need "
            f"design='private' and respondent=, because which pairs a list compares is part of the "
            f"answer. Leave design= out, and name the column that says whose list it is."
        )
    ordered = predictor is not None and predictor.covariates.ordered
    if ordered and frames.is_unordered(frame, present):
        raise ValueError(
            f"formula must not have 'first' for comparisons whose form does not say which item was "
            f"named first (mark {frames.ORDER_FROM!r}): give a frame with item1 and item2 in the "
            f"order of the questionnaire, of form='long' or 'wide'."
        )


def encode_comparisons(
    frame: object,
    columns: ComparisonColumns,
    *,
    items: object = None,
    max_rows: object = 1,
    distinct_pairs: object = True,
    ties: object = False,
    design: object = "private",
    pair_counts: object = None,
    excess: object = "refuse",
    predictor: Predictor | None = None,
) -> Encoded:
    """Validate and count a comparisons frame.

    Given the columns' names, the arguments of :class:`privrank.PrivateBTL`, and the covariates if
    the model has any. Every way a frame can break the rules raises a ValueError or a
    TypeError with a short message.
    """
    kind: DesignKind = check_choice("design", design, DesignKind)
    sampled = check_excess(excess, columns.respondent, kind) == "sample"
    bound = check_count("max_rows", max_rows)
    distinct = check_flag("distinct_pairs", distinct_pairs)
    tied = check_ties(
        ties,
        decided=columns.decided,
        facts=None if predictor is None else predictor.covariates,
    )
    # what names and types of columns decide comes first: no cell is read for it
    frame, view = open_comparisons(frame, columns, () if predictor is None else predictor.columns)
    check_fixed(frame, view, kind, columns, predictor)
    _check_numeric(view, columns.outcome, predictor)
    labels = frames.declared_items(
        frame, (columns.item1, columns.item2), items, public=_known(kind, columns)
    )
    rules = ComparisonSpec(columns, labels, bound, distinct, tied, kind, sampled, predictor)
    counted, parts = count_all(view, rules)
    first, second = np.divmod(counted.codes, len(labels))
    second += first // len(labels) * len(labels)
    pairs = first, second, counted.comparisons, counted.net
    facts = Design(
        items=tuple(str(label) for label in labels),
        nobs=counted.nobs,
        unit="row" if parts is None else "respondent",
        max_rows=bound,
        distinct_pairs=distinct,
        ties=tied,
        kind=kind,
        pairs=None,
        excess="sample" if sampled else "refuse",
    )
    # public facts are those the design declares; only a public design reads them off the data
    public = public_pairs(facts, pairs, pair_counts, labels)
    if public is not None:
        check_connected(public, facts.items)
    facts = replace(facts, pairs=public, covariates=counted.described)
    if facts.covariates is not None and kind == "public":
        check_identified(facts)
    # with excess="sample" the counts wait for the secret draw of a fit
    if sampled and columns.counts is not None and not distinct:
        _check_room(facts.nobs, bound)
    pairs = (first, second, NONE, NONE) if sampled else pairs
    return Encoded(facts, pairs, parts, counted.units, sampled, counted.ties)


@dataclass(frozen=True, slots=True)
class ComparisonSpec:
    """What is declared of comparisons: what each part of a frame is validated and counted by."""

    columns: ComparisonColumns
    labels: tuple[Any, ...]
    max_rows: int
    distinct_pairs: bool
    ties: Ties
    kind: DesignKind
    sampled: bool
    predictor: Predictor | None

    @property
    def sampling(self) -> bool:
        """Whether a fit could draw from more rows than a bound allows."""
        return self.kind == "private"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CountedRows:
    """What a frame, or whole respondents of it, count: numbers of units, and counts by pair.

    Pairs have the numbers of :class:`privrank.encode.encoded.RespondentBlock`; `units` are by
    pattern of the covariates that `described` describes; `ties` is one number.
    """

    nobs: int
    codes: IntArray
    comparisons: IntArray
    net: IntArray
    ties: IntArray
    units: IntArray | None
    described: Covariates | None


def count_all(
    view: frames.Frame, rules: ComparisonSpec
) -> tuple[CountedRows, RespondentBlocks | None]:
    """Return what a frame counts in all, and its respondents, where these are the units."""
    columns = rules.columns
    predictor = rules.predictor
    used = (
        *(columns.respondent, columns.item1, columns.item2, columns.outcome, columns.counts),
        *(() if predictor is None else predictor.columns),
    )
    names = list(dict.fromkeys(name for name in used if name is not None))
    rows = columns.respondent is None
    if rows:
        view = frames.numbered(view, (columns.item1, columns.item2), rules.labels)
        view = frames.grouped(view, names)
    # patterns that are numbered as they are met need all rows at once, and so do counts in total
    whole = rules.kind == "public" and predictor is not None or rows and columns.counts is not None
    names = frames.column_names(view) if rows else names
    total, parts = clusters.count_parts(
        view, names, columns.respondent, partial(count, rules=rules), _added, whole=whole
    )
    frames.check_rows(0 if total is None else total.nobs, "comparisons")
    return total, None if rows else parts


def _added(*pieces: CountedRows) -> CountedRows:
    """Return what some parts count in all; no respondent is in two of them."""
    met = np.concatenate([piece.codes for piece in pieces])
    codes, place = coding.distinct_codes(met, int(met.max(initial=0)) + 1)
    comparisons, net = np.zeros((2, len(codes)), dtype=np.int64)
    for piece in pieces:  # whose codes differ
        here, place = np.split(place, [len(piece.codes)])
        comparisons[here] += piece.comparisons
        net[here] += piece.net
    by_pattern = [piece.units for piece in pieces if piece.units is not None]
    units = np.sum(by_pattern, axis=0) if by_pattern else None
    nobs = sum(piece.nobs for piece in pieces)
    ties = sum(piece.ties for piece in pieces)
    return CountedRows(nobs, codes, comparisons, net, np.asarray(ties), units, pieces[-1].described)


def count(view: Any, rules: ComparisonSpec) -> tuple[CountedRows, Any]:
    """Validate and count comparisons: of whole respondents, who are returned, or of rows."""
    columns = rules.columns
    predictor = rules.predictor
    items = len(rules.labels)
    covariates = () if predictor is None else predictor.columns
    _check_numeric(view, columns.outcome, predictor)
    # from here on rows that are alike are one entry, with their number
    read = _read(view, columns, rules.labels, covariates, ties=rules.ties)
    owner = None if columns.respondent is None else read.keys[columns.respondent]
    person = None if owner is None else owner.codes
    bounded = not rules.sampled
    nobs = units_of(
        owner,
        columns.respondent,
        read.size,
        rules.max_rows if bounded else np.inf,
        sampling=rules.sampling,
    )
    described = None
    counted = None
    patterns = 1
    number = read.low * items + read.high
    if predictor is not None:
        pattern, described = read_patterns(
            predictor, read.keys, read.first_named, person, rules.kind
        )
        counted = units_by_pattern(pattern, read.size, person, described)
        described = replace(described, units=counted) if rules.kind == "public" else described
        patterns = int(pattern.max()) + 1
        number = pattern * items**2 + number
    codes, place = coding.distinct_codes(number, patterns * items**2)
    held = None
    if owner is not None:
        if rules.distinct_pairs and bounded:
            check_distinct(
                owner.codes, read.low * items + read.high, read.size, sampling=rules.sampling
            )
        held = _part(owner, codes, place, read)
    comparisons, net = (sum_by(place, x, len(codes)) for x in (read.comparisons, read.net))
    ties = read.comparisons.sum(keepdims=True) - np.abs(read.net).sum()
    return CountedRows(nobs, codes, comparisons, net, ties, counted, described), held


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows that are alike, counted: their keys, number, pair of items, and answers."""

    keys: Mapping[str, coding.Key]
    size: IntArray
    low: IntArray
    high: IntArray
    first_named: coding.Signs
    comparisons: IntArray
    net: IntArray


def _read(
    view: Any,
    columns: ComparisonColumns,
    labels: tuple[Any, ...],
    covariates: tuple[str, ...],
    *,
    ties: Ties,
) -> _Rows:
    """Count the rows that are alike, items in the order of `labels` within each pair."""
    named = (columns.respondent, columns.item1, columns.item2, columns.outcome, *covariates)
    by = list(dict.fromkeys(name for name in named if name is not None))
    counting = coding.tally if columns.respondent is None else coding.keys_of
    keys, size = counting(view, by, columns.outcome, columns.counts)
    if columns.respondent is None and not size.all():
        # what counts 0 is no unit, whereas a respondent without comparisons is one
        keys = {name: coding.Key(key.codes[size > 0], key.values) for name, key in keys.items()}
        size = size[size > 0]
    frames.check_rows(len(size), "comparisons")
    first, second = (
        declared_codes(keys[name], labels, name, "items") for name in (columns.item1, columns.item2)
    )
    check_apart(first, second, (columns.item1, columns.item2))
    answered, sign = coding.outcome_signs(keys, columns.outcome, len(size), ties)
    low, high, order = in_order(first, second)
    return _Rows(keys, size, low, high, order, size * answered, size * (sign * order))


def _check_room(nobs: int, rows: int) -> None:
    """Refuse, by public numbers, more rows than can be drawn where rows stand for many."""
    if nobs * rows > _MAX_DRAWN:
        raise ValueError(
            f"max_rows={rows} must be at most {_MAX_DRAWN // nobs} for counted rows of {nobs} "
            f"respondents, because excess='sample' draws so many for each: state a smaller bound."
        )


def _part(owner: coding.Key, codes: IntArray, place: IntArray, read: _Rows) -> RespondentBlock:
    """Return the answers of respondents, given the numbers of pairs and each row's place there."""
    answered = np.flatnonzero(read.comparisons)
    # one number for respondent, pair and answer: sorted, they forget the order of the rows
    number = owner.codes[answered] * len(codes) + place[answered]
    number = 3 * number + np.sign(read.net[answered]) + 1
    cells, entry = np.unique(number, return_inverse=True)
    size = sum_by(entry, read.comparisons[answered], len(cells))
    person, pair = np.divmod(cells // 3, len(codes))
    return RespondentBlock(
        coding.numbers_of_names(owner.values),
        *map(narrow, (person, codes[pair], cells % 3 - 1, size)),
    )


def _known(design: object, columns: ComparisonColumns) -> bool:
    """Return whether it is public which items each of the two columns names.

    Of decided comparisons it never is: which items have won is up to the answers.
    """
    return design == "public" and not columns.decided


def _check_numeric(view: frames.Frame, outcome: str | None, predictor: Predictor | None) -> None:
    """Refuse outcomes and covariates with bounds that hold no numbers, as far as that is known."""
    bounds = () if predictor is None else predictor.covariates.bounds
    if (text := frames.check_numeric(view, [name for name, *_ in bounds])) is not None:
        raise TypeError(
            f"column {text!r} must hold numbers, because bounds= declares its bounds: declare "
            f"levels= if it holds names."
        )
    if outcome is not None and frames.check_numeric(view, [outcome]):
        raise TypeError(
            f"column {outcome!r} must be numeric, 1 = first item preferred, 0 = tie, -1 = second, "
            f"missing = not answered: recode True and False with privrank.as_comparisons(frame, "
            f"'long', codes={{'first': True, 'second': False}}), texts with codes={{'first': 'A', "
            f"...}}, names of the preferred items with codes={{}}, objects with pandas.to_numeric."
        )


def public_pairs(
    facts: Design,
    pairs: tuple[IntArray, IntArray, IntArray, IntArray],
    pair_counts: object,
    labels: tuple[Any, ...],
) -> PairCounts | None:
    """Return what the public may know of the comparisons per pair; None: to be released.

    The observed `pairs` are read under a public design only; under a private one every number
    comes from the caller's declarations.
    """
    if facts.kind == "private":
        return declared_pairs(facts, pair_counts, labels)
    if pair_counts is not None:
        raise ValueError(
            "pair_counts must be left out when design='public': the observed counts are public "
            "then."
        )
    met = pairs[2] > 0
    return PairCounts(pairs[0][met], pairs[1][met], pairs[2][met], "observed")


def formula_columns(formula: str, data: object, arguments: dict[str, Any]) -> Encoded:
    """Encode the comparisons that a formula names.

    Given ``"item1 + item2 + outcome ~ 1"`` or ``"winner + loser ~ 1"``, covariates in the place of
    1, and the other arguments of :func:`encode_comparisons` and
    :func:`privrank.bradley_terry.modelmatrix.declare` as users write them.
    """
    # the left side names the columns of answers; a right side is declared before rows are encoded
    parsed = parse(formula)
    if len(parsed.left) not in (2, 3):
        raise ValueError(
            f"formula must name two columns (winner + loser) or three (item1 + item2 + outcome) on "
            f"its left, got {formula!r}."
        )
    known = {"respondent", "counts"} | _OPTIONS | _OF_COVARIATES
    if not arguments.keys() <= known:
        raise TypeError(
            f"from_formula takes the arguments {', '.join(sorted(known))} beside formula and data."
        )
    answers = {"outcome", frames.LIST_OUTCOME}.intersection(frames.check_named(data, parsed.left))
    if set(parsed.left) == {"item1", "item2"} and answers:
        raise ValueError(
            f"formula must name item1, item2 and the outcome on its left, because data has a "
            f"column {min(answers)!r}, got {formula!r}. If the first item always won, leave that "
            f"column out of data."
        )
    respondent = arguments.get("respondent", UNSTATED)
    counts = arguments.get("counts")
    item1, item2, *rest = parsed.left
    outcome = rest[0] if rest else None
    columns = ComparisonColumns(item1, item2, outcome, respondent, counts, outcome is None)
    predictor = None
    given = {name: arguments.get(name) for name in sorted(_OF_COVARIATES)}
    if parsed.right or not parsed.intercept or any(v is not None for v in given.values()):
        covariates = tuple(factor.column for factor in factors_of(parsed.right_text))
        frame, _ = open_comparisons(data, columns, covariates)
        design = arguments.get("design")
        labels = frames.declared_items(
            frame, (item1, item2), arguments.get("items"), public=_known(design, columns)
        )
        schema = schema_of(frame, parsed.right_text, public=design == "public")
        predictor = declare(parsed.right_text, schema, labels, **given)
        if {*parsed.left, respondent, counts} & set(predictor.columns):
            raise ValueError(
                f"formula must not use columns of its left side, nor those of respondents and "
                f"counts, as covariates, got {formula!r}: they would make the answers public."
            )
        if outcome is None and FIRST in covariates:
            raise ValueError(
                f"formula must name item1, item2 and outcome on its left for an order effect, got "
                f"{formula!r}: a frame of winners and losers does not say which was named first."
            )
    options = {name: arguments[name] for name in _OPTIONS & arguments.keys()}
    return encode_comparisons(data, columns, **options, predictor=predictor)


def schema_of(frame: object, right: str, *, public: bool) -> Schema:
    """Return what a frame declares of the columns on the right side of a formula.

    Where it is `public` who has which level, the columns may say which there are.
    """
    view = frames.open_frame(frame, "data")
    names = set(frames.column_names(view))
    used = [factor.column for factor in factors_of(right) if factor.column in names]
    own = {name: frames.declared_values(frame, name, public=public) for name in used}
    levels = {name: values for name, values in own.items() if values is not None}
    return Schema(
        names,
        levels,
        frames.numeric_columns(view, [name for name in used if name not in levels]),
    )


def read_patterns(
    predictor: Predictor,
    keys: Mapping[str, coding.Key],
    first_named: coding.Signs,
    person: IntArray | None,
    kind: DesignKind,
) -> tuple[IntArray, Covariates]:
    """Return the pattern of each group of rows, and the covariates with their patterns.

    Given the groups' keys by column, 1 or -1 by which item was named first, and the respondents.
    Under a public design the patterns are those that occur; under a private one all cells. Entries
    that are missing, undeclared or out of bounds are refused, and so are covariates that change
    within a respondent.
    """
    facts = predictor.covariates
    if kind == "private" and (facts.bounds or facts.ordered):
        raise ValueError(
            "'first' and numeric covariates need design='public', because the fit has to know who "
            "has which value: use it if that is public, or leave 'first' out and cut numbers into "
            "declared levels."
        )
    # a combination of levels is one number, whose digits are the places of the levels
    cell = np.zeros(len(first_named), dtype=np.int64)
    for name, levels in predictor.levels.items():
        cell = cell * len(levels) + declared_codes(keys[name], levels, name, "levels")
    position = np.zeros((len(cell), len(facts.bounds)), dtype=np.int64)
    for column, (name, low, high) in enumerate(facts.bounds):
        position[:, column] = _position(keys[name], name, low, high)
    values = np.column_stack((cell, position))
    if person is not None:
        _check_constant(person, values, predictor.columns)
    if kind == "private":
        # all cells, met or not: which ones occur is private
        cells = np.arange(facts.cells)
        return cell, replace(
            facts,
            cell=cells,
            position=np.zeros((facts.cells, 0), dtype=np.int64),
            first=np.zeros_like(cells),
        )
    order = first_named if facts.ordered else np.zeros_like(first_named)
    distinct, pattern = np.unique(np.column_stack((values, order)), axis=0, return_inverse=True)
    met = replace(facts, cell=distinct[:, 0], position=distinct[:, 1:-1], first=distinct[:, -1])
    return pattern.ravel(), met


def _position(key: coding.Key, column: str, low: float, high: float) -> IntArray:
    """Return numbers within their bounds, scaled, in lattice steps."""
    values = np.append(key.values.astype(np.float64), np.nan)[key.codes]
    if not ((values >= low) & (values <= high)).all():
        raise ValueError(
            f"column {column!r} must lie within its bounds, {low:g} to {high:g}, and none may be "
            f"missing: state the bounds of the questionnaire, or clip the column to them."
        )
    return scaled_position(values, low, high)


def _check_constant(person: IntArray, values: IntArray, columns: Sequence[str]) -> None:
    """Refuse covariates that change within a respondent; `values` has one row per group of rows."""
    # rows of one respondent are neighbours after sorting
    order = np.argsort(person, kind="stable")
    same = person[order][1:] == person[order][:-1]
    if (values[order][1:] != values[order][:-1])[same].any():
        raise ValueError(
            f"a respondent must have one value of each covariate ({', '.join(columns)}), and at "
            f"least one has two: covariates describe respondents."
        )


def units_by_pattern(
    pattern: IntArray, size: IntArray, person: IntArray | None, covariates: Covariates
) -> IntArray:
    """Return, by pattern, the units with its covariates, in whichever order items were named."""
    by_pattern = covariates.kinds
    kind = by_pattern[pattern]
    kinds = int(by_pattern.max()) + 1
    if person is None:
        return sum_by(kind, size, kinds)[by_pattern]
    kinds_of_units = np.unique(person * kinds + kind) % kinds
    return np.bincount(kinds_of_units, minlength=kinds).astype(np.int64)[by_pattern]
