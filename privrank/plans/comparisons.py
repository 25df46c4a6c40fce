"""Choose what a fit of paired comparisons releases, from public numbers alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from scipy.optimize import minimize_scalar

from privrank.bradley_terry.estimate import default_ridge, nominal_information
from privrank.bradley_terry.fit import ScoreFunction, loss_bounds
from privrank.bradley_terry.paircounts import MAX_ERROR
from privrank.bradley_terry.predictor import instruments_of
from privrank.distributions.links import LOGIT, Link
from privrank.plans.choice import (
    BALANCED,
    DEFAULT_SHARES,
    MIN_RIDGE,
    OUTPUT,
    Choice,
    Dependence,
    choose_form,
    deviation,
    noise_choices,
    noise_request,
    objective_scale,
    requested_dependence,
    side_choices,
    side_deviation,
)
from privrank.privacy.accounting import pure_epsilon
from privrank.privacy.sensitivity import NoiseName, PartNoise, net_noise, side_noise, ties_left
from privrank.release.names import (
    CONTEST,
    DEPENDENCE,
    GROUP_ANSWERS,
    ITEM_COUNTS,
    NET,
    OPPONENTS,
    PAIR_COUNTS,
    SIDES,
    TIES,
    WINS,
)
from privrank.release.release import Mechanism
from privrank.release.survey import ASSERTED, INTERCEPT, PARTS, Design, Form, NoiseRequest
from privrank.util.checks import is_number

Method = Literal["auto", "counts", "objective"]
Noise = Literal["auto", "laplace", "gaussian", "zero-sum-laplace", "permutohedron"]
Target = Literal["auto", "net wins", "win rate"]

MAX_ITEMS_WIN_MATRIX = 20
"""Items up to which noise on all cells of the win matrix is considered; beyond it never helps."""

MAX_ITEMS_WITH_TIES = 200
"""Items up to which a tie parameter is fitted: its matrices are dense."""

MIN_ITEMS_WITH_RATES = 3
"""Items from which wins and losses are released for win rates."""

SPLIT_NOISE = 0.8
"""Variance of the noise of win rates from net wins and item counts, over that from wins and losses,
up to which these are released: closer to 1 the prediction may be wrong."""

FINE_EPSILON = 0.125
"""Epsilon at which noise on whole numbers is close to its continuous limit."""


@dataclass(frozen=True, slots=True)
class Request:
    """The caller's request for a fit: public facts, guarantee and choices.

    Parameters
    ----------
    design : Design
        Public facts of the comparisons.
    epsilon, delta : float
        The guarantee.
    method, dependence, shares, noise
        As for :meth:`privrank.PrivateBTL.fit`.
    penalty : float or None
        The ridge, None for ``"auto"``.
    link : Link
        Link of the model.
    """

    design: Design
    epsilon: float
    delta: float = 0.0
    method: Method = "auto"
    penalty: float | None = None
    dependence: Dependence = "auto"
    shares: Mapping[str, float] | None = None
    noise: Noise = "auto"
    link: Link = LOGIT

    @property
    def private(self) -> bool:
        """Whether noise is added."""
        return not math.isinf(self.epsilon)


def side_shares(request: Request, wanted: tuple[str, ...]) -> tuple[dict[str, float], Form]:
    """Return the shares of epsilon of the side releases, and the form of dependence.

    The side releases are those `wanted` and, for respondents, dependence. Unknown names are
    refused, and shares that leave no epsilon for the main release.
    """
    design = request.design
    shares = request.shares
    form = requested_dependence(design, request.epsilon, request.dependence)
    if shares is not None and not isinstance(shares, Mapping):
        raise TypeError(
            f"shares must be a mapping from side releases to shares of epsilon, got "
            f"{type(shares).__name__}."
        )
    given = dict(shares or {})
    if form == "none" and DEPENDENCE in given:
        raise ValueError(
            "shares must not name 'dependence' if dependence is not released. Leave it out, or "
            "name the respondent column with respondent= and take another dependence=."
        )
    known = (DEPENDENCE, *DEFAULT_SHARES, *BALANCED)
    if given.keys() - set(known):
        raise ValueError(f"shares must name side releases among {', '.join(map(repr, known))}.")
    left_out = [name for name, share in given.items() if name == OPPONENTS and share == 0]
    if not all(
        name in left_out or (is_number(share) and 0 < share < 1) for name, share in given.items()
    ):
        raise ValueError("shares must be positive numbers below 1.")
    wanted = tuple(name for name in wanted if name not in left_out)
    chosen = {
        name: float(given.get(name, DEFAULT_SHARES.get(name, 0.0)))
        for name in wanted
        if name in DEFAULT_SHARES or name in given
    }
    # shares that neither the caller nor the defaults fix are balanced with the net wins. They are
    # computed twice, because the share of dependence depends on the others, and these share the
    # rest
    free = [name for name in wanted if name not in chosen]
    others = _balanced(design, max(1.0 - sum(chosen.values()), 0.0), free)
    if form not in ("none", "cluster"):
        share = float(given[DEPENDENCE]) if DEPENDENCE in given else None
        form, part = choose_form(
            design,
            request.epsilon,
            request.delta,
            sum(chosen.values()) + sum(others.values()),
            form,
            share,
            nets=OUTPUT not in wanted,
        )
        chosen = {DEPENDENCE: part, **chosen}
    if not sum(chosen.values()) < 1:
        raise ValueError(
            "shares must add up to less than 1, because the main release needs a share."
        )
    return chosen | _balanced(design, 1.0 - sum(chosen.values()), free), form


def _balanced(design: Design, room: float, names: Sequence[str]) -> dict[str, float]:
    """Return the shares of releases that compete with the net wins for the share `room`.

    Notes
    -----
    **Statistic.** At the epsilon e the noise of a release adds the variance a / e^2 to a score,
    apart from the effect of its lattice. The sum over the releases is least if e is proportional to
    the cube root of a, whatever epsilon they share. An error in a pair's count moves the expected
    wins of its items by its product with F - 1/2. An error in a group's answers moves them by the
    mean score of an answer to any pair; the F - 1/2 of an item's pairs have a correlation of about
    1/2 in this mean. An error in an item's comparisons moves the item's expected wins by its mean
    score, whose mean square is half the mean square of F - 1/2. Cells share the errors of pair
    counts. Errors of sums of contest covariates move their coefficients; relative to the
    information, these errors and those of differences of worths are added up.
    """
    if not names:
        return {}
    m = len(design.items)
    square = ScoreFunction(LOGIT).mean_square
    request = NoiseRequest(dict.fromkeys(BALANCED, FINE_EPSILON))
    contests = 0.0
    if CONTEST in names:
        used = instruments_of(design)
        contests = 0.5 * float((used.unit**2 / used.square).sum()) / (m - 1) ** 2
    noise = {name: PARTS[name].calibrate(design, request).distribution.variance for name in names}
    factor = {
        PAIR_COUNTS: m * square,
        GROUP_ANSWERS: square,
        ITEM_COUNTS: 0.5 * square,
        CONTEST: contests,
    }
    shared = {
        PAIR_COUNTS: (design.covariates or INTERCEPT).cells,
        GROUP_ANSWERS: design.sensitivity.pairs,
    }
    put = {name: factor[name] * noise[name] / shared.get(name, 1) for name in names}
    put[NET] = (0.5 * deviation(noise_choices(design.sensitivity, FINE_EPSILON, 0.0)[0], m)) ** 2
    root = {name: put[name] ** (1 / 3) for name in (NET, *names)}
    return {name: room * root[name] / math.fsum(root.values()) for name in names}


def noises_left(
    request: Request, mechanism: Mechanism, shares: Mapping[str, float]
) -> tuple[NoiseName, ...]:
    """Return the permitted noise of a release of counts, the least harmful first.

    The order follows from public numbers. For net wins, the first distribution gives differences
    between items the smallest variance. The win matrix has two distributions. A distribution that
    does not apply raises an error.
    """
    noise = request.noise
    weighted = bool((request.design.covariates or INTERCEPT).bounds)
    if weighted and noise not in ("auto", "laplace"):
        raise ValueError(
            f"noise={noise!r} is for net wins by group, but numeric covariates weight the net "
            "wins. Use noise='auto', or cut the numbers into declared levels."
        )
    if weighted or not request.private:
        return ("laplace",)
    if noise == "gaussian" and request.delta == 0:
        raise ValueError(
            "noise='gaussian' needs a delta above 0: pass delta=, well below 1 / nobs, or use "
            "noise='auto'."
        )
    if request.design.davidson and noise == "gaussian":
        raise ValueError(
            "noise='gaussian' has no proof for net wins and ties together: use noise='auto' or "
            "ties=True, which counts a tie as half a win to each."
        )
    if mechanism == "win matrix":
        both: tuple[NoiseName, ...] = ("laplace", "gaussian") if request.delta else ("laplace",)
        return tuple(name for name in both if noise in ("auto", name))
    sensitivity = request.design.sensitivity
    share = 1.0 - sum(shares.values())
    if mechanism == "wins and losses":
        part = share * pure_epsilon(request.epsilon, request.delta)
        ties = bool(request.design.ties)
        if noise == "auto":
            return tuple(choice.name for choice in side_choices(sensitivity, part, ties=ties))
        return (side_noise(sensitivity, noise, part, ties=ties).name,)
    if noise == "auto":
        choices = noise_choices(
            sensitivity, request.epsilon, request.delta, share, ties=request.design.davidson
        )
        return tuple(choice.name for choice in choices)
    return (net_noise(sensitivity, noise, share * request.epsilon, request.delta).name,)


def plan_fit(request: Request) -> Choice:
    """Return the plan of a fit with the least predicted error (:func:`predicted_error`)."""
    return _releasing(request, plan_choices(request))


def _releasing(request: Request, plans: tuple[Choice, ...]) -> Choice:
    """Return the first plan that releases every part to which the caller gives a share."""
    given = (request.shares or {}).items() if request.private else ()
    parts = {name for name, share in given if share > 0}
    plan = next((plan for plan in plans if parts <= plan.shares.keys()), None)
    if plan is None:
        names = ", ".join(map(repr, sorted(parts - plans[0].shares.keys())))
        raise ValueError(
            f"shares must name parts that this fit releases, and not {names}. Leave out the other "
            "parts."
        )
    return plan


def plan_selection(request: Request, target: Target = "auto") -> Choice:
    """Return the plan of a selection: net wins, and the counts that win rates need.

    Notes
    -----
    **Statistic.** If the comparisons of an item are known, its net wins determine its win rate. If
    not, all of epsilon is spent on net wins, or win rates are released (:func:`_plan_rates`).
    """
    return _releasing(request, (_plan_target(request, target),))


def _plan_target(request: Request, target: Target) -> Choice:
    if not (request.private and request.design.unknown):
        return _of_counts(request, "net wins")[0]
    if target != "net wins" and len(request.design.items) >= MIN_ITEMS_WITH_RATES:
        plan = _plan_rates(request)
        if target == "win rate" or _counts_stand_out(request, plan):
            return plan
    elif target == "win rate":
        raise ValueError(
            "target='win rate' needs three items under a private design: use target='net "
            "wins', or declare how often the two were compared by pair_counts=."
        )
    if request.dependence not in ("auto", "none"):
        raise ValueError(
            f"dependence={request.dependence!r} has no effect on target='net wins' if pair counts "
            "are not known. Leave it out."
        )
    return _of_counts(replace(request, dependence="none"), "net wins")[0]


def _plan_rates(request: Request) -> Choice:
    """Return the plan of win rates: from wins and losses, or from net wins and item counts.

    Notes
    -----
    **Statistic.** In the first form wins and losses are released in one draw. Their differences are
    net wins with sqrt(2) times the noise, and their sums are the comparisons. In the second form
    net wins and comparisons are released separately, each with a share of epsilon. Let an item have
    the win rate r, and errors e of its net wins and f of its comparisons. Half its net wins then
    have the error e / 2 - (r - 1/2) f, whose variance is predicted at the mean of (r - 1/2)^2
    (:func:`_net_variance`). The second form is chosen if two conditions hold. Its variance is at
    most `SPLIT_NOISE` of the variance in the first form, which is typical for respondents who
    answer most pairs. Its comparisons, which are less precise than in the first form, are clearly
    above their noise.
    """
    split = _of_counts(request, "net wins", ITEM_COUNTS)[0]
    if request.noise in ("gaussian", "permutohedron") or ITEM_COUNTS in dict(request.shares or {}):
        return split  # not available for wins and losses
    sides = _of_counts(request, "wins and losses")[0]
    score = ScoreFunction(LOGIT)
    less = _net_variance(request, split, score) <= SPLIT_NOISE * _net_variance(
        request, sides, score
    )
    return split if less and _counts_stand_out(request, split) else sides


def _counts_stand_out(request: Request, plan: Choice) -> bool:
    """Return whether released comparisons of items are expected to exceed their noise clearly."""
    return math.sqrt(_item_error(request, plan)) <= MAX_ERROR * (
        2.0 * request.design.nominal_total / len(request.design.items)
    )


def plan_choices(request: Request) -> tuple[Choice, ...]:
    """Return the plans of a model, the least predicted error first.

    The candidates are net wins under every distribution, with the pair counts if these are not
    public; the win matrix, which contains the pair counts, under its two distributions; and
    objective perturbation. Candidates that the caller excludes are left out. Objective perturbation
    is left out under a public design unless it is requested, if the caller's ridge is too small for
    it, and if the requested distribution is for counts. Models with covariates release net wins.
    The maximum likelihood of links other than the logit, and of contest covariates, needs more than
    net wins, so only the non-private run has it. If opponents are declared to be matched at random,
    only wins and losses are released.
    """
    design = request.design
    method = request.method
    plain = design.covariates is None
    plans = []
    if design.matched and request.private:
        if not plain or method == "objective" or request.link != LOGIT or design.davidson:
            raise ValueError(
                "pair_counts='proportional' is for net wins of models without covariates under "
                "the logit: leave pair_counts= out, or leave out covariates, ties='davidson', "
                "method='objective' and link=."
            )
        return tuple(_of_counts(request, "wins and losses"))
    if design.davidson:
        return _with_ties(request)
    counted = design.offered is not None or design.weights is not None
    if counted and (method == "objective" or request.link != LOGIT):
        raise ValueError(
            "choices from offered sets and weighted comparisons are fitted to noisy counts under "
            "the logit: leave method= and link= out."
        )
    if method == "objective" and not plain:
        raise ValueError(
            "method='objective' is proved for models without covariates only: use "
            "method='counts' or leave it at 'auto'."
        )
    if method != "objective":
        # maximum likelihood uses covariates themselves, net wins only their instruments
        nets = request.private or (
            request.link == LOGIT and not (design.covariates or INTERCEPT).contest
        )
        plans += _of_counts(request, "net wins" if nets else "win matrix")
        if (
            plain
            and design.pairs is None
            and request.private
            and len(design.items) <= MAX_ITEMS_WIN_MATRIX
        ):
            plans += _of_counts(request, "win matrix")
    perturbed = (
        plain
        and request.private
        and design.kind == "private"
        and request.dependence != "pairs"
        and request.noise in ("auto", "laplace")
    )
    if method == "objective" or (method == "auto" and perturbed):
        plan = _of_objective(request)
        if method == "objective" or plan.gamma >= MIN_RIDGE * _objective_noise(request, plan):
            plans.append(plan)
    if len({plan.mechanism for plan in plans}) > 1:  # if not, they are already in order
        plans.sort(key=lambda plan: predicted_error(request, plan))
    return tuple(plans)


def _with_ties(request: Request) -> tuple[Choice, ...]:
    """Return the plans of a model with a tie parameter: net wins, and the number of ties.

    The number of ties has a share of epsilon if a unit can have more ties than the noise of its net
    wins protects (:func:`privrank.privacy.sensitivity.tie_noise`).
    """
    if request.method == "objective":
        raise ValueError(
            "method='objective' perturbs the loss of answers without ties: use method='counts' or "
            "leave it at 'auto', or ties=True, which counts a tie as half a win to each."
        )
    if request.link != LOGIT:
        raise ValueError(
            f"ties='davidson' is a model for the logit link, but link={request.link.name!r} was "
            "given. Leave link= out, or use ties=True, which counts a tie as half a win to each."
        )
    if len(request.design.items) > MAX_ITEMS_WITH_TIES:
        raise ValueError(
            f"ties='davidson' is fitted for at most {MAX_ITEMS_WITH_TIES} items, got "
            f"{len(request.design.items)}: use ties=True, which counts a tie as half a win to "
            f"each, or fewer items."
        )
    return tuple(
        plan
        if ties_left(request.design.sensitivity, plan.noise)
        else replace(
            plan, shares={name: share for name, share in plan.shares.items() if name != TIES}
        )
        for plan in _of_counts(request, "net wins")
    )


def _of_counts(request: Request, mechanism: Mechanism, *more: str) -> list[Choice]:
    """Return the plans that release counts in one way, the least harmful noise first.

    `more` are side releases in addition to those that net wins always need.
    """
    alone = mechanism == "win matrix" and request.private  # it contains the pair counts
    sides, form = side_shares(request, more if alone else more + _side_releases(request))
    return [
        Choice(mechanism, sides, form=form, noise=noise, link=request.link)
        for noise in noises_left(request, mechanism, sides)
    ]


def _of_objective(request: Request) -> Choice:
    """Return the plan of objective perturbation, with the caller's ridge or the best one."""
    if request.noise not in ("auto", "laplace"):
        raise ValueError(
            f"noise={request.noise!r} is for counts, but objective perturbation has continuous "
            "Laplace noise. Use method='counts' or noise='auto'."
        )
    sides, form = side_shares(request, (OUTPUT, *_side_releases(request)))
    plan = Choice("objective perturbation", sides, form=form, link=request.link)
    gamma = _objective_ridge(request, plan) if request.penalty is None else request.penalty
    if request.method == "objective" and gamma <= 0 and request.private:
        raise ValueError(
            "penalty must be positive for objective perturbation, because the ridge is part of "
            "the guarantee: use penalty='auto' or method='counts'."
        )
    return replace(plan, gamma=gamma)


def _side_releases(request: Request) -> tuple[str, ...]:
    """Return the side releases that net wins need, including side releases for covariates."""
    return tuple(
        name for name, spec in PARTS.items() if spec.needed(request.design, request.private)
    )


def _objective_noise(request: Request, plan: Choice) -> float:
    """Return the noise scale of objective perturbation at the plan's ridge; inf if none is safe."""
    if plan.gamma <= 0:
        return math.inf
    share = request.epsilon * (1.0 - sum(plan.shares.values()))
    return objective_scale(request.design.sensitivity, plan.gamma, share, loss_bounds(plan.link))


def _expected(request: Request, plan: Choice) -> tuple[ScoreFunction, float, float]:
    """Return the score of a private plan, and the curvature and score variance of a contrast."""
    score = ScoreFunction(
        plan.link,
        plan.mechanism == "objective perturbation" and loss_bounds(plan.link).answers_curve,
    )
    design = request.design
    information = nominal_information(len(design.items), design.nominal_total, score)
    return score, information, information * (score.mean_variance / score.mean_curvature)


def _objective_ridge(request: Request, plan: Choice) -> float:
    """Return the ridge of least predicted risk, and the noise scale that it permits.

    For a contrast with curvature I and variance r I of its score the risk is
    (r I + 2 lam^2 + gamma^2 s^2) / (I + gamma)^2 for worths of standard deviation s (1 for the
    logit, where r = 1). Here lam falls with gamma until the determinant uses no epsilon.
    """
    score, information, sampling = _expected(request, plan)
    if not request.private:
        return default_ridge(information, 0.0, score)
    share = request.epsilon * (1.0 - sum(plan.shares.values()))

    def risk(log_gamma: float) -> float:
        gamma = math.exp(log_gamma)
        lam = min(_objective_noise(request, replace(plan, gamma=gamma)), 1e50)
        return (sampling + 2.0 * lam**2 + gamma**2 * score.spread**2) / (information + gamma) ** 2

    best = minimize_scalar(
        risk, bounds=(math.log(0.1 / share), math.log(1e4 / share)), method="bounded"
    )
    return float(math.exp(best.x))


def predicted_error(request: Request, plan: Choice) -> float:
    """Predict the mean squared error of a contrast of length 1 of the worths.

    The number of comparisons is the one that the public facts suggest.

    Notes
    -----
    **Statistic.** The prediction uses public numbers, for worths of the score's spread s and equal
    counts of the pairs. Take a contrast with curvature I, score variance r I + v and ridge gamma,
    which shrinks it by the share q = gamma / (I + gamma). Its error is
    (r I + v + gamma^2 s^2) / (I + gamma)^2, or (1 - q^2)^2 (r I + v) / I^2 + q^4 s^2 after the
    correction of the ridge's bias.

    The noise v includes the noise of net wins, of both cells of each pair or of the perturbed
    objective, and the noise of released pair counts. An error in the count of a pair moves the
    expected wins of its items by its product with F - 1/2. All other
    releases enter through their shares of epsilon.
    """
    design = request.design
    penalty = request.penalty
    score, information, sampling = _expected(request, plan)
    m = len(design.items)
    if plan.mechanism == "objective perturbation":
        noise = 2.0 * _objective_noise(request, plan) ** 2
    elif plan.mechanism == "win matrix":
        # each pair's two cells, at even odds, in a round robin of m items
        noise = 0.5 * m * _cell_variance(request, plan)
    else:
        noise = _net_variance(request, plan, score)
        if design.unit == "row" and design.pairs is not None and design.pairs.origin in ASSERTED:
            # pairs may have been fixed, or chosen at random: half way between the two
            sampling = 0.5 * (sampling + information * 0.25 / score.mean_curvature)
    if design.pairs is None:  # so each pair count has an error
        error = (
            2.0 * _cell_variance(request, plan)
            if plan.mechanism == "win matrix"
            else _noise(request, plan, PAIR_COUNTS).distribution.variance
        )
        noise += m * error * score.mean_square
    variance = sampling + noise
    spread = score.spread**2
    gamma = plan.gamma
    if plan.mechanism != "objective perturbation":
        gamma = default_ridge(information, noise, score) if penalty is None else penalty
    if penalty is not None:
        return (variance + gamma**2 * spread) / (information + gamma) ** 2
    taken = gamma / (information + gamma)
    return float((1.0 - taken**2) ** 2 * variance / information**2 + taken**4 * spread)


def _net_variance(request: Request, plan: Choice, score: ScoreFunction) -> float:
    """Return the variance of the noise of half a net win, including noise of item counts.

    An error in the count of an item moves its expected wins by its mean score, the mean of F - 1/2
    over its opponents. The F - 1/2 of different opponents have a correlation of about 1/2.
    """
    counts = _item_error(request, plan)
    if plan.mechanism == "wins and losses":  # the difference and the sum have the same noise
        return counts * (0.25 + 0.5 * score.mean_square)
    nets = deviation(_noise(request, plan, NET), len(request.design.items))
    return (0.5 * nets) ** 2 + 0.5 * counts * score.mean_square


def _noise(request: Request, plan: Choice, name: str) -> PartNoise:
    """Return the noise that a part will have."""
    return PARTS[name].calibrate(
        request.design, noise_request(request.design, plan, request.epsilon, request.delta)
    )


def _item_error(request: Request, plan: Choice) -> float:
    """Return the error variance of an item's comparisons; 0 where they are not released."""
    if plan.mechanism == "wins and losses":
        return side_deviation(_noise(request, plan, SIDES), request.design) ** 2
    if ITEM_COUNTS not in plan.shares:
        return 0.0
    return _noise(request, plan, ITEM_COUNTS).distribution.variance


def _cell_variance(request: Request, plan: Choice) -> float:
    """Return the variance of the noise of a cell of the win matrix, in wins."""
    cells = _noise(request, plan, WINS)
    return float(
        ((0.5 if request.design.ties else 1.0) / cells.fineness) ** 2 * cells.distribution.variance
    )
