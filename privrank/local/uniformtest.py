"""The test of uniformity from reports: a quadratic form of net wins, and what it is under H0.

**Statistic.** B' V^+ B: B are the net wins of the items as reported, V the covariance that B would
have under H0 if the digits of a report were independent, given what was asked. With disjoint pairs
it is the sum over pairs of (net wins)^2 / (number of answers), in general the score form of
Friedman's test for an unbalanced design. Its rank is the number of degrees of freedom of the
chi-square distribution that it is close to. Of reported directions it is the squared length of
their sum, over the mean square length of a coordinate.

**Null of orders** (:class:`Asked`). Assignments are public and were drawn without regard to
rankings, so the test is made given them. Under H0 all orders of the items asked are equally likely,
and a response, whatever its epsilon, leaves them so: it is symmetric in the values. So the answers
of one digit are uniform, and those of a report are independent where its digits share no item.
Where they do, the distribution of its answers is enumerated from all orders of its items and the
probabilities of the response. With N draws of the statistic from a public sequence the p-value (1 +
#{draws >= observed}) / (N + 1) is valid at every number of reports, however uneven the counts are:
observed and drawn statistics are exchangeable under H0, and V, which scales them, is public.

**Null of directions** (:class:`Sent`). Under H0 the ranking is as likely as any with the items
renamed; so are, the hashed words of a random seed taken as random and but for rounding to 2^-20,
the directions of the seed, in the order in which the seed has them; and which of them are near
depends on inner products alone. So the direction that a respondent sends, over all seeds and
responses, is as likely as the same with the items renamed. Renamings drawn apart for groups of
reports, which are drawn without regard to the reports, leave the joint distribution as it is: a
randomisation test, with the p-value above, and as quick for a million reports as for a thousand.

**How many pairs.** Where a Mallows model is near uniformity, bits about one of q public pairs have
the non-centrality L mean(g^2) / E(g^2), g the gaps of these pairs in the centre and L a function of
n, epsilon and phi alone. So the q with which power .9, on average over the pairs, takes the least L
depends on neither n nor epsilon: min(8, floor(m / 2)) is within 3 % of the least for every number
of items m. With a thousand items L is 53.8 at q = 2, 26.6 at 5, 25.0 at 8 and 27.3 at 16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privrank.hypotheses.nulls import FULL, fingerprint, public_generator
from privrank.local.protocols import Asking, Protocol
from privrank.local.protocols_vectors import CapBorda, DuchiBall
from privrank.local.releases import check_tally, release_of
from privrank.local.tally import Tally
from privrank.release.names import GAIN, STATISTIC
from privrank.release.release import Release
from privrank.util.solvers import spectrum
from privrank.util.workers import Progress

__all__ = [
    "NULL",
    "STEP",
    "Asked",
    "Sent",
    "check_reported",
    "counted",
    "release_test",
    "usual_draws",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

NULL = "statistic under H0"
"""The part of a release that holds the draws of the null distribution."""

STEP = 2.0**-10
"""Lattice of the statistic, far finer than its spread: rounding leaves ties of draws ties."""

_LIGHT, _HEAVY = 2**14, 2**17
"""Random numbers of a draw up to which there are 9,999 draws, and up to which 1,999."""

_MOST_PAIRS = 4
"""Pairs of a report, where they share items, all of whose answers are enumerated."""

_GROUPS = 512
"""Groups of reports whose items are renamed together; of fewer reports each is one."""

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
        votes = _wins(protocol)[protocol.unpacked(tally.answer)]
        items, votes = protocol.asked(tally.assignment), tally.count[:, None, None] * votes
        net = np.bincount(items.ravel(), votes.ravel(), minlength=len(protocol.items))
        return cls(protocol, assignment, count, np.asarray(net, dtype=np.float64))

    @cached_property
    def items(self) -> IntArray:
        """The items of each digit, shape (a, digits, width)."""
        return self.protocol.asked(self.assignment)

    @cached_property
    def _wins(self) -> FloatArray:
        return _wins(self.protocol)

    @cached_property
    def disjoint(self) -> bool:
        """Whether no report was asked about an item twice."""
        flat = np.sort(self.items.reshape(len(self.items), -1), axis=1)
        return bool((flat[:, 1:] != flat[:, :-1]).all())

    @cached_property
    def root(self) -> FloatArray:
        """A matrix whose product with its transpose is V^+, shape (m, rank)."""
        m, wins = len(self.protocol.items), self._wins
        each = wins.T @ wins / len(wins)
        asked = self.items.reshape(-1, self.items.shape[2])
        weight = np.repeat(self.count, self.items.shape[1])
        cells = asked[:, :, None] * m + asked[:, None, :]
        terms = weight[:, None, None] * each
        flat = np.bincount(cells.ravel(), terms.ravel(), minlength=m * m)
        table = np.asarray(flat.reshape(m, m), dtype=np.float64)
        met = np.flatnonzero(np.diag(table))
        values, vectors = spectrum(table[np.ix_(met, met)])
        kept = values > 1e-9 * values.max()
        root = np.zeros((m, int(kept.sum())))
        root[met] = vectors[:, kept] / np.sqrt(values[kept])
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
        """Random numbers that a draw of the statistic takes."""
        return int(self._cells[2].shape[0])

    def draws(self, number: int) -> IntArray:
        """Return statistics under H0, in lattice steps, from a public sequence."""
        facts = np.concatenate((self.assignment, self.count)).astype(np.float64)
        seeds = int(self.protocol.id, 16), fingerprint(facts.tolist())
        rng = public_generator("uniformity of reports", *seeds)
        return _in_blocks(number, self.size, lambda rows: self._values(self._net_wins(rows, rng)))

    def _net_wins(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draw net wins under H0, shape (number, m)."""
        count, share, votes = self._cells
        if share.shape == (1, 2):
            first = rng.binomial(count, 0.5, (number, len(count)))
            drawn = np.stack((first, count - first), axis=2)
        else:
            drawn = rng.multinomial(count, share, (number, len(count)))
        return np.asarray((votes.T @ drawn.reshape(number, -1).T).T, dtype=np.float64)

    @cached_property
    def _cells(self) -> tuple[IntArray, FloatArray, csr_array]:
        """Numbers of draws, the distribution of each, and what each outcome adds to net wins.

        A draw is the value of a digit where those of a report are independent, else its answer.
        """
        asked, wins, count = self.items, self._wins, self.count
        if self.disjoint:
            count = np.repeat(count, asked.shape[1])
            asked, share = asked.reshape(-1, asked.shape[2]), np.full((1, len(wins)), 1 / len(wins))
        else:
            digits = self.protocol.unpacked(np.arange(self.protocol.answers))
            wins, asked = wins[digits].reshape(len(digits), -1), asked.reshape(len(asked), -1)
            share = _joint(self.protocol, asked)
        rows, width = len(asked) * len(wins), asked.shape[1]
        columns, votes = np.repeat(asked, len(wins), axis=0), np.tile(wins, (len(asked), 1))
        starts, shape = np.arange(rows + 1) * width, (rows, len(self.protocol.items))
        return count, share, csr_array((votes.ravel(), columns.ravel(), starts), shape)


def _joint(protocol: Asking, asked: IntArray) -> FloatArray:
    """Return the distribution of the answers about pairs, shape (rows, answers), under H0.

    All orders of the items of a report are equally likely. It depends on which of them are the
    same item only, so that each such pattern is enumerated once.
    """
    pattern = np.argmax(asked[:, :, None] == asked[:, None, :], axis=2)
    patterns, place = np.unique(pattern, axis=0, return_inverse=True)
    kept = protocol.response.favoured_probability
    respond, tables = np.array([[kept, 1.0 - kept], [1.0 - kept, kept]]), []
    for kind in patterns:
        distinct, which = np.unique(kind, return_inverse=True)
        ranks = np.array(list(permutations(range(len(distinct)))))[:, which]
        later = ranks[:, ::2] > ranks[:, 1::2]
        table = np.bincount(protocol.packed(later), minlength=protocol.answers) / len(ranks)
        table = table.reshape((2,) * protocol.digits)
        for digit in range(protocol.digits):
            table = np.moveaxis(np.tensordot(respond, table, (1, digit)), 0, digit)
        tables.append(table.ravel())
    return np.array(tables)[place.ravel()]


def _wins(protocol: Asking) -> FloatArray:
    """Return net wins of the items of a digit by the value that is reported, (options, width)."""
    return np.asarray(protocol.signs.sum(axis=2), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Sent:
    """The directions that respondents sent, added up in groups.

    Parameters
    ----------
    protocol : DuchiBall or CapBorda
        The protocol of the reports.
    sums : ndarray, shape (groups, m)
        Centred sums of the directions over the items, of each group of reports.
    n : int
        Number of reports.
    """

    protocol: DuchiBall | CapBorda
    sums: FloatArray
    n: int

    @classmethod
    def of(cls, tally: Tally) -> Sent:
        """Return the sums of a tally's reports, in groups drawn from a public sequence."""
        protocol, m = tally.protocol, len(tally.protocol.items)
        assert isinstance(protocol, DuchiBall | CapBorda)
        rng = public_generator("groups of reports", int(protocol.id, 16), tally.n)
        group = rng.permutation(tally.n) % _GROUPS
        sums = np.zeros((min(tally.n, _GROUPS), m))
        block, done = max(1, _BLOCK // m**2), 0
        for first in range(0, len(tally.count), block):
            rows = slice(first, first + block)
            vectors = _vectors(protocol, tally.assignment[rows], tally.answer[rows])
            vectors = np.repeat(vectors, tally.count[rows], axis=0)
            np.add.at(sums, group[done : done + len(vectors)], vectors)
            done += len(vectors)
        return cls(protocol, sums - sums.mean(axis=1, keepdims=True), tally.n)

    @property
    def rank(self) -> int:
        """Degrees of freedom of the statistic."""
        return int(self.sums.shape[1]) - 1

    @property
    def size(self) -> int:
        """Random numbers that a draw of the statistic takes."""
        return int(self.sums.size)

    @property
    def statistic(self) -> int:
        """The statistic of the reports, in lattice steps."""
        return int(self._values(self.sums.sum(axis=0)[None])[0])

    def _values(self, total: FloatArray) -> IntArray:
        scale = self.rank / (self.sums**2).sum()
        return np.asarray(np.rint(scale * (total**2).sum(axis=1) / STEP), dtype=np.int64)

    def draws(self, number: int) -> IntArray:
        """Return statistics with the items renamed in each group, from a public sequence."""
        rng = public_generator("renamed items", int(self.protocol.id, 16), self.n)

        def renamed(rows: int) -> FloatArray:
            tiled = np.broadcast_to(self.sums, (rows, *self.sums.shape))
            return np.asarray(rng.permuted(tiled, axis=2).sum(axis=1))

        return _in_blocks(number, self.size, lambda rows: self._values(renamed(rows)))


def _vectors(protocol: DuchiBall | CapBorda, seeds: IntArray, values: IntArray) -> FloatArray:
    """Return the reported directions over the items, shape (reports, m)."""
    if isinstance(protocol, CapBorda):
        return protocol.directions(seeds, values).astype(np.float64)
    votes = (1 - 2 * values)[:, None] * protocol.directions(seeds)
    first, second = protocol.all_pairs.T
    place = np.arange(len(first))
    shape = (len(first), len(protocol.items))
    wins = csr_array((np.ones(len(first)), (place, first)), shape)
    losses = csr_array((np.ones(len(first)), (place, second)), shape)
    return np.asarray(votes @ (wins - losses), dtype=np.float64)


def _in_blocks(number: int, size: int, draw: Callable[[int], IntArray]) -> IntArray:
    """Return so many draws, each of which takes so many random numbers, a block at a time."""
    bar, block, parts = Progress("draws under H0", number), max(1, _BLOCK // size), []
    for first in range(0, number, block):
        last = min(first + block, number)
        parts.append(draw(last - first))
        bar.show(last)
    return np.concatenate(parts)


def check_reported(protocol: object) -> None:
    """Refuse what is no protocol whose reports tell of uniformity."""
    if not isinstance(protocol, DuchiBall | CapBorda) and not _ordered(protocol):
        name = protocol.kind if isinstance(protocol, Protocol) else type(protocol).__name__
        raise ValueError(
            f"uniformity is tested from rankings without ties, and these reports are of the "
            f"protocol {name!r}: collect reports of PairBits, SubRanking or RandomPairs."
        )


def _ordered(protocol: object) -> bool:
    """Return whether a protocol asks for the order of items, without ties."""
    return isinstance(protocol, Asking) and protocol.options == math.factorial(protocol.width)


def counted(tally: Tally) -> Asked | Sent:
    """Return what a test takes of a tally, or refuse."""
    check_tally(tally)
    protocol = tally.protocol
    check_reported(protocol)
    if not tally.n:
        raise ValueError("tally must hold accepted reports, and it has none: see its summary().")
    if not isinstance(protocol, Asking):
        return Sent.of(tally)
    facts = Asked.of(tally)
    if protocol.digits > _MOST_PAIRS and not facts.disjoint:
        raise ValueError(
            f"uniformity is tested from up to {_MOST_PAIRS} pairs of a report where these share "
            f"items, and these reports have {protocol.digits}: collect reports of PairBits."
        )
    return facts


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
