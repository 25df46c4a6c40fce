"""Coverage on the real surveys: respondents resampled with replacement from the published ones.

The published respondents are the population, their maximum likelihood worths the truth. Answers of
one respondent are dependent, so the independent standard errors undercover; the design effect
mends that at a tenth of the budget. Immigration's missing answers attenuate the worths where counts
are assumed equal under a private design, as the summary warns; released counts do not.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import study

import privrank as pr

FITS = [
    # label, epsilon, arguments
    ("no design effect", np.inf, {"dependence": "none"}),
    ("design effect", np.inf, {}),
    ("cluster-robust", np.inf, {"dependence": "cluster"}),
    ("no design effect", 1.0, {"dependence": "none"}),
    ("design effect", 1.0, {}),
    ("design effect, private design, counts assumed equal", 1.0, {}),
    ("design effect, private design, counts released", 1.0, {}),
]


def resample(rng: np.random.Generator, comparisons: pd.DataFrame) -> pd.DataFrame:
    """Draw as many respondents as there are, with replacement, and number them anew."""
    people = comparisons["respondent"].to_numpy()
    rows = len(people) // people.max()
    drawn = rng.integers(0, people.max(), people.max())
    taken = (drawn[:, None] * rows + np.arange(rows)).ravel()
    sample = comparisons.iloc[taken].copy()
    sample["respondent"] = np.repeat(np.arange(len(drawn)), rows)
    return sample


def one(
    rng: np.random.Generator,
    comparisons: pd.DataFrame,
    truth: np.ndarray,
    epsilon: float,
    design: dict[str, object],
    fit: dict[str, object],
) -> tuple[float, float]:
    rows = comparisons.groupby("respondent").size().max()
    model = pr.PrivateBTL(
        resample(rng, comparisons), respondent="respondent", max_rows=int(rows), ties=True, **design
    )
    result = model.fit(epsilon=epsilon, rng=rng, **fit)
    error = result.bse.to_numpy()
    return float((np.abs(result.params.to_numpy() - truth) <= 1.959964 * error).mean()), float(
        error.mean()
    )


def main() -> None:
    replicates = study.arguments(__doc__, 2000)
    started = time.time()
    rows = []
    surveys = (pr.datasets.load_university(), pr.datasets.load_immigration())
    for number, survey in enumerate(surveys):
        frame = survey.comparisons
        full = pr.PrivateBTL(
            frame, respondent="respondent", max_rows=15, ties=True, design="public"
        )
        truth = full.fit(epsilon=np.inf, penalty=0).params.to_numpy()
        for place, (label, epsilon, fit) in enumerate(FITS):
            design = {"design": "private" if "private" in label else "public"}
            if "released" in label:
                design["pair_counts"] = "release"
            out = study.replicate(
                one, replicates, frame, truth, epsilon, design, fit, cell=100 + 10 * number + place
            )
            coverage, deviation = study.mean_and_error([row[0] for row in out])
            rows.append(
                {
                    "survey": survey.name,
                    "epsilon": epsilon,
                    "standard errors": label,
                    "replicates": replicates,
                    "coverage": f"{coverage:.4f}",
                    "SE": f"{deviation:.4f}",
                    "mean std err": f"{np.mean([row[1] for row in out]):.4f}",
                }
            )
            print(rows[-1], flush=True)
    study.write(
        "resampling",
        "Coverage under resampling of the surveys' respondents",
        "python validation/resampling.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
