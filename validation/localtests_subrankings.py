"""Worths from reports of orders of three and four items, and of pairs: coverage and errors.

The same respondents are asked for the order of a few items, for the order of two, and for a bit
about a pair of their own, at the same epsilon. Their rankings are from the Plackett-Luce model, or
from two camps of it that disagree about half of the items. The true worths of camps give the best
fit to the pairs asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from study import asked, least, most, table

import privrank as pr
from privrank.local.kinds import PairBits, SubRanking
from privrank.local.protocols import Protocol

MINORITY = 0.35


@dataclass(frozen=True)
class Orders:
    """Respondents who are asked for the order of some of these items."""

    items: int
    size: int
    epsilon: float
    n: int
    camps: bool = False

    def replicates(self, wanted: int) -> int:
        return wanted

    def __str__(self) -> str:
        population = "camps" if self.camps else "Plackett-Luce"
        return f"m={self.items} s={self.size} eps={self.epsilon:g} n={self.n} {population}"

    @property
    def names(self) -> list[str]:
        return [str(k + 1) for k in range(self.items)]

    @property
    def populations(self) -> list[tuple[float, np.ndarray]]:
        """Fractions of the respondents with their worths."""
        worths = np.linspace(1.0, -1.0, self.items)
        if not self.camps:
            return [(1.0, worths)]
        # the others have the first half of the items in reverse
        turned = worths.copy()
        half = self.items // 2
        turned[:half] = worths[:half][::-1] - 1.0
        return [(1.0 - MINORITY, worths), (MINORITY, turned)]

    @property
    def protocols(self) -> dict[str, Protocol]:
        return {
            "orders": SubRanking(self.names, self.epsilon, size=self.size),
            "size 2": SubRanking(self.names, self.epsilon, size=2),
            "bits": PairBits(self.names, self.epsilon, pairing="private"),
        }

    def ahead(self) -> np.ndarray:
        """Probability that the first item of each pair is ranked first."""
        first, second = np.triu_indices(self.items, 1)
        shares = (
            share / (1.0 + np.exp(worths[second] - worths[first]))
            for share, worths in self.populations
        )
        return np.sum(list(shares), axis=0)


def best_fitting(ahead: np.ndarray, counts: np.ndarray, items: int) -> np.ndarray:
    """Return the differences of the worths with the best fit to the weighted pairs."""
    first, second = np.triu_indices(items, 1)
    contrasts = np.eye(items)[first] - np.eye(items)[second]
    worths = np.zeros(items)
    for _ in range(30):
        share = 1.0 / (1.0 + np.exp(-contrasts @ worths))
        slope = contrasts.T @ ((counts * share * (1.0 - share))[:, None] * contrasts)
        worths += np.linalg.lstsq(slope, contrasts.T @ (counts * (ahead - share)))[0]
    return contrasts @ worths


def found(rng: np.random.Generator, cell: Orders) -> dict[str, Any]:
    shares = [share for share, _ in cell.populations]
    camp = rng.choice(len(shares), size=cell.n, p=shares)
    worths = np.array([worths for _, worths in cell.populations])[camp]
    order = np.argsort(-(worths + rng.gumbel(size=worths.shape)), axis=1)
    ranks = np.argsort(order, axis=1) + 1
    numbers = {}
    for name, protocol in cell.protocols.items():
        fit = pr.PrivateBTL.from_reports(protocol.tally(protocol.simulate(ranks, rng)))
        pairs, design = fit.pairwise(), fit.release.design
        assert design.pairs is not None
        counts = design.pairs.table(cell.items)[np.triu_indices(cell.items, 1)]
        true = best_fitting(cell.ahead(), counts, cell.items)
        share = 1.0 / (1.0 + np.exp(-true))
        numbers[f"{name}, covered"] = (pairs["lower"] <= share) & (share <= pairs["upper"])
        numbers[f"{name}, error"] = pairs["difference"] - true
        numbers[f"{name}, width"] = pairs["upper"] - pairs["lower"]
    return numbers


CELLS = [
    Orders(4, 3, 1.0, 500),
    Orders(4, 3, 3.0, 500),
    Orders(6, 3, 3.0, 2000),
    Orders(6, 4, 3.0, 500),
    Orders(6, 4, 5.0, 500),
    Orders(4, 3, 3.0, 500, camps=True),
    Orders(6, 4, 3.0, 2000, camps=True),
]


def stacked(runs: Sequence[dict[str, Any]], name: str) -> np.ndarray:
    return np.array([np.asarray(one[name]) for one in runs])


def row(cell: Orders, runs: list[dict[str, Any]]) -> dict[str, Any]:
    inside = stacked(runs, "orders, covered")
    low, floor = least(inside)
    high, ceiling = most(inside)
    first, second = (places + 1 for places in np.triu_indices(cell.items, 1))
    worst = int(np.argmin(inside.mean(axis=0)))
    errors = {
        name: float(np.sqrt((stacked(runs, f"{name}, error") ** 2).mean()))
        for name in cell.protocols
    }
    widths = {name: float(stacked(runs, f"{name}, width").mean()) for name in cell.protocols}
    return {
        "rankings": "two camps" if cell.camps else "Plackett-Luce",
        "items": cell.items,
        "size": cell.size,
        "epsilon": f"{cell.epsilon:g}",
        "respondents": cell.n,
        "covered": f"{inside.mean():.3f}",
        "worst pair (floor)": f"{low:.3f} ({floor:.3f})",
        "which": f"{first[worst]} - {second[worst]}",
        "most of pairs (ceiling)": f"{high:.3f} ({ceiling:.3f})",
        "error": f"{errors['orders']:.3f}",
        **{
            f"error of {name}": f"{errors[name]:.3f}" for name in cell.protocols if name != "orders"
        },
        **{
            f"width over {name}": f"{widths['orders'] / widths[name]:.2f}"
            for name in cell.protocols
            if name != "orders"
        },
        **{
            f"covered by {name}": f"{stacked(runs, f'{name}, covered').mean():.3f}"
            for name in cell.protocols
            if name != "orders"
        },
    }


def main() -> None:
    wanted = asked(__doc__ or "", 180)
    table(
        "localtests_subrankings",
        "Worths from randomised orders of a few items",
        "python validation/localtests_subrankings.py",
        CELLS,
        found,
        row,
        wanted,
        7450,
    )


if __name__ == "__main__":
    main()
