"""Do intervals for the distance of two groups cover, and do they agree with the test?

Effect and test have epsilon 1 each, at level 0.05. "rejects" is the power of the test; the interval
always excludes 0 in the same surveys. "L > 0" is the fraction with a lower end above 0 before the
zero rule. "floor" is the 5% quantile of the smallest coverage of exact 95% intervals in such a
table. "width then" is the width of an interval from one released distance by concentration alone,
with a separate bound for its noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import study
from closeness_power import atom, flat, spread, zipf

import privrank as pr

EPSILON, PERMUTATIONS, ALPHA = 1.0, 199, 0.05


@dataclass(frozen=True)
class Cell:
    """Two groups, of choices with probabilities or of rankings with dispersions."""

    name: str
    sizes: tuple[int, int]
    first: object
    second: object

    def __str__(self) -> str:
        return f"{self.name}, {self.sizes[0]} v {self.sizes[1]}"

    def replicates(self, asked: int) -> int:
        return asked

    @property
    def choices(self) -> bool:
        return isinstance(self.first, np.ndarray)

    def distance(self) -> float:
        """Return the distance of the two distributions."""
        if self.choices:
            return 0.5 * float(np.abs(self.first - self.second).sum())
        orders = np.array(list(permutations(range(1, 6))))
        signs = np.array([np.sign(orders[:, i] - orders[:, j]) for i in range(5) for j in range(i)])
        gram = np.exp(signs.T @ signs / 10.0 - 1.0)
        distance = (10.0 - signs.T @ signs[:, 0]) / 2.0
        p, q = (np.power(phi, distance) for phi in (self.first, self.second))
        apart = p / p.sum() - q / q.sum()
        return math.sqrt(max(float(apart @ gram @ apart), 0.0))

    def test(self, rng: np.random.Generator) -> pr.ClosenessTest:
        """Return the test of one sample."""
        if self.choices:
            table = {}
            for name, size, p in zip("xy", self.sizes, (self.first, self.second), strict=True):
                table[name] = dict(enumerate(rng.multinomial(size, p)))
            return pr.ClosenessTest.from_counts(table, range(len(self.first)))
        samples = zip(self.sizes, (self.first, self.second), strict=True)
        return pr.ClosenessTest(*[pr.Mallows(5, phi).rvs(size, rng) for size, phi in samples])


def disjoint(k: int) -> tuple[np.ndarray, np.ndarray]:
    first = np.arange(k) < k // 2
    return first / first.sum(), ~first / (~first).sum()


P2, P5, P24, P300, P900, Z300 = flat(2), flat(5), flat(24), flat(300), flat(900), zipf(300)
HALF = (300, 300)
CELLS = (
    Cell("k 2", HALF, P2, P2),
    Cell("k 2", HALF, P2, spread(P2, 0.15)),
    Cell("k 2", HALF, P2, spread(P2, 0.3)),
    Cell("k 2, one category", (50, 5000), np.array([1.0, 0.0]), np.array([0.9, 0.1])),
    Cell("k 5", HALF, P5, P5),
    Cell("k 5", HALF, P5, spread(P5, 0.05)),
    Cell("k 5", HALF, P5, spread(P5, 0.12)),
    Cell("k 5", HALF, P5, spread(P5, 0.24)),
    Cell("k 5, atom", HALF, P5, atom(P5, 0.3)),
    Cell("k 5, disjoint", HALF, *disjoint(5)),
    Cell("k 5, one category", (50, 5000), atom(P5, 1.0), P5),
    Cell("k 5, Zipf", (1000, 200), zipf(5), spread(zipf(5), 0.2)),
    Cell("k 24", HALF, P24, spread(P24, 0.15)),
    Cell("k 24", HALF, P24, spread(P24, 0.3)),
    Cell("k 24, atom", HALF, P24, atom(P24, 0.3)),
    Cell("k 24", (1000, 200), P24, spread(P24, 0.15)),
    Cell("k 24", (1000, 200), P24, spread(P24, 0.3)),
    Cell("k 24, one category", (50, 5000), atom(P24, 1.0), P24),
    Cell("k 300", HALF, P300, spread(P300, 0.3)),
    Cell("k 300, atom", HALF, P300, atom(P300, 0.3)),
    Cell("k 300, Zipf", HALF, Z300, spread(Z300, 0.27)),
    Cell("k 900", HALF, P900, P900),
    Cell("k 900", HALF, P900, spread(P900, 0.3)),
    Cell("k 900, disjoint", HALF, *disjoint(900)),
    Cell("k 900, one category", (50, 5000), atom(P900, 1.0), P900),
    Cell("MMD, m 5", HALF, 0.8, 0.8),
    Cell("MMD, m 5", HALF, 0.8, 0.7),
    Cell("MMD, m 5", HALF, 0.8, 0.5),
    Cell("MMD, m 5", (150, 600), 0.8, 0.6),
    Cell("MMD, m 5", (50, 5000), 0.05, 1.0),
    Cell("MMD, m 5", (50, 5000), 0.8, 0.7),
)


def width_by_concentration(cell: Cell, result: pr.ClosenessResult) -> float:
    """Return the width of an interval from one distance with all of the effect's epsilon."""
    diameter = 1.0 if cell.choices else math.sqrt(2.0 * (1.0 - math.exp(-2.0)))
    s, b = sum(1.0 / size for size in cell.sizes), ALPHA / 4.0
    scale = diameter / min(cell.sizes) / EPSILON
    margin = diameter * math.sqrt(math.log(1.0 / b) * s / 2.0) + scale * math.log(0.5 / b)
    middle = float(result.effect or 0.0)
    high, low = min(middle + margin, diameter), max(middle - margin, 0.0)
    if cell.choices:
        return high - max(low - 0.5 * math.sqrt((len(cell.first) - 1) * s), 0.0)
    return high - math.sqrt(max(low * low - s, 0.0))


def run(rng: np.random.Generator, cell: Cell) -> tuple[float, ...]:
    options = {"method": "permutation"} if cell.choices else {}
    result = cell.test(rng).fit(
        EPSILON, effect_epsilon=EPSILON, permutations=PERMUTATIONS, rng=rng, **options
    )
    low, high = result.conf_int()
    theta = cell.distance()
    covers = low <= theta <= high + 1e-12  # an end that is open at 0 is above 0
    return (
        covers, result.reject, (low > 0) == result.reject, low > 1e-6, low, high,
        width_by_concentration(cell, result), result.corrected_effect, low > theta,
    )  # fmt: skip


def row(cell: Cell, found: list[tuple[float, ...]]) -> dict[str, str]:
    out = np.mean(found, axis=0)
    return {
        "cell": str(cell),
        "distance": f"{cell.distance():.3f}",
        "coverage": f"{out[0]:.3f}",
        "floor": f"{study.floor(len(CELLS), len(found), 0.95):.3f}",
        "too high": f"{out[8]:.3f}",
        "rejects": f"{out[1]:.3f}",
        "agree": f"{out[2]:.3f}",
        "L > 0": f"{out[3]:.3f}",
        "interval": f"{out[4]:.3f} to {out[5]:.3f}",
        "corrected": f"{out[7]:.3f}",
        "width": f"{out[5] - out[4]:.3f}",
        "width then": f"{out[6]:.3f}",
    }


def main() -> None:
    study.table(
        "closeness_intervals",
        "Intervals for the distance between two groups",
        "python validation/closeness_intervals.py",
        CELLS,
        run,
        row,
        study.asked(__doc__, 300),
        5100,
    )


if __name__ == "__main__":
    main()
