"""Size and power of the test behind every p-value and interval of a fit.

Rejection rates of true hypotheses at 0.05: the difference of two worths, for the worst pair of
items, and all worths jointly (`test` with as many equations). The columns of "zero" are rejection
rates of equal worths: of the pair with the largest difference, and of all (`test_homogeneity`). If
all worths are equal both are sizes. Answers of a respondent are dependent in most cells: rankings;
two camps that differ in one pair; personal worths; one question asked repeatedly. In the cells of
300 respondents in three camps and of 80 in two the dependence is released as one number.

"Identified" is the fraction of replicates whose release connects all items. A cell holds if the
worst pair is at most its ceiling, which the worst of as many pairs exceeds by chance with
probability 0.05, and the joint size is at most 0.05 plus two standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import study

import privrank as pr

STRONG = (2.0, 0.7, -0.7, -2.0)
LIKELY = float(np.log(0.95 / 0.05))


@dataclass(frozen=True)
class Cell:
    """One setting: behaviour and number of respondents, worths, epsilon and design."""

    answers: str
    people: int
    worths: tuple[float, ...]
    epsilon: float = np.inf
    design: str = "public"

    def replicates(self, number: int) -> int:
        """Return five times as many replicates if a few respondents or rows determine the size."""
        return 5 * number if self.answers in ("rows", "half alike") else number

    def __str__(self) -> str:
        return f"{self.answers}, n {self.people}, epsilon {self.epsilon:g}, {self.design}"


def _even(items: int) -> tuple[float, ...]:
    return (0.0,) * items


CELLS = [
    Cell("rankings", 8, _even(4)),
    Cell("rankings", 40, _even(4)),
    Cell("rankings", 8, STRONG),
    Cell("two camps", 12, _even(4)),
    Cell("independent", 12, STRONG),
    Cell("own worths", 30, tuple(np.linspace(0.75, -0.75, 6))),
    Cell("one question thrice", 20, (LIKELY / 2, -LIKELY / 2)),
    Cell("half alike", 50, (LIKELY / 2, -LIKELY / 2)),
    Cell("rows", 60, (LIKELY / 2, 0.0, -LIKELY / 2)),
    Cell("independent", 15, _even(4)),
    Cell("independent", 15, _even(6)),
    Cell("independent", 100, _even(3), 0.1),
    Cell("independent", 100, _even(6), 0.5),
    Cell("independent", 100, _even(6), 1.0),
    Cell("independent", 100, _even(3), 0.5, "private"),
    Cell("independent", 400, tuple(np.linspace(0.75, -0.75, 4)), 2.0, "private"),
    Cell("three camps", 300, _even(6), 2.0),
    Cell("one pair of two camps again and again", 80, _even(6), 3.0),
    Cell("rows", 600, (LIKELY / 2, 0.0, -LIKELY / 2), 1.0),
]


def _chances(rng: np.random.Generator, each: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    apart = each[:, pairs[:, 0]] - each[:, pairs[:, 1]]
    return np.asarray(rng.random(apart.shape) < 1.0 / (1.0 + np.exp(-apart)))


def survey(rng: np.random.Generator, people: int, cell: Cell) -> pd.DataFrame:
    """Draw a survey with a number of respondents."""
    worths, m = np.array(cell.worths), len(cell.worths)
    pairs = np.array(list(combinations(range(m), 2)))
    each = np.tile(worths, (people, 1))
    if cell.answers == "one question thrice":
        won = np.repeat(_chances(rng, each, pairs), 3, axis=1)
        pairs = np.repeat(pairs, 3, axis=0)
    elif cell.answers == "half alike":
        pairs = np.repeat(pairs, 3, axis=0)
        won = _chances(rng, each, pairs)
        alike = rng.random(people) < 0.5
        won[alike] = won[alike, :1]
    elif cell.answers == "rankings":
        order = each + rng.gumbel(size=each.shape)
        won = order[:, pairs[:, 0]] > order[:, pairs[:, 1]]
    elif cell.answers == "one pair of two camps again and again":
        each[:, 0] += 2.0 * rng.choice((-1.0, 1.0), people)
        asked = rng.integers(0, len(pairs), (people, 5))
        asked[rng.random(asked.shape) < 0.5] = 0
        chances = _chances(rng, each, pairs)
        return _frame(pairs[asked], np.take_along_axis(chances, asked, axis=1))
    else:
        if cell.answers == "two camps":
            each[:, :2] += 1.5 * rng.choice((-1.0, 1.0), (people, 1)) * (1.0, -1.0)
        if cell.answers == "three camps":
            favoured = rng.integers(0, 3, people)
            each[np.arange(people), 2 * favoured] += 1.0
            each[np.arange(people), 2 * favoured + 1] += 1.0
        if cell.answers == "own worths":
            each += rng.standard_normal(each.shape)
        won = _chances(rng, each, pairs)
    return _frame(np.broadcast_to(pairs, (people, *pairs.shape)), won)


def _frame(pairs: np.ndarray, won: np.ndarray) -> pd.DataFrame:
    """Return a frame, given pairs, shape (people, rows, 2), and whether the first item won."""
    return pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(len(won)), won.shape[1]),
            "item1": pairs[..., 0].ravel(),
            "item2": pairs[..., 1].ravel(),
            "outcome": np.where(won, 1, -1).ravel(),
        }
    )


@lru_cache(maxsize=32)
def truth(cell: Cell) -> np.ndarray:
    """Return the worths that fit a very large survey, if respondents' worths differ."""
    if cell.answers not in {"own worths", "rankings"} or not any(cell.worths):
        return np.array(cell.worths)
    frame = survey(np.random.default_rng(1), 400_000, cell)
    fit = pr.PrivateBTL(frame, items=range(len(cell.worths)), respondent=None, design="public")
    return fit.fit(np.inf, penalty=0).params.to_numpy()


def one(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return p-values of true and of equal differences, and of both joint hypotheses."""
    frame, m = survey(rng, cell.people, cell), len(cell.worths)
    respondent = None if cell.answers == "rows" else "respondent"
    people: dict[str, Any] = {}
    if respondent:
        most = int(frame.groupby("respondent").size().max())
        repeated = cell.answers.endswith(("thrice", "alike", "again"))
        people = {"max_rows": most, "distinct_pairs": not repeated}
    design = {"public": {"design": "public"}, "private": {"pair_counts": "release"}}[cell.design]
    model = pr.PrivateBTL(frame, items=range(m), respondent=respondent, **people, **design)
    fit = model.fit(cell.epsilon, allow_unidentified=True, rng=rng)
    apart = np.array([np.eye(m)[i] - np.eye(m)[j] for i, j in combinations(range(m), 2)])
    true = apart @ truth(cell)
    single, zero = fit.t_test((apart, true)), fit.t_test(apart)
    chain = np.eye(m)[:-1] - np.eye(m)[1:]
    joint = fit.test(chain, chain @ truth(cell)).pvalue
    pvalues = np.atleast_1d(single.pvalue), np.atleast_1d(zero.pvalue)
    identified = float(len(fit.components) == 1)
    return np.array([*pvalues[0], *pvalues[1], joint, fit.test_homogeneity().pvalue, identified])


def row(cell: Cell, found: list[np.ndarray]) -> dict[str, Any]:
    table = np.array(found)
    pairs = list(combinations(range(len(cell.worths)), 2))
    size, replicates = len(pairs), len(table)
    rejected = table[:, :-1] < 0.05
    levels = rejected[:, :size].mean(axis=0)
    worst = int(np.argmax(levels))
    far = int(np.argmax(np.abs(np.array([cell.worths[i] - cell.worths[j] for i, j in pairs]))))
    ceiling = 1.0 - study.floor(size, replicates, 0.95)
    most = 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / replicates)
    joint = float(rejected[:, -2].mean())
    holds = levels[worst] <= ceiling and joint <= most
    return {
        "answers": cell.answers,
        "respondents": cell.people,
        "items": len(cell.worths),
        "worths": "equal" if not any(cell.worths) else "differ",
        "epsilon": cell.epsilon,
        "design": cell.design,
        "replicates": replicates,
        "identified": f"{table[:, -1].mean():.3f}",
        "pairs, mean": f"{levels.mean():.3f}",
        "worst pair": f"{pairs[worst][0]} - {pairs[worst][1]}",
        "worst": f"{levels[worst]:.3f}",
        "ceiling": f"{ceiling:.3f}",
        "all pairs": f"{joint:.3f}",
        "zero, a pair": f"{rejected[:, size + far].mean():.3f}",
        "zero, all pairs": f"{rejected[:, -1].mean():.3f}",
        "verdict": "holds" if holds else "above",
    }


if __name__ == "__main__":
    study.table(
        "hypotheses",
        "Size and power of the tests of a Bradley-Terry fit",
        "python validation/hypotheses.py",
        CELLS,
        one,
        row,
        study.asked(__doc__, 1000),
        1200,
    )
