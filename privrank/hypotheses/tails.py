"""Tails of a normal variable plus the noise of one net win, or of two that are compared."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, ndtr

from privrank.hypotheses.nulls import normal_laplace_tail
from privrank.hypotheses.nulltables import public_generator
from privrank.privacy.knorm import PermutohedronNoise
from privrank.privacy.netnoise import NetLaw
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.privacy.zerosum import ZeroSumLaplace

__all__ = ["noisy_tail"]

FloatArray = NDArray[np.float64]

_POINTS, _GROUPS, _RADII = 2**15, 64, 24
"""Pairs of entries of points of a body, groups they are averaged in, and values of the radius."""

_NORMAL = np.polynomial.hermite_e.hermegauss(_RADII)
"""Nodes and weights of Gauss's rule for the density of a normal variable, not normalised."""

_RATIOS = 256
"""Ratios of two items' weights that are told apart."""

_BLOCK = 2**21
"""Normal probabilities that are held at a time."""


ZeroSum = ZeroSumLaplace | PermutohedronNoise


@lru_cache(maxsize=8)
def _sample(law: ZeroSum) -> FloatArray:
    """Return pairs of entries of public random points of a distribution's body, shape (2, ...)."""
    pairs = law.items // 2
    generator = public_generator("noise bodies", law.items, _POINTS)
    points = law.bodies(math.ceil(_POINTS / pairs), generator)[:, : 2 * pairs]
    return np.array([points[:, ::2].ravel(), points[:, 1::2].ravel()])


@lru_cache(maxsize=8)
def _single(law: ZeroSum) -> FloatArray:
    """Return the sizes of one entry of a point of the body, group by group."""
    return _grouped(np.sort(np.abs(_sample(law)).ravel()))


def _grouped(sizes: FloatArray) -> FloatArray:
    """Return the root mean squares of groups of sorted sizes along the last axis."""
    even = sizes[..., : sizes.shape[-1] // _GROUPS * _GROUPS]
    groups = even.reshape(*sizes.shape[:-1], _GROUPS, -1)
    return np.asarray(np.sqrt(np.square(groups).mean(axis=-1)))


def _differences(law: ZeroSum, ratio: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return sizes of N_1 - ratio N_2, group by group, for some ratios, and which belongs to each.

    Items compared equally often have the ratio 1. Where there are many ratios each takes the
    nearest of some that are spread evenly over their logarithms, a few thousandths apart.
    """
    known, which = np.unique(ratio, return_inverse=True)
    if len(known) > _RATIOS:
        grid = np.geomspace(known[0], known[-1], _RATIOS)
        which = np.searchsorted(np.sqrt(grid[1:] * grid[:-1]), ratio)
        known = grid
    left, right = _sample(law)
    return np.array([_grouped(np.sort(np.abs(left - r * right))) for r in known]), which.ravel()


def noisy_tail(
    law: NetLaw,
    x: FloatArray,
    sd: FloatArray,
    first: FloatArray,
    second: FloatArray | None = None,
) -> FloatArray:
    """Return P(|Z + a N_1 - b N_2| > x) for Z normal and N two entries of one draw of noise.

    `sd` is that of Z; the weights a and b are `first` and `second`, without which b is 0.

    Notes
    -----
    **Null.** Discrete Laplace and Gaussian noise are taken at their continuous limits, in closed
    form. A vector that sums to zero is a Gamma(m) radius times a uniform point of a body, whatever
    the body (:mod:`privrank.privacy.zerosum`). The radius, which carries the far tail, enters by
    quadrature: it is a smooth function of a normal variable. The point is bounded, and enters by a
    public sample, the same for all pairs, as all items are alike; averaged within groups of similar
    size, in the mean square.
    """
    x, sd, first = np.broadcast_arrays(x, sd, first)
    if isinstance(law, DiscreteLaplace):
        present = [first] if second is None else [first, np.broadcast_to(second, x.shape)]
        return normal_laplace_tail(x, sd, tuple(law.scale * scale for scale in present))
    if isinstance(law, DiscreteGaussian):
        lengths = first**2 + (0.0 if second is None else np.square(second))
        return np.asarray(2.0 * ndtr(-x / np.sqrt(sd**2 + law.variance * lengths)))
    nodes, weights = _NORMAL
    radii = law.body_scale * gammainccinv(law.items, ndtr(-nodes))
    weights = weights / weights.sum()
    gap, error, a = (np.ravel(part) for part in (x, sd, first))
    if second is None:
        sizes, which = _single(law)[None, :], np.zeros(x.size, dtype=np.int64)
    else:
        sizes, which = _differences(law, np.broadcast_to(second, x.shape).ravel() / a)
    out = np.empty(x.size)
    block = max(1, _BLOCK // (_GROUPS * _RADII))
    for start in range(0, x.size, block):
        here = slice(start, start + block)
        size = (a[here, None] * sizes[which[here]])[:, :, None] * radii
        t, e = gap[here, None, None], error[here, None, None]
        tails = ndtr((size - t) / e) + ndtr((-size - t) / e)
        out[here] = (tails @ weights).mean(axis=1)
    return np.asarray(out.reshape(x.shape))
