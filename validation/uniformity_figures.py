"""Figures 1 to 3 of Busa-Fekete, Fotakis and Zampetakis (2021), with printed and exact thresholds.

Tables go to docs/validation/; the figures themselves are drawn to build/validation/.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable

import numpy as np
from study import OUT, arguments, mean_and_error, replicate, write

import privrank as pr
from privrank.mechanisms.ranknorms import pair_sums, plain_norm
from privrank.privacy.noise import DiscreteLaplace
from privrank.published.bfz21 import central_distance, pair_squares, two_rankings

ALPHA = 0.05
NO_NOISE = DiscreteLaplace(0.0)

# 1 - phi by (items, rankings)
FIGURE_1 = {
    (100, 2): (0.005, 0.01, 0.02, 0.04, 0.08),
    (1000, 2): (1e-3, 2e-3, 4e-3, 8e-3),
    (10_000, 2): (2e-5, 5e-5, 1e-4, 1.5e-4, 2e-4, 3e-4),
}
FIGURE_2 = {
    (10, 10_000): (0.0025, 0.005, 0.01, 0.02, 0.04),
    (1000, 2): (1e-3, 2e-3, 4e-3, 8e-3),
    (10_000, 2): (5e-5, 1e-4, 2e-4, 3e-4),
}


def printed_unif(ranks: np.ndarray, order: tuple[int, ...]) -> bool:
    """UNIF as printed: Y >= m / 2 + 2 sqrt(m log(1 / alpha))."""
    n, m = ranks.shape
    sums = pair_sums(ranks, order).astype(float)
    return bool(sums @ sums / n >= m / 2 + 2 * math.sqrt(m * math.log(1 / ALPHA)))


def printed_two_sample(ranks: np.ndarray, order: tuple[int, ...]) -> bool:
    """2SAMP as printed: Kendall distance below its mean by sqrt(m^3 log(1 / alpha) / 12)."""
    m = ranks.shape[1]
    distance = m * (m - 1) // 2 - two_rankings(m).value(ranks, order) * two_rankings(m).step
    return bool(distance <= m * (m - 1) / 4 - math.sqrt(m**3 * math.log(1 / ALPHA) / 12))


def exact(statistic: object, alpha: float = ALPHA) -> Callable:
    """Return the test by the quantile of a statistic's null table, exact or Monte Carlo."""
    threshold = statistic.null(9_999).threshold(alpha, NO_NOISE)

    def reject(ranks: np.ndarray, order: tuple[int, ...]) -> bool:
        return threshold is not None and statistic.value(ranks, order) >= threshold

    return reject


def one(rng: np.random.Generator, m: int, n: int, gap: float, tests: dict) -> dict:
    # the centre is unknown to the tests
    ranks = pr.Mallows(m, 1.0 - gap).rvs(n, rng)[:, rng.permutation(m)]
    order = tuple(int(k) for k in rng.permutation(m))
    return {name: float(test(ranks, order)) for name, test in tests.items()}


def curves(settings: dict, build: Callable, replicates: int, cell: int) -> list[dict]:
    rows = []
    for (m, n), gaps in settings.items():
        tests = build(m, n)
        for gap in (0.0, *gaps):
            cell += 1
            found = replicate(one, replicates, m, n, gap, tests, cell=cell)
            for name in tests:
                power, error = mean_and_error([hit[name] for hit in found])
                rows.append(
                    {
                        "items": m,
                        "rankings": n,
                        "1 - phi": f"{gap:g}",
                        "test": name,
                        "power": f"{power:.3f}",
                        "std err": f"{error:.3f}",
                    }
                )
        print(f"m = {m}, n = {n} done", flush=True)
    return rows


def first(m: int, n: int) -> dict:
    return {
        "2SAMP, printed": printed_two_sample,
        "2SAMP, exact": exact(two_rankings(m)),
        "UNIF, printed": printed_unif,
        "UNIF, exact": exact(pair_squares(n, m)),
    }


def second(m: int, n: int) -> dict:
    tests = {
        "MA, exact": exact(central_distance(n, m)),
        "UNIF, printed": printed_unif,
        "UNIF, exact": exact(pair_squares(n, m)),
    }
    if m <= 1000:
        tests["Borda norm"] = exact(plain_norm(n, m))
    return tests


def draw(name: str, title: str) -> None:
    """Draw a table of power as one panel per number of items."""
    from matplotlib import pyplot

    with (OUT / f"{name}.csv").open() as handle:
        rows = [row for row in csv.DictReader(handle) if float(row["1 - phi"]) > 0]
    by = "epsilon" if "epsilon" in rows[0] else None
    if by:
        rows = [row for row in rows if row[by] != "1"]
        for row in rows:
            row["test"] = row["method"] + (" (no noise)" if row[by] == "inf" else "")
    tests = list(dict.fromkeys(row["test"] for row in rows))
    colours = dict(zip(tests, pyplot.get_cmap("tab10").colors, strict=False))
    groups: dict[tuple[str, str], list[dict]] = {}
    for row in rows:
        groups.setdefault((row["items"], row["rankings"]), []).append(row)
    # a panel needs more than one effect for a curve
    panels = {key: one for key, one in groups.items() if len({row["1 - phi"] for row in one}) > 1}
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(3.2 * len(panels) + 1.6, 3.4), sharey=True, layout="constrained"
    )
    for axis, (panel, inside) in zip(axes, panels.items(), strict=True):
        for test in dict.fromkeys(row["test"] for row in inside):
            x = [float(row["1 - phi"]) for row in inside if row["test"] == test]
            y = [float(row["power"]) for row in inside if row["test"] == test]
            axis.plot(x, y, marker="o", ms=3, color=colours[test])
        axis.axhline(ALPHA, color="0.6", lw=0.8, ls="--")
        axis.ticklabel_format(axis="x", style="sci", scilimits=(-1, 2))
        axis.set_title(f"m = {panel[0]}, n = {panel[1]}", fontsize="medium")
        axis.set_xlabel("1 - phi")
    axes[0].set_ylabel("power")
    lines = [pyplot.Line2D([], [], color=colours[test], marker="o", ms=3) for test in tests]
    figure.legend(lines, tests, fontsize="small", frameon=False, loc="outside right center")
    figure.suptitle(title, fontsize="medium")
    folder = OUT.parent.parent / "build" / "validation"
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=150)


def main() -> None:
    started = time.time()
    replicates = arguments(__doc__.splitlines()[0], 1_000)
    command = "python validation/uniformity_figures.py"
    rows = curves(FIGURE_1, first, replicates, 3000)
    write(
        "bfz_figure1",
        "Tests of uniformity with two rankings: power of 2SAMP and UNIF",
        command,
        rows,
        started,
    )
    rows = curves(FIGURE_2, second, replicates, 4000)
    write(
        "bfz_figure2",
        "Tests of uniformity without privacy: power of MA and UNIF",
        command,
        rows,
        started,
    )
    draw("bfz_figure1", "Two rankings, level 0.05")
    draw("bfz_figure2", "Without privacy, level 0.05")
    # the third figure has the settings and tests of the power study
    if (OUT / "uniformity_power.csv").exists():
        draw("uniformity_power", "Epsilon 1/3, level 0.05")


if __name__ == "__main__":
    main()
