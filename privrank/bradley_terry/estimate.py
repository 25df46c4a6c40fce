"""The fit of a release, and the covariance of its estimates.

The shrinkage of the estimates, by the prior on worths and the ridge that balances it with the
noise, depends on public numbers only. Planning uses the same shrinkage.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from scipy.linalg import block_diag

from privrank.bradley_terry.dependence import (
    cluster_moments,
    floored_moments,
    independent_scores,
    released_effect,
    with_tie_floor,
)
from privrank.bradley_terry.equations import ScoreEquations, released_total, scores_by_pattern
from privrank.bradley_terry.fit import LOGISTIC_SCORE, EdgeLoss, ScoreFunction, Solver, fit_ridge
from privrank.bradley_terry.linear import ContestPredictor, capped
from privrank.bradley_terry.predictor import (
    Ridge,
    item_basis,
    ridge_product,
)
from privrank.release.names import CONTEST, DEPENDENCE, LARGEST, MOMENTS, WINS, WORTHS
from privrank.release.release import Release
from privrank.release.survey import Design
from privrank.util.arrays import FloatArray, immutable, own_arrays, readonly_copy
from privrank.util.solvers import dense, product, pseudo_inverse

_SURPLUS_STEPS = 3
"""Number of fits that correct for comparisons in excess of their released numbers."""


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class WorthEstimate:
    """Fitted coefficients; without covariates they are the centred worths.

    Parameters
    ----------
    first : ndarray, shape (p,)
        Ridge estimate.
    coefficients : ndarray, shape (p,)
        Reported estimate: corrected for the bias of the ridge, unless a penalty was given.
    ridge : float, or ndarray of shape (p, p)
        Ridge of the fit.
    corrected : bool
        Whether the bias of the ridge is corrected.
    converged : bool
        Whether the fits met the stopping rule of :func:`privrank.bradley_terry.fit.minimise`.
    infinite : bool
        Whether a fit without a penalty was requested and is not finite. The automatic penalty is
        then used.
    """

    first: FloatArray
    coefficients: FloatArray
    ridge: Ridge
    corrected: bool
    converged: bool = True
    infinite: bool = False

    def __post_init__(self) -> None:
        """Take private, read-only copies of the arrays, because results keep them."""
        own_arrays(self)

    def worths_ridge(self, design: Design) -> Ridge:
        """Return the ridge of worths, a single number if there are no covariates."""
        if isinstance(self.ridge, np.ndarray) and design.covariates is None:
            return float(self.ridge[0, 0])
        return self.ridge


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of the coefficients, split into sampling and privacy noise.

    Coefficients move with the scores by a linear map R. A covariance S of the scores therefore
    gives the coefficients the covariance R S R'. With many items only the halves R S are computed,
    which are enough for standard errors.

    Parameters
    ----------
    response : ndarray, shape (p, p)
        The linear map R from scores to coefficients.
    scores : ndarray, shape (p, p)
        Sampling covariance of the scores.
    sampled, noisy : ndarray, shape (p, p)
        R times the covariances of sampling error and of noise.
    alone : ndarray, shape (p, p), or float
        `sampled` under independent answers, or the ratio of `sampled` to it.
    scattered : ndarray, shape (p, p), or float
        Third part of the covariance of the scores, due to deviations of items from the values that
        their covariates predict (:mod:`privrank.bradley_terry.inference`).
    """

    response: FloatArray
    scores: FloatArray
    sampled: FloatArray
    noisy: FloatArray
    alone: FloatArray | float = 1.0
    scattered: FloatArray | float = 0.0

    @cached_property
    def sampling(self) -> FloatArray:
        """Covariance of the coefficients due to sampling error."""
        return self._whole(self.sampled)

    @cached_property
    def privacy(self) -> FloatArray:
        """Covariance of the coefficients due to privacy noise."""
        return self._whole(self.noisy)

    @cached_property
    def independent(self) -> FloatArray:
        """The sampling part of the covariance under independent answers."""
        if isinstance(self.alone, np.ndarray):
            return self._whole(self.alone)
        return self._whole(self.sampled / self.alone)

    @cached_property
    def total(self) -> FloatArray:
        """Covariance with all sources of error."""
        if not isinstance(self.scattered, np.ndarray):
            return self._whole(self.sampled + self.noisy)
        return self._whole(self.sampled + self.noisy + product(self.response, self.scattered))

    def _whole(self, half: FloatArray) -> FloatArray:
        # read-only because users may receive it
        return readonly_copy(product(half, self.response.T))

    def variances(self, half: FloatArray, shown: FloatArray) -> FloatArray:
        """Return the variances of combinations of coefficients, one per row, given a half."""
        return np.asarray(
            np.einsum("ij,ij->i", product(shown, half), product(shown, self.response))
        )


def estimate(
    equations: ScoreEquations,
    release: Release,
    penalty: float | None = None,
    *,
    solver: Solver = "newton",
) -> WorthEstimate:
    """Fit the coefficients by ridge estimation, followed by a fit that corrects the bias.

    Parameters
    ----------
    equations : ScoreEquations
        The release, read as score equations.
    release : Release
        The release. A release of objective perturbation contains its ridge estimate.
    penalty : float or None
        Multiple of the prior. None balances noise and shrinkage and corrects the bias.
    solver : {"newton", "lbfgs", "cvxpy"}
        Solver of the convex fits.
    """
    linear = equations.linear
    (target, loss) = objective(equations)
    infinite = False
    converged = True
    if WORTHS not in release.parts:
        ridge = automatic_ridge(equations, penalty)
        fit = fit_ridge(target, linear, ridge, loss, solver=solver)
        infinite = not fit.finite
        if infinite:
            ridge = automatic_ridge(equations)
            fit = fit_ridge(target, linear, ridge, loss, solver=solver)
        first = linear.centred(fit.point)
        converged = fit.converged
    else:
        part = release.parts[WORTHS]
        ridge = release.plan.number("gamma")
        first = linear.centred(np.asarray(part.step * part.values))
    corrected = penalty is None or infinite
    coefficients = first
    if corrected:
        # apply the ridge again, towards the first estimate: to first order this adds ridge H^-1
        # first, the bias of the first ridge, with the curvature at the new estimate. Then correct
        # in a few steps for counts that noise has made negative and that the fit sets to 0
        back = target + ridge_product(ridge, first)
        surplus = equations.by_edge(equations.surplus)
        for _ in range(_SURPLUS_STEPS if equations.surplus.any() else 1):
            mean = equations.function.mean(linear.predict(coefficients))
            moved = _attainable(equations, back + linear.scores(surplus * mean))
            again = fit_ridge(moved, linear, ridge, loss, solver=solver, start=coefficients)
            coefficients = linear.centred(again.point)
            converged = converged and again.converged
    return WorthEstimate(first, coefficients, ridge, corrected, converged, infinite)


def without_contests(equations: ScoreEquations, fitted: WorthEstimate) -> FloatArray:
    """Return the coefficients of the model without contest covariates, from the same net wins."""
    linear = cast(ContestPredictor, equations.linear)
    k = linear.cells.size
    loss = EdgeLoss.matching(equations.function, np.bincount(linear.place, equations.pairs.count))
    ridge = fitted.ridge[:k, :k] if isinstance(fitted.ridge, np.ndarray) else fitted.ridge
    target = equations.score[:k]
    first = fit_ridge(target, linear.cells, ridge, loss).point
    if not fitted.corrected:
        return first
    return fit_ridge(target + ridge_product(ridge, first), linear.cells, ridge, loss).point


def objective(equations: ScoreEquations) -> tuple[FloatArray, EdgeLoss]:
    """Return the right-hand side of the score equations of the fit, and the loss it minimises."""
    if equations.answers is None:
        return equations.score, EdgeLoss.matching(equations.function, equations.count)
    return (
        np.zeros(equations.linear.size),
        EdgeLoss.likelihood(equations.function.link, *equations.answers),
    )


def _attainable(equations: ScoreEquations, target: FloatArray) -> FloatArray:
    """Return a target of the fit whose number of ties is possible for some tie parameter.

    The number of ties is limited to values above 0 and below the number of comparisons.
    """
    total = float(equations.pairs.count.sum())
    if not equations.tied or 0.0 < target[-1] < total:
        return target
    least = min(0.5, 0.5 * total)
    return np.append(target[:-1], min(max(float(target[-1]), least), total - least))


def response(equations: ScoreEquations, fitted: WorthEstimate) -> FloatArray:
    """Return the linear map from scores to coefficients, shape (p, p).

    Let G_1 and G_2 be the ridge Hessians at the ridge estimate and at the corrected estimate. The
    ridge estimate moves with the scores by R_1 = G_1^-1. The first corrected estimate moves by
    G_2^-1 (I + ridge R_1 + K R_1). Each later one moves by the same formula, with the previous map
    instead of R_1 in K R_1. K is the information of comparisons in excess of their released
    numbers, if any.
    """
    linear = equations.linear
    moved = linear.inverse(_ridge_hessian(equations, fitted.ridge, fitted.first))
    if fitted.corrected:
        inverse = linear.inverse(_ridge_hessian(equations, fitted.ridge, fitted.coefficients))
        back = inverse + product(inverse, ridge_product(fitted.ridge, moved))
        if not equations.surplus.any():
            return back
        curvature = equations.function.curvature(linear.predict(fitted.coefficients))
        surplus = linear.information(equations.by_edge(equations.surplus) * curvature)
        for _ in range(_SURPLUS_STEPS):
            moved = back + product(product(inverse, surplus), moved)
    return moved


def _ridge_hessian(equations: ScoreEquations, ridge: Ridge, b: FloatArray) -> FloatArray:
    # includes the ridge of constant worths, which the inverse ignores
    return equations.information(b) + ridge_product(ridge, np.eye(len(b)))


def covariance(equations: ScoreEquations, release: Release, fitted: WorthEstimate) -> Covariance:
    """Return the sandwich covariance of the coefficients.

    Noise added to the worths of objective perturbation acts like an error of the scores, multiplied
    by the ridge Hessian at the ridge estimate. If one randomised response is an order of several
    items, its votes depend on each other through the answers and through the randomisation. Only
    the sum of both parts is known. It is divided between sampling and noise in the proportion that
    holds for independent votes.
    """
    b = fitted.coefficients
    moved = response(equations, fitted)
    scores = score_covariance(equations, release, b)
    noise = equations.noise_covariance(b, [*equations.terms.values()])
    added = response_covariance(equations)
    of_responses = 0.0
    if MOMENTS[0] in release.parts and np.any(added):
        of_responses = np.trace(added) / np.trace(independent_scores(equations, release, b))
        added = of_responses * scores
    noise = noise + added
    if WORTHS in release.parts:
        hessian = _ridge_hessian(equations, fitted.ridge, fitted.first)
        noise = noise + release.parts[WORTHS].noise_variance * (hessian @ hessian)
    sampled = product(moved, scores - added if np.any(added) else scores)
    alone: FloatArray | float = 1.0
    if LARGEST in release.found and not equations.tied:
        alone = released_effect(release)
    elif equations.random_pairs or release.parts.keys() & {DEPENDENCE, MOMENTS[0]}:
        alone = readonly_copy(
            product(moved, (1.0 - of_responses) * independent_scores(equations, release, b))
        )
    return Covariance(
        readonly_copy(moved),
        readonly_copy(scores),
        readonly_copy(sampled),
        readonly_copy(product(moved, noise)),
        alone,
    )


def response_covariance(equations: ScoreEquations) -> FloatArray | float:
    """Return the part of the covariance of the scores that is due to randomised responses."""
    if not len(equations.response):
        return 0.0
    return equations.linear.spread(np.maximum(equations.response, 0.0))


def score_covariance(
    equations: ScoreEquations,
    release: Release,
    b: FloatArray,
    function: ScoreFunction | None = None,
) -> FloatArray:
    """Return the sampling covariance of the scores of the fit or of another function, shape (p, p).

    For independent answers it is the information with the weights n F (1 - F), or with the
    information as weights for scores of a log-loss. If pair counts are expectations only, each
    comparison is treated as a comparison of a randomly chosen pair. Its covariance is then the
    second moment n / 4 minus, by pattern, the outer product of the mean score divided by the number
    of comparisons. This is conservative for fixed pairs. For respondents the covariance is either
    the covariance under independent answers times the largest design effect, or it is computed from
    moments of their net wins, which are released or cluster-robust. A tie counts as half a win for
    each item, which has less variance than is assumed here.
    """
    count = equations.pairs.count
    if MOMENTS[0] in release.parts:
        return cluster_moments(equations, release, b, function or equations.fitted)
    if equations.random_pairs and DEPENDENCE not in release.parts:
        mean = scores_by_pattern(equations, b)
        total = np.maximum(np.bincount(equations.pairs.first // equations.items, count), 1e-12)
        # pairs are random as well: answers are draws from one distribution over all pairs, so their
        # second moments are summed, minus the square of the mean score
        if equations.tied:  # variances given the pairs, and the squares of means
            by_pair = dense(equations.mean_scores(b))
            second = independent_scores(equations, release, b)
            second = second + by_pair.T @ (count[:, None] * by_pair)
        else:
            second = equations.linear.spread(np.asarray(0.25 * count))
        return np.asarray(second - mean.T @ (mean / total[:, None]))
    independent = independent_scores(equations, release, b, function)
    if DEPENDENCE not in release.parts:
        return independent
    if LARGEST in release.found:
        scores = np.asarray(released_effect(release) * independent)
        return with_tie_floor(equations, release, b, scores) if equations.tied else scores
    return floored_moments(equations, release, b, independent)


def nominal_information(
    items: int, total: float, function: ScoreFunction = LOGISTIC_SCORE
) -> float:
    """Return the information per contrast of `total` comparisons spread over all pairs.

    A connected design with equal counts has all non-zero Laplacian eigenvalues equal to
    2 total / (m - 1), here times the mean curvature for worths of the function's spread.
    """
    return function.mean_curvature * 2.0 * total / (items - 1)


def default_ridge(
    information: float, score_noise_variance: float, function: ScoreFunction = LOGISTIC_SCORE
) -> float:
    """Return the ridge that balances noise and shrinkage for worths of the function's spread s.

    Take a contrast with curvature I, sampling variance r I and score noise v. Its mean squared
    error (r I + v + gamma^2 s^2) / (I + gamma)^2 is smallest at gamma = (r + v / I) / s^2. For the
    logit, where s = 1, and for log-losses r = 1.
    """
    return (
        function.mean_variance / function.mean_curvature + score_noise_variance / information
    ) / function.spread**2


def automatic_ridge(equations: ScoreEquations, penalty: float | None = None) -> Ridge:
    """Return the ridge that balances noise and shrinkage, or a multiple of the prior.

    Without covariates the prior is a ridge on each worth, and the balance is
    :func:`default_ridge`. With covariates the prior P is that worths in every cell have the
    standard deviation of the function's spread (1 for the logit). The balance is P + V J^-1 P,
    where V is the noise and J the information of the columns. The prior of a contest covariate is
    that of a covariate with mean square 1.
    """
    m = equations.items
    total = released_total(equations)
    fitted = equations.fitted
    if equations.covariates is None:
        if penalty is not None:
            return _ridge(equations, penalty)
        # a pair's two cells enter its two scores with opposite signs, its count by F - 1/2
        pairs = 0.5 * equations.variance(WINS) + equations.count_variance * fitted.mean_square
        noise = equations.by_item.score_variance + m * pairs
        # spread over all pairs like the information; two of three edges have half of a difference
        added = equations.response
        if equations.tied:
            added = np.repeat((1.0, 0.25, 0.25), len(added) // 3) * added
        noise += max(2.0 * float(added.sum()) / (m - 1), 0.0)
        return _ridge(
            equations, default_ridge(nominal_information(m, total, fitted), noise, fitted)
        )
    z = equations.covariates.matrix
    weights = equations.covariates.weights
    gram = weights.T @ weights
    prior = len(gram) / len(weights) / equations.function.spread**2 * gram
    square, of_sums = _of_contests(equations)
    if penalty is not None:
        return penalty * _ridge(equations, prior, square / equations.function.spread**2)
    size = np.bincount(equations.pairs.first // m, equations.pairs.count, minlength=len(z))
    inner = np.asarray(nominal_information(m, 1.0, fitted) * (z.T @ (size[:, None] * z)))
    ridge = prior + equations.by_item.score_variance * gram @ pseudo_inverse(inner) @ prior
    alone = square + of_sums / (fitted.mean_curvature * total)
    return _ridge(equations, 0.5 * (ridge + ridge.T), alone / fitted.spread**2)


def _of_contests(equations: ScoreEquations) -> tuple[FloatArray, FloatArray | float]:
    """Return the mean squares of contest covariates, and the variances of noise of their scores."""
    if not isinstance(equations.linear, ContestPredictor):
        return np.zeros(0), 0.0
    square = np.asarray(capped(equations.linear.contests).T ** 2 @ equations.pairs.count)
    square = square / equations.pairs.total
    if CONTEST not in equations.terms:
        return square, 0.0
    sums = equations.terms[CONTEST]
    return square, sums.variance * (sums.scores**2).sum(axis=1)[-len(square) :]


def _ridge(
    equations: ScoreEquations, columns: FloatArray | float, contests: Iterable[float] = ()
) -> Ridge:
    """Return the ridge of all coefficients, given those of the columns and of the contests.

    It is a single number if there are only worths. A tie parameter has no ridge.
    """
    if equations.covariates is None and not equations.tied:
        return columns
    basis = item_basis(equations.covariates, equations.items)
    matrix = np.asarray(np.kron(columns, basis.T @ basis), dtype=np.float64)
    return np.asarray(block_diag(matrix, np.diag([*contests, *np.zeros(int(equations.tied))])))
