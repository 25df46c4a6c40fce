"""Possible releases of paired comparisons, the least harmful noise for each, and its calibration.

A :class:`Choice` states what a fit releases. :func:`plan_comparisons` assigns each part the
distribution of its noise, before any sensitive data are read. The same public numbers tell whether
the fit will identify its worths (:func:`check_will_identify`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from scipy.special import stdtrit

from privrank.bradley_terry.fit import loss_bounds
from privrank.bradley_terry.paircounts import MAX_ERROR, parts_of
from privrank.distributions.links import LOGIT, UNIT_ROUNDOFF, Link
from privrank.hypotheses.nulls import public_generator
from privrank.privacy.accounting import pure_epsilon, split
from privrank.privacy.noise import DiscreteLaplace
from privrank.privacy.sensitivity import (
    LOGISTIC,
    MAX_ITEMS,
    LossBounds,
    NoiseName,
    PartNoise,
    UnitSensitivity,
    net_noise,
    objective_loss,
    side_noise,
)
from privrank.release import names
from privrank.release.release import Mechanism, Release
from privrank.release.survey import (
    INTERCEPT,
    PARTS,
    QUIET,
    Design,
    Form,
    NoiseRequest,
    PartPlan,
    Perturbation,
    Plan,
    Setting,
    equivalent_variance,
    plan_parts,
    squared_units,
)
from privrank.util.checks import check_choice, warn
from privrank.util.solvers import bisect

Dependence = Literal["auto", "worst", "pairs", "none", "cluster"]

SHARES: dict[Form, tuple[float, ...]] = {"worst": (0.05, 0.10, 0.15), "pairs": (0.1, 0.2, 0.3)}
"""Shares of epsilon that each form may take."""

GROUP_SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
"""Shares of epsilon that the largest design effect may have in models with covariates."""

CHOICE_SHARE = 0.1
"""Share of epsilon that the largest design effect of choices from offered sets takes."""

MAX_NUMBERS = 2**25
"""Weights of the contrasts of a model with covariates that fit into memory."""

TYPICAL_EFFECT = 1.5
"""Design effect of a survey whose respondents differ, but not in one direction."""


def requested_dependence(design: Design, epsilon: float, dependence: Dependence) -> Form | None:
    """Return the form that the caller requests, None if the form must be chosen.

    Raises
    ------
    ValueError
        If the form does not apply.
    """
    check_choice("dependence", dependence, Dependence)
    if design.offered is not None and dependence in ("pairs", "cluster"):
        raise ValueError(
            f"dependence={dependence!r} is for paired comparisons. For choices from offered sets "
            "use dependence='worst' or leave it at 'auto'."
        )
    if dependence == "none" or (dependence == "auto" and design.unit == "row"):
        return "none"
    if design.unit == "row":
        raise ValueError(
            f"dependence={dependence!r} concerns the answers of one respondent. Name the "
            "respondent column with respondent=."
        )
    if dependence == "cluster" and not math.isinf(epsilon):
        raise ValueError(
            "dependence='cluster' needs the covariance of all answers without noise: use "
            "dependence='auto', or epsilon=numpy.inf for the non-private run."
        )
    contests = len((design.covariates or INTERCEPT).contest)
    if design.offered is None and dependence in ("auto", "cluster") and math.isinf(epsilon):
        many = contests and design.pairs is not None and len(design.pairs.count) > _MOST_MOMENTS
        if many and dependence == "cluster":
            raise ValueError(
                f"dependence='cluster' is for at most {_MOST_MOMENTS} different comparisons, and "
                "contest covariates make more. Use dependence='auto' or 'worst'."
            )
        return "worst" if many else "cluster"
    # sums of squared contributions must stay within 64 bits, and the contrasts, which exist for
    # every covariate value, within memory
    rows = design.sensitivity.effective_rows
    facts = design.covariates
    # instruments multiply an answer by up to 32 steps, twice the largest weight of an item
    if design.offered is None and squared_units(design) * (rows * (1 + 16 * contests)) ** 2 > 2**46:
        raise ValueError(
            f"max_rows={design.max_rows} is too large to measure dependence. State the length of "
            "the questionnaire, or use dependence='none'."
        )
    # with the coarsest weights, which are up to 16, the answers to offered sets add at most
    # (32 half)^2 for each respondent, where half is half the l1 sensitivity
    if design.offered is not None and design.nobs * (design.sensitivity.net_l1 // 2) ** 2 > 2**50:
        raise ValueError(
            "dependence cannot be measured for questionnaires with so many answers: use "
            "dependence='none'."
        )
    if facts is not None and (
        len(design.items) ** 2 * (len(facts.columns) + facts.cells) * len(np.unique(facts.kinds))
        > MAX_NUMBERS
    ):
        raise ValueError(
            "dependence cannot be measured for so many combinations of covariate values: cut "
            "numeric covariates into declared levels, or use dependence='none'."
        )
    if design.offered is not None:
        return "worst"
    return None if dependence == "auto" else dependence


def choose_form(
    design: Design,
    epsilon: float,
    delta: float,
    taken: float,
    form: Form | None = None,
    share: float | None = None,
    *,
    nets: bool = True,
) -> tuple[Form, float]:
    """Return the form in which dependence is released, and its share of epsilon.

    Parameters
    ----------
    design : Design
        Public facts of the survey, whose unit is a respondent.
    epsilon, delta : float
        The guarantee of the whole fit.
    taken : float
        Share of epsilon that other side releases take.
    form, share : str, float, optional
        The caller's requests.
    nets : bool
        Whether scores are net wins, and ties if these have a parameter. Only the log-losses of
        objective perturbation have other scores.

    Notes
    -----
    **Statistic.** For two worths that are equal, in units of the variance that independent answers
    would give their net wins, a fit has an interval of half width w(d) for the design effect d
    (:func:`_half_width`). The form of the least w(1.5)^2 w(D) is taken: 1.5 stands for an ordinary
    survey. D stands for a survey with questions spread evenly over the pairs, in which respondents
    are polarised about one pair of items. All answers about either of the two items reflect this,
    with half the weight. The second moments of all pairs assign this effect to that pair alone; the
    largest design effect assigns it to all pairs. Only one form is available with covariates and
    with objective perturbation. With covariates the share is the share with the least w(1.5) for
    one group of average size. Choices from offered sets have one form and one share.

    Raises
    ------
    ValueError
        If second moments of pairs are requested but are not the moments of the scores.
    """
    if design.offered is not None:
        return "worst", CHOICE_SHARE if share is None else share
    alone = design.covariates is not None or design.weights is not None or not nets
    if alone and form == "pairs":
        raise ValueError(
            "dependence='pairs' is for net wins and models without covariates or weights: use "
            "dependence='worst' or leave it at 'auto'."
        )
    forms: tuple[Form, ...] = ("worst",) if alone else tuple(SHARES)
    usual = SHARES if design.covariates is None else dict.fromkeys(SHARES, GROUP_SHARES)
    candidates = [
        (name, part)
        for name in (forms if form is None else (form,))
        for part in (usual[name] if share is None else (share,))
    ]
    if math.isinf(epsilon):
        return min(candidates)
    # the deviation of net wins under the best distribution
    if design.matched:
        whole = pure_epsilon(epsilon, delta)
        least = side_deviation(
            side_choices(design.sensitivity, whole, ties=bool(design.ties))[0], design
        )
    else:
        least = deviation(noise_choices(design.sensitivity, epsilon, delta)[0], len(design.items))
    costs = [_cost(design, epsilon, least, taken, *candidate) for candidate in candidates]
    return min(zip(costs, candidates, strict=True))[1]


def _cost(
    design: Design, epsilon: float, least: float, taken: float, form: Form, share: float
) -> float:
    """Return the cost of a form at a share, given the deviation of net wins with all of epsilon."""
    sensitivity = design.sensitivity
    n = design.nobs
    if taken + share >= 1.0:  # no epsilon is left for it
        return math.inf
    rows = sensitivity.effective_rows
    pairs = sensitivity.pairs
    independent = 2.0 * sensitivity.items * rows / pairs
    # answering the pair itself, and then either of its items with a third
    largest = (
        2 * rows if not sensitivity.distinct else 2 + min(rows - 1, 2 * (sensitivity.items - 2))
    ) ** 2
    # units, or the sum of the squares of their weights, in units of the largest weight
    counted = squared_units(design) / sensitivity.weight**2
    least = least / sensitivity.weight
    noise = 2.0 * least**2 / ((1.0 - taken - share) ** 2 * counted * independent)
    moved = float(
        largest
        if form == "worst"
        else sensitivity.moments_l1(ties=design.davidson, expected=design.varied)
    )
    if design.varied:
        # largest square of an answer less what is expected of it, where that is a half either way
        moved *= 2.25
    side = min(math.sqrt(2.0) * moved / (independent * share * counted * epsilon), 1e100)
    if (facts := design.covariates) is not None:
        # a group alone; without information its design effect is the largest possible one
        # all answers over the answers of one group, a mean over the groups
        groups = float(facts.cells)
        if design.pairs is not None and design.pairs.origin == "observed":
            group = facts.cell[design.pairs.first // len(design.items)]
            answers = np.bincount(group, design.pairs.count)
            groups = float((answers.sum() / answers[answers > 0]).mean())
        noise = groups * noise
        # a respondent moves contrasts of groups twice as far if worths differ
        side = 2.0 * groups * side
        return min(
            _half_width(TYPICAL_EFFECT, side, noise, n), _half_width(float(rows), 0.0, noise, n)
        )
    even = _half_width(TYPICAL_EFFECT, side, noise, n)
    # probability that a respondent has both of two answers that can agree
    both = rows * (rows - 1) / (pairs * max(pairs - 1, 1) if sensitivity.distinct else pairs**2)
    others = 4 * (sensitivity.items - 1) ** 2 - (
        2 * sensitivity.items if sensitivity.distinct else 0
    )
    divided = max(TYPICAL_EFFECT, 0.5 * (1.0 + both * others / independent))
    return even**2 * (_half_width(divided, side, noise, n) if form == "worst" else even)


def _half_width(effect: float, side: float, noise: float, n: int) -> float:
    """Return the half width of an interval for a sampling variance that is itself noisy.

    The arguments are the design effect, the standard deviation of its noise, and the variance of
    the noise of the estimate. The use of t quantiles accounts for the error of the variance.
    """
    total = effect + noise
    df = 1.0 / (0.5 * (side / total) ** 2 + (effect / total) ** 2 / max(n - 1, 1))
    return float(stdtrit(df, 0.975)) * math.sqrt(total)


OUTPUT = "output"

MIN_RIDGE = 1 / 200
"""Least ridge of objective perturbation, over its noise scale."""

DEFAULT_SHARES = {
    OUTPUT: 0.01,
    **{name: spec.share for name, spec in PARTS.items() if isinstance(spec.share, float)},
}
"""Default shares of epsilon for the side releases of a fit."""

BALANCED = tuple(name for name, spec in PARTS.items() if spec.share == "balanced")
"""Side releases whose shares minimise the error of these releases and the net wins together."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The planned releases of a fit, before their noise is calibrated.

    Parameters
    ----------
    mechanism : {"net wins", "wins and losses", "win matrix", "objective perturbation"}
        The main release.
    shares : mapping of str to float
        Shares of epsilon of the side releases, by their names in
        :data:`privrank.release.survey.PARTS`, and of ``"output"``, the noise on the worths of
        objective perturbation.
    gamma : float
        Ridge of objective perturbation.
    form : {"worst", "pairs", "none", "cluster"}
        Form in which the dependence of a respondent's answers is released; ``"cluster"`` means the
        moments that the non-private run keeps.
    noise : str
        Distribution of the noise on net wins, wins and losses, or the win matrix.
    link : Link
        Link of the model. The release depends on it under objective perturbation, and in the
        non-private run, which keeps the wins of every observed pair if the link is not the logit.
    """

    mechanism: Mechanism
    shares: Mapping[str, float] = field(default_factory=dict)
    gamma: float = 0.0
    form: Form = "none"
    noise: NoiseName = "laplace"
    link: Link = LOGIT


def deviation(noise: PartNoise, items: int) -> float:
    """Return the standard deviation, in net wins, of equivalent independent noise.

    Only differences between items count.
    """
    return math.sqrt(equivalent_variance(noise.distribution, items)) / noise.fineness


def noise_choices(
    sensitivity: UnitSensitivity,
    epsilon: float,
    delta: float,
    share: float = 1.0,
    *,
    ties: bool = False,
) -> tuple[PartNoise, ...]:
    """Return the noise of every distribution that applies, the least harmful first.

    The arguments are the guarantee of a fit, the share of epsilon of the net wins, and whether the
    number of ties is released with them.
    """
    noises = []
    for name in get_args(NoiseName):
        if sensitivity.items > MAX_ITEMS.get(name, sensitivity.items) or (
            name == "gaussian" and (ties or delta == 0)
        ):
            continue
        whole = epsilon if name == "gaussian" else pure_epsilon(epsilon, delta)
        try:
            noises.append(net_noise(sensitivity, name, share * whole, delta, ties=ties))
        except ValueError:
            # the epsilon is too small for the integers of this distribution
            if name == "laplace":
                raise
    return tuple(sorted(noises, key=lambda noise: deviation(noise, sensitivity.items)))


def side_choices(
    sensitivity: UnitSensitivity, epsilon: float, *, ties: bool
) -> tuple[PartNoise, ...]:
    """Return the noise of either distribution of wins and losses, the less harmful first."""
    cells = 2 * sensitivity.items
    names: tuple[NoiseName, ...] = ("laplace", "zero-sum-laplace")
    noises = [
        side_noise(sensitivity, name, epsilon, ties=ties)
        for name in names
        if cells <= MAX_ITEMS.get(name, cells)
    ]
    return tuple(sorted(noises, key=lambda noise: deviation(noise, cells)))


def side_deviation(noise: PartNoise, design: Design) -> float:
    """Return the standard deviation of net wins due to the noise of wins and losses."""
    return math.sqrt(0.5 if design.ties else 2.0) * deviation(noise, 2 * len(design.items))


OUTPUT_STEP = 2.0**-30
"""Grid on which objective perturbation publishes its worths."""

NEAREST = 2.0**-7
"""Distance of worths from grid steps, relative to ``far`` of the loss, when they are certified."""

_MOST_MOMENTS = 2000
"""Number of different comparisons up to which moments of respondents are kept, about 100 MB."""

_LARGEST = 2**61
"""Statistics stay below this bound, which leaves a margin for noise in 64 bits."""


def objective_scale(
    sensitivity: UnitSensitivity, gamma: float, epsilon: float, bounds: LossBounds = LOGISTIC
) -> float:
    """Return the smallest noise scale lam at which `gamma` is `epsilon`-private, inf if none.

    Bisection on the decreasing map lam -> loss keeps the private end. Therefore the returned scale
    satisfies ``objective_loss(sensitivity, lam, gamma, bounds) <= epsilon`` as computed.
    """
    if sensitivity.adjacency == "outcome" and not bounds.answers_curve:
        return sensitivity.slope_l1(bounds.slope, bounds.reversal) / epsilon * (1 + 1e-12)
    high = 4.0 * sensitivity.rows * max(1.0, bounds.slope) / epsilon
    for _ in range(200):
        if objective_loss(sensitivity, high, gamma, bounds) <= epsilon:
            break
        high *= 2.0
    else:
        return math.inf

    def short(scale: float) -> bool:
        return not (scale > 0 and objective_loss(sensitivity, scale, gamma, bounds) <= epsilon)

    _, high = bisect(short, 0.0, high, 5000, relative=1e-12)
    return high * (1 + 1e-12)


def perturbation(
    design: Design, gamma: float, epsilons: Mapping[str, float], link: Link
) -> Perturbation:
    """Fix the noise of objective perturbation from public numbers.

    The tolerance of the minimiser is a few times the largest rounding error of a gradient that any
    data set of this size can show, whatever the noise: see :func:`certified_worths`. A ridge is
    refused if it is small relative to the noise, or so small that rounding errors move worths far.
    """
    bounds = loss_bounds(link)
    spent = epsilons[names.WORTHS] + epsilons[OUTPUT]
    if math.isinf(spent):
        return Perturbation(gamma, 0.0, 0.0, 0.0, PartPlan(QUIET, 0, spent, OUTPUT_STEP))
    m = len(design.items)
    scale = objective_scale(design.sensitivity, gamma, epsilons[names.WORTHS], bounds)
    if math.isinf(scale):
        raise ValueError(
            f"penalty {gamma:g} is too small for objective perturbation at this epsilon: use "
            f"penalty='auto', a larger penalty or method='counts'."
        )
    answers = design.nobs * design.sensitivity.effective_rows
    errors = m + link.exact.accuracy + (9.0 if bounds.answers_curve else 7.0)
    # the logistic loss and the matching losses have slopes up to 1
    worst = UNIT_ROUNDOFF * errors * (2.0 * max(1.0, bounds.slope) * answers + m * gamma)
    if gamma < max(MIN_RIDGE * scale, 8.0 * worst / (NEAREST * link.exact.far)):
        raise ValueError(
            f"penalty {gamma:g} is too small for objective perturbation with noise of scale "
            f"{scale:.3g}: use penalty='auto', a larger penalty or method='counts'."
        )
    tolerance = max(1e-8, 8.0 * worst)
    cell = 2.0 ** (math.floor(math.log2(scale)) - 34)
    beta = tolerance + 0.5 * math.sqrt(m) * cell
    sensitivity = math.ceil(2.0 * math.sqrt(m) * beta / (gamma * OUTPUT_STEP)) + m
    part = PartPlan(
        DiscreteLaplace.calibrate(sensitivity, epsilons[OUTPUT]), sensitivity, spent, OUTPUT_STEP
    )
    return Perturbation(gamma, scale, cell, tolerance, part)


def check_perturbation(release: Release) -> None:
    """Refuse an archived release whose numbers do not match its objective."""
    objective = Perturbation.of(release.plan)
    part = objective.part
    if math.isinf(part.epsilon):
        return
    assert isinstance(part.noise, DiscreteLaplace)
    output = part.sensitivity / part.noise.scale
    shares = {names.WORTHS: part.epsilon - output, OUTPUT: output}
    reference = perturbation(release.design, objective.gamma, shares, release.link)
    numbers, again = (
        (solution.scale, solution.cell, solution.tolerance, solution.part.sensitivity)
        for solution in (objective, reference)
    )
    if part.step != OUTPUT_STEP or not np.allclose(numbers, again, rtol=1e-6, atol=0.0):
        raise ValueError("release must have the noise of its objective.")


def plan_comparisons(design: Design, choice: Choice, epsilon: float, delta: float, by: str) -> Plan:
    """Calibrate the noise of all parts of a fit, from public numbers.

    Parameters
    ----------
    design : Design
        Public facts of the comparisons.
    choice : Choice
        The release that was chosen.
    epsilon, delta : float
        The guarantee of the whole release.
    by : str
        The model that spends, for the ledger.

    Raises
    ------
    ValueError
        If no such noise exists at these numbers.

    Notes
    -----
    **Privacy.** Unit and neighbours as in `design`: replace one unit. The parts are pure
    differentially private, each at its share of xi = epsilon - log(1 - delta), and compose to xi,
    hence to (epsilon, delta) (:func:`privrank.privacy.accounting.pure_epsilon`). With Gaussian
    noise the main part is (its share of epsilon, delta)-private and the others are pure at their
    shares of epsilon, which composes to (epsilon, delta) as well. The noise of each
    part is from :func:`privrank.release.survey.plan_parts`. The worths of objective perturbation
    are covered by :func:`privrank.mechanisms.comparisons.draw_worths`. The ledger gets the
    zero-concentrated privacy of all parts too: a^2 / 2 of each pure one at a. A number of ties
    shares its noise with the net wins (:func:`privrank.privacy.sensitivity.tie_noise`): both are
    one pure part. So are a number of answered tasks and its totals
    (:func:`privrank.privacy.sensitivity.answered_noise`).
    """
    if math.isinf(epsilon) and design.kind == "private":
        design = replace(design, pairs=None)  # this run uses the observed counts
    main = main_part(choice)
    request = noise_request(design, choice, epsilon, delta)
    epsilons = request.epsilons
    parts = plan_parts(design, request)
    settings: dict[str, Setting] = {}
    # by public numbers no statistic exceeds 64 bits in lattice steps
    facts = design.covariates
    weight = 2 * facts.weight if facts is not None and facts.bounds else 2
    if design.offered is not None:  # an item has position scores of up to m - 1
        weight *= len(design.items)
    finest = max((part.fineness for part in parts.values()), default=1)
    if design.nobs * design.sensitivity.effective_rows * weight * finest >= _LARGEST:
        raise ValueError(
            "counts= add up to more comparisons than exact whole numbers allow under this noise: "
            "use a smaller epsilon, noise='laplace' or fewer comparisons."
        )
    if main == names.WORTHS:
        objective = perturbation(design, choice.gamma, epsilons, choice.link)
        parts[main] = objective.part
        settings = objective.settings
    if names.DEPENDENCE in parts:
        settings[names.DEPENDENCE] = choice.form
    spent = parts[main].rho
    if spent is None:
        spent = 0.5 * (epsilons[main] + epsilons.get(names.TIES, 0.0)) ** 2
    rho = sum(0.5 * share**2 for name, share in epsilons.items() if name not in (main, names.TIES))
    if choice.form == "cluster" and math.isinf(epsilon):
        moments = names.MOMENTS + names.TIE_MOMENTS * design.davidson
        parts |= {name: PartPlan(QUIET, 0, math.inf) for name in (*moments, names.BY_PAIR)}
    return Plan(
        by, choice.mechanism, choice.mechanism, epsilon, delta, parts, settings, rho + spent
    )


def main_part(choice: Choice) -> str:
    """Return the name of the main part of a release."""
    return names.WORTHS if choice.mechanism == "objective perturbation" else choice.mechanism


def noise_request(design: Design, choice: Choice, epsilon: float, delta: float) -> NoiseRequest:
    """Divide epsilon among the parts of a choice, whose noise can then be calibrated.

    Side releases have pure noise. With Gaussian noise delta is spent on the main release.
    """
    whole = epsilon if choice.noise == "gaussian" else pure_epsilon(epsilon, delta)
    main = main_part(choice)
    epsilons = split(whole, dict(choice.shares), main)
    # the noise of the net wins may also protect the ties, and it protects the answered tasks
    shared = {names.TIES: design.davidson, names.ANSWERED: design.silent}
    for name, released in shared.items():
        if main == names.NET and released:
            epsilons.setdefault(name, 0.0 if math.isfinite(epsilon) else math.inf)
    return NoiseRequest(epsilons, delta, choice.noise, choice.form)


_DRAWS = 100


_FIRST = 10
"""Releases that are simulated, and how many of them decide where all of these agree."""


def check_will_identify(design: Design, plan: Plan, *, allowed: bool) -> None:
    """Refuse a fit that will probably leave most worths unidentified; warn where it may.

    Raises
    ------
    ValueError
        If less than half of the worths are identified with a probability above one half, unless
        that is `allowed`.
    """
    failing = probably_unidentified(design, plan)
    if failing <= 0.05:
        return
    if failing <= 0.5 or allowed:
        warn(
            f"With probability {failing:.2f}, by public numbers, less than half of the worths "
            "will be identified: the comparison counts of the items are close to their noise "
            "level."
        )
        return
    smaller = "a smaller max_rows, " if design.max_rows > 1 else ""
    other = "" if design.matched else "pair_counts='proportional' if opponents met at random, "
    raise ValueError(
        "By public numbers less than half of the worths would be identified, because the numbers "
        f"of comparisons of {len(design.items)} items do not exceed their noise at epsilon = "
        f"{plan.epsilon:g}. Use {other}{smaller}a larger epsilon, a public design or PrivateTopK. "
        "With allow_unidentified=True the fit spends epsilon anyway."
    )


def probably_unidentified(design: Design, plan: Plan) -> float:
    """Return the probability that a fit identifies less than half of the worths.

    Notes
    -----
    **Statistic.** Numbers of comparisons are simulated with the noise of the plan, all pairs asked
    for equally often, and read like the numbers of a release
    (:func:`privrank.bradley_terry.paircounts.parts_of`). An item in a part of its own is not
    identified. Where some items are compared more often than others, more of them will not be.
    """
    m = len(design.items)
    variance = 0.0  # of the noise of a pair's comparisons, or of an item's if these are all
    if design.pairs is None or design.matched:
        # a pair's comparisons are two cells of a win matrix, an item's its wins and its losses
        for name, numbers in ((names.PAIR_COUNTS, 1), (names.WINS, 2), (names.SIDES, 2)):
            if (part := plan.parts.get(name)) is not None and part.noise is not None:
                # wins and losses are one vector; other noise has independent entries
                variance = numbers * part.step**2 * equivalent_variance(part.noise, 2 * m)
                break
    if variance == 0.0:
        return 0.0
    expected = design.nominal_total / design.sensitivity.pairs
    noise = variance if design.matched else (m - 1) * variance
    # 12 standard deviations of the noise of an item's comparisons leave no doubt
    if (m - 1) * expected > 12.0 * math.sqrt(noise + (m - 1) * expected):
        return 0.0
    rng = public_generator("identified", m)
    failed = np.zeros(_DRAWS, dtype=bool)
    for draw in range(_DRAWS):
        failed[draw] = _alone(design, expected, variance, rng) > 0.5
        if draw + 1 == _FIRST and failed[:_FIRST].all():
            return 1.0
    return float(failed.mean())


def _alone(design: Design, expected: float, variance: float, rng: np.random.Generator) -> float:
    """Return the share of items that one simulated release leaves alone."""
    m = len(design.items)
    pairs = design.sensitivity.pairs
    deviation = math.sqrt(variance)
    if design.matched:
        noisy = rng.normal((m - 1) * expected, math.sqrt(variance + (m - 1) * expected), m)
        return float((deviation > MAX_ERROR * np.maximum(noisy, 1.0)).mean())
    if design.distinct_pairs:
        answered = min(design.sensitivity.effective_rows / pairs, 1.0)
        compared = rng.binomial(design.nobs, answered, pairs)
    else:
        compared = rng.poisson(expected, pairs)
    noisy = compared + rng.normal(0.0, deviation, pairs)
    if (member := parts_of(noisy, variance, m)) is None:
        return 0.0
    return float((np.bincount(member)[member] == 1).mean())
