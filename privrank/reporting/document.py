"""The report page: findings, tables, figures, the guarantee and ledgers in one HTML file."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privrank import __version__
from privrank.privacy.budget import Ledger
from privrank.results import plots, tables
from privrank.results.aggregation import AggregationResult
from privrank.results.base import Result
from privrank.results.btl import BTLResult
from privrank.results.closeness import ClosenessResult, clear_words, null_in_words
from privrank.results.pooled import PooledResult
from privrank.results.ranktest import RankTestResult
from privrank.results.topk import TopKResult
from privrank.util.checks import check_names

_PLOTS = ("plot", "plot_pairwise", "plot_details")

# Bytes of a file's name, of which systems allow 255; writing takes five more.
_LONGEST = 250

# Items that are listed by name, and blocks of ranks and clear differences that are spelled out.
_NAMED = 6
_BLOCKS = 4
_CLEAR = 2


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
    heads = ("N", "unit", "epsilon", "delta", "noise")
    overview = tables.Table(
        "Results on this page",
        header=(),
        columns=("result", *heads),
        rows=tuple((name, *(facts[head] for head in heads)) for name, facts in public),
    )
    # apart from the user's own text the page contains released values only
    page = tables.render(
        "report.html",
        title=title or "Results under differential privacy",
        author=author,
        date=date.today().isoformat(),
        paragraphs=[part for part in re.split(r"\n\s*\n", text or "") if part.strip()],
        sources=" ".join(facts["noise"] for _, facts in public),
        overview=overview.as_html() if len(public) > 1 else None,
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
        ledgers=[
            *((name, entry) for name, entry, _ in entries if isinstance(entry, Ledger)),
            *([("Ledger", budget)] if budget is not None else []),
        ],
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
    else:
        several = isinstance(results, Sequence) and not isinstance(results, str)
        entries = list(results) if several else [results]
        headings = [""] * len(entries)
    if not entries:
        raise ValueError("results must hold at least one result.")
    named = []
    for heading, entry in zip(headings, entries, strict=True):
        summary = None if isinstance(entry, type) else getattr(entry, "summary", None)
        table = summary() if callable(summary) else entry
        if not isinstance(table, tables.Table):
            place = f"results[{heading!r}]" if isinstance(results, Mapping) else "results"
            raise TypeError(
                f"{place} must be a result, such as fit() of a model returns, or a table of "
                f"results, got {type(entry).__name__}."
            )
        named.append((heading or table.title, entry, table))
    return named


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


def findings(entry: Any) -> str:
    """Return the findings of a result; none for a ledger or a table of several results.

    Findings are sentences that hold simultaneously at the level of the result. Sentences about
    ranks are read off the rank sets of :func:`privrank.hypotheses.interval.rank_sets`. If a result
    has a test and statements of another family, the test comes first. The other statements are made
    only if it rejects, at the same level (a fixed sequence). If the hypothesis is true, a false
    statement needs a false rejection; if it is not, one of the other statements must be false.
    """
    if isinstance(entry, RankTestResult):
        return _tested(entry, entry.hypotheses[0])
    if isinstance(entry, ClosenessResult):
        return _compared(entry)
    if isinstance(entry, TopKResult):
        return _selected(entry)
    if isinstance(entry, BTLResult):
        return _fitted(entry) if entry.release.design.covariates is None else _regressed(entry)
    if isinstance(entry, PooledResult) and isinstance(entry.results[0], BTLResult):
        return _ranked(entry.to_frame(), "Ranking by worth", entry.alpha)
    if isinstance(entry, AggregationResult) and "rank_lower" in (frame := entry.to_frame()):
        # the order may follow majorities; rank sets are by Borda score
        frame = frame.sort_values("borda", ascending=False)
        return _ranked(frame, "Ranking by mean rank", entry.alpha)
    if isinstance(entry, AggregationResult | PooledResult):
        return (
            f"The estimated order is {_listed(list(entry.to_frame().index), 'then')}. No "
            f"simultaneous confidence statement is available for it."
        )
    return ""


def settled_ranks(high: Sequence[int]) -> list[tuple[int, int, list[int]]]:
    """Return the finest blocks of ranks that are certain, given the upper ends of rank sets.

    Each is its first and last rank and the positions of the items that have these ranks: where k
    items have upper ends of at most k, they are the first k.
    """
    made: list[tuple[int, int, list[int]]] = []
    first = 1
    for last in range(1, len(high) + 1):
        inside = [place for place, end in enumerate(high) if end <= last]
        if len(inside) == last:
            taken = {place for _, _, places in made for place in places}
            made.append((first, last, [place for place in inside if place not in taken]))
            first = last + 1
    return made


def _listed(names: Sequence[str], word: str = "and") -> str:
    if len(names) > _NAMED:
        return f"{', '.join(names[: _NAMED - 2])} and {len(names) - _NAMED + 2} more"
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _ranked(frame: pd.DataFrame, heading: str, alpha: float) -> str:
    """Return the ranks that are established: `frame` has rank sets, best items first."""
    names = [str(name) for name in frame.index]
    m = len(frame)
    low, high = (frame[end].to_numpy(dtype=np.int64) for end in ("rank_lower", "rank_upper"))
    level = f"simultaneous {100 * (1 - alpha):g}% confidence"
    if m > 1 and (high - low == m - 1).all():
        return f"{heading} ({level}): no differences between {_listed(names)} are established."
    settled = settled_ranks(high.tolist())
    single = {first: names[places[0]] for first, last, places in settled if first == last}
    said = []
    if m > 1 and {1, m} <= {*single} and len(settled) <= _BLOCKS:
        said.append(f"{single.pop(1)} ranks first and {single.pop(m)} last.")
    for first, last, places in settled[:_BLOCKS]:
        ranks = f"ranks {first} {'and' if last == first + 1 else 'to'} {last}"
        if first in single:
            place = {m: "ranks last", 1: "ranks first"}.get(first, f"has rank {first}")
            said.append(f"{single[first]} {place}.")
        elif first < last and (high[places] - low[places] == last - first).all():
            inside = _listed([names[place] for place in places])
            said.append(f"{inside} occupy {ranks}; their order is not established.")
        elif first < last:
            sets = _listed([f"{names[place]} ({low[place]}-{high[place]})" for place in places])
            said.append(f"{sets} occupy {ranks}; their order is only partly established.")
            if first == 1 and (low[places] == 1).sum() > 1:
                said.append("The leading item is not established.")
    if len(settled) > _BLOCKS:
        said.append("The table lists the other ranks.")
    note = "; possible ranks in parentheses" if any("(" in words for words in said) else ""
    return f"{heading} ({level}{note}): {' '.join(said)}"


def _fitted(result: BTLResult) -> str:
    """Return what the rank sets of worths state, within each component."""
    frame = result.to_frame()
    said = []
    several = [part for part in result.components if len(part) > 1 or len(result.items) == 1]
    for part in several:
        among = f" of {_listed(part)}" if len(result.components) > 1 else ""
        # each part has rank sets of its own, which hold simultaneously with the sets of the others
        said.append(
            _ranked(frame[frame.index.isin(part)], f"Ranking{among} by worth", result.alpha)
        )
    if alone := [item for item in result.items if item not in {*sum(several, ())}]:
        said.append(f"No ranks are stated for {_listed(alone)}.")
    return " ".join(said)


def _selected(result: TopKResult) -> str:
    """Return whether the set is separated, and the ranks that are left if it is."""
    frame = result.to_frame().dropna(subset=["rank"])
    k = result.k
    which = _listed(result.selected)
    top = f"top {k} by {result.target} are" if k > 1 else f"top item by {result.target} is"
    test = f"{tables.format_pvalue(result.pvalue)}, {100 * result.alpha:g}% level"
    if result.pvalue > result.alpha:
        return (
            f"The {top} {which}. The selection is not significantly separated from the rest "
            f"({test})."
        )
    # the selected items have ranks of at most k, whatever is left open if all pairs are compared
    chosen = frame["selected"]
    frame["rank_upper"] = frame["rank_upper"].mask(chosen, frame["rank_upper"].clip(upper=k))
    frame["rank_lower"] = frame["rank_lower"].where(chosen, frame["rank_lower"].clip(lower=k + 1))
    ranks = _ranked(frame, f"Ranking by {result.target}, given this separation", result.alpha)
    return (
        f"The {top} {which}. The selection is significantly separated from the rest ({test}). "
        f"{ranks} The rank sets in the table do not use this result."
    )


def _regressed(result: BTLResult) -> str:
    """Return the significant terms, by Holm's procedure: their p-values are of single terms."""
    pvalues = result.wald_test_terms()["pvalue"].astype(np.float64).dropna().sort_values()
    adjusted = np.maximum.accumulate(pvalues.to_numpy() * np.arange(len(pvalues), 0, -1))
    # the intercept tests for equal worths
    names = [*map(str, pvalues.rename({"Intercept": "the items in the reference group"}).index)]
    significant = names[: int((adjusted <= result.alpha).sum())]
    others = names[len(significant) :]
    tests = f"(score tests, Holm-adjusted, {100 * result.alpha:g}% level)"
    if not significant:
        return f"No term is significant {tests}."
    said = f"Significant terms {tests}: {_listed(significant)}."
    return f"{said} Terms that are not significant: {_listed(others)}." if others else said


def _tested(result: Any, null: str) -> str:
    """Return what a test decides: `null` is its hypothesis in words."""
    rejected = "rejected" if result.reject else "not rejected"
    decision = f"The hypothesis that {null.rstrip('.')} is {rejected}"
    if result.pvalue is None:
        return f"{decision} by the released decision."
    test = f"{100 * result.alpha:g}% level ({tables.format_pvalue(result.pvalue)})"
    said = f"{decision} at the {test}."
    return said if result.reject else f"{said} This is not evidence for the hypothesis."


def _compared(result: ClosenessResult) -> str:
    """Return what a comparison decides, and after a rejection which differences are clear."""
    said = _tested(result, null_in_words(result))
    frame = result._details()
    if frame is None or not result.reject or not frame["clear"].any():
        return said
    words = ". ".join(clear_words(result._sample, frame[frame["clear"]], _CLEAR))
    return (
        f"{said} {words}. These statements hold simultaneously at the {100 * result.alpha:g}% "
        f"level."
    )
