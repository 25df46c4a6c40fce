"""Noise shaped like what one ranking can change: a cube for pair counts, a permutohedron for Borda.

Both distributions are K-norm mechanisms made of integers only: a radius (`radius.Radius`, where the
privacy of all such distributions is proved), then a uniform lattice point of the body of that
radius.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri

from privrank.privacy.noise import clipped_sum, draw_below, draw_one_each
from privrank.privacy.radius import Radius, step_rate

__all__ = [
    "CubeNoise",
    "PermutohedronNoise",
    "permutohedron_moment",
    "spanning_tree",
    "tree_point",
]

IntArray = NDArray[np.int64]

_RADII = 4000
"""Radii over which the distribution of a coordinate is summed up."""

_CELLS = 2**22
"""Cells of the tables of paths that are held at a time."""


@dataclass(frozen=True, slots=True)
class CubeNoise:
    """P(x) proportional to exp(-rate max |x_i|) on integer vectors; rate inf is no noise.

    The rate is the nominal privacy loss per lattice step in the maximum norm.

    Notes
    -----
    **Privacy.** The K-norm mechanism with B_k = {-k..k}^D, so that moving each
    coordinate by at most s is s steps: the loss is at most s (rate + 2^-26). It is pure. All D
    pair counts of a sample change by at most 1 each when a ranking is replaced, all of them when
    it is reversed; so s = 1, and s / rate is tight but for the 2^-26.

    **Statistic.** Each coordinate has variance E R (R + 1) / 3, for small rates about
    (D + 1) (D + 2) / (3 rate^2), where independent discrete Laplace noise of the same privacy
    has 2 D^2 / rate^2.

    References
    ----------
    Steinke and Ullman (2016), https://doi.org/10.29012/jpc.v7i2.648; Hardt and Talwar (2010),
    https://doi.org/10.1145/1806689.1806786.
    """

    dimension: int
    rate: float
    _radius: Radius | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        finite = math.isfinite(self.rate)
        radius = Radius.build(0.5, self.dimension, self.rate) if finite else None
        object.__setattr__(self, "_radius", radius)

    @classmethod
    def calibrate(cls, dimension: int, sensitivity: int, epsilon: float) -> CubeNoise:
        """Return the noise whose loss is at most `epsilon` at this maximum-norm sensitivity."""
        if math.isinf(epsilon) or sensitivity == 0:
            return cls(dimension, math.inf)
        return cls(dimension, step_rate(sensitivity, epsilon))

    @property
    def variance(self) -> float:
        """Variance of one coordinate, in squared lattice steps."""
        if self._radius is None:
            return 0.0
        return (self._radius.mean_of(2) + self._radius.mean_of(1)) / 3.0

    def half_width(self, alpha: float, coordinates: int = 1, blur: float = 0.0) -> float:
        """Return the h that any coordinate of the noise exceeds with at most `alpha`.

        So many `coordinates` are looked at, with independent normal errors of standard deviation
        `blur` added to them.

        Notes
        -----
        **Statistic.** Given the radius R coordinates are independent, uniform on -R..R. Without
        blur each is inside with probability (2 h + 1) / (2 R + 1). With it, by the uniform
        distribution on [-R - 1/2, R + 1/2] plus a normal one: Phi has the integral x Phi(x) +
        phi(x).
        """
        if self._radius is None:
            return float(-blur * ndtri(-0.5 * math.expm1(math.log1p(-alpha) / coordinates)))
        radii, mass = self.radii()
        wide = radii + 0.5

        def integral(x: NDArray[np.float64]) -> NDArray[np.float64]:
            z = x / blur
            return np.asarray(blur * (z * ndtr(z) + np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)))

        def outside(h: float) -> float:
            if blur > 0:
                inside = (integral(h + wide) - integral(h - wide)) / wide - 1.0
            else:
                inside = (h + 0.5) / wide
            return float(mass @ (1.0 - np.clip(inside, 0.0, 1.0) ** coordinates))

        # whole steps without blur, and a hundredth of its spread with it
        unit = 0.01 * blur if blur > 0 else 1.0
        steps = range(math.ceil((float(radii[-1]) + 40 * blur) / unit))
        return unit * bisect_left(steps, True, key=lambda h: outside(h * unit) <= alpha)

    def draw(self, values: IntArray, rng: np.random.Generator | None) -> IntArray:
        """Return `values` plus one draw of noise: secure, or seeded when `rng` is given."""
        values = np.asarray(values, dtype=np.int64)
        if values.shape != (self.dimension,):
            raise ValueError(f"expected {self.dimension} values, got shape {values.shape}.")
        if self._radius is None:
            return values.copy()
        radius = self._radius.draw(rng)
        noise = draw_one_each(np.full(self.dimension, 2 * radius + 1), rng) - radius
        return clipped_sum(values, noise)

    def radii(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the radii with their probabilities; where there are many, means of runs of them.

        Their spread within a run is small beside their mean. A share below e^-40 is not listed.
        """
        assert self._radius is not None
        last = self._radius.low + len(self._radius.weights)
        radii, mass = self._radius.law(last + math.ceil(40 * self._radius.scale))
        if len(radii) > _RADII:
            start = np.arange(0, len(radii), len(radii) // _RADII)
            mean, mass = np.add.reduceat(radii * mass, start), np.add.reduceat(mass, start)
            radii = mean / np.maximum(mass, 1e-300)
        return radii, mass

    def simulate(self, size: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return noise alone, shape (draws, coordinates), for calibration."""
        if self._radius is None:
            return np.zeros(size)
        radii, mass = self.radii()
        radius = radii[np.searchsorted(mass.cumsum()[:-1], rng.random(size[0]))]
        return np.rint(rng.uniform(-0.5, 0.5, size) * (2.0 * radius[:, None] + 1.0))


@dataclass(frozen=True, slots=True)
class PermutohedronNoise:
    """K-norm noise for the Borda totals of m items, on a lattice finer than the totals.

    Draws are integer vectors that sum to 0, in units of 1 / fineness of a rank; the rate is the
    nominal privacy loss per such step, inf for no noise.

    Notes
    -----
    **Privacy.** The Borda totals are sums of rank vectors. Replacing one ranking adds the
    difference of two vertices of the permutohedron, and the convex hull of these differences is
    K, twice the centred permutohedron: the sum of the segments [-1, 1] v_e over the pairs
    e = (i, j), v_e = e_i - e_j (once the permutohedron would leave the reversal of a ranking
    outside, and spend 2 epsilon). Take B_k = {x integer, sum 0: x + t g in k K for small t > 0},
    with g a fixed generic direction. x in B_k and d in K give x + d + t g in k K + K = (k + 1) K.
    The totals are multiplied by L, the fineness, so that one ranking moves them by L d, which is
    L steps: the loss is at most L (rate + 2^-26). All is integer arithmetic; nothing is
    idealised. A public fair coin turns the noise round, which makes it symmetric.

    **Counting.** K is tiled by the translates, one for each spanning tree T of the complete graph,
    of the sum of the segments [-1, 1] v_f, f in T (the regular tiling of a zonotope for generic
    heights; every tile has determinant 1). So B_k has (2 k)^(m-1) points in each of the m^(m-2)
    tiles, and a uniform point is a uniform tree and a uniform point of its half-open tile. As the
    fineness grows the distribution is the K-norm mechanism's: Gamma(m, 1 / epsilon) times a uniform
    point of K.

    **Moments.** Let M_m be the mean squared length of a uniform point of the centred permutohedron,
    half of K. Cut it into pyramids over its facets. The facet of a set of k items is a product of
    two such bodies, of k and m - k items, at squared distance k (m - k) m / 4, and its pyramid has
    the share C(m, k) k^(k-1) (m - k)^(m-k-1) / (2 (m - 1) m^(m-2)) of the volume together with
    the others of its size. A uniform point of a pyramid over a facet is a uniform point of that
    facet, times t with E t^2 = (m - 1) / (m + 1), so M_m is (m - 1) / (m + 1) times the mean of
    k (m - k) m / 4 + M_k + M_(m-k).

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
    _radius: Radius | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        finite = math.isfinite(self.rate)
        radius = Radius.build(0.0, self.items - 1, self.rate) if finite else None
        object.__setattr__(self, "_radius", radius)

    @classmethod
    def calibrate(cls, items: int, epsilon: float, steps: int | Fraction = 1) -> PermutohedronNoise:
        """Return the distribution whose loss is at most `epsilon` when one unit is replaced.

        The unit moves the totals by `steps` times a point of K: one ranking by one. The fineness
        is the least multiple of the steps' denominator by a power of two that makes the rate at
        most 1 / 16: drawing a whole radius then adds less than 1 / (16 m) of its mean.
        """
        if math.isinf(epsilon):
            return cls(items, math.inf, 1)
        steps = Fraction(steps)
        finer = 2 ** math.ceil(math.log2(max(16.0 * epsilon / steps.numerator, 1.0)))
        rate = step_rate(steps.numerator * finer, epsilon)
        return cls(items, rate, steps.denominator * finer)

    @property
    def variance(self) -> float:
        """Variance of one coordinate, in squared lattice steps, to a relative 1 / radius^2."""
        if self._radius is None:
            return 0.0
        return 4.0 * permutohedron_moment(self.items) / self.items * self._radius.mean_of(2)

    def draw(self, totals: IntArray, rng: np.random.Generator | None) -> IntArray:
        """Return `fineness` times the totals plus noise: secure, or seeded when `rng` is given."""
        totals = np.asarray(totals, dtype=np.int64)
        if totals.shape != (self.items,):
            raise ValueError(f"expected {self.items} totals, got shape {totals.shape}.")
        if self._radius is None:
            return self.fineness * totals
        m, radius = self.items, self._radius.draw(rng)
        word = draw_one_each(np.full(max(m - 2, 0), m), rng)
        steps = draw_one_each(np.full(m - 1, 2 * radius), rng) - radius
        turn = 2 * draw_below(2, rng) - 1
        point = tree_point(spanning_tree(word, m), steps, radius)
        return clipped_sum(self.fineness * totals, np.asarray(turn * point))

    @property
    def body_scale(self) -> float:
        """Scale of the Gamma(m) variable that stretches a point of K, on a fine lattice."""
        return 0.0 if math.isinf(self.rate) else 1.0 / self.rate

    def bodies(self, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return uniform points of K, shape (draws, m): uniform points of uniform tiles."""
        m = self.items
        points = np.empty((draws, m))
        block = max(1, _CELLS // m**2)
        for start in range(0, draws, block):
            size = min(block, draws - start)
            word = rng.integers(0, m, (size, m - 2))
            steps = rng.uniform(-1.0, 1.0, (size, m - 1))
            points[start : start + size] = tree_point(spanning_tree(word, m), steps, 1)
        return points

    def simulate(self, size: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return noise alone, shape (draws, m), by its limit on a fine lattice."""
        stretch = self.body_scale * rng.gamma(self.items, size=(size[0], 1))
        return np.asarray(stretch * self.bodies(size[0], rng))


@cache
def permutohedron_moment(items: int) -> float:
    """Return the mean squared length of a uniform point of the centred permutohedron."""
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


def spanning_tree(word: IntArray, items: int) -> IntArray:
    """Return the parents, towards item m - 1, in the trees with these Pruefer words.

    Given words of m - 2 items in the last axis, returns the parent of each item 0..m-2 there; the
    map is a bijection onto the spanning trees of the complete graph.
    """
    shape = np.shape(word)[:-1]
    words = np.asarray(word, dtype=np.int64).reshape(math.prod(shape), items - 2)
    each = np.arange(len(words))
    degree = np.ones((len(words), items), dtype=np.int64)
    np.add.at(degree, (each[:, None], words), 1)
    parent = np.empty((len(words), items - 1), dtype=np.int64)
    for place in range(items - 1):
        # the leaf with the smallest number is cut off; the last item never is
        leaf = np.argmax(degree == 1, axis=1)
        above = words[:, place] if place < items - 2 else np.full(len(words), items - 1)
        parent[each, leaf] = above
        degree[each, leaf] = 0
        degree[each, above] -= 1
    return parent.reshape(*shape, items - 1)


def tree_point(parent: IntArray, steps: NDArray[Any], radius: int) -> NDArray[Any]:
    """Return the point of `radius` times K with these coordinates in the tile of a tree.

    Given in the last axis the parents of the items 0..m - 2 in a tree whose root is item m - 1, and
    the coordinate of the edge from each to its parent: whole numbers in -radius..radius - 1 for a
    lattice point, else numbers between -radius and radius. The entries of the point sum to 0.

    Notes
    -----
    **Statistic.** Give the edges e = (i < j) heights h_e so far apart that the sign of any sum of
    +-h_e is that of its largest; edge (i, j) ranks by j, then i. The tile of T is the face of the
    lifted zonotope with a normal y that has y_a - y_b = h_f on T: every other pair e stands at
    the end sign(y_i - y_j - h_e), the sign with which the largest edge of its cycle enters. As
    g = (1, 2, 4, ..., -sum) has a positive sum over every set of items without the last one, each
    coordinate of g along an edge towards the root is positive: the half-open tile takes
    -radius..radius - 1.
    """
    shape, m = np.shape(parent)[:-1], np.shape(parent)[-1] + 1
    parent, steps = parent.reshape(-1, m - 1), steps.reshape(-1, m - 1)
    each = np.arange(len(parent))
    point = np.zeros((len(parent), m), dtype=steps.dtype)
    point[:, :-1] += steps
    np.subtract.at(point, (each[:, None], parent), steps)
    # peak[a, b]: rank of the largest edge on the path from a to b; way: +1 if it is passed upwards
    # in item number, that is from its smaller end. What is entered for an item that is not yet in
    # the tree is written over when it comes.
    peak = np.full((len(parent), m, m), -1)
    way = np.zeros((len(parent), m, m), dtype=np.int64)
    for child in _from_root(parent).T:
        above = parent[each, child]
        edge = np.maximum(child, above) * m + np.minimum(child, above)
        up = np.where(above < child, 1, -1)
        larger = peak[each, :, above] > edge[:, None]
        highest = np.where(larger, peak[each, :, above], edge[:, None])
        passed = np.where(larger, way[each, :, above], up[:, None])
        peak[each, :, child] = peak[each, child] = highest
        way[each, :, child], way[each, child] = passed, -passed
        peak[each, child, child] = -1
    first, second = np.triu_indices(m, 1)
    own = second * m + first
    sign = np.where(peak[:, first, second] > own, way[:, first, second], -1)
    sign[peak[:, first, second] == own] = 0  # an edge of the tree
    ends = np.zeros((len(parent), m, m), dtype=np.int64)
    ends[:, first, second] = sign
    point += radius * (ends.sum(axis=2) - ends.sum(axis=1))
    return point.reshape(*shape, m)


def _from_root(parent: IntArray) -> IntArray:
    """Return for each tree the items 0..m-2, each after its parent."""
    root = parent.shape[1]
    above, depth = parent.copy(), np.zeros_like(parent)
    while (moving := above != root).any():
        depth += moving
        higher = np.take_along_axis(parent, np.minimum(above, root - 1), axis=1)
        above = np.where(moving, higher, above)
    return np.argsort(depth, axis=1, kind="stable")
