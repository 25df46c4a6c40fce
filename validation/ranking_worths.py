"""Bradley-Terry worths from the pairs of rankings: coverage of the intervals of all pairs.

Respondents rank all items or the top k, and every pair whose order a list determines becomes a
comparison: two listed items, or a listed and an unlisted item. The models are Plackett-Luce,
Mallows, and mixtures of two of either, camps of 0.6 and 0.4 with opposite orders. Complete lists
have a public design, top-k lists a private one.

The true worths solve the score equations of expected wins, with each pair weighted by the
probability that a list determines its order. In all these models a list is chosen item by item,
best first, and each choice depends on the set of items chosen before. Expected wins are computed
from the probabilities of these sets, without simulation. Under Plackett-Luce the worths are the
model's own, for complete and for top-k lists: at the stage that chooses the first of items i and j
it is i with probability theta_i / (theta_i + theta_j), whatever was chosen before, and therefore
also given that the list determines their order.

Coverage of 95% intervals for differences of two worths; the unit is a respondent. The table has the
average over pairs, the minimum and the maximum. The smallest of many estimates is below 0.95 by
chance, and the largest above: "floor" is the 5% quantile of the smallest of as many independent
estimates with coverage 0.95, "ceiling" the 95% quantile of the largest. Width is the width of an
interval relative to 1.96 standard errors, averaged over replicates; these include the population's
sampling error and noise with all of epsilon. It is given on average over pairs, and for the
narrowest and the widest pair. Replicates whose fit warns are included. Fits "none" treat the
answers of a respondent as independent, which they are not.

`ranking_worths_mle`: fits without privacy compared with maximum-likelihood fits of the
Plackett-Luce model by choix to the same lists, which follow this model. For differences of two
worths the table has the mean difference of the two fits over replicates, in standard errors, for
the pair with the largest, and the 95% quantile of the largest of as many normal numbers; the
largest difference in one sample, in combined standard errors; and standard deviations over
replicates, averaged over pairs.

`--only` takes parts of cell names, such as "6 items", runs these cells and writes no table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import study
from lists import Lists, lists
from respondents import Questions, Truth, logit, score_noise, truth
from scipy.stats import norm

import privrank as pr
from privrank.privacy.sensitivity import UnitSensitivity

COMMAND = "python validation/ranking_worths.py"

LUCE, MALLOWS, STRONG = "Plackett-Luce", "Mallows .8", "Mallows .7"
LUCE_CAMPS, MALLOWS_CAMPS = "two Plackett-Luce", "two Mallows .8"


@dataclass(frozen=True)
class Cell:
    """One setting: the population, the length of lists and the fit."""

    model: str
    items: int
    listed: int
    nobs: int
    epsilon: float
    dependence: str = "auto"

    def __str__(self) -> str:
        what = f"{self.items} items, {self.listed} listed, n {self.nobs}"
        return f"{self.model}, {what}, epsilon {self.epsilon:g}, {self.dependence}"

    def replicates(self, whole: int) -> int:
        return whole

    @property
    def people(self) -> Lists:
        return lists(self.model, self.items, self.listed)

    @property
    def true(self) -> Truth:
        return truth(self.people, Questions())

    @property
    def design(self) -> str:
        return "public" if self.listed == self.items else "private"

    def fit(self, ranks: pd.DataFrame, rng: np.random.Generator) -> pr.BTLResult:
        """Return the fit to the pairs of rankings."""
        missing = "refuse" if self.design == "public" else "bottom"
        pairs = pr.as_comparisons(ranks, "rankings", missing=missing)
        outcome = "outcome" if self.design == "public" else "list_outcome"
        unit = {"respondent": "respondent", "max_rows": self.people.rows}
        model = pr.PrivateBTL(pairs, outcome=outcome, design=self.design, **unit)
        return model.fit(self.epsilon, dependence=self.dependence, rng=rng)

    def errors(self) -> np.ndarray:
        """Return the standard errors of differences with all of epsilon used for net wins."""
        adjacency = "outcome" if self.design == "public" else "replace"
        reach = UnitSensitivity(self.items, self.people.rows, True, adjacency)
        return self.true.errors(self.nobs, score_noise(reach, self.epsilon))


def cells() -> list[Cell]:
    """Return the cells of the table of intervals."""
    inf = np.inf
    return [
        Cell(*one)
        for one in (
            *((LUCE, 4, 4, n, e) for n, e in ((200, 1.0), (1000, 1.0), (200, inf))),
            *((LUCE, 6, 6, n, e) for n, e in ((200, 4.0), (1000, 1.0), (3000, 1.0), (1000, inf))),
            *((LUCE, 10, 10, 1000, e) for e in (1.0, 4.0)),
            *((MALLOWS, 6, 6, n, e) for n, e in ((200, 1.0), (1000, 4.0))),
            *((STRONG, 10, 10, n, e) for n, e in ((300, 1.0), (1000, inf))),
            *((MALLOWS_CAMPS, 6, 6, n, e) for n, e in ((200, 4.0), (1000, 1.0))),
            *((LUCE_CAMPS, 4, 4, 1000, 1.0), (LUCE_CAMPS, 6, 6, 1000, 1.0)),
            (MALLOWS_CAMPS, 10, 10, 1000, 4.0),
            *((LUCE, 6, 3, n, e) for n, e in ((300, 4.0), (1000, 1.0), (1000, 4.0), (1000, inf))),
            *((LUCE, 4, 2, 1000, 1.0), (LUCE, 6, 2, 3000, 4.0), (LUCE, 10, 3, 1000, 4.0)),
            *((STRONG, 6, 3, n, e) for n, e in ((1000, 4.0), (3000, 1.0), (300, inf))),
            *((MALLOWS_CAMPS, 6, 3, 1000, 4.0), (LUCE_CAMPS, 6, 3, 1000, 4.0)),
            *((LUCE, 6, 6, 1000, e, "none") for e in (1.0, inf)),
            *((MALLOWS_CAMPS, 10, 10, 1000, 4.0, "none"), (LUCE, 6, 3, 1000, 4.0, "none")),
        )
    ]


def one(rng: np.random.Generator, cell: Cell) -> dict[str, Any]:
    """Return coverage and widths of the intervals of one fit."""
    first, second = np.triu_indices(cell.items, 1)
    apart = cell.true.worths[first] - cell.true.worths[second]
    fit = cell.fit(cell.people.draw(rng, cell.nobs), rng)
    table = fit.pairwise()
    low, high = logit(table["lower"]), logit(table["upper"])
    return {
        "pairs": (low <= apart) & (apart <= high),
        "width": 0.5 * (high - low),
        "error": fit.params.to_numpy() - cell.true.worths,
        "warned": bool(fit.warnings),
    }


def heads(cell: Cell) -> dict[str, Any]:
    """Return the columns that identify the cell of a row."""
    listed = "all" if cell.listed == cell.items else cell.listed
    names = {"model": cell.model, "items": cell.items, "listed": listed, "design": cell.design}
    return names | {"n": cell.nobs, "epsilon": cell.epsilon}


def summary(cell: Cell, out: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of a cell of the table of intervals."""
    found = {name: np.array([each[name] for each in out]) for name in out[0]}
    pairs, width = found["pairs"], (found["width"] / (1.959964 * cell.errors())).mean(axis=0)
    (worst, floor), (best, ceiling) = study.least(pairs), study.most(pairs)
    effects = cell.true.effects()
    return {
        **heads(cell),
        "fit": cell.dependence,
        "replicates": len(out),
        "average": f"{pairs.mean():.3f}",
        "worst pair": f"{worst:.3f}",
        "floor": f"{floor:.3f}",
        "best pair": f"{best:.3f}",
        "ceiling": f"{ceiling:.3f}",
        "effects": f"{effects.min():.1f} to {effects.max():.1f}",
        "width": f"{width.mean():.2f}",
        "narrowest": f"{width.min():.2f}",
        "widest": f"{width.max():.2f}",
        "RMSE": f"{np.sqrt((found['error'] ** 2).mean()):.3f}",
        "warned": f"{found['warned'].mean():.2f}",
    }


def likelihood_cells() -> list[Cell]:
    """Return the cells of the comparison with maximum likelihood."""
    sizes = ((4, 4, 200), (4, 2, 200), (6, 6, 300), (6, 6, 1000), (6, 3, 1000), (10, 10, 300))
    return [Cell(LUCE, *size, np.inf) for size in sizes]


def both(rng: np.random.Generator, cell: Cell) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return differences of two worths by the fit and by likelihood, and standard errors."""
    import choix

    ranks = cell.people.draw(rng, cell.nobs)
    order = np.argsort(ranks.to_numpy(), axis=1)  # unlisted items are last
    stages = range(min(cell.listed, cell.items - 1))
    chosen = [(row[k], row[k + 1 :]) for row in order for k in stages]
    likely = choix.ilsr_top1(cell.items, chosen)
    first, second = np.triu_indices(cell.items, 1)
    fit = cell.fit(ranks, rng)
    worths = fit.params.to_numpy()
    return worths[first] - worths[second], likely[first] - likely[second], fit.pairwise()["std_err"]


def agreement(cell: Cell, out: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """Return the row of a cell of the comparison with maximum likelihood."""
    fitted, likely, errors = (np.array(each) for each in zip(*out, strict=True))
    apart = fitted - likely
    mean, error = apart.mean(axis=0), apart.std(axis=0, ddof=1) / np.sqrt(len(out))
    combined = np.hypot(errors, likely.std(axis=0, ddof=1))
    return {
        **{name: value for name, value in heads(cell).items() if name != "epsilon"},
        "replicates": len(out),
        "mean apart": f"{np.abs(mean / error).max():.2f}",
        "ceiling": f"{norm.ppf(0.5 + 0.5 * 0.95 ** (1 / len(mean))):.2f}",
        "one sample": f"{np.abs(apart / combined).max():.2f}",
        "sd of the fit": f"{fitted.std(axis=0, ddof=1).mean():.3f}",
        "sd of likelihood": f"{likely.std(axis=0, ddof=1).mean():.3f}",
        "sd apart": f"{apart.std(axis=0, ddof=1).mean():.3f}",
    }


def main() -> None:
    asked = study.asked(__doc__, 200)
    title = "Coverage of intervals for worths from rankings"
    study.table("ranking_worths", title, COMMAND, cells(), one, summary, asked, 14000)
    title = "Worths from rankings: pairwise fit and Plackett-Luce maximum likelihood"
    parts = likelihood_cells(), both, agreement
    study.table("ranking_worths_mle", title, COMMAND, *parts, asked, 14500)


if __name__ == "__main__":
    main()
