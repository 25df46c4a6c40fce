"""Closed forms of the distributions F behind links of paired comparisons, stable in both tails.

In the docstrings u = F' / F and h = (-log F)'' = u^2 - F'' / F.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfcx, expit, log_expit, log_ndtr, ndtr

__all__ = [
    "FARTHEST",
    "GAUSS",
    "LEAST_TAIL",
    "LOGIT_FORMS",
    "PROBIT_FORMS",
    "Antiderivatives",
    "Forms",
    "Function",
    "logit_slope",
    "probit_slope",
]

FloatArray = NDArray[np.float64]
Function = Callable[[FloatArray], FloatArray]

FARTHEST = math.exp(-28.0)
"""Chance of an upset below which a contrast counts as infinite.

A finite fit has expected losses of at least half a win on each side of any cut; n exp(-28) falls
short of that for every n below 10^11.
"""

GAUSS = np.polynomial.legendre.leggauss(10)
"""Nodes and weights of Gauss's rule for an integral over [-1, 1]."""

LEAST_TAIL = 1e-290
"""Chances below this are no longer told apart; -log F goes on as a straight line there."""


@dataclass(frozen=True, slots=True)
class Forms:
    """What is computed of a link, in forms that are stable in both tails.

    Parameters
    ----------
    excess, integral : callable
        F - 1/2, and its integral from 0.
    density, variance : callable
        F', and F (1 - F).
    log_cdf, ratio, bend : callable
        log F, u = F' / F, and h = (-log F)''.
    peak, steepest, swing : float
        Upper bounds of F', of u, and of h(t) - h(-t).
    far : float
        Contrast at which the chance of an upset is `FARTHEST`.
    accuracy : float
        Errors of `excess`, and of `ratio` over `steepest`, with the rounding of their argument, a
        difference of two worths, and of their product with a count: at most this many unit
        roundoffs.
    """

    excess: Function
    integral: Function
    density: Function
    variance: Function
    log_cdf: Function
    ratio: Function
    bend: Function
    peak: float
    steepest: float
    swing: float
    far: float
    accuracy: float


# --- logit ---


def _logit_excess(t: FloatArray) -> FloatArray:
    return np.asarray(0.5 * np.tanh(0.5 * t))


def _logit_integral(t: FloatArray) -> FloatArray:
    # log cosh(t / 2), written so that no large exponential is formed
    size = np.abs(t)
    return np.asarray(0.5 * size + np.log1p(np.exp(-size)) - math.log(2.0))


def _logit_density(t: FloatArray) -> FloatArray:
    odds = np.exp(-np.abs(t))
    return np.asarray(odds / (1.0 + odds) ** 2)


def logit_slope(t: FloatArray) -> FloatArray:
    """Return F'' of the logistic distribution."""
    return np.asarray(-2.0 * _logit_density(t) * _logit_excess(t))


def _logit_ratio(t: FloatArray) -> FloatArray:
    return np.asarray(expit(-t))


# --- probit ---


def _probit_excess(t: FloatArray) -> FloatArray:
    return np.asarray(0.5 * erf(t * math.sqrt(0.5)))


def _probit_integral(t: FloatArray) -> FloatArray:
    return np.asarray(t * _probit_excess(t) + np.expm1(-0.5 * t * t) / math.sqrt(2.0 * math.pi))


def _probit_density(t: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi))


def probit_slope(t: FloatArray) -> FloatArray:
    """Return F'' of the normal distribution."""
    return np.asarray(-t * _probit_density(t))


def _probit_variance(t: FloatArray) -> FloatArray:
    return np.asarray(ndtr(t) * ndtr(-t))


def _probit_ratio(t: FloatArray) -> FloatArray:
    # Mills' ratio by the scaled error function, infinite far above 0 where the ratio vanishes
    return np.asarray(math.sqrt(2.0 / math.pi) / erfcx(-t * math.sqrt(0.5)))


def _probit_bend(t: FloatArray) -> FloatArray:
    ratio = _probit_ratio(t)
    # far below 0 the two summands cancel: h lies between 0 and 1
    return np.clip(ratio * (ratio + t), 0.0, 1.0)


# --- integrals of even functions ---


class Antiderivatives:
    """The first and second integrals from 0 of an even, fast falling function.

    Gauss-Legendre quadrature on panels out to `reach`, beyond which the function counts as 0.

    Parameters
    ----------
    function : callable
        An even function, smooth on the scale of a panel.
    reach : float
        Where the function has become negligible.
    """

    __slots__ = ("_function", "_moment", "_nodes", "_reach", "_total", "_weights", "_width")

    PANELS = 256

    def __init__(self, function: Function, reach: float) -> None:
        nodes, weights = GAUSS
        self._function, self._reach, self._width = function, reach, reach / self.PANELS
        self._nodes, self._weights = 0.5 + 0.5 * nodes, 0.5 * weights
        starts = self._width * np.arange(self.PANELS)
        points = starts[:, None] + self._width * self._nodes
        values = self._width * self._weights * function(points)
        self._total = np.append(0.0, np.cumsum(values.sum(axis=1)))
        self._moment = np.append(0.0, np.cumsum((values * points).sum(axis=1)))

    def _integrals(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return |t|, and the integrals of the function and of its product with its argument."""
        size = np.abs(np.asarray(t, dtype=np.float64))
        inside = np.minimum(size, self._reach)
        panel = np.minimum((inside / self._width).astype(np.int64), self.PANELS)
        start = panel * self._width
        points = start[..., None] + (inside - start)[..., None] * self._nodes
        values = (inside - start)[..., None] * self._weights * self._function(points)
        first = self._total[panel] + values.sum(axis=-1)
        return size, first, self._moment[panel] + (values * points).sum(axis=-1)

    def first(self, t: FloatArray) -> FloatArray:
        """Return the integral from 0 to t, an odd function."""
        return np.copysign(self._integrals(t)[1], t)

    def second(self, t: FloatArray) -> FloatArray:
        """Return the integral of the first integral, an even function."""
        size, first, moment = self._integrals(t)
        return np.asarray(size * first - moment)


LOGIT_FORMS = Forms(
    excess=_logit_excess,
    integral=_logit_integral,
    density=_logit_density,
    variance=_logit_density,
    log_cdf=log_expit,
    ratio=_logit_ratio,
    bend=_logit_density,
    peak=0.25,
    steepest=1.0,
    swing=0.0,
    far=28.0,
    accuracy=5.0,
)
"""F(t) = 1 / (1 + exp(-t)): F' = F (1 - F), u = F(-t) < 1, h = F' <= 1/4.

Errors: the argument u |t| F'(t) < u / 4, the halving none, tanh at most 4 u (two ulp) relative,
which is 2 u, the product with a count one more: below 5 u.
"""

PROBIT_FORMS = Forms(
    excess=_probit_excess,
    integral=_probit_integral,
    density=_probit_density,
    variance=_probit_variance,
    log_cdf=log_ndtr,
    ratio=_probit_ratio,
    bend=_probit_bend,
    peak=0.39895,
    steepest=math.inf,
    swing=1.0,
    far=7.0857,
    accuracy=5.0,
)
"""The normal distribution: u grows like |t|, without a bound; h rises to 1 in the lower tail.

Errors of excess: three roundings of the argument (difference, constant, product) at |t| F'(t) < 1/4
each, 4 u (two ulp) relative for erf, which is 2 u, and the product with a count: below 5 u.
"""
