"""Worths under a private design whose pair counts are asserted to be proportional.

Given how often each item was compared, opponents are matched at random, or the assertion is false:
items far apart meet less often, worths of opponents are correlated, or members of a class unrelated
to the worths meet more often. The table has the root mean square error of worths, for this fit, a
public design and released pair counts; the coverage of the 95% intervals of at most 66 differences,
with the worst difference, for the fit and for one that relies on the assertion (`opponents` without
a share of epsilon); and the rates at which the check detects a departure and the fit warns. With 50
or more items answers are treated as independent, which they are. A cell holds if the smallest
coverage is at least its floor; and, with random opponents, if the error is at most 1.6 times the
error of the public design and the check detects a departure in at most 0.05 of the surveys plus two
standard errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import study

import privrank as pr
from privrank.bradley_terry.scoretests import intervals
from privrank.encode.encoded import Encoded, RespondentBlock, RespondentBlocks
from privrank.plans.choice import Dependence
from privrank.power.comparisons import different_pairs
from privrank.release.survey import Design, PairCounts

CATEGORIES, WITHIN = 4, 0.7

CONTRASTS = 66
"""Number of differences whose coverage is measured."""

MEETINGS: dict[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]] = {
    "random": lambda first, second, m: np.ones(len(first)),
    "exp(-.05 gap)": lambda first, second, m: np.exp(-0.05 * (second - first)),
    "exp(+.05 gap)": lambda first, second, m: np.exp(0.05 * (second - first)),
    "neighbours 25% more": lambda first, second, m: 1.0 + 0.25 * (second - first == 1),
    "own half 15% more": lambda first, second, m: (
        1.0 + 0.15 * ((first < m / 2) == (second < m / 2))
    ),
    "exp(-.15 gap)": lambda first, second, m: np.exp(-0.15 * (second - first)),
    "parity classes 3:1": lambda first, second, m: 1.0 + 2.0 * (first % 2 == second % 2),
}
"""Relative frequency with which two items meet, for items in the order of their worths."""


@dataclass(frozen=True)
class Cell:
    """One setting: items, respondents, their answers, popularity k^-power, and matching."""

    items: int
    respondents: int
    rows: int
    power: float = 0.0
    missing: float = 0.0
    correlation: float = 0.0
    categories: bool = False
    meeting: str = "random"
    spread: float = 1.0
    epsilon: float = 1.0

    def replicates(self, most: int) -> int:
        return most if self.items <= 50 else max(most // 4, 2)

    @property
    def opponents(self) -> str:
        """Description of the matching."""
        if self.correlation:
            return f"worths correlated by {self.correlation:g}"
        return f"{WITHIN:.0%} within categories" if self.categories else self.meeting

    @property
    def holds(self) -> bool:
        """Whether the assertion is true."""
        return not self.correlation and not self.categories and self.meeting == "random"

    @property
    def distinct(self) -> bool:
        """Whether each respondent answers different pairs, with all sets equally likely."""
        return self.holds and not self.power and self.items != 12


CELLS = [
    Cell(6, 1000, 15, missing=0.1),
    Cell(6, 1000, 15, power=0.7),
    Cell(20, 5000, 10),
    Cell(20, 5000, 10, power=0.7),
    Cell(20, 5000, 10, missing=0.3),
    Cell(50, 20_000, 10),
    Cell(50, 20_000, 10, power=0.7),
    Cell(200, 100_000, 5),
    Cell(200, 100_000, 5, power=0.7),
    *(Cell(m, 1000 * (1 if m == 6 else 5), 10, correlation=r)
      for m in (6, 20) for r in (0.02, 0.05, 0.1, 0.3)),
    Cell(20, 5000, 10, categories=True),
    *(Cell(12, 1500, 5, meeting=meeting) for meeting in MEETINGS),
    *(Cell(12, 1500, 5, meeting=meeting, spread=0.2) for meeting in ("random", "exp(-.05 gap)")),
    *(Cell(12, 6000, 5, meeting=meeting) for meeting in ("exp(-.05 gap)", "exp(-.15 gap)")),
]  # fmt: skip


def worths_of(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Return true worths of standard deviation 1, and the popularity of the items."""
    order = np.random.default_rng(cell.items)
    worths = np.linspace(-1.0, 1.0, cell.items)
    popularity = order.permutation(np.arange(1.0, cell.items + 1.0) ** -cell.power)
    return cell.spread * worths / worths.std(), popularity


def probabilities(cell: Cell) -> np.ndarray:
    """Return the probabilities of the pairs."""
    worths, popularity = worths_of(cell)
    first, second = np.triu_indices(cell.items, 1)
    probability = popularity[first] * popularity[second]
    probability *= np.maximum(1.0 + cell.correlation * worths[first] * worths[second], 0.0)
    probability *= MEETINGS[cell.meeting](first, second, cell.items)
    probability /= probability.sum()
    if cell.categories:
        same = first % CATEGORIES == second % CATEGORIES
        probability *= np.where(same, WITHIN / probability[same].sum(),
                                (1.0 - WITHIN) / probability[~same].sum())  # fmt: skip
    return probability


def survey(rng: np.random.Generator, cell: Cell) -> Encoded:
    """Simulate the answers of all respondents."""
    n, m, rows = cell.respondents, cell.items, cell.rows
    (worths, _), (first, second) = worths_of(cell), np.triu_indices(m, 1)
    if cell.distinct:
        pair = different_pairs(n, rows, len(first), rng).ravel()
    else:
        ends = np.cumsum(probabilities(cell))
        pair = np.minimum(np.searchsorted(ends, rng.random(n * rows)), len(first) - 1)
    person = np.repeat(np.arange(n), rows)
    answered = rng.random(n * rows) >= cell.missing
    pair, person = pair[answered], person[answered]
    won = 1.0 / (1.0 + np.exp(worths[second] - worths[first]))
    answer = np.where(rng.random(len(pair)) < won[pair], 1, -1)
    count = np.bincount(pair, minlength=len(first)).astype(np.int64)
    net = np.bincount(pair, answer, minlength=len(first)).astype(np.int64)
    names = tuple(f"item {k:03d}" for k in range(m))
    design = Design(names, n, "respondent", rows, cell.distinct, False, "private", None)
    once = np.ones(len(pair), dtype=np.int64)
    alike = np.ones(n, dtype=np.int64)
    part = RespondentBlock(
        np.arange(n, dtype=np.uint64), person, (first * m + second)[pair], answer, once, alike
    )
    return Encoded(design, (first, second, count, net), RespondentBlocks((part,)))


def one(rng: np.random.Generator, cell: Cell) -> tuple[Any, ...]:
    """Return squared errors of three designs, coverage of intervals, and results of the check."""
    data, (worths, _) = survey(rng, cell), worths_of(cell)
    first, second, count, _ = data._pairs
    nominal = cell.respondents * cell.rows / len(first)
    met = PairCounts(first[count > 0], second[count > 0], count[count > 0], "observed")
    designs = (
        replace(data.design, pairs=PairCounts.equal(cell.items, nominal, "proportional")),
        replace(data.design, kind="public", pairs=met),
        data.design,
    )
    dependence: Dependence = "auto" if cell.items < 50 else "none"
    asserted = {"opponents": 0.0}
    fits = [
        pr.PrivateBTL(Encoded(design, data._pairs, data._parts)).fit(
            cell.epsilon,
            dependence=dependence,
            shares=shares,
            allow_unidentified=True,
            rng=rng,
        )
        for design, shares in zip((*designs, designs[0]), (None, None, None, asserted), strict=True)
    ]
    errors = [float(((fit.params - worths) ** 2).mean()) for fit in fits[:3]]
    some = np.random.default_rng(0).permutation(len(first))[:CONTRASTS]
    contrasts = np.eye(cell.items)[first[some]] - np.eye(cell.items)[second[some]]
    limits = [intervals(fit._inference(), contrasts, 0.05) for fit in (fits[0], fits[3])]
    true = contrasts @ worths
    covered = [(low <= true) & (true <= high) for low, high in limits]
    widths = [float(np.median(high - low)) for low, high in limits]
    matching = fits[0]._inference().equations.matching
    hidden = float(np.isinf(limits[0][1] - limits[0][0]).mean())
    warned = any("who met whom" in said or "own half" in said for said in fits[0].warnings)
    found = [matching.pvalue < 0.05, matching.beta, float(warned), hidden]
    return errors, covered, widths, found


def row(cell: Cell, runs: list[tuple[Any, ...]]) -> dict[str, Any]:
    errors, covered, widths, found = (np.array(part) for part in zip(*runs, strict=True))
    ours, public, default = np.sqrt(errors.mean(axis=0))
    least, floor = study.least(covered[:, 0])
    rival, _ = study.least(covered[:, 1])
    departs, beta, warned, hidden = found.mean(axis=0)
    most = 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(runs))
    good = least >= floor and (not cell.holds or (ours <= 1.6 * public and departs <= most))
    ratio = np.median(widths[:, 0]) / np.median(widths[:, 1])
    return {
        "items": cell.items,
        "respondents": cell.respondents,
        "answers": f"{cell.rows}" + (f", {cell.missing:.0%} missing" if cell.missing else ""),
        "popularity": f"k^-{cell.power:g}" if cell.power else "uniform",
        "spread": cell.spread,
        "opponents": cell.opponents,
        "replicates": len(runs),
        "RMSE": f"{ours:.3f}",
        "public": f"{public:.3f}",
        "released": f"{default:.3f}",
        "not identified": f"{hidden:.3f}",
        "beta": f"{beta:.4f}",
        "mean coverage": f"{covered[:, 0].mean():.3f}",
        "least": f"{least:.3f}",
        "floor": f"{floor:.3f}",
        "asserted, mean": f"{covered[:, 1].mean():.3f}",
        "asserted, least": f"{rival:.3f}",
        "width over asserted": f"{ratio:.2f}",
        "check finds": f"{departs:.3f}",
        "warns": f"{warned:.3f}",
        "verdict": "holds" if good else "falls short",
    }


if __name__ == "__main__":
    study.table(
        "proportional",
        "Proportional pair counts: accuracy if opponents are matched at random, and if not",
        "python validation/proportional.py",
        CELLS,
        one,
        row,
        study.asked(__doc__, 400),
        2900,
    )
