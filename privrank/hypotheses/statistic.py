"""Definitions of test statistics for the mechanisms that release them and for inference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privrank.hypotheses.interval import Distance
from privrank.hypotheses.nulls import Null, Order
from privrank.release.survey import Plan
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
"""Public conditions under which a statistic has little power or none.

``privrank.results.testnotes.BLINDNESS`` has the sentence for each."""


@immutable
@dataclass(frozen=True, slots=True)
class Statistic:
    """A whole-number statistic of a sample, with all public facts about it.

    Large values are evidence against the null hypothesis. Everything except `value` is a function
    of public numbers, so the statistic can be rebuilt from a release. The statistic does not depend
    on the order of the units.

    Parameters
    ----------
    name : str
        Name in summaries, such as ``"capped Borda norm"``.
    step : float
        Size of one lattice step in the statistic's own unit.
    sensitivity : int
        Largest change, in lattice steps, when one unit is replaced.
    value : callable
        Maps the data and a public order of the items to the statistic in lattice steps. Data are
        ranks, shape (n, m), for rankings, and counts by category, shape (k,), for choices.
    null : callable
        Maps a number of Monte Carlo draws to the distribution of the statistic under the null
        hypothesis. Draws are used only if the distribution is not known exactly; 0 draws then give
        an empty distribution.
    blind_to : tuple of Blindness
        Conditions under which the statistic has little power or none. There is no default, because
        an omitted condition would be an implicit claim of power.
    consistent : str or None
        Dotted name of the object whose docstring proves, under **Consistency.**, that the power
        against every alternative tends to 1 as n, or the smallest group, grows. None: no summary
        claims consistency.
    simulated : callable or None
        The statistic of `value` without steps that only privacy needs, for simulations of power;
        None if there are no such steps.
    impossible : callable or None
        Maps the data, before any reduction, to the number of observations that have probability 0
        under the null hypothesis. Each such observation rejects it. For releases without noise
        only; None if no observation is impossible.
    distance : bool
        Whether the statistic is the total variation distance of the shares from the null.
    randomised : bool
        Whether a public random number decides at the boundary of the rejection region, which makes
        the level exact; for statistics with an exact null distribution.
    coarse : callable or None
        Maps a number of draws to the same statistic with its public constants computed from that
        many draws, for fast searches over sample sizes; None if there are no such constants or they
        are fast to compute.
    sampler : callable or None
        Maps an effect and a generator to simulated data for `value`, if the data are not rankings
        or choices but, for example, local reports; None in all other cases.
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
            f"either the blindness or the proof of consistency."
        )


@immutable
@dataclass(frozen=True, slots=True)
class RandomBit:
    """A random decision, which is private because it is random.

    Parameters
    ----------
    name : str
        Name in summaries, such as ``"coin and ramp"``.
    probability : callable
        Maps the data and a public order of the items to the probability that the bit is 1, the
        decision to reject. Its definition proves that it is private.
    blind_to : tuple of Blindness
        See :class:`Statistic`.
    level : str or None
        Dotted name of the object whose docstring proves, under **Null.**, that the size is at
        most the level. None: no summary states a level.
    dealt : bool
        Whether the probability depends on the order of the rankings. They are then put in an order
        that is drawn uniformly and kept secret, because one respondent can move the others'
        positions.
    """

    name: str
    probability: Callable[[IntArray, Order], float]
    blind_to: tuple[Blindness, ...]
    level: str | None
    dealt: bool


def null_for(query: Statistic | RandomBit, draws: int, alpha: float) -> Null | None:
    """Return the null distribution of a statistic, or None for a random bit.

    Emits a warning, at the caller's caller, if the Monte Carlo draws are too few for the level.
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
    """A statistic of at least two samples, with the public facts about its release.

    Parameters
    ----------
    name : str
        Name in summaries.
    statistic : {"tv", "chi-square", "mallows", "kendall"}
        Total variation distance, chi-square, or a kernel distance between rankings.
    form : {"pairs", "sum", "groups", "cells"}
        How the samples are combined. ``"pairs"``: the largest distance between two samples.
        ``"sum"``: the sum of the distances of each sample from all. ``"groups"``: the larger of
        this sum and of the largest distance of a single sample. ``"cells"``, for choices: the
        larger of that, minus its expectation given the pooled counts, and of the largest cell.
    sensitivity : float
        Largest change if one unit is replaced, for every permutation of the labels.
    blind_to : tuple of Blindness
        See :class:`Statistic`.
    consistent : str or None
        See :class:`Statistic`.
    effect : float or None
        Sensitivity of the statistic of two samples if it can be released as an effect; None if not.
    distance : Distance or None
        Public facts about that statistic if it is a distance, which has an interval.
    decision : callable or None
        Maps the statistic of the data and the permuted statistics, the plan and a generator to
        one bit, which is released instead of the smoothed p-value. Its definition proves that it is
        private.
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
