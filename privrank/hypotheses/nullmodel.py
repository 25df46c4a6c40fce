"""A public null hypothesis, and exact distributions of test statistics under it.

The hypothesis has probabilities of categories or of rankings, or is a Mallows model. A function
that returns a distribution returns None where that would take too long to compute. Those of uniform
choices use that multinomial counts are independent Poisson(n / k) counts, given their total n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.distributions import kendall
from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nulls import Null, Order, null_of
from privrank.util.arrays import FloatArray, IntArray, orders_of, own

Probabilities = tuple[float, ...]

_LARGEST, _ROUNDOFF = 2**23, 1e-20
"""Lattice points beyond which nothing is computed; joint probabilities that are left out."""

_CUT, _WIDEST = 36.0, 2**22
"""exp(-36) < 2.4e-16: what a bound on squares may leave out; lattice points of their sums."""

_SPREAD = 2**20
"""Lattice steps over which the distribution of a sum of distances is spread, about."""


def uniform(k: int) -> Probabilities:
    """Return k equal probabilities."""
    return (1.0 / k,) * k


def is_uniform(p: Probabilities) -> bool:
    """Tell whether all probabilities are equal."""
    return min(p) == max(p)


def multinomial(n: int, p: Probabilities, rng: np.random.Generator) -> IntArray:
    """Return counts of n choices with probabilities p, brought to the sum numpy's sampler needs."""
    return rng.multinomial(n, _normalised(p))


@lru_cache(maxsize=16)
def _normalised(p: Probabilities) -> FloatArray:
    return np.asarray(own(np.asarray(p, dtype=np.float64) / math.fsum(p), np.float64))


def sorted_multinomial(n: int, p: Probabilities, rng: np.random.Generator) -> IntArray:
    """Return counts of n choices, the same up to their order for every order of p."""
    places, ascending = _ascending(p)
    counts = np.empty(len(p), dtype=np.int64)
    counts[places] = multinomial(n, ascending, rng)
    return counts


@lru_cache(maxsize=16)
def _ascending(p: Probabilities) -> tuple[IntArray, Probabilities]:
    return np.argsort(p, kind="stable"), tuple(sorted(p))


@dataclass(frozen=True, slots=True)
class NullModel:
    """A public null hypothesis: probabilities of categories or of rankings, or a Mallows model.

    Parameters
    ----------
    probabilities : tuple of float
        Of the categories, or of all m! rankings in lexicographic order of their ranks; empty for a
        Mallows model, or where all rankings are equally likely.
    theta : float
        Minus the logarithm of phi of a Mallows model.
    center : tuple of int
        Ranks of the items in its centre; empty otherwise.
    """

    probabilities: Probabilities = ()
    theta: float = 0.0
    center: tuple[int, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> NullModel:
        """Rebuild from :meth:`to_record`."""
        return cls(
            tuple(float(p) for p in record["probabilities"]),
            float(record["theta"]),
            tuple(int(rank) for rank in record["center"]),
        )

    @property
    def model(self) -> Mallows:
        """The Mallows model."""
        return Mallows.from_theta(len(self.center), self.theta, np.array(self.center))

    def tabulated(self) -> NullModel:
        """Return the same with the probabilities of all m! rankings, of at most six items."""
        if not self.center:
            return self
        return NullModel(tuple(self.model.pmf(orders_of(len(self.center))).tolist()))

    @property
    def rules_out(self) -> bool:
        """Whether some categories, or some rankings, have probability 0."""
        return 0.0 in self.probabilities

    @property
    def words(self) -> str:
        """The hypothesis in words."""
        if self.center:
            phi = math.exp(-self.theta)
            return (
                f"the rankings follow the Mallows model with phi = {phi:.4g} and the centre given."
            )
        if not self.probabilities:
            return "all orders of the items are equally likely."
        if len(set(self.probabilities)) == 1:
            return "all categories are equally likely."
        return "the categories have the probabilities given."


def _from_mode(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return probabilities from the ratios of neighbours, going up and going down from a mode."""
    weights = np.concatenate((np.cumprod(below)[::-1], [1.0], np.cumprod(above)))
    return np.asarray(weights / weights.sum())


def _poisson(n: int, k: int) -> FloatArray:
    """Return Poisson(n / k) probabilities of 0, 1, ..., up to n or 14 deviations above the mean."""
    mean = n / k
    top = min(n, math.ceil(mean + 14 * math.sqrt(mean) + 40))
    mode = min(int(mean), top)
    return _from_mode(mean / np.arange(mode + 1, top + 1), np.arange(mode, 0, -1) / mean)


def uniform_excess(n: int, k: int) -> Null | None:
    """Return the distribution of sum_x (k M_x - n)+ for n choices among k equal categories.

    Notes
    -----
    **Null.** The sum is k s - n b, where b categories hold more than n / k choices and s is their
    total. With Poisson counts b is binomial, and given b the totals of those b and of the other
    k - b categories are independent sums of truncated Poisson counts. Convolutions on a circle of
    more than 2 n + 100 points miss no more than P(Poisson(n) > 2 n + 100) < 1e-17.
    """
    from scipy.fft import irfft, next_fast_len, rfft
    from scipy.special import gammaln

    if n > _LARGEST:
        return None
    cell, cut = _poisson(n, k), n // k
    over = float(cell[cut + 1 :].sum())
    big = np.arange(min(k, n // (cut + 1)) + 1)
    probability = gammaln(k + 1) - gammaln(big + 1) - gammaln(k - big + 1)
    probability = np.exp(probability + big * math.log(over) + (k - big) * math.log1p(-over))
    big, probability = big[probability > _ROUNDOFF], probability[probability > _ROUNDOFF]
    points = int(next_fast_len(2 * n + 101, real=True))
    if len(big) * points > _LARGEST:
        return None
    above = np.arange(len(cell)) > cut
    # transforms of one count above n / k, and of one up to it, given which of them it is
    many, few = rfft(cell * above / over, points), rfft(cell * ~above / (1 - over), points)
    values, weights = [], []
    # b categories above, with s choices together: the statistic is k s - n b
    for b, weight in zip(big.tolist(), probability.tolist(), strict=True):
        s = np.arange(max(b * (cut + 1), n - (k - b) * cut), (n if b else 0) + 1)
        joint = weight * irfft(many**b, points)[s] * irfft(few ** (k - b), points)[n - s]
        mask = joint > _ROUNDOFF
        values.append((k * s - n * b)[mask])
        weights.append(joint[mask])
    support, place = np.unique(np.concatenate(values), return_inverse=True)
    total = np.bincount(place, np.concatenate(weights))
    return Null(support, total / total.sum())


def largest_count(n: int, k: int) -> Null | None:
    """Return the distribution of max_x M_x for n choices among k equal categories.

    Notes
    -----
    **Null.** P(max <= c) is proportional to the probability that k Poisson counts, all at most c,
    sum to n. That is one coefficient of a k-th power, on a circle of more than 26 sqrt(n) + 100
    points.
    """
    from scipy.fft import next_fast_len, rfft

    if n // k > _LARGEST:
        return None
    cell, least = _poisson(n, k), -(-n // k)
    points = int(next_fast_len(math.ceil(26 * math.sqrt(n)) + 100, real=True))
    if (len(cell) - least) * points > _LARGEST:
        return None
    frequency = np.arange(points // 2 + 1)
    both = np.where((frequency == 0) | (2 * frequency == points), 1.0, 2.0)

    def turned(j: IntArray | int) -> NDArray[np.complex128]:
        # whole turns are taken out before rounding
        return np.exp(-2j * math.pi / points * (np.multiply.outer(j, frequency) % points))

    smaller = np.bincount(np.arange(least) % points, cell[:least], minlength=points)
    # counts up to c, one more at a time; `back` reads the coefficient at n off the k-th power
    transform, back = rfft(smaller), np.conj(turned(n)) * both
    below = []
    for c in range(least, len(cell)):
        transform = transform + cell[c] * turned(c)
        below.append(float((transform**k * back).real.sum()))
    steps = np.maximum(np.diff(below, prepend=0.0), 0.0)
    support = np.flatnonzero(steps > 2**-52 * steps.max())
    return Null(least + support, steps[support] / steps[support].sum())


def binomial_weights(n: int, p: float) -> FloatArray:
    """Return the binomial probabilities of 0..n."""
    return binomial_run(n, p, np.arange(n + 1))


def binomial_null(n: int, p: float) -> Null:
    """Return the binomial distribution, but for what is beyond 12 standard deviations and 50.

    Notes
    -----
    **Null.** By Bernstein's inequality less than 10^-28 is left out.
    """
    width = math.ceil(12 * math.sqrt(n * p * (1 - p))) + 50
    mode = min(math.floor((n + 1) * p), n)
    count = np.arange(max(mode - width, 0), min(mode + width, n) + 1)
    return Null(count, binomial_run(n, p, count))


def binomial_run(n: int, p: float, count: IntArray) -> FloatArray:
    """Return the probabilities of a run of counts that holds the mode, made to sum to 1."""
    mode = min(math.floor((n + 1) * p), n)
    if p in (0.0, 1.0):
        return np.asarray(count == mode, dtype=np.float64)
    up, down = count[count > mode], count[count <= mode][:0:-1]
    return _from_mode((n - up + 1) / up * (p / (1 - p)), down / (n - down + 1) * ((1 - p) / p))


def pair_squares(n: int, d: int) -> Null | None:
    """Return the distribution of sum_p S_p^2, the S_p being d independent sums of n fair signs.

    Notes
    -----
    **Null.** The d-fold convolution of the distribution of one S_p^2 on a circle of N lattice
    points: it errs by no more than the probability outside any window of N points. E exp(s S_p) <=
    exp(n s^2 / 2) gives E exp(l S_p^2 / n) <= (1 - 2 l)^(-1/2), as if S_p^2 / n were chi-square,
    so that sum_p S_p^2 / n > d + 2 sqrt(d t) + 2 t has probability at most exp(-t) (Laurent and
    Massart 2000, lemma 1). A sum of non-negative variables lies below its mean by x with
    probability at most exp(-x^2 / (2 sum of second moments)), and E (S_p^2 / n)^2 = 3 - 2 / n, so
    sum_p S_p^2 / n < d - sqrt(6 d t) has probability at most exp(-t). The lattice has steps of 4,
    or of 8 for odd n: (2 j)^2 = 4 j^2, but (2 j + 1)^2 = 8 (j (j + 1) / 2) + 1.
    """
    squares, weights = _one_square(n, d)
    if d == 1:
        return Null(squares, weights)
    odd, unit = n % 2, 8 if n % 2 else 4
    low = max(0, math.floor(n * (d - math.sqrt(6 * d * _CUT)) / unit) - 1)
    high = math.ceil(n * (d + 2 * math.sqrt(d * _CUT) + 2 * _CUT) / unit)
    high = min(high, d * (n * n - odd) // unit)
    if high - low >= _WIDEST:
        return None
    from scipy.fft import irfft, next_fast_len, rfft

    points = next_fast_len(high - low + 1, real=True)
    lattice = np.bincount((squares - odd) // unit % points, weights, minlength=points)
    probabilities = np.roll(irfft(rfft(lattice) ** d, points), -(low % points))[: high - low + 1]
    # the rest is nothing, or roundoff
    support = np.flatnonzero(probabilities > 2**-52 * probabilities.max())
    mass = probabilities[support]
    return Null((low + support) * unit + d * odd, mass / mass.sum())


def pair_squares_null(n: int, d: int, draws: int) -> Null:
    """Return the distribution of `pair_squares`, or so many Monte Carlo draws where it is None."""
    known = partial(pair_squares, n, d)
    return null_of("pair squares", (n, d), _square, partial(_signs, n, d), draws, exact=known)


def _square(sums: IntArray, order: Order) -> int:
    return int(sums @ sums)


def _signs(n: int, d: int, rng: np.random.Generator) -> IntArray:
    return 2 * rng.binomial(n, 0.5, d) - n


def _one_square(n: int, d: int) -> tuple[IntArray, FloatArray]:
    """Return the values of S_p^2 and their probabilities, but for less than exp(-36) / d.

    Hoeffding: P(|S_p| > t) <= 2 exp(-t^2 / 2 n). The probabilities are products of ratios of
    neighbouring binomial ones, from the middle outwards, and so keep their digits.
    """
    reach = math.sqrt(2 * n * (_CUT + math.log(2 * d)))
    ahead = np.arange((n + 1) // 2, min(n, int((n + reach) // 2)) + 1)
    weights = binomial_run(n, 0.5, ahead)
    if n % 2 == 0:
        weights[1:] *= 2  # all but S_p = 0 have two signs
    return (2 * ahead - n) ** 2, weights / weights.sum()


def distance_step(n: int, m: int) -> int:
    """Return the lattice step of sums of n distances, counts of up to m (m - 1) / 2 each.

    17 standard deviations under uniformity take about 2^20 steps, so that the distribution stays
    quick to compute.
    """
    return max(1, math.ceil(17 * math.sqrt(n * kendall.variance(m, 0.0)) / _SPREAD))


def concordant_pairs(m: int, step: int, draws: int) -> Null:
    """Return the distribution of floor(C / step), C the concordant pairs of two rankings.

    Notes
    -----
    **Null.** Relative to the first ranking the second is uniform, and reversing it maps C to the
    Kendall distance. So C is distributed as the distance of a uniform ranking.
    """
    return Null(*kendall.uniform_sum(m, 1, 0, step))


def central_distance(n: int, m: int, step: int, draws: int) -> Null:
    """Return the distribution of floor(|2 X - n m (m - 1) / 2| / (2 step)), X a sum of n distances.

    Notes
    -----
    **Null.** X has a distribution symmetric about c = n m (m - 1) / 4. The value is v > 0 where
    X - ceil(c) or floor(c) - X is in [v h, (v + 1) h), h the step: two equal probabilities.
    """
    top = n * (m * (m - 1) // 2)
    cells, weights = kendall.uniform_sum(m, n, -(-top // 2), step)
    above = 2 * weights[cells >= 0]
    above[0] = max(0.0, 1.0 - float(above[1:].sum()))  # c itself, if whole, counts once
    return Null(cells[cells >= 0], above)
