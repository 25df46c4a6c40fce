"""The sensitive statistics of choices from publicly offered sets.

**Tests.** A test of given worths, such as equal ones, releases one number: the length of T minus
its mean under H0, in units of the covariance of T under H0.

**Groups.** A test that groups answer alike permutes the groups of respondents with the same
questionnaire, and releases a smoothed p-value (:mod:`privrank.mechanisms.closeness`). Let x_i be
the score vector of respondent i, the item vector T of this respondent alone, and xbar_q the mean of
the respondents with questionnaire q. The statistic is the sum over groups g of |D_g|, with
D_g = sum of x_i - xbar_q over the respondents i of g, and Euclidean lengths. Differences of
opposite signs in two questionnaires cancel each other in D_g.

**Null.** Respondents with the same questionnaire have exchangeable answers, whatever group they
belong to. A questionnaire is the offered sets without their order. If the order of tasks or of
items matters, it must not depend on the group. How often each group has each questionnaire is
public and fixed, and no permutation changes it. Without this restriction groups with different
questionnaires would differ under the null hypothesis.

**Privacy of groups.** Unit and neighbours: all answers of one respondent are replaced;
questionnaires and groups are public and stay. Let x move by d. A share w_h of the respondents with
the same questionnaire is in group h, and a re-labelling can put the respondent into any group g
with w_g > 0. Then D_g moves by (1 - w_g) d, and D_h of any other group by -w_h d. So the statistic
moves by at most 2 (1 - w_g) |d|, for every re-labelling. |d| is at most `net_l2`
(:class:`privrank.privacy.offered.OfferedSensitivity`). Respondents with a questionnaire that no
other group has, and those without a task, add 0 to every D_g. The smoothed p-value is private with
this sensitivity, because the proof requires no more than such a bound and re-labellings that do not
depend on the data.

**Dependence.** The largest design effect of many contrasts shows how dependent the answers of a
respondent are, as for paired comparisons (:mod:`privrank.mechanisms.tallies`). The contrasts are
computed from what the fit has already released.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from privrank.bradley_terry.choices import ChoiceScore, even_scores, score_function
from privrank.bradley_terry.dependence import (
    compared_scores,
    independent_scores,
    mean_answer,
    weights_by_kind,
)
from privrank.bradley_terry.equations import ScoreEquations, score_equations
from privrank.bradley_terry.estimate import estimate, response
from privrank.bradley_terry.linear import item_contrasts
from privrank.distributions.links import LOGIT
from privrank.encode.encoded import EncodedChoices
from privrank.hypotheses.nulls import Order, Statistic, null_of, table_key
from privrank.mechanisms.categories import GRID
from privrank.mechanisms.permutation import permuted_statistics
from privrank.privacy.offered import (
    Offered,
    largest_square,
    position_scores,
)
from privrank.release.compared import questionnaires_by_group
from privrank.release.names import ANSWERED, CEILING, LARGEST, NET, PAIRS
from privrank.release.release import Release
from privrank.release.survey import INTERCEPT, STEPS, Design
from privrank.util.arrays import FloatArray, IntArray, Rng, batches
from privrank.util.solvers import quadratic, spectrum

_FINEST = 10
"""Weights of items are whole numbers of up to this many bits."""


def answer_totals(encoded: EncodedChoices) -> IntArray:
    """Return the item vector T, or by row of covariates and item; sensitive."""
    facts = encoded.design.covariates or INTERCEPT
    pattern = np.array(_offered(encoded.design).patterns)[encoded._version]
    totals = encoded._totals[:, : len(encoded.design.items)]
    return np.asarray(facts.basis[pattern].T @ totals).ravel()


def answered_tasks(encoded: EncodedChoices) -> IntArray:
    """Return the number of answered tasks; sensitive."""
    return np.asarray(encoded._totals[:, -1:].sum(axis=0))


CHOICES: dict[str, Callable[[EncodedChoices], IntArray]] = {
    NET: answer_totals,
    ANSWERED: answered_tasks,
    PAIRS: lambda encoded: np.asarray(encoded._ahead),
}
"""The exact integer statistics of the first stage, by part."""


def score_norm(design: Design, worths: Sequence[float]) -> Statistic:
    """Return the distance of T from its mean under given worths, in units of its covariance.

    Returns
    -------
    Statistic
        Its value is floor(1024 sqrt(|V T - c|^2 / S)). V is the symmetric root of the
        Moore-Penrose inverse of the covariance C of T under H0, times a power of two and rounded to
        whole numbers of at most 20 bits. c is V times the mean M of T under H0, rounded to whole
        numbers. S is the largest |V x|^2 of a change x of T, or an upper bound. In its own unit the
        value is sqrt((T - M)' C^+ (T - M)), whose square has about a chi-squared distribution with
        m - 1 degrees of freedom under H0.

    Notes
    -----
    **Privacy.** Unit and neighbours: all answers of one respondent are replaced, or one answer if a
    row is a unit; the questionnaire of each unit is public and stays. M and C are functions of the
    offered sets and of H0, so V, c and S are public. By the triangle inequality |V T - c| moves by
    at most the largest |V x|, so by at most the root of S
    (:func:`privrank.privacy.offered.largest_square`). V T - c is exact in whole numbers, as its
    entries stay below 2^62 for up to 2^40 answers by all units together, with the scores of an
    order counted one by one. The statistic is the integer square root of
    floor(1024^2 |V T - c|^2 / S). The root moves by at most 1024 before the floors, and numbers at
    most 1024 apart have floors at most 1024 apart.

    Eigenvalues of C below 2^-20 of the largest are raised to this number, because no rounded matrix
    contains their inverses next to the others. V remains public.

    **Null.** Monte Carlo: all answers are independent and follow the worths
    (:meth:`privrank.bradley_terry.choices.ChoiceScore.draw_totals`).

    **Power.** T is sufficient for the worths, except for orders, which it reduces to net wins. Two
    groups of respondents with opposite preferences can have equal worths on average. Their answers
    are dependent within respondents with several tasks, which inflates the variance of T. So the
    test rejects with a probability above its level, as H0 is not true.
    """
    offered = _offered(design)
    m = len(design.items)
    score = score_function(design, LOGIT)
    pairs = design.pairs
    assert isinstance(score, ChoiceScore) and pairs is not None
    v = np.array(worths, dtype=np.float64)
    linear = item_contrasts(pairs, m)
    t = linear.predict(v)
    # T is this multiple of the scores
    unit = 2.0 / design.step(NET, exact=False)
    mean = unit * linear.scores(pairs.count * score.mean(t)) + np.ravel(even_scores(design))
    covariance = unit**2 * linear.information(pairs.count * score.variance(t))
    values, vectors = spectrum(linear.filled(covariance))
    spread = np.sqrt(np.maximum(values, 2.0**-20 * values[-1]))
    root = linear.centred((vectors / spread) @ vectors.T)
    # the factor keeps powers of two, up to rounding errors, off the limit of an exponent
    scale = 2.0 ** (20 - math.frexp(1.001 * np.abs(root).max())[1])
    weights = np.rint(scale * root).astype(np.int64)
    square = largest_square(m, offered, weights)
    # every number of the null distribution follows from these facts
    facts = repr((offered, worths))
    value = partial(
        _norm_steps,
        weights=weights,
        centre=np.rint(weights @ mean).astype(np.int64),
        square=square,
    )
    return Statistic(
        name="norm of scores",
        step=math.sqrt(square) / (scale * GRID),
        sensitivity=GRID,
        value=value,
        null=partial(
            null_of,
            "norm of scores",
            (design.nobs, m, table_key([*facts.encode()])),
            value,
            partial(score.draw_totals, pairs=pairs, worths=v),
        ),
        blind_to=("equal mean scores",),
        consistent=None,
    )


def _norm_steps(
    totals: IntArray, order: Order, weights: IntArray, centre: IntArray, square: int
) -> int:
    """Return the statistic of :func:`score_norm`, in lattice steps."""
    apart = (weights @ totals - centre).tolist()
    return math.isqrt(GRID * GRID * sum(one * one for one in apart) // square)


def permuted_scores(encoded: EncodedChoices, permutations: int, rng: Rng) -> FloatArray:
    """Return the statistic of groups, then its values for random re-labellings; sensitive.

    All re-labellings are within questionnaires.

    Returns
    -------
    ndarray of float64, shape (permutations + 1,)
    """
    place, group, units = questionnaires_by_group(encoded.design)
    sums = np.zeros((permutations + 1, units.shape[1], len(encoded.design.items)))
    for questionnaire in np.flatnonzero(units.any(axis=1)):
        here = place[encoded._version] == questionnaire
        scores, kind = np.unique(encoded._totals[here], axis=0, return_inverse=True)
        counts = np.zeros((units.shape[1], len(scores)), dtype=np.int64)
        np.add.at(counts, (group[encoded._version][here], kind.ravel()), 1)
        apart = scores - counts.sum(axis=0) @ scores / counts.sum()
        sums += permuted_statistics(
            counts, partial(np.tensordot, b=apart, axes=1), permutations, rng
        )
    return np.asarray(np.sqrt((sums**2).sum(axis=2)).sum(axis=1))


def _offered(design: Design) -> Offered:
    assert design.offered is not None
    return design.offered


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceContrasts:
    """Contrasts in whole numbers, with the reach of a respondent along each.

    Parameters
    ----------
    weights : ndarray of int64, shape (contrasts, kinds, m or m + 1)
        Weights of the items, by combination of covariate values. If tasks may be unanswered, the
        last weight is that of an answered task.
    kind : ndarray of int64, shape (versions,)
        The combination of covariate values of each questionnaire.
    high, low : ndarray of int64, shape (versions, contrasts)
        Largest and smallest weighted sum of a respondent with this questionnaire.
    factor : ndarray, shape (contrasts,)
        What the weights were multiplied by before they were rounded.
    """

    weights: IntArray
    kind: IntArray
    high: IntArray
    low: IntArray
    factor: FloatArray

    @property
    def farthest(self) -> IntArray:
        """Largest difference of two weighted sums with one questionnaire, shape (contrasts,)."""
        return np.asarray((self.high - self.low).max(axis=0))


def round_contrasts(design: Design, weights: FloatArray) -> ChoiceContrasts:
    """Round contrasts to whole numbers, and find the reach of a respondent along each.

    Tasks do not restrict each other, so the largest sum of a questionnaire is the sum over its
    tasks of the largest sum in a task. In a task it is attained by the answer that gives large
    weights large position scores (rearrangement inequality), and the smallest one by its reverse.
    A task that may be unanswered can also add 0.
    """
    offered = _offered(design)
    versions = len(offered.versions)
    kind = (design.covariates or INTERCEPT).kinds[np.array(offered.patterns)]
    tasks = [len(version) for version in offered.versions]
    place = np.array([k for version in offered.versions for k in version], dtype=np.int64)
    shown = csr_array(
        (np.ones(len(place), dtype=np.int64), place, np.append(0, np.cumsum(tasks))),
        shape=(versions, len(offered.sets)),
    )
    scores = [position_scores(offered.answer, len(items)) for items in offered.sets]
    span = (shown @ np.array([np.abs(score).sum() + design.silent for score in scores])).max()
    # as fine as sums of squares over all respondents keep to 60 bits; longer questionnaires than
    # 4 bits allow are refused before (privrank.plans.choice.requested_dependence)
    bits = np.log2(np.sqrt(2.0**60 / design.nobs) / (2.0 * span))
    size = np.abs(weights).max(axis=(1, 2))
    factor = np.where(size > 0, 2.0 ** np.clip(np.floor(bits), 4, _FINEST), 0.0)
    factor = np.asarray(factor / np.where(size > 0, size, 1.0))
    whole = np.rint(factor[:, None, None] * weights).astype(np.int64)
    high, low = np.zeros((2, versions, len(whole)), dtype=np.int64)
    for value in range(whole.shape[1]):
        ends = np.empty((len(scores), 2, len(whole)), dtype=np.int64)
        for end, items, score in zip(ends, offered.sets, scores, strict=True):
            ordered = np.sort(whole[:, value, list(items)], axis=1)
            end[:] = ordered @ score[::-1], ordered @ score
            if design.silent:
                more = end + whole[:, value, -1]
                end[:] = np.maximum(more[0], 0), np.minimum(more[1], 0)
        here = kind == value
        high[here], low[here] = ((shown @ ends[:, side])[here] for side in (0, 1))
    return ChoiceContrasts(whole, kind, high, low, factor)


def largest_choice_effect(
    encoded: EncodedChoices, release: Release
) -> tuple[IntArray, dict[str, float]]:
    """Return the largest design effect of the contrasts, in lattice steps, and its public facts.

    Notes
    -----
    **Privacy.** Unit and neighbours: all answers of one respondent are replaced; the questionnaire
    v of each respondent is public and stays. Contrasts a_p, scales and centres are computed from
    what is released already and from public facts. A respondent's weighted sum x = a_p'T lies
    between low and high, the public ends for v, and adds (2 x - high - low)^2 to Q_p. If tasks may
    be unanswered, x = a_p'(T, U) with the number U of answered tasks, and the ends are those of
    all answers and silences. The square is at least 0 and at most (high - low)^2, so Q_p moves by
    at most the largest (high - low)^2 over the questionnaires, `farthest`^2. The rest is as in
    :func:`privrank.mechanisms.tallies.largest_design_effect`:
    Y = max_p floor(STEPS (Q_p - centre_p) / scale_p), or 0, with scale_p at least `farthest`^2, has
    sensitivity STEPS, whatever was released before.

    **Statistic.** The design effect of a contrast is the variance of the sum over respondents,
    divided by the variance that the model gives to independent tasks. Q_p / 4 minus the part that
    the released total explains estimates the former from above. Answers that are no pairs may have
    a larger variance than the model even in a single task, so the largest possible design effect
    is the sum over respondents of (high - low)^2 / 4, divided by the latter. If tasks may be
    unanswered, the weight of U is minus the expected a_p'T of an answered task, so the sum has mean
    0 whatever the number of answered tasks.
    """
    design = release.design
    equations = score_equations(release)
    fitted = estimate(equations, release)
    b = fitted.coefficients
    scores = compared_scores(equations, release, response(equations, fitted))
    weights = weights_by_kind(design, equations, scores)[:, :, : len(design.items)]
    if design.silent:  # a respondent's totals are compared with those expected for their tasks
        typical = weights @ mean_answer(equations, _offered(design), b)
        weights = np.concatenate((weights, -typical[..., None]), axis=2)
    # a score is this multiple of T, whose lattice is finer than 1 with numeric covariates
    unit = 0.5 * design.step(NET, exact=False) / (design.covariates or INTERCEPT).step
    independent = quadratic(scores, independent_scores(equations, release, b)) / unit**2
    usable = bool(np.isfinite(weights).all() and np.isfinite(independent).all() and weights.any())
    contrasts = round_contrasts(design, weights if usable else np.zeros_like(weights))
    farthest = [int(far) ** 2 for far in contrasts.farthest]
    # the value of Q under independent tasks, per respondent; never below 1e-6 of the largest
    # square, because a scale must exist
    whole = 4.0 * contrasts.factor**2 * (independent if usable else 0.0)
    least = np.maximum(1e-6 * np.array(farthest, dtype=np.float64), 1e-12)
    per_unit = np.maximum(whole / design.nobs, least)
    most = max(far / one for far, one in zip(farthest, per_unit, strict=True))
    units = np.array(_offered(design).units, dtype=np.float64)
    widths = units @ (contrasts.high - contrasts.low).astype(np.float64) ** 2
    ceiling = float((widths / (design.nobs * per_unit)).max())
    centre = _explained(equations, release, contrasts)
    moved = [
        STEPS * (square - round(part)) // max(far, int(np.ceil(one * most)), 1)
        for square, part, far, one in zip(
            _squares(encoded, contrasts).tolist(), centre, farthest, per_unit, strict=True
        )
    ]
    others = 1.0 if design.few_differences else 2.0
    most, ceiling = (most, min(most, ceiling)) if usable else (np.nan, np.nan)
    findings = {LARGEST: float(others * most), CEILING: float(others * ceiling)}
    return np.array([max(0, *moved)]), findings


def _squares(encoded: EncodedChoices, contrasts: ChoiceContrasts) -> IntArray:
    """Return the sums over respondents of (2 a'T - high - low)^2, by contrast; sensitive."""
    middle = (contrasts.high + contrasts.low).astype(np.float64)
    total = np.zeros(len(contrasts.weights), dtype=np.int64)
    for value in range(contrasts.weights.shape[1]):
        # whole numbers below 2^53 are exact in floats, whose products are fast
        weights = 2.0 * contrasts.weights[:, value].T
        rows = np.flatnonzero(contrasts.kind[encoded._version] == value)
        for block in batches(len(rows), weights.shape[1]):
            here = rows[block]
            sums = encoded._totals[here] @ weights - middle[encoded._version[here]]
            total += (sums.astype(np.int64) ** 2).sum(axis=0)
    return total


def _explained(
    equations: ScoreEquations, release: Release, contrasts: ChoiceContrasts
) -> FloatArray:
    """Return a lower estimate of the part of the sums that the released totals explain.

    For each combination of covariate values it is the squared sum of 2 a'T - high - low over its
    respondents, divided by their number. The noise of T is subtracted. With numeric covariates the
    totals of single combinations are not known, and nothing is explained.
    """
    design = release.design
    facts = design.covariates or INTERCEPT
    explained = np.zeros(len(contrasts.weights))
    if facts.bounds:
        return explained
    part = release.parts[NET]
    step = design.step(NET, exact=False)
    totals = part.step / step * part.values.reshape(-1, len(design.items))
    if design.silent:
        totals = np.column_stack((totals, release.parts[ANSWERED].values))
    variance = equations.by_item.variance / step**2
    units = np.array(_offered(design).units)
    middle = units[:, None] * (contrasts.high + contrasts.low)
    cells = facts.cell[np.unique(facts.kinds, return_index=True)[1]]
    for value, cell in enumerate(cells):
        here = contrasts.kind == value
        weights = 2.0 * contrasts.weights[:, value]
        items = weights[:, : len(design.items)]
        square = (weights @ totals[cell] - middle[here].sum(axis=0)) ** 2
        square -= variance * ((items - items.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
        if design.silent:
            square -= equations.variance(ANSWERED) * weights[:, -1] ** 2
        explained += np.maximum(square, 0.0) / units[here].sum()
    return explained
