"""Consensus orders from a pair matrix: Borda, Copeland, KwikSort, local search, and Kemeny's.

In a *pair matrix* P, P[i, j] is the weight of the rankings that place item i before item j: counts,
fractions, or any real matrix such as a noisy one. The diagonal is ignored. An *order* lists the
items 0..m-1, best first. This module draws no noise: on a released matrix all computations are
post-processing.

Kemeny's order minimises the weight of the pair matrix against it. The problem is NP-hard, but easy
for rankings with some agreement: the majorities then divide the items into small components that
are ordered separately, by dynamic programming over subsets or by integer programming. The result
states what is proven about it.

**Shrinkage.** The entries (i, j) and (j, i) of a pair matrix of fractions sum to 1. On a noisy
matrix Kemeny's order fits the noise, and Borda's order averages over it; but Borda's order is wrong
if the majorities cannot be represented by scores. The empirical Bayes rule shrinks the matrix
towards a logit surface, to the degree that noise explains the misfit, which combines the advantages
of both. It uses the public variance of the noise.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from scipy.optimize import LinearConstraint, milp, minimize
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from scipy.special import expit, logit

from privrank.util.arrays import AnyArray, FloatArray, IntArray
from privrank.util.solvers import with_fallback

Rule = Literal["EB-Kemeny", "Kemeny", "Borda", "Copeland", "local search", "KwikSort"]

TIME_LIMIT = 10.0
"""Seconds of integer programming for a fit; the best order found is then used, with its gap."""

LARGEST_SPREAD = 10.0
MIN_SPREAD = 0.3
"""Bounds on the standard deviation of the scores under the ridge. The upper bound keeps a saturated
fit finite; at the lower bound the surface is nearly linear."""

_ERRORS = 2.0
"""Number of standard errors by which a misfit must exceed 0."""

_ROUNDS = 200
"""Largest number of Newton steps; ten are typical."""

_REFITS = 3
"""Number of fits of the surface if variances differ between pairs; each uses the last misfit."""

SUBSET_LIMIT = 14
"""Largest component solved over all its subsets; integer programming is faster for larger ones."""

PROGRAMME_LIMIT = 100
"""Largest component for integer programming; larger components take too long."""

RESOLUTION = 1e-6
"""Gap, relative to the largest margin, below which HiGHS's tolerances do not separate orders."""

_ROWS = 3000
"""Largest number of triangles added to the integer programme at a time."""


def _real(pairs: AnyArray) -> FloatArray:
    return np.ascontiguousarray(pairs, dtype=np.float64)


def margins_of(pairs: AnyArray) -> FloatArray:
    """Return P - P': entry (i, j) is the net weight of i before j, the diagonal 0."""
    return np.asarray(_real(pairs) - _real(pairs).T)


def weight_against(order: IntArray, pairs: AnyArray) -> float:
    """Return the total weight against an order: sum of P[j, i] over all i placed before j.

    For fractions of rankings this is their mean Kendall distance to the order.
    """
    place = np.argsort(order).astype(np.int32)
    return float(np.einsum("ji,ji", _real(pairs), place[:, None] > place))


def borda(pairs: AnyArray) -> FloatArray:
    """Return each item's net weight against all others, the centred Borda score times two."""
    return np.asarray(margins_of(pairs).sum(axis=1))


def copeland(pairs: AnyArray) -> FloatArray:
    """Return each item's majority wins minus its losses; a tie counts for neither."""
    return np.asarray(np.sign(margins_of(pairs)).sum(axis=1))


def order_of(scores: FloatArray) -> IntArray:
    """Return the items by decreasing score; equal scores keep the order of the items."""
    return np.argsort(-np.asarray(scores), kind="stable").astype(np.int64)


def kwiksort(pairs: AnyArray, pivots: IntArray) -> IntArray:
    """Return the order that KwikSort computes from a pair matrix.

    Each list of items is divided by its pivot, the member that comes first in the permutation
    `pivots`. The items that a majority places before the pivot precede it; the others, ties
    included, follow it. Both parts are sorted in the same way.

    Notes
    -----
    **Statistic.** With a uniform permutation this is KwikSort with an independent uniform pivot for
    each list. The members of a list are determined by pivots outside it, so the order of the
    permutation among them is uniform whatever the members are. On the pair counts of rankings the
    expected score is at most twice the smallest. For a noisy matrix, which may violate the triangle
    inequality, the factor is 5 if the two weights of each pair sum to one.

    References
    ----------
    Ailon, Charikar and Newman (2008), https://doi.org/10.1145/1411509.1411513.
    """
    from privrank.kernels.search import pivot_sort

    return pivot_sort(_real(pairs), np.ascontiguousarray(pivots, dtype=np.int64))


def local_search(order: IntArray, pairs: AnyArray) -> IntArray:
    """Return an order that no move of a single item improves, starting from `order`.

    Moves one item at a time to the position with the smallest score, in turn, until a complete
    round moves no item.

    Notes
    -----
    **Numerics.** A move must gain more than `tolerance`, which is above twice the rounding error of
    a sum of m margins. So every move decreases the exact score, no order occurs twice, and the
    search ends.
    """
    from privrank.kernels.search import insertion_search

    margins = margins_of(pairs)
    tolerance = 2.0**-50 * margins.size * float(np.abs(margins).max(initial=0.0))
    return insertion_search(np.ascontiguousarray(order, dtype=np.int64), margins, tolerance)


def pair_matrix(upper: FloatArray) -> FloatArray:
    """Return the matrix of fractions with these entries i < j, in the order of the rows.

    Entries (j, i) are one minus entries (i, j), and the diagonal is 1/2.
    """
    table = upper_to_matrix(upper) + upper_to_matrix(1.0 - upper).T
    return table + 0.5 * np.eye(len(table))


def upper_to_matrix(upper: FloatArray | IntArray) -> FloatArray:
    """Return the matrix with these entries i < j, in the order of the rows, and 0 elsewhere."""
    return np.triu(squareform(np.asarray(upper, dtype=np.float64)))


def by_score(scores: FloatArray, tie_break: tuple[int, ...]) -> IntArray:
    """Return the items by decreasing score; equal scores follow `tie_break`."""
    return np.lexsort((np.argsort(tie_break), -np.asarray(scores))).astype(np.int64)


@dataclass(frozen=True, slots=True)
class KemenyOrder:
    """An order, best first, its score, and a lower bound on the score of every order.

    `several` states whether another order is known to have the same score.

    The bound is valid up to the rounding of `score` and, if integer programming was needed, up to
    1e-6 of the largest margin per component.
    """

    order: IntArray
    score: float
    bound: float
    several: bool = False

    @property
    def gap(self) -> float:
        """Largest possible excess of `score` over the minimum; 0 if the order is proven optimal."""
        return self.score - self.bound

    @property
    def proven(self) -> bool:
        """Whether the order is proven optimal."""
        return self.gap == 0

    @property
    def findings(self) -> dict[str, float]:
        """The statements of a release about the order: its gap, and whether two optima exist."""
        return {"gap": self.gap} | ({"optima": 2.0} if self.proven and self.several else {})

    def improved(self, order: IntArray, pairs: AnyArray) -> KemenyOrder:
        """Return the better of this and another order of the same pair matrix."""
        score = weight_against(order, pairs)
        return self if score >= self.score else KemenyOrder(order, score, min(self.bound, score))


def kemeny(pairs: AnyArray, *, time_limit: float = 60.0) -> KemenyOrder:
    """Return an order with the smallest total weight against it.

    The matrix has finite real entries; its diagonal is ignored. `time_limit` is in seconds of
    integer programming; the best order found in this time is returned with its gap.

    Notes
    -----
    **Statistic.** Components: let i lead to j if P[i, j] >= P[j, i]. The strong components of this
    digraph can be ordered such that every pair across two components has a strict majority for the
    earlier one. Take any order and move the items component by component, without changing the
    order within components. The cost of pairs within a component does not change, and the cost of
    pairs across components becomes minimal. So an optimal order keeps the components together, for
    any real matrix.

    A component of up to 14 items is solved over its subsets. The minimal cost of ordering the set A
    first is the minimum, over the last item i of A, of the cost for A - i plus the weight for i
    before A - i. Larger components are solved by the integer programme over x_ij = 1 if i precedes
    j, with x_ij + x_jk + x_ki <= 2 for all triangles. Triangles are added as they are violated, at
    first without integrality. Every optimum on the way is a lower bound. Components of more than
    100 items are ordered by local search.

    *Other optima.* Components have the same order in all optima. Within a component two optima
    agree from the end up to some position, at which either item is a last item of minimal cost. So
    another optimum exists if and only if the recursion over subsets finds a tie there. For larger
    components the only check is whether two neighbours can be exchanged at no cost.

    References
    ----------
    Conitzer, Davenport and Kalagnanam (2006), Improved bounds for computing Kemeny rankings, AAAI;
    Betzler, Bredereck and Niedermeier (2014), https://doi.org/10.1007/s10458-013-9236-y.
    """
    matrix = np.array(pairs, dtype=np.float64)
    np.fill_diagonal(matrix, 0.0)
    margins = margins_of(matrix)
    deadline = time.monotonic() + time_limit
    order: list[int] = []
    gap = 0.0
    several = False
    # components follow the order of their majorities, and the cost of pairs across them is
    # constant: gaps sum up, and joined optima are an optimum
    for members in _components(margins):
        block = matrix[np.ix_(members, members)]
        if len(members) <= SUBSET_LIMIT:
            inner, more = _by_subsets(block)
            several |= more
        else:
            # a deadline in the past selects local search for the component
            end = deadline if len(members) <= PROGRAMME_LIMIT else -math.inf
            inner, inner_gap = _by_programme(margins_of(block), end)
            gap += inner_gap
        order.extend(int(item) for item in members[inner])
    best = np.array(order, dtype=np.int64)
    score = weight_against(best, matrix)
    several |= bool((np.diagonal(margins[np.ix_(best, best)], 1) == 0).any())
    return KemenyOrder(best, score, score - gap, several)


def _components(margins: FloatArray) -> list[IntArray]:
    """Return the strong components of the weak majorities, the leading one first.

    Each item of an earlier component leads to all items of the later components, and no item leads
    back. So each of its members leads to more items than any member of a later component.
    """
    leads = margins >= 0
    _, label = connected_components(csr_array(leads), directed=True, connection="strong")
    parts = [np.flatnonzero(label == part) for part in np.unique(label)]
    return sorted(parts, key=lambda members: -int(leads[members].sum(axis=1).max()))


def _by_subsets(block: FloatArray) -> tuple[IntArray, bool]:
    """Return the best order of a component, and whether another order is equally good."""
    from privrank.kernels.subsets import last_terms, split_costs, subset_values

    m = len(block)
    halves = split_costs(block)
    values = subset_values(halves)
    # from the full set backwards: the last item is the one whose removal leaves the smallest cost
    subset = (1 << m) - 1
    members = list(range(m))
    order = np.empty(m, dtype=np.int64)
    several = False
    # sums of weights may differ by rounding
    within = m * m * 2.0**-48 * float(np.abs(block).max(initial=0.0))
    for place in range(m - 1, -1, -1):
        costs = last_terms(values, halves, subset, members)
        several |= int(np.count_nonzero(costs <= costs.min() + within)) > 1
        last = members.pop(int(np.argmin(costs)))
        order[place] = last
        subset ^= 1 << last
    return order, several


def _violated(before: FloatArray) -> IntArray:
    """Return the triangles i, j, k, one row each, with x_ij + x_jk + x_ki > 2, worst first."""
    rows = []
    excess = []
    for i in range(len(before) - 2):
        # i is the smallest of the three, so each oriented triangle occurs once
        over = before[i, i + 1 :, None] + before[i + 1 :, i + 1 :] + before[i + 1 :, i] - 2.0
        np.fill_diagonal(over, 0.0)
        j, k = np.nonzero(over > RESOLUTION)
        rows.append(np.column_stack((np.full(len(j), i), j + i + 1, k + i + 1)))
        excess.append(over[j, k])
    worst = np.argsort(-np.concatenate(excess), kind="stable")[:_ROWS]
    return np.asarray(np.concatenate(rows)[worst])


def _by_programme(margins: FloatArray, deadline: float) -> tuple[IntArray, float]:
    """Return the best order found for a component and its gap, 0 if it is optimal.

    Minimises half the sum of margins[j, i] over the pairs with i before j, which is the score minus
    a constant, relative to the largest margin.
    """
    m = len(margins)
    scale = float(np.abs(margins).max())
    if scale == 0:
        return np.arange(m, dtype=np.int64), 0.0
    margins = margins / scale
    # one variable x_ij for each pair i < j of the component: whether i is placed before j
    first, second = np.triu_indices(m, 1)
    cost = -margins[first, second]
    number = np.zeros((m, m), dtype=np.int64)
    number[first, second] = np.arange(len(cost))

    def loss(order: IntArray) -> float:
        return -float(np.triu(margins[np.ix_(order, order)], 1).sum()) / 2

    best = min(
        local_search(order_of(borda(margins)), margins),
        local_search(order_of(copeland(margins)), margins),
        key=loss,
    )
    # the loss has cost[ij] / 2 with i before j, and -cost[ij] / 2 with j before i
    offset = float(cost.sum()) / 2
    bound = -float(np.abs(cost).sum()) / 2
    rows = np.empty((0, 3), dtype=np.int64)
    whole = False
    # solve, add the violated triangles, and solve again; first with real, then with whole numbers
    while loss(best) - bound > RESOLUTION:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        answer = with_fallback(
            partial(
                milp,
                cost,
                integrality=np.full(len(cost), int(whole)),
                bounds=(0, 1),
                constraints=_triangles(rows, number) if len(rows) else None,
                options={"time_limit": left, "mip_rel_gap": 0.0},
            ),
            lambda: None,
        )
        if answer is None:
            break
        reached = answer.mip_dual_bound
        if not whole:
            reached = answer.fun if answer.status == 0 else None
        if reached is not None and math.isfinite(reached):
            bound = max(bound, float(reached) - offset)
        if answer.x is None:
            break
        # round the solution: order items by how many others it places after them, then search
        before = np.zeros((m, m))
        before[first, second] = answer.x
        before[second, first] = 1.0 - answer.x
        best = min(best, local_search(order_of(before.sum(axis=1)), margins), key=loss)
        new = _violated(before)
        if len(new):
            rows = np.concatenate((rows, new))
        elif whole:
            break
        whole = whole or not len(new)
    gap = loss(best) - bound
    return best, 0.0 if gap <= RESOLUTION else gap * scale


def _triangles(rows: IntArray, number: IntArray) -> LinearConstraint:
    """Return x_ij + x_jk + x_ki <= 2 for each row i, j, k; x_ab with a > b stands for 1 - x_ba."""
    starts = rows.ravel()
    ends = np.roll(rows, -1, axis=1).ravel()
    up = starts < ends
    column = np.where(up, number[starts, ends], number[ends, starts])
    line = np.repeat(np.arange(len(rows)), 3)
    # the solver of scipy 1.12 takes 32-bit indices only
    places = (line.astype(np.int32), column.astype(np.int32))
    matrix = csr_array((np.where(up, 1.0, -1.0), places), (len(rows), int(number.max()) + 1))
    return LinearConstraint(matrix, -np.inf, 2.0 - np.bincount(line, ~up, minlength=len(rows)))


def fit_scores(
    pairs: FloatArray,
    variance: FloatArray | float,
    start: FloatArray | None = None,
    spread: float = LARGEST_SPREAD,
) -> FloatArray:
    """Return the scores whose logistic differences fit a pair matrix best.

    Arguments are fractions P, which may lie outside [0, 1], and the positive variance V of the
    noise in each: a number or a symmetric matrix, infinite for pairs without information. Minimises
    the sum over i < j of (P[i, j] - F(t_i - t_j))^2 / (2 V[i, j]), with F logistic, plus
    |t|^2 / (2 spread^2). Returns a stationary point with mean 0.

    Notes
    -----
    **Statistic.** The criterion is not convex, so the start is part of the method. By default t_i
    starts at twice the logit of the mean of P[i, j] over j other than i, weighted by 1 / V[i, j]
    and clipped to [1 / (2 m), 1 - 1 / (2 m)] (small scores t have mean fractions
    1/2 + t_i m / (4 (m - 1))). Newton steps in a trust region decrease the criterion from there.

    **Numerics.** The mean of the gradient is the mean for the ridge alone, so t keeps mean 0.
    """
    m = len(pairs)
    weights, unit = _weights(m, variance)
    ridge = unit / spread**2
    pairs = np.where(weights > 0, pairs, 0.5)
    if start is None:
        share = (weights * pairs).sum(axis=1) / weights.sum(axis=1)
        start = 2.0 * logit(np.clip(share, 0.5 / m, 1.0 - 0.5 / m))
    start = start - start.mean()

    def surface(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return residuals from the surface, and its slopes F' = F (1 - F)."""
        fitted = expit(t[:, None] - t)
        return fitted - pairs, fitted * (1.0 - fitted)

    def criterion(t: FloatArray) -> tuple[float, FloatArray]:
        """Return half the criterion, which includes each pair twice, and its gradient."""
        rest, slope = surface(t)
        value = float(0.25 * (weights * rest**2).sum() + 0.5 * ridge * (t @ t))
        return value, np.asarray((weights * slope * rest).sum(axis=1) + ridge * t)

    def hessian(t: FloatArray) -> FloatArray:
        # F'^2 is the Gauss-Newton curvature; F'' = -F' tanh(difference / 2) gives the other term
        rest, slope = surface(t)
        weight = weights * slope * (slope + rest * np.tanh(0.5 * (t - t[:, None])))
        return np.asarray(np.diag(weight.sum(axis=1) + ridge) - weight)

    # iterate to the limits of double precision, where the method fails or is stopped
    options = {"gtol": 1e-10, "maxiter": _ROUNDS}
    newton = partial(minimize, method="trust-exact", jac=True, hess=hessian, options=options)
    scores = with_fallback(lambda: newton(criterion, start).x, lambda: start)
    scores = scores if np.isfinite(scores).all() else start
    return np.asarray(scores - scores.mean())


def _weights(items: int, variance: FloatArray | float) -> tuple[FloatArray, float]:
    """Return weights of pairs that decrease with their variance, and the variance of weight one.

    The weights are 0 on the diagonal and have mean 1 off the diagonal.
    """
    precision = np.zeros((items, items)) + 1.0 / np.asarray(variance)
    unit = items * (items - 1) / (precision.sum() - np.trace(precision))
    weights = np.ones((items, items)) if np.ndim(variance) == 0 else precision * unit
    np.fill_diagonal(weights, 0.0)
    return weights, float(unit)


def prior_of(pairs: FloatArray, variance: FloatArray | float) -> tuple[FloatArray, float]:
    """Return starting values of the scores, and the standard deviation of scores about 0.

    Notes
    -----
    **Statistic.** The lead of an item is the mean of its fractions minus 1/2, weighted by 1 / V,
    with noise of variance 1 / sum(1 / V). All leads are multiplied by one shrinkage factor, which
    makes their mean square equal to its value without that noise, or 0. The score of an item is
    then 2 logit(1/2 + lead) (:func:`fit_scores`). The standard deviation is the root mean square of
    the scores, at least 0.3. If noise dominates all leads, the scores are nearly linear in the
    fractions, as Borda scores are. If the fractions are nearly exact, it makes no difference.
    """
    m = len(pairs)
    precision = np.zeros((m, m)) + 1.0 / np.asarray(variance)
    np.fill_diagonal(precision, 0.0)
    total = precision.sum(axis=1)
    leads = (precision * np.where(precision > 0, pairs - 0.5, 0.0)).sum(axis=1) / total
    # the fraction of the leads' mean square that remains after noise of variance 1 / total
    square = float((leads**2).mean())
    left = max(0.0, 1.0 - float((1.0 / total).mean()) / square) if square > 0 else 0.0
    scores = 2.0 * logit(np.clip(0.5 + math.sqrt(left) * leads, 0.5 / m, 1.0 - 0.5 / m))
    return scores, min(max(math.sqrt(float((scores**2).mean())), MIN_SPREAD), LARGEST_SPREAD)


def shrink(
    pairs: AnyArray,
    variance: FloatArray | float,
    start: FloatArray | None = None,
    spread: float = LARGEST_SPREAD,
) -> tuple[FloatArray, FloatArray, FloatArray | float]:
    """Shrink a noisy pair matrix towards the logit surface that fits it, from a start.

    Returns the fractions, the scores of the surface (mean 0), and the weight in [0, 1] of the noisy
    fractions, a number or one for each pair; the surface has the remaining weight. `variance` is
    the variance of the noise in each fraction, a number or a symmetric matrix. The number 0 leaves
    the fractions unchanged; a pair with infinite variance is replaced by the surface. `spread` is
    the standard deviation of the scores under the ridge of their fit.

    Notes
    -----
    **Statistic.** D pairs have finite variance V, and m - 1 scores are fitted to them. With weights
    w the weighted squares of their residuals from the surface have the expected sum
    (1 - (m - 1) / D) (sum of w V) + (sum of w) misfit, to first order. The misfit is estimated by
    the method of moments, minus two standard errors of this estimate under no misfit and normal
    noise, and at least 0: noise is not misfit. Each fraction is then its posterior mean, assuming
    that fractions vary about the surface with this variance: trust = misfit / (misfit + V). If
    variances differ, w is first 1 and then 1 / (V + misfit), and the surface is fitted again. With
    weights 1 / V a few precisely known pairs would determine the surface and hide the misfit.
    """
    matrix = np.array(pairs, dtype=np.float64)
    np.fill_diagonal(matrix, 0.5)
    m = len(matrix)
    if np.ndim(variance) == 0 and variance == 0:
        # the scores are only reported: every small variance gives the same fit
        return matrix, fit_scores(matrix, 1e-6, start), 1.0
    table = np.zeros((m, m)) + variance
    known = np.isfinite(table) & ~np.eye(m, dtype=np.bool_)
    # D pairs, each included twice: m - 1 scores leave the fraction 1 - (m - 1) / D
    free = 1.0 - 2.0 * (m - 1) / float(known.sum())
    alike = np.where(known, table[known].mean(), np.inf)
    about, rounds = (variance, 1) if np.ndim(variance) == 0 else (alike, _REFITS)
    for _ in range(rounds):
        scores = fit_scores(matrix, about, start, spread)
        surface = expit(scores[:, None] - scores)
        rest = np.where(known, matrix - surface, 0.0)
        weights, _ = _weights(m, about)
        noise = weights[known] * table[known]
        excess = float(weights[known] @ rest[known] ** 2) - free * float(noise.sum())
        # each pair is included twice; a square of normal noise has variance twice its mean squared
        excess -= _ERRORS * math.sqrt(max(free, 0.0) * 4.0 * float(noise @ noise))
        misfit = max(0.0, excess / float(weights.sum()))
        about = table + misfit
    trust = misfit / (misfit + variance)
    return surface + trust * rest, scores, trust


def consensus_of(
    rule: Rule,
    pairs: FloatArray,
    variance: FloatArray | float,
    tie_break: tuple[int, ...],
    start: FloatArray | None = None,
) -> KemenyOrder:
    """Return the order that a rule computes from a matrix of fractions.

    Arguments are fractions, the variance of the noise in each, and a uniform permutation of the
    items. The permutation gives the pivots of KwikSort, the order of equal scores and the start of
    local search. `start` gives starting values for the scores of EB-Kemeny. A rule without
    optimisation has the trivial bound: each pair at its smaller weight.

    **Statistic.** "EB-Kemeny" is Kemeny's order of the shrunken fractions. Without a start, the
    scores have the standard deviation of :func:`prior_of`. If integer programming runs out of time,
    the result is the better of its order and a local search from the order of the scores.
    """
    if rule == "EB-Kemeny":
        spread = LARGEST_SPREAD
        if start is None and np.any(variance):
            start, spread = prior_of(pairs, variance)
        shrunk, scores, _ = shrink(pairs, variance, start, spread)
        best = kemeny(shrunk, time_limit=TIME_LIMIT)
        if best.proven:
            return best
        # integer programming ran out of time: use the better of its order and a local search
        return best.improved(local_search(order_of(scores), shrunk), shrunk)
    if rule == "Kemeny":
        return kemeny(pairs, time_limit=TIME_LIMIT)
    if rule == "KwikSort":
        order = kwiksort(pairs, np.array(tie_break, dtype=np.int64))
    elif rule == "local search":
        order = local_search(by_score(borda(pairs), tie_break), pairs)
    else:
        order = by_score(borda(pairs) if rule == "Borda" else copeland(pairs), tie_break)
    return KemenyOrder(
        order,
        score=weight_against(order, pairs),
        bound=float(np.triu(np.minimum(pairs, pairs.T), 1).sum()),
    )
