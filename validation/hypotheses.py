"""Level of the tests of a Bradley-Terry fit when all items are equally preferred.

A hundred respondents answer all pairs at even odds, so every rejection at .05 is wrong: by the
joint test that all worths are equal (`wald_test`), by that of one difference (`t_test`), and by the
test of homogeneity, which has errors under the hypothesis. Public design, and private with released
pair counts. "Agree" is the share of replicates in which the two tests of equal worths decide alike.
"Withheld" is the share in which the release does not hold all items together, so that the first two
tests have no statement: those do not reject. A cell holds where levels are at most .05 and two
standard errors.
"""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pandas as pd
import study

import privrank as pr

PEOPLE = 100
DESIGNS = {"public": {"design": "public"}, "private": {"pair_counts": "release"}}


def one(rng: np.random.Generator, items: int, epsilon: float, design: str) -> tuple[float, ...]:
    """Return the p-values of the three tests; NaN for one that is withheld."""
    pairs = np.tile(np.array(list(combinations(range(items), 2))), (PEOPLE, 1))
    rows = items * (items - 1) // 2
    frame = pd.DataFrame(pairs, columns=["item1", "item2"])
    frame["respondent"] = np.repeat(np.arange(PEOPLE), rows)
    frame["outcome"] = rng.choice([1.0, -1.0], len(frame))
    model = pr.PrivateBTL(
        frame,
        items=range(items),
        respondent="respondent",
        max_rows=rows,
        ties=False,
        **DESIGNS[design],
    )
    fit = model.fit(epsilon, rng=rng)
    equal = np.eye(items)[:-1] - np.eye(items)[1:]
    homogeneity = fit.test_homogeneity().pvalue
    if len(fit.components) > 1:
        return np.nan, np.nan, homogeneity
    joint, single = fit.wald_test(equal), fit.t_test(equal[0])
    return float(joint.pvalue), float(np.squeeze(single.pvalue)), homogeneity


def main() -> None:
    replicates = study.arguments(__doc__, 400)
    started = time.time()
    rows = []
    cells = [
        (design, items, epsilon)
        for design in DESIGNS
        for items in (3, 6)
        for epsilon in (0.1, 0.5, 1.0, np.inf)
        if design == "public" or epsilon == 0.5
    ]
    for number, (design, items, epsilon) in enumerate(cells):
        out = np.array(study.replicate(one, replicates, items, epsilon, design, cell=1200 + number))
        rejected = out <= 0.05
        levels = rejected.mean(axis=0)
        most = 0.05 + 2 * np.sqrt(0.05 * 0.95 / replicates)
        rows.append(
            {
                "design": design,
                "items": items,
                "epsilon": epsilon,
                "replicates": replicates,
                "wald_test": f"{levels[0]:.3f}",
                "t_test": f"{levels[1]:.3f}",
                "test_homogeneity": f"{levels[2]:.3f}",
                "most": f"{most:.3f}",
                "withheld": f"{np.isnan(out[:, 0]).mean():.3f}",
                "agree": f"{(rejected[:, 0] == rejected[:, 2]).mean():.3f}",
                "verdict": "holds" if levels.max() <= most else "above",
                "worst": "",
            }
        )
        print(rows[-1], flush=True)
    for test in ("wald_test", "t_test", "test_homogeneity"):
        worst = max(rows, key=lambda row: float(row[test]))
        worst["worst"] = " ".join(filter(None, (worst["worst"], test)))
    study.write(
        "hypotheses",
        "Level of the tests of a Bradley-Terry fit",
        "python validation/hypotheses.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
