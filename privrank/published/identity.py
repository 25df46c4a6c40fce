"""Null hypotheses of a test of identity, and what each method releases against them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.counts import count_orders
from privrank.hypotheses.nullmodel import NullModel, is_uniform
from privrank.hypotheses.statistic import RandomBit, Statistic
from privrank.mechanisms.samples import Reduction
from privrank.mechanisms.statistics import fit, impossible, mallowsnull
from privrank.mechanisms.statistics.binary import Alternative, binomial
from privrank.mechanisms.statistics.borda import borda_norm, plain_norm
from privrank.mechanisms.statistics.categories import MOST_ITEMS, omnibus_rankings, total_variation
from privrank.published import asz18
from privrank.release.survey import Sample

__all__ = ["IdentityMethod", "ask", "reduction"]

IdentityMethod = Literal[
    "auto",
    "tv",
    "omnibus",
    "max-count",
    "kernel",
    "distance",
    "paninski",
    "goldreich",
    "sigmoid",
    "binary",
]

IntArray = NDArray[np.int64]


def ask(
    method: str,
    null: NullModel,
    sample: Sample,
    *,
    xi: float,
    tolerance: float,
    alternative: Alternative,
) -> Statistic | RandomBit:
    """Return what `method` releases of such a sample against `null`.

    Parameters
    ----------
    method : str
        One of :data:`IdentityMethod`.
    null : NullModel
        The hypothesis.
    sample : Sample
        Public facts.
    xi : float
        Pure privacy budget.
    tolerance : float
        Total variation distance that a sigmoid bit shall detect.
    alternative : {"two-sided", "larger", "smaller"}
        Side of a test of two categories.

    Raises
    ------
    ValueError
        In one sentence, where the method does not apply.
    """
    n = sample.nobs
    table = _methods(null, sample)
    if method not in table:
        raise ValueError(
            f"method must be one of {', '.join(map(repr, table))} for {sample.kind} and this null, "
            f"got {method!r}."
        )
    if alternative != "two-sided" and method != "binary":
        raise ValueError(
            f"alternative= is for method='binary', two categories: leave it out for "
            f"method={method!r}."
        )
    p, k = null.probabilities, len(sample.items)
    if method == "sigmoid":
        if math.isinf(xi):
            raise ValueError(
                "method='sigmoid' releases a random bit, which needs a finite epsilon: use "
                "method='tv' for the non-private test."
            )
        if k == 2:
            return asz18.binary_bit(n, p[0], xi, tolerance)
        return asz18.sigmoid_bit(n, k, xi, tolerance)
    if method == "binary":
        return binomial(n, p[0], alternative)
    if sample.kind == "choices":
        builders = {
            "tv": fit.total_variation_from,
            "omnibus": fit.omnibus_choices_from,
            "max-count": fit.largest_excess,
        }
        if method == "paninski":
            return asz18.paninski(n, k)
        if method == "goldreich":
            return _counting(total_variation(n, asz18.CELLS * k), method, null, sample, xi)
        asked = builders["tv" if method == "auto" else method](n, p)
        return _counting(asked, method, null, sample, xi)
    if null.center:
        rankers = {
            "omnibus": mallowsnull.omnibus_mallows,
            "kernel": mallowsnull.clipped_kernel,
            "distance": mallowsnull.clipped_distance,
        }
        if method == "auto":
            method = "omnibus" if k <= mallowsnull.MOST_PAIRED else "distance"
        return rankers[method](n, null.model)
    if not p:
        if method == "omnibus":
            return omnibus_rankings(n, k)
        return plain_norm(n, k) if math.isinf(xi) else borda_norm(n, k)
    counted = fit.total_variation_from if method == "tv" else fit.omnibus_of_orders
    return _counting(counted(n, p), method, null, sample, xi)


def _counting(
    statistic: Statistic, method: str, null: NullModel, sample: Sample, xi: float
) -> Statistic:
    """Return a statistic of counts, of ranks if these are rankings, that sees what cannot be.

    With noise the methods that test against everything count impossible observations beside it.
    """
    p, rankings = null.probabilities, sample.kind == "rankings"
    found = statistic
    if null.rules_out and math.isinf(xi):
        watched = partial(_impossible_orders if rankings else impossible.count, p=p)
        found = replace(found, impossible=watched)
    elif null.rules_out and method in ("auto", "omnibus"):
        name = f"{'distance' if statistic.name.startswith('total') else 'omnibus'} with impossible"
        found = impossible.beside(found, sample.nobs, p, xi, f"{name} {sample.kind}")
    return fit.of_ranks(found) if rankings else found


def _impossible_orders(ranks: IntArray, p: tuple[float, ...]) -> int:
    return impossible.count(count_orders(ranks), p)


def reduction(method: str, null: NullModel) -> Reduction | None:
    """Return Goldreich's reduction to uniform choices, if it is asked."""
    return partial(asz18.random_reduction, null.probabilities) if method == "goldreich" else None


def _methods(null: NullModel, sample: Sample) -> tuple[str, ...]:
    if sample.kind == "rankings":
        if null.center:
            pairs = len(sample.items) <= mallowsnull.MOST_PAIRED
            return ("auto", "omnibus", "kernel", "distance") if pairs else ("auto", "distance")
        if not null.probabilities:
            return ("auto", "omnibus") if len(sample.items) <= MOST_ITEMS else ("auto",)
        return ("auto", "omnibus", "tv")
    if len(sample.items) == 2:
        return ("auto", "tv", "omnibus", "max-count", "goldreich", "binary", "sigmoid")
    uniform = ("paninski", "sigmoid") if is_uniform(null.probabilities) else ()
    return ("auto", "tv", "omnibus", "max-count", "goldreich", *uniform)
