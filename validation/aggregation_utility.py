"""Rank aggregation: how many disagreements beyond the least possible, by method and epsilon?

Excess is in percent of all pairs. Scores of the consensus are not asked for (`score_share=0`);
their share costs 5 % more noise with Gaussian noise and 11 % with others. Every method sees the
same data sets, so that differences between methods are those of pairs.

Kemeny's order of noisy counts that are not shrunken (`kemeny`, `pairs-laplace`) takes minutes to
prove for more than 15 items: there a local search from Borda's order stands for it, which is
within 0.05 % of pairs.

With PRIVRANK_SURVEYS=<folder> in the environment the study also reads sushi.csv and the
turk_*.csv of that folder (rankings as ranks, one column per item). Tables go to docs/validation/;
figures are drawn from them to build/validation/.
"""

from __future__ import annotations

import csv
import math
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtr
from study import OUT, arguments, mean_and_error, replicate, write

import privrank as pr
from privrank.consensus.kemeny import kemeny
from privrank.consensus.orders import (
    borda,
    kemeny_score,
    local_search,
    order_of,
    pair_counts,
)
from privrank.consensus.rules import pair_matrix
from privrank.design import Sample
from privrank.noise import DiscreteGaussian
from privrank.ranknoise import CubeNoise
from privrank.rankplan import plan_aggregation

COMMAND = "python validation/aggregation_utility.py"
EPSILONS = (0.1, 0.5, 1.0, 2.0)
DELTA = 1e-6
# name of a column: method, delta
METHODS = {
    "auto": ("auto", 0.0),
    "auto, delta 1e-6": ("auto", DELTA),
    "borda": ("borda", 0.0),
    "kemeny, delta 1e-6": ("kemeny", DELTA),
    "pairs-laplace": ("pairs-laplace", 0.0),
    "kwiksort": ("kwiksort", 0.0),
    "kwiksort-hay": ("kwiksort-hay", 0.0),
    "exponential": ("exponential", 0.0),
}
EXACT = 15  # items up to which Kemeny's order of unshrunken noise is searched to the end
RIVALS = ("kwiksort", "kwiksort-hay", "exponential")
# items, phi of a Mallows model, share of the replicates; 5,000 rankings
MODELS = ((5, 0.95, 1), (10, 0.95, 1), (15, 0.95, 1), (45, 0.95, 4), (45, 0.75, 4), (100, 0.95, 8))

# The default's excess in a prototype with real-valued noise, by what is released, at EPSILONS,
# with its number of replicates; its last digits are rounded. They are taken for replicates of the
# noise alone, on one data set per model, as it departs from these results by more than noise in
# both directions on small excesses of Mallows data, and not on the survey.
PROTOTYPE = {
    "sushi": (250, {
        "cube": (".137", ".016", ".005", ".001"),
        "Borda": (".055", ".038", ".039", ".039"),
        "Gaussian": (".104", ".017", ".005", ".001"),
    }),
    "Mallows, phi 0.95, 10": (250, {
        "cube": (".57", ".028", ".007", ".000"),
        "Borda": (".222", ".011", ".003", ".000"),
        "Gaussian": (".42", ".029", ".009", ".001"),
    }),
    "Mallows, phi 0.95, 15": (250, {
        "cube": ("1.14", ".079", ".021", ".008"),
        "Borda": (".317", ".019", ".011", ".010"),
        "Gaussian": (".51", ".033", ".012", ".005"),
    }),
    "Mallows, phi 0.95, 45": (100, {
        "Borda": ("1.18", ".069", ".017", ".006"),
        "Gaussian": (".68", ".043", ".012", ".004"),
    }),
    "Mallows, phi 0.75, 45": (100, {
        "Borda": ("1.37", ".058", ".002", ".000"),
        "Gaussian": (".42", ".006", ".000", ".000"),
    }),
    "Mallows, phi 0.95, 100": (25, {
        "Borda": ("3.6", ".22", ".062", ".017"),
        "Gaussian": ("1.0", ".060", ".017", ".005"),
    }),
}  # fmt: skip


def public(m: int, n: int) -> Sample:
    return Sample("rankings", tuple(str(k) for k in range(m)), n, "row", 1)


def excesses(rng: np.random.Generator, model: pr.PrivateRankAggregation, counts: np.ndarray):
    """Return the excess of every method and epsilon on one data set, in percent of pairs."""
    m = len(counts)
    n, pairs = counts[0, 1] + counts[1, 0], m * (m - 1) / 2
    least = kemeny(counts).score
    found = {}
    for name, (method, delta) in METHODS.items():
        if method == "exponential" and m > 20:  # as many as its sampler takes
            continue
        for epsilon in EPSILONS:
            if method in ("kemeny", "pairs-laplace") and m > EXACT:
                order = searched(rng, counts, epsilon, delta, method)
            else:
                order = model.fit(epsilon, delta, method=method, score_share=0, rng=rng).places
            found[name, epsilon] = 100 * (kemeny_score(order, counts) - least) / (n * pairs)
            if method == "auto":  # the noise drawn anew, to tell its part from that of the data
                order = model.fit(epsilon, delta, score_share=0, rng=rng).places
                again = 100 * (kemeny_score(order, counts) - least) / (n * pairs)
                found[f"{name}, again", epsilon] = again
    found["random order", math.inf] = (
        100 * (kemeny_score(rng.permutation(m), counts) - least) / (n * pairs)
    )
    return found


def searched(rng, counts: np.ndarray, epsilon: float, delta: float, method: str) -> np.ndarray:
    """Return what local search finds in the noisy counts that this method would release."""
    m, n = len(counts), int(counts[0, 1] + counts[1, 0])
    law = plan_aggregation(public(m, n), epsilon, delta, method, 0.0).law
    pairs = pair_matrix(law.draw(counts[np.triu_indices(m, 1)], rng) / n)
    return local_search(order_of(borda(pairs)), pairs)


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


def release_of(m: int, n: int, epsilon: float, delta: float) -> str:
    """Return what `auto` releases at these public numbers."""
    law = plan_aggregation(public(m, n), epsilon, delta, "auto", 0.0).law
    kinds = {CubeNoise: "cube", DiscreteGaussian: "Gaussian"}
    return kinds.get(type(law), "Borda")


def in_errors(mean: float, error: float) -> float:
    """Return a difference in standard errors, 0 where neither differs from the other at all."""
    if error == 0.0:
        return 0.0 if mean == 0.0 else math.copysign(math.inf, mean)
    return mean / error


def comparison(name: str, m: int, n: int, found: list) -> list[dict]:
    """Return, for each epsilon and delta, the default beside the prototype and beside rivals."""
    rows = []
    runs, known = PROTOTYPE.get(name, PROTOTYPE.get(f"{name}, {m}", (0, {})))
    for column, delta in (("auto", 0.0), ("auto, delta 1e-6", DELTA)):
        for number, epsilon in enumerate(EPSILONS):
            first, again = (
                np.array([one[name, epsilon] for one in found])
                for name in (column, f"{column}, again")
            )
            values = (first + again) / 2
            mean, error = mean_and_error(values)
            kind = release_of(m, n, epsilon, delta)
            row = {
                "data": name,
                "items": m,
                "epsilon": epsilon,
                "delta": delta,
                "released": kind,
                "excess": f"{mean:.4f} ({error:.4f})",
                "prototype": "",
                "errors apart": "",
                "p": math.nan,
                "met": "",
            }
            if kind in known:
                printed = known[kind][number]
                rounding = 10.0 ** -len(printed.partition(".")[2]) / math.sqrt(12)
                of_data = max(float(np.cov(first, again)[0, 1]), 0.0)
                of_noise = max(float(first.var(ddof=1)) - of_data, 0.0)
                both = math.hypot(error, math.sqrt(of_data + of_noise / runs), rounding)
                apart = in_errors(mean - float(printed), both)
                row |= {"prototype": printed, "errors apart": f"{apart:+.1f}"}
                row["p"] = 1.0 - float(ndtr(apart))
            worst = -math.inf
            for rival in RIVALS:
                if (rival, epsilon) in found[0]:
                    other = values - np.array([one[rival, epsilon] for one in found])
                    worst = max(worst, in_errors(*mean_and_error(other)))
            row["errors from best rival"] = f"{worst:+.1f}"
            row["beaten by a rival"] = "no" if worst <= 2.0 else "YES"
            rows.append(row)
    return rows


def judged(rows: list[dict]) -> list[dict]:
    """Say which cells are worse than the prototype's, by Holm's procedure at 0.05 over all."""
    order = sorted((row["p"], k) for k, row in enumerate(rows) if not math.isnan(row["p"]))
    holds = True
    for rank, (p, k) in enumerate(order):
        holds = holds and p <= 0.05 / (len(order) - rank)
        rows[k]["met"] = "NO" if holds else "yes"
    return [{key: value for key, value in row.items() if key != "p"} for row in rows]


def optimum(name: str, ranks: np.ndarray) -> dict:
    """Return the best order of a survey beside what is published of it."""
    counts, n = pair_counts(ranks), len(ranks)
    best, by_borda = kemeny(counts), order_of(borda(counts))
    least, other = best.score / n, kemeny_score(by_borda, counts) / n
    row = {
        "data": name,
        "items": ranks.shape[1],
        "rankings": n,
        "least score": f"{least:.4f}",
        "proven": "yes" if best.proven else "NO",
        "Borda's score": f"{other:.4f}",
        "order (columns)": " ".join(str(k + 1) for k in best.order),
    }
    if name == "sushi":
        row["expected"] = "15.3896, Borda 15.4072"
        met = (round(least, 4), round(other, 4)) == (15.3896, 15.4072)
    else:  # the columns stand in the true order
        row["expected"] = "1 2 3 4, Borda too"
        met = best.order.tolist() == by_borda.tolist() == [0, 1, 2, 3]
    return row | {"met": "yes" if met and best.proven else "NO"}


def read(name: str) -> list[dict]:
    path = OUT / f"{name}.csv"
    if not path.exists():
        return []
    with path.open() as handle:
        return list(csv.DictReader(handle))


def draw() -> None:
    """Draw the tables of excess: by epsilon, a panel per data set; by items, one per epsilon."""
    from matplotlib import pyplot

    rows = [row for row in read("aggregation_excess") if row["method"] != "random order"]
    surveys = [row for row in read("aggregation_surveys") if row["data"] == "sushi"]
    by_data: dict[str, list[dict]] = {}
    for row in [*surveys, *rows]:
        if row["method"] != "random order":
            by_data.setdefault(f"{row['data']}, m = {row['items']}", []).append(row)
    by_epsilon = {
        f"Mallows, phi 0.95, epsilon {epsilon:g}": [
            row for row in rows if row["data"] == "Mallows, phi 0.95"
        ]
        for epsilon in EPSILONS
    }
    methods = list(METHODS)
    colours = dict(zip(methods, pyplot.get_cmap("tab10").colors, strict=False))
    least = 0.0005  # a mean of less is drawn there: it is 0 to the digits of the table

    def panel(axis, title: str, lines: dict[str, tuple[list, list]], label: str) -> None:
        for method, (x, y) in lines.items():
            if len(x) > 1:
                own = method.startswith("auto")
                axis.plot(
                    x,
                    np.maximum(y, least),
                    marker="o",
                    ms=4 if own else 3,
                    lw=2.2 if own else 1.0,
                    ls="--" if "delta" in method else "-",
                    color=colours[method],
                )
        axis.set(xscale="log", yscale="log", ylim=(least * 0.8, 40), xlabel=label)
        axis.set_title(title, fontsize="medium")
        axis.minorticks_off()

    def finish(figure, axes, name: str, title: str) -> None:
        for axis in axes[:, 0]:
            axis.set_ylabel("excess, % of pairs")
            axis.set_yticks(
                [least, 0.001, 0.01, 0.1, 1, 10], ["< .0005", ".001", ".01", ".1", "1", "10"]
            )
        lines = [
            pyplot.Line2D(
                [], [], color=colours[k], marker="o", ms=3, ls="--" if "delta" in k else "-"
            )
            for k in methods
        ]
        figure.legend(lines, methods, fontsize="small", frameon=False, loc="outside right center")
        figure.suptitle(title, fontsize="medium")
        folder = OUT.parent.parent / "build" / "validation"
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / f"{name}.png", dpi=150)
        pyplot.close(figure)

    count = len(by_data)
    wide = 4 if count > 3 else count
    figure, axes = pyplot.subplots(
        -(-count // wide), wide, figsize=(13, 6.4), sharey=True, squeeze=False, layout="constrained"
    )
    for axis, (title, inside) in zip(axes.flat, by_data.items(), strict=False):
        lines = {
            row["method"]: (
                list(EPSILONS),
                [float(row[f"epsilon {epsilon:g}"].split()[0]) for epsilon in EPSILONS],
            )
            for row in inside
        }
        panel(axis, title, lines, "epsilon")
        axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    finish(figure, axes, "aggregation_by_epsilon", "Disagreements beyond the least")

    figure, axes = pyplot.subplots(
        1, len(EPSILONS), figsize=(13, 3.8), sharey=True, squeeze=False, layout="constrained"
    )
    for axis, epsilon, (title, inside) in zip(axes.flat, EPSILONS, by_epsilon.items(), strict=True):
        lines = {}
        for method in methods:
            own = [row for row in inside if row["method"] == method]
            lines[method] = (
                [int(row["items"]) for row in own],
                [float(row[f"epsilon {epsilon:g}"].split()[0]) for row in own],
            )
        panel(axis, title, lines, "items")
        axis.set_xticks([5, 10, 15, 45, 100], ["5", "10", "15", "45", "100"])
    finish(figure, axes, "aggregation_by_items", "Disagreements beyond the least, 5,000 rankings")


def main() -> None:
    replicates = arguments(__doc__.splitlines()[0], 600)
    title = "Rank aggregation: disagreements beyond the least, percent of pairs (standard errors)"
    beside = "Rank aggregation: the default beside a prototype and beside published methods"
    started, rows, cells = time.time(), [], []
    for number, (m, phi, divisor) in enumerate(MODELS):
        found = replicate(of_model, max(replicates // divisor, 10), m, phi, cell=5100 + number)
        rows += table(f"Mallows, phi {phi:g}", m, 5000, found)
        cells += comparison(f"Mallows, phi {phi:g}", m, 5000, found)
        print(f"{m} items, phi {phi}: {time.time() - started:.0f} s", flush=True)
    write("aggregation_excess", title, COMMAND, rows, started)
    write("aggregation_targets", beside, COMMAND, judged(cells), started)

    folder = os.environ.get("PRIVRANK_SURVEYS")
    if folder:
        started, rows, cells, best = time.time(), [], [], []
        command = f"PRIVRANK_SURVEYS=... {COMMAND}"
        paths = [Path(folder) / "sushi.csv", *sorted(Path(folder).glob("turk_*.csv"))]
        for number, path in enumerate(paths):
            ranks = pd.read_csv(path).to_numpy()
            best.append(optimum(path.stem, ranks))
            count = max(replicates // (1 if path.stem == "sushi" else 3), 10)
            found = replicate(of_survey, count, ranks, cell=5200 + number)
            n, m = ranks.shape
            rows += table(path.stem, m, n, found)
            cells += comparison(path.stem, m, n, found)
        write(
            "aggregation_optima",
            "Rank aggregation: exact Kemeny orders of published surveys",
            command,
            best,
            started,
        )
        assert all(row["met"] == "yes" for row in best), "an optimum is not the published one"
        write("aggregation_surveys", title, command, rows, started)
        write("aggregation_survey_targets", beside, command, judged(cells), started)
    else:
        print("No surveys: name a folder of rankings with PRIVRANK_SURVEYS to add them.")
    draw()


if __name__ == "__main__":
    main()
