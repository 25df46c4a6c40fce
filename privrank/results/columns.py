"""Several results side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privrank.results import tables
from privrank.results.base import Result
from privrank.results.guarantee import seed_notes

__all__ = ["summary_col"]


def summary_col(
    results: Sequence[Result],
    *,
    names: Sequence[str] | None = None,
) -> tables.Table:
    """Set several results side by side, for example one column per epsilon.

    Parameters
    ----------
    results : sequence of results
        Results of one kind.
    names : sequence of str, optional
        Column headings; by default each result's epsilon.

    Returns
    -------
    Table
        With ``as_text()``, ``as_html()``, ``as_latex()`` and ``as_csv()``.

    Raises
    ------
    TypeError
        If the list is empty or mixes kinds.
    ValueError
        If `names` has another length than `results`.
    """
    kinds = {type(result) for result in results} if isinstance(results, Sequence) else set()
    if len(kinds) != 1 or not all(issubclass(kind, Result) for kind in kinds):
        raise TypeError("results must be a non-empty list of fits of one kind.")
    columns = [result._column() for result in results]
    if names is not None:
        if len(names) != len(columns):
            raise ValueError(f"names must give one heading per result, got {len(names)}.")
        columns = [
            replace(column, name=str(name)) for column, name in zip(columns, names, strict=True)
        ]
    kind = kinds.pop()
    errors = "Standard errors in parentheses, sampling and privacy noise together."
    notes = [errors] if kind.noisy_errors else []
    return tables.column_table(
        kind.family, columns, notes + seed_notes([result.release for result in results])
    )
