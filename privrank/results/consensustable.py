"""The summary of a rank aggregation: its table, and what it says in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from privrank.planning.aggregation import cautions, remedy
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release.plan import Setting
from privrank.release.release import PAIRS, SCORE, TOTALS, Part
from privrank.results import tables
from privrank.results.guarantee import (
    noise_source,
    promise,
    rank_range,
    seed_notes,
    spent,
    title,
    units,
)

if TYPE_CHECKING:
    from privrank.results.aggregation import AggregationResult

__all__ = ["consensus_table"]

_LAWS: dict[type, str] = {
    CubeNoise: "cube noise",
    DiscreteGaussian: "discrete Gaussian",
    DiscreteLaplace: "discrete Laplace",
    PermutohedronNoise: "K-norm noise",
}


def consensus_table(result: AggregationResult) -> tables.Table:
    """Return the table a paper can print: consensus, intervals of ranks, the guarantee."""
    frame = result.to_frame()
    limits = (f"[{result.alpha / 2:.3g}", f"{1 - result.alpha / 2:.4g}]")
    heads = {"rank": "place", "borda": "Borda", "std_err": "std err"}
    heads |= {"lower": limits[0], "upper": limits[1]}
    columns = [str(name) for name in frame if name not in ("rank_lower", "rank_upper", "over_next")]
    cells = [
        [str(item), str(row["rank"]), *(f"{row[name]:.3f}" for name in columns[1:])]
        for item, row in zip(frame.index, frame.to_dict("records"), strict=True)
    ]
    names = ["", *(heads[name] for name in columns)]
    if "rank_lower" in frame:
        names.append("ranks")
        for line, low, high in zip(cells, frame["rank_lower"], frame["rank_upper"], strict=True):
            line.append(rank_range(int(low), int(high)))
    if "over_next" in frame:
        names.append("over next")
        for line, fraction in zip(cells, frame["over_next"], strict=True):
            line.append("" if math.isnan(fraction) else f"{fraction:.3f}")
    return tables.Table(
        title=title("Rank Aggregation", result.release),
        header=(
            ("Items:", str(len(result.items))),
            *units(result.release),
            ("Consensus:", _found(result)),
            *([("Intervals for:", f"the {result.target}")] if len(columns) > 1 else []),
            ("Mechanism:", _mechanism(result)),
            ("Noise scale:", _scale(result)),
            ("Noise source:", noise_source(result.release)),
            *spent(result.release),
        ),
        columns=tuple(names),
        rows=tuple(tuple(line) for line in cells),
        notes=tuple(_notes(result)),
    )


def _found(result: AggregationResult) -> str:
    gap, rule = result.release.found.get("gap"), result.release.plan.method
    return rule if gap is None else f"{rule}, {'solved exactly' if gap == 0 else 'not proven best'}"


def _main(result: AggregationResult) -> Part | None:
    return result.release.parts.get(PAIRS) or result.release.parts.get(TOTALS)


def _mechanism(result: AggregationResult) -> str:
    if result.release.source == "none":
        return "no noise"
    part = _main(result)
    if part is None:
        return result.release.mechanism
    noun = "pair counts" if PAIRS in result.release.parts else "Borda totals"
    return f"{noun}, {_LAWS[type(part.law)]}"


def _scale(result: AggregationResult) -> str:
    part = _main(result)
    if part is None:
        return "none, an order"
    noun = "fraction" if PAIRS in result.release.parts else "mean rank"
    return f"sd {math.sqrt(part.noise_variance) / result.nobs:.4g} per {noun}"


def _notes(result: AggregationResult) -> list[str]:
    release, level = result.release, f"{100 * (1 - result.alpha):g} %"
    wide = result.target == "population"
    notes = []
    if len(release.parts) > 1:
        notes.append(
            f"Borda: mean number of items that an item is placed before. Its {level} intervals for "
            f"the {result.target} "
            + (
                "are wide by design: they allow for the largest sampling variance of such a mean."
                if wide
                else "allow for the privacy noise."
            )
        )
        whose = "population" if wide else "sample"
        notes.append(
            f"Ranks: what the rank of an item by Borda score in the {whose} can be; all intervals "
            f"hold at once at {level}. {_separated(result)}"
        )
    notes += _reading(release.plan.settings)
    if PAIRS in release.parts:
        notes.append("Over next: fraction of the rankings that place an item before the next one.")
    notes += _contradiction(result)
    if TOTALS in release.parts:
        notes.append(remedy(release))
    if SCORE in release.parts:
        low, high = result.score_conf_int()
        pairs = len(result.items) * (len(result.items) - 1) // 2
        notes.append(
            f"Kemeny score: a ranking differs from the consensus on {result.kemeny_score:.3f} of "
            f"{pairs} pairs on average ({level} interval {low:.3f} to {high:.3f}"
            f"{', as wide by design' if wide else ''})."
        )
    if release.plan.method == "exponential mechanism" and release.source != "none":
        notes.append("The privacy of this mechanism assumes idealised arithmetic.")
    if "gap" in release.found and not result.proven:
        gap = release.found["gap"]
        notes.append(f"A better order of the released numbers may exist, by at most {gap:.3g}.")
    notes += [f"Warning: {caution}" for caution in cautions(release)]
    notes.append(promise(release, "the rankings"))
    sample = release.sample
    if release.source != "none" and sample.unit == "row" and sample.max_rows > 1:
        notes.append(
            f"Epsilon {result.epsilon:g} is per ranking; a respondent with up to "
            f"{sample.max_rows} rows is protected at {result.epsilon * sample.max_rows:g}."
        )
    if "score share" in release.plan.settings:
        share = release.plan.number("score share")
        notes.append(f"Epsilon includes {share:.0%} for the Kemeny score.")
    return notes + seed_notes([release])


def _separated(result: AggregationResult) -> str:
    """Return how many pairs of items the intervals of ranks put in an order."""
    ranks = result.rank_conf_int()
    m = len(ranks)
    # every pair that is separated takes one rank off the upper end of one item
    known = round((m - ranks["upper"]).sum())
    return f"They order {known} of {m * (m - 1) // 2} pairs of items by score."


def _reading(settings: Mapping[str, Setting]) -> list[str]:
    """Return how ties and missing items were declared to be read."""
    words = {
        "ties": "A shared rank counts as half a vote for each order of the two items.",
        "missing bottom": "An item left out counts as below all listed ones, and tied with others.",
        "missing half": "An item left out counts as half a vote for each order of a pair.",
    }
    return [text for name, text in words.items() if name in settings]


def _contradiction(result: AggregationResult) -> list[str]:
    """Return why the order contradicts a printed majority, or Borda scores, where it does."""
    frame, rule = result.to_frame(), result.release.plan.method
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
