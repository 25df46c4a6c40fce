"""The Mallows model of rankings, like a frozen distribution of scipy.stats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from privrank.distributions import kendall
from privrank.distributions.simulate import generator
from privrank.util.arrays import FloatArray, IntArray, batches, immutable, readonly_copy
from privrank.util.checks import as_array, check_count, check_items, check_number, quoted

MIN_TOLERANCE = 1e-9
"""Smallest positive tolerance; distances are accurate to about 1e-15, so it has six digits."""


def _check_rankings(rankings: object, items: Sequence[object]) -> IntArray:
    """Return rankings as an (n, m) int64 matrix with rows that are permutations.

    Rows are permutations of 1..m, and the columns of a frame are put in the order of `items`.
    """
    columns = getattr(rankings, "columns", None)
    if columns is not None:
        if set(columns) != set(items) or len(columns) != len(items):
            raise ValueError("rankings must have the items of the model as columns, each once.")
        rankings = rankings[list(items)]  # type: ignore[index]
    values = as_array(rankings)
    if values.ndim not in (1, 2) or values.dtype.kind not in "iuf":
        raise TypeError(
            f"rankings must be a matrix of ranks, one row per ranking and one column per item, "
            f"got {values.ndim} dimensions of {values.dtype}."
        )
    values = np.atleast_2d(values)
    m = len(items)
    if values.shape[1] != m:
        raise ValueError(f"rankings must have one column per item, {m}, got {values.shape[1]}.")
    if not (np.sort(values, axis=1) == np.arange(1, m + 1)).all():
        raise ValueError(
            f"rankings must hold each of the ranks 1 to {m} once in every row. Complete missing "
            f"ranks and break ties beforehand."
        )
    return np.ascontiguousarray(values, dtype=np.int64)


@immutable
@dataclass(frozen=True, slots=True, init=False, eq=False)
class Mallows:
    """Mallows model for rankings.

    P(pi) = phi^d(pi, center) / Z, where d is the Kendall distance: the number of pairs of items
    that the two rankings order differently. Rank 1 is the best. ``phi = 1`` is the uniform
    distribution; ``phi = 0`` puts all mass on the centre.

    Parameters
    ----------
    items : int or sequence of str
        The number of items m (items are then named 0..m-1), or their names.
    phi : float in [0, 1]
        Dispersion.
    center : array_like of int, shape (m,), optional
        Rank of each item, in the order of `items`; by default 1..m.

    Attributes
    ----------
    theta : float
        -log(phi), in [0, inf]. All computations use theta, because phi loses digits close to 1.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its range.

    See Also
    --------
    privrank.PlackettLuce : Plackett-Luce model for rankings.
    privrank.tolerance_to_phi : The dispersion at a given distance from uniform.
    privrank.IdentityTest : Test that rankings follow a specified distribution.

    Notes
    -----
    **Statistic.** By repeated insertion in the order of the centre, d is a sum of independent
    truncated geometric variables; item j adds 0..j-1. So Z = prod_j (1 + ... + phi^(j-1)), and all
    quantities are exact up to rounding for any m. Only operations on rankings take time
    proportional to m or more; distribution functions and distances between models use a few dozen
    frequencies.

    References
    ----------
    Mallows (1957), https://doi.org/10.1093/biomet/44.1-2.114; Doignon, Pekec and Regenwetter
    (2004), https://doi.org/10.1007/BF02295838 (repeated insertion); Busa-Fekete, Fotakis and
    Zampetakis (2021), Private and Non-private Uniformity Testing for Ranking Data (whose formula
    for the total variation distance lacks the factor 1/2).

    Examples
    --------
    >>> import numpy as np
    >>> from privrank import Mallows
    >>> model = Mallows(["tea", "coffee", "water"], phi=0.5)
    >>> model.rvs(2, np.random.default_rng(4)).shape
    (2, 3)
    >>> round(model.pair_probability("tea", "coffee"), 4), round(model.mean_distance, 4)
    (0.6667, 0.9048)
    >>> round(model.total_variation("uniform"), 4)
    0.2619
    """

    items: Sequence[str | int]
    phi: float
    theta: float
    center: IntArray

    def __init__(
        self, items: int | Sequence[str], phi: float, center: ArrayLike | None = None
    ) -> None:
        value = check_number("phi", phi, 0, 1)
        self._set(items, value, -math.log(value) if value > 0 else math.inf, center)

    def _set(self, items: object, phi: float, theta: float, center: object) -> None:
        names: Sequence[str | int] = (
            range(check_count("items", items, low=2))
            if isinstance(items, Integral)
            else check_items(items)
        )
        m = len(names)
        ranks = as_array(np.arange(1, m + 1) if center is None else center)
        if ranks.shape != (m,) or not np.array_equal(np.sort(ranks), np.arange(1, m + 1)):
            raise ValueError(f"center must hold each of the ranks 1 to {m} once, in item order.")
        ranks = readonly_copy(ranks, np.int64)
        for name, value in {"items": names, "phi": phi, "theta": theta, "center": ranks}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_theta(
        cls, items: int | Sequence[str], theta: float, center: ArrayLike | None = None
    ) -> Self:
        """Return the model with phi = exp(-theta), with theta to full precision.

        theta is in [0, inf].

        Examples
        --------
        >>> Mallows.from_theta(["tea", "coffee", "water"], theta=np.log(2))
        Mallows(3 items, phi=0.5)
        """
        theta = check_number("theta", theta, 0, math.inf)
        # smaller values would underflow when squared, and no quantity distinguishes them from 0
        value = theta if theta > 1e-100 else 0.0
        model = object.__new__(cls)
        model._set(items, math.exp(-value), value, center)
        return model

    def __repr__(self) -> str:
        return f"Mallows({len(self.items)} items, phi={self.phi!r})"

    def rvs(self, size: int = 1, rng: np.random.Generator | None = None) -> IntArray:
        """Draw rankings by repeated insertion, in O(m log m) each.

        Parameters
        ----------
        size : int
            Number of rankings n.
        rng : numpy.random.Generator or None
            None for fresh entropy.

        Returns
        -------
        ndarray of int64, shape (n, m)
            Ranks, 1 for the best; one row per ranking, one column per item.

        See Also
        --------
        privrank.PlackettLuce.rvs : Draw rankings from a Plackett-Luce model.

        Examples
        --------
        >>> model.rvs(3, np.random.default_rng(4))
        array([[2, 3, 1],
               [1, 2, 3],
               [2, 3, 1]])
        """
        from privrank.kernels import rankings as kernels

        n = check_count("size", size)
        m = len(self.items)
        source = generator(rng)
        out = np.empty((n, m), dtype=np.int64)
        for rows in batches(n, m):
            codes = kernels.insertion_codes(
                source.random((rows.stop - rows.start, m)), np.arange(1, m + 1), self.theta
            )
            # the kernel uses the centre's order
            out[rows] = kernels.insertion_ranks(codes)[:, self.center - 1]
        return out

    def logpmf(self, rankings: ArrayLike) -> FloatArray:
        """Return the log-probability of each ranking.

        Parameters
        ----------
        rankings : array_like or DataFrame of int, shape (n, m) or (m,)
            Ranks 1..m; the columns of a frame may come in any order.

        Returns
        -------
        ndarray, shape (n,)

        Examples
        --------
        >>> model.logpmf([[1, 2, 3], [3, 2, 1]]).round(3)
        array([-0.965, -3.045])
        """
        # imported just before use, because numba is slow to load
        from privrank.kernels import rankings as kernels

        distance = kernels.kendall_to_center(_check_rankings(rankings, self.items), self.center)
        with np.errstate(invalid="ignore"):
            exponent = np.where(distance == 0, 0.0, -self.theta * distance)
        return np.asarray(exponent - kendall.log_partition(len(self.items), self.theta))

    def pmf(self, rankings: ArrayLike) -> FloatArray:
        """Return the probability of each ranking; see `logpmf`.

        Examples
        --------
        >>> model.pmf([[1, 2, 3], [3, 2, 1]]).round(3)
        array([0.381, 0.048])
        """
        return np.exp(self.logpmf(rankings))

    @property
    def mean_distance(self) -> float:
        """Expected Kendall distance to the centre.

        Examples
        --------
        >>> round(model.mean_distance, 4)
        0.9048
        """
        return kendall.mean(len(self.items), self.theta)

    @property
    def var_distance(self) -> float:
        """Variance of the Kendall distance to the centre.

        Examples
        --------
        >>> round(model.var_distance, 4)
        0.7528
        """
        return kendall.variance(len(self.items), self.theta)

    def pair_probability(self, i: str | int, j: str | int) -> float:
        """Return P(item i is ranked before item j).

        If the centre places item i g ranks before item j, the probability is h(g + 1) - h(g) with
        h(x) = x / (1 - phi^x). It does not depend on anything else.

        Examples
        --------
        >>> round(model.pair_probability("tea", "water"), 4)
        0.7619
        """
        try:
            first, second = (self.center[self.items.index(item)] for item in (i, j))
        except (TypeError, ValueError):
            raise ValueError("i and j must be items of the model, and one is not.") from None
        # the probability is a function of the gap alone, not of the ranks of other items
        gap = int(second - first)
        if gap == 0:
            raise ValueError("i and j must be two different items.")
        ahead = kendall.pair_probability(abs(gap), self.theta)
        return ahead if gap > 0 else 1.0 - ahead

    def distance_cdf(self, d: ArrayLike) -> FloatArray:
        """Return P(Kendall distance to the centre <= d) for each entry of `d`.

        Examples
        --------
        >>> model.distance_cdf([0, 1, 2, 3]).round(3)
        array([0.381, 0.762, 0.952, 1.   ])
        """
        at = as_array(d)
        if at.dtype.kind not in "iuf":
            raise TypeError("d must be a number, or an array of numbers.")
        if np.isnan(at).any():
            raise ValueError("d must be distances, and at least one is missing.")
        if math.isinf(self.theta):
            return np.asarray(at >= 0, dtype=np.float64)
        return kendall.distribution(len(self.items), self.theta, at.ravel()).reshape(at.shape)

    def total_variation(self, other: Literal["uniform"] | Mallows) -> float:
        """Return the total variation distance to uniform or to another model.

        Parameters
        ----------
        other : "uniform" or Mallows
            A Mallows model must have the same number of items and the same centre.

        Returns
        -------
        float
            Half the sum of absolute differences of probabilities.

        See Also
        --------
        privrank.tolerance_to_phi : The model at a given distance from uniform.

        Notes
        -----
        **Statistic.** The distance is the difference of two distribution functions of the Kendall
        distance at the point where the probabilities cross. Each is computed by inversion of its
        characteristic function. The result is within 1e-12 of the exact sum in all cases for which
        the sum was computed (m <= 40).

        Examples
        --------
        >>> round(model.total_variation("uniform"), 4)
        0.2619
        >>> round(model.total_variation(Mallows(["tea", "coffee", "water"], phi=0.8)), 4)
        0.1699
        """
        m = len(self.items)
        if isinstance(other, str) and other == "uniform":
            return kendall.total_variation(m, self.theta, 0.0)
        if not isinstance(other, Mallows):
            raise TypeError(f"other must be 'uniform' or a Mallows model, got {quoted(other)}.")
        if not np.array_equal(self.center, other.center):
            raise ValueError("other must have the same number of items and the same centre.")
        return kendall.total_variation(m, self.theta, other.theta)


def tolerance_to_theta(m: int, tolerance: float) -> float:
    """Return the Mallows theta at a total variation distance from uniform.

    See `tolerance_to_phi`; theta is not affected by the rounding of phi = exp(-theta) close to 1.
    """
    items = check_count("m", m, low=2)
    most = 1 - 1 / math.factorial(min(items, 25))  # 1 to machine precision from 18 items on
    value = check_number("tolerance", tolerance, 0, most)
    if 0 < value < MIN_TOLERANCE:
        raise ValueError(
            f"tolerance must be 0 or at least {MIN_TOLERANCE:g}, got {quoted(tolerance)}."
        )
    if value in (0.0, most):
        return 0.0 if value == 0 else math.inf
    return kendall.theta_at(items, value)


def tolerance_to_phi(m: int, tolerance: float) -> float:
    """Return the Mallows phi at a total variation distance from uniform.

    Parameters
    ----------
    m : int
        Number of items, at least 2.
    tolerance : float
        Total variation distance, 0 (then phi = 1) or between 1e-9 and 1 - 1/m! (then phi = 0).

    Returns
    -------
    float
        The dispersion, in [0, 1]. From about m = 10^5 on, the distance of the next floating-point
        phi differs by more than 1e-10; use `Mallows.from_theta` with `tolerance_to_theta` instead.

    Raises
    ------
    ValueError, TypeError
        If no model has this distance.

    Examples
    --------
    >>> from privrank import Mallows, tolerance_to_phi
    >>> phi = tolerance_to_phi(100, 0.25)
    >>> round(Mallows(100, phi).total_variation("uniform"), 10)
    0.25
    """
    return math.exp(-tolerance_to_theta(m, tolerance))
