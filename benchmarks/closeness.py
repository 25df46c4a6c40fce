"""Measure the time of permutation tests, and compare one with the kernel test of hyppo.

`python benchmarks/closeness.py` prints the tables and writes them to docs/benchmarks-closeness.md
(a minute, most of it for hyppo); `--quick` writes nothing.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from run import seconds

import privrank as pr
from privrank.mechanisms.closeness import (
    cell_parts,
    choice_parts,
    noise_cell,
    omnibus_values,
    quantiles,
    round_up,
    smoothed_pvalue,
)
from privrank.mechanisms.permutation import (
    chi_square,
    gram_blocks,
    kernel_distance,
    largest_distance,
    permuted_statistics,
)
from privrank.plans.samples import (
    DIAMETER,
    chi_square_sensitivity,
    mean_sensitivity,
    smoothing_scale,
)
from privrank.privacy.noise import draw_cells

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-closeness.md"
EPSILON = 1.0


def release(statistics: np.ndarray, sensitivity: float) -> float:
    """Return the released p-value, with secure noise."""
    scale = smoothing_scale(sensitivity, EPSILON)
    noise = draw_cells(scale, noise_cell(scale), 1, None)[0]
    return round_up(smoothed_pvalue(statistics, statistics[0] + noise, scale))


def of_rankings(first: np.ndarray, second: np.ndarray, permutations: int) -> float:
    """Return the private p-value of the distance of mean features, kernel exp(tau - 1)."""
    sizes = np.array([len(first), len(second)])
    counts = np.repeat(np.eye(2, dtype=np.int64), sizes, axis=1)
    ranks = np.concatenate((first, second))
    statistics = permuted_statistics(
        counts,
        lambda tables: kernel_distance(tables, gram_blocks(ranks, "mallows")),
        permutations,
        None,
    )
    return release(statistics, mean_sensitivity(sizes, DIAMETER["mallows"]))


def of_choices(counts: np.ndarray, statistic: str) -> float:
    """Return the private p-value of a statistic of category frequencies, 999 permutations."""
    sizes = counts.sum(axis=1)
    if statistic == "chi-square":
        return release(
            permuted_statistics(counts, chi_square, 999, None), chi_square_sensitivity(sizes)
        )
    if statistic == "TV":
        return release(
            permuted_statistics(counts, largest_distance, 999, None), mean_sensitivity(sizes, 1.0)
        )
    drawn = choice_parts(tuple(sizes.tolist()), counts.shape[1], cells=True)
    public = quantiles(drawn, len(sizes), smoothing_scale(1.0, EPSILON))
    return release(
        permuted_statistics(
            counts, lambda tables: omnibus_values(cell_parts(tables), public), 999, None
        ),
        1.0,
    )


def hyppo_pvalue(first: np.ndarray, second: np.ndarray, permutations: int) -> float:
    """Return hyppo's p-value with the same kernel: a Gaussian one on the orders of all pairs."""
    from hyppo.ksample import MMD

    i, j = np.triu_indices(first.shape[1], 1)
    x, y = ((ranks[:, i] > ranks[:, j]).astype(np.float64) for ranks in (first, second))
    test = MMD(compute_kernel="gaussian", bias=True, gamma=2.0 / len(i))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(test.test(x, y, reps=permutations, auto=False)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rng = np.random.default_rng(7)

    first, second = (pr.Mallows(100, phi).rvs(1000, rng) for phi in (0.99, 0.985))
    distribution = rng.dirichlet(np.ones(720))
    counts = np.array([rng.multinomial(10**6, distribution) for _ in range(2)])
    five = np.array([rng.multinomial(10**6, distribution) for _ in range(5)])
    alone = [
        ("2 x 1,000 rankings of 100 items", 2, lambda: of_rankings(first, second, 999)),
        ("2 x 1,000,000 choices of 720, default", 1, lambda: of_choices(counts, "default")),
        ("2 x 1,000,000 choices of 720, TV", 1, lambda: of_choices(counts, "TV")),
        ("2 x 1,000,000 choices of 720, chi-square", 1, lambda: of_choices(counts, "chi-square")),
        ("5 x 1,000,000 choices of 720, default", 3, lambda: of_choices(five, "default")),
        ("5 x 1,000,000 choices of 720, largest TV of two", 3, lambda: of_choices(five, "TV")),
    ]
    lines = [
        "| private p-value with 999 permutations | privrank, s | limit, s |",
        "| --- | --- | --- |",
        *(f"| {work} | {seconds(call, 3):.3f} | {bar} |" for work, bar, call in alone),
    ]
    small = first[:500], second[:500], 99
    ours = seconds(lambda: of_rankings(*small), 5)
    theirs = seconds(lambda: hyppo_pvalue(*small), 1)
    lines += [
        "",
        "| task | privrank, s | hyppo, s | ratio | required ratio |",
        "| --- | --- | --- | --- | --- |",
        f"| MMD, 2 x 500 rankings of 100 items, 99 permutations | {ours:.4f} | {theirs:.2f} | "
        f"{theirs / ours:.0f} | 20 |",
    ]
    print("\n".join(lines))
    if not quick:
        names = ("numpy", "numba", "hyppo")
        packages = ", ".join(f"{name} {version(name)}" for name in names)
        head = (
            f"# Benchmarks of permutation tests\n\nCommand `make bench`, {datetime.date.today()}, "
            f"privrank {pr.__version__}, Python {platform.python_version()}, {packages}. Median "
            f"wall-clock time of several runs in one process, after a first run that compiles and "
            f"is not counted, with secure permutations and noise. hyppo computes a p-value without "
            f"privacy, in one run after a run that is not counted.\n\n"
        )
        OUT.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
