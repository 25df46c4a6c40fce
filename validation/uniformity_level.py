"""Type I error of every test of uniformity over a grid of sizes, and uniform p-values."""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np
from scipy.stats import kstest, norm
from study import arguments, mean_and_error, replicate, write

from privrank.hypotheses.effects import rejection_of
from privrank.hypotheses.nulls import Null, Statistic, uniform_rankings, usual_draws
from privrank.mechanisms.ranknorms import of_rankings
from privrank.privacy.accounting import pure_epsilon
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.survey import Sample
from privrank.results.tables import statistic_words
from privrank.uniformity import uniformity_statistic

ITEMS = (2, 3, 5, 10, 100, 1000)
SIZES = (2, 10, 100, 1000)
EPSILONS = (0.1, 1 / 3, 1.0, math.inf)
METHODS = (
    "auto",
    "borda",
    "laplace",
    "mallows",
    "two-sample",
    "omnibus",
    "truncated",
    "bucket",
)
ALPHA = 0.05


def tests(m: int, n: int) -> dict[tuple[str, float], object]:
    """Return the statistic of each method at each epsilon, if the method applies."""
    sample = Sample("rankings", tuple(str(k) for k in range(m)), n, "row", 1)
    found = {}
    for method in METHODS:
        for epsilon in EPSILONS:
            xi = pure_epsilon(epsilon, 0.0)
            try:
                asked, _ = uniformity_statistic(method, sample, xi=xi, alpha=ALPHA, tolerance=None)
            except ValueError:
                continue  # a method that does not apply raises an error
            found[method, epsilon] = asked
    return found


def chances(rng: np.random.Generator, m: int, n: int, rejections: dict) -> dict:
    """Return every test's probability of rejection on one sample of uniform rankings."""
    ranks = uniform_rankings(rng, n, m)
    order = tuple(int(k) for k in rng.permutation(m))
    return {key: reject(ranks, order) for key, reject in rejections.items()}


def rows_of(m: int, n: int, replicates: int, cell: int) -> list[dict]:
    asked = tests(m, n)
    rejections, tables = {}, {}
    for (method, epsilon), test in asked.items():
        distribution, threshold = DiscreteLaplace(0.0), None
        if isinstance(test, Statistic):
            distribution = DiscreteLaplace.calibrate(test.sensitivity, epsilon)
            null = test.null(usual_draws("rankings", n, m))
            threshold, tables[method, epsilon] = null.threshold(ALPHA, distribution), null.draws
        rejections[method, epsilon] = rejection_of(test, distribution, threshold)
    found = replicate(chances, replicates, m, n, rejections, cell=cell)
    rows = []
    for method, epsilon in asked:
        level, error = mean_and_error([one[method, epsilon] for one in found])
        draws = tables.get((method, epsilon))
        table_error = math.sqrt(ALPHA * (1 - ALPHA) / draws) if draws else 0.0
        rows.append(
            {
                "items": m,
                "rankings": n,
                "epsilon": f"{epsilon:.4g}",
                "method": method,
                "statistic": statistic_words(asked[method, epsilon].name),
                "null": "one bit" if (method, epsilon) not in tables else draws or "exact",
                "level": f"{level:.5f}",
                "std err": f"{math.hypot(error, table_error):.6f}",
            }
        )
    return rows


def fresh_pvalue(rng: np.random.Generator, test: Statistic, n: int, m: int) -> float:
    """Return a p-value under H0 from a null table of its own."""
    value = test.simulated or test.value
    drawn = np.array([value(uniform_rankings(rng, n, m), ()) for _ in range(100)])
    distribution = DiscreteLaplace.calibrate(test.sensitivity, 1.0)
    return Null.of_draws(drawn[1:]).pvalue(
        int(drawn[0] + distribution.simulate(1, rng)[0]), distribution
    )


def holm(rows: list[dict]) -> int:
    """Return the number of cells that exceed the level at 5% after Holm's correction."""
    excess = [(float(row["level"]) - ALPHA) / max(float(row["std err"]), 1e-9) for row in rows]
    pvalues = np.sort(norm.sf(excess))
    above = pvalues > 0.05 / (len(pvalues) - np.arange(len(pvalues)))
    return int(above.argmax()) if above.any() else len(pvalues)


def main() -> None:
    started = time.time()
    replicates = arguments(__doc__, 2_000)
    rows = []
    for cell, (m, n) in enumerate([(m, n) for m in ITEMS for n in SIZES]):
        rows += rows_of(m, n, replicates, cell)
        print(f"m = {m}, n = {n}: {time.time() - started:.0f} s", flush=True)
    command = "python validation/uniformity_level.py"
    write("uniformity_level", "Size of the tests of uniformity", command, rows, started)
    print(f"{holm(rows)} of {len(rows)} cells exceed {ALPHA} after Holm's correction")

    uniform = []
    for cell, (m, n) in enumerate([(3, 5), (5, 10), (20, 20)], 1000):
        test = of_rankings(n, m, 1.0)
        pvalues = replicate(partial(fresh_pvalue), 10_000, test, n, m, cell=cell)
        uniform.append(
            {
                "items": m,
                "rankings": n,
                "statistic": statistic_words(test.name),
                "replicates": len(pvalues),
                "KS distance": f"{kstest(pvalues, 'uniform').statistic:.4f}",
                "KS p-value": f"{kstest(pvalues, 'uniform').pvalue:.3f}",
                "share below 0.05": f"{np.mean(np.array(pvalues) <= 0.05):.4f}",
            }
        )
    write(
        "uniformity_pvalues",
        "Uniformity of p-values of tests of uniformity under H0",
        command,
        uniform,
        started,
    )


if __name__ == "__main__":
    main()
