"""What a rank aggregation is going to release, fixed from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

from privrank.budget import pure_epsilon, split
from privrank.consensus.pivoting import hay_cap, query_cap
from privrank.consensus.rules import Rule
from privrank.design import Sample
from privrank.gaussian import lattice_scale
from privrank.noise import DiscreteGaussian, DiscreteLaplace
from privrank.ranknoise import CubeNoise, PermutohedronNoise
from privrank.release import PAIRS, SCORE, TOTALS, Law, Release
from privrank.sensitivity import RankingReach

__all__ = [
    "LARGEST_SHARE",
    "LEAST_SHARE",
    "AggregationMethod",
    "RankPlan",
    "cautions",
    "cube_sd",
    "gaussian_sd",
    "plan_aggregation",
    "predicted_excess",
    "remedy",
    "unit_steps",
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

Sorting = Literal["KwikSort", "KwikSort with a random rest", "exponential mechanism"]

LARGEST_SD = 0.012
"""Noise per pair fraction up to which `auto` releases pairs at delta = 0, and not Borda totals."""

SCORE_SHARE, LEAST_SHARE, LARGEST_SHARE = 0.10, 0.05, 0.50
"""Share of the Kemeny score: the default, and the bounds."""

FALLBACK_SHARE = 0.05
"""Share of epsilon of the release that replaces an unfinished KwikSort."""

LARGEST_ROWS = 10
"""Rankings per respondent: their weights are whole numbers of 1 / lcm(1..max_rows), 1 / 2520."""

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
        Law of a score with a draw of its own.
    thinning : DiscreteGaussian or None
        Law of the noise that divides Gaussian counts into two independent parts, for the order
        and for its score.
    score_epsilon : float
        What a score with a draw of its own spends.
    cap : int
        Most queries of a sort.
    fallback : DiscreteLaplace or None
        Law of the pairs that replace an unfinished sort.
    rate : float
        Of the exponential mechanism, per lattice step of the score.
    """

    releases: Literal["pairs", "Borda totals", "order"]
    rule: Rule | Sorting
    steps: int
    law: Law
    epsilon: float
    share: float = 0.0
    score: DiscreteLaplace | None = None
    thinning: DiscreteGaussian | None = None
    score_epsilon: float = 0.0
    cap: int = 0
    fallback: DiscreteLaplace | None = None
    rate: float = 0.0

    @property
    def mechanism(self) -> str:
        """What is released, as a summary prints it."""
        if self.releases == "order":
            return self.rule
        noun = "pair counts" if self.releases == PAIRS else "Borda totals"
        return f"{noun}, {self.rule}"


def unit_steps(sample: Sample, partial: bool = False) -> int:
    """Return the lattice steps of one unit: lcm(1..max_rows) for respondents, 1 for rows.

    Twice as many if rankings may be partial, as half votes are whole numbers of them.
    """
    halves = 2 if partial else 1
    if sample.unit == "row":
        return halves
    if sample.max_rows > LARGEST_ROWS:
        raise ValueError(
            f"max_rows must be at most {LARGEST_ROWS} for rank aggregation, got "
            f"{sample.max_rows}: average over fewer rankings of each respondent, drawn at random."
        )
    return halves * math.lcm(*range(1, sample.max_rows + 1))


def cube_sd(items: int, epsilon: float) -> float:
    """Return the nominal sd of cube noise in a pair count, in units."""
    pairs = RankingReach(items).pairs_l1
    return math.sqrt((pairs + 1) * (pairs + 2) / 3) / epsilon


@cache
def gaussian_sd(items: int, epsilon: float, delta: float, steps: int = 1) -> float:
    """Return the sd of discrete Gaussian noise in a pair count, in units; inf without delta."""
    if delta == 0.0:
        return math.inf
    return lattice_scale(epsilon, delta, RankingReach(items).pairs_l1, steps) / steps


def plan_aggregation(
    sample: Sample,
    epsilon: float,
    delta: float,
    method: AggregationMethod,
    share: float | None,
    *,
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
    share : float or None
        Share of the Kemeny score; None for the default: 10 % where pairs are released.
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
    **Statistic.** With delta > 0 `auto` takes whichever has less noise, Gaussian or cube, and
    shrinks the pairs before ordering them (EB-Kemeny). With delta = 0 it does so with cube noise
    while the noise per fraction has a standard deviation of at most 0.012, and takes Borda totals
    beyond: their noise grows like m rather than m^2, but they say nothing about pairs.
    """
    steps, xi = unit_steps(sample, partial), pure_epsilon(epsilon, delta)
    m = len(sample.items)
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
    if method == "auto" and delta == 0.0:
        asked = SCORE_SHARE if share is None else share
        sd = cube_sd(m, epsilon * (1.0 - asked)) / sample.nobs
        method = "auto" if sd <= LARGEST_SD else "borda"
    kept = (0.0 if method == "borda" else SCORE_SHARE) if share is None else share
    main = TOTALS if method == "borda" else PAIRS
    epsilons = split(xi, {SCORE: kept} if kept else {}, main)
    score = DiscreteLaplace.calibrate(pairs * steps, epsilons[SCORE]) if kept else None
    spends = (epsilons[main], kept, score, None, epsilons.get(SCORE, 0.0))
    if method == "borda":
        totals = PermutohedronNoise.calibrate(m, epsilons[main], steps)
        return RankPlan("Borda totals", "Borda", steps, totals, *spends)
    rule: Rule = "EB-Kemeny" if method == "auto" else "Kemeny"
    if method == "pairs-laplace":
        law: Law = DiscreteLaplace.calibrate(pairs * steps, epsilons[main])
        return RankPlan("pairs", rule, steps, law, *spends)
    gaussian = gaussian_sd(m, epsilon, delta, steps)
    if gaussian / math.sqrt(1.0 - kept) < cube_sd(m, epsilons[main]):
        scale = gaussian * steps
        extra = DiscreteGaussian(scale * math.sqrt(kept / (1.0 - kept))) if kept else None
        return RankPlan("pairs", rule, steps, DiscreteGaussian(scale), epsilon, kept, None, extra)
    cube = CubeNoise.calibrate(pairs, steps, epsilons[main])
    return RankPlan("pairs", rule, steps, cube, *spends)


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
    nothing = DiscreteLaplace(0.0)
    spends = (math.inf, SCORE_SHARE, nothing, None, math.inf)
    return RankPlan("pairs", rules[method], steps, nothing, *spends)


def predicted_excess(release: Release) -> float | None:
    """Return a rough prediction of the disagreements beyond the least, as a share of all pairs.

    From public numbers; None for what releases an order alone. A majority of 1/2 + d is turned
    with probability Phi(-d / s), s the noise, at a loss of 2 d: at most 0.34 s per pair. Where
    items have scores, orders that average over their pairs lose sqrt(2 / m) of it. Borda totals
    lose about m / (4 epsilon n). Simulated losses were mostly smaller.
    """
    m, n = len(release.sample.items), release.sample.nobs
    if math.isinf(release.epsilon):
        return None
    if PAIRS in release.parts:
        loss = 0.34 * math.sqrt(release.parts[PAIRS].noise_variance) / n
        return loss * math.sqrt(2.0 / m) if "EB" in release.mechanism else loss
    if TOTALS in release.parts:
        return 0.25 * m / (release.parts[TOTALS].epsilon * n)
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
    m, n = len(release.sample.items), release.sample.nobs
    if release.delta > 0.0:
        return ""
    sd = min(
        cube_sd(m, release.epsilon * (1.0 - SCORE_SHARE)),
        gaussian_sd(m, release.epsilon, SMALL_DELTA) / math.sqrt(1.0 - SCORE_SHARE),
    )
    less = 0.34 * sd / n * math.sqrt(2.0 / m)
    return f", or method='auto' with delta = {SMALL_DELTA:g}" if less < 0.9 * excess else ""


def remedy(release: Release) -> str:
    """Return what would make statements about pairs possible, from public numbers alone."""
    m, n = len(release.sample.items), release.sample.nobs
    cube = cube_sd(m, release.epsilon * (1.0 - SCORE_SHARE))
    gaussian = gaussian_sd(m, release.epsilon, release.delta or SMALL_DELTA)
    gaussian /= math.sqrt(1.0 - SCORE_SHARE)
    words = "Borda totals say nothing about single pairs. Pair fractions are released with "
    least = f"{min(cube, gaussian) / n:.2g}"
    if release.delta > 0.0:
        return f"{words}method='auto' (noise of standard deviation {least})."
    needed = math.ceil(cube / LARGEST_SD)
    return (
        f"{words}delta = {SMALL_DELTA:g} (noise of standard deviation {least}), with "
        f"method='kemeny' ({cube / n:.2g}), or from {needed} {release.sample.unit}s on."
    )
