"""Intervals and p-values of contrasts by their noisy scores, which hold where worths are extreme.

Wald's interval takes its variance at the estimate. Where an item wins nearly always, noise that
makes it look weaker makes its worth look certain as well, and the interval does not reach back to
the truth. Whether c'b = t is asked of the scores instead, whose noise is the same everywhere.

**Statistic.** Coefficients b_t with c'b_t = t are moved from the fit along Sigma c, Sigma the
covariance of the fit. The statistic is the one-step estimate w'(score - expected score at b_t) of
c'b - t, w the solution of H w = c with H the information at b_t. To first order it does not depend
on the other coefficients.

**Null.** Normal sampling error with the variance of independent answers at b_t, times the design
effect of the direction w at the fit, plus the exact noise. The variance of the noise has that of
pair counts at b_t too, as an error in a count moves the expected score by its product with F - 1/2.
The design effect of a non-private fit is estimated from its respondents. Where an item hardly ever
loses, few of them show it: it is taken as at least 1. Then the t quantiles have the degrees of
freedom 2 / (relative variance of a sum of squares), 1 / df = 1 / (n - 1) + k_4 / (2 v^2). Here v is
the variance and k_4 the fourth cumulant of the score along w under independent answers. (Fay and
Graubard 2001 count respondents' squares in the same place,
https://doi.org/10.1111/j.0006-341X.2001.01198.x.)

**Interval.** All t that are not rejected at alpha, as far as they are connected with the estimate.
Where the noise leaves no limit it has no end on that side. Scores that no answers can give
are taken for those that the fit expects: else such noise would reject all finite values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrank.bradley_terry.errors import Components, NoisyErrors
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.losses import ScoreFunction
from privrank.release.survey import PairCounts
from privrank.util.arrays import FloatArray, IntArray, blocks
from privrank.util.solvers import applied, solve_each

_BLOCK = 512
"""Contrasts that are worked on at a time."""

_STEPS = 60
"""Steps of a search at most; it ends after about five."""

_CLOSE = 0.005
"""Distance from the critical value, in standard deviations, at which one more step is a line."""

_EDGE = 1e-9
"""Distance from zero of a limit that has to be on one side of it."""

_LEAST_DF = 4.0
"""Degrees of freedom that a design effect has however few answers it is estimated from."""

_LEAST = 1e-9
"""Share of the comparisons that stands for information where there is none left."""


def pvalues(inference: Inference, contrasts: FloatArray) -> FloatArray:
    """Return two-sided p-values of the hypotheses that contrasts, shape (rows, p), are zero.

    Missing where the release does not identify them.
    """
    known, probabilities = _identified(inference, contrasts), np.full(len(contrasts), np.nan)
    if (errors := inference.score_errors()) is None:
        rows = contrasts[known]
        value = applied(rows, inference.fitted.coefficients)
        probabilities[known] = inference.noisy_errors().pvalues(rows, value)
        return probabilities
    for block in blocks(len(known), 1, _BLOCK):
        here = known[block]
        probabilities[here] = _ScoreTests(inference, errors, contrasts[here]).zero
    return probabilities


def intervals(
    inference: Inference, contrasts: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper limits of contrasts, infinite where the scores set none.

    They hold zero exactly where :func:`pvalues` is above `alpha`, and always the estimate. Missing
    where the release does not identify the contrast.
    """
    known, limits = _identified(inference, contrasts), np.full((2, len(contrasts)), np.nan)
    if (errors := inference.score_errors()) is None:
        rows = contrasts[known]
        value = applied(rows, inference.fitted.coefficients)
        half = inference.noisy_errors().half_widths(rows, alpha)
        limits[:, known] = value - half, value + half
        return limits[0], limits[1]
    for block in blocks(len(known), 1, _BLOCK):
        here = known[block]
        tests = _ScoreTests(inference, errors, contrasts[here])
        low, high = (tests.limit(side, alpha) for side in (-1.0, 1.0))
        limits[:, here] = beside_zero(low, high, tests.zero > alpha, tests.value > 0)
    return limits[0], limits[1]


def _identified(inference: Inference, contrasts: FloatArray) -> IntArray:
    """Return which contrasts the release identifies; of others nothing is said."""
    return np.flatnonzero(inference.equations.identifies(contrasts))


def beside_zero(
    low: FloatArray, high: FloatArray, holds_zero: NDArray[np.bool_], positive: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return limits that have zero between them where they are to, given the side of the estimates.

    Searches end close to the level, and which side of it zero is on is to be exact.
    """
    apart = np.where(positive, np.maximum(low, _EDGE), low), np.minimum(high, -_EDGE)
    lower = np.where(holds_zero, np.minimum(low, -_EDGE), apart[0])
    upper = np.where(holds_zero, np.maximum(high, _EDGE), np.where(positive, high, apart[1]))
    return lower, upper


@dataclass(frozen=True, eq=False)
class _ScoreTests:
    """Score tests of contrasts, shape (rows, p), at any values.

    Parameters
    ----------
    inference : Inference
        The fit.
    errors : NoisyErrors
        Errors of its scores.
    contrasts : ndarray, shape (rows, p)
        The contrasts.
    """

    inference: Inference
    errors: NoisyErrors
    contrasts: FloatArray

    @cached_property
    def value(self) -> FloatArray:
        """The estimates of the contrasts."""
        return np.asarray(self.contrasts @ self.inference.fitted.coefficients)

    @cached_property
    def _directions(self) -> tuple[FloatArray, FloatArray]:
        """Return where a contrast takes the coefficients, by its unit, and its standard error."""
        moved = self.contrasts @ self.inference.errors.total
        variance = np.maximum(np.einsum("rp,rp->r", moved, self.contrasts), 1e-300)
        return moved / variance[:, None], np.sqrt(variance)

    @cached_property
    def _noise(self) -> FloatArray:
        """Covariance of the noise of the scores."""
        noise = self.errors.noise
        if noise is None:
            return np.zeros_like(self.errors.normal)
        return np.asarray(noise.T @ noise / len(noise))

    @cached_property
    def _score(self) -> FloatArray:
        """The scores; if noise has carried them beyond all answers, those the fit expects."""
        facts, b = self.inference.equations, self.inference.fitted.coefficients
        count, edges = facts.released_count, facts.linear.predict(b)
        if facts.covariates is None:
            possible = attainable(facts.score[: facts.items], facts.pairs, facts.function)
        else:
            # a necessary condition, in the direction in which such scores drive the fit
            most = facts.function.most * float(count @ np.abs(edges))
            possible = float(facts.score @ b) < most
        return facts.score if possible else facts.linear.scores(count * facts.function.mean(edges))

    def _scores(
        self, t: FloatArray, rows: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the statistics at values t, their weights, and variances of independent answers.

        These over those at the fit, in the same direction, and at the fit. And by how much the
        variance of what noise of pair counts does to them is larger than there.
        """
        facts, b = self.inference.equations, self.inference.fitted.coefficients
        linear, count = facts.linear, facts.count
        moved = b + self._directions[0][rows] * (t - self.value[rows])[:, None]
        edges = linear.predict(moved)
        information = linear.information(count * facts.function.curvature(edges))
        # what no edge tells of, the constant of worths, gets 1 / p of the trace
        mean = np.trace(information, axis1=1, axis2=2) / len(b)
        rest = np.eye(len(b)) - linear.identity
        least = _LEAST * count.sum() * np.eye(len(b))
        information = information + mean[:, None, None] * rest + least
        weights = solve_each(information, self.contrasts[rows])
        # a direction is meant, whatever its length
        weights = weights / np.maximum(np.abs(weights).max(axis=1, keepdims=True), 1e-300)
        along = linear.predict(weights)
        expected = (along * facts.function.mean(edges)) @ facts.released_count
        variance = (along**2 * facts.spread(edges)).sum(axis=1)
        fit = along**2 @ facts.spread(linear.predict(b))
        grown = facts.count_noise(along, edges) - facts.count_noise(along, linear.predict(b))
        return (
            weights @ self._score - expected,
            weights,
            # its square is taken, and stays finite
            np.minimum(variance / np.maximum(fit, 1e-300), 1e150),
            fit,
            grown,
        )

    def _freedom(self, weights: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the degrees of freedom of the variances of independent answers along weights."""
        facts = self.inference.equations
        spread = facts.spread(facts.linear.predict(self.inference.fitted.coefficients))
        share = spread / np.maximum(facts.count, 1e-300)
        fourth = facts.linear.predict(weights) ** 4 @ (spread * (1.0 - 6.0 * share))
        rare = np.maximum(fourth, 0.0) / np.maximum(variance, 1e-300) ** 2
        lost = np.minimum(0.5 * rare, 1.0 / _LEAST_DF)
        return np.asarray(1.0 / (1.0 / self.errors.df + lost))

    def _shapes(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sizes of the noise of the statistics at values t by their root mean square."""
        weights = self._scores(t, np.arange(len(t)))[1]
        parts = self.errors.components(weights)
        spread = np.sqrt(np.maximum(parts.noise**2 @ parts.share, 1e-300))
        return parts.noise / spread[:, None], parts.share

    def _pvalues(
        self, t: FloatArray, rows: IntArray, shapes: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return p-values at values t, and the statistics, given the shapes of the noise."""
        statistic, weights, ratio, fit, grown = self._scores(t, rows)
        variance, side = self.errors.variances(weights)
        df = None
        if self.inference.release.source == "none":
            variance, df = np.maximum(variance, fit), self._freedom(weights, fit)
        noise = ((weights @ self._noise) * weights).sum(axis=1) + grown
        sizes = shapes[0][rows] * np.sqrt(np.maximum(noise, 0.0))[:, None]
        variance = np.maximum(ratio * variance, 1e-300)
        parts = Components(variance, ratio**2 * side, sizes, shapes[1])
        return self.errors.tail(np.abs(statistic), parts, df), statistic

    @cached_property
    def zero(self) -> FloatArray:
        """P-values of zero."""
        zero = np.zeros(len(self.contrasts))
        return self._pvalues(zero, np.arange(len(zero)), self._shapes(zero))[0]

    def limit(self, side: float, alpha: float) -> FloatArray:
        """Return the limits on one side, below (-1) or above (1)."""
        # the shape of the noise changes slowly: first that at the estimate, then that at the limit
        wald = np.minimum(-ndtri(alpha / 2.0) * self._directions[1], self._far)
        first = self._search(side, alpha, self._shapes_at_fit, wald)
        first = np.minimum(first, self._far)
        shapes = self._shapes(self.value + side * first)
        return np.asarray(self.value + side * self._search(side, alpha, shapes, first))

    @cached_property
    def _shapes_at_fit(self) -> tuple[FloatArray, FloatArray]:
        return self._shapes(self.value)

    @cached_property
    def _far(self) -> FloatArray:
        """Distances from the estimates at which contrasts count as infinite."""
        return np.abs(self.value) + self.inference.equations.function.link.exact.far

    def _search(
        self, side: float, alpha: float, shapes: tuple[FloatArray, FloatArray], start: FloatArray
    ) -> FloatArray:
        """Return the distances from the estimates at which values are rejected, by regula falsi."""
        critical, far = -float(ndtri(alpha / 2.0)), self._far

        def room(distance: FloatArray, rows: IntArray) -> FloatArray:
            """Return how many standard deviations are left until a value is rejected."""
            pvalue, statistic = self._pvalues(self.value[rows] + side * distance, rows, shapes)
            size = -ndtri(0.5 * np.maximum(pvalue, 1e-300))
            return np.asarray(critical + side * np.sign(statistic) * size)

        low, high = np.zeros(len(self.value)), np.full(len(self.value), np.inf)
        room_in, room_out = np.full(len(low), critical), np.full(len(low), -critical)
        trial = start.copy()
        active = np.arange(len(low))
        for _ in range(_STEPS):
            here, left = trial[active], room(trial[active], active)
            inside = left > 0
            # where one end stays, half its room (the Illinois rule)
            staying = np.where(np.isfinite(high[active]), 0.5, 1.0)
            room_out[active] = np.where(inside, staying * room_out[active], left)
            room_in[active] = np.where(inside, left, staying * room_in[active])
            low[active] = np.where(inside, here, low[active])
            high[active] = np.where(inside, high[active], here)
            endless = ~np.isfinite(high[active]) & (here >= far[active])
            low[active] = np.where(endless, np.inf, low[active])
            close = np.abs(left) < _CLOSE
            # as close as this statistics grow in proportion to the distance
            grown = critical / np.where(close, critical - left, critical)
            trial[active] = here * grown
            done = close | endless
            active = active[~done]
            if not len(active):
                break
            a, b = low[active], np.where(np.isfinite(high[active]), high[active], 0.0)
            share = room_in[active] / (room_in[active] - room_out[active])
            within = a + share * (b - a)
            trial[active] = np.where(
                np.isfinite(high[active]), within, np.minimum(2.0 * low[active], far[active])
            )
        return np.where(np.isinf(low), np.inf, trial)


def attainable(score: FloatArray, pairs: PairCounts, function: ScoreFunction) -> bool:
    """Return whether any answers could have such scores, by a necessary condition.

    For the k best-scoring items the scores add up to at most half the comparisons that leave the
    group, or to the function's largest score for each; noise can carry them beyond. For net wins
    on a complete design with equal counts the condition is also sufficient (Landau).
    """
    order = np.argsort(-score)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    better = np.minimum(place[pairs.first], place[pairs.second])
    worse = np.maximum(place[pairs.first], place[pairs.second])
    # a pair is cut by the groups that hold its better item only
    steps = np.bincount(better, pairs.count, minlength=len(order))
    leaving = np.cumsum(steps - np.bincount(worse, pairs.count, minlength=len(order)))[:-1]
    return bool((np.cumsum(score[order])[:-1] < function.most * leaving).all())
