"""Coverage of 95% intervals for the worths on Bradley-Terry data, both designs.

Settings: items, comparisons per pair (and the probability that each is made), epsilon per
comparison. Worths are standard normal, drawn in each replicate. A cell passes if coverage is in
0.93-0.97 up to two standard errors; if the ridge exceeds the information per contrast, the fit must
warn instead.

A worth that the release does not identify is withheld: its interval is the real line, which covers.
"withheld" is the fraction of such worths, and "of stated" the coverage of the others, over which
RMSE, standard error and its privacy part are computed. Worths are centred over the items that a
release connects. A cell that withholds more than half of its worths "withholds".
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
) -> np.ndarray:
    theta = rng.standard_normal(items)
    theta -= theta.mean()
    while True:
        frame = pr.simulate.bradley_terry(theta, repeats=repeats, share=share, rng=rng)
        try:
            fitted = pr.PrivateBTL(
                frame, items=range(items), respondent=None, ties=False, design=design, **model
            )
        except ValueError:  # a public graph that is not connected is drawn again
            continue
        break
    result = fitted.fit(epsilon=epsilon, allow_unidentified=True, rng=rng, **fit)
    for component in result.components:
        connected = [int(item) for item in component]
        theta[connected] -= theta[connected].mean()
    covered = study.covers(result, theta)
    estimate = result.params.to_numpy()
    stated = ~np.isnan(estimate)
    warned = any("information" in message for message in result.warnings)
    sums = [
        covered.mean(),
        stated.mean(),
        (covered & stated).mean(),
        np.nansum((estimate - theta) ** 2) / items,
        result.bse.sum() / items,
        (result.bse_privacy**2).sum() / items,
        (result.bse**2).sum() / items,
    ]
    return np.array([*sums, warned])


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
            table = np.array(out)
            coverage, deviation = study.mean_and_error(table[:, 0])
            _, stated, both, squares, error, privacy, total, warned = table.mean(axis=0)
            inside = 0.93 - 2 * deviation <= coverage <= 0.97 + 2 * deviation
            verdict = "in .93-.97" if inside else "outside"
            if not inside and warned > 0.5:
                verdict = "warns"
            if stated < 0.5:
                verdict = "withholds"
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
                    "withheld": f"{1 - stated:.2f}",
                    "of stated": f"{both / stated:.4f}" if stated else "",
                    "RMSE": f"{np.sqrt(squares / stated):.3f}" if stated else "",
                    "mean std err": f"{error / stated:.3f}" if stated else "",
                    "privacy part": f"{np.sqrt(privacy / total):.2f}" if stated else "",
                    "warned": f"{warned:.2f}",
                    "verdict": verdict,
                }
            )
            print(rows[-1], flush=True)
    study.write(
        "coverage",
        "Coverage of 95% intervals for Bradley-Terry worths",
        "python validation/interval_coverage.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
