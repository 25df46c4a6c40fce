"""Protocols that send a random direction: Duchi's on all pairs, the cap mechanism on Borda scores.

The seed of the directions is public and drawn before the ranking is read. A report says on which
side of a direction, or closest to which of several, the respondent's vector lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privrank.local import publicdraws
from privrank.local.protocols import Protocol
from privrank.util.arrays import IntArray, batches
from privrank.util.checks import check_count

SEEDS = 2**32
"""How many seeds there are."""

_BLOCK = 2**16
"""Coordinates of directions that are held at once."""


@dataclass(frozen=True)
class DuchiBall(Protocol):
    """One bit: on which side of a random direction the vector of all pairs lies.

    The randomiser of Duchi, Jordan and Wainwright for the Euclidean ball, which AGKM22 use for the
    matrix of all pairs (their Lemma 17). The bit times the direction is their report, uniform on
    the half of the sphere that holds the vector, or on the other half. The value is 0 for the side
    of the direction, 1 for the other.

    Parameters
    ----------
    items, epsilon, partial
        As for all protocols.

    See Also
    --------
    privrank.local.SubRanking : Asks for the order of a few items.

    Notes
    -----
    **Statistic.** Let v hold 1 for each pair of which the respondent places the earlier item
    first, -1 for the others, D in all, and let u be a uniform direction. By symmetry the mean of
    sign(<u, v>) u is c v / sqrt(D). Here c = E|<u, v>| / sqrt(D) the mean of one coordinate's
    absolute value, Gamma(D / 2) / (sqrt(pi) Gamma((D + 1) / 2)). So (1 - 2 value) u / gain is
    unbiased for v, with the gain of the bit times c / sqrt(D). All entries of v have the same
    absolute value, so this takes no more of the directions than exchangeable coordinates of
    symmetric sign; and it holds with value 0 for <u, v> = 0.

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
        """That of the bit, times what a direction keeps of one pair.

        Examples
        --------
        >>> round(protocol.gain, 3)
        0.133
        """
        pairs = len(self.all_pairs)
        share = math.lgamma(pairs / 2) - math.lgamma((pairs + 1) / 2)
        return self.response.gain * math.exp(share) / math.sqrt(math.pi * pairs)

    def directions(self, assignments: NDArray[Any]) -> IntArray:
        """Return the direction of each assignment, over :attr:`all_pairs`, of length `SCALE`.

        Examples
        --------
        One coordinate for each pair:

        >>> protocol.directions(np.array([0, 1])).shape
        (2, 3)
        """
        return publicdraws.directions(assignments, 0, len(self.all_pairs))

    def favoured_answers(self, ranks: NDArray[Any], assignments: NDArray[Any]) -> IntArray:
        """Return the side on which each ranking lies.

        Examples
        --------
        >>> protocol.favoured_answers(np.array([[1, 2, 3], [3, 2, 1]]), np.array([5, 5])).ravel()
        array([1, 0])
        """
        first, second = self.all_pairs.T

        def sides(rows: slice) -> IntArray:
            block = ranks[rows]
            votes = np.where(block[:, first] < block[:, second], 1, -1)
            # a ranking is a vertex of the cube of votes; its bit says on which side of a public
            # hyperplane through the centre it lies
            along = (self.directions(assignments[rows]) * votes).sum(axis=1)
            return np.asarray(along < 0, dtype=np.int64)[:, None, None]

        return _in_blocks(sides, len(ranks), len(first))


@dataclass(frozen=True)
class CapBorda(Protocol):
    """One of several random directions, the likelier the nearer to the vector of Borda scores.

    The cap mechanism with a finite number of public directions in the space of centred scores: the
    `cap` closest ones are favoured. It estimates Borda scores, and nothing about single pairs.

    Parameters
    ----------
    items, epsilon, partial
        As for all protocols; three items or more.
    candidates : int, optional
        How many directions there are; a power of two from 128, at least 2 exp(epsilon), up to 4096,
        if left out.
    cap : int, optional
        How many of them are favoured; the number of the least variance if left out.

    See Also
    --------
    privrank.PrivateRankAggregation.from_reports : Reads a tally of reports.

    Notes
    -----
    **Statistic.** Let x be the centred vector of (m + 1) / 2 - rank, and d = m - 1 the dimension of
    its space. The cosines of x with N uniform directions are independent, and T is the expected sum
    of the k largest. By symmetry the mean of the k directions sums to ``T x / |x|``, and that of
    all to zero. So the direction reported, as a unit vector, has the mean ``gain x / |x|`` with
    gain = T times the gain of the response. And its length is 1 whatever is reported: the variance
    is least where the gain is largest. ``|x|^2 = m (m^2 - 1) / 12`` is the same for all rankings.
    With N growing and k / N fixed it becomes the cap mechanism of the references. Directions are
    rounded, so the mean holds within a thousandth.

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
        """Check the numbers of directions, and choose them if they are left out."""
        super().__post_init__()
        if len(self.items) < 3:
            raise ValueError(
                "items must be three or more: ask for the order of two by RandomPairs."
            )
        wanted = math.ceil(math.log2(2 * math.exp(min(self.epsilon, 10))))
        candidates = min(4096, max(128, 2**wanted)) if self.candidates is None else self.candidates
        options = check_count("candidates", candidates, low=2, high=4096)
        cap = best_cap(self.epsilon, len(self.items), options) if self.cap is None else self.cap
        cap = check_count("cap", cap, low=1, high=options - 1)
        self._set(candidates=options, options=options, cap=cap, favoured=cap)

    @property
    def gain(self) -> float:
        """That of the response, times the expected sum of the cosines of the closest directions.

        Examples
        --------
        >>> round(protocol.gain, 3)
        0.305
        """
        tops = _largest_cosines(len(self.items) - 1, self.options)
        return self.response.gain * float(tops[self.favoured - 1])

    def directions(self, assignments: NDArray[Any], values: NDArray[Any]) -> IntArray:
        """Return the direction that each value stands for, over the items, of length `SCALE`.

        Examples
        --------
        >>> direction = protocol.directions(np.array([7]), np.array([0]))
        >>> direction.shape
        (1, 3)
        """
        return publicdraws.directions(assignments, values, len(self.items), centred=True)

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

        def closest(rows: slice) -> IntArray:
            scores = m + 1 - 2 * ranks[rows]
            drawn = self.directions(
                np.repeat(assignments[rows], N), np.tile(np.arange(N), len(scores))
            )
            along = np.einsum("nkm,nm->nk", drawn.reshape(len(scores), N, m), scores)
            # distinct keys: of equal inner products the earlier direction counts as closer
            keys = np.arange(N) - N * along
            chosen = np.argpartition(keys, self.favoured - 1, axis=1)[:, : self.favoured]
            return np.sort(chosen, axis=1)[:, None]

        return _in_blocks(closest, len(ranks), N * m)


def _in_blocks(function: Callable[[slice], IntArray], rows: int, entries: int) -> IntArray:
    """Return the function's values for all rows, so many at once as memory allows."""
    return np.concatenate([function(part) for part in batches(max(rows, 1), entries, _BLOCK)])


def best_cap(epsilon: float, items: int, candidates: int) -> int:
    """Return how many of the directions to favour, for the largest gain."""
    caps = np.arange(1, candidates)
    tops = _largest_cosines(items - 1, candidates)
    return 1 + int(np.argmax(tops / (caps + (candidates - caps) * math.exp(-epsilon))))


def _largest_cosines(dimension: int, candidates: int) -> NDArray[np.float64]:
    """Return the expected sums of the 1, 2, .. largest cosines of uniform directions with a vector.

    A cosine is sin t, t of density proportional to cos(t)^(d - 2). It is among the k largest of N
    if fewer than k of the others exceed it: a binomial probability, integrated over t.
    """
    # 2,000 points of t, where its density is not negligible, with their probabilities
    edge = min(math.pi / 2, 10 / math.sqrt(dimension))
    t = (np.arange(2000) + 0.5) / 1000 * edge - edge
    weights = np.cos(t) ** (dimension - 2)
    weights /= weights.sum()
    above = np.clip(1 - np.cumsum(weights) + weights / 2, 1e-300, 1 - 1e-16)
    # probabilities that 0, 1, .. of the others exceed a cosine, and fewer than 1, 2, .. by sums
    others = candidates - 1
    number = np.arange(others)
    log_choose = np.array(
        [math.lgamma(others + 1) - math.lgamma(j + 1) - math.lgamma(others - j + 1) for j in number]
    )
    log_fewer = number * np.log(above)[:, None] + (others - number) * np.log1p(-above)[:, None]
    fewer = np.cumsum(np.exp(log_choose + log_fewer), axis=1)
    return np.asarray(candidates * (weights * np.sin(t)) @ fewer)
