"""Coverage and error of worths and win rates from weighted comparisons.

Respondents answer 4 of 45 pairs of 10 items. In the population `strata` there are six strata with
weights 0.3 to 3.8, and worths that go with the logarithm of the weight. In `lognormal` the
logarithms of the weights have a standard deviation of 1, and weights are trimmed at a multiple of
their mean. Respondents differ within strata by a standard deviation of 1, but not where rows are
units. The true worths are those at which the model expects the weighted mean answers of the
population, with the weights that the fit uses; `untrimmed` errors are about the worths at which it
expects the means with the weights as given. `unweighted` fits leave the weights out.

Rivals release net wins by stratum, each with the noise of an unweighted release, and weight them
afterwards (`strata nets`); or fit the worths of each stratum and take their weighted mean, whose
true value is the weighted mean of the strata (`mean of worths`). They have no intervals. Where the
fit is compared with them (`rescaled`), all are rescaled to the true worths by least squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import study
from scipy.optimize import root
from sets import rescaled_error

import privrank as pr

M, ASKED = 10, 4
ITEMS = [f"i{k}" for k in range(M)]
FIRST, SECOND = np.triu_indices(M, 1)
STRATA = np.array([0.3, 0.5, 0.8, 1.2, 2.0, 3.8])
SHARE = np.array([0.3, 0.2, 0.2, 0.15, 0.1, 0.05])
CENTRE = np.linspace(1.0, -1.0, M)
SLOPE = 0.5 * np.where(np.arange(M) % 2, 1.0, -1.0)
DRAWS = 200_000


@dataclass(frozen=True)
class Cell:
    """A population, how many respondents it gives, the trimming of their weights, and epsilon."""

    population: str
    nobs: int
    epsilon: float
    unit: str = "respondent"
    trimmed: float = np.inf
    fit: str = "weighted"

    def __str__(self) -> str:
        trimmed = "" if self.trimmed == np.inf else f", trimmed at {self.trimmed:g}"
        size = f"{self.nobs} respondents, {self.unit}s as units"
        return f"{self.population}, {size}, epsilon {self.epsilon:g}{trimmed}, {self.fit}"

    def replicates(self, asked: int) -> int:
        return asked


def weights(population: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the weights of respondents."""
    if population == "strata":
        return rng.choice(STRATA, size, p=SHARE)
    return rng.lognormal(0.0, 1.0, size)


def worths(weight: np.ndarray, spread: float, rng: np.random.Generator) -> np.ndarray:
    """Return the worths of respondents, shape (size, m)."""
    centre = CENTRE + SLOPE * np.log(weight)[:, None]
    return centre + spread * rng.normal(size=centre.shape)


def mean_weight(population: str) -> float:
    return float(STRATA @ SHARE) if population == "strata" else float(np.exp(0.5))


def chance(v: np.ndarray) -> np.ndarray:
    """Return the probability that row is preferred to column, mean over respondents."""
    return 1.0 / (1.0 + np.exp(v[..., None, :] - v[..., :, None]))


def solved(target: np.ndarray) -> np.ndarray:
    """Return the worths whose expected numbers of wins, over all pairs, are the target."""

    def off(v: np.ndarray) -> np.ndarray:
        full = np.append(v, -v.sum())
        return (chance(full).sum(axis=1) - target)[:-1]

    found = root(off, np.zeros(M - 1), tol=1e-11).x
    return np.append(found, -found.sum())


@cache
def truth(population: str, spread: float, trimmed: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the true worths and win rates, with weights trimmed at a multiple of their mean."""
    rng = np.random.default_rng(11)
    weight = weights(population, DRAWS, rng)
    v = worths(weight, spread, rng)
    weight = np.minimum(weight, trimmed * mean_weight(population))
    # an item's wins against all items, itself included, in a questionnaire of all pairs
    wins = sum(
        (chance(part) * kept[:, None, None]).sum(axis=(0, 2))
        for part, kept in zip(np.array_split(v, 100), np.array_split(weight, 100), strict=True)
    )
    wins = wins / weight.sum()
    return solved(wins), (wins - 0.5) / (M - 1)


def survey(cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
    """Return the answers of respondents."""
    weight = weights(cell.population, cell.nobs, rng)
    v = worths(weight, float(cell.unit == "respondent"), rng)
    keys = rng.random((cell.nobs, len(FIRST)))
    asked = np.argpartition(keys, ASKED, axis=1)[:, :ASKED]
    i, j = FIRST[asked], SECOND[asked]
    apart = np.take_along_axis(v, i, 1) - np.take_along_axis(v, j, 1)
    won = rng.random(apart.shape) < 1.0 / (1.0 + np.exp(-apart))
    kind = pd.CategoricalDtype(ITEMS)
    return pd.DataFrame(
        {
            "id": np.repeat(np.arange(cell.nobs), ASKED),
            "item1": pd.Categorical.from_codes(i.ravel(), dtype=kind),
            "item2": pd.Categorical.from_codes(j.ravel(), dtype=kind),
            "outcome": np.where(won, 1, -1).ravel(),
            "w": np.repeat(weight, ASKED),
        }
    )


def rivals(cell: Cell, data: pd.DataFrame, rng: np.random.Generator) -> dict[str, float]:
    """Return the errors of the rivals."""
    i, j = data["item1"].cat.codes.to_numpy(), data["item2"].cat.codes.to_numpy()
    stratum = np.searchsorted(STRATA, data["w"].to_numpy())
    nets, met = np.zeros((len(STRATA), M)), np.zeros((len(STRATA), M, M))
    for place, sign in ((i, 1.0), (j, -1.0)):
        np.add.at(nets, (stratum, place), sign * data["outcome"].to_numpy())
    np.add.at(met, (stratum, i, j), 1.0)
    met += met.transpose(0, 2, 1)
    if cell.epsilon < np.inf:
        noise = rng.laplace(0.0, 4.0 * ASKED / cell.epsilon, nets.shape)
        nets += noise - noise.mean(axis=1, keepdims=True)

    def fitted(net: np.ndarray, count: np.ndarray) -> np.ndarray:
        """Solve the score equations, with a ridge as large as the noise needs."""
        gamma = 0.02 * count.sum() / M

        def off(v: np.ndarray) -> np.ndarray:
            return (count * (chance(v) - 0.5)).sum(axis=1) + gamma * v - 0.5 * net

        return root(off, np.zeros(M), tol=1e-8).x

    true, _ = truth("strata", 1.0, np.inf)
    both = fitted(np.tensordot(STRATA, nets, 1), np.tensordot(STRATA, met, 1))
    apart = np.array([fitted(*of) for of in zip(nets, met, strict=True)])
    share = STRATA * SHARE / (STRATA @ SHARE)
    exact = np.array(
        [
            solved(
                chance(worths(np.full(4000, w), 1.0, np.random.default_rng(3))).mean(axis=0).sum(1)
            )
            for w in STRATA
        ]
    )
    return {
        "strata nets": rescaled_error(both, true),
        "mean of worths": rescaled_error(share @ apart, share @ exact),
    }


def error(estimate: np.ndarray, true: np.ndarray) -> float:
    """Return the root mean square error of all differences of two items."""
    off = estimate - true
    return float(np.sqrt(np.mean((off[FIRST] - off[SECOND]) ** 2)))


def run(rng: np.random.Generator, cell: Cell) -> dict[str, object]:
    """Return coverage and errors, and the errors of the rivals."""
    data = survey(cell, rng)
    spread = float(cell.unit == "respondent")
    true, rates = truth(cell.population, spread, cell.trimmed)
    asked = {"items": ITEMS, "max_rows": ASKED, "design": "public"}
    asked["respondent"] = "id" if cell.unit == "respondent" else None
    if cell.fit == "weighted":
        asked["weights"] = "w"
        if cell.trimmed < np.inf:
            asked["max_weight"] = cell.trimmed * mean_weight(cell.population)
    result = pr.PrivateBTL(data, **asked).fit(cell.epsilon, rng=rng)
    pairs = result.pairwise()
    first, second = (pairs[name].map(ITEMS.index).to_numpy() for name in ("item1", "item2"))
    share = 1.0 / (1.0 + np.exp(true[second] - true[first]))
    place = np.lexsort((np.maximum(first, second), np.minimum(first, second)))
    inside = ((pairs["lower"] <= share) & (share <= pairs["upper"])).to_numpy()[place]
    selection = pr.PrivateTopK.from_release(result.release, 3).conf_int().loc[ITEMS].to_numpy()
    estimate = result.params[ITEMS].to_numpy()
    found: dict[str, object] = {
        "pairs": inside,
        "rates": (selection[:, 0] <= rates) & (rates <= selection[:, 1]),
        "error": error(estimate, true),
        "rescaled": rescaled_error(estimate, true),
        "untrimmed": error(estimate, truth(cell.population, spread, np.inf)[0]),
    }
    weighted = result.release.design.weights
    if weighted is not None:
        found |= {"kish": weighted.kish, "effective": weighted.effective}
    if cell.population == "strata" and spread and weighted is not None:
        found |= rivals(cell, data, rng)
    return found


def cells() -> list[Cell]:
    """Return all cells."""
    private = (0.5, 1.0, 2.0, np.inf)
    return [
        *(Cell("strata", 1500, epsilon) for epsilon in private),
        *(Cell("strata", 400, epsilon, unit="row") for epsilon in (0.5, 1.0, np.inf)),
        *(Cell("strata", 1500, epsilon, fit="unweighted") for epsilon in (1.0, np.inf)),
        *(
            Cell("lognormal", 1500, epsilon, trimmed=trimmed)
            for trimmed in (2.0, 4.0, np.inf)
            for epsilon in (1.0, np.inf)
        ),
    ]


def row(cell: Cell, found: list[dict[str, object]]) -> dict[str, str]:
    def of(name: str) -> np.ndarray:
        return np.array([one.get(name, np.nan) for one in found], dtype=float)

    def mean(name: str) -> str:
        return f"{np.sqrt(np.mean(of(name) ** 2)):.3f}" if name in found[0] else ""

    pairs = np.array([one["pairs"] for one in found])
    rates = np.array([one["rates"] for one in found])
    pair, pair_floor = study.least(pairs)
    rate, rate_floor = study.least(rates)
    return {
        "population": cell.population,
        "respondents": str(cell.nobs),
        "unit": cell.unit,
        "epsilon": f"{cell.epsilon:g}",
        "trimmed": f"{cell.trimmed:g}",
        "fit": cell.fit,
        "replicates": str(len(found)),
        "kish": f"{of('kish').mean():.0f}" if "kish" in found[0] else "",
        "effective": f"{of('effective').mean():.0f}" if "kish" in found[0] else "",
        "coverage": f"{pairs.mean():.3f}",
        "worst": f"{pair:.3f}",
        "floor": f"{pair_floor:.3f}",
        "worst rate": f"{rate:.3f}",
        "floor of rates": f"{rate_floor:.3f}",
        "error": mean("error"),
        "untrimmed": mean("untrimmed"),
        "rescaled": mean("rescaled") if "strata nets" in found[0] else "",
        "strata nets": mean("strata nets"),
        "mean of worths": mean("mean of worths"),
    }


def verdict(rows: list[dict[str, str]]) -> str:
    """Return the worst coverages, and what leaving the weights out does."""
    holding = [row for row in rows if row["fit"] == "weighted"]
    low = min(holding, key=lambda row: float(row["worst"]) - float(row["floor"]))
    rate = min(holding, key=lambda row: float(row["worst rate"]) - float(row["floor of rates"]))
    out = min(float(row["worst"]) for row in rows if row["fit"] == "unweighted")
    return (
        f"The worst difference of weighted fits relative to its floor is covered in {low['worst']} "
        f"(floor {low['floor']}; {low['population']}, {low['unit']}s, epsilon {low['epsilon']}), "
        f"and the worst win rate in {rate['worst rate']} (floor {rate['floor of rates']}). Without "
        f"the weights the worst difference is covered in {out:.3f}."
    )


def main() -> None:
    study.table(
        "design_weights",
        "Worths and win rates with design weights",
        "python validation/design_weights.py",
        cells(),
        run,
        row,
        study.asked(__doc__.splitlines()[0], 500),
        140_000,
        verdict,
    )


if __name__ == "__main__":
    main()
