"""Power of the tests of closeness and alternatives on the same data, at several epsilons.

Choices: the default, the permutation test, total variation alone (`tv`), the largest pair of groups
(`pairs`) and chi-square. Rankings: the default, the largest pair, and the Kendall kernel. A cell
gives the power of each at level 0.05 and its epsilons. Differences between two groups are `spread`
over half of the categories, or an `atom`: one category gains a fraction of all others. In "small
group" only the last group differs. Rows "equal" have no difference. The permutation test has less
power than `tv` if many categories differ slightly, and than `pairs` if only a small group differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import study

import privrank as pr

ALPHA, PERMUTATIONS = 0.05, 99
EPSILONS = (0.5, 1.0, math.inf)
OF_CHOICES = ("auto", "permutation", "tv", "pairs", "chi-square")
OF_RANKINGS = ("auto", "pairs", "kendall")


def flat(k: int) -> np.ndarray:
    return np.full(k, 1.0 / k)


def zipf(k: int) -> np.ndarray:
    p = 1.0 / np.arange(1, k + 1)
    return p / p.sum()


def spread(p: np.ndarray, distance: float) -> np.ndarray:
    """Increase every other category and decrease the rest, by a total variation distance."""
    up = np.arange(len(p)) % 2 == 0
    return np.maximum(p + distance * np.where(up, p / p[up].sum(), -p / p[~up].sum()), 0.0)


def atom(p: np.ndarray, share: float, category: int = 0) -> np.ndarray:
    """Move a fraction of all mass to one category."""
    moved = (1.0 - share) * p
    moved[category] += share
    return moved


@dataclass(frozen=True)
class Cell:
    """Groups of sizes, each with its distribution: probabilities, or phi and perhaps a centre."""

    alternative: str
    groups: tuple[tuple[int, object], ...]
    items: int
    choices: bool = True

    def __str__(self) -> str:
        sizes = ", ".join(str(size) for size, _ in self.groups)
        kind = "choices" if self.choices else "rankings"
        return f"{kind} {self.items}, {sizes}: {self.alternative}"

    def replicates(self, asked: int) -> int:
        return asked

    def test(self, rng: np.random.Generator) -> pr.ClosenessTest:
        """Return the test of one sample."""
        items = [f"i{j}" for j in range(self.items)]
        names = [f"g{g}" for g in range(len(self.groups))]
        if self.choices:
            counts = [rng.multinomial(size, p) for size, p in self.groups]
            table = {
                g: dict(zip(items, row, strict=True)) for g, row in zip(names, counts, strict=True)
            }
            return pr.ClosenessTest.from_counts(table, items)
        import pandas as pd

        ranks = [draw(size, rng) for size, draw in self.groups]
        frame = pd.DataFrame(np.concatenate(ranks), columns=items)
        sizes = [size for size, _ in self.groups]
        frame["group"] = pd.Categorical.from_codes(np.repeat(range(len(names)), sizes), names)
        return pr.ClosenessTest.from_formula(f"{' + '.join(items)} ~ group", frame)


def several(alternative: str, sizes: tuple[int, ...], *probabilities: np.ndarray) -> Cell:
    """Return groups of choices; all remaining groups have the last probabilities."""
    each = [*probabilities, *[probabilities[-1]] * (len(sizes) - len(probabilities))]
    return Cell(alternative, tuple(zip(sizes, each, strict=True)), len(probabilities[0]))


def mallows(phi: float, m: int, swapped: bool = False) -> Callable[..., np.ndarray]:
    centre = np.arange(1, m + 1)
    if swapped:
        centre[:2] = (2, 1)
    return pr.Mallows(m, phi, centre).rvs


def ranked(alternative: str, m: int, *groups: tuple[int, object]) -> Cell:
    return Cell(alternative, groups, m, choices=False)


def with_an_atom(m: int) -> Callable[..., np.ndarray]:
    def draw(size: int, rng: np.random.Generator) -> np.ndarray:
        ranks = pr.Mallows(m, 1.0).rvs(size, rng)
        ranks[rng.random(size) < 0.1] = np.arange(1, m + 1)
        return ranks

    return draw


P5, P24, P300, Z12, Z300 = flat(5), flat(24), flat(300), zipf(12), zipf(300)
HALF = (300, 300)
CELLS = (
    several("two of three, spread .15", (500, 500, 10), spread(P5, 0.15), P5),
    several("two of three, spread .15", (500, 500, 100), spread(P5, 0.15), P5),
    several("small group, spread .4", (30, 500, 500), spread(P5, 0.4), P5),
    several("one of three, spread .2", (200, 200, 200), spread(P5, 0.2), P5),
    several("half of six, spread .2", (100,) * 6, *[spread(P5, 0.2)] * 3, P5),
    several("one of six, spread .3", (100,) * 6, spread(P5, 0.3), P5),
    several("one of three, atom .1", (200, 200, 200), atom(P24, 0.1), P24),
    several("one of three, spread .15", (200, 200, 200), spread(P24, 0.15), P24),
    several("spread .4", (570, 30), P5, spread(P5, 0.4)),
    several("uniform, atom .07", HALF, P300, atom(P300, 0.07)),
    several("uniform, spread .3", HALF, P300, spread(P300, 0.3)),
    several("Zipf, atom .07 on the rarest", HALF, Z300, atom(Z300, 0.07, -1)),
    several("Zipf, atom .13 on the commonest", HALF, Z300, atom(Z300, 0.13)),
    several("Zipf, spread .25", HALF, Z300, spread(Z300, 0.25)),
    several("uniform, atom .08", HALF, P24, atom(P24, 0.08)),
    several("uniform, spread .15", HALF, P24, spread(P24, 0.15)),
    several("Zipf, spread .15", HALF, zipf(24), spread(zipf(24), 0.15)),
    several("uniform, spread .15", HALF, P5, spread(P5, 0.15)),
    several("uniform, spread .2", (1000, 1000), flat(120), spread(flat(120), 0.2)),
    several("equal, Zipf", (300, 200, 60), Z12, Z12),
    several("equal, Zipf", (570, 30), Z300, Z300),
    ranked(
        "two of three", 5, (500, mallows(0.85, 5)), (500, mallows(0.75, 5)), (10, mallows(0.8, 5))
    ),
    ranked("small group", 5, (500, mallows(0.9, 5)), (500, mallows(0.9, 5)), (30, mallows(0.5, 5))),
    ranked("one of three", 5, *[(200, mallows(0.85, 5))] * 2, (200, mallows(0.7, 5))),
    ranked("half of six", 5, *[(100, mallows(0.9, 5))] * 3, *[(100, mallows(0.75, 5))] * 3),
    ranked("one of six", 5, *[(100, mallows(0.85, 5))] * 5, (100, mallows(0.6, 5))),
    ranked("one of three", 9, *[(100, mallows(0.9, 9))] * 2, (100, mallows(0.8, 9))),
    ranked("phi .8 against .6", 5, (300, mallows(0.8, 5)), (300, mallows(0.6, 5))),
    ranked("leading two swapped", 5, (300, mallows(0.7, 5)), (300, mallows(0.7, 5, swapped=True))),
    ranked("atom .1", 6, (300, mallows(1.0, 6)), (300, with_an_atom(6))),
    ranked("equal", 5, (200, mallows(0.8, 5)), (200, mallows(0.8, 5)), (30, mallows(0.8, 5))),
)


def run(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return which methods reject at which epsilon."""
    test = cell.test(rng)
    methods = OF_CHOICES if cell.choices else OF_RANKINGS
    return np.array(
        [
            [
                test.fit(epsilon, method=method, permutations=PERMUTATIONS, rng=rng).pvalue <= ALPHA
                for epsilon in EPSILONS
            ]
            for method in methods
        ]
    )


def row(cell: Cell, found: list[np.ndarray]) -> dict[str, str]:
    power = np.mean(found, axis=0)
    methods = OF_CHOICES if cell.choices else OF_RANKINGS
    shown = {
        name: "/".join(f"{p:.2f}" for p in each) for name, each in zip(methods, power, strict=True)
    }
    return {
        "data": f"{'choices' if cell.choices else 'rankings'}, {cell.items}",
        "sizes": ", ".join(str(size) for size, _ in cell.groups),
        "alternative": cell.alternative,
        **{name: shown.get(name, "") for name in (*OF_CHOICES, "kendall")},
        "std err": f"{0.5 / math.sqrt(len(found)):.3f}",
    }


def main() -> None:
    study.table(
        "closeness_power",
        "Power of the tests of closeness at epsilon 0.5, 1 and infinity",
        "python validation/closeness_power.py",
        CELLS,
        run,
        row,
        study.asked(__doc__, 200),
        5000,
    )


if __name__ == "__main__":
    main()
