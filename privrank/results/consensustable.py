"""The summary of a rank aggregation: its table, and what it says in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from privrank.plans.aggregation import cautions, remedy
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release.names import PAIR_COUNTS, PAIRS, SCORE, SCORES, TOTALS, UNPLACED
from privrank.release.release import Release
from privrank.results import tables
from privrank.results.assumptions import assumptions, holds_if
from privrank.results.guarantee import (
    level_notes,
    noise_source,
    promise,
    rank_range,
    seed_notes,
    spent,
    title,
    units,
)
from privrank.util.checks import check_flag

if TYPE_CHECKING:
    from privrank.results.aggregation import AggregationResult

__all__ = ["consensus_table"]

_DISTRIBUTIONS: dict[type, str] = {
    CubeNoise: "cube noise",
    DiscreteGaussian: "discrete Gaussian",
    DiscreteLaplace: "discrete Laplace",
    PermutohedronNoise: "K-norm noise",
}


_READINGS = {
    "ties": "A shared rank counts as half a vote for each order of the two items.",
    "missing bottom": "An item left out counts as below all listed ones, and tied with others.",
    "missing half": "An item left out counts as half a vote for each order of a pair.",
}
"""How ties and missing items were declared to be read, by the constant that says so."""


def consensus_table(result: AggregationResult, details: bool) -> tables.Table:
    """Return the table a paper can print: consensus, intervals of ranks, the guarantee."""
    check_flag("details", details)
    frame, release = result.to_frame(), result.release
    heads = {"rank": "place", "borda": "Borda", "std_err": "std err"}
    heads |= {"lower": f"[{result.alpha / 2:.3g}", "upper": f"{1 - result.alpha / 2:.4g}]"}
    shown = [name for name in heads if name in frame]
    columns, cells = ["", *(heads[name] for name in shown)], []
    for item, row in zip(frame.index, frame.to_dict("records"), strict=True):
        line = [str(item), str(row["rank"]), *(f"{row[name]:.3f}" for name in shown[1:])]
        if "rank_lower" in row:
            line.append(rank_range(int(row["rank_lower"]), int(row["rank_upper"])))
        if "over_next" in row:
            line.append("" if math.isnan(row["over_next"]) else f"{row['over_next']:.3f}")
        cells.append(tuple(line))
    columns += ["ranks"] if "rank_lower" in frame else []
    columns += ["over next"] if "over_next" in frame else []
    gap, rule = release.found.get("gap"), release.plan.method
    solved = "" if gap is None else ", solved exactly" if gap == 0 else ", not proven best"
    mechanism, scale = _noise(result)
    return tables.Table(
        title=title("Rank Aggregation", release),
        header=(
            ("Items:", str(len(result.items))),
            *units(release),
            ("Consensus:", rule + solved),
            ("Mechanism:", mechanism),
            *([("Response:" if release.local else "Noise scale:", scale)] if details else []),
            ("Noise source:", noise_source(release)),
            *spent(release),
        ),
        columns=tuple(columns),
        rows=tuple(cells),
        notes=tuple(_notes(result, frame, details)),
    )


def _noise(result: AggregationResult) -> tuple[str, str]:
    """Return what was released with which noise, and the scale of that noise."""
    parts, private = result.release.parts, result.release.source != "none"
    if result.release.local:
        return result.release.mechanism, f"gain {result.release.plan.number('gain'):.4g}"
    name = PAIRS if PAIRS in parts else TOTALS
    if name not in parts:
        return result.release.mechanism if private else "no noise", "none, an order"
    nouns = ("pair counts", "fraction") if name == PAIRS else ("Borda totals", "mean rank")
    scale = f"sd {math.sqrt(parts[name].noise_variance) / result.nobs:.4g} per {nouns[1]}"
    if not private:
        return "no noise", scale
    return f"{nouns[0]}, {_DISTRIBUTIONS[type(parts[name].distribution)]}", scale


def _notes(result: AggregationResult, frame: pd.DataFrame, details: bool) -> list[str]:
    release, level = result.release, f"{100 * (1 - result.alpha):g} %"
    settings, of_sample, notes = release.plan.settings, result.target == "sample", []
    if "borda" in frame:
        m = len(frame)
        # every pair that is separated takes one rank off the upper end of one item
        known = round((m - frame["rank_upper"]).sum())
        bound = not of_sample and not release.local
        notes += [
            f"Borda: items below on average; {level} intervals"
            f"{' for the sample' * of_sample}, one at a time"
            f"{'; std err is a bound' * bound}.",
            f"Ranks: by Borda score, all at once; they order {known} of "
            f"{m * (m - 1) // 2} pairs of items.",
        ]
    notes += [text for name, text in _READINGS.items() if name in settings]
    if "over_next" in frame:
        notes.append("Over next: fraction of the rankings that place an item before the next one.")
    notes += _contradiction(frame, release.plan.method)
    if release.local:
        notes += _local_notes(release, frame)
    if TOTALS in release.parts:
        short = "Pairs: nothing is said of them; releases='pairs' would release them."
        notes.append(remedy(release) if details else short)
    if SCORE in release.parts:
        low, high = result.score_conf_int()
        notes.append(
            f"Kemeny score: a ranking differs from the consensus on {result.kemeny_score:.3f} of "
            f"{len(frame) * (len(frame) - 1) // 2} pairs on average ({level} interval "
            f"{low:.3f} to {high:.3f})."
        )
    if release.plan.method == "exponential mechanism" and release.source != "none":
        notes.append("The privacy of this mechanism assumes idealised arithmetic.")
    if "gap" in release.found and not result.proven:
        gap = release.found["gap"]
        notes.append(f"A better order of the released numbers may exist, by at most {gap:.3g}.")
    notes += [f"Warning: {caution}" for caution in cautions(release)]
    notes.append(holds_if(["sample"] if of_sample else assumptions(release)))
    notes += [promise(release, "the rankings"), *level_notes(release, "ranking")]
    if not details:
        return notes
    if "score share" in settings:
        share = release.plan.number("score share")
        notes.append(f"Epsilon includes {share:.0%} for the Kemeny score.")
    return notes + seed_notes([release])


def _local_notes(release: Release, frame: pd.DataFrame) -> list[str]:
    """Return what is said of the errors of reports, and of pairs that nobody was asked about."""
    notes = [
        "Standard errors hold sampling and random responses together, by how reports vary; no "
        "noise was added to them."
    ]
    largest = {"borda": len(frame) - 1, "over_next": 1}
    if any(
        ((frame[name] < 0) | (frame[name] > top)).any()
        for name, top in largest.items()
        if name in frame
    ):
        notes.append(
            "Estimates are unbiased, so that they may lie outside of what a fraction or a Borda "
            "score can be; intervals do not."
        )
    if PAIR_COUNTS not in release.parts:
        return [*notes, "Reports are of whole rankings, and say nothing about single pairs."]
    counts = release.parts[PAIR_COUNTS].values
    unasked = int((counts == 0).sum())
    scored = ", and Borda scores take them from the other pairs, with a standard error of 1/2"
    if unasked:
        notes.append(
            f"{unasked} of {len(counts)} pairs were asked of nobody: nothing is said of them"
            f"{scored if SCORES in release.parts else ''}."
        )
    if unplaced := release.plan.settings.get(UNPLACED):
        notes.append(
            f"Warning: the sort is not finished. It has not come to the end with {unplaced} items, "
            f"whose places rest on few comparisons."
        )
    return notes


def _contradiction(frame: pd.DataFrame, rule: str) -> list[str]:
    """Return why the order contradicts a printed majority, or Borda scores, where it does."""
    near = "over_next" in frame and bool((frame["over_next"].iloc[:-1] < 0.5).any())
    if near and rule == "EB-Kemeny":
        return [
            "Where over next is below 1/2, the other pairs say that this majority is due to noise."
        ]
    if near and rule in ("Borda", "Copeland"):
        return [f"Where over next is below 1/2: {rule}'s order need not follow every majority."]
    if "borda" in frame and rule in ("Kemeny", "EB-Kemeny") and np.any(np.diff(frame["borda"]) > 0):
        return [
            "Where Borda scores rise, the majorities of pairs, which this order follows, are not "
            "those of mean ranks."
        ]
    return []
