"""Coverage of coefficients of item covariates if worths deviate from the covariate model.

Respondents compare all pairs of six or ten items. Worths are x plus a normal number for each item
with the standard deviation `scatter`; a second covariate of the items, z, has no effect. "z found"
is the fraction of surveys whose interval for z excludes 0, and "on the line" the same with standard
errors that assume worths equal to x. A cell holds if the smaller coverage of x and z is at least
its floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import study

import privrank as pr


@dataclass(frozen=True)
class Cell:
    """One setting: items, respondents, scatter of the items, epsilon."""

    items: int
    respondents: int
    scatter: float
    epsilon: float

    def replicates(self, most: int) -> int:
        return most


CELLS = [
    Cell(items, 200, scatter, epsilon)
    for items in (6, 10)
    for scatter in (0.0, 0.15, 0.5)
    for epsilon in (np.inf, 2.0)
] + [Cell(6, 60, 0.7, epsilon) for epsilon in (np.inf, 2.0)]


def one(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return whether the intervals of x and z cover, and z's without the scatter."""
    table = pd.DataFrame(rng.standard_normal((cell.items, 2)), columns=["x", "z"])
    worths = 0.5 * table["x"].to_numpy() + cell.scatter * rng.standard_normal(cell.items)
    first, second = np.array(list(combinations(range(cell.items), 2))).T
    chance = 1.0 / (1.0 + np.exp(worths[second] - worths[first]))
    won = rng.random((cell.respondents, len(first))) < chance
    frame = pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(cell.respondents), len(first)),
            "item1": np.tile(first, cell.respondents),
            "item2": np.tile(second, cell.respondents),
            "outcome": np.where(won.ravel(), 1, -1),
        }
    )
    model = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ 1",
        frame,
        items=range(cell.items),
        respondent="respondent",
        max_rows=len(first),
        design="public",
        item_formula="x + z",
        item_data=table,
    )
    fit = model.fit(cell.epsilon, rng=rng)
    exact = np.hypot(fit.bse_sampling["z"], fit.bse_privacy["z"])
    return np.append(study.covers(fit, [0.5, 0.0]), abs(fit.params["z"]) <= 1.96 * exact)


def row(cell: Cell, found: list[np.ndarray]) -> dict[str, Any]:
    table = np.array(found)
    coverage, floor = study.least(table[:, :2])
    return {
        "items": cell.items,
        "respondents": cell.respondents,
        "scatter": cell.scatter,
        "epsilon": cell.epsilon,
        "replicates": len(table),
        "coverage of x": f"{table[:, 0].mean():.3f}",
        "z found": f"{1 - table[:, 1].mean():.3f}",
        "on the line": f"{1 - table[:, 2].mean():.3f}",
        "floor": f"{floor:.3f}",
        "verdict": "holds" if coverage >= floor else "falls short",
    }


if __name__ == "__main__":
    study.table(
        "item_scatter",
        "Coverage of coefficients of item covariates if worths deviate from the covariate model",
        "python validation/item_scatter.py",
        CELLS,
        one,
        row,
        study.asked(__doc__, 1000),
        1970,
    )
