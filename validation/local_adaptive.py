"""Adaptive KwikSort: its actual and predicted loss, and comparison with the default.

Each respondent answers once, with all of epsilon. Either the question is one pair that the curator
chose from earlier answers (`AdaptiveKwikSort`; the order of all answers, and the order of the sort
alone), or it is the order of items drawn beforehand, from which the default computes its order
(`SubRanking`). Other methods are KwikSort of the fractions of random pairs (Yan, Li and Liu, 2020)
and Algorithm 3 of Alabi, Ghazi, Kumar and Manurangsi (2022), as corrected: a fraction 1 / m of the
respondents is assigned to each item and answers each of its comparisons, at epsilon / 2 over 20 log
m. Excess is the number of disagreements above the minimum, in percent of all pairs, on the sample.

`neighbours` is the fraction of the population that agrees with the order of neighbours. `covered`
is the fraction of runs in which the intervals of all pairs that were asked cover simultaneously
(level 0.95, for the population). In some cells respondents do not answer, or answer late.

With PRIVRANK_SURVEYS=<folder> in the environment the study also reads sushi.csv of that folder
(rankings as ranks, one column per item), which do not follow a model.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from study import asked, mean_and_error, table

import privrank as pr
from privrank.consensus.orders import kemeny, kwiksort, pair_matrix, weight_against
from privrank.distributions.kendall import pair_probability
from privrank.local import AdaptiveKwikSort, Curator, Population, RandomPairs, SubRanking
from privrank.release.names import UNPLACED

COMMAND = "python validation/local_adaptive.py"
RIVALS = ("adaptive", "sort alone", "default", "random pairs", "Algorithm 3")


@dataclass(frozen=True)
class Cell:
    model: str
    m: int
    n: int
    phi: float
    epsilon: float
    dropout: float = 0.0
    late: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.model} m {self.m} n {self.n} phi {self.phi} epsilon {self.epsilon} "
            f"dropout {self.dropout}"
        )

    def replicates(self, number: int) -> int:
        return max(5, number // 3) if self.m > 15 else number


CELLS = [
    *(
        Cell("Mallows", m, n, phi, epsilon)
        for m, n in ((5, 500), (10, 5000), (15, 1000), (45, 5000))
        for phi in (0.75, 0.5, 0.25)
        for epsilon in (1.0, 2.0, 4.0)
    ),
    *(Cell("Mallows", 10, 5000, 0.75, 2.0, share, share) for share in (0.1, 0.3)),
]
if "PRIVRANK_SURVEYS" in os.environ:
    CELLS += [Cell("SUSHI", 10, 5000, 1.0, epsilon) for epsilon in (0.5, 1.0, 2.0, 4.0)]


@cache
def sushi() -> np.ndarray:
    return pd.read_csv(Path(os.environ["PRIVRANK_SURVEYS"]) / "sushi.csv").to_numpy()


def fractions(ranks: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(ranks.shape[1], 1)
    return pair_matrix((ranks[:, first] < ranks[:, second]).mean(axis=0))


def truth(cell: Cell, pairs: np.ndarray) -> np.ndarray:
    """Return the population's fractions: a survey is its own population."""
    if cell.model == "SUSHI":
        return pairs
    theta = -math.log(cell.phi)
    first, second = np.triu_indices(cell.m, 1)
    return pair_matrix(np.array([pair_probability(g, theta) for g in second - first]))


def of_random_pairs(ranks: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Return KwikSort's order of the answers to one random pair each."""
    m = ranks.shape[1]
    protocol = RandomPairs([str(k) for k in range(m)], epsilon)
    tally = protocol.tally(protocol.simulate(ranks, rng))
    wins = np.zeros((m, m))
    values = protocol.unpacked(tally.answer)[:, 0]
    asked_pairs = protocol.asked(tally.assignment)[:, 0]
    better = np.take_along_axis(asked_pairs, values[:, None], axis=1)[:, 0]
    np.add.at(wins, (better, asked_pairs.sum(axis=1) - better), tally.count)
    return kwiksort(wins, rng.permutation(m))


def of_algorithm_3(ranks: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Return the order of KwikSort if the respondents of an item answer all its comparisons."""
    n, m = ranks.shape
    each = epsilon / 2 / (20 * math.log(m))
    gain, people = math.tanh(each / 2), np.array_split(rng.permutation(n), m)
    noisy = np.zeros((m, m))
    for item in range(m):
        votes = np.where(ranks[people[item], item][:, None] < ranks[people[item]], 1, -1)
        kept = rng.random(votes.shape) < (1 + gain) / 2
        noisy[item] = np.where(kept, votes, -votes).sum(axis=0)
    pivots = rng.permutation(m)
    place = np.argsort(pivots)
    # the respondents of the item that is compared with the pivot, the first of the two, answer
    item = place[:, None] > place
    return kwiksort(np.where(item, noisy, -noisy.T), pivots)


def run(rng: np.random.Generator, cell: Cell) -> dict[str, float]:
    ranks = sushi() if cell.model == "SUSHI" else pr.Mallows(cell.m, cell.phi).rvs(cell.n, rng)
    pairs = fractions(ranks)
    least = kemeny(pairs, time_limit=2.0).score
    items = [str(k) for k in range(cell.m)]
    protocol = AdaptiveKwikSort(items, cell.epsilon, shuffle=int(rng.integers(2**40)))
    curator = Curator(protocol, len(ranks))
    Population(protocol, ranks, rng, dropout=cell.dropout, late=cell.late).run(curator)
    result = curator.result()
    asked_pairs = result.pairwise().dropna(subset="fraction")
    true = truth(cell, pairs)[
        asked_pairs["item1"].astype(int).to_numpy(), asked_pairs["item2"].astype(int).to_numpy()
    ]
    default = SubRanking(items, cell.epsilon)
    answering = ranks[: result.nobs]  # as many as answered, in random order
    consensus = pr.PrivateRankAggregation.from_reports(
        default.tally(default.simulate(rng.permutation(answering), rng))
    )
    orders: dict[str, Any] = {
        "adaptive": [int(name) for name in result.order],
        "sort alone": curator.sorted_places(),
        "default": [int(name) for name in consensus.order],
        "random pairs": of_random_pairs(ranks, cell.epsilon, rng),
        "Algorithm 3": of_algorithm_3(ranks, cell.epsilon, rng),
    }
    inside = (asked_pairs["all_lower"] <= true) & (true <= asked_pairs["all_upper"])
    scale = 100 / (cell.m * (cell.m - 1) / 2)
    return {
        **{
            name: scale * (weight_against(np.array(order, dtype=np.int64), pairs) - least)
            for name, order in orders.items()
        },
        "covered": float(inside.all()),
        "unplaced": result.release.plan.number(UNPLACED),
        "answers": result.nobs,
    }


def row(cell: Cell, found: list[dict[str, float]]) -> dict[str, Any]:
    line: dict[str, Any] = {
        "rankings": cell.model,
        "items": cell.m,
        "asked": cell.n,
        "phi": "" if cell.model == "SUSHI" else cell.phi,
        "epsilon": cell.epsilon,
        "dropout, late": f"{cell.dropout:g}",
        "runs": len(found),
    }
    for name in RIVALS:
        mean, error = mean_and_error([one[name] for one in found])
        line[name] = f"{mean:.3f} ({error:.3f})"
    line["neighbours"] = "" if cell.model == "SUSHI" else f"{1 / (1 + cell.phi):.2f}"
    line["covered"] = f"{np.mean([one['covered'] for one in found]):.3f}"
    line["unplaced"] = f"{np.mean([one['unplaced'] for one in found]):.2f}"
    return line


def main() -> None:
    chosen = asked(__doc__ or "", 30)
    title = "Adaptive KwikSort compared with the default of the local model"
    table("local_adaptive", title, COMMAND, CELLS, run, row, chosen, 9300)


if __name__ == "__main__":
    main()
