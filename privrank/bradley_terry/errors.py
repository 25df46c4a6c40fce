"""Errors of estimates: normal sampling error plus noise by its exact distribution. Sees no data.

Every test and interval of a fit takes its errors from here, so that an interval holds what its
test does not reject.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from privrank.hypotheses.nulls import monte_carlo_pvalue
from privrank.hypotheses.nulltables import public_generator
from privrank.util.solvers import square_root

__all__ = ["NoisyErrors"]

FloatArray = NDArray[np.float64]

_GROUPS = 64
"""Groups of draws of alike size that stand for the noise of one number."""

_HALVINGS = 40
"""Steps of the search for a half width, each halving what is left of it."""

_BLOCK = 2**21
"""Numbers that are held at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyErrors:
    """Errors of p estimates, around what they estimate.

    Parameters
    ----------
    normal : ndarray, shape (p, p)
        Covariance of the normal part.
    noise : ndarray, shape (draws, p), or None
        Draws of the noise, from a public counter seed; None where there is none, or where it is
        part of the normal one.

    Notes
    -----
    **Null.** Two-sided tails of weights'(normal + noise) are averages of normal tails over the
    draws. These are averaged within groups of alike size, in the mean square, but for the largest,
    which decide the far tail and are kept one by one. Noise is symmetric, so sizes will do.
    """

    normal: FloatArray
    noise: FloatArray | None = None

    def _components(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return normal standard deviations, shape (rows, 1), sizes of noise, and their weights."""
        variance = np.einsum("ri,ij,rj->r", weights, self.normal, weights, optimize=True)
        sd = np.sqrt(np.maximum(variance, 1e-300))[:, None]
        if self.noise is None:
            return sd, np.zeros((len(weights), 1)), np.ones(1)
        draws = len(self.noise)
        last = draws // _GROUPS
        starts = np.append(np.arange(0, draws - last, last), np.arange(draws - last, draws))
        share = np.diff(np.append(starts, draws)) / draws
        sizes = np.empty((len(weights), len(starts)))
        block = max(1, _BLOCK // draws)
        for first in range(0, len(weights), block):
            rows = slice(first, first + block)
            drawn = np.sort(np.abs(weights[rows] @ self.noise.T), axis=1)
            sums = np.add.reduceat(drawn**2, starts, axis=1)
            sizes[rows] = np.sqrt(sums / (share * draws))
        return sd, sizes, share

    def through(self, weights: FloatArray) -> NoisyErrors:
        """Return the errors of linear combinations of the estimates, one by row of `weights`."""
        noise = None if self.noise is None else self.noise @ weights.T
        return NoisyErrors(weights @ self.normal @ weights.T, noise)

    def pvalues(self, weights: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return how probable errors beyond these sizes are, by row of `weights`, shape (rows,)."""
        return _tail(np.abs(sizes), *self._components(weights))

    def half_widths(self, weights: FloatArray, alpha: float) -> FloatArray:
        """Return the sizes that ``pvalues`` gives the probability `alpha`, shape (rows,)."""
        sd, noise, share = self._components(weights)
        if self.noise is None:
            return np.asarray(-ndtri(alpha / 2) * sd[:, 0])
        low = np.zeros(len(sd))
        high = noise[:, -1] - ndtri(alpha / 2) * sd[:, 0]
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            beyond = _tail(middle, sd, noise, share) > alpha
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        return np.asarray(0.5 * (low + high))

    def wald_pvalue(self, weights: FloatArray, inverse: FloatArray, statistic: float) -> float:
        """Return the p-value of a Wald statistic by simulation of its quadratic form.

        Given the hypothesis, shape (rows, p), and the inverse of the covariance of its values.
        """
        assert self.noise is not None  # without noise the chi-square law is the null
        draws, p = self.noise.shape
        generator = public_generator("Wald tests", p, draws)
        normal = generator.standard_normal((draws, p)) @ square_root(self.normal).T
        errors = (normal + self.noise) @ weights.T
        table = np.einsum("dr,rs,ds->d", errors, inverse, errors, optimize=True)
        return monte_carlo_pvalue(statistic, table)


def _tail(size: FloatArray, sd: FloatArray, noise: FloatArray, share: FloatArray) -> FloatArray:
    """Return the two-sided tail of a normal number plus noise of these sizes and either sign."""
    x = size[:, None]
    return np.asarray((ndtr((noise - x) / sd) + ndtr((-noise - x) / sd)) @ share)
