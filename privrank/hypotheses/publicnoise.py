"""Public draws and quantiles of noise, for null distributions and intervals; they protect nothing.

The secret noise of a release is drawn by ``draw`` of its distribution, in `privacy`. Here a public
generator is given, and what is returned is noise alone, in floating point.

**Limit.** On a fine lattice noise on a body is a K-norm mechanism's: a scale times a Gamma(m)
variable times a uniform point of the body of radius 1. For zero-sum Laplace noise that body is
{|x|_1 <= 1, sum 0}: in n = m - 1 dimensions, the factor exp(-h) of the density gives the shell at h
the weight h^n exp(-h) when points of the body below it are uniform. For permutohedron noise it is K
(:class:`privrank.privacy.knorm.PermutohedronNoise`). Simulated noise has that distribution; it is
off by some 1 / scale^2 of its variance.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri

from privrank.privacy.knorm import CubeNoise, PermutohedronNoise, Radius, spanning_tree, tree_point
from privrank.privacy.netnoise import NetDistribution, ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace

__all__ = [
    "BodyDistribution",
    "body_points",
    "body_scale",
    "cube_half_width",
    "cube_radii",
    "half_width",
    "radii_up_to",
    "simulated",
]

FloatArray = NDArray[np.float64]

BodyDistribution = ZeroSumLaplace | PermutohedronNoise

_RADII = 4000
"""Radii over which the distribution of a coordinate is summed up."""

_CELLS = 2**22
"""Cells of the tables of paths that are held at a time."""


def simulated(
    distribution: NetDistribution | CubeNoise, size: tuple[int, int], rng: np.random.Generator
) -> NDArray[Any]:
    """Return noise alone, shape (draws, coordinates), in lattice steps."""
    if isinstance(distribution, BodyDistribution):
        stretch = body_scale(distribution) * rng.gamma(distribution.items, size=(size[0], 1))
        return np.asarray(stretch * body_points(distribution, size[0], rng))
    if not isinstance(distribution, CubeNoise):
        return distribution.simulate(size, rng)
    if distribution.radius is None:
        return np.zeros(size)
    radii, mass = cube_radii(distribution)
    radius = radii[np.searchsorted(mass.cumsum()[:-1], rng.random(size[0]))]
    return np.rint(rng.uniform(-0.5, 0.5, size) * (2.0 * radius[:, None] + 1.0))


def body_scale(distribution: BodyDistribution) -> float:
    """Return the scale of the Gamma(m) variable that stretches a point of the body."""
    return (
        distribution.scale if isinstance(distribution, ZeroSumLaplace) else 1.0 / distribution.rate
    )


def body_points(distribution: BodyDistribution, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return uniform points of a distribution's body, shape (draws, m)."""
    points = _diamond if isinstance(distribution, ZeroSumLaplace) else _permutohedron
    return points(distribution.items, draws, rng)


def _permutohedron(m: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return uniform points of K, twice the permutohedron: uniform points of uniform tiles."""
    points = np.empty((draws, m))
    block = max(1, _CELLS // m**2)
    for start in range(0, draws, block):
        size = min(block, draws - start)
        word = rng.integers(0, m, (size, m - 2))
        steps = rng.uniform(-1.0, 1.0, (size, m - 1))
        points[start : start + size] = tree_point(spanning_tree(word, m), steps, 1)
    return points


def _diamond(m: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return uniform points of {|x|_1 <= 1, sum 0}.

    p items are positive with probability proportional to C(m, p) C(m - 2, p - 1): the sets of p
    items times the volume of a pair of simplices of dimensions p - 1 and m - p - 1. On each the
    point is uniform.
    """
    p = np.arange(1, m)
    log = gammaln(m + 1) - gammaln(p + 1) - gammaln(m - p + 1)
    log += gammaln(m - 1) - gammaln(p) - gammaln(m - p)
    share = np.cumsum(np.exp(log - log.max()))
    positives = 1 + np.searchsorted(share, rng.random(draws) * share[-1])
    rank = np.argsort(rng.random((draws, m)), axis=1)
    positive = rank < positives[:, None]
    size = rng.standard_exponential((draws, m))
    up, down = np.where(positive, size, 0.0), np.where(positive, 0.0, size)
    point = up / up.sum(axis=1, keepdims=True) - down / down.sum(axis=1, keepdims=True)
    return np.asarray(0.5 * point * rng.random((draws, 1)) ** (1.0 / (m - 1)))


def half_width(
    distribution: DiscreteLaplace | DiscreteGaussian | CubeNoise, alpha: float, coordinates: int = 1
) -> float:
    """Return the least h, in lattice steps, that any coordinate exceeds with at most `alpha`.

    So many `coordinates` are looked at. Gaussian noise by the normal distribution, which has the
    probability of k in k - 1/2 to k + 1/2.
    """
    if isinstance(distribution, CubeNoise):
        return cube_half_width(distribution, alpha, coordinates)
    each = -math.expm1(math.log1p(-alpha) / coordinates)
    if isinstance(distribution, DiscreteGaussian):
        return float(max(math.ceil(-distribution.scale * ndtri(0.5 * each) - 0.5), 0))
    if distribution.scale == 0:
        return 0.0
    # P(|noise| > h) = 2 q^(h + 1) / (1 + q)
    outside = math.log(0.5 * each * (1.0 + math.exp(-1.0 / distribution.scale)))
    return float(max(math.ceil(-distribution.scale * outside - 1.0), 0))


def cube_half_width(
    distribution: CubeNoise, alpha: float, coordinates: int = 1, blur: float = 0.0
) -> float:
    """Return the h that any coordinate of the noise exceeds with at most `alpha`.

    So many `coordinates` are looked at, with independent normal errors of standard deviation
    `blur` added to them.

    Notes
    -----
    **Statistic.** Given the radius R coordinates are independent, uniform on -R..R. Without blur
    each is inside with probability (2 h + 1) / (2 R + 1). With it, by the uniform distribution on
    [-R - 1/2, R + 1/2] plus a normal one: Phi has the integral x Phi(x) + phi(x).
    """
    if distribution.radius is None:
        return float(-blur * ndtri(-0.5 * math.expm1(math.log1p(-alpha) / coordinates)))
    radii, mass = cube_radii(distribution)
    wide = radii + 0.5

    def integral(x: FloatArray) -> FloatArray:
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


def radii_up_to(distribution: Radius, reach: float) -> tuple[FloatArray, FloatArray]:
    """Return the radii up to `reach` with their probabilities; the rest is not listed."""
    beyond = np.arange(
        1, max(math.ceil(reach) - distribution.low - len(distribution.weights) + 1, 0) + 1
    )
    q = math.exp(-1.0 / distribution.scale)
    mass = np.concatenate(
        (distribution.weights, distribution.tail * (1.0 - q) * q ** (beyond - 1.0))
    )
    total = float(distribution.weights.sum(dtype=np.float64)) + distribution.tail
    return distribution.low + np.arange(len(mass), dtype=np.float64), mass / total


def cube_radii(distribution: CubeNoise) -> tuple[FloatArray, FloatArray]:
    """Return the radii with their probabilities; where there are many, means of runs of them.

    Their spread within a run is small beside their mean. A share below e^-40 is not listed.
    """
    assert distribution.radius is not None
    last = distribution.radius.low + len(distribution.radius.weights)
    radii, mass = radii_up_to(distribution.radius, last + math.ceil(40 * distribution.radius.scale))
    if len(radii) > _RADII:
        start = np.arange(0, len(radii), len(radii) // _RADII)
        mean, mass = np.add.reduceat(radii * mass, start), np.add.reduceat(mass, start)
        radii = mean / np.maximum(mass, 1e-300)
    return radii, mass
