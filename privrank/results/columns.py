"""Several results side by side."""

from __future__ import annotations

from collections.abc import Sequence

from privrank import tables
from privrank.results.btl import BTLResult
from privrank.results.topk import TopKResult

__all__ = ["summary_col"]


def summary_col(results: Sequence[BTLResult | TopKResult]) -> tables.Table:
    """Set several results side by side, for example one column per epsilon.

    Parameters
    ----------
    results : sequence of results
        Results of one kind.

    Returns
    -------
    Table
        With ``as_text()``, ``as_html()``, ``as_latex()`` and ``as_csv()``.

    Raises
    ------
    TypeError
        If the list is empty or mixes kinds.
    """
    kinds = {type(result) for result in results}
    if len(kinds) != 1 or not kinds <= {BTLResult, TopKResult}:
        raise TypeError("results must be a non-empty list of fits of one kind.")
    title = "Bradley-Terry worths" if kinds == {BTLResult} else "Win rates"
    return tables.column_table(
        title,
        [result._column() for result in results],
        [
            "Standard errors in parentheses, sampling and privacy noise together.",
            *(
                ["Seeded noise: for studies, examples and tests, not for publication."]
                if any(result.release.source == "seeded" for result in results)
                else []
            ),
        ],
    )
