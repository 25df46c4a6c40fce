"""Errors of estimates: normal sampling error plus noise by its exact distribution. Sees no data.

Every test and interval of a fit takes its errors from here, so that an interval holds what its
test does not reject.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from privrank.hypotheses.nulls import monte_carlo_pvalue, public_generator
from privrank.hypotheses.tails import mixture_tail
from privrank.util.arrays import FloatArray, blocks
from privrank.util.solvers import bracket, carried, normal_draws, quadratic

_GROUPS = 64
"""Groups of draws of alike size that stand for the noise of one number."""

_FAR, _FINE = 120, 4
"""Sizes that stand for the largest draws, and how many of them halve the probability beyond."""

_HALVINGS = 40
"""Steps of the search for a half width, each halving what is left of it."""

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
    scores : ndarray, shape (rows, p)
        The estimates as linear combinations of the scores.
    tied : bool
        Whether the last score is the number of ties.
    """

    measured: FloatArray
    least: FloatArray
    noise: float
    scores: FloatArray
    tied: bool = False

    def variances(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the variances of combinations of the estimates, and those of their errors.

        Of half net wins a and the number of ties T, a'net / 2 + c T varies by no more than
        (sd a'net / 2 + |c| sd T)^2, whatever their correlation. Errors of both variances are
        carried to that by its slopes.
        """
        along = weights @ self.scores
        m = len(self.least) - self.tied
        items = along[:, :m] - along[:, :m].mean(axis=1, keepdims=True)
        squares = items**2
        # sum over pairs i < j of (a_i a_j)^2
        products = 0.5 * (squares.sum(axis=1) ** 2 - (squares**2).sum(axis=1))
        variance = quadratic(items, self.measured[:m, :m])
        variance = np.maximum(variance, quadratic(items, self.least[:m, :m]))
        side = self.noise * products
        if not self.tied:
            return variance, side
        ties = max(float(self.measured[m, m]), float(self.least[m, m]), 1e-300)
        own = along[:, m] ** 2
        both = (np.sqrt(np.maximum(variance, 0.0)) + np.sqrt(own * ties)) ** 2
        # a tie counts as one score, a net win as half: its noise is 16 times that of products
        relative = side / np.maximum(variance, 1e-300) + 16.0 * self.noise * own / ties
        return both, both * relative


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Errors of some numbers: normal parts, and noise as a mixture of sizes of either sign.

    Parameters
    ----------
    variance : ndarray, shape (rows,)
        Variances of the normal parts.
    side : ndarray, shape (rows,)
        Variances of what noise adds to `variance` where that is estimated.
    noise : ndarray, shape (rows, sizes)
        Sizes of the noise.
    share : ndarray, shape (sizes,)
        Their probabilities.
    """

    variance: FloatArray
    side: FloatArray
    noise: FloatArray
    share: FloatArray

    @property
    def total(self) -> FloatArray:
        """Standard deviations of normal part and noise together."""
        return np.asarray(np.sqrt(self.variance + self.noise**2 @ self.share))

    def tail(self, size: FloatArray) -> FloatArray:
        """Return the two-sided tails beyond these sizes, as if the variances were known."""
        return mixture_tail(size, np.sqrt(self.variance), self.noise, self.share)


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
    df : float
        Degrees of freedom with which the covariance was estimated, infinite where it is known; t
        quantiles of these allow for its error.
    spread : bool
        Whether the whole covariance was estimated, and not its size alone.
    moments : SecondMoments, optional
        What is known of single contrasts, where that is more than `normal` says of all together.

    Notes
    -----
    **Null.** Two-sided tails of weights'(normal + noise) are averages of normal tails over the
    draws. These are averaged within groups of alike size, in the mean square, but for the largest.
    The largest decide the far tail, where simultaneous statements look, and stand for an
    exponential one of their mean excess, as all noise here has such a tail or a lighter one. Noise
    is symmetric, so sizes will do.
    """

    normal: FloatArray
    noise: FloatArray | None = None
    df: float = math.inf
    spread: bool = False
    moments: SecondMoments | None = None

    def variances(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the variances of the normal parts by row of `weights`, and of their errors."""
        if self.moments is not None:
            variance, side = self.moments.variances(weights)
        else:
            variance, side = quadratic(weights, self.normal), np.zeros(len(weights))
        return np.maximum(variance, 1e-300), side

    def components(self, weights: FloatArray) -> Components:
        """Return the components of linear combinations of the errors, one by row of `weights`."""
        variance, side = self.variances(weights)
        if self.noise is None:
            return Components(variance, side, np.zeros((len(weights), 1)), np.ones(1))
        draws = len(self.noise)
        last = max(draws // _GROUPS, 1)
        starts = np.arange(0, draws - last, last)
        halvings = np.arange(_FAR) / _FINE
        beyond = np.diff(1.0 - 2.0**-halvings, append=1.0)
        share = np.append(np.diff(starts, append=draws - last), last * beyond) / draws
        sizes = np.empty((len(weights), len(share)))
        for rows in blocks(len(weights), draws, _BLOCK):
            drawn = np.sort(np.abs(weights[rows] @ self.noise.T), axis=1)
            body, tail = drawn[:, : draws - last], drawn[:, draws - last :]
            # draws of alike size stand together, by their mean square
            sums = np.add.reduceat(body**2, starts, axis=1)
            sizes[rows, : len(starts)] = np.sqrt(sums / (share[: len(starts)] * draws))
            # the largest stand for an exponential tail of their mean excess, in equal steps of the
            # logarithm of the probability beyond
            excess = (tail - body[:, -1:]).mean(axis=1, keepdims=True)
            steps = math.log(2.0) * (halvings + 0.5 / _FINE)
            sizes[rows, len(starts) :] = body[:, -1:] + excess * steps
        return Components(variance, side, sizes, share)

    def through(self, weights: FloatArray) -> NoisyErrors:
        """Return the errors of linear combinations of the estimates, one by row of `weights`."""
        noise, moments = self.noise, self.moments
        if noise is not None:
            noise = noise @ weights.T
        if moments is not None:
            moments = replace(moments, scores=weights @ moments.scores)
        return replace(self, normal=carried(weights, self.normal), noise=noise, moments=moments)

    def _freedom(self, parts: Components) -> float | FloatArray:
        """Return the degrees of freedom of the components, by Satterthwaite's rule.

        The relative variance of what is known of their total variance, over two: from respondents
        whose number is finite, and from noise put on their second moments.
        """
        if self.moments is None:
            return self.df
        total = parts.total**2
        return 1.0 / (0.5 * parts.side / total**2 + (parts.variance / total) ** 2 / self.df)

    def pvalues(self, weights: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return how probable errors beyond these sizes are, by row of `weights`, shape (rows,)."""
        return self.tail(np.abs(sizes), self.components(weights))

    def tail(self, size: FloatArray, parts: Components, df: FloatArray | None = None) -> FloatArray:
        """Return how probable errors with these components are beyond sizes, shape (rows,).

        With the degrees of freedom `df` of each, where they are not those of all.
        """
        total = parts.total
        df = np.asarray(self._freedom(parts)) if df is None else df
        return parts.tail(total * to_normal(size / total, df))

    def half_widths(self, weights: FloatArray, alpha: float) -> FloatArray:
        """Return the sizes that ``pvalues`` gives the probability `alpha`, shape (rows,)."""
        parts = self.components(weights)
        total = parts.total
        half = parts.noise[:, -1] - ndtri(alpha / 2) * np.sqrt(parts.variance)
        if self.noise is not None:
            ends = bracket(lambda h: parts.tail(h) > alpha, np.zeros(len(total)), half, _HALVINGS)
            half = 0.5 * (ends[0] + ends[1])
        return np.asarray(total * from_normal(half / total, self._freedom(parts)))

    def draws(
        self, draws: int, rank: int, label: str, along: FloatArray | None = None
    ) -> FloatArray:
        """Simulate normal parts for quadratic forms of this rank, shape (draws, p).

        An estimated covariance of respondents makes them those of Hotelling's statistic. Errors of
        standard deviation 1 `along` one direction come to these, if it is given.
        """
        generator = public_generator(label, len(self.normal), draws)
        normal = normal_draws(self.normal, draws, generator)
        if along is not None:
            normal = normal + generator.standard_normal((draws, 1)) * along
        if not math.isinf(self.df):
            left = max(self.df + 1 - rank if self.spread else self.df, 1.0)
            normal *= np.sqrt(self.df / generator.chisquare(left, (draws, 1)))
        return normal

    def wald_pvalue(
        self, weights: FloatArray, inverse: FloatArray, statistic: float, rank: int
    ) -> float:
        """Return the p-value of a Wald statistic by simulation of its quadratic form.

        Given the hypothesis, shape (rows, p), the inverse of the covariance of its values and its
        rank.
        """
        draws = 9_999 if self.noise is None else len(self.noise)
        noise = 0.0 if self.noise is None else self.noise
        errors = (self.draws(draws, rank, "Wald tests") + noise) @ weights.T
        return monte_carlo_pvalue(statistic, quadratic(errors, inverse))


def to_normal(size: FloatArray, df: float | FloatArray) -> FloatArray:
    """Return the normal quantile that is as probable as a t quantile, for sizes above 0."""
    if np.isinf(df).all():
        return size
    # where a tail is too small for its logarithm, so is that of the normal
    return np.asarray(-ndtri(np.maximum(stdtr(df, -size), 1e-300)))


def from_normal(size: FloatArray, df: float | FloatArray) -> FloatArray:
    """Return the t quantile that is as probable as a normal quantile, for sizes above 0."""
    if np.isinf(df).all():
        return size
    return np.asarray(-stdtrit(df, np.maximum(ndtr(-size), 1e-300)))
