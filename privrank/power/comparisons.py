"""Planning a Bradley-Terry fit: the error of a difference of worths, and whether it is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrank.bradley_terry.errors import Components, NoisyErrors
from privrank.bradley_terry.inversion import zero_tests
from privrank.local.protocols import Asking
from privrank.planning.comparisons import Method, plan_fit
from privrank.planning.dependence import Dependence
from privrank.power.base import Dependent, Design, Estimate, Point, Range
from privrank.power.surveys import Expected, Survey, survey_of
from privrank.privacy.budget import Unit
from privrank.release.survey import DesignKind
from privrank.util.workers import Workers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BTLPower"]

FloatArray = NDArray[np.float64]

_LEVELS, _QUANTILES = 13, 33
"""Estimated variances at which a critical value is computed, and quantiles of one."""

_HALVINGS = 50
"""Steps of the search for a critical value."""


def critical(errors: NoisyErrors, null: Components, factors: FloatArray, alpha: float) -> FloatArray:
    """Return the sizes that are rejected where variances are estimated as so many times theirs.

    Given the components of one number under the hypothesis.
    """
    levels = np.geomspace(factors.min(), factors.max(), _LEVELS)
    levels = levels if levels[-1] > levels[0] else levels[:1]
    parts = Components(
        null.variance * levels,
        null.side * np.ones(len(levels)),
        np.repeat(null.noise, len(levels), axis=0),
        null.share,
    )
    low = np.zeros(len(levels))
    high = 10.0 * parts.total * (1.0 - ndtri(alpha / 2.0))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        beyond = errors.tail(middle, parts) > alpha
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.asarray(np.interp(np.log(factors), np.log(levels), high))
