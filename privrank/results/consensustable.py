"""The summary of a consensus of rankings, and what is said below it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from privrank.consensus.orders import SUBSET_LIMIT
from privrank.plans.aggregation import cautions
from privrank.release.names import PAIR_COUNTS, PAIRS, SCORE, SCORES, TOTALS, UNPLACED
from privrank.release.release import Release, distribution_name
from privrank.results import guarantee, tables
from privrank.util.checks import check_flag

# How ties and missing items were declared to be read, by the constant that says so.
_READINGS = {
    "ties": "A shared rank counts as half a vote for each order of the two items.",
    "missing bottom": "An item left out counts as below all listed ones, and tied with others.",
    "missing half": "An item left out counts as half a vote for each order of a pair.",
}


# Rules in words, where their names are none that a statistician knows.
_RULES = {
    "EB-Kemeny": "Kemeny, by empirical Bayes",
    "Borda": "by mean rank (Borda)",
    "Copeland": "by majorities (Copeland)",
}


def consensus_table(result: Any, details: bool) -> tables.Table:
    """Return a consensus as a table in the style of statsmodels."""
    check_flag("details", details)
    release, frame = result.release, result.to_frame()
    # how far the order may be from the best one of the released numbers; None of other rules
    gap, rule = release.found.get("gap"), release.plan.method
    if not details:
        rule = _RULES.get(rule, rule)
    elif gap is not None:
        rule += ", solved exactly" if gap == 0 else ", not proven best"
    low, high = tables.interval_heads(result.alpha)
    heads = {
        "rank": "place",
        "borda": "Borda",
        "std_err": "std err",
        "lower": low,
        "upper": high,
        "ranks": "ranks",
        "over_next": "over next",
    }
    shown = frame.assign(ranks=tables.rank_cells(frame)) if "rank_lower" in frame else frame
    formats = {
        name: "{}" if name in ("rank", "ranks") else "{:.3f}" for name in heads if name in shown
    }
    return tables.Table(
        title=guarantee.title("Rank Aggregation", release),
        header=guarantee.header(
            release, ("Consensus:", rule), noise=_noise(result), details=details
        ),
        columns=("", *(heads[name] for name in formats)),
        rows=tables.printed(shown, formats),
        notes=(*_notes(result, frame, details), *result._cautions()),
        cautions=result._cautions(),
    )


def _noise(result: Any) -> tuple[str, str, str]:
    """Return what was released in words and by its names, and the scale of its noise."""
    parts, private = result.release.parts, result.release.source != "none"
    if result.release.local:
        return (
            "randomised response",
            result.release.mechanism,
            f"gain {result.release.plan.number('gain'):.4g}",
        )
    name = PAIRS if PAIRS in parts else TOTALS
    if name not in parts:
        return (
            result.release.plan.method if private else "no noise",
            result.release.mechanism,
            "none, an order",
        )
    counts, unit = ("pair counts", "fraction") if name == PAIRS else ("Borda totals", "mean rank")
    scale = f"sd {math.sqrt(parts[name].noise_variance) / result.nobs:.4g} per {unit}"
    if not private:
        return "no noise", counts, scale
    named = f"{counts}, {distribution_name(parts[name].distribution)} noise"
    return f"noise on {'pair fractions' if name == PAIRS else 'mean ranks'}", named, scale


def _notes(result: Any, frame: pd.DataFrame, details: bool) -> list[str]:
    release, m = result.release, len(frame)
    level, of_sample = f"{100 * (1 - result.alpha):g} %", result.target == "sample"
    settings, notes = release.plan.settings, []
    if "borda" in frame:
        about = " for the sample" if of_sample else ""
        bound = "" if of_sample or release.local else "; std err is a bound"
        # every pair that is separated takes one rank off the upper end of one item
        known = round((m - frame["rank_upper"]).sum())
        notes += [
            f"Borda: items below on average; {level} intervals{about}, one at a time{bound}.",
            f"Ranks: by Borda score, all at once; they order {known} of {m * (m - 1) // 2} pairs "
            f"of items.",
        ]
    next_one = "Over next: fraction of the rankings that place an item before the next one."
    unsaid = "Pairs: nothing is said of them; releases='pairs' would release them."
    notes += [
        *(text for name, text in _READINGS.items() if name in settings),
        *([next_one] if "over_next" in frame else []),
        *_tied(release, frame, details),
        *_contradiction(frame, release.plan.method),
        *(_local_notes(release, frame) if release.local else []),
        *([unsaid] if TOTALS in release.parts else []),
    ]
    if SCORE in release.parts:
        low, high = result.score_conf_int()
        notes.append(
            f"Kemeny score: a ranking differs from the consensus on {result.kemeny_score:.3f} of "
            f"{m * (m - 1) // 2} pairs on average ({level} interval {low:.3f} to {high:.3f})."
        )
    ideal = release.plan.method == "exponential mechanism" and release.source != "none"
    gap = release.found.get("gap", 0.0)
    better = f"A better order of the released numbers may exist, by at most {gap:.3g}."
    notes += [
        *(["The privacy of this mechanism assumes idealised arithmetic."] if ideal else []),
        *([better] if gap else []),
        guarantee.holds_if(["sample"] if of_sample else guarantee.assumptions(release)),
        guarantee.promise(release, "the rankings"),
        *guarantee.level_notes(release, "ranking"),
    ]
    if details and "score share" in settings:
        share = release.plan.number("score share")
        notes.append(f"Epsilon includes {share:.0%} for the Kemeny score.")
    return notes + guarantee.seed_notes([release]) if details else notes


def order_cautions(release: Release) -> list[str]:
    """Return what limits an order: too few rankings or comparisons for it, and the guarantee's."""
    notes = [f"Warning: {caution}" for caution in cautions(release)]
    if unplaced := release.plan.settings.get(UNPLACED):
        notes.append(
            f"Warning: the sort is not finished. It has not come to the end with {unplaced} items, "
            f"whose places rest on few comparisons."
        )
    return notes + guarantee.delta_notes(release)


def _local_notes(release: Release, frame: pd.DataFrame) -> list[str]:
    """Return what is said of the errors of reports, and of pairs that nobody was asked about."""
    notes = [
        "Standard errors hold sampling and random responses together, by how reports vary; no "
        "noise was added to them.",
        "Estimates are unbiased, so that they may lie outside of what a fraction or a Borda score "
        "can be; intervals do not.",
    ]
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
    return notes


def _tied(release: Release, frame: pd.DataFrame, details: bool) -> list[str]:
    """Return which items are tied, and whether an optimum that is claimed is the only one."""
    strict = " In `order` a public random permutation decides between them."
    by_score = release.plan.method in ("Borda", "Copeland")
    notes = tables.tie_notes(frame["rank"], strict if by_score else "")
    if "optima" in release.found:
        return [*notes, "The Kemeny order is not unique: another one is as good."]
    if details and release.found.get("gap") == 0 and len(frame) > SUBSET_LIMIT:
        return [*notes, "Whether another order is as good as this one was not checked."]
    return notes


def _contradiction(frame: pd.DataFrame, rule: str) -> list[str]:
    """Return why the order contradicts a printed majority, or Borda scores, where it does."""
    minority = "over_next" in frame and bool((frame["over_next"].iloc[:-1] < 0.5).any())
    if minority and rule in ("Borda", "Copeland", "EB-Kemeny"):
        named = "an empirical Bayes" if rule == "EB-Kemeny" else f"{rule}'s"
        return [f"Where over next is below 1/2: {named} order need not follow every majority."]
    if "borda" in frame and rule in ("Kemeny", "EB-Kemeny") and np.any(np.diff(frame["borda"]) > 0):
        return ["Where Borda scores rise: this order follows the majorities of pairs."]
    return []
