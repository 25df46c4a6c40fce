"""Statistics of counts by category under a uniform null, and of rankings of at most six items.

Rankings of m items are choices among m! categories. The exact laws below use that multinomial
counts are independent Poisson(n / k) counts, given their total n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.counts import count_orders, excess, signs_of_orders
from privrank.hypotheses.nulls import Null
from privrank.hypotheses.nulltables import FULL, null_draws
from privrank.hypotheses.statistic import Statistic

__all__ = ["MOST_ITEMS", "max_count", "omnibus_choices", "omnibus_rankings", "total_variation"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Order = tuple[int, ...]

MOST_ITEMS = 6
"""Most items whose m! rankings are counted one by one."""

GRID = 1024
"""Lattice steps of the omnibus statistics per unit of sensitivity."""

_LARGEST, _ROUNDOFF = 2**23, 1e-20
"""Lattice points beyond which a null law is drawn; joint probabilities that are left out."""


def _excess_value(counts: IntArray, order: Order, n: int) -> int:
    return int(excess(counts, n))


def _max_value(counts: IntArray, order: Order) -> int:
    return int(counts.max())


def total_variation(n: int, k: int) -> Statistic:
    """Return the total variation distance S of the shares from 1 / k, as n k S.

    Parameters
    ----------
    n, k : int
        Numbers of choices and of categories, both at least 2.

    Returns
    -------
    Statistic
        Its value is sum_x (k M_x - n)+ for counts M_x.

    Notes
    -----
    **Privacy.** Moving a choice lowers the term of one category by 0 to k and raises that of
    another by 0 to k, so the sum moves by at most k. For k > n every category in use has
    k M_x > n: the sum is then n times the number of empty categories and moves by at most n. So
    the sensitivity is min(k, n). Attained for k <= n where a choice alone in its category joins
    all the others, for k > n where it leaves an empty category behind.

    **Null.** Exact for up to about 2^23 lattice points, else Monte Carlo.
    """
    return Statistic(
        name="total variation distance",
        step=1.0 / (n * k),
        sensitivity=min(k, n),
        value=partial(_excess_value, n=n),
        null=partial(_excess_null, n, k),
    )


def max_count(n: int, k: int) -> Statistic:
    """Return the largest count of a category.

    Parameters
    ----------
    n, k : int
        Numbers of choices and of categories, both at least 2.

    Notes
    -----
    **Privacy.** Replacing a choice moves every count by at most one, and so their maximum.

    **Null.** Exact for up to about 2^23 lattice points, else Monte Carlo.
    """
    return Statistic("largest count", 1.0, 1, _max_value, partial(_max_null, n, k))


def _poisson(n: int, k: int) -> FloatArray:
    """Return Poisson(n / k) probabilities of 0, 1, ..., up to n or 14 deviations above the mean."""
    mean = n / k
    top = min(n, math.ceil(mean + 14 * math.sqrt(mean) + 40))
    mode = min(int(mean), top)
    above = np.cumprod(mean / np.arange(mode + 1, top + 1))
    below = np.cumprod(np.arange(mode, 0, -1) / mean)[::-1]
    law = np.concatenate((below, [1.0], above))
    return np.asarray(law / law.sum())


def _excess_law(n: int, k: int) -> tuple[IntArray, FloatArray] | None:
    """Return the values of sum_x (k M_x - n)+ and their probabilities; None where too many.

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
    chance = gammaln(k + 1) - gammaln(big + 1) - gammaln(k - big + 1)
    chance = np.exp(chance + big * math.log(over) + (k - big) * math.log1p(-over))
    big, chance = big[chance > _ROUNDOFF], chance[chance > _ROUNDOFF]
    points = int(next_fast_len(2 * n + 101, real=True))
    if len(big) * points > _LARGEST:
        return None
    above = np.arange(len(cell)) > cut
    many, few = rfft(cell * above / over, points), rfft(cell * ~above / (1 - over), points)
    values, weights = [], []
    for b, weight in zip(big.tolist(), chance.tolist(), strict=True):
        s = np.arange(max(b * (cut + 1), n - (k - b) * cut), (n if b else 0) + 1)
        joint = weight * irfft(many**b, points)[s] * irfft(few ** (k - b), points)[n - s]
        kept = joint > _ROUNDOFF
        values.append((k * s - n * b)[kept])
        weights.append(joint[kept])
    support, place = np.unique(np.concatenate(values), return_inverse=True)
    law = np.bincount(place, np.concatenate(weights))
    return support, np.asarray(law / law.sum(), dtype=np.float64)


def _max_law(n: int, k: int) -> tuple[IntArray, FloatArray] | None:
    """Return the values of max_x M_x and their probabilities; None where it takes too long.

    Notes
    -----
    **Null.** P(max <= c) is proportional to the probability that k Poisson counts, all at most c,
    sum to n: one coefficient of a k-th power, on a circle of more than 26 sqrt(n) + 100 points.
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
    transform, back = rfft(smaller), np.conj(turned(n)) * both
    below = []
    for c in range(least, len(cell)):
        transform = transform + cell[c] * turned(c)
        below.append(float((transform**k * back).real.sum()))
    steps = np.maximum(np.diff(below, prepend=0.0), 0.0)
    kept = np.flatnonzero(steps > 2**-52 * steps.max())
    return least + kept, steps[kept] / steps[kept].sum()


def _sample(rng: np.random.Generator, n: int, k: int) -> IntArray:
    return rng.multinomial(n, np.full(k, 1 / k))


def _sample_excess(rng: np.random.Generator, n: int, k: int) -> int:
    return int(excess(_sample(rng, n, k), n))


def _excess_null(n: int, k: int, draws: int) -> Null:
    law = _excess_law(n, k)
    if law is not None:
        return Null(*law)
    draw = partial(_sample_excess, n=n, k=k)
    return Null.of_draws(null_draws("total variation distance", (n, k), draw, draws))


def _sample_max(rng: np.random.Generator, n: int, k: int) -> int:
    return int(_sample(rng, n, k).max())


def _max_null(n: int, k: int, draws: int) -> Null:
    law = _max_law(n, k)
    if law is not None:
        return Null(*law)
    draw = partial(_sample_max, n=n, k=k)
    return Null.of_draws(null_draws("largest count", (n, k), draw, draws))


@dataclass(frozen=True, slots=True)
class _Omnibus:
    """The largest of several statistics in units of their sensitivities, each less a quantile.

    With `m` items the statistics are those of rankings, among k = m! categories; with None they
    leave out the Kendall norm.
    """

    n: int
    k: int
    m: int | None

    @property
    def label(self) -> str:
        """Name of the public sequence behind the p-values."""
        return "omnibus of choices" if self.m is None else "omnibus of rankings"

    def parts(self, counts: IntArray) -> IntArray:
        """Return the whole numbers that the statistics are functions of."""
        whole = [int(excess(counts, self.n)), int(counts.max())]
        if self.m is not None:
            sums = counts @ signs_of_orders(self.m)
            whole.append(int(sums @ sums))
        return np.array(whole, dtype=np.int64)

    def scaled(self, parts: IntArray) -> FloatArray:
        # T_j / Delta_j along the last axis
        units = parts / np.array([min(self.n, self.k), 1.0, 1.0])[: parts.shape[-1]]
        if self.m is not None:
            units[..., 2] = np.sqrt(units[..., 2] / (2 * self.m * (self.m - 1)))
        return np.asarray(units)

    def sample(self, rng: np.random.Generator) -> IntArray:
        return self.parts(_sample(rng, self.n, self.k))

    def table(self, label: str, draws: int) -> FloatArray:
        return self.scaled(null_draws(label, (self.n, self.k), self.sample, draws))

    def quantiles(self) -> FloatArray:
        """Return q_j, from a public sequence of its own, apart from that of the p-values."""
        table = self.table(f"quantiles of the {self.label}", FULL)
        return np.asarray(
            np.quantile(table, 1 - 0.05 / table.shape[1], axis=0, method="inverted_cdf")
        )

    def lattice(self, scaled: FloatArray) -> IntArray:
        largest = (scaled - self.quantiles()).max(axis=-1)
        return np.asarray(np.floor(GRID * largest), dtype=np.int64)

    def of_counts(self, counts: IntArray, order: Order) -> int:
        return int(self.lattice(self.scaled(self.parts(counts))))

    def of_ranks(self, ranks: IntArray, order: Order) -> int:
        return self.of_counts(count_orders(ranks), order)

    def null(self, draws: int) -> Null:
        return Null.of_draws(self.lattice(self.table(self.label, draws)))


def omnibus_choices(n: int, k: int) -> Statistic:
    """Return the largest of total variation and largest count, on a common scale.

    Parameters
    ----------
    n, k : int
        Numbers of choices and of categories, both at least 2.

    Returns
    -------
    Statistic
        Its value is floor(1024 max_j (T_j / Delta_j - q_j)), Delta_j the sensitivity of T_j and
        q_j the 1 - 0.05 / J null quantile of T_j / Delta_j, J the number of statistics.

    Notes
    -----
    **Privacy.** Each T_j / Delta_j moves by at most 1, and q_j is public, so the maximum moves by
    at most 1 and 1024 times it by at most 1024. In floating point both values are off by less
    than 0.5 for all n below 10^12 (they are below 10^12 with relative errors below 10^-15, times
    1024), so the floors differ by at most 1025; 1026 leaves one more.

    **Null.** Monte Carlo. The q_j come from a public sequence of draws of their own, so that they
    are constants to the sequence behind the p-values, and these are valid for every q_j.
    """
    omnibus = _Omnibus(n, k, None)
    return Statistic("omnibus", 1.0 / GRID, GRID + 2, omnibus.of_counts, omnibus.null)


def omnibus_rankings(n: int, m: int) -> Statistic:
    """Return the largest of total variation, largest count and Kendall norm of rankings.

    Parameters
    ----------
    n : int
        Number of rankings, at least 2.
    m : int
        Number of items, 2 to 6; the categories are the m! rankings.

    Returns
    -------
    Statistic
        As `omnibus_choices`, with a third statistic: the Kendall norm |mean f|, f the vector of
        the signs of all C(m, 2) pairs of items, divided by sqrt(C(m, 2)).

    Notes
    -----
    **Privacy.** As `omnibus_choices`: |f| = 1, so the mean f moves by at most Delta = 2 / n, and
    its norm by no more, in units of Delta by at most 1. Attained by reversing one of n equal
    rankings.

    **Null.** As `omnibus_choices`.
    """
    omnibus = _Omnibus(n, math.factorial(m), m)
    return Statistic("omnibus", 1.0 / GRID, GRID + 2, omnibus.of_ranks, omnibus.null)
