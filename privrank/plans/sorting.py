"""The noise of the sorts and draws that the papers' algorithms release, from public numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np

from privrank.plans.aggregation import plan_of
from privrank.plans.excess import unit_steps
from privrank.privacy.budget import pure_epsilon, split
from privrank.privacy.noise import DiscreteLaplace
from privrank.privacy.sensitivity import RankingSensitivity
from privrank.release.names import ORDER
from privrank.release.plan import PartPlan, Plan, Setting
from privrank.release.survey import Sample

__all__ = ["FALLBACK", "QUERIES", "hay_cap", "plan_sort", "query_cap"]

QUERIES, FALLBACK = "queries", "fallback"
"""Names of what a sort asks, and of the pairs that replace it if it is not finished."""

FALLBACK_SHARE = 0.05
"""Share of epsilon of the fallback; the paper's half makes the queries twice as noisy."""

LARGEST_EXPONENTIAL = 20
"""Items of the exponential mechanism, whose sampler holds 2^m numbers."""


def query_cap(m: int, failure: float) -> int:
    """Return a cap that KwikSort exceeds with probability at most `failure`, whatever the answers.

    At most m (m - 1) / 2, which is never exceeded.

    Notes
    -----
    **Statistic.** Fix the answers: a tournament on the items, as every pair is asked at most once.
    Dividing m items by a uniform pivot takes m - 1 queries and leaves two lists whose pivots are
    independent, of d and m - 1 - d items, d uniform among the scores of the tournament. Let G_m
    be the largest E exp(t queries) over tournaments on m items. By Landau's theorem their scores
    are majorised by 0, 1, ..., m - 1, the scores of a transitive one. So if
    d -> G_d G_(m-1-d) is convex, its mean is largest there (Karamata), and

        G_m <= exp(t (m - 1)) (1 / m) sum over d < m of G_d G_(m-1-d).

    Convexity at every size is checked for the t in use; a t without it is passed over. Markov's
    inequality gives P(queries > q) <= G_m exp(-t (q + 1)); the smallest q over a grid of t is
    returned.

    References
    ----------
    Landau (1953), https://doi.org/10.1007/BF02476378.
    """
    best = m * (m - 1) // 2
    for t in np.geomspace(0.1, 30.0, 60) / max(m, 2):
        log = _log_moments(m, float(t))
        if log is not None:
            cap = math.floor((log - math.log(failure)) / float(t) * (1 + 1e-12))
            best = min(best, max(cap, 0))
    return best


def _log_moments(items: int, t: float) -> float | None:
    """Return the bound on log G_m, or None where convexity fails."""
    log = np.zeros(items + 1)
    for m in range(2, items + 1):
        pieces = log[:m] + log[m - 1 :: -1]
        top = pieces.max()
        share = np.exp(pieces - top)
        if m > 2 and (share[:-2] + share[2:] - 2 * share[1:-1]).min() < 0:
            return None
        log[m] = t * (m - 1) + top + math.log(share.sum() / m)
    return float(log[items])


@cache
def _sort_cap(m: int) -> int:
    """Return a number of queries that a sort exceeds with probability at most m^-4."""
    return query_cap(m, m**-4.0)


def plan_sort(
    sample: Sample,
    epsilon: float,
    delta: float,
    method: str,
    *,
    partial: bool = False,
    declared: Mapping[str, Setting] | None = None,
) -> Plan:
    """Fix cap and scales of a sort, or the rate of ``"exponential"``, from public numbers."""
    m, steps, xi = len(sample.items), unit_steps(sample, partial), pure_epsilon(epsilon, delta)
    pairs = RankingSensitivity(m).pairs_l1
    parts = {ORDER: PartPlan(None, 0, xi)}
    settings: dict[str, Setting] = {"steps": steps, **(declared or {})}
    if method == "exponential":
        if m > LARGEST_EXPONENTIAL:
            raise ValueError(
                f"method='exponential' draws an order of at most {LARGEST_EXPONENTIAL} items, got "
                f"{m}: use method='auto'."
            )
        settings["rate"] = math.nextafter(xi, 0.0) / (2 * pairs * steps) * (1.0 - 1e-12)
        return plan_of("exponential mechanism", epsilon, delta, parts, settings)
    if method == "kwiksort-hay":
        settings["cap"] = q = hay_cap(m)
        parts[QUERIES] = PartPlan(DiscreteLaplace.calibrate(q * steps, xi), steps, xi)
        return plan_of("KwikSort with a random rest", epsilon, delta, parts, settings)
    settings["cap"] = q = min(_sort_cap(m), pairs)
    shares = {} if q == pairs else {FALLBACK: FALLBACK_SHARE}
    epsilons = split(xi, shares, QUERIES)
    for name, asked in ((QUERIES, q), (FALLBACK, pairs)):
        if name in epsilons:
            noise = DiscreteLaplace.calibrate(asked * steps, epsilons[name])
            parts[name] = PartPlan(noise, steps, epsilons[name])
    return plan_of("KwikSort", epsilon, delta, parts, settings)


def hay_cap(m: int) -> int:
    """Return the cap of Hay et al.: (m - 1) log2 m, rounded up, at most all pairs."""
    return min(m * (m - 1) // 2, math.ceil((m - 1) * math.log2(m)))
