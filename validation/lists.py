"""Respondents who rank items, for studies: their lists, and the pairs that these decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

import privrank as pr

Model = pr.PlackettLuce | pr.Mallows


@dataclass(frozen=True, eq=False)
class Lists:
    """Respondents who list the top items of a ranking: the fractions of types, and their models.

    Replaces a population of :mod:`respondents`; its answers are the pairs of these lists.
    """

    items: int
    listed: int
    shares: tuple[float, ...]
    models: tuple[Model, ...]

    @property
    def rows(self) -> int:
        """The pairs whose order a list determines."""
        return self.listed * (2 * self.items - self.listed - 1) // 2

    def draw(self, rng: np.random.Generator, nobs: int) -> pd.DataFrame:
        """Return a rankings frame, items that are not listed missing."""
        kind = rng.choice(len(self.shares), nobs, p=self.shares)
        ranks = np.empty((nobs, self.items))
        for number, model in enumerate(self.models):
            here = kind == number
            if here.any():
                ranks[here] = model.rvs(int(here.sum()), rng)
        return pd.DataFrame(ranks).where(ranks <= self.listed)

    def answers(self, rng: np.random.Generator, nobs: int) -> np.ndarray:
        """Return the answers of a sample to every pair, NaN if a list does not determine it."""
        first, second = np.triu_indices(self.items, 1)
        place = self.draw(rng, nobs).fillna(self.items + 1).to_numpy()
        order = np.sign(place[:, second] - place[:, first])
        return np.where(order == 0, np.nan, order)

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the fraction of lists that determine a pair, and the expected answer."""
        wins = sum(
            share * expected_wins(model, self.items, self.listed)
            for share, model in zip(self.shares, self.models, strict=True)
        )
        known, net = wins + wins.T, wins - wins.T
        pairs = np.triu_indices(self.items, 1)
        return known[pairs], net[pairs] / known[pairs]


def choice(model: Model, left: np.ndarray) -> np.ndarray:
    """Return the probabilities with which a model chooses the best of the remaining items."""
    if isinstance(model, pr.PlackettLuce):
        weight = np.exp(model.worths[left])
    else:
        before = np.argsort(np.argsort(np.asarray(model.center)[left]))
        weight = model.phi ** before.astype(float)
    return weight / weight.sum()


def expected_wins(model: Model, items: int, listed: int) -> np.ndarray:
    """Return the probability that a list places the one item before the other, shape (m, m)."""
    wins = np.zeros((items, items))
    sets = {frozenset[int](): 1.0}
    for _ in range(min(listed, items - 1)):
        larger: dict[frozenset[int], float] = {}
        for chosen, probability in sets.items():
            left = np.array([item for item in range(items) if item not in chosen])
            each = probability * choice(model, left)
            wins[np.ix_(left, left)] += each[:, None]
            for item, part in zip(left.tolist(), each.tolist(), strict=True):
                larger[chosen | {item}] = larger.get(chosen | {item}, 0.0) + part
        sets = larger
    np.fill_diagonal(wins, 0.0)
    return wins


@cache
def lists(name: str, items: int, listed: int) -> Lists:
    """Return respondents by the name of their model."""
    order = np.arange(1, items + 1)
    one: Callable[[int], Model]
    if "Luce" in name:
        one = lambda sign: pr.PlackettLuce(sign * np.linspace(1.0, -1.0, items))  # noqa: E731
    else:
        phi = float(name.split()[-1])
        one = lambda sign: pr.Mallows(items, phi, order[::sign])  # noqa: E731
    if name.startswith("two"):
        return Lists(items, listed, (0.6, 0.4), (one(1), one(-1)))
    return Lists(items, listed, (1.0,), (one(1),))
