"""Compare the ranking loops with scipy.stats.kendalltau, and the Mallows model with its limits.

`python benchmarks/rankings.py` prints the tables and writes them to docs/benchmarks-rankings.md
(a few seconds); `--quick` writes nothing.
"""

from __future__ import annotations

import argparse
import datetime
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
from run import seconds
from scipy.stats import kendalltau

import privrank as pr
from privrank.kernels import rankings as kernels

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-rankings.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rng = np.random.default_rng(7)

    rows = []
    for m, bar in ((1000, 3), (10_000, 2)):
        # many pairs: on a single repeated pair the processor would predict every branch
        pairs = pr.Mallows(m, 1.0).rvs(400, rng).reshape(200, 2, m)
        ours = seconds(
            lambda pairs=pairs: [kernels.kendall_to_center(a[None], b) for a, b in pairs], 5
        )
        theirs = seconds(lambda pairs=pairs: [kendalltau(*pair) for pair in pairs], 3)
        work = f"Kendall distance of two rankings of {m:,} items"
        rows.append((work, ours / len(pairs), theirs / len(pairs), bar))
    ranks, center = pr.Mallows(100, 0.95).rvs(1000, rng), np.arange(1, 101)
    ours = seconds(lambda: kernels.kendall_to_center(ranks, center), 15)
    theirs = seconds(lambda: [kendalltau(row, center) for row in ranks], 3)
    rows.append(("1,000 rankings of 100 items to one centre", ours, theirs, 20))

    big = pr.Mallows(10_000, 0.999)
    alone = [
        (
            "tolerance_to_phi(10**6, 0.1)",
            seconds(lambda: pr.tolerance_to_phi(10**6, 0.1), 5),
            1,
        ),
        ("100 Mallows rankings of 10,000 items", seconds(lambda: big.rvs(100, rng), 5), 1),
    ]
    lines = [
        "| task | privrank, s | scipy.stats.kendalltau, s | ratio | required ratio |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {work} | {ours:.6f} | {theirs:.6f} | {theirs / ours:.1f} | {bar} |"
            for work, ours, theirs, bar in rows
        ),
        "",
        "| task | privrank, s | limit, s |",
        "| --- | --- | --- |",
        *(f"| {work} | {ours:.3f} | {bar} |" for work, ours, bar in alone),
    ]
    print("\n".join(lines))
    if not quick:
        packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
        head = (
            f"# Benchmarks of rankings\n\nCommand `make bench`, {datetime.date.today()}, "
            f"privrank {pr.__version__}, Python {platform.python_version()}, {packages}. Median "
            f"wall-clock time of several runs in one process, after a first run that compiles and "
            f"is not counted. kendalltau also computes a p-value.\n\n"
        )
        OUT.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
