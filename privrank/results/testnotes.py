"""Sentences of the summaries of tests: what was found, and what a statistic cannot see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privrank.hypotheses.nullmodel import NullModel
from privrank.hypotheses.statistic import Comparison
from privrank.mechanisms.ranknorms import most_rankings, sees_everything
from privrank.plans.closeness import FEW_CATEGORIES
from privrank.release.names import EFFECT, GAIN, IMPOSSIBLE, STATISTIC
from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.results.tables import format_pvalue, statistic_words

if TYPE_CHECKING:
    from privrank.results.ranktest import RankTestResult

CONSISTENT = "The test is consistent against every departure."

BIT = (
    "The bit is no test of a stated level: how often it errs depends on the numbers of units and "
    "categories."
)

# What the statistic of a method hardly sees, of choices, of rankings, and under a Mallows null.
_UNSEEN = {
    "tv": "a large deviation of a single category among many",
    "paninski": "anything where there are many more choices than categories",
    **dict.fromkeys(
        ("laplace", "truncated", "bucket"),
        "what leaves disjoint random pairs of items even",
    ),
    "borda": "opposite camps, cycles of preferences and items placed first or last, if mean ranks "
    "are equal",
    "two-sample": "what shows in more rankings than two",
    "mallows": "a consensus on an order half way from that of the columns",
    "kernel": "another dispersion about the centre",
    "distance": "another centre at the same mean distance (up to 200 items)",
}

THRESHOLD = (
    "H0 is rejected where the statistic reaches the threshold. One that is the largest of several, "
    "each less a public quantile of it, may be negative."
)

# What is said where H0 is kept: which line computes what would have been found.
NO_EVIDENCE = "That is no evidence for H0: {} that this design finds."
SMALLEST = "detectable_effect() of this result computes the smallest difference"

_COMPLETED = (
    "Ties and missing ranks were completed by a secret draw from H0, given what was reported; the "
    "level holds if what a respondent leaves open depends on their ranking through what they "
    "report only."
)


def noise_of(release: Release) -> tuple[str, str, str]:
    """Return the mechanism of a test of one sample, its statistic, and the scale of its noise."""
    part, name = release.parts.get(STATISTIC), statistic_words(release.mechanism)
    if release.local:
        return "randomised response", name, f"gain {release.plan.number(GAIN):.4g} of a response"
    if part is None:
        return "random bit", name, "none, one bit"
    private = release.source != "none"
    scale, sensitivity = part.step * part.laplace.scale, part.step * part.sensitivity
    return (
        "noise on the statistic" if private else "no noise",
        name + ", discrete Laplace" * private,
        f"{scale:.4g} (sensitivity {sensitivity:.4g})",
    )


def findings(result: RankTestResult, interval: tuple[float, float] | None) -> list[str]:
    """Return what a test decides, the distance from H0, and what its method sees."""
    hypotheses = f"H0: {result.hypotheses[0]} H1: {result.hypotheses[1]}"
    notes = [hypotheses, verdict(result, SMALLEST)]
    if interval is not None:
        notes.append(_distance(result, *interval))
    notes += result.notes
    return [*notes, _COMPLETED] if result.release.sample.completed else notes


def redrawn(release: Release, also: str = "") -> str:
    """Return what a p-value accounts for, and that it is one of many; empty if nothing is drawn.

    Given what `also` was drawn, as a clause.
    """
    sample, noise = release.sample, "noise"
    by_lot = sample.unit == "respondent" and sample.max_rows > 1
    one = " One row of each respondent, drawn by lot, is used" if by_lot else ""
    if release.source == "none":
        return f"{one}; another draw would give another p-value." if by_lot else ""
    accounts = "privacy noise"
    if release.local:
        accounts, noise = "random responses", "responses"
    stop, rows = (".", ", or of the rows,") if by_lot else ("", "")
    return (
        f"{one}{stop} The p-value accounts for the {accounts}{also}; another draw of the "
        f"{noise}{rows} would give another p-value."
    )


def verdict(result: Any, line: str = SMALLEST) -> str:
    """Return what any test decides, and what its p-value accounts for.

    Given which line computes what would have been found, of tests that keep H0.
    """
    said = f"H0 {'is' if result.reject else 'is not'} rejected at level {result.alpha:g}"
    if result.pvalue is None:
        return (
            f"{said}, fixed beforehand. This method releases the decision alone, so there is no "
            f"p-value; another draw may decide otherwise."
        )
    also = error = ""
    if uncertain := getattr(result, "pvalue_error", None):
        error = f" (Monte Carlo standard error {uncertain:.1g})"
    if (boundary := getattr(result, "boundary", None)) is not None:
        also = (
            f", and a public random number, U = {boundary:.3f}, decides at the boundary, so that "
            f"the level is exact"
        )
    evidence = "" if result.reject or not line else f" {NO_EVIDENCE.format(line)}"
    accounts = redrawn(result.release, also)
    return f"{said}: {format_pvalue(result.pvalue)}{error}.{accounts}{evidence}"


def range_words(low: float, high: float, least: float = 0.0005) -> str:
    """Return a confidence interval in words; a lower end below `least` counts as 0."""
    if low < least:
        return f"{'above 0 and ' if low > 0 else ''}at most {high:.3f}"
    return f"between {low:.3f} and {high:.3f}"


def _distance(result: RankTestResult, low: float, high: float) -> str:
    """Return the estimate of the distance from H0 with its interval."""
    own, part = "", result.release.parts.get(EFFECT)
    if part is not None and result.release.source != "none":
        own = f" (epsilon {part.epsilon:.4g} of the total)"
    return (
        f"The total variation distance from H0 is estimated at {result.effect:.3f}{own}; with "
        f"{100 * (1 - result.alpha):g} % confidence it is {range_words(low, high)}."
    )


def hypotheses_of_uniformity(sample: Sample) -> tuple[str, str]:
    """Return H0 and H1 of a test of uniformity in words."""
    m = len(sample.items)
    named = f"{m} categories" if sample.kind == "choices" else f"orders of the {m} items"
    return f"all {named} are equally likely.", "some are more likely than others."


def against_uniformity(method: str, sample: Sample) -> tuple[str, ...]:
    """Return what the statistic of a method does not see, or hardly."""
    n, m = sample.nobs, len(sample.items)
    if method == "sigmoid":
        return (BIT,)
    if m == 2:
        return ()
    if method in _UNSEEN:
        return (f"The statistic hardly sees {_UNSEEN[method]}: method='auto' does.",)
    if sample.kind == "choices" or method == "omnibus" or sees_everything(n, m):
        return (CONSISTENT,)
    return (
        f"Mean ranks have nine tenths of the level; of other departures the rest is for items "
        f"placed first or last, opposite camps and cycles of preferences alone, as for {m} items "
        f"others are looked for in at most {most_rankings(m)} rankings.",
    )


def impossible(release: Release) -> int:
    """Return the number of observations that H0 rules out, where a release without noise has it."""
    return int(release.parts[IMPOSSIBLE].values[0]) if IMPOSSIBLE in release.parts else 0


def against_null(method: str, null: NullModel, release: Release) -> tuple[str, ...]:
    """Return what to know of the statistic of a method of a test of identity."""
    sample, notes = release.sample, []
    if count := impossible(release):
        notes.append(
            f"H0 gives probability 0 to {count} of the {sample.nobs} observations: it is "
            f"rejected whatever the statistic."
        )
    apart = method != "tv" or release.source == "none"
    if null.rules_out and not apart:
        notes.append(
            "An observation to which H0 gives probability 0 counts no more than another here; "
            "method='auto' counts them apart."
        )
    if null.center and method not in _UNSEEN:
        return (
            *notes,
            "The statistic sees the shares of pairs of items and the mean distance to the centre "
            "alone; for at most 6 items a table of probabilities as null sees everything.",
        )
    if null.probabilities and sample.kind == "rankings" and method != "tv":
        method = "omnibus"
    return (*notes, *against_uniformity(method, sample))


def between_groups(comparison: Comparison, sample: Sample) -> tuple[str, ...]:
    """Return what a statistic does not see, or sees badly, and which method does."""
    several = len(sample.groups) > 2
    if comparison.decision is not None or comparison.statistic == "chi-square":
        return () if several else ("method='auto' sees the same differences with less noise.",)
    auto = "" if sample.private_labels else " (method='auto' sees it)"
    kendall = comparison.statistic == "kendall"
    rare = comparison.statistic == "tv" and len(sample.items) > FEW_CATEGORIES
    unseen = {
        f"a difference of a small group alone{auto}": comparison.form == "sum",
        "differences between large groups beside a small one (method='auto' sees them)": several
        and comparison.form == "pairs",
        "that only a small group differs (method='pairs' sees more)": several
        and comparison.form in ("groups", "cells"),
        "small differences of many categories (method='tv' sees more)": comparison.form == "cells",
        f"a difference in one rare category of many{auto}": rare and comparison.form != "cells",
        "what leaves all pairwise fractions as they are (method='mmd' sees it)": kendall,
    }
    listed = "; ".join(what for what, holds in unseen.items() if holds)
    return (f"What hardly shows: {listed}.",) if listed else ()
