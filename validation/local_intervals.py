"""The local model: do intervals of pair fractions, of Borda scores and of ranks hold?

Rankings are of a Mallows model; phi = 1 is uniform. For each protocol: the share of surveys in
which the 95 % interval of a pair's fraction holds what is true, on average and of the worst pair
(beside it what the worst of as many exact ones falls below with probability .05), in which all
simultaneous ones do, in which the interval of a Borda score does, and in which no order of two
items is stated wrongly; and the share of pairs whose order is stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from study import asked, least, table

import privrank as pr
from privrank.local import DuchiBall, RandomPairs, SubRanking

COMMAND = "python validation/local_intervals.py"
PROTOCOLS = {
    "2 items": lambda items, epsilon: SubRanking(items, epsilon, size=2),
    "3 items": lambda items, epsilon: SubRanking(items, epsilon, size=3),
    "1 pair": RandomPairs,
    "3 pairs": lambda items, epsilon: RandomPairs(items, epsilon, pairs=3),
    "Duchi": DuchiBall,
}


@dataclass(frozen=True)
class Cell:
    protocol: str
    m: int
    phi: float
    n: int
    epsilon: float

    def replicates(self, asked: int) -> int:
        return asked


SETTINGS = ((5, 1.0, 500), (5, 0.5, 5000), (10, 0.5, 500), (10, 1.0, 5000))
CELLS = [
    Cell(name, m, phi, n, epsilon)
    for (m, phi, n), epsilon, name in product(SETTINGS, (0.5, 1.0, 2.0), PROTOCOLS)
]


@cache
def fractions(m: int, phi: float) -> np.ndarray:
    """Return the fraction that places the earlier of two items first, by their distance."""
    ranks = np.arange(1, m + 1)
    if phi == 1.0:
        return np.full((m, m), 0.5)
    drawn = pr.Mallows(m, phi).rvs(400_000, np.random.default_rng(1))
    found = np.array([(drawn[:, i, None] < drawn).mean(axis=0) for i in ranks - 1])
    np.fill_diagonal(found, 0.5)
    return found


def run(rng: np.random.Generator, cell: Cell) -> dict[str, np.ndarray]:
    protocol = PROTOCOLS[cell.protocol]([f"item {k}" for k in range(cell.m)], cell.epsilon)
    ranks = pr.Mallows(cell.m, cell.phi).rvs(cell.n, rng)
    fit = pr.PrivateRankAggregation.from_reports(protocol.tally(protocol.simulate(ranks, rng)))
    true, order = fractions(cell.m, cell.phi), list(fit.places)
    pairs, first_second = fit.pairwise(), np.triu_indices(cell.m, 1)
    p = true[np.ix_(order, order)][first_second]
    scores = true.sum(axis=1) - 0.5
    borda = fit.borda().loc[list(fit.items)]
    intervals = fit.rank_conf_int()
    place = np.arange(1, cell.m + 1)
    right = (intervals["lower"] <= place) & (place <= intervals["upper"])
    if cell.phi == 1.0:  # all are alike, so that no order is right
        right = (intervals["lower"] == 1) & (intervals["upper"] == cell.m)
    held = (pairs["lower"] <= p) & (p <= pairs["upper"])
    # by pair of the list, whatever place the items have
    number = np.zeros((cell.m, cell.m), dtype=bool)
    number[np.array(order)[first_second[0]], np.array(order)[first_second[1]]] = held
    return {
        "pairs": (number | number.T)[first_second],
        "all": np.array([((pairs["all_lower"] <= p) & (p <= pairs["all_upper"])).all()]),
        "scores": ((borda["lower"] <= scores) & (scores <= borda["upper"])).to_numpy(),
        "ranks": np.array([right.all()]),
        "known": np.array([(cell.m - intervals["upper"]).sum() * 2 / cell.m / (cell.m - 1)]),
    }


def row(cell: Cell, found: list[dict[str, np.ndarray]]) -> dict[str, object]:
    held = {name: np.array([one[name] for one in found]) for name in found[0]}
    worst, bound = least(held["pairs"])
    return {
        "protocol": cell.protocol,
        "items": cell.m,
        "phi": cell.phi,
        "n": cell.n,
        "epsilon": cell.epsilon,
        "pairs": f"{held['pairs'].mean():.3f}",
        "worst pair": f"{worst:.3f}",
        "floor": f"{bound:.3f}",
        "most": f"{held['pairs'].mean(axis=0).max():.3f}",
        "all pairs": f"{held['all'].mean():.3f}",
        "scores": f"{held['scores'].mean():.3f}",
        "worst score": f"{held['scores'].mean(axis=0).min():.3f}",
        "ranks": f"{held['ranks'].mean():.3f}",
        "known": f"{held['known'].mean():.2f}",
    }


if __name__ == "__main__":
    table(
        "local_intervals",
        "Local model: coverage of 95 % intervals",
        COMMAND,
        CELLS,
        run,
        row,
        asked(__doc__.splitlines()[0], 100),
        90_000,
    )
