"""The kinds of protocols, and their public randomness.

Sub-rankings, pairs, bits and adaptive queries ask for the order of a few items. All estimate
fractions of respondents in the same way. Let p be the probability that a respondent places item i
before j, and let f be the probability that a report which orders both items does so. A response
with N values, one of them favoured, gives every value the smaller weight W and the favoured value
V - W in addition. Each of two items precedes the other in the same number of the N orders. So
f - 1/2 = gain (p - 1/2), with gain = (V - W) / total, and (f - 1/2) / gain + 1/2 is unbiased for p.

Two protocols report a random direction: the mechanism of Duchi et al. on all pairs, and the cap
mechanism on Borda scores. The seed of the directions is public and drawn before the ranking is
read. A report gives the side of a direction on which the respondent's vector lies, or the nearest
of several directions.

**Public randomness.** Anyone can compute it again from a seed. Words are hashed counters in 64-bit
integer arithmetic. Directions are computed from them by integer arithmetic, one square root and one
division, which all machines round in the same way. So they are the same on every machine and with
every version of NumPy. Privacy does not depend on them: they determine the questions, never the
answers.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privrank.local.protocols import LARGEST_CODE, VERSION, Asking, Protocol, SubsetResponse
from privrank.util.arrays import IntArray, batches
from privrank.util.checks import check_choice, check_count, check_flag

LARGEST_SIZE = 8
"""Largest sub-ranking; the table of all orders grows with the factorial of the size."""

MAX_DIGITS = 62
"""Largest number of binary digits; the answer is then an integer that every table can store."""

# seeds of the public shuffles of pairs and of items
_PAIR_ORDER = 1
_MATCHING = 2

Method = Literal["randomized", "laplace"]
Pairing = Literal["public", "private"]

SEEDS = 2**32
"""Number of seeds."""

_BLOCK = 2**16
"""Number of coordinates of directions in memory at a time."""

SCALE = 2**20
"""Length of a direction, whose coordinates are rounded to integers."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def _mixed(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    for shift, factor in _ROUNDS:
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return word ^ (word >> np.uint64(31))


def words(seeds: NDArray[Any], start: NDArray[Any] | int, size: int) -> NDArray[np.uint64]:
    """Return `size` words of each seed's sequence from `start`, one row per seed.

    The sequence of a seed is SplitMix64 with a hashed initial state, so the sequences of adjacent
    seeds do not overlap.
    """
    state = _mixed((np.asarray(seeds, dtype=np.uint64) + np.uint64(1)) * _STEP)
    steps = np.asarray(start, dtype=np.uint64)[..., None] + np.arange(1, size + 1, dtype=np.uint64)
    return _mixed(np.asarray(state[:, None] + steps * _STEP, dtype=np.uint64))


def permutation(seed: int, size: int, start: int = 0) -> NDArray[np.int64]:
    """Return a public permutation of 0 to `size` - 1 from `size` words of a seed."""
    return np.argsort(words(np.array([seed]), start, size)[0], kind="stable")


@cache
def _quantiles() -> NDArray[np.int16]:
    """Return 2^16 nonzero standard normal quantiles in odd multiples of 2^-12."""
    from statistics import NormalDist

    quantile = NormalDist().inv_cdf
    upper = [quantile(0.5 + (2 * place + 1) / 2**17) for place in range(2**15)]
    odd = 2 * np.floor(np.array(upper) * 2**11).astype(np.int16) + 1
    return np.concatenate([-odd[::-1], odd])


def directions(
    seeds: NDArray[Any], which: NDArray[Any] | int, dimension: int, *, centred: bool = False
) -> NDArray[np.int64]:
    """Return a uniform integer direction of length `SCALE` for each seed.

    Parameters
    ----------
    seeds : array of int
        One for each direction.
    which : array of int, or int
        The number of the direction among the directions of its seed.
    dimension : int
        Number of coordinates of a direction.
    centred : bool
        Whether coordinates sum to zero up to rounding; directions are uniform in that subspace.

    Notes
    -----
    **Statistic.** Independent standard normal coordinates have a uniform direction. Here they are
    quantiles at 2^16 equidistant probabilities, rounded to 2^-12; moments of the directions equal
    the moments of uniform directions within 0.001. Coordinates are exactly exchangeable and have
    exactly symmetric signs.
    """
    # four coordinates of 16 bits from each word
    length = -(-dimension // 4)
    start = np.asarray(which, dtype=np.uint64) * np.uint64(length)
    pieces = words(seeds, start, length).astype("<u8", copy=False).view("<u2")[:, :dimension]
    normal = _quantiles()[pieces].astype(np.int64)
    if centred:
        normal -= (normal.sum(axis=1) // dimension)[:, None]
    # all machines round the square root of an integer in the same way, and also the division
    norm = np.sqrt(np.maximum(1, (normal * normal).sum(axis=1)).astype(np.float64))
    return np.asarray(np.floor(normal * SCALE / norm[:, None] + 0.5), dtype=np.int64)


def pair_factor(epsilon: float, size: int) -> float:
    """Return n / pairs times the variance of a pair's net fraction.

    Each of n respondents ranks `size` items, and items have equal worths. A pair is expected
    to get C(size, 2) n / pairs votes. The variance of one net vote of 1 or -1, divided by the gain,
    is 1 / gain^2.
    """
    gain = math.expm1(epsilon) / (math.expm1(epsilon) + math.factorial(size))
    return 1.0 / (gain**2 * math.comb(size, 2))


def best_size(epsilon: float, items: int) -> int:
    """Return the number of items with the smallest variance of Borda scores.

    Within a report, the errors of pairs that share an item are correlated. Summed over the pairs of
    an item, a sub-ranking of s items has (s + 1) / 3 times the variance of as many separate pairs.
    """
    return min(
        range(2, min(items, LARGEST_SIZE) + 1),
        key=lambda size: pair_factor(epsilon, size) * (size + 1) / 3,
    )


@dataclass(frozen=True)
class SubRanking(Asking):
    """Local protocol: each respondent ranks a random subset of the items.

    The answer is given by randomised response.

    Parameters
    ----------
    items : sequence of str
        The items that respondents rank.
    epsilon : float
        The privacy loss of one report, positive and finite.
    partial : {"refuse", "complete"}
        How rankings with ties or missing items are treated (see `Protocol`).
    size : int, optional
        Number of items that each respondent orders, 2 to 8. By default the best size for Borda
        scores, at most all items: 2 for epsilon up to 1.946, 3 up to 4.142, 4 up to 6.244, and so
        on.

    See Also
    --------
    privrank.PrivateRankAggregation.from_reports : Consensus ranking from a tally.
    privrank.PrivateBTL.from_reports : Bradley-Terry worths from a tally.

    Notes
    -----
    An assignment is the number of a subset of the items in colexicographic order: the subset of
    positions c_1 < ... < c_s has the number C(c_1, 1) + ... + C(c_s, s).

    Examples
    --------
    >>> import numpy as np
    >>> from privrank.local import SubRanking
    >>> protocol = SubRanking(["tea", "coffee", "milk", "juice"], epsilon=2.0)
    >>> protocol.size, protocol.assignments
    (3, 4)
    """

    size: int | None = None
    kind: ClassVar[str] = "sub-ranking"

    def __post_init__(self) -> None:
        """Check the size, or choose it if it was not given."""
        super().__post_init__()
        high = min(len(self.items), LARGEST_SIZE)
        # one of size! orders is reported, and the response favours a single order
        size = check_count(
            "size",
            best_size(self.epsilon, high) if self.size is None else self.size,
            low=2,
            high=high,
        )
        self._set(size=size, width=size, options=math.factorial(size))
        if self.assignments > LARGEST_CODE:
            raise ValueError(
                f"size={self.size} of {len(self.items)} items has more subsets than 63 bits can "
                f"number. Use a smaller size."
            )

    @property
    def assignments(self) -> int:
        """Number of subsets of the items.

        Examples
        --------
        >>> protocol.assignments
        4
        """
        return math.comb(len(self.items), self.width)

    def asked(self, assignments: NDArray[Any]) -> IntArray:
        """Return the subsets in ascending order, shape (respondents, 1, size).

        Examples
        --------
        >>> protocol.asked(np.array([0, 1])).tolist()
        [[[0, 1, 2]], [[0, 1, 3]]]
        """
        # from the largest position down: the greatest c with C(c, j + 1) at most the remainder
        left = np.array(assignments, dtype=np.int64)
        subsets = np.empty((len(left), 1, self.width), dtype=np.int64)
        for j in reversed(range(self.width)):
            below_it = np.array([math.comb(c, j + 1) for c in range(len(self.items))])
            subsets[:, 0, j] = np.searchsorted(below_it, left, side="right") - 1
            left -= below_it[subsets[:, 0, j]]
        return subsets


@dataclass(frozen=True)
class RandomPairs(Asking):
    """Local protocol: each respondent orders several random pairs.

    Each pair has an equal share of epsilon. These are the answers of LDP-KwikSort (Yan, Li and Liu,
    2020, Algorithm 1), corrected. This protocol keeps or reverses the true order; the paper's
    answer is 1 with a probability that ignores it.

    Parameters
    ----------
    items : sequence of str
        The items that respondents rank.
    epsilon : float
        The privacy loss of one report, positive and finite.
    partial : {"refuse", "complete"}
        How rankings with ties or missing items are treated (see `Protocol`).
    pairs : int
        Number of pairs, K in the paper. One pair is best for epsilon up to 3.057, two up to 5.320.
    method : {"randomized", "laplace"}
        Randomised response (:RR in the paper), or Laplace noise thresholded at one half (:Lap). The
        latter is a randomised response at an epsilon smaller than the share, which is given by
        ``response.epsilon``.

    See Also
    --------
    privrank.local.SubRanking : Local protocol: each respondent ranks a random subset of the items.

    Notes
    -----
    All pairs are in a public shuffled order. An assignment is the position of the first pair asked;
    the other pairs follow it cyclically.

    References
    ----------
    https://arxiv.org/abs/1908.04486

    Examples
    --------
    >>> import numpy as np
    >>> from privrank.local import RandomPairs
    >>> protocol = RandomPairs(["tea", "coffee", "milk"], epsilon=2.0)
    >>> round(protocol.gain, 3)
    0.762
    """

    pairs: int = 1
    method: Method = "randomized"
    kind: ClassVar[str] = "random pairs"

    def __post_init__(self) -> None:
        """Check the number of pairs and the method."""
        super().__post_init__()
        pairs = check_count("pairs", self.pairs, low=1, high=min(self.assignments, MAX_DIGITS))
        self._set(pairs=pairs, digits=pairs)
        check_choice("method", self.method, Method)

    @cached_property
    def response(self) -> SubsetResponse:
        """The response of one pair.

        Examples
        --------
        >>> round(protocol.response.favoured_probability, 3)
        0.881
        """
        if self.method == "laplace":
            return SubsetResponse.thresholded_laplace(Fraction(self.epsilon) / self.digits)
        return super().response

    @cached_property
    def _shuffled(self) -> IntArray:
        return self.all_pairs[permutation(_PAIR_ORDER, self.assignments)]

    def asked(self, assignments: NDArray[Any]) -> IntArray:
        """Return the pairs, starting with the assigned pair, (respondents, pairs, 2).

        Examples
        --------
        >>> protocol.asked(np.array([0])).tolist()
        [[[0, 2]]]
        """
        following = np.asarray(assignments)[:, None] + np.arange(self.pairs)
        return np.asarray(self._shuffled[following % self.assignments])


@dataclass(frozen=True)
class PairBits(Asking):
    """Local protocol: each respondent answers one bit about one or several pairs.

    This protocol is for tests of uniformity. BFZ21 (Algorithms 5 and 6) ask every respondent about
    a whole matching of the items, at epsilon / floor(m / 2) per pair, which leaves little
    information about each pair. ``pairs=8`` asks each respondent about one of 8 disjoint pairs, at
    the full epsilon.

    Parameters
    ----------
    items : sequence of str
        The items that respondents rank.
    epsilon : float
        The privacy loss of one report, positive and finite.
    partial : {"refuse", "complete"}
        How rankings with ties or missing items are treated (see `Protocol`).
    pairs : int or "all", optional
        Number of disjoint pairs from which a pair is drawn; by default 8, at most floor(m / 2).
        With "all" (the algorithm in the paper), every respondent is asked about all pairs of a
        matching of the items (at most 62). Leave it out with private pairing.
    pairing : {"public", "private"}
        ``"public"``: the pairs are the same for all respondents, from a public shuffle of the
        items. ``"private"``: each respondent draws a pair from all pairs of items.

    See Also
    --------
    privrank.UniformityTest.from_reports : Test that all orders are equally likely.
    privrank.PrivateRankAggregation.from_reports : Consensus ranking from private pairs.

    References
    ----------
    Busa-Fekete, Fotakis and Zampetakis (2021), Private and non-private uniformity testing for
    ranking data.

    Examples
    --------
    >>> from privrank.local import PairBits
    >>> protocol = PairBits(["tea", "coffee", "milk", "juice"], epsilon=1.0)
    >>> [protocol.question(code) for code in range(protocol.assignments)]
    [[('juice', 'milk')], [('coffee', 'tea')]]
    """

    pairs: int | Literal["all"] | None = None
    pairing: Pairing = "public"
    kind: ClassVar[str] = "pair bits"

    def __post_init__(self) -> None:
        """Check the pairs, or choose their number if it was not given."""
        super().__post_init__()
        check_choice("pairing", self.pairing, Pairing)
        most = len(self.items) // 2
        if self.pairing == "private":
            if self.pairs is not None:
                raise ValueError(
                    "pairs= is for public pairing, because with pairing='private' each respondent "
                    "draws a pair from all pairs. Leave pairs= out."
                )
        elif self.pairs == "all":
            if most > MAX_DIGITS:
                raise ValueError(
                    f"pairs='all' needs at most {2 * MAX_DIGITS + 1} items, got {len(self.items)}."
                )
            self._set(digits=most)
        else:
            self._set(
                pairs=check_count(
                    "pairs", min(8, most) if self.pairs is None else self.pairs, low=1, high=most
                )
            )

    @cached_property
    def table(self) -> IntArray:
        """The pairs of each assignment: all pairs, or the pairs of a public matching.

        All pairs are used with private pairing. The pairs of a public matching are asked one by
        one, or together with ``pairs="all"``.

        Examples
        --------
        >>> protocol.table.shape
        (2, 1, 2)
        """
        if self.pairing == "private":
            return self.all_pairs[:, None]
        even = len(self.items) // 2 * 2
        matched = permutation(_MATCHING, len(self.items))[:even].reshape(-1, 2)
        return matched[None] if isinstance(self.pairs, str) else matched[: self.pairs, None]


@dataclass(frozen=True)
class Comparisons(Asking):
    """Local protocol: each respondent compares one random pair.

    This protocol is for Bradley-Terry worths and top-k selection. The value is 0 if the first item
    of the pair is preferred, 1 if the second is preferred, and 2 for a tie.

    **Assumptions.** Independent respondents; whether a local report arrives does not depend on its
    content; pairs were assigned, not chosen by respondents. For the consequences of violations, see
    :doc:`assumptions </assumptions>`.

    Parameters
    ----------
    items : sequence of str
        The items that respondents compare.
    epsilon : float
        The privacy loss of one report, positive and finite.
    partial : {"refuse", "complete"}
        How rankings with ties or missing items are treated (see `Protocol`).
    ties : bool
        Whether a tie is a possible answer. If so, items of equal rank are tied.

    See Also
    --------
    privrank.PrivateBTL.from_reports : Bradley-Terry worths from a tally.
    privrank.PrivateTopK.from_reports : Top-k selection from a tally.
    privrank.PrivateRankAggregation.from_reports : Consensus ranking from a tally without ties.

    Notes
    -----
    An assignment is the position of the pair among all pairs in lexicographic order. A survey that
    chooses the pairs passes the assignment to :meth:`randomize`.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank.local import Comparisons
    >>> protocol = Comparisons(["tea", "coffee", "milk"], epsilon=1.0, ties=True)
    >>> protocol.question(0), protocol.options
    ([('tea', 'coffee')], 3)
    """

    ties: bool = False
    kind: ClassVar[str] = "comparisons"

    def __post_init__(self) -> None:
        """Check the declaration of ties."""
        super().__post_init__()
        ties = check_flag("ties", self.ties)
        self._set(ties=ties, keeps_ties=ties, options=2 + ties)

    @cached_property
    def signs(self) -> NDArray[np.int8]:
        """Outcome of each value: 1 (first item), -1 (second item) or 0 (tie).

        Examples
        --------
        >>> protocol.signs[2].tolist()
        [[0, 0], [0, 0]]
        """
        first = np.array([[0, 1], [-1, 0]], dtype=np.int8)
        return np.stack([first, -first, 0 * first][: self.options])

    def favoured_answers(self, ranks: NDArray[Any], assignments: NDArray[Any]) -> IntArray:
        """Return the outcome, by the ranks of the two items.

        Examples
        --------
        >>> ranks = np.array([[1, 2, 3], [1, 1, 2]])  # the second ties tea and coffee
        >>> protocol.favoured_answers(ranks, np.array([0, 0])).ravel()
        array([0, 2])
        """
        first, second = np.take_along_axis(ranks, self.asked(assignments)[:, 0], axis=1).T
        return np.where(first == second, 2, first > second).astype(np.int64)[:, None, None]


@dataclass(frozen=True)
class AdaptiveKwikSort(Asking):
    """Local protocol: each respondent orders a pair chosen from earlier answers.

    AGKM22 (Algorithms 2 and 3) sort by KwikSort and ask people for the comparisons that the sort
    needs. As printed, the algorithm sorts nothing, because its counter of queries runs over people
    and stops at the first query. If the counter ran over queries, each person would answer up to
    20 log m queries with correspondingly small fractions of epsilon, and with 5,000 people the
    order would be random. This protocol asks each respondent once, at the full epsilon;
    :class:`privrank.local.curator.Curator` chooses the pair.

    Parameters
    ----------
    items : sequence of str
        The items that respondents rank.
    epsilon : float
        The privacy loss of one report, positive and finite.
    partial : {"refuse", "complete"}
        How rankings with ties or missing items are treated (see `Protocol`).
    shuffle : int, default 0
        Number of the public shuffle that determines the order of the pivots and the order in which
        pairs are issued. Fix it before the survey starts.

    See Also
    --------
    privrank.local.Curator : Issues the queries and counts the answers.

    Notes
    -----
    The assignment is the position of the pair among all pairs in lexicographic order. A curator's
    query contains the assignment and the id of the report. The answer is 0 if the first item of the
    pair is placed before the second, and 1 if not.

    **Privacy.** The unit is a respondent with one answer; neighbours are any two rankings of this
    respondent. Let q_t be the query for respondent t, with its random id, and a_t the answer.
    Whatever the curator does, q_t is drawn from a distribution that depends only on q_1, a_1, ...,
    a_(t-1) and public numbers, because ranking t has not been read yet. So a run has probability
    prod_t P(q_t | q_1, ..., a_(t-1)) P(a_t | q_t, ranking t). The ranking of one respondent enters
    one factor, a binary subset response to a given query. For two rankings the values of this
    factor differ by a factor of at most exp(epsilon)
    (:class:`privrank.local.protocols.SubsetResponse`), and so do the probabilities of the run. This
    is sequentially interactive local privacy. The epsilons of different respondents do not add up,
    and the claim holds even if the curator does not follow the sort. Whether a respondent answers
    at all is not protected.

    References
    ----------
    Alabi, Ghazi, Kumar and Manurangsi (2022), https://arxiv.org/abs/2112.14652.

    Examples
    --------
    >>> from privrank.local import AdaptiveKwikSort
    >>> protocol = AdaptiveKwikSort(["tea", "coffee", "milk"], epsilon=1.0)
    >>> protocol.assignments, protocol.adaptive
    (3, True)
    """

    shuffle: int = 0
    kind: ClassVar[str] = "adaptive"
    adaptive = True

    def __post_init__(self) -> None:
        """Check the number of the shuffle."""
        super().__post_init__()
        self._set(shuffle=check_count("shuffle", self.shuffle, low=0, high=LARGEST_CODE))

    @property
    def pivots(self) -> IntArray:
        """All items in the order in which they become pivots, a public permutation.

        Examples
        --------
        >>> protocol.pivots.tolist()
        [2, 0, 1]
        """
        return permutation(self.shuffle, len(self.items))

    def handing(self, handed: int, size: int) -> IntArray:
        """Return the public order of `size` queries issued after `handed` others.

        Examples
        --------
        >>> protocol.handing(handed=0, size=4).tolist()
        [2, 0, 3, 1]
        """
        return permutation(self.shuffle, size, len(self.items) + handed)


@dataclass(frozen=True)
class DuchiBall(Protocol):
    """Local protocol: one bit, the side of a random direction in pair space.

    This is the randomiser of Duchi, Jordan and Wainwright for the Euclidean ball, which AGKM22 use
    for the matrix of all pairs (Lemma 17). Their report is the bit times the direction, uniform on
    the half of the sphere that contains the vector, or on the other half. The value is 0 for the
    side of the direction, and 1 for the other side.

    Parameters
    ----------
    items : sequence of str
        The items that respondents rank.
    epsilon : float
        The privacy loss of one report, positive and finite.
    partial : {"refuse", "complete"}
        How rankings with ties or missing items are treated (see `Protocol`).

    See Also
    --------
    privrank.local.SubRanking : Local protocol: each respondent ranks a random subset of the items.

    Notes
    -----
    **Statistic.** Let v have an entry for each of the D pairs: 1 if the respondent places the
    earlier item first, and -1 if not. Let u be a uniform direction. By symmetry the mean of
    sign(<u, v>) u is c v / sqrt(D), where c = E|<u, v>| / sqrt(D) is the mean absolute value of one
    coordinate, Gamma(D / 2) / (sqrt(pi) Gamma((D + 1) / 2)). So (1 - 2 value) u / gain is unbiased
    for v if gain is the gain of the bit times c / sqrt(D). All entries of v have the same absolute
    value, so this requires only that the coordinates of the directions are exchangeable and have
    symmetric signs. It includes the case <u, v> = 0, which has the value 0.

    References
    ----------
    Duchi, Jordan and Wainwright (2018), Minimax optimal procedures for locally private estimation;
    Alabi, Ghazi, Kumar and Manurangsi (2022), Private rank aggregation in central and local models.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank.local import DuchiBall
    >>> protocol = DuchiBall(["tea", "coffee", "milk"], epsilon=1.0)
    >>> protocol.answers
    2
    """

    kind: ClassVar[str] = "Duchi ball"
    assignments = SEEDS

    @property
    def gain(self) -> float:
        """Gain of the bit, times the attenuation of one pair by a direction.

        Examples
        --------
        >>> round(protocol.gain, 3)
        0.133
        """
        pairs = len(self.all_pairs)
        share = math.lgamma(pairs / 2) - math.lgamma((pairs + 1) / 2)
        return self.response.gain * math.exp(share) / math.sqrt(math.pi * pairs)

    def directions(self, assignments: NDArray[Any]) -> IntArray:
        """Return the direction of each assignment over :attr:`all_pairs`.

        Directions have length `SCALE`.

        Examples
        --------
        One coordinate for each pair:

        >>> protocol.directions(np.array([0, 1])).shape
        (2, 3)
        """
        return directions(assignments, 0, len(self.all_pairs))

    def favoured_answers(self, ranks: NDArray[Any], assignments: NDArray[Any]) -> IntArray:
        """Return the side on which each ranking lies.

        Examples
        --------
        >>> protocol.favoured_answers(np.array([[1, 2, 3], [3, 2, 1]]), np.array([5, 5])).ravel()
        array([1, 0])
        """
        first, second = self.all_pairs.T

        # a ranking is a vertex of the cube of votes; its bit is the side of a public hyperplane
        # through the centre
        sides = [
            (
                self.directions(assignments[rows])
                * np.where(ranks[rows, first] < ranks[rows, second], 1, -1)
            ).sum(axis=1)
            < 0
            for rows in batches(max(len(ranks), 1), len(first), _BLOCK)
        ]
        return np.concatenate(sides).astype(np.int64)[:, None, None]


@dataclass(frozen=True)
class CapBorda(Protocol):
    """Local protocol: a random direction near the vector of Borda scores.

    This is the cap mechanism with a finite number of public directions in the space of centred
    scores. The `cap` directions nearest to the respondent's vector are favoured. The protocol
    estimates Borda scores, but no fractions of single pairs.

    Parameters
    ----------
    items : sequence of str
        The items that respondents rank, three or more.
    epsilon : float
        The privacy loss of one report, positive and finite.
    partial : {"refuse", "complete"}
        How rankings with ties or missing items are treated (see `Protocol`).
    candidates : int, optional
        Number of directions. By default a power of two between 128 and 4096, at least
        2 exp(epsilon) if possible.
    cap : int, optional
        Number of favoured directions; by default the number with the smallest variance.

    See Also
    --------
    privrank.PrivateRankAggregation.from_reports : Consensus ranking from a tally.

    Notes
    -----
    **Statistic.** Let x be the centred vector of (m + 1) / 2 - rank, and d = m - 1 the dimension of
    its space. The cosines of x with N uniform directions are independent; let T be the expected sum
    of the k largest. By symmetry the expected sum of these k directions is ``T x / |x|``, and the
    expected sum of all directions is zero. So the reported direction, as a unit vector, has the
    mean ``gain x / |x|``, where gain is T times the gain of the response. Its length is 1 for every
    report, so the variance is smallest if the gain is largest. ``|x|^2 = m (m^2 - 1) / 12`` is the
    same for all rankings. As N grows with k / N fixed, this becomes the cap mechanism of the
    references. Directions are rounded, so the mean holds within 0.001.

    References
    ----------
    Bhowmick, Duchi, Freudiger, Kapoor and Rogers (2018), Protection against reconstruction and its
    applications in private federated learning, PrivUnit; Asi, Feldman and Talwar (2022), Optimal
    algorithms for mean estimation under local differential privacy.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank.local import CapBorda
    >>> protocol = CapBorda(["tea", "coffee", "milk"], epsilon=1.0)
    >>> protocol.candidates, protocol.cap
    (128, 51)
    """

    candidates: int | None = None
    cap: int | None = None
    kind: ClassVar[str] = "cap Borda"
    assignments = SEEDS

    def __post_init__(self) -> None:
        """Check the numbers of directions, or choose them if they were not given."""
        super().__post_init__()
        if len(self.items) < 3:
            raise ValueError(
                "items must be three or more. Use RandomPairs for the order of two items."
            )
        bits = math.ceil(math.log2(2 * math.exp(min(self.epsilon, 10))))
        options = check_count(
            "candidates",
            min(4096, max(128, 2**bits)) if self.candidates is None else self.candidates,
            low=2,
            high=4096,
        )
        cap = check_count(
            "cap",
            best_cap(self.epsilon, len(self.items), options) if self.cap is None else self.cap,
            low=1,
            high=options - 1,
        )
        self._set(candidates=options, options=options, cap=cap, favoured=cap)

    @property
    def gain(self) -> float:
        """Gain of the response, times the expected sum of the largest cosines.

        Examples
        --------
        >>> round(protocol.gain, 3)
        0.305
        """
        return self.response.gain * float(
            _largest_cosines(len(self.items) - 1, self.options)[self.favoured - 1]
        )

    def directions(self, assignments: NDArray[Any], values: NDArray[Any]) -> IntArray:
        """Return the direction of each value, over the items, of length `SCALE`.

        Examples
        --------
        >>> direction = protocol.directions(np.array([7]), np.array([0]))
        >>> direction.shape
        (1, 3)
        """
        return directions(assignments, values, len(self.items), centred=True)

    def favoured_answers(self, ranks: NDArray[Any], assignments: NDArray[Any]) -> IntArray:
        """Return the numbers of the closest directions, in ascending order.

        Examples
        --------
        >>> favoured = protocol.favoured_answers(np.array([[1, 2, 3]]), np.array([7]))
        >>> favoured.shape
        (1, 1, 51)
        """
        m = len(self.items)
        N = self.options

        closest = []
        for rows in batches(max(len(ranks), 1), N * m, _BLOCK):
            scores = m + 1 - 2 * ranks[rows]
            drawn = self.directions(
                np.repeat(assignments[rows], N), np.tile(np.arange(N), len(scores))
            )
            along = np.einsum("nkm,nm->nk", drawn.reshape(len(scores), N, m), scores)
            # distinct keys: for equal inner products the earlier direction counts as closer
            keys = np.arange(N) - N * along
            closest.append(np.argpartition(keys, self.favoured - 1, axis=1)[:, : self.favoured])
        return np.sort(np.concatenate(closest), axis=1)[:, None]


def best_cap(epsilon: float, items: int, candidates: int) -> int:
    """Return the number of favoured directions with the largest gain."""
    caps = np.arange(1, candidates)
    weights = caps + (candidates - caps) * math.exp(-epsilon)
    return 1 + int(np.argmax(_largest_cosines(items - 1, candidates) / weights))


def _largest_cosines(dimension: int, candidates: int) -> NDArray[np.float64]:
    """Return expected sums of the largest cosines with uniform directions.

    A cosine is sin t, where t has a density proportional to cos(t)^(d - 2). It is among the k
    largest of N if fewer than k of the others exceed it: a binomial probability, integrated over t.
    """
    # 2,000 points of t in the range of non-negligible density, with their probabilities
    edge = min(math.pi / 2, 10 / math.sqrt(dimension))
    t = (np.arange(2000) + 0.5) / 1000 * edge - edge
    weights = np.cos(t) ** (dimension - 2)
    weights /= weights.sum()
    above = np.clip(1 - np.cumsum(weights) + weights / 2, 1e-300, 1 - 1e-16)
    # probabilities that 0, 1, .. of the others exceed a cosine; sums give fewer than 1, 2, ..
    others = candidates - 1
    number = np.arange(others)
    log_choose = np.array(
        [math.lgamma(others + 1) - math.lgamma(j + 1) - math.lgamma(others - j + 1) for j in number]
    )
    log_fewer = number * np.log(above)[:, None] + (others - number) * np.log1p(-above)[:, None]
    fewer = np.cumsum(np.exp(log_choose + log_fewer), axis=1)
    return np.asarray(candidates * (weights * np.sin(t)) @ fewer)


KINDS: dict[str, type[Protocol]] = {
    SubRanking.kind: SubRanking,
    RandomPairs.kind: RandomPairs,
    PairBits.kind: PairBits,
    Comparisons.kind: Comparisons,
    AdaptiveKwikSort.kind: AdaptiveKwikSort,
    DuchiBall.kind: DuchiBall,
    CapBorda.kind: CapBorda,
}

_TEXT_OR_SPACE = re.compile(r'"(?:[^"\\]|\\.)*"|\s+')
"""Parts of JSON that can be written in several ways: texts, and white space between tokens."""


def protocol_from_json(text: str) -> Protocol:
    """Return the protocol that ``to_json`` wrote; check its id and format.

    The order of members, white space and escaped characters make no difference. A text with a
    repeated member is refused, because JSON readers disagree on which of the two counts.

    Examples
    --------
    >>> from privrank.local import Comparisons, protocol_from_json
    >>> text = Comparisons(["tea", "milk"], epsilon=1.0).to_json()
    >>> protocol_from_json(text)
    Comparisons(items=('tea', 'milk'), epsilon=1.0, partial='refuse', ties=False)
    """
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        content = None
    published = isinstance(text, str) and isinstance(content, dict)
    if not published or content.get("privrank") != "local protocol":
        raise ValueError("text must be the JSON of a protocol. Write it with to_json().")
    if type(version := content.get("version")) is not int or version != VERSION:
        raise ValueError(
            f"text must be a protocol of version {VERSION}, and it has another version. Use the "
            f"version of privrank that wrote it."
        )
    kind = KINDS.get(str(content.get("kind")))
    settings = {k: v for k, v in content.items() if k not in ("privrank", "version", "kind", "id")}
    if kind is None or settings.keys() != {part.name for part in fields(kind)}:
        raise ValueError(
            "text must hold exactly the kind and the settings of a protocol. Write it with "
            "to_json()."
        )
    # the id is a hash of all settings, which detects a text with another epsilon
    protocol = kind(**settings)
    if protocol.id != content.get("id"):
        raise ValueError(
            "text has settings that do not match its id, such as another epsilon. Use the protocol "
            "as published."
        )
    # all members must occur once, with numbers as to_json() writes them, because another reader
    # may use the first of two members, or parse a number differently
    facts = {**protocol._settings(), "id": protocol.id}
    # texts in ASCII characters, without white space between them
    plain = _TEXT_OR_SPACE.sub(
        lambda part: "" if part[0].isspace() else json.dumps(json.loads(part[0])), text
    )
    if plain != json.dumps({name: facts[name] for name in content}, separators=(",", ":")):
        raise ValueError(
            "text repeats a member of the protocol, or writes a number differently from "
            "to_json(). Use the protocol as published."
        )
    return protocol
