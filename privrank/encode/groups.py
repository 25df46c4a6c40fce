"""Samples that are to be compared: encoded one by one, their sizes public unless said otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from privrank.encode import frames
from privrank.encode.clusters import count_parts
from privrank.encode.encoded import (
    EncodedGroups,
    EncodedSample,
    check_owned,
    declared_codes,
    open_rows,
    sum_by,
)
from privrank.encode.samples import (
    encode_choices,
    encode_columns,
    encode_counts,
    encode_rankings,
    enough,
)
from privrank.hypotheses.nullmodel import NullModel
from privrank.plans.nullmodel import (
    answers_behind,
    as_declared,
    check_paired,
    formula_options,
    refuse_categories,
    refuse_partial,
)
from privrank.release.names import BESIDE_NULL
from privrank.release.survey import FEWEST_UNITS, Sample
from privrank.util.arrays import IntArray, orders_of
from privrank.util.checks import check_flag, check_items, undeclared
from privrank.util.formula import parse


def encode_samples(
    samples: Sequence[object],
    names: Sequence[str],
    *,
    items: object,
    categories: object,
    respondent: str | None,
    max_rows: object,
    ties: object,
    missing: object,
    secret: bool,
    paired: bool,
) -> EncodedGroups:
    """Validate one frame of rankings, or one Series of choices, per sample.

    Given the samples, their names and the arguments of :class:`privrank.ClosenessTest`; `secret` is
    whether who is in which sample is protected, so that no sample can be too small.
    """
    paired = check_flag("paired", paired)
    shared, gaps = as_declared(ties, missing)
    series = [frames.column_of(sample, "choice") for sample in samples]
    chosen = all(column is not None for column in series)
    if chosen and respondent is not None and not paired:
        raise ValueError(
            "respondent= needs a frame: use from_formula('choice ~ group', data, respondent=...)."
        )
    place = _matched(series if chosen else samples, respondent, max_rows, secret, paired)
    if chosen:
        refuse_partial(shared, gaps)
        word, declared = ("categories", categories) if items is None else ("items", items)
        options: dict[str, Any] = {"categories": declared, "word": word, "respondent": respondent}
        parts = [encode_choices(column, "choice", least=0, **options) for column in series]
        return _joined(parts, names, secret, place)
    refuse_categories(categories)
    options = {"respondent": respondent, "max_rows": max_rows, "least": 0, "purpose": "closeness"}
    options |= {"ties": shared, "missing": gaps}
    # the items of the first sample are those of the others
    first = encode_rankings(samples[0], items=items, **options)
    columns = first.sample.items if not isinstance(samples[0], np.ndarray) or items else items
    rest = [encode_rankings(sample, items=columns, **options) for sample in samples[1:]]
    return _joined([first, *rest], names, secret, place)


def against_answers(
    encoded: EncodedSample, null: NullModel, null_nobs: object, null_noise: object
) -> EncodedGroups:
    """Return a sample beside the answers from which a null hypothesis was estimated.

    Notes
    -----
    **Privacy.** Those answers are public, so that the sample's units are the only ones to protect;
    what protects the units of both protects these.
    """
    sample = encoded.sample
    counts = answers_behind(null, sample, null_nobs, null_noise)
    facts = Sample(sample.kind, sample.items, int(counts.sum()), sample.unit, sample.max_rows)
    rows = counts
    if sample.kind == "rankings":
        rows = np.repeat(orders_of(len(sample.items)), counts, axis=0)
    return _joined([encoded, EncodedSample(facts, rows)], BESIDE_NULL)


def encode_count_tables(counts: object, categories: object) -> EncodedGroups:
    """Validate counts by category for each group; one counted choice is the unit."""
    if not isinstance(counts, Mapping | pd.DataFrame) or len(counts.keys()) < 2:
        raise TypeError(
            "counts must map at least two groups to their counts by category, as a mapping of "
            "mappings or a frame with one column per group does."
        )
    names = check_items(list(counts.keys()), "groups")
    parts = [encode_counts(counts[name], categories, least=0) for name in counts.keys()]
    return _joined(parts, names)


def groups_of_formula(
    formula: object,
    data: object,
    arguments: Mapping[str, Any],
    *,
    secret: bool,
    paired: bool,
) -> EncodedGroups:
    """Encode what a formula names: ``"a + b + c ~ group"`` or ``"choice ~ group"``.

    Declared groups that nobody is in are left out where that is public, and the column may say
    which there are.

    **Privacy.** Where who is in which group is `secret`, so are the sizes of the groups: a group
    may be of any size, even empty, and nothing that is said depends on it.
    """
    parsed, paired = parse(formula), check_flag("paired", paired)
    if len(parsed.right) != 1 or not parsed.intercept:
        raise ValueError(
            f"formula must name one column of groups on its right, as in 'a + b + c ~ group', "
            f"got {formula!r}."
        )
    options = formula_options(parsed.left, arguments, {"levels"}, "closeness")
    levels: Any = options.pop("levels", None)
    respondent: Any = options.get("respondent")
    group = parsed.right[0]
    frame, view = open_rows(data, respondent, "data")
    wanted = [*parsed.left, group]
    frames.check_named(frame, wanted)
    if len(parsed.left) == 1 and options.get("categories") is None:
        options["categories"] = frames.declared_values(frame, parsed.left[0])
    # which groups there are is declared, or public and a property of the column
    if levels is None:
        levels = frames.declared_values(frame, group, public=not secret)
    if levels is None:
        raise undeclared("the groups", "levels=[...]")
    blocks = _blocks(view, group, levels, respondent, secret, paired)
    check_paired(paired, secret, respondent, len(blocks), options.get("max_rows", 1))
    place = partners(list(blocks.values()), respondent) if paired else None
    parts = [encode_columns(block, parsed.left, least=0, **options) for block in blocks.values()]
    return _joined(parts, list(blocks), secret, place, group)


def _blocks(
    view: frames.Frame, group: str, levels: object, respondent: Any, secret: bool, paired: bool
) -> dict[str, object]:
    """Return the rows of each declared group; refuse rows of none, and respondents in two.

    Of public groups those without rows are left out, and two must be left. The same respondents are
    in both of those that are `paired`.
    """
    labels = check_items(levels, "levels")
    remedy = "levels=: list there all groups that the questionnaire offers, with one for people "
    names = [group, *({respondent} - {None, group})]

    def count(part: Any) -> tuple[IntArray, None]:
        keys, size = frames.tally(part, names, None)
        place = declared_codes(keys[group], labels, group, "groups", remedy + "who did not say")
        if not paired and len(names) > 1:
            owner = keys[respondent]
            _check_separate((owner.codes >= 0).sum() > len(owner.values), respondent)
        return sum_by(place, size, len(labels)), None

    counts, _ = count_parts(view, names, respondent, count, lambda *parts: np.sum(parts, axis=0))
    met = zip(labels, np.zeros(len(labels)) if counts is None else counts, strict=True)
    blocks = {str(x): frames.rows_where(view, group, x) for x, size in met if size or secret}
    if len(blocks) < 2 and not secret:
        raise ValueError(
            f"at least two groups of column {group!r} must have units, and {len(blocks)} of those "
            f"declared has any: declare the groups that are in the data with levels=."
        )
    return blocks


def _check_separate(shared: bool, respondent: object) -> None:
    """Refuse respondents in two groups, whom a permutation would tear apart."""
    if shared:
        raise ValueError(
            f"a respondent must be in one group only, and at least one of column {respondent!r} is "
            f"in two: compare separate respondents, or the same ones twice with paired=True, or "
            f"make ids of different people differ."
        )


def _respondents(sample: object, respondent: str) -> frames.Key:
    """Return the respondents of a sample."""
    _, view = open_rows(sample, respondent, "data")
    return frames.key_of(frames.collect(view, [respondent])[respondent])


def _matched(
    samples: Sequence[object], respondent: Any, max_rows: object, secret: bool, paired: bool
) -> IntArray | None:
    """Return the partners of paired respondents; of separate ones, refuse any that are shared."""
    check_paired(paired, secret, respondent, len(samples), max_rows)
    if paired:
        return partners(samples, respondent)
    if respondent is not None:
        names = [set(_respondents(sample, respondent).values) for sample in samples]
        _check_separate(len(set().union(*names)) < sum(map(len, names)), respondent)
    return None


def partners(samples: Sequence[object], respondent: str) -> IntArray:
    """Return the place in the second sample of each respondent of the first, as they are encoded.

    Notes
    -----
    **Privacy.** Errors say nothing of who answered where, nor of how many did once only.
    """
    names = []
    for sample in samples:
        key = _respondents(sample, respondent)
        check_owned(key, respondent)
        if len(key.codes) > len(key.values):
            raise ValueError(
                f"paired=True takes one row per respondent in each sample, and column "
                f"{respondent!r} names at least one twice: keep the row that shall count."
            )
        # a fit takes them in the order of these numbers
        order = np.argsort(frames.numbers_of_names(key.values), kind="stable")
        names.append(pd.Index(key.values[order]))
    # as many in both and everyone found: the same respondents
    place = names[1].get_indexer(names[0])
    if len(names[0]) != len(names[1]) or (place < 0).any():
        raise ValueError(
            f"paired=True needs every respondent in both samples, and column {respondent!r} has at "
            f"least one in one of them only: leave out who did not answer twice, or compare the "
            f"samples without paired=."
        )
    return np.asarray(place, dtype=np.int64)


def _joined(
    parts: Sequence[EncodedSample],
    names: Sequence[Any],
    secret: bool = False,
    place: IntArray | None = None,
    column: str = "",
) -> EncodedGroups:
    """Join samples of the same items; with the partners of the first's units they are pairs.

    **Privacy.** Where the sizes of the groups are `secret`, nothing depends on them.
    """
    first = parts[0].sample
    for part in parts[1:]:
        if part.sample.items != first.items:
            raise ValueError(
                "the samples must have the same items, or categories, in the same order: declare "
                "them with items=."
            )
    for name, part in zip(names, parts, strict=True):
        if part.sample.nobs < FEWEST_UNITS and not secret:
            raise ValueError(
                f"every group must have at least two units, and group {str(name)!r} has "
                f"{part.sample.nobs}: leave it out with its rows, or collect more answers."
            )
    total = enough(sum(part.sample.nobs for part in parts))
    # sizes are public facts unless who is in which group is protected
    sizes = [None if secret else part.sample.nobs for part in parts]
    groups = tuple((str(name), size) for name, size in zip(names, sizes, strict=True))
    paired = place is not None
    nobs = first.nobs if paired else total
    sample = replace(first, nobs=nobs, groups=groups, paired=paired, group_column=column)
    return EncodedGroups(sample, parts, place)
