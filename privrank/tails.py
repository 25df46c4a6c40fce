"""Tails of a normal variable plus the noise of one net win, or of two that are compared."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, ndtr

from privrank.netnoise import NetLaw
from privrank.noise import DiscreteGaussian, DiscreteLaplace
from privrank.nulls import normal_laplace_tail
from privrank.nulltables import public_generator
from privrank.ranknoise import PermutohedronNoise
from privrank.zerosum import SphericalNoise, ZeroSumLaplace

__all__ = ["noisy_tail"]

FloatArray = NDArray[np.float64]

_POINTS, _GROUPS, _RADII = 2**13, 64, 24
"""Points of a body that are drawn, groups they are averaged in, and values of the radius."""

_BLOCK = 2**21
"""Normal probabilities that are held at a time."""


@lru_cache(maxsize=8)
def _sample(law: ZeroSumLaplace | SphericalNoise | PermutohedronNoise) -> FloatArray:
    """Return pairs of entries of public random points of a law's body, shape (2, ...)."""
    pairs = law.items // 2
    generator = public_generator("noise bodies", law.items, _POINTS)
    points = law.bodies(math.ceil(_POINTS / pairs), generator)[:, : 2 * pairs]
    return np.array([points[:, ::2].ravel(), points[:, 1::2].ravel()])


def noisy_tail(
    law: NetLaw,
    x: FloatArray,
    sd: FloatArray,
    first: FloatArray,
    second: FloatArray | None = None,
) -> FloatArray:
    """Return P(|Z + a N_1 - b N_2| > x) for Z normal and N two entries of one draw of noise.

    Parameters
    ----------
    law : Law
        Law of the noise vector.
    x, sd : ndarray
        Where to evaluate the two-sided tail, and the standard deviation of Z.
    first, second : ndarray
        The weights a and b, of the shape of `x`; without `second` b is 0.

    Returns
    -------
    ndarray
        Two-sided tail probabilities.

    Notes
    -----
    **Null.** Discrete Laplace and Gaussian noise are taken at their continuous limits, in closed
    form. A vector that sums to zero is a Gamma(m) radius times a uniform point of a body, whatever
    the body (:mod:`privrank.zerosum`). The radius, which carries the far tail, enters by
    quadrature: it is a smooth function of a normal variable. The point is bounded, and enters by a
    public sample, the same for all pairs, as all items are alike; averaged within groups of similar
    size, in the mean square.
    """
    x, sd, first = np.broadcast_arrays(x, sd, first)
    if isinstance(law, DiscreteLaplace):
        scales = (first,) if second is None else (first, np.broadcast_to(second, x.shape))
        return normal_laplace_tail(x, sd, tuple(law.scale * scale for scale in scales))
    if isinstance(law, DiscreteGaussian):
        other = 0.0 if second is None else second
        both = np.sqrt(sd**2 + law.variance * (first**2 + np.square(other)))
        return np.asarray(2.0 * ndtr(-x / both))
    left, right = _sample(law)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_RADII)
    radii = law.body_scale * gammainccinv(law.items, ndtr(-nodes))
    weights = weights / weights.sum()
    out, flat = np.empty(x.size), [np.ravel(part) for part in (x, sd, first)]
    weight = np.zeros(x.size) if second is None else np.broadcast_to(second, x.shape).ravel()
    block = max(1, _BLOCK // len(left))
    for start in range(0, x.size, block):
        here = slice(start, start + block)
        gap, error, a = (part[here, None, None] for part in flat)
        reach = np.sort(np.abs(a[..., 0] * left - weight[here, None] * right), axis=1)
        reach = reach[:, : len(left) // _GROUPS * _GROUPS].reshape(len(reach), _GROUPS, -1)
        size = np.sqrt(np.square(reach).mean(axis=2))[:, :, None] * radii
        tails = ndtr((size - gap) / error) + ndtr((-size - gap) / error)
        out[here] = (tails @ weights).mean(axis=1)
    return np.asarray(out.reshape(x.shape))
