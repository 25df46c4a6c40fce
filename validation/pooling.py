"""Pooling: coverage of intervals, their width relative to single releases, and the size of Q.

Comparisons are rows of six items with equal pairs. Rankings are from a Mallows model of five items,
or (polarised) half of the voters have one order and half its reverse. For each cell:

- `pairs`: the coverage of 95% intervals of all pairs of items, or of Borda scores; `worst` and
  `best`: the minimum and maximum over pairs, with 95% bounds for as many exact intervals.
- `one`: the coverage of the intervals of the release with the best predicted accuracy; `there`: its
  coverage for the pair with the worst pooled coverage.
- `alike`: the ratio of the pooled standard error to the smallest of one release with the same
  estimates, the largest over pairs and replicates (at most 1 by construction).
- `errors`: the mean of the same ratio with the standard errors in the releases' own summaries;
  `larger`: the fraction of pairs with a larger pooled standard error.
- `widths`: the mean ratio of the pooled interval to the shortest interval in the releases' own
  summaries, on the scale of worths, fractions or scores; `wider`: the fraction of pairs with a
  wider pooled interval; `most`: the largest ratio. A few pooled intervals are unbounded although a
  release's interval is bounded; the mean omits these infinite ratios.
- `Q rejects`: the rejection rate of Q at 0.05. With `shift` one survey has other values, so Q
  should reject, and coverage is omitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from study import asked, least, most, table

import privrank as pr
from privrank import btl
from privrank.hypotheses.tails import simulated
from privrank.release.names import NET, PAIR_COUNTS, PAIRS, TOTALS, WINS
from privrank.release.release import Release

COMMAND = "python validation/pooling.py"
M, VOTED = 6, 5
FIRST, SECOND = np.triu_indices(M, 1)
ITEMS = [f"item {k}" for k in range(M)]
RANKED = ITEMS[:VOTED]


@dataclass(frozen=True)
class Cell:
    kind: str
    survey: str
    epsilons: tuple[float, ...]
    units: tuple[int, ...]
    spread: float
    shift: float = 0.0
    share: float = 1.0

    def replicates(self, asked: int) -> int:
        return max(20, round(asked * self.share))


TWO, FIVE = (0.1, 0.2), (0.2,) * 5
SITES, VOTERS = (300, 450, 600, 600, 900), (100, 150, 200, 200, 300)
CELLS = [
    Cell("public rows", "same", TWO, (600, 600), 1.0),
    Cell("public rows", "different", FIVE, SITES, 1.0),
    Cell("fractions", "same", (0.3, 0.5), (200, 200), 0.8, share=2.0),
    Cell("fractions", "different", (0.5,) * 5, VOTERS, 0.8, share=2.0),
    Cell("public rows", "same", TWO, (600, 600), 3.0),
    Cell("public rows", "different", FIVE, SITES, 3.0, share=0.6),
    Cell("public rows", "different", FIVE, SITES, 1.0, shift=2.0, share=0.2),
    Cell("private rows", "same", (0.3, 0.6), (1500, 1500), 1.0, share=0.8),
    Cell("private rows", "different", (0.5,) * 5, (900,) * 5, 1.0, share=0.4),
    Cell("respondents", "same", (1.0, 2.0), (200, 200), 1.0, share=0.8),
    Cell("respondents", "different", (2.0,) * 5, (150,) * 5, 1.0, share=0.8),
    Cell("fractions", "different", (0.5,) * 5, VOTERS, 0.8, shift=0.8, share=0.2),
    Cell("Borda totals", "same", (0.3, 0.5), (200, 200), 0.8, share=0.8),
    Cell("Borda totals", "different", (0.5,) * 5, VOTERS, 0.8, share=0.8),
    Cell("Borda totals, polarised", "same", (1.0, 2.0), (200, 200), 0.0),
    Cell("private rows", "different", (1.0,) * 5, (200,) * 5, 2.0, share=0.4),
]


def worths(cell: Cell) -> np.ndarray:
    return np.linspace(0.5, -0.5, M) * cell.spread


def shifted(cell: Cell, k: int) -> np.ndarray:
    """Return the worths of one survey; the last survey exchanges the first two items."""
    b = worths(cell)
    if cell.shift and k == len(cell.units) - 1:
        b[:2] += np.array([-0.5, 0.5]) * cell.shift
    return b


@cache
def template(kind: str, n: int, epsilon: float) -> Release:
    """Return a release of a survey of this size; replicates replace its numbers."""
    rng = np.random.default_rng(0)
    if kind.endswith("rows"):
        pair = np.arange(n) % len(FIRST)
        frame = pd.DataFrame(
            {
                "item1": np.array(ITEMS)[FIRST[pair]],
                "item2": np.array(ITEMS)[SECOND[pair]],
                "outcome": np.where(rng.random(n) < 0.5, 1, -1),
            }
        )
        design = kind.split()[0]
        model = pr.PrivateBTL(frame, items=ITEMS, respondent=None, design=design)
        fit = model.fit(epsilon, method="counts", allow_unidentified=True, rng=rng)
        return fit.release
    ranks = pd.DataFrame(pr.Mallows(VOTED, 1.0).rvs(n, rng), columns=RANKED)
    ranks.index.name = "respondent"
    model = pr.PrivateRankAggregation(ranks, respondent="respondent")
    releases = "pairs" if kind.startswith("fractions") else "auto"
    return model.fit(epsilon, releases=releases, rng=rng).release


def noisy(rng: np.random.Generator, release: Release, exact: dict[str, np.ndarray]) -> Release:
    """Return a release of these exact numbers, with fresh noise of its plan."""
    values = dict(release.values)
    for name, number in exact.items():
        part = release.parts[name]
        noise = simulated(part.distribution, (1, len(number)), rng)[0]
        values[name] = np.rint(number / part.step + noise).astype(np.int64)
    return replace(release, values=values)


def answers(rng: np.random.Generator, cell: Cell, k: int) -> dict[str, np.ndarray]:
    """Return exact wins and losses of the pairs of one survey of comparisons."""
    n, b = cell.units[k], shifted(cell, k)
    count = np.bincount(np.arange(n) % len(FIRST), minlength=len(FIRST))
    if cell.kind == "private rows":
        count = rng.multinomial(n, np.full(len(FIRST), 1.0 / len(FIRST)))
    wins = rng.binomial(count, 1.0 / (1.0 + np.exp(b[SECOND] - b[FIRST])))
    net = 2 * wins - count
    by_item = np.bincount(FIRST, net, minlength=M) - np.bincount(SECOND, net, minlength=M)
    return {NET: by_item, PAIR_COUNTS: count, WINS: np.concatenate((wins, count - wins))}


def people(rng: np.random.Generator, cell: Cell, k: int) -> pr.PrivateBTL:
    """Return a survey of respondents who disagree: half of them exchange the first two items."""
    n, b = cell.units[k], np.tile(shifted(cell, k), (cell.units[k], 1))
    b[:, :2] += 1.0 * rng.choice([-1.0, 1.0], (n, 1)) * np.array([1.0, -1.0])
    wins = rng.random((n, len(FIRST))) < 1.0 / (1.0 + np.exp(b[:, SECOND] - b[:, FIRST]))
    frame = pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(n), len(FIRST)),
            "item1": np.tile(np.array(ITEMS)[FIRST], n),
            "item2": np.tile(np.array(ITEMS)[SECOND], n),
            "outcome": np.where(wins, 1, -1).ravel(),
        }
    )
    return pr.PrivateBTL(
        frame, items=ITEMS, respondent="respondent", max_rows=len(FIRST), design="public"
    )


@cache
def mixed_truth(spread: float) -> np.ndarray:
    """Return the worths that fit the expected answers of respondents who disagree."""
    b = np.linspace(0.5, -0.5, M) * spread
    away = np.array([1.0, -1.0, 0.0, 0.0, 0.0, 0.0])
    sides = [1.0 / (1.0 + np.exp((c := b + s * away)[SECOND] - c[FIRST])) for s in (1.0, -1.0)]
    wins, x = np.mean(sides, axis=0), np.zeros(M)
    for _ in range(200):
        left = wins - 1.0 / (1.0 + np.exp(x[SECOND] - x[FIRST]))
        step = np.bincount(FIRST, left, minlength=M) - np.bincount(SECOND, left, minlength=M)
        x += step * 2.0 / M
    return x


def votes(rng: np.random.Generator, cell: Cell, k: int) -> np.ndarray:
    """Return the rankings of one survey; the last may be centred at the reverse."""
    ranks = pr.Mallows(VOTED, cell.spread).rvs(cell.units[k], rng)
    if cell.kind.endswith("polarised"):
        return np.where(rng.random((len(ranks), 1)) < 0.5, ranks, VOTED + 1 - ranks)
    return VOTED + 1 - ranks if cell.shift and k == len(cell.units) - 1 else ranks


def totals(ranks: np.ndarray) -> dict[str, np.ndarray]:
    first, second = np.triu_indices(VOTED, 1)
    ahead = (ranks[:, first] < ranks[:, second]).sum(axis=0)
    return {PAIRS: ahead, TOTALS: ranks.sum(axis=0)}


@cache
def drawn_fractions(phi: float) -> np.ndarray:
    drawn = totals(pr.Mallows(VOTED, phi).rvs(2_000_000, np.random.default_rng(1)))
    return drawn[PAIRS] / 2_000_000


def fractions(cell: Cell) -> np.ndarray:
    """Return the true fractions, the first of two items before the second."""
    if cell.kind.endswith("polarised"):
        return np.full(VOTED * (VOTED - 1) // 2, 0.5)
    return drawn_fractions(cell.spread)


def fits(rng: np.random.Generator, cell: Cell) -> list:
    """Return the results to pool: of one survey, or of one survey for each epsilon."""
    found, data = [], None
    for k, (n, epsilon) in enumerate(zip(cell.units, cell.epsilons, strict=True)):
        fresh = data is None or cell.survey == "different"
        if cell.kind == "respondents":
            data = people(rng, cell, k) if fresh else data
            found.append(data.fit(epsilon, rng=rng))
        elif cell.kind.endswith("rows"):
            data = answers(rng, cell, k) if fresh else data
            base = template(cell.kind, n, epsilon)
            exact = {name: data[name] for name in data if name in base.parts}
            found.append(btl.infer(noisy(rng, base, exact)))
        else:
            data = totals(votes(rng, cell, k)) if fresh else data
            base = template(cell.kind, n, epsilon)
            exact = {name: data[name] for name in data if name in base.parts}
            found.append(pr.PrivateRankAggregation.from_release(noisy(rng, base, exact)))
    return found


def voted(cell: Cell) -> np.ndarray:
    """Return the true Borda scores."""
    p, (first, second) = np.zeros((VOTED, VOTED)), np.triu_indices(VOTED, 1)
    p[first, second] = fractions(cell)
    p[second, first] = 1.0 - p[first, second]
    return p.sum(axis=1)


def stated(cell: Cell, result: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return limits and standard errors of a pooled or single result, on the scale of worths."""
    first, second = np.triu_indices(VOTED, 1)
    if isinstance(result, pr.AggregationResult) and cell.kind.startswith("Borda"):
        found = result.borda().loc[RANKED]
    elif isinstance(result, pr.AggregationResult):
        low, high = result.stated.fraction_bounds(0.05, "population", False)
        error = result.stated.fraction_errors("population")
        return low[first, second], high[first, second], error[first, second]
    elif cell.kind.startswith("Borda"):
        found = result.conf_int().assign(std_err=result.bse)
    else:
        found = result.pairwise()
    low, high, error = found[["lower", "upper", "std_err"]].to_numpy().T
    if isinstance(result, pr.BTLResult):
        rows = np.eye(M)[FIRST] - np.eye(M)[SECOND]
        error = np.sqrt(np.einsum("rp,pq,rq->r", rows, result.cov_params(), rows))
    if not cell.kind.startswith(("Borda", "fractions")):
        low, high = (np.log(side / (1.0 - side)) for side in (low, high))
    return low, high, error


def stated_surveys(rng: np.random.Generator, cell: Cell) -> tuple[list, pr.PooledResult]:
    """Return results and the pooled result, if they are not refused.

    Releases whose comparisons do not connect all items are refused.
    """
    while True:
        results = fits(rng, cell)
        try:
            return results, pr.pool(results, survey=cell.survey)
        except ValueError as refusal:
            if "do not connect all items" not in str(refusal):
                raise


def run(rng: np.random.Generator, cell: Cell) -> dict[str, np.ndarray]:
    results, pooled = stated_surveys(rng, cell)
    rejected = np.array([pooled.test_heterogeneity()["pvalue"] <= 0.05])
    if cell.shift:
        return {"rejected": rejected}
    if cell.kind.startswith("Borda"):
        true, alone = voted(cell), pooled.bse_single.min(axis=1).to_numpy()
    elif cell.kind.startswith("fractions"):
        true, alone = fractions(cell), np.sqrt(pooled.by_pair.single[:, :, 0, 0]).min(axis=0)
    else:
        b = mixed_truth(cell.spread) if cell.kind == "respondents" else worths(cell)
        true, rows = b[FIRST] - b[SECOND], pooled._combined(True)[1]
        each = np.einsum("rp,kpq,rq->kr", rows, pooled.by_item.single[:, 0], rows)
        alone = np.sqrt(each).min(axis=0)
    with np.errstate(divide="ignore"):
        low, high, error = stated(cell, pooled)
        each = np.array([stated(cell, result) for result in results])
    best = each[np.argmax(np.multiply(cell.units, cell.epsilons))]
    return {
        "held": (low <= true) & (true <= high),
        "one": (best[0] <= true) & (true <= best[1]),
        "alike": error / alone,
        "errors": error / each[:, 2].min(axis=0),
        "widths": ratio(high - low, (each[:, 1] - each[:, 0]).min(axis=0)),
        "rejected": rejected,
    }


def ratio(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return ratios of widths; 1 if both intervals are unbounded."""
    endless = np.isinf(one) & np.isinf(other)
    return np.where(endless, 1.0, one / np.where(endless, 1.0, other))


NUMBERS = "pairs worst floor best ceiling one there alike errors larger widths wider most".split()


def row(cell: Cell, found: list[dict[str, np.ndarray]]) -> dict[str, object]:
    every = {name: np.array([one[name] for one in found]) for name in found[0]}
    numbers = dict.fromkeys(NUMBERS, "")
    if not cell.shift:
        held, errors, widths = every["held"], every["errors"], every["widths"]
        there = every["one"][:, held.mean(axis=0).argmin()].mean()
        (worst, floor), (best, ceiling) = least(held), most(held)
        shown = (held.mean(), worst, floor, best, ceiling, every["one"].mean(), there)
        shown += (every["alike"].max(), errors.mean(), (errors > 1.0 + 1e-9).mean())
        shown += (widths[np.isfinite(widths)].mean(), (widths > 1.0 + 1e-9).mean(), widths.max())
        numbers = {name: f"{x:.3f}" for name, x in zip(NUMBERS, shown, strict=True)}
    return {
        "numbers": cell.kind,
        "survey": cell.survey,
        "epsilons": " ".join(map(str, cell.epsilons)),
        "units": " ".join(map(str, cell.units)),
        "spread": cell.spread,
        "shift": cell.shift,
        "replicates": len(found),
        **numbers,
        "Q rejects": f"{every['rejected'].mean():.3f}",
    }


if __name__ == "__main__":
    table(
        "pooling",
        "Pooling: coverage and width of 95% intervals, and size of Q",
        COMMAND,
        CELLS,
        run,
        row,
        asked(__doc__.splitlines()[0], 500),
        120_000,
    )
