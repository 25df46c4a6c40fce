"""Rankings and choices from a user's frame: validated, and held until a mechanism reads them.

Conventions: in a rankings frame every row is a ranking, every item a column, and a cell the rank of
that item, 1 = best. A choices column holds one of the declared categories in each row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from privrank.encode import clusters, coding, frames
from privrank.encode.encoded import (
    Declared,
    EncodedSample,
    RespondentBlocks,
    SampleBlock,
    check_owned,
    declared_codes,
    narrow,
    open_rows,
    sum_by,
    units_of,
)
from privrank.encode.rankingforms import check_ranks
from privrank.plans.nullmodel import (
    RANK_MESSAGES,
    Missing,
    Purpose,
    as_declared,
    check_paired,
    check_several,
    formula_options,
    refuse_categories,
    refuse_partial,
)
from privrank.privacy.accounting import Unit
from privrank.release.survey import MIN_UNITS, Sample, SampleKind
from privrank.util.arrays import AnyArray, IntArray
from privrank.util.checks import (
    as_array,
    as_numbers,
    check_choice,
    check_count,
    check_flag,
    check_items,
    check_name,
    check_names,
    first_absent,
    undeclared,
)
from privrank.util.formula import parse

LARGEST_TOTAL = 10**12
"""Most counted choices: statistics of them, times the categories, stay whole numbers of 64 bits."""


def encode_rankings(frame: object, **options: Any) -> EncodedSample:
    """Validate rankings; the options are those of :func:`rules_of_rankings`."""
    return _encoded(*rules_of_rankings(frame, **options), "rankings")


def _encoded(view: Any, rules: SampleRules, name: str) -> EncodedSample:
    """Read a frame, as messages call it, by its rules; refuse one without rows."""
    reading = read_samples(view, rules)
    frames.check_rows(reading.nobs[0], name)
    return reading.sample()


@dataclass(frozen=True, slots=True)
class SampleRules:
    """The declarations of a sample, by which each part of a frame is validated and coded.

    Parameters
    ----------
    kind : {"rankings", "choices"}
        What the rows are.
    items : tuple of str
        Items, or categories.
    columns : tuple of str
        The columns that hold the answers.
    respondent : str or None
        The column that names the respondents.
    max_rows : int
        Bound of their rows.
    codes : callable
        Returns the answers of a part of a frame, or refuses them: ranks, shape (rows, m), or the
        codes of categories, shape (rows, 1).
    ties, missing
        Those of :class:`privrank.encode.encoded.EncodedSample`.
    completed : bool
        Whether a fit completes the rankings at random.
    """

    kind: SampleKind
    items: tuple[str, ...]
    columns: tuple[str, ...]
    respondent: str | None
    max_rows: int
    codes: Callable[[Any], IntArray]
    ties: bool = False
    missing: Missing | None = None
    completed: bool = False

    @property
    def counted(self) -> bool:
        """Whether the counts by category say all there is."""
        return self.kind == "choices" and self.respondent is None

    def encoded(
        self, nobs: int, rows: IntArray, people: RespondentBlocks | None = None
    ) -> EncodedSample:
        """Return a sample of so many units with these rows, or people who have them."""
        unit: Unit = "row" if self.respondent is None else "respondent"
        sample = Sample(self.kind, self.items, nobs, unit, self.max_rows, completed=self.completed)
        return EncodedSample(sample, rows, people, self.ties, self.missing)


def rules_of_rankings(
    frame: object,
    *,
    items: object = None,
    respondent: str | None = None,
    max_rows: object = 1,
    ties: bool = False,
    missing: Missing | None = None,
    purpose: Purpose = "test",
) -> tuple[Any, SampleRules]:
    """Return the view of a rankings frame, or an array of numbers, and the rules of its rows.

    The array has shape (n, m) and plain ranks, as simulations make them. Given the arguments of
    :class:`privrank.PrivateRankAggregation`, and what the rankings are for, which decides what a
    message says about ties and missing items. Every way a frame can break the rules raises a
    ValueError or a TypeError with a short message.
    """
    bound = check_count("max_rows", max_rows)
    ties = check_flag("ties", ties)
    if missing is not None:
        check_choice("missing", missing, Missing)
    declared = None if items is None else tuple(str(label) for label in check_items(items))
    if isinstance(frame, np.ndarray) and frame.ndim == 2:
        labels = _labels_of_array(frame, declared, purpose)
        plain = frame.dtype.kind in "iuf" and respondent is None
        frame = frame if plain else pd.DataFrame(frame, columns=list(labels))
    if not isinstance(frame, np.ndarray) or frame.ndim != 2:
        frame, labels = _rank_columns(frame, declared, respondent, purpose)
    halves = ties or missing is not None

    def codes(part: Any) -> IntArray:
        cells = part if isinstance(part, np.ndarray) else _rank_cells(part, labels)
        check_ranks(
            cells,
            RANK_MESSAGES[purpose],
            ties=ties,
            gaps=missing is not None,
            bottom=missing == "bottom",
        )
        return half_codes(cells, missing) if halves else np.array(cells, dtype=np.int64, order="C")

    completed = halves and purpose != "consensus"
    return frame, SampleRules(
        "rankings", labels, labels, respondent, bound, codes, ties, missing, completed
    )


def enough(nobs: int, least: int = MIN_UNITS) -> int:
    """Return the number of units; refuse fewer than `least`."""
    if nobs < least:
        raise ValueError(f"at least two units are needed, got {nobs}: collect more answers.")
    return nobs


@dataclass(frozen=True, slots=True)
class Groups:
    """A column of groups, all that are declared, and whether all respondents are in each.

    Without a column there is one group, of all rows.
    """

    column: str | None = None
    labels: tuple[Any, ...] = ("",)
    paired: bool = False

    def places(self, keys: Mapping[str, coding.Key], rows: int) -> IntArray:
        """Return the place of each row's group; refuse rows that are in none."""
        if self.column is None:
            return np.zeros(rows, dtype=np.int64)
        return declared_codes(keys[self.column], self.labels, self.column, "groups")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReadSamples:
    """What a single reading of a frame has found: units, rows and respondents of each group."""

    rules: SampleRules
    nobs: tuple[int, ...]
    rows: IntArray
    people: RespondentBlocks | None = None
    names: AnyArray = field(default_factory=lambda: np.array([]))

    def sample(self, group: int = 0, least: int = MIN_UNITS) -> EncodedSample:
        """Return the sample of a group; refuse fewer than `least` units."""
        rules = self.rules
        nobs = enough(self.nobs[group], least)
        if rules.counted:
            return rules.encoded(nobs, self.rows[group])
        people = self.people.group(group) if nobs and self.people is not None else None
        return rules.encoded(nobs, self.rows, people)


def read_samples(
    view: Any, rules: SampleRules, groups: Groups = Groups(), *, named: bool = False
) -> ReadSamples:
    """Read a frame once, part by part: each row's respondent, group and answer together.

    The view may be an array of plain ranks. With `named` the names of all respondents are kept,
    which the caller compares with those of another frame.

    **Privacy.** Whether a respondent is in one group alone is judged by the rows that are counted,
    and a respondent's rows are in one part. So nobody is in two groups, whatever the frame would
    hold if it were evaluated again.
    """
    owner = rules.respondent
    if isinstance(view, np.ndarray):  # numbers need no table
        ranks = rules.codes(view) if len(view) else np.empty(view.shape, dtype=np.int64)
        return ReadSamples(rules, (len(view),), ranks)
    given = [*rules.columns, groups.column, owner]
    names = list(dict.fromkeys(name for name in given if name is not None))
    if rules.counted:
        view = frames.grouped(view, names)
        names = frames.column_names(view)

    def total(*sums: Any) -> Any:
        units, texts = zip(*sums, strict=True)
        return np.sum(units, axis=0), np.concatenate(texts) if named else texts[0][:0]

    read = partial(_counted if rules.counted else _rows_by_group, rules=rules, groups=groups)
    reading, people = clusters.count_parts(view, names, owner, read, total)
    if reading is None:  # no rows
        reading = np.zeros((len(groups.labels), len(rules.items)), dtype=np.int64), np.array([])
    units = tuple(reading[0].sum(axis=1).tolist())
    rows = reading[0] if rules.counted else np.empty((0, len(rules.columns)), dtype=np.int64)
    return ReadSamples(rules, units, rows, people, reading[1])


def _counted(part: Any, rules: SampleRules, groups: Groups) -> tuple[Any, None]:
    """Return the choices of a part by group and category."""
    by = [name for name in (*rules.columns, groups.column) if name is not None]
    keys, size = coding.tally(part, by, None)
    many = len(rules.items)
    place = groups.places(keys, len(size)) * many + rules.codes(keys)[:, 0]
    return (sum_by(place, size, len(groups.labels) * many).reshape(-1, many), np.array([])), None


def _rows_by_group(
    part: Any, rules: SampleRules, groups: Groups
) -> tuple[Any, tuple[SampleBlock, ...]]:
    """Return how many units a part has in each group with their names, and the rows of each."""
    named = [name for name in (rules.respondent, groups.column) if name is not None]
    keys = coding.keys_of(part, named, None)[0]
    cells = narrow(rules.codes(part))
    place = groups.places(keys, len(cells))
    owner = None if rules.respondent is None else keys[rules.respondent]
    members = [np.flatnonzero(place == group) for group in range(len(groups.labels))]
    held = tuple(_rows_of(cells, mine, owner, rules, groups.paired) for mine in members)
    units = np.array([[len(rows.name)] for rows in held])
    if owner is None:
        return (units, np.array([])), held
    if groups.column is not None and not groups.paired:
        check_separate(units.sum() > len(owner.values), rules.respondent)
    if groups.column is not None and groups.paired:
        answers = np.bincount(owner.codes)
        check_paired(True, False, rules.respondent, max(2, int(answers.max())), 1)
        check_matched(bool((answers == 2).all()), rules.respondent)
    return (units, owner.values), held


def _rows_of(
    cells: IntArray, mine: IntArray, owner: coding.Key | None, rules: SampleRules, paired: bool
) -> SampleBlock:
    """Return the rows of one group, given their places; refuse too many of a respondent."""
    if owner is None:
        return SampleBlock(np.zeros(len(mine), dtype=np.uint64), np.arange(len(mine)), cells[mine])
    own = owner.take(mine)
    check_owned(own, rules.respondent)
    if paired and len(own.codes) > len(own.values):
        raise ValueError(
            f"paired=True takes one row per respondent in each sample, and column "
            f"{rules.respondent!r} names at least one twice: keep the row that shall count."
        )
    units_of(own, rules.respondent, np.ones(len(mine), dtype=np.int64), rules.max_rows)
    # the rows of each in one order, whatever that of the frame
    person = narrow(own.codes)
    order = mine[np.lexsort((*cells[mine].T, person))]
    return SampleBlock(coding.numbers_of_names(own.values), np.sort(person), cells[order])


def check_separate(shared: bool, respondent: object) -> None:
    """Refuse respondents in two groups, whom a permutation would tear apart."""
    if shared:
        raise ValueError(
            f"a respondent must be in one group only, and at least one of column {respondent!r} is "
            f"in two: compare separate respondents, or the same ones twice with paired=True, or "
            f"make ids of different people differ."
        )


def check_matched(same: bool, respondent: object) -> None:
    """Refuse pairs of samples that have different respondents."""
    if not same:
        raise ValueError(
            f"paired=True needs every respondent in both samples, and column {respondent!r} has at "
            f"least one in one of them only: leave out who did not answer twice, or compare the "
            f"samples without paired=."
        )


def _labels_of_array(
    ranks: AnyArray, items: tuple[str, ...] | None, purpose: Purpose
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
    absent = first_absent(labels, names)
    if absent is not None:
        _refuse_pairs(names)
        raise ValueError(
            f"rankings has no column {absent!r}: items= names the columns; for data of another "
            f"form use {frames.AS_RANKINGS}, 'orders' where cells name items."
        )
    if respondent in labels:
        raise ValueError("items= and respondent= must name different columns.")
    check_several(labels, purpose)
    _check_numbers(view, labels, names)
    return view, labels


def _check_numbers(view: frames.Frame, labels: Sequence[str], names: Sequence[str]) -> None:
    """Refuse columns of ranks that hold no numbers; given all columns of the frame."""
    text = frames.check_numeric(view, labels)
    if text is not None:
        _refuse_pairs(names)
        raise TypeError(
            f"column {text!r} must hold ranks, whole numbers from 1 (best) to {len(labels)}, and a "
            f"missing value (NaN), never text, for an item that is not ranked. If it holds no "
            f"ranks, leave it out with items=[...] or name it in respondent=. For data of another "
            f"form use {frames.AS_RANKINGS}, 'orders' where cells name items."
        )


def _refuse_pairs(names: Sequence[str]) -> None:
    """Refuse a frame whose columns are those of comparisons."""
    if {"item1", "item2"} <= set(names) or {"winner", "loser"} <= set(names):
        raise TypeError(
            "rankings must have a column of ranks for each item, and this frame has comparisons: "
            "pairs are for PrivateBTL, whose summary tests equal worths and whose formula "
            "'item1 + item2 + outcome ~ group' compares groups."
        )


def encode_choices(frame: object, column: str, **options: Any) -> EncodedSample:
    """Validate a column of choices; the options are those of :func:`rules_of_choices`."""
    return _encoded(*rules_of_choices(frame, column, **options), "data")


def rules_of_choices(
    frame: object,
    column: str,
    *,
    categories: object = None,
    known: object = None,
    respondent: str | None = None,
    max_rows: object = 1,
    word: Literal["categories", "items"] = "categories",
) -> tuple[frames.Frame, SampleRules]:
    """Return the view of a frame with a column of choices, and the rules of its rows.

    The categories are those of the call, by its argument `word`; else those of a polars Enum, or
    False and True; else those `known` from a null hypothesis. All else as for
    :func:`encode_rankings`.
    """
    bound = check_count("max_rows", max_rows)
    frame, view = open_rows(frame, respondent, "data")
    own = frames.declared_values(frame, column)
    declared = next((given for given in (categories, own, known) if given is not None), None)
    if declared is None:
        raise undeclared(word, word)
    labels = check_items(declared, word)
    what: Declared = "names of null" if declared is known else word

    def codes(part: Any) -> IntArray:
        keys = part if isinstance(part, dict) else coding.keys_of(part, [column], None)[0]
        return declared_codes(keys[column], labels, column, what)[:, None]

    return view, SampleRules(
        "choices", tuple(map(str, labels)), (column,), respondent, bound, codes
    )


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


def encode_counts(counts: object, categories: object, *, least: int = MIN_UNITS) -> EncodedSample:
    """Validate how often each declared category was chosen; one counted choice is the unit.

    What was counted may list just the categories that were chosen. `least` as for
    :func:`encode_rankings`.
    """
    if categories is None:
        raise undeclared("categories", "categories")
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
    nobs = enough(int(table.sum()), least)
    return EncodedSample(
        Sample("choices", tuple(map(str, labels)), nobs, "row", 1), table.astype(np.int64)
    )


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
    if len(parsed.left) > 1:
        return encode_rankings(data, items=parsed.left, **options)
    return encode_choices(data, parsed.left[0], **options)


def rules_of_columns(
    frame: object, left: Sequence[str], options: Mapping[str, Any]
) -> tuple[Any, SampleRules]:
    """Return the view and the rules of what the left side of a formula names, in each group."""
    if len(left) == 1:
        return rules_of_choices(frame, left[0], **options)
    return rules_of_rankings(frame, items=left, **options)


def _rank_cells(view: frames.Frame, labels: Sequence[str]) -> AnyArray:
    """Return numeric columns as whole numbers if all are, else as floats with NaN where missing."""
    _check_numbers(view, labels, frames.column_names(view))
    table = frames.collect(view, labels)
    whole = all(isinstance(kind, np.dtype) and kind.kind in "iu" for kind in table.dtypes)
    return table.to_numpy() if whole else coding.numbers(table)


def ranks_by_name(frame: object, items: Sequence[str], name: str = "ranks") -> AnyArray:
    """Return the ranks in a frame's columns of these names, to be used without privacy.

    Given what messages call the frame.
    """
    _, view = open_rows(frame, None, name)
    absent = first_absent(items, frames.column_names(view))
    if absent is not None:
        raise ValueError(
            f"{name} has no column {absent!r}: give its columns the names of the items."
        )
    view = next(frames.evaluate(view, items, whole=True))
    if frames.check_numeric(view, items):
        raise TypeError(
            f"{name} must hold numbers in the column of every item: convert them before."
        )
    cells = _rank_cells(view, items)
    return cells.astype(np.int64) if np.isfinite(cells).all() and not (cells % 1).any() else cells


def half_codes(cells: AnyArray, missing: Missing | None) -> IntArray:
    """Return twice the ranks, which are whole numbers, and a code where one is missing."""
    code = 2 * cells.shape[1] + 2 if missing == "bottom" else 0
    return np.nan_to_num(2.0 * cells, nan=code).astype(np.int64)


def count_orders(ranks: IntArray) -> IntArray:
    """Return how often each of the m! rankings occurs, given ranks (n, m)."""
    from privrank.kernels.rankings import places_of

    return np.bincount(places_of(ranks), minlength=math.factorial(ranks.shape[1]))
