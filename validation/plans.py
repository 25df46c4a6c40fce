"""Releases of a fit with private pair counts: `auto` compared with every alternative.

Private design, `pair_counts="release"`: net wins with the pair counts under every distribution of
noise, the win matrix, objective perturbation. Errors are of differences of two worths: over all
pairs of items, and for the pair with the largest error. Simulated worths are normal with standard
deviation 0.6, drawn for every data set. Respondents answer all pairs (with a fifth of the answers
missing if stated); rows answer a random pair each. Surveys are resampled by respondent, and the
worths of the survey itself are the true ones. `auto` is "best" if its error is the smallest, and
"near" if it is above that by at most 0.05, or by two standard errors of the difference. "None
helps" if the estimate of equal worths has a smaller error than any fit because of the noise.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import study

import privrank as pr
from privrank import btl
from privrank.mechanisms.comparisons import release_comparisons
from privrank.plans.choice import plan_comparisons
from privrank.plans.comparisons import Request, plan_choices, predicted_error
from privrank.release.survey import Plan

EPSILONS = (0.25, 1.0, 4.0)
SPREAD = 0.6
DRAWS = 10
"""Draws of the noise per data set."""


@dataclass(frozen=True)
class Setting:
    name: str
    unit: str
    items: int
    nobs: int
    missing: float = 0.0
    delta: float = 0.0


SIMULATED = [
    *(Setting("simulated", "respondent", m, n) for m in (3, 6, 10) for n in (100, 1000)),
    Setting("simulated, a fifth missing", "respondent", 6, 300, missing=0.2),
    Setting("simulated", "respondent", 6, 300, delta=1e-6),
    *(Setting("simulated", "row", m, n) for m in (3, 6, 10) for n in (500, 5000)),
]
SURVEYS = [
    Setting("University", "respondent", 6, 303),
    Setting("University", "row", 6, 4454),
    Setting("Immigration", "respondent", 4, 98),
    Setting("Immigration", "row", 4, 467),
]


def simulated(rng: np.random.Generator, cell: Setting) -> tuple[np.ndarray, pr.PrivateBTL]:
    m = cell.items
    truth = SPREAD * rng.standard_normal(m)
    pairs = np.array(list(combinations(range(m), 2)))
    if cell.unit == "respondent":
        person = np.repeat(np.arange(cell.nobs), len(pairs))
        pair = np.tile(pairs, (cell.nobs, 1))
    else:
        person, pair = np.arange(cell.nobs), pairs[rng.integers(len(pairs), size=cell.nobs)]
    gap = truth[pair[:, 0]] - truth[pair[:, 1]]
    outcome = np.where(rng.random(len(pair)) < 1 / (1 + np.exp(-gap)), 1.0, -1.0)
    outcome[rng.random(len(pair)) < cell.missing] = np.nan
    frame = pd.DataFrame(
        {"respondent": person, "item1": pair[:, 0], "item2": pair[:, 1], "outcome": outcome}
    )
    return truth, model(frame, range(m), cell, ties=False)


def model(frame: pd.DataFrame, items: object, cell: Setting, *, ties: bool) -> pr.PrivateBTL:
    rows = cell.items * (cell.items - 1) // 2
    people = (
        {"respondent": "respondent", "max_rows": rows}
        if cell.unit == "respondent"
        else {"respondent": None}
    )
    return pr.PrivateBTL(frame, items=items, ties=ties, pair_counts="release", **people)


def resampled(rng: np.random.Generator, cell: Setting) -> tuple[np.ndarray, pr.PrivateBTL]:
    load = {"University": pr.datasets.load_university, "Immigration": pr.datasets.load_immigration}
    survey = load[cell.name]()
    frame = survey.comparisons
    truth = model(frame, survey.items, cell, ties=True).fit(np.inf, penalty=0).params.to_numpy()
    people = frame["respondent"].unique()
    drawn = pd.DataFrame(
        {"respondent": rng.choice(people, len(people)), "copy": range(len(people))}
    )
    again = drawn.merge(frame, on="respondent").drop(columns="respondent")
    again = again.rename(columns={"copy": "respondent"})
    return truth, model(again, survey.items, cell, ties=True)


def label(plan: Plan) -> str:
    if plan.mechanism == "objective perturbation":
        return plan.mechanism
    return f"{plan.mechanism}, {plan.noise.replace('-laplace', ' Laplace')}"


def one(rng: np.random.Generator, cell: Setting, epsilon: float) -> dict[str, object]:
    """Return squared errors of all differences, by plan, best predicted first, and predictions."""
    make = simulated if cell.name.startswith("simulated") else resampled
    truth, fitted = make(rng, cell)
    encoded = fitted._encoded
    first, second = np.triu_indices(cell.items, 1)
    errors, predicted = {}, {}
    request = Request(encoded.design, epsilon, cell.delta)
    for plan in plan_choices(request):
        drawn = np.empty((DRAWS, len(first)))
        for draw in range(DRAWS):
            release = release_comparisons(
                encoded,
                plan_comparisons(encoded.design, plan, epsilon, cell.delta, "study"),
                link=plan.link,
                solver="newton",
                reader="from_release",
                budget=None,
                rng=rng,
            )
            # the fit itself: if counts connect no items a result states no difference
            off = btl.infer(release).estimate.coefficients - truth
            drawn[draw] = (off[first] - off[second]) ** 2
        errors[label(plan)] = drawn
        error = predicted_error(request, plan)
        predicted[label(plan)] = np.sqrt(2.0 * error)
    flat = float(((truth[first] - truth[second]) ** 2).mean())
    return {"errors": errors, "predicted": predicted, "flat": flat}


def compare(out: list[dict[str, object]]) -> dict[str, object]:
    """Return `auto`, the plan predicted best, and the alternative with the smallest error."""
    plans = list(out[0]["errors"])
    # by plan, data set and pair
    squares = {
        plan: np.array([each["errors"][plan].mean(axis=0) for each in out]) for plan in plans
    }
    mean = {plan: np.sqrt(square.mean()) for plan, square in squares.items()}
    worst = {plan: np.sqrt(square.mean(axis=0).max()) for plan, square in squares.items()}
    auto = plans[0]
    best = min(plans[1:], key=lambda plan: mean[plan])
    # the standard error of the ratio of two roots, from the difference of the squares
    difference = squares[auto].mean(axis=1) - squares[best].mean(axis=1)
    error = difference.std(ddof=1) / np.sqrt(len(out)) / (2.0 * mean[best] ** 2)
    ratio = mean[auto] / mean[best]
    verdict = "best" if ratio <= 1 else "near" if ratio <= 1 + max(0.05, 2 * error) else "WORSE"
    if min(mean.values()) > np.sqrt(np.mean([each["flat"] for each in out])):
        verdict = "none helps"
    return {
        "auto": auto,
        "RMSE": f"{mean[auto]:.3f}",
        "worst pair": f"{worst[auto]:.3f}",
        "predicted": f"{out[0]['predicted'][auto]:.3f}",
        "best alternative": best,
        "its RMSE": f"{mean[best]:.3f}",
        "its worst pair": f"{worst[best]:.3f}",
        "ratio": f"{ratio:.3f}",
        "SE": f"{error:.3f}",
        "verdict": verdict,
    }


def main() -> None:
    datasets = study.arguments(__doc__, 6)
    started = time.time()
    rows = []
    for number, cell in enumerate(SIMULATED + SURVEYS):
        for place, epsilon in enumerate(EPSILONS):
            out = study.replicate(
                one, datasets, cell, epsilon, cell=1100 + len(EPSILONS) * number + place
            )
            rows.append(
                {
                    "data": cell.name + (f", delta {cell.delta:g}" if cell.delta else ""),
                    "unit": cell.unit,
                    "items": cell.items,
                    "units": cell.nobs,
                    "epsilon": epsilon,
                    **compare(out),
                }
            )
            print(rows[-1], flush=True)
    study.write(
        "plans",
        "Private design with released pair counts: the default release compared with alternatives",
        "python validation/plans.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
