"""Choose what a fit of paired comparisons releases, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Literal

from scipy.optimize import minimize_scalar

from privrank.budget import pure_epsilon
from privrank.checks import check_choice
from privrank.design import Design
from privrank.evidence import default_ridge, nominal_information
from privrank.links import LOGIT, Link
from privrank.losses import Reading, loss_bounds
from privrank.mechanisms.comparisons import DEFAULT_SHARES, Plan
from privrank.mechanisms.objective import LEAST_RIDGE, OUTPUT
from privrank.netnoise import NetNoise, NoiseName, cell_noise, net_noise, noise_choices
from privrank.release import DESIGN_EFFECT, GROUP_SIZES, ORDER_EFFECT, PAIR_COUNTS, Mechanism
from privrank.sensitivity import objective_scale

__all__ = ["DesignEffect", "Method", "Noise", "main_noise", "plan_fit", "side_shares"]

Method = Literal["auto", "counts", "objective"]
Noise = Literal["auto", "laplace", "gaussian", "zero-sum-laplace", "spherical", "permutohedron"]
DesignEffect = Literal["auto", "scalar", "none", "cluster"]

MOST_ITEMS_WIN_MATRIX = 8
"""Items up to which noise on all cells of the win matrix beats separate pair counts."""


def side_shares(
    design: Design,
    epsilon: float,
    design_effect: DesignEffect,
    shares: Mapping[str, float] | None,
    wanted: tuple[str, ...],
) -> dict[str, float]:
    """Return the shares of epsilon of the side releases a fit makes.

    Given the public design and the caller's choices, returns the share per side release among
    `wanted` and, for respondents, the design effect. Refuses unknown names and shares that leave
    nothing for the main release.
    """
    check_choice("design_effect", design_effect, DesignEffect)
    if design_effect == "cluster" and not math.isinf(epsilon):
        raise ValueError(
            "design_effect='cluster' needs the covariance of all answers, which no release here "
            "protects: use design_effect='scalar', or epsilon=numpy.inf for the non-private run."
        )
    if design_effect in ("scalar", "cluster") and design.unit == "row":
        raise ValueError(
            f"design_effect={design_effect!r} is about the answers of one respondent: name the "
            f"respondent column with respondent=."
        )
    if design.unit == "respondent" and design_effect in ("auto", "scalar"):
        wanted = (DESIGN_EFFECT, *wanted)
    if shares is not None and not isinstance(shares, Mapping):
        raise TypeError(
            f"shares must be a mapping from side releases to shares of epsilon, got "
            f"{type(shares).__name__}."
        )
    given = dict(shares or {})
    if given.keys() - DEFAULT_SHARES.keys():
        known = ", ".join(repr(name) for name in DEFAULT_SHARES)
        raise ValueError(f"shares must name side releases among {known}.")
    if not all(isinstance(share, Real) and 0 < share < 1 for share in given.values()):
        raise ValueError("shares must be positive numbers below 1.")
    chosen = {name: float(given.get(name, DEFAULT_SHARES[name])) for name in wanted}
    if not sum(chosen.values()) < 1:
        raise ValueError("shares must add up to less than 1, so that the main release has one.")
    return chosen


def main_noise(
    design: Design,
    mechanism: Mechanism,
    noise: Noise,
    epsilon: float,
    delta: float,
    shares: Mapping[str, float],
) -> NoiseName:
    """Return the law of the main release's noise, from public numbers.

    Given the caller's choice and the side releases' shares. ``"auto"`` takes the law under which
    differences between items get the least variance; the win matrix has two to choose from, and
    objective perturbation one. Refuses what does not apply.
    """
    if math.isinf(epsilon):
        return "laplace"
    if noise == "gaussian" and delta == 0:
        raise ValueError(
            "noise='gaussian' needs a delta above 0: pass delta=, well below 1 / nobs, or use "
            "noise='auto'."
        )
    share = 1.0 - sum(shares.values())
    if mechanism == "objective perturbation":
        if noise not in ("auto", "laplace"):
            raise ValueError(
                f"noise={noise!r} is for counts, and objective perturbation has continuous Laplace "
                f"noise: use method='counts' or noise='auto'."
            )
        return "laplace"
    if mechanism == "win matrix":
        if noise == "auto":
            return _cell_choice(design, epsilon, delta, share)
        assert noise in ("laplace", "gaussian")
        return noise
    if noise == "auto":
        return noise_choices(design.reach, epsilon, delta, share)[0].name
    net_noise(design.reach, noise, share * epsilon, delta)
    return noise


def _cell_choice(
    design: Design, epsilon: float, delta: float, share: float
) -> Literal["laplace", "gaussian"]:
    if delta == 0:
        return "laplace"
    laplace = _cells(design, "laplace", share * pure_epsilon(epsilon, delta), delta)
    gaussian = _cells(design, "gaussian", share * epsilon, delta)
    better = gaussian.law.variance / gaussian.fineness**2 < laplace.law.variance
    return "gaussian" if better else "laplace"


def _cells(design: Design, noise: NoiseName, epsilon: float, delta: float) -> NetNoise:
    return cell_noise(design.reach, noise, epsilon, delta, ties=design.ties)


def plan_fit(
    design: Design,
    epsilon: float,
    method: Method,
    penalty: float | None,
    design_effect: DesignEffect,
    shares: Mapping[str, float] | None,
    noise: Noise = "auto",
    delta: float = 0.0,
    link: Link = LOGIT,
) -> Plan:
    """Return the plan of a fit.

    Given the public design and the caller's choices (`penalty` None for ``"auto"``), returns the
    plan that was asked for or, for ``method="auto"``, the one with the smaller predicted variance;
    objective perturbation is left out there when the caller's ridge is too small for it, or when
    the law that was asked for is one of counts. Laws that sum to zero are for net wins, so with
    them no win matrix is released.
    """
    cluster = design_effect == "cluster"
    private = not math.isinf(epsilon)
    # the maximum likelihood of other links than the logit takes more than net wins
    likelihood = not private and link != LOGIT
    if design.covariates is not None:
        if method == "objective":
            raise ValueError(
                "method='objective' is proved for models without covariates only: use "
                "method='counts' or leave it at 'auto'."
            )
        if design.covariates.bounds and noise not in ("auto", "laplace"):
            raise ValueError(
                f"noise={noise!r} is for net wins by group, and with numeric covariates they are "
                f"weighted: use noise='auto', or cut the numbers into declared levels."
            )
        wanted = _covariate_releases(design)
        sides = side_shares(design, epsilon, design_effect, shares, wanted)
        law: NoiseName = "laplace"
        if not design.covariates.bounds:
            law = main_noise(design, "net wins", noise, epsilon, delta, sides)
        of_pairs: Mechanism = "win matrix" if likelihood else "net wins"
        return Plan(of_pairs, sides, cluster=cluster, noise=law, link=link)
    counts_needed = design.pairs is None and private
    matrix = counts_needed and len(design.items) <= MOST_ITEMS_WIN_MATRIX
    matrix = matrix and noise in ("auto", "laplace", "gaussian")
    extra = (PAIR_COUNTS,) if counts_needed else ()
    main: Mechanism = "win matrix" if matrix or likelihood else "net wins"
    sides = side_shares(design, epsilon, design_effect, shares, () if matrix else extra)
    counts = Plan(main, sides, cluster=cluster, link=link)
    of_counts = noise not in ("auto", "laplace")
    if method != "objective":
        counts = replace(counts, noise=main_noise(design, main, noise, epsilon, delta, sides))
    if method == "counts" or (
        method == "auto" and (design.kind == "public" or not private or of_counts)
    ):
        return counts
    main_noise(design, "objective perturbation", noise, epsilon, delta, {})
    objective = Plan(
        "objective perturbation",
        side_shares(design, epsilon, design_effect, shares, (OUTPUT, *extra)),
        cluster=cluster,
        link=link,
    )
    gamma = penalty if penalty is not None else _objective_ridge(design, epsilon, objective)
    objective = replace(objective, gamma=gamma)
    if method == "auto" and gamma < LEAST_RIDGE * _objective_noise(design, epsilon, objective):
        return counts
    if gamma <= 0 and private:
        raise ValueError(
            "penalty must be positive for objective perturbation, because the ridge is part of "
            "the guarantee: use penalty='auto' or method='counts'."
        )
    if method == "objective":
        return objective
    return min(
        counts, objective, key=lambda plan: _predicted_variance(design, epsilon, delta, plan)
    )


def _covariate_releases(design: Design) -> tuple[str, ...]:
    """Return the side releases that covariates need."""
    facts = design.covariates
    ordered = facts is not None and facts.ordered
    grouped = design.kind == "private" and facts is not None and facts.cells > 1
    return (GROUP_SIZES,) * grouped + (ORDER_EFFECT,) * ordered


def _main_epsilon(epsilon: float, plan: Plan) -> float:
    return epsilon * (1.0 - sum(plan.shares.values()))


def _objective_noise(design: Design, epsilon: float, plan: Plan) -> float:
    """Return the noise scale of objective perturbation at the plan's ridge, inf if none is safe."""
    if plan.gamma <= 0:
        return math.inf
    share = _main_epsilon(epsilon, plan)
    return objective_scale(design.reach, plan.gamma, share, loss_bounds(plan.link))


def _reading(plan: Plan) -> Reading:
    """Return how the scores of a private plan depend on the worths."""
    objective = plan.mechanism == "objective perturbation"
    return Reading(plan.link, objective and loss_bounds(plan.link).answers_curve)


def _objective_ridge(design: Design, epsilon: float, plan: Plan) -> float:
    """Return the ridge of least predicted risk, with the noise scale it allows.

    For a contrast with curvature I and variance r I of its score the risk is
    (r I + 2 lam^2 + gamma^2 s^2) / (I + gamma)^2 for worths of standard deviation s (1 for the
    logit, where r = 1); lam falls with gamma until the determinant costs nothing.
    """
    reading = _reading(plan)
    information = nominal_information(len(design.items), design.nominal_total, reading)
    sampling = information * (reading.mean_variance / reading.mean_curvature)
    if math.isinf(epsilon):
        return default_ridge(information, 0.0, reading)
    share = _main_epsilon(epsilon, plan)

    def risk(log_gamma: float) -> float:
        gamma = math.exp(log_gamma)
        lam = min(_objective_noise(design, epsilon, replace(plan, gamma=gamma)), 1e50)
        shrinkage = gamma**2 * reading.spread**2
        return (sampling + 2.0 * lam**2 + shrinkage) / (information + gamma) ** 2

    best = minimize_scalar(
        risk, bounds=(math.log(0.1 / share), math.log(1e4 / share)), method="bounded"
    )
    return float(math.exp(best.x))


def _predicted_variance(design: Design, epsilon: float, delta: float, plan: Plan) -> float:
    """Predict the variance of a worth's contrast from public numbers."""
    reading = _reading(plan)
    information = nominal_information(len(design.items), design.nominal_total, reading)
    share, reach = _main_epsilon(epsilon, plan), design.reach
    sampling = information * (reading.mean_variance / reading.mean_curvature)
    if plan.mechanism == "objective perturbation":
        noise = 2.0 * _objective_noise(design, epsilon, plan) ** 2
    elif plan.mechanism == "win matrix":
        # each pair's two cells, at even odds, in a round robin of m items
        cells = _cells(design, plan.noise, share, delta)
        step = (0.5 if design.ties else 1.0) / cells.fineness
        noise = 0.5 * len(design.items) * step**2 * cells.law.variance
    else:
        noise = (0.5 * net_noise(reach, plan.noise, share, delta).deviation(reach.items)) ** 2
        if design.unit == "row" and design.pairs is not None and design.pairs.origin == "equal":
            # pairs may have been fixed, or chosen at random: half way between the two
            sampling = 0.5 * (sampling + information * 0.25 / reading.mean_curvature)
    return (sampling + noise) / information**2
