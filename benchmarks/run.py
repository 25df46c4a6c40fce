"""Time privrank against other packages on the same work, in one run; ratios are what counts.

`python benchmarks/run.py` prints the table and writes it to docs/benchmarks.md. Frames have what
users have: names of items in string columns; fits have default options and secure noise. The
slowest peer, choix.opt_pairwise, takes about half a minute; `--quick` leaves it out and writes
nothing.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

import privrank as pr

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"


def item_names(items: int) -> list[str]:
    return [f"item {k:05d}" for k in range(items)]


def comparisons(items: int, rows: int) -> tuple[pd.DataFrame, list[tuple[int, int]]]:
    """Return random comparisons as a long frame and as the (winner, loser) tuples choix takes."""
    rng = np.random.default_rng(7)
    theta = rng.standard_normal(items)
    first = rng.integers(0, items, rows)
    second = (first + rng.integers(1, items, rows)) % items
    won = rng.random(rows) < 1.0 / (1.0 + np.exp(theta[second] - theta[first]))
    names = np.array(item_names(items))
    frame = pd.DataFrame(
        {"item1": names[first], "item2": names[second], "outcome": np.where(won, 1, -1)}
    )
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    return frame, list(zip(winner.tolist(), loser.tolist(), strict=True))


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call, after one that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def processor_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the least processor time of a call, after one that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def fit(frame: pd.DataFrame, items: int) -> pr.BTLResult:
    model = pr.PrivateBTL(
        frame, items=item_names(items), respondent=None, ties=False, design="public"
    )
    return model.fit(epsilon=1.0)


def import_time(module: str) -> float:
    """Return the median time of a fresh interpreter that imports a module, less an idle one."""

    def run(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True), 5)

    return run(f"import {module}") - run("pass")


def main() -> None:
    import choix

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows = []

    frame, tuples = comparisons(100, 100_000)
    ours = processor_seconds(lambda: fit(frame, 100), 25)
    ilsr = processor_seconds(lambda: choix.ilsr_pairwise(100, tuples), 5)
    work = "100 items, 100,000 comparisons: frame of strings to private fit"
    rows.append((work, ours, "choix.ilsr_pairwise", ilsr, 15))
    if not quick:
        start = time.process_time()
        choix.opt_pairwise(100, tuples)
        rows.append((work, ours, "choix.opt_pairwise", time.process_time() - start, 500))
    ours, theirs = import_time("privrank"), import_time("statsmodels.api")
    rows.append(("import privrank", ours, "import statsmodels.api", theirs, 1 / 0.6))

    big, _ = comparisons(10_000, 1_000_000)
    start = time.process_time()
    fit(big, 10_000)
    elapsed = time.process_time() - start
    # ru_maxrss counts KiB on Linux
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    lines = [
        "| work | privrank, s | peer | peer, s | ratio | bar |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {work} | {ours:.4f} | {peer} | {theirs:.3f} | {theirs / ours:.1f} | {bar:.2g} |"
            for work, ours, peer, theirs, bar in rows
        ),
        f"| 10,000 items, 1,000,000 comparisons: frame of strings to private fit | {elapsed:.2f} | "
        f"(bar: 3 s, 2 GB) | | peak of this run {memory:.2f} GiB | |",
    ]
    print("\n".join(lines))
    if not quick:
        packages = ", ".join(
            f"{name} {version(name)}" for name in ("choix", "numpy", "scipy", "pandas")
        )
        head = (
            f"# Benchmarks\n\nCommand `make bench`, {datetime.date.today()}, "
            f"privrank {pr.__version__}, Python {platform.python_version()}, {packages}. "
            f"The least processor times of several runs in one process, opt_pairwise and the last "
            f"row once; medians of the time on the clock for imports. The ratio is the peer's time "
            f"over ours. choix starts from ready-made tuples, privrank from strings, with default "
            f"options and secure noise.\n\n"
        )
        OUT.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
