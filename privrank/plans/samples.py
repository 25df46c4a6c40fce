"""The releases of tests and their noise, planned from public numbers.

A test of one sample releases a statistic with noise, or a private random bit. The statistic that
compares groups depends on public facts only: choices or rankings, the number of categories or
items, the number of groups, their sizes, and whether the sizes are protected.

**Consistency.** The test of groups is consistent against every difference of two samples of
different units, for the total variation distance of a fixed number of categories and for the kernel
``"mallows"`` of at most 6 items, whose orders are counted. Epsilon and the number of permutations
are fixed, and the smaller sample grows; there is no such claim if one sample has a fixed size.
Under a difference the distance T_0 of the data tends to the distance of the two distributions,
which is positive because the kernel is characteristic (:mod:`privrank.mechanisms.permutation`). The
distances T_i at random assignments tend to 0 at the rate of the inverse root of the smaller size,
and the scale of the noise at the rate of its inverse. The smoothed p-value is therefore at most
P(T_0 + noise >= M_0) / (permutations + 1) up to a term that tends to 0. The probability of
rejection tends to 1 at every level above 1 / (permutations + 1) that is not below this number
rounded up to a multiple of 1e-4. For more than 6 items there is no such claim, because features
replace the kernel as n grows.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from privrank.distributions import kendall
from privrank.distributions.mallows import tolerance_to_theta
from privrank.hypotheses.interval import THRESHOLD_LEVEL, Distance
from privrank.hypotheses.nulls import Blindness, RandomBit, Statistic, check_declared
from privrank.privacy.accounting import pure_epsilon, split
from privrank.privacy.knorm import PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteLaplace
from privrank.privacy.offered import offered_sensitivity
from privrank.privacy.sensitivity import RankingSensitivity
from privrank.release.compared import questionnaires_by_group
from privrank.release.names import (
    BOUNDARY,
    DECISION,
    DETAILS,
    EFFECT,
    IMPOSSIBLE,
    PVALUE,
    STATISTIC,
)
from privrank.release.release import Release
from privrank.release.survey import QUIET, Design, PartPlan, Plan, Sample, Setting, kind_of
from privrank.util.arrays import FloatArray, IntArray, immutable
from privrank.util.checks import check_extra, refuse_if

Effect = tuple[Statistic, float]

TEST = "test"
"""Name of the budget of the test itself, among the budgets of its additional releases."""

_FINE = 2.0**-53
"""Lattice step of the random number that decides at the boundary of a rejection region."""


def effect_beside(
    query: Statistic | RandomBit,
    sample: Sample | Design,
    distance: Callable[[], Statistic],
    epsilon: float,
    effect_epsilon: float | None,
) -> Effect | None:
    """Return the distance that a test releases in addition, and its epsilon; None for none.

    `distance` constructs the statistic that is the distance from the null hypothesis. Without noise
    an effect uses no budget. An effect that is not available, or that is released already, raises
    an error.
    """
    able = sample.kind == "choices" and isinstance(query, Statistic)
    known = isinstance(query, Statistic) and query.distance
    if effect_epsilon is None:
        return (distance(), epsilon) if math.isinf(epsilon) and able and not known else None
    if known:
        raise ValueError(
            "effect_epsilon= is not needed here: the statistic is the distance itself, and its "
            "interval comes with the test; leave it out."
        )
    if not able:
        what = "one random bit" if sample.kind == "choices" else kind_of(sample)
        raise ValueError(
            "effect_epsilon= is for tests of shares that release a statistic, but this one is of "
            f"{what}. Leave it out."
        )
    return distance(), effect_epsilon


def budget_shares(
    epsilon: float, delta: float, beside: Mapping[str, float | None]
) -> tuple[float, dict[str, float]]:
    """Return the total epsilon of a test and its additional releases, and the pure budgets.

    The arguments include the additional epsilon of each part other than the test, which is None if
    the part is not released.
    """
    extra = {name: amount for name, amount in beside.items() if amount is not None}
    total = sum(extra.values(), epsilon)
    parts = {name: 0.5 if math.isinf(total) else amount / total for name, amount in extra.items()}
    return total, split(pure_epsilon(total, delta), parts, TEST)


def share_of_test(plan: Plan) -> float:
    """Return the pure budget of the noise of the statistic, or of the bit; 0 without either."""
    part = plan.parts.get(STATISTIC) or plan.parts.get(DECISION)
    return 0.0 if part is None else part.epsilon


def plan_sample(
    query: Statistic | RandomBit,
    epsilon: float,
    delta: float,
    effect: Effect | None,
    by: str,
    method: str,
    settings: Mapping[str, Setting],
) -> Plan:
    """Calibrate the noise of a statistic, from public numbers.

    Parameters
    ----------
    query : Statistic or RandomBit
        What to release.
    epsilon, delta : float
        The guarantee of the test.
    effect : tuple of Statistic and float, or None
        A distance that is released as well, and its epsilon in addition to `epsilon`.
    by : str
        Name of the method that spends the budget, for the ledger.
    method : str
        The method that uses this statistic.
    settings : mapping of str to float, str or bool
        Public constants from which the statistic can be rebuilt.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows. One
    row of each respondent is drawn by an independent secret coin. Couple the coins of neighbours
    unit by unit: units are numbered by their first rows, and a replaced respondent can move the
    numbers of all others, but not the distribution of their coins. For every outcome the two
    samples of one row per unit then differ in the replaced unit's row only, and in the order of the
    units. Statistics do not depend on this order. A bit that depends on it receives the rows in an
    order that is drawn uniformly and kept secret. So a guarantee for one row, mixed over the coins,
    holds for the respondent. Choices from offered sets enter with all tasks of a respondent, and
    the sensitivity of their statistic is for all of them, so no row is drawn
    (:func:`privrank.mechanisms.choices.score_norm`). The order of the items is drawn independently
    of the data. A statistic is a whole number that one replaced row moves by at most its
    `sensitivity`. Discrete Laplace noise of scale sensitivity / xi, xi = epsilon - log(1 - delta),
    makes it (epsilon, delta)-private
    (:meth:`privrank.privacy.noise.DiscreteLaplace.calibrate`,
    :func:`privrank.privacy.accounting.pure_epsilon`). A random bit carries its own proof.
    Observations that are impossible under the null are counted separately only at infinite epsilon,
    where nothing is protected. An effect is a second such statistic of the same rows with
    independent noise, and the two compose. Their scales correspond to shares of xi that add up to
    at most epsilon + effect_epsilon - log(1 - delta). The random number at the boundary of a
    rejection region is drawn independently of the data.
    """
    total, shares = budget_shares(epsilon, delta, {EFFECT: None if effect is None else effect[1]})
    xi = shares[TEST]
    parts = {DECISION: PartPlan(QUIET, 1, xi)}
    if isinstance(query, Statistic):
        parts = {STATISTIC: _noisy(query, xi)}
        if query.impossible is not None and math.isinf(xi):
            parts[IMPOSSIBLE] = PartPlan(QUIET, 1, xi)
        if query.randomised and not math.isinf(xi):
            parts[BOUNDARY] = PartPlan(None, 0, 0.0, _FINE)
    if effect is not None:
        parts[EFFECT] = _noisy(effect[0], shares[EFFECT])
    return Plan(by, query.name, method, total, delta, parts, settings)


def _noisy(statistic: Statistic, xi: float) -> PartPlan:
    """Return a statistic with its noise at a pure budget."""
    return PartPlan(
        DiscreteLaplace.calibrate(statistic.sensitivity, xi),
        statistic.sensitivity,
        xi,
        statistic.step,
    )


def least_bias(
    n: int, m: int, epsilon: float, alpha: float, tolerance: float | None = None
) -> float:
    """Return the least bias at which a ramp is private and keeps its level.

    If `tolerance` is given, return the bias of this tolerance instead. The inequalities are stated
    in the test, :func:`privrank.published.bfz21.ramp_bit`.

    Parameters
    ----------
    n, m : int
        Numbers of rankings and items, both at least 2.
    epsilon : float
        Pure privacy budget.
    alpha : float
        Level, in (0, 1).
    tolerance : float, optional
        Total variation distance of a Mallows model from uniformity; the bias is then that
        model's, mu = tanh(m theta / 16), of two items m / 8 places apart.

    Raises
    ------
    ValueError
        If no bias below 1, or not the bias of `tolerance`, gives a private test of this level.

    Notes
    -----
    **Privacy.** With s = mu^2 (n - 1) / 16 the probability p of the ramp changes by at most 2
    (sqrt((1 + 2 s) / n) - 1 / n) / s between neighbours, which decreases in s. At the smallest s it
    is at most (e^epsilon - 1) alpha / (2 (1 - alpha)). Therefore the loss is at most epsilon there
    and at every larger bias.
    """
    room = math.expm1(min(epsilon, 50.0)) * alpha / (2 * (1 - alpha))
    # the least s at which p changes by at most `room` is the larger root of
    # (room s / 2 + 1 / n)^2 = (1 + 2 s) / n: the bound on the change decreases in s, because
    # sqrt((1 + 2 s) / n) - 1 / n is concave and positive at 0
    a = room**2 / 4
    b = (2 - room) / n
    c = (1 - 1 / n) / n
    root = (b + math.sqrt(b * b + 4 * a * c)) / (2 * a)
    slope = 0.0 if room >= 1 else max(root, (4 / n - 1) / 2)
    s = max((1 - alpha) / alpha * math.sqrt((1 - 1 / n) / (2 * (m // 2))), slope)
    least = math.sqrt(16 * s * (1 + 1e-12) / (n - 1))
    if tolerance is None:
        mu = least
        reason = "and biases end below 1"
    else:
        mu = math.tanh(m * tolerance_to_theta(m, tolerance) / 16)
        reason = f"and tolerance {tolerance:g} gives {mu:.3g}"
    if not least <= mu < 1:
        raise ValueError(
            f"the truncated test is {epsilon:g}-private with level {alpha:g} only for a bias "
            f"of at least {least:.3g} with {n} rankings of {m} items, {reason}: use "
            "method='auto' or more rankings."
        )
    return mu


def two_rankings_tolerance(m: int, alpha: float) -> float | None:
    """Return the least distance from uniformity at which two rankings are proved to be enough.

    Parameters
    ----------
    m : int
        Number of items, at least 2.
    alpha : float
        Level, and bound on the probability of a miss; in (0, 1).

    Returns
    -------
    float or None
        Total variation distance of the Mallows model with
        phi = 1 - 8 / (m + 7 - sqrt(12 m log(2 / alpha))). The distance is 1.0 if it differs from 1
        by less than double precision. None if no phi > 0 meets the condition, such as for m <= 46
        at level 0.05.

    Notes
    -----
    The condition of Busa-Fekete, Fotakis and Zampetakis (2021) is phi at most that number.
    """
    room = m + 7 - math.sqrt(12 * m * math.log(2 / alpha))
    return None if room <= 8 else kendall.total_variation(m, -math.log1p(-8 / room), 0.0)


def guaranteed(n: int, m: int, alpha: float, tolerance: float | None) -> dict[str, float]:
    """Return the least tolerance of n = 2 rankings by its name; an empty mapping if there is none.

    The test has its level without this guarantee. Other n, and a tolerance without a guarantee,
    raise an error.
    """
    if n != 2:
        raise ValueError(
            f"method='two-sample' compares exactly two rankings, and there are {n}: use "
            f"method='auto' or 'laplace'."
        )
    least = two_rankings_tolerance(m, alpha)
    if tolerance is not None and (least is None or tolerance < least):
        bound = "at no tolerance" if least is None else f"from tolerance {least:.4g} on"
        raise ValueError(
            f"method='two-sample' has its guarantee for {m} items at level {alpha:g} {bound}: "
            f"leave tolerance= out, or use more rankings and method='auto'."
        )
    return {} if least is None else {"tolerance": least}


RankKernel = Literal["kendall", "mallows"]

Decision = Callable[[FloatArray, Plan, np.random.Generator | None], int]


@immutable
@dataclass(frozen=True, slots=True)
class Comparison:
    """A statistic of at least two samples, with the public facts about its release.

    Parameters
    ----------
    name : str
        Name in summaries.
    statistic : {"tv", "chi-square", "mallows", "kendall", "scores"}
        Total variation distance, chi-square, a kernel distance between rankings, or the length of
        sums of position scores.
    form : {"pairs", "sum", "groups", "cells", "table", "versions"}
        How the samples are combined. ``"pairs"``: the largest distance between two samples.
        ``"sum"``: the sum of the distances of each sample from all. ``"groups"``: the larger of
        this sum and of the largest distance of a single sample. ``"cells"``, for choices: the
        larger of that, minus its expectation given the pooled counts, and of the largest cell.
        ``"table"``, for choices: no statistic, but the table of noisy counts itself is released.
        ``"versions"``, for choices from offered sets: the sum over groups, with permutations among
        respondents with the same questionnaire.
    sensitivity : float
        Largest change if one unit is replaced, for every permutation of the labels; of a table, in
        the l1 norm.
    blind_to : tuple of Blindness
        See :class:`Statistic`.
    consistent : str or None
        See :class:`Statistic`.
    effect : float or None
        Sensitivity of the statistic of two samples if it can be released as an effect; None if not.
    distance : Distance or None
        Public facts about that statistic if it is a distance, which has an interval.
    decision : callable or None
        Maps the statistic of the data and the permuted statistics, the plan and a generator to
        one bit, which is released instead of the smoothed p-value. Its definition proves that it is
        private.
    """

    name: str
    statistic: Literal["tv", "chi-square", "mallows", "kendall", "scores"]
    form: Literal["pairs", "sum", "groups", "cells", "table", "versions"]
    sensitivity: float
    blind_to: tuple[Blindness, ...]
    consistent: str | None
    effect: float | None = None
    distance: Distance | None = None
    decision: Decision | None = None

    def __post_init__(self) -> None:
        check_declared(self.blind_to, self.consistent)

    @property
    def part(self) -> str:
        """Name of the part that the test releases; of a table, its first row."""
        untabled = PVALUE if self.decision is None else DECISION
        return f"{DETAILS} 0" if self.form == "table" else untabled


DIAMETER: dict[RankKernel, float] = {
    "kendall": 2.0,
    "mallows": math.sqrt(-2.0 * math.expm1(-2.0)),
}
"""Largest distance of the features of two rankings, (k(x, x) + k(y, y) - 2 k(x, y))^(1/2). With tau
Kendall's correlation of the two, k is tau for `kendall` and exp(tau - 1) for `mallows`. Both are 1
on the diagonal and least at reversed rankings, where tau = -1: there they are -1 and e^-2."""

PAIR_FACTOR = 2
"""Sensitivity of a statistic of pairs, divided by its sensitivity for separate units."""

FEW_CATEGORIES = 6
"""Categories up to which a difference in one of them is seen by total variation, and up to which a
table is released whenever one group is small."""

_SEVERAL_CATEGORIES = 8
"""Categories up to which groups of unequal sizes need no more units for a table than with few
categories."""

_NAMES = {
    ("tv", "sum"): "total variation from independence",
    ("tv", "groups"): "omnibus of total variations",
    ("tv", "cells"): "omnibus of total variation and cells",
    ("mallows", "sum"): "kernel distance from independence",
    ("mallows", "groups"): "omnibus of kernel distances",
    ("kendall", "sum"): "Kendall distance from independence",
    ("kendall", "groups"): "omnibus of Kendall distances",
}

DISTANCES = {
    "tv": "total variation distance",
    "mallows": "kernel distance (MMD)",
    "kendall": "Kendall kernel distance",
}


def mean_sensitivity(sizes: IntArray, diameter: float) -> float:
    """Return the sensitivity of the largest distance of two feature means, diam / min(sizes)."""
    return diameter / int(np.min(sizes))


def chi_square_sensitivity(sizes: IntArray) -> float:
    """Return the sensitivity of `chi_square`: the largest over pairs of samples.

    Notes
    -----
    **Privacy.** (n1 + n2)^2 / (n1 n2) N / (N + 1), N = max(n1, n2). With a = rho, b = 1 / rho,
    s = mu + nu and a mu - b nu = r s, where -b <= r <= a, one more respondent of sample 1 in a kind
    changes the statistic by (s (2 a r - r^2) + a^2) / (s + 1), increasing in r: at most a^2, at
    r = a, and at least a^2 - s (a + b)^2 / (s + 1), at r = -b, where all s are of sample 2. For
    s = 0 it is a^2. A replacement is a removal from one kind and an addition to another, so changes
    the statistic by at most (a + b)^2 s / (s + 1), s <= n2, and from sample 2 by the same with
    s <= n1. It is attained: all of the other sample in the kind that is left, and the respondent
    joins the rest of the own sample, or moves to a new kind.
    """
    return max(
        (n + other) ** 2 / (n * other) * max(n, other) / (max(n, other) + 1)
        for n, other in combinations(map(int, sizes), 2)
    )


def sum_sensitivity(sizes: IntArray, diameter: float) -> float:
    """Return 2 (1 - w) diam / N, the sensitivity of the sum of departures; no size is 0."""
    total = int(np.sum(sizes))
    return 2.0 * (1.0 - int(np.min(sizes)) / total) * diameter / total


def private_label_sensitivity(total: int, diameter: float) -> float:
    """Return 4 diam / N, the sensitivity of the sum of departures if labels are private."""
    return 4.0 * diameter / total


def method_of(method: str, sample: Sample, epsilon: float) -> str:
    """Return the method that ``"auto"`` stands for, by public numbers; other methods as they are.

    A table of choices has noise in each of its cells, a p-value has noise once. So the table is
    preferred for few categories, for groups that are large relative to the noise, and sooner for
    unequal groups, whose rare categories no statistic of small sensitivity detects. The borders are
    from the study of both methods (`docs/validation/closeness_borders.md`).
    """
    k = len(sample.items)
    apart = not (sample.private_labels or sample.paired)
    if method != "auto" or sample.kind == "rankings" or not apart or k > MAX_TABLE:
        return method
    least = min(sample.sizes)
    unequal = sample.nobs >= 1.5 * len(sample.sizes) * least
    few = k <= (_SEVERAL_CATEGORIES if unequal else FEW_CATEGORIES)
    large = least * epsilon**2 >= (5.0 if few else 10.0) * k**1.5
    if k <= 3 or large or (k <= FEW_CATEGORIES and unequal):
        return "table"
    return "permutation"


def comparison_of(method: str, sample: Sample) -> Comparison:
    """Return by which statistic a method compares the groups of a sample.

    **Privacy.** Of pairs it moves twice as far, and no effect is released. Proof:
    `privrank.mechanisms.permutation`.

    For the same respondents the null hypothesis is that their two answers are exchangeable, which
    can be wrong where both samples have one distribution.
    """
    if method == "table":
        proof = "privrank.hypotheses.noisytables"
        return Comparison("table of counts", "tv", "table", float(_l1(sample)), (), proof)
    if method in ("chi-square", "sigmoid"):
        two = len(sample.groups) == 2
        sensitivity = chi_square_sensitivity(np.array(sample.sizes))
        comparison = Comparison(
            "chi-square",
            "chi-square",
            "pairs",
            sensitivity,
            blind_to=("more noise",) if two else ("large groups",),
            consistent=None,
            effect=sensitivity if two else None,
        )
    else:
        comparison = _distance(method, sample)
    if not sample.paired:
        return comparison
    return replace(
        comparison,
        sensitivity=PAIR_FACTOR * comparison.sensitivity,
        blind_to=(*comparison.blind_to, "equal margins"),
        consistent=None,
        effect=None,
        distance=None,
    )


def comparison_of_choices(design: Design) -> Comparison:
    """Return the comparison of groups that chose from offered sets.

    **Privacy.** The sensitivity is 2 (1 - w) times the length of the largest change of a
    respondent's scores. Both are for questionnaires that several groups have, and w is the smallest
    positive share of a group among the respondents with one of them. Proof:
    `privrank.mechanisms.choices`.

    Raises
    ------
    ValueError
        If no questionnaire was shown to several groups.
    """
    place, _, units = questionnaires_by_group(design)
    shared = np.asarray(units.any(axis=1))
    if design.offered is None or not shared.any():
        raise ValueError(
            "at least one questionnaire must be shown to respondents of several groups, because "
            "respondents with the same offered sets are compared. Use PrivateBTL.from_formula to "
            "compare the worths of groups."
        )
    share = units[shared] / units[shared].sum(axis=1, keepdims=True)
    least = float(share[share > 0].min())
    versions = tuple(v for v, k in zip(design.offered.versions, place, strict=True) if shared[k])
    compared = replace(design.offered, versions=versions)
    length = offered_sensitivity(len(design.items), compared).net_l2
    blind: tuple[Blindness, ...] = ("equal mean scores",)
    return Comparison(
        "scores within questionnaires",
        "scores",
        "versions",
        2.0 * (1.0 - least) * length,
        blind,
        None,
    )


def _unseen(
    statistic: Literal["tv", "mallows", "kendall"],
    form: Literal["pairs", "sum", "groups", "cells"],
    sample: Sample,
) -> tuple[Blindness, ...]:
    """Return what a distance in some form cannot detect, or detects with little power."""
    of_groups: dict[str, Blindness] = {
        "pairs": "large groups",
        "groups": "only a small group",
        "cells": "only a small group",
    }
    items = len(sample.items)
    blind: list[Blindness] = []
    if form == "sum":
        blind.append("small group, private labels" if sample.private_labels else "small group")
    elif len(sample.groups) > 2:
        blind.append(of_groups[form])
    if form == "cells":
        blind.append("many categories")
    elif statistic == "tv" and items > FEW_CATEGORIES:
        blind.append("rare category, private labels" if sample.private_labels else "rare category")
    if statistic == "kendall":
        blind.append("equal pairwise fractions")
    many = (1 + sample.paired) * sample.nobs > MAX_MATRIX
    if statistic == "mallows" and many and MAX_TABULATED < items <= MAX_FEATURED:
        blind.append("beyond landmarks")
    return tuple(blind)


def _unproved(
    statistic: Literal["tv", "mallows", "kendall"],
    form: Literal["sum", "groups", "cells"],
    sensitivity: float,
    sample: Sample,
) -> Comparison:
    """Return a comparison of which no consistency is proved."""
    return Comparison(
        _NAMES[statistic, form],
        statistic,
        form,
        sensitivity,
        blind_to=_unseen(statistic, form, sample),
        consistent=None,
    )


def _distance(method: str, sample: Sample) -> Comparison:
    """Return the distance by which a method compares the groups of a sample.

    Parameters
    ----------
    method : {"auto", "tv", "mmd", "kendall", "pairs"}
        ``"tv"`` for choices, ``"mmd"`` and ``"kendall"`` for rankings.
    sample : Sample
        Public facts.

    Notes
    -----
    **Privacy.** The sensitivities are proved in `privrank.mechanisms.permutation` (of
    two groups, and of the largest pair) and `privrank.mechanisms.closeness` (all else;
    an omnibus has sensitivity 1).

    The default for two groups is their distance; with more than six categories it is the omnibus
    that also detects a difference in one category. The default for more groups is the omnibus of
    the departures of all groups and of each group. Its noise depends on the number of units,
    whereas the noise of the largest pair depends on the smallest group. Private labels leave the
    sum of departures alone.
    """
    kernel: RankKernel = "kendall" if method == "kendall" else "mallows"
    statistic: Literal["tv", "mallows", "kendall"] = "tv" if sample.kind == "choices" else kernel
    diameter = 1.0 if statistic == "tv" else DIAMETER[statistic]
    # changing the group changes the sizes: the sum over groups has a sensitivity by nobs alone
    if sample.private_labels:
        return _unproved(statistic, "sum", private_label_sensitivity(sample.nobs, diameter), sample)
    sizes = np.array(sample.sizes)
    two = len(sample.sizes) == 2
    many = len(sample.items) > FEW_CATEGORIES
    sensitivity = mean_sensitivity(sizes, diameter)
    effect = sensitivity if two else None
    distance = (
        Distance(
            (sample.sizes[0], sample.sizes[1]),
            diameter,
            len(sample.items) if statistic == "tv" else None,
            exact=statistic != "kendall",
        )
        if two
        else None
    )
    # two groups have one distance, which is the test and the effect at once; of many categories
    # "auto" adds single cells, which total variation averages out
    broad = method in ("auto", "permutation")
    if method == "pairs" or (two and not (broad and statistic == "tv" and many)):
        name = DISTANCES[statistic] if two else f"largest {DISTANCES[statistic]}"
        blind = _unseen(statistic, "pairs", sample)
        known = statistic == "tv" or (statistic == "mallows" and len(sample.items) <= MAX_TABULATED)
        proof = "privrank.plans.samples" if known and not blind else None
        return Comparison(name, statistic, "pairs", sensitivity, blind, proof, effect, distance)
    if method == "tv":
        return _unproved("tv", "sum", sum_sensitivity(sizes, diameter), sample)
    if statistic == "tv" and many:
        return replace(_unproved("tv", "cells", 1.0, sample), effect=effect, distance=distance)
    return _unproved(statistic, "groups", 1.0, sample)


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

MAX_FEATURED = 100
"""Items up to which many rankings have features in its place: one for each pair of items."""

MAX_TABULATED = 6
"""Items up to which rankings are counted one by one."""

MAX_MATRIX = 5_000
"""Rankings of which a kernel matrix is computed; of more, features."""

LARGEST_DEAL = 10**9
"""Respondents below which NumPy draws hypergeometric numbers."""

EFFECT_GRID = 1024
"""Lattice steps of a released effect within its sensitivity; two more allow for rounding."""

ONE_NUMBER = EFFECT_GRID + 2
"""How far one unit moves each number of an effect, in lattice steps."""

MAX_TABLE = 200
"""Categories up to which a table of counts can be released: its noise is drawn by rejection."""

FEWEST = 19
MOST = 100_000
"""Re-labellings that a test may have."""


def _beside(
    comparison: Comparison, sample: Sample, epsilon: float, effect: object, details: object
) -> dict[str, float | None]:
    """Return what an effect and totals by group may spend; refuse them where there are none."""
    refuse_if(
        (
            comparison.form == "table" and not (effect is None and details is None),
            "effect_epsilon= and details_epsilon= are not needed here: the released table of "
            "counts has the distance and all differences at no further cost. Leave both out.",
        ),
        (
            comparison.form == "versions" and not (effect is None and details is None),
            "effect_epsilon= and details_epsilon= are not for choices from offered sets. Leave "
            "both out, and use PrivateBTL.from_formula for differences of worths.",
        ),
    )
    apart = not (sample.private_labels or sample.paired)
    beside = {
        STATISTIC: check_extra("effect_epsilon", effect, epsilon),
        DETAILS: check_extra("details_epsilon", details, epsilon),
    }
    # one distance, of two groups whose noise is calibrated to their public sizes
    refuse_if(
        (
            effect is not None and not (apart and len(sample.groups) == 2),
            "effect_epsilon= is for the distance of two groups of different respondents, whose "
            "sizes are public: leave it out with paired=True and with labels='private', and use "
            "details_epsilon= for more groups.",
        ),
        (
            effect is not None and comparison.effect is None,
            "method='sigmoid' has no effect size: use method='chi-square' or 'tv'.",
        ),
        (
            details is not None and not apart,
            "details_epsilon= is for groups of different respondents whose sizes are public: leave "
            "it out with labels='private' and with paired=True.",
        ),
    )
    return beside


def plan_details(sample: Sample, epsilon: float) -> dict[str, PartPlan]:
    """Calibrate the noise of the totals by group, from public numbers.

    Given what may be spent. It uses the applicable distribution with the smallest variance.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows, in
    their group; group membership is public. One row of each respondent is taken by an independent
    secret draw. Therefore a guarantee for one row holds for the respondent
    (:func:`privrank.plans.samples.plan_sample`). The totals of a group are the counts of its
    categories, or the sums of its items' ranks less one. A replaced unit moves the totals of its
    own group only, so noise that is epsilon-private for each group's totals is epsilon-private for
    all of them together. Epsilon is spent once for all groups (parallel composition).

    Within the group: a choice that is replaced lowers one count and raises another, by 1 each, l1
    norm 2; a replaced ranking adds the difference of two permutations
    (:class:`privrank.privacy.sensitivity.RankingSensitivity`), one step of K-norm noise. The totals
    sum to a public number, n_g, or n_g m (m - 1) / 2, and differences of neighbours sum to 0.
    Therefore noise that sums to zero applies.
    """
    m = len(sample.items)
    moved = _l1(sample)
    parts = [PartPlan(DiscreteLaplace.calibrate(moved, epsilon), moved, epsilon)]
    if m <= _LARGEST_ZERO_SUM and epsilon < np.inf:
        if epsilon <= moved:
            parts.append(PartPlan(ZeroSumLaplace.calibrate(m, moved, epsilon), moved, epsilon))
        if sample.kind == "rankings":
            body = PermutohedronNoise.calibrate(m, epsilon)
            # this noise multiplies by its fineness itself
            parts.append(PartPlan(body, body.fineness, epsilon, 1.0 / body.fineness))
    least = min(parts, key=_variance)
    return {f"{DETAILS} {number}": least for number in range(len(sample.groups))}


def plan_table(sample: Sample, epsilon: float) -> dict[str, PartPlan]:
    """Calibrate the noise of a table of counts by group and category, from public numbers.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows, in
    their group; membership of groups, and so their sizes, are public. One row of each respondent is
    taken by an independent secret draw (:func:`privrank.plans.samples.plan_sample`). A replaced
    unit lowers one count of its own group by 1 and raises another by 1: the row moves by
    d = e_y - e_x, which sums to 0 and has l1 norm 2. This is attained. The noise z of a row sums to
    0 and has P(z) proportional to exp(-epsilon |z|_1 / 2), so the ratio of the probabilities of a
    row is at most exp(epsilon) (:class:`privrank.privacy.knorm.ZeroSumLaplace`). The other rows do
    not change and have noise of their own, so epsilon is spent once for all groups (parallel
    composition). The row sums are the public sizes. Everything else, the p-value included, is
    computed from the noisy table and public numbers.
    """
    noise = ZeroSumLaplace.calibrate(len(sample.items), _l1(sample), epsilon)
    part = PartPlan(noise, _l1(sample), epsilon)
    return {f"{DETAILS} {number}": part for number in range(len(sample.groups))}


def _l1(sample: Sample) -> int:
    """Return how far one unit moves the totals of its group."""
    return RankingSensitivity(len(sample.items)).borda_l1 if sample.kind == "rankings" else 2


def _variance(part: PartPlan) -> float:
    assert part.noise is not None
    return part.noise.variance * part.step**2


def smoothing_scale(sensitivity: float, epsilon: float) -> float:
    """Return the Laplace scale at which the smoothed p-value spends `epsilon`; 0 for infinity.

    With some slack for rounding.
    """
    return SMOOTHING * SLACK * sensitivity / epsilon


def plan_comparison(
    sample: Sample,
    comparison: Comparison,
    epsilon: float,
    delta: float,
    *,
    method: str,
    alpha: float,
    permutations: int,
    effect_epsilon: object = None,
    details_epsilon: object = None,
) -> Plan:
    """Calibrate the noise of a comparison of samples, from public numbers.

    Parameters
    ----------
    sample : Sample
        Public facts of the samples.
    comparison : Comparison
        Statistic and form of release.
    epsilon, delta : float
        The guarantee of the test.
    method : str
        The method that asks for this statistic.
    alpha : float
        Level of a decision.
    permutations : int
        Number of re-labellings.
    effect_epsilon : float or None
        What an effect size may spend on top.
    details_epsilon : float or None
        What totals by group may spend on top.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one row, or one respondent with all their rows, in
    their sample; membership of samples is public, unless `comparison` has the sensitivity for
    secret labels. One row of each respondent is drawn by an independent secret coin. Therefore a
    guarantee for one row each is a guarantee for respondents
    (:func:`privrank.plans.samples.plan_sample`). The statistic moves by at most its sensitivity at
    every re-labelling (:mod:`privrank.mechanisms.permutation`), and the re-labellings are secret
    and drawn without looking at the data. The smoothed p-value is private at its share
    (:mod:`privrank.mechanisms.closeness`). A decision in its place has a proof of its own. The
    effect is the distance of two groups. If the null hypothesis is a distance of 0, one further
    number is released, which the same re-labellings determine
    (:func:`privrank.mechanisms.closeness.null_threshold`). Each moves by at most the sensitivity at
    every set of re-labellings. On a grid of a 1024th of it, floor, it gets discrete Laplace noise
    for 1026 steps in each: two floors differ by at most 1025, and one step allows for
    floating-point arithmetic. Given the re-labellings p-value and effect compose, and so they do
    mixed over them. Totals by group (:func:`privrank.plans.samples.plan_details`) have noise of
    their own. Given the rows that were drawn all compose to xi = epsilon + effect_epsilon +
    details_epsilon - log(1 - delta).
    """
    total, shares = budget_shares(
        epsilon, delta, _beside(comparison, sample, epsilon, effect_epsilon, details_epsilon)
    )
    if sample.nobs >= LARGEST_DEAL:
        raise ValueError(
            f"at most {LARGEST_DEAL - 1:,} units can be permuted, and these are {sample.nobs:,}: "
            f"compare a random sample of them."
        )
    settings: dict[str, Setting] = {
        "permutations": float(permutations),
        "scale": _scale(comparison, shares[TEST]),
    }
    if comparison.form == "table":
        parts = plan_table(sample, shares[TEST])
        return Plan("ClosenessTest", comparison.name, method, total, delta, parts, settings)
    parts = {PVALUE: PartPlan(QUIET, 1, shares[TEST], 1.0 / RELEASED_STEPS)}
    if comparison.decision is not None:
        parts = {DECISION: PartPlan(QUIET, 1, shares[TEST])}
        settings["level"] = alpha
    # without noise an effect and totals by group cost nothing
    free = math.isinf(epsilon)
    if comparison.effect is not None and (STATISTIC in shares or free):
        parts[STATISTIC] = _effect_plan(comparison, shares.get(STATISTIC, math.inf))
        if _second(comparison) == "threshold":
            settings[THRESHOLD_LEVEL] = alpha
    apart = not (sample.private_labels or sample.paired or comparison.form == "versions")
    if DETAILS in shares or (free and apart):
        parts |= plan_details(sample, shares.get(DETAILS, math.inf))
    rankings = (1 + sample.paired) * sample.nobs if sample.kind == "rankings" else 0
    if rankings > LARGEST_GRAM and len(sample.items) > MAX_FEATURED:
        raise ValueError(
            f"kernel tests of more than {MAX_FEATURED} items compare all pairs of rankings, of at "
            f"most {LARGEST_GRAM:,} in all, and these are {rankings:,}: test a random sample of "
            f"the respondents."
        )
    return Plan("ClosenessTest", comparison.name, method, total, delta, parts, settings)


def _scale(comparison: Comparison, epsilon: float) -> float:
    """Return the scale of the noise that is smoothed over; a bit and a table have none."""
    without = comparison.form == "table" or comparison.decision is not None
    return 0.0 if without else smoothing_scale(comparison.sensitivity, epsilon)


def check_scale(release: Release, comparison: Comparison) -> None:
    """Refuse an archived release whose noise does not belong to its statistic."""
    plan = release.plan
    draws = plan.number("permutations")
    epsilon = plan.parts[comparison.part].epsilon
    effect = plan.parts.get(STATISTIC)
    if not (
        math.isclose(plan.number("scale"), _scale(comparison, epsilon), rel_tol=1e-6)
        and FEWEST <= draws <= MOST
        and draws.is_integer()
        and (effect is None or _effect_plan(comparison, effect.epsilon).step == effect.step)
        and (comparison.form != "table" or plan.parts == plan_table(release.sample, epsilon))
    ):
        raise ValueError("release must have the noise of its statistic.")


def _second(comparison: Comparison) -> str | None:
    """Name the number that is released with a distance: a mean, a threshold, or none."""
    if comparison.distance is None or not comparison.distance.exact:
        return None
    return "threshold" if comparison.distance.categories is None else "mean"


def _effect_plan(comparison: Comparison, epsilon: float) -> PartPlan:
    assert comparison.effect is not None
    sensitivity = ONE_NUMBER if _second(comparison) is None else 2 * ONE_NUMBER
    return PartPlan(
        DiscreteLaplace.calibrate(sensitivity, epsilon),
        sensitivity,
        epsilon,
        comparison.effect / EFFECT_GRID,
    )
