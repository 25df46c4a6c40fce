"""Findings of a result in sentences that hold simultaneously at its level: the start of a report.

Sentences about ranks are read off the rank sets of :func:`privrank.hypotheses.ranksets.rank_sets`.
If a result has a test and statements of another family, the test comes first. The other statements
are made only if it rejects, at the same level (a fixed sequence). If the hypothesis is true, a
false statement needs a false rejection; if it is not, one of the other statements must be false.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from privrank.results.aggregation import AggregationResult
from privrank.results.btl import BTLResult
from privrank.results.closeness import ClosenessResult, clear_words, null_words
from privrank.results.pooled import PooledResult
from privrank.results.ranktest import RankTestResult
from privrank.results.tables import format_pvalue
from privrank.results.topk import TopKResult

# Items that are listed by name, and blocks of ranks and clear differences that are spelled out.
_NAMED = 6
_BLOCKS = 4
_CLEAR = 2

# The term that tests for equal worths.
_ITEMS = "the items in the reference group"


def findings(entry: Any) -> str:
    """Return the findings of a result; none for a ledger or a table of several results."""
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
        ranks = frame[frame.index.isin(part)]
        said.append(_ranked(ranks, f"Ranking{among} by worth", result.alpha))
    if alone := [item for item in result.items if item not in {*sum(several, ())}]:
        said.append(f"No ranks are stated for {_listed(alone)}.")
    return " ".join(said)


def _selected(result: TopKResult) -> str:
    """Return whether the set is separated, and the ranks that are left if it is."""
    frame = result.to_frame().dropna(subset=["rank"])
    k = result.k
    which = _listed(result.selected)
    top = f"top {k} by {result.target} are" if k > 1 else f"top item by {result.target} is"
    test = f"{format_pvalue(result.pvalue)}, {100 * result.alpha:g}% level"
    if result.pvalue > result.alpha:
        return (
            f"The {top} {which}. The selection is not significantly separated from the rest "
            f"({test})."
        )
    # the selected items have ranks of at most k, whatever is left open if all pairs are compared
    upper = frame["rank_upper"].clip(upper=k)
    lower = frame["rank_lower"].clip(lower=k + 1)
    frame["rank_upper"] = frame["rank_upper"].where(~frame["selected"], upper)
    frame["rank_lower"] = frame["rank_lower"].where(frame["selected"], lower)
    ranks = _ranked(frame, f"Ranking by {result.target}, given this separation", result.alpha)
    return (
        f"The {top} {which}. The selection is significantly separated from the rest ({test}). "
        f"{ranks} The rank sets in the table do not use this result."
    )


def _regressed(result: BTLResult) -> str:
    """Return the significant terms, by Holm's procedure: their p-values are of single terms."""
    pvalues = result.wald_test_terms()["pvalue"].astype(np.float64).dropna().sort_values()
    left = np.arange(len(pvalues), 0, -1)
    adjusted = np.maximum.accumulate(np.minimum(pvalues.to_numpy() * left, 1.0))
    names = [_ITEMS if name == "Intercept" else str(name) for name in pvalues.index]
    significant = names[: int((adjusted <= result.alpha).sum())]
    others = names[len(significant) :]
    tests = f"(score tests, Holm-adjusted, {100 * result.alpha:g}% level)"
    if not significant:
        return f"No term is significant {tests}."
    said = f"Significant terms {tests}: {_listed(significant)}."
    return f"{said} Terms that are not significant: {_listed(others)}." if others else said


def _tested(result: Any, null: str) -> str:
    """Return what a test decides: `null` is its hypothesis in words."""
    hypothesis = f"The hypothesis that {null.rstrip('.')}"
    if result.pvalue is None:
        rejected = "rejected" if result.reject else "not rejected"
        return f"{hypothesis} is {rejected} by the released decision."
    test = f"{100 * result.alpha:g}% level ({format_pvalue(result.pvalue)})"
    if result.reject:
        return f"{hypothesis} is rejected at the {test}."
    return f"{hypothesis} is not rejected at the {test}. This is not evidence for the hypothesis."


def _compared(result: ClosenessResult) -> str:
    """Return what a comparison decides, and after a rejection which differences are clear."""
    sample = result.release.sample
    said = _tested(result, null_words(sample))
    frame = result._details()
    if frame is None or not result.reject or not frame["clear"].any():
        return said
    words = ". ".join(clear_words(sample, frame[frame["clear"]], _CLEAR))
    return (
        f"{said} {words}. These statements hold simultaneously at the {100 * result.alpha:g}% "
        f"level."
    )
