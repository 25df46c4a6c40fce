"""Compare running times of privrank and other packages on the same tasks in one run.

`python benchmarks/run.py` prints the table and writes it to docs/benchmarks.md. Interpret the
ratios rather than the times. Frames resemble those of users, with item names in string columns.
Fits use default options and secure noise. The slowest alternative, choix.opt_pairwise, takes about
half a minute; `--quick` omits it and writes nothing.
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
from privrank.privacy.knorm import CubeNoise
from privrank.privacy.noise import DiscreteGaussian

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"


def item_names(items: int) -> list[str]:
    return [f"item {k:05d}" for k in range(items)]


def comparisons(items: int, rows: int) -> tuple[pd.DataFrame, list[tuple[int, int]]]:
    """Return random comparisons as a long frame and as (winner, loser) tuples for choix."""
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
    """Return the median time of a call, after a first call that is not timed."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def processor_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the smallest processor time of a call, after a first call that is not timed."""
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
    """Return the median time of a new interpreter that imports a module, minus an idle one."""

    def run(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True), 5)

    return run(f"import {module}") - run("pass")


DEVICE = """
import sys, time
import numpy
started = time.process_time()
from privrank.local.client import Client
client = Client.from_json(sys.argv[1])
client.randomize(list(client.protocol.items))
print(time.process_time() - started)
"""


def client_seconds() -> float:
    """Return the time of a respondent's device from NumPy to a report, the smallest of three."""
    protocol = pr.local.SubRanking(["tea", "coffee", "milk", "water"], 1.0).to_json()
    call = [sys.executable, "-c", DEVICE, protocol]
    return min(float(subprocess.check_output(call, text=True)) for _ in range(3))


def check_limits() -> None:
    """Fail if a task takes several times as long as when its limit was set."""
    rng = np.random.default_rng(0)
    ranks = pd.DataFrame(np.argsort(rng.random((3000, 40)), axis=1) + 1).rename(columns=str)
    full = np.argsort(rng.random((100_000, 20)), axis=1) + 1.0
    lists = pd.DataFrame(np.where(full <= 10, full, np.nan)).rename(columns=str)
    names = [f"item {k:02d}" for k in range(30)]
    wins = pd.DataFrame(rng.integers(0, 2_300_000, (30, 30)), index=names, columns=names)
    many = pr.as_comparisons(wins.mask(np.eye(30, dtype=bool), 0), "matrix")
    zeros = np.zeros(79_800, dtype=np.int64)
    gaussian, cube = DiscreteGaussian(70_000.3), CubeNoise.calibrate(79_800, 1, 1.0)
    design = {"counts": "count", "respondent": None, "design": "public"}
    works: dict[str, tuple[float, Callable[[], object]]] = {
        "3,000 rankings to comparisons": (5.0, lambda: pr.as_comparisons(ranks, "rankings")),
        "100,000 lists completed": (
            5.0,
            lambda: pr.as_rankings(lists, missing="bottom", ties="random"),
        ),
        "10^9 comparisons as counts": (0.5, lambda: pr.PrivateBTL(many, **design)),
        "79,800 Gaussian draws": (0.9, lambda: gaussian.draw(zeros, None)),
        "79,800 cube draws": (0.5, lambda: cube.draw(zeros, None)),
    }
    spent = {work: (limit, processor_seconds(call, 3)) for work, (limit, call) in works.items()}
    spent["a report on a device"] = (0.15, client_seconds())
    for work, (limit, taken) in spent.items():
        print(f"{work}: {taken:.3f} s (at most {limit:g} s)")
    slow = [work for work, (limit, taken) in spent.items() if taken > limit]
    if slow:
        raise SystemExit(f"too slow: {', '.join(slow)}")


def main() -> None:
    import choix

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows = []
    check_limits()

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
        "| task | privrank, s | alternative | alternative, s | ratio | required ratio |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {work} | {ours:.4f} | {peer} | {theirs:.3f} | {theirs / ours:.1f} | {bar:.3g} |"
            for work, ours, peer, theirs, bar in rows
        ),
        f"| 10,000 items, 1,000,000 comparisons: frame of strings to private fit | {elapsed:.2f} | "
        f"(limits: 3 s, 2 GB) | | peak memory of this run {memory:.2f} GiB | |",
    ]
    print("\n".join(lines))
    if not quick:
        packages = ", ".join(
            f"{name} {version(name)}" for name in ("choix", "numpy", "scipy", "pandas")
        )
        head = (
            f"# Benchmarks\n\nCommand `make bench`, {datetime.date.today()}, "
            f"privrank {pr.__version__}, Python {platform.python_version()}, {packages}. "
            f"Minimum CPU time over several runs in one process (opt_pairwise and the last row: "
            f"one run). Import times are median wall-clock times. The ratio is the time of the "
            f"alternative divided by the time of privrank. choix starts from prepared tuples. "
            f"privrank starts from strings, with default options and secure noise.\n\n"
        )
        OUT.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
