"""Rank sets: simultaneous coverage, and size relative to Bonferroni's sets.

Worths and win rates: respondents compare 15 pairs each (10 of 20 items) under a public design, with
worths evenly spaced over 1.2, or tied. Borda scores, for the population and for the sample, and
local reports: rankings from a Mallows model with phi 0.9, or a fair coin between two opposite
rankings, which ties all items. Epsilon is 1, and 2 for local reports. A set covers if it contains
all ranks that its item shares with tied items, and `hold` is the fraction of surveys in which all
sets cover. If all items are tied, a set without some rank does not cover.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from study import asked, floor, table

import privrank as pr
from privrank.bradley_terry import contrasts
from privrank.hypotheses import interval as ranksets
from privrank.local import SubRanking
from privrank.results import aggregation, topk

COMMAND = "python validation/rank_sets.py"
COMPUTED = {"worths": contrasts, "win rates": topk}


@dataclass(frozen=True)
class Cell:
    ranks: str
    items: int
    respondents: int
    tied: bool

    def replicates(self, asked: int) -> int:
        return asked if self.items < 20 else max(asked // 4, 1)


KINDS = ("worths", "win rates", "population", "sample", "reports")
SIZES = ((6, 600), (10, 1500), (20, 4000))
CELLS = [
    Cell(kind, items, respondents, tied)
    for kind, (items, respondents), tied in product(KINDS, SIZES, (False, True))
]


def first_step(values: Any, identified: Any, certain: Any) -> Any:
    """Return Bonferroni's sets, which are the sets of the first step."""
    return ranksets.rank_sets(values, identified, lambda left: certain(int(identified.sum())))


def compared(rng: np.random.Generator, cell: Cell) -> tuple[Any, np.ndarray]:
    """Return a fit of comparisons, and the worths."""
    worths = np.linspace(0.6, -0.6, cell.items) * (not cell.tied)
    first, second = np.triu_indices(cell.items, 1)
    rows = 15 if cell.items < 20 else 10
    taken = np.argsort(rng.random((cell.respondents, len(first))), axis=1)[:, :rows].ravel()
    first, second = first[taken], second[taken]
    won = rng.random(len(taken)) < 1.0 / (1.0 + np.exp(worths[second] - worths[first]))
    frame = pd.DataFrame({"item1": first, "item2": second, "outcome": np.where(won, 1, -1)})
    frame["respondent"] = np.repeat(np.arange(cell.respondents), rows)
    facts: dict[str, Any] = {"items": range(cell.items), "respondent": "respondent"}
    facts |= {"max_rows": rows, "ties": False, "design": "public"}
    if cell.ranks == "worths":
        return pr.PrivateBTL(frame, **facts).fit(1.0, rng=rng), worths
    return pr.PrivateTopK(frame, 1, **facts).fit(1.0, rng=rng), worths


def ranked(rng: np.random.Generator, cell: Cell) -> tuple[Any, np.ndarray]:
    """Return a consensus of rankings, and numbers in the order of the mean ranks."""
    up = np.arange(1, cell.items + 1)
    ranks = pr.Mallows(cell.items, 0.9).rvs(cell.respondents, rng)
    if cell.tied:
        ranks = np.where(rng.random((cell.respondents, 1)) < 0.5, up, up[::-1])
    true = -up * (not cell.tied)
    if cell.ranks == "reports":
        protocol = SubRanking(range(cell.items), 2.0)
        tally = protocol.tally(protocol.simulate(ranks, rng))
        return pr.PrivateRankAggregation.from_reports(tally), true
    if cell.ranks == "sample":
        true = -ranks.sum(axis=0)
    model = pr.PrivateRankAggregation(ranks)
    return model.fit(1.0, method="borda", target=cell.ranks, rng=rng), true


def run(rng: np.random.Generator, cell: Cell) -> tuple[bool, float, float]:
    """Return whether all sets cover, their mean size and the mean size of Bonferroni's sets."""
    result, true = (compared if cell.ranks in COMPUTED else ranked)(rng, cell)
    sets = result.rank_conf_int().to_numpy()
    with patch.object(COMPUTED.get(cell.ranks, aggregation), "rank_sets", first_step):
        wider = result.rank_conf_int().to_numpy()
    best = 1 + (true > true[:, None]).sum(axis=1)
    last = cell.items - (true < true[:, None]).sum(axis=1)
    held = (sets[:, 0] <= best).all() and (last <= sets[:, 1]).all()
    size, before = (1.0 + np.ptp(ends, axis=1).mean() for ends in (sets, wider))
    return bool(held), float(size), float(before)


def row(cell: Cell, found: list[tuple[bool, float, float]]) -> dict[str, str]:
    """Return a row of the table."""
    hold, size, before = np.array(found).mean(axis=0)
    return {
        "ranks by": cell.ranks,
        "items": str(cell.items),
        "respondents": str(cell.respondents),
        "tied": "yes" if cell.tied else "no",
        "replicates": str(len(found)),
        "hold": f"{hold:.3f}",
        "its floor": f"{floor(1, len(found), 0.95):.3f}",
        "mean size": f"{size:.2f}",
        "Bonferroni's": f"{before:.2f}",
    }


def main() -> None:
    settings = asked(__doc__ or "", 150)
    table(
        "rank_sets",
        "Rank sets: simultaneous coverage and size",
        COMMAND,
        CELLS,
        run,
        row,
        settings,
        7700,
    )


if __name__ == "__main__":
    main()
