"""Monte Carlo draws of a statistic under the null: one public sequence each, kept once drawn.

The sequence of a (name, sizes) is fixed by a public counter seed, independent of any caller's
generator, and a call takes its first draws. So a p-value is a function of the release alone, and
what is kept changes how long a fit takes, never its result.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privrank.release.survey import Sample
from privrank.util.checks import check_count
from privrank.util.workers import Workers

__all__ = [
    "FULL",
    "fingerprint",
    "null_draws",
    "public_generator",
    "uniform_rankings",
    "usual_draws",
    "wanted_draws",
]

IntArray = NDArray[np.int64]
Draw = Callable[[np.random.Generator], int | IntArray]

FULL = 9_999
"""Draws of a full table; at level .05 its own level then lies in [.046, .054]."""

TABLE_VERSION = 1
"""Raise when the distribution of a table changes, so that old and new draws are told apart."""

FORM = 2
"""Raise when what is kept under a name changes, so that files of before are not read."""

_LIGHT, _HEAVY = 2**25, 2**27
"""Work of a draw up to which a table is full, and up to which it has 1,999 draws."""

BLOCK = 64
"""Draws that share a generator."""

_MEMORY: dict[str, IntArray] = {}


def public_generator(method: str, *sizes: int) -> np.random.Generator:
    """Return the generator of a public null table, seeded by its name and sizes alone."""
    key = [zlib.crc32(method.encode()), TABLE_VERSION, *sizes]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))


def fingerprint(numbers: Sequence[float]) -> int:
    """Return 64 bits that stand for these numbers, as a size of a table that they decide.

    The first bytes of the SHA-256 digest of their binary64 forms: the same numbers give the same
    public sequence on every machine, and others, but for one chance in 2^64, another one.
    """
    exact = np.asarray(numbers, dtype="<f8") + 0.0  # there is one zero
    return int.from_bytes(hashlib.sha256(exact.tobytes()).digest()[:8], "little")


def usual_draws(kind: str, n: int, m: int) -> int:
    """Return how many draws a table has unless a user asks for more or less, by n and m alone.

    9,999, but 1,999 and then 999 where one draw of n rankings of m items takes long: its work is
    n m (m + 200) or, of choices among m categories, 200 m.
    """
    work = 200 * m if kind == "choices" else n * m * (m + 200)
    return FULL if work <= _LIGHT else 1_999 if work <= _HEAVY else 999


def wanted_draws(draws: int | None, sample: Sample) -> int:
    """Return how many draws a fit takes: those asked for, else what public sizes say."""
    if draws is None:
        return usual_draws(sample.kind, sample.nobs, len(sample.items))
    check_count("draws", draws, low=19)
    return draws


def uniform_rankings(rng: np.random.Generator, n: int, m: int) -> IntArray:
    """Return n uniform rankings of m items as ranks, shape (n, m).

    Every place of an item has its probability to within 2^-32.
    """
    from privrank.kernels import rankings as kernels

    return kernels.shuffled_ranks(rng.integers(0, 2**32, (n, m), dtype=np.uint32))


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
        What else its distribution depends on, such as n and m.
    draw : callable
        Maps a generator to one statistic, or to a vector of several; can be pickled.
    draws : int
        How many; what is drawn beyond those kept from earlier calls is kept as well. None are
        read or drawn for 0.

    Notes
    -----
    Draws are kept in memory and, where that directory can be written to, in
    ``$PRIVRANK_CACHE``, by default ``~/.cache/privrank``; deleting it is safe.
    """
    if not draws:
        return np.empty(0, dtype=np.int64)
    label = "-".join([name.replace(" ", "_"), *map(str, sizes), f"v{TABLE_VERSION}.{FORM}"])
    kept = _MEMORY.get(label)
    if kept is None:
        kept = _read(label)
    if kept is None or len(kept) < draws:
        done = 0 if kept is None else len(kept) // BLOCK
        fresh = _draw_blocks(name, sizes, draw, range(done, -(-draws // BLOCK)))
        kept = fresh if kept is None else np.concatenate((kept[: done * BLOCK], fresh))
        _write(label, kept)
    _MEMORY[label] = kept
    return kept[:draws]


def _block(name: str, sizes: tuple[int, ...], draw: Draw, number: int) -> IntArray:
    rng = public_generator(name, *sizes, number)
    return np.array([draw(rng) for _ in range(BLOCK)], dtype=np.int64)


def _draw_blocks(name: str, sizes: tuple[int, ...], draw: Draw, numbers: range) -> IntArray:
    """Draw the blocks here and, where that takes long, on the other cores too; with a bar."""
    label = f"null table of the {name}"
    return np.concatenate(Workers().map(partial(_block, name, sizes, draw), numbers, label))


def _folder() -> Path:
    named = os.environ.get("PRIVRANK_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "privrank"


def _read(label: str) -> IntArray | None:
    """Return the draws kept on disk; None when there are none, or the file is damaged."""
    try:
        kept = np.load(_folder() / f"{label}.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return kept if kept.dtype == np.int64 and len(kept) % BLOCK == 0 and len(kept) else None


def _write(label: str, draws: IntArray) -> None:
    """Keep the draws on disk: written aside, then put in place, so that no reader sees a part."""
    try:
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        aside = folder / f"{label}.{os.getpid()}.tmp"
        with aside.open("wb") as handle:
            np.save(handle, draws)
        aside.replace(folder / f"{label}.npy")
    except OSError:
        return  # a table that cannot be kept is drawn again next time
