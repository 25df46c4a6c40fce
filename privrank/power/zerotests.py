"""What simulated fits say of one difference: whether it is told from zero, and its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrank.bradley_terry.errors import Components, NoisyErrors
from privrank.bradley_terry.inversion import zero_tests
from privrank.power.fits import Fits
from privrank.util.solvers import pseudo_inverse

__all__ = ["ZeroTest", "ZeroTests", "median_of", "standard_error", "zero_test"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_HALVINGS = 40
"""Steps of the search for a critical value."""

_GROUPS = 20
"""Groups of fits that are left out in turn, for the Monte Carlo error."""

_FOLLOWS, _RISES = (0.02, 1.5), (-0.9, 0.9)
"""Ranges of the slopes of a statistic and of its critical value."""


def _first_two(items: int) -> FloatArray:
    """Return the contrast of the first two items, shape (1, items)."""
    contrast = np.zeros((1, items))
    contrast[0, :2] = 1.0, -1.0
    return contrast


def standard_error(fits: Fits, number: int) -> float:
    """Return the standard error of the difference of the first two that a simulated fit prints."""
    contrast = _first_two(len(fits.worths))
    return math.sqrt((contrast @ fits.fit(number).inference.errors.total @ contrast.T).item())


def median_of(values: Sequence[float]) -> tuple[float, float]:
    """Return the median and its standard error.

    A quarter of what lies between the values of the ranks two standard deviations, the root of
    their number, to either side.
    """
    ranked, n = np.sort(values), len(values)
    ranks = 0.5 * (n - 1) + math.sqrt(n) * np.array([-1.0, 1.0])
    low, high = np.interp(ranks, np.arange(n), ranked)
    return float(np.median(ranked)), 0.25 * float(high - low)


@dataclass(frozen=True, slots=True, eq=False)
class ZeroTest:
    """The test of a simulated fit that the first two items are equally good.

    Parameters
    ----------
    statistic, critical : float
        The statistic of the test, and the size from which it is rejected.
    moved : float
        By how much the answers and the noise have moved the statistic, to first order.
    moves : Components
        The distribution of that, one row.
    """

    statistic: float
    critical: float
    moved: float
    moves: Components


def zero_test(fits: Fits, alpha: float, number: int) -> ZeroTest:
    """Return the test at this level in a simulated fit."""
    fit = fits.fit(number)
    contrast = _first_two(len(fits.worths))
    statistic, weights, errors, null = zero_tests(fit.inference, contrast)
    moved = float((weights @ fit.moved)[0])
    critical = _critical(errors, null, alpha)
    return ZeroTest(float(statistic[0]), critical, moved, fit.moves.components(weights))


def _critical(errors: NoisyErrors, null: Components, alpha: float) -> float:
    """Return the size from which a statistic with these errors is rejected."""
    low, high = np.zeros(1), 20.0 * null.total * (1.0 - ndtri(0.5 * alpha))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if errors.tail(middle, null)[0] > alpha else (low, middle)
    return float(high[0])


@dataclass(frozen=True, slots=True, eq=False)
class ZeroTests:
    """The tests of many simulated fits, in units of the standard deviation of their moves.

    Parameters
    ----------
    statistic, critical, moved : ndarray, shape (fits,)
        As of each :class:`ZeroTest`.
    moves : Components
        Their distributions, one row each; in units of their own.

    Notes
    -----
    **Statistic.** A test rejects where |s| > h. With s = u + g, g what answers and noise add along
    the contrast, it would take hundreds of fits to see how probable that is from how many reject.
    But the distribution of g is known, and u and h depend on it little. So with all else as in a
    simulated fit, another g would give the statistic s' = u + c g and the critical value
    h + d (|s'| - |s|), with slopes by linear regressions over all fits: c that of s on g, and d / h
    that of log h on |s| and u. Without noise c = 1 and d = 0; much noise shrinks fits and raises
    what they take for errors. The fit would reject where |u + c g| > (h - d |s|) / (1 - d), which
    has a probability, and the power is the mean of these. Where noise is so large that statistics
    do not follow it, c is near 0 and the mean is the share of fits that reject. Its error is that
    of the jackknife over groups of fits, which counts that of the slopes.
    """

    statistic: FloatArray
    critical: FloatArray
    moved: FloatArray
    moves: Components

    @classmethod
    def of(cls, tests: Sequence[ZeroTest]) -> Self:
        """Gather tests."""
        parts = [test.moves for test in tests]
        moves = Components(
            np.concatenate([part.variance for part in parts]),
            np.concatenate([part.side for part in parts]),
            np.concatenate([part.noise for part in parts]),
            parts[0].share,
        )
        rows = np.array([(test.statistic, test.critical, test.moved) for test in tests])
        statistic, critical, moved = rows.T / moves.total
        return cls(statistic, critical, moved, moves)

    def power(self) -> tuple[float, float]:
        """Return the probability that a test rejects, and its Monte Carlo standard error."""
        n = len(self.statistic)
        group = np.arange(n) % min(_GROUPS, n)
        kept = [group != each for each in range(group.max() + 1)]
        left = np.array([self._rejected(some) for some in kept])
        square = (len(left) - 1) * np.square(left - left.mean()).mean()
        return self._rejected(np.ones(n, dtype=bool)), math.sqrt(square) or 1.0 / (n + 1)

    def _rejected(self, some: BoolArray) -> float:
        """Return the probability, from some of the fits."""
        s, h, g = self.statistic[some], self.critical[some], self.moved[some]
        follows = np.clip(_slope(s, g), *_FOLLOWS)
        rest = s - follows * g
        rises = np.clip(_slope(np.log(h), np.abs(s), rest) * h, *_RISES)
        bound = np.maximum((h - rises * np.abs(s)) / (1.0 - rises), 0.0)
        every = self.moves
        moves = Components(every.variance[some], every.side[some], every.noise[some], every.share)
        unit = moves.total / follows
        tails = moves.tail(unit * (bound - rest)) + moves.tail(unit * (bound + rest))
        return float(0.5 * tails.mean())


def _slope(y: FloatArray, *x: FloatArray) -> float:
    """Return the slope of the first x in the least squares line of y in all of them."""
    columns = np.column_stack((*x, np.ones(len(y))))
    return float((pseudo_inverse(columns.T @ columns) @ (columns.T @ y))[0])
