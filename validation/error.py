"""Estimation error and top-k overlap against the figures this project's algorithms were chosen by.

Synthetic: a quarter of the items have preference score 1, the others Uniform(0.2, 0.7); every pair
is compared once; worths are the log scores, centred, and the error is relative in l2. Real: l2
distance of the private to the non-private worths. Both at comparison level.
"""

from __future__ import annotations

import time

import numpy as np
import study

import privrank as pr

# items, epsilon, replicates, target error and overlap: public design, then private design
SYNTHETIC = [
    (100, 0.5, 100, (0.643, 0.77), (0.922, 0.64)),
    (100, 1.0, 100, (0.496, 0.84), (0.631, 0.77)),
    (300, 0.5, 40, (0.307, 0.94), (0.417, 0.88)),
    (300, 1.0, 40, (0.267, 0.96), (0.304, 0.94)),
    (500, 1.0, 16, (0.201, 0.99), (0.219, 0.98)),
]
# survey, epsilon, target distance: public design, then private design
REAL = [
    ("university", 0.5, 0.030, 0.064),
    ("university", 1.0, 0.015, 0.033),
    ("university", 2.5, 0.007, 0.013),
    ("university", 5.0, 0.005, 0.007),
    ("immigration", 0.5, 0.113, 0.217),
    ("immigration", 1.0, 0.058, 0.113),
    ("immigration", 2.5, 0.026, 0.048),
    ("immigration", 5.0, 0.016, 0.026),
]


def synthetic(
    rng: np.random.Generator, items: int, epsilon: float, design: str
) -> tuple[float, float, float]:
    """Return the relative errors of ridge and corrected worths, and the top quarter's overlap."""
    k = items // 4
    scores = np.concatenate((np.ones(k), rng.uniform(0.2, 0.7, items - k)))
    theta = np.log(scores) - np.log(scores).mean()
    frame = pr.simulate.bradley_terry(theta, rng=rng)
    model = pr.PrivateBTL(frame, items=range(items), ties=False, design=design)
    fit = model.fit(epsilon=epsilon, rng=rng)
    size = np.linalg.norm(theta)
    chosen = np.argsort(-fit.worths)[:k]
    return (
        float(np.linalg.norm(fit.theta - theta) / size),
        float(np.linalg.norm(fit.worths - theta) / size),
        float((chosen < k).mean()),
    )


def real(rng: np.random.Generator, survey: str, epsilon: float, design: str) -> tuple[float, float]:
    """Return the distance to the non-private worths: ridge, and corrected."""
    data = getattr(pr.datasets, f"load_{survey}")()
    answered = data.comparisons.dropna(subset="outcome")
    counts = answered.groupby(["item1", "item2"], observed=True).size()
    declared = None if design == "public" else counts.to_dict()
    model = pr.PrivateBTL(answered, design=design, pair_counts=declared)
    truth = model.fit(epsilon=np.inf, penalty=0).worths
    fit = model.fit(epsilon=epsilon, rng=rng)
    return (
        float(np.linalg.norm(fit.theta - truth)),
        float(np.linalg.norm(fit.worths - truth)),
    )


def main() -> None:
    scale = study.arguments(__doc__, 100) / 100
    started = time.time()
    rows = []
    cell = 200
    for items, epsilon, replicates, public, private in SYNTHETIC:
        for design, (target, overlap) in (("public", public), ("private", private)):
            cell += 1
            count = max(4, round(replicates * scale))
            out = np.array(
                study.replicate(synthetic, count, items, epsilon, design, cell=cell), dtype=float
            )
            # the targets come from as many replicates at most, so their own error is as large
            margin = 2 * np.sqrt(2) * out.std(axis=0, ddof=1) / np.sqrt(count)
            rows.append(
                {
                    "data": f"synthetic, {items} items",
                    "epsilon": epsilon,
                    "design": design,
                    "replicates": count,
                    "error (ridge)": f"{out[:, 0].mean():.3f}",
                    "error (corrected)": f"{out[:, 1].mean():.3f}",
                    "target": target,
                    "overlap": f"{out[:, 2].mean():.3f}",
                    "target overlap": overlap,
                    "met": bool(
                        out[:, 0].mean() <= target + margin[0] + 0.0005
                        and out[:, 2].mean() >= overlap - margin[2] - 0.005
                    ),
                }
            )
            print(rows[-1], flush=True)
    for survey, epsilon, *targets in REAL:
        for design, target in zip(("public", "private"), targets, strict=True):
            cell += 1
            count = max(4, round(400 * scale))
            out = np.array(
                study.replicate(real, count, survey, epsilon, design, cell=cell), dtype=float
            )
            margin = 2 * np.sqrt(2) * out.std(axis=0, ddof=1) / np.sqrt(count)
            rows.append(
                {
                    "data": survey,
                    "epsilon": epsilon,
                    "design": design,
                    "replicates": count,
                    "error (ridge)": f"{out[:, 0].mean():.4f}",
                    "error (corrected)": f"{out[:, 1].mean():.4f}",
                    "target": target,
                    "overlap": "",
                    "target overlap": "",
                    "met": bool(out[:, 1].mean() <= target + margin[1] + 0.0005),
                }
            )
            print(rows[-1], flush=True)
    study.write(
        "error",
        "Estimation error of the private Bradley-Terry fit",
        "python validation/error.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
