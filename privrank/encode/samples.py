"""Validate and encode the rankings and choices of a user's frame.

Conventions: in a rankings frame every row is a ranking, every item is a column, and a cell is the
rank of that item, 1 = best. A choices column contains one of the declared categories in each row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
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
from privrank.plans.declarations import (
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
from privrank.release.survey import MIN_UNITS, Sample
from privrank.util.arrays import AnyArray, IntArray
from privrank.util.checks import (
    as_array,
    as_numbers,
    check_choice,
    check_count,
    check_flag,
    check_items,
    check_names,
    first_absent,
    undeclared,
)
from privrank.util.formula import parse

LARGEST_TOTAL = 10**12
"""Largest number of counted choices; its statistics, times the categories, fit into 64 bits."""


def encode_rankings(frame: object, **options: Any) -> EncodedSample:
    """Validate rankings with the options of :func:`rules_of_rankings`."""
    return _encoded(*rules_of_rankings(frame, **options), "rankings")


def _encoded(view: Any, rules: SampleRules, name: str) -> EncodedSample:
    """Read a frame by its rules; refuse one without rows.

    `name` is the name of the frame in messages.
    """
    (encoded,), _ = read_samples(view, rules)
    frames.check_rows(encoded.sample.nobs, name)
    enough(encoded.sample.nobs)
    return encoded


@dataclass(frozen=True, slots=True)
class SampleRules:
    """The declarations by which each part of a sample is validated and coded.

    Parameters
    ----------
    sample : Sample
        The declared facts, without units.
    columns : tuple of str
        The columns with the answers.
    respondent : str or None
        The column that names the respondents.
    codes : callable
        Returns the answers of a part of a frame, or refuses them: ranks, shape (rows, m), or the
        codes of categories, shape (rows, 1).
    ties, missing
        See :class:`privrank.encode.encoded.EncodedSample`.
    """

    sample: Sample
    columns: tuple[str, ...]
    respondent: str | None
    codes: Callable[[Any], IntArray]
    ties: bool = False
    missing: Missing | None = None

    @property
    def counted(self) -> bool:
        """Whether the counts by category contain all information."""
        return self.sample.kind == "choices" and self.respondent is None

    def encoded(
        self, nobs: int, rows: IntArray, people: RespondentBlocks | None = None
    ) -> EncodedSample:
        """Return a sample of `nobs` units with these rows or respondents."""
        return EncodedSample(replace(self.sample, nobs=nobs), rows, people, self.ties, self.missing)


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
    """Return the view of rankings (frame or array), and the rules of its rows.

    An array has shape (n, m) and contains plain ranks, for example from a simulation. For arguments
    see :class:`privrank.PrivateRankAggregation`; `purpose` determines the wording of
    messages about ties and missing items. Every violation of a rule raises a ValueError or a
    TypeError with a short message.
    """
    bound = check_count("max_rows", max_rows)
    ties = check_flag("ties", ties)
    if missing is not None:
        check_choice("missing", missing, Missing)
    declared = None if items is None else tuple(str(label) for label in check_items(items))
    if isinstance(frame, np.ndarray) and frame.ndim == 2:
        labels = declared or tuple(str(k) for k in range(frame.shape[1]))
        check_several(labels, purpose)
        if len(labels) != frame.shape[1]:
            raise ValueError(
                f"items must name the {frame.shape[1]} columns of the array, but has "
                f"{len(labels)} names."
            )
        if frame.dtype.kind not in "iuf" or respondent is not None:
            frame = pd.DataFrame(frame, columns=list(labels))
    if not isinstance(frame, np.ndarray) or frame.ndim != 2:
        frame, labels = _rank_columns(frame, declared, respondent, purpose)
    halves = ties or missing is not None
    unranked = 2 * len(labels) + 2 if missing == "bottom" else 0

    def codes(part: Any) -> IntArray:
        cells = part if isinstance(part, np.ndarray) else _rank_cells(part, labels)
        check_ranks(
            cells,
            RANK_MESSAGES[purpose],
            ties=ties,
            gaps=missing is not None,
            bottom=missing == "bottom",
        )
        if halves:  # twice the ranks are whole numbers
            cells = np.nan_to_num(2.0 * cells, nan=unranked)
        return np.array(cells, dtype=np.int64, order="C")

    sample = Sample(
        "rankings",
        labels,
        nobs=0,
        unit="row" if respondent is None else "respondent",
        max_rows=bound,
        completed=halves and purpose != "consensus",
    )
    return frame, SampleRules(sample, labels, respondent, codes, ties, missing)


def enough(nobs: int, least: int = MIN_UNITS) -> int:
    """Return the number of units; refuse fewer than `least`."""
    if nobs < least:
        raise ValueError(f"at least two units are needed, got {nobs}. Collect more answers.")
    return nobs


@dataclass(frozen=True, slots=True)
class Groups:
    """A column of groups, the declared groups, and whether the groups are paired.

    If paired, every respondent is in both groups. Without a column, all rows are one group.
    """

    column: str | None = None
    labels: tuple[Any, ...] = ("",)
    paired: bool = False

    def places(self, keys: Mapping[str, coding.Key], rows: int) -> IntArray:
        """Return the position of each row's group; refuse rows without a group."""
        if self.column is None:
            return np.zeros(rows, dtype=np.int64)
        return declared_codes(keys[self.column], self.labels, self.column, "groups")


def read_samples(
    view: Any, rules: SampleRules, groups: Groups = Groups(), *, named: bool = False
) -> tuple[list[EncodedSample], AnyArray]:
    """Read each row's respondent, group and answer in one pass over the frame.

    Returns the sample of each group, whatever its size. The view may be an array of plain ranks.
    With `named` also returns the names of all respondents, so the caller can compare them with
    another frame.

    **Privacy.** The check that a respondent is in only one group uses the same rows that are
    counted, and all rows of a respondent are in one part. So no respondent is in two groups, even
    if another evaluation of the frame would return other rows.
    """
    if isinstance(view, np.ndarray):  # an array needs no further reading
        ranks = rules.codes(view) if len(view) else view.astype(np.int64)
        return [rules.encoded(len(view), ranks)], np.array([])
    names = coding.distinct_names(*rules.columns, groups.column, rules.respondent)
    if rules.counted:
        view = frames.grouped(view, names)
        names = frames.column_names(view)

    def total(*sums: Any) -> Any:
        units, texts = zip(*sums, strict=True)
        return np.sum(units, axis=0), np.concatenate(texts) if named else texts[0][:0]

    read = partial(_counted if rules.counted else _rows_by_group, rules=rules, groups=groups)
    reading, people = clusters.count_parts(view, names, rules.respondent, read, total)
    if reading is None:  # no rows
        shape = (len(groups.labels), len(rules.sample.items))
        reading = np.zeros(shape, dtype=np.int64), np.array([])
    counts, texts = reading
    units = counts.sum(axis=1).tolist()
    if rules.counted:
        return list(map(rules.encoded, units, counts)), texts
    none = np.empty((0, len(rules.columns)), dtype=np.int64)
    return [
        rules.encoded(nobs, none, people.then(itemgetter(group)) if nobs else None)
        for group, nobs in enumerate(units)
    ], texts


def _counted(part: Any, rules: SampleRules, groups: Groups) -> tuple[Any, None]:
    """Return the choices of a part by group and category."""
    keys, size = coding.tally(part, coding.distinct_names(*rules.columns, groups.column), None)
    many = len(rules.sample.items)
    place = groups.places(keys, len(size)) * many + rules.codes(keys)[:, 0]
    return (sum_by(place, size, len(groups.labels) * many).reshape(-1, many), np.array([])), None


def _rows_by_group(
    part: Any, rules: SampleRules, groups: Groups
) -> tuple[Any, tuple[SampleBlock, ...]]:
    """Return the number of units by group, their names, and the rows by group."""
    keys = coding.keys_of(part, coding.distinct_names(rules.respondent, groups.column), None)[0]
    cells = narrow(rules.codes(part))
    place = groups.places(keys, len(cells))
    owner = None if rules.respondent is None else keys[rules.respondent]
    held = tuple(
        _rows_of(cells, np.flatnonzero(place == group), owner, rules, groups.paired)
        for group in range(len(groups.labels))
    )
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
    """Return the rows of one group; refuse too many rows of a respondent.

    `mine` are the positions of the group's rows.
    """
    if owner is None:
        return SampleBlock(np.zeros(len(mine), dtype=np.uint64), np.arange(len(mine)), cells[mine])
    own = owner.take(mine)
    check_owned(own, rules.respondent)
    if paired and len(own.codes) > len(own.values):
        raise ValueError(
            f"paired=True needs one row per respondent in each sample, and column "
            f"{rules.respondent!r} names at least one respondent twice. Keep one row per "
            f"respondent."
        )
    units_of(own, rules.respondent, np.ones(len(mine), dtype=np.int64), rules.sample.max_rows)
    # sort the rows of each respondent, so their order in the frame does not matter
    person = narrow(own.codes)
    order = mine[np.lexsort((*cells[mine].T, person))]
    return SampleBlock(coding.numbers_of_names(own.values), np.sort(person), cells[order])


def check_separate(shared: bool, respondent: object) -> None:
    """Refuse respondents in two groups, whose rows a permutation would separate."""
    if shared:
        raise ValueError(
            f"a respondent must be in one group only, and at least one respondent of column "
            f"{respondent!r} is in two. If the same respondents answered twice, use paired=True. "
            f"If ids of different people are equal, make them distinct."
        )


def check_matched(same: bool, respondent: object) -> None:
    """Refuse pairs of samples that have different respondents."""
    if not same:
        raise ValueError(
            f"paired=True needs every respondent in both samples, and column {respondent!r} has at "
            f"least one respondent in only one of them. Leave out respondents who did not answer "
            f"twice, or compare the samples without paired=."
        )


def _rank_columns(
    frame: object, declared: tuple[str, ...] | None, respondent: str | None, purpose: Purpose
) -> tuple[frames.Frame, tuple[str, ...]]:
    """Return a view of a rankings frame, and the names of the items."""
    columns: Any = frame.columns if declared is None and isinstance(frame, pd.DataFrame) else ()
    view = open_rows(frame, respondent, "rankings")[1]
    check_names("columns", [name for name in columns if name != respondent])
    names = frames.column_names(view)
    labels = declared or tuple(name for name in names if name != respondent)
    check_several([name for name in names if name != respondent], purpose)
    if (absent := first_absent(labels, names)) is not None:
        _refuse_pairs(names)
        raise ValueError(
            f"rankings has no column {absent!r}. Name the columns of ranks with items=. Convert "
            f"data of another form with {frames.AS_RANKINGS}, using 'orders' if cells name items."
        )
    if respondent in labels:
        raise ValueError("items= and respondent= must name different columns.")
    _check_numbers(view, labels, names)
    return view, labels


def _check_numbers(view: frames.Frame, labels: Sequence[str], names: Sequence[str]) -> None:
    """Refuse non-numeric columns of ranks; `names` are all columns of the frame."""
    if (text := frames.check_numeric(view, labels)) is not None:
        _refuse_pairs(names)
        raise TypeError(
            f"column {text!r} must hold ranks, whole numbers from 1 (best) to {len(labels)}, and a "
            f"missing value (NaN), never text, for an item that is not ranked. If it contains no "
            f"ranks, leave it out with items=[...] or name it in respondent=. Convert data of "
            f"another form with {frames.AS_RANKINGS}, using 'orders' if cells name items."
        )


def _refuse_pairs(names: Sequence[str]) -> None:
    """Refuse a frame that has the columns of comparisons, or of choices from offered sets."""
    _refuse_sets(names)
    if {"item1", "item2"} <= set(names) or {"winner", "loser"} <= set(names):
        raise TypeError(
            "rankings must have a column of ranks for each item, but this frame has comparisons. "
            "Use PrivateBTL for comparisons: its summary tests equal worths, and its formula "
            "'item1 + item2 + outcome ~ group' compares groups."
        )


def _refuse_sets(names: Sequence[str]) -> None:
    """Refuse a frame of choices from offered sets, whose answers depend on the sets."""
    if {"offered 1", "offered 2"} <= set(names):
        raise TypeError(
            "choices from offered sets must be given to PrivateBTL, UniformityTest or "
            "IdentityTest, which take the sets into account. To compare groups, use a formula of "
            "ClosenessTest or PrivateBTL."
        )


def encode_choices(frame: object, column: str, **options: Any) -> EncodedSample:
    """Validate a column of choices with the options of :func:`rules_of_choices`."""
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
    """Return the view of a frame with choices, and the rules of its rows.

    The categories are taken from the call (its argument is called `word`). If it gives none, they
    are taken from a polars Enum or a Boolean column, or finally from `known`, the categories of a
    null hypothesis. The other arguments are described in :func:`rules_of_rankings`.
    """
    bound = check_count("max_rows", max_rows)
    frame, view = open_rows(frame, respondent, "data")
    _refuse_sets(frames.column_names(view))
    own = frames.declared_values(frame, column)
    declared = next((given for given in (categories, own, known) if given is not None), None)
    if declared is None:
        raise undeclared(word, word)
    labels = check_items(declared, word)
    what: Declared = "names of null" if declared is known else word

    def codes(part: Any) -> IntArray:
        keys = part if isinstance(part, dict) else coding.keys_of(part, [column], None)[0]
        return declared_codes(keys[column], labels, column, what)[:, None]

    sample = Sample(
        "choices",
        tuple(map(str, labels)),
        nobs=0,
        unit="row" if respondent is None else "respondent",
        max_rows=bound,
    )
    return view, SampleRules(sample, (column,), respondent, codes)


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

    Lists of ranks are taken as an array, and a list of declared choices as a Series.
    `items` are the item columns of rankings. For choices, `categories` (or `items`) are the
    categories, and `known` is described in :func:`rules_of_choices`. `ties` and `missing` are the
    arguments of a test (:data:`privrank.plans.declarations.Ties`).
    """
    shared, gaps = as_declared(ties, missing)
    declared = items if categories is None else categories
    if isinstance(data, list | tuple | np.ndarray) and (array := as_array(data)).size:
        if array.ndim == 2:
            data = array
        elif array.ndim == 1 and (declared is not None or known is not None):
            data = pd.Series(list(data))
    if (column := frames.column_of(data, "choice")) is None:
        refuse_categories(categories)
        return encode_rankings(
            data, items=items, respondent=respondent, max_rows=max_rows, ties=shared, missing=gaps
        )
    refuse_partial(shared, gaps)
    if respondent is not None or max_rows != 1:
        raise ValueError(
            "respondent= and max_rows= need a frame. Use from_formula('choice ~ 1', data, "
            "respondent=...)."
        )
    return encode_choices(
        column,
        "choice",
        categories=declared,
        known=known,
        word="categories" if items is None else "items",
    )


def encode_counts(counts: object, categories: object, *, least: int = MIN_UNITS) -> EncodedSample:
    """Validate counts by declared category; one counted choice is the unit.

    A mapping or Series of counts may leave out categories that were not chosen. Fewer than `least`
    units are refused.
    """
    if categories is None:
        raise undeclared("categories", "categories")
    labels = check_items(categories, "categories")
    if isinstance(counts, Mapping | pd.Series):
        # counts may list a single category, because respondents decide which ones occur
        named = list(counts.keys())
        if len(set(named)) < len(named) or not set(named) <= set(labels):
            raise ValueError(
                "counts must name declared categories, each at most once, and at least one is not "
                "declared or is named twice. Add it to categories, or combine its counts."
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
        raise ValueError("counts must be whole numbers of at least 0, and at least one is not.")
    if table.sum() > LARGEST_TOTAL:
        raise ValueError(
            f"counts must add up to at most {LARGEST_TOTAL:,}, the limit of integer statistics. "
            f"Count in larger units."
        )
    return EncodedSample(
        Sample("choices", tuple(map(str, labels)), enough(int(table.sum()), least), "row", 1),
        table.astype(np.int64),
    )


def sample_of_formula(
    formula: object,
    data: object,
    arguments: Mapping[str, Any],
    purpose: Purpose = "test",
    known: object = None,
) -> EncodedSample:
    """Encode the sample of a formula: ``"a + b + c ~ 1"`` or ``"choice ~ 1"``.

    The former names rankings, the latter choices; `known` is described in :func:`rules_of_choices`.
    """
    parsed = parse(formula)
    if parsed.right or not parsed.intercept:
        raise ValueError(
            f"formula must have '~ 1' on its right, got {formula!r}. To compare groups, use "
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


def _rank_cells(view: frames.Frame, labels: Sequence[str]) -> AnyArray:
    """Return numeric columns as integers if all are, or as floats with NaN."""
    _check_numbers(view, labels, frames.column_names(view))
    table = frames.collect(view, labels)
    whole = all(isinstance(kind, np.dtype) and kind.kind in "iu" for kind in table.dtypes)
    return table.to_numpy() if whole else coding.numbers(table)


def ranks_by_name(frame: object, items: Sequence[str], name: str = "ranks") -> AnyArray:
    """Return the ranks in the item columns of a frame, for use without privacy.

    `name` is the name of the frame in messages.
    """
    view = open_rows(frame, None, name)[1]
    _refuse_sets(frames.column_names(view))
    if (absent := first_absent(items, frames.column_names(view))) is not None:
        raise ValueError(
            f"{name} has no column {absent!r}. Give its columns the names of the items."
        )
    view = next(frames.evaluate(view, items, whole=True))
    if frames.check_numeric(view, items):
        raise TypeError(
            f"{name} must hold numbers in the column of every item. Convert the columns beforehand."
        )
    cells = _rank_cells(view, items)
    return cells.astype(np.int64) if np.isfinite(cells).all() and not (cells % 1).any() else cells


def count_orders(ranks: IntArray) -> IntArray:
    """Return how often each of the m! rankings occurs; `ranks` has shape (n, m)."""
    from privrank.kernels.rankings import places_of

    return np.bincount(places_of(ranks), minlength=math.factorial(ranks.shape[1]))
