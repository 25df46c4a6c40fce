"""What noisy pair fractions say: intervals, and the chance that an order has a pair right.

All of it is post-processing of the released fractions and the public law of their noise.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from privrank.consensus.bayes import shrink
from privrank.noise import DiscreteGaussian, DiscreteLaplace
from privrank.ranknoise import CubeNoise

__all__ = [
    "FEWEST_ITEMS",
    "FLAGGED",
    "SUPPRESSED",
    "PairLaw",
    "Target",
    "chances",
    "fraction_interval",
    "score_interval",
    "separated_groups",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Target = Literal["population", "sample"]
PairLaw = DiscreteLaplace | DiscreteGaussian | CubeNoise

FLAGGED, SUPPRESSED = 0.15, 0.30
"""Standard deviations of the noise in a fraction from which on a chance is flagged, or not shown"""

FEWEST_ITEMS = 6
"""Items from which on chances are shown: how far items lie apart is learnt from the pairs."""


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


def separated_groups(order: IntArray, separated: NDArray[np.bool_]) -> tuple[IntArray, ...]:
    """Return the order cut between the neighbours that are separated."""
    return tuple(np.split(np.asarray(order), np.flatnonzero(separated) + 1))


def chances(fractions: FloatArray, variance: float, units: int, target: Target) -> FloatArray:
    """Return the chance, pair by pair, that the row item is preferred to the column item.

    Parameters
    ----------
    fractions : ndarray, shape (m, m)
        Noisy fractions.
    variance : float
        Of the noise in each.
    units : int
        Number n of units.
    target : {"population", "sample"}
        By whom preferred.

    Returns
    -------
    ndarray, shape (m, m)
        With 1/2 on the diagonal; entries (i, j) and (j, i) add up to 1.

    Notes
    -----
    **Statistic.** Empirical Bayes on two levels. A fraction is observed with variance t; true
    fractions lie about the logit surface F of scores with variance s^2; scores about 0 with
    variance o^2. With L the Laplacian of the squared slopes of F and c the variance of a difference
    of fitted scores, (t + s^2) times the resistance of L, o^2 is estimated by moments and the
    surface's deviation from 1/2 shrunk by 2 o^2 / (2 o^2 + c). Given s the fraction is normal
    about the surface and the observation, weighted as their variances say. The misfit s is
    integrated out over a grid, with its likelihood from the residuals, as the data often say little
    about it; a prior that treats all magnitudes of s alike, and none besides.

    For the sample t is the variance v of the noise, which has no structure. For the population
    sampling adds v' = p (1 - p) / n to each pair, but the pairs of a ranking depend on each other:
    of a uniform ranking the variances of differences of mean ranks are (m + 1) / 3 times those of
    independent pairs, and as the variances of all D pairs add up to D / 4, the rest have a third.
    So t is v + v' (m + 1) / 3 for the scores, and v + v' / 3 about the surface.

    **When it holds.** Averaged over surveys whose items have scores at random, it is calibrated.
    Items at equal distances, as in a Mallows model with little noise, are ordered rightly more
    often than is said. With fewer than six items the spread of scores is hardly known.
    """
    m = len(fractions)
    if m < 2:
        return np.full((m, m), 0.5)
    shrunk = shrink(fractions, variance)
    surface = expit(shrunk.scores[:, None] - shrunk.scores)
    apart = along = variance
    if target == "population":
        inside = np.clip(surface, 0.5 / units, 1.0 - 0.5 / units)[np.triu_indices(m, 1)]
        sampling = float((inside * (1.0 - inside)).mean()) / units
        apart, along = variance + sampling / 3.0, variance + sampling * (m + 1) / 3.0
    if apart == 0.0:
        return np.asarray(0.5 * (1.0 + np.sign(fractions - fractions.T)))
    slope = surface * (1.0 - surface)
    weight = np.maximum(slope**2, 1e-12)
    np.fill_diagonal(weight, 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.inv(laplacian + laplacian.trace() / m**2) - m / laplacian.trace()
    diagonal = inverse.diagonal()
    resistance = diagonal[:, None] + diagonal - 2.0 * inverse
    freedom = (m - 1) * (m - 2) / 2
    residual = np.clip(fractions, -1.0, 2.0) - surface
    squares = float((residual**2).sum()) / 2
    misfits = np.append(0.0, np.geomspace(0.003, 0.5, 24)) ** 2
    log = -0.5 * (freedom * np.log(apart + misfits) + squares / (apart + misfits))
    shares = np.exp(log - log.max())
    spread = float((shrunk.scores**2).sum()) / (m - 1)
    found = np.zeros((m, m))
    for share, misfit in zip(shares / shares.sum(), misfits, strict=True):
        error = (along + misfit) * resistance
        prior = 2.0 * max(spread - (along + misfit) * float(diagonal.sum()) / (m - 1), 0.0)
        kept = prior / np.maximum(prior + error, 1e-300)
        trust = misfit / (apart + misfit)
        surface_gap = kept * (surface - 0.5)
        gap = surface_gap + trust * (fractions - 0.5 - surface_gap)
        sd = np.sqrt(trust * apart + (1.0 - trust) ** 2 * slope**2 * error * kept)
        found += share * ndtr(gap / np.maximum(sd, 1e-12))
    np.fill_diagonal(found, 0.5)
    return np.asarray(0.5 * (found + 1.0 - found.T))
