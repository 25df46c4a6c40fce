"""What a rank aggregation is going to release, fixed from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Literal

import numpy as np

from privrank.consensus.rules import Rule
from privrank.hypotheses.tails import difference_variance
from privrank.plans.excess import (
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
from privrank.privacy.sensitivity import RankingSensitivity
from privrank.release.names import COVARIANCE, ORDER, PAIRS, SCORE, TOTALS
from privrank.release.plan import QUIET, Noise, PartPlan, Plan, Setting
from privrank.release.release import Release
from privrank.release.survey import Sample

__all__ = [
    "LARGEST_SHARE",
    "LEAST_SHARE",
    "AggregationMethod",
    "Releases",
    "cautions",
    "plan_aggregation",
    "plan_of",
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
_KINDS: dict[str, tuple[Kind, ...]] = {
    "auto": (*PAIR_KINDS, "K-norm totals", "Gaussian totals"),
    "kemeny": PAIR_KINDS,
    "borda": ("K-norm totals", "Gaussian totals"),
    "pairs-laplace": ("Laplace pairs",),
}
"""What each method may release."""

LEAST_SHARE, LARGEST_SHARE = 0.05, 0.50
"""Bounds of the share of the Kemeny score, where it is asked for."""

LARGEST_EXCESS = 0.01
"""Predicted disagreements beyond the least, as a share of pairs, from which on a fit warns."""

SMALL_DELTA = 1e-6
"""Delta that the advice to use one supposes."""


def plan_aggregation(
    sample: Sample,
    epsilon: float,
    delta: float,
    method: AggregationMethod,
    share: float = 0.0,
    *,
    releases: Releases = "auto",
    partial: bool = False,
    declared: Mapping[str, Setting] | None = None,
) -> Plan:
    """Fix what is released from public numbers, or say why it cannot be had with these.

    `share` is that of the Kemeny score, ``releases="pairs"`` keeps `auto` to releases that say
    something about single pairs, and `partial` rankings may have ties and missing items;
    `declared` is what was declared of these, for the record.

    Notes
    -----
    **Statistic.** `auto` takes the release with the least :func:`predicted_excesses`. A larger
    epsilon or delta makes none of them larger, as a release without delta remains one with delta:
    so it cannot lead to a worse one, by this prediction. Where they tie
    (:func:`privrank.plans.excess.choose`) pairs are released, which say more, and whose Kemeny
    order is right where majorities are not those of scores.
    """
    steps, xi = unit_steps(sample, partial), pure_epsilon(epsilon, delta)
    m = len(sample.items)
    if math.isinf(epsilon):
        return _plan_plain(m, steps, delta, method, declared or {})
    if method in ("copeland", "local-search"):
        raise ValueError(
            f"method={method!r} is for the non-private run, epsilon=numpy.inf: use method='auto'."
        )
    pairs = RankingSensitivity(m).pairs_l1
    kinds = PAIR_KINDS if releases == "pairs" and method == "auto" else _KINDS[method]
    kind = choose(kinds, predicted_excesses(sample, epsilon, delta, share))
    rule: Rule = "EB-Kemeny" if method == "auto" else "Kemeny"
    # the score is pure, and delta all of Gaussian noise, whose epsilon is therefore not raised
    main, gaussian = PAIRS if "pairs" in kind else TOTALS, "Gaussian" in kind
    epsilons = split(epsilon if gaussian else xi, {SCORE: share} if share else {}, main)
    part = _main_part(kind, m, steps, epsilons[main], delta)
    parts = {main: part, ORDER: PartPlan(None, 0, 0.0)}
    settings: dict[str, Setting] = {"steps": steps, **(declared or {})}
    if share:
        score = DiscreteLaplace.calibrate(pairs * steps, epsilons[SCORE])
        parts[SCORE] = PartPlan(score, pairs * steps, epsilons[SCORE], 1.0 / steps)
        settings["score share"] = share
    rho = None
    if isinstance(part.noise, DiscreteGaussian):
        sensitivity = RankingSensitivity(m)
        moved = sensitivity.pairs_l2 if main == PAIRS else part.fineness * sensitivity.borda_l2
        rho = 0.5 * (moved * steps / part.noise.scale) ** 2
        rho += 0.5 * epsilons.get(SCORE, 0.0) ** 2
    rule = rule if main == PAIRS else "Borda"
    return plan_of(rule, epsilon, delta, parts, settings, rho)


def plan_of(
    rule: str,
    epsilon: float,
    delta: float,
    parts: Mapping[str, PartPlan],
    settings: Mapping[str, Setting],
    rho: float | None = None,
) -> Plan:
    """Return the plan of an order that is found in this way."""
    nouns = {PAIRS: "pair counts, ", TOTALS: "Borda totals, "}
    noun = "".join(word for name, word in nouns.items() if name in parts)
    return Plan("PrivateRankAggregation", noun + rule, rule, epsilon, delta, parts, settings, rho)


def _main_part(kind: Kind, m: int, steps: int, epsilon: float, delta: float) -> PartPlan:
    """Return the pair counts or the Borda totals with their noise."""
    pairs = RankingSensitivity(m).pairs_l1
    if kind == "Gaussian totals":
        scale, fine = totals_scale(m, epsilon, delta, steps)
        moved = fine * steps * RankingSensitivity(m).borda_linf
        return PartPlan(DiscreteGaussian(scale), moved, epsilon, 1.0 / (fine * steps), fine)
    if kind == "K-norm totals":
        body = PermutohedronNoise.calibrate(m, epsilon, steps)
        fine = body.fineness  # which this noise multiplies by itself
        return PartPlan(body, fine * steps, epsilon, 1.0 / (fine * steps))
    noise: Noise
    if kind == "Gaussian pairs":
        noise = DiscreteGaussian(_pairs_scale(epsilon, delta, pairs, steps))
    elif kind == "cube pairs":
        noise = CubeNoise.calibrate(pairs, steps, epsilon)
    else:
        noise = DiscreteLaplace.calibrate(pairs * steps, epsilon)
    return PartPlan(noise, steps, epsilon, 1.0 / steps)


@cache
def _pairs_scale(epsilon: float, delta: float, pairs: int, steps: int) -> float:
    return lattice_scale(epsilon, delta, pairs, steps)


def _plan_plain(
    m: int, steps: int, delta: float, method: AggregationMethod, declared: Mapping[str, Setting]
) -> Plan:
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
    names = {PAIRS: steps, SCORE: RankingSensitivity(m).pairs_l1 * steps}
    parts = {name: PartPlan(QUIET, moved, math.inf, 1.0 / steps) for name, moved in names.items()}
    parts[ORDER] = PartPlan(None, 0, 0.0)
    return plan_of(rules[method], math.inf, delta, parts, {"steps": steps, **declared})


def predicted_excess(release: Release) -> float | None:
    """Return the predicted disagreements beyond the least, as a share of all pairs.

    From public numbers, as in :func:`predicted_excesses`; None without noise, and for what releases
    an order alone. Kemeny's order of pairs that are not shrunken follows the noise of each pair. In
    the local model the mean variance of the differences of two Borda scores has sampling in it.
    """
    if math.isinf(release.epsilon):
        return None
    sample = release.sample
    if release.local:
        if COVARIANCE not in release.parts:  # an adaptive protocol's
            return None
        found, m = release.parts[COVARIANCE], len(sample.items)
        covariance = found.step * found.values.reshape(m, m)
        differences = 2.0 * (m * np.trace(covariance) - covariance.sum()) / (m * (m - 1))
        return excess_of(sample.nobs**2 * float(differences), sample)
    for name in (PAIRS, TOTALS):
        part = release.parts.get(name)
        if part is None:
            continue
        if name == PAIRS and release.plan.method != "EB-Kemeny":
            return 0.34 * math.sqrt(part.noise_variance) / sample.nobs
        assert isinstance(
            part.distribution, DiscreteLaplace | DiscreteGaussian | CubeNoise | PermutohedronNoise
        )
        variance = difference_variance(part.distribution, len(sample.items), name == PAIRS)
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
    if release.delta > 0.0 or release.local:
        return ""
    excesses = predicted_excesses(release.sample, release.epsilon, SMALL_DELTA)
    less = min(excesses[kind] for kind in _KINDS["auto"])
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
