"""Estimates from a tally: fractions of pairs, Borda scores, their covariance, a consensus.

What comes out is a :class:`privrank.release.release.Release` like that of any mechanism, so that
results are inferred from it in the same way. The answers were randomised before the curator had
them, so all of it is post-processing and spends nothing.

Let v be the vote of a report on a pair of items that it was asked about: 1 if it places the first
one before the second, else -1. With p the fraction of rankings that do, E v = gain (2 p - 1)
(:mod:`privrank.local.protocols_orders`). A report is independent of all others: its assignment, its
ranking and its response are drawn anew. So the vote is a single binomial draw, of variance
1 - (E v)^2, in which sampling and response both are; nothing is to be added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privrank.bradley_terry.paircounts import check_connected
from privrank.consensus.orders import by_score
from privrank.consensus.rules import Rule, consensus_of, shrink
from privrank.consensus.statements import PairVotes
from privrank.local.protocols import Asking, Protocol, pair_place
from privrank.local.protocols_orders import Comparisons, PairBits, RandomPairs, SubRanking
from privrank.local.protocols_vectors import CapBorda, DuchiBall
from privrank.local.publicdraws import SCALE
from privrank.local.tally import Tally, Values, check_tally, fixed_point, public_order, release_of
from privrank.plans.choice import check_ties
from privrank.release import names
from privrank.release.release import Release
from privrank.release.survey import Design, PairCounts, Ties
from privrank.util.arrays import BoolArray, FloatArray, IntArray, batches

FEWEST = 2
"""Reports below which nothing has a standard error."""

UNASKED = 0.25
"""Variance taken for a fraction that nobody was asked about: the largest of any in [0, 1]."""

MAX_ITEMS = 50
"""Items up to which second moments of all pairs are kept, some 1.5 million numbers each."""

_PSEUDO = 3.0
"""Pseudo-votes of mean 0 beside the n votes on a pair, by the root of n."""


def release_consensus(
    tally: Tally, rule: Rule = "EB-Kemeny", rng: np.random.Generator | None = None
) -> Release:
    """Return fractions and Borda scores with their errors, and the order that is found in them.

    Parameters
    ----------
    tally : Tally
        Reports of a protocol that asks everybody about random items, or sends random directions.
    rule : str
        How the order is found in the fractions of pairs. Where a protocol has none, the order is
        that of Borda scores.
    rng : numpy.random.Generator, optional
        Draws the order of equal items, which is that of KwikSort's pivots; a public one if left
        out.

    Returns
    -------
    Release

    Notes
    -----
    **Statistic.** "KwikSort" is the order of LDP-KwikSort (Yan, Li and Liu 2020, Algorithm 1): the
    majorities of the estimated fractions, sorted by random pivots. Where nobody was asked about a
    pair of an item and its pivot the paper has a tie, and here the fraction is that of the surface
    (:func:`_borda`).
    """
    check_tally(tally, FEWEST)
    protocol = tally.protocol
    estimate = _ESTIMATES.get(type(protocol))
    # a tie is no vote of 1 or -1 on its pair, and public pairs share no items to connect others by
    public = isinstance(protocol, PairBits) and protocol.pairing == "public"
    if estimate is None or protocol.keeps_ties or public:
        raise ValueError(
            f"tally must be of a protocol that asks everybody for a random part of their ranking, "
            f"without ties, and this one is of {protocol.kind}: use SubRanking for a consensus, or "
            f"Comparisons without ties=True and PairBits with pairing='private'."
        )
    estimates = estimate(tally, protocol)
    # without estimates of pairs an order can only go by scores
    tie_break = public_order(len(protocol.items), rng)
    if estimates.pairs is None or estimates.filled is None:
        if rule == "KwikSort":
            raise ValueError(
                f"method='kwiksort' sorts by the majorities of pairs, and reports of the protocol "
                f"{protocol.kind!r} are about whole rankings: leave out method=."
            )
        rule = "Borda"
        order = by_score(estimates.scores, tie_break)
        gaps = {}
    else:
        best = consensus_of(rule, estimates.filled, estimates.pairs.largest_variance, tie_break)
        order = best.order
        gaps = best.findings if rule in ("Kemeny", "EB-Kemeny") else {}
    values = {
        names.SCORES: fixed_point(estimates.scores),
        names.COVARIANCE: fixed_point(estimates.covariance),
        names.CONCERNED: (estimates.concerned.ravel(), 1.0),
        **estimates.values,
        names.ORDER: (order, 1.0),
    }
    return release_of(
        tally,
        values,
        by="PrivateRankAggregation",
        method=rule,
        settings={
            "gain": protocol.gain,
            "square": 1.0 if estimates.pairs is None else estimates.pairs.square,
        },
        findings=gaps,
        tie_break=tie_break,
    )


def release_wins(tally: Tally, by: str, *, ties: Ties = True) -> Release:
    """Return the wins of both items of each pair asked, for the model `by` of comparisons.

    These are the numbers of reports for either item, public as the reports are. A report r of an
    answer y in {1, 0, -1} has E(r | y) = gain y: a response gives every value the smaller weight,
    which cancels, and the true one the rest. How that enters a fit stands at
    :func:`privrank.bradley_terry.readings.score_equations`. Reports of neither item are ties, which
    ``ties="davidson"`` reads.

    Notes
    -----
    **Statistic.** Given what was asked, reports are independent. A report of a pair is one vote on
    it. A report of an order of s items is a vote v on each of their s (s - 1) / 2 pairs, with the
    mean gain (2 p - 1) and the variance 1 - (E v)^2 that it has as the only vote of a report. So
    half of v / gain is unbiased for p - 1/2, and scores and the variances of independent votes are
    those of single pairs.

    Votes of one report depend on each other: by the order, and by the response, which favours a
    whole order. Let a vote y = v / (2 gain) have the residual e = y - E y, and let w be the weights
    of a contrast by pair. Reports are independent, so the contrast has the variance

        sum over reports of E (sum of w e)^2 = I + X,

    with I the variance of independent votes, and X the sum of w w' E e e' over all reports and any
    two different pairs of each. With E y as it is the products e e' themselves are an unbiased
    estimate of X, whatever the distribution of orders, as order and response are both in them.
    Summed over all reports they follow from the second moments of votes and of their numbers by
    pair. Fits without privacy have the same moments of the answers of respondents, so design
    effects, tests and intervals are theirs (:class:`privrank.bradley_terry.dependence.Clusters`).
    These take E y as the model has it: where pairs do not follow the worths, I and X are not exact.
    If all orders are equally likely, the design effect is (s + 1) / 3.
    """
    check_tally(tally)
    protocol = tally.protocol
    read = check_ties(ties, decided=False, facts=None)
    if not isinstance(protocol, Asking) or protocol.digits != 1:
        raise ValueError(
            f"comparisons are read from reports of one pair or of the order of a few items, and "
            f"these are of the protocol {protocol.kind!r}: collect reports of Comparisons or "
            f"SubRanking, or of RandomPairs with pairs=1."
        )
    if protocol.width > 2 and len(protocol.items) > MAX_ITEMS:
        raise ValueError(
            f"worths are read from orders of {protocol.width} of up to {MAX_ITEMS} items, and "
            f"these are of {len(protocol.items)}: use SubRanking with size=2."
        )
    if read != "davidson":
        read = protocol.keeps_ties
    elif not protocol.keeps_ties:
        raise ValueError(
            "ties='davidson' needs reports that can be ties, and this protocol has none: collect "
            "reports of Comparisons(..., ties=True), or leave ties= out."
        )
    # votes of pairs as they were sent: the gain of the response is undone by what reads the wins
    votes = Votes.of(tally, protocol)
    first_wins, second_wins, tied = (votes.numbers(side) for side in (1, -1, 0))
    if not first_wins.any() and not second_wins.any():
        raise ValueError(
            "tally must hold answers that prefer an item, and all of them are ties, which leave "
            "nothing to tell an error from: collect more reports."
        )
    pairs = _met(first_wins + second_wins + tied, protocol)
    met = first_wins + second_wins + tied > 0
    values = {names.WINS: np.concatenate((first_wins[met], second_wins[met]))}
    if protocol.width > 2:
        by_pair = np.concatenate(((first_wins - second_wins)[met], (first_wins + second_wins)[met]))
        values |= votes.moments(met) | {names.BY_PAIR: by_pair}
    rows = votes.vote.shape[1]
    return release_of(
        tally,
        {name: (numbers, 1.0) for name, numbers in values.items()},
        by=by,
        method="randomised response",
        settings={names.GAIN: protocol.gain},
        survey=Design(protocol.items, tally.n, "respondent", rows, True, read, "public", pairs),
    )


def _met(counts: IntArray, protocol: Asking) -> PairCounts:
    """Return the pairs that somebody was asked about, or refuse if they do not connect items."""
    first, second = protocol.all_pairs[counts > 0].T
    met = PairCounts(first, second, counts[counts > 0], "observed")
    check_connected(met, protocol.items, reports=True)
    return met


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Borda scores, their covariance, and where there are pairs their votes and fractions.

    `concerned` are the numbers of reports that concern either of two items, or one on the diagonal.
    `filled` are the fractions, also of pairs that nobody was asked about; `values` are the numbers
    that are released of pairs.
    """

    scores: FloatArray
    covariance: FloatArray
    concerned: IntArray
    pairs: PairVotes | None = None
    filled: FloatArray | None = None
    values: Values = field(default_factory=dict)


def _asked(tally: Tally, protocol: Asking) -> _Found:
    """Return what votes on the asked pairs say."""
    votes = Votes.of(tally, protocol)
    ahead = votes.numbers(1)
    behind = votes.numbers(-1)
    net = ahead - behind
    counts = ahead + behind
    _met(counts, protocol)
    pairs = PairVotes.of(net, counts, protocol.gain)
    scores, covariance, filled = _borda(votes, pairs)
    values = {names.PAIRS: (net, 1.0), names.PAIR_COUNTS: (counts, 1.0)}
    return _Found(scores, covariance, votes.concerned(), pairs, filled, values)


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """The votes of each combination of assignment and answer of a tally.

    Parameters
    ----------
    items : int
        Number of items m.
    first, second : ndarray of int64, shape (cells, votes)
        The items of each pair that was asked about, the earlier one first.
    vote : ndarray of int64, shape (cells, votes)
        1 if the earlier item is placed before the other one, -1 if after it, 0 for a tie.
    count : ndarray of int64, shape (cells,)
        Number of reports.
    """

    items: int
    first: IntArray
    second: IntArray
    vote: IntArray
    count: IntArray

    @classmethod
    def of(cls, tally: Tally, protocol: Asking) -> Votes:
        """Read the votes of a tally."""
        items = protocol.asked(tally.assignment)
        values = protocol.unpacked(tally.answer)
        left, right = np.triu_indices(protocol.width, 1)
        cells = len(items)
        # the sign of every pair of asked items, turned round where the later item comes first, so
        # that a vote of 1 is always for the earlier item of the list
        vote = protocol.signs[:, left, right][values].astype(np.int64).reshape(cells, -1)
        one = items[..., left].reshape(cells, -1)
        other = items[..., right].reshape(cells, -1)
        first = np.minimum(one, other)
        second = np.maximum(one, other)
        vote = np.where(one < other, vote, -vote)
        return cls(len(protocol.items), first, second, vote, tally.count)

    @property
    def pair(self) -> IntArray:
        """The place of each pair in the list of all pairs."""
        return pair_place(self.first, self.second, self.items)

    def numbers(self, side: int) -> IntArray:
        """Return how many votes have this value, by pair in lexicographic order."""
        pairs = self.items * (self.items - 1) // 2
        weights = np.where(self.vote == side, self.count[:, None], 0)
        return np.bincount(self.pair.ravel(), weights.ravel(), minlength=pairs).astype(np.int64)

    def concerned(self) -> IntArray:
        """Return how many reports concern either of two items, on the diagonal one of them."""
        table = self.by_item(np.ones(self.vote.shape, dtype=np.int64), 1) > 0
        # reports about both, so that those about either are the sum less these
        both = (table.T @ table.multiply(self.count[:, None]).tocsr()).toarray().astype(np.int64)
        own = np.diag(both)
        return np.asarray(own[:, None] + own - both)

    def covariance(self, pairs: PairVotes) -> FloatArray:
        """Return the sum over all reports of the outer products of their residuals by item.

        The residual of a report for an item is the weighted sum of the votes for and against it,
        each less what the other reports let expect of it (:func:`_borda`).
        """
        # of each vote: the sum of the other reports' votes on its pair, over their padded number
        at = (self.first, self.second)
        counts = pairs.counts[at]
        others = pairs.means[at] * counts - self.vote
        expected = others / (counts - 1.0 + _PSEUDO * np.sqrt(counts))
        # residuals by report and item, with the weight 1 / (2 gain n) that a vote has in a score
        table = self.by_item((self.vote - expected) * (0.5 / pairs.gain) / counts, -1)
        return np.asarray((table.T @ (table * self.count[:, None])).toarray())

    def moments(self, met: BoolArray) -> dict[str, IntArray]:
        """Return the sums over reports of products of votes, and of their numbers, by pairs met.

        A report has one vote on a pair at most, and no ties.
        """
        cells, votes = self.vote.shape
        places = np.repeat(np.arange(cells), votes), (np.cumsum(met) - 1)[self.pair.ravel()]
        answers, counts = (
            csr_array((numbers.ravel(), places), shape=(cells, int(met.sum())))
            for numbers in (self.vote, np.ones_like(self.vote))
        )
        products = (
            (one.T @ other.multiply(self.count[:, None]).tocsr()).toarray().ravel()
            for one, other in ((answers, answers), (answers, counts), (counts, counts))
        )
        return dict(zip(names.MOMENTS, products, strict=True))

    def by_item(self, numbers: NDArray[Any], sign: int) -> csr_array:
        """Return the sums of numbers of votes by cell and item, the later items' of this sign."""
        cells, votes = numbers.shape
        rows = np.tile(np.repeat(np.arange(cells), votes), 2)
        columns = np.concatenate((self.first.ravel(), self.second.ravel()))
        entries = np.concatenate((numbers.ravel(), sign * numbers.ravel()))
        return csr_array((entries, (rows, columns)), shape=(cells, self.items))


def _borda(votes: Votes, pairs: PairVotes) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Borda scores, their covariance, and the fractions that they are the sums of.

    Notes
    -----
    **Statistic.** The Borda score of an item is the sum of its fractions against all others. Those
    of pairs that somebody was asked about are unbiased, whatever the numbers of reports. Let A hold
    for each vote its weight by item, 1 / (2 gain n) on a pair with n reports, with the sign of the
    item. Given the assignments, a report adds A v to the scores, v its votes of mean mu. And
    reports are independent, so the scores have the covariance C, the sum over reports of
    A Cov(v) A'. Votes of one report are not independent. Two pairs of a sub-ranking that share an
    item go together. If all orders are equally likely, the variance of a score is (s + 1) / 3 times
    that of as many separate votes.

    The estimate is the sum of r r' with r = A (v - u). Here u holds for each pair the sum of the
    votes of the other reports over their number plus 3 n^(1/2), as if half as many votes were cast
    for either order beside them. As u does not depend on v,

        E r r' = A Cov(v) A' + A E (mu - u) (mu - u)' A',

    and the last term is positive semidefinite: the expected estimate is at least C, for any numbers
    of reports and any distribution of rankings. It is C, but for a share of 1 / n, where both
    orders are as frequent. A pair that all n reports place alike has a positive variance by it, as
    if 9/4 contrary ones were expected. 1.96 standard errors span 3 of them, and to miss so many
    has the probability exp(-3) = .05.

    A pair that nobody was asked about has its fraction from the surface that the others are shrunk
    to, which is unbiased only if the population lies on it. Where an item has a pairs that somebody
    was asked about, of m - 1, the surface gives the mean of their errors, to first order, to each
    of the others. So residuals of the item count (m - 1) / a times. Beside that the surface may be
    wrong about the pair, for which it has the largest variance that a fraction can have, 1/4.
    """
    m = len(pairs.counts)
    counts = pairs.counts
    unasked = (counts == 0) & ~np.eye(m, dtype=np.bool_)
    # fractions of pairs that nobody was asked about are those of the fitted surface
    filled = np.array(pairs.fractions)
    if unasked.any():
        filled = np.where(unasked, shrink(filled, pairs.largest_variance)[0], filled)
    np.fill_diagonal(filled, 0.0)
    times = (m - 1) / (counts > 0).sum(axis=1)
    unknown = UNASKED * (np.diag(unasked.sum(axis=1)) - unasked)
    return filled.sum(axis=1), votes.covariance(pairs) * np.outer(times, times) + unknown, filled


def _turned(tally: Tally, protocol: DuchiBall) -> _Found:
    """Return what signed directions in the space of all pairs say.

    Notes
    -----
    **Statistic.** A report is a vote on every pair, the signed direction, in expectation
    gain (2 p - 1) times its length. A uniform direction over D pairs, turned round or not, has the
    mean square 1 / D in each, whatever the rankings are. Borda scores are sums of fractions, so
    each report has one vector of them, and the covariance of their mean is that of the vectors over
    n.
    """
    m = len(protocol.items)
    pairs = len(protocol.all_pairs)
    # moments are those of the sums by item
    net, covariance = _moments(tally, *_sent(protocol))
    counts = np.full(pairs, tally.n, dtype=np.int64)
    table = PairVotes.of(net / SCALE, counts, protocol.gain, 1.0 / pairs)
    filled = table.fractions
    np.fill_diagonal(filled, 0.0)
    covariance /= (2.0 * SCALE * protocol.gain) ** 2
    return _Found(
        filled.sum(axis=1),
        covariance,
        np.full((m, m), tally.n, dtype=np.int64),
        table,
        filled,
        {names.PAIRS: (net, 1.0 / SCALE), names.PAIR_COUNTS: (counts, 1.0)},
    )


def _placed(tally: Tally, protocol: CapBorda) -> _Found:
    """Return what directions close to the vectors of Borda scores say.

    Notes
    -----
    **Statistic.** A report is a direction, in expectation gain x / |x| times its length, where x is
    the respondent's vector of centred Borda scores and |x|^2 = m (m^2 - 1) / 12. So the mean over
    reports, scaled, is unbiased for the centred scores, with the covariance of the directions over
    n.
    """
    m = len(protocol.items)
    sums, covariance = _moments(tally, *_sent(protocol))
    # a mean direction is gain x / |x| of length SCALE, |x| that of all rankings
    scale = math.sqrt(m * (m * m - 1) / 12) / (SCALE * protocol.gain)
    scores = 0.5 * (m - 1) + scale * sums / tally.n
    return _Found(scores, scale**2 * covariance, np.full((m, m), tally.n, dtype=np.int64))


_ESTIMATES: dict[type[Protocol], Callable[[Tally, Any], _Found]] = {
    SubRanking: _asked,
    RandomPairs: _asked,
    Comparisons: _asked,
    PairBits: _asked,
    DuchiBall: _turned,
    CapBorda: _placed,
}
"""How each protocol that asks everybody for a random part of their ranking is estimated from."""


Sent = Callable[[IntArray, IntArray], IntArray]
"""What assignments and answers stand for: a vector each, in whole numbers."""


def _sent(protocol: DuchiBall | CapBorda) -> tuple[Sent, IntArray]:
    """Return the vectors that reports stand for, and what each entry adds to each item."""
    unit = np.eye(len(protocol.items), dtype=np.int64)
    if isinstance(protocol, CapBorda):
        return protocol.directions, unit
    first, second = unit[protocol.all_pairs.T]
    directions = protocol.directions
    return lambda seeds, answers: (1 - 2 * answers)[:, None] * directions(seeds), first - second


def by_item(tally: Tally) -> csr_array:
    """Return what a report of each combination says for each item and against it, (cells, m).

    Votes for an item less those against it, or directions; both add up to 0.
    """
    protocol = tally.protocol
    if isinstance(protocol, Asking):
        votes = Votes.of(tally, protocol)
        return votes.by_item(votes.vote, -1)
    assert isinstance(protocol, DuchiBall | CapBorda)
    sent, ends = _sent(protocol)
    parts = [
        sent(tally.assignment[rows], tally.answer[rows]) @ ends
        for rows in batches(len(tally.count), len(ends))
    ]
    table = np.concatenate(parts)
    # directions of scores sum to 0 up to their rounding
    return csr_array(table - table.mean(axis=1, keepdims=True))


def _moments(tally: Tally, sent: Sent, ends: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the sum of the vectors that were sent, and the covariance of their mean by item.

    Sums of whole numbers are exact.
    """
    sums = np.zeros(len(ends), dtype=np.int64)
    products = np.zeros((ends.shape[1],) * 2)
    for rows in batches(len(tally.count), len(ends)):
        count = tally.count[rows]
        vectors = sent(tally.assignment[rows], tally.answer[rows])
        sums += count @ vectors
        exact = (vectors @ ends).astype(np.float64)
        products += (exact * count[:, None]).T @ exact
    mean = sums @ ends / tally.n
    return sums, np.asarray((products / tally.n - np.outer(mean, mean)) / (tally.n - 1))
