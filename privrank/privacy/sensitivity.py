"""Sensitivities: how far one unit can move each statistic, with proofs; and the noise for them.

All values in this module are public numbers. A *unit* contributes at most `rows` comparisons; with
``rows=1`` a single comparison is the unit. Neighbours differ by replacing one unit:

- ``"outcome"``: it is public who compared which pairs; only the unit's answers change;
- ``"replace"``: the unit may be replaced by any other, with other pairs or missing answers.

Lattices. `net` is wins minus losses, an integer per item (a tie adds 0). If ties are allowed, the
win matrix counts half wins and is therefore stored doubled. The gradient of the loss of one answer
is g (e_i - e_j) with |g| bounded; for the logistic log-loss |g| < 1.

All proofs use the same representation: the answers of a unit are oriented edges of a graph on the
items, and `net` is the sum of the edge vectors e_i - e_j. For any set S of items the edges inside S
cancel, so the sum of net over S is at most the number of edges that leave S. With distinct pairs
this is at most q (m - q) for |S| = q, hence at most ``floor(m^2 / 4)``, the largest cut.

**Noise.** Every comparison adds 1 to the net wins of one item and subtracts 1 from the net wins of
another. So the nets of two neighbours differ by a vector that sums to zero, and noise need not
protect the sum, which cannot change. A distribution is calibrated for the differences between
neighbours that :class:`UnitSensitivity` bounds, on a lattice of 1 / fineness of a net win.
`plans.choice` compares the variances of the distributions.

**Ties.** If the number of ties T is released in addition to net wins, both share epsilon by
:func:`tie_noise`. So does the number of answered tasks, by :func:`answered_noise`.

**Groups.** Suppose that the nets of several groups of respondents are released, each with
independent noise of one of these distributions, and that the answers of a unit lie in one group.
All vectors together then spend as much as one vector. A unit that stays in its group changes one
vector by at most the bound. A unit that moves removes its net u from one vector and adds a net v to
another. Every bound used here is the bound of twice a unit's net in a norm, so u and v each have at
most half of it. Losses of pure distributions add up to no more than epsilon (the integer
sensitivities below are even). For Gaussian noise, (u, v) is one vector with
|(u, v)| = sqrt(|u|^2 + |v|^2), at most sqrt(1/2) times the bound, on 2 m coordinates, for which
the noise is certified.

References: the derivations follow Cai, Chakraborty and Wang (2023), Proposition 2.1, with tight
constants.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from privrank.privacy.accounting import integer_scale
from privrank.privacy.knorm import CubeNoise, NetDistribution, PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.util.arrays import immutable

Adjacency = Literal["outcome", "replace"]
NoiseName = Literal["laplace", "gaussian", "zero-sum-laplace", "permutohedron"]

MAX_ITEMS: dict[NoiseName, int] = {"zero-sum-laplace": 200, "permutohedron": 50}
"""Largest number of items for which a distribution is drawn and simulated in about a second."""

INSTRUMENT_STEPS = 32
"""Bound of the instruments of contest covariates, in steps."""

_MIN_SCALE = 16.0
"""Scale in lattice steps above which noise is within tenths of a percent of its limit."""

_FINE_TIES = 8
"""Steps of permutohedron noise for one answer about an item, if ties are also released."""

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
"""Sensitivities of second moments by items and rows over distinct pairs, by enumeration.

The two numbers are for net wins alone, and for net wins and ties together.
"""


@dataclass(frozen=True, slots=True)
class LossBounds:
    """Bounds on the loss l(t) of one answer, for objective perturbation.

    The argument is t = worth1 - worth2.

    Parameters
    ----------
    name : str
        Name of the loss.
    slope : float
        G, an upper bound of |l'|.
    reversal : float
        kappa, an upper bound of the change of l' at fixed t if the answer is reversed. Ties and
        missing answers have slopes in between and change l' by no more. At least G and at most 2 G.
    curvature : float
        kappa_2, an upper bound of l''.
    asymmetry : float
        An upper bound of the increase of l'' at fixed t if the answer is reversed; 0 if l'' does
        not depend on the answer, for example if the slope is F - y.
    logistic : bool
        Whether l'' = |l'| (1 - |l'|), which holds only for the logistic loss.
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
    """Closed-form sensitivities of all released statistics.

    A unit has at most `rows` comparisons of at least 2 items, each pair at most once if `distinct`.
    Its net wins are multiplied by its design weight, a public whole number of at most `weight`.

    Notes
    -----
    **Privacy.** Each property is the supremum over neighbours, or a bound on the supremum if
    stated. Tests compare the properties with all neighbours of small surveys of 3 to 5 items:
    ``tests/privacy/test_sensitivity.py``; permutohedra and win matrices:
    ``tests/privacy/test_netnoise.py``; wins and losses, and comparisons per item:
    ``tests/privacy/test_sides.py``; second moments: ``tests/mechanisms/test_dependence.py`` and,
    with ties, ``tests/mechanisms/test_tie_dependence.py``; groups and naming order:
    ``tests/models/test_covariates.py``; design weights: ``tests/models/test_weights.py``.

    *Design weights.* The weight w of a unit is fixed before its answers, which alone change. So the
    weighted net wins change by w times the change of the net wins, and a bound in any norm is
    multiplied by the largest weight. A unit with this weight attains it if some unit attains the
    bound without weights. No statistic but net wins is released with weights under a finite
    epsilon, except the largest design effect
    (:func:`privrank.mechanisms.tallies.largest_design_effect`).
    """

    items: int
    rows: int
    distinct: bool
    adjacency: Adjacency
    weight: int = field(default=1, kw_only=True)

    @property
    def pairs(self) -> int:
        """Number of unordered pairs of items."""
        return self.items * (self.items - 1) // 2

    @property
    def effective_rows(self) -> int:
        """Largest number of comparisons of one unit, at most all distinct pairs."""
        return min(self.rows, self.pairs) if self.distinct else self.rows

    def _star(self, edges: int) -> int:
        """Return max |sum of `edges` distinct oriented edges|^2, or a bound.

        A star with e edges has e^2 + e, and no graph has more: nets are at most degrees, and the
        squares of the degrees sum to deg u + deg v over the edges (u, v), at most e + 1 each. A
        transitive round robin has net m-1, m-3, ..., 1-m, whose squares sum to m (m^2 - 1) / 3. No
        tournament exceeds this, nor does a part of a tournament, whose net is a mean of nets of
        tournaments. For m - 1 < e < pairs the maximum is bounded by the smallest of these two
        numbers and m e: |B s|^2 <= |BB'| |s|^2, and the Laplacian BB' of a graph on m items has
        norm at most m.
        """
        edges = min(edges, self.pairs)
        m = self.items
        return min(edges * (edges + 1), m * edges, m * (m * m - 1) // 3)

    @property
    def noises(self) -> tuple[NoiseName, ...]:
        """The distributions of noise that protect net wins."""
        return get_args(NoiseName)

    @property
    def net_l1(self) -> int:
        """l1 sensitivity of `net`, including `net` by group (one group per unit).

        One unit's net has l1 norm at most 2 min(rows, cut): twice the sum over the items with
        positive net, which the cut bounds, and 2 per edge. Replacing the net by its negative
        attains twice this norm, under either adjacency; ties and missing answers are interior
        points. A unit that moves to another group subtracts its net from one group and adds its net
        to the other, which is also at most twice one net. A covariate between -1 and 1 can only
        shrink a net.
        """
        sensitivity = min(self.rows, self.items**2 // 4) if self.distinct else self.rows
        return 4 * sensitivity * self.weight

    def sides_l1(self, *, ties: bool) -> int:
        """l1 sensitivity of wins and losses, in wins (half wins if `ties`).

        It equals the sensitivity of `net`: 4 min(rows, cut), or 4 rows if pairs may repeat. Every
        comparison adds 2 to the sum of all wins and losses, so two units differ by at most 4 rows.
        A reversal of `rows` comparisons attains this if they leave one side of a cut. With distinct
        pairs the distance of units u and v is phi(u) - phi(v) for some phi, the sum over the items
        of s_i wins_i + t_i losses_i with signs s and t. Items are of four types by (s, t). Let the
        numbers of items be a for (+, +), b for (-, -), p for (+, -) and q for (-, +), m in total. A
        pair that i wins adds s_i + t_j to phi, a pair that j wins adds s_j + t_i, a tie adds their
        mean, and no answer adds 0. So a pair adds to phi(u) - phi(v) at most the larger of the two
        sums (or 0) minus the smaller (or 0). This is 4 between types p and q; 0 within each of
        these types and between a and b; and 2 for all others. With r = p + q the total is
        a (a - 1) + b (b - 1) + 2 (a + b) r + 4 p q. Merging a and b adds 2 a b, so let b = 0.
        Because 4 p q <= r^2, the sum is at most (a + r)^2 - a. For a > 0 this is at most
        m^2 - 1 <= 4 cut. For a = 0 the sum is 4 p q <= 4 cut.
        """
        return (2 if ties else 1) * self.net_l1

    @property
    def opponents_l1(self) -> int:
        """Sensitivity of the sum of s_i s_j over comparisons, s in {-1, 0, 1}.

        The numbers s are public. A unit's comparisons, at most `rows`, add -1 to 1 each. The sum is
        constant, with sensitivity 0, if it is public who compared which pairs.
        """
        return 0 if self.adjacency == "outcome" else 2 * self.effective_rows

    @property
    def net_l2(self) -> float:
        """l2 sensitivity of `net`: reversing the unit with the longest net."""
        return 2 * self.weight * math.sqrt(self.longest)

    @property
    def net_permutohedra(self) -> Fraction:
        """Multiple of the permutohedron K that contains all changes of `net`.

        K is the sum of the segments [-1, 1] (e_i - e_j) over all pairs. It contains the points with
        total 0 whose sum over any set A of items is at most |A| (m - |A|), the number of pairs that
        leave A. The sum of one unit's net over A is at most the number of its edges that leave A:
        at most `rows`, and for distinct pairs at most |A| (m - |A|). Because |A| (m - |A|) is at
        least m - 1, the net lies in min(rows, m - 1) / (m - 1) K, or in rows / (m - 1) K if pairs
        may repeat. A difference of two nets lies in twice this set, because K is symmetric and
        convex. A star, or one repeated pair, attains the bound in the sum over one item; a reversal
        doubles it.
        """
        return Fraction(self.net_linf, self.items - 1)

    @property
    def net_linf(self) -> int:
        """Largest change of one item's net, which has at most m - 1 distinct pairs."""
        most = min(self.rows, self.items - 1) if self.distinct else self.rows
        return 2 * most * self.weight

    @property
    def longest(self) -> int:
        """Largest |net|^2 of one unit, or an upper bound."""
        return self._star(self.effective_rows) if self.distinct else 2 * self.rows**2

    @property
    def second_moments_l1(self) -> int:
        """l1 sensitivity of the sums of (net_i - net_j)^2 over units, all i < j.

        The squares q of one unit are nonnegative and add up to m |net|^2, so the squares of two
        units differ by at most 2 m times the largest |net|^2. With distinct pairs, nets lie in the
        permutohedron. Let A be the pairs with q(v) > q(w). The sum of |q(v) - q(w)| is at most the
        sum of q(v) over A plus the sum of q(w) over the other pairs. Both are convex, so they are
        largest at a ranking, whose squares are 4 k^2 for k = 1 .. m - 1, m - k times each. So for
        some c the bound is the sum of the c largest of these plus the sum of the P - c largest,
        where P is the number of pairs. Small designs have exact values, by enumeration.
        """
        exact = _SECOND_MOMENTS.get(self.items) if self.distinct else None
        return self.convex_moments_l1 if exact is None else exact[self.effective_rows][0]

    @property
    def convex_moments_l1(self) -> int:
        """Bound of :attr:`second_moments_l1` for answers anywhere in [-1, 1].

        The proof there uses convexity alone: the nets of at most `rows` answers in [-1, 1] lie in
        the convex hull of the nets of decided answers. For answers in [-c, c] multiply the bound by
        c^2.
        """
        bound = 2 * self.items * self.longest
        if not self.distinct:
            return bound
        gaps = np.arange(self.items - 1, 0, -1)
        tops = np.append(0, np.cumsum(np.repeat(4 * gaps**2, self.items - gaps)))
        return min(bound, int((tops + tops[::-1]).max()))

    def moments_l1(self, *, ties: bool, expected: bool) -> int:
        """l1 sensitivity of second moments, with squared ties if `ties`.

        Without ties it is :attr:`second_moments_l1`, or :attr:`convex_moments_l1` if `expected`
        answers are subtracted. With ties the statistic has the sum over units of T^2, where T is
        the number of ties of a unit, in addition to the sums of (net_i - net_j)^2. Let f(c) be the
        largest |net|^2 of c answers. A unit with t ties has at most k - t decided answers,
        k = `rows`, so its squares add up to at most m f(k - t). The squares of two units with
        t >= t' ties differ by at most the sensitivity of the moments of nets alone, and by at most
        m f(k - t) + m f(k - t'); their T^2 differ by t^2 - t'^2. Both increase as t' decreases, so
        t' = 0 is the worst case, and the bound is the largest sum over t. Small designs have exact
        values, by enumeration, which satisfy the bound if it is public who compared which pairs.
        For repeated pairs f(c) = 2 c^2. The second bound and t^2 are then convex in t, so their sum
        is at most the larger of 4 m k^2 and (2 m + 1) k^2, and T adds nothing.

        If expected answers are subtracted, an answer adds -1 to 1 to T. T^2 is between 0 and k^2,
        and may change by this much in addition to the moments of nets.
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
    def group_answers_l1(self) -> int:
        """l1 sensitivity of the comparisons per group, 0 if pairs are public.

        All of a unit's comparisons, at most `rows`, count in its own group. The unit that replaces
        it counts in the same group or in another, so the numbers change by at most the sum of both.
        Two units with `rows` comparisons each in two groups attain the bound.
        """
        return 0 if self.adjacency == "outcome" else 2 * self.effective_rows

    @property
    def pair_counts_l1(self) -> int:
        """l1 sensitivity of the comparisons per pair: 0 if they are public.

        Under replacement, two sets of at most `rows` distinct pairs differ in at most
        min(2 rows, pairs) pairs, because a common pair cancels. Repeated pairs are bounded by the
        total of 2 rows edges.
        """
        moved = min(2 * self.effective_rows, self.pairs) if self.distinct else 2 * self.rows
        return 0 if self.adjacency == "outcome" else moved

    @property
    def pair_counts_linf(self) -> int:
        """Largest change of the comparisons of one pair.

        It is 0 if they are public, 1 if pairs are distinct, and `rows` in all other cases.
        """
        most = 1 if self.distinct else self.rows
        return 0 if self.adjacency == "outcome" else most

    @property
    def item_counts_l1(self) -> int:
        """l1 sensitivity of the comparisons per item, 0 if pairs are public.

        The distance of units u and v is phi(u) - phi(v) for some phi, the sum over the items of s_i
        times their comparisons, s_i = +-1. A comparison of i and j adds s_i + s_j to phi: 2 if both
        signs are +, -2 if both are -, and 0 if they differ. So with q items of sign + the distance
        is at most 2 for each comparison of u within these items, and 2 for each comparison of v
        within the other m - q items. With distinct pairs these numbers are at most
        min(rows, q (q - 1) / 2) and min(rows, (m - q) (m - q - 1) / 2). If pairs may repeat, they
        are `rows` if there is any pair. Units with only these comparisons attain the bound for
        every q.
        """
        if self.adjacency == "outcome":
            return 0
        most = 1 if self.distinct else self.rows
        within = [min(self.rows, most * math.comb(q, 2)) for q in range(self.items + 1)]
        return 2 * max(map(sum, zip(within, reversed(within), strict=True)))

    @property
    def item_counts_linf(self) -> int:
        """Largest change of the comparisons of one item: 0 if these are public.

        A unit compares an item with at most m - 1 others once each, or up to `rows` times, and may
        be replaced by a unit that does not compare the item.
        """
        return 0 if self.adjacency == "outcome" else self.net_linf // 2

    def win_matrix_l1(self, *, ties: bool) -> int:
        """l1 sensitivity of the win matrix, in wins (half wins if `ties`).

        Every answer adds a total of one win to the cells of its pair, so a unit's contribution has
        l1 norm at most `rows`; reversing every answer changes it by 2 rows.
        """
        return (4 if ties else 2) * self.effective_rows

    def win_matrix_l2(self, *, ties: bool) -> float:
        """l2 sensitivity of the win matrix, in wins (half wins if `ties`).

        The cells of a unit are nonnegative, so the difference of two units is not longer than their
        concatenation. With distinct pairs each unit has `rows` cells of at most 1 (two halves are
        shorter); repeated pairs may all be in one cell. Reversing every answer attains the bound.
        """
        longest = 2 * self.effective_rows if self.distinct else 2 * self.rows**2
        return (2 if ties else 1) * math.sqrt(longest)

    def slope_l1(self, slope: float, reversal: float) -> float:
        """Return the l1 sensitivity of the gradient of a summed loss.

        The bound holds at any parameter. Let G = `slope` and kappa = `reversal` as in
        :class:`LossBounds`. In the difference of the gradients of two units, an edge of only one
        unit has a weight of at most G, and an edge of both has a weight of at most kappa. The l1
        norm is at most twice the weight across a cut. For outcome adjacency the edges are the same,
        so the bound is 2 kappa min(rows, cut). For replacement, with x edges of only one unit and s
        shared edges across the cut, x + 2 s <= 2 rows and x + s <= cut. Because G <= kappa <= 2 G,
        the weight G x + kappa s is largest if edges are shared only to the extent that the cut has
        fewer than 2 rows edges. With repeated pairs an edge may have the weight G or kappa for each
        of its answers; with two items both units have the same edge.
        """
        if self.adjacency == "outcome":
            return 2.0 * reversal * (self.net_l1 // 4)
        if not self.distinct:
            return 2.0 * self.rows * (reversal if self.items == 2 else 2.0 * slope)
        cut = self.items**2 // 4
        rows = self.effective_rows
        # share edges only to the extent that the cut has fewer than 2 rows edges (kappa <= 2 G)
        shared = min(max(2 * rows - cut, 0), cut)
        single = max(min(2 * (rows - shared), cut - shared), 0)
        return 2.0 * (slope * single + reversal * shared)


@immutable
@dataclass(frozen=True, slots=True)
class RankingSensitivity:
    """Sensitivities of counts to replacing one complete ranking of `items` items.

    *Pairs* are the m (m - 1) / 2 counts of rankings that place item i before item j, i < j.
    *Borda* totals are the m sums of ranks.

    Notes
    -----
    **Privacy.** Every pair count changes by at most 1, and all of them change if a ranking is
    replaced by its reversal. For Borda totals let c = (m + 1) / 2: two ranks of an item differ by
    at most the sum of their distances to c. So the l1 distance is at most twice the sum of
    |k - c| over the ranks k, which is floor(m^2 / 2). By |x + y|_2 <= |x|_2 + |y|_2, the squared
    l2 distance is at most four times the sum of (k - c)^2, which is m (m^2 - 1) / 3. A reversal
    attains both bounds.
    """

    items: int

    @property
    def pairs_l1(self) -> int:
        """l1 sensitivity of the pair counts, and of the score of one order."""
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
        c = (m + 1) / 2. So the distance is at most twice the sum of |k - c| over all ranks k, which
        is floor(m^2 / 2). A ranking and its reversal attain the bound.
        """
        return self.items**2 // 2


def _row_loss(lam: float, gamma: float, items: int) -> float:
    """Return the loss of objective perturbation for one replaced comparison.

    The released minimiser theta and the noise w = -grad L(theta) - gamma theta are in bijection. So
    at a fixed theta the log density ratio is (|w'|_1 - |w|_1) / lam plus the log ratio of the
    Hessian determinants. Let q = |g| for the removed answer. Its part of the first term is at most
    2 q / lam. Because h = q (1 - q) for the logistic loss, det H / det H' is at most
    1 + 2 q (1 - q) / gamma (a rank-one change of a matrix of at least gamma; the inserted answer
    can only increase det H'). The inserted answer adds at most 2 / lam. With two items it has the
    same pair as the removed answer, and the loss of a reversal is at most the loss of a removal at
    q = 1.

    The bound is concave in q. Its stationary point solves
    2 q^2 + (2 lam - 2) q - (gamma + lam) = 0, and exceeds 1 exactly if gamma >= lam. The
    determinant then adds nothing, and the loss is 4 / lam.
    """
    half = lam - 1.0
    q = min((gamma + lam) / (half + math.sqrt(half * half + 2.0 * (gamma + lam))), 1.0)
    removed = 2.0 * q / lam + math.log1p(2.0 * q * (1.0 - q) / gamma)
    return removed + (2.0 / lam if items > 2 else 0.0)


def objective_loss(
    sensitivity: UnitSensitivity, lam: float, gamma: float, bounds: LossBounds = LOGISTIC
) -> float:
    """Return an upper bound of the epsilon spent by objective perturbation.

    `lam` is the scale of the Laplace noise w in the objective's linear term w'theta, and `gamma` is
    the positive ridge of its term gamma |theta|^2 / 2. The bound is exact (a supremum) for the
    logistic loss of one comparison of three or more items.

    Notes
    -----
    **Privacy.** The minimiser theta and w = -grad L(theta) - gamma theta are in bijection, because
    L is convex. At a fixed theta the log ratio of densities is (|w'|_1 - |w|_1) / lam, at most
    ``slope_l1 / lam``, plus the log ratio of the determinants of the Hessians A + B and A + B',
    where A >= gamma I is the common part of both data sets. B, the part of the removed unit, has
    rank at most r = min(c, m - 1) and trace at most 2 c kappa_2, and B' >= 0. So by the inequality
    of arithmetic and geometric means

        log det (A + B) / det (A + B') <= log det (I + B / gamma)
        <= r log(1 + 2 c kappa_2 / (r gamma)).

    Outcome adjacency: if the curvature does not depend on the answers, B = B' and only the gradient
    counts. For the log-loss of links other than the logit it does depend on them, but the units
    have the same edges: B <= B' + C, where C has the same rank and the trace 2 c `asymmetry`, which
    replaces kappa_2. For the logistic loss the bound is also at most `rows` times the loss of one
    replaced comparison (group privacy), which is smaller than the sum of the two suprema. Only in
    this case does a ridge of at least lam make the contribution of the determinant zero.

    References
    ----------
    Cai, Chakraborty and Wang (2023), Algorithm 1 and Theorem 2.1, whose printed ``lambda`` is
    inverted and whose determinant factor is squared.
    """
    gradient = sensitivity.slope_l1(bounds.slope, bounds.reversal) / lam
    # with the same edges, only curvature that depends on the answers can change the determinant
    curvature = bounds.asymmetry if sensitivity.adjacency == "outcome" else bounds.curvature
    if curvature == 0:
        return gradient
    c = sensitivity.effective_rows
    rank = min(c, sensitivity.items - 1)
    spent = gradient + rank * math.log1p(2.0 * c * curvature / (rank * gamma))
    if sensitivity.adjacency == "outcome" or not bounds.logistic:
        return spent
    return min(spent, c * _row_loss(lam, gamma, sensitivity.items))


@immutable
@dataclass(frozen=True, slots=True)
class PartNoise:
    """Noise of one part of a release, on its own lattice.

    Parameters
    ----------
    distribution : Distribution
        Distribution of the noise, in lattice steps.
    sensitivity : int
        The largest change of the released statistic by one unit, in lattice steps and in the norm
        of the distribution.
    fineness : int
        Lattice steps per unit of the statistic, such as a net win: the release is
        ``distribution.draw(fineness * statistic, rng)``.
    rho : float or None
        Zero-concentrated privacy of Gaussian noise; None for a pure distribution.
    name : str
        The corresponding value of the argument ``noise=``; "laplace" for parts that this argument
        does not affect.
    """

    distribution: NetDistribution | CubeNoise
    sensitivity: int
    fineness: int = 1
    rho: float | None = None
    name: NoiseName = "laplace"


def net_noise(
    sensitivity: UnitSensitivity,
    name: NoiseName,
    epsilon: float,
    delta: float = 0.0,
    *,
    ties: bool = False,
) -> PartNoise:
    """Return the noise that protects one vector of net wins.

    Parameters
    ----------
    sensitivity : UnitSensitivity
        The largest changes by one unit.
    name : str
        The name of the distribution.
    epsilon, delta : float
        The guarantee; pure distributions use only epsilon.
    ties : bool
        Whether steps must be fine enough for the release of the number of ties (:func:`tie_noise`).

    Raises
    ------
    ValueError
        If the distribution is not available for this number of items, or if Gaussian noise has no
        delta.

    Notes
    -----
    **Privacy.** The net u of one unit, times the fineness L, takes at most h steps. For discrete
    and zero-sum Laplace noise, h is L times half the l1 sensitivity, 2 min(rows, cut). For
    permutohedron noise, u lies in half of `net_permutohedra` times the permutohedron, and the
    fineness is such that L times that half is the integer h. All are calibrated at 2 h. For
    Gaussian noise see :func:`privrank.privacy.accounting.integer_scale`.
    """
    least = _FINE_TIES * (sensitivity.items - 1) if ties else 1
    noise = _calibrated(sensitivity, name, epsilon, delta, least)
    if noise.sensitivity % 2:
        raise AssertionError(f"the steps of one unit's net are not whole: {noise!r}")
    return noise


def _calibrated(
    sensitivity: UnitSensitivity, name: NoiseName, epsilon: float, delta: float, least: int
) -> PartNoise:
    m = sensitivity.items
    if m > MAX_ITEMS.get(name, m):
        raise ValueError(
            f"noise={name!r} is available for at most {MAX_ITEMS[name]} items, got {m}. Use "
            f"noise='auto' or 'laplace'."
        )
    if name not in sensitivity.noises:
        raise ValueError(
            f"noise={name!r} has no proof for totals and answered tasks together. Leave noise= out."
        )
    if name == "laplace" or math.isinf(epsilon):
        return PartNoise(DiscreteLaplace.calibrate(sensitivity.net_l1, epsilon), sensitivity.net_l1)
    if name == "gaussian":
        if delta <= 0:
            raise ValueError(
                "noise='gaussian' needs a delta above 0. Pass delta=, well below 1 / nobs, or use "
                "another noise."
            )
        scale, fine = integer_scale(epsilon, delta, sensitivity.net_l2, 2 * m)
        rho = 0.5 * (fine * sensitivity.net_l2 / scale) ** 2
        return PartNoise(DiscreteGaussian(scale), fine * sensitivity.net_linf, fine, rho, name)
    if name == "zero-sum-laplace":
        return _zero_sum(m, sensitivity.net_l1, epsilon)
    # one unit's net is half of the change, and must be an integer number of steps
    single = sensitivity.net_permutohedra / 2
    body = PermutohedronNoise.calibrate(m, 0.5 * epsilon, single, least)
    return PartNoise(
        replace(body, fineness=1), 2 * int(body.fineness * single), body.fineness, name=name
    )


def weighted_noise(sensitivity: UnitSensitivity, weight: int, epsilon: float) -> PartNoise:
    """Return the noise of net wins multiplied by public numeric covariates.

    Notes
    -----
    **Privacy.** A unit's weights are public, and its contribution to the statistic is every weight
    times its net wins. So the statistic changes by at most the sum of the unit's absolute weights,
    at most `weight`, times the change of its net wins, at most
    :attr:`privrank.privacy.sensitivity.UnitSensitivity.net_l1`.
    """
    steps = sensitivity.net_l1 * weight
    return PartNoise(DiscreteLaplace.calibrate(steps, epsilon), steps)


def _zero_sum(cells: int, l1: int, epsilon: float) -> PartNoise:
    # the power of two for which the scale is at least `_MIN_SCALE`
    fine = int(2 ** max(0, math.ceil(math.log2(_MIN_SCALE / (l1 / epsilon)))))
    return PartNoise(
        ZeroSumLaplace.calibrate(cells, fine * l1, epsilon),
        fine * l1,
        fine,
        name="zero-sum-laplace",
    )


def side_noise(
    sensitivity: UnitSensitivity, name: NoiseName, epsilon: float, *, ties: bool
) -> PartNoise:
    """Return the noise of the wins of all items and of their negative losses.

    Steps are wins (half wins if `ties`) divided by the fineness.

    Raises
    ------
    ValueError
        If the distribution does not apply, or is not available for this number of items.

    Notes
    -----
    **Privacy.** These 2 m integers sum to zero, because every comparison is won and lost once. One
    unit changes them by at most :meth:`privrank.privacy.sensitivity.UnitSensitivity.sides_l1` in
    l1, to which both distributions are calibrated (:class:`ZeroSumLaplace`,
    :class:`privrank.privacy.noise.DiscreteLaplace`).
    """
    l1 = sensitivity.sides_l1(ties=ties)
    cells = 2 * sensitivity.items
    if name == "laplace":
        return PartNoise(DiscreteLaplace.calibrate(l1, epsilon), l1)
    if name == "zero-sum-laplace" and cells <= MAX_ITEMS[name]:
        return _zero_sum(cells, l1, epsilon)
    raise ValueError(
        f"noise={name!r} cannot be used for the wins and losses released with "
        f"pair_counts='proportional'. Use noise='auto' or 'laplace', or for at most "
        f"{MAX_ITEMS['zero-sum-laplace'] // 2} items 'zero-sum-laplace'."
    )


def tie_noise(
    sensitivity: UnitSensitivity, nets: PartNoise, net_epsilon: float, epsilon: float
) -> PartNoise:
    """Return the noise of the number of ties T, released in addition to net wins.

    `nets` and `net_epsilon` are the noise of net wins and its epsilon, to which T adds its own
    `epsilon`. The sensitivity is the number of ties of a unit that the noise of its net wins does
    not cover.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one unit, with at most k answers. A unit with t ties
    has at most k - t decided answers, so an answer that changes T cannot also change net wins. Let
    H be the steps of net wins that are calibrated to net_epsilon, each with a loss of at most
    net_epsilon / H, and let T have discrete Laplace noise of scale 1 / b. A replacement that moves
    net wins by S steps and T by d has a loss of at most S net_epsilon / H + b |d|. The proof shows
    that S + f |d| is at most H + f (k - q). So the total loss is at most net_epsilon + epsilon if
    b <= f net_epsilon / H and b <= epsilon / (k - q). (A smaller f is also valid: S is at most H,
    and if |d| is at most k - q no other condition is needed.)

    Let the first of two units have more ties, t. Then d is largest, and so is the net of the other
    unit, if the other unit has no ties. If net wins are released by group, and the other unit is in
    another group, S is the sum of the steps of both nets. The bounds below are for such a sum.

    *Noise in l1*, L steps in a net win: q = c = `net_l1` / 4, f = 2 L, H = 4 c L. S is at most
    L (2 c + 2 min(k - t, c)), and S + 2 L t increases with t up to k - c and is constant beyond. So
    the l1 sensitivity of (net, w T) is 4 c + w (k - c) for 0 <= w <= 2. It is attained by reversing
    c answers across a cut and replacing k - c answers within its sides by ties. Net wins weighted
    by public covariates of a unit, with at most X steps in total, move X times as far: L is X.

    *Permutohedron noise*, whose steps are integers: S is the largest value of
    ceil(L |d(A)| / c_A) over sets A of items, where d(A) is the sum of the change over A and
    c_A = |A| (m - |A|). Here q = min(k, m - 1), or k if pairs repeat, f = floor(L / (m - 1)) and
    H = 2 L q / (m - 1), which is an integer. |d(A)| is at most min(k, c_A) + min(k - t, c_A), or
    2 k - t if pairs repeat. If q = k, S is at most ceil(L (2 k - t) / (m - 1)), because
    c_A >= m - 1, and this is at most H - f t. If not, q = m - 1 and H = 2 L. Let
    r = L - f (m - 1), and let s = min(k, c_A) - (t - max(k - c_A, 0)) be the remaining answers of
    the first unit. Then S is at most L + ceil(L s / c_A), whether k >= c_A or not. For s >= m - 1,
    f t <= f (k - m + 1) suffices. For smaller s,
    ceil(L s / c_A) <= ceil(L s / (m - 1)) <= f s + r, hence S <= 2 L - f (m - 1 - s), while
    t <= k - s.
    """
    if math.isinf(net_epsilon):
        return PartNoise(DiscreteLaplace(0.0), 0)
    # f of the proof
    steps = (
        nets.fineness // (sensitivity.items - 1)
        if nets.name == "permutohedron"
        else 2 * nets.sensitivity // sensitivity.net_l1
    )
    scales = [DiscreteLaplace.calibrate(-(-nets.sensitivity // steps), net_epsilon)]
    left = ties_left(sensitivity, nets.name)
    if left:
        scales.append(DiscreteLaplace.calibrate(left, epsilon))
    return PartNoise(max(scales, key=lambda noise: noise.scale), left)


def answered_noise(sensitivity: UnitSensitivity, net_epsilon: float, named: int) -> PartNoise:
    """Return the noise of the number U of answered tasks, released in addition to the totals T.

    It spends no epsilon beyond `net_epsilon`, the epsilon of T. An answer names `named` items.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace all answers of one unit, including which of its tasks
    are unanswered. An answer names k items, 1 or 2, and D = `net_l1` is the l1 sensitivity of
    (T, k U) (:class:`privrank.privacy.offered.OfferedSensitivity`). T has discrete Laplace noise of
    scale D / net_epsilon, in answers, or for k = 2 zero-sum Laplace noise of this scale. U has
    independent discrete Laplace noise of scale D / (k net_epsilon). If T changes by x and U by u,
    the loss is at most |x|_1 net_epsilon / D + |u| k net_epsilon / D, which is at most net_epsilon.
    Other distributions of T have no such proof, and :func:`net_noise` refuses them.
    """
    return PartNoise(DiscreteLaplace.calibrate(sensitivity.net_l1 // named, net_epsilon), 0)


def ties_left(sensitivity: UnitSensitivity, name: NoiseName) -> int:
    """Return the number of a unit's ties not covered by the noise of net wins."""
    paid = (
        min(sensitivity.rows, sensitivity.items - 1)
        if name == "permutohedron" and sensitivity.distinct
        else sensitivity.net_l1 // 4
    )
    return sensitivity.effective_rows - paid


def cell_noise(
    sensitivity: UnitSensitivity, name: NoiseName, epsilon: float, delta: float, *, ties: bool
) -> PartNoise:
    """Return the noise of the cells of a win matrix, by l1 or l2 sensitivity.

    Steps are wins (half wins if `ties`) divided by the fineness.

    Notes
    -----
    **Privacy.** Discrete Laplace noise of scale l1 / epsilon is epsilon-private for a statistic
    that one unit moves by l1 (:class:`privrank.privacy.noise.DiscreteLaplace`). Gaussian noise has
    the delta of :func:`privrank.privacy.accounting.integer_delta` at the distance l2. The number of
    coordinates is at most twice the number of cells of a table, because a unit that moves to
    another group changes two tables. `sensitivity` gives the distances.
    """
    l1 = sensitivity.win_matrix_l1(ties=ties)
    if name == "laplace" or math.isinf(epsilon):
        return PartNoise(DiscreteLaplace.calibrate(l1, epsilon), l1)
    # Gaussian: certified for the cells of two tables, because a unit may change its group
    l2 = sensitivity.win_matrix_l2(ties=ties)
    scale, fine = integer_scale(epsilon, delta, l2, 4 * sensitivity.pairs)
    steps = (2 if ties else 1) * (1 if sensitivity.distinct else sensitivity.rows)
    rho = 0.5 * (fine * l2 / scale) ** 2
    return PartNoise(DiscreteGaussian(scale), fine * steps, fine, rho, name)


def count_noise(sensitivity: UnitSensitivity, epsilon: float) -> PartNoise:
    """Return the noise of the comparisons per pair with the smallest variance.

    Notes
    -----
    **Privacy.** One unit moves the counts by at most
    :attr:`privrank.privacy.sensitivity.UnitSensitivity.pair_counts_l1` in l1 and each by at most
    `pair_counts_linf`, to which :func:`least_noise` is calibrated.
    """
    return least_noise(
        sensitivity.pairs, sensitivity.pair_counts_l1, sensitivity.pair_counts_linf, epsilon
    )


def item_noise(sensitivity: UnitSensitivity, epsilon: float) -> PartNoise:
    """Return the noise of the comparisons per item with the smallest variance.

    Notes
    -----
    **Privacy.** One unit moves the counts by at most
    :attr:`privrank.privacy.sensitivity.UnitSensitivity.item_counts_l1` in l1 and each by at most
    `item_counts_linf`, to which :func:`least_noise` is calibrated.
    """
    return least_noise(
        sensitivity.items, sensitivity.item_counts_l1, sensitivity.item_counts_linf, epsilon
    )


def contest_noise(sensitivity: UnitSensitivity, number: int, epsilon: float) -> PartNoise:
    """Return the noise of the sums of answers times the instruments of contest covariates.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace the answers of one unit. The `number` instruments v_k
    are public whole numbers of at most `INSTRUMENT_STEPS` in size, and an answer y is -1, 0 or 1.
    So a changed answer moves the sum of v_k y by at most 2 INSTRUMENT_STEPS, and a unit, with at
    most `rows` answers, moves it by at most h = 2 rows INSTRUMENT_STEPS. The l1 sensitivity of all
    sums is at most `number` times h, and each sum moves by at most h, to which :func:`least_noise`
    is calibrated. A unit whose instruments all have the largest size attains both bounds.
    """
    most = 2 * sensitivity.effective_rows * INSTRUMENT_STEPS
    return least_noise(number, number * most, most, epsilon)


def least_noise(size: int, l1: int, linf: int, epsilon: float) -> PartNoise:
    """Return the noise of `size` counts with the smallest variance.

    `l1` and `linf` are the sensitivities of the counts.

    Notes
    -----
    **Privacy.** The counts of a unit are integers. Discrete Laplace noise is calibrated to the l1
    sensitivity. For cube noise each count moves by at most `linf`, so the loss is at most epsilon
    (:class:`privrank.privacy.knorm.CubeNoise`). The choice depends on public numbers alone.
    """
    laplace = DiscreteLaplace.calibrate(l1, epsilon)
    # the continuous limits of both variances: (D + 1) (D + 2) linf^2 / 3 and 2 l1^2
    if (size + 1) * (size + 2) * linf**2 < 6 * l1**2:
        with suppress(ValueError):  # epsilon is too small for 64-bit integers
            cube = CubeNoise.calibrate(size, linf, epsilon)
            if cube.variance < laplace.variance:
                return PartNoise(cube, linf)
    return PartNoise(laplace, l1)
