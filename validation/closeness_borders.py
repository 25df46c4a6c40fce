"""Power of the noisy table and of the permutation test on both sides of the rule between them.

`ClosenessTest` of choices uses the table for at most 3 categories; for at most 6 if one group is
small; and for a smallest group of at least 5 k^1.5 / epsilon^2 (twice as many for more than 6
categories, or more than 8 if one group is small). Cells are at these borders. In the first group a
category is more likely that is rare elsewhere (`rare`), one middle category gains (`atom`), the
leading category loses to the rarest (`moved`), or every other category gains (`spread`). Groups are
equal (`1:1`) or the first is the smallest. `simple` is the rival of ten lines: independent Laplace
noise on all counts, and a likelihood ratio with a bootstrap null.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import study

import privrank as pr
from privrank.plans.samples import method_of
from privrank.release.survey import Sample

ALPHA, PERMUTATIONS, DRAWS = 0.05, 199, 199
ALTERNATIVES = ("rare", "atom", "moved", "spread")


@dataclass(frozen=True)
class Cell:
    """An alternative, a number of categories, sizes of groups, and epsilon."""

    alternative: str
    k: int
    sizes: tuple[int, ...]
    epsilon: float

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.sizes))
        return f"{self.alternative}, {self.k} categories; {sizes}; epsilon {self.epsilon:g}"

    def replicates(self, asked: int) -> int:
        return asked

    @property
    def default(self) -> str:
        """The method that the rule chooses."""
        groups = tuple((f"g{g}", size) for g, size in enumerate(self.sizes))
        names = tuple(f"c{x}" for x in range(self.k))
        sample = Sample("choices", names, sum(self.sizes), "row", 1, groups)
        return method_of("auto", sample, self.epsilon)

    @property
    def effect(self) -> float:
        """Total variation distance, about four times its standard error."""
        rest = sum(self.sizes) - self.sizes[0]
        noise = 4.0 * self.k / (self.epsilon * self.sizes[0]) ** 2
        part = 0.15 if self.alternative in ("rare", "atom", "moved") else 0.4
        sampling = part * math.sqrt(self.k) * (1.0 / self.sizes[0] + 1.0 / rest)
        return min(1.6 * math.sqrt(sampling + noise), 0.4)


def shares(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Return the distributions of the first group and of all others."""
    p = 1.0 / np.arange(1, cell.k + 1)
    p[-1] = 0.02 * p[:-1].sum()
    p /= p.sum()
    other = p.copy()
    if cell.alternative == "spread":
        up = np.arange(cell.k) % 2 == 0
        other = np.where(up, p * (1 + cell.effect / p[up].sum()), p)
        other = np.where(up, other, p * max(1 - cell.effect / p[~up].sum(), 0.0))
    elif cell.alternative == "moved":
        moved = min(cell.effect, 0.9 * p[0])
        other[[0, -1]] += (-moved, moved)
    else:
        other *= 1.0 - cell.effect
        other[-1 if cell.alternative == "rare" else cell.k // 2] += cell.effect
    return other / other.sum(), p


def ratios(tables: np.ndarray) -> np.ndarray:
    """Return likelihood ratios of noisy tables, shape (t,)."""
    z = np.maximum(tables, 0.5)
    expected = z.sum(axis=2, keepdims=True) * z.sum(axis=1, keepdims=True)
    expected /= z.sum(axis=(1, 2), keepdims=True)
    return np.asarray((z * np.log(z / expected)).sum(axis=(1, 2)))


def simple(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> bool:
    """Return whether the rival rejects."""
    shape = (DRAWS, *counts.shape)
    noise = rng.laplace(0.0, 2.0 / epsilon, shape)
    noisy = counts + rng.laplace(0.0, 2.0 / epsilon, counts.shape)
    pooled = np.maximum(noisy.sum(axis=0), 0.5)
    null = [rng.multinomial(n, pooled / pooled.sum(), DRAWS) for n in counts.sum(axis=1)]
    draws = ratios(np.stack(null, axis=1) + noise)
    return bool((1 + np.sum(draws >= ratios(noisy[None])[0])) / (DRAWS + 1) <= ALPHA)


def cells() -> list[Cell]:
    """Return the cells: balanced groups around the border, and unequal ones."""
    found = []
    for k, epsilon, alternative in product((3, 4, 6, 8, 9, 12), (0.5, 1.0), ALTERNATIVES):
        border = (5.0 if k <= 6 else 10.0) * k**1.5 / epsilon**2
        found += [
            Cell(alternative, k, (round(part * border),) * 2, epsilon) for part in (0.5, 0.98, 1.02)
        ]
    for k, epsilon, alternative in product((3, 6, 7, 8, 12), (0.5, 1.0), ALTERNATIVES):
        small = round(60 / epsilon)
        found += [
            Cell(alternative, k, (small, round(times * small)), epsilon) for times in (1.8, 2, 10)
        ]
    for k, epsilon, alternative in product((7, 8, 9), (0.5, 1.0), ALTERNATIVES):
        small = round(5.1 * k**1.5 / epsilon**2)
        found += [Cell(alternative, k, (small, times * small), epsilon) for times in (2, 10)]
    return found


def run(rng: np.random.Generator, cell: Cell) -> list[bool]:
    """Return whether the table, the permutation test and the rival reject."""
    names = [f"c{x}" for x in range(cell.k)]
    first, rest = shares(cell)
    counts = np.array([rng.multinomial(n, rest if g else first) for g, n in enumerate(cell.sizes)])
    table = {f"g{g}": dict(zip(names, row, strict=True)) for g, row in enumerate(counts)}
    test = pr.ClosenessTest.from_counts(table, names)
    options = {"permutations": PERMUTATIONS, "alpha": ALPHA, "rng": rng}
    return [
        *(
            test.fit(cell.epsilon, method=method, **options).reject
            for method in ("table", "permutation")
        ),
        simple(counts, cell.epsilon, rng),
    ]


def row(cell: Cell, found: list[list[bool]]) -> dict[str, str]:
    table, permutation, rival = np.mean(found, axis=0)
    power = {"table": table, "permutation": permutation}
    return {
        "alternative": cell.alternative,
        "categories": str(cell.k),
        "sizes": ", ".join(map(str, cell.sizes)),
        "epsilon": f"{cell.epsilon:g}",
        "distance": f"{0.5 * np.abs(np.subtract(*shares(cell))).sum():.3f}",
        "table": f"{table:.2f}",
        "permutation": f"{permutation:.2f}",
        "simple": f"{rival:.2f}",
        "default": cell.default,
        "loss": f"{max(table, permutation, rival) - power[cell.default]:.2f}",
    }


def verdict(rows: list[dict[str, str]]) -> str:
    losses = np.array([float(row["loss"]) for row in rows])
    worst = rows[int(losses.argmax())]
    return (
        f"Against the best of three methods the default loses {losses.mean():.3f} of power on "
        f"average over {len(rows)} cells, and more than 0.2 in {(losses > 0.2).sum()} of them. The "
        f"largest loss is {worst['loss']} ({worst['alternative']}, {worst['categories']} "
        f"categories, sizes {worst['sizes']}, epsilon {worst['epsilon']})."
    )


def main() -> None:
    study.table(
        "closeness_borders",
        "Power of the noisy table and of the permutation test at the borders of the rule",
        "python validation/closeness_borders.py",
        cells(),
        run,
        row,
        study.asked(__doc__, 100),
        7400,
        verdict,
    )


if __name__ == "__main__":
    main()
