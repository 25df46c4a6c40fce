"""Samples that are to be compared: encoded one by one, their sizes public unless said otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from privrank.encode import counting
from privrank.encode.encodedsample import FEWEST_UNITS, EncodedSample
from privrank.encode.formula import parse
from privrank.encode.frames import refuse_copy, with_respondent_column
from privrank.encode.ranks import as_declared
from privrank.encode.samples import (
    codes_of,
    encode_choices,
    encode_counts,
    encode_rankings,
    formula_options,
    refuse_partial,
)
from privrank.release.survey import Sample
from privrank.util.checks import check_items

__all__ = [
    "SECRET_LABELS",
    "EncodedGroups",
    "encode_count_tables",
    "encode_samples",
    "groups_of_formula",
]

SECRET_LABELS = (
    "labels='private' is available for two samples of choices with method='tv': use "
    "labels='public' where who is in which sample is known."
)
"""What is said where secret labels are asked for and there is no proof of their sensitivity."""


class EncodedGroups:
    """Sensitive samples to be compared, and the public facts about them.

    Parameters
    ----------
    sample : Sample
        Public facts; `groups` names the samples.
    parts : sequence of EncodedSample
        The samples, in that order.
    """

    __slots__ = ("_parts", "sample")

    def __init__(self, sample: Sample, parts: Sequence[EncodedSample]) -> None:
        self.sample = sample
        self._parts = tuple(parts)

    def __repr__(self) -> str:
        """Show the shape only."""
        sample = self.sample
        return f"<Encoded {sample.kind}: {len(sample.items)} items, {len(sample.groups)} groups>"

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = refuse_copy


def encode_samples(
    samples: Sequence[object],
    names: Sequence[str],
    *,
    items: object = None,
    respondent: str | None = None,
    max_rows: object = 1,
    ties: object = "refuse",
    missing: object = "refuse",
    secret: bool = False,
) -> EncodedGroups:
    """Validate one frame of rankings, or one categorical Series of choices, per sample.

    Parameters
    ----------
    samples : sequence of data frames or Series
        The samples.
    names : sequence of str
        Their names.
    items, respondent, max_rows
        As for :func:`privrank.encode.samples.encode_rankings`; `items` are the categories of
        choices.
    ties, missing
        The words of a test (:data:`privrank.encode.ranks.Ties`).
    secret : bool
        Whether who is in which sample is protected, so that no sample may be too small here.

    Raises
    ------
    ValueError, TypeError
        One sentence.
    """
    shared, gaps = as_declared(ties, missing)
    if all(isinstance(sample, pd.Series) for sample in samples):
        if respondent is not None:
            raise ValueError(
                "respondent= needs a frame: use from_formula('choice ~ group', data, "
                "respondent=...)."
            )
        refuse_partial(shared, gaps)
        frames = [sample.to_frame("choice") for sample in samples]  # type: ignore[attr-defined]
        least = _least(secret)
        return _joined(
            [encode_choices(each, "choice", categories=items, least=least) for each in frames],
            names,
        )
    if secret:
        raise ValueError(SECRET_LABELS)
    if respondent is not None:
        _refuse_shared(samples, respondent)
    unit: dict[str, Any] = {"respondent": respondent, "max_rows": max_rows}
    unit |= {"ties": shared, "missing": gaps}
    first = encode_rankings(samples[0], items=items, **unit, purpose="closeness")
    columns = first.sample.items if not isinstance(samples[0], np.ndarray) or items else items
    rest = [
        encode_rankings(sample, items=columns, **unit, purpose="closeness")
        for sample in samples[1:]
    ]
    return _joined([first, *rest], names)


def encode_count_tables(counts: object, categories: object = None) -> EncodedGroups:
    """Validate counts by category for each group; one counted choice is the unit."""
    if not isinstance(counts, Mapping | pd.DataFrame) or len(counts.keys()) < 2:
        raise TypeError(
            "counts must map at least two groups to their counts by category, as a mapping of "
            "mappings or a frame with one column per group does."
        )
    names = check_items([str(name) for name in counts.keys()], "groups")
    return _joined([encode_counts(counts[name], categories) for name in counts.keys()], names)


def groups_of_formula(
    formula: object, data: object, arguments: Mapping[str, Any], *, secret: bool = False
) -> EncodedGroups:
    """Encode what a formula names: ``"a + b + c ~ group"`` or ``"choice ~ group"``.

    **Privacy.** Where who is in which group is `secret`, so are the sizes of the groups: a group
    may be of any size here, and what is refused later is a declared bound that does not hold.
    """
    parsed = parse(formula)
    if len(parsed.right) != 1 or not parsed.intercept:
        raise ValueError(
            f"formula must name one column of groups on its right, as in 'a + b + c ~ group', "
            f"got {formula!r}."
        )
    rankings = len(parsed.left) > 1
    if rankings and secret:
        raise ValueError(SECRET_LABELS)
    given = dict(arguments)
    shared, gaps = as_declared(given.pop("ties", "refuse"), given.pop("missing", "refuse"))
    known = {"levels"} | (set() if rankings else {"categories"})
    options = formula_options(given, known)
    if rankings:
        options |= {"ties": shared, "missing": gaps}
    else:
        refuse_partial(shared, gaps)
    levels, respondent, group = (
        options.pop("levels", None),
        options.get("respondent"),
        parsed.right[0],
    )
    frame = with_respondent_column(data, respondent)
    view = counting.open_frame(frame, "data")
    wanted = [*parsed.left, group, *([respondent] if isinstance(respondent, str) else [])]
    for column in wanted:
        if column not in counting.column_names(view):
            raise ValueError(f"data has no column {column!r}: the formula names columns of data.")
    if not rankings and options.get("categories") is None:
        options["categories"] = counting.declared_values(frame, parsed.left[0])
    if levels is None:
        levels = counting.declared_values(frame, group)
    if levels is None:
        raise ValueError(
            f"the groups must be declared: pass levels=[...] or make column {group!r} categorical, "
            f"because a list read off the answers would reveal them."
        )
    table = counting.collect(view, list(dict.fromkeys(wanted)))
    least = _least(secret)
    blocks = _blocks(table, group, levels, least)
    if respondent is not None:
        _refuse_shared(list(blocks.values()), respondent)
    parts = [
        encode_rankings(block, items=parsed.left, purpose="closeness", **options)
        if rankings
        else encode_choices(block, parsed.left[0], least=least, **options)
        for block in blocks.values()
    ]
    return _joined(parts, list(blocks))


def _blocks(table: pd.DataFrame, group: str, levels: object, least: int) -> dict[str, pd.DataFrame]:
    """Return the rows of each declared group; refuse rows of none, and groups below `least`."""
    labels = check_items(levels, "levels")
    place = codes_of(table[group], labels)
    if (place < 0).any():
        raise ValueError(
            f"column {group!r} must hold declared groups only: at least one entry is missing or "
            f"not in levels=."
        )
    blocks = {str(label): table[place == code] for code, label in enumerate(labels)}
    for label, block in blocks.items():
        if len(block) < least:
            raise ValueError(
                f"every group must have at least two units, and group {label!r} has "
                f"{len(block)}: leave it out of levels= with its rows, or collect more answers."
            )
    return blocks


def _least(secret: bool) -> int:
    """Return the fewest units of a group; where the sizes are secret nothing depends on them."""
    return 0 if secret else FEWEST_UNITS


def _refuse_shared(samples: Sequence[object], respondent: str) -> None:
    """Refuse respondents in more than one sample: a permutation would tear them apart."""
    seen: set[Any] = set()
    for sample in samples:
        frame = with_respondent_column(sample, respondent)
        view = counting.open_frame(frame, "data")
        if respondent not in counting.column_names(view):
            return  # refused with the columns' names when the sample is encoded
        column = counting.collect(view, [respondent])[respondent]
        here = set(counting.factorize(column, respondent)[1])
        if here & seen:
            raise ValueError(
                f"a respondent must be in one group only, and at least one of column "
                f"{respondent!r} is in two: compare separate respondents."
            )
        seen |= here


def _joined(parts: Sequence[EncodedSample], names: Sequence[Any]) -> EncodedGroups:
    first = parts[0].sample
    for part in parts[1:]:
        if part.sample.items != first.items:
            raise ValueError(
                "the samples must have the same items, or categories, in the same order: declare "
                "them with items= or categories=."
            )
    groups = tuple((str(name), part.sample.nobs) for name, part in zip(names, parts, strict=True))
    total = sum(size for _, size in groups)
    return EncodedGroups(replace(first, nobs=total, groups=groups), parts)
