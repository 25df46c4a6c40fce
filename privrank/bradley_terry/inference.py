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

This module has no access to the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privrank.bradley_terry.dependence import (
    Clusters,
    degrees_of_freedom,
    effect_bounded,
    effect_error,
    independent_scores,
    released_effect,
    second_moments,
)
from privrank.bradley_terry.equations import ScoreEquations, score_equations
from privrank.bradley_terry.estimate import (
    Covariance,
    WorthEstimate,
    covariance,
    estimate,
    objective,
)
from privrank.bradley_terry.fit import ScoreFunction
from privrank.bradley_terry.paircounts import pair_counts
from privrank.bradley_terry.predictor import Components, item_basis
from privrank.hypotheses.nulls import public_generator
from privrank.release.names import CEILING, DEPENDENCE, LARGEST, MOMENTS, RESIDUAL
from privrank.release.release import Release
from privrank.release.survey import PairCounts
from privrank.util.arrays import FloatArray, batches, readonly_copy
from privrank.util.solvers import find_root, product, quadratic, solve_each, spectrum

MAX_SIMULATED_ITEMS = 50
_MAX_CONTESTS = 5000
"""Number of items above which tests and intervals of single coefficients use normal noise."""

MAX_DRAWN_ITEMS = 200
FEW_DRAWS = 999
"""Number of items above which joint tests use few draws, and the least number of draws."""

_LEAST = 1e-15
"""Relative increase of the diagonal of the information, for numerical stability."""

_MAX_DRAWS = 9_999
_NUMBERS = 20_000_000
"""Largest numbers of simulated errors with covariates, and of random numbers in all."""


_GROUPS = 64
"""Number of groups of draws of similar size that represent the noise of one number."""

_FAR = 120
_FINE = 4
"""Number of sizes that represent the largest draws, and number per halving of the tail."""

KNOWN = 1e9
"""Degrees of freedom from which a variance is treated as known."""

_BLOCK = 2**21
"""Largest number of array entries in memory at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class SecondMoments:
    """The covariance of scores as estimated by second moments that were released with noise.

    The variance of a contrast is the measured one, but at least the variance under independent
    answers. Applying this bound to each contrast separately adds less variance than a covariance
    that satisfies it in every direction.

    Parameters
    ----------
    measured : ndarray, shape (p, p)
        Unbiased estimate of the covariance of the scores, which noise can make indefinite. The
        covariance of the number of ties with the other scores is not measured.
    least : ndarray, shape (p, p)
        The covariance under independent answers.
    noise : float
        Variance of the noise of the product of two items' scores.
    tied : bool
        Whether the last score is the number of ties.
    """

    measured: FloatArray
    least: FloatArray
    noise: float
    tied: bool = False

    def variances(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the variances of combinations of scores, and the variances of their errors.

        For weights a of half the net wins and c of the number of ties T, the variance of
        a'net / 2 + c T is at most (sd a'net / 2 + |c| sd T)^2, whatever their correlation. The
        errors of both variances are propagated to this bound by its derivatives.
        """
        m = len(self.least) - self.tied
        items = weights[:, :m] - weights[:, :m].mean(axis=1, keepdims=True)
        squares = items**2
        # sum over pairs i < j of (a_i a_j)^2
        products = 0.5 * (squares.sum(axis=1) ** 2 - (squares**2).sum(axis=1))
        variance = np.maximum(
            quadratic(items, self.measured[:m, :m]), quadratic(items, self.least[:m, :m])
        )
        side = self.noise * products
        if not self.tied:
            return variance, side
        ties = max(float(self.measured[m, m]), float(self.least[m, m]), 1e-300)
        own = weights[:, m] ** 2
        both = (np.sqrt(np.maximum(variance, 0.0)) + np.sqrt(own * ties)) ** 2
        # a tie has the score 1 and a net win 1/2, so its noise is 16 times the noise of products
        relative = side / np.maximum(variance, 1e-300) + 16.0 * self.noise * own / ties
        return both, both * relative


def single_contrasts(
    equations: ScoreEquations, release: Release, b: FloatArray
) -> SecondMoments | None:
    """Return second moments for tests of single contrasts; None if none were released by pair.

    A combination a of half net wins has the variance -sum over pairs of a_i a_j q_ij / 4.
    """
    if DEPENDENCE not in release.parts or LARGEST in release.found:
        return None
    return SecondMoments(
        second_moments(equations, release, b),
        independent_scores(equations, release, b),
        release.found.get(RESIDUAL, 1.0) ** 4 * release.parts[DEPENDENCE].noise_variance / 16.0,
        equations.tied,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ScoreErrors:
    """Errors of p scores at the fit.

    Parameters
    ----------
    sampling : ndarray, shape (p, p)
        Covariance of the sampling errors.
    additional : ndarray, shape (p, p)
        Covariance of other normal errors, such as errors of comparisons by group.
    noise : ndarray, shape (draws, p), or None
        Draws of the noise, from a public counter seed; None if there is no noise.
    df : float
        Degrees of freedom of the estimated covariance, infinite if the covariance is known.
    moments : SecondMoments, optional
        Second moments for single contrasts, if they are more precise than `sampling`, which is
        valid for all contrasts simultaneously.
    effect : tuple of float
        Relative standard error of a released design effect in `sampling`, due to its noise, and
        the ratio of its ceiling to it.
    whole_df : float
        Upper bound of the degrees of freedom of whole variances, noise included. It is the number
        of contrasts from which the scatter of items about their covariates is estimated, and
        infinite without item covariates.

    Notes
    -----
    **Noise.** Tail probabilities of sampling errors plus noise are averages over the draws. Except
    for the largest draws, draws of similar size are combined and replaced by their root mean
    square. The largest draws determine the far tail, which simultaneous statements need. They are
    replaced by an exponential tail with their mean excess, because all noise here has such a tail
    or a lighter one. The noise is symmetric, so only its absolute sizes are stored.
    """

    sampling: FloatArray
    additional: FloatArray
    noise: FloatArray | None = None
    df: float = np.inf
    moments: SecondMoments | None = None
    effect: tuple[float, float] = (0.0, 1.0)
    whole_df: float = np.inf

    def variances(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sampling variances by row of `weights`, and the variances of their errors."""
        if self.moments is not None:
            variance, side = self.moments.variances(weights)
        else:
            variance = quadratic(weights, self.sampling)
            side = (self.effect[0] * variance) ** 2
        return np.maximum(variance, 1e-300), side

    def freedom(
        self, normal: FloatArray, side: FloatArray | float, total: FloatArray, df: float
    ) -> FloatArray:
        """Return the degrees of freedom of total variances, of which a part is not noise.

        They follow from Satterthwaite's rule. `df` are the degrees of freedom of the part that is
        not noise, `normal`, due to the finite number of respondents. `side` is the variance of its
        error due to noise on the released dependence. The result is at most `whole_df`.
        """
        lost = 0.5 * side / total / total + (normal / total) ** 2 / df
        return np.asarray(np.minimum(1.0 / np.maximum(lost, 1e-300), min(self.whole_df, KNOWN)))

    def sizes(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sizes of the noise of combinations, shape (rows, sizes), and their shares."""
        if self.noise is None:
            return np.zeros((len(weights), 1)), np.ones(1)
        draws = len(self.noise)
        last = max(draws // _GROUPS, 1)
        starts = np.arange(0, draws - last, last)
        halvings = np.arange(_FAR) / _FINE
        beyond = np.diff(1.0 - 2.0**-halvings, append=1.0)
        share = np.append(np.diff(starts, append=draws - last), last * beyond) / draws
        sizes = np.empty((len(weights), len(share)))
        for rows in batches(len(weights), draws, _BLOCK):
            drawn = np.sort(np.abs(weights[rows] @ self.noise.T), axis=1)
            body = drawn[:, : draws - last]
            tail = drawn[:, draws - last :]
            # combine draws of similar size by their mean square
            sizes[rows, : len(starts)] = np.sqrt(
                np.add.reduceat(body**2, starts, axis=1) / (share[: len(starts)] * draws)
            )
            # replace the largest by an exponential tail with their mean excess, in equal steps of
            # the logarithm of the tail probability
            excess = (tail - body[:, -1:]).mean(axis=1, keepdims=True)
            steps = np.log(2.0) * (halvings + 0.5 / _FINE)
            sizes[rows, len(starts) :] = body[:, -1:] + excess * steps
        return sizes, share


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
        equations = self.equations
        errors = covariance(equations, self.release, self.fitted)
        if self.free is None:
            return errors
        # a deviation u_i of a worth moves the scores by the information of the fit
        edges = equations.linear.predict(self.fitted.coefficients)
        weights = (equations.pairs.count * equations.fitted.curvature(edges))[:, None]
        scored = equations.linear.along(np.eye(equations.linear.size))
        moved = scored @ (weights * self.free.inference.equations.linear.matrix)
        variances = np.repeat(self.free.scatter, equations.items - 1)
        moved = np.asarray(moved)[:, : len(variances)]
        return replace(errors, scattered=(moved * variances) @ moved.T)

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
        most = _NUMBERS // (len(facts.covariates.weights) * facts.items) - 1
        return max(FEW_DRAWS, min(_MAX_DRAWS, most))

    @property
    def many(self) -> bool:
        """Whether noise is taken as normal and tests are Wald tests: many items or contests."""
        facts = self.equations
        cells = len(facts.pairs.count) if facts.contests else 0
        return facts.items > MAX_SIMULATED_ITEMS or cells > _MAX_CONTESTS

    @cached_property
    def at_fit(self) -> FloatArray:
        """The predictors of the fit."""
        return readonly_copy(self.equations.linear.predict(self.fitted.coefficients), np.float64)

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
        if self.clusters is not None or (
            LARGEST in self.release.found and effect_bounded(self.release)
        ):
            return self.whole_freedom
        return degrees_of_freedom(self.release)

    @property
    def whole_freedom(self) -> float:
        """Upper bound of the degrees of freedom of whole variances, noise included.

        It is the number of contrasts from which the scatter of items about their covariates is
        estimated, and infinite without item covariates.
        """
        return self.release.design.item_freedom or np.inf

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
        return (t, 1.0), (self.at_fit, n / max(n - 1.0, 1.0))

    def moves(self, contrasts: FloatArray) -> FloatArray:
        """Return V c for contrasts c, shape (rows, p), the directions from the fit to null points.

        V is the covariance of the fit under independent answers, noise included. Without noise it
        is the inverse of the information.
        """
        if self.release.source == "none":
            return self.weights(self.at_fit, contrasts)
        return product(contrasts, self.errors.independent + self.errors.privacy)

    @cached_property
    def score(self) -> FloatArray:
        """The scores, replaced by the scores that the fit expects if no answers can have them.

        Known answers are not part of these scores; they enter by edge.
        """
        facts = self.equations
        if self.release.source == "none":
            return objective(facts)[0]
        if facts.covariates is None:
            possible = attainable(facts.score[: facts.items], facts.pairs, facts.function)
        else:
            # a necessary condition, in the direction in which such scores drive the fit
            most = facts.function.most * float(facts.by_edge(facts.released) @ np.abs(self.at_fit))
            possible = float(facts.score @ self.fitted.coefficients) < most
        if possible:
            return facts.score
        return readonly_copy(-facts.linear.scores(self.left(self.at_fit)))

    def left(self, t: FloatArray) -> FloatArray:
        """Return the residual of each edge, or minus its expected score if answers are not known.

        Residuals of known answers have the weights of their scores. Known answers are not part of
        :attr:`score`.
        """
        facts = self.equations
        if facts.answers is None:
            return np.asarray(-facts.by_edge(facts.released) * facts.function.mean(t))
        won, lost = facts.answers
        expected = facts.count * facts.function.link.excess(t)
        return np.asarray(facts.fitted.weight(t) * (0.5 * (won - lost) - expected))

    def weights(self, t: FloatArray, contrasts: FloatArray) -> FloatArray:
        """Return H'^-1 c for contrasts, shape (rows, p), with H the information at predictors t.

        Only the directions matter, so each row is scaled to a largest weight of 1.
        """
        p = len(self.fitted.coefficients)
        weights = self.equations.count * self.equations.fitted.curvature(np.atleast_2d(t))
        information = self.equations.linear.information(weights).swapaxes(1, 2)
        columns = np.broadcast_to(np.arange(p), (len(weights), p))
        if self.equations.covariates is None:
            # worths relative to the item with the most information, which removes the constant
            known = np.diagonal(information, axis1=1, axis2=2)[:, : self.equations.items]
            others = np.arange(p - 1)
            columns = others + (others >= np.argmax(known, axis=1)[:, None])
        inner = information[
            np.arange(len(weights))[:, None, None], columns[..., None], columns[:, None, :]
        ]
        # scale to a unit diagonal, which keeps coefficients with little information
        units = np.sqrt(np.maximum(np.abs(np.diagonal(inner, axis1=1, axis2=2)), 1e-290))
        inner = inner / (units[..., None] * units[:, None, :]) + _LEAST * np.eye(columns.shape[1])
        scaled = contrasts[np.arange(len(contrasts))[:, None], columns] / units
        inner = np.broadcast_to(inner, (len(contrasts), *inner.shape[1:]))
        whole = np.zeros_like(contrasts)
        np.put_along_axis(
            whole, np.broadcast_to(columns, scaled.shape), solve_each(inner, scaled) / units, axis=1
        )
        whole /= np.maximum(np.abs(whole).max(axis=1, keepdims=True), 1e-290)
        return product(whole, self.equations.linear.identity)

    @cached_property
    def additional(self) -> FloatArray:
        """Covariance of normal score errors other than sampling and simulated noise, (p, p)."""
        terms = [term for term in self.equations.terms.values() if term.additional]
        noise = self.equations.noise_covariance(self.fitted.coefficients, terms)
        return readonly_copy(noise + self.errors.scattered)

    @property
    def score_errors(self) -> ScoreErrors | None:
        """Return the errors of the scores at the fit; None if score tests are not used."""
        if self.many:
            return None
        facts = self.equations
        b = self.fitted.coefficients
        noise: FloatArray | None = None
        if any(term.variance > 0 for term in facts.terms.values()):
            draws = self.draws if facts.covariates is not None else self.draws // 2
            noise = self.draw_noise(b, draws, public_generator("errors of coefficients", len(b)))
        return ScoreErrors(
            self.errors.scores,
            self.additional,
            noise,
            self.freedom,
            single_contrasts(facts, self.release, b),
            self.effect,
            self.whole_freedom,
        )

    def draw_noise(
        self, b: FloatArray, draws: int, generator: np.random.Generator | None = None
    ) -> FloatArray:
        """Simulate the noise of the scores at coefficients b, shape (draws, p).

        It is drawn from its exact distributions, with normal errors of counts. Terms that are not
        simulated and the noise on the worths of objective perturbation are left out. With many
        items the noise of pairs is left out as well, because it is taken as normal.
        """
        generator = generator or public_generator("noise of scores", len(b), draws)
        terms = [
            term
            for term in self.equations.terms.values()
            if term.variance > 0 and not (term.additional or (self.many and term.by_pair))
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
        left = readonly_copy(within @ others @ others.T @ within)
        if np.trace(left) < 0.5:
            return None
        fitted = estimate(score_equations(free), free, None if corrected else 0.0)
        return cls(Inference.of(free, fitted), left)

    @cached_property
    def scatter(self) -> FloatArray:
        """tau^2 of each column of the model matrix."""
        fit = self.inference
        size = len(self.left)
        (values, vectors) = spectrum(self.left)
        basis = vectors[:, values > 0.5]
        scatter = []
        # contest covariates, or a tie parameter, come after the columns
        for start in range(0, len(fit.fitted.coefficients) // size * size, size):
            here = slice(start, start + size)
            spread, axes = spectrum(basis.T @ fit.errors.total[here, here] @ basis)
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
    leaving = np.cumsum(
        np.bincount(better, pairs.count, minlength=len(order))
        - np.bincount(worse, pairs.count, minlength=len(order))
    )[:-1]
    return bool((np.cumsum(score[order])[:-1] < function.most * leaving).all())
