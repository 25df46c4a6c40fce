"""Confidence interval for a total variation distance from uniformity, from a noisy statistic."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privrank.noise import DiscreteLaplace
from privrank.nulltables import public_generator
from privrank.statistics.categories import excess

__all__ = ["tv_interval"]

FloatArray = NDArray[np.float64]

_CELLS = 2**19
"""Simulated counts per evaluation, within the limits below."""

_FEWEST, _MOST = 1_000, 10_000
"""Simulated samples per evaluation."""

_STEPS = 10
"""Halvings of a bracket."""

_SPREAD = (0.3, 0.5, 0.7, 0.85, 1.15, 1.4, 1.8, 2.5)
"""Sizes, relative to the least favourable one in the mean, at which the upper end is checked."""


def tv_interval(
    noisy: int, n: int, k: int, law: DiscreteLaplace, alpha: float
) -> tuple[float, float]:
    """Return a 1 - alpha confidence interval for the total variation distance from 1 / k.

    Parameters
    ----------
    noisy : int
        Released value of `total_variation(n, k)`.
    n, k : int
        Numbers of choices and of categories, both at least 2.
    law : DiscreteLaplace
        Law of the noise in `noisy`.
    alpha : float
        Probability that the interval may miss, shared evenly by both sides.

    Returns
    -------
    low, high : float
        Within [0, 1 - 1 / k]; a single point where the noise has led beyond what can be.

    Notes
    -----
    Inversion of one-sided tests. Among the distributions p at total variation distance tau from
    uniform, one majorizes all: one category is raised by tau and as many others as possible are
    emptied. All majorize one of k - 1: a categories are raised by tau / a, the others lowered
    evenly. The statistic is Schur-convex in the counts, so its tails are Schur-convex in p
    (Rinott 1973): the first is the stochastically largest, one of the others the smallest. tau is
    excluded from below (above) if even there the statistic reaches (stays within) what was
    released with probability at most alpha / 2. Both families rise in tau, so the tau that are
    kept are bounded by bisection, whose brackets are rounded outwards.

    Probabilities are means over public simulated samples, the same stream for every tau, with
    the noise integrated out exactly. Two standard errors of the mean, and one further sample
    counted as a hit, are added before they are compared with alpha / 2: simulation widens the
    interval. The least favourable a is that of the least mean, which is exact, and eight others
    are checked at the upper end and extend it where they are less favourable still.
    """
    most = 1 - 1 / k

    def above(tau: float) -> bool:
        return _mass(_largest(k, tau), noisy, n, law, upper=True) > alpha / 2

    def below(tau: float, size: int) -> bool:
        if tau > 1 - size / k:
            return False
        return _mass(_two_level(k, tau, size), noisy, n, law, upper=False) > alpha / 2

    low, _ = _boundary(lambda tau: not above(tau), 0.0, most)
    _, high = _boundary(lambda tau: below(tau, _least_mean(n, k, tau)), 0.0, most)
    centre = _least_mean(n, k, high)
    sizes = {min(max(round(ratio * centre), 1), k - 1) for ratio in _SPREAD} - {centre}
    for size in sorted(sizes):
        _, high = _boundary(lambda tau, size=size: below(tau, size), high, most)  # type: ignore[misc]
    return low, max(low, high)


def _boundary(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return a bracket of where a condition that holds on the left ceases to hold.

    (low, low) where it does not hold at low; (high, high) where it still does at high.
    """
    if not holds(low):
        return low, low
    if holds(high):
        return high, high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def _mass(cells: FloatArray, noisy: int, n: int, law: DiscreteLaplace, *, upper: bool) -> float:
    """Return a high estimate of P(statistic + noise >= noisy), or of that of <=."""
    k = len(cells)
    samples = min(max(_CELLS // k, _FEWEST), _MOST)
    rng = public_generator("total variation interval", n, k)
    values = excess(rng.multinomial(n, cells, samples), n)
    tail = law.tail(noisy - values) if upper else 1.0 - law.tail(noisy + 1 - values)
    error = float(tail.std()) / math.sqrt(samples)
    return (1.0 + float(tail.sum())) / (1.0 + samples) + 2.0 * error


def _largest(k: int, tau: float) -> FloatArray:
    """Return the stochastically largest distribution, ascending (numpy fills the last cell)."""
    rest = max(1 - 1 / k - tau, 0.0)
    full = min(int(rest * k), k - 1)
    cells = np.zeros(k)
    cells[k - 1 - full : k - 1] = 1 / k
    if full < k - 1:
        cells[k - 2 - full] = max(rest - full / k, 0.0)
    cells[-1] = 1 - cells[:-1].sum()
    return cells


def _two_level(k: int, tau: float, size: int) -> FloatArray:
    """Return 1 / k + tau / size on `size` categories, and the rest evenly, ascending."""
    cells = np.full(k, 1 / k + tau / size)
    cells[: k - size] = max(1 / k - tau / (k - size), 0.0)
    return np.asarray(cells / cells.sum())


def _least_mean(n: int, k: int, tau: float) -> int:
    """Return the size at which the mean statistic under the two-level distributions is least.

    E (M - c)+ = n p P(M' >= j - 1) - c P(M >= j), M binomial(n, p), M' binomial(n - 1, p),
    j = floor(c) + 1, c = n / k; a binomial tail is an incomplete beta function.
    """
    from scipy.special import betainc

    sizes = np.arange(1, max(1, math.floor(k * (1 - tau))) + 1)
    sizes = sizes[sizes < k]
    least = n // k + 1

    def mean(p: FloatArray) -> FloatArray:
        p = np.clip(p, 0.0, 1.0)
        longer = betainc(least, n - least + 1, p)
        shorter = betainc(least - 1, n - least + 1, p) if least > 1 else 1.0
        return np.asarray(n * p * shorter - n / k * longer)

    means = sizes * mean(1 / k + tau / sizes) + (k - sizes) * mean(1 / k - tau / (k - sizes))
    return int(sizes[means.argmin()])
