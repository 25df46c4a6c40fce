"""What follows from a fit: the errors of its estimates, normal and by the exact noise.

How far worths scatter about a linear combination of item covariates is part of these errors:

**Model.** Of each column of the model matrix the worths of the m items are x_i'beta + u_i, the u_i
independent of each other with mean 0 and one variance tau^2 for all items. Items that are compared
more often do not make u_i any smaller, so errors of beta must hold it.

**Estimate.** By moments, as Paule and Mandel (1982, https://doi.org/10.6028/jres.087.022) have it
for laboratories. Let r be the m - 1 - q numbers that q item covariates leave of the worths of a
fit without them, and V their covariance. tau^2 is where r'(V + tau^2 I)^-1 r has the value
m - 1 - q of its expectation, or 0. As so many numbers alone show tau^2, errors that hold it take t
quantiles of so many degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privrank.bradley_terry.components import Components
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
from privrank.bradley_terry.linear import item_basis
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
"""Beyond this, noise is taken as normal in tests and intervals of single coefficients."""

MAX_DRAWN_ITEMS = 200
FEW_DRAWS = 999
"""Of more items than these tests of all worths are simulated by so few draws."""

_LEAST = 1e-15
"""Share of its own information that is added to that of each coefficient."""

_MAX_DRAWS = 9_999
_MIN_DRAWS = 999
_NUMBERS = 20_000_000
"""Simulated errors of covariates, fewer where each takes many random numbers."""


@dataclass(frozen=True, eq=False)
class Inference:
    """A fit with all that its errors are computed from; see :meth:`of`.

    Parameters
    ----------
    release : Release
        The release.
    equations : ScoreEquations
        The release, read as score equations.
    fitted : Estimate
        Their fit.
    errors : Covariance
        Covariance of the coefficients.
    free : FreeFit, or None
        The fit without item covariates, if there are any and they leave something of the worths.
    """

    release: Release
    equations: ScoreEquations
    fitted: WorthEstimate
    errors: Covariance
    free: FreeFit | None = None

    @classmethod
    def of(cls, release: Release, fitted: WorthEstimate) -> Inference:
        """Compute the covariance of a fit."""
        equations = score_equations(release)
        errors = covariance(equations, release, fitted)
        if (free := FreeFit.of(release, corrected=fitted.corrected)) is not None:
            errors = _with_scatter(errors, equations, fitted, free)
        return cls(release, equations, fitted, errors, free)

    @property
    def draws(self) -> int:
        """How many errors of all coefficients are simulated."""
        facts = self.equations
        if facts.covariates is None:
            return 20_000 if facts.items <= 20 else 8_000
        many = _NUMBERS // (len(facts.covariates.weights) * facts.items) - 1
        return max(_MIN_DRAWS, min(_MAX_DRAWS, many))

    @property
    def many(self) -> bool:
        """Whether items are so many that noise is normal, and tests of one contrast are Wald's."""
        return self.equations.items > MAX_SIMULATED_ITEMS

    @cached_property
    def clusters(self) -> Clusters | None:
        """The answers of respondents, where they are known; else None."""
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

        Infinite where it is given: by independent answers, by answers that are known, or as the
        most that a released design effect allows.
        """
        released = LARGEST in self.release.found
        if self.clusters is not None or (released and effect_bounded(self.release)):
            return self.whole_freedom
        return degrees_of_freedom(self.release)

    @property
    def whole_freedom(self) -> float:
        """Degrees of freedom with which whole variances are known at most, noise included.

        Those of the contrasts that show the scatter of items about their covariates, else infinite.
        """
        return self.release.design.item_freedom or math.inf

    @property
    def effect(self) -> tuple[float, float]:
        """Relative standard error of a released design effect, and how many times it can be larger.

        0 and 1 where none was released, and where it is as large as it can be.
        """
        if LARGEST not in self.release.found or effect_bounded(self.release):
            return 0.0, 1.0
        effect = released_effect(self.release)
        return effect_error(self.release) / effect, self.release.found[CEILING] / effect

    def answer_points(self, t: FloatArray) -> tuple[tuple[FloatArray, float], ...]:
        """Return where known answers are looked at, and what products of residuals count for there.

        At predictors t, and at the fit, from which residuals are smaller.
        """
        n = self.release.design.nobs
        fit = self.equations.linear.predict(self.fitted.coefficients)
        return (t, 1.0), (fit, n / max(n - 1.0, 1.0))

    def moves(self, contrasts: FloatArray) -> FloatArray:
        """Return V c for contrasts c, shape (rows, p), along which a null point is off the fit.

        V is the covariance of the fit under independent answers, with its noise; without noise the
        inverse of the information.
        """
        if self.release.source == "none":
            return self.weights(self.equations.linear.predict(self.fitted.coefficients), contrasts)
        return product(contrasts, self._covariance)

    @cached_property
    def _covariance(self) -> FloatArray:
        return readonly(self.errors.independent + self.errors.privacy)

    @cached_property
    def score(self) -> FloatArray:
        """The scores; if noise has carried them beyond all answers, those the fit expects.

        Known answers are left to the edges.
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
        """Return combinations of scores less expected ones, shape (rows,), at predictors t.

        Given the weights of the scores, and those by edge, shape (rows, edges) as the predictors.
        """
        return np.asarray(weights @ self.score + (along * self._left(t)).sum(axis=-1))

    def scores_left(self, t: FloatArray) -> FloatArray:
        """Return the scores, as they are, less expected ones, shape (p,), at predictors t."""
        scores = objective(self.equations)[0]
        return scores + self.equations.linear.scores(self._left(t))

    def _left(self, t: FloatArray) -> FloatArray:
        """Return what is left of each edge: less its expected score, or known answers less that.

        Known answers have the weights of their scores, and are no part of :attr:`score`.
        """
        facts = self.equations
        if facts.answers is None:
            return np.asarray(-facts.by_edge(facts.released) * facts.function.mean(t))
        won, lost = facts.answers
        left = 0.5 * (won - lost) - facts.count * facts.function.link.excess(t)
        return np.asarray(facts.fitted.weight(t) * left)

    def weights(self, t: FloatArray, contrasts: FloatArray) -> FloatArray:
        """Return H^-1 c for contrasts, shape (rows, p), with H the information at predictors t.

        Each is brought to a largest weight of 1, as a direction is meant, whatever its length.
        """
        linear = self.equations.linear
        p = len(self.fitted.coefficients)
        weights = self.equations.count * self.equations.fitted.curvature(np.atleast_2d(t))
        information = linear.information(weights)
        rows = np.arange(len(weights))[:, None]
        columns = np.broadcast_to(np.arange(p), (len(weights), p))
        if self.equations.covariates is None:
            # worths beside that of the item about which most is known: no constant is in the way
            known = np.diagonal(information, axis1=1, axis2=2)[:, : self.equations.items]
            base = np.argmax(known, axis=1)[:, None]
            others = np.arange(p - 1)
            columns = others + (others >= base)
        inner = information[rows[..., None], columns[..., None], columns[:, None, :]]
        # in units in which what hardly anything is known of is not lost beside the rest
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
        """Covariance of normal errors of the scores beside sampling and noise, shape (p, p)."""
        facts = self.equations
        terms = [term for term in facts.terms.values() if term.beside]
        noise = facts.noise_covariance(self.fitted.coefficients, terms)
        return readonly(noise + self.errors.scattered)

    def score_errors(self) -> ScoreErrors | None:
        """Return the errors of the scores at the fit, None where tests are not by them."""
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
        """Draw the noise by its exact distributions, but for errors of counts that are normal.

        Errors beside it and the noise on the worths of objective perturbation are left out, and of
        many items what the noise of pairs does, as it is taken as normal.
        """
        terms = [
            term
            for term in self.equations.terms.values()
            if not (term.beside or (self.many and term.by_pair))
        ]
        return self.equations.simulate_noise(b, draws, terms, self.fitted.coefficients, generator)


@dataclass(frozen=True, eq=False)
class FreeFit:
    """The fit of a model with item covariates, read without them.

    Parameters
    ----------
    inference : Inference
        Of the release, as one of a model without item covariates.
    left : ndarray, shape (m - 1, m - 1)
        The projection of worths, on contrasts of the items, that item covariates leave: of worths
        that the release identifies.
    """

    inference: Inference
    left: FloatArray

    @classmethod
    def of(cls, release: Release, *, corrected: bool) -> FreeFit | None:
        """Fit the release of a model with item covariates; None where these leave nothing."""
        design = release.design
        m = len(release.design.items)
        if design.covariates is None or not design.item_freedom:
            return None
        without = replace(design.covariates, item_columns=(), item_matrix=np.zeros((m, 0)))
        free = replace(release, survey=replace(design, covariates=without))
        known = Components.of(free.design, pair_counts(release).get("member")).projection
        within = np.eye(m - 1) if known is None else known[: m - 1, : m - 1]
        # what item covariates span of the identified worths, and what they leave
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
            # what is left of the worths, in coordinates in which their errors are independent
            apart = axes.T @ basis.T @ fit.fitted.coefficients[here]
            scatter.append(_paule_mandel(apart**2, spread))
        return readonly_copy(scatter, np.float64)


def _paule_mandel(squares: FloatArray, variances: FloatArray) -> float:
    """Return the tau^2 at which squares are, weighted, what they are in expectation, or 0."""

    def beyond(tau2: float) -> float:
        return float((squares / (variances + tau2)).sum()) - len(squares)

    if not (np.isfinite(squares).all() and (variances > 0).all() and beyond(0.0) > 0):
        return 0.0
    return find_root(beyond, 0.0, float(squares.mean()))


def _with_scatter(
    errors: Covariance, equations: ScoreEquations, fitted: WorthEstimate, free: FreeFit
) -> Covariance:
    """Return errors that hold the scatter of the items about their covariates.

    A worth that is off by u_i brings its scores along, by the information of the fit.
    """
    # the scores that worths on contrasts of the items bring along
    curvature = equations.fitted.curvature(equations.linear.predict(fitted.coefficients))
    contrasts = free.inference.equations.linear.matrix
    weighted = (equations.pairs.count * curvature)[:, None] * contrasts
    variances = np.repeat(free.scatter, equations.items - 1)
    moved = np.asarray(equations.linear.matrix.T @ weighted)[:, : len(variances)]
    return replace(errors, scattered=(moved * variances) @ moved.T)


def attainable(score: FloatArray, pairs: PairCounts, function: ScoreFunction) -> bool:
    """Return whether any answers could have such scores, by a necessary condition.

    For the k best-scoring items the scores add up to at most half the comparisons that leave the
    group, or to the function's largest score for each; noise can carry them beyond. For net wins
    on a complete design with equal counts the condition is also sufficient (Landau).
    """
    order = np.argsort(-score)
    place = np.argsort(order)
    better = np.minimum(place[pairs.first], place[pairs.second])
    worse = np.maximum(place[pairs.first], place[pairs.second])
    # a pair is cut by the groups that hold its better item only
    steps = np.bincount(better, pairs.count, minlength=len(order))
    leaving = np.cumsum(steps - np.bincount(worse, pairs.count, minlength=len(order)))[:-1]
    return bool((np.cumsum(score[order])[:-1] < function.most * leaving).all())
