"""Find the number at which a simulated, or exact, curve meets its target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import ndtri

from privrank.util.solvers import bisect

Measure = Callable[[float, int], tuple[float, float]]
"""Maps a number and how many replicates to the value there and its standard error, 0 if exact."""

FEWEST = 20
LOOK = 4
"""Replicates of a first look at least, and of how many in all it takes one."""

SHORT = 1.5
LONG = 4.0
"""Factors by which a bracket is looked for."""

MIN_EFFECT = 2.0**-20
"""Share of the first effect tried below which none is looked for."""

_MAX_STEPS = 4
"""Steps from where the line crosses the target to where the curve reaches it, at most."""

EDGE = 1e-4
"""Probabilities closer to 0 or 1 are taken for this, where the probit would be lost in noise."""


@dataclass(frozen=True, slots=True)
class Solved:
    """Where a curve meets its target.

    Parameters
    ----------
    at : float
        The number.
    error : float
        Its Monte Carlo standard error, 0 where the curve is exact.
    """

    at: float
    error: float


@dataclass(frozen=True, slots=True)
class _Look:
    """The logarithm of a number, the score of its value, and the standard error of the score."""

    log: float
    score: float
    error: float


@dataclass(frozen=True, slots=True)
class Search:
    """A curve on the scales where it is close to a straight line.

    The logarithm of the number against the score: the probit of a probability, or the logarithm of
    a positive value, less that of the target, so that it rises through 0.

    Parameters
    ----------
    measure : Measure
        The curve. It takes the same random numbers everywhere, so that its differences are those of
        the curve.
    target : float
        The value that is looked for.
    least, most : float
        The range of the number; positive.
    replicates : int
        Replicates of the final answer.
    whole : bool
        Whether it is a whole number, which is then rounded up to the target.
    rising : bool
        Whether the curve rises; else its values fall to the target.
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
        """Return a value on the straight scale, and the derivative of that scale."""
        if self.probability:
            probit = float(ndtri(min(max(value, EDGE), 1.0 - EDGE)))
            return probit, math.sqrt(2.0 * math.pi) * math.exp(0.5 * probit * probit)
        return math.log(max(value, 1e-300)), 1.0 / max(value, 1e-300)

    def look(self, log: float, replicates: int) -> _Look:
        """Return what there is at the number with this logarithm, within the range."""
        number = min(max(math.exp(log), self.least), self.most)
        number = float(round(number)) if self.whole else number
        value, error = self.measure(number, replicates)
        # delta method: the error of the score is that of the value times the slope of the scale
        scaled, slope = self._scaled(value)
        score = (scaled - self._scaled(self.target)[0]) * (1.0 if self.rising else -1.0)
        return _Look(math.log(number), score, error * slope)


def least_number(search: Search, start: float) -> Solved | None:
    """Return the least number at which the curve reaches its target; None if there is none.

    Notes
    -----
    A quarter of the replicates brackets the number, by factors between 1.5 and 4 that grow with the
    distance from the target. From where the line through it crosses the target all replicates
    bracket it again, and are then taken where that line crosses. What is left is one step along the
    line, within the bracket, and further where the value there falls short. The error of the answer
    is that of the score over the slope.
    An exact curve is followed until two neighbours, whole numbers or within 1e-6, enclose the
    target.
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
    """Return a point below the target and one that reaches it, the first None at the least."""
    look = search.look(log, few)
    upward = look.score < 0
    while True:
        if upward and look.log >= math.log(search.most) - 1e-12:
            return None
        if not upward and look.log <= math.log(search.least) + 1e-12:
            return None, look
        step = math.log(min(max(math.exp(abs(look.score)), SHORT), LONG))
        if search.whole:  # the next whole number at least
            step = max(step, math.log1p(math.exp(-look.log)))
        last = look
        look = search.look(look.log + (step if upward else -step), few)
        if (look.score < 0) != upward:
            return (last, look) if upward else (look, last)


def _closed(search: Search, low: _Look, high: _Look) -> float:
    """Return the least number at which an exact curve reaches the target, by halving."""

    def short(number: float) -> bool:
        return search.look(math.log(number), search.replicates).score < 0

    # an exact curve is monotone on the bracket, so halving is safe; whole numbers end at two
    # neighbours, of which the larger one reaches the target
    if not search.whole:
        return bisect(short, math.exp(low.log), math.exp(high.log), 60, relative=1e-6)[1]
    least = round(math.exp(low.log))
    most = round(math.exp(high.log))
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if short(middle) else (least, middle)
    return float(most)


def _refined(search: Search, low: _Look | None, high: _Look) -> Solved | None:
    """Return the crossing of a simulated curve, with its error; None if it is not reached.

    Given a bracket from few replicates, which all of them replace.
    """
    ends = _bracket(search, high.log if low is None else _crossing(low, high), search.replicates)
    if ends is None:
        return None
    low, high = ends
    if low is None:  # how steep the curve is there is not known: as if n and (1 + s) n differ by s
        return Solved(search.least, search.least * high.error)
    slope = (high.score - low.score) / (high.log - low.log)
    middle = search.look(_crossing(low, high), search.replicates)
    low, high = (middle, high) if middle.score < 0 else (low, middle)
    at = min(max(middle.log - middle.score / slope, low.log), high.log)
    answer = high
    for _ in range(_MAX_STEPS):
        # the answer itself has to reach the target: where it falls short, twice as far on
        whole = math.log(math.ceil(math.exp(at) - 1e-9))
        nearer = search.look(whole if search.whole else at, search.replicates)
        if nearer.score >= 0:
            answer = nearer
            break
        at = min(nearer.log - 2.0 * nearer.score / slope, high.log)
    number = math.exp(answer.log)
    return Solved(float(round(number)) if search.whole else number, number * middle.error / slope)


def _crossing(low: _Look, high: _Look) -> float:
    """Return where the line through two points crosses the target, well inside of them."""
    share = -low.score / (high.score - low.score)
    return low.log + min(max(share, 0.1), 0.9) * (high.log - low.log)


def detectable(
    measure: Measure, target: float, replicates: int, *, start: float, most: float
) -> Solved | None:
    """Return the smallest effect at which the power is `target`; None if none to `most` has it."""
    return least_number(Search(measure, target, MIN_EFFECT * start, most, replicates), start)
