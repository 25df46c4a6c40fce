"""Rank aggregation: the loss of `auto` relative to all other releases, and coverage of rank sets.

Orders. `auto` is compared with every release and every rule, with and without a delta: Borda totals
with K-norm or Gaussian noise; pairs with cube or Gaussian noise, with the orders of Borda,
EB-Kemeny and, up to 15 items, Kemeny from the same noisy pairs; KwikSort; and up to 7 items the
exponential mechanism. All methods use the same data and, for the same release, the same noise.
Excess is the number of disagreements above the minimum, in percent of all pairs, on the sample. The
minimum is proven if no cycle of majorities has more than 14 items. In all other cases it is the
best order found.

Ranks. The fraction of surveys in which all 95% rank sets cover, and the number of ordered pairs.

Rankings are from a Mallows model; from two camps, Mallows rankings with phi 0.5 and a fraction of
their reverses; from Plackett-Luce models with one item far ahead, or with items in three clusters;
top-10 lists; or a fair coin that exchanges the two items at the ends. With
PRIVRANK_SURVEYS=<folder> in the environment the study also reads sushi.csv of that folder (rankings
as ranks, one column per item).
"""

from __future__ import annotations

import os
import time
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from study import arguments, mean_and_error, replicate, write

import privrank as pr
from privrank.consensus.orders import by_score, consensus_of, kemeny, pair_matrix, weight_against
from privrank.mechanisms.samples import half_votes, pair_count_values
from privrank.mechanisms.spend import draw
from privrank.plans.aggregation import plan_aggregation as plan_of_method
from privrank.published import agkm22
from privrank.release.names import ORDER, PAIRS, TOTALS
from privrank.release.survey import Sample

COMMAND = "python validation/aggregation_orders.py"
DELTA = 1e-6
EPSILONS = (0.1, 0.5, 2.0)
EXACT, FEW = 15, 7  # largest numbers of items for Kemeny and the exponential mechanism
LISTED = 10
DRAWS = 5  # draws of the noise for every data set
LAWS = (
    ("Mallows", 0.5),
    ("Mallows", 0.8),
    ("Mallows", 0.95),
    ("Mallows", 1.0),
    ("two camps", 0.6),
    ("one ahead", 3.0),
    ("clumps", 1.0),
    ("best ten", 0.9),
)
SELDOM = (("Mallows", 0.95), ("one ahead", 3.0), ("best ten", 0.9))
# items, rankings, fraction of the replicates, models
SIZES = (
    (3, 50, 5, LAWS),
    (3, 1000, 5, LAWS),
    (7, 200, 4, LAWS),
    (7, 5000, 4, LAWS),
    (15, 1000, 2, LAWS),
    (15, 100_000, 1, LAWS),
    (45, 500, 1, LAWS),
    (45, 5000, 1, LAWS),
    (100, 5000, 0.5, LAWS),
    (300, 2000, 0.25, SELDOM),
)
LATER = ((25, 2000, 4, ("Mallows", 0.97)),)
COVERED = (
    ("Mallows", 0.8),
    ("Mallows", 0.95),
    ("Mallows", 1.0),
    ("two camps", 0.5),
    ("two camps", 0.6),
    ("two ends", 0.5),
    ("one ahead", 3.0),
    ("clumps", 1.0),
    ("best ten", 0.9),
    ("shared ranks", 0.9),
)
COVERED_SIZES = ((3, 50), (10, 50), (10, 1000), (40, 3000))
RELEASES = {
    "none": (np.inf, 0.0, "auto"),
    "auto": (1.0, 0.0, "auto"),
    "auto, delta": (1.0, DELTA, "auto"),
    "pairs": (1.0, 0.0, "pairs"),
    "pairs, delta": (1.0, DELTA, "pairs"),
}


@cache
def sushi() -> np.ndarray:
    return pd.read_csv(Path(os.environ["PRIVRANK_SURVEYS"]) / "sushi.csv").to_numpy()


def drawn(rng: np.random.Generator, distribution: str, value: float, m: int, n: int):
    """Return rankings with their items in the true order, and the level of each item in it."""
    up = np.arange(1, m + 1)
    if distribution == "sushi":
        return sushi(), up
    if distribution in ("one ahead", "clumps"):
        levels = (up > 1).astype(int) if distribution == "one ahead" else (up - 1) * 3 // m
        scores = -value * levels + rng.gumbel(size=(n, m))
        return np.argsort(np.argsort(-scores, axis=1), axis=1) + 1, levels
    if distribution == "two ends":
        inner = rng.permuted(np.tile(up[1:-1], (n, 1)), axis=1)
        first = np.where(rng.random((n, 1)) < value, 1, m)
        return np.hstack((first, inner, m + 1 - first)), np.zeros(m)
    ranks = pr.Mallows(m, 0.5 if distribution == "two camps" else value).rvs(n, rng)
    if distribution == "two camps":
        ranks = np.where(rng.random((n, 1)) < value, ranks, m + 1 - ranks)
        return ranks, up if value > 0.5 else np.zeros(m)
    if distribution == "shared ranks":  # three classes of items, whose members share a rank
        ranks = (ranks - 1) * 3 // m + 1
    if distribution == "best ten":
        return np.where(ranks <= LISTED, ranks, np.nan), up
    return ranks, up if value < 1.0 else np.zeros(m)


def model_of(distribution: str, ranks: np.ndarray) -> pr.PrivateRankAggregation:
    missing = "bottom" if distribution == "best ten" else None
    return pr.PrivateRankAggregation(ranks, ties=distribution == "shared ranks", missing=missing)


def orders(rng: np.random.Generator, distribution: str, value: float, m: int, n: int) -> list[dict]:
    """Return the excess of every method on one data set, for several draws of the noise."""
    ranks, _ = drawn(rng, distribution, value, m, n)
    steps, n = (2 if distribution == "best ten" else 1), len(ranks)
    if distribution == "best ten":
        counts = half_votes(
            np.where(np.isnan(ranks), 2 * m + 2, 2 * np.nan_to_num(ranks)).astype(int)
        )
    else:
        counts = pair_count_values(ranks)
    best = kemeny(counts, time_limit=0.0).score  # no limit by machine speed
    found = [noisy_orders(rng, counts, m, n, steps) for _ in range(DRAWS)]
    scores = [{k: weight_against(order, counts) for k, order in one.items()} for one in found]
    # the minimum score of larger components is not proven: use the best order found
    least = min(best, *(min(one.values()) for one in scores))
    unit = 100.0 / (n * steps * m * (m - 1) / 2)
    return [{k: unit * (score - least) for k, score in one.items()} for one in scores]


@cache
def planned(m: int, n: int, steps: int, method: str, epsilon: float, delta: float):
    sample = Sample("rankings", tuple(str(k) for k in range(m)), n, "row", 1)
    return plan_of_method(sample, epsilon, delta, method, partial=steps == 2)


def noisy_orders(rng, counts, m: int, n: int, steps: int) -> dict:
    """Return the order of every method, by epsilon, name and whether it uses a delta."""
    tie, upper, out = tuple(rng.permutation(m).tolist()), np.triu_indices(m, 1), {}
    totals = counts.sum(axis=0) + n * steps
    for epsilon in EPSILONS:
        for noise, delta in (("cube", 0.0), ("Gaussian", DELTA)):
            distribution = planned(m, n, steps, "kemeny", epsilon, delta).parts[PAIRS].noise
            if delta and type(distribution).__name__ == "CubeNoise":  # this noise is smaller here
                continue
            pairs = pair_matrix(distribution.draw(counts[upper], rng) / (n * steps))
            for rule in ("EB-Kemeny", "Borda", *(["Kemeny"] if m <= EXACT else [])):
                variance = distribution.variance / (n * steps) ** 2
                out[epsilon, f"{noise} pairs, {rule}"] = consensus_of(
                    rule, pairs, variance, tie
                ).order
        for noise, delta in (("K-norm", 0.0), ("Gaussian", DELTA)):
            plan = planned(m, n, steps, "borda", epsilon, delta)
            part = plan.parts[TOTALS]
            if delta and type(part.noise).__name__ == "PermutohedronNoise":
                continue
            noisy = draw(part, totals, rng)
            out[epsilon, f"{noise} totals, Borda"] = by_score(-noisy.astype(float), tie)
        for method in ("kwiksort", *(["exponential"] if m <= FEW else [])):
            plan = planned(m, n, steps, method, epsilon, 0.0)
            out[epsilon, method] = agkm22.order_in(plan, counts, n * steps, tie, rng)[0][ORDER]
    return out


def chosen(m: int, n: int, steps: int, epsilon: float, delta: float) -> str:
    """Return the name of the method that `auto` selects at these public numbers."""
    plan = planned(m, n, steps, "auto", epsilon, delta)
    noise = {"CubeNoise": "cube", "PermutohedronNoise": "K-norm", "DiscreteGaussian": "Gaussian"}
    kind, name = ("pairs", PAIRS) if PAIRS in plan.parts else ("totals", TOTALS)
    return f"{noise[type(plan.parts[name].noise).__name__]} {kind}, {plan.method}"


def compared(distribution: str, value: float, m: int, n: int, found: list[list[dict]]):
    """Return the rows of one cell, and the methods with a clearly smaller loss than `auto`."""
    means = [{k: float(np.mean([one[k] for one in draws])) for k in draws[0]} for draws in found]
    rows, losses, excesses = [], [], {}
    for delta, epsilon in product((0.0, DELTA), EPSILONS):
        name = chosen(m, n, 2 if distribution == "best ten" else 1, epsilon, delta)
        own = np.array([one[epsilon, name] for one in means])
        rivals = {
            k[1]: np.array([one[k] for one in means])
            for k in means[0]
            if k[0] == epsilon and k[1] != name and (delta or "Gaussian" not in k[1])
        }
        rival = min(rivals, key=lambda k: rivals[k].mean())
        gap, error = mean_and_error(own - rivals[rival])
        row = {
            "model": f"{distribution} {value:g}",
            "items": m,
            "rankings": n,
            "epsilon": epsilon,
            "delta": delta,
            "auto": name,
            "excess": "{:.4f} ({:.4f})".format(*mean_and_error(own)),
            "best rival": rival,
            "its excess": "{:.4f} ({:.4f})".format(*mean_and_error(rivals[rival])),
            "difference": f"{gap:+.4f} ({error:.4f})",
        }
        row["within"] = "yes" if gap <= max(2 * error, 0.05 * rivals[rival].mean()) else "NO"
        rows.append(row)
        if row["within"] == "NO":
            losses.append({k: v for k, v in row.items() if k != "within"})
        excesses[epsilon, delta] = own
    risen = []
    for (e, d), (f, g) in product(excesses, repeat=2):
        if e <= f and d <= g and (e, d) != (f, g):
            gap, error = mean_and_error(excesses[f, g] - excesses[e, d])
            if gap > 2 * error + 0.005:
                risen.append(
                    {"model": f"{distribution} {value:g}", "items": m, "rankings": n}
                    | {"from": f"epsilon {e:g}, delta {d:g}", "to": f"epsilon {f:g}, delta {g:g}"}
                    | {"rise": f"{gap:+.4f} ({error:.4f})"}
                )
    return rows, losses, risen


def ranks(rng: np.random.Generator, distribution: str, value: float, m: int, n: int) -> dict:
    """Return, for every release and target, whether all intervals cover and the ordered pairs."""
    data, level = drawn(rng, distribution, value, m, n)
    model, out = model_of(distribution, data), {}
    first = 1 + (level[None, :] < level[:, None]).sum(axis=1)
    last = m - (level[None, :] > level[:, None]).sum(axis=1)
    for name, (epsilon, delta, releases) in RELEASES.items():
        fit = model.fit(epsilon, delta, releases=releases, rng=rng)
        bounds = fit.rank_conf_int()
        held = (bounds["lower"] <= first) & (last <= bounds["upper"])
        out[name] = (bool(held.all()), (m - bounds["upper"]).sum() / (m * (m - 1) / 2))
        if name != "auto":
            continue
        sample = pr.PrivateRankAggregation.from_release(fit.release, target="sample")
        bounds = sample.rank_conf_int()
        exact = model.fit(np.inf, target="sample").rank_conf_int()
        held = (bounds["lower"] <= exact["lower"]) & (exact["upper"] <= bounds["upper"])
        out["auto, sample"] = (bool(held.all()), (m - bounds["upper"]).sum() / (m * (m - 1) / 2))
    return out


def order_tables(replicates: int) -> None:
    started, rows, losses, risen = time.time(), [], [], []
    cells = [
        (m, n, share, distribution)
        for m, n, share, distributions in SIZES
        for distribution in distributions
    ]
    cells += LATER
    if "PRIVRANK_SURVEYS" in os.environ:
        cells.append((10, 5000, 4, ("sushi", 0.0)))
    for number, (m, n, share, distribution) in enumerate(cells):
        if distribution[0] == "best ten" and m <= LISTED:
            continue
        count = max(round(share * replicates), 5)
        found = replicate(orders, count, *distribution, m, n, cell=5200 + number)
        for table, part in zip(
            (rows, losses, risen), compared(*distribution, m, n, found), strict=True
        ):
            table.extend(part)
        print(f"{distribution} {m} {n}: {(time.time() - started) / 60:.1f} minutes", flush=True)
    title = (
        "Rank aggregation: excess of the default relative to its best rival (percent of all pairs)"
    )
    write("aggregation_orders", title, COMMAND, rows, started, more=True)
    nothing = [{"model": "none"}]
    title = (
        "Rank aggregation: settings in which a rival has a smaller loss than the default "
        "(by 2 standard errors and 5%)"
    )
    write("aggregation_orders_rivals", title, COMMAND, losses or nothing, started, more=True)
    title = (
        "Rank aggregation: settings in which a larger epsilon or delta increases the loss "
        "(by 2 standard errors and 0.005%)"
    )
    write("aggregation_orders_rises", title, COMMAND, risen or nothing, started)


def rank_tables(replicates: int) -> None:
    started, rows = time.time(), []
    for number, ((m, n), distribution) in enumerate(product(COVERED_SIZES, COVERED)):
        if distribution[0] == "best ten" and m <= LISTED:
            continue
        count = 5 * replicates if m * n > 10_000 else 20 * replicates
        found = replicate(ranks, count, *distribution, m, n, cell=5400 + number)
        row = {
            "model": f"{distribution[0]} {distribution[1]:g}",
            "items": m,
            "rankings": n,
            "surveys": count,
        }
        for name in found[0]:
            held, known = np.mean([one[name] for one in found], axis=0)
            row[name] = f"{held:.3f} / {known:.2f}"
        rows.append(row)
        print(row, flush=True)
    title = "Rank aggregation: simultaneous coverage of 95% rank sets, and ordered pairs"
    write("aggregation_ranks", title, COMMAND, rows, started)


def main() -> None:
    replicates = arguments(__doc__.splitlines()[0], 20)
    order_tables(replicates)
    rank_tables(replicates)


if __name__ == "__main__":
    main()
