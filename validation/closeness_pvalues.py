"""Uniformity of the p-values of the tests of closeness if the samples have one distribution."""

from __future__ import annotations

import time

import numpy as np
from scipy.stats import kstest
from study import arguments, replicate, write

import privrank as pr

ALPHA = 0.05

# data, categories or items, sizes of the samples, epsilon
SETTINGS = (
    ("choices", 3, (30, 8), 0.5),
    ("choices", 4, (10, 12), 1.0),
    ("rankings", 4, (20, 7), 1.0),
    ("rankings", 8, (9, 14), 2.0),
)


def under_null(
    rng: np.random.Generator, kind: str, k: int, sizes: tuple[int, int], epsilon: float
) -> float:
    if kind == "choices":
        p = np.arange(k, 0, -1) / (k * (k + 1) / 2)
        labels = [str(c) for c in range(k)]
        table = {
            name: dict(zip(labels, rng.multinomial(n, p), strict=True))
            for name, n in zip("xy", sizes, strict=True)
        }
        test = pr.ClosenessTest.from_counts(table, labels)
    else:
        test = pr.ClosenessTest(*[pr.Mallows(k, 0.7).rvs(n, rng) for n in sizes])
    options = {"method": "permutation"} if kind == "choices" else {}
    return float(test.fit(epsilon, permutations=49, rng=rng, **options).pvalue)


def main() -> None:
    started = time.time()
    replicates = arguments(__doc__, 10_000)
    rows = []
    for cell, (kind, k, sizes, epsilon) in enumerate(SETTINGS, 7000):
        pvalues = replicate(under_null, replicates, kind, k, sizes, epsilon, cell=cell)
        test = kstest(pvalues, "uniform")
        rows.append(
            {
                "data": kind,
                "items": k,
                "sizes": " and ".join(map(str, sizes)),
                "epsilon": f"{epsilon:g}",
                "replicates": len(pvalues),
                "KS distance": f"{test.statistic:.4f}",
                "KS p-value": f"{test.pvalue:.3f}",
                "share below 0.05": f"{np.mean(np.array(pvalues) <= ALPHA):.4f}",
            }
        )
        print(f"{kind}, {k}: {time.time() - started:.0f} s", flush=True)
    command = "python validation/closeness_pvalues.py"
    write(
        "closeness_pvalues",
        "Uniformity of p-values of tests of closeness under H0",
        command,
        rows,
        started,
    )


if __name__ == "__main__":
    main()
