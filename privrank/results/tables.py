"""Rows first, rendering last: a table as text, HTML, LaTeX, Markdown, CSV and a data frame."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd

# How the line of a column starts that has the rank of a term.
RANK_OF = "rank of "

# Letters that a column of numbers takes in text at least.
_LEAST_WIDTH = 7

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~])")

# What stands in LaTeX for characters it would act upon, and for a place where a word may break.
_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {c: f"${c}$" for c in "<>|"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"\0": r"\allowbreak{}"}
)

# Letters beyond which LaTeX may break a word after a mark of punctuation, and a cell between its
# words.
_LONG_WORD, _WORDY = 12, 10

# How many figures a line of an article at 10 pt, 345 points wide, holds in each type.
_SIZES = {"small": 74, "footnotesize": 81, "scriptsize": 88}

# Columns of cells that break, of equal widths, which tabularx finds.
_LEFT = r">{\raggedright\arraybackslash\hspace{0pt}}X"
_RIGHT = r">{\raggedleft\arraybackslash\hspace{0pt}}X"

# The same for a longtable, which finds none.
_LONG_LEFT = r">{\raggedright\arraybackslash}p{0.25\linewidth}"
_LONG_RIGHT = r">{\raggedleft\arraybackslash}p{0.15\linewidth}"

# Rows of a table that is sure to fit a page; one of more goes on over several pages.
_MOST_ROWS = 40


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader

    return Environment(
        loader=PackageLoader("privrank"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )


def render(template: str, **values: Any) -> str:
    """Return a page or table by its template, the text in it escaped."""
    return str(_environment().get_template(template).render(**values))


def interval_heads(alpha: float) -> tuple[str, str]:
    """Return the headings of the limits of an interval, as statsmodels has them."""
    return f"[{alpha / 2:.3g}", f"{1 - alpha / 2:.4g}]"


def printed(
    frame: pd.DataFrame, formats: Mapping[str, str | Callable[[Any], str]]
) -> tuple[tuple[str, ...], ...]:
    """Return the rows of a frame as they are printed, labels first, given a format by column.

    What is missing is left blank.
    """
    cells = pd.DataFrame(index=frame.index)
    for name, form in formats.items():
        write = form.format if isinstance(form, str) else form
        cells[name] = ["" if pd.isna(value) else write(value) for value in frame[name]]
    return tuple((str(name), *row) for name, row in zip(frame.index, cells.to_numpy(), strict=True))


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
    def facts(self) -> list[tuple[tuple[str, str], tuple[str, str]]]:
        """The header in two columns: facts that stand side by side."""
        half = (len(self.header) + 1) // 2
        right = [*self.header[half:], ("", "")]
        return list(zip(self.header[:half], right, strict=False))

    @property
    def _over(self) -> list[str]:
        """The heading that each column but the first stands under; empty where there are none."""
        return [name for name, count in self.spans for _ in range(count)]

    @property
    def _headings(self) -> list[str]:
        """The headings of the columns, each with the one it stands under."""
        if not self.spans:
            return list(self.columns)
        pairs = zip(self._over, self.columns[1:], strict=True)
        return [self.columns[0], *(f"{over}: {name}" for over, name in pairs)]

    def as_text(self) -> str:
        """Return plain text."""
        lines = [[" ".join(cell.split()) for cell in line] for line in (self.columns, *self.rows)]
        widths = self._text_widths(lines)
        width = sum(widths) + len(widths) - 1
        body = [
            " ".join((_left(line[0], widths[0]), *map(_right, line[1:], widths[1:])))
            for line in lines
        ]
        thick, thin = width * "=", width * "-"
        if self.rule:
            body.insert(self.rule + 1, thin)
        title = [line.center(width).rstrip() for line in textwrap.wrap(self.title, width)]
        header = [thick, *self._text_facts(width)] if self.header else []
        rows = [thick, *self._text_spans(widths), body[0], thin, *body[1:], thick]
        notes = [textwrap.fill(note, width) for note in self.notes]
        return "\n".join([*title, *header, *rows, *notes])

    def _text_widths(self, lines: Sequence[Sequence[str]]) -> list[int]:
        """Return the widths of the columns: those of the cells, and what facts and spans need."""
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        widths[1:] = [max(width, _LEAST_WIDTH) + 1 for width in widths[1:]]
        end = 1
        for name, count in self.spans:
            end += count
            room = sum(widths[end - count : end]) + count
            widths[end - 1] += max(0, _width(name) + 2 - room)
        # the facts are stretched to the width of the rows, or the first column to that of the facts
        facts = sum(self._fact_widths()) + 6 - (sum(widths) + len(widths))
        widths[0] += max(0, facts)
        return widths

    def _fact_widths(self) -> list[int]:
        """Return the widths of labels and values of the facts in both columns."""
        cells = [(*left, *right) for left, right in self.facts] or [("",) * 4]
        return [max(map(_width, column)) for column in zip(*cells, strict=True)]

    def _text_facts(self, width: int) -> list[str]:
        """Return the facts in lines of this width, which half of the free space divides."""
        first, value, second, _ = widths = self._fact_widths()
        value += max(width - 5 - sum(widths), 0) // 2
        last = width - 5 - first - value - second
        return [
            f"{_left(a, first)} {_right(b, value)}   {_left(c, second)} {_right(d, last)}"
            for (a, b), (c, d) in self.facts
        ]

    def _text_spans(self, widths: list[int]) -> list[str]:
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
        return render("table.html", table=self)

    def as_latex(self) -> str:
        """Return a LaTeX table as wide as a line (booktabs, longtable, tabularx), text escaped.

        The more a line has to hold, the smaller the type. A table of more than 40 rows goes on over
        several pages: ``summary_col(..., rows=...)`` sets those that are wanted.
        """
        kinds, letters = self._latex_columns(long=len(self.rows) > _MOST_ROWS)
        fits = [size for size, most in _SIZES.items() if letters <= most]
        size = fits[0] if fits else "scriptsize"
        setting = rf"\{size}\setlength{{\tabcolsep}}{{3pt}}"
        caption = rf"\caption{{{_latex(self.title)}}}"
        head = [*self._latex_spans(), _latex_row(self.columns), r"\midrule"]
        rows = [_latex_row(row) for row in self.rows]
        if self.rule:
            rows.insert(self.rule, r"\midrule")
        notes = [rf"{_latex(note)}\par" for note in self.notes]
        if len(self.rows) > _MOST_ROWS:
            # a longtable cannot hold another table, so that facts become a note
            as_note = " ".join(f"{label} {value}." for label, value in self.header)
            start = [r"\begingroup" + setting]
            body = [
                rf"\begin{{longtable}}{{@{{}}{kinds}@{{}}}}",
                *(caption + r"\\", r"\toprule", *head, r"\endhead"),
                *(*rows, r"\bottomrule", r"\end{longtable}"),
            ]
            notes, end = [rf"{_latex(as_note)}\par", *notes], r"\endgroup"
        else:
            start = [r"\begin{table}[htbp]", caption, r"\smallskip" + setting]
            body = [r"\toprule", *head, *rows, r"\bottomrule"]
            if self.header:
                facts = [_latex_row((*left, *right)) for left, right in self.facts]
                start += _tabularx(f"l{_LEFT}l{_LEFT}", [r"\toprule", *facts])
                body[0] = r"\midrule"
            body, end = _tabularx(kinds, body), r"\end{table}"
        preamble = r"% in the preamble: \usepackage{booktabs,longtable,tabularx}"
        below = r"\smallskip\footnotesize\raggedright"
        return "\n".join([preamble, *start, *body, below, *notes, end])

    def _latex_columns(self, *, long: bool) -> tuple[str, float]:
        """Return what kinds of columns there are, and how many letters a line has to hold.

        Labels, and cells of several words, break; columns of such cells are of one width.
        """
        columns = list(zip(self.columns, *self.rows, strict=True))
        labels, cells_that_break = (_LONG_LEFT, _LONG_RIGHT) if long else (_LEFT, _RIGHT)
        # tabularx gives its breaking columns one width, so that the longest word of all counts
        kinds, longest, words = [], 0.0, []
        for place, cells in enumerate(columns):
            wordy = any(" " in cell and len(cell) > _WORDY for cell in cells)
            if place == 0 or wordy:
                kinds.append(cells_that_break if place else labels)
                words.append(max(len(word) for cell in cells for word in _words(cell)))
            else:
                kinds.append("r")
                longest += max(map(len, cells))
        gaps = 1.5 * len(columns)  # 6 points between two columns
        return "".join(kinds), longest + len(words) * max(words) + gaps

    def _latex_spans(self) -> list[str]:
        """Return the headings over several columns, and the rules below them."""
        cells, rules, place = [""], [], 2
        for name, count in self.spans:
            cells.append(rf"\multicolumn{{{count}}}{{c}}{{{_latex(name)}}}")
            rules.append(rf"\cmidrule(lr){{{place}-{place + count - 1}}}")
            place += count
        return [" & ".join(cells) + r" \\", " ".join(rules)] if self.spans else []

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a data frame, cells as they are printed.

        The numbers themselves are in ``to_frame()`` and ``tidy()`` of the results. Headings over
        several columns are a first level of the columns.
        """
        columns: pd.Index[Any] = pd.Index(self.columns[1:])
        if self.spans:
            columns = pd.MultiIndex.from_arrays([self._over, self.columns[1:]])
        index = pd.Index([row[0] for row in self.rows], name=self.columns[0] or None)
        return pd.DataFrame([row[1:] for row in self.rows], index=index, columns=columns)

    def as_markdown(self) -> str:
        """Return Markdown: the facts and the rows as pipe tables, all text escaped."""
        blocks = [f"**{_markdown(self.title)}**"]
        if self.header:
            blocks.append(_pipes([("", ""), *self.header], "---"))
        blocks.append(_pipes([self._headings, *self.rows], "---:"))
        return "\n\n".join([*blocks, *map(_markdown, self.notes)]) + "\n"

    def as_csv(self) -> str:
        """Return the rows alone as comma-separated values."""
        rows = pd.DataFrame(list(self.rows), columns=self._headings)
        return str(rows.to_csv(index=False, lineterminator="\n"))

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


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    none = sum(unicodedata.category(letter) in ("Mn", "Me", "Cf") for letter in text)
    return len(text) + wide - none


def _left(text: str, width: int) -> str:
    return text + (width - _width(text)) * " "


def _right(text: str, width: int) -> str:
    return (width - _width(text)) * " " + text


def _markdown(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _pipes(rows: Sequence[Sequence[str]], rule: str) -> str:
    """Return rows as a pipe table, the first as its head."""
    lines = [[_markdown(cell) for cell in row] for row in rows]
    lines.insert(1, ["---", *[rule] * (len(rows[0]) - 1)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _latex(text: str) -> str:
    """Return text with every character LaTeX would act upon escaped, and long words breakable."""
    words = (
        re.sub(r"[:,/_=](?=.)", "\\g<0>\0", word) if len(word) > _LONG_WORD else word
        for word in text.split(" ")
    )
    return " ".join(words).translate(_LATEX)


def _words(text: str) -> list[str]:
    """Return the pieces of a cell that LaTeX keeps whole."""
    return _latex(text).replace(r"\allowbreak{}", " ").split() or [""]


def _latex_cell(text: str) -> str:
    """Return an escaped cell, with the signs of negative numbers and ranges as they are set."""
    if re.fullmatch(r"\d+-\d+", text):
        return text.replace("-", "--")
    return re.sub(r"^(\(?)-(?=[\d.i])", r"\1$-$", _latex(text))


def _latex_row(cells: Sequence[str]) -> str:
    # after the end of a row a star or a bracket would be read as a part of it
    start = "{}" if cells[0].startswith(("[", "*")) else ""
    return start + " & ".join(map(_latex_cell, cells)) + r" \\"


def _tabularx(columns: str, lines: Sequence[str]) -> list[str]:
    """Return a table as wide as a line."""
    start = rf"\noindent\begin{{tabularx}}{{\linewidth}}{{@{{}}{columns}@{{}}}}"
    return [start, *lines, r"\end{tabularx}\par"]
