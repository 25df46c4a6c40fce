"""Whether a fit will identify its worths, from public numbers, before anything is spent."""

from __future__ import annotations

import math

import numpy as np

from privrank.bradley_terry.paircounts import MAX_ERROR, parts_of
from privrank.hypotheses.nulls import public_generator
from privrank.release import names
from privrank.release.plan import Plan, equivalent_variance
from privrank.release.survey import Design
from privrank.util.arrays import FloatArray
from privrank.util.checks import warn

_DRAWS = 100
_FIRST = 10
"""Releases that are simulated, and how many of them decide where all of these agree."""

_CLEAR = 12.0
"""Comparisons of an item over the standard deviation of their noise that leave no doubt."""

_RARE = 0.05
"""Probability of identifying less than half of the worths above which a fit warns."""


def check_will_identify(design: Design, plan: Plan, *, allowed: bool) -> None:
    """Refuse a fit that will probably leave most worths unidentified; warn where it may.

    Raises
    ------
    ValueError
        If less than half of the worths are identified with a probability above one half, unless
        that is `allowed`.
    """
    failing = probably_unidentified(design, plan)
    if failing <= _RARE:
        return
    if failing <= 0.5 or allowed:
        warn(
            f"With probability {failing:.2f}, by public numbers, less than half of the worths "
            "will be identified: the comparison counts of the items are close to their noise "
            "level."
        )
        return
    smaller = "a smaller max_rows, " if design.max_rows > 1 else ""
    other = "" if design.matched else "pair_counts='proportional' if opponents met at random, "
    raise ValueError(
        "By public numbers less than half of the worths would be identified, because the numbers "
        f"of comparisons of {len(design.items)} items do not exceed their noise at epsilon = "
        f"{plan.epsilon:g}. Use {other}{smaller}a larger epsilon, a public design or PrivateTopK. "
        "With allow_unidentified=True the fit spends epsilon anyway."
    )


def probably_unidentified(design: Design, plan: Plan) -> float:
    """Return the probability that a fit identifies less than half of the worths.

    Notes
    -----
    **Statistic.** Numbers of comparisons are simulated with the noise of the plan, all pairs asked
    for equally often, and read like the numbers of a release
    (:func:`privrank.bradley_terry.paircounts.parts_of`). An item in a part of its own is not
    identified. Where some items are compared more often than others, more of them will not be.
    """
    variance = _count_variance(design, plan)
    if variance == 0.0:
        return 0.0
    m = len(design.items)
    expected = design.nominal_total / design.sensitivity.pairs
    noise = variance if design.matched else (m - 1) * variance
    if (m - 1) * expected > _CLEAR * math.sqrt(noise + (m - 1) * expected):
        return 0.0
    rng = public_generator("identified", m)
    failed = np.zeros(_DRAWS, dtype=bool)
    for draw in range(_DRAWS):
        failed[draw] = _alone(design, expected, variance, rng) > 0.5
        if draw + 1 == _FIRST and failed[:_FIRST].all():
            return 1.0
    return float(failed.mean())


def _count_variance(design: Design, plan: Plan) -> float:
    """Return the variance of the noise of a pair's comparisons, or of an item's if these are all.

    0 where their numbers are public.
    """
    if design.pairs is not None and not design.matched:
        return 0.0
    # a pair's comparisons are two cells of a win matrix, an item's its wins and its losses
    for name, numbers in ((names.PAIR_COUNTS, 1), (names.WINS, 2), (names.SIDES, 2)):
        if (part := plan.parts.get(name)) is not None and part.noise is not None:
            # wins and losses are one vector; other noise has independent entries
            return numbers * part.step**2 * equivalent_variance(part.noise, 2 * len(design.items))
    return 0.0


def _alone(design: Design, expected: float, variance: float, rng: np.random.Generator) -> float:
    """Return the share of items that one simulated release leaves alone."""
    m = len(design.items)
    pairs = design.sensitivity.pairs
    deviation = math.sqrt(variance)
    if design.matched:
        noisy = rng.normal((m - 1) * expected, math.sqrt(variance + (m - 1) * expected), m)
        return float((deviation > MAX_ERROR * np.maximum(noisy, 1.0)).mean())
    noisy = _asked(design, expected, pairs, rng) + rng.normal(0.0, deviation, pairs)
    if (member := parts_of(noisy, variance, m)) is None:
        return 0.0
    return float((np.bincount(member)[member] == 1).mean())


def _asked(design: Design, expected: float, pairs: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each pair was compared, if pairs were asked for at random."""
    if design.distinct_pairs:
        answered = min(design.sensitivity.effective_rows / pairs, 1.0)
        return np.asarray(rng.binomial(design.nobs, answered, pairs), dtype=np.float64)
    return rng.poisson(expected, pairs).astype(np.float64)
