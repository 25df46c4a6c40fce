"""Predictions of power plans compared with simulated fits.

Every cell plans a survey, simulates and fits it repeatedly, and compares the results with the
predictions: the fraction of fits that separate two items, or the top k, with the power; the mean
excess of consensus orders and the mean width of rank sets with their predictions. `sd` is the
difference over the standard errors of both. Effects are those used during development and held-out
ones: spread worths, strong preferences, many items, an epsilon of 0.3 to 0.5, a few hundred
answers, second moments of pairs, noise that dominates the error, pairs with one or two comparisons,
ties caused by randomised response. Each respondent's comparisons agree with one order of all items:
the order of their worths plus Gumbel errors, whose pairs have Bradley-Terry probabilities. Plans
use more replicates here than by default, which separates their errors from simulation errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from study import asked, table

import privrank as pr
from privrank.bradley_terry.scoretests import pvalues

COMMAND = "python validation/power_models.py"
INF = math.inf
REPLICATES = 1000
"""Number of fits that a plan simulates."""


@dataclass(frozen=True)
class Cell:
    """A plan, its arguments, and its fraction of the replicates."""

    what: str
    plan: dict[str, Any]
    nobs: int
    epsilon: float
    effect: float
    held_out: bool = False
    share: float = 1.0

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.plan.items())
        return f"{self.what}: {settings}, n={self.nobs}, eps={self.epsilon:g}, {self.effect:g}"

    def replicates(self, asked_for: int) -> int:
        return max(20, round(self.share * asked_for))

    @property
    def planner(self) -> Any:
        kinds = {"contrast": pr.power.BTLPower, "top": pr.power.TopKPower}
        kinds |= dict.fromkeys(("excess", "width"), pr.power.AggregationPower)
        return kinds[self.what](**self.plan, replicates=REPLICATES, n_jobs=2)


PUBLIC, PRIVATE = {"max_rows": 15, "design": "public"}, {"max_rows": 15}
RATES = {"target": "win rate"}
"""Net wins of a private design state no p-value."""
SPREAD = {"items": 10, "max_rows": 20, "worths": 2.0}
CELLS = (
    Cell("contrast", {"items": 6, **PUBLIC}, 200, 1.0, 0.4),
    Cell("contrast", {"items": 6, **PUBLIC}, 200, INF, 0.25),
    Cell("contrast", {"items": 6, **PRIVATE}, 200, 1.0, 0.4),
    Cell("contrast", {"items": 6, "max_rows": 3}, 800, 1.0, 0.4),
    Cell("contrast", {"items": 6, "unit": "row"}, 1500, 1.0, 0.5),
    Cell("contrast", {"items": 4, "max_rows": 6, "dependence": "pairs"}, 200, 1.0, 0.5),
    Cell("contrast", {"items": 6, "mode": "local"}, 3000, 1.0, 0.5),
    Cell("contrast", SPREAD, 400, 0.5, 0.6),
    Cell("contrast", {"items": 4, "max_rows": 6, "design": "public"}, 60, 0.5, 1.5),
    Cell("contrast", {"items": 5, "max_rows": 4, "worths": 3.0}, 300, 2.0, 0.5),
    Cell("contrast", {"items": 8, "mode": "local", "worths": 2.0}, 4000, 2.0, 0.6, True),
    Cell("contrast", {"items": 8, "max_rows": 10}, 150, 0.3, 2.5),
    Cell("contrast", {"items": 6, "unit": "row"}, 300, 0.4, 1.5),
    Cell("contrast", {"items": 5, "max_rows": 8, "dependence": "pairs"}, 200, 0.5, 1.5),
    Cell("contrast", {"items": 7, "max_rows": 12, "worths": 1.5}, 250, 0.4, 1.0, True),
    Cell("contrast", {"items": 6, "max_rows": 10, "dependence": "pairs"}, 150, 1.0, 0.8, True),
    Cell("contrast", {"items": 5, "unit": "row", "worths": 1.0}, 200, 0.6, 2.0, True),
    Cell("contrast", {"items": 8, **PUBLIC, "worths": 2.0}, 100, 0.4, 2.0, True),
    Cell("contrast", {"items": 30, "mode": "local"}, 500, 4.0, 1.0),
    Cell("contrast", {"items": 12, "mode": "local"}, 300, 3.0, 2.0, True),
    Cell("contrast", {"items": 6, "mode": "local", "ties": True}, 3000, 1.0, 0.5),
    Cell("contrast", {"items": 30, "max_rows": 5, "design": "public"}, 100, INF, 1.0, True),
    Cell("contrast", {"items": 20, "max_rows": 4}, 300, 2.0, 2.0, True),
    Cell("contrast", {"items": 8, "max_rows": 2, "design": "public"}, 12, INF, 2.0),
    Cell("top", {"items": 6, "k": 2, **PUBLIC}, 300, 1.0, 0.35),
    Cell("top", {"items": 6, "k": 2, **PUBLIC}, 300, INF, 0.25),
    Cell("top", {**RATES, "items": 6, "k": 2, **PRIVATE}, 300, 1.0, 0.45),
    Cell("top", {**RATES, "items": 6, "k": 2, "max_rows": 3}, 1200, 1.0, 0.35),
    Cell("top", {**RATES, "items": 6, "k": 2, "unit": "row"}, 1500, 1.0, 0.5),
    Cell("top", {"items": 6, "k": 2, "mode": "local"}, 5000, 1.0, 0.5),
    Cell("top", {"items": 5, "k": 1, "max_rows": 10, "aim": "right"}, 100, 0.5, 0.4, True),
    Cell("top", {**RATES, "items": 10, "k": 3, "max_rows": 20}, 400, 1.0, 0.6, True),
    Cell(
        "top",
        {**RATES, "items": 4, "k": 1, "max_rows": 6, "worths": (1, 0, 0, -1)},
        100,
        1.0,
        1.0,
        True,
    ),
    Cell("top", {**RATES, "items": 5, "k": 2, "max_rows": 1}, 500, 2.0, 0.8, True),
    Cell("top", {**RATES, "items": 5, "k": 2, "unit": "row"}, 300, 0.4, 1.5),
    Cell("top", {**RATES, "items": 5, "k": 1, "max_rows": 8}, 200, 0.4, 1.5),
    Cell("top", {**RATES, "items": 5, "k": 2, "max_rows": 6, "dependence": "pairs"}, 200, 0.5, 1.5),
    Cell("top", {**RATES, "items": 6, "k": 2, "max_rows": 10}, 150, 0.6, 2.5, True),
    Cell("top", {"items": 8, "k": 3, **PUBLIC}, 100, 1.0, 2.5, True),
    Cell("top", {"items": 8, "k": 3, "max_rows": 4, "aim": "right"}, 400, 1.0, 1.0, True),
    Cell("top", {**RATES, "items": 6, "k": 2, "max_rows": 3}, 100, INF, 0.6),
    Cell("top", {"items": 12, "k": 3, "max_rows": 4, "design": "public"}, 150, 4.0, 1.2, True),
    Cell("excess", {"items": 6}, 300, 0.5, 0.8, share=2),
    Cell("excess", {"items": 6}, 100, INF, 0.9, share=2),
    Cell("excess", {"items": 10, "method": "borda"}, 500, 0.5, 0.8),
    Cell("excess", {"items": 6, "mode": "local"}, 3000, 1.0, 0.8, share=0.5),
    Cell("excess", {"items": 8}, 5000, 0.1, 0.9, True),
    Cell("width", {"items": 6, "loss": "width"}, 300, 0.5, 0.8),
    Cell("width", {"items": 6, "loss": "width"}, 1500, INF, 0.9),
    Cell("width", {"items": 6, "loss": "width", "mode": "local"}, 4000, 2.0, 0.8, share=0.5),
    Cell("width", {"items": 12, "loss": "width"}, 1000, 0.5, 0.8, True, share=0.5),
)


def comparisons(rng: np.random.Generator, worths: np.ndarray, nobs: int, rows: int) -> pd.DataFrame:
    """Return comparisons of random pairs, a number per respondent, by the respondent's order."""
    m = len(worths)
    first, second = np.triu_indices(m, 1)
    drawn = rng.random((nobs, len(first))).argsort(axis=1)[:, :rows].ravel()
    names = np.array([str(number) for number in range(m)])
    felt = np.repeat(worths + rng.gumbel(size=(nobs, m)), rows, axis=0)
    each = np.arange(len(drawn))
    won = felt[each, first[drawn]] > felt[each, second[drawn]]
    return pd.DataFrame(
        {
            "item1": names[first[drawn]],
            "item2": names[second[drawn]],
            "outcome": np.where(won, 1, -1),
            "respondent": np.repeat(np.arange(nobs), rows),
        }
    )


def run(rng: np.random.Generator, cell: Cell) -> float:
    """Simulate and fit one survey; return the quantity whose mean the plan predicts."""
    plan = cell.planner
    if cell.what in ("excess", "width"):
        return consensus(rng, cell)
    worths = plan._worths(cell.effect)
    names = [str(number) for number in range(len(worths))]
    rows = cell.plan.get("max_rows", 1)
    frame = comparisons(rng, worths, cell.nobs, rows)
    if cell.plan.get("mode") == "local":
        ties = cell.plan.get("ties", False)
        protocol = pr.local.Comparisons(names, epsilon=cell.epsilon, ties=ties)
        tally = reports(rng, frame, protocol)
        if cell.what == "top":
            return separated(pr.PrivateTopK.from_reports(tally, cell.plan["k"]), cell)
        result = pr.PrivateBTL.from_reports(tally)
    else:
        facts = {"items": names, "max_rows": rows, "design": cell.plan.get("design", "private")}
        facts["respondent"] = None if cell.plan.get("unit") == "row" else "respondent"
        options = {"rng": rng, "dependence": cell.plan.get("dependence", "auto")}
        if cell.what == "top":
            model = pr.PrivateTopK(frame, cell.plan["k"], **facts)
            target = cell.plan.get("target", "auto")
            return separated(model.fit(cell.epsilon, target=target, **options), cell)
        try:
            result = pr.PrivateBTL(frame, **facts).fit(cell.epsilon, **options)
        except ValueError as error:
            if not ("connect" in str(error) or "identified" in str(error)):
                raise
            return 0.0
    if math.isinf(cell.epsilon):
        return float(result.pairwise()["pvalue"].iloc[0] <= 0.05)
    contrast = np.zeros((1, len(worths)))
    contrast[0, :2] = 1.0, -1.0
    return float(pvalues(result._inference(), contrast)[0] <= 0.05)


def reports(rng: np.random.Generator, frame: pd.DataFrame, protocol: Any) -> Any:
    """Return the tally of reports of one comparison of each respondent."""
    first, second, outcome = (
        frame[name].to_numpy().astype(int) for name in ("item1", "item2", "outcome")
    )
    m = len(protocol.items)
    rows = np.arange(len(frame))
    ranks = rng.random((len(frame), m)).argsort(axis=1).argsort(axis=1) + 1
    one, other = ranks[rows, first], ranks[rows, second]
    swap = (one < other) != (outcome > 0)
    ranks[rows[swap], first[swap]], ranks[rows[swap], second[swap]] = other[swap], one[swap]
    place = {tuple(pair): number for number, pair in enumerate(protocol.all_pairs.tolist())}
    asks = np.array([place[pair] for pair in zip(first.tolist(), second.tolist(), strict=True)])
    return protocol.tally(protocol.simulate(ranks, rng, asks))


def separated(result: Any, cell: Cell) -> float:
    """Return whether the correct set was selected, and separated if required."""
    right = set(result.selected) == {str(number) for number in range(cell.plan["k"])}
    return float(right and (cell.plan.get("aim") == "right" or result.pvalue <= 0.05))


def consensus(rng: np.random.Generator, cell: Cell) -> float:
    """Return the excess of the order of one survey, or the mean width of its rank intervals."""
    names = [str(number) for number in range(cell.plan["items"])]
    model = pr.Mallows(names, phi=cell.effect)
    ranks, m = model.rvs(cell.nobs, rng), len(names)
    if cell.plan.get("mode") == "local":
        protocol = pr.local.SubRanking(names, epsilon=cell.epsilon)
        tally = protocol.tally(protocol.simulate(ranks, rng))
        result = pr.PrivateRankAggregation.from_reports(tally)
    else:
        method = cell.plan.get("method", "auto")
        frame = pr.PrivateRankAggregation(pd.DataFrame(ranks, columns=names))
        result = frame.fit(cell.epsilon, method=method, rng=rng)
    if cell.what == "width":
        limits = result.rank_conf_int()
        return float((limits["upper"] - limits["lower"]).mean())
    ahead = np.array(
        [[0.5 if i == j else model.pair_probability(i, j) for j in names] for i in names]
    )
    order, best = [int(name) for name in result.order], list(range(m))
    return (against(order, ahead) - against(best, ahead)) / (m * (m - 1) / 2)


def against(order: list[int], ahead: np.ndarray) -> float:
    """Return the mean number of pairs on which rankings differ from an order."""
    return float(np.triu(ahead[np.ix_(order, order)].T, 1).sum())


def row(cell: Cell, found: list[float]) -> dict[str, Any]:
    """Compare the predicted values with the observed ones."""
    values, plan = np.array(found), cell.planner
    predicted = plan.power(cell.nobs, cell.epsilon, cell.effect)
    mean, n = values.mean(), len(values)
    spread = values.std(ddof=1) / math.sqrt(n)
    if cell.what in ("contrast", "top"):
        spread = math.sqrt(predicted * (1.0 - predicted) / n)
    both = math.hypot(spread, predicted.error)
    return {
        "plan": str(cell).split(", n=")[0],
        "nobs": cell.nobs,
        "epsilon": f"{cell.epsilon:g}",
        "effect": cell.effect,
        "held out": "yes" if cell.held_out else "",
        "predicted": f"{float(predicted):.4g}",
        "found": f"{mean:.4g}",
        "std err": f"{both:.2g}",
        "sd": f"{(mean - predicted) / max(both, 1e-12):.1f}",
    }


def verdict(rows: list[dict[str, Any]]) -> str:
    """Summarise the differences of plans and fits."""
    named = [
        (abs(float(row["sd"])), f"{row['plan']} at n = {row['nobs']}, epsilon {row['epsilon']}")
        for row in rows
    ]
    ranked = sorted(named, reverse=True)
    beyond = sum(size > 2.0 for size, _ in ranked)
    adjusted = [
        2.0 * norm.sf(size) * (len(ranked) - place) for place, (size, _) in enumerate(ranked)
    ]
    holm = np.minimum(np.maximum.accumulate(adjusted), 1.0)
    apart = [name for (_, name), pvalue in zip(ranked, holm, strict=True) if pvalue <= 0.05]
    text = (
        f"Apart by more than 2 standard errors: {beyond} of {len(ranked)} comparisons, where "
        f"{2.0 * norm.sf(2.0) * len(ranked):.1f} are expected of plans that agree with fits; the "
        f"largest difference is {ranked[0][0]:.1f} ({ranked[0][1]}), with a p-value of "
        f"{holm[0]:.2g} after Holm's adjustment."
    )
    return text + (f" Different at level .05: {'; '.join(apart)}." if apart else "")


def main() -> None:
    """Run the requested cells."""
    wanted = asked(__doc__.splitlines()[0], 1000)
    title = "Planned and simulated results of fits, selections and consensus orders"
    table("power_models", title, COMMAND, CELLS, run, row, wanted, 8100, verdict)


if __name__ == "__main__":
    main()
