"""The errors of the estimates of a fit: sampling error, privacy noise and scatter of items.

The noise is either approximated as normal or has its exact distribution. If the model has item
covariates, the errors include the scatter of the worths about a linear combination of these:

**Model.** For each column of the model matrix the worths of the m items are x_i'beta + u_i. The u_i
are independent, with mean 0 and a common variance tau^2. More comparisons of an item do not reduce
u_i, so standard errors of beta must include tau^2.

**Estimate.** tau^2 is estimated by the method of moments of Paule and Mandel (1982,
https://doi.org/10.6028/jres.087.022) for laboratories. Let r be the m - 1 - q residual contrasts of
the worths of a fit without the q item covariates, and V their covariance. The estimate is the tau^2
for which r'(V + tau^2 I)^-1 r equals its expectation m - 1 - q, or 0 if there is none. It rests on
m - 1 - q numbers, so standard errors that include it use t quantiles with m - 1 - q degrees of
freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privrank.bradley_terry.dependence import (
    Clusters,
    degrees_of_freedom,
    effect_bounded,
    effect_error,
    released_effect,
    single_contrasts,
)
from privrank.bradley_terry.equations import ScoreEquations
from privrank.bradley_terry.errors import ScoreErrors
from privrank.bradley_terry.estimate import (
    Covariance,
    WorthEstimate,
    covariance,
    estimate,
    objective,
)
from privrank.bradley_terry.linear import Components, item_basis
from privrank.bradley_terry.losses import ScoreFunction
from privrank.bradley_terry.paircounts import pair_counts
from privrank.bradley_terry.readings import score_equations
from privrank.hypotheses.nulls import public_generator
from privrank.release.names import CEILING, LARGEST, MOMENTS
from privrank.release.release import Release
from privrank.release.survey import PairCounts
from privrank.util.arrays import FloatArray, readonly, readonly_copy
from privrank.util.solvers import find_root, product, solve_each, spectrum

MAX_SIMULATED_ITEMS = 50
"""Number of items above which tests and intervals of single coefficients use normal noise."""

MAX_DRAWN_ITEMS = 200
FEW_DRAWS = 999
"""Number of items above which joint tests use few draws, and the number of these draws."""

_LEAST = 1e-15
"""Relative increase of the diagonal of the information, for numerical stability."""

_MAX_DRAWS = 9_999
_MIN_DRAWS = 999
_NUMBERS = 20_000_000
"""Bounds of the number of simulated errors with covariates, and of random numbers in all."""


@dataclass(frozen=True, eq=False)
class Inference:
    """A fit, and everything that its standard errors and tests need; see :meth:`of`.

    Parameters
    ----------
    release : Release
        The release.
    equations : ScoreEquations
        The release, read as score equations.
    fitted : WorthEstimate
        The fit of these equations.
    """

    release: Release
    equations: ScoreEquations
    fitted: WorthEstimate

    @classmethod
    def of(cls, release: Release, fitted: WorthEstimate) -> Inference:
        """Read the release of a fit; the covariance follows on request."""
        return cls(release, score_equations(release), fitted)

    @cached_property
    def errors(self) -> Covariance:
        """Covariance of the coefficients, with the scatter of items about their covariates."""
        errors = covariance(self.equations, self.release, self.fitted)
        if self.free is None:
            return errors
        return _with_scatter(errors, self.equations, self.fitted, self.free)

    @cached_property
    def free(self) -> FreeFit | None:
        """The fit without item covariates; None if these determine all worths or there are none."""
        return FreeFit.of(self.release, corrected=self.fitted.corrected)

    @property
    def draws(self) -> int:
        """Number of simulated error vectors of all coefficients."""
        facts = self.equations
        if facts.covariates is None:
            return 20_000 if facts.items <= 20 else 8_000
        many = _NUMBERS // (len(facts.covariates.weights) * facts.items) - 1
        return max(_MIN_DRAWS, min(_MAX_DRAWS, many))

    @property
    def many(self) -> bool:
        """Whether noise is taken as normal, and contrasts have Wald tests, due to many items."""
        return self.equations.items > MAX_SIMULATED_ITEMS

    @cached_property
    def clusters(self) -> Clusters | None:
        """The answers of respondents if they are known, None if not."""
        known = MOMENTS[0] in self.release.parts and not self.many
        return Clusters(self.equations, self.release) if known else None

    def spread(self, t: FloatArray) -> FloatArray:
        """Return the variance of each edge's score of independent answers at predictors t."""
        if self.clusters is not None:
            return self.clusters.spread(t)
        return self.equations.spread(t, self.equations.fitted)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the sampling covariance.

        They are infinite if the covariance is not estimated. This is so for independent answers,
        for known answers, and if the design effect is at its ceiling.
        """
        released = LARGEST in self.release.found
        if self.clusters is not None or (released and effect_bounded(self.release)):
            return self.whole_freedom
        return degrees_of_freedom(self.release)

    @property
    def whole_freedom(self) -> float:
        """Upper bound of the degrees of freedom of whole variances, noise included.

        It is the number of contrasts from which the scatter of items about their covariates is
        estimated, and infinite without item covariates.
        """
        return self.release.design.item_freedom or math.inf

    @property
    def effect(self) -> tuple[float, float]:
        """Relative standard error of a released design effect, and ratio of its ceiling to it.

        They are 0 and 1 if none was released, and if the design effect is at its ceiling.
        """
        if LARGEST not in self.release.found or effect_bounded(self.release):
            return 0.0, 1.0
        effect = released_effect(self.release)
        return effect_error(self.release) / effect, self.release.found[CEILING] / effect

    def answer_points(self, t: FloatArray) -> tuple[tuple[FloatArray, float], ...]:
        """Return predictors at which known answers are evaluated, with weights of residuals.

        These are `t` and the predictors of the fit. Residuals from the fit are smaller, so their
        products have the weight n / (n - 1).
        """
        n = self.release.design.nobs
        fit = self.equations.linear.predict(self.fitted.coefficients)
        return (t, 1.0), (fit, n / max(n - 1.0, 1.0))

    def moves(self, contrasts: FloatArray) -> FloatArray:
        """Return V c for contrasts c, shape (rows, p), the directions from the fit to null points.

        V is the covariance of the fit under independent answers, noise included. Without noise it
        is the inverse of the information.
        """
        if self.release.source == "none":
            return self.weights(self.equations.linear.predict(self.fitted.coefficients), contrasts)
        return product(contrasts, self._covariance)

    @cached_property
    def _covariance(self) -> FloatArray:
        return readonly(self.errors.independent + self.errors.privacy)

    @cached_property
    def score(self) -> FloatArray:
        """The scores, replaced by the scores that the fit expects if no answers can have them.

        Known answers are not part of these scores; they enter by edge.
        """
        facts = self.equations
        b = self.fitted.coefficients
        edges = facts.linear.predict(b)
        if self.release.source == "none":
            return objective(facts)[0]
        if facts.covariates is None:
            possible = attainable(facts.score[: facts.items], facts.pairs, facts.function)
        else:
            # a necessary condition, in the direction in which such scores drive the fit
            most = facts.function.most * float(facts.by_edge(facts.released) @ np.abs(edges))
            possible = float(facts.score @ b) < most
        if possible:
            return facts.score
        return readonly(-facts.linear.scores(self._left(edges)))

    def residual(self, weights: FloatArray, along: FloatArray, t: FloatArray) -> FloatArray:
        """Return combinations of scores minus their expectations at predictors t, shape (rows,).

        `weights` are the weights of the scores and `along` the weights by edge. `along` and `t`
        have the shape (rows, edges).
        """
        return np.asarray(weights @ self.score + (along * self._left(t)).sum(axis=-1))

    def scores_left(self, t: FloatArray) -> FloatArray:
        """Return the unchanged scores minus their expectations at predictors t, shape (p,)."""
        scores = objective(self.equations)[0]
        return scores + self.equations.linear.scores(self._left(t))

    def _left(self, t: FloatArray) -> FloatArray:
        """Return the residual of each edge, or minus its expected score if answers are not known.

        Residuals of known answers have the weights of their scores. Known answers are not part of
        :attr:`score`.
        """
        facts = self.equations
        if facts.answers is None:
            return np.asarray(-facts.by_edge(facts.released) * facts.function.mean(t))
        won, lost = facts.answers
        left = 0.5 * (won - lost) - facts.count * facts.function.link.excess(t)
        return np.asarray(facts.fitted.weight(t) * left)

    def weights(self, t: FloatArray, contrasts: FloatArray) -> FloatArray:
        """Return H^-1 c for contrasts, shape (rows, p), with H the information at predictors t.

        Only the directions matter, so each row is scaled to a largest weight of 1.
        """
        linear = self.equations.linear
        p = len(self.fitted.coefficients)
        weights = self.equations.count * self.equations.fitted.curvature(np.atleast_2d(t))
        information = linear.information(weights)
        rows = np.arange(len(weights))[:, None]
        columns = np.broadcast_to(np.arange(p), (len(weights), p))
        if self.equations.covariates is None:
            # worths relative to the item with the most information, which removes the constant
            known = np.diagonal(information, axis1=1, axis2=2)[:, : self.equations.items]
            base = np.argmax(known, axis=1)[:, None]
            others = np.arange(p - 1)
            columns = others + (others >= base)
        inner = information[rows[..., None], columns[..., None], columns[:, None, :]]
        # scale to a unit diagonal, which keeps coefficients with little information
        units = np.sqrt(np.maximum(np.diagonal(inner, axis1=1, axis2=2), 1e-290))
        inner = inner / (units[..., None] * units[:, None, :]) + _LEAST * np.eye(columns.shape[1])
        scaled = contrasts[np.arange(len(contrasts))[:, None], columns] / units
        inner = np.broadcast_to(inner, (len(contrasts), *inner.shape[1:]))
        whole = np.zeros_like(contrasts)
        np.put_along_axis(
            whole, np.broadcast_to(columns, scaled.shape), solve_each(inner, scaled) / units, axis=1
        )
        whole /= np.maximum(np.abs(whole).max(axis=1, keepdims=True), 1e-290)
        return product(whole, linear.identity)

    @cached_property
    def beside(self) -> FloatArray:
        """Covariance of normal score errors other than sampling and simulated noise, (p, p)."""
        facts = self.equations
        terms = [term for term in facts.terms.values() if term.beside]
        noise = facts.noise_covariance(self.fitted.coefficients, terms)
        return readonly(noise + self.errors.scattered)

    def score_errors(self) -> ScoreErrors | None:
        """Return the errors of the scores at the fit; None if score tests are not used."""
        if self.many:
            return None
        facts = self.equations
        b = self.fitted.coefficients
        noise: FloatArray | None = None
        if any(term.variance > 0 for term in facts.terms.values()):
            draws = self.draws if facts.covariates is not None else self.draws // 2
            noise = self._drawn(b, draws, public_generator("errors of coefficients", len(b)))
        return ScoreErrors(
            self.errors.scores,
            self.beside,
            noise,
            self.freedom,
            single_contrasts(facts, self.release, b),
            *self.effect,
            self.whole_freedom,
        )

    def draw_noise(self, b: FloatArray, draws: int) -> FloatArray:
        """Simulate the noise of the scores at coefficients b, shape (draws, p)."""
        if self.release.source == "none":
            return np.zeros((draws, len(b)))
        return self._drawn(b, draws, public_generator("noise of scores", len(b), draws))

    def _drawn(self, b: FloatArray, draws: int, generator: np.random.Generator) -> FloatArray:
        """Draw the noise from its exact distributions, with normal errors of counts.

        Terms that are not simulated and the noise on the worths of objective perturbation are left
        out. With many items the noise of pairs is left out as well, because it is taken as normal.
        """
        terms = [
            term
            for term in self.equations.terms.values()
            if not (term.beside or (self.many and term.by_pair))
        ]
        return self.equations.simulate_noise(b, draws, terms, self.fitted.coefficients, generator)


@dataclass(frozen=True, eq=False)
class FreeFit:
    """The fit of a release of a model with item covariates by the model without them.

    Parameters
    ----------
    inference : Inference
        The fit of the model without item covariates.
    left : ndarray, shape (m - 1, m - 1)
        The projection of identified worths, on contrasts of the items, onto the part that item
        covariates do not span.
    """

    inference: Inference
    left: FloatArray

    @classmethod
    def of(cls, release: Release, *, corrected: bool) -> FreeFit | None:
        """Fit without the item covariates; None if these determine all identified worths."""
        design = release.design
        m = len(release.design.items)
        if design.covariates is None or not design.item_freedom:
            return None
        without = replace(design.covariates, item_columns=(), item_matrix=np.zeros((m, 0)))
        free = replace(release, survey=replace(design, covariates=without))
        known = Components.of(free.design, pair_counts(release).get("member")).projection
        within = np.eye(m - 1) if known is None else known[: m - 1, : m - 1]
        # the part of the identified worths that item covariates span, and the remainder
        spanned = within @ item_basis(without, m).T @ item_basis(design.covariates, m)
        values, vectors = spectrum(spanned @ spanned.T)
        others = vectors[:, values <= 1e-9]
        left = within @ others @ others.T @ within
        if np.trace(left) < 0.5:
            return None
        fitted = estimate(score_equations(free), free, None if corrected else 0.0)
        return cls(Inference.of(free, fitted), readonly_copy(left, np.float64))

    @cached_property
    def scatter(self) -> FloatArray:
        """tau^2 of each column of the model matrix."""
        fit = self.inference
        size = len(self.left)
        total = fit.errors.total
        (values, vectors) = spectrum(self.left)
        basis = vectors[:, values > 0.5]
        scatter = []
        # an order effect, or a tie parameter, comes after the columns
        for start in range(0, len(fit.fitted.coefficients) // size * size, size):
            here = slice(start, start + size)
            spread, axes = spectrum(basis.T @ total[here, here] @ basis)
            # the residual worths, in coordinates in which their errors are independent
            apart = axes.T @ basis.T @ fit.fitted.coefficients[here]
            scatter.append(_paule_mandel(apart**2, spread))
        return readonly_copy(scatter, np.float64)


def _paule_mandel(squares: FloatArray, variances: FloatArray) -> float:
    """Return the tau^2 for which weighted squares equal their expectation; 0 if there is none."""

    def beyond(tau2: float) -> float:
        return float((squares / (variances + tau2)).sum()) - len(squares)

    if not (np.isfinite(squares).all() and (variances > 0).all() and beyond(0.0) > 0):
        return 0.0
    return find_root(beyond, 0.0, float(squares.mean()))


def _with_scatter(
    errors: Covariance, equations: ScoreEquations, fitted: WorthEstimate, free: FreeFit
) -> Covariance:
    """Return the covariance, with the scatter of the items about their covariates included.

    A deviation u_i of a worth moves the scores by the information of the fit.
    """
    # changes of the scores with the worths on contrasts of the items
    curvature = equations.fitted.curvature(equations.linear.predict(fitted.coefficients))
    contrasts = free.inference.equations.linear.matrix
    weighted = (equations.pairs.count * curvature)[:, None] * contrasts
    variances = np.repeat(free.scatter, equations.items - 1)
    moved = np.asarray(equations.linear.matrix.T @ weighted)[:, : len(variances)]
    return replace(errors, scattered=(moved * variances) @ moved.T)


def attainable(score: FloatArray, pairs: PairCounts, function: ScoreFunction) -> bool:
    """Return whether any answers could have these scores, by a necessary condition.

    The scores of the k best items add up to at most half the number of their comparisons with other
    items, or to the function's largest score times this number. Noise can make the sum larger. For
    net wins on a complete design with equal counts the condition is also sufficient (Landau).
    """
    order = np.argsort(-score)
    place = np.argsort(order)
    better = np.minimum(place[pairs.first], place[pairs.second])
    worse = np.maximum(place[pairs.first], place[pairs.second])
    # a pair is cut by the groups that contain its better item only
    steps = np.bincount(better, pairs.count, minlength=len(order))
    leaving = np.cumsum(steps - np.bincount(worse, pairs.count, minlength=len(order)))[:-1]
    return bool((np.cumsum(score[order])[:-1] < function.most * leaving).all())
