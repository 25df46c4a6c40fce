"""Consensus of orders of offered sets: error of the order, coverage, and simple rivals.

Plans and populations are those of `sets.py`, with orders as answers: `farmers`, 600 respondents who
order 3 of 10 items; `B`, 180 who order the 7 sets of 4 of 7 items of a balanced design; `uneven`,
300 who order 10 sets of 4 of 8 items, of which four are shown four times as often. There, win rates
are not mean ranks.

`default` and `pairs` (`releases="pairs"`) are fits of `PrivateRankAggregation`, `worths` is the
order of the worths of `PrivateBTL`. `rival` orders items by win rate: net wins with Laplace noise
at all of epsilon, divided by how often the item met another. Errors are disagreements with the
population beyond those of the best order, in percent of all pairs. Coverage is simultaneous for
rank sets and for all pairs, and pointwise for the worst pair and the worst score.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import study
from sets import SHAPES, Cell, answered, frame_of, population, scores, sets_of

import privrank as pr
from privrank.consensus.orders import kemeny, weight_against

DRAWS = 20_000


@dataclass(frozen=True)
class Consensus(Cell):
    """A plan whose sets are ordered, the population, and epsilon."""

    @property
    def within(self) -> int:
        return SHAPES[self.plan][3]


@cache
def truth(cell: Consensus) -> np.ndarray:
    """Return the probability that a respondent places row before column."""
    worths = population(cell, DRAWS, np.random.default_rng(11))
    ahead = np.zeros((cell.items, cell.items))
    for v in worths:
        ahead += 1.0 / (1.0 + np.exp(v[None, :] - v[:, None]))
    return ahead / DRAWS


def loss(order: np.ndarray, ahead: np.ndarray) -> float:
    """Return the disagreements beyond those of the best order, in percent of all pairs."""
    least = kemeny(ahead).score
    return 200.0 * (weight_against(order, ahead) - least) / (len(ahead) * (len(ahead) - 1))


def true_ranks(ahead: np.ndarray) -> np.ndarray:
    """Return the smallest and the largest rank by mean rank, shape (2, m)."""
    mean = ahead.sum(axis=1)
    before = (mean[None, :] > mean[:, None] + 1e-9).sum(axis=1)
    level = (np.abs(mean[None, :] - mean[:, None]) <= 1e-9).sum(axis=1)
    return np.stack((1 + before, before + level))


def statements(result: pr.AggregationResult, ahead: np.ndarray) -> dict[str, object]:
    """Return which statements hold."""
    low, high = true_ranks(ahead)
    ranks = result.rank_conf_int()
    borda = result.borda().loc[list(result.items)]
    mean = ahead.sum(axis=1) - 0.5
    found: dict[str, object] = {
        "ranks": bool(((ranks["lower"] <= low) & (ranks["upper"] >= high)).all()),
        "scores": ((borda["lower"] <= mean) & (mean <= borda["upper"])).to_numpy(),
    }
    if result.fractions is not None:
        table = result.pairwise()
        at = [[result.items.index(name) for name in table[side]] for side in ("item1", "item2")]
        true = ahead[at[0], at[1]]
        first, second = np.sort(np.array(at), axis=0)
        place = np.lexsort((second, first))
        inside = ((table["lower"] <= true) & (true <= table["upper"])).to_numpy()
        found["pairs"] = inside[place]
        found["all pairs"] = bool(
            ((table["all_lower"] <= true) & (true <= table["all_upper"])).all()
        )
    return found


def run(rng: np.random.Generator, cell: Consensus) -> dict[str, object]:
    """Return errors of the orders, and which statements hold."""
    plans = sets_of(cell.plan)
    n = cell.respondents
    sets = plans[np.arange(n) % len(plans)]
    answers = answered(cell.people(rng), sets, "order", rng)
    frame = frame_of(cell, sets, answers)
    asked = {"respondent": "id", "max_rows": sets.shape[1]}
    ahead = truth(cell)
    model = pr.PrivateRankAggregation(frame, **asked)
    default = model.fit(cell.epsilon, rng=rng)
    pairs = model.fit(cell.epsilon, releases="pairs", rng=rng)
    worths = pr.PrivateBTL(frame, design="public", **asked).fit(cell.epsilon, rng=rng)
    shown = np.bincount(sets.ravel(), minlength=cell.items)
    net = scores(cell, sets, answers).sum(axis=0)
    if cell.epsilon < np.inf:
        moved = 4 * (cell.within**2 // 4) * sets.shape[1]
        net = net + rng.laplace(0.0, moved / cell.epsilon, cell.items)
    orders = {
        "default": default.places,
        "pairs": pairs.places,
        "worths": np.argsort(-worths.params.to_numpy(), kind="stable"),
        "rival": np.argsort(-net / shown, kind="stable"),
    }
    found: dict[str, object] = {f"error of {k}": loss(v, ahead) for k, v in orders.items()}
    found |= {f"default {name}": value for name, value in statements(default, ahead).items()}
    return found | {f"pairs {name}": value for name, value in statements(pairs, ahead).items()}


def cells() -> list[Consensus]:
    """Return all cells."""
    found = [
        Consensus(plan, "order", who, epsilon)
        for plan, who, epsilon in product(
            ("farmers", "B"), ("same", "camps"), (0.5, 1.0, 2.0, np.inf)
        )
    ]
    return found + [Consensus("uneven", "order", "same", e) for e in (1.0, np.inf)]


def row(cell: Consensus, found: list[dict[str, object]]) -> dict[str, str]:
    def mean(name: str) -> np.ndarray:
        return np.mean([one[name] for one in found], axis=0)

    behind, error = study.mean_and_error(
        np.array([one["error of default"] - one["error of rival"] for one in found])
    )
    return {
        "plan": cell.plan,
        "population": cell.population,
        "epsilon": f"{cell.epsilon:g}",
        "replicates": str(len(found)),
        **{name: f"{mean(f'error of {name}'):.2f}" for name in ("default", "pairs", "worths")},
        "rival": f"{mean('error of rival'):.2f}",
        "default minus rival": f"{behind:.2f} ({error:.2f})",
        "rank sets": f"{mean('default ranks'):.3f}/{mean('pairs ranks'):.3f}",
        "worst score": f"{mean('default scores').min():.3f}/{mean('pairs scores').min():.3f}",
        "worst pair": f"{mean('pairs pairs').min():.3f}",
        "all pairs": f"{mean('pairs all pairs'):.3f}",
    }


def main() -> None:
    study.table(
        "set_orders",
        "Consensus of orders of offered sets",
        "python validation/set_orders.py",
        cells(),
        run,
        row,
        study.asked(__doc__, 1000),
        9100,
    )


if __name__ == "__main__":
    main()
