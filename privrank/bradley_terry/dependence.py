"""The dependence of a respondent's answers: what is released of it, and what it shows.

A contrast of the coefficients moves, to first order, by the sum over respondents of half their net
wins, weighted by item. Its *design effect* is the variance of that over the variance that
independent answers would give it. What is released about it, in
:mod:`privrank.mechanisms.tallies`, is of contrasts found in the first stage of the same release;
with it comes the covariance of the scores over respondents. Sees no data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privrank.bradley_terry.equations import ScoreEquations, released_degrees, scores_by_pattern
from privrank.bradley_terry.errors import SecondMoments
from privrank.bradley_terry.linear import (
    bordered,
    display,
    edge_runs,
    groups_at,
    item_basis,
    worth_map,
)
from privrank.bradley_terry.losses import (
    ScoreFunction,
    answer_probabilities,
    edges_of,
    worths_and_ties,
)
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
from privrank.release.survey import Design
from privrank.util.arrays import FloatArray, readonly_copy
from privrank.util.solvers import product, propagate, quadratic, spectrum

FARTHEST = 4.0
"""Predictors beyond this, in spreads of worths, count as this when answers' variances are found."""


def independent_scores(
    equations: ScoreEquations,
    release: Release,
    b: FloatArray,
    function: ScoreFunction | None = None,
) -> FloatArray:
    """Return the covariance of the scores if all answers were independent, shape (p, p).

    Of another function of the worths than the fit's, if one is given. Where dependence is measured
    against it, noise in the worths must not make it vanish. Where opponents were matched at random,
    who met whom varies as well.
    """
    function = function or equations.fitted
    t = equations.linear.predict(b)
    if DEPENDENCE in release.plan.parts:
        far = FARTHEST * function.spread
        if function.ties:
            apart, tie = worths_and_ties(t)
            t = edges_of(np.clip(apart, -far, far), np.clip(tie, -far, far))
        else:
            t = np.clip(t, -far, far)
    answers = equations.linear.information(equations.spread(t, function))
    matching = equations.matching
    if matching is None or not t.any():  # of equal worths nothing depends on who met whom
        return answers
    return answers + matching.covariance(equations.function.mean(t))


def degrees_of_freedom(release: Release) -> float:
    """Return those of the sampling covariance: respondents less one where they show it.

    Infinite where answers are taken as independent, as then the fit gives it; no more than the
    contrasts of the items that show their scatter about item covariates.
    """
    estimated = release.parts.keys() & {DEPENDENCE, MOMENTS[0]}
    df = max(release.design.nobs - 1.0, 1.0) if estimated else math.inf
    return min(df, release.design.item_freedom or math.inf)


def released_effect(release: Release) -> float:
    """Return the largest design effect of any contrast, at least 1.

    It is the largest that any answers can have where the release cannot tell
    (:func:`effect_bounded`).
    """
    ceiling = release.found[CEILING]
    return ceiling if effect_bounded(release) else max(1.0, min(_as_released(release), ceiling))


def effect_bounded(release: Release) -> bool:
    """Return whether the release shows no more of the design effect than its ceiling.

    So it is where the set of design effects that noise of this scale does not exclude at level .05,
    to one side, reaches the largest that any answers can have.
    """
    part = release.parts[DEPENDENCE]
    noise = _effect_unit(release) * part.step * part.laplace.scale
    return bool(_as_released(release) + noise * math.log(20.0) >= release.found[CEILING])


def _as_released(release: Release) -> float:
    part = release.parts[DEPENDENCE]
    return _effect_unit(release) * part.step * float(part.values[0])


def _effect_unit(release: Release) -> float:
    """Return the design effect that one of the released number stands for."""
    return float(release.found[LARGEST]) / release.design.nobs


def effect_error(release: Release) -> float:
    """Return the standard error of the noise of the released design effect."""
    return _effect_unit(release) * math.sqrt(release.parts[DEPENDENCE].noise_variance)


def second_moments(equations: ScoreEquations, release: Release, b: FloatArray) -> FloatArray:
    """Return the covariance of the scores as released second moments show it, shape (p, p).

    With q_ij the sums of (net_i - net_j)^2, the sum of net net' is -C q C / 2, C centring. Less
    what the mean explains it estimates the covariance of the net wins without bias, and noise can
    make it indefinite. Of nets less expected ones nothing but noise is left in the mean. For a
    number of ties only the variance is known, and the entries beside it mean nothing.
    """
    n = release.design.nobs
    released = _unit(release) * release.parts[DEPENDENCE].values
    first, second = np.triu_indices(equations.items, 1)
    squares = np.zeros_like(equations.linear.identity)
    squares[first, second] = released[: len(first)]
    centred = equations.linear.centred
    total = -0.125 * centred(centred(squares + squares.T).T)
    if equations.tied:
        total[-1, -1] = released[-1]
    if (matching := equations.matching) is not None:  # what the fit of beta takes, and adds
        mean = equations.function.mean(equations.linear.predict(b))
        total += matching.covariance(mean)
        total -= replace(matching, slopes=np.zeros_like(mean)).covariance(mean)
    mean = equations.noise_covariance(b)
    if not release.design.varied:
        mean = np.outer(equations.score, equations.score) - mean
    return np.asarray((total - mean / n) * (n / max(n - 1, 1)))


def _unit(release: Release) -> float:
    """Return what one lattice step of the released second moments stands for."""
    return release.parts[DEPENDENCE].step * release.found.get(RESIDUAL, 1.0) ** 2


def floored_moments(
    equations: ScoreEquations, release: Release, b: FloatArray, independent: FloatArray
) -> FloatArray:
    """Return :func:`second_moments`, in no direction less than under independent answers.

    How ties T go with half net wins s is not known. What estimates take from the scores is, to
    first order, s - u T for worths and T - h's for lambda, with u and h from the information. The
    covariance of the first is no more than (1 + k) Cov s + (1 + 1/k) u u' Var T for any k > 0, here
    that of the least trace, and the variance of the second no more than (sd h's + sd T)^2 (Cauchy
    and Schwarz). The scores returned give them just these, and no covariance between them: so all
    statements on worths are valid together, and one on lambda by itself.
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
    apart = bordered((1.0 + ratio) * nets + (1.0 + 1.0 / ratio) * both, own)
    # the scores from s - u T and T - h's
    sides = np.append(beside_worths, 1.0), np.append(beside_ties, 1.0)
    rest = max(1.0 - float(beside_worths @ beside_ties), 1e-9)
    return propagate(bordered(np.eye(equations.items), 0.0) + np.outer(*sides) / rest, apart)


def floored(measured: FloatArray, least: FloatArray) -> FloatArray:
    """Return a covariance as measured, in no direction less than `least`.

    A direction that varies less is set to vary as under `least`, so that noise cannot make a
    variance negative; this can only widen an interval.
    """
    values, vectors = spectrum(least)
    # in coordinates in which `least` is the identity, no eigenvalue may be below 1
    positive = values > 1e-11 * values.max()
    root = vectors[:, positive] * np.sqrt(values[positive])
    unit = vectors[:, positive] / np.sqrt(values[positive])
    values, vectors = spectrum(unit.T @ measured @ unit)
    wider = root @ vectors
    return np.asarray((wider * np.maximum(values, 1.0)) @ wider.T)


def single_contrasts(
    equations: ScoreEquations, release: Release, b: FloatArray
) -> SecondMoments | None:
    """Return what second moments of pairs say of single contrasts, None where none are released.

    A combination a of half net wins has the variance -sum over pairs of a_i a_j q_ij / 4.
    """
    if DEPENDENCE not in release.parts or LARGEST in release.found:
        return None
    distribution = release.parts[DEPENDENCE].distribution
    assert distribution is not None
    return SecondMoments(
        second_moments(equations, release, b),
        independent_scores(equations, release, b),
        _unit(release) ** 2 * distribution.variance / 16.0,
        equations.tied,
    )


def moments_by_block(
    equations: ScoreEquations, release: Release
) -> Iterator[tuple[slice, FloatArray, FloatArray, FloatArray]]:
    """Yield runs of edges that one respondent can have answered, with their released moments.

    Sums over respondents of products of outcomes z with each other, with how often the edge was
    answered, n, and of these. Outcomes are y, or where ties have a parameter y and then ties t.
    Votes of reports enter over the gain of the response, which has the mean of the answer.
    """
    names = MOMENTS + TIE_MOMENTS * equations.tied
    start = 0
    gain = _gain(release)
    scales = {MOMENTS[0]: gain**2, MOMENTS[1]: gain}
    for part in edge_runs(release.design, equations.pairs):
        size = part.stop - part.start
        values = [
            release.parts[name].values[start : start + size**2] / scales.get(name, 1.0)
            for name in names
        ]
        yy, yn, nn, *ties = [
            readonly_copy(moments.reshape(size, size), np.float64) for moments in values
        ]
        if ties:
            ty, tn, tt = ties
            yield part, np.block([[yy, ty.T], [ty, tt]]), np.vstack((yn, tn)), nn
        else:
            yield part, yy, yn, nn
        start += size**2


def _gain(release: Release) -> float:
    """Return the mean of a report of an answer of 1; an answer itself is its own report."""
    return float(release.plan.settings.get(GAIN, 1.0))


def cluster_moments(
    equations: ScoreEquations, release: Release, b: FloatArray, function: ScoreFunction
) -> FloatArray:
    """Return n / (n - 1) times the sum of score times score over respondents, by pair moments.

    A respondent's score is the sum of half their net wins less expected, times the function's
    weights, and of their ties less expected; the moments come in blocks of edges that one
    respondent can have answered.
    """
    t = equations.linear.predict(b)
    total = np.zeros((len(b), len(b)))
    worths = equations.linear.worths or equations.linear
    n = release.design.nobs
    if equations.tied:
        won, tied, lost = answer_probabilities(*worths_and_ties(t))
        mean = np.array((won - lost, tied))
        half = np.full_like(won, 0.5)
    else:
        mean = 2.0 * function.link.excess(t)[None]
        half = 0.5 * function.weight(t)
    for part, zz, zn, nn in moments_by_block(equations, release):
        rows = half[part, None] * worths.rows(part)
        expected = mean[:, part].ravel()
        if equations.tied:  # ties stand below the outcomes y
            zero = np.zeros((len(rows), 1))
            rows = np.block([[rows, zero], [np.zeros_like(rows), zero + 1.0]])
        # the sum over respondents of products of outcomes z less expected ones, n mean
        cross = np.tile(zn, len(mean)) * expected
        both = np.tile(nn, (len(mean), len(mean))) * np.outer(expected, expected)
        meat = zz - cross - cross.T + both
        total += rows.T @ meat @ rows
    return total * (n / max(n - 1, 1))


def with_tie_floor(
    equations: ScoreEquations, release: Release, b: FloatArray, scores: FloatArray
) -> FloatArray:
    """Return scores of so much variance that lambda has what was released of its own.

    Given their covariance with the largest design effect D. That of lambda was compared by a larger
    variance than that of independent answers, f times (:func:`privrank.mechanisms.tallies.
    round_directions`), so that its design effect is only known to be at most f D; and, as of all
    sums, no more than the answers of a respondent. Where the same people tie it is lambda that D
    belongs to, and what noise took from D no other contrast makes up for: so D counts with half the
    standard error of its noise. Added is the part of the covariance that goes with lambda:
    contrasts of worths, which hardly do, stay nearly as they are.
    """
    effect = released_effect(release)
    most = release.design.sensitivity.effective_rows
    # coverage at nominal .95 is then .948 and more for any noise of Laplace and every D up to 15
    own = (effect + 0.5 * effect_error(release)) * release.found[TIE_FLOOR]
    more = max(min(own, most) / effect, 1.0) - 1.0
    direction = equations.linear.inverse(equations.information(b))[-1]
    along = scores @ direction
    inside = float(direction @ along)
    return np.asarray(scores + more / max(inside, 1e-300) * np.outer(along, along))


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """The contrasts whose design effects are compared, as weights of a respondent's net wins.

    Parameters
    ----------
    weights : ndarray, shape (contrasts, kinds, m + 1)
        Weights of the net wins of the items, and of the items named first, by combination of
        covariate values. Where ties have a parameter the last weights are of the number of ties,
        and the last contrast is that parameter.
    independent : ndarray, shape (contrasts,)
        Variance of the weighted sum if all answers were independent.
    explained : ndarray, shape (contrasts,)
        What the means of respondents' nets add to the sum of their squares.
    units : ndarray, shape (kinds,)
        How many respondents have each combination of covariate values at most.
    others : float
        How many times the largest of their design effects that of other contrasts can be: 2 where
        differences are left out, as the variance of a difference is at most twice the sum of both.
    """

    weights: FloatArray
    independent: FloatArray
    explained: FloatArray
    units: FloatArray
    others: float = 1.0


def contrast_directions(
    equations: ScoreEquations, release: Release, b: FloatArray, response: FloatArray
) -> Directions:
    """Return the directions of all contrasts that a result prints or tests.

    Given the fit and its map from scores to coefficients. Directions are those of the shown
    coefficients, and of each column of the model matrix and of each group all worths and all
    differences of two. Without covariates they are also those of all win rates and their
    differences, which :class:`privrank.PrivateTopK` compares. Of many items, or combinations of
    covariate values, differences are left out.
    """
    design = release.design
    facts = equations.covariates
    m = len(design.items)
    few = design.few_differences
    first, second = np.triu_indices(m if few else 0, 1)
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
            np.pad(columns, ((0, 0), (0, int(facts.ordered or equations.tied)))),
        ]
    # exactly zero where nothing is identified: directions are brought to one length
    scores = product(equations.components.within(np.vstack(rows)), response)
    if facts is None:
        known = equations.components.together
        rates = np.vstack((np.eye(m)[known.any(axis=1)], pairs[known[first, second]]))
        rates = equations.linear.centred(
            rates / np.maximum(released_degrees(equations), 1.0) @ shown
        )
        scores = np.vstack((scores, rates))
    if equations.tied:
        scores = np.vstack((scores, response[-1]))
    weights = _by_kind(design, equations, scores)
    # nets are the scores of the matching loss, whichever the fit has
    function = ScoreFunction(release.link, ties=equations.tied)
    independent = 4.0 * quadratic(scores, independent_scores(equations, release, b, function))
    explained = _explained(equations, release, b, scores, weights)
    units = _most_units(equations, design, errors=0.0)
    return Directions(weights, independent, explained, units, 1.0 if few else 2.0)


def expected_answers(release: Release, b: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Return the expected outcome, wins less losses, of each item against each other.

    And how probable a tie is, where ties have a parameter.
    """
    worths = b[: len(release.design.items)]
    apart = worths[:, None] - worths
    if release.design.davidson:
        won, tied, lost = answer_probabilities(apart, float(b[-1]))
        return won - lost, tied
    return np.asarray(2.0 * ScoreFunction(release.link).mean(apart)), None


def _by_kind(design: Design, equations: ScoreEquations, scores: FloatArray) -> FloatArray:
    """Return weights of net wins by kind and item, given those of the scores."""
    facts = equations.covariates
    m = len(design.items)
    if facts is None:
        weights = np.pad(scores[:, None, :m], ((0, 0), (0, 0), (0, 1)))
    else:
        basis = item_basis(facts, m)
        size = len(facts.columns) * basis.shape[1]
        table = scores[:, :size].reshape(len(scores), len(facts.columns), -1)
        _, where = np.unique(facts.kinds, return_index=True)
        weights = np.zeros((len(scores), len(where), m + 1))
        weights[:, :, :m] = np.einsum(
            "sk,ckq,iq->csi", facts.matrix[where], table, basis, optimize=True
        )
    if equations.ordered or equations.tied:  # a score is half a net win, or a tie
        weights[:, :, m] = (2.0 if equations.tied else 1.0) * scores[:, -1:]
    return weights


def _explained(
    equations: ScoreEquations,
    release: Release,
    b: FloatArray,
    scores: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """Return what mean nets, less expected ones where these vary, add to sums of squares, or less.

    With groups by group, at the released net wins of each and the most units it can have; else as
    if all respondents had one mean, which explains less than their own.
    """
    facts = equations.covariates
    n = release.design.nobs
    left = release.design.varied  # then the fit left nothing but noise of what it expects
    if left or facts is None or facts.bounds or equations.ordered or NET not in release.parts:
        noise = quadratic(scores, equations.noise_covariance(b))
        more = noise if left else np.maximum((scores @ equations.score) ** 2 - noise, 0.0)
        return np.asarray(4.0 * more / n)
    part = release.parts[NET]
    m = equations.items
    cells = facts.cell[np.unique(facts.kinds, return_index=True)[1]]
    net = (part.step * part.values.reshape(-1, m))[cells]
    sums = np.einsum("csi,si->cs", weights[:, :, :m], net)
    centred = weights[:, :, :m] - weights[:, :, :m].mean(axis=2, keepdims=True)
    variance = 4.0 * equations.by_item.score_variance * (centred**2).sum(axis=2)
    if equations.tied:  # released for all groups together: those of each as the fit expects them
        tied = scores_by_pattern(equations, b)[:, -1]
        of_kinds = weights[:, :, m] * np.bincount(facts.kinds, tied)
        sums = sums + of_kinds
        variance = variance + of_kinds**2 * equations.variance(TIES) / tied.sum() ** 2
    by_cell = (sums**2 - variance) / _most_units(equations, release.design, errors=3.0)
    return np.asarray(np.maximum(by_cell.sum(axis=1), 0.0))


def _most_units(equations: ScoreEquations, design: Design, errors: float) -> FloatArray:
    """Return how many units each combination of covariate values has at most, at least 1.

    Their numbers where they are public. Else all but those that the released answers of the other
    groups take, so many standard errors of noise off, as nobody gives more than `rows`.
    """
    facts = equations.covariates
    if facts is not None and len(facts.units):
        size = np.ones(len(np.unique(facts.kinds)))
        np.maximum.at(size, facts.kinds, facts.units)
        return size
    if not len(equations.group_answers):
        return np.array([float(design.nobs)])
    least = equations.group_answers - errors * np.sqrt(equations.variance(GROUP_ANSWERS))
    sure = np.maximum(least, 0.0) / design.sensitivity.effective_rows
    return np.asarray(np.clip(design.nobs - sure.sum() + sure, 1.0, design.nobs))


@dataclass(frozen=True, eq=False)
class Clusters:
    """The answers of respondents as moments by pair: without privacy, or of their reports.

    Where answers are known the design effect of a combination of scores is 1 + X / I: I is the
    variance of independent answers, and X the sum over respondents of the products of any two
    different answers less what is expected of each. An answer's own square is not part of X, so
    that what is expected of it does not depend on itself.

    Parameters
    ----------
    equations : ScoreEquations
        The release, read as score equations.
    release : Release
        The release, which holds the moments.
    """

    equations: ScoreEquations
    release: Release

    @cached_property
    def _blocks(self) -> list[tuple[slice, FloatArray, FloatArray, FloatArray]]:
        """Runs of pairs that one respondent can have answered, with their moments."""
        return list(moments_by_block(self.equations, self.release))

    def _squares(self, along: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sums of squares over respondents, and over answers, of combined residuals."""
        facts = self.equations
        count = self.equations.pairs.count
        if facts.tied:
            half, tie = worths_and_ties(along)
            won, tied, lost = answer_probabilities(*worths_and_ties(t))
            mean = 0.5 * half * (won - lost) + tie * tied
        else:
            half = along * facts.fitted.weight(t)
            tie = np.zeros_like(along)
            mean = half * facts.function.link.excess(t)
        total = np.zeros(len(along))
        for part, zz, zn, nn in self._blocks:
            q = mean[:, part]
            weights = 0.5 * half[:, part]
            if facts.tied:
                weights = np.hstack((weights, tie[:, part]))
            total += quadratic(weights, zz) + quadratic(q, nn)
            total -= 2.0 * ((weights @ zn) * q).sum(axis=1)
        if BY_PAIR not in self.release.parts:  # an archive of before: squares as expected
            return total, self._variances(along, t).sum(axis=1)
        net, decided = np.split(self.release.parts[BY_PAIR].values.astype(np.float64), 2)
        gain = _gain(self.release)
        own = 0.25 * (half / gain) ** 2 * decided - half / gain * mean * net + mean**2 * count
        own = own + (count - decided) * tie * (tie - 2.0 * mean)
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
            What X is multiplied by: n / (n - 1) at a fit, from which residuals are smaller.

        Returns
        -------
        ndarray, shape (rows,)
            At least 1, and at most what answers of these variances allow: by Cauchy and
            Schwarz the sum over respondents of the squared sums of standard deviations, over I.
        """
        by_pair = self._variances(along, t)
        independent = np.maximum(by_pair.sum(axis=1), 1e-300)
        deviations = np.sqrt(by_pair / np.maximum(self.equations.pairs.count, 1e-300))
        most = sum(quadratic(deviations[:, part], nn) for part, _, _, nn in self._blocks)
        squares, own = self._squares(along, t)
        effect = 1.0 + factor * (squares - own) / independent
        return np.asarray(np.clip(effect, 1.0, np.maximum(most / independent, 1.0)))

    def excess(self, along: FloatArray, t: FloatArray) -> FloatArray:
        """Return X of all products of combinations of scores, shape (rows, rows)."""
        sums = along[:, None] + along[None]
        squares, own = self._squares(sums.reshape(-1, along.shape[1]), t[None])
        both = (squares - own).reshape(len(along), len(along))
        alone = 0.25 * np.diag(both)
        return np.asarray(0.5 * (both - alone[:, None] - alone))

    def spread(self, t: FloatArray) -> FloatArray:
        """Return the variance of each edge's score of independent answers at predictors t.

        A tie that counts as half a win takes a quarter off, down to what the mean allows.
        """
        facts = self.equations
        count = self.equations.pairs.count
        if facts.tied or len(facts.response) or BY_PAIR not in self.release.parts:
            return facts.spread(t, facts.fitted)
        ties = count - np.split(self.release.parts[BY_PAIR].values, 2)[1]
        variance = facts.function.link.exact.variance(t)
        # the smaller probability q of an answer, from q (1 - q)
        upset = 2.0 * variance / (1.0 + np.sqrt(np.maximum(1.0 - 4.0 * variance, 0.0)))
        answers = np.maximum(count * variance - 0.25 * ties, count * upset * (0.5 - upset))
        return np.asarray(answers * facts.fitted.weight(t) ** 2)

    def _variances(self, along: FloatArray, t: FloatArray) -> FloatArray:
        """Return by pair the variances of combinations of scores of independent answers."""
        by_edge = along**2 * self.spread(t)
        by_pair = by_edge.reshape(len(along), -1, len(self.equations.pairs.count))
        return np.asarray(by_pair.sum(axis=1))
