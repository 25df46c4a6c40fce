"""Errors of scores: sampling error plus noise by its exact distribution. Sees no data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from privrank.hypotheses.tails import mixture_tail, skewed_tail
from privrank.util.arrays import FloatArray, batches
from privrank.util.solvers import quadratic

_GROUPS = 64
"""Groups of draws of alike size that stand for the noise of one number."""

_FAR = 120
_FINE = 4
"""Sizes that stand for the largest draws, and how many of them halve the probability beyond."""

_KNOWN = 1e9
"""Degrees of freedom from which a variance counts as known."""

_BLOCK = 2**21
"""Numbers that are held at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class SecondMoments:
    """The covariance of scores as second moments released with noise show it.

    A contrast varies as measured, but no less than if answers were independent. Taken for each
    contrast alone this adds less than a covariance that is no less in any direction.

    Parameters
    ----------
    measured : ndarray, shape (p, p)
        Unbiased estimate of the covariance of the scores, which noise can make indefinite. How the
        number of ties goes with the others is not measured.
    least : ndarray, shape (p, p)
        The covariance if answers were independent.
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
        """Return the variances of combinations of the scores, and those of their errors.

        For half net wins a and the number of ties T, a'net / 2 + c T varies by no more than
        (sd a'net / 2 + |c| sd T)^2, whatever their correlation. Errors of both variances are
        carried to that by its slopes.
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
        # a tie counts as one score, a net win as half: its noise is 16 times that of products
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

    They have sampling errors, and noise as a mixture of sizes of either sign. Twice the tail on
    that side. The larger of two tails counts: that of normal sampling errors, and that of such as
    have their skewness, too (Pearson's type III). Where variances are estimated a size counts as
    the normal quantile that is as probable as its t quantile.

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
        Degrees of freedom with which the whole variance is known, infinite where it is given.
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
        Covariance of other normal errors, such as those of comparisons by group.
    noise : ndarray, shape (draws, p), or None
        Draws of the noise, from a public counter seed; None where there is none.
    df : float
        Degrees of freedom with which the covariance was estimated, infinite where it is known.
    moments : SecondMoments, optional
        What is known of single contrasts, where that is more than `sampling` says of all together.
    effect_error, most_effect : float
        Of a released design effect in `sampling` the relative standard error by its noise, and how
        many times larger it can be.
    whole_df : float
        Degrees of freedom with which whole variances are known at most, noise included: those of
        the contrasts that show the scatter of items about their covariates, else infinite.

    Notes
    -----
    **Noise.** Tails of sampling errors plus noise are averages over the draws. These are averaged
    within groups of alike size, in the mean square, but for the largest. The largest decide the far
    tail, where simultaneous statements look, and stand for an exponential one of their mean excess,
    as all noise here has such a tail or a lighter one. Noise is symmetric, so sizes will do.
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
        """Return the sampling variances by row of `weights`, and the variances of their errors."""
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

        By Satterthwaite's rule, given those of the part: from the relative variance of what is
        known of them, over two, by respondents whose number is finite and by noise on what shows
        their dependence. No more than `whole_df`.
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
            # draws of alike size stand together, by their mean square
            sums = np.add.reduceat(body**2, starts, axis=1)
            sizes[rows, : len(starts)] = np.sqrt(sums / (share[: len(starts)] * draws))
            # the largest stand for an exponential tail of their mean excess, in equal steps of the
            # logarithm of the probability beyond
            excess = (tail - body[:, -1:]).mean(axis=1, keepdims=True)
            steps = math.log(2.0) * (halvings + 0.5 / _FINE)
            sizes[rows, len(starts) :] = body[:, -1:] + excess * steps
        return sizes, share


def to_normal(size: FloatArray, df: float | FloatArray) -> FloatArray:
    """Return the normal quantile that is as probable as a t quantile, for sizes above 0."""
    if np.isinf(df).all():
        return size
    known = np.minimum(df, _KNOWN)
    # where a tail is too small for a number, by its logarithm to first order
    tail = stdtr(known, -size)
    far = np.sqrt(known * np.log1p(size**2 / known))
    normal = np.where(tail > 1e-290, -ndtri(np.maximum(tail, 1e-300)), far)
    return np.where(df >= _KNOWN, size, normal)


def from_normal(size: FloatArray, df: float | FloatArray) -> FloatArray:
    """Return the t quantile that is as probable as a normal quantile, for sizes above 0."""
    if np.isinf(df).all():
        return size
    return np.asarray(-stdtrit(df, np.maximum(ndtr(-size), 1e-300)))
