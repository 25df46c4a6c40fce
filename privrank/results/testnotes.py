"""Sentences of summaries of tests: decisions, p-values and power."""

from __future__ import annotations

from typing import Any

from privrank.hypotheses.nulls import Blindness, NullModel, RandomBit, Statistic
from privrank.plans.samples import Comparison
from privrank.release.names import BESIDE_NULL, GAIN, IMPOSSIBLE, STATISTIC
from privrank.release.release import Release
from privrank.release.survey import Design, Sample
from privrank.results import tables
from privrank.results.claims import percent, said
from privrank.results.guarantee import NoiseWords
from privrank.results.tables import Column, statistic_words
from privrank.util.arrays import most_rankings

# The sentence for each kind of departure against which a statistic has little or no power.
BLINDNESS: dict[Blindness, str] = {
    "single category": "This method has little power against a deviation in a single category; "
    "method='auto' has power against it.",
    "many categories": "This method has little power against small differences in many "
    "categories; method='tv' has more.",
    "dense choices": "This method has little power if there are many more choices than "
    "categories; method='auto' has more.",
    "impossible observations": "This method gives no special weight to observations of "
    "probability 0 under H0; method='auto' counts such observations separately.",
    "even pairs": "This method has little power against departures that leave all pairs of items "
    "even. method='auto' also compares how often items are ranked first or last.",
    "equal mean ranks": "This method has little power against opposite camps, cycles of "
    "preferences and items ranked first or last if mean ranks are equal; method='auto' has power "
    "against them.",
    "equal mean ranks, reports": "The statistic depends on mean ranks alone. It has no power "
    "against opposite camps, cycles of preferences and items ranked first or last if mean ranks "
    "are equal.",
    "equal mean scores": "The statistic compares how often items were preferred. It has little "
    "power against other departures, such as opposite camps.",
    "mean ranks and products of pairs": "This statistic has no power against departures in mean "
    "ranks alone, or in three or more pairs of items at once.",
    "first and last alone": "Mean ranks have 90% of the level. The other 10% is for items ranked "
    "first or last, opposite camps and cycles of preferences only, because for {items} items other "
    "departures are searched for in at most {rankings:,} rankings.",
    "two rankings alone": "The statistic is the agreement of two rankings and has power against a "
    "strong consensus only.",
    "halfway consensus": "This method has little power against a consensus on an order halfway "
    "between the order of the columns and its reverse; method='auto' has power against it.",
    "dispersion": "This method has little power against another dispersion about the centre; "
    "method='auto' has power against it.",
    "equal mean distance": "This method has no power against another centre at the same mean "
    "distance; for at most 200 items, method='auto' has power against it.",
    "pairs and distance alone": "The statistic depends only on the shares of pairs of items and on "
    "the mean distance to the centre. For at most 6 items, declare the null as a table of "
    "probabilities to compare the shares of all orders.",
    "even public pairs": "The statistic depends on the order of the public pairs only and has no "
    "power against a consensus that leaves these even.",
    "one side": "This one-sided test has no power against a departure in the other direction.",
    "more noise": "method='auto' detects the same differences with less noise.",
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
    "pairwise fractions equal; method='mmd' has power against them.",
    "beyond landmarks": "For so many rankings the kernel is projected on 1,024 public rankings. "
    "Differences that this projection leaves out are not detected.",
    "equal margins": "This method has no power if both samples have the same distribution but the "
    "two answers of a respondent are not exchangeable.",
}

# The alternative hypothesis about answers to offered sets.
OTHER_ANSWERS = (
    "some answers have other probabilities, or answers of a respondent depend on each other."
)

# Message that a test has no detectable effect.
NO_EFFECT_OF_SETS = (
    "detectable_effect() is for rankings and choices of a category. For choices from "
    "offered sets simulate answers by worths of interest and fit the test to them."
)

# The column of decisions.
DECISIONS = Column("decision", {True: "reject H0", False: "do not reject"}.__getitem__)


def noise_of(release: Release, details: bool) -> NoiseWords:
    """Return the noise, statistic (in details) and scale of a one-sample test."""
    part = release.parts.get(STATISTIC)
    # the row of the table already has the name of the statistic
    statistic = statistic_words(release.mechanism) if details else ""
    if release.local:
        return NoiseWords("", statistic, f"gain {release.plan.number(GAIN):.4g} of a response")
    if part is None:
        return NoiseWords("random bit", statistic, "none (one bit)")
    return NoiseWords(
        "discrete Laplace noise",
        statistic,
        f"{part.step * part.laplace.scale:.4g} (sensitivity {part.step * part.sensitivity:.4g})",
    )


def verdict(result: Any, evidence: str = "no evidence") -> list[str]:
    """Return notes on the decision of a test and on its p-value.

    `evidence` is the key of the sentence for tests that do not reject H0.
    """
    level = percent(result.alpha)
    key = "rejected" if result.reject else "not rejected"
    if result.pvalue is None:
        fixed = result.asked.level is not None
        return [
            *said(key, fixed, level=level, basis="fixed in advance"),
            *said(f"bit {key}", not fixed),
            *said("decision alone"),
        ]
    basis = tables.format_pvalue(result.pvalue)
    if error := getattr(result, "pvalue_error", None):
        basis += f", Monte Carlo SE {error:.1g}"
    boundary = getattr(result, "boundary", None)
    release = result.release
    # of choices from offered sets all answers of a respondent are used
    sets = isinstance(release.survey, Design)
    by_lot = release.survey.unit == "respondent" and release.survey.max_rows > 1 and not sets
    drawn = said("by lot alone", by_lot)
    if release.source != "none":
        source = "responses" if release.local else "noise"
        drawn = said("by lot", by_lot) + said(f"{source} and lot" if by_lot else source)
    return [
        *said(key, level=level, basis=basis),
        *drawn,
        *said("boundary", boundary is not None, boundary=boundary),
        *said("no evidence, sets" if sets else evidence, not result.reject),
    ]


def interval_text(low: float, high: float, least: float = 0.0005) -> str:
    """Return an interval as text, with lower ends below `least` shown as 0.

    A round bracket shows that 0 is excluded.
    """
    upper = "<0.001" if 0.0 < high < 0.0005 else f"{high:.3f}"
    if low < least:
        return f"{'(' if low > 0 else '['}0, {upper}]"
    return f"[{low:.3f}, {upper}]"


def hypotheses_of_uniformity(sample: Sample | Design) -> tuple[str, str]:
    """Return H0 and H1 of a test of uniformity in words."""
    if isinstance(sample, Design):
        return NullModel(worths=(0.0, 0.0)).words, OTHER_ANSWERS
    m = len(sample.items)
    every = "both categories" if m == 2 else f"all {m} categories"
    named = every if sample.kind == "choices" else f"all orders of the {m} items"
    return f"{named} are equally likely.", "some are more likely than others."


def power_notes(
    statistic: Statistic | RandomBit | Comparison, sample: Sample | Design, attainable: bool
) -> tuple[str, ...]:
    """Return the notes on power that a statistic declares.

    Consistency is not claimed in three cases: no value of the statistic is rejected (not
    `attainable`), missing parts of answers were drawn from H0, or the null hypothesis was estimated
    from a fixed number of answers.
    """
    m = len(sample.items)
    notes = [
        BLINDNESS[key].format(items=m, rankings=most_rankings(m)) for key in statistic.blind_to
    ]
    if isinstance(statistic, RandomBit):
        return (*notes, *said("bit", statistic.level is None))
    claimed = (
        attainable
        and isinstance(sample, Sample)
        and statistic.consistent is not None
        and not sample.completed
        and not is_beside_null(sample)
    )
    key = "consistent, groups" if getattr(sample, "groups", ()) else "consistent"
    return (*notes, *said(key, claimed))


def is_beside_null(sample: Sample) -> bool:
    """Return whether the second sample consists of the answers behind H0."""
    return tuple(name for name, _ in sample.groups) == BESIDE_NULL and not sample.group_column


def impossible(release: Release) -> int:
    """Return the number of observations that are impossible under H0.

    Only a release without noise has this number; it is 0 for all others.
    """
    return int(release.parts[IMPOSSIBLE].values[0]) if IMPOSSIBLE in release.parts else 0


def against_null(release: Release) -> tuple[str, ...]:
    """Return a note on observations that are impossible under H0, if any."""
    count = impossible(release)
    return tuple(said("ruled out", count, count=count, nobs=release.survey.nobs))
