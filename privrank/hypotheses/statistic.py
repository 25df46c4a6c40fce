"""What a test statistic is to the mechanism that releases it and to the inference after it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privrank.hypotheses.interval import Distance
from privrank.hypotheses.nulls import Null, Order
from privrank.release.plan import Plan
from privrank.util.arrays import FloatArray, IntArray, immutable
from privrank.util.checks import warn_few

Decision = Callable[[FloatArray, Plan, np.random.Generator | None], int]

Blindness = Literal[
    "single category",
    "many categories",
    "dense choices",
    "impossible observations",
    "even pairs",
    "equal mean ranks",
    "equal mean ranks, reports",
    "mean ranks and products of pairs",
    "first and last alone",
    "two rankings alone",
    "halfway consensus",
    "dispersion",
    "equal mean distance",
    "pairs and distance alone",
    "even public pairs",
    "one side",
    "more noise",
    "small group",
    "small group, private labels",
    "large groups",
    "only a small group",
    "rare category",
    "rare category, private labels",
    "equal pairwise fractions",
    "beyond landmarks",
    "equal margins",
]
"""Conditions, all public, in which a statistic has little power or none.

``privrank.results.testnotes.BLINDNESS`` has the sentence for each."""


_WORK = 2**23
"""Operations on words of 64 pairs of items up to which all pairs of rankings are compared."""


def most_rankings(m: int) -> int:
    """Return the most rankings of m > 6 items that are searched for all other departures."""
    return math.isqrt(_WORK // -(-m * (m - 1) // 128))


@immutable
@dataclass(frozen=True, slots=True)
class Statistic:
    """A whole-number statistic of a sample, and all that is public about it.

    Large values speak against the null hypothesis. Everything but `value` is a function of public
    numbers, so the same statistic can be rebuilt from a release. It does not depend on the order of
    the units.

    Parameters
    ----------
    name : str
        As a summary prints it, such as ``"capped Borda norm"``.
    step : float
        Size of one lattice step in the statistic's own unit.
    sensitivity : int
        Largest change, in lattice steps, when one unit is replaced.
    value : callable
        Maps the data and a public order of the items to the statistic in lattice steps. Data are
        the ranks, shape (n, m), of rankings, and the counts by category, shape (k,), of choices.
    null : callable
        Maps the number of Monte Carlo draws wanted, where the distribution is not known exactly, to
        the distribution of the statistic under the null hypothesis; 0 draws leave one that is not
        known exactly empty.
    blind_to : tuple of Blindness
        What the statistic cannot detect, or detects with little power. Has no default: what is not
        declared would be promised.
    consistent : str or None
        Dotted name of the object whose docstring proves, under **Consistency.**, that the power
        against every departure tends to 1 as n, or the smallest group, grows. None: no summary
        claims consistency.
    simulated : callable or None
        The statistic as `value` gives it but without what only privacy needs, for simulations of
        power; None when there is nothing to leave out.
    impossible : callable or None
        Maps the data, as they are before any reduction, to the number of observations that have
        probability 0 under the null hypothesis, each of which rejects it; for releases without
        noise alone. None where there can be none.
    distance : bool
        Whether it is the total variation distance of the shares from the null.
    randomised : bool
        Whether a public random number decides at the boundary of the rejection region, which gives
        the test its level exactly; for statistics with an exact null distribution.
    coarse : callable or None
        Maps a number of draws to the same statistic with its public constants from so many, for a
        first look at many sizes; None where these constants are none, or quick.
    sampler : callable or None
        Maps an effect and a generator to simulated data as `value` takes them, where these are no
        rankings or choices, such as reports; else None.
    """

    name: str
    step: float
    sensitivity: int
    value: Callable[[Any, Order], int]
    null: Callable[[int], Null]
    blind_to: tuple[Blindness, ...]
    consistent: str | None
    simulated: Callable[[Any, Order], int] | None = None
    impossible: Callable[[IntArray], int] | None = None
    distance: bool = False
    randomised: bool = False
    coarse: Callable[[int], Statistic] | None = None
    sampler: Callable[[float, np.random.Generator], Any] | None = None

    def __post_init__(self) -> None:
        check_declared(self.blind_to, self.consistent)


def check_declared(blind_to: tuple[Blindness, ...], consistent: str | None) -> None:
    """Refuse a claim of consistency next to something that cannot be detected."""
    if blind_to and consistent is not None:
        raise ValueError(
            f"consistent must be None for a statistic that is blind to {blind_to[0]!r}. Declare "
            f"the blindness or the proof of consistency."
        )


@immutable
@dataclass(frozen=True, slots=True)
class RandomBit:
    """A decision that is itself random, and private for that reason.

    Parameters
    ----------
    name : str
        As a summary prints it, such as ``"coin and ramp"``.
    probability : callable
        Maps the data and a public order of the items to the probability that the bit is 1, the
        decision to reject. The proof that it is private stands where it is defined.
    blind_to : tuple of Blindness
        As for a :class:`Statistic`.
    level : str or None
        Dotted name of the object whose docstring proves, under **Null.**, that the level is at
        most the one asked for. None: no summary states a level.
    dealt : bool
        Whether the probability depends on the order of the rankings. They are then put in one that
        is drawn uniformly and kept secret, because a respondent can move the places of others.
    """

    name: str
    probability: Callable[[IntArray, Order], float]
    blind_to: tuple[Blindness, ...]
    level: str | None
    dealt: bool


def null_for(query: Statistic | RandomBit, draws: int, alpha: float) -> Null | None:
    """Return the null distribution of a statistic, None for a bit.

    Warns the caller's caller of Monte Carlo draws too few for the level.
    """
    if isinstance(query, RandomBit):
        return None
    null = query.null(draws)
    if null.draws is not None:
        warn_few("draws", draws, alpha)
    return null


@immutable
@dataclass(frozen=True, slots=True)
class Comparison:
    """A statistic of two or more samples, and what is released of it.

    Parameters
    ----------
    name : str
        As a summary prints it.
    statistic : {"tv", "chi-square", "mallows", "kendall"}
        Total variation distance, chi-square, or the distance by a kernel of rankings.
    form : {"pairs", "sum", "groups", "cells"}
        How it takes the samples: the largest between two of them; the sum of how far each is from
        all; the larger of that and of how far any one is. For choices the larger of these, less
        what pooled counts make expect, and of the largest cell.
    sensitivity : float
        Largest change when one unit is replaced, at every re-labelling.
    blind_to : tuple of Blindness
        As for a :class:`Statistic`.
    consistent : str or None
        As for a :class:`Statistic`.
    effect : float or None
        Sensitivity of the statistic of two samples that can be released as an effect; None where
        there is none.
    distance : Distance or None
        What is public of that statistic where it is a distance, which has an interval.
    decision : callable or None
        Maps the statistic of the data and those of the re-labellings, the plan and a generator to
        one bit, released in place of the smoothed p-value. The proof that it is private stands
        where it is defined.
    """

    name: str
    statistic: Literal["tv", "chi-square", "mallows", "kendall"]
    form: Literal["pairs", "sum", "groups", "cells"]
    sensitivity: float
    blind_to: tuple[Blindness, ...]
    consistent: str | None
    effect: float | None = None
    distance: Distance | None = None
    decision: Decision | None = None

    def __post_init__(self) -> None:
        check_declared(self.blind_to, self.consistent)
