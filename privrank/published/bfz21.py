"""One-bit private tests of uniformity by random pairs of items, in forms that are private."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.mallows import tolerance_to_theta
from privrank.hypotheses.nulltables import FULL
from privrank.mechanisms.statistics.pairs import pair_squares, pair_sums
from privrank.privacy.noise import DiscreteLaplace

__all__ = ["Buckets", "Ramp"]

IntArray = NDArray[np.int64]
Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ramp:
    """A one-bit test whose probability to reject rises with the sum of squared pair counts.

    The corrected truncated test of Busa-Fekete, Fotakis and Zampetakis (2021, Algorithm 3). With
    probability `alpha` it answers by a fair coin; else it rejects with probability
    p = clip(16 (Y - d) / (2 d mu^2 (n - 1)), 0, 1), where Y = sum_p S_p^2 / n has mean d =
    floor(m / 2) under uniformity.

    Parameters
    ----------
    n, m : int
        Numbers of rankings and items, both at least 2.
    alpha : float
        Level, and probability of the coin.
    mu : float
        Bias of the pairs that the test is to detect; in (0, 1).

    Notes
    -----
    **Privacy.** Put s = mu^2 (n - 1) / 16 and R = |S|, so that p = (R^2 / n - d) / (2 d s) where
    that is in [0, 1]. A neighbour moves R by at most h = 2 sqrt(d). As a function of R, p is
    convex up to R_1 = sqrt(n d (1 + 2 s)), where it reaches 1, and constant from there. So it
    rises most over a stretch of length h that ends in R_1, which starts at R_1 - h >= 0 if
    n (1 + 2 s) >= 4, and there p >= ((R_1 - h)^2 / n - d) / (2 d s):

        change of p <= (2 h R_1 - h^2) / (2 d s n) = 2 (sqrt((1 + 2 s) / n) - 1 / n) / s,

    whatever d. Both answers have probability at least alpha / 2, so the privacy loss is at most
    log(1 + 2 (1 - alpha) change / alpha). With g = (1 - alpha) / (alpha (e^epsilon - 1)) it is at
    most epsilon whenever n >= 1 + max((128 g / mu^2)^(2/3), 46 g / mu), for the change is at most
    32 / (mu^2 (n - 1)^(3/2)) + 11.4 / (mu (n - 1)); `design` solves the sharper inequality.

    **Null.** Var Y = 2 d (1 - 1 / n), and E (Y - d)+ = E |Y - d| / 2 <= sd(Y) / 2. So
    E p <= sqrt(2 d (1 - 1 / n)) / (4 d s), and the level alpha / 2 + (1 - alpha) E p is at most
    alpha if s >= (1 - alpha) / alpha sqrt((1 - 1 / n) / (2 d)).
    """

    n: int
    m: int
    alpha: float
    mu: float

    @classmethod
    def design(
        cls, n: int, m: int, epsilon: float, alpha: float, tolerance: float | None = None
    ) -> Ramp:
        """Return the test for the least bias at which it is private and keeps its level.

        Parameters
        ----------
        n, m : int
            Numbers of rankings and items, both at least 2.
        epsilon : float
            Pure privacy budget.
        alpha : float
            Level, in (0, 1).
        tolerance : float, optional
            Total variation distance of a Mallows model from uniformity; the bias is then that
            model's, mu = tanh(m theta / 16), of two items m / 8 places apart.

        Raises
        ------
        ValueError
            Where no bias below 1, or not that of `tolerance`, gives a private test of the level.
        """
        d = m // 2
        s = max(
            (1 - alpha) / alpha * math.sqrt((1 - 1 / n) / (2 * d)),
            _least_slope(n, math.expm1(min(epsilon, 50.0)) * alpha / (2 * (1 - alpha))),
        )
        least = math.sqrt(16 * s * (1 + 1e-12) / (n - 1))
        if tolerance is None:
            mu, asked = least, "and biases end below 1"
        else:
            mu = math.tanh(m * tolerance_to_theta(m, tolerance) / 16)
            asked = f"and tolerance {tolerance:g} gives {mu:.3g}"
        if not least <= mu < 1:
            raise ValueError(
                f"the truncated test is {epsilon:g}-private with level {alpha:g} only for a bias "
                f"of at least {least:.3g} with {n} rankings of {m} items, {asked}: use "
                "method='auto' or more rankings."
            )
        return cls(n, m, alpha, mu)

    def reject_probability(self, ranks: IntArray, order: Order) -> float:
        """Return the probability to reject, coin included, given ranks (n, m) and item order."""
        d, sums = self.m // 2, pair_sums(ranks, order)
        slope = 16 / (2 * d * self.mu**2 * (self.n - 1))
        excess = (int(sums @ sums) - self.n * d) / self.n
        return self.alpha / 2 + (1 - self.alpha) * min(max(slope * excess, 0.0), 1.0)


def _least_slope(n: int, room: float) -> float:
    """Return the least s at which p changes by at most `room` between neighbours.

    The larger root s of (room s / 2 + 1 / n)^2 = (1 + 2 s) / n; the bound on the change falls in
    s, because sqrt((1 + 2 s) / n) - 1 / n is concave and positive at 0.
    """
    if room >= 1:
        return 0.0
    a, b, c = room**2 / 4, (2 - room) / n, (1 - 1 / n) / n
    return max((b + math.sqrt(b * b + 4 * a * c)) / (2 * a), (4 / n - 1) / 2)


@dataclass(frozen=True, slots=True)
class Buckets:
    """A one-bit test by the share of buckets of rankings whose own test rejects.

    The corrected bucketing of Busa-Fekete, Fotakis and Zampetakis (2021). With probability
    `alpha` it answers by a fair coin; else it rejects with the share of `count` buckets in which
    the exact test of the sum of squared pair counts rejects at level alpha / (2 (1 - alpha)).
    Whoever releases the bit deals the rankings at random: a secret uniform permutation puts them in
    a row, and the ranking in place l of it is in bucket l modulo `count`.

    Parameters
    ----------
    n, m : int
        Numbers of rankings and items, both at least 2.
    alpha : float
        Level, and probability of the coin; at most 2/3.
    count : int
        Number of buckets.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one ranking, or one respondent with all their rows.
    No place in the data may decide the bucket: a respondent whose first row is moved takes another
    place and shifts all who come after. So couple the permutations of neighbours, which do not
    depend on the data: every unit but the replaced one gets the same place in both, wherever it
    stands in the two frames, and the replaced unit the place that is left. Both permutations are
    then uniform, and for every outcome the buckets differ in one ranking, which moves the share by
    at most 1 / count. The probability to reject is the mean over the outcomes: it also moves by at
    most (1 - alpha) / count. Both answers have probability at least alpha / 2, so the ratio of
    their probabilities under neighbours is at most 1 + 2 (1 - alpha) / (alpha count) <= e^epsilon
    for count >= 2 (1 - alpha) / (alpha (e^epsilon - 1)).

    **Null.** The level is alpha / 2 + (1 - alpha) E share <= alpha, exactly: the mean of a share
    is the mean of the buckets' own levels.
    """

    n: int
    m: int
    alpha: float
    count: int

    @classmethod
    def design(cls, n: int, m: int, epsilon: float, alpha: float) -> Buckets:
        """Return the test with the fewest buckets that are private; refuse buckets of one."""
        count = math.ceil(2 * (1 - alpha) / (alpha * math.expm1(min(epsilon, 50.0))))
        if n < 2 * count:
            raise ValueError(
                f"the bucket test with level {alpha:g} needs {count} buckets of at least two "
                f"rankings to be {epsilon:g}-private, but there are {n} rankings: use "
                "method='auto' or more rankings."
            )
        return cls(n, m, alpha, count)

    def threshold(self, size: int) -> int:
        """Return the least lattice value of `pair_squares` that a bucket of `size` rejects."""
        null = pair_squares(size, self.m).null(FULL)
        least = null.threshold(self.alpha / (2 * (1 - self.alpha)), DiscreteLaplace(0.0))
        return self.m * size**2 if least is None else least  # which no value reaches

    def reject_probability(self, ranks: IntArray, order: Order) -> float:
        """Return the probability to reject, coin included, given dealt ranks and item order."""
        buckets = [ranks[first :: self.count] for first in range(self.count)]
        sizes = {len(rows) for rows in buckets}
        tests = {size: (pair_squares(size, self.m).value, self.threshold(size)) for size in sizes}
        rejected = 0
        for rows in buckets:
            value, threshold = tests[len(rows)]
            rejected += value(rows, order) >= threshold
        return self.alpha / 2 + (1 - self.alpha) * rejected / self.count
