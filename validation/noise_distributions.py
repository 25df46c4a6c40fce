"""Distributions of noise on net wins: error on University, coverage and size.

Respondents, 6 items, all 15 pairs, public design, epsilon 1 (a tenth of it for the design effect):
mean l2 distance of the private to the non-private worths, for all of epsilon and with its share,
and the coverage of 95% intervals when respondents are resampled. Separation: simulated surveys of
respondents whose items are tied across the boundary of the top k; every rejection is an error. The
last rows are at comparison level: every answer is a unit.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import study

import privrank as pr

# largest acceptable mean distance
BARS = {"laplace": 0.14}
LAWS = ("laplace", "zero-sum-laplace", "permutohedron", "gaussian")
DELTA = 1e-6


def options(noise: str) -> dict[str, object]:
    return {"noise": noise, "delta": DELTA if noise == "gaussian" else 0.0}


def model(frame: pd.DataFrame, unit: str) -> pr.PrivateBTL:
    items = pr.datasets.load_university().items
    people = (
        {"respondent": "respondent", "max_rows": 15}
        if unit == "respondent"
        else {"respondent": None}
    )
    return pr.PrivateBTL(frame, items=items, ties=True, design="public", **people)


def distance(rng: np.random.Generator, noise: str, unit: str, dependence: str) -> float:
    """Return the l2 distance of one private fit to the non-private worths."""
    data = model(pr.datasets.load_university().comparisons, unit)
    truth = data.fit(epsilon=np.inf, penalty=0).params.to_numpy()
    fit = data.fit(epsilon=1.0, dependence=dependence, rng=rng, **options(noise))
    return float(np.linalg.norm(fit.params.to_numpy() - truth))


def coverage(rng: np.random.Generator, noise: str) -> float:
    """Return the share of worths covered when respondents are resampled."""
    frame = pr.datasets.load_university().comparisons
    truth = model(frame, "respondent").fit(epsilon=np.inf, penalty=0).params
    people = frame["respondent"].unique()
    drawn = pd.DataFrame(
        {"respondent": rng.choice(people, len(people)), "copy": range(len(people))}
    )
    again = drawn.merge(frame, on="respondent").drop(columns="respondent")
    again = again.rename(columns={"copy": "respondent"})
    sides = model(again, "respondent").fit(epsilon=1.0, rng=rng, **options(noise)).conf_int()
    return float(((sides["lower"] <= truth) & (truth <= sides["upper"])).mean())


def tied(rng: np.random.Generator, noise: str, epsilon: float) -> float:
    """Return the separation p-value with two of six items tied across the boundary."""
    theta = np.array([2.0, 1.0, 0.0, 0.0, -1.0, -2.0])
    frame = pr.simulate.bradley_terry(theta, repeats=100, rng=rng)
    frame["respondent"] = frame.groupby(["item1", "item2"], observed=True).cumcount()
    top = pr.PrivateTopK(
        frame, 3, items=range(6), ties=False, respondent="respondent", max_rows=15, design="public"
    )
    return top.fit(epsilon=epsilon, rng=rng, **options(noise)).pvalue


def main() -> None:
    replicates = study.arguments(__doc__, 400)
    started = time.time()
    rows = []
    for number, noise in enumerate(LAWS):
        cell = 900 + 10 * number
        few = max(4, replicates // 2)
        whole = study.replicate(distance, few, noise, "respondent", "none", cell=cell)
        shared = study.replicate(distance, few, noise, "respondent", "worst", cell=cell + 1)
        held = study.replicate(coverage, replicates, noise, cell=cell + 2)
        wrong = [
            np.mean(np.array(study.replicate(tied, replicates, noise, eps, cell=cell + 3)) <= 0.05)
            for eps in (0.5, 2.0)
        ]
        mean, error = study.mean_and_error(whole)
        rows.append(
            {
                "noise": noise,
                "unit": "respondent",
                "distance": f"{mean:.4f}",
                "SE": f"{error:.4f}",
                "with design effect": f"{np.mean(shared):.4f}",
                "bar": BARS.get(noise, ""),
                "met": mean <= BARS[noise] + 2 * error if noise in BARS else "",
                "coverage": f"{np.mean(held):.4f}",
                "separation, type I at .05 (eps .5, 2)": f"{wrong[0]:.4f}, {wrong[1]:.4f}",
            }
        )
        print(rows[-1], flush=True)
    for number, noise in enumerate(("laplace", "zero-sum-laplace")):
        count = max(4, replicates // 2)
        out = study.replicate(distance, count, noise, "row", "none", cell=960 + number)
        mean, error = study.mean_and_error(out)
        rows.append(
            dict.fromkeys(rows[0], "")
            | {"noise": noise, "unit": "row", "distance": f"{mean:.4f}", "SE": f"{error:.4f}"}
            | {"bar": 0.018, "met": mean <= 0.018 + 2 * error}
        )
        print(rows[-1], flush=True)
    study.write(
        "noise_distributions",
        "Noise distributions of net wins: error and coverage",
        "python validation/noise_distributions.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
