"""Convex fits of a loss of paired comparisons with a ridge, by Newton's method.

Every fit minimises loss(E b) - target'b + b' ridge b / 2. E is the map of a
:class:`privrank.bradley_terry.predictor.LinearPredictor`, and the loss is a sum over pairs of
aggregated counts (:class:`EdgeLoss`). The score equations are
``E' slope(E b) + ridge b = target``. For a matching loss ``slope = n (F - 1/2)`` and, without
covariates, the target is half the net wins. A log-loss contains the answers itself, and its target
is 0. Objective perturbation subtracts its noise from the target.

All fits use one rule of descent and one stopping rule (:func:`minimise`). Fits are also part of
releases, so the failure of a library routine must not raise an exception here.

**Losses.** A link has two losses. Let y be the outcome of a comparison (1, 1/2 for a tie, or 0) and
t the difference of worths.

- *Matching loss:* int_0^t F - y t, with slope F - y and curvature F'. For the logit it is the
  log-loss. Net wins are sufficient for it under every link, and the slope has mean 0 at the true
  worths. The minimiser is therefore consistent. Its sandwich covariance is H^-1 J H^-1, where H and
  J are the Laplacians of F' and F (1 - F).
- *Log-loss:* -y log F(t) - (1 - y) log F(-t), with slope k(t) (F - y) and
  k = F' / (F (1 - F)). Its minimiser is the maximum likelihood estimate, with information
  i = F'^2 / (F (1 - F)). It needs the wins of every pair.

**Ties** (Davidson 1970, https://doi.org/10.1080/01621459.1970.10481082). The probabilities of win,
tie and loss are proportional to e^(d/2), e^lambda and e^(-d/2), where d is the difference of
worths. The loss is the log-loss, for which net wins and the number of ties are sufficient. Its
information is a sum over pairs of answers. Each pair contributes the product of the two
probabilities times the squared difference of the exponents. Each pair of items therefore has three
edges, at t = d (win or loss), d/2 - lambda (win or tie) and d/2 + lambda (tie or loss). The
products of probabilities are their curvatures.

**Sets.** Losses of choices from sets are represented by an edge for each pair of items of a set
(:mod:`privrank.bradley_terry.choices`). The slope and the curvature of an edge then depend on all
edges of its set. Only their sums over a set, the gradient and the Hessian, are derivatives of the
loss, and the curvature of a single edge can be negative.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg

from privrank.bradley_terry.linear import LinearPredictor, absolute
from privrank.bradley_terry.predictor import Ridge, ridge_product
from privrank.distributions.links import LOGIT, UNIT_ROUNDOFF, Antiderivatives, Link
from privrank.privacy.sensitivity import LOGISTIC, LossBounds
from privrank.release.survey import PairCounts
from privrank.util.arrays import FloatArray, IntArray, immutable
from privrank.util.solvers import find_root, square_root, with_fallback

Solver = Literal["newton", "lbfgs", "cvxpy"]


DENSE_LIMIT = 500
"""Number of items up to which dense Cholesky is faster than preconditioned conjugate gradients."""

_STEPS = 500
"""Largest number of steps without a certificate; the hardest known fits take about 100."""

_UNRESOLVED = 1e-12
"""Squared length of a step, in standard errors, below which the objective shows no progress."""

_AT_REST = 1e-3
"""Largest change of a predictor with which a fit without a ridge is treated as converged."""

LOGIT_MEAN_CURVATURE = 0.18234
"""E F'(t) for logistic F and t normal(0, 2), 0.4% above the exact 0.18158.

Archived releases were planned with this number. They can be reproduced as long as it is unchanged.
"""

_NORMAL = np.polynomial.hermite_e.hermegauss(101)
"""Nodes and weights of Gauss-Hermite quadrature for the normal density, not normalised."""


@immutable
@dataclass(frozen=True, slots=True)
class ScoreFunction:
    """The mean, slope and variance of scores as functions of the difference t, per comparison.

    Scores of the matching loss are half net wins, with mean F - 1/2, slope F' and variance
    F (1 - F). Scores of the log-loss are linear to first order around the true worths, where both
    their slope and their variance are the information i. They are therefore treated as sums with
    mean int_0^t i.

    Parameters
    ----------
    link : Link
        The link.
    likelihood : bool
        Whether the scores belong to the log-loss instead of the matching loss.
    ties : bool
        Whether ties have a parameter. If they do, arguments and returned values belong to the
        three edges of each pair.
    """

    link: Link
    likelihood: bool = False
    ties: bool = False

    def mean(self, t: FloatArray) -> FloatArray:
        """Return the mean score at t."""
        if self.ties:
            won, tied, lost = answer_probabilities(*worths_and_ties(t))
            # half net wins from the first edge, ties from the difference of the others
            return np.concatenate((0.5 * (won - lost), -0.5 * tied, 0.5 * tied), axis=-1)
        return _information(self.link).first(t) if self.likelihood else self.link.excess(t)

    def integral(self, t: FloatArray) -> FloatArray:
        """Return the integral of `mean` from 0; with ties, one third of it for each edge."""
        if self.ties:
            d, tie = worths_and_ties(t)
            whole = np.logaddexp(np.logaddexp(0.5 * d, -0.5 * d), tie)
            return np.concatenate((whole, whole, whole), axis=-1) / 3.0
        return _information(self.link).second(t) if self.likelihood else self.link.integral(t)

    def curvature(self, t: FloatArray) -> FloatArray:
        """Return the slope of `mean`."""
        if self.ties:
            won, tied, lost = answer_probabilities(*worths_and_ties(t))
            return np.concatenate((won * lost, won * tied, tied * lost), axis=-1)
        density = self.link.density(t)
        return np.asarray(density * self.weight(t)) if self.likelihood else density

    def variance(self, t: FloatArray) -> FloatArray:
        """Return the variance of the score of an untied answer."""
        return self.curvature(t) if self.likelihood or self.ties else self.link.exact.variance(t)

    def weight(self, t: FloatArray) -> FloatArray:
        """Return the weight of half a net win in the score: 1, or F' / (F (1 - F))."""
        if not self.likelihood:
            return np.ones_like(t)
        return np.asarray(self.link.exact.ratio(t) + self.link.exact.ratio(-t))

    @property
    def estimator(self) -> str:
        """The name of the estimator with these scores, without its ridge."""
        return "maximum likelihood" if self.likelihood or self.link == LOGIT else "matching loss"

    @property
    def most(self) -> float:
        """Largest score of a won comparison: the maximum of the mean score minus the slope.

        For the matching loss, with slope F - 1, this difference is the constant 1/2. For the
        log-loss it depends on t.
        """
        return _most(self.link) if self.likelihood else 0.5

    @property
    def bound(self) -> FloatArray | float:
        """Upper bound of the absolute mean score of a comparison."""
        return max(1.0, self.link.exact.steepest) if self.likelihood else 1.0

    @property
    def even(self) -> FloatArray | float:
        """Minus the log-likelihood of an answer at equal worths, by edge."""
        return math.log(2.0)

    @property
    def accuracy(self) -> float:
        """Largest error of a computed `mean`, in unit roundoffs of `bound`."""
        return self.link.exact.accuracy + 8.0 * self.ties

    @property
    def spread(self) -> float:
        """Standard deviation of worths for planning; probabilities then vary as for the logit."""
        return 0.25 / float(self.link.density(0.0))

    @property
    def mean_curvature(self) -> float:
        """Mean curvature of a comparison over worths of this spread."""
        return LOGIT_MEAN_CURVATURE if self.link == LOGIT else _mean(self, "curvature")

    @property
    def mean_variance(self) -> float:
        """Mean variance of a comparison over worths of this spread."""
        return LOGIT_MEAN_CURVATURE if self.link == LOGIT else _mean(self, "variance")

    @property
    def mean_square(self) -> float:
        """Mean of the squared mean score of a comparison over worths of this spread."""
        return 0.25 - LOGIT_MEAN_CURVATURE if self.link == LOGIT else _mean(self, "mean", 2)


LOGISTIC_SCORE = ScoreFunction(LOGIT)


def worths_and_ties(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the differences of worths and lambda, by pair, from the t of its three edges."""
    pairs = t.shape[-1] // 3
    return t[..., :pairs], 0.5 * (t[..., 2 * pairs :] - t[..., pairs : 2 * pairs])


def answer_probabilities(
    difference: FloatArray, tie: FloatArray | float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the probabilities of win, tie and loss, given the difference of worths and lambda."""
    half = 0.5 * difference
    top = np.maximum(np.abs(half), tie)  # subtracted to avoid overflow
    won = np.exp(half - top)
    tied = np.exp(tie - top)
    lost = np.exp(-half - top)
    total = won + tied + lost
    return won / total, tied / total, lost / total


@cache
def _information(link: Link) -> Antiderivatives:
    # the information falls like F' and is negligible where upsets have this probability squared
    return Antiderivatives(ScoreFunction(link, likelihood=True).curvature, 1.5 * link.exact.far)


@cache
def _most(link: Link) -> float:
    t = np.linspace(-link.exact.far, link.exact.far, 4001)
    return float((_information(link).first(t) + link.exact.ratio(t)).max())


@cache
def _mean(score: ScoreFunction, name: str, power: int = 1) -> float:
    # the difference of two normal worths has twice their variance
    nodes, weights = _NORMAL
    values = getattr(score, name)(math.sqrt(2.0) * score.spread * nodes) ** power
    return float(weights @ values / weights.sum())


@dataclass(frozen=True, slots=True)
class EdgeLoss:
    """A convex loss summed over pairs, each a function of the pair's difference of worths.

    Parameters
    ----------
    value : callable
        The summed loss at the differences, shape (edges,).
    slope, curvature : callable
        Its first and second derivative by each difference.
    size : ndarray, shape (edges,)
        Upper bounds of the absolute slopes.
    accuracy : float
        Largest error of a computed slope, in unit roundoffs of its bound.
    far : float
        Difference of worths of a compared pair beyond which a fit without a ridge is treated as
        infinite.
    """

    value: Callable[[FloatArray], float] = field(repr=False)
    slope: Callable[[FloatArray], FloatArray] = field(repr=False)
    curvature: Callable[[FloatArray], FloatArray] = field(repr=False)
    size: FloatArray
    accuracy: float
    far: float

    @classmethod
    def matching(cls, score: ScoreFunction, count: FloatArray | IntArray) -> EdgeLoss:
        """Return the loss whose slopes are the mean scores of `count` comparisons."""
        return cls(
            lambda t: float(count @ score.integral(t)),
            lambda t: np.asarray(count * score.mean(t)),
            lambda t: np.asarray(count * score.curvature(t)),
            np.asarray(score.bound * count, dtype=np.float64),
            score.accuracy,
            score.link.exact.far,
        )

    @classmethod
    def likelihood(cls, link: Link, won: FloatArray, lost: FloatArray) -> EdgeLoss:
        """Return the log-loss of wins and losses of each pair's first item, ties half of each."""
        exact = link.exact
        # if u has no bound nothing private is fitted, and sizes are used in the stopping rule only
        most = exact.steepest if math.isfinite(exact.steepest) else 1.0
        return cls(
            lambda t: -float(won @ exact.log_cdf(t) + lost @ exact.log_cdf(-t)),
            lambda t: np.asarray(lost * exact.ratio(-t) - won * exact.ratio(t)),
            lambda t: np.asarray(won * exact.curvature(t) + lost * exact.curvature(-t)),
            max(1.0, most) * (won + lost),
            # two products and a difference
            exact.accuracy + 2.0,
            exact.far,
        )

    @property
    def straight(self) -> float:
        """Difference of worths beyond which slopes are their limits.

        log F is concave, F(0) = 1/2 and F(-far) = e^-28. At 25 far the distribution has therefore
        fallen below the least tail of a link, 1e-290. Beyond it the computed slopes are constant.
        """
        return 25.0 * self.far

    def moved(self, offset: FloatArray, radius: float) -> EdgeLoss:
        """Return the loss as a function of the differences minus an offset.

        The remaining worths are bounded by `radius` times ``far``. Beyond ``straight`` the loss is
        a line. The offset is therefore clipped at a size from which no remaining difference reaches
        back into the curved part.

        Rounding the offset, the remainder and their sum t moves t by 2 u |t| and 8 u radius far.
        The curvature times |t| is below the bound of the slope. The curvature times far / 28, the
        unit of a distribution with exponential tails, is below this bound as well. The slope
        therefore moves by at most 2 + 2^8 radius unit roundoffs of its bound.
        """
        end = self.straight + 8.0 * radius * self.far
        offset = np.clip(offset, -end, end)
        return replace(
            self,
            value=lambda t: self.value(t + offset),
            slope=lambda t: self.slope(t + offset),
            curvature=lambda t: self.curvature(t + offset),
            accuracy=self.accuracy + 2.0 + 2.0**8 * radius,
        )


def loss_bounds(link: Link) -> LossBounds:
    """Return the constants of the loss that objective perturbation minimises under a link.

    This is the log-loss if A1 bounds its slope, and the matching loss if not. The slope F - y of
    the matching loss lies in [-1, 1] and changes by 1 with the answer. Its curvature F' does not
    depend on the answer.
    """
    if link == LOGIT:
        return LOGISTIC
    if math.isinf(link.kappa1):
        return LossBounds("matching loss", 1.0, 1.0, link.exact.peak)
    return LossBounds(
        "log-likelihood", link.exact.steepest, link.kappa1, link.kappa2, link.exact.asymmetry
    )


@dataclass(frozen=True, eq=False)
class Objective:
    """The convex objective of a fit and its derivatives; parameters as in :func:`fit_ridge`."""

    target: FloatArray
    linear: LinearPredictor
    ridge: Ridge
    loss: EdgeLoss

    @cached_property
    def penalised(self) -> bool:
        """Whether there is a ridge, without which the minimum may lie at infinity."""
        return bool(np.any(self.ridge))

    def value(self, b: FloatArray) -> float:
        """Return the objective."""
        return float(
            self.loss.value(self.linear.predict(b))
            - self.target @ b
            + 0.5 * b @ ridge_product(self.ridge, b)
        )

    def gradient(self, b: FloatArray) -> FloatArray:
        """Return its gradient."""
        return (
            self.linear.scores(self.loss.slope(self.linear.predict(b)))
            + ridge_product(self.ridge, b)
            - self.target
        )

    @cached_property
    def _sums(self) -> tuple[FloatArray | float, FloatArray]:
        """Return the numbers of terms in the gradient, and the sums of the slopes' bounds."""
        edges = len(self.loss.size)
        single = self.linear.pairs is not None
        terms = self.linear.sizes(np.ones(edges)) if single else float(max(edges, self.linear.size))
        return terms, self.linear.sizes(self.loss.size)

    def rounding(self, b: FloatArray) -> float:
        """Bound the l2 error made in computing the gradient in double precision.

        The error of the slope of an edge is at most k u times its bound, where k is the
        ``accuracy`` of the loss (5 for the logistic loss, proved with each link). A sum of r terms
        adds r u times the sum of magnitudes. The error of each coefficient is therefore at most
        u (edges + k + 3) times the sum of the bounds of its edges and the magnitudes of the other
        two terms. The 3 includes the rounding of the target and of the norm.

        The difference of two worths is rounded once, which k includes. The error of any other
        predictor, and of a product with a ridge, is at most p u times the sum of magnitudes in it.
        It moves the slope by the curvature times this error.
        """
        linear = self.linear
        terms, slopes = self._sums
        size = slopes + ridge_product(np.abs(self.ridge), np.abs(b))
        off = (terms + self.loss.accuracy + 3.0) * (size + np.abs(self.target))
        if linear.pairs is None:
            behind = absolute(linear).predict(np.abs(b))
            curvature = np.abs(self.loss.curvature(linear.predict(b)))
            off += linear.size * linear.sizes(curvature * behind)
        return float(UNIT_ROUNDOFF * np.linalg.norm(off))

    def step(self, b: FloatArray, slope: FloatArray, accuracy: float) -> FloatArray | None:
        """Return the step that Newton's method subtracts; None if a direction has no curvature."""
        linear = self.linear
        newton = None
        weights = self.loss.curvature(linear.predict(b))
        right = linear.centred(slope)
        if linear.pairs is not None and linear.items > DENSE_LIMIT:
            newton = self._iterated(linear.pairs, weights, right, accuracy)
        if newton is None or not np.isfinite(newton).all():
            hessian = linear.filled(
                linear.information(weights) + ridge_product(self.ridge, np.eye(len(b)))
            )
            newton = linear.solve(hessian, right)
            if not np.isfinite(newton).all():
                if not self.penalised:
                    return None
                # a certificate must continue: any positive definite matrix gives a descent
                diagonal = np.diag(hessian)
                hessian += np.diag(np.maximum(diagonal, UNIT_ROUNDOFF * diagonal.max()))
                newton = linear.solve(hessian, right)
        newton = linear.centred(newton)
        if linear.pairs is None or not self.penalised:
            return newton
        # the curvature along constant worths is the ridge alone, however small it is
        return np.asarray(newton + slope.mean() / self.ridge)

    def _iterated(
        self, pairs: PairCounts, weights: FloatArray, right: FloatArray, accuracy: float
    ) -> FloatArray:
        """Solve for a step of worths by conjugate gradients; NaN if they fail."""
        m = len(right)
        diagonal = self.linear.sizes(weights) + self.ridge
        # pairs are sorted by their first item, so the upper triangle needs no sorting
        starts = np.searchsorted(pairs.first, np.arange(m + 1))
        upper = csr_array((weights, pairs.second, starts), (m, m))
        # the matrix is the Laplacian and the ridge, and is never formed
        system = LinearOperator(
            (m, m), matvec=lambda x: diagonal * x - upper @ x - upper.T @ x, dtype=np.float64
        )
        scale = diags_array(1.0 / np.maximum(diagonal, np.finfo(float).tiny))
        step, failed = with_fallback(
            lambda: cg(system, right, rtol=accuracy, maxiter=10 * m, M=scale),
            lambda: (right, 1),
        )
        return np.full(m, np.nan) if failed else np.asarray(step)

    def with_best_tie(self, b: FloatArray) -> FloatArray:
        """Return coefficients with the best tie parameter for their worths.

        The derivative of the objective by this parameter is N P - T. Here N is the number of
        comparisons, P the mean probability of a tie and T the target in (0, N). The derivative
        changes sign between min |d| / 2 + log(T / N), where P is at most T / N, and
        max |d| / 2 + log(2 N / (N - T)), where 1 - P is at most 1 - T / N.
        """
        total = float(self.loss.size[: len(self.loss.size) // 3].sum())
        target = self.target[-1]
        if not 0.0 < target < total:
            return b
        half = 0.5 * np.abs(worths_and_ties(self.linear.predict(b))[0])
        best = find_root(
            lambda tie: float(self.gradient(np.append(b[:-1], tie))[-1]),
            float(half.min()) + math.log(target / total) - 1.0,
            float(half.max()) + math.log(2.0 * total / (total - target)) + 1.0,
        )
        return np.append(b[:-1], best)


@dataclass(frozen=True, slots=True)
class Minimum:
    """The last point of a fit, and the l2 norm of the computed gradient at this point.

    `finite` is False if there is no ridge and the minimum lies at infinity. `converged` is True if
    the fit met its stopping rule.
    """

    point: FloatArray
    gradient_norm: float
    finite: bool = True
    converged: bool = True


def minimise(
    problem: Objective,
    start: FloatArray,
    tolerance: float | None = None,
    settle: Callable[[FloatArray], FloatArray] = lambda point: point,
) -> Minimum:
    """Minimise by damped Newton steps, which converge for every convex objective.

    A `tolerance` requires a certificate: steps continue without limit until the computed gradient
    norm plus its rounding bound is at most `tolerance`. Without it, steps continue to the accuracy
    of double precision. Every point is replaced by ``settle(point)``, at which the objective must
    not be larger.

    Notes
    -----
    **Descent.** The length of a step is halved until the objective falls by a fraction of the
    decrease that the slope predicts, or the gradient norm falls by 10%. The length of a step in
    standard errors is the square root of gradient'step. The objective shows no progress if a step
    is shorter than a millionth of a standard error; the gradient alone then decides. Curvatures can
    underflow if a distribution has light tails. A ridge keeps the step finite.

    **End.** Without a certificate the fit ends if the gradient is within its rounding bound. It
    also ends if no length of a step is a descent and the step is shorter than a millionth of a
    standard error. Without a ridge the gradient also vanishes on the way to infinity. The minimum
    is then finite if the last step would no longer move any predictor.
    """
    x = settle(start)
    gradient = problem.gradient(x)
    norm = float(np.linalg.norm(gradient))
    start_norm = max(norm, 1e-300)
    certified = tolerance is not None
    symmetric = problem.linear.symmetric
    taken = 0
    while certified or taken < _STEPS:
        error = problem.rounding(x)
        done = norm <= error if tolerance is None else norm + error <= tolerance
        if done and problem.penalised:
            return Minimum(x, norm)
        step = problem.step(x, gradient, min(1e-3, max(norm / start_norm, 1e-10)))
        if step is None:
            return Minimum(x, norm, finite=False)
        # without a ridge the gradient also vanishes on the way to infinity
        at_rest = problem.penalised or bool(np.abs(problem.linear.apart(step)).max() <= _AT_REST)
        if done and at_rest:
            return Minimum(x, norm)
        # halve the step until the gradient becomes shorter, or the objective falls
        slope = float(gradient @ step)
        length = 1.0
        while length >= 1e-10:
            trial = settle(x - length * step)
            trial_gradient = problem.gradient(trial)
            trial_norm = float(np.linalg.norm(trial_gradient))
            # estimating equations with instruments have no objective: a part of the step must make
            # their residual shorter by a tenth of this part
            if trial_norm <= (0.9 if symmetric else 1.0 - 0.1 * length) * norm or (
                symmetric
                and (certified or slope > _UNRESOLVED)
                and problem.value(trial) <= problem.value(x) - 1e-4 * length * slope
            ):
                break
            length *= 0.5
        if length < 1e-10 and not certified:
            return Minimum(x, norm, finite=at_rest, converged=slope <= _UNRESOLVED)
        x = trial
        gradient = trial_gradient
        norm = trial_norm
        taken += 1
        if not problem.penalised and (np.abs(problem.linear.apart(x)) > problem.loss.far).any():
            return Minimum(x, norm, finite=False)
    return Minimum(x, norm, converged=False)


def fit_ridge(
    target: FloatArray,
    linear: LinearPredictor,
    ridge: Ridge,
    loss: EdgeLoss,
    *,
    solver: Solver = "newton",
    tolerance: float | None = None,
    start: FloatArray | None = None,
) -> Minimum:
    """Minimise a loss of paired comparisons with a ridge.

    Parameters
    ----------
    target : ndarray, shape (p,)
        Right-hand side of the score equations. Without a ridge the entries of worths must sum to 0.
    linear : LinearPredictor
        The map from coefficients to the predictor of each edge.
    ridge : float, or ndarray of shape (p, p)
        Positive semi-definite.
    loss : EdgeLoss
        The loss by edge.
    solver : {"newton", "lbfgs", "cvxpy"}
        Newton's method (dense Cholesky, conjugate gradients for many items), or another solver
        whose solution Newton's method then refines. With cvxpy the logistic loss replaces every
        loss.
    tolerance : float or None
        If given, a certificate is required: steps continue until the computed gradient norm plus
        its rounding bound is at most `tolerance`. If None, to the accuracy of double precision.
    start : ndarray, shape (p,), optional
        Starting point of Newton's method; 0 by default.

    Returns
    -------
    Minimum
        Worths sum to sum(target) / ridge, or to 0 without a ridge.
    """
    problem = Objective(target, linear, ridge, loss)
    start = np.zeros(linear.size) if start is None else start
    if solver == "lbfgs":
        start = _fit_lbfgs(problem)
    elif solver == "cvxpy":
        start = _fit_cvxpy(problem)
    # if another solver failed, Newton's method starts from 0
    start = start if np.isfinite(start).all() else np.zeros(linear.size)
    start = start if problem.penalised else linear.centred(start)
    minimum = minimise(problem, start, tolerance)
    if minimum.converged or linear.worths is None:
        return minimum
    # if noise makes worths very different, ties have almost no curvature and Newton's steps in
    # their parameter have no scale: compute this parameter from the worths at every step
    return minimise(problem, start, tolerance, problem.with_best_tie)


def _fit_lbfgs(problem: Objective) -> FloatArray:
    start = np.zeros(problem.linear.size)
    far = np.full_like(start, problem.loss.far)

    return with_fallback(
        lambda: (
            minimize(
                lambda x: (problem.value(x), problem.gradient(x)),
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=None if problem.penalised else np.column_stack((-far, far)),
            ).x
        ),
        lambda: start,
    )


def _fit_cvxpy(fit: Objective) -> FloatArray:
    import cvxpy as cp

    linear = fit.linear

    def solved() -> FloatArray:
        # defining the problem can fail as well: some versions refuse a matrix without rows
        b = cp.Variable(linear.size)
        t = linear.matrix @ b
        value = fit.loss.size @ (cp.logistic(t) - 0.5 * t) - fit.target @ b
        shrunk = cp.sum_squares(square_root(ridge_product(fit.ridge, np.eye(linear.size))) @ b)
        problem: Any = cp.Problem(
            cp.Minimize(value + 0.5 * shrunk),
            [] if fit.penalised else [cp.norm_inf(b) <= LOGIT.exact.far],
        )
        problem.solve(solver=cp.CLARABEL)
        return np.asarray(b.value, dtype=np.float64)  # NaN where there is none

    with warnings.catch_warnings():
        # a warning would depend on the data
        warnings.simplefilter("ignore")
        return with_fallback(solved, lambda: np.zeros(linear.size))
