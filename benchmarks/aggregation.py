"""Time rank aggregation against NumPy broadcasting and pwlistorder, and Kemeny against its bars.

`python benchmarks/aggregation.py` prints the tables and writes them to
docs/benchmarks-aggregation.md (half a minute); `--quick` leaves out the slowest and writes nothing.
"""

from __future__ import annotations

import argparse
import datetime
import platform
from collections.abc import Iterator
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

import numpy as np
import pwlistorder
from numpy.typing import NDArray
from run import seconds

import privrank as pr
from privrank.consensus.bayes import eb_kemeny
from privrank.consensus.kemeny import kemeny
from privrank.consensus.orders import kemeny_score, kwiksort, pair_counts
from privrank.ranknoise import CubeNoise, PermutohedronNoise

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-aggregation.md"
RUNS = 10  # pwlistorder's default: the best of ten


def broadcast(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    return (ranks[:, :, None] < ranks[:, None, :]).sum(axis=0)


def best_of(pairs: NDArray[np.float64], rng: np.random.Generator) -> float:
    """The same work as pwlistorder.kwiksort: ten runs with random pivots, the best score."""
    m = len(pairs)
    return min(kemeny_score(kwiksort(pairs, rng.permutation(m)), pairs) for _ in range(RUNS))


def against(rng: np.random.Generator, quick: bool) -> Iterator[tuple[str, float, str, float, int]]:
    for m in (10, 45, 100):
        ranks = pr.Mallows(m, 0.95).rvs(5000, rng)
        ours = seconds(lambda ranks=ranks: pair_counts(ranks), 15)
        theirs = seconds(lambda ranks=ranks: broadcast(ranks), 5)
        work = f"pair counts of 5,000 rankings of {m} items"
        yield work, ours, "NumPy broadcasting", theirs, 8
    for m, bar in ((10, 1), (100, 20), (300, 50)):
        if quick and m == 300:
            continue
        pairs = pair_counts(pr.Mallows(m, 0.98).rvs(501, rng))
        margins, pairs = pairs - pairs.T, pairs / 501
        dictionary = {(i, j): int(margins[i, j]) for i, j in combinations(range(m), 2)}
        items = list(range(m))
        repeats = 15 if m == 10 else 3
        ours = seconds(lambda pairs=pairs: best_of(pairs, rng), 15)
        theirs = seconds(
            lambda d=dictionary, items=items: pwlistorder.kwiksort(d, items, RUNS), repeats
        )
        yield f"KwikSort, best of ten, {m} items", ours, "pwlistorder.kwiksort", theirs, bar
        ours = seconds(lambda pairs=pairs, m=m: kwiksort(pairs, rng.permutation(m)), 15)
        theirs = seconds(lambda d=dictionary, items=items: pwlistorder._kwiksort(items, d), repeats)
        yield f"one KwikSort, {m} items", ours, "pwlistorder._kwiksort", theirs, bar


def alone(rng: np.random.Generator) -> Iterator[tuple[str, float, float]]:
    for m, phi, n, bar in ((20, 1.0, 5000, 0.5), (45, 0.99, 1000, 1.0), (100, 0.95, 5000, 1.0)):
        pairs = pair_counts(pr.Mallows(m, phi).rvs(n, rng))
        found = kemeny(pairs)
        work = f"exact Kemeny order, {n:,} Mallows({phi}) rankings of {m} items"
        yield (
            work + ("" if found.proven else " (not proven)"),
            seconds(lambda pairs=pairs: kemeny(pairs), 5),
            bar,
        )
    noise = rng.normal(size=(18, 18))
    yield "exact Kemeny order, a random matrix of 18 items", seconds(lambda: kemeny(noise), 5), 0.5
    for m in (10, 100):
        n, law = 5000, CubeNoise.calibrate(m * (m - 1) // 2, 1, 1.0)
        counts = pair_counts(pr.Mallows(m, 0.95).rvs(n, rng))
        upper = np.triu_indices(m, 1)

        def private(counts=counts, law=law, upper=upper, m=m, n=n) -> None:
            pairs = np.full((m, m), 0.5)
            pairs[upper] = law.draw(counts[upper], None) / n
            pairs.T[upper] = 1.0 - pairs[upper]
            eb_kemeny(pairs, law.variance / n**2)

        yield f"secure cube noise and shrunken Kemeny order, {m} items", seconds(private, 5), 0.2
    borda = PermutohedronNoise.calibrate(100, 1.0)
    totals = np.arange(100)
    work = "secure permutohedron noise for 100 Borda totals"
    yield work, seconds(lambda: borda.draw(totals, None), 5), 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rng = np.random.default_rng(7)
    lines = [
        "| work | privrank, s | other | other, s | ratio | bar |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {work} | {ours:.6f} | {other} | {theirs:.6f} | {theirs / ours:.1f} | {bar} |"
            for work, ours, other, theirs, bar in against(rng, quick)
        ),
        "",
        "| work | privrank, s | bar, s |",
        "| --- | --- | --- |",
        *(f"| {work} | {ours:.4f} | {bar} |" for work, ours, bar in alone(rng)),
    ]
    print("\n".join(lines))
    if not quick:
        names = ("numpy", "scipy", "numba", "pwlistorder")
        packages = ", ".join(f"{name} {version(name)}" for name in names)
        head = (
            f"# Benchmarks of rank aggregation\n\nCommand `make bench`, {datetime.date.today()}, "
            f"privrank {pr.__version__}, Python {platform.python_version()}, {packages}. Medians "
            f"of several runs in one process after an uncounted first one, which compiles.\n\n"
        )
        OUT.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
