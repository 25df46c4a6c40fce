"""What a result says, in sentences that all hold at once at its level: how a report begins.

Of ranks they are read off the rank sets of :func:`privrank.hypotheses.ranksets.rank_sets`. Where a
result has a test and statements of another family, the test comes first, and the others are said if
it rejects, at the same level (a fixed sequence): if the hypothesis is true, something false is said
only where it is rejected; if it is not, only where one of the others is false.
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

# What a test finds, if it rejects and if it does not, by its name.
_TESTED = {
    "UniformityTest": (
        "A departure from uniformity was found",
        "No departure from uniformity was found",
    ),
    "IdentityTest": ("A departure from H0 was found", "No departure from H0 was found"),
    "ClosenessResult": ("A difference was found", "No difference was found"),
}


def findings(entry: Any) -> str:
    """Return what a result says; nothing of a ledger, or of a table of several results."""
    if isinstance(entry, RankTestResult):
        return _tested(entry, entry.hypotheses[0])
    if isinstance(entry, ClosenessResult):
        return _compared(entry)
    if isinstance(entry, TopKResult):
        return _selected(entry)
    if isinstance(entry, BTLResult):
        return _fitted(entry) if entry.release.design.covariates is None else _regressed(entry)
    if isinstance(entry, PooledResult) and isinstance(entry.results[0], BTLResult):
        return _ranked(entry.to_frame(), "By worth", entry.alpha)
    if isinstance(entry, AggregationResult) and "rank_lower" in (frame := entry.to_frame()):
        # the order may be that of the majorities; rank sets are by Borda score
        return _ranked(frame.sort_values("borda", ascending=False), "By mean rank", entry.alpha)
    if isinstance(entry, AggregationResult | PooledResult):
        return (
            f"The estimated order is {_listed(list(entry.to_frame().index), 'then')}. Nothing is "
            f"said of all at once."
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
        return f"{', '.join(names[: _NAMED - 2])}, and {len(names) - _NAMED + 2} more"
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _ranked(frame: pd.DataFrame, by: str, alpha: float) -> str:
    """Return who leads, and what cannot be told apart: `frame` has rank sets, best items first."""
    names = [str(name) for name in frame.index]
    m = len(frame)
    low, high = (frame[end].to_numpy(dtype=np.int64) for end in ("rank_lower", "rank_upper"))
    settled = settled_ranks(high.tolist())
    said = []
    for first, last, places in settled[:_BLOCKS]:
        inside = [names[place] for place in places]
        if first == last:
            place = {1: "leads", m: "is last"}.get(first, f"has rank {first}")
            said.append(f"{inside[0]} {place}")
            continue
        leading = [names[place] for place in places if low[place] == first]
        have = "lead" if first == 1 else f"have ranks {first} to {last}"
        if (low[places] == first).all() and (high[places] == last).all():
            said.append(f"{_listed(inside)} {have} and cannot be told apart")
            continue
        if first == 1 and len(leading) > 1:
            said.append(f"it is open who leads, as {_listed(leading, 'or')} may be first")
        sets = [f"{names[place]} ({low[place]} to {high[place]})" for place in places]
        said.append(f"{_listed(sets)} cannot all be told apart, ranks in brackets")
    level = f"with {100 * (1 - alpha):g} % confidence"
    if len(settled) == 1 and (high - low == m - 1).all() and m > 1:
        return f"{by} no two of {_listed(names)} can be told apart {level}."
    more = " The table has the rest." if len(settled) > _BLOCKS else ""
    return f"{by}, all at once {level}: {'; '.join(said)}.{more}"


def _fitted(result: BTLResult) -> str:
    """Return what the rank sets of worths say, within each component."""
    frame = result.to_frame()
    said = []
    several = [part for part in result.components if len(part) > 1 or len(result.items) == 1]
    for part in several:
        among = f"Among {_listed(part)}" if len(result.components) > 1 else "By worth"
        # each part has rank sets of its own, which hold at once with those of the others
        said.append(_ranked(frame[frame.index.isin(part)], among, result.alpha))
    if alone := [item for item in result.items if item not in {*sum(several, ())}]:
        said.append(f"Nothing is said of {_listed(alone)}.")
    return " ".join(said)


def _selected(result: TopKResult) -> str:
    """Return whether the set is separated, and if it is, which ranks that leaves."""
    frame = result.to_frame().dropna(subset=["rank"])
    k = result.k
    which = _listed(result.selected)
    test = format_pvalue(result.pvalue)
    if result.pvalue > result.alpha:
        have = "item has the highest win rate" if k == 1 else f"{k} have the highest win rates"
        return (
            f"Which {have} is not settled at level {result.alpha:g} ({test}). By the estimates "
            f"{'it is' if k == 1 else 'they are'} {which}."
        )
    # who is selected has a rank of at most k, whatever is left open where all pairs are compared
    upper = frame["rank_upper"].clip(upper=k)
    lower = frame["rank_lower"].clip(lower=k + 1)
    frame["rank_upper"] = frame["rank_upper"].where(~frame["selected"], upper)
    frame["rank_lower"] = frame["rank_lower"].where(frame["selected"], lower)
    have = "has the highest win rate" if k == 1 else f"have the {k} highest win rates"
    ranks = _ranked(frame, "Given this, by win rate", result.alpha)
    return f"{which} {have} ({test}). {ranks} Ranks in the table are without this."


def _regressed(result: BTLResult) -> str:
    """Return which terms matter, by Holm's procedure: their p-values are of one term at a time."""
    pvalues = result.wald_test_terms()["pvalue"].astype(np.float64).dropna().sort_values()
    left = np.arange(len(pvalues), 0, -1)
    adjusted = np.maximum.accumulate(np.minimum(pvalues.to_numpy() * left, 1.0))
    names = [_ITEMS if name == "Intercept" else str(name) for name in pvalues.index]
    matter = names[: int((adjusted <= result.alpha).sum())]
    open_ = names[len(matter) :]
    shown = f"Terms that matter: {_listed(matter)}." if matter else "No term is shown to matter."
    rest = f" Not shown to matter: {_listed(open_)}." if matter and open_ else ""
    return f"{shown}{rest} All this holds at once at level {result.alpha:g} (tests of terms, Holm)."


def _tested(result: Any, null: str) -> str:
    """Return what a test decides: `null` is its hypothesis in words."""
    words = null.rstrip(".")
    heads = _TESTED[result.model]
    if result.pvalue is None:
        return f"{heads[not result.reject]}: that is the released decision on H0, that {words}."
    test = f"{format_pvalue(result.pvalue)}, level {result.alpha:g}"
    if result.reject:
        return f"{heads[0]}: H0, that {words}, is rejected ({test})."
    return f"{heads[1]}: H0, that {words}, is not rejected ({test}). That is no evidence for H0."


def _compared(result: ClosenessResult) -> str:
    """Return what a comparison decides, and after a rejection which differences are clear."""
    sample = result.release.sample
    said = _tested(result, null_words(sample))
    frame = result._details()
    if frame is None or not result.reject or not frame["clear"].any():
        return said
    words = ". ".join(clear_words(sample, frame[frame["clear"]], _CLEAR))
    return f"{said} {words}. All this holds at once at level {result.alpha:g}."
