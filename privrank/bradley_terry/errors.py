"""Distributions of the errors of scores: sampling error plus noise. No access to the data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from privrank.hypotheses.tails import mixture_tail, skewed_tail
from privrank.util.arrays import FloatArray, batches
from privrank.util.solvers import quadratic

_GROUPS = 64
"""Number of groups of draws of similar size that represent the noise of one number."""

_FAR = 120
_FINE = 4
"""Number of sizes that represent the largest draws, and number per halving of the tail."""

_KNOWN = 1e9
"""Degrees of freedom from which a variance is treated as known."""

_BLOCK = 2**21
"""Largest number of array entries in memory at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class SecondMoments:
    """The covariance of scores as estimated by second moments that were released with noise.

    The variance of a contrast is the measured one, but at least the variance under independent
    answers. Applying this bound to each contrast separately adds less variance than a covariance
    that satisfies it in every direction.

    Parameters
    ----------
    measured : ndarray, shape (p, p)
        Unbiased estimate of the covariance of the scores, which noise can make indefinite. The
        covariance of the number of ties with the other scores is not measured.
    least : ndarray, shape (p, p)
        The covariance under independent answers.
    noise : float
        Variance of the noise of the product of two items' scores.
    tied : bool
        Whether the last score is the number of ties.
    """

    measured: FloatArray
    least: FloatArray
    noise: float
    tied: bool = False

    def variances(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the variances of combinations of scores, and the variances of their errors.

        For weights a of half the net wins and c of the number of ties T, the variance of
        a'net / 2 + c T is at most (sd a'net / 2 + |c| sd T)^2, whatever their correlation. The
        errors of both variances are propagated to this bound by its derivatives.
        """
        m = len(self.least) - self.tied
        items = weights[:, :m] - weights[:, :m].mean(axis=1, keepdims=True)
        squares = items**2
        # sum over pairs i < j of (a_i a_j)^2
        products = 0.5 * (squares.sum(axis=1) ** 2 - (squares**2).sum(axis=1))
        variance = np.maximum(
            quadratic(items, self.measured[:m, :m]), quadratic(items, self.least[:m, :m])
        )
        side = self.noise * products
        if not self.tied:
            return variance, side
        ties = max(float(self.measured[m, m]), float(self.least[m, m]), 1e-300)
        own = weights[:, m] ** 2
        both = (np.sqrt(np.maximum(variance, 0.0)) + np.sqrt(own * ties)) ** 2
        # a tie has the score 1 and a net win 1/2, so its noise is 16 times the noise of products
        relative = side / np.maximum(variance, 1e-300) + 16.0 * self.noise * own / ties
        return both, both * relative


def error_pvalues(
    size: FloatArray,
    variance: FloatArray,
    noise: FloatArray,
    share: FloatArray,
    skewness: FloatArray,
    df: FloatArray | float = math.inf,
) -> FloatArray:
    """Return two-sided p-values of errors of signed sizes, shape (rows,).

    The errors are sampling errors plus noise, a mixture of sizes of either sign. The p-value is
    twice the tail probability on the side of the error. Two tails are computed, one for normal
    sampling errors and one for sampling errors with the given skewness (Pearson's type III), and
    the larger one is used. If variances are estimated, a size is treated as a t quantile and
    replaced by the normal quantile with the same tail probability.

    Parameters
    ----------
    size : ndarray, shape (rows,)
        Errors, with their signs.
    variance : ndarray, shape (rows,)
        Variances of the sampling errors.
    noise : ndarray, shape (rows, sizes)
        Sizes of the noise.
    share : ndarray, shape (sizes,)
        Their probabilities.
    skewness : ndarray, shape (rows,)
        Skewness of the sampling errors.
    df : ndarray, shape (rows,), or float
        Degrees of freedom of the whole variance, infinite if the variance is given.
    """
    total = np.sqrt(variance + noise**2 @ share)
    x = total * to_normal(np.abs(size) / total, df)
    given = x, np.sqrt(variance), noise, share
    skewed = 2.0 * skewed_tail(*given, np.sign(size) * skewness)
    return np.minimum(np.maximum(mixture_tail(*given), skewed), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreErrors:
    """Errors of p scores at the fit.

    Parameters
    ----------
    sampling : ndarray, shape (p, p)
        Covariance of the sampling errors.
    beside : ndarray, shape (p, p)
        Covariance of other normal errors, such as errors of comparisons by group.
    noise : ndarray, shape (draws, p), or None
        Draws of the noise, from a public counter seed; None if there is no noise.
    df : float
        Degrees of freedom of the estimated covariance, infinite if the covariance is known.
    moments : SecondMoments, optional
        Second moments for single contrasts, if they are more precise than `sampling`, which is
        valid for all contrasts simultaneously.
    effect_error, most_effect : float
        Relative standard error of a released design effect in `sampling`, due to its noise, and
        the ratio of its ceiling to it.
    whole_df : float
        Upper bound of the degrees of freedom of whole variances, noise included. It is the number
        of contrasts from which the scatter of items about their covariates is estimated, and
        infinite without item covariates.

    Notes
    -----
    **Noise.** Tail probabilities of sampling errors plus noise are averages over the draws. Except
    for the largest draws, draws of similar size are combined and replaced by their root mean
    square. The largest draws determine the far tail, which simultaneous statements need. They are
    replaced by an exponential tail with their mean excess, because all noise here has such a tail
    or a lighter one. The noise is symmetric, so only its absolute sizes are stored.
    """

    sampling: FloatArray
    beside: FloatArray
    noise: FloatArray | None = None
    df: float = math.inf
    moments: SecondMoments | None = None
    effect_error: float = 0.0
    most_effect: float = 1.0
    whole_df: float = math.inf

    def variances(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sampling variances by row of `weights`, and the variances of their errors."""
        if self.moments is not None:
            variance, side = self.moments.variances(weights)
        else:
            variance = quadratic(weights, self.sampling)
            side = (self.effect_error * variance) ** 2
        return np.maximum(variance, 1e-300), side

    def freedom(
        self, normal: FloatArray, side: FloatArray | float, total: FloatArray, df: float
    ) -> FloatArray:
        """Return the degrees of freedom of total variances, of which a part is not noise.

        They follow from Satterthwaite's rule. `df` are the degrees of freedom of the part that is
        not noise, `normal`, due to the finite number of respondents. `side` is the variance of its
        error due to noise on the released dependence. The result is at most `whole_df`.
        """
        lost = 0.5 * side / total / total + (normal / total) ** 2 / df
        return np.asarray(np.minimum(1.0 / np.maximum(lost, 1e-300), min(self.whole_df, _KNOWN)))

    def sizes(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sizes of the noise of combinations, shape (rows, sizes), and their shares."""
        if self.noise is None:
            return np.zeros((len(weights), 1)), np.ones(1)
        draws = len(self.noise)
        last = max(draws // _GROUPS, 1)
        starts = np.arange(0, draws - last, last)
        halvings = np.arange(_FAR) / _FINE
        beyond = np.diff(1.0 - 2.0**-halvings, append=1.0)
        share = np.append(np.diff(starts, append=draws - last), last * beyond) / draws
        sizes = np.empty((len(weights), len(share)))
        for rows in batches(len(weights), draws, _BLOCK):
            drawn = np.sort(np.abs(weights[rows] @ self.noise.T), axis=1)
            body = drawn[:, : draws - last]
            tail = drawn[:, draws - last :]
            # combine draws of similar size by their mean square
            sums = np.add.reduceat(body**2, starts, axis=1)
            sizes[rows, : len(starts)] = np.sqrt(sums / (share[: len(starts)] * draws))
            # replace the largest by an exponential tail with their mean excess, in equal steps of
            # the logarithm of the tail probability
            excess = (tail - body[:, -1:]).mean(axis=1, keepdims=True)
            steps = math.log(2.0) * (halvings + 0.5 / _FINE)
            sizes[rows, len(starts) :] = body[:, -1:] + excess * steps
        return sizes, share


def to_normal(size: FloatArray, df: float | FloatArray) -> FloatArray:
    """Return the normal quantiles with the tail probabilities of positive t quantiles."""
    if np.isinf(df).all():
        return size
    known = np.minimum(df, _KNOWN)
    # if a tail underflows, use its logarithm to first order
    tail = stdtr(known, -size)
    far = np.sqrt(known * np.log1p(size**2 / known))
    normal = np.where(tail > 1e-290, -ndtri(np.maximum(tail, 1e-300)), far)
    return np.where(df >= _KNOWN, size, normal)


def from_normal(size: FloatArray, df: float | FloatArray) -> FloatArray:
    """Return the t quantiles with the tail probabilities of positive normal quantiles."""
    if np.isinf(df).all():
        return size
    return np.asarray(-stdtrit(df, np.maximum(ndtr(-size), 1e-300)))
