"""Differences of two worths: quasi variances, and p-values adjusted for looking at all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from privrank.util.solvers import attempt

__all__ = ["adjusted_pvalues", "quasi_variances"]

FloatArray = NDArray[np.float64]


def quasi_variances(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return quasi variances, and how far off the errors of differences are that they give.

    Parameters
    ----------
    covariance : ndarray, shape (m, m)
        Covariance of centred worths, m at least 3.

    Returns
    -------
    ndarray, shape (m,)
        The q_i for which q_i + q_j comes closest to the variance of each difference of two worths,
        in the sum of squared differences of logarithms; NaN where none are found.
    ndarray, shape (m, m)
        Relative error of sqrt(q_i + q_j) as the standard error of the difference, 0 on the
        diagonal.

    References
    ----------
    Firth and de Menezes (2004), https://doi.org/10.1093/biomet/91.1.65.
    """
    diagonal = np.diag(covariance)
    variance = diagonal[:, None] + diagonal[None, :] - 2.0 * covariance
    first, second = np.triu_indices(len(covariance), 1)
    wanted = np.log(variance[first, second])
    edges = np.arange(len(first))

    def residuals(q: FloatArray) -> FloatArray:
        # a sum that is not positive is no variance: far off, and steeply so
        return np.asarray(np.log(np.maximum(q[first] + q[second], 1e-300)) - wanted)

    def slope(q: FloatArray) -> FloatArray:
        table = np.zeros((len(edges), len(q)))
        inverse = 1.0 / np.maximum(q[first] + q[second], 1e-300)
        table[edges, first] = table[edges, second] = inverse
        return table

    # v_ij = q_i + q_j holds exactly for these if it holds for any q
    m = len(covariance)
    sums = variance.sum(axis=1)
    start = (sums - sums.sum() / (2.0 * (m - 1))) / (m - 2)
    start = np.maximum(start, 0.05 * variance[first, second].min())
    ends = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    q = attempt(
        lambda: np.asarray(least_squares(residuals, start, slope, x_scale=start, **ends).x),
        lambda: np.full(m, np.nan),
    )
    ratio = np.ones_like(covariance)
    ratio[first, second] = ratio[second, first] = np.exp(0.5 * residuals(q))
    return q, np.asarray(ratio - 1.0)


def adjusted_pvalues(t: FloatArray, maxima: FloatArray) -> FloatArray:
    """Return p-values that hold for all differences at once.

    Given the |t| of the differences, and draws of the largest |t| of all when worths are equal to
    what they are: the share of draws at least as large, the observed value counted as one of them.
    NaN where there is no |t|.
    """
    ordered = np.sort(maxima)
    beyond = len(ordered) - np.searchsorted(ordered, np.abs(t), side="left")
    return np.where(np.isnan(t), np.nan, (1.0 + beyond) / (1.0 + len(ordered)))
