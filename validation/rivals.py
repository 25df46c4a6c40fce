"""Every default compared with a rival of about ten lines, on the same data.

Rivals add independent Laplace noise to simple counts, scaled to the tight l1 sensitivity if one row
is replaced. They add none at epsilon inf. Tests compare the statistic with 199 draws of its null.

- Closeness of choices: the table of counts; chi-square with the variance of the noise, likelihood
  ratio, or the largest difference in standard errors; null tables from the noisy pooled shares.
- Identity and uniformity of choices: the counts; chi-square with the variance of the noise, or the
  largest difference in standard errors.
- Closeness and uniformity of rankings: Borda sums by group; sum of squares in units of their
  variance; normal null.
- Worths of a public design: wins of each pair; weighted least squares of the logits.
- Top k: net wins. Consensus: Borda sums.
- Local consensus: Borda scores of the fractions that the default estimates from the same reports.
- Choices from offered sets have their rivals in `sets.py`.

Rows give the power of tests at level 0.05, and the mean error of models: the root mean square error
of worths, the fraction of wrong items in the top k, and the Kendall distance from the true order
in a fraction of pairs. If there are two or more rivals, a row shows the best in that cell, which is
slightly biased in its favour. The difference is the default minus the rival, with the standard
error of the paired difference. A default falls short if the power of the rival is larger by more
than 0.1 and two standard errors, or its error smaller by more than 10% and two standard errors.

The alternatives of choices: a category of share 0.01 grows (`rare`), a middle category grows
(`atom`), mass moves from the most to the least frequent category (`moved`), or half of the
categories grow in proportion (`spread`). In tests of groups the first group differs. The
alternatives of rankings are Plackett-Luce models in which one item has another worth (`one item`),
or all have (`all items`). Effects are chosen such that a chi-square test of the noisy counts has
power 0.7 by the normal approximation. Cells in which no effect reaches this power are omitted.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import study
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import chi2, ncx2

import privrank as pr

ALPHA, DRAWS, POWER = 0.05, 199, 0.7
EPSILONS = (0.5, 2.0, math.inf)
SIZES = ((20, 20), (40, 400), (60, 1200), (150, 300), (2000, 2000), (40, 200, 200))
CATEGORIES, CHOICES = (2, 5, 8, 12, 24), ("rare", "atom", "moved", "spread")
ERRORS = ("worths", "top k", "consensus", "local consensus")
# Cells whose default may fall short, by their names, each with the reason.
MANY = "with more than 6 categories and unequal groups no method is best everywhere"
NAMED = {
    "closeness of rankings: 3, one item; 60, 300; epsilon 0.5": (
        "the rival compares mean ranks only, the default also detects other differences"
    ),
    "closeness of choices: 8, rare; 60, 1200; epsilon 0.5": MANY,
    "closeness of choices: 12, moved; 60, 1200; epsilon 2": MANY,
    "closeness of choices: 12, rare; 250, 5000; epsilon 1": MANY,
}


@dataclass(frozen=True)
class Cell:
    """A method, the number of categories or items, the alternative, sizes and epsilon."""

    method: str
    k: int
    alternative: str
    sizes: tuple[int, ...]
    epsilon: float = math.inf
    closeness: str = "auto"

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.sizes))
        return f"{self.method}: {self.k}, {self.alternative}; {sizes}; epsilon {self.epsilon:g}"

    def replicates(self, asked: int) -> int:
        return asked


# Data


def shares(cell: Cell, effect: float) -> np.ndarray:
    """Return the distribution of choices under H0, shifted by an effect."""
    weights = 1.0 / np.arange(1, cell.k + 1)
    if "uniformity" in cell.method:
        weights[:] = 1.0
    elif cell.alternative == "rare":
        weights[-1] = weights[:-1].sum() / 99.0
    p, one = weights / weights.sum(), np.eye(cell.k)
    up = np.arange(cell.k) % 2 == 1
    shift = {
        "rare": one[-1] - p,
        "atom": one[cell.k // 2] - p,
        "moved": one[-1] - one[0],
        "spread": np.where(up, p / p[up].sum(), -p / p[~up].sum()),
    }[cell.alternative]
    most = 0.95 * np.min(p[shift < 0] / -shift[shift < 0])
    return np.asarray(p + most * effect * shift)


def worths(cell: Cell, effect: float) -> np.ndarray:
    """Return log worths of items; under H0 all are equal for uniformity, and spread otherwise."""
    line = np.linspace(1.0, -1.0, cell.k)
    base = 0.0 * line if "uniformity" in cell.method else 0.5 * line
    shift = np.eye(cell.k)[-1] if cell.alternative == "one item" else np.roll(line, 1)
    return np.asarray(base + 4.0 * effect * shift)


def ranked(worth: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return ranks from a Plackett-Luce model."""
    scores = worth + rng.gumbel(size=(n, len(worth)))
    return np.argsort(np.argsort(-scores, axis=1), axis=1) + 1


def borda(worth: np.ndarray) -> np.ndarray:
    """Return the expected number of items ranked below each item."""
    return np.asarray(expit(worth[:, None] - worth).sum(axis=1) - 0.5)


def chance(cell: Cell, effect: float) -> float:
    """Return the power of a chi-square test of the noisy counts, by the normal approximation."""
    m, (own, *others) = cell.k, cell.sizes
    rest, groups = sum(others), len(others)
    sampling = 1.0 / own + (1.0 / rest if rest else 0.0)
    noise = 1.0 / own**2 + (groups / rest**2 if rest else 0.0)
    if cell.method.endswith("choices"):
        p, q = shares(cell, 0.0), shares(cell, effect)
        pooled = (own * q + rest * p) / (own + rest) if rest else p
        variance, shift = pooled * sampling + variance_of(2.0, cell.epsilon) * noise, q - p
    else:
        shift = borda(worths(cell, effect)) - borda(worths(cell, 0.0))
        variance = m * (m + 1) / 12 * sampling + variance_of(m**2 // 2, cell.epsilon) * noise
    return float(ncx2.sf(chi2.ppf(0.95, m - 1), m - 1, (shift**2 / variance).sum() + 1e-9))


def effect_of(cell: Cell) -> float:
    """Return the effect at which this power is 0.7, in fractions of the largest effect."""
    if chance(cell, 1.0) <= POWER:
        return math.nan
    return float(brentq(lambda effect: chance(cell, effect) - POWER, 0.0, 1.0, xtol=1e-6))


def compared(worth: np.ndarray, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return comparisons by a Bradley-Terry model; early pairs are more frequent."""
    pairs = np.array(np.triu_indices(len(worth), 1))
    weights = np.linspace(3.0, 1.0, pairs.shape[1])
    first, second = pairs[:, rng.choice(pairs.shape[1], n, p=weights / weights.sum())]
    ahead = rng.random(n) < expit(worth[first] - worth[second])
    return pd.DataFrame({"item1": first, "item2": second, "outcome": np.where(ahead, 1, -1)})


# Rivals


def variance_of(sensitivity: float, epsilon: float) -> float:
    return 2.0 * (sensitivity / epsilon) ** 2


def noisy(rng: np.random.Generator, counts: np.ndarray, sensitivity: float, epsilon: float):
    """Return counts with Laplace noise."""
    return counts + rng.laplace(0.0, sensitivity / epsilon, np.shape(counts))


def rejected(null: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Return by statistic whether the Monte Carlo p-value is at most 0.05."""
    return (1 + (null >= observed * (1 - 1e-9)).sum(axis=0)) / (1 + len(null)) <= ALPHA


def table_statistics(tables: np.ndarray, sizes: np.ndarray, epsilon: float) -> np.ndarray:
    n, v = sizes[:, None], variance_of(2.0, epsilon)
    p = np.maximum(tables.sum(axis=1, keepdims=True), 0.5)
    p = p / p.sum(axis=2, keepdims=True)
    square = ((tables - n * p) ** 2 / (n * p + v)).sum(axis=(1, 2))
    z = np.maximum(tables, 0.5)
    expected = z.sum(axis=2, keepdims=True) * z.sum(axis=1, keepdims=True)
    ratio = (z * np.log(z * z.sum(axis=(1, 2), keepdims=True) / expected)).sum(axis=(1, 2))
    rest = n.sum() - n
    apart = np.abs(tables / n - (tables.sum(axis=1, keepdims=True) - tables) / rest)
    noise = v * (1 / n**2 + (len(n) - 1) / rest**2)
    largest = (apart / np.sqrt(p * (1 - p) * (1 / n + 1 / rest) + noise)).max(axis=(1, 2))
    return np.stack((square, ratio, largest), axis=1)


def rival_closeness_choices(rng, counts: np.ndarray, epsilon: float) -> np.ndarray:
    table, sizes = noisy(rng, counts, 2.0, epsilon), counts.sum(axis=1)
    p = np.maximum(table.sum(axis=0), 0.0)
    null = np.stack([rng.multinomial(n, p / p.sum(), DRAWS) for n in sizes], axis=1)
    null = noisy(rng, null, 2.0, epsilon)
    observed = table_statistics(table[None], sizes, epsilon)
    return rejected(table_statistics(null, sizes, epsilon), observed)


def rival_choices(rng, counts: np.ndarray, p: np.ndarray, epsilon: float) -> np.ndarray:
    n, v = counts.sum(), variance_of(2.0, epsilon)
    tables = np.concatenate((counts[None], rng.multinomial(n, p, DRAWS)))
    apart = noisy(rng, tables, 2.0, epsilon) - n * p
    square = (apart**2 / (n * p + v)).sum(axis=1)
    largest = np.abs(apart / np.sqrt(n * p * (1 - p) + v)).max(axis=1)
    statistics = np.stack((square, largest), axis=1)
    return rejected(statistics[1:], statistics[:1])


def rival_rankings(rng, groups: list[np.ndarray], epsilon: float) -> np.ndarray:
    """Return whether mean ranks differ from each other, or those of one group from (m + 1) / 2."""
    m, n = groups[0].shape[1], np.array([[len(ranks)] for ranks in groups])
    null = rng.standard_normal((DRAWS, len(n), m)) * np.sqrt(n * m * (m + 1) / 12)
    null -= null.mean(axis=2, keepdims=True)
    sums = np.stack([(ranks - (m + 1) / 2).sum(axis=0) for ranks in groups])
    table = noisy(rng, np.concatenate((sums[None], null)), m**2 // 2, epsilon)
    centre = table.sum(axis=1, keepdims=True) / n.sum() if len(n) > 1 else 0.0
    spread = n * m * (m + 1) / 12 + variance_of(m**2 // 2, epsilon)
    statistic = ((table - n * centre) ** 2 / spread).sum(axis=(1, 2))[:, None]
    return rejected(statistic[1:], statistic[:1])


def rival_worths(rng, frame: pd.DataFrame, m: int, epsilon: float) -> np.ndarray:
    pairs = frame.assign(won=frame["outcome"] > 0).groupby(["item1", "item2"])["won"]
    met, (first, second) = pairs.size(), np.array(pairs.size().index.to_list()).T
    n, won = met.to_numpy(), noisy(rng, pairs.sum().to_numpy(), 1.0, epsilon)
    p = np.clip((won + 0.5) / (n + 1), 0.5 / (n + 1), 1 - 0.5 / (n + 1))
    spread = (p * (1 - p) / n + variance_of(1.0, epsilon) / n**2) / (p * (1 - p)) ** 2
    rows = (np.eye(m)[first] - np.eye(m)[second]) / np.sqrt(spread)[:, None]
    return np.asarray(np.linalg.lstsq(rows, logit(p) / np.sqrt(spread), rcond=None)[0])


def rival_top(rng, frame: pd.DataFrame, m: int, k: int, epsilon: float) -> np.ndarray:
    net = np.bincount(frame["item1"], frame["outcome"], m)
    net -= np.bincount(frame["item2"], frame["outcome"], m)
    return np.argsort(-noisy(rng, net, 4.0, epsilon))[:k]


def rival_order(rng, ranks: np.ndarray, epsilon: float) -> np.ndarray:
    m = ranks.shape[1]
    return np.argsort(noisy(rng, ranks.sum(axis=0), m**2 // 2, epsilon))


# One replicate


def run_closeness_choices(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    p, q = shares(cell, 0.0), shares(cell, effect_of(cell))
    sizes = zip(cell.sizes, (q, *[p] * (len(cell.sizes) - 1)), strict=True)
    counts = np.array([rng.multinomial(n, each) for n, each in sizes])
    names = [f"c{x}" for x in range(cell.k)]
    table = {f"g{g}": dict(zip(names, row, strict=True)) for g, row in enumerate(counts.tolist())}
    test = pr.ClosenessTest.from_counts(table, names)
    own = test.fit(cell.epsilon, method=cell.closeness, rng=rng).pvalue <= ALPHA
    return np.append(own, rival_closeness_choices(rng, counts, cell.epsilon))


def run_choices(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    p = shares(cell, 0.0)
    counts = rng.multinomial(cell.sizes[0], shares(cell, effect_of(cell)))
    names = [f"c{x}" for x in range(cell.k)]
    table = dict(zip(names, counts.tolist(), strict=True))
    if "uniformity" in cell.method:
        test = pr.UniformityTest.from_counts(table, names)
    else:
        test = pr.IdentityTest.from_counts(table, dict(zip(names, p, strict=True)))
    own = test.fit(cell.epsilon, rng=rng).pvalue <= ALPHA
    return np.append(own, rival_choices(rng, counts, p, cell.epsilon))


def run_rankings(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    differ, base = worths(cell, effect_of(cell)), worths(cell, 0.0)
    each = (differ, *[base] * (len(cell.sizes) - 1))
    groups = [ranked(worth, n, rng) for n, worth in zip(cell.sizes, each, strict=True)]
    test = pr.ClosenessTest(*groups) if len(groups) == 2 else pr.UniformityTest(*groups)
    own = test.fit(cell.epsilon, rng=rng).pvalue <= ALPHA
    return np.append(own, rival_rankings(rng, groups, cell.epsilon))


def run_worths(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    true = float(cell.alternative.split()[-1]) * np.linspace(1.0, -1.0, cell.k)
    frame = compared(true, cell.sizes[0], rng)
    model = pr.PrivateBTL(frame, items=range(cell.k), respondent=None, design="public")
    own = model.fit(cell.epsilon, rng=rng).params.to_numpy()
    found = np.stack((own, rival_worths(rng, frame, cell.k, cell.epsilon)))
    found -= found.mean(axis=1, keepdims=True)
    return np.asarray(np.sqrt(((found - true) ** 2).mean(axis=1)))


def run_top(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    m, k = cell.k, max(cell.k // 4, 1)
    true = float(cell.alternative.split()[-1]) * rng.permutation(np.linspace(1.0, -1.0, m))
    frame = compared(true, cell.sizes[0], rng)
    model = pr.PrivateTopK(frame, k, items=range(m), respondent=None)
    own = np.array(model.fit(cell.epsilon, rng=rng).selected).astype(int)
    right = np.argsort(-true)[:k]
    found = (own, rival_top(rng, frame, m, k, cell.epsilon))
    return np.array([1.0 - np.isin(right, items).mean() for items in found])


def run_consensus(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    m, (n,) = cell.k, cell.sizes
    centre = rng.permutation(m) + 1
    ranks = pr.Mallows(m, float(cell.alternative.split()[-1]), centre).rvs(n, rng)
    names = [str(x) for x in range(m)]
    if cell.method == "local consensus":
        protocol = pr.local.SubRanking(names, epsilon=cell.epsilon)
        tally = protocol.tally(protocol.simulate(ranks, rng))
        result = pr.PrivateRankAggregation.from_reports(tally)
        rival = np.array(result.items)[np.argsort(-result.fractions.sum(axis=1))].astype(int)
    else:
        frame = pd.DataFrame(ranks, columns=names)
        result = pr.PrivateRankAggregation(frame).fit(cell.epsilon, rng=rng)
        rival = rival_order(rng, ranks, cell.epsilon)
    found = np.argsort(np.array([result.order, rival]).astype(int), axis=1)[:, np.argsort(centre)]
    first, second = np.triu_indices(m, 1)
    return np.asarray((found[:, first] > found[:, second]).mean(axis=1))


# The grid


def grid() -> list[Cell]:
    """Return the cells; the alternatives of tests alternate over sizes, numbers and epsilons."""
    tested = []
    one = ((40,), (400,), (4000,))
    two, single = ((40, 400), (150, 150), (60, 300)), ((40,), (400,))
    tests = (
        ("closeness of rankings", two, (3, 5, 8), ("one item", "all items")),
        ("uniformity of rankings", single, (3, 5, 8), ("one item", "all items")),
        ("identity of choices", one, CATEGORIES, CHOICES),
        ("uniformity of choices", one, CATEGORIES, ("atom", "spread")),
        ("closeness of choices", SIZES, CATEGORIES, CHOICES),
    )
    for method, sizes, numbers, alternatives in tests:
        for (a, size), (b, k), (c, epsilon) in product(*map(enumerate, (sizes, numbers, EPSILONS))):
            alternative = alternatives[(a + b + c) % len(alternatives)]
            # two categories differ in one way
            alternative = "rare" if k == 2 and "rare" in alternatives else alternative
            tested.append(Cell(method, k, alternative, size, epsilon))
    # a rare category among five, where the test of permutations has little power
    rare = partial(Cell, "closeness of choices", 5, "rare")
    tested += [rare((40, 400), epsilon) for epsilon in (1.0, *EPSILONS)]
    tested += [rare((40, 200, 200), 2.0)]
    tested += [Cell("identity of choices", 5, "rare", (400,), epsilon) for epsilon in (1.0, 2.0)]
    # the other settings of the specification of the table
    one_table = partial(Cell, "closeness of choices")
    tested += [
        one_table(5, "spread", (60, 400), 1.0),
        one_table(12, "rare", (250, 5000), 1.0),
        one_table(12, "spread", (60, 1200), 2.0),
        one_table(5, "rare", (20, 20), 2.0),
        one_table(5, "spread", (100,) * 5, 0.5),
        one_table(12, "moved", (150, 300), 1.0),
    ]
    line, wide = "worths from -1 to 1", "worths from -2 to 2"
    central = (
        Cell("worths", 4, line, (300,)),
        Cell("worths", 8, line, (1000,)),
        Cell("worths", 8, wide, (1000,)),
        Cell("worths", 16, line, (5000,)),
        Cell("top k", 4, line, (60,)),
        Cell("top k", 8, line, (200,)),
        Cell("top k", 16, line, (1000,)),
        Cell("consensus", 4, "Mallows 0.8", (60,)),
        Cell("consensus", 8, "Mallows 0.95", (400,)),
        Cell("consensus", 24, "Mallows 0.97", (400,)),
    )
    local = (
        Cell("local consensus", 4, "Mallows 0.8", (400,)),
        Cell("local consensus", 8, "Mallows 0.9", (2000,)),
        Cell("local consensus", 24, "Mallows 0.95", (4000,)),
    )
    return [
        *(replace(cell, epsilon=epsilon) for cell, epsilon in product(central, EPSILONS)),
        *(replace(cell, epsilon=epsilon) for cell, epsilon in product(local, (0.5, 2.0))),
        *(cell for cell in dict.fromkeys(tested) if not math.isnan(effect_of(cell))),
    ]


def run(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return the rejections or the errors of the default and of its rivals."""
    runs: dict[str, Callable[..., np.ndarray]] = {
        "closeness of choices": run_closeness_choices,
        "identity of choices": run_choices,
        "uniformity of choices": run_choices,
        "worths": run_worths,
        "top k": run_top,
        "consensus": run_consensus,
        "local consensus": run_consensus,
    }
    return np.asarray(runs.get(cell.method, run_rankings)(rng, cell), dtype=float)


NAMES = {
    "closeness of choices": ("chi-square", "likelihood ratio", "largest"),
    "identity of choices": ("chi-square", "largest"),
    "uniformity of choices": ("chi-square", "largest"),
    "worths": ("least squares",),
    "top k": ("net wins",),
}


def row(cell: Cell, found: list[np.ndarray]) -> dict[str, str]:
    values = np.array(found)
    sign = -1.0 if cell.method in ERRORS else 1.0
    best = 1 + int(np.argmax(sign * values[:, 1:].mean(axis=0)))
    own, rival = values[:, 0], values[:, best]
    difference, error = study.mean_and_error(own - rival)
    margin = 0.1 * rival.mean() if cell.method in ERRORS else 0.1
    short = -sign * difference > margin + 2.0 * error
    data = "categories" if cell.method.endswith("choices") else "items"
    return {
        "method": cell.method,
        "data": f"{cell.k} {data}, {cell.alternative}",
        "sizes": ", ".join(map(str, cell.sizes)),
        "epsilon": f"{cell.epsilon:g}",
        "replicates": str(len(found)),
        "best rival": NAMES.get(cell.method, ("Borda",))[best - 1],
        "default": f"{own.mean():.3f}",
        "rival": f"{rival.mean():.3f}",
        "difference": f"{difference:+.3f}",
        "std err": f"{error:.3f}",
        "verdict": "holds" if not short else "named" if str(cell) in NAMED else "falls short",
    }


def loss(row: dict[str, str]) -> float:
    """Return the loss against the rival: of power, or of error in proportion to the rival's."""
    difference, rival = float(row["difference"]), float(row["rival"])
    return difference / max(rival, 1e-3) if row["method"] in ERRORS else -difference


def verdict(rows: list[dict[str, str]]) -> str:
    """Return how many cells fall short, and the worst cell of each method."""
    counted = {
        kind: sum(row["verdict"] == kind for row in rows) for kind in ("falls short", "named")
    }
    parts = []
    for method in dict.fromkeys(row["method"] for row in rows):
        worst = max((row for row in rows if row["method"] == method), key=loss)
        parts.append(
            f"{method} {worst['default']} against {worst['rival']} ({worst['data']}; "
            f"{worst['sizes']}; epsilon {worst['epsilon']})"
        )
    reasons = "; ".join(dict.fromkeys(NAMED.values()))
    return (
        f"{counted['falls short']} of {len(rows)} cells fall short, and {counted['named']} more "
        f"are accepted for a reason ({reasons}). Default against rival in the worst cell of each "
        f"method: {'; '.join(parts)}."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME")
    parser.add_argument("--closeness", default="auto", choices=("auto", "table", "permutation"))
    asked = parser.parse_args()
    cells = [replace(cell, closeness=asked.closeness) for cell in grid()]
    rows = study.table(
        "rivals" if asked.closeness == "auto" else f"rivals_{asked.closeness}",
        "Defaults and simple rivals",
        "python validation/rivals.py",
        cells,
        run,
        row,
        asked,
        98_000,
        verdict,
    )
    return int(any(row["verdict"] == "falls short" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
