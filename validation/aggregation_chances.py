"""Rank aggregation: is P(right), the probability that a pair is ordered rightly, calibrated?

In the settings of the study of intervals, and in a wider grid that runs from items that hardly
differ to items far apart, to few rankings, to opinions that are split in two, and to items that
hardly differ beside others that differ much.
"""

from __future__ import annotations

import time

import numpy as np
from aggregation import CELLS, DELTA, drawn, facts
from study import arguments, replicate, write

import privrank as pr
from privrank.consensus.orders import pair_counts
from privrank.consensus.spacing import FEWEST_ITEMS
from privrank.consensus.statements import STATED

COMMAND = "python validation/aggregation_chances.py"
BINS = np.array([0.0, STATED, 0.97, 0.99, 1.001])
SETTINGS = tuple(cell for cell in CELLS if cell[0] >= FEWEST_ITEMS and cell[-1] != "borda")
MODELS = (
    *(("Plackett-Luce", spread) for spread in (0.03, 0.1, 0.3)),
    *(("Mallows", phi) for phi in (0.99, 0.95, 0.9)),
)
GRID = (
    *(
        (m, n, model, 1.0, DELTA, "auto")
        for m in (4, 6, 10)
        for n in (300, 3000)
        for model in MODELS
    ),
    *((m, 1000, ("Two camps", p), 1.0, DELTA, "auto") for m in (4, 8) for p in (0.505, 0.52)),
    *((m, 1000, ("Two groups", 0.5), 1.0, DELTA, "auto") for m in (4, 8)),
    (8, 1000, ("One ahead", 1.5), 1.0, DELTA, "auto"),
    *(
        (5, 100, model, 1.0, DELTA, "auto")
        for model in (("Plackett-Luce", 0.05), ("Mallows", 0.97))
    ),
    (7, 100, ("Mallows", 0.9), 1.0, DELTA, "auto"),
)


def said_and_so(rng, m, n, model, epsilon, delta, method):
    """Return, for either target, reliability, if shown, what is stated, and if pairs are right."""
    ranks, truth = drawn(rng, m, n, *model)
    observed = pair_counts(ranks) / n
    fit = pr.PrivateRankAggregation(ranks).fit(epsilon, delta, method=method, rng=rng)
    out: dict = {"noise": fit.noise_sd}
    pairs = np.triu_indices(m, 1)
    for target, real in (("population", truth), ("sample", observed)):
        result = pr.PrivateRankAggregation.from_release(fit.release, target=target)
        p = real[np.ix_(fit.places, fit.places)][pairs]
        chances, said = result.chances, np.full(len(p), np.nan)
        if chances is not None:
            said = chances[np.ix_(fit.places, fit.places)][pairs]
        out[target] = (result.reliability, chances is not None, said[p != 0.5], p[p != 0.5] > 0.5)
    return out


def calibration(found: list, target: str) -> dict:
    """Return how often chances are stated, and how those that are compare with what is so.

    The largest gap is over bins that hold at least 200 pairs, and a hundredth of all pairs, stated
    or not; its standard error allows for pairs of one replicate. The mean gap is over all bins,
    each counting by its pairs.
    """
    said = np.concatenate([one[target][2] for one in found])
    so = np.concatenate([one[target][3] for one in found])
    of = np.repeat(np.arange(len(found)), [len(one[target][2]) for one in found])
    every, stated = len(said), np.isfinite(said)
    said, so, of = said[stated], so[stated], of[stated]
    mean, worst, error = 0.0, 0.0, 0.0
    for low, high in zip(BINS, BINS[1:], strict=False):
        inside = (said >= low) & (said < high)
        if not inside.any():
            continue
        gap = float(np.mean(said[inside] - so[inside]))
        mean += abs(gap) * float(inside.mean())
        if inside.sum() >= max(200, 0.01 * every) and abs(gap) > abs(worst):
            sums = np.bincount(of[inside], said[inside] - so[inside] - gap)
            worst, error = gap, float(np.sqrt(sums @ sums)) / inside.sum()
    return {
        "target": target,
        "reliability": f"{np.median([one[target][0] for one in found]):.2f}",
        "shown": f"{np.mean([one[target][1] for one in found]):.3f}",
        "stated": f"{len(said) / every:.3f}",
        "right of those": f"{np.where(said > 0.5, so, ~so).mean():.3f}" if len(said) else "",
        "largest gap": f"{worst:+.3f}" if error else "",
        "its std err": f"{error:.3f}" if error else "",
        "mean gap": f"{mean:.3f}" if len(said) else "",
    }


def table(name: str, title: str, cells: tuple, replicates: int, seed: int) -> None:
    """Write one table, with more replicates of few items and fewer of many."""
    started = time.time()
    rows: list[dict] = []
    for number, cell in enumerate(cells):
        size = cell[0]
        share = 2.0 if size <= 8 else 1.0 if size <= 10 else 0.5 if size <= 15 else 0.125
        count = max(round(replicates * share), 20)
        found = replicate(said_and_so, count, *cell, cell=seed + number)
        for target in ("population", "sample"):
            rows.append(facts(cell, found) | calibration(found, target))
            print(rows[-1], flush=True)
    write(name, title, COMMAND, rows, started)


def main() -> None:
    replicates = arguments(__doc__.splitlines()[0], 1_000)
    title = "Rank aggregation: calibration of P(right)"
    table("aggregation_chances", title, SETTINGS, replicates, 5200)
    wide = f"{title} from items that hardly differ on"
    table("aggregation_chances_grid", wide, GRID, replicates, 5300)


if __name__ == "__main__":
    main()
