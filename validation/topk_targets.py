"""Targets of a selection under a private design: correct items, and coverage of statements.

The top quarter of the items has worth 0, the others the logarithms of uniform numbers from 0.2 to
0.7 (the experiments of Cai, Chakraborty and Wang 2023). `share` is the number of rows over the
number of pairs. Pairs are drawn at random, with replacement: uniformly, or in proportion to the
product of the popularities of their items; the k-th item in a random order has popularity k^-0.7.
Respondents answer five pairs each.

"net wins" and "win rate" are the fractions of correct items that each target selects. "default" is
this fraction for the target that the default uses, with the fraction of surveys in which it uses
win rates. "algorithm 2" is for raw wins with Laplace noise. "counts released" is for net wins with
pair counts released like in fits of worths, among the items that these identify. Differences have
standard errors over surveys. `behind` is the deficit of the default relative to the better target,
and `lost` the deficit of net wins relative to Algorithm 2, both beyond two standard errors.

"coverage" is the coverage of intervals of the win rates against the opponents met, for the worst
item, with its floor; items without a stated interval count as covered, and "withheld" is their
fraction. `wrong` is the fraction of surveys in which some item is falsely stated to be "in" or
"out".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ccw
import numpy as np
import pandas as pd
import study

import privrank as pr

EPSILONS = (0.5, 1.0, 2.0, 4.0)
ROWS = 5


@dataclass(frozen=True)
class Cell:
    """One setting: items, rows over pairs, popularity and unit."""

    items: int
    share: float
    popularity: str
    unit: str

    @property
    def beside(self) -> bool:
        """Whether net wins with released pair counts are compared."""
        return self.items == 20 and self.popularity == "equal" and self.unit == "rows"

    def replicates(self, most: int) -> int:
        return max(most * 20 // max(self.items, 20), 10)

    def __str__(self) -> str:
        return f"{self.items} items, share {self.share:g}, {self.popularity}, {self.unit}"


CELLS = [
    Cell(items, share, popularity, unit)
    for unit in ("rows", "respondents")
    for popularity in ("equal", "unequal")
    for items in (20, 60, 300)
    for share in (0.1, 0.3, 1.0)
]


def worths(rng: np.random.Generator, items: int) -> np.ndarray:
    """Draw the worths, the top quarter first."""
    k = items // 4
    return np.log(np.r_[np.ones(k), rng.uniform(0.2, 0.7, items - k)])


def survey(rng: np.random.Generator, cell: Cell, theta: np.ndarray) -> pd.DataFrame:
    """Draw a survey."""
    m = cell.items
    first, second = np.triu_indices(m, 1)
    weights = np.ones(m)
    if cell.popularity == "unequal":
        weights = (1.0 + rng.permutation(m)) ** -0.7
    chance = weights[first] * weights[second]
    number = max(round(cell.share * len(first)), 1)
    if cell.unit == "rows":
        pair = rng.choice(len(first), number, p=chance / chance.sum())
        people = np.arange(number)
    else:
        # the pairs of a respondent are different: draw again until they are
        people = np.repeat(np.arange(number), ROWS)
        table = np.zeros((number, ROWS), dtype=np.int64)
        again = np.arange(number)
        while len(again):
            table[again] = rng.choice(len(first), (len(again), ROWS), p=chance / chance.sum())
            again = again[(np.diff(np.sort(table[again], axis=1), axis=1) == 0).any(axis=1)]
        pair = table.ravel()
    one, other = first[pair], second[pair]
    won = rng.random(len(pair)) < 1.0 / (1.0 + np.exp(theta[other] - theta[one]))
    return pd.DataFrame(
        {"respondent": people, "item1": one, "item2": other, "outcome": np.where(won, 1, -1)}
    )


def rates(frame: pd.DataFrame, theta: np.ndarray) -> np.ndarray:
    """Return the expected win rates against the opponents met; one half without any."""
    one, other = frame["item1"].to_numpy(), frame["item2"].to_numpy()
    ahead = 1.0 / (1.0 + np.exp(theta[other] - theta[one]))
    m = len(theta)
    wins = np.bincount(one, ahead, minlength=m) + np.bincount(other, 1.0 - ahead, minlength=m)
    met = np.bincount(one, minlength=m) + np.bincount(other, minlength=m)
    return np.where(met > 0, wins / np.maximum(met, 1), 0.5)


def one(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return the results of each epsilon: rows of correct items, then coverage of each item."""
    m, k = cell.items, cell.items // 4
    theta = worths(rng, m)
    frame = survey(rng, cell, theta)
    rows = cell.unit == "rows"
    people: dict[str, Any] = {"respondent": None if rows else "respondent"}
    people |= {} if rows else {"max_rows": ROWS}
    model = pr.PrivateTopK(frame, k, items=range(m), **people)
    true = rates(frame, theta)
    tally = ccw.Tally(
        frame["item1"].to_numpy(), frame["item2"].to_numpy(), frame["outcome"].to_numpy(), m
    )
    table = []
    for epsilon in EPSILONS:
        fits = {name: model.fit(epsilon, target=name, rng=rng) for name in ("net wins", "win rate")}
        right = {name: _right(fit.selected, k) for name, fit in fits.items()}
        default = model.fit(epsilon, rng=rng)
        fit = fits["win rate"]
        noisy = tally.wins + rng.laplace(0.0, (2.0 if rows else 2.0 * ROWS) / epsilon, m)
        sides = fit.conf_int()
        inside = ((sides["lower"] <= true) & (true <= sides["upper"])).to_numpy()
        stated = fit.params.notna().to_numpy()
        order = np.argsort(-true, kind="stable")
        words = fit.membership().to_numpy()
        wrong = bool((words[order[k:]] == "in").any() or (words[order[:k]] == "out").any())
        table.append(
            [
                right["net wins"],
                right["win rate"],
                right[default.target],
                float(default.target == "win rate"),
                float(np.isin(ccw.best_first(rng, noisy)[:k], np.arange(k)).mean()),
                _released(frame, people, m, k, epsilon, rng) if cell.beside else np.nan,
                float(stated.mean()),
                float(wrong),
                float((words != "open").mean()),
                *(inside | ~stated),
            ]
        )
    return np.array(table)


def _right(selected: tuple[str, ...], k: int) -> float:
    return sum(int(item) < k for item in selected) / k


def _released(
    frame: pd.DataFrame,
    people: dict[str, Any],
    m: int,
    k: int,
    epsilon: float,
    rng: np.random.Generator,
) -> float:
    """Return the fraction of correct items for net wins with released pair counts."""
    worths = pr.PrivateBTL(frame, items=range(m), **people)
    fit = worths.fit(epsilon, method="counts", allow_unidentified=True, rng=rng)
    selection = pr.PrivateTopK.from_release(fit.release, k)
    known = selection.params.dropna().index
    best = [item for item in selection.to_frame().index if item in known][:k]
    return _right(tuple(best), k)


def rows_of(cell: Cell, found: list[np.ndarray]) -> list[dict[str, Any]]:
    """Return one row for each epsilon."""
    table = np.array(found)
    rows = []
    for place, epsilon in enumerate(EPSILONS):
        here = table[:, place]
        net, rate, default, which, theirs, released, stated, wrong, sure = here[:, :9].T
        covered = here[:, 9:].astype(bool)
        # worths are drawn in each survey: items within each group are exchangeable
        best = covered.mean(axis=0)
        behind = np.maximum(net.mean(), rate.mean()) - default.mean()
        better = net if net.mean() > rate.mean() else rate
        rows.append(
            {
                "items": cell.items,
                "share": cell.share,
                "popularity": cell.popularity,
                "unit": cell.unit,
                "epsilon": epsilon,
                "replicates": len(here),
                "net wins": f"{net.mean():.3f}",
                "win rate": f"{rate.mean():.3f}",
                "default": f"{default.mean():.3f}",
                "by win rate": f"{which.mean():.2f}",
                "algorithm 2": f"{theirs.mean():.3f}",
                "counts released": "" if np.isnan(released).any() else f"{released.mean():.3f}",
                "behind": f"{max(behind - 2 * _error(better - default), 0.0):.3f}",
                "lost": f"{max((theirs - net).mean() - 2 * _error(theirs - net), 0.0):.3f}",
                "coverage": f"{covered.mean():.3f}",
                "least": f"{best.min():.3f}",
                "floor": f"{study.floor(cell.items, len(here), 0.95):.3f}",
                "withheld": f"{1 - stated.mean():.3f}",
                "sure": f"{sure.mean():.3f}",
                "wrong": f"{wrong.mean():.3f}",
            }
        )
    return rows


def _error(differences: np.ndarray) -> float:
    return float(differences.std(ddof=1) / np.sqrt(len(differences)))


def main() -> None:
    import time

    asked, started, rows = study.asked(__doc__, 40), time.time(), []
    for number, cell in enumerate(CELLS):
        if any(part in str(cell) for part in asked.only):
            found = study.replicate(
                one, cell.replicates(asked.replicates), cell, cell=9000 + number
            )
            rows += rows_of(cell, found)
            print(*rows[-len(EPSILONS) :], sep="\n", flush=True)
    if len(rows) == len(CELLS) * len(EPSILONS):
        study.write(
            "topk_targets",
            "Targets of a private selection",
            "python validation/topk_targets.py",
            rows,
            started,
        )


if __name__ == "__main__":
    main()
