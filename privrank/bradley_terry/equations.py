"""Noisy score equations of a model of paired comparisons, computed from a release.

Scores are measured in wins. Without covariates the equations are
``sum_j n_ij (F(theta_i - theta_j) - 1/2) + gamma theta_i = net_i / 2``, so noise on `net` enters
halved. With covariates row r of the released statistic is the sum of basis times net wins, and the
model matrix is basis times weights. The score of column k is therefore half of weights_k'
statistic, on the item basis. The noise is transformed by the same map. For a log-loss that is not a
matching loss the scores are another function of the worths
(:class:`privrank.bradley_terry.losses.ScoreFunction`).

**Noise.** A released number enters the scores in two ways only: directly, or through the numbers of
comparisons on which expected scores depend. To first order the noise z of a part of the release
(:class:`NoiseTerm`) moves the scores at b by M(b) z, with

    M(b) = scores - mean_scores(b)' counts,

where row c of mean_scores(b), shape (cells, p), is the expected score of one answer in cell c. The
covariance is v M M' for noise of variance v, and simulated errors are M z.

This module has no access to the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import matmul
from typing import Any

import numpy as np

from privrank.bradley_terry.linear import Components, LinearPredictor
from privrank.bradley_terry.losses import ScoreFunction
from privrank.bradley_terry.paircounts import Matching
from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.tails import simulated
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.names import GROUP_ANSWERS, NET, PAIR_COUNTS, SIDES, WINS, WORTHS
from privrank.release.plan import Noise, equivalent_variance
from privrank.release.survey import Covariates, PairCounts
from privrank.util.arrays import AnyArray, FloatArray, IntArray, own_arrays, readonly_copy
from privrank.util.solvers import dense, product

Map = Any
"""A linear map for which ``rows @ map`` is defined: an array, or a sparse array."""


@dataclass(frozen=True, eq=False)
class NoiseTerm:
    """The noise of one part of a release, as independent vectors of k numbers.

    Parameters
    ----------
    distribution : Noise or None
        Distribution of a vector, in steps; None for standard normal numbers.
    step : float
        The step of the lattice.
    size : int
        The number k of entries of a vector.
    scores : Map, shape (p, k), or None
        The map from the numbers to the scores that they enter directly; None if there is none.
    counts : sequence of Map, or None
        The map from the numbers to the comparisons of the cells, shape (cells, k), as factors of a
        product. The empty sequence is the identity. None if the numbers do not enter comparisons.
    items : ndarray of int64, shape (1 or 2, l), or None
        The item of each number, the winner and loser of each cell, or the two items of each pair.
        The k numbers are k / l such blocks. Public draws are assigned to the items in the order of
        their worths.
    vectors : ndarray, shape (K, vectors)
        Weights of the vectors in each column of a model matrix; scores are ordered by column.
    beside : bool
        Whether the noise is one of the normal errors of the scores that are not simulated.
    """

    distribution: Any
    step: float
    size: int
    scores: Map = None
    counts: Sequence[Map] | None = None
    items: IntArray | None = None
    vectors: FloatArray = field(default_factory=lambda: np.ones((1, 1)))
    beside: bool = False

    def __post_init__(self) -> None:
        """Take private, read-only copies of the arrays, because results keep them."""
        own_arrays(self)

    @property
    def by_pair(self) -> bool:
        """Whether the numbers belong to pairs of items."""
        return self.items is not None and len(self.items) == 2

    @property
    def variance(self) -> float:
        """Variance of independent numbers whose differences have the variance of this noise."""
        if self.distribution is None:
            return self.step**2
        return self.step**2 * equivalent_variance(self.distribution, self.size)

    @property
    def score_variance(self) -> float:
        """Variance of the noise of each score, if the numbers enter all scores alike."""
        return self.variance * float((self.scores**2).sum() / self.scores.shape[0])

    def through_counts(self, rows: FloatArray) -> FloatArray:
        """Return the effects of the numbers, through the counts, on rows of scores, (rows, k)."""
        return dense(reduce(matmul, self.counts or (), rows))

    def public(self, draws: int, place: IntArray) -> FloatArray:
        """Return public draws that do not depend on the order in which items are listed.

        They belong to the items at these places.
        """
        drawn = public_noise(self.distribution, self.size, draws, len(place) * self.by_pair)
        if self.items is None:
            return drawn
        ends = place[self.items]
        # numbers that enter scores have a sign, which depends on the order of the two items
        turned = (ends[0] > ends[-1]) & (self.scores is not None)
        rank = np.argsort(np.lexsort((ends.max(axis=0), ends.min(axis=0), turned)))
        blocks = np.arange(0, self.size, len(rank))
        return drawn.take(np.add.outer(blocks, rank).ravel(), axis=1)


@lru_cache(maxsize=3)
def public_noise(distribution: Noise | None, size: int, draws: int, pairs: int = 0) -> FloatArray:
    """Return cached public draws, shape (draws, size), for pairs of items if `pairs` is not 0."""
    generator = public_generator("errors of pairs" if pairs else "errors of worths", pairs or size)
    if distribution is None:
        drawn = generator.standard_normal((draws, size))
    else:
        drawn = simulated(distribution, (draws, size), generator)
    return readonly_copy(drawn, np.float64)


_NO_NOISE = NoiseTerm(DiscreteLaplace(0.0), 2.0, 1, np.full((1, 1), 0.5))


@dataclass(frozen=True, eq=False)
class ScoreEquations:
    """Noisy scores of the coefficients b, the comparisons that they are based on, and their noise.

    Without covariates the coefficients are the worths.

    Parameters
    ----------
    items : int
        Number of items m.
    score : ndarray, shape (p,)
        Noisy scores; the scores of worths are centred to sum to zero.
    pairs : PairCounts
        Comparisons per pair used in the fit, with covariates per pattern and pair.
    linear : LinearPredictor
        The map from coefficients to the predictor of each edge.
    function : ScoreFunction
        How the scores depend on the worths.
    components : Components
        The connected components of the items, and the coefficients that they identify.
    covariates : Covariates or None
        The model matrix.
    terms : mapping of str to NoiseTerm
        The noise of each part of the release that moves the scores.
    surplus : ndarray
        Number of comparisons of each cell in `pairs` minus the released number.
    group_answers : ndarray
        Released numbers of comparisons of the groups of respondents, at least one each; empty if
        none were released.
    random_pairs : bool
        Whether pair counts are expectations. The scores then vary with the pairs as well.
    matching : Matching or None
        The matching of opponents, if the pair counts follow from the counts of the items.
    response : ndarray
        Change of the variance of each edge's score due to randomised responses, which increase it,
        and ties, which lower it; may be empty.
    answers : tuple of ndarray or None
        Exact wins and losses of each edge's first item, if they are known. The coefficients are
        then fitted to them by maximum likelihood.
    """

    items: int
    score: FloatArray
    pairs: PairCounts
    linear: LinearPredictor
    function: ScoreFunction
    components: Components
    covariates: Covariates | None = None
    terms: Mapping[str, NoiseTerm] = field(default_factory=dict)
    surplus: FloatArray = field(default_factory=lambda: np.zeros(()))
    group_answers: FloatArray = field(default_factory=lambda: np.zeros(0))
    random_pairs: bool = False
    matching: Matching | None = None
    response: FloatArray = field(default_factory=lambda: np.zeros(0))
    answers: tuple[FloatArray, FloatArray] | None = None

    def __post_init__(self) -> None:
        """Take private, read-only copies of the arrays, because results keep them."""
        for record in filter(None, (self, self.linear, self.linear.worths, self.matching)):
            own_arrays(record)

    @property
    def fitted(self) -> ScoreFunction:
        """How the scores that the fit solves depend on the worths."""
        return self.function if self.answers is None else ScoreFunction(self.function.link, True)

    @property
    def tied(self) -> bool:
        """Whether the last coefficient is a tie parameter."""
        return self.function.ties

    @property
    def ordered(self) -> bool:
        """Whether the last coefficient is an order effect."""
        return self.covariates is not None and self.covariates.ordered

    def by_edge(self, cells: AnyArray) -> AnyArray:
        """Return numbers by cell, or a single number, for the edges of the linear predictor."""
        return np.tile(np.broadcast_to(cells, len(self.pairs.count)), 3) if self.tied else cells

    @property
    def count(self) -> FloatArray:
        """Comparisons of each edge used in the fit."""
        return self.by_edge(np.asarray(self.pairs.count))

    @property
    def released(self) -> FloatArray:
        """Released comparisons of each cell, including numbers that noise has made negative."""
        return np.asarray(self.pairs.count - self.surplus)

    def information(self, b: FloatArray) -> FloatArray:
        """Return the derivative of the mean scores by the coefficients, shape (p, p)."""
        return self.linear.information(self.count * self.fitted.curvature(self.linear.predict(b)))

    def spread(self, t: FloatArray, function: ScoreFunction | None = None) -> FloatArray:
        """Return the variance of each edge's score of independent answers at predictors t.

        With randomised responses it is at least the bound that follows from E(y^2) >= |E(y)|.
        """
        function = function or self.function
        exact = np.asarray(self.count * function.variance(t))
        if not len(self.response):
            return exact
        if self.tied:
            return exact + np.maximum(self.response, 0.0)
        mean = np.abs(function.mean(t))
        return np.maximum(exact + self.response, self.pairs.count * mean * (0.5 - mean))

    def mean_scores(self, b: FloatArray) -> Map:
        """Return the expected scores of one answer of each cell, shape (cells, p).

        Three edges add up to a cell where ties have a parameter.
        """
        cell = self.by_edge(np.arange(len(self.pairs.count)))
        return self.linear.scores_by(cell, self.function.mean(self.linear.predict(b)))

    @property
    def pair_terms(self) -> list[NoiseTerm]:
        """The noise of pairs of items."""
        return [term for term in self.terms.values() if term.by_pair]

    @property
    def by_item(self) -> NoiseTerm:
        """The noise of the scores of items; each score contains half of one or two numbers."""
        parts = (part for part in (NET, SIDES, WORTHS) if part in self.terms)
        return self.terms.get(next(parts, ""), _NO_NOISE)

    def variance(self, part: str) -> float:
        """Return the variance of the noise of each number of a part; 0 if it is not a term."""
        return self.terms[part].variance if part in self.terms else 0.0

    @property
    def count_variance(self) -> float:
        """Error variance of each released pair count, summed over cells if there are covariates."""
        return self.variance(PAIR_COUNTS) + 2.0 * self.variance(WINS)

    def _moves(
        self, b: FloatArray, terms: Sequence[NoiseTerm]
    ) -> Iterator[tuple[NoiseTerm, Map]]:
        """Yield terms with their M at coefficients b, shape (p, k)."""
        mean = None
        for term in terms:
            moved = term.scores
            if term.counts is not None:
                # the noise is symmetric, so the overall sign of counts alone does not matter
                mean = self.mean_scores(b).T if mean is None else mean
                through = reduce(matmul, term.counts, mean)
                moved = through if moved is None else moved - through
            yield term, moved

    def noise_covariance(
        self, b: FloatArray, terms: Sequence[NoiseTerm] | None = None
    ) -> FloatArray:
        """Return the covariance of the scores due to noise at coefficients b, shape (p, p).

        `terms` are the included terms, by default all terms that are simulated.
        """
        if terms is None:
            terms = [term for term in self.terms.values() if not term.beside]
        covariance = np.zeros((len(b), len(b)))
        for term, moved in self._moves(b, terms):
            whole = isinstance(moved, np.ndarray)
            gram = product(moved, moved.T) if whole else dense(moved @ moved.T)
            part = term.variance * np.kron(term.vectors @ term.vectors.T, gram)
            covariance[: len(part), : len(part)] += part
        return covariance

    def simulate_noise(
        self,
        b: FloatArray,
        draws: int,
        terms: Sequence[NoiseTerm],
        fit: FloatArray,
        generator: np.random.Generator,
    ) -> FloatArray:
        """Draw errors of the scores due to noise at coefficients b, shape (draws, p).

        Without covariates the draws are public and are assigned to the items in the order of the
        worths of a fit.
        """
        place = np.argsort(np.argsort(fit[: self.items], kind="stable"))
        errors = np.zeros((draws, len(b)))
        for term, moved in self._moves(b, terms):
            lattice = term.step * moved.T
            for row in term.vectors.T:
                # one vector at a time keeps memory independent of their number
                if self.covariates is None:
                    drawn = term.public(draws, place)
                else:
                    drawn = simulated(term.distribution, (draws, term.size), generator)
                errors[:, : len(row) * lattice.shape[1]] += np.kron(row, drawn @ lattice)
        return errors

    def count_noise(self, along: FloatArray, predictors: FloatArray) -> FloatArray:
        """Return the part of variances of combinations of scores due to errors of pair counts.

        `along` are the weights of the scores by edge, shape (rows, edges).
        """
        by_edge = along * self.function.mean(predictors)
        rows = by_edge.reshape(len(along), -1, len(self.pairs.count)).sum(axis=1)
        noise = np.zeros(len(along))
        for part, term in self.terms.items():
            if term.counts is not None and part != GROUP_ANSWERS:
                noise += term.variance * (term.through_counts(rows) ** 2).sum(axis=1)
        return noise


def scores_by_pattern(facts: ScoreEquations, b: FloatArray) -> FloatArray:
    """Return the expected scores of all comparisons by covariate pattern, shape (patterns, p)."""
    pattern = facts.by_edge(facts.pairs.first // facts.items)
    means = facts.function.mean(facts.linear.predict(b))
    return dense(facts.linear.scores_by(pattern, facts.count * means))


def released_degrees(facts: ScoreEquations) -> FloatArray:
    """Return the released number of comparisons of each item, for models without covariates."""
    return (facts.linear.worths or facts.linear).sizes(facts.released)


def degree_error(facts: ScoreEquations) -> float:
    """Return the standard deviation of the noise of these numbers; 0 if they are public."""
    pairs = (facts.items - 1) * facts.count_variance
    return math.sqrt(pairs if facts.matching is None else facts.matching.variance)


def released_total(facts: ScoreEquations) -> float:
    """Return the released total number of comparisons, at least one."""
    return max(float(facts.released.sum()), 1.0)
