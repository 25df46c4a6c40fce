"""Level of a test of closeness by one noisy table whose group labels are private.

The default for private labels releases a p-value of permutations, whose level is exact. This study
asks whether a table could replace it. One zero-sum vector over all cells protects the answer and
the group of a respondent, so the sizes of the groups are noisy as well: they are the sums of the
noisy rows. Null tables are drawn with these sizes and with the pooled counts of the table, once as
they are and once less two standard deviations of their noise. The level is that of the larger of
the two p-values, and of the first one alone. Cells are those of `closeness_tables` with at most six
categories. Every null hypothesis is true.
"""

from __future__ import annotations

import math

import closeness_tables
import numpy as np
import study
from closeness_tables import ALPHA, Cell, probabilities
from scipy.stats import binom

from privrank.hypotheses.noisytables import pooled_counts, rank_pvalue
from privrank.hypotheses.nulls import dealt_tables
from privrank.privacy.knorm import ZeroSumLaplace

DRAWS = 999
CELLS = tuple(cell for cell in closeness_tables.CELLS if cell.k <= 6)


def statistics(tables: np.ndarray, variance: float) -> np.ndarray:
    """Return likelihood ratio, largest share and sum of deviations of tables (draws, G, k)."""
    positive = np.maximum(tables, 0.5)
    own = positive.sum(axis=2, keepdims=True)
    total = own.sum(axis=1, keepdims=True)
    pooled = positive.sum(axis=1, keepdims=True)
    ratio = (positive * np.log(positive * total / (own * pooled))).sum(axis=(1, 2))
    p, rest = pooled / total, total - own
    noise = variance * (1.0 / own**2 + (tables.shape[1] - 1) / rest**2)
    spread = np.sqrt(p * (1.0 - p) * (1.0 / own + 1.0 / rest) + noise)
    apart = np.abs(positive / own - (pooled - positive) / rest) / np.maximum(spread, 1e-9)
    sums = np.abs(positive - own * p).sum(axis=2)
    sums = (sums - sums.mean(axis=0)) / np.maximum(sums.std(axis=0), 1e-9)
    return np.stack((ratio, apart.max(axis=(1, 2)), sums.max(axis=1)), axis=1)


def run(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return the p-value at the pooled counts as they are, and the larger of the two."""
    groups, k = len(cell.sizes), cell.k
    noise = ZeroSumLaplace.calibrate(groups * k, 2, cell.epsilon)
    p = probabilities(cell.shape, k)
    table = np.array([rng.multinomial(size, p) for size in cell.sizes])
    table = table + noise.simulate(1, rng).reshape(groups, k)
    sizes = pooled_counts(table.T, 0.0)
    found = []
    for less in (0.0, 2.0 * math.sqrt(groups * noise.variance)):
        null = dealt_tables(sizes, pooled_counts(table, less), DRAWS, rng)
        null = null + noise.simulate(DRAWS, rng).reshape(DRAWS, groups, k)
        tables = np.concatenate((table[None], null))
        found.append(rank_pvalue(statistics(tables, noise.variance)))
    return np.array([found[0], max(found)])


def row(cell: Cell, found: list[np.ndarray]) -> dict[str, str]:
    rejected = (np.array(found) <= ALPHA).sum(axis=0)
    first, level = rejected / len(found)
    return {
        "categories": str(cell.k),
        "distribution": cell.shape,
        "sizes": ", ".join(map(str, cell.sizes)),
        "epsilon": f"{cell.epsilon:g}",
        "replicates": str(len(found)),
        "level of the first": f"{first:.3f}",
        "level": f"{level:.3f}",
        "std err": f"{np.sqrt(level * (1 - level) / len(found)):.3f}",
        "p that the level is at most 0.05": (
            f"{binom.sf(int(rejected[1]) - 1, len(found), ALPHA):.2g}"
        ),
    }


def main() -> None:
    study.table(
        "closeness_private",
        "Level of a noisy table whose group labels are private",
        "python validation/closeness_private.py",
        CELLS,
        run,
        row,
        study.asked(__doc__, 400),
        7_500,
        closeness_tables.verdict,
    )


if __name__ == "__main__":
    main()
