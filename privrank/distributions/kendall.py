r"""Distribution of the Kendall distance of Mallows rankings.

All functions have the arguments (m, theta), for any number of items m, with theta = -log(phi) in
[0, inf), because phi loses digits close to 1. The distance D is the sum of independent V_j,
j = 1..m, with P(V_j = k) proportional to phi^k on {0..j-1}. With l(x) = log(sinh(x/2) / (x/2)) and
c = m (m - 1) / 4,

    log(Z(theta) / m!) = -theta c + B(theta),   B(u) = sum_j l(j u) - m l(u),

hence E exp(i t (D - c)) = exp(B(theta - i t) - B(theta)), E D = c - B'(theta) and
Var D = B''(theta). Distribution functions are computed by inverting the characteristic function.
"""

import cmath
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, spence, zeta

from privrank.util.arrays import FloatArray, batches
from privrank.util.solvers import find_root

ComplexArray = NDArray[np.complex128]

_TAIL = 8.7
"""Standard deviations beyond which mass is negligible: exp(-8.7^2 / 2) < 2^-54."""

_NEGLIGIBLE = -44.0
"""Logarithm of a negligible modulus of the characteristic function."""

_FADED = 45.0
"""Value of j theta beyond which the truncation of V_j at j - 1 is negligible: exp(-45) < 2^-64."""

_FROZEN = 700.0
"""Largest theta that is distinguished: exp(700) is finite and exp(-700) is negligible."""

_DIRECT = 500
"""Largest number of factors that are multiplied; for more, Euler-Maclaurin sums logarithms."""

_SLOW = 0.03
"""Largest |u| for Euler-Maclaurin; its first omitted term is then below 1e-14."""

_SERIES = 3.5
"""Modulus below which l and related functions are power series (they converge up to 2 pi)."""

_BLOCK = 64
_PIECE = 2**15
"""Numbers of frequencies and of distances computed at a time, which bounds memory."""

# l(x) = sum_k (-1)^(k+1) zeta(2k) / k y^k with y = (x / 2 pi)^2, from sinh's infinite product.
# At |x| = 3.5 the last of these terms is below 1e-17.
_K = np.arange(1, 37)
_ZETA = np.where(_K % 2 == 1, 1.0, -1.0) * zeta(2.0 * _K)


def _series(coefficients: FloatArray, x: ComplexArray) -> ComplexArray:
    return np.asarray(np.polyval(np.append(coefficients[::-1], 0.0), (x / (2 * np.pi)) ** 2))


def _sinh_terms(x: ComplexArray) -> tuple[ComplexArray, ...]:
    """Return l(x), its integral from 0, l'(x) and l'''(x).

    The argument must have Re x > 0 or |Im x| < 2 pi. The closed forms suffer from cancellation at
    0, and the series converge only up to 2 pi. Every branch is the principal branch because
    1 - exp(-x) and x are in the right half plane.
    """
    x = np.asarray(x, dtype=np.complex128)
    small = np.abs(x) < _SERIES
    y = np.where(small, x, 0.0)
    z = np.where(y == 0, 1.0, y)
    # l, its integral, l' and l''' from the terms of l: each is multiplied by 1, x / (2k + 1),
    # 2k / x and 2k (2k - 1) (2k - 2) / x^3
    series = (
        _series(_ZETA / _K, y),
        y * _series(_ZETA / (_K * (2 * _K + 1)), y),
        _series(2 * _ZETA, y) / z,
        _series(2 * _ZETA * (2 * _K - 1) * (2 * _K - 2), y) / z**3,
    )
    x = np.where(small, _SERIES, x)
    faded = np.exp(-x)
    coth = (1 + faded) / (1 - faded)
    # l(x) = x/2 + log(1 - e^-x) - log x, whose integral has Li2(e^-x) = spence(1 - e^-x)
    closed = (
        x / 2 + np.log1p(-faded) - np.log(x),
        x**2 / 4 + spence(1 - faded) - np.pi**2 / 6 - x * np.log(x) + x,
        coth / 2 - 1 / x,
        coth * faded / (1 - faded) ** 2 - 2 / x**3,
    )
    return tuple(np.where(small, s, g) for s, g in zip(series, closed, strict=True))


def _excess(m: int, u: ComplexArray) -> ComplexArray:
    """Return B(u), by Euler-Maclaurin if there are many slowly varying terms.

    l is even, so every odd derivative at 0 vanishes and only the corrections at j = m remain; the
    first omitted correction is u^5 l'''''(m u) / 30240.
    """
    u = np.atleast_1d(np.asarray(u, dtype=np.complex128))
    if m <= _DIRECT or float(np.abs(u).max()) > _SLOW:
        return np.array([_level_sum(m, complex(v)) for v in u]) - m * _sinh_terms(u)[0]
    level, area, slope, third = _sinh_terms(m * u)
    corrections = level / 2 + u * slope / 12 - u**3 * third / 720
    return np.asarray(area / np.where(u == 0, 1.0, u) + corrections - m * _sinh_terms(u)[0])


def _level_sum(m: int, u: complex) -> complex:
    """Return sum_j l(j u) by terms, and in closed form for large arguments.

    For large x, l(x) is x / 2 - log x.
    """
    truncated = _truncated(m, u.real)
    total = complex(_sinh_terms(np.arange(1, truncated + 1).astype(np.complex128) * u)[0].sum())
    if truncated == m:
        return total
    # sum over j > truncated of j u / 2 - log(j u)
    return (
        total
        + u * (m * (m + 1) - truncated * (truncated + 1)) / 4
        - (m - truncated) * cmath.log(u)
        - (math.lgamma(m + 1) - math.lgamma(truncated + 1))
    )


def _truncated(m: int, theta: float) -> int:
    """Return the number of V_j that are not geometric to machine precision."""
    return m if m * theta <= _FADED else min(m, math.ceil(_FADED / theta))


def _characteristic(m: int, theta: float, t: FloatArray) -> ComplexArray:
    """Return E exp(i t (D - J (J - 1) / 4)), J = `_truncated`, for ascending t.

    Centred at its midpoint, V_j has the characteristic function
    sinh(j u / 2) sinh(theta / 2) / (sinh(u / 2) sinh(j theta / 2)), u = theta - i t. Both quotients
    are divided by their hyperbolic cosines and multiplied by tanh(theta / 2), which avoids overflow
    and has a limit at theta = 0.
    """
    truncated = _truncated(m, theta)
    if truncated > _DIRECT and math.hypot(theta, float(t[-1])) < _SLOW:
        excess = _excess(truncated, np.append(theta - 1j * t, theta).astype(np.complex128))
        distribution = np.exp(excess[:-1] - excess[-1])
    else:
        j = np.arange(1, truncated + 1)
        tanh = math.tanh(theta / 2)
        shrink = tanh / np.tanh(j * theta / 2) if theta > 0 else 1.0 / j
        half = t[:, None] / 2
        above = tanh * np.cos(j * half) - 1j * shrink * np.sin(j * half)
        distribution = np.prod(above / (tanh * np.cos(half) - 1j * np.sin(half)), axis=1)
    if truncated < m:  # (1 - phi) / (1 - phi exp(i t)) each
        distribution = distribution * np.exp(
            (truncated - m) * np.log1p(-np.expm1(1j * t) / math.expm1(theta))
        )
    return np.asarray(distribution)


def _frequency_limit(m: int, theta: float) -> float:
    """Return a frequency beyond which the characteristic function is negligible.

    The frequency is at most pi. |1 - w^j| <= 1 + phi^j bounds factor j by
    coth(j theta / 2) sinh(theta / 2) / |sinh(u / 2)|, which decreases in j and in t, so blocks of j
    are bounded by their first member.
    """
    # a bound on log|cf(t)| at 300 frequencies: the sum over blocks of j of size times log bound,
    # no factor counted above 1
    first = np.unique(np.geomspace(1, m, 120).astype(np.int64))
    sizes = np.diff(np.append(first, m + 1))
    a = theta / 2
    shrink = math.sinh(a) / np.tanh(first * a) if a > 0 else 1.0 / first
    sine = np.sin(np.geomspace(0.1 / m**1.5, np.pi, 300) / 2)[:, None]
    with np.errstate(divide="ignore"):
        bound = np.log(shrink) - np.log(np.hypot(math.sinh(a), sine))
    negligible = (np.minimum(bound, 0.0) * sizes).sum(axis=1) < _NEGLIGIBLE
    if not negligible.any():
        return math.pi
    return float(2 * np.arcsin(sine[int(negligible.argmax()), 0]))


def _half_width(m: int, theta: float) -> float:
    """Return a distance from the mean beyond which D has probability below 2^-53.

    The variance decreases in theta, so tilting downwards never increases it. The lower tail is
    therefore sub-Gaussian with the variance at theta, and both tails are sub-Gaussian with the
    variance at 0. For the upper tail, a tilt of at most theta / 2 has a variance of at most v, the
    variance at theta / 2.
    """
    uniform = _TAIL * math.sqrt(variance(m, 0.0))
    if m * theta <= _FADED:
        return uniform
    v = variance(m, theta / 2)
    tilt = min(theta / 2, _TAIL / math.sqrt(v)) if v > 0 else theta / 2
    return min(uniform, tilt * v / 2 + _TAIL**2 / (2 * tilt))


def distribution(m: int, theta: float, distance: FloatArray) -> FloatArray:
    """Return P(D <= distance) for finite theta.

    Notes
    -----
    The characteristic function is inverted:
    F(d) = 1/2 - (1 / 2 pi) int_0^pi Im[cf(t) exp(-i t (d + 1/2))] / sin(t / 2) dt. The error of the
    midpoint rule with N points on the circle is at most P(|D - d| >= N) (the kernel is a square
    wave). So N is the half width of D plus the offset of d. The sum ends at a frequency beyond
    which the characteristic function is negligible. Its modulus decreases on (0, pi / (m - 1)],
    because the modulus of each V_j is the square root of a sum of p_k cos(k t) with p_k >= 0 and
    k < m.
    """
    d = np.atleast_1d(np.floor(np.asarray(distance, dtype=float)))
    theta = min(theta, _FROZEN)
    centre = mean(m, theta)
    half_width = _half_width(m, theta)
    out = np.where(d >= centre, 1.0, 0.0)
    inside = (d >= 0) & (d < m * (m - 1) // 2) & (np.abs(d + 0.5 - centre) < half_width + 1)
    if not inside.any():
        return out
    y = d[inside] + 0.5
    points = 2 * (math.ceil(half_width + float(np.abs(y - centre).max())) // 2 + 2)
    # Gil-Pelaez: P(D <= y) = 1/2 - mean over t of Im(phi(t) e^(-i y t)) / sin(t / 2), on midpoints
    # of a grid so fine that its aliases have negligible mass
    y = y - _truncated(m, theta) * (_truncated(m, theta) - 1) / 4
    limit = _frequency_limit(m, theta)
    total = np.zeros(len(y))
    for block in batches(points // 2, 1, _BLOCK):
        t = (np.arange(block.start, block.stop) + 0.5) * (2 * math.pi / points)
        t = t[t <= limit]
        if not t.size:
            break
        distribution = _characteristic(m, theta, t)
        for piece in batches(len(y), 1, _PIECE):
            total[piece] += (
                np.imag(distribution * np.exp(-1j * np.outer(y[piece], t))) / np.sin(t / 2)
            ).sum(axis=1)
        # beyond the limit, and after |phi| has become negligible, no block adds anything
        if limit <= math.pi / m and abs(distribution[-1]) < math.exp(_NEGLIGIBLE):
            break
    out[inside] = np.clip(0.5 - total / points, 0.0, 1.0)
    return out


def log_partition(m: int, theta: float) -> float:
    """Return log Z = sum_j log(1 + phi + ... + phi^(j-1)), all terms nonnegative."""
    if math.isinf(theta):
        return 0.0
    j = np.arange(2, m + 1)
    terms = np.log(j) if theta == 0 else np.log(np.expm1(-j * theta) / math.expm1(-theta))
    return float(terms.sum())


def mean(m: int, theta: float) -> float:
    """Return E D.

    E V_j = 1 / expm1(theta) - j / expm1(j theta). For small j theta the centred form
    (j - 1) / 2 - (j l'(j theta) - l'(theta)) avoids cancellation.
    """
    middle = m * (m - 1) / 4
    if theta == 0 or math.isinf(theta):
        return middle if theta == 0 else 0.0
    theta = min(theta, _FROZEN)
    single = float(_slope(np.array([theta]))[0])
    if m > _DIRECT and m * theta <= _FADED:
        # Euler-Maclaurin for sum_j j l'(j theta), again an even function of j
        end = m * theta
        level, area, slope, _ = (float(v.real[0]) for v in _sinh_terms(np.array([end + 0j])))
        weighted = (
            m * level / theta
            - area / theta**2
            + m * slope / 2
            + (slope + end * float(_curvature(np.array([end]))[0])) / 12
        )
        return middle - weighted + m * single
    j = np.arange(1, m + 1)
    x = j * theta
    with np.errstate(over="ignore"):
        closed = 1 / math.expm1(theta) - j / np.expm1(x)
    series = (j - 1) / 2 - (j * _slope(np.minimum(x, 1.0)) - single)
    return float(np.where(x < 1, series, closed).sum())


def variance(m: int, theta: float) -> float:
    """Return Var D = sum_j (j^2 l''(j theta) - l''(theta)).

    At theta = 0 it is m (m - 1) (2 m + 5) / 72.
    """
    if theta == 0:
        return m * (m - 1) * (2 * m + 5) / 72
    if math.isinf(theta):
        return 0.0
    theta = min(theta, _FROZEN)
    j = np.arange(1, m + 1)
    x = j * theta
    # a series below j theta = 1, where the closed form cancels, and the closed form beyond
    series = j**2 * _curvature(np.minimum(x, 1.0)) - float(_curvature(np.array([theta]))[0])
    with np.errstate(over="ignore"):
        closed = 0.25 / math.sinh(theta / 2) ** 2 - (j / (2 * np.sinh(x / 2))) ** 2
    return float(np.where(x < 1, series, closed).sum())


def _slope(x: FloatArray) -> FloatArray:
    """Return l'(x) = coth(x / 2) / 2 - 1 / x for x > 0."""
    y = np.minimum(x, 1.0)
    series = _series(2 * _ZETA[:14], y) / y
    return np.asarray(np.where(x < 1, series, 0.5 / np.tanh(x / 2) - 1 / x))


def _curvature(x: FloatArray) -> FloatArray:
    """Return l''(x) = 1 / x^2 - 1 / (4 sinh(x / 2)^2) for x > 0."""
    y = np.minimum(x, 1.0)
    series = _series((2 * _ZETA * (2 * _K - 1))[:14], y) / y**2
    with np.errstate(over="ignore"):
        return np.asarray(np.where(x < 1, series, 1 / x**2 - 0.25 / np.sinh(x / 2) ** 2))


def pair_probability(gap: int, theta: float) -> float:
    """Return P(the item `gap` >= 1 positions ahead is ranked ahead).

    It is h(g + 1) - h(g) with h(x) = x / (1 - phi^x) = 1 / theta + x / 2 + x l'(x theta). The pole
    at theta = 0 cancels in the second form, the large terms cancel in the first.
    """
    if theta == 0 or math.isinf(theta):
        return 0.5 if theta == 0 else 1.0
    g = np.array([gap, gap + 1.0])
    if gap * theta < 1:
        # close to theta = 0 both terms have the pole 1 / theta, which is omitted from each
        parts = g * _slope(g * theta)
        return 0.5 + float(parts[1] - parts[0])
    with np.errstate(over="ignore"):
        parts = g / np.expm1(g * theta)
    return 1.0 + float(parts[1] - parts[0])


def total_variation(m: int, theta: float, other: float) -> float:
    """Return the total variation distance of two Mallows models with one centre.

    Notes
    -----
    The ratio of the two distributions is monotone in D, so the distance is the difference of the
    two distribution functions at the crossing d* = c - (B(theta) - B(other)) / (theta - other).
    Rounding d* does not matter, because the two probabilities agree there. One minus the distance
    is at most the Bhattacharyya coefficient
    exp(B((theta + other) / 2) - (B(theta) + B(other)) / 2).
    """
    low, high = sorted((theta, other))
    if low == high:
        return 0.0
    if math.isinf(high):  # all mass on the centre
        return -math.expm1(-log_partition(m, low))
    low, high = np.minimum([low, high], _FROZEN).tolist()
    b = _excess(m, np.array([low, (low + high) / 2, high])).real
    if b[1] - (b[0] + b[2]) / 2 < -50:
        return 1.0
    crossing = (
        mean(m, (low + high) / 2)  # the quotient of differences would cancel
        if high - low < 1e-4 * high
        else m * (m - 1) / 4 - float(b[2] - b[0]) / (high - low)
    )
    d = np.array([math.floor(crossing)])
    return float(np.clip(distribution(m, high, d) - distribution(m, low, d), 0.0, 1.0)[0])


def theta_at(m: int, tolerance: float) -> float:
    """Return the theta with total variation distance `tolerance` from uniform.

    `tolerance` is in (0, 1 - 1/m!). The search starts at the normal approximation 2 z / sd(D),
    where z is the (1 + tolerance) / 2 quantile, and doubles the interval; the distance increases
    with theta.
    """
    start = 2 * float(ndtri((1 + tolerance) / 2)) / math.sqrt(variance(m, 0.0))
    low = start / 2
    high = start * 2

    def error(theta: float) -> float:
        return total_variation(m, theta, 0.0) - tolerance

    while error(low) > 0:
        low /= 2
    while error(high) < 0:
        if high > _FADED:  # the remaining tolerance is below machine precision
            return high
        high *= 2
    return find_root(error, low, high, xtol=1e-15 * start, rtol=1e-15)
