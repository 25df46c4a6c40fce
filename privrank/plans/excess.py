"""Which release of rankings loses least: predicted from public numbers, for each there is."""

from __future__ import annotations

import math
from functools import cache
from typing import Literal

from privrank.privacy.budget import pure_epsilon
from privrank.privacy.gaussian import gaussian_scale, integer_scale
from privrank.privacy.knorm import permutohedron_moment
from privrank.privacy.sensitivity import RankingSensitivity
from privrank.release.survey import Sample

__all__ = [
    "PAIR_KINDS",
    "Kind",
    "choose",
    "excess_of",
    "predicted_excesses",
    "totals_scale",
    "unit_steps",
]

Kind = Literal["cube pairs", "Gaussian pairs", "Laplace pairs", "K-norm totals", "Gaussian totals"]

PAIR_KINDS: tuple[Kind, ...] = ("cube pairs", "Gaussian pairs")
TIE, TIE_SHARE = 2e-4, 0.05
"""Predicted excesses that differ by less than .02 % of all pairs, or by less than a twentieth, tie.
Borda's order loses more than that by not being Kemeny's where majorities are not those of scores,
at any epsilon (.04 % on the SUSHI survey), and simulated losses are far below predicted ones."""

AHEAD = 5e-3
"""Predicted excess by which Gaussian totals have to be ahead of pairs with at most 1.22 times their
noise, (3 m / (2 (m + 1)))^(1/2). Where that is little, Kemeny's order of shrunken pairs loses as
much on average over models: more where rankings agree little, far less where they agree much, which
no public number tells. Where it is more, noise hides whether they agree
(docs/validation/aggregation_orders.md)."""

LARGEST_ROWS = 10
"""Rankings per respondent: their weights are whole numbers of 1 / lcm(1..max_rows), 1 / 2520."""


def unit_steps(sample: Sample, partial: bool = False) -> int:
    """Return the lattice steps of one unit: lcm(1..max_rows) for respondents, 1 for rows.

    Twice as many if rankings may be partial, as half votes are whole numbers of them.
    """
    halves = 2 if partial else 1
    if sample.unit == "row":
        return halves
    if sample.max_rows > LARGEST_ROWS:
        raise ValueError(
            f"max_rows must be at most {LARGEST_ROWS} for rank aggregation, got "
            f"{sample.max_rows}: average over fewer rankings of each respondent, drawn at random."
        )
    return halves * math.lcm(*range(1, sample.max_rows + 1))


def totals_scale(items: int, epsilon: float, delta: float, steps: int) -> tuple[float, int]:
    """Return the scale of Gaussian noise in Borda totals, and their fineness.

    Notes
    -----
    **Privacy.** A unit adds to the totals `steps` times a point of the permutohedron, and their sum
    is a whole number of steps. Two points of it are at most as far apart as two opposite rankings,
    whose squared distance is m (m^2 - 1) / 3
    (:class:`privrank.privacy.sensitivity.RankingSensitivity`). So the totals are a vector of m
    whole numbers with l2 sensitivity steps (m (m^2 - 1) / 3)^(1/2), as
    :func:`privrank.privacy.gaussian.integer_scale` needs it, and nothing else about their lattice
    enters.
    """
    return integer_scale(epsilon, delta, steps * RankingSensitivity(items).borda_l2, items)


def predicted_excesses(
    sample: Sample, epsilon: float, delta: float, share: float = 0.0
) -> dict[Kind, float]:
    """Return the predicted excess of each release that an order can be made of.

    As a share of all pairs, where `share` of the budget is for the Kemeny score; inf for Gaussian
    noise without a delta.

    Notes
    -----
    **Statistic.** A majority of 1/2 + d is turned by normal noise of standard deviation s with
    probability Phi(-d / s), at a loss of 2 d, which is at most 0.34 s. An order by scores turns the
    pair when the noise of its difference of two Borda scores is larger than that difference. With
    mean fractions 1/2 + d_i of all items, that is m d, so s is the standard deviation of that noise
    over n m. It is an upper guide: most pairs are not at the worst d.
    """
    m, sensitivity = len(sample.items), RankingSensitivity(len(sample.items))
    pure, main = pure_epsilon(epsilon, delta) * (1.0 - share), epsilon * (1.0 - share)
    pairs = sensitivity.pairs_l1
    knorm = 4.0 * permutohedron_moment(m) * (m + 1)
    variances: dict[Kind, float] = {
        "cube pairs": 2 * m * (pairs + 1) * (pairs + 2) / 3 / pure**2,
        "Laplace pairs": 4 * m * pairs**2 / pure**2,
        "Gaussian pairs": 2 * m * _gaussian(main, delta, sensitivity.pairs_l2),
        "K-norm totals": 2 * m / (m - 1) * knorm / pure**2,
        "Gaussian totals": 2 * _gaussian(main, delta, sensitivity.borda_l2),
    }
    return {kind: excess_of(variance, sample) for kind, variance in variances.items()}


@cache
def _gaussian(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the variance of Gaussian noise; inf without delta."""
    return gaussian_scale(epsilon, delta, sensitivity) ** 2 if delta > 0.0 else math.inf


def excess_of(variance: float, sample: Sample) -> float:
    """Return the excess predicted from the variance of the noise in a difference of two totals."""
    return 0.34 * math.sqrt(variance) / (sample.nobs * len(sample.items))


def choose(kinds: tuple[Kind, ...], excesses: dict[Kind, float]) -> Kind:
    """Return the kind of least predicted excess; pairs where they tie with it.

    With Gaussian totals they tie up to `AHEAD`, with all others up to `TIE` and `TIE_SHARE`.
    """
    others = [kind for kind in kinds if kind != "Gaussian totals"]
    least = min(excesses[kind] for kind in others)
    most = max(least + TIE, (1 + TIE_SHARE) * least)
    if "Gaussian totals" in kinds:
        most = min(most, excesses["Gaussian totals"] + AHEAD)
    near = [kind for kind in others if kind in PAIR_KINDS and excesses[kind] < most]
    return min(near or kinds, key=lambda kind: excesses[kind])
