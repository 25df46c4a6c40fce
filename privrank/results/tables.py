"""Rows first, rendering last: tables in the style of statsmodels.

The only importer of statsmodels. Its ``SimpleTable`` renders text, HTML and LaTeX; formats are
built here from copies, never edited in place.
"""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Column", "Table", "chi_squared", "column_table", "wald_results"]

_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {c: f"${c}$" for c in "<>|"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)


def _markdown(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", " ".join(text.split()))


def _latex(text: str) -> str:
    """Return text with every character LaTeX would act upon escaped."""
    return text.translate(_LATEX)


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table: facts in two columns, rows of results, notes.

    Parameters
    ----------
    title : str
        Centred title.
    header : tuple of (label, value)
        Facts above the rows, printed in two columns.
    columns : tuple of str
        Heading of the row labels, then of each cell.
    rows : tuple of tuple of str
        Row label, then cells.
    notes : tuple of str
        Sentences below the rows.
    """

    title: str
    header: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def _render(self, clean: Callable[[str], str]) -> tuple[Any, ...]:
        """Return statsmodels tables of the facts, if any, and of the rows."""
        from statsmodels.iolib.table import SimpleTable
        from statsmodels.iolib.tableformatting import fmt_2cols, fmt_params

        half = (len(self.header) + 1) // 2
        left, right = self.header[:half], [*self.header[half:], ("", "")][:half]
        facts = [(a, b, c, d) for (a, b), (c, d) in zip(left, right, strict=True)]
        cells = [[len(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(column) for column in zip(*cells, strict=True)]
        widths[1:] = [max(width, 7) + 1 for width in widths[1:]]
        # the two-column header is stretched to the width of the rows, or the first row label is
        labels = [max((len(row[k]) for row in facts), default=0) for k in range(4)]
        gap = sum(widths) + len(widths) - sum(labels) - 6
        widths[0] += max(0, -gap)
        spread = [labels[0], labels[1] + max(gap, 0) // 2, labels[2] + 2]
        spread.append(sum(widths) + len(widths) - 1 - sum(spread) - 3)
        top = SimpleTable(
            [[clean(a), clean(b), "  " + clean(c), clean(d)] for a, b, c, d in facts],
            txt_fmt=dict(fmt_2cols, data_aligns="lrlr", data_fmts=["%s"] * 4, colwidths=spread),
            html_fmt={"data_fmts": ["<th>%s</th>", "<td>%s</td>"] * 2},
            ltx_fmt={"data_aligns": "lrlr", "replacements": {}},
        )
        body = SimpleTable(
            [[clean(cell) for cell in row[1:]] for row in self.rows],
            headers=[clean(column) for column in self.columns[1:]],
            stubs=[clean(row[0]) for row in self.rows],
            txt_fmt=dict(fmt_params, data_fmts=["%s"] * (len(widths) - 1), colwidths=widths),
            ltx_fmt={"data_aligns": "r", "header_align": "r", "replacements": {}},
        )
        body[0][0].data = clean(self.columns[0])
        return (top, body) if facts else (body,)

    def as_text(self) -> str:
        """Return plain text."""
        *facts, rows = (str(table.as_text()).splitlines() for table in self._render(str))
        # the rule below the facts is the one above the rows
        lines = [line for block in facts for line in block[:-1]] + rows
        width = len(rows[0])
        notes = [textwrap.fill(note, width) for note in self.notes]
        title = [line.center(width).rstrip() for line in textwrap.wrap(self.title, width)]
        return "\n".join([*title, *lines, *notes])

    def as_html(self) -> str:
        """Return HTML tables with escaped cells and notes."""
        tables = "".join(str(table.as_html()) for table in self._render(escape))
        tables = tables.replace(
            '<table class="simpletable">',
            f'<table class="simpletable"><caption>{escape(self.title)}</caption>',
            1,
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f'<div class="privrank-table">{tables}{notes}</div>'

    def as_latex(self) -> str:
        """Return a LaTeX table with caption (needs booktabs), all text escaped."""
        tables = (str(table.as_latex_tabular(center=False)) for table in self._render(_latex))
        return "\n".join(
            (
                r"\begin{table}[htbp]",
                r"\centering",
                rf"\caption{{{_latex(self.title)}}}",
                *tables,
                *(rf"\par {_latex(note)}" for note in self.notes),
                r"\end{table}",
            )
        )

    def as_markdown(self) -> str:
        """Return Markdown: the facts and the rows as pipe tables, all text escaped."""

        def lines(rows: Sequence[Sequence[str]]) -> list[str]:
            cells = [[_markdown(cell) for cell in row] for row in rows]
            cells.insert(1, ["---"] + ["---:"] * (len(rows[0]) - 1))
            return [f"| {' | '.join(row)} |" for row in cells]

        blocks = [f"**{_markdown(self.title)}**"]
        if self.header:
            blocks.append("\n".join(lines([("", ""), *self.header])))
        blocks.append("\n".join(lines([self.columns, *self.rows])))
        return "\n\n".join([*blocks, *map(_markdown, self.notes)]) + "\n"

    def as_csv(self) -> str:
        """Return the rows alone as comma-separated values."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return out.getvalue()

    def __str__(self) -> str:
        """Return plain text."""
        return self.as_text()

    def __repr__(self) -> str:
        """Return plain text, so that a notebook or console shows the table."""
        return self.as_text()

    def _repr_html_(self) -> str:
        return self.as_html()


@dataclass(frozen=True, slots=True)
class Column:
    """What a table of several results needs of one: estimates and errors by term, lines below."""

    name: str
    params: pd.Series[float]
    bse: pd.Series[float]
    facts: tuple[tuple[str, str], ...]


def column_table(title: str, columns: Sequence[Column], notes: Sequence[str]) -> Table:
    """Set results side by side: estimates with standard errors in parentheses, then facts."""
    terms = list(dict.fromkeys(term for column in columns for term in column.params.index))
    rows: list[tuple[str, ...]] = []
    for term in terms:
        shown = [term in column.params.index for column in columns]
        pairs = list(zip(columns, shown, strict=True))
        rows.append((str(term), *(f"{c.params[term]:.4f}" if known else "" for c, known in pairs)))
        rows.append(("", *(f"({c.bse[term]:.4f})" if known else "" for c, known in pairs)))
    facts = [dict(column.facts) for column in columns]
    for label in dict.fromkeys(label for column in columns for label, _ in column.facts):
        rows.append((label, *(fact.get(label, "") for fact in facts)))
    heads = ("", *(column.name for column in columns))
    return Table(title, (), heads, tuple(rows), tuple(notes))


def chi_squared(statistic: float, df: int) -> Any:
    """Return a statsmodels result of a test whose statistic is chi-squared under H0."""
    from statsmodels.stats.contrast import ContrastResults

    return ContrastResults(
        chi2=statistic, statistic=statistic, df_denom=df, distribution="chi2", distargs=(df,)
    )


def wald_results(params: pd.Series[float], covariance: NDArray[np.float64]) -> Any:
    """Return a statsmodels results object for `t_test`, built on demand."""
    from statsmodels.base.model import LikelihoodModelResults

    names = [str(name) for name in params.index]
    data = SimpleNamespace(
        param_names=names,
        cov_names=names,
        xnames=names,
        ynames="preference",
        wrap_output=lambda obj, *args, **kwargs: obj,
    )
    model = SimpleNamespace(
        data=data,
        exog_names=names,
        endog_names="preference",
        df_model=len(names),
        df_resid=np.inf,
    )
    results = LikelihoodModelResults(
        model, params.to_numpy(), normalized_cov_params=covariance, scale=1.0, use_t=False
    )
    results.df_resid = np.inf
    return results
