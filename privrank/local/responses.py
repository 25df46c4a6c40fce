"""Read a ranking on the device and draw an answer by the subset response.

The subset response is the randomiser of all protocols of the local model. An answer consists of
digits. Each digit has `options` values, and exactly `favoured` of them are favoured by the
respondent's ranking; which values are favoured depends on the ranking and on the assignment. The
reported value is drawn from all values, with a larger weight for favoured values.
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
"""Number of binary digits of the smaller weight, up to rounding."""


def below(total: int) -> int:
    """Return a uniform integer below `total`, by the operating system's bits."""
    return secrets.randbelow(total)


def identifier() -> str:
    """Return 128 random bits of the operating system as hexadecimal digits."""
    return secrets.token_hex(16)


def shuffled(size: int) -> list[int]:
    """Return a uniform permutation of 0 to `size` - 1, by the system's bits."""
    left = list(range(size))
    return [left.pop(below(len(left))) for _ in range(size)]


@dataclass(frozen=True, slots=True)
class SubsetResponse:
    """Response of one digit: favoured values have the larger of two weights.

    Notes
    -----
    **Privacy.** The unit is one report of one respondent; neighbours are any two possible rankings
    of the respondent, so all pairs of rankings. Let N be the number of values, k the number of
    favoured values, and V and W <= V the weights. The set F of favoured values has exactly k
    elements for every ranking. So a value a is reported with probability V / (k V + (N - k) W) if a
    is in F and W / (k V + (N - k) W) if not. The total does not depend on the ranking. For two
    rankings the probabilities of one value differ by a factor of at most V / W, and a value that
    only the first ranking favours attains this ratio. The digits of a report are drawn
    independently given the ranking, so the ratios multiply: a report of d digits at epsilon / d
    each is epsilon-differentially private. The assignment is drawn before the ranking is read, so
    it has the same probability for all rankings. The proof uses no other property of F. The claim
    holds for any map from rankings to sets of k values. This includes maps computed in floating
    point, and random maps, over which both probabilities are averaged.

    The weights are integers, and a uniform integer below their total determines the draw. So the
    probabilities above are exact, without rounding. `at` chooses the weights such that
    V / W < exp(epsilon), with a relative difference of at most 2^-51.

    References
    ----------
    With k = 1 this is randomised response of N values: Warner (1965) for two values; Kairouz,
    Bonawitz and Ramage (2016), Discrete distribution estimation under local privacy, for more.
    """

    options: int
    favoured: int
    favoured_weight: int
    other_weight: int

    @classmethod
    def at(cls, epsilon: Fraction, options: int, favoured: int = 1) -> SubsetResponse:
        """Return the response with the largest ratio of weights that epsilon allows.

        V = 2^b and W = floor(2^b exp(-epsilon)) + 1 > 2^b exp(-epsilon), where `digits` computes
        the floor exactly. Because b is at least 52 + epsilon / log 2, W is at least 2^52.
        """
        bits = _PRECISION + math.ceil(float(epsilon) / math.log(2))
        return cls(options, favoured, 1 << bits, digits(epsilon, bits, 0) + 1)

    @classmethod
    def thresholded_laplace(cls, epsilon: Fraction) -> SubsetResponse:
        """Return Laplace noise of scale 1 / epsilon on a bit, cut at one half.

        The bit is reported wrongly with a probability between exp(-epsilon / 2) / 2 and 2^-52 more.
        This is a binary response at log(2 exp(epsilon / 2) - 1) < epsilon.
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
        """Difference between the probabilities of a favoured and another value."""
        return (self.favoured_weight - self.other_weight) / self.total

    @property
    def epsilon(self) -> float:
        """The privacy loss of one digit: the logarithm of the ratio of the weights."""
        return math.log1p((self.favoured_weight - self.other_weight) / self.other_weight)

    def secure(self, favoured: Sequence[int]) -> int:
        """Draw one value, given the sorted favoured values, by the system's bits."""
        number = below(self.total)
        edge = self.favoured * self.favoured_weight
        agrees = number < edge
        place = number // self.favoured_weight if agrees else (number - edge) // self.other_weight
        # always compute both values, so the run time does not reveal which one is reported
        other = place + sum(value - i <= place for i, value in enumerate(favoured))
        one = int(favoured[min(place, self.favoured - 1)])
        return one if agrees else other

    def simulated(self, favoured: NDArray[Any], rng: np.random.Generator) -> IntArray:
        """Draw values for sorted sets of favoured values (last axis), by `rng`."""
        agrees = rng.random(favoured.shape[:-1]) < self.favoured_probability
        place = rng.integers(0, np.where(agrees, self.favoured, self.options - self.favoured))
        # position among the values that are not favoured: each favoured value before it adds one
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
    """Return the rank of every item; only the `needed` items must be ranked.

    A ranking is a sequence of names, best first, or a mapping from names to ranks 1, 2, ... With
    ``partial="complete"`` items that share a rank are put in random order, unless `ties` are
    separate answers. Needed items that are left out come below all others in random order.
    """
    places = {name: place for place, name in enumerate(items)}
    levels: dict[int, int] = {}
    for name, level in _named(ranking):
        if name not in places:
            raise ValueError(
                "ranking contains a name that is not one of the protocol's items. Write the items "
                "as in the protocol."
            )
        if places[name] in levels:
            raise ValueError("ranking names an item twice. Name each item once.")
        levels[places[name]] = level
    if partial == "refuse":
        if not levels.keys() >= set(needed):
            raise ValueError(
                f"ranking leaves out items of the question, which has {len(needed)}. Rank all of "
                f"them, or use a protocol with partial='complete'."
            )
        if not ties and len(set(levels.values())) < len(levels):
            raise ValueError(
                "ranking gives two items the same rank. Order them, or use a protocol with "
                "partial='complete' or Comparisons with ties=True."
            )
        if not ties and len(levels) == len(items) and max(levels.values()) != len(items):
            raise ValueError(
                f"ranking has a gap. Give the {len(items)} items the ranks 1 to {len(items)}."
            )
    size = len(items)
    last = max(levels.values(), default=0) + 1
    # random numbers order equal levels, and items without a level, which come last
    lots = shuffled(size) if partial == "complete" else range(size)
    keys = [
        (levels.get(place, last), 0 if ties and place in levels else lots[place])
        for place in range(size)
    ]
    rank = {key: number for number, key in enumerate(sorted(set(keys)), 1)}
    return np.array([rank[key] for key in keys], dtype=np.int64)


def _named(ranking: object) -> list[tuple[str, int]]:
    """Return the names and ranks of a mapping or a sequence."""
    if isinstance(ranking, Mapping):
        for level in ranking.values():
            if isinstance(level, bool) or not isinstance(level, Integral) or level < 1:
                raise ValueError(
                    "ranking must map items to whole numbers from 1 (best). Leave out items "
                    "without a rank."
                )
        return [(str(name), int(level)) for name, level in ranking.items()]
    listed = isinstance(ranking, Sequence) and not isinstance(ranking, str | bytes)
    if not listed and not (isinstance(ranking, np.ndarray) and ranking.ndim == 1):
        raise TypeError(
            f"ranking must be a sequence of items, best first, or a mapping from items to ranks, "
            f"got {type(ranking).__name__}."
        )
    return [(str(name), place) for place, name in enumerate(ranking, 1)]  # type: ignore[arg-type, var-annotated]
