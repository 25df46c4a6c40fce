"""Kernel tests of many rankings: p-values by features and by the matrix of all pairs.

For more than 5,000 rankings of 7 to 100 items `ClosenessTest` uses features, projected on public
rankings (`privrank.mechanisms.permutation`). Here both methods are applied to the same three
samples with the same permutations and without noise, so they differ in the projection alone. If
groups differ, one of the three is from a Mallows model, or from two opposite camps, in which all
pairs of items are even.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from study import arguments, replicate, write

import privrank as pr
from privrank.hypotheses.nulls import uniform_rankings
from privrank.mechanisms import closeness, permutation

ITEMS = [f"item{k}" for k in range(10)]
SIZES = 1_000, 2_000, 2_000
RELABELLINGS = 199
CELLS = (
    ("alike", 1.0),
    ("consensus", 0.994),
    ("consensus", 0.988),
    ("camps", 0.93),
    ("camps", 0.88),
)


def sample(rng: np.random.Generator, kind: str, phi: float, size: int) -> np.ndarray:
    """Return rankings of a group that differs from uniform ones, or does not."""
    if kind == "alike":
        return uniform_rankings(rng, size, len(ITEMS))
    ranks = np.asarray(pr.Mallows(ITEMS, phi=phi).rvs(size, rng))
    if kind == "camps":
        ranks[: size // 2] = len(ITEMS) + 1 - ranks[: size // 2]
    return ranks


def pvalues(rng: np.random.Generator, kind: str, phi: float) -> tuple[float, float]:
    """Return the p-value by the matrix and by features of the same samples."""
    groups = [sample(rng, kind, phi, SIZES[0])]
    groups += [uniform_rankings(rng, size, len(ITEMS)) for size in SIZES[1:]]
    data = pd.concat(
        pd.DataFrame(ranks, columns=ITEMS).assign(group=str(g)) for g, ranks in enumerate(groups)
    )
    formula, seed = " + ".join(ITEMS) + " ~ group", int(rng.integers(2**32))
    test = pr.ClosenessTest.from_formula(formula, data, levels=["0", "1", "2"])
    both = []
    for most in (sum(SIZES), 0):
        permutation.MAX_MATRIX = most
        closeness.ranking_parts.cache_clear()
        again = np.random.default_rng(seed)
        both.append(test.fit(np.inf, permutations=RELABELLINGS, rng=again).pvalue)
    return both[0], both[1]


def row(kind: str, phi: float, replicates: int, cell: int) -> dict[str, object]:
    """Return the differences of the p-values, and the rejection rates of both."""
    found = np.array(replicate(pvalues, replicates, kind, phi, cell=cell))
    apart, exact = np.abs(found[:, 0] - found[:, 1]), found[:, 0]
    chance = np.sqrt(exact * (1.0 - exact) / RELABELLINGS)
    return {
        "groups": kind,
        "phi": phi,
        "p by matrix": f"{exact.mean():.3f}",
        "p by features": f"{found[:, 1].mean():.3f}",
        "apart": f"{apart.mean():.4f}",
        "most": f"{apart.max():.4f}",
        "Monte Carlo error": f"{chance.mean():.4f}",
        "rejected by matrix": f"{(exact <= 0.05).mean():.3f}",
        "rejected by features": f"{(found[:, 1] <= 0.05).mean():.3f}",
        "replicates": replicates,
    }


def main() -> None:
    """Run the study and write its table."""
    started, replicates = time.time(), arguments(__doc__, 8)
    rows = [row(*cell, replicates, number) for number, cell in enumerate(CELLS)]
    title = "Kernel tests of 5,000 rankings: p-values by features and by the matrix of all pairs"
    write("closeness_features", title, "python validation/closeness_features.py", rows, started)


if __name__ == "__main__":
    main()
