"""Work that takes a while: on several cores where that helps, in numbered blocks with a bar."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds of work before anything is shown, or other processes are started."""


def in_threads(function: Callable[[Any], T], things: Iterable[Any]) -> Iterator[T]:
    """Yield what a function returns of each of some things, several at a time by as many cores."""
    from joblib import cpu_count

    rest = iter(things)
    ahead = list(islice(rest, 2))
    if len(ahead) < 2:  # here, where it costs nothing to start and can be followed
        yield from map(function, ahead)
        return
    cores = cpu_count()
    waiting = deque[Future[T]]()
    with ThreadPoolExecutor(cores) as pool:
        for thing in chain(ahead, rest):
            waiting.append(pool.submit(function, thing))
            # the next thing is read when all cores but one have work
            if len(waiting) > cores:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def progress(label: str, total: int) -> Any:
    """Return a bar of tqdm's for so many steps that shows itself once they have taken long.

    Nothing is shown where the error stream is neither a terminal nor a notebook's.
    """
    with warnings.catch_warnings():  # of notebooks without widgets, which show no bar
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    # disable=None: nothing is shown but on a terminal
    return tqdm(desc=label, total=total, leave=False, miniters=1, disable=None, delay=PATIENCE)


def in_processes(
    block: Callable[[int], T], numbers: Sequence[int], label: str, n_jobs: int = -1
) -> list[T]:
    """Return the results of the blocks of these numbers, in their order; with a bar.

    Up to `n_jobs` processes of joblib's, -1 for as many as there are cores, are asked when
    blocks turn out to take long. A block is a function of its number, so that results do not
    depend on who in_processes them.
    """
    from joblib import Parallel, delayed, effective_n_jobs, parallel_config

    bar = progress(label, len(numbers))
    results = list[T]()
    started = time.monotonic()
    for number in numbers:
        results.append(block(number))
        bar.update()
        # at the pace of the blocks so far, would all of them take long?
        slow = (time.monotonic() - started) / len(results) * len(numbers) > PATIENCE
        if slow and len(results) > 1 and effective_n_jobs(n_jobs) > 1:
            break
    rest = numbers[len(results) :]
    if len(rest):
        # linear algebra in a process of its own uses one core
        with parallel_config("loky", inner_max_num_threads=1):
            jobs = Parallel(n_jobs, return_as="generator", max_nbytes=None)
        for result in jobs(delayed(block)(number) for number in rest):
            results.append(result)
            bar.update()
    bar.close()
    return results
