"""Archived results: JSON text back to the same result."""

from __future__ import annotations

import json
from typing import Any

from privrank import aggregation, btl, closeness, identity, pooling, topk, uniformity
from privrank.distributions.links import Link
from privrank.local import sortedorder
from privrank.release.archived import read_archive
from privrank.release.release import Release, archived_link
from privrank.results.base import Result
from privrank.results.pooled import PooledResult

__all__ = ["from_json"]

_REBUILD = {
    "AdaptiveOrder": sortedorder.infer,
    "AggregationResult": aggregation.infer,
    "BTLResult": btl.infer,
    "ClosenessResult": closeness.infer,
    "IdentityTest": identity.infer,
    "TopKResult": topk.infer,
    "UniformityTest": uniformity.infer,
}

_WRITER = "a result's to_json()"


def from_json(text: str, *, link: Link | None = None) -> Result | PooledResult:
    """Rebuild the result that ``to_json()`` of a result wrote.

    Inference runs again on the archived release, which holds all it ever saw; no budget is spent.

    Parameters
    ----------
    text : str
        JSON text of a result.
    link : Link, optional
        The link of a model fitted with one of your own, of which an archive holds the name only.

    Returns
    -------
    A result of the same class and numbers

    Raises
    ------
    TypeError, ValueError
        If the text is not an archived result, or was changed, its link is not given, or what it
        has as pooled cannot be pooled.
    """
    record = read_archive(text, _WRITER)
    settings = record.get("settings", {})
    if members := record.get("results"):
        return _pooled(members, settings, link)
    chosen = archived_link(record.get("release"), link)
    try:
        release = Release.from_record(record["release"], chosen)
        rebuild = _REBUILD[record["result"]]
    except (TypeError, ValueError, KeyError, AttributeError):
        raise ValueError(f"text must be JSON written by {_WRITER}.") from None
    result: Result = rebuild(release, **settings)  # type: ignore[operator]
    return result


def _pooled(members: Any, settings: Any, link: Link | None) -> PooledResult:
    """Rebuild a pooled result from the archives of what was pooled."""
    results: list[Any] = [from_json(json.dumps(each), link=link) for each in members]
    return pooling.pool(results, **settings)
