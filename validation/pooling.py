"""Pooling: do intervals cover, are they shorter than those of one release, does Q keep its level?

Comparisons are rows of six items with equal pairs, rankings of a Mallows model of five items. For
each cell: the least and most coverage of a 95 % interval over all pairs of items, with the bounds
that the least and most of as many exact ones keep within with probability .95; the ratio of the
pooled standard error to the least of one release, like for like (at most 1 by construction) and as
each release prints it by itself, the worst pair of all replicates and the mean; the share of pairs
that are wider than printed; and how often Q rejects at .05. With `shift` one survey has other
values, so that Q should reject, and coverage is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from study import asked, least, most, table

import privrank as pr
from privrank import aggregation, btl
from privrank.release.release import NET, PAIR_COUNTS, PAIRS, TOTALS, WINS, Release

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
    Cell("fractions", "same", (0.3, 0.5), (200, 200), 0.8),
    Cell("fractions", "different", (0.5,) * 5, VOTERS, 0.8),
    Cell("public rows", "same", TWO, (600, 600), 3.0, share=0.2),
    Cell("public rows", "different", FIVE, SITES, 3.0, share=0.2),
    Cell("public rows", "different", FIVE, SITES, 1.0, shift=2.0, share=0.1),
    Cell("private rows", "same", (0.3, 0.6), (1500, 1500), 1.0, share=0.4),
    Cell("private rows", "different", (0.5,) * 5, (900,) * 5, 1.0, share=0.3),
    Cell("respondents", "same", (1.0, 2.0), (200, 200), 1.0, share=0.1),
    Cell("respondents", "different", (2.0,) * 5, (150,) * 5, 1.0, share=0.1),
    Cell("fractions", "different", (0.5,) * 5, VOTERS, 0.8, shift=0.8, share=0.1),
    Cell("fractions, one local", "different", (0.5, 0.5, 2.0), (200, 200, 1000), 0.8, share=0.2),
    Cell("Borda totals", "same", (0.3, 0.5), (200, 200), 0.8, share=0.1),
    Cell("Borda totals", "different", (0.5,) * 5, VOTERS, 0.8, share=0.1),
]


def worths(cell: Cell) -> np.ndarray:
    return np.linspace(0.5, -0.5, M) * cell.spread


def shifted(cell: Cell, k: int) -> np.ndarray:
    """Return the worths of one survey: of the last of them the first two items change places."""
    b = worths(cell)
    if cell.shift and k == len(cell.units) - 1:
        b[:2] += np.array([-0.5, 0.5]) * cell.shift
    return b


@cache
def template(kind: str, n: int, epsilon: float) -> Release:
    """Return a release of a survey of this size, of which replicates take all but the numbers."""
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
        return model.fit(epsilon, method="counts", rng=rng).release
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
        noise = part.law.simulate((1, len(number)), rng)[0]
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
    return VOTED + 1 - ranks if cell.shift and k == len(cell.units) - 1 else ranks


def totals(ranks: np.ndarray) -> dict[str, np.ndarray]:
    first, second = np.triu_indices(VOTED, 1)
    ahead = (ranks[:, first] < ranks[:, second]).sum(axis=0)
    return {PAIRS: ahead, TOTALS: ranks.sum(axis=0)}


@cache
def fractions(phi: float) -> np.ndarray:
    drawn = totals(pr.Mallows(VOTED, phi).rvs(2_000_000, np.random.default_rng(1)))
    return drawn[PAIRS] / 2_000_000


def fits(rng: np.random.Generator, cell: Cell) -> list:
    """Return the results that are pooled: of one survey, or of as many as there are epsilons."""
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
        elif cell.kind.endswith("local") and k == len(cell.units) - 1:
            protocol = pr.local.SubRanking(RANKED, epsilon)
            reports = protocol.simulate(votes(rng, cell, k), rng)
            found.append(pr.PrivateRankAggregation.from_reports(protocol.tally(reports)))
        else:
            data = totals(votes(rng, cell, k)) if fresh else data
            base = template(cell.kind, n, epsilon)
            exact = {name: data[name] for name in data if name in base.parts}
            found.append(aggregation.infer(noisy(rng, base, exact)))
    return found


def run(rng: np.random.Generator, cell: Cell) -> dict[str, np.ndarray]:
    results = fits(rng, cell)
    pooled = pr.pool(results, survey=cell.survey)
    rejected = np.array([pooled.test_heterogeneity()["pvalue"] <= 0.05])
    if cell.shift:
        return {"rejected": rejected}
    if cell.kind == "Borda totals":
        p = np.zeros((VOTED, VOTED))
        first, second = np.triu_indices(VOTED, 1)
        p[first, second], p[second, first] = fractions(cell.spread), 1.0 - fractions(cell.spread)
        true, sides, error = p.sum(axis=1), pooled.conf_int(), pooled.bse.to_numpy()
        printed = [each.borda().loc[RANKED, "std_err"] for each in results]
        alone = pooled.bse_single.min(axis=1).to_numpy()
    elif cell.kind.startswith("fractions"):
        true, sides = fractions(cell.spread), pooled.pairwise()
        error = sides["std_err"].to_numpy()
        first, second = np.triu_indices(VOTED, 1)
        printed = [each.stated.fraction_errors("population")[first, second] for each in results]
        alone = np.sqrt(pooled.by_pair.single[:, :, 0, 0]).min(axis=0)
    else:
        b = mixed_truth(cell.spread) if cell.kind == "respondents" else worths(cell)
        true, sides = 1.0 / (1.0 + np.exp(b[SECOND] - b[FIRST])), pooled.pairwise()
        error, rows = sides["std_err"].to_numpy(), pooled._pair_rows
        moved = (np.eye(M)[FIRST] - np.eye(M)[SECOND], [each.cov_params() for each in results])
        printed = [np.sqrt(np.einsum("rp,pq,rq->r", moved[0], v, moved[0])) for v in moved[1]]
        each = np.einsum("rp,kpq,rq->kr", rows, pooled.by_item.single[:, 0], rows)
        alone = np.sqrt(each).min(axis=0)
    return {
        "held": ((sides["lower"] <= true) & (true <= sides["upper"])).to_numpy(),
        "alike": error / alone,
        "printed": error / np.min(printed, axis=0),
        "rejected": rejected,
    }


def row(cell: Cell, found: list[dict[str, np.ndarray]]) -> dict[str, object]:
    rejected = np.mean([one["rejected"] for one in found])
    names = ("pairs", "worst", "floor", "best", "ceiling", "alike", "printed", "wider")
    numbers = dict.fromkeys(names, "")
    if not cell.shift:
        held, alike, printed = (
            np.array([one[name] for one in found]) for name in ("held", "alike", "printed")
        )
        (worst, floor), (best, ceiling) = least(held), most(held)
        shown = (held.mean(), worst, floor, best, ceiling, alike.max(), printed.mean())
        numbers = {name: f"{x:.3f}" for name, x in zip(names, shown, strict=False)}
        numbers["wider"] = f"{(printed > 1.0 + 1e-9).mean():.3f}"
    return {
        "numbers": cell.kind,
        "survey": cell.survey,
        "epsilons": " ".join(map(str, cell.epsilons)),
        "units": " ".join(map(str, cell.units)),
        "spread": cell.spread,
        "shift": cell.shift,
        "replicates": len(found),
        **numbers,
        "Q rejects": f"{rejected:.3f}",
    }


if __name__ == "__main__":
    table(
        "pooling",
        "Pooling: coverage of 95 % intervals, width, and level of Q",
        COMMAND,
        CELLS,
        run,
        row,
        asked(__doc__.splitlines()[0], 2000),
        120_000,
    )
