"""Compare rank aggregation with NumPy broadcasting and pwlistorder, and Kemeny with its limits.

`python benchmarks/aggregation.py` prints the tables and writes them to
docs/benchmarks-aggregation.md (half a minute); `--quick` omits the slowest and writes nothing.
With PRIVRANK_SURVEYS=<folder> in the environment, KwikSort also sorts the pairs of sushi.csv in
this folder (rankings as ranks, one column per item).
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pwlistorder
from numpy.typing import NDArray
from run import processor_seconds as seconds

import privrank as pr
from privrank.consensus.orders import consensus_of, kemeny, kwiksort, weight_against
from privrank.mechanisms.samples import pair_count_values
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-aggregation.md"
RUNS = 10  # pwlistorder's default: the best of ten


def broadcast(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    return (ranks[:, :, None] < ranks[:, None, :]).sum(axis=0)


MEMORY = """
import sys
import numpy as np
from privrank.mechanisms.samples import pair_counts

def now(what):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what))

n, m = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(1)
ranks = np.empty((n, m), np.int64)
for row in ranks:
    row[:] = rng.permutation(m) + 1
pair_counts(ranks[:10])
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
before = now("VmRSS")
if sys.argv[3] == "ours":
    pair_counts(ranks)
else:
    (ranks[:, :, None] < ranks[:, None, :]).sum(axis=0)
print(now("VmHWM") - before)
"""


def extra_memory(n: int, m: int, which: str) -> float | None:
    """Return the increase in MB of a process's memory at its peak; None if not on Linux."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    command = [sys.executable, "-c", MEMORY, str(n), str(m), which]
    return int(subprocess.run(command, capture_output=True, check=True).stdout) / 1024


def best_of(pairs: NDArray[np.float64], rng: np.random.Generator) -> float:
    """The same work as pwlistorder.kwiksort: ten runs with random pivots, the best score."""
    m = len(pairs)
    return min(weight_against(kwiksort(pairs, rng.permutation(m)), pairs) for _ in range(RUNS))


def against(rng: np.random.Generator, quick: bool) -> Iterator[tuple[str, float, str, float, int]]:
    for m in (10, 45, 100):
        ranks = pr.Mallows(m, 0.95).rvs(5000, rng)
        ours = seconds(lambda ranks=ranks: pair_count_values(ranks), 15)
        theirs = seconds(lambda ranks=ranks: broadcast(ranks), 5)
        work = f"pair counts of 5,000 rankings of {m} items"
        yield work, ours, "NumPy broadcasting", theirs, 8
    folder = os.environ.get("PRIVRANK_SURVEYS")
    samples = [(f"{m} items", pr.Mallows(m, 0.98).rvs(501, rng)) for m in (10, 100, 300)]
    if folder:
        ranks = pd.read_csv(Path(folder) / "sushi.csv").to_numpy()
        samples.insert(0, ("SUSHI, 10 items", ranks))
    for name, ranks in samples:
        m = ranks.shape[1]
        bar = {10: 1, 100: 20, 300: 50}[m]
        if quick and m == 300:
            continue
        pairs = pair_count_values(ranks)
        margins, pairs = pairs - pairs.T, pairs / len(ranks)
        dictionary = {(i, j): int(margins[i, j]) for i, j in combinations(range(m), 2)}
        items = list(range(m))
        repeats = 15 if m == 10 else 3
        ours = seconds(lambda pairs=pairs: best_of(pairs, rng), 15)
        theirs = seconds(
            lambda d=dictionary, items=items: pwlistorder.kwiksort(d, items, RUNS), repeats
        )
        yield f"KwikSort, best of ten, {name}", ours, "pwlistorder.kwiksort", theirs, bar
        ours = seconds(lambda pairs=pairs, m=m: kwiksort(pairs, rng.permutation(m)), 15)
        theirs = seconds(lambda d=dictionary, items=items: pwlistorder._kwiksort(items, d), repeats)
        yield f"one KwikSort, {name}", ours, "pwlistorder._kwiksort", theirs, bar


def alone(rng: np.random.Generator) -> Iterator[tuple[str, float, float]]:
    for m, phi, n, bar in ((20, 1.0, 5000, 0.5), (45, 0.99, 1000, 1.0), (100, 0.95, 5000, 1.0)):
        pairs = pair_count_values(pr.Mallows(m, phi).rvs(n, rng))
        found = kemeny(pairs)
        work = f"exact Kemeny order, {n:,} Mallows({phi}) rankings of {m} items"
        yield (
            work + ("" if found.proven else " (not proven)"),
            seconds(lambda pairs=pairs: kemeny(pairs), 5),
            bar,
        )
    for m, bar in ((100, 0.2), (400, 1.0)):
        model = pr.PrivateRankAggregation(pr.Mallows(m, 0.95).rvs(5000, rng))
        for delta, releases in ((0.0, "auto"), (1e-6, "auto"), (1e-6, "pairs")):
            work = (
                f"PrivateRankAggregation.fit(1.0, {delta:g}, releases={releases!r}), secure noise, "
                f"5,000 rankings, {m} items"
            )
            fit = partial(model.fit, 1.0, delta, releases=releases)
            yield work, seconds(fit, 9 if m == 100 else 3), bar
    ranks = rng.permuted(np.tile(np.arange(1, 21), (1_000_000, 1)), axis=1)
    work = "PrivateRankAggregation of an array of 1,000,000 rankings of 20 items"
    yield work, seconds(lambda: pr.PrivateRankAggregation(ranks), 3), 1.0
    noise = rng.normal(size=(18, 18))
    yield "exact Kemeny order, a random matrix of 18 items", seconds(lambda: kemeny(noise), 5), 0.5
    for m in (10, 100):
        n, distribution = 5000, CubeNoise.calibrate(m * (m - 1) // 2, 1, 1.0)
        counts = pair_count_values(pr.Mallows(m, 0.95).rvs(n, rng))
        upper = np.triu_indices(m, 1)

        def private(counts=counts, distribution=distribution, upper=upper, m=m, n=n) -> None:
            pairs = np.full((m, m), 0.5)
            pairs[upper] = distribution.draw(counts[upper], None) / n
            pairs.T[upper] = 1.0 - pairs[upper]
            consensus_of("EB-Kemeny", pairs, distribution.variance / n**2, tuple(range(m)))

        yield f"secure cube noise and shrunken Kemeny order, {m} items", seconds(private, 5), 0.2
    borda = PermutohedronNoise.calibrate(100, 1.0)
    totals = np.arange(100)
    work = "secure permutohedron noise for 100 Borda totals"
    yield work, seconds(lambda: borda.draw(totals, None), 5), 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", pr.PrivrankWarning)
    rng = np.random.default_rng(7)
    lines = [
        "| task | privrank, s | alternative | alternative, s | ratio | required ratio |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {work} | {ours:.6f} | {other} | {theirs:.6f} | {theirs / ours:.1f} | {bar} |"
            for work, ours, other, theirs, bar in against(rng, quick)
        ),
        "",
        "| task | privrank, s | limit, s |",
        "| --- | --- | --- |",
        *(f"| {work} | {ours:.4f} | {bar} |" for work, ours, bar in alone(rng)),
    ]
    memory = [
        (n, m, extra_memory(n, m, "ours"), extra_memory(n, m, "theirs"))
        for n, m in ((5000, 100), (20_000, 100))
    ]
    if memory[0][2] is not None:
        lines += [
            "",
            "| peak memory beyond the rankings, MB | privrank | NumPy broadcasting | limit |",
            "| --- | --- | --- | --- |",
            *(
                f"| pair counts of {n:,} rankings of {m} items | {ours:.1f} | {theirs:.1f} | 1 |"
                for n, m, ours, theirs in memory
            ),
        ]
    print("\n".join(lines))
    if not quick:
        names = ("numpy", "scipy", "numba", "pwlistorder")
        packages = ", ".join(f"{name} {version(name)}" for name in names)
        head = (
            f"# Benchmarks of rank aggregation\n\nCommand `make bench`, {datetime.date.today()}, "
            f"privrank {pr.__version__}, Python {platform.python_version()}, {packages}. "
            f"Minimum CPU time over several runs in one process, after a first run that compiles "
            f"and is not counted.\n\n"
        )
        OUT.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
