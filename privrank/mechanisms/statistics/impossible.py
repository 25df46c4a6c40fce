"""Observations that the null hypothesis rules out: counted beside another statistic.

Z, the number of observations of probability 0, is 0 under the null, whatever n. Without noise Z > 0
rejects by itself. With noise it is one part of an omnibus.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nulls import Null
from privrank.hypotheses.nulltables import fingerprint
from privrank.hypotheses.statistic import Statistic
from privrank.mechanisms.statistics.omnibus import QUANTILE_DRAWS, drawn_null
from privrank.privacy.noise import DiscreteLaplace

__all__ = ["beside", "count"]

IntArray = NDArray[np.int64]
Order = tuple[int, ...]
Probabilities = tuple[float, ...]

OTHER_LEVEL, COUNT_LEVEL = 0.045, 0.005
"""How a level of .05 is shared by the other statistic and the count."""


def count(counts: IntArray, p: Probabilities) -> int:
    """Return Z from counts by category, given the null probabilities."""
    return int(counts[np.asarray(p) == 0.0].sum())


@dataclass(frozen=True, slots=True)
class _Beside:
    other: Statistic
    n: int
    p: Probabilities
    epsilon: float

    def value(self, counts: IntArray, order: Order) -> int:
        a, b = _quantiles(self)
        seen = count(counts, self.p)
        return max(self.other.value(counts, order) - a, self.other.sensitivity * seen - b)

    def null(self, draws: int) -> Null:
        a, b = _quantiles(self)
        law = self.other.null(draws)
        values, place = np.unique(np.maximum(law.values - a, -b), return_inverse=True)
        return Null(values, np.bincount(place, law.weights).astype(np.float64), law.draws)

    def sample(self, rng: np.random.Generator) -> IntArray:
        return rng.multinomial(self.n, np.asarray(self.p) / math.fsum(self.p))


@lru_cache(maxsize=64)
def _quantiles(both: _Beside) -> tuple[int, int]:
    """Return the quantiles of the two noisy statistics, from a public sequence of their own."""
    noise = DiscreteLaplace(both.other.sensitivity / both.epsilon)
    label = f"quantiles of the {both.other.name}"
    sizes = (both.n, len(both.p), fingerprint(both.p))
    table = drawn_null(label, sizes, both.other.value, both.sample, QUANTILE_DRAWS)
    none = Null(np.zeros(1, dtype=np.int64), np.ones(1))
    first, second = table.threshold(OTHER_LEVEL, noise), none.threshold(COUNT_LEVEL, noise)
    assert first is not None and second is not None  # both levels are above 1 / QUANTILE_DRAWS
    return first, second


def beside(other: Statistic, n: int, p: Probabilities, epsilon: float, name: str) -> Statistic:
    """Return the larger of another statistic and the count Z, each less a public quantile.

    Parameters
    ----------
    other : Statistic
        A statistic of counts by category.
    n : int
        Number of observations, at least 2.
    p : tuple of float
        Null probabilities, some of them 0.
    epsilon : float
        Pure privacy budget, finite.
    name : str
        As a summary prints it.

    Returns
    -------
    Statistic
        Its value is max(T - a, s Z - b), T the other statistic in its lattice steps and s its
        sensitivity. With L the noise that will be added, a and b are the least whole numbers with
        P(T + L >= a) <= .045 and P(L >= b) <= .005 under the null.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one observation. T moves by at most s. Z moves by at
    most 1, attained where an observation of a category that can occur becomes one that cannot, so
    s Z moves by at most s. a and b are functions of n, p and epsilon, so public: the maximum moves
    by at most s. Discrete Laplace noise of scale s / epsilon, as for T alone, gives the guarantee.

    **Null.** Z = 0, so the law is that of max(T - a, -b), from the law of T. The a comes from a
    public sequence of draws of its own, so that it is a constant to the sequence behind the
    p-values, and these are valid for every a and b.

    **Power.** P(max(T - a, -b) + L >= 0) <= .045 + .005 under the null, so at level .05 a noisy
    value of 0 or more is rejected (up to the Monte Carlo error of the two sequences), and Z with
    probability at least P(s Z + L >= b): that of the test by Z alone at level .005, which is more
    than 1/2 from Z = log(100) / epsilon on. One observation that is clear of the noise has a
    p-value of about .045, because T may reach as far; without noise Z is released apart and has
    the least p-value that there is. Measured at 300 choices with null probabilities .4, .3, .2, .1
    and 0, beside the total variation distance: where 3 % of the choices are impossible the power
    is .16, .52, .92, .99 and 1.00 at epsilon .25, .5, 1, 2 and 4, and .14 to .20 by the distance
    alone. The level is .052 or .053, as that of the distance alone is with the same table of 9,999
    draws (20,000 samples, noise integrated).
    """
    both = _Beside(other, n, p, epsilon)
    return Statistic(name, 1.0 / other.sensitivity, other.sensitivity, both.value, both.null)
