"""Type I error and coverage of all statements about ranks and sets.

Separation: items tied across the boundary of the top k; every rejection is an error. Homogeneity:
all worths equal. Win rates: coverage of stated 95% intervals. Rank sets: simultaneous coverage,
from top-k and Bradley-Terry fits, in surveys with rank sets for all items; `withheld` is the
fraction of other surveys, in which pair counts do not determine which items were compared.

A second table has the size of the separation test for every distribution of noise.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import study

import privrank as pr

# items, comparisons per pair, epsilon, design
CELLS = [
    (2, 20, 0.5, "public"),
    (3, 10, 0.2, "public"),
    (6, 30, 0.5, "public"),
    (6, 30, 0.5, "private"),
    (20, 4, 0.25, "public"),
    (20, 4, np.inf, "public"),
    (50, 1, 0.5, "public"),
    (50, 1, 0.5, "private"),
]

NOISES = ("laplace", "gaussian", "zero-sum-laplace", "permutohedron")
NOISE_CELLS = [
    *((2, 20, 0.5, "public", noise) for noise in NOISES),
    *((6, 30, 0.5, "public", noise) for noise in ("zero-sum-laplace", "permutohedron")),
]


def tied(
    rng: np.random.Generator,
    items: int,
    repeats: int,
    epsilon: float,
    design: str,
    noise: str = "auto",
) -> float:
    """Return the separation p-value with about half the items tied across the boundary."""
    k = max(1, items // 3)
    block = max(2, items // 2)
    theta = np.zeros(items)
    above = max(0, k - block // 2)
    theta[:above] = 1.5
    theta[above + block :] = -1.5
    frame = pr.simulate.bradley_terry(theta, repeats=repeats, rng=rng)
    model = pr.PrivateTopK(frame, k, items=range(items), respondent=None, ties=False, design=design)
    return model.fit(epsilon, target="win rate", rng=rng, **noise_arguments(noise)).pvalue


def noise_arguments(noise: str) -> dict[str, Any]:
    """Return the arguments of a fit for a distribution of noise."""
    return {"noise": noise, "delta": 1e-6 if noise == "gaussian" else 0.0}


def noise_table(replicates: int) -> None:
    """Write the table of the separation test by distribution of noise."""
    started = time.time()
    rows = []
    for number, cell in enumerate(NOISE_CELLS):
        separation = np.array(study.replicate(tied, replicates, *cell, cell=500 + 2 * number))
        rows.append(
            {
                "items": cell[0],
                "per pair": cell[1],
                "epsilon": cell[2],
                "design": cell[3],
                "noise": cell[4],
                "replicates": replicates,
                "separation, type I at .05": f"{(separation <= 0.05).mean():.4f}",
                "SE at .05": f"{np.sqrt(0.05 * 0.95 / replicates):.4f}",
            }
        )
        print(rows[-1], flush=True)
    study.write(
        "selection_noise",
        "Size of the separation test by noise distribution",
        "python validation/selection.py",
        rows,
        started,
    )


def equal(rng: np.random.Generator, items: int, repeats: int, epsilon: float, design: str) -> float:
    """Return the homogeneity p-value with all worths equal."""
    frame = pr.simulate.bradley_terry(np.zeros(items), repeats=repeats, rng=rng)
    model = pr.PrivateBTL(frame, items=range(items), respondent=None, ties=False, design=design)
    fit = model.fit(epsilon=epsilon, allow_unidentified=True, rng=rng)
    return fit.test_homogeneity().pvalue


def spread(
    rng: np.random.Generator, items: int, repeats: int, epsilon: float, design: str
) -> tuple[float, float, float]:
    """Return win-rate coverage and whether both rank sets cover; NaN if not all are stated."""
    theta = rng.standard_normal(items)
    rate = 1.0 / (1.0 + np.exp(theta[None, :] - theta[:, None]))
    truth = (rate.sum(axis=1) - 0.5) / (items - 1)
    rank = 1 + (theta[None, :] > theta[:, None]).sum(axis=1)
    frame = pr.simulate.bradley_terry(theta, repeats=repeats, rng=rng)
    model = pr.PrivateTopK(frame, 1, items=range(items), respondent=None, ties=False, design=design)
    top = model.fit(epsilon, target="win rate", rng=rng)
    sides = top.conf_int()
    covered = ((sides["lower"] <= truth) & (truth <= sides["upper"]))[top.bse.notna()]
    holds, results = [], [top]
    if design == "public":  # a selection of a private design has no pair counts
        results.append(pr.PrivateBTL.from_release(top.release))
    for result in results:
        sets = result.rank_conf_int()
        held = float(((sets["lower"] <= rank) & (rank <= sets["upper"])).all())
        holds.append(np.nan if len(covered) < items else held)
    holds = [*holds, np.nan][:2]
    return float(covered.mean()) if len(covered) else np.nan, holds[0], holds[1]


def stated(values: np.ndarray, digits: int) -> str:
    """Return the mean of the values that are stated, a dash if there are none."""
    known = values[~np.isnan(values)]
    return f"{known.mean():.{digits}f}" if len(known) else "-"


def main() -> None:
    replicates = study.arguments(__doc__, 500)
    noise_table(4 * replicates)  # quick: one test of a few items
    started = time.time()
    rows = []
    for number, cell in enumerate(CELLS):
        where = {"replicates": replicates, "cell": 300 + 10 * number}
        separation = np.array(study.replicate(tied, where["replicates"], *cell, cell=where["cell"]))
        flat = np.array(study.replicate(equal, replicates, *cell, cell=where["cell"] + 1))
        held = np.array(study.replicate(spread, replicates, *cell, cell=where["cell"] + 2))
        rows.append(
            {
                "items": cell[0],
                "per pair": cell[1],
                "epsilon": cell[2],
                "design": cell[3],
                "replicates": replicates,
                "separation, type I at .05": f"{(separation <= 0.05).mean():.4f}",
                "homogeneity, type I at .05": f"{(flat <= 0.05).mean():.4f}",
                "withheld": f"{np.isnan(held[:, 1]).mean():.3f}",
                "win rates, coverage": stated(held[:, 0], 4),
                "rank sets (win rates)": stated(held[:, 1], 3),
                "rank sets (worths)": stated(held[:, 2], 3),
                "SE at .05": f"{np.sqrt(0.05 * 0.95 / replicates):.4f}",
            }
        )
        print(rows[-1], flush=True)
    study.write(
        "selection",
        "Size of tests and coverage for top-k selections",
        "python validation/selection.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
