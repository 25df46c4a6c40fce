"""Choose what a fit of paired comparisons releases, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from scipy.optimize import minimize_scalar

from privrank.bradley_terry.estimate import default_ridge, nominal_information
from privrank.bradley_terry.losses import ScoreFunction, loss_bounds
from privrank.distributions.links import LOGIT, Link
from privrank.plans.calibration import objective_scale
from privrank.plans.choice import (
    BALANCED,
    DEFAULT_SHARES,
    LEAST_RIDGE,
    OUTPUT,
    Choice,
    Dependence,
    Form,
    asked_form,
    choose_form,
    deviation,
    noise_choices,
)
from privrank.privacy.budget import pure_epsilon
from privrank.privacy.netnoise import NoiseName, cell_noise, count_noise, net_noise
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.names import DEPENDENCE, GROUP_ANSWERS, NET, ORDER_EFFECT, PAIR_COUNTS
from privrank.release.release import Mechanism
from privrank.release.survey import Design
from privrank.util.checks import is_number

Method = Literal["auto", "counts", "objective"]
Noise = Literal["auto", "laplace", "gaussian", "zero-sum-laplace", "permutohedron"]

MOST_ITEMS_WIN_MATRIX = 20
"""Items up to which noise on all cells of the win matrix is considered; beyond it never helps."""

FINE_EPSILON = 0.125
"""Epsilon at which noise on whole numbers is close to its continuous limit."""


def side_shares(
    design: Design,
    epsilon: float,
    delta: float,
    dependence: Dependence,
    shares: Mapping[str, float] | None,
    wanted: tuple[str, ...],
) -> tuple[dict[str, float], Form]:
    """Return the shares of epsilon of the side releases a fit makes, and the form of dependence.

    Given the public design and the caller's choices, returns the share per side release among
    `wanted` and, for respondents, of dependence. Refuses unknown names and shares that leave
    nothing for the main release.
    """
    form = asked_form(design, epsilon, dependence)
    if shares is not None and not isinstance(shares, Mapping):
        raise TypeError(
            f"shares must be a mapping from side releases to shares of epsilon, got "
            f"{type(shares).__name__}."
        )
    given = dict(shares or {})
    if form == "none" and DEPENDENCE in given:
        raise ValueError(
            "shares must not name 'dependence' where none is released: leave it out, or name the "
            "respondent column with respondent= and take another dependence=."
        )
    known = (DEPENDENCE, *DEFAULT_SHARES, *BALANCED)
    if given.keys() - set(known):
        names = ", ".join(repr(name) for name in known)
        raise ValueError(f"shares must name side releases among {names}.")
    if not all(is_number(share) and 0 < share < 1 for share in given.values()):
        raise ValueError("shares must be positive numbers below 1.")
    chosen = {
        name: float(given.get(name, DEFAULT_SHARES.get(name, 0.0)))
        for name in wanted
        if name in DEFAULT_SHARES or name in given
    }
    # what the caller and the defaults leave open trades with the net wins: it is divided up twice,
    # as the share of dependence depends on the others, and the others get what it leaves
    free = [name for name in wanted if name not in chosen]
    others = _balanced(design, max(1.0 - sum(chosen.values()), 0.0), free)
    if form not in ("none", "cluster"):
        taken = sum(chosen.values()) + sum(others.values())
        share = float(given[DEPENDENCE]) if DEPENDENCE in given else None
        nets = OUTPUT not in wanted
        form, part = choose_form(design, epsilon, delta, taken, form, share, nets=nets)
        chosen = {DEPENDENCE: part, **chosen}
    if not sum(chosen.values()) < 1:
        raise ValueError("shares must add up to less than 1, so that the main release has one.")
    return chosen | _balanced(design, 1.0 - sum(chosen.values()), free), form


def _balanced(design: Design, room: float, names: Sequence[str]) -> dict[str, float]:
    """Return the shares of releases that trade with the net wins, dividing up a `room`.

    Notes
    -----
    **Statistic.** At the epsilon e the noise of a release puts the variance a / e^2 into a score,
    but for its lattice. The sum of all such is least where e is proportional to the cube root of
    a, whatever they share. An error in a pair's count moves the expected wins of its items by its
    product with F - 1/2; one in a group's answers by the mean score of an answer to any pair, in
    which the F - 1/2 of an item's pairs are correlated by about 1/2. Cells share the errors of pair
    counts.
    """
    if not names:
        return {}
    sensitivity, m, epsilon = design.sensitivity, len(design.items), FINE_EPSILON
    square, least = ScoreFunction(LOGIT).mean_square, noise_choices(sensitivity, epsilon, 0.0)[0]
    cells = 1 if design.covariates is None else design.covariates.cells
    answers = DiscreteLaplace.calibrate(sensitivity.group_answers_l1, epsilon)
    put = {
        NET: (0.5 * deviation(least, m)) ** 2,
        PAIR_COUNTS: m * square * count_noise(sensitivity, epsilon).distribution.variance / cells,
        GROUP_ANSWERS: square * answers.variance / sensitivity.pairs,
    }
    root = {name: put[name] ** (1 / 3) for name in (NET, *names)}
    return {name: room * root[name] / math.fsum(root.values()) for name in names}


def noises_left(
    design: Design,
    mechanism: Mechanism,
    noise: Noise,
    epsilon: float,
    delta: float,
    shares: Mapping[str, float],
) -> tuple[NoiseName, ...]:
    """Return the noise that the caller leaves a mechanism, the least harmful first.

    From public numbers: of net wins the first is that under which differences between items get the
    least variance. The win matrix has two, and objective perturbation one. Refuses what does not
    apply.
    """
    if math.isinf(epsilon):
        return ("laplace",)
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
        return ("laplace",)
    if mechanism == "win matrix":
        distributions: tuple[NoiseName, ...] = (
            ("laplace",) if delta == 0 else ("laplace", "gaussian")
        )
        return tuple(
            distribution for distribution in distributions if noise in ("auto", distribution)
        )
    if noise == "auto":
        choices = noise_choices(design.sensitivity, epsilon, delta, share)
        return tuple(choice.name for choice in choices)
    # refuses what this noise cannot do, in its own sentence
    net_noise(design.sensitivity, noise, share * epsilon, delta)
    return (noise,)


def plan_fit(
    design: Design,
    epsilon: float,
    method: Method,
    penalty: float | None,
    dependence: Dependence,
    shares: Mapping[str, float] | None,
    noise: Noise = "auto",
    delta: float = 0.0,
    link: Link = LOGIT,
) -> Choice:
    """Return the plan of a fit.

    Given the public design and the caller's choices (`penalty` None for ``"auto"``), returns the
    plan of the least predicted error (:func:`predicted_error`) among those that are left.
    """
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
        wanted = _covariate_releases(design, epsilon)
        sides, form = side_shares(design, epsilon, delta, dependence, shares, wanted)
        distribution: NoiseName = "laplace"
        if not design.covariates.bounds:
            distribution = noises_left(design, "net wins", noise, epsilon, delta, sides)[0]
        return Choice(_exact(epsilon, link), sides, form=form, noise=distribution, link=link)
    if math.isinf(epsilon) and method != "objective":
        sides, form = side_shares(design, epsilon, delta, dependence, shares, ())
        return Choice(_exact(epsilon, link), sides, form=form, link=link)
    plans = plan_choices(design, epsilon, method, penalty, dependence, shares, noise, delta, link)
    return plans[0]


def plan_selection(
    design: Design,
    epsilon: float,
    delta: float = 0.0,
    noise: Noise = "auto",
    dependence: Dependence = "auto",
    shares: Mapping[str, float] | None = None,
) -> Choice:
    """Return the plan of a selection by win rates: net wins, and pair counts if not public."""
    extra = (PAIR_COUNTS,) if design.pairs is None and not math.isinf(epsilon) else ()
    sides, form = side_shares(design, epsilon, delta, dependence, shares, extra)
    distribution = noises_left(design, "net wins", noise, epsilon, delta, sides)[0]
    return Choice("net wins", sides, form=form, noise=distribution)


def _exact(epsilon: float, link: Link) -> Mechanism:
    """Return what is released of counts where that is no matter of noise.

    The maximum likelihood of other links than the logit takes more than net wins, and only the
    non-private run has it.
    """
    return "win matrix" if math.isinf(epsilon) and link != LOGIT else "net wins"


def plan_choices(
    design: Design,
    epsilon: float,
    method: Method = "auto",
    penalty: float | None = None,
    dependence: Dependence = "auto",
    shares: Mapping[str, float] | None = None,
    noise: Noise = "auto",
    delta: float = 0.0,
    link: Link = LOGIT,
) -> tuple[Choice, ...]:
    """Return the plans of a model without covariates, the least predicted error first.

    Net wins under every distribution, with the pair counts where these are not public; the win
    matrix, which holds them, under the two distributions it has; and objective perturbation. Left
    out are those that the caller does, objective perturbation under a public design unless it is
    asked for, and where the caller's ridge is too small for it or the distribution is one of
    counts.
    """
    counts_needed = design.pairs is None and not math.isinf(epsilon)
    extra = (PAIR_COUNTS,) if counts_needed else ()
    plans = []
    if method != "objective":
        releases: list[tuple[Mechanism, tuple[str, ...]]] = [("net wins", extra)]
        if counts_needed and len(design.items) <= MOST_ITEMS_WIN_MATRIX:
            releases.append(("win matrix", ()))
        for main, wanted in releases:
            sides, form = side_shares(design, epsilon, delta, dependence, shares, wanted)
            plans += [
                Choice(main, sides, form=form, noise=distribution, link=link)
                for distribution in noises_left(design, main, noise, epsilon, delta, sides)
            ]
    perturbed = design.kind == "private" and noise in ("auto", "laplace") and dependence != "pairs"
    if method == "objective" or (method == "auto" and perturbed):
        noises_left(design, "objective perturbation", noise, epsilon, delta, {})
        wanted = (OUTPUT, *extra)
        sides, form = side_shares(design, epsilon, delta, dependence, shares, wanted)
        plan = Choice("objective perturbation", sides, form=form, link=link)
        gamma = penalty if penalty is not None else _objective_ridge(design, epsilon, plan)
        plan = replace(plan, gamma=gamma)
        if method == "objective" and gamma <= 0 and not math.isinf(epsilon):
            raise ValueError(
                "penalty must be positive for objective perturbation, because the ridge is part of "
                "the guarantee: use penalty='auto' or method='counts'."
            )
        if method == "objective" or gamma >= LEAST_RIDGE * _objective_noise(design, epsilon, plan):
            plans.append(plan)
    if len({plan.mechanism for plan in plans}) > 1:  # else they are in order
        plans.sort(key=lambda plan: predicted_error(design, epsilon, delta, plan, penalty))
    return tuple(plans)


def _covariate_releases(design: Design, epsilon: float) -> tuple[str, ...]:
    """Return the side releases that covariates need."""
    facts = design.covariates
    ordered = facts is not None and facts.ordered
    grouped = design.kind == "private" and facts is not None and facts.cells > 1
    counted = design.pairs is None and not math.isinf(epsilon)
    return (PAIR_COUNTS,) * counted + (GROUP_ANSWERS,) * grouped + (ORDER_EFFECT,) * ordered


def _whole(epsilon: float, delta: float, plan: Choice) -> float:
    """Return what the parts of a plan share: with Gaussian noise delta is spent on that."""
    return epsilon if plan.noise == "gaussian" else pure_epsilon(epsilon, delta)


def _main_epsilon(epsilon: float, plan: Choice) -> float:
    return epsilon * (1.0 - sum(plan.shares.values()))


def _objective_noise(design: Design, epsilon: float, plan: Choice) -> float:
    """Return the noise scale of objective perturbation at the plan's ridge, inf if none is safe."""
    if plan.gamma <= 0:
        return math.inf
    share = _main_epsilon(epsilon, plan)
    return objective_scale(design.sensitivity, plan.gamma, share, loss_bounds(plan.link))


def _score(plan: Choice) -> ScoreFunction:
    """Return how the scores of a private plan depend on the worths."""
    objective = plan.mechanism == "objective perturbation"
    return ScoreFunction(plan.link, objective and loss_bounds(plan.link).answers_curve)


def _objective_ridge(design: Design, epsilon: float, plan: Choice) -> float:
    """Return the ridge of least predicted risk, with the noise scale it allows.

    For a contrast with curvature I and variance r I of its score the risk is
    (r I + 2 lam^2 + gamma^2 s^2) / (I + gamma)^2 for worths of standard deviation s (1 for the
    logit, where r = 1); lam falls with gamma until the determinant costs nothing.
    """
    score = _score(plan)
    information = nominal_information(len(design.items), design.nominal_total, score)
    sampling = information * (score.mean_variance / score.mean_curvature)
    if math.isinf(epsilon):
        return default_ridge(information, 0.0, score)
    share = _main_epsilon(epsilon, plan)

    def risk(log_gamma: float) -> float:
        gamma = math.exp(log_gamma)
        lam = min(_objective_noise(design, epsilon, replace(plan, gamma=gamma)), 1e50)
        shrinkage = gamma**2 * score.spread**2
        return (sampling + 2.0 * lam**2 + shrinkage) / (information + gamma) ** 2

    best = minimize_scalar(
        risk, bounds=(math.log(0.1 / share), math.log(1e4 / share)), method="bounded"
    )
    return float(math.exp(best.x))


def predicted_error(
    design: Design,
    epsilon: float,
    delta: float,
    plan: Choice,
    penalty: float | None = None,
    total: float | None = None,
) -> float:
    """Predict the mean squared error of a contrast of length 1 of the worths.

    From as many comparisons as the public facts suggest, or from `total`.

    Notes
    -----
    **Statistic.** From public numbers, for worths of the score's spread s and equal counts of the
    pairs. A contrast with curvature I, score variance r I + v and ridge gamma, whose share
    q = gamma / (I + gamma) it takes, has the error (r I + v + gamma^2 s^2) / (I + gamma)^2, or
    after the correction of the ridge's bias (1 - q^2)^2 (r I + v) / I^2 + q^4 s^2.

    The noise v holds that of net wins, of both cells of each pair or of the perturbed objective,
    and that of released pair counts: an error in the count of a pair moves the expected wins of its
    items by its product with F - 1/2 (:func:`_count_error`). What it costs to release anything
    else is in the shares.
    """
    score, m = _score(plan), len(design.items)
    total = design.nominal_total if total is None else total
    information = nominal_information(m, total, score)
    share, sensitivity = _main_epsilon(_whole(epsilon, delta, plan), plan), design.sensitivity
    sampling = information * (score.mean_variance / score.mean_curvature)
    if plan.mechanism == "objective perturbation":
        noise = 2.0 * _objective_noise(design, epsilon, plan) ** 2
    elif plan.mechanism == "win matrix":
        # each pair's two cells, at even odds, in a round robin of m items
        noise = 0.5 * m * _cell_variance(design, plan.noise, share, delta)
    else:
        noise = (0.5 * deviation(net_noise(sensitivity, plan.noise, share, delta), m)) ** 2
        if design.unit == "row" and design.pairs is not None and design.pairs.origin == "equal":
            # pairs may have been fixed, or chosen at random: half way between the two
            sampling = 0.5 * (sampling + information * 0.25 / score.mean_curvature)
    noise += m * _count_error(design, epsilon, delta, plan) * score.mean_square
    variance, spread = sampling + noise, score.spread**2
    gamma = plan.gamma
    if plan.mechanism != "objective perturbation":
        gamma = default_ridge(information, noise, score) if penalty is None else penalty
    if penalty is not None:
        return (variance + gamma**2 * spread) / (information + gamma) ** 2
    taken = gamma / (information + gamma)
    return float((1.0 - taken**2) ** 2 * variance / information**2 + taken**4 * spread)


def _cell_variance(design: Design, noise: NoiseName, epsilon: float, delta: float) -> float:
    """Return the variance of the noise of a cell of the win matrix, in wins."""
    cells = cell_noise(design.sensitivity, noise, epsilon, delta, ties=design.ties)
    step = (0.5 if design.ties else 1.0) / cells.fineness
    return float(step**2 * cells.distribution.variance)


def _count_error(design: Design, epsilon: float, delta: float, plan: Choice) -> float:
    """Return the error variance of each pair count; 0 where the counts are public."""
    if design.pairs is not None:
        return 0.0
    if plan.mechanism == "win matrix":
        share = _main_epsilon(_whole(epsilon, delta, plan), plan)
        return 2.0 * _cell_variance(design, plan.noise, share, delta)
    share = plan.shares[PAIR_COUNTS] * _whole(epsilon, delta, plan)
    return count_noise(design.sensitivity, share).distribution.variance
