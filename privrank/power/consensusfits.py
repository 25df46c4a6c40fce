"""Surveys of rankings that are simulated: what their orders lose, how wide their intervals are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privrank.aggregation import planned
from privrank.bradley_terry.contrasts import rank_sets
from privrank.consensus.intervals import Target
from privrank.consensus.orders import by_score, kemeny, kemeny_score
from privrank.consensus.rules import consensus_of
from privrank.consensus.statements import PairVotes, RandomReports, statements_of
from privrank.distributions.kendall import pair_probability
from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nulls import public_generator
from privrank.local.estimates import Votes, release_consensus
from privrank.local.protocols import Asking, Protocol
from privrank.local.tally import public_order
from privrank.mechanisms.aggregation import consensus_in, pair_counts
from privrank.plans.aggregation import AggregationMethod, Releases
from privrank.release.names import ORDER
from privrank.release.release import Release
from privrank.release.survey import PairCounts, Sample, groups_of
from privrank.util.arrays import own

__all__ = ["Central", "Local", "Loss"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Loss = Literal["excess", "width"]

_MOST = 5000
"""Rankings, or reports, that are simulated; errors of larger surveys are theirs, only smaller."""

_EACH = 5
"""Reports that are simulated for each pair of items, where these are more."""


@lru_cache(maxsize=64)
def _ahead(m: int, theta: float) -> FloatArray:
    """Return the probabilities that row is ranked before column, 1/2 on the diagonal."""
    ahead = np.array([0.5, *(pair_probability(gap, theta) for gap in range(1, m))])
    gap = np.arange(m) - np.arange(m)[:, None]
    return own(np.where(gap >= 0, ahead[np.abs(gap)], 1.0 - ahead[np.abs(gap)]), np.float64)


def _excess(order: IntArray, pairs: FloatArray, least: float) -> float:
    """Return how many more pairs disagree with an order than the least, as a share of all."""
    m = len(pairs)
    return (kemeny_score(order, pairs) - least) / (m * (m - 1) / 2)


def _width(scores: FloatArray, gaps: FloatArray) -> float:
    """Return the mean width of rank intervals."""
    low, high = rank_sets(scores, gaps + len(scores) * 2.0**-40)
    return float((high - low).mean())


def _least(pairs: FloatArray, target: Target) -> float:
    """Return the least disagreements: of the model's centre, or of the best order of a sample."""
    if target == "population":
        return kemeny_score(np.arange(len(pairs)), pairs)
    return kemeny(pairs).score


@dataclass(frozen=True, slots=True)
class Central:
    """Surveys in the central model, by their plan.

    Parameters
    ----------
    plan : tuple
        Epsilon, delta, method and what is released.
    model : Mallows
        The rankings that are supposed.
    target : {"population", "sample"}
        Whose best order it is compared with.
    """

    plan: tuple[float, float, AggregationMethod, Releases]
    model: Mallows
    target: Target

    def loss(self, nobs: int, alpha: float, loss: Loss, replicate: int) -> float:
        """Simulate one survey."""
        items, rng = self.model.items, public_generator("consensus", replicate)
        some = min(nobs, _MOST)
        counts, ahead = (
            pair_counts(self.model.rvs(some, rng)),
            _ahead(len(self.model.items), self.model.theta),
        )
        if nobs > some:
            away = counts - some * ahead
            upper = np.rint(nobs * ahead + math.sqrt(nobs / some) * away)
            counts = np.triu(np.clip(upper, 0, nobs), 1).astype(np.int64)
            counts += np.tril(nobs - counts.T, -1)
        epsilon, delta, method, releases = self.plan
        sample = Sample("rankings", tuple(map(str, items)), nobs, "row", 1)
        plan = planned(sample, epsilon, delta, method, releases=releases)
        tie_break = tuple(int(k) for k in rng.permutation(len(items)))
        steps = int(plan.number("steps"))
        values, found = consensus_in(plan, counts, nobs * steps, tie_break, rng)
        if loss == "excess":
            pairs = ahead if self.target == "population" else counts / nobs
            return _excess(values[ORDER], pairs, _least(pairs, self.target))
        source: Literal["none", "seeded"] = "none" if math.isinf(epsilon) else "seeded"
        stated = statements_of(Release(plan, sample, source, values, tie_break, found))
        assert stated is not None
        return _width(stated.scores, stated.certain_gaps(alpha, self.target))


@dataclass(frozen=True, slots=True)
class Local:
    """Surveys in the local model, by their protocol; the rest is as for `Central`."""

    protocol: Protocol
    model: Mallows
    target: Target

    def loss(self, nobs: int, alpha: float, loss: Loss, replicate: int) -> float:
        """Simulate one survey.

        One of pairs that do not connect all items, which is refused, says nothing: it loses what
        orders drawn at random do, and every item may have every rank.
        """
        rng, m = public_generator("consensus", replicate), len(self.model.items)
        some = min(nobs, max(_MOST, _EACH * m * (m - 1) // 2))
        protocol, times = self.protocol, nobs / some
        ranks, ahead = self.model.rvs(some, rng), _ahead(m, self.model.theta)
        tally = protocol.tally(protocol.simulate(ranks, rng))
        pairs = ahead
        if self.target == "sample":
            pairs = ahead + (pair_counts(ranks) / some - ahead) / math.sqrt(times)
        votes = Votes.of(tally, protocol).sums() if isinstance(protocol, Asking) else None
        if votes is not None and not _connected(votes[1], m):
            half = m * (m - 1) / 4
            return m - 1.0 if loss == "width" else (half - _least(pairs, self.target)) / (2 * half)
        if votes is not None and loss == "excess":
            order = _kemeny(_more_votes(PairVotes.of(*votes, protocol.gain), times, ahead))
        else:
            stated = statements_of(release_consensus(tally))
            assert isinstance(stated, RandomReports)
            stated = _more_reports(stated, times, ahead)
            if loss == "width":
                return _width(stated.scores, stated.certain_gaps(alpha, self.target))
            order = by_score(stated.scores, public_order(m))
            if stated.pairs is not None:
                order = _kemeny(stated.pairs)
        return _excess(order, pairs, _least(pairs, self.target))


def _connected(counts: IntArray, m: int) -> bool:
    """Return whether pairs with so many reports connect all items."""
    met = counts > 0
    first, second = (each[met] for each in np.triu_indices(m, 1))
    return groups_of(PairCounts(first, second, counts[met], "observed"), m)[0] == 1


def _more_votes(votes: PairVotes, times: float, ahead: FloatArray) -> PairVotes:
    """Return so many times as many votes, with errors that are as much smaller."""
    middle = votes.gain * (2.0 * ahead - 1.0)
    means = middle + (votes.means - middle) / math.sqrt(times)
    return PairVotes(times * votes.counts, means, votes.gain, votes.square)


def _more_reports(stated: RandomReports, times: float, ahead: FloatArray) -> RandomReports:
    """Return what so many times as many reports say, with errors that are as much smaller."""
    middle = ahead.sum(axis=1) - 0.5
    scores = middle + (stated.scores - middle) / math.sqrt(times)
    pairs = stated.pairs and _more_votes(stated.pairs, times, ahead)
    return RandomReports(scores, stated.covariance / times, times * stated.concerned, pairs)


def _kemeny(votes: PairVotes) -> IntArray:
    """Return the order that is found in votes, as that of the local model is."""
    tie_break = public_order(len(votes.counts))
    filled = np.where(votes.counts > 0, votes.fractions, 0.5)
    return consensus_of("EB-Kemeny", filled, votes.largest_variance, tie_break).order
