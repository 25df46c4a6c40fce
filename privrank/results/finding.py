"""What a released statistic says: p-value and threshold, from the release and public numbers."""

from __future__ import annotations

from typing import Any

from privrank.nulls import Null
from privrank.release import STATISTIC, Release
from privrank.statistics.statistic import RandomBit, Statistic

__all__ = ["find"]


def find(
    release: Release,
    asked: Statistic | RandomBit,
    alpha: float,
    draws: int,
    law: Null | None = None,
) -> dict[str, Any]:
    """Return p-value, threshold and number of null draws of a release: post-processing.

    Given the null law, if the caller has it already, does not compute it again.
    """
    if isinstance(asked, RandomBit):
        return {"pvalue": None, "threshold": None, "draws": None}
    part = release.parts[STATISTIC]
    null = asked.null(draws) if law is None else law
    threshold = null.threshold(alpha, part.laplace)
    return {
        "pvalue": null.pvalue(int(part.values[0]), part.laplace),
        "threshold": None if threshold is None else threshold * part.step,
        "draws": null.draws,
    }
