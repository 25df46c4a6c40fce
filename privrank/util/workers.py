"""Work that takes a while: in numbered blocks, on several cores where that helps, with a bar."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds of work before anything is shown, or other processes are started."""


@dataclass(slots=True)
class Progress:
    """A progress bar of so many steps that shows itself once they have taken two seconds.

    Short work, which is nearly all, does without the library as well.
    """

    label: str
    total: int
    started: float = field(default_factory=time.monotonic)
    _bar: Any = None

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def show(self, done: int) -> None:
        """Say how many steps are done; the bar goes when all are.

        Nothing is shown where the error stream is neither a terminal nor a notebook's.
        """
        if self._bar is None:
            if self.spent < PATIENCE or done == self.total:
                return
            with warnings.catch_warnings():  # of notebooks without widgets, which show no bar
                warnings.simplefilter("ignore")
                from tqdm.auto import tqdm
            # disable=None: nothing is shown but on a terminal
            options: dict[str, Any] = {"leave": False, "miniters": 1, "disable": None}
            self._bar = tqdm(desc=self.label, total=self.total, **options)
        self._bar.update(done - self._bar.n)
        if done == self.total:
            self._bar.close()


def in_threads(function: Callable[[Any], T], things: Iterable[Any]) -> list[T]:
    """Return what a function returns of each of some things, several at a time by as many cores."""
    from joblib import Parallel, delayed

    rest = iter(things)
    ahead = list(islice(rest, 2))
    if len(ahead) < 2:
        return list(map(function, ahead))
    jobs = (delayed(function)(each) for each in chain(ahead, rest))
    return list(Parallel(n_jobs=-1, prefer="threads", pre_dispatch="n_jobs")(jobs))


@dataclass(frozen=True, slots=True)
class Workers:
    """Up to `n_jobs` processes of joblib's, asked when blocks turn out to take long.

    A block is a function of its number, so that results do not depend on who computed them.

    Parameters
    ----------
    n_jobs : int, default -1
        Processes in all; -1 for as many as there are cores.
    """

    n_jobs: int = -1

    def map(self, block: Callable[[int], T], numbers: Sequence[int], label: str) -> list[T]:
        """Return the results of the blocks of these numbers, in their order; with a bar."""
        from joblib import Parallel, delayed, effective_n_jobs, parallel_config

        bar, results = Progress(label, len(numbers)), list[T]()
        for number in numbers:
            results.append(block(number))
            bar.show(len(results))
            # at the pace of the blocks so far, would all of them take long?
            slow = bar.spent / len(results) * len(numbers) > PATIENCE
            if slow and len(results) > 1 and effective_n_jobs(self.n_jobs) > 1:
                break
        rest = numbers[len(results) :]
        if len(rest):
            # linear algebra in a process of its own uses one core
            with parallel_config("loky", inner_max_num_threads=1):
                jobs = Parallel(self.n_jobs, return_as="generator", max_nbytes=None)
            for result in jobs(delayed(block)(number) for number in rest):
                results.append(result)
                bar.show(len(results))
        return results
