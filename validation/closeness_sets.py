"""Size and power of the test that groups answer alike to offered sets, and of two rivals.

180 to 600 respondents name the best and the worst item of 3 sets of 4 of 7 items. The sets are
assigned in 6 versions. Under H0 all groups have the same worths: all respondents alike, or two
camps that differ by 1.5 in opposite directions in two items. In "other versions" the first group
has mostly the first three versions and the last group the others. Under H1 the last group differs
by `d` in four items, or by 2 `d` in one. `wald` is the joint test of the groups in `PrivateBTL` at
the same epsilon. `summed` is a permutation test of summed scores without regard to versions; it has
no noise at all and no stated privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import study

import privrank as pr

ALPHA, PERMUTATIONS = 0.05, 199
M, TASKS, VERSIONS, SIZE = 7, 3, 6, 4
ITEMS = list("abcdefg")
EPSILONS = (1.0, math.inf)
PATTERNS = {
    "none": np.zeros(M),
    "four items": np.array([1, -1, 0, 0, 0, 1, -1]),
    "one item": np.array([0, 0, 0, 2, 0, 0, 0]),
}


@dataclass(frozen=True)
class Cell:
    """Sizes of the groups, the difference of the last one, and who has which questionnaire."""

    sizes: tuple[int, ...]
    pattern: str
    d: float = 0.0
    population: str = "same"
    versions: str = "same"

    def __str__(self) -> str:
        return f"{self.sizes}, {self.pattern} {self.d:g}, {self.population}, {self.versions}"

    def replicates(self, asked: int) -> int:
        return asked


CELLS = (
    *(Cell(sizes, "none") for sizes in ((150, 150), (240, 60), (100, 100, 100), (480, 120))),
    Cell((150, 150), "none", population="camps"),
    Cell((240, 60), "none", versions="other"),
    *(
        Cell(sizes, "four items", 0.4)
        for sizes in ((90, 90), (150, 150), (240, 60), (100, 100, 100))
    ),
    *(Cell(sizes, "one item", 0.4) for sizes in ((150, 150), (240, 60))),
)


@cache
def plan() -> np.ndarray:
    """Return the sets of all versions, shape (versions, tasks, size)."""
    rng = np.random.default_rng(20261201)
    return np.sort(np.argsort(rng.random((VERSIONS, TASKS, M)), axis=2)[:, :, :SIZE], axis=2)


def choices(cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
    """Return the answers of a survey."""
    group = np.repeat(range(len(cell.sizes)), cell.sizes)
    n = len(group)
    version = rng.permuted(np.arange(n) % VERSIONS)
    if cell.versions == "other":
        half = VERSIONS // 2
        last = (rng.random(n) < 0.85) == (group == len(cell.sizes) - 1)
        version = rng.integers(0, half, n) + half * last
    worths = np.linspace(-1.0, 1.0, M) + np.where(
        (group == len(cell.sizes) - 1)[:, None], cell.d * PATTERNS[cell.pattern], 0.0
    )
    if cell.population == "camps":
        worths[:, :2] += np.where(rng.random(n) < 0.5, 1.5, -1.5)[:, None] * np.array([1.0, -1.0])
    person = np.repeat(np.arange(n), TASKS)
    shown = plan()[version].reshape(-1, SIZE)
    own = worths[person[:, None], shown]
    joint = own[:, :, None] - own[:, None, :] + rng.gumbel(size=(*own.shape, SIZE))
    joint[:, np.arange(SIZE), np.arange(SIZE)] = -np.inf
    best, worst = np.divmod(joint.reshape(len(shown), -1).argmax(axis=1), SIZE)
    rows = np.arange(len(shown))
    names = np.array(ITEMS)
    frame = pd.DataFrame(names[shown], columns=[f"item {k}" for k in range(SIZE)])
    frame = frame.assign(
        id=person,
        town=np.array(["g0", "g1", "g2"])[group[person]],
        best=names[shown[rows, best]],
        worst=names[shown[rows, worst]],
    )
    return pr.as_choices(
        frame,
        offered=[f"item {k}" for k in range(SIZE)],
        best="best",
        worst="worst",
        items=ITEMS,
        respondent="id",
    )


def summed(frame: pd.DataFrame, rng: np.random.Generator) -> bool:
    """Return whether a permutation test of summed scores rejects."""
    scores = np.zeros((frame["id"].max() + 1, M))
    for column, score in (("best", 1.0), ("worst", -1.0)):
        np.add.at(scores, (frame["id"], frame[column].map(ITEMS.index)), score)
    group = frame.drop_duplicates("id").sort_values("id")["town"].to_numpy()

    def statistic(labels: np.ndarray) -> float:
        apart = scores - scores.mean(axis=0)
        return sum(np.linalg.norm(apart[labels == one].sum(axis=0)) for one in np.unique(group))

    observed = statistic(group)
    drawn = [statistic(rng.permutation(group)) for _ in range(PERMUTATIONS)]
    return bool(1 + np.count_nonzero(np.array(drawn) >= observed) <= ALPHA * (PERMUTATIONS + 1))


def run(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return which of the tests reject at which epsilon, and whether the summed scores do."""
    frame = choices(cell, rng)
    levels = ["g0", "g1", "g2"][: len(cell.sizes)]
    asked = {"respondent": "id", "max_rows": TASKS, "items": ITEMS}
    formula = "best + worst ~ town"
    test = pr.ClosenessTest.from_formula(formula, frame, levels=levels, **asked)
    model = pr.PrivateBTL.from_formula(
        formula, frame, levels={"town": levels}, design="public", **asked
    )
    found = []
    for epsilon in EPSILONS:
        pvalue = test.fit(epsilon, permutations=PERMUTATIONS, rng=rng).pvalue
        terms = model.fit(epsilon, allow_unidentified=True, rng=rng).wald_test_terms()
        found += [pvalue <= ALPHA, terms.loc["town", "pvalue"] <= ALPHA]
    return np.array([*found, summed(frame, rng)], dtype=float)


def row(cell: Cell, found: list[np.ndarray]) -> dict[str, str]:
    power = np.mean(found, axis=0)
    return {
        "sizes": ", ".join(map(str, cell.sizes)),
        "difference": "none" if cell.d == 0 else f"{cell.d:g} in {cell.pattern}",
        "population": cell.population,
        "versions": cell.versions,
        "replicates": str(len(found)),
        "test": "/".join(f"{p:.3f}" for p in power[0:4:2]),
        "wald": "/".join(f"{p:.3f}" for p in power[1:4:2]),
        "summed": f"{power[4]:.3f}",
        "std err": f"{0.5 / math.sqrt(len(found)):.3f}",
    }


def main() -> None:
    study.table(
        "closeness_sets",
        "Tests that groups answer alike to offered sets, at epsilon 1 and infinity",
        "python validation/closeness_sets.py",
        CELLS,
        run,
        row,
        study.asked(__doc__, 200),
        9000,
    )


if __name__ == "__main__":
    main()
