"""What follows from a fit: the errors of its estimates, normal and by the exact noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.dependence import degrees_of_freedom, single_contrasts
from privrank.bradley_terry.errors import NoisyErrors
from privrank.bradley_terry.estimate import Covariance, Estimate, covariance
from privrank.bradley_terry.itemscatter import FreeFit, with_scatter
from privrank.bradley_terry.linear import ItemContrasts
from privrank.bradley_terry.score import ScoreEquations, score_equations
from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.tails import simulated
from privrank.privacy.netnoise import NetDistribution
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release.names import LARGEST, MOMENTS, NET
from privrank.release.release import Release
from privrank.release.survey import PairCounts
from privrank.util.arrays import own
from privrank.util.solvers import square_root

__all__ = ["Inference", "by_scores", "edge_noise", "public_noise"]

FloatArray = NDArray[np.float64]

MOST_SIMULATED_ITEMS = 50
"""Beyond this, noise is taken as normal in tests and intervals of single coefficients."""

_MOST_DRAWS, _LEAST_DRAWS, _NUMBERS = 9_999, 999, 20_000_000
"""Simulated errors of covariates, fewer where each takes many random numbers."""


def by_scores(release: Release) -> bool:
    """Return whether tests and intervals of contrasts are those of their scores.

    So they are with noise, and without it where net wins have cluster-robust errors, unless items
    are many.
    """
    clustered = MOMENTS[0] in release.parts and NET in release.parts
    few = len(release.design.items) <= MOST_SIMULATED_ITEMS
    return few and (clustered or release.source != "none")


@dataclass(frozen=True, slots=True, eq=False)
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
    fitted: Estimate
    errors: Covariance
    free: FreeFit | None = None

    @classmethod
    def of(cls, release: Release, fitted: Estimate) -> Inference:
        """Compute the covariance of a fit."""
        equations = score_equations(release)
        errors = covariance(equations, release, fitted)
        if (free := FreeFit.of(release, corrected=fitted.corrected)) is not None:
            errors = with_scatter(errors, equations, fitted, free)
        return cls(release, equations, fitted, errors, free)

    @property
    def draws(self) -> int:
        """How many errors of all coefficients are simulated."""
        facts = self.equations
        if facts.covariates is None:
            return 20_000 if facts.items <= 20 else 8_000
        each = len(facts.weights) * facts.items
        return max(_LEAST_DRAWS, min(_MOST_DRAWS, _NUMBERS // each - 1))

    def _group_errors(self) -> FloatArray:
        """Return what errors of comparisons per group add to the covariance, taken as normal."""
        response = self.errors.response
        noise = self.equations.group_noise(self.fitted.coefficients)
        return np.asarray(response @ noise @ response.T)

    def errors_of(self, normal: FloatArray, noise: FloatArray | None = None) -> NoisyErrors:
        """Return errors with this covariance of their sampling part, and these draws of noise."""
        df = degrees_of_freedom(self.release)
        return NoisyErrors(normal, noise, df, LARGEST not in self.release.found)

    def draw_errors(self, label: str, rank: int) -> FloatArray:
        """Simulate errors of the coefficients, shape (draws, p), from a public counter seed.

        Normal sampling error plus the privacy noise by its exact distribution, for a quadratic form
        of this rank.
        """
        facts, draws = self.equations, self.draws
        out = self.errors_of(self.errors.sampling + self.errors.scatter).draws(draws, rank, label)
        generator = public_generator(label + ", noise", len(out), draws)
        if self.release.source != "none":
            noise = _draw_noise(facts, self.fitted.coefficients, draws, generator)
            out = out + noise @ self.errors.response.T
        if facts.grouped:
            out = out + generator.standard_normal(out.shape) @ square_root(self._group_errors()).T
        return np.asarray(out)

    def noisy_errors(self) -> NoisyErrors:
        """Return the errors of the coefficients: normal sampling error and the exact noise.

        The noise moves the coefficients by the linear map of the fit, and comes from a public
        counter seed.
        """
        if (scores := self.score_errors()) is None:
            return self.errors_of(self.errors.total)
        return scores.through(self.errors.response)

    @property
    def scored(self) -> bool:
        """Whether statements are those of score tests."""
        return by_scores(self.release)

    def score_errors(self) -> NoisyErrors | None:
        """Return the errors of the scores at the fit, None where statements are not by them."""
        facts, b = self.equations, self.fitted.coefficients
        if not self.scored:
            return None
        noise: FloatArray | None = None
        if facts.covariates is None:
            if facts.noisy:
                noise = _noise_by_place(facts, b, self.draws // 2)
        elif self.release.source != "none":
            generator = public_generator("errors of coefficients", len(b))
            noise = _draw_noise(facts, b, self.draws, generator)
        errors = self.errors_of(self.errors.scores + facts.group_noise(b), noise)
        return replace(errors, moments=single_contrasts(facts, self.release, b))


def _draw_noise(
    equations: ScoreEquations, b: FloatArray, draws: int, generator: np.random.Generator
) -> FloatArray:
    """Simulate the privacy noise of the scores at coefficients b, shape (draws, p).

    The distributions are exact but for errors of released pair counts, which are taken as normal;
    errors of comparisons per group and the noise on the worths of objective perturbation are left
    out.
    """
    m, weights = equations.items, equations.weights
    step, distribution = equations.item_step, equations.item_distribution
    if equations.covariates is None:
        noise = np.asarray(step * simulated(distribution, (draws, m), generator), dtype=np.float64)
        return noise + edge_noise(equations, b, draws, generator)
    basis = equations.basis
    table = np.zeros((draws, weights.shape[1], basis.shape[1]))
    for row in weights:
        # one group's noise at a time, so that memory does not grow with their number
        scores = step * simulated(distribution, (draws, m), generator) @ basis
        table += row[None, :, None] * scores[:, None, :]
    noise = table.reshape(draws, -1)
    if equations.ordered:
        first = equations.order_step * equations.order_distribution.simulate((draws, 1), generator)
        noise = np.column_stack((noise, first))
    return np.asarray(noise)


def edge_noise(
    equations: ScoreEquations,
    b: FloatArray,
    draws: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Simulate what the noise of pairs does to the scores, shape (draws, m), or none at all.

    Of many items it is taken as normal.
    """
    pairs = equations.pairs
    if equations.edge_distribution.scale == 0 and equations.count_variance == 0:
        return np.zeros((1, equations.items))
    if equations.items > MOST_SIMULATED_ITEMS:
        linear = ItemContrasts(pairs, equations.items)
        root = square_root(linear.information(equations.edge_variance(b)))
        return np.asarray(generator.standard_normal((draws, equations.items)) @ root.T)
    drawn = _pair_draws(equations.edge_distribution, (draws, len(pairs.first)), generator)
    return _by_item(equations, b, pairs, *drawn)


def _pair_draws(
    distribution: DiscreteLaplace | DiscreteGaussian,
    size: tuple[int, int],
    generator: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return draws for each pair: half differences of the noise of two cells, and normal ones."""
    halves = np.zeros((1, 1))
    if distribution.scale > 0:
        first, second = distribution.simulate((2, *size), generator)
        halves = 0.5 * (first - second)
    return halves, generator.standard_normal(size)


def _by_item(
    equations: ScoreEquations,
    b: FloatArray,
    pairs: PairCounts,
    halves: FloatArray,
    normal: FloatArray,
) -> FloatArray:
    """Return what such draws do to the scores, shape (draws, m): noise of cells and of counts."""
    mean = equations.function.mean(b[pairs.first] - b[pairs.second])
    by_edge = normal * (math.sqrt(equations.count_variance) * mean)
    by_edge += equations.edge_step * halves
    return np.asarray((ItemContrasts(pairs, equations.items).matrix().T @ by_edge.T).T)


def _noise_by_place(equations: ScoreEquations, worths: FloatArray, draws: int) -> FloatArray:
    """Simulate the noise of the scores for the items in the order of their worths.

    So it is the same whatever the order they are listed in.
    """
    m, place = len(worths), np.empty(len(worths), dtype=np.int64)
    order = np.argsort(worths, kind="stable")
    place[order] = np.arange(m)
    pairs = equations.pairs
    ends = np.sort((place[pairs.first], place[pairs.second]), axis=0)
    edges = np.lexsort(ends[::-1])
    moved = PairCounts(ends[0, edges], ends[1, edges], pairs.count[edges], pairs.origin)
    noise = equations.item_step * public_noise(equations.item_distribution, m, draws)
    if equations.edge_distribution.scale > 0 or equations.count_variance > 0:
        drawn = _public_pairs(equations.edge_distribution, m, len(edges), draws)
        noise = noise + _by_item(equations, worths[order], moved, *drawn)
    return np.asarray(noise[:, place])


@lru_cache(maxsize=4)
def public_noise(distribution: NetDistribution, items: int, draws: int) -> FloatArray:
    """Return public draws of noise, shape (draws, items), kept for the next test."""
    generator = public_generator("errors of worths", items)
    return own(np.asarray(simulated(distribution, (draws, items), generator)), np.float64)


@lru_cache(maxsize=1)
def _public_pairs(
    distribution: DiscreteLaplace | DiscreteGaussian, items: int, pairs: int, draws: int
) -> tuple[FloatArray, FloatArray]:
    """Return public draws for each pair (:func:`_pair_draws`), kept for the next test."""
    generator = public_generator("errors of pairs", items)
    halves, normal = _pair_draws(distribution, (draws, pairs), generator)
    return own(halves, np.float64), own(normal, np.float64)
