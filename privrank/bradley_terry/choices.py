"""Scores of choices from sets: best, worst, best and worst, or an order of all items of a set.

A set of s items is represented by its s (s - 1) / 2 edges, the pairs of its items, with the
predictors t_ij = v_i - v_j. An answer gives item i of the set the position score phi_i
(:mod:`privrank.privacy.offered`). For the first three answers P(answer) is proportional to
exp(phi'v). The loss is the logarithm of the sum of these terms minus its expectation at equal
worths. Its gradient is the mean score mu = E phi minus the value at equal worths, and its Hessian
is the covariance of phi. Both are sums over edges, because they vanish for constant worths:

- mu is the sum of g_ij (e_i - e_j) with g_ij = (mu_i - mu_j) / s, since mu sums to zero;
- Cov(phi) is the sum of c_ij (e_i - e_j)(e_i - e_j)' with c_ij = -Cov(phi_i, phi_j). For best and
  worst answers some c_ij are negative if worths differ much, although their sum is positive
  semi-definite.

**Best and worst.** Let p and q be the probabilities of the best and the worst item if only one is
named. Then P(best b, worst w) is proportional to p_b q_w for b != w. All p_i q_i are equal to one
number d. With Z = sum over b != w of p_b q_w, and with P and Q the sums of p and q over the s - 2
other items, expanding the moments gives

    c_ij Z^2 = 4 d^2 + 2 d (Q (p_i + p_j) + P (q_i + q_j)) + p_i p_j Q^2 + q_i q_j P^2
               - (s - 2) d (p_i q_j + p_j q_i).

**Orders.** The fit treats the pairs of an order as independent comparisons (composite likelihood),
with half the net wins as scores. Its curvature is therefore F' by edge. The variance is the exact
covariance under the Plackett-Luce model, in which the items of a set arrive at independent
exponential times with rates e^v. Let I_ij indicate that i is before j. Pairs without a common item
are independent, so only triples matter. Let p_k be the probability that k is the first of i, j
and k. Then P(i before j before k) = p_i F_jk and p_i = F_ij (1 - p_k) = F_ik (1 - p_j), hence

    Cov(I_ij, I_jk) = -p_k F_ij F_jk,  Cov(I_ji, I_ik) = -p_k F_ji F_ik,
    Cov(I_ik, I_jk) = F_ik F_jk (2 - p_i - p_j) - F_ik F_jk = p_k F_ik F_jk.

Half the net wins of i and j therefore have minus the covariance

    F_ij F_ji + sum_k p_k (F_ij F_jk + F_ji F_ik - F_ik F_jk)
    = F_ij F_ji + 2 sum_k p_k F_ij F_jk F_ki,

as both cyclic products are e^(v_i + v_j + v_k) divided by the sums of the three pairs. At equal
worths this is 1/4 + (s - 2) / 12, which is (s + 1) / 3 times the variance of a comparison.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from privrank.bradley_terry.fit import LOGIT_MEAN_CURVATURE, ScoreFunction
from privrank.distributions.links import LOGIT, Link
from privrank.privacy.offered import Answer, offered_edges
from privrank.release.survey import Design, PairCounts
from privrank.util.arrays import FloatArray, IntArray, immutable, own_arrays, readonly_copy

_LARGEST = 700.0
"""Difference of worths beyond which odds are treated as constant; they are then 10^304."""


@immutable
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChoiceScore(ScoreFunction):
    """The mean, slope and variance of scores of choices from sets, by edge.

    Scores are position scores minus their expectation at equal worths. Scores of orders are half
    net wins. Arguments and returned values have the shape (..., edges); each set has an edge for
    each pair of its items. The sets are public, so no noise of pair counts enters the scores.

    Parameters
    ----------
    answer : {"best", "worst", "best-worst", "order"}
        How each set is answered.
    groups : tuple of ndarray of int64, shapes (sets, s (s - 1) / 2)
        For each size s of a set, the positions of the edges of all sets of this size. The edges of
        a set are in the order of ``numpy.triu_indices(s, 1)``. Each edge occurs exactly once.
    link : Link
        The link, which must be the logit.

    Raises
    ------
    ValueError
        If the link is not the logit.
    """

    link: Link = LOGIT
    answer: Answer
    groups: tuple[IntArray, ...]

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same answers to the same sets."""
        return (
            isinstance(other, ChoiceScore)
            and self.answer == other.answer
            and len(self.groups) == len(other.groups)
            and all(map(np.array_equal, self.groups, other.groups))
        )

    def __hash__(self) -> int:
        """Return a number that equal score functions share."""
        return hash((self.answer, len(self.groups)))

    def __post_init__(self) -> None:
        """Take private, read-only copies of the arrays, because results keep them."""
        if self.link != LOGIT or self.likelihood or self.ties:
            raise ValueError("link must be 'logit' for choices from sets.")
        own_arrays(self)

    def mean(self, t: FloatArray) -> FloatArray:
        """Return the part g of the mean score of each edge."""
        if self.answer == "order":
            return self.link.excess(t)
        return self._by_set(t, self._means)

    def integral(self, t: FloatArray) -> FloatArray:
        """Return the loss of one answer, 0 at equal worths, in equal parts for each edge."""
        if self.answer == "order":
            return self.link.integral(t)
        return self._by_set(t, self._losses)

    def curvature(self, t: FloatArray) -> FloatArray:
        """Return the part c of the Hessian of the loss of each edge."""
        if self.answer == "order":
            return self.link.density(t)
        return self._by_set(t, self._curvatures)

    def variance(self, t: FloatArray) -> FloatArray:
        """Return the part of the covariance of the scores of each edge."""
        return self._by_set(t, _of_orders) if self.answer == "order" else self.curvature(t)

    def third(self, t: FloatArray, along: FloatArray, count: FloatArray) -> FloatArray:
        """Return the third cumulants of combinations of scores, shape (rows,).

        For orders of s items they are s (s + 1) / 6 times the third cumulants of independent pairs.
        Under the Plackett-Luce model this is exact to first order in the differences of worths (by
        enumeration for s up to 6), and exact for sets of two.

        Parameters
        ----------
        t : ndarray, shape (edges,) or (rows, edges)
            The predictors.
        along : ndarray, shape (rows, edges)
            Differences of the weights a of the scores, a_i - a_j.
        count : ndarray, shape (edges,)
            Number of independent answers of the set of each edge.
        """
        if self.answer == "order":
            more = self._by_set(count, lambda n: n * _size(n) * (_size(n) + 1) / 6.0)
            skew = more * self.link.excess(t) * self.link.density(t)
            return np.asarray(-2.0 * (along**3 * skew).sum(axis=-1))
        total = np.zeros(len(along))
        for group in self.groups:
            probabilities = self._probabilities(t[..., group])
            values = self._products(along[..., group])
            values = values - (probabilities * values).sum(axis=-1, keepdims=True)
            total += (probabilities * values**3).sum(axis=-1) @ count[group[:, 0]]
        return total

    def draw_totals(
        self, rng: np.random.Generator, pairs: PairCounts, worths: FloatArray
    ) -> IntArray:
        """Return the totals T of independent answers to all tasks by given worths.

        The edges are `pairs`. For orders every task is drawn, by the exponential arrival times of
        its items, whose logarithms have Gumbel distributions. For other answers the numbers of all
        answers to a set are drawn.
        """
        totals = np.zeros(len(worths))
        for group in self.groups:
            size = _size(group)
            # the first s - 1 edges of a set are those of its first item
            shown = np.column_stack((pairs.first[group[:, 0]], pairs.second[group[:, : size - 1]]))
            tasks = pairs.count[group[:, 0]].astype(np.int64)
            if self.answer == "order":
                shown = np.repeat(shown, tasks, axis=0)
                arrivals = worths[shown] + rng.gumbel(size=shown.shape)
                scores = 2.0 * arrivals.argsort(axis=1).argsort(axis=1) - (size - 1)
            else:
                t = worths[pairs.first[group]] - worths[pairs.second[group]]
                scores = rng.multinomial(tasks, self._probabilities(t)) @ self._scores(size)
            totals += np.bincount(shown.ravel(), scores.ravel(), len(worths))
        return totals.astype(np.int64)

    @property
    def estimator(self) -> str:
        """The name of the estimator with these scores, without its ridge."""
        return "composite likelihood" if self.answer == "order" else "maximum likelihood"

    @property
    def most(self) -> float:
        """Bound of the scores of any a items of a set, divided by the a (s - a) edges that leave.

        The scores add up to at most 1 - a / s (best), a / s (worst) or 1 (best-worst). Divided by
        a (s - a) this is at most 1 / s, 1 / s or 1 / (s - 1). In an order each edge that leaves
        adds at most 1/2. Sets of several sizes have the bound of the smallest.
        """
        smallest = min(_size(group) for group in self.groups)
        if self.answer == "order":
            return 0.5
        return 1.0 / (smallest - 1) if self.answer == "best-worst" else 1.0 / smallest

    @property
    def bound(self) -> FloatArray:
        """Upper bounds of the absolute part g of the mean score of one answer, shape (edges,)."""
        if self.answer == "order":
            return np.ones(self._edges)
        # the means of two items differ by at most 1, or 2 if one is the best and one the worst
        apart = 2.0 if self.answer == "best-worst" else 1.0
        return self._by_set(np.full(self._edges, apart), lambda t: t / _size(t))

    @property
    def even(self) -> FloatArray | float:
        """Minus the log-likelihood of an answer at equal worths, in equal parts for each edge."""
        if self.answer == "order":
            return math.log(2.0)

        def even(edges: FloatArray) -> FloatArray:
            answers = math.log(len(self._scores(_size(edges))))
            return np.full_like(edges, answers / edges.shape[-1])

        return self._by_set(np.zeros(self._edges), even)

    @property
    def accuracy(self) -> float:
        """Largest error of a computed `mean`, in unit roundoffs of `bound`.

        The odds e^(v_i - v_j) of two items are computed from their own edge, so the rounding of a
        large predictor is multiplied by a small probability. Errors are below 5 unit roundoffs with
        the product with a count, compared with 50 digits for sets of up to 20 items.
        """
        return LOGIT.exact.accuracy if self.answer == "order" else 16.0

    @property
    def mean_curvature(self) -> float:
        """Mean curvature of an edge, reduced from equal worths like that of a comparison."""
        return LOGIT_MEAN_CURVATURE * 4.0 * float(self.curvature(np.zeros(self._edges)).mean())

    @property
    def mean_variance(self) -> float:
        """Mean variance of an edge, reduced from equal worths like that of a comparison."""
        return LOGIT_MEAN_CURVATURE * 4.0 * float(self.variance(np.zeros(self._edges)).mean())

    @property
    def sets(self) -> IntArray:
        """The number of the set of each edge, shape (edges,)."""
        numbers = np.empty(self._edges, dtype=np.int64)
        first = 0
        for group in self.groups:
            numbers[group] = first + np.arange(len(group))[:, None]
            first += len(group)
        return numbers

    @property
    def _edges(self) -> int:
        """Number of edges of all sets."""
        return sum(group.size for group in self.groups)

    def _by_set(self, t: FloatArray, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return a function of the edges of each set, shape (..., sets, s (s - 1) / 2)."""
        values = np.empty(t.shape)
        for group in self.groups:
            values[..., group] = function(t[..., group])
        return values

    def _scores(self, size: int) -> FloatArray:
        """Return the position scores phi of all answers for a set, shape (answers, size)."""
        if self.answer == "best-worst":
            return np.concatenate((_incidence(size), -_incidence(size)))
        return np.eye(size) if self.answer == "best" else -np.eye(size)

    def _products(self, t: FloatArray) -> FloatArray:
        """Return phi'v minus its value at v_0 by answer, shape (..., sets, answers)."""
        size = _size(t)
        worths = np.zeros((*t.shape[:-1], size))
        worths[..., 1:] = -t[..., : size - 1]
        return np.asarray(worths @ self._scores(size).T)

    def _probabilities(self, t: FloatArray) -> FloatArray:
        """Return the probabilities of the answers, shape (..., sets, answers)."""
        best, worst = _named(t)
        if self.answer != "best-worst":
            return best if self.answer == "best" else worst
        first, second = np.triu_indices(_size(t), 1)
        both = best[..., first] * worst[..., second], best[..., second] * worst[..., first]
        joint = np.concatenate(both, axis=-1)
        return np.asarray(joint / joint.sum(axis=-1, keepdims=True))

    def _means(self, t: FloatArray) -> FloatArray:
        size = _size(t)
        differences = self._scores(size) @ _incidence(size).T
        return np.asarray(self._probabilities(t) @ (differences / size))

    def _losses(self, t: FloatArray) -> FloatArray:
        products = self._products(t)
        top = products.max(axis=-1, keepdims=True)
        # large worths do not overflow, and the loss of small worths is not a difference of logs
        loss = np.log1p(np.expm1(products - top).mean(axis=-1, keepdims=True))
        loss = loss + top - products.mean(axis=-1, keepdims=True)
        return np.broadcast_to(loss / t.shape[-1], t.shape)

    def _curvatures(self, t: FloatArray) -> FloatArray:
        first, second = np.triu_indices(_size(t), 1)
        if self.answer != "best-worst":
            probabilities = self._probabilities(t)
            return np.asarray(probabilities[..., first] * probabilities[..., second])
        best, worst = _named(t)
        others = 1.0 - np.abs(_incidence(_size(t))).T
        p = best @ others
        q = worst @ others
        # p_i + p_j and p_i p_j of the two items of an edge, and the same of q
        p_sum = best @ (1.0 - others)
        q_sum = worst @ (1.0 - others)
        p_both = best[..., first] * best[..., second]
        q_both = worst[..., first] * worst[..., second]
        turned = best[..., first] * worst[..., second] + best[..., second] * worst[..., first]
        d = (best * worst).mean(axis=-1, keepdims=True)
        c = 4.0 * d**2 + 2.0 * d * (q * p_sum + p * q_sum) + p_both * q**2 + q_both * p**2
        c -= (_size(t) - 2.0) * d * turned
        return np.asarray(c / turned.sum(axis=-1, keepdims=True) ** 2)


def _size(edges: FloatArray | IntArray) -> int:
    """Return the size s of sets with s (s - 1) / 2 edges, the last dimension."""
    return math.isqrt(2 * edges.shape[-1]) + 1


@cache
def _incidence(size: int) -> FloatArray:
    """Return the differences of the items of each edge of a set, shape (s (s - 1) / 2, s)."""
    first, second = np.triu_indices(size, 1)
    return readonly_copy(np.eye(size)[first] - np.eye(size)[second])


def _odds(t: FloatArray) -> FloatArray:
    """Return e^(v_i - v_j) for all items of each set, shape (..., sets, s, s)."""
    size = _size(t)
    first, second = np.triu_indices(size, 1)
    t = np.clip(t, -_LARGEST, _LARGEST)
    odds = np.ones((*t.shape[:-1], size, size))
    odds[..., first, second] = np.exp(t)
    odds[..., second, first] = np.exp(-t)
    return odds


def _named(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities p and q of the best and the worst item, shape (..., sets, s)."""
    odds = _odds(t)
    # 1 / p_j is the sum of e^(v_i - v_j) over i, and 1 / q_i the sum of the same odds over j
    return 1.0 / odds.sum(axis=-2), 1.0 / odds.sum(axis=-1)


def _of_orders(t: FloatArray) -> FloatArray:
    """Return minus the covariance of half the net wins of the items of each edge."""
    first, second = np.triu_indices(_size(t), 1)
    odds = _odds(t)
    won = odds / (1.0 + odds)
    variance = won[..., first, second] * won[..., second, first]
    for k in range(_size(t)):
        ahead = 1.0 / (1.0 + odds[..., first, k] + odds[..., second, k])
        cycle = won[..., first, second] * won[..., second, k] * won[..., k, first]
        # k is one of the other items
        variance += np.where((first == k) | (second == k), 0.0, 2.0 * ahead * cycle)
    return np.asarray(variance)


def score_function(design: Design, link: Link) -> ScoreFunction:
    """Return how the scores of a survey depend on its worths."""
    if design.offered is None:
        return ScoreFunction(link, ties=design.davidson)
    groups = offered_edges(design.offered, len(design.items)).groups
    return ChoiceScore(link=link, answer=design.offered.answer, groups=groups)


def even_scores(design: Design) -> FloatArray | float:
    """Return the released totals of choices at equal worths, shape (rows, m); 0 for comparisons.

    Each of the s items of a set is the best, or the worst, with probability 1 / s. Best minus
    worst and orders have no part of this kind.
    """
    offered = design.offered
    if offered is None or offered.answer not in ("best", "worst"):
        return 0.0
    edges = offered_edges(offered, len(design.items))
    facts = design.covariates
    size = len(design.items) * (1 if facts is None else facts.patterns)
    # an item of a set of s items is in s - 1 of its edges
    share = np.empty(len(edges.count))
    for group in edges.groups:
        share[group] = edges.count[group] / (_size(group) * (_size(group) - 1.0))
    totals = np.bincount(edges.first, share, size) + np.bincount(edges.second, share, size)
    totals = np.reshape(totals if offered.answer == "best" else -totals, (-1, len(design.items)))
    return np.asarray(totals if facts is None else facts.step * facts.basis.T @ totals)
