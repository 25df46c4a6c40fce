"""Coverage of worths if one item wins 98% of its comparisons, with 80 respondents.

Each respondent answers all pairs of the items, or some at random; in one cell respondents differ in
their worths of that item. "In advance" are the intervals of all surveys. "No warning" are the
intervals of fits without a warning; no statement depends on them, because a warning depends on the
data. A cell holds if the smallest coverage over the items is at least its floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import study

import privrank as pr

PEOPLE = 80


@dataclass(frozen=True)
class Cell:
    """One setting: items, pairs per respondent, epsilon, and differences of respondents."""

    items: int
    rows: int
    epsilon: float
    differ: float = 0.0

    def replicates(self, most: int) -> int:
        return most


CELLS = [
    Cell(2, 1, np.inf),
    Cell(6, 15, np.inf),
    Cell(6, 5, np.inf),
    Cell(6, 15, np.inf, differ=1.0),
    Cell(6, 15, 2.0),
    Cell(6, 15, 8.0),
]


def survey(rng: np.random.Generator, people: int, cell: Cell) -> pd.DataFrame:
    worths = np.linspace(0.5, -0.5, cell.items)
    worths[0] = worths[1:].mean() + np.log(0.98 / 0.02)
    pairs = np.array(list(combinations(range(cell.items), 2)))
    each = np.tile(worths, (people, 1))
    each[:, 0] += cell.differ * rng.standard_normal(people)
    apart = each[:, pairs[:, 0]] - each[:, pairs[:, 1]]
    won = rng.random(apart.shape) < 1.0 / (1.0 + np.exp(-apart))
    asked = np.argsort(rng.random(apart.shape), axis=1).argsort(axis=1) < cell.rows
    who, pair = np.nonzero(asked)
    return pd.DataFrame(
        {
            "respondent": who,
            "item1": pairs[pair, 0],
            "item2": pairs[pair, 1],
            "outcome": np.where(won[asked], 1, -1),
        }
    )


@lru_cache(maxsize=8)
def truth(cell: Cell) -> np.ndarray:
    """Return the worths, or those that fit a very large survey if respondents differ."""
    frame = survey(np.random.default_rng(1), 400_000 if cell.differ else 2, cell)
    if not cell.differ:
        worths = np.linspace(0.5, -0.5, cell.items)
        worths[0] = worths[1:].mean() + np.log(0.98 / 0.02)
        return worths - worths.mean()
    fit = pr.PrivateBTL(frame, items=range(cell.items), respondent=None, design="public")
    return fit.fit(np.inf, penalty=0).params.to_numpy()


def one(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return coverage, whether the fit warned, and the width for the rare item."""
    model = pr.PrivateBTL(
        survey(rng, PEOPLE, cell),
        items=range(cell.items),
        respondent="respondent",
        max_rows=cell.rows,
        design="public",
    )
    fit = model.fit(cell.epsilon, rng=rng)
    sides = fit.conf_int()
    width = float((sides["upper"] - sides["lower"]).iloc[0])
    return np.array([*study.covers(fit, truth(cell)), bool(fit.warnings), width])


def row(cell: Cell, found: list[np.ndarray]) -> dict[str, Any]:
    table = np.array(found)
    covered, quiet = table[:, : cell.items], table[:, -2] == 0
    coverage, floor = study.least(covered)
    silent = f"{covered[quiet].mean(axis=0).min():.3f}" if quiet.any() else ""
    return {
        "items": cell.items,
        "pairs of each": cell.rows,
        "respondents differ": f"{cell.differ:g}",
        "epsilon": cell.epsilon,
        "replicates": len(table),
        "coverage of the rare item, in advance": f"{covered[:, 0].mean():.3f}",
        "least": f"{coverage:.3f}",
        "floor": f"{floor:.3f}",
        "warned": f"{1 - quiet.mean():.3f}",
        "least, no warning": silent,
        "median width of the rare item's": f"{np.median(table[:, -1]):.2f}",
        "verdict": "holds" if coverage >= floor else "falls short",
    }


if __name__ == "__main__":
    study.table(
        "rare_outcomes",
        "Coverage if one item wins 98% of its comparisons",
        "python validation/rare_outcomes.py",
        CELLS,
        one,
        row,
        study.asked(__doc__, 400),
        1950,
    )
