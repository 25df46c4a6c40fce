"""Who met whom, from how often each item was compared: proportional pair counts. Sees no data.

Wins W and losses L of each item are released. Their sums a = W + L show the weights of the items as
far as they stand out from their noise: items of which they do not are not identified.

**Model.** Given how often each item was compared, E n_ij = x_i x_j exp(-beta g_ij), one weight for
each item, and g_ij how many places apart i and j are in the released ranking. beta is 0 where pairs
are drawn at random, whatever the popularity of items, and where answers to a fixed questionnaire
are missing at random. It is above 0 where like meets like.

**Estimate.** With s the halves of the ranking, 1 for the better and -1 for the other, the sum Q of
s_i s_j over comparisons is released in a second stage. beta is where its expectation, with the
counts of the items as released, is Q. What is expected of the nets depends on the pair counts; so
the error of beta is in the scores of the worths. Let z be what a comparison of a pair adds to an
expected score, n' the slopes of the pair counts by beta, and h = sum of n' s_i s_j that of Q. An
error in beta by dQ / h moves that score by (sum of z n') dQ / h. So it has the errors of
comparisons that add z - (sum of z n' / h) s_i s_j each, and the noise of Q times (sum of z n') / h.

Where Q shows too little of beta it is taken to be 0. Whether it is 0 is tested in any case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privrank.bradley_terry.linear import ItemContrasts
from privrank.hypotheses.tails import normal_laplace_tail
from privrank.privacy.noise import DiscreteLaplace
from privrank.release import names
from privrank.release.plan import equivalent_variance
from privrank.release.release import Release
from privrank.release.survey import PairCounts
from privrank.util.arrays import FloatArray, IntArray, own
from privrank.util.solvers import inverse, product

MOST_ERROR = 0.1
"""Standard error of the noise of an item's comparisons, over these, up to which it is identified.

With more the worths are stretched, and no longer in proportion to the noise."""

_MOST_DECAY, _MOST_IN_ALL = 0.1, 1.1
"""Size of beta up to which intervals of 12 items were found to cover, a place and in all."""

_LARGEST = 0.99
"""Largest number of an item's comparisons, over those of all others, that is fitted."""

_STEPS, _CLOSE = 10_000, 1e-13

_MOST_DECAY_ERROR = 0.05
"""Standard error of beta up to which it is fitted."""

_FARTHEST, _ROUNDS = 0.3, 50
"""Largest beta that is fitted, and steps of the search."""


@dataclass(frozen=True, slots=True, eq=False)
class Matching:
    """The fit of who met whom.

    What is expected of a score depends on it by the mean of F - 1/2 of each pair, which is given.

    Parameters
    ----------
    pairs : PairCounts
        The pair counts.
    beta, error : float
        The coefficient of the places between two items, and its standard error; 0 and infinite
        where it is not fitted.
    pvalue : float
        Two-sided p-value of beta = 0; NaN where Q was not released.
    alike : ndarray, shape (edges,)
        1 for pairs within a half of the ranking, -1 for others, 0 beside the item in the middle.
    slopes : ndarray, shape (edges,)
        Slopes of the pair counts by beta, over that of Q; 0 where beta is not fitted.
    by_items : ndarray, shape (m, m)
        Inverse of the covariance of independent comparisons by item: (diag a + n)^-1.
    noise : DiscreteLaplace
        Noise of Q.
    """

    pairs: PairCounts
    beta: float
    error: float
    pvalue: float
    alike: FloatArray
    slopes: FloatArray
    by_items: FloatArray
    noise: DiscreteLaplace

    def __post_init__(self) -> None:
        """Take private, read-only copies."""
        for name in ("alike", "slopes", "by_items"):
            object.__setattr__(self, name, own(getattr(self, name), np.float64))

    @property
    def most(self) -> float:
        """Size of beta up to which intervals were found to cover."""
        return min(_MOST_DECAY, _MOST_IN_ALL / (len(self.by_items) - 1))

    @property
    def _contrasts(self) -> ItemContrasts:
        return ItemContrasts(self.pairs, len(self.by_items))

    def _summed(self, edges: FloatArray) -> FloatArray:
        """Return sums over the comparisons of each item of rows of numbers by edge."""
        return np.asarray((edges * self.pairs.count) @ abs(self._contrasts.matrix()))

    def by_beta(self, mean: FloatArray) -> FloatArray:
        """Return by how much expected scores move with Q, by the fit of beta, shape (m,)."""
        return self._contrasts.scores(self.slopes * mean)

    def _nets(self, mean: FloatArray) -> FloatArray:
        """Return sums over the comparisons of two items of what one adds, less what beta takes."""
        taken = np.multiply.outer(2.0 * self.by_beta(mean), self._summed(self.alike))
        return self._contrasts.both_ends(2.0 * self.pairs.count * mean) - taken

    def net_slopes(self, mean: FloatArray) -> FloatArray:
        """Return the slopes of expected net wins by item counts, shape (m, m).

        J of :mod:`privrank.bradley_terry.score`; of equal worths all zero.
        """
        return product(self._nets(mean), self.by_items)

    def covariance(self, mean: FloatArray) -> FloatArray:
        """Return what random opponents add to the covariance of scores, given item counts."""
        count, beta = self.pairs.count, self.by_beta(mean)
        both = np.multiply.outer(beta, self._contrasts.scores(count * self.alike * mean))
        met = self._contrasts.information(count * mean**2) - both - both.T
        met += float(count @ self.alike**2) * np.multiply.outer(beta, beta)
        return np.asarray(met - 0.25 * product(self.net_slopes(mean), self._nets(mean).T))

    def noise_covariance(self, mean: FloatArray, item_variance: float) -> FloatArray:
        """Return what the noise of item counts and of Q adds to the covariance of scores.

        Given the variance of the noise of the score of an item.
        """
        slopes, beta = self.net_slopes(mean), self.by_beta(mean)
        of_items = item_variance * product(slopes, slopes.T)
        return np.asarray(of_items + self.noise.variance * np.multiply.outer(beta, beta))

    def noise_variances(self, scores: FloatArray, item_variance: float) -> FloatArray:
        """Return what it adds to variances of combinations, given those of one comparison.

        As rows of numbers by edge, shape (rows, edges).
        """
        along = scores @ self.slopes
        left = scores - np.multiply.outer(along, self.alike)
        slopes = product(self._summed(2.0 * left), self.by_items)
        of_items = item_variance * (slopes**2).sum(axis=1)
        return np.asarray(of_items + self.noise.variance * along**2)


def item_weights(counts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the x with x_i times the sum of all other w_ij x_j equal to `counts`.

    By iterative proportional fitting of a symmetric table. Each of the positive counts has to be
    less than the sum of the others; the diagonal of `weights`, shape (m, m), is 0.
    """
    x = counts / np.sqrt(counts.sum())
    for _ in range(_STEPS):
        before, x = x, np.sqrt(x * counts / (weights @ x))
        if np.abs(x / before - 1.0).max() < _CLOSE:
            break
    return np.asarray(x)


def _sides(release: Release) -> tuple[FloatArray, FloatArray]:
    """Return released wins of the items, and their losses with a minus sign."""
    part = release.parts[names.SIDES]
    won, lost = part.step * part.values.astype(np.float64).reshape(2, -1)
    return won, lost


def _places(release: Release) -> IntArray:
    """Return the places of the items by released win rates, 0 for the best."""
    won, lost = _sides(release)
    order = np.argsort(-(won + lost) / np.maximum(won - lost, 1.0), kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def halves(release: Release) -> IntArray:
    """Return 1 for the items of the better half by released win rates, -1 for those of the other.

    And 0 for the one in the middle of an odd number.
    """
    return _sides_of(_places(release))


def _sides_of(place: IntArray) -> IntArray:
    return np.asarray(np.sign(len(place) - 1 - 2 * place))


def matched_counts(release: Release) -> tuple[Matching, IntArray | None]:
    """Return who met whom, and the part of each item; None where all are in one.

    Items whose comparisons do not stand out from their noise are in parts of
    their own. So are all where one item is in nearly all comparisons, as then its weight has no
    end.
    """
    part, (won, lost) = release.parts[names.SIDES], _sides(release)
    m = len(won)
    assert part.distribution is not None
    variance = part.step**2 * 2.0 * equivalent_variance(part.distribution, 2 * m)
    counts = np.maximum(won - lost, 1.0)
    rough, largest = np.sqrt(variance) > MOST_ERROR * counts, int(np.argmax(counts))
    most = _LARGEST * (counts.sum() - counts[largest])
    if counts[largest] > most:
        counts[largest], rough = most, np.ones(m, dtype=bool)
    matching = _fitted(counts, variance, release)
    if not rough.any():
        return matching, None
    # each rough item by itself, the others together
    alone = np.where(rough, np.arange(m), int(np.argmin(rough)))
    return matching, own(np.unique(alone, return_inverse=True)[1], np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _At:
    """Pair counts at a beta, their slopes by it, the inverse that goes by items, and Q's signs."""

    count: FloatArray
    slopes: FloatArray
    by_items: FloatArray
    alike: FloatArray

    @classmethod
    def of(cls, beta: float, counts: FloatArray, place: IntArray) -> _At:
        """Return them, given the counts and places of the items."""
        gaps = np.abs(place[:, None] - place).astype(np.float64)
        weights = np.exp(-beta * gaps)
        np.fill_diagonal(weights, 0.0)
        x, (first, second) = item_weights(counts, weights), np.triu_indices(len(counts), 1)
        table = weights * np.outer(x, x)
        by_items = inverse(table + np.diag(counts))
        # what keeps the counts of the items as they are
        shift = by_items @ (table * gaps).sum(axis=1)
        slopes = table * (shift[:, None] + shift - gaps)
        side = _sides_of(place)
        alike = np.outer(side, side).astype(np.float64)
        return cls(table[first, second], slopes[first, second], by_items, alike[first, second])

    @property
    def expected(self) -> float:
        """What is expected of Q."""
        return float(self.count @ self.alike)

    @property
    def slope(self) -> float:
        """Its slope by beta."""
        return float(self.slopes @ self.alike)

    def deviation(self, variance: float) -> float:
        """Return the standard deviation of Q, given the counts of items with this noise.

        Comparisons are independent given these, as of Poisson counts of pairs: Q has the variance
        of its sum less what its regression on the counts explains. To it comes the noise of these,
        by the same regression.
        """
        ends, signed = np.triu_indices(len(self.by_items), 1), self.count * self.alike
        summed = sum(np.bincount(end, signed, len(self.by_items)) for end in ends)
        slopes = self.by_items @ summed
        sampling = max(float(signed @ self.alike - summed @ slopes), 1.0)
        return float(np.sqrt(sampling + variance * float(slopes @ slopes)))

    def error(self, variance: float, noise: DiscreteLaplace) -> float:
        """Return the standard error of beta."""
        total = np.hypot(self.deviation(variance), np.sqrt(noise.variance))
        return float(total / max(abs(self.slope), 1e-300))


def _fitted(counts: FloatArray, variance: float, release: Release) -> Matching:
    """Return who met whom, given the counts of items and the variance of their noise."""
    place, error, beta, pvalue = _places(release), math.inf, 0.0, math.nan
    at, noise = _At.of(0.0, counts, place), DiscreteLaplace(0.0)
    if names.OPPONENTS in release.parts:
        part = release.parts[names.OPPONENTS]
        released, noise = float(part.values[0]), part.laplace
        off = abs(released - at.expected)
        pvalue = float(normal_laplace_tail(off, at.deviation(variance), (noise.scale,)))
        error = at.error(variance, noise)
    slopes = np.zeros(len(at.count))
    if error <= _MOST_DECAY_ERROR:
        for _ in range(_ROUNDS):
            before = beta
            beta += (released - at.expected) / at.slope
            beta = float(np.clip(beta, -_FARTHEST, _FARTHEST))
            at = _At.of(beta, counts, place)
            if abs(beta - before) < 1e-12:
                break
        slopes = at.slopes / at.slope
    error = at.error(variance, noise) if slopes.any() else math.inf
    pairs = PairCounts(*np.triu_indices(len(counts), 1), at.count, "proportional")
    return Matching(pairs, beta, error, pvalue, at.alike, slopes, at.by_items, noise)
