"""The exact privacy of Gaussian noise: delta at a given epsilon, and the smallest scale.

Rounding goes towards privacy throughout: each delta returned is an upper bound, each scale the
private end of a bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, ndtr

__all__ = ["gaussian_delta", "gaussian_scale", "lattice_delta", "lattice_scale"]

SMALLEST_LATTICE_SCALE = 3.0
"""Below this the discrete law is not close enough to its limit for `lattice_delta`."""

_SUMMED = 2.0**12
"""Up to this scale of the summed noise the series for delta is added up; beyond, bounded."""


def gaussian_delta(scale: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """Return the smallest delta at which continuous Gaussian noise is (epsilon, delta)-private.

    Parameters
    ----------
    scale : float
        Standard deviation per coordinate.
    epsilon : float
        At least 0.
    sensitivity : float, default 1.0
        l2 sensitivity of the statistic.

    Returns
    -------
    float
        An upper bound, by no more than the rounding of the normal distribution function.

    Notes
    -----
    **Privacy.** The privacy loss is normal with mean 2 a^2 and standard deviation 2 a, where
    a = sensitivity / (2 scale). With b = epsilon / (2 a), delta is the largest value of
    P(A) - e^epsilon Q(A), attained where the loss exceeds epsilon: Phi(a - b) - e^epsilon
    Phi(-a - b). A relative error r in the arguments moves log Phi(x) by at most r (x^2 + 1).

    References
    ----------
    Balle and Wang (2018), Theorem 8, https://proceedings.mlr.press/v80/balle18a.html.
    """
    a = 0.5 * sensitivity / scale
    b = 0.5 * epsilon / a
    slack = 2.0**-48 * (8.0 + epsilon + (a + b) ** 2)
    above = float(ndtr(a - b)) * (1.0 + slack)
    below = math.exp(epsilon + float(log_ndtr(-a - b))) * (1.0 - slack)
    return min(max(above - below, 0.0), 1.0)


def gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest standard deviation at which `gaussian_delta` is at most `delta`.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    sensitivity : float, default 1.0
        l2 sensitivity of the statistic.

    Returns
    -------
    float
        To a relative accuracy of 1e-12, on the private side.
    """
    return sensitivity * _smallest(lambda scale: gaussian_delta(scale, epsilon) <= delta, 1e-3)


def _smallest(private: Callable[[float], bool], low: float) -> float:
    high = 2.0 * low
    while not private(high):
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if private(middle) else (middle, high)
    return high * (1.0 + 1e-12)


def lattice_delta(scale: float, epsilon: float, coordinates: int, reach: int = 1) -> float:
    """Return the delta of discrete Gaussian noise on counts that one unit moves by `reach` each.

    Parameters
    ----------
    scale : float
        Scale of the discrete Gaussian law, at least 3.
    epsilon : float
        At least 0.
    coordinates : int
        D, the most counts that differ between neighbours.
    reach : int, default 1
        r, the most that one count differs.

    Returns
    -------
    float
        An upper bound: tight to rounding while scale sqrt(D) is at most 4096, and within some
        tenths of a percent beyond.

    Notes
    -----
    **Privacy.** The law is log-concave, so the set that tells it from itself moved by d >= 0 best
    is a half-line, and P(X <= c) - e^epsilon P(X <= c - d) grows with d for every c: a smaller
    move is dominated by a larger one at every epsilon, hence in every composition. The law is
    symmetric too. So let all D counts go up by r.
    The privacy loss at noise x is r (2 S + r D) / (2 scale^2) with S the sum of the x_k, and
    delta = E max(0, 1 - exp(epsilon - loss)).

    S is nearly discrete Gaussian with scale tau = scale sqrt(D): by |x|^2 = s^2 / D +
    |x - s / D|^2 its mass at s is exp(-s^2 / (2 tau^2)) times the sum of exp(-|y|^2 / (2
    scale^2)) over a shifted lattice A_(D-1). By Poisson summation that sum is constant in s but
    for a relative eta, at most the sum of exp(-2 pi^2 scale^2 |v|^2) over the dual vectors v other
    than 0. These are z minus its mean for integer z, which may be taken with median 0. Of the
    pairs of coordinates, each non-zero z_k is in at least D / 2 whose other member is 0 or of
    the other sign, so |v|^2, the mean over D of the squared differences of all pairs, is at least
    |z|^2 / 2. Hence eta < 5 D exp(-pi^2 scale^2), below 1e-25 at scale 3 for any D up to 1e12.

    So up to 1 + 3 eta delta is a sum over the integers s above t = epsilon scale^2 / r - r D / 2 of
    p(s) - e^epsilon p(s + r D), with p the discrete Gaussian mass, whose normaliser is at least
    tau sqrt(2 pi) (Poisson summation again). The terms are log-concave in s, as p and
    1 - exp(-x) are: their sum is at most their integral, which is `gaussian_delta`, plus their
    maximum, which is at most p(max(t, 0)).
    """
    if scale < SMALLEST_LATTICE_SCALE:
        raise ValueError(f"the scale must be at least {SMALLEST_LATTICE_SCALE}, got {scale}.")
    tau = scale * math.sqrt(coordinates)
    start = epsilon * scale**2 / reach - 0.5 * coordinates * reach
    if tau > _SUMMED:
        peak = math.exp(-0.5 * (max(start, 0.0) / tau) ** 2) / (tau * math.sqrt(2 * math.pi))
        return min(
            gaussian_delta(scale, epsilon, reach * math.sqrt(coordinates)) + peak * (1.0 + 1e-9),
            1.0,
        )
    first = math.floor(start) + 1
    # what is left out is below exp(-800) of the largest term, far less than the slack
    s = first + np.arange(math.ceil(40 * tau) + max(0, -first))
    loss = reach * (s + 0.5 * coordinates * reach) / scale**2
    terms = np.exp(-0.5 * (s / tau) ** 2) * -np.expm1(np.minimum(epsilon - loss, 0.0))
    total = math.fsum(terms) / (tau * math.sqrt(2 * math.pi))
    return min(total * (1.0 + 1e-9) + 1e-300, 1.0)


def lattice_scale(epsilon: float, delta: float, coordinates: int, reach: int = 1) -> float:
    """Return the smallest scale, at least 3, at which `lattice_delta` is at most `delta`.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    coordinates : int
        The most counts that differ between neighbours.
    reach : int, default 1
        The most that one count differs.

    Returns
    -------
    float
        Every scale that was accepted has been checked; delta is not assumed to fall in between.
    """

    def private(scale: float) -> bool:
        return lattice_delta(scale, epsilon, coordinates, reach) <= delta

    smallest = SMALLEST_LATTICE_SCALE
    if private(smallest):
        return smallest
    scale = _smallest(private, smallest)
    while not private(scale):
        scale *= 1.0 + 1e-9
    return scale
