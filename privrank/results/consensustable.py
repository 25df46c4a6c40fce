"""The summary of a rank aggregation: its table, and what it says in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from privrank import tables
from privrank.consensus.spacing import FEWEST_ITEMS, MOST_ITEMS
from privrank.consensus.statements import FLAGGED, STATED, SUPPRESSED, reliable_from
from privrank.noise import DiscreteGaussian, DiscreteLaplace
from privrank.ranknoise import CubeNoise, PermutohedronNoise
from privrank.rankplan import cautions, remedy
from privrank.release import PAIRS, SCORE, TOTALS, Part
from privrank.results.guarantee import noise_source, promise, seed_notes, spent, title, units

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
    """Return the table a paper can print: consensus, what separates it, the guarantee."""
    frame = result.to_frame()
    heads = {
        "borda": "Borda",
        "std_err": "std err",
        "lower": f"[{result.alpha / 2:.3g}",
        "upper": f"{1 - result.alpha / 2:.4g}]",
        "over_next": "over next",
        "probability": "P(right)",
    }
    columns = [c for c in frame if c != "probability" or result.chances is not None]
    if "probability" in columns:
        frame["probability"] = [*map(_chance, frame["probability"].iloc[:-1]), ""]
    rows = tuple(
        (
            str(item),
            *(_cell(str(column), value) for column, value in zip(columns, row, strict=True)),
        )
        for item, row in zip(frame.index, frame[columns].itertuples(index=False), strict=True)
    )
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
        columns=("", *(heads.get(str(c), str(c)) for c in columns)),
        rows=rows,
        notes=tuple(_notes(result)),
    )


def _chance(value: float) -> str:
    """Return a probability as it is printed: never as 1 or 0, and as a bound if not stated."""
    if pd.isna(value):
        return f"<{STATED:.2f}".replace("0.", ".")
    if 0.0005 <= value < 0.9995:
        return f"{value:.3f}"
    return ">.999" if value > 0.5 else "<.001"


def _cell(column: str, value: float | str) -> str:
    """Return a cell as it is printed."""
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return ""
    return f"{value:.0f}" if column in ("rank", "group") else f"{value:.3f}"


def _found(result: AggregationResult) -> str:
    gap = result.release.constants.get("gap")
    rule = result.release.mechanism.rpartition(", ")[2]
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
    if "half votes" in release.constants:
        notes.append("Ties and items left out count as half a vote for each order of a pair.")
    if PAIRS in release.parts:
        notes.append("Over next: fraction of the rankings that place an item before the next one.")
        notes.append(_group_words(result, level))
        notes += _chance_words(result)
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
    if release.mechanism == "exponential mechanism" and release.source != "none":
        notes.append("The privacy of this mechanism assumes idealised arithmetic.")
    if "gap" in release.constants and not result.proven:
        gap = release.constants["gap"]
        notes.append(f"A better order of the released numbers may exist, by at most {gap:.3g}.")
    notes += [f"Warning: {caution}" for caution in cautions(release)]
    notes.append(promise(release, "the rankings"))
    sample = release.sample
    if release.source != "none" and sample.unit == "row" and sample.max_rows > 1:
        notes.append(
            f"Epsilon {result.epsilon:g} is per ranking; a respondent with up to "
            f"{sample.max_rows} rows is protected at {result.epsilon * sample.max_rows:g}."
        )
    if "score share" in release.constants:
        share = f"{release.constants['score share']:.0%}"
        held_back = PAIRS in release.parts and isinstance(
            release.parts[PAIRS].law, DiscreteGaussian
        )
        notes.append(
            f"The Kemeny score takes {share} of the precision of the counts."
            if held_back
            else f"Epsilon includes {share} for the Kemeny score."
        )
    return notes + seed_notes([release])


def _group_words(result: AggregationResult, level: str) -> str:
    groups = result.groups
    if len(groups) == 1:
        return (
            f"No neighbours are separated: all simultaneous {level} intervals of theirs cover 1/2."
        )
    words = "; ".join(", ".join(group) for group in groups if len(group) > 1)
    if not words:
        return f"All neighbours are separated by simultaneous {level} intervals."
    return f"Not separated, as simultaneous {level} intervals of neighbours cover 1/2: {words}."


def _chance_words(result: AggregationResult) -> list[str]:
    if len(result.items) < FEWEST_ITEMS:
        return [
            f"A probability that a pair is ordered rightly is given from {FEWEST_ITEMS} items on: "
            f"it supposes that the pairs show how far items lie apart."
        ]
    if len(result.items) > MOST_ITEMS:
        return [f"A probability that a pair is ordered rightly is given up to {MOST_ITEMS} items."]
    if result.noise_sd > SUPPRESSED:
        return ["The noise is too large for a probability that a pair is ordered rightly."]
    sampled = result.target == "population"
    share = (
        f"reliability of the Borda scores, the share of their variance that is not "
        f"{'sampling or noise' if sampled else 'noise'}, is {_share(result)}"
    )
    if result.chances is None:
        needed = f"{reliable_from(len(result.items)):.2f}"
        return [f"The {share}; a probability that a pair is ordered rightly takes {needed}."]
    words = (
        f"P(right): posterior probability that an item is rightly before the next, for one pair at "
        f"a time; how far, and how evenly, items lie apart is learnt from all pairs. It is stated "
        f"from {STATED:.2f} on, where it is too cautious by {1 - STATED:.2g} at most. The {share}"
    )
    rough = result.noise_sd > FLAGGED
    return [words + (". At this much noise P(right) may be overconfident." if rough else ".")]


def _share(result: AggregationResult) -> str:
    """Return the reliability, rounded down as it is compared with a threshold."""
    release = result.release
    several = release.sample.unit == "respondent" and release.sample.max_rows > 1
    bound = result.target == "population" and (several or "half votes" in release.constants)
    digits = f"{math.floor(100 * result.reliability + 1e-9) / 100:.2f}"
    return f"at least {digits}" if bound else digits
