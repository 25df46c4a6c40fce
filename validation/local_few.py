"""The local model with few reports: excess of the orders, and comparison with CapBorda.

Excess is the number of disagreements with the population above the minimum, in percent of all
pairs. For each number of items, epsilon and number of votes on a pair: the mean over models of the
default (sub-rankings and Kemeny's order of the shrunken fractions), of the order by the Borda
scores of the same reports, and of CapBorda with as many reports. `most` is the largest difference
between the default and the Borda order of any model, in standard errors; a number above 2 is a
loss.

Models: Mallows with phi 0.5, 0.8 and 0.95, and Plackett-Luce with items in three clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from study import asked, mean_and_error, table

import privrank as pr
from privrank.consensus.orders import by_score, kemeny, weight_against
from privrank.local import CapBorda, SubRanking
from privrank.local.estimates import release_consensus
from privrank.local.tally import Tally
from privrank.mechanisms.samples import pair_count_values
from privrank.release.names import ORDER, SCORES

COMMAND = "python validation/local_few.py"
POPULATION = 20_000
MODELS = (0.5, 0.8, 0.95, "clumps")


@dataclass(frozen=True)
class Cell:
    m: int
    epsilon: float
    votes: float

    def replicates(self, asked: int) -> int:
        return 3 * asked if self.m == 10 else asked


CELLS = [
    *(Cell(10, 1.0, votes) for votes in (0.8, 3.0)),
    *(Cell(10, 2.0, votes) for votes in (0.8, 3.0)),
    *(Cell(30, 1.0, votes) for votes in (0.3, 0.69, 1.5, 3.0)),
    Cell(30, 2.0, 0.8),
    *(Cell(m, 1.0, 0.8) for m in (20, 40)),
]


def rankings(model: float | str, m: int, n: int, rng: np.random.Generator) -> np.ndarray:
    if model != "clumps":
        return pr.Mallows(m, model).rvs(n, rng)
    utilities = -2.0 * (np.arange(m) * 3 // m) + rng.gumbel(size=(n, m))
    return np.argsort(np.argsort(-utilities, axis=1), axis=1) + 1


@cache
def population(model: float | str, m: int) -> tuple[np.ndarray, float]:
    drawn = rankings(model, m, POPULATION, np.random.default_rng(1))
    counts = pair_count_values(drawn) / POPULATION
    return counts, kemeny(counts, time_limit=5.0).score


def counted(protocol, ranks: np.ndarray, rng: np.random.Generator) -> Tally:
    reports = protocol.simulate(ranks, rng)
    cells = np.stack([reports["assignment"], reports["answer"]])
    (assignment, answer), count = np.unique(cells, axis=1, return_counts=True)
    return Tally(protocol, assignment, answer, count, {}, None, None)


def released(protocol, model: float | str, n: int, rng: np.random.Generator):
    """Return a release, and the items in positions that do not depend on their order."""
    while True:
        shuffled = rng.permutation(len(protocol.items))
        ranks = rankings(model, len(protocol.items), n, rng)[:, shuffled]
        try:
            return release_consensus(counted(protocol, ranks, rng)), shuffled
        except ValueError:  # reports that do not connect the items are refused
            continue


def run(rng: np.random.Generator, cell: Cell) -> dict[str, list[float]]:
    items = [f"item {k}" for k in range(cell.m)]
    default, cap = SubRanking(items, cell.epsilon), CapBorda(items, cell.epsilon)
    unit = 100.0 / (cell.m * (cell.m - 1) / 2)
    found: dict[str, list[float]] = {name: [] for name in ("default", "Borda", "cap")}
    for model in MODELS:
        counts, least = population(model, cell.m)
        n = respondents(cell)
        one, shuffled = released(default, model, n, rng)
        other, others = released(cap, model, n, rng)
        scores = by_score(one.values[SCORES].astype(float), one.tie_break)
        orders = {
            "default": shuffled[one.values[ORDER]],
            "Borda": shuffled[scores],
            "cap": others[other.values[ORDER]],
        }
        for name, order in orders.items():
            found[name].append(unit * (weight_against(order, counts) - least))
    return found


def respondents(cell: Cell) -> int:
    width = SubRanking([str(k) for k in range(cell.m)], cell.epsilon).width
    return max(2, round(cell.votes * cell.m * (cell.m - 1) / (width * (width - 1))))


def row(cell: Cell, found: list[dict[str, list[float]]]) -> dict[str, object]:
    every = {name: np.array([one[name] for one in found]) for name in found[0]}
    shown = {"items": cell.m, "epsilon": cell.epsilon, "votes": cell.votes, "n": respondents(cell)}
    for name in ("default", "Borda", "cap"):
        mean, error = mean_and_error(every[name].mean(axis=1))
        shown[name] = f"{mean:.2f} ({error:.2f})"
    gaps = [mean_and_error(each) for each in (every["default"] - every["Borda"]).T]
    shown["most"] = f"{max(gap / max(error, 1e-9) for gap, error in gaps):+.1f}"
    gap, error = mean_and_error((every["default"] - every["cap"]).mean(axis=1))
    shown["default - cap"] = f"{gap:+.2f} ({error:.2f})"
    by_model = every["default"].mean(axis=0), every["cap"].mean(axis=0)
    shown["by model"] = ", ".join(f"{a:.1f}/{b:.1f}" for a, b in zip(*by_model, strict=True))
    return shown


if __name__ == "__main__":
    table(
        "local_few",
        "Local model: excess of orders from few reports (percent of all pairs)",
        COMMAND,
        CELLS,
        run,
        row,
        asked(__doc__.splitlines()[0], 20),
        95_000,
    )
