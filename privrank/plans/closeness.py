"""The noise of a comparison of samples, and of what is released beside it: from public numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from privrank.hypotheses.interval import THRESHOLD_LEVEL
from privrank.hypotheses.statistic import Comparison
from privrank.privacy.budget import pure_epsilon, split
from privrank.privacy.knorm import PermutohedronNoise
from privrank.privacy.netnoise import ZeroSumLaplace
from privrank.privacy.noise import DiscreteLaplace
from privrank.privacy.sensitivity import RankingSensitivity
from privrank.release.names import DECISION, DETAILS, PVALUE, STATISTIC
from privrank.release.plan import QUIET, PartPlan, Plan, Setting
from privrank.release.release import Release
from privrank.release.survey import Sample
from privrank.util.checks import check_extra

__all__ = [
    "FEWEST",
    "LARGEST_GRAM",
    "MOST",
    "MOST_TABULATED",
    "ONE_NUMBER",
    "RELEASED_STEPS",
    "check_deal",
    "check_gram",
    "check_scale",
    "detail_items",
    "noise_scale",
    "plan_comparison",
    "plan_details",
    "smoothing_scale",
]

_LARGEST_ZERO_SUM = 100
"""Items up to which noise that sums to zero is tried; beyond, it saves less than 2 % of the
standard deviation. It is drawn by rejection, which takes ever longer for scales below 1."""

SMOOTHING = 2.25
"""Noise scale of the smoothed p-value in units of sensitivity / epsilon."""

RELEASED_STEPS = 10_000
"""A released p-value is a multiple of one in this many."""

SLACK = 1 + 2.0**-16
"""Noise scales are larger by this factor, for rounding errors: a kernel distance is computed to
some 1e-9, a hundred-thousandth of the sensitivity of the largest samples."""

LARGEST_GRAM = 20_000
"""Rankings up to which a kernel matrix is computed; time and memory grow with the square."""

MOST_TABULATED = 6
"""Items up to which rankings are counted one by one."""

LARGEST_DEAL = 10**9
"""Respondents below which NumPy draws hypergeometric numbers."""

EFFECT_GRID = 1024
"""Lattice steps of a released effect within its sensitivity; two more allow for rounding."""

ONE_NUMBER = EFFECT_GRID + 2
"""How far one unit moves each number of an effect, in lattice steps."""

FEWEST, MOST = 19, 100_000
"""Re-labellings that a test may have."""


def detail_items(
    details_epsilon: object, chosen: object, epsilon: float, sample: Sample
) -> tuple[int, ...]:
    """Return the places of the items whose totals are released; none if they are not wanted."""
    alone = sample.private_labels or sample.paired
    if details_epsilon is None and (epsilon < np.inf or alone):
        if chosen is not None:
            raise ValueError("details_items= says what details_epsilon= is for: give it, too.")
        return ()
    if details_epsilon is not None:
        check_extra("details_epsilon", "the table of what differs", details_epsilon, epsilon)
    if alone:
        raise ValueError(
            "details_epsilon= is for groups of different respondents whose sizes are public: leave "
            "it out with labels='private' and with paired=True."
        )
    if chosen is None:
        return tuple(range(len(sample.items)))
    noun = "items" if sample.kind == "rankings" else "categories"
    if isinstance(chosen, str) or not isinstance(chosen, Iterable):
        raise TypeError(
            f"details_items must be a sequence of names, got {type(chosen).__name__}: list the "
            f"{noun}."
        )
    names = [str(name) for name in chosen]
    if not names or len(set(names)) < len(names) or not set(names) <= set(sample.items):
        raise ValueError(
            f"details_items must name at least one of the {noun}, none of them twice: leave it out "
            f"for all."
        )
    return tuple(sorted(sample.items.index(name) for name in names))


def plan_details(sample: Sample, epsilon: float, items: Sequence[int]) -> dict[str, PartPlan]:
    """Calibrate the noise of the totals by group, from public numbers.

    Given what may be spent, and the places of the items that are wanted. Of the distributions that
    apply it takes the one with the least variance.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows, in
    their group; who is in which group is public. Of a respondent's rows one is taken by a secret
    draw of their own, so that a guarantee for one row holds for the respondent
    (:func:`privrank.plans.samples.plan_sample`). The totals of a group are the counts of its
    categories, or the sums of its items' ranks less one. A replaced unit moves the totals of its
    own group only, so noise that is epsilon-private for each group's totals is epsilon-private for
    all of them together, and epsilon is spent once for all groups (parallel composition).

    Within the group: a choice that is replaced lowers one count and raises another, by 1 each, l1
    norm 2 (1 where a single category is wanted); a replaced ranking adds the difference of two
    permutations (:class:`privrank.privacy.sensitivity.RankingSensitivity`), one step of K-norm
    noise. Where all items are released the totals sum to a public number, n_g, or n_g m (m - 1) /
    2, and differences of neighbours to 0, so that noise that sums to zero applies. Totals of
    rankings with K-norm noise need all items; those that were not asked for are left out of what is
    inferred.
    """
    m, some = len(sample.items), len(items) < len(sample.items)
    moved = _l1(sample, len(items))
    parts = [PartPlan(DiscreteLaplace.calibrate(moved, epsilon), moved, epsilon)]
    if m <= _LARGEST_ZERO_SUM and epsilon < np.inf:
        if not some and epsilon <= moved:
            parts.append(PartPlan(ZeroSumLaplace.calibrate(m, moved, epsilon), moved, epsilon))
        if sample.kind == "rankings":
            body = PermutohedronNoise.calibrate(m, epsilon)
            fine = body.fineness  # which this noise multiplies by itself
            parts.append(PartPlan(body, fine, epsilon, 1.0 / fine))
    least = min(parts, key=_variance)
    return {f"{DETAILS} {number}": least for number in range(len(sample.groups))}


def _l1(sample: Sample, items: int) -> int:
    """Return how far one unit moves the totals of so many items of its group."""
    if sample.kind == "rankings":
        return RankingSensitivity(len(sample.items)).some_borda_l1(items)
    return min(items, 2)


def _variance(part: PartPlan) -> float:
    assert part.noise is not None
    return part.noise.variance * part.step**2


def smoothing_scale(sensitivity: float, epsilon: float) -> float:
    """Return the Laplace scale at which the smoothed p-value spends `epsilon`; 0 for infinity."""
    return noise_scale(SMOOTHING, sensitivity, epsilon)


def noise_scale(factor: float, sensitivity: float, epsilon: float) -> float:
    """Return factor x sensitivity / epsilon with some slack for rounding; 0 for infinity."""
    if math.isinf(epsilon):
        return 0.0
    scale = factor * SLACK * sensitivity / epsilon if epsilon > 0 else math.inf
    if not 0 < scale < math.inf:
        raise ValueError(
            f"the noise needs a positive sensitivity and epsilon, got {sensitivity} and {epsilon}."
        )
    return scale


def check_gram(rankings: int) -> None:
    """Refuse, given a public number of rankings, a kernel matrix that would be too large."""
    if rankings > LARGEST_GRAM:
        raise ValueError(
            f"kernel tests compare all pairs of rankings, of at most {LARGEST_GRAM:,} in all, and "
            f"these are {rankings:,}: test a random sample of the respondents."
        )


def check_deal(total: int) -> None:
    """Refuse more respondents than can be permuted; their number is public."""
    if total >= LARGEST_DEAL:
        raise ValueError(
            f"at most {LARGEST_DEAL - 1:,} units can be permuted, and these are {total:,}: compare "
            f"a random sample of them."
        )


def plan_comparison(
    sample: Sample,
    asked: Comparison,
    epsilon: float,
    delta: float,
    *,
    method: str,
    effect_epsilon: float | None,
    details_epsilon: float | None,
    details_items: Sequence[int],
    alpha: float,
    permutations: int,
) -> Plan:
    """Calibrate the noise of a comparison of samples, from public numbers.

    Parameters
    ----------
    sample : Sample
        Public facts of the samples.
    asked : Comparison
        Statistic and form of release.
    epsilon, delta : float
        The guarantee of the test.
    method : str
        The method that asks for this statistic.
    effect_epsilon : float or None
        What an effect size may spend on top.
    details_epsilon : float or None
        What totals by group may spend on top.
    details_items : sequence of int
        Places of the items whose totals are released; empty for none.
    alpha : float
        Level of a decision.
    permutations : int
        Number of re-labellings.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows, in
    their sample; who is in which sample is public, unless the sensitivity of `asked` is that of
    secret labels. Of a respondent's rows one is drawn by an independent secret coin, so that what
    is private for one row each is private for respondents
    (:func:`privrank.plans.samples.plan_sample`). The statistic moves by at most its
    sensitivity at every re-labelling (:mod:`privrank.mechanisms.permutation`), the
    re-labellings are secret and drawn without looking at the data, and the smoothed p-value is
    private at its share (:mod:`privrank.mechanisms.closeness`); a decision in its place has a proof
    of its own. The effect is the distance of two groups, and beside it, where a distance of 0 is
    the null hypothesis, one number that the same re-labellings decide
    (:func:`privrank.mechanisms.closeness.null_threshold`). Each moves by at most the sensitivity at
    every set of re-labellings; on a grid of a 1024th of it, floor, it gets discrete Laplace noise
    for 1026 steps in each: two floors differ by at most 1025, and one step allows for
    floating-point arithmetic. Given the re-labellings p-value and effect compose, and so they do
    mixed over them. Totals by
    group (:func:`privrank.plans.closeness.plan_details`) have noise of their own. Given the rows
    that were drawn all compose to xi = epsilon + effect_epsilon + details_epsilon - log(1 - delta).
    """
    total = epsilon + (effect_epsilon or 0.0) + (details_epsilon or 0.0)
    wanted = asked.effect is not None and (effect_epsilon is not None or math.isinf(epsilon))
    extra = {STATISTIC: effect_epsilon, DETAILS: details_epsilon}
    shares = {"test": math.inf, STATISTIC: math.inf, DETAILS: math.inf}
    if not math.isinf(total):
        parted = {name: each / total for name, each in extra.items() if each is not None}
        shares = split(pure_epsilon(total, delta), parted, "test")
    if asked.decision is None:
        parts = {PVALUE: PartPlan(QUIET, 1, shares["test"], 1.0 / RELEASED_STEPS)}
    else:
        parts = {DECISION: PartPlan(QUIET, 1, shares["test"])}
    scale = _scale(asked, shares["test"])
    settings: dict[str, Setting] = {"permutations": float(permutations), "scale": scale}
    if asked.decision is not None:
        settings["level"] = alpha
    if wanted:
        parts[STATISTIC] = _effect_plan(asked, shares[STATISTIC])
        if _second(asked) == "threshold":
            settings[THRESHOLD_LEVEL] = alpha
    if details_items:
        parts |= plan_details(sample, shares[DETAILS], details_items)
        settings[DETAILS] = " ".join(map(str, details_items))
    if sample.kind == "rankings" and len(sample.items) > MOST_TABULATED:
        check_gram((1 + sample.paired) * sample.nobs)
    check_deal(sample.nobs)
    return Plan("ClosenessTest", asked.name, method, total, delta, parts, settings)


def _scale(asked: Comparison, epsilon: float) -> float:
    """Return the scale of the noise that is smoothed over, or decides."""
    if asked.decision is None:
        return smoothing_scale(asked.sensitivity, epsilon)
    return asked.decision.scale(epsilon)


def check_scale(release: Release, asked: Comparison) -> None:
    """Refuse an archived release whose noise is not that of its statistic."""
    plan = release.plan
    epsilon = plan.parts[PVALUE if asked.decision is None else DECISION].epsilon
    if not (
        math.isclose(plan.number("scale"), _scale(asked, epsilon), rel_tol=1e-6)
        and FEWEST <= plan.number("permutations") <= MOST
        and plan.number("permutations").is_integer()
    ):
        raise ValueError("release must have the noise of its statistic.")
    effect = plan.parts.get(STATISTIC)
    if effect is not None and _effect_plan(asked, effect.epsilon).step != effect.step:
        raise ValueError("release must have the noise of its statistic.")


def _second(asked: Comparison) -> str | None:
    """Name the number that is released beside a distance: a mean, a threshold, or none."""
    if asked.distance is None or not asked.distance.exact:
        return None
    return "threshold" if asked.distance.categories is None else "mean"


def _effect_plan(asked: Comparison, epsilon: float) -> PartPlan:
    assert asked.effect is not None
    numbers = 1 if _second(asked) is None else 2
    sensitivity = numbers * ONE_NUMBER
    noise = DiscreteLaplace.calibrate(sensitivity, epsilon)
    return PartPlan(noise, sensitivity, epsilon, asked.effect / EFFECT_GRID)
