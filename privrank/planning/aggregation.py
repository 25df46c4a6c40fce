"""What a rank aggregation is going to release, fixed from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

from privrank.consensus.pivoting import hay_cap, query_cap
from privrank.consensus.rankintervals import difference_variance
from privrank.consensus.rules import Rule
from privrank.planning.excess import (
    PAIR_KINDS,
    Kind,
    choose,
    excess_of,
    predicted_excesses,
    totals_scale,
    unit_steps,
)
from privrank.privacy.budget import pure_epsilon, split
from privrank.privacy.gaussian import lattice_scale
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.privacy.sensitivity import RankingReach
from privrank.release.release import PAIRS, SCORE, TOTALS, Law, Release
from privrank.release.survey import Sample

__all__ = [
    "LARGEST_SHARE",
    "LEAST_SHARE",
    "AggregationMethod",
    "RankPlan",
    "Releases",
    "cautions",
    "plan_aggregation",
    "predicted_excess",
    "remedy",
]

AggregationMethod = Literal[
    "auto",
    "kemeny",
    "borda",
    "pairs-laplace",
    "kwiksort",
    "kwiksort-hay",
    "exponential",
    "copeland",
    "local-search",
]

Releases = Literal["auto", "pairs"]
Sorting = Literal["KwikSort", "KwikSort with a random rest", "exponential mechanism"]
_KINDS: dict[str, tuple[Kind, ...]] = {
    "auto": (*PAIR_KINDS, "K-norm totals", "Gaussian totals"),
    "kemeny": PAIR_KINDS,
    "borda": ("K-norm totals", "Gaussian totals"),
}
"""What each method may release."""

LEAST_SHARE, LARGEST_SHARE = 0.05, 0.50
"""Bounds of the share of the Kemeny score, where it is asked for."""

FALLBACK_SHARE = 0.05
"""Share of epsilon of the release that replaces an unfinished KwikSort."""

LARGEST_EXCESS = 0.01
"""Predicted disagreements beyond the least, as a share of pairs, from which on a fit warns."""

SMALL_DELTA = 1e-6
"""Delta that the advice to use one supposes."""

LARGEST_EXPONENTIAL = 20
"""Items of the exponential mechanism, whose sampler holds 2^m numbers."""


@dataclass(frozen=True, slots=True)
class RankPlan:
    """What a fit releases, and by which laws.

    Parameters
    ----------
    releases : {"pairs", "Borda totals", "order"}
        The main release.
    rule : str
        How the order is found, in noisy numbers or by a mechanism that releases nothing else.
    steps : int
        Lattice steps of one unit: each ranking of a respondent with k of them weighs steps / k.
    law : Law
        Of the noise in the main release, or in the queries of a sort.
    epsilon : float
        What the main release spends.
    share : float
        Share of the Kemeny score; 0 for none.
    score : DiscreteLaplace or None
        Law of the score.
    score_epsilon : float
        What the score spends.
    cap : int
        Most queries of a sort.
    fallback : DiscreteLaplace or None
        Law of the pairs that replace an unfinished sort.
    rate : float
        Of the exponential mechanism, per lattice step of the score.
    fineness : int
        Lattice steps of the noise in Borda totals within one step of the totals.
    """

    releases: Literal["pairs", "Borda totals", "order"]
    rule: Rule | Sorting
    steps: int
    law: Law
    epsilon: float
    share: float = 0.0
    score: DiscreteLaplace | None = None
    score_epsilon: float = 0.0
    cap: int = 0
    fallback: DiscreteLaplace | None = None
    rate: float = 0.0
    fineness: int = 1

    @property
    def mechanism(self) -> str:
        """What is released, as a summary prints it."""
        if self.releases == "order":
            return self.rule
        noun = "pair counts" if self.releases == PAIRS else "Borda totals"
        return f"{noun}, {self.rule}"


def plan_aggregation(
    sample: Sample,
    epsilon: float,
    delta: float,
    method: AggregationMethod,
    share: float = 0.0,
    *,
    releases: Releases = "auto",
    partial: bool = False,
) -> RankPlan:
    """Fix what is released from public numbers.

    Parameters
    ----------
    sample : Sample
        Public facts of the rankings.
    epsilon, delta : float
        The guarantee.
    method : str
        The method asked for.
    share : float, default 0
        Share of the Kemeny score.
    releases : {"auto", "pairs"}
        ``"pairs"`` keeps `auto` to releases that say something about single pairs.
    partial : bool, default False
        Whether rankings may have ties and missing items.

    Returns
    -------
    RankPlan

    Raises
    ------
    ValueError
        If the method cannot be had with these numbers.

    Notes
    -----
    **Statistic.** `auto` takes the release with the least :func:`predicted_excesses`. A larger
    epsilon or delta makes none of them larger, as a release without delta remains one with delta:
    so it cannot lead to a worse one, by this prediction. Where they tie pairs are released, which
    say more, and whose Kemeny order is right where majorities are not those of scores.
    """
    steps, xi = unit_steps(sample, partial), pure_epsilon(epsilon, delta)
    m = len(sample.items)
    if releases == "pairs" and method in ("borda", "kwiksort", "kwiksort-hay", "exponential"):
        raise ValueError(
            f"method={method!r} releases no pairs: leave out releases='pairs', or use "
            f"method='auto'."
        )
    if method in ("kwiksort", "kwiksort-hay", "exponential") and not math.isinf(epsilon):
        if share:
            raise ValueError(
                f"method={method!r} releases an order and nothing else: leave out score_share, or "
                f"use method='auto'."
            )
        return _plan_order(m, steps, xi, method)
    if math.isinf(epsilon):
        return _plan_plain(m, steps, method)
    if method in ("copeland", "local-search"):
        raise ValueError(
            f"method={method!r} is for the non-private run, epsilon=numpy.inf: use method='auto'."
        )
    pairs = RankingReach(m).pairs_l1
    if method == "pairs-laplace":
        kind: Kind | None = None
    else:
        kinds = PAIR_KINDS if releases == "pairs" else _KINDS[method]
        excesses = predicted_excesses(sample, epsilon, delta, share)
        kind = choose(kinds, excesses)
    rule: Rule = "EB-Kemeny" if method == "auto" else "Kemeny"
    # the score is pure, and delta all of Gaussian noise, whose epsilon is therefore not raised
    main = PAIRS if kind is None or kind in PAIR_KINDS else TOTALS
    whole = epsilon if kind in ("Gaussian pairs", "Gaussian totals") else xi
    epsilons = split(whole, {SCORE: share} if share else {}, main)
    score = DiscreteLaplace.calibrate(pairs * steps, epsilons[SCORE]) if share else None
    spends = (epsilons[main], share, score, epsilons.get(SCORE, 0.0))
    if kind == "Gaussian totals":
        scale, fineness = totals_scale(m, epsilons[main], delta, steps)
        totals = DiscreteGaussian(scale)
        return RankPlan("Borda totals", "Borda", steps, totals, *spends, fineness=fineness)
    if kind == "K-norm totals":
        body = PermutohedronNoise.calibrate(m, epsilons[main], steps)
        return RankPlan("Borda totals", "Borda", steps, body, *spends, fineness=body.fineness)
    law: Law
    if kind == "Gaussian pairs":
        law = DiscreteGaussian(_pairs_scale(epsilons[main], delta, pairs, steps))
    elif kind == "cube pairs":
        law = CubeNoise.calibrate(pairs, steps, epsilons[main])
    else:
        law = DiscreteLaplace.calibrate(pairs * steps, epsilons[main])
    return RankPlan("pairs", rule, steps, law, *spends)


@cache
def _pairs_scale(epsilon: float, delta: float, pairs: int, steps: int) -> float:
    return lattice_scale(epsilon, delta, pairs, steps)


def _plan_order(m: int, steps: int, xi: float, method: AggregationMethod) -> RankPlan:
    """Plan what releases an order alone; whole counts move by `steps` when a unit is replaced."""
    pairs = RankingReach(m).pairs_l1
    nothing = DiscreteLaplace(0.0)
    if method == "exponential":
        if m > LARGEST_EXPONENTIAL:
            raise ValueError(
                f"method='exponential' draws an order of at most {LARGEST_EXPONENTIAL} items, got "
                f"{m}: use method='auto'."
            )
        rate = math.nextafter(xi, 0.0) / (2 * pairs * steps) * (1.0 - 1e-12)
        return RankPlan("order", "exponential mechanism", steps, nothing, xi, rate=rate)
    if method == "kwiksort-hay":
        cap = hay_cap(m)
        law = DiscreteLaplace.calibrate(cap * steps, xi)
        return RankPlan("order", "KwikSort with a random rest", steps, law, xi, cap=cap)
    cap = _sort_cap(m)
    if cap >= pairs:
        law = DiscreteLaplace.calibrate(pairs * steps, xi)
        return RankPlan("order", "KwikSort", steps, law, xi, cap=pairs)
    epsilons = split(xi, {"fallback": FALLBACK_SHARE}, "queries")
    law = DiscreteLaplace.calibrate(cap * steps, epsilons["queries"])
    fallback = DiscreteLaplace.calibrate(pairs * steps, epsilons["fallback"])
    return RankPlan("order", "KwikSort", steps, law, xi, cap=cap, fallback=fallback)


@cache
def _sort_cap(m: int) -> int:
    """Return a number of queries that a sort exceeds with probability at most m^-4."""
    return query_cap(m, m**-4.0)


def _plan_plain(m: int, steps: int, method: AggregationMethod) -> RankPlan:
    """Plan the non-private run: exact pair counts, and the order asked for."""
    rules: dict[str, Rule] = {
        "auto": "Kemeny",
        "kemeny": "Kemeny",
        "borda": "Borda",
        "copeland": "Copeland",
        "local-search": "local search",
        "kwiksort": "KwikSort",
    }
    if method not in rules:
        raise ValueError(
            f"method={method!r} adds noise and needs a finite epsilon: use method='kemeny' for the "
            f"non-private run."
        )
    # the score costs nothing here
    nothing = DiscreteLaplace(0.0)
    spends = (math.inf, 0.0, nothing, math.inf)
    return RankPlan("pairs", rules[method], steps, nothing, *spends)


def predicted_excess(release: Release) -> float | None:
    """Return the predicted disagreements beyond the least, as a share of all pairs.

    From public numbers, as in :func:`predicted_excesses`; None without noise, and for what releases
    an order alone. Kemeny's order of pairs that are not shrunken follows the noise of each pair.
    """
    if math.isinf(release.epsilon):
        return None
    sample = release.sample
    for name in (PAIRS, TOTALS):
        part = release.parts.get(name)
        if part is None:
            continue
        if name == PAIRS and "EB" not in release.mechanism:
            return 0.34 * math.sqrt(part.noise_variance) / sample.nobs
        assert isinstance(
            part.law, DiscreteLaplace | DiscreteGaussian | CubeNoise | PermutohedronNoise
        )
        variance = difference_variance(part.law, len(sample.items), name == PAIRS)
        return excess_of(part.step**2 * variance, sample)
    return None


def cautions(release: Release) -> tuple[str, ...]:
    """Return what to be warned of, from public numbers alone.

    Notes
    -----
    **Privacy.** Take m! unanimous data sets, one per order. A pure mechanism that finds the order
    of each with probability above 1/2 gives, on any one of them, each of the others at least
    exp(-epsilon n) / 2: so epsilon n must be at least about log m! (packing).
    """
    m, n, epsilon = len(release.sample.items), release.sample.nobs, release.epsilon
    if math.isinf(epsilon):
        return ()
    found = []
    if release.delta == 0.0 and epsilon * n < math.lgamma(m + 1):
        found.append(
            f"Too few {release.sample.unit}s: epsilon times their number is {epsilon * n:.3g}, and "
            f"below {math.lgamma(m + 1):.3g} (the logarithm of {m}!) no pure epsilon-private "
            f"method can find the order of {m} items."
        )
    excess = predicted_excess(release)
    if excess is not None and excess > LARGEST_EXCESS:
        found.append(
            f"Low accuracy: the order may disagree with the rankings on {min(excess, 0.5):.1%} "
            f"more of all pairs than the best order does; more {release.sample.unit}s or a larger "
            f"epsilon would help{_delta_helps(release, excess)}."
        )
    return tuple(found)


def _delta_helps(release: Release, excess: float) -> str:
    """Return the advice to allow a delta, where the default would then lose clearly less."""
    if release.delta > 0.0:
        return ""
    less = min(predicted_excesses(release.sample, release.epsilon, SMALL_DELTA).values())
    return f", or method='auto' with delta = {SMALL_DELTA:g}" if less < 0.9 * excess else ""


def remedy(release: Release) -> str:
    """Return what would make statements about pairs possible, from public numbers alone."""
    epsilon, delta = release.epsilon, release.delta
    sds = [_pair_sd(release.sample, epsilon, delta), _pair_sd(release.sample, epsilon, SMALL_DELTA)]
    words = (
        f"Borda totals say nothing about the majorities of pairs; releases='pairs' releases their "
        f"fractions, with noise of standard deviation {sds[0]:.2g} each"
    )
    helps = delta == 0.0 and sds[1] < 0.9 * sds[0]
    return words + (f" ({sds[1]:.2g} with delta = {SMALL_DELTA:g})." if helps else ".")


def _pair_sd(sample: Sample, epsilon: float, delta: float) -> float:
    """Return the least standard deviation of the noise in a pair fraction."""
    excesses = predicted_excesses(sample, epsilon, delta)
    least = min(excesses[kind] for kind in PAIR_KINDS)
    return least / 0.34 * math.sqrt(0.5 * len(sample.items))
