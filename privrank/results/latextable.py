"""A table in LaTeX that fits the lines of a page: tabularx measures, long words may break."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privrank.results.tables import Table

__all__ = ["latex_table"]

_SPECIAL = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {c: f"${c}$" for c in "<>|"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"\0": r"\allowbreak{}"}
)

_LINE = 345.0
"""Width of the text of an article in 10 pt, in points."""

_SIZES = (("small", 4.65, 34), ("footnotesize", 4.25, 42), ("scriptsize", 3.9, math.inf))
"""Sizes of type, the width of a figure in each, which is that of a wide letter, too, and how many
rows, with the headings, a page holds beside a caption and notes."""

_LETTER = 0.9
"""Width of a letter of a name, on average, as a share of that of a figure."""

_GAP = 6.0
"""Space between two columns, in points."""

_LONG_WORD = 12
"""Words of more letters may be broken after a mark of punctuation."""

_BREAK = r"[:,/_=](?=.)"

_WORDY = 10
"""Cells of more letters and several words may be broken between these."""

_LEFT = r">{\raggedright\arraybackslash\hspace{0pt}%s}X"
_RIGHT = r">{\raggedleft\arraybackslash\hspace{0pt}%s}X"


def _escaped(text: str) -> str:
    """Return text with every character LaTeX would act upon escaped, and long words breakable."""
    words = (
        re.sub(_BREAK, "\\g<0>\0", word) if len(word) > _LONG_WORD else word
        for word in text.split(" ")
    )
    return " ".join(words).translate(_SPECIAL)


def _cell(text: str) -> str:
    """Return an escaped cell, with the signs of negative numbers and ranges as they are set."""
    if re.fullmatch(r"\d+-\d+", text):
        return text.replace("-", "--")
    return re.sub(r"^(\(?)-(?=[\d.i])", r"\1$-$", _escaped(text))


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(_cell, cells)) + r" \\"


def _longest_word(cell: str) -> int:
    marked = re.sub(_BREAK, r"\g<0> ", cell) if len(cell) > _LONG_WORD else cell
    return max((len(word) for word in marked.split()), default=0)


def _specification(columns: Sequence[Sequence[str]]) -> tuple[str, str]:
    """Return the columns of the rows, and the largest type in which they fit a line.

    The first column and those of several words take what is left, by how much they hold.
    """
    longest = [max(map(len, column)) for column in columns]
    words = [max(map(_longest_word, column)) for column in columns]
    wraps = [
        place == 0 or any(len(cell) > _WORDY and " " in cell for cell in column)
        for place, column in enumerate(columns)
    ]
    least = [
        word if wrap else whole for word, wrap, whole in zip(words, wraps, longest, strict=True)
    ]
    room = _LINE - _GAP * (len(columns) - 1)
    # small type rather than broken cells, where there is such a type, and for long tables
    whole = [_LETTER * longest[0], *longest[1:]]
    fits = (
        name
        for need, rows in ((whole, len(columns[0])), (least, 1.5 * len(columns[0])))
        for name, each, page in _SIZES
        if each * sum(need) <= room and rows <= page
    )
    size = next(fits, _SIZES[-1][0])
    most = [50] + [15] * (len(columns) - 1)
    wanted = [max(word, min(*each)) for word, *each in zip(words, longest, most, strict=True)]
    total = sum(want for want, wrap in zip(wanted, wraps, strict=True) if wrap) or 1
    share = sum(wraps) / total
    kinds = []
    for place, (want, wrap) in enumerate(zip(wanted, wraps, strict=True)):
        width = "" if sum(wraps) == 1 else rf"\hsize={want * share:.2f}\hsize"
        kinds.append((_RIGHT if place else _LEFT) % width if wrap else "r")
    return "".join(kinds), size


def _tabular(columns: str, lines: Sequence[str]) -> str:
    start = rf"\noindent\begin{{tabularx}}{{\linewidth}}{{@{{}}{columns}@{{}}}}"
    return "\n".join((start, *lines, r"\end{tabularx}\par"))


def _facts(header: Sequence[tuple[str, str]], size: str) -> str:
    half = (len(header) + 1) // 2
    rest = [*header[half:], ("", "")][:half]
    rows = [_row((*left, *right)) for left, right in zip(header[:half], rest, strict=True)]
    most = [max(len(value) for _, value in side) or 1 for side in (header[:half], rest)]
    values = [_LEFT % rf"\hsize={2 * each / sum(most):.2f}\hsize" for each in most]
    return rf"{{\{size}" + _tabular("l" + "l".join(values), (r"\toprule", *rows)) + "}"


def _spanned(spans: Sequence[tuple[str, int]]) -> list[str]:
    """Return the headings over several columns, and the rules below them."""
    cells, rules, place = [""], [], 2
    for name, width in spans:
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{_escaped(name)}}}")
        rules.append(rf"\cmidrule(lr){{{place}-{place + width - 1}}}")
        place += width
    return [" & ".join(cells) + r" \\", " ".join(rules)] if spans else []


def latex_table(table: Table) -> str:
    r"""Return a table with caption, for an article's page; needs booktabs and tabularx.

    Facts and rows are as wide as the line, and cells of several words break. The size of type is
    the largest of ``\small``, ``\footnotesize`` and ``\scriptsize`` in which the columns fit, and
    the rows a page; facts and notes are in ``\footnotesize``.
    """
    columns = list(zip(table.columns, *table.rows, strict=True))
    specification, size = _specification(columns)
    rows = [_row(row) for row in table.rows]
    if table.rule:
        rows.insert(table.rule, r"\midrule")
    facts = max(size, "footnotesize", key=[name for name, *_ in _SIZES].index)
    first = r"\midrule" if table.header else r"\toprule"
    head = [first, *_spanned(table.spans), _row(table.columns), r"\midrule"]
    return "\n".join(
        (
            r"\begin{table}[htbp]",
            rf"\caption{{{_escaped(table.title)}}}",
            rf"\smallskip\{size}\setlength{{\tabcolsep}}{{{_GAP / 2:g}pt}}",
            *([_facts(table.header, facts)] if table.header else []),
            _tabular(specification, (*head, *rows, r"\bottomrule")),
            r"\smallskip\footnotesize\raggedright",
            *(rf"{_escaped(note)}\par" for note in table.notes),
            r"\end{table}",
        )
    )
