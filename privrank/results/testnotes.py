"""Sentences of the summaries of tests: what was found, and what a statistic cannot see."""

from __future__ import annotations

from typing import Any

from privrank.hypotheses.statistic import Blindness, Comparison, RandomBit, Statistic
from privrank.mechanisms.ranknorms import most_rankings
from privrank.release.names import BESIDE_NULL, GAIN, IMPOSSIBLE, STATISTIC
from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.results.claims import said
from privrank.results.tables import Column, format_pvalue, statistic_words

CONSISTENT = (
    "The test is consistent: its power against every departure tends to 1 as the number of units "
    "grows."
)
CONSISTENT_GROUPS = (
    "The test is consistent: its power against every difference tends to 1 as both groups grow."
)
"""Propositions for a fixed epsilon and fixed numbers of items and categories."""

BIT = (
    "The bit is no test of a stated level: how often it errs depends on the numbers of units and "
    "categories."
)

# The sentence for each thing that a statistic declares it cannot detect.
BLINDNESS: dict[Blindness, str] = {
    "single category": "The statistic hardly sees a large deviation of a single category among "
    "many: method='auto' does.",
    "many categories": "This method has little power against small differences in many "
    "categories; method='tv' has more.",
    "dense choices": "This method has little power if there are many more choices than "
    "categories; method='auto' has more.",
    "impossible observations": "An observation to which H0 gives probability 0 counts no more than "
    "another here; method='auto' counts them apart.",
    "even pairs": "This method has little power against departures that leave all pairs of items "
    "even. method='auto' also compares how often items are placed first or last.",
    "equal mean ranks": "This method has little power against opposite camps, cycles of "
    "preferences and items placed first or last, if mean ranks are equal; method='auto' has.",
    "equal mean ranks, reports": "The statistic sees mean ranks alone: opposite camps, cycles of "
    "preferences and items that are placed first or last are invisible to it if mean ranks are "
    "equal.",
    "mean ranks and products of pairs": "This statistic has no power against departures in mean "
    "ranks alone, or in three or more pairs of items at once.",
    "first and last alone": "Mean ranks have nine tenths of the level; of other departures the "
    "rest is for items placed first or last, opposite camps and cycles of preferences alone, as "
    "for {items} items others are looked for in at most {rankings} rankings.",
    "two rankings alone": "The statistic is how much two rankings agree, and has power against a "
    "strong consensus alone.",
    "halfway consensus": "This method has little power against a consensus on an order halfway "
    "between that of the columns and its reverse; method='auto' has.",
    "dispersion": "This method has little power against another dispersion about the centre; "
    "method='auto' has.",
    "equal mean distance": "This method has no power against another centre at the same mean "
    "distance; method='auto' has for at most 200 items.",
    "pairs and distance alone": "The statistic sees the shares of pairs of items and the mean "
    "distance to the centre alone. For at most 6 items, a table of probabilities as null is "
    "compared with the shares of all orders.",
    "even public pairs": "The statistic sees the order of the public pairs alone, and no consensus "
    "that leaves these even.",
    "one side": "This one-sided test has no power against a departure in the other direction.",
    "more noise": "method='auto' sees the same differences with less noise.",
    "small group": "This method has little power against a difference of a small group alone; "
    "method='auto' has more.",
    "small group, private labels": "This method has little power against a difference of a small "
    "group alone.",
    "large groups": "This method has little power against differences between large groups if "
    "another group is small; method='auto' has more.",
    "only a small group": "This method has little power if only a small group differs; "
    "method='pairs' has more.",
    "rare category": "This method has little power against a difference in one rare category of "
    "many; method='auto' has more.",
    "rare category, private labels": "This method has little power against a difference in one "
    "rare category of many.",
    "equal pairwise fractions": "This method has no power against differences that leave all "
    "pairwise fractions equal; method='mmd' has.",
    "beyond landmarks": "For so many rankings the kernel is projected on 1,024 public rankings. "
    "Differences that this projection leaves out are not detected.",
    "equal margins": "This method has no power if both samples have the same distribution and the "
    "two answers of a respondent are not exchangeable all the same.",
}

# The column of what a test decides.
DECISIONS = Column("decision", {True: "reject H0", False: "do not reject"}.__getitem__)

# What is said where H0 is kept: which line computes what would have been found.
NO_EVIDENCE = "That is no evidence for H0: {} that this design finds."
SMALLEST = "detectable_effect() of this result computes the smallest difference"


def noise_of(release: Release) -> tuple[str, str, str]:
    """Return the mechanism of a test of one sample, its statistic, and the scale of its noise."""
    part = release.parts.get(STATISTIC)
    name = statistic_words(release.mechanism)
    if release.local:
        return "", name, f"gain {release.plan.number(GAIN):.4g} of a response"
    if part is None:
        return "random bit", name, "none, one bit"
    scale = part.step * part.laplace.scale
    sensitivity = part.step * part.sensitivity
    return (
        "noise on the statistic",
        name if release.source == "none" else f"{name}, discrete Laplace",
        f"{scale:.4g} (sensitivity {sensitivity:.4g})",
    )


def redrawn(release: Release, also: str = "") -> str:
    """Return what a p-value accounts for, and that it is one of many; empty if nothing is drawn.

    Given what `also` was drawn, as a clause.
    """
    sample = release.sample
    by_lot = sample.unit == "respondent" and sample.max_rows > 1
    one = " One row of each respondent, drawn by lot, is used" if by_lot else ""
    if release.source == "none":
        return f"{one}; another draw would give another p-value." if by_lot else ""
    accounts = "random responses" if release.local else "privacy noise"
    noise = "responses" if release.local else "noise"
    stop, rows = (".", ", or of the rows,") if by_lot else ("", "")
    return (
        f"{one}{stop} The p-value accounts for the {accounts}{also}; another draw of the "
        f"{noise}{rows} would give another p-value."
    )


def verdict(result: Any, line: str = SMALLEST) -> str:
    """Return what any test decides, and what its p-value accounts for.

    Given which line computes what would have been found, of tests that keep H0.
    """
    said = f"H0 {'is' if result.reject else 'is not'} rejected"
    if result.pvalue is None:
        stated = result.asked.level is not None
        how = f"at level {result.alpha:g}, fixed beforehand" if stated else "by the released bit"
        return (
            f"{said} {how}. This method releases the decision alone, so there is no p-value; "
            f"another draw may decide otherwise."
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
    return (
        f"{said} at level {result.alpha:g}: {format_pvalue(result.pvalue)}{error}."
        f"{redrawn(result.release, also)}{evidence}"
    )


def range_words(low: float, high: float, least: float = 0.0005) -> str:
    """Return a confidence interval in words; a lower end below `least` counts as 0."""
    if low < least:
        return f"{'above 0 and ' if low > 0 else ''}at most {high:.3f}"
    return f"between {low:.3f} and {high:.3f}"


def hypotheses_of_uniformity(sample: Sample) -> tuple[str, str]:
    """Return H0 and H1 of a test of uniformity in words."""
    m = len(sample.items)
    named = f"{m} categories" if sample.kind == "choices" else f"orders of the {m} items"
    return f"all {named} are equally likely.", "some are more likely than others."


def power_notes(
    statistic: Statistic | RandomBit | Comparison, sample: Sample, attainable: bool
) -> tuple[str, ...]:
    """Return what a statistic declares about its power, and nothing that it does not declare.

    No consistency is claimed where no value of the statistic is rejected (not `attainable`), where
    what respondents left open was drawn from H0, or where the null hypothesis was estimated from a
    fixed number of answers.
    """
    m = len(sample.items)
    notes = [
        BLINDNESS[key].format(items=m, rankings=most_rankings(m)) for key in statistic.blind_to
    ]
    if isinstance(statistic, RandomBit):
        return (*notes, BIT) if statistic.level is None else tuple(notes)
    proved = statistic.consistent is not None and not is_beside_null(sample)
    if proved and attainable and not sample.completed:
        notes.append(CONSISTENT_GROUPS if sample.groups else CONSISTENT)
    return tuple(notes)


def is_beside_null(sample: Sample) -> bool:
    """Return whether the second sample are the answers behind a null hypothesis."""
    return tuple(name for name, _ in sample.groups) == BESIDE_NULL and not sample.group_column


def impossible(release: Release) -> int:
    """Return the number of observations that H0 rules out, where a release without noise has it."""
    return int(release.parts[IMPOSSIBLE].values[0]) if IMPOSSIBLE in release.parts else 0


def against_null(release: Release) -> tuple[str, ...]:
    """Return how many observations H0 rules out, where there are any."""
    count = impossible(release)
    return tuple(said("ruled out", count, count=count, nobs=release.sample.nobs))
