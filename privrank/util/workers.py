"""Parallel work in threads or processes, in numbered blocks with a progress bar."""

import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds of work before a progress bar is shown or other processes are started."""


def in_threads(function: Callable[[Any], T], things: Iterable[Any]) -> Iterator[T]:
    """Yield the results of a function for several arguments, computed on several cores."""
    from joblib import cpu_count

    rest = iter(things)
    ahead = list(islice(rest, 2))
    if len(ahead) < 2:  # in this thread, which needs no start and can be debugged
        yield from map(function, ahead)
        return
    cores = cpu_count()
    waiting = deque[Future[T]]()
    with ThreadPoolExecutor(cores) as pool:
        for thing in chain(ahead, rest):
            waiting.append(pool.submit(function, thing))
            # read the next argument if all cores but one have work
            if len(waiting) > cores:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def progress(label: str, total: int) -> Any:
    """Return a tqdm progress bar, which is shown once the steps have taken long.

    Nothing is shown unless the error stream is a terminal or a notebook.
    """
    with warnings.catch_warnings():  # notebooks without widgets emit a warning and show no bar
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    # disable=None: show the bar on terminals only
    return tqdm(desc=label, total=total, leave=False, miniters=1, disable=None, delay=PATIENCE)


def in_processes(
    block: Callable[[int], T], numbers: Sequence[int], label: str, n_jobs: int = -1
) -> list[T]:
    """Return the results of numbered blocks in order, with a progress bar.

    Up to `n_jobs` processes of joblib (-1: the number of cores) are started if the blocks take
    long. A block is a function of its number, so results do not depend on the processes.
    """
    from joblib import Parallel, delayed, effective_n_jobs, parallel_config

    bar = progress(label, len(numbers))
    results = list[T]()
    started = time.monotonic()
    for number in numbers:
        results.append(block(number))
        bar.update()
        # predicted time of all blocks, from the blocks so far
        slow = (time.monotonic() - started) / len(results) * len(numbers) > PATIENCE
        if slow and len(results) > 1 and effective_n_jobs(n_jobs) > 1:
            break
    rest = numbers[len(results) :]
    if len(rest):
        # linear algebra in a worker process uses one core
        with parallel_config("loky", inner_max_num_threads=1):
            jobs = Parallel(n_jobs, return_as="generator", max_nbytes=None)
        for result in jobs(delayed(block)(number) for number in rest):
            results.append(result)
            bar.update()
    bar.close()
    return results
