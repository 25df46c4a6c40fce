"""Estimate pair fractions, Borda scores and a consensus from a tally.

The result is a :class:`privrank.release.release.Release`, as for any mechanism, so inference from
it works in the same way. The answers were randomised before the curator received them, so all
estimates are post-processing and spend nothing.

Let v be the vote of a report on a pair of items in its question: 1 if the report places the first
item before the second, and -1 if not. Let p be the fraction of rankings that place the first item
before the second. Then E v = gain (2 p - 1) (:mod:`privrank.local.kinds`). Reports are
independent, because each has its own assignment, ranking and response. So the vote is a single
binomial draw with variance 1 - (E v)^2, which includes both sampling and response; no further term
is needed.
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
from privrank.consensus.orders import Rule, by_score, consensus_of, shrink
from privrank.consensus.statements import PairVotes
from privrank.local.kinds import (
    SCALE,
    CapBorda,
    Comparisons,
    DuchiBall,
    PairBits,
    RandomPairs,
    SubRanking,
)
from privrank.local.protocols import Asking, Protocol, pair_place
from privrank.local.tally import Tally, Values, check_tally, fixed_point, public_order, release_of
from privrank.plans.declarations import check_ties
from privrank.release import names
from privrank.release.release import Release
from privrank.release.survey import Design, PairCounts, Ties
from privrank.util.arrays import BoolArray, FloatArray, IntArray, batches

FEWEST = 2
"""Smallest number of reports for which standard errors exist."""

UNASKED = 0.25
"""Variance assumed for the fraction of a pair not asked: the largest of any in [0, 1]."""

MAX_ITEMS = 50
"""Largest number of items for which second moments of pairs are kept (1.5 million numbers each)."""

_PSEUDO = 3.0
"""Number of pseudo-votes of mean 0 added to the n votes on a pair, divided by sqrt(n)."""


def release_consensus(
    tally: Tally, rule: Rule = "EB-Kemeny", rng: np.random.Generator | None = None
) -> Release:
    """Return fractions, Borda scores, standard errors, and the consensus order.

    Parameters
    ----------
    tally : Tally
        Reports of a protocol that asks every respondent about random items, or sends random
        directions.
    rule : str
        The rule that computes the order from pair fractions. If a protocol has no pair fractions,
        items are ordered by Borda scores.
    rng : numpy.random.Generator, optional
        Draws the order of tied items and of KwikSort's pivots; by default a public order.

    Returns
    -------
    Release

    Notes
    -----
    **Statistic.** "KwikSort" is the order of LDP-KwikSort (Yan, Li and Liu 2020, Algorithm 1): the
    majorities of the estimated fractions, sorted by random pivots. If no respondent was asked about
    an item and its pivot, the paper uses a tie, whereas this function uses the fraction of the
    fitted surface (:func:`_asked`).
    """
    check_tally(tally, FEWEST)
    protocol = tally.protocol
    estimate = _ESTIMATES.get(type(protocol))
    # a tie is not a vote of 1 or -1, and public pairs share no items, so they are not connected
    public = isinstance(protocol, PairBits) and protocol.pairing == "public"
    if estimate is None or protocol.keeps_ties or public:
        raise ValueError(
            f"tally must be of a protocol that asks each respondent for a random part of their "
            f"ranking, without ties, and this one is of {protocol.kind}. For a consensus use "
            f"SubRanking, Comparisons without ties=True, or PairBits with pairing='private'."
        )
    estimates = estimate(tally, protocol)
    # without estimates of pairs, items can only be ordered by score
    tie_break = public_order(len(protocol.items), rng)
    if estimates.pairs is None or estimates.filled is None:
        if rule == "KwikSort":
            raise ValueError(
                f"method='kwiksort' sorts by the majorities of pairs, and reports of the protocol "
                f"{protocol.kind!r} concern whole rankings. Leave out method=."
            )
        rule = "Borda"
        order = by_score(estimates.scores, tie_break)
        gaps = {}
    else:
        best = consensus_of(rule, estimates.filled, estimates.pairs.largest_variance, tie_break)
        order = best.order
        gaps = best.findings if rule in ("Kemeny", "EB-Kemeny") else {}
    return release_of(
        tally,
        {
            names.SCORES: fixed_point(estimates.scores),
            names.COVARIANCE: fixed_point(estimates.covariance),
            names.CONCERNED: (estimates.concerned.ravel(), 1.0),
            **estimates.values,
            names.ORDER: (order, 1.0),
        },
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
    """Return the wins of both items of each pair, for a model of comparisons.

    `by` is the class of the model. The wins are the numbers of reports for each item, which are
    public because the reports are. A report r of an answer y in {1, 0, -1} has E(r | y) = gain y,
    because a response gives every value the smaller weight, which cancels, and the true value the
    rest. :func:`privrank.bradley_terry.equations.score_equations` describes how this enters a fit.
    Reports of neither item are ties, which ``ties="davidson"`` uses.

    Notes
    -----
    **Statistic.** Given the assignments, reports are independent. A report of a pair is one vote on
    the pair. A report of an order of s items is a vote v on each of the s (s - 1) / 2 pairs. Each
    vote has the same mean gain (2 p - 1) and variance 1 - (E v)^2 as the only vote of a report. So
    half of v / gain is unbiased for p - 1/2, and scores and variances of independent votes are
    computed as for single pairs.

    Votes of one report are dependent, through the order and through the response, which favours a
    whole order. Let a vote y = v / (2 gain) have the residual e = y - E y, and let w be the weights
    of a contrast by pair. Reports are independent, so the contrast has the variance

        sum over reports of E (sum of w e)^2 = I + X,

    where I is the variance of independent votes, and X is the sum of w w' E e e' over all reports
    and any two different pairs of each. With the true E y, the products e e' are an unbiased
    estimate of X for any distribution of orders, because they include both order and response. The
    sum of the products over all reports follows from the second moments of votes and of their
    numbers by pair. Fits without privacy use the same moments of respondents' answers, so their
    design effects, tests and intervals apply
    (:class:`privrank.bradley_terry.dependence.Clusters`). These use E y of the model, so if pairs
    do not follow the worths, I and X are not exact. If all orders are equally likely, the design
    effect is (s + 1) / 3.
    """
    check_tally(tally)
    protocol = tally.protocol
    read = check_ties(ties, decided=False, facts=None)
    if not isinstance(protocol, Asking) or protocol.digits != 1:
        raise ValueError(
            f"tally must have reports of one pair or of the order of a few items, and this one is "
            f"of the protocol {protocol.kind!r}. Collect reports of Comparisons, of SubRanking, or "
            f"of RandomPairs with pairs=1."
        )
    if protocol.width > 2 and len(protocol.items) > MAX_ITEMS:
        raise ValueError(
            f"tally must have at most {MAX_ITEMS} items for worths from orders of "
            f"{protocol.width}, and it has {len(protocol.items)}. Use SubRanking with size=2."
        )
    if read != "davidson":
        read = protocol.keeps_ties
    elif not protocol.keeps_ties:
        raise ValueError(
            "ties='davidson' needs reports that can be ties, and this protocol has no ties. "
            "Collect reports of Comparisons(..., ties=True), or leave ties= out."
        )
    # votes of pairs as reported; the fit corrects for the gain of the response
    votes = Votes.of(tally, protocol)
    first_wins, second_wins, tied = (votes.numbers(side) for side in (1, -1, 0))
    if not first_wins.any() and not second_wins.any():
        raise ValueError(
            "tally must hold answers that prefer an item, and all of them are ties, which do not "
            "determine a standard error. Collect more reports."
        )
    pairs = _met(first_wins + second_wins + tied, protocol)
    met = first_wins + second_wins + tied > 0
    values = {names.WINS: np.concatenate((first_wins[met], second_wins[met]))}
    if protocol.width > 2:
        by_pair = np.concatenate(((first_wins - second_wins)[met], (first_wins + second_wins)[met]))
        values |= votes.moments(met) | {names.BY_PAIR: by_pair}
    return release_of(
        tally,
        {name: (numbers, 1.0) for name, numbers in values.items()},
        by=by,
        method="randomised response",
        settings={names.GAIN: protocol.gain},
        survey=Design(
            protocol.items, tally.n, "respondent", votes.vote.shape[1], True, read, "public", pairs
        ),
    )


def _met(counts: IntArray, protocol: Asking) -> PairCounts:
    """Return the pairs that were asked; refuse if they do not connect all items."""
    first, second = protocol.all_pairs[counts > 0].T
    met = PairCounts(first, second, counts[counts > 0], "observed")
    check_connected(met, protocol.items, reports=True)
    return met


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Borda scores with covariance; votes and fractions of pairs if available.

    `concerned` are the numbers of reports about either or both of two items (diagonal: about the
    item). `filled` are the fractions of all pairs, including pairs that were not asked. `values`
    are the released numbers of pairs.
    """

    scores: FloatArray
    covariance: FloatArray
    concerned: IntArray
    pairs: PairVotes | None = None
    filled: FloatArray | None = None
    values: Values = field(default_factory=dict)


def _asked(tally: Tally, protocol: Asking) -> _Found:
    """Return the estimates from votes on the asked pairs.

    Notes
    -----
    **Statistic.** The Borda score of an item is the sum of its fractions against all other items.
    The fractions of pairs that were asked are unbiased for any numbers of reports. Let A contain
    for each vote its weight by item: 1 / (2 gain n) on a pair with n reports, with the sign of the
    item. Given the assignments, a report with votes v of mean mu adds A v to the scores. Reports
    are independent, so the scores have the covariance C, the sum over reports of A Cov(v) A'. Votes
    of one report are not independent: two pairs of a sub-ranking that share an item are correlated.
    If all orders are equally likely, the variance of a score is (s + 1) / 3 times the variance from
    as many separate votes.

    The estimate is the sum of r r' with r = A (v - u). For each pair, u is the sum of the votes of
    the other reports divided by their number plus 3 n^(1/2), as if half as many additional votes
    were cast for each order. Because u does not depend on v,

        E r r' = A Cov(v) A' + A E (mu - u) (mu - u)' A',

    and the last term is positive semidefinite: the expected estimate is at least C, for any numbers
    of reports and any distribution of rankings. If both orders are equally frequent, it equals C
    except for a fraction of 1 / n. A pair on which all n reports agree has a positive estimated
    variance, as if 9/4 contrary reports were expected. 1.96 standard errors span 3 contrary
    reports, and the probability to miss that many is exp(-3) = 0.05.

    The fraction of a pair that was not asked is taken from the surface towards which the other
    fractions are shrunk, which is unbiased only if the population lies on the surface. If a of the
    m - 1 pairs of an item were asked, the surface passes the mean of their errors, to first order,
    on to each of the other pairs. So the residuals of the item are multiplied by (m - 1) / a. In
    addition the surface may be wrong about the pair; its variance is set to the largest that a
    fraction can have, 1/4.
    """
    votes = Votes.of(tally, protocol)
    ahead = votes.numbers(1)
    behind = votes.numbers(-1)
    net = ahead - behind
    counts = ahead + behind
    _met(counts, protocol)
    pairs = PairVotes.of(net, counts, protocol.gain)
    m = len(pairs.counts)
    unasked = (pairs.counts == 0) & ~np.eye(m, dtype=np.bool_)
    # pairs that were not asked get the fractions of the fitted surface
    filled = np.array(pairs.fractions)
    if unasked.any():
        filled = np.where(unasked, shrink(filled, pairs.largest_variance)[0], filled)
    np.fill_diagonal(filled, 0.0)
    times = (m - 1) / (pairs.counts > 0).sum(axis=1)
    unknown = UNASKED * (np.diag(unasked.sum(axis=1)) - unasked)
    return _Found(
        filled.sum(axis=1),
        votes.covariance(pairs) * np.outer(times, times) + unknown,
        votes.concerned(),
        pairs,
        filled,
        {names.PAIRS: (net, 1.0), names.PAIR_COUNTS: (counts, 1.0)},
    )


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """The votes of each combination of assignment and answer of a tally.

    Parameters
    ----------
    items : int
        Number of items m.
    first, second : ndarray of int64, shape (cells, votes)
        The items of each pair that was asked, the earlier item first.
    vote : ndarray of int64, shape (cells, votes)
        1 if the earlier item is placed before the other item, -1 if after it, 0 for a tie.
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
        # the sign of every pair of asked items; it is reversed if the later item comes first,
        # because a vote of 1 is always for the item that is earlier in the list
        vote = protocol.signs[:, left, right][values].astype(np.int64).reshape(cells, -1)
        ends = np.stack((items[..., left], items[..., right])).reshape(2, cells, -1)
        vote = np.where(ends[0] < ends[1], vote, -vote)
        first, second = np.sort(ends, axis=0)
        return cls(len(protocol.items), first, second, vote, tally.count)

    @property
    def pair(self) -> IntArray:
        """The position of each pair in the list of all pairs."""
        return pair_place(self.first, self.second, self.items)

    def numbers(self, side: int) -> IntArray:
        """Return the number of votes with this value, by pair in lexicographic order."""
        return np.bincount(
            self.pair.ravel(),
            np.where(self.vote == side, self.count[:, None], 0).ravel(),
            math.comb(self.items, 2),
        ).astype(np.int64)

    def concerned(self) -> IntArray:
        """Return the number of reports about either or both of two items, (m, m)."""
        table = self.by_item(np.ones(self.vote.shape, dtype=np.int64), 1) > 0
        # reports about both items; subtract them from the sum to get reports about either
        both = (table.T @ table.multiply(self.count[:, None]).tocsr()).toarray().astype(np.int64)
        own = np.diag(both)
        return np.asarray(own[:, None] + own - both)

    def covariance(self, pairs: PairVotes) -> FloatArray:
        """Return the sum over reports of outer products of their residuals by item.

        The residual of a report for an item is the weighted sum of the votes for and against the
        item, each minus its expectation given the other reports (:func:`_asked`).
        """
        # for each vote: the sum of the other reports' votes on its pair, over their padded number
        at = (self.first, self.second)
        counts = pairs.counts[at]
        others = pairs.means[at] * counts - self.vote
        expected = others / (counts - 1.0 + _PSEUDO * np.sqrt(counts))
        # residuals by report and item, with the weight 1 / (2 gain n) that a vote has in a score
        table = self.by_item((self.vote - expected) * (0.5 / pairs.gain) / counts, -1)
        return np.asarray((table.T @ (table * self.count[:, None])).toarray())

    def moments(self, met: BoolArray) -> dict[str, IntArray]:
        """Return sums over reports of products of votes and of vote counts.

        `met` marks the pairs that occur. A report has at most one vote on a pair, and no ties.
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
        """Return sums of numbers by cell and item; later items get this sign."""
        cells, votes = numbers.shape
        rows = np.tile(np.repeat(np.arange(cells), votes), 2)
        columns = np.concatenate((self.first.ravel(), self.second.ravel()))
        entries = np.concatenate((numbers.ravel(), sign * numbers.ravel()))
        return csr_array((entries, (rows, columns)), shape=(cells, self.items))


def _turned(tally: Tally, protocol: DuchiBall) -> _Found:
    """Return the estimates from signed directions in the space of all pairs.

    Notes
    -----
    **Statistic.** A report is a vote on every pair: the signed direction, whose expectation is
    gain (2 p - 1) times its length. A uniform direction over D pairs, reversed or not, has mean
    square 1 / D in each pair, whatever the rankings are. Borda scores are sums of fractions, so
    each report contributes one vector of scores, and the covariance of their mean is the covariance
    of the vectors divided by n.
    """
    pairs = len(protocol.all_pairs)
    # moments of the sums by item
    net, covariance = _moments(tally, *_sent(protocol))
    counts = np.full(pairs, tally.n, dtype=np.int64)
    table = PairVotes.of(net / SCALE, counts, protocol.gain, 1.0 / pairs)
    filled = table.fractions
    np.fill_diagonal(filled, 0.0)
    return _Found(
        filled.sum(axis=1),
        covariance / (2.0 * SCALE * protocol.gain) ** 2,
        np.full((len(filled), len(filled)), tally.n, dtype=np.int64),
        table,
        filled,
        {names.PAIRS: (net, 1.0 / SCALE), names.PAIR_COUNTS: (counts, 1.0)},
    )


def _placed(tally: Tally, protocol: CapBorda) -> _Found:
    """Return the estimates from directions close to the vectors of Borda scores.

    Notes
    -----
    **Statistic.** A report is a direction with expectation gain x / |x| times its length, where x
    is the respondent's vector of centred Borda scores and |x|^2 = m (m^2 - 1) / 12. So the scaled
    mean over reports is unbiased for the centred scores, and its covariance is the covariance of
    the directions divided by n.
    """
    m = len(protocol.items)
    sums, covariance = _moments(tally, *_sent(protocol))
    # a mean direction is gain x / |x| times SCALE, with the same |x| for all rankings
    scale = math.sqrt(m * (m * m - 1) / 12) / (SCALE * protocol.gain)
    return _Found(
        0.5 * (m - 1) + scale * sums / tally.n,
        scale**2 * covariance,
        np.full((m, m), tally.n, dtype=np.int64),
    )


_ESTIMATES: dict[type[Protocol], Callable[[Tally, Any], _Found]] = {
    SubRanking: _asked,
    RandomPairs: _asked,
    Comparisons: _asked,
    PairBits: _asked,
    DuchiBall: _turned,
    CapBorda: _placed,
}
"""Estimators of the protocols that ask each respondent for a random part of their ranking."""


Sent = Callable[[IntArray, IntArray], IntArray]
"""A function of assignments and answers that returns an integer vector for each."""


def _sent(protocol: DuchiBall | CapBorda) -> tuple[Sent, IntArray]:
    """Return the vectors of reports, and the contribution of entries to items."""
    unit = np.eye(len(protocol.items), dtype=np.int64)
    if isinstance(protocol, CapBorda):
        return protocol.directions, unit
    first, second = unit[protocol.all_pairs.T]
    return (
        lambda seeds, answers: (1 - 2 * answers)[:, None] * protocol.directions(seeds),
        first - second,
    )


def by_item(tally: Tally) -> csr_array:
    """Return the contribution of a report of each cell to each item, (cells, m).

    The contributions are votes for an item minus votes against it, or directions; both sum to 0.
    """
    protocol = tally.protocol
    if isinstance(protocol, Asking):
        votes = Votes.of(tally, protocol)
        return votes.by_item(votes.vote, -1)
    assert isinstance(protocol, DuchiBall | CapBorda)
    sent, ends = _sent(protocol)
    table = np.concatenate(
        [
            sent(tally.assignment[rows], tally.answer[rows]) @ ends
            for rows in batches(len(tally.count), len(ends))
        ]
    )
    # directions of scores sum to 0 up to rounding
    return csr_array(table - table.mean(axis=1, keepdims=True))


def _moments(tally: Tally, sent: Sent, ends: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the sum of the reported vectors, and the covariance of their mean.

    Sums of integers are exact.
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
