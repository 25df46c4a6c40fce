"""Protocols that ask for the order of a few items.

These are sub-rankings, pairs, bits and adaptive queries. All estimate fractions of respondents in
the same way. Let p be the probability that a respondent places item i before j, and let f be the
probability that a report which orders both items does so. A response with N values, one of them
favoured, gives every value the smaller weight W and the favoured value V - W in addition. Each of
two items precedes the other in the same number of the N orders. So f - 1/2 = gain (p - 1/2), with
gain = (V - W) / total, and (f - 1/2) / gain + 1/2 is unbiased for p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privrank.local.protocols import LARGEST_CODE, Asking
from privrank.local.publicdraws import permutation
from privrank.local.responses import SubsetResponse
from privrank.util.arrays import IntArray
from privrank.util.checks import check_choice, check_count, check_flag

LARGEST_SIZE = 8
"""Largest sub-ranking; the table of all orders grows with the factorial of the size."""

LARGEST_SHUFFLE = 2**63 - 1
"""Largest number of a public shuffle."""

MAX_DIGITS = 62
"""Largest number of binary digits; the answer is then an integer that every table can store."""

# seeds of the public shuffles of pairs and of items
_PAIR_ORDER = 1
_MATCHING = 2

Method = Literal["randomized", "laplace"]
Pairing = Literal["public", "private"]


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
        size = best_size(self.epsilon, high) if self.size is None else self.size
        size = check_count("size", size, low=2, high=high)
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

    @cached_property
    def _binomials(self) -> IntArray:
        """C(c, j) in row j (1 to the size) and column c (0 to the items less 1)."""
        return np.array(
            [[math.comb(c, j) for c in range(len(self.items))] for j in range(1, self.width + 1)],
            dtype=np.int64,
        )

    def asked(self, assignments: NDArray[Any]) -> IntArray:
        """Return the subsets in ascending order, shape (respondents, 1, size).

        Examples
        --------
        >>> protocol.asked(np.array([0, 1])).tolist()
        [[[0, 1, 2]], [[0, 1, 3]]]
        """
        # from the largest position down: the greatest c with C(c, j) at most the remainder
        left = np.array(assignments, dtype=np.int64)
        subsets = np.empty((len(left), 1, self.width), dtype=np.int64)
        for j in reversed(range(self.width)):
            below_it = self._binomials[j]
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
        share = Fraction(self.epsilon) / self.digits
        if self.method == "laplace":
            return SubsetResponse.thresholded_laplace(share)
        return SubsetResponse.at(share, 2)

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
            pairs = min(8, most) if self.pairs is None else self.pairs
            self._set(pairs=check_count("pairs", pairs, low=1, high=most))

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
        most = len(self.items) // 2
        matched = permutation(_MATCHING, len(self.items))[: 2 * most].reshape(-1, 2)
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
    (:class:`privrank.local.responses.SubsetResponse`), and so do the probabilities of the run. This
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
        self._set(shuffle=check_count("shuffle", self.shuffle, low=0, high=LARGEST_SHUFFLE))

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
