"""The surveys of Cai, Chakraborty and Wang (2023): privrank and their algorithms.

Figures 4 to 7: University and Immigration, by epsilon with all answers, and at epsilon 1 by the
fraction p of comparisons kept. There are four measures: l2 and l-infinity distance to the worths
without privacy (or penalty), the fraction of the top two that is selected, and the fraction of
items at their position. The reference is the same method without privacy on the same comparisons:
the study measures the loss due to privacy, not the loss due to fewer comparisons. The authors' code
keeps or drops whole pairs of items, after which many worths do not exist; here each comparison is
kept on its own.

Ties are half a win for each item (their Remark 3). The authors' code for the surveys is not
comparable with privrank: its ridge, 2 sqrt(n log n / L) with L respondents, is not private at
lambda = 8 / epsilon (the table of targets has its actual epsilon), and its noise on win rates is
half of the noise that a reversed answer requires. The study shows the ridge 1 / epsilon and raw
wins with noise of scale 2 / epsilon. privrank's private design declares the number of comparisons
per pair (like the targets). Respondents answer a public questionnaire, and their fits use a tenth
of epsilon for the design effect unless a row states otherwise.

Tables go to docs/validation/, figures to build/validation/.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import study
from ccw import (
    COUNTING,
    PRIVATE,
    PUBLIC,
    RESPONDENT,
    SMALL_RIDGE,
    Tally,
    best_first,
    draw,
    estimate,
    noisy_wins,
    shown,
    small_ridge,
    target,
)

import privrank as pr
from privrank.privacy.sensitivity import UnitSensitivity, objective_loss

EPSILONS = (0.5, 1.0, 2.5, 5.0)
SHARES = (0.2, 0.4, 0.6, 0.8)
QUESTIONS = {"university": 15, "immigration": 6}
TOP = 2
WHOLE = f"{RESPONDENT}, no design effect"
METHODS = (SMALL_RIDGE, COUNTING, PRIVATE, PUBLIC, RESPONDENT, WHOLE)
MEASURES = ("distance", "distance of the ridge fit", "top two", "in place", "largest")

# distances at EPSILONS with all answers; for respondents, with noise on a sphere
TARGETS = {
    "university": {
        SMALL_RIDGE: (0.118, 0.058, 0.024, 0.012),
        PRIVATE: (0.064, 0.033, 0.013, 0.007),
        PUBLIC: (0.030, 0.015, 0.007, 0.005),
        WHOLE: (0.215, 0.108, 0.044, 0.021),
    },
    "immigration": {
        SMALL_RIDGE: (0.508, 0.226, 0.093, 0.045),
        PRIVATE: (0.217, 0.113, 0.048, 0.026),
        PUBLIC: (0.113, 0.058, 0.026, 0.016),
        WHOLE: (0.356, 0.180, 0.072, 0.038),
    },
}


def answers(survey: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the comparisons that were answered, and the items."""
    data = getattr(pr.datasets, f"load_{survey}")()
    return data.comparisons.dropna(subset="outcome"), data.items


def one(rng: np.random.Generator, survey: str, share: float, epsilons: tuple) -> np.ndarray:
    """Return the measures of every method at every epsilon, on one subsample."""
    everything, items = answers(survey)
    frame = everything[rng.random(len(everything)) < share] if share < 1 else everything
    codes = (frame[name].cat.codes.to_numpy() for name in ("item1", "item2"))
    tally = Tally(*(code.astype(np.int64) for code in codes), frame["outcome"], len(items))
    declared = frame.groupby(["item1", "item2"], observed=True).size().to_dict()
    asked = {"items": items, "respondent": "respondent", "ties": True}
    asked["max_rows"] = QUESTIONS[survey]
    rows = {"items": items, "respondent": None, "ties": True}
    public = pr.PrivateBTL(frame, design="public", **rows)
    models = {
        PRIVATE: (pr.PrivateBTL(frame, pair_counts=declared, **rows), "auto"),
        PUBLIC: (public, "auto"),
        RESPONDENT: (pr.PrivateBTL(frame, design="public", **asked), "auto"),
        WHOLE: (pr.PrivateBTL(frame, design="public", **asked), "none"),
    }
    worths = public.fit(epsilon=np.inf, penalty=0).params.to_numpy()
    out = np.full((len(epsilons), len(METHODS), len(MEASURES)), np.nan)

    def order(scores: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
        found, right = best_first(rng, scores), best_first(rng, truth)
        return float(np.isin(found[:TOP], right[:TOP]).mean()), float((found == right).mean())

    def distance(found: np.ndarray) -> float:
        return float(np.linalg.norm(found - worths))

    def largest(found: np.ndarray) -> float:
        return float(np.abs(found - worths).max())

    for cells, epsilon in zip(out, epsilons, strict=True):
        theirs, _ = estimate(rng, tally, epsilon, small_ridge(epsilon))
        cells[0] = distance(theirs), distance(theirs), *order(theirs, worths), largest(theirs)
        cells[1, 2:4] = order(noisy_wins(rng, tally, epsilon), tally.wins)
        for method, (model, effect) in models.items():
            fit = model.fit(epsilon=epsilon, dependence=effect, rng=rng)
            cells[METHODS.index(method)] = (
                distance(fit.params.to_numpy()),
                distance(fit.estimate.first),
                *order(fit.params.to_numpy(), worths),
                largest(fit.params.to_numpy()),
            )
    return out


def table(survey: str, share: float, epsilons: tuple, out: np.ndarray) -> list[dict]:
    """Return the rows of one survey and p."""
    rows = []
    for place, epsilon in enumerate(epsilons):
        for column, method in enumerate(METHODS):
            cells = out[:, place, column]
            mean, error = cells.mean(axis=0), cells.std(axis=0, ddof=1) / np.sqrt(len(out))
            rows.append(
                {
                    "survey": survey,
                    "p": share,
                    "epsilon": epsilon,
                    "method": method,
                    "replicates": len(out),
                    "distance": shown(mean[0], 4),
                    "distance, std err": shown(error[0], 4),
                    "distance of the ridge fit": shown(mean[1], 4),
                    "largest distance": shown(mean[4], 4),
                    "top two": shown(mean[2]),
                    "top two, std err": shown(error[2]),
                    "in place": shown(mean[3]),
                    "in place, std err": shown(error[3]),
                }
            )
    return rows


def judge(survey: str, out: np.ndarray) -> list[dict]:
    """Return the rows of the targets, with the epsilon of the authors' ridge for surveys."""
    everything, items = answers(survey)
    people = everything["respondent"].nunique()
    their_ridge = 2.0 * np.sqrt(len(items) * np.log(len(items)) / people)
    reach = UnitSensitivity(len(items), 1, True, "replace")
    rows = []
    for place, epsilon in enumerate(EPSILONS):
        for method, asked in TARGETS[survey].items():
            # the other half of the comparison had at most as many replicates
            sample = out[:, place, METHODS.index(method), 0]
            kind = "about" if method == SMALL_RIDGE else "at most"
            judged = target(sample, asked[place], len(out), kind=kind, unit=0.001)
            spends = objective_loss(reach, 8.0 / epsilon, their_ridge)
            rows.append(
                {
                    "survey": survey,
                    "epsilon": epsilon,
                    "method": method,
                    **judged,
                    "authors' ridge spends": shown(spends) if method == SMALL_RIDGE else "",
                }
            )
    return rows


def figures(rows: list[dict]) -> None:
    estimates = (SMALL_RIDGE, PRIVATE, PUBLIC, RESPONDENT)
    everyone = (SMALL_RIDGE, COUNTING, PRIVATE, PUBLIC, RESPONDENT)
    titles = {survey: survey.capitalize() for survey in QUESTIONS}
    measures = (
        ("distance", "distance to the worths\nwithout privacy", estimates),
        ("top two", "top two found", everyone),
        ("in place", "items in their place", everyone),
    )
    all_answers = [row for row in rows if row["p"] == 1]
    subsamples = [row for row in rows if row["epsilon"] == 1]
    shared = {"column": "survey", "titles": titles, "measures": measures}
    draw("ccw_surveys_epsilon", "All answers", all_answers, x="epsilon", log_x=True, **shared)
    draw("ccw_surveys_share", "Epsilon 1, share p of comparisons", subsamples, x="p", **shared)


def main() -> None:
    replicates = study.arguments(__doc__.splitlines()[0], 400)
    started = time.time()
    rows: list[dict] = []
    targets: list[dict] = []
    cell = 6100
    for survey in QUESTIONS:
        for share in (*SHARES, 1.0):
            cell += 1
            epsilons = EPSILONS if share == 1 else (1.0,)
            out = np.array(study.replicate(one, replicates, survey, share, epsilons, cell=cell))
            rows += table(survey, share, epsilons, out)
            if share == 1:
                targets += judge(survey, out)
        print(f"{survey}: {time.time() - started:.0f} s", flush=True)
    command = "python validation/ccw_surveys.py"
    title = "Loss of accuracy due to privacy in two surveys"
    study.write("ccw_surveys", title, command, rows, started, more=True)
    study.write(
        "ccw_surveys_targets", "Surveys compared with the targets", command, targets, started
    )
    figures(rows)


if __name__ == "__main__":
    main()
