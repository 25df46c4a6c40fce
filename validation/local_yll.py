"""The experiments of Yan, Li and Liu (2020) on LDP-KwikSort, and privrank's default beside it.

Their consensus is KwikSort's order of fractions that respondents' answers to K random pairs give,
by randomised response (:RR) or by Laplace noise that is cut (:Lap), here as corrected.

Numbers of pairs (their Figures 3 and 4): the mean Kendall distance of the consensus from the
rankings beyond the least one, in percent of all pairs, by K and epsilon, on real rankings, which
are read from a folder that PRIVRANK_SURVEYS names (sushi.csv, turk_dots_3.csv, turk_puzzle_11.csv:
rankings as ranks, one column per item).

Mallows (their Figures 5 and 6): mean Kendall distance in percent of all pairs by items, rankings
and theta = 1 - phi, epsilon 2, K = 1; the gap is that of :RR below :Lap, in percent.

Times (their Table 3): seconds of the processor for all respondents' answers, and for the consensus.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from study import asked, mean_and_error, table, write

import privrank as pr
from privrank.consensus.orders import kemeny, kemeny_score, kwiksort
from privrank.local import RandomPairs, SubRanking
from privrank.local.estimates import release_consensus
from privrank.mechanisms.aggregation import pair_counts
from privrank.release.names import ORDER

COMMAND = "PRIVRANK_SURVEYS=<folder> python validation/local_yll.py"
SURVEYS = ("sushi", "turk_dots_3", "turk_puzzle_11")
FEW = ("1", "2", "3", "4", "m + 1", "all")
PAPER = {(45, 5000, 0.25): "13.5", (45, 5000, 0.5): "33.4", (45, 5000, 0.75): "46.5"}
"""Gaps of :RR below :Lap that the paper states."""


@dataclass(frozen=True)
class Sweep:
    data: str
    epsilon: float

    def replicates(self, asked: int) -> int:
        return asked


@dataclass(frozen=True)
class Model:
    m: int
    n: int
    theta: float

    def replicates(self, asked: int) -> int:
        return asked


SWEEPS = [Sweep(*cell) for cell in product(SURVEYS, (1.0, 2.0, 4.0, 10.0))]
MODELS = [Model(*cell) for cell in product((15, 30, 45), (2500, 5000, 7500), (0.25, 0.5, 0.75))]


@cache
def survey(name: str) -> np.ndarray:
    return pd.read_csv(Path(os.environ["PRIVRANK_SURVEYS"]) / f"{name}.csv").to_numpy()


def distance(protocol, rule: str, ranks: np.ndarray, counts: np.ndarray, rng) -> float:
    """Return the mean Kendall distance of a consensus from the rankings."""
    release = release_consensus(protocol.tally(protocol.simulate(ranks, rng)), rule)
    return kemeny_score(release.values[ORDER], counts) / len(ranks)


def sweep(rng: np.random.Generator, cell: Sweep) -> dict[str, float]:
    ranks = survey(cell.data)
    ranks = ranks[:, rng.permutation(ranks.shape[1])]
    m, counts = ranks.shape[1], pair_counts(ranks)
    items, pairs = [f"item {k}" for k in range(m)], m * (m - 1) // 2
    best = kemeny(counts).score / len(ranks)
    found = {}
    for name, k in zip(FEW, (1, 2, 3, 4, m + 1, pairs), strict=True):
        protocol = RandomPairs(items, cell.epsilon, min(k, pairs))
        found[f"K {name}"] = distance(protocol, "KwikSort", ranks, counts, rng) - best
    default = SubRanking(items, cell.epsilon)
    found["default"] = distance(default, "EB-Kemeny", ranks, counts, rng) - best
    return {name: 100.0 * lost / pairs for name, lost in found.items()}


def sweep_row(cell: Sweep, found: list[dict[str, float]]) -> dict[str, object]:
    shown: dict[str, object] = {"data": cell.data, "epsilon": cell.epsilon}
    for name in found[0]:
        mean, error = mean_and_error([one[name] for one in found])
        shown[name] = f"{mean:.3g} ({error:.2g})"
    return shown


def model(rng: np.random.Generator, cell: Model) -> dict[str, float]:
    ranks = pr.Mallows(cell.m, 1.0 - cell.theta).rvs(cell.n, rng)
    ranks = ranks[:, rng.permutation(cell.m)]
    counts, items = pair_counts(ranks), [f"item {k}" for k in range(cell.m)]
    share = 200.0 / cell.m / (cell.m - 1)
    plain = kwiksort(counts, rng.permutation(cell.m))
    return {
        "KwikSort": share * kemeny_score(plain, counts) / cell.n,
        "RR": share * distance(RandomPairs(items, 2.0), "KwikSort", ranks, counts, rng),
        "Lap": share
        * distance(RandomPairs(items, 2.0, method="laplace"), "KwikSort", ranks, counts, rng),
        "default": share * distance(SubRanking(items, 2.0), "EB-Kemeny", ranks, counts, rng),
    }


def model_row(cell: Model, found: list[dict[str, float]]) -> dict[str, object]:
    shown: dict[str, object] = {"items": cell.m, "n": cell.n, "theta": cell.theta}
    means = {name: mean_and_error([one[name] for one in found])[0] for name in found[0]}
    shown |= {name: f"{mean:.2f}" for name, mean in means.items()}
    shown["gap"] = f"{100 * (means['Lap'] - means['RR']) / means['Lap']:.1f}"
    shown["paper's gap"] = PAPER.get((cell.m, cell.n, cell.theta), "")
    return shown


def times() -> list[dict[str, object]]:
    rows = []
    rng = np.random.default_rng(1)
    for n, m in ((795, 4), (5000, 10), (5000, 45)):
        ranks = pr.Mallows(m, 0.5).rvs(n, rng)
        items = [f"item {k}" for k in range(m)]
        for name, protocol in (
            (":RR", RandomPairs(items, 2.0)),
            (":Lap", RandomPairs(items, 2.0, method="laplace")),
            ("default", SubRanking(items, 2.0)),
        ):
            rule = "EB-Kemeny" if name == "default" else "KwikSort"
            seconds = []
            for _ in range(5):
                start = time.process_time()
                reports = protocol.simulate(ranks, rng)
                middle = time.process_time()
                release_consensus(protocol.tally(reports), rule)
                seconds.append((middle - start, time.process_time() - middle))
            answers, consensus = np.min(seconds, axis=0)
            shown = {"n": n, "items": m, "protocol": name, "answers": f"{answers:.5f}"}
            rows.append({**shown, "tally and consensus": f"{consensus:.5f}"})
    return rows


if __name__ == "__main__":
    wanted, started = asked(__doc__.splitlines()[0], 20), time.time()
    if "PRIVRANK_SURVEYS" in os.environ:
        title = "LDP-KwikSort by number of pairs: excess in percent of all pairs"
        table("local_yll_pairs", title, COMMAND, SWEEPS, sweep, sweep_row, wanted, 92_000)
    title = "LDP-KwikSort on Mallows rankings: mean Kendall distance in percent of all pairs"
    table("local_yll_mallows", title, COMMAND, MODELS, model, model_row, wanted, 92_100)
    if wanted.only == [""]:
        title = "Local protocols: seconds of the processor"
        write("local_yll_times", title, COMMAND, times(), started)
