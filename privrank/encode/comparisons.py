"""Validate, bound and count the comparisons of a user's frame.

Conventions: in a comparisons frame `outcome` is 1 if item1 is preferred, 0 for a tie, -1 if item2
is preferred, and missing if not answered; `net` is wins minus losses, an integer per item. Messages
name columns and rules, never a cell's value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from privrank.bradley_terry.modelmatrix import Predictor, Schema, declare
from privrank.bradley_terry.paircounts import check_connected
from privrank.bradley_terry.predictor import check_identified
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
from privrank.encode.weighting import check_weighted, read_weights
from privrank.plans.declarations import check_excess, check_ties, declared_pairs
from privrank.release.survey import (
    Covariates,
    Design,
    DesignKind,
    PairCounts,
    scaled_position,
)
from privrank.release.weights import Weights
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.checks import (
    UNSTATED,
    check_choice,
    check_count,
    check_flag,
    check_name,
)
from privrank.util.formula import Formula, factors_of, parse

_MAX_DRAWN = 2**28
"""Largest number of rows, over all respondents, for which a draw has enough memory."""

_OPTIONS = {"items", "max_rows", "distinct_pairs", "ties", "design", "pair_counts", "excess"}
COVARIATES = {"levels", "bounds", "item_formula", "item_data", "contest"}
"""Arguments of a formula: options of :func:`encode_comparisons`, declarations of covariates."""


@dataclass(frozen=True, slots=True)
class ComparisonColumns:
    """The roles of the columns of a comparisons frame.

    If `decided`, there is no outcome column and item1 always wins. Design weights are trimmed at
    `max_weight`.
    """

    item1: str
    item2: str
    outcome: str | None
    respondent: str | None
    counts: str | None = None
    decided: bool = False
    weights: str | None = None
    max_weight: float | None = None


def open_comparisons(
    frame: object, columns: ComparisonColumns, covariates: Sequence[str] = ()
) -> tuple[object, frames.Frame]:
    """Return a frame with the respondent as a column, and its view.

    Refuses a frame without the given columns; `covariates` are the names of covariates.
    """
    if isinstance(frame, np.ndarray):
        raise TypeError(
            f"comparisons must be a data frame with a row per comparison, got ndarray. Convert a "
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
        "weights": columns.weights,
    }
    left_out = {"respondent", "counts", "weights"} | ({"outcome"} if columns.decided else set())
    # an optional role without a name is left out; all others are checked below
    given = {role: name for role, name in roles.items() if name is not None or role not in left_out}
    after = {"respondent": "respondent", "outcome": frames.LIST_OUTCOME}
    for role, name in given.items():
        check_name(name, role)
        if name not in present and after.get(role) in present:
            raise ValueError(
                f"comparisons has no column {name!r}. Use {role}={after[role]!r}, the name of that "
                f"column after {frames.AS_COMPARISONS}."
            )
        if name not in present:
            raise ValueError(
                f"comparisons has no column {name!r}. Name the right column with {role}=. Convert "
                f"data of another form with {frames.AS_COMPARISONS}, and choices from sets with "
                f"privrank.as_choices."
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
    """Refuse a public design if answers decide which facts the frame contains.

    `kind` is the kind of design; `predictor` describes the covariates, if there are any.

    **Privacy.** Which pairs a list compares depends on the items it lists, and so does their
    number, which is public if each comparison is a unit. The outcome column of such frames has a
    special name, which the call must state and which merges can only extend. A frame with such a
    column never gets a public design, whichever column is used as the outcome
    (:func:`privrank.as_comparisons`). A refusal reveals nothing about the answers.
    """
    present = frames.column_names(view)
    if frames.has_lists(present) and (kind == "public" or columns.respondent is None):
        raise ValueError(
            f"Comparisons read from partial lists (column {frames.LIST_OUTCOME!r}) need "
            f"design='private' and respondent=, because which pairs a list compares is part of the "
            f"answer. Leave design= out, and name the respondent column with respondent=."
        )
    if (
        predictor is not None
        and predictor.covariates.contest
        and frames.is_unordered(frame, present)
    ):
        raise ValueError(
            f"contest must be left out if the data do not record which item was named first "
            f"(mark {frames.ORDER_FROM!r}). Pass a frame with item1 and item2 in the order of the "
            f"questionnaire, from form='long' or 'wide'."
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

    `columns` names the columns and `predictor` describes the covariates. For the other arguments
    see :class:`privrank.PrivateBTL`. Every violation of a rule raises a ValueError or a
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
    plain = tied != "davidson" and predictor is None
    check_weighted(columns.weights, columns.max_weight, public=kind == "public", plain=plain)
    # checks of column names and types come first: they read no cell
    frame, view = open_comparisons(frame, columns, () if predictor is None else predictor.columns)
    check_fixed(frame, view, kind, columns, predictor)
    check_numeric_columns(view, columns.outcome, predictor, columns.weights)
    labels = frames.declared_items(
        frame, (columns.item1, columns.item2), items, public=_known(kind, columns)
    )
    facts = Design(
        items=tuple(str(label) for label in labels),
        nobs=0,
        unit="row" if columns.respondent is None else "respondent",
        max_rows=bound,
        distinct_pairs=distinct,
        ties=tied,
        kind=kind,
        pairs=None,
        excess="sample" if sampled else "refuse",
    )
    counted, parts = count_all(view, ComparisonSpec(columns, labels, facts, predictor))
    first, second = np.divmod(counted.codes, len(labels))
    second += first // len(labels) * len(labels)
    pairs = first, second, counted.counts[0], counted.counts[1]
    facts = replace(facts, nobs=counted.nobs, weights=counted.weights)
    squares = None if counted.weights is None else counted.counts[2]
    # the design declares the public facts; only a public design reads them from the data
    if (public := public_pairs(facts, pairs, squares, pair_counts, labels)) is not None:
        check_connected(public, facts.items)
    facts = replace(facts, pairs=public, covariates=counted.described)
    if kind == "public":
        check_identified(facts)
    # with excess="sample" rows are counted only after the secret draw of a fit
    if sampled and columns.counts is not None and not distinct and facts.nobs * bound > _MAX_DRAWN:
        raise ValueError(
            f"max_rows={bound} must be at most {_MAX_DRAWN // facts.nobs} for counted rows of "
            f"{facts.nobs} respondents, because excess='sample' draws that many for each "
            f"respondent. State a smaller bound."
        )
    pairs = (first, second, NONE, NONE) if sampled else pairs
    return Encoded(facts, pairs, parts, counted.units, sampled, counted.ties)


@dataclass(frozen=True, slots=True)
class ComparisonSpec:
    """The declarations by which each part of a frame is validated and counted.

    `labels` are the items, `design` are the declared facts without units.
    """

    columns: ComparisonColumns
    labels: tuple[Any, ...]
    design: Design
    predictor: Predictor | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CountedRows:
    """Counts of a frame, or of a part of it: number of units, and counts by pair.

    Pairs are numbered as in :class:`privrank.encode.encoded.RespondentBlock`. `counts` are the
    comparisons of each pair, and the wins minus losses of its first item. `units` are the numbers
    of units by pattern of the covariates in `described`; `ties` is one number. Comparisons are
    multiplied by design weights, if there are any, and by their squares in a third row of `counts`.
    """

    nobs: int
    codes: IntArray
    counts: IntArray
    ties: IntArray
    units: IntArray | None
    described: Covariates | None
    weights: Weights | None


def count_all(view: frames.Frame, rules: ComparisonSpec) -> tuple[CountedRows, RespondentBlocks]:
    """Return the counts of a frame, and its respondents if these are the units."""
    columns = rules.columns
    predictor = rules.predictor
    names = coding.distinct_names(
        *(columns.respondent, columns.item1, columns.item2, columns.outcome, columns.counts),
        *(columns.weights,),
        *(() if predictor is None else predictor.columns),
    )
    rows = columns.respondent is None
    if rows:
        view = frames.numbered(view, (columns.item1, columns.item2), rules.labels)
        view = frames.grouped(view, names)
        names = frames.column_names(view)
    # covariate patterns numbered in order of appearance need all rows at once, as do weights and
    # row counts
    public = rules.design.kind == "public" and predictor is not None
    whole = public or columns.weights is not None or rows and columns.counts is not None
    total, parts = clusters.count_parts(
        view, names, columns.respondent, partial(count, rules=rules), _added, whole=whole
    )
    frames.check_rows(0 if total is None else total.nobs, "comparisons")
    return total, RespondentBlocks() if rows else parts


def _added(*pieces: CountedRows) -> CountedRows:
    """Return the sum of the counts of parts that have no respondent in common."""
    met = np.concatenate([piece.codes for piece in pieces])
    codes, place = coding.distinct_codes(met, int(met.max(initial=0)) + 1)
    counts = np.zeros((3, len(codes)), dtype=np.int64)
    for piece in pieces:  # within a piece all codes are distinct
        here, place = np.split(place, [len(piece.codes)])
        counts[:, here] += piece.counts
    by_pattern = [piece.units for piece in pieces if piece.units is not None]
    units = np.sum(by_pattern, axis=0) if by_pattern else None
    nobs = sum(piece.nobs for piece in pieces)
    ties = sum(piece.ties for piece in pieces)
    last = pieces[-1]
    return CountedRows(nobs, codes, counts, np.asarray(ties), units, last.described, last.weights)


def count(view: Any, rules: ComparisonSpec) -> tuple[CountedRows, Any]:
    """Validate and count comparisons; also return respondents if they are units."""
    columns = rules.columns
    design = rules.design
    items = len(rules.labels)
    check_numeric_columns(view, columns.outcome, rules.predictor, columns.weights)
    # from here on, identical rows are one entry with a count
    keys, size, first, second = _read(view, rules)
    answered, sign = coding.outcome_signs(keys, columns.outcome, len(size), design.ties)
    low, high, order = in_order(first, second)
    owner = None if columns.respondent is None else keys[columns.respondent]
    sampling = design.kind == "private"  # a fit could draw from more rows
    bounded = design.excess == "refuse"
    nobs = units_of(
        owner,
        columns.respondent,
        size,
        design.max_rows if bounded else np.inf,
        sampling=sampling,
    )
    person = None if owner is None else owner.codes
    weight, weights = read_weights(
        keys, columns.weights, columns.max_weight, size, person, size * answered
    )
    comparisons = weight * size * answered
    net = weight * size * (sign * order)
    pattern, described, units = read_patterns(
        rules.predictor, keys, size, order, person, design.kind
    )
    number = pattern * items**2 + low * items + high
    codes, place = coding.distinct_codes(number, (int(pattern.max()) + 1) * items**2)
    held = None
    if owner is not None:
        if design.distinct_pairs and bounded:
            check_distinct(owner.codes, low * items + high, size, sampling=sampling)
        held = _part(owner, codes, place, comparisons, net, weight)
    ties = comparisons.sum(keepdims=True) - np.abs(net).sum()
    summed = (comparisons, net, weight * comparisons)
    counts = np.stack([sum_by(place, values, len(codes)) for values in summed])
    return CountedRows(nobs, codes, counts, ties, units, described, weights), held


def _read(
    view: Any, rules: ComparisonSpec
) -> tuple[Mapping[str, coding.Key], IntArray, IntArray, IntArray]:
    """Count identical rows; return keys by column, and the count and the two items of each entry.

    Items are positions in the declared labels.
    """
    columns = rules.columns
    by = coding.distinct_names(
        *(columns.respondent, columns.item1, columns.item2, columns.outcome, columns.weights),
        *(() if rules.predictor is None else rules.predictor.columns),
    )
    counting = coding.tally if columns.respondent is None else coding.keys_of
    keys, size = counting(view, by, columns.outcome, columns.counts)
    if columns.respondent is None and not size.all():
        # a row with count 0 is not a unit, whereas a respondent without comparisons is one
        keys = {name: coding.Key(key.codes[size > 0], key.values) for name, key in keys.items()}
        size = size[size > 0]
    frames.check_rows(len(size), "comparisons")
    first, second = (
        declared_codes(keys[name], rules.labels, name, "items")
        for name in (columns.item1, columns.item2)
    )
    check_apart(first, second, (columns.item1, columns.item2))
    return keys, size, first, second


def _part(
    owner: coding.Key,
    codes: IntArray,
    place: IntArray,
    comparisons: IntArray,
    net: IntArray,
    weight: IntArray,
) -> RespondentBlock:
    """Return the answers of respondents.

    `codes` are the numbers of pairs, and `place` is the position of each row in `codes`. `weight`
    is the design weight of each row, or of all.
    """
    by_person = np.ones(len(owner.values), dtype=np.int64)
    by_person[owner.codes] = weight
    answered = np.flatnonzero(comparisons)
    # one number for respondent, pair and answer; sorting removes the order of the rows
    number = owner.codes[answered] * len(codes) + place[answered]
    number = 3 * number + np.sign(net[answered]) + 1
    cells, entry = np.unique(number, return_inverse=True)
    size = sum_by(entry, comparisons[answered], len(cells))
    person, pair = np.divmod(cells // 3, len(codes))
    return RespondentBlock(
        coding.numbers_of_names(owner.values),
        *map(narrow, (person, codes[pair], cells % 3 - 1, size, by_person)),
    )


def _known(design: object, columns: ComparisonColumns) -> bool:
    """Return whether it is public which items each of the two columns names.

    It is never public for decided comparisons, in which the answers determine the items that won.
    """
    return design == "public" and not columns.decided


def check_numeric_columns(
    view: frames.Frame,
    outcome: str | None,
    predictor: Predictor | None,
    weights: str | None = None,
) -> None:
    """Refuse an outcome, weights or a covariate with bounds if the type is not numeric."""
    bounds = () if predictor is None else predictor.covariates.bounds
    if predictor is not None and (text := frames.check_numeric(view, predictor.of_contests)):
        raise TypeError(f"column {text!r} must hold numbers, because contest= names it.")
    if (text := frames.check_numeric(view, [name for name, *_ in bounds])) is not None:
        raise TypeError(
            f"column {text!r} must hold numbers, because bounds= declares bounds for it. If it "
            f"holds names, declare levels= instead."
        )
    if weights is not None and frames.check_numeric(view, [weights]):
        raise TypeError(f"column {weights!r} must hold numbers, because weights= names it.")
    if outcome is not None and frames.check_numeric(view, [outcome]):
        raise TypeError(
            f"column {outcome!r} must be numeric: 1 (first item preferred), 0 (tie), -1 (second "
            f"item preferred) or missing. Recode True and False with privrank.as_comparisons(frame,"
            f" 'long', codes={{'first': True, 'second': False}}), texts with codes={{'first': 'A', "
            f"...}} and names of preferred items with codes={{}}. Convert objects to numbers "
            f"with pandas.to_numeric."
        )


def public_pairs(
    facts: Design,
    pairs: tuple[IntArray, IntArray, IntArray, IntArray],
    squares: IntArray | None,
    pair_counts: object,
    labels: tuple[Any, ...],
) -> PairCounts | None:
    """Return the public number of comparisons per pair, None if not public.

    The observed `pairs`, and the comparisons times the `squares` of design weights, are read only
    under a public design. Under a private design every number comes from the caller's declarations.
    """
    if facts.kind == "private":
        return declared_pairs(facts, pair_counts, labels)
    if pair_counts is not None:
        raise ValueError(
            "pair_counts must be left out if design='public', because the observed counts are then "
            "public."
        )
    met = pairs[2] > 0
    squared = None if squares is None else squares[met]
    return PairCounts(pairs[0][met], pairs[1][met], pairs[2][met], "observed", squared)


def formula_columns(formula: str, data: object, arguments: dict[str, Any]) -> Encoded:
    """Encode the comparisons that a formula names.

    The formula is ``"item1 + item2 + outcome ~ 1"`` or ``"winner + loser ~ 1"``, with covariates
    instead of 1 if there are any. `arguments` are the other arguments of :func:`encode_comparisons`
    and :func:`privrank.bradley_terry.modelmatrix.declare`, as passed by the user.
    """
    # the left side names the answer columns; the right side is declared before rows are encoded
    parsed = parse(formula)
    if len(parsed.left) not in (2, 3):
        raise ValueError(
            f"formula must name two columns (winner + loser) or three (item1 + item2 + outcome) on "
            f"its left, got {formula!r}."
        )
    known = {"respondent", "counts", "weights", "max_weight"} | _OPTIONS | COVARIATES
    if not arguments.keys() <= known:
        raise TypeError(
            f"from_formula takes only formula, data and the arguments {', '.join(sorted(known))}."
        )
    answers = {"outcome", frames.LIST_OUTCOME}.intersection(frames.check_named(data, parsed.left))
    if set(parsed.left) == {"item1", "item2"} and answers:
        raise ValueError(
            f"formula must name item1, item2 and the outcome on its left, because data has a "
            f"column {min(answers)!r}, got {formula!r}. If the first item always won, remove that "
            f"column from data."
        )
    respondent = arguments.get("respondent", UNSTATED)
    counts = arguments.get("counts")
    item1, item2, *rest = parsed.left
    outcome = rest[0] if rest else None
    columns = ComparisonColumns(
        item1,
        item2,
        outcome,
        respondent,
        counts,
        outcome is None,
        arguments.get("weights"),
        arguments.get("max_weight"),
    )
    covariates = tuple(factor.column for factor in factors_of(parsed.right_text))
    beside = str(arguments.get("contest") or "").replace("+", " ").split()
    frame, _ = open_comparisons(data, columns, (*covariates, *beside))
    public = _known(arguments.get("design"), columns)
    predictor = declared_predictor(parsed, frame, (item1, item2), arguments, public=public)
    if predictor is not None:
        if {*parsed.left, respondent, counts} & set(predictor.columns):
            raise ValueError(
                f"formula must not use the respondent, the counts or a column of its left side as "
                f"a covariate, got {formula!r}. Such a covariate would make the answers public."
            )
        if outcome is None and predictor.covariates.contest:
            raise ValueError(
                f"formula must name item1, item2 and outcome on its left for contest covariates, "
                f"got {formula!r}. A frame of winners and losers does not record which item was "
                f"named first."
            )
    options = {name: arguments[name] for name in _OPTIONS & arguments.keys()}
    return encode_comparisons(data, columns, **options, predictor=predictor)


def declared_predictor(
    parsed: Formula,
    frame: object,
    named: Sequence[str],
    arguments: Mapping[str, Any],
    *,
    public: bool,
) -> Predictor | None:
    """Return the covariates of a formula, None if it has none.

    `named` are the columns of items, and `public` is whether the items that they name are public.
    `arguments` are the other arguments as passed by the user.
    """
    given = {name: arguments.get(name) for name in sorted(COVARIATES)}
    if not parsed.right and parsed.intercept and all(value is None for value in given.values()):
        return None
    labels = frames.declared_items(frame, named, arguments.get("items"), public=public)
    schema = schema_of(frame, parsed.right_text, public=arguments.get("design") == "public")
    return declare(parsed.right_text, schema, labels, **given)


def schema_of(frame: object, right: str, *, public: bool) -> Schema:
    """Return what a frame declares about the columns on the right of a formula.

    If the respondents' levels are `public`, the levels may be taken from categorical columns.
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
    predictor: Predictor | None,
    keys: Mapping[str, coding.Key],
    size: IntArray,
    first_named: coding.Signs | IntArray,
    person: IntArray | None,
    kind: DesignKind,
) -> tuple[IntArray, Covariates | None, IntArray | None]:
    """Return the pattern of each group of rows, all covariate patterns, and their units.

    `keys` are the groups' keys by column, `size` is their number of rows, `first_named` is 1 or -1
    depending on which item was named first, and `person` identifies respondents. Under a public
    design the patterns are those that occur; under a private design they are all cells. Missing,
    undeclared and out-of-bounds entries are refused, as are covariates that change within a
    respondent. Without covariates all rows have pattern 0.
    """
    if predictor is None:
        return np.zeros(1, dtype=np.int64), None, None
    facts = predictor.covariates
    if kind == "private" and (facts.bounds or facts.contest):
        raise ValueError(
            "contest= and numeric covariates need design='public', because the fit uses their "
            "values directly. Use it if the values are public. If not, leave contest= out and cut "
            "numbers into declared levels."
        )
    # a combination of levels is one integer whose digits are the positions of the levels
    cell = np.zeros(len(size), dtype=np.int64)
    for name, levels in predictor.levels.items():
        cell = cell * len(levels) + declared_codes(keys[name], levels, name, "levels")
    position = np.zeros((len(cell), len(facts.bounds)), dtype=np.int64)
    for column, (name, low, high) in enumerate(facts.bounds):
        numbers = np.append(keys[name].values.astype(np.float64), np.nan)[keys[name].codes]
        if not ((numbers >= low) & (numbers <= high)).all():
            raise ValueError(
                f"column {name!r} must lie within its bounds, {low:g} to {high:g}, without missing "
                f"values. State the bounds of the questionnaire, or clip the column to its bounds."
            )
        position[:, column] = scaled_position(numbers, low, high)
    values = np.column_stack((cell, position))
    if person is not None:
        # rows of one respondent are adjacent after sorting
        order = np.argsort(person, kind="stable")
        same = np.diff(person[order]) == 0
        if np.diff(values[order], axis=0)[same].any():
            raise ValueError(
                f"a respondent must have one value of each covariate "
                f"({', '.join(predictor.of_units)}), and at least one respondent has two. Name "
                f"covariates of single comparisons in contest=."
            )
    if kind == "private":
        # all cells, whether they occur or not, because which ones occur is private
        cells = np.arange(facts.cells)
        facts = replace(
            facts,
            cell=cells,
            position=np.zeros((facts.cells, 0), dtype=np.int64),
            contests=np.zeros((facts.cells, 0)),
        )
        return cell, facts, units_by_pattern(cell, size, person, facts)
    contests = _read_contests(facts, keys, first_named)
    pattern, examples = _numbered((*values.T, *contests.T))
    facts = replace(
        facts, cell=cell[examples], position=position[examples], contests=contests[examples]
    )
    units = units_by_pattern(pattern, size, person, facts)
    return pattern, replace(facts, units=units), units


def _numbered(columns: Sequence[Any]) -> tuple[IntArray, IntArray]:
    """Return numbers of the distinct rows of columns, in ascending order, and a place of each."""
    number = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        places = np.unique(column, return_inverse=True)[1]
        number = np.unique(number * len(column) + places, return_inverse=True)[1].astype(np.int64)
    return number, np.unique(number, return_index=True)[1].astype(np.int64)


def _read_contests(
    facts: Covariates, keys: Mapping[str, coding.Key], first_named: coding.Signs | IntArray
) -> FloatArray:
    """Return contest covariates with the sign for the earlier item, shape (rows, q)."""
    contests = np.empty((len(first_named), len(facts.contest)))
    for column, name in zip(contests.T, facts.contest, strict=True):
        column[:] = first_named
        if name in keys:
            column *= np.append(keys[name].values.astype(np.float64), np.nan)[keys[name].codes]
    if not np.isfinite(contests).all():
        raise ValueError(
            f"contest covariates ({', '.join(facts.contest)}) must be finite numbers, without "
            f"missing values. Leave out rows by a rule that was fixed before the answers."
        )
    return contests


def units_by_pattern(
    pattern: IntArray, size: IntArray, person: IntArray | None, covariates: Covariates
) -> IntArray:
    """Return the number of units with the covariates of each pattern.

    Patterns that differ only in their contests have the same number.
    """
    by_pattern = covariates.kinds
    kind = by_pattern[pattern]
    kinds = int(by_pattern.max()) + 1
    if person is None:
        return sum_by(kind, size, kinds)[by_pattern]
    units = np.bincount(np.unique(person * kinds + kind) % kinds, minlength=kinds)
    return units.astype(np.int64)[by_pattern]
