"""What to do with rankings that have ties or gaps, by what they are for: the ends of messages."""

from __future__ import annotations

from typing import Literal

__all__ = ["Purpose", "remedy"]

Purpose = Literal["uniformity", "identity", "closeness", "consensus"]
"""A test of uniformity, one against another null, a comparison of groups, or a consensus."""

_RANDOM = {
    "ties": "break ties at random with privrank.as_rankings(frame, ties='random')",
    "gaps": "complete it at random with privrank.as_rankings(frame, missing=...)",
}

_DECLARED = {
    "ties": "declare that it may be so with PrivateRankAggregation(..., ties=True)",
    "gaps": "say what it means to be left out with PrivateRankAggregation(..., missing='bottom'), "
    "to be below the listed items, or missing='half', nothing",
}


def remedy(purpose: Purpose, fault: Literal["ties", "gaps"]) -> str:
    """Return advice that keeps what is promised: the level of a test, or the votes of a consensus.

    Notes
    -----
    **Validity.** Uniformly random orders are exact under a uniform null and under no other (the
    notes of :func:`privrank.as_rankings`). Rankings of any null may be completed by draws from it,
    given what was reported. Groups stay exchangeable whatever the completion, if both the rankings
    and what is left out of them have the same law in all groups.
    """
    if purpose == "consensus":
        return _DECLARED[fault]
    if purpose == "identity":
        return (
            "put each such ranking in an order drawn from the null among those that agree with "
            "it, because uniformly random orders keep the level under null='uniform' alone"
        )
    if purpose == "closeness":
        return f"where {fault} come about alike in all groups, and only there, {_RANDOM[fault]}"
    return f"{_RANDOM[fault]}, whose notes say when this keeps the level"
