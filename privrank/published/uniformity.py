"""What each method of a test of uniformity releases, and what to say about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.mechanisms.statistics import categories, concordance, pairs
from privrank.mechanisms.statistics.borda import borda_norm, plain_norm
from privrank.mechanisms.statistics.categories import MOST_ITEMS
from privrank.published.bfz21 import Buckets, Ramp
from privrank.release.survey import Sample

__all__ = [
    "Asked",
    "UniformityMethod",
    "ask",
    "asked_of",
    "remarks",
]

UniformityMethod = Literal[
    "auto",
    "pairs",
    "laplace",
    "two-sample",
    "mallows",
    "truncated",
    "bucket",
    "omnibus",
    "tv",
    "max-count",
]

TRUNCATED, BUCKET = "coin and ramp", "coin and buckets"

Asked = Statistic | RandomBit
Build = Callable[[int, int], Statistic]

_RANKINGS: dict[str, Build] = {
    "auto": borda_norm,
    "pairs": pairs.pair_norm,
    "laplace": pairs.pair_squares,
    "two-sample": lambda n, m: concordance.two_rankings(m),
    "mallows": concordance.central_distance,
    "omnibus": categories.omnibus_rankings,
}
_CHOICES: dict[str, Build] = {
    "auto": categories.omnibus_choices,
    "omnibus": categories.omnibus_choices,
    "tv": categories.total_variation,
    "max-count": categories.max_count,
}
_BITS = {"truncated": TRUNCATED, "bucket": BUCKET}


def ask(
    method: str, sample: Sample, *, xi: float, alpha: float, tolerance: float | None
) -> tuple[Asked, dict[str, float]]:
    """Return what `method` releases of such a sample, and its public constants.

    Parameters
    ----------
    method : str
        One of :data:`UniformityMethod`.
    sample : Sample
        Public facts.
    xi : float
        Pure privacy budget; infinite when nothing is protected.
    alpha : float
        Level, at which one-bit methods are drawn.
    tolerance : float or None
        Total variation distance at which a published guarantee is asked for.

    Returns
    -------
    Statistic or RandomBit, and a mapping of str to float

    Raises
    ------
    ValueError
        In one sentence, where the method does not apply to these data.
    """
    n, m = sample.nobs, len(sample.items)
    _check(method, sample, xi == float("inf"))
    if tolerance is not None and method not in ("truncated", "two-sample"):
        raise ValueError(
            f"tolerance= is for method='truncated' and 'two-sample', whose guarantee depends on "
            f"it: leave it out for method={method!r}."
        )
    if method == "truncated":
        ramp = Ramp.design(n, m, xi, alpha, tolerance)
        return _ramp(ramp), {"level": alpha, "bias": ramp.mu}
    if method == "bucket":
        buckets = Buckets.design(n, m, xi, alpha)
        return _buckets(buckets), {"level": alpha, "buckets": float(buckets.count)}
    if method == "two-sample":
        least = concordance.two_rankings_tolerance(m, alpha)
        if least is None or (tolerance is not None and tolerance < least):
            bound = "at no tolerance" if least is None else f"from tolerance {least:.4g} on"
            raise ValueError(
                f"method='two-sample' has its guarantee for {m} items at level {alpha:g} {bound}: "
                f"use method='auto' or more rankings."
            )
        return concordance.two_rankings(m), {"tolerance": least}
    return _build(method, sample, private=xi < float("inf"))(n, m), {}


def asked_of(mechanism: str, sample: Sample, constants: Mapping[str, Any]) -> tuple[Asked, str]:
    """Return what a release of this name holds, and the method that releases it.

    Raises
    ------
    ValueError
        If it is no release of a test of uniformity.
    """
    n, m = sample.nobs, len(sample.items)
    if mechanism == TRUNCATED:
        return _ramp(Ramp(n, m, constants["level"], constants["bias"])), "truncated"
    if mechanism == BUCKET:
        count = int(constants["buckets"])
        return _buckets(Buckets(n, m, constants["level"], count)), "bucket"
    table = _CHOICES if sample.kind == "choices" else {**_RANKINGS, "plain": plain_norm}
    for method, build in table.items():
        if method == "omnibus" and sample.kind == "rankings" and m > MOST_ITEMS:
            continue
        asked = build(n, m)
        if asked.name == mechanism:
            return asked, "auto" if method == "plain" else method
    raise ValueError("release must be of a UniformityTest, and this one is of another model.")


def remarks(asked: Asked, sample: Sample) -> tuple[str, ...]:
    """Return what a summary says about what the statistic cannot see."""
    if sample.kind == "choices":
        return ()
    if asked.name == "Borda norm":
        more = " (method='omnibus' sees them)" if len(sample.items) <= MOST_ITEMS else ""
        return (
            f"The statistic sees consensus through mean ranks: mixtures of opposite rankings whose "
            f"mean ranks are equal are invisible to it{more}.",
        )
    if "pair" in asked.name or isinstance(asked, RandomBit):
        return ("The statistic sees consensus on the order of disjoint random pairs of items.",)
    return ()


def _check(method: str, sample: Sample, nonprivate: bool) -> None:
    known = (*_CHOICES,) if sample.kind == "choices" else (*_RANKINGS, *_BITS)
    if method not in known:
        raise ValueError(
            f"method must be one of {', '.join(map(repr, known))} for {sample.kind}, "
            f"got {method!r}."
        )
    if method == "two-sample" and sample.nobs != 2:
        raise ValueError(
            f"method='two-sample' compares exactly two rankings, and there are {sample.nobs}: use "
            f"method='auto' or 'pairs'."
        )
    if method == "omnibus" and sample.kind == "rankings" and len(sample.items) > MOST_ITEMS:
        raise ValueError(
            f"method='omnibus' counts all m! orders, so it takes at most {MOST_ITEMS} items, "
            f"got {len(sample.items)}: use method='auto'."
        )
    if method in _BITS and nonprivate:
        raise ValueError(
            f"method={method!r} releases a random bit, which needs a finite epsilon: use "
            f"method='pairs' for the non-private test."
        )


def _build(method: str, sample: Sample, *, private: bool) -> Build:
    """Return the statistic of a method; without noise the plain norm is Friedman's test.

    Without noise the sum of squares orders samples as the pair norm does, on a finer scale.
    """
    if sample.kind == "choices":
        return _CHOICES[method]
    if private:
        return _RANKINGS[method]
    return {"auto": plain_norm, "pairs": pairs.pair_squares}.get(method) or _RANKINGS[method]


def _ramp(ramp: Ramp) -> RandomBit:
    return RandomBit(TRUNCATED, ramp.reject_probability)


def _buckets(buckets: Buckets) -> RandomBit:
    return RandomBit(BUCKET, buckets.reject_probability, dealt=True)
