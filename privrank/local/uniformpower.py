"""The power of the test of uniformity from reports, before these are collected.

Respondents' rankings follow a Mallows model with a centre that the protocol does not know, so that
all centres are as likely. Of reports about one pair each the numbers of each answer are drawn,
which is as quick for a million as for a thousand; of others every report is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privrank.distributions.kendall import pair_probability
from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nulls import Null, Order, public_generator
from privrank.hypotheses.statistic import Statistic
from privrank.local.protocols import Asking, Protocol
from privrank.local.uniformtest import STEP, Asked, counted
from privrank.util.arrays import FloatArray, IntArray, own

_ANY, _NUMBERS = 10**8, 2**22
"""Respondents whose answers are counted, and numbers that reports of others take, at most."""

_SURVEYS = 8
"""Simulated surveys under H0 that share the draws of a planned null distribution."""


@dataclass(frozen=True)
class Collection:
    """So many reports of a protocol that are to be collected.

    Parameters
    ----------
    protocol : Protocol
        What respondents are asked, and the epsilon of a report.
    nobs : int
        Number of respondents.

    Notes
    -----
    **Statistic.** A response of gain g to the order of items i and j adds, on average, g (2 p - 1)
    to the net wins of i and takes as much from those of j. Here p is the probability that i is
    ranked first. So the number of answers for i out of c is binomial with share 1/2 + g (p - 1/2).
    """

    protocol: Protocol
    nobs: int

    @property
    def bits(self) -> bool:
        """Whether each respondent is asked for the order of one pair."""
        protocol = self.protocol
        return isinstance(protocol, Asking) and protocol.width == 2 and protocol.digits == 1

    @property
    def most(self) -> float:
        """Up to how many respondents are simulated in reasonable time."""
        if self.bits:
            return float(_ANY)
        m = len(self.protocol.items)
        return float(max(_NUMBERS // max(m * m, m * self.protocol.options), 1_000))

    @property
    def statistic(self) -> Statistic:
        """The statistic of the test, of surveys that are simulated."""
        return Statistic(
            self.protocol.kind,
            STEP,
            0,
            value=_drawn,
            null=self.null,
            sampler=self.simulated,
        )

    def null(self, draws: int) -> Null:
        """Return the null distribution of such a survey, from so many draws.

        A fit's own is that given how often each pair was asked, which a plan does not know: it
        takes the mean over a few surveys.
        """
        surveys = min(_SURVEYS, self.protocol.assignments)
        share = -(-draws // surveys)
        drawn = [
            self.survey(0.0, public_generator("planned reports", k)).draws(share)
            for k in range(surveys)
        ]
        return Null.of_draws(np.concatenate(drawn))

    def simulated(self, theta: float, rng: np.random.Generator) -> int:
        """Return the statistic of one survey."""
        return self.survey(theta, rng).statistic

    def survey(self, theta: float, rng: np.random.Generator) -> Asked:
        """Simulate a survey whose rankings are of a Mallows model with this -log phi."""
        place = rng.permutation(len(self.protocol.items))
        return self._counts(theta, place, rng) if self.bits else self._reports(theta, place, rng)

    def _counts(self, theta: float, place: IntArray, rng: np.random.Generator) -> Asked:
        """Draw how often each pair is asked, and how often the first of its items is ahead."""
        protocol, pairs, m = self.protocol, self.protocol.assignments, len(place)
        assert isinstance(protocol, Asking)
        if pairs <= self.nobs:
            number = rng.multinomial(self.nobs, np.full(pairs, 1.0 / pairs))
            questions, count = np.flatnonzero(number), number[number > 0]
        else:
            questions, count = np.unique(protocol.assign(self.nobs, rng), return_counts=True)
        first, second = protocol.asked(questions)[:, 0].T
        gap = place[second] - place[first]
        lead = np.sign(gap) * _leads(m, theta)[np.abs(gap)]
        more = 2 * rng.binomial(count, 0.5 + 0.5 * protocol.gain * lead) - count
        net = np.bincount(first, more, m) - np.bincount(second, more, m)
        return Asked(protocol, questions, count.astype(np.int64), net.astype(np.float64))

    def _reports(self, theta: float, place: IntArray, rng: np.random.Generator) -> Asked:
        """Simulate respondents one by one."""
        protocol = self.protocol
        ranks = Mallows.from_theta(len(place), theta).rvs(self.nobs, rng)[:, place]
        return counted(protocol.tally(protocol.simulate(ranks, rng)))


def _drawn(statistic: IntArray, order: Order) -> int:
    """Return the statistic of a simulated survey."""
    return int(statistic)


@lru_cache(maxsize=64)
def _leads(m: int, theta: float) -> FloatArray:
    """Return how much more often an item is ahead of one 0, 1, ... places after it than behind."""
    ahead = [0.5, *(pair_probability(gap, theta) for gap in range(1, m))]
    return own(2.0 * np.array(ahead) - 1.0, np.float64)
