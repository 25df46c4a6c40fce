"""Tests of closeness compared with tests of other papers: same data, same epsilon.

The other tests, each with the noise that its own sensitivity requires:

- Kim and Schrab (2023), dpMMD: their private decision at level .05, for choices with the kernel
  that is 1 for equal categories and 0 for others, for rankings with the kernel of the default test.
- Couch, Kazan, Shi, Bray and Groce (2019), Kruskal-Wallis in absolute values: one test for each
  item, at a share 1 / m of epsilon each as one ranking changes them all, with Holm's correction;
  for choices one test of the categories in their order.
- Awan and Wang (2022), Kolmogorov-Smirnov, for two groups: of the categories in their order; of the
  position of one item that was named beforehand; of the positions of all items, with Holm's
  correction at a share 1 / m of epsilon each.

Ties are broken at random, so the last two tests have the null distributions of untied values, which
are simulated with the noise integrated out.
"""

from __future__ import annotations

import math
import time
from functools import lru_cache, partial

import numpy as np
import pandas as pd
from study import arguments, mean_and_error, replicate, write

import privrank as pr
from privrank.kernels.rankings import places_of
from privrank.mechanisms.permutation import gram_blocks, kernel_distance, permuted_statistics
from privrank.plans.samples import DIAMETER
from privrank.util.arrays import orders_of

ALPHA, TABLE = 0.05, 2999
EPSILONS = (0.5, 1.0, 2.0)
ITEM = 0  # the item chosen beforehand

EQUAL, TWO, THREE = np.full(5, 0.2), (300, 300), (300, 300, 100)
ZIPF = 1 / np.arange(1, 6) / (1 / np.arange(1, 6)).sum()
TREND = EQUAL + 0.06 * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
ATOM = EQUAL + np.array([-0.025, -0.025, 0.1, -0.025, -0.025])
ENDS = EQUAL + np.array([0.06, -0.03, -0.06, -0.03, 0.06])


def mallows(phi: float, order: tuple[int, ...] = (1, 2, 3, 4, 5)):
    return pr.Mallows(5, phi, np.array(order))


class Camps:
    """Half of the units rank in the order 1 to m, half in reverse, each with errors."""

    def __init__(self, phi: float) -> None:
        self.model = mallows(phi)

    def rvs(self, n: int, rng: np.random.Generator) -> np.ndarray:
        ranks = self.model.rvs(n, rng)
        return np.where(rng.random((n, 1)) < 0.5, ranks, 6 - ranks)


# name: sizes of the groups, their distributions
CELLS = {
    "null, equal shares": (TWO, (EQUAL, EQUAL)),
    "null, Zipf shares": ((570, 30), (ZIPF, ZIPF)),
    "null, three groups": ((500, 500, 10), (ZIPF, ZIPF, ZIPF)),
    "choices, trend": (TWO, (EQUAL, TREND)),
    "choices, middle category": (TWO, (EQUAL, ATOM)),
    "choices, both ends": (TWO, (EQUAL, ENDS)),
    "choices, trend, small third group": ((500, 500, 10), (EQUAL, TREND, EQUAL)),
    "null, Mallows .6": (TWO, (mallows(0.6), mallows(0.6))),
    "rankings, Mallows .6 and .7": (TWO, (mallows(0.6), mallows(0.7))),
    "rankings, first two swapped": (TWO, (mallows(0.7), mallows(0.7, (2, 1, 3, 4, 5)))),
    "rankings, last to first": (TWO, (mallows(0.8), mallows(0.8, (2, 3, 4, 5, 1)))),
    "rankings, opposite camps against uniform": (TWO, (Camps(0.7), mallows(1.0))),
    "rankings, one of three groups": (THREE, (mallows(0.7), mallows(0.7), mallows(0.85))),
}


def ranked(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the ranks 1 to n of values, ties broken at random."""
    order = np.lexsort((rng.random(len(values)), values))
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(1, len(values) + 1)
    return ranks


def kruskal_wallis(ranks: np.ndarray, sizes: tuple[int, ...]) -> float:
    """4 (n - 1) / n^2 times the sum over groups of |rank sum - its mean|: sensitivity 8.

    The rank of a replaced unit changes by at most n - 1, and the ranks of at most n - 1 others by 1
    each: the sum changes by at most 2 (n - 1).
    """
    n = len(ranks)
    sums = np.add.reduceat(ranks, np.cumsum((0, *sizes[:-1])))
    away = np.abs(sums - np.array(sizes) * (n + 1) / 2).sum()
    return 4 * (n - 1) / n**2 * float(away)


def kolmogorov_smirnov(ranks: np.ndarray, sizes: tuple[int, ...]) -> float:
    """Largest difference of two distribution functions: sensitivity 1 / min size."""
    steps = np.full(len(ranks), -1.0 / sizes[1])
    steps[ranks[: sizes[0]] - 1] = 1.0 / sizes[0]
    return float(np.abs(np.cumsum(steps)).max())


STATISTICS = {"Kruskal-Wallis": kruskal_wallis, "Kolmogorov-Smirnov": kolmogorov_smirnov}


def sensitivity(name: str, sizes: tuple[int, ...]) -> float:
    return 8.0 if name == "Kruskal-Wallis" else 1.0 / min(sizes)


@lru_cache(maxsize=32)
def null_table(name: str, sizes: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng([len(name), *sizes])
    n = sum(sizes)
    return np.array([STATISTICS[name](rng.permutation(n) + 1, sizes) for _ in range(TABLE)])


def noisy_pvalue(
    name: str, values: np.ndarray, sizes: tuple[int, ...], epsilon: float, rng: np.random.Generator
) -> float:
    scale = sensitivity(name, sizes) / epsilon
    noisy = STATISTICS[name](ranked(values, rng), sizes) + rng.laplace(0.0, scale)
    steps = (noisy - null_table(name, sizes)) / scale
    tail = 0.5 * np.exp(-np.abs(steps))
    return float((1 + np.where(steps > 0, tail, 1 - tail).sum()) / (TABLE + 1))


def rejected(found: np.ndarray, scale: float, rng) -> bool:
    """Kim and Schrab's decision: the noisy statistic of the data is among the largest."""
    noisy = found + rng.laplace(0.0, scale, len(found))
    return bool(np.count_nonzero(noisy >= noisy[0]) <= ALPHA * len(noisy) * (1 + 2.0**-50))


def dp_mmd_of_rankings(ranks: np.ndarray, sizes: tuple[int, ...], epsilon: float, rng) -> bool:
    """Their decision for the largest distance of two groups of rankings: 199 permutations."""
    orders = orders_of(5)
    gram = list(gram_blocks(orders, "mallows"))
    places = np.split(places_of(ranks), np.cumsum(sizes)[:-1])
    counts = np.array([np.bincount(part, minlength=len(orders)) for part in places])
    found = permuted_statistics(counts, partial(kernel_distance, gram=gram), 199, rng)
    return rejected(found, 2.0 * DIAMETER["mallows"] / min(sizes) / epsilon, rng)


def dp_mmd(codes: np.ndarray, sizes: tuple[int, ...], epsilon: float, rng) -> bool:
    """Kim and Schrab's decision for two samples of choices: 199 permutations, kernel [x = y]."""
    found = np.empty(200)
    for number in range(200):
        order = np.arange(len(codes)) if number == 0 else rng.permutation(len(codes))
        shares = [
            np.bincount(part, minlength=5) / len(part)
            for part in np.split(codes[order], [sizes[0]])
        ]
        found[number] = np.linalg.norm(shares[0] - shares[1])
    scale = 2.0 * math.sqrt(2.0) / min(sizes) / epsilon
    return rejected(found, scale, rng)


def of_choices(sizes, shares, epsilon: float, rng) -> dict[str, bool]:
    counts = [rng.multinomial(n, p) for n, p in zip(sizes, shares, strict=True)]
    codes = np.concatenate([np.repeat(np.arange(5), c) for c in counts])
    labels = [f"c{x}" for x in range(5)]
    frame = pd.DataFrame({f"g{g}": c for g, c in enumerate(counts)}, index=labels)
    test = pr.ClosenessTest.from_counts(frame, labels)
    found = {"privrank": test.fit(epsilon, permutations=199, rng=rng).reject}
    found["Kruskal-Wallis"] = noisy_pvalue("Kruskal-Wallis", codes, sizes, epsilon, rng) <= ALPHA
    if len(sizes) == 2:
        found["dpMMD"] = dp_mmd(codes, sizes, epsilon, rng)
        smirnov = noisy_pvalue("Kolmogorov-Smirnov", codes, sizes, epsilon, rng)
        found["Kolmogorov-Smirnov"] = smirnov <= ALPHA
    return found


def of_rankings(sizes, models, epsilon: float, rng) -> dict[str, bool]:
    samples = [model.rvs(n, rng) for n, model in zip(sizes, models, strict=True)]
    ranks = np.concatenate(samples)
    items = [f"i{x}" for x in range(5)]
    frame = pd.DataFrame(ranks, columns=items)
    levels = [f"g{g}" for g in range(len(sizes))]
    frame["group"] = np.repeat(levels, sizes)
    test = pr.ClosenessTest.from_formula(f"{' + '.join(items)} ~ group", frame, levels=levels)
    found = {"privrank": test.fit(epsilon, permutations=199, rng=rng).reject}
    found["dpMMD"] = dp_mmd_of_rankings(ranks, sizes, epsilon, rng)

    def least(name: str) -> float:
        each = epsilon / ranks.shape[1]
        return min(noisy_pvalue(name, ranks[:, x], sizes, each, rng) for x in range(5))

    # Holm's procedure rejects any hypothesis if and only if it rejects that with the smallest p
    found["Kruskal-Wallis, items, Holm"] = 5 * least("Kruskal-Wallis") <= ALPHA
    if len(sizes) == 2:
        found["Kolmogorov-Smirnov, items, Holm"] = 5 * least("Kolmogorov-Smirnov") <= ALPHA
        one = noisy_pvalue("Kolmogorov-Smirnov", ranks[:, ITEM], sizes, epsilon, rng)
        found["Kolmogorov-Smirnov, one item"] = one <= ALPHA
    return found


def one(rng: np.random.Generator, name: str) -> dict[tuple[float, str], bool]:
    sizes, models = CELLS[name]
    run = of_choices if isinstance(models[0], np.ndarray) else of_rankings
    found = {}
    for epsilon in EPSILONS:
        for method, reject in run(sizes, models, epsilon, rng).items():
            found[epsilon, method] = bool(reject)
    return found


def table(kind: str, replicates: int) -> None:
    """Run the cells of choices or of rankings, and write their table."""
    started, rows = time.time(), []
    for number, (name, (sizes, models)) in enumerate(CELLS.items()):
        if isinstance(models[0], np.ndarray) != (kind == "choices"):
            continue
        found = replicate(one, replicates, name, cell=9300 + number)
        for method in dict.fromkeys(method for _, method in found[0]):
            row = {"data": name, "units": ", ".join(map(str, sizes)), "test": method}
            for epsilon in EPSILONS:
                rate, error = mean_and_error([float(each[epsilon, method]) for each in found])
                row[f"epsilon {epsilon:g}"] = f"{rate:.3f} ({error:.3f})"
            rows.append(row)
        print(f"{name}: {time.time() - started:.0f} s", flush=True)
    title = f"Rejection rates for {kind}: the default test and tests of other papers"
    command = "python validation/closeness_peers.py"
    write(f"closeness_peers_{kind}", title, command, rows, started)


def main() -> None:
    replicates = arguments(__doc__, 300)
    for kind in ("choices", "rankings"):
        table(kind, replicates)


if __name__ == "__main__":
    main()
