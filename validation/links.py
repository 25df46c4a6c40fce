"""Coverage of 95% intervals for the worths under links other than the logit, both designs.

Comparisons follow the fitted link. Worths are normal, drawn in each replicate; their standard
deviation makes preference probabilities vary as with standard normal worths under the logit. A cell
passes if coverage is in 0.93-0.97 up to two standard errors; if the ridge exceeds the information
per contrast, the fit must warn instead. Without noise both designs give the same fit.
"""

from __future__ import annotations

import time

import numpy as np
import study

import privrank as pr
from privrank.bradley_terry.fit import ScoreFunction
from privrank.distributions.links import find

SETTINGS = [
    # items, repeats
    (6, 30),
    (10, 10),
]
FITS = [
    # label, epsilon, design, model arguments, method
    ("counts", 0.5, "public", {}, "counts"),
    ("objective", 0.5, "public", {}, "objective"),
    ("counts, assumed equal", 0.5, "private", {"pair_counts": "equal"}, "counts"),
    ("counts, released", 0.5, "private", {}, "counts"),
    ("objective, counts assumed equal", 0.5, "private", {"pair_counts": "equal"}, "objective"),
    ("maximum likelihood", np.inf, "public", {}, "counts"),
    ("objective", np.inf, "public", {}, "objective"),
]


def one(
    rng: np.random.Generator,
    link: str,
    items: int,
    repeats: int,
    epsilon: float,
    design: str,
    model: dict[str, object],
    method: str,
) -> tuple[float, float, float, float, bool]:
    theta = ScoreFunction(find(link)).spread * rng.standard_normal(items)
    theta -= theta.mean()
    frame = pr.simulate.bradley_terry(theta, repeats=repeats, link=link, rng=rng)
    fitted = pr.PrivateBTL(
        frame, items=range(items), respondent=None, ties=False, design=design, link=link, **model
    )
    result = fitted.fit(epsilon=epsilon, method=method, allow_unidentified=True, rng=rng)
    covered = study.covers(result, theta)
    distance = np.linalg.norm(result.params.to_numpy() - theta) / np.sqrt(items)
    warned = any("information" in message for message in result.warnings)
    privacy = np.linalg.norm(result.bse_privacy) / np.linalg.norm(result.bse)
    error = result.bse.mean()
    return float(covered.mean()), float(distance), float(error), float(privacy), warned


def main() -> None:
    replicates = study.arguments(__doc__, 300)
    started = time.time()
    rows = []
    cell = 0
    for link in ("probit",):
        for items, repeats in SETTINGS:
            for label, epsilon, design, model, method in FITS:
                cell += 1
                out = study.replicate(
                    one, replicates, link, items, repeats, epsilon, design, model, method,
                    cell=cell,
                )  # fmt: skip
                coverage, deviation = study.mean_and_error([row[0] for row in out])
                warned = float(np.mean([row[4] for row in out]))
                inside = 0.93 - 2 * deviation <= coverage <= 0.97 + 2 * deviation
                verdict = "in .93-.97" if inside else "outside"
                rows.append(
                    {
                        "link": link,
                        "items": items,
                        "per pair": repeats,
                        "epsilon": f"{epsilon:g}",
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
        "links",
        "Coverage of 95% intervals for worths under other links",
        "python validation/links.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
