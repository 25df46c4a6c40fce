"""What noisy pair fractions say: intervals, and the chance that an order has a pair right.

All of it is post-processing of the released fractions and the public law of their noise.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, chndtr, expit, ndtr, ndtri

from privrank.consensus.bayes import shrink
from privrank.consensus.orders import borda
from privrank.consensus.spacing import score_draws
from privrank.noise import DiscreteGaussian, DiscreteLaplace
from privrank.nulltables import public_generator
from privrank.ranknoise import CubeNoise

__all__ = [
    "FLAGGED",
    "STATED",
    "SUPPRESSED",
    "PairLaw",
    "Target",
    "chances",
    "fraction_interval",
    "reliability",
    "reliable_from",
    "score_interval",
    "separated_groups",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Target = Literal["population", "sample"]
PairLaw = DiscreteLaplace | DiscreteGaussian | CubeNoise

FLAGGED, SUPPRESSED = 0.15, 0.30
"""Standard deviations of the noise in a fraction from which on a chance is flagged, or not shown"""

RELIABLE, BY_LUCK = 0.7, 0.005
"""Reliability of scores that is enough, as for scales of a questionnaire, and share of surveys of
items all alike that may reach what is asked for when their errors are normal"""

STATED = 0.95
"""Chance from which on it is stated: it can be too cautious by no more than what is left to 1"""

TYPICAL_MISFIT = 0.02
"""Scale of the prior for how far true fractions are from those of any scores"""

LARGEST_WEIGHT = 50.0
"""Largest weight of a draw of scores that would seldom be reliable enough to show"""

BLOCK = 200_000
"""Numbers of a block of draws and pairs"""


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


def _score_error(variance: float, sampling: float, m: int) -> float:
    """Return the error variance that a fraction adds to a score, of noise and of sampling pairs.

    Sampling counts (m + 1) / 3 times, as the pairs of a ranking depend on each other.
    """
    return variance + sampling * (m + 1) / 3.0


def _uniform_error(variance: float, units: int, target: Target, m: int) -> float:
    """Return that error variance when rankings are uniform."""
    return _score_error(variance, 0.25 / units if target == "population" else 0.0, m)


def reliability(fractions: FloatArray, variance: float, units: int, target: Target) -> float:
    """Return the share of the variance of Borda scores that is not error, estimated by moments.

    Parameters
    ----------
    fractions : ndarray, shape (m, m)
        Noisy fractions.
    variance : float
        Of the noise in each.
    units : int
        Number n of units.
    target : {"population", "sample"}
        Whose scores are measured: for the population sampling is error, too.

    Returns
    -------
    float
        Between 0 and 1.

    Notes
    -----
    **Statistic.** When rankings are uniform the Borda scores have the covariance t (m I - 11') with
    t = v + (m + 1) / (12 n): noise of variance v in each pair, and the variance (m^2 - 1) / 12 of a
    rank. So their sum of squares about the mean over m t is a statistic Q of equal scores, about
    chi-squared with m - 1 degrees of freedom, noncentral otherwise, and 1 - (m - 1) / Q, at least
    0, is the share by moments. Other rankings vary less, in all, than uniform ones, and much less
    if they leave out items, or if a unit has several: about the population it is then a lower
    bound.
    """
    m = len(fractions)
    squares = float(((0.5 * borda(fractions)) ** 2).sum())
    error = m * (m - 1) * _uniform_error(variance, units, target, m)
    return max(0.0, 1.0 - error / squares) if squares > 0.0 else 0.0


def reliable_from(m: int) -> float:
    """Return the reliability of the scores of m items from which on chances are shown.

    It is .7, and more with fewer than seven items, of which luck makes reliable scores more easily.
    The errors of pairs are taken as normal. Where cube or Laplace noise is most of the error, items
    all alike reach it four to five times as often: cube noise is large on all pairs at once.
    """
    alike = float(chdtri(m - 1, BY_LUCK))
    return max(RELIABLE, math.ceil(100.0 * (1.0 - (m - 1) / alike)) / 100.0)


def _shown(draws: FloatArray, error: float) -> FloatArray:
    """Return, for each draw of scores, the probability that their reliability is enough to show."""
    m = draws.shape[1]
    needed, squares = (m - 1) / (1.0 - reliable_from(m)), np.zeros(len(draws))
    for scores in draws.T:
        squares += (expit(scores[:, None] - draws) - 0.5).sum(axis=1) ** 2
    return np.asarray(1.0 - chndtr(needed, m - 1, squares / (m * error)))


def chances(fractions: FloatArray, variance: float, units: int, target: Target) -> FloatArray:
    """Return the probability, pair by pair, that the row item is preferred to the column item.

    Parameters
    ----------
    fractions : ndarray, shape (m, m)
        Noisy fractions of 4 to 100 items.
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
    **Statistic.** True fractions deviate from the logit surface F of scores with variance s^2, and
    a fraction is observed with variance t. The scores have the posterior law of
    `privrank.consensus.spacing`. Of the residual about the fitted surface a share
    s^2 / (s^2 + t) is true, with variance s^2 t / (s^2 + t), less the 2 / m of it that the scores
    take up: what of the deviations looks like scores counts as scores, whose error is due to t
    alone. The law of s, half Cauchy with scale .02 and the likelihood of the residuals, is on a
    grid from .001 to .5; probabilities are means over draws of both. Fractions are brought into
    [-1, 2] first.

    For the sample t is the variance v of the noise, which has no structure. For the population
    sampling adds v' = p (1 - p) / n to each pair, but the pairs of a ranking depend on each other:
    of a uniform ranking the variances of differences of mean ranks are (m + 1) / 3 times those of
    independent pairs, and as the variances of all D pairs add up to D / 4, the rest have a third.
    So t is v + v' (m + 1) / 3 for the scores, and v + v' / 3 about the surface.

    **Where it is shown.** Items that hardly differ, compared with the errors of their scores, have
    fitted scores that differ too much, and any prior that is wide enough for other surveys then
    makes large probabilities too large. So results show them from a reliability of .7 on, with four
    items .77. Some surveys just reach it by chance. What scores say of fractions given that they
    reach it is their likelihood over the probability of that, so each draw has the weight of one
    over it, at most 50. Without the limit probabilities just there are about .01 smaller. Where
    opinions lie on one line, half the rankings against the other half, the errors of scores go
    together: about the population large probabilities can still be too large, as they can for
    surveys of fewer than eight items that are reliable by luck: the noise is taken for normal, and
    the coordinates of cube noise are large together. Results state probabilities from .95 on, where
    they are too cautious by .05 at most. A smaller one is the more cautious the more evenly items
    lie apart, and a few items do not tell how evenly they do.
    """
    m = len(fractions)
    first, second = np.triu_indices(m, 1)
    shrunk = shrink(fractions, variance)
    surface = expit(shrunk.scores[first] - shrunk.scores[second])
    apart = along = variance
    if target == "population":
        inside = np.clip(surface, 0.5 / units, 1.0 - 0.5 / units)
        sampling = float((inside * (1.0 - inside)).mean()) / units
        apart, along = variance + sampling / 3.0, _score_error(variance, sampling, m)
    if apart == 0.0:
        return np.asarray(0.5 * (1.0 + np.sign(fractions - fractions.T)))
    draws = score_draws(fractions, shrunk.scores, along)
    residual = np.clip(fractions[first, second], -1.0, 2.0) - surface
    freedom = (m - 1) * (m - 2) / 2
    misfits = np.geomspace(0.001, 0.5, 24) ** 2
    total = apart + misfits
    log = 0.5 * np.log(misfits) - np.log1p(misfits / TYPICAL_MISFIT**2)
    log -= 0.5 * (freedom * np.log(total) + float(residual @ residual) / total)
    shares = np.cumsum(np.exp(log - log.max()))
    shown = _shown(draws, _uniform_error(variance, units, target, m))
    weights = 1.0 / np.maximum(shown, 1.0 / LARGEST_WEIGHT)
    weights /= weights.sum()
    # each draw of scores with one misfit: a stratified sample in a shuffled, public order
    levels = public_generator("misfits", m).permutation(len(draws)) + 0.5
    misfit = misfits[np.searchsorted(shares, levels / len(draws) * shares[-1])]
    trust = (misfit / (misfit + apart))[:, None]
    sd = np.sqrt(trust * apart * (1.0 - 2.0 / m))
    found, block = np.zeros(len(first)), max(1, BLOCK // len(first))
    for start in range(0, len(draws), block):
        rows = slice(start, start + block)
        gap = expit(draws[rows][:, first] - draws[rows][:, second]) - 0.5 + trust[rows] * residual
        found += weights[rows] @ ndtr(gap / sd[rows])
    out = np.full((m, m), 0.5)
    out[first, second] = found
    out[second, first] = 1.0 - out[first, second]
    return out
