"""The local model: excess of its orders and of the orders of other methods.

Excess is the number of disagreements above the minimum, in percent of all pairs, on the sample of
5000 rankings (with the standard error of its mean). The default asks for sub-rankings and uses
Kemeny's order of the shrunken fractions. The other methods are KwikSort of the fractions estimated
by Yan, Li and Liu (2020), by randomised response and by truncated Laplace noise (their :RR and
:Lap, with the best number of pairs at this epsilon); Borda's order of the former; a local search on
the fractions of Duchi's mechanism; and the cap mechanism for Borda scores.

Rankings are from a Mallows model with phi = 1 - theta (the paper's theta). With
PRIVRANK_SURVEYS=<folder> in the environment the study also reads sushi.csv of that folder (rankings
as ranks, one column per item). Without it no table is written.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from study import asked, mean_and_error, table

import privrank as pr
from privrank.consensus.orders import kemeny, weight_against
from privrank.local import CapBorda, DuchiBall, RandomPairs, SubRanking
from privrank.local.estimates import release_consensus
from privrank.mechanisms.samples import pair_count_values
from privrank.release.names import ORDER

COMMAND = "PRIVRANK_SURVEYS=<folder> python validation/local.py"
N = 5000
DATA = (
    ("SUSHI", 10, 0.0),
    ("Mallows", 15, 0.25),
    ("Mallows", 15, 0.5),
    ("Mallows", 45, 0.25),
    ("Mallows", 45, 0.5),
    ("Mallows", 45, 0.75),
)
FAR = 3.057, 2
"""Beyond this epsilon their two pairs are better than one."""

RIVALS = ("default", "RR KwikSort", "Lap KwikSort", "RR Borda", "Duchi search", "cap")


@dataclass(frozen=True)
class Cell:
    data: str
    m: int
    theta: float
    epsilon: float

    def replicates(self, asked: int) -> int:
        return asked if self.m <= 15 else max(2, asked // 2)


CELLS = [Cell(*data, epsilon) for data, epsilon in product(DATA, (0.5, 1.0, 2.0, 4.0))]


@cache
def sushi() -> np.ndarray:
    return pd.read_csv(Path(os.environ["PRIVRANK_SURVEYS"]) / "sushi.csv").to_numpy()


def rivals(m: int, epsilon: float):
    """Return the protocol and the rule of each method."""
    items = [f"item {k}" for k in range(m)]
    pairs = FAR[1] if epsilon > FAR[0] else 1
    response = RandomPairs(items, epsilon, pairs)
    return {
        "default": (SubRanking(items, epsilon), "EB-Kemeny"),
        "RR KwikSort": (response, "KwikSort"),
        "Lap KwikSort": (RandomPairs(items, epsilon, pairs, method="laplace"), "KwikSort"),
        "RR Borda": (response, "Borda"),
        "Duchi search": (DuchiBall(items, epsilon), "local search"),
        "cap": (CapBorda(items, epsilon), "Borda"),
    }


def run(rng: np.random.Generator, cell: Cell) -> dict[str, float]:
    if cell.data == "SUSHI":
        ranks = sushi()
    else:
        ranks = pr.Mallows(cell.m, 1.0 - cell.theta).rvs(N, rng)
    # the order of the items in the list, which decides ties, is random
    ranks = ranks[:, rng.permutation(cell.m)]
    counts, found = pair_count_values(ranks), {}
    best = kemeny(counts, time_limit=5.0).score
    for name, (protocol, rule) in rivals(cell.m, cell.epsilon).items():
        release = release_consensus(protocol.tally(protocol.simulate(ranks, rng)), rule)
        lost = weight_against(release.values[ORDER], counts) - best
        found[name] = 100.0 * lost / len(ranks) / (cell.m * (cell.m - 1) / 2)
    return found


def row(cell: Cell, found: list[dict[str, float]]) -> dict[str, object]:
    shown = {"data": cell.data, "items": cell.m, "theta": cell.theta, "epsilon": cell.epsilon}
    for name in RIVALS:
        mean, error = mean_and_error([one[name] for one in found])
        shown[name] = f"{mean:.3g} ({error:.2g})"
    return shown


if __name__ == "__main__":
    wanted = asked(__doc__.splitlines()[0], 20)
    if "PRIVRANK_SURVEYS" not in os.environ:
        wanted.only = ["Mallows"]  # cells keep their numbers, and so their random numbers
    table(
        "local",
        "Local model: excess of orders for 5,000 rankings (percent of all pairs)",
        COMMAND,
        CELLS,
        run,
        row,
        wanted,
        91_000,
    )
