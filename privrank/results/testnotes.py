"""Sentences of the summaries of tests: what was found, and what a statistic cannot see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privrank.hypotheses.effects import STANDARD
from privrank.hypotheses.nullmodel import NullModel
from privrank.hypotheses.statistic import Comparison
from privrank.mechanisms.ranknorms import most_rankings, sees_everything
from privrank.plans.closeness import FEW_CATEGORIES
from privrank.release.names import EFFECT, GAIN, IMPOSSIBLE, STATISTIC
from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.results.tables import format_pvalue

if TYPE_CHECKING:
    from privrank.results.ranktest import RankTestResult

_DISJOINT = (
    "The statistic sees consensus on the order of disjoint random pairs of items, and nothing that "
    "leaves these pairs even; method='auto' does."
)
_CHOICES = {
    "auto": "Half of the level is for small deviations of many categories, half for a large one of "
    "a single category: the test is consistent against every departure.",
    "tv": "The statistic adds up all deviations: a large one of a single category among many is "
    "lost in the scatter of the others; method='auto' sees it.",
    "max-count": "The statistic sees categories chosen too often, not those chosen too rarely or "
    "small deviations of many; method='auto' sees them.",
    "goldreich": "The choices were mapped at random so that H0 becomes uniformity; method='auto' "
    "tests the same with far more power.",
    "paninski": "The statistic counts categories chosen once: where there are many more choices "
    "than categories it sees little; method='auto' does.",
    "sigmoid": "The bit is no test of a stated level: how often it errs depends on the numbers of "
    "choices and categories.",
}
_RANKINGS = {
    **dict.fromkeys(("pairs", "laplace", "truncated", "bucket"), _DISJOINT),
    "borda": "The statistic sees mean ranks alone: opposite camps, cycles of preferences and items "
    "placed first or last are invisible to it if mean ranks are equal; method='auto' sees them.",
    "two-sample": "The statistic sees whether two rankings are nearer to each other than by lot; "
    "with more rankings method='auto' sees more.",
    "mallows": "The statistic sees how far rankings are from the order of the columns, and no "
    "consensus on an order half way; method='auto' does.",
    "omnibus": "Each order, all orders together and the pairs of items have a third of the level: "
    "the test is consistent against every departure; method='auto' has more power for mean ranks.",
}
# What the statistic of a method sees: of choices, of rankings, and under a Mallows null.
_MALLOWS = {
    "auto": "The statistic sees the shares of pairs of items and the mean distance to the centre: "
    "what keeps both is invisible to it; for at most 6 items a table of probabilities as null sees "
    "everything.",
    "kernel": "The statistic sees the shares of pairs of items; another dispersion shows more with "
    "method='distance', both with 'auto'.",
    "distance": "The statistic sees the mean distance to the centre: another centre may keep it; "
    "method='auto' sees that for at most 200 items.",
}

_COMPLETED = (
    "Ties and missing ranks were completed by a secret draw from H0, given what was reported; the "
    "level holds if what a respondent leaves open depends on their ranking through what they "
    "report only."
)


def facts(result: RankTestResult, details: bool) -> list[tuple[str, str]]:
    """Return the header lines on the null distribution, the mechanism and its noise."""
    release, part = result.release, result.release.parts.get(STATISTIC)
    null = "exact" if result.draws is None else f"Monte Carlo, {result.draws} draws"
    mechanism = "discrete Laplace"
    if release.source == "none":
        mechanism = "no noise"
    elif release.local:
        mechanism = "randomised response"
    elif part is None:
        mechanism = "random bit"
    lines = [
        ("Null:", "level by calibration" if result.pvalue is None else null),
        ("Level:", f"{result.alpha:g}"),
        ("Mechanism:", mechanism),
    ]
    if details:
        scale = "none, one bit"
        if release.local:
            scale = f"gain {release.plan.number(GAIN):.4g} of a response"
        elif part is not None:
            sensitivity = part.step * part.sensitivity
            scale = f"{part.step * part.laplace.scale:.4g} (sensitivity {sensitivity:.4g})"
        lines.append(("Noise scale:", scale))
    return lines


def findings(result: RankTestResult, interval: tuple[float, float] | None) -> list[str]:
    """Return what a test decides, its power, the distance from H0, and what its method sees."""
    hypotheses = f"H0: {result.hypotheses[0]} H1: {result.hypotheses[1]}"
    notes = [hypotheses, _verdict(result), *_power(result)]
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


def _verdict(result: RankTestResult) -> str:
    """Return what the test decides, and what its p-value accounts for."""
    verdict = f"H0 {'is' if result.reject else 'is not'} rejected at level {result.alpha:g}"
    if result.pvalue is None:
        return (
            f"{verdict}. This method releases the decision alone, so there is no p-value; another "
            f"draw may decide otherwise."
        )
    also = error = ""
    if result.pvalue_error:
        error = f" (Monte Carlo standard error {result.pvalue_error:.1g})"
    if result.boundary is not None:
        also = (
            f", and a public random number, U = {result.boundary:.3f}, decides at the boundary, so "
            f"that the level is exact"
        )
    return f"{verdict}: {format_pvalue(result.pvalue)}{error}.{redrawn(result.release, also)}"


def _power(result: RankTestResult) -> list[str]:
    """Return how probable a rejection is at a stated distance from H0, if that is quickly found."""
    standard = result.standard_power()
    if standard is None:
        return []
    probability, error, phi = standard
    side = result.release.plan.settings.get("alternative", "two-sided")
    share = "one" if len(result.release.sample.items) == 2 else "half"
    model = {
        "two-sided": f"{share} of the categories, either, more likely than under H0",
        "smaller": "the first category less likely than under H0",
        "larger": "the first category more likely than under H0",
    }[str(side)]
    if phi is not None:
        centre = " and the centre of H0" if result.null_model.center else ""
        model = f"a Mallows model with phi = {phi:.3g}{centre}"
    return [
        f"Power at a total variation distance of {STANDARD:g} from H0 ({model}): "
        f"{probability:.2f} (Monte Carlo standard error {error:.1g})."
    ]


def _distance(result: RankTestResult, low: float, high: float) -> str:
    """Return the estimate of the distance from H0 with its interval."""
    within = f"between {low:.3f} and {high:.3f}"
    if low < 0.0005:
        within = f"above 0, at most {high:.3f}" if low > 0 else f"at most {high:.3f}"
    own, part = "", result.release.parts.get(EFFECT)
    if part is not None and result.release.source != "none":
        own = f" (epsilon {part.epsilon:.4g} of the total)"
    return (
        f"The total variation distance from H0 is estimated at {result.effect:.3f}{own}; with "
        f"{100 * (1 - result.alpha):g} % confidence it is {within}."
    )


def hypotheses_of_uniformity(sample: Sample) -> tuple[str, str]:
    """Return H0 and H1 of a test of uniformity in words."""
    m = len(sample.items)
    named = f"{m} categories" if sample.kind == "choices" else f"orders of the {m} items"
    return f"all {named} are equally likely.", "some are more likely than others."


def against_uniformity(method: str, sample: Sample) -> tuple[str, ...]:
    """Return what to know of the statistic of a method of a test of uniformity."""
    n, m = sample.nobs, len(sample.items)
    if sample.kind == "choices":
        method = "auto" if method == "omnibus" else method
        return () if m == 2 else (_CHOICES[method],)
    if m == 2 and method in ("auto", "borda", "omnibus"):
        return ()
    if method != "auto":
        return (_RANKINGS[method],)
    shares = "Mean ranks have nine tenths of the level, other departures one tenth"
    if sees_everything(n, m):
        return (f"{shares}: the test is consistent against every departure.",)
    return (
        f"{shares}: of these, items placed first or last, opposite camps and cycles of preferences "
        f"alone, as for {m} items other departures are looked for in at most {most_rankings(m)} "
        f"rankings.",
    )


def against_null(method: str, null: NullModel, release: Release) -> tuple[str, ...]:
    """Return what to know of the statistic of a method of a test of identity."""
    sample, notes = release.sample, []
    if IMPOSSIBLE in release.parts and (count := int(release.parts[IMPOSSIBLE].values[0])):
        notes.append(
            f"H0 gives probability 0 to {count} of the {sample.nobs} observations: it is "
            f"rejected whatever the statistic."
        )
    apart = method not in ("tv", "max-count", "goldreich") or release.source == "none"
    if null.rules_out and not apart:
        notes.append(
            "An observation to which H0 gives probability 0 counts no more than another here; "
            "method='auto' counts them apart."
        )
    named = "auto" if method == "omnibus" else method
    if null.center:
        return (*notes, _MALLOWS[named])
    if sample.kind == "choices":
        plain = len(sample.items) == 2 and method not in ("goldreich", "sigmoid")
        return tuple(notes) if plain else (*notes, _CHOICES[named])
    if not null.probabilities:
        return (*notes, *against_uniformity(method, sample))
    omnibus = _RANKINGS["omnibus"].split(";")[0] + "."
    return (*notes, _CHOICES["tv"] if method == "tv" else omnibus)


def between_groups(asked: Comparison, sample: Sample) -> tuple[str, ...]:
    """Return what a statistic does not see, or sees badly, and which method does."""
    several, private = len(sample.groups) > 2, sample.private_labels
    if asked.decision is not None or asked.statistic == "chi-square":
        return () if several else ("method='auto' sees the same differences with less noise.",)
    notes = []
    if asked.form == "sum":
        remedy = "" if private else ": method='auto' or 'pairs' sees it"
        notes.append(
            f"The p-value is for all groups together; a difference of a small group alone hardly "
            f"shows{remedy}."
        )
    if asked.form == "pairs" and several:
        notes.append(
            "The noise goes with the smallest group: beside a small one, differences of the others "
            "show in method='auto'."
        )
    if asked.form in ("groups", "cells") and several:
        notes.append(
            "The p-value is for all groups together; if only a small one may differ, "
            "method='pairs' has more power."
        )
    if asked.form == "cells":
        notes.append(
            "If many categories may differ a little and none much, method='tv' has more power."
        )
    if asked.statistic == "tv" and asked.form != "cells" and len(sample.items) > FEW_CATEGORIES:
        remedy = "" if private else ": method='auto' sees it"
        notes.append(f"A difference in one rare category of many hardly shows{remedy}.")
    if asked.statistic == "kendall":
        notes.append(
            "Differences that leave all pairwise fractions as they are do not show: method='mmd' "
            "sees them."
        )
    return (" ".join(notes),) if notes else ()
