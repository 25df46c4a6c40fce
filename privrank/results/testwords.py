"""Sentences of the summary of a test on rankings or choices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privrank.hypotheses.effects import STANDARD
from privrank.release.names import EFFECT, GAIN, STATISTIC
from privrank.release.release import Release
from privrank.results.guarantee import format_pvalue

if TYPE_CHECKING:
    from privrank.results.ranktest import RankTestResult

__all__ = [
    "completion",
    "distance",
    "mechanism",
    "null",
    "power",
    "redrawn",
    "scale",
    "verdict",
]


def null(result: RankTestResult) -> str:
    """Return what the null distribution was found by."""
    if result.pvalue is None:
        return "level by calibration"
    return "exact" if result.draws is None else f"Monte Carlo, {result.draws} draws"


def mechanism(release: Release) -> str:
    """Return what protects a release."""
    if release.source == "none":
        return "no noise"
    if release.local:
        return "randomised response"
    return "discrete Laplace" if STATISTIC in release.parts else "random bit"


def scale(release: Release) -> str:
    """Return the scale of the noise of the statistic, in its own unit."""
    if release.local:
        return f"gain {release.plan.number(GAIN):.4g} of a response"
    part = release.parts.get(STATISTIC)
    if part is None:
        return "none, one bit"
    return f"{part.step * part.laplace.scale:.4g} (sensitivity {part.step * part.sensitivity:.4g})"


def completion(release: Release) -> tuple[str, ...]:
    """Return what is assumed where rankings were completed."""
    if not release.sample.completed:
        return ()
    return (
        "Ties and missing ranks were completed by a secret draw from H0, given what was reported; "
        "the level holds if what a respondent leaves open depends on their ranking through what "
        "they report only.",
    )


def redrawn(release: Release, also: str = "") -> str:
    """Return what a p-value accounts for, and that it is one of many; empty if nothing is drawn.

    Given what `also` was drawn, as a clause.
    """
    sample = release.sample
    noise = "random responses" if release.local else "privacy noise"
    lots = sample.unit == "respondent" and sample.max_rows > 1
    one = " One row of each respondent, drawn by lot, is used" * lots
    if release.source == "none":
        return f"{one}; another draw would give another p-value." if lots else ""
    rows = ", or of the rows," * lots
    return (
        f"{one}{'.' * lots} The p-value accounts for the {noise}{also}; another draw of the "
        f"{noise.split()[1]}{rows} would give another p-value."
    )


def verdict(result: RankTestResult) -> str:
    """Return what the test decides, and what its p-value accounts for."""
    verb = "is" if result.reject else "is not"
    if result.pvalue is None:
        return (
            f"H0 {verb} rejected at level {result.alpha:g}. This method releases the decision "
            f"alone, so there is no p-value; another draw may decide otherwise."
        )
    also = error = ""
    if result.draws is not None and result.pvalue_error:
        error = f" (Monte Carlo standard error {result.pvalue_error:.1g})"
    if result.boundary is not None:
        also = (
            f", and a public random number, U = {result.boundary:.3f}, decides at the boundary, so "
            f"that the level is exact"
        )
    return (
        f"H0 {verb} rejected at level {result.alpha:g}: {format_pvalue(result.pvalue)}{error}."
        f"{redrawn(result.release, also)}"
    )


def power(result: RankTestResult) -> tuple[str, ...]:
    """Return how probable a rejection is at a stated distance from H0, if that is quickly found."""
    found = result.standard_power()
    if found is None:
        return ()
    probability, error, phi = found
    side = result.release.plan.settings.get("alternative", "two-sided")
    two = len(result.release.sample.items) == 2
    model = f"{'one' if two else 'half'} of the categories, either, more likely than under H0"
    if side != "two-sided":
        model = f"the first category {'less' if side == 'smaller' else 'more'} likely than under H0"
    if phi is not None:
        centred = " and the centre of H0" * bool(result.null_model.center)
        model = f"a Mallows model with phi = {phi:.3g}{centred}"
    return (
        f"Power at a total variation distance of {STANDARD:g} from H0 ({model}): "
        f"{probability:.2f} (Monte Carlo standard error {error:.1g}).",
    )


def distance(result: RankTestResult, interval: tuple[float, float] | None) -> tuple[str, ...]:
    """Return the estimate of the distance from H0 with its interval, if one was released."""
    if interval is None:
        return ()
    low, high = interval
    within = f"between {low:.3f} and {high:.3f}"
    if low < 0.0005:
        within = f"above 0, at most {high:.3f}" if low > 0 else f"at most {high:.3f}"
    own, release = "", result.release
    if EFFECT in release.parts and release.source != "none":
        own = f" (epsilon {release.parts[EFFECT].epsilon:.4g} of the total)"
    return (
        f"The total variation distance from H0 is estimated at {result.effect:.3f}{own}; with "
        f"{100 * (1 - result.alpha):g} % confidence it is {within}.",
    )
