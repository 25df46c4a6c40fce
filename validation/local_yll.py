"""The experiments of Yan, Li and Liu (2020) on LDP-KwikSort, with privrank's default.

Their consensus is KwikSort's order of fractions from respondents' answers to K random pairs, by
randomised response (:RR) or by truncated Laplace noise (:Lap), here as corrected.

Orders are compared by their excess: the mean Kendall distance of the consensus from the rankings
above the minimum, in percent of all pairs. Estimates are compared by their error rate: the
percentage of pairs whose estimated majority differs from that in all rankings. A tie of the
estimates counts half.

Real rankings are read from a folder that PRIVRANK_SURVEYS names (sushi.csv, turk_dots_3.csv,
turk_puzzle_5.csv, turk_puzzle_11.csv: rankings as ranks, one column per item).

Numbers of pairs (their Figure 3, :RR, and Figure 4, :Lap): the excess by K and epsilon.

Epsilon (their Figure 5): excess and error rate at epsilon 0.1 to 5, K = 1, with DP-KwikSort in the
central model. KwikSort without privacy finds the best order of all these surveys: its excess is 0.

Respondents: the same on TurkPuzzle by the number of respondents, a random part of all, epsilon 2.

Mallows models: mean Kendall distance in percent of all pairs by items, rankings
and theta = 1 - phi, epsilon 2, K = 1; the gap is the improvement of :RR over :Lap, in percent.

Times (their Table 3): processor seconds for all respondents' answers, and for the consensus.
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
from privrank.consensus.orders import kemeny, kwiksort, weight_against
from privrank.local import RandomPairs, SubRanking
from privrank.local.estimates import release_consensus
from privrank.mechanisms.samples import pair_count_values
from privrank.release.names import ORDER, PAIRS

COMMAND = "PRIVRANK_SURVEYS=<folder> python validation/local_yll.py"
PUZZLES = ("turk_puzzle_5", "turk_puzzle_11")
SURVEYS = ("sushi", "turk_dots_3", *PUZZLES)
METHODS = {"RR": "randomized", "Lap": "laplace"}
FEW = ("1", "2", "3", "4", "m + 1", "all")
PAPER = {(45, 5000, 0.25): "13.5", (45, 5000, 0.5): "33.4", (45, 5000, 0.75): "46.5"}
"""Gaps of :RR below :Lap that the paper states."""


def few(data: str, asked: int) -> int:
    """Return the replicates of a survey: twice as many where there are only four items."""
    return asked if data == "sushi" else 2 * asked


@dataclass(frozen=True)
class Sweep:
    data: str
    epsilon: float
    protocol: str

    def replicates(self, asked: int) -> int:
        return few(self.data, asked)


@dataclass(frozen=True)
class Level:
    data: str
    epsilon: float
    n: int | None = None

    def replicates(self, asked: int) -> int:
        return few(self.data, asked) * (1 if self.n is None else 2)


@dataclass(frozen=True)
class Model:
    m: int
    n: int
    theta: float

    def replicates(self, asked: int) -> int:
        return asked


SWEEPS = [Sweep(*cell) for cell in product(SURVEYS, (1.0, 2.0, 4.0, 10.0), METHODS)]
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
LEVELS = [Level(*cell) for cell in product(SURVEYS, EPSILONS)]
SIZES = [Level(*cell) for cell in product(PUZZLES, (2.0,), (50, 100, 200, 400, None))]
MODELS = [Model(*cell) for cell in product((15, 30, 45), (2500, 5000, 7500), (0.25, 0.5, 0.75))]


@cache
def survey(name: str) -> np.ndarray:
    return pd.read_csv(Path(os.environ["PRIVRANK_SURVEYS"]) / f"{name}.csv").to_numpy()


@cache
def least(name: str) -> float:
    """Return the mean Kendall distance of the best order from the rankings of a survey."""
    ranks = survey(name)
    return kemeny(pair_count_values(ranks)).score / len(ranks)


def distance(protocol, rule: str, ranks: np.ndarray, counts: np.ndarray, rng) -> float:
    """Return the mean Kendall distance of a consensus from the rankings."""
    release = release_consensus(protocol.tally(protocol.simulate(ranks, rng)), rule)
    return weight_against(release.values[ORDER], counts) / len(ranks)


def judged(protocol, rule: str, ranks: np.ndarray, counts: np.ndarray, rng) -> tuple[float, float]:
    """Return the mean distance from all rankings and the error rate, for the reports of some."""
    release = release_consensus(protocol.tally(protocol.simulate(ranks, rng)), rule)
    first, second = protocol.all_pairs.T
    true = np.sign(counts[first, second] - counts[second, first])
    wrong = 0.5 * np.abs(np.sign(release.values[PAIRS]) - true)
    everybody = counts[0, 1] + counts[1, 0]
    return weight_against(release.values[ORDER], counts) / everybody, float(wrong.mean())


def shuffled(name: str, rng: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    """Return the rankings of a survey with its items in a random order, and their names."""
    ranks = survey(name)
    m = ranks.shape[1]
    return ranks[:, rng.permutation(m)], [f"item {k}" for k in range(m)]


def sweep(rng: np.random.Generator, cell: Sweep) -> dict[str, float]:
    ranks, items = shuffled(cell.data, rng)
    m, counts = len(items), pair_count_values(ranks)
    pairs = m * (m - 1) // 2
    found = {}
    for name, k in zip(FEW, (1, 2, 3, 4, m + 1, pairs), strict=True):
        protocol = RandomPairs(items, cell.epsilon, min(k, pairs), method=METHODS[cell.protocol])
        found[f"K {name}"] = distance(protocol, "KwikSort", ranks, counts, rng)
    if cell.protocol == "RR":
        default = SubRanking(items, cell.epsilon)
        found["default"] = distance(default, "EB-Kemeny", ranks, counts, rng)
    return {name: 100.0 * (lost - least(cell.data)) / pairs for name, lost in found.items()}


def means(found: list[dict[str, float]]) -> dict[str, str]:
    """Return means with their standard errors."""
    shown = {}
    for name in found[0]:
        mean, error = mean_and_error([one[name] for one in found])
        shown[name] = f"{mean:.3g} ({error:.2g})"
    return shown


def sweep_row(cell: Sweep, found: list[dict[str, float]]) -> dict[str, object]:
    shown = {"data": cell.data, "epsilon": cell.epsilon, "protocol": cell.protocol}
    return shown | {"default": ""} | means(found)


def level(rng: np.random.Generator, cell: Level) -> dict[str, float]:
    """Return excess and error rates, of the reports of all respondents or of some of them."""
    ranks, items = shuffled(cell.data, rng)
    counts, pairs = pair_count_values(ranks), len(items) * (len(items) - 1) // 2
    some = ranks[rng.permutation(len(ranks))[: cell.n]]
    central = pr.PrivateRankAggregation(pd.DataFrame(some, columns=items), items=items)
    order = central.fit(cell.epsilon, method="kwiksort-hay", rng=rng).order
    score = weight_against(np.array([items.index(item) for item in order]), counts)
    found = {"DP-KwikSort": 100.0 * (score / len(ranks) - least(cell.data)) / pairs}
    errors = {}
    for name, protocol, rule in (
        ("RR", RandomPairs(items, cell.epsilon), "KwikSort"),
        ("Lap", RandomPairs(items, cell.epsilon, method="laplace"), "KwikSort"),
        ("default", SubRanking(items, cell.epsilon), "EB-Kemeny"),
    ):
        lost, wrong = judged(protocol, rule, some, counts, rng)
        found[name] = 100.0 * (lost - least(cell.data)) / pairs
        errors[f"errors, {name}"] = 100.0 * wrong
    return found | errors


def level_row(cell: Level, found: list[dict[str, float]]) -> dict[str, object]:
    shown = {"data": cell.data, "epsilon": cell.epsilon}
    return shown | {"n": cell.n or len(survey(cell.data))} | means(found)


def model(rng: np.random.Generator, cell: Model) -> dict[str, float]:
    ranks = pr.Mallows(cell.m, 1.0 - cell.theta).rvs(cell.n, rng)
    ranks = ranks[:, rng.permutation(cell.m)]
    counts, items = pair_count_values(ranks), [f"item {k}" for k in range(cell.m)]
    share = 200.0 / cell.m / (cell.m - 1)
    plain = kwiksort(counts, rng.permutation(cell.m))
    return {
        "KwikSort": share * weight_against(plain, counts) / cell.n,
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
        title = "LDP-KwikSort by number of pairs: excess (percent of all pairs)"
        table("local_yll_pairs", title, COMMAND, SWEEPS, sweep, sweep_row, wanted, 92_000)
        title = "LDP-KwikSort by epsilon: excess and error rate (percent of all pairs)"
        table("local_yll_epsilons", title, COMMAND, LEVELS, level, level_row, wanted, 92_200)
        title = (
            "LDP-KwikSort by number of respondents: excess and error rate (percent of all pairs)"
        )
        table("local_yll_sizes", title, COMMAND, SIZES, level, level_row, wanted, 92_300)
    title = "LDP-KwikSort on Mallows rankings: mean Kendall distance (percent of all pairs)"
    table("local_yll_mallows", title, COMMAND, MODELS, model, model_row, wanted, 92_100)
    if wanted.only == [""]:
        title = "Local protocols: processor time in seconds"
        write("local_yll_times", title, COMMAND, times(), started)
