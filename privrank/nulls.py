"""Null laws of noisy statistics, from public numbers only.

Monte Carlo tables come from a public counter seed of (method, sizes), never from a caller's
generator, so that a p-value is a deterministic function of the release.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

__all__ = ["monte_carlo_pvalue", "normal_laplace_tail", "public_generator"]

FloatArray = NDArray[np.float64]

_SPAN = 1e-4
"""Least relative half distance of two squared scales in a divided difference."""

TABLE_VERSION = 1
"""Raise when a table's law changes, so that old and new p-values are told apart."""


def public_generator(method: str, *sizes: int) -> np.random.Generator:
    """Return the generator of a public null table, seeded by its name and sizes alone."""
    key = [zlib.crc32(method.encode()), TABLE_VERSION, *sizes]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))


def monte_carlo_pvalue(statistic: float, table: FloatArray) -> float:
    """Return (1 + #{table >= statistic}) / (1 + len(table)), valid for every table size."""
    return float((1 + np.count_nonzero(table >= statistic)) / (1 + len(table)))


def _one_laplace_tail(x: FloatArray, sd: FloatArray, scale: FloatArray) -> FloatArray:
    """Return P(Z + L > x) for Z normal(0, sd^2) and L Laplace(scale), x >= 0.

    P(Z > x) + (e^{-x/b} P(Z < x - sd^2/b) e^{s} - e^{x/b} P(Z > x + sd^2/b) e^{s}) / 2 with
    s = sd^2 / (2 b^2). The scaled function erfcx keeps the products of huge and tiny factors in
    range: with a normal density factored out, e^{s +- x/b} P(Z > ...) = e^{-z^2/2} erfcx(...) / 2.
    """
    z = x / sd
    shift = sd / scale
    density = np.exp(-0.5 * z * z)
    far = 0.25 * density * erfcx((z + shift) / np.sqrt(2.0))
    near_argument = (shift - z) / np.sqrt(2.0)
    # e^{s - x/b} P(Z < x - sd^2/b); for a positive argument through erfcx, else directly
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.where(
            near_argument > 0,
            0.25 * density * erfcx(np.maximum(near_argument, 0.0)),
            0.5 * np.exp(np.minimum(0.5 * shift * shift - x / scale, 0.0)) * ndtr(z - shift),
        )
    return np.asarray(ndtr(-z) + near - far)


def normal_laplace_tail(
    x: float | FloatArray, sd: float | FloatArray, scales: tuple[float | FloatArray, ...]
) -> FloatArray:
    """Return P(|Z + L_1 + ... | > x) for a centred normal plus at most two Laplace variables.

    Parameters
    ----------
    x : float or ndarray
        Where to evaluate the two-sided tail; at least 0.
    sd : float or ndarray
        Standard deviation of the normal part; positive.
    scales : tuple of zero, one or two floats or ndarrays
        Scales of the independent Laplace variables; 0 means absent.

    Returns
    -------
    ndarray
        Two-sided tail probabilities.

    Notes
    -----
    **Null.** In their squared scales, two Laplace variables are a divided difference of one: the
    characteristic function 1 / ((1 + s_1 t^2) (1 + s_2 t^2)) splits into partial fractions. Nearly
    equal scales are set apart symmetrically, which moves the probability by less than 10^-7.
    """
    x, sd = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(sd, dtype=float))
    tail = np.asarray(2.0 * ndtr(-x / sd))
    present = [np.broadcast_to(np.asarray(b, dtype=float), x.shape) for b in scales]
    if not present or all(np.all(b == 0) for b in present):
        return tail
    floor = 1e-9 * sd
    big = np.maximum(present[0], floor)
    if len(present) == 1:
        return np.asarray(2.0 * _one_laplace_tail(x, sd, big))
    # T_2 = (s_1 T_1(s_1) - s_2 T_1(s_2)) / (s_1 - s_2) with squared scales s: a divided difference,
    # which for nearly equal scales is taken over a small span around their mean
    squares = np.maximum(present[0], floor) ** 2, np.maximum(present[1], floor) ** 2
    middle = 0.5 * (squares[0] + squares[1])
    half = np.maximum(0.5 * np.abs(squares[0] - squares[1]), _SPAN * middle)
    high, low = middle + half, np.maximum(middle - half, 0.5 * floor**2)
    difference = high * _one_laplace_tail(x, sd, np.sqrt(high)) - low * _one_laplace_tail(
        x, sd, np.sqrt(low)
    )
    return np.asarray(np.clip(difference / half, 0.0, 1.0))
