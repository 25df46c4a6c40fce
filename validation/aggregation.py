"""Rank aggregation: do intervals cover?

Rankings are drawn from a Mallows model with equally spaced items, or from Plackett-Luce models
whose log worths are drawn from a normal distribution in each replicate.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.special import expit
from study import arguments, replicate, write

import privrank as pr
from privrank.consensus.orders import weight_against
from privrank.mechanisms.samples import pair_count_values

COMMAND = "python validation/aggregation.py"
DELTA = 1e-6
# items, rankings, model, epsilon, delta, method
CELLS = (
    (2, 40, ("Mallows", 0.8), 1.0, 0.0, "kemeny"),
    (2, 40, ("Mallows", 0.8), 1.0, 0.0, "borda"),
    (3, 40, ("Mallows", 0.8), 1.0, 0.0, "pairs-laplace"),
    (3, 40, ("Mallows", 0.8), 4.0, 0.0, "kemeny"),
    (3, 300, ("Mallows", 0.8), 1.0, 0.0, "kemeny"),
    (4, 300, ("Plackett-Luce", 0.3), 1.0, 0.0, "kemeny"),
    (6, 300, ("Mallows", 0.9), 0.5, 0.0, "kemeny"),
    (6, 300, ("Mallows", 0.9), 1.0, DELTA, "auto"),
    (6, 300, ("Plackett-Luce", 0.3), 1.0, DELTA, "auto"),
    (8, 300, ("Plackett-Luce", 0.1), 1.0, 0.0, "kemeny"),
    (8, 300, ("Plackett-Luce", 0.5), 1.0, 0.0, "kemeny"),
    (8, 300, ("Mallows", 0.8), 1.0, 0.0, "kemeny"),
    (10, 1000, ("Mallows", 0.8), 1.0, 0.0, "kemeny"),
    (10, 1000, ("Mallows", 0.95), 0.5, DELTA, "auto"),
    (10, 1000, ("Plackett-Luce", 0.2), 0.5, DELTA, "auto"),
    (10, 5000, ("Mallows", 0.97), 1.0, 0.0, "auto"),
    (15, 1000, ("Mallows", 0.85), 1.0, DELTA, "auto"),
    (15, 1000, ("Mallows", 0.95), 0.5, DELTA, "auto"),
    (15, 1000, ("Mallows", 0.9), 1.0, 0.0, "pairs-laplace"),
    (15, 1000, ("Plackett-Luce", 0.5), 1.0, DELTA, "auto"),
    (45, 2000, ("Mallows", 0.97), 1.0, DELTA, "auto"),
    (45, 1000, ("Plackett-Luce", 0.2), 1.0, DELTA, "auto"),
    (10, 500, ("Mallows", 0.95), 0.5, 0.0, "borda"),
)


def drawn(rng: np.random.Generator, m: int, n: int, family: str, spread: float):
    """Return rankings and the true pairwise fractions; items are in their true order."""
    if family == "Plackett-Luce":
        worths = np.sort(rng.normal(scale=spread, size=m))[::-1]
        scores = worths + rng.gumbel(size=(n, m))
        ranks = np.argsort(np.argsort(-scores, axis=1), axis=1) + 1
        return ranks, expit(worths[:, None] - worths)
    model = pr.Mallows(m, spread)
    apart = np.array([0.5, *(model.pair_probability(0, k) for k in range(1, m))])
    gap = np.arange(m) - np.arange(m)[:, None]
    ahead = np.where(gap >= 0, apart[np.abs(gap)], 1.0 - apart[np.abs(gap)])
    return model.rvs(n, rng), ahead


def statements(rng, m, n, model, epsilon, delta, method):
    """Return coverage of the intervals of one fit."""
    ranks, truth = drawn(rng, m, n, *model)
    observed = pair_count_values(ranks) / n
    np.fill_diagonal(observed, 0.5)
    options = {"releases": "pairs"} if method == "auto" else {}
    options["score_share"] = 0.0 if method == "borda" else 0.1
    fit = pr.PrivateRankAggregation(ranks).fit(epsilon, delta, method=method, rng=rng, **options)
    out: dict[str, float] = {}
    places, (first, second) = fit.places, np.triu_indices(m, 1)
    for target, real in (("population", truth), ("sample", observed)):
        said = pr.PrivateRankAggregation.from_release(fit.release, target=target)
        scores = said.borda()
        real_scores = real.sum(axis=1)[places] - 0.5
        out[f"Borda, {target}"] = np.mean(
            (scores["lower"] <= real_scores) & (real_scores <= scores["upper"])
        )
        if fit.fractions is None:
            continue
        pairs, p = said.pairwise(), real[np.ix_(places, places)][first, second]
        out[f"pairs, {target}"] = np.mean((pairs["lower"] <= p) & (p <= pairs["upper"]))
        out[f"all pairs, {target}"] = np.all((pairs["all_lower"] <= p) & (p <= pairs["all_upper"]))
        low, high = said.score_conf_int()
        score = weight_against(places, real)
        out[f"score, {target}"] = low <= score <= high
        out["noise"] = said.noise_sd
    return out


def facts(cell: tuple, found: list) -> dict:
    """Return the first columns of a row."""
    m, n, model, epsilon, delta, method = cell
    return {
        "items": m,
        "rankings": n,
        "model": f"{model[0]} {model[1]:g}",
        "epsilon": epsilon,
        "delta": delta,
        "method": method,
        "noise sd": f"{found[0]['noise']:.3f}" if "noise" in found[0] else "",
        "replicates": len(found),
    }


def main() -> None:
    started = time.time()
    replicates = arguments(__doc__.splitlines()[0], 2_000)
    rows: list[dict] = []
    for number, cell in enumerate(CELLS):
        found = replicate(statements, replicates, *cell, cell=5000 + number)
        row = facts(cell, found)
        for what in ("pairs", "all pairs", "score", "Borda"):
            for target in ("population", "sample"):
                key = f"{what}, {target}"
                known = key in found[0]
                row[key] = f"{np.mean([one[key] for one in found]):.3f}" if known else ""
        rows.append(row)
        print(row, flush=True)
    write(
        "aggregation_statements",
        "Rank aggregation: coverage of 95% intervals",
        COMMAND,
        rows,
        started,
    )


if __name__ == "__main__":
    main()
