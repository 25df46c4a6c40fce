"""A page on a user's own results: tables, figures, the guarantee and the ledger in one file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from privrank import __version__
from privrank.privacy.budget import Ledger
from privrank.reporting.contents import pair_table
from privrank.reporting.figures import draw
from privrank.reporting.pages import page
from privrank.reporting.spending import write
from privrank.results.base import Result
from privrank.results.btl import BTLResult
from privrank.results.columns import label_all
from privrank.results.tables import Table
from privrank.util.checks import check_names

__all__ = ["report"]

_PLOTS = ("plot", "plot_pairwise", "plot_details")

_MOST_PAIRS = 300
"""Pairs of items of which a page has a table."""

_LONGEST = 250
"""Bytes of a file's name, of which systems allow 255; writing takes five more."""

_SEEDED = """<p class="banner"><strong>Not for publication.</strong> The noise of some results on
this page came from a generator with a seed: who knows the seed can take it off again. They are for
studies, examples and tests; leave out <code>rng=</code> for results to publish.</p>"""

_BARE = """<p class="banner"><strong>Not private.</strong> Some results on this page were fitted
without noise (epsilon = inf) and protect nobody.</p>"""

_READING = """<h2 id="protected">What is protected</h2>
<ul>
<li><strong>Whom.</strong> Each table names its unit, a row or a respondent with all their rows. Two
data sets are neighbours if one unit of the one is replaced in the other.</li>
<li><strong>How far.</strong> At epsilon e, exchanging one unit's answers for any others changes the
probability of any result by a factor of at most exp(e); where delta is not 0, up to a probability
of delta.</li>
<li><strong>In all.</strong> Epsilons and deltas of results about the same people add up. Results
that were computed from one release, such as worths and the leading items, cost it once.</li>
<li><strong>What is public.</strong> The number of units, the items, the bounds on what a unit may
contribute and the noise's distribution; each table says what else was taken as public.</li>
</ul>"""


def report(
    results: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    budget: Ledger | None = None,
    labels: Mapping[str, str] | None = None,
) -> Path:
    """Write a page on results: tables, figures, what is protected, and the ledger.

    The page is one HTML file that loads nothing, readable on a telephone and in the dark. It holds
    what results state and nothing else, so that it may be published as they may.

    Parameters
    ----------
    results : result, sequence of results, or mapping of str to result
        Results of any kinds, with their headings if it is a mapping. Tables, such as that of
        :func:`privrank.summary_col`, are taken, too, and whatever else has a ``summary()``.
    path : str or path-like
        The file to write, such as ``"report.html"``; one that exists is replaced, and folders
        that are missing are made.
    title : str, optional
        Title of the page.
    budget : Budget, optional
        The ledger to print.
    labels : mapping of str to str, optional
        Labels of items, groups and columns of covariates, as ``with_labels`` of a result takes
        them; each result is given those it knows.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TypeError, ValueError
        In one sentence, if there are no results, one of them is none, or an argument is not as
        described.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import privrank as pr
    >>> cems = pr.datasets.load_university()
    >>> test = pr.UniformityTest(cems.rankings(), respondent="respondent")
    >>> found = test.fit(epsilon=1.0, draws=199, rng=np.random.default_rng(1))
    >>> pr.report({"Is there a consensus?": found}, tempfile.mkdtemp() + "/page.html").name
    'page.html'
    """
    entries = _entries(results)
    if budget is not None and not isinstance(budget, Ledger):
        raise TypeError(f"budget must be a privrank.Budget, got {type(budget).__name__}.")
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a text, got {type(title).__name__}.")
    target = _target(path)
    if labels is not None:
        own = [name for name, entry in entries.items() if isinstance(entry, Result)]
        entries |= zip(own, label_all([entries[name] for name in own], labels), strict=True)
    heading = title or "Results under differential privacy"
    chapters = [_chapter(name, entry, n) for n, (name, entry) in enumerate(entries.items(), 1)]
    body = [f"<h1>{escape(heading)}</h1>", *_opening(entries), *chapters, _READING]
    if budget is not None:
        body += [
            "<h2>Ledger</h2>",
            f"<p>What was spent on these data, oldest first: {budget.spent[0]:g} of epsilon "
            f"{budget.epsilon:g}.</p>",
            _summary("budget", budget).as_html(),
        ]
    body.append(f"<p>Made with privrank {__version__}.</p>")
    try:
        write(target, page(heading, "\n".join(body)))
    except OSError as error:
        raise OSError(
            f"path must be a file that can be written, and {str(target)!r} is not: "
            f"{error.strerror or error}."
        ) from None
    return target


def _entries(results: Any) -> dict[str, Any]:
    """Return results by heading, that of their table where none is given."""
    if isinstance(results, Mapping):
        headings = check_names("results", list(results))
        if len(set(headings)) < len(headings):
            raise ValueError("results must have different headings: the same one is there twice.")
        found = dict(zip(headings, results.values(), strict=True))
    else:
        several = isinstance(results, Sequence) and not isinstance(results, str)
        found = {}
        for entry in results if several else [results]:
            name = heading = _summary("results", entry).title
            while name in found:
                number = sum(known.startswith(heading) for known in found) + 1
                name = f"{heading} ({number})"
            found[name] = entry
    if not found:
        raise ValueError("results must hold at least one result.")
    for name, entry in found.items():
        _summary(f"results[{name!r}]", entry)
    return found


def _summary(name: str, entry: Any) -> Table:
    """Return the table of an entry, and refuse what has none."""
    summary = None if isinstance(entry, type) else getattr(entry, "summary", None)
    table = entry if isinstance(entry, Table) else summary() if callable(summary) else None
    if not isinstance(table, Table):
        raise TypeError(
            f"{name} must be a result, such as fit() of a model returns, or a table of results, "
            f"got {type(entry).__name__}."
        )
    return table


def _target(path: object) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise TypeError(f"path must name a file, as 'report.html', got {type(path).__name__}.")
    target = Path(os.fspath(path))
    if "\0" in str(target) or len(os.fsencode(target.name)) > _LONGEST:
        raise ValueError("path must name a file, as 'report.html', and can name none.")
    if target.exists() and not target.is_file():
        what = "a folder" if target.is_dir() else "a device"
        raise ValueError(f"path must name a file, and {str(target)!r} is {what}.")
    return target


def _opening(entries: Mapping[str, Any]) -> list[str]:
    """Return what comes first: what to be warned of, and a line on each result."""
    fits = {name: dict(one._public()) for name, one in entries.items() if isinstance(one, Result)}
    sources = " ".join(public["noise source"] for public in fits.values())
    found = [_SEEDED] * ("seeded" in sources) + [_BARE] * ("none" in sources)
    if len(fits) < 2:
        return found
    heads = ("N", "unit", "epsilon", "delta", "noise source")
    rows = tuple((name, *(public[head] for head in heads)) for name, public in fits.items())
    return [*found, Table("Results on this page", (), ("result", *heads), rows).as_html()]


def _chapter(name: str, entry: Any, number: int) -> str:
    """Return the heading, table and figures of one entry."""
    parts = [f'<h2 id="result-{number}">{escape(name)}</h2>', _summary(name, entry).as_html()]
    for method in _PLOTS:
        if not isinstance(entry, Table) and (drawing := draw(entry, method)) is not None:
            parts.append(drawing.as_html())
    if (
        isinstance(entry, BTLResult)
        and len(entry.items) * (len(entry.items) - 1) // 2 <= _MOST_PAIRS
    ):
        table = pair_table(entry).as_html()
        parts.append(f"<details><summary>All pairs of items</summary>{table}</details>")
    return "\n".join(parts)
