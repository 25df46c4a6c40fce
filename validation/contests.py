"""Coverage and error of worths and coefficients with contest covariates.

In a `league` unequally popular items meet at random, and better items have longer texts: the
covariate is the difference of lengths, normal or with the tails of a t distribution with 3 degrees
of freedom, and its coefficient is 0.5. A `season` has 20 teams and 380 matches, of which 38 are on
neutral ground; a draw counts as half a win for each, and home is worth 0.33. In `respondents` 4,000
people answer 5 comparisons each; `mixed` respondents have the coefficients 2 or -1. True values are
those at which the model expects the mean answers.

Broken assumptions, in a league: the covariate is `left out`; it was made `after the answer`, which
was added to it; it was `clipped` at one standard deviation, or `rounded` to whole standard
deviations, before it was given to the model; or the effect is a `bent` function of it,
tanh(2 z) / 2, whose truth is taken to be 0.5.

Rivals add noise to X'y and solve the same equations: in the l2 norm, or by coordinate, each bounded
by itself. They have no intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np
import pandas as pd
import study
from scipy.special import expit

import privrank as pr

GAMMA, HOME, BOUND = 0.5, 0.33, 1.5
CHUNK = 200_000


@dataclass(frozen=True)
class Cell:
    """A population, its items and rows, epsilon, and what is done to the covariate."""

    population: str
    items: int
    rows: int
    epsilon: float
    covariate: str = "normal"

    def __str__(self) -> str:
        size = f"{self.items} items, {self.rows} rows"
        return f"{self.population}, {size}, epsilon {self.epsilon:g}, {self.covariate}"

    def replicates(self, asked: int) -> int:
        return max(asked // 4, 2) if self.rows > 50_000 else asked


def worths(m: int) -> np.ndarray:
    return np.linspace(1.0, -1.0, m)


def league(cell: Cell, rows: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return the two items and the covariate of each row."""
    m = cell.items
    popular = np.random.default_rng(7).dirichlet(np.full(m, 5.0))
    if cell.population == "respondents":
        popular = np.full(m, 1.0 / m)
    i = rng.choice(m, rows, p=popular)
    j = (i + 1 + rng.integers(0, m - 1, rows)) % m
    off = rng.standard_t(3, rows) if cell.covariate == "t3" else rng.normal(size=rows)
    length = 0.5 * worths(m)
    return i, j, length[i] - length[j] + off


def season(cell: Cell, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    i, j = np.array(list(permutations(range(cell.items), 2))).T
    home = np.ones(len(i))
    home[rng.choice(len(i), len(i) // 10, replace=False)] = 0.0
    return i, j, home


def clipped(i: np.ndarray, j: np.ndarray, z: np.ndarray, m: int) -> np.ndarray:
    """Return the covariate less its projection on differences of items, clipped."""
    d = np.zeros((len(i), m))
    d[np.arange(len(i)), i] += 1.0
    d[np.arange(len(i)), j] -= 1.0
    left = z - d @ np.linalg.lstsq(d.T @ d, d.T @ z, rcond=None)[0]
    bound = BOUND * left.std()
    return np.clip(left, -bound, bound)


def solved(
    i: np.ndarray, j: np.ndarray, z: np.ndarray, v: np.ndarray, m: int, target: np.ndarray
) -> np.ndarray:
    """Return worths and coefficient whose expected scores, plus a weak ridge, are the target."""
    b = np.zeros(m + 1)
    ridge = np.append(np.ones(m), (v * z).mean())
    for _ in range(30):
        t = b[i] - b[j] + b[m] * z
        mean, slope = 2.0 * expit(t) - 1.0, 2.0 * expit(t) * expit(-t)
        off = ridge * b - target
        off[:m] += np.bincount(i, mean, m) - np.bincount(j, mean, m)
        off[m] += v @ mean
        inner = np.zeros((m + 1, m + 1))
        np.add.at(inner, (i, j), -slope)
        inner[:m, :m] += inner[:m, :m].T
        inner[np.arange(m), np.arange(m)] = -inner[:m, :m].sum(axis=1)
        inner[:m, m] = np.bincount(i, slope * z, m) - np.bincount(j, slope * z, m)
        inner[m, :m] = np.bincount(i, slope * v, m) - np.bincount(j, slope * v, m)
        inner[m, m] = v @ (slope * z)
        b -= np.linalg.solve(inner + np.diag(ridge), off)
    return np.append(b[:m] - b[:m].mean(), b[m])


@cache
def truth(cell: Cell) -> np.ndarray:
    """Return the true worths and coefficient."""
    v = worths(cell.items)
    if cell.population == "season":
        return np.append(v, HOME)
    if cell.covariate != "mixed":
        return np.append(v, GAMMA)
    i, j, z = league(cell, CHUNK, np.random.default_rng(5))
    answer = sum(expit(v[i] - v[j] + gamma * z) - 0.5 for gamma in (2.0, -1.0))
    used = clipped(i, j, z, cell.items)
    nets = np.bincount(i, answer, cell.items) - np.bincount(j, answer, cell.items)
    return solved(i, j, z, used, cell.items, np.append(nets, used @ answer))


def survey(cell: Cell, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows, and the covariate that their answers depend on."""
    v = worths(cell.items)
    i, j, z = season(cell, rng) if cell.population == "season" else league(cell, cell.rows, rng)
    effect = (HOME if cell.population == "season" else GAMMA) * z
    if cell.covariate == "mixed":
        effect = np.repeat(rng.choice([2.0, -1.0], cell.rows // 5), 5) * z
    if cell.covariate == "bent":
        effect = 0.5 * np.tanh(2.0 * z)
    p = expit(v[i] - v[j] + effect)
    # draws take the same from wins and losses
    tie = p * (1.0 - p) if cell.population == "season" else 0.0
    uniform = rng.random(len(p))
    y = np.where(uniform < p - tie / 2, 1, np.where(uniform < p + tie / 2, 0, -1))
    given = {
        "after the answer": z + y,
        "clipped": np.clip(z, -z.std(), z.std()),
        "rounded": z.std() * np.rint(z / z.std()),
    }.get(cell.covariate, z)
    kind = pd.CategoricalDtype([f"i{k:02d}" for k in range(cell.items)])
    frame = pd.DataFrame(
        {
            "a": pd.Categorical.from_codes(i, dtype=kind),
            "b": pd.Categorical.from_codes(j, dtype=kind),
            "outcome": y,
            "z": given,
        }
    )
    if cell.population == "respondents":
        frame["id"] = np.arange(len(frame)) // 5
    return frame, z


def rivals(cell: Cell, data: pd.DataFrame, rng: np.random.Generator) -> dict[str, float]:
    """Return the errors of differences of worths of the rivals."""
    i, j = data["a"].cat.codes.to_numpy(int), data["b"].cat.codes.to_numpy(int)
    y, z, m = data["outcome"].to_numpy(float), data["z"].to_numpy(), cell.items
    v = clipped(i, j, z, m)
    most = np.abs(v).max()
    target = np.append(np.bincount(i, y, m) - np.bincount(j, y, m), v @ y)
    direction = rng.normal(size=m + 1)
    length = rng.gamma(m + 1, 2.0 * np.sqrt(2.0 + most**2) / cell.epsilon)
    noises = {
        "l2 noise": length * direction / np.linalg.norm(direction),
        "by coordinate": rng.laplace(0.0, 2.0 * (m + most) / cell.epsilon, m + 1),
    }
    return {
        name: error(solved(i, j, z, v, m, target + noise)[:m], truth(cell)[:m])
        for name, noise in noises.items()
    }


def error(estimate: np.ndarray, true: np.ndarray) -> float:
    """Return the root mean square error of all differences of two items."""
    return float(np.sqrt(2.0 * np.var(estimate - true, ddof=1)))


def run(rng: np.random.Generator, cell: Cell) -> dict[str, object]:
    """Return coverage and errors, and the errors of the rivals."""
    data, _ = survey(cell, rng)
    people = cell.population == "respondents"
    asked = {"respondent": "id", "max_rows": 5} if people else {"respondent": None}
    asked |= {"ties": cell.population == "season", "distinct_pairs": False, "design": "public"}
    if cell.covariate != "left out":
        asked["contest"] = "z"
    else:
        data = data.drop(columns="z")
    result = pr.PrivateBTL.from_formula("a + b + outcome ~ 1", data, **asked).fit(
        cell.epsilon, allow_unidentified=True, rng=rng
    )
    true = truth(cell)
    m = cell.items
    estimate = result.params.to_numpy()
    items = list(result.release.design.items)
    pairs = result.pairwise()
    first, second = (pairs[name].map(items.index).to_numpy() for name in ("item1", "item2"))
    share = expit(true[first] - true[second])
    place = np.lexsort((np.maximum(first, second), np.minimum(first, second)))
    inside = ((pairs["lower"] <= share) & (share <= pairs["upper"])).to_numpy()[place]
    found: dict[str, object] = {"pairs": inside, "error": error(estimate[:m], true[:m])}
    found["off"] = (estimate[first] - estimate[second] - true[first] + true[second])[place]
    if cell.covariate != "left out":
        sides = result.conf_int().iloc[-1]
        found["gamma"] = estimate[-1]
        found["covered"] = float(sides["lower"] <= true[m] <= sides["upper"])
    if cell.population == "league" and cell.covariate == "normal" and np.isfinite(cell.epsilon):
        found |= rivals(cell, data, rng)
    return found


def cells() -> list[Cell]:
    """Return all cells."""
    every = (0.5, 1.0, 2.0, np.inf)
    broken = ("left out", "after the answer", "clipped", "rounded", "bent")
    return [
        *(Cell("league", 20, 20_000, epsilon) for epsilon in every),
        *(Cell("league", 20, 20_000, epsilon, "t3") for epsilon in (0.5, np.inf)),
        *(Cell("league", 60, 100_000, epsilon) for epsilon in (0.5, 2.0)),
        *(Cell("season", 20, 380, epsilon, "home") for epsilon in every),
        Cell("respondents", 20, 20_000, 1.0),
        *(Cell("respondents", 20, 20_000, epsilon, "mixed") for epsilon in (1.0, 2.0)),
        *(Cell("league", 20, 20_000, 1.0, covariate) for covariate in broken),
    ]


def row(cell: Cell, found: list[dict[str, object]]) -> dict[str, str]:
    def of(name: str) -> np.ndarray:
        return np.array([one.get(name, np.nan) for one in found], dtype=float)

    def mean(name: str) -> str:
        return f"{of(name).mean():.3f}" if name in found[0] else ""

    pairs = np.array([one["pairs"] for one in found])
    worst, floor = study.least(pairs)
    off = np.mean([one["off"] for one in found], axis=0)
    gamma = truth(cell)[-1]
    rmse = np.sqrt(np.mean((of("gamma") - gamma) ** 2))
    return {
        "population": cell.population,
        "items": str(cell.items),
        "rows": str(cell.rows),
        "covariate": cell.covariate,
        "epsilon": f"{cell.epsilon:g}",
        "replicates": str(len(found)),
        "coverage": f"{pairs.mean():.3f}",
        "worst": f"{worst:.3f}",
        "floor": f"{floor:.3f}",
        "error": mean("error"),
        "worst bias": f"{np.abs(off).max():.3f}",
        "true gamma": f"{gamma:.3f}",
        "mean gamma": mean("gamma"),
        "covered gamma": mean("covered"),
        "error of gamma": f"{rmse:.4f}" if "gamma" in found[0] else "",
        "l2 noise": mean("l2 noise"),
        "by coordinate": mean("by coordinate"),
    }


def verdict(rows: list[dict[str, str]]) -> str:
    """Return the worst coverages."""
    broken = ("left out", "after the answer", "clipped", "rounded", "bent")
    holding = [row for row in rows if row["covariate"] not in broken]
    low = min(holding, key=lambda row: float(row["worst"]) - float(row["floor"]))
    gamma = min(holding, key=lambda row: float(row["covered gamma"]))
    return (
        f"The worst difference relative to its floor is covered in {low['worst']} (floor "
        f"{low['floor']}; {low['population']}, {low['covariate']}, epsilon {low['epsilon']}), and "
        f"the coefficient in {gamma['covered gamma']} or more ({gamma['population']}, "
        f"{gamma['covariate']}, epsilon {gamma['epsilon']})."
    )


def main() -> None:
    study.table(
        "contests",
        "Worths and coefficients with contest covariates",
        "python validation/contests.py",
        cells(),
        run,
        row,
        study.asked(__doc__.splitlines()[0], 500),
        150_000,
        verdict,
    )


if __name__ == "__main__":
    main()
