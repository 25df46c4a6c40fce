"""Rows first, rendering last: tables in the style of statsmodels.

The only importer of statsmodels, of which it builds the result of a joint test.
"""

from __future__ import annotations

import csv
import io
import re
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from privrank.results.latextable import latex_table

__all__ = ["RANK_OF", "Column", "Table", "chi_squared"]
RANK_OF = "rank of "
"""How the line of a column starts that has the rank of a term."""


def _markdown(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", " ".join(text.split()))


def _centred(text: str, width: int) -> list[str]:
    return [line.center(width).rstrip() for line in textwrap.wrap(text, width)]


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    none = sum(unicodedata.category(letter) in ("Mn", "Me", "Cf") for letter in text)
    return len(text) + wide - none


def _left(text: str, width: int) -> str:
    return text + (width - _width(text)) * " "


def _right(text: str, width: int) -> str:
    return (width - _width(text)) * " " + text


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
    spans : tuple of (str, int)
        Headings over the headings, and how many columns each stands over; none, or enough for all.
    rule : int
        Rows above a rule; 0 for none.
    """

    title: str
    header: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    spans: tuple[tuple[str, int], ...] = ()
    rule: int = 0

    @property
    def _facts(self) -> list[tuple[str, str, str, str]]:
        """The facts in two columns."""
        half = (len(self.header) + 1) // 2
        left, right = self.header[:half], [*self.header[half:], ("", "")][:half]
        return [(*one, *other) for one, other in zip(left, right, strict=True)]

    @property
    def _headings(self) -> list[str]:
        """The headings of the columns, each with the one it stands under."""
        over = [f"{name}: " for name, width in self.spans for _ in range(width)]
        over = over or [""] * (len(self.columns) - 1)
        return [self.columns[0], *map(str.__add__, over, self.columns[1:])]

    def as_text(self) -> str:
        """Return plain text."""
        facts = self._facts
        table = [[" ".join(cell.split()) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(map(_width, column)) for column in zip(*table, strict=True)]
        widths[1:] = [max(width, 7) + 1 for width in widths[1:]]
        place = 1
        for name, count in self.spans:
            place += count
            widths[place - 1] += max(
                0, _width(name) + 2 - sum(widths[place - count : place]) - count
            )
        # the facts are stretched to the width of the rows, or the first column is
        labels = [max((_width(row[k]) for row in facts), default=0) for k in range(4)]
        gap = sum(widths) + len(widths) - sum(labels) - 6
        widths[0] += max(0, -gap)
        width = sum(widths) + len(widths) - 1
        middle = labels[1] + max(gap, 0) // 2
        last = width - labels[0] - middle - labels[2] - 5
        lines = [
            f"{_left(a, labels[0])} {_right(b, middle)}   {_left(c, labels[2])} {_right(d, last)}"
            for a, b, c, d in facts
        ]
        cells = [
            " ".join((_left(row[0], widths[0]), *map(_right, row[1:], widths[1:]))) for row in table
        ]
        if self.rule:
            cells.insert(self.rule + 1, width * "-")
        thick, thin = width * "=", width * "-"
        block = [thick, *lines] * bool(facts)
        block += [thick, *self._spanned(widths), cells[0], thin, *cells[1:], thick]
        notes = [textwrap.fill(note, width) for note in self.notes]
        return "\n".join([*_centred(self.title, width), *block, *notes])

    def _spanned(self, widths: list[int]) -> list[str]:
        """Return the headings over several columns, with a rule below each."""
        names, rules, place = widths[0] * " ", widths[0] * " ", 1
        for name, count in self.spans:
            width = sum(widths[place : place + count]) + count - 1
            names += "  " + name.center(width - 1)
            rules += "  " + (width - 1) * "-"
            place += count
        return [names, rules] if self.spans else []

    def as_html(self) -> str:
        """Return HTML tables with escaped cells and notes, each table in a box that scrolls."""

        def line(cells: Sequence[str], heads: Sequence[bool]) -> str:
            tags = ("th" if head else "td" for head in heads)
            marked = zip(tags, map(escape, cells), strict=True)
            return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for tag, cell in marked)}</tr>"

        count = len(self.columns)
        facts = [line(row, (True, False) * 2) for row in self._facts]
        over = "".join(
            f'<th colspan="{width}" scope="colgroup">{escape(name)}</th>'
            for name, width in self.spans
        )
        head = [f"<tr><th></th>{over}</tr>"] * bool(over) + [line(self.columns, [True] * count)]
        rows = [line(row, (True, *[False] * (count - 1))) for row in self.rows]
        if self.rule:
            rows[self.rule] = rows[self.rule].replace("<tr>", '<tr class="rule">', 1)
        bodies = [("facts", "", facts)] * bool(facts) + [("rows", "".join(head), rows)]
        caption = f"<caption>{escape(self.title)}</caption>"
        tables = []
        for name, top, lines in bodies:
            thead = f"<thead>{top}</thead>" * bool(top)
            tables.append(
                f'<div class="box" style="overflow-x:auto"><table class="simpletable {name}">'
                f"{caption}{thead}<tbody>{''.join(lines)}</tbody></table></div>"
            )
            caption = ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f'<div class="privrank-table">{"".join(tables)}{notes}</div>'

    def as_latex(self) -> str:
        """Return a LaTeX table as wide as a line (needs booktabs and tabularx), text escaped.

        Of some 50 rows or more a table is longer than a page: ``summary_col(..., rows=...)`` sets
        those that are wanted.
        """
        return latex_table(
            self.title, self.header, self.columns, self.rows, self.notes, self.spans, self.rule
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a data frame, cells as they are printed.

        The numbers themselves are in ``to_frame()`` and ``tidy()`` of the results. Headings over
        several columns are a first level of the columns.
        """
        columns = pd.Index(self.columns[1:])
        if self.spans:
            over = [name for name, width in self.spans for _ in range(width)]
            columns = pd.MultiIndex.from_arrays([over, self.columns[1:]])
        index = pd.Index([row[0] for row in self.rows], name=self.columns[0] or None)
        return pd.DataFrame([row[1:] for row in self.rows], index=index, columns=columns)

    def as_markdown(self) -> str:
        """Return Markdown: the facts and the rows as pipe tables, all text escaped."""

        def lines(rows: Sequence[Sequence[str]], rule: str = "---:") -> list[str]:
            cells = [[_markdown(cell) for cell in row] for row in rows]
            cells.insert(1, ["---"] + [rule] * (len(rows[0]) - 1))
            return [f"| {' | '.join(row)} |" for row in cells]

        blocks = [f"**{_markdown(self.title)}**"]
        if self.header:
            blocks.append("\n".join(lines([("", ""), *self.header], "---")))
        blocks.append("\n".join(lines([self._headings, *self.rows])))
        return "\n\n".join([*blocks, *map(_markdown, self.notes)]) + "\n"

    def as_csv(self) -> str:
        """Return the rows alone as comma-separated values."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self._headings)
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
    params: pd.Series[Any]
    bse: pd.Series[Any]
    facts: tuple[tuple[str, Any], ...]
    public: tuple[tuple[str, str], ...]

    @property
    def terms(self) -> list[str]:
        """What there are estimates or ranks of."""
        ranked = (label.removeprefix(RANK_OF) for label, _ in self.facts if RANK_OF in label)
        return [*map(str, self.params.index), *ranked]

    @property
    def words(self) -> set[str]:
        """What results of another kind may have, too."""
        return {*self.terms, *(label for label, _ in self.facts)}


def chi_squared(statistic: float, df: int) -> Any:
    """Return a statsmodels result of a test whose statistic is chi-squared under H0."""
    from statsmodels.stats.contrast import ContrastResults

    return ContrastResults(
        chi2=statistic, statistic=statistic, df_denom=df, distribution="chi2", distargs=(df,)
    )
