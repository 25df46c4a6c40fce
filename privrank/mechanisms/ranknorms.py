"""Statistics of rankings: norms against uniformity, what these leave over, Mallows models.

Norms of sums over n >= 2 rankings of m >= 2 items: of rank vectors, and of signs of pairs.

The rank vector of a ranking is 2 r - (m + 1), r its ranks; scaled by sqrt(3 / (m (m + 1))) its
norm is sqrt(m - 1). Friedman's statistic is the squared norm of their sum.

Pairs: the first d = floor(m / 2) pairs of a public uniform permutation of the items are compared.
S_p is the sum over the n rankings of +1 where the first item of pair p is ranked ahead and -1 else.
Under uniformity the S_p are independent, each the sum of n fair signs, whatever the permutation.

**What mean ranks leave over.** The residual norm is the distance, in the space of a kernel,
of the rankings from uniformity. Its kernel sees which items are placed first or last, cycles of
preferences and, in its third part, all else, while mean ranks enter with little weight: these are
what the Borda norm is for.

**Mallows models** with a known centre and dispersion: the clipped distance to the centre, and the
norm of the mean sign vector.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from privrank.distributions import kendall
from privrank.distributions.mallows import Mallows
from privrank.encode.samples import count_orders
from privrank.hypotheses.nulls import (
    FULL,
    Blindness,
    Order,
    Statistic,
    Value,
    are_many,
    multinomial,
    null_draws,
    null_of,
    table_key,
    uniform,
    uniform_rankings,
    usual_draws,
)
from privrank.mechanisms.capped import capped_norm
from privrank.mechanisms.categories import (
    ALLOWANCE,
    GRID,
    MAX_ITEMS,
    QUANTILE_DRAWS,
    NullSample,
    OmnibusPart,
    binomial,
    of_ranks,
    omnibus,
    omnibus_of,
)
from privrank.util.arrays import (
    FloatArray,
    IntArray,
    Words,
    batches,
    most_rankings,
    orders_of,
    signs_of_orders,
)

CERTIFIED = 200
"""Up to this many rankings or items, null draws carry their certificate as data do."""

_RIDGE = 0.01
"""Constant added under the root, in units of n: it bounds the slope, and so the rounding errors."""

BORDA_LEVEL = 0.045
RESIDUAL_LEVEL = 0.005
"""The shares of the Borda norm and the residual norm in a level of 0.05."""

MAX_PAIRED = 200
"""Most items of which all pairs are looked at, in time n m^2 for each of thousands of draws."""

_TAIL = 1e-3
"""Probability under the null on either side that clipping may touch."""

_WEIGHT = 2**20
_SCORE = 2**32
"""The number 1 in integer units, for the weight of a ranking and the mean sign of a pair."""


def borda_norm(n: int, m: int) -> Statistic:
    """Return the capped norm, or the plain one where that is better, as n and m alone decide.

    Notes
    -----
    **Privacy.** Of the capped norm, on an integer grid. The value computed lies in [f - g, f] for
    every data set, f being the capped norm with sensitivity A + B and g = (A + B) / 1000
    (:mod:`privrank.mechanisms.capped`). So it moves by at most A + B + g, 1025.1 steps of
    (A + B) / 1024. Its floor moves by at most 1026 when the error of floating-point arithmetic
    stays below 0.9 steps, some 10^10 times what it is.

    **Null.** Monte Carlo over uniform rankings. Where the certificate takes most of the time, the
    draws do without it. At such sizes it is satisfied for uniform rankings except for a share below
    10^-3. If it is satisfied, the value is identical to the last bit.
    """
    norm = capped_norm(n, m)
    if norm is None:
        return plain_norm(n, m)
    step = norm.sensitivity / GRID
    value = partial(_capped, norm.value, step)
    drawn = value if min(n, m) <= CERTIFIED else partial(_capped, norm.fast, step)
    return Statistic(
        name="capped Borda norm",
        step=step,
        sensitivity=GRID + ALLOWANCE,
        value=value,
        null=partial(null_of, "capped borda norm", (n, m), drawn, _rankings(n, m)),
        # of two items mean ranks are all there is
        blind_to=("equal mean ranks",) if m > 2 else (),
        consistent=None,
        simulated=drawn,
    )


def _capped(norm: Callable[[IntArray], float], step: float, ranks: IntArray, order: Order) -> int:
    return math.floor(norm(ranks) / step)


def _rankings(n: int, m: int) -> Callable[[np.random.Generator], IntArray]:
    return partial(uniform_rankings, n=n, m=m)


def plain_norm(n: int, m: int) -> Statistic:
    """Return the norm of the sum of the rank vectors on an integer grid.

    Notes
    -----
    **Privacy.** The norm of a sum moves by at most the distance of two rank vectors, which is
    largest for opposite rankings: twice the norm, whose square is m (m^2 - 1) / 3. With Q the
    squared norm of the sum, an integer, and s = 4 m (m^2 - 1) / 3 the square of that distance, the
    statistic is floor(1024 sqrt(Q / s)), taken exactly as the integer square root of
    floor(1024^2 Q / s). Numbers at most 1024 apart have floors at most 1024 apart. Tight: one
    ranking of two replaced by its reverse moves sqrt(Q / s) from 1 to 0.

    **Null.** Monte Carlo over uniform rankings, or at its limit (:class:`Limit`).
    """
    null = partial(null_of, "borda norm", (n, m), _plain, _rankings(n, m))
    if are_many(n, m):
        limit = Limit(n, m)
        null = partial(null_of, "borda norm of many", (n, m), limit.borda, limit.sample)
    return Statistic(
        name="Borda norm",
        step=2.0 * math.sqrt(m - 1) / GRID,
        sensitivity=GRID,
        value=_plain,
        null=null,
        # of two items mean ranks are all there is
        blind_to=("equal mean ranks",) if m > 2 else (),
        consistent=None,
    )


def _plain(ranks: IntArray, order: Order) -> int:
    n, m = ranks.shape
    return _plain_of(2 * ranks.sum(axis=0) - n * (m + 1))


def _plain_of(total: IntArray) -> int:
    """Return the plain norm of the sum of the rank vectors."""
    m = len(total)
    return math.isqrt(GRID * GRID * _sum_of_squares(total) // (4 * m * (m * m - 1) // 3))


def pair_sums(ranks: IntArray, order: Order) -> IntArray:
    """Return S_1, ..., S_d from ranks of shape (n, m) and a permutation of range(m)."""
    n, m = ranks.shape
    first, second = np.array(order)[: 2 * (m // 2)].reshape(-1, 2).T
    ahead = np.zeros(m // 2, dtype=np.int64)
    for rows in batches(n, m):
        block = ranks[rows]
        ahead += np.count_nonzero(block[:, first] < block[:, second], axis=0)
    return np.asarray(2 * ahead - n)


def sees_everything(n: int, m: int) -> bool:
    """Tell whether the third part of the residual kernel is taken, by n and m alone.

    It is for at most 6 items, whose m! orders can be counted, and where n^2 W is at most 2^23, W
    the words that the m (m - 1) / 2 pairs of items of a ranking fill, 64 to a word.
    """
    return m <= MAX_ITEMS or n <= most_rankings(m)


def _missed(
    n: int, m: int, blind: Blindness, proof: str
) -> tuple[tuple[Blindness, ...], str | None]:
    """Return what is missed without the third part, and where it is proved that nothing is."""
    if not sees_everything(n, m):
        return (blind,), None
    return (), proof if m <= MAX_ITEMS else None


def residual_norm(n: int, m: int) -> Statistic:
    """Return the distance of the rankings from uniformity in the space of the residual kernel.

    Returns
    -------
    Statistic
        Its value is floor(1024 sqrt(R^2 + n / 100) / Delta). With tau Kendall's correlation of two
        rankings x and y, C = m (m - 1) / 2, u_a = 2 x_a - (m + 1), q_r the numbers
        (2 r - m - 1)^2, centred and scaled to a sum of squares of 1, and c = (m - 2) / (3 m),

            K(x, y) = sum_a q(x_a) q(y_a) + (tau - <u_x, u_y> / (m C)) / c
                      + 2 (e^tau - 1 - tau) / (e - 2),

        R^2 is the sum of K over all n^2 pairs of rankings, less n^2 times its mean under
        uniformity. Where :func:`sees_everything` says no, K is without its third term.

    Notes
    -----
    **Kernel.** Each term is positive definite. The first is an inner product. In the second, tau is
    the inner product of the sign vectors of the C pairs, scaled to length 1. Their projection on
    the differences phi_a - phi_b has phi = -u / m and the squared length |u|^2 / (m C). So the term
    is the inner product of the components orthogonal to it. The third is a power series in tau
    without negative coefficients. Under uniformity the first two have mean 0, and
    E e^tau - 1 = e prod_j (1 - z^j) / (j (1 - z)) - 1 with z = exp(-2 / C), as tau = 1 - 2 d / C
    and the Kendall distance d from any ranking is a sum of independent uniform variables on 0, ...,
    j - 1. As relabelling the items maps uniform rankings to uniform ones, the mean over y does not
    depend on x: R is n times the distance of the mean embedding from the mean embedding of uniform
    rankings.

    **Privacy.** A replaced ranking moves n times the mean embedding by phi(x) - phi(x'), whose
    squared length is the sum over the terms. First: 2 - 2 sum_a q(x_a) q(x'_a), at most
    2 - 2 sum_j q_(j) q_(m + 1 - j) by the rearrangement inequality. Second: the term is 1 at x = y,
    since |u|^2 / (m C) = 1 - c, and so at least -1: at most 4. Third: it is 2 at x = y and never
    negative, since e^t >= 1 + t: at most 4. So R moves by at most Delta, the root of the sum of the
    three bounds, and so does sqrt(R^2 + n / 100), the length of a vector with one more, fixed,
    coordinate. For m = 3 to 6 and
    n = m! some replacement moves R by 0.984 Delta or more.

    All but the third term is exact in whole numbers, up to a last division. The third sums whole
    multiples of numbers at most e - 2, off by less than 10^-15 n^2; where the root's slope is at
    most 5 / sqrt(n), that is less than 0.9 steps for n below 10^7. So the floors differ by at most
    1026.

    **Null.** Monte Carlo over uniform rankings, or at its limit (:class:`Limit`).

    **Consistency.** For at most 6 items, where the third term is always taken. It is a sum of
    positive multiples of tau^k, k >= 2, and tau^k is the inner product of all products of k signs
    of pairs. Two equal signs have the product 1, so products of three signs are those of one
    among others: every product of signs is among them. Every function of a ranking is a polynomial
    in its signs. So if the mean embedding under the third term is as for uniform rankings, the
    population is uniform. R / n tends to the distance of the mean embeddings, which is positive
    under every departure. Under uniformity R is of the order of the root of n, and so is the
    threshold. The noise does not grow with n.

    For more than 6 items there is no such claim, because the third term is left out as n grows.
    """
    value = partial(_residual, n=n, m=m)
    blind, proof = _missed(
        n,
        m,
        "mean ranks and products of pairs",
        "privrank.mechanisms.ranknorms.residual_norm",
    )
    return Statistic(
        name="residual norm",
        step=_constants(m, sees_everything(n, m))[2] / GRID,
        sensitivity=GRID + ALLOWANCE,
        value=value,
        null=partial(null_of, "residual norm", (n, m), value, _rankings(n, m)),
        blind_to=blind,
        consistent=proof,
    )


@lru_cache(maxsize=64)
def _constants(m: int, third: bool) -> tuple[int, float, float]:
    """Return 9 times the squared length of the centred q, E e^tau - 1, and Delta."""
    pairs = m * (m - 1) // 2
    centred = np.sort(3 * (2 * np.arange(1, m + 1) - m - 1) ** 2 - (m * m - 1)).tolist()
    square = sum(one * one for one in centred)
    opposite = sum(one * other for one, other in zip(centred, reversed(centred), strict=True))
    bounds = 2 - 2 * opposite / square + 4 + 4 * third
    logs = (
        math.log(math.expm1(-2 * j / pairs) / (j * math.expm1(-2 / pairs))) for j in range(1, m + 1)
    )
    return square, math.expm1(1 + math.fsum(logs)), math.sqrt(bounds)


def _residual(ranks: IntArray, order: Order, n: int, m: int) -> int:
    third = sees_everything(n, m)
    centred = 2 * ranks - (m + 1)
    return _residual_of(
        centred.sum(axis=0), (centred * centred).sum(axis=0), _discordances(ranks, third), n, third
    )


def _residual_of(
    sums: IntArray, squares: IntArray, met: tuple[IntArray, IntArray, int], n: int, third: bool
) -> int:
    """Return the residual norm from the sums of u_a and of u_a^2 by item, and the distances met."""
    m = len(sums)
    (apart, times, discordant) = met
    pairs = m * (m - 1) // 2
    square, mean, delta = _constants(m, third)
    # first term: 3 times the sum of u_a^2 less its mean, for each item; whole numbers
    ends = 3 * squares - n * (m * m - 1)
    # n^2 mean tau = n^2 - 2 D / C, D the sum of the distances of all ordered pairs
    cyclic = (n * n * pairs - 2 * discordant) * m - _sum_of_squares(sums)
    residual = _sum_of_squares(ends) / square + cyclic / (m * pairs) * (3 * m / (m - 2))
    if third:
        # each distance that occurs, as often as it does, less the mean under uniformity
        tau = 1 - 2 * apart / pairs
        rest = math.fsum((times * (np.expm1(tau) - tau)).tolist()) - n * n * mean
        residual += 2 * rest / (math.e - 2)
    return _in_steps(residual, n, delta)


def _in_steps(square: float, n: int, delta: float) -> int:
    return math.floor(GRID * math.sqrt(max(square, 0.0) + _RIDGE * n) / delta)


@dataclass(frozen=True, slots=True)
class Limit:
    """The plain norm and the residual norm of many uniform rankings, without drawing rankings.

    Parameters
    ----------
    n, m : int
        Rankings and items, of which :func:`privrank.hypotheses.nulls.are_many` says yes. The Borda
        norm is the plain one then, and of more than 6 items the residual norm has two terms.

    Notes
    -----
    **Null.** Of at most 6 items the counts of all m! orders are drawn, which is exact. For more
    rankings, the limit: sums over rankings of u_a, of q(x_a) and of the sign vectors minus their
    projection (:func:`residual_norm`). Each is a vector in a space on which relabellings act
    irreducibly, of m - 1, m - 1 and (m - 1) (m - 2) / 2 dimensions, and has mean 0. So its
    covariance is a multiple of the identity (Schur). The spaces of the third and of the others are
    of different kinds, and E u_a q(x_b) = 0, as reversing all rankings turns the sign of u alone.
    The three are uncorrelated. Hence their squared lengths, divided by n times their means, tend to
    independent chi-squares divided by their degrees of freedom. The distribution functions of
    quadratic forms of five dimensions and more err by the order of 1 / n (Bentkus and Goetze 1997);
    what is left for the sizes taken is measured in ``validation/uniformity_limit.py``.
    """

    n: int
    m: int

    def sample(self, rng: np.random.Generator) -> Any:
        """Return counts of all orders, or the chi-squares of the three vectors."""
        if self.m <= MAX_ITEMS:
            return multinomial(self.n, uniform(math.factorial(self.m)), rng)
        return rng.chisquare((self.m - 1, self.m - 1, (self.m - 1) * (self.m - 2) / 2))

    def borda(self, drawn: Any, order: Order) -> int:
        """Return the plain norm of what `sample` has drawn, in lattice steps."""
        if self.m <= MAX_ITEMS:
            return _plain_of(drawn @ (2 * orders_of(self.m) - (self.m + 1)))
        return math.floor(GRID * math.sqrt(self.n * drawn[0] / (4 * (self.m - 1))))

    def residual(self, drawn: Any, order: Order) -> int:
        """Return the residual norm of what `sample` has drawn, in lattice steps."""
        n = self.n
        m = self.m
        if m <= MAX_ITEMS:
            centred = 2 * orders_of(m) - (m + 1)
            met = _distances_of_orders(drawn, m)
            return _residual_of(drawn @ centred, drawn @ centred**2, met, n, third=True)
        square = n * float(drawn[1] / (m - 1) + drawn[2] / ((m - 1) * (m - 2) / 2))
        return _in_steps(square, n, _constants(m, third=False)[2])


def _sum_of_squares(whole: IntArray) -> int:
    """Return the sum of squares of whole numbers, of any size."""
    return sum(one * one for one in whole.tolist())


def _discordances(ranks: IntArray, third: bool) -> tuple[IntArray, IntArray, int]:
    """Return the distances met, how many ordered pairs of rankings have each, and their sum.

    By whichever way is the shortest; where the third term is left out, perhaps the sum alone.
    """
    from privrank.kernels import rankings as kernels

    n, m = ranks.shape
    if m <= MAX_ITEMS:
        return _distances_of_orders(count_orders(ranks), m)
    if 8 * n * math.log2(m) < m:
        # few rankings of many items: sorting takes m log m for a pair, comparing bits m^2 / 128
        pairs = [kernels.kendall_to_center(ranks[:row], ranks[row]) for row in range(1, n)]
        apart, times = np.unique(np.concatenate(pairs), return_counts=True)
        return np.append(apart, 0), np.append(2 * times, n), 2 * int(apart @ times)
    elif third:
        words = np.ascontiguousarray(kernels.packed_pairs(ranks).T)
        counts = kernels.discordance_counts(words, np.ones(n, dtype=np.int64), m * (m - 1) // 2)
    else:
        # the sum alone, by items: a pair of rankings disagrees on (i, j) if one has i ahead
        ahead = kernels.count_pairs(ranks)
        none = np.empty(0, dtype=np.int64)
        return none, none, sum((ahead * ahead.T).sum(axis=1).tolist())
    return _as_pairs(counts, n)


def _distances_of_orders(counted: IntArray, m: int) -> tuple[IntArray, IntArray, int]:
    """Return the same from the counts of all m! orders."""
    from privrank.kernels import rankings as kernels

    # orders that occur, each compared once with every other: words of at most 15 bits
    met = np.flatnonzero(counted)
    counts = kernels.discordance_counts(_words(m)[:, met], counted[met], m * (m - 1) // 2)
    counts[0] += int(counted @ (counted - 1)) // 2
    return _as_pairs(counts, int(counted.sum()))


def _as_pairs(counts: IntArray, n: int) -> tuple[IntArray, IntArray, int]:
    """Return distances, ordered pairs of n rankings at each, and their sum, from unordered ones."""
    apart = np.flatnonzero(counts)
    times = 2 * counts[apart]
    return np.append(apart, 0), np.append(times, n), int(apart @ times)


@lru_cache(maxsize=MAX_ITEMS)
def _words(m: int) -> Words:
    """Return one column for each of the m! orders: its pairs, as bits."""
    signs = signs_of_orders(m)
    return np.asarray(((signs < 0) @ (1 << np.arange(signs.shape[1])))[None], dtype=np.uint64)


def of_choices(n: int, k: int, xi: float) -> Statistic:
    """Return the default statistic of n choices among k categories, at a pure budget `xi`.

    Notes
    -----
    **Privacy.** **Null.** As :func:`privrank.mechanisms.categories.omnibus_of`. For two categories
    its parts are one statistic, whose null distribution is known exactly.
    """
    return binomial(n, 0.5) if k == 2 else omnibus_of(n, uniform(k), xi)


def of_orders(n: int, m: int, xi: float) -> Statistic:
    """Return the omnibus of counts over all m! orders, for at most 6 items.

    Notes
    -----
    **Privacy.** **Null.** As :func:`privrank.mechanisms.categories.omnibus_of`.
    """
    if m > MAX_ITEMS:
        raise ValueError(
            f"method='omnibus' counts all m! orders, so it takes at most {MAX_ITEMS} items, "
            f"got {m}: use method='auto'."
        )
    return of_ranks(omnibus_of(n, uniform(math.factorial(m)), xi, rankings=True))


def of_rankings(n: int, m: int, xi: float) -> Statistic:
    """Return the larger of Borda norm and residual norm, each less a public quantile.

    Parameters
    ----------
    n, m : int
        Rankings and items, at least 2 each.
    xi : float
        Pure privacy budget, infinite for none.

    Returns
    -------
    Statistic
        The omnibus of the Borda norm at level 0.045 and the residual norm at level 0.005. Most
        departures in surveys affect the mean ranks, and the small share is enough to detect large
        departures of other kinds. For two items, it tests whether both orders are equally frequent.

    Notes
    -----
    **Privacy.** **Null.** As :func:`privrank.mechanisms.categories.omnibus` of its parts.
    n and m alone decide whether the Borda norm is capped and whether the residual norm has its
    third term.

    **Consistency.** For at most 6 items. The residual norm grows like n under every departure. The
    Borda norm is the plain one for large n, of the order of the root of n under uniformity. So
    the omnibus is consistent (:func:`privrank.mechanisms.categories.omnibus`).
    """
    if m == 2:
        return of_ranks(replace(binomial(n, 0.5), distance=False))
    borda = borda_norm(n, m)
    label = "omnibus of rankings against uniformity"
    drawn: tuple[Value | None, Value | None] = borda.simulated, None
    sample = _rankings(n, m)
    draws = min(QUANTILE_DRAWS, usual_draws("rankings", n, m))
    if are_many(n, m):
        limit = Limit(n, m)
        drawn = (limit.borda, limit.residual)
        sample = limit.sample
        draws = QUANTILE_DRAWS
        label += ", many"
    blind, proof = _missed(
        n, m, "first and last alone", "privrank.mechanisms.ranknorms.of_rankings"
    )
    whole = omnibus(
        "Borda and residual norm",
        NullSample(label, (n, m), sample),
        (
            OmnibusPart(borda.value, BORDA_LEVEL, drawn[0]),
            OmnibusPart(residual_norm(n, m).value, RESIDUAL_LEVEL, drawn[1]),
        ),
        GRID + ALLOWANCE,
        xi,
        draws,
        blind_to=blind,
        consistent=proof,
    )
    # simulations of power draw rankings
    return replace(whole, simulated=None, coarse=None) if are_many(n, m) else whole


def _sample(n: int, model: Mallows) -> NullSample:
    """Return what draws n rankings from a model, under the name of the omnibus."""
    # relabelling the items changes no distribution, so the centre is no part of the sizes
    return NullSample(
        "omnibus of a Mallows model",
        (n, len(model.items), table_key([model.theta])),
        partial(model.rvs, n),
    )


def _statistic(
    name: str,
    step: float,
    sensitivity: int,
    sample: NullSample,
    value: Value,
    blind_to: Blindness,
) -> Statistic:
    return Statistic(
        name,
        step,
        sensitivity,
        value,
        null=partial(null_of, name, sample.sizes, value, sample.draw),
        # of two items the share of one order is all there is
        blind_to=(blind_to,) if sample.sizes[1] > 2 else (),
        consistent=None,
    )


# The distance to the centre


@cache
def _window(m: int, theta: float) -> tuple[int, int, float]:
    """Return the clipping points of the distance, and the null mean of the clipped distance."""
    low, high = (_quantile(m, theta, level) for level in (_TAIL, 1 - _TAIL))
    high = max(high, low + 1)
    below = kendall.distribution(m, theta, np.arange(low, high, dtype=np.float64))
    return low, high, low + float((1.0 - below).sum())


def _quantile(m: int, theta: float, level: float) -> int:
    """Return the least distance d with P(D <= d) >= level."""
    return bisect_left(
        range(m * (m - 1) // 2),
        level,
        key=lambda distance: kendall.distribution(m, theta, np.array([float(distance)]))[0],
    )


def _distance(n: int, model: Mallows, ranks: IntArray, order: Order) -> int:
    from privrank.kernels import rankings as kernels

    low, high, mean = _window(len(model.items), model.theta)
    distances = kernels.kendall_to_center(ranks, np.array(model.center))
    total = int(np.clip(distances, low, high).sum())
    return abs(GRID * total - round(GRID * n * mean)) // (high - low)


def clipped_distance(n: int, model: Mallows) -> Statistic:
    """Return how far the mean clipped Kendall distance to the centre is from its null mean.

    Returns
    -------
    Statistic
        Its value is floor(|1024 sum_l clip(d_l, lo, hi) - a| / (hi - lo)), d_l the distance of
        ranking l, lo and hi the 0.001 and 0.999 quantiles of d under the null (at least 1 apart),
        and a the null mean of what stands before it, rounded to a whole number.

    Notes
    -----
    **Privacy.** lo, hi and a are functions of the null, so public. A replaced ranking moves the sum
    of clipped distances, a whole number, by at most hi - lo, and 1024 times it by 1024 (hi - lo).
    The quotient moves by at most 1024, and so does its floor, which is taken in integers. Attained
    where one distance falls from hi to lo and the sum stays above its null mean.

    **Null.** Monte Carlo over rankings from the model.
    """
    low, high, _ = _window(len(model.items), model.theta)
    return _statistic(
        "clipped distance to the centre",
        (high - low) / n / GRID,
        GRID,
        _sample(n, model),
        partial(_distance, n, model),
        "equal mean distance",
    )


# The mean sign vector


@cache
def _inverted(m: int, theta: float) -> FloatArray:
    """Return P(a pair `gap` places apart in the centre is inverted), for gap 0, ..., m - 1."""
    return np.array([0.0, *(1.0 - kendall.pair_probability(gap, theta) for gap in range(1, m))])


@cache
def _expected(m: int, theta: float) -> FloatArray:
    """Return those probabilities for all pairs of columns a < b, else 0."""
    return np.asarray(_inverted(m, theta)[np.maximum(np.arange(m) - np.arange(m)[:, None], 0)])


def _squares(ranks: IntArray, theta: float) -> FloatArray:
    """Return |f - E f|^2 of each ranking, columns in the order of the centre.

    A pair in the order of the centre gives (1 - mu)^2, an inverted one (1 + mu)^2 = that + 4 mu.
    """
    from privrank.kernels import rankings as kernels

    m = ranks.shape[1]
    inverted = _inverted(m, theta)
    scores = np.rint((1 - 2 * inverted) * _SCORE).astype(np.int64)
    base = 4 * float((inverted[1:] ** 2) @ np.arange(m - 1, 0, -1))
    more = kernels.inversion_scores(ranks, scores) / _SCORE
    return np.asarray((base + 4 * more) / (m * (m - 1) / 2))


def _draw_square(rng: np.random.Generator, m: int, theta: float) -> int:
    return round(float(_squares(Mallows.from_theta(m, theta).rvs(1, rng), theta)[0]) * _SCORE)


@cache
def _radius(m: int, theta: float) -> float:
    """Return c, the 0.999 null quantile of |f - E f|, at least the length of one inverted pair."""
    drawn = null_draws(
        "radius of a ranking",
        (m, table_key([theta])),
        partial(_draw_square, m=m, theta=theta),
        FULL,
    )
    square = float(np.quantile(drawn, 1 - _TAIL, method="inverted_cdf")) / _SCORE
    return math.sqrt(max(square, 8 / (m * (m - 1))))


@cache
def _reach(m: int, theta: float) -> float:
    """Return how far apart two clipped sign vectors can be; 2 where clipping would not help."""
    inverted = _inverted(m, theta)[1:]
    # V, the variance of the sign vector under the null: the sum over its pairs
    variance = 4 * float((inverted * (1 - inverted)) @ np.arange(m - 1, 0, -1)) / (m * (m - 1) / 2)
    radius = _radius(m, theta)
    return min(2.0, 2 * radius, math.sqrt(2 * (radius**2 + variance)))


def _kernel(model: Mallows, ranks: IntArray, order: Order) -> int:
    from privrank.kernels import rankings as kernels

    m = len(model.items)
    theta = model.theta
    reach = _reach(m, theta)
    # columns in the order of the centre
    columns = np.ascontiguousarray(ranks[:, np.argsort(model.center)])
    # clipping: vectors longer than the radius are scaled to it, by whole 2^-20ths
    weights = np.full(len(columns), _WEIGHT)
    if reach < 2:
        radius = _radius(m, theta)
        length = np.sqrt(np.maximum(_squares(columns, theta), radius**2))
        weights = np.floor(_WEIGHT * (radius / length)).astype(np.int64)
    deviation = weights.sum() * _expected(m, theta) - kernels.inversion_sums(columns, weights)
    norm = 2 * math.sqrt(float((deviation * deviation).sum()) / (m * (m - 1) / 2)) / _WEIGHT
    return math.floor(GRID * norm / reach)


def clipped_kernel(n: int, model: Mallows) -> Statistic:
    """Return the norm of the mean clipped sign vector, centred at its null mean.

    For at most 200 items.

    Returns
    -------
    Statistic
        Its value is floor(1024 |sum_l clip_c(f_l - E f)| / D), f the vector of the signs of all
        C(m, 2) pairs, divided by sqrt(C(m, 2)), E f its mean under the null, clip_c the scaling of
        longer vectors to length c, the 0.999 quantile of |f - E f| under the null, and
        D = min(2, 2 c, sqrt(2 (c^2 + V))) with V = E |f - E f|^2.

    Notes
    -----
    **Privacy.** E f and V are functions of the null, and c of public draws from it. Two sign
    vectors are at most 2 apart, clipped ones at most 2 c. With mu the mean of a pair's sign, the
    product of a = f - E f and b = f' - E f is at least the sum of -(1 - mu^2) / C(m, 2) over the
    pairs that f and f' order differently, because the other terms are squares. That is at least -V.
    So for scales v and w in [0, 1] with |v a| and |w b| at most c, |v a - w b|^2 <= 2 c^2 + 2 V.
    The sum of clipped vectors moves by at most D when a ranking is replaced, and so does its norm.
    For D = 2 clipping would not help and is left out.

    Scales c / |f - E f| are rounded down to multiples of 2^-20, which keeps the vectors within
    length c up to a relative error below 10^-6, and weighted counts of inverted pairs are then
    exact. The norm is off by less than 0.1 steps for n below 10^9, so the value before its floor
    moves by less than 1024.3, and the floor by at most 1025; 1026 leaves one more.

    **Null.** Monte Carlo over rankings from the model.
    """
    m = len(model.items)
    if m > MAX_PAIRED:
        raise ValueError(
            f"the clipped sign vector is for at most {MAX_PAIRED} items, got {m}: use the "
            f"distance to the centre."
        )
    return _statistic(
        "clipped Kendall norm from the null",
        _reach(m, model.theta) / n / GRID,
        GRID + ALLOWANCE,
        _sample(n, model),
        partial(_kernel, model),
        "dispersion",
    )


def omnibus_mallows(n: int, model: Mallows, xi: float) -> Statistic:
    """Return the larger of clipped Kendall norm and clipped distance, on a common scale.

    Each has half of the level 0.05. `xi` is the pure privacy budget. For more than 200 items the
    statistic is the clipped distance alone.

    Notes
    -----
    **Privacy.** **Null.** As :func:`privrank.mechanisms.categories.omnibus` of its parts.
    """
    distance = clipped_distance(n, model)
    if len(model.items) > MAX_PAIRED:
        return distance
    return omnibus(
        "omnibus of a Mallows model",
        _sample(n, model),
        tuple(OmnibusPart(one.value, 0.025) for one in (clipped_kernel(n, model), distance)),
        GRID + ALLOWANCE,
        xi,
        QUANTILE_DRAWS,
        blind_to=("pairs and distance alone",),
        consistent=None,
    )
