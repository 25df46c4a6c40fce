"""What a released statistic says: p-value and threshold, from the release and public numbers."""

from __future__ import annotations

from typing import Any

from privrank.hypotheses.nulls import Null
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.release.release import IMPOSSIBLE, STATISTIC, Release

__all__ = ["find", "impossible"]


def impossible(release: Release) -> int:
    """Return the number of observations that H0 rules out, where a release without noise has it."""
    return int(release.parts[IMPOSSIBLE].values[0]) if IMPOSSIBLE in release.parts else 0


def find(
    release: Release,
    asked: Statistic | RandomBit,
    alpha: float,
    draws: int,
    law: Null | None = None,
) -> dict[str, Any]:
    """Return p-value, threshold and number of null draws of a release: post-processing.

    Given the null law, if the caller has it already, does not compute it again. An observation that
    H0 rules out has the least p-value there is: 0 under an exact law, else 1 / (draws + 1), as if
    the statistic were beyond all draws. H0 gives that event probability 0, so no level is spent.
    """
    if isinstance(asked, RandomBit):
        return {"pvalue": None, "threshold": None, "draws": None}
    part = release.parts[STATISTIC]
    null = asked.null(draws) if law is None else law
    threshold = null.threshold(alpha, part.laplace)
    pvalue = null.pvalue(int(part.values[0]), part.laplace)
    if impossible(release):
        pvalue = 0.0 if null.draws is None else 1.0 / (null.draws + 1)
    return {
        "pvalue": pvalue,
        "threshold": None if threshold is None else threshold * part.step,
        "draws": null.draws,
    }
