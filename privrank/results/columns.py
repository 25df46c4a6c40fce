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
    terms = list(dict.fromkeys(chain.from_iterable(column.terms for column in columns)))
    if rows is not None:
        terms = _chosen(terms, [_label(row, labels or {}) for row in check_names("rows", rows)])
    # ranks are facts, too: below the rule, under the estimates of the same terms
    estimates = _estimate_rows(columns, terms, digits)
    families = {result.family for result in results}
    notes = []
    if any(len(column.bse) for column in columns):
        notes.append("Standard errors in parentheses, sampling and privacy noise together.")
    if any("seeded" in dict(column.public)["noise source"] for column in columns):
        notes.append(SEEDED)
    return Table(
        title=title or (families.pop() if len(families) == 1 else "Results side by side"),
        header=(),
        columns=("", *headings),
        rows=(*estimates, *_fact_rows(columns, terms, digits)),
        notes=tuple(notes),
        spans=() if groups is None else _spans(groups, len(results)),
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
    labelled = []
    for result, theirs in zip(results, own, strict=True):
        # a code that another result has is no error here
        given = {code: known[code] for code in theirs if code in known}
        labelled.append(result.with_labels(given) if given else result)
    return labelled


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


def _chosen(known: Sequence[str], rows: list[str]) -> list[str]:
    """Return the terms that are wanted, all of which must be there."""
    if unknown := [row for row in rows if row not in known]:
        raise ValueError(f"rows must be among {', '.join(known)}, and {unknown[0]!r} is not.")
    return rows


def _estimate_rows(
    columns: Sequence[Column], terms: Sequence[str], digits: int
) -> list[tuple[str, ...]]:
    """Return a row of estimates and one of their standard errors for each term."""
    kinds = [str(column.params.name or "") for column in columns]
    rows = [(_ESTIMATE, *kinds)] if len({*kinds} - {""}) > 1 else []
    for term in terms:
        estimates, errors = [term], [""]
        for column in columns:
            value = column.params.get(term)
            estimates.append("" if value is None else _number(value, digits))
            error = "" if value is None else f"({_number(column.bse[term], digits)})"
            errors.append("" if UNIDENTIFIED in error else error)
        if any(term in column.params.index for column in columns):
            rows += [tuple(estimates), tuple(errors)]
    return rows


def _number(value: float, digits: int) -> str:
    return UNIDENTIFIED if math.isnan(value) else f"{value:.{digits}f}"


def _fact_rows(
    columns: Sequence[Column], terms: Sequence[str], digits: int
) -> list[tuple[str, ...]]:
    """Return what else is stated of each result, then what is public about its release."""
    stated, public = [dict(c.facts) for c in columns], [dict(c.public) for c in columns]
    labels = [
        label
        for label in dict.fromkeys(chain(*stated))
        if not label.startswith(RANK_OF) or label.removeprefix(RANK_OF) in terms
    ]
    rows = []
    for label in (*labels, *dict.fromkeys(chain(*public))):
        values = [{**own, **more}.get(label) for own, more in zip(stated, public, strict=True)]
        if any(value is not None for value in values):
            rows.append((label, *(_printed(label, value, digits) for value in values)))
    return rows


def _printed(label: str, value: Any, digits: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    least = 10.0**-digits
    small = label.startswith("p-value") and value < least
    return f"<{least:.{digits}f}" if small else f"{value:.{digits}f}"
