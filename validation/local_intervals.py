"""The local model: coverage of pairwise fractions, Borda scores and rank sets.

Rankings are from a Mallows model; phi = 1 is uniform, and at 0 all are equal. A survey whose
reports do not connect the items is refused, and drawn again. For each protocol the table has the
coverage of 95% intervals of pairwise fractions, on average, for the worst pair (with the 5%
quantile of the worst of as many exact intervals) and for the best pair; the fraction of these
intervals that are equal to [0, 1] (`open`); the coverage of all simultaneous intervals and of the
intervals of Borda scores; the fraction of surveys without a wrongly stated order of two items; and
the fraction of pairs whose order is stated. The first cells have few reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from study import asked, least, table

import privrank as pr
from privrank.local import CapBorda, DuchiBall, RandomPairs, SubRanking
from privrank.local.estimates import release_consensus
from privrank.local.protocols import Protocol
from privrank.local.tally import Tally

COMMAND = "python validation/local_intervals.py"
ALPHA = 0.05
PROTOCOLS = {
    "default": SubRanking,
    "2 items": lambda items, epsilon: SubRanking(items, epsilon, size=2),
    "3 items": lambda items, epsilon: SubRanking(items, epsilon, size=3),
    "1 pair": RandomPairs,
    "3 pairs": lambda items, epsilon: RandomPairs(items, epsilon, pairs=3),
    "Duchi": DuchiBall,
    "cap": CapBorda,
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


FEW = ((4, 6), (4, 20), (4, 50))
CELLS = [
    *(
        Cell("default", m, phi, n, epsilon)
        for (m, n), epsilon, phi in product(FEW, (1.0, 4.0, 8.0), (1.0, 0.5, 0.0))
    ),
    *(
        Cell(name, 8, phi, n, 1.0)
        for name, n, phi in product(("Duchi", "cap"), (2, 20), (1.0, 0.0))
    ),
    *(
        Cell("default", 12, phi, n, epsilon)
        for n, epsilon, phi in product((100, 400), (1.0, 8.0), (1.0, 0.0))
    ),
    Cell("3 pairs", 4, 1.0, 20, 4.0),
    *(Cell(name, 10, 0.5, 500, 1.0) for name in list(PROTOCOLS)[1:]),
    *(Cell(name, 5, 0.5, 5000, 2.0) for name in list(PROTOCOLS)[1:]),
]


@cache
def fractions(m: int, phi: float) -> np.ndarray:
    """Return the fraction that places the earlier of two items first, by their distance."""
    ranks = np.arange(1, m + 1)
    if phi == 1.0:
        return np.full((m, m), 0.5)
    drawn = rankings(m, phi, 400_000, np.random.default_rng(1))
    found = np.array([(drawn[:, i, None] < drawn).mean(axis=0) for i in ranks - 1])
    np.fill_diagonal(found, 0.5)
    return found


def rankings(m: int, phi: float, n: int, rng: np.random.Generator) -> np.ndarray:
    if phi == 0.0:
        return np.tile(np.arange(1, m + 1), (n, 1))
    return pr.Mallows(m, phi).rvs(n, rng)


def counted(protocol: Protocol, ranks: np.ndarray, rng: np.random.Generator) -> Tally:
    """Return the tally of the reports of these respondents."""
    reports = protocol.simulate(ranks, rng)
    cells = np.stack([reports["assignment"], reports["answer"]])
    (assignment, answer), count = np.unique(cells, axis=1, return_counts=True)
    return Tally(protocol, assignment, answer, count, {}, None, None)


def run(rng: np.random.Generator, cell: Cell) -> dict[str, np.ndarray]:
    protocol = PROTOCOLS[cell.protocol]([f"item {k}" for k in range(cell.m)], cell.epsilon)
    while True:
        tally = counted(protocol, rankings(cell.m, cell.phi, cell.n, rng), rng)
        try:  # intervals do not depend on the order: use the fastest
            release = release_consensus(tally, "Borda")
            break
        except ValueError:
            continue
    fit = pr.PrivateRankAggregation.from_release(release)
    true = fractions(cell.m, cell.phi)
    scores = true.sum(axis=1) - 0.5
    low, high = fit.stated.score_bounds(ALPHA, "population")
    intervals = fit.rank_conf_int()
    place = np.arange(1, cell.m + 1)
    right = (intervals["lower"] <= place) & (place <= intervals["upper"])
    if cell.phi == 1.0:  # all are equal, so no order is correct
        right = (intervals["lower"] == 1) & (intervals["upper"] == cell.m)
    found = {
        "scores": (low <= scores) & (scores <= high),
        "ranks": np.array([right.all()]),
        "known": np.array([(cell.m - intervals["upper"]).sum() * 2 / cell.m / (cell.m - 1)]),
    }
    if fit.fractions is None:
        return found
    pairs = np.triu_indices(cell.m, 1)
    for name, together in (("pairs", False), ("all", True)):
        ends = fit.stated.fraction_bounds(ALPHA, "population", together)
        low, high = (end[pairs] for end in ends)
        found[name] = (low <= true[pairs]) & (true[pairs] <= high)
        if not together:
            found["open"] = (low == 0) & (high == 1)
    found["all"] = found["all"].all(keepdims=True)
    return found


def row(cell: Cell, found: list[dict[str, np.ndarray]]) -> dict[str, object]:
    held = {name: np.array([one[name] for one in found]) for name in found[0]}
    about_pairs = dict.fromkeys(("pairs", "worst pair", "floor", "most", "open", "all pairs"), "")
    if "pairs" in held:
        worst, bound = least(held["pairs"])
        about_pairs = {
            "pairs": f"{held['pairs'].mean():.3f}",
            "worst pair": f"{worst:.3f}",
            "floor": f"{bound:.3f}",
            "most": f"{held['pairs'].mean(axis=0).max():.3f}",
            "open": f"{held['open'].mean():.2f}",
            "all pairs": f"{held['all'].mean():.3f}",
        }
    return {
        "protocol": cell.protocol,
        "items": cell.m,
        "phi": cell.phi,
        "n": cell.n,
        "epsilon": cell.epsilon,
        **about_pairs,
        "scores": f"{held['scores'].mean():.3f}",
        "worst score": f"{held['scores'].mean(axis=0).min():.3f}",
        "ranks": f"{held['ranks'].mean():.3f}",
        "known": f"{held['known'].mean():.2f}",
    }


if __name__ == "__main__":
    table(
        "local_intervals",
        "Local model: coverage of 95% intervals",
        COMMAND,
        CELLS,
        run,
        row,
        asked(__doc__.splitlines()[0], 400),
        90_000,
    )
