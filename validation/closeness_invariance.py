"""Power of the test of closeness if the same answers are described differently.

Each setting is tested as it is, with categories in reverse order, with groups in reverse order, as
rows of a data frame, and with one or three categories that nobody chooses. All descriptions of a
survey have the same answers, but noise of their own. The first three cannot change the power, and
differ by Monte Carlo error. A category without answers adds noise to a table of counts, so it costs
power; it adds none to a p-value of permutations. It can also change the method that is used, which
the table names.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import rivals
import study

import privrank as pr

AS_IS = "as it is"
DESCRIPTIONS = (
    AS_IS,
    "categories reversed",
    "groups reversed",
    "data frame",
    "1 category without answers",
    "3 categories without answers",
)
SETTINGS = (
    rivals.Cell("closeness of choices", 5, "rare", (40, 400), 2.0),
    rivals.Cell("closeness of choices", 5, "rare", (40, 400), math.inf),
    rivals.Cell("closeness of choices", 5, "atom", (150, 300), 1.0),
    rivals.Cell("closeness of choices", 4, "spread", (150, 300), 1.0),
    rivals.Cell("closeness of choices", 3, "moved", (150, 150), 0.5),
    rivals.Cell("closeness of choices", 6, "spread", (60, 300), 0.5),
    rivals.Cell("closeness of choices", 10, "moved", (100, 100), 1.0),
    rivals.Cell("closeness of choices", 5, "rare", (40, 200, 200), 2.0),
)


def described(description: str, counts: np.ndarray, names: list[str]) -> pr.ClosenessTest:
    """Return the test of the same counts, described in another way."""
    extra = int(description[0]) if description[0].isdigit() else 0
    names = [*names, *(f"none {x}" for x in range(extra))]
    counts = np.pad(counts, ((0, 0), (0, extra)))
    groups = {f"g{g}": dict(zip(names, each.tolist(), strict=True))
              for g, each in enumerate(counts)}  # fmt: skip
    if description == "data frame":
        place = np.argwhere(counts)
        rows = np.repeat(place, counts[tuple(place.T)], axis=0)
        frame = pd.DataFrame({"group": rows[:, 0], "answer": np.array(names)[rows[:, 1]]})
        return pr.ClosenessTest.from_formula(
            "answer ~ group", frame, levels=[*range(len(counts))], categories=names
        )
    if description == "groups reversed":
        groups = dict(reversed(groups.items()))
    if description == "categories reversed":
        names = names[::-1]
    return pr.ClosenessTest.from_counts(groups, names)


def run(rng: np.random.Generator, cell: rivals.Cell) -> dict[str, list[float]]:
    """Return by description whether the test rejects, and whether it releases a table."""
    p = rivals.shares(cell, 0.0)
    q = rivals.shares(cell, rivals.effect_of(cell))
    first, *others = cell.sizes
    counts = np.array([rng.multinomial(first, q), *(rng.multinomial(n, p) for n in others)])
    names = [f"c{x}" for x in range(cell.k)]
    found = {}
    for description in DESCRIPTIONS:
        result = described(description, counts, names).fit(cell.epsilon, rng=rng)
        tabled = result.release.plan.method == "table"
        found[description] = [float(result.pvalue <= rivals.ALPHA), float(tabled)]
    return found


def row(cell: rivals.Cell, found: list[dict[str, list[float]]]) -> dict[str, str]:
    rejected = {
        description: np.array([each[description][0] for each in found])
        for description in DESCRIPTIONS
    }
    apart = [study.mean_and_error(rejected[d] - rejected[AS_IS])[1] for d in DESCRIPTIONS[1:]]
    fewest = min(
        (int(d[0]) for d in DESCRIPTIONS if d[0].isdigit() and not found[0][d][1]), default=0
    )
    tables = [description for description in DESCRIPTIONS if found[0][description][1]]
    return {
        "categories": str(cell.k),
        "alternative": cell.alternative,
        "sizes": ", ".join(map(str, cell.sizes)),
        "epsilon": f"{cell.epsilon:g}",
        "replicates": str(len(found)),
        **{description: f"{rejected[description].mean():.3f}" for description in DESCRIPTIONS},
        "largest std err of a difference": f"{max(apart):.3f}",
        "methods": {0: "permutation", len(DESCRIPTIONS): "table"}.get(
            len(tables), f"table, but permutation with {cell.k + fewest} categories"
        ),
    }


def verdict(rows: list[dict[str, str]]) -> str:
    """Return the largest change by another description, and by categories without answers."""

    def largest(descriptions: tuple[str, ...]) -> float:
        return max(abs(float(row[d]) - float(row[AS_IS])) for row in rows for d in descriptions)

    return (
        f"Another order of categories or groups, or rows of a data frame, change the power by at "
        f"most {largest(DESCRIPTIONS[1:4]):.3f}. One category without answers changes it by at "
        f"most {largest(DESCRIPTIONS[4:5]):.3f}, and three by at most "
        f"{largest(DESCRIPTIONS[5:]):.3f}."
    )


def main() -> None:
    study.table(
        "closeness_invariance",
        "Power of the test of closeness for other descriptions of the same answers",
        "python validation/closeness_invariance.py",
        SETTINGS,
        run,
        row,
        study.asked(__doc__, 1000),
        99_000,
        verdict,
    )


if __name__ == "__main__":
    main()
