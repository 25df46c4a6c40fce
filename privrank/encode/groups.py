"""Samples that are to be compared: encoded one by one, their sizes public unless said otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.encode.encodedsample import FEWEST_UNITS, EncodedSample, enough
from privrank.encode.formula import parse
from privrank.encode.frames import (
    check_name,
    check_named,
    refuse_copy,
    undeclared,
    with_respondent_column,
)
from privrank.encode.pairing import check_paired, partners
from privrank.encode.ranks import as_declared
from privrank.encode.samples import (
    codes_of,
    encode_choices,
    encode_counts,
    encode_rankings,
    formula_options,
    refuse_partial,
)
from privrank.hypotheses.nullmodel import NullModel
from privrank.release.survey import Sample
from privrank.util.arrays import orders_of
from privrank.util.checks import check_count, check_items, is_number, quoted

__all__ = [
    "EncodedGroups",
    "against_answers",
    "encode_count_tables",
    "encode_samples",
    "groups_of_formula",
]


IntArray = NDArray[np.int64]


class EncodedGroups:
    """Sensitive samples to be compared, and the public facts about them.

    Parameters
    ----------
    sample : Sample
        Public facts; `groups` names the samples.
    parts : sequence of EncodedSample
        The samples, in that order; some may be empty where their sizes are not public.
    partners : ndarray of int64 or None
        Of samples of the same respondents, the place in the second of each one of the first.
    """

    __slots__ = ("_partners", "_parts", "sample")

    def __init__(
        self, sample: Sample, parts: Sequence[EncodedSample], partners: IntArray | None = None
    ) -> None:
        self.sample = sample
        self._parts = tuple(parts)
        self._partners = partners

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
    paired: bool = False,
) -> EncodedGroups:
    """Validate one frame of rankings, or one Series of choices, per sample.

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
        Whether who is in which sample is protected, so that no sample can be too small.
    paired : bool
        Whether the samples are of the same respondents.

    Raises
    ------
    ValueError, TypeError
        One sentence.
    """
    shared, gaps = as_declared(ties, missing)
    if respondent is not None:
        check_name(respondent, "respondent")
    check_paired(paired, secret, respondent, len(samples), max_rows)
    series = [counting.column_of(sample, "choice") for sample in samples]
    chosen = all(each is not None for each in series)
    if chosen:
        samples = series
    place = partners(samples, str(respondent)) if paired else None
    if chosen:
        if respondent is not None and not paired:
            raise ValueError(
                "respondent= needs a frame: use from_formula('choice ~ group', data, "
                "respondent=...)."
            )
        refuse_partial(shared, gaps)
        asked: dict[str, Any] = {"categories": items, "word": "items", "respondent": respondent}
        parts = [encode_choices(each, "choice", least=0, **asked) for each in samples]
        return _joined(parts, names, secret, place)
    if respondent is not None and not paired:
        _refuse_shared(samples, respondent)
    unit: dict[str, Any] = {"respondent": respondent, "max_rows": max_rows, "least": 0}
    unit |= {"ties": shared, "missing": gaps}
    first = encode_rankings(samples[0], items=items, **unit, purpose="closeness")
    columns = first.sample.items if not isinstance(samples[0], np.ndarray) or items else items
    rest = [
        encode_rankings(sample, items=columns, **unit, purpose="closeness")
        for sample in samples[1:]
    ]
    return _joined([first, *rest], names, secret, place)


def against_answers(
    encoded: EncodedSample, null: NullModel, null_nobs: object, null_noise: object
) -> EncodedGroups:
    """Return a sample beside the answers from which a null hypothesis was estimated.

    Notes
    -----
    **Privacy.** Those answers are public, so that the sample's units are the only ones to protect;
    what protects the units of both protects these.

    **Statistic.** Counts are the shares times their number, rounded to whole answers so that they
    add up to it: those that were counted, if shares are given to enough digits.

    **Noise of the null.** Shares of n answers plus noise of standard deviation s in each count tell
    no less than those of n' = n / (1 + s^2 / (n p)) answers, p the least share: of any function f
    of the categories with mean mu noise adds (s / n)^2 sum_k (f_k - mu)^2, and that is at most
    s^2 / (n^2 p) times the variance of f. So many answers stand for them.
    """
    sample, p = encoded.sample, np.array(null.probabilities)
    number = check_count("null_nobs", null_nobs, low=FEWEST_UNITS)
    if sample.completed:
        raise ValueError(
            "null_nobs= compares complete rankings with complete ones: leave ties= and missing= "
            "out, or null_nobs= where the null is known exactly."
        )
    if not len(p):
        raise ValueError(
            "null_nobs= is for probabilities that were estimated from so many answers: leave it "
            "out for a Mallows model and for uniform rankings."
        )
    if null_noise is not None:
        if not is_number(null_noise) or not 0 <= null_noise < np.inf:
            raise ValueError(
                f"null_noise must be a standard deviation, a number of at least 0, got "
                f"{quoted(null_noise)}."
            )
        if not p.min() > 0:
            raise ValueError(
                "null must give each category a share above 0 with null_noise=: put rare "
                "categories together."
            )
        number = int(number / (1.0 + null_noise**2 / (number * p.min())))
        if number < FEWEST_UNITS:
            raise ValueError(
                f"null_noise must leave as much as {FEWEST_UNITS} answers tell, and leaves "
                f"{number}: put rare categories together, or take a null with less noise."
            )
    counts = np.floor(p * number + 1e-6).astype(np.int64)
    left = number - int(counts.sum())
    counts[np.argsort(counts - p * number, kind="stable")[:left]] += 1
    facts = Sample(sample.kind, sample.items, number, sample.unit, sample.max_rows)
    rows = counts
    if sample.kind == "rankings":
        rows = np.repeat(orders_of(len(sample.items)), counts, axis=0)
    names = ("data", "answers behind the null")
    return _joined([encoded, EncodedSample(facts, rows, None)], names)


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
    secret: bool = False,
    paired: bool = False,
) -> EncodedGroups:
    """Encode what a formula names: ``"a + b + c ~ group"`` or ``"choice ~ group"``.

    Declared groups that nobody is in are left out where that is public, and the column may say
    which there are.

    **Privacy.** Where who is in which group is `secret`, so are the sizes of the groups: a group
    may be of any size, even empty, and nothing that is said depends on it.
    """
    parsed = parse(formula)
    if len(parsed.right) != 1 or not parsed.intercept:
        raise ValueError(
            f"formula must name one column of groups on its right, as in 'a + b + c ~ group', "
            f"got {formula!r}."
        )
    rankings = len(parsed.left) > 1
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
    if respondent is not None:
        check_name(respondent, "respondent")
    frame = with_respondent_column(data, respondent)
    wanted = [*parsed.left, group, *([] if respondent is None else [respondent])]
    check_named(frame, wanted)
    view = counting.open_frame(frame, "data")
    if not rankings and options.get("categories") is None:
        options["categories"] = counting.declared_values(frame, parsed.left[0])
    if levels is None:
        levels = counting.declared_values(frame, group, public=not secret)
    if levels is None:
        raise undeclared("the groups", "levels=[...]")
    table = counting.collect(view, list(dict.fromkeys(wanted)))
    blocks = _blocks(table, group, levels, secret)
    check_paired(paired, secret, respondent, len(blocks), options.get("max_rows", 1))
    place = partners(list(blocks.values()), str(respondent)) if paired else None
    if respondent is not None and not paired:
        _refuse_shared(list(blocks.values()), respondent)
    parts = [
        encode_rankings(block, items=parsed.left, purpose="closeness", least=0, **options)
        if rankings
        else encode_choices(block, parsed.left[0], least=0, **options)
        for block in blocks.values()
    ]
    return _joined(parts, list(blocks), secret, place, group)


def _blocks(
    table: pd.DataFrame, group: str, levels: object, secret: bool
) -> dict[str, pd.DataFrame]:
    """Return the rows of each declared group; refuse rows of none.

    Of public groups those without rows are left out, and two must be left.
    """
    labels = check_items(levels, "levels")
    place = codes_of(table[group], labels)
    if (place < 0).any():
        raise ValueError(
            f"column {group!r} must hold declared groups only, and at least one entry is missing "
            f"or not in levels=: list there all groups that the questionnaire offers, with one for "
            f"people who did not say."
        )
    blocks = {str(label): table[place == code] for code, label in enumerate(labels)}
    if secret:
        return blocks
    blocks = {label: block for label, block in blocks.items() if len(block)}
    if len(blocks) < 2:
        raise ValueError(
            f"at least two groups of column {group!r} must have units, and {len(blocks)} of those "
            f"declared has any: declare the groups that are in the data with levels=."
        )
    return blocks


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
    sizes = [None if secret else part.sample.nobs for part in parts]
    groups = tuple((str(name), size) for name, size in zip(names, sizes, strict=True))
    paired = place is not None
    nobs = first.nobs if paired else total
    sample = replace(first, nobs=nobs, groups=groups, paired=paired, group_column=column)
    return EncodedGroups(sample, parts, place)
