"""Worths from first choices if respondents leave tasks unanswered.

300 respondents name the best item of 10 sets of 4 of 8 items (plan A of `sets.py`). They leave 15%
of the tasks unanswered at random, or half of them break off at a random task. Respondents see the
tasks in 30 versions, so a break-off leaves out every set equally often. Which tasks are answered is
protected as well. Statements are about all differences of two items.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import study
from sets import Cell, row, run


def cells() -> list[Cell]:
    """Return all cells."""
    return [
        Cell("A", "best", who, epsilon, silence)
        for who, epsilon, silence in product(
            ("same", "camps"), (1.0, 2.0, np.inf), ("at random", "after a break-off")
        )
    ]


def shown(cell: Cell, found: list[dict[str, object]]) -> dict[str, str]:
    """Return a row of the table, without columns for rivals."""
    columns = ("population", "epsilon", "silence", "replicates", "coverage", "worst", "floor")
    values = row(cell, found)
    return {name: values[name] for name in (*columns, "error", "identified")}


def main() -> None:
    study.table(
        "first_choices",
        "Worths from first choices with unanswered tasks",
        "python validation/first_choices.py",
        cells(),
        run,
        shown,
        study.asked(__doc__.splitlines()[0], 1000),
        9200,
    )


if __name__ == "__main__":
    main()
