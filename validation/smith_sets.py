"""Majorities: coverage of the confidence set for the Smith set, and rate of wrong winners.

Four electorates: `coin`, a fair coin between two opposite rankings, under which no pair has a
majority; `leaders`, two items that are divided evenly and before all others; `cycle`, three items
that form a cycle of majorities, by two thirds, and are before all others; `winner`, a Mallows model
with phi 0.7, whose first item in the centre beats each other item. Pairwise fractions are released,
at 95% and for the population; `reports` are local reports. `hold` is the fraction of surveys whose
set contains the Smith set. `wrong` is the fraction with a wrong winner, and `right` the fraction
with the correct one. `size` is the mean number of items in the set, compared with the size of the
Smith set.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from study import asked, table

import privrank as pr
from privrank.local import SubRanking

COMMAND = "python validation/smith_sets.py"


@dataclass(frozen=True)
class Cell:
    release: str
    electorate: str
    items: int
    n: int
    epsilon: float

    def replicates(self, asked: int) -> int:
        return asked

    @property
    def smith(self) -> int:
        """Number of items in the Smith set, which are the first ones."""
        return {"coin": self.items, "leaders": 2, "cycle": 3, "winner": 1}[self.electorate]


CELLS = [
    *(Cell("pairs", "coin", 2, n, epsilon) for n, epsilon in product((50, 1000), (0.5, 4.0))),
    Cell("pairs", "coin", 4, 100, 4.0),
    *(Cell("pairs", electorate, 4, 1000, 1.0) for electorate in ("leaders", "cycle")),
    *(Cell("pairs", "winner", 4, n, epsilon) for n, epsilon in ((200, 1.0), (1000, 0.5))),
    Cell("pairs", "winner", 8, 1000, 1.0),
    Cell("reports", "coin", 2, 500, 2.0),
    *(Cell("reports", electorate, 5, 2000, 2.0) for electorate in ("cycle", "winner")),
]


def rankings(cell: Cell, rng: np.random.Generator) -> np.ndarray:
    """Return the ranks of all respondents."""
    if cell.electorate == "winner":
        return np.asarray(pr.Mallows(cell.items, 0.7).rvs(cell.n, rng))
    up = np.arange(1, cell.items + 1)
    head, tail = np.arange(1, cell.smith + 1), up[cell.smith :]
    tops = {"coin": [up, up[::-1]], "cycle": [np.roll(head, k) for k in range(3)]}
    orders = np.array(
        [np.append(top, tail) for top in tops.get(cell.electorate, [head, head[::-1]])]
    )
    return orders[rng.integers(len(orders), size=cell.n)]


def run(rng: np.random.Generator, cell: Cell) -> tuple[bool, bool, bool, int]:
    ranks = rankings(cell, rng)
    if cell.release == "reports":
        protocol = SubRanking(range(cell.items), cell.epsilon)
        tally = protocol.tally(protocol.simulate(ranks, rng))
        result = pr.PrivateRankAggregation.from_reports(tally)
    else:
        frame = pd.DataFrame(ranks, columns=[str(k) for k in range(cell.items)])
        model = pr.PrivateRankAggregation(frame)
        result = model.fit(cell.epsilon, releases="pairs", rng=rng)
    leading, winner = {int(name) for name in result.smith_set()}, result.condorcet_winner()
    named, is_one = winner is not None, winner == "0" and cell.smith == 1
    return set(range(cell.smith)) <= leading, named and not is_one, is_one, len(leading)


def row(cell: Cell, found: list[tuple[bool, bool, bool, int]]) -> dict[str, object]:
    hold, wrong, right, size = np.array(found, dtype=float).mean(axis=0)
    return {
        "release": cell.release,
        "electorate": cell.electorate,
        "items": cell.items,
        "n": cell.n,
        "epsilon": cell.epsilon,
        "hold": f"{hold:.3f}",
        "wrong": f"{wrong:.3f}",
        "right": f"{right:.3f}" if cell.smith == 1 else "",
        "size": f"{size:.2f}",
        "Smith set": cell.smith,
    }


if __name__ == "__main__":
    table(
        "smith_sets",
        "Confidence sets for the Smith set, and stated winners",
        COMMAND,
        CELLS,
        run,
        row,
        asked(__doc__.splitlines()[0], 400),
        97_000,
    )
