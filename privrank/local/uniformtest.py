"""The test of uniformity from reports: a quadratic form of net wins, and what it is under H0.

**Statistic.** B' V^+ B: B are the net wins of the items as reported, V the covariance that B would
have under H0 if the digits of a report were independent, given what was asked. With disjoint pairs
it is the sum over pairs of (net wins)^2 / (number of answers), in general the score form of
Friedman's test for an unbalanced design. Its rank is the number of degrees of freedom of the
chi-square distribution that it is close to.

**Null distribution.** Assignments are public and were drawn without regard to rankings, so the test
is made given them. Under H0 all orders of the items asked are equally likely, and a response,
whatever its epsilon, leaves them so: it is symmetric in the values. So the answers of one digit are
uniform, and those of a report are independent, as its digits share no item. With N draws of the
statistic from a public sequence the p-value (1 + #{draws >= observed}) / (N + 1) is valid at every
number of reports, however uneven the counts are. Observed and drawn statistics are exchangeable
under H0, and V, which scales them, is public.

**How many pairs.** Close to uniformity of a Mallows model, bits about one of q public pairs have
the non-centrality L mean(g^2) / E(g^2). Here g are the gaps of these pairs in the centre, and L is
a function of n, epsilon and phi alone. So the q with which power .9, on average over the pairs,
takes the least L depends on neither n nor epsilon. The choice min(8, floor(m / 2)) is within 3 % of
the least for every number of items m. With a thousand items L is 53.8 at q = 2, 26.6 at 5, 25.0 at
8 and 27.3 at 16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from privrank.hypotheses.nulls import FULL, fingerprint, public_generator
from privrank.local.protocols import Asking, Protocol
from privrank.local.protocols_orders import RandomPairs
from privrank.local.tally import Tally, check_tally, release_of
from privrank.release.names import GAIN, STATISTIC
from privrank.release.release import Release
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.solvers import spectrum
from privrank.util.workers import progress

NULL = "statistic under H0"
"""The part of a release that holds the draws of the null distribution."""

STEP = 2.0**-10
"""Lattice of the statistic, far finer than its spread: rounding leaves ties of draws ties."""

_LIGHT, _HEAVY = 2**14, 2**17
"""Random numbers of a draw up to which there are 9,999 draws, and up to which 1,999."""

_BLOCK = 2**21
"""Numbers that are held at a time."""


def usual_draws(size: int) -> int:
    """Return how many null draws there are unless asked for, by the random numbers of one."""
    return FULL if size <= _LIGHT else 1_999 if size <= _HEAVY else 999


@dataclass(frozen=True, eq=False)
class Asked:
    """What was asked how often, and the quadratic form that it makes of net wins.

    Parameters
    ----------
    protocol : Asking
        The protocol of the reports.
    assignment, count : ndarray of int64, shape (a,)
        The assignments that occur, sorted, and their numbers of reports.
    net : ndarray, shape (m,)
        Net wins of the items as reported.
    """

    protocol: Asking
    assignment: IntArray
    count: IntArray
    net: FloatArray

    @classmethod
    def of(cls, tally: Tally) -> Asked:
        """Return what the reports of a tally were asked."""
        protocol = tally.protocol
        assert isinstance(protocol, Asking)
        assignment, place = np.unique(tally.assignment, return_inverse=True)
        count = np.bincount(place, tally.count, minlength=len(assignment)).astype(np.int64)
        votes = tally.count[:, None, None] * _wins(protocol)[protocol.unpacked(tally.answer)]
        items = protocol.asked(tally.assignment)
        net = np.bincount(items.ravel(), votes.ravel(), minlength=len(protocol.items))
        return cls(protocol, assignment, count, np.asarray(net, dtype=np.float64))

    @cached_property
    def items(self) -> IntArray:
        """The items of each digit, shape (a, digits, width)."""
        return self.protocol.asked(self.assignment)

    @cached_property
    def root(self) -> FloatArray:
        """A matrix whose product with its transpose is V^+, shape (m, rank)."""
        m, wins = len(self.protocol.items), _wins(self.protocol)
        covariance = wins.T @ wins / len(wins)  # of the net wins of one digit
        digits = self.items.reshape(-1, self.items.shape[2])
        weight = np.repeat(self.count, self.items.shape[1])
        cells = digits[:, :, None] * m + digits[:, None, :]
        terms = weight[:, None, None] * covariance
        flat = np.bincount(cells.ravel(), terms.ravel(), minlength=m * m)
        table = np.asarray(flat.reshape(m, m), dtype=np.float64)
        # V of the items that were asked about; its null space, such as the constant, goes
        met = np.flatnonzero(np.diag(table))
        values, vectors = spectrum(table[np.ix_(met, met)])
        positive = values > 1e-9 * values.max()
        root = np.zeros((m, int(positive.sum())))
        root[met] = vectors[:, positive] / np.sqrt(values[positive])
        return root

    @property
    def rank(self) -> int:
        """Degrees of freedom of the statistic."""
        return int(self.root.shape[1])

    @property
    def statistic(self) -> int:
        """The statistic of the reports, in lattice steps."""
        return int(self._values(self.net[None])[0])

    def _values(self, net: FloatArray) -> IntArray:
        """Return the statistics of net wins, shape (rows, m), in lattice steps."""
        return np.asarray(np.rint(((net @ self.root) ** 2).sum(axis=1) / STEP), dtype=np.int64)

    @property
    def size(self) -> int:
        """Random numbers that a draw of the statistic takes: one for each value of each digit."""
        return len(self.assignment) * self.protocol.digits * self.protocol.options

    def draws(self, number: int) -> IntArray:
        """Return statistics under H0, in lattice steps, from a public sequence."""
        facts = np.concatenate((self.assignment, self.count)).astype(np.float64)
        seeds = int(self.protocol.id, 16), fingerprint(facts.tolist())
        rng = public_generator("uniformity of reports", *seeds)
        bar, block, parts = progress("draws under H0", number), max(1, _BLOCK // self.size), []
        for first in range(0, number, block):
            last = min(first + block, number)
            parts.append(self._values(self._net_wins(last - first, rng)))
            bar.update(last - first)
        bar.close()
        return np.concatenate(parts)

    def _net_wins(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draw net wins under H0, shape (number, m), from how often each digit has each value."""
        options, count = self.protocol.options, np.repeat(self.count, self.items.shape[1])
        if options == 2:  # a multinomial draw, but in less time
            first = rng.binomial(count, 0.5, (number, len(count)))
            drawn = np.stack((first, count - first), axis=2)
        else:
            drawn = rng.multinomial(count, np.full((1, options), 1 / options), (number, len(count)))
        return np.asarray((self._votes.T @ drawn.reshape(number, -1).T).T, dtype=np.float64)

    @cached_property
    def _votes(self) -> csr_array:
        """A row for each value of each digit: what it adds to the net wins of the items."""
        digits, options = self.items.reshape(-1, self.items.shape[2]), self.protocol.options
        rows, width = len(digits) * options, digits.shape[1]
        columns = np.repeat(digits, options, axis=0)
        votes = np.tile(_wins(self.protocol), (len(digits), 1))
        starts, shape = np.arange(rows + 1) * width, (rows, len(self.protocol.items))
        return csr_array((votes.ravel(), columns.ravel(), starts), shape)


def _wins(protocol: Asking) -> FloatArray:
    """Return net wins of the items of a digit by the value that is reported, (options, width)."""
    return np.asarray(protocol.signs.sum(axis=2), dtype=np.float64)


def check_reported(protocol: object) -> None:
    """Refuse what is no protocol whose reports show whether orders are uniform."""
    if not isinstance(protocol, Asking) or protocol.options != math.factorial(protocol.width):
        name = protocol.kind if isinstance(protocol, Protocol) else type(protocol).__name__
        raise ValueError(
            f"uniformity is tested from orders of a few items without ties, and these reports are "
            f"of the protocol {name!r}: collect reports of PairBits, SubRanking or RandomPairs."
        )
    # what a report is asked about more than once would make its digits dependent
    if isinstance(protocol, RandomPairs) and protocol.digits > 1:
        raise ValueError(
            f"uniformity is tested from pairs of a report that share no items, and these reports "
            f"have {protocol.digits} random ones: collect reports of PairBits, or of RandomPairs "
            f"with pairs=1."
        )


def counted(tally: Tally) -> Asked:
    """Return what a test takes of a tally, or refuse."""
    check_tally(tally)
    check_reported(tally.protocol)
    return Asked.of(tally)


def release_test(tally: Tally, draws: int | None) -> Release:
    """Return the statistic of a tally with its null draws, so many or the usual number."""
    facts = counted(tally)
    drawn = facts.draws(usual_draws(facts.size) if draws is None else draws)
    return release_of(
        tally,
        {STATISTIC: (np.array([facts.statistic]), STEP), NULL: (np.sort(drawn), STEP)},
        by="UniformityTest",
        method="quadratic form",
        settings={"df": float(facts.rank), GAIN: facts.protocol.response.gain},
    )
