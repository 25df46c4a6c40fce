"""Protocols that report a random direction.

These are the mechanism of Duchi et al. on all pairs, and the cap mechanism on Borda scores. The
seed of the directions is public and drawn before the ranking is read. A report gives the side of a
direction on which the respondent's vector lies, or the nearest of several directions.
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
"""Number of seeds."""

_BLOCK = 2**16
"""Number of coordinates of directions in memory at a time."""


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
            # a ranking is a vertex of the cube of votes; its bit is the side of a public hyperplane
            # through the centre
            along = (self.directions(assignments[rows]) * votes).sum(axis=1)
            return np.asarray(along < 0, dtype=np.int64)[:, None, None]

        return _in_blocks(sides, len(ranks), len(first))


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
        wanted = math.ceil(math.log2(2 * math.exp(min(self.epsilon, 10))))
        candidates = min(4096, max(128, 2**wanted)) if self.candidates is None else self.candidates
        options = check_count("candidates", candidates, low=2, high=4096)
        cap = best_cap(self.epsilon, len(self.items), options) if self.cap is None else self.cap
        cap = check_count("cap", cap, low=1, high=options - 1)
        self._set(candidates=options, options=options, cap=cap, favoured=cap)

    @property
    def gain(self) -> float:
        """Gain of the response, times the expected sum of the largest cosines.

        Examples
        --------
        >>> round(protocol.gain, 3)
        0.305
        """
        tops = _largest_cosines(len(self.items) - 1, self.options)
        return self.response.gain * float(tops[self.favoured - 1])

    def directions(self, assignments: NDArray[Any], values: NDArray[Any]) -> IntArray:
        """Return the direction of each value, over the items, of length `SCALE`.

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
            # distinct keys: for equal inner products the earlier direction counts as closer
            keys = np.arange(N) - N * along
            chosen = np.argpartition(keys, self.favoured - 1, axis=1)[:, : self.favoured]
            return np.sort(chosen, axis=1)[:, None]

        return _in_blocks(closest, len(ranks), N * m)


def _in_blocks(function: Callable[[slice], IntArray], rows: int, entries: int) -> IntArray:
    """Return the function's values for all rows, in blocks that fit into memory."""
    return np.concatenate([function(part) for part in batches(max(rows, 1), entries, _BLOCK)])


def best_cap(epsilon: float, items: int, candidates: int) -> int:
    """Return the number of favoured directions with the largest gain."""
    caps = np.arange(1, candidates)
    tops = _largest_cosines(items - 1, candidates)
    return 1 + int(np.argmax(tops / (caps + (candidates - caps) * math.exp(-epsilon))))


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
