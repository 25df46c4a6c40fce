"""Items without comparisons under a private design: how often they are ranked, and consequences.

Six items have worths from 1 to -1; a respondent answers six of the pairs asked, or a row is one
pair. The pairs asked are all pairs; all pairs without the last item; pairs within two halves of the
items; or the five pairs of neighbours, with worths from 2 to -2, in which few comparisons connect
the items. `connected` is the fraction of fits that connect items without comparisons, and therefore
rank one or state a difference across the halves. `withheld` is the fraction in which an identified
difference is not stated. `wrong` is the rate at which the 95% interval of a pair is stated and does
not cover, for the mean of the identified pairs and for the worst; a withheld interval counts as
unbounded. `coverage` is the coverage of the stated intervals alone. `ratio` is the expected number
of comparisons of an item in standard deviations of the noise.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pandas as pd
import study

import privrank as pr
from privrank.bradley_terry.equations import score_equations

ITEMS = [f"item {k}" for k in range(6)]
WORTHS = np.linspace(1.0, -1.0, 6)
FIRST, SECOND = np.triu_indices(6, 1)
ASKED = {
    "all": np.ones(15, dtype=bool),
    "all but one item's": SECOND < 5,
    "two halves": (FIRST < 3) == (SECOND < 3),
    "neighbours": SECOND == FIRST + 1,
}
CELLS = (
    ("all", "respondent", 400, 2.0),
    ("all", "respondent", 400, 1.0),
    ("all", "respondent", 400, 0.5),
    ("all but one item's", "respondent", 400, 2.0),
    ("all but one item's", "respondent", 400, 1.0),
    ("all but one item's", "row", 1000, 1.0),
    ("two halves", "respondent", 400, 2.0),
    ("two halves", "row", 1000, 1.0),
    ("neighbours", "respondent", 200, 1.0),
    ("neighbours", "respondent", 300, 1.0),
    ("neighbours", "respondent", 400, 1.0),
    ("neighbours", "respondent", 600, 1.0),
)


def worths(kind: str) -> np.ndarray:
    """Return the true worths of a design."""
    return WORTHS * (2.0 if kind == "neighbours" else 1.0)


def survey(rng: np.random.Generator, kind: str, rows: int, number: int) -> pd.DataFrame:
    """Draw answers, a number of different pairs per respondent."""
    pairs, true = np.flatnonzero(ASKED[kind]), worths(kind)
    order = rng.permuted(np.tile(pairs, (number, 1)), axis=1)[:, :rows]
    pair = order.ravel()
    won = rng.random(len(pair)) < 1.0 / (1.0 + np.exp(true[SECOND] - true[FIRST])[pair])
    return pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(number), order.shape[1]),
            "item1": np.array(ITEMS)[FIRST[pair]],
            "item2": np.array(ITEMS)[SECOND[pair]],
            "outcome": np.where(won, 1.0, -1.0),
        }
    )


def one(
    rng: np.random.Generator, kind: str, unit: str, number: int, epsilon: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the ratio, which pairs are stated, and which intervals cover."""
    person, rows = unit == "respondent", 6 if unit == "respondent" else 1
    fit = pr.PrivateBTL(
        survey(rng, kind, rows, number),
        items=ITEMS,
        respondent="respondent" if person else None,
        max_rows=rows,
    ).fit(epsilon, allow_unidentified=True, rng=rng)
    table = fit.pairwise()
    apart = worths(kind)[SECOND] - worths(kind)[FIRST]
    true = 1.0 / (1.0 + np.exp(apart))
    covered = (table["lower"] <= true) & (true <= table["upper"])
    noise = math.sqrt(5.0 * score_equations(fit.release).count_variance)
    met = 2.0 * number * min(rows, ASKED[kind].sum()) / (6 if kind != "all but one item's" else 5)
    return met / noise, table["difference"].notna().to_numpy(), covered.to_numpy()


def main() -> None:
    replicates, started, rows = study.arguments(__doc__, 300), time.time(), []
    for number, cell in enumerate(CELLS):
        out = study.replicate(one, replicates, *cell, cell=1900 + number)
        ratios, stated, covered = (np.array(part) for part in zip(*out, strict=True))
        whole = cell[0] in ("all", "neighbours")
        asked = FIRST < SECOND if whole else ASKED[cell[0]]
        by_pair = [covered[stated[:, k], k].mean() for k in np.flatnonzero(asked)]
        wrong = (stated & ~covered)[:, asked].mean(axis=0)
        rows.append(
            {
                "pairs asked": cell[0],
                "unit": cell[1],
                "units": cell[2],
                "epsilon": cell[3],
                "ratio": f"{ratios.mean():.1f}",
                "connected": f"{stated[:, ~asked].any(axis=1).mean():.4f}",
                "withheld": f"{(~stated[:, asked]).any(axis=1).mean():.4f}",
                "wrong": f"{wrong.mean():.3f}",
                "worst pair": f"{wrong.max():.3f}",
                "its bound": f"{1.0 - study.floor(int(asked.sum()), replicates, 0.95):.3f}",
                "coverage": f"{np.mean(by_pair):.3f}",
                "lowest coverage": f"{min(by_pair):.3f}",
            }
        )
        print(rows[-1], flush=True)
    study.write(
        "identified",
        "Items without comparisons under a private design",
        "python validation/identified.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
