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

**Intervals** of worths with common values invert score tests (:meth:`Pooled._tests`). All
other intervals, and intervals for more than 50 items, are Wald intervals with Student's t. The
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
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import helmert
from scipy.special import fdtrc, stdtr, stdtrit

from privrank.bradley_terry.dependence import degrees_of_freedom, floored
from privrank.bradley_terry.equations import ScoreEquations
from privrank.bradley_terry.estimate import response_covariance, score_covariance
from privrank.bradley_terry.inference import Inference, ScoreErrors, single_contrasts
from privrank.bradley_terry.predictor import ridge_product
from privrank.bradley_terry.scoretests import ScoreTests, TestPoint
from privrank.consensus.statements import NoisyVotes
from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.tails import BodyDistribution, BordaDistribution, simulated
from privrank.privacy.knorm import PermutohedronNoise
from privrank.release.names import WORTHS
from privrank.util.arrays import FloatArray, IntArray, immutable, readonly_copy
from privrank.util.solvers import find_root, inverse, quadratic, solve_each

_MovedScores = Callable[[FloatArray, FloatArray], tuple[FloatArray, ...]]
"""The contributions of one result to tests, from the weights of its scores and changed worths."""

_DRAWS = 5_000
"""Number of public draws of noise."""

_LARGEST_TIE = 60.0
"""Size of a tie parameter at which the probability of a tie is 0 or 1 to all digits."""

_MAX_FREEDOM = 1e9
"""Degrees of freedom at which t is normal, and F chi-squared."""

_LONGEST_STEP = 2.0
"""Longest step of a number in the search for the pooled value, in units of its prior spread."""

_ROUNDS = 200
_CLOSE = 1e-10


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
    fit : Inference or None
        The fit of the equations, if they are scores of worths.
    """

    at: Callable[[FloatArray], tuple[FloatArray, ...]]
    freedom: FloatArray
    draws: FloatArray | None = None
    weight: float = 1.0
    fit: Inference | None = None

    def kurtosis(self, rows: FloatArray) -> FloatArray:
        """Return the excess kurtosis, at least 0, of noise in combinations."""
        if self.draws is None:
            return np.zeros(len(rows))
        squares = (self.draws @ rows.T) ** 2
        second = np.maximum(squares.mean(axis=0), 1e-300)
        return np.asarray(np.maximum((squares**2).mean(axis=0) / second**2 - 3.0, 0.0))


@dataclass(frozen=True, eq=False)
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
        residual, slope, sampling, least, noise = (
            np.array(part) for part in zip(*(source.at(point) for source in sources), strict=True)
        )
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

    @cached_property
    def precision(self) -> FloatArray:
        """Inverses D_k^-1 of the covariances of the errors that differ between results."""
        return _inverses(self.noise if self.same else self.sampling + self.noise)

    @cached_property
    def weights(self) -> FloatArray:
        """Weights J^-1 G_k D_k^-1."""
        weighted = self.slope.swapaxes(-1, -2) @ self.precision
        return _inverses((weighted @ self.slope).sum(axis=0)) @ weighted

    @property
    def parts(self) -> tuple[FloatArray, FloatArray]:
        """Sampling and noise part of the covariance of the pooled value."""
        sampling = _through(self.weights, self.sampling).sum(axis=0)
        if self.same:  # one sampling error
            sampling = _through(self.weights.sum(axis=0), self.sampling[0])
        return sampling, _through(self.weights, self.noise).sum(axis=0)


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

    @property
    def tau(self) -> float | None:
        """Standard deviation between surveys by number; None for common values."""
        if not self.alone:
            return None
        variances = np.var([survey.point for survey in self.alone], axis=0, ddof=1)
        return math.sqrt(max(variances.mean() - _mean_variances(self.single).mean(), 0.0))

    @cached_property
    def parts(self) -> tuple[FloatArray, FloatArray]:
        """Covariances of sampling and of noise, shape (blocks, p, p) each, without tau."""
        if not self.alone:
            return self._here.parts
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
        return np.asarray(_mean_variances(self._here.weights @ self._here.slope).mean(axis=1))

    def errors(self, rows: FloatArray, blocks: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return standard errors of combinations and their degrees of freedom."""
        sampling, noise = (forms(rows, part[blocks]) for part in self.parts)
        total = np.maximum(sampling + noise, 1e-300)
        if self.alone:
            values = [survey.value(rows, blocks) for survey in self.alone]
            count = len(values)
            total = np.maximum(total, np.var(values, axis=0, ddof=1) / count)
            return np.sqrt(total), np.full(len(rows), count - 1.0)
        along = np.einsum("rp,krpq->krq", rows, self._here.weights[:, blocks])
        # the kurtosis of a sum is the sum over parts of kurtosis times squared variance share
        pairs = zip(self.sources, along, strict=True)
        kurtosis = (
            np.array([source.kurtosis(combinations) for source, combinations in pairs])
            * (forms(along, self._here.noise[:, blocks]) / total) ** 2
        )
        shares = forms(along, self._here.sampling[:, blocks]) / total
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
        if (tests := self._tests(rows)) is not None:
            return tests.limits(np.full(len(rows), alpha))
        value = self.value(rows, blocks)
        (error, freedom) = self.errors(rows, blocks)
        half = -stdtrit(freedom, 0.5 * alpha) * error
        return value - half, value + half

    def pvalues(self, rows: FloatArray, blocks: IntArray, null: float) -> FloatArray:
        """Return two-sided p-values for the hypotheses that combinations are `null`."""
        if (tests := self._tests(rows)) is not None:
            return tests.pvalues(np.full(len(rows), null))
        (error, freedom) = self.errors(rows, blocks)
        size = np.abs(self.value(rows, blocks) - null) / error
        return np.asarray(2.0 * stdtr(freedom, -size))

    def value(self, rows: FloatArray, blocks: IntArray) -> FloatArray:
        """Return the pooled combinations."""
        return np.asarray(np.einsum("rp,rp->r", rows, self.point[blocks]))

    @cached_property
    def _scores(self) -> tuple[list[_MovedScores], ScoreErrors, float] | None:
        """Scores of the fits to common worths, their noise, and a distance that counts as infinite.

        None if the numbers are no worths.
        """
        fits = [source.fit for source in self.sources if source.fit is not None]
        if self.alone or not fits or fits[0].many or not np.isfinite(self.point).all():
            return None
        parts = []
        noises = []
        for k, fit in enumerate(fits):
            b = _at_contrasts(fit.equations, self.point[0])
            parts.append(_moved_scores(fit.equations, b, self._here.noise[k, 0]))
            noise = fit.draw_noise(b, _DRAWS)
            # in random order, to make draws of several results independent
            noises.append(noise[public_generator("pooled noise", k).permutation(len(noise))])
        drawn = np.column_stack(noises)
        nothing = np.zeros((drawn.shape[1], drawn.shape[1]))
        return (
            parts,
            ScoreErrors(nothing, nothing, drawn if drawn.any() else None),
            fits[0].equations.function.link.exact.far,
        )

    def _tests(self, rows: FloatArray) -> ScoreTests | None:
        """Return score tests of combinations of worths; None for other numbers.

        **Statistic.** The tests extend the score tests of one fit
        (:mod:`privrank.bradley_terry.scoretests`). The worths are moved from the pooled worths,
        along their covariance, to the point at which the contrast has the tested value. The
        statistic U at this point is the combination of all residuals with the weights of the pooled
        value, c J^-1 sum of G_k D_k^-1 residual_k. To first order U is the estimate minus the
        tested value.

        **Null.** Sampling errors are taken as normal. Their variances are the variances at the
        pooled worths, times the ratio of the variances of independent answers at the tested and at
        the pooled worths. The part of the noise from pair counts is also taken as normal. The noise
        of each release is drawn separately from its exact distribution. Estimated variances have
        degrees of freedom by Satterthwaite's rule.
        """
        if self._scores is None:
            return None
        results, errors, far = self._scores
        covariance = self.parts[0][0] + self.parts[1][0]
        value = rows @ self.point[0]
        variance = quadratic(rows, covariance)
        units = rows @ covariance / variance[:, None] @ helmert(len(covariance) + 1)

        def at(t: FloatArray, tested: IntArray) -> TestPoint:
            moved = units[tested] * (t - value[tested])[:, None]
            own = rows[tested] @ self._here.weights[:, 0]
            parts = [result(k_own, moved) for result, k_own in zip(results, own, strict=True)]
            statistics, noises, ratios, weights = map(np.array, zip(*parts, strict=True))
            freedom = self._known
            if self.same:  # one sampling error, with the smallest degrees of freedom
                own = own.sum(axis=0, keepdims=True)
                ratios = ratios.mean(axis=0, keepdims=True)
                freedom = freedom.min(axis=0, keepdims=True)
            pairs = zip(own, self._here.sampling[:, 0], strict=not self.same)
            sampling = ratios * np.array([quadratic(*pair) for pair in pairs])
            return TestPoint(
                statistics.sum(axis=0),
                np.column_stack([*weights]),
                np.ones(len(t)),
                np.zeros(len(t)),
                np.maximum(noises.sum(axis=0), 0.0),
                ((sampling.sum(axis=0), (2.0 * sampling**2 / freedom).sum(axis=0)),),
            )

        return ScoreTests(value, np.sqrt(variance), np.abs(value) + far, at, errors)

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
        # subtract the contribution of the pooled value to the residuals
        moved = np.einsum("kbpq,kbq->bp", here.weights, here.residual)
        left = here.residual - np.einsum("kbpq,bq->kbp", here.slope, moved)
        statistics = np.einsum("kbp,kbpq,kbq->b", left, here.precision, left)
        rest = (1.0 - _mean_variances(here.weights @ here.slope)) ** 2
        shares = here.precision @ here.noise
        largest = [source.kurtosis(np.eye(left.shape[2])).max() for source in self.sources]
        excess = np.array(largest) @ (rest * np.trace(shares @ shares, axis1=-2, axis2=-1))
        lost = np.zeros(len(statistics))
        if not self.same:
            sampling = _mean_variances(here.precision @ here.sampling)
            lost = (rest * sampling**2 / self._known).sum(axis=0)
        # with one degree of freedom this is the 4 + 6 / k of Student's t
        second = _freedom(lost, 3.0 * excess / (df * (df + 2)))
        return statistics, np.asarray(fdtrc(df, second, np.maximum(statistics, 0.0) / df))


def _freedom(lost: FloatArray, kurtosis: FloatArray) -> FloatArray:
    """Return degrees of freedom from estimated variances and from the kurtosis."""
    lost = lost + kurtosis / (4.0 * kurtosis + 6.0)
    return np.asarray(1.0 / np.maximum(lost, 1.0 / _MAX_FREEDOM))


def forms(rows: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return the quadratic forms of rows, shape (..., rows, p), in matrices of these shapes."""
    squares = np.einsum("...rp,...rpq,...rq->...r", rows, matrices, rows)
    return np.asarray(np.maximum(squares, 0.0))


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
    return np.array([*map(inverse, matrices.reshape(-1, p, p))]).reshape(matrices.shape)


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
    point = _solve(sources, same, start, start, spread)
    point = _solve(sources, same, point, start, spread)
    if math.isfinite(spread):
        point = _solve(sources, same, point, point, spread)
    return Pooled(sources, point, same)


def _solve(
    sources: Sequence[Source], same: bool, point: FloatArray, anchor: FloatArray, spread: float
) -> FloatArray:
    """Solve the pooled equations with the weights at a point and a ridge towards an anchor."""
    # Newton's method with fixed weights
    there = _Equations.of(sources, point, same)
    # the ridge is relative to the whole error, including sampling error
    shrink = spread**-2.0 * sum(there.parts)
    for _ in range(_ROUNDS):
        here = _Equations.of(sources, point, same)
        moved = np.einsum("kbpq,kbq->bp", there.weights, here.residual)
        moved -= np.einsum("bpq,bq->bp", shrink, point - anchor)
        step = solve_each((there.weights @ here.slope).sum(axis=0) + shrink, moved)
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
    added = response_covariance(facts)

    def at(point: FloatArray) -> tuple[FloatArray, ...]:
        b = _at_contrasts(facts, point[0])
        slope = facts.information(b)
        noise = facts.noise_covariance(b) + added
        if WORTHS in release.parts:
            hessian = slope + ridge_product(inference.fitted.ridge, facts.linear.identity)
            noise = noise + release.parts[WORTHS].noise_variance * (hessian @ hessian)
        measured = least = score_covariance(facts, release, b) - added
        # the covariance of ties with net wins is not measured but bounded
        moments = None if facts.tied else single_contrasts(facts, release, b)
        if moments is not None:
            measured = moments.measured
            least = moments.least
        rows = _beside_ties(facts, slope)
        covariances = (rows @ matrix @ rows.T for matrix in (slope, measured, least, noise))
        return tuple(part[None] for part in (rows @ _residual(facts, b), *covariances))

    errors = inference.score_errors
    draws = None
    if errors is not None and errors.noise is not None:
        slope = facts.information(inference.fitted.coefficients)
        draws = errors.noise @ _beside_ties(facts, slope).T
    return Source(at, np.array([degrees_of_freedom(release)]), draws, release.epsilon**2, inference)


def _at_contrasts(facts: ScoreEquations, contrasts: FloatArray) -> FloatArray:
    """Return the coefficients of a fit at worths with these orthonormal contrasts.

    A tie parameter is the value that matches the released ties.
    """
    worths = np.asarray(helmert(facts.items)).T @ contrasts
    if not facts.tied:
        return np.asarray(worths)
    return np.append(
        worths,
        find_root(
            lambda tie: -float(_residual(facts, np.append(worths, tie))[-1]),
            -_LARGEST_TIE,
            _LARGEST_TIE,
        ),
    )


def _residual(facts: ScoreEquations, b: FloatArray) -> FloatArray:
    """Return the observed scores minus those expected at b, by the released counts."""
    mean = facts.function.mean(facts.linear.predict(b))
    return np.asarray(facts.score - facts.linear.scores(facts.by_edge(facts.released) * mean))


def _beside_ties(facts: ScoreEquations, slope: FloatArray) -> FloatArray:
    """Return contrasts of scores that do not depend on a tie parameter, if any."""
    basis = np.asarray(helmert(facts.items))
    if not facts.tied:
        return basis
    alone = slope[:-1, -1:] / max(float(slope[-1, -1]), 1e-300)
    return np.asarray(basis @ np.column_stack((np.eye(facts.items), -alone)))


def _moved_scores(facts: ScoreEquations, b: FloatArray, covariance: FloatArray) -> _MovedScores:
    """Return the contributions of one result to score tests of pooled worths, as a function.

    `b` has the coefficients at the pooled worths, and `covariance` is the covariance of the noise
    of the contrasts of scores there. The arguments of the function are the weights of the contrasts
    of scores, and the change of the worths. The returned values are the statistics, the variances
    of the noise, the ratios of sampling variances to those at the pooled worths, and the weights of
    the scores.
    """
    contrasts = _beside_ties(facts, facts.information(b))
    pooled = facts.linear.predict(b)
    more = ((0, 0), (0, len(b) - facts.items))

    def parts(own: FloatArray, moved: FloatArray) -> tuple[FloatArray, ...]:
        scores = own @ contrasts
        along = facts.linear.along(scores)
        edges = facts.linear.predict(b + np.pad(moved, more))
        expected = (along * facts.function.mean(edges)) @ facts.by_edge(facts.released)
        # the effect of errors in pair counts differs from the effect at the pooled worths
        noise = (
            quadratic(own, covariance)
            + facts.count_noise(along, edges)
            - facts.count_noise(along, pooled)
        )
        varied = (along**2 * facts.spread(edges)).sum(axis=1)
        ratio = varied / np.maximum(along**2 @ facts.spread(pooled), 1e-300)
        return scores @ facts.score - expected, noise, ratio, scores

    return parts


def _means(
    values: FloatArray,
    largest: float,
    units: FloatArray | float,
    noise: FloatArray | float,
    unequal: FloatArray | float,
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
    noises = np.broadcast_to(noise, len(values)).reshape(shape)

    def at(point: FloatArray) -> tuple[FloatArray, ...]:
        centre = np.clip(point[:, 0], 0.0, largest)
        centre = centre + 2.0 * (largest - 2.0 * centre) / (units + 4.0)
        sampling = centre * (largest - centre) / units + unequal
        sampling = np.broadcast_to(sampling, len(values)).reshape(shape)
        return values[:, None] - point, np.ones(shape), sampling, sampling, noises

    return Source(at, np.full(len(values), np.inf), draws)


def fraction_source(stated: NoisyVotes) -> Source:
    """Return the source for fractions that rank the first item before the second."""
    assert stated.fractions is not None
    upper = np.triu_indices(len(stated.fractions), 1)
    return _means(
        stated.fractions[upper],
        1.0,
        np.broadcast_to(stated.units, stated.fractions.shape)[upper],
        stated.fraction_errors("sample")[upper] ** 2,
        np.broadcast_to(stated.unequal, stated.fractions.shape)[upper],
        _draws(stated.noise, 1),
    )


def score_source(stated: NoisyVotes) -> Source:
    """Return the source for Borda scores."""
    m = len(stated.scores)
    noise = stated.noise
    summed = 1 if stated.fractions is None else m - 1
    if isinstance(noise, PermutohedronNoise):
        # the shape is the same at every scale: draws take seconds for many items, and are shared
        noise = PermutohedronNoise(noise.items, 2.0**-10, 1)
    return _means(
        stated.scores,
        m - 1.0,
        stated.score_units,
        stated.score_errors("sample") ** 2,
        stated.score_unequal,
        _draws(noise, summed),
    )


@lru_cache(maxsize=16)
def _draws(noise: BordaDistribution, summed: int) -> FloatArray:
    """Return public draws of the noise of one number, a sum of `summed` terms.

    The scale of the noise does not matter for the kurtosis.
    """
    size = (_DRAWS, noise.items if isinstance(noise, BodyDistribution) else summed)
    drawn = simulated(noise, size, public_generator("pooled votes", summed)).astype(np.float64)
    return readonly_copy(drawn[:, :summed].sum(axis=1, keepdims=True), np.float64)
