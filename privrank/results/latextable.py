"""A table in LaTeX that fits the lines of a page: tabularx measures, long words may break."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap

__all__ = ["latex_table"]

Rows = Sequence[Sequence[str]]

_SPECIAL = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {c: f"${c}$" for c in "<>|"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"\0": r"\allowbreak{}"}
)

_LINE = 345.0
"""Width of the text of an article in 10 pt, in points."""

_PAGE = 490.0
"""Height of the text of a page of it, less that of a caption and of rules."""

_SIZES = (("small", 4.65, 11.0), ("footnotesize", 4.25, 9.5), ("scriptsize", 3.9, 8.0))
"""Sizes of type, the width of a figure in each, which is that of a wide letter, too, and the height
of a line, in points."""

_FOOT = _SIZES[1]
"""The type of facts and notes."""

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
    # after the end of a row a star or a bracket would be read as a part of it
    start = "{}" if cells[0].startswith(("[", "*")) else ""
    return start + " & ".join(map(_cell, cells)) + r" \\"


def _longest_word(cell: str) -> int:
    marked = re.sub(_BREAK, r"\g<0> ", cell) if len(cell) > _LONG_WORD else cell
    return max((len(word) for word in marked.split()), default=0)


def _specification(columns: Sequence[Sequence[str]], height: float) -> tuple[str, str, int]:
    """Return the columns of the rows, the type in which they fit a line, and a page's rows.

    Given how high rows may be in all, in points. The first column and those of several words take
    what is left, by how much they hold. The type is the largest in which the rows fit a page, too;
    where there is none, that of the fewest pages.
    """
    longest = [max(map(len, column)) for column in columns]
    words = [max(map(_longest_word, column)) for column in columns]
    breaks = [
        place == 0 or any(len(cell) > _WORDY and " " in cell for cell in column)
        for place, column in enumerate(columns)
    ]
    least = [
        word if folds else whole for word, folds, whole in zip(words, breaks, longest, strict=True)
    ]
    room = _LINE - _GAP * (len(columns) - 1)
    most = [50] + [15] * (len(columns) - 1)
    wanted = [max(word, min(*each)) for word, *each in zip(words, longest, most, strict=True)]
    total = sum(want for want, folds in zip(wanted, breaks, strict=True) if folds) or 1
    fixed = sum(whole for folds, whole in zip(breaks, longest, strict=True) if not folds)

    def rows_of(size: tuple[str, float, float]) -> int:
        """Return how many rows a page holds, by the lines that cells take."""
        left = max(room / size[1] - fixed, 1.0) / _LETTER
        lines = [
            max(
                len(wrap(cell or "-", max(int(left * want / total), 1))) if folds else 1
                for cell, want, folds in zip(row, wanted, breaks, strict=True)
            )
            for row in zip(*columns, strict=True)
        ]
        return max(int(height / size[2] * len(lines) / sum(lines)), 1)

    # small type rather than broken cells, where there is such a type, and for long tables
    whole = [_LETTER * longest[0], *longest[1:]]
    fits = [
        (size[0], rows_of(size))
        for need in (whole, least)
        for size in _SIZES
        if size[1] * sum(need) <= room
    ] or [(_SIZES[-1][0], rows_of(_SIZES[-1]))]
    some = [found for found in fits if len(columns[0]) <= found[1]]
    size, page = some[0] if some else max(fits, key=lambda found: found[1])
    share = sum(breaks) / total
    kinds = []
    for place, (want, folds) in enumerate(zip(wanted, breaks, strict=True)):
        width = "" if sum(breaks) == 1 else rf"\hsize={want * share:.2f}\hsize"
        kinds.append((_RIGHT if place else _LEFT) % width if folds else "r")
    return "".join(kinds), size, page


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


def _parts(rows: Rows, rule: int, page: int) -> list[list[str]]:
    """Return the rows of a table with their rules, in as many parts as pages are needed."""
    pages = max(math.ceil(len(rows) / page), 1)
    ends = [len(rows) * place // pages for place in range(pages + 1)]
    parts = [[_row(row) for row in rows[a:b]] for a, b in pairwise(ends)]
    for start, part in zip(ends[:-1], parts, strict=True):
        if 0 < rule - start < len(part):
            part.insert(rule - start, r"\midrule")
    return parts


def latex_table(
    caption: str,
    facts: Sequence[tuple[str, str]],
    columns: Sequence[str],
    rows: Rows,
    notes: Sequence[str],
    spans: Sequence[tuple[str, int]],
    rule: int,
) -> str:
    r"""Return a table with caption, for an article's pages; needs booktabs and tabularx.

    Facts and rows are as wide as the line, and cells of several words break. The size of type is
    the largest of ``\small``, ``\footnotesize`` and ``\scriptsize`` in which the columns fit, and
    the rows a page; a table of more rows goes on in others of the same number. Facts, above the
    first of these, and notes, below the last, are in ``\footnotesize``.
    """
    lines = sum(math.ceil(len(note) * _LETTER * _FOOT[1] / _LINE) for note in notes)
    height = _PAGE - _FOOT[2] * (lines + len(facts) / 2.0)
    specification, size, page = _specification(list(zip(columns, *rows, strict=True)), height)
    small = max(size, "footnotesize", key=[name for name, *_ in _SIZES].index)
    parts, made = _parts(rows, rule, page), [r"% in the preamble: \usepackage{booktabs,tabularx}"]
    for place, part in enumerate(parts):
        header = facts if place == 0 else ()
        title = _escaped(caption) + (" (continued)" if place else "")
        first = r"\midrule" if header else r"\toprule"
        head = [first, *_spanned(spans), _row(columns), r"\midrule"]
        made += [
            r"\begin{table}[htbp]",
            *([r"\addtocounter{table}{-1}"] if place else []),
            rf"\caption{{{title}}}",
            rf"\smallskip\{size}\setlength{{\tabcolsep}}{{{_GAP / 2:g}pt}}",
            *([_facts(header, small)] if header else []),
            _tabular(specification, (*head, *part, r"\bottomrule")),
            r"\smallskip\footnotesize\raggedright",
            *(rf"{_escaped(note)}\par" for note in notes if place == len(parts) - 1),
            r"\end{table}",
        ]
    return "\n".join(made)
