"""Refusals before a fit that would identify few worths: their accuracy.

Surveys of random pairs under a private design whose pair counts are released, by unit, items,
comparisons per pair and epsilon. Respondents answer a third of the pairs each, at most ten.
"predicted" is the probability, from public numbers, that less than half of the worths are
identified; "found" is the fraction of such fits. A fit is refused if the predicted probability is
above one half, and warns above 0.05. A cell holds if refused fits fail in at least half of the
surveys, and fits without refusal and warning in at most 0.05, both up to two standard errors; and
if `BTLPower` gives power 0 for refused fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import study

import privrank as pr
from privrank.plans.choice import plan_comparisons, probably_unidentified
from privrank.plans.comparisons import Request, plan_fit
from privrank.release.survey import Design


@dataclass(frozen=True)
class Cell:
    """One setting: unit, items, comparisons of each pair, and epsilon."""

    unit: str
    items: int
    each: int
    epsilon: float

    @property
    def pairs(self) -> int:
        return self.items * (self.items - 1) // 2

    @property
    def rows(self) -> int:
        """Rows of a unit."""
        return 1 if self.unit == "row" else max(2, min(self.pairs // 3, 10))

    @property
    def nobs(self) -> int:
        return max(self.each * self.pairs // self.rows, 1)

    def replicates(self, most: int) -> int:
        return most

    def __str__(self) -> str:
        return f"{self.unit}, {self.items} items, {self.each} of each pair, epsilon {self.epsilon}"


CELLS = [
    Cell(unit, items, each, epsilon)
    for unit in ("row", "respondent")
    for items in (4, 6, 10, 20, 40)
    for epsilon in (0.3, 1.0, 3.0)
    for each in (1, 2, 5, 10, 20, 40, 80)
]


def survey(rng: np.random.Generator, cell: Cell) -> pd.DataFrame:
    """Draw a survey of different pairs for each unit."""
    first, second = np.triu_indices(cell.items, 1)
    pair = rng.integers(0, cell.pairs, cell.nobs)
    if cell.rows > 1:
        drawn = rng.random((cell.nobs, cell.pairs))
        pair = np.argpartition(drawn, cell.rows, axis=1)[:, : cell.rows].ravel()
    worths = np.linspace(1.0, -1.0, cell.items)
    chance = 1.0 / (1.0 + np.exp(worths[second[pair]] - worths[first[pair]]))
    return pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(cell.nobs), cell.rows),
            "item1": first[pair],
            "item2": second[pair],
            "outcome": np.where(rng.random(len(pair)) < chance, 1, -1),
        }
    )


def predicted(cell: Cell) -> float:
    """Return the probability on which the refusal depends."""
    names = tuple(map(str, range(cell.items)))
    design = Design(names, cell.nobs, cell.unit, cell.rows, True, False, "private", None)  # type: ignore[arg-type]
    choice = plan_fit(Request(design, cell.epsilon))
    return probably_unidentified(
        design, plan_comparisons(design, choice, cell.epsilon, 0.0, "study")
    )


def one(rng: np.random.Generator, cell: Cell) -> float:
    """Return whether a fit identifies less than half of the worths."""
    people: dict[str, Any] = {"respondent": None}
    if cell.unit == "respondent":
        people = {"respondent": "respondent", "max_rows": cell.rows}
    model = pr.PrivateBTL(survey(rng, cell), items=range(cell.items), **people)
    fit = model.fit(cell.epsilon, allow_unidentified=True, rng=rng)
    return float(fit.params.notna().mean() < 0.5)


def row(cell: Cell, found: list[float]) -> dict[str, Any]:
    failing, share, error = predicted(cell), float(np.mean(found)), 2.0 / np.sqrt(len(found))
    plan = pr.power.BTLPower(
        items=cell.items,
        unit=cell.unit,
        max_rows=cell.rows,
        replicates=20,  # type: ignore[arg-type]
    )
    power = float(plan.power(nobs=cell.nobs, epsilon=cell.epsilon, contrast=6.0))
    refused, silent = failing > 0.5, failing <= 0.05
    holds = not (refused and share < 0.5 - 0.5 * error)
    holds &= not (silent and share > 0.05 + 0.218 * error)
    holds &= not (refused and power > 0)
    return {
        "unit": cell.unit,
        "items": cell.items,
        "of each pair": cell.each,
        "epsilon": cell.epsilon,
        "replicates": len(found),
        "predicted": f"{failing:.2f}",
        "found": f"{share:.2f}",
        "fit": "refused" if refused else "silent" if silent else "warns",
        "power of 6": f"{power:.2f}",
        "verdict": "holds" if holds else "does not hold",
    }


def verdict(rows: list[dict[str, Any]]) -> str:
    fits = [row["fit"] for row in rows]
    kinds = ", ".join(f"{fits.count(kind)} {kind}" for kind in ("refused", "warns", "silent"))
    failed = sum(row["verdict"] != "holds" for row in rows)
    return f"Of {len(rows)} cells: {kinds}. {failed} do not hold."


if __name__ == "__main__":
    study.table(
        "refusals",
        "Fits that are refused before budget is spent",
        "python validation/refusals.py",
        CELLS,
        one,
        row,
        study.asked(__doc__, 100),
        9200,
        verdict,
    )
