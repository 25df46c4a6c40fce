"""Statistics of n >= 2 rankings under a Mallows model with known centre and dispersion."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from privrank.distributions import kendall
from privrank.distributions.mallows import Mallows
from privrank.hypotheses.nulls import (
    FULL,
    Blindness,
    Order,
    Statistic,
    Value,
    null_draws,
    null_of,
    table_key,
)
from privrank.mechanisms.categories import (
    ALLOWANCE,
    GRID,
    QUANTILE_DRAWS,
    NullSample,
    OmnibusPart,
    omnibus,
)
from privrank.util.arrays import FloatArray, IntArray

MAX_PAIRED = 200
"""Most items of which all pairs are looked at, in time n m^2 for each of thousands of draws."""

_TAIL = 1e-3
"""Probability under the null on either side that clipping may touch."""

_WEIGHT = 2**20
_SCORE = 2**32
"""The number 1 in integer units, for the weight of a ranking and the mean sign of a pair."""


@dataclass(frozen=True, slots=True)
class _Model:
    """The null: `n` rankings from a Mallows model whose centre ranks the items as `center`."""

    n: int
    theta: float
    center: tuple[int, ...]

    @property
    def m(self) -> int:
        return len(self.center)

    def sizes(self) -> tuple[int, ...]:
        # relabelling the items changes no distribution, so the centre is no part of it
        return self.n, self.m, table_key([self.theta])

    def sample(self, rng: np.random.Generator) -> IntArray:
        return Mallows.from_theta(self.m, self.theta, np.array(self.center)).rvs(self.n, rng)


def _model(n: int, model: Mallows) -> _Model:
    return _Model(n, model.theta, tuple(int(rank) for rank in model.center))


def _statistic(
    name: str, step: float, sensitivity: int, model: _Model, value: Value, blind_to: Blindness
) -> Statistic:
    # of two items the share of one order is all there is
    blind = (blind_to,) if model.m > 2 else ()
    return Statistic(
        name,
        step,
        sensitivity,
        value,
        null=partial(null_of, name, model.sizes(), value, model.sample),
        blind_to=blind,
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

    def reached(distance: int) -> bool:
        return bool(kendall.distribution(m, theta, np.array([float(distance)]))[0] >= level)

    return bisect_left(range(m * (m - 1) // 2), True, key=reached)


def _distance(model: _Model, ranks: IntArray, order: Order) -> int:
    from privrank.kernels import rankings as kernels

    low, high, mean = _window(model.m, model.theta)
    distances = kernels.kendall_to_center(ranks, np.array(model.center))
    total = int(np.clip(distances, low, high).sum())
    return abs(GRID * total - round(GRID * model.n * mean)) // (high - low)


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
    known = _model(n, model)
    low, high, _ = _window(known.m, known.theta)
    return _statistic(
        "clipped distance to the centre",
        (high - low) / n / GRID,
        GRID,
        known,
        partial(_distance, known),
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
    gap = np.arange(m)[None, :] - np.arange(m)[:, None]
    return np.asarray(_inverted(m, theta)[np.maximum(gap, 0)])


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
    ranks = Mallows.from_theta(m, theta).rvs(1, rng)
    return round(float(_squares(ranks, theta)[0]) * _SCORE)


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


def _kernel(model: _Model, ranks: IntArray, order: Order) -> int:
    from privrank.kernels import rankings as kernels

    m = model.m
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
    known = _model(n, model)
    if known.m > MAX_PAIRED:
        raise ValueError(
            f"the clipped sign vector is for at most {MAX_PAIRED} items, got {known.m}: use the "
            f"distance to the centre."
        )
    return _statistic(
        "clipped Kendall norm from the null",
        _reach(known.m, known.theta) / n / GRID,
        GRID + ALLOWANCE,
        known,
        partial(_kernel, known),
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
    known = _model(n, model)
    name = "omnibus of a Mallows model"
    return omnibus(
        name,
        NullSample(name, known.sizes(), known.sample),
        tuple(OmnibusPart(one.value, 0.025) for one in (clipped_kernel(n, model), distance)),
        GRID + ALLOWANCE,
        xi,
        QUANTILE_DRAWS,
        blind_to=("pairs and distance alone",),
        consistent=None,
    )
