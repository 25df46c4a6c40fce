"""Read estimates of pairs and scores from a release of rankings or of orders of offered sets.

**Orders of offered sets.** Let N_ij be the public number of tasks that showed i and j. A fraction
is the vote of a pair divided by N_ij, and a Borda score is the sum of an item's fractions. If net
wins by item were released instead of votes on pairs, a Borda score is m - 1 times the win rate of
the item over all N_ij. Both estimate the mean number of items behind if the sets were assigned at
random or show all pairs equally often.

*Sampling errors.* Let r_ij be the number of tasks in which a unit was shown both items. With
weights w_ij of the votes, a score gets from the unit a number between 0 and b_i = sum_j w_ij r_ij.
The b_i of all units add up to B = m - 1, the largest score. A number in [0, b] with mean b q has
variance at most b^2 q (1 - q) = (b^2 - (b - 2 b q)^2) / 4 (Bhatia and Davis). The means add up to
the score s. So the sum of (b - 2 b q)^2 over the n units that contribute is at least
(B - 2 s)^2 / n (Cauchy and Schwarz), and the variance of the score is at most
s (B - s) / n + (sum b_i^2 - B^2 / n) / 4. The second term is 0 if all of them contribute equally.
For the fraction of a pair b = r_ij / N_ij and B = 1.

The difference of two scores gets a number within a range of width b_i + b_k. So its variance is at
most the sum over units of (b_i + b_k)^2 / 4. A unit that always places i first and k last, or the
reverse, attains it. All bounds hold whatever the dependence of the answers of a unit is.

*Noise.* Scores are weighted sums of votes, whose noise is independent. For unequal weights its
tails are heavier than for equal ones. They are taken from a design with equal weights and fewer
items, in which the largest terms have at least the same share: the sum of the fourth powers of the
weights divided by the squared sum of their squares, for scores and for differences.
"""

from dataclasses import replace
from typing import cast

import numpy as np

from privrank.consensus.orders import Rule, by_score, consensus_of, pair_matrix
from privrank.consensus.statements import NoisyVotes, PairVotes, RandomReports, Statements
from privrank.hypotheses.tails import BodyDistribution
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release import names
from privrank.release.release import Release
from privrank.release.survey import Design, Noise, PartPlan
from privrank.util.arrays import FloatArray

_RULES = ("Borda", "Kemeny", "EB-Kemeny")
"""Rules for the consensus of orders of offered sets."""


def statements_of(release: Release) -> Statements | None:
    """Return the estimates of a release about pairs and scores; None if it has only an order."""
    parts = release.parts
    n = release.survey.nobs
    if release.local and names.ORDER in parts:
        return _reports_of(release)
    if isinstance(release.survey, Design):
        return _set_votes(release)
    if names.PAIRS not in parts and names.TOTALS not in parts:
        return None
    # convert released counts to fractions of rankings: a lattice step is step / n
    by_pair = names.PAIRS in parts
    part = parts[names.PAIRS if by_pair else names.TOTALS]
    noise = part.distribution
    scale = part.step / n
    values = np.asarray(part.values * scale, dtype=np.float64)
    assert isinstance(noise, DiscreteLaplace | DiscreteGaussian | CubeNoise | PermutohedronNoise)
    fractions = pair_matrix(values) if by_pair else None
    # a row sums to the mean number of items behind, plus the 1/2 on the diagonal
    scores = len(values) - values if fractions is None else fractions.sum(axis=1) - 0.5
    return NoisyVotes(
        noise,
        scale,
        n,
        score_scale=scale * np.sqrt(len(scores) - 1 if by_pair else 1),
        score_units=n,
        scores=scores,
        fractions=fractions,
        alike=len(scores),
    )


def with_order(release: Release, stated: Statements | None) -> Release:
    """Return a release of orders of offered sets with the consensus in it.

    The order is a function of `stated`, the estimates of the release. Any other release is returned
    as it is.
    Fractions are shrunken to a degree that depends on their noise and their largest sampling error.
    """
    if names.ORDER in release.parts or not isinstance(stated, NoisyVotes):
        return release
    findings: dict[str, float] = {}
    if stated.fractions is None:
        order = by_score(stated.scores, release.tie_break)
    else:
        # fractions of few orders have large sampling errors, to which majorities would be fitted
        variance = stated.noise.variance * np.square(stated.scale) + 0.25 / np.array(stated.units)
        best = consensus_of(
            cast(Rule, release.plan.method), stated.fractions, variance, release.tie_break
        )
        order = best.order
        findings = best.findings
    return replace(
        release,
        plan=replace(
            release.plan, parts={**release.plan.parts, names.ORDER: PartPlan(None, 0, 0.0)}
        ),
        values={**release.values, names.ORDER: order},
        found={**release.found, **findings},
    )


def vote_weights(design: Design, by_pair: bool) -> tuple[FloatArray, FloatArray]:
    """Return the numbers of tasks by pair of items, and the weights of votes in the scores.

    `by_pair` is whether votes on pairs or net wins by item are released.
    """
    assert design.pairs is not None
    m = len(design.items)
    counts = np.zeros((m, m))
    np.add.at(counts, (design.pairs.first, design.pairs.second), design.pairs.count)
    counts += counts.T
    # a score is the sum of fractions, or m - 1 times the votes for an item by all of its tasks
    tasks = counts if by_pair else counts.sum(axis=1, keepdims=True) / (m - 1.0)
    return counts, np.divide(1.0, tasks, np.zeros_like(counts), where=counts > 0)


def noise_of_scores(
    weights: FloatArray, by_pair: bool, noise: Noise | None
) -> tuple[FloatArray, FloatArray]:
    """Return the noise in scores by noise of variance 1 in what is released.

    These are the standard deviations of the scores, and the variances of their differences. The
    noise in the vote of a pair enters the scores of its items with opposite signs. Net wins are
    twice the votes less a constant, so noise in them has half the weight. Two entries of noise that
    adds up to 0 have the covariance -1 / (m - 1).
    """
    own = np.sqrt((weights**2).sum(axis=1)) if by_pair else 0.5 * weights.max(axis=1)
    alike = isinstance(noise, BodyDistribution) / (len(weights) - 1.0)
    opposed = weights**2 if by_pair else alike * np.outer(own, own)
    return own, np.asarray(own[:, None] ** 2 + own**2 + 2.0 * opposed)


def _set_votes(release: Release) -> NoisyVotes | None:
    """Return the estimates of orders of offered sets; None for releases of other models."""
    design = release.design
    by_pair = names.PAIRS in release.parts
    part = release.parts.get(names.PAIRS if by_pair else names.NET)
    if part is None or design.offered is None or release.plan.method not in _RULES:
        return None
    noise = part.distribution
    assert isinstance(noise, DiscreteLaplace | CubeNoise | BodyDistribution)
    counts, weights = vote_weights(design, by_pair)
    m = len(counts)
    tasks, squares, moments, seen = (np.zeros((m, m)) for _ in range(4))
    for version, units in zip(design.offered.versions, design.offered.units, strict=True):
        shown = np.zeros((m, m))
        for k in version:
            shown[np.ix_(design.offered.sets[k], design.offered.sets[k])] += 1.0
        width = (weights * shown).sum(axis=1)
        tasks += units * shown
        squares += units * shown**2
        seen += units * (shown > 0)
        moments += units * np.outer(width, width)
    values = part.values * part.step
    if by_pair:
        fractions = pair_matrix(values / counts[np.triu_indices(m, 1)])
        scores = fractions.sum(axis=1) - 0.5
    else:
        fractions = None
        scores = 0.5 * (m - 1.0 + weights.max(axis=1) * values)
    own = np.diag(moments)
    single, mixed = noise_of_scores(weights, by_pair, noise)
    return NoisyVotes(
        noise=noise,
        scale=part.step / tasks if by_pair else part.step * single[:, None],
        units=seen,
        score_scale=part.step * single,
        score_units=np.diag(seen).copy(),
        scores=scores,
        fractions=fractions,
        alike=_items_alike(weights, mixed) if by_pair else m,
        differences=(part.step**2 * mixed, 0.25 * (own[:, None] + own + 2.0 * moments)),
        unequal=0.25 * np.maximum(squares / tasks**2 - 1.0 / seen, 0.0) if by_pair else 0.0,
        score_unequal=0.25 * np.maximum(own - (m - 1.0) ** 2 / np.diag(seen), 0.0),
    )


def _items_alike(weights: FloatArray, mixed: FloatArray) -> int:
    """Return the number of items with equal weights of votes that have at least as heavy tails.

    With m items a score is the sum of m - 1 votes, and in a difference of two scores 2 (m - 2)
    votes have weight 1 and one has weight 2.
    """
    fourth = (weights**4).sum(axis=1)
    single = (fourth / (weights**2).sum(axis=1) ** 2).max()
    apart = (fourth[:, None] + fourth + 14.0 * weights**4) / mixed**2
    difference = apart[np.triu_indices(len(weights), 1)].max()
    return next(
        k
        for k in range(len(weights), 1, -1)
        if single * (k - 1) < 1.0 + 1e-9 and difference * (2 * k) ** 2 < (2 * k + 12) * (1.0 + 1e-9)
    )


def _reports_of(release: Release) -> RandomReports:
    """Return the estimates of local reports about scores and, if available, about pairs."""
    parts = release.parts
    m = len(release.sample.items)
    pairs = None
    if names.PAIRS in parts:
        net, counts = (
            parts[name].values * parts[name].step for name in (names.PAIRS, names.PAIR_COUNTS)
        )
        pairs = PairVotes.of(net, counts, *map(release.plan.number, ("gain", "square")))
    if names.SCORES not in parts:  # an adaptive protocol, which does not ask most pairs
        return RandomReports(np.full(m, np.nan), np.full((m, m), np.nan), np.zeros((m, m)), pairs)
    scores, covariance, concerned = (
        np.asarray(parts[name].values * parts[name].step, dtype=np.float64)
        for name in (names.SCORES, names.COVARIANCE, names.CONCERNED)
    )
    return RandomReports(scores, covariance.reshape(m, m), concerned.reshape(m, m), pairs)
