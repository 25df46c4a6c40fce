"""Tests of Busa-Fekete, Fotakis and Zampetakis (2021), corrected.

Private and non-private uniformity testing: tests of uniformity of n rankings (k in the paper) of m
items, available only by ``method=``. ``"two-sample"`` is 2SAMP, ``"laplace"`` is the sum of squares
of UNIF with the noise of Algorithm 4, and ``"mallows"`` is a two-sided version of MA in their
experiments. ``"truncated"`` and ``"bucket"`` are corrected versions of TRUNC (Algorithm 3) and
BUNIF. Notation: d = floor(m / 2) disjoint random pairs of items, S_p the sum of the n signs of pair
p, Y = sum_p S_p^2 / n. The delta of the paper is the level `alpha`, and mu = tanh(m theta / 16) is
the bias of a pair m / 8 positions apart.

Errors in the paper, corrected here, are listed in docs/papers/bfz21.md. The privacy proofs are in
the docstrings of the statistics and bits.
"""

import math
from functools import lru_cache, partial

import numpy as np

from privrank.distributions import kendall
from privrank.hypotheses.nulls import FULL, Blindness, Order, RandomBit, Statistic, null_of
from privrank.mechanisms.ranknorms import pair_sums
from privrank.privacy.noise import DiscreteLaplace
from privrank.util.arrays import IntArray


def pair_squares(n: int, m: int) -> Statistic:
    """Return the sum of squared pair counts, in steps of 4 (8 if n is odd).

    Returns
    -------
    Statistic
        Its value is (sum_p S_p^2 - d (n mod 2)) / u with u = 4 for even n, 8 for odd n: squares of
        even numbers are 4 j^2, but (2 j + 1)^2 = 8 (j (j + 1) / 2) + 1.

    Notes
    -----
    **Privacy.** A replaced ranking moves each S_p by -2, 0 or 2, and then S_p^2 by
    |4 S_p - 4| or |4 S_p + 4|, where the new value is again in [-n, n]: S_p -> S_p - 2 requires
    2 - n <= S_p <= n, so the change is at most 4 (n - 1). The sum over the pairs is 4 d (n - 1), a
    multiple of u. It is attained by reversing one of n equal rankings.

    **Null.** Monte Carlo over the pair counts.
    """
    d = m // 2
    unit = 8 if n % 2 else 4
    return Statistic(
        name="sum of squared pair counts",
        step=float(unit),
        sensitivity=4 * d * (n - 1) // unit,
        value=partial(_squares, odd=n % 2, unit=unit),
        null=partial(
            null_of,
            "squared pair counts",
            (n, d),
            partial(_squared, odd=n % 2, unit=unit),
            partial(_signs, n, d),
        ),
        blind_to=_even_pairs(m),
        consistent=None,
    )


def _even_pairs(m: int) -> tuple[Blindness, ...]:
    """Return what disjoint pairs cannot detect; nothing for two items."""
    return ("even pairs",) if m > 2 else ()


def _squares(ranks: IntArray, order: Order, odd: int, unit: int) -> int:
    return _squared(pair_sums(ranks, order), order, odd, unit)


def _squared(sums: IntArray, order: Order, odd: int, unit: int) -> int:
    return (int(sums @ sums) - len(sums) * odd) // unit


def _signs(n: int, d: int, rng: np.random.Generator) -> IntArray:
    return 2 * rng.binomial(n, 0.5, d) - n


def two_rankings(m: int) -> Statistic:
    """Return the number of concordant pairs of two rankings, in lattice steps.

    Returns
    -------
    Statistic
        Its value is floor(C / h), where C is the number of pairs of items in the same order.

    Notes
    -----
    **Privacy.** C lies in [0, m (m - 1) / 2], and changes from one end to the other if one of two
    equal rankings is reversed, so its sensitivity is m (m - 1) / 2. The sensitivity of floor(C / h)
    is this number divided by h, rounded up: floor(x + t) <= floor(x) + ceil(t).

    **Null.** Monte Carlo. Relative to the first ranking the second is uniform, and reversing it
    maps C to the Kendall distance, which therefore has the same distribution as C.
    """
    cell = _cell(1, m)
    return Statistic(
        name="concordant pairs of two rankings",
        step=float(cell),
        sensitivity=-(-(m * (m - 1) // 2) // cell),
        value=partial(_concordant, cell=cell),
        null=partial(
            null_of,
            "pairs of two rankings",
            (m,),
            partial(_cells, cell=cell),
            partial(_distances, 1, m),
        ),
        blind_to=("two rankings alone",),
        consistent=None,
    )


def _cell(n: int, m: int) -> int:
    """Return the lattice step of sums of n distances, 17 / 2^20 of their sd."""
    return max(1, math.ceil(17 * math.sqrt(n * kendall.variance(m, 0.0)) / 2**20))


def _distances(n: int, m: int, rng: np.random.Generator) -> IntArray:
    """Return the summed Kendall distances of n uniform rankings from one.

    A distance is a sum of independent uniform integers from 0 to j - 1, j = 1, ..., m. For many
    rankings, the counts of these integers are drawn.
    """
    if n < m:
        return np.asarray(rng.integers(0, np.arange(1, m + 1), (n, m)).sum())
    return np.asarray(
        sum(rng.multinomial(n, np.full(j, 1.0 / j)) @ np.arange(j) for j in range(1, m + 1))
    )


def _cells(distance: IntArray, order: Order, cell: int) -> int:
    return int(distance) // cell


def _concordant(ranks: IntArray, order: Order, cell: int) -> int:
    from privrank.kernels import rankings as kernels

    m = len(order)
    return (m * (m - 1) // 2 - int(kernels.kendall_to_center(ranks[1:], ranks[0])[0])) // cell


def central_distance(n: int, m: int) -> Statistic:
    """Return the deviation of the mean Kendall distance to the items' order.

    Returns
    -------
    Statistic
        Its value is floor(|2 sum_l d(ranking l, order of the items) - n m (m - 1) / 2| / (2 h)).

    Notes
    -----
    **Privacy.** A distance lies in [0, m (m - 1) / 2], so the absolute value moves by at most
    m (m - 1) if a ranking is replaced, and the floored value by m (m - 1) / (2 h), rounded up. For
    h = 1 this is attained by reversing one of n rankings in the order of the items.

    **Null.** Monte Carlo over sums of distances.

    The statistic assumes that the central ranking is the order of the items or its reversal.
    """
    cell = _cell(n, m)
    return Statistic(
        name="distance to the order of the items",
        step=2.0 * cell,
        sensitivity=-(-(m * (m - 1) // 2) // cell),
        value=partial(_off_centre, cell=cell),
        null=partial(
            null_of,
            "sum of distances",
            (n, m),
            partial(_apart, n=n, m=m, cell=cell),
            partial(_distances, n, m),
        ),
        blind_to=("halfway consensus",) if m > 2 else (),
        consistent=None,
    )


def _off_centre(ranks: IntArray, order: Order, cell: int) -> int:
    from privrank.kernels import rankings as kernels

    n, m = ranks.shape
    return _apart(kernels.kendall_to_center(ranks, np.arange(1, m + 1)).sum(), order, n, m, cell)


def _apart(total: IntArray, order: Order, n: int, m: int, cell: int) -> int:
    return int(abs(2 * int(total) - n * (m * (m - 1) // 2)) // (2 * cell))


def ramp_bit(n: int, m: int, alpha: float, mu: float) -> RandomBit:
    """Return the decision by a ramp: P(reject) increases with the sum of squared pair counts.

    This is the corrected TRUNC: lines 2-4 and 10-11 are left out, and it rejects if TRUNC accepts.
    With probability `alpha` it answers by a fair coin. If not, it rejects with probability
    p = clip(16 (Y - d) / (2 d mu^2 (n - 1)), 0, 1), where Y = sum_p S_p^2 / n has mean
    d = floor(m / 2) under uniformity.

    Parameters
    ----------
    n, m : int
        Numbers of rankings and items, both at least 2.
    alpha : float
        Level, and probability of the coin.
    mu : float
        Bias of the pairs to detect, in (0, 1).

    Notes
    -----
    **Privacy.** Let s = mu^2 (n - 1) / 16 and R = |S|. Then p = (R^2 / n - d) / (2 d s) if this is
    in [0, 1]. A neighbour moves R by at most h = 2 sqrt(d). As a function of R, p is convex up to
    R_1 = sqrt(n d (1 + 2 s)), where it reaches 1, and constant beyond. So the largest increase over
    an interval of length h is over the interval that ends in R_1. It starts at R_1 - h >= 0 if
    n (1 + 2 s) >= 4, where p >= ((R_1 - h)^2 / n - d) / (2 d s):

        change of p <= (2 h R_1 - h^2) / (2 d s n) = 2 (sqrt((1 + 2 s) / n) - 1 / n) / s,

    for every d. Both answers have probability at least alpha / 2, so the privacy loss is at most
    log(1 + 2 (1 - alpha) change / alpha). With g = (1 - alpha) / (alpha (e^epsilon - 1)) it is at
    most epsilon if n >= 1 + max((128 g / mu^2)^(2/3), 46 g / mu), because the change is at most
    32 / (mu^2 (n - 1)^(3/2)) + 11.4 / (mu (n - 1)). :func:`privrank.plans.samples.least_bias`
    solves the sharper inequality.

    **Null.** Var Y = 2 d (1 - 1 / n), and E (Y - d)+ = E |Y - d| / 2 <= sd(Y) / 2. So
    E p <= sqrt(2 d (1 - 1 / n)) / (4 d s), and the level alpha / 2 + (1 - alpha) E p is at most
    alpha if s >= (1 - alpha) / alpha sqrt((1 - 1 / n) / (2 d)).
    """
    return RandomBit(
        "coin and ramp",
        partial(_reject_by_ramp, n, m // 2, alpha, mu),
        blind_to=_even_pairs(m),
        level="privrank.published.bfz21.ramp_bit",
        dealt=False,
    )


def _reject_by_ramp(
    n: int, d: int, alpha: float, mu: float, ranks: IntArray, order: Order
) -> float:
    """Return P(reject), including the coin, given ranks (n, m) and item order."""
    sums = pair_sums(ranks, order)
    # Y - d = excess / n, times 16 / (2 d mu^2 (n - 1)), cut to [0, 1]
    slope = 16 / (2 * d * mu**2 * (n - 1))
    excess = (int(sums @ sums) - n * d) / n
    return alpha / 2 + (1 - alpha) * min(max(slope * excess, 0.0), 1.0)


@lru_cache(maxsize=64)
def bucket_threshold(size: int, m: int, alpha: float) -> int:
    """Return the smallest lattice value of `pair_squares` that a bucket of this size rejects."""
    least = (
        pair_squares(size, m).null(FULL).threshold(alpha / (2 * (1 - alpha)), DiscreteLaplace(0.0))
    )
    return m * size**2 if least is None else least  # which no value reaches


def private_buckets(n: int, m: int, epsilon: float, alpha: float) -> int:
    """Return the smallest number of buckets that is private; refuse buckets of one."""
    count = math.ceil(2 * (1 - alpha) / (alpha * math.expm1(min(epsilon, 50.0))))
    if n < 2 * count:
        raise ValueError(
            f"method='bucket' at level {alpha:g} needs {count} buckets of at least two "
            f"rankings to be {epsilon:g}-private, but there are {n} rankings. Use "
            "method='auto' or more rankings."
        )
    for size in {n // count, -(-n // count)}:
        bucket_threshold(size, m, alpha)  # public, and computed before anything is spent
    return count


def bucket_bit(m: int, alpha: float, count: int) -> RandomBit:
    """Return the decision by the fraction of buckets of rankings whose test rejects.

    This is the corrected BUNIF. With probability `alpha` it answers by a fair coin. If not, it
    rejects with a probability equal to the fraction of `count` buckets in which the test of the sum
    of squared pair counts rejects at level alpha / (2 (1 - alpha)). The mechanism assigns the
    rankings to buckets at random: a secret uniform permutation orders them, and the ranking at
    position l is in bucket l modulo `count`.

    Parameters
    ----------
    m : int
        Number of items, at least 2.
    alpha : float
        Level, and probability of the coin; at most 2/3.
    count : int
        Number of buckets.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one ranking, or one respondent with all their rows.
    The position in the data must not decide the bucket: a respondent whose first row is moved has
    another position and shifts all later respondents. So couple the permutations of neighbours,
    which do not depend on the data. Every unit except the replaced one gets the same permuted
    position in both, whatever its position in the two frames, and the replaced unit gets the
    remaining position. Both permutations are then uniform, and for every outcome the buckets differ
    in one ranking, which moves the fraction by at most 1 / count. The probability to reject is the
    mean over the outcomes, so it moves by at most (1 - alpha) / count. Both answers have
    probability at least alpha / 2, so the ratio of their probabilities under neighbours is at most
    1 + 2 (1 - alpha) / (alpha count) <= e^epsilon for
    count >= 2 (1 - alpha) / (alpha (e^epsilon - 1)).

    **Null.** The level is alpha / 2 + (1 - alpha) E fraction <= alpha, on average over the tables
    of draws from which the thresholds are computed: the mean of the fraction is the mean of the
    levels of the buckets.
    """
    return RandomBit(
        "coin and buckets",
        partial(_reject_by_buckets, m, alpha, count),
        blind_to=_even_pairs(m),
        level="privrank.published.bfz21.bucket_bit",
        dealt=True,
    )


def _reject_by_buckets(m: int, alpha: float, count: int, ranks: IntArray, order: Order) -> float:
    """Return P(reject), including the coin, given assigned ranks and item order."""
    rejected = sum(
        pair_squares(len(rows), m).value(rows, order) >= bucket_threshold(len(rows), m, alpha)
        for rows in (ranks[first::count] for first in range(count))
    )
    return alpha / 2 + (1 - alpha) * rejected / count
