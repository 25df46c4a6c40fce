"""Public numbers by which the statistics of an omnibus are made comparable."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privrank.util.solvers import bracket

__all__ = ["noisy_quantile"]

FloatArray = NDArray[np.float64]

_HALVINGS = 60


def noisy_quantile(draws: FloatArray, level: float, scale: float) -> float:
    """Return the number that a statistic exceeds with a given probability, noise included.

    Parameters
    ----------
    draws : ndarray of float64, shape (b,)
        Draws of the statistic under a public reference distribution, before noise.
    level : float
        The probability, in (0, 1).
    scale : float
        Scale of the Laplace noise that will be added; 0 for none.

    Returns
    -------
    float
        The q with mean_b P(T_b + L >= q) = level; without noise the least draw that a share of at
        most `level` of the draws exceeds.

    Notes
    -----
    Where noise dominates, q is the mean of the draws plus what depends on the noise alone, so that
    statistics with different spreads enter an omnibus on equal terms; where it does not, q is a
    quantile of the draws.
    """
    draws = np.asarray(draws, dtype=np.float64)
    if scale == 0:
        return float(np.quantile(draws, 1.0 - level, method="inverted_cdf"))
    reach = scale * (1.0 - math.log(min(level, 1.0 - level)))
    low, high = float(draws.min()) - reach, float(draws.max()) + reach

    def exceeded(q: float) -> bool:
        steps = (q - draws) / scale
        tail = 0.5 * np.exp(-np.abs(steps))
        return bool(np.where(steps > 0, tail, 1.0 - tail).mean() > level)

    return bracket(exceeded, low, high, _HALVINGS)[1]
