"""What a test statistic is to the mechanism that releases it and to the inference after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nulls import Null

__all__ = ["RandomBit", "Statistic"]

IntArray = NDArray[np.int64]


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
        Maps the number of Monte Carlo draws wanted, where the law is not known exactly, to the
        law of the statistic under the null hypothesis.
    simulated : callable or None
        The statistic as `value` gives it but without what only privacy needs, for simulations of
        power; None when there is nothing to leave out.
    impossible : callable or None
        Maps the data, as they are before any reduction, to the number of observations that have
        probability 0 under the null hypothesis, each of which rejects it; for releases without
        noise alone. None where there can be none.
    """

    name: str
    step: float
    sensitivity: int
    value: Callable[[IntArray, tuple[int, ...]], int]
    null: Callable[[int], Null]
    simulated: Callable[[IntArray, tuple[int, ...]], int] | None = None
    impossible: Callable[[IntArray], int] | None = None


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
    dealt : bool, default False
        Whether the probability depends on the order of the rankings. They are then put in one that
        is drawn uniformly and kept secret, because a respondent can move the places of others.
    """

    name: str
    probability: Callable[[IntArray, tuple[int, ...]], float]
    dealt: bool = False
