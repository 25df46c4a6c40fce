"""Several results side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from privrank.results.base import Result, check_labels
from privrank.results.guarantee import SEEDED, UNIDENTIFIED
from privrank.results.tables import RANK_OF, Column, Table
from privrank.util.checks import check_count, check_names

if TYPE_CHECKING:
    from privrank.results.pooled import PooledResult

__all__ = ["label_all", "summary_col"]

_ESTIMATE = "estimate"


def summary_col(
    results: Sequence[Result | PooledResult],
    *,
    names: Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
    rows: Sequence[str] | None = None,
    groups: Mapping[str, int] | None = None,
    digits: int = 4,
    title: str | None = None,
) -> Table:
    """Set several results side by side, for example one column per epsilon.

    Parameters
    ----------
    results : sequence of results
        Results that state something about the same things: of one kind, or of several that share
        items, or p-values. Where their estimates differ in kind, a row says which is which.
    names : sequence of str, optional
        Column headings; by default each result's epsilon.
    labels : mapping of str to str, optional
        Labels of items, groups and columns of covariates, as ``with_labels`` of a result takes
        them; each result is given those it knows.
    rows : sequence of str, optional
        The terms to show, by code or label, in this order; by default all of them.
    groups : mapping of str to int, optional
        Headings over the headings, and over how many columns each stands, from left to right.
    digits : int, default 4
        Decimals of estimates, standard errors, statistics and p-values.
    title : str, optional
        Title of the table.

    Returns
    -------
    Table
        With ``as_text()``, ``as_html()``, ``as_latex()``, ``as_markdown()``, ``as_csv()`` and
        ``to_frame()``. Below the estimates it states what is public about each release: epsilon,
        delta, unit, mechanism and the source of the noise.

    Raises
    ------
    TypeError
        If the list is empty, holds what is no result, or results have no row in common.
    ValueError
        If there are not as many `names`, or columns in `groups`, as results, or a term or a code is
        unknown.
    """
    if not isinstance(results, Sequence) or not all(isinstance(one, Result) for one in results):
        raise TypeError("results must be a list of results.")
    if not results:
        raise TypeError("results must be a list of at least one result.")
    check_count("digits", digits, low=0, high=12)
    if not isinstance(title, str | None):
        raise TypeError(f"title must be a text, got {type(title).__name__}.")
    shown = results if labels is None else label_all(results, labels)
    columns = [result._column() for result in shown]
    _check_shared(results, columns)
    headings = [c.name for c in columns] if names is None else check_names("names", names)
    if len(headings) != len(results):
        raise ValueError(f"names must give one heading per result, got {len(headings)}.")
    spans = () if groups is None else _spans(groups, len(results))
    families = list(dict.fromkeys(result.family for result in results))
    terms = None if rows is None else check_names("rows", rows)
    asked = terms and _asked(columns, [_label(term, labels or {}) for term in terms])
    estimates = _estimate_rows(columns, asked, digits)
    facts = _fact_rows(columns, asked, digits)
    errors = "Standard errors in parentheses, sampling and privacy noise together."
    notes = [errors] * any(len(column.bse) for column in columns)
    notes += [SEEDED] * any("seeded" in dict(column.public)["noise source"] for column in columns)
    return Table(
        title=title or (families[0] if len(families) == 1 else "Results side by side"),
        header=(),
        columns=("", *headings),
        rows=(*estimates, *facts),
        notes=tuple(notes),
        spans=spans,
        rule=len(estimates),
    )


def label_all(
    results: Sequence[Result | PooledResult], labels: object
) -> list[Result | PooledResult]:
    """Return results, each with those of the labels that are for something in it.

    Raises
    ------
    TypeError, ValueError
        If it is no mapping to texts, a code is in no result, or two codes of one would have one
        label.
    """
    own = [result._codes() for result in results]
    known = check_labels(labels, list(dict.fromkeys(chain.from_iterable(own))))
    found = []
    for result, theirs in zip(results, own, strict=True):
        given = {code: known[code] for code in theirs if code in known}
        found.append(result.with_labels(given) if given else result)
    return found


def _label(term: str, labels: Mapping[str, str]) -> str:
    """Return a term in which codes are replaced: one alone, or a column and an item."""
    if term in labels:
        return labels[term]
    column, colon, item = term.rpartition(":")
    return f"{labels.get(column, column)}{colon}{labels.get(item, item)}"


def _check_shared(results: Sequence[Result | PooledResult], columns: Sequence[Column]) -> None:
    """Refuse a result of another kind than the first that shares no row with it."""
    first, own = results[0], columns[0].words
    for result, column in zip(results, columns, strict=True):
        if type(result) is not type(first) and not own & column.words:
            raise TypeError(
                f"results must have rows in common, and {type(first).__name__} and "
                f"{type(result).__name__} have none here: make a table of each kind."
            )


def _spans(groups: object, count: int) -> tuple[tuple[str, int], ...]:
    if not isinstance(groups, Mapping):
        raise TypeError('groups must map headings to numbers of columns, as {"Women": 2} does.')
    headings = check_names("groups", list(groups))
    spans = tuple(zip(headings, (check_count("groups", n) for n in groups.values()), strict=True))
    if sum(width for _, width in spans) != count:
        raise ValueError(
            f"groups must stand over all {count} results, and stand over "
            f"{sum(width for _, width in spans)} columns."
        )
    return spans


def _asked(columns: Sequence[Column], rows: Sequence[str]) -> list[str]:
    """Return the terms that were asked for, all of which must be there."""
    known = list(dict.fromkeys(chain.from_iterable(column.terms for column in columns)))
    if unknown := [row for row in rows if row not in known]:
        raise ValueError(f"rows must be among {', '.join(known)}, and {unknown[0]!r} is not.")
    return list(rows)


def _estimate_rows(
    columns: Sequence[Column], asked: Sequence[str] | None, digits: int
) -> list[tuple[str, ...]]:
    """Return a row of estimates and one of their standard errors for each term."""
    kinds = [str(column.params.name or "") for column in columns]
    rows = [(_ESTIMATE, *kinds)] if len({*kinds} - {""}) > 1 else []
    every = dict.fromkeys(chain.from_iterable(map(str, c.params.index) for c in columns))
    for term in every if asked is None else [row for row in asked if row in every]:
        known = [column if term in column.params.index else None for column in columns]
        found = ["" if c is None else _number(c.params[term], digits) for c in known]
        errors = ["" if c is None else f"({_number(c.bse[term], digits)})" for c in known]
        rows.append((term, *found))
        rows.append(("", *("" if UNIDENTIFIED in error else error for error in errors)))
    return rows


def _number(value: float, digits: int) -> str:
    return UNIDENTIFIED if math.isnan(value) else f"{value:.{digits}f}"


def _fact_rows(
    columns: Sequence[Column],
    asked: Sequence[str] | None,
    digits: int,
) -> list[tuple[str, ...]]:
    """Return what else is stated of each result, then what is public about its release."""
    facts = [{**dict(column.facts), **dict(column.public)} for column in columns]
    labels = dict.fromkeys(chain.from_iterable(facts))
    public = dict.fromkeys(label for column in columns for label, _ in column.public)
    if asked is not None:
        left_out = {f"{RANK_OF}{term}" for column in columns for term in column.terms} - {
            f"{RANK_OF}{term}" for term in asked
        }
        labels = dict.fromkeys(label for label in labels if label not in left_out)
    return [
        (label, *(_printed(label, fact.get(label), digits) for fact in facts))
        for label in (*(label for label in labels if label not in public), *public)
        if any(fact.get(label) is not None for fact in facts)
    ]


def _printed(label: str, value: Any, digits: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    least = 10.0**-digits
    return (
        f"<{least:.{digits}f}"
        if label.startswith("p-value") and value < least
        else f"{value:.{digits}f}"
    )
