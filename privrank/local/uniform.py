"""Test of uniformity from local reports: statistic, null, result and power.

**Statistic.** The statistic is B' V^+ B. B are the reported net wins of the items, and V is the
covariance that B would have under H0, given the assignments, if the digits of a report were
independent. With disjoint pairs the statistic is the sum over pairs of
(net wins)^2 / (number of answers). In general it is the score form of Friedman's test for an
unbalanced design. It is approximately chi-square; the degrees of freedom are the rank of V.

**Null distribution.** Assignments are public and were drawn independently of rankings, so the test
conditions on them. Under H0 all orders of the items asked are equally likely, and a response keeps
this property for any epsilon, because it is symmetric in the values. So the answers of one digit
are uniform, and the answers of one report are independent, because its digits share no item. With N
draws of the statistic from a public sequence, the p-value (1 + #{draws >= observed}) / (N + 1) is
valid for any number of reports, however unequal the counts. Observed and drawn statistics are
exchangeable under H0, and V, which scales them, is public.

**Reports drawn as a whole.** Several random pairs of one ranking are dependent, and so are the
coordinates of a direction. Let w be the contribution of such a report to B. For pairs, w contains
the votes for each item minus the votes against it. For directions (`DuchiBall`, `CapBorda`), it is
the reported direction minus its mean. Under H0, w and -w are equally likely, because a uniform
ranking is as likely as its reverse.

- Pairs, given the assignment: the reverse ranking reverses all true bits, and the response of each
  digit is symmetric in the two values.
- Directions: seeds are uniform, and the set of all directions of a seed is symmetric about 0. The
  reverse ranking has the same inner products with the opposite directions. So the favoured values
  and the response to them are the same, and the reported direction is the opposite one. This holds
  to the extent that hashed seeds are random, and up to the rounding of directions, 1e-5 of their
  length.

So given each w up to its sign, the signs are independent fair coins. V is the sum of w w', the
covariance of B over these coins, and does not depend on the signs. So B' V^+ B and its draws with
other signs are exchangeable under H0, and the same p-value is valid for any number of reports. The
p-value is 1 if there are too few reports for any rejection, up to m - 1 reports with linearly
independent w. By the same argument the test has its size for every distribution of rankings in
which each ranking is as likely as its reverse.

**Number of pairs.** For a Mallows model close to uniformity, bits about one of q public pairs have
the noncentrality L mean(g^2) / E(g^2). Here g are the gaps of these pairs in the central ranking,
and L depends only on n, epsilon and phi. So the q that needs the smallest L for power 0.9, on
average over the pairs, depends on neither n nor epsilon. The choice min(8, floor(m / 2)) is within
3% of the smallest L for every number of items m. With 1,000 items L is 53.8 for q = 2, 26.6 for 5,
25.0 for 8 and 27.3 for 16.

**Power before data collection.** Respondents' rankings follow a Mallows model whose central ranking
is unknown to the protocol, so all central rankings are equally likely. For reports about one pair
each, only the numbers of each answer are drawn, which takes as long for 1,000,000 reports as for
1,000. For all other protocols every report is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array

from privrank.distributions.kendall import pair_probability
from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nulls import (
    Null,
    NullModel,
    Order,
    Statistic,
    draws_of,
    public_generator,
    table_key,
)
from privrank.local.estimates import by_item
from privrank.local.kinds import CapBorda, DuchiBall, PairBits, RandomPairs, protocol_from_json
from privrank.local.protocols import Asking, Protocol
from privrank.local.tally import Tally, check_tally, release_of
from privrank.release.names import GAIN, STATISTIC
from privrank.release.release import Release
from privrank.results.ranktest import RankTestResult, read_test
from privrank.results.testnotes import hypotheses_of_uniformity
from privrank.util.arrays import FloatArray, IntArray, batches, readonly_copy
from privrank.util.solvers import spectrum
from privrank.util.workers import progress

NULL = "statistic under H0"
"""The part of a release with the draws of the null distribution."""

STEP = 2.0**-10
"""Lattice step of the statistic, far finer than its spread; tied draws remain tied."""

_LIGHT = 2**14
_HEAVY = 2**17
"""Largest numbers of random numbers per draw for 9,999 draws, and for 1,999 draws."""

_BLOCK = 2**21
"""Number of random numbers in memory at a time."""


@dataclass(frozen=True, eq=False)
class Asked:
    """The assignments with their counts, and the quadratic form of net wins.

    Parameters
    ----------
    protocol : Protocol
        The protocol of the reports.
    assignment, count : ndarray of int64, shape (a,)
        The assignments that occur, sorted, and their numbers of reports.
    net : ndarray, shape (m,)
        Reported net wins of the items, or the sum of the reported directions.
    whole : (ndarray of int64, ndarray) or None
        For reports drawn as a whole: the number of reports of each combination of assignment and
        answer, shape (cells,), and the contribution of one report to net wins, shape (cells, m).
    """

    protocol: Protocol
    assignment: IntArray
    count: IntArray
    net: FloatArray
    whole: tuple[IntArray, FloatArray] | None = None

    @classmethod
    def of(cls, tally: Tally) -> Asked:
        """Return the assignments of a tally; refuse unsuitable protocols."""
        check_tally(tally)
        protocol = tally.protocol
        if protocol.keeps_ties:
            raise ValueError(
                f"tally must have orders without ties for a test of uniformity, and it is of the "
                f"protocol {protocol.kind!r} with ties. Collect reports of PairBits, of "
                f"SubRanking, or of Comparisons without ties=True."
            )
        table = by_item(tally)
        if is_drawn_as_one(protocol) and not table.count_nonzero():
            raise ValueError(
                "tally must hold reports that prefer an item, and every item has as many votes for "
                "it as against it. Collect more reports."
            )
        assignment, place = np.unique(tally.assignment, return_inverse=True)
        return cls(
            protocol,
            assignment,
            count=np.bincount(place, tally.count, minlength=len(assignment)).astype(np.int64),
            net=np.asarray(tally.count @ table, np.float64),
            whole=(tally.count, table.toarray()) if is_drawn_as_one(protocol) else None,
        )

    @cached_property
    def digits(self) -> IntArray:
        """The items of each digit of each assignment, shape (a digits, width)."""
        protocol = cast(Asking, self.protocol)
        return protocol.asked(self.assignment).reshape(-1, protocol.width)

    @cached_property
    def root(self) -> FloatArray:
        """A matrix whose product with its transpose is V^+, shape (m, rank).

        V is computed from the reports if they are drawn as a whole, or from the assignments alone.
        """
        if self.whole is not None:
            reports, added = self.whole
            table = np.asarray((added * reports[:, None]).T @ added)
        else:
            m = len(self.protocol.items)
            wins = cast(Asking, self.protocol).signs.sum(axis=2)  # by value and item of a digit
            covariance = wins.T @ wins / len(wins)  # of the net wins of one digit
            cells = self.digits[:, :, None] * m + self.digits[:, None, :]
            terms = np.repeat(self.count, self.protocol.digits)[:, None, None] * covariance
            sums = np.bincount(cells.ravel(), terms.ravel(), minlength=m * m)
            table = np.asarray(sums.reshape(m, m), dtype=np.float64)
        # use V of the items that were asked, without its null space (such as the constant)
        met = np.flatnonzero(np.diag(table))
        values, vectors = spectrum(table[np.ix_(met, met)])
        positive = values > 1e-9 * values.max()
        root = np.zeros((len(table), int(positive.sum())))
        root[met] = vectors[:, positive] / np.sqrt(values[positive])
        return root

    @property
    def statistic(self) -> int:
        """The statistic of the reports, in lattice steps."""
        return int(self._values(self.net[None])[0])

    def _values(self, net: FloatArray) -> IntArray:
        """Return the statistics of net wins, shape (rows, m), in lattice steps."""
        return np.asarray(np.rint(((net @ self.root) ** 2).sum(axis=1) / STEP), dtype=np.int64)

    @property
    def size(self) -> int:
        """Random numbers per draw: one per value of each digit, or per whole report."""
        if self.whole is not None:
            return len(self.whole[0])
        return len(self.assignment) * self.protocol.digits * self.protocol.options

    def draws(self, number: int) -> IntArray:
        """Return statistics under H0, in lattice steps, from a public sequence."""
        # the seed depends on assignments, never on answers, so results with the same assignments
        # share one table, and the p-value is a function of the release
        facts = np.concatenate((self.assignment, self.count)).astype(np.float64)
        rng = public_generator(
            "uniformity of reports", int(self.protocol.id, 16), table_key(facts.tolist())
        )
        bar = progress("draws under H0", number)
        parts = []
        for rows in batches(number, self.size, _BLOCK):
            size = rows.stop - rows.start
            parts.append(self._values(self._net_wins(size, rng)))
            bar.update(size)
        bar.close()
        return np.concatenate(parts)

    def _net_wins(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draw net wins under H0, shape (number, m).

        The draws are numbers of reversed reports, or numbers of each value of each digit.
        """
        if self.whole is not None:
            reports, added = self.whole
            shape = (number, len(reports))
            if reports.max() == 1:  # a faster binomial draw
                forward = rng.integers(0, 2, shape, np.int8)
            else:
                forward = rng.binomial(reports, 0.5, shape)
            return np.asarray((2.0 * forward - reports) @ added)
        options = self.protocol.options
        count = np.repeat(self.count, self.protocol.digits)
        if options == 2:  # a faster multinomial draw
            first = rng.binomial(count, 0.5, (number, len(count)))
            drawn = np.stack((first, count - first), axis=2)
        else:
            drawn = rng.multinomial(count, np.full((1, options), 1 / options), (number, len(count)))
        return np.asarray((self._votes.T @ drawn.reshape(number, -1).T).T, dtype=np.float64)

    @cached_property
    def _votes(self) -> csr_array:
        """The contribution of each value of each digit (rows) to the items' net wins."""
        options = self.protocol.options
        rows = len(self.digits) * options
        wins = cast(Asking, self.protocol).signs.sum(axis=2)
        votes = np.tile(wins, (len(self.digits), 1)).ravel()
        columns = np.repeat(self.digits, options, axis=0).ravel()
        starts = np.arange(rows + 1) * wins.shape[1]
        return csr_array((votes, columns, starts), shape=(rows, len(self.protocol.items)))


def is_drawn_as_one(protocol: Protocol) -> bool:
    """Return whether parts of a report are dependent under H0."""
    return isinstance(protocol, DuchiBall | CapBorda) or (
        isinstance(protocol, RandomPairs) and protocol.digits > 1
    )


def release_test(tally: Tally, draws: int | None) -> Release:
    """Return the statistic of a tally with its null draws."""
    facts = Asked.of(tally)
    number = draws_of(facts.size, _LIGHT, _HEAVY) if draws is None else draws
    return release_of(
        tally,
        {
            STATISTIC: (np.array([facts.statistic]), STEP),
            NULL: (np.sort(facts.draws(number)), STEP),
        },
        by="UniformityTest",
        method="quadratic form",
        settings={"df": float(facts.root.shape[1]), GAIN: facts.protocol.response.gain},
    )


def infer_reports(
    release: Release, *, alpha: float = 0.05, simulation: Mapping[str, Any] | None = None
) -> RankTestResult:
    """Return the test from a release of a tally's statistic, by post-processing."""
    if NULL not in release.values:
        raise ValueError("release must be of a UniformityTest, and it is of another model.")
    protocol = protocol_from_json(str(release.plan.settings["protocol"]))
    # the null distribution is part of the release, so reading a test again needs no draws
    null = Null.of_draws(release.values[NULL])
    given = (
        "each report or its reverse" if is_drawn_as_one(protocol) else "how often each was asked"
    )
    return read_test(
        null,
        release=release,
        test="UniformityTest",
        method=release.plan.method,
        alpha=alpha,
        hypotheses=hypotheses_of_uniformity(release.sample),
        draws=len(release.values[NULL]),
        simulation=simulation,
        notes=(
            f"Under H0 the statistic is close to chi-square on {release.plan.number('df'):.0f} "
            f"degrees of freedom; the p-value is by simulation, given {given}.",
        ),
        query=replace(planned_statistic(protocol, release.sample.nobs), null=partial(_kept, null)),
        null_model=NullModel(),
    )


def _kept(null: Null, draws: int) -> Null:
    """Return the null distribution of a release, which contains all draws."""
    return null


def planned_statistic(protocol: Protocol, nobs: int) -> Statistic:
    """Return the test statistic of simulated surveys of `nobs` reports of a protocol.

    Notes
    -----
    **Statistic.** A response of gain g to the order of items i and j adds, on average, g (2 p - 1)
    to the net wins of i and subtracts the same from the net wins of j. Here p is the probability
    that i is ranked first. So the number of answers for i out of c is binomial with probability
    1/2 + g (p - 1/2).
    """
    public = isinstance(protocol, PairBits) and protocol.pairing == "public"
    return Statistic(
        protocol.kind,
        STEP,
        0,
        value=_as_drawn,
        null=partial(_planned_null, protocol, nobs),
        blind_to=("even public pairs" if public else "equal mean ranks, reports",),
        consistent=None,
        sampler=partial(_simulated, protocol, nobs),
    )


def _planned_null(protocol: Protocol, nobs: int, draws: int) -> Null:
    """Return the null distribution of one simulated survey from `draws` draws.

    A fit conditions on how often each pair was asked, which a plan does not know.
    """
    return Null.of_draws(
        simulated_survey(protocol, nobs, 0.0, public_generator("planned reports")).draws(draws)
    )


def _simulated(protocol: Protocol, nobs: int, theta: float, rng: np.random.Generator) -> int:
    """Return the statistic of one simulated survey."""
    return simulated_survey(protocol, nobs, theta, rng).statistic


def simulated_survey(
    protocol: Protocol, nobs: int, theta: float, rng: np.random.Generator
) -> Asked:
    """Simulate a survey with rankings from a Mallows model with theta = -log phi."""
    m = len(protocol.items)
    place = rng.permutation(m)
    if not isinstance(protocol, Asking) or protocol.width != 2 or protocol.digits != 1:
        ranks = Mallows.from_theta(m, theta).rvs(nobs, rng)[:, place]
        return Asked.of(protocol.tally(protocol.simulate(ranks, rng)))
    # only how often each pair is asked and its first item preferred; with fewer respondents
    # than pairs most pairs are not asked, and only those drawn are kept
    pairs = protocol.assignments
    if pairs <= nobs:
        number = rng.multinomial(nobs, np.full(pairs, 1.0 / pairs))
        questions = np.flatnonzero(number)
        count = number[number > 0]
    else:
        questions, count = np.unique(protocol.assign(nobs, rng), return_counts=True)
    first, second = protocol.asked(questions)[:, 0].T
    # P(answer is for the first) = 1/2 + gain / 2 times its lead, which depends on the gap of
    # the two items in the central ranking; x wins of c answers are 2 x - c net wins
    gap = place[second] - place[first]
    lead = np.sign(gap) * _leads(m, theta)[np.abs(gap)]
    more = 2 * rng.binomial(count, 0.5 + 0.5 * protocol.gain * lead) - count
    net = np.bincount(first, more, m) - np.bincount(second, more, m)
    return Asked(protocol, questions, count.astype(np.int64), net.astype(np.float64))


def _as_drawn(statistic: IntArray, order: Order) -> int:
    """Return the statistic of a simulated survey."""
    return int(statistic)


@lru_cache(maxsize=64)
def _leads(m: int, theta: float) -> FloatArray:
    """Return 2 p - 1 by gap, p the probability that the order of a pair is kept.

    The gap is the difference of positions in the central ranking, 0 to m - 1.
    """
    ahead = [0.5, *(pair_probability(gap, theta) for gap in range(1, m))]
    return readonly_copy(2.0 * np.array(ahead) - 1.0, np.float64)
