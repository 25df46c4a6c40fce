"""The exact privacy of Gaussian noise: delta at a given epsilon, and the smallest scale.

Epsilons are at least 0, deltas in (0, 1), sensitivities l2. Rounding goes towards privacy
throughout: each delta returned is an upper bound, each scale the private end of a bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr

from privrank.util.solvers import bisect

SMALLEST_LATTICE_SCALE = 3.0
"""Below this the discrete distribution is not close enough to its limit for `lattice_delta`."""

_FINE_SCALE = 2.0**16
"""Scale of the lattice noise for vectors: at it a single lattice point weighs next to nothing."""

_SUMMED = 2.0**12
"""Up to this scale of the summed noise the series for delta is added up; beyond, bounded."""


def gaussian_delta(scale: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """Return the smallest delta at which continuous Gaussian noise is (epsilon, delta)-private.

    `scale` is the standard deviation per coordinate; an upper bound, by no more than the rounding
    of the normal distribution function.

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
    """Return the smallest standard deviation at which `gaussian_delta` is at most `delta`."""
    return sensitivity * _smallest(lambda scale: gaussian_delta(scale, epsilon) <= delta, 1e-3)


def _smallest(private: Callable[[float], bool], low: float) -> float:
    """Return the least scale above `low` that is private, to a relative 1e-12.

    It has been checked itself: privacy is not assumed to grow with the scale in between.
    """
    # double until it is private, then halve the interval; the end that is returned was checked
    high = 2.0 * low
    while not private(high):
        low = high
        high = 2.0 * high
    _, high = bisect(lambda scale: not private(scale), low, high, 200, relative=1e-12)
    scale = high * (1.0 + 1e-12)
    while not private(scale):
        scale *= 1.0 + 1e-9
    return scale


def lattice_delta(scale: float, epsilon: float, coordinates: int, reach: int = 1) -> float:
    """Return the delta of discrete Gaussian noise on counts that one unit moves by `reach` each.

    At most D = `coordinates` counts differ between neighbours, each by at most r = `reach`; the
    scale is at least 3. An upper bound: tight to rounding while scale sqrt(D) is at most 4096, and
    within some tenths of a percent beyond.

    Notes
    -----
    **Privacy.** The distribution is log-concave, so the set that tells it from itself moved by
    d >= 0 best is a half-line. P(X <= c) - e^epsilon P(X <= c - d) grows with d for every c, so a
    smaller move is dominated by a larger one at every epsilon, hence in every composition. The
    distribution is symmetric too. So let all D counts go up by r. The privacy loss at noise x is
    r (2 S + r D) / (2 scale^2) with S the sum of the x_k, and delta = E
    max(0, 1 - exp(epsilon - loss)).

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
    total = float(terms.sum()) / (tau * math.sqrt(2 * math.pi))
    return min(total * (1.0 + 1e-9) + 1e-300, 1.0)


def lattice_scale(epsilon: float, delta: float, coordinates: int, reach: int = 1) -> float:
    """Return the smallest scale, at least 3, at which `lattice_delta` is at most `delta`."""

    def private(scale: float) -> bool:
        return lattice_delta(scale, epsilon, coordinates, reach) <= delta

    least = SMALLEST_LATTICE_SCALE
    return least if private(least) else _smallest(private, least)


def _least_ratio(coordinates: int) -> float:
    """Return the scale over the sensitivity at which lattice sums have settled: eta < 1e-25."""
    return math.sqrt((60.0 + (coordinates - 1) * math.log(5.0)) / (2.0 * math.pi**2))


def integer_delta(
    scale: float, epsilon: float, sensitivity: float, coordinates: int, fineness: int = 1
) -> float:
    """Return the delta of discrete Gaussian noise on an integer vector of known l2 sensitivity.

    The vector, of which m = `coordinates` entries may differ between neighbours, is multiplied by
    L = `fineness` before noise of this scale, in lattice steps, is added to each entry. The scale
    is at least sqrt((60 + (m - 1) log 5) / (2 pi^2)) times `sensitivity`. An upper bound, above
    that of continuous noise by no more than exp(-t^2 / 2) / (sqrt(2 pi) scale), with t the
    threshold of the privacy loss in standard deviations.

    Notes
    -----
    **Privacy.** Let neighbours differ by d = L d_0 with d_0 an integer vector that is not 0,
    g = gcd(d), d' = d / g, and w the scale. The distribution is symmetric, and the privacy loss at
    noise x is (|d|^2 + 2 <x, d>) / (2 w^2). Let T = <x, d'>, which takes all integers t. By
    |x|^2 = t^2 / |d'|^2 + |y|^2, with y the part of x orthogonal to d', the mass of T at t is
    proportional to exp(-t^2 / (2 w^2 |d'|^2)) times the sum of exp(-|y|^2 / (2 w^2)) over a shifted
    copy of the lattice A of integer vectors orthogonal to d'. By Poisson summation that sum is
    constant in t but for a relative eta, at most the sum of exp(-2 pi^2 w^2 |v|^2) over the vectors
    v other than 0 of the dual lattice of A. As d' is primitive, those are the integer vectors z
    projected along d'. By Lagrange's identity |v|^2 |d'|^2 is the sum of the squares of the minors
    z_i d'_j - z_j d'_i, which are integers and not all 0: |v| is at least 1 / |d'|, hence at least
    1 / s with s the sensitivity, because d' also divides d_0 and |d_0| <= s. Any two dual vectors
    are as far apart, so balls of half that radius around them do not overlap, and at most
    (2 j + 3)^(m-1) <= 5^(j (m-1)) of them are shorter than (j + 1) / s. With
    q = 5^(m-1) exp(-2 pi^2 (w / s)^2) this makes eta <= q + q^2 + ..., below 1e-25 at the least
    scale.

    So the mass of T is at most 1 + 3 eta times that of the discrete Gaussian distribution of scale
    u = w |d'| on the integers, whose normaliser is at least u sqrt(2 pi) (Poisson summation again).
    delta is E max(0, 1 - exp(epsilon - loss)). Its terms are log-concave in t, as both factors are,
    so their sum is at most their integral plus their maximum. The integral is that of continuous
    noise, `gaussian_delta` at the sensitivity |d|. The maximum is at most the mass at the threshold
    of the loss: exp(-max(epsilon / a - a / 2, 0)^2 / 2) / (u sqrt(2 pi)) with a = |d| / w, and
    u >= w. Both grow with |d|, which is at most L s. A neighbour with the same vector adds nothing.
    """
    if scale < _least_ratio(coordinates) * sensitivity:
        raise ValueError(f"the scale must be larger for {coordinates} coordinates, got {scale}.")
    # the threshold of the loss, in standard deviations of T, and the mass of T there
    a = fineness * sensitivity / scale
    threshold = max(epsilon / a - 0.5 * a, 0.0)
    peak = math.exp(-0.5 * threshold**2) / (scale * math.sqrt(2.0 * math.pi))
    return min((gaussian_delta(scale, epsilon, fineness * sensitivity) + peak) * (1.0 + 1e-9), 1.0)


def integer_scale(
    epsilon: float, delta: float, sensitivity: float, coordinates: int
) -> tuple[float, int]:
    """Return the smallest scale at which `integer_delta` is at most `delta`, and the fineness.

    The scale is in lattice steps. The fineness is the power of two by which the vector is to be
    multiplied: the least for which the lattice costs next to nothing against continuous noise.
    """
    # finer until lattice sums have settled and a single lattice point weighs nothing
    continuous = gaussian_scale(epsilon, delta, sensitivity)
    least = _least_ratio(coordinates) * sensitivity
    fineness = 2 ** max(0, math.ceil(math.log2(max(least, _FINE_SCALE) / continuous)))

    def private(scale: float) -> bool:
        return integer_delta(scale, epsilon, sensitivity, coordinates, fineness) <= delta

    return _smallest(private, max(least, 0.5 * fineness * continuous)), fineness


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon at which rho-zero-concentrated privacy is (epsilon, delta)-private.

    A bound at the order that makes it smallest.

    Notes
    -----
    **Privacy.** Let Z be the privacy loss under P and E exp((alpha - 1) Z) <=
    exp((alpha - 1) alpha rho) for an order alpha > 1. delta is at most
    E max(0, 1 - exp(epsilon - Z)), and max(0, 1 - exp(-x)) <= c exp((alpha - 1) x) for
    c = (1 - 1 / alpha)^alpha / (alpha - 1). For with y = exp(-x), (1 - y) y^(alpha - 1) is largest
    at y = 1 - 1 / alpha. So delta <= c exp((alpha - 1) (alpha rho - epsilon)); solve for epsilon.
    It holds at every alpha, so it does not matter how well the search below finds the best.

    References
    ----------
    Canonne, Kamath and Steinke (2020), Proposition 12, https://doi.org/10.29012/jpc.784.
    """
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return math.inf

    def bound(log_order: float) -> float:
        # in terms of the order less 1, which may be too small to be seen beside it
        above = math.exp(log_order)
        log_whole = math.log1p(above)
        spread = -(math.log(delta) + log_whole) / above
        return (1.0 + above) * rho + spread + log_order - log_whole

    # the best order is about 1 + sqrt(log(1 / delta) / rho)
    middle = 0.5 * (math.log(max(-math.log(delta), 1.0)) - math.log(rho))
    best = min(bound(middle + step) for step in np.linspace(-4.0, 4.0, 4001).tolist())
    return max(best, 0.0) * (1.0 + 1e-12)


@lru_cache(maxsize=64)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return a rho, close to the largest, of zero-concentrated (epsilon, delta)-privacy.

    Notes
    -----
    **Privacy.** The bound of :func:`zcdp_epsilon` at an order, solved for rho. It holds at every
    order, so it does not matter how well the grid finds the best.
    """
    log_order = np.linspace(-40.0, 40.0, 80_001)
    above = np.exp(log_order)
    log_whole = np.logaddexp(0.0, log_order)
    spread = -(math.log(delta) + log_whole) / above
    best = float(np.max((epsilon - spread - log_order + log_whole) / (1.0 + above)))
    return max(best, 0.0) * (1.0 - 1e-12)
