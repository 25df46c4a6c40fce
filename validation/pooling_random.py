"""Random effects: coverage of the mean over sites that differ, and estimates of tau.

The worths of a site are the mean worths plus normal deviations of standard deviation `tau`; each
site has its number of rows, of six items with equal pairs, and its epsilon. For each cell, over all
pairs of items, the table has the coverage of 95% intervals of the difference of mean worths with
`effects="common"` and `effects="random"` (`worst` is the minimum over pairs, with the 5% quantile
of the minimum of as many exact intervals), their mean widths, and the mean and median of the
estimated tau. `shaped` deviations are of one item alone, with the same sum of squares; the mean
worths range from minus to plus half the `spread`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pooling import FIRST, NET, PAIR_COUNTS, SECOND, WINS, M, noisy, template
from study import asked, least, table

import privrank as pr
from privrank import btl

COMMAND = "python validation/pooling_random.py"
MEAN = np.linspace(0.5, -0.5, M)


@dataclass(frozen=True)
class Cell:
    tau: float
    units: tuple[int, ...]
    epsilons: tuple[float, ...]
    shaped: bool = False
    spread: float = 1.0

    def replicates(self, asked: int) -> int:
        return asked


TWO, THREE, FIVE = (1500, 1500), (600, 1200, 4800), (300, 600, 900, 1500, 3000)
CELLS = [
    *(Cell(tau, FIVE, (0.5,) * 5) for tau in (0.0, 0.15, 0.3)),
    *(Cell(tau, THREE, (0.5,) * 3) for tau in (0.15, 0.3)),
    Cell(0.3, THREE, (2.0, 1.0, 0.2)),
    Cell(0.3, TWO, (0.5,) * 2),
    Cell(0.3, FIVE, (0.5,) * 5, shaped=True),
    Cell(0.8, FIVE, (0.5,) * 5, spread=3.0),
    Cell(0.5, (3000,) * 20, (2.0,) * 20, spread=2.0),
]


def deviations(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    if not cell.shaped:
        return rng.normal(0.0, cell.tau, M)
    return np.eye(M)[0] * rng.normal(0.0, cell.tau * M**0.5)


def run(rng: np.random.Generator, cell: Cell) -> dict[str, np.ndarray]:
    results = []
    for n, epsilon in zip(cell.units, cell.epsilons, strict=True):
        worths = cell.spread * MEAN + deviations(rng, cell)
        count = np.bincount(np.arange(n) % len(FIRST), minlength=len(FIRST))
        wins = rng.binomial(count, 1.0 / (1.0 + np.exp(worths[SECOND] - worths[FIRST])))
        net = 2 * wins - count
        by_item = np.bincount(FIRST, net, minlength=M) - np.bincount(SECOND, net, minlength=M)
        exact = {NET: by_item, PAIR_COUNTS: count, WINS: np.concatenate((wins, count - wins))}
        base = template("public rows", n, epsilon)
        exact = {name: each for name, each in exact.items() if name in base.parts}
        results.append(btl.infer(noisy(rng, base, exact)))
    true, found = cell.spread * (MEAN[FIRST] - MEAN[SECOND]), {}
    ends = {}
    for effects in ("common", "random"):
        pooled = pr.pool(results, survey="different", effects=effects)
        sides = pooled.pairwise()[["lower", "upper"]].to_numpy()
        ends[effects] = np.log(sides / (1.0 - sides)).T
    for name, (low, high) in ends.items():
        found[name] = (low <= true) & (true <= high)
        found[name + " width"] = np.array([np.mean(high - low)])
    return found | {"tau": np.array([pooled.tau])}


def listed(numbers: tuple[float, ...]) -> str:
    """Return numbers in one line; equal numbers of many sites appear once."""
    return f"{len(numbers)} x {numbers[0]}" if len(numbers) > 5 else " ".join(map(str, numbers))


def row(cell: Cell, found: list[dict[str, np.ndarray]]) -> dict[str, object]:
    every = {name: np.array([one[name] for one in found]) for name in found[0]}
    worst, floor = least(every["random"])
    return {
        "sites": listed(cell.units),
        "epsilons": listed(cell.epsilons),
        "spread": cell.spread,
        "tau": f"{cell.tau}{', one item' * cell.shaped}",
        "replicates": len(found),
        "common": f"{every['common'].mean():.3f}",
        "random": f"{every['random'].mean():.3f}",
        "worst": f"{worst:.3f}",
        "floor": f"{floor:.3f}",
        "width, common": f"{every['common width'].mean():.2f}",
        "width, random": f"{every['random width'].mean():.2f}",
        "mean tau": f"{every['tau'].mean():.3f}",
        "median tau": f"{np.median(every['tau']):.3f}",
    }


if __name__ == "__main__":
    table(
        "pooling_random",
        "Pooling with random effects: coverage for mean worths, and tau",
        COMMAND,
        CELLS,
        run,
        row,
        asked(__doc__.splitlines()[0], 200),
        130_000,
    )
