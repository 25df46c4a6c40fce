"""Power of the private tests of uniformity against Mallows models."""

from __future__ import annotations

import math
import time

import numpy as np
from study import arguments, mean_and_error, replicate, write

import privrank as pr
from privrank.hypotheses.effects import rejection_of
from privrank.hypotheses.nulls import Statistic, wanted_draws
from privrank.privacy.accounting import pure_epsilon
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.survey import Sample
from privrank.uniformity import uniformity_statistic

# 1 - phi of the Mallows models, by (items, rankings)
SETTINGS = {
    (10, 10_000): (0.008, 0.0126, 0.0198, 0.0354),
    (100, 1000): (0.00143, 0.00226, 0.00356, 0.00638),
    (500, 1000): (1.9e-4, 3e-4, 4.8e-4, 8.6e-4),
    (1000, 1000): (8e-5, 1.27e-4, 2e-4, 3.6e-4),
    (20, 200): (0.0378,),
    (50, 300): (0.00981,),
    (30, 1000): (0.01018,),
    (1000, 100): (4.02e-4,),
}
METHODS = ("auto", "borda", "laplace", "bucket", "truncated")
EPSILONS = (1 / 3, 1.0)
ALPHA = 0.05


def chances(rng: np.random.Generator, m: int, n: int, gap: float, rejections: dict) -> dict:
    """Return every test's probability of rejection on one sample of a Mallows model."""
    ranks = pr.Mallows(m, 1.0 - gap).rvs(n, rng)
    order = tuple(int(k) for k in rng.permutation(m))
    return {key: reject(ranks, order) for key, reject in rejections.items()}


def rejections_of(m: int, n: int) -> dict:
    sample = Sample("rankings", tuple(str(k) for k in range(m)), n, "row", 1)
    found = {}
    for epsilon in (*EPSILONS, math.inf):
        for method in METHODS:
            xi = pure_epsilon(epsilon, 0.0)
            try:
                asked, _ = uniformity_statistic(method, sample, xi=xi, alpha=ALPHA, tolerance=None)
            except ValueError:
                continue
            distribution, threshold = DiscreteLaplace(0.0), None
            if isinstance(asked, Statistic):
                distribution = DiscreteLaplace.calibrate(asked.sensitivity, epsilon)
                threshold = asked.null(wanted_draws(None, sample)).threshold(ALPHA, distribution)
            found[method, epsilon] = rejection_of(asked, distribution, threshold)
    return found


def main() -> None:
    started = time.time()
    replicates = arguments(__doc__, 400)
    rows = []
    cells = {setting: number for number, setting in enumerate(SETTINGS, 2000)}
    # the smallest first: its null tables are drawn in seconds
    for m, n in sorted(SETTINGS, key=lambda setting: setting[0] * setting[1]):
        cell, gaps = cells[m, n], SETTINGS[m, n]
        rejections = rejections_of(m, n)
        count = replicates if m <= 100 else max(replicates // 2, 20)
        for place, gap in enumerate(gaps):
            found = replicate(chances, count, m, n, gap, rejections, cell=10 * cell + place)
            for method, epsilon in rejections:
                power, error = mean_and_error([one[method, epsilon] for one in found])
                rows.append(
                    {
                        "items": m,
                        "rankings": n,
                        "1 - phi": f"{gap:g}",
                        "epsilon": f"{epsilon:.4g}",
                        "method": method,
                        "power": f"{power:.3f}",
                        "std err": f"{error:.3f}",
                    }
                )
            print(f"m = {m}, n = {n}, {gap}: {time.time() - started:.0f} s", flush=True)
    rows.sort(key=lambda row: cells[row["items"], row["rankings"]])
    command = "python validation/uniformity_power.py"
    write("uniformity_power", "Power of the tests of uniformity", command, rows, started)


if __name__ == "__main__":
    main()
