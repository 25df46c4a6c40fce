"""Measure the time of the private test of uniformity and of the draws of its null table.

`python benchmarks/uniformity.py` prints the table and writes it to docs/benchmarks-uniformity.md
(under a minute); `--quick` writes nothing.
"""

from __future__ import annotations

import argparse
import datetime
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from run import seconds

import privrank as pr
from privrank.hypotheses.nulls import public_generator, uniform_rankings
from privrank.mechanisms.ranknorms import of_rankings

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-uniformity.md"
N = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rng = np.random.default_rng(7)
    rows = []
    for m, fit_bar, draw_bar in ((100, 0.3, 0.007), (1000, 0.5, 0.08)):
        frame = pd.DataFrame(pr.Mallows(m, 1.0 - 0.1 / m**1.5).rvs(N, rng))
        draws = 199 if quick else 499

        def fit(frame: pd.DataFrame = frame, draws: int = draws) -> None:
            pr.UniformityTest(frame).fit(1.0, draws=draws)

        fit()  # the null table is cached from here on
        rows.append((f"private test of {N:,} rankings of {m:,} items", seconds(fit, 5), fit_bar))
        statistic = of_rankings(N, m, 1.0).simulated

        def draw(statistic=statistic, m: int = m) -> None:
            statistic(uniform_rankings(public_generator("bench", m), N, m), ())

        rows.append((f"one null draw, {N:,} rankings of {m:,} items", seconds(draw, 15), draw_bar))
    opposite = np.repeat([np.arange(1, 101), np.arange(100, 0, -1)], N // 2, axis=0)
    adverse = of_rankings(N, 100, 1.0)
    rows.append(
        ("two opposite blocks, 100 items", seconds(lambda: adverse.value(opposite, ()), 3), "")
    )
    equal = np.tile(np.arange(1, 101), (N, 1))
    rows.append(("all rankings equal, 100 items", seconds(lambda: adverse.value(equal, ()), 3), ""))
    mixed = np.concatenate(
        [opposite[: N // 4], opposite[-N // 4 :], uniform_rankings(rng, N // 2, 100)]
    )
    rows.append(
        ("half opposite blocks, half uniform", seconds(lambda: adverse.value(mixed, ()), 3), "")
    )
    lines = [
        "| task | privrank, s | limit, s |",
        "| --- | --- | --- |",
        *(f"| {work} | {ours:.4f} | {bar} |" for work, ours, bar in rows),
    ]
    print("\n".join(lines))
    if not quick:
        packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
        head = (
            f"# Benchmarks of the test of uniformity\n\nCommand `make bench`, "
            f"{datetime.date.today()}, privrank {pr.__version__}, Python "
            f"{platform.python_version()}, {packages}. Median wall-clock time of several runs in "
            f"one process, after a first run that is not counted, with one BLAS thread. A test "
            f"reads its frame, computes the certified statistic, draws secure noise and computes "
            f"the p-value. The null table is taken from the cache. The data of the last rows are "
            f"far from any model, where the certificate takes longest.\n\n"
        )
        OUT.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
