"""Several results side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pandas as pd

from privrank.results import tables
from privrank.results.base import RANK_OF, Result
from privrank.results.claims import said
from privrank.results.pooled import PooledResult
from privrank.util.checks import check_count, check_names


@dataclass(frozen=True, slots=True)
class _Column:
    """One column: estimates and standard errors by term, and the lines below."""

    params: pd.Series[Any]
    bse: pd.Series[Any]
    facts: dict[str, Any]
    public: dict[str, str]
    unlimited: dict[str, str]

    @property
    def terms(self) -> list[str]:
        """Terms with estimates or ranks."""
        ranked = (label.removeprefix(RANK_OF) for label in self.facts if RANK_OF in label)
        return [*map(str, self.params.index), *ranked]


def summary_col(
    results: Sequence[Result | PooledResult],
    *,
    names: Sequence[str] | None = None,
    rows: Sequence[str] | None = None,
    digits: int = 4,
    title: str | None = None,
) -> tables.Table:
    """Show several results side by side, for example one column per epsilon.

    Parameters
    ----------
    results : sequence of results
        Results of one or several kinds. A cell is blank if a result has no such number. If results
        estimate different quantities, an additional row names the quantity of each column.
    names : sequence of str, optional
        Column headings; by default each result's epsilon.
    rows : sequence of str, optional
        The terms to show, in this order; by default all of them. To show labels instead of codes,
        use the ``with_labels`` method of each result.
    digits : int, default 4
        Decimals of estimates, standard errors, statistics and p-values.
    title : str, optional
        Title of the table.

    Returns
    -------
    Table
        With ``as_text()``, ``as_html()``, ``as_latex()``, ``as_markdown()``, ``as_csv()`` and
        ``to_frame()``. The lines below the estimates are the public facts of each release: epsilon,
        delta, unit, mechanism and the source of the noise. If a limit of an interval is infinite,
        this is stated next to the standard error. The notes list every warning of the results; a
        warning that does not concern all columns names its columns.

    Raises
    ------
    TypeError
        If `results` is not a list of at least one result.
    ValueError
        If there are not as many `names` as results, or a term is unknown.

    See Also
    --------
    privrank.pool : Pool several fits.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> fits = [model.fit(epsilon, rng=np.random.default_rng(1)) for epsilon in (1.0, np.inf)]
    >>> table = pr.summary_col(fits, names=["private", "non-private"])
    >>> for line in str(table).splitlines()[2:6]:
    ...     print(line)
                  private  non-private
    ----------------------------------
    crimRate       0.6070       0.4383
                 (0.1843)     (0.1059)
    """
    if not isinstance(results, Sequence) or not all(
        isinstance(one, Result | PooledResult) for one in results
    ):
        raise TypeError("results must be a list of results.")
    if not results:
        raise TypeError("results must be a list of at least one result.")
    check_count("digits", digits, low=0, high=12)
    if not isinstance(title, str | None):
        raise TypeError(f"title must be a text, got {type(title).__name__}.")
    columns = [
        _Column(*result._numbers(), result._public(), result._unlimited()) for result in results
    ]
    headings = (
        [f"eps={result.epsilon:g}" for result in results]
        if names is None
        else check_names("names", names)
    )
    if len(headings) != len(results):
        raise ValueError(f"names must give one heading per result, got {len(headings)}.")
    terms = list(dict.fromkeys(chain.from_iterable(column.terms for column in columns)))
    if rows is not None:
        known = terms
        terms = check_names("rows", rows)
        if unknown := [row for row in terms if row not in known]:
            raise ValueError(f"rows must be among {', '.join(known)}, and {unknown[0]!r} is not.")
    # ranks are lines below the rule, under the estimates of the same terms
    estimates = _estimate_rows(columns, terms, digits)
    families = {result.family for result in results}
    cautions = _cautions(results, headings)
    seeded = any("seeded" in column.public["noise"] for column in columns)
    return tables.Table(
        title=title or (families.pop() if len(families) == 1 else "Results side by side"),
        header=(),
        columns=("", *headings),
        rows=(*estimates, *_fact_rows(columns, terms, digits)),
        notes=(
            *said("errors in parentheses", any(len(column.bse) for column in columns)),
            *said("seeded", seeded),
            *cautions,
        ),
        rule=len(estimates),
        cautions=cautions,
    )


def _cautions(results: Sequence[Result | PooledResult], headings: Sequence[str]) -> tuple[str, ...]:
    """Return the warnings, each once, with its columns if it is not about all."""
    distinct = len({*headings}) == len(headings)
    named = headings if distinct else [f"column {k}" for k in range(1, len(headings) + 1)]
    warned = (result._cautions() for result in results)
    return tuple(tables.joined(list(zip(named, warned, strict=True))))


def _estimate_rows(
    columns: Sequence[_Column], terms: Sequence[str], digits: int
) -> list[tuple[str, ...]]:
    """Return a row of estimates and one of their standard errors for each term."""
    kinds = [str(column.params.name or "") for column in columns]
    rows = [("estimate", *kinds)] if len({*kinds} - {""}) > 1 else []
    for term in terms:
        estimates = [term]
        errors = [""]
        for column in columns:
            value = column.params.get(term)
            error = column.bse.get(term)
            estimates.append(_printed("", value, digits))
            missing = error is None or math.isnan(error)
            shown = [_printed("", error, digits), *filter(None, [column.unlimited.get(term)])]
            errors.append("" if missing else f"({', '.join(shown)})")
        if any(term in column.params.index for column in columns):
            rows += [tuple(estimates), tuple(errors)]
    return rows


def _fact_rows(
    columns: Sequence[_Column], terms: Sequence[str], digits: int
) -> list[tuple[str, ...]]:
    """Return other lines of the results, then the public facts of their releases."""
    labels = [
        label
        for label in dict.fromkeys(chain(*(column.facts for column in columns)))
        if not label.startswith(RANK_OF) or label.removeprefix(RANK_OF) in terms
    ]
    rows = []
    for label in (*labels, *dict.fromkeys(chain(*(column.public for column in columns)))):
        values = [(column.public | column.facts).get(label) for column in columns]
        if any(value is not None for value in values):
            rows.append((label, *(_printed(label, value, digits) for value in values)))
    return rows


def _printed(label: str, value: Any, digits: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return tables.UNIDENTIFIED
    least = 10.0**-digits
    small = label.startswith("p-value") and value < least
    return f"<{least:.{digits}f}" if small else f"{value:.{digits}f}"
