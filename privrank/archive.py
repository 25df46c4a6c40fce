"""Archived results: rebuild a result from its JSON text."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from privrank import __version__, aggregation, btl, closeness, identity, pooling, topk, uniformity
from privrank.distributions.links import Link
from privrank.local.tally import Tally, check_protocol
from privrank.plans.choice import check_perturbation
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
    """Rebuild a result or a tally of local reports from its JSON text.

    The text is written by ``to_json()``. Inference runs again on the archived release, which
    contains everything that the inference used. This has no additional privacy cost.

    Parameters
    ----------
    text : str
        JSON text of a result, or of a tally.
    link : Link, optional
        The user-defined link of the archived model, if it has one; an archive stores only its
        name.

    Returns
    -------
    A result, or a tally, of the same class and with the same numbers

    Raises
    ------
    TypeError, ValueError
        If the text is not an archived result or tally, was changed, or was written by a later
        version; or if it needs a `link` that is not given.

    See Also
    --------
    privrank.Release.from_json : Rebuild a release alone.
    privrank.local.Tally : Counts of local reports, which can be added.

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
    if "protocol" in record:  # only tallies have this member
        return Tally.from_json(text)
    _check_version(record.get("privrank"))
    members: Any = record.get("results") if isinstance(record.get("results"), list) else []
    settings = record.get("settings", {})
    pooled: list[Any] = [from_json(json.dumps(member), link=link) for member in members]
    if not pooled:
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
        if again["privrank"] != record["privrank"]:  # another version may estimate differently
            passed.add("estimates")
        same = all(_same(again[name], record[name]) for name in again.keys() - passed)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError):
        same = False
    if not same:
        known = record.get("result") in [*_REBUILD, "PooledResult"]
        raise ValueError(
            f"text must be JSON that to_json() wrote, but this one is no "
            f"{record['result'] if known else 'result'} of its release and settings. Use the text "
            f"as it was written."
        )
    return result


def _check_version(written: object) -> None:
    """Refuse the text of a later version, whose format may be unknown."""
    major_minor = [
        [int(number) for number in re.findall(r"\d+", str(version)[:20])[:2]]
        for version in (written, __version__)
    ]
    if major_minor[0] > major_minor[1]:
        later = " ".join(str(written)[:20].split())
        raise ValueError(
            f"text was written by privrank {later}, but this is version {__version__}. Read it "
            f"with privrank {later} or later."
        )


def _same(value: Any, other: Any) -> bool:
    """Whether two records agree, numbers up to floating-point error."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_same(value[k], other[k]) for k in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_same, value, other))
    # the last digits of floating-point sums differ between processors
    if is_number(value) and is_number(other):
        return math.isclose(value, other, rel_tol=1e-5, abs_tol=1e-8)
    return bool(type(value) is type(other) and value == other)
