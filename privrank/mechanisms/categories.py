"""Several statistics in one release, and statistics of counts by category under probabilities p.

An omnibus is the largest of several statistics, each less a public number. The others here are of
choices, and of rankings of at most six items.

Throughout, n is the number of observations, at least 2, and p contains the null probabilities of k
>= 2 categories, which sum to 1; some may be 0. Rankings of m <= 6 items are choices among m!
categories, in lexicographic order of their ranks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal

import numpy as np

from privrank.encode.samples import count_orders
from privrank.hypotheses.nulls import (
    Blindness,
    Null,
    Order,
    Probabilities,
    Sampler,
    Statistic,
    Value,
    binomial_null,
    binomial_weights,
    is_uniform,
    multinomial,
    null_draws,
    null_of,
    sorted_multinomial,
    table_key,
)
from privrank.mechanisms.permutation import noisy_quantile
from privrank.util.arrays import IntArray, readonly_copy, signs_of_orders

Alternative = Literal["larger", "smaller", "two-sided"]
Measure = Callable[[IntArray], IntArray]

MAX_ITEMS = 6
"""Most items whose m! rankings are counted one by one."""

_LEVEL = 0.05
_COUNT_LEVEL = 0.005
"""What the parts of an omnibus share, and the share of the count of impossible observations."""

_BITS = 62
"""Counts, times 1024 and the units of the thresholds, stay below 2 to this power."""

_LARGEST = 2**22
"""Choices of two categories up to which the null distribution is summed exactly."""


@dataclass(frozen=True, slots=True)
class ExpectedCounts:
    """The expected counts n p_x as whole numbers of 2^-bits, as fine as int64 holds them.

    For n below 2^40 that is 2^-10 or finer.
    """

    n: int
    p: Probabilities

    @property
    def bits(self) -> int:
        """Binary places of an expected count."""
        return _BITS - GRID.bit_length() - self.n.bit_length()

    def unit(self) -> int:
        """Return the sensitivity of the excess: one choice, or the largest expected count."""
        return min(1 << self.bits, int(_expected(self).max()))

    def excess(self, counts: IntArray) -> IntArray:
        """Return floor(1024 sum_x (M_x - t_x)+ / unit) over the last axis of counts."""
        above = np.maximum((counts << self.bits) - _expected(self), 0).sum(axis=-1)
        return np.asarray(GRID * above // self.unit())

    def cellwise_value(self, counts: IntArray, order: Order) -> int:
        """Return by how much the count of some category lies outside the range expected of it.

        In 1024ths of a choice: floor(1024 max_x max(M_x - t_x - a_x, t_x - M_x - b_x)) over the
        categories that can occur, t_x = n p_x rounded to a multiple of 2^-b. t_x + a_x and t_x -
        b_x are the binomial quantiles of M_x at the upper and lower level 1 / (4 k), or t_x if it
        lies beyond them, so a_x and b_x are not negative.

        Notes
        -----
        **Privacy.** t_x, a_x and b_x are functions of n and p, so public. A replaced choice moves
        every M_x by at most 1, so every term, and the largest of terms that move by at most 1 moves
        by no more. In integers of 2^-b, 1024 times it moves by at most 1024, and so does its floor.
        Attained where the category of the maximum gains, or loses, a choice.

        **Power.** The rarer a category, the narrower its range: deviations count by how unexpected.
        """
        low, high = _ranges(self)
        here = (counts << self.bits)[np.asarray(self.p) > 0]
        return GRID * max(int((here - high).max()), int((low - here).max())) >> self.bits

    def standardised_value(self, counts: IntArray, order: Order) -> int:
        """Return the largest deviation of a count in units of its standard deviation.

        max_x floor(w_x |floor(1024 (M_x - t_x))|), w_x the least standard deviation divided by that
        of x, rounded down to a multiple of 2^-b. The standard deviation is the root of
        n p_x (1 - p_x) + 1/4, so that a category that is nearly empty does not decide. Categories
        that cannot occur have weight 0.

        Notes
        -----
        **Privacy.** t_x and w_x <= 1 are functions of n and p, so public. A replaced choice moves
        every M_x by at most 1, so floor(1024 (M_x - t_x)) and its absolute value by at most 1024,
        w_x times it by at most 1024, and the floor of the product and the maximum by no more.
        Attained where the category with the least standard deviation decides.

        **Power.** Under H0 all deviations that are compared have nearly the same standard
        deviation, so a frequent category does not hide a rare one.
        """
        deviation = np.abs(GRID * ((counts << self.bits) - _expected(self)) >> self.bits)
        return int((deviation * _weights(self) >> self.bits).max())

    def impossible_value(self, counts: IntArray, order: Order) -> int:
        """Return how many observations cannot occur, in 1024ths."""
        return GRID * impossible_count(counts, self.p)

    def kendall_value(self, counts: IntArray, order: Order) -> int:
        """Return how far the mean sign vector is from its null mean, of counts by ranking.

        floor(512 n |mean f - E f|), f the vector of the signs of all C(m, 2) pairs of items,
        divided by sqrt(C(m, 2)).

        Notes
        -----
        **Privacy.** |f| = 1, so the mean of f moves by at most 2 / n, attained by reversing one of
        n equal rankings, and 512 n times its distance from any fixed vector by at most 1024. In
        floating point it is off by less than 0.5 for all n below 10^11 (the value is at most
        1024 n, with a relative error of 1024 n below 10^-15), so the floors differ by at most 1025.
        The bound 1026 leaves one more.
        """
        m = next(m for m in range(2, MAX_ITEMS + 1) if math.factorial(m) == len(self.p))
        signs = signs_of_orders(m)
        mean = np.asarray(self.p, dtype=np.float64) / math.fsum(self.p)
        deviation = counts @ signs - self.n * (mean @ signs)
        return math.floor(GRID / 2 * math.sqrt(float(deviation @ deviation) / signs.shape[1]))

    def sizes(self) -> tuple[int, ...]:
        """Return what names the public draws: n, the number of categories, a fingerprint of p."""
        return self.n, len(self.p), table_key(self.p)

    def null(self, name: str, value: Value) -> partial[Null]:
        """Return the Monte Carlo null of a value, as a function of the number of draws.

        The public sequence is named by n, the number of categories and a fingerprint of p, so equal
        p have equal draws.
        """
        return partial(null_of, name, self.sizes(), value, partial(multinomial, self.n, self.p))


@lru_cache(maxsize=64)
def _expected(cells: ExpectedCounts) -> IntArray:
    return readonly_copy(np.rint(np.ldexp(np.array(cells.p) * cells.n, cells.bits)), np.int64)


@lru_cache(maxsize=64)
def _ranges(cells: ExpectedCounts) -> tuple[IntArray, IntArray]:
    """Return t - b and t + a of the categories that can occur, in units of 2^-bits."""
    from scipy.stats import binom

    positive = np.asarray(cells.p) > 0
    p = np.asarray(cells.p)[positive] / math.fsum(cells.p)
    probability, place = np.unique(p, return_inverse=True)
    low, high = (
        end(0.25 / len(cells.p), cells.n, probability)[place].astype(np.int64) << cells.bits
        for end in (binom.ppf, binom.isf)
    )
    expected = _expected(cells)[positive]
    return np.minimum(low, expected), np.maximum(high, expected)


@lru_cache(maxsize=64)
def _weights(cells: ExpectedCounts) -> IntArray:
    """Return the least standard deviation of a count divided by that of each, in 2^-bits."""
    p = np.asarray(cells.p) / math.fsum(cells.p)
    spread = np.sqrt(cells.n * p * (1.0 - p) + 0.25)
    weights = np.where(p > 0, spread[p > 0].min() / spread, 0.0)
    return readonly_copy(np.floor(np.ldexp(weights, cells.bits)), np.int64)


def excess(counts: IntArray, n: int) -> IntArray:
    """Return sum_x (k M_x - n)+ over the last axis of counts by k categories."""
    return np.asarray(np.maximum(counts.shape[-1] * counts - n, 0).sum(axis=-1))


def _whole(measure: Measure, counts: IntArray, order: Order) -> int:
    return int(measure(counts))


def _null_of_two(measure: Measure, n: int, p: Probabilities, draws: int) -> Null:
    """Return the exact distribution of a measure of the counts of two categories."""
    count = np.arange(n + 1)
    weights = binomial_weights(n, p[0] / math.fsum(p), count)
    values, place = np.unique(measure(np.stack((count, n - count), axis=1)), return_inverse=True)
    return Null(values, np.bincount(place, weights).astype(np.float64))


def distance_from_null(n: int, p: Probabilities) -> Statistic:
    """Return the total variation distance S of the shares from the probabilities p.

    Returns
    -------
    Statistic
        For k equal p its value is n k S = sum_x (k M_x - n)+ for counts M_x, else
        floor(1024 S / Delta) with Delta = min(1 / n, max p).

    Notes
    -----
    **Privacy.** With n S = sum_x (M_x - t_x)+, let a choice move from category a to b. The term
    of b rises by at most 1. That of a, where M_a >= 1, falls by min(1, (M_a - t_a)+), which is at
    least (1 - t_a)+. So the sum rises by at most 1 - (1 - t_a)+ = min(1, t_a), and by symmetry
    falls by at most min(1, t_b): it moves by at most D = min(1, max t), whatever the t_x.

    For equal p, t_x = n / k: n k S moves by at most k D = min(k, n). Attained for k <= n where a
    choice alone in its category joins all the others, for k > n where it leaves an empty category
    behind. In all other cases the t_x are n p_x rounded to a multiple of 2^-b. Then n S and D are
    whole multiples of 2^-b, and the statistic is exact in integers. Numbers at most D apart have
    floors of 1024 / D times them at most 1024 apart. Attained, for instance, where n p_a >= 1: a
    choice leaves M_a <= t_a for a category at or above its expected count.

    **Null.** Exact for up to 2^22 choices of two categories, else Monte Carlo over multinomial
    counts.
    """
    k = len(p)
    cells = ExpectedCounts(n, p)
    name = "total variation distance from the null"
    measure = cells.excess
    step = cells.unit() / (1 << cells.bits) / n / GRID
    sensitivity = GRID
    if is_uniform(p):
        name = "total variation distance"
        measure = partial(excess, n=n)
        step = 1.0 / (n * k)
        sensitivity = min(k, n)
    value: Value = partial(_whole, measure)
    two = k == 2 and n <= _LARGEST
    null = partial(_null_of_two, measure, n, p) if two else cells.null(name, value)
    ruled_out: tuple[Blindness, ...] = ("impossible observations",) if 0.0 in p else ()
    blind: tuple[Blindness, ...] = ("single category", *ruled_out) if k > 2 else ()
    return Statistic(
        "total variation distance", step, sensitivity, value, null, blind, None, distance=True
    )


def omnibus_of(n: int, p: Probabilities, xi: float, *, rankings: bool = False) -> Statistic:
    """Return the largest of total variation, deviations of categories and the Kendall norm.

    Parameters
    ----------
    n : int
        Number of observations, at least 2.
    p : tuple of float
        Null probabilities of the categories, or of all m! rankings in lexicographic order.
    xi : float
        Pure privacy budget, infinite for none.
    rankings : bool, default False
        Whether the categories are rankings. The statistic takes their counts.

    Returns
    -------
    Statistic
        The omnibus, with equal shares of the level for its parts. The largest deviation in units of
        its standard deviation is a part if the p differ; for equal p it is the same statistic as
        the largest deviation itself. The Kendall norm is a part for rankings. If some p are 0 and
        there is noise, the count of observations that are impossible under H0 is one more part, at
        level 0.005. Without noise a single impossible observation rejects H0.

    Notes
    -----
    **Privacy.** **Null.** As :func:`privrank.mechanisms.categories.omnibus` of its parts.
    The null distribution of choices does not depend on the order of the categories: they are drawn
    in the order of their probabilities.

    **Power.** One impossible observation that is clearly above the noise has a p-value of about
    0.045, because the other parts may reach as far.

    **Consistency.** For fixed probabilities. Total variation S tends to its distance from p in the
    population, which is positive under every departure. Its part is
    1024 n S / D with D <= 1. Under H0 deviations of counts are of the order of the root of n, so S,
    the largest deviations and the Kendall norm in lattice steps are, and the count of impossible
    observations is 0. So the omnibus is consistent
    (:func:`privrank.mechanisms.categories.omnibus`).
    """
    cells = ExpectedCounts(n, p)
    ruled_out = 0.0 in p
    values: tuple[Value, ...] = (partial(_whole, cells.excess), cells.cellwise_value)
    kind = "rankings" if rankings else "choices"
    label = "omnibus of counted"
    if not is_uniform(p):
        label = "standardised omnibus of counted"
        values = (*values, cells.standardised_value)
    sensitivity = GRID
    sample: Sampler = partial(sorted_multinomial, n, p)
    sizes: tuple[int, ...] = (n, len(p), table_key(sorted(p)))
    if rankings:
        sensitivity = GRID + ALLOWANCE
        values = (*values, cells.kendall_value)
        sample = partial(multinomial, n, p)
        sizes = cells.sizes()
    # Bonferroni: the parts share the level, less the level of the count of impossible observations
    counted = ruled_out and not math.isinf(xi)
    level = (_LEVEL - _COUNT_LEVEL * counted) / len(values)
    parts = [OmnibusPart(value, level) for value in values]
    name = f"omnibus with impossible {kind}" if ruled_out else "omnibus"
    label = f"{label} {kind}"
    if counted:
        label += " and of impossible ones"
        parts.append(OmnibusPart(cells.impossible_value, _COUNT_LEVEL))
    statistic = omnibus(
        name,
        NullSample(label, sizes, sample),
        tuple(parts),
        sensitivity,
        xi,
        QUANTILE_DRAWS,
        blind_to=(),
        consistent="privrank.mechanisms.categories.omnibus_of",
    )
    apart = ruled_out and not counted
    return replace(statistic, impossible=partial(impossible_count, p=p)) if apart else statistic


def of_ranks(counted: Statistic) -> Statistic:
    """Return a statistic of counts by order as a statistic of ranks, shape (n, m)."""
    return replace(
        counted,
        value=partial(_of_ranks, counted.value),
        simulated=None if counted.simulated is None else partial(_of_ranks, counted.simulated),
        coarse=None,
        impossible=None if counted.impossible is None else partial(_of_ranks, counted.impossible),
    )


def _of_ranks(function: Callable[..., int], ranks: IntArray, *order: Order) -> int:
    return function(count_orders(ranks), *order)


def binomial(n: int, p: float, alternative: Alternative = "two-sided") -> Statistic:
    """Return the statistic of a test that the first of two categories has probability p.

    Parameters
    ----------
    n : int
        Number of choices, at least 2.
    p : float
        Null probability of the first category, in [0, 1].
    alternative : {"two-sided", "larger", "smaller"}
        What the probability is under H1.

    Returns
    -------
    Statistic
        The count M of the first category for ``"larger"``, the count of the second for
        ``"smaller"``, and |M / n - p| as `distance_from_null` has it for ``"two-sided"``.

    Notes
    -----
    **Privacy.** Replacing a choice moves either count by at most 1.

    **Null.** Binomial, exact. R = M + L is released with a U uniform on [-1/2, 1/2), drawn apart
    from all else, and p = P(M + L > R) + (1/2 - U) P(M + L = R). P(p <= a) = a for every a
    (:meth:`privrank.hypotheses.nulls.Null.pvalue`). One-sided, with noise of scale 1 / epsilon,
    R + U has Tulap noise. Among all epsilon-private tests of one level against larger probabilities
    the one that rejects for large R + U is the most powerful, whatever the alternative (Awan and
    Slavkovic 2018). No test is the most powerful on both sides at once. At U = -1/2, without the
    lot, p = P(M + L >= R), and the level may be less than was asked for by the mass of one value,
    which is at most P(L = 0) = tanh(epsilon / 2).

    References
    ----------
    Awan and Slavkovic (2018), Differentially Private Uniformly Most Powerful Tests for Binomial
    Data.
    """
    if alternative == "two-sided":
        return replace(
            distance_from_null(n, (p, 1.0 - p)),
            name="distance of the share from the null",
            # beyond, its null distribution may be Monte Carlo
            randomised=n <= _LARGEST,
        )
    first = alternative == "larger"
    return Statistic(
        name=f"count of the {'first' if first else 'second'} category",
        step=1.0,
        sensitivity=1,
        value=partial(_count, category=0 if first else 1),
        null=partial(binomial_null, n, p if first else 1.0 - p),
        blind_to=("one side",),
        consistent=None,
        randomised=True,
    )


def _count(counts: IntArray, order: Order, category: int) -> int:
    return int(counts[category])


GRID = 1024
"""Lattice steps of a statistic within its sensitivity."""

ALLOWANCE = 2
"""Lattice steps on top where a value comes from floating-point arithmetic."""

QUANTILE_DRAWS = 1_999
"""Draws behind the quantiles q_j; they decide how the power is shared, never the level."""


@dataclass(frozen=True, slots=True)
class OmnibusPart:
    """One statistic of an omnibus.

    Parameters
    ----------
    value : callable
        Maps the data and an order to a whole number of 1 / 1024 of its sensitivity.
    level : float
        Its share of the level 0.05.
    simulated : callable or None
        `value` without the parts that only privacy needs, for draws under the null; None if it is
        `value` itself.
    """

    value: Value
    level: float
    simulated: Value | None = None


@dataclass(frozen=True, slots=True)
class NullSample:
    """Data under the null hypothesis, and the public sequence that they come from.

    Parameters
    ----------
    label : str
        Name of the sequence.
    sizes : tuple of int
        What else the null distribution depends on.
    draw : callable
        Maps a generator to data under the null hypothesis; can be pickled.
    """

    label: str
    sizes: tuple[int, ...]
    draw: Sampler


@dataclass(frozen=True, slots=True)
class _Omnibus:
    """max_j (T_j - q_j) of statistics T_j in lattice steps and public whole numbers q_j."""

    sample: NullSample
    parts: tuple[OmnibusPart, ...]
    scale: float
    draws: int

    def value(self, data: IntArray, order: Order) -> int:
        return int(self.largest(np.array([part.value(data, order) for part in self.parts])))

    def simulated(self, data: IntArray, order: Order) -> int:
        return int(self.largest(self.vector(data, order)))

    def largest(self, table: IntArray) -> IntArray:
        """Return the statistic from the statistics of the parts, along the last axis."""
        return np.asarray((table - _quantiles(self)).max(axis=-1))

    def vector(self, data: IntArray, order: Order = ()) -> IntArray:
        """Return the T_j of simulated data."""
        return np.array(
            [(part.simulated or part.value)(data, order) for part in self.parts], dtype=np.int64
        )

    def drawn(self, rng: np.random.Generator) -> IntArray:
        return self.vector(self.sample.draw(rng))

    def null(self, draws: int) -> Null:
        table = null_draws(self.sample.label, self.sample.sizes, self.drawn, draws)
        return Null.of_draws(self.largest(table) if draws else table)


@lru_cache(maxsize=256)
def _quantiles(whole: _Omnibus) -> IntArray:
    """Return q_j, from a public sequence of its own, apart from the sequence of the p-values."""
    table = null_draws(
        f"quantiles of the {whole.sample.label}", whole.sample.sizes, whole.drawn, whole.draws
    )
    return readonly_copy(
        [
            math.ceil(noisy_quantile(draws, part.level, whole.scale))
            for draws, part in zip(table.T, whole.parts, strict=True)
        ],
        np.int64,
    )


def omnibus(
    name: str,
    sample: NullSample,
    parts: tuple[OmnibusPart, ...],
    sensitivity: int,
    xi: float,
    draws: int,
    *,
    blind_to: tuple[Blindness, ...],
    consistent: str | None,
) -> Statistic:
    """Return the largest of several statistics in units of their sensitivities, less quantiles.

    Parameters
    ----------
    name : str
        As a summary prints it.
    sample : NullSample
        The data of the public sequence of vectors (T_1, ..., T_J).
    parts : tuple of Part
        The statistics.
    sensitivity : int
        By how much any T_j moves at most: 1024, and more for rounding errors.
    xi : float
        Pure privacy budget, infinite for none.
    draws : int
        Draws behind the q_j.
    blind_to : tuple of Blindness
        What no part detects.
    consistent : str or None
        As for a :class:`privrank.hypotheses.nulls.Statistic`.

    Returns
    -------
    Statistic
        Its value is max_j (T_j - q_j). With L the noise that will be added, q_j is the number with
        P(T_j + L >= q_j) = alpha_j under the null, alpha_j the level of part j, rounded up; without
        noise the least that T_j exceeds with probability at most alpha_j.

    Notes
    -----
    **Privacy.** No T_j less a public number moves by more than the sensitivity when an observation
    is replaced. q_j is a function of the sizes and of epsilon, so public: the maximum moves by no
    more.

    **Null.** Monte Carlo. The vectors are drawn once, and serve at every epsilon. The draws that
    determine the q_j are a separate public sequence. So the q_j are constants with respect to the
    sequence of the p-values, which are valid for every q_j.

    **Power.** Under the null some T_j + L reaches its q_j with probability at most the sum of the
    levels. So at that level a noisy value of 0 or more is rejected, and each part rejects whatever
    it would by itself at its own level. Where the noise dominates, the q_j are the null means of
    the T_j and one common number: then the part in which the data stand out most decides, whatever
    the spread of the others.

    **Consistency.** Let epsilon, the categories or items and the numbers of draws be fixed, and
    under the null all T_j of the order of the root of n. Then so are the q_j, the noisy maximum and
    the threshold of every level that the draws allow, at least 1 / (draws + 1). If T_j / n tends to
    a positive number for some j, the noisy maximum exceeds the threshold with a probability that
    tends to 1.
    """
    whole = _Omnibus(sample, parts, 0.0 if math.isinf(xi) else sensitivity / xi, draws)
    return Statistic(
        name,
        step=1.0 / GRID,
        sensitivity=sensitivity,
        value=whole.value,
        null=whole.null,
        blind_to=blind_to,
        consistent=consistent,
        simulated=whole.simulated,
        coarse=partial(
            omnibus,
            name,
            sample,
            parts,
            sensitivity,
            xi,
            blind_to=blind_to,
            consistent=consistent,
        ),
    )


def impossible_count(counts: IntArray, p: Probabilities) -> int:
    """Return Z, the number of observations of probability 0, from counts by category.

    Under the null it is 0, whatever their number. It moves by at most 1 when one is replaced,
    attained where an observation of a category that can occur becomes one that cannot. Without
    noise Z > 0 rejects by itself; with noise Z is one part of an omnibus.
    """
    return int(counts[np.asarray(p) == 0.0].sum())
