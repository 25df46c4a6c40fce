"""Score tests of contrasts of the coefficients, the basis of all p-values and intervals of a fit.

The score test of c'b = t evaluates variances under the hypothesis. The Wald test evaluates its
variance at the estimate. If an item wins nearly always, the same scores then make its estimated
worth large and its standard error small.

**Null point.** The coefficients b_t with c'b_t = t are found by moving from the fit along V c
(:meth:`privrank.bradley_terry.inference.Inference.moves`).

**Statistic.** The one-step estimate w'(score - expected score at b_t) of c'b - t, where w solves
H w = c and H is the information at b_t. To first order it does not depend on the other
coefficients.

**Null distribution.** Sampling error plus the exact noise. Two p-values are computed, one under
normal sampling errors and one under errors with the skewness of the answers at b_t (Pearson's type
III). The larger one is used. The sampling variance is the variance under independent answers at b_t
times a design effect. For a private release this is the released design effect at the fit. Without
privacy, the design effect of the answers at b_t and their design effect at the fit are both tried,
and the larger p-value is used (:class:`privrank.bradley_terry.dependence.Clusters`). The variance
of the noise includes the noise of pair counts at b_t, because an error in a count moves the
expected score by its product with F - 1/2. The noise of a released design effect adds to the
uncertainty of the variance, by Satterthwaite's rule, up to the ceiling of the design effect.

**P-value and interval.** On each side of the estimate the interval extends to the last t that is
not rejected at alpha. The p-value of t is the largest of the p-values of t and all values beyond t,
as seen from the estimate. An interval therefore excludes t exactly if the p-value of t is below
alpha. An end is infinite if the scores do not determine it. Scores that no answers can have are
replaced by the scores that the fit expects; without this, such noise would reject all finite
values. A contrast that the release does not identify has p-value 1 and the whole line as interval.
A contrast that it identifies only with some probability has its p-value divided by this
probability, and the level of its interval multiplied by it
(:func:`privrank.bradley_terry.paircounts.weak_cuts`).

For many items the tests are Wald tests with normal noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from privrank.bradley_terry.choices import ChoiceScore
from privrank.bradley_terry.equations import ScoreEquations
from privrank.bradley_terry.fit import answer_probabilities, worths_and_ties
from privrank.bradley_terry.inference import KNOWN, MAX_SIMULATED_ITEMS, Inference, ScoreErrors
from privrank.bradley_terry.paircounts import weak_cuts
from privrank.hypotheses.tails import mixture_tail, skewed_tail
from privrank.util.arrays import FloatArray, IntArray, batches
from privrank.util.solvers import matvec, product, quadratic

_BLOCK = 512
"""Number of contrasts that are tested at a time."""

_STEPS = 60
"""Largest number of steps of a search; about five are typical."""

_CLOSE = 0.005
"""Distance from the critical value, in standard deviations, at which the last step is linear."""

_EDGE = 1e-9
"""Least distance from zero of a limit that must lie on a given side of zero."""

_TINY = 1e-190
"""Least variance; powers of it do not underflow."""

_BEYOND = (24, 6)
_MAX_PAIRS = 200
"""Numbers of values beyond each value that are tried, for up to this many pairs and for more."""


def pvalues(
    inference: Inference, contrasts: FloatArray, values: FloatArray | float = 0.0
) -> FloatArray:
    """Return two-sided p-values of the hypotheses that contrasts, shape (rows, p), equal values."""
    probabilities = np.ones(len(contrasts))
    values = np.broadcast_to(values, len(contrasts))
    for rows, share, tests in _tests(inference, contrasts):
        probabilities[rows] = np.minimum(tests.pvalues(values[rows]) / share, 1.0)
    return probabilities


def intervals(
    inference: Inference,
    contrasts: FloatArray,
    alpha: float,
    known: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper limits of contrasts, infinite where there are none.

    They contain zero exactly where :func:`pvalues` is not below `alpha`. They always contain the
    estimate. `known` are the p-values of zero, if the caller has computed them.
    """
    low = np.full(len(contrasts), -np.inf)
    high = np.full(len(contrasts), np.inf)
    for rows, share, tests in _tests(inference, contrasts):
        pvalue = None if known is None else known[rows] * share
        low[rows], high[rows] = tests.limits(alpha * share, pvalue)
    return low, high


def _tests(
    inference: Inference, contrasts: FloatArray
) -> Iterator[tuple[IntArray, FloatArray, ScoreTests | WaldTests]]:
    """Yield the tests of identified contrasts, with their rows and :func:`shares`."""
    known = np.flatnonzero(inference.equations.components.identifies(contrasts))
    contrasts = product(contrasts, inference.equations.linear.identity)
    errors = inference.score_errors
    for block in batches(len(known), 1, _BLOCK):
        rows = known[block]
        here = contrasts[rows]
        share = shares(inference.equations, here)
        if errors is not None:
            yield rows, share, score_tests(inference, errors, here)
        else:
            wald = WaldTests(
                matvec(here, inference.fitted.coefficients),
                np.sqrt(np.maximum(quadratic(here, inference.errors.total), 0.0)),
                inference.freedom,
            )
            yield rows, share, wald


def to_normal(size: FloatArray, df: float | FloatArray) -> FloatArray:
    """Return the normal quantiles with the tail probabilities of positive t quantiles."""
    if np.isinf(df).all():
        return size
    known = np.minimum(df, KNOWN)
    # if a tail underflows, use its logarithm to first order
    tail = stdtr(known, -size)
    far = np.sqrt(known * np.log1p(size**2 / known))
    normal = np.where(tail > 1e-290, -ndtri(np.maximum(tail, 1e-300)), far)
    return np.where(df >= KNOWN, size, normal)


def error_pvalues(
    size: FloatArray,
    variance: FloatArray,
    noise: FloatArray,
    share: FloatArray,
    skewness: FloatArray,
    df: FloatArray | float = np.inf,
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
    given = total * to_normal(np.abs(size) / total, df), np.sqrt(variance), noise, share
    skewed = 2.0 * skewed_tail(*given, np.sign(size) * skewness)
    return np.minimum(np.maximum(mixture_tail(*given), skewed), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class WaldTests:
    """Wald tests of contrasts at any values with normal errors, used for many items.

    Parameters
    ----------
    value, deviation : ndarray, shape (rows,)
        The estimates of the contrasts and their standard errors; the standard errors of contrasts
        that are not identified are infinite.
    df : float
        Degrees of freedom of the standard errors.
    """

    value: FloatArray
    deviation: FloatArray
    df: float

    def pvalues(self, t: FloatArray | float) -> FloatArray:
        """Return the p-values of values t."""
        size = np.abs(self.value - t) / np.maximum(self.deviation, 1e-150)
        return np.asarray(2.0 * ndtr(-to_normal(size, self.df)))

    def limits(
        self, alpha: FloatArray | float, _: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper limits."""
        size = -ndtri(0.5 * np.asarray(alpha))
        if not np.isinf(self.df):
            size = -stdtrit(self.df, np.maximum(ndtr(-size), 1e-300))
        return self.value - size * self.deviation, self.value + size * self.deviation


def shares(facts: ScoreEquations, rows: FloatArray) -> FloatArray:
    """Return the probability that a release identifies combinations, shape (rows, p).

    It is the least probability over the weak cuts that a combination crosses, and 1 if the
    comparisons clearly exceed their noise. Ordinary p-values and intervals are not valid
    conditionally on the event that a release identifies the combination. P-values divided by this
    probability, and intervals at the level times it, are valid if it is not too small.
    """
    least = np.ones(len(rows))
    for side, share in hardly_identified(facts):
        crossed = np.abs(rows[:, : facts.items] @ side) > 1e-9
        least[crossed] = np.minimum(least[crossed], share)
    return least


def hardly_identified(facts: ScoreEquations) -> list[tuple[FloatArray, float]]:
    """Return the weak cuts, each with the probability that it is identified.

    The list is empty for many items, because the tests of all their pairs are not corrected.
    """
    few = facts.covariates is None and facts.items <= MAX_SIMULATED_ITEMS
    if not few or facts.count_variance == 0.0:
        return []
    return weak_cuts(facts.released, facts.count_variance, facts.components.groups)


def _third(
    facts: ScoreEquations, along: FloatArray, t: FloatArray, spread: FloatArray
) -> FloatArray:
    """Return the third cumulants of combinations of scores of independent answers, shape (rows,).

    `along` are the weights by edge, shape (rows, edges), `t` the predictors and `spread` the
    variances by edge. The third cumulant of an answer with the values a and -a is -2 times the
    product of its mean and its variance.
    """
    if isinstance(facts.function, ChoiceScore):
        return facts.function.third(t, along, facts.count)
    if not facts.tied:
        # weights can be infinite if the variance is zero
        weight = np.where(spread > _TINY, facts.fitted.weight(t), 0.0)
        skew = weight * facts.function.link.excess(t) * spread
        if facts.weights is not None:
            skew = skew * facts.weights.cubes
        return np.asarray(-2.0 * (along**3 * skew).sum(axis=1))
    half, tie = worths_and_ties(along)
    answers = np.array(answer_probabilities(*worths_and_ties(t)))
    values = np.array([0.5 * half, tie, -0.5 * half])
    values = values - (answers * values).sum(axis=0)
    return np.asarray((answers * values**3).sum(axis=0) @ facts.pairs.count)


@dataclass(frozen=True, slots=True, eq=False)
class TestPoint:
    """A combination of scores at each of several null points.

    Parameters
    ----------
    statistic : ndarray, shape (rows,)
        The combinations minus their expectations.
    weights : ndarray, shape (rows, p)
        Weights of the scores in the combinations.
    variance, third : ndarray, shape (rows,)
        Second and third cumulants if answers were independent.
    noise : ndarray, shape (rows,)
        Variance of the noise.
    sampling : tuple of two ndarray of shape (rows,)
        Sampling variances that are tried, each with the variance of its error.
    """

    statistic: FloatArray
    weights: FloatArray
    variance: FloatArray
    third: FloatArray
    noise: FloatArray
    sampling: tuple[tuple[FloatArray, FloatArray], ...]


def score_tests(inference: Inference, errors: ScoreErrors, contrasts: FloatArray) -> ScoreTests:
    """Return score tests of contrasts, shape (rows, p), of the coefficients of a fit."""
    facts = inference.equations
    b = inference.fitted.coefficients
    value = np.asarray(contrasts @ b)
    # changes of the coefficients that raise each contrast by 1
    moves = inference.moves(contrasts)
    moves = moves / np.einsum("rp,rp->r", moves, contrasts)[:, None]
    noises = np.zeros((1, len(b))) if errors.noise is None else errors.noise
    noise = noises.T @ noises / len(noises)

    def at(t: FloatArray, rows: IntArray) -> TestPoint:
        edges = facts.linear.predict(b + moves[rows] * (t - value[rows])[:, None])
        weights = inference.weights(edges, contrasts[rows])
        along = facts.linear.along(weights)
        spread = inference.spread(edges)
        independent = np.maximum((along**2 * spread).sum(axis=1), _TINY)
        # replace the effect of errors in pair counts at the fit by the effect at the null point
        noisy = (
            quadratic(weights, noise)
            + facts.count_noise(along, edges)
            - facts.count_noise(along, inference.at_fit)
        )
        return TestPoint(
            weights @ inference.score + (along * inference.left(edges)).sum(axis=-1),
            weights,
            independent,
            _third(facts, along, edges, spread),
            np.maximum(noisy, 0.0),
            tuple(_sampling(inference, errors, weights, along, edges, independent)),
        )

    tried = 0
    if inference.clusters is not None:
        tried = _BEYOND[len(facts.pairs.count) > _MAX_PAIRS]
    return ScoreTests(
        value,
        np.sqrt(np.maximum(quadratic(contrasts, inference.errors.total), 1e-300)),
        np.abs(value) + facts.function.link.exact.far,
        at,
        errors,
        tried,
    )


def _sampling(
    inference: Inference,
    errors: ScoreErrors,
    weights: FloatArray,
    along: FloatArray,
    t: FloatArray,
    independent: FloatArray,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield sampling variances that are tried, and the variances of their errors.

    The arguments include the weights of the scores, the weights by edge, the predictors and the
    variances under independent answers.
    """
    if (clusters := inference.clusters) is not None:
        for point, factor in inference.answer_points(t):
            yield clusters.effects(along, point, factor) * independent, np.zeros(len(along))
        return
    variance, side = errors.variances(weights)
    spread = inference.equations.spread(inference.at_fit, inference.equations.fitted)
    # the bound keeps the square of the ratio finite
    ratio = np.minimum(independent / np.maximum(along**2 @ spread, 1e-300), 1e150)
    yield np.maximum(ratio * variance, _TINY), ratio**2 * side


@dataclass(frozen=True, eq=False)
class ScoreTests:
    """Score tests of some contrasts at any values.

    Parameters
    ----------
    value, deviation : ndarray, shape (rows,)
        The estimates of the contrasts, and their standard errors.
    far : ndarray, shape (rows,)
        Distances from the estimates at which contrasts count as infinite.
    at : callable
        Function of values, shape (k,), and the indices of their contrasts that returns the
        statistics.
    errors : ScoreErrors
        Errors of the scores.
    tried : int
        Number of values beyond each value that are tried; 0 if p-values fall with the distance.
    """

    value: FloatArray
    deviation: FloatArray
    far: FloatArray
    at: Callable[[FloatArray, IntArray], TestPoint]
    errors: ScoreErrors
    tried: int = 0

    def _shapes(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return noise sizes of the statistics at values t, divided by their root mean square."""
        sizes, share = self.errors.sizes(self.at(t, np.arange(len(t))).weights)
        return sizes / np.sqrt(np.maximum(sizes**2 @ share, 1e-300))[:, None], share

    def _pvalues(
        self, t: FloatArray, rows: IntArray, shapes: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        """Return p-values at single values t, given the shapes of the noise."""
        at = self.at(t, rows)
        sizes = shapes[0][rows] * np.sqrt(at.noise)[:, None]
        additional = quadratic(at.weights, self.errors.additional)

        def tails(variance: FloatArray, side: FloatArray | float, df: float) -> FloatArray:
            normal = variance + additional
            known = self.errors.freedom(normal, side, normal + at.noise, df)
            # a design effect E multiplies the third cumulant of independent answers by E^2
            skewness = np.minimum(variance / at.variance, 1e90) ** 2 * at.third / normal**1.5
            return error_pvalues(at.statistic, normal, sizes, shapes[1], skewness, known)

        largest = np.zeros(len(t))
        for variance, side in at.sampling:
            pvalue = tails(variance, side, self.errors.df)
            if (most := self.errors.effect[1]) > 1.0:  # at most the p-value at the ceiling
                pvalue = np.minimum(pvalue, tails(most * variance, 0.0, np.inf))
            largest = np.maximum(largest, pvalue)
        # the p-value is 1 if the statistic and estimate minus value have opposite signs
        return np.where(at.statistic * (self.value[rows] - t) < 0, 1.0, largest)

    def pvalues(self, t: FloatArray) -> FloatArray:
        """Return the p-values of values t, each the largest at this value or beyond."""
        largest = self._pvalues(t, np.arange(len(t)), self._shapes(t))
        if self.tried:
            for side in (-1.0, 1.0):
                distance, grid = self._grid[side]
                at = side * (t - self.value)
                beyond = np.where(distance > at[:, None], grid, 0.0).max(axis=1)
                largest = np.where(at >= 0, np.maximum(largest, beyond), largest)
        return largest

    def limits(
        self, alpha: FloatArray, pvalue: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper limits, with zero between them exactly if it is not rejected.

        `pvalue` are the p-values of zero, which are computed if they are not given.
        """
        low, high = (self._limit(side, alpha) for side in (-1.0, 1.0))
        pvalue = self.pvalues(np.zeros(len(alpha))) if pvalue is None else pvalue
        # a search ends close to the level only, but whether the interval contains zero must agree
        # exactly with the p-value
        least = np.where(self.value > 0, _EDGE, -np.inf)
        most = np.where(self.value > 0, np.inf, -_EDGE)
        holds = pvalue >= alpha
        low = np.where(holds, np.minimum(low, -_EDGE), np.maximum(low, least))
        high = np.where(holds, np.maximum(high, _EDGE), np.minimum(high, most))
        return low + 0.0 * pvalue, high + 0.0 * pvalue  # missing if the p-value is

    def _limit(self, side: float, alpha: FloatArray) -> FloatArray:
        """Return the limits on one side, below (-1) or above (1)."""
        low = np.zeros(len(alpha))
        high = np.full(len(alpha), np.inf)
        if self.tried:
            # the last tried value that is not rejected, and the next one
            distance, grid = self._grid[side]
            ends = np.column_stack((low, distance, high))
            last = ends.shape[1] - 2 - np.argmax(grid[:, ::-1] >= alpha[:, None], axis=1)
            last = np.where((grid >= alpha[:, None]).any(axis=1), last, 0)[:, None]
            low, high = (np.take_along_axis(ends, last + k, axis=1)[:, 0] for k in (0, 1))
        wald = np.minimum(-ndtri(alpha / 2.0) * self.deviation, self.far)
        middle = np.where(np.isfinite(high), 0.5 * (low + high), self.far)
        start = np.where((low < wald) & (wald < high), wald, middle)
        # the shape of the noise changes slowly: use it at the estimate first, then at the limit
        distance = self._search(side, alpha, self._shapes(self.value), start, low, high)
        if self.errors.noise is not None:
            start = np.minimum(distance, self.far)
            shapes = self._shapes(self.value + side * start)
            distance = self._search(side, alpha, shapes, start, low, high)
        return np.asarray(self.value + side * distance)

    @cached_property
    def _grid(self) -> dict[float, tuple[FloatArray, FloatArray]]:
        """Distances from the estimates, shape (rows, values), and p-values there, by side."""
        start = np.minimum(0.5 * self.deviation, 0.5 * self.far)
        distance = np.geomspace(start, self.far, self.tried, axis=1)
        shapes = self._shapes(self.value)
        table = {}
        for side in (-1.0, 1.0):
            values = (self.value[:, None] + side * distance).T
            grid = [self._pvalues(value, np.arange(len(value)), shapes) for value in values]
            table[side] = distance, np.column_stack(grid)
        return table

    def _search(
        self,
        side: float,
        alpha: FloatArray,
        shapes: tuple[FloatArray, FloatArray],
        start: FloatArray,
        low: FloatArray,
        high: FloatArray,
    ) -> FloatArray:
        """Return the distances from the estimates at which values are rejected, by regula falsi."""
        critical = -ndtri(alpha / 2.0)
        low = low.copy()
        high = high.copy()
        trial = start.copy()
        room_in = critical.copy()
        room_out = -critical
        active = np.arange(len(low))
        for _ in range(_STEPS):
            here = trial[active]
            pvalue = self._pvalues(self.value[active] + side * here, active, shapes)
            # standard deviations from the value to rejection
            left = critical[active] + ndtri(0.5 * np.maximum(pvalue, 1e-300))
            inside = left > 0
            # halve the value of an end that stays (the Illinois rule)
            staying = np.where(np.isfinite(high[active]), 0.5, 1.0)
            room_out[active] = np.where(inside, staying * room_out[active], left)
            room_in[active] = np.where(inside, left, staying * room_in[active])
            low[active] = np.where(inside, here, low[active])
            high[active] = np.where(inside, high[active], here)
            endless = ~np.isfinite(high[active]) & (here >= self.far[active])
            low[active] = np.where(endless, np.inf, low[active])
            close = np.abs(left) < _CLOSE
            # this close to the limit the statistics are proportional to the distance
            most = critical[active]
            trial[active] = here * (most / np.where(close, most - left, most))
            active = active[~(close | endless)]
            if not len(active):
                break
            known = np.isfinite(high[active])
            share = room_in[active] / (room_in[active] - room_out[active])
            within = low[active] + share * (np.where(known, high[active], 0.0) - low[active])
            beyond = np.minimum(2.0 * low[active], self.far[active])
            trial[active] = np.where(known, within, beyond)
        return np.where(np.isinf(low), np.inf, trial)
