r"""Confidence intervals and estimates of distances, from noisy statistics.

*From the null.* The total variation distance of one sample from known probabilities
(:func:`interval_from`, :func:`corrected_distance`).

*Of two samples.* theta is the distance of the distributions of two independent samples, total
variation or that of their mean features under a kernel. T_0 is that of the samples, n_1 and n_2
units with one observation each. T_1, ..., T_B are those of re-labelled samples, and
s = 1 / n_1 + 1 / n_2. Released are T_0 and, where `Distance` says so, a second number that the T_i
decide: their mean for total variation, a threshold for a kernel. Both have independent Laplace
noise of scale b.

**The zero rule.** Where a distance of 0 is the null hypothesis (total variation or a characteristic
kernel) the ends below, which cover any distance above 0, are made to agree with the test
(:func:`zero_rule`). Otherwise they stand alone.

**Ends.** Let W be standard normal, L and L' standard Laplace variables.

- *By concentration.* A unit of sample g moves T_0 by at most diam / n_g, so by McDiarmid's
  inequality P(T_0 + b L - E T_0 >= u) <= E exp(-2 ((u - b L)+)^2 / (diam^2 s)); let u make that
  alpha / 2. As a norm is convex, E T_0 >= theta: U = T + u for the released T = T_0 + b L.
  Conversely E T_0 <= theta + sqrt((k - 1) s) / 2 for total variation of k categories, and
  E T_0^2 <= theta^2 + s for a kernel that is at most 1: L = T - u - sqrt((k - 1) s) / 2, and
  L = sqrt(((T - u)+)^2 - s)+. These need no second number.
- *Total variation, lower.* T_0 <= theta + the norm of the centred sampling error, whose mean is
  about that of the permuted T_i and whose variance is at most (1 - 2 / pi) / 4 s where cells are
  about normal and n_1 = n_2, s / 4 always: L = T - mean - d, d the 1 - alpha / 2 quantile of
  W sqrt(variance) + b (L + L'). The greater variance is taken for unequal sizes and two categories.
- *Total variation, upper*, of at most min(n_1, n_2) / 10 categories: with normal cells of standard
  deviations that sum to S, E T_0 >= m(theta) = S / 2 g(2 theta / S), g(r) = r (2 Phi(r) - 1) +
  2 phi(r), however theta is spread over the cells (g is convex). So T + d >= m(theta), d the
  1 - 0.4 alpha quantile of W sqrt(s / 4) + b L, and S comes from the mean, lowered by what its
  noise exceeds with probability alpha / 10: E T = S / sqrt(2 pi) where theta = 0.
- *Kernel, lower.* L = T - c for the noisy threshold c, which excludes theta = 0 with probability
  alpha / 2 exactly under equality. For sizes that differ by more than a factor of four the smaller
  of this and the end by concentration, as the permutations' spread may fall short there.

References
----------
McDiarmid (1989); Hoeffding (1963), https://doi.org/10.1080/01621459.1963.10500830.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privrank.hypotheses.nullmodel import Probabilities, binomial_weights
from privrank.privacy.noise import DiscreteLaplace
from privrank.util.arrays import FloatArray, immutable
from privrank.util.solvers import bisect

_HALVINGS = 10
"""Halvings of a bracket."""

_EXACT = 2**16
"""Choices of two categories up to which their counts are summed exactly."""

THRESHOLD_LEVEL = "threshold level"
"""The setting that says at which level a threshold was released beside a distance."""

_FINE_HALVINGS = 44
"""And of one whose condition is quick to check."""

_LAPLACE = np.linspace(-32.0, 32.0, 4_001)
"""Standard Laplace variables, for sums over their distribution; what is beyond has 1e-14."""

_WEIGHTS = {
    1: np.exp(-np.abs(_LAPLACE)),
    2: np.exp(-np.abs(_LAPLACE)) * (1.0 + np.abs(_LAPLACE)),
}
"""Densities, but for a factor, of one and of the sum of two of them."""

_FEW = 10
"""Observations per category from which cells are about normal."""

_UNEQUAL = 4
"""Ratio of sizes up to which permuted kernel distances spread as widely as those of samples."""

_HALF_NORMAL = 0.25 * (1.0 - 2.0 / math.pi)


def interval_from(
    noisy: int,
    n: int,
    p: Probabilities,
    distribution: DiscreteLaplace,
    alpha: float,
    *,
    step: float,
    sensitivity: int,
) -> tuple[float, float]:
    """Return an interval of coverage at least 1 - alpha for the total variation distance from p.

    Parameters
    ----------
    noisy : int
        The released total variation distance of the shares from p, in lattice steps.
    n : int
        Number of choices.
    p : tuple of float
        Null probabilities; the interval for two is exact.
    distribution : DiscreteLaplace
        Distribution of the noise in `noisy`.
    alpha : float
        Probability that the interval may miss, shared evenly by both sides.
    step : float
        Size of a lattice step.
    sensitivity : int
        By how many steps a replaced choice moves the distance at most.

    Returns
    -------
    low, high : float
        Within [0, 1 - min p]; a single point where the noise has led beyond what can be.

    Notes
    -----
    Let S be the distance of the shares from p, tau that of their true distribution P. S is convex
    in the shares, so E S >= tau. By the triangle inequality E S <= tau + beta, beta the mean
    distance of shares from P. That of a share is at most sqrt(P_x (1 - P_x) / n), so that
    beta <= sqrt((k - 1) / n) / 2 for every P of k categories (Cauchy and Schwarz). A replaced
    choice moves S by at most Delta, so by McDiarmid's inequality P(S - E S >= t) and
    P(S - E S <= -t) are at most exp(-2 t^2 / (n Delta^2)). The noise L, in the unit of S, is
    independent, so P(S + L - E S >= u) <= E exp(-2 ((u - L)+)^2 / (n Delta^2)). Discrete Laplace
    noise is stochastically below a Laplace variable of its scale plus a step, for which the mean
    is summed. So is the other tail. With u the least number where it is at most alpha / 2
    and T the released statistic, T - u <= tau + beta and T + u + step >= tau hold but with
    probability alpha / 2 each: the released value is that of S + L, rounded down by less than a
    step. This is shorter than bounding the deviations of S and of L apart.
    """
    if len(p) == 2 and n <= _EXACT:
        return _of_two(noisy, n, p, distribution, alpha, step)
    # McDiarmid: P(S - E S >= t) <= exp(-(t / spread)^2), t in lattice steps
    b = distribution.scale
    spread = math.sqrt(n / 2) * sensitivity
    # one step, as discrete noise is below a Laplace variable plus 1, and the width of a bin of it
    high = _concentrated(alpha / 2, spread, b) + 1.0 + b * float(_LAPLACE[1] - _LAPLACE[0])
    low = (noisy - high) * step - 0.5 * math.sqrt((len(p) - 1) / n)
    low, high = np.clip([low, (noisy + high + 1) * step], 0.0, 1 - min(p)).tolist()
    return low, max(low, high)


def _of_two(
    noisy: int, n: int, p: Probabilities, distribution: DiscreteLaplace, alpha: float, step: float
) -> tuple[float, float]:
    """Return the interval for two categories, whose counts are binomial.

    Only two distributions are at a distance tau: the first category's probability is p + tau or
    p - tau. tau is excluded from below (above) if for both, where they exist, the statistic reaches
    (stays within) what was released with probability at most alpha / 2. One lattice step allows for
    how p was rounded. The ends are found by halving, as if what is not excluded were one interval:
    so it was in all of 456 settings of n, p, epsilon and tau.
    """
    # P(T >= released) and P(T <= released) given each count, over the noise alone; the step that
    # allows for rounded p is taken off on the side that makes both larger
    counts = np.arange(n + 1)
    first = p[0] / (p[0] + p[1])
    most = max(p) / (p[0] + p[1])
    values = np.floor(np.abs(counts / n - first) / step).astype(np.int64)
    above = distribution.tail(noisy - 1 - values)
    below = 1.0 - distribution.tail(noisy + 2 - values)

    def compatible(tau: float, tail: FloatArray) -> bool:
        # the least favourable of the two distributions at this distance decides
        cells = {first + tau, first - tau}
        weights = (
            binomial_weights(n, min(max(q, 0.0), 1.0), counts)
            for q in cells
            if -1e-12 <= q <= 1 + 1e-12
        )
        return max(float(weight @ tail) for weight in weights) > alpha / 2

    low, _ = _boundary(lambda tau: not compatible(tau, above), 0.0, most)
    _, high = _boundary(lambda tau: compatible(tau, below), 0.0, most)
    return low, max(low, high)


def zero_rule(interval: tuple[float, float], *, rejected: bool, step: float) -> tuple[float, float]:
    """Return an interval for a distance that holds 0 exactly if the test does not reject.

    Parameters
    ----------
    interval : tuple of float
        Ends of an interval that covers every positive distance with probability 1 - alpha.
    rejected : bool
        Whether a test of size at most alpha, whose null hypothesis is that the distance is 0,
        rejects. That of a Monte Carlo table is alpha on average over tables.
    step : float
        A positive distance, the upper end if the interval has no positive one.

    Returns
    -------
    low, high : float
        An open end at 0 is the least positive number there is.

    Notes
    -----
    Let C be the positive part of the interval, with 0 if the test does not reject. At a distance of
    0, C misses only if the test rejects, with probability at most alpha. At a positive distance C
    misses only if the interval does, as 0 adds to it. So C covers with probability 1 - alpha at
    every distance, with nothing split between test and interval, whether or not the two have noise
    in common. Filling the gap between 0 and a positive lower end, or widening the upper end, adds
    to C.
    """
    low, high = interval
    high = high if high > 0 else step
    return min(max(low, math.ulp(0.0)), high) if rejected else 0.0, high


def _boundary(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return a bracket of where a condition that holds on the left ceases to hold.

    (low, low) where it does not hold at low; (high, high) where it still does at high.
    """
    if not holds(low):
        return low, low
    return (high, high) if holds(high) else bisect(holds, low, high, _HALVINGS)


def corrected_distance(observed: float, n: int, p: Probabilities) -> float:
    """Return a distance from p without most of what the scatter of the shares adds to it.

    Parameters
    ----------
    observed : float
        The released total variation distance of the shares from p.
    n : int
        Number of choices.
    p : tuple of float
        Null probabilities.

    Returns
    -------
    float
        sqrt(T^2 - e^2), or 0 where T < e: T the released distance and e its mean under p.

    Notes
    -----
    e = sum_x E|M_x - n p_x| / 2 n is exact: with j = floor(n p) + 1 the mean deviation of a
    binomial count M is 2 j (1 - p) P(M = j) (De Moivre). On average T - e is too small, as
    E T <= tau + e nearly, and T is too large. Between them the root of squares is right if all
    cells differ by about their own scatter. Its mean error was -.07 to .07 where that of T went up
    to .33 (4,000 samples each, without noise). That was over 2 to 900 categories, 100 to 1,000
    choices, uniform and Zipf nulls and distances of .05 to .3 in half of the categories or in one.
    """
    from scipy.stats import binom

    cells = np.asarray(p, dtype=np.float64)
    j = np.floor(n * cells) + 1.0
    mean = float((j * (1.0 - cells) * binom.pmf(j, n, cells)).sum()) / n
    return math.sqrt(max(max(observed, 0.0) ** 2 - mean**2, 0.0))


@immutable
@dataclass(frozen=True, slots=True)
class Distance:
    """The distance of two samples, as public numbers define it.

    Parameters
    ----------
    sizes : (int, int)
        Units in each sample.
    diameter : float
        Largest distance of two units' features: 1 for total variation.
    categories : int or None
        Number of categories, for total variation; None for a kernel that is 1 on its diagonal.
    exact : bool
        Whether a distance of 0 is the null hypothesis: no kernel that leaves differences out.
    """

    sizes: tuple[int, int]
    diameter: float
    categories: int | None
    exact: bool

    @property
    def spread(self) -> float:
        """Return s = 1 / n_1 + 1 / n_2."""
        return 1.0 / self.sizes[0] + 1.0 / self.sizes[1]

    def ends(
        self, noisy: float, second: float | None, b: float, alpha: float
    ) -> tuple[float, float]:
        """Return L and U of the module's description, not yet made to agree with a test.

        Parameters
        ----------
        noisy : float
            The released distance T.
        second : float or None
            The released mean, or the threshold at a level of at most `alpha`; None without one.
        b : float
            Laplace scale of the noise of each.
        alpha : float
            Probability that the interval may miss.

        Returns
        -------
        low, high : float
            L in [0, diam]; U at most diam, and below 0 where no distance is compatible with T.
        """
        s = self.spread
        # by concentration first, which needs no second number; what follows replaces ends by
        # shorter ones where their conditions hold
        u = _concentrated(alpha / 2.0, self.diameter * math.sqrt(s / 2.0), b)
        low = self._by_concentration(noisy - u)
        high = noisy + u
        if second is not None and self.categories is None:
            above = noisy - second
            unequal = max(self.sizes) > _UNEQUAL * min(self.sizes)
            low = min(low, above) if unequal else above
        elif second is not None and self.categories is not None:
            unequal = self.sizes[0] != self.sizes[1] or self.categories == 2
            variance = s / 4.0 if unequal else _HALF_NORMAL * s
            low = noisy - second - _quantile(alpha / 2.0, math.sqrt(variance), b, 2)
            if self.categories * _FEW <= min(self.sizes):
                # P(noise > b log(5 / alpha)) = alpha / 10, the rest of the 0.5 alpha of this side
                least = second - b * math.log(5.0 / alpha)
                shifted = noisy + _quantile(0.4 * alpha, math.sqrt(s / 4.0), b, 1)
                high = shifted if shifted < 0 else _unbiased(shifted, least)
        return min(max(low, 0.0), self.diameter), min(high, self.diameter)

    def _by_concentration(self, low: float) -> float:
        if self.categories is None:
            return math.sqrt(max(max(low, 0.0) ** 2 - self.spread, 0.0))
        return low - 0.5 * math.sqrt((self.categories - 1) * self.spread)

    def corrected(self, noisy: float, second: float) -> float:
        """Return the distance with what sampling adds to it on average taken off, at least 0.

        For total variation m^-1(T), as in the module's description; for a kernel
        sqrt(T^2 - s)+, which takes off the most that sampling can add.
        """
        if self.categories is None:
            return math.sqrt(max(max(noisy, 0.0) ** 2 - self.spread, 0.0))
        return min(_unbiased(noisy, second), self.diameter)


def _mean(function: Callable[[FloatArray], FloatArray], b: float, number: int = 1) -> float:
    """Return the mean of a function of b times the sum of one or two Laplace variables."""
    if b == 0:
        return float(function(np.zeros(1))[0])
    weights = _WEIGHTS[number]
    return float(weights @ function(b * _LAPLACE) / weights.sum())


@lru_cache(maxsize=256)
def _concentrated(level: float, scale: float, b: float) -> float:
    """Return u with E exp(-(((u - b L)+) / scale)^2) = level, L a Laplace variable."""

    def short(u: float) -> bool:
        return _mean(lambda y: np.exp(-((np.maximum(u - y, 0.0) / scale) ** 2)), b) > level

    return first_beyond(short, scale + b, _FINE_HALVINGS)


@lru_cache(maxsize=256)
def _quantile(level: float, sd: float, b: float, number: int) -> float:
    """Return d with P(sd W + b (sum of Laplace variables) >= d) = level."""
    from scipy.special import ndtr

    def short(d: float) -> bool:
        return _mean(lambda y: np.asarray(ndtr((y - d) / sd)), b, number) > level

    return first_beyond(short, sd + b, _FINE_HALVINGS)


def first_beyond(
    short: Callable[[float], bool], scale: float, halvings: int, *, relative: float = 0.0
) -> float:
    """Return where a condition ends that holds from 0 on, which is about as far as `scale`."""
    low = 0.0
    high = scale
    while short(high):
        low = high
        high = 2.0 * high
    return bisect(short, low, high, halvings, relative=relative)[1]


def _unbiased(mean: float, null_mean: float) -> float:
    """Return the theta with m(theta) = `mean`, where m(0) = `null_mean`; 0 if mean is below it."""
    from scipy.special import ndtr

    if mean <= max(null_mean, 0.0):
        return 0.0
    if null_mean <= 0:
        return mean
    half = null_mean * math.sqrt(math.pi / 2.0)  # S / 2, as m(0) = S / sqrt(2 pi)

    # m(theta) = S/2 (r (2 Phi(r) - 1) + 2 phi(r)) rises with theta, and is above theta: so the
    # solution lies below the mean
    def short(theta: float) -> bool:
        r = theta / half
        density = math.exp(-0.5 * r * r) / math.sqrt(2.0 * math.pi)
        return mean > half * (r * (2.0 * float(ndtr(r)) - 1.0) + 2.0 * density)

    return bisect(short, 0.0, mean, _FINE_HALVINGS)[1]
