"""Pooling of several releases about the same numbers, by generalised least squares.

Every result is read as equations (:class:`Source`). Its residual at any value of the p numbers has
mean zero at the true one, slope -G, and two errors, that of sampling and that of privacy noise.
Numbers may come in blocks between which nothing is known of covariances: worths are one block of
contrasts, pair fractions as many blocks of one number as there are pairs. Arrays have results
first, blocks second.

**Estimate.** With D_k what differs between results (noise alone if all are of one survey, whose
sampling error they share; else sampling and noise), the pooled value x solves

    sum_k G_k D_k^-1 residual_k(x) = 0,

the precision-weighted mean of one-step estimates x + G_k^-1 residual_k(x), and the best combination
of unbiased equations (Godambe 1960, https://doi.org/10.1214/aoms/1177705693). All G_k and D_k are
taken at one point, the pooled value, and never at a result's own estimate, in which its noise would
choose its weight. Of one survey G and the sampling covariance C are common: averages over results,
weighted by the square of epsilon, as the variance of noise on counts and on second moments falls.

**Errors.** With J = sum_k G_k D_k^-1 G_k the covariance is J^-1 for several surveys. For one it is
J^-1 + G^-1 C G^-1. **Never wider than the best.** By itself result k has G_k^-1 D_k G_k^-1, plus
G^-1 C G^-1 in one survey. J - G_k D_k^-1 G_k is positive semidefinite, being a sum of such
matrices, so J^-1 <= G_k^-1 D_k G_k^-1, in the direction of every contrast. This holds with the same
G, C and D for all, those that are reported here; the standard error that a result printed by itself
has its own estimates in it, and its shrinkage.

**Intervals** of worths with common values are of score tests (:mod:`privrank.results.pooledtests`);
others are Wald's with Student's t, and so are those of more than 50 items. Its degrees of freedom
are Satterthwaite's for sampling variances that are estimated, and such as give t the excess
kurtosis k of the noise: 4 + 6 / k. As t is not brought back to variance 1, and its tail is heavier
than the exponential one of the noise, intervals are wider than the noise asks for. They are wider
by a tenth where there is hardly any sampling error.

**Ties.** Where they have a parameter, each source has its own lambda_k. At the pooled worths it is
the one at which ties are expected as often as source k released them. Let H be the slopes of its
scores, by worths t and by lambda. What a moved lambda_k does to the scores of worths is taken off:
the residual is A times all scores, A = (I, -H_tl / H_ll), with slope A H A' and covariances A C A'.
So a source by itself has the worths of its own fit, with their errors.

**Q** is Cochran's, over its degrees of freedom beside an F distribution, whose second degrees of
freedom come from the same two sources: chi-squared where noise is normal and variances are known.

**Random effects.** The true values of survey k are x + u_k, with u_k drawn independently of each
other around 0. Every survey is solved by itself, with slopes and errors at its own solution, and
the pooled value is the plain mean of the solutions. (A mean of equations would be about mean
probabilities, which are closer to 1/2 than the probability of the mean worths.) Intervals are
Student's t with K - 1 degrees of freedom of the K values. Where these are normal about one mean,
each with a variance of its own, or mixtures of such, as the sum of normal errors and Laplace noise
is, the test keeps its level up to .083 (Bakirov and Szekely 2006,
https://doi.org/10.1007/s10958-006-0366-5; Ibragimov and Mueller 2010,
https://doi.org/10.1198/jbes.2009.08046). It estimates neither weights nor tau. What it assumes is
the form of the u_k: two or three surveys cannot show that surveys are of two camps. The error is at
least that of the mean for common values. Tau is by moments: the variance of the surveys' values,
less what sampling and noise add to it, over all numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

import numpy as np
from scipy.linalg import helmert
from scipy.special import fdtrc, stdtr, stdtrit

from privrank.bradley_terry.dependence import degrees_of_freedom, floored, single_contrasts
from privrank.bradley_terry.equations import ScoreEquations
from privrank.bradley_terry.errors import ScoreErrors
from privrank.bradley_terry.estimate import response_covariance, score_covariance
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.linear import ridge_product
from privrank.bradley_terry.scoretests import ScoreTests
from privrank.consensus.statements import NoisyVotes
from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.tails import BordaDistribution, simulated
from privrank.privacy.knorm import PermutohedronNoise
from privrank.release.names import WORTHS
from privrank.results.pooledtests import Share, pooled_tests
from privrank.util.arrays import FloatArray, IntArray, immutable, readonly_copy
from privrank.util.solvers import find_root, inverse, solve_each

_MAX_FREEDOM = 1e9
"""Degrees of freedom at which t is normal, and F chi-squared."""

_LONGEST_STEP = 2.0
"""Longest step of a number in the search for the pooled value, in units of its prior spread."""

_LARGEST_TIE = 60.0
"""Size of a tie parameter beyond which nobody ties, or everybody, to all digits."""

_ROUNDS = 200
_CLOSE = 1e-10

_DRAWS = 5_000


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One result as estimating equations.

    Parameters
    ----------
    at : callable
        From a point, shape (blocks, p), to the residual there, observed less expected, of this
        shape. And to four matrices by block: the slope of what is expected, the covariance of the
        residual by sampling as measured, the least that this can be, and that by privacy noise.
    freedom : ndarray, shape (blocks,)
        Degrees of freedom with which the sampling covariance is known, infinite if it is given.
    draws : ndarray, shape (draws, p), or None
        Public draws of the noise in any block, for its kurtosis; None where it is taken as normal.
    weight : float
        Weight of slope and sampling covariance in the averages of one survey.
    _fit : Inference or None
        The fit that the equations are of, where they are scores of worths.
    """

    at: Callable[[FloatArray], tuple[FloatArray, ...]]
    freedom: FloatArray
    draws: FloatArray | None = None
    weight: float = 1.0
    _fit: Inference | None = None

    def kurtosis(self, rows: FloatArray) -> FloatArray:
        """Return the excess kurtosis of the noise in combinations of the residual, at least 0."""
        if self.draws is None:
            return np.zeros(len(rows))
        squares = (self.draws @ rows.T) ** 2
        second = np.maximum(squares.mean(axis=0), 1e-300)
        return np.asarray(np.maximum((squares**2).mean(axis=0) / second**2 - 3.0, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class _Equations:
    """All results at one point, arrays by result and block; of one survey with common matrices."""

    residual: FloatArray
    slope: FloatArray
    sampling: FloatArray
    noise: FloatArray
    same: bool

    @classmethod
    def of(cls, sources: Sequence[Source], point: FloatArray, same: bool) -> _Equations:
        """Return the equations of all results at this point."""
        parts = zip(*(source.at(point) for source in sources), strict=True)
        residual, slope, sampling, least, noise = (np.array(part) for part in parts)
        if same:
            weights = np.array([source.weight for source in sources])
            slope, sampling, least = (
                np.broadcast_to(np.average(matrix, axis=0, weights=weights), matrix.shape)
                for matrix in (slope, sampling, least)
            )
        if point.shape[1] > 1:
            # noise on second moments can make what is measured indefinite. Of one survey they are
            # averaged before they are cut off, as else all that noise took below would add up
            pairs = zip(sampling[:, 0], least[:, 0], strict=True)
            sampling = np.array([floored(*pair) for pair in pairs])[:, None]
        return cls(residual, slope, sampling, noise, same)

    @property
    def apart(self) -> FloatArray:
        """Covariances D_k of what differs between results."""
        return self.noise if self.same else self.sampling + self.noise

    def combined(self) -> tuple[FloatArray, FloatArray]:
        """Return D_k^-1 and J^-1 G_k D_k^-1."""
        precision = _inverses(self.apart)
        weighted = self.slope.swapaxes(-1, -2) @ precision
        return precision, _inverses((weighted @ self.slope).sum(axis=0)) @ weighted

    def moved(self, weights: FloatArray) -> FloatArray:
        """Return by how much all results together move the pooled value, shape (blocks, p)."""
        return np.asarray(np.einsum("kbpq,kbq->bp", weights, self.residual))

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sampling and the noise part of the covariance of the pooled value."""
        noise = _through(weights, self.noise).sum(axis=0)
        if self.same:
            return _through(weights.sum(axis=0), self.sampling[0]), noise
        return _through(weights, self.sampling).sum(axis=0), noise


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
    alone : sequence of Pooled
        Where surveys have values of their own about a mean, which is pooled: every one by itself.
    """

    sources: Sequence[Source] = field(repr=False)
    point: FloatArray
    same: bool
    alone: Sequence[Pooled] = ()

    @cached_property
    def _here(self) -> _Equations:
        return _Equations.of(self.sources, self.point, self.same)

    @cached_property
    def _weights(self) -> FloatArray:
        return self._here.combined()[1]

    @property
    def _own(self) -> FloatArray:
        """Values of the surveys by themselves, shape (results, blocks, p)."""
        return np.array([survey.point for survey in self.alone])

    @property
    def tau(self) -> float | None:
        """Standard deviation of each number between surveys; None if they have common values."""
        if not self.alone:
            return None
        between = self._own.var(axis=0, ddof=1).mean() - _mean_variances(self.single).mean()
        return math.sqrt(max(between, 0.0))

    @cached_property
    def parts(self) -> tuple[FloatArray, FloatArray]:
        """Covariances of sampling and of noise, shape (blocks, p, p) each, without tau."""
        if not self.alone:
            return self._here.split(self._weights)
        sampling, noise = np.mean([survey.parts for survey in self.alone], axis=0)
        return sampling / len(self.alone), noise / len(self.alone)

    @cached_property
    def single(self) -> FloatArray:
        """Covariances that each result would have by itself, shape (results, blocks, p, p)."""
        if self.alone:
            return np.array([sum(survey.parts) for survey in self.alone])
        return _through(_inverses(self._here.slope), self._here.sampling + self._here.noise)

    @property
    def shares(self) -> FloatArray:
        """Mean weights of the results, which add up to 1."""
        if self.alone:
            return np.full(len(self.alone), 1.0 / len(self.alone))
        return np.asarray(_mean_variances(self._weights @ self._here.slope).mean(axis=1))

    def errors(self, rows: FloatArray, blocks: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return standard errors of combinations, and the degrees of freedom of their t."""
        sampling, noise = (_forms(rows, part[blocks]) for part in self.parts)
        total = np.maximum(sampling + noise, 1e-300)
        if self.alone:
            values = np.einsum("rp,krp->kr", rows, self._own[:, blocks])
            count = len(self.sources)
            total = np.maximum(total, values.var(axis=0, ddof=1) / count)
            return np.sqrt(total), np.full(len(rows), count - 1.0)
        along = np.einsum("rp,krpq->krq", rows, self._weights[:, blocks])
        # the kurtosis of a sum: those of its parts, by the squares of their shares of variance
        pairs = zip(self.sources, along, strict=True)
        kurtosis = (
            np.array([source.kurtosis(combinations) for source, combinations in pairs])
            * (_forms(along, self._here.noise[:, blocks]) / total) ** 2
        )
        shares = _forms(along, self._here.sampling[:, blocks]) / total
        freedom = self._known
        if self.same:  # one sampling error, known as well as by the release that shows it least
            shares = (sampling / total)[None]
            freedom = freedom.min(axis=0, keepdims=True)
        lost = (shares**2 / freedom[:, blocks]).sum(axis=0)
        return np.sqrt(total), _freedom(lost, kurtosis.sum(axis=0))

    @property
    def _known(self) -> FloatArray:
        """Degrees of freedom of the sampling covariances, shape (results, blocks)."""
        return np.array([source.freedom for source in self.sources])

    def limits(
        self, rows: FloatArray, blocks: IntArray, alpha: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper limits of combinations of one block each, shape (rows, p)."""
        if self._shares is not None:
            return self._tests(rows, *self._shares).limits(np.full(len(rows), alpha))
        value = self.value(rows, blocks)
        (error, freedom) = self.errors(rows, blocks)
        half = -stdtrit(freedom, 0.5 * alpha) * error
        return value - half, value + half

    def pvalues(self, rows: FloatArray, blocks: IntArray, null: float) -> FloatArray:
        """Return two-sided p-values of the hypotheses that combinations are `null`."""
        if self._shares is not None:
            return self._tests(rows, *self._shares).pvalues(np.full(len(rows), null))
        value = self.value(rows, blocks)
        (error, freedom) = self.errors(rows, blocks)
        return np.asarray(2.0 * stdtr(freedom, -np.abs(value - null) / error))

    def value(self, rows: FloatArray, blocks: IntArray) -> FloatArray:
        """Return the pooled combinations."""
        return np.asarray(np.einsum("rp,rp->r", rows, self.point[blocks]))

    @cached_property
    def _shares(self) -> tuple[tuple[Share, ...], ScoreErrors] | None:
        """What each fit has in worths of common values, and the noise of all; else None."""
        fits = [source._fit for source in self.sources if source._fit is not None]
        if self.alone or not fits or fits[0].many or not np.isfinite(self.point).all():
            return None
        basis = np.asarray(helmert(fits[0].equations.items))
        shares = []
        noises = []
        for k, fit in enumerate(fits):
            facts = fit.equations
            b = _at_worths(fit.equations, basis.T @ self.point[0])
            scores = _beside_ties(basis, facts, facts.information(b))
            sampling = self._here.sampling[k, 0]
            noise = self._here.noise[k, 0]
            known = float(self._known[k, 0])
            shares.append(Share(fit, b, scores, self._weights[k, 0], sampling, noise, known))
            noises.append(_apart(fit.draw_noise(b, _DRAWS), k))
        drawn = np.column_stack(noises)
        nothing = np.zeros((drawn.shape[1], drawn.shape[1]))
        return tuple(shares), ScoreErrors(nothing, nothing, drawn if drawn.any() else None)

    def _tests(
        self, rows: FloatArray, shares: tuple[Share, ...], errors: ScoreErrors
    ) -> ScoreTests:
        """Return score tests of combinations of worths."""
        covariance = self.parts[0][0] + self.parts[1][0]
        return pooled_tests(rows, self.point[0], covariance, shares, errors, same=self.same)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the test of heterogeneity, of one block."""
        return int((len(self.sources) - 1) * self.point.shape[1])

    def heterogeneity(self) -> tuple[FloatArray, FloatArray]:
        """Test that all results are about the same value: Q and p-values by block.

        **Null.** Let w_k be the shares of the results, and k_k the largest excess kurtosis that one
        of the numbers has by the noise of result k. Let a_kj be the shares of this noise in the
        variances of its standardised errors: the eigenvalues of D_k^-1 times the covariance of the
        noise. The variance of Q is taken to be 2 df + s, s = sum_k (1 - w_k)^2 k_k sum_j a_kj^2.
        Normal errors times one random scale have this excess where Q / df is of an F distribution
        with df and 4 + 2 df (df + 2) / s degrees of freedom.
        """
        here = self._here
        df = self.freedom
        precision, weights = here.combined()
        # what the pooled value takes of the residuals is taken off
        left = here.residual - np.einsum("kbpq,bq->kbp", here.slope, here.moved(weights))
        statistics = np.einsum("kbp,kbpq,kbq->b", left, precision, left)
        rest = (1.0 - _mean_variances(weights @ here.slope)) ** 2
        shares = precision @ here.noise
        numbers = np.eye(self.point.shape[1])
        largest = np.array([source.kurtosis(numbers).max() for source in self.sources])
        excess = largest @ (rest * np.trace(shares @ shares, axis1=-2, axis2=-1))
        lost = np.zeros(len(statistics))
        if not self.same:
            sampling = _mean_variances(precision @ here.sampling)
            lost = (rest * sampling**2 / self._known).sum(axis=0)
        # of one degree of freedom this is the 4 + 6 / k of Student's t
        second = _freedom(lost, 3.0 * excess / (df * (df + 2)))
        return statistics, np.asarray(fdtrc(df, second, np.maximum(statistics, 0.0) / df))


def _freedom(lost: FloatArray, kurtosis: FloatArray) -> FloatArray:
    """Return degrees of freedom: the inverse of what is lost, and of 4 + 6 / kurtosis."""
    lost = lost + kurtosis / (4.0 * kurtosis + 6.0)
    return np.asarray(1.0 / np.maximum(lost, 1.0 / _MAX_FREEDOM))


def _forms(rows: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return the quadratic forms of rows, shape (..., rows, p), in matrices of these shapes."""
    forms = np.einsum("...rp,...rpq,...rq->...r", rows, matrices, rows)
    return np.asarray(np.maximum(forms, 0.0))


def _mean_variances(matrices: FloatArray) -> FloatArray:
    """Return the means of the diagonals of matrices, shape (..., p, p)."""
    return np.asarray(np.diagonal(matrices, axis1=-2, axis2=-1).mean(axis=-1))


def _through(weights: FloatArray, covariance: FloatArray) -> FloatArray:
    return np.asarray(weights @ covariance @ weights.swapaxes(-1, -2))


def _inverses(matrices: FloatArray) -> FloatArray:
    """Return the inverses of positive definite matrices, NaN where there is none."""
    p = matrices.shape[-1]
    if p == 1:
        return np.divide(1.0, matrices, np.full_like(matrices, np.nan), where=matrices > 0)
    inverted = [inverse(matrix) for matrix in matrices.reshape(-1, p, p)]
    return np.array(inverted).reshape(matrices.shape)


def combine(
    sources: Sequence[Source],
    start: FloatArray,
    *,
    same: bool,
    spread: float = math.inf,
    random: bool = False,
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
    random : bool
        Whether surveys have values of their own about a mean, which is then pooled.

    Notes
    -----
    Equations that noise has carried beyond what answers can give have no finite solution, so a
    ridge, the precision of the prior, is added, and its bias taken off again as in a fit of one
    release (:func:`privrank.bradley_terry.estimate.estimate`): once more, now towards the first
    solution. Weights are those at the solution before.
    """
    if random:
        alone = [combine([source], start, same=False, spread=spread) for source in sources]
        return Pooled(sources, np.mean([survey.point for survey in alone], axis=0), False, alone)
    at = partial(_Equations.of, sources, same=same)
    point = _solve(at, start, start, spread)
    point = _solve(at, point, start, spread)
    if math.isfinite(spread):
        point = _solve(at, point, point, spread)
    return Pooled(sources, point, same)


def _solve(
    at: Callable[[FloatArray], _Equations], start: FloatArray, anchor: FloatArray, spread: float
) -> FloatArray:
    """Solve the pooled equations with the weights at the start and a ridge towards an anchor."""
    # Newton's method on equations whose weights stay where they are
    there = at(start)
    _, weights = there.combined()
    # the ridge counts against the whole error, sampling included
    shrink = spread**-2.0 * sum(there.split(weights))
    point = start
    for _ in range(_ROUNDS):
        here = at(point)
        moved = here.moved(weights) - np.einsum("bpq,bq->bp", shrink, point - anchor)
        step = solve_each((weights @ here.slope).sum(axis=0) + shrink, moved)
        longest = np.abs(step).max(initial=0.0)
        if not np.isfinite(longest):
            return np.full_like(point, np.nan)
        point = point + step * min(1.0, _LONGEST_STEP * spread / max(longest, 1e-300))
        if longest <= _CLOSE * (1.0 + np.abs(point).max(initial=0.0)):
            break
    return np.asarray(point)


def worth_source(inference: Inference) -> Source:
    """Return a fit's noisy scores as equations of the worths' orthonormal contrasts.

    Of the fit itself nothing is used but the release. With pair counts as they were released, also
    where noise has put them below 0, the scores are unbiased at the true worths. What respondents'
    responses add, and what noise there is on the worths of objective perturbation, counts as noise.
    """
    facts = inference.equations
    release = inference.release
    linear = facts.linear
    basis = np.asarray(helmert(facts.items))
    added = response_covariance(facts)

    def at(point: FloatArray) -> tuple[FloatArray, ...]:
        b = _at_worths(facts, basis.T @ point[0])
        # what the counts, as released, lead to expect at these worths, and what was scored
        mean = facts.function.mean(linear.predict(b))
        residual = facts.score - linear.scores(facts.by_edge(facts.released) * mean)
        slope = facts.information(b)
        noise = facts.noise_covariance(b) + added
        if WORTHS in release.parts:
            hessian = slope + ridge_product(inference.fitted.ridge, linear.identity)
            noise = noise + release.parts[WORTHS].noise_variance * (hessian @ hessian)
        measured = least = score_covariance(facts, release, b) - added
        # how ties go with net wins is not measured, but bounded in the covariance
        moments = None if facts.tied else single_contrasts(facts, release, b)
        if moments is not None:
            measured = moments.measured
            least = moments.least
        matrices = (slope, measured, least, noise)
        rows = _beside_ties(basis, facts, slope)
        return (rows @ residual)[None], *((rows @ matrix @ rows.T)[None] for matrix in matrices)

    errors = inference.score_errors()
    draws = None
    if errors is not None and errors.noise is not None:
        b = inference.fitted.coefficients
        draws = errors.noise @ _beside_ties(basis, facts, facts.information(b)).T
    freedom = np.array([degrees_of_freedom(release)])
    return Source(at, freedom, draws, release.epsilon**2, inference)


def _apart(noise: FloatArray, k: int) -> FloatArray:
    """Return draws in another order, so that those of several results are independent."""
    return noise[public_generator("pooled noise", k).permutation(len(noise))]


def _at_worths(facts: ScoreEquations, worths: FloatArray) -> FloatArray:
    """Return the coefficients of a fit at these worths."""
    return np.append(worths, _tie_parameter(facts, worths)) if facts.tied else worths


def _tie_parameter(facts: ScoreEquations, worths: FloatArray) -> float:
    """Return the tie parameter at which ties are as many as released, given the worths."""

    def beyond(tie: float) -> float:
        mean = facts.function.mean(facts.linear.predict(np.append(worths, tie)))
        return float(
            facts.linear.scores(facts.by_edge(facts.released) * mean)[-1] - facts.score[-1]
        )

    return find_root(beyond, -_LARGEST_TIE, _LARGEST_TIE)


def _beside_ties(basis: FloatArray, facts: ScoreEquations, slope: FloatArray) -> FloatArray:
    """Return contrasts of the scores that a tie parameter, if there is one, does not move."""
    if not facts.tied:
        return basis
    alone = slope[:-1, -1:] / max(float(slope[-1, -1]), 1e-300)
    return np.asarray(basis @ np.column_stack((np.eye(facts.items), -alone)))


def _means(
    values: FloatArray,
    largest: float,
    units: FloatArray | float,
    noise: FloatArray | float,
    draws: FloatArray | None,
) -> Source:
    """Return means of values between 0 and `largest`, each a block of its own.

    **Statistic.** Such a mean s of n units has at most the variance s (b - s) / n, b the largest
    (Bhatia and Davis); a fraction, which has b = 1, has just that. It is taken at the mean of n + 4
    values, two more at either end (Agresti and Coull 1998), as Wald's intervals need it near 0 and
    b.
    """
    shape = (len(values), 1, 1)

    def at(point: FloatArray) -> tuple[FloatArray, ...]:
        centre = np.clip(point[:, 0], 0.0, largest)
        centre = centre + 2.0 * (largest - 2.0 * centre) / (units + 4.0)
        sampling = np.broadcast_to(centre * (largest - centre) / units, len(values)).reshape(shape)
        noises = np.broadcast_to(noise, len(values)).reshape(shape)
        return values[:, None] - point, np.ones(shape), sampling, sampling, noises

    return Source(at, np.full(len(values), np.inf), draws)


def fraction_source(stated: NoisyVotes) -> Source:
    """Return the pair fractions, the first of two items of the list before the second."""
    assert stated.fractions is not None
    values = stated.fractions[np.triu_indices(len(stated.fractions), 1)]
    return _means(values, 1.0, stated.units, stated.noise_sd**2, _draws(stated.noise, 1))


def score_source(stated: NoisyVotes) -> Source:
    """Return the Borda scores."""
    m = len(stated.scores)
    noise = stated.noise
    summed = 1 if stated.fractions is None else m - 1
    if isinstance(noise, PermutohedronNoise):
        # of one shape at every scale: draws take seconds where items are many, and sites share them
        noise = PermutohedronNoise(noise.items, 2.0**-10, 1)
    errors = stated.score_errors("sample")
    return _means(stated.scores, m - 1.0, stated.units, errors**2, _draws(noise, summed))


@lru_cache(maxsize=16)
def _draws(noise: BordaDistribution, summed: int) -> FloatArray:
    """Return public draws of the noise of one number, the sum of so many, whatever their scale."""
    size = (_DRAWS, noise.items if isinstance(noise, PermutohedronNoise) else summed)
    generator = public_generator("pooled votes", summed)
    drawn = np.asarray(simulated(noise, size, generator), dtype=np.float64)
    return readonly_copy(drawn[:, :summed].sum(axis=1, keepdims=True), np.float64)
