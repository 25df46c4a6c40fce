"""Two categories: the uniformly most powerful private binomial test, and its two-sided companion.

A release is the count plus discrete Laplace noise, a whole number. Awan and Slavkovic (2018) add
Tulap noise, which is discrete Laplace noise plus an independent uniform number in (-1/2, 1/2):
that number says nothing of the data, so it may be added to the release, in public, or left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nulls import Null
from privrank.hypotheses.statistic import Statistic
from privrank.mechanisms.statistics.fit import binomial_law, total_variation_from
from privrank.privacy.noise import DiscreteLaplace

__all__ = ["Alternative", "Tulap", "binomial", "binomial_interval", "ump_pvalue"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Order = tuple[int, ...]

Alternative = Literal["larger", "smaller", "two-sided"]

_STEPS = 60
"""Halvings of a bracket of a probability."""


@dataclass(frozen=True, slots=True)
class Tulap:
    """The law of the sum of discrete Laplace noise and a uniform number in (-1/2, 1/2).

    Parameters
    ----------
    law : DiscreteLaplace
        With scale 1 / epsilon, it is Tulap(0, e^-epsilon, 0) of Awan and Slavkovic (2018).

    Notes
    -----
    **Statistic.** At x, with r its nearest whole number, P(N <= x) is
    P(L <= r - 1) + (x - r + 1/2) P(L = r): piecewise linear between the half-integers.
    """

    law: DiscreteLaplace

    def cdf(self, x: float | FloatArray) -> FloatArray:
        """Return P(N <= x)."""
        at = np.asarray(x, dtype=np.float64)
        nearest = np.floor(at + 0.5)
        steps = nearest.astype(np.int64)
        return np.asarray(1.0 - self.law.tail(steps) + (at - nearest + 0.5) * self.law.pmf(steps))

    def sf(self, x: float | FloatArray) -> FloatArray:
        """Return P(N > x): the law is symmetric."""
        return self.cdf(-np.asarray(x, dtype=np.float64))


def binomial(n: int, p: float, alternative: Alternative = "two-sided") -> Statistic:
    """Return the statistic of a test that the first of two categories has probability p.

    Parameters
    ----------
    n : int
        Number of choices, at least 2.
    p : float
        Null probability of the first category, in [0, 1].
    alternative : {"two-sided", "larger", "smaller"}
        What the probability is under H1.

    Returns
    -------
    Statistic
        The count M of the first category for ``"larger"``, that of the second for ``"smaller"``,
        and |M / n - p| as `total_variation_from` has it for ``"two-sided"``.

    Notes
    -----
    **Privacy.** Replacing a choice moves either count by at most 1.

    **Null.** Binomial, exact. With noise of scale 1 / epsilon, R = M + L released and U uniform on
    (-1/2, 1/2), R + U has Tulap noise, and among all epsilon-private tests of one level against
    larger probabilities the one that rejects for large R + U is the most powerful, whatever the
    alternative (Awan and Slavkovic 2018). Given R it is the randomized test that rejects for
    R > c, and at R = c with a probability that U decides. The test by the p-value
    P(M + L >= R) rejects for R > c only, or for R >= c if that has the level: it is that test
    without the lot at the boundary, whose mass is at most P(L = 0) = tanh(epsilon / 2), and
    smaller the more M spreads. `ump_pvalue` is the p-value with it. No test is the most powerful
    on both sides at once.

    References
    ----------
    Awan and Slavkovic (2018), Differentially Private Uniformly Most Powerful Tests for Binomial
    Data.
    """
    if alternative == "two-sided":
        two = total_variation_from(n, (p, 1.0 - p))
        return replace(
            two, name="distance of the share from the null", null=partial(_folded_null, n, p)
        )
    first = alternative == "larger"
    return Statistic(
        name=f"count of the {'first' if first else 'second'} category",
        step=1.0,
        sensitivity=1,
        value=partial(_count, category=0 if first else 1),
        null=partial(_null, n, p if first else 1.0 - p),
    )


def _count(counts: IntArray, order: Order, category: int) -> int:
    return int(counts[category])


def _null(n: int, p: float, draws: int) -> Null:
    return Null(np.arange(n + 1), binomial_law(n, p))


def _folded_null(n: int, p: float, draws: int) -> Null:
    return total_variation_from(n, (p, 1.0 - p)).null(draws)


def ump_pvalue(noisy: int, n: int, p: float, law: DiscreteLaplace, uniform: float) -> float:
    """Return the p-value of the most powerful private test against a larger probability.

    Parameters
    ----------
    noisy : int
        Released value of `binomial(n, p, "larger")`, or of ``"smaller"`` with 1 - p here.
    n : int
        Number of choices.
    p : float
        Null probability of the category that was counted.
    law : DiscreteLaplace
        Law of the noise in `noisy`.
    uniform : float
        Drawn uniformly from (-1/2, 1/2), independently of everything else. It may be published;
        it may not be chosen after `noisy` was seen.

    Returns
    -------
    float

    Notes
    -----
    **Null.** P(M + N >= R + U) with N Tulap noise, M binomial, R the release, U `uniform`. R + U
    has that same continuous law, so the p-value is exactly uniform on (0, 1) under H0. It equals
    P(M + L > R) + (1/2 - U) P(M + L = R), at most P(M + L >= R), the p-value without U.
    """
    less = noisy + uniform - np.arange(n + 1, dtype=np.float64)
    return float((binomial_law(n, p) * Tulap(law).sf(less)).sum())


def binomial_interval(
    noisy: int, n: int, law: DiscreteLaplace, alpha: float
) -> tuple[float, float]:
    """Return a 1 - alpha confidence interval for the probability of the category counted.

    Parameters
    ----------
    noisy : int
        Released count: of the first category for ``"larger"``, of the second for ``"smaller"``.
    n : int
        Number of choices.
    law : DiscreteLaplace
        Law of the noise in `noisy`.
    alpha : float
        Probability that the interval may miss, shared evenly by both sides.

    Returns
    -------
    low, high : float
        In [0, 1].

    Notes
    -----
    Clopper and Pearson's interval with noise: M + L rises stochastically with p, so the p with
    P(M + L >= noisy) > alpha / 2 and P(M + L <= noisy) > alpha / 2 are an interval, found by
    bisection. Its coverage is at least 1 - alpha for every p.
    """
    counts = np.arange(n + 1)
    above = law.tail(noisy - counts)
    below = 1.0 - law.tail(noisy + 1 - counts)

    def boundary(tail: FloatArray, *, rising: bool) -> float:
        low, high = 0.0, 1.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            kept = float(binomial_law(n, middle) @ tail) > alpha / 2
            low, high = (low, middle) if kept == rising else (middle, high)
        return low if rising else high

    # where even the end of the range is kept, the bisection runs into it
    return _ends(boundary(above, rising=True), boundary(below, rising=False))


def _ends(low: float, high: float) -> tuple[float, float]:
    tiny = math.ldexp(1.0, 1 - _STEPS)
    low, high = (0.0 if low <= tiny else low), (1.0 if high >= 1 - tiny else high)
    return min(low, high), max(low, high)
