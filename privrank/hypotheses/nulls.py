"""Test statistics, null hypotheses, and the distributions of noisy statistics under them.

A null hypothesis has probabilities of categories or of rankings, or is a Mallows model. Null
distributions are computed from public numbers: exactly or by Monte Carlo. A Monte Carlo table
contains the first draws of a public sequence. The sequence of a (name, sizes) is fixed by a public
counter seed and independent of the caller's generator. A p-value is therefore a function of the
release alone; cached draws change the run time of a fit, never its result.
"""

from __future__ import annotations

import hashlib
import math
import os
import zlib
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.mallows import Mallows
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.survey import Design, Sample
from privrank.util.arrays import FloatArray, IntArray, immutable, orders_of, readonly_copy
from privrank.util.checks import check_count, warn_few
from privrank.util.workers import in_processes

Draw = Callable[[np.random.Generator], int | IntArray]
Order = tuple[int, ...]
Value = Callable[[IntArray, Order], int]
Sampler = Callable[[np.random.Generator], IntArray]

FULL = 9_999
"""Draws of a full table; at level 0.05 the size of a test given its table is in [0.046, 0.054]."""

TABLE_VERSION = 1
"""Increment when the distribution of a table changes, because old draws are then not valid."""

FORM = 2
"""Increment when the content of cached files changes, because older files are then not valid."""

_LIGHT = 2**25
"""Work per draw up to which a table is full; up to four times as much it has 1,999 draws."""

BLOCK = 64
"""Number of draws that share a generator."""

_MEMORY: dict[str, IntArray] = {}


def public_generator(method: str, *sizes: int) -> np.random.Generator:
    """Return the generator of a public null table, seeded by its name and sizes alone."""
    key = [zlib.crc32(method.encode()), TABLE_VERSION, *sizes]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))


def table_key(numbers: Sequence[float]) -> int:
    """Return 64 bits that identify these numbers, as a size of the table that depends on them.

    These are the first bytes of the SHA-256 digest of their binary64 forms: the same numbers give
    the same public sequence on every machine, and other numbers another sequence, up to a
    probability of 2^-64.
    """
    exact = np.asarray(numbers, dtype="<f8") + 0.0  # negative zero becomes zero
    return int.from_bytes(hashlib.sha256(exact.tobytes()).digest()[:8], "little")


def usual_draws(kind: str, n: int, m: int) -> int:
    """Return the default number of draws of a table, a function of n and m alone.

    The default is 9,999. It is 1,999 or 999 if one draw of n rankings of m items takes long: its
    work is n m (m + 200) or, for choices among m categories, 200 m.
    """
    return draws_of(200 * m if kind == "choices" else _work(n, m), _LIGHT, 4 * _LIGHT)


def draws_of(work: int, light: int, heavy: int) -> int:
    """Return the number of draws of a table, which decreases with the work of one draw."""
    if work <= light:
        return FULL
    return 1_999 if work <= heavy else 999


def _work(n: int, m: int) -> int:
    return n * m * (m + 200)


def are_many(n: int, m: int) -> bool:
    """Return whether norms of n uniform rankings of m items are drawn without drawing rankings.

    This is done if there are at least 1,000 rankings per item, and 7 items or so many rankings that
    drawing them would take long (:class:`privrank.mechanisms.ranknorms.Limit`).
    """
    return n >= 1_000 * m and (m >= 7 or _work(n, m) > _LIGHT)


def wanted_draws(draws: int | None, sample: Sample | Design, *, uniform: bool = False) -> int:
    """Return the number of draws of a fit: the requested number, or the default by public sizes.

    For norms of `uniform` rankings the table is full if there are many rankings. A draw of an
    answer to an offered set takes as long as eight rankings of the items of the largest set.
    """
    if draws is not None:
        return check_count("draws", draws, low=19)
    if isinstance(sample, Design) and sample.offered is not None:
        return usual_draws("rankings", 8 * sample.offered.tasks, len(sample.offered.sets[-1]))
    size = (sample.nobs, len(sample.items))
    many = uniform and sample.kind == "rankings" and are_many(*size)
    return FULL if many else usual_draws(sample.kind, *size)


def uniform_rankings(rng: np.random.Generator, n: int, m: int) -> IntArray:
    """Return n uniform rankings of m items as ranks, shape (n, m).

    Every rank of an item has its probability up to 2^-32.
    """
    from privrank.kernels import rankings as kernels

    return kernels.shuffles(rng.integers(0, 2**32, (n, m), dtype=np.uint32))[0].astype(np.int64) + 1


def dealt_tables(
    sizes: IntArray, pooled: IntArray, draws: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return independent tables with given row and column sums, shape (draws, G, k).

    All assignments of the units to the groups are equally likely. The numbers of units of a kind in
    group 1, of the remaining ones in group 2, and so on, are hypergeometric, given the places that
    are left.
    """
    tables = np.zeros((len(sizes), len(pooled), draws), dtype=np.int32)
    # all tables at once, kind after kind: `room` is what each group still takes
    room = np.repeat(sizes[:, None], draws, axis=1)
    for kind, number in enumerate(pooled.tolist()):
        left = np.full(draws, number)
        behind = room.sum(axis=0)
        for group in range(len(sizes) - 1):
            behind -= room[group]
            got = rng.hypergeometric(room[group], behind, left)
            tables[group, kind] = got
            room[group] -= got
            left -= got
        tables[-1, kind] = left
        room[-1] -= left
    return np.ascontiguousarray(tables.transpose(2, 0, 1))


def null_draws(
    name: str,
    sizes: tuple[int, ...],
    draw: Draw,
    draws: int = FULL,
) -> IntArray:
    """Return the first `draws` statistics of the public sequence of a (name, sizes).

    Parameters
    ----------
    name : str
        The statistic.
    sizes : tuple of int
        Other numbers on which the distribution depends, such as n and m.
    draw : callable
        Maps a generator to one statistic or to a vector of several; must support pickling.
    draws : int
        Number of draws. Additional draws are cached as well. With 0 no draws are read or made.

    Notes
    -----
    Draws are cached in memory and, if that directory is writable, in
    ``$PRIVRANK_CACHE``, by default ``~/.cache/privrank``; deleting it is safe.
    """
    if not draws:
        return np.empty(0, dtype=np.int64)
    # a table only grows, by complete blocks with seeds of their own: its first draws never change,
    # so p-values do not depend on earlier calls
    label = "-".join([name.replace(" ", "_"), *map(str, sizes), f"v{TABLE_VERSION}.{FORM}"])
    stored = _MEMORY[label] if label in _MEMORY else _read(label)
    if len(stored) < draws:
        # on several cores if this takes long, with a progress bar
        blocks = range(len(stored) // BLOCK, -(-draws // BLOCK))
        fresh = in_processes(
            partial(_block, name, sizes, draw), blocks, f"null table of the {name}"
        )
        stored = np.concatenate((stored, *fresh) if len(stored) else fresh)
        _write(label, stored)
    _MEMORY[label] = stored
    return stored[:draws]


def _block(name: str, sizes: tuple[int, ...], draw: Draw, number: int) -> IntArray:
    rng = public_generator(name, *sizes, number)
    return np.array([draw(rng) for _ in range(BLOCK)], dtype=np.int64)


def _folder() -> Path:
    return Path(os.environ.get("PRIVRANK_CACHE") or Path.home() / ".cache" / "privrank")


def _read(label: str) -> IntArray:
    """Return the draws cached on disk, or no draws if the file is damaged."""
    try:
        stored = np.load(_folder() / f"{label}.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return np.empty(0, dtype=np.int64)
    whole = stored.dtype == np.int64 and len(stored) % BLOCK == 0
    return stored if whole else np.empty(0, dtype=np.int64)


def _write(label: str, draws: IntArray) -> None:
    """Cache the draws on disk, by an atomic replacement of the file."""
    try:
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        aside = folder / f"{label}.{os.getpid()}.tmp"
        with aside.open("wb") as handle:
            np.save(handle, draws)
        aside.replace(folder / f"{label}.npy")
    except OSError:
        return  # a table that cannot be cached is drawn again next time


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """The distribution of a whole-number statistic under the null hypothesis, before noise.

    Parameters
    ----------
    values : ndarray of int64, shape (v,)
        Distinct values, ascending.
    weights : ndarray of float64, shape (v,)
        Their probabilities, or their fractions of the Monte Carlo draws.
    draws : int or None
        Number of Monte Carlo draws; None if the distribution is exact.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> test = pr.UniformityTest.from_counts({"yes": 61, "no": 37}, categories=["yes", "no"])
    >>> result = test.fit(epsilon=1.0, method="tv", draws=999, rng=np.random.default_rng(1))
    >>> null, noise = result.null(), result.release.parts["statistic"].laplace
    >>> len(null.values), null.draws is None  # known exactly
    (50, True)
    """

    values: IntArray
    weights: FloatArray
    draws: int | None = None

    def __post_init__(self) -> None:
        """Take private, read-only copies."""
        object.__setattr__(self, "values", readonly_copy(self.values, np.int64))
        object.__setattr__(self, "weights", readonly_copy(self.weights, np.float64))

    @classmethod
    def of_draws(cls, draws: IntArray) -> Null:
        """Return the empirical distribution of Monte Carlo draws of the statistic.

        Examples
        --------
        >>> Null.of_draws(np.array([3, 1, 1, 2])).weights
        array([0.5 , 0.25, 0.25])
        """
        values, counts = np.unique(draws, return_counts=True)
        return cls(values, counts / len(draws), len(draws))

    def pvalue(self, observed: int, distribution: DiscreteLaplace, lot: float = -0.5) -> float:
        """Return the p-value of a statistic released with noise of this distribution.

        Notes
        -----
        **Boundary.** Let `lot` be U, uniform on [-1/2, 1/2) and independent of everything else. The
        p-value of an exact distribution is
        P(T + noise > observed) + (1/2 - U) P(T + noise = observed). It is uniform under the null:
        given the released value it is uniform on the step of the distribution function there.
        U = -1/2 gives the upper end, the p-value without a public random number.

        **Null.** Exact distribution: P(T + noise >= observed). Monte Carlo: with T_1, ..., T_N
        drawn under the null, (1 + sum_b P(T_b + noise >= observed | T_b)) / (N + 1). This is the
        mean, over the noise, of (1 + #{T_b + noise_b >= observed}) / (N + 1). The latter is uniform
        on its grid or stochastically larger, because the N + 1 noisy statistics are exchangeable.
        So tests with the mean keep their level on average over tables, and the mean varies less.

        Examples
        --------
        >>> observed = int(result.release.values["statistic"][0])
        >>> null.pvalue(observed, noise) == result.pvalue
        True
        """
        tails = distribution.tail(observed - self.values)
        if self.draws is not None:  # whole counts avoid rounding errors if there is no noise
            return (1.0 + float(np.rint(self.draws * self.weights) @ tails)) / (1.0 + self.draws)
        tail = min(float(self.weights @ tails), 1.0)
        beyond = float(self.weights @ distribution.tail(observed + 1 - self.values))
        return tail - (0.5 + lot) * max(tail - beyond, 0.0)

    def bins(self, distribution: DiscreteLaplace, most: int = 60) -> tuple[IntArray, FloatArray]:
        """Return edges and probabilities of at most `most` bins of the noisy statistic.

        The bins contain all values up to a probability of about 10^-4. Every edge is a whole
        number; a bin contains its left edge but not its right edge.

        Examples
        --------
        >>> edges, mass = null.bins(noise)
        >>> round(mass.sum(), 3).item()
        1.0
        """
        # the threshold of level a is the smallest value with a tail of at most a
        exact = Null(self.values, self.weights)
        low, high = (exact.threshold(a, distribution) for a in (1.0 - 5e-5, 5e-5))
        low = int(self.values[0]) if low is None else low
        high = int(self.values[-1]) + 1 if high is None else max(high, low + 1)
        step = -(-(high - low) // most)
        edges = np.arange(low, high + step, step, dtype=np.int64)
        return edges, -np.diff(
            [self.weights @ distribution.tail(edge - self.values) for edge in edges]
        )

    def threshold(
        self, alpha: float, distribution: DiscreteLaplace, lot: float = -0.5
    ) -> int | None:
        """Return the smallest noisy statistic that is rejected at level alpha, or None.

        `lot` has the same meaning as in :meth:`pvalue`.

        Examples
        --------
        >>> step = result.release.parts["statistic"].step
        >>> null.threshold(0.05, noise) * step == result.threshold
        True
        """
        # more than `reach` steps beyond the largest value, noise has probability below
        # exp(-40) alpha, so larger thresholds are not needed
        reach = math.ceil(distribution.scale * (math.log(1.0 / alpha) + 40.0)) + 1
        high = int(self.values[-1]) + reach
        if self.pvalue(high, distribution, lot) > alpha:
            return None
        values = range(int(self.values[0]) - reach + 1, high + 1)
        rejected = bisect_left(
            values, True, key=lambda value: self.pvalue(value, distribution, lot) <= alpha
        )
        return values[rejected]


def null_of(name: str, sizes: tuple[int, ...], value: Value, sample: Sampler, draws: int) -> Null:
    """Return the null distribution of a statistic by Monte Carlo.

    Parameters
    ----------
    name, sizes
        Name and sizes of the public sequence, see :func:`privrank.hypotheses.nulls.null_draws`.
    value : callable
        The `value` of a `Statistic`.
    sample : callable
        Maps a generator to data under the null hypothesis; must support pickling.
    draws : int
        Number of draws.
    """
    return Null.of_draws(
        null_draws(name, sizes, partial(_drawn, value=value, sample=sample), draws)
    )


def _drawn(rng: np.random.Generator, value: Value, sample: Sampler) -> int:
    return value(sample(rng), ())


def monte_carlo_pvalue(statistic: float, table: FloatArray) -> float:
    """Return (1 + #{table >= statistic}) / (1 + len(table)), valid for every table size.

    The result is NaN if the statistic is NaN.
    """
    beyond = math.nan if math.isnan(statistic) else np.count_nonzero(table >= statistic)
    return float((1 + beyond) / (1 + len(table)))


Probabilities = tuple[float, ...]


def uniform(k: int) -> Probabilities:
    """Return k equal probabilities."""
    return (1.0 / k,) * k


def is_uniform(p: Probabilities) -> bool:
    """Return whether all probabilities are equal."""
    return min(p) == max(p)


def multinomial(n: int, p: Probabilities, rng: np.random.Generator) -> IntArray:
    """Return counts of n choices with probabilities p, normalised for numpy's sampler."""
    return rng.multinomial(n, _normalised(p))


@lru_cache(maxsize=16)
def _normalised(p: Probabilities) -> FloatArray:
    return np.asarray(readonly_copy(np.asarray(p, dtype=np.float64) / math.fsum(p), np.float64))


def sorted_multinomial(n: int, p: Probabilities, rng: np.random.Generator) -> IntArray:
    """Return counts of n choices; a permutation of p only permutes the counts."""
    places, ascending = _ascending(p)
    counts = np.empty(len(p), dtype=np.int64)
    counts[places] = multinomial(n, ascending, rng)
    return counts


@lru_cache(maxsize=16)
def _ascending(p: Probabilities) -> tuple[IntArray, Probabilities]:
    return np.argsort(p, kind="stable"), tuple(sorted(p))


@immutable
@dataclass(frozen=True, slots=True)
class NullModel:
    """A public null hypothesis: probabilities, a Mallows model, or worths.

    Parameters
    ----------
    probabilities : tuple of float
        Probabilities of the categories, or of all m! rankings in lexicographic order of their
        ranks; empty for a Mallows model, or if all rankings are equally likely.
    theta : float
        Minus the logarithm of phi of a Mallows model.
    center : tuple of int
        Ranks of the items in the centre of a Mallows model; empty if there is none.
    worths : tuple of float
        Worths of the items, for choices from offered sets; empty for other data.
    """

    probabilities: Probabilities = ()
    theta: float = 0.0
    center: tuple[int, ...] = ()
    worths: tuple[float, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping, with worths if there are any."""
        return {name: value for name, value in asdict(self).items() if value or name != "worths"}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> NullModel:
        """Rebuild from :meth:`to_record`."""
        return cls(
            tuple(float(p) for p in record["probabilities"]),
            float(record["theta"]),
            tuple(int(rank) for rank in record["center"]),
            tuple(float(worth) for worth in record.get("worths", ())),
        )

    @property
    def model(self) -> Mallows:
        """The Mallows model."""
        return Mallows.from_theta(len(self.center), self.theta, np.array(self.center))

    def tabulated(self) -> NullModel:
        """Return the hypothesis with the probabilities of all m! rankings, for up to 6 items."""
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
        if self.worths:
            equal = len(set(self.worths)) == 1
            answers = "are equally likely" if equal else "have the probabilities of the null worths"
            return f"answers to an offered set {answers}, and do not depend on other answers."
        if self.center:
            return (
                f"the rankings follow the Mallows model with phi = {math.exp(-self.theta):.4g} and "
                f"the centre given."
            )
        if not self.probabilities:
            return "all orders of the items are equally likely."
        if len(set(self.probabilities)) == 1:
            return "all categories are equally likely."
        return "the answers have the probabilities given."


def binomial_null(n: int, p: float, draws: int = 0) -> Null:
    """Return the binomial distribution without its far tails, whatever the number of draws.

    Notes
    -----
    **Null.** Counts beyond 12 standard deviations plus 50 are omitted. By Bernstein's inequality
    their probability is less than 10^-28.
    """
    width = math.ceil(12 * math.sqrt(n * p * (1 - p))) + 50
    mode = min(math.floor((n + 1) * p), n)
    count = np.arange(max(mode - width, 0), min(mode + width, n) + 1)
    return Null(count, binomial_weights(n, p, count))


def binomial_weights(
    n: int | IntArray, p: float | FloatArray, count: IntArray | FloatArray
) -> FloatArray:
    """Return the binomial probabilities of these counts."""
    from scipy.stats import binom

    return np.asarray(binom.pmf(count, n, p))


Blindness = Literal[
    "single category",
    "many categories",
    "dense choices",
    "impossible observations",
    "even pairs",
    "equal mean ranks",
    "equal mean ranks, reports",
    "equal mean scores",
    "mean ranks and products of pairs",
    "first and last alone",
    "two rankings alone",
    "halfway consensus",
    "dispersion",
    "equal mean distance",
    "pairs and distance alone",
    "even public pairs",
    "one side",
    "more noise",
    "small group",
    "small group, private labels",
    "large groups",
    "only a small group",
    "rare category",
    "rare category, private labels",
    "equal pairwise fractions",
    "beyond landmarks",
    "equal margins",
]
"""Public conditions under which a statistic has little power or none.

``privrank.results.testnotes.BLINDNESS`` has the sentence for each."""


@immutable
@dataclass(frozen=True, slots=True)
class Statistic:
    """A whole-number statistic of a sample, with all public facts about it.

    Large values are evidence against the null hypothesis. Everything except `value` is a function
    of public numbers, so the statistic can be rebuilt from a release. The statistic does not depend
    on the order of the units.

    Parameters
    ----------
    name : str
        Name in summaries, such as ``"capped Borda norm"``.
    step : float
        Size of one lattice step in the statistic's own unit.
    sensitivity : int
        Largest change, in lattice steps, when one unit is replaced.
    value : callable
        Maps the data and a public order of the items to the statistic in lattice steps. Data are
        ranks, shape (n, m), for rankings, counts by category, shape (k,), for choices, and the item
        vector, shape (m,), for choices from offered sets.
    null : callable
        Maps a number of Monte Carlo draws to the distribution of the statistic under the null
        hypothesis. Draws are used only if the distribution is not known exactly; 0 draws then give
        an empty distribution.
    blind_to : tuple of Blindness
        Conditions under which the statistic has little power or none. There is no default, because
        an omitted condition would be an implicit claim of power.
    consistent : str or None
        Dotted name of the object whose docstring proves, under **Consistency.**, that the power
        against every alternative tends to 1 as n, or the smallest group, grows. None: no summary
        claims consistency.
    simulated : callable or None
        The statistic of `value` without steps that only privacy needs, for simulations of power;
        None if there are no such steps.
    impossible : callable or None
        Maps the data, before any reduction, to the number of observations that have probability 0
        under the null hypothesis. Each such observation rejects it. For releases without noise
        only; None if no observation is impossible.
    distance : bool
        Whether the statistic is the total variation distance of the shares from the null.
    randomised : bool
        Whether a public random number decides at the boundary of the rejection region, which makes
        the level exact; for statistics with an exact null distribution.
    coarse : callable or None
        Maps a number of draws to the same statistic with its public constants computed from that
        many draws, for fast searches over sample sizes; None if there are no such constants or they
        are fast to compute.
    sampler : callable or None
        Maps an effect and a generator to simulated data for `value`, if the data are not rankings
        or choices but, for example, local reports; None in all other cases.
    """

    name: str
    step: float
    sensitivity: int
    value: Callable[[Any, Order], int]
    null: Callable[[int], Null]
    blind_to: tuple[Blindness, ...]
    consistent: str | None
    simulated: Callable[[Any, Order], int] | None = None
    impossible: Callable[[IntArray], int] | None = None
    distance: bool = False
    randomised: bool = False
    coarse: Callable[[int], Statistic] | None = None
    sampler: Callable[[float, np.random.Generator], Any] | None = None

    def __post_init__(self) -> None:
        check_declared(self.blind_to, self.consistent)


def check_declared(blind_to: tuple[Blindness, ...], consistent: str | None) -> None:
    """Refuse a claim of consistency next to something that cannot be detected."""
    if blind_to and consistent is not None:
        raise ValueError(
            f"consistent must be None for a statistic that is blind to {blind_to[0]!r}. Declare "
            f"either the blindness or the proof of consistency."
        )


@immutable
@dataclass(frozen=True, slots=True)
class RandomBit:
    """A random decision, which is private because it is random.

    Parameters
    ----------
    name : str
        Name in summaries, such as ``"coin and ramp"``.
    probability : callable
        Maps the data and a public order of the items to the probability that the bit is 1, the
        decision to reject. Its definition proves that it is private.
    blind_to : tuple of Blindness
        See :class:`Statistic`.
    level : str or None
        Dotted name of the object whose docstring proves, under **Null.**, that the size is at
        most the level. None: no summary states a level.
    dealt : bool
        Whether the probability depends on the order of the rankings. They are then put in an order
        that is drawn uniformly and kept secret, because one respondent can move the others'
        positions.
    """

    name: str
    probability: Callable[[IntArray, Order], float]
    blind_to: tuple[Blindness, ...]
    level: str | None
    dealt: bool


def null_for(query: Statistic | RandomBit, draws: int, alpha: float) -> Null | None:
    """Return the null distribution of a statistic, or None for a random bit.

    Emits a warning, at the caller's caller, if the Monte Carlo draws are too few for the level.
    """
    if isinstance(query, RandomBit):
        return None
    null = query.null(draws)
    if null.draws is not None:
        warn_few("draws", draws, alpha)
    return null
