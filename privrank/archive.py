"""Archived results: JSON text back to the same result."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from privrank import __version__, aggregation, btl, closeness, identity, pooling, topk, uniformity
from privrank.distributions.links import Link
from privrank.local.tally import Tally, check_protocol
from privrank.plans.calibration import check_perturbation
from privrank.release.archived import read_archive
from privrank.release.names import WORTHS
from privrank.release.release import Release
from privrank.results.base import Result
from privrank.results.pooled import PooledResult
from privrank.util.checks import is_number

_REBUILD = {
    "AggregationResult": aggregation.PrivateRankAggregation.from_release,
    "BTLResult": btl.infer,
    "ClosenessResult": closeness.ClosenessTest.from_release,
    "IdentityTest": identity.infer_identity,
    "TopKResult": topk.infer_topk,
    "UniformityTest": uniformity.infer_uniformity,
}


def from_json(text: str, *, link: Link | None = None) -> Result | PooledResult | Tally:
    """Rebuild the result, or the tally of local reports, that ``to_json()`` wrote.

    Inference runs again on the archived release, which holds all it ever saw; no budget is spent.

    Parameters
    ----------
    text : str
        JSON text of a result, or of a tally.
    link : Link, optional
        The link of a model fitted with one of your own, of which an archive holds the name only.

    Returns
    -------
    A result, or a tally, of the same class and numbers

    Raises
    ------
    TypeError, ValueError
        If the text is no archived result or tally, or was changed, or is one of a later version; if
        its link is not given.

    See Also
    --------
    privrank.Release.from_json : Reads a release alone.
    privrank.local.Tally : Counts local reports, and adds up.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> test = pr.UniformityTest.from_counts({"yes": 61, "no": 37}, categories=["yes", "no"])
    >>> result = test.fit(epsilon=1.0, rng=np.random.default_rng(1))
    >>> pr.from_json(result.to_json()).pvalue == result.pvalue
    True
    """
    record = read_archive(text)
    if "protocol" in record:  # a member of tallies alone
        return Tally.from_json(text)
    _check_version(record.get("privrank"))
    members = record.get("results")
    settings = record.get("settings", {})
    pooled: list[Any] = []
    if members and isinstance(members, list):
        pooled = [from_json(json.dumps(member), link=link) for member in members]
    else:
        release = Release.verified(record.get("release"), link)
    passed = {"privrank", "check", "results"}
    try:
        if pooled:
            result: Result | PooledResult = pooling.pool(pooled, **settings)
        else:
            result = _REBUILD[record["result"]](release, **settings)  # type: ignore[operator]
            if WORTHS in release.values:
                check_perturbation(release)
            if release.local:
                check_protocol(release)
        again = json.loads(result.to_json())
        if again["privrank"] != record["privrank"]:  # another version may estimate otherwise
            passed.add("estimates")
        same = all(_same(again[name], record[name]) for name in again.keys() - passed)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError):
        same = False
    if not same:
        kind = record.get("result")
        kind = kind if kind in [*_REBUILD, "PooledResult"] else "result"
        raise ValueError(
            f"text must be JSON that to_json() wrote, and this one is no {kind} of its release "
            "and settings. Pass the text as it was written."
        )
    return result


def _check_version(written: object) -> None:
    """Refuse what a later version wrote, which may hold what this one does not know."""
    major_minor = [
        [int(number) for number in re.findall(r"\d+", str(version)[:20])[:2]]
        for version in (written, __version__)
    ]
    if major_minor[0] > major_minor[1]:
        later = " ".join(str(written)[:20].split())
        raise ValueError(
            f"text was written by privrank {later}, and this is {__version__}: read it with "
            f"privrank {later} or later."
        )


def _same(value: Any, other: Any) -> bool:
    """Whether two records say the same, numbers up to what other processors add otherwise."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_same(value[k], other[k]) for k in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_same, value, other))
    # sums of floats differ in their last digits between processors
    if is_number(value) and is_number(other):
        return math.isclose(value, other, rel_tol=1e-5, abs_tol=1e-8)
    return bool(type(value) is type(other) and value == other)
