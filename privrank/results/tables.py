"""Tables as text, HTML, LaTeX, Markdown, CSV and data frames."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd

from privrank.util.arrays import immutable

# Printed text for a number that a release does not identify.
UNIDENTIFIED = "not identified"

# Shown names of statistics whose names in releases and ledgers differ.
_STATISTICS = {
    "Borda and residual norm": "mean ranks and residuals",
    "capped Borda norm": "mean ranks, capped",
    "Borda norm": "mean ranks",
    "coin and buckets": "bucket test",
    "coin and ramp": "truncated test",
}

# Minimum width of a column of numbers in text, in letters.
_MIN_WIDTH = 7

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~])")

# LaTeX commands for characters with a special meaning in LaTeX.
_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {c: f"${c}$" for c in "<>|"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader

    return Environment(
        loader=PackageLoader("privrank"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )


def render(template: str, **values: Any) -> str:
    """Return a page or table from its template, with text escaped."""
    return str(_environment().get_template(template).render(**values))


def statistic_words(name: str | None) -> str:
    """Return the shown name of a statistic; other names are unchanged."""
    return _STATISTICS.get(name or "", name or "")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: heading, format of values, text for missing values."""

    heading: str
    printed: Callable[[Any], str] = "{:z.3f}".format
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Notes:
    """Sentences below a table, by the note they belong to."""

    estimates: Sequence[str] = ()
    tests: Sequence[str] = ()
    assumptions: Sequence[str] = ()
    privacy: Sequence[str] = ()


# The column of the rank sets of a fit.
RANKS = Column("rank", str, UNIDENTIFIED)


def interval_columns(
    alpha: float, limit: Callable[[Any], str] = "{:z.3f}".format
) -> dict[str, Column]:
    """Return the columns of interval limits, with the headings of statsmodels."""
    return {
        "lower": Column(f"[{alpha / 2:.3g}", limit),
        "upper": Column(f"{1 - alpha / 2:.4g}]", limit),
    }


def fit_columns(estimate: str, alpha: float, **own: Column) -> dict[str, Column]:
    """Return the columns of an estimate, its errors, p-value and interval.

    Columns in `own` replace the columns of the same name.
    """
    return {
        estimate: Column(
            "Borda" if estimate == "borda" else "coef", "{:z.4f}".format, UNIDENTIFIED
        ),
        "std_err": Column("std err"),
        "sampling": Column("sampling"),
        "privacy": Column("privacy"),
        "z": Column("z"),
        "pvalue": Column("P>|z|", pvalue_cell),
        **interval_columns(alpha),
        "ranks": RANKS,
        **own,
    }


def laid_out(
    frame: pd.DataFrame,
    columns: Mapping[str, Column],
    *,
    title: str,
    header: Sequence[tuple[str, str]] = (),
    notes: Notes,
    cautions: Sequence[str] = (),
) -> Table:
    """Return a frame as a table, with warnings after its other notes.

    Columns that the frame does not have are left out.
    """
    shown = {name: column for name, column in columns.items() if name in frame}
    cells = [
        [column.missing if pd.isna(value) else column.printed(value) for value in frame[name]]
        for name, column in shown.items()
    ]
    return Table(
        title=title,
        header=tuple(header),
        columns=("", *(column.heading for column in shown.values())),
        rows=tuple(zip(map(str, frame.index), *cells, strict=True)),
        notes=(
            *(
                " ".join(part)
                for part in (notes.estimates, notes.tests, notes.assumptions, notes.privacy)
                if part
            ),
            *cautions,
        ),
        cautions=tuple(cautions),
    )


def rank_ranges(frame: pd.DataFrame) -> pd.Series[Any]:
    """Return the printed rank sets or ranks of a frame; missing if none."""
    ends = frame[["rank_lower", "rank_upper"] if "rank_lower" in frame else ["rank", "rank"]]
    return pd.Series(
        [
            f"{low:.0f}" if low == high else f"{low:.0f}-{high:.0f}"
            for low, high in ends.to_numpy(dtype=float)
        ],
        frame.index,
    ).where(ends.iloc[:, 0].notna())


def joined(cautions: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the sentences about several results, each once.

    A sentence that does not concern all results begins with the names of its results. The
    argument has the name of each result with its sentences.
    """
    named: dict[str, list[str]] = {}
    for name, sentences in cautions:
        for sentence in dict.fromkeys(sentences):
            named.setdefault(sentence, []).append(name)
    return [
        sentence if len(of) == len(cautions) else f"{', '.join(of)}: {sentence}"
        for sentence, of in named.items()
    ]


def pvalue_cell(value: float) -> str:
    """Return a p-value in the format of tables, never as 0."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def format_pvalue(value: float) -> str:
    """Return a p-value in the format of sentences."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


@immutable
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
        Notes below the rows; printed notes are numbered.
    rule : int
        Rows above a rule; 0 for none.
    cautions : tuple of str
        Notes that are warnings or limitations; formats without other notes include them.

    See Also
    --------
    privrank.summary_col : Several results side by side.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> test = pr.UniformityTest.from_counts({"yes": 61, "no": 37}, categories=["yes", "no"])
    >>> table = test.fit(epsilon=np.inf).summary()
    >>> table.title, table.columns
    ('Test of Uniformity (non-private)', ('', 'statistic', 'threshold', 'p-value', 'decision'))
    """

    title: str
    header: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    rule: int = 0
    cautions: tuple[str, ...] = ()

    @property
    def facts(self) -> list[tuple[tuple[str, str], tuple[str, str]]]:
        """The header in two columns of facts.

        Examples
        --------
        >>> table.facts[0]
        (('Categories:', '2'), ('Mechanism:', 'no noise'))
        """
        half = (len(self.header) + 1) // 2
        return list(zip(self.header[:half], [*self.header[half:], ("", "")], strict=False))

    def as_text(self) -> str:
        """Return plain text.

        Examples
        --------
        >>> for line in table.as_text().splitlines()[8:11]:
        ...     print(line)
                                             statistic  threshold  p-value   decision
        -----------------------------------------------------------------------------
        distance of the share from the null     0.1224     0.1071    0.020  reject H0
        """
        lines = [[" ".join(cell.split()) for cell in line] for line in (self.columns, *self.rows)]
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        widths[1:] = [max(width, _MIN_WIDTH) + 1 for width in widths[1:]]
        # stretch the facts to the width of the rows, or the first column to the width of the facts
        cells = [(*left, *right) for left, right in self.facts] or [("",) * 4]
        first, value, second, last = (
            max(map(_width, column)) for column in zip(*cells, strict=True)
        )
        wide = first + value + second + last + 5
        widths[0] += max(0, wide - (sum(widths) + len(widths) - 1))
        width = sum(widths) + len(widths) - 1
        value += max(width - wide, 0) // 2
        last = width - 5 - first - value - second
        body = [
            " ".join((_left(line[0], widths[0]), *map(_right, line[1:], widths[1:])))
            for line in lines
        ]
        thick = width * "="
        thin = width * "-"
        if self.rule:
            body.insert(self.rule + 1, thin)
        title = [line.center(width).rstrip() for line in textwrap.wrap(self.title, width)]
        facts = [
            f"{_left(a, first)} {_right(b, value)}   {_left(c, second)} {_right(d, last)}"
            for (a, b), (c, d) in self.facts
        ]
        header = [thick, *facts] if self.header else []
        rows = [thick, body[0], thin, *body[1:], thick]
        notes = [textwrap.fill(note, width, break_on_hyphens=False) for note in self._numbered()]
        return "\n".join([*title, *header, *rows, *notes])

    def as_html(self) -> str:
        """Return HTML tables with escaped text, each in a box that scrolls.

        Examples
        --------
        >>> table.as_html().count("<table")
        2
        """
        return render("table.html", table=self)

    def as_latex(self) -> str:
        """Return a LaTeX table that fits on a page, with escaped text.

        A table that is wider than a line or higher than a page is set in smaller type (packages
        booktabs and adjustbox). Facts are set as a note. To select rows, use ``summary_col(...,
        rows=...)``.

        Examples
        --------
        >>> "booktabs" in table.as_latex()
        True
        """
        rows = [_latex_row(row) for row in self.rows]
        if self.rule:
            rows.insert(self.rule, r"\midrule")
        facts = [" ".join(f"{label} {value}." for label, value in self.header)]
        notes = [rf"{_latex(note)}\par" for note in (*facts, *self._numbered()) if note]
        return "\n".join(
            (
                r"% in the preamble: \usepackage{adjustbox,booktabs}",
                r"\begin{table}[htbp]\centering\small",
                rf"\caption{{{_latex(self.title)}}}\smallskip",
                r"\begin{adjustbox}{max width=\linewidth,max totalheight=0.6\textheight}",
                rf"\begin{{tabular}}{{@{{}}l{'r' * (len(self.columns) - 1)}@{{}}}}",
                *(r"\toprule", _latex_row(self.columns), r"\midrule", *rows, r"\bottomrule"),
                r"\end{tabular}\end{adjustbox}\par",
                *(r"\smallskip\footnotesize\raggedright", *notes, r"\end{table}"),
            )
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a data frame of printed cells.

        For unrounded numbers, use ``to_frame()`` and ``tidy()`` of the results. In all these frames
        ``attrs["warnings"]`` lists the warnings.

        Examples
        --------
        >>> table.to_frame()["p-value"].to_dict()
        {'distance of the share from the null': '0.020'}
        """
        frame = pd.DataFrame(
            [row[1:] for row in self.rows],
            index=pd.Index([row[0] for row in self.rows], name=self.columns[0] or None),
            columns=list(self.columns[1:]),
        )
        frame.attrs["warnings"] = list(self.cautions)
        return frame

    def as_markdown(self) -> str:
        """Return the facts and the rows as Markdown pipe tables, with escaped text.

        Examples
        --------
        >>> table.as_markdown().splitlines()[0]
        '**Test of Uniformity (non-private)**'
        """
        blocks = [
            f"**{_markdown(self.title)}**",
            *([_pipes([("", ""), *self.header], "---")] if self.header else []),
            _pipes([self.columns, *self.rows], "---:"),
            *map(_markdown, self._numbered()),
        ]
        return "\n\n".join(blocks) + "\n"

    def _numbered(self) -> list[str]:
        """Return the notes with their heading and numbers."""
        numbered = [f"[{number}] {note}" for number, note in enumerate(self.notes, 1)]
        return ["Notes:", *numbered] if numbered else []

    def as_csv(self) -> str:
        """Return the rows as comma-separated values, then a row for each warning.

        Examples
        --------
        >>> print(table.as_csv().splitlines()[0])
        ,statistic,threshold,p-value,decision
        """
        cautions = [(caution, *[""] * (len(self.columns) - 1)) for caution in self.cautions]
        rows = pd.DataFrame([*self.rows, *cautions], columns=list(self.columns))
        return str(rows.to_csv(index=False, lineterminator="\n"))

    # a notebook or a console shows the table
    __repr__ = as_text
    _repr_html_ = as_html


def _width(text: str) -> int:
    """Return the width of a text in columns of a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    none = sum(unicodedata.category(letter) in ("Mn", "Me", "Cf") for letter in text)
    return len(text) + wide - none


def _left(text: str, width: int) -> str:
    return text + (width - _width(text)) * " "


def _right(text: str, width: int) -> str:
    return (width - _width(text)) * " " + text


def _markdown(text: str) -> str:
    """Return text on one line, escaped for Markdown."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _pipes(rows: Sequence[Sequence[str]], rule: str) -> str:
    """Return rows as a pipe table, with the first row as header."""
    lines = [[_markdown(cell) for cell in row] for row in rows]
    lines.insert(1, ["---", *[rule] * (len(rows[0]) - 1)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _latex(text: str) -> str:
    """Return text with special characters escaped for LaTeX."""
    return text.translate(_LATEX)


def _latex_cell(text: str) -> str:
    """Return an escaped cell with typographic minus signs and ranges."""
    if re.fullmatch(r"\d+-\d+", text):
        return text.replace("-", "--")
    return re.sub(r"^(\(?)-(?=[\d.i])", r"\1$-$", _latex(text))


def _latex_row(cells: Sequence[str]) -> str:
    # LaTeX would read a star or a bracket after the end of a row as an argument
    start = "{}" if cells[0].startswith(("[", "*")) else ""
    return start + " & ".join(map(_latex_cell, cells)) + r" \\"
