"""Noise for net wins: Laplace on vectors that sum to zero, and the other distributions they take.

Every comparison adds 1 to the net wins of one item and takes 1 from another's. So the nets of two
neighbours differ by a vector that sums to zero, and noise need not hide what cannot change. A
distribution is calibrated for the differences between neighbours that `sensitivity.UnitSensitivity`
bounds, on a lattice of 1 / fineness of a net win; `plans.choice` compares what the distributions
cost.

**Ties.** Where the number of ties T is released beside net wins, both share epsilon by
:func:`tie_noise`.

**Groups.** Where the nets of several groups of respondents are released, each with independent
noise of one of these distributions, and a unit's answers lie in one group, the whole spends what
one vector does. A unit that stays in its group changes one vector by at most the bound. One that
moves takes its own net u out of one vector and puts a net v into another. Every bound used here is
that of twice a unit's net in a norm, so u and v each have at most half of it. Losses of pure
distributions add up to no more than epsilon (the whole-number sensitivities below are even). For
Gaussian noise (u, v) is one vector with |(u, v)| = sqrt(|u|^2 + |v|^2), at most sqrt(1/2) of the
bound, on 2 m coordinates, for which it is certified.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from privrank.privacy.gaussian import integer_scale
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
"""Items up to which a distribution is drawn and simulated in about a second."""

_MIN_SCALE = 16.0
"""Scale in lattice steps above which noise is its continuous limit to some tenths of a percent."""

_FINE_TIES = 8
"""Steps of permutohedron noise for one answer about an item, where ties are released as well."""

_MAX_PROPOSED = 2**16
"""Numbers proposed at a time."""

_LARGEST_SCALE = 2.0**44
"""Beyond this the noise would fill most of the 64-bit integers to which sums are clipped."""


@immutable
@dataclass(frozen=True, slots=True)
class ZeroSumLaplace:
    """The distribution P(x) proportional to exp(-|x|_1 / scale) on integer vectors with sum 0.

    Parameters
    ----------
    items : int
        Number of coordinates m, at least 2.
    scale : float
        Scale in lattice steps; 0 is no noise.

    Notes
    -----
    **Privacy.** |x + d|_1 <= |x|_1 + |d|_1 for every x and every difference d of neighbours (and
    for -d, since neighbours may be exchanged), so P(x) <= exp(|d|_1 / scale) P(x + d): both sides
    have the same normaliser. The noise is pure, and exact: whole numbers all the way, nothing
    idealised. The loss |d|_1 / scale is attained far out in a direction in which all of d points
    outwards. The scale is calibrated as that of discrete Laplace noise is.

    **Drawing.** Of m - 1 independent discrete Laplace variables y let x be y followed by minus
    their sum. Keep x with probability exp(-|sum y| / scale): then x has probability proportional to
    exp(-|y|_1 / scale) exp(-|sum y| / scale). The coin is exact: a geometric variable of ratio
    exp(-1 / scale) is at least |sum y| with that probability. How many proposals it takes depends
    on the scale and m alone; one is kept in about 1.8 sqrt(m).

    **Statistic.** Independent discrete Laplace variables given that their sum is 0. Their
    characteristic function is phi(t) = (1 - q)^2 / (1 - 2 q cos t + q^2), q = exp(-1 / scale), so
    the variance of one is the integral of -phi'' phi^(m-1) over that of phi^m; by parts, of
    (m - 1) (phi' / phi)^2 phi^m. Put tan(t / 2) = c tan(s / 2) with c = tanh(1 / (2 scale)). Then
    phi = cos^2(s / 2) + c^2 sin^2(s / 2), dt = c ds / phi and
    (phi' / phi)^2 = sin^2 s / sinh^2(1 / scale), so the variance is (m - 1) / sinh^2(1 / scale)
    times the mean of sin^2 s weighted by phi^(m-1). Both are trigonometric polynomials of degree at
    most m + 1, whose means over more than m + 1 equally spaced points are exact. For large scales
    it is (m - 1) (2 m - 1) / (m (m + 1)) scale^2, against 2 scale^2 of independent noise, of which
    1 - 1 / m is left when that is made to sum to 0.
    """

    items: int
    scale: float

    @classmethod
    def calibrate(cls, items: int, sensitivity: int, epsilon: float) -> ZeroSumLaplace:
        """Return the distribution whose loss is at most `epsilon` at this l1 sensitivity."""
        scale = DiscreteLaplace.calibrate(sensitivity, epsilon).scale
        if scale > _LARGEST_SCALE:
            raise ValueError(
                f"epsilon is too small for this statistic: the noise scale would exceed 2^44 "
                f"lattice steps (got epsilon {epsilon}); use a larger epsilon."
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
        """Return `values` plus one draw of noise: exact and secure, or seeded with `rng`."""
        m = self.items
        if values.shape != (m,):
            raise ValueError(f"expected {m} values, got shape {values.shape}.")
        if self.scale == 0:
            return values.copy()
        distribution = DiscreteLaplace(self.scale)
        # about what it takes to keep one, whose probability is .55 / sqrt(m)
        size = max(1, min(math.ceil(1.5 / (0.55 / math.sqrt(m))), _MAX_PROPOSED // m))
        while True:
            first = distribution.noise(size * (m - 1), rng).reshape(size, m - 1)
            if first.dtype != object and np.abs(first).max() >= LARGEST // m:
                first = first.astype(object)  # Python integers, whose sum has room
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
        How far one unit moves what is released, in lattice steps and as the distribution measures
        it.
    fineness : int
        Lattice steps per unit of the statistic, a net win say: what is released is
        ``distribution.draw(fineness * statistic, rng)``.
    rho : float or None
        Zero-concentrated privacy of Gaussian noise; None for a pure distribution.
    name : str
        The value of the argument ``noise=`` that asks for it; "laplace" of parts that this argument
        does not decide on.
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
        What one unit can change.
    name : str
        One of the distributions.
    epsilon, delta : float
        The guarantee; pure distributions take the epsilon alone.
    ties : bool
        Whether steps are to be as fine as the number of ties needs them (:func:`tie_noise`).

    Raises
    ------
    ValueError
        If the distribution is not drawn for so many items, or Gaussian noise has no delta.

    Notes
    -----
    **Privacy.** One unit's net u, times the fineness L, takes at most h steps. Discrete and
    zero-sum Laplace noise: h is L times half the l1 sensitivity, 2 min(rows, cut).
    Permutohedron noise: u lies in half of `net_permutohedra` times the permutohedron, and the
    fineness makes L times that half the whole number h. All are calibrated at 2 h. Gaussian noise:
    :func:`privrank.privacy.gaussian.integer_scale`.
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
            f"noise={name!r} is drawn for at most {MAX_ITEMS[name]} items, got {m}: use "
            f"noise='auto' or 'laplace'."
        )
    if name == "laplace" or math.isinf(epsilon):
        return PartNoise(DiscreteLaplace.calibrate(sensitivity.net_l1, epsilon), sensitivity.net_l1)
    if name == "gaussian":
        if delta <= 0:
            raise ValueError(
                "noise='gaussian' needs a delta above 0: pass delta=, well below 1 / nobs, or use "
                "another noise."
            )
        scale, fine = integer_scale(epsilon, delta, sensitivity.net_l2, 2 * m)
        rho = 0.5 * (fine * sensitivity.net_l2 / scale) ** 2
        return PartNoise(DiscreteGaussian(scale), fine * sensitivity.net_linf, fine, rho, name)
    if name == "zero-sum-laplace":
        return _zero_sum(m, sensitivity.net_l1, epsilon)
    # one unit's net is half of the change, and has to be a whole number of steps
    single = sensitivity.net_permutohedra / 2
    body = PermutohedronNoise.calibrate(m, 0.5 * epsilon, single, least)
    steps = 2 * int(body.fineness * single)
    return PartNoise(replace(body, fineness=1), steps, body.fineness, name=name)


def weighted_noise(sensitivity: UnitSensitivity, weight: int, epsilon: float) -> PartNoise:
    """Return the noise of net wins that public numeric covariates multiply, in lattice steps.

    Notes
    -----
    **Privacy.** A unit's weights are public, and its part of the statistic is every weight times
    its net wins. So it moves by the sum of its absolute weights, at most `weight`, times what its
    net wins move, at most :attr:`privrank.privacy.sensitivity.UnitSensitivity.net_l1`.
    """
    steps = sensitivity.net_l1 * weight
    return PartNoise(DiscreteLaplace.calibrate(steps, epsilon), steps)


def _zero_sum(cells: int, l1: int, epsilon: float) -> PartNoise:
    # the power of two that brings the scale to at least `_MIN_SCALE`
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
    """Return the noise of the wins of all items, and of their losses with a minus sign.

    Steps are wins, half wins if `ties`, divided by the fineness.

    Raises
    ------
    ValueError
        If the distribution does not apply, or is not drawn for so many numbers.

    Notes
    -----
    **Privacy.** These 2 m whole numbers sum to zero, as every comparison is won and lost once. One
    unit moves them by at most :meth:`privrank.privacy.sensitivity.UnitSensitivity.sides_l1` in l1,
    to which both distributions are calibrated (:class:`ZeroSumLaplace`,
    :class:`privrank.privacy.noise.DiscreteLaplace`).
    """
    l1 = sensitivity.sides_l1(ties=ties)
    cells = 2 * sensitivity.items
    if name == "laplace":
        return PartNoise(DiscreteLaplace.calibrate(l1, epsilon), l1)
    if name == "zero-sum-laplace" and cells <= MAX_ITEMS[name]:
        return _zero_sum(cells, l1, epsilon)
    raise ValueError(
        f"noise={name!r} is not for the wins and losses that pair_counts='proportional' releases: "
        f"use noise='laplace', up to {MAX_ITEMS['zero-sum-laplace'] // 2} items "
        f"'zero-sum-laplace', or leave it at 'auto'."
    )


def tie_noise(
    sensitivity: UnitSensitivity, nets: PartNoise, net_epsilon: float, epsilon: float
) -> PartNoise:
    """Return the noise of the number of ties T that is released beside net wins.

    Given the noise of these and their epsilon, to which T adds its own. The sensitivity is the ties
    of a unit that the noise of its net wins does not pay for.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one unit, with at most k answers. A unit with t ties
    has at most k - t decided ones, so what it moves T by it cannot move net wins by. Let H be the
    steps of net wins that are calibrated to net_epsilon, each of which costs net_epsilon / H at
    most, and let T have discrete Laplace noise of scale 1 / b. A replacement that moves net wins by
    S steps and T by d costs at most S net_epsilon / H + b |d|. It is shown that S + f |d| is at
    most H + f (k - q), so the whole costs at most net_epsilon + epsilon where
    b <= f net_epsilon / H and b <= epsilon / (k - q). (A smaller f will do as well: S is at most H,
    and where |d| is at most k - q nothing else is needed.)

    Of two units let the first have more ties, t. Then d is largest, and so is the net of the other,
    if that has none. Where net wins are released by group, and the other is in another group, S is
    the steps of both nets, one by one. The bounds below are those of such a sum.

    *Noise in l1*, L steps in a net win: q = c = `net_l1` / 4, f = 2 L, H = 4 c L. S is at most
    L (2 c + 2 min(k - t, c)), and S + 2 L t rises with t up to k - c and is constant beyond. So the
    l1 sensitivity of (net, w T) is 4 c + w (k - c) for 0 <= w <= 2; it is attained by c answers
    across a cut that are reversed, beside k - c ties that were answers within its sides. Net wins
    weighted by public covariates of a unit, in all by X steps at most, move X times as far: L is X.

    *Permutohedron noise*, whose steps are whole: S is the largest over sets A of items of
    ceil(L |d(A)| / c_A), d(A) the sum of the change over A and c_A = |A| (m - |A|). Here
    q = min(k, m - 1), or k if pairs repeat, f = floor(L / (m - 1)) and H = 2 L q / (m - 1), which
    is whole. |d(A)| is at most min(k, c_A) + min(k - t, c_A), or 2 k - t if pairs repeat. Where
    q = k, S is at most ceil(L (2 k - t) / (m - 1)), as c_A >= m - 1, and that is at most H - f t.
    Else q = m - 1 and H = 2 L; let r = L - f (m - 1), and let s = min(k, c_A) - (t - max(k - c_A,
    0)) answers be left to the first unit. Then S is at most L + ceil(L s / c_A) if k >= c_A, and if
    not at most that, too. For s >= m - 1, f t <= f (k - m + 1) is all that is needed. Else
    ceil(L s / c_A) <= ceil(L s / (m - 1)) <= f s + r, so that S <= 2 L - f (m - 1 - s), while
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
    """Return how many ties of a unit the noise of net wins does not pay for (:func:`tie_noise`)."""
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

    Steps are those of the matrix, half wins if `ties`, divided by the fineness.

    Notes
    -----
    **Privacy.** Discrete Laplace noise of scale l1 / epsilon is epsilon-private for a statistic
    that one unit moves by l1 (:class:`privrank.privacy.noise.DiscreteLaplace`). Gaussian noise has
    the delta of :func:`privrank.privacy.gaussian.integer_delta` at the distance l2, in at most
    twice as many coordinates as a table has cells: a unit that moves to another group changes two.
    The distances are those of `sensitivity`.
    """
    l1 = sensitivity.win_matrix_l1(ties=ties)
    if name == "laplace" or math.isinf(epsilon):
        return PartNoise(DiscreteLaplace.calibrate(l1, epsilon), l1)
    # Gaussian: certified for two tables' worth of cells, as a unit may change its group
    l2 = sensitivity.win_matrix_l2(ties=ties)
    cells = sensitivity.items * (sensitivity.items - 1)
    scale, fine = integer_scale(epsilon, delta, l2, 2 * cells)
    steps = (2 if ties else 1) * (1 if sensitivity.distinct else sensitivity.rows)
    rho = 0.5 * (fine * l2 / scale) ** 2
    return PartNoise(DiscreteGaussian(scale), fine * steps, fine, rho, name)


def count_noise(sensitivity: UnitSensitivity, epsilon: float) -> PartNoise:
    """Return the noise of the comparisons per pair that has the least variance.

    Given what one unit can change and the epsilon of the release.

    Notes
    -----
    **Privacy.** One unit moves them by at most
    :attr:`privrank.privacy.sensitivity.UnitSensitivity.pair_counts_l1` in l1 and each by at most
    `pair_counts_linf`, to which :func:`_least_noise` is calibrated.
    """
    moved = sensitivity.pair_counts_l1, sensitivity.pair_counts_linf
    return _least_noise(sensitivity.pairs, *moved, epsilon)


def item_noise(sensitivity: UnitSensitivity, epsilon: float) -> PartNoise:
    """Return the noise of the comparisons per item that has the least variance.

    Given what one unit can change and the epsilon of the release.

    Notes
    -----
    **Privacy.** One unit moves them by at most
    :attr:`privrank.privacy.sensitivity.UnitSensitivity.item_counts_l1` in l1 and each by at most
    `item_counts_linf`, to which :func:`_least_noise` is calibrated.
    """
    moved = sensitivity.item_counts_l1, sensitivity.item_counts_linf
    return _least_noise(sensitivity.items, *moved, epsilon)


def _least_noise(size: int, l1: int, linf: int, epsilon: float) -> PartNoise:
    """Return the noise of least variance of so many counts, given how far one unit moves them.

    Notes
    -----
    **Privacy.** The counts of a unit are whole numbers. Discrete Laplace noise: l1 sensitivity.
    Cube noise: each count moves by at most `linf`, so that the loss is at most epsilon
    (:class:`privrank.privacy.knorm.CubeNoise`). Which one is taken depends on public numbers alone.
    """
    laplace = DiscreteLaplace.calibrate(l1, epsilon)
    # the continuous limits of both variances: (D + 1) (D + 2) linf^2 / 3 and 2 l1^2
    if (size + 1) * (size + 2) * linf**2 < 6 * l1**2:
        with suppress(ValueError):  # an epsilon so small that it would not fit its integers
            cube = CubeNoise.calibrate(size, linf, epsilon)
            if cube.variance < laplace.variance:
                return PartNoise(cube, linf)
    return PartNoise(laplace, l1)
