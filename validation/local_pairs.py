"""The local model: how often does the interval of one pair's fraction hold? By enumeration.

The votes on a pair are binomial with probability 1/2 + gain (p - 1/2), where p is the fraction of
rankings that place its first item before the second, and gain = tanh(epsilon / 2), as where
everybody orders two items. Coverage is summed over all outcomes, for p from 0 to 1 in 1,000 steps:
the least, the mean and the most of it over p, at a fixed number of votes, and at a Poisson number
of that mean, as where respondents draw their pairs. Intervals are those of Clopper and Pearson
(`exact`), the mid-p ones that privrank has for pairs one at a time, and Wilson's, all cut to
[0, 1]. `all of [0, 1]` is the mean probability that the mid-p interval excludes no p, and so cannot
miss; `worst p` is that of its least coverage.
"""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom, poisson
from study import write

from privrank.consensus.intervals import binomial_lower

COMMAND = "python validation/local_pairs.py"
ALPHA = 0.05
EPSILONS = (0.5, 1.0, 2.0, 4.0)
VOTES = (2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 50, 100, 200, 500, 1000)
MEANS = (2, 5, 10, 16, 50, 100)
P = np.linspace(0.0, 1.0, 1001)


def intervals(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return intervals for the probability of a vote, by the number of votes for the first item."""
    hits = np.arange(n + 1.0)
    found = {}
    for name, exact in (("exact", True), ("mid-p", False)):
        low = binomial_lower(hits, n - hits, ALPHA / 2, exact=exact)
        found[name] = low, 1.0 - low[::-1]
    square = float(ndtri(ALPHA / 2)) ** 2
    middle = (hits + square / 2) / (n + square)
    half = np.sqrt(square * (hits * (n - hits) / max(n, 1) + square / 4)) / (n + square)
    return found | {"Wilson": (middle - half, middle + half)}


def coverage(n: int, gain: float) -> dict[str, np.ndarray]:
    """Return by p how often intervals of n votes hold, and the mid-p one is all of [0, 1]."""
    seen = 0.5 + gain * (P - 0.5)
    mass = binom.pmf(np.arange(n + 1)[:, None], n, seen)
    found, ends = {}, intervals(n)
    for name, (low, high) in ends.items():
        held = (low[:, None] <= seen) & (seen <= high[:, None])
        found[name] = (mass * held).sum(axis=0)
    low, high = ends["mid-p"]
    found["whole"] = mass[(low <= seen[0]) & (high >= seen[-1])].sum(axis=0)
    return found


def at_random(mean: int, gain: float) -> dict[str, np.ndarray]:
    """Return the same at a Poisson number of votes."""
    last = int(poisson.isf(1e-9, mean))
    weights, found = poisson.pmf(np.arange(last + 1), mean), dict.fromkeys(coverage(1, gain), 0.0)
    for n, weight in enumerate(weights / weights.sum()):
        for name, held in coverage(n, gain).items():
            found[name] = found[name] + weight * held
    return found


def row(epsilon: float, votes: str, found: dict[str, np.ndarray]) -> dict[str, object]:
    line: dict[str, object] = {"epsilon": epsilon, "votes": votes}
    for name in ("exact", "mid-p", "Wilson"):
        held = found[name]
        line[f"{name}: least"] = f"{held.min():.3f}"
        line[f"{name}: mean"] = f"{held.mean():.3f}"
        line[f"{name}: most"] = f"{held.max():.3f}"
    line["worst p"] = f"{P[found['mid-p'].argmin()]:.3f}"
    line["all of [0, 1]"] = f"{found['whole'].mean():.3f}"
    return line


def main() -> None:
    started, rows = time.time(), []
    for epsilon in EPSILONS:
        gain = math.tanh(epsilon / 2)
        rows += [row(epsilon, str(n), coverage(n, gain)) for n in VOTES]
        rows += [row(epsilon, f"Poisson, {n}", at_random(n, gain)) for n in MEANS]
    title = "Local model: coverage of 95 % intervals of one pair, by enumeration"
    write("local_pairs", title, COMMAND, rows, started)


if __name__ == "__main__":
    main()
