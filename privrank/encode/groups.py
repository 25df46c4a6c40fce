"""Encode samples to compare; their sizes are public unless stated otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from privrank.encode import coding, frames
from privrank.encode.encoded import EncodedGroups, EncodedSample, open_rows
from privrank.encode.samples import (
    Groups,
    check_matched,
    check_separate,
    encode_counts,
    enough,
    read_samples,
    rules_of_choices,
    rules_of_rankings,
)
from privrank.hypotheses.nulls import NullModel
from privrank.plans.declarations import (
    answers_behind,
    as_declared,
    check_paired,
    formula_options,
    refuse_categories,
    refuse_partial,
)
from privrank.release.names import BESIDE_NULL
from privrank.release.survey import MIN_UNITS, Sample
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

    `names` are the names of the samples; for the other arguments see
    :class:`privrank.ClosenessTest`. With `secret`, membership in the samples is protected, and no
    sample is refused for its size.
    """
    paired = check_flag("paired", paired)
    shared, gaps = as_declared(ties, missing)
    series = [frames.column_of(sample, "choice") for sample in samples]
    chosen = all(column is not None for column in series)
    if chosen and respondent is not None and not paired:
        raise ValueError(
            "respondent= needs a frame. Use from_formula('choice ~ group', data, respondent=...)."
        )
    check_paired(paired, secret, respondent, len(samples), max_rows)
    if chosen:
        refuse_partial(shared, gaps)
        opened = [
            rules_of_choices(
                column,
                "choice",
                categories=categories if items is None else items,
                word="categories" if items is None else "items",
                respondent=respondent,
            )
            for column in series
        ]
    else:
        refuse_categories(categories)
        options: dict[str, Any] = {
            "respondent": respondent,
            "max_rows": max_rows,
            "ties": shared,
            "missing": gaps,
            "purpose": "closeness",
        }
        opened = [rules_of_rankings(samples[0], items=items, **options)]
        # all samples have the items of the first one
        items = (
            None if items is None and isinstance(samples[0], np.ndarray) else opened[0][1].columns
        )
        opened += [rules_of_rankings(one, items=items, **options) for one in samples[1:]]
    reading = [
        read_samples(view, rules, Groups(paired=paired), named=respondent is not None)
        for view, rules in opened
    ]
    return _joined(
        [encoded for (encoded,), _ in reading],
        names,
        secret,
        None
        if respondent is None
        else match_respondents([texts for _, texts in reading], respondent, paired),
    )


def against_answers(
    encoded: EncodedSample, null: NullModel, null_nobs: object, null_noise: object
) -> EncodedGroups:
    """Return a sample and the answers behind an estimated null, as two groups.

    Notes
    -----
    **Privacy.** The answers behind the null are public, so only the units of the sample need
    protection. A mechanism that protects the units of both groups protects these.
    """
    sample = encoded.sample
    counts = answers_behind(null, sample, null_nobs, null_noise)
    facts = Sample(sample.kind, sample.items, int(counts.sum()), sample.unit, sample.max_rows)
    rows = (
        np.repeat(orders_of(len(sample.items)), counts, axis=0)
        if sample.kind == "rankings"
        else counts
    )
    return _joined([encoded, EncodedSample(facts, rows)], BESIDE_NULL)


def encode_count_tables(counts: object, categories: object) -> EncodedGroups:
    """Validate counts by category for each group; one counted choice is the unit."""
    if not isinstance(counts, Mapping | pd.DataFrame) or len(counts.keys()) < 2:
        raise TypeError(
            "counts must give the counts by category of at least two groups. Pass a mapping of "
            "mappings, or a frame with one column per group."
        )
    names = check_items(list(counts.keys()), "groups")
    return _joined(
        [encode_counts(counts[name], categories, least=0) for name in counts.keys()], names
    )


def groups_of_formula(
    formula: object,
    data: object,
    arguments: Mapping[str, Any],
    *,
    secret: bool,
    paired: bool,
) -> EncodedGroups:
    """Encode the samples of a formula such as ``"choice ~ group"``.

    The left side names one column of choices, or item columns as in ``"a + b + c ~ group"``. If
    group membership is public, declared groups without units are left out, and the column may

    **Privacy.** If group membership is `secret`, the sizes of the groups are also secret. A group
    may then have any size, even zero, and no message depends on it.
    """
    parsed = parse(formula)
    paired = check_flag("paired", paired)
    if len(parsed.right) != 1 or not parsed.intercept:
        raise ValueError(
            f"formula must name one column of groups on its right, got {formula!r}. An example is "
            f"'a + b + c ~ group'."
        )
    options = formula_options(parsed.left, arguments, {"levels"}, "closeness")
    levels: Any = options.pop("levels", None)
    respondent: Any = options.get("respondent")
    group = parsed.right[0]
    frame, view = open_rows(data, respondent, "data")
    frames.check_named(frame, [*parsed.left, group])
    if len(parsed.left) == 1 and options.get("categories") is None:
        options["categories"] = frames.declared_values(frame, parsed.left[0])
    # the groups are declared, or they are public and a property of the column
    if levels is None:
        levels = frames.declared_values(frame, group, public=not secret)
    if levels is None:
        raise undeclared("groups", "levels")
    labels = check_items(levels, "levels")
    if len(parsed.left) == 1:
        view, rules = rules_of_choices(frame, parsed.left[0], **options)
    else:
        view, rules = rules_of_rankings(frame, items=parsed.left, **options)
    encoded = read_samples(view, rules, Groups(group, labels, paired))[0]
    # public groups without rows are left out
    met = [k for k in range(len(labels)) if encoded[k].sample.nobs or secret]
    if len(met) < 2:
        raise ValueError(
            f"at least two groups of column {group!r} must have units, but only {len(met)} of the "
            f"declared groups has any. Declare the groups in the data with levels=."
        )
    check_paired(paired, secret, respondent, len(met), options.get("max_rows", 1))
    return _joined(
        [encoded[k] for k in met],
        [labels[k] for k in met],
        secret,
        # the rows of both groups are in the order of the same respondents
        np.arange(encoded[0].sample.nobs) if paired else None,
        group,
    )


def match_respondents(names: Sequence[Any], respondent: str, paired: bool) -> IntArray | None:
    """Return the partners of paired respondents; if unpaired, refuse shared ones.

    `names` are the names of the respondents of two frames. The partner of a respondent of the first
    sample is a position in the second sample. Both samples are in the order in which a fit takes
    them: by the hashes of the names.

    Notes
    -----
    **Privacy.** Messages reveal neither who answered in which sample nor how many answered once.
    """
    (kind, first), (other, second) = (
        coding.comparable(one[np.argsort(coding.numbers_of_names(one), kind="stable")])
        for one in names
    )
    if kind != other and len(first) and len(second):
        raise TypeError(
            f"column {respondent!r} must name the respondents of both samples by the same type: "
            f"texts, numbers or dates. Cast it to text in both samples."
        )
    if not paired:
        check_separate(bool(first.isin(second).any()), respondent)
        return None
    place = second.get_indexer(first)
    # equal numbers, and each respondent found: the same respondents
    check_matched(len(first) == len(second) and bool((place >= 0).all()), respondent)
    return np.asarray(place, dtype=np.int64)


def _joined(
    parts: Sequence[EncodedSample],
    names: Sequence[Any],
    secret: bool = False,
    place: IntArray | None = None,
    column: str = "",
) -> EncodedGroups:
    """Join samples of the same items; with partners in `place` they are paired.

    **Privacy.** If the sizes of the groups are `secret`, nothing depends on them.
    """
    first = parts[0].sample
    if any(part.sample.items != first.items for part in parts):
        raise ValueError(
            "the samples must have the same items, or categories, in the same order. Declare them "
            "with items=."
        )
    for name, part in zip(names, parts, strict=True):
        if part.sample.nobs < MIN_UNITS and not secret:
            raise ValueError(
                f"every group must have at least two units, and group {str(name)!r} has "
                f"{part.sample.nobs}. Collect more answers, or leave out the group and its rows."
            )
    total = enough(sum(part.sample.nobs for part in parts))
    # sizes are public facts unless group membership is protected
    groups = tuple(
        (str(name), None if secret else part.sample.nobs)
        for name, part in zip(names, parts, strict=True)
    )
    return EncodedGroups(
        replace(
            first,
            nobs=total if place is None else first.nobs,
            groups=groups,
            paired=place is not None,
            group_column=column,
        ),
        parts,
        place,
    )
