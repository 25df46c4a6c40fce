"""Noise of integer vectors: K-norm noise, and Laplace noise that sums to zero.

**K-norm noise** for cubes (pair counts) and permutohedra (Borda totals, net wins).

Nested bodies B_0, B_1, ... of lattice points are defined such that one unit can move a point of B_k
no further than into B_(k+s). A radius R is drawn with P(R = k) proportional to |B_k| exp(-rate k),
then a uniform point of B_R. So a point x has probability proportional to the sum of exp(-rate k)
over the k with x in B_k.

**Privacy.** Let v_k = P(R = k) / |B_k|. Then P(x) is the sum of v_k over the k with x in B_k.
If x in B_k implies x + d in B_(k+1), and v_k <= e^r v_(k+1) for all k of the support, then
P(x) <= e^r times the sum of v_(k+1) over those k, which is at most e^r P(x + d). Over s steps the
loss is r s. The support may start anywhere, and v may decrease more slowly than exp(-rate k): the
radius is drawn from integer weights for which this chain of inequalities holds exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
from scipy.special import gammaln

from privrank.privacy.noise import (
    LARGEST,
    DiscreteGaussian,
    DiscreteLaplace,
    clipped_sum,
    draw_below,
    draw_one_each,
    geometric,
)
from privrank.util.arrays import AnyArray, IntArray, Rng, immutable, readonly_copy

SLACK = 2.0**-26
"""Privacy loss per step reserved for rounding the weights of the radius."""

_MASS_BITS = 41
_TAIL_BITS = 13
"""The largest weight of a radius is 2^41; weights below 2^28 are part of the tail."""

_LARGEST_TABLE = 2**21
_LARGEST_RADIUS = 2**29
"""Limits for which the weights add up to at most 2^62, and coordinates fit into 32 bits."""

_MAX_PROPOSED = 2**16
"""Largest number of random numbers proposed at a time."""

_LARGEST_SCALE = 2.0**44
"""Largest scale; larger noise would use most of the 64-bit range to which sums are clipped."""


def step_rate(sensitivity: int, epsilon: float) -> float:
    """Return the rate per step: rate + SLACK is at most epsilon / sensitivity."""
    rate = math.nextafter(epsilon, 0.0) / sensitivity * (1.0 - 2.0**-50) - SLACK
    if rate <= 10 * SLACK:
        raise ValueError(
            f"epsilon is too small for this statistic, got {epsilon}: the noise would exceed "
            f"64-bit integers. Use a larger epsilon."
        )
    return rate


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class Radius:
    """Distribution of the radius of K-norm noise.

    P(k) is nearly proportional to (k + offset)^dimension e^(-rate k) for integers k >= start.
    `weights` are integers for the radii low, low + 1, ...; larger radii have a geometric tail with
    total weight `tail` and scale `scale`.

    Notes
    -----
    **Privacy.** The bodies have |B_k| = c (k + offset)^dimension points. Rounding to an integer
    changes no weight of the table by more than a relative 2^-29, because none is below 2^28, and
    logarithms are computed to 2^-36. So v_k / v_(k+1) is at most e^(rate + SLACK). At the upper end
    K of the table the ratio of the tail is at least e^-rate (1 + 1 / (K + offset))^dimension, which
    is e^-rate |B_(K+1)| / |B_K| and at least e^-rate |B_(k+1)| / |B_k| for all k >= K. The total of
    the tail is rounded up to an integer. So v_k <= e^rate v_(k+1) from K on.
    """

    low: int
    weights: IntArray
    tail: int
    scale: float

    @classmethod
    def build(cls, offset: float, dimension: int, rate: float) -> Radius:
        """Return the distribution for bodies with c (k + offset)^dimension points."""
        # the mode of (k + offset)^D e^(-rate k), and its spread on either side
        start = 0 if offset > 0 else 1
        mode = max(dimension / rate - offset, float(start))
        spread = (math.sqrt(dimension) + 1.0) / rate
        low = max(start, math.floor(mode - 8 * spread))
        high = math.ceil(mode + 16 * spread) + 1
        if high - low > _LARGEST_TABLE or high > _LARGEST_RADIUS:
            raise ValueError(
                f"epsilon is too small for this many items: the noise would have a radius of "
                f"{mode:.0f} lattice steps, with a privacy loss of {rate:.3g} each. Use a larger "
                f"epsilon or fewer rows per respondent."
            )
        k = np.arange(low, high + 1)
        # relative to the mode, which avoids rounding of large logarithms
        log = dimension * np.log1p((k - mode) / (mode + offset)) - rate * (k - mode)
        log -= log.max()
        # log-concave: an interval of radii around the mode; beyond it the weights decrease
        support = log > -_TAIL_BITS * math.log(2.0)
        k = k[support]
        weights = readonly_copy(np.rint(np.exp(log[support]) * 2.0**_MASS_BITS), np.int64)
        # a slower decay than needed is on the private side
        decay = min(
            (rate - dimension * math.log1p(1.0 / (float(k[-1]) + offset))) * (1.0 - 1e-9), 500.0
        )
        tail = math.ceil(float(weights[-1]) * (1.0 + 1e-9) / math.expm1(decay))
        return cls(int(k[0]), weights, tail, 1.0 / decay)

    def draw(self, rng: Rng) -> int:
        """Return a radius: exact and secure, or seeded when `rng` is given."""
        cumulated = np.cumsum(self.weights)
        total = int(cumulated[-1])
        # one uniform integer selects a radius of the table, or the geometric tail
        place = draw_below(total + self.tail, rng)
        if place < total:
            return self.low + int(np.searchsorted(cumulated, place, side="right"))
        return self.low + len(self.weights) + int(geometric(self.scale, 1, rng)[0])

    def mean_of(self, power: int) -> float:
        """Return E R^power for power 1 or 2, including the geometric tail."""
        k = self.low + np.arange(len(self.weights), dtype=np.float64)
        q = math.exp(-1.0 / self.scale)
        step = 1.0 / (1.0 - q)
        end = float(k[-1])
        square = end**2 + 2 * end * step + (1.0 + q) / (1.0 - q) ** 2
        beyond = end + step if power == 1 else square
        total = float(self.weights.sum(dtype=np.float64)) + self.tail
        return float((self.weights @ k**power + self.tail * beyond) / total)


@immutable
@dataclass(frozen=True, slots=True)
class CubeNoise:
    """Noise with P(x) proportional to exp(-rate max |x_i|) on integer vectors.

    The rate is the nominal privacy loss per lattice step in the maximum norm; rate inf means no
    noise.

    Notes
    -----
    **Privacy.** This is the K-norm mechanism with B_k = {-k..k}^D. Moving each coordinate by at
    most s takes s steps, so the loss is at most s (rate + 2^-26). The guarantee is pure. Each of
    the D pair counts of a sample changes by at most 1 if a ranking is replaced, and all of them
    change if it is reversed. So s = 1, and the loss is tight except for the 2^-26.

    **Statistic.** Each coordinate has variance E R (R + 1) / 3, for small rates about
    (D + 1) (D + 2) / (3 rate^2). Independent discrete Laplace noise with the same privacy has
    variance 2 D^2 / rate^2.

    References
    ----------
    Steinke and Ullman (2016), https://doi.org/10.29012/jpc.v7i2.648; Hardt and Talwar (2010),
    https://doi.org/10.1145/1806689.1806786.
    """

    dimension: int
    rate: float
    radius: Radius | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        radius = Radius.build(0.5, self.dimension, self.rate) if math.isfinite(self.rate) else None
        object.__setattr__(self, "radius", radius)

    @classmethod
    def calibrate(cls, dimension: int, sensitivity: int, epsilon: float) -> CubeNoise:
        """Return the noise with loss at most `epsilon` at a maximum-norm sensitivity."""
        if math.isinf(epsilon) or sensitivity == 0:
            return cls(dimension, math.inf)
        return cls(dimension, step_rate(sensitivity, epsilon))

    @property
    def variance(self) -> float:
        """Variance of one coordinate, in squared lattice steps."""
        if self.radius is None:
            return 0.0
        return (self.radius.mean_of(2) + self.radius.mean_of(1)) / 3.0

    def draw(self, values: IntArray, rng: Rng) -> IntArray:
        """Return `values` plus one draw of noise, secure or seeded by `rng`."""
        if values.shape != (self.dimension,):
            raise ValueError(f"expected {self.dimension} values, got shape {values.shape}.")
        if self.radius is None:
            return values.copy()
        radius = self.radius.draw(rng)
        return clipped_sum(
            values, draw_one_each(np.full(self.dimension, 2 * radius + 1), rng) - radius
        )


@immutable
@dataclass(frozen=True, slots=True)
class PermutohedronNoise:
    """K-norm noise for the Borda totals of m items, on a fine lattice.

    Draws are integer vectors that sum to 0, in units of 1 / fineness of a rank. The rate is the
    nominal privacy loss per such step, inf for no noise.

    Notes
    -----
    **Privacy.** The Borda totals are sums of rank vectors. Replacing one ranking adds the
    difference of two vertices of the permutohedron, and the convex hull of these differences is K,
    twice the centred permutohedron. K is the sum of the segments [-1, 1] v_e over the pairs
    e = (i, j), v_e = e_i - e_j. (The permutohedron itself would not contain the reversal of a
    ranking, which would then spend 2 epsilon.) Let B_k = {x integer, sum 0: x + t g in k K for
    small t > 0}, where g is a fixed generic direction. If x is in B_k and d in K, then x + d + t g
    is in k K + K = (k + 1) K. The totals are multiplied by L, the fineness, so one ranking moves
    them by L d, which is L steps, and the loss is at most L (rate + 2^-26). The implementation uses
    integer arithmetic only, so the proof is exact. A fair coin reverses the noise, which makes it
    symmetric.

    **Counting.** K is tiled by translates of sums of the segments [-1, 1] v_f, f in T, one for each
    spanning tree T of the complete graph. (This is the regular tiling of a zonotope for generic
    heights; every tile has determinant 1.) So B_k has (2 k)^(m-1) points in each of the m^(m-2)
    tiles, and a uniform point is a uniform point of the half-open tile of a uniform tree. As the
    fineness grows, the distribution converges to the K-norm mechanism: Gamma(m, 1 / epsilon) times
    a uniform point of K.

    **Moments.** Let M_m be the mean squared length of a uniform point of the centred permutohedron,
    half of K. Divide it into pyramids over its facets. The facet of a set of k items is a product
    of two such bodies, of k and m - k items, at squared distance k (m - k) m / 4. The pyramids over
    facets of one size together have the fraction
    C(m, k) k^(k-1) (m - k)^(m-k-1) / (2 (m - 1) m^(m-2)) of the volume. A uniform point of a
    pyramid is a uniform point of its facet, times t with E t^2 = (m - 1) / (m + 1). So M_m is
    (m - 1) / (m + 1) times the mean of k (m - k) m / 4 + M_k + M_(m-k).

    References
    ----------
    Hardt and Talwar (2010), https://doi.org/10.1145/1806689.1806786; Awan and Slavkovic (2021),
    Structure and sensitivity in differential privacy: comparing K-norm mechanisms, Journal of the
    American Statistical Association 116; tilings: Stanley (1991), A zonotope associated with
    graphical degree sequences, DIMACS Series 4.
    """

    items: int
    rate: float
    fineness: int
    radius: Radius | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        radius = Radius.build(0.0, self.items - 1, self.rate) if math.isfinite(self.rate) else None
        object.__setattr__(self, "radius", radius)

    @classmethod
    def calibrate(
        cls, items: int, epsilon: float, steps: int | Fraction = 1, least: int = 1
    ) -> PermutohedronNoise:
        """Return the distribution with loss at most `epsilon` if a unit is replaced.

        The unit moves the totals by `steps` times a point of K (one ranking: `steps` = 1). The
        fineness is the smallest product of the steps' denominator and a power of two that is at
        least `least` and makes the rate at most 1 / 16. Drawing an integer radius then adds less
        than 1 / (16 m) of its mean.
        """
        if math.isinf(epsilon):
            return cls(items, math.inf, 1)
        steps = Fraction(steps)
        most = max(16.0 * epsilon / steps.numerator, 1.0, least / steps.denominator)
        finer = 2 ** math.ceil(math.log2(most))
        return cls(items, step_rate(steps.numerator * finer, epsilon), steps.denominator * finer)

    @property
    def variance(self) -> float:
        """Variance of a coordinate in squared steps, to a relative 1 / radius^2."""
        if self.radius is None:
            return 0.0
        return 4.0 * permutohedron_moment(self.items) / self.items * self.radius.mean_of(2)

    def draw(self, totals: IntArray, rng: Rng) -> IntArray:
        """Return `fineness` times the totals plus noise, secure or seeded by `rng`."""
        if totals.shape != (self.items,):
            raise ValueError(f"expected {self.items} totals, got shape {totals.shape}.")
        if self.radius is None:
            return self.fineness * totals
        # a uniform tile, a uniform point of its half-open copy of radius times K, a fair sign
        m = self.items
        radius = self.radius.draw(rng)
        word = draw_one_each(np.full(max(m - 2, 0), m), rng)
        steps = draw_one_each(np.full(m - 1, 2 * radius), rng) - radius
        turn = 2 * draw_below(2, rng) - 1
        point = tree_point(*spanning_tree(word, m), steps, radius)
        return clipped_sum(self.fineness * totals, np.asarray(turn * point))


@cache
def permutohedron_moment(items: int) -> float:
    """Return the mean squared length of a uniform point of the permutohedron."""
    moment = np.zeros(items + 1)
    for m in range(2, items + 1):
        k = np.arange(1.0, m)
        rest = m - k
        log = gammaln(m + 1) - gammaln(k + 1) - gammaln(rest + 1) - (m - 2) * math.log(m)
        log += (k - 1) * np.log(k) + (rest - 1) * np.log(rest)
        share = np.exp(log) / (2 * (m - 1))
        facet = k * rest * m / 4 + moment[1:m] + moment[m - 1 : 0 : -1]
        moment[m] = (m - 1) / (m + 1) * float(share @ facet)
    return float(moment[items])


def spanning_tree(word: IntArray, items: int) -> tuple[IntArray, IntArray]:
    """Return the parents (root: item m - 1) in the trees with Pruefer words, and an order.

    The last axis of `word` contains words of m - 2 items; the last axis of the results contains the
    parents of items 0..m-2, and these items in an order in which each comes after its parent. The
    map is a bijection onto the spanning trees of the complete graph.
    """
    shape = np.shape(word)[:-1]
    words = np.asarray(word, dtype=np.int64).reshape(math.prod(shape), items - 2)
    tree = np.arange(len(words))
    degree = np.ones((len(words), items), dtype=np.int64)
    np.add.at(degree, (tree[:, None], words), 1)
    parent, order = np.empty((2, len(words), items - 1), dtype=np.int64)
    for place in range(items - 1):
        # remove the leaf with the smallest number, which is never the last item
        leaf = np.argmax(degree == 1, axis=1)
        above = words[:, place] if place < items - 2 else np.full(len(words), items - 1)
        parent[tree, leaf] = above
        order[:, -1 - place] = leaf
        degree[tree, leaf] = 0
        degree[tree, above] -= 1
    return parent.reshape(*shape, items - 1), order.reshape(*shape, items - 1)


def tree_point(parent: IntArray, order: IntArray, steps: AnyArray, radius: int) -> AnyArray:
    """Return the point of `radius` times K with coordinates in a tree's tile.

    `parent` and `order` are those of :func:`spanning_tree`, whose root is item m - 1. The last axis
    of `steps` contains the coordinates of the edges from the other items to their parents. For a
    lattice point, coordinates are integers in -radius..radius - 1; in general they are numbers
    between -radius and radius. The entries of the point sum to 0.

    Notes
    -----
    **Statistic.** Give the edges e = (i < j) heights h_e so far apart that the largest height
    determines the sign of any sum of +-h_e; edge (i, j) ranks by j, then i. The tile of T is the
    face of the lifted zonotope with a normal y such that y_a - y_b = h_f on T. Every other pair e
    is at the end sign(y_i - y_j - h_e), the sign with which the largest edge of its cycle enters.
    Because g = (1, 2, 4, ..., -sum) has a positive sum over every set of items without the last,
    each coordinate of g along an edge towards the root is positive. So the coordinates of the
    half-open tile are -radius..radius - 1.
    """
    shape = np.shape(parent)[:-1]
    m = np.shape(parent)[-1] + 1
    parent = parent.reshape(-1, m - 1)
    steps = steps.reshape(-1, m - 1)
    tree = np.arange(len(parent))
    point = np.zeros((len(parent), m), dtype=steps.dtype)
    point[:, :-1] += steps
    np.subtract.at(point, (tree[:, None], parent), steps)
    # peak[a, b]: rank of the largest edge on the path from a to b, positive if the path passes it
    # from its smaller to its larger item. Entries for an item that is not yet in the tree are
    # overwritten when the item is added.
    peak = np.zeros((len(parent), m, m), dtype=np.int64)
    for child in order.reshape(-1, m - 1).T:
        above = parent[tree, child]
        edge = np.maximum(child, above) * m + np.minimum(child, above)
        passed = np.where(above < child, edge, -edge)[:, None]
        before = peak[tree, :, above]
        highest = np.where(np.abs(before) > edge[:, None], before, passed)
        peak[tree, :, child] = highest
        peak[tree, child] = -highest
        peak[tree, child, child] = 0
    first, second = np.triu_indices(m, 1)
    own = second * m + first
    largest = peak[:, first, second]
    sign = np.where(np.abs(largest) > own, np.sign(largest), -1)
    sign[np.abs(largest) == own] = 0  # an edge of the tree
    ends = np.zeros((len(parent), m, m), dtype=np.int64)
    ends[:, first, second] = sign
    point += radius * (ends.sum(axis=2) - ends.sum(axis=1))
    return point.reshape(*shape, m)


@immutable
@dataclass(frozen=True, slots=True)
class ZeroSumLaplace:
    """P(x) proportional to exp(-|x|_1 / scale) on integer vectors with sum 0.

    Parameters
    ----------
    items : int
        Number of coordinates m, at least 2.
    scale : float
        Scale in lattice steps; 0 is no noise.

    Notes
    -----
    **Privacy.** |x + d|_1 <= |x|_1 + |d|_1 for every x and every difference d of neighbours (and
    for -d, because neighbours may be exchanged), so P(x) <= exp(|d|_1 / scale) P(x + d): both sides
    have the same normaliser. The guarantee is pure and exact, because all arithmetic is on
    integers. The loss |d|_1 / scale is attained at points x whose coordinates are large and have
    the signs of d. The scale is calibrated in the same way as for discrete Laplace noise.

    **Drawing.** Let y be m - 1 independent discrete Laplace variables, and let x be y followed by
    minus their sum. Keep x with probability exp(-|sum y| / scale). Then x has probability
    proportional to exp(-|y|_1 / scale) exp(-|sum y| / scale). The acceptance is exact: a geometric
    variable with ratio exp(-1 / scale) is at least |sum y| with this probability. The number of
    proposals depends only on the scale and m; about one in 1.8 sqrt(m) proposals is kept.

    **Statistic.** These are independent discrete Laplace variables, conditional
    on a sum of 0. Their characteristic function is phi(t) = (1 - q)^2 / (1 - 2 q cos t + q^2),
    q = exp(-1 / scale). So the variance of one coordinate is the integral of -phi'' phi^(m-1)
    divided by the integral of phi^m; integrating by parts, the former is the integral of
    (m - 1) (phi' / phi)^2 phi^m. Substitute tan(t / 2) = c tan(s / 2) with c = tanh(1 / (2 scale)).
    Then phi = cos^2(s / 2) + c^2 sin^2(s / 2), dt = c ds / phi and
    (phi' / phi)^2 = sin^2 s / sinh^2(1 / scale), so the variance is (m - 1) / sinh^2(1 / scale)
    times the mean of sin^2 s weighted by phi^(m-1). Both are trigonometric polynomials of degree at
    most m + 1, whose means over more than m + 1 equally spaced points are exact. For large scales
    the variance is (m - 1) (2 m - 1) / (m (m + 1)) scale^2. Independent noise has 2 scale^2, which
    decreases by a factor of 1 - 1 / m if its mean is subtracted.
    """

    items: int
    scale: float

    @classmethod
    def calibrate(cls, items: int, sensitivity: int, epsilon: float) -> ZeroSumLaplace:
        """Return the distribution with loss at most `epsilon` at an l1 sensitivity."""
        scale = DiscreteLaplace.calibrate(sensitivity, epsilon).scale
        if scale > _LARGEST_SCALE:
            raise ValueError(
                f"epsilon is too small for this statistic, got {epsilon}: the noise scale would "
                f"exceed 2^44 lattice steps. Use a larger epsilon."
            )
        return cls(items, scale)

    @property
    def variance(self) -> float:
        """Variance of one coordinate, in squared lattice steps."""
        if self.scale == 0:
            return 0.0
        # means over m + 2 equally spaced angles s, which are exact: see Statistic above
        angle = 2.0 * math.pi * np.arange(self.items + 2) / (self.items + 2)
        sine = np.sin(0.5 * angle) ** 2
        weight = (1.0 - sine + math.tanh(0.5 / self.scale) ** 2 * sine) ** (self.items - 1)
        mean = float(np.sin(angle) ** 2 @ weight / weight.sum())
        return (self.items - 1) / math.sinh(min(1.0 / self.scale, 300.0)) ** 2 * mean

    def draw(self, values: IntArray, rng: Rng) -> IntArray:
        """Return `values` plus one draw of noise, exact and secure or seeded."""
        m = self.items
        if values.shape != (m,):
            raise ValueError(f"expected {m} values, got shape {values.shape}.")
        if self.scale == 0:
            return values.copy()
        # about the number needed to keep one; each is kept with probability 0.55 / sqrt(m)
        size = max(1, min(math.ceil(1.5 / (0.55 / math.sqrt(m))), _MAX_PROPOSED // m))
        while True:
            first = DiscreteLaplace(self.scale).noise(size * (m - 1), rng).reshape(size, m - 1)
            if first.dtype != object and np.abs(first).max() >= LARGEST // m:
                first = first.astype(object)  # Python integers, whose sum cannot overflow
            last = -first.sum(axis=1)
            hits = np.flatnonzero(geometric(self.scale, size, rng) >= np.abs(last))
            if len(hits):
                return clipped_sum(values, np.append(first[hits[0]], last[hits[0]]))

    def simulate(self, draws: int, rng: np.random.Generator) -> IntArray:
        """Return noise alone from a Generator, shape (draws, m), for calibration."""
        accepted = np.zeros((draws if self.scale == 0 else 0, self.items), dtype=np.int64)
        while len(accepted) < draws:
            first = DiscreteLaplace(self.scale).simulate((2 * draws, self.items - 1), rng)
            last = -first.sum(axis=1)
            keep = rng.random(len(last)) < np.exp(-np.abs(last) / self.scale)
            accepted = np.concatenate((accepted, np.column_stack((first, last))[keep]))
        return accepted[:draws]


NetDistribution = DiscreteLaplace | DiscreteGaussian | ZeroSumLaplace | PermutohedronNoise
