"""Null distributions of noisy statistics, from public numbers: exact or by Monte Carlo.

A Monte Carlo table contains the first draws of a public sequence. The sequence of a (name, sizes)
is fixed by a public counter seed and independent of the caller's generator. A p-value is therefore
a function of the release alone; cached draws change the run time of a fit, never its result.
"""

from __future__ import annotations

import hashlib
import math
import os
import zlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from privrank.privacy.noise import DiscreteLaplace
from privrank.release.survey import Sample
from privrank.util.arrays import FloatArray, IntArray, immutable, readonly_copy
from privrank.util.checks import check_count
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
_HEAVY = 2**27
"""Work per draw up to which a table is full, and up to which it has 1,999 draws."""

_MANY = 1_000
"""Rankings per item from which norms of uniform rankings are drawn from their limit."""

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
    work = 200 * m if kind == "choices" else _work(n, m)
    return draws_of(work, _LIGHT, _HEAVY)


def draws_of(work: int, light: int, heavy: int) -> int:
    """Return the number of draws of a table, which decreases with the work of one draw."""
    if work <= light:
        return FULL
    return 1_999 if work <= heavy else 999


def _work(n: int, m: int) -> int:
    return n * m * (m + 200)


def are_many(n: int, m: int) -> bool:
    """Return whether norms of n uniform rankings of m items are drawn without drawing rankings.

    This is done if drawing rankings would take long and there are at least 1,000 rankings per item
    (:class:`privrank.mechanisms.ranknorms.Limit`).
    """
    return _work(n, m) > _LIGHT and n >= _MANY * m


def wanted_draws(draws: int | None, sample: Sample, *, uniform: bool = False) -> int:
    """Return the number of draws of a fit: the requested number, or the default by public sizes.

    For norms of `uniform` rankings the table is full if there are many rankings.
    """
    n = sample.nobs
    m = len(sample.items)
    if draws is None:
        many = uniform and sample.kind == "rankings" and are_many(n, m)
        return FULL if many else usual_draws(sample.kind, n, m)
    return check_count("draws", draws, low=19)


def uniform_rankings(rng: np.random.Generator, n: int, m: int) -> IntArray:
    """Return n uniform rankings of m items as ranks, shape (n, m).

    Every rank of an item has its probability up to 2^-32.
    """
    from privrank.kernels import rankings as kernels

    words = rng.integers(0, 2**32, (n, m), dtype=np.uint32)
    return kernels.shuffles(words)[0].astype(np.int64) + 1


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
        fresh = _draw_blocks(name, sizes, draw, range(len(stored) // BLOCK, -(-draws // BLOCK)))
        stored = np.concatenate((stored, fresh)) if len(stored) else fresh
        _write(label, stored)
    _MEMORY[label] = stored
    return stored[:draws]


def _block(name: str, sizes: tuple[int, ...], draw: Draw, number: int) -> IntArray:
    rng = public_generator(name, *sizes, number)
    return np.array([draw(rng) for _ in range(BLOCK)], dtype=np.int64)


def _draw_blocks(name: str, sizes: tuple[int, ...], draw: Draw, numbers: range) -> IntArray:
    """Draw the blocks, on several cores if this takes long, with a progress bar."""
    return np.concatenate(
        in_processes(partial(_block, name, sizes, draw), numbers, f"null table of the {name}")
    )


def _folder() -> Path:
    named = os.environ.get("PRIVRANK_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "privrank"


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
        tails = np.array([self.weights @ distribution.tail(edge - self.values) for edge in edges])
        return edges, -np.diff(tails)

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
        low = int(self.values[0]) - reach
        high = int(self.values[-1]) + reach
        if self.pvalue(high, distribution, lot) > alpha:
            return None
        values = range(low + 1, high + 1)
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
    if math.isnan(statistic):
        return math.nan
    return float((1 + np.count_nonzero(table >= statistic)) / (1 + len(table)))
