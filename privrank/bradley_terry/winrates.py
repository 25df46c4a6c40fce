"""Variances of win rates and of net wins, which are estimates of a selection."""

from dataclasses import replace

import numpy as np

from privrank.bradley_terry.contrasts import own_and_between
from privrank.bradley_terry.dependence import independent_scores, moments_by_block
from privrank.bradley_terry.equations import ScoreEquations
from privrank.bradley_terry.estimate import estimate, score_covariance
from privrank.release.names import DEPENDENCE, MOMENTS
from privrank.release.release import Release
from privrank.release.survey import Design
from privrank.util.arrays import FloatArray


def rate_variance(facts: ScoreEquations, rate: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return the variances of win rates of independent answers, shape (m,), at these rates."""
    if facts.weights is not None:
        # heavy and light answers may have other means, which the rate does not show
        rate = np.full_like(rate, 0.5)
    deviation = np.abs(rate - 0.5)
    single = rate * (1.0 - rate) + _responses(facts).sum(axis=1) / degrees
    variance = np.maximum(single, deviation * (0.5 - deviation)) / degrees
    if facts.weights is not None:
        variance = variance * _squared(facts).sum(axis=1) / degrees
    return np.asarray(variance)


def _squared(facts: ScoreEquations) -> FloatArray:
    """Return the comparisons of each two items, times the squares of weights, shape (m, m)."""
    return replace(facts.pairs, count=facts.pairs.squared).table(facts.items)


def equal_variances(
    facts: ScoreEquations, degrees: FloatArray, scale: FloatArray, met: FloatArray
) -> FloatArray:
    """Return the variances of differences of estimates of independent answers, shape (m, m).

    The estimates are half the net wins divided by `scale`. If all items are equal, the net wins of
    i and j have variances d_i and d_j and covariance -n_ij, with n_ij given as `met`, shape (m, m).
    Because of this covariance, the difference of two net wins of equal degree d has variance 2 d +
    2 n_ij, not 2 d.
    """
    inverse = 1.0 / scale
    if facts.weights is not None:
        met = _squared(facts)
        degrees = met.sum(axis=1)
    added = _responses(facts)
    shared = (met + 4.0 * added) * np.outer(inverse, inverse)
    own = (degrees + 4.0 * added.sum(axis=1)) * inverse**2
    return np.asarray(0.25 * (own[:, None] + own + 2.0 * shared))


def most_met(facts: ScoreEquations, design: Design, degrees: FloatArray) -> FloatArray:
    """Return the number of comparisons of each pair, or an upper bound.

    The bound is used if the numbers are not known: a pair is compared at most as often as either
    item, and at most as often as respondents may answer one pair.
    """
    if facts.matching is None:
        return facts.pairs.table(facts.items)
    answers = design.nobs * (1 if design.distinct_pairs else design.max_rows)
    return np.minimum(np.minimum.outer(degrees, degrees), answers)


def _responses(facts: ScoreEquations) -> FloatArray:
    """Return the variances of pair scores from randomised response, shape (m, m)."""
    if not len(facts.response):
        return np.zeros((facts.items, facts.items))
    return replace(facts.pairs, count=facts.response).table(facts.items)


def design_effects(
    facts: ScoreEquations,
    release: Release,
    values: FloatArray,
    degrees: FloatArray,
    scale: FloatArray,
) -> FloatArray:
    """Return design effects of estimates and of their differences, shape (m, m).

    These are variances relative to independent answers, with the estimates on the diagonal. For
    cluster-robust answers, the variances of estimates are about their means, and the variances of
    differences are about 0, as under the hypothesis that two items are equal. About the observed
    gap they would be smaller by gap^2 / n.
    """
    m = facts.items
    n = release.design.nobs
    if MOMENTS[0] in release.parts:
        covariance = _cluster_covariance(facts, release, values, degrees, scale)
        rate = np.clip(0.5 + (values - 0.5) * scale / degrees, 0.0, 1.0)
        alone = equal_variances(facts, degrees, scale, facts.pairs.table(m))
        np.fill_diagonal(alone, (degrees / scale) ** 2 * rate_variance(facts, rate, degrees))
        # second moments about 0 of n scores from their variance about the mean, gap
        gap = values[:, None] - values
        both = np.maximum(own_and_between(covariance), 0.0)
        about = (1.0 - 1.0 / n) * both + gap**2 / n
        np.fill_diagonal(about, np.diag(both))
    elif DEPENDENCE in release.parts or release.design.offered is not None:
        # released design effects: score variances at the fit, with and without dependence, both
        # divided by the same scale; the pairs of an order are dependent as well
        b = estimate(facts, release).coefficients
        squares = np.outer(scale, scale)
        by_pair = facts.information(b)
        if release.design.offered is None:
            by_pair = independent_scores(facts, release, b)
        alone = own_and_between(by_pair / squares)
        about = own_and_between(score_covariance(facts, release, b) / squares)
    else:
        return np.ones((m, m))
    # an item that won or lost everything shows no dependence
    return np.asarray(np.divide(about, alone, np.ones_like(alone), where=alone > 0))


def _cluster_covariance(
    facts: ScoreEquations,
    release: Release,
    values: FloatArray,
    degrees: FloatArray,
    scale: FloatArray,
) -> FloatArray:
    """Return the cluster-robust covariance of the estimates, shape (m, m).

    For non-private fits only.

    A win rate is the ratio of an item's wins to its comparisons. To first order respondent r moves
    it by (w - tau d) / D, with w wins in d comparisons of the item among the answers of r, and D
    the item's comparisons in all. These contributions sum to 0 over respondents, so n / (n - 1)
    times the sum of their outer products is unbiased. The contributions to half the net wins do not
    sum to 0, so their mean is subtracted.
    """
    pairs = facts.pairs
    n = release.design.nobs
    edges = len(pairs.first)
    ((_, yy, yn, nn),) = moments_by_block(facts, release)
    # w - tau d = y / 2 - (tau - 1/2) d for net wins y: the weights of pairs in both terms, by item
    place = np.arange(edges)
    wins, met = np.zeros((2, facts.items, edges))
    wins[pairs.first, place] = 0.5
    wins[pairs.second, place] = -0.5
    met[pairs.first, place] = met[pairs.second, place] = 1.0
    wins /= scale[:, None]
    ratio = np.where(scale == degrees, values - 0.5, 0.0)
    rest = values - 0.5 - ratio
    met *= (ratio / scale)[:, None]
    cross = wins @ yn @ met.T
    total = wins @ yy @ wins.T - cross - cross.T + met @ nn @ met.T - np.outer(rest, rest) / n
    return np.asarray(n / max(n - 1, 1) * total)
