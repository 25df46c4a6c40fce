"""How far one unit can move each statistic: closed forms, each with its proof.

Everything here is a public number. A *unit* contributes at most `rows` comparisons; a single
comparison as the unit is the case ``rows=1``. Neighbours differ by replacing one unit:

- ``"outcome"``: who compared which pairs is public; only the unit's answers change;
- ``"replace"``: the unit may be any other, with other pairs or missing answers.

Lattices. `net` is wins minus losses, an integer per item (a tie adds 0). The win matrix counts
half wins when ties are allowed, so there it is stored doubled. Gradients are those of the loss of
one answer, g (e_i - e_j) with |g| bounded; for the logistic log-loss |g| < 1.

The proofs use one picture: the answers of a unit are oriented edges of a graph on the items, and
`net` is the sum of the edge vectors e_i - e_j. For any set S of items the edges inside S cancel, so
sum over S of net is at most the number of edges that leave S. Over distinct pairs that is at most
q (m - q) for |S| = q, hence at most ``floor(m^2 / 4)``, the largest cut.

References: derivations follow Cai, Chakraborty and Wang (2023), Proposition 2.1, with the
constants made tight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from privrank.util.arrays import immutable

Adjacency = Literal["outcome", "replace"]

_SECOND_MOMENTS = {
    3: {1: (6, 7), 2: (20, 22), 3: (26, 33)},
    4: {1: (8, 9), 2: (34, 34), 3: (64, 64), 4: (78, 80), 5: (92, 97), 6: (112, 116)},
    5: {
        1: (12, 12), 2: (42, 42), 3: (94, 94), 4: (150, 150), 5: (168, 168), 6: (186, 186),
        7: (212, 212), 8: (244, 244), 9: (256, 271), 10: (272, 300),
    },
    6: {
        1: (16, 16), 2: (52, 52), 3: (112, 112), 4: (198, 198), 5: (288, 288), 6: (312, 312),
        7: (334, 334), 8: (374, 374), 9: (408, 408), 10: (464, 464), 11: (484, 484),
        12: (510, 528), 13: (528, 565), 14: (544, 604), 15: (560, 645),
    },
}  # fmt: skip
"""Sensitivities of second moments by items and rows over distinct pairs, all enumerated.

Those of net wins, and those of net wins and ties together.
"""


@dataclass(frozen=True, slots=True)
class LossBounds:
    """What objective perturbation has to know of the loss l(t) of one answer, t = worth1 - worth2.

    Parameters
    ----------
    name : str
        What the loss is called.
    slope : float
        G, upper bound of |l'|.
    reversal : float
        kappa, upper bound of how far l' moves at one t when the answer is reversed; a tie or a
        missing answer, whose slopes lie in between, moves it by no more. At least G and at most
        2 G.
    curvature : float
        kappa_2, upper bound of l''.
    asymmetry : float
        Upper bound of how far l'' grows at one t when the answer is reversed; 0 where it does not
        depend on the answer, as where the slope is F - y.
    logistic : bool
        Whether l'' = |l'| (1 - |l'|), as for the logistic loss alone.
    """

    name: str
    slope: float
    reversal: float
    curvature: float
    asymmetry: float = 0.0
    logistic: bool = False

    @property
    def answers_curve(self) -> bool:
        """Whether l'' depends on the answer."""
        return self.asymmetry > 0


LOGISTIC = LossBounds("log-likelihood", 1.0, 1.0, 0.25, logistic=True)


@immutable
@dataclass(frozen=True, slots=True)
class UnitSensitivity:
    """What one unit can change: the closed-form sensitivities of every released statistic.

    A unit has at most `rows` comparisons of at least 2 items, each pair at most once if `distinct`.

    Notes
    -----
    **Privacy.** Each property states the supremum over neighbours, or a bound on it where it says
    so. They are compared with all neighbours of small surveys of 3 to 5 items: in
    ``tests/privacy/test_sensitivity.py``, those of permutohedra and win matrices in
    ``tests/privacy/test_netnoise.py``, wins and losses, and comparisons per item, in
    ``tests/privacy/test_sides.py``, second moments in ``tests/mechanisms/test_dependence.py`` and,
    with ties, ``tests/mechanisms/test_tie_dependence.py``, those of groups and of naming order in
    ``tests/models/test_covariates.py``.
    """

    items: int
    rows: int
    distinct: bool
    adjacency: Adjacency

    @property
    def pairs(self) -> int:
        """Number of unordered pairs of items."""
        return self.items * (self.items - 1) // 2

    @property
    def effective_rows(self) -> int:
        """Comparisons of one unit that can differ: distinct pairs cannot outnumber the pairs."""
        return min(self.rows, self.pairs) if self.distinct else self.rows

    @property
    def _cut(self) -> int:
        return self.items**2 // 4

    def _star(self, edges: int) -> int:
        """Return max |sum of `edges` distinct oriented edges|^2 (an upper bound in between).

        A star has e^2 + e for e edges, and no graph more. For nets are at most degrees, whose
        squares sum to deg u + deg v over the edges (u, v), at most e + 1 each. A transitive round
        robin has net m-1, m-3, ..., 1-m, whose squares sum to m (m^2 - 1) / 3; no tournament
        exceeds it, nor does a part of one, whose net is a mean of those of tournaments. For
        m - 1 < e < pairs the smaller of the two and of m e bounds the maximum: |B s|^2 <= |BB'|
        |s|^2, and the Laplacian BB' of a graph on m items has norm at most m.
        """
        edges = min(edges, self.pairs)
        m = self.items
        return min(edges * (edges + 1), m * edges, m * (m * m - 1) // 3)

    @property
    def net_l1(self) -> int:
        """l1 sensitivity of `net`, and of `net` by group where every unit is in one group.

        One unit's net has l1 norm at most 2 min(rows, cut): twice the sum over the items with
        positive net, which the cut bounds, and 2 per edge. Replacing it by its negative attains
        twice that, under either adjacency; ties and missing answers are interior points. A unit
        that moves to another group takes its net from one and adds it to the other, no more than
        twice one net either; a covariate between -1 and 1 only shrinks a net.
        """
        sensitivity = min(self.effective_rows, self._cut) if self.distinct else self.rows
        return 4 * sensitivity

    def sides_l1(self, *, ties: bool) -> int:
        """l1 sensitivity of wins and losses of all items, in half wins if `ties`, else in wins.

        It is that of `net`: 4 min(rows, cut), or 4 rows where pairs may repeat. Every comparison
        adds 2 to the sum of all wins and losses, so two units differ by at most 4 rows, which a
        reversal of `rows` comparisons attains if they leave one side of a cut. Over distinct pairs
        the distance of units u and v is phi(u) - phi(v) for some phi, the sum over the items of
        s_i wins_i + t_i losses_i with signs s and t. Items are of four types by (s, t); let a be
        (+, +), b (-, -), p (+, -) and q (-, +) of them, m in all. A pair that i wins adds
        s_i + t_j to phi, one that j wins s_j + t_i, a tie their mean and no answer 0. So it adds
        to phi(u) - phi(v) at most the larger of both, or 0, less the smaller of both, or 0. That is
        4 between types p and q; 0 within each of these and between a and b; 2 for all others. In
        all, with r = p + q, a (a - 1) + b (b - 1) + 2 (a + b) r + 4 p q. Merging a and b adds
        2 a b, so let b = 0. As 4 p q <= r^2, the sum is at most (a + r)^2 - a: for a > 0 that is no
        more than m^2 - 1 <= 4 cut. For a = 0 the sum is 4 p q <= 4 cut.
        """
        return (2 if ties else 1) * self.net_l1

    @property
    def opponents_l1(self) -> int:
        """Sensitivity of the sum of s_i s_j over comparisons, for public numbers s of -1, 0 or 1.

        A unit's comparisons, at most `rows`, add -1 to 1 each; 0 where who compared whom is public.
        """
        return 0 if self.adjacency == "outcome" else 2 * self.effective_rows

    @property
    def net_l2(self) -> float:
        """l2 sensitivity of `net`: reversing the unit with the longest net doubles it."""
        return 2 * math.sqrt(self.longest)

    @property
    def net_permutohedra(self) -> Fraction:
        """How many permutohedra of pair differences hold all changes of `net`.

        K, the sum of the segments [-1, 1] (e_i - e_j) over all pairs, is where the sum over any
        set A of items is at most |A| (m - |A|), the pairs that leave it, and the total is 0. One
        unit's net sums over A to at most its edges that leave A: at most `rows`, and over distinct
        pairs at most |A| (m - |A|). As |A| (m - |A|) is at least m - 1, it lies in
        min(rows, m - 1) / (m - 1) K, or rows / (m - 1) K where pairs may repeat. A difference of
        two lies in twice that, as K is symmetric and convex. A star, or one pair again and again,
        reaches it in the sum over one item; a reversal doubles it.
        """
        return Fraction(self.net_linf, self.items - 1)

    @property
    def net_linf(self) -> int:
        """Largest change of one item's net: an item meets at most m - 1 others once each."""
        return 2 * (min(self.rows, self.items - 1) if self.distinct else self.rows)

    @property
    def longest(self) -> int:
        """Largest |net|^2 of one unit, or an upper bound of it."""
        return self._star(self.effective_rows) if self.distinct else 2 * self.rows**2

    @property
    def second_moments_l1(self) -> int:
        """l1 sensitivity of the sums over units of (net_i - net_j)^2, one for each pair i < j.

        One unit's squares q add up to m |net|^2 and are not negative, so two units' differ by at
        most twice m times the longest |net|^2. Over distinct pairs nets lie in the permutohedron.
        Let A be the pairs where q(v) > q(w): the sum of |q(v) - q(w)| is at most that of q(v) over
        A and of q(w) over the others. Both are convex, so largest at a ranking, whose squares are
        4 k^2 for k = 1 .. m - 1, m - k times each: no more than the c largest of these and the
        P - c largest, for some c. Small designs have their exact values, by enumeration.
        """
        exact = _SECOND_MOMENTS.get(self.items) if self.distinct else None
        return self.convex_moments_l1 if exact is None else exact[self.effective_rows][0]

    @property
    def convex_moments_l1(self) -> int:
        """Bound of :attr:`second_moments_l1` that holds for answers of any size up to 1 as well.

        It was proved by convexity alone: at most `rows` answers anywhere in [-1, 1] give nets in
        the convex hull of those of decided ones. Answers of a size up to c, squares c^2 times.
        """
        bound = 2 * self.items * self.longest
        if not self.distinct:
            return bound
        gaps = np.arange(self.items - 1, 0, -1)
        tops = np.append(0, np.cumsum(np.repeat(4 * gaps**2, self.items - gaps)))
        return min(bound, int((tops + tops[::-1]).max()))

    def moments_l1(self, *, ties: bool, expected: bool) -> int:
        """l1 sensitivity of second moments, with the squares of numbers of ties if `ties`.

        Without ties :attr:`second_moments_l1`, or :attr:`convex_moments_l1` if `expected` answers
        are taken off. With them the sum over units of T^2, T a unit's ties, stands beside the sums
        of (net_i - net_j)^2. Let f(c) be the longest |net|^2 of c answers. A unit with t ties
        has at most k - t decided answers, k = `rows`, so its squares add up to at most m f(k - t).
        Those of two units with t >= t' ties differ by at most what the moments of nets alone move,
        and by at most m f(k - t) + m f(k - t'); their T^2 by t^2 - t'^2. Both grow as t' falls, so
        t' = 0 is the worst, and the largest sum over t the bound. Small designs have their exact
        values, by enumeration, which holds the bound where who compared what is public. Repeated
        pairs have f(c) = 2 c^2. The second bound and t^2 are convex in t then, so at most the
        larger of 4 m k^2 and (2 m + 1) k^2: T costs nothing.

        Less what is expected, an answer adds -1 to 1 to T. T^2 is between 0 and k^2, and may move
        by that much beside the moments of nets.
        """
        nets = self.convex_moments_l1 if expected else self.second_moments_l1
        k = self.effective_rows
        m = self.items
        if not ties or not (expected or self.distinct):
            return nets
        if expected:
            return nets + k**2
        if m in _SECOND_MOMENTS:
            return _SECOND_MOMENTS[m][k][1]
        return max(min(nets, m * (self._star(k - t) + self._star(k))) + t**2 for t in range(k + 1))

    @property
    def named_first_l1(self) -> int:
        """Sensitivity of wins minus losses of the items named first: each answer adds 1 to -1."""
        return 2 * self.effective_rows

    @property
    def group_answers_l1(self) -> int:
        """l1 sensitivity of the comparisons per group: 0 where who compared what is public.

        All of a unit's comparisons, at most `rows`, count in its own group. One that takes its
        place counts in the same group or in another: the numbers move by at most the sum of both.
        Two units with `rows` comparisons each in two groups attain it.
        """
        return 0 if self.adjacency == "outcome" else 2 * self.effective_rows

    @property
    def pair_counts_l1(self) -> int:
        """l1 sensitivity of the comparisons per pair: 0 where they are public.

        Under replacement two sets of at most `rows` pairs differ in at most min(2 rows, pairs)
        places (an edge of both cancels); repeated pairs are bounded by the 2 rows edges.
        """
        if self.adjacency == "outcome":
            return 0
        return min(2 * self.effective_rows, self.pairs) if self.distinct else 2 * self.rows

    @property
    def pair_counts_linf(self) -> int:
        """Largest change of the comparisons of one pair: 1 where pairs are distinct, else `rows`.

        0 where they are public.
        """
        if self.adjacency == "outcome":
            return 0
        return 1 if self.distinct else self.rows

    @property
    def item_counts_l1(self) -> int:
        """l1 sensitivity of the comparisons per item: 0 where who compared whom is public.

        The distance of units u and v is phi(u) - phi(v) for some phi, the sum over the items of s_i
        times their comparisons, s_i = +-1. A comparison of i and j adds s_i + s_j to phi: 2 where
        both signs are +, -2 where both are -, 0 between the two. So with q items of sign + the
        distance is at most 2 for each comparison of u within these, and 2 for each of v within the
        other m - q. Over distinct pairs that are min(rows, q (q - 1) / 2) and
        min(rows, (m - q) (m - q - 1) / 2); where pairs may repeat, `rows` if there is a pair at
        all. Units of just these comparisons attain it, for every q.
        """
        if self.adjacency == "outcome":
            return 0
        most = 1 if self.distinct else self.rows
        within = [min(self.rows, most * math.comb(q, 2)) for q in range(self.items + 1)]
        both = zip(within, reversed(within), strict=True)
        return 2 * max(inside + outside for inside, outside in both)

    @property
    def item_counts_linf(self) -> int:
        """Largest change of the comparisons of one item: 0 where who compared whom is public.

        A unit compares an item with at most m - 1 others once each, or up to `rows` times, and may
        be replaced by one that does not compare it.
        """
        return 0 if self.adjacency == "outcome" else self.net_linf // 2

    def win_matrix_l1(self, *, ties: bool) -> int:
        """l1 sensitivity of the win matrix, in half wins if `ties`, else in wins.

        An answer adds one win in all to the cells of its pair, however it falls, so a unit's
        contribution has l1 norm at most `rows`; reversing every answer moves it by 2 rows.
        """
        return (4 if ties else 2) * self.effective_rows

    def win_matrix_l2(self, *, ties: bool) -> float:
        """l2 sensitivity of the win matrix, in half wins if `ties`, else in wins.

        The cells of a unit are not negative, so two units' difference is no longer than the two
        side by side. Over distinct pairs each is a sum of `rows` cells of at most 1, two halves
        being shorter; repeated pairs may all fall into one cell. Reversing every answer attains it.
        """
        longest = 2 * self.effective_rows if self.distinct else 2 * self.rows**2
        return (2 if ties else 1) * math.sqrt(longest)

    def slope_l1(self, slope: float, reversal: float) -> float:
        """Return the l1 sensitivity of the gradient of a summed loss, at any parameter.

        With G = `slope` and kappa = `reversal` as in :class:`LossBounds`, an edge that one of two
        units has carries at most G in the difference of their gradients, an edge of both at most
        kappa. The l1 norm is at most twice the weight that crosses a cut. Outcome adjacency: the
        edges are the same, so 2 kappa min(rows, cut). Replacement: with x edges of one unit only
        and s shared ones across the cut, x + 2 s <= 2 rows and x + s <= cut. As G <= kappa <= 2 G
        the weight G x + kappa s is largest where edges are shared only as far as the cut is too
        small for 2 rows of them. With repeated pairs an edge may carry G or kappa for each of its
        answers; on two items both units have the same edge.
        """
        if self.adjacency == "outcome":
            return 2.0 * reversal * (self.net_l1 // 4)
        if not self.distinct:
            return 2.0 * self.rows * (reversal if self.items == 2 else 2.0 * slope)
        cut = self._cut
        rows = self.effective_rows
        # no more edges are shared than the cut is too small for, as kappa <= 2 G
        shared = min(max(2 * rows - cut, 0), cut)
        single = max(min(2 * (rows - shared), cut - shared), 0)
        return 2.0 * (slope * single + reversal * shared)


@immutable
@dataclass(frozen=True, slots=True)
class RankingSensitivity:
    """How far replacing one complete ranking of `items` items can move counts of a sample.

    *Pairs* are the m (m - 1) / 2 counts of rankings that place item i before item j, i < j;
    *Borda* totals are the m sums of ranks.

    Notes
    -----
    **Privacy.** Every pair count moves by at most 1, and all of them move when a ranking is
    replaced by its reversal. For Borda totals let c = (m + 1) / 2: two ranks of an item differ by
    at most the sum of their distances to c. So the l1 distance is at most twice the sum of
    |k - c| over the ranks k, which is floor(m^2 / 2), and, by |x + y|_2 <= |x|_2 + |y|_2, the
    squared l2 distance at most four times that of (k - c)^2, m (m^2 - 1) / 3. A reversal attains
    both.
    """

    items: int

    @property
    def pairs_l1(self) -> int:
        """l1 sensitivity of the pair counts, and sensitivity of the score of any one order."""
        return self.items * (self.items - 1) // 2

    @property
    def pairs_l2(self) -> float:
        """l2 sensitivity of the pair counts."""
        return math.sqrt(self.pairs_l1)

    @property
    def borda_l2(self) -> float:
        """l2 sensitivity of the Borda totals."""
        return math.sqrt(self.items * (self.items**2 - 1) / 3)

    @property
    def borda_linf(self) -> int:
        """Maximum-norm sensitivity of the Borda totals."""
        return self.items - 1

    @property
    def borda_l1(self) -> int:
        """l1 sensitivity of the Borda totals.

        Two rankings place the items at ranks r and r', and |r - r'| <= |r - c| + |r' - c| with
        c = (m + 1) / 2: at most twice the sum of |k - c| over all ranks k, floor(m^2 / 2). A
        ranking and its reversal attain it.
        """
        return self.items**2 // 2


def _row_loss(lam: float, gamma: float, items: int) -> float:
    """Privacy loss of objective perturbation for one replaced comparison.

    The released minimiser theta and the noise w = -grad L(theta) - gamma theta are in bijection. So
    at a fixed theta the log density ratio is (|w'|_1 - |w|_1) / lam plus the log ratio of the
    Hessian determinants. Let q = |g| for the removed answer. Its part of the first term is at most
    2 q / lam and, because h = q (1 - q) for the logistic loss, det H / det H' is at most
    1 + 2 q (1 - q) / gamma (rank one over a matrix of at least gamma; the answer put in only raises
    det H'). The answer put in adds at most 2 / lam; on two items it shares the removed one's pair,
    and a reversal costs no more than a removal does at q = 1.

    The bound is concave in q; its stationary point solves
    2 q^2 + (2 lam - 2) q - (gamma + lam) = 0, and lies beyond 1 exactly when gamma >= lam. Then the
    determinant costs nothing and the loss is 4 / lam.
    """
    half = lam - 1.0
    q = min((gamma + lam) / (half + math.sqrt(half * half + 2.0 * (gamma + lam))), 1.0)
    removed = 2.0 * q / lam + math.log1p(2.0 * q * (1.0 - q) / gamma)
    return removed + (2.0 / lam if items > 2 else 0.0)


def objective_loss(
    sensitivity: UnitSensitivity, lam: float, gamma: float, bounds: LossBounds = LOGISTIC
) -> float:
    """Return the epsilon spent by objective perturbation: an upper bound.

    Given the scale `lam` of the Laplace noise w in the objective's linear term w'theta and the
    ridge gamma, positive, of its term gamma |theta|^2 / 2. Exact (a supremum) for the logistic loss
    of one comparison of three or more items.

    Notes
    -----
    **Privacy.** The minimiser theta and w = -grad L(theta) - gamma theta are in bijection, because
    L is convex. At a fixed theta the log ratio of densities is (|w'|_1 - |w|_1) / lam, at most
    ``slope_l1 / lam``, plus the log ratio of the determinants of the Hessians A + B and A + B',
    where A >= gamma I is what the units of both data sets share. B, of the removed unit, has rank
    at most r = min(c, m - 1) and trace at most 2 c kappa_2, and B' >= 0, so by the
    arithmetic-geometric mean

        log det (A + B) / det (A + B') <= log det (I + B / gamma)
        <= r log(1 + 2 c kappa_2 / (r gamma)).

    Outcome adjacency: where the curvature does not depend on the answers, B = B' and only the
    gradient counts. Under the log-loss of other links than the logit it does, but the units have
    the same edges: B <= B' + C with C of the same rank and of the trace 2 c `asymmetry`, which
    takes the place of kappa_2.
    For the logistic loss the bound is also at most `rows` times the loss of one replaced
    comparison (group privacy), which is smaller than the sum of the two suprema. That a ridge of at
    least lam makes the determinant free holds there and for no other loss or unit.

    References
    ----------
    Cai, Chakraborty and Wang (2023), Algorithm 1 and Theorem 2.1, whose printed ``lambda`` is
    inverted and whose determinant factor is squared.
    """
    gradient = sensitivity.slope_l1(bounds.slope, bounds.reversal) / lam
    # where the edges are the same only what depends on the answers can change the determinant
    curvature = bounds.asymmetry if sensitivity.adjacency == "outcome" else bounds.curvature
    if curvature == 0:
        return gradient
    c = sensitivity.effective_rows
    rank = min(c, sensitivity.items - 1)
    spent = gradient + rank * math.log1p(2.0 * c * curvature / (rank * gamma))
    if sensitivity.adjacency == "outcome" or not bounds.logistic:
        return spent
    return min(spent, c * _row_loss(lam, gamma, sensitivity.items))
