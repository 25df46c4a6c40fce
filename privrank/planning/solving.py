"""Find the number at which a simulated, or exact, curve meets its target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

__all__ = ["FEWEST", "Measure", "Search", "Solved", "solve"]

Measure = Callable[[float, int], tuple[float, float]]
"""Maps a number and how many replicates to the value there and its standard error, 0 if exact."""

FEWEST = 20
"""Replicates of a first look at least."""

_LOOK = 8
"""Of so many replicates a first look takes one."""

_SHORT, _LONG, _BRACKET, _NEAR = 1.5, 4.0, 2.0, 1.6
"""By which factors a bracket is looked for, how narrow it gets, and how far a step then goes."""

_ROUNDS, _HALVINGS = 5, 60
"""Points that take all replicates at most, and points of an exact curve."""

_STRAIGHT, _FLATTEST, _LEVEL = 1.5, 0.1, 0.01
"""Scores between which a curve is close to a line, the least slope of one, and that of a chord."""

_EDGE = 1e-4
"""Probabilities nearer to 0 or 1 are taken for this, where the probit would be lost in noise."""


@dataclass(frozen=True, slots=True)
class Solved:
    """Where a curve meets its target.

    Parameters
    ----------
    at : float
        The number.
    error : float
        Its Monte Carlo standard error, 0 where the curve is exact.
    value : float
        The value of the curve there.
    """

    at: float
    error: float
    value: float


Point = tuple[float, float, float, float]
"""Logarithm of a number, score, value and the error of that."""


@dataclass(slots=True)
class Search:
    """A curve on the scales where it is close to a straight line.

    The logarithm of the number against the probit of a probability, or against the logarithm of a
    positive value.

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
    exact: bool = field(default=False, init=False)
    seen: list[Point] = field(default_factory=list, init=False, repr=False)

    def score(self, value: float) -> float:
        """Return a value on the straight scale, less that of the target; rising."""
        return self._straight(value) - self._straight(self.target)

    def _straight(self, value: float) -> float:
        if self.probability:
            found = float(ndtri(min(max(value, _EDGE), 1 - _EDGE)))
        else:
            found = math.log(max(value, 1e-300))
        return found if self.rising else -found

    def slope(self, value: float) -> float:
        """Return the derivative of the straight scale in the value."""
        if not self.probability:
            return 1.0 / max(value, 1e-300)
        z = float(ndtri(min(max(value, _EDGE), 1 - _EDGE)))
        return math.sqrt(2 * math.pi) * math.exp(0.5 * z * z)

    def look(self, x: float, replicates: int) -> Point:
        """Return the logarithm of x, its score, its value and the error of that."""
        x = float(round(x)) if self.whole else x
        value, error = self.measure(x, replicates)
        self.exact = error == 0.0
        self.seen.append((math.log(x), self.score(value), value, error))
        return self.seen[-1]

    def steepness(self) -> float:
        """Return the slope of the line through what was seen near the target, by least squares."""
        near = [point for point in self.seen if abs(point[1]) <= _STRAIGHT]
        x, score, value, error = np.array(near or self.seen[-2:]).T
        # exact values among simulated ones are as good as the best of these
        error = np.where(error > 0, error, error[error > 0].min() if error.any() else 1.0)
        weight = 1.0 / (error * [self.slope(float(each)) for each in value]) ** 2
        away = x - np.average(x, weights=weight)
        square = float(weight @ away**2)
        return float(weight @ (away * score)) / square if square > 0 else 0.0

    def chord(self, point: Point) -> float:
        """Return the slope from a point of all replicates to a neighbour, no less than `_LEVEL`.

        A line through points that are far away may be steeper than a curve that levels off.
        """
        x = math.exp(point[0])
        there = x / _NEAR if x >= _NEAR * max(self.least, float(self.whole) * 2.0) else x * _NEAR
        other = self.look(there, self.replicates)
        return max((point[1] - other[1]) / (point[0] - other[0]), _LEVEL)


def solve(search: Search, start: float) -> Solved | None:
    """Return the least number at which the curve reaches its target; None if there is none.

    Notes
    -----
    An eighth of the replicates brackets the number, by factors between 1.5 and 4 that grow with
    the distance from the target, and by secants on the straight scale within a factor of 2. All
    replicates are then taken at the crossing so found and at the next ones, at most a factor of 1.6
    away, until the value is within a standard error of the target; what is left is one step
    along the line. The error of the answer is that of the value over the slope there, that of the
    line or of the chord to a neighbour, whichever is less. An exact curve is followed until two
    neighbours, whole numbers or within 1e-6, enclose the target.
    """
    bracket = _bracket(search, min(max(start, search.least), search.most))
    if bracket is None:
        return None
    low, high = bracket
    if low is None:
        return _at_least(search, high[2])
    return _closed(search, low, high) if search.exact else _refined(search, low, high)


def _at_least(search: Search, value: float) -> Solved:
    """Return the least number, where the curve has this value, with its error if simulated."""
    if search.exact:
        return Solved(search.least, 0.0, value)
    point = search.look(search.least, search.replicates)
    error = search.least * point[3] * search.slope(point[2]) / search.chord(point)
    return Solved(search.least, error, point[2])


def _few(search: Search) -> int:
    return min(max(FEWEST, search.replicates // _LOOK), search.replicates)


def _bracket(search: Search, start: float) -> tuple[Point | None, Point] | None:
    """Return a point below the target and one that reaches it, the first None at the least."""
    few = _few(search)
    point = search.look(start, few)
    upward = point[1] < 0
    while True:
        at = math.exp(point[0])
        if upward and at >= search.most * (1 - 1e-12):
            return None
        if not upward and at <= search.least * (1 + 1e-12):
            return None, point
        factor = min(max(math.exp(abs(point[1])), _SHORT), _LONG)
        if search.whole:  # the next whole number at least
            factor = max(factor, (at + 1.0) / at)
        at = at * factor if upward else at / factor
        last, point = point, search.look(min(max(at, search.least), search.most), few)
        if (point[1] < 0) != upward:
            return (last, point) if upward else (point, last)


def _between(low: Point, high: Point) -> float:
    """Return where the line through two points crosses the target, well inside them."""
    share = -low[1] / (high[1] - low[1])
    return math.exp(low[0] + min(max(share, 0.1), 0.9) * (high[0] - low[0]))


def _closed(search: Search, low: Point, high: Point) -> Solved:
    """Return the crossing of an exact curve."""
    for turn in range(_HALVINGS):
        apart = math.exp(high[0]) - math.exp(low[0])
        if apart <= (1.5 if search.whole else 1e-6 * math.exp(high[0])):
            break
        middle = math.exp(0.5 * (low[0] + high[0])) if turn % 2 else _between(low, high)
        if search.whole:
            first, last = round(math.exp(low[0])) + 1, round(math.exp(high[0])) - 1
            middle = min(max(round(middle), first), last)
        point = search.look(middle, search.replicates)
        low, high = (point, high) if point[1] < 0 else (low, point)
    at = math.exp(high[0])
    return Solved(float(round(at)) if search.whole else at, 0.0, high[2])


def _refined(search: Search, low: Point, high: Point) -> Solved | None:
    """Return the crossing of a simulated curve, with its error; None if it levels off below."""
    few = _few(search)
    for _ in range(_ROUNDS):
        if high[0] - low[0] <= math.log(_BRACKET):
            break
        point = search.look(_between(low, high), few)
        if point[0] in (low[0], high[0]):
            break
        low, high = (point, high) if point[1] < 0 else (low, point)
    at, before = _between(low, high), len(search.seen)
    for _ in range(_ROUNDS):
        search.look(at, search.replicates)
        full = search.seen[before:]
        nearest = _, _, value, error = min(full, key=lambda one: abs(one[1]))
        at, slope = _along(search, nearest)
        known = search.whole and round(at) in {round(math.exp(one[0])) for one in full}
        if known or abs(value - search.target) <= error:
            break
    chord = search.chord(nearest)
    level = chord < _FLATTEST and max(one[1] for one in search.seen[before:]) < 0
    # a level curve may stay below the target
    if level and search.look(search.most, search.replicates)[1] < 0:
        return None
    at, slope = _along(search, nearest)
    found = float(math.ceil(at - 1e-9)) if search.whole else at
    return Solved(found, at * error * search.slope(value) / min(slope, chord), search.target)


def _along(search: Search, point: Point) -> tuple[float, float]:
    """Return where the line through what was seen crosses the target, from a point, and its slope.

    At most a factor of 1.6 away.
    """
    slope, most = max(search.steepness(), _FLATTEST), math.log(_NEAR)
    at = math.exp(point[0] + min(max(-point[1] / slope, -most), most))
    return min(max(at, search.least), search.most), slope
