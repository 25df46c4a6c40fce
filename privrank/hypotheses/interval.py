r"""Confidence intervals of distances and of differences between groups, and sets of ranks.

*One sample.* The total variation distance of one sample from known probabilities
(:func:`interval_from`, :func:`corrected_distance`).

*Two samples.* theta is the distance between the distributions of two independent samples: total
variation, or the distance between their mean features under a kernel. The samples have n_1 and n_2
units with one observation each, and s = 1 / n_1 + 1 / n_2. T_0 is the distance of the samples, and
T_1, ..., T_B are the distances after permutation of the labels. T_0 is released. If `Distance`
requires it, a second number computed from the T_i is released as well: their mean for total
variation, a threshold for a kernel. Both have independent Laplace noise of scale b.

**The zero rule.** If a distance of 0 is the null hypothesis (total variation or a characteristic
kernel), the ends below cover any distance above 0, and :func:`zero_rule` makes them agree with the
test. In all other cases the ends are used as they are.

**Ends.** Let W be standard normal, L and L' standard Laplace variables.

- *By concentration.* One unit of sample g changes T_0 by at most diam / n_g, so by McDiarmid's
  inequality P(T_0 + b L - E T_0 >= u) <= E exp(-2 ((u - b L)+)^2 / (diam^2 s)); choose u such that
  this is alpha / 2. A norm is convex, so E T_0 >= theta: U = T + u for the released T = T_0 + b L.
  Conversely E T_0 <= theta + sqrt((k - 1) s) / 2 for total variation of k categories, and
  E T_0^2 <= theta^2 + s for a kernel that is at most 1: L = T - u - sqrt((k - 1) s) / 2, and
  L = sqrt(((T - u)+)^2 - s)+. These need no second number.
- *Total variation, lower.* T_0 <= theta + the norm of the centred sampling error. The mean of this
  norm is about the mean of the permuted T_i. Its variance is at most s / 4, and at most
  (1 - 2 / pi) / 4 s if cells are approximately normal and n_1 = n_2. L = T - mean - d, with d the
  1 - alpha / 2 quantile of W sqrt(variance) + b (L + L'). The larger variance is used for unequal
  sizes and for two categories.
- *Total variation, upper*, for at most min(n_1, n_2) / 10 categories. With normal cells whose
  standard deviations sum to S, E T_0 >= m(theta) = S / 2 g(2 theta / S), where g(r) =
  r (2 Phi(r) - 1) + 2 phi(r), however theta is distributed over the cells (g is convex). So
  T + d >= m(theta), with d the 1 - 0.4 alpha quantile of W sqrt(s / 4) + b L. S is computed from
  the mean, because E T = S / sqrt(2 pi) if theta = 0. The mean is first lowered by the value that
  its noise exceeds with probability alpha / 10.
- *Kernel, lower.* L = T - c for the noisy threshold c, which excludes theta = 0 with probability
  alpha / 2 exactly under equality. If the sizes differ by more than a factor of four, the lower end
  is the smaller of this and the end by concentration, because the spread of the permuted distances
  may be too small.

**Differences between groups.** The total of an item in a group is the sum of a score between 0 and
1 for each unit: 1 for units that chose a category and 0 for all others, or (rank - 1) / (m - 1) for
a ranked item. :func:`half_widths` has simultaneous intervals for items and comparisons.

**Ranks.** Rank confidence sets by Holm's step-down method (:func:`rank_sets`), and dominant sets.

References
----------
McDiarmid (1989); Hoeffding (1963), https://doi.org/10.1080/01621459.1963.10500830.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy.special import ndtr, ndtri

from privrank.hypotheses.nulls import Probabilities, binomial_weights
from privrank.hypotheses.tails import DetailDistribution, noisy_quantiles
from privrank.privacy.noise import DiscreteLaplace
from privrank.util.arrays import BoolArray, FloatArray, IntArray, immutable
from privrank.util.solvers import bisect, first_beyond

_HALVINGS = 10
"""Halvings of a bracket, for conditions that are slow to check."""

_EXACT = 2**16
"""Number of choices of two categories up to which their counts are summed exactly."""

THRESHOLD_LEVEL = "threshold level"
"""Name of the setting with the level of the threshold released with a distance."""

_FINE_HALVINGS = 44
"""Halvings of a bracket, for conditions that are fast to check."""

_LAPLACE = np.linspace(-32.0, 32.0, 4_001)
"""Grid of standard Laplace variables for sums; the probability beyond is 1e-14."""

_WEIGHTS = {
    1: np.exp(-np.abs(_LAPLACE)),
    2: np.exp(-np.abs(_LAPLACE)) * (1.0 + np.abs(_LAPLACE)),
}
"""Densities, up to a factor, of one Laplace variable and of the sum of two."""


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
    """Return an interval for the total variation distance from p, with coverage >= 1 - alpha.

    Parameters
    ----------
    noisy : int
        The released total variation distance of the shares from p, in lattice steps.
    n : int
        Number of choices.
    p : tuple of float
        Null probabilities. For two categories the interval is exact.
    distribution : DiscreteLaplace
        Distribution of the noise in `noisy`.
    alpha : float
        Probability that the interval fails to cover, shared evenly by both sides.
    step : float
        Size of a lattice step.
    sensitivity : int
        Largest change of the distance in steps if one choice is replaced.

    Returns
    -------
    low, high : float
        Within [0, 1 - min p]; a single point if the noisy value is outside the possible range.

    Notes
    -----
    Let S be the distance of the shares from p, and tau the distance of their true distribution P
    from p. S is convex in the shares, so E S >= tau. By the triangle inequality
    E S <= tau + beta, with beta the mean distance of the shares from P. The mean distance of one
    share is at most sqrt(P_x (1 - P_x) / n), so beta <= sqrt((k - 1) / n) / 2 for every P of k
    categories (Cauchy and Schwarz). A replaced choice changes S by at most Delta, so by McDiarmid's
    inequality P(S - E S >= t) and P(S - E S <= -t) are at most exp(-2 t^2 / (n Delta^2)).

    The noise L, in the unit of S, is independent, so
    P(S + L - E S >= u) <= E exp(-2 ((u - L)+)^2 / (n Delta^2)). Discrete Laplace noise is
    stochastically smaller than a Laplace variable of its scale plus one step, for which the mean is
    computed. The same applies to the other tail. Let u be the smallest number for which the bound
    is at most alpha / 2, and T the released statistic. T - u <= tau + beta and
    T + u + step >= tau each fail with probability at most alpha / 2; the step is needed because the
    released value is S + L rounded down by less than one step. The interval is shorter than one
    that bounds the deviations of S and of L separately.
    """
    if len(p) == 2 and n <= _EXACT:
        return _of_two(noisy, n, p, distribution, alpha, step)
    # McDiarmid: P(S - E S >= t) <= exp(-(t / spread)^2), t in lattice steps
    b = distribution.scale
    spread = math.sqrt(n / 2) * sensitivity
    # add one step, because discrete noise is below a Laplace variable plus 1, and the width of a
    # bin
    high = _concentrated(alpha / 2, spread, b) + 1.0 + b * float(_LAPLACE[1] - _LAPLACE[0])
    low = (noisy - high) * step - 0.5 * math.sqrt((len(p) - 1) / n)
    low, high = np.clip([low, (noisy + high + 1) * step], 0.0, 1 - min(p)).tolist()
    return low, max(low, high)


def _of_two(
    noisy: int, n: int, p: Probabilities, distribution: DiscreteLaplace, alpha: float, step: float
) -> tuple[float, float]:
    """Return the interval for two categories, whose counts are binomial.

    Only two distributions have distance tau: the probability of the first category is p + tau or
    p - tau. The interval excludes tau from below (above) if for both, as far as they exist, the
    statistic reaches (does not exceed) the released value with probability at most alpha / 2. One
    lattice step accounts for the rounding of p. The ends are found by bisection, which assumes that
    the values not excluded form one interval. This was true in all of 456 settings of n, p, epsilon
    and tau.
    """
    # P(T >= released) and P(T <= released) given each count, over the noise alone; the step for the
    # rounding of p is applied on the side that makes both larger
    counts = np.arange(n + 1)
    first = p[0] / (p[0] + p[1])
    most = max(p) / (p[0] + p[1])
    values = np.floor(np.abs(counts / n - first) / step).astype(np.int64)
    above = distribution.tail(noisy - 1 - values)
    below = 1.0 - distribution.tail(noisy + 2 - values)

    def compatible(tau: float, tail: FloatArray) -> bool:
        # the least favourable of the two distributions at this distance decides
        weights = (
            binomial_weights(n, min(max(q, 0.0), 1.0), counts)
            for q in {first + tau, first - tau}
            if -1e-12 <= q <= 1 + 1e-12
        )
        return max(float(weight @ tail) for weight in weights) > alpha / 2

    low, _ = _boundary(lambda tau: not compatible(tau, above), 0.0, most)
    _, high = _boundary(lambda tau: compatible(tau, below), 0.0, most)
    return low, max(low, high)


def zero_rule(interval: tuple[float, float], *, rejected: bool, step: float) -> tuple[float, float]:
    """Return an interval for a distance that contains 0 exactly if the test does not reject.

    Parameters
    ----------
    interval : tuple of float
        Ends of an interval that covers every positive distance with probability 1 - alpha.
    rejected : bool
        Whether a test of H0: distance 0, with size at most alpha, rejects. The size of a test with
        a Monte Carlo table is alpha on average over tables.
    step : float
        A positive distance, used as the upper end if the interval contains no positive distance.

    Returns
    -------
    low, high : float
        An open end at 0 is represented by the smallest positive number.

    Notes
    -----
    Let C be the positive part of the interval, together with 0 if the test does not reject. At a
    distance of 0, C fails to cover only if the test rejects, with probability at most alpha. At a
    positive distance, C fails only if the interval does, because 0 only adds to it. So C has
    coverage 1 - alpha at every distance. Nothing is split between test and interval, and the two
    may share noise. Filling the gap between 0 and a positive lower end, or widening the upper end,
    adds to C.
    """
    low, high = interval
    high = high if high > 0 else step
    return min(max(low, math.ulp(0.0)), high) if rejected else 0.0, high


def _boundary(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return a bracket of the point where a condition that is true on the left becomes false.

    The bracket is (low, low) if it is false at low, and (high, high) if it is true at high.
    """
    if not holds(low):
        return low, low
    return (high, high) if holds(high) else bisect(holds, low, high, _HALVINGS)


def corrected_distance(observed: float, n: int, p: Probabilities) -> float:
    """Return a distance from p corrected for most of its sampling bias.

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
        sqrt(T^2 - e^2), or 0 if T < e, with T the released distance and e its mean under p.

    Notes
    -----
    e = sum_x E|M_x - n p_x| / 2 n is exact: with j = floor(n p) + 1 the mean deviation of a
    binomial count M is 2 j (1 - p) P(M = j) (De Moivre). On average T - e is too small, because
    approximately E T <= tau + e, and T is too large. The root of the difference of squares lies
    between them and is correct if all cells deviate by about their own sampling error. In
    simulations its mean error was -0.07 to 0.07, and the mean error of T was up to 0.33 (4,000
    samples each, without noise). The settings were 2 to 900 categories, 100 to 1,000 choices,
    uniform and Zipf nulls, and distances of 0.05 to 0.3 in half of the categories or in one.
    """
    cells = np.asarray(p, dtype=np.float64)
    j = np.floor(n * cells) + 1.0
    mean = float((j * (1.0 - cells) * binomial_weights(n, cells, j)).sum()) / n
    return math.sqrt(max(max(observed, 0.0) ** 2 - mean**2, 0.0))


@immutable
@dataclass(frozen=True, slots=True)
class Distance:
    """The distance of two samples, defined by public numbers.

    Parameters
    ----------
    sizes : (int, int)
        Units in each sample.
    diameter : float
        Largest distance between the features of two units: 1 for total variation.
    categories : int or None
        Number of categories, for total variation; None for a kernel that is 1 on its diagonal.
    exact : bool
        Whether a distance of 0 is the null hypothesis; False for kernels that ignore differences.
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
        """Return L and U of the module docstring, before the zero rule.

        Parameters
        ----------
        noisy : float
            The released distance T.
        second : float or None
            The released mean, or the threshold at a level of at most `alpha`; None without one.
        b : float
            Scale of the Laplace noise in each number.
        alpha : float
            Probability that the interval fails to cover.

        Returns
        -------
        low, high : float
            L in [0, diam]; U at most diam, and below 0 if no distance is compatible with T.
        """
        s = self.spread
        # ends by concentration need no second number; they are replaced by shorter ends whose
        # conditions hold
        u = _concentrated(alpha / 2.0, self.diameter * math.sqrt(s / 2.0), b)
        low = (
            self.corrected(noisy - u, 0.0)
            if self.categories is None
            else noisy - u - 0.5 * math.sqrt((self.categories - 1) * self.spread)
        )
        high = noisy + u
        if second is not None and self.categories is None:
            above = noisy - second
            # up to a ratio of 4, permuted kernel distances spread as widely as sample ones
            low = min(low, above) if max(self.sizes) > 4 * min(self.sizes) else above
        elif second is not None and self.categories is not None:
            unequal = self.sizes[0] != self.sizes[1] or self.categories == 2
            variance = s / 4.0 if unequal else 0.25 * (1.0 - 2.0 / math.pi) * s
            low = noisy - second - _quantile(alpha / 2.0, math.sqrt(variance), b, 2)
            if self.categories * 10 <= min(self.sizes):  # cells are treated as normal
                # P(noise > b log(5 / alpha)) = alpha / 10, the rest of the 0.5 alpha of this side
                least = second - b * math.log(5.0 / alpha)
                shifted = noisy + _quantile(0.4 * alpha, math.sqrt(s / 4.0), b, 1)
                high = shifted if shifted < 0 else _unbiased(shifted, least)
        return min(max(low, 0.0), self.diameter), min(high, self.diameter)

    def corrected(self, noisy: float, second: float) -> float:
        """Return the distance corrected for the mean contribution of sampling error, at least 0.

        For total variation m^-1(T), see the module docstring; for a kernel sqrt(T^2 - s)+, which
        subtracts the largest possible contribution.
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

    def short(d: float) -> bool:
        return _mean(lambda y: np.asarray(ndtr((y - d) / sd)), b, number) > level

    return first_beyond(short, sd + b, _FINE_HALVINGS)


def _unbiased(mean: float, null_mean: float) -> float:
    """Return the theta with m(theta) = `mean`, where m(0) = `null_mean`; 0 if mean is below it."""
    if mean <= max(null_mean, 0.0):
        return 0.0
    if null_mean <= 0:
        return mean
    half = null_mean * math.sqrt(math.pi / 2.0)  # S / 2, as m(0) = S / sqrt(2 pi)

    # m(theta) = S/2 (r (2 Phi(r) - 1) + 2 phi(r)) increases with theta and exceeds theta, so the
    # solution is below the mean
    def short(theta: float) -> bool:
        r = theta / half
        density = math.exp(-0.5 * r * r) / math.sqrt(2.0 * math.pi)
        return mean > half * (r * (2.0 * float(ndtr(r)) - 1.0) + 2.0 * density)

    return bisect(short, 0.0, mean, _FINE_HALVINGS)[1]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A difference of the mean scores of two sets of groups, or the mean score of one set.

    Parameters
    ----------
    first, second : tuple of int
        Positions of the groups; the mean of several groups is the mean over all their units.
    """

    first: tuple[int, ...]
    second: tuple[int, ...] = ()

    def weights(self, sizes: FloatArray) -> FloatArray:
        """Return the weight of each group's total."""
        weights = np.zeros(len(sizes))
        for groups, sign in ((self.first, 1.0), (self.second, -1.0)):
            if groups:
                weights[list(groups)] = sign / sizes[list(groups)].sum()
        return weights


def contrasts(groups: int) -> tuple[Contrast, ...]:
    """Return each group against the rest, for at least three groups, and all pairs."""
    every = range(groups)
    pairs = [Contrast((g,), (h,)) for g, h in combinations(every, 2)]
    if groups == 2:
        return tuple(pairs)
    return (*[Contrast((g,), tuple(h for h in every if h != g)) for g in every], *pairs)


def half_widths(
    totals: FloatArray,
    sizes: FloatArray,
    distribution: DetailDistribution,
    step: float,
    alpha: float,
    compared: Sequence[Contrast],
) -> FloatArray:
    """Return half widths of simultaneous intervals for the differences of mean scores.

    Parameters
    ----------
    totals : ndarray of float64, shape (G, k)
        Noisy sums of scores between 0 and 1, by group and item.
    sizes : ndarray of float64, shape (G,)
        Numbers of units.
    distribution : DetailDistribution
        Distribution of the noise in each group's totals.
    step : float
        Size of a lattice step of the noise in scores.
    alpha : float
        Probability that at least one interval fails to cover; all intervals share it evenly.
    compared : sequence of Contrast
        The C comparisons of groups (:func:`contrasts`), or single groups.

    Returns
    -------
    ndarray of float64, shape (C, k)
        By comparison and item.

    Notes
    -----
    **Statistic.** There are J = C k differences, and each interval may fail with probability
    alpha / J. By Bonferroni's inequality all cover simultaneously with probability 1 - alpha, for
    any distributions of the groups, any dependence between items, and any decision of a test. The
    error of an estimate is the sampling error, assumed normal, plus the noise of the groups'
    totals. The noise is independent of the sampling error and between groups;
    :func:`noisy_quantiles` returns the quantile of the sum.

    A score between 0 and 1 with mean p has variance at most p (1 - p), which choices attain (Bhatia
    and Davis). The mean is unknown: p (1 - p) is replaced by its maximum between the ends
    (c +- 2 s + z^2 / 2) / (n + z^2), where c is the noisy total clipped to 0..n, s the standard
    deviation of its noise, z the normal quantile at 1 - alpha / (2 J) and n the size of the group.
    These are the centres of Wilson's intervals, which add z^2 answers, half of them 0 and half 1.
    Without these answers a group of ten in which no one chose a category would have an error of 0.

    Given the sizes, the mean over several groups has the variance
    sum n_g^2 (v_g / n_g) / (sum n_g)^2.
    """
    weights = [contrast.weights(sizes) for contrast in compared]
    level = alpha / (len(weights) * totals.shape[1])
    z = -float(ndtri(0.5 * level))
    # the share is known up to twice the deviation of the noise; p (1 - p) is largest at the value
    # between these ends that is closest to 1/2
    unsure = 2.0 * step * math.sqrt(distribution.variance)
    ends = [
        (np.clip(totals + shift, 0.0, sizes[:, None]) + 0.5 * z * z) / (sizes[:, None] + z * z)
        for shift in (-unsure, unsure)
    ]
    middle = np.clip(0.5, ends[0], ends[1])
    variances = sizes[:, None] * middle * (1.0 - middle)
    # Var of a difference of means: sum_g w_g^2 n_g p_g (1 - p_g); groups are independent
    return np.array(
        [
            noisy_quantiles(
                np.sqrt(w**2 @ variances), step * np.abs(w[w != 0]), distribution, level
            )
            for w in weights
        ]
    )


TIED = 1e-8
"""Estimates whose difference is at most this share of their range are equal."""


def shared_ranks(values: FloatArray) -> IntArray:
    """Return ranks, 1 for the largest estimate; ties share the best rank (1, 1, 3).

    Two estimates differ if their difference exceeds 1e-8 times their range, or times 1 if the range
    is smaller. The numerical error of solvers and sums is below this tolerance.
    """
    apart = TIED * max(1.0, float(np.ptp(values)))
    return np.asarray(1 + (values > values[:, None] + apart).sum(axis=1))


def rank_sets(
    values: FloatArray,
    identified: BoolArray,
    certain: Callable[[int], BoolArray],
) -> tuple[IntArray, IntArray]:
    """Return the lowest and highest rank of each item, with simultaneous coverage.

    Parameters
    ----------
    values : ndarray, shape (m,)
        Estimates; the best item has the largest.
    identified : ndarray of bool, shape (m, m)
        Which differences are identified. Ranks are relative to the items whose difference from an
        item is identified.
    certain : callable
        Maps a number of hypotheses that may be true to the significant differences, shape (m, m):
        those with a two-sided p-value of at most 2 alpha over that number.

    Notes
    -----
    **Statistic.** For each ordered pair of items i and j with an identified difference, the
    hypothesis is theta_i <= theta_j. There are M hypotheses. After R rejections, Holm's step-down
    rejects those with a one-sided p-value of at most alpha / (M - R), until it rejects no more. The
    tests are symmetric: in the direction of the estimate the one-sided p-value is half the
    two-sided one, and in the other direction it is at least 1/2. The set of an item ranges from 1
    plus the number of items significantly better than it to the number of all items minus the
    number significantly worse.

    *No false direction.* Let M_0 hypotheses be true. With probability at least 1 - alpha, none of
    them has a p-value of at most alpha / M_0 (Bonferroni), under any dependence. In that case none
    is rejected. Suppose that one were rejected: the hypotheses rejected before the first one would
    all be false, so R <= M - M_0, and the p-value of the first one would be at most
    alpha / (M - R) <= alpha / M_0.

    *Simultaneous coverage.* Without a false direction, every item that is significantly better is
    better. The lower end is therefore at most 1 plus the number of better items, and similarly for
    the upper end. For tied items both hypotheses are true and are counted in M_0: neither item is
    significantly better, and both sets contain all ranks that the items share.

    *Without p-values* a threshold that depends on a number of pairs suffices, on two conditions. If
    one order of each of that many pairs is false, no true hypothesis is significant, with
    probability at least 1 - alpha. The threshold does not decrease as that number increases.

    The first step is Bonferroni's method for two-sided tests of all differences, at alpha over
    their number. Later steps only reject more, so the sets are subsets of Bonferroni's sets.

    References
    ----------
    Holm (1979), https://www.jstor.org/stable/4615733. For ranks Mogstad, Romano, Shaikh and Wilhelm
    (2024), https://doi.org/10.1093/restud/rdad006.
    """
    hypotheses = int(identified.sum())
    ahead = identified & (values > values[:, None])
    better = np.zeros_like(ahead)
    rejected = -1
    # Holm's step-down: rejected hypotheses no longer count, so the level of the others rises, until
    # a round rejects no more
    while better.sum() > rejected:
        rejected = int(better.sum())
        better |= ahead & certain(max(hypotheses - rejected, 1))
    low = 1 + better.sum(axis=1)
    high = 1 + identified.sum(axis=1) - better.sum(axis=0)
    return low.astype(np.int64), high.astype(np.int64)


def dominant_set(better: BoolArray) -> BoolArray:
    """Return the smallest non-empty set whose items are all better than all items outside.

    Parameters
    ----------
    better : ndarray of bool, shape (m, m)
        Whether the row is better than the column; never both ways, and not for every pair.

    Returns
    -------
    ndarray of bool, shape (m,)
        Whether an item is in the set.

    Notes
    -----
    **Statistic.** A set is closed if each of its items is better than each item outside. One of two
    closed sets contains the other: if not, an item of the first alone would be better than an item
    of the second alone, and vice versa. So there is a smallest closed set. Let it have s items.
    Each of them is better than at least m - s items, and no item outside is better than so many.
    Hence an item that is better than the most items is in the set. Every item to which some member
    is not superior must be in the set as well, and adding all these items gives a closed set.

    *Confidence set.* Let `better` contain orders of majorities that are all true, with probability
    1 - alpha. The set is closed under these orders, and therefore under all true majorities, which
    include them. The Smith set is the smallest closed set of the true majorities, so it is a subset
    of this set. No smaller set is sufficient: if all other pairs are tied, the two sets are equal.

    References
    ----------
    Smith (1973), https://doi.org/10.2307/1914033.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank.hypotheses.interval import dominant_set
    >>> better = np.zeros((3, 3), dtype=bool)
    >>> better[0, 2] = better[1, 2] = True
    >>> dominant_set(better).tolist()
    [True, True, False]
    """
    member: BoolArray = np.zeros(len(better), dtype=bool)
    member[better.sum(axis=1).argmax()] = True
    # no item is better than itself, so members stay in the set
    while (larger := np.asarray(~better[member].all(axis=0))).sum() > member.sum():
        member = larger
    return member
