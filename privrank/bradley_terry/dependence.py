"""Estimate how dependent the answers of a respondent are, from a release.

To first order, the estimate of a contrast is a sum over respondents of half their net wins,
weighted by item. The *design effect* of the contrast is the variance of this sum divided by its
variance if all answers were independent. :mod:`privrank.mechanisms.tallies` releases design
effects, or second moments, of contrasts that the first stage of the same release has determined.
They give the covariance of the scores over respondents. This module has no access to the data.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from privrank.bradley_terry.choices import ChoiceScore
from privrank.bradley_terry.equations import ScoreEquations, released_degrees, scores_by_pattern
from privrank.bradley_terry.fit import (
    ScoreFunction,
    answer_probabilities,
    worths_and_ties,
)
from privrank.bradley_terry.paircounts import answered_share
from privrank.bradley_terry.predictor import (
    beside_worths,
    display,
    edge_runs,
    groups_at,
    instruments_of,
    item_basis,
    worth_map,
)
from privrank.privacy.offered import Offered, position_scores
from privrank.release.names import (
    BY_PAIR,
    CEILING,
    DEPENDENCE,
    GAIN,
    GROUP_ANSWERS,
    LARGEST,
    MOMENTS,
    NET,
    RESIDUAL,
    TIE_FLOOR,
    TIE_MOMENTS,
    TIES,
)
from privrank.release.release import Release
from privrank.release.survey import Design, effective_units, weight_unit
from privrank.util.arrays import FloatArray, readonly_copy
from privrank.util.solvers import dense, product, propagate, quadratic, spectrum

FARTHEST = 4.0
"""Limit of the predictors, in spreads of worths, at which variances of answers are evaluated."""


def independent_scores(
    equations: ScoreEquations,
    release: Release,
    b: FloatArray,
    function: ScoreFunction | None = None,
) -> FloatArray:
    """Return the covariance of the scores if all answers were independent, shape (p, p).

    If `function` is given, it replaces the score function of the fit. If dependence is measured
    relative to this covariance, predictors are clipped, because noise in the worths must not make
    the covariance vanish. If opponents were matched at random, the variation of the matching is
    included.
    """
    function = function or equations.fitted
    t = equations.linear.predict(b)
    if DEPENDENCE in release.plan.parts:
        far = FARTHEST * function.spread
        if function.ties:
            apart, tie = (np.clip(part, -far, far) for part in worths_and_ties(t))
            t = np.concatenate((apart, 0.5 * apart - tie, 0.5 * apart + tie), axis=-1)
        elif isinstance(function, ChoiceScore):  # predictors of a set belong together
            t = t * min(1.0, far / max(float(np.abs(t).max(initial=0.0)), 1e-300))
        else:
            t = np.clip(t, -far, far)
    answers = equations.linear.spread(equations.spread(t, function))
    offered = release.design.offered
    if offered is not None and offered.unanswered is not None:
        return answers + _of_silence(equations, offered, answered_share(release), t)
    if equations.matching is None or not t.any():  # with equal worths the matching has no influence
        return answers
    return answers + equations.matching.covariance(equations.function.mean(t))


def mean_answer(equations: ScoreEquations, offered: Offered, b: FloatArray) -> FloatArray:
    """Return the expected scores of an answered task, the mean over all tasks, shape (p,)."""
    return _by_set(equations, offered, equations.linear.predict(b))[2]


def _by_set(
    equations: ScoreEquations, offered: Offered, t: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the expected scores of each set, its number of answered tasks, and the mean scores.

    The expected scores have the shape (sets, p), and the mean is over all answered tasks. Scores of
    the best or the worst item alone include those at equal worths, which differ between sets.
    """
    function = equations.function
    assert isinstance(function, ChoiceScore)
    edges = function.sets
    scores = dense(equations.linear.scores_by(edges, function.mean(t)))
    even = np.array(
        [
            position_scores(offered.answer, len(shown)).mean()
            * np.bincount(shown, minlength=equations.items)
            for shown in offered.sets
        ]
    )
    scores = scores + even - even.mean(axis=1, keepdims=True)
    tasks = np.zeros(len(scores))
    tasks[edges] = equations.count
    return scores, tasks, np.asarray(tasks @ scores / tasks.sum())


def _of_silence(
    equations: ScoreEquations, offered: Offered, share: float, t: FloatArray
) -> FloatArray:
    """Return the covariance of the scores because only a random share of tasks is answered.

    Let z be 1 with probability rho, if a task is answered, and mu its expected scores. The scores
    of a task minus z times the mean k of all mu have the covariance
    rho C + rho (1 - rho) (mu - k) (mu - k)', where C is the covariance of an answer. This function
    returns the sum of the second terms over all tasks.
    """
    scores, answered, mean = _by_set(equations, offered, t)
    apart = scores - mean
    return np.asarray((1.0 - share) * (apart.T * answered) @ apart)


def degrees_of_freedom(release: Release) -> float:
    """Return the degrees of freedom of the sampling covariance.

    They are the number of respondents minus one if the covariance is estimated from respondents,
    and infinite if answers are taken as independent, because the fit then determines the
    covariance. With design weights respondents count by Kish's effective number. They are at most
    the number of contrasts from which the scatter of the items about their covariates is estimated.
    """
    estimated = release.parts.keys() & {DEPENDENCE, MOMENTS[0]}
    df = max(effective_units(release.design) - 1.0, 1.0) if estimated else math.inf
    return min(df, release.design.item_freedom or math.inf)


def released_effect(release: Release) -> float:
    """Return the largest design effect of any contrast, at least 1.

    If the release does not show the design effect (:func:`effect_bounded`), this is the largest
    value that any answers can have.
    """
    part = release.parts[DEPENDENCE]
    effect = _effect_unit(release) * part.step * float(part.values[0])
    ceiling = release.found[CEILING]
    return ceiling if effect_bounded(release) else max(1.0, min(effect, ceiling))


def effect_bounded(release: Release) -> bool:
    """Return whether the release bounds the design effect by nothing but its ceiling.

    This is the case if the upper limit of the 95% confidence interval of the design effect, given
    noise of this scale, is at least the largest value that any answers can have.
    """
    part = release.parts[DEPENDENCE]
    step = _effect_unit(release) * part.step
    upper = step * part.values[0] + step * part.laplace.scale * math.log(20.0)
    return bool(upper >= release.found[CEILING])


def _effect_unit(release: Release) -> float:
    """Return the design effect that corresponds to a released number of 1."""
    return float(release.found[LARGEST]) / release.design.nobs


def effect_error(release: Release) -> float:
    """Return the standard error of the noise of the released design effect."""
    return _effect_unit(release) * math.sqrt(release.parts[DEPENDENCE].noise_variance)


def second_moments(equations: ScoreEquations, release: Release, b: FloatArray) -> FloatArray:
    """Return the covariance of the scores as estimated by released second moments, shape (p, p).

    Let q_ij be the sums of (net_i - net_j)^2 and C the centring matrix. The sum of net net' is then
    -C q C / 2. Minus the part explained by the mean, it is an unbiased estimate of the covariance
    of the net wins, which noise can make indefinite. If expected net wins were subtracted before
    the release, the mean contains noise only. For the number of ties only the variance is released;
    the other entries of its row and column have no meaning.
    """
    n = release.design.nobs
    part = release.parts[DEPENDENCE]
    released = part.step * release.found.get(RESIDUAL, 1.0) ** 2 * part.values
    first, second = np.triu_indices(equations.items, 1)
    squares = np.zeros_like(equations.linear.identity)
    squares[first, second] = released[: len(first)]
    total = -0.125 * equations.linear.centred(equations.linear.centred(squares + squares.T).T)
    if equations.tied:
        total[-1, -1] = released[-1]
    if (matching := equations.matching) is not None:  # include the effect of fitting beta
        mean = equations.function.mean(equations.linear.predict(b))
        total += matching.covariance(mean)
        total -= replace(matching, slopes=np.zeros_like(mean)).covariance(mean)
    mean = equations.noise_covariance(b)
    if not release.design.varied:
        mean = np.outer(equations.score, equations.score) - mean
    return np.asarray((total - mean / n) * (n / max(n - 1, 1)))


def floored_moments(
    equations: ScoreEquations, release: Release, b: FloatArray, independent: FloatArray
) -> FloatArray:
    """Return :func:`second_moments`, in no direction less than under independent answers.

    The covariance of the ties T and half the net wins s is not released. To first order, the
    estimates depend on the scores by s - u T for worths and by T - h's for lambda, where u and h
    follow from the information. By the Cauchy-Schwarz inequality the covariance of s - u T is at
    most (1 + k) Cov s + (1 + 1/k) u u' Var T for any k > 0; the k that gives the least trace is
    used. The variance of T - h's is at most (sd h's + sd T)^2. The returned covariance gives both
    exactly these bounds, and no covariance between them. Statements on worths are therefore valid
    simultaneously, and a statement on lambda is valid separately.
    """
    measured = second_moments(equations, release, b)
    if not equations.tied:
        return floored(measured, independent)
    nets = floored(measured[:-1, :-1], independent[:-1, :-1])
    ties = max(float(measured[-1, -1]), float(independent[-1, -1]))
    information = equations.information(b)
    beside_worths = information[-1, :-1] / max(information[-1, -1], 1e-300)
    of_lambda = equations.linear.inverse(information)[-1]
    beside_ties = -of_lambda[:-1] / of_lambda[-1]
    both = ties * np.outer(beside_worths, beside_worths)
    ratio = math.sqrt(max(np.trace(both), 1e-300) / max(np.trace(nets), 1e-300))
    own = (math.sqrt(max(beside_ties @ nets @ beside_ties, 0.0)) + math.sqrt(ties)) ** 2
    apart = block_diag((1.0 + ratio) * nets + (1.0 + 1.0 / ratio) * both, own)
    # the scores from s - u T and T - h's
    sides = np.append(beside_worths, 1.0), np.append(beside_ties, 1.0)
    rest = max(1.0 - float(beside_worths @ beside_ties), 1e-9)
    return propagate(block_diag(np.eye(equations.items), 0.0) + np.outer(*sides) / rest, apart)


def floored(measured: FloatArray, least: FloatArray) -> FloatArray:
    """Return the measured covariance, in no direction less than `least`.

    In a direction with less variance than under `least` the variance is set to that value. Noise
    then cannot make a variance negative, and intervals can only become wider.
    """
    values, vectors = spectrum(least)
    # in coordinates in which `least` is the identity, no eigenvalue may be below 1
    positive = values > 1e-11 * values.max()
    root = vectors[:, positive] * np.sqrt(values[positive])
    unit = vectors[:, positive] / np.sqrt(values[positive])
    values, vectors = spectrum(unit.T @ measured @ unit)
    wider = root @ vectors
    return np.asarray((wider * np.maximum(values, 1.0)) @ wider.T)


def moments_by_block(
    equations: ScoreEquations, release: Release
) -> Iterator[tuple[slice, FloatArray, FloatArray, FloatArray]]:
    """Yield runs of edges that one respondent can have answered, with their released moments.

    The moments are sums over respondents of products of outcomes z with each other, of outcomes
    with the number of answers n to an edge, and of these numbers with each other. The outcomes are
    y; if ties have a parameter, y is followed by the ties t. Votes of local reports are divided by
    the gain of the randomised response, and then have the mean of the answer.
    """
    steps = weight_unit(release.design) ** -2  # squared steps of design weights
    gain = float(release.plan.settings.get(GAIN, 1.0))  # the mean local report of an answer of 1
    scales = {MOMENTS[0]: gain**2, MOMENTS[1]: gain}
    start = 0
    for part in edge_runs(release.design, equations.pairs):
        size = part.stop - part.start
        here = slice(start, start + size**2)
        start += size**2
        yy, yn, nn, *ties = (
            release.parts[name].values[here].reshape(size, size) / (steps * scales.get(name, 1.0))
            for name in MOMENTS + TIE_MOMENTS * equations.tied
        )
        if ties:
            ty, tn, tt = ties
            yy = np.block([[yy, ty.T], [ty, tt]])
            yn = np.vstack((yn, tn))
        yield part, yy, yn, nn


def cluster_moments(
    equations: ScoreEquations, release: Release, b: FloatArray, function: ScoreFunction
) -> FloatArray:
    """Return the cluster-robust covariance of the scores from moments by pair, shape (p, p).

    This is n / (n - 1) times the sum over respondents of the outer product of their scores. A
    respondent's score is half the net wins minus their expectation, times the weights of the
    function; for ties it is the number of ties minus its expectation. The moments come in blocks of
    edges that one respondent can have answered.
    """
    along = equations.linear.along(np.eye(len(b)))
    weights, mean = _residuals(equations, along, equations.linear.predict(b), function)
    total = np.zeros((len(b), len(b)))
    for part, zz, zn, nn in moments_by_block(equations, release):
        rows = weights[:, :, part].reshape(len(b), -1)
        expected = mean[:, part]
        # the sum over respondents of products of outcomes z minus their expectation
        cross = rows @ zn @ expected.T
        total += rows @ zz @ rows.T - cross - cross.T + expected @ nn @ expected.T
    return total * (release.design.nobs / max(release.design.nobs - 1, 1))


def _residuals(
    equations: ScoreEquations, along: FloatArray, t: FloatArray, function: ScoreFunction
) -> tuple[FloatArray, FloatArray]:
    """Return weights of the outcomes of an answer in combinations of scores, and the expectations.

    `along` are the weights of the scores by edge, shape (rows, edges), and `t` the predictors. The
    weights have the shape (rows, outcomes, pairs): an answer has the outcome y, followed by the tie
    if ties have a parameter. The expectations are sums over outcomes, shape (rows, pairs).
    """
    if equations.tied:
        won, tied, lost = answer_probabilities(*worths_and_ties(t))
        half, tie = worths_and_ties(along)
        return np.stack((0.5 * half, tie), axis=1), 0.5 * half * (won - lost) + tie * tied
    half = along * function.weight(t)
    return 0.5 * half[:, None], half * function.link.excess(t)


def with_tie_floor(
    equations: ScoreEquations, release: Release, b: FloatArray, scores: FloatArray
) -> FloatArray:
    """Return the covariance of the scores, raised to the variance that lambda may have.

    `scores` is the covariance under the largest design effect D. For the comparison with other
    contrasts, the variance of lambda under independent answers was multiplied by f
    (:func:`privrank.mechanisms.tallies.round_directions`). The release therefore bounds the design
    effect of lambda by f D only, and, like every design effect, by the number of answers of a
    respondent. If the same respondents declare most ties, D is the design effect of lambda itself.
    No other contrast then compensates for noise that lowers D, so half the standard error of this
    noise is added to D. Only the part of the covariance along lambda is raised; contrasts of
    worths, which have little of it, change little.
    """
    effect = released_effect(release)
    # coverage at nominal 0.95 is then at least 0.948 for any Laplace noise and every D up to 15
    own = (effect + 0.5 * effect_error(release)) * release.found[TIE_FLOOR]
    more = max(min(own, release.design.sensitivity.effective_rows) / effect, 1.0) - 1.0
    direction = equations.linear.inverse(equations.information(b))[-1]
    along = scores @ direction
    return scores + more / max(float(direction @ along), 1e-300) * np.outer(along, along)


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """The contrasts whose design effects are compared, as weights of a respondent's net wins.

    Parameters
    ----------
    weights : ndarray, shape (contrasts, kinds, m + more)
        Weights of the net wins of the items, and of the sums of instruments of contest covariates,
        by combination of covariate values. If ties have a parameter, the last weights belong to the
        number of ties, and the last contrast is this parameter.
    independent : ndarray, shape (contrasts,)
        Variance of the weighted sum if all answers were independent.
    explained : ndarray, shape (contrasts,)
        The part of the sum of squares that is explained by the mean net wins of respondents.
    units : ndarray, shape (kinds,)
        Upper bound of the number of respondents with each combination of covariate values.
    others : float
        Upper bound of the design effects of all other contrasts, as a multiple of the largest of
        these. It is 2 if differences are left out, because the variance of a difference is at most
        twice the sum of the two variances.
    """

    weights: FloatArray
    independent: FloatArray
    explained: FloatArray
    units: FloatArray
    others: float = 1.0


def compared_scores(
    equations: ScoreEquations, release: Release, response: FloatArray
) -> FloatArray:
    """Return the contrasts that a result prints or tests, as weights of scores, shape (rows, p).

    `response` is the map from scores to coefficients. The contrasts are the shown coefficients and,
    for each column of the model matrix and each group, all worths and all differences of two
    worths. Without covariates, all win rates and their differences are added, which
    :class:`privrank.PrivateTopK` compares. With many items, or many combinations of covariate
    values, differences are left out.
    """
    design = release.design
    facts = equations.covariates
    m = len(design.items)
    first, second = np.triu_indices(m if design.few_differences else 0, 1)
    pairs = np.eye(m)[first] - np.eye(m)[second]
    shown = display(design)
    if facts is None:
        rows = [shown, pairs @ shown]
    else:
        groups = worth_map(design, groups_at(facts, None, every=True))
        columns = np.kron(np.eye(len(facts.columns)), pairs @ item_basis(facts, m))
        rows = [
            shown,
            groups,
            *(pairs @ groups[k : k + m] for k in range(0, len(groups), m)),
            np.pad(columns, ((0, 0), (0, beside_worths(design)))),
        ]
    # exactly zero where nothing is identified, because directions are scaled to one length later
    scores = product(equations.components.within(np.vstack(rows)), response)
    if facts is None:
        known = equations.components.together
        rates = np.vstack((np.eye(m)[known.any(axis=1)], pairs[known[first, second]]))
        rates = equations.linear.centred(
            rates / np.maximum(released_degrees(equations), 1.0) @ shown
        )
        scores = np.vstack((scores, rates))
    return scores


def contrast_directions(
    equations: ScoreEquations, release: Release, b: FloatArray, response: FloatArray
) -> Directions:
    """Return the directions of all contrasts that a result prints or tests.

    `b` is the fit and `response` its map from scores to coefficients.
    """
    design = release.design
    scores = compared_scores(equations, release, response)
    if equations.tied:
        scores = np.vstack((scores, response[-1]))
    weights = weights_by_kind(design, equations, scores)
    # net wins are the scores of the matching loss, whichever loss the fit uses
    function = ScoreFunction(release.link, ties=equations.tied)
    return Directions(
        weights,
        4.0 * quadratic(scores, independent_scores(equations, release, b, function)),
        _explained(equations, release, b, scores, weights),
        _most_units(equations, design, errors=0.0),
        1.0 if design.few_differences else 2.0,
    )


def expected_answers(release: Release, b: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Return the expected outcome (wins minus losses) of each item against each other item.

    If ties have a parameter, the probabilities of ties are the second value; if not, it is None.
    """
    worths = b[: len(release.design.items)]
    apart = worths[:, None] - worths
    if release.design.davidson:
        won, tied, lost = answer_probabilities(apart, float(b[-1]))
        return won - lost, tied
    return np.asarray(2.0 * ScoreFunction(release.link).mean(apart)), None


def weights_by_kind(design: Design, equations: ScoreEquations, scores: FloatArray) -> FloatArray:
    """Return weights of net wins by kind and item, given the weights of the scores."""
    facts = equations.covariates
    m = len(design.items)
    items = scores[:, None, :m]
    if facts is not None:
        basis = item_basis(facts, m)
        size = len(facts.columns) * basis.shape[1]
        table = scores[:, :size].reshape(len(scores), len(facts.columns), -1)
        rows = facts.matrix[np.unique(facts.kinds, return_index=True)[1]]
        items = np.einsum("sk,ckq,iq->csi", rows, table, basis, optimize=True)
    more = beside_worths(design)
    weights = np.pad(items, ((0, 0), (0, 0), (0, more)))
    # a score is half a net win, a tie, or half a sum of instruments in steps
    unit = instruments_of(design).unit if equations.contests else 1.0 + equations.tied
    weights[:, :, m:] = (unit * scores[:, scores.shape[1] - more :])[:, None]
    return weights


def _explained(
    equations: ScoreEquations,
    release: Release,
    b: FloatArray,
    scores: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """Return a lower estimate of the part of sums of squares that mean net wins explain.

    If expected net wins vary between respondents, they are subtracted first. With groups the part
    is computed by group, from the released net wins of the group and the largest number of units
    that it can have. In all other cases all respondents are given one mean, which explains less
    than their own means.
    """
    facts = equations.covariates
    left = release.design.varied  # then the mean of the residuals is noise only
    if left or facts is None or facts.bounds or facts.contest or NET not in release.parts:
        noise = quadratic(scores, equations.noise_covariance(b))
        more = noise if left else np.maximum((scores @ equations.score) ** 2 - noise, 0.0)
        return np.asarray(4.0 * more / release.design.nobs)
    part = release.parts[NET]
    m = equations.items
    cells = facts.cell[np.unique(facts.kinds, return_index=True)[1]]
    net = (part.step * part.values.reshape(-1, m))[cells]
    sums = np.einsum("csi,si->cs", weights[:, :, :m], net)
    centred = weights[:, :, :m] - weights[:, :, :m].mean(axis=2, keepdims=True)
    variance = 4.0 * equations.by_item.score_variance * (centred**2).sum(axis=2)
    if equations.tied:  # released for all groups together; split by their expectation at the fit
        tied = scores_by_pattern(equations, b)[:, -1]
        of_kinds = weights[:, :, m] * np.bincount(facts.kinds, tied)
        sums = sums + of_kinds
        variance = variance + of_kinds**2 * equations.variance(TIES) / tied.sum() ** 2
    by_cell = (sums**2 - variance) / _most_units(equations, release.design, errors=3.0)
    return np.asarray(np.maximum(by_cell.sum(axis=1), 0.0))


def _most_units(equations: ScoreEquations, design: Design, errors: float) -> FloatArray:
    """Return upper bounds of the units with each combination of covariate values, at least 1.

    If the numbers are public, they are returned. In all other cases the bound is the number of all
    units minus the units that the other groups must have at least. That number follows from their
    released answers, lowered by `errors` standard errors of the noise, because no unit gives more
    than `rows` answers.
    """
    facts = equations.covariates
    if facts is not None and len(facts.units):
        size = np.ones(len(np.unique(facts.kinds)))
        np.maximum.at(size, facts.kinds, facts.units)
        return size
    if not len(equations.group_answers):
        return np.array([float(design.nobs)])
    margin = errors * np.sqrt(equations.variance(GROUP_ANSWERS))
    sure = np.maximum(equations.group_answers - margin, 0.0) / design.sensitivity.effective_rows
    return np.asarray(np.clip(design.nobs - sure.sum() + sure, 1.0, design.nobs))


@dataclass(frozen=True, eq=False)
class Clusters:
    """The answers of respondents as moments by pair, for exact answers or for local reports.

    If answers are known, the design effect of a combination of scores is 1 + X / I. Here I is the
    variance under independent answers. X is the sum over respondents of the products of the
    residuals of any two different answers, where a residual is the answer minus its expectation.
    The squares of single residuals are not part of X, so no answer is compared with itself.

    Parameters
    ----------
    equations : ScoreEquations
        The release, read as score equations.
    release : Release
        The release that contains the moments.
    """

    equations: ScoreEquations
    release: Release

    @cached_property
    def _blocks(self) -> list[tuple[slice, FloatArray, FloatArray, FloatArray]]:
        """Runs of pairs that one respondent can have answered, with their moments."""
        return [
            (part, readonly_copy(zz), readonly_copy(zn), readonly_copy(nn))
            for part, zz, zn, nn in moments_by_block(self.equations, self.release)
        ]

    @property
    def _by_pair(self) -> list[FloatArray]:
        """Net wins, and answers other than ties, of each pair."""
        values = self.release.parts[BY_PAIR].values.astype(np.float64)
        return np.split(weight_unit(self.release.design) ** 2 * values, 2)

    def _squares(self, along: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sums of squares over respondents, and over answers, of combined residuals."""
        facts = self.equations
        weights, mean = _residuals(facts, along, t, facts.fitted)
        total = np.zeros(len(along))
        for part, zz, zn, nn in self._blocks:
            rows = weights[:, :, part].reshape(len(along), -1)
            q = mean[:, part]
            total += quadratic(rows, zz) + quadratic(q, nn) - 2.0 * ((rows @ zn) * q).sum(axis=1)
        if BY_PAIR not in self.release.parts:  # an older archive: use the expected squares
            return total, self._variances(along, t).sum(axis=1)
        net, decided = self._by_pair
        won = weights[:, 0] / float(self.release.plan.settings.get(GAIN, 1.0))
        own = won**2 * decided - 2.0 * won * mean * net + mean**2 * facts.pairs.squared
        for tie in weights[:, 1:].swapaxes(0, 1):
            own += (facts.pairs.squared - decided) * tie * (tie - 2.0 * mean)
        return total, own.sum(axis=1)

    def effects(self, along: FloatArray, t: FloatArray, factor: float = 1.0) -> FloatArray:
        """Return the design effects of combinations of scores, shape (rows,).

        Parameters
        ----------
        along : ndarray, shape (rows, edges)
            Weights of the scores by edge.
        t : ndarray, shape (rows, edges)
            Predictors at which residuals are taken.
        factor : float
            Factor of X: n / (n - 1) at a fit, because residuals from a fit are smaller.

        Returns
        -------
        ndarray, shape (rows,)
            At least 1, and at most the largest value for answers of these variances. By the
            Cauchy-Schwarz inequality this is the sum over respondents of the squared sums of
            standard deviations, divided by I.
        """
        by_pair = self._variances(along, t)
        independent = np.maximum(by_pair.sum(axis=1), 1e-300)
        deviations = np.sqrt(by_pair / np.maximum(self.equations.pairs.squared, 1e-300))
        most = sum(quadratic(deviations[:, part], nn) for part, _, _, nn in self._blocks)
        squares, own = self._squares(along, t)
        effect = 1.0 + factor * (squares - own) / independent
        return np.asarray(np.clip(effect, 1.0, np.maximum(most / independent, 1.0)))

    def excess(self, along: FloatArray, t: FloatArray) -> FloatArray:
        """Return X of all products of combinations of scores, shape (rows, rows)."""
        sums = along[:, None] + along
        squares, own = self._squares(sums.reshape(-1, along.shape[1]), t[None])
        both = (squares - own).reshape(len(along), len(along))
        alone = 0.25 * np.diag(both)
        return np.asarray(0.5 * (both - alone[:, None] - alone))

    def spread(self, t: FloatArray) -> FloatArray:
        """Return the variance of each edge's score of independent answers at predictors t.

        Each tie that counts as half a win lowers the variance by 1/4, down to the least variance
        that is possible with this mean.
        """
        facts = self.equations
        count = facts.pairs.squared
        if facts.tied or len(facts.response) or BY_PAIR not in self.release.parts:
            return facts.spread(t, facts.fitted)
        ties = count - self._by_pair[1]
        variance = facts.function.link.exact.variance(t)
        # the smaller probability q of an answer, from q (1 - q)
        upset = 2.0 * variance / (1.0 + np.sqrt(np.maximum(1.0 - 4.0 * variance, 0.0)))
        answers = np.maximum(count * variance - 0.25 * ties, count * upset * (0.5 - upset))
        return np.asarray(answers * facts.fitted.weight(t) ** 2)

    def _variances(self, along: FloatArray, t: FloatArray) -> FloatArray:
        """Return the variances of combinations of scores by pair, under independent answers."""
        shape = (len(along), -1, len(self.equations.pairs.count))
        return np.asarray((along**2 * self.spread(t)).reshape(shape).sum(axis=1))
