"""Protocols that ask for the order of a few items: sub-rankings, pairs, bits, adaptive queries.

Fractions of respondents are estimated alike in all of them. Let p be the probability that a
respondent places item i before j, and f that a report which orders both does. A response of N
values, one favoured, gives every value the smaller weight W and the favoured one V - W more. Each
of two items is before the other in as many of the N orders. So f - 1/2 = gain (p - 1/2), with gain
= (V - W) / total, and (f - 1/2) / gain + 1/2 is unbiased.
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
"""Items of a sub-ranking; the table of all orders grows with the factorial."""

LARGEST_SHUFFLE = 2**63 - 1
"""Number of the last public shuffle there is."""

MAX_DIGITS = 62
"""Of two values each, in a number that every table can hold."""

# seeds of the public shuffles of pairs and of items
_PAIR_ORDER = 1
_MATCHING = 2

Method = Literal["randomized", "laplace"]
Pairing = Literal["public", "private"]


def pair_factor(epsilon: float, size: int) -> float:
    """Return n / pairs times the variance of the net fraction of a pair, from sub-rankings.

    For n respondents who are asked for `size` items each, and items of equal merit. A pair is asked
    of C(size, 2) n out of all pairs, and the variance of one net vote of 1 or -1, divided by the
    gain, is 1 / gain^2.
    """
    gain = math.expm1(epsilon) / (math.expm1(epsilon) + math.factorial(size))
    return 1.0 / (gain**2 * math.comb(size, 2))


def best_size(epsilon: float, items: int) -> int:
    """Return how many items to ask for: the size of the least variance of Borda scores.

    The errors of pairs of one report that share an item are correlated. Summed over the pairs of an
    item, a sub-ranking of s items has (s + 1) / 3 times the variance of as many separate pairs.
    """
    return min(
        range(2, min(items, LARGEST_SIZE) + 1),
        key=lambda size: pair_factor(epsilon, size) * (size + 1) / 3,
    )


@dataclass(frozen=True)
class SubRanking(Asking):
    """Everybody is asked for the order of a few items, and answers by randomised response.

    Parameters
    ----------
    items, epsilon, partial
        As for all protocols.
    size : int, optional
        How many items each respondent orders, 2 to 8. The best for Borda scores if left out: 2 up
        to an epsilon of 1.946, 3 up to 4.142, 4 up to 6.244, and so on, at most all.

    See Also
    --------
    privrank.PrivateRankAggregation.from_reports : Reads a tally of reports.
    privrank.PrivateBTL.from_reports : Reads it as worths.

    Notes
    -----
    An assignment stands for a subset of the items: in colexicographic order, the one of places
    c_1 < ... < c_s is number C(c_1, 1) + ... + C(c_s, s).

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
        """Check the size, and choose it if it is left out."""
        super().__post_init__()
        high = min(len(self.items), LARGEST_SIZE)
        # one of size! orders is reported, and the response favours a single one of them
        size = best_size(self.epsilon, high) if self.size is None else self.size
        size = check_count("size", size, low=2, high=high)
        self._set(size=size, width=size, options=math.factorial(size))
        if self.assignments > LARGEST_CODE:
            raise ValueError(
                f"size={self.size} of {len(self.items)} items has more subsets than a number of 63 "
                f"bits can name: use a smaller size."
            )

    @property
    def assignments(self) -> int:
        """All subsets of the items.

        Examples
        --------
        >>> protocol.assignments
        4
        """
        return math.comb(len(self.items), self.width)

    @cached_property
    def _binomials(self) -> IntArray:
        """C(c, j) in row j = 1 to the size, at c = 0 to the number of items."""
        return np.array(
            [[math.comb(c, j) for c in range(len(self.items))] for j in range(1, self.width + 1)],
            dtype=np.int64,
        )

    def asked(self, assignments: NDArray[Any]) -> IntArray:
        """Return the subsets, in ascending order of places: (respondents, 1, size).

        Examples
        --------
        >>> protocol.asked(np.array([0, 1])).tolist()
        [[[0, 1, 2]], [[0, 1, 3]]]
        """
        # from the largest place down: the greatest c with C(c, j) at most what is left
        left = np.array(assignments, dtype=np.int64)
        subsets = np.empty((len(left), 1, self.width), dtype=np.int64)
        for j in reversed(range(self.width)):
            below_it = self._binomials[j]
            subsets[:, 0, j] = np.searchsorted(below_it, left, side="right") - 1
            left -= below_it[subsets[:, 0, j]]
        return subsets


@dataclass(frozen=True)
class RandomPairs(Asking):
    """Everybody is asked for the order of so many random pairs, at an equal share of epsilon each.

    LDP-KwikSort's answers (Yan, Li and Liu, 2020, Algorithm 1), corrected: it is the true order
    that is kept or turned round, where the paper's is 1 with a probability that ignores it.

    Parameters
    ----------
    items, epsilon, partial
        As for all protocols.
    pairs : int
        Their K. One is best up to an epsilon of 3.057, two up to 5.320.
    method : {"randomized", "laplace"}
        Randomised response (their :RR), or Laplace noise cut at one half (their :Lap), which is a
        randomised response at less than the share of epsilon: ``response.epsilon`` says at which.

    See Also
    --------
    privrank.local.SubRanking : Asks for the order of a few items at once.

    Notes
    -----
    All pairs stand in a public shuffled order. An assignment is the place of the first pair asked;
    the others follow it, and the first pair follows the last.

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
        """Return the pairs, from the assigned one on: (respondents, pairs, 2).

        Examples
        --------
        >>> protocol.asked(np.array([0])).tolist()
        [[[0, 2]]]
        """
        following = np.asarray(assignments)[:, None] + np.arange(self.pairs)
        return np.asarray(self._shuffled[following % self.assignments])


@dataclass(frozen=True)
class PairBits(Asking):
    """Everybody answers one bit about one pair out of a few, or a bit about each of many.

    To test uniformity. BFZ21 (their Algorithms 5 and 6) ask everybody about a whole matching of
    the items, at epsilon / floor(m / 2) a pair, which leaves next to nothing of each. ``pairs=8``
    asks each respondent about one of 8 disjoint pairs, at the full epsilon.

    Parameters
    ----------
    items, epsilon, partial
        As for all protocols.
    pairs : int or "all", optional
        How many disjoint pairs there are to draw from, 8 if left out, at most floor(m / 2). With
        "all" everybody is asked about all pairs of one matching of the items, as printed; there may
        be 62 of them. None with private pairing.
    pairing : {"public", "private"}
        Whether the pairs are the same for all, from a public shuffle of the items, or everybody
        draws their own out of all pairs of items.

    See Also
    --------
    privrank.UniformityTest.from_reports : Tests whether all orders are equally likely.
    privrank.PrivateRankAggregation.from_reports : Reads private pairs as a consensus.

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
        """Check the pairs, and choose how many if that is left out."""
        super().__post_init__()
        check_choice("pairing", self.pairing, Pairing)
        most = len(self.items) // 2
        if self.pairing == "private":
            if self.pairs is not None:
                raise ValueError(
                    "pairs= is for public pairing: with pairing='private' everybody draws one pair "
                    "out of all."
                )
        elif self.pairs == "all":
            if most > MAX_DIGITS:
                raise ValueError(f"pairs='all' is with up to {2 * MAX_DIGITS + 1} items.")
            self._set(digits=most)
        else:
            pairs = min(8, most) if self.pairs is None else self.pairs
            self._set(pairs=check_count("pairs", pairs, low=1, high=most))

    @cached_property
    def table(self) -> IntArray:
        """All pairs for private pairing, else those of a public matching, one by one or at once.

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
    """Everybody compares one pair of items: the first, the second, or a tie if that may be.

    For Bradley-Terry worths and leading items. The value is 0 if the first item of the pair is
    preferred, 1 if the second is, 2 for a tie.

    **Assumptions.** Independent respondents; whether a local report arrives does not depend on its
    content; pairs were assigned, not chosen by respondents. For the consequences of violations, see
    :doc:`assumptions </assumptions>`.

    Parameters
    ----------
    items, epsilon, partial
        As for all protocols.
    ties : bool
        Whether a tie is an answer: then items of equal rank are one.

    See Also
    --------
    privrank.PrivateBTL.from_reports : Reads a tally of reports as worths.
    privrank.PrivateTopK.from_reports : Reads it as the leading items.
    privrank.PrivateRankAggregation.from_reports : Reads one without ties as a consensus.

    Notes
    -----
    An assignment is the place of the pair among all pairs in lexicographic order. A survey that
    asks pairs of its own choice hands it to :meth:`randomize`.

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
        """What a value says of the pair: 1 for the first item, -1 for the second, 0 for a tie.

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
        >>> ranks = np.array([[1, 2, 3], [1, 1, 2]])  # the second finds tea and coffee equal
        >>> protocol.favoured_answers(ranks, np.array([0, 0])).ravel()
        array([0, 2])
        """
        first, second = np.take_along_axis(ranks, self.asked(assignments)[:, 0], axis=1).T
        return np.where(first == second, 2, first > second).astype(np.int64)[:, None, None]


@dataclass(frozen=True)
class AdaptiveKwikSort(Asking):
    """Everybody is asked for the order of one pair, which earlier answers have made of interest.

    AGKM22 (their Algorithms 2 and 3) sort by KwikSort and ask people for the comparisons as they
    come up. As printed nothing is sorted: their counter of queries runs over people, and stops at
    the first query. Counted once a query, each person answers up to 20 log m of them with as small
    a part of epsilon, and at 5,000 people the order is a random one. Here everybody is asked once,
    at all of epsilon; :class:`privrank.local.curator.Curator` decides for what.

    Parameters
    ----------
    items, epsilon, partial
        As for all protocols.
    shuffle : int, default 0
        Number of the public shuffle that decides the order of the pivots and who of a hand-out is
        asked for which pair. Fix it before the survey starts.

    See Also
    --------
    privrank.local.Curator : Hands out the queries, and counts the answers.

    Notes
    -----
    The assignment is the place of the pair among all in lexicographic order; a curator's query
    holds it, and the id that the report is to have. The answer is 0 if the first item of the pair
    is placed before the second, else 1.

    **Privacy.** The unit is a respondent, who answers once; neighbours are any two rankings of
    theirs. Let q_t be the query that respondent t is asked, with its random id, and a_t the answer.
    Whatever the curator does, q_t is drawn from a distribution that depends on q_1, a_1, ...,
    a_(t-1) and public numbers alone, as nobody has read ranking t yet. So a run has probability
    prod_t P(q_t | q_1, ..., a_(t-1)) P(a_t | q_t, ranking t). The ranking of one respondent enters
    one factor of it, a binary subset response to a query that is given. For two rankings its values
    differ by a factor of at most exp(epsilon) (:class:`privrank.local.responses.SubsetResponse`),
    and so do the probabilities of the run. This is sequentially interactive local privacy; it does
    not add up over respondents, and the claim needs no curator who keeps to the sort. Whether
    somebody answers at all is not protected.

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
        """Return the public order in which `size` queries are handed out after `handed` others.

        Examples
        --------
        >>> protocol.handing(handed=0, size=4).tolist()
        [2, 0, 3, 1]
        """
        return permutation(self.shuffle, size, len(self.items) + handed)
