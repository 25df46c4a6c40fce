"""Rank aggregation: how good are the consensus orders, and do the statements about them hold?

Excess is the number of disagreements beyond the least possible, in percent of all pairs. Scores
of the consensus are not asked for there (`score_share=0`); their share costs 5 % more noise with
Gaussian noise and 11 % with others. With PRIVRANK_SURVEYS=<folder> in the environment the study
also reads sushi.csv and the turk_*.csv of that folder (rankings as ranks, one column per item).
"""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from study import arguments, mean_and_error, replicate, write

import privrank as pr
from privrank.consensus.kemeny import kemeny
from privrank.consensus.orders import borda, kemeny_score, order_of, pair_counts

COMMAND = "python validation/aggregation.py"
EPSILONS = (0.1, 0.5, 1.0, 2.0)
DELTA = 1e-6
# name of a column: method, delta, largest number of items
METHODS = {
    "auto": ("auto", 0.0, 100),
    "auto, delta 1e-6": ("auto", DELTA, 100),
    "borda": ("borda", 0.0, 100),
    "kemeny, delta 1e-6": ("kemeny", DELTA, 15),
    "pairs-laplace": ("pairs-laplace", 0.0, 15),
    "kwiksort": ("kwiksort", 0.0, 100),
    "kwiksort-hay": ("kwiksort-hay", 0.0, 100),
    "exponential": ("exponential", 0.0, 15),
}
# items, phi of a Mallows model, share of the replicates; 5,000 rankings
MODELS = ((5, 0.95, 1), (10, 0.95, 1), (15, 0.95, 1), (45, 0.95, 3), (45, 0.75, 3), (100, 0.95, 8))
# items, rankings, phi, epsilon, delta: what is said of pairs, scores and orders
CELLS = (
    (3, 300, 0.8, 1.0, 0.0, "kemeny"),
    (6, 300, 0.9, 0.5, 0.0, "kemeny"),
    (6, 300, 0.9, 1.0, DELTA, "auto"),
    (10, 1000, 0.95, 0.5, DELTA, "auto"),
    (10, 5000, 0.97, 1.0, 0.0, "auto"),
    (15, 1000, 0.95, 0.5, DELTA, "auto"),
    (15, 1000, 0.9, 1.0, 0.0, "pairs-laplace"),
    (45, 2000, 0.97, 1.0, DELTA, "auto"),
    (10, 500, 0.95, 0.5, 0.0, "borda"),
)


def excesses(rng: np.random.Generator, model: pr.PrivateRankAggregation, counts: np.ndarray):
    """Return the excess of every method and epsilon on one data set, in percent of pairs."""
    m = len(counts)
    n, pairs = counts[0, 1] + counts[1, 0], m * (m - 1) / 2
    least = kemeny(counts).score
    found = {}
    for name, (method, delta, largest) in METHODS.items():
        if m > largest:
            continue
        for epsilon in EPSILONS:
            fit = model.fit(epsilon, delta, method=method, score_share=0, rng=rng)
            found[name, epsilon] = 100 * (kemeny_score(fit.places, counts) - least) / (n * pairs)
    found["random order", math.inf] = (
        100 * (kemeny_score(rng.permutation(m), counts) - least) / (n * pairs)
    )
    return found


def of_model(rng: np.random.Generator, m: int, phi: float):
    ranks = pr.Mallows(m, phi).rvs(5000, rng)
    return excesses(rng, pr.PrivateRankAggregation(ranks), pair_counts(ranks))


def of_survey(rng: np.random.Generator, ranks: np.ndarray):
    return excesses(rng, pr.PrivateRankAggregation(ranks), pair_counts(ranks))


def table(name: str, m: int, n: int, found: list) -> list[dict]:
    rows = []
    for column in ("random order", *METHODS):
        row = {"data": name, "items": m, "rankings": n, "method": column}
        for epsilon in EPSILONS:
            key = (column, math.inf if column == "random order" else epsilon)
            if key in found[0]:
                mean, error = mean_and_error([one[key] for one in found])
                row[f"epsilon {epsilon:g}"] = f"{mean:.3f} ({error:.3f})"
        if len(row) > 4:
            rows.append(row)
    return rows


def statements(rng, m, n, phi, epsilon, delta, method):
    """Return coverage of the intervals of one fit, and its chances beside what is so."""
    model = pr.Mallows(m, phi)
    ranks = model.rvs(n, rng)
    # items stand in the order of the centre, and only their distance matters
    apart = [0.5, *(model.pair_probability(0, k) for k in range(1, m))]
    gap = np.arange(m) - np.arange(m)[:, None]
    truth = np.where(gap >= 0, np.take(apart, np.abs(gap)), 1.0 - np.take(apart, np.abs(gap)))
    observed = pair_counts(ranks) / n
    np.fill_diagonal(observed, 0.5)
    fit = pr.PrivateRankAggregation(ranks).fit(epsilon, delta, method=method, rng=rng)
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
        score = kemeny_score(places, real)
        out[f"score, {target}"] = low <= score <= high
        decided = p != 0.5
        out[f"chances, {target}"] = (pairs["probability"].to_numpy()[decided], p[decided] > 0.5)
        out["noise"] = said.noise_sd
    return out


def calibration(found: list, target: str) -> str:
    """Return the largest gap, over bins of chances, between their mean and the share that is so."""
    said = np.concatenate([one[f"chances, {target}"][0] for one in found])
    so = np.concatenate([one[f"chances, {target}"][1] for one in found])
    worst, bins = 0.0, np.array([0.0, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.001])
    for low, high in zip(bins, bins[1:], strict=False):
        inside = (said >= low) & (said < high)
        if inside.sum() >= 200:
            gap = float(said[inside].mean() - so[inside].mean())
            worst = gap if abs(gap) > abs(worst) else worst
    return f"{worst:+.3f}"


def main() -> None:
    started = time.time()
    replicates = arguments(__doc__, 2_000)
    rows: list[dict] = []
    for number, (m, n, phi, epsilon, delta, method) in enumerate(CELLS):
        count = replicates if m < 45 else max(replicates // 4, 20)
        found = replicate(statements, count, m, n, phi, epsilon, delta, method, cell=5000 + number)
        row = {
            "items": m,
            "rankings": n,
            "phi": phi,
            "epsilon": epsilon,
            "delta": delta,
            "method": method,
            "noise sd": f"{found[0]['noise']:.3f}" if "noise" in found[0] else "",
            "replicates": count,
        }
        for what in ("pairs", "all pairs", "score", "Borda"):
            for target in ("population", "sample"):
                key = f"{what}, {target}"
                known = key in found[0]
                row[key] = f"{np.mean([one[key] for one in found]):.3f}" if known else ""
        for target in ("population", "sample"):
            known = f"chances, {target}" in found[0]
            row[f"P(right), {target}"] = calibration(found, target) if known else ""
        rows.append(row)
        print(row, flush=True)
    write(
        "aggregation_statements",
        "Rank aggregation: coverage of 95 % intervals, calibration of P(right)",
        COMMAND,
        rows,
        started,
    )

    started, rows = time.time(), []
    for number, (m, phi, divisor) in enumerate(MODELS):
        count = max(replicates // (10 * divisor), 10)
        found = replicate(of_model, count, m, phi, cell=5100 + number)
        rows += table(f"Mallows, phi {phi:g}", m, 5000, found)
        print(f"{m} items, phi {phi}: {time.time() - started:.0f} s", flush=True)
    title = "Rank aggregation: disagreements beyond the least, percent of pairs (standard errors)"
    write("aggregation_excess", title, COMMAND, rows, started)

    folder = os.environ.get("PRIVRANK_SURVEYS")
    if not folder:
        print("No surveys: name a folder of rankings with PRIVRANK_SURVEYS to add them.")
        return
    started, rows = time.time(), []
    for number, path in enumerate(
        [Path(folder) / "sushi.csv", *sorted(Path(folder).glob("turk_*.csv"))]
    ):
        ranks = pd.read_csv(path).to_numpy()
        counts, (n, m) = pair_counts(ranks), ranks.shape
        best, by_borda = kemeny(counts), order_of(borda(counts))
        print(
            f"{path.stem}: least {best.score / n:.4f} at {best.order.tolist()}, proven "
            f"{best.proven}; Borda {kemeny_score(by_borda, counts) / n:.4f}"
        )
        if path.stem == "sushi":
            assert (round(best.score / n, 4), best.proven) == (15.3896, True)
            assert round(kemeny_score(by_borda, counts) / n, 4) == 15.4072
        else:  # the columns stand in the true order
            assert best.order.tolist() == by_borda.tolist() == [0, 1, 2, 3]
        found = replicate(of_survey, max(replicates // 10, 10), ranks, cell=5200 + number)
        rows += table(path.stem, m, n, found)
    write("aggregation_surveys", title, f"PRIVRANK_SURVEYS=... {COMMAND}", rows, started)


if __name__ == "__main__":
    main()
