"""Coverage of all intervals that `ClosenessTest` computes from one noisy table of choices.

Two groups. In the first group mass has moved from the leading category to the rarest, by the stated
total variation distance (0: equal groups). `above` and `below`: the interval of the distance lies
above or below the truth. `details` and `shares`: all intervals of differences, or of shares, hold
simultaneously. `wrong`: a difference is called clear in the wrong direction, or where there is
none. `agree`: the interval contains 0 if and only if the test does not reject.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import study

import privrank as pr

ALPHA, PERMUTATIONS = 0.05, 199


@dataclass(frozen=True)
class Cell:
    """A number of categories, sizes, epsilon, and the distance of the groups."""

    k: int
    sizes: tuple[int, int]
    epsilon: float
    distance: float

    def __str__(self) -> str:
        sizes = " and ".join(map(str, self.sizes))
        return f"{self.k} categories; {sizes}; epsilon {self.epsilon:g}; {self.distance:g}"

    def replicates(self, asked: int) -> int:
        return asked


CELLS = [
    Cell(k, sizes, epsilon, distance)
    for k, sizes, epsilon, distance in product(
        (2, 3, 6, 12), ((40, 40), (40, 400), (150, 300)), (0.5, 2.0, np.inf), (0.0, 0.15)
    )
    if k < 12 or sizes == (150, 300)
]


def shares(cell: Cell) -> np.ndarray:
    """Return the distributions of both groups, shape (2, k)."""
    p = 1.0 / np.arange(1, cell.k + 1)
    p[-1] = 0.02 * p[:-1].sum()
    p /= p.sum()
    other = p.copy()
    other[[0, -1]] += (-cell.distance, cell.distance)
    return np.stack((other, p))


def run(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return which statements of one fit hold."""
    names = [f"c{x}" for x in range(cell.k)]
    p = shares(cell)
    rows = [rng.multinomial(n, row) for n, row in zip(cell.sizes, p, strict=True)]
    table = {f"g{g}": dict(zip(names, row, strict=True)) for g, row in enumerate(rows)}
    test = pr.ClosenessTest.from_counts(table, names)
    result = test.fit(cell.epsilon, method="table", permutations=PERMUTATIONS, alpha=ALPHA, rng=rng)
    low, high = result.conf_int()
    details, single = result.details(), result.shares()
    true, each = p[0] - p[1], p.ravel()
    wrong = details["clear"] & (np.sign(details["difference"]) != np.sign(np.round(true, 12)))
    return np.array(
        [
            cell.distance < low,
            cell.distance > high,
            ((details["lower"] <= true) & (true <= details["upper"])).all(),
            ((single["lower"] <= each) & (each <= single["upper"])).all(),
            wrong.any(),
            (low > 0) == result.reject,
            result.reject,
            high - low,
        ],
        dtype=float,
    )


def row(cell: Cell, found: list[np.ndarray]) -> dict[str, str]:
    above, below, details, single, wrong, agree, reject, width = np.mean(found, axis=0)
    return {
        "categories": str(cell.k),
        "sizes": ", ".join(map(str, cell.sizes)),
        "epsilon": f"{cell.epsilon:g}",
        "distance": f"{cell.distance:g}",
        "above": f"{above:.3f}",
        "below": f"{below:.3f}",
        "details": f"{details:.3f}",
        "shares": f"{single:.3f}",
        "floor": f"{study.floor(1, len(found), 1 - ALPHA):.3f}",
        "wrong": f"{wrong:.3f}",
        "agree": f"{agree:.3f}",
        "power": f"{reject:.3f}",
        "width": f"{width:.2f}",
    }


def verdict(rows: list[dict[str, str]]) -> str:
    """Return the worst coverage of each statement."""
    worst = {name: min(rows, key=lambda row: float(row[name])) for name in ("details", "shares")}
    outside = [float(row["above"]) + float(row["below"]) for row in rows]
    wrong = max(float(row["wrong"]) for row in rows)
    return (
        f"The interval of the distance misses it in at most {max(outside):.3f} of fits. Smallest "
        f"simultaneous coverage: {worst['details']['details']} for differences, "
        f"{worst['shares']['shares']} for shares. A difference is called clear wrongly in at most "
        f"{wrong:.3f} of fits. Interval and test agree in all fits: "
        f"{'yes' if all(row['agree'] == '1.000' for row in rows) else 'no'}."
    )


def main() -> None:
    study.table(
        "closeness_tables_intervals",
        "Coverage of the intervals computed from one noisy table",
        "python validation/closeness_tables_intervals.py",
        CELLS,
        run,
        row,
        study.asked(__doc__, 300),
        7800,
        verdict,
    )


if __name__ == "__main__":
    main()
