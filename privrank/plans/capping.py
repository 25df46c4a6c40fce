"""Where the norm of the summed rankings is capped: chosen by the numbers of rankings and items."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privrank.util.solvers import zero

__all__ = ["Caps", "caps_for"]

FloatArray = NDArray[np.float64]

_NOMINAL_EPSILON, _WORTHWHILE = 0.5, 1.05
"""The budget a design is made for, and by which factor it has to improve the variance there."""


@dataclass(frozen=True, slots=True)
class Caps:
    """Public numbers of a capped norm (:class:`privrank.mechanisms.capped.CappedNorm`).

    Parameters
    ----------
    bias, lower, upper : float
        B > 0 and 0 <= z0 < z1.
    """

    bias: float
    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not (self.bias > 0 and 0 <= self.lower < self.upper):
            raise ValueError("a capped norm needs bias > 0 and 0 <= lower < upper.")

    @property
    def cap(self) -> float:
        """A, the most that one record adds."""
        return (self.lower + self.upper) / 2

    @property
    def sensitivity(self) -> float:
        """A + B, the most by which replacing one record moves the maximum."""
        return self.cap + self.bias

    def psi(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return psi(z) and psi'(z)."""
        width = self.upper - self.lower
        over = np.clip(z - self.lower, 0.0, width)
        return np.minimum(z, self.upper) - over * over / (2 * width), 1.0 - over / width


def caps_for(n: int, m: int) -> Caps | None:
    """Return where to cap, for n rankings of m items, or None where the plain norm is better.

    Notes
    -----
    **Privacy.** A function of n and m alone, which are public; wherever the norm is capped, its
    sensitivity is that proved of :class:`privrank.mechanisms.capped.CappedNorm`.

    For large n and m with r = (m - 1) / n the records look Gaussian, and at the maximum u'x_l has
    the distribution of the t that maximises e = psi(t + t^2 / (4 B)) - (t - s)^2 / (2 c), s
    standard normal, where c solves E (t - s)^2 = r (Gordon's comparison). So s = t - c d, d the
    derivative of the first term, and E is an integral over t. Then mu = n E(t d) / 2, and the
    largest eigenvalue of M is n / (4 B) times the edge of a sample covariance with weights w =
    psi', the minimum of r / q + E w / (1 - q w) over 0 < q < 1. Their quotient is the margin of the
    certificate.

    z1 is a smooth function of r, near the best for every r, and z0 = z1 / 2. B is the least
    multiple of 1/64 whose margin exceeds 1.03 + 2 / sqrt(2 (m - 1)): uniform rankings then hardly
    ever need more than the fixed point. A small mean shift delta moves f by
    n delta^2 c E(d)^2 / (2 r), the plain norm by n delta^2 / (2 sqrt(r)); the null variances are
    n Var(e) - n r / (2 c^2) and n / 2. The norm with the smaller quotient of standard deviation,
    noise included, and shift is chosen. Only power and time depend on these approximations.
    """
    r = (m - 1) / n
    upper = round(64 * (3.4 + r / 2 + 0.28 * math.log1p(0.1 / r))) / 64
    wanted = 1.03 + 2 / math.sqrt(2 * (m - 1))
    steps = range(32, 2**12)
    least = bisect_left(steps, True, key=lambda k: _theory(r, k / 64, upper)[0] > wanted)
    norm = Caps((32 + least) / 64, upper / 2, upper)
    if norm.sensitivity >= 2 * math.sqrt(m - 1):
        return None
    _, shift, variance = _theory(r, norm.bias, upper)
    noise = 2 / _NOMINAL_EPSILON**2
    capped = n * variance + noise * norm.sensitivity**2
    plain = (n / 2 + noise * 4 * (m - 1)) * shift**2
    return norm if _WORTHWHILE * capped < plain else None


def _theory(r: float, bias: float, upper: float) -> tuple[float, float, float]:
    """Return the margin, c E(d)^2 / sqrt(r), and the null variance per record; margin 0: none."""
    norm = Caps(bias, upper / 2, upper)
    saturated = 2 * bias * (math.sqrt(1 + upper / bias) - 1)
    ends = math.asinh(min(-9.0, -4 * bias - saturated)), math.asinh(max(9.0, saturated))
    t = np.sinh(np.linspace(*ends, 801))  # finest around 0
    height, w = norm.psi(t + t * t / (4 * bias))
    d = w * (1 + t / (2 * bias))

    def law(c: float) -> FloatArray:
        # weights of the trapezoid rule in s, whose density is normal
        s = t - c * d
        return np.asarray(np.exp(-s * s / 2) * np.gradient(s) / math.sqrt(2 * math.pi))

    def excess(c: float) -> float:
        return c * c * float(law(c) @ (d * d)) - r

    least, most = math.sqrt(r) / float(np.abs(d).max()), 1.999 * bias
    if least >= most or excess(most) <= 0:
        return 0.0, 0.0, math.inf
    c = zero(excess, least, most)
    p = law(c)
    q = 1 / (1 + np.exp(-np.linspace(-8, 8, 97)))[:, None]
    edge = float((r / q[:, 0] + (w / (1 - q * w)) @ p).min())
    e = height - c * c * d * d / (2 * c)
    variance = float(p @ (e * e)) - float(p @ e) ** 2 - r / (2 * c * c)
    margin = 2 * bias * float(p @ (t * d)) / edge
    return margin, c * float(p @ d) ** 2 / math.sqrt(r), variance
