"""Plans of tests compared with fits: the power at the solved size, epsilon or effect."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from study import asked, mean_and_error, needed, table

import privrank as pr
from privrank.local.kinds import PairBits
from privrank.power.testing import TestPower

POWER = pr.power.UniformityPower, pr.power.IdentityPower, pr.power.ClosenessPower


@dataclass(frozen=True)
class Cell:
    """A plan and its arguments; the omitted one is solved for."""

    name: str
    design: TestPower
    stated: Mapping[str, float]
    power: float = 0.8
    number: float = math.nan

    def __str__(self) -> str:
        given = ", ".join(f"{name} {value:g}" for name, value in self.stated.items())
        return f"{self.name}: {given}"

    def replicates(self, number: int) -> int:
        return number

    @property
    def what(self) -> str:
        """The name of the solved argument."""
        effect = "total_variation" if kind(self.design) == "choices" else "phi"
        return next(name for name in ("nobs", "epsilon", effect) if name not in self.stated)

    @property
    def all(self) -> dict[str, Any]:
        """Everything that `power` takes."""
        number = int(self.number) if self.what == "nobs" else float(self.number)
        return {**self.stated, self.what: number}


def kind(design: TestPower) -> str:
    if isinstance(design, pr.power.IdentityPower):
        return "rankings" if isinstance(design.null, pr.Mallows) else "choices"
    return design.kind


def tilted(p: Sequence[float], distance: float, falling: bool = False) -> np.ndarray:
    """Return probabilities at a distance from p: half of the mass, the first, is larger."""
    cells = np.array(p, dtype=float)
    first = (np.cumsum(cells) <= 0.5 + 1e-12) | (np.arange(len(cells)) == 0)
    first = ~first if falling else first
    share = cells[first].sum()
    cells[first] *= 1 + distance / share
    cells[~first] *= 1 - distance / (1 - share)
    return cells


def run(rng: np.random.Generator, cell: Cell) -> float:
    """Return whether a fit of simulated data rejects."""
    design = cell.design
    at = cell.all
    n, epsilon = int(at["nobs"]), at["epsilon"]
    distance, phi = at.get("total_variation"), at.get("phi")
    if isinstance(design, pr.power.ClosenessPower):
        sizes, items = design.sizes(n), design.items
        small = sizes.index(min(sizes))
        if design.kind == "choices":
            p = np.full(items, 1 / items)
            counts = {
                f"g{k}": rng.multinomial(size, tilted(p, distance) if k == small else p)
                for k, size in enumerate(sizes)
            }
            names = [f"c{k}" for k in range(items)]
            named = {group: dict(zip(names, found, strict=True)) for group, found in counts.items()}
            test = pr.ClosenessTest.from_counts(named, names)
        else:
            models = [pr.Mallows(items, phi if k == small else 1.0) for k in range(len(sizes))]
            drawn = [model.rvs(size, rng) for model, size in zip(models, sizes, strict=True)]
            test = of_groups(drawn)
        fit = test.fit(epsilon, permutations=design.permutations, rng=rng)
    elif getattr(design, "mode", "") == "local":
        names = [str(k) for k in range(design.items)]
        protocol = PairBits(names, epsilon)
        ranks = pr.Mallows(design.items, phi).rvs(n, rng)[:, rng.permutation(design.items)]
        fit = pr.UniformityTest.from_reports(protocol.tally(protocol.simulate(ranks, rng)))
    elif kind(design) == "choices":
        null = getattr(design, "null", None)
        p = np.full(design.items, 1 / design.items) if null is None else np.array(null)
        names = [f"c{k}" for k in range(len(p))]
        side = getattr(design, "alternative", "two-sided")
        order = np.arange(len(p))
        if side == "two-sided":  # which half of the mass is larger is drawn
            order = rng.permutation(order)
        cells = np.empty(len(p))
        cells[order] = tilted(p[order], distance, side == "smaller")
        counts = dict(zip(names, rng.multinomial(n, cells), strict=True))
        if null is None:
            fit = pr.UniformityTest.from_counts(counts, names).fit(epsilon, rng=rng)
        else:
            test = pr.IdentityTest.from_counts(counts, dict(zip(names, null, strict=True)))
            options = {"method": design.method, "alternative": design.alternative}
            fit = test.fit(epsilon, rng=rng, **options)
    elif isinstance(design, pr.power.IdentityPower):
        model = design.null
        ranks = pr.Mallows(len(model.items), phi, model.center).rvs(n, rng)
        fit = pr.IdentityTest(ranks, model).fit(epsilon, rng=rng)
    else:
        ranks = pr.Mallows(design.items, phi).rvs(n, rng)
        fit = pr.UniformityTest(ranks).fit(epsilon, method=design.method, rng=rng)
    return float(fit.reject)


def of_groups(drawn: Sequence[np.ndarray]) -> pr.ClosenessTest:
    if len(drawn) == 2:
        return pr.ClosenessTest(*drawn)
    import pandas as pd

    names = [f"i{k}" for k in range(drawn[0].shape[1])]
    frame = pd.DataFrame(np.concatenate(drawn), columns=names)
    labels = np.repeat([f"g{k}" for k in range(len(drawn))], [len(each) for each in drawn])
    frame["group"] = pd.Categorical(labels)
    return pr.ClosenessTest.from_formula(" + ".join(names) + " ~ group", frame)


def row(cell: Cell, found: Sequence[float]) -> dict[str, Any]:
    power, error = mean_and_error(found)
    planned = cell.design.power(**cell.all)
    apart = (power - float(planned)) / math.hypot(error, planned.error)
    return {
        "plan": cell.name,
        "stated": f"{str(cell).partition(': ')[2]}, power {cell.power:g}",
        "found": repr(cell.number),
        "planned power": f"{float(planned):.3f}",
        "its std err": f"{planned.error:.3f}",
        "power of fits": f"{power:.3f}",
        "std err": f"{error:.3f}",
        "difference in std errs": f"{apart:.2f}",
    }


def cells() -> list[Cell]:
    """Return the grid."""
    uniform, identity, groups = POWER
    quiet, four = math.inf, [0.4, 0.3, 0.2, 0.1]
    return [
        Cell("uniformity, 4 items", uniform(4), {"phi": 0.87, "epsilon": 1.0}),
        Cell("uniformity, 6 items", uniform(6), {"phi": 0.93, "epsilon": 0.5}),
        Cell("uniformity, 6 items, plain", uniform(6), {"phi": 0.93, "epsilon": quiet}),
        Cell("uniformity, 10 items", uniform(10), {"nobs": 120, "epsilon": 0.8}),
        Cell("uniformity, 5 items, borda", uniform(5, method="borda"), {"nobs": 240, "phi": 0.84}),
        Cell("uniformity, 2 choices", uniform(2, kind="choices"), {"nobs": 150, "epsilon": 0.2}),
        Cell(
            "uniformity, 8 choices",
            uniform(8, kind="choices"),
            {"total_variation": 0.13, "epsilon": 0.4},
        ),
        Cell("identity, phi .7", identity(pr.Mallows(5, 0.7)), {"phi": 0.79, "epsilon": 1.0}),
        Cell("identity, phi .6", identity(pr.Mallows(4, 0.6)), {"phi": 0.47, "epsilon": 0.7}),
        Cell("identity, 4 choices", identity(four), {"total_variation": 0.09, "epsilon": 1.0}),
        Cell("identity, 4 choices, epsilon", identity(four), {"total_variation": 0.1, "nobs": 300}),
        Cell(
            "identity, one-sided",
            identity([0.3, 0.7], method="binary", alternative="smaller"),
            {"total_variation": 0.07, "epsilon": 0.3},
        ),
        Cell("reports, 6 items", uniform(6, mode="local"), {"phi": 0.8, "epsilon": 1.0}),
        Cell("reports, 12 items, held out", uniform(12, mode="local"), {"nobs": 900, "epsilon": 2}),
        Cell("groups, 4 items", groups(4), {"phi": 0.72, "epsilon": 1.0}, 0.7),
        Cell("groups, 6 items", groups(6), {"nobs": 260, "epsilon": 1.0}, 0.7),
        Cell(
            "three groups, 5 items", groups(5, shares=(2, 1, 1)), {"phi": 0.7, "epsilon": 2.0}, 0.7
        ),
        Cell(
            "groups, 3 choices",
            groups(3, kind="choices", shares=(2, 1)),
            {"total_variation": 0.18, "epsilon": 1.0},
        ),
        Cell(
            "groups, 6 choices, plain",
            groups(6, kind="choices"),
            {"total_variation": 0.2, "epsilon": quiet},
            0.9,
        ),
    ]


def main() -> None:
    options: argparse.Namespace = asked(__doc__, 400)
    grid = cells()
    for place, cell in enumerate(needed(grid)):  # solved once, before the parallel fits
        if any(part in str(cell) for part in options.only):
            grid[place] = replace(
                cell, number=cell.design.solve_power(**cell.stated, power=cell.power)
            )
    table(
        "power_tests",
        "Planned and simulated power of tests",
        "python validation/power_tests.py",
        grid,
        run,
        row,
        options,
        21000,
    )


if __name__ == "__main__":
    main()
