"""On the device: a ranking is read and checked, and an answer drawn by the subset response.

The subset response is the one randomiser that all protocols of the local model share. An answer is
digits. To each digit belong `options` values, of which exactly `favoured` are favoured
by the respondent's ranking; which these are depends on the ranking and on what was asked. The value
that is reported is drawn from all of them, favoured ones with the larger weight.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privrank.privacy.noise import digits
from privrank.util.arrays import IntArray

Partial = Literal["refuse", "complete"]

_PRECISION = 52
"""Binary digits of the smaller weight, up to rounding."""


def below(total: int) -> int:
    """Return a uniform whole number below `total` from the random bits of the operating system."""
    return secrets.randbelow(total)


def identifier() -> str:
    """Return 128 random bits of the operating system as hexadecimal digits."""
    return secrets.token_hex(16)


def shuffled(size: int) -> list[int]:
    """Return the numbers below `size` in a uniform random order, by the operating system's bits."""
    left = list(range(size))
    return [left.pop(below(len(left))) for _ in range(size)]


@dataclass(frozen=True, slots=True)
class SubsetResponse:
    """One digit of an answer: a favoured value with the larger of two integer weights each.

    Notes
    -----
    **Privacy.** The unit is one report of one respondent; neighbours are any two rankings that the
    respondent might hold, so all pairs of rankings. Let N be the options, k the favoured ones, V
    and W <= V the weights. The set F of favoured values has exactly k of the N, whatever the
    ranking. So a value a is reported with probability V / (k V + (N - k) W) if a is in F and
    W / (k V + (N - k) W) if not. The total does not depend on the ranking. For two rankings the
    probabilities of one value differ by a factor of at most V / W, and one that only the first
    favours is at that ratio. The digits of a report are drawn independently given the ranking, so
    the ratios multiply: a report of d digits at epsilon / d each is epsilon-private. What is asked
    is drawn before the ranking is looked at, so that it has the same probability for all rankings.
    Nothing else about F enters. The claim holds for any map from rankings to sets of k values, so
    also for one that was computed in floating point, and for a random one, over which both
    probabilities are averaged.

    The weights are whole numbers, and the draw is decided by a uniform whole number below their
    total: the probabilities are those above, without rounding. `at` chooses the weights such that
    V / W < exp(epsilon), and not below it by more than a relative 2^-51.

    References
    ----------
    With k = 1 it is randomised response of N values: Warner (1965) for two, Kairouz, Bonawitz and
    Ramage (2016), Discrete distribution estimation under local privacy, for more.
    """

    options: int
    favoured: int
    favoured_weight: int
    other_weight: int

    @classmethod
    def at(cls, epsilon: Fraction, options: int, favoured: int = 1) -> SubsetResponse:
        """Return the response with the largest ratio of weights that exp(epsilon) allows.

        V = 2^b and W = floor(2^b exp(-epsilon)) + 1 > 2^b exp(-epsilon), of which `digits` is
        exact. As b is at least 52 + epsilon / log 2, W is at least 2^52.
        """
        bits = _PRECISION + math.ceil(float(epsilon) / math.log(2))
        return cls(options, favoured, 1 << bits, digits(epsilon, bits, 0) + 1)

    @classmethod
    def thresholded_laplace(cls, epsilon: Fraction) -> SubsetResponse:
        """Return Laplace noise of scale 1 / epsilon on a bit, cut at one half.

        The bit is reported wrongly with probability exp(-epsilon / 2) / 2 at least, by no more than
        2^-52, which is a binary response at log(2 exp(epsilon / 2) - 1) < epsilon.
        """
        bits = _PRECISION + math.ceil(float(epsilon) / math.log(4))
        wrong = digits(epsilon / 2, bits, 0) + 1
        return cls(2, 1, (2 << bits) - wrong, wrong)

    @property
    def total(self) -> int:
        """The sum of the weights of all values, the same for all rankings."""
        rest = self.options - self.favoured
        return self.favoured * self.favoured_weight + rest * self.other_weight

    @property
    def favoured_probability(self) -> float:
        """Probability that one of the favoured values is reported."""
        return self.favoured * self.favoured_weight / self.total

    @property
    def gain(self) -> float:
        """By how much more probable a favoured value is than another."""
        return (self.favoured_weight - self.other_weight) / self.total

    @property
    def epsilon(self) -> float:
        """The epsilon that one digit spends: the logarithm of the ratio of the weights."""
        return math.log1p((self.favoured_weight - self.other_weight) / self.other_weight)

    def secure(self, favoured: Sequence[int]) -> int:
        """Draw one value for the sorted `favoured` ones, from the operating system's bits."""
        number = below(self.total)
        edge = self.favoured * self.favoured_weight
        agrees = number < edge
        place = number // self.favoured_weight if agrees else (number - edge) // self.other_weight
        # both are found in any case, so that the time it takes does not show which one is reported
        other = place + sum(value - i <= place for i, value in enumerate(favoured))
        one = int(favoured[min(place, self.favoured - 1)])
        return one if agrees else other

    def simulated(self, favoured: NDArray[Any], rng: np.random.Generator) -> IntArray:
        """Draw values for many sorted sets of favoured ones along the last axis, by a generator."""
        agrees = rng.random(favoured.shape[:-1]) < self.favoured_probability
        place = rng.integers(0, np.where(agrees, self.favoured, self.options - self.favoured))
        # the place-th of the values that are not favoured: each favoured one before it moves it on
        before = favoured - np.arange(self.favoured) <= place[..., None]
        inside = np.take_along_axis(favoured, np.minimum(place, self.favoured - 1)[..., None], -1)
        return np.where(agrees, inside[..., 0], place + before.sum(axis=-1))


def read_ranking(
    ranking: object,
    items: Sequence[str],
    needed: Sequence[int],
    *,
    ties: bool,
    partial: Partial,
) -> NDArray[np.int64]:
    """Return the rank of every item, of which the `needed` ones count.

    A ranking is a sequence of names, best first, or a mapping from names to ranks 1, 2, ... With
    ``partial="complete"`` items that share a rank are put in random order, unless `ties` are
    answers of their own, and needed items that are left out come below all others, in random order.
    """
    places = {name: place for place, name in enumerate(items)}
    levels: dict[int, int] = {}
    for name, level in _named(ranking):
        if name not in places:
            raise ValueError(
                "ranking names something that is not among the protocol's items: write the items "
                "as the protocol does."
            )
        if places[name] in levels:
            raise ValueError("ranking names an item twice: give each item one place.")
        levels[places[name]] = level
    if partial == "refuse":
        if not levels.keys() >= set(needed):
            raise ValueError(
                f"ranking leaves out items that are asked about ({len(needed)} are): place each of "
                f"them, or use a protocol with partial='complete'."
            )
        if not ties and len(set(levels.values())) < len(levels):
            raise ValueError(
                "ranking gives two items the same rank: order them, or use a protocol with "
                "partial='complete', or Comparisons with ties=True."
            )
        if not ties and len(levels) == len(items) and max(levels.values()) != len(items):
            raise ValueError(
                f"ranking has a gap: {len(items)} items have the ranks 1 to {len(items)}."
            )
    size = len(items)
    last = max(levels.values(), default=0) + 1
    # of equal levels, or of none, which come last, the lots decide
    lots = shuffled(size) if partial == "complete" else range(size)
    keys = [
        (levels.get(place, last), 0 if ties and place in levels else lots[place])
        for place in range(size)
    ]
    rank = {key: number for number, key in enumerate(sorted(set(keys)), 1)}
    return np.array([rank[key] for key in keys], dtype=np.int64)


def _named(ranking: object) -> list[tuple[str, int]]:
    """Return names and ranks of what is a mapping or a sequence."""
    if isinstance(ranking, Mapping):
        for level in ranking.values():
            if isinstance(level, bool) or not isinstance(level, Integral) or level < 1:
                raise ValueError(
                    "ranking must map items to whole numbers from 1, the rank of the best: leave "
                    "out items without a rank."
                )
        return [(str(name), int(level)) for name, level in ranking.items()]
    listed = isinstance(ranking, Sequence) and not isinstance(ranking, str | bytes)
    if not listed and not (isinstance(ranking, np.ndarray) and ranking.ndim == 1):
        raise TypeError(
            f"ranking must be a sequence of items, best first, or a mapping from items to ranks, "
            f"got {type(ranking).__name__}."
        )
    return [(str(name), place) for place, name in enumerate(ranking, 1)]  # type: ignore[arg-type, var-annotated]
