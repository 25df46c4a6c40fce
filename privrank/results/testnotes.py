"""What the statistic of a test cannot see, and which method can: public sentences."""

from __future__ import annotations

from privrank.hypotheses.nullmodel import NullModel
from privrank.hypotheses.statistic import Comparison
from privrank.mechanisms.ranknorms import most_rankings, sees_everything
from privrank.plans.distances import FEW_CATEGORIES
from privrank.release.names import IMPOSSIBLE
from privrank.release.release import Release
from privrank.release.survey import Sample

__all__ = ["against_null", "against_uniformity", "between_groups", "hypotheses_of_uniformity"]

_DISJOINT = (
    "The statistic sees consensus on the order of disjoint random pairs of items, and nothing that "
    "leaves these pairs even; method='auto' does."
)
_CHOICES = {
    "auto": (
        "Half of the level is for small deviations of many categories, half for a large one of a "
        "single category: the test is consistent against every departure."
    ),
    "tv": (
        "The statistic adds up all deviations: a large one of a single category among many "
        "is lost in the scatter of the others; method='auto' sees it."
    ),
    "max-count": (
        "The statistic sees categories chosen too often, not those chosen too rarely or small "
        "deviations of many; method='auto' sees them."
    ),
    "goldreich": (
        "The choices were mapped at random so that H0 becomes uniformity; method='auto' tests "
        "the same with far more power."
    ),
    "paninski": (
        "The statistic counts categories chosen once: where there are many more choices than "
        "categories it sees little; method='auto' does."
    ),
    "sigmoid": (
        "The bit is no test of a stated level: how often it errs depends on the numbers of "
        "choices and categories."
    ),
}
_RANKINGS = {
    "borda": (
        "The statistic sees mean ranks alone: opposite camps, cycles of preferences and items that "
        "are placed first or last are invisible to it if mean ranks are equal; method='auto' sees "
        "them."
    ),
    "pairs": _DISJOINT,
    "laplace": _DISJOINT,
    "truncated": _DISJOINT,
    "bucket": _DISJOINT,
    "two-sample": (
        "The statistic sees whether two rankings are nearer to each other than by lot; with more "
        "rankings method='auto' sees more."
    ),
    "mallows": (
        "The statistic sees how far rankings are from the order of the columns, and no consensus "
        "on an order half way; method='auto' does."
    ),
    "omnibus": (
        "Each order, all orders together and the pairs of items have a third of the level: the "
        "test is consistent against every departure; method='auto' has more power for mean ranks."
    ),
}
_MALLOWS = {
    "auto": (
        "The statistic sees the shares of pairs of items and the mean distance to the centre: what "
        "keeps both is invisible to it; for at most 6 items a table of probabilities as null "
        "sees everything."
    ),
    "kernel": (
        "The statistic sees the shares of pairs of items; another dispersion shows "
        "more with method='distance', both with 'auto'."
    ),
    "distance": (
        "The statistic sees the mean distance to the centre: another centre may keep it; "
        "method='auto' sees that for at most 200 items."
    ),
}


def hypotheses_of_uniformity(sample: Sample) -> tuple[str, str]:
    """Return H0 and H1 of a test of uniformity in words."""
    what = "categories" if sample.kind == "choices" else "items"
    orders = "orders of the " * (sample.kind == "rankings")
    named = f"all {orders}{len(sample.items)} {what}"
    return f"{named} are equally likely.", "some are more likely than others."


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
    if IMPOSSIBLE in release.parts and (found := int(release.parts[IMPOSSIBLE].values[0])):
        notes.append(
            f"H0 gives probability 0 to {found} of the {sample.nobs} observations: it is "
            f"rejected whatever the statistic."
        )
    apart = method not in ("tv", "max-count", "goldreich") or release.source == "none"
    if null.rules_out and not apart:
        notes.append(
            "An observation to which H0 gives probability 0 counts no more than another here; "
            "method='auto' counts them apart."
        )
    if null.center:
        notes.append(_MALLOWS["auto" if method == "omnibus" else method])
    elif sample.kind == "choices":
        few = len(sample.items) == 2 and method not in ("goldreich", "sigmoid")
        if not few:
            notes.append(_CHOICES["auto" if method == "omnibus" else method])
    elif not null.probabilities:
        notes.extend(against_uniformity(method, sample))
    else:
        notes.append(_CHOICES["tv"] if method == "tv" else _RANKINGS["omnibus"].split(";")[0] + ".")
    return tuple(notes)


def between_groups(asked: Comparison, sample: Sample) -> tuple[str, ...]:
    """Return what a statistic does not see, or sees badly, and which method does."""
    several = len(sample.groups) > 2
    if asked.decision is not None or asked.statistic == "chi-square":
        return () if several else ("method='auto' sees the same differences with less noise.",)
    notes = []
    if asked.form == "sum":
        notes.append(
            "The p-value is for all groups together; a difference of a small group alone hardly "
            "shows" + ("." if sample.private_labels else ": method='auto' or 'pairs' sees it.")
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
        remedy = "" if sample.private_labels else ": method='auto' sees it"
        notes.append(f"A difference in one rare category of many hardly shows{remedy}.")
    if asked.statistic == "kendall":
        notes.append(
            "Differences that leave all pairwise fractions as they are do not show: method='mmd' "
            "sees them."
        )
    return (" ".join(notes),) if notes else ()
