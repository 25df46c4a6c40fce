"""Intervals of noisy pair fractions, and of means such as Borda and Kemeny scores.

All of it is post-processing of the released fractions and the public law of their noise.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrank.privacy.knorm import CubeNoise
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace

__all__ = ["PairLaw", "Target", "fraction_interval", "score_interval"]

FloatArray = NDArray[np.float64]

Target = Literal["population", "sample"]
PairLaw = DiscreteLaplace | DiscreteGaussian | CubeNoise


def fraction_interval(
    fractions: FloatArray,
    law: PairLaw,
    step: float,
    units: int,
    alpha: float,
    target: Target,
    coordinates: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """Return intervals for the fractions of rankings that place one item before another.

    Parameters
    ----------
    fractions : ndarray
        Noisy fractions, of any shape.
    law : PairLaw
        Law of the noise in the counts.
    step : float
        Size of a step of that law, in fractions.
    units : int
        Number n of units.
    alpha : float
        One minus the confidence level.
    target : {"population", "sample"}
        Whose fractions: of the population the units were drawn from, or of the units themselves.
    coordinates : int, default 1
        1 for one interval at a time; the number of pairs for all at once.

    Returns
    -------
    lower, upper : ndarray

    Notes
    -----
    **Statistic.** For the sample, the fraction plus and minus the exact quantile q of the noise:
    of the largest coordinate, when all intervals shall hold at once. For the population, all p
    with (w - p)^2 <= q^2 + z^2 p (1 - p) / n: Wilson's interval with noise, where w is the
    fraction, brought into [0, 1], and z the normal quantile (Sidak's for all at once). For cube
    noise q is such that this is exact at p = 1/2: its coordinates share a radius, so that the
    largest of their sums with sampling errors is above the hypotenuse of the two largest. A unit
    with several rankings has a mean that varies less than p (1 - p), which errs on the wide side.
    """
    w = np.clip(fractions, 0.0, 1.0)
    noise = step * law.half_width(alpha, coordinates)
    if target == "sample":
        return np.clip(fractions - noise, 0.0, 1.0), np.clip(fractions + noise, 0.0, 1.0)
    each = -math.expm1(math.log1p(-alpha) / coordinates)
    spread = float(ndtri(0.5 * each)) ** 2 / units
    if isinstance(law, CubeNoise):
        both = step * law.half_width(alpha, coordinates, 0.5 / math.sqrt(units) / step)
        noise = math.sqrt(max(both**2 - 0.25 * spread, 0.0))
    middle = (w + 0.5 * spread) / (1.0 + spread)
    square = (w**2 - noise**2) / (1.0 + spread)
    half = np.sqrt(np.maximum(middle**2 - square, 0.0))
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def score_interval(
    score: float, noise: float, largest: float, units: int, alpha: float, target: Target
) -> tuple[float, float]:
    """Return an interval for a mean of values between 0 and `largest`, such as a Kemeny score.

    Parameters
    ----------
    score : float
        The noisy mean.
    noise : float
        Half width that the noise alone needs.
    largest : float
        The largest value.
    units : int
        Number of values.
    alpha : float
        One minus the confidence level.
    target : {"population", "sample"}
        Of whom the mean is.

    Returns
    -------
    lower, upper : float

    Notes
    -----
    **Statistic.** Values in [0, b] with mean s have variance at most s (b - s) (Bhatia and Davis),
    which is the sampling variance taken for the population: it errs on the wide side.
    """
    centre = min(max(score, 0.0), largest)
    sampling = 0.0
    if target == "population":
        sampling = -float(ndtri(0.5 * alpha)) * math.sqrt(centre * (largest - centre) / units)
    half = math.hypot(noise, sampling)
    return max(score - half, 0.0), min(score + half, largest)
