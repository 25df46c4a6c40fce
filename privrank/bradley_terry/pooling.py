"""Pooling of several releases about the same numbers, by their estimating equations.

Every result is read as equations: its residual at any value of the p numbers has mean zero at the
true one, slope -G, and two errors, that of sampling and that of privacy noise. Numbers may come in
blocks between which nothing is known of covariances: worths are one block of contrasts, pair
fractions as many blocks of one number as there are pairs. Arrays have results first, blocks second.

**Statistic.** With D_k what differs between results (noise alone if all are of one survey, whose
sampling error they share; else sampling and noise), the pooled value x solves

    sum_k G_k D_k^-1 residual_k(x) = 0,

the best combination of unbiased equations (Godambe 1960, https://doi.org/10.1214/aoms/1177705693),
which is generalised least squares in one step. All G_k and D_k are taken at one point, the pooled
value, and never at a result's own estimate, in which its noise would choose its weight. Of one
survey G is common: its average, with the public precision of each release's counts as weights.

**Errors.** With J = sum_k G_k D_k^-1 G_k the covariance is J^-1 for several surveys, and for one
J^-1 + G^-1 C G^-1, C the covariance of its one sampling error, of which every result that measured
it has an estimate; they are averaged with public weights. **Never wider than the best.** By itself
result k has G_k^-1 D_k G_k^-1, plus G^-1 C G^-1 in one survey. J - G_k D_k^-1 G_k is positive
semidefinite, being a sum of such matrices, so J^-1 <= G_k^-1 D_k G_k^-1, in the direction of every
contrast (where G_k is singular, what result k says of some contrast has no bound at all). This
holds with the same G, C and D for all, those that are reported here; the standard error that a
result printed by itself has its own estimates in it, and its shrinkage.

**Second moments.** Where they are released of respondents' answers, their estimates of the variance
of one combination are unbiased, and noise may take them below its least value, that of independent
answers. Those of one survey are averaged first and cut off then: in the matrix C above in every
direction, in intervals and p-values for each combination alone, which is no more. Cut off one by
one they would add up all that noise took below. The largest design effect, a bound, does not count
beside them. Of several surveys each has its matrix, cut off in every direction: there the weights
depend on it, so that where noise made it small the weight is large, and combinations cut off alone
would be taken as too sure (95 % intervals covered .938).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrank.bradley_terry.errors import Components, NoisyErrors, from_normal, to_normal
from privrank.bradley_terry.sources import (
    Source,
    Stacked,
    equations_at,
    inverses,
    measured_shares,
)
from privrank.hypotheses.nulls import public_generator
from privrank.util.solvers import bracket, solve_each, square_root

__all__ = ["Pooled", "pool"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MOST_DRAWS, _LEAST_DRAWS, _NUMBERS = 9_999, 999, 1_000_000
"""Draws of the null distribution of a test of heterogeneity, fewer where there are many blocks."""

_FAREST = 2.0
"""Longest step of a number in the search for the pooled value, in units of its prior spread."""

_ROUNDS, _CLOSE, _HALVINGS = 200, 1e-10, 30

_SHAPES = 5_000
"""Draws of noise at most: what is pooled is nearer to normal than what is not."""

_FAR_SHARE = 0.01
"""Share of the draws beyond which a tail is exponential."""


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """Combinations of the residuals, of one block each, and the noise in them.

    Parameters
    ----------
    blocks : ndarray, shape (rows,)
        The block of each.
    residuals : ndarray, shape (results, rows, p)
        The combinations.
    normal : ndarray, shape (rows,)
        Variances of noise that is taken as normal.
    sizes, share : ndarray, shapes (rows, sizes) and (sizes,)
        Sizes of all other noise, with their probabilities.
    """

    blocks: IntArray
    residuals: FloatArray
    normal: FloatArray
    sizes: FloatArray
    share: FloatArray


@dataclass(frozen=True, eq=False)
class Pooled:
    """A pooled value with its errors.

    Parameters
    ----------
    sources : sequence of Source
        What was pooled.
    point : ndarray, shape (blocks, p)
        The pooled value.
    same : bool
        Whether all results are of one survey.
    """

    sources: Sequence[Source] = field(repr=False)
    point: FloatArray
    same: bool

    @cached_property
    def _here(self) -> Stacked:
        return Stacked.of(self.sources, self.point, self.same)

    @cached_property
    def _weights(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self._here.weights()

    @cached_property
    def parts(self) -> tuple[FloatArray, FloatArray]:
        """Covariances of sampling and of noise, shape (blocks, p, p) each."""
        return self._here.split(self._weights[2])

    @property
    def covariance(self) -> FloatArray:
        """Covariances of both, shape (blocks, p, p)."""
        return np.asarray(self.parts[0] + self.parts[1])

    @cached_property
    def single(self) -> FloatArray:
        """Covariances that each result would have by itself, shape (results, blocks, p, p)."""
        here = self._here
        back = inverses(here.information)
        return np.asarray(back @ (here.sampling + here.noise) @ back)

    @property
    def shares(self) -> FloatArray:
        """Mean weights of the results, which add up to 1."""
        shares = self._weights[2] @ self._here.information
        return np.asarray(np.trace(shares, axis1=-2, axis2=-1).mean(axis=1) / self.point.shape[1])

    @property
    def scored(self) -> bool:
        """Whether there are score tests of all results."""
        return all(source.expected is not None for source in self.sources)

    @property
    def far(self) -> float:
        """Distance from the pooled value at which a combination counts as infinite."""
        return max(source.far for source in self.sources)

    @property
    def precision(self) -> FloatArray:
        """Inverses D_k^-1 of what differs between results, shape (results, blocks, p, p)."""
        return self._weights[0]

    @cached_property
    def _noise(self) -> FloatArray:
        """Draws of the noise of all results side by side, shape (draws, results p).

        Each result's in another order: results of one plan have the same public draws.
        """
        p = self.point.shape[1]
        known = [source.draws for source in self.sources if source.draws is not None]
        length = min((len(each) for each in known), default=1)
        length = min(length, _SHAPES)
        found = np.zeros((length, len(self.sources), p))
        for k, source in enumerate(self.sources):
            if source.draws is not None:
                order = public_generator("order of draws", k).permutation(length)
                found[:, k] = source.draws[order]
        return found.reshape(length, -1)

    @property
    def _drawn(self) -> NDArray[np.bool_]:
        return np.array([source.draws is not None for source in self.sources])

    def along(self, rows: FloatArray, blocks: IntArray) -> Along:
        """Return combinations of the pooled value, given the block of each, with their noise."""
        return self.through(np.einsum("rp,krpq->krq", rows, self._weights[2][:, blocks]), blocks)

    def through(self, residuals: FloatArray, blocks: IntArray, like: Along | None = None) -> Along:
        """Return combinations of the residuals, shape (results, rows, p), with their noise.

        It has the shape of the noise of other ones, if some are given.
        """
        variance = _forms(residuals, self._here.noise[:, blocks])
        if like is None:
            flat = residuals.transpose(1, 0, 2).reshape(len(blocks), -1)
            p = flat.shape[1]
            noise = self._noise if self._drawn.any() else None
            found = NoisyErrors(np.zeros((p, p)), noise).components(flat)
            sizes, share = found.noise, found.share
        else:
            sizes, share = like.sizes, like.share
        size = np.sqrt(np.maximum(sizes**2 @ share, 1e-300))
        sizes = sizes * (np.sqrt(variance[self._drawn].sum(axis=0)) / size)[:, None]
        return Along(blocks, residuals, variance[~self._drawn].sum(axis=0), sizes, share)

    def errors(
        self, shown: Along, point: FloatArray | None = None, ratio: FloatArray | float = 1.0
    ) -> tuple[Components, FloatArray]:
        """Return the errors of combinations, and their degrees of freedom by Satterthwaite's rule.

        With the sampling error that there is at the pooled value, or at another one, times a ratio.
        """
        here = self._here
        if point is not None:
            here = Stacked.of(self.sources, point, self.same)
        rows, given = shown.residuals, np.ones(len(self.sources))
        if self.same:
            rows = np.broadcast_to(rows.sum(axis=0), rows.shape)
            given = measured_shares(self.sources)
        measured = given[:, None] * _forms(rows, here.sampling[:, shown.blocks]) * ratio
        least, side = measured.copy(), np.zeros(len(measured[0]))
        for k, moments in enumerate(here.moments):
            if moments is not None:
                forms = moments.forms(rows[k])
                if self.same:
                    measured[k], least[k] = (given[k] * form * ratio for form in forms[:2])
                side += (given[k] * ratio) ** 2 * forms[2]
        variance = np.maximum(measured.sum(axis=0), least.sum(axis=0))
        whole = np.maximum(variance + shown.normal, 1e-300)
        parts = Components(whole, side, shown.sizes, shown.share)
        total = parts.total**2
        freedom = np.array([source.freedom[shown.blocks] for source in self.sources])
        if self.same:
            lost = (variance / total) ** 2 / freedom.min(axis=0)
        else:
            lost = ((measured / total) ** 2 / freedom).sum(axis=0)
        lost = lost + 0.5 * side / total**2
        return parts, np.divide(1.0, lost, np.full_like(lost, np.inf), where=lost > 0)

    def pvalues(
        self,
        shown: Along,
        away: FloatArray,
        point: FloatArray | None = None,
        ratio: FloatArray | float = 1.0,
    ) -> FloatArray:
        """Return how probable errors of combinations beyond `away` are, shape (rows,)."""
        parts, freedom = self.errors(shown, point, ratio)
        total = parts.total
        return parts.tail(total * to_normal(np.abs(away) / total, freedom))

    def half_widths(self, shown: Along, alpha: float) -> FloatArray:
        """Return the errors of combinations that are as improbable as `alpha`, shape (rows,)."""
        parts, freedom = self.errors(shown)
        total = parts.total
        low = np.zeros(len(total))
        high = parts.noise[:, -1] - float(ndtri(0.5 * alpha)) * np.sqrt(parts.variance)
        low, high = bracket(lambda h: parts.tail(h) > alpha, low, high, _HALVINGS)
        return np.asarray(total * from_normal(0.5 * (low + high) / total, freedom))

    def inverted(self, alpha: float, largest: float) -> tuple[FloatArray, FloatArray]:
        """Return all values between 0 and `largest` that are not rejected, for blocks of one.

        With the sampling error that there is at each value, as in Wilson's interval.
        """
        blocks = np.arange(len(self.point))
        shown = self.along(np.ones((len(blocks), 1)), blocks)
        centre = np.clip(self.point[:, 0], 0.0, largest)

        def kept(value: FloatArray) -> NDArray[np.bool_]:
            return np.asarray(self.pvalues(shown, centre - value, value[:, None]) > alpha)

        edges = (np.full(len(centre), edge) for edge in (0.0, largest))
        low, high = (bracket(kept, centre, edge, _HALVINGS)[1] for edge in edges)
        return low, high

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the test of heterogeneity, of one block."""
        return int((len(self.sources) - 1) * self.point.shape[1])

    def heterogeneity(self) -> tuple[FloatArray, FloatArray]:
        """Test that all results are about the same value: statistics and p-values by block.

        **Statistic.** Cochran's Q in several dimensions, sum_k r_k' D_k^-1 r_k with r_k the
        residuals at the pooled value, less what their pooled error takes: with g the sum of
        G_k D_k^-1 r_k, g' J^-1 g. **Null.** Normal sampling error and noise by its distribution,
        from a public counter seed; the farthest draws of the root of Q stand for an exponential
        tail of their mean excess, as all noise here has such a tail or a lighter one.
        """
        here, (precision, covariance, _) = self._here, self._weights
        found = _cochran(here.residual[:, None], here.information, precision, covariance)
        blocks = [self._null(block) for block in range(len(self.point))]
        values = np.sqrt(np.maximum(found[0], 0.0))
        pairs = zip(values, blocks, strict=True)
        return found[0], np.array([_beyond(float(value), null) for value, null in pairs])

    @cached_property
    def _standard(self) -> tuple[FloatArray, FloatArray]:
        """Draws of normal errors, shape (draws, results, p), and of the noise, as many."""
        (blocks, p), k = self.point.shape, len(self.sources)
        draws = max(_LEAST_DRAWS, min(_MOST_DRAWS, _NUMBERS // blocks))
        normal = public_generator("heterogeneity", k, p).standard_normal((draws, k, p))
        return normal, np.resize(self._noise, (draws, k * p)).reshape(draws, k, p)

    def _null(self, block: int) -> FloatArray:
        """Return draws of the root of Q of one block under the hypothesis."""
        here, (precision, covariance, _) = self._here, self._weights
        normal, drawn = self._standard
        errors = np.empty_like(normal)
        for k, source in enumerate(self.sources):
            known, noise = here.sampling[k, block] * (not self.same), here.noise[k, block]
            size = source.freedom[block]
            stretch = np.ones((len(normal), 1))
            if not self.same and math.isfinite(size):
                generator = public_generator("heterogeneity, freedom", k)
                stretch = np.sqrt(size / generator.chisquare(size, (len(normal), 1)))
            errors[:, k] = stretch * (normal[:, k] @ square_root(known).T)
            if source.draws is None:
                generator = public_generator("heterogeneity, noise", k)
                errors[:, k] += generator.standard_normal(drawn[:, k].shape) @ square_root(noise).T
            else:
                size = np.mean(drawn[:, k] ** 2, axis=0)
                scale = np.sqrt(np.diag(noise) / np.maximum(size, 1e-300))
                errors[:, k] += drawn[:, k] * scale
        one = slice(block, block + 1)
        draws = _cochran(
            errors.transpose(1, 0, 2)[:, :, None],
            here.information[:, one],
            precision[:, one],
            covariance[one],
        )
        return np.asarray(np.sqrt(np.maximum(draws[:, 0], 0.0)))


def _forms(rows: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return the quadratic forms of rows, shape (results, rows, p), in their matrices."""
    matrices = matrices[: len(rows)]
    found = np.einsum("krp,krpq,krq->kr", rows, matrices, rows)
    return np.asarray(np.maximum(found, 0.0))


def _cochran(
    residual: FloatArray, information: FloatArray, precision: FloatArray, covariance: FloatArray
) -> FloatArray:
    """Return Cochran's Q of residuals, shape (results, draws, blocks, p), by draw and block."""
    weighted = np.einsum("kbpq,kdbq->kdbp", precision, residual)
    total = np.einsum("kdbp,kdbp->db", weighted, residual)
    common = np.einsum("kbpq,kdbq->dbp", information, weighted)
    return np.asarray(total - np.einsum("dbp,bpq,dbq->db", common, covariance, common))


def _beyond(value: float, draws: FloatArray) -> float:
    """Return how probable a value is to be exceeded, by draws and an exponential tail."""
    draws = np.sort(draws)
    last = int(_FAR_SHARE * len(draws))
    start = draws[-last - 1]
    if not value > start:
        return float((1 + np.count_nonzero(draws >= value)) / (1 + len(draws)))
    excess = float((draws[-last:] - start).mean())
    return last / len(draws) * math.exp(-(value - start) / max(excess, 1e-300))


def pool(
    sources: Sequence[Source], start: FloatArray, *, same: bool, spread: float = math.inf
) -> Pooled:
    """Return the pooled value.

    Parameters
    ----------
    sources : sequence of Source
        What is pooled.
    start : ndarray, shape (blocks, p)
        A value that depends on no release.
    same : bool
        Whether all results are of one survey.
    spread : float
        Standard deviation that the numbers are taken to have about `start`, infinite for none.

    Notes
    -----
    Equations that noise has carried beyond what answers can give have no finite solution, so a
    ridge, the precision of the prior, is added, and its bias taken off again as in a fit of one
    release (:func:`privrank.bradley_terry.estimate.estimate`): once more, now towards the first
    solution. Weights are those at `start`, then those at the solution with them.
    """
    ridge = spread**-2.0
    first = _solve(sources, start, start, start, ridge, same)
    second = _solve(sources, first, first, start, ridge, same)
    if ridge > 0:
        second = _solve(sources, second, second, second, ridge, same)
    return Pooled(sources, second, same)


def _solve(
    sources: Sequence[Source],
    weighed: FloatArray,
    start: FloatArray,
    anchor: FloatArray,
    ridge: float,
    same: bool,
) -> FloatArray:
    """Solve the pooled equations with the weights at one value and a ridge towards another."""
    there = Stacked.of(sources, weighed, same)
    weights = there.weights()[2]
    sampling, noise = there.split(weights)
    # the ridge counts against the whole error, sampling included
    shrink, point = ridge * (sampling + noise), start
    for _ in range(_ROUNDS):
        residual, information = equations_at(sources, point, same)
        moved = np.einsum("kbpq,kbq->bp", weights, residual)
        moved = moved - np.einsum("bpq,bq->bp", shrink, point - anchor)
        step = solve_each((weights @ information).sum(axis=0) + shrink, moved)
        longest = np.abs(step).max(initial=0.0)
        if not np.isfinite(longest):
            return np.full_like(point, np.nan)
        if ridge > 0:
            step = step * min(1.0, _FAREST / math.sqrt(ridge) / max(longest, 1e-300))
        point = point + step
        if longest <= _CLOSE * (1.0 + np.abs(point).max(initial=0.0)):
            break
    return np.asarray(point)
