"""Win rates of respondents under a private design: one draw for two counts, or a split budget.

Wins and losses are released in one draw. Net wins and the number of comparisons of each item are
released in two draws, each with a share of epsilon; a fit uses these if their predicted variance is
at most 0.8 times the variance for wins and losses, and if the comparisons of items are clearly
above their noise. Each survey is released in both ways, at one epsilon, unless only wins and losses
are possible.

`people` respondents answer `rows` different pairs each, drawn at random. Worths are evenly spaced
from -1 to 1, except that the items at ranks k and k + 1 are equal. "error" is the root mean square
error of the win rates against the opponents met, and "stated" the root mean square of their
standard errors, both in hundredths. "coverage" is the mean coverage of 95% intervals over items,
and "least" the coverage for the worst item, with the coverage that the worst item may have by
chance. "rejected" is the fraction of surveys in which the selected set is falsely stated to be
separated.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import study

import privrank as pr
from privrank.plans import comparisons
from privrank.release.names import ITEM_COUNTS


@dataclass(frozen=True)
class Cell:
    """One setting: items, size of the set, respondents, rows of each, and epsilon."""

    items: int
    k: int
    people: int
    rows: int
    epsilon: float

    def __str__(self) -> str:
        """The name of the row."""
        return f"{self.items} items, {self.people} of {self.rows}, epsilon {self.epsilon:g}"


CELLS = [
    Cell(6, 2, 300, 15, 1.0),
    Cell(6, 2, 300, 15, 4.0),
    Cell(6, 2, 300, 5, 1.0),
    Cell(10, 3, 400, 20, 1.0),
    Cell(10, 3, 400, 45, 0.5),
    Cell(20, 5, 500, 30, 1.0),
]


def survey(rng: np.random.Generator, cell: Cell) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw a survey, and return the expected win rates against the opponents met as well."""
    theta = np.linspace(1.0, -1.0, cell.items)
    theta[cell.k - 1 : cell.k + 1] = theta[cell.k - 1 : cell.k + 1].mean()
    pairs = np.array(list(combinations(range(cell.items), 2)))
    drawn = rng.random((cell.people, len(pairs))).argsort(axis=1)[:, : cell.rows].ravel()
    first, second = pairs[drawn].T
    ahead = 1.0 / (1.0 + np.exp(theta[second] - theta[first]))
    outcome = np.where(rng.random(len(ahead)) < ahead, 1, -1)
    person = np.repeat(np.arange(cell.people), cell.rows)
    frame = pd.DataFrame(
        {"respondent": person, "item1": first, "item2": second, "outcome": outcome}
    )
    wins = np.bincount(first, ahead, cell.items) + np.bincount(second, 1.0 - ahead, cell.items)
    met = np.bincount(first, minlength=cell.items) + np.bincount(second, minlength=cell.items)
    return frame, wins / met


def one(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return what the default and each of the two releases find, a row each."""
    frame, true = survey(rng, cell)
    model = pr.PrivateTopK(
        frame, cell.k, items=range(cell.items), respondent="respondent", max_rows=cell.rows
    )
    found = []
    # the default, then each release by itself
    for most in (comparisons.SPLIT_NOISE, 0.0, np.inf):
        with mock.patch.object(comparisons, "SPLIT_NOISE", most):
            fit = model.fit(cell.epsilon, target="win rate", rng=rng)
        sides = fit.conf_int()
        inside = ((sides["lower"] <= true) & (true <= sides["upper"])).to_numpy()
        summed = (float(((fit.params - true) ** 2).sum()), float((fit.bse**2).sum()))
        split = ITEM_COUNTS in fit.release.parts
        found.append([float(split), *summed, float(fit.pvalue <= 0.05), *inside])
    return np.array(found)


def rows_of(cell: Cell, found: list[np.ndarray]) -> list[dict[str, Any]]:
    """Return one row for each release."""
    table = np.array(found)
    rows = []
    names = {1: "wins and losses", 2: "net wins, comparisons"}
    if table[0, 1, 0] == table[0, 2, 0]:  # comparisons do not exceed their noise clearly
        names.pop(2)
    for place, name in names.items():
        here = table[:, place]
        covered = here[:, 4:]
        rows.append(
            {
                "items": cell.items,
                "k": cell.k,
                "people": cell.people,
                "rows": cell.rows,
                "epsilon": cell.epsilon,
                "released": name,
                "default": "yes" if table[0, 0, 0] == here[0, 0] else "",
                "replicates": len(here),
                "error": f"{100 * np.sqrt(here[:, 1].mean() / cell.items):.2f}",
                "stated": f"{100 * np.sqrt(here[:, 2].mean() / cell.items):.2f}",
                "coverage": f"{covered.mean():.3f}",
                "least": f"{covered.mean(axis=0).min():.3f}",
                "floor": f"{study.floor(cell.items, len(here), 0.95):.3f}",
                "rejected": f"{here[:, 3].mean():.3f}",
            }
        )
    return rows


def main() -> None:
    import time

    asked, started, rows = study.asked(__doc__, 400), time.time(), []
    for number, cell in enumerate(CELLS):
        if any(part in str(cell) for part in asked.only):
            found = study.replicate(one, asked.replicates, cell, cell=9600 + number)
            rows += rows_of(cell, found)
            print(*rows[-2:], sep="\n", flush=True)
    if asked.only == [""]:
        study.write(
            "topk_split",
            "Win rates from joint noise and from a split budget",
            "python validation/topk_split.py",
            rows,
            started,
        )


if __name__ == "__main__":
    main()
