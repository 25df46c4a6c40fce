"""Pooling of several releases about the same numbers, by generalised least squares.

Every result is represented by estimating equations (:class:`Source`) for p numbers. The residual of
the equations is a function of a value of these numbers. At the true value it has mean zero and
slope -G. Its error has two parts, sampling error and privacy noise. Numbers may be in blocks
between which covariances are unknown: worths are one block of contrasts, and each pair fraction is
a block of one number. In arrays the first axis is for results and the second for blocks.

**Estimate.** Let D_k be the covariance of the part of the error that differs between results. If
all results are of one survey, they share its sampling error, and D_k is the covariance of the noise
alone. If not, D_k includes sampling error and noise. The pooled value x solves

    sum_k G_k D_k^-1 residual_k(x) = 0.

It is the precision-weighted mean of one-step estimates x + G_k^-1 residual_k(x), and the optimal
combination of unbiased equations (Godambe 1960, https://doi.org/10.1214/aoms/1177705693). All G_k
and D_k are evaluated at one point, the pooled value. They are never evaluated at the estimate of a
single result, because its noise would then influence its weight. If all results are of one survey,
G and the sampling covariance C are common. They are averages over results, weighted by the square
of epsilon, because the variance of noise on counts and on second moments decreases with this
square.

**Errors.** Let J = sum_k G_k D_k^-1 G_k. For several surveys the covariance is J^-1. For one survey
it is J^-1 + G^-1 C G^-1. **Never wider than the best.** The covariance of result k alone is G_k^-1
D_k G_k^-1, plus G^-1 C G^-1 for one survey. J - G_k D_k^-1 G_k is positive semidefinite because it
is a sum of positive semidefinite matrices. Hence J^-1 <= G_k^-1 D_k G_k^-1 in the direction of
every contrast. This comparison uses the same G, C and D for all results, which are reported here.
The standard error in the summary of a single result differs, because it uses the estimates and the
shrinkage of that result.

**Intervals** of worths with common values invert score tests (:mod:`privrank.results.pooledtests`).
All other intervals, and intervals for more than 50 items, are Wald intervals with Student's t. The
degrees of freedom combine two sources: Satterthwaite's rule for estimated sampling variances, and 4
+ 6 / k, at which t has the excess kurtosis k of the noise. The intervals are conservative, for two
reasons: t is not rescaled to variance 1, and its tail is heavier than the exponential tail of the
noise. They are about 10% too wide if there is very little sampling error.

**Ties.** If ties have a parameter, each source has its own lambda_k. At the pooled worths, lambda_k
is the value at which the expected number of ties equals the number released by source k. Let H be
the slopes of the scores of this source with respect to the worths t and lambda. The effect of a
change in lambda_k on the scores of worths is removed: the residual is A times all scores, A = (I,
-H_tl / H_ll), with slope A H A' and covariances A C A'. Therefore a single source gives the worths
of its own fit, with their standard errors.

**Q** is Cochran's Q. Divided by its degrees of freedom, it is compared with an F distribution,
whose second degrees of freedom come from the same two sources. If the noise is normal and variances
are known, Q is compared with a chi-squared distribution.

**Random effects.** The true values of survey k are x + u_k, with u_k drawn independently of each
other around 0. The equations of every survey are solved separately, with slopes and errors at the
solution of the survey. The pooled value is the unweighted mean of the solutions. (A mean of
equations would estimate mean probabilities, which are closer to 1/2 than the probability of the
mean worths.) Intervals are Student's t intervals of the K values with K - 1 degrees of freedom.
Suppose that the values are normal about one mean, each with its own variance, or mixtures of such
normal values, such as sums of normal errors and Laplace noise. Then the test has size at most alpha
for all alpha up to 0.083 (Bakirov and Szekely 2006, https://doi.org/10.1007/s10958-006-0366-5;
Ibragimov and Mueller 2010, https://doi.org/10.1198/jbes.2009.08046). The test estimates neither
weights nor tau. It assumes the form of the distribution of u_k: two or three surveys cannot show
that there are two groups of surveys. The standard error is at least the one for common values. Tau
is estimated by moments: it is the variance of the values of the surveys, minus the contributions of
sampling and noise, over all numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

import numpy as np
from scipy.linalg import helmert
from scipy.special import fdtrc, stdtr, stdtrit

from privrank.bradley_terry.dependence import degrees_of_freedom, floored
from privrank.bradley_terry.equations import ScoreEquations
from privrank.bradley_terry.estimate import response_covariance, score_covariance
from privrank.bradley_terry.inference import Inference, ScoreErrors, single_contrasts
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
"""Size of a tie parameter at which the probability of a tie is 0 or 1 to all digits."""

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
        Function of a point, shape (blocks, p). It returns the residual at this point (observed
        minus expected, of the same shape) and four matrices by block: the slope of the expected
        values, the sampling covariance of the residual as measured, a lower bound of this
        covariance, and the covariance of the residual from privacy noise.
    freedom : ndarray, shape (blocks,)
        Degrees of freedom of the estimated sampling covariance, infinite if it is known.
    draws : ndarray, shape (draws, p), or None
        Public draws of the noise in any block, for its kurtosis; None if the noise is taken as
        normal.
    weight : float
        Weight of slope and sampling covariance in the averages of one survey.
    _fit : Inference or None
        The fit of the equations, if they are scores of worths.
    """

    at: Callable[[FloatArray], tuple[FloatArray, ...]]
    freedom: FloatArray
    draws: FloatArray | None = None
    weight: float = 1.0
    _fit: Inference | None = None

    def kurtosis(self, rows: FloatArray) -> FloatArray:
        """Return the excess kurtosis, at least 0, of noise in combinations."""
        if self.draws is None:
            return np.zeros(len(rows))
        squares = (self.draws @ rows.T) ** 2
        second = np.maximum(squares.mean(axis=0), 1e-300)
        return np.asarray(np.maximum((squares**2).mean(axis=0) / second**2 - 3.0, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class _Equations:
    """Equations of all results at one point, in arrays by result and block.

    Results of one survey have common matrices.
    """

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
            # noise on second moments can make measured covariances indefinite. Results of one
            # survey are averaged before they are floored, because raised values would add up
            pairs = zip(sampling[:, 0], least[:, 0], strict=True)
            sampling = np.array([floored(*pair) for pair in pairs])[:, None]
        return cls(residual, slope, sampling, noise, same)

    @property
    def apart(self) -> FloatArray:
        """Covariances D_k of the errors that differ between results."""
        return self.noise if self.same else self.sampling + self.noise

    def combined(self) -> tuple[FloatArray, FloatArray]:
        """Return D_k^-1 and J^-1 G_k D_k^-1."""
        precision = _inverses(self.apart)
        weighted = self.slope.swapaxes(-1, -2) @ precision
        return precision, _inverses((weighted @ self.slope).sum(axis=0)) @ weighted

    def moved(self, weights: FloatArray) -> FloatArray:
        """Return the step of the pooled value by all results, shape (blocks, p)."""
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
        The results that are pooled.
    point : ndarray, shape (blocks, p)
        The pooled value.
    same : bool
        Whether all results are of one survey.
    alone : sequence of Pooled
        With random effects, the separate value of every survey; the pooled value is their mean.
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
        """Separate values of the surveys, shape (results, blocks, p)."""
        return np.array([survey.point for survey in self.alone])

    @property
    def tau(self) -> float | None:
        """Standard deviation between surveys by number; None for common values."""
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
        """Covariances of each result alone, shape (results, blocks, p, p)."""
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
        """Return standard errors of combinations and their degrees of freedom."""
        sampling, noise = (_forms(rows, part[blocks]) for part in self.parts)
        total = np.maximum(sampling + noise, 1e-300)
        if self.alone:
            values = np.einsum("rp,krp->kr", rows, self._own[:, blocks])
            count = len(self.sources)
            total = np.maximum(total, values.var(axis=0, ddof=1) / count)
            return np.sqrt(total), np.full(len(rows), count - 1.0)
        along = np.einsum("rp,krpq->krq", rows, self._weights[:, blocks])
        # the kurtosis of a sum is the sum over parts of kurtosis times squared variance share
        pairs = zip(self.sources, along, strict=True)
        kurtosis = (
            np.array([source.kurtosis(combinations) for source, combinations in pairs])
            * (_forms(along, self._here.noise[:, blocks]) / total) ** 2
        )
        shares = _forms(along, self._here.sampling[:, blocks]) / total
        freedom = self._known
        if self.same:  # one sampling error, with the smallest degrees of freedom of all releases
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
        """Return limits of combinations of one block each, shape (rows, p)."""
        if self._shares is not None:
            return self._tests(rows, *self._shares).limits(np.full(len(rows), alpha))
        value = self.value(rows, blocks)
        (error, freedom) = self.errors(rows, blocks)
        half = -stdtrit(freedom, 0.5 * alpha) * error
        return value - half, value + half

    def pvalues(self, rows: FloatArray, blocks: IntArray, null: float) -> FloatArray:
        """Return two-sided p-values for the hypotheses that combinations are `null`."""
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
        """Shares of the fits in common worths, and the noise of all; None if none."""
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

        **Null.** Let w_k be the shares of the results, and k_k the largest excess kurtosis of a
        number from the noise of result k. Let a_kj be the shares of this noise in the variances of
        the standardised errors of result k: the eigenvalues of D_k^-1 times the covariance of the
        noise. The variance of Q is taken to be 2 df + s, s = sum_k (1 - w_k)^2 k_k sum_j a_kj^2.
        Normal errors times one random scale have this relative variance if Q / df has an F
        distribution with df and 4 + 2 df (df + 2) / s degrees of freedom.
        """
        here = self._here
        df = self.freedom
        precision, weights = here.combined()
        # subtract the contribution of the pooled value to the residuals
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
        # with one degree of freedom this is the 4 + 6 / k of Student's t
        second = _freedom(lost, 3.0 * excess / (df * (df + 2)))
        return statistics, np.asarray(fdtrc(df, second, np.maximum(statistics, 0.0) / df))


def _freedom(lost: FloatArray, kurtosis: FloatArray) -> FloatArray:
    """Return degrees of freedom from estimated variances and from the kurtosis."""
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
        The results that are pooled.
    start : ndarray, shape (blocks, p)
        A value that depends on no release.
    same : bool
        Whether all results are of one survey.
    spread : float
        Assumed standard deviation of the numbers about `start`; infinite for no prior.
    random : bool
        Whether surveys have random values about a mean, which is then estimated.

    Notes
    -----
    If noise moves the scores outside the range of possible data, the equations have no finite
    solution. Therefore a ridge, the precision of the prior, is added. Its bias is then removed by
    the method of a single fit (:func:`privrank.bradley_terry.estimate.estimate`): the equations are
    solved again, with the ridge towards the first solution. Each step uses the weights at the
    previous solution.
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
    # Newton's method with fixed weights
    there = at(start)
    _, weights = there.combined()
    # the ridge is relative to the whole error, including sampling error
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
    """Return noisy scores as equations for orthonormal contrasts of the worths.

    The equations use the release and not the fitted values. With the pair counts as released, even
    if noise made them negative, the scores are unbiased at the true worths. Randomised response of
    respondents and the noise on worths from objective perturbation are included in the noise.
    """
    facts = inference.equations
    release = inference.release
    linear = facts.linear
    basis = np.asarray(helmert(facts.items))
    added = response_covariance(facts)

    def at(point: FloatArray) -> tuple[FloatArray, ...]:
        b = _at_worths(facts, basis.T @ point[0])
        # expected scores at these worths, by the released counts, and observed scores
        mean = facts.function.mean(linear.predict(b))
        residual = facts.score - linear.scores(facts.by_edge(facts.released) * mean)
        slope = facts.information(b)
        noise = facts.noise_covariance(b) + added
        if WORTHS in release.parts:
            hessian = slope + ridge_product(inference.fitted.ridge, linear.identity)
            noise = noise + release.parts[WORTHS].noise_variance * (hessian @ hessian)
        measured = least = score_covariance(facts, release, b) - added
        # the covariance of ties with net wins is not measured but bounded
        moments = None if facts.tied else single_contrasts(facts, release, b)
        if moments is not None:
            measured = moments.measured
            least = moments.least
        matrices = (slope, measured, least, noise)
        rows = _beside_ties(basis, facts, slope)
        return (rows @ residual)[None], *((rows @ matrix @ rows.T)[None] for matrix in matrices)

    errors = inference.score_errors
    draws = None
    if errors is not None and errors.noise is not None:
        b = inference.fitted.coefficients
        draws = errors.noise @ _beside_ties(basis, facts, facts.information(b)).T
    freedom = np.array([degrees_of_freedom(release)])
    return Source(at, freedom, draws, release.epsilon**2, inference)


def _apart(noise: FloatArray, k: int) -> FloatArray:
    """Return draws in random order, to make draws of several results independent."""
    return noise[public_generator("pooled noise", k).permutation(len(noise))]


def _at_worths(facts: ScoreEquations, worths: FloatArray) -> FloatArray:
    """Return the coefficients of a fit at these worths."""
    return np.append(worths, _tie_parameter(facts, worths)) if facts.tied else worths


def _tie_parameter(facts: ScoreEquations, worths: FloatArray) -> float:
    """Return the tie parameter that matches the released ties, given worths."""

    def beyond(tie: float) -> float:
        mean = facts.function.mean(facts.linear.predict(np.append(worths, tie)))
        return float(
            facts.linear.scores(facts.by_edge(facts.released) * mean)[-1] - facts.score[-1]
        )

    return find_root(beyond, -_LARGEST_TIE, _LARGEST_TIE)


def _beside_ties(basis: FloatArray, facts: ScoreEquations, slope: FloatArray) -> FloatArray:
    """Return contrasts of scores that do not depend on a tie parameter, if any."""
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
    """Return the source for means of values between 0 and `largest`.

    Each mean is a block.

    **Statistic.** The variance of a mean s of n values between 0 and b is at most s (b - s) / n
    (Bhatia and Davis). For a fraction, b = 1 and the variance equals this bound. The bound is
    evaluated at the mean of n + 4 values, with two values added at each end (Agresti and Coull
    1998), because Wald intervals need this correction close to 0 and b.
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
    """Return the source for fractions that rank the first item before the second."""
    assert stated.fractions is not None
    values = stated.fractions[np.triu_indices(len(stated.fractions), 1)]
    return _means(values, 1.0, stated.units, stated.noise_sd**2, _draws(stated.noise, 1))


def score_source(stated: NoisyVotes) -> Source:
    """Return the source for Borda scores."""
    m = len(stated.scores)
    noise = stated.noise
    summed = 1 if stated.fractions is None else m - 1
    if isinstance(noise, PermutohedronNoise):
        # the shape is the same at every scale: draws take seconds for many items, and are shared
        noise = PermutohedronNoise(noise.items, 2.0**-10, 1)
    errors = stated.score_errors("sample")
    return _means(stated.scores, m - 1.0, stated.units, errors**2, _draws(noise, summed))


@lru_cache(maxsize=16)
def _draws(noise: BordaDistribution, summed: int) -> FloatArray:
    """Return public draws of the noise of one number, a sum of `summed` terms.

    The scale of the noise does not matter for the kurtosis.
    """
    size = (_DRAWS, noise.items if isinstance(noise, PermutohedronNoise) else summed)
    generator = public_generator("pooled votes", summed)
    drawn = np.asarray(simulated(noise, size, generator), dtype=np.float64)
    return readonly_copy(drawn[:, :summed].sum(axis=1, keepdims=True), np.float64)
