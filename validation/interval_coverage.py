"""Coverage of 95 % intervals for the worths on Bradley-Terry data, both designs.

Settings: items, comparisons per pair (and the chance that each is made), epsilon per comparison.
Worths are standard normal, drawn anew in each replicate. A cell passes when coverage lies in
.93-.97 within two standard errors; where the ridge exceeds the information per contrast the fit
must warn instead.
"""

from __future__ import annotations

import time

import numpy as np
import study

import privrank as pr

SETTINGS = [
    # items, repeats, share, epsilon
    (6, 30, 1.0, 0.5),
    (10, 10, 1.0, 0.5),
    (20, 4, 1.0, 0.25),
    (50, 1, 1.0, 0.5),
    (50, 1, 0.3, 0.5),
    (10, 30, 0.33, 0.5),
]
FITS = [
    # label, design, model arguments, fit arguments
    ("counts", "public", {}, {"method": "counts"}),
    ("objective", "public", {}, {"method": "objective"}),
    ("auto, counts assumed equal", "private", {"pair_counts": "equal"}, {}),
    (
        "objective, counts assumed equal",
        "private",
        {"pair_counts": "equal"},
        {"method": "objective"},
    ),
    ("auto, counts released", "private", {}, {}),
    ("objective, counts released", "private", {}, {"method": "objective"}),
]


def one(
    rng: np.random.Generator,
    items: int,
    repeats: int,
    share: float,
    epsilon: float,
    design: str,
    model: dict[str, object],
    fit: dict[str, object],
) -> tuple[float, float, float, float, bool]:
    theta = rng.standard_normal(items)
    theta -= theta.mean()
    while True:
        frame = pr.simulate.bradley_terry(theta, repeats=repeats, share=share, rng=rng)
        try:
            fitted = pr.PrivateBTL(
                frame, items=range(items), respondent=None, ties=False, design=design, **model
            )
        except ValueError:  # a public graph that falls apart is drawn again
            continue
        break
    result = fitted.fit(epsilon=epsilon, allow_unidentified=True, rng=rng, **fit)
    covered = study.covers(result, theta)
    distance = np.linalg.norm(result.params.to_numpy() - theta) / np.sqrt(items)
    warned = any("information" in message for message in result.warnings)
    privacy = np.linalg.norm(result.bse_privacy) / np.linalg.norm(result.bse)
    error = result.bse.mean()
    return float(covered.mean()), float(distance), float(error), float(privacy), warned


def main() -> None:
    replicates = study.arguments(__doc__, 400)
    started = time.time()
    rows = []
    cell = 0
    for items, repeats, share, epsilon in SETTINGS:
        for label, design, model, fit in FITS:
            cell += 1
            out = study.replicate(
                one, replicates, items, repeats, share, epsilon, design, model, fit, cell=cell
            )
            coverage, deviation = study.mean_and_error([row[0] for row in out])
            warned = float(np.mean([row[4] for row in out]))
            inside = 0.93 - 2 * deviation <= coverage <= 0.97 + 2 * deviation
            verdict = "in .93-.97" if inside else "outside"
            rows.append(
                {
                    "items": items,
                    "per pair": repeats if share == 1 else f"{repeats}, {share} of them",
                    "epsilon": epsilon,
                    "design": design,
                    "fit": label,
                    "replicates": replicates,
                    "coverage": f"{coverage:.4f}",
                    "SE": f"{deviation:.4f}",
                    "RMSE": f"{np.sqrt(np.mean([row[1] ** 2 for row in out])):.3f}",
                    "mean std err": f"{np.mean([row[2] for row in out]):.3f}",
                    "privacy part": f"{np.mean([row[3] for row in out]):.2f}",
                    "warned": f"{warned:.2f}",
                    "verdict": "warns" if warned > 0.5 and not inside else verdict,
                }
            )
            print(rows[-1], flush=True)
    study.write(
        "coverage",
        "Coverage of 95 % intervals for Bradley-Terry worths",
        "python validation/interval_coverage.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
