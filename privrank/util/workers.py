"""Work in numbered blocks, done here and, where that takes long, in other processes too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from privrank.util.progress import PATIENCE, Progress

if TYPE_CHECKING:
    from joblib.externals.loky import ProcessPoolExecutor

__all__ = ["Workers"]

T = TypeVar("T")

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""What tells linear algebra in a process of its own to use one core."""


@dataclass(slots=True)
class Workers:
    """One process and up to `n_jobs` - 1 others, which start when blocks turn out to take long.

    A block is a function of its number, so that what is found does not depend on who found it. The
    others are a pool of their own, which leaves alone the one that a user's joblib keeps, and end
    with the ``with`` statement.

    Parameters
    ----------
    n_jobs : int, default -1
        Processes in all; -1 for as many as there are cores.
    """

    n_jobs: int = -1
    _others: ProcessPoolExecutor | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        """Start nothing yet."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the other processes."""
        if self._others is not None:
            # work that was cancelled leaves the queue ahead of this; loky before 3.6 waits for it
            with suppress(BrokenExecutor):
                self._others.submit(int).result()
            self._others.shutdown()
            self._others = None

    def map(self, block: Callable[[int], T], numbers: Sequence[int], label: str) -> list[T]:
        """Return what the blocks of these numbers are, in their order; with a bar."""
        bar, blocks = Progress(label, len(numbers)), dict[int, T]()
        for number in numbers:
            blocks[number] = block(number)
            bar.show(len(blocks))
            slow = len(blocks) > 1 and bar.spent / len(blocks) * len(numbers) > PATIENCE
            if slow and self._count() > 1:
                break
        rest = [number for number in numbers if number not in blocks]
        if rest:
            self._share(block, rest, blocks, bar)
        return [blocks[number] for number in numbers]

    def _count(self) -> int:
        from joblib import cpu_count

        return int(cpu_count()) if self.n_jobs < 0 else self.n_jobs

    def _share(
        self, block: Callable[[int], T], rest: list[int], blocks: dict[int, T], bar: Progress
    ) -> None:
        """Do the rest from both ends: other processes from the first on, this one from the last."""
        from joblib.externals.loky import ProcessPoolExecutor
        from threadpoolctl import threadpool_limits

        if self._others is None:
            self._others = ProcessPoolExecutor(self._count() - 1, env=_ONE_THREAD)
        waiting: dict[int, Any] = {n: self._others.submit(block, n) for n in rest}
        try:
            with threadpool_limits(1):
                for number in reversed(rest):
                    if not waiting[number].cancel():  # it is being done, and so are all before it
                        break
                    blocks[number] = block(number)
                    bar.show(len(blocks))
            for number in rest:
                if number not in blocks:
                    blocks[number] = waiting[number].result()
                    bar.show(len(blocks))
        finally:  # an interrupted call leaves no work behind
            for asked in waiting.values():
                asked.cancel()
