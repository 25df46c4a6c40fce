"""Privacy losses: how well the releases of a fit distinguish two neighbouring data sets.

For a statistic with additive noise, or a random bit, the loss is computed from both statistics and
from the noise that was used, by formulas that are implemented here independently. Releases that
depend on earlier releases of the fit are compared given the same earlier ones. If the distribution
is not known, an event is chosen on half of the runs, and its probabilities are bounded on the other
half by Clopper and Pearson's intervals, simultaneously at 99%.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import permutations, product
from typing import Any
from unittest import mock
from warnings import catch_warnings

import numpy as np
from scipy.stats import beta, norm

from privrank.btl import PrivateBTL
from privrank.mechanisms import closeness, comparisons, samples
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.util.checks import PrivrankWarning

EPSILON, LEVEL = 1.0, 0.01
KINDS = (DiscreteLaplace, DiscreteGaussian, ZeroSumLaplace, CubeNoise, PermutohedronNoise)


class Drawn(Exception):
    """Ends a fit with its release: nothing is inferred."""


@dataclass(frozen=True)
class Claim:
    """A fit, its neighbours, and what is claimed; `fault` is planted while it runs."""

    name: str
    unit: str
    noise: str
    build: Callable[[Any], Any]
    variants: Sequence[Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float = EPSILON
    delta: float = 0.0
    fault: Callable[[], Any] | None = None
    twice: bool = False

    def __str__(self) -> str:
        """The name of the row."""
        return f"{self.name}, {self.unit}, {self.noise}"

    def replicates(self, number: int) -> int:
        """Number of runs."""
        return number

    def run(self, variant: Any, rng: np.random.Generator | None) -> Any:
        """The release of one variant of the data."""
        with ExitStack() as stack:
            stack.enter_context(catch_warnings(action="ignore", category=PrivrankWarning))
            for module in (closeness, comparisons, samples):
                stack.enter_context(
                    mock.patch.object(module, "spend_and_release", _stopped(module))
                )
            if self.fault is not None:
                stack.enter_context(self.fault())
            model = self.build(variant)
            # these few answers need not identify the worths
            spends = {"allow_unidentified": True} if isinstance(model, PrivateBTL) else {}
            try:
                model.fit(self.epsilon, self.delta, rng=rng, **self.options, **spends)
            except Drawn as drawn:
                return drawn.args[0]
        raise AssertionError(f"{self} released nothing")


def _stopped(module: Any) -> Callable[..., Any]:
    release = module.spend_and_release

    def stopped(*arguments: Any, **more: Any) -> Any:
        raise Drawn(release(*arguments, **more))

    return stopped


# --- losses that are computed ---

Recorded = list[tuple[Any, np.ndarray]]


@contextmanager
def recording() -> Iterator[Recorded]:
    """Note each statistic with its noise, or a bit's probability; zeros are released instead."""
    seen: Recorded = []

    def draw(noise: Any, values: Any, rng: Any) -> np.ndarray:
        statistic = np.array(values, dtype=np.int64)
        seen.append((noise, statistic))
        return np.zeros_like(statistic)

    def bit(probability: float, rng: Any) -> int:
        seen.append((None, np.array([probability])))
        return 0

    with ExitStack() as stack:
        for kind in KINDS:
            stack.enter_context(mock.patch.object(kind, "draw", draw))
        stack.enter_context(mock.patch.object(samples, "draw_bit", bit))
        yield seen


def loss_of(noise: Any, one: np.ndarray, other: np.ndarray, delta: float) -> float:
    """The privacy loss of a statistic with this noise between two values of it."""
    moved = (one - other).ravel()
    if noise is None:
        sides = [one[0] / other[0], (1 - one[0]) / (1 - other[0])]
        return max(abs(math.log(side)) for side in sides)
    if not moved.any():
        return 0.0
    if isinstance(noise, CubeNoise):
        return float(noise.rate * np.abs(moved).max())
    if isinstance(noise, PermutohedronNoise):
        # vertices of twice the permutohedron: m - 1, m - 3, ...; moved is in so many times the body
        j = np.arange(1, len(moved))
        most = np.cumsum(np.sort(moved)[::-1])[:-1] / (j * (len(moved) - j))
        return float(noise.rate * noise.fineness * most.max())
    if isinstance(noise, DiscreteGaussian):
        return gaussian_loss(noise.scale, tuple(sorted(np.abs(moved[moved != 0]).tolist())), delta)
    return float(np.abs(moved).sum() / noise.scale)


@lru_cache
def gaussian_loss(scale: float, moved: tuple[int, ...], delta: float) -> float:
    """The smallest epsilon at which discrete Gaussian noise protects a change of this size."""
    reach, length = math.ceil(10 * scale), math.hypot(*moved)
    if reach * sum(moved) > 10**5:  # on this fine lattice the noise is nearly normal

        def excess(epsilon: float) -> float:
            far, half = epsilon * scale / length, 0.5 * length / scale
            return norm.cdf(half - far) - math.exp(epsilon) * norm.cdf(-half - far)

        return _least(excess, delta, 100.0)
    x = np.arange(-reach, reach + 1)
    one = np.exp(-0.5 * (x / scale) ** 2)
    weight = np.ones(1)
    for step in moved:  # the distribution of the product of noise and move
        spread = np.zeros(2 * reach * step + 1)
        spread[::step] = one / one.sum()
        weight = np.convolve(weight, spread)
    loss = (np.arange(len(weight)) - len(weight) // 2 + 0.5 * length**2) / scale**2
    return _least(
        lambda epsilon: float(weight @ np.maximum(-np.expm1(epsilon - loss), 0.0)), delta, 100.0
    )


def _least(excess: Callable[[float], float], delta: float, high: float) -> float:
    """The smallest epsilon at which the excess is at most delta."""
    low = 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > delta else (low, middle)
    return high


def computed(claim: Claim, seeds: int = 3) -> tuple[float, str]:
    """The largest loss of a fit over all pairs of variants, and the noise of the fit.

    Given the same public randomness. With a positive delta, pure noise may lose log(1 - delta)
    more.
    """
    largest, kinds = 0.0, set()
    for seed in range(seeds):
        seen = []
        for variant in claim.variants:
            with recording() as drawn:
                for _ in range(1 + claim.twice):
                    claim.run(variant, np.random.default_rng(seed))
            seen.append(list(drawn))
            kinds |= {type(noise) for noise, _ in drawn}
        for one, other in product(seen, repeat=2):
            loss = 0.0
            for (noise, value), (_, moved) in zip(one, other, strict=True):
                loss += loss_of(noise, value, moved, claim.delta)
            largest = max(largest, loss)
    pure = DiscreteGaussian not in kinds
    names = sorted("bit" if kind is type(None) else kind.__name__ for kind in kinds)
    return largest + pure * math.log1p(-claim.delta), ", ".join(names)


def reported(protocol: Any) -> float:
    """The largest loss of a report between two rankings, of the first thousand assignments.

    Digits are independent. Each distinguishes two rankings by the ratio of its weights if they
    favour other values.
    """
    ranks = np.array(list(permutations(range(1, len(protocol.items) + 1))))
    ratio = Fraction(protocol.response.favoured_weight, protocol.response.other_weight)
    most = 0
    for assignment in range(min(protocol.assignments, 1000)):
        favoured = protocol.favoured_answers(ranks, np.full(len(ranks), assignment))
        differ = (favoured[:, None] != favoured[None, :]).any(axis=3).sum(axis=2)
        most = max(most, int(differ.max()))
    return math.log(ratio**most)


# --- losses that are measured ---


def vector(release: Any) -> np.ndarray:
    """The content of a release as one vector of numbers; an order as the position of each item."""
    values = [np.asarray(value, dtype=float).ravel() for value in release.values.values()]
    return np.concatenate(values)


def observed(rng: np.random.Generator, claim: Claim) -> list[np.ndarray]:
    """Both neighbours, the first two variants, each released once."""
    seeds = rng.spawn(2)
    pairs = zip(claim.variants[:2], seeds, strict=True)
    return [vector(claim.run(variant, seed)) for variant, seed in pairs]


def bound_of(one: np.ndarray, other: np.ndarray, delta: float) -> float:
    """A lower 99% bound of epsilon, from the runs of two neighbours, shape (runs, numbers)."""
    half = len(one) // 2
    spread = np.sqrt(one[:half].var(axis=0) + other[:half].var(axis=0)) + 1e-12
    direction = (one[:half].mean(axis=0) - other[:half].mean(axis=0)) / spread**2
    scores = [sample @ direction for sample in (one, other)]
    cuts = np.unique(np.concatenate([score[:half] for score in scores]))
    cuts = cuts[np.linspace(0, len(cuts) - 1, min(len(cuts), 200)).astype(int)]
    choices = [(cut, turned) for cut in cuts for turned in (False, True)]
    event = max(choices, key=lambda choice: _bound(scores, choice, slice(half), delta))
    return max(0.0, _bound(scores, event, slice(half, None), delta))


def _bound(
    scores: Sequence[np.ndarray], event: tuple[float, bool], part: slice, delta: float
) -> float:
    """The bound for an event: a score of at least, or below, a number."""
    cut, turned = event
    likely, rare = (scores[turned][part], scores[not turned][part])
    hits, misses = (int(((score >= cut) != turned).sum()) for score in (likely, rare))
    low = beta.ppf(LEVEL / 2, hits, len(likely) - hits + 1) if hits else 0.0
    high = beta.ppf(1 - LEVEL / 2, misses + 1, len(rare) - misses) if misses < len(rare) else 1.0
    return math.log((low - delta) / high) if low > delta else -math.inf
