"""The report page: findings, tables, figures, the guarantee and ledgers in one HTML file."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from privrank import __version__
from privrank.privacy.budget import Ledger
from privrank.reporting.findings import findings
from privrank.results import plots, tables
from privrank.results.base import Result
from privrank.results.pooled import PooledResult
from privrank.util.checks import check_names

_PLOTS = ("plot", "plot_pairwise", "plot_details")

# Bytes of a file's name, of which systems allow 255; writing takes five more.
_LONGEST = 250


def report(
    results: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    author: str | None = None,
    text: str | None = None,
    budget: Ledger | None = None,
) -> Path:
    """Write an HTML report: findings, tables, figures, privacy guarantee and ledgers.

    The page is one HTML file that loads no other file. It is readable on a telephone and in dark
    mode. It contains only what the results state and the text given here, so it may be published
    if the results may be.

    Parameters
    ----------
    results : result, sequence of results, or mapping of str to result
        Results of any kind; the keys of a mapping are their headings. Tables, such as the result of
        :func:`privrank.summary_col`, and other objects with a ``summary()`` are accepted as well.
        Ledgers are placed at the end.
    path : str or path-like
        The file to write, such as ``"report.html"``. An existing file is replaced, and missing
        folders are created.
    title : str, optional
        Title of the page.
    author : str, optional
        Author of the page, printed with the current date.
    text : str, optional
        Plain text that follows the findings; blank lines separate paragraphs.
    budget : Budget, optional
        The ledger to print at the end.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TypeError, ValueError
        If there are no results, an entry has no summary, or an argument is not as described.
    OSError
        If the file cannot be written.

    See Also
    --------
    privrank.summary_col : Several results in one table.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import privrank as pr
    >>> cems = pr.datasets.load_university()
    >>> test = pr.UniformityTest(cems.rankings(), respondent="respondent")
    >>> tested = test.fit(epsilon=1.0, draws=199, rng=np.random.default_rng(1))
    >>> page = tempfile.mkdtemp() + "/page.html"
    >>> pr.report({"Is there a consensus?": tested}, page, author="The survey office").name
    'page.html'

    Notes
    -----
    **Statistic.** The findings of one result hold simultaneously at its level. They are read off
    its rank sets. If a test comes first, such as the test of separation of a top-k selection, other
    statements are made only if it rejects. There is no adjustment across results.
    """
    entries = _entries(results)
    if budget is not None and not isinstance(budget, Ledger):
        raise TypeError(f"budget must be a privrank.Budget, got {type(budget).__name__}.")
    for name, words in (("title", title), ("author", author), ("text", text)):
        if words is not None and not isinstance(words, str):
            raise TypeError(f"{name} must be a text, got {type(words).__name__}.")
    target = _target(path)
    public = [
        (name, entry._public())
        for name, entry, _ in entries
        if isinstance(entry, Result | PooledResult)
    ]
    ledgers = [(name, entry) for name, entry, _ in entries if isinstance(entry, Ledger)]
    # apart from the user's own text the page contains released values only
    page = tables.render(
        "report.html",
        title=title or "Results under differential privacy",
        author=author,
        date=date.today().isoformat(),
        paragraphs=[part for part in re.split(r"\n\s*\n", text or "") if part.strip()],
        sources=" ".join(facts["noise"] for _, facts in public),
        overview=_overview(public).as_html() if len(public) > 1 else None,
        chapters=[
            {
                "heading": name,
                "findings": findings(entry),
                "warned": any(note.startswith("Warning") for note in table.notes),
                "table": table.as_html(),
                "figures": _figures(entry),
            }
            for name, entry, table in entries
            if not isinstance(entry, Ledger)
        ],
        ledgers=[*ledgers, *([("Ledger", budget)] if budget is not None else [])],
        version=__version__,
    )
    try:
        write(target, page)
    except OSError as error:
        raise OSError(
            f"path must be a file that can be written, and {str(target)!r} is not: "
            f"{error.strerror or error}."
        ) from None
    return target


def write(path: Path, text: str) -> None:
    """Write a file completely or not at all, even if the run is interrupted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # a rename is atomic, on one file system
    partial = path.with_name(path.name + ".part")
    partial.write_text(text, encoding="utf-8", newline="\n")
    os.replace(partial, path)


def _entries(results: Any) -> list[tuple[str, Any, tables.Table]]:
    """Return results with their headings, by default the titles of their tables."""
    if isinstance(results, Mapping):
        headings = check_names("results", list(results))
        entries = list(results.values())
        places = [f"results[{heading!r}]" for heading in headings]
    else:
        several = isinstance(results, Sequence) and not isinstance(results, str)
        entries = list(results) if several else [results]
        headings = [""] * len(entries)
        places = ["results"] * len(entries)
    if not entries:
        raise ValueError("results must hold at least one result.")
    shown = [_summary(*pair) for pair in zip(places, entries, strict=True)]
    named = [heading or table.title for heading, table in zip(headings, shown, strict=True)]
    return list(zip(named, entries, shown, strict=True))


def _summary(name: str, entry: Any) -> tables.Table:
    """Return the table of an entry, or raise an error if it has none."""
    summary = None if isinstance(entry, type) else getattr(entry, "summary", None)
    table = summary() if callable(summary) else entry
    if not isinstance(table, tables.Table):
        raise TypeError(
            f"{name} must be a result, such as fit() of a model returns, or a table of results, "
            f"got {type(entry).__name__}."
        )
    return table


def _target(path: object) -> Path:
    """Return the file to write, or raise an error if the path cannot name one."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise TypeError(f"path must name a file, as 'report.html', got {type(path).__name__}.")
    target = Path(os.fspath(path))
    if "\0" in str(target) or len(os.fsencode(target.name)) > _LONGEST:
        raise ValueError("path must name a file, as 'report.html', and can name none.")
    if target.exists() and not target.is_file():
        raise ValueError(
            f"path must name a file, and {str(target)!r} is "
            f"{'a folder' if target.is_dir() else 'a device'}."
        )
    return target


def _overview(public: Sequence[tuple[str, Mapping[str, str]]]) -> tables.Table:
    """Return a table of the public facts of each result."""
    heads = ("N", "unit", "epsilon", "delta", "noise")
    rows = tuple((name, *(facts[head] for head in heads)) for name, facts in public)
    return tables.Table("Results on this page", (), ("result", *heads), rows)


def _figures(entry: Any) -> list[dict[str, Any]]:
    """Return the figures of one entry."""
    plots = filter(None, (getattr(entry, name, None) for name in _PLOTS))
    return list(filter(None, map(_figure, plots)))


def _figure(plot: Any) -> dict[str, Any] | None:
    """Return the figure that a method draws, its width on the page, and its alternative text.

    None if there is nothing to draw, as for a decision or for pairs that were not released.
    """
    try:
        figure: plots.Figure = plot()
    except ValueError:
        return None
    axes = figure.axes[0]
    return {
        "data": base64.b64encode(plots.svg(figure)).decode("ascii"),
        "width": round(105 * figure.get_size_inches()[0]),  # CSS has 96 to the inch; a bit larger
        "alt": " ".join(f"{axes.get_title()}. {axes.get_xlabel()}".split()),
    }
