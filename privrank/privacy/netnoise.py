"""Noise for net wins: zero-sum Laplace noise and other distributions.

Every comparison adds 1 to the net wins of one item and subtracts 1 from the net wins of another. So
the nets of two neighbours differ by a vector that sums to zero, and noise need not protect the sum,
which cannot change. A distribution is calibrated for the differences between neighbours that
`sensitivity.UnitSensitivity` bounds, on a lattice of 1 / fineness of a net win. `plans.choice`
compares the variances of the distributions.

**Ties.** If the number of ties T is released in addition to net wins, both share epsilon by
:func:`tie_noise`.

**Groups.** Suppose that the nets of several groups of respondents are released, each with
independent noise of one of these distributions, and that the answers of a unit lie in one group.
All vectors together then spend as much as one vector. A unit that stays in its group changes one
vector by at most the bound. A unit that moves removes its net u from one vector and adds a net v to
another. Every bound used here is the bound of twice a unit's net in a norm, so u and v each have at
most half of it. Losses of pure distributions add up to no more than epsilon (the integer
sensitivities below are even). For Gaussian noise, (u, v) is one vector with
|(u, v)| = sqrt(|u|^2 + |v|^2), at most sqrt(1/2) times the bound, on 2 m coordinates, for which
the noise is certified.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from privrank.privacy.accounting import integer_scale
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.noise import (
    LARGEST,
    DiscreteGaussian,
    DiscreteLaplace,
    clipped_sum,
    geometric,
)
from privrank.privacy.sensitivity import UnitSensitivity
from privrank.util.arrays import IntArray, immutable
from privrank.util.checks import Rng

NoiseName = Literal["laplace", "gaussian", "zero-sum-laplace", "permutohedron"]

MAX_ITEMS: dict[NoiseName, int] = {"zero-sum-laplace": 200, "permutohedron": 50}
"""Largest number of items for which a distribution is drawn and simulated in about a second."""

_MIN_SCALE = 16.0
"""Scale in lattice steps above which noise is within tenths of a percent of its limit."""

_FINE_TIES = 8
"""Steps of permutohedron noise for one answer about an item, if ties are also released."""

_MAX_PROPOSED = 2**16
"""Largest number of random numbers proposed at a time."""

_LARGEST_SCALE = 2.0**44
"""Largest scale; larger noise would use most of the 64-bit range to which sums are clipped."""


@immutable
@dataclass(frozen=True, slots=True)
class ZeroSumLaplace:
    """P(x) proportional to exp(-|x|_1 / scale) on integer vectors with sum 0.

    Parameters
    ----------
    items : int
        Number of coordinates m, at least 2.
    scale : float
        Scale in lattice steps; 0 is no noise.

    Notes
    -----
    **Privacy.** |x + d|_1 <= |x|_1 + |d|_1 for every x and every difference d of neighbours (and
    for -d, because neighbours may be exchanged), so P(x) <= exp(|d|_1 / scale) P(x + d): both sides
    have the same normaliser. The guarantee is pure and exact, because all arithmetic is on
    integers. The loss |d|_1 / scale is attained at points x whose coordinates are large and have
    the signs of d. The scale is calibrated in the same way as for discrete Laplace noise.

    **Drawing.** Let y be m - 1 independent discrete Laplace variables, and let x be y followed by
    minus their sum. Keep x with probability exp(-|sum y| / scale). Then x has probability
    proportional to exp(-|y|_1 / scale) exp(-|sum y| / scale). The acceptance is exact: a geometric
    variable with ratio exp(-1 / scale) is at least |sum y| with this probability. The number of
    proposals depends only on the scale and m; about one in 1.8 sqrt(m) proposals is kept.

    **Statistic.** These are independent discrete Laplace variables, conditional
    on a sum of 0. Their characteristic function is phi(t) = (1 - q)^2 / (1 - 2 q cos t + q^2),
    q = exp(-1 / scale). So the variance of one coordinate is the integral of -phi'' phi^(m-1)
    divided by the integral of phi^m; integrating by parts, the former is the integral of
    (m - 1) (phi' / phi)^2 phi^m. Substitute tan(t / 2) = c tan(s / 2) with c = tanh(1 / (2 scale)).
    Then phi = cos^2(s / 2) + c^2 sin^2(s / 2), dt = c ds / phi and
    (phi' / phi)^2 = sin^2 s / sinh^2(1 / scale), so the variance is (m - 1) / sinh^2(1 / scale)
    times the mean of sin^2 s weighted by phi^(m-1). Both are trigonometric polynomials of degree at
    most m + 1, whose means over more than m + 1 equally spaced points are exact. For large scales
    the variance is (m - 1) (2 m - 1) / (m (m + 1)) scale^2. Independent noise has 2 scale^2, which
    decreases by a factor of 1 - 1 / m if its mean is subtracted.
    """

    items: int
    scale: float

    @classmethod
    def calibrate(cls, items: int, sensitivity: int, epsilon: float) -> Self:
        """Return the distribution with loss at most `epsilon` at an l1 sensitivity."""
        scale = DiscreteLaplace.calibrate(sensitivity, epsilon).scale
        if scale > _LARGEST_SCALE:
            raise ValueError(
                f"epsilon is too small for this statistic, got {epsilon}: the noise scale would "
                f"exceed 2^44 lattice steps. Use a larger epsilon."
            )
        return cls(items, scale)

    @property
    def variance(self) -> float:
        """Variance of one coordinate, in squared lattice steps."""
        if self.scale == 0:
            return 0.0
        # means over m + 2 equally spaced angles s, which are exact: see Statistic above
        angle = 2.0 * math.pi * np.arange(self.items + 2) / (self.items + 2)
        sine = np.sin(0.5 * angle) ** 2
        phi = 1.0 - sine + math.tanh(0.5 / self.scale) ** 2 * sine
        weight = phi ** (self.items - 1)
        mean = float(np.sin(angle) ** 2 @ weight / weight.sum())
        return (self.items - 1) / math.sinh(min(1.0 / self.scale, 300.0)) ** 2 * mean

    def draw(self, values: IntArray, rng: Rng) -> IntArray:
        """Return `values` plus one draw of noise, exact and secure or seeded."""
        m = self.items
        if values.shape != (m,):
            raise ValueError(f"expected {m} values, got shape {values.shape}.")
        if self.scale == 0:
            return values.copy()
        distribution = DiscreteLaplace(self.scale)
        # about the number needed to keep one; each is kept with probability 0.55 / sqrt(m)
        size = max(1, min(math.ceil(1.5 / (0.55 / math.sqrt(m))), _MAX_PROPOSED // m))
        while True:
            first = distribution.noise(size * (m - 1), rng).reshape(size, m - 1)
            if first.dtype != object and np.abs(first).max() >= LARGEST // m:
                first = first.astype(object)  # Python integers, whose sum cannot overflow
            last = -first.sum(axis=1)
            hits = np.flatnonzero(geometric(self.scale, size, rng) >= np.abs(last))
            if len(hits):
                return clipped_sum(values, np.append(first[hits[0]], last[hits[0]]))


NetDistribution = DiscreteLaplace | DiscreteGaussian | ZeroSumLaplace | PermutohedronNoise


@immutable
@dataclass(frozen=True, slots=True)
class PartNoise:
    """Noise of one part of a release, on its own lattice.

    Parameters
    ----------
    distribution : Distribution
        Distribution of the noise, in lattice steps.
    sensitivity : int
        The largest change of the released statistic by one unit, in lattice steps and in the norm
        of the distribution.
    fineness : int
        Lattice steps per unit of the statistic, such as a net win: the release is
        ``distribution.draw(fineness * statistic, rng)``.
    rho : float or None
        Zero-concentrated privacy of Gaussian noise; None for a pure distribution.
    name : str
        The corresponding value of the argument ``noise=``; "laplace" for parts that this argument
        does not affect.
    """

    distribution: NetDistribution | CubeNoise
    sensitivity: int
    fineness: int = 1
    rho: float | None = None
    name: NoiseName = "laplace"


def net_noise(
    sensitivity: UnitSensitivity,
    name: NoiseName,
    epsilon: float,
    delta: float = 0.0,
    *,
    ties: bool = False,
) -> PartNoise:
    """Return the noise that protects one vector of net wins.

    Parameters
    ----------
    sensitivity : UnitSensitivity
        The largest changes by one unit.
    name : str
        The name of the distribution.
    epsilon, delta : float
        The guarantee; pure distributions use only epsilon.
    ties : bool
        Whether steps must be fine enough for the release of the number of ties (:func:`tie_noise`).

    Raises
    ------
    ValueError
        If the distribution is not available for this number of items, or if Gaussian noise has no
        delta.

    Notes
    -----
    **Privacy.** The net u of one unit, times the fineness L, takes at most h steps. For discrete
    and zero-sum Laplace noise, h is L times half the l1 sensitivity, 2 min(rows, cut). For
    permutohedron noise, u lies in half of `net_permutohedra` times the permutohedron, and the
    fineness is such that L times that half is the integer h. All are calibrated at 2 h. For
    Gaussian noise see :func:`privrank.privacy.accounting.integer_scale`.
    """
    least = _FINE_TIES * (sensitivity.items - 1) if ties else 1
    noise = _calibrated(sensitivity, name, epsilon, delta, least)
    if noise.sensitivity % 2:
        raise AssertionError(f"the steps of one unit's net are not whole: {noise!r}")
    return noise


def _calibrated(
    sensitivity: UnitSensitivity, name: NoiseName, epsilon: float, delta: float, least: int
) -> PartNoise:
    m = sensitivity.items
    if m > MAX_ITEMS.get(name, m):
        raise ValueError(
            f"noise={name!r} is available for at most {MAX_ITEMS[name]} items, got {m}. Use "
            f"noise='auto' or 'laplace'."
        )
    if name == "laplace" or math.isinf(epsilon):
        return PartNoise(DiscreteLaplace.calibrate(sensitivity.net_l1, epsilon), sensitivity.net_l1)
    if name == "gaussian":
        if delta <= 0:
            raise ValueError(
                "noise='gaussian' needs a delta above 0. Pass delta=, well below 1 / nobs, or use "
                "another noise."
            )
        scale, fine = integer_scale(epsilon, delta, sensitivity.net_l2, 2 * m)
        rho = 0.5 * (fine * sensitivity.net_l2 / scale) ** 2
        return PartNoise(DiscreteGaussian(scale), fine * sensitivity.net_linf, fine, rho, name)
    if name == "zero-sum-laplace":
        return _zero_sum(m, sensitivity.net_l1, epsilon)
    # one unit's net is half of the change, and must be an integer number of steps
    single = sensitivity.net_permutohedra / 2
    body = PermutohedronNoise.calibrate(m, 0.5 * epsilon, single, least)
    steps = 2 * int(body.fineness * single)
    return PartNoise(replace(body, fineness=1), steps, body.fineness, name=name)


def weighted_noise(sensitivity: UnitSensitivity, weight: int, epsilon: float) -> PartNoise:
    """Return the noise of net wins multiplied by public numeric covariates.

    Notes
    -----
    **Privacy.** A unit's weights are public, and its contribution to the statistic is every weight
    times its net wins. So the statistic changes by at most the sum of the unit's absolute weights,
    at most `weight`, times the change of its net wins, at most
    :attr:`privrank.privacy.sensitivity.UnitSensitivity.net_l1`.
    """
    steps = sensitivity.net_l1 * weight
    return PartNoise(DiscreteLaplace.calibrate(steps, epsilon), steps)


def _zero_sum(cells: int, l1: int, epsilon: float) -> PartNoise:
    # the power of two for which the scale is at least `_MIN_SCALE`
    fine = int(2 ** max(0, math.ceil(math.log2(_MIN_SCALE / (l1 / epsilon)))))
    return PartNoise(
        ZeroSumLaplace.calibrate(cells, fine * l1, epsilon),
        fine * l1,
        fine,
        name="zero-sum-laplace",
    )


def side_noise(
    sensitivity: UnitSensitivity, name: NoiseName, epsilon: float, *, ties: bool
) -> PartNoise:
    """Return the noise of the wins of all items and of their negative losses.

    Steps are wins (half wins if `ties`) divided by the fineness.

    Raises
    ------
    ValueError
        If the distribution does not apply, or is not available for this number of items.

    Notes
    -----
    **Privacy.** These 2 m integers sum to zero, because every comparison is won and lost once. One
    unit changes them by at most :meth:`privrank.privacy.sensitivity.UnitSensitivity.sides_l1` in
    l1, to which both distributions are calibrated (:class:`ZeroSumLaplace`,
    :class:`privrank.privacy.noise.DiscreteLaplace`).
    """
    l1 = sensitivity.sides_l1(ties=ties)
    cells = 2 * sensitivity.items
    if name == "laplace":
        return PartNoise(DiscreteLaplace.calibrate(l1, epsilon), l1)
    if name == "zero-sum-laplace" and cells <= MAX_ITEMS[name]:
        return _zero_sum(cells, l1, epsilon)
    raise ValueError(
        f"noise={name!r} cannot be used for the wins and losses released with "
        f"pair_counts='proportional'. Use noise='auto' or 'laplace', or for at most "
        f"{MAX_ITEMS['zero-sum-laplace'] // 2} items 'zero-sum-laplace'."
    )


def tie_noise(
    sensitivity: UnitSensitivity, nets: PartNoise, net_epsilon: float, epsilon: float
) -> PartNoise:
    """Return the noise of the number of ties T, released in addition to net wins.

    `nets` and `net_epsilon` are the noise of net wins and its epsilon, to which T adds its own
    `epsilon`. The sensitivity is the number of ties of a unit that the noise of its net wins does
    not cover.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one unit, with at most k answers. A unit with t ties
    has at most k - t decided answers, so an answer that changes T cannot also change net wins. Let
    H be the steps of net wins that are calibrated to net_epsilon, each with a loss of at most
    net_epsilon / H, and let T have discrete Laplace noise of scale 1 / b. A replacement that moves
    net wins by S steps and T by d has a loss of at most S net_epsilon / H + b |d|. The proof shows
    that S + f |d| is at most H + f (k - q). So the total loss is at most net_epsilon + epsilon if
    b <= f net_epsilon / H and b <= epsilon / (k - q). (A smaller f is also valid: S is at most H,
    and if |d| is at most k - q no other condition is needed.)

    Let the first of two units have more ties, t. Then d is largest, and so is the net of the other
    unit, if the other unit has no ties. If net wins are released by group, and the other unit is in
    another group, S is the sum of the steps of both nets. The bounds below are for such a sum.

    *Noise in l1*, L steps in a net win: q = c = `net_l1` / 4, f = 2 L, H = 4 c L. S is at most
    L (2 c + 2 min(k - t, c)), and S + 2 L t increases with t up to k - c and is constant beyond. So
    the l1 sensitivity of (net, w T) is 4 c + w (k - c) for 0 <= w <= 2. It is attained by reversing
    c answers across a cut and replacing k - c answers within its sides by ties. Net wins weighted
    by public covariates of a unit, with at most X steps in total, move X times as far: L is X.

    *Permutohedron noise*, whose steps are integers: S is the largest value of
    ceil(L |d(A)| / c_A) over sets A of items, where d(A) is the sum of the change over A and
    c_A = |A| (m - |A|). Here q = min(k, m - 1), or k if pairs repeat, f = floor(L / (m - 1)) and
    H = 2 L q / (m - 1), which is an integer. |d(A)| is at most min(k, c_A) + min(k - t, c_A), or
    2 k - t if pairs repeat. If q = k, S is at most ceil(L (2 k - t) / (m - 1)), because
    c_A >= m - 1, and this is at most H - f t. If not, q = m - 1 and H = 2 L. Let
    r = L - f (m - 1), and let s = min(k, c_A) - (t - max(k - c_A, 0)) be the remaining answers of
    the first unit. Then S is at most L + ceil(L s / c_A), whether k >= c_A or not. For s >= m - 1,
    f t <= f (k - m + 1) suffices. For smaller s,
    ceil(L s / c_A) <= ceil(L s / (m - 1)) <= f s + r, hence S <= 2 L - f (m - 1 - s), while
    t <= k - s.
    """
    if math.isinf(net_epsilon):
        return PartNoise(DiscreteLaplace(0.0), 0)
    # f of the proof
    steps = (
        nets.fineness // (sensitivity.items - 1)
        if nets.name == "permutohedron"
        else 2 * nets.sensitivity // sensitivity.net_l1
    )
    scales = [DiscreteLaplace.calibrate(-(-nets.sensitivity // steps), net_epsilon)]
    left = ties_left(sensitivity, nets.name)
    if left:
        scales.append(DiscreteLaplace.calibrate(left, epsilon))
    return PartNoise(max(scales, key=lambda noise: noise.scale), left)


def ties_left(sensitivity: UnitSensitivity, name: NoiseName) -> int:
    """Return the number of a unit's ties not covered by the noise of net wins."""
    paid = (
        min(sensitivity.rows, sensitivity.items - 1)
        if name == "permutohedron" and sensitivity.distinct
        else sensitivity.net_l1 // 4
    )
    return sensitivity.effective_rows - paid


def cell_noise(
    sensitivity: UnitSensitivity, name: NoiseName, epsilon: float, delta: float, *, ties: bool
) -> PartNoise:
    """Return the noise of the cells of a win matrix, by l1 or l2 sensitivity.

    Steps are wins (half wins if `ties`) divided by the fineness.

    Notes
    -----
    **Privacy.** Discrete Laplace noise of scale l1 / epsilon is epsilon-private for a statistic
    that one unit moves by l1 (:class:`privrank.privacy.noise.DiscreteLaplace`). Gaussian noise has
    the delta of :func:`privrank.privacy.accounting.integer_delta` at the distance l2. The number of
    coordinates is at most twice the number of cells of a table, because a unit that moves to
    another group changes two tables. `sensitivity` gives the distances.
    """
    l1 = sensitivity.win_matrix_l1(ties=ties)
    if name == "laplace" or math.isinf(epsilon):
        return PartNoise(DiscreteLaplace.calibrate(l1, epsilon), l1)
    # Gaussian: certified for the cells of two tables, because a unit may change its group
    l2 = sensitivity.win_matrix_l2(ties=ties)
    scale, fine = integer_scale(epsilon, delta, l2, 4 * sensitivity.pairs)
    steps = (2 if ties else 1) * (1 if sensitivity.distinct else sensitivity.rows)
    rho = 0.5 * (fine * l2 / scale) ** 2
    return PartNoise(DiscreteGaussian(scale), fine * steps, fine, rho, name)


def count_noise(sensitivity: UnitSensitivity, epsilon: float) -> PartNoise:
    """Return the noise of the comparisons per pair with the smallest variance.

    Notes
    -----
    **Privacy.** One unit moves the counts by at most
    :attr:`privrank.privacy.sensitivity.UnitSensitivity.pair_counts_l1` in l1 and each by at most
    `pair_counts_linf`, to which :func:`_least_noise` is calibrated.
    """
    l1 = sensitivity.pair_counts_l1
    return _least_noise(sensitivity.pairs, l1, sensitivity.pair_counts_linf, epsilon)


def item_noise(sensitivity: UnitSensitivity, epsilon: float) -> PartNoise:
    """Return the noise of the comparisons per item with the smallest variance.

    Notes
    -----
    **Privacy.** One unit moves the counts by at most
    :attr:`privrank.privacy.sensitivity.UnitSensitivity.item_counts_l1` in l1 and each by at most
    `item_counts_linf`, to which :func:`_least_noise` is calibrated.
    """
    l1 = sensitivity.item_counts_l1
    return _least_noise(sensitivity.items, l1, sensitivity.item_counts_linf, epsilon)


def _least_noise(size: int, l1: int, linf: int, epsilon: float) -> PartNoise:
    """Return the noise of `size` counts with the smallest variance.

    `l1` and `linf` are the sensitivities of the counts.

    Notes
    -----
    **Privacy.** The counts of a unit are integers. Discrete Laplace noise is calibrated to the l1
    sensitivity. For cube noise each count moves by at most `linf`, so the loss is at most epsilon
    (:class:`privrank.privacy.knorm.CubeNoise`). The choice depends on public numbers alone.
    """
    laplace = DiscreteLaplace.calibrate(l1, epsilon)
    # the continuous limits of both variances: (D + 1) (D + 2) linf^2 / 3 and 2 l1^2
    if (size + 1) * (size + 2) * linf**2 < 6 * l1**2:
        with suppress(ValueError):  # epsilon is too small for 64-bit integers
            cube = CubeNoise.calibrate(size, linf, epsilon)
            if cube.variance < laplace.variance:
                return PartNoise(cube, linf)
    return PartNoise(laplace, l1)
