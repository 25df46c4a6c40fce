"""Effect of epsilon on p-values and sample sizes: the tables of docs/planning.md."""

from __future__ import annotations

import math
import time
from functools import cache

import numpy as np
from study import arguments, replicate, write

import privrank as pr

EPSILONS = (0.5, 1.0, 2.0, 4.0)


@cache
def ranked() -> pr.ClosenessTest:
    """Return the comparison by gender of the quick start, on rankings completed once."""
    cems = pr.datasets.load_university()
    ranks = cems.rankings(np.random.default_rng(1))
    formula = "London + Paris + Milano + StGallen + Barcelona + Stockholm ~ gender"
    data = ranks.join(cems.students)
    return pr.ClosenessTest.from_formula(formula, data, respondent="respondent")


def pvalue(rng: np.random.Generator, epsilon: float) -> float:
    """Return the p-value of one more fit of the same data."""
    return float(ranked().fit(epsilon, rng=rng).pvalue or 0.0)


COMMAND = "python validation/planning.py"


def pvalues(fits: int) -> None:
    """Write the variation of p-values of the same data between fits."""
    started, rows = time.time(), []
    for number, epsilon in enumerate((*EPSILONS, math.inf)):
        found = np.array(replicate(pvalue, fits, epsilon, cell=21500 + number))
        low, middle, high = np.quantile(found, [0.05, 0.5, 0.95])
        rows.append(
            {
                "epsilon": f"{epsilon:g}",
                "5 %": f"{low:.4f}",
                "median": f"{middle:.4f}",
                "95 %": f"{high:.4f}",
                "share at most .05": f"{np.mean(found <= 0.05):.2f}",
            }
        )
        print(rows[-1], flush=True)
    write(
        "planning_pvalues",
        "Variation of the p-value between fits of the same data",
        COMMAND,
        rows,
        started,
    )


QUESTIONS = {
    "is a vote even? 55 to 45": (pr.power.UniformityPower, 2, 0.05),
    "are six choices equally likely? distance .1": (pr.power.UniformityPower, 6, 0.1),
    "do two groups choose alike among three? distance .15": (pr.power.ClosenessPower, 3, 0.15),
}


def needed(rng: np.random.Generator, question: str) -> dict[str, int]:
    """Return the number of respondents for a question by epsilon, which is not random."""
    power, categories, distance = QUESTIONS[question]
    design = power(categories, kind="choices")
    return {
        f"epsilon {epsilon:g}": design.solve_power(
            power=0.8, epsilon=epsilon, total_variation=distance
        )
        for epsilon in (*EPSILONS, math.inf)
    }


def sizes() -> None:
    """Write the numbers of respondents for tests."""
    started, rows = time.time(), []
    for number, question in enumerate(QUESTIONS):
        (found, *_) = replicate(needed, 1, question, cell=21600 + number)
        rows.append({"question": question, **{name: str(size) for name, size in found.items()}})
        print(rows[-1], flush=True)
    write(
        "planning_sizes",
        "Number of respondents for power 0.8 at level 0.05",
        COMMAND,
        rows,
        started,
    )


def main() -> None:
    pvalues(arguments(__doc__, 200))
    sizes()


if __name__ == "__main__":
    main()
