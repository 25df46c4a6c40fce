"""What differs between groups, from a release of totals by group: table, words and figure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from privrank.hypotheses.details import contrasts, half_widths
from privrank.privacy.knorm import PermutohedronNoise
from privrank.privacy.netnoise import ZeroSumLaplace
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.names import DETAILS
from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.results import plots
from privrank.results.guarantee import caption

REST = "the others"

# Clear differences that a summary spells out.
_MOST_WORDS = 4


def detail_frame(release: Release, alpha: float) -> pd.DataFrame:
    """Return every comparison of every item with its interval, all at once at 1 - alpha.

    Differences of shares for choices, of mean ranks for rankings.
    """
    sample = release.sample
    items = [int(place) for place in str(release.plan.settings[DETAILS]).split()]
    # scores lie between 0 and 1: mean ranks are (m - 1) times the mean of theirs, plus 1
    largest = len(sample.items) - 1.0 if sample.kind == "rankings" else 1.0
    parts = [release.parts[f"{DETAILS} {number}"] for number in range(len(sample.groups))]
    distribution, step = parts[0].distribution, parts[0].step / largest
    assert isinstance(distribution, DiscreteLaplace | ZeroSumLaplace | PermutohedronNoise)
    totals = np.array([part.values for part in parts]) * step
    if totals.shape[1] > len(items):
        totals = totals[:, items]
    sizes = np.array(sample.sizes, dtype=np.float64)
    compared = contrasts(len(sizes))
    difference = np.array([contrast.weights(sizes) @ totals for contrast in compared])
    # no difference of mean scores is beyond 1, so that neither are the ends of an interval
    widths = half_widths(totals, sizes, distribution, step, alpha)
    low, high = (np.clip(difference + side, -1.0, 1.0) for side in (-widths, widths))
    names = [name for name, _ in sample.groups]
    others = [names[c.second[0]] if len(c.second) == 1 else REST for c in compared]
    return pd.DataFrame(
        {
            "item": [sample.items[place] for place in items] * len(compared),
            "group": np.repeat([names[contrast.first[0]] for contrast in compared], len(items)),
            "other": np.repeat(others, len(items)),
            "difference": largest * np.clip(difference, -1.0, 1.0).ravel(),
            "lower": largest * low.ravel(),
            "upper": largest * high.ravel(),
            "clear": ((low > 0) | (high < 0)).ravel(),
        }
    )


def hypotheses_of(sample: Sample) -> str:
    """Return H0 and H1 of a comparison of samples in words, and the groups."""
    sizes = ", ".join(name if size is None else f"{name} {size}" for name, size in sample.groups)
    by = f" by {sample.group_column}" if sample.group_column else ""
    hypotheses = f"the {sample.kind} of all groups have the same distribution. H1: they have not"
    if sample.paired:
        hypotheses = f"the two {sample.kind} of a respondent are exchangeable. H1: they are not"
    return f"H0: {hypotheses}. Groups{by}: {sizes}."


def detail_words(release: Release, frame: pd.DataFrame | None, alpha: float) -> tuple[str, ...]:
    """Return the clear differences in sentences, the clearest first, and how many there are."""
    if frame is None:
        return ()
    rankings = release.sample.kind == "rankings"
    what = "mean ranks" if rankings else "shares"
    cost = ""
    if release.source != "none":
        cost = f", for epsilon {release.parts[f'{DETAILS} 0'].epsilon:.4g} of the total"
    head = (
        f"What differs, from {what} by group{cost}; all {len(frame)} statements hold at once with "
        f"{100 * (1 - alpha):g} % confidence, whether or not H0 is rejected"
    )
    clear = frame[frame["clear"]]
    if clear.empty:
        return (f"{head}: no difference is clear.",)
    # the clearest first: the largest in units of the half width of its interval
    half = 0.5 * (clear["upper"] - clear["lower"])
    order = (clear["difference"].abs() / half).sort_values(ascending=False, kind="stable").index
    column = release.sample.group_column or "group"
    rows = clear.loc[order].head(_MOST_WORDS).itertuples()
    said = [_statement(row, column, rankings) for row in rows]
    left = len(clear) - len(said)
    more = f" {left} more are clear: see details()." if left > 0 else ""
    return (f"{head}. {'. '.join(said)}.{more}",)


def _statement(row: Any, column: str, rankings: bool) -> str:
    """Return one clear difference in words: a lower mean rank is a higher place."""
    lower = row.difference < 0
    size = abs(row.difference)
    ends = sorted((abs(row.lower), abs(row.upper)))
    group = f"{column[:1].upper()}{column[1:]} {row.group}"
    other = row.other if row.other == REST else f"{column} {row.other}"
    if rankings:
        direction = "higher" if lower else "lower"
        between = f"{ends[0]:.2f} to {ends[1]:.2f}"
        return f"{group} ranks {row.item} {size:.2f} places {direction} than {other} ({between})"
    direction = "less" if lower else "more"
    between = f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f}"
    return (
        f"{group} chooses {row.item} {direction} often than {other}, by {100 * size:.1f} "
        f"percentage points ({between})"
    )


def plot_details(
    release: Release, frame: pd.DataFrame, alpha: float, ax: plots.Axes | None = None
) -> plots.Figure:
    """Draw the differences with their intervals."""
    label = "difference of mean ranks (left: ranked higher)"
    if release.sample.kind == "choices":
        label = "difference of shares (right: chosen more often)"
    label = f"{label}; {100 * (1 - alpha):g} % intervals,\nall at once, privacy noise included"
    return plots.differences(frame, label, caption(release), ax=ax)
