"""Size of tests of closeness if groups differ in the number of rows per respondent.

Every row has the same distribution, and rows of one respondent are independent; a group of 50 and
one of 450. "1 / 3": one row each in the small group and three in the large one; "mixed": one or two
against one, two or three, at random. A test of respondents' mean rows would reject here, because
means of three rows vary less than single rows. "most" is 0.05 plus two standard errors.
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pandas as pd
from study import arguments, replicate, write

import privrank as pr

SIZES, ALPHA = (50, 450), 0.05
LABELS, ITEMS = ["x", "y"], list("abcd")
ROWS = {"1 / 1": ((1, 1), (1, 1)), "1 / 3": ((1, 1), (3, 3)), "mixed": ((1, 2), (1, 3))}


def rejects(rng: np.random.Generator, kind: str, rows: str, epsilon: float) -> bool:
    each = [
        rng.integers(low, high + 1, size)
        for size, (low, high) in zip(SIZES, ROWS[rows], strict=True)
    ]
    who = np.repeat(np.arange(sum(SIZES)), np.concatenate(each))
    frame = pd.DataFrame({"who": who, "group": np.where(who < SIZES[0], *LABELS)})
    if kind == "choices":
        frame["choice"] = rng.choice(ITEMS, len(who), p=[0.4, 0.3, 0.2, 0.1])
        formula, declared = "choice ~ group", {"categories": ITEMS}
    else:
        frame[ITEMS] = pr.Mallows(4, 0.8).rvs(len(who), rng)
        formula, declared = "a + b + c + d ~ group", {}
    test = pr.ClosenessTest.from_formula(
        formula, frame, levels=LABELS, respondent="who", max_rows=3, **declared
    )
    return bool(test.fit(epsilon, permutations=199, rng=rng).reject)


def main() -> None:
    started, rows = time.time(), []
    replicates = arguments(__doc__, 400)
    settings = product(("choices", "rankings"), ROWS, (0.5, 2.0, np.inf))
    for cell, (kind, activity, epsilon) in enumerate(settings, 7100):
        found = replicate(rejects, replicates, kind, activity, epsilon, cell=cell)
        rows.append(
            {
                "data": kind,
                "rows": activity,
                "epsilon": f"{epsilon:g}",
                "replicates": len(found),
                "level": f"{np.mean(found):.4f}",
                "most": f"{ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / len(found)):.4f}",
            }
        )
        print(rows[-1], f"{time.time() - started:.0f} s", flush=True)
    command = "python validation/closeness_activity.py"
    title = "Size of tests of closeness if groups differ in activity"
    write("closeness_activity", title, command, rows, started)


if __name__ == "__main__":
    main()
