"""Items that nobody compared, under a private design: how often a fit ranks one, and what it costs.

Six items with worths from 1 to -1; a respondent answers six of the pairs that are asked, or a row
is one pair. Asked are all pairs, all but those of the last item, or those within two halves of the
items. `missed` is the share of fits that connect items which nobody compared, so that one is ranked
or a difference across the halves is stated; `withheld` the share in which a difference that was
compared is not stated. Coverage is that of 95 % intervals of the pairs that are stated, with the
worst pair; `ratio` is how many standard deviations of noise an item's expected comparisons are.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pandas as pd
import study

import privrank as pr
from privrank.bradley_terry.score import score_equations

ITEMS = [f"item {k}" for k in range(6)]
WORTHS = np.linspace(1.0, -1.0, 6)
FIRST, SECOND = np.triu_indices(6, 1)
ASKED = {
    "all": np.ones(15, dtype=bool),
    "all but one item's": SECOND < 5,
    "two halves": (FIRST < 3) == (SECOND < 3),
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
)


def survey(rng: np.random.Generator, asked: np.ndarray, rows: int, number: int) -> pd.DataFrame:
    """Draw answers, so many of different pairs by respondent."""
    pairs = np.flatnonzero(asked)
    order = rng.permuted(np.tile(pairs, (number, 1)), axis=1)[:, :rows]
    pair = order.ravel()
    won = rng.random(len(pair)) < 1.0 / (1.0 + np.exp(WORTHS[SECOND] - WORTHS[FIRST])[pair])
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
        survey(rng, ASKED[kind], rows, number),
        items=ITEMS,
        respondent="respondent" if person else None,
        max_rows=rows,
    ).fit(epsilon, rng=rng)
    table = fit.pairwise()
    true = 1.0 / (1.0 + np.exp(WORTHS[SECOND] - WORTHS[FIRST]))
    covered = (table["lower"] <= true) & (true <= table["upper"])
    noise = math.sqrt(5.0 * score_equations(fit.release).count_variance)
    met = 2.0 * number * rows / (6 if kind != "all but one item's" else 5)
    return met / noise, table["difference"].notna().to_numpy(), covered.to_numpy()


def main() -> None:
    replicates, started, rows = study.arguments(__doc__, 300), time.time(), []
    for number, cell in enumerate(CELLS):
        out = study.replicate(one, replicates, *cell, cell=1900 + number)
        ratios, stated, covered = (np.array(part) for part in zip(*out, strict=True))
        asked = FIRST < SECOND
        if cell[0] != "all":
            asked = ASKED[cell[0]]
        by_pair = [covered[stated[:, k], k].mean() for k in np.flatnonzero(asked)]
        rows.append(
            {
                "pairs asked": cell[0],
                "unit": cell[1],
                "units": cell[2],
                "epsilon": cell[3],
                "ratio": f"{ratios.mean():.1f}",
                "missed": f"{stated[:, ~asked].any(axis=1).mean():.4f}",
                "withheld": f"{(~stated[:, asked]).any(axis=1).mean():.4f}",
                "coverage": f"{np.mean(by_pair):.3f}",
                "worst pair": f"{min(by_pair):.3f}",
                "its floor": f"{study.floor(int(asked.sum()), replicates, 0.95):.3f}",
            }
        )
        print(rows[-1], flush=True)
    study.write(
        "identified",
        "Items that nobody compared, under a private design",
        f"python validation/identified.py --replicates {replicates}",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
