"""Power of the tests of closeness."""

from __future__ import annotations

import math
import time

import numpy as np
from study import arguments, mean_and_error, replicate, write

import privrank as pr

ALPHA = 0.05

# name: kind, categories or items, units in each sample, epsilon
SETTINGS = {
    "Paninski .2": [
        ("choices", 6, 300, 0.5),
        ("choices", 24, 300, 1.0),
        ("choices", 120, 1000, 0.5),
    ],
    "Mallows .8 against .6": [
        ("rankings", 4, 300, 0.5),
        ("rankings", 5, 300, 0.5),
        ("rankings", 6, 300, 0.5),
        ("rankings", 10, 300, 0.5),
        ("rankings", 50, 100, 0.5),
    ],
    "Mallows .7, top two swapped": [("rankings", 5, 300, 1.0), ("rankings", 10, 300, 1.0)],
    "atom .1": [("rankings", 6, 300, 1.0)],
}


def samples(rng: np.random.Generator, name: str, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two samples: counts of choices, or ranks."""
    if name == "Paninski .2":
        tilt = rng.permuted(np.repeat([0.4 / k, -0.4 / k], k // 2))
        return rng.multinomial(n, np.full(k, 1 / k)), rng.multinomial(n, 1 / k + tilt)
    if name == "Mallows .8 against .6":
        return pr.Mallows(k, 0.8).rvs(n, rng), pr.Mallows(k, 0.6).rvs(n, rng)
    if name == "atom .1":
        one, other = (pr.Mallows(k, 1.0).rvs(n, rng) for _ in range(2))
        other[rng.random(n) < 0.1] = np.arange(1, k + 1)
        return one, other
    center = np.arange(1, k + 1)
    center[:2] = (2, 1)
    return pr.Mallows(k, 0.7).rvs(n, rng), pr.Mallows(k, 0.7, center).rvs(n, rng)


def one(
    rng: np.random.Generator, kind: str, name: str, k: int, n: int, epsilons: tuple, methods: tuple
) -> dict:
    first, second = samples(rng, name, k, n)
    found = {}
    tests = {kind: None}
    if kind == "choices":
        labels = [str(c) for c in range(k)]
        table = {"x": dict(zip(labels, first, strict=True))}
        table["y"] = dict(zip(labels, second, strict=True))
        tests[kind] = pr.ClosenessTest.from_counts(table)
    else:
        tests[kind] = pr.ClosenessTest(first, second)
    for method in methods:
        for epsilon in epsilons:
            result = tests[kind].fit(epsilon, method=method, permutations=199, rng=rng)
            found[method, epsilon] = result.pvalue
    return found


def main() -> None:
    started = time.time()
    replicates = arguments(__doc__, 300)
    command = "python validation/closeness_power.py"
    rows, cell = [], 5000
    for name, settings in SETTINGS.items():
        for kind, k, n, epsilon in settings:
            cell += 1
            methods = ("auto", "chi-square") if kind == "choices" else ("auto", "kendall")
            found = replicate(
                one, replicates, kind, name, k, n, (epsilon, math.inf), methods, cell=cell
            )
            for method, spent in found[0]:
                hits = [float(pvalues[method, spent] <= ALPHA) for pvalues in found]
                power, error = mean_and_error(hits)
                rows.append(
                    {
                        "alternative": name,
                        "data": kind,
                        "items": k,
                        "units each": n,
                        "epsilon": f"{spent:g}",
                        "method": method,
                        "power": f"{power:.3f}",
                        "std err": f"{error:.3f}",
                    }
                )
            print(f"{name}, {kind} {k}: {time.time() - started:.0f} s", flush=True)
    write("closeness_power", "Power of the tests of closeness", command, rows, started)


if __name__ == "__main__":
    main()
