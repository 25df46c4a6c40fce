"""Find the number at which a simulated or exact curve reaches its target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import ndtri

from privrank.util.solvers import bisect

Measure = Callable[[float, int], tuple[float, float]]
"""Maps a number and a number of replicates to the value and its standard error, 0 if exact."""

FEWEST = 20
LOOK = 4
"""Fewest replicates of a first look, and the ratio of final to first replicates."""

SHORT = 1.5
LONG = 4.0
"""Smallest and largest factor between the points of a search for a bracket."""

MIN_EFFECT = 2.0**-20
"""Smallest effect that is searched, relative to the starting value."""

_MAX_STEPS = 4
"""Largest number of steps from the crossing of the line to a point that reaches the target."""

EDGE = 1e-4
"""Probabilities closer to 0 or 1 are replaced by this, where probits would be lost in noise."""


@dataclass(frozen=True, slots=True)
class Solved:
    """The point at which a curve reaches its target.

    Parameters
    ----------
    at : float
        The number.
    error : float
        Its Monte Carlo standard error, 0 if the curve is exact.
    """

    at: float
    error: float


@dataclass(frozen=True, slots=True)
class _Look:
    """The logarithm of a number, the score of its value, and the score's standard error."""

    log: float
    score: float
    error: float


@dataclass(frozen=True, slots=True)
class Search:
    """A curve on scales on which it is approximately linear.

    The abscissa is the logarithm of the number. The ordinate is the score: the probit of a
    probability, or the logarithm of a positive value, minus the score of the target. The curve
    increases through 0.

    Parameters
    ----------
    measure : Measure
        The curve. It uses the same random numbers everywhere, so differences of its values are
        differences of the curve.
    target : float
        The value that the curve must reach.
    least, most : float
        The range of the number; positive.
    replicates : int
        Replicates of the final answer.
    whole : bool
        Whether the number is whole; it is then rounded up to reach the target.
    rising : bool
        Whether the curve increases to the target; if not, it decreases to the target.
    probability : bool
        Whether values are probabilities.
    """

    measure: Measure
    target: float
    least: float
    most: float
    replicates: int
    whole: bool = False
    rising: bool = True
    probability: bool = True

    def _scaled(self, value: float) -> tuple[float, float]:
        """Return a value on the linear scale, and the derivative of this scale."""
        if self.probability:
            probit = float(ndtri(min(max(value, EDGE), 1.0 - EDGE)))
            return probit, math.sqrt(2.0 * math.pi) * math.exp(0.5 * probit * probit)
        return math.log(max(value, 1e-300)), 1.0 / max(value, 1e-300)

    def look(self, log: float, replicates: int) -> _Look:
        """Return the point of the curve at the number with this logarithm, within the range."""
        number = min(max(math.exp(log), self.least), self.most)
        number = float(round(number)) if self.whole else number
        value, error = self.measure(number, replicates)
        # delta method: the standard error of the score is the value's times the slope
        scaled, slope = self._scaled(value)
        score = (scaled - self._scaled(self.target)[0]) * (1.0 if self.rising else -1.0)
        return _Look(math.log(number), score, error * slope)


def least_number(search: Search, start: float) -> Solved | None:
    """Return the least number at which the curve reaches its target; None if there is none.

    Notes
    -----
    A quarter of the replicates brackets the number, by factors between 1.5 and 4 that increase with
    the distance from the target. The search then starts from the crossing of the line through the
    bracket with the target: all replicates bracket the number again and evaluate the curve at the
    crossing of the new line. The answer is one step along this line, within the bracket, and
    further if the value there is below the target. Its standard error is the score's divided by the
    slope. For an exact curve the bracket is halved until two neighbours, whole numbers or within
    1e-6, enclose the target.
    """
    few = min(max(FEWEST, search.replicates // LOOK), search.replicates)
    ends = _bracket(search, math.log(min(max(start, search.least), search.most)), few)
    if ends is None:
        return None
    low, high = ends
    if high.error > 0:
        return _refined(search, low, high)
    return Solved(search.least if low is None else _closed(search, low, high), 0.0)


def _bracket(search: Search, log: float, few: int) -> tuple[_Look | None, _Look] | None:
    """Return a point below the target (None at the smallest number) and one that reaches it."""
    look = search.look(log, few)
    upward = look.score < 0
    while True:
        if upward and look.log >= math.log(search.most) - 1e-12:
            return None
        if not upward and look.log <= math.log(search.least) + 1e-12:
            return None, look
        step = math.log(min(max(math.exp(abs(look.score)), SHORT), LONG))
        if search.whole:  # at least the next whole number
            step = max(step, math.log1p(math.exp(-look.log)))
        last = look
        look = search.look(look.log + (step if upward else -step), few)
        if (look.score < 0) != upward:
            return (last, look) if upward else (look, last)


def _closed(search: Search, low: _Look, high: _Look) -> float:
    """Return the least number at which an exact curve reaches the target, by halving."""

    def short(number: float) -> bool:
        return search.look(math.log(number), search.replicates).score < 0

    # an exact curve is monotone on the bracket, so bisection is valid; of two neighbouring whole
    # numbers the larger one reaches the target
    if not search.whole:
        return bisect(short, math.exp(low.log), math.exp(high.log), 60, relative=1e-6)[1]
    least = round(math.exp(low.log))
    most = round(math.exp(high.log))
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if short(middle) else (least, middle)
    return float(most)


def _refined(search: Search, low: _Look | None, high: _Look) -> Solved | None:
    """Return the crossing of a simulated curve with its error; None if there is no crossing.

    The bracket from few replicates is replaced by one from all replicates.
    """
    ends = _bracket(search, high.log if low is None else _crossing(low, high), search.replicates)
    if ends is None:
        return None
    low, high = ends
    if low is None:  # the slope is not known here: assume that n and (1 + s) n differ by s
        return Solved(search.least, search.least * high.error)
    slope = (high.score - low.score) / (high.log - low.log)
    middle = search.look(_crossing(low, high), search.replicates)
    low, high = (middle, high) if middle.score < 0 else (low, middle)
    at = min(max(middle.log - middle.score / slope, low.log), high.log)
    answer = high
    for _ in range(_MAX_STEPS):
        # the answer must reach the target: if it does not, go twice as far
        whole = math.log(math.ceil(math.exp(at) - 1e-9))
        nearer = search.look(whole if search.whole else at, search.replicates)
        if nearer.score >= 0:
            answer = nearer
            break
        at = min(nearer.log - 2.0 * nearer.score / slope, high.log)
    number = math.exp(answer.log)
    return Solved(float(round(number)) if search.whole else number, number * middle.error / slope)


def _crossing(low: _Look, high: _Look) -> float:
    """Return the crossing of the line through two points with the target, well inside of them."""
    share = -low.score / (high.score - low.score)
    return low.log + min(max(share, 0.1), 0.9) * (high.log - low.log)


def detectable(
    measure: Measure, target: float, replicates: int, *, start: float, most: float
) -> Solved | None:
    """Return the smallest effect with power `target`; None if no effect up to `most` has it."""
    return least_number(Search(measure, target, MIN_EFFECT * start, most, replicates), start)
