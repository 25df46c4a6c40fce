"""Public draws of noise, for null distributions and standard errors; they protect nothing.

The secret noise of a release is drawn by ``draw`` of its distribution, in `privacy`. Here somebody
gives a public generator and gets noise alone, in floating point.

**Limit.** On a fine lattice noise on a body is a K-norm mechanism's: a scale times a Gamma(m)
variable times a uniform point of the body of radius 1. For zero-sum Laplace noise that body is
{|x|_1 <= 1, sum 0}: in n = m - 1 dimensions, the factor exp(-h) of the density gives the shell at h
the weight h^n exp(-h) when points of the body below it are uniform. For permutohedron noise it is K
(:class:`privrank.privacy.knorm.PermutohedronNoise`). Simulated noise has that distribution; it is
off by some 1 / scale^2 of its variance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from privrank.privacy.knorm import CubeNoise, PermutohedronNoise, spanning_tree, tree_point
from privrank.privacy.netnoise import NetLaw, ZeroSumLaplace

__all__ = ["BodyLaw", "body_points", "body_scale", "simulated"]

FloatArray = NDArray[np.float64]

BodyLaw = ZeroSumLaplace | PermutohedronNoise

_CELLS = 2**22
"""Cells of the tables of paths that are held at a time."""


def simulated(
    law: NetLaw | CubeNoise, size: tuple[int, int], rng: np.random.Generator
) -> NDArray[Any]:
    """Return noise alone, shape (draws, coordinates), in lattice steps."""
    if isinstance(law, BodyLaw):
        stretch = body_scale(law) * rng.gamma(law.items, size=(size[0], 1))
        return np.asarray(stretch * body_points(law, size[0], rng))
    if not isinstance(law, CubeNoise):
        return law.simulate(size, rng)
    if math.isinf(law.rate):
        return np.zeros(size)
    radii, mass = law.radii()
    radius = radii[np.searchsorted(mass.cumsum()[:-1], rng.random(size[0]))]
    return np.rint(rng.uniform(-0.5, 0.5, size) * (2.0 * radius[:, None] + 1.0))


def body_scale(law: BodyLaw) -> float:
    """Return the scale of the Gamma(m) variable that stretches a point of the body."""
    return law.scale if isinstance(law, ZeroSumLaplace) else 1.0 / law.rate


def body_points(law: BodyLaw, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return uniform points of a distribution's body, shape (draws, m)."""
    points = _diamond if isinstance(law, ZeroSumLaplace) else _permutohedron
    return points(law.items, draws, rng)


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
