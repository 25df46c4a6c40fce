"""The chance that an item is among the k best, given noisy win rates. Sees no data."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from privrank.arrays import own
from privrank.netnoise import NetLaw
from privrank.noise import DiscreteGaussian, DiscreteLaplace
from privrank.nulltables import public_generator

__all__ = ["FEWEST_ITEMS", "LARGEST_NOISE", "set_chances"]

FloatArray = NDArray[np.float64]

FEWEST_ITEMS, LARGEST_NOISE = 6, 0.15
"""Items from which on, and noise of a rate up to which, the spread of true rates can be learnt"""

_SPREADS, _POINTS, _SAMPLE = 24, 512, 2**16
"""Values of the spread, of the noise, and draws that the latter are the means of groups of."""

_LEAST, _MOST, _LARGEST = 2**11, 2**13, 2**22
"""Draws of all true rates, and how many numbers they come to where that allows the least."""


def set_chances(
    rates: FloatArray,
    spent: FloatArray,
    extra: FloatArray,
    law: NetLaw,
    weight: FloatArray,
    k: int,
    *,
    fixed_pairs: bool,
) -> FloatArray:
    """Return the chance that each item's true win rate is among the k largest.

    Parameters
    ----------
    rates : ndarray, shape (m,)
        Noisy win rates.
    spent : ndarray, shape (m,)
        Sampling variance of each rate over that of one answer: the design effect over the degree.
    extra : ndarray, shape (m,)
        Variance of other normal errors of each rate.
    law : Law
        Law of the noise of the net wins.
    weight : ndarray, shape (m,)
        What the rates' noise is in steps of that law.
    k : int
        Size of the set.
    fixed_pairs : bool
        Whether an answer's variance is p (1 - p); else it varies with who met whom too, at 1 / 4.

    Returns
    -------
    ndarray, shape (m,)
        They add up to k.

    Notes
    -----
    **Statistic.** Empirical Bayes. True rates are normal about a common mean with spread o, the
    noisy rates about them with normal sampling error and the noise of the law. Only differences
    matter, and those of a round robin, or of noise that sums to zero, vary like those of
    independent numbers of m / (m - 1) the variance; so errors are taken as independent, with that
    variance. The rates of m items have a variance of at most (m + 1) / (12 (m - 1)), that of a
    strict order (Landau). Up to it o is integrated out, all values being alike beforehand, with the
    likelihood of the noisy rates; the mean is fitted at each o. Noise enters by its distribution:
    given o the share of each of its values is as the rest of the rate makes it likely. Then true
    rates are drawn, and counted. The random numbers are public, so equal releases have equal
    chances.

    **When it holds.** Averaged over surveys whose items have worths at random, of any spread, it is
    calibrated. Where noise hides the spread, items that are much alike are told apart less surely
    than is said, and items far apart more surely.
    """
    m = len(rates)
    twice = m / (m - 1)
    generator = public_generator("top k chances", m)
    points = _noise_points(law, m)
    noise = weight**2 * float((points**2).mean())
    # an answer's variance at the rate shrunk by the noise seen, never at a noisy rate itself
    error = twice * (0.25 * spent + extra) + noise
    found = max(float(np.var(rates, ddof=1) - error.mean()), 0.0)
    shrunk = np.clip(0.5 + found / (found + error) * (rates - 0.5), 0.02, 0.98)
    answer = shrunk * (1.0 - shrunk) if fixed_pairs else 0.25
    sampling = twice * (answer * spent + extra)
    most = math.sqrt((m + 1) / (12.0 * (m - 1)))
    spreads = most * (np.arange(_SPREADS) + 0.5) / _SPREADS
    # the rates without each value of the noise, shape (m, points)
    rest = rates[:, None] - weight[:, None] * points
    levels = np.empty(_SPREADS)
    centres = np.empty(_SPREADS)
    for number, spread in enumerate(spreads):
        share = 1.0 / (spread**2 + sampling + noise)
        centres[number] = share @ rates / share.sum()
        log = _log_shares(rest, centres[number], spread**2 + sampling)
        levels[number] = logsumexp(log, axis=1).sum() - 0.5 * math.log(share.sum())
    likely = np.exp(levels - levels.max()).cumsum()
    draws = max(_LEAST, min(_MOST, _LARGEST // m))
    ends = np.rint(draws * likely / likely[-1]).astype(np.int64)
    counts = np.zeros(m)
    for number, spread in enumerate(spreads):
        size = int(ends[number] - (ends[number - 1] if number else 0))
        if size == 0:
            continue
        variance = spread**2 + sampling
        log = _log_shares(rest, centres[number], variance)
        chance = np.exp(log - log.max(axis=1, keepdims=True)).cumsum(axis=1)
        chance /= chance[:, -1:]
        # all items' distributions side by side, so that one search serves them all
        row = np.arange(m)
        place = np.searchsorted((chance + row[:, None]).ravel(), generator.random((size, m)) + row)
        value = rest.ravel()[np.minimum(place, (row + 1) * len(points) - 1)]
        kept = spread**2 / variance
        true = centres[number] + kept * (value - centres[number])
        true += np.sqrt(kept * sampling) * generator.standard_normal((size, m))
        best = np.argpartition(true, m - k, axis=1)[:, m - k :]
        counts += np.bincount(best.ravel(), minlength=m)
    return np.asarray(counts / draws)


def _log_shares(rest: FloatArray, centre: float, variance: FloatArray) -> FloatArray:
    """Return normal log densities of the rates without the noise, up to a constant."""
    return np.asarray(-0.5 * ((rest - centre) ** 2 / variance[:, None] + np.log(variance)[:, None]))


@lru_cache(maxsize=8)
def _noise_points(law: NetLaw, items: int) -> FloatArray:
    """Return values of one entry of the noise that are alike in probability, symmetric about 0."""
    if law.variance == 0:
        return np.zeros(1)
    generator = public_generator("noise points", items)
    draws = law.simulate((math.ceil(_SAMPLE / items), items), generator).ravel()
    half = np.sort(np.abs(draws))
    half = half[half.size % (_POINTS // 2) :].reshape(_POINTS // 2, -1).mean(axis=1)
    if not isinstance(law, DiscreteLaplace | DiscreteGaussian):
        half *= math.sqrt(items / (items - 1))
    return own(np.concatenate((-half[::-1], half)), np.float64)
