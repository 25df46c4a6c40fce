"""Labels for codes: the names that a survey's items and groups are shown under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.util.checks import check_names, seen

__all__ = ["check_labels", "codes", "labelled"]

_REST = "Intercept"
"""The column of a model matrix whose coefficients bear the names of the items alone."""


def codes(release: Release) -> tuple[str, ...]:
    """Return what can be labelled: items, columns of covariates, groups."""
    survey = release.survey
    more: tuple[str, ...] = ()
    if isinstance(survey, Sample):
        more = tuple(name for name, _ in survey.groups)
    elif survey.covariates is not None:
        columns = (name for name in survey.covariates.columns if name != _REST)
        more = (*survey.covariates.item_columns, *columns)
    return (*survey.items, *more)


def check_labels(labels: object, known: Sequence[str]) -> dict[str, str]:
    """Return labels by code, and refuse codes that are unknown.

    Raises
    ------
    TypeError, ValueError
        If it is no mapping to texts, a text is empty, or a code is unknown.
    """
    if not isinstance(labels, Mapping) or not all(isinstance(v, str) for v in labels.values()):
        raise TypeError('labels must map codes to texts, as {"crimRate": "Crime rate"} does.')
    check_names("labels", list(labels))
    if empty := [str(code) for code, label in labels.items() if not label.strip()]:
        raise ValueError(f"labels must not be empty, and that of {empty[0]!r} is.")
    if unknown := [str(code) for code in labels if str(code) not in known]:
        raise ValueError(
            f"labels must be for {', '.join(known)}, and {unknown[0]!r} is none of them."
        )
    return {str(code): seen(label) for code, label in labels.items()}


def labelled(release: Release, labels: object) -> Release:
    """Return a release whose items, columns of covariates and groups bear labels.

    The names are public facts, and nothing else changes.

    Raises
    ------
    TypeError, ValueError
        If it is no mapping to texts, a code is unknown, or two codes would have one label.
    """
    known = check_labels(labels, codes(release))

    def named(names: Sequence[str]) -> tuple[str, ...]:
        found = tuple(known.get(name, name) for name in names)
        shown = [seen(name) for name in found]
        if twice := [name for name in shown if shown.count(name) > 1]:
            raise ValueError(
                f"labels must differ from each other, and {twice[0]!r} is there twice."
            )
        return found

    survey = release.survey
    if isinstance(survey, Sample):
        names = named([name for name, _ in survey.groups])
        groups = tuple(zip(names, (size for _, size in survey.groups), strict=True))
        return replace(release, survey=replace(survey, items=named(survey.items), groups=groups))
    facts = survey.covariates
    if facts is not None:
        item_columns, columns = named(facts.item_columns), named(facts.columns)
        facts = replace(facts, item_columns=item_columns, columns=columns)
    return replace(release, survey=replace(survey, items=named(survey.items), covariates=facts))
