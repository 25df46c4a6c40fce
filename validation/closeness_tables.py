"""Level of the test of closeness by one noisy table, over all kinds of tables.

The p-value compares the released table with null tables whose pooled counts are estimated from it,
so its level is not exact. Cells: number of categories, distribution, sizes of the groups, epsilon.
Distributions are equal shares, shares in proportion to 1/rank (`Zipf`), one category with 98% of
the answers (`rare`), one with all (`one`), and half of the categories empty (`half empty`). The
last cells have half of the number of answers from which the table is the default for more than
three categories. Every null hypothesis is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import study
from scipy.stats import binom

import privrank as pr

ALPHA = 0.05
SIZES = ((20, 20), (40, 400), (150, 300), (250, 5000), (40, 200, 200), (100,) * 5)
BORDER = (
    (8, (114, 114), 1.0),
    (8, (453, 4530), 0.5),
    (12, (208, 208), 1.0),
    (12, (208, 2080), 1.0),
    (12, (208, 400, 400), 1.0),
    (24, (588, 588), 1.0),
    (24, (147, 300), 2.0),
)
# Cells with the largest levels of an earlier version, which subtracted one standard deviation.
DECISIVE = {
    "3 categories, one; 250, 5000; epsilon 2",
    "3 categories, Zipf; 250, 5000; epsilon 8",
    "3 categories, rare; 40, 400; epsilon 2",
    "2 categories, rare; 250, 5000; epsilon 0.5",
    "6 categories, rare; 40, 200, 200; epsilon 8",
}


def probabilities(shape: str, k: int) -> np.ndarray:
    """Return the distribution of a shape over k categories."""
    weights = {
        "equal": np.ones(k),
        "Zipf": 1.0 / np.arange(1, k + 1),
        "rare": np.r_[0.98 * (k - 1) / 0.02, np.ones(k - 1)],
        "one": np.r_[1.0, np.zeros(k - 1)],
        "half empty": np.arange(k) < (k + 1) // 2,
    }[shape]
    return np.asarray(weights / weights.sum(), dtype=float)


@dataclass(frozen=True)
class Cell:
    """A number of categories with one distribution, sizes of groups, and epsilon."""

    k: int
    shape: str
    sizes: tuple[int, ...]
    epsilon: float

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.sizes))
        return f"{self.k} categories, {self.shape}; {sizes}; epsilon {self.epsilon:g}"

    def replicates(self, asked: int) -> int:
        return 5 * asked if str(self) in DECISIVE else asked


SHAPES = ("equal", "Zipf", "rare", "one", "half empty")
CELLS = (
    *(
        Cell(k, shape, sizes, epsilon)
        for k, shape, sizes, epsilon in product((2, 3, 6), SHAPES, SIZES, (0.5, 2.0, 8.0))
        if k > 2 or shape != "half empty"
    ),
    *(Cell(k, shape, *rest) for (k, *rest), shape in product(BORDER, SHAPES)),
)


def run(rng: np.random.Generator, cell: Cell) -> float:
    """Return the p-value for groups with one distribution."""
    names = [f"c{x}" for x in range(cell.k)]
    p = probabilities(cell.shape, cell.k)
    counts = {
        f"g{g}": dict(zip(names, rng.multinomial(size, p), strict=True))
        for g, size in enumerate(cell.sizes)
    }
    test = pr.ClosenessTest.from_counts(counts, names)
    pvalue = test.fit(cell.epsilon, method="table", rng=rng).pvalue
    assert pvalue is not None
    return pvalue


def row(cell: Cell, found: list[float]) -> dict[str, str]:
    rejected = int(np.sum(np.array(found) <= ALPHA))
    level = rejected / len(found)
    return {
        "categories": str(cell.k),
        "distribution": cell.shape,
        "sizes": ", ".join(map(str, cell.sizes)),
        "epsilon": f"{cell.epsilon:g}",
        "replicates": str(len(found)),
        "level": f"{level:.3f}",
        "std err": f"{np.sqrt(level * (1 - level) / len(found)):.3f}",
        "p that the level is at most 0.05": f"{binom.sf(rejected - 1, len(found), ALPHA):.2g}",
    }


def verdict(rows: list[dict[str, str]]) -> str:
    """Return the worst cell, and whether a level is above 0.05 by Holm's method."""
    pvalues = np.array([float(row["p that the level is at most 0.05"]) for row in rows])
    least = len(rows) * pvalues.min()
    worst = max(rows, key=lambda row: float(row["level"]))
    levels = [float(row["level"]) for row in rows]
    return (
        f"Mean level {np.mean(levels):.3f} over {len(rows)} cells. The largest is "
        f"{worst['level']} ({worst['categories']} categories, {worst['distribution']}, sizes "
        f"{worst['sizes']}, epsilon {worst['epsilon']}, {worst['replicates']} replicates). By "
        f"Holm's method {'no' if least > 0.05 else 'at least one'} level is above 0.05 (smallest "
        f"adjusted p-value {min(least, 1.0):.2g})."
    )


def main() -> None:
    study.table(
        "closeness_tables",
        "Level of the test of closeness by one noisy table",
        "python validation/closeness_tables.py",
        CELLS,
        run,
        row,
        study.asked(__doc__, 400),
        7000,
        verdict,
    )


if __name__ == "__main__":
    main()
