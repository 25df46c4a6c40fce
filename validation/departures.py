"""Power of one-sample tests, and of their parts alone, against departures of several kinds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from study import asked, mean_and_error, needed, table

import privrank as pr
from privrank.hypotheses.effects import rejection_of
from privrank.hypotheses.nulls import FULL, Statistic, uniform, uniform_rankings
from privrank.mechanisms import categories, ranknorms
from privrank.privacy.noise import DiscreteLaplace

ALPHA = 0.05


def opposite(rng: np.random.Generator, m: int, n: int, phi: float) -> np.ndarray:
    """Two camps of equal size, the order of one the reverse of the other's."""
    ranks = pr.Mallows(m, phi).rvs(n, rng)
    turned = rng.random(n) < 0.5
    ranks[turned] = m + 1 - ranks[turned]
    return ranks


def cycle(rng: np.random.Generator, m: int, n: int, share: float) -> np.ndarray:
    """A fraction of the rankings are rotations of one."""
    ranks = uniform_rankings(rng, n, m)
    turned = rng.random(n) < share
    turns = rng.integers(0, m, (int(turned.sum()), 1))
    ranks[turned] = (np.arange(m) + turns) % m + 1
    return ranks


def ends(rng: np.random.Generator, m: int, n: int, share: float) -> np.ndarray:
    """A fraction of the rankings place one item first or last."""
    ranks = uniform_rankings(rng, n, m)
    for row in np.flatnonzero(rng.random(n) < share):
        wanted = 1 if rng.random() < 0.5 else m
        other = int(np.flatnonzero(ranks[row] == wanted)[0])
        ranks[row, [0, other]] = ranks[row, [other, 0]]
    return ranks


def consensus(rng: np.random.Generator, m: int, n: int, phi: float) -> np.ndarray:
    """A Mallows model."""
    return pr.Mallows(m, phi).rvs(n, rng)


RANKINGS = {
    (9, 300): (
        ("opposite camps", opposite, (1.0, 0.5, 0.8)),
        ("cycle", cycle, (0.5,)),
        ("first or last", ends, (0.5, 0.3)),
        ("Mallows", consensus, (0.97, 0.95)),
    ),
    (25, 300): (
        ("opposite camps", opposite, (0.9, 0.93)),
        ("cycle", cycle, (0.5,)),
        ("first or last", ends, (0.5, 0.35)),
        ("Mallows", consensus, (1.0, 0.993, 0.99, 0.986)),
    ),
    (5, 100): (
        ("opposite camps", opposite, (0.5,)),
        ("Mallows", consensus, (1.0, 0.92, 0.85)),
    ),
    (100, 1000): (
        ("first or last", ends, (0.5,)),
        ("Mallows", consensus, (1.0, 0.9986, 0.99774, 0.99644)),
    ),
}


def zipf(k: int) -> np.ndarray:
    return 1 / np.arange(1, k + 1) / (1 / np.arange(1, k + 1)).sum()


def raised(p: np.ndarray, cells: object, by: float) -> np.ndarray:
    """Return probabilities with some cells increased or decreased, and the others rescaled."""
    chosen = np.zeros(len(p), dtype=bool)
    chosen[cells] = True
    shares = p[chosen] if p[chosen].sum() > 0 else np.ones(int(chosen.sum()))
    q = p.copy()
    q[chosen] += by * shares / shares.sum()
    q[~chosen] *= 1 - by / p[~chosen].sum()
    return q


def flat(k: int) -> np.ndarray:
    return np.array(uniform(k))


ZEROS = np.append(zipf(20), np.zeros(5))
FLAT = ((1, 0.0), (1, 0.02), (3, 0.04), (10, 0.07), (30, 0.1), (100, 0.15), (360, 0.2))
CHOICES = (
    *((f"720, +{by} on {s}", 1000, flat(720), raised(flat(720), range(s), by)) for s, by in FLAT),
    *((f"24, +{by} on {s}", 300, flat(24), raised(flat(24), range(s), by))
      for s, by in ((1, 0.06), (12, 0.14))),
    *((f"6, +{by} on {s}", 300, flat(6), raised(flat(6), range(s), by))
      for s, by in ((1, 0.08), (3, 0.1))),
    ("Zipf 100, null", 1000, zipf(100), zipf(100)),
    ("Zipf 100, rarest +0.02", 1000, zipf(100), raised(zipf(100), 99, 0.02)),
    ("Zipf 100, third -0.035", 1000, zipf(100), raised(zipf(100), 2, -0.035)),
    ("Zipf 100, top +0.06", 1000, zipf(100), raised(zipf(100), 0, 0.06)),
    ("Zipf 100, rare half +0.06", 1000, zipf(100), raised(zipf(100), range(50, 100), 0.06)),
    ("Zipf 20 and 5 of null probability 0, null", 300, ZEROS, ZEROS),
    ("Zipf 20 and 5 of null probability 0, 0.03 there", 300, ZEROS,
     raised(ZEROS, range(20, 25), 0.03)),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Cell:
    """One departure from one null, at one epsilon, and the tests that are applied."""

    null: str
    name: str
    n: int
    m: int
    epsilon: float
    draw: Callable[..., np.ndarray]
    setting: tuple
    tests: dict[str, Statistic]
    fewer: int = 1

    def __str__(self) -> str:
        return f"{self.name}, m = {self.m}, n = {self.n}, epsilon = {self.epsilon:g}"

    def replicates(self, wanted: int) -> int:
        return max(20, wanted // self.fewer)


def counts(rng: np.random.Generator, k: int, n: int, p: np.ndarray) -> np.ndarray:
    return rng.multinomial(n, p)


def of_rankings(n: int, m: int, epsilon: float) -> dict[str, Statistic]:
    return {
        "default": ranknorms.of_rankings(n, m, epsilon),
        "Borda norm": ranknorms.borda_norm(n, m),
        "residual norm": ranknorms.residual_norm(n, m),
    }


def cellwise_excess(n: int, p: tuple[float, ...]) -> Statistic:
    """The excess of a category's count over its expected range."""
    cells, name = categories.ExpectedCounts(n, p), "largest deviation of a category"
    value, step = cells.cellwise_value, 1.0 / categories.GRID
    return Statistic(name, step, categories.GRID, value, cells.null(name, value), (), None)


def of_choices(n: int, p: tuple[float, ...], epsilon: float) -> dict[str, Statistic]:
    return {
        "default": categories.omnibus_of(n, p, epsilon),
        "total variation": categories.distance_from_null(n, p),
        "cell-wise excess": cellwise_excess(n, p),
    }


def cells() -> tuple[list[Cell], list[Cell]]:
    ranked = []
    for (m, n), departures in RANKINGS.items():
        for epsilon in (0.5, 1.0, 2.0, math.inf):
            tests, fewer = of_rankings(n, m, epsilon), 2 if n * m > 10**4 else 1
            for kind, draw, sizes in departures:
                for x in sizes:
                    name, setting = f"{kind} {x:g}" if x < 1 else "uniform", (m, n, x)
                    cell = Cell("uniform", name, n, m, epsilon, draw, setting, tests, fewer)
                    ranked.append(cell)
    chosen = [
        Cell(name.partition(",")[0], name, n, len(p), epsilon, counts, (len(p), n, q), tests)
        for name, n, p, q in CHOICES
        for epsilon in (0.25, 0.5, 1.0, math.inf)
        for tests in (of_choices(n, tuple(p.tolist()), epsilon),)
    ]
    return ranked, chosen


_KNOWN: dict[tuple, Callable[..., float]] = {}


def run(rng: np.random.Generator, cell: Cell) -> list[float]:
    """Return the probability that each test rejects one sample, over the noise."""
    data, found = cell.draw(rng, *cell.setting), []
    for name, test in cell.tests.items():
        key = name, cell.null, cell.n, cell.m, cell.epsilon
        if key not in _KNOWN:
            noise = DiscreteLaplace.calibrate(test.sensitivity, cell.epsilon)
            _KNOWN[key] = rejection_of(test, noise, test.null(FULL).threshold(ALPHA, noise))
        # without noise a single observation of null probability 0 rejects
        apart = test.impossible is not None and math.isinf(cell.epsilon) and test.impossible(data)
        found.append(1.0 if apart else _KNOWN[key](data, ()))
    return found


def row(cell: Cell, found: list[list[float]]) -> dict[str, str]:
    rows = {"departure": cell.name, "m": str(cell.m), "n": str(cell.n)}
    rows["epsilon"] = f"{cell.epsilon:g}"
    for name, values in zip(cell.tests, zip(*found, strict=True), strict=True):
        power, error = mean_and_error(values)
        rows[name] = f"{power:.3f} ({error:.3f})"
    return {**rows, "replicates": str(len(found))}


def main() -> None:
    wanted = asked(__doc__, 400)
    ranked, chosen = cells()
    for cell in needed(ranked + chosen):  # once, not in every process
        if any(part in str(cell) for part in wanted.only):
            for test in cell.tests.values():
                test.null(FULL)
    command = "python validation/departures.py"
    title = "Power against departures from uniform rankings"
    table("departures_rankings", title, command, ranked, run, row, wanted, 6500)
    title = "Power against departures from given probabilities of choices"
    table("departures_choices", title, command, chosen, run, row, wanted, 6700)


if __name__ == "__main__":
    main()
