"""Covariates under a private design whose groups answer different numbers of pairs.

Respondents of two groups with equal worths answer different numbers of random pairs of six items,
or a row is a unit. The table has the size of the test of the group at 0.05, and the coverage of the
intercept's and the group's 95% intervals. A cell holds if the size is at most 0.05 plus two
standard errors and the smallest coverage is at least its floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import study

import privrank as pr

ITEMS = ("a", "b", "c", "d", "e", "f")
PAIRS = np.array(list(combinations(range(len(ITEMS)), 2)))


@dataclass(frozen=True)
class Cell:
    """One setting: respondents, answers of each by group, epsilon, spread of worths, unit."""

    respondents: int
    answers: tuple[int, int]
    epsilon: float
    spread: float = 0.7
    unit: str = "respondent"
    excess: str = "refuse"
    share: float = 0.5

    def replicates(self, most: int) -> int:
        return most


CELLS = [
    Cell(400, (15, 7), 2.0),
    Cell(1000, (6, 5), 2.0),
    Cell(1000, (15, 4), 1.0, share=0.2),
    Cell(3000, (15, 7), 2.0),
    Cell(800, (6, 3), 1.0, spread=2.0, unit="row"),
]


def one(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return whether the test of the group rejects, and which intervals cover."""
    worths = np.linspace(-1.0, 1.0, len(ITEMS))
    worths *= cell.spread / worths.std()
    group = (rng.random(cell.respondents) < cell.share).astype(int)
    order = np.argsort(rng.random((cell.respondents, len(PAIRS))), axis=1)
    asked = np.arange(len(PAIRS)) < np.array(cell.answers)[group][:, None]
    first, second = PAIRS[order[asked]].T
    who = np.nonzero(asked)[0]
    won = rng.random(len(who)) < 1.0 / (1.0 + np.exp(worths[second] - worths[first]))
    names = np.array(ITEMS)
    frame = pd.DataFrame(
        {
            "respondent": who,
            "item1": names[first],
            "item2": names[second],
            "outcome": np.where(won, 1, -1),
            "g": np.array(["g0", "g1"])[group[who]],
        }
    )
    unit: dict[str, Any] = {"respondent": None}
    if cell.unit == "respondent":
        most = max(cell.answers) if cell.excess == "refuse" else 6
        unit = {"respondent": "respondent", "max_rows": most, "excess": cell.excess}
    model = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ g",
        frame,
        items=ITEMS,
        ties=False,
        levels={"g": ["g0", "g1"]},
        **unit,
    )
    fit = model.fit(cell.epsilon, rng=rng)
    found = fit.wald_test_terms()["pvalue"]["g"] <= 0.05
    covered = study.covers(fit, np.concatenate((worths, np.zeros(len(ITEMS)))))
    return np.append(found, covered)


def row(cell: Cell, found: list[np.ndarray]) -> dict[str, Any]:
    table = np.array(found)
    level, most = table[:, 0].mean(), 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(table))
    coverage, floor = study.least(table[:, 1:])
    return {
        "respondents": cell.respondents,
        "share of the second group": cell.share,
        "answers of each": f"{cell.answers[0]} and {cell.answers[1]}",
        "kept": "all" if cell.excess == "refuse" else "at most 6, drawn",
        "unit": cell.unit,
        "spread of worths": cell.spread,
        "epsilon": cell.epsilon,
        "replicates": len(table),
        "level of g": f"{level:.3f}",
        "most": f"{most:.3f}",
        "mean coverage of g": f"{table[:, 7:].mean():.3f}",
        "least coverage": f"{coverage:.3f}",
        "floor": f"{floor:.3f}",
        "verdict": "holds" if level <= most and coverage >= floor else "falls short",
    }


if __name__ == "__main__":
    study.table(
        "unequal_answers",
        "Covariates under a private design if groups answer different numbers of pairs",
        "python validation/unequal_answers.py",
        CELLS,
        one,
        row,
        study.asked(__doc__, 200),
        1900,
    )
